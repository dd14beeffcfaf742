/* chrF (Popović 2015) and chrF++ (Popović 2017) as sacreBLEU counts them: F scores of n-grams of characters, and of
 * words. */
#include <string.h>

#include "base/grow.h"
#include "score/judge.h"
#include "text/units.h"

enum { CHARACTERS = 6, WORDS = 2, BETA_SQUARED = 4 };

/* Characters are code points, white space left out. */
static bool number_characters(at_sequences *sequences, at_line line)
{
    for (size_t at = 0; at < line.size;) {
        int32_t point;
        bool broken;
        at += at_point_read(line.text + at, line.size - at, &point, &broken);
        if (!at_is_blank(point) && !at_sequences_add(sequences, point))
            return false;
    }
    return at_sequences_end(sequences);
}

static bool is_punctuation(char c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

static bool add(at_judge_scratch *scratch, const char *text, size_t size)
{
    int32_t id = at_dictionary_number(&scratch->dictionary, text, size);
    return id >= 0 && at_sequences_add(&scratch->units, id);
}

/* Words are what stands between white space, with one sign of ASCII punctuation set apart: the last, or else the first.
 */
static bool number_words(at_judge_scratch *scratch, at_line line)
{
    if (!at_tokenise(&scratch->words, AT_TOKENISER_NONE, line))
        return false;
    for (int64_t i = 0; i < scratch->words.count; i++) {
        at_line word = scratch->words.item[i];
        size_t cut = 0;
        if (word.size > 1)
            cut = is_punctuation(word.text[word.size - 1]) ? word.size - 1 : is_punctuation(word.text[0]);
        if ((cut > 0 && !add(scratch, word.text, cut)) || !add(scratch, word.text + cut, word.size - cut))
            return false;
    }
    return at_sequences_end(&scratch->units);
}

/* Averages over the orders that both sides have n-grams of:
 *   P = mean common / hyp,  R = mean common / ref,  F = (1 + beta^2) P R / (beta^2 P + R). */
static double f_score(const double *sums, int orders)
{
    double precision = 0, recall = 0;
    int counted = 0;
    for (int n = 0; n < orders; n++) {
        double hyp = sums[3 * n], ref = sums[3 * n + 1], common = sums[3 * n + 2];
        if (hyp > 0 && ref > 0) {
            precision += common / hyp;
            recall += common / ref;
            counted++;
        }
    }
    if (precision + recall == 0)
        return 0;
    precision /= counted;
    recall /= counted;
    return 100 * (1 + BETA_SQUARED) * precision * recall / (BETA_SQUARED * precision + recall);
}

/* For every reference and each order: n-grams of the hypothesis, of the reference, and common ones. What the reference
 * has no n-grams for is not held against the hypothesis. */
static bool tally(at_judge_scratch *scratch, const at_sequences *sequences, int references, int first, int orders,
                  int all)
{
    at_grams *grams = &scratch->grams;
    if (!at_grams_start(grams, sequences))
        return false;
    for (int n = first; n < first + orders; n++) {
        at_grams_step(grams);
        for (int r = 0; r < references; r++) {
            double *into = scratch->tallies + 3 * ((size_t)r * (size_t)all + (size_t)n);
            into[1] = (double)at_grams_count(grams, r + 1);
            into[0] = into[1] > 0 ? (double)at_grams_count(grams, 0) : 0;
            into[2] = (double)at_grams_common(grams, r + 1, r + 1);
        }
    }
    return true;
}

/* The statistics of the reference with the best score, the first of those. */
static bool collect_orders(at_judge_scratch *scratch, const at_judged *line, int words, double *statistics,
                           at_error *error)
{
    int orders = CHARACTERS + words;
    bool good = AT_GROW(scratch->tallies, scratch->tally_room, 3 * (size_t)orders * (size_t)line->count);
    at_sequences_clear(&scratch->characters);
    at_sequences_clear(&scratch->units);
    at_dictionary_clear(&scratch->dictionary);
    for (int s = 0; good && s <= line->count; s++) {
        at_line text = s == 0 ? *line->hypothesis : line->references[s - 1];
        good = number_characters(&scratch->characters, text) && (words == 0 || number_words(scratch, text));
    }
    good = good && tally(scratch, &scratch->characters, line->count, 0, CHARACTERS, orders) &&
           (words == 0 || tally(scratch, &scratch->units, line->count, CHARACTERS, words, orders));
    if (!good)
        return at_no_memory_to_score(error);
    double best = -1;
    for (int r = 0; r < line->count; r++) {
        const double *tallied = scratch->tallies + 3 * (size_t)r * (size_t)orders;
        double score = f_score(tallied, orders);
        if (score > best) {
            best = score;
            memcpy(statistics, tallied, 3 * (size_t)orders * sizeof *statistics);
        }
    }
    return true;
}

static bool collect(at_judge_scratch *scratch, const at_judged *line, double *statistics, at_error *error)
{
    return collect_orders(scratch, line, 0, statistics, error);
}

static bool collect_with_words(at_judge_scratch *scratch, const at_judged *line, double *statistics, at_error *error)
{
    return collect_orders(scratch, line, WORDS, statistics, error);
}

static double score(const double *sums, bool sentence)
{
    (void)sentence;
    return f_score(sums, CHARACTERS);
}

static double score_with_words(const double *sums, bool sentence)
{
    (void)sentence;
    return f_score(sums, CHARACTERS + WORDS);
}

const at_metric_kind at_metric_chrf = {.name = "chrf",
                                       .title = "chrF2",
                                       .statistics = 3 * CHARACTERS,
                                       .larger_is_better = true,
                                       .cleans = true,
                                       .collect = collect,
                                       .score = score};

const at_metric_kind at_metric_chrf_words = {.name = "chrf++",
                                             .title = "chrF2++",
                                             .statistics = 3 * (CHARACTERS + WORDS),
                                             .larger_is_better = true,
                                             .cleans = true,
                                             .collect = collect_with_words,
                                             .score = score_with_words};
