/* Scores of lines against references: word and character error rate, accuracy, alignment error rate. */
#include "error.h"
#include "text.h"
#include "units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool no_memory(at_error *error)
{
    return at_fail(error, AT_FAILED, "memory ran out for a score");
}

/* ---- Error rates ---------------------------------------------------------------------------------------------- */

/* What an edit puts in, leaves out or changes: a word by its bytes, with a hash so that most comparisons are short; or
 * a character by its code point, with no bytes. */
typedef struct token {
    uint64_t hash;
    const char *text;
    size_t size;
} token;

typedef struct tokens {
    token *item;
    int64_t count;
    size_t room;
} tokens;

static bool same(const token *a, const token *b)
{
    return a->hash == b->hash && a->size == b->size && (a->size == 0 || memcmp(a->text, b->text, a->size) == 0);
}

static token make_token(at_unit unit, bool words)
{
    int32_t point;
    bool broken;
    if (!words) {
        at_point_read(unit.text, unit.size, &point, &broken);
        return (token){.hash = (uint64_t)point};
    }
    token made = {.text = unit.text, .size = unit.size};
    for (size_t i = 0; i < unit.size; i++)
        made.hash = made.hash * 31 + (unsigned char)unit.text[i];
    return made;
}

static bool tokenise(const at_line *line, bool words, tokens *out)
{
    if (line->size > out->room) { /* a token takes a byte at least */
        token *item = realloc(out->item, line->size * sizeof *item);
        if (item == NULL)
            return false;
        out->item = item;
        out->room = line->size;
    }
    at_units units = {line->text, line->text + line->size, words};
    at_unit unit;
    for (out->count = 0; at_units_next(&units, &unit); out->count++)
        out->item[out->count] = make_token(unit, words);
    return true;
}

/* The fewest edits from a to b (Levenshtein), row by row:
 *   d[i][j] = min(d[i-1][j] + 1, d[i][j-1] + 1, d[i-1][j-1] + (a_i != b_j)),   d[i][0] = i,  d[0][j] = j.
 * What both begin and end with costs nothing and is left out. -1 if memory ran out. */
static int64_t edit_distance(const tokens *left, const tokens *right)
{
    const token *a = left->item, *b = right->item;
    int64_t n = left->count, m = right->count;
    while (n > 0 && m > 0 && same(&a[n - 1], &b[m - 1])) {
        n--;
        m--;
    }
    while (n > 0 && m > 0 && same(a, b)) {
        a++, b++;
        n--, m--;
    }
    int64_t *row = malloc((size_t)(m + 1) * sizeof *row);
    if (row == NULL)
        return -1;
    for (int64_t j = 0; j <= m; j++)
        row[j] = j;
    for (int64_t i = 1; i <= n; i++) {
        int64_t before = row[0]; /* d[i-1][j-1] */
        row[0] = i;
        for (int64_t j = 1; j <= m; j++) {
            int64_t least = before + !same(&a[i - 1], &b[j - 1]);
            before = row[j];
            if (row[j] + 1 < least)
                least = row[j] + 1;
            if (row[j - 1] + 1 < least)
                least = row[j - 1] + 1;
            row[j] = least;
        }
    }
    int64_t distance = row[m];
    free(row);
    return distance;
}

/* 100 * sum of the edits / sum of the references' units, over all lines. */
static bool error_rate(bool words, const at_line *hypotheses, const at_line *references, int64_t count, double *score,
                       at_error *error)
{
    tokens hypothesis = {0}, reference = {0};
    int64_t edits = 0, units = 0;
    bool good = true;
    for (int64_t i = 0; good && i < count; i++) {
        good = tokenise(&hypotheses[i], words, &hypothesis) && tokenise(&references[i], words, &reference);
        int64_t distance = good ? edit_distance(&hypothesis, &reference) : -1;
        good = distance >= 0;
        edits += distance;
        units += reference.count;
    }
    free(hypothesis.item);
    free(reference.item);
    if (!good)
        return no_memory(error);
    if (units == 0)
        return at_fail(error, AT_FAILED, "the references hold no %s, so there is no error rate",
                       words ? "word" : "character");
    *score = 100.0 * (double)edits / (double)units;
    return true;
}

static bool word_error_rate(const at_line *hypotheses, const at_line *references, int64_t count, double *score,
                            at_error *error)
{
    return error_rate(true, hypotheses, references, count, score, error);
}

static bool character_error_rate(const at_line *hypotheses, const at_line *references, int64_t count, double *score,
                                 at_error *error)
{
    return error_rate(false, hypotheses, references, count, score, error);
}

static bool accuracy(const at_line *hypotheses, const at_line *references, int64_t count, double *score,
                     at_error *error)
{
    (void)error;
    int64_t equal = 0;
    for (int64_t i = 0; i < count; i++)
        equal += hypotheses[i].size == references[i].size &&
                 (references[i].size == 0 || memcmp(hypotheses[i].text, references[i].text, references[i].size) == 0);
    *score = 100.0 * (double)equal / (double)count;
    return true;
}

/* ---- Alignments ----------------------------------------------------------------------------------------------- */

/* The links of a line as a sorted set of source << 32 | target. */
typedef struct links {
    uint64_t *item;
    int64_t count;
    size_t room;
} links;

static bool add_link(links *set, uint64_t link)
{
    if ((size_t)set->count == set->room) {
        size_t room = set->room == 0 ? 64 : set->room * 2;
        uint64_t *item = realloc(set->item, room * sizeof *item);
        if (item == NULL)
            return false;
        set->item = item;
        set->room = room;
    }
    set->item[set->count++] = link;
    return true;
}

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static void make_set(links *set)
{
    if (set->count == 0)
        return;
    int64_t kept = 1;
    qsort(set->item, (size_t)set->count, sizeof *set->item, by_value);
    for (int64_t i = 1; i < set->count; i++)
        if (set->item[i] != set->item[i - 1])
            set->item[kept++] = set->item[i];
    set->count = kept;
}

static int64_t common(const links *a, const links *b)
{
    int64_t both = 0;
    for (int64_t i = 0, j = 0; i < a->count && j < b->count;) {
        both += a->item[i] == b->item[j];
        bool next_a = a->item[i] <= b->item[j], next_b = b->item[j] <= a->item[i];
        i += next_a;
        j += next_b;
    }
    return both;
}

/* Up to nine digits, which no sentence has words enough to exceed. */
static bool read_place(const char **at, const char *end, uint64_t *place)
{
    const char *start = *at;
    for (*place = 0; *at < end && **at >= '0' && **at <= '9' && *at - start < 9; ++*at)
        *place = *place * 10 + (uint64_t)(**at - '0');
    return *at > start;
}

/* "3-4", or "3?4" */
static bool read_link(at_unit unit, uint64_t *link, bool *sure)
{
    const char *at = unit.text, *end = unit.text + unit.size;
    uint64_t source, target;
    if (!read_place(&at, end, &source) || at == end || (*at != '-' && *at != '?'))
        return false;
    *sure = *at++ == '-';
    if (!read_place(&at, end, &target) || at != end)
        return false;
    *link = source << 32 | target;
    return true;
}

/* The links of line `index`. Possible links belong to references, which have a `possible` to put them in; it gets the
 * sure ones as well. */
static bool read_links(const at_line *lines, int64_t index, links *sure, links *possible, at_error *error)
{
    at_units units = {lines[index].text, lines[index].text + lines[index].size, true};
    at_unit unit;
    sure->count = 0;
    if (possible != NULL)
        possible->count = 0;
    while (at_units_next(&units, &unit)) {
        uint64_t link;
        bool is_sure;
        if (!read_link(unit, &link, &is_sure) || (!is_sure && possible == NULL)) {
            char word[AT_SHOWN], shown[AT_SHOWN];
            snprintf(word, sizeof word, "%.*s", (int)(unit.size < sizeof word ? unit.size : sizeof word), unit.text);
            return at_fail(error, AT_FAILED, "line %lld of the %s: '%s' is no link; a link is like %s",
                           (long long)index + 1, possible == NULL ? "hypotheses" : "references",
                           at_shown(word, shown, sizeof shown),
                           possible == NULL ? "0-1" : "0-1, or 0?1 if it is only possible");
        }
        if ((is_sure && !add_link(sure, link)) || (possible != NULL && !add_link(possible, link)))
            return no_memory(error);
    }
    make_set(sure);
    if (possible != NULL)
        make_set(possible);
    return true;
}

/* Och and Ney: AER = 1 - (|A & S| + |A & P|) / (|A| + |S|), sums over all lines; S is part of P. */
static bool alignment_error_rate(const at_line *hypotheses, const at_line *references, int64_t count, double *score,
                                 at_error *error)
{
    links aligned = {0}, sure = {0}, possible = {0};
    int64_t found = 0, all = 0;
    bool good = true;
    for (int64_t i = 0; good && i < count; i++) {
        good = read_links(hypotheses, i, &aligned, NULL, error) && read_links(references, i, &sure, &possible, error);
        if (!good)
            break;
        found += common(&aligned, &sure) + common(&aligned, &possible);
        all += aligned.count + sure.count;
    }
    free(aligned.item);
    free(sure.item);
    free(possible.item);
    if (!good)
        return false;
    if (all == 0)
        return at_fail(error, AT_FAILED, "neither side holds a sure link, so there is no alignment error rate");
    *score = 100.0 * (1.0 - (double)found / (double)all);
    return true;
}

/* ---- The metrics ---------------------------------------------------------------------------------------------- */

typedef bool judge(const at_line *hypotheses, const at_line *references, int64_t count, double *score, at_error *error);

static const struct metric {
    const char *name;
    judge *judge;
} metrics[] = {
    {"wer", word_error_rate},
    {"cer", character_error_rate},
    {"accuracy", accuracy},
    {"aer", alignment_error_rate},
};
enum { METRICS = sizeof metrics / sizeof *metrics };

const char *at_metric(int index)
{
    return index >= 0 && index < METRICS ? metrics[index].name : NULL;
}

static bool no_metric(const char *name, at_error *error)
{
    const char *names[METRICS];
    char near[200], shown[AT_SHOWN];
    for (int i = 0; i < METRICS; i++)
        names[i] = metrics[i].name;
    at_nearest(name, names, METRICS, near, sizeof near);
    return at_fail(error, AT_USAGE, "no metric '%s'%s", at_shown(name, shown, sizeof shown), near);
}

bool at_score_lines(const char *metric, const at_line *hypotheses, int64_t hypothesis_count, const at_line *references,
                    int64_t reference_count, double *score, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    int found = 0;
    while (found < METRICS && strcmp(metrics[found].name, metric) != 0)
        found++;
    if (found == METRICS)
        return no_metric(metric, error);
    if (hypothesis_count != reference_count)
        return at_fail(error, AT_FAILED, "%lld line%s cannot be scored against %lld reference%s; there must be as many",
                       (long long)hypothesis_count, hypothesis_count == 1 ? "" : "s", (long long)reference_count,
                       reference_count == 1 ? "" : "s");
    if (reference_count == 0)
        return at_fail(error, AT_FAILED, "there is no line to score");
    return metrics[found].judge(hypotheses, references, reference_count, score, error);
}
