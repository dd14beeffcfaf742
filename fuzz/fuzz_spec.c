/* Any text as the SPEC of attend compare, with the arguments of --set in lines that begin with "--set ": an error message,
 * or a grid whose cells can all be listed. */
#include "compare/compare.h"
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SETS = 8, MOST_LISTED = 64 };

/* Takes the lines of --set out of the text, which they point into; returns the rest. */
static char *split_sets(char *text, const char *sets[MOST_SETS], int *count)
{
    char *spec = calloc(1, strlen(text) + 2), *end = spec, *rest = text, *line;
    EXPECT(spec);
    while ((line = strsep(&rest, "\n"))) {
        if (strncmp(line, "--set ", 6) == 0 && *count < MOST_SETS) {
            sets[(*count)++] = line + 6;
            continue;
        }
        end = stpcpy(end, line);
        if (rest)
            end = stpcpy(end, "\n");
    }
    return spec;
}

static void list_cells(const compare_spec *spec)
{
    const char *words[MOST_LINE_WORDS];
    char unused[300];
    EXPECT(spec->cell_count >= 1 && spec->cell_count <= MOST_CELLS && spec->seed_count >= 1 && spec->metric_count >= 1);
    for (int listed = 0; listed < spec->cell_count && listed < MOST_LISTED; listed++) {
        const int cell = listed % 2 == 0 ? listed / 2 : spec->cell_count - 1 - listed / 2;
        const int count = compare_options(spec, cell, words);
        EXPECT(count >= 0 && count <= MOST_LINE_WORDS);
        for (int i = 0; i < count; i++)
            EXPECT(words[i] && words[i][0]);
        for (int axis = 0; axis < spec->axis_count; axis++)
            EXPECT(compare_value(spec, cell, axis));
    }
    compare_unused(spec, unused, sizeof unused);
    compare_scoring(spec);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    at_error error = {0};
    const char *set[MOST_SETS];
    at_texts sets = {.value = set};
    char *text = text_of(bytes, size), *rest = split_sets(text, set, &sets.count);
    compare_spec spec;
    const bool done = compare_spec_read(&spec, "fuzz.spec", "folder", rest, &sets, &error);
    expect_error(done, &error);
    if (done)
        list_cells(&spec);
    compare_spec_free(&spec);
    free(rest);
    free(text);
    return 0;
}
