/* The fused operation on the tape: sizes, memory, and who does which part. */
#include "attention/fused.h"

#include <string.h>

#include "attention/fused_internal.h"
#include "base/threads.h"
#include "kernels/isa.h"

enum { BRIEF = 192 }; /* keys and queries of a head that fit the caches many times over */

static const at_real LOG2E = (at_real)1.4426950408889634;

int64_t at_largest_count(const int64_t *counts, int64_t n)
{
    int64_t most = 0;
    for (int64_t i = 0; i < n; i++)
        most = counts[i] > most ? counts[i] : most;
    return most;
}

/* Sizes of packed rows, and where they lie. */
static void measure_packed(const at_fused *what, job *j)
{
    const at_packed *p = what->packed;
    j->batch = p->batch;
    j->queries = at_largest_count(p->query_count, p->batch);
    j->keys = at_largest_count(p->key_count, p->batch);
    j->size = p->size;
    j->value_size = p->value_size;
    j->q = (lines){.first = p->query_at, .row = what->q->shape.dim[1], .column = p->q_column, .size = p->size};
    j->k = (lines){.first = p->key_at, .column = p->k_column, .size = p->size};
    j->v = (lines){.first = p->key_at, .column = p->v_column, .size = p->value_size};
    j->out = (lines){.first = p->query_at, .row = j->heads * p->value_size, .size = p->value_size};
    if (!p->key_row) {
        j->k.row = what->k->shape.dim[1];
        j->v.row = what->v->shape.dim[1];
    }
}

static bool measure_arrays(at_tape *tape, const at_fused *what, job *j)
{
    const at_shape q = what->q->shape, k = what->k->shape, v = what->v->shape;
    char a[80], b[80], c[80];
    if (q.rank != 3 || k.rank != 3 || v.rank != 3 || q.dim[0] != k.dim[0] || k.dim[0] != v.dim[0] ||
        k.dim[1] != v.dim[1] || q.dim[2] % what->heads || k.dim[2] % what->kv_heads || v.dim[2] % what->kv_heads ||
        q.dim[2] / what->heads != k.dim[2] / what->kv_heads)
        return at_fail(at_tape_error(tape), AT_FAILED,
                       "attention: query %s, key %s and value %s do not fit %lld heads over %lld key heads; they need "
                       "[B,Q,H*D], [B,K,G*D] and [B,K,G*Dv]",
                       at_shape_text(q, a, sizeof a), at_shape_text(k, b, sizeof b), at_shape_text(v, c, sizeof c),
                       (long long)what->heads, (long long)what->kv_heads);
    j->batch = q.dim[0];
    j->queries = q.dim[1];
    j->keys = k.dim[1];
    j->size = q.dim[2] / what->heads;
    j->value_size = v.dim[2] / what->kv_heads;
    j->q = (lines){.each = q.dim[1], .row = q.dim[2], .size = j->size};
    j->k = (lines){.each = k.dim[1], .row = k.dim[2], .size = j->size};
    j->v = (lines){.each = k.dim[1], .row = v.dim[2], .size = j->value_size};
    j->out = (lines){.each = q.dim[1], .row = what->heads * j->value_size, .size = j->value_size};
    return true;
}

/* Some row does not see every key of its sequence. */
static bool masks(const job *j)
{
    const at_spans *spans = j->what.spans;
    for (int64_t b = 0; b < j->batch; b++)
        for (int64_t h = 0; h < spans->heads; h++)
            for (int64_t i = 0, at = at_span_row(spans, b, h, 0); i < at_query_count(j, b); i++)
                if (spans->lo[at + i] > 0 || spans->hi[at + i] < at_key_count(j, b))
                    return true;
    return false;
}

static bool measure(at_tape *tape, const at_fused *what, job *j)
{
    at_error *error = at_tape_error(tape);
    if (what->heads < 1 || what->kv_heads < 1 || what->heads % what->kv_heads)
        return at_fail(error, AT_FAILED,
                       "attention: %lld heads cannot share %lld key heads; the second must divide the first",
                       (long long)what->heads, (long long)what->kv_heads);
    static const tile_rule rules[] = {
        [AT_SOFTMAX] = RULE_SOFTMAX, [AT_SPARSEMAX] = RULE_SPARSEMAX, [AT_ENTMAX15] = RULE_ENTMAX15,
        [AT_SIGMOID] = RULE_SIGMOID, [AT_RELU] = RULE_RELU,           [AT_HARD] = RULE_HARD};
    int64_t width = at_isa()->tile->width;
    *j = (job){.what = *what, .heads = what->heads, .kv_heads = what->kv_heads};
    if (what->packed)
        measure_packed(what, j);
    else if (!measure_arrays(tape, what, j))
        return false;
    j->key_panels = at_round_up(j->keys, width);
    j->size_panels = at_round_up(j->size, width);
    j->value_panels = at_round_up(j->value_size, width);
    j->rule = rules[what->normaliser];
    j->brief = j->batch >= 2 * at_threads() && j->keys <= BRIEF && j->queries <= BRIEF;
    j->keeps_stat = at_tape_records(tape) || what->weights || what->argmax || what->entropy || what->key_sums;
    j->unit = j->rule == RULE_SOFTMAX || j->rule == RULE_HARD ? LOG2E : 1;
    j->masked = masks(j);
    if (what->bias || what->key_table || what->value_table) {
        j->reach = what->bias ? what->bias->shape.dim[1] / 2 : what->clip;
        j->bias_row = at_round_up(2 * j->reach + 1, width) + 2 * width;
    }
    return true;
}

static bool out_of_memory(at_tape *tape)
{
    return at_fail(at_tape_error(tape), AT_FAILED,
                   "attention: memory is out; give the call more, or use fewer threads");
}

/* Shares the tasks of the job out; each worker gets scratch of its own, given back at the end. */
static bool run(at_tape *tape, job *j, at_task *task, size_t scratch_size, int64_t tasks, int threads)
{
    at_arena *arena = at_tape_arena(tape);
    at_mark mark = at_arena_mark(arena);
    if (threads > tasks)
        threads = (int)tasks;
    j->scratch_size = scratch_size;
    j->scratch = at_arena_take(arena, (size_t)threads * scratch_size);
    if (j->scratch)
        at_parallel(tasks, threads, task, j);
    at_arena_release(arena, mark);
    return j->scratch || out_of_memory(tape);
}

/* Threads worth starting: none for what one core does in a few microseconds. */
static int threads_for(const job *j)
{
    double work =
        (double)j->batch * (double)j->heads * (double)j->queries * (double)j->keys * (double)(j->size + j->value_size);
    return work < 1e5 ? 1 : at_threads();
}

/* When there are fewer pieces of work than threads, each is cut into parts. */
static int64_t parts_for(int64_t pairs, int threads, int64_t most)
{
    int64_t parts = 1;
    if (threads > 1 && pairs < threads)
        parts = (2 * threads + pairs - 1) / pairs;
    return parts < most ? parts : most > 0 ? most : 1;
}

static void backward(at_node *node);
static const at_op attention_op = {"attention", backward};

/* Shaw's table [2k+1,D] or [H,2k+1,D] as panels: of its rows turned, for products with its transpose, or as it is. */
static at_real *pack_table(at_tape *tape, const at_tensor *table, bool turned)
{
    const int64_t *dim = table->shape.dim + table->shape.rank - 2;
    int64_t heads = table->shape.rank == 3 ? table->shape.dim[0] : 1;
    int64_t k = turned ? dim[1] : dim[0], n = turned ? dim[0] : dim[1], each = at_gemm_packed_size(k, n);
    at_real *packed = at_arena_take(at_tape_arena(tape), (size_t)(heads * each) * sizeof *packed);
    for (int64_t h = 0; packed && h < heads; h++)
        at_gemm_pack(table->value + h * dim[0] * dim[1], turned ? 1 : dim[1], turned ? dim[1] : 1, k, n,
                     packed + h * each);
    return packed;
}

/* What lies beyond the counts of packed sequences, which no task comes by. */
static void clear_beyond(const job *j)
{
    const at_packed *p = j->what.packed;
    const int64_t rows = j->batch * j->heads * j->queries;
    int64_t used = 0;
    for (int64_t b = 0; b < p->batch; b++)
        used += p->query_count[b];
    if (used < j->what.q->shape.dim[0])
        memset(j->made.out->value, 0, (size_t)at_shape_count(j->made.out->shape) * sizeof(at_real));
    if (used == p->batch * j->queries)
        return;
    if (j->what.weights)
        memset(j->what.weights, 0,
               (size_t)(j->batch * j->heads * j->what.row_count * j->keys) * sizeof *j->what.weights);
    if (j->made.log_prob)
        memset(j->made.log_prob->value, 0, (size_t)rows * sizeof(at_real));
    if (j->what.entropy)
        memset(j->what.entropy, 0, (size_t)rows * sizeof(at_real));
    for (int64_t i = 0; j->what.argmax && i < rows; i++)
        j->what.argmax[i] = -1;
}

static bool make_outputs(at_tape *tape, job *j)
{
    const at_fused *what = &j->what;
    at_shape out = AT_SHAPE(j->batch, j->queries, j->heads * j->value_size),
             rows = AT_SHAPE(j->batch, j->heads, j->queries);
    if (what->packed)
        out = AT_SHAPE(what->q->shape.dim[0], j->heads * j->value_size);
    j->made.out = what->out_memory ? at_tensor_over(tape, out, what->out_memory) : at_tensor_make(tape, out);
    if (j->rule == RULE_HARD)
        j->made.log_prob = at_tensor_make(tape, rows);
    size_t count = (size_t)at_shape_count(rows);
    at_arena *arena = at_tape_arena(tape);
    j->stat = at_arena_take(arena, count * sizeof *j->stat);
    j->choice = j->rule == RULE_HARD ? at_arena_take(arena, count * sizeof *j->choice) : NULL;
    /* No more of them than the keys take, so memory stays linear. */
    if (what->additive && j->keeps_stat && j->queries <= j->size) {
        j->scores = at_arena_take(arena, count * (size_t)j->keys * sizeof *j->scores);
        if (!j->scores)
            return out_of_memory(tape);
    }
    int64_t entries = 2 * j->reach + 1, width = at_isa()->tile->width;
    if (what->bias) {
        j->bias = at_arena_take(arena, (size_t)(j->heads * j->bias_row) * sizeof *j->bias);
        for (int64_t h = 0; j->bias && h < j->heads; h++) {
            for (int64_t r = 0; r < entries; r++)
                j->bias[h * j->bias_row + width + r] = j->unit * what->bias->value[h * entries + r];
            at_pad_table(j->bias + h * j->bias_row, entries, entries);
        }
        if (!j->bias)
            return out_of_memory(tape);
    }
    if ((what->key_table && !(j->key_panels_of = pack_table(tape, what->key_table, true))) ||
        (what->value_table && !(j->value_panels_of = pack_table(tape, what->value_table, false))))
        return out_of_memory(tape);
    if (!j->made.out || (j->rule == RULE_HARD && !j->made.log_prob) || !j->stat || (j->rule == RULE_HARD && !j->choice))
        return out_of_memory(tape);
    if (what->packed)
        clear_beyond(j);
    if (what->key_sums)
        memset(what->key_sums, 0, (size_t)(j->batch * j->heads * j->keys) * sizeof *what->key_sums);
    return true;
}

at_fused_out at_fused_attention(at_tape *tape, const at_fused *what)
{
    at_fused_out none = {0};
    const bool by_rows = what->packed && what->packed->key_row;
    if (!at_tape_ok(tape) || !what->q || (!by_rows && (!what->k || !what->v)))
        return none;
    job *j = at_arena_take(at_tape_arena(tape), sizeof *j);
    if (!j) {
        out_of_memory(tape);
        return none;
    }
    if (!measure(tape, what, j) || !make_outputs(tape, j))
        return none;
    int threads = threads_for(j);
    if (by_rows && !at_decode_can(j)) {
        at_fail(at_tape_error(tape), AT_FAILED, "attention: keys given by their rows do not go with these settings");
        return none;
    }
    if (at_decode_can(j)) {
        j->parts = parts_for(j->batch, threads, j->kv_heads);
        if (!run(tape, j, at_decode_task, at_decode_scratch(j), j->batch * j->parts, threads))
            return none;
    } else {
        int64_t blocks = (j->queries + TILE_ROWS - 1) / TILE_ROWS;
        /* Sums over the queries belong to one task. */
        j->parts = what->key_sums ? 1 : parts_for(j->batch * j->kv_heads, threads, blocks * (j->heads / j->kv_heads));
        if (!run(tape, j, at_forward_task, at_forward_scratch(j), at_pair_tasks(j), threads))
            return none;
    }
    at_tensor *outputs[] = {j->made.out, j->made.log_prob};
    at_tensor *inputs[] = {what->q,    what->k,      what->v,         what->score_v,
                           what->bias, what->centre, what->key_table, what->value_table};
    if (!at_record(tape, &attention_op, outputs, 2, inputs, 8, j))
        return none;
    return j->made;
}

/* The parts of each batch and head, added up in their order. */
static void add_parts(at_tensor *tensor, const at_real *parts, bool per_head, int64_t batch, int64_t heads,
                      int64_t count)
{
    at_real *grad = tensor && tensor->wants_grad && parts ? at_tensor_grad(tensor) : NULL;
    for (int64_t b = 0; grad && b < batch; b++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < count; i++)
                grad[(per_head ? h * count : 0) + i] += parts[(b * heads + h) * count + i];
}

/* `count` zeros for each batch and head, if there is such a tensor. */
static bool take_parts(job *j, at_arena *arena, const at_tensor *tensor, int64_t count, at_real **parts)
{
    *parts = tensor ? at_arena_zeros(arena, (size_t)(j->batch * j->heads * count) * sizeof(at_real)) : NULL;
    return !tensor || *parts;
}

static bool columns_meet(const at_tensor *a, const lines *x, int64_t x_heads, const at_tensor *b, const lines *y,
                         int64_t y_heads)
{
    return a == b && x->column < y->column + y_heads * y->size && y->column < x->column + x_heads * x->size;
}

/* Packed operands that are the same columns of the same tensor. */
static bool shares_columns(const job *j)
{
    const at_fused *what = &j->what;
    return columns_meet(what->q, &j->q, j->heads, what->k, &j->k, j->kv_heads) ||
           columns_meet(what->q, &j->q, j->heads, what->v, &j->v, j->kv_heads) ||
           columns_meet(what->k, &j->k, j->kv_heads, what->v, &j->v, j->kv_heads);
}

/* Gathers all gradients. A worker owns a (batch, key head); when those are too few to go round, the queries' gradients
 * are gathered by queries and then the keys' by keys, unless there are sums that belong to a whole head. */
static void gather(at_tape *tape, job *j)
{
    int threads = threads_for(j);
    if (j->what.packed && shares_columns(j))
        threads = 1; /* one place of the gradient may get sums from several pairs */
    int64_t blocks = (j->queries + TILE_ROWS - 1) / TILE_ROWS * (j->heads / j->kv_heads);
    int64_t key_blocks = (j->keys + TILE_KEYS - 1) / TILE_KEYS, pairs = j->batch * j->kv_heads;
    bool head_sums = j->score_parts || j->bias_parts || j->key_parts || j->value_parts;
    size_t scratch = at_backward_scratch(j);
    j->back_query = j->back_keys = true;
    j->parts = 1;
    if (head_sums || threads == 1 || pairs >= threads || blocks == 1 || key_blocks == 1) {
        run(tape, j, at_backward_task, scratch, at_pair_tasks(j), threads);
        return;
    }
    j->back_keys = false;
    j->parts = parts_for(pairs, threads, blocks);
    if (!run(tape, j, at_backward_task, scratch, at_pair_tasks(j), threads))
        return;
    j->back_query = false;
    j->back_keys = true;
    j->parts = parts_for(pairs, threads, key_blocks);
    run(tape, j, at_backward_task, scratch, at_pair_tasks(j), threads);
}

static void backward(at_node *node)
{
    job *j = node->saved;
    const at_fused *what = &j->what;
    at_tape *tape = j->made.out->tape;
    at_arena *arena = at_tape_arena(tape);
    /* Gradients are touched here first: workers may not take memory. */
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] && node->inputs[i]->wants_grad && !at_tensor_grad(node->inputs[i]))
            return;
    at_mark mark = at_arena_mark(arena);
    int64_t entries = 2 * j->reach + 1;
    const at_tensor *bias = what->bias && what->bias->wants_grad ? what->bias : NULL;
    bool room = take_parts(j, arena, bias, entries, &j->bias_parts) &&
                take_parts(j, arena, what->score_v, j->size, &j->score_parts) &&
                take_parts(j, arena, what->key_table, entries * j->size, &j->key_parts) &&
                take_parts(j, arena, what->value_table, entries * j->value_size, &j->value_parts) &&
                (!what->key_table || (j->key_rows_of = pack_table(tape, what->key_table, false))) &&
                (!what->value_table || (j->value_columns_of = pack_table(tape, what->value_table, true)));
    if (room)
        gather(tape, j);
    else
        out_of_memory(tape);
    if (room && at_tape_ok(tape)) {
        add_parts(what->bias, j->bias_parts, true, j->batch, j->heads, entries);
        add_parts(what->score_v, j->score_parts, what->score_v && what->score_v->shape.rank == 2, j->batch, j->heads,
                  j->size);
        add_parts(what->key_table, j->key_parts, what->key_table && what->key_table->shape.rank == 3, j->batch,
                  j->heads, entries * j->size);
        add_parts(what->value_table, j->value_parts, what->value_table && what->value_table->shape.rank == 3, j->batch,
                  j->heads, entries * j->value_size);
    }
    at_arena_release(arena, mark);
}
