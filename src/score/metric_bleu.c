/* BLEU (Papineni et al. 2002) as sacreBLEU computes it. */
#include <math.h>
#include <stdio.h>

#include "score/metric_internal.h"

enum { ORDER = 4, HYP = 0, REF, CORRECT, TOTAL = CORRECT + ORDER, STATISTICS = TOTAL + ORDER };

/* The length of the reference closest in length to the hypothesis, the shorter of two as close. */
static int64_t nearest_length(const int64_t *start, int references)
{
    int64_t length = start[1] - start[0], nearest = start[2] - start[1];
    for (int s = 2; s <= references; s++) {
        int64_t other = start[s + 1] - start[s];
        int64_t off = other > length ? other - length : length - other;
        int64_t best = nearest > length ? nearest - length : length - nearest;
        if (off < best || (off == best && other < nearest))
            nearest = other;
    }
    return nearest;
}

/* Both lengths, and for each order how many n-grams of the hypothesis a reference has, and how many there are. */
static bool collect(at_score_scratch *scratch, const at_score_line *line, double *statistics, at_error *error)
{
    at_grams *grams = &scratch->grams;
    if (!at_score_words(scratch, line) || !at_grams_start(grams, &scratch->units))
        return at_score_no_memory(error);
    const int64_t *start = scratch->units.start;
    statistics[HYP] = (double)(start[1] - start[0]);
    statistics[REF] = (double)nearest_length(start, line->count);
    for (int n = 0; n < ORDER; n++) {
        at_grams_step(grams);
        statistics[CORRECT + n] = (double)at_grams_common(grams, 1, line->count);
        statistics[TOTAL + n] = (double)at_grams_count(grams, 0);
    }
    return true;
}

/* BLEU = BP exp(1/N sum_n log p_n),  p_n = 100 correct_n / total_n,  BP = min(1, exp(1 - ref / hyp)).
 * Smoothing: the k-th p_n that would be 0 is 100 / (2^k total_n) instead. N is 4, and a text without n-grams of some
 * order scores 0; or, if `effective`, N is the largest order that there are n-grams of. */
static double bleu(const double *sums, bool effective, double precision[ORDER], double *penalty)
{
    const double *correct = sums + CORRECT, *total = sums + TOTAL;
    double hyp = sums[HYP], ref = sums[REF], any = 0, logs = 0, halved = 1;
    int orders = 0;
    *penalty = hyp >= ref ? 1 : hyp > 0 ? exp(1 - ref / hyp) : 0;
    for (int n = 0; n < ORDER; n++) {
        precision[n] = 0;
        any += correct[n];
    }
    if (any == 0)
        return 0;
    for (; orders < ORDER && total[orders] > 0; orders++) {
        if (correct[orders] == 0)
            halved *= 2;
        precision[orders] =
            correct[orders] == 0 ? 100 / (halved * total[orders]) : 100 * correct[orders] / total[orders];
        logs += log(precision[orders]);
    }
    if (orders < ORDER && !effective)
        return 0;
    return *penalty * exp(logs / orders);
}

static double score(const double *sums, bool sentence)
{
    double precision[ORDER], penalty;
    return bleu(sums, sentence, precision, &penalty);
}

static void signature(const at_score_settings *settings, char *out, size_t size)
{
    snprintf(out, size, "case:%s|eff:%s|tok:%s|smooth:exp", at_signature_case(settings),
             settings->sentences ? "yes" : "no", settings->tokenise);
}

static void details(const double *sums, char *out, size_t size)
{
    double p[ORDER], penalty;
    bleu(sums, false, p, &penalty);
    snprintf(out, size, "%.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %.0f ref_len = %.0f)", p[0], p[1], p[2],
             p[3], penalty, sums[REF] > 0 ? sums[HYP] / sums[REF] : 0, sums[HYP], sums[REF]);
}

const at_metric_record at_metric_bleu = {
    .info = {.name = "bleu",
             .title = "BLEU",
             .meaning = "precision of n-grams of 1 to 4 words, brevity penalty",
             .better = AT_LARGER_IS_BETTER,
             .tokenises = true},
    .statistics = STATISTICS,
    .cleans = true,
    .collect = collect,
    .score = score,
    .signature = signature,
    .details = details,
};
