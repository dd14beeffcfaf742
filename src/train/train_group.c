/* A run of several processes (doc/cluster.md). Every rank has the data, the model and its share of the moments, and computes its
 * slices of each update. Rank 0 decides, validates, and writes all files; the others do what it orders. */
#include <stdlib.h>
#include <string.h>

#include "kernels/rows.h"
#include "train/train_internal.h"

typedef struct order {
    at_order what;
    int64_t epoch, batch; /* of the next update */
    at_error error;       /* why the run ends; AT_OK: it is done */
} order;

/* ---- The start --------------------------------------------------------------------------------------------------- */

/* Whether this rank trains what rank 0 trains. */
static bool compare(at_trainer *trainer, at_error *error)
{
    const char *own = at_identity_text(trainer->identity);
    int64_t size = (int64_t)strlen(own) + 1;
    at_group_tell(trainer->group, &size, sizeof size, error);
    char *first = error->code == AT_OK ? malloc((size_t)size) : NULL;
    if (!first)
        return at_no_memory(error, "the settings of rank 0");
    if (at_group_rank(trainer->group) == 0)
        memcpy(first, own, (size_t)size);
    at_group_tell(trainer->group, first, (size_t)size, error);
    if (error->code == AT_OK)
        at_trainer_same_as(trainer, first, error);
    free(first);
    return error->code == AT_OK;
}

/* All ranks continue from the parameters and the progress of rank 0. */
static bool copy_start(at_trainer *trainer, at_error *error)
{
    at_params *params = trainer->translator.model->params;
    at_group_tell(trainer->group, at_params_values(params), (size_t)at_params_count(params) * sizeof(at_real), error);
    at_params_changed(params);
    at_group_tell(trainer->group, &trainer->progress, sizeof trainer->progress, error);
    at_group_tell(trainer->group, &trainer->loss.rng, sizeof trainer->loss.rng, error);
    at_group_tell(trainer->group, &trainer->loss.baseline, sizeof trainer->loss.baseline, error);
    return error->code == AT_OK && at_optimiser_copy(trainer->optimiser, error);
}

bool at_trainer_join(at_trainer *trainer, at_error *error)
{
    const int size = at_group_size(trainer->group);
    const int64_t slices = trainer->settings->accumulate;
    if (!trainer->group)
        return error->code == AT_OK;
    if (error->code == AT_OK && (size > slices || size > AT_MOST_BRANCHES))
        at_fail(error, AT_USAGE,
                "there are %d ranks and %lld slices of an update (`accumulate`): every rank needs a slice, so start at "
                "most %lld ranks or set `accumulate` to %d or more",
                size, (long long)slices, (long long)(slices < AT_MOST_BRANCHES ? slices : AT_MOST_BRANCHES), size);
    if (!at_group_agree(trainer->group, error))
        return false;
    at_group_same_build(trainer->group, at_kernels_numbers(), error);
    if (!at_group_agree(trainer->group, error))
        return false;
    compare(trainer, error);
    if (error->code == AT_OK)
        at_optimiser_join(trainer->optimiser, trainer->group, error);
    return at_group_agree(trainer->group, error) && copy_start(trainer, error);
}

/* ---- While it trains --------------------------------------------------------------------------------------------- */

bool at_trainer_gather_slices(at_trainer *trainer, int64_t slices, at_error *error)
{
    const int size = at_group_size(trainer->group);
    if (!trainer->group)
        return error->code == AT_OK;
    size_t begin[AT_MOST_BRANCHES + 1];
    for (int r = 0; r <= size; r++)
        begin[r] = (size_t)(r < size ? at_slices_of(slices, r, size).from : slices) * sizeof *trainer->slice;
    return at_group_gather(trainer->group, trainer->slice, begin, error);
}

bool at_run_order(at_run *run, at_order what, at_error *error)
{
    at_trainer *t = run->trainer;
    at_error lost = {0};
    order o = {.what = what, .epoch = t->progress.epoch, .batch = t->progress.batch, .error = *error};
    if (!t->group)
        return error->code == AT_OK;
    if (!at_group_tell(t->group, &o, sizeof o, &lost) && error->code == AT_OK)
        *error = lost;
    return error->code == AT_OK;
}

bool at_run_collect(at_run *run, at_error *error)
{
    at_trainer *t = run->trainer;
    const int64_t now = at_optimiser_steps(t->optimiser);
    if (!t->group || t->collected == now)
        return error->code == AT_OK;
    t->collected = now;
    return at_run_order(run, AT_ORDER_COLLECT, error) && at_optimiser_collect(t->optimiser, error);
}

bool at_run_follow(at_run *run, at_update *update, at_error *error)
{
    at_trainer *t = run->trainer;
    order o = {0};
    int64_t epoch = -1;
    while (at_group_tell(t->group, &o, sizeof o, error) && o.what != AT_ORDER_END) {
        if (o.what == AT_ORDER_COLLECT) {
            at_optimiser_collect(t->optimiser, error);
            continue;
        }
        if (o.epoch != epoch || o.batch != t->progress.batch)
            at_trainer_seek(t, o.epoch, o.batch, error);
        epoch = t->progress.epoch = o.epoch;
        t->progress.batch = o.batch;
        if (error->code != AT_OK || !update(run, error))
            return false;
    }
    if (error->code == AT_OK && o.error.code != AT_OK)
        *error = o.error;
    return error->code == AT_OK;
}
