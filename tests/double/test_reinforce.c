/* The gradient of hard attention is estimated from one sample. Its mean over many samples is compared with the exact
 * gradient: the sum over all possible samples, each weighted by its probability, with derivatives by central
 * differences.
 * */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tape/ops.h"
#include "train/loss_internal.h"

enum { KEYS = 3, STEPS = 2, PATHS = 9, DRAWS = 30000 };

static const int32_t source_ids[KEYS] = {4, 5, 6};
static const int64_t source_lengths[1] = {KEYS}, target_lengths[1] = {STEPS};
static const int32_t input_ids[STEPS] = {AT_BEGIN, 4}, target_ids[STEPS] = {4, AT_END};
static const at_batch batch = {.rows = 1,
                               .source_length = KEYS,
                               .target_length = STEPS,
                               .source = source_ids,
                               .source_lengths = source_lengths,
                               .input = input_ids,
                               .target = target_ids,
                               .target_lengths = target_lengths,
                               .source_tokens = KEYS,
                               .target_tokens = STEPS};

static at_model *model;
static at_loss job;
static const at_loss_options options = {.reinforce = 1, .entropy = 0.3, .baseline = 0.9, .expectation = 0.5};

static void begin(void)
{
    at_error error = {0};
    at_model_settings settings = {.model = "bahdanau",
                                  .embedding = 2,
                                  .hidden = 2,
                                  .attention = 2,
                                  .maxout = 2,
                                  .normaliser = "hard",
                                  .source_size = 7,
                                  .target_size = 6};
    assert_true(at_model_settings_complete(&settings, NULL, &error));
    model = at_model_new(&settings, 5, &error);
    assert_non_null(model);
    job = (at_loss){.model = model, .arena = at_arena_new(), .rng = {.seed = 3}, .options = options};
    /* Parameters large enough for the samples to matter and to be far from uniform. */
    at_params *params = model->params;
    at_rng rng = {.seed = 8};
    for (int64_t i = 0; i < at_params_count(params); i++)
        at_params_values(params)[i] = 1.5 * at_rng_normal(&rng);
    at_params_changed(params);
}

static void end(void)
{
    at_model_free(model);
    at_arena_free(job.arena);
}

/* The results of one sample: -log p(y|s), log p(s), H(s), and which keys were selected. */
typedef struct outcome {
    double loss, log_prob, entropy;
    int path;
} outcome;

static bool expectation; /* instead of samples */

static outcome decode(uint64_t counter)
{
    at_arena_reset(job.arena);
    at_tape *tape = at_tape_new(job.arena, false);
    at_rng rng = {.seed = 99, .counter = counter};
    at_pass pass = {.tape = tape, .rng = &rng, .expectation = expectation};
    at_source source = {.rows = 1, .length = KEYS, .ids = source_ids, .lengths = source_lengths};
    at_parts encoded = at_model_encode(model, &pass, &source);
    at_parts state = at_model_start(model, &pass, &source, &encoded);
    at_decoded d = at_model_decode(model, &pass, &source, &encoded, &state, input_ids, STEPS);
    at_tensor *loss = at_cross_entropy(at_reshape(d.logits, AT_SHAPE(STEPS, 6)), target_ids, 0);
    assert_non_null(loss);
    outcome o = {.loss = loss->value[0]};
    for (int t = 0; t < STEPS && d.log_prob; t++) {
        o.log_prob += d.log_prob->value[t];
        o.entropy += d.entropy->value[t];
        for (int k = 0; k < KEYS; k++)
            if (d.weights->value[t * KEYS + k] == 1)
                o.path = o.path * KEYS + k;
    }
    return o;
}

/* The derivatives of an outcome by one parameter; the same counter selects the same keys on both sides. */
static outcome central(double *value, uint64_t counter, int path)
{
    const double h = 1e-5, now = *value;
    at_params *params = model->params;
    outcome side[2];
    for (int s = 0; s < 2; s++) {
        *value = now + (s ? -h : h);
        at_params_changed(params);
        side[s] = decode(counter);
        assert_int_equal(side[s].path, path);
    }
    *value = now;
    at_params_changed(params);
    return (outcome){.loss = (side[0].loss - side[1].loss) / (2 * h),
                     .log_prob = (side[0].log_prob - side[1].log_prob) / (2 * h),
                     .entropy = (side[0].entropy - side[1].entropy) / (2 * h)};
}

/* The mean that half hard, half soft batches must have:
 *   1/2 grad soft loss + 1/2 sum_s p(s) [grad loss_s + lambda_r loss_s grad log p(s) - lambda_e grad H(s)]
 * The baseline is not in it: sum_s p(s) grad log p(s) = 0. */
static void exact(double *gradient, int64_t count)
{
    double *values = at_params_values(model->params);
    uint64_t counter[PATHS];
    outcome at[PATHS];
    bool found[PATHS] = {false};
    int seen = 0;
    for (uint64_t c = 0; seen < PATHS; c += 16) {
        assert_true(c < 16 * 200000);
        outcome o = decode(c);
        if (!found[o.path]) {
            found[o.path] = true;
            counter[o.path] = c;
            at[o.path] = o;
            seen++;
        }
    }
    double sum = 0;
    for (int s = 0; s < PATHS; s++)
        sum += exp(at[s].log_prob);
    assert_true(fabs(sum - 1) < 1e-9);
    for (int64_t i = 0; i < count; i++) {
        double hard = 0;
        for (int s = 0; s < PATHS; s++) {
            outcome d = central(&values[i], counter[s], s);
            hard += exp(at[s].log_prob) *
                    (d.loss + options.reinforce * at[s].loss * d.log_prob - options.entropy * d.entropy);
        }
        expectation = true;
        double soft = central(&values[i], 0, 0).loss;
        expectation = false;
        gradient[i] = 0.5 * soft + 0.5 * hard;
    }
}

static void the_mean_is_exact(void **state)
{
    (void)state;
    begin();
    at_error error = {0};
    at_params *params = model->params;
    int64_t count = at_params_count(params);
    double *should = calloc((size_t)count, sizeof *should), *sum = calloc((size_t)count, sizeof *sum);
    double *squares = calloc((size_t)count, sizeof *squares), *g = at_params_grads(params);
    exact(should, count);
    for (int n = 0; n < DRAWS; n++) {
        double loss;
        memset(g, 0, (size_t)count * sizeof *g);
        assert_true(at_batch_loss(&job, &batch, true, &loss, &error));
        for (int64_t i = 0; i < count; i++) {
            sum[i] += g[i];
            squares[i] += g[i] * g[i];
        }
    }
    /* Five standard errors: with about 150 parameters none deviates that far by chance. */
    double largest = 0;
    for (int64_t i = 0; i < count; i++) {
        double mean = sum[i] / DRAWS, deviation = sqrt(fmax(squares[i] / DRAWS - mean * mean, 0) / DRAWS);
        if (!(fabs(mean - should[i]) <= 5 * deviation + 1e-8))
            fail_msg("parameter %lld has mean %g +- %g and should have %g", (long long)i, mean, deviation, should[i]);
        largest = fmax(largest, fabs(should[i]) / (deviation + 1e-8));
    }
    assert_true(largest > 50); /* the errors are small compared to the gradient */
    free(should);
    free(sum);
    free(squares);
    end();
}

/* b <- 0.9 b + 0.1 log p(y|s) of a sentence, the mean over those of a batch; batches without a sample do not change it.
 */
static void the_baseline_is_a_mean_over_sentences(void **state)
{
    (void)state;
    begin();
    at_error error = {0};
    const int32_t source[2 * KEYS] = {4, 5, 6, 5, 4, -1}, input[2 * STEPS] = {AT_BEGIN, 4, AT_BEGIN, 0};
    const int32_t target[2 * STEPS] = {4, AT_END, AT_END, -1};
    const int64_t sources[2] = {3, 2}, targets[2] = {2, 1};
    at_batch two = batch;
    two.rows = 2;
    two.source = source;
    two.source_lengths = sources;
    two.input = input;
    two.target = target;
    two.target_lengths = targets;
    two.source_tokens = 5;
    two.target_tokens = 3;
    int moved = 0;
    for (int i = 0; i < 40; i++) {
        double before = job.baseline, loss;
        assert_true(at_batch_loss(&job, &two, true, &loss, &error));
        if (job.baseline == before)
            continue;
        assert_true(fabs(job.baseline - (0.9 * before - 0.1 * loss / 2)) < 1e-12);
        moved++;
    }
    assert_true(moved > 5 && moved < 35);
    end();
}

/* In the gradient of the loss, b occurs once per sentence: it adds lambda_r b grad log p(s). */
static void the_baseline_counts_once(void **state)
{
    (void)state;
    begin();
    at_error error = {0};
    at_params *params = model->params;
    int64_t count = at_params_count(params);
    double *first = calloc((size_t)count, sizeof *first), *g = at_params_grads(params), loss;
    uint64_t start = 0;
    at_rng probe;
    do {
        start += 16;
        probe = (at_rng){.seed = 99, .counter = start};
    } while (at_rng_uniform(&probe) < 0.5); /* such a batch would use the expectation */
    const double baseline[2] = {0, -1.5};
    for (int b = 0; b < 2; b++) {
        job.rng = (at_rng){.seed = 99, .counter = start};
        job.baseline = baseline[b];
        memset(g, 0, (size_t)count * sizeof *g);
        assert_true(at_batch_loss(&job, &batch, true, &loss, &error));
        if (b == 0)
            memcpy(first, g, (size_t)count * sizeof *g);
    }
    int path = decode(probe.counter).path;
    for (int64_t i = 0; i < count; i++) {
        double should = baseline[1] * central(&at_params_values(params)[i], probe.counter, path).log_prob;
        assert_true(fabs(g[i] - first[i] - should) < 1e-7);
    }
    free(first);
    end();
}

/* ---- All samples at once ---- */

/* A start of the random numbers for each path, with which a batch samples that path. */
static void find_paths(uint64_t *counter, outcome *at)
{
    bool found[PATHS] = {false};
    int seen = 0;
    for (uint64_t c = 0; seen < PATHS; c += 16) {
        assert_true(c < 16 * 200000);
        at_rng rng = {.seed = 99, .counter = c};
        at_rng_uniform(&rng); /* sample or expectation */
        outcome o = decode(rng.counter);
        if (found[o.path])
            continue;
        found[o.path] = true;
        counter[o.path] = c;
        at[o.path] = o;
        seen++;
    }
}

/* sum_s p(s) loss_s and its derivative by one parameter */
static double expected_loss(const uint64_t *counter)
{
    double sum = 0;
    for (int s = 0; s < PATHS; s++) {
        at_rng rng = {.seed = 99, .counter = counter[s]};
        at_rng_uniform(&rng);
        outcome o = decode(rng.counter);
        assert_int_equal(o.path, s);
        sum += exp(o.log_prob) * o.loss;
    }
    return sum;
}

static double derivative(const uint64_t *counter, double *value)
{
    const double h = 1e-5, now = *value;
    double side[2];
    for (int s = 0; s < 2; s++) {
        *value = now + (s ? -h : h);
        at_params_changed(model->params);
        side[s] = expected_loss(counter);
    }
    *value = now;
    at_params_changed(model->params);
    return (side[0] - side[1]) / (2 * h);
}

/* Variances summed over parameters: all, and those of attention, which decide what is sampled. */
typedef struct variances {
    double all, attention;
} variances;

/* The mean of the estimator over all samples, and its variance. */
static variances estimate(const uint64_t *counter, const outcome *at, double baseline, double *mean)
{
    at_error error = {0};
    at_params *params = model->params;
    const int64_t count = at_params_count(params);
    double *g = at_params_grads(params), *squares = calloc((size_t)count, sizeof *squares), loss;
    memset(mean, 0, (size_t)count * sizeof *mean);
    for (int s = 0; s < PATHS; s++) {
        const double p = exp(at[s].log_prob);
        job.rng = (at_rng){.seed = 99, .counter = counter[s]};
        job.baseline = baseline;
        memset(g, 0, (size_t)count * sizeof *g);
        assert_true(at_batch_loss(&job, &batch, true, &loss, &error));
        assert_true(fabs(loss - at[s].loss) < 1e-12);
        for (int64_t i = 0; i < count; i++) {
            mean[i] += p * g[i];
            squares[i] += p * g[i] * g[i];
        }
    }
    variances v = {0};
    int64_t i = 0;
    for (int p = 0; p < at_params_number(params); p++)
        for (int64_t k = 0; k < at_shape_count(at_params_shape(params, p)); k++, i++) {
            const double one = squares[i] - mean[i] * mean[i];
            v.all += one;
            v.attention += strncmp(at_params_name(params, p), "attention.", 10) == 0 ? one : 0;
        }
    free(squares);
    return v;
}

/* With lambda_r 1 and every batch sampled, the estimator's expectation is the gradient of the expected loss, whatever the
 * baseline, which makes its variance smaller. */
static void every_sample_with_its_probability(void **state)
{
    (void)state;
    begin();
    job.options = (at_loss_options){.reinforce = 1, .baseline = 0.9};
    const int64_t count = at_params_count(model->params);
    double *mean = calloc((size_t)count, sizeof *mean), reward = 0, length = 0;
    variances variance[3];
    uint64_t counter[PATHS];
    outcome at[PATHS];
    find_paths(counter, at);
    for (int s = 0; s < PATHS; s++)
        reward -= exp(at[s].log_prob) * at[s].loss;
    const double baseline[3] = {0, reward, -5};
    for (int b = 0; b < 3; b++) {
        variance[b] = estimate(counter, at, baseline[b], mean);
        length = 0;
        for (int64_t i = 0; i < count; i++) {
            const double should = derivative(counter, &at_params_values(model->params)[i]);
            length += should * should;
            if (!(fabs(mean[i] - should) <= 1e-7 * (1 + fabs(should))))
                fail_msg("baseline %g, parameter %lld: the mean is %.10g and must be %.10g", baseline[b], (long long)i,
                         mean[i], should);
        }
    }
    print_message("squared length of the gradient %.2f\nvariance of the estimate     all parameters  of attention\n"
                  "without a baseline           %14.2f  %12.3f\nwith the mean reward, %5.2f  %14.2f  %12.3f\n",
                  length, variance[0].all, variance[0].attention, reward, variance[1].all, variance[1].attention);
    assert_true(variance[1].all < variance[0].all && variance[1].attention < variance[0].attention);
    free(mean);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_is_exact),
        cmocka_unit_test(the_baseline_is_a_mean_over_sentences),
        cmocka_unit_test(the_baseline_counts_once),
        cmocka_unit_test(every_sample_with_its_probability),
    };
    at_threads_set(1); /* the model is too small for more threads */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
