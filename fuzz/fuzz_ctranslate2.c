/* Any bytes as the model.bin of CTranslate2, with seven words on both sides: an error message, or a model that translates. */
#include "fuzz.h"

#include <stdio.h>

static bool check(void *context, int64_t line, const at_result *result)
{
    EXPECT(line == 0 && result->count >= 1 && result->count <= 2);
    EXPECT(result->best[0].score <= 0);
    ++*(int64_t *)context;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char words[] = "<blank>\n<unk>\n<s>\n</s>\na\nb\nc\n";
    static const at_line text = {"a b d", 5};
    const at_search_settings settings = {.beam = 2, .n_best = 2, .max_length = 4};
    at_error error = {0};
    int64_t lines = 0;
    char path[100];
    at_threads_set(1);
    snprintf(path, sizeof path, "%s/shared_vocabulary.txt", own_folder());
    write_bytes(path, words, sizeof words - 1);
    snprintf(path, sizeof path, "%s/model.bin", own_folder());
    write_bytes(path, bytes, size);
    at_translator *t = at_translator_load(own_folder(), &error);
    expect_message(t, &error);
    if (t) {
        expect_message(at_translate(t, &settings, &text, 1, check, &lines, &error), &error);
        EXPECT(error.code != AT_OK || lines == 1);
    }
    at_translator_free(t);
    return 0;
}
