/* The operator through at_attend against PyTorch's numbers (tests/ref, with the script that wrote them): values,
 * weights, summaries and every gradient, on the plain and the fused path, all queries in one call and one query at a
 * time, and with each set of kernels. */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attend.h"
#include "kernels/rows.h"

enum { MOST_PARAMETERS = 8, MOST_KEYS = 256 };

static at_tensors *reference;

static const at_array *get(const char *name, const char *part)
{
    char full[128];
    snprintf(full, sizeof full, "%s/%s", name, part);
    return at_tensors_get(reference, full);
}

static const at_array *must_get(const char *name, const char *part)
{
    const at_array *array = get(name, part);
    if (!array)
        fail_msg("the reference file has no %s/%s", name, part);
    return array;
}

static float *zeros(int64_t count)
{
    float *memory = calloc((size_t)count + 1, sizeof *memory);
    assert_non_null(memory);
    return memory;
}

/* Compares with the reference and releases `got`; `what` and `path` are for the message. */
static void compare(const char *name, const char *part, float *got, const char *path)
{
    const at_array *want = must_get(name, part);
    const float *values = want->data;
    for (int64_t i = 0; i < at_array_count(want); i++)
        if (!(fabsf(got[i] - values[i]) <= 1e-5f + 1e-5f * fabsf(values[i])))
            fail_msg("%s, %s: %s[%d] is %.8g, PyTorch has %.8g", name, path, part, (int)i, (double)got[i],
                     (double)values[i]);
    free(got);
}

static float *like(const char *name, const char *part)
{
    return zeros(at_array_count(must_get(name, part)));
}

/* The summaries that follow from the reference weights [B,H,Q,K]. */
static void compare_summaries(const char *name, const at_call *call, const char *path)
{
    const at_array *array = get(name, "weights");
    if (!array)
        return;
    const float *w = array->data;
    int64_t rows = array->dim[0] * array->dim[1] * call->queries, keys = call->keys;
    assert_true(keys <= MOST_KEYS);
    for (int64_t r = 0; r < rows; r += call->queries) {
        double sums[MOST_KEYS] = {0};
        for (int64_t i = 0; i < call->queries; i++) {
            const float *row = w + (r + i) * keys;
            double entropy = 0, largest = 0;
            for (int64_t j = 0; j < keys; j++) {
                sums[j] += (double)row[j];
                entropy -= row[j] > 0 ? (double)row[j] * log((double)row[j]) : 0;
                largest = fmax(largest, (double)row[j]);
            }
            int32_t best = call->argmax[r + i];
            assert_in_range(best + 1, 0, keys);
            if (fabs((best < 0 ? 0 : (double)row[best]) - largest) > 1e-5)
                fail_msg("%s, %s: argmax of row %d is key %d, which has not the largest weight", name, path,
                         (int)(r + i), best);
            if (!(fabs((double)call->entropy[r + i] - entropy) <= 2e-5))
                fail_msg("%s, %s: entropy of row %d is %g, should be %g", name, path, (int)(r + i),
                         (double)call->entropy[r + i], entropy);
        }
        for (int64_t j = 0; j < keys; j++)
            if (!(fabs((double)call->key_sums[r / call->queries * keys + j] - sums[j]) <= 2e-5))
                fail_msg("%s, %s: the sum of key %d's weights is wrong", name, path, (int)j);
    }
}

/* A copy with NaN in every slot past a batch row's length: padding must not change the result. */
static float *poisoned(const at_array *array, const int64_t *lengths)
{
    float *copy = zeros(at_array_count(array));
    memcpy(copy, array->data, (size_t)at_array_count(array) * sizeof *copy);
    for (int64_t b = 0; lengths && b < array->dim[0]; b++)
        for (int64_t i = lengths[b] * array->dim[2]; i < array->dim[1] * array->dim[2]; i++)
            copy[b * array->dim[1] * array->dim[2] + i] = NAN;
    return copy;
}

/* A case of the file: settings, parameters without gradients, and the call's inputs. */
typedef struct reading {
    const char *name;
    at_settings settings;
    int64_t lengths[8];
    at_parameter parameters[MOST_PARAMETERS];
    char grad_names[MOST_PARAMETERS][32];
    float *key, *value;
    at_call call;
} reading;

static void read_case(json_t *spec, bool plain, reading *r)
{
    const char *name = json_string_value(json_object_get(spec, "name"));
    *r = (reading){.name = name,
                   .settings = {
                       .score = json_string_value(json_object_get(spec, "score")),
                       .normaliser = json_string_value(json_object_get(spec, "normaliser")),
                       .window = json_string_value(json_object_get(spec, "window")),
                       .position = json_string_value(json_object_get(spec, "position")),
                       .heads = (int)json_integer_value(json_object_get(spec, "heads")),
                       .kv_heads = (int)json_integer_value(json_object_get(spec, "kv_heads")),
                       .plain = plain,
                   }};
    json_t *given = json_object_get(spec, "lengths"), *names = json_object_get(spec, "parameters");
    for (size_t b = 0; b < json_array_size(given); b++)
        r->lengths[b] = json_integer_value(json_array_get(given, b));
    const int64_t *lengths = given ? r->lengths : NULL;
    for (size_t i = 0; i < json_array_size(names); i++) {
        at_parameter *p = &r->parameters[i];
        p->name = json_string_value(json_array_get(names, i));
        snprintf(r->grad_names[i], sizeof r->grad_names[i], "grad_%s", p->name);
        const at_array *array = must_get(name, p->name);
        p->rank = array->rank;
        memcpy(p->dim, array->dim, sizeof p->dim);
        p->value = array->data;
    }
    const at_array *query = must_get(name, "query"), *key = must_get(name, "key"), *value = must_get(name, "value");
    r->key = poisoned(key, lengths);
    r->value = poisoned(value, lengths);
    r->call = (at_call){
        .batch = query->dim[0],
        .queries = query->dim[1],
        .keys = key->dim[1],
        .query_width = query->dim[2],
        .key_width = key->dim[2],
        .value_width = value->dim[2],
        .query = query->data,
        .key = r->key,
        .value = r->value,
        .lengths = lengths,
        .query_start = json_integer_value(json_object_get(spec, "query_start")),
        .parameters = r->parameters,
        .parameter_count = (int)json_array_size(names),
    };
}

static void attend(const reading *r, at_call *call, const char *path)
{
    at_error error = {0};
    if (!at_attend(&r->settings, call, &error))
        fail_msg("%s, %s: %s", r->name, path, error.text);
}

static void check(json_t *spec, bool plain, const char *path)
{
    reading r;
    read_case(spec, plain, &r);
    const char *name = r.name;
    at_call call = r.call;
    const int64_t heads = call.batch * r.settings.heads;
    const at_array *weights = get(name, "weights"), *grad_log_prob = get(name, "grad_log_prob");
    call.out = like(name, "out");
    call.weights = weights ? like(name, "weights") : NULL;
    call.argmax = (int32_t *)zeros(heads * call.queries);
    call.entropy = zeros(heads * call.queries);
    call.key_sums = zeros(heads * call.keys);
    call.log_prob = grad_log_prob ? like(name, "log_prob") : NULL;
    call.grad_out = must_get(name, "grad_out")->data;
    call.grad_log_prob = grad_log_prob ? grad_log_prob->data : NULL;
    call.grad_query = like(name, "grad_query");
    call.grad_key = like(name, "grad_key");
    call.grad_value = like(name, "grad_value");
    for (int i = 0; i < call.parameter_count; i++)
        r.parameters[i].grad = like(name, r.grad_names[i]);
    call.parameters = r.parameters;
    attend(&r, &call, path);

    compare_summaries(name, &call, path);
    free(call.argmax);
    free(call.entropy);
    free(call.key_sums);
    compare(name, "out", call.out, path);
    if (weights)
        compare(name, "weights", call.weights, path);
    if (grad_log_prob)
        compare(name, "log_prob", call.log_prob, path);
    compare(name, "grad_query", call.grad_query, path);
    compare(name, "grad_key", call.grad_key, path);
    compare(name, "grad_value", call.grad_value, path);
    for (int i = 0; i < call.parameter_count; i++)
        compare(name, r.grad_names[i], r.parameters[i].grad, path);
    free(r.key);
    free(r.value);
}

/* One query at a time, as in a decoder: another code path of the library, and the same numbers. */
static void check_steps(json_t *spec, bool plain, const char *path)
{
    reading r;
    read_case(spec, plain, &r);
    const int64_t batch = r.call.batch, queries = r.call.queries, width = r.call.query_width;
    const int64_t out_width = must_get(r.name, "out")->dim[2];
    float *whole = like(r.name, "out"), *query = zeros(batch * width), *out = zeros(batch * out_width);
    for (int64_t i = 0; i < queries; i++) {
        at_call call = r.call;
        call.queries = 1;
        call.query_start += i;
        call.query = query;
        call.out = out;
        call.parameters = r.parameters;
        for (int64_t b = 0; b < batch; b++)
            memcpy(query + b * width, r.call.query + (b * queries + i) * width, (size_t)width * sizeof *query);
        attend(&r, &call, path);
        for (int64_t b = 0; b < batch; b++)
            memcpy(whole + (b * queries + i) * out_width, out + b * out_width, (size_t)out_width * sizeof *out);
    }
    compare(r.name, "out", whole, path);
    free(query);
    free(out);
    free(r.key);
    free(r.value);
}

static void agrees_with_pytorch(void **state)
{
    static const char *const kernels[] = {"plain", AT_FAST_KERNELS};
    for (int i = 0; i < 2; i++) {
        if (!at_kernels_choose(kernels[i]))
            continue; /* not on this CPU */
        check(*state, true, i ? "plain path, fast kernels" : "plain path, plain kernels");
        check(*state, false, i ? "fused path, fast kernels" : "fused path, plain kernels");
        check_steps(*state, true, i ? "plain path by steps, fast kernels" : "plain path by steps, plain kernels");
        check_steps(*state, false, i ? "fused path by steps, fast kernels" : "fused path by steps, plain kernels");
    }
    at_kernels_choose(NULL);
}

/* softmax(X X^T) X of the worked example: float may differ only in the last of the six printed digits. */
static void worked_example_comes_out(void **state)
{
    (void)state;
    static const float x[9] = {1, 3, 2, 1, 1, 3, 1, 2, 1};
    static const double z[9] = {1, 2.957691, 2.011295, 1, 1.540148, 2.722573, 1, 2.864164, 2.000000};
    for (int plain = 0; plain < 2; plain++) {
        float out[9] = {0};
        at_settings settings = {.score = "dot", .plain = plain};
        at_call call = {.batch = 1, .queries = 3, .keys = 3, .query_width = 3, .key_width = 3, .value_width = 3};
        call.query = call.key = call.value = x;
        call.out = out;
        at_error error = {0};
        if (!at_attend(&settings, &call, &error))
            fail_msg("%s", error.text);
        for (int i = 0; i < 9; i++)
            if (!(fabs((double)out[i] - z[i]) <= 1.1e-6))
                fail_msg("z[%d] is %.7f, should be %.6f", i, (double)out[i], z[i]);
    }
}

int main(void)
{
    at_error error = {0};
    reference = at_tensors_read(TESTS_DIR "/ref/attention.safetensors", &error);
    json_t *cases = reference ? json_loads(at_tensors_meta(reference, "cases"), 0, NULL) : NULL;
    if (!cases) {
        fprintf(stderr, "tests/ref/attention.safetensors: %s\n",
                reference ? "its list of cases is no JSON" : error.text);
        return 1;
    }
    size_t count = json_array_size(cases);
    struct CMUnitTest *tests = calloc(count + 1, sizeof *tests);
    for (size_t i = 0; i < count; i++) {
        json_t *spec = json_array_get(cases, i);
        tests[i] = (struct CMUnitTest){.name = json_string_value(json_object_get(spec, "name")),
                                       .test_func = agrees_with_pytorch,
                                       .initial_state = spec};
    }
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(worked_example_comes_out);
    int failed = _cmocka_run_group_tests("reference", tests, count, NULL, NULL);
    free(tests);
    json_decref(cases);
    at_tensors_free(reference);
    return failed != 0;
}
