/* What the explorer derives from the weights of several heads, by small examples. */
/* cmocka.h needs these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "draw/derive_internal.h"

static void assert_near(const float *got, const double *expected, int count)
{
    for (int i = 0; i < count; i++)
        if (!(fabs((double)got[i] - expected[i]) <= 1e-6))
            fail_msg("%d is %.7f, not %.7f", i, (double)got[i], expected[i]);
}

/* Two heads of a row of three keys. The first looks at two keys, of which the second adds three times as much; the other
 * looks at a key that adds nothing beside another. */
static void test_norms_are_shares_of_what_is_added(void **unused)
{
    (void)unused;
    const float weights[] = {0.5f, 0.5f, 0, 0.9f, 0, 0.1f}, norms[] = {1, 3, 7, 0, 5, 2};
    const at_map map = {.heads = 2, .rows = 1, .columns = 3, .weights = weights};
    const at_map_vectors vectors = {.norms = norms};
    float out[3];
    at_derive_norms((const at_map *const[]){&map}, (const at_map_vectors *const[]){&vectors}, 1, out);
    assert_near(out, (const double[]){0.125, 0.375, 0.5}, 3);
    at_derive_mean((const at_map *const[]){&map, &map}, 2, out);
    assert_near(out, (const double[]){0.7, 0.25, 0.05}, 3);
}

/* A row that adds nothing has no shares. */
static void test_a_row_of_zeros_stays_zero(void **unused)
{
    (void)unused;
    const float weights[] = {0, 0}, norms[] = {1, 1};
    const at_map map = {.heads = 1, .rows = 1, .columns = 2, .weights = weights};
    const at_map_vectors vectors = {.norms = norms};
    float out[2] = {5, 5};
    at_derive_norms((const at_map *const[]){&map}, (const at_map_vectors *const[]){&vectors}, 1, out);
    assert_near(out, (const double[]){0, 0}, 2);
    assert_true(at_derive_entropy(weights, 1, 2) == 0);
    assert_true(fabs(at_derive_entropy((const float[]){0.5f, 0.5f, 1, 0}, 2, 2) - log(2) / 2) < 1e-7);
}

/* R = (1/2 A_2 + 1/2 I)(1/2 A_1 + 1/2 I) by hand. */
static void test_rollout_multiplies_the_layers(void **unused)
{
    (void)unused;
    const float first[] = {1, 0, 1, 0}, second[] = {0, 1, 0, 1};
    const at_map one = {.heads = 1, .rows = 2, .columns = 2, .weights = first},
                 two = {.heads = 1, .rows = 2, .columns = 2, .weights = second};
    float out[4];
    assert_true(at_derive_rollout((const at_map *const[]){&one, &two}, 2, out));
    assert_near(out, (const double[]){0.75, 0.25, 0.5, 0.5}, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norms_are_shares_of_what_is_added),
        cmocka_unit_test(test_a_row_of_zeros_stays_zero),
        cmocka_unit_test(test_rollout_multiplies_the_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
