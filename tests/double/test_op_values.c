/* What the operations compute, against loops written straight from their formulas. A gradient check cannot see a wrong
 * formula whose backward pass matches it. */
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

static at_arena *arena;
static at_tape *tape;

static int start(void **state)
{
    (void)state;
    arena = at_arena_new();
    tape = at_tape_new(arena, true);
    return 0;
}

static int end(void **state)
{
    (void)state;
    at_arena_free(arena);
    return 0;
}

static at_tensor *random_leaf(at_shape shape, uint64_t seed)
{
    int64_t count = at_shape_count(shape);
    double *x = at_arena_take(arena, (size_t)count * sizeof *x);
    at_rng rng = {.seed = seed};
    for (int64_t i = 0; i < count; i++)
        x[i] = at_rng_normal(&rng);
    return at_leaf(tape, shape, x, NULL, true);
}

static void near(double is, double should_be)
{
    if (!(fabs(is - should_be) <= 1e-12 * (1 + fabs(should_be))))
        fail_msg("%.17g where %.17g should be", is, should_be);
}

static void shape_is(const at_tensor *x, at_shape shape)
{
    assert_non_null(x);
    assert_true(at_shape_same(x->shape, shape));
}

static void numbers_one_by_one(void **state)
{
    (void)state;
    at_tensor *x = random_leaf(AT_SHAPE(5, 7), 1), *positive = at_exp(x);
    at_tensor *y[] = {at_scale(x, 3), at_tanh(x), at_sigmoid(x),    at_relu(x),
                      positive,       at_gelu(x), at_log(positive), at_swish(x)};
    for (int i = 0; i < 35; i++) {
        double v = x->value[i];
        near(y[0]->value[i], 3 * v);
        near(y[1]->value[i], tanh(v));
        near(y[2]->value[i], 1 / (1 + exp(-v)));
        near(y[3]->value[i], v > 0 ? v : 0);
        near(y[4]->value[i], exp(v));
        near(y[5]->value[i], v * (1 + erf(v / sqrt(2))) / 2);
        near(y[6]->value[i], v);
        near(y[7]->value[i], v / (1 + exp(-v)));
    }
    double nan_value = NAN;
    assert_true(isnan(*at_relu(at_leaf(tape, AT_SHAPE(1), &nan_value, NULL, false))->value));
}

static void broadcasts(void **state)
{
    (void)state;
    at_tensor *a = random_leaf(AT_SHAPE(2, 1, 3, 4), 1), *b = random_leaf(AT_SHAPE(5, 1, 4), 2);
    at_tensor *y[] = {at_add(a, b), at_sub(a, b), at_mul(b, a)};
    shape_is(y[0], AT_SHAPE(2, 5, 3, 4));
    for (int i = 0; i < 2 * 5 * 3 * 4; i++) {
        double p = a->value[i / 60 * 12 + i / 4 % 3 * 4 + i % 4], q = b->value[i / 12 % 5 * 4 + i % 4];
        near(y[0]->value[i], p + q);
        near(y[1]->value[i], p - q);
        near(y[2]->value[i], p * q);
    }
}

static void products(void **state)
{
    (void)state;
    for (int flags = 0; flags < 4; flags++) {
        bool ta = flags & 1, tb = flags & 2;
        at_tensor *a = random_leaf(ta ? AT_SHAPE(2, 3, 5, 4) : AT_SHAPE(2, 3, 4, 5), 1);
        at_tensor *b = random_leaf(tb ? AT_SHAPE(2, 1, 6, 5) : AT_SHAPE(2, 1, 5, 6), 2);
        at_tensor *c = at_matmul(a, b, ta, tb);
        shape_is(c, AT_SHAPE(2, 3, 4, 6));
        for (int n = 0; n < 6; n++) {
            const double *p = a->value + n * 20, *q = b->value + n / 3 * 30;
            for (int i = 0; i < 4; i++) {
                for (int j = 0; j < 6; j++) {
                    double sum = 0;
                    for (int k = 0; k < 5; k++)
                        sum += (ta ? p[k * 4 + i] : p[i * 5 + k]) * (tb ? q[j * 5 + k] : q[k * 6 + j]);
                    near(c->value[(n * 4 + i) * 6 + j], sum);
                }
            }
        }
    }
    at_tensor *x = random_leaf(AT_SHAPE(2, 3, 5), 3), *w = random_leaf(AT_SHAPE(4, 5), 4),
              *b = random_leaf(AT_SHAPE(4), 5);
    for (int act = AT_ACT_NONE; act <= AT_ACT_RELU; act++) {
        at_tensor *y = at_linear(x, w, b, (at_act)act);
        shape_is(y, AT_SHAPE(2, 3, 4));
        for (int i = 0; i < 24; i++) {
            double z = b->value[i % 4];
            for (int k = 0; k < 5; k++)
                z += x->value[i / 4 * 5 + k] * w->value[i % 4 * 5 + k];
            double right[] = {z, tanh(z), 1 / (1 + exp(-z)), z > 0 ? z : 0};
            near(y->value[i], right[act]);
        }
    }
}

static void moves(void **state)
{
    (void)state;
    at_tensor *x = random_leaf(AT_SHAPE(2, 3, 4), 1);
    at_tensor *y = at_permute(x, (const int[]){2, 0, 1}), *s = at_slice(x, 1, 1, 3);
    at_tensor *c = at_concat((at_tensor *[]){s, x}, 2, 1);
    shape_is(y, AT_SHAPE(4, 2, 3));
    shape_is(s, AT_SHAPE(2, 2, 4));
    shape_is(c, AT_SHAPE(2, 5, 4));
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 3; j++) {
            for (int k = 0; k < 4; k++) {
                double v = x->value[(i * 3 + j) * 4 + k];
                near(y->value[(k * 2 + i) * 3 + j], v);
                near(c->value[(i * 5 + 2 + j) * 4 + k], v);
                if (j > 0)
                    near(s->value[(i * 2 + j - 1) * 4 + k], v);
                if (j > 0)
                    near(c->value[(i * 5 + j - 1) * 4 + k], v);
            }
        }
    }
    at_tensor *sum = at_sum(x, 1), *mean = at_mean(x, 2), *all = at_sum(x, -1);
    shape_is(sum, AT_SHAPE(2, 4));
    shape_is(mean, AT_SHAPE(2, 3));
    shape_is(all, AT_SHAPE(1));
    double total = 0;
    for (int i = 0; i < 24; i++)
        total += x->value[i];
    near(*all->value, total);
    near(sum->value[5], x->value[13] + x->value[17] + x->value[21]);
    near(mean->value[4], (x->value[16] + x->value[17] + x->value[18] + x->value[19]) / 4);
}

static void rows(void **state)
{
    (void)state;
    at_tensor *table = random_leaf(AT_SHAPE(5, 3), 1);
    const int32_t ids[] = {4, -1, 0, 4};
    at_tensor *e = at_embedding(table, ids, AT_SHAPE(2, 2));
    shape_is(e, AT_SHAPE(2, 2, 3));
    for (int i = 0; i < 12; i++)
        near(e->value[i], ids[i / 3] < 0 ? 0 : table->value[ids[i / 3] * 3 + i % 3]);

    at_tensor *x = random_leaf(AT_SHAPE(2, 6), 2), *gain = random_leaf(AT_SHAPE(6), 3),
              *bias = random_leaf(AT_SHAPE(6), 4);
    at_tensor *n = at_layer_norm(x, gain, bias, 0.01), *m = at_maxout(x);
    for (int i = 0; i < 12; i++) {
        const double *row = x->value + i / 6 * 6;
        double mean = 0, variance = 0;
        for (int j = 0; j < 6; j++)
            mean += row[j] / 6;
        for (int j = 0; j < 6; j++)
            variance += (row[j] - mean) * (row[j] - mean) / 6;
        near(n->value[i], gain->value[i % 6] * (x->value[i] - mean) / sqrt(variance + 0.01) + bias->value[i % 6]);
        near(m->value[i / 2], fmax(x->value[i / 2 * 2], x->value[i / 2 * 2 + 1]));
    }
}

/* The fraction that is kept, that the rest is zero, that calls differ, and that the mask depends on the index only. */
static void dropout(void **state)
{
    (void)state;
    enum { N = 100001 };
    at_tensor *x = random_leaf(AT_SHAPE(N), 1);
    at_rng rng = {.seed = 8, .counter = 5};
    at_tensor *y = at_dropout(x, 0.7, &rng), *z = at_dropout(x, 0.7, &rng);
    assert_int_equal(rng.counter, 7);
    int kept = 0, both = 0;
    for (int i = 0; i < N; i++) {
        bool stays = y->value[i] != 0;
        near(y->value[i], stays ? x->value[i] / 0.7 : 0);
        kept += stays;
        both += stays && z->value[i] != 0;
    }
    assert_true(fabs(kept - 0.7 * N) < 4 * sqrt(0.21 * N));
    assert_true(fabs(both - 0.49 * N) < 4 * sqrt(0.25 * N));
    rng.counter = 5;
    at_tensor *again = at_dropout(at_slice(x, 0, 0, 999), 0.7, &rng);
    assert_memory_equal(again->value, y->value, 999 * sizeof(double));
    assert_ptr_equal(at_dropout(x, 1, &rng), x);
    assert_int_equal(rng.counter, 6);
}

static void cross_entropy(void **state)
{
    (void)state;
    at_tensor *z = random_leaf(AT_SHAPE(5, 300), 1);
    const int32_t targets[5] = {7, -1, 0, 299, -1};
    double *poisoned = (double *)z->value;
    for (int v = 0; v < 300; v++) { /* ignored rows may contain anything */
        poisoned[300 + v] = NAN;
        poisoned[4 * 300 + v] = v % 2 ? INFINITY : -INFINITY;
        poisoned[2 * 300 + v] += 1000; /* e^1000 overflows, its softmax does not */
    }
    const double smoothing[] = {0, 0.1};
    for (int s = 0; s < 2; s++) {
        double right = 0;
        for (int i = 0; i < 5; i++) {
            if (targets[i] < 0)
                continue;
            double sum = 0, shift = i == 2 ? 1000 : 0;
            for (int v = 0; v < 300; v++)
                sum += exp(z->value[i * 300 + v] - shift);
            for (int v = 0; v < 300; v++) {
                double log_p = z->value[i * 300 + v] - shift - log(sum);
                right -= ((v == targets[i] ? 1 - smoothing[s] : 0) + smoothing[s] / 300) * log_p;
            }
        }
        at_tensor *loss = at_cross_entropy(z, targets, smoothing[s]);
        shape_is(loss, AT_SHAPE(1));
        assert_true(fabs(*loss->value - right) < 1e-10 * right);
        if (s == 1)
            assert_true(at_backward(loss));
    }
    for (int v = 0; v < 300; v++) {
        assert_true(z->grad[300 + v] == 0 && z->grad[4 * 300 + v] == 0);
        assert_true(isfinite(z->grad[2 * 300 + v]));
    }
}

/* Parts without a weight may contain anything; large logits lose nothing; a row of zero weights is uniform. */
static void log_mixture(void **state)
{
    (void)state;
    enum { N = 3, J = 4, V = 9 };
    static const double weights[N * J] = {0.1, 0, 0.6, 0.3, 1, 0, 0, 0, 0, 0, 0, 0}, offset[J] = {0, 0, 1e6, -1e6};
    at_tensor *z = random_leaf(AT_SHAPE(N, J, V), 1), *w = at_leaf(tape, AT_SHAPE(N, J), weights, NULL, true);
    double *logit = (double *)z->value, plain[N * J * V];
    memcpy(plain, logit, sizeof plain);
    for (int i = 0; i < N * J * V; i++)
        logit[i] = weights[i / V] > 0 ? logit[i] + offset[i / V % J] : NAN;
    at_tensor *y = at_log_mixture(z, w);
    shape_is(y, AT_SHAPE(N, V));
    for (int i = 0; i < N * V; i++) {
        double p = 0;
        for (int j = 0; j < J; j++) {
            const double *row = plain + (i / V * J + j) * V;
            double sum = 0;
            for (int v = 0; v < V; v++)
                sum += exp(row[v]);
            p += weights[i / V * J + j] * exp(row[i % V]) / sum;
        }
        assert_true(fabs(y->value[i] - (i / V == 2 ? 0 : log(p))) < 1e-9);
    }
    assert_true(at_backward(at_sum(y, -1)));
    for (int i = 0; i < N * J * V; i++)
        assert_true(weights[i / V] > 0 ? isfinite(z->grad[i]) : z->grad[i] == 0);
    assert_null(at_log_mixture(random_leaf(AT_SHAPE(2, 3, 4), 1), random_leaf(AT_SHAPE(2, 4), 1)));
    assert_string_equal(at_tape_error(tape)->text, "log_mixture: the logits are [2,3,4] and must be [N,J,V]; the "
                                                   "weights are [2,4] and must be [N,J]");
}

/* Large logits that differ by little lose nothing; without finite logits there is no finite loss. */
static void cross_entropy_of_large_logits(void **state)
{
    (void)state;
    const int32_t targets[1] = {2};
    const double offsets[] = {0, 1e15, -1e300, 1e300}, not_finite[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 4; i++) {
        at_tensor *z = random_leaf(AT_SHAPE(1, 7), 1);
        double *logit = (double *)z->value;
        for (int v = 0; v < 7; v++)
            logit[v] = offsets[i];
        assert_true(fabs(*at_cross_entropy(z, targets, 0)->value - log(7)) < 1e-12);
        for (int n = 0; n < 3; n++) {
            logit[5] = not_finite[n];
            assert_true(isnan(*at_cross_entropy(z, targets, 0)->value));
            assert_true(isnan(*at_cross_entropy(z, targets, 0.1)->value));
        }
    }
}

static void offsets(void **state)
{
    (void)state;
    enum { Q = 5, K = 7 };
    for (int reach = 0; reach < 4; reach++) {
        for (int from = -6; from < 10; from++) {
            int width = 2 * reach + 1;
            at_tensor *table = random_leaf(AT_SHAPE(2, 1, Q, width), 1),
                      *shared = random_leaf(AT_SHAPE(2, 1, 1, width), 2);
            at_tensor *w = random_leaf(AT_SHAPE(2, 1, Q, K), 3);
            at_tensor *y = at_by_offset(table, Q, K, from), *one = at_by_offset(shared, Q, K, from);
            at_tensor *sums = at_sum_by_offset(w, reach, from);
            shape_is(y, AT_SHAPE(2, 1, Q, K));
            shape_is(one, AT_SHAPE(2, 1, Q, K));
            shape_is(sums, AT_SHAPE(2, 1, Q, width));
            for (int row = 0; row < 2 * Q; row++) {
                double right[7] = {0};
                for (int j = 0; j < K; j++) {
                    int distance = j - (from + row % Q);
                    int r = (distance < -reach ? -reach : distance > reach ? reach : distance) + reach;
                    near(y->value[row * K + j], table->value[row * width + r]);
                    near(one->value[row * K + j], shared->value[row / Q * width + r]);
                    right[r] += w->value[row * K + j];
                }
                for (int r = 0; r < width; r++)
                    near(sums->value[row * width + r], right[r]);
            }
        }
    }
}

static void rotations_and_gaussians(void **state)
{
    (void)state;
    const at_shape shapes[] = {AT_SHAPE(2, 3, 2, 6), AT_SHAPE(2, 2, 1, 134)}; /* [B,n,H,D] */
    for (int s = 0; s < 2; s++) {
        const int n = (int)shapes[s].dim[1], heads = (int)shapes[s].dim[2], size = (int)shapes[s].dim[3];
        at_tensor *x = random_leaf(shapes[s], 1), *y = at_rotate(x, 4);
        for (int i = 0; i < at_shape_count(shapes[s]); i += 2) {
            double angle = (4 + i / (size * heads) % n) / pow(10000, i % size / (double)size);
            near(y->value[i], x->value[i] * cos(angle) - x->value[i + 1] * sin(angle));
            near(y->value[i + 1], x->value[i] * sin(angle) + x->value[i + 1] * cos(angle));
        }
    }
    /* Rows with their own positions; the columns beyond the heads are copied. */
    const int32_t positions[] = {5, 0, 2};
    at_tensor *rows = random_leaf(AT_SHAPE(3, 5), 1), *rotated = at_rotate_rows(rows, positions, 4, 1, 4);
    for (int row = 0; row < 3; row++) {
        const double *x = rows->value + 5 * row, *y = rotated->value + 5 * row;
        for (int c = 0; c < 4; c += 2) {
            double angle = (4 + positions[row]) / pow(10000, c / 4.0);
            near(y[c], x[c] * cos(angle) - x[c + 1] * sin(angle));
            near(y[c + 1], x[c] * sin(angle) + x[c + 1] * cos(angle));
        }
        assert_true(y[4] == x[4]);
    }
    at_tensor *p = random_leaf(AT_SHAPE(2, 1, 3), 2), *g = at_gaussian(p, 5, 2);
    shape_is(g, AT_SHAPE(2, 1, 3, 5));
    for (int i = 0; i < 30; i++)
        near(g->value[i], exp(-pow(i % 5 - p->value[i / 5], 2) / 8));
}

/* Arrays with a size of zero work. */
static void empty(void **state)
{
    (void)state;
    at_tensor *x = random_leaf(AT_SHAPE(0, 3), 1), *w = random_leaf(AT_SHAPE(2, 3), 2);
    at_tensor *y = at_linear(at_add(at_tanh(x), x), w, NULL, AT_ACT_TANH);
    shape_is(y, AT_SHAPE(0, 2));
    y = at_permute(at_concat((at_tensor *[]){y, at_slice(w, 1, 0, 2)}, 2, 0), (const int[]){1, 0});
    shape_is(y, AT_SHAPE(2, 2));
    at_tensor *none = at_matmul(random_leaf(AT_SHAPE(2, 0), 1), random_leaf(AT_SHAPE(0, 3), 1), false, false);
    shape_is(none, AT_SHAPE(2, 3));
    for (int i = 0; i < 6; i++)
        assert_true(none->value[i] == 0);
    at_tensor *loss = at_add(at_sum(y, -1), at_cross_entropy(x, NULL, 0));
    assert_true(at_backward(at_add(loss, at_sum(none, -1))));
    near(w->grad[0], 1);
    near(w->grad[2], 0);
}

/* The fused operation against its parts: the same mask, values and gradients. */
static void residual_norms(void **state)
{
    (void)state;
    const at_shape shape = AT_SHAPE(70, 37);
    for (int how = 0; how < 4; how++) {
        double keep = how & 1 ? 0.7 : 1;
        at_tape *tapes[2] = {at_tape_new(arena, true), at_tape_new(arena, true)};
        at_tensor *value[2], *added[2], *in[2][4];
        for (int fused = 0; fused < 2; fused++) {
            tape = tapes[fused];
            for (int i = 0; i < 4; i++)
                in[fused][i] = random_leaf(i < 2 ? shape : AT_SHAPE(37), (uint64_t)(1 + i));
            at_tensor **x = in[fused], *sum = NULL;
            at_rng rng = {.seed = 9, .counter = 5};
            if (fused)
                value[1] = at_residual_norm(x[0], x[1], x[2], x[3], 1e-5, keep, &rng, how & 2 ? &sum : NULL);
            else
                value[0] = at_layer_norm(sum = at_add(x[0], at_dropout(x[1], keep, &rng)), x[2], x[3], 1e-5);
            assert_int_equal(rng.counter, how & 1 ? 6 : 5);
            added[fused] = sum;
            at_tensor *loss = at_sum(at_mul(value[fused], at_exp(value[fused])), -1);
            if (how & 2)
                loss = at_add(loss, at_sum(at_mul(sum, sum), -1));
            assert_true(at_backward(loss));
        }
        for (int i = 0; i < 70 * 37; i++) {
            near(value[1]->value[i], value[0]->value[i]);
            if (how & 2)
                near(added[1]->value[i], added[0]->value[i]);
        }
        for (int i = 0; i < 4; i++)
            for (int64_t j = 0; j < at_shape_count(in[0][i]->shape); j++)
                near(in[1][i]->grad[j], in[0][i]->grad[j]);
        /* Without recording, the sum is stored where the result will be. */
        at_tape *brief = at_tape_new(arena, false);
        at_tensor *x[4];
        for (int i = 0; i < 4; i++)
            x[i] = at_leaf(brief, in[0][i]->shape, in[0][i]->value, NULL, false);
        at_rng rng = {.seed = 9, .counter = 5};
        at_tensor *again = at_residual_norm(x[0], x[1], x[2], x[3], 1e-5, keep, &rng, NULL);
        assert_memory_equal(again->value, value[1]->value, 70 * 37 * sizeof(double));
    }
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, start, end)
    const struct CMUnitTest tests[] = {
        TEST(numbers_one_by_one),
        TEST(broadcasts),
        TEST(products),
        TEST(moves),
        TEST(rows),
        TEST(dropout),
        TEST(residual_norms),
        TEST(offsets),
        TEST(rotations_and_gaussians),
        TEST(log_mixture),
        TEST(cross_entropy),
        TEST(cross_entropy_of_large_logits),
        TEST(empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
