/* BLEU (Papineni et al. 2002) as sacreBLEU counts it. */
#include <math.h>

#include "score/judge.h"

bool at_number_words(at_judge_scratch *scratch, const at_judged *line)
{
    at_sequences_clear(&scratch->units);
    at_dictionary_clear(&scratch->dictionary);
    for (int s = 0; s <= line->count; s++) {
        if (!at_tokenise(&scratch->words, line->tokeniser, s == 0 ? *line->hypothesis : line->references[s - 1]))
            return false;
        for (int64_t i = 0; i < scratch->words.count; i++) {
            at_line word = scratch->words.item[i];
            int32_t id = at_dictionary_number(&scratch->dictionary, word.text, word.size);
            if (id < 0 || !at_sequences_add(&scratch->units, id))
                return false;
        }
        if (!at_sequences_end(&scratch->units))
            return false;
    }
    return true;
}

/* The length of the reference that is nearest to the hypothesis', the shorter of two as near. */
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

/* Both lengths, and for each order the n-grams found in a reference and the n-grams there are. */
static bool collect(at_judge_scratch *scratch, const at_judged *line, double *statistics, at_error *error)
{
    at_grams *grams = &scratch->grams;
    if (!at_number_words(scratch, line) || !at_grams_start(grams, &scratch->units))
        return at_no_memory_to_score(error);
    const int64_t *start = scratch->units.start;
    statistics[AT_BLEU_HYP] = (double)(start[1] - start[0]);
    statistics[AT_BLEU_REF] = (double)nearest_length(start, line->count);
    for (int n = 0; n < AT_BLEU_ORDER; n++) {
        at_grams_step(grams);
        statistics[AT_BLEU_CORRECT + n] = (double)at_grams_common(grams, 1, line->count);
        statistics[AT_BLEU_TOTAL + n] = (double)at_grams_count(grams, 0);
    }
    return true;
}

/* BLEU = BP exp(1/N sum_n log p_n),  p_n = 100 correct_n / total_n,  BP = min(1, exp(1 - ref / hyp)).
 * The k-th p_n that would be 0 is 100 / (2^k total_n) instead. N is 4, and without n-grams of some order the score is
 * 0; or N is the largest order that there are n-grams of, if the order is `effective`. */
double at_bleu_score(const double *sums, bool effective, double precision[AT_BLEU_ORDER], double *penalty)
{
    const double *correct = sums + AT_BLEU_CORRECT, *total = sums + AT_BLEU_TOTAL;
    double hyp = sums[AT_BLEU_HYP], ref = sums[AT_BLEU_REF], any = 0, logs = 0, halved = 1;
    int orders = 0;
    *penalty = hyp >= ref ? 1 : hyp > 0 ? exp(1 - ref / hyp) : 0;
    for (int n = 0; n < AT_BLEU_ORDER; n++) {
        precision[n] = 0;
        any += correct[n];
    }
    if (any == 0)
        return 0;
    for (; orders < AT_BLEU_ORDER && total[orders] > 0; orders++) {
        if (correct[orders] == 0)
            halved *= 2;
        precision[orders] =
            correct[orders] == 0 ? 100 / (halved * total[orders]) : 100 * correct[orders] / total[orders];
        logs += log(precision[orders]);
    }
    if (orders < AT_BLEU_ORDER && !effective)
        return 0;
    return *penalty * exp(logs / orders);
}

static double score(const double *sums, bool sentence)
{
    double precision[AT_BLEU_ORDER], penalty;
    return at_bleu_score(sums, sentence, precision, &penalty);
}

const at_metric_kind at_metric_bleu = {.name = "bleu",
                                       .title = "BLEU",
                                       .statistics = AT_BLEU_TOTAL + AT_BLEU_ORDER,
                                       .larger_is_better = true,
                                       .cleans = true,
                                       .collect = collect,
                                       .score = score};
