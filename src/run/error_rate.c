/* Word and character error rate, accuracy. */
#include <stdlib.h>
#include <string.h>

#include "judge.h"
#include "units.h"

/* Edits and the units of the reference to a rate. A line without units has the rate 0 if it needs no edit, and 100 if
 * it does. */
double at_error_rate(const double *sums, bool sentence)
{
    (void)sentence;
    if (sums[1] > 0)
        return 100.0 * sums[0] / sums[1];
    return sums[0] > 0 ? 100 : 0;
}

static bool number_units(at_judge_scratch *scratch, at_line line, bool words)
{
    at_units units = {line.text, line.text + line.size, words};
    at_unit unit;
    while (at_units_next(&units, &unit)) {
        int32_t id;
        bool broken;
        if (words)
            id = at_dictionary_number(&scratch->dictionary, unit.text, unit.size);
        else
            at_point_read(unit.text, unit.size, &id, &broken);
        if (id < 0 || !at_sequences_add(&scratch->units, id))
            return false;
    }
    return at_sequences_end(&scratch->units);
}

/* The fewest edits from a to b (Levenshtein), row by row:
 *   d[i][j] = min(d[i-1][j] + 1, d[i][j-1] + 1, d[i-1][j-1] + (a_i != b_j)),   d[i][0] = i,  d[0][j] = j.
 * What both begin and end with costs nothing and is left out. -1 if memory ran out. */
static int64_t edit_distance(at_judge_scratch *scratch, const int32_t *a, int64_t n, const int32_t *b, int64_t m)
{
    while (n > 0 && m > 0 && a[n - 1] == b[m - 1]) {
        n--;
        m--;
    }
    while (n > 0 && m > 0 && *a == *b) {
        a++, b++;
        n--, m--;
    }
    if (!at_judge_room(&scratch->cells, &scratch->cell_room, (size_t)m + 1, sizeof *scratch->cells))
        return -1;
    int32_t *row = scratch->cells;
    for (int64_t j = 0; j <= m; j++)
        row[j] = (int32_t)j;
    for (int64_t i = 1; i <= n; i++) {
        int32_t before = row[0]; /* d[i-1][j-1] */
        row[0] = (int32_t)i;
        for (int64_t j = 1; j <= m; j++) {
            int32_t least = before + (a[i - 1] != b[j - 1]);
            before = row[j];
            if (row[j] + 1 < least)
                least = row[j] + 1;
            if (row[j - 1] + 1 < least)
                least = row[j - 1] + 1;
            row[j] = least;
        }
    }
    return row[m];
}

/* Edits and units of the reference with the lowest rate, the first of those. */
static bool collect_units(at_judge_scratch *scratch, const at_judged *line, bool words, double *statistics,
                          at_error *error)
{
    const at_sequences *units = &scratch->units;
    at_sequences_clear(&scratch->units);
    at_dictionary_clear(&scratch->dictionary);
    bool good = number_units(scratch, *line->hypothesis, words);
    for (int r = 0; good && r < line->count; r++)
        good = number_units(scratch, line->references[r], words);
    for (int s = 1; good && s <= line->count; s++) {
        int64_t m = units->start[s + 1] - units->start[s];
        int64_t edits = edit_distance(scratch, units->id, units->start[1], units->id + units->start[s], m);
        double judged[2] = {(double)edits, (double)m};
        good = edits >= 0;
        if (s == 1 || at_error_rate(judged, true) < at_error_rate(statistics, true))
            memcpy(statistics, judged, sizeof judged);
    }
    return good || at_no_memory_to_score(error);
}

static bool collect_words(at_judge_scratch *scratch, const at_judged *line, double *statistics, at_error *error)
{
    return collect_units(scratch, line, true, statistics, error);
}

static bool collect_characters(at_judge_scratch *scratch, const at_judged *line, double *statistics, at_error *error)
{
    return collect_units(scratch, line, false, statistics, error);
}

/* Whether the line equals a reference to the byte. */
static bool collect_equal(at_judge_scratch *scratch, const at_judged *line, double *statistics, at_error *error)
{
    (void)scratch, (void)error;
    statistics[0] = 0;
    statistics[1] = 1;
    for (int r = 0; r < line->count; r++) {
        at_line a = *line->hypothesis, b = line->references[r];
        if (a.size == b.size && (b.size == 0 || memcmp(a.text, b.text, b.size) == 0))
            statistics[0] = 1;
    }
    return true;
}

const at_metric_kind at_metric_wer = {.name = "wer",
                                      .statistics = 2,
                                      .cleans = true,
                                      .nothing = "the references hold no word, so there is no error rate",
                                      .collect = collect_words,
                                      .score = at_error_rate};

const at_metric_kind at_metric_cer = {.name = "cer",
                                      .statistics = 2,
                                      .nothing = "the references hold no character, so there is no error rate",
                                      .collect = collect_characters,
                                      .score = at_error_rate};

const at_metric_kind at_metric_accuracy = {
    .name = "accuracy", .statistics = 2, .larger_is_better = true, .collect = collect_equal, .score = at_error_rate};
