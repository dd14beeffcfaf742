/* TER (Snover et al. 2006) as sacreBLEU computes it after tercom: edits of words, where shifting a block is one edit. The
 * best shifts are hard to find, so the search is greedy, and within these limits:
 *   - a block has at most 10 words, and is shifted to words of the reference at most 50 positions away;
 *   - the edit distance is computed in a band around the diagonal;
 *   - the search ends after 1000 shifts,
 *   - and after 5e8 cells, or at once if one edit distance needs 5e7, which only lines of thousands of words do. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "score/metric_internal.h"

enum { BLOCK = 10, REACH = 50, BEAM = 25, SHIFTS = 1000, WORK = 500000000, LARGEST = 50000000, FAR = 1 << 29 };

/* The search for one hypothesis h [n] and one reference r [m]. Row i of the edit distances holds the columns near
 * i * m / n, width of them at most. */
typedef struct search {
    int32_t *h;
    const int32_t *r;
    int64_t n, m, width, beam;
    double ratio;
    int32_t *rows;                    /* [n + 1, width] of the current hypothesis */
    int32_t *first_row;               /* [m + 1] */
    int32_t *above, *here;            /* [width + 1], [width] */
    int32_t *moved;                   /* the words of the range that a shift changes */
    int32_t *aligned;                 /* [m] the word of h at or before each of r, -1: none */
    unsigned char *h_wrong, *r_wrong; /* [n], [m] whether an edit touches them */
    int64_t tried, work;
} search;

/* The columns first .. end - 1 of row i > 0. */
static void columns(const search *s, int64_t i, int64_t *first, int64_t *end)
{
    int64_t diagonal = (int64_t)floor((double)i * s->ratio);
    *first = diagonal > s->beam ? diagonal - s->beam : 0;
    *end = i == s->n || diagonal + s->beam > s->m + 1 ? s->m + 1 : diagonal + s->beam;
}

/* Row i from the one above it, which holds the columns above_first .. above_end - 1:
 *   d[i][j] = min(d[i-1][j-1] + (h_i != r_j), d[i-1][j] + 1, d[i][j-1] + 1),   FAR outside of the band. */
static void make_row(search *s, int64_t i, int32_t word, const int32_t *above, int64_t above_first, int64_t above_end,
                     int32_t *row)
{
    int64_t first, end;
    columns(s, i, &first, &end);
    for (int64_t j = first - 1; j < end; j++) /* above[k] is d[i-1][first - 1 + k] */
        s->above[j - first + 1] = j >= above_first && j < above_end ? above[j - above_first] : FAR;
    int32_t left = FAR;
    for (int64_t j = first; j < end; j++) {
        int64_t k = j - first;
        int32_t least = j > 0 ? s->above[k] + (word != s->r[j - 1]) : FAR;
        if (s->above[k + 1] + 1 < least)
            least = s->above[k + 1] + 1;
        if (left + 1 < least)
            least = left + 1;
        row[k] = left = least;
    }
    s->work += end - first;
}

static const int32_t *row_at(const search *s, int64_t i, int64_t *first, int64_t *end)
{
    if (i == 0) {
        *first = 0;
        *end = s->m + 1;
        return s->first_row;
    }
    columns(s, i, first, end);
    return s->rows + i * s->width;
}

static int32_t cell(const search *s, int64_t i, int64_t j)
{
    int64_t first, end;
    const int32_t *row = row_at(s, i, &first, &end);
    return j >= first && j < end ? row[j - first] : FAR;
}

/* Computes the rows after row `from` for the current hypothesis. */
static void make_rows(search *s, int64_t from)
{
    for (int64_t i = from + 1; i <= s->n; i++) {
        int64_t first, end;
        const int32_t *above = row_at(s, i - 1, &first, &end);
        make_row(s, i, s->h[i - 1], above, first, end, s->rows + i * s->width);
    }
}

/* Traces the cheapest alignment back through the rows; among equally cheap steps a match or substitution comes before a
 * deletion, and that before an insertion. */
static void align(search *s)
{
    int64_t i = s->n, j = s->m;
    while (i > 0 || j > 0) {
        int32_t here = cell(s, i, j);
        bool differ = i > 0 && j > 0 && s->h[i - 1] != s->r[j - 1];
        if (i > 0 && j > 0 && cell(s, i - 1, j - 1) + differ == here) {
            i--, j--;
            s->aligned[j] = (int32_t)i;
            s->h_wrong[i] = s->r_wrong[j] = differ;
        } else if (i > 0 && cell(s, i - 1, j) + 1 == here) {
            i--;
            s->h_wrong[i] = true;
        } else {
            j--;
            s->aligned[j] = (int32_t)i - 1;
            s->r_wrong[j] = true;
        }
    }
}

/* A shift of the block of `length` words at `start` to before word `to`. It changes h[from .. end). */
typedef struct shift {
    int64_t start, length, to, gain, from, end;
} shift;

/* Fills in from, end and s->moved. A block whose target lies inside itself is shifted past its own end by as much. */
static void apply_shift(search *s, shift *go)
{
    int64_t block_end = go->start + go->length;
    int32_t *out = s->moved;
    const int32_t *block = s->h + go->start;
    if (go->to < go->start) {
        go->from = go->to;
        go->end = block_end;
        memcpy(out, block, (size_t)go->length * sizeof *out);
        memcpy(out + go->length, s->h + go->to, (size_t)(go->start - go->to) * sizeof *out);
        return;
    }
    go->from = go->start;
    go->end = go->to > block_end ? go->to : go->to + go->length < s->n ? go->to + go->length : s->n;
    memcpy(out, s->h + block_end, (size_t)(go->end - block_end) * sizeof *out);
    memcpy(out + (go->end - block_end), block, (size_t)go->length * sizeof *out);
}

/* The difference of two rows if it is the same in all columns; else FAR. */
static int32_t excess(const int32_t *row, const int32_t *other, int64_t count)
{
    for (int64_t k = 1; k < count; k++)
        if (row[k] - other[k] != row[0] - other[0])
            return FAR;
    return row[0] - other[0];
}

/* The edit distance after a shift minus the one before. Rows above the change stay the same. Below it, where the words are
 * the same again, once a row differs from the old one by a constant, all further rows differ by that constant too. */
static int64_t loss_by(search *s, const shift *go)
{
    int64_t first, end;
    const int32_t *above = row_at(s, go->from, &first, &end);
    int32_t *here = s->here, *spare = s->here + s->width;
    int64_t differ = 0;
    for (int64_t i = go->from + 1; i <= s->n; i++) {
        make_row(s, i, i <= go->end ? s->moved[i - 1 - go->from] : s->h[i - 1], above, first, end, here);
        columns(s, i, &first, &end);
        const int32_t *before = s->rows + i * s->width;
        if (i >= go->end && (differ = excess(here, before, end - first)) != FAR)
            return differ;
        differ = here[end - first - 1] - before[end - first - 1];
        above = here;
        here = spare;
        spare = (int32_t *)above;
    }
    return differ;
}

/* The larger gain, then the longer block, then the earlier block, then the earlier target. */
static bool is_better(const shift *a, const shift *b)
{
    if (a->gain != b->gain)
        return a->gain > b->gain;
    if (a->length != b->length)
        return a->length > b->length;
    return a->start != b->start ? a->start < b->start : a->to < b->to;
}

static bool any_wrong(const unsigned char *wrong, int64_t length)
{
    return memchr(wrong, true, (size_t)length);
}

/* Tries to shift the block at `start`, which equals the words of the reference at `at`, before and after each word that
 * those are aligned to. */
static void try_block(search *s, int64_t start, int64_t at, int64_t length, shift *best, bool *any)
{
    int64_t last = -1;
    if (!any_wrong(s->h_wrong + start, length) || !any_wrong(s->r_wrong + at, length) ||
        (s->aligned[at] >= start && s->aligned[at] < start + length))
        return;
    for (int64_t j = at - 1; j < at + length; j++) {
        shift go = {.start = start, .length = length, .to = j < 0 ? 0 : s->aligned[j] + 1};
        if (go.to == last)
            continue;
        last = go.to;
        apply_shift(s, &go);
        go.gain = -loss_by(s, &go);
        s->tried++;
        if (!*any || is_better(&go, best))
            *best = go;
        *any = true;
    }
}

static bool is_over_budget(const search *s)
{
    return s->tried >= SHIFTS || s->work >= WORK;
}

/* The best of all shifts; false if there is none, or if the search is over a limit. */
static bool find_shift(search *s, shift *best)
{
    bool any = false;
    for (int64_t start = 0; start < s->n; start++) {
        int64_t at = start > REACH ? start - REACH : 0;
        int64_t end = start + REACH + 1 < s->m ? start + REACH + 1 : s->m;
        s->work += end > at ? end - at : 0;
        for (; at < end; at++)
            for (int64_t length = 1; length <= BLOCK && start + length <= s->n && at + length <= s->m &&
                                     s->h[start + length - 1] == s->r[at + length - 1];
                 length++) {
                try_block(s, start, at, length, best, &any);
                if (is_over_budget(s))
                    return false;
            }
    }
    return any;
}

static int64_t shift_and_count(search *s)
{
    int64_t shifts = 0;
    make_rows(s, 0);
    for (;;) {
        shift best;
        align(s);
        if (!find_shift(s, &best) || best.gain <= 0)
            return shifts + cell(s, s->n, s->m);
        apply_shift(s, &best);
        memcpy(s->h + best.from, s->moved, (size_t)(best.end - best.from) * sizeof *s->h);
        make_rows(s, best.from);
        shifts++;
    }
}

/* The edit distance without shifts, in two rows of memory. */
static int64_t count_only(search *s)
{
    int64_t first = 0, end = s->m + 1;
    const int32_t *above = s->first_row;
    int32_t *here = s->here, *spare = s->here + s->width;
    for (int64_t i = 1; i <= s->n; i++) {
        make_row(s, i, s->h[i - 1], above, first, end, here);
        columns(s, i, &first, &end);
        above = here;
        here = spare;
        spare = (int32_t *)above;
    }
    return above[s->m - first];
}

/* -1 if out of memory. */
static int64_t ter_edits(const int32_t *hypothesis, int64_t n, const int32_t *reference, int64_t m)
{
    if (n == 0 || m == 0)
        return n + m;
    search s = {.r = reference, .n = n, .m = m, .ratio = (double)m / (double)n, .beam = BEAM};
    if (BEAM < s.ratio / 2) /* so that the bands of neighbouring rows overlap */
        s.beam = (int64_t)ceil(s.ratio / 2 + BEAM);
    s.width = 2 * s.beam + 2 < m + 1 ? 2 * s.beam + 2 : m + 1;
    bool small = n + 1 <= LARGEST / s.width;
    s.h = malloc((size_t)n * sizeof *s.h);
    s.moved = malloc((size_t)n * sizeof *s.moved);
    s.rows = small ? malloc((size_t)(n + 1) * (size_t)s.width * sizeof *s.rows) : NULL;
    s.first_row = malloc((size_t)(m + 1) * sizeof *s.first_row);
    s.above = malloc((size_t)(s.width + 1) * sizeof *s.above);
    s.here = malloc(2 * (size_t)s.width * sizeof *s.here);
    s.aligned = malloc((size_t)m * sizeof *s.aligned);
    s.h_wrong = malloc((size_t)n);
    s.r_wrong = malloc((size_t)m);
    int64_t edits = -1;
    if (s.h && s.moved && (s.rows || !small) && s.first_row && s.above && s.here && s.aligned && s.h_wrong &&
        s.r_wrong) {
        memcpy(s.h, hypothesis, (size_t)n * sizeof *s.h);
        for (int64_t j = 0; j <= m; j++)
            s.first_row[j] = (int32_t)j;
        edits = small ? shift_and_count(&s) : count_only(&s);
    }
    free(s.h);
    free(s.moved);
    free(s.rows);
    free(s.first_row);
    free(s.above);
    free(s.here);
    free(s.aligned);
    free(s.h_wrong);
    free(s.r_wrong);
    return edits;
}

/* ---- The metric ----------------------------------------------------------------------------------------------- */

/* The fewest edits to a reference, and the mean length of the references. */
static bool collect(at_score_scratch *scratch, const at_score_line *line, double *statistics, at_error *error)
{
    at_sequences *units = &scratch->units;
    at_score_line words = *line;
    words.tokeniser = AT_TOKENISER_NONE;
    if (!at_score_words(scratch, &words))
        return at_score_no_memory(error);
    int64_t fewest = INT64_MAX, length = 0;
    for (int s = 1; s <= line->count; s++) {
        int64_t m = units->start[s + 1] - units->start[s];
        int64_t edits = ter_edits(units->id, units->start[1], units->id + units->start[s], m);
        if (edits < 0)
            return at_score_no_memory(error);
        fewest = edits < fewest ? edits : fewest;
        length += m;
    }
    statistics[0] = (double)fewest;
    statistics[1] = (double)length / line->count;
    return true;
}

static void signature(const at_score_settings *settings, char *out, size_t size)
{
    (void)settings;
    snprintf(out, size, "case:lc|tok:tercom|norm:no|punct:yes|asian:no");
}

const at_metric_record at_metric_ter = {
    .info = {.name = "ter",
             .title = "TER",
             .meaning = "edits and shifts of words / words of the references",
             .better = AT_SMALLER_IS_BETTER},
    .statistics = 2,
    .cleans = true,
    .lowers = true,
    .collect = collect,
    .score = at_percentage,
    .signature = signature,
};
