/* Recurrent cells: gradients of a step and of whole sequences, and the fused operations against their equations. Norm
 * and feed-forward: gradients, and what they compute. */
#include "gradcheck.h"
#include "layers/layers.h"

enum { MOST_STEPS = 5 };

typedef struct setting {
    at_cell_kind kind;
    at_params *params;
    at_cell cell;
    const int64_t *lengths;
    bool backward, first; /* first: the initial state and the term added to U h' are inputs */
    int steps;
} setting;

static const char *const kind_names[AT_CELLS] = {"rnn", "gru", "lstm", "gru, reset after", "gru, reset after a bias"};

static setting make(at_cell_kind kind, int64_t in, int64_t hidden)
{
    at_error error = {0};
    setting s = {.kind = kind, .params = at_params_new()};
    s.cell = at_cell_declare(s.params, "cell", kind, in, hidden, &error);
    assert_true(at_params_fix(s.params, &error));
    for (int i = 0; i < at_params_number(s.params); i++)
        at_init_normal(s.params, i, 0.6, 11);
    return s;
}

static at_tensor *gate(at_tensor *x, int64_t hidden, int index)
{
    return at_slice(x, 1, index * hidden, (index + 1) * hidden);
}

/* The cells by their equations, operation by operation. */
static at_hidden composed_step(at_tape *tape, const setting *s, at_tensor *x, at_tensor *extra, at_hidden before)
{
    int64_t H = s->cell.hidden;
    at_tensor *u = at_linear(before.h, at_param(tape, s->params, s->cell.u), NULL, AT_ACT_NONE);
    if (s->kind == AT_CELL_GRU) {
        at_tensor *xe = extra ? at_add(x, extra) : x;
        at_tensor *r = at_sigmoid(at_add(gate(xe, H, 0), gate(u, H, 0)));
        at_tensor *z = at_sigmoid(at_add(gate(xe, H, 1), gate(u, H, 1)));
        at_tensor *v = at_param(tape, s->params, s->cell.candidate);
        at_tensor *n = at_tanh(at_add(gate(xe, H, 2), at_linear(at_mul(r, before.h), v, NULL, AT_ACT_NONE)));
        return (at_hidden){.h = at_add(n, at_mul(z, at_sub(before.h, n)))};
    }
    if (extra)
        u = at_add(u, extra);
    if (s->cell.u_bias >= 0)
        u = at_add(u, at_param(tape, s->params, s->cell.u_bias));
    if (s->kind == AT_CELL_RNN)
        return (at_hidden){.h = at_tanh(at_add(x, u))};
    if (s->kind == AT_CELL_GRU_AFTER || s->kind == AT_CELL_GRU_BIAS) {
        at_tensor *r = at_sigmoid(at_add(gate(x, H, 0), gate(u, H, 0)));
        at_tensor *z = at_sigmoid(at_add(gate(x, H, 1), gate(u, H, 1)));
        at_tensor *n = at_tanh(at_add(gate(x, H, 2), at_mul(r, gate(u, H, 2))));
        return (at_hidden){.h = at_add(n, at_mul(z, at_sub(before.h, n)))};
    }
    at_tensor *a = at_add(x, u);
    at_tensor *in = at_sigmoid(gate(a, H, 0)), *forget = at_sigmoid(gate(a, H, 1)), *out = at_sigmoid(gate(a, H, 2));
    at_tensor *c = at_add(at_mul(forget, before.c), at_mul(in, at_tanh(gate(a, H, 3))));
    return (at_hidden){.h = at_mul(out, at_tanh(c)), .c = c};
}

/* m o a + (1 - m) o b, m [B,1]: 1 where the sequence has not ended */
static at_tensor *choose(at_tensor *mask, at_tensor *a, at_tensor *b)
{
    return at_add(b, at_mul(mask, at_sub(a, b)));
}

/* All h, then the last state, in one vector. */
static at_tensor *joined(at_tensor *out, at_hidden last)
{
    at_tensor *parts[3] = {at_reshape(out, AT_SHAPE(-1)), at_reshape(last.h, AT_SHAPE(-1)),
                           at_reshape(last.c, AT_SHAPE(-1))};
    return at_concat(parts, last.c ? 3 : 2, 0);
}

static at_hidden first_state(at_tape *tape, const setting *s, at_tensor *const *x)
{
    if (!s->first)
        return at_hidden_zeros(tape, &s->cell, x[0]->shape.dim[0]);
    return (at_hidden){.h = x[1], .c = s->kind == AT_CELL_LSTM ? x[2] : NULL};
}

static at_tensor *extra_of(const setting *s, at_tensor *const *x)
{
    return s->first ? x[s->kind == AT_CELL_LSTM ? 3 : 2] : NULL;
}

static at_tensor *build_composed(at_tape *tape, at_tensor *const *x, const void *context)
{
    const setting *s = context;
    int64_t B = x[0]->shape.dim[0], n = x[0]->shape.dim[1];
    at_hidden state = first_state(tape, s, x);
    at_tensor *all[MOST_STEPS];
    for (int64_t k = 0; k < n; k++) {
        int64_t p = s->backward ? n - 1 - k : k;
        at_tensor *mask = at_tensor_make(tape, AT_SHAPE(B, 1));
        for (int64_t b = 0; b < B; b++)
            mask->value[b] = !s->lengths || p < s->lengths[b];
        at_tensor *xt = at_reshape(at_slice(x[0], 1, p, p + 1), AT_SHAPE(B, -1));
        at_hidden next = composed_step(tape, s, at_cell_input(tape, s->params, &s->cell, xt), extra_of(s, x), state);
        all[p] = at_reshape(at_mul(mask, next.h), AT_SHAPE(B, 1, -1));
        state.h = choose(mask, next.h, state.h);
        state.c = next.c ? choose(mask, next.c, state.c) : NULL;
    }
    return joined(at_concat(all, (int)n, 1), state);
}

static at_tensor *build_sequence(at_tape *tape, at_tensor *const *x, const void *context)
{
    const setting *s = context;
    at_hidden last;
    at_hidden first = s->first ? first_state(tape, s, x) : (at_hidden){0};
    if (!s->first)
        return joined(
            at_cell_sequence(tape, s->params, &s->cell,
                             &(at_sequence){.x = x[0], .lengths = s->lengths, .first = first, .backward = s->backward},
                             &last),
            last);
    at_tensor *product = at_cell_input(tape, s->params, &s->cell, x[0]);
    at_tensor *out = at_cell_run(tape, s->params, &s->cell,
                                 &(at_sequence){product, extra_of(s, x), s->lengths, first, s->backward}, &last);
    return joined(out, last);
}

static at_tensor *build_step(at_tape *tape, at_tensor *const *x, const void *context)
{
    const setting *s = context;
    at_hidden before = {.h = x[1], .c = s->kind == AT_CELL_LSTM ? x[2] : NULL};
    at_hidden after = at_cell_step(tape, s->params, &s->cell, at_cell_input(tape, s->params, &s->cell, x[0]), before);
    after = at_cell_step(tape, s->params, &s->cell, at_cell_input(tape, s->params, &s->cell, x[0]), after);
    return after.c ? at_concat((at_tensor *[]){after.h, after.c}, 2, 0) : after.h;
}

static void test_step(void **state)
{
    (void)state;
    for (int kind = 0; kind < AT_CELLS; kind++) {
        setting s = make((at_cell_kind)kind, 4, 3);
        gradcheck_case c = {.name = kind_names[kind],
                            .build = build_step,
                            .context = &s,
                            .inputs = kind == AT_CELL_LSTM ? 3 : 2,
                            .shape = {AT_SHAPE(2, 4), AT_SHAPE(2, 3), AT_SHAPE(2, 3)},
                            .params = s.params};
        gradcheck(&c);
        at_params_free(s.params);
    }
}

static const int64_t lengths_mixed[] = {5, 1, 3}, lengths_short[] = {1, 0, 2};
static const struct {
    int steps;
    const int64_t *lengths;
} shapes[] = {{1, NULL}, {5, NULL}, {5, lengths_mixed}, {2, lengths_short}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Calls `check` for every kind, direction, first state and lengths. */
static void each_sequence(void (*check)(setting *s, gradcheck_case *c))
{
    for (int i = 0; i < AT_CELLS * SHAPES * 4; i++) {
        setting s = make((at_cell_kind)(i % AT_CELLS), 2, 3);
        s.lengths = shapes[i / AT_CELLS % SHAPES].lengths;
        s.steps = shapes[i / AT_CELLS % SHAPES].steps;
        s.backward = i / AT_CELLS / SHAPES % 2;
        s.first = i / AT_CELLS / SHAPES / 2;
        const int states = s.kind == AT_CELL_LSTM ? 2 : 1;
        gradcheck_case c = {.name = "op:cell_sequence",
                            .build = build_sequence,
                            .context = &s,
                            .inputs = s.first ? states + 2 : 1,
                            .shape = {AT_SHAPE(3, s.steps, 2), AT_SHAPE(3, 3), AT_SHAPE(3, 3)},
                            .params = s.params};
        c.shape[states + 1] = AT_SHAPE(3, at_cell_width(&s.cell));
        check(&s, &c);
        at_params_free(s.params);
    }
}

static void check_gradient(setting *s, gradcheck_case *c)
{
    (void)s;
    gradcheck(c);
}

static void test_sequence_gradients(void **state)
{
    (void)state;
    each_sequence(check_gradient);
}

/* Values and gradients of the parameters, fused and composed. */
static void run(gradcheck_case *c, gradcheck_build *build, double *values, double *grads, int64_t *count)
{
    c->build = build;
    gradcheck_state g = {.c = c};
    gradcheck_start(&g);
    at_params *params = c->params;
    memset(at_params_grads(params), 0, (size_t)at_params_count(params) * sizeof(double));
    at_tape *tape = at_tape_new(g.arena, true);
    at_tensor *y = gradcheck_run(&g, tape, -1);
    *count = at_shape_count(y->shape);
    memcpy(values, y->value, (size_t)*count * sizeof(double));
    assert_true(at_backward_from(y, g.projection));
    memcpy(grads, at_params_grads(params), (size_t)at_params_count(params) * sizeof(double));
    at_arena_free(g.arena);
}

static void check_fused(setting *s, gradcheck_case *c)
{
    double value[2][200], grad[2][200];
    int64_t count[2];
    run(c, build_sequence, value[0], grad[0], &count[0]);
    run(c, build_composed, value[1], grad[1], &count[1]);
    assert_int_equal(count[0], count[1]);
    for (int64_t i = 0; i < count[0]; i++)
        if (!(fabs(value[0][i] - value[1][i]) <= 1e-13))
            fail_msg("%s: number %lld is %.17g fused and %.17g composed", kind_names[s->kind], (long long)i,
                     value[0][i], value[1][i]);
    for (int64_t i = 0; i < at_params_count(s->params); i++)
        if (!(fabs(grad[0][i] - grad[1][i]) <= 1e-12))
            fail_msg("%s: gradient %lld is %.17g fused and %.17g composed", kind_names[s->kind], (long long)i,
                     grad[0][i], grad[1][i]);
}

static void test_fused_is_composed(void **state)
{
    (void)state;
    each_sequence(check_fused);
}

/* ---- Norm and feed-forward ---- */

typedef struct sublayer {
    at_params *params;
    at_norm norm;
    at_ffn ffn;
    double keep;
} sublayer;

static sublayer make_sublayer(at_ffn_act act)
{
    at_error error = {0};
    sublayer s = {.params = at_params_new(), .keep = 1};
    s.norm = at_norm_declare(s.params, "layer.norm", 5, 1e-6, &error);
    s.ffn = at_ffn_declare(s.params, "layer.ffn", 5, 7, act, &error);
    assert_true(at_params_fix(s.params, &error));
    const char *names[] = {"layer.norm.g",      "layer.norm.b",      "layer.ffn.inner.W",
                           "layer.ffn.inner.b", "layer.ffn.outer.W", "layer.ffn.outer.b"};
    for (int i = 0; i < 6; i++)
        assert_string_equal(at_params_name(s.params, i), names[i]);
    at_init_all(s.params, 3);
    for (int i = 0; i < 5; i++)
        assert_true(at_params_value(s.params, 0)[i] == 1 && at_params_value(s.params, 1)[i] == 0);
    for (int i = 0; i < 6; i++)
        at_init_normal(s.params, i, 0.6, 11);
    return s;
}

/* LN(x + dropout(ffn(x))), then pre-norm: s + ffn(LN(s)) */
static at_tensor *build_sublayer(at_tape *tape, at_tensor *const *x, const void *context)
{
    const sublayer *s = context;
    at_rng rng = {.seed = 7};
    at_tensor *sum, *h = at_ffn_apply(tape, s->params, &s->ffn, x[0], s->keep, &rng);
    h = at_norm_residual(tape, s->params, &s->norm, x[0], h, s->keep, &rng, &sum);
    at_tensor *inner = at_norm_apply(tape, s->params, &s->norm, sum);
    return at_add(h, at_add(sum, at_ffn_apply(tape, s->params, &s->ffn, inner, 1, NULL)));
}

static at_tensor *composed_ffn(at_tape *tape, const sublayer *s, at_tensor *x, at_rng *rng)
{
    at_tensor *p[6];
    for (int i = 0; i < 6; i++)
        p[i] = at_param(tape, s->params, i);
    at_tensor *h = at_add(at_matmul(x, p[2], false, true), p[3]);
    h = s->ffn.act == AT_FFN_RELU ? at_relu(h) : s->ffn.act == AT_FFN_GELU ? at_gelu(h) : at_swish(h);
    return at_add(at_matmul(at_dropout(h, s->keep, rng), p[4], false, true), p[5]);
}

static void test_sublayers(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        sublayer s = make_sublayer((at_ffn_act)(i % 3));
        s.keep = i < 3 ? 1 : 0.75;
        gradcheck_case c = {.name = "norm and feed-forward",
                            .build = build_sublayer,
                            .context = &s,
                            .inputs = 1,
                            .shape = {AT_SHAPE(3, 5)},
                            .params = s.params};
        gradcheck(&c);
        at_arena *arena = at_arena_new();
        at_tape *tape = at_tape_new(arena, false);
        at_real numbers[15];
        at_rng rng = {.seed = 2}, one = {.seed = 7}, other = {.seed = 7};
        for (int j = 0; j < 15; j++)
            numbers[j] = at_rng_normal(&rng);
        at_tensor *x = at_leaf(tape, AT_SHAPE(3, 5), numbers, NULL, false);
        at_tensor *y = at_ffn_apply(tape, s.params, &s.ffn, x, s.keep, &one);
        at_tensor *z = composed_ffn(tape, &s, x, &other);
        for (int j = 0; j < 15; j++)
            assert_true(fabs(y->value[j] - z->value[j]) < 1e-13);
        at_arena_free(arena);
        at_params_free(s.params);
    }
}

static void test_orthogonal(void **state)
{
    (void)state;
    at_error error = {0};
    at_params *params = at_params_new();
    int u = at_params_add(params, "cell.U", AT_SHAPE(12, 4), &error);
    int b = at_params_add(params, "cell.b", AT_SHAPE(12), &error);
    int four = at_params_add(params, "lstm.U", AT_SHAPE(16, 4), &error);
    int forget = at_params_add(params, "lstm.b", AT_SHAPE(16), &error);
    assert_true(at_params_fix(params, &error));
    at_init_all(params, 3);
    const double *m = at_params_value(params, u);
    for (int block = 0; block < 3; block++)
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) {
                double dot = 0;
                for (int k = 0; k < 4; k++)
                    dot += m[(block * 4 + i) * 4 + k] * m[(block * 4 + j) * 4 + k];
                assert_true(fabs(dot - (i == j)) < 1e-14);
            }
    for (int i = 0; i < 16; i++) {
        assert_true(i >= 12 || at_params_value(params, b)[i] == 0);
        assert_true(at_params_value(params, forget)[i] == (i >= 4 && i < 8));
    }
    assert_true(memcmp(m, at_params_value(params, four), 16 * sizeof *m) != 0);
    at_params_free(params);
}

static void test_refusals(void **state)
{
    (void)state;
    setting s = make(AT_CELL_GRU, 2, 3);
    at_arena *arena = at_arena_new();
    at_hidden last;
    const double numbers[18] = {0};
    at_tape *tape = at_tape_new(arena, false);
    at_tensor *x = at_leaf(tape, AT_SHAPE(1, 2, 8), numbers, NULL, false);
    assert_null(at_cell_run(tape, s.params, &s.cell, &(at_sequence){.x = x}, &last));
    assert_string_equal(at_tape_error(tape)->text, "cell_sequence: the input products are [1,2,8] and must be [B,n,9]");
    tape = at_tape_new(arena, false);
    x = at_leaf(tape, AT_SHAPE(1, 2, 9), numbers, NULL, false);
    assert_null(at_cell_run(tape, s.params, &s.cell, &(at_sequence){.x = x, .lengths = (const int64_t[]){3}}, &last));
    assert_string_equal(at_tape_error(tape)->text,
                        "cell_sequence: length 3 of row 0 is outside 0 to 2, the number of steps");
    tape = at_tape_new(arena, false);
    x = at_leaf(tape, AT_SHAPE(2, 9), numbers, NULL, false);
    at_tensor *h = at_leaf(tape, AT_SHAPE(1, 3), numbers, NULL, false);
    assert_null(at_cell_step(tape, s.params, &s.cell, x, (at_hidden){.h = h}).h);
    assert_string_equal(at_tape_error(tape)->text, "cell_sequence: the first state is [1,3] and must be [2,3]");
    at_arena_free(arena);
    at_params_free(s.params);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_sequence_gradients),
        cmocka_unit_test(test_fused_is_composed),
        cmocka_unit_test(test_sublayers),
        cmocka_unit_test(test_orthogonal),
        cmocka_unit_test(test_refusals),
    };
    at_threads_set(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
