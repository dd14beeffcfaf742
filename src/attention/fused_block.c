/* A block of query rows made ready for the tiles. */
#include <math.h>
#include <string.h>

#include "attention/fused_internal.h"
#include "kernels/isa.h"
#include "kernels/passes.h"

int64_t at_round_up(int64_t n, int64_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

int64_t at_row_of(const at_job *j, int64_t b, int64_t h, int64_t i)
{
    return (b * j->H + h) * j->Q + i;
}

int64_t at_pair_tasks(const at_job *j)
{
    return j->is_short ? j->B : j->B * j->G * j->parts;
}

void at_pairs_of_task(const at_job *j, int64_t index, int worker, at_pair *run)
{
    char *scratch = j->scratch + (size_t)worker * j->scratch_size;
    if (!j->is_short) {
        run(j, scratch, index / j->parts / j->G, index / j->parts % j->G, index % j->parts);
        return;
    }
    for (int64_t g = 0; g < j->G; g++)
        run(j, scratch, index, g, 0);
}

bool at_next_pair(const at_job *j, int64_t *b, int64_t *g)
{
    if (++*g == j->G) {
        *g = 0;
        ++*b;
    }
    return j->is_short && *b < j->B;
}

void at_fetch_add(tile_fetch *fetch, const at_real *at, int64_t row, int64_t rows, int64_t size)
{
    if (rows < 1 || fetch->regions == (int)(sizeof fetch->list / sizeof *fetch->list))
        return;
    fetch->list[fetch->regions].at = at;
    fetch->list[fetch->regions].row = row;
    fetch->list[fetch->regions].rows = rows;
    fetch->list[fetch->regions++].size = size;
}

at_real *at_cut(cutter *scratch, int64_t count)
{
    char *piece = scratch->at ? scratch->at + scratch->used : NULL;
    scratch->used += (size_t)at_round_up(count * (int64_t)sizeof(at_real), AT_ALIGN);
    return (at_real *)piece;
}

void at_pad_table(at_real *to, int64_t known, int64_t count)
{
    int64_t pad = at_isa()->tile->width;
    for (int64_t i = 0; i < pad; i++)
        to[i] = to[pad];
    for (int64_t i = pad + known; i < count + 2 * pad; i++)
        to[i] = to[pad + known - 1];
}

const at_real *at_table_of(const at_tensor *table, const at_real *panels, int64_t h, int64_t each)
{
    return panels + (table->shape.rank == 3 ? h * each : 0);
}

void at_block_load(const at_job *j, block *blk, cutter *scratch, int64_t b, int64_t h, const int64_t *index,
                   int64_t first_query, int64_t rows)
{
    int64_t width = at_isa()->tile->width, keys = at_key_count(j, b), lowest = keys, highest = 0, farthest = -j->reach;
    blk->b = b;
    blk->h = h;
    blk->g = h / (j->H / j->G);
    blk->rows = rows;
    blk->keys = keys;
    blk->fetch = NULL;
    blk->q_row = j->size_panels + width;
    blk->q = at_cut(scratch, TILE_ROWS * blk->q_row);
    at_real *tables = at_cut(scratch, j->key_table ? TILE_ROWS * j->bias_row : 0);
    at_real factor = at_query_scale(j);
    const row_kernels *k = at_isa()->rows;
    const at_real *q = j->q->value + at_start_of(&j->q_rows, b, h, 0);
    int64_t query_row = j->q_rows.row, entries = 2 * j->reach + 1, spans = at_span_row(&j->spans, b, h, 0);
    for (int64_t r = 0; r < rows; r++) {
        int64_t i = index ? index[r] : first_query + r;
        int32_t lo = j->spans.lo[spans + i], hi = j->spans.hi[spans + i];
        blk->index[r] = i;
        blk->lo[r] = lo < 0 ? 0 : lo;
        blk->hi[r] = hi > keys ? (int32_t)keys : hi;
        blk->position[r] = (int32_t)(j->bias_start + i);
        if (blk->lo[r] < blk->hi[r]) {
            lowest = blk->lo[r] < lowest ? blk->lo[r] : lowest;
            highest = blk->hi[r] > highest ? blk->hi[r] : highest;
            farthest = blk->hi[r] - 1 - blk->position[r] > farthest ? blk->hi[r] - 1 - blk->position[r] : farthest;
        }
    }
    if (!index)
        k->copy(&(row_copy){.to = blk->q,
                            .to_row = blk->q_row,
                            .padded = j->size_panels,
                            .from = q + first_query * query_row,
                            .from_row = query_row,
                            .rows = rows,
                            .size = j->size,
                            .factor = factor});
    for (int64_t r = 0; index && r < rows; r++)
        k->copy(&(row_copy){.to = blk->q + r * blk->q_row,
                            .padded = j->size_panels,
                            .from = q + index[r] * query_row,
                            .rows = 1,
                            .size = j->size,
                            .factor = factor});
    blk->entries = (farthest < j->reach ? farthest : j->reach) + j->reach + 1;
    if (j->key_table) { /* P = q wK^T, a table for each row, scaled as the scores are */
        int64_t each = at_round_up(entries, width) * j->size;
        at_isa()->tile->multiply(&(tile_product){.rows = rows,
                                                 .size = j->size,
                                                 .columns = blk->entries,
                                                 .a = blk->q,
                                                 .a_row = blk->q_row,
                                                 .b = at_table_of(j->key_table, j->key_table_panels, h, each),
                                                 .step = j->size * width,
                                                 .c = tables + width,
                                                 .c_row = j->bias_row});
    }
    for (int64_t r = 0; j->centre && r < rows; r++)
        blk->centre[r] = j->centre->value[at_row_of(j, b, h, blk->index[r])];
    blk->from = lowest / TILE_KEYS * TILE_KEYS;
    blk->to = highest;
    at_block_table(j, blk, h, false, tables);
}

static at_real table_entry(const tile_table *table, int64_t row, int64_t key)
{
    int64_t offset = key - table->position[row];
    offset = offset < -table->reach ? -table->reach : offset > table->reach ? table->reach : offset;
    return table->at[row * table->row + table->reach + offset];
}

/* An offset that all entries of a row's table share, to be subtracted: of a few that it sees the one nearest to 0, which
 * loses nothing of the others. Small ones stay, since nothing is lost beside them either. */
static at_real table_base(const at_job *j, const block *blk, int64_t i)
{
    enum { SMALL = 8 };
    const int64_t lo = blk->lo[i], hi = blk->hi[i], here = j->in.query_start + blk->index[i];
    const int64_t keys[] = {here < lo ? lo : here < hi ? here : hi - 1, lo, hi - 1};
    at_real base = INFINITY;
    for (int n = 0; n < 3 && lo < hi; n++) {
        const at_real entry = table_entry(&blk->table, i, keys[n]);
        if (AT_REAL(fabs)(entry) < SMALL)
            return 0;
        base = AT_REAL(fabs)(entry) < AT_REAL(fabs)(base) ? entry : base;
    }
    return isfinite(base) ? base : 0;
}

void at_block_table(const at_job *j, block *blk, int64_t head, bool rows_are_heads, at_real *products)
{
    const int64_t width = at_isa()->tile->width;
    const at_real *memory = j->key_table ? products : j->bias ? j->bias_table + head * j->bias_row : NULL;
    blk->table = (tile_table){.at = memory ? memory + width : NULL,
                              .row = j->key_table || rows_are_heads ? j->bias_row : 0,
                              .reach = j->reach,
                              .position = blk->position,
                              .base = blk->base,
                              .scaled = !j->key_table};
    for (int64_t i = 0; j->key_table && i < blk->rows; i++)
        at_pad_table(products + i * j->bias_row, blk->entries, 2 * j->reach + 1);
    for (int64_t i = 0; memory && j->rule->ignores_offset && i < blk->rows; i++)
        blk->base[i] = table_base(j, blk, i);
}

at_real at_query_scale(const at_job *j)
{
    return j->pairwise || j->rule->ignores_offset ? 1 : j->scale;
}

tile at_block_tile(const block *blk, int64_t from, at_real *s, int64_t s_row)
{
    int64_t to = from + TILE_KEYS < blk->keys ? from + TILE_KEYS : blk->keys;
    tile t = {.rows = blk->rows,
              .lo = blk->lo,
              .hi = blk->hi,
              .from = from,
              .to = to < blk->to ? to : blk->to,
              .s = s,
              .s_row = s_row,
              .fetch = blk->fetch};
    at_isa()->tile->begin(&t);
    return t;
}

void at_score_vector(const at_job *j, int64_t h, at_real *vector)
{
    const at_tensor *v = j->score_vector;
    const at_real *from = v ? v->value + (v->shape.rank == 2 ? h * j->size : 0) : NULL;
    for (int64_t a = 0; j->pairwise && a < j->size; a++)
        vector[a] = from ? from[a] : 1;
}

static void compute_score(const at_job *j, const block *blk, const tile *t, const at_real *kt, const at_real *v)
{
    if (j->pairwise)
        j->pairwise->tile(t, &(at_pairwise){.size = j->size,
                                            .q = blk->q,
                                            .q_row = blk->q_row,
                                            .kt = kt,
                                            .v = v,
                                            .argument = j->attention.argument[AT_SCORE]});
    else
        at_isa()->tile->score(t, j->size, blk->q, blk->q_row, kt);
}

/* Copies scores from the tile to the array that keeps them, or back. */
static void move_scores(const at_job *j, const block *blk, const tile *t, bool back)
{
    for (int64_t i = 0; i < t->rows; i++) {
        at_real *kept = j->scores + at_row_of(j, blk->b, blk->h, blk->index[i]) * j->K + t->from;
        at_real *s = t->s + i * t->s_row;
        memcpy(back ? s : kept, back ? kept : s, (size_t)(t->to - t->from) * sizeof *s);
        for (int64_t c = t->to - t->from; back && c < at_round_up(t->to - t->from, at_isa()->tile->width); c++)
            s[c] = 0; /* kernels work on whole panels */
    }
}

void at_block_score(const at_job *j, const block *blk, const tile *t, const at_real *kt, const at_real *v)
{
    compute_score(j, blk, t, kt, v);
    if (j->scores)
        move_scores(j, blk, t, false);
}

void at_block_score_again(const at_job *j, const block *blk, const tile *t, const at_real *kt, const at_real *v)
{
    if (j->scores)
        move_scores(j, blk, t, true);
    else
        compute_score(j, blk, t, kt, v);
}

void at_block_normalise(const at_job *j, const block *blk, const tile *t, const at_real *top, const at_real *stat)
{
    const tile_kernels *k = at_isa()->tile;
    tile_back back = {.rule = j->rule->rule, .unit = AT_LOG2E * j->score_scale, .top = top, .stat = stat};
    if (j->rule->ignores_offset && (blk->table.at || j->rule->pass == AT_PASS_WHOLE_ROWS)) {
        k->relate(t, top, j->score_scale, &blk->table);
        back.top = NULL;
        back.unit = AT_LOG2E;
    } else if (blk->table.at) {
        k->look_up(t, &blk->table);
    }
    k->weights(t, &back);
}

/* The index of a random number: 14 bits of the batch row, 7 of the head, 21 of the query, 21 of the key. Larger indices
 * wrap around, so that far-off rows may share their factors. */
void at_drop_factors(const at_weight_drop *drop, int64_t b, int64_t h, int64_t i, int64_t from, int64_t to,
                     at_real *factor)
{
    const int64_t row = ((b & 0x3fff) << 7 | (h & 0x7f)) << 21 | (i & 0x1fffff);
    at_isa()->passes->mask(factor, drop->seed, drop->counter, (row << 21) + (from & 0x1fffff), to - from,
                           1 - drop->share);
}

void at_block_drop(const at_job *j, const block *blk, const tile *t)
{
    at_real factor[TILE_KEYS];
    for (int64_t i = 0; j->in.drop.share > 0 && i < t->rows; i++) {
        const int64_t lo = blk->lo[i] > t->from ? blk->lo[i] : t->from, hi = blk->hi[i] < t->to ? blk->hi[i] : t->to;
        at_real *row = t->s + i * t->s_row + lo - t->from;
        if (lo >= hi)
            continue;
        at_drop_factors(&j->in.drop, blk->b, blk->h, blk->index[i], lo, hi, factor);
        at_isa()->passes->masked(row, row, factor, hi - lo, false);
    }
}
