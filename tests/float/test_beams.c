/* at_beams: the steps of a search are those that at_translate takes. Its best path has the score, the units and the weights
 * of the result, sums are sums, and what was kept is better than what was not. */
/* cmocka.h needs these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "attend_unstable.h"
#include "translator_of.h"

enum { WIDTH = 3 };
static const at_line source = {"abcd efg", 8};

static bool compare_best(void *context, int64_t line, const at_result *result)
{
    const at_beams *beams = context;
    const at_hypothesis *best = &result->best[0];
    int64_t t = 0;
    (void)line;
    assert_int_equal(beams->source_units, result->source_units);
    for (int64_t s = 0; s < beams->source_units; s++)
        assert_string_equal(beams->source_names[s], result->source_names[s]);
    for (int64_t i = 0; i < beams->count; i++) {
        const at_beam_unit *u = &beams->unit[i];
        if (!u->best)
            continue;
        assert_true(u->kept);
        assert_int_equal(u->step, t);
        assert_string_equal(u->name, t < best->count ? best->names[t] : "</s>");
        assert_memory_equal(beams->weights + (beams->looks[t] + u->parent) * beams->source_units,
                            best->weights + t * beams->source_units, (size_t)beams->source_units * sizeof(float));
        if (t++ == best->count)
            assert_true(u->score == best->score && u->ended);
    }
    assert_int_equal(t, best->count + 1);
    return true;
}

/* Sums, parents and what is kept, step by step. */
static void compare_steps(const at_beams *beams)
{
    double before[WIDTH] = {0};
    int64_t live = 1, i = 0, ended = 0;
    for (int64_t step = 0; step < beams->steps; step++) {
        double after[WIDTH], worst = INFINITY;
        int64_t next = 0, kept = 0, parents = live;
        for (; i < beams->count && beams->unit[i].step == step; i++) {
            const at_beam_unit *u = &beams->unit[i];
            assert_in_range(u->parent, 0, parents - 1);
            assert_true(u->score == before[u->parent] + u->log_prob && u->log_prob <= 0);
            assert_true(u->score <= worst);
            worst = u->kept ? u->score : worst; /* those that are kept come in order, and before the others */
            kept += u->kept;
            ended += u->kept && u->ended;
            if (u->kept && !u->ended)
                after[next++] = u->score;
        }
        assert_in_range(kept, 1, WIDTH);
        assert_true(next <= WIDTH);
        memcpy(before, after, sizeof before);
        live = next;
    }
    assert_int_equal(i, beams->count);
    assert_true(ended > 0);
}

static void test_steps(void **state)
{
    (void)state;
    static const char *const models[] = {"transformer layers=2 heads=2 hidden=8 ffn=12",
                                         "bahdanau embedding=6 hidden=6"};
    for (size_t m = 0; m < 2; m++)
        for (uint64_t seed = 1; seed < 6; seed++) {
            at_error error = {0};
            at_translator *t = translator_of(models[m], seed);
            const at_search_settings settings = {.beam = WIDTH, .wants_weights = true, .max_length = 12};
            at_beams *beams = at_beams_new(t, &settings, &source, &error);
            assert_non_null(beams);
            assert_true(beams->count > beams->steps);
            compare_steps(beams);
            assert_true(at_translate(t, &settings, &source, 1, compare_best, beams, &error));
            at_beams_free(beams);
            at_translator_free(t);
        }
}

static void test_edges(void **state)
{
    (void)state;
    at_error error = {0};
    const at_line empty = {"", 0};
    at_translator *t = translator_of("transformer layers=1 heads=2 hidden=8 ffn=12", 1),
                  *lm = translator_of("transformer-lm layers=1 heads=2 hidden=8 ffn=12", 1);
    at_beams *beams = at_beams_new(t, &(at_search_settings){.beam = 2}, &empty, &error);
    assert_non_null(beams);
    assert_int_equal(beams->count, 0);
    at_beams_free(beams);
    at_beams_free(NULL);
    assert_null(at_beams_new(lm, &(at_search_settings){.beam = 2}, &source, &error));
    assert_int_equal(error.code, AT_UNSUPPORTED);
    at_translator_free(t);
    at_translator_free(lm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
