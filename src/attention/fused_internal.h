/* Shared by fused.c, fused_forward.c, fused_backward.c and fused_look.c: one call of the fused operation, and a block
 * of its query rows made ready for the tile kernels. */
#ifndef AT_FUSED_INTERNAL_H
#define AT_FUSED_INTERNAL_H

#include "attention/fused.h"
#include "kernels/tile.h"

/* Where the rows of an operand lie: see at_start_of. */
typedef struct lines {
    const int64_t *first; /* [B], NULL: every sequence has `each` rows */
    int64_t each, row, column, size;
} lines;

typedef struct job {
    at_fused what;
    at_fused_out made;
    int64_t batch, heads, kv_heads, queries, keys, size, value_size; /* B H G Q K D Dv; packed: the largest Q and K */
    lines q, k, v, out;                                              /* of values and gradients alike */
    int64_t key_panels, size_panels, value_panels;                   /* K, D, Dv rounded up to whole panels */
    tile_rule rule;
    at_real unit;     /* scores are kept times log2 e where they end in an exponential: 2^x is cheaper than e^x */
    int64_t reach;    /* of the bias and of Shaw's tables */
    at_real *bias;    /* the shared table times unit, padded for vector reads, [H, bias_row]; NULL: none */
    int64_t bias_row; /* length of a padded table */
    at_real *key_panels_of, *value_panels_of; /* Shaw's tables as panels, one set or one per head */
    at_real *key_rows_of, *value_columns_of;  /* the same the other way round, for the way back */
    at_real *stat;                            /* [B,H,Q]: see tile_back */
    int32_t *choice;                          /* [B,H,Q]: hard */
    at_real *scores;                          /* NULL, or [B,H,Q,K] kept: few, and each an additive sum */
    int64_t parts;                            /* pieces that the blocks of one (batch, key head) are cut into */
    char *scratch;                            /* of all workers */
    size_t scratch_size;
    bool brief;      /* sequences so short that fetching the next ones counts; a task is then a whole batch row */
    bool masked;     /* some row does not see every key */
    bool keeps_stat; /* somebody will ask for the weights again */

    /* the way back */
    at_real *bias_parts;              /* [B,H,2R+1] sums for the shared table */
    at_real *key_parts, *value_parts; /* [B,H,2k+1,D] and [B,H,2k+1,Dv] sums for Shaw's tables */
    at_real *score_parts;             /* [B,H,A] sums for score_v */
    bool back_query, back_keys;       /* which gradients this pass gathers */
} job;

/* A block of query rows of one head: what the tile kernels read. Memory is the worker's scratch. */
typedef struct block {
    int64_t b, h, g, rows, keys; /* keys: all of this sequence's */
    int64_t index[TILE_ROWS];    /* which queries */
    int32_t lo[TILE_ROWS], hi[TILE_ROWS], place[TILE_ROWS];
    int64_t from, to; /* the keys that any row uses, from at a tile's start */
    at_real *q;
    int64_t q_row;    /* [rows, q_row], times scale and unit */
    tile_table table; /* the bias */
    int64_t entries;  /* of Shaw's tables that any row can reach: offsets beyond its last key have none */
    at_real centre[TILE_ROWS];
    tile_fetch *fetch; /* what the next block needs; NULL: nothing */
} block;

/* Scratch of a worker, cut in order. */
typedef struct cutter {
    char *at;
    size_t used;
} cutter;
at_real *at_cut(cutter *cutter, int64_t count);

/* Fills the block for `rows` queries from first_query on (or those of `index` if not NULL). */
void at_block_load(const job *j, block *blk, cutter *scratch, int64_t b, int64_t h, const int64_t *index,
                   int64_t first_query, int64_t rows);
/* The tile of this block that starts at key `from`, with `s` for its scores. */
tile at_block_tile(const block *blk, int64_t from, at_real *s, int64_t s_row);
/* Its scores, without the bias. kt: the key head's keys as panels; v: score_v times unit. */
void at_block_score(const job *j, const block *blk, const tile *t, const at_real *kt, const at_real *v);
/* The same numbers again, once the forward pass has been here. */
void at_block_score_again(const job *j, const block *blk, const tile *t, const at_real *kt, const at_real *v);

/* Dropout on the weights of the tile, or on their gradients. */
void at_block_drop(const job *j, const block *blk, const tile *t);

/* Row i of head h of sequence b starts so many numbers in; rows of a sequence are `row` apart. */
static inline int64_t at_start_of(const lines *x, int64_t b, int64_t h, int64_t i)
{
    return ((x->first ? x->first[b] : b * x->each) + i) * x->row + x->column + h * x->size;
}
static inline int64_t at_query_count(const job *j, int64_t b)
{
    return j->what.packed ? j->what.packed->query_count[b] : j->queries;
}
static inline int64_t at_key_count(const job *j, int64_t b)
{
    return j->what.packed ? j->what.packed->key_count[b] : j->keys;
}

/* Steps on to the pair whose rows are worth asking for now; false if there is none. */
bool at_next_pair(const job *j, int64_t *b, int64_t *g);
/* Adds [rows, size] numbers, rows `row` apart, to what is asked for between products. */
void at_fetch_add(tile_fetch *fetch, const at_real *at, int64_t row, int64_t rows, int64_t size);

/* A table of `count` numbers at `to` + one panel's width, of which the first `known` are there, filled up and padded
 * with its end values on both sides: see tile_table. */
void at_pad_table(at_real *to, int64_t known, int64_t count);
/* The panels of head h of one of Shaw's tables; `each`: numbers of one head's. */
const at_real *at_table_of(const at_tensor *table, const at_real *panels, int64_t h, int64_t each);

int64_t at_round_up(int64_t n, int64_t multiple);
int64_t at_row_of(const job *j, int64_t b, int64_t h, int64_t i); /* place in [B,H,Q] */

/* The online rules (softmax, sigmoid, relu) on one more tile of scores, and what is left to do at the end: the factor
 * on all that was weighted, and the row's statistic. */
void at_online_tile(const job *j, const tile *t, const tile_table *table, const tile_state *state);
at_real at_online_end(const job *j, at_real top, at_real sum, bool empty, at_real *stat);

/* Tasks are (batch, key head, part), or whole batch rows when they are brief: how many, and one task's share. */
int64_t at_pair_tasks(const job *j);
typedef void at_pair(const job *j, char *scratch, int64_t b, int64_t g, int64_t part);
void at_pairs_of_task(const job *j, int64_t index, int worker, at_pair *run);

size_t at_forward_scratch(const job *j);
void at_forward_task(void *context, int64_t index, int worker);
/* One query to a sequence: all heads of a batch row together, over keys and values as they lie. */
bool at_decode_can(const job *j);
size_t at_decode_scratch(const job *j);
void at_decode_task(void *context, int64_t index, int worker);
size_t at_backward_scratch(const job *j);
void at_backward_task(void *context, int64_t index, int worker);

/* The weights of a block's rows, tile by tile, once their statistics are known: `see` gets each tile in turn. */
typedef void at_see(void *context, const block *blk, const tile *t);
void at_block_weights(const job *j, const block *blk, const at_real *kt, const at_real *v, at_real *s, int64_t s_row,
                      at_see *see, void *context);
/* Chosen rows' weights and, where the forward pass could not keep them along the way, the summaries. */
void at_look(const job *j, cutter scratch, int64_t b, int64_t h, int64_t first, int64_t rows, const at_real *kt,
             const at_real *v, bool summaries);

#endif
