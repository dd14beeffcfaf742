/* The gradient of an update is one sum, whatever the number of processes that compute its slices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "train/slices_internal.h"

enum { MOST = 21, RANKS = 9 };

/* The definition. */
static float tree(const float *value, int64_t from, int64_t to)
{
    if (to - from == 1)
        return value[from];
    int64_t half = 1;
    while (2 * half < to - from)
        half *= 2;
    return tree(value, from, from + half) + tree(value, from + half, to);
}

/* Numbers whose sum depends on its order. */
static void fill(float *value)
{
    for (int i = 0; i < MOST; i++)
        value[i] = (i % 2 ? -1.0f : 1.0f) * (1 + (float)(i * 7919 % 101) / 97) * (i % 3 ? 1.0f : 4096.0f);
}

static float add(const float *value, at_branch branch)
{
    return tree(value, branch.from, branch.to);
}

/* Folds the branches of all ranks, in order, as they are added up for a share. */
static float sum_of_ranks(const float *value, int64_t n, int size)
{
    at_branch stack[AT_MOST_BRANCHES], own[AT_MOST_BRANCHES];
    float sum[AT_MOST_BRANCHES];
    int depth = 0;
    int64_t slices = 0;
    for (int r = 0; r < size; r++) {
        const at_branch mine = at_slices_of(n, r, size);
        assert_int_equal(mine.from, slices);
        slices = mine.to;
        const int count = at_branches_of(n, mine, own);
        for (int i = 0; i < count; i++) {
            at_branch last = own[i];
            float value_of_last = add(value, last);
            while (depth > 0 && at_branches_join(n, stack[depth - 1], last)) {
                value_of_last += sum[--depth];
                last.from = stack[depth].from;
            }
            stack[depth] = last;
            sum[depth++] = value_of_last;
        }
    }
    assert_int_equal(slices, n);
    assert_int_equal(depth, 1);
    return sum[0];
}

static void test_any_number_of_ranks_has_the_same_sum(void **state)
{
    (void)state;
    float value[MOST];
    fill(value);
    int others = 0;
    for (int64_t n = 1; n <= MOST; n++) {
        const float expected = tree(value, 0, n);
        float in_order = 0;
        for (int64_t i = 0; i < n; i++)
            in_order += value[i];
        others += memcmp(&in_order, &expected, sizeof expected) != 0;
        for (int size = 1; size <= RANKS && size <= n; size++) {
            const float sum = sum_of_ranks(value, n, size);
            assert_memory_equal(&sum, &expected, sizeof sum);
        }
    }
    assert_true(others > 0); /* the order matters for these numbers */
}

/* A power of two of ranks needs one sum of each; any other at most two for each level of the tree. */
static void test_few_sums_travel(void **state)
{
    (void)state;
    at_branch own[AT_MOST_BRANCHES];
    for (int r = 0; r < 8; r++)
        assert_int_equal(at_branches_of(64, at_slices_of(64, r, 8), own), 1);
    for (int size = 1; size <= 64; size++)
        for (int r = 0; r < size; r++)
            assert_in_range(at_branches_of(64, at_slices_of(64, r, size), own), 1, 12);
}

static void test_one_process_adds_the_tree(void **state)
{
    (void)state;
    at_error error = {0};
    at_params *params = at_params_new();
    at_params_add(params, "w", AT_SHAPE(3), &error);
    assert_true(at_params_fix(params, &error));
    at_slices *slices = at_slices_new(params, NULL, &error);
    assert_non_null(slices);
    float value[MOST];
    fill(value);
    at_real *gradient = at_params_grads(params);
    for (int64_t n = 1; n <= MOST; n++) {
        for (int64_t i = 0; i < n; i++) {
            for (int k = 0; k < 3; k++)
                assert_true(i == 0 || gradient[k] == 0);
            for (int k = 0; k < 3; k++)
                gradient[k] = value[i] * (float)(k + 1);
            assert_true(at_slices_add(slices, n, i, &error));
        }
        assert_true(at_slices_finish(slices, n, &error));
        const float expected = tree(value, 0, n);
        assert_memory_equal(&gradient[0], &expected, sizeof expected);
        memset(gradient, 0, 3 * sizeof *gradient);
    }
    at_slices_free(slices);
    at_params_free(params);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_any_number_of_ranks_has_the_same_sum),
                                       cmocka_unit_test(test_few_sums_travel),
                                       cmocka_unit_test(test_one_process_adds_the_tree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
