/* The operator: five axes in one sequence,
 *
 *     rotate(q,k) -> e = score(q,k) -> e += position bias -> w = normalise(e over span) -> w *= window prior
 *     -> dropout(w) in training -> c = w v -> c += value positions
 *
 * The plain path is the specification: composed of operations alone, it holds whole [B,H,Q,K] arrays. The fused path
 * does the middle of the same sequence in one operation of linear memory. What comes before and after is shared. */
#include <string.h>

#include "attention/axes.h"

/* What either path makes of the operands. */
typedef struct middle {
    at_tensor *context;     /* [B,Q,H,Dv]; packed rows that went in as they lie: [rows,H*Dv] */
    at_tensor *offset_sums; /* [B,Q,H,2k+1], with value positions only */
    at_tensor *weights;     /* [B,H,Q,K], plain only */
    at_tensor *log_prob;    /* [B,H,Q], hard only */
} middle;

/* sigma = D/2 */
static at_real sigma_of(const at_operands *o)
{
    return (at_real)o->attention->reach / 2;
}

/* The bias table [H,2R+1] or [B,Q,H,2R+1] spread over the keys: [B|1,H,Q,K] */
static at_tensor *spread_bias(const at_operands *o)
{
    at_tensor *table = o->bias;
    if (table->shape.rank == 2)
        table = at_reshape(table, AT_SHAPE(1, o->H, 1, table->shape.dim[1]));
    else
        table = at_swap_heads(table);
    return at_by_offset(table, o->Q, o->K, o->bias_start);
}

/* w [B,H,Q,K] after dropout */
static at_tensor *drop_weights(const at_operands *o, at_tensor *w)
{
    const at_shape shape = AT_SHAPE(o->B, o->H, o->Q, o->K);
    if (!w || o->in->drop.share == 0)
        return w;
    at_real *factor = at_arena_take(at_tape_arena(o->tape), (size_t)at_shape_count(shape) * sizeof *factor);
    if (!factor) {
        at_fail(at_tape_error(o->tape), AT_FAILED, "memory is out: no room to drop weights");
        return NULL;
    }
    for (int64_t row = 0; row < o->B * o->H * o->Q; row++)
        at_drop_factors(&o->in->drop, row / o->Q / o->H, row / o->Q % o->H, row % o->Q, 0, o->K, factor + row * o->K);
    return at_mul(w, at_leaf(o->tape, shape, factor, NULL, false));
}

static middle plain_path(at_operands *o)
{
    middle m = {0};
    at_tensor *e = at_score_at((int)o->attention->score)->plain(o); /* [B,H,Q,K] */
    if (o->bias)
        e = at_add(e, spread_bias(o));
    at_tensor *w = at_normaliser_at((int)o->attention->normaliser)->plain(o, e, &m.log_prob);
    if (o->centre)
        w = at_mul(w, at_gaussian(o->centre, o->K, sigma_of(o)));
    at_tensor *spent = drop_weights(o, w);
    m.context = at_swap_heads(at_span_sum(spent, at_swap_heads(o->v), &o->spans));
    if (o->in->wV)
        m.offset_sums = at_swap_heads(at_sum_by_offset(spent, o->attention->clip, o->in->query_start));
    if (w && at_tape_ok(o->tape))
        at_weights_report(o, w);
    m.weights = w;
    return m;
}

static middle fused_path(at_operands *o)
{
    const at_attention *a = o->attention;
    const at_attention_in *in = o->in;
    at_spans *spans = at_arena_take(at_tape_arena(o->tape), sizeof *spans); /* the way back looks at them again */
    if (!spans)
        at_fail(at_tape_error(o->tape), AT_FAILED, "memory is out: no room for the spans");
    if (!spans || (!o->direct && (!o->q || !o->k || !o->v)))
        return (middle){0};
    *spans = o->spans;
    /* With a U per head the keys differ from head to head, and so each head needs its own values beside them. */
    o->v = o->direct ? NULL : at_repeat_heads(o->v, o->k->shape.dim[2]);
    at_fused fused = {.q = o->direct ? in->query : at_join_heads(o->q),
                      .k = o->direct ? in->key : at_join_heads(o->k),
                      .v = o->direct ? in->value : at_join_heads(o->v),
                      .packed = o->direct ? in->packed : NULL,
                      .heads = o->H,
                      .kv_heads = o->direct ? o->G : o->k->shape.dim[2],
                      .scale = o->scale,
                      .additive = a->score == AT_ADDITIVE,
                      .act = a->act,
                      .score_v = in->v,
                      .normaliser = a->normaliser,
                      .sample = in->sample,
                      .seed = in->seed,
                      .spans = spans,
                      .start = o->bias_start,
                      .bias = o->bias,
                      .clip = a->clip,
                      .key_table = in->wK,
                      .value_table = in->wV,
                      .centre = o->centre,
                      .sigma = o->centre ? sigma_of(o) : 0,
                      .drop = in->drop,
                      .out_memory = in->WO ? NULL : in->out_memory,
                      .weights = in->weights,
                      .rows = in->rows,
                      .row_count = in->rows ? in->row_count : o->Q,
                      .argmax = in->argmax,
                      .entropy = in->entropy,
                      .key_sums = in->key_sums};
    at_fused_out out = at_fused_attention(o->tape, &fused);
    return (middle){.context = o->direct ? out.out : at_split_heads(out.out, o->H), .log_prob = out.log_prob};
}

/* Packed rows where they lie: of what comes before the fused operation the spans and the bias are left. */
static at_attention_out run_direct(at_operands *o)
{
    const at_score_record *score = at_score_at((int)o->attention->score);
    const at_position_record *position = at_position_at((int)o->attention->position);
    o->direct = true;
    if (!at_window_at((int)o->attention->window)->interval) /* centres are predicted from queries */
        o->q = at_split_heads(at_unpack_queries(o), o->H);
    if (!at_spans_build(o))
        return (at_attention_out){0};
    o->scale = score->scale ? score->scale(o->D) : 1;
    o->bias = position->bias && o->attention->position != AT_SHAW ? position->bias(o) : NULL;
    middle m = fused_path(o);
    at_tensor *out = o->in->WO ? at_linear(m.context, o->in->WO, NULL, AT_ACT_NONE) : m.context;
    return (at_attention_out){.out = out, .log_prob = m.log_prob};
}

/* The sequence, from the caller's arrays to the output. */
static at_attention_out run(at_operands *o)
{
    const at_attention_in *in = o->in;
    const at_score_record *score = at_score_at((int)o->attention->score);
    const at_position_record *position = at_position_at((int)o->attention->position);

    o->q = at_split_heads(in->WQ ? at_linear(in->query, in->WQ, NULL, AT_ACT_NONE) : in->query, o->H); /* [B,Q,H,D] */
    if (!at_spans_build(o))
        return (at_attention_out){0};

    /* A key that nobody sees must not meet a parameter, in whose gradient it would count (0 x NaN). */
    at_tensor *key = in->WK || in->U ? at_seen(in->key, &o->spans) : in->key;
    at_tensor *value = in->WV ? at_seen(in->value, &o->spans) : in->value;
    o->k = at_split_heads(in->WK ? at_linear(key, in->WK, NULL, AT_ACT_NONE) : key, o->G);     /* [B,K,G,D] */
    o->v = at_split_heads(in->WV ? at_linear(value, in->WV, NULL, AT_ACT_NONE) : value, o->G); /* [B,K,G,Dv] */

    at_rotate_operands(o);
    if (score->prepare)
        score->prepare(o);
    o->scale = score->scale ? score->scale(o->D) : 1;
    /* The fused path makes products with Shaw's tables where it needs them. */
    bool inside = !o->attention->plain && o->attention->position == AT_SHAW;
    o->bias = position->bias && !inside ? position->bias(o) : NULL;

    middle m = o->attention->plain ? plain_path(o) : fused_path(o);
    at_tensor *c = m.offset_sums ? at_add_value_positions(o, m.context, m.offset_sums) : m.context;
    at_tensor *out = at_join_heads(c); /* [B,Q,H*Dv] */
    if (in->WO)
        out = at_linear(out, in->WO, NULL, AT_ACT_NONE);
    return (at_attention_out){.out = out, .weights = m.weights, .log_prob = m.log_prob};
}

/* The same for packed rows that must be unpacked first. */
static at_attention_out run_unpacked(at_operands *o)
{
    at_attention_in in = *o->in;
    const int64_t rows = in.query->shape.dim[0];
    in.out_memory = NULL;
    at_unpack(o, &in);
    o->in = &in;
    at_attention_out result = run(o);
    result.out = at_pack(o, result.out, rows);
    return result;
}

static at_tensor *zeros(at_tape *tape, at_shape shape)
{
    at_tensor *tensor = at_tensor_make(tape, shape);
    if (tensor)
        memset(tensor->value, 0, (size_t)at_shape_count(shape) * sizeof(at_real));
    return tensor;
}

/* Without queries or keys there is nothing to attend to: zeros all round. */
static at_attention_out nothing(at_operands *o)
{
    const int64_t width = o->in->WO ? o->in->WO->shape.dim[0] : o->H * o->Dv;
    at_attention_out result = {
        .out =
            zeros(o->tape, o->in->packed ? AT_SHAPE(o->in->query->shape.dim[0], width) : AT_SHAPE(o->B, o->Q, width)),
        .weights = zeros(o->tape, AT_SHAPE(o->B, o->H, o->Q, o->K)),
        .log_prob = o->attention->normaliser == AT_HARD ? zeros(o->tape, AT_SHAPE(o->B, o->H, o->Q)) : NULL};
    int32_t *empty = at_arena_zeros(at_tape_arena(o->tape), (size_t)(o->B * o->Q + 1) * sizeof *empty);
    if (!empty)
        at_fail(at_tape_error(o->tape), AT_FAILED, "memory is out: no room for %lld spans", (long long)(o->B * o->Q));
    o->spans = (at_spans){.batch = o->B, .heads = 1, .rows = o->Q, .lo = empty, .hi = empty};
    if (at_tape_ok(o->tape))
        at_weights_report(o, result.weights);
    return result;
}

at_attention_out at_attention_run(at_tape *tape, const at_attention *attention, const at_attention_in *in)
{
    at_operands o = {.tape = tape, .attention = attention, .in = in, .scale = 1, .bias_start = in->query_start};
    if (!at_attention_check(&o))
        return (at_attention_out){0};
    const bool empty = o.B == 0 || o.Q == 0 || o.K == 0;
    at_attention_out result = empty                  ? nothing(&o)
                              : at_packed_direct(&o) ? run_direct(&o)
                              : in->packed           ? run_unpacked(&o)
                                                     : run(&o);
    if (!at_tape_ok(tape))
        return (at_attention_out){0};
    if (in->out_memory && result.out->value != in->out_memory)
        memcpy(in->out_memory, result.out->value, (size_t)at_shape_count(result.out->shape) * sizeof(at_real));
    return result;
}
