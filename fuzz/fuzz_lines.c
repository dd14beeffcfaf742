/* Any bytes as a file of lines, plain or compressed: reading all at once and one by one returns the same lines, or
 * the same error message. */
#include "fuzz.h"

#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    at_error error = {0}, reading = {0};
    const char *path;
    at_line line;
    int64_t count = 0;
    const int file = open_bytes(bytes, size, &path);
    at_decompressed_limit_set(1 << 17); /* two blocks of the reader */
    at_line_list *list = at_line_list_read(path, &error);
    expect_message(list, &error);
    at_line_reader *reader = at_line_reader_open(path, &reading);
    for (; at_line_reader_next(reader, &line, &reading); count++)
        if (list) {
            EXPECT(count < list->count && line.size == list->line[count].size);
            EXPECT(memcmp(line.text, list->line[count].text, line.size) == 0);
        }
    EXPECT(strcmp(error.text, reading.text) == 0 && (!list || count == list->count));
    at_line_reader_free(reader);
    at_line_list_free(list);
    close(file);
    return 0;
}
