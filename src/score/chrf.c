/* chrF (Popović 2015) and chrF++ (Popović 2017) as sacreBLEU counts them: F scores of n-grams of characters, and of
 * words. */
#include <stdio.h>
#include <string.h>

#include "base/grow.h"
#include "score/metric_internal.h"
#include "text/units.h"

enum { BETA_SQUARED = 4 };

/* Characters are code points without white space. */
static bool add_characters(at_sequences *sequences, at_line line)
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

static bool add(at_score_scratch *scratch, const char *text, size_t size)
{
    int32_t id = at_dictionary_id(&scratch->dictionary, text, size);
    return id >= 0 && at_sequences_add(&scratch->units, id);
}

/* Words are separated by white space, and one ASCII punctuation mark is split off: the last one, or else the first. */
static bool add_words(at_score_scratch *scratch, at_line line)
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

/* For every reference and each order: n-grams of the hypothesis, of the reference, and common ones. Orders of which the
 * reference has no n-grams do not lower the precision. */
static bool count_orders(at_score_scratch *scratch, const at_sequences *sequences, int references, int first,
                         int orders, int all)
{
    at_grams *grams = &scratch->grams;
    if (!at_grams_start(grams, sequences))
        return false;
    for (int n = first; n < first + orders; n++) {
        at_grams_step(grams);
        for (int r = 0; r < references; r++) {
            double *into = scratch->counts + 3 * ((size_t)r * (size_t)all + (size_t)n);
            into[1] = (double)at_grams_count(grams, r + 1);
            into[0] = into[1] > 0 ? (double)at_grams_count(grams, 0) : 0;
            into[2] = (double)at_grams_common(grams, r + 1, r + 1);
        }
    }
    return true;
}

/* The statistics of the reference with the best score, the first of those. */
bool at_chrf_collect(at_score_scratch *scratch, const at_score_line *line, int words, double *statistics,
                     at_error *error)
{
    int orders = AT_CHRF_CHARACTERS + words;
    bool good = AT_GROW(scratch->counts, scratch->count_room, 3 * (size_t)orders * (size_t)line->count);
    at_sequences_clear(&scratch->characters);
    at_sequences_clear(&scratch->units);
    at_dictionary_clear(&scratch->dictionary);
    for (int s = 0; good && s <= line->count; s++) {
        at_line text = s == 0 ? *line->hypothesis : line->references[s - 1];
        good = add_characters(&scratch->characters, text) && (words == 0 || add_words(scratch, text));
    }
    good = good && count_orders(scratch, &scratch->characters, line->count, 0, AT_CHRF_CHARACTERS, orders) &&
           (words == 0 || count_orders(scratch, &scratch->units, line->count, AT_CHRF_CHARACTERS, words, orders));
    if (!good)
        return at_score_no_memory(error);
    double best = -1;
    for (int r = 0; r < line->count; r++) {
        const double *counted = scratch->counts + 3 * (size_t)r * (size_t)orders;
        double score = f_score(counted, orders);
        if (score > best) {
            best = score;
            memcpy(statistics, counted, 3 * (size_t)orders * sizeof *statistics);
        }
    }
    return true;
}

double at_chrf_score(const double *sums, int words)
{
    return f_score(sums, AT_CHRF_CHARACTERS + words);
}

void at_chrf_signature(const at_score_settings *settings, int words, char *out, size_t size)
{
    snprintf(out, size, "case:%s|eff:yes|nc:%d|nw:%d|space:no", at_signature_case(settings), AT_CHRF_CHARACTERS, words);
}
