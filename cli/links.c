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

int64_t first_unit(const at_result *result)
{
    const int32_t *offset = result->source_offsets;
    return result->source_units > 0 && offset && offset[1] == 0;
}

/* The units of the source that are in its line: some models add one before or after them, whose span is empty. */
static int64_t units_inside(const at_result *result, int64_t first)
{
    const int64_t last = result->source_units - 1;
    const int32_t *offset = last >= 0 && result->source_offsets ? result->source_offsets + 2 * last : NULL;
    return result->source_units - first - (offset && last > 0 && offset[0] == offset[1]);
}

bool print_links(FILE *stream, const int32_t *links, int64_t target_units, int64_t first)
{
    pair *pairs = malloc((size_t)(target_units + 1) * sizeof *pairs);
    int64_t count = 0;
    if (!pairs)
        return false;
    for (int64_t t = 0; t < target_units; t++)
        if (links[t] >= 0)
            pairs[count++] = (pair){links[t] - (int32_t)first, t};
    qsort(pairs, (size_t)count, sizeof *pairs, by_source);
    for (int64_t i = 0; i < count; i++)
        fprintf(stream, "%s%d-%lld", i ? " " : "", pairs[i].source, (long long)pairs[i].target);
    free(pairs);
    return true;
}

bool links_by_unit(const at_result *result, const at_hypothesis *h, cli_links *links)
{
    const int64_t first = first_unit(result);
    *links = (cli_links){.rows = h->weights ? h->count : 0, .columns = units_inside(result, first)};
    links->weight = malloc((size_t)(links->rows * links->columns + 1) * sizeof *links->weight);
    for (int64_t t = 0; links->weight && t < links->rows; t++)
        for (int64_t s = 0; s < links->columns; s++)
            links->weight[t * links->columns + s] = (double)h->weights[t * h->source_units + first + s];
    return links->weight;
}

bool links_by_word(const at_result *result, const at_line lines[2], cli_links *links)
{
    const at_hypothesis *h = &result->best[0];
    int64_t *source = malloc((size_t)(result->source_units + 1) * sizeof *source);
    int64_t *target = malloc((size_t)(h->count + 1) * sizeof *target), units;
    bool good = source && target;
    *links = (cli_links){0};
    if (good) {
        links->columns = at_word_numbers(lines[0], result->source_offsets, result->source_units, source);
        links->rows = at_word_numbers(lines[1], result->target_offsets, h->count, target);
        links->weight = calloc((size_t)(links->rows * links->columns + 1), sizeof *links->weight);
        good = links->weight;
    }
    for (int64_t word = 0, t = 0; good && word < links->rows; word++) {
        double *row = links->weight + word * links->columns;
        for (units = 0; t < h->count && target[t] <= word; t++) {
            units += target[t] == word;
            for (int64_t s = 0; target[t] == word && s < result->source_units; s++)
                if (source[s] >= 0)
                    row[source[s]] += (double)h->weights[t * result->source_units + s];
        }
        for (int64_t s = 0; units > 1 && s < links->columns; s++)
            row[s] /= (double)units;
    }
    free(target);
    free(source);
    return good;
}

void links_free(cli_links *links)
{
    free(links->weight);
}

/* The index of the first of the largest numbers above 0, `step` apart; -1 if there is none. */
static int64_t largest(const double *numbers, int64_t count, int64_t step)
{
    int64_t index = -1;
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        if (numbers[i * step] > most) {
            most = numbers[i * step];
            index = i;
        }
    return index;
}

bool links_print(FILE *stream, const cli_links *links)
{
    int32_t *to = malloc((size_t)(links->rows + 1) * sizeof *to);
    for (int64_t t = 0; to && t < links->rows; t++)
        to[t] = (int32_t)largest(links->weight + t * links->columns, links->columns, 1);
    bool good = to && print_links(stream, to, links->rows, 0);
    free(to);
    return good;
}

int64_t links_agreed(const cli_links *links)
{
    int64_t both = 0;
    for (int64_t t = 0; t < links->rows; t++) {
        const int64_t s = largest(links->weight + t * links->columns, links->columns, 1);
        both += s >= 0 && largest(links->weight + s, links->rows, links->columns) == t;
    }
    return both;
}

/* The sum of a column over all rows. */
static double coverage_of(const cli_links *links, int64_t column)
{
    double sum = 0;
    for (int64_t t = 0; t < links->rows; t++)
        sum += links->weight[t * links->columns + column];
    return sum;
}

void links_print_coverage(FILE *stream, const cli_links *links)
{
    for (int64_t s = 0; s < links->columns; s++)
        fprintf(stream, "%.4f ", coverage_of(links, s));
    fputs("|||", stream);
    for (int64_t s = 0; s < links->columns; s++)
        if (coverage_of(links, s) < UNATTENDED)
            fprintf(stream, " %lld", (long long)s);
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
