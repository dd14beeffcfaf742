/* Optimisers and schedules against their formulas, computed one number at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "train/optimise.h"

enum { SMALL = 7, LARGE = 300001 };

static at_params *some_params(int64_t count, uint64_t seed)
{
    at_error error = {0};
    at_params *params = at_params_new();
    at_params_add(params, "w", AT_SHAPE(count), &error);
    assert_true(at_params_fix(params, &error));
    at_rng rng = {.seed = seed};
    for (int64_t i = 0; i < count; i++)
        at_params_values(params)[i] = at_rng_normal(&rng);
    return params;
}

static void some_grads(at_params *params, uint64_t seed)
{
    at_rng rng = {.seed = seed};
    for (int64_t i = 0; i < at_params_count(params); i++)
        at_params_grads(params)[i] = at_rng_normal(&rng);
}

static void near(double is, double should_be)
{
    if (!(fabs(is - should_be) <= 1e-13 * (1 + fabs(should_be))))
        fail_msg("%.17g where %.17g should be", is, should_be);
}

static const at_optimiser_settings plain = {
    .learning_rate = 0.01, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.1};

/* Five updates of each kind; in the third the gradient is large, so that only there clipping at 4 has an effect. */
static void each_kind(void **state)
{
    (void)state;
    for (at_optimiser_kind kind = AT_ADAM; kind <= AT_SGD; kind++) {
        at_optimiser_settings settings = plain;
        settings.kind = kind;
        settings.clip_norm = 4;
        settings.ema = 0.5;
        if (kind == AT_ADADELTA) {
            settings.beta1 = 0.95;
            settings.epsilon = 1e-6;
            settings.learning_rate = 1;
        }
        at_error error = {0};
        at_params *params = some_params(SMALL, 1);
        at_optimiser *optimiser = at_optimiser_new(&settings, params, &error);
        assert_non_null(optimiser);
        double w[SMALL], a[SMALL], m[SMALL] = {0}, v[SMALL] = {0}, norm;
        memcpy(w, at_params_values(params), sizeof w);
        memcpy(a, w, sizeof a);
        for (int t = 1; t <= 5; t++) {
            double g[SMALL], squares = 0, scale = t == 3 ? 7 : 0.25;
            some_grads(params, 10 + t);
            for (int i = 0; i < SMALL; i++) {
                g[i] = at_params_grads(params)[i] * scale;
                squares += g[i] * g[i];
            }
            assert_int_equal(sqrt(squares) > 4, t == 3);
            bool skipped = true;
            assert_true(at_optimiser_step(optimiser, scale, &norm, &skipped, &error));
            assert_false(skipped);
            near(norm, sqrt(squares));
            near(at_optimiser_rate(optimiser), settings.learning_rate);
            assert_int_equal(at_optimiser_steps(optimiser), t);
            for (int i = 0; i < SMALL; i++) {
                if (t == 3)
                    g[i] *= 4 / sqrt(squares);
                if (kind == AT_ADAM || kind == AT_ADAMW) {
                    m[i] = 0.9 * m[i] + 0.1 * g[i];
                    v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
                    double step = m[i] / (1 - pow(0.9, t)) / (sqrt(v[i] / (1 - pow(0.999, t))) + 1e-8);
                    if (kind == AT_ADAMW)
                        w[i] -= 0.01 * 0.1 * w[i];
                    w[i] -= 0.01 * step;
                } else if (kind == AT_ADADELTA) {
                    m[i] = 0.95 * m[i] + 0.05 * g[i] * g[i];
                    double d = sqrt(v[i] + 1e-6) / sqrt(m[i] + 1e-6) * g[i];
                    v[i] = 0.95 * v[i] + 0.05 * d * d;
                    w[i] -= d;
                } else {
                    w[i] -= 0.01 * g[i];
                }
                double keep = fmin(0.5, (1.0 + t) / (10.0 + t));
                a[i] = keep * a[i] + (1 - keep) * w[i];
                near(at_params_values(params)[i], w[i]);
                near(at_optimiser_ema(optimiser)[i], a[i]);
                assert_true(at_params_grads(params)[i] == 0);
            }
        }
        at_optimiser_free(optimiser);
        at_params_free(params);
    }
}

/* A gradient that is not finite changes nothing, and the next update continues as if it had not occurred. */
static void not_finite(void **state)
{
    (void)state;
    const double bad[] = {NAN, INFINITY, -INFINITY};
    for (int b = 0; b < 3; b++) {
        at_error error = {0};
        at_params *params = some_params(LARGE, 1), *other = some_params(LARGE, 1);
        at_optimiser *optimiser = at_optimiser_new(&plain, params, &error);
        at_optimiser *judge = at_optimiser_new(&plain, other, &error);
        for (int t = 0; t < 3; t++) {
            double norm;
            bool skipped = false;
            if (t == 1) {
                some_grads(params, 5);
                at_params_grads(params)[LARGE - 1] = bad[b];
                assert_true(at_optimiser_step(optimiser, 1, &norm, &skipped, &error));
                assert_true(skipped && !isfinite(norm));
                assert_int_equal(at_optimiser_steps(optimiser), 1);
                for (int64_t i = 0; i < LARGE; i++)
                    assert_true(at_params_grads(params)[i] == 0);
                continue;
            }
            some_grads(params, 10 + t);
            some_grads(other, 10 + t);
            assert_true(at_optimiser_step(optimiser, 1, &norm, &skipped, &error));
            assert_true(at_optimiser_step(judge, 1, &norm, &skipped, &error));
        }
        assert_memory_equal(at_params_values(params), at_params_values(other), LARGE * sizeof(double));
        at_optimiser_free(optimiser);
        at_optimiser_free(judge);
        at_params_free(params);
        at_params_free(other);
    }
}

/* The same bits on 1, 2 and 3 threads, and after a save and a load half-way. */
static void same_bits(void **state)
{
    (void)state;
    for (at_optimiser_kind kind = AT_ADAM; kind <= AT_SGD; kind++) {
        at_error error = {0};
        at_optimiser_settings settings = plain;
        settings.kind = kind;
        settings.clip_norm = 1;
        settings.ema = 0.99;
        settings.schedule = AT_INVERSE_SQRT;
        settings.warmup = 2;
        at_params *params[4];
        double norms[4];
        for (int run = 0; run < 4; run++) {
            at_threads_set(run < 3 ? run + 1 : 2);
            params[run] = some_params(LARGE, 1);
            at_optimiser *optimiser = at_optimiser_new(&settings, params[run], &error);
            for (int t = 1; t <= 4; t++) {
                bool skipped;
                some_grads(params[run], 20 + t);
                assert_true(at_optimiser_step(optimiser, 0.5, &norms[run], &skipped, &error));
                if (run == 3 && t == 2) {
                    at_tensors *saved = at_tensors_new();
                    assert_true(at_optimiser_save(optimiser, saved, &error));
                    at_optimiser_free(optimiser);
                    optimiser = at_optimiser_new(&settings, params[run], &error);
                    assert_true(at_optimiser_load(optimiser, saved, &error));
                    at_tensors_free(saved);
                }
            }
            if (run > 0) {
                assert_memory_equal(at_params_values(params[0]), at_params_values(params[run]), LARGE * sizeof(double));
                assert_true(norms[0] == norms[run]);
            }
            at_optimiser_free(optimiser);
        }
        for (int run = 0; run < 4; run++)
            at_params_free(params[run]);
    }
    at_threads_set(0);
}

#if defined(__SSE2__)
/* The moments of parameters without gradients decay to zero and do not stop at denormal numbers, which are slow. */
static void decayed_moments_are_zero(void **state)
{
    (void)state;
    at_error error = {0};
    at_params *params = some_params(SMALL, 1);
    at_optimiser *optimiser = at_optimiser_new(&plain, params, &error);
    double norm;
    bool skipped;
    some_grads(params, 2);
    for (int i = 0; i < 7200; i++) /* 0.9^7200 is below the smallest denormal number */
        assert_true(at_optimiser_step(optimiser, 1, &norm, &skipped, &error));
    at_tensors *saved = at_tensors_new();
    assert_true(at_optimiser_save(optimiser, saved, &error));
    const double *first = at_tensors_get(saved, "training.first")->data;
    const double *second = at_tensors_get(saved, "training.second")->data;
    for (int i = 0; i < SMALL; i++)
        assert_true(first[i] == 0 && second[i] > 0);
    volatile double least = 4.9e-324; /* elsewhere small numbers are not changed */
    assert_true(least / 1 > 0);
    at_tensors_free(saved);
    at_optimiser_free(optimiser);
    at_params_free(params);
}
#endif

static void schedules(void **state)
{
    (void)state;
    at_optimiser_settings s = {.learning_rate = 2, .schedule = AT_CONSTANT};
    near(at_schedule_rate(&s, 1), 2);
    s.warmup = 4;
    near(at_schedule_rate(&s, 1), 0.5);
    near(at_schedule_rate(&s, 4), 2);
    near(at_schedule_rate(&s, 9), 2);
    s = (at_optimiser_settings){.learning_rate = 1, .schedule = AT_NOAM, .warmup = 4000, .width = 512};
    near(at_schedule_rate(&s, 1), 1 / sqrt(512) / pow(4000, 1.5));
    near(at_schedule_rate(&s, 4000), 1 / sqrt(512) / sqrt(4000));
    near(at_schedule_rate(&s, 16000), 1 / sqrt(512) / sqrt(16000));
    s = (at_optimiser_settings){.learning_rate = 3, .schedule = AT_INVERSE_SQRT, .warmup = 100};
    near(at_schedule_rate(&s, 50), 1.5);
    near(at_schedule_rate(&s, 100), 3);
    near(at_schedule_rate(&s, 400), 1.5);
    s.warmup = 0;
    near(at_schedule_rate(&s, 4), 1.5);
    s = (at_optimiser_settings){.learning_rate = 2, .schedule = AT_COSINE, .warmup = 10, .updates = 110};
    near(at_schedule_rate(&s, 5), 1);
    near(at_schedule_rate(&s, 10), 2);
    near(at_schedule_rate(&s, 60), 1);
    near(at_schedule_rate(&s, 35), 1 + cos(M_PI / 4));
    near(at_schedule_rate(&s, 110), 0);
    near(at_schedule_rate(&s, 200), 0);
}

static void refused(at_optimiser_settings settings, const char *message)
{
    at_error error = {0};
    at_params *params = some_params(SMALL, 1);
    assert_null(at_optimiser_new(&settings, params, &error));
    assert_string_equal(error.text, message);
    at_params_free(params);
}

static void refusals(void **state)
{
    (void)state;
    at_optimiser_settings s = plain;
    s.learning_rate = 0;
    refused(s, "`learning-rate` must be a number above 0, not 0");
    s = plain;
    s.beta2 = 1;
    refused(s, "the optimiser's decays must be from 0 to below 1, not 0.9 and 1");
    s = plain;
    s.ema = NAN;
    refused(s, "`ema` must be from 0 to below 1, not nan");
    s = plain;
    s.schedule = AT_COSINE;
    refused(s, "the schedule 'cosine' needs `updates`, which must be more than the 0 of `warmup`");

    /* Loading the state of another optimiser or model fails and changes nothing. */
    at_error error = {0};
    at_params *params = some_params(SMALL, 1), *more = some_params(SMALL + 1, 1);
    s = plain;
    s.kind = AT_SGD;
    at_optimiser *adam = at_optimiser_new(&plain, params, &error), *sgd = at_optimiser_new(&s, params, &error);
    at_optimiser *larger = at_optimiser_new(&plain, more, &error);
    at_tensors *saved = at_tensors_new();
    assert_true(at_optimiser_save(adam, saved, &error));
    assert_false(at_optimiser_load(sgd, saved, &error));
    assert_string_equal(error.text, "the training state has 'training.first': it was written with another `optimiser` "
                                    "or `ema`");
    error = (at_error){0};
    assert_false(at_optimiser_load(larger, saved, &error));
    assert_string_equal(error.text,
                        "'training.first' of the training state does not hold 8 numbers, one per parameter");
    at_tensors_free(saved);
    at_optimiser_free(adam);
    at_optimiser_free(sgd);
    at_optimiser_free(larger);
    at_params_free(params);
    at_params_free(more);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(schedules),
        cmocka_unit_test(refusals),
#if defined(__SSE2__)
        cmocka_unit_test(decayed_moments_are_zero),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
