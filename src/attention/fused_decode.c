/* Decoding: one query per sequence. All heads of a batch row are computed together, one row of the tile each, so keys
 * and values are read once, in memory order, and nothing is packed. A head's sums run in the same order as elsewhere. */
#include <math.h>
#include <string.h>

#include "attention/fused_internal.h"
#include "kernels/isa.h"

bool at_decode_can(const at_job *j)
{
    return j->Q == 1 && at_fused_takes_rows(j);
}

typedef struct workspace {
    at_real *q, *s, *out, *offsets, *tables;
    int64_t q_row, s_row, out_row, offsets_row;
    size_t used;
} workspace;

static workspace make_workspace(const at_job *j, char *memory)
{
    int64_t width = at_isa()->tile->width, rows = j->H;
    cutter cut = {.at = memory};
    workspace ws = {.q_row = j->size_panels, .s_row = TILE_KEYS + width, .out_row = j->value_panels};
    ws.offsets_row = j->value_table ? at_round_up(2 * j->reach + 1, width) : 0;
    ws.q = at_cut(&cut, rows * ws.q_row);
    ws.s = at_cut(&cut, rows * ws.s_row);
    ws.out = at_cut(&cut, rows * ws.out_row);
    ws.offsets = at_cut(&cut, rows * ws.offsets_row);
    ws.tables = at_cut(&cut, j->key_table ? rows * j->bias_row : 0);
    ws.used = cut.used;
    return ws;
}

size_t at_decode_scratch(const at_job *j)
{
    return make_workspace(j, NULL).used;
}

/* The keys or values of sequence b from head g on. */
static tile_lines lines_of(const at_job *j, const at_tensor *tensor, const at_layout *x, int64_t b, int64_t g)
{
    const at_packed *p = j->direct;
    if (p && p->key_row)
        return (tile_lines){.list = p->key_row + b * p->key_row_stride, .column = x->column + g * x->size};
    return (tile_lines){.at = tensor->value + at_start_of(x, b, g, 0), .row = x->row};
}

/* The weights of these heads: the scores computed again, turned into weights by the rows' statistics. */
static void decode_weights(const at_job *j, const block *blk, const workspace *ws, const tile_lines *keys,
                           int64_t first)
{
    const tile_kernels *k = at_isa()->tile;
    int64_t group = j->H / j->G, at = blk->b * j->H + first, count = j->asked_rows;
    memset(j->asked->weights + at * count * j->K, 0, (size_t)(blk->rows * count * j->K) * sizeof(at_real));
    for (int64_t from = blk->from; from < blk->to; from += TILE_KEYS) {
        tile t = at_block_tile(blk, from, ws->s, ws->s_row);
        k->score_heads(&t, j->size, ws->q, ws->q_row, keys, group);
        at_block_normalise(j, blk, &t, j->top ? j->top + at : NULL, j->stat + at);
        if (j->centre)
            k->prior(&t, blk->centre, j->sigma);
        for (int64_t h = 0; h < blk->rows; h++)
            for (int64_t n = 0; n < count; n++)
                memcpy(j->asked->weights + ((at + h) * count + n) * j->K + from, ws->s + h * ws->s_row,
                       (size_t)(t.to - from) * sizeof(at_real));
    }
}

/* The heads of one batch row, or a part of them. */
void at_decode_task(void *context, int64_t index, int worker)
{
    const at_job *j = context;
    if (at_query_count(j, index / j->parts) < 1)
        return;
    const tile_kernels *k = at_isa()->tile;
    const row_kernels *rows_of = at_isa()->rows;
    workspace ws = make_workspace(j, j->scratch + (size_t)worker * j->scratch_size);
    int64_t b = index / j->parts, part = index % j->parts, group = j->H / j->G;
    int64_t first = j->G * part / j->parts * group, rows = j->G * (part + 1) / j->parts * group - first;
    int64_t at = b * j->H + first, count = 2 * j->reach + 1;
    at_real top[TILE_ROWS], shift[TILE_ROWS], sum[TILE_ROWS], factor[TILE_ROWS];
    block blk = {.b = b, .rows = rows, .keys = at_key_count(j, b), .from = at_key_count(j, b), .to = 0};
    for (int64_t h = 0; h < rows; h++) {
        int64_t span = at_span_row(&j->spans, b, first + h, 0);
        int32_t lo = j->spans.lo[span], hi = j->spans.hi[span];
        blk.lo[h] = lo < 0 ? 0 : lo;
        blk.hi[h] = hi > blk.keys ? (int32_t)blk.keys : hi;
        blk.position[h] = (int32_t)j->bias_start;
        if (blk.lo[h] < blk.hi[h]) {
            blk.from = blk.lo[h] < blk.from ? blk.lo[h] : blk.from;
            blk.to = blk.hi[h] > blk.to ? blk.hi[h] : blk.to;
        }
        blk.centre[h] = j->centre ? j->centre->value[at + h] : 0;
        top[h] = -INFINITY;
        shift[h] = sum[h] = 0;
    }
    blk.from = blk.from / TILE_KEYS * TILE_KEYS;
    rows_of->copy(&(row_copy){.to = ws.q,
                              .to_row = ws.q_row,
                              .padded = j->size_panels,
                              .from = j->q->value + at_start_of(&j->q_rows, b, first, 0),
                              .from_row = j->size,
                              .rows = rows,
                              .size = j->size,
                              .factor = at_query_scale(j)});
    for (int64_t h = 0; j->key_table && h < rows; h++) {
        int64_t each = at_round_up(count, k->width) * j->size;
        k->multiply(&(tile_product){.rows = 1,
                                    .size = j->size,
                                    .columns = count,
                                    .a = ws.q + h * ws.q_row,
                                    .a_row = ws.q_row,
                                    .b = at_table_of(j->key_table, j->key_table_panels, first + h, each),
                                    .step = j->size * k->width,
                                    .c = ws.tables + h * j->bias_row + k->width,
                                    .c_row = j->bias_row});
    }
    blk.entries = count;
    at_block_table(j, &blk, first, true, ws.tables);
    memset(ws.out, 0, (size_t)(rows * ws.out_row) * sizeof *ws.out);
    memset(ws.offsets, 0, (size_t)(rows * ws.offsets_row) * sizeof *ws.offsets);

    tile_state state = {.scale = j->score_scale,
                        .top = top,
                        .shift = shift,
                        .sum = sum,
                        .out = ws.out,
                        .out_row = ws.out_row,
                        .out_size = j->value_panels,
                        .offsets = ws.offsets_row ? ws.offsets : NULL,
                        .offsets_row = ws.offsets_row,
                        .offsets_size = count};
    const tile_lines keys = lines_of(j, j->k, &j->k_rows, b, first / group);
    const tile_lines values = lines_of(j, j->v, &j->v_rows, b, first / group);
    for (int64_t from = blk.from; from < blk.to; from += TILE_KEYS) {
        tile t = at_block_tile(&blk, from, ws.s, ws.s_row);
        k->score_heads(&t, j->size, ws.q, ws.q_row, &keys, group);
        j->rule->tile(&t, &blk.table, &state);
        if (j->centre)
            k->prior(&t, blk.centre, j->sigma);
        if (ws.offsets_row)
            k->by_offset(&t, blk.position, j->reach, ws.offsets, ws.offsets_row);
        k->weigh_heads(&t, j->Dv, &values, group, ws.out, ws.out_row);
    }
    for (int64_t h = 0; h < rows; h++)
        factor[h] = j->rule->end(shift[h], sum[h], blk.lo[h] >= blk.hi[h], j->keeps_stat ? &j->stat[at + h] : NULL);
    if (j->top && j->keeps_stat)
        memcpy(j->top + at, top, (size_t)rows * sizeof *top);
    for (int64_t h = 0; j->value_table && h < rows; h++)
        k->multiply(
            &(tile_product){.rows = 1,
                            .size = count,
                            .columns = j->Dv,
                            .a = ws.offsets + h * ws.offsets_row,
                            .a_row = ws.offsets_row,
                            .b = at_table_of(j->value_table, j->value_table_panels, first + h, count * j->value_panels),
                            .step = count * k->width,
                            .c = ws.out + h * ws.out_row,
                            .c_row = ws.out_row,
                            .load = true});
    rows_of->copy(&(row_copy){.to = j->out->value + at_start_of(&j->out_rows, b, first, 0),
                              .to_row = j->Dv,
                              .from = ws.out,
                              .from_row = ws.out_row,
                              .rows = rows,
                              .size = j->Dv,
                              .factor = 1,
                              .factors = factor});
    if (j->asked->weights)
        decode_weights(j, &blk, &ws, &keys, first);
}
