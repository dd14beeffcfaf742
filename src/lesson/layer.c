/* "layer": an encoder layer of the Transformer, part by part, with weights as drawn before training. */
#include "attention/attention.h"
#include "layers/layers.h"
#include "lesson/ask_internal.h"

enum { HEADS = 16 };

typedef struct layer {
    at_params *params;
    int project[4]; /* WQ, WK, WV, WO [d,d] */
    at_norm norm[2];
    at_ffn ffn; /* d -> 2d -> d */
} layer;

static bool declare(layer *l, int64_t d, uint64_t seed, at_error *error)
{
    static const char *const names[] = {"q.W", "k.W", "v.W", "o.W"};
    l->params = at_params_new();
    if (!l->params)
        return at_no_memory(error, "an encoder layer");
    for (int i = 0; i < 4; i++)
        l->project[i] = at_params_add(l->params, names[i], AT_SHAPE(d, d), error);
    l->norm[0] = at_norm_declare(l->params, "norm1", d, 1e-5, error);
    l->ffn = at_ffn_declare(l->params, "ffn", d, 2 * d, AT_FFN_RELU, error);
    l->norm[1] = at_norm_declare(l->params, "norm2", d, 1e-5, error);
    if (error->code != AT_OK || !at_params_fix_values(l->params, error))
        return false;
    at_init_all(l->params, seed);
    return true;
}

static void put(at_ask *ask, const char *name, const at_tensor *t, int64_t rows, int64_t columns)
{
    float *values = t ? at_ask_floats(ask, rows * columns) : NULL;
    for (int64_t i = 0; values && i < rows * columns; i++)
        values[i] = (float)t->value[i];
    if (values)
        at_put_matrix(ask, name, values, rows, columns);
}

/* A = LN(X + MultiHead(X)),  R = LN(A + FFN(A)) */
static bool run(at_ask *ask, layer *l, at_tape *tape, const at_attention *attention, const at_matrix *m)
{
    const int64_t n = m->rows, d = m->columns;
    at_real *rows = at_arena_take(ask->arena, (size_t)(n * d) * sizeof *rows);
    if (!rows)
        return at_no_memory(ask->error, "an encoder layer");
    for (int64_t i = 0; i < n * d; i++)
        rows[i] = (at_real)m->value[i];
    at_tensor *x = at_leaf(tape, AT_SHAPE(1, n, d), rows, NULL, false), *sum[2] = {NULL};
    const at_attention_in in = {.query = x,
                                .key = x,
                                .value = x,
                                .WQ = at_param(tape, l->params, l->project[0]),
                                .WK = at_param(tape, l->params, l->project[1]),
                                .WV = at_param(tape, l->params, l->project[2]),
                                .WO = at_param(tape, l->params, l->project[3])};
    at_tensor *mixed = at_attention_run(tape, attention, &in).out;
    at_tensor *A = at_norm_residual(tape, l->params, &l->norm[0], x, mixed, 1, NULL, &sum[0]);
    at_tensor *inner = at_ffn_apply(tape, l->params, &l->ffn, A, 1, NULL);
    at_tensor *R = at_norm_residual(tape, l->params, &l->norm[1], A, inner, 1, NULL, &sum[1]);
    if (!R)
        return at_fail(ask->error, (at_code)at_tape_error(tape)->code, "%s", at_tape_error(tape)->text);
    put(ask, "attention", mixed, n, d);
    put(ask, "sum", sum[0], n, d);
    put(ask, "normed", A, n, d);
    put(ask, "ffn", inner, n, d);
    put(ask, "output", R, n, d);
    return ask->error->code == AT_OK;
}

bool at_answer_layer(at_ask *ask)
{
    at_matrix m;
    at_attention attention;
    layer l = {0};
    if (!at_ask_only(ask, ask->request, "ask query heads seed") ||
        !at_ask_matrix(ask, json_object_get(ask->request, "query"), "query", &m))
        return false;
    const at_settings settings = {.heads = (int)at_ask_count(ask, ask->request, "heads", 1, 1, HEADS), .plain = true};
    const uint64_t seed = (uint64_t)at_ask_count(ask, ask->request, "seed", 1, 0, INT32_MAX);
    if (ask->error->code != AT_OK || !at_attention_parse(&settings, &attention, ask->error))
        return false;
    if (m.columns % settings.heads)
        return at_fail(ask->error, AT_SHAPE, "`heads` is %d and does not divide the %lld numbers of a row",
                       settings.heads, (long long)m.columns);
    at_tape *tape = at_tape_new(ask->arena, false);
    const bool good = tape ? declare(&l, m.columns, seed, ask->error) && run(ask, &l, tape, &attention, &m)
                           : at_no_memory(ask->error, "an encoder layer");
    at_params_free(l.params);
    return good;
}
