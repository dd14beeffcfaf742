/* Forward: a block of query rows meets its keys tile by tile, and the softmax goes online. */
#include <math.h>
#include <string.h>

#include "attention/fused_internal.h"
#include "base/rng.h"
#include "kernels/isa.h"

static const at_real LN2 = (at_real)0.6931471805599453;

/* A worker's memory for one (batch, key head) and one block. */
typedef struct room {
    at_real *kt; /* keys as panels [K/w][D][w] */
    at_real *v;  /* values as panels [Dv/w][K][w], unless one query reads them where they lie */
    tile_lines values;
    bool lone;
    at_real *score; /* score_v of the head times unit */
    at_real *s;     /* scores: one tile, or whole rows where the normaliser needs them or they are kept */
    int64_t s_row;
    at_real *out; /* [rows, out_row] */
    int64_t out_row;
    at_real *offsets; /* [rows, offsets_row] */
    int64_t offsets_row;
    at_real *top, *sum, *lean; /* [rows] */
    at_real *seen;             /* [K/tile, rows]: each tile's top, to put kept weights on one scale */
    cutter block;              /* what a block takes */
} room;

static bool needs_whole_rows(const job *j)
{
    return j->rule == RULE_SPARSEMAX || j->rule == RULE_ENTMAX15;
}

/* The online softmax can keep the summaries along the way; everything else looks again at the end. */
static bool sums_along(const job *j)
{
    return j->rule == RULE_SOFTMAX && !j->what.centre && j->what.drop.share == 0;
}

static bool keeps_weights(const job *j)
{
    return j->what.key_sums && sums_along(j);
}

static room make_room(const job *j, char *memory)
{
    int64_t width = at_isa()->tile->width;
    bool whole = needs_whole_rows(j) || keeps_weights(j);
    cutter cut = {.at = memory};
    room r = {0};
    r.kt = at_cut(&cut, j->key_panels * j->size);
    r.v = at_cut(&cut, j->keys * j->value_panels);
    r.score = at_cut(&cut, j->what.additive ? j->size : 0);
    r.s_row = (whole ? j->key_panels : TILE_KEYS) + width;
    r.s = at_cut(&cut, TILE_ROWS * r.s_row);
    r.out_row = j->value_panels + width;
    r.out = at_cut(&cut, TILE_ROWS * r.out_row);
    r.offsets_row = j->what.value_table ? at_round_up(2 * j->reach + 1, width) : 0;
    r.offsets = at_cut(&cut, TILE_ROWS * r.offsets_row);
    r.top = at_cut(&cut, TILE_ROWS);
    r.sum = at_cut(&cut, TILE_ROWS);
    r.lean = at_cut(&cut, TILE_ROWS);
    r.seen = at_cut(&cut, keeps_weights(j) ? (j->keys / TILE_KEYS + 1) * TILE_ROWS : 0);
    r.block = cut;
    return r;
}

/* Twice a block's share: at_look loads a second one beside the first. */
size_t at_forward_scratch(const job *j)
{
    room r = make_room(j, NULL);
    int64_t width = at_isa()->tile->width;
    int64_t block_size = TILE_ROWS * (j->size_panels + width + (j->what.key_table ? j->bias_row : 0));
    return r.block.used + 2 * (size_t)at_round_up(block_size * (int64_t)sizeof(at_real) + 2 * AT_ALIGN, AT_ALIGN) +
           (size_t)at_round_up(TILE_ROWS * (TILE_KEYS + width) * (int64_t)sizeof(at_real), AT_ALIGN);
}

/* After the weights of a tile are there, up to a factor for each row: the prior, dropout, the sums by offset, the
 * values.
 */
static void spend(const job *j, const block *blk, const room *r, const tile *t, bool careful)
{
    const tile_kernels *k = at_isa()->tile;
    if (j->what.centre)
        k->prior(t, blk->centre, j->what.sigma);
    at_block_drop(j, blk, t);
    if (r->offsets_row)
        k->by_offset(t, blk->place, j->reach, r->offsets, r->offsets_row);
    k->blank(t, keeps_weights(j));
    if (r->lone) {
        if (t->from == blk->from)
            memset(r->out, 0, (size_t)r->out_row * sizeof *r->out);
        k->weigh_heads(t, j->value_size, &r->values, 1, r->out, r->out_row);
        return;
    }
    k->weigh(t, j->value_size, r->v, blk->keys, r->out, r->out_row, t->from == blk->from, careful);
}

void at_online_tile(const job *j, const tile *t, const tile_table *table, const tile_state *state)
{
    const tile_kernels *k = at_isa()->tile;
    if (j->rule != RULE_SOFTMAX && table->at)
        k->look_up(t, table);
    if (j->rule == RULE_SOFTMAX)
        k->softmax(t, table, state);
    else if (j->rule == RULE_SIGMOID)
        k->sigmoid(t);
    else
        k->relu(t, state);
}

at_real at_online_end(const job *j, at_real top, at_real sum, bool empty, at_real *stat)
{
    at_real factor = j->rule == RULE_SIGMOID ? 1 : empty || (j->rule == RULE_RELU && sum == 0) ? 0 : 1 / sum;
    if (stat)
        *stat = empty ? 0 : j->rule == RULE_SOFTMAX ? top + AT_REAL(log2)(sum) : factor;
    return factor;
}

/* softmax, sigmoid, relu: one pass over the keys. */
static void pass_online(const job *j, const block *blk, const room *r, at_real *factor, bool careful)
{
    int32_t argmax[TILE_ROWS];
    bool direct = sums_along(j);
    tile_state state = {.top = r->top,
                        .sum = r->sum,
                        .lean = direct && j->what.entropy ? r->lean : NULL,
                        .argmax = direct && j->what.argmax ? argmax : NULL,
                        .out = r->out,
                        .out_row = r->out_row,
                        .out_size = j->value_panels,
                        .offsets = r->offsets_row ? r->offsets : NULL,
                        .offsets_row = r->offsets_row,
                        .offsets_size = 2 * j->reach + 1};
    for (int64_t i = 0; i < blk->rows; i++)
        argmax[i] = -1;
    for (int64_t from = blk->from; from < blk->to; from += TILE_KEYS) {
        tile t = at_block_tile(blk, from, keeps_weights(j) ? r->s + from : r->s, r->s_row);
        at_block_score(j, blk, &t, r->kt, r->score);
        at_online_tile(j, &t, &blk->table, &state);
        if (keeps_weights(j))
            memcpy(r->seen + from / TILE_KEYS * TILE_ROWS, r->top, (size_t)blk->rows * sizeof *r->top);
        spend(j, blk, r, &t, careful);
    }
    for (int64_t i = 0; i < blk->rows; i++) {
        int64_t row = at_row_of(j, blk->b, blk->h, blk->index[i]);
        bool empty = blk->lo[i] >= blk->hi[i];
        factor[i] = at_online_end(j, r->top[i], r->sum[i], empty, j->keeps_stat ? &j->stat[row] : NULL);
        /* -sum w ln w = ln 2 (log2 sum - mean exponent) */
        if (state.lean)
            j->what.entropy[row] = empty ? 0 : LN2 * (AT_REAL(log2)(r->sum[i]) - r->lean[i] / r->sum[i]);
        if (state.argmax)
            j->what.argmax[row] = argmax[i];
    }
}

/* The kept weights of a block, each tile's brought to the rows' final scale, added up for every key. */
static void add_key_sums(const job *j, const block *blk, const room *r, const at_real *factor)
{
    for (int64_t from = blk->from; from < blk->to; from += TILE_KEYS) {
        tile t = at_block_tile(blk, from, r->s + from, r->s_row);
        at_real scaled[TILE_ROWS];
        for (int64_t i = 0; i < blk->rows; i++) {
            at_real seen = r->seen[from / TILE_KEYS * TILE_ROWS + i];
            scaled[i] = seen == r->top[i]   ? factor[i]
                        : seen == -INFINITY ? 0
                                            : factor[i] * AT_REAL(exp2)(seen - r->top[i]);
        }
        at_isa()->tile->key_sums(&t, scaled, j->what.key_sums + (blk->b * j->heads + blk->h) * j->keys);
    }
}

/* sparsemax, entmax15: all scores of a row, then its threshold, then the weights. */
static void pass_whole(const job *j, const block *blk, const room *r, at_real *factor, bool careful)
{
    const tile_kernels *k = at_isa()->tile;
    at_real stat[TILE_ROWS];
    for (int64_t from = blk->from; from < blk->to; from += TILE_KEYS) {
        tile t = at_block_tile(blk, from, r->s + from, r->s_row);
        at_block_score(j, blk, &t, r->kt, r->score);
        if (blk->table.at)
            k->look_up(&t, &blk->table);
    }
    for (int64_t i = 0; i < blk->rows; i++) {
        stat[i] = blk->lo[i] < blk->hi[i] ? k->threshold(r->s + i * r->s_row, blk->lo[i], blk->hi[i], j->rule) : 0;
        j->stat[at_row_of(j, blk->b, blk->h, blk->index[i])] = stat[i];
        factor[i] = 1;
    }
    tile_back back = {.rule = j->rule, .stat = stat};
    for (int64_t from = blk->from; from < blk->to; from += TILE_KEYS) {
        tile t = at_block_tile(blk, from, r->s + from, r->s_row);
        k->weights(&t, &back);
        spend(j, blk, r, &t, careful);
    }
}

/* hard: the argmax, or by Gumbel's trick a draw from the softmax: argmax_j e_j - ln(-ln u_j). */
static void pass_hard(const job *j, const block *blk, const room *r, at_real *factor)
{
    const tile_kernels *k = at_isa()->tile;
    at_real best[TILE_ROWS], chosen[TILE_ROWS];
    int32_t choice[TILE_ROWS];
    tile_state state = {.top = r->top, .sum = r->sum, .out = r->out, .out_row = r->out_row};
    for (int64_t i = 0; i < blk->rows; i++) {
        best[i] = -INFINITY;
        chosen[i] = 0;
        choice[i] = -1;
    }
    for (int64_t from = blk->from; from < blk->to; from += TILE_KEYS) {
        tile t = at_block_tile(blk, from, r->s, r->s_row);
        at_block_score(j, blk, &t, r->kt, r->score);
        if (blk->table.at)
            k->look_up(&t, &blk->table);
        for (int64_t i = 0; i < blk->rows; i++) {
            uint64_t row = (uint64_t)at_row_of(j, blk->b, blk->h, blk->index[i]);
            int64_t lo = blk->lo[i] > t.from ? blk->lo[i] : t.from, hi = blk->hi[i] < t.to ? blk->hi[i] : t.to;
            for (int64_t key = lo; key < hi; key++) {
                at_real s = t.s[i * t.s_row + key - from], value = s;
                if (j->what.sample)
                    value = LN2 * s - (at_real)log(-log(at_uniform_at(j->what.seed, row, (uint64_t)key)));
                if (value > best[i] || choice[i] < 0) {
                    best[i] = value;
                    chosen[i] = s;
                    choice[i] = (int32_t)key;
                }
            }
        }
        k->softmax(&t, &(tile_table){0}, &state);
    }
    for (int64_t i = 0; i < blk->rows; i++) {
        int64_t row = at_row_of(j, blk->b, blk->h, blk->index[i]);
        j->choice[row] = choice[i];
        j->stat[row] = choice[i] < 0 ? 0 : r->top[i] + AT_REAL(log2)(r->sum[i]);
        j->made.log_prob->value[row] = choice[i] < 0 ? 0 : LN2 * (chosen[i] - j->stat[row]);
        factor[i] = 1;
        if (choice[i] < 0)
            continue;
        at_real away = (at_real)choice[i] - blk->centre[i], weight = 1;
        if (j->what.centre)
            weight = AT_REAL(exp)(-away * away / (2 * j->what.sigma * j->what.sigma));
        const at_real *v = j->what.v->value + at_start_of(&j->v, blk->b, blk->g, choice[i]);
        for (int64_t d = 0; d < j->value_size; d++)
            r->out[i * r->out_row + d] = weight * v[d];
        if (r->offsets_row) {
            int64_t reach = j->reach, offset = choice[i] - blk->place[i];
            offset = offset < -reach ? -reach : offset > reach ? reach : offset;
            r->offsets[i * r->offsets_row + offset + reach] = weight;
        }
    }
}

/* From scores to weighted sums, up to a factor for each row. */
static void pass(const job *j, const block *blk, const room *r, at_real *factor, bool careful)
{
    if (r->offsets_row)
        memset(r->offsets, 0, (size_t)(blk->rows * r->offsets_row) * sizeof *r->offsets);
    if (j->rule == RULE_HARD || blk->from >= blk->to)
        memset(r->out, 0, (size_t)(blk->rows * r->out_row) * sizeof *r->out);
    for (int64_t i = 0; i < blk->rows; i++) {
        r->top[i] = -INFINITY;
        r->sum[i] = r->lean[i] = 0;
    }
    if (j->rule == RULE_HARD)
        pass_hard(j, blk, r, factor);
    else if (needs_whole_rows(j))
        pass_whole(j, blk, r, factor, careful);
    else
        pass_online(j, blk, r, factor, careful);
}

static void forward_block(const job *j, const room *r, int64_t b, int64_t h, int64_t first, int64_t rows,
                          tile_fetch *fetch)
{
    block blk;
    cutter scratch = r->block;
    at_real factor[TILE_ROWS];
    const row_kernels *k = at_isa()->rows;
    at_block_load(j, &blk, &scratch, b, h, NULL, first, rows);
    blk.fetch = fetch;
    pass(j, &blk, r, factor, false);
    /* A value that is not finite has met zero weights of rows that do not see it: once more, each row by itself. */
    if (j->masked && !k->finite(r->out, r->out_row, rows, j->value_size))
        pass(j, &blk, r, factor, true);

    int64_t count = 2 * j->reach + 1;
    if (r->offsets_row) /* c += (sums of weights by offset) wV */
        at_isa()->tile->multiply(rows, blk.entries, j->value_size, r->offsets, r->offsets_row,
                                 at_table_of(j->what.value_table, j->value_panels_of, h, count * j->value_panels),
                                 count * at_isa()->tile->width, r->out, r->out_row, true);
    k->copy(j->made.out->value + at_start_of(&j->out, b, h, first), j->out.row, 0, r->out, r->out_row, rows,
            j->value_size, 1, factor);
    if (keeps_weights(j))
        add_key_sums(j, &blk, r, factor);
    at_look(j, scratch, b, h, first, rows, r->kt, r->score, !sums_along(j));
}

/* What the pair after (b, g) needs first: its keys, values and queries, and the place of its output. */
static tile_fetch next_pair(const job *j, int64_t b, int64_t g)
{
    tile_fetch fetch = {.rows_a_time = 3};
    if (!at_next_pair(j, &b, &g))
        return fetch;
    int64_t group = j->heads / j->kv_heads, h = g * group, queries = at_query_count(j, b), keys = at_key_count(j, b);
    at_fetch_add(&fetch, j->what.k->value + at_start_of(&j->k, b, g, 0), j->k.row, keys, j->size);
    at_fetch_add(&fetch, j->what.v->value + at_start_of(&j->v, b, g, 0), j->v.row, keys, j->value_size);
    at_fetch_add(&fetch, j->what.q->value + at_start_of(&j->q, b, h, 0), j->q.row, queries, group * j->size);
    at_fetch_add(&fetch, j->made.out->value + at_start_of(&j->out, b, h, 0), j->out.row, queries,
                 group * j->value_size);
    return fetch;
}

/* One part of the query blocks of one (batch, key head). */
static void forward_pair(const job *j, char *scratch, int64_t b, int64_t g, int64_t part)
{
    room r = make_room(j, scratch);
    int64_t queries = at_query_count(j, b), keys = at_key_count(j, b);
    int64_t group = j->heads / j->kv_heads, blocks = (queries + TILE_ROWS - 1) / TILE_ROWS;
    tile_fetch fetch = next_pair(j, b, g);
    at_gemm_pack(j->what.k->value + at_start_of(&j->k, b, g, 0), 1, j->k.row, j->size, keys, r.kt);
    r.values = (tile_lines){.at = j->what.v->value + at_start_of(&j->v, b, g, 0), .row = j->v.row};
    r.lone = queries == 1 && group == 1; /* packing would cost as much as the sum itself, which has the same bits */
    if (!r.lone)
        at_gemm_pack(r.values.at, j->v.row, 1, keys, j->value_size, r.v);
    for (int64_t item = group * blocks * part / j->parts; item < group * blocks * (part + 1) / j->parts; item++) {
        int64_t h = g * group + item / blocks, first = queries * (item % blocks) / blocks;
        int64_t rows = queries * (item % blocks + 1) / blocks - first;
        if (j->what.additive) {
            const at_real *v = j->what.score_v->value + (j->what.score_v->shape.rank == 2 ? h * j->size : 0);
            for (int64_t a = 0; a < j->size; a++)
                r.score[a] = j->unit * v[a];
        }
        forward_block(j, &r, b, h, first, rows, fetch.regions ? &fetch : NULL);
    }
}

void at_forward_task(void *context, int64_t index, int worker)
{
    at_pairs_of_task(context, index, worker, forward_pair);
}
