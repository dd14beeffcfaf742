/* Any text as the JSON of a vocabulary in a model file, and what follows its first newline as a line of text: an error
 * message, or a vocabulary that is the same again when it is written and read, and whose ids are its own. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "text/vocabulary.h"

enum { ROOM = 64 };

static void use(const at_vocabulary *vocabulary, const char *line)
{
    at_error error = {0};
    int32_t ids[ROOM], offsets[2 * ROOM];
    int64_t replaced;
    const size_t size = strlen(line);
    at_vocabulary *copy = at_vocabulary_copy(vocabulary, &error);
    EXPECT(copy && at_vocabulary_same(vocabulary, copy, &error));
    at_vocabulary_free(copy);
    int64_t count = at_vocabulary_encode(vocabulary, line, size, ids, ROOM, &replaced, offsets);
    EXPECT(count >= 0);
    count = count < ROOM ? count : ROOM;
    for (int64_t i = 0; i < count; i++) {
        EXPECT(ids[i] >= 0 && ids[i] < at_vocabulary_size(vocabulary) && at_vocabulary_unit(vocabulary, ids[i]));
        EXPECT(0 <= offsets[2 * i] && offsets[2 * i] <= offsets[2 * i + 1] && (size_t)offsets[2 * i + 1] <= size);
    }
    at_buffer text = {0};
    EXPECT(at_vocabulary_decode(vocabulary, ids, count, &text));
    at_buffer_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    at_error error = {0};
    char *text = text_of(bytes, size), *newline = strchr(text, '\n');
    if (newline)
        *newline = '\0';
    at_vocabulary *vocabulary = at_vocabulary_from_json(text, &error);
    expect_message(vocabulary, &error);
    if (vocabulary && !at_vocabulary_needs_subwords(vocabulary))
        use(vocabulary, newline ? newline + 1 : "");
    at_vocabulary_free(vocabulary);
    free(text);
    return 0;
}
