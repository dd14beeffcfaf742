/* Weights and summaries without an n x n array: the scores of the rows asked for are computed again, and the rows'
 * statistics turn them into weights tile by tile. */
#include <math.h>
#include <string.h>

#include "attention/fused_internal.h"
#include "kernels/isa.h"

/* A rule that chooses one key has a one there and zeros elsewhere. */
static void one_hot(const at_job *j, const block *blk, const tile *t)
{
    for (int64_t i = 0; i < t->rows; i++) {
        const int64_t row = at_row_of(j, blk->b, blk->h, blk->index[i]);
        at_one_hot(j->choice[row], j->stat[row], t, i);
    }
}

void at_block_weights(const at_job *j, const block *blk, const at_real *kt, const at_real *v, at_real *s, int64_t s_row,
                      at_tile_visitor *visit, void *context)
{
    at_real top[TILE_ROWS], stat[TILE_ROWS];
    for (int64_t i = 0; i < blk->rows; i++) {
        const int64_t row = at_row_of(j, blk->b, blk->h, blk->index[i]);
        stat[i] = j->stat[row];
        top[i] = j->top ? j->top[row] : 0;
    }
    for (int64_t from = blk->from; from < blk->to; from += TILE_KEYS) {
        tile t = at_block_tile(blk, from, s, s_row);
        if (j->rule->pass == AT_PASS_CHOICE) {
            one_hot(j, blk, &t);
        } else {
            at_block_score_again(j, blk, &t, kt, v);
            at_block_normalise(j, blk, &t, top, stat);
        }
        if (j->centre)
            at_isa()->tile->prior(&t, blk->centre, j->sigma);
        visit(context, blk, &t);
    }
}

/* ---- The weights of chosen rows ---- */

typedef struct chosen {
    const at_job *job;
    const int64_t *slot; /* where in [row_count] each row of the block goes */
} chosen;

static void write_rows(void *context, const block *blk, const tile *t)
{
    const chosen *c = context;
    const at_job *j = c->job;
    for (int64_t i = 0; i < t->rows; i++) {
        at_real *row = j->asked->weights + ((blk->b * j->H + blk->h) * j->asked_rows + c->slot[i]) * j->K;
        int64_t lo = blk->lo[i] > t->from ? blk->lo[i] : t->from, hi = blk->hi[i] < t->to ? blk->hi[i] : t->to;
        if (lo < hi)
            memcpy(row + lo, t->s + i * t->s_row + lo - t->from, (size_t)(hi - lo) * sizeof *row);
    }
}

static void report_rows(const at_job *j, const block *from, cutter scratch, const at_real *kt, const at_real *v)
{
    const int64_t b = from->b, h = from->h, first = from->index[0], rows = from->rows;
    int64_t width = at_isa()->tile->width, s_row = TILE_KEYS + width, slot[TILE_ROWS], index[TILE_ROWS], found = 0;
    at_real *s = at_cut(&scratch, TILE_ROWS * s_row);
    chosen c = {j, slot};
    for (int64_t n = 0; n <= j->asked_rows; n++) {
        if (n < j->asked_rows) {
            int64_t i = j->asked->rows ? j->asked->rows[n] : n;
            if (i < first || i >= first + rows)
                continue;
            slot[found] = n;
            index[found++] = i;
            memset(j->asked->weights + ((b * j->H + h) * j->asked_rows + n) * j->K, 0,
                   (size_t)j->K * sizeof *j->asked->weights);
        }
        if (found == TILE_ROWS || (n == j->asked_rows && found > 0)) {
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
    const at_job *job;
    at_real best[TILE_ROWS], entropy[TILE_ROWS];
    int32_t argmax[TILE_ROWS];
} summary;

static void summarise(void *context, const block *blk, const tile *t)
{
    summary *sums = context;
    const at_job *j = sums->job;
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
            if (j->asked->key_sums)
                j->asked->key_sums[(blk->b * j->H + blk->h) * j->K + key] += w;
        }
    }
}

static void report_summaries(const at_job *j, const block *from, cutter scratch, const at_real *kt, const at_real *v)
{
    const int64_t b = from->b, h = from->h, first = from->index[0], rows = from->rows;
    int64_t s_row = TILE_KEYS + at_isa()->tile->width;
    at_real *s = at_cut(&scratch, TILE_ROWS * s_row);
    summary sums = {.job = j};
    for (int64_t i = 0; i < rows; i++)
        sums.argmax[i] = -1;
    block blk;
    at_block_load(j, &blk, &scratch, b, h, NULL, first, rows);
    at_block_weights(j, &blk, kt, v, s, s_row, summarise, &sums);
    for (int64_t i = 0; i < rows; i++) {
        int64_t row = at_row_of(j, b, h, first + i);
        if (j->asked->argmax)
            j->asked->argmax[row] = sums.argmax[i];
        if (j->asked->entropy)
            j->asked->entropy[row] = sums.entropy[i];
    }
}

void at_report(const at_job *j, const block *blk, cutter scratch, const at_real *kt, const at_real *v, bool summaries)
{
    if (j->asked->weights)
        report_rows(j, blk, scratch, kt, v);
    if (summaries && (j->asked->argmax || j->asked->entropy || j->asked->key_sums))
        report_summaries(j, blk, scratch, kt, v);
}
