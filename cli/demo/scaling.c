/* Why the score is divided by √d, measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "demo/demo.h"

enum { TRIALS = 64, KEYS = 8, BUCKETS = 32, SHOWN = 4, DEEPEST = 1024 };

/* Means over the trials. */
typedef struct trial_means {
    double largest, entropy, gradient;
    double weights[TRIALS * KEYS];
} trial_means;

/* A number of mean 0 and variance 1: uniform between -√3 and √3. The bits come from mixing the index
 * (SplitMix64), so they are the same wherever the demo runs. */
static float noise(uint64_t seed, uint64_t index)
{
    uint64_t z = (seed << 32) + (index + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (float)(((double)(z >> 11) * 0x1p-53 * 2 - 1) * sqrt(3));
}

/* What the operator works on: every trial is a head of its own, one query against KEYS keys. */
typedef struct trial_arrays {
    float query[TRIALS * DEEPEST];      /* [1, T·d] */
    float key[KEYS * TRIALS * DEEPEST]; /* [K, T·d] */
    float value[KEYS * TRIALS * KEYS];  /* [K, T·K]: the identity for each trial, so that the output is the weights */
    float grad_out[TRIALS * KEYS];      /* [1, T·K] */
    float bias[BUCKETS * TRIALS];       /* [BUCKETS, T]: zeros added to the scores, for the sake of their gradient */
    float grad_bias[BUCKETS * TRIALS];
    float entropy[TRIALS];
    float weights[TRIALS * KEYS]; /* [T, 1, K] */
} trial_arrays;

static void fill(trial_arrays *a, uint64_t seed, int d)
{
    memset(a, 0, sizeof *a);
    uint64_t index = 0;
    for (int i = 0; i < TRIALS * d; i++)
        a->query[i] = noise(seed, index++);
    for (int i = 0; i < KEYS * TRIALS * d; i++)
        a->key[i] = noise(seed, index++);
    for (int j = 0; j < KEYS; j++)
        for (int t = 0; t < TRIALS; t++)
            a->value[(j * TRIALS + t) * KEYS + j] = 1;
}

/* The Jacobian of the softmax comes from the operator itself. With the identity as values the output is w, and a bias
 * of zeros on the scores (t5 has one of its own for each of the eight distances) has ∂L/∂e as its gradient. So dL/dout
 * = the m-th unit vector brings column m of the Jacobian: ‖J‖² = Σ_m Σ_j (∂w_m/∂e_j)² */
static bool probe(trial_arrays *a, const char *score, int d, trial_means *result, at_error *error)
{
    double squares[TRIALS] = {0};
    for (int m = 0; m < KEYS; m++) {
        at_parameter bias = {"bias", 2, {BUCKETS, TRIALS}, a->bias, a->grad_bias};
        at_settings settings = {.score = score, .position = "t5", .heads = TRIALS};
        at_call call = {.batch = 1,
                        .queries = 1,
                        .keys = KEYS,
                        .query_width = TRIALS * d,
                        .key_width = TRIALS * d,
                        .value_width = TRIALS * KEYS,
                        .query = a->query,
                        .key = a->key,
                        .value = a->value,
                        .parameters = &bias,
                        .parameter_count = 1,
                        .weights = a->weights,
                        .entropy = a->entropy,
                        .grad_out = a->grad_out};
        for (int i = 0; i < TRIALS * KEYS; i++)
            a->grad_out[i] = i % KEYS == m;
        if (!at_attend(&settings, &call, error))
            return false;
        for (int i = 0; i < BUCKETS * TRIALS; i++)
            squares[i % TRIALS] += (double)a->grad_bias[i] * a->grad_bias[i];
    }
    for (int t = 0; t < TRIALS; t++) {
        double largest = 0;
        for (int j = 0; j < KEYS; j++) {
            result->weights[t * KEYS + j] = a->weights[t * KEYS + j];
            largest = fmax(largest, result->weights[t * KEYS + j]);
        }
        result->largest += largest / TRIALS;
        result->entropy += a->entropy[t] / TRIALS;
        result->gradient += sqrt(squares[t]) / TRIALS;
    }
    return true;
}

/* Both scores at one d. */
static bool probe_both(const cli_common *options, trial_arrays *a, int d, trial_means *dot, trial_means *scaled,
                       at_error *error)
{
    *dot = *scaled = (trial_means){0};
    fill(a, (uint64_t)options->seed, d);
    return probe(a, "dot", d, dot, error) && probe(a, "scaled", d, scaled, error);
}

bool demo_scaling_table(const cli_common *options, at_error *error)
{
    trial_arrays *a = malloc(sizeof *a);
    trial_means dot = {0}, scaled = {0};
    bool good = a || fail(error, AT_MEMORY, "out of memory for the demo");
    printf("Means over %d random queries, each looking at %d random keys, for growing d:\n\n"
           "              softmax(q·k)                softmax(q·k / √d)\n"
           "       d   largest entropy gradient    largest entropy gradient\n",
           TRIALS, KEYS);
    for (int d = 4; good && d <= DEEPEST; d *= 4) {
        good = probe_both(options, a, d, &dot, &scaled, error);
        if (good)
            printf("    %4d   %7.3f %7.3f %8.4f    %7.3f %7.3f %8.4f\n", d, dot.largest, dot.entropy, dot.gradient,
                   scaled.largest, scaled.entropy, scaled.gradient);
    }
    free(a);
    if (good)
        printf("\nlargest   the largest weight of a row: %.3f if all weighed the same, at most 1\n"
               "entropy   of a row's weights in nats: %.3f if all weighed the same, at least 0\n"
               "gradient  the norm of softmax's Jacobian diag(w) − w wᵀ: how much the weights\n"
               "          answer to the scores\n",
               1.0 / KEYS, log(KEYS));
    return good;
}

bool demo_scaling_maps(const cli_common *options, at_error *error)
{
    trial_arrays *a = malloc(sizeof *a);
    trial_means dot = {0}, scaled = {0};
    bool good = a ? probe_both(options, a, DEEPEST, &dot, &scaled, error)
                  : fail(error, AT_MEMORY, "out of memory for the demo");
    free(a);
    if (!good)
        return false;
    sayf("The first %d of those queries at d = %d, not divided:\n", SHOWN, DEEPEST);
    if (!show_heat(dot.weights, SHOWN, KEYS, NULL, NULL, error))
        return false;
    say("\nand divided by √d:\n");
    if (!show_heat(scaled.weights, SHOWN, KEYS, NULL, NULL, error))
        return false;
    printf("\nNot divided, the softmax lets %.0f times less gradient through.\n", scaled.gradient / dot.gradient);
    return true;
}
