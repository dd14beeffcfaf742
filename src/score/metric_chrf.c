/* chrF (Popović 2015) as sacreBLEU computes it. */
#include "score/metric_internal.h"

enum { WORDS = 0 };

static bool collect(at_score_scratch *scratch, const at_score_line *line, double *statistics, at_error *error)
{
    return at_chrf_collect(scratch, line, WORDS, statistics, error);
}

static double score(const double *sums, bool sentence)
{
    (void)sentence;
    return at_chrf_score(sums, WORDS);
}

static void signature(const at_score_settings *settings, char *out, size_t size)
{
    at_chrf_signature(settings, WORDS, out, size);
}

const at_metric_record at_metric_chrf = {
    .info = {.name = "chrf",
             .title = "chrF2",
             .meaning = "F2 score of n-grams of 1 to 6 characters",
             .better = AT_LARGER_IS_BETTER},
    .statistics = 3 * (AT_CHRF_CHARACTERS + WORDS),
    .cleans = true,
    .collect = collect,
    .score = score,
    .signature = signature,
};
