/* Decoding: one query to a sequence. All heads of a batch row go together, a row of the tile each, so keys and values
 * are read once, in the order they lie in memory, and nothing is packed. A head's sums run as everywhere else. */
#include <math.h>
#include <string.h>

#include "fused_job.h"
#include "isa.h"

bool at_decode_can(const job *j)
{
    const at_fused *what = &j->what;
    bool online = j->rule == RULE_SOFTMAX || j->rule == RULE_SIGMOID || j->rule == RULE_RELU;
    bool looks = what->weights || what->argmax || what->entropy || what->key_sums;
    return j->queries == 1 && j->heads <= TILE_ROWS && online && !what->additive && !looks;
}

typedef struct room {
    at_real *q, *s, *out, *offsets, *tables, *spare;
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
    r.spare = at_cut(&cut, width * j->size);
    r.used = cut.used;
    return r;
}

size_t at_decode_scratch(const job *j)
{
    return make_room(j, NULL).used;
}

/* The heads of one batch row, or a part of them. */
void at_decode_task(void *context, int64_t index, int worker)
{
    const job *j = context;
    const at_fused *what = &j->what;
    const tile_kernels *k = at_isa()->tile;
    const row_kernels *rows_of = at_isa()->rows;
    room r = make_room(j, j->scratch + (size_t)worker * j->scratch_size);
    int64_t b = index / j->parts, part = index % j->parts, group = j->heads / j->kv_heads;
    int64_t first = j->kv_heads * part / j->parts * group, rows = j->kv_heads * (part + 1) / j->parts * group - first;
    int64_t at = b * j->heads + first, count = 2 * j->reach + 1;
    at_real top[TILE_ROWS], sum[TILE_ROWS], factor[TILE_ROWS];
    block blk = {.b = b, .rows = rows, .from = j->keys, .to = 0};
    for (int64_t h = 0; h < rows; h++) {
        int64_t span = at_span_row(what->spans, b, first + h, 0);
        int32_t lo = what->spans->lo[span], hi = what->spans->hi[span];
        blk.lo[h] = lo < 0 ? 0 : lo;
        blk.hi[h] = hi > j->keys ? (int32_t)j->keys : hi;
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
    rows_of->copy(r.q, r.q_row, j->size_panels, what->q->value + at * j->size, j->size, rows, j->size,
                  what->scale * j->unit, NULL);
    blk.table = (tile_table){.row = j->bias_row, .reach = j->reach, .place = blk.place, .unit = j->unit};
    if (what->bias)
        blk.table.at = j->bias + first * j->bias_row + k->width;
    for (int64_t h = 0; what->key_table && h < rows; h++) {
        int64_t each = at_round_up(count, k->width) * j->size;
        k->multiply(1, j->size, count, r.q + h * r.q_row, r.q_row,
                    at_table_of(what->key_table, j->key_panels_of, first + h, each), j->size * k->width,
                    r.tables + h * j->bias_row + k->width, j->bias_row, false);
        at_pad_table(r.tables + h * j->bias_row, count, count);
        blk.table.at = r.tables + k->width;
        blk.table.unit = 1;
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
    const at_real *keys = at_keys_of(j, b, first / group), *values = at_values_of(j, b, first / group);
    for (int64_t from = blk.from; from < blk.to; from += TILE_KEYS) {
        tile t = at_block_tile(j, &blk, from, r.s, r.s_row);
        k->score_heads(&t, j->size, r.q, r.q_row, keys, j->kv_heads * j->size, group, r.spare);
        at_online_tile(j, &t, &blk.table, &state);
        if (what->centre)
            k->prior(&t, blk.centre, what->sigma);
        if (r.offsets_row)
            k->by_offset(&t, blk.place, j->reach, r.offsets, r.offsets_row);
        k->weigh_heads(&t, j->value_size, values, j->kv_heads * j->value_size, group, r.out, r.out_row);
    }
    for (int64_t h = 0; h < rows; h++)
        factor[h] = at_online_end(j, top[h], sum[h], blk.lo[h] >= blk.hi[h], j->keeps_stat ? &j->stat[at + h] : NULL);
    for (int64_t h = 0; what->value_table && h < rows; h++)
        k->multiply(1, count, j->value_size, r.offsets + h * r.offsets_row, r.offsets_row,
                    at_table_of(what->value_table, j->value_panels_of, first + h, count * j->value_panels),
                    count * k->width, r.out + h * r.out_row, r.out_row, true);
    rows_of->copy(j->made.out->value + at * j->value_size, j->value_size, 0, r.out, r.out_row, rows, j->value_size, 1,
                  factor);
}
