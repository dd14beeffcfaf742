/* Any bytes as a checkpoint of OpenNMT-py, a file of PyTorch: an error message, or a model that translates. */
#include "fuzz.h"

#include <unistd.h>

static bool check(void *context, int64_t line, const at_result *result)
{
    EXPECT(line == 0 && result->count == 1);
    ++*(int64_t *)context;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const at_line text = {"a b d", 5};
    const at_search_settings settings = {.max_length = 3};
    const char *path;
    at_error error = {0};
    int64_t lines = 0;
    at_threads_set(1);
    const int file = open_bytes(bytes, size, &path);
    at_translator *t = at_translator_load(path, &error);
    close(file);
    expect_message(t, &error);
    if (t) {
        expect_message(at_translate(t, &settings, &text, 1, check, &lines, &error), &error);
        EXPECT(error.code != AT_OK || lines == 1);
    }
    at_translator_free(t);
    return 0;
}
