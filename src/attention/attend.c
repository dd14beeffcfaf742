/* The public call: the operator on the caller's arrays. The arrays become leaves of a tape without a copy: gradients are
 * added up in the caller's memory, and the output is written there unless a projection follows it. */
#include <string.h>

#include "attention/axes_internal.h"

#ifndef AT_DOUBLE /* the public call takes float; the tests of the double build call at_attention_run */

static at_shape shape_of(const at_parameter *parameter)
{
    at_shape shape = {.rank = parameter->rank};
    memcpy(shape.dim, parameter->dim, sizeof shape.dim);
    return shape;
}

/* ---- Checks of what only the public call takes; the rest is at_attention_check ---- */

static bool check_parameter(const at_call *call, const at_attention *attention, int index, at_error *error)
{
    const at_parameter *p = &call->parameters[index];
    if (!p->name)
        return at_fail(error, AT_USAGE, "parameter %d has no name", index);
    if (!at_parameter_slot(attention, &(at_attention_in){0}, p->name))
        return at_parameter_unknown(attention, p->name, error);
    for (int i = 0; i < index; i++)
        if (strcmp(call->parameters[i].name, p->name) == 0)
            return at_fail(error, AT_FAILED, "parameter '%s' is given twice", p->name);
    if (!p->value)
        return at_fail(error, AT_USAGE, "parameter '%s' has no values", p->name);
    if (p->rank < 0 || p->rank > AT_MAX_RANK)
        return at_fail(error, AT_SHAPE, "parameter '%s' has rank %d, which is outside 0 to %d", p->name, p->rank,
                       AT_MAX_RANK);
    return true;
}

static bool check_call(const at_call *call, const at_attention *attention, at_error *error)
{
    if (call->batch < 0 || call->queries < 0 || call->keys < 0)
        return at_fail(error, AT_SHAPE, "batch %lld, queries %lld and keys %lld must not be negative",
                       (long long)call->batch, (long long)call->queries, (long long)call->keys);
    const bool queries = call->batch && call->queries, keys = call->batch && call->keys;
    if ((queries && !call->query) || (keys && !call->key) || (keys && !call->value))
        return at_fail(error, AT_USAGE, "%s is not given",
                       queries && !call->query ? "query"
                       : !call->key            ? "key"
                                               : "value");
    if (call->parameter_count < 0 || (call->parameter_count && !call->parameters))
        return at_fail(error, AT_USAGE, "the number of parameters is %d, and none is given", call->parameter_count);
    for (int i = 0; i < call->parameter_count; i++)
        if (!check_parameter(call, attention, i, error))
            return false;
    if (!at_attention_samples(attention) && (call->log_prob || call->grad_log_prob))
        return at_fail(error, AT_UNSUPPORTED, "normaliser '%s' has no log-probability; 'hard' does",
                       attention->normaliser->entry.name);
    return true;
}

/* ---- The call ---- */

static void clear(float *grad, at_shape shape)
{
    if (grad)
        memset(grad, 0, (size_t)at_shape_count(shape) * sizeof *grad);
}

static at_tensor *leaf(at_tape *tape, at_shape shape, const float *value, float *grad)
{
    return at_leaf(tape, shape, value, grad, grad != NULL);
}

static void clear_grads(const at_call *call, const at_attention_in *in)
{
    clear(call->grad_query, in->query->shape);
    clear(call->grad_key, in->key->shape);
    clear(call->grad_value, in->value->shape);
    for (int i = 0; i < call->parameter_count; i++)
        clear(call->parameters[i].grad, shape_of(&call->parameters[i]));
}

static bool backward(const at_call *call, const at_attention_out *result)
{
    if (!call->grad_out)
        return !call->grad_log_prob || at_backward_from(result->log_prob, call->grad_log_prob);
    /* One backward pass serves both: the log-probability's gradient is set first. */
    at_real *grad = call->grad_log_prob ? at_tensor_grad(result->log_prob) : NULL;
    for (int64_t i = 0; grad && i < at_shape_count(result->log_prob->shape); i++)
        grad[i] += call->grad_log_prob[i];
    return at_backward_from(result->out, call->grad_out);
}

/* Runs on the tape, which has the error message of what fails. Sets *checked once nothing but memory can fail. */
static bool run(at_tape *tape, const at_attention *attention, at_call *call, bool *checked)
{
    const at_asked asked = {.weights = call->weights,
                            .rows = call->rows,
                            .row_count = call->row_count,
                            .argmax = call->argmax,
                            .entropy = call->entropy,
                            .key_sums = call->key_sums,
                            .scores = call->scores};
    at_attention_in in = {
        .query = leaf(tape, AT_SHAPE(call->batch, call->queries, call->query_width), call->query, call->grad_query),
        .key = leaf(tape, AT_SHAPE(call->batch, call->keys, call->key_width), call->key, call->grad_key),
        .value = leaf(tape, AT_SHAPE(call->batch, call->keys, call->value_width), call->value, call->grad_value),
        .lengths = call->lengths,
        .query_start = call->query_start,
        .sample = call->sample,
        .seed = call->seed,
        .out_memory = call->out,
        .asked = &asked};
    for (int i = 0; i < call->parameter_count; i++) {
        const at_parameter *p = &call->parameters[i];
        *at_parameter_slot(attention, &in, p->name) = leaf(tape, shape_of(p), p->value, p->grad);
    }
    if (!at_tape_ok(tape)) /* a leaf can only fail for want of memory */
        return false;
    at_job *j = at_attention_begin(tape, attention, &in);
    *checked = j || at_tape_error(tape)->code == AT_MEMORY;
    if (!j)
        return false;
    if (call->grad_out || call->grad_log_prob)
        clear_grads(call, &in);
    const at_attention_out result = at_attention_finish(j);
    if (!at_tape_ok(tape))
        return false;
    if (call->log_prob)
        memcpy(call->log_prob, result.log_prob->value, (size_t)at_shape_count(result.log_prob->shape) * sizeof(float));
    return backward(call, &result);
}

bool at_attend(const at_settings *settings, at_call *call, at_error *error)
{
    at_attention attention;
    call->memory_used = 0;
    if (error->code || !at_attention_parse(settings, &attention, error) || !check_call(call, &attention, error))
        return false;
    attention.plain = attention.plain || call->scores; /* the fused path never has all of them */
    at_arena *arena = call->memory ? at_arena_over(call->memory, call->memory_size) : at_arena_new();
    at_tape *tape = arena ? at_tape_new(arena, call->grad_out || call->grad_log_prob) : NULL;
    bool checked = true;
    const bool done = tape && run(tape, &attention, call, &checked);
    if (arena)
        call->memory_used = at_arena_peak(arena);
    if (!done && checked && call->memory)
        at_fail(error, AT_MEMORY, "the %zu bytes of memory given are too few for this call", call->memory_size);
    else if (!done && !tape)
        at_no_memory(error, "a tape");
    else if (!done)
        at_fail(error, (at_code)at_tape_error(tape)->code, "%s", at_tape_error(tape)->text);
    at_arena_free(arena);
    return done;
}

#endif
