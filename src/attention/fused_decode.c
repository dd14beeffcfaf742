/* Decoding: one query to a sequence. All heads of a batch row go together, a row of the tile each, so keys and values
 * are read once, in the order they lie in memory, and nothing is packed. A head's sums run as everywhere else. */
#include <math.h>
#include <string.h>

#include "attention/fused_internal.h"
#include "kernels/isa.h"

bool at_fused_takes_rows(at_normaliser normaliser, bool additive, int64_t heads, bool summaries)
{
    bool online = normaliser == AT_SOFTMAX || normaliser == AT_SIGMOID || normaliser == AT_RELU;
    return online && !additive && heads <= TILE_ROWS && !summaries;
}

bool at_decode_can(const job *j)
{
    const at_fused *what = &j->what;
    bool summaries = what->argmax || what->entropy || what->key_sums;
    return j->queries == 1 && what->drop.share == 0 &&
           at_fused_takes_rows(what->normaliser, what->additive, what->heads, summaries);
}

typedef struct room {
    at_real *q, *s, *out, *offsets, *tables;
    int64_t q_row, s_row, out_row, offsets_row;
    size_t used;
} room;

static room make_room(const job *j, char *memory)
{
    int64_t width = at_isa()->tile->width, rows = j->heads;
    cutter cut = {.at = memory};
    room r = {.q_row = j->size_panels, .s_row = TILE_KEYS + width, .out_row = j->value_panels};
    r.offsets_row = j->what.value_table ? at_round_up(2 * j->reach + 1, width) : 0;
    r.q = at_cut(&cut, rows * r.q_row);
    r.s = at_cut(&cut, rows * r.s_row);
    r.out = at_cut(&cut, rows * r.out_row);
    r.offsets = at_cut(&cut, rows * r.offsets_row);
    r.tables = at_cut(&cut, j->what.key_table ? rows * j->bias_row : 0);
    r.used = cut.used;
    return r;
}

size_t at_decode_scratch(const job *j)
{
    return make_room(j, NULL).used;
}

/* The keys or values of sequence b from head g on. */
static tile_lines lines_of(const job *j, const at_tensor *tensor, const lines *x, int64_t b, int64_t g)
{
    const at_packed *p = j->what.packed;
    if (p && p->key_row)
        return (tile_lines){.list = p->key_row + b * p->key_row_stride, .column = x->column + g * x->size};
    return (tile_lines){.at = tensor->value + at_start_of(x, b, g, 0), .row = x->row};
}

/* The weights of these heads: the scores once more, which with the rows' statistics turn into weights. */
static void decode_weights(const job *j, const block *blk, const room *r, const tile_lines *keys, int64_t first)
{
    const tile_kernels *k = at_isa()->tile;
    int64_t group = j->heads / j->kv_heads, at = blk->b * j->heads + first, count = j->what.row_count;
    tile_back back = {.rule = j->rule, .stat = j->stat + at};
    memset(j->what.weights + at * count * j->keys, 0, (size_t)(blk->rows * count * j->keys) * sizeof(at_real));
    for (int64_t from = blk->from; from < blk->to; from += TILE_KEYS) {
        tile t = at_block_tile(blk, from, r->s, r->s_row);
        k->score_heads(&t, j->size, r->q, r->q_row, keys, group);
        if (blk->table.at)
            k->look_up(&t, &blk->table);
        k->weights(&t, &back);
        if (j->what.centre)
            k->prior(&t, blk->centre, j->what.sigma);
        for (int64_t h = 0; h < blk->rows; h++)
            for (int64_t n = 0; n < count; n++)
                memcpy(j->what.weights + ((at + h) * count + n) * j->keys + from, r->s + h * r->s_row,
                       (size_t)(t.to - from) * sizeof(at_real));
    }
}

/* The heads of one batch row, or a part of them. */
void at_decode_task(void *context, int64_t index, int worker)
{
    const job *j = context;
    if (at_query_count(j, index / j->parts) < 1)
        return;
    const at_fused *what = &j->what;
    const tile_kernels *k = at_isa()->tile;
    const row_kernels *rows_of = at_isa()->rows;
    room r = make_room(j, j->scratch + (size_t)worker * j->scratch_size);
    int64_t b = index / j->parts, part = index % j->parts, group = j->heads / j->kv_heads;
    int64_t first = j->kv_heads * part / j->parts * group, rows = j->kv_heads * (part + 1) / j->parts * group - first;
    int64_t at = b * j->heads + first, count = 2 * j->reach + 1;
    at_real top[TILE_ROWS], sum[TILE_ROWS], factor[TILE_ROWS];
    block blk = {.b = b, .rows = rows, .keys = at_key_count(j, b), .from = at_key_count(j, b), .to = 0};
    for (int64_t h = 0; h < rows; h++) {
        int64_t span = at_span_row(what->spans, b, first + h, 0);
        int32_t lo = what->spans->lo[span], hi = what->spans->hi[span];
        blk.lo[h] = lo < 0 ? 0 : lo;
        blk.hi[h] = hi > blk.keys ? (int32_t)blk.keys : hi;
        blk.place[h] = (int32_t)what->start;
        if (blk.lo[h] < blk.hi[h]) {
            blk.from = blk.lo[h] < blk.from ? blk.lo[h] : blk.from;
            blk.to = blk.hi[h] > blk.to ? blk.hi[h] : blk.to;
        }
        blk.centre[h] = what->centre ? what->centre->value[at + h] : 0;
        top[h] = -INFINITY;
        sum[h] = 0;
    }
    blk.from = blk.from / TILE_KEYS * TILE_KEYS;
    rows_of->copy(r.q, r.q_row, j->size_panels, what->q->value + at_start_of(&j->q, b, first, 0), j->size, rows,
                  j->size, what->scale * j->unit, NULL);
    blk.table = (tile_table){.row = j->bias_row, .reach = j->reach, .place = blk.place};
    if (what->bias)
        blk.table.at = j->bias + first * j->bias_row + k->width;
    for (int64_t h = 0; what->key_table && h < rows; h++) {
        int64_t each = at_round_up(count, k->width) * j->size;
        k->multiply(1, j->size, count, r.q + h * r.q_row, r.q_row,
                    at_table_of(what->key_table, j->key_panels_of, first + h, each), j->size * k->width,
                    r.tables + h * j->bias_row + k->width, j->bias_row, false);
        at_pad_table(r.tables + h * j->bias_row, count, count);
        blk.table.at = r.tables + k->width;
    }
    memset(r.out, 0, (size_t)(rows * r.out_row) * sizeof *r.out);
    memset(r.offsets, 0, (size_t)(rows * r.offsets_row) * sizeof *r.offsets);

    tile_state state = {.top = top,
                        .sum = sum,
                        .out = r.out,
                        .out_row = r.out_row,
                        .out_size = j->value_panels,
                        .offsets = r.offsets_row ? r.offsets : NULL,
                        .offsets_row = r.offsets_row,
                        .offsets_size = count};
    const tile_lines keys = lines_of(j, what->k, &j->k, b, first / group);
    const tile_lines values = lines_of(j, what->v, &j->v, b, first / group);
    for (int64_t from = blk.from; from < blk.to; from += TILE_KEYS) {
        tile t = at_block_tile(&blk, from, r.s, r.s_row);
        k->score_heads(&t, j->size, r.q, r.q_row, &keys, group);
        at_online_tile(j, &t, &blk.table, &state);
        if (what->centre)
            k->prior(&t, blk.centre, what->sigma);
        if (r.offsets_row)
            k->by_offset(&t, blk.place, j->reach, r.offsets, r.offsets_row);
        k->weigh_heads(&t, j->value_size, &values, group, r.out, r.out_row);
    }
    for (int64_t h = 0; h < rows; h++)
        factor[h] = at_online_end(j, top[h], sum[h], blk.lo[h] >= blk.hi[h], j->keeps_stat ? &j->stat[at + h] : NULL);
    for (int64_t h = 0; what->value_table && h < rows; h++)
        k->multiply(1, count, j->value_size, r.offsets + h * r.offsets_row, r.offsets_row,
                    at_table_of(what->value_table, j->value_panels_of, first + h, count * j->value_panels),
                    count * k->width, r.out + h * r.out_row, r.out_row, true);
    rows_of->copy(j->made.out->value + at_start_of(&j->out, b, first, 0), j->value_size, 0, r.out, r.out_row, rows,
                  j->value_size, 1, factor);
    if (what->weights)
        decode_weights(j, &blk, &r, &keys, first);
}
