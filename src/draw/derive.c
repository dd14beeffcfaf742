#include "draw/derive_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void at_derive_mean(const at_map *const *maps, int count, float *out)
{
    const int64_t cells = maps[0]->rows * maps[0]->columns;
    for (int64_t i = 0; i < cells; i++) {
        double sum = 0;
        int heads = 0;
        for (int m = 0; m < count; heads += maps[m++]->heads)
            for (int h = 0; h < maps[m]->heads; h++)
                sum += (double)maps[m]->weights[h * cells + i];
        out[i] = (float)(sum / heads);
    }
}

bool at_derive_rollout(const at_map *const *maps, int count, float *out)
{
    const int64_t n = maps[0]->rows;
    double *so_far = calloc((size_t)(n * n) + 1, sizeof *so_far), *next = calloc((size_t)(n * n) + 1, sizeof *next);
    float *mean = calloc((size_t)(n * n) + 1, sizeof *mean);
    const bool good = so_far && next && mean;
    for (int64_t i = 0; good && i < n; i++)
        so_far[i * n + i] = 1; /* R_0 = I */
    for (int m = 0; good && m < count; m++) {
        at_derive_mean(maps + m, 1, mean);
        for (int64_t i = 0; i < n; i++) {
            double *row = next + i * n;
            for (int64_t j = 0; j < n; j++)
                row[j] = 0.5 * so_far[i * n + j];
            for (int64_t k = 0; k < n; k++) /* + 1/2 mean_h A_l R_(l-1) */
                for (int64_t j = 0; j < n; j++)
                    row[j] += 0.5 * (double)mean[i * n + k] * so_far[k * n + j];
        }
        memcpy(so_far, next, (size_t)(n * n) * sizeof *so_far);
    }
    for (int64_t i = 0; good && i < n * n; i++)
        out[i] = (float)so_far[i];
    free(mean);
    free(next);
    free(so_far);
    return good;
}

void at_derive_norms(const at_map *const *maps, const at_map_vectors *const *vectors, int count, float *out)
{
    const int64_t rows = maps[0]->rows, columns = maps[0]->columns;
    int heads = 0;
    for (int m = 0; m < count; m++)
        heads += maps[m]->heads;
    memset(out, 0, (size_t)(rows * columns) * sizeof *out);
    for (int m = 0; m < count; m++)
        for (int h = 0; h < maps[m]->heads; h++)
            for (int64_t i = 0; i < rows; i++) {
                const float *w = maps[m]->weights + (h * rows + i) * columns, *norms = vectors[m]->norms + h * columns;
                double sum = 0;
                for (int64_t j = 0; j < columns; j++)
                    sum += (double)w[j] * (double)norms[j];
                for (int64_t j = 0; j < columns && sum > 0; j++)
                    out[i * columns + j] += (float)((double)w[j] * (double)norms[j] / sum / heads);
            }
}

double at_derive_entropy(const float *weights, int64_t rows, int64_t columns)
{
    double sum = 0;
    for (int64_t i = 0; i < rows * columns; i++)
        if (weights[i] > 0)
            sum -= (double)weights[i] * log((double)weights[i]);
    return rows > 0 ? sum / (double)rows : 0;
}
