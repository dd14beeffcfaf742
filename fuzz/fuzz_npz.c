/* Any bytes as the .npz of Marian or g2p_en, with their vocabularies beside it: an error message, or a model that
 * translates. The first byte says whether the rest is the .npz, or a vocabulary beside the one before. */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>

static bool check(void *context, int64_t line, const at_result *result)
{
    EXPECT(line == 0 && result->count == 1);
    ++*(int64_t *)context;
    return true;
}

static void put(const char *name, const void *bytes, size_t size)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", own_folder(), name);
    write_bytes(path, bytes, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char words[] = "</s>: 0\n<unk>: 1\na: 2\nb: 3\nc: 4\nd: 5\ne: 6\n",
                      named[] = "vocabs:\n  - vocab.yml\n  - vocab.yml\n",
                      letters[] = "{\"graphemes\": [\"<pad>\", \"<unk>\", \"</s>\", \"a\", \"b\", \"c\"],"
                                  "\"phonemes\": [\"<pad>\", \"<unk>\", \"<s>\", \"</s>\", \"A\", \"B\", \"K\"]}";
    static const at_line text = {"a b d", 5};
    const at_search_settings settings = {.max_length = 3};
    char path[200];
    at_error error = {0};
    int64_t lines = 0;
    at_threads_set(1);
    const bool yaml = size > 0 && bytes[0] == 'y';
    put("vocab.yml", yaml ? (const char *)bytes + 1 : words, yaml ? size - 1 : sizeof words - 1);
    put("decoder.yml", named, sizeof named - 1);
    put("vocabulary.json", letters, sizeof letters - 1);
    if (!yaml)
        put("model.npz", bytes, size);
    snprintf(path, sizeof path, "%s/model.npz", own_folder());
    at_translator *t = at_translator_load(path, &error);
    expect_message(t, &error);
    if (t) {
        expect_message(at_translate(t, &settings, &text, 1, check, &lines, &error), &error);
        EXPECT(error.code != AT_OK || lines == 1);
    }
    at_translator_free(t);
    return 0;
}
