/* Scores that are as large as numbers get, and scores that are NaN: for every normaliser, on both paths, through the public
 * interface. */
#include "attend.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 300 };

/* One head of size 1: e_ij = q_i k_j, and the values are 1, 2, 3, ... */
typedef struct run {
    int64_t queries, keys;
    float q[4], k[MOST];
    float out[4], weights[4 * MOST], log_prob[4];
} run;

static void attend_with(run *r, const char *normaliser, const char *window, const char *position, bool plain)
{
    float values[MOST];
    for (int64_t j = 0; j < r->keys; j++)
        values[j] = (float)(j + 1);
    const at_settings settings = {
        .score = "dot", .normaliser = normaliser, .window = window, .position = position, .plain = plain};
    at_call call = {.batch = 1,
                    .queries = r->queries,
                    .keys = r->keys,
                    .query_width = 1,
                    .key_width = 1,
                    .value_width = 1,
                    .query = r->q,
                    .key = r->k,
                    .value = values,
                    .out = r->out,
                    .weights = r->weights,
                    .log_prob = strcmp(normaliser, "hard") == 0 ? r->log_prob : NULL};
    at_error error = {0};
    if (!at_attend(&settings, &call, &error))
        fail_msg("%s: %s", normaliser, error.text);
}

#define NEAR(a, b, what)                                                                                               \
    if (!(fabs((double)(a) - (double)(b)) <= 1e-5))                                                                    \
    fail_msg("%s of %s on the %s path, scores %g: %.9g and should be %.9g", what, normaliser[n],                       \
             plain ? "plain" : "fused", (double)score, (double)(a), (double)(b))

static const char *const normaliser[] = {"softmax", "sparsemax", "entmax15", "hard"};
static const float sizes[] = {0, 1024, 3e7f, -3e7f, 1e20f, -1e20f, 3e38f, -3e38f, FLT_MAX};

/* Equal scores have equal weights, whatever the scores are; hard attention takes the first. */
static void equal_scores(void **state)
{
    (void)state;
    const int64_t counts[] = {1, 3, MOST};
    for (int n = 0; n < 4; n++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int c = 0; c < 3; c++)
                for (int plain = 0; plain < 2; plain++) {
                    const float score = sizes[s];
                    run r = {.queries = 1, .keys = counts[c], .q = {score}};
                    for (int64_t j = 0; j < r.keys; j++)
                        r.k[j] = 1;
                    attend_with(&r, normaliser[n], "global", "none", plain);
                    for (int64_t j = 0; j < r.keys; j++)
                        NEAR(r.weights[j], n == 3 ? j == 0 : 1 / (double)r.keys, "weight");
                    if (n == 3)
                        NEAR(r.log_prob[0], -log((double)r.keys), "log-probability");
                }
}

/* Scores of 3e7, 3e7 - 2 and 3e7 - 4, which are the nearest numbers there are, as those of 0, -2 and -4. */
static void neighbouring_scores(void **state)
{
    (void)state;
    for (int n = 0; n < 4; n++)
        for (int plain = 0; plain < 2; plain++) {
            const float score = 3e7f;
            run small = {.queries = 1, .keys = 3, .q = {1}, .k = {0, -2, -4}};
            run large = {.queries = 1, .keys = 3, .q = {1}, .k = {score, score - 2, score - 4}};
            attend_with(&small, normaliser[n], "global", "none", true);
            attend_with(&large, normaliser[n], "global", "none", plain);
            for (int j = 0; j < 3; j++)
                NEAR(large.weights[j], small.weights[j], "weight");
            NEAR(large.out[0], small.out[0], "output");
            if (n == 3)
                NEAR(large.log_prob[0], small.log_prob[0], "log-probability");
        }
}

/* The scores of the last two of four keys are NaN. Only the rows that see one of them are. */
static void nan_scores(void **state)
{
    (void)state;
    static const char *const positions[] = {"none", "alibi"};
    const at_entry *entry;
    for (int i = 0; (entry = at_catalogue(i)); i++)
        for (int way = 0; strcmp(entry->axis, "normaliser") == 0 && way < 4; way++) {
            const bool plain = way & 1;
            run r = {.queries = 4, .keys = 4, .q = {1, 2, 3, 4}, .k = {1, 2, NAN, NAN}};
            attend_with(&r, entry->name, "causal", positions[way / 2], plain);
            for (int row = 0; row < 4; row++) {
                bool is_nan = false;
                for (int j = 0; j < 4; j++)
                    is_nan = is_nan || isnan(r.weights[4 * row + j]);
                if (is_nan != (row >= 2) || (bool)isnan(r.out[row]) != (row >= 2) ||
                    (strcmp(entry->name, "hard") == 0 && (bool)isnan(r.log_prob[row]) != (row >= 2)))
                    fail_msg("%s on the %s path: row %d has %g, weights %g %g %g %g", entry->name,
                             plain ? "plain" : "fused", row, (double)r.out[row], (double)r.weights[4 * row],
                             (double)r.weights[4 * row + 1], (double)r.weights[4 * row + 2],
                             (double)r.weights[4 * row + 3]);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_scores),
        cmocka_unit_test(neighbouring_scores),
        cmocka_unit_test(nan_scores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
