/* Alignment error rate. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "score/links.h"
#include "score/metric_internal.h"

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
    int64_t unique = 1;
    qsort(set->item, (size_t)set->count, sizeof *set->item, by_value);
    for (int64_t i = 1; i < set->count; i++)
        if (set->item[i] != set->item[i - 1])
            set->item[unique++] = set->item[i];
    set->count = unique;
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

/* The links of a line. Only a reference may have possible links; its `possible` receives the sure links as well. */
static bool read_links(at_line line, int64_t number, links *sure, links *possible, at_error *error)
{
    at_units units = {line.text, line.text + line.size, true};
    at_unit unit;
    sure->count = 0;
    if (possible)
        possible->count = 0;
    while (at_units_next(&units, &unit)) {
        uint64_t link;
        bool is_sure;
        if (!at_link_read(unit, &link, &is_sure) || (!is_sure && !possible)) {
            char shown[AT_SHOWN];
            return at_fail(error, AT_FORMAT, "line %lld of the %s: '%s' is not a link; a link is written like %s",
                           (long long)number, !possible ? "hypotheses" : "references",
                           at_link_shown(unit, shown),
                           !possible ? "0-1" : "0-1, or 0?1 if it is only possible");
        }
        if ((is_sure && !add_link(sure, link)) || (possible && !add_link(possible, link)))
            return at_score_no_memory(error);
    }
    make_set(sure);
    if (possible)
        make_set(possible);
    return true;
}

/* |A & S| + |A & P|, and |A| + |S|; S is part of P. */
static bool collect(at_score_scratch *scratch, const at_score_line *line, double *statistics, at_error *error)
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

/* Och and Ney (2003): AER = 1 - (|A & S| + |A & P|) / (|A| + |S|); 0 if neither side has a link. */
static double score(const double *sums, bool sentence)
{
    (void)sentence;
    return sums[1] > 0 ? 100.0 * (1.0 - sums[0] / sums[1]) : 0;
}

const at_metric_record at_metric_aer = {
    .info = {.name = "aer",
             .title = "AER",
             .meaning = "1 - (|A and S| + |A and P|) / (|A| + |S|)",
             .better = AT_SMALLER_IS_BETTER,
             .alignments = true,
             .most_references = 1},
    .statistics = 2,
    .empty = "neither side has a sure link, so there is no alignment error rate",
    .collect = collect,
    .score = score,
};
