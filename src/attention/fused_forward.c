/* Forward: a block of query rows against its keys, tile by tile, with an online softmax. */
#include <math.h>
#include <string.h>

#include "attention/fused_internal.h"
#include "base/rng.h"
#include "kernels/isa.h"

/* A worker's memory for one (batch, key head) and one block. */
typedef struct workspace {
    at_real *kt; /* keys as panels [K/w][D][w] */
    at_real *v;  /* values as panels [Dv/w][K][w], unless there is a single query, which reads them in place: */
    tile_lines values;
    bool single_query;
    at_real *score; /* the head's score vector */
    at_real *s;     /* scores: one tile, or whole rows where the normaliser needs them or they are kept */
    int64_t s_row;
    at_real *out; /* [rows, out_row] */
    int64_t out_row;
    at_real *offsets; /* [rows, offsets_row] */
    int64_t offsets_row;
    at_real *top, *shift, *sum, *exponent_sums; /* [rows] */
    at_real *tile_top, *tile_shift;             /* [K/tile, rows]: both after each tile, to rescale kept weights */
    cutter block;                               /* the block's own scratch */
} workspace;

/* Rules that subtract a row's largest score before the first weight is known. */
static bool needs_whole_rows(const at_job *j)
{
    return j->rule->pass != AT_PASS_ONLINE;
}

/* The online softmax collects the summaries in its pass; other rules compute the weights again for them. */
static bool collects_summaries(const at_job *j)
{
    return j->rule->keeps_summaries && !j->centre && j->in.drop.share == 0;
}

static bool keeps_weights(const at_job *j)
{
    return j->asked->key_sums && collects_summaries(j);
}

static workspace make_workspace(const at_job *j, char *memory)
{
    int64_t width = at_isa()->tile->width;
    bool whole = needs_whole_rows(j) || keeps_weights(j);
    cutter cut = {.at = memory};
    workspace ws = {0};
    ws.kt = at_cut(&cut, j->key_panels * j->size);
    ws.v = at_cut(&cut, j->K * j->value_panels);
    ws.score = at_cut(&cut, j->pairwise ? j->size : 0);
    ws.s_row = (whole ? j->key_panels : TILE_KEYS) + width;
    ws.s = at_cut(&cut, TILE_ROWS * ws.s_row);
    ws.out_row = j->value_panels + width;
    ws.out = at_cut(&cut, TILE_ROWS * ws.out_row);
    ws.offsets_row = j->value_table ? at_round_up(2 * j->reach + 1, width) : 0;
    ws.offsets = at_cut(&cut, TILE_ROWS * ws.offsets_row);
    ws.top = at_cut(&cut, TILE_ROWS);
    ws.shift = at_cut(&cut, TILE_ROWS);
    ws.sum = at_cut(&cut, TILE_ROWS);
    ws.exponent_sums = at_cut(&cut, TILE_ROWS);
    ws.tile_top = at_cut(&cut, keeps_weights(j) ? (j->K / TILE_KEYS + 1) * TILE_ROWS : 0);
    ws.tile_shift = at_cut(&cut, keeps_weights(j) ? (j->K / TILE_KEYS + 1) * TILE_ROWS : 0);
    ws.block = cut;
    return ws;
}

/* Scratch for two blocks: at_report loads a second one beside the first. */
size_t at_forward_scratch(const at_job *j)
{
    workspace ws = make_workspace(j, NULL);
    int64_t width = at_isa()->tile->width;
    int64_t block_size = TILE_ROWS * (j->size_panels + width + (j->key_table ? j->bias_row : 0));
    return ws.block.used + 2 * (size_t)at_round_up(block_size * (int64_t)sizeof(at_real) + 2 * AT_ALIGN, AT_ALIGN) +
           (size_t)at_round_up(TILE_ROWS * (TILE_KEYS + width) * (int64_t)sizeof(at_real), AT_ALIGN);
}

/* From the weights of a tile, which lack a factor for each row, to the sums: the prior, dropout, the sums by offset, and
 * out += W V. */
static void add_values(const at_job *j, const block *blk, const workspace *ws, const tile *t, bool own_keys)
{
    const tile_kernels *k = at_isa()->tile;
    if (j->centre)
        k->prior(t, blk->centre, j->sigma);
    at_block_drop(j, blk, t);
    if (ws->offsets_row)
        k->by_offset(t, blk->position, j->reach, ws->offsets, ws->offsets_row);
    k->blank(t, keeps_weights(j));
    if (ws->single_query) {
        if (t->from == blk->from)
            memset(ws->out, 0, (size_t)ws->out_row * sizeof *ws->out);
        k->weigh_heads(t, j->Dv, &ws->values, 1, ws->out, ws->out_row);
        return;
    }
    k->weigh(t, j->Dv, ws->v, blk->keys, ws->out, ws->out_row, t->from == blk->from, own_keys);
}

/* softmax, sigmoid, relu: one pass over the keys. */
static void pass_online(const at_job *j, const block *blk, const workspace *ws, at_real *factor, bool own_keys)
{
    int32_t argmax[TILE_ROWS];
    bool collects = collects_summaries(j);
    const at_real exponent_scale = blk->table.at ? 1 : j->score_scale;
    tile_state state = {.scale = j->score_scale,
                        .top = ws->top,
                        .shift = ws->shift,
                        .sum = ws->sum,
                        .exponent_sum = collects && j->asked->entropy ? ws->exponent_sums : NULL,
                        .argmax = collects && j->asked->argmax ? argmax : NULL,
                        .out = ws->out,
                        .out_row = ws->out_row,
                        .out_size = j->value_panels,
                        .offsets = ws->offsets_row ? ws->offsets : NULL,
                        .offsets_row = ws->offsets_row,
                        .offsets_size = 2 * j->reach + 1};
    for (int64_t i = 0; i < blk->rows; i++)
        argmax[i] = -1;
    for (int64_t from = blk->from; from < blk->to; from += TILE_KEYS) {
        tile t = at_block_tile(blk, from, keeps_weights(j) ? ws->s + from : ws->s, ws->s_row);
        at_block_score(j, blk, &t, ws->kt, ws->score);
        j->rule->tile(&t, &blk->table, &state);
        if (keeps_weights(j)) {
            const int64_t at = from / TILE_KEYS * TILE_ROWS;
            memcpy(ws->tile_top + at, ws->top, (size_t)blk->rows * sizeof *ws->top);
            memcpy(ws->tile_shift + at, ws->shift, (size_t)blk->rows * sizeof *ws->shift);
        }
        add_values(j, blk, ws, &t, own_keys);
    }
    for (int64_t i = 0; i < blk->rows; i++) {
        int64_t row = at_row_of(j, blk->b, blk->h, blk->index[i]);
        bool empty = blk->lo[i] >= blk->hi[i];
        factor[i] = j->rule->end(ws->shift[i], ws->sum[i], empty, j->keeps_stat ? &j->stat[row] : NULL);
        if (j->top && j->keeps_stat)
            j->top[row] = ws->top[i];
        /* -sum w ln w = ln sum - mean exponent */
        if (state.exponent_sum)
            j->asked->entropy[row] =
                empty ? 0 : AT_REAL(log)(ws->sum[i]) - exponent_scale * ws->exponent_sums[i] / ws->sum[i];
        if (state.argmax)
            j->asked->argmax[row] = argmax[i];
    }
}

/* The sum of each key's weights over the block: kept weights, each tile's rescaled to the rows' final top. */
static void add_key_sums(const at_job *j, const block *blk, const workspace *ws, const at_real *factor)
{
    for (int64_t from = blk->from; from < blk->to; from += TILE_KEYS) {
        tile t = at_block_tile(blk, from, ws->s + from, ws->s_row);
        at_real scaled[TILE_ROWS];
        for (int64_t i = 0; i < blk->rows; i++) {
            const int64_t at = from / TILE_KEYS * TILE_ROWS + i;
            const at_real then = ws->tile_top[at];
            const at_real fall = (then - ws->top[i]) * j->score_scale + (ws->tile_shift[at] - ws->shift[i]);
            scaled[i] = then == -INFINITY ? 0 : fall == 0 ? factor[i] : factor[i] * AT_REAL(exp)(fall);
        }
        at_isa()->tile->key_sums(&t, scaled, j->asked->key_sums + (blk->b * j->H + blk->h) * j->K);
    }
}

/* All scores of the block's rows, relative to the largest of each row, with what the table adds. */
static void relate_rows(const at_job *j, const block *blk, const workspace *ws)
{
    const tile_kernels *k = at_isa()->tile;
    for (int64_t from = blk->from; from < blk->to; from += TILE_KEYS) {
        tile t = at_block_tile(blk, from, ws->s + from, ws->s_row);
        at_block_score(j, blk, &t, ws->kt, ws->score);
        k->tops(&t, ws->top);
    }
    for (int64_t from = blk->from; from < blk->to; from += TILE_KEYS) {
        tile t = at_block_tile(blk, from, ws->s + from, ws->s_row);
        k->relate(&t, ws->top, j->score_scale, &blk->table);
    }
    for (int64_t i = 0; i < blk->rows; i++)
        j->top[at_row_of(j, blk->b, blk->h, blk->index[i])] = ws->top[i];
}

/* sparsemax, entmax15: all scores of a row, then its threshold, then the weights. */
static void pass_whole_rows(const at_job *j, const block *blk, const workspace *ws, at_real *factor, bool own_keys)
{
    const tile_kernels *k = at_isa()->tile;
    at_real stat[TILE_ROWS];
    relate_rows(j, blk, ws);
    for (int64_t i = 0; i < blk->rows; i++) {
        stat[i] =
            blk->lo[i] < blk->hi[i] ? k->threshold(ws->s + i * ws->s_row, blk->lo[i], blk->hi[i], j->rule->rule) : 0;
        j->stat[at_row_of(j, blk->b, blk->h, blk->index[i])] = stat[i];
        factor[i] = 1;
    }
    tile_back back = {.rule = j->rule->rule, .stat = stat};
    for (int64_t from = blk->from; from < blk->to; from += TILE_KEYS) {
        tile t = at_block_tile(blk, from, ws->s + from, ws->s_row);
        k->weights(&t, &back);
        add_values(j, blk, ws, &t, own_keys);
    }
}

/* hard: the argmax, or by Gumbel's trick a draw from the softmax: argmax_j e_j - ln(-ln u_j). */
static void pass_choice(const at_job *j, const block *blk, const workspace *ws, at_real *factor)
{
    const tile_kernels *k = at_isa()->tile;
    at_real best[TILE_ROWS], chosen[TILE_ROWS], top[TILE_ROWS];
    int32_t choice[TILE_ROWS];
    tile_state state = {.scale = 1, .top = top, .sum = ws->sum, .out = ws->out, .out_row = ws->out_row};
    relate_rows(j, blk, ws);
    for (int64_t i = 0; i < blk->rows; i++) {
        best[i] = top[i] = -INFINITY;
        chosen[i] = 0;
        choice[i] = -1;
    }
    for (int64_t from = blk->from; from < blk->to; from += TILE_KEYS) {
        tile t = at_block_tile(blk, from, ws->s + from, ws->s_row);
        for (int64_t i = 0; i < blk->rows; i++) {
            uint64_t row = (uint64_t)at_row_of(j, blk->b, blk->h, blk->index[i]);
            int64_t lo = blk->lo[i] > t.from ? blk->lo[i] : t.from, hi = blk->hi[i] < t.to ? blk->hi[i] : t.to;
            for (int64_t key = lo; key < hi; key++) {
                at_real s = t.s[i * t.s_row + key - from], value = s;
                if (j->in.sample)
                    value = s - (at_real)log(-log(at_uniform_at(j->in.seed, row, (uint64_t)key)));
                if (value > best[i] || choice[i] < 0 || (isnan(value) && !isnan(best[i]))) {
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
        j->stat[row] = choice[i] < 0 ? 0 : AT_LOG2E * top[i] + AT_REAL(log2)(ws->sum[i]);
        j->log_prob->value[row] = choice[i] < 0 ? 0 : chosen[i] - top[i] - AT_REAL(log)(ws->sum[i]);
        factor[i] = 1;
        if (choice[i] < 0)
            continue;
        at_real away = (at_real)choice[i] - blk->centre[i], weight = isnan(j->stat[row]) ? j->stat[row] : 1;
        if (j->centre)
            weight *= AT_REAL(exp)(-away * away / (2 * j->sigma * j->sigma));
        const at_real *v = j->v->value + at_start_of(&j->v_rows, blk->b, blk->g, choice[i]);
        for (int64_t d = 0; d < j->Dv; d++)
            ws->out[i * ws->out_row + d] = weight * v[d];
        if (ws->offsets_row) {
            int64_t reach = j->reach, offset = choice[i] - blk->position[i];
            offset = offset < -reach ? -reach : offset > reach ? reach : offset;
            ws->offsets[i * ws->offsets_row + offset + reach] = weight;
        }
    }
}

/* From scores to weighted sums, up to a factor for each row. */
static void pass(const at_job *j, const block *blk, const workspace *ws, at_real *factor, bool own_keys)
{
    if (ws->offsets_row)
        memset(ws->offsets, 0, (size_t)(blk->rows * ws->offsets_row) * sizeof *ws->offsets);
    if (j->rule->pass == AT_PASS_CHOICE || blk->from >= blk->to)
        memset(ws->out, 0, (size_t)(blk->rows * ws->out_row) * sizeof *ws->out);
    for (int64_t i = 0; i < blk->rows; i++) {
        ws->top[i] = -INFINITY;
        ws->shift[i] = ws->sum[i] = ws->exponent_sums[i] = 0;
    }
    if (j->rule->pass == AT_PASS_CHOICE)
        pass_choice(j, blk, ws, factor);
    else if (needs_whole_rows(j))
        pass_whole_rows(j, blk, ws, factor, own_keys);
    else
        pass_online(j, blk, ws, factor, own_keys);
}

static void forward_block(const at_job *j, const workspace *ws, int64_t b, int64_t h, int64_t first, int64_t rows,
                          tile_fetch *fetch)
{
    block blk;
    cutter scratch = ws->block;
    at_real factor[TILE_ROWS];
    const row_kernels *k = at_isa()->rows;
    at_block_load(j, &blk, &scratch, b, h, NULL, first, rows);
    blk.fetch = fetch;
    pass(j, &blk, ws, factor, false);
    /* 0 x NaN: a value that is not finite was multiplied by the zero weights of rows that do not see it. Once more,
     * each row over its own keys only. */
    if (j->is_masked && !k->finite(ws->out, ws->out_row, rows, j->Dv))
        pass(j, &blk, ws, factor, true);

    int64_t count = 2 * j->reach + 1;
    if (ws->offsets_row) /* c += (sums of weights by offset) wV */
        at_isa()->tile->multiply(
            &(tile_product){.rows = rows,
                            .size = blk.entries,
                            .columns = j->Dv,
                            .a = ws->offsets,
                            .a_row = ws->offsets_row,
                            .b = at_table_of(j->value_table, j->value_table_panels, h, count * j->value_panels),
                            .step = count * at_isa()->tile->width,
                            .c = ws->out,
                            .c_row = ws->out_row,
                            .load = true});
    k->copy(&(row_copy){.to = j->out->value + at_start_of(&j->out_rows, b, h, first),
                        .to_row = j->out_rows.row,
                        .from = ws->out,
                        .from_row = ws->out_row,
                        .rows = rows,
                        .size = j->Dv,
                        .factor = 1,
                        .factors = factor});
    if (keeps_weights(j))
        add_key_sums(j, &blk, ws, factor);
    at_report(j, &blk, scratch, ws->kt, ws->score, !collects_summaries(j));
}

/* What to prefetch for the pair after (b, g): its keys, values and queries, and where its output goes. */
static tile_fetch next_pair(const at_job *j, int64_t b, int64_t g)
{
    tile_fetch fetch = {.rows_a_time = 3};
    if (!at_next_pair(j, &b, &g))
        return fetch;
    int64_t group = j->H / j->G, h = g * group, queries = at_query_count(j, b), keys = at_key_count(j, b);
    at_fetch_add(&fetch, j->k->value + at_start_of(&j->k_rows, b, g, 0), j->k_rows.row, keys, j->size);
    at_fetch_add(&fetch, j->v->value + at_start_of(&j->v_rows, b, g, 0), j->v_rows.row, keys, j->Dv);
    at_fetch_add(&fetch, j->q->value + at_start_of(&j->q_rows, b, h, 0), j->q_rows.row, queries, group * j->size);
    at_fetch_add(&fetch, j->out->value + at_start_of(&j->out_rows, b, h, 0), j->out_rows.row, queries, group * j->Dv);
    return fetch;
}

/* One part of the query blocks of one (batch, key head). */
static void forward_pair(const at_job *j, char *scratch, int64_t b, int64_t g, int64_t part)
{
    workspace ws = make_workspace(j, scratch);
    int64_t queries = at_query_count(j, b), keys = at_key_count(j, b);
    int64_t group = j->H / j->G, blocks = (queries + TILE_ROWS - 1) / TILE_ROWS;
    tile_fetch fetch = next_pair(j, b, g);
    at_tile_pack(j->k->value + at_start_of(&j->k_rows, b, g, 0), 1, j->k_rows.row, j->size, keys, ws.kt);
    ws.values = (tile_lines){.at = j->v->value + at_start_of(&j->v_rows, b, g, 0), .row = j->v_rows.row};
    ws.single_query = queries == 1 && group == 1; /* packing would cost as much as the sum, which has the same bits */
    if (!ws.single_query)
        at_tile_pack(ws.values.at, j->v_rows.row, 1, keys, j->Dv, ws.v);
    for (int64_t item = group * blocks * part / j->parts; item < group * blocks * (part + 1) / j->parts; item++) {
        int64_t h = g * group + item / blocks, first = queries * (item % blocks) / blocks;
        int64_t rows = queries * (item % blocks + 1) / blocks - first;
        at_score_vector(j, h, ws.score);
        forward_block(j, &ws, b, h, first, rows, fetch.regions ? &fetch : NULL);
    }
}

void at_forward_task(void *context, int64_t index, int worker)
{
    at_pairs_of_task(context, index, worker, forward_pair);
}
