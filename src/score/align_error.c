/* Alignment error rate. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/utf8.h"
#include "score/judge.h"
#include "text/units.h"

/* The links of a line as a sorted set of source << 32 | target. */
typedef struct links {
    uint64_t *item;
    int64_t count;
    size_t room;
} links;

static bool add_link(links *set, uint64_t link)
{
    if (!AT_GROW(set->item, set->room, (size_t)set->count + 1))
        return false;
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

bool at_link_read(at_unit unit, uint64_t *link, bool *sure)
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

/* The links of a line. Possible links belong to references, which have a `possible` to put them in; it gets the sure
 * ones as well. */
static bool read_links(at_line line, int64_t number, links *sure, links *possible, at_error *error)
{
    at_units units = {line.text, line.text + line.size, true};
    at_unit unit;
    sure->count = 0;
    if (possible != NULL)
        possible->count = 0;
    while (at_units_next(&units, &unit)) {
        uint64_t link;
        bool is_sure;
        if (!at_link_read(unit, &link, &is_sure) || (!is_sure && possible == NULL)) {
            char word[AT_SHOWN], shown[AT_SHOWN];
            snprintf(word, sizeof word, "%.*s", (int)(unit.size < sizeof word ? unit.size : sizeof word), unit.text);
            return at_fail(error, AT_FAILED, "line %lld of the %s: '%s' is no link; a link is like %s",
                           (long long)number, possible == NULL ? "hypotheses" : "references",
                           at_shown(word, shown, sizeof shown),
                           possible == NULL ? "0-1" : "0-1, or 0?1 if it is only possible");
        }
        if ((is_sure && !add_link(sure, link)) || (possible != NULL && !add_link(possible, link)))
            return at_no_memory_to_score(error);
    }
    make_set(sure);
    if (possible != NULL)
        make_set(possible);
    return true;
}

/* |A & S| + |A & P|, and |A| + |S|; S is part of P. */
static bool collect(at_judge_scratch *scratch, const at_judged *line, double *statistics, at_error *error)
{
    (void)scratch;
    links aligned = {0}, sure = {0}, possible = {0};
    bool good = read_links(*line->hypothesis, line->number, &aligned, NULL, error) &&
                read_links(line->references[0], line->number, &sure, &possible, error);
    statistics[0] = good ? (double)(common(&aligned, &sure) + common(&aligned, &possible)) : 0;
    statistics[1] = (double)(aligned.count + sure.count);
    free(aligned.item);
    free(sure.item);
    free(possible.item);
    return good;
}

/* Och and Ney: AER = 1 - (|A & S| + |A & P|) / (|A| + |S|). Where nothing is linked, nothing is wrong. */
static double score(const double *sums, bool sentence)
{
    (void)sentence;
    return sums[1] > 0 ? 100.0 * (1.0 - sums[0] / sums[1]) : 0;
}

const at_metric_kind at_metric_aer = {.name = "aer",
                                      .statistics = 2,
                                      .most_references = 1,
                                      .of_links = true,
                                      .nothing = "neither side holds a sure link, so there is no alignment error rate",
                                      .collect = collect,
                                      .score = score};
