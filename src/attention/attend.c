/* The public door: one call of the operator on the caller's arrays. The arrays become leaves of a tape as they lie, so
 * nothing is copied: gradients add up in the caller's memory, and the output lies there where nothing follows it. */
#include <string.h>

#include "attention/axes.h"
#include "base/utf8.h"

#ifndef AT_DOUBLE /* the call speaks float; the double test build enters at at_attention_run */

enum { MOST_NAMES = 16 };

static at_shape shape_of(const at_parameter *parameter)
{
    at_shape shape = {.rank = parameter->rank};
    memcpy(shape.dim, parameter->dim, sizeof shape.dim);
    return shape;
}

/* ---- Checks of what only this door takes; the rest is at_attention_check's ---- */

static bool check_parameter(const at_call *call, int index, at_error *error)
{
    const at_parameter *p = &call->parameters[index];
    const char *names[MOST_NAMES];
    char shown[AT_SHOWN], hint[200];
    int count = 0, known = -1;
    if (!p->name)
        return at_fail(error, AT_FAILED, "parameter %d has no name", index);
    for (; at_parameter_name(count); count++) {
        names[count] = at_parameter_name(count);
        if (strcmp(names[count], p->name) == 0)
            known = count;
    }
    if (known < 0) {
        at_suggest(p->name, names, count, hint, sizeof hint);
        return at_fail(error, AT_FAILED, "no setting has a parameter '%s'%s", at_shown(p->name, shown, sizeof shown),
                       hint);
    }
    for (int i = 0; i < index; i++)
        if (strcmp(call->parameters[i].name, p->name) == 0)
            return at_fail(error, AT_FAILED, "parameter '%s' is given twice", p->name);
    if (!p->value)
        return at_fail(error, AT_FAILED, "parameter '%s' has no values", p->name);
    if (p->rank < 0 || p->rank > AT_MAX_RANK)
        return at_fail(error, AT_FAILED, "parameter '%s' has rank %d, which is outside 0 to %d", p->name, p->rank,
                       AT_MAX_RANK);
    return true;
}

static bool check_call(const at_call *call, const at_attention *attention, at_error *error)
{
    const bool hard = attention->normaliser == AT_HARD;
    if (call->batch < 0 || call->queries < 0 || call->keys < 0)
        return at_fail(error, AT_FAILED, "batch %lld, queries %lld and keys %lld must not be negative",
                       (long long)call->batch, (long long)call->queries, (long long)call->keys);
    const bool queries = call->batch && call->queries, keys = call->batch && call->keys;
    if ((queries && !call->query) || (keys && !call->key) || (keys && !call->value))
        return at_fail(error, AT_FAILED, "%s is not given",
                       queries && !call->query ? "query"
                       : !call->key            ? "key"
                                               : "value");
    if (call->parameter_count < 0 || (call->parameter_count && !call->parameters))
        return at_fail(error, AT_FAILED, "%d parameters are announced and none is given", call->parameter_count);
    for (int i = 0; i < call->parameter_count; i++)
        if (!check_parameter(call, i, error))
            return false;
    if (!hard && (call->log_prob || call->grad_log_prob))
        return at_fail(error, AT_FAILED, "a log-probability is there for normaliser 'hard' only, and this is '%s'",
                       at_normaliser_at((int)attention->normaliser)->entry.name);
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

/* Runs on the tape; the sentence of what fails is the tape's. Sets *checked once nothing but memory can fail. */
static bool run(at_tape *tape, const at_attention *attention, at_call *call, bool *checked)
{
    const at_shape query = AT_SHAPE(call->batch, call->queries, call->query_width);
    const at_shape key = AT_SHAPE(call->batch, call->keys, call->key_width);
    const at_shape value = AT_SHAPE(call->batch, call->keys, call->value_width);
    at_attention_in in = {.query = leaf(tape, query, call->query, call->grad_query),
                          .key = leaf(tape, key, call->key, call->grad_key),
                          .value = leaf(tape, value, call->value, call->grad_value),
                          .lengths = call->lengths,
                          .query_start = call->query_start,
                          .sample = call->sample,
                          .seed = call->seed,
                          .out_memory = call->out,
                          .weights = call->weights,
                          .rows = call->rows,
                          .row_count = call->row_count,
                          .argmax = call->argmax,
                          .entropy = call->entropy,
                          .key_sums = call->key_sums};
    for (int i = 0; i < call->parameter_count; i++) {
        const at_parameter *p = &call->parameters[i];
        *at_parameter_slot(&in, p->name) = leaf(tape, shape_of(p), p->value, p->grad);
    }
    at_operands sizes = {.tape = tape, .attention = attention, .in = &in};
    *checked = !at_tape_ok(tape) || at_attention_check(&sizes); /* a leaf can only fail for want of memory */
    if (!at_tape_ok(tape))
        return false;

    const bool back = call->grad_out || call->grad_log_prob;
    if (back) {
        clear(call->grad_query, query);
        clear(call->grad_key, key);
        clear(call->grad_value, value);
        for (int i = 0; i < call->parameter_count; i++)
            clear(call->parameters[i].grad, shape_of(&call->parameters[i]));
    }
    at_attention_out result = at_attention_run(tape, attention, &in);
    if (!at_tape_ok(tape))
        return false;
    if (call->log_prob)
        memcpy(call->log_prob, result.log_prob->value, (size_t)at_shape_count(result.log_prob->shape) * sizeof(float));
    if (!call->grad_out)
        return !call->grad_log_prob || at_backward_from(result.log_prob, call->grad_log_prob);
    /* One walk back serves both seeds: the log-probability's is laid down first. */
    at_real *log_seed = call->grad_log_prob ? at_tensor_grad(result.log_prob) : NULL;
    for (int64_t i = 0; log_seed && i < at_shape_count(result.log_prob->shape); i++)
        log_seed[i] += call->grad_log_prob[i];
    return at_backward_from(result.out, call->grad_out);
}

bool at_attend(const at_settings *settings, at_call *call, at_error *error)
{
    at_attention attention;
    call->memory_used = 0;
    if (error->code || !at_attention_parse(settings, &attention, error) || !check_call(call, &attention, error))
        return false;
    at_arena *arena = call->memory ? at_arena_over(call->memory, call->memory_size) : at_arena_new();
    at_tape *tape = arena ? at_tape_new(arena, call->grad_out || call->grad_log_prob) : NULL;
    bool checked = true;
    const bool done = tape && run(tape, &attention, call, &checked);
    if (arena)
        call->memory_used = at_arena_peak(arena);
    if (!done && checked && call->memory)
        at_fail(error, AT_FAILED, "the %zu bytes of memory given are too few for this call", call->memory_size);
    else if (!done)
        at_fail(error, AT_FAILED, "%s", tape ? at_tape_error(tape)->text : "memory is out");
    at_arena_free(arena);
    return done;
}

#endif
