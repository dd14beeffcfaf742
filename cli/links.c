#include "links.h"

#include <stdlib.h>

typedef struct pair {
    int32_t source;
    int64_t target;
} pair;

static int by_source(const void *left, const void *right)
{
    const pair *a = left, *b = right;
    if (a->source != b->source)
        return a->source < b->source ? -1 : 1;
    return a->target < b->target ? -1 : a->target > b->target;
}

bool print_links(FILE *stream, const int32_t *links, int64_t target_units)
{
    pair *pairs = malloc((size_t)(target_units + 1) * sizeof *pairs);
    int64_t count = 0;
    if (!pairs)
        return false;
    for (int64_t t = 0; t < target_units; t++)
        if (links[t] >= 0)
            pairs[count++] = (pair){links[t], t};
    qsort(pairs, (size_t)count, sizeof *pairs, by_source);
    for (int64_t i = 0; i < count; i++)
        fprintf(stream, "%s%d-%lld", i ? " " : "", pairs[i].source, (long long)pairs[i].target);
    free(pairs);
    return true;
}

bool print_word_links(FILE *stream, const at_found *found, const at_line lines[2])
{
    const at_hypothesis *h = &found->best[0];
    int64_t *source = malloc((size_t)(found->source_units + 1) * sizeof *source);
    int64_t *target = malloc((size_t)(h->count + 1) * sizeof *target);
    int32_t *links = malloc((size_t)(h->count + 1) * sizeof *links);
    double *sums = NULL;
    bool good = source && target && links;
    int64_t source_words =
        good ? at_word_numbers(lines[0].text, lines[0].size, found->source_places, found->source_units, source) : 0;
    int64_t target_words =
        good ? at_word_numbers(lines[1].text, lines[1].size, found->target_places, h->count, target) : 0;
    good = good && (sums = calloc((size_t)(source_words + 1), sizeof *sums));
    for (int64_t word = 0, t = 0; good && word < target_words; word++) {
        for (int64_t s = 0; s < source_words; s++)
            sums[s] = 0;
        for (; t < h->count && target[t] <= word; t++)
            for (int64_t s = 0; target[t] == word && s < found->source_units; s++)
                if (source[s] >= 0)
                    sums[source[s]] += (double)h->weights[t * found->source_units + s];
        double largest = 0;
        links[word] = -1;
        for (int64_t s = 0; s < source_words; s++)
            if (sums[s] > largest) {
                largest = sums[s];
                links[word] = (int32_t)s;
            }
    }
    good = good && print_links(stream, links, target_words);
    free(sums);
    free(links);
    free(target);
    free(source);
    return good;
}

void print_weights(FILE *stream, const at_hypothesis *hypothesis)
{
    for (int64_t t = 0; t < hypothesis->count; t++)
        for (int64_t s = 0; s < hypothesis->source_units; s++)
            fprintf(stream, "%s%.6g",
                    s   ? ","
                    : t ? " "
                        : "",
                    (double)hypothesis->weights[t * hypothesis->source_units + s]);
}
