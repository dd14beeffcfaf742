/* Bootstrap resampling (Koehn 2004): the scores of texts of as many lines, sampled with replacement from the lines
 * there are. A score is computed from statistics, so no line is read twice. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/threads.h"
#include "score/metric_internal.h"

enum { DEFAULT_RESAMPLES = 1000, MOST_RESAMPLES = 10000000 };

typedef struct draws {
    const at_scores *scores[2]; /* one system, or two with the same references */
    int systems;
    double *drawn[2]; /* [resamples] */
    uint64_t seed;
} draws;

/* The n-th sample is a function of the seed and of n, whichever thread draws it: its lines are draws n * 2^32,
 * n * 2^32 + 1, ... */
static void draw_one(void *context, int64_t index, int number)
{
    const draws *d = context;
    (void)number;
    int64_t lines = d->scores[0]->count;
    int fields = d->scores[0]->metric->statistics;
    double sums[2][AT_MOST_STATISTICS] = {{0}};
    at_rng rng = {d->seed, (uint64_t)index << 32};
    for (int64_t i = 0; i < lines; i++) {
        int64_t line = at_rng_below(&rng, (uint32_t)lines);
        for (int s = 0; s < d->systems; s++) {
            const double *statistics = d->scores[s]->statistics + line * fields;
            for (int k = 0; k < fields; k++)
                sums[s][k] += statistics[k];
        }
    }
    for (int s = 0; s < d->systems; s++)
        d->drawn[s][index] = d->scores[s]->metric->score(sums[s], false);
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The mean, and the middle 95%: of n sorted values those from n / 40 to the last but n / 40. Sorts them. */
static at_spread spread_of(double *value, int64_t count)
{
    double sum = 0;
    qsort(value, (size_t)count, sizeof *value, by_value);
    for (int64_t i = 0; i < count; i++)
        sum += value[i];
    return (at_spread){.mean = sum / (double)count,
                       .low = value[count / 40],
                       .high = value[count - count / 40 - 1],
                       .resamples = count};
}

static bool draw(draws *d, int64_t *resamples, at_error *error)
{
    const at_scores *first = d->scores[0];
    if (error->code != AT_OK)
        return false;
    *resamples = first->settings.resamples > 0 ? first->settings.resamples : DEFAULT_RESAMPLES;
    if (*resamples > MOST_RESAMPLES)
        return at_fail(error, AT_USAGE, "%lld resamples are too many; %d is the maximum", (long long)*resamples,
                       MOST_RESAMPLES);
    if (first->count > UINT32_MAX)
        return at_fail(error, AT_UNSUPPORTED, "%lld lines are too many to sample from; %lld is the maximum",
                       (long long)first->count, (long long)UINT32_MAX);
    d->seed = first->settings.seed;
    for (int s = 0; s < d->systems; s++)
        if (!(d->drawn[s] = malloc((size_t)*resamples * sizeof *d->drawn[s])))
            return at_score_no_memory(error);
    at_parallel(*resamples, at_threads(), draw_one, d);
    return true;
}

bool at_scores_spread(const at_scores *scores, at_spread *spread, at_error *error)
{
    draws d = {.scores = {scores}, .systems = 1};
    int64_t resamples;
    bool good = draw(&d, &resamples, error);
    if (good)
        *spread = spread_of(d.drawn[0], resamples);
    free(d.drawn[0]);
    return good;
}

/* As in sacreBLEU: with d_n the difference in the n-th sample and D that of the whole text,
 *   p = (1 + |{n: |d_n| - mean |d| > |D|}|) / (1 + resamples). */
static double p_value(const double *difference, int64_t count, double whole)
{
    double mean = 0;
    int64_t beyond = 0;
    for (int64_t i = 0; i < count; i++)
        mean += fabs(difference[i]) / (double)count;
    for (int64_t i = 0; i < count; i++)
        beyond += fabs(difference[i]) - mean > fabs(whole);
    return (double)(beyond + 1) / (double)(count + 1);
}

bool at_scores_compare(const at_scores *scores, const at_scores *other, at_comparison *comparison, at_error *error)
{
    draws d = {.scores = {scores, other}, .systems = 2};
    int64_t resamples;
    if (error->code != AT_OK)
        return false;
    if (scores->metric != other->metric || scores->count != other->count)
        return at_fail(error, AT_USAGE, "%lld lines by %s and %lld lines by %s cannot be compared",
                       (long long)scores->count, scores->metric->info.name, (long long)other->count,
                       other->metric->info.name);
    bool good = draw(&d, &resamples, error);
    if (good) {
        for (int64_t i = 0; i < resamples; i++)
            d.drawn[1][i] = d.drawn[0][i] - d.drawn[1][i];
        comparison->difference = at_scores_total(scores) - at_scores_total(other);
        comparison->p = p_value(d.drawn[1], resamples, comparison->difference);
        comparison->spread = spread_of(d.drawn[1], resamples);
    }
    free(d.drawn[0]);
    free(d.drawn[1]);
    return good;
}
