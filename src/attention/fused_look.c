/* Looking at the weights without an n x n array: the scores of the rows in question are made once more, and with the
 * rows' statistics at hand they turn into weights tile by tile. */
#include <math.h>
#include <string.h>

#include "attention/fused_internal.h"
#include "kernels/isa.h"

/* Hard attention's weights are a one at the choice. */
static void one_hot(const job *j, const block *blk, const tile *t)
{
    for (int64_t i = 0; i < t->rows; i++) {
        memset(t->s + i * t->s_row, 0, (size_t)(t->to - t->from) * sizeof *t->s);
        int64_t c = j->choice[at_row_of(j, blk->b, blk->h, blk->index[i])] - t->from;
        if (c >= 0 && c < t->to - t->from)
            t->s[i * t->s_row + c] = 1;
    }
}

void at_block_weights(const job *j, const block *blk, const at_real *kt, const at_real *v, at_real *s, int64_t s_row,
                      at_see *see, void *context)
{
    const tile_kernels *k = at_isa()->tile;
    at_real stat[TILE_ROWS];
    for (int64_t i = 0; i < blk->rows; i++)
        stat[i] = j->stat[at_row_of(j, blk->b, blk->h, blk->index[i])];
    tile_back back = {.rule = j->rule, .stat = stat};
    for (int64_t from = blk->from; from < blk->to; from += TILE_KEYS) {
        tile t = at_block_tile(blk, from, s, s_row);
        if (j->rule == RULE_HARD) {
            one_hot(j, blk, &t);
        } else {
            at_block_score_again(j, blk, &t, kt, v);
            if (blk->table.at)
                k->look_up(&t, &blk->table);
            k->weights(&t, &back);
        }
        if (j->what.centre)
            k->prior(&t, blk->centre, j->what.sigma);
        see(context, blk, &t);
    }
}

/* ---- The weights of chosen rows ---- */

typedef struct chosen {
    const job *job;
    const int64_t *slot; /* where in [row_count] each row of the block goes */
} chosen;

static void write_rows(void *context, const block *blk, const tile *t)
{
    const chosen *c = context;
    const job *j = c->job;
    for (int64_t i = 0; i < t->rows; i++) {
        at_real *row = j->what.weights + ((blk->b * j->heads + blk->h) * j->what.row_count + c->slot[i]) * j->keys;
        int64_t lo = blk->lo[i] > t->from ? blk->lo[i] : t->from, hi = blk->hi[i] < t->to ? blk->hi[i] : t->to;
        if (lo < hi)
            memcpy(row + lo, t->s + i * t->s_row + lo - t->from, (size_t)(hi - lo) * sizeof *row);
    }
}

static void look_at_rows(const job *j, cutter scratch, int64_t b, int64_t h, int64_t first, int64_t rows,
                         const at_real *kt, const at_real *v)
{
    int64_t width = at_isa()->tile->width, s_row = TILE_KEYS + width, slot[TILE_ROWS], index[TILE_ROWS], found = 0;
    at_real *s = at_cut(&scratch, TILE_ROWS * s_row);
    chosen c = {j, slot};
    for (int64_t n = 0; n <= j->what.row_count; n++) {
        if (n < j->what.row_count) {
            int64_t i = j->what.rows ? j->what.rows[n] : n;
            if (i < first || i >= first + rows)
                continue;
            slot[found] = n;
            index[found++] = i;
            memset(j->what.weights + ((b * j->heads + h) * j->what.row_count + n) * j->keys, 0,
                   (size_t)j->keys * sizeof *j->what.weights);
        }
        if (found == TILE_ROWS || (n == j->what.row_count && found > 0)) {
            block blk;
            cutter cut = scratch;
            at_block_load(j, &blk, &cut, b, h, index, 0, found);
            at_block_weights(j, &blk, kt, v, s, s_row, write_rows, &c);
            found = 0;
        }
    }
}

/* ---- Summaries of all rows ---- */

typedef struct summary {
    const job *job;
    at_real best[TILE_ROWS], entropy[TILE_ROWS];
    int32_t argmax[TILE_ROWS];
} summary;

static void sum_up(void *context, const block *blk, const tile *t)
{
    summary *sums = context;
    const job *j = sums->job;
    for (int64_t i = 0; i < t->rows; i++) {
        int64_t lo = blk->lo[i] > t->from ? blk->lo[i] : t->from, hi = blk->hi[i] < t->to ? blk->hi[i] : t->to;
        for (int64_t key = lo; key < hi; key++) {
            at_real w = t->s[i * t->s_row + key - t->from];
            if (sums->argmax[i] < 0 || w > sums->best[i]) {
                sums->best[i] = w;
                sums->argmax[i] = (int32_t)key;
            }
            if (w > 0)
                sums->entropy[i] -= w * AT_REAL(log)(w);
            if (j->what.key_sums)
                j->what.key_sums[(blk->b * j->heads + blk->h) * j->keys + key] += w;
        }
    }
}

static void look_at_all(const job *j, cutter scratch, int64_t b, int64_t h, int64_t first, int64_t rows,
                        const at_real *kt, const at_real *v)
{
    int64_t s_row = TILE_KEYS + at_isa()->tile->width;
    at_real *s = at_cut(&scratch, TILE_ROWS * s_row);
    summary sums = {.job = j};
    for (int64_t i = 0; i < rows; i++)
        sums.argmax[i] = -1;
    block blk;
    at_block_load(j, &blk, &scratch, b, h, NULL, first, rows);
    at_block_weights(j, &blk, kt, v, s, s_row, sum_up, &sums);
    for (int64_t i = 0; i < rows; i++) {
        int64_t row = at_row_of(j, b, h, first + i);
        if (j->what.argmax)
            j->what.argmax[row] = sums.argmax[i];
        if (j->what.entropy)
            j->what.entropy[row] = sums.entropy[i];
    }
}

void at_look(const job *j, cutter scratch, int64_t b, int64_t h, int64_t first, int64_t rows, const at_real *kt,
             const at_real *v, bool summaries)
{
    if (j->what.weights)
        look_at_rows(j, scratch, b, h, first, rows, kt, v);
    if (summaries && (j->what.argmax || j->what.entropy || j->what.key_sums))
        look_at_all(j, scratch, b, h, first, rows, kt, v);
}
