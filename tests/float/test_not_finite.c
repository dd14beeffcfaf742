/* A model whose numbers are not finite has no probabilities: search, sampling and forced decoding fail and name the line,
 * for a single model and an ensemble. Large finite logits have the probabilities of small ones. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_model.h"
#include "search/search_internal.h"

static const at_line lines[] = {{"a", 1}, {"bb", 2}, {"cab", 3}};
static const at_line starts[] = {{"a\tc", 3}, {"bb\tc", 4}, {"cab\tc", 5}};
static const at_line targets[] = {{"abc", 3}, {"b", 1}, {"cc", 2}};
enum { LINES = 3, DAMAGED = 1 };

static bool ignore(void *context, int64_t line, const at_result *result)
{
    (void)context, (void)line, (void)result;
    return true;
}

/* One call over all lines with these settings; forced decoding of the targets if there are no settings. */
static bool run(fake *f, const at_search_settings *settings, at_on_result *on_result, void *context, bool *not_finite,
                at_error *error)
{
    at_search_settings complete = settings ? *settings : (at_search_settings){0};
    assert_true(at_search_complete(&complete, error));
    const at_search_job job = {.translator = &f->translator,
                               .settings = &complete,
                               .lines = complete.prefix ? starts : lines,
                               .targets = settings ? NULL : targets,
                               .count = LINES,
                               .on_result = on_result,
                               .context = context,
                               .not_finite = not_finite};
    return settings ? at_search(&job, error) : at_forced(&job, error);
}

static const at_search_settings ways[] = {
    {.beam = 1}, {.beam = 3, .n_best = 2}, {.temperature = 1}, {.prefix = true}, {.wants_weights = true}};
enum { WAYS = sizeof ways / sizeof *ways };

/* The source of line DAMAGED as the fake model counts sources. */
static int64_t damaged_source(const fake *f)
{
    int32_t ids[8];
    int64_t replaced, count = at_vocabulary_encode(f->translator.source, lines[DAMAGED].text, lines[DAMAGED].size, ids,
                                                   8, &replaced, NULL);
    return source_sum(ids, count);
}

static void test_not_finite_logits_fail(void **state)
{
    (void)state;
    const float values[] = {(float)NAN, INFINITY, -INFINITY};
    fake f;
    fake_open(&f, "char", "abc", "char", "abc");
    for (int member = 0; member < 2; member++) {
        fake_ensemble(&f, member > 0);
        shape.damaged = damaged_source(&f) + SUMS * member;
        for (int v = 0; v < 3; v++)
            for (int w = 0; w <= WAYS; w++) {
                at_error error = {0};
                bool not_finite = false;
                shape.damage = values[v];
                assert_false(run(&f, w < WAYS ? &ways[w] : NULL, ignore, NULL, &not_finite, &error));
                assert_true(not_finite);
                assert_int_equal(error.code, AT_FAILED);
                assert_string_equal(error.text, "line 2: the model's scores of the next unit are not finite; its "
                                                "parameters are too large, as after a training that diverged, so it is "
                                                "of no use");
            }
    }
    shape.damaged = -1;
    fake_close(&f);
}

static bool add_score(void *context, int64_t line, const at_result *result)
{
    (void)line;
    *(double *)context += result->best[0].score;
    return true;
}

/* Equal logits of any size mean equal probabilities. Adding log(sum) to a large maximum would make each of them 1. */
static void test_large_logits(void **state)
{
    (void)state;
    fake f;
    fake_open(&f, "char", "abc", "char", "abc");
    const double units = (double)at_vocabulary_size(f.translator.target);
    const float offsets[] = {0, 1e6f, -1e20f, 3e38f, -3e38f};
    shape.spread = shape.end = 0;
    for (int i = 0; i < 5; i++) {
        at_error error = {0};
        double score = 0;
        shape.offset = offsets[i];
        assert_true(run(&f, NULL, add_score, &score, NULL, &error));
        assert_true(fabs(score + 9 * log(units)) < 1e-5); /* six units and three ends */
        for (int w = 0; w < WAYS; w++)
            assert_true(run(&f, &ways[w], add_score, &score, NULL, &error) && score < -9 * log(units) - w);
    }
    shape.spread = 1;
    shape.end = 0.5f;
    shape.offset = 0;
    fake_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_finite_logits_fail),
        cmocka_unit_test(test_large_logits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
