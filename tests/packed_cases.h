/* Packed rows against [B,n,width] arrays: the same numbers in either layout must have the same values and
 * gradients, and the other columns and unused rows around them, all NaN here, must not change the result. */
#ifndef PACKED_CASES_H
#define PACKED_CASES_H

#include <math.h>

#include "attention_cases.h"

enum { MOST_BATCH = 4 };

/* All results of a call, in the layout [B,n,...]; zeros beyond the counts. */
typedef struct packed_results {
    at_real *out, *dq, *dk, *dv, *dp[MOST_INPUTS], *log_prob, *weights, *entropy, *key_sums;
    int32_t *argmax;
} packed_results;

typedef struct packed_case {
    attention_case c;
    int64_t query_count[MOST_BATCH], key_count[MOST_BATCH], query_at[MOST_BATCH], key_at[MOST_BATCH];
    bool joint;  /* q, k and v are columns of one tensor */
    bool shared; /* sequence 1 uses the keys of sequence 0, which then have no gradient */
    int64_t out_width;
    at_arena *arena;
    at_real *value[MOST_INPUTS]; /* query, key, value as [B,n,width], then the parameters */
    at_real *seed, *log_seed;    /* [B,Q,out_width], [B,H,Q] */
} packed_case;

static inline at_real *random_numbers(at_arena *arena, uint64_t seed, int64_t count)
{
    at_rng rng = {.seed = seed};
    at_real *x = at_arena_take(arena, (size_t)(count + 1) * sizeof *x);
    for (int64_t i = 0; i < count; i++)
        x[i] = (at_real)(0.7 * at_rng_normal(&rng));
    return x;
}

static inline at_real *filled(at_arena *arena, int64_t count, at_real with)
{
    at_real *x = at_arena_take(arena, (size_t)(count + 1) * sizeof *x);
    for (int64_t i = 0; i < count; i++)
        x[i] = with;
    return x;
}

/* Copies [B,most,size] into rows of [rows,width] at `column`, or back. */
static inline void move_rows(const packed_case *p, const int64_t *at, const int64_t *count, int64_t most, int64_t size,
                             at_real *whole, at_real *packed, int64_t width, int64_t column, bool back)
{
    for (int64_t b = 0; b < p->c.B; b++)
        for (int64_t i = 0; i < count[b]; i++) {
            at_real *x = whole + (b * most + i) * size, *y = packed + (at[b] + i) * width + column;
            memcpy(back ? x : y, back ? y : x, (size_t)size * sizeof *x);
        }
}

/* `number` selects counts and first rows. */
static inline void packed_start(packed_case *p, int number)
{
    attention_case *c = &p->c;
    const int64_t H = c->attention.heads;
    p->arena = at_arena_new();
    p->joint = number % 5 % 2;
    p->shared = number % 8 == 3 && !p->joint;
    int64_t rows[2] = {1, 1};
    for (int64_t n = 0; n < c->B; n++) {
        int64_t b = number % 3 == 1 ? c->B - 1 - n : n;
        p->query_count[b] = b == number % c->B ? c->Q : (number / 2 + b) % (c->Q + 1);
        p->key_count[b] = b == number % c->B ? c->K : (number / 3 + 2 * b) % (c->K + 1);
    }
    if (p->shared)
        p->key_count[0] = p->key_count[1] = c->K;
    for (int64_t n = 0; n < c->B; n++) {
        int64_t b = number % 3 == 1 ? c->B - 1 - n : n;
        p->query_at[b] = rows[0], p->key_at[b] = rows[1];
        rows[0] += p->query_count[b] + number % 2;
        rows[1] += p->key_count[b] + number % 2;
    }
    if (p->shared)
        p->key_at[1] = p->key_at[0];
    for (int i = 0; i < c->inputs; i++)
        p->value[i] = random_numbers(p->arena, (uint64_t)(100 * number + i + 1), at_shape_count(c->shape[i]));
    for (int i = 1; i < 3 && p->shared; i++) {
        const int64_t each = c->K * c->shape[i].dim[2];
        memcpy(p->value[i] + each, p->value[i], (size_t)each * sizeof(at_real));
    }
    p->out_width = H * c->Dv;
    for (int i = 3; i < c->inputs; i++)
        if (strcmp(c->input_name[i], "WO") == 0)
            p->out_width = c->shape[i].dim[0];
    /* The arrays also contain queries beyond the counts; a seed of zero excludes them from every gradient. */
    p->seed = random_numbers(p->arena, 7, c->B * c->Q * p->out_width);
    p->log_seed = random_numbers(p->arena, 8, c->B * H * c->Q);
    for (int64_t b = 0; b < c->B; b++)
        for (int64_t i = p->query_count[b]; i < c->Q; i++) {
            memset(p->seed + (b * c->Q + i) * p->out_width, 0, (size_t)p->out_width * sizeof(at_real));
            for (int64_t h = 0; h < H; h++)
                p->log_seed[(b * H + h) * c->Q + i] = 0;
        }
}

static inline packed_results packed_results_new(const packed_case *p)
{
    const attention_case *c = &p->c;
    const int64_t rows = c->B * c->attention.heads * c->Q;
    packed_results r = {.out = filled(p->arena, c->B * c->Q * p->out_width, 0),
                        .dq = filled(p->arena, at_shape_count(c->shape[0]), 0),
                        .dk = filled(p->arena, at_shape_count(c->shape[1]), 0),
                        .dv = filled(p->arena, at_shape_count(c->shape[2]), 0),
                        .log_prob = filled(p->arena, rows, 0),
                        .weights = filled(p->arena, rows * c->K, NAN),
                        .entropy = filled(p->arena, rows, NAN),
                        .key_sums = filled(p->arena, c->B * c->attention.heads * c->K, NAN),
                        .argmax = at_arena_zeros(p->arena, (size_t)(rows + 1) * sizeof(int32_t))};
    for (int i = 3; i < c->inputs; i++)
        r.dp[i] = filled(p->arena, at_shape_count(c->shape[i]), 0);
    return r;
}

static inline at_asked ask(const packed_results *r)
{
    return (at_asked){.weights = r->weights, .entropy = r->entropy, .key_sums = r->key_sums, .argmax = r->argmax};
}

static inline void set_seeds(const packed_case *p, const at_attention_out *result, const at_real *log_seed)
{
    at_real *to = result->log_prob ? at_tensor_grad(result->log_prob) : NULL;
    for (int64_t i = 0; to && i < at_shape_count(result->log_prob->shape); i++)
        to[i] += log_seed[i];
    (void)p;
}

static inline packed_results run_arrays(const packed_case *p)
{
    const attention_case *c = &p->c;
    packed_results r = packed_results_new(p);
    at_tape *tape = at_tape_new(p->arena, true);
    at_real *grads[] = {r.dq, r.dk, r.dv};
    at_tensor *x[MOST_INPUTS];
    for (int i = 0; i < c->inputs; i++)
        x[i] = at_leaf(tape, c->shape[i], p->value[i], i < 3 ? grads[i] : r.dp[i], true);
    at_attention_in in = in_of(c, x);
    in.lengths = p->key_count;
    const at_asked asked = ask(&r);
    in.asked = &asked;
    at_attention_out result = at_attention_run(tape, &c->attention, &in);
    if (!result.out)
        fail_msg("%s: %s", c->name, at_tape_error(tape)->text);
    set_seeds(p, &result, p->log_seed);
    assert_true(at_backward_from(result.out, p->seed));
    for (int64_t b = 0; b < c->B; b++) {
        const size_t row = (size_t)p->out_width * sizeof(at_real);
        const int64_t at = b * c->Q * p->out_width;
        memcpy(r.out + at, result.out->value + at, (size_t)p->query_count[b] * row);
    }
    if (result.log_prob)
        memcpy(r.log_prob, result.log_prob->value, (size_t)(c->B * c->attention.heads * c->Q) * sizeof(at_real));
    return r;
}

static inline int64_t rows_needed(const int64_t *at, const int64_t *count, int64_t batch)
{
    int64_t rows = 0;
    for (int64_t b = 0; b < batch; b++)
        rows = at[b] + count[b] > rows ? at[b] + count[b] : rows;
    return rows + 1;
}

/* The same through packed rows. Unused elements are NaN, and their gradients must stay 0. */
static inline packed_results run_packed(const packed_case *p)
{
    const attention_case *c = &p->c;
    const int64_t size[] = {c->shape[0].dim[2], c->shape[1].dim[2], c->shape[2].dim[2]};
    const int64_t *at[] = {p->query_at, p->key_at, p->key_at}, *count[] = {p->query_count, p->key_count, p->key_count};
    const int64_t most[] = {c->Q, c->K, c->K};
    const int64_t column[] = {2, p->joint ? 3 + size[0] : 1, p->joint ? 4 + size[0] + size[1] : 0};
    packed_results r = packed_results_new(p);
    at_real *grads[] = {r.dq, r.dk, r.dv}, *packed[3], *dpacked[3];
    int64_t width[3], rows[3];
    at_tape *tape = at_tape_new(p->arena, true);
    at_tensor *x[MOST_INPUTS];
    for (int i = 0; i < 3; i++)
        rows[i] = rows_needed(at[i], count[i], c->B);
    for (int i = 0; i < 3; i++) {
        if (p->joint && i > 0) {
            packed[i] = packed[0], dpacked[i] = dpacked[0], width[i] = width[0], rows[i] = rows[0], x[i] = x[0];
        } else {
            rows[i] = p->joint && rows[1] > rows[0] ? rows[1] : rows[i];
            width[i] = p->joint ? size[0] + size[1] + size[2] + 5 : size[i] + column[i] + 1;
            packed[i] = filled(p->arena, rows[i] * width[i], NAN);
            dpacked[i] = filled(p->arena, rows[i] * width[i], 0);
            x[i] = at_leaf(tape, AT_SHAPE(rows[i], width[i]), packed[i], dpacked[i], i == 0 || !p->shared);
        }
        move_rows(p, at[i], count[i], most[i], size[i], p->value[i], packed[i], width[i], column[i], false);
    }
    for (int i = 3; i < c->inputs; i++)
        x[i] = at_leaf(tape, c->shape[i], p->value[i], r.dp[i], true);
    const at_packed layout = {.batch = c->B,
                              .query_at = p->query_at,
                              .query_count = p->query_count,
                              .key_at = p->key_at,
                              .key_count = p->key_count,
                              .size = c->D,
                              .value_size = c->Dv,
                              .q_column = column[0],
                              .k_column = column[1],
                              .v_column = column[2]};
    at_attention_in in = in_of(c, x);
    in.packed = &layout;
    in.lengths = NULL;
    const at_asked asked = ask(&r);
    in.asked = &asked;
    at_attention_out result = at_attention_run(tape, &c->attention, &in);
    if (!result.out)
        fail_msg("%s: %s", c->name, at_tape_error(tape)->text);
    assert_int_equal(result.out->shape.rank, 2);
    assert_int_equal(result.out->shape.dim[0], rows[0]);
    at_real *seed = filled(p->arena, rows[0] * p->out_width, NAN);
    move_rows(p, p->query_at, p->query_count, c->Q, p->out_width, p->seed, seed, p->out_width, 0, false);
    set_seeds(p, &result, p->log_seed);
    bool used_row[1000] = {false};
    assert_true(rows[0] <= 1000);
    for (int64_t b = 0; b < c->B; b++)
        for (int64_t i = 0; i < p->query_count[b]; i++)
            used_row[p->query_at[b] + i] = true;
    bool has_wo = p->out_width != c->attention.heads * c->Dv;
    for (int64_t i = 0; i < rows[0] * p->out_width; i++) {
        if (!used_row[i / p->out_width] && result.out->value[i] != 0)
            fail_msg("%s: an unused row has an output", c->name);
        if (!used_row[i / p->out_width] && has_wo)
            seed[i] = 0; /* the product with WO includes it */
    }
    assert_true(at_backward_from(result.out, seed));
    move_rows(p, p->query_at, p->query_count, c->Q, p->out_width, r.out, result.out->value, p->out_width, 0, true);
    if (result.log_prob)
        memcpy(r.log_prob, result.log_prob->value, (size_t)(c->B * c->attention.heads * c->Q) * sizeof(at_real));
    for (int i = 0; i < 3; i++)
        if (i == 0 || !p->shared)
            move_rows(p, at[i], count[i], most[i], size[i], grads[i], dpacked[i], width[i], column[i], true);
    for (int i = 0; i < 3; i++) /* what is left when the used elements are set to 0 */
        move_rows(p, at[i], count[i], most[i], size[i], filled(p->arena, c->B * most[i] * size[i], 0), dpacked[i],
                  width[i], column[i], false);
    for (int i = 0; i < 3; i++)
        for (int64_t e = 0; e < rows[i] * width[i]; e++)
            if (dpacked[i][e] != 0)
                fail_msg("%s: an unused element has a gradient", c->name);
    return r;
}

/* Equal except for the sign of zero. */
static inline void same_numbers(const packed_case *p, const char *what, const at_real *arrays, const at_real *packed,
                                int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!(arrays[i] == packed[i]))
            fail_msg("%s: %s, number %lld: arrays %.17g, packed rows %.17g", p->c.name, what, (long long)i,
                     (double)arrays[i], (double)packed[i]);
}

static inline void near_numbers(const packed_case *p, const char *what, const at_real *arrays, const at_real *packed,
                                int64_t count, double tolerance)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabs((double)arrays[i] - (double)packed[i]) <= tolerance * (1 + fabs((double)arrays[i]))))
            fail_msg("%s: %s, number %lld: arrays %.9g, packed rows %.9g", p->c.name, what, (long long)i,
                     (double)arrays[i], (double)packed[i]);
}

/* The queries beyond the counts have weights in the arrays and none in packed rows. */
static inline void same_weights(const packed_case *p, const packed_results *arrays, const packed_results *packed,
                                double tolerance)
{
    const attention_case *c = &p->c;
    const int64_t H = c->attention.heads;
    at_real *sums = filled(p->arena, c->K, 0);
    for (int64_t bh = 0; bh < c->B * H; bh++) {
        memset(sums, 0, (size_t)c->K * sizeof *sums);
        for (int64_t i = 0; i < c->Q; i++) {
            const int64_t row = bh * c->Q + i;
            const bool there = i < p->query_count[bh / H];
            for (int64_t j = 0; j < c->K; j++) {
                at_real w = there ? arrays->weights[row * c->K + j] : 0;
                sums[j] += w;
                same_numbers(p, "weights", &w, packed->weights + row * c->K + j, 1);
            }
            same_numbers(p, "entropy", there ? arrays->entropy + row : &(at_real){0}, packed->entropy + row, 1);
            assert_int_equal(there ? arrays->argmax[row] : -1, packed->argmax[row]);
            same_numbers(p, "log-probability", there ? arrays->log_prob + row : &(at_real){0}, packed->log_prob + row,
                         1);
        }
        near_numbers(p, "sums over the queries", sums, packed->key_sums + bh * c->K, c->K, tolerance);
    }
}

static inline void same_results(const packed_case *p, const packed_results *arrays, const packed_results *packed,
                                double tolerance)
{
    const attention_case *c = &p->c;
    same_numbers(p, "out", arrays->out, packed->out, c->B * c->Q * p->out_width);
    /* local-p's centres are computed from unpacked queries here, whose gradients are added in another order. */
    if (at_attention_predicts(&c->attention))
        near_numbers(p, "gradient of query", arrays->dq, packed->dq, at_shape_count(c->shape[0]), tolerance);
    else
        same_numbers(p, "gradient of query", arrays->dq, packed->dq, at_shape_count(c->shape[0]));
    if (!p->shared) {
        same_numbers(p, "gradient of key", arrays->dk, packed->dk, at_shape_count(c->shape[1]));
        same_numbers(p, "gradient of value", arrays->dv, packed->dv, at_shape_count(c->shape[2]));
    }
    for (int i = 3; i < c->inputs; i++) /* WO's sums run over the rows in their order */
        if (strcmp(c->input_name[i], "WO") == 0)
            near_numbers(p, "WO", arrays->dp[i], packed->dp[i], at_shape_count(c->shape[i]), tolerance);
        else
            same_numbers(p, c->input_name[i], arrays->dp[i], packed->dp[i], at_shape_count(c->shape[i]));
    same_weights(p, arrays, packed, tolerance);
}

/* ---- One query per sequence, keys by pointers to their rows ---- */

/* Every key's row is allocated separately, in no particular order. c->Q is 1. */
static inline void check_key_rows(packed_case *p, bool weights)
{
    const attention_case *c = &p->c;
    const int64_t D = c->shape[1].dim[2], Dv = c->shape[2].dim[2], width = D + Dv + 3, stride = c->K + 2;
    const at_real **rows = at_arena_zeros(p->arena, (size_t)(c->B * stride) * sizeof *rows);
    at_real *memory = filled(p->arena, c->B * c->K * width, NAN);
    for (int64_t b = 0; b < c->B; b++)
        for (int64_t j = 0; j < p->key_count[b]; j++) {
            at_real *row = memory + ((b * c->K + j) * 7919 % (c->B * c->K)) * width;
            memcpy(row + Dv + 2, p->value[1] + (b * c->K + j) * D, (size_t)D * sizeof *row);
            memcpy(row + 1, p->value[2] + (b * c->K + j) * Dv, (size_t)Dv * sizeof *row);
            rows[b * stride + j] = row;
        }
    packed_results arrays = packed_results_new(p), packed = packed_results_new(p);
    at_tape *tape = at_tape_new(p->arena, false);
    at_tensor *x[MOST_INPUTS];
    for (int i = 0; i < c->inputs; i++)
        x[i] = at_leaf(tape, c->shape[i], p->value[i], NULL, false);
    at_attention_in in = in_of(c, x);
    in.lengths = p->key_count;
    in.asked = &(at_asked){.weights = weights ? arrays.weights : NULL};
    const at_attention_out expected = at_attention_run(tape, &c->attention, &in);
    const int64_t q_width = c->shape[0].dim[2] + 3, q_rows = rows_needed(p->query_at, p->query_count, c->B);
    at_real *query = filled(p->arena, q_rows * q_width, NAN);
    move_rows(p, p->query_at, p->query_count, 1, c->shape[0].dim[2], p->value[0], query, q_width, 2, false);
    const at_packed layout = {.batch = c->B,
                              .query_at = p->query_at,
                              .query_count = p->query_count,
                              .key_count = p->key_count,
                              .size = c->D,
                              .value_size = c->Dv,
                              .q_column = 2,
                              .k_column = Dv + 2,
                              .v_column = 1,
                              .key_row = rows,
                              .key_row_stride = stride};
    in.packed = &layout;
    in.lengths = NULL;
    in.query = at_leaf(tape, AT_SHAPE(q_rows, q_width), query, NULL, false);
    in.key = in.value = NULL;
    in.asked = &(at_asked){.weights = weights ? packed.weights : NULL};
    const at_attention_out result = at_attention_run(tape, &c->attention, &in);
    if (!expected.out || !result.out)
        fail_msg("%s: %s", c->name, at_tape_error(tape)->text);
    for (int64_t b = 0; b < c->B; b++)
        for (int64_t i = 0; i < p->query_count[b]; i++) {
            same_numbers(p, "out by key rows", expected.out->value + b * p->out_width,
                         result.out->value + p->query_at[b] * p->out_width, p->out_width);
            if (weights)
                same_numbers(p, "weights by key rows", arrays.weights + b * c->attention.heads * c->K,
                             packed.weights + b * c->attention.heads * c->K, c->attention.heads * c->K);
        }
}

#endif
