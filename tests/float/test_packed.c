/* Packed rows in float, at sizes beyond a vector, a block of rows and a tile of keys: the same bits
 * as arrays, for any number of threads, and one query at a time through the rows of a cache as all at once. */
#include "packed_cases.h"

/* Combination `kind` of all settings, with sizes of its own. */
static bool combine(int kind, int64_t Q, int64_t K, packed_case *p)
{
    static const int heads[][2] = {{4, 4}, {4, 2}, {3, 1}};
    const choice *chosen[AT_AXES];
    for (int axis = 0; axis < AT_AXES; axis++)
        chosen[axis] = &choices[axis][kind * (axis + 1) % choice_count[axis]];
    if (nonsense(chosen))
        return false;
    *p = (packed_case){.c = case_of("packed", chosen, kind)};
    at_error error = {0};
    p->c.settings.heads = heads[kind % 3][0];
    p->c.settings.kv_heads = heads[kind % 3][1];
    assert_true(at_attention_parse(&p->c.settings, &p->c.attention, &error));
    p->c.B = 4;
    p->c.Q = Q;
    p->c.K = K;
    p->c.D = kind % 2 ? 24 : 16;
    p->c.Dv = kind % 5 ? 20 : 64;
    p->c.A = 9;
    p->c.has_lengths = p->c.projections = false;
    p->c.query_start = kind % 4 == 1 ? 3 : 0;
    add_arrays(&p->c, chosen);
    packed_start(p, kind);
    return true;
}

enum { KINDS = 72 };

static void packed_rows_are_arrays(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        packed_case p;
        bool large = kind % 9 == 4;
        if (!combine(kind, large ? 100 : 21, large ? 270 : 23, &p))
            continue;
        at_threads_set(1);
        packed_results arrays = run_arrays(&p);
        for (int threads = 1; threads <= 3; threads++) {
            at_threads_set(threads);
            packed_results packed = run_packed(&p);
            same_results(&p, &arrays, &packed, 1e-3);
        }
        at_arena_free(p.arena);
    }
    at_threads_set(1);
}

static void keys_by_their_rows_are_arrays(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        packed_case p;
        if (!combine(kind, 1, kind % 9 == 4 ? 270 : 16 + kind % 7, &p))
            continue;
        check_key_rows(&p, kind % 2);
        at_arena_free(p.arena);
    }
}

/* A decoder: all queries of two causal sequences in one call, and then step by step over the rows so far. */
static void steps_equal_one_call(void **state)
{
    (void)state;
    enum { B = 2, N = 300, H = 4, G = 2, D = 24, DV = 20, WIDTH = (H + G) * D + G * DV };
    static const char *const positions[] = {"none", "alibi", "shaw:5", "t5"};
    static const int64_t steps[] = {0, 1, 7, 15, 16, 17, 40, 255, 256, N - 1};
    const int64_t at[B] = {0, N}, count[B] = {N, N}, one_at[B] = {1, 0}, one[B] = {1, 1};
    at_arena *arena = at_arena_new();
    at_real *x = random_numbers(arena, 1, B * N * WIDTH);
    for (int i = 0; i < 4; i++) {
        at_settings settings = {.score = "scaled",
                                .normaliser = "softmax",
                                .window = "causal",
                                .position = positions[i],
                                .heads = H,
                                .kv_heads = G};
        const at_attention attention = parsed(&settings);
        at_tape *tape = at_tape_new(arena, false);
        at_packed packed = {.batch = B,
                            .query_at = at,
                            .query_count = count,
                            .key_at = at,
                            .key_count = count,
                            .size = D,
                            .value_size = DV,
                            .k_column = H * D,
                            .v_column = (H + G) * D};
        at_tensor *rows = at_leaf(tape, AT_SHAPE(B * N, WIDTH), x, NULL, false);
        at_attention_in in = {.query = rows, .key = rows, .value = rows, .packed = &packed};
        for (int p = 0; p < attention.declared_count[AT_POSITION]; p++) {
            const at_shape shape = at_parameter_shape(&attention, AT_POSITION, p, false, 0, D, DV);
            at_real *values = random_numbers(arena, (uint64_t)(2 + p), at_shape_count(shape));
            in.parameter[AT_POSITION][p] = at_leaf(tape, shape, values, NULL, false);
        }
        at_tensor *whole = at_attention_run(tape, &attention, &in).out;
        assert_non_null(whole);
        const at_real *list[B * N];
        for (int64_t r = 0; r < B * N; r++)
            list[r] = x + r * WIDTH;
        packed.key_row = list;
        packed.key_row_stride = N;
        packed.query_at = one_at;
        packed.query_count = one;
        in.key = in.value = NULL;
        for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
            const int64_t seen[B] = {steps[s] + 1, steps[s] + 1};
            at_real query[B * WIDTH];
            memcpy(query + WIDTH, x + steps[s] * WIDTH, sizeof query / 2);
            memcpy(query, x + (N + steps[s]) * WIDTH, sizeof query / 2);
            packed.key_count = seen;
            in.query = at_leaf(tape, AT_SHAPE(B, WIDTH), query, NULL, false);
            in.query_start = steps[s];
            at_threads_set(s % 2 ? 3 : 1); /* with more threads than sequences the heads are distributed */
            at_tensor *step = at_attention_run(tape, &attention, &in).out;
            assert_non_null(step);
            for (int64_t b = 0; b < B; b++)
                assert_memory_equal(step->value + one_at[b] * H * DV, whole->value + (b * N + steps[s]) * H * DV,
                                    H * DV * sizeof(at_real));
        }
    }
    at_threads_set(1);
    at_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_rows_are_arrays),
        cmocka_unit_test(keys_by_their_rows_are_arrays),
        cmocka_unit_test(steps_equal_one_call),
    };
    return cmocka_run_group_tests(tests, collect, NULL);
}
