/* Shared by fused.c and fused_*.c: a block of query rows of one call made ready for the tile kernels. */
#ifndef AT_FUSED_INTERNAL_H
#define AT_FUSED_INTERNAL_H

#include <math.h>
#include <string.h>

#include "attention/axes_internal.h"

/* A block of query rows of one head: what the tile kernels read, in the worker's scratch memory. */
typedef struct block {
    int64_t b, h, g, rows, keys; /* keys: all of this sequence's */
    int64_t index[TILE_ROWS];    /* which queries */
    int32_t lo[TILE_ROWS], hi[TILE_ROWS], position[TILE_ROWS];
    int64_t from, to; /* the keys that any row uses, from at a tile's start */
    at_real *q;
    int64_t q_row;    /* [rows, q_row], scaled unless score_scale is left */
    tile_table table; /* the bias */
    at_real base[TILE_ROWS];
    int64_t entries; /* of shaw's tables that any row can reach, up to the offset of its last key */
    at_real centre[TILE_ROWS];
    tile_fetch *fetch; /* what to prefetch; NULL: nothing */
} block;

/* Scratch memory of a worker, from which pieces are cut in order. */
typedef struct cutter {
    char *at;
    size_t used;
} cutter;
at_real *at_cut(cutter *cutter, int64_t count);

/* Fills the block for `rows` queries from first_query on (or those of `index` if not NULL). */
void at_block_load(const at_job *j, block *blk, cutter *scratch, int64_t b, int64_t h, const int64_t *index,
                   int64_t first_query, int64_t rows);
/* The tile of this block that starts at key `from`, with `s` for its scores. */
tile at_block_tile(const block *blk, int64_t from, at_real *s, int64_t s_row);
/* What the queries are multiplied by before the product. */
at_real at_query_scale(const at_job *j);
/* The pairwise score's vector of head h; nothing for an inner product. */
void at_score_vector(const at_job *j, int64_t h, at_real *vector);
/* Its scores, without the bias. kt: the key head's keys as panels; v: the score vector. */
void at_block_score(const at_job *j, const block *blk, const tile *t, const at_real *kt, const at_real *v);
/* The same scores again, after the forward pass: those it kept, or computed once more. */
void at_block_score_again(const at_job *j, const block *blk, const tile *t, const at_real *kt, const at_real *v);

/* From the scores of a tile to its weights, with the rows' statistics: adds the table and subtracts `top`, where the rule
 * does. */
void at_block_normalise(const at_job *j, const block *blk, const tile *t, const at_real *top, const at_real *stat);
/* Sets the block's table: the bias from `head` on, one table for all rows or one head's for each; or shaw's q wK^T in
 * `products`, one for each row, of which the first blk->entries are there. */
void at_block_table(const at_job *j, block *blk, int64_t head, bool rows_are_heads, at_real *products);

/* Dropout on the weights of the tile, or on their gradients. */
void at_block_drop(const at_job *j, const block *blk, const tile *t);

/* Row i of a tile has a one at the key chosen, and zeros elsewhere; NaN if the statistic of its scores is. */
static inline void at_one_hot(int64_t choice, at_real stat, const tile *t, int64_t i)
{
    at_real *row = t->s + i * t->s_row;
    memset(row, 0, (size_t)(t->to - t->from) * sizeof *row);
    if (choice >= t->from && choice < t->to)
        row[choice - t->from] = isnan(stat) ? stat : 1;
}

/* Where row i of head h of sequence b starts; rows of a sequence are `row` numbers apart. */
static inline int64_t at_start_of(const at_layout *x, int64_t b, int64_t h, int64_t i)
{
    return ((x->first ? x->first[b] : b * x->each) + i) * x->row + x->column + h * x->size;
}
static inline int64_t at_query_count(const at_job *j, int64_t b)
{
    return j->direct ? j->direct->query_count[b] : j->Q;
}
static inline int64_t at_key_count(const at_job *j, int64_t b)
{
    return j->direct ? j->direct->key_count[b] : j->K;
}

/* Advances to the pair to prefetch for; false if there is none. */
bool at_next_pair(const at_job *j, int64_t *b, int64_t *g);
/* Adds [rows, size] numbers, rows `row` apart, to what is prefetched between products. */
void at_fetch_add(tile_fetch *fetch, const at_real *at, int64_t row, int64_t rows, int64_t size);

/* A table of `count` numbers at `to` + one panel's width, of which the first `known` are set, extended and padded
 * with its end values on both sides: see tile_table. */
void at_pad_table(at_real *to, int64_t known, int64_t count);
/* The panels of head h of one of shaw's tables; `each`: the size of one head's. */
const at_real *at_table_of(const at_tensor *table, const at_real *panels, int64_t h, int64_t each);

int64_t at_round_up(int64_t n, int64_t multiple);
int64_t at_row_of(const at_job *j, int64_t b, int64_t h, int64_t i); /* index in [B,H,Q] */

/* Tasks are (batch, key head, part), or whole batch rows where they are short: how many, and the pairs of one task. */
int64_t at_pair_tasks(const at_job *j);
typedef void at_pair(const at_job *j, char *scratch, int64_t b, int64_t g, int64_t part);
void at_pairs_of_task(const at_job *j, int64_t index, int worker, at_pair *run);

size_t at_forward_scratch(const at_job *j);
void at_forward_task(void *context, int64_t index, int worker);
/* One query per sequence: all heads of a batch row together, over keys and values in place. */
bool at_decode_can(const at_job *j);
size_t at_decode_scratch(const at_job *j);
void at_decode_task(void *context, int64_t index, int worker);
size_t at_backward_scratch(const at_job *j);
void at_backward_task(void *context, int64_t index, int worker);

/* The weights of a block's rows, tile by tile, once their statistics are known: `visit` gets each tile in turn. */
typedef void at_tile_visitor(void *context, const block *blk, const tile *t);
void at_block_weights(const at_job *j, const block *blk, const at_real *kt, const at_real *v, at_real *s, int64_t s_row,
                      at_tile_visitor *visit, void *context);
/* Writes what is asked for of the block's rows: weights and, where the forward pass did not collect them, summaries. */
void at_report(const at_job *j, const block *blk, cutter scratch, const at_real *kt, const at_real *v, bool summaries);

#endif
