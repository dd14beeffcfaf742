/* A recurrent layer on the caller's arrays: each state depends on what is before it only, on any number of threads; and
 * what is refused. */
/* cmocka.h needs these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "attend_unstable.h"

enum { SIZE = 12, LENGTH = 7 };
static const char *const cells[] = {"rnn", "gru", "lstm"};

static void fill(float *x)
{
    for (int i = 0; i < LENGTH * SIZE; i++)
        x[i] = sinf((float)i);
}

static void test_states(void **state)
{
    (void)state;
    float x[LENGTH * SIZE], whole[LENGTH * SIZE], part[LENGTH * SIZE], moved[LENGTH * SIZE];
    fill(x);
    for (int c = 0; c < 3; c++) {
        at_error error = {0};
        at_recurrent *layer = at_recurrent_new(cells[c], SIZE, 3, &error);
        assert_non_null(layer);
        at_threads_set(1);
        assert_true(at_recurrent_run(layer, x, LENGTH, whole, &error));
        at_threads_set(3);
        assert_true(at_recurrent_run(layer, x, 4, part, &error));
        at_threads_set(0);
        assert_memory_equal(whole, part, 4 * SIZE * sizeof(float));
        for (int i = 0; i < LENGTH * SIZE; i++)
            assert_true(fabsf(whole[i]) < 1 && whole[i] != 0);
        /* A change of x_3 changes h_3 and those after it, and none before it. */
        x[3 * SIZE] += 0.5f;
        assert_true(at_recurrent_run(layer, x, LENGTH, moved, &error));
        x[3 * SIZE] -= 0.5f;
        assert_memory_equal(whole, moved, 3 * SIZE * sizeof(float));
        for (int t = 3; t < LENGTH; t++)
            assert_memory_not_equal(whole + t * SIZE, moved + t * SIZE, SIZE * sizeof(float));
        at_recurrent_free(layer);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    float x[SIZE] = {0};
    at_error error = {0};
    assert_null(at_recurrent_new("gro", SIZE, 1, &error));
    assert_int_equal(error.code, AT_USAGE);
    assert_string_equal(error.text, "no cell 'gro'; did you mean 'gru'?");
    error = (at_error){0};
    assert_null(at_recurrent_new("gru", 0, 1, &error));
    assert_string_equal(error.text, "a recurrent layer has the size 0 and must have one from 1 to 16384");
    error = (at_error){0};
    at_recurrent *layer = at_recurrent_new("rnn", SIZE, 1, &error);
    assert_false(at_recurrent_run(layer, x, 0, x, &error));
    assert_int_equal(error.code, AT_USAGE);
    at_recurrent_free(layer);
    at_recurrent_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_states), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
