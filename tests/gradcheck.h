/* Gradients against central differences, in double.
 *
 *     static at_tensor *build(at_tape *tape, at_tensor *const *x, const void *context)
 *     {
 *         return at_mul(x[0], x[1]);
 *     }
 *     gradcheck(&(gradcheck_case){.name = "op:mul", .build = build, .inputs = 2, .shape = {AT_SHAPE(7, 9),
 * AT_SHAPE(9)}});
 *
 * The loss is a random projection of what `build` returns, L = sum_i r_i y_i, so every output has a weight of its
 * own. dL/dx is compared, including the sign, for every number of every input and, if `params` is given, of every
 * parameter. An operation with several outputs joins them with at_concat of at_reshape(..., {-1}).
 *
 * The convention: a case that checks an operation contains the string literal "op:NAME", NAME being the name in its
 * `static const at_op`. tests/command/ops_checked.sh fails if an operation has no such literal in tests/double, and
 * the check fails if no operation of that name was recorded. */
#ifndef GRADCHECK_H
#define GRADCHECK_H

/* cmocka.h needs these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tape/ops.h"
#include "tape/params.h"

#ifndef AT_DOUBLE
#error "Gradients are checked in double: this test belongs in tests/double."
#endif

enum { GRADCHECK_INPUTS = 20 };

typedef at_tensor *gradcheck_build(at_tape *tape, at_tensor *const *inputs, const void *context);

typedef struct gradcheck_case {
    const char *name; /* "op:NAME", or what else is checked */
    gradcheck_build *build;
    const void *context;
    int inputs;
    at_shape shape[GRADCHECK_INPUTS];
    const double *value[GRADCHECK_INPUTS]; /* NULL: drawn from a normal distribution with these two */
    double centre, spread;                 /* spread 0: 1 */
    at_params *params;                     /* NULL, or parameters the build uses: checked too */
    uint64_t seed;
    double tolerance; /* 0: 1e-7; relative to the gradient, or to a hundredth of the input's largest one */
} gradcheck_case;

typedef struct gradcheck_state {
    const gradcheck_case *c;
    at_arena *arena;
    int64_t count[GRADCHECK_INPUTS];
    double *value[GRADCHECK_INPUTS], *grad[GRADCHECK_INPUTS];
    double *projection; /* r, sampled once the size of the result is known */
    int64_t outputs;
    int checked; /* numbers compared */
} gradcheck_state;

static inline at_tensor *gradcheck_run(gradcheck_state *s, at_tape *tape, int wanted)
{
    at_tensor *leaf[GRADCHECK_INPUTS];
    for (int i = 0; i < s->c->inputs; i++)
        leaf[i] = at_leaf(tape, s->c->shape[i], s->value[i], s->grad[i], wanted < 0 || wanted == i);
    at_tensor *y = s->c->build(tape, leaf, s->c->context);
    if (!y || !at_tape_ok(tape))
        fail_msg("%s: the forward pass failed: %s", s->c->name, at_tape_error(tape)->text);
    return y;
}

static inline double gradcheck_project(const gradcheck_state *s, const at_tensor *y)
{
    double loss = 0;
    for (int64_t i = 0; i < s->outputs; i++)
        loss += s->projection[i] * y->value[i];
    return loss;
}

/* L of the current inputs, on a tape that does not record. */
static inline double gradcheck_loss(gradcheck_state *s)
{
    if (s->c->params)
        at_params_changed(s->c->params);
    at_mark mark = at_arena_mark(s->arena);
    at_tensor *y = gradcheck_run(s, at_tape_new(s->arena, false), -1);
    double loss = gradcheck_project(s, y);
    at_arena_release(s->arena, mark);
    return loss;
}

/* A case "op:NAME ..." must have recorded the operation NAME. */
static inline void gradcheck_recorded(const gradcheck_state *s, const at_tape *tape)
{
    const char *name = s->c->name;
    if (strncmp(name, "op:", 3) != 0)
        return;
    const size_t length = strspn(name + 3, "abcdefghijklmnopqrstuvwxyz0123456789_");
    for (const at_node *node = at_tape_last(tape); node; node = node->previous)
        if (strlen(node->op->name) == length && strncmp(node->op->name, name + 3, length) == 0)
            return;
    fail_msg("%s: no operation '%.*s' was recorded", name, (int)length, name + 3);
}

/* Adds dL/dx to the gradients of one input, or of all for -1. */
static inline void gradcheck_back(gradcheck_state *s, int wanted)
{
    if (s->c->params)
        at_params_changed(s->c->params);
    at_mark mark = at_arena_mark(s->arena);
    at_tape *tape = at_tape_new(s->arena, true);
    at_tensor *y = gradcheck_run(s, tape, wanted);
    double recorded = gradcheck_project(s, y);
    if (recorded != gradcheck_loss(s))
        fail_msg("%s: a tape that records has other values than one that does not", s->c->name);
    if (wanted < 0)
        gradcheck_recorded(s, tape);
    if (!at_backward_from(y, s->projection))
        fail_msg("%s: the backward pass failed: %s", s->c->name, at_tape_error(tape)->text);
    at_arena_release(s->arena, mark);
}

/* Five points: dL/dx = (L(x-2h) - 8 L(x-h) + 8 L(x+h) - L(x+2h)) / 12h, with an error of O(h^4). */
static inline double gradcheck_difference(gradcheck_state *s, double *x)
{
    const double h = 2e-4, at = *x;
    double point[4];
    for (int i = 0; i < 4; i++) {
        *x = at + h * (i < 2 ? i - 2 : i - 1);
        point[i] = gradcheck_loss(s);
    }
    *x = at;
    return (point[0] - 8 * point[1] + 8 * point[2] - point[3]) / (12 * h);
}

static inline void gradcheck_compare(gradcheck_state *s, const char *what, double *x, const double *grad, int64_t count)
{
    double largest = 0, tolerance = s->c->tolerance > 0 ? s->c->tolerance : 1e-7;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(grad[i]));
    for (int64_t i = 0; i < count; i++) {
        double measured = gradcheck_difference(s, x + i);
        double scale = fmax(fmax(fabs(grad[i]), fabs(measured)), fmax(largest / 100, 1e-4));
        if (!(fabs(grad[i] - measured) <= tolerance * scale))
            fail_msg("%s: gradient of %s, number %lld: the backward pass computes %.12g, differences are %.12g",
                     s->c->name, what, (long long)i, grad[i], measured);
        s->checked++;
    }
}

static inline void gradcheck_start(gradcheck_state *s)
{
    const gradcheck_case *c = s->c;
    s->arena = at_arena_new();
    at_rng rng = {.seed = 20 + c->seed};
    for (int i = 0; i < c->inputs; i++) {
        s->count[i] = at_shape_count(c->shape[i]);
        size_t bytes = (size_t)s->count[i] * sizeof(double);
        s->value[i] = at_arena_zeros(s->arena, bytes);
        s->grad[i] = at_arena_zeros(s->arena, bytes);
        for (int64_t j = 0; j < s->count[i]; j++)
            s->value[i][j] =
                c->value[i] ? c->value[i][j] : c->centre + (c->spread > 0 ? c->spread : 1) * at_rng_normal(&rng);
    }
    at_mark mark = at_arena_mark(s->arena);
    s->outputs = at_shape_count(gradcheck_run(s, at_tape_new(s->arena, false), -1)->shape);
    at_arena_release(s->arena, mark);
    s->projection = at_arena_take(s->arena, (size_t)s->outputs * sizeof(double));
    for (int64_t i = 0; i < s->outputs; i++)
        s->projection[i] = at_rng_normal(&rng);
}

/* Fails the test if a gradient is wrong; returns how many numbers were compared. */
static inline int gradcheck(const gradcheck_case *c)
{
    gradcheck_state s = {.c = c};
    gradcheck_start(&s);
    at_params *params = c->params;
    if (params)
        memset(at_params_grads(params), 0, (size_t)at_params_count(params) * sizeof(double));
    gradcheck_back(&s, -1);
    for (int i = 0; i < c->inputs; i++) {
        char what[40];
        snprintf(what, sizeof what, "input %d", i);
        gradcheck_compare(&s, what, s.value[i], s.grad[i], s.count[i]);
    }
    int64_t offset = 0;
    for (int p = 0; params && p < at_params_number(params); p++) {
        gradcheck_compare(&s, at_params_name(params, p), at_params_value(params, p), at_params_grads(params) + offset,
                          at_shape_count(at_params_shape(params, p)));
        offset += at_shape_count(at_params_shape(params, p));
    }
    /* If only one input requires a gradient, it is the same one, added to the existing values. */
    for (int i = 0; i < c->inputs; i++) {
        double *once = at_arena_take(s.arena, (size_t)s.count[i] * sizeof(double));
        memcpy(once, s.grad[i], (size_t)s.count[i] * sizeof(double));
        gradcheck_back(&s, i);
        for (int64_t j = 0; j < s.count[i]; j++) {
            if (!(fabs(s.grad[i][j] - 2 * once[j]) <= 1e-12 * (1 + fabs(once[j]))))
                fail_msg("%s: gradient of input %d, number %lld: %.12g alone, %.12g among others", c->name, i,
                         (long long)j, s.grad[i][j] - once[j], once[j]);
        }
    }
    at_arena_free(s.arena);
    return s.checked;
}

#endif
