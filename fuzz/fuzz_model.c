/* Any bytes as a model file: an error message, or a model that translates a short line, or a small picture, and describes itself. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
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

/* A file of two pictures with 4 x 4 pixels of three channels, and the lines that name them. */
static char array[] = "/tmp/fuzz_model_XXXXXX.npy", names[2][sizeof array + 3];

static void remove_array(void)
{
    unlink(array);
}

static void write_pictures(void)
{
    const int file = mkstemps(array, 4);
    EXPECT(file >= 0);
    atexit(remove_array);
    dprintf(file, "\x93NUMPY%c%c%c%c%-117s\n", 1, 0, 118, 0, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 4, 4, 3), }");
    for (int i = 0; i < 2 * 4 * 4 * 3; i++)
        dprintf(file, "%c", i * 11 % 256);
    close(file);
    for (int i = 0; i < 2; i++)
        snprintf(names[i], sizeof names[i], "%s[%d]", array, i);
}

static void use(at_translator *model)
{
    static const at_line text[] = {{"a b", 3}, {"", 0}}, target[] = {{"b", 1}, {"a", 1}};
    const at_search_settings settings = {.beam = 2, .n_best = 2, .max_length = 4};
    const bool has_source = at_translator_has_source(model);
    if (!names[0][0])
        write_pictures();
    const at_line pictures[] = {{names[0], strlen(names[0])}, {names[1], strlen(names[1])}};
    const at_line *source = at_translator_has_pictures(model) ? pictures : text;
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
