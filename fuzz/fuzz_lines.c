/* Any bytes as a file of lines, plain or compressed: reading all at once and one by one returns the same lines, or
 * the same error message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attend.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    at_error error = {0}, reading = {0};
    char path[40];
    at_line line;
    int64_t count = 0;
    const int file = memfd_create("lines", 0);
    if (file < 0 || write(file, bytes, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    at_decompressed_limit_set(1 << 22);
    at_line_list *list = at_line_list_read(path, &error);
    if ((list == NULL) != (error.code != AT_OK) || strchr(error.text, '\n'))
        abort();
    at_line_reader *reader = at_line_reader_open(path, &reading);
    for (; at_line_reader_next(reader, &line, &reading); count++)
        if (list && (count >= list->count || line.size != list->line[count].size ||
                     memcmp(line.text, list->line[count].text, line.size) != 0))
            abort();
    if (strcmp(error.text, reading.text) != 0 || (list && count != list->count))
        abort();
    at_line_reader_free(reader);
    at_line_list_free(list);
    close(file);
    return 0;
}
