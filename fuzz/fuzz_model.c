/* Any bytes as a model file: an error message, or a model that translates a short line and describes itself. */
#include "fuzz.h"

#include <string.h>
#include <unistd.h>

static bool check(void *context, int64_t line, const at_result *result)
{
    int64_t *count = context;
    EXPECT(line == *count && result->count >= 1);
    for (int64_t i = 0; i < result->count; i++) {
        const at_hypothesis *h = &result->best[i];
        EXPECT(h->text[h->size] == '\0' && !strchr(h->text, '\n') && h->score <= 0);
        for (int64_t t = 0; h->links && t < h->count; t++)
            EXPECT(h->links[t] >= -1 && h->links[t] < h->source_units);
    }
    ++*count;
    return true;
}

static void use(at_translator *model)
{
    static const at_line source[] = {{"a b", 3}, {"", 0}}, target[] = {{"b", 1}, {"a", 1}};
    const at_search_settings settings = {.beam = 2, .n_best = 2, .max_length = 4};
    const bool has_source = at_translator_has_source(model);
    at_error error = {0};
    int64_t lines = 0;
    expect_message(at_translate(model, &settings, source, 2, check, &lines, &error), &error);
    EXPECT(error.code != AT_OK || lines == 2);
    at_error forced = {0};
    lines = 0;
    expect_message(at_align(model, &settings, has_source ? source : NULL, target, 1, check, &lines, &forced), &forced);
    at_error described = {0};
    char *info = at_translator_info(model, &described);
    expect_message(info, &described);
    at_text_free(info);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    at_error error = {0};
    const char *path;
    const int file = open_bytes(bytes, size, &path);
    at_threads_set(1);
    at_translator *model = at_translator_load(path, &error);
    expect_message(model, &error);
    at_error from_memory = {0};
    at_translator *same = at_translator_load_memory(bytes, size, &from_memory);
    expect_message(same, &from_memory);
    EXPECT(!model == !same);
    at_translator *clone = model ? at_translator_clone(model, &error) : NULL;
    at_translator_free(model);
    if (clone)
        use(clone);
    at_translator_free(clone);
    at_translator_free(same);
    close(file);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed)
{
    return mutate_tensors(bytes, size, most, seed);
}
