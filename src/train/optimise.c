/* One update of all parameters: a sum of squares, then one flat loop. Both work on fixed chunks of the block, each
 * by one thread, so the bits are the same for any number of threads. */
#include "train/optimise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/dtype.h"
#include "kernels/isa.h"
#include "kernels/update.h"
#include "tape/block.h"

enum { CHUNK = 1 << 14 };

/* Numbers of the block that are updated: [from, to). */
typedef struct range {
    int64_t from, to;
} range;

struct at_optimiser {
    at_optimiser_settings settings;
    at_params *params;
    int64_t count, chunks;
    int64_t steps;                     /* updates made; skipped ones do not count */
    double rate;                       /* learning rate of the last update */
    at_real *first, *second, *average; /* [count] each; NULL: this optimiser has none */
    double *squares;                   /* [chunks] */
    range *trained;                    /* [ranges] what is not frozen, in order */
    int ranges;
    bool *finite; /* [chunks]: whether the parameters are, after an update */
    at_group *group;
    range own;     /* the chunks of this rank */
    size_t *begin; /* [size + 1] bytes of a block where the shares begin */
};

/* Whole chunks, as many for each rank as for the others. */
static range chunks_of(int64_t count, int rank, int size)
{
    const int64_t chunks = (count + CHUNK - 1) / CHUNK;
    return (range){chunks * rank / size, chunks * (rank + 1) / size};
}

at_share at_share_of(int64_t count, int rank, int size)
{
    const range chunks = chunks_of(count, rank, size);
    return (at_share){chunks.from * CHUNK < count ? chunks.from * CHUNK : count,
                      chunks.to * CHUNK < count ? chunks.to * CHUNK : count};
}

/* Every rank gets the others' part of something that has `size` bytes for a chunk, the last of which may be shorter: there
 * are `all` bytes. */
static bool gather(at_optimiser *o, void *block, size_t size, size_t all, at_error *error)
{
    const int ranks = at_group_size(o->group);
    for (int r = 0; o->group && r <= ranks; r++) {
        const size_t at = (size_t)chunks_of(o->count, r, ranks).from * size;
        o->begin[r] = r == ranks || at > all ? all : at;
    }
    return at_group_gather(o->group, block, o->begin, error);
}

static bool check(const at_optimiser_settings *s, at_error *error)
{
    if (!(s->learning_rate > 0) || !isfinite(s->learning_rate))
        return at_fail(error, AT_USAGE, "`learning-rate` must be a number above 0, not %g", s->learning_rate);
    if (!(s->beta1 >= 0 && s->beta1 < 1) || !(s->beta2 >= 0 && s->beta2 < 1))
        return at_fail(error, AT_USAGE, "the optimiser's decays must be from 0 to below 1, not %g and %g", s->beta1,
                       s->beta2);
    if (s->kind != AT_SGD && !(s->epsilon > 0))
        return at_fail(error, AT_USAGE, "the optimiser's epsilon must be above 0, not %g", s->epsilon);
    if (!(s->weight_decay >= 0) || !(s->clip_norm >= 0))
        return at_fail(error, AT_USAGE, "`weight-decay` and `clip-norm` must be 0 or more, not %g and %g",
                       s->weight_decay, s->clip_norm);
    if (!(s->ema >= 0 && s->ema < 1))
        return at_fail(error, AT_USAGE, "`ema` must be from 0 to below 1, not %g", s->ema);
    if (s->schedule == AT_COSINE && s->updates <= s->warmup)
        return at_fail(error, AT_USAGE,
                       "the schedule 'cosine' needs `updates`, which must be more than the %lld of `warmup`",
                       (long long)s->warmup);
    if (s->schedule == AT_NOAM && s->width < 1)
        return at_fail(error, AT_USAGE, "the schedule 'noam' needs the width of the model, 1 or more");
    return true;
}

/* The parameters that are not frozen; neighbours share a range. */
static bool find_trained(at_optimiser *o)
{
    o->trained = calloc((size_t)at_params_number(o->params) + 1, sizeof *o->trained);
    for (int i = 0; o->trained && i < at_params_number(o->params); i++) {
        const int64_t from = at_params_value(o->params, i) - at_params_values(o->params);
        const int64_t to = from + at_shape_count(at_params_shape(o->params, i));
        if (at_params_frozen(o->params, i))
            continue;
        if (o->ranges > 0 && o->trained[o->ranges - 1].to == from)
            o->trained[o->ranges - 1].to = to;
        else
            o->trained[o->ranges++] = (range){from, to};
    }
    return o->trained;
}

/* A block of zeros as long as the parameters, if `wanted`. */
static bool make_block(at_real **block, bool wanted, int64_t count)
{
    if (wanted)
        *block = calloc((size_t)count + 1, sizeof **block);
    return !wanted || *block;
}

at_optimiser *at_optimiser_new(const at_optimiser_settings *settings, at_params *params, at_error *error)
{
    if (error->code != AT_OK || !check(settings, error) || !at_params_fix(params, error))
        return NULL;
    at_optimiser *o = calloc(1, sizeof *o);
    bool allocated = o;
    if (allocated) {
        int64_t count = at_params_count(params), chunks = (count + CHUNK - 1) / CHUNK;
        *o = (at_optimiser){.settings = *settings, .params = params, .count = count, .chunks = chunks};
        o->own = (range){0, chunks};
        o->squares = calloc((size_t)chunks + 1, sizeof *o->squares);
        o->finite = calloc((size_t)chunks + 1, sizeof *o->finite);
        allocated = o->squares && o->finite && find_trained(o) &&
                    make_block(&o->first, settings->kind != AT_SGD, count) &&
                    make_block(&o->second, settings->kind != AT_SGD, count) &&
                    make_block(&o->average, settings->ema > 0, count);
    }
    if (!allocated) {
        at_optimiser_free(o);
        at_no_memory(error, "the optimiser's moments of %lld parameters", (long long)at_params_count(params));
        return NULL;
    }
    if (o->average)
        memcpy(o->average, at_params_values(params), (size_t)o->count * sizeof *o->average);
    return o;
}

bool at_optimiser_join(at_optimiser *optimiser, at_group *group, at_error *error)
{
    const int size = at_group_size(group);
    size_t *begin = error->code == AT_OK ? calloc((size_t)size + 1, sizeof *begin) : NULL;
    if (!begin)
        return at_no_memory(error, "the shares of %d ranks", size);
    free(optimiser->begin);
    optimiser->begin = begin;
    optimiser->group = group;
    optimiser->own = chunks_of(optimiser->count, at_group_rank(group), size);
    return true;
}

void at_optimiser_free(at_optimiser *optimiser)
{
    if (!optimiser)
        return;
    free(optimiser->first);
    free(optimiser->second);
    free(optimiser->average);
    free(optimiser->squares);
    free(optimiser->finite);
    free(optimiser->begin);
    free(optimiser->trained);
    free(optimiser);
}

/* ---- Frozen parameters ---------------------------------------------------------------------------------------- */

/* The gradients between the ranges that are trained become 0. */
static void clear_frozen(at_optimiser *o)
{
    int64_t end = 0;
    for (int i = 0; i <= o->ranges; i++) {
        const int64_t from = i < o->ranges ? o->trained[i].from : o->count;
        memset(at_params_grads(o->params) + end, 0, (size_t)(from - end) * sizeof(at_real));
        end = i < o->ranges ? o->trained[i].to : end;
    }
}

/* ---- The norm ------------------------------------------------------------------------------------------------- */

static void chunk_range(const at_optimiser *o, int64_t chunk, int64_t *from, int64_t *to)
{
    *from = chunk * CHUNK;
    *to = *from + CHUNK < o->count ? *from + CHUNK : o->count;
}

static void add_squares(void *context, int64_t first, int64_t last)
{
    at_optimiser *o = context;
    for (int64_t chunk = o->own.from + first; chunk < o->own.from + last; chunk++) {
        int64_t from, to;
        chunk_range(o, chunk, &from, &to);
        o->squares[chunk] = at_isa()->update->squares(at_params_grads(o->params) + from, to - from);
    }
}

/* The sum over chunks in their order, whichever rank they belong to. */
static double gradient_norm(at_optimiser *o, at_error *error)
{
    at_ranges(o->own.to - o->own.from, CHUNK, add_squares, o);
    double sum = 0;
    gather(o, o->squares, sizeof *o->squares, (size_t)o->chunks * sizeof *o->squares, error);
    for (int64_t i = 0; i < o->chunks; i++)
        sum += o->squares[i];
    return sqrt(sum);
}

/* ---- The update ----------------------------------------------------------------------------------------------- */

/* The constants of one update, in the type of the parameters. */
typedef struct update {
    at_optimiser *o;
    at_real scale; /* of every gradient: the caller's factor times that of clipping */
    at_real rate, rho, epsilon;
    at_real keep; /* decay of the moving average */
    adam_pass adam;
} update;

/* E[g^2] = rho E[g^2] + (1 - rho) g^2,  d = sqrt(E[d^2] + epsilon) / sqrt(E[g^2] + epsilon) g,
 * E[d^2] = rho E[d^2] + (1 - rho) d^2,  w = w - rate d */
static void adadelta(const update *u, at_real *restrict w, const at_real *restrict grad, at_real *restrict eg,
                     at_real *restrict ed, int64_t count)
{
    const at_real scale = u->scale, rho = u->rho, epsilon = u->epsilon, rate = u->rate;
    for (int64_t i = 0; i < count; i++) {
        at_real g = scale * grad[i];
        eg[i] = rho * eg[i] + (1 - rho) * (g * g);
        at_real d = AT_REAL(sqrt)(ed[i] + epsilon) / AT_REAL(sqrt)(eg[i] + epsilon) * g;
        ed[i] = rho * ed[i] + (1 - rho) * (d * d);
        w[i] -= rate * d;
    }
}

/* w = w - rate g */
static void sgd(const update *u, at_real *restrict w, const at_real *restrict grad, int64_t count)
{
    const at_real step = u->rate * u->scale;
    for (int64_t i = 0; i < count; i++)
        w[i] -= step * grad[i];
}

/* a = keep a + (1 - keep) w */
static void average(at_real keep, at_real *restrict a, const at_real *restrict w, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        a[i] = keep * a[i] + (1 - keep) * w[i];
}

static void update_chunk(const update *u, int64_t from, int64_t count)
{
    at_optimiser *o = u->o;
    at_real *w = at_params_values(o->params) + from, *g = at_params_grads(o->params) + from;
    at_real *mean = o->average ? o->average + from : NULL;
    if (o->settings.kind == AT_ADAM || o->settings.kind == AT_ADAMW) {
        at_isa()->update->adam(&u->adam, w, g, o->first + from, o->second + from, mean, count);
        return;
    }
    if (o->settings.kind == AT_SGD)
        sgd(u, w, g, count);
    else
        adadelta(u, w, g, o->first + from, o->second + from, count);
    if (mean)
        average(u->keep, mean, w, count);
    memset(g, 0, (size_t)count * sizeof *g);
}

/* The parameters are checked while they are in the cache. */
static void update_chunks(void *context, int64_t first, int64_t last)
{
    const update *u = context;
    for (int64_t chunk = u->o->own.from + first; chunk < u->o->own.from + last; chunk++) {
        int64_t from, to;
        chunk_range(u->o, chunk, &from, &to);
        for (int i = 0; i < u->o->ranges; i++) {
            const range *r = &u->o->trained[i];
            const int64_t begin = r->from > from ? r->from : from, end = r->to < to ? r->to : to;
            if (begin < end)
                update_chunk(u, begin, end - begin);
        }
        u->o->finite[chunk] = at_isa()->rows->finite(at_params_values(u->o->params) + from, 0, 1, to - from);
    }
}

bool at_optimiser_step(at_optimiser *optimiser, double scale, double *norm, bool *skipped, at_error *error)
{
    at_optimiser *o = optimiser;
    const at_optimiser_settings *s = &o->settings;
    if (error->code != AT_OK)
        return false;
    clear_frozen(o);
    *norm = fabs(scale) * gradient_norm(o, error);
    *skipped = !isfinite(*norm);
    if (error->code != AT_OK)
        return false;
    if (*skipped) {
        memset(at_params_grads(o->params), 0, (size_t)o->count * sizeof(at_real));
        return true;
    }
    /* Gradients with a larger norm are scaled down: g = g clip_norm / norm. */
    if (s->clip_norm > 0 && *norm > s->clip_norm)
        scale *= s->clip_norm / *norm;
    o->steps++;
    o->rate = at_schedule_rate(s, o->steps);
    double t = (double)o->steps;
    update u = {.o = o, .scale = (at_real)scale, .rate = (at_real)o->rate, .epsilon = (at_real)s->epsilon};
    u.rho = (at_real)s->beta1;
    /* The decay grows with t; otherwise the random initial parameters would dominate the average for long. */
    u.keep = (at_real)fmin(s->ema, (1 + t) / (10 + t));
    /* m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2,
     * w = shrink w - rate (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)
     * where shrink is 1 for Adam and 1 - rate decay for AdamW. */
    u.adam = (adam_pass){.scale = u.scale,
                         .beta1 = (at_real)s->beta1,
                         .beta2 = (at_real)s->beta2,
                         .epsilon = u.epsilon,
                         .step = (at_real)(o->rate / (1 - pow(s->beta1, t))),
                         .correct = (at_real)(1 / (1 - pow(s->beta2, t))),
                         .shrink = (at_real)(s->kind == AT_ADAMW ? 1 - o->rate * s->weight_decay : 1),
                         .keep = u.keep};
    at_ranges(o->own.to - o->own.from, CHUNK, update_chunks, &u);
    if (o->group) /* of which the update has cleared this rank's share only */
        memset(at_params_grads(o->params), 0, (size_t)o->count * sizeof(at_real));
    gather(o, o->finite, sizeof *o->finite, (size_t)o->chunks * sizeof *o->finite, error);
    gather(o, at_params_values(o->params), CHUNK * sizeof(at_real), (size_t)o->count * sizeof(at_real), error);
    at_params_changed(o->params);
    if (error->code != AT_OK)
        return false;
    for (int64_t i = 0; i < o->chunks; i++)
        if (!o->finite[i])
            return at_fail(error, AT_FAILED, "update %lld makes parameters that are not finite", (long long)o->steps);
    return true;
}

int64_t at_optimiser_steps(const at_optimiser *optimiser)
{
    return optimiser->steps;
}

double at_optimiser_rate(const at_optimiser *optimiser)
{
    return optimiser->rate;
}

at_real *at_optimiser_ema(at_optimiser *optimiser)
{
    return optimiser->average;
}

/* ---- In a training state -------------------------------------------------------------------------------------- */

/* The blocks by their names in the file. */
typedef struct named_block {
    const char *name;
    at_real *values; /* NULL: this optimiser has no such block */
} named_block;
enum { BLOCKS = 3 };

static void list_blocks(const at_optimiser *o, named_block block[BLOCKS])
{
    block[0] = (named_block){"training.first", o->first};
    block[1] = (named_block){"training.second", o->second};
    block[2] = (named_block){"training.average", o->average};
}

bool at_optimiser_collect(at_optimiser *optimiser, at_error *error)
{
    named_block block[BLOCKS];
    list_blocks(optimiser, block);
    for (int i = 0; optimiser->group && i < BLOCKS; i++)
        if (block[i].values)
            gather(optimiser, block[i].values, CHUNK * sizeof(at_real), (size_t)optimiser->count * sizeof(at_real),
                   error);
    return error->code == AT_OK;
}

bool at_optimiser_copy(at_optimiser *optimiser, at_error *error)
{
    named_block block[BLOCKS];
    list_blocks(optimiser, block);
    for (int i = 0; i < BLOCKS; i++)
        if (block[i].values)
            at_group_tell(optimiser->group, block[i].values, (size_t)optimiser->count * sizeof(at_real), error);
    at_group_tell(optimiser->group, &optimiser->steps, sizeof optimiser->steps, error);
    optimiser->rate = at_schedule_rate(&optimiser->settings, optimiser->steps);
    return error->code == AT_OK;
}

bool at_optimiser_save(const at_optimiser *optimiser, at_tensors *tensors, at_error *error)
{
    named_block block[BLOCKS];
    list_blocks(optimiser, block);
    for (int i = 0; i < BLOCKS; i++) {
        at_array array = {.dtype = AT_REAL_DTYPE, .rank = 1, .dim = {optimiser->count}, .data = block[i].values};
        if (block[i].values && !at_tensors_put(tensors, block[i].name, &array, error))
            return false;
    }
    int64_t steps = optimiser->steps;
    return at_tensors_put(tensors, "training.steps", &(at_array){.dtype = AT_I64, .data = &steps}, error);
}

int64_t at_optimiser_steps_in(const at_tensors *tensors)
{
    const at_array *steps = at_tensors_get(tensors, "training.steps");
    const bool valid = steps && steps->dtype == AT_I64 && steps->rank == 0 && *(const int64_t *)steps->data >= 0;
    return valid ? *(const int64_t *)steps->data : -1;
}

bool at_optimiser_load(at_optimiser *optimiser, const at_tensors *tensors, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    named_block block[BLOCKS];
    list_blocks(optimiser, block);
    const at_array *from[BLOCKS];
    const int64_t steps = at_optimiser_steps_in(tensors);
    if (steps < 0)
        return at_fail(error, AT_FORMAT, "the training state lacks the number of updates, 'training.steps'");
    for (int i = 0; i < BLOCKS; i++) { /* check all before copying the first */
        from[i] = at_tensors_get(tensors, block[i].name);
        if (!from[i] != !block[i].values)
            return at_fail(error, AT_FORMAT,
                           "the training state %s '%s': it was written with another `optimiser` or `ema`",
                           from[i] ? "has" : "lacks", block[i].name);
        if (from[i] && (from[i]->dtype != AT_REAL_DTYPE || from[i]->rank != 1 || from[i]->dim[0] != optimiser->count))
            return at_fail(error, AT_FORMAT, "'%s' of the training state does not hold %lld numbers, one per parameter",
                           block[i].name, (long long)optimiser->count);
    }
    for (int i = 0; i < BLOCKS; i++)
        if (from[i])
            memcpy(block[i].values, from[i]->data, (size_t)optimiser->count * sizeof(at_real));
    optimiser->steps = steps;
    optimiser->rate = at_schedule_rate(&optimiser->settings, optimiser->steps);
    return true;
}
