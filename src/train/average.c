/* Parameters of the last validations, oldest first, and their mean. Every number of the mean is one sum in that order,
 * so its bits depend neither on threads nor on where a run was stopped and resumed. */
#include "train/average_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/dtype.h"
#include "tape/block.h"

#define VALUES  "training.validated"
#define UPDATES "training.validated_at"

struct at_average {
    at_params *params;
    int64_t most, count, size; /* size: of the parameters */
    at_real **copy;            /* [count] of [most], oldest first */
    int64_t *updates;          /* [count] of [most]: the update of each copy */
    at_real *mean;
};

at_average *at_average_new(int64_t most, at_params *params, at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    at_average *a = calloc(1, sizeof *a);
    if (a) {
        *a = (at_average){.params = params, .most = most, .size = at_params_count(params)};
        a->copy = calloc((size_t)most, sizeof *a->copy);
        a->updates = calloc((size_t)most, sizeof *a->updates);
        a->mean = calloc((size_t)a->size + 1, sizeof *a->mean);
    }
    bool allocated = a && a->copy && a->updates && a->mean;
    for (int64_t i = 0; allocated && i < most; i++)
        allocated = (a->copy[i] = calloc((size_t)a->size + 1, sizeof **a->copy)) != NULL;
    if (allocated)
        return a;
    at_average_free(a);
    at_no_memory(error, "`average` %lld, which holds %lld times %lld parameters", (long long)most, (long long)most + 1,
                 (long long)at_params_count(params));
    return NULL;
}

void at_average_free(at_average *average)
{
    if (!average)
        return;
    for (int64_t i = 0; average->copy && i < average->most; i++)
        free(average->copy[i]);
    free(average->copy);
    free(average->updates);
    free(average->mean);
    free(average);
}

void at_average_add(at_average *average, int64_t now)
{
    at_average *a = average;
    if (a->count == a->most) { /* the newest overwrites the oldest */
        at_real *oldest = a->copy[0];
        a->count--;
        memmove(a->copy, a->copy + 1, (size_t)a->count * sizeof *a->copy);
        memmove(a->updates, a->updates + 1, (size_t)a->count * sizeof *a->updates);
        a->copy[a->count] = oldest;
    }
    memcpy(a->copy[a->count], at_params_values(a->params), (size_t)a->size * sizeof **a->copy);
    a->updates[a->count++] = now;
}

/* mean = (w_1 + ... + w_n) / n, summed in double */
at_real *at_average_mean(at_average *average, int64_t now)
{
    const at_average *a = average;
    const at_real *values = at_params_values(a->params);
    int64_t end = a->count; /* of the copies before `now` */
    if (end > 0 && a->updates[end - 1] == now)
        end--;
    const int64_t first = end - (a->most - 1) > 0 ? end - (a->most - 1) : 0;
    for (int64_t i = 0; i < a->size; i++) {
        double sum = 0;
        for (int64_t k = first; k < end; k++)
            sum += (double)a->copy[k][i];
        a->mean[i] = (at_real)((sum + (double)values[i]) / (double)(end - first + 1));
    }
    return a->mean;
}

/* ---- In a training state -------------------------------------------------------------------------------------- */

static void name_of(int64_t index, char name[40])
{
    snprintf(name, 40, VALUES ".%lld", (long long)index + 1);
}

bool at_average_save(const at_average *average, at_tensors *tensors, at_error *error)
{
    char name[40];
    for (int64_t i = 0; i < average->count; i++) {
        at_array array = {.dtype = AT_REAL_DTYPE, .rank = 1, .dim = {average->size}, .data = average->copy[i]};
        name_of(i, name);
        if (!at_tensors_put(tensors, name, &array, error))
            return false;
    }
    at_array updates = {.dtype = AT_I64, .rank = 1, .dim = {average->count}, .data = average->updates};
    return at_tensors_put(tensors, UPDATES, &updates, error);
}

/* The updates of the copies, one after the other, up to the last one made. */
static bool are_updates(const int64_t *updates, int64_t count, int64_t last)
{
    for (int64_t i = 0; i < count; i++)
        if (updates[i] < 0 || updates[i] > (i + 1 < count ? updates[i + 1] : last))
            return false;
    return true;
}

bool at_average_load(at_average *average, const at_tensors *tensors, int64_t now, at_error *error)
{
    at_average *a = average;
    const at_array *updates = at_tensors_get(tensors, UPDATES);
    char name[40];
    if (error->code != AT_OK)
        return false;
    if (!updates || updates->dtype != AT_I64 || updates->rank != 1 || updates->dim[0] > a->most)
        return at_fail(error, AT_FORMAT,
                       "the training state lacks '" UPDATES "', the updates of the last %lld validations",
                       (long long)a->most);
    if (!are_updates(updates->data, updates->dim[0], now))
        return at_fail(error, AT_FORMAT, "'" UPDATES "' of the training state are not updates in order, up to %lld",
                       (long long)now);
    for (int64_t i = 0; i < updates->dim[0]; i++) { /* check all before copying the first */
        name_of(i, name);
        const at_array *copy = at_tensors_get(tensors, name);
        if (!copy || copy->dtype != AT_REAL_DTYPE || copy->rank != 1 || copy->dim[0] != a->size)
            return at_fail(error, AT_FORMAT, "'%s' of the training state does not hold %lld numbers, one per parameter",
                           name, (long long)a->size);
    }
    a->count = updates->dim[0];
    memcpy(a->updates, updates->data, (size_t)a->count * sizeof *a->updates);
    for (int64_t i = 0; i < a->count; i++) {
        name_of(i, name);
        memcpy(a->copy[i], at_tensors_get(tensors, name)->data, (size_t)a->size * sizeof **a->copy);
    }
    return true;
}
