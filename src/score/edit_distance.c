/* Edits between a line and its references, for word and character error rates. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "score/metric_internal.h"
#include "text/units.h"

static bool add_units(at_score_scratch *scratch, at_line line, bool words)
{
    at_units units = {line.text, line.text + line.size, words};
    at_unit unit;
    while (at_units_next(&units, &unit)) {
        const int32_t id = at_dictionary_id(&scratch->dictionary, unit.text, unit.size);
        if (id < 0 || !at_sequences_add(&scratch->units, id))
            return false;
    }
    return at_sequences_end(&scratch->units);
}

/* The fewest edits from a to b (Levenshtein):
 *   d[i][j] = min(d[i-1][j] + 1, d[i][j-1] + 1, d[i-1][j-1] + (a_i != b_j)),   d[i][0] = i,  d[0][j] = j.
 * Neighbours differ by -1, 0 or 1, so 64 rows of a column are two words of bits, the rows where d goes up and down
 * from the row before (Myers 1999, in the form of Hyyro 2003), and long lines take a 64th of the time per cell. A common
 * beginning and a common end cost nothing and are left out. -1 if out of memory. */
enum { ROWS = 64 };

/* Carries step[j] = d[i][j] - d[i][j-1] from the row above the block's `rows` to its last one. */
static void pass_block(const uint64_t *masks, const int32_t *b, int64_t m, int rows, int8_t *step)
{
    uint64_t up = ~(uint64_t)0, down = 0;
    for (int64_t j = 0; j < m; j++) {
        const uint64_t equal = masks[b[j]], above_up = step[j] > 0, above_down = step[j] < 0;
        const uint64_t across = equal | down, along = equal | above_down;
        const uint64_t level = (((along & up) + up) ^ up) | along;
        uint64_t right_up = down | ~(level | up), right_down = up & level;
        step[j] = (int8_t)((int)(right_up >> (rows - 1) & 1) - (int)(right_down >> (rows - 1) & 1));
        right_up = right_up << 1 | above_up;
        right_down = right_down << 1 | above_down;
        up = right_down | ~(across | right_up);
        down = right_up & across;
    }
}

static int64_t edit_distance(at_score_scratch *scratch, const int32_t *a, int64_t n, const int32_t *b, int64_t m)
{
    while (n > 0 && m > 0 && a[n - 1] == b[m - 1]) {
        n--;
        m--;
    }
    while (n > 0 && m > 0 && *a == *b) {
        a++, b++;
        n--, m--;
    }
    const size_t ids = (size_t)scratch->dictionary.used;
    if (!AT_GROW(scratch->masks, scratch->mask_room, ids) || !AT_GROW(scratch->steps, scratch->step_room, (size_t)m))
        return -1;
    uint64_t *masks = scratch->masks;
    int8_t *step = scratch->steps;
    memset(masks, 0, ids * sizeof *masks);
    memset(step, 1, (size_t)m);
    for (int64_t i = 0; i < n; i += ROWS) {
        const int rows = n - i < ROWS ? (int)(n - i) : ROWS;
        for (int r = 0; r < rows; r++)
            masks[a[i + r]] |= (uint64_t)1 << r;
        pass_block(masks, b, m, rows, step);
        for (int r = 0; r < rows; r++)
            masks[a[i + r]] = 0;
    }
    int64_t distance = n; /* d[n][0] */
    for (int64_t j = 0; j < m; j++)
        distance += step[j];
    return distance;
}

/* Of several references with the lowest rate the first counts. */
bool at_edits_collect(at_score_scratch *scratch, const at_score_line *line, bool words, double *statistics,
                      at_error *error)
{
    const at_sequences *units = &scratch->units;
    at_sequences_clear(&scratch->units);
    at_dictionary_clear(&scratch->dictionary);
    bool good = add_units(scratch, *line->hypothesis, words);
    for (int r = 0; good && r < line->count; r++)
        good = add_units(scratch, line->references[r], words);
    for (int s = 1; good && s <= line->count; s++) {
        int64_t m = units->start[s + 1] - units->start[s];
        int64_t edits = edit_distance(scratch, units->id, units->start[1], units->id + units->start[s], m);
        double counts[2] = {(double)edits, (double)m};
        good = edits >= 0;
        if (s == 1 || at_percentage(counts, true) < at_percentage(statistics, true))
            memcpy(statistics, counts, sizeof counts);
    }
    return good || at_score_no_memory(error);
}
