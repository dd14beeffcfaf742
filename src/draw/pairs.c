#include "draw/pairs_internal.h"

#include "draw/base64_internal.h"

#include <math.h>
#include <stdlib.h>

static double product(const float *q, const float *k, int64_t size)
{
    double sum = 0;
    for (int64_t d = 0; d < size; d++)
        sum += (double)q[d] * (double)k[d];
    return sum;
}

/* Whether w_ij = exp(s q_i k_j) / sum over the j with a weight, for every row. `score` [columns] is scratch. */
static bool explains(const at_map *map, const at_map_vectors *v, int head, double scale, double *score)
{
    const float *keys = v->keys + head * map->columns * v->size;
    for (int64_t i = 0; i < map->rows; i++) {
        const float *w = map->weights + (head * map->rows + i) * map->columns;
        double most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < map->columns; j++) {
            score[j] = scale * product(v->queries + (head * map->rows + i) * v->size, keys + j * v->size, v->size);
            most = w[j] > 0 ? fmax(most, score[j]) : most;
        }
        for (int64_t j = 0; j < map->columns; j++)
            sum += w[j] > 0 ? exp(score[j] - most) : 0;
        for (int64_t j = 0; j < map->columns; j++)
            if (w[j] > 0 && fabs(exp(score[j] - most) / sum - (double)w[j]) > 1e-4)
                return false;
    }
    return true;
}

static void add_vectors(at_buffer *text, const char *name, const float *values, int64_t count, unsigned char *bytes)
{
    float most = 0;
    for (int64_t i = 0; i < count; i++)
        most = fmaxf(most, fabsf(values[i]));
    const double unit = most > 0 ? (double)most / 32767 : 1;
    for (int64_t i = 0; i < count; i++) {
        const int step = (int)lrint((double)values[i] / unit);
        bytes[2 * i] = (unsigned char)step;
        bytes[2 * i + 1] = (unsigned char)(step >> 8);
    }
    at_buffer_print(text, ",\"%sUnit\":%.7g,\"%s\":\"", name, unit, name);
    at_base64_add(text, bytes, 2 * (size_t)count);
    at_buffer_add(text, "\"", 1);
}

/* The first key of each row that has a weight, and the one after the last: small weights are 0 in the page. */
static void add_seen(at_buffer *text, const at_map *map, int head)
{
    at_buffer_print(text, ",\"seen\":[");
    for (int64_t i = 0; i < map->rows; i++) {
        const float *w = map->weights + (head * map->rows + i) * map->columns;
        int64_t from = 0, to = map->columns;
        while (from < to && !(w[from] > 0))
            from++;
        while (to > from && !(w[to - 1] > 0))
            to--;
        at_buffer_print(text, "%s[%lld,%lld]", i ? "," : "", (long long)from, (long long)to);
    }
    at_buffer_add(text, "]", 1);
}

void at_pairs_add(at_buffer *text, const at_map *map, const at_map_vectors *v, int head)
{
    const int64_t rows = map->rows * v->size, columns = map->columns * v->size, more = rows > columns ? rows : columns;
    const double scales[] = {1 / sqrt((double)v->size), 1};
    double *score = malloc((size_t)map->columns * sizeof *score + 1);
    unsigned char *bytes = malloc(2 * (size_t)more + 1);
    int found = 2;
    if (score && bytes)
        for (found = 0; found < 2 && !explains(map, v, head, scales[found], score);)
            found++;
    else
        text->failed = true;
    if (found < 2) {
        at_buffer_print(text, ",\"size\":%lld,\"scaled\":%s", (long long)v->size, found == 0 ? "true" : "false");
        add_seen(text, map, head);
        add_vectors(text, "q", v->queries + head * rows, rows, bytes);
        add_vectors(text, "k", v->keys + head * columns, columns, bytes);
    }
    free(bytes);
    free(score);
}
