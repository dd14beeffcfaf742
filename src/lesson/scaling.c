/* "scaling": why the score is divided by the root of d, measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lesson/ask_internal.h"

enum { TRIALS = AT_SCALING_TRIALS, KEYS = AT_SCALING_KEYS, BUCKETS = 32, DEEPEST = AT_SCALING_DEEPEST };

/* A number of mean 0 and variance 1: uniform between -√3 and √3. The bits come from mixing the index
 * (SplitMix64), so they are the same everywhere. */
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

static void fill(trial_arrays *a, uint64_t seed, int64_t d)
{
    memset(a, 0, sizeof *a);
    uint64_t index = 0;
    for (int64_t i = 0; i < TRIALS * d; i++)
        a->query[i] = noise(seed, index++);
    for (int64_t i = 0; i < KEYS * TRIALS * d; i++)
        a->key[i] = noise(seed, index++);
    for (int j = 0; j < KEYS; j++)
        for (int t = 0; t < TRIALS; t++)
            a->value[(j * TRIALS + t) * KEYS + j] = 1;
}

/* The Jacobian of the softmax comes from the operator itself. With the identity as values the output is w, and a bias
 * of zeros on the scores (t5 has one of its own for each of the eight distances) has ∂L/∂e as its gradient. So dL/dout
 * = the m-th unit vector brings column m of the Jacobian: ‖J‖² = Σ_m Σ_j (∂w_m/∂e_j)² */
static bool probe(trial_arrays *a, const char *score, int64_t d, at_scaling *result, at_error *error)
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

bool at_scaling_probe(const char *score, int64_t d, uint64_t seed, at_scaling *result, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    if (d < 1 || d > DEEPEST)
        return at_fail(error, AT_USAGE, "the size d is %lld and must be 1 to %d", (long long)d, DEEPEST);
    trial_arrays *a = malloc(sizeof *a);
    if (!a)
        return at_no_memory(error, "%d queries of %lld numbers", TRIALS, (long long)d);
    *result = (at_scaling){0};
    fill(a, seed, d);
    const bool good = probe(a, score, d, result, error);
    free(a);
    return good;
}

/* {"d": 64}: both scores at one d. */
bool at_answer_scaling(at_ask *ask)
{
    static const char *const scores[] = {"dot", "scaled"};
    enum { SHOWN = 4 };
    if (!at_ask_only(ask, ask->request, "ask d seed"))
        return false;
    const int64_t d = at_ask_count(ask, ask->request, "d", 64, 1, DEEPEST);
    const uint64_t seed = (uint64_t)at_ask_count(ask, ask->request, "seed", 1, 0, INT32_MAX);
    for (int i = 0; i < 2; i++) {
        at_scaling means;
        float shown[SHOWN * KEYS];
        if (!at_scaling_probe(scores[i], d, seed, &means, ask->error))
            return false;
        for (int j = 0; j < SHOWN * KEYS; j++)
            shown[j] = (float)means.weights[j];
        at_put_name(ask, scores[i]);
        at_buffer_print(&ask->text, "{");
        at_put_number(ask, "largest", means.largest);
        at_put_number(ask, "entropy", means.entropy);
        at_put_number(ask, "gradient", means.gradient);
        at_put_matrix(ask, "weights", shown, SHOWN, KEYS);
        at_buffer_print(&ask->text, "}");
    }
    return ask->error->code == AT_OK;
}
