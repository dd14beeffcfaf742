/* Packed rows with every combination of settings: the same values and gradients as arrays have ("op:unpack" and
 * "op:pack" are among them), keys by their rows, and refusals. */
#include "gradcheck.h"
#include "packed_cases.h"

static int number;

static void add_output(attention_case *c)
{
    if (number % 6 == 2)
        add_input(c, "WO", AT_SHAPE(5, c->attention.heads * c->Dv));
}

static void compare_layouts(attention_case *c)
{
    for (int plain = 0; plain < 2; plain++) {
        packed_case p = {.c = *c};
        p.c.attention.plain = plain;
        packed_start(&p, number);
        packed_results arrays = run_arrays(&p), packed = run_packed(&p);
        same_results(&p, &arrays, &packed, 1e-12);
        at_arena_free(p.arena);
    }
    number++;
}

/* Three sequences, without projections. */
static void layouts_agree(attention_case *c)
{
    attention_case wide = *c;
    const int64_t H = c->attention.heads, G = c->attention.kv_heads;
    wide.B = 3;
    wide.has_lengths = false;
    if (c->projections)
        wide.inputs -= 4;
    wide.projections = false;
    wide.shape[0] = AT_SHAPE(3, c->Q, H * c->D);
    wide.shape[1] = AT_SHAPE(3, c->K, G * c->D);
    wide.shape[2] = AT_SHAPE(3, c->K, G * c->Dv);
    add_output(&wide);
    compare_layouts(&wide);
}

static void rows_agree(attention_case *c)
{
    packed_case p = {.c = *c};
    p.c.Q = 1;
    p.c.has_lengths = false;
    p.c.inputs -= c->projections ? 4 : 0;
    p.c.shape[0] = AT_SHAPE(c->B, 1, c->attention.heads * c->D);
    p.c.shape[1] = AT_SHAPE(c->B, c->K, c->attention.kv_heads * c->D);
    p.c.shape[2] = AT_SHAPE(c->B, c->K, c->attention.kv_heads * c->Dv);
    add_output(&p.c);
    packed_start(&p, number++);
    check_key_rows(&p, number % 3 == 0);
    at_arena_free(p.arena);
}

static void packed_rows_are_arrays(void **state)
{
    (void)state;
    number = 0;
    over_the_product("packed", layouts_agree);
}

static void keys_by_their_rows_are_arrays(void **state)
{
    (void)state;
    number = 0;
    over_the_product("by rows", rows_agree);
}

/* ---- Gradients of the two operations themselves ---- */

static const int64_t two_at[] = {3, 0}, two_count[] = {1, 2};

static at_tensor *build(at_tape *tape, at_tensor *const *x, const void *context)
{
    const at_attention attention = parsed(&(at_settings){.score = "general"});
    const at_packed *packed = context;
    at_attention_in in = {.query = x[0], .key = x[0], .value = x[0], .packed = packed};
    *at_parameter_slot(&attention, &in, "W") = x[1];
    return at_attention_run(tape, &attention, &in).out;
}

/* Query, key and value share columns, too. */
static void unpacking_has_right_gradients(void **state)
{
    (void)state;
    static const char *const names[] = {"op:unpack", "op:pack"};
    for (int i = 0; i < 2; i++) {
        const at_packed packed = {.batch = 2,
                                  .query_at = two_at,
                                  .query_count = two_count,
                                  .key_at = two_at,
                                  .key_count = two_count,
                                  .size = 2,
                                  .value_size = 3,
                                  .q_column = i,
                                  .k_column = 1,
                                  .v_column = 2};
        gradcheck(&(gradcheck_case){.name = names[i],
                                    .build = build,
                                    .context = &packed,
                                    .inputs = 2,
                                    .shape = {AT_SHAPE(5, 5), AT_SHAPE(2, 2)}});
    }
}

/* Overlapping columns in the fused operation: adjacent heads read the same columns. */
static void shared_columns_add_up(void **state)
{
    (void)state;
    enum { B = 2, N = 250, WIDTH = 6 };
    int64_t at[B], count[B];
    at_real *first = NULL;
    at_arena *arena = at_arena_new();
    for (int64_t b = 0; b < B; b++)
        at[b] = b * N, count[b] = N;
    at_real *x = random_numbers(arena, 3, B * N * WIDTH), *seed = random_numbers(arena, 4, B * N * 4);
    for (int threads = 1; threads <= 3; threads++) {
        at_threads_set(threads);
        const at_packed packed = {.batch = B,
                                  .query_at = at,
                                  .query_count = count,
                                  .key_at = at,
                                  .key_count = count,
                                  .size = 2,
                                  .value_size = 2,
                                  .q_column = 0,
                                  .k_column = 1,
                                  .v_column = 2};
        const at_attention attention = parsed(&(at_settings){.heads = 2});
        at_tape *tape = at_tape_new(arena, true);
        at_real *grad = filled(arena, B * N * WIDTH, 0);
        at_tensor *leaf = at_leaf(tape, AT_SHAPE(B * N, WIDTH), x, grad, true);
        at_attention_in in = {.query = leaf, .key = leaf, .value = leaf, .packed = &packed};
        assert_true(at_backward_from(at_attention_run(tape, &attention, &in).out, seed));
        first = first ? first : grad;
        assert_memory_equal(first, grad, B * N * WIDTH * sizeof *grad);
    }
    at_threads_set(1);
    at_arena_free(arena);
}

/* ---- Refusals ---- */

static const int64_t firsts[] = {0, 2}, counts[] = {2, 1}, too_many[] = {2, 2}, below[] = {0, -1}, meeting[] = {0, 1},
                     ones[] = {1, 1};
static const double numbers[100];
static const double *const row_list[] = {numbers, numbers, numbers, numbers};

static const struct {
    at_shape query, key;
    at_packed packed;
    int given; /* 1: lengths, 2: WK, 4: no key, 8: a gradient */
    const char *says;
} bad[] = {
    {{2, {3, 8}},
     {2, {3, 8}},
     {.query_at = firsts, .query_count = too_many},
     0,
     "sequence 1 has 2 rows of query from row 2 on, and there are 3"},
    {{2, {3, 8}}, {2, {3, 8}}, {.key_at = below}, 0, "sequence 1 has 1 rows of key from row -1 on, and there are 3"},
    {{2, {3, 8}}, {2, {3, 8}}, {.key_count = below}, 0, "sequence 1 has -1 rows of key from row 2 on, and there are 3"},
    {{2, {3, 8}},
     {2, {3, 8}},
     {.query_at = meeting},
     0,
     "sequence 1 shares rows of query with another; each needs its own"},
    {{2, {3, 8}},
     {2, {3, 8}},
     {.key_at = meeting},
     8,
     "sequence 1 shares rows of key with another; each needs its own"},
    {{2, {3, 8}},
     {2, {3, 8}},
     {.q_column = 5},
     0,
     "query has shape [3,8], which does not hold 4 columns from column 5 on"},
    {{2, {3, 8}},
     {2, {3, 8}},
     {.k_column = -1},
     0,
     "key has shape [3,8], which does not hold 4 columns from column -1 on"},
    {{2, {3, 8}},
     {2, {3, 8}},
     {.v_column = 3},
     0,
     "value has shape [3,8], which does not hold 6 columns from column 3 on"},
    {{2, {3, 3}}, {2, {3, 8}}, {0}, 0, "query has shape [3,3], which does not hold 4 columns from column 0 on"},
    {{3, {1, 3, 8}}, {2, {3, 8}}, {0}, 0, "query has shape [1,3,8] but packed rows need [rows,width]"},
    {{2, {3, 8}}, {2, {3, 8}}, {0}, 4, "key [rows,width] is not given"},
    {{2, {3, 8}}, {2, {3, 8}}, {.size = -1}, 0, "packed rows of 2 sequences have heads of size -1 and 3"},
    {{2, {3, 8}},
     {2, {3, 8}},
     {0},
     1,
     "packed rows have their own lengths and are projected already: they take no lengths"},
    {{2, {3, 8}},
     {2, {3, 8}},
     {0},
     2,
     "packed rows have their own lengths and are projected already: they take no parameter 'WK'"},
    {{2, {3, 8}},
     {2, {3, 8}},
     {.key_row = row_list},
     0,
     "keys are given by their rows, so key and value must not be given as well"},
    {{2, {3, 8}},
     {2, {3, 8}},
     {.key_row = row_list, .key_row_stride = 2},
     4,
     "sequence 0 has 2 queries and 2 keys given by their rows; it may have one query and 2 keys"},
    {{2, {3, 8}},
     {2, {3, 8}},
     {.key_row = row_list, .key_row_stride = 1, .query_count = ones},
     4,
     "sequence 0 has 1 queries and 2 keys given by their rows; it may have one query and 1 keys"},
    {{2, {3, 8}},
     {2, {3, 8}},
     {.key_row = row_list, .key_row_stride = 2, .query_count = ones},
     4 + 8,
     "keys given by their rows have no backward pass, and the query wants a gradient"},
};

static void bad_rows_are_refused(void **state)
{
    (void)state;
    const at_attention attention = parsed(&(at_settings){.heads = 2});
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        at_arena *arena = at_arena_new();
        at_tape *tape = at_tape_new(arena, true);
        at_packed packed = bad[i].packed;
        packed.batch = 2;
        packed.size = packed.size ? packed.size : 2;
        packed.value_size = 3;
        packed.query_at = packed.query_at ? packed.query_at : firsts;
        packed.query_count = packed.query_count ? packed.query_count : counts;
        packed.key_at = packed.key_at ? packed.key_at : firsts;
        packed.key_count = packed.key_count ? packed.key_count : counts;
        const bool grad = bad[i].given & 8;
        at_tensor *key = bad[i].given & 4 ? NULL : at_leaf(tape, bad[i].key, numbers, NULL, grad);
        at_attention_in in = {.query = at_leaf(tape, bad[i].query, numbers, NULL, grad),
                              .key = key,
                              .value = key,
                              .packed = &packed,
                              .lengths = bad[i].given & 1 ? counts : NULL,
                              .WK = bad[i].given & 2 ? key : NULL};
        assert_null(at_attention_run(tape, &attention, &in).out);
        assert_string_equal(at_tape_error(tape)->text, bad[i].says);
        at_arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_rows_are_arrays),        cmocka_unit_test(keys_by_their_rows_are_arrays),
        cmocka_unit_test(unpacking_has_right_gradients), cmocka_unit_test(shared_columns_add_up),
        cmocka_unit_test(bad_rows_are_refused),
    };
    return cmocka_run_group_tests(tests, collect, NULL);
}
