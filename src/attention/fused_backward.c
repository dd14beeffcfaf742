/* Backward: the weights are made again tile by tile from the scores and each row's statistic, and every gradient is a
 * product on the tile:
 *
 *     dW = dO Vᵀ (+ dR by offset)    dS = normaliser's rule(W, dW)    dV += Wᵀ dO    dQ += dS K    dK += dSᵀ Q
 */
#include <math.h>
#include <string.h>

#include "attention/fused_internal.h"
#include "kernels/isa.h"

typedef struct room {
    at_real *kt, *vt; /* keys and values as panels [K/w][size][w], for scores and dW */
    at_real *k;       /* keys as panels [D/w][K][w], for dQ */
    at_real *dk, *dv; /* [K, row] sums of this key head; additive: dk in panels like kt */
    int64_t dk_row, dv_row;
    at_real *score, *dscore; /* additive: score_v times unit; sums [A * lanes] */
    at_real *s, *d, *w;      /* tiles: scores then weights, their gradients, weights times the prior or dropped */
    int64_t s_row;
    at_real *dout;    /* [rows, dv_row] */
    at_real *dq;      /* [rows, q_row] */
    at_real *pull;    /* dO wV^T: gradient of the sums by offset, padded tables [rows, bias_row] */
    at_real *offsets; /* the sums of weights by offset themselves, [rows, offsets_row] */
    int64_t offsets_row;
    at_real *dwk, *dwv; /* the head's sums for Shaw's tables, [2k+1, dk_row] and [2k+1, dv_row] */
    at_real *dbias;     /* [rows, 2R+1] */
    cutter block;
    bool careful_keys;
    tile_lines values; /* where one query reads them */
    bool lone;
} room;

static const at_real *grad_of(const at_tensor *tensor)
{
    return tensor ? tensor->grad : NULL;
}

static at_real *wanted(at_tensor *tensor)
{
    return tensor && tensor->wants_grad ? at_tensor_grad(tensor) : NULL;
}

static bool has_table(const job *j)
{
    return j->what.bias || j->what.key_table;
}

/* The weights that meet the values are others than those of the normaliser. */
static bool spends_others(const job *j)
{
    return j->what.centre || j->rule == RULE_HARD || j->what.drop.share > 0;
}

static room make_room(const job *j, char *memory)
{
    int64_t width = at_isa()->tile->width;
    bool additive = j->what.additive;
    cutter cut = {.at = memory};
    room r = {0};
    r.kt = at_cut(&cut, j->key_panels * j->size);
    r.vt = at_cut(&cut, j->key_panels * j->value_size);
    r.k = at_cut(&cut, additive ? 0 : j->keys * j->size_panels);
    r.dk_row = j->size_panels;
    r.dv_row = j->value_panels + width;
    r.dk = at_cut(&cut, additive ? j->key_panels * j->size : j->keys * r.dk_row);
    r.dv = at_cut(&cut, j->keys * r.dv_row);
    r.score = at_cut(&cut, additive ? j->size : 0);
    r.dscore = at_cut(&cut, additive ? j->size * width / 2 : 0);
    r.s_row = TILE_KEYS + width;
    r.s = at_cut(&cut, TILE_ROWS * r.s_row);
    r.d = at_cut(&cut, TILE_ROWS * r.s_row);
    r.w = at_cut(&cut, spends_others(j) ? TILE_ROWS * r.s_row : 0);
    r.dout = at_cut(&cut, TILE_ROWS * r.dv_row);
    r.dq = at_cut(&cut, TILE_ROWS * (j->size_panels + width));
    int64_t count = 2 * j->reach + 1;
    r.offsets_row = j->what.value_table ? at_round_up(count, width) : 0;
    r.pull = at_cut(&cut, j->what.value_table ? TILE_ROWS * j->bias_row : 0);
    r.offsets = at_cut(&cut, TILE_ROWS * r.offsets_row);
    r.dwv = at_cut(&cut, j->what.value_table ? count * r.dv_row : 0);
    r.dwk = at_cut(&cut, j->what.key_table ? count * r.dk_row : 0);
    r.dbias = at_cut(&cut, has_table(j) ? TILE_ROWS * count : 0);
    r.block = cut;
    return r;
}

size_t at_backward_scratch(const job *j)
{
    room r = make_room(j, NULL);
    int64_t width = at_isa()->tile->width;
    int64_t block_size = TILE_ROWS * (j->size_panels + width + (j->what.key_table ? j->bias_row : 0));
    return r.block.used + (size_t)at_round_up(block_size * (int64_t)sizeof(at_real) + 2 * AT_ALIGN, AT_ALIGN);
}

/* What a block of rows needs besides the block itself. */
typedef struct rows {
    at_real stat[TILE_ROWS], delta[TILE_ROWS], pull[TILE_ROWS], dcentre[TILE_ROWS];
    int32_t choice[TILE_ROWS];
    tile_table offsets; /* dR */
    tile_back back;
} rows;

/* The rows' statistics and dO; delta = dO . O, which is sum_j w_j dW_j for every rule that needs it (O has the weighed
 * value positions in it, as dW has theirs). */
static void load_rows(const job *j, const block *blk, const room *r, rows *x)
{
    const at_real *dout = grad_of(j->made.out), *dlog = grad_of(j->made.log_prob);
    const row_kernels *k = at_isa()->rows;
    int64_t width = at_isa()->tile->width, count = 2 * j->reach + 1;
    int64_t at = at_start_of(&j->out, blk->b, blk->h, blk->index[0]); /* the block's rows follow each other */
    k->copy(r->dout, r->dv_row, j->value_panels, dout ? dout + at : NULL, dout ? j->out.row : 0, blk->rows,
            dout ? j->value_size : 0, 1, NULL);
    for (int64_t i = 0; i < blk->rows; i++) {
        int64_t row = at_row_of(j, blk->b, blk->h, blk->index[i]);
        const at_real *out = j->made.out->value + at + i * j->out.row;
        x->delta[i] = dout ? k->dot(r->dout + i * r->dv_row, out, j->value_size) : 0;
        x->stat[i] = j->stat[row];
        x->choice[i] = j->choice ? j->choice[row] : -1;
        x->pull[i] = dlog ? dlog[row] : 0;
        x->dcentre[i] = 0;
    }
    x->offsets = (tile_table){.row = j->bias_row, .reach = j->reach, .place = blk->place};
    if (j->what.value_table) {
        int64_t each = at_round_up(count, width) * j->value_size;
        at_isa()->tile->multiply(blk->rows, j->value_size, blk->entries, r->dout, r->dv_row,
                                 at_table_of(j->what.value_table, j->value_columns_of, blk->h, each),
                                 j->value_size * width, r->pull + width, j->bias_row, false);
        for (int64_t i = 0; i < blk->rows; i++)
            at_pad_table(r->pull + i * j->bias_row, blk->entries, count);
        x->offsets.at = r->pull + width;
        memset(r->offsets, 0, (size_t)(blk->rows * r->offsets_row) * sizeof *r->offsets);
    }
    x->back = (tile_back){.rule = j->rule, .stat = x->stat, .delta = x->delta, .choice = x->choice, .pull = x->pull};
}

/* Weights into r->s and dW into r->d for the tile at `from`. */
static tile remake(const job *j, const block *blk, const room *r, const rows *x, int64_t from)
{
    const tile_kernels *k = at_isa()->tile;
    tile t = at_block_tile(blk, from, r->s, r->s_row);
    at_block_score_again(j, blk, &t, r->kt, r->score);
    if (blk->table.at)
        k->look_up(&t, &blk->table);
    k->weights(&t, &x->back);
    tile d = t;
    d.s = r->d;
    if (r->lone)
        k->score_heads(&d, j->value_size, r->dout, r->dv_row, &r->values, 1);
    else
        k->score(&d, j->value_size, r->dout, r->dv_row, r->vt);
    if (x->offsets.at)
        k->look_up(&d, &x->offsets);
    return t;
}

/* sparsemax and entmax15 need sums over the whole row before the first gradient. */
static void find_delta(const job *j, const block *blk, const room *r, rows *x)
{
    const tile_kernels *k = at_isa()->tile;
    at_real below[TILE_ROWS] = {0};
    memset(x->delta, 0, sizeof x->delta);
    for (int64_t from = blk->from; from < blk->to; from += TILE_KEYS) {
        tile t = remake(j, blk, r, x, from), d = t;
        d.s = r->d;
        if (j->what.centre)
            k->prior(&d, blk->centre, j->what.sigma);
        at_block_drop(j, blk, &d);
        k->delta(&t, r->d, &x->back, x->delta, below);
    }
    for (int64_t i = 0; i < blk->rows; i++)
        x->delta[i] = below[i] > 0 ? x->delta[i] / below[i] : 0;
}

/* The weights that met the values: those of the tile, or a one-hot, times the prior, dropped or not. dL/dcentre on the
 * way: dw/dp = w (j - p) / sigma^2. */
static tile spent_weights(const job *j, const block *blk, const room *r, rows *x, const tile *t)
{
    tile w = *t;
    if (!spends_others(j))
        return w;
    w.s = r->w;
    for (int64_t i = 0; i < t->rows; i++) {
        if (j->rule != RULE_HARD) {
            memcpy(w.s + i * w.s_row, t->s + i * t->s_row, (size_t)t->s_row * sizeof *t->s);
            continue;
        }
        memset(w.s + i * w.s_row, 0, (size_t)w.s_row * sizeof *w.s);
        int64_t c = x->choice[i] - t->from;
        if (c >= 0 && c < t->to - t->from)
            w.s[i * w.s_row + c] = 1;
    }
    if (j->what.centre)
        at_isa()->tile->prior(&w, blk->centre, j->what.sigma);
    at_block_drop(j, blk, &w);
    if (!j->what.centre)
        return w;
    for (int64_t i = 0; i < t->rows; i++) {
        int64_t lo = blk->lo[i] > t->from ? blk->lo[i] : t->from, hi = blk->hi[i] < t->to ? blk->hi[i] : t->to;
        for (int64_t key = lo; key < hi; key++) {
            int64_t at = i * t->s_row + key - t->from;
            x->dcentre[i] += r->d[at] * w.s[at] * ((at_real)key - blk->centre[i]) / (j->what.sigma * j->what.sigma);
        }
    }
    return w;
}

/* The block's own gradients into the tensors' (each row belongs to one block, so nobody else adds here). */
static void hand_over(const job *j, const block *blk, const room *r, const rows *x)
{
    at_real *dq = wanted(j->what.q), *dbias = wanted(j->what.bias), *dcentre = wanted(j->what.centre);
    int64_t count = 2 * j->reach + 1;
    at_real scale = j->what.additive ? 1 : j->what.scale;
    const row_kernels *k = at_isa()->rows;
    if (dq)
        k->add(dq + at_start_of(&j->q, blk->b, blk->h, blk->index[0]), j->q.row, r->dq, blk->q_row, blk->rows, j->size,
               scale);
    for (int64_t i = 0; i < blk->rows && (dcentre || dbias); i++) {
        if (dcentre)
            dcentre[at_row_of(j, blk->b, blk->h, blk->index[i])] += x->dcentre[i];
        if (dbias)
            k->add(j->bias_parts + (blk->b * j->heads + blk->h) * count, 0, r->dbias + i * count, 0, 1, count, 1);
    }
}

/* A block of sums by offset [rows, row] as a tile, whose columns are the entries of a table. */
static tile table_tile(const block *blk, at_real *sums, int64_t row, int64_t count)
{
    return (tile){.rows = blk->rows, .to = count, .s = sums, .s_row = row, .full = true};
}

/* Shaw: P = q wK^T gives dq += dP wK and dwK += dP^T q; c += R wV gives dwV += R^T dO. */
static void back_through_tables(const job *j, const block *blk, const room *r)
{
    const tile_kernels *k = at_isa()->tile;
    int64_t count = 2 * j->reach + 1;
    if (j->what.key_table) {
        tile dP = table_tile(blk, r->dbias, count, blk->entries);
        k->multiply(blk->rows, blk->entries, j->size, r->dbias, count,
                    at_table_of(j->what.key_table, j->key_rows_of, blk->h, count * j->size_panels), count * k->width,
                    r->dq, blk->q_row, true);
        k->gather(&dP, j->size, blk->q, blk->q_row, r->dwk, r->dk_row, false, false);
    }
    if (j->what.value_table) {
        tile R = table_tile(blk, r->offsets, r->offsets_row, blk->entries);
        k->gather(&R, j->value_size, r->dout, r->dv_row, r->dwv, r->dv_row, false, false);
    }
}

/* Keys that the first block does not see start from 0 here, the others in its products. */
static void zero_keys(const job *j, const room *r, int64_t from, int64_t to)
{
    if (from >= to)
        return;
    memset(r->dv + from * r->dv_row, 0, (size_t)((to - from) * r->dv_row) * sizeof *r->dv);
    if (!j->what.additive)
        memset(r->dk + from * r->dk_row, 0, (size_t)((to - from) * r->dk_row) * sizeof *r->dk);
}

/* `fresh`: the first block of its key head, whose sums start from 0. */
static void backward_block(const job *j, const room *r, int64_t b, int64_t h, int64_t first, int64_t count,
                           int64_t keys_from, int64_t keys_to, bool fresh, tile_fetch *fetch)
{
    const tile_kernels *k = at_isa()->tile;
    block blk;
    rows x;
    cutter scratch = r->block;
    at_block_load(j, &blk, &scratch, b, h, NULL, first, count);
    blk.fetch = fetch;
    load_rows(j, &blk, r, &x);
    bool careful = j->masked && (!at_isa()->rows->finite(blk.q, blk.q_row, count, j->size) ||
                                 !at_isa()->rows->finite(r->dout, r->dv_row, count, j->value_size));
    if (j->what.additive || blk.from >= blk.to)
        memset(r->dq, 0, (size_t)(count * blk.q_row) * sizeof *r->dq);
    if (has_table(j))
        memset(r->dbias, 0, (size_t)(count * (2 * j->reach + 1)) * sizeof *r->dbias);
    if (j->rule == RULE_SPARSEMAX || j->rule == RULE_ENTMAX15)
        find_delta(j, &blk, r, &x);

    int64_t from = keys_from > blk.from ? keys_from : blk.from, to = keys_to < blk.to ? keys_to : blk.to;
    if (fresh && j->back_keys) {
        zero_keys(j, r, keys_from, from < keys_to ? from : keys_to);
        zero_keys(j, r, to > keys_from ? to : keys_from, keys_to);
    }
    for (; from < to; from += TILE_KEYS) {
        tile t = remake(j, &blk, r, &x, from);
        tile w = spent_weights(j, &blk, r, &x, &t), d = t;
        d.s = r->d;
        if (j->back_keys)
            k->gather(&w, j->value_size, r->dout, r->dv_row, r->dv, r->dv_row, fresh, careful);
        if (j->what.centre)
            k->prior(&d, blk.centre, j->what.sigma);
        at_block_drop(j, &blk, &d);
        k->dscore(&t, r->d, &x.back);
        if (r->offsets_row)
            k->by_offset(&w, blk.place, j->reach, r->offsets, r->offsets_row);
        if (j->back_query && has_table(j))
            k->by_offset(&d, blk.place, j->reach, r->dbias, 2 * j->reach + 1);
        if (j->what.additive) {
            const at_real *v = j->what.score_v->value + (j->what.score_v->shape.rank == 2 ? h * j->size : 0);
            k->additive_back(&d, j->size, blk.q, blk.q_row, r->kt, v, j->what.act, r->dq, blk.q_row, r->dk, r->dscore);
            continue;
        }
        if (j->back_query)
            k->weigh(&d, j->size, r->k, blk.keys, r->dq, blk.q_row, from == blk.from, r->careful_keys);
        if (j->back_keys)
            k->gather(&d, j->size, blk.q, blk.q_row, r->dk, r->dk_row, fresh, careful);
    }
    back_through_tables(j, &blk, r);
    if (j->back_query)
        hand_over(j, &blk, r, &x);
}

/* The key head's sums into the tensors' gradients, for keys [from, to). */
static void hand_over_keys(const job *j, const room *r, int64_t b, int64_t g, int64_t from, int64_t to)
{
    at_real *dk = wanted(j->what.k), *dv = wanted(j->what.v);
    const row_kernels *rows_of = at_isa()->rows;
    if (dv)
        rows_of->add(dv + at_start_of(&j->v, b, g, from), j->v.row, r->dv + from * r->dv_row, r->dv_row, to - from,
                     j->value_size, 1);
    if (dk && !j->what.additive) /* q was kept times scale and unit */
        rows_of->add(dk + at_start_of(&j->k, b, g, from), j->k.row, r->dk + from * r->dk_row, r->dk_row, to - from,
                     j->size, 1 / j->unit);
    if (dk && j->what.additive)
        at_isa()->tile->add_turned(dk + at_start_of(&j->k, b, g, from), j->k.row, r->dk + from * j->size, j->size,
                                   to - from);
}

static void start_head(const job *j, const room *r, int64_t h)
{
    int64_t count = 2 * j->reach + 1;
    if (j->what.key_table)
        memset(r->dwk, 0, (size_t)(count * r->dk_row) * sizeof *r->dwk);
    if (j->what.value_table)
        memset(r->dwv, 0, (size_t)(count * r->dv_row) * sizeof *r->dwv);
    if (!j->what.additive)
        return;
    const at_real *v = j->what.score_v->value + (j->what.score_v->shape.rank == 2 ? h * j->size : 0);
    for (int64_t a = 0; a < j->size; a++)
        r->score[a] = j->unit * v[a];
    memset(r->dscore, 0, (size_t)(j->size * at_isa()->tile->width / 2) * sizeof *r->dscore);
}

static void end_head(const job *j, const room *r, int64_t b, int64_t h)
{
    const row_kernels *rows_of = at_isa()->rows;
    int64_t count = 2 * j->reach + 1, head = b * j->heads + h, lanes = at_isa()->tile->width / 2;
    if (j->what.key_table) /* q was kept times scale and unit */
        rows_of->copy(j->key_parts + head * count * j->size, j->size, 0, r->dwk, r->dk_row, count, j->size, 1 / j->unit,
                      NULL);
    if (j->what.value_table)
        rows_of->copy(j->value_parts + head * count * j->value_size, j->value_size, 0, r->dwv, r->dv_row, count,
                      j->value_size, 1, NULL);
    for (int64_t a = 0; j->what.additive && a < j->size; a++) {
        at_real sum = 0;
        for (int64_t l = 0; l < lanes; l++)
            sum += r->dscore[a * lanes + l];
        j->score_parts[head * j->size + a] = sum;
    }
}

/* What the pair after (b, g) needs first, to read and to add to. */
static tile_fetch next_pair(const job *j, int64_t b, int64_t g)
{
    tile_fetch fetch = {.rows_a_time = 3};
    if (!at_next_pair(j, &b, &g))
        return fetch;
    int64_t group = j->heads / j->kv_heads, queries = at_query_count(j, b), keys = at_key_count(j, b);
    const struct {
        const at_tensor *tensor;
        const lines *lines;
        int64_t head, rows, size;
    } next[] = {
        {j->what.k, &j->k, g, keys, j->size},
        {j->what.v, &j->v, g, keys, j->value_size},
        {j->what.q, &j->q, g * group, queries, group * j->size},
        {j->made.out, &j->out, g * group, queries, group * j->value_size},
    };
    for (int i = 0; i < 4; i++) {
        int64_t at = at_start_of(next[i].lines, b, next[i].head, 0);
        at_fetch_add(&fetch, next[i].tensor->value + at, next[i].lines->row, next[i].rows, next[i].size);
        if (next[i].tensor->grad)
            at_fetch_add(&fetch, next[i].tensor->grad + at, next[i].lines->row, next[i].rows, next[i].size);
    }
    return fetch;
}

/* One (batch, key head), or a part of it: of its query blocks when only the queries' gradients are gathered, of its
 * keys when only the keys' are. Every sum runs in the same order however it is cut. */
static void backward_pair(const job *j, char *scratch, int64_t b, int64_t g, int64_t part)
{
    int64_t query_count = at_query_count(j, b), key_count = at_key_count(j, b);
    if (query_count < 1 || key_count < 1)
        return;
    room r = make_room(j, scratch);
    tile_fetch fetch = next_pair(j, b, g);
    int64_t group = j->heads / j->kv_heads, blocks = (query_count + TILE_ROWS - 1) / TILE_ROWS;
    int64_t key_blocks = (key_count + TILE_KEYS - 1) / TILE_KEYS;
    const at_real *keys = j->what.k->value + at_start_of(&j->k, b, g, 0);
    const at_real *values = j->what.v->value + at_start_of(&j->v, b, g, 0);
    at_gemm_pack(keys, 1, j->k.row, j->size, key_count, r.kt);
    r.values = (tile_lines){.at = values, .row = j->v.row};
    r.lone = query_count == 1 && group == 1; /* as on the way forward */
    if (!r.lone)
        at_gemm_pack(values, 1, j->v.row, j->value_size, key_count, r.vt);
    if (!j->what.additive)
        at_gemm_pack(keys, j->k.row, 1, key_count, j->size, r.k);
    r.careful_keys = j->masked && !at_isa()->rows->finite(keys, j->k.row, key_count, j->size);
    bool cut_keys = !j->back_query;
    int64_t from = cut_keys ? key_blocks * part / j->parts * TILE_KEYS : 0;
    int64_t to = cut_keys ? key_blocks * (part + 1) / j->parts * TILE_KEYS : key_count;
    to = to < key_count ? to : key_count;
    if (j->back_keys && j->what.additive)
        memset(r.dk, 0, (size_t)(at_round_up(key_count, at_isa()->tile->width) * j->size) * sizeof *r.dk);
    int64_t items = group * blocks, first = cut_keys ? 0 : items * part / j->parts;
    int64_t last = cut_keys ? items : items * (part + 1) / j->parts;
    for (int64_t item = first; item < last; item++) {
        int64_t h = g * group + item / blocks, row = query_count * (item % blocks) / blocks;
        int64_t count = query_count * (item % blocks + 1) / blocks - row;
        if (item == first || row == 0)
            start_head(j, &r, h);
        backward_block(j, &r, b, h, row, count, from, to, item == first, fetch.regions ? &fetch : NULL);
        if (item + 1 == last || row + count == query_count)
            end_head(j, &r, b, h);
    }
    if (j->back_keys)
        hand_over_keys(j, &r, b, g, from, to);
}

void at_backward_task(void *context, int64_t index, int worker)
{
    at_pairs_of_task(context, index, worker, backward_pair);
}
