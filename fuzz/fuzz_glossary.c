/* Any bytes as a glossary: an error message, or terms that are found in lines, those of the file among them: in order, each
 * once, and each one standing in the line. */
#include "fuzz.h"

#include <string.h>
#include <unistd.h>

#include "text/glossary.h"

enum { ROOM = 8, MOST_LINES = 50 };

static void find_in(const at_glossary *glossary, at_line line)
{
    int64_t found[ROOM], all[AT_LINE_TERMS];
    const int64_t count = at_glossary_find(glossary, line, all, AT_LINE_TERMS);
    EXPECT(count >= 0 && count <= at_glossary_count(glossary));
    EXPECT(count > AT_LINE_TERMS || (at_glossary_find(glossary, line, found, ROOM) >= count) || count <= ROOM);
    for (int64_t i = 0; i < count && i < AT_LINE_TERMS; i++) {
        const at_term *term = at_glossary_term(glossary, all[i]);
        EXPECT(all[i] >= 0 && all[i] < at_glossary_count(glossary) && (i == 0 || all[i - 1] < all[i]));
        EXPECT(term->source.size == 0 || at_glossary_has(line, term->source));
        EXPECT(term->target.size > 0 && at_glossary_has(term->target, term->target));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    at_error error = {0};
    const char *path;
    const int file = open_bytes(bytes, size, &path);
    at_decompressed_limit_set(1 << 20);
    at_glossary *glossary = at_glossary_load(path, &error);
    expect_message(glossary, &error);
    at_error unread = {0};
    at_line_list *list = glossary ? at_line_list_read(path, &unread) : NULL;
    for (int64_t i = 0; list && i < list->count && i < MOST_LINES; i++)
        find_in(glossary, list->line[i]);
    at_line_list_free(list);
    at_glossary_free(glossary);
    close(file);
    return 0;
}
