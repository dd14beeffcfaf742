/* The operator: five axes in one sequence,
 *
 *     rotate(q,k) -> e = score(q,k) -> e += position bias -> w = normalise(e over span) -> w *= window prior
 *     -> dropout(w) in training -> c = w v -> c += value positions
 *
 * The plain path is the specification: composed of operations alone, it holds whole [B,H,Q,K] arrays. The fused path
 * does the middle of the same sequence in one operation of linear memory. What comes before and after is shared. */
#include <string.h>

#include "attention/axes_internal.h"
#include "tape/block.h"

/* The bias table [H,2R+1] or [B,Q,H,2R+1] spread over the keys: [B|1,H,Q,K] */
static at_tensor *spread_bias(const at_job *j, at_tensor *table)
{
    if (!table)
        return NULL;
    if (table->shape.rank == 2)
        table = at_reshape(table, AT_SHAPE(1, j->H, 1, table->shape.dim[1]));
    else
        table = at_swap_heads(table);
    return at_by_offset(table, j->Q, j->K, j->bias_start);
}

/* w [B,H,Q,K] after dropout */
static at_tensor *drop_weights(const at_job *j, at_tensor *w)
{
    const at_shape shape = AT_SHAPE(j->B, j->H, j->Q, j->K);
    if (!w || j->in.drop.share == 0)
        return w;
    at_real *factor = at_room(j->tape, (size_t)at_shape_count(shape) * sizeof *factor);
    if (!factor)
        return NULL;
    for (int64_t row = 0; row < j->B * j->H * j->Q; row++)
        at_drop_factors(&j->in.drop, row / j->Q / j->H, row / j->Q % j->H, row % j->Q, 0, j->K, factor + row * j->K);
    return at_mul(w, at_leaf(j->tape, shape, factor, NULL, false));
}

/* From q, k and v to j->out [B,Q,H*Dv]; returns the weights [B,H,Q,K]. */
static at_tensor *plain_path(at_job *j)
{
    at_tensor *e = j->attention.score->plain(j); /* [B,H,Q,K] */
    if (j->key_table)
        e = at_add(e, spread_bias(j, at_key_positions(j)));
    if (j->bias)
        e = at_add(e, spread_bias(j, j->bias));
    if (e && j->asked->scores && at_tape_ok(j->tape))
        at_scores_report(j, e);
    at_tensor *w = j->attention.normaliser->plain(j, e, &j->log_prob);
    if (j->centre)
        w = at_mul(w, at_gaussian(j->centre, j->K, j->sigma));
    at_tensor *dropped = drop_weights(j, w);
    if (j->in.factor)
        dropped = at_mul(dropped, j->in.factor);
    at_tensor *c = at_swap_heads(at_span_sum(dropped, at_swap_heads(j->v), &j->spans)); /* [B,Q,H,Dv] */
    if (j->value_table) {
        const int64_t reach = j->attention.argument[AT_POSITION];
        at_tensor *sums = at_swap_heads(at_sum_by_offset(dropped, reach, j->in.query_start)); /* [B,Q,H,2k+1] */
        c = at_add_value_positions(j, c, sums);
    }
    if (w && at_tape_ok(j->tape))
        at_weights_report(j, w);
    j->out = at_join_heads(c);
    return w;
}

static void set_scale_and_bias(at_job *j)
{
    const at_score_record *score = j->attention.score;
    const at_position_record *position = j->attention.position;
    at_tensor *const *tables = j->in.parameter[AT_POSITION];
    j->scale = score->scale ? score->scale(j->D) : 1;
    j->key_table = position->has_tables ? tables[0] : NULL;
    j->value_table = position->has_tables ? tables[1] : NULL;
    j->bias = position->bias ? position->bias(j) : NULL;
}

/* Packed rows where they lie: of what comes before the fused operation the spans and the bias are left. */
static void run_direct(at_job *j)
{
    j->direct = j->in.packed;
    if (at_attention_predicts(&j->attention)) /* centres are predicted from queries */
        j->q = at_split_heads(at_unpack_queries(j), j->H);
    if (!at_spans_build(j))
        return;
    set_scale_and_bias(j);
    j->q = j->in.query, j->k = j->in.key, j->v = j->in.value;
    at_fused_run(j);
}

/* The sequence, from the caller's arrays to j->out; returns the weights, on the plain path. */
static at_tensor *run_arrays(at_job *j)
{
    const at_attention_in *in = &j->in;
    j->q = at_split_heads(in->WQ ? at_linear(in->query, in->WQ, NULL, AT_ACT_NONE) : in->query, j->H); /* [B,Q,H,D] */
    if (!at_spans_build(j))
        return NULL;

    /* A key that no query sees must not meet a parameter, in whose gradient it would count (0 x NaN). */
    at_tensor *key = in->WK ? at_linear(at_seen(in->key, &j->spans), in->WK, NULL, AT_ACT_NONE) : in->key;
    at_tensor *value = in->WV ? at_linear(at_seen(in->value, &j->spans), in->WV, NULL, AT_ACT_NONE) : in->value;
    j->k = at_split_heads(key, j->G);   /* [B,K,G,D] */
    j->v = at_split_heads(value, j->G); /* [B,K,G,Dv] */

    at_rotate_operands(j);
    if (j->attention.score->prepare && !in->prepared)
        j->attention.score->prepare(j);
    set_scale_and_bias(j);
    if (!at_fused_can(&j->attention))
        return plain_path(j);
    at_fused_run(j);
    return NULL;
}

/* The same for packed rows that must be unpacked first: *out is j->out packed again. */
static at_tensor *run_unpacked(at_job *j, at_tensor **out)
{
    const int64_t rows = j->in.query->shape.dim[0];
    j->in.out_memory = NULL;
    at_unpack(j);
    at_tensor *weights = run_arrays(j);
    *out = at_pack(j, j->out, rows);
    return weights;
}

static at_tensor *zeros(at_tape *tape, at_shape shape)
{
    at_tensor *tensor = at_tensor_make(tape, shape);
    if (tensor)
        memset(tensor->value, 0, (size_t)at_shape_count(shape) * sizeof(at_real));
    return tensor;
}

/* Without queries or keys every result is zero; returns the weights. */
static at_tensor *run_empty(at_job *j)
{
    const int64_t width = j->in.WO ? j->in.WO->shape.dim[0] : j->H * j->Dv;
    const at_shape out = j->in.packed ? AT_SHAPE(j->in.query->shape.dim[0], width) : AT_SHAPE(j->B, j->Q, width);
    at_tensor *weights = zeros(j->tape, AT_SHAPE(j->B, j->H, j->Q, j->K));
    j->out = zeros(j->tape, out);
    j->log_prob = at_attention_samples(&j->attention) ? zeros(j->tape, AT_SHAPE(j->B, j->H, j->Q)) : NULL;
    int32_t *empty = at_arena_zeros(at_tape_arena(j->tape), (size_t)(j->B * j->Q + 1) * sizeof *empty);
    if (!empty)
        at_no_memory(at_tape_error(j->tape), "%lld spans", (long long)(j->B * j->Q));
    j->spans = (at_spans){.batch = j->B, .heads = 1, .rows = j->Q, .lo = empty, .hi = empty};
    if (at_tape_ok(j->tape))
        at_weights_report(j, weights);
    return weights;
}

at_job *at_attention_begin(at_tape *tape, const at_attention *attention, const at_attention_in *in)
{
    static const at_asked nothing = {0};
    if (!at_tape_ok(tape))
        return NULL;
    at_job *j = at_arena_take(at_tape_arena(tape), sizeof *j);
    if (!j) {
        at_no_memory(at_tape_error(tape), "one call of attention");
        return NULL;
    }
    *j = (at_job){.tape = tape,
                  .attention = *attention,
                  .in = *in,
                  .asked = in->asked ? in->asked : &nothing,
                  .scale = 1,
                  .bias_start = in->query_start};
    if (!at_attention_check(j))
        return NULL;
    j->asked_rows = j->asked->rows ? j->asked->row_count : j->Q;
    return j;
}

at_attention_out at_attention_finish(at_job *j)
{
    at_real *out_memory = j->in.out_memory;
    const bool is_empty = j->B == 0 || j->Q == 0 || j->K == 0;
    at_tensor *weights = NULL, *out = NULL;
    if (is_empty)
        weights = run_empty(j);
    else if (at_packed_direct(j))
        run_direct(j);
    else if (j->in.packed)
        weights = run_unpacked(j, &out);
    else
        weights = run_arrays(j);
    out = out ? out : j->out;
    if (at_tape_ok(j->tape) && j->in.WO && !is_empty)
        out = at_linear(out, j->in.WO, NULL, AT_ACT_NONE);
    if (!at_tape_ok(j->tape))
        return (at_attention_out){0};
    if (out_memory && out->value != out_memory)
        memcpy(out_memory, out->value, (size_t)at_shape_count(out->shape) * sizeof(at_real));
    return (at_attention_out){.out = out, .weights = weights, .log_prob = j->log_prob};
}

at_attention_out at_attention_run(at_tape *tape, const at_attention *attention, const at_attention_in *in)
{
    at_job *j = at_attention_begin(tape, attention, in);
    return j ? at_attention_finish(j) : (at_attention_out){0};
}
