/* The normalisers and the span products: gradients, exactness, and that nothing outside the spans matters. */
#include "gradcheck.h"

enum { B = 2, H = 4, Q = 3, K = 7 };

/* All kinds of intervals: complete rows, one key, empty at 0 and elsewhere, the ends. */
static int32_t shared_lo[B * Q] = {0, 2, 3, 0, 6, 1}, shared_hi[B * Q] = {7, 5, 4, 0, 7, 1};
static const at_spans shared = {.batch = B, .heads = 1, .rows = Q, .lo = shared_lo, .hi = shared_hi};

static int32_t own_lo[B * H * Q], own_hi[B * H * Q];
static const at_spans own = {.batch = B, .heads = H, .rows = Q, .lo = own_lo, .hi = own_hi};

static int fill_own(void **state)
{
    (void)state;
    for (int r = 0; r < B * H * Q; r++) {
        own_lo[r] = r * 5 % K;
        own_hi[r] = r % 6 == 4 ? own_lo[r] : own_lo[r] + 1 + r % (K - own_lo[r]);
    }
    return 0;
}

/* ---- Gradients ---- */

typedef at_tensor *normaliser(at_tensor *e, const at_spans *spans);

typedef struct row_case {
    normaliser *op;
    const at_spans *spans;
} row_case;

static at_tensor *build_rows(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape;
    const row_case *c = context;
    return c->op(x[0], c->spans);
}

static at_tensor *build_hard(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape;
    at_tensor *log_prob;
    at_tensor *w = at_hard(x[0], context, true, 5, &log_prob);
    at_tensor *parts[] = {at_reshape(w, AT_SHAPE(-1)), at_reshape(log_prob, AT_SHAPE(-1))};
    return at_concat(parts, 2, 0);
}

static void normalisers_have_right_gradients(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        normaliser *op;
    } ops[] = {{"op:softmax", at_softmax},
               {"op:sparsemax", at_sparsemax},
               {"op:entmax15", at_entmax15},
               {"op:sigmoid_span", at_sigmoid_span},
               {"op:relu_span", at_relu_span}};
    for (int i = 0; i < 5; i++)
        for (int each = 0; each < 2; each++) {
            row_case c = {ops[i].op, each ? &own : &shared};
            gradcheck(&(gradcheck_case){.name = ops[i].name,
                                        .build = build_rows,
                                        .context = &c,
                                        .inputs = 1,
                                        .shape = {AT_SHAPE(B, H, Q, K)},
                                        .seed = 4});
        }
    gradcheck(&(gradcheck_case){
        .name = "op:hard", .build = build_hard, .context = &own, .inputs = 1, .shape = {AT_SHAPE(B, H, Q, K)}});
}

static at_tensor *build_dot(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape;
    return at_span_dot(x[0], x[1], context);
}

static at_tensor *build_sum(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape;
    return at_span_sum(x[0], x[1], context);
}

static at_tensor *build_seen(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape;
    return at_seen(x[0], context);
}

static void products_have_right_gradients(void **state)
{
    (void)state;
    const at_spans *spans[] = {&shared, &own};
    for (int i = 0; i < 2; i++)
        for (int G = 1; G <= H; G *= 2) {
            gradcheck(&(gradcheck_case){.name = "op:span_dot",
                                        .build = build_dot,
                                        .context = spans[i],
                                        .inputs = 2,
                                        .shape = {AT_SHAPE(B, H, Q, 3), AT_SHAPE(B, G, K, 3)}});
            gradcheck(&(gradcheck_case){.name = "op:span_sum",
                                        .build = build_sum,
                                        .context = spans[i],
                                        .inputs = 2,
                                        .shape = {AT_SHAPE(B, H, Q, K), AT_SHAPE(B, G, K, 3)}});
        }
    gradcheck(&(gradcheck_case){
        .name = "op:seen", .build = build_seen, .context = &shared, .inputs = 1, .shape = {AT_SHAPE(B, K, 3)}});
}

typedef struct additive_case {
    at_act act;
    const at_spans *spans;
    bool steps; /* composed of operations, with the [Q,K,A] tensor */
} additive_case;

/* e = sum_a v_a act(q_a + k_a); the composition also fills the outside of the spans, which a product sets to 0. */
static at_tensor *build_additive(at_tape *tape, at_tensor *const *x, const void *context)
{
    const additive_case *c = context;
    if (!c->steps)
        return at_additive(x[0], x[1], x[2], c->act, c->spans);
    const int64_t G = x[1]->shape.dim[1], A = x[0]->shape.dim[3];
    at_tensor *v = x[2]->shape.rank == 2 ? at_reshape(x[2], AT_SHAPE(G, H / G, 1, 1, A)) : x[2];
    at_tensor *s =
        at_add(at_reshape(x[0], AT_SHAPE(B, G, H / G, Q, 1, A)), at_reshape(x[1], AT_SHAPE(B, G, 1, 1, K, A)));
    s = c->act == AT_ACT_TANH ? at_tanh(s) : c->act == AT_ACT_SIGMOID ? at_sigmoid(s) : at_relu(s);
    s = at_reshape(at_sum(at_mul(s, v), 5), AT_SHAPE(B, H, Q, K));
    double *inside = at_arena_zeros(at_tape_arena(tape), sizeof(double) * B * H * Q * K);
    for (int64_t r = 0; r < B * H * Q; r++) {
        int64_t span = at_span_row(c->spans, r / (H * Q), r / Q % H, r % Q);
        for (int64_t j = c->spans->lo[span]; j < c->spans->hi[span]; j++)
            inside[r * K + j] = 1;
    }
    return at_mul(s, at_leaf(tape, AT_SHAPE(B, H, Q, K), inside, NULL, false));
}

static void additive_is_its_composition(void **state)
{
    (void)state;
    const at_act acts[] = {AT_ACT_TANH, AT_ACT_SIGMOID, AT_ACT_RELU};
    for (int i = 0; i < 12; i++) {
        additive_case c = {acts[i % 3], i % 2 ? &own : &shared, false};
        gradcheck_case check = {
            .name = "op:additive",
            .build = build_additive,
            .context = &c,
            .inputs = 3,
            .shape = {AT_SHAPE(B, H, Q, 3), AT_SHAPE(B, i < 6 ? 2 : H, K, 3), i % 4 < 2 ? AT_SHAPE(3) : AT_SHAPE(H, 3)},
            .seed = (uint64_t)i};
        gradcheck(&check);
        gradcheck_state fused = {.c = &check}, steps = {.c = &check};
        gradcheck_start(&fused);
        gradcheck_back(&fused, -1);
        double loss = gradcheck_loss(&fused);
        c.steps = true;
        check.name = "the composition of additive";
        gradcheck_start(&steps);
        gradcheck_back(&steps, -1);
        assert_true(fabs(loss - gradcheck_loss(&steps)) <= 1e-12);
        for (int n = 0; n < 3; n++)
            for (int64_t j = 0; j < fused.count[n]; j++)
                assert_true(fabs(fused.grad[n][j] - steps.grad[n][j]) <= 1e-12);
        at_arena_free(fused.arena);
        at_arena_free(steps.arena);
    }
}

/* One query for each row, terms without padding: as many as the longest span reaches, and two that nobody reads. */
static int32_t one_lo[B] = {1, 0}, one_hi[B] = {K, 4}, all_hi[B] = {K, 4}, each_lo[B * H], each_hi[B * H];
static const at_spans part = {B, 1, 1, one_lo, one_hi}, all = {B, 1, 1, (int32_t[B]){0}, all_hi},
                      each = {B, H, 1, each_lo, each_hi};
static const int64_t first_term[B] = {0, K};

typedef struct covered_case {
    at_act act;
    const at_spans *spans;
    bool steps, twice; /* composed of at_add and at_additive; the terms have another reader */
    bool bare;         /* without terms */
} covered_case;

static at_tensor *build_covered(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)tape;
    const covered_case *c = context;
    const int64_t A = x[0]->shape.dim[3];
    at_tensor *f = at_scale(x[2], 1); /* not a leaf: its gradient may overwrite it */
    at_tensor *e;
    if (!c->steps) {
        e = at_covered(x[0], x[1], f, c->bare ? NULL : first_term, x[3], c->act, c->spans);
    } else if (c->bare) {
        e = at_additive(x[0], x[1], x[3], c->act, c->spans);
    } else {
        int32_t row[B * K];
        for (int i = 0; i < B * K; i++)
            row[i] = i < K + 4 ? i : -1;
        at_tensor *more = at_reshape(at_embedding(f, row, AT_SHAPE(B, K)), AT_SHAPE(B, K, H, A)); /* [B,K,H,A] */
        more = at_permute(more, (const int[]){0, 2, 1, 3});
        e = at_additive(x[0], at_add(x[1], more), x[3], c->act, c->spans);
    }
    return c->twice ? at_add(e, at_sum(f, -1)) : e;
}

static void covered_is_its_composition(void **state)
{
    (void)state;
    const at_act acts[] = {AT_ACT_TANH, AT_ACT_SIGMOID, AT_ACT_RELU};
    const at_spans *spans[] = {&all, &part, &each};
    for (int r = 0; r < B * H; r++) {
        each_lo[r] = r % 3;
        each_hi[r] = r == 5 ? each_lo[r] : 4;
    }
    for (int i = 0; i < 54; i++) {
        const int64_t A = i % 2 ? 3 : 17; /* less than a vector, and more than one */
        covered_case c = {acts[i % 3], spans[i / 3 % 3], false, i >= 18, i >= 36};
        gradcheck_case check = {.name = "op:covered",
                                .build = build_covered,
                                .context = &c,
                                .inputs = 4,
                                .shape = {AT_SHAPE(B, H, 1, A), AT_SHAPE(B, H, K, A),
                                          AT_SHAPE(K + 4 + (i % 4 == 3 ? 2 : 0), H * A),
                                          i % 4 < 2 ? AT_SHAPE(A) : AT_SHAPE(H, A)},
                                .seed = (uint64_t)i};
        if (c.act != AT_ACT_RELU) /* whose kink would be met by some of so many numbers */
            gradcheck(&check);
        gradcheck_state whole = {.c = &check}, steps = {.c = &check};
        gradcheck_start(&whole);
        gradcheck_back(&whole, -1);
        const double loss = gradcheck_loss(&whole);
        c.steps = true;
        check.name = "the composition of covered";
        gradcheck_start(&steps);
        gradcheck_back(&steps, -1);
        assert_true(fabs(loss - gradcheck_loss(&steps)) <= 1e-12);
        for (int n = 0; n < 4; n++)
            for (int64_t j = 0; j < whole.count[n]; j++)
                assert_true(fabs(whole.grad[n][j] - steps.grad[n][j]) <= 1e-12);
        at_arena_free(whole.arena);
        at_arena_free(steps.arena);
    }
}

/* ---- Values ---- */

/* One row of n scores through a normaliser. */
static void one_row(normaliser *op, const double *e, double *w, int n)
{
    int32_t lo = 0, hi = n;
    at_spans spans = {1, 1, 1, &lo, &hi};
    at_arena *arena = at_arena_new();
    at_tape *tape = at_tape_new(arena, false);
    at_tensor *y = op(at_leaf(tape, AT_SHAPE(1, 1, 1, n), e, NULL, false), &spans);
    assert_non_null(y);
    memcpy(w, y->value, (size_t)n * sizeof *w);
    at_arena_free(arena);
}

static int descending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* tau from the sorted scores in long double: the largest support whose threshold is below its smallest score. */
static long double sorted_tau(const double *z, int n, bool squares)
{
    double sorted[300];
    memcpy(sorted, z, (size_t)n * sizeof *z);
    qsort(sorted, (size_t)n, sizeof *sorted, descending);
    long double sum = 0, square = 0, best = 0;
    for (int k = 1; k <= n; k++) {
        sum += sorted[k - 1];
        square += (long double)sorted[k - 1] * sorted[k - 1];
        long double mean = sum / k, rest = (1 - (square - sum * mean)) / k;
        if (squares && rest < 0)
            break;
        long double tau = squares ? mean - sqrtl(rest) : (sum - 1) / k;
        if (tau > sorted[k - 1])
            break;
        best = tau;
    }
    return best;
}

static void thresholds_are_exact(void **state)
{
    (void)state;
    at_rng rng = {.seed = 3};
    static const int sizes[] = {1, 2, 7, 8, 9, 63, 64, 65, 300};
    static const double spreads[] = {0, 0.01, 1, 30};
    double e[300], half[300], w[300];
    for (int s = 0; s < 9; s++)
        for (int k = 0; k < 4; k++) {
            int n = sizes[s];
            for (int j = 0; j < n; j++) {
                e[j] = 100 + spreads[k] * at_rng_normal(&rng);
                half[j] = (e[j] - 100) / 2;
            }
            if (n > 2)
                half[2] = half[1], e[2] = e[1]; /* equal scores */
            one_row(at_sparsemax, e, w, n);
            double shifted[300];
            for (int j = 0; j < n; j++)
                shifted[j] = e[j] - 100;
            long double tau = sorted_tau(shifted, n, false);
            for (int j = 0; j < n; j++)
                assert_true(fabsl(w[j] - fmaxl(0, shifted[j] - tau)) <= 2e-14L);
            one_row(at_entmax15, e, w, n);
            tau = sorted_tau(half, n, true);
            for (int j = 0; j < n; j++)
                assert_true(fabsl(w[j] - powl(fmaxl(0, half[j] - tau), 2)) <= 2e-14L);
        }
}

/* A key exactly on the threshold must not make Michelot's iteration endless. */
static void ties_on_the_threshold_end(void **state)
{
    (void)state;
    const double e[] = {1, 0.1, 0, 0, 0, -0.3, 0.7, 0.3};
    double w[8];
    one_row(at_sparsemax, e, w, 8);
    double sum = 0;
    for (int j = 0; j < 8; j++)
        sum += w[j];
    assert_true(fabs(sum - 1) <= 1e-15);
}

static void softmax_never_overflows(void **state)
{
    (void)state;
    const double e[] = {1e300, -1e300, 1e300, 709, 0};
    double w[5];
    one_row(at_softmax, e, w, 5);
    assert_true(w[0] == 0.5 && w[1] == 0 && w[2] == 0.5 && w[3] == 0 && w[4] == 0);
    const double below[] = {-5, -1, 0};
    one_row(at_relu_span, below, w, 3); /* no positive score: the row stays zero */
    assert_true(w[0] == 0 && w[1] == 0 && w[2] == 0);
}

static void hard_selects_the_first_of_equals(void **state)
{
    (void)state;
    const double e[2][4] = {{9, 2, 2, 1}, {9, 9, 9, 9}}; /* key 0 is outside the first span, the second span is empty */
    int32_t lo[] = {1, 2}, hi[] = {4, 2};
    at_spans spans = {1, 1, 2, lo, hi};
    at_arena *arena = at_arena_new();
    at_tensor *log_prob;
    at_tape *tape = at_tape_new(arena, false);
    at_tensor *w = at_hard(at_leaf(tape, AT_SHAPE(1, 1, 2, 4), &e[0][0], NULL, false), &spans, false, 0, &log_prob);
    const double want[8] = {0, 1};
    assert_memory_equal(w->value, want, sizeof want);
    assert_true(fabs(log_prob->value[0] + log(2 + exp(-1))) <= 1e-15 && log_prob->value[1] == 0);
    at_arena_free(arena);
}

/* ---- What must not leak ---- */

/* Every input number that no span reaches becomes NaN: values inside and all gradients do not change. */
static void nan_outside_stays_outside(void **state)
{
    (void)state;
    normaliser *ops[] = {at_softmax, at_sparsemax, at_entmax15, at_sigmoid_span, at_relu_span};
    at_arena *arena = at_arena_new();
    at_rng rng = {.seed = 8};
    double e[B * Q * K], k[B * K * 3], q[B * Q * 3], va[3] = {1, -1, 2}, seed[B * Q * K], de[B * Q * K];
    double *inputs[] = {e, k, q, seed};
    const int counts[] = {B * Q * K, B * K * 3, B * Q * 3, B * Q * K};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < counts[i]; j++)
            inputs[i][j] = at_rng_normal(&rng);
    for (int r = 0; r < B * Q; r++)
        for (int j = 0; j < K; j++)
            if (j < shared_lo[r] || j >= shared_hi[r])
                e[r * K + j] = NAN;
    for (int i = 0; i < 5; i++) {
        at_tape *tape = at_tape_new(arena, true);
        memset(de, 0, sizeof de);
        at_tensor *w = ops[i](at_leaf(tape, AT_SHAPE(B, 1, Q, K), e, de, true), &shared);
        assert_true(at_backward_from(w, seed));
        for (int j = 0; j < B * Q * K; j++) {
            assert_false(isnan(w->value[j]) || isnan(de[j]));
            if (isnan(e[j]))
                assert_true(w->value[j] == 0 && de[j] == 0);
        }
    }
    /* Batch row 1 attends to key 6 only. */
    for (int j = 0; j < 6 * 3; j++)
        k[K * 3 + j] = NAN;
    for (int i = 0; i < 3; i++) {
        at_tape *tape = at_tape_new(arena, true);
        double dq[B * Q * 3] = {0}, dk[B * K * 3] = {0}, dw[B * Q * K] = {0};
        at_tensor *tk = at_leaf(tape, AT_SHAPE(B, 1, K, 3), k, dk, true);
        at_tensor *tq = at_leaf(tape, AT_SHAPE(B, 1, Q, 3), q, dq, true);
        at_tensor *tw = at_leaf(tape, AT_SHAPE(B, 1, Q, K), e, dw, true);
        at_tensor *tv = at_leaf(tape, AT_SHAPE(3), va, NULL, true);
        at_tensor *y = i == 0   ? at_span_dot(tq, tk, &shared)
                       : i == 1 ? at_additive(tq, tk, tv, AT_ACT_TANH, &shared)
                                : at_span_sum(tw, tk, &shared);
        assert_true(at_backward_from(y, seed));
        for (int j = 0; j < at_shape_count(y->shape); j++)
            assert_false(isnan(y->value[j]));
        for (int j = 0; j < B * Q * 3; j++)
            assert_false(isnan(dq[j]));
        for (int j = 0; j < B * K * 3; j++)
            assert_false(isnan(dk[j]));
        for (int j = 0; j < B * Q * K; j++)
            assert_false(isnan(dw[j]));
    }
    at_tape *tape = at_tape_new(arena, true);
    at_tensor *x = at_leaf(tape, AT_SHAPE(B, K, 3), k, NULL, true), *seen = at_seen(x, &shared);
    for (int j = 0; j < B * K * 3; j++)
        assert_true(seen->value[j] == (isnan(k[j]) ? 0 : k[j]));
    assert_ptr_equal(at_seen(x, &(at_spans){B, 1, 1, (int32_t[]){0, 0}, (int32_t[]){K, K}}), x);
    at_arena_free(arena);
}

/* ---- Sentences ---- */

static void wrong_shapes_are_named(void **state)
{
    (void)state;
    static const double numbers[B * H * Q * K];
    at_arena *arena = at_arena_new();
    static int32_t zeros[B * K];
    static const at_spans two = {.batch = B, .heads = 1, .rows = 2}, empty = {B, 1, K, zeros, zeros};
    static const char *const says[] = {
        "softmax: needs [B,H,Q,K], has [3,7]",
        "hard: spans [2,1,2] do not cover the rows of [2,4,3,7]",
        "entmax15: the span [0,7) exceeds the 6 keys",
        "span_dot: the batches must be equal and the key heads divide the query heads ([2,4,3,7] with [2,3,7,2])",
        "span_dot: query size 7 and key size 2 differ",
        "span_sum: weights of 6 keys meet 7 values",
        "additive: the last sizes of [2,2,7,2], [2,2,7,2] and v [3,7] must be equal, v [A] or [H,A]",
        ("covered: needs q [B,H,1,A], k [B,H,K,A], terms [cells,H*A] and v [A] or [H,A], has [2,4,3,7], [2,2,7,2], "
         "[3,7] and [3,7]"),
        "covered: row 1 has keys beyond the 10 terms",
    };
    for (int i = 0; i < 9; i++) {
        at_tape *tape = at_tape_new(arena, false);
        at_tensor *flat = at_leaf(tape, AT_SHAPE(Q, K), numbers, NULL, false);
        at_tensor *e = at_leaf(tape, AT_SHAPE(B, H, Q, K), numbers, NULL, false);
        at_tensor *other = at_leaf(tape, AT_SHAPE(B, 3, K, 2), numbers, NULL, false);
        at_tensor *k = at_leaf(tape, AT_SHAPE(B, 2, K, 2), numbers, NULL, false);
        at_tensor *narrow = at_leaf(tape, AT_SHAPE(B, H, Q, K - 1), numbers, NULL, false);
        at_tensor *y = i == 0   ? at_softmax(flat, &shared)
                       : i == 1 ? at_hard(e, &two, false, 0, NULL)
                       : i == 2 ? at_entmax15(narrow, &shared)
                       : i == 3 ? at_span_dot(e, other, &shared)
                       : i == 4 ? at_span_dot(e, k, &shared)
                       : i == 5 ? at_span_sum(narrow, k, &shared)
                       : i == 6 ? at_additive(k, k, flat, AT_ACT_TANH, &empty)
                       : i == 7 ? at_covered(e, k, flat, first_term, flat, AT_ACT_TANH, &all)
                                : at_covered(at_reshape(at_slice(k, 2, 0, 1), AT_SHAPE(B, 2, 1, 2)), k,
                                             at_leaf(tape, AT_SHAPE(K + 3, 4), numbers, NULL, false), first_term,
                                             at_leaf(tape, AT_SHAPE(2), numbers, NULL, false), AT_ACT_TANH, &all);
        assert_null(y);
        assert_string_equal(at_tape_error(tape)->text, says[i]);
    }
    at_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normalisers_have_right_gradients),
        cmocka_unit_test(products_have_right_gradients),
        cmocka_unit_test(additive_is_its_composition),
        cmocka_unit_test(covered_is_its_composition),
        cmocka_unit_test(thresholds_are_exact),
        cmocka_unit_test(ties_on_the_threshold_end),
        cmocka_unit_test(softmax_never_overflows),
        cmocka_unit_test(hard_selects_the_first_of_equals),
        cmocka_unit_test(nan_outside_stays_outside),
        cmocka_unit_test(wrong_shapes_are_named),
    };
    return cmocka_run_group_tests(tests, fill_own, NULL);
}
