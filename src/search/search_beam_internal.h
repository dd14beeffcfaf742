/* The hypotheses of a batch: what beam search, and what limits it (search_bars.c, search_terms.c), share. */
#ifndef AT_SEARCH_BEAM_INTERNAL_H
#define AT_SEARCH_BEAM_INTERNAL_H

#include "search/search_internal.h"

/* A hypothesis is a path in a tree: each node is a unit, with its parent and the source unit of its largest weight. */
typedef struct at_step_node {
    int32_t parent, id, link;
} at_step_node;

struct at_nodes {
    at_step_node *node;
    float *weights; /* [room, width], if wanted */
    int64_t count, width;
    size_t room, weights_room;
    bool linked; /* the model has attention */
    /* of search_bars.c: the units of one hypothesis, and what no hypothesis may repeat */
    int32_t *path, *repeats;
    size_t path_room, repeats_room;
    int64_t repeat_count;
};

/* A hypothesis that still grows. */
typedef struct at_live {
    double score;
    double branch;    /* log p of the unit where it branched off */
    int32_t node, id; /* -1 at first; the unit to feed in next */
    int64_t from;     /* its row in the step before */
    int64_t sample;   /* which of the n_best samples this is */
    uint64_t met;     /* the terms of the sentence that it has, a bit each */
    bool completed;   /* one of them by its last unit */
} at_live;

typedef struct at_ended {
    double score, penalised;
    int32_t node;
    int64_t count;
    int64_t unmet; /* units of terms that it lacks */
} at_ended;

typedef struct at_beam {
    at_sentence *sentence;
    int64_t first, slots; /* its rows */
    int64_t width;        /* hypotheses it may have */
    int64_t live_count, next_count, ended_count;
    int64_t shortest;     /* units it has at least, if it may have so many */
    int64_t longest;      /* units it may have */
    at_live *live, *next; /* [width] */
    at_ended *ended;      /* [2 width], the best first */
} at_beam;

/* A batch of beams. All memory is allocated at its start, so that steps allocate none. */
typedef struct at_beam_batch {
    at_search_work *work;
    int64_t width; /* the most hypotheses of a sentence */
    int64_t most;  /* candidates of a row: never more than there are units */
    at_beam *beams;
    int64_t beam_count, rows, step;
    at_source source;
    int32_t *source_ids, *ids; /* ids: what to feed in, [rows] */
    int64_t *source_lengths, *pick, *owner;
    at_row_task *tasks;
    at_candidate *candidates;
    int64_t *heads;
    double *sums;           /* [source units] NULL without a coverage penalty */
    size_t tail_room;       /* of the names that a row's bars need */
    struct at_bars *bars;   /* [rows] NULL: nothing is barred; see search_bars.c */
    struct at_banks *banks; /* NULL: no sentence has terms; see search_terms.c */
} at_beam_batch;

/* ---- search_beam.c */

/* Extends the hypothesis i of a beam by a unit with this log-probability: it lives on, or has ended. `weights` are those
 * of the batch. */
void at_beam_extend(at_beam_batch *batch, at_beam *b, int64_t i, at_candidate taken, const at_real *weights);

/* ---- search_bars.c: what may not follow a hypothesis, beside what no output may have */

/* Reserves the memory of the rows' bars, if there can be any. */
bool at_bars_start(at_beam_batch *batch);
/* Sets the bars of every row's task. */
bool at_bars_set(at_beam_batch *batch);

/* ---- search_terms.c: constrained beam search, for sentences with terms that the output must have */

/* How many hypotheses a sentence has: `beam`, or so many that each bank can have one. */
int64_t at_terms_width(const at_terms *terms, int64_t beam);
/* Reserves the memory of the banks, if a sentence has such terms. */
bool at_banks_start(at_beam_batch *batch);
/* Adds to the task of hypothesis i the next units of its terms; the only ones if no more units fit. */
void at_banks_set(at_beam_batch *batch, const at_beam *b, int64_t i, at_row_task *task);
/* Extends the hypotheses of a sentence with terms. */
void at_banks_extend(at_beam_batch *batch, at_beam *b, const at_real *weights);
/* The terms that a hypothesis has after one more unit, and the units of those that it lacks. */
uint64_t at_terms_met(const at_beam_batch *batch, const at_beam *b, const at_live *live, int32_t id);
int64_t at_terms_unmet(const at_terms *terms, uint64_t met);

#endif
