/* The fused operation on the tape: sizes, memory, and which tasks run.
 *
 * It covers three things besides queries, keys and values; all else of the catalogue happens before or after it:
 *   - a score bias looked up by clipped offset (alibi, t5),
 *   - tables of keys and values by clipped offset (shaw): a block's products with them are computed where they are used,
 *   - a Gaussian prior around a centre (local-p). */
#include <string.h>

#include "attention/fused_internal.h"
#include "base/threads.h"
#include "kernels/isa.h"

enum { SHORT = 192 }; /* keys and queries of a head that fit the caches many times over */

int64_t at_largest_count(const int64_t *counts, int64_t n)
{
    int64_t most = 0;
    for (int64_t i = 0; i < n; i++)
        most = counts[i] > most ? counts[i] : most;
    return most;
}

bool at_fused_can(const at_attention *a)
{
    return !a->plain && a->score->fused && a->normaliser->fused;
}

/* ---- Sizes ---- */

static void lay_out_packed(at_job *j)
{
    const at_packed *p = j->direct;
    j->size = j->D;
    j->q_rows = (at_layout){.first = p->query_at, .row = j->q->shape.dim[1], .column = p->q_column, .size = p->size};
    j->k_rows = (at_layout){.first = p->key_at, .column = p->k_column, .size = p->size};
    j->v_rows = (at_layout){.first = p->key_at, .column = p->v_column, .size = p->value_size};
    j->out_rows = (at_layout){.first = p->query_at, .row = j->H * p->value_size, .size = p->value_size};
    if (!p->key_row) {
        j->k_rows.row = j->k->shape.dim[1];
        j->v_rows.row = j->v->shape.dim[1];
    }
}

/* q [B,Q,H,size], k [B,K,G,size], v [B,K,G,Dv]: a head is a slice of columns, so no transposes are needed. */
static void lay_out_arrays(at_job *j)
{
    j->size = j->q->shape.dim[3];
    j->q_rows = (at_layout){.each = j->Q, .row = j->H * j->size, .size = j->size};
    j->k_rows = (at_layout){.each = j->K, .row = j->G * j->size, .size = j->size};
    j->v_rows = (at_layout){.each = j->K, .row = j->G * j->Dv, .size = j->Dv};
    j->out_rows = (at_layout){.each = j->Q, .row = j->H * j->Dv, .size = j->Dv};
}

/* Some row does not see every key of its sequence. */
static bool has_masked_rows(const at_job *j)
{
    const at_spans *spans = &j->spans;
    for (int64_t b = 0; b < j->B; b++)
        for (int64_t h = 0; h < spans->heads; h++)
            for (int64_t i = 0, at = at_span_row(spans, b, h, 0); i < at_query_count(j, b); i++)
                if (spans->lo[at + i] > 0 || spans->hi[at + i] < at_key_count(j, b))
                    return true;
    return false;
}

static bool has_summaries(const at_job *j)
{
    return j->asked->argmax || j->asked->entropy || j->asked->key_sums;
}

static void measure(at_job *j)
{
    const int64_t width = at_isa()->tile->width;
    const at_fused_score *score = j->attention.score->fused;
    if (j->direct)
        lay_out_packed(j);
    else
        lay_out_arrays(j);
    j->key_panels = at_round_up(j->K, width);
    j->size_panels = at_round_up(j->size, width);
    j->value_panels = at_round_up(j->Dv, width);
    j->rule = j->attention.normaliser->fused;
    j->pairwise = score->tile ? score : NULL;
    j->score_vector = score->vector < 0 ? NULL : j->in.parameter[AT_SCORE][score->vector];
    j->score_scale = j->rule->ignores_offset && !j->pairwise ? j->scale : 1;
    j->is_short = j->B >= 2 * at_threads() && j->K <= SHORT && j->Q <= SHORT;
    j->keeps_stat = at_tape_records(j->tape) || j->asked->weights || has_summaries(j);
    j->is_masked = has_masked_rows(j);
    if (j->bias || j->key_table || j->value_table) {
        j->reach = j->bias ? j->bias->shape.dim[1] / 2 : j->attention.argument[AT_POSITION];
        j->bias_row = at_round_up(2 * j->reach + 1, width) + 2 * width;
    }
}

bool at_fused_takes_rows(const at_job *j)
{
    const at_fused_normaliser *rule = j->attention.normaliser->fused;
    return rule->pass == AT_PASS_ONLINE && !j->attention.score->fused->tile && j->H <= TILE_ROWS && !has_summaries(j) &&
           j->in.drop.share == 0;
}

static bool out_of_memory(at_tape *tape)
{
    return at_no_memory(at_tape_error(tape), "attention; give the call more memory, or use fewer threads");
}

/* ---- The forward pass ---- */

/* Runs the tasks on several threads; each worker has its own scratch memory, released at the end. */
static bool run_tasks(at_job *j, at_task *task, size_t scratch_size, int64_t tasks, int threads)
{
    at_arena *arena = at_tape_arena(j->tape);
    at_mark mark = at_arena_mark(arena);
    if (threads > tasks)
        threads = (int)tasks;
    j->scratch_size = scratch_size;
    j->scratch = at_arena_take(arena, (size_t)threads * scratch_size);
    if (j->scratch)
        at_parallel(tasks, threads, task, j);
    at_arena_release(arena, mark);
    return j->scratch || out_of_memory(j->tape);
}

/* One thread for what it does in a few microseconds. */
static int threads_for(const at_job *j)
{
    double work = (double)j->B * (double)j->H * (double)j->Q * (double)j->K * (double)(j->size + j->Dv);
    return work < 1e5 ? 1 : at_threads();
}

/* With fewer (batch, key head) pairs than threads, each is cut into parts. */
static int64_t parts_for(int64_t pairs, int threads, int64_t most)
{
    int64_t parts = 1;
    if (threads > 1 && pairs < threads)
        parts = (2 * threads + pairs - 1) / pairs;
    return parts < most ? parts : most > 0 ? most : 1;
}

static void backward(at_node *node);
static const at_op attention_op = {"attention", backward};

/* One of shaw's tables [2k+1,D] or [H,2k+1,D] as panels, of its transpose or as it is. */
static at_real *pack_table(at_tape *tape, const at_tensor *table, bool transpose)
{
    const int64_t *dim = table->shape.dim + table->shape.rank - 2;
    int64_t heads = table->shape.rank == 3 ? table->shape.dim[0] : 1;
    int64_t k = transpose ? dim[1] : dim[0], n = transpose ? dim[0] : dim[1], each = at_tile_packed_size(k, n);
    at_real *packed = at_arena_take(at_tape_arena(tape), (size_t)(heads * each) * sizeof *packed);
    for (int64_t h = 0; packed && h < heads; h++)
        at_tile_pack(table->value + h * dim[0] * dim[1], transpose ? 1 : dim[1], transpose ? dim[1] : 1, k, n,
                     packed + h * each);
    return packed;
}

/* Zeros beyond the counts of packed sequences, where no task writes. */
static void clear_beyond(const at_job *j)
{
    const at_packed *p = j->direct;
    const int64_t rows = j->B * j->H * j->Q;
    int64_t used = 0;
    for (int64_t b = 0; b < p->batch; b++)
        used += p->query_count[b];
    if (used < j->q->shape.dim[0])
        memset(j->out->value, 0, (size_t)at_shape_count(j->out->shape) * sizeof(at_real));
    if (used == p->batch * j->Q)
        return;
    if (j->asked->weights)
        memset(j->asked->weights, 0, (size_t)(j->B * j->H * j->asked_rows * j->K) * sizeof *j->asked->weights);
    if (j->log_prob)
        memset(j->log_prob->value, 0, (size_t)rows * sizeof(at_real));
    if (j->asked->entropy)
        memset(j->asked->entropy, 0, (size_t)rows * sizeof(at_real));
    for (int64_t i = 0; j->asked->argmax && i < rows; i++)
        j->asked->argmax[i] = -1;
}

/* The bias, padded: see tile_table. */
static bool make_bias_table(at_job *j)
{
    const int64_t entries = 2 * j->reach + 1, width = at_isa()->tile->width;
    j->bias_table = at_arena_take(at_tape_arena(j->tape), (size_t)(j->H * j->bias_row) * sizeof *j->bias_table);
    for (int64_t h = 0; j->bias_table && h < j->H; h++) {
        at_real *table = j->bias_table + h * j->bias_row;
        for (int64_t r = 0; r < entries; r++)
            table[width + r] = j->bias->value[h * entries + r];
        at_pad_table(table, entries, entries);
    }
    return j->bias_table;
}

static bool make_outputs(at_job *j)
{
    const at_shape rows = AT_SHAPE(j->B, j->H, j->Q);
    const at_shape out = j->direct ? AT_SHAPE(j->q->shape.dim[0], j->H * j->Dv) : AT_SHAPE(j->B, j->Q, j->H * j->Dv);
    at_real *memory = j->in.WO ? NULL : j->in.out_memory;
    j->out = memory ? at_tensor_over(j->tape, out, memory) : at_tensor_make(j->tape, out);
    j->log_prob = at_attention_samples(&j->attention) ? at_tensor_make(j->tape, rows) : NULL;
    return j->out && (j->log_prob || !at_attention_samples(&j->attention));
}

/* What the operation keeps for its tasks and for the backward pass. */
static bool make_tables(at_job *j)
{
    at_arena *arena = at_tape_arena(j->tape);
    const size_t count = (size_t)(j->B * j->H * j->Q);
    const bool chooses = j->rule->pass == AT_PASS_CHOICE;
    /* Scores are kept if they take no more memory than the keys do, so memory stays linear. */
    const bool keeps_scores = j->pairwise && j->keeps_stat && j->Q <= j->size;
    j->stat = at_arena_take(arena, count * sizeof *j->stat);
    j->top = j->rule->ignores_offset ? at_arena_take(arena, count * sizeof *j->top) : NULL;
    j->choice = chooses ? at_arena_take(arena, count * sizeof *j->choice) : NULL;
    j->scores = keeps_scores ? at_arena_take(arena, count * (size_t)j->K * sizeof *j->scores) : NULL;
    return j->stat && (j->top || !j->rule->ignores_offset) && (j->choice || !chooses) && (j->scores || !keeps_scores) &&
           (!j->bias || make_bias_table(j)) &&
           (!j->key_table || (j->key_table_panels = pack_table(j->tape, j->key_table, true))) &&
           (!j->value_table || (j->value_table_panels = pack_table(j->tape, j->value_table, false)));
}

static bool run_forward(at_job *j)
{
    const int threads = threads_for(j);
    if (at_decode_can(j)) {
        j->parts = parts_for(j->B, threads, j->G);
        return run_tasks(j, at_decode_task, at_decode_scratch(j), j->B * j->parts, threads);
    }
    const int64_t blocks = (j->Q + TILE_ROWS - 1) / TILE_ROWS;
    /* Sums over the queries belong to one task. */
    j->parts = j->asked->key_sums ? 1 : parts_for(j->B * j->G, threads, blocks * (j->H / j->G));
    return run_tasks(j, at_forward_task, at_forward_scratch(j), at_pair_tasks(j), threads);
}

void at_fused_run(at_job *j)
{
    const bool by_rows = j->direct && j->direct->key_row;
    if (!at_tape_ok(j->tape) || !j->q || (!by_rows && (!j->k || !j->v)))
        return;
    if (!j->direct) {
        /* With a U per head the keys differ from head to head, and each head needs its own values beside them. */
        j->G = j->k->shape.dim[2];
        if (!(j->v = at_repeat_heads(j->v, j->G)))
            return;
    }
    measure(j);
    if (!make_outputs(j) || !make_tables(j)) {
        out_of_memory(j->tape);
        return;
    }
    if (j->direct)
        clear_beyond(j);
    if (j->asked->key_sums)
        memset(j->asked->key_sums, 0, (size_t)(j->B * j->H * j->K) * sizeof *j->asked->key_sums);
    if (!run_forward(j))
        return;
    at_tensor *outputs[] = {j->out, j->log_prob};
    at_tensor *inputs[] = {j->q, j->k, j->v, j->score_vector, j->bias, j->centre, j->key_table, j->value_table};
    at_record(j->tape, &attention_op, outputs, 2, inputs, 8, j);
}

/* ---- The backward pass ---- */

/* Adds the parts of all batch rows and heads to the gradient, in their order. */
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
static bool take_parts(at_job *j, at_arena *arena, const at_tensor *tensor, int64_t count, at_real **parts)
{
    *parts = tensor ? at_arena_zeros(arena, (size_t)(j->B * j->H * count) * sizeof(at_real)) : NULL;
    return !tensor || *parts;
}

static bool columns_overlap(const at_tensor *a, const at_layout *x, int64_t x_heads, const at_tensor *b,
                            const at_layout *y, int64_t y_heads)
{
    return a == b && x->column < y->column + y_heads * y->size && y->column < x->column + x_heads * x->size;
}

/* Packed operands that share columns of one tensor. */
static bool shares_columns(const at_job *j)
{
    return columns_overlap(j->q, &j->q_rows, j->H, j->k, &j->k_rows, j->G) ||
           columns_overlap(j->q, &j->q_rows, j->H, j->v, &j->v_rows, j->G) ||
           columns_overlap(j->k, &j->k_rows, j->G, j->v, &j->v_rows, j->G);
}

/* All gradients. A task is a (batch, key head) pair; with fewer pairs than threads, the queries' gradients are computed
 * in parts of the queries and then the keys' in parts of the keys, unless there are sums over a whole head. */
static void run_backward(at_job *j)
{
    int threads = threads_for(j);
    if (j->direct && shares_columns(j))
        threads = 1; /* several pairs may add to one element of the gradient */
    int64_t blocks = (j->Q + TILE_ROWS - 1) / TILE_ROWS * (j->H / j->G);
    int64_t key_blocks = (j->K + TILE_KEYS - 1) / TILE_KEYS, pairs = j->B * j->G;
    bool head_sums = j->pairwise || j->bias_parts || j->key_parts || j->value_parts;
    size_t scratch = at_backward_scratch(j);
    j->back_query = j->back_keys = true;
    j->parts = 1;
    if (head_sums || threads == 1 || pairs >= threads || blocks == 1 || key_blocks == 1) {
        run_tasks(j, at_backward_task, scratch, at_pair_tasks(j), threads);
        return;
    }
    j->back_keys = false;
    j->parts = parts_for(pairs, threads, blocks);
    if (!run_tasks(j, at_backward_task, scratch, at_pair_tasks(j), threads))
        return;
    j->back_query = false;
    j->back_keys = true;
    j->parts = parts_for(pairs, threads, key_blocks);
    run_tasks(j, at_backward_task, scratch, at_pair_tasks(j), threads);
}

static void backward(at_node *node)
{
    at_job *j = node->saved;
    at_tape *tape = j->tape;
    at_arena *arena = at_tape_arena(tape);
    /* Gradients are allocated here: workers may not allocate. */
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] && node->inputs[i]->wants_grad && !at_tensor_grad(node->inputs[i]))
            return;
    at_mark mark = at_arena_mark(arena);
    int64_t entries = 2 * j->reach + 1;
    const at_tensor *bias = j->bias && j->bias->wants_grad ? j->bias : NULL;
    bool fits = take_parts(j, arena, bias, entries, &j->bias_parts) &&
                take_parts(j, arena, j->score_vector, j->size, &j->score_parts) &&
                take_parts(j, arena, j->key_table, entries * j->size, &j->key_parts) &&
                take_parts(j, arena, j->value_table, entries * j->Dv, &j->value_parts) &&
                (!j->key_table || (j->key_table_rows = pack_table(tape, j->key_table, false))) &&
                (!j->value_table || (j->value_table_columns = pack_table(tape, j->value_table, true)));
    if (fits)
        run_backward(j);
    else
        out_of_memory(tape);
    if (fits && at_tape_ok(tape)) {
        add_parts(j->bias, j->bias_parts, true, j->B, j->H, entries);
        add_parts(j->score_vector, j->score_parts, j->score_vector && j->score_vector->shape.rank == 2, j->B, j->H,
                  j->size);
        add_parts(j->key_table, j->key_parts, j->key_table && j->key_table->shape.rank == 3, j->B, j->H,
                  entries * j->size);
        add_parts(j->value_table, j->value_parts, j->value_table && j->value_table->shape.rank == 3, j->B, j->H,
                  entries * j->Dv);
    }
    at_arena_release(arena, mark);
}
