#include "links.h"

#include <stdlib.h>
#include <utf8proc.h>

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

static bool is_space(const char *text, int32_t size)
{
    utf8proc_int32_t sign;
    if (utf8proc_iterate((const utf8proc_uint8_t *)text, size, &sign) <= 0)
        return false;
    utf8proc_category_t category = utf8proc_category(sign);
    return (sign >= '\t' && sign <= '\r') || category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
           category == UTF8PROC_CATEGORY_ZP;
}

/* The number of the word that each unit is part of, -1 for white space; gives how many words there are. */
static int64_t number_words(const char *line, const int32_t *places, int64_t units, int64_t *word)
{
    int64_t count = 0;
    int32_t end = -1; /* of the unit before, if it was part of a word */
    for (int64_t u = 0; u < units; u++) {
        int32_t from = places[2 * u], to = places[2 * u + 1];
        word[u] = -1;
        if (is_space(line + from, to - from)) {
            end = -1;
            continue;
        }
        count += from != end;
        word[u] = count - 1;
        end = to;
    }
    return count;
}

bool print_word_links(FILE *stream, const at_found *found, const char *const lines[2])
{
    const at_hypothesis *h = &found->best[0];
    int64_t *source = malloc((size_t)(found->source_units + 1) * sizeof *source);
    int64_t *target = malloc((size_t)(h->count + 1) * sizeof *target);
    int32_t *links = malloc((size_t)(h->count + 1) * sizeof *links);
    double *sums = NULL;
    bool good = source && target && links;
    int64_t source_words = good ? number_words(lines[0], found->source_places, found->source_units, source) : 0;
    int64_t target_words = good ? number_words(lines[1], found->target_places, h->count, target) : 0;
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
