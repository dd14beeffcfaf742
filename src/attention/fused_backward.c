/* Backward: the weights are computed again tile by tile from the scores and each row's statistic, and every gradient is a
 * product on the tile:
 *
 *     dW = dO Vᵀ (+ dR by offset)    dS = normaliser's rule(W, dW)    dV += Wᵀ dO    dQ += dS K    dK += dSᵀ Q
 */
#include <math.h>
#include <string.h>

#include "attention/fused_internal.h"
#include "kernels/isa.h"

typedef struct workspace {
    at_real *kt, *vt; /* keys and values as panels [K/w][size][w], for scores and dW */
    at_real *k;       /* keys as panels [D/w][K][w], for dQ */
    at_real *dk, *dv; /* [K, row] sums of this key head; pairwise: dk in panels like kt */
    int64_t dk_row, dv_row;
    at_real *score, *dscore; /* pairwise: the head's score vector; sums for its gradient [A * lanes] */
    at_real *s, *d, *w;      /* tiles: scores then weights, their gradients, weights times the prior or dropped */
    int64_t s_row;
    at_real *dout;     /* [rows, dv_row] */
    at_real *dq;       /* [rows, q_row] */
    at_real *doffsets; /* dO wV^T: gradient of the sums by offset, padded tables [rows, bias_row] */
    at_real *offsets;  /* the sums of weights by offset themselves, [rows, offsets_row] */
    int64_t offsets_row;
    at_real *dwk, *dwv; /* the head's sums for shaw's tables, [2k+1, dk_row] and [2k+1, dv_row] */
    at_real *dbias;     /* [rows, 2R+1] */
    cutter block;
    bool keys_not_finite;
    tile_lines values; /* in place, for a single query */
    bool single_query;
} workspace;

static const at_real *grad_of(const at_tensor *tensor)
{
    return tensor ? tensor->grad : NULL;
}

static at_real *wanted(at_tensor *tensor)
{
    return tensor && tensor->wants_grad ? at_tensor_grad(tensor) : NULL;
}

static bool has_table(const at_job *j)
{
    return j->bias || j->key_table;
}

/* The weights that the values are multiplied by are not the normaliser's own. */
static bool changes_weights(const at_job *j)
{
    return j->centre || j->rule->pass == AT_PASS_CHOICE || j->in.drop.share > 0;
}

static workspace make_workspace(const at_job *j, char *memory)
{
    int64_t width = at_isa()->tile->width;
    bool pairwise = j->pairwise;
    cutter cut = {.at = memory};
    workspace ws = {0};
    ws.kt = at_cut(&cut, j->key_panels * j->size);
    ws.vt = at_cut(&cut, j->key_panels * j->Dv);
    ws.k = at_cut(&cut, pairwise ? 0 : j->K * j->size_panels);
    ws.dk_row = j->size_panels;
    ws.dv_row = j->value_panels + width;
    ws.dk = at_cut(&cut, pairwise ? j->key_panels * j->size : j->K * ws.dk_row);
    ws.dv = at_cut(&cut, j->K * ws.dv_row);
    ws.score = at_cut(&cut, pairwise ? j->size : 0);
    ws.dscore = at_cut(&cut, pairwise ? j->size * width / 2 : 0);
    ws.s_row = TILE_KEYS + width;
    ws.s = at_cut(&cut, TILE_ROWS * ws.s_row);
    ws.d = at_cut(&cut, TILE_ROWS * ws.s_row);
    ws.w = at_cut(&cut, changes_weights(j) ? TILE_ROWS * ws.s_row : 0);
    ws.dout = at_cut(&cut, TILE_ROWS * ws.dv_row);
    ws.dq = at_cut(&cut, TILE_ROWS * (j->size_panels + width));
    int64_t count = 2 * j->reach + 1;
    ws.offsets_row = j->value_table ? at_round_up(count, width) : 0;
    ws.doffsets = at_cut(&cut, j->value_table ? TILE_ROWS * j->bias_row : 0);
    ws.offsets = at_cut(&cut, TILE_ROWS * ws.offsets_row);
    ws.dwv = at_cut(&cut, j->value_table ? count * ws.dv_row : 0);
    ws.dwk = at_cut(&cut, j->key_table ? count * ws.dk_row : 0);
    ws.dbias = at_cut(&cut, has_table(j) ? TILE_ROWS * count : 0);
    ws.block = cut;
    return ws;
}

size_t at_backward_scratch(const at_job *j)
{
    workspace ws = make_workspace(j, NULL);
    int64_t width = at_isa()->tile->width;
    int64_t block_size = TILE_ROWS * (j->size_panels + width + (j->key_table ? j->bias_row : 0));
    return ws.block.used + (size_t)at_round_up(block_size * (int64_t)sizeof(at_real) + 2 * AT_ALIGN, AT_ALIGN);
}

/* What a block of rows needs besides the block itself. */
typedef struct rows {
    at_real top[TILE_ROWS], stat[TILE_ROWS], delta[TILE_ROWS], dlog_prob[TILE_ROWS], dcentre[TILE_ROWS];
    int32_t choice[TILE_ROWS];
    tile_table offsets; /* dR */
    tile_back back;
} rows;

/* The rows' statistics and dO; delta = dO . O, which is sum_j w_j dW_j for every rule that needs it (O
 * includes the value positions, and so does dW). */
static void load_rows(const at_job *j, const block *blk, const workspace *ws, rows *x)
{
    const at_real *dout = grad_of(j->out), *dlog = grad_of(j->log_prob);
    const row_kernels *k = at_isa()->rows;
    int64_t width = at_isa()->tile->width, count = 2 * j->reach + 1;
    int64_t at = at_start_of(&j->out_rows, blk->b, blk->h, blk->index[0]); /* the block's rows follow each other */
    k->copy(&(row_copy){.to = ws->dout,
                        .to_row = ws->dv_row,
                        .padded = j->value_panels,
                        .from = dout ? dout + at : NULL,
                        .from_row = dout ? j->out_rows.row : 0,
                        .rows = blk->rows,
                        .size = dout ? j->Dv : 0,
                        .factor = 1});
    for (int64_t i = 0; i < blk->rows; i++) {
        int64_t row = at_row_of(j, blk->b, blk->h, blk->index[i]);
        const at_real *out = j->out->value + at + i * j->out_rows.row;
        x->delta[i] = dout ? k->dot(ws->dout + i * ws->dv_row, out, j->Dv) : 0;
        x->top[i] = j->top ? j->top[row] : 0;
        x->stat[i] = j->stat[row];
        x->choice[i] = j->choice ? j->choice[row] : -1;
        x->dlog_prob[i] = dlog ? dlog[row] : 0;
        x->dcentre[i] = 0;
    }
    x->offsets = (tile_table){.row = j->bias_row, .reach = j->reach, .position = blk->position};
    if (j->value_table) {
        int64_t each = at_round_up(count, width) * j->Dv;
        at_isa()->tile->multiply(&(tile_product){.rows = blk->rows,
                                                 .size = j->Dv,
                                                 .columns = blk->entries,
                                                 .a = ws->dout,
                                                 .a_row = ws->dv_row,
                                                 .b = at_table_of(j->value_table, j->value_table_columns, blk->h, each),
                                                 .step = j->Dv * width,
                                                 .c = ws->doffsets + width,
                                                 .c_row = j->bias_row});
        for (int64_t i = 0; i < blk->rows; i++)
            at_pad_table(ws->doffsets + i * j->bias_row, blk->entries, count);
        x->offsets.at = ws->doffsets + width;
        memset(ws->offsets, 0, (size_t)(blk->rows * ws->offsets_row) * sizeof *ws->offsets);
    }
    x->back = (tile_back){
        .rule = j->rule->rule, .stat = x->stat, .delta = x->delta, .choice = x->choice, .dlog_prob = x->dlog_prob};
}

/* Weights into ws->s and dW into ws->d for the tile at `from`. */
static tile recompute(const at_job *j, const block *blk, const workspace *ws, const rows *x, int64_t from)
{
    const tile_kernels *k = at_isa()->tile;
    tile t = at_block_tile(blk, from, ws->s, ws->s_row);
    at_block_score_again(j, blk, &t, ws->kt, ws->score);
    at_block_normalise(j, blk, &t, x->top, x->stat);
    tile d = t;
    d.s = ws->d;
    if (ws->single_query)
        k->score_heads(&d, j->Dv, ws->dout, ws->dv_row, &ws->values, 1);
    else
        k->score(&d, j->Dv, ws->dout, ws->dv_row, ws->vt);
    if (x->offsets.at)
        k->look_up(&d, &x->offsets);
    return t;
}

/* sparsemax and entmax15 need sums over the whole row before the first gradient. */
static void find_delta(const at_job *j, const block *blk, const workspace *ws, rows *x)
{
    const tile_kernels *k = at_isa()->tile;
    at_real below[TILE_ROWS] = {0};
    memset(x->delta, 0, sizeof x->delta);
    for (int64_t from = blk->from; from < blk->to; from += TILE_KEYS) {
        tile t = recompute(j, blk, ws, x, from), d = t;
        d.s = ws->d;
        if (j->centre)
            k->prior(&d, blk->centre, j->sigma);
        at_block_drop(j, blk, &d);
        k->delta(&t, ws->d, &x->back, x->delta, below);
    }
    for (int64_t i = 0; i < blk->rows; i++)
        x->delta[i] = below[i] > 0 ? x->delta[i] / below[i] : 0;
}

/* The weights that the values were multiplied by: those of the tile, or a one-hot, after the prior and dropout. Also adds
 * up dL/dcentre: dw/dp = w (j - p) / sigma^2. */
static tile value_weights(const at_job *j, const block *blk, const workspace *ws, rows *x, const tile *t)
{
    tile w = *t;
    if (!changes_weights(j))
        return w;
    w.s = ws->w;
    for (int64_t i = 0; i < t->rows; i++) {
        if (j->rule->pass != AT_PASS_CHOICE) {
            memcpy(w.s + i * w.s_row, t->s + i * t->s_row, (size_t)t->s_row * sizeof *t->s);
            continue;
        }
        memset(w.s + i * w.s_row, 0, (size_t)w.s_row * sizeof *w.s);
        at_one_hot(x->choice[i], x->stat[i], &w, i);
    }
    if (j->centre)
        at_isa()->tile->prior(&w, blk->centre, j->sigma);
    at_block_drop(j, blk, &w);
    if (!j->centre)
        return w;
    for (int64_t i = 0; i < t->rows; i++) {
        int64_t lo = blk->lo[i] > t->from ? blk->lo[i] : t->from, hi = blk->hi[i] < t->to ? blk->hi[i] : t->to;
        for (int64_t key = lo; key < hi; key++) {
            int64_t at = i * t->s_row + key - t->from;
            x->dcentre[i] += ws->d[at] * w.s[at] * ((at_real)key - blk->centre[i]) / (j->sigma * j->sigma);
        }
    }
    return w;
}

/* Adds the block's gradients to the tensors'. Each row belongs to one block, so no other task adds there. */
static void add_query_grads(const at_job *j, const block *blk, const workspace *ws, const rows *x)
{
    at_real *dq = wanted(j->q), *dbias = wanted(j->bias), *dcentre = wanted(j->centre);
    int64_t count = 2 * j->reach + 1;
    at_real scale = j->pairwise ? 1 : j->scale;
    const row_kernels *k = at_isa()->rows;
    if (dq)
        k->add(dq + at_start_of(&j->q_rows, blk->b, blk->h, blk->index[0]), j->q_rows.row, ws->dq, blk->q_row,
               blk->rows, j->size, scale);
    for (int64_t i = 0; i < blk->rows && (dcentre || dbias); i++) {
        if (dcentre)
            dcentre[at_row_of(j, blk->b, blk->h, blk->index[i])] += x->dcentre[i];
        if (dbias)
            k->add(j->bias_parts + (blk->b * j->H + blk->h) * count, 0, ws->dbias + i * count, 0, 1, count, 1);
    }
}

/* A block of sums by offset [rows, row] as a tile, whose columns are the entries of a table. */
static tile table_tile(const block *blk, at_real *sums, int64_t row, int64_t count)
{
    return (tile){.rows = blk->rows, .to = count, .s = sums, .s_row = row, .full = true};
}

/* shaw: from P = q wK^T, dq += dP wK and dwK += dP^T q; from c += R wV, dwV += R^T dO. */
static void back_through_tables(const at_job *j, const block *blk, const workspace *ws)
{
    const tile_kernels *k = at_isa()->tile;
    int64_t count = 2 * j->reach + 1;
    if (j->key_table) {
        tile dP = table_tile(blk, ws->dbias, count, blk->entries);
        k->multiply(&(tile_product){.rows = blk->rows,
                                    .size = blk->entries,
                                    .columns = j->size,
                                    .a = ws->dbias,
                                    .a_row = count,
                                    .b = at_table_of(j->key_table, j->key_table_rows, blk->h, count * j->size_panels),
                                    .step = count * k->width,
                                    .c = ws->dq,
                                    .c_row = blk->q_row,
                                    .load = true});
        k->gather(&dP, j->size, blk->q, blk->q_row, ws->dwk, ws->dk_row, false, false);
    }
    if (j->value_table) {
        tile R = table_tile(blk, ws->offsets, ws->offsets_row, blk->entries);
        k->gather(&R, j->Dv, ws->dout, ws->dv_row, ws->dwv, ws->dv_row, false, false);
    }
}

/* The sums of keys that the first block does not see start from 0 here, those of the others in its products. */
static void zero_keys(const at_job *j, const workspace *ws, int64_t from, int64_t to)
{
    if (from >= to)
        return;
    memset(ws->dv + from * ws->dv_row, 0, (size_t)((to - from) * ws->dv_row) * sizeof *ws->dv);
    if (!j->pairwise)
        memset(ws->dk + from * ws->dk_row, 0, (size_t)((to - from) * ws->dk_row) * sizeof *ws->dk);
}

/* Which rows of which head, against which keys. */
typedef struct piece {
    int64_t b, h, first, count;
    int64_t keys_from, keys_to;
    bool fresh; /* the first block of its key head, whose sums start from 0 */
    tile_fetch *fetch;
} piece;

static void backward_block(const at_job *j, const workspace *ws, const piece *p)
{
    const int64_t count = p->count;
    const bool fresh = p->fresh;
    const tile_kernels *k = at_isa()->tile;
    block blk;
    rows x;
    cutter scratch = ws->block;
    at_block_load(j, &blk, &scratch, p->b, p->h, NULL, p->first, count);
    blk.fetch = p->fetch;
    load_rows(j, &blk, ws, &x);
    bool own_keys = j->is_masked && (!at_isa()->rows->finite(blk.q, blk.q_row, count, j->size) ||
                                     !at_isa()->rows->finite(ws->dout, ws->dv_row, count, j->Dv));
    if (j->pairwise || blk.from >= blk.to)
        memset(ws->dq, 0, (size_t)(count * blk.q_row) * sizeof *ws->dq);
    if (has_table(j))
        memset(ws->dbias, 0, (size_t)(count * (2 * j->reach + 1)) * sizeof *ws->dbias);
    if (j->rule->pass == AT_PASS_WHOLE_ROWS)
        find_delta(j, &blk, ws, &x);

    int64_t from = p->keys_from > blk.from ? p->keys_from : blk.from, to = p->keys_to < blk.to ? p->keys_to : blk.to;
    if (fresh && j->back_keys) {
        zero_keys(j, ws, p->keys_from, from < p->keys_to ? from : p->keys_to);
        zero_keys(j, ws, to > p->keys_from ? to : p->keys_from, p->keys_to);
    }
    for (; from < to; from += TILE_KEYS) {
        tile t = recompute(j, &blk, ws, &x, from);
        tile w = value_weights(j, &blk, ws, &x, &t), d = t;
        d.s = ws->d;
        if (j->back_keys)
            k->gather(&w, j->Dv, ws->dout, ws->dv_row, ws->dv, ws->dv_row, fresh, own_keys);
        if (j->centre)
            k->prior(&d, blk.centre, j->sigma);
        at_block_drop(j, &blk, &d);
        k->dscore(&t, ws->d, &x.back);
        if (ws->offsets_row)
            k->by_offset(&w, blk.position, j->reach, ws->offsets, ws->offsets_row);
        if (j->back_query && has_table(j))
            k->by_offset(&d, blk.position, j->reach, ws->dbias, 2 * j->reach + 1);
        if (j->pairwise) {
            j->pairwise->tile_back(&d, &(at_pairwise){.size = j->size,
                                                      .q = blk.q,
                                                      .q_row = blk.q_row,
                                                      .kt = ws->kt,
                                                      .v = ws->score,
                                                      .argument = j->attention.argument[AT_SCORE],
                                                      .dq = ws->dq,
                                                      .dkt = ws->dk,
                                                      .dv = ws->dscore});
            continue;
        }
        if (j->back_query)
            k->weigh(&d, j->size, ws->k, blk.keys, ws->dq, blk.q_row, from == blk.from, ws->keys_not_finite);
        if (j->back_keys)
            k->gather(&d, j->size, blk.q, blk.q_row, ws->dk, ws->dk_row, fresh, own_keys);
    }
    back_through_tables(j, &blk, ws);
    if (j->back_query)
        add_query_grads(j, &blk, ws, &x);
}

/* Adds the key head's sums to the tensors' gradients, for keys [from, to). */
static void add_key_grads(const at_job *j, const workspace *ws, int64_t b, int64_t g, int64_t from, int64_t to)
{
    at_real *dk = wanted(j->k), *dv = wanted(j->v);
    const row_kernels *rows_of = at_isa()->rows;
    if (dv)
        rows_of->add(dv + at_start_of(&j->v_rows, b, g, from), j->v_rows.row, ws->dv + from * ws->dv_row, ws->dv_row,
                     to - from, j->Dv, 1);
    if (dk && !j->pairwise)
        rows_of->add(dk + at_start_of(&j->k_rows, b, g, from), j->k_rows.row, ws->dk + from * ws->dk_row, ws->dk_row,
                     to - from, j->size, j->score_scale);
    if (dk && j->pairwise)
        at_isa()->tile->add_transposed(dk + at_start_of(&j->k_rows, b, g, from), j->k_rows.row, ws->dk + from * j->size,
                                       j->size, to - from);
}

static void start_head(const at_job *j, const workspace *ws, int64_t h)
{
    int64_t count = 2 * j->reach + 1;
    if (j->key_table)
        memset(ws->dwk, 0, (size_t)(count * ws->dk_row) * sizeof *ws->dwk);
    if (j->value_table)
        memset(ws->dwv, 0, (size_t)(count * ws->dv_row) * sizeof *ws->dwv);
    if (!j->pairwise)
        return;
    at_score_vector(j, h, ws->score);
    memset(ws->dscore, 0, (size_t)(j->size * at_isa()->tile->width / 2) * sizeof *ws->dscore);
}

static void end_head(const at_job *j, const workspace *ws, int64_t b, int64_t h)
{
    const row_kernels *rows_of = at_isa()->rows;
    int64_t count = 2 * j->reach + 1, head = b * j->H + h, lanes = at_isa()->tile->width / 2;
    if (j->key_table)
        rows_of->copy(&(row_copy){.to = j->key_parts + head * count * j->size,
                                  .to_row = j->size,
                                  .from = ws->dwk,
                                  .from_row = ws->dk_row,
                                  .rows = count,
                                  .size = j->size,
                                  .factor = j->score_scale});
    if (j->value_table)
        rows_of->copy(&(row_copy){.to = j->value_parts + head * count * j->Dv,
                                  .to_row = j->Dv,
                                  .from = ws->dwv,
                                  .from_row = ws->dv_row,
                                  .rows = count,
                                  .size = j->Dv,
                                  .factor = 1});
    for (int64_t a = 0; j->score_parts && a < j->size; a++) {
        at_real sum = 0;
        for (int64_t l = 0; l < lanes; l++)
            sum += ws->dscore[a * lanes + l];
        j->score_parts[head * j->size + a] = sum;
    }
}

/* What to prefetch for the pair after (b, g), to read and to add to. */
static tile_fetch next_pair(const at_job *j, int64_t b, int64_t g)
{
    tile_fetch fetch = {.rows_a_time = 3};
    if (!at_next_pair(j, &b, &g))
        return fetch;
    int64_t group = j->H / j->G, queries = at_query_count(j, b), keys = at_key_count(j, b);
    const struct {
        const at_tensor *tensor;
        const at_layout *lines;
        int64_t head, rows, size;
    } next[] = {
        {j->k, &j->k_rows, g, keys, j->size},
        {j->v, &j->v_rows, g, keys, j->Dv},
        {j->q, &j->q_rows, g * group, queries, group * j->size},
        {j->out, &j->out_rows, g * group, queries, group * j->Dv},
    };
    for (int i = 0; i < 4; i++) {
        int64_t at = at_start_of(next[i].lines, b, next[i].head, 0);
        at_fetch_add(&fetch, next[i].tensor->value + at, next[i].lines->row, next[i].rows, next[i].size);
        if (next[i].tensor->grad)
            at_fetch_add(&fetch, next[i].tensor->grad + at, next[i].lines->row, next[i].rows, next[i].size);
    }
    return fetch;
}

/* One (batch, key head), or a part of it: of its query blocks when only the queries' gradients are computed, of its
 * keys when only the keys' are. Every sum runs in the same order, whatever the parts. */
static void backward_pair(const at_job *j, char *scratch, int64_t b, int64_t g, int64_t part)
{
    int64_t query_count = at_query_count(j, b), key_count = at_key_count(j, b);
    if (query_count < 1 || key_count < 1)
        return;
    workspace ws = make_workspace(j, scratch);
    tile_fetch fetch = next_pair(j, b, g);
    int64_t group = j->H / j->G, blocks = (query_count + TILE_ROWS - 1) / TILE_ROWS;
    int64_t key_blocks = (key_count + TILE_KEYS - 1) / TILE_KEYS;
    const at_real *keys = j->k->value + at_start_of(&j->k_rows, b, g, 0);
    const at_real *values = j->v->value + at_start_of(&j->v_rows, b, g, 0);
    at_tile_pack(keys, 1, j->k_rows.row, j->size, key_count, ws.kt);
    ws.values = (tile_lines){.at = values, .row = j->v_rows.row};
    ws.single_query = query_count == 1 && group == 1; /* as in the forward pass */
    if (!ws.single_query)
        at_tile_pack(values, 1, j->v_rows.row, j->Dv, key_count, ws.vt);
    if (!j->pairwise)
        at_tile_pack(keys, j->k_rows.row, 1, key_count, j->size, ws.k);
    ws.keys_not_finite = j->is_masked && !at_isa()->rows->finite(keys, j->k_rows.row, key_count, j->size);
    bool cut_keys = !j->back_query;
    int64_t from = cut_keys ? key_blocks * part / j->parts * TILE_KEYS : 0;
    int64_t to = cut_keys ? key_blocks * (part + 1) / j->parts * TILE_KEYS : key_count;
    to = to < key_count ? to : key_count;
    if (j->back_keys && j->pairwise)
        memset(ws.dk, 0, (size_t)(at_round_up(key_count, at_isa()->tile->width) * j->size) * sizeof *ws.dk);
    int64_t items = group * blocks, first = cut_keys ? 0 : items * part / j->parts;
    int64_t last = cut_keys ? items : items * (part + 1) / j->parts;
    for (int64_t item = first; item < last; item++) {
        int64_t h = g * group + item / blocks, row = query_count * (item % blocks) / blocks;
        int64_t count = query_count * (item % blocks + 1) / blocks - row;
        if (item == first || row == 0)
            start_head(j, &ws, h);
        backward_block(j, &ws,
                       &(piece){.b = b,
                                .h = h,
                                .first = row,
                                .count = count,
                                .keys_from = from,
                                .keys_to = to,
                                .fresh = item == first,
                                .fetch = fetch.regions ? &fetch : NULL});
        if (item + 1 == last || row + count == query_count)
            end_head(j, &ws, b, h);
    }
    if (j->back_keys)
        add_key_grads(j, &ws, b, g, from, to);
}

void at_backward_task(void *context, int64_t index, int worker)
{
    at_pairs_of_task(context, index, worker, backward_pair);
}
