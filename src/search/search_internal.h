/* What the parts of the search share: lines on their way, and the memory that is used again from batch to batch. */
#ifndef AT_SEARCH_INTERNAL_H
#define AT_SEARCH_INTERNAL_H

#include "models/cache.h"
#include "search/search.h"

/* One line on its way. Its memory is the window's. */
typedef struct at_sentence {
    const char *line; /* the source; NULL with a language model */
    size_t size;
    const char *target_line; /* for forced decoding the target; for a search what it begins with, NULL: nothing */
    size_t target_size;
    int32_t *ids, *pieces; /* units of the source and their places in it */
    int64_t count;
    int32_t *target_ids, *target_pieces;
    int64_t target_count;
    bool begun;     /* the target is a beginning */
    int64_t number; /* of the line, from settings->first_line on */
    int64_t replaced;
    at_found found;
} at_sentence;

/* One of the models that speak together, and what it keeps between steps. */
typedef struct at_voice {
    at_model *model;
    at_kept *memory, *state; /* the encoded source and the decoder's state */
    at_cache *cache;         /* what a decoder keeps of both, if it is of that kind */
} at_voice;

typedef struct at_search_work at_search_work;
typedef bool at_search_batch(at_search_work *work, at_sentence *const *batch, int64_t rows);

struct at_search_work {
    at_translator *translator;
    const at_search_settings *settings;
    at_error *error;
    at_arena *window; /* what lives until the window's lines are given: sentences and results */
    at_arena *batch;  /* what lives as long as a batch */
    at_arena *steps;  /* one step's tape */
    at_voice *voices; /* the translator's models */
    int voice_count;
    const at_model *blind; /* the first of them that gave no weights; NULL: none */
    at_search_batch *run;
    size_t window_bytes;    /* of text in a window; 0: as many as translating takes */
    struct at_nodes *nodes; /* search: the tree of units that hypotheses are paths of */
    at_buffer text;
};

/* ---- search_lines.c: from lines to batches and back */

/* Runs work->run over the lines, window by window, and gives the results in order. `sources`, `targets` NULL: none. */
bool at_search_lines(at_search_work *work, const char *const *sources, const size_t *source_sizes,
                     const char *const *targets, const size_t *target_sizes, int64_t count, at_give *give,
                     void *context);
/* The padded source of a batch, in the batch's arena: ids [rows, longest], -1 beyond. */
bool at_search_pad(at_search_work *work, at_sentence *const *batch, int64_t rows, at_source *source);
/* Encodes the batch and starts the decoders: every voice then keeps a row for each sentence. */
bool at_search_begin(at_search_work *work, const at_source *source);
/* Reads the next n units ids [rows,n] of every row. Gives the logits [rows,n,V], and weights if all voices have them:
 * both are the means over the voices, so that p ~ (p_1 p_2 ...)^(1/voices). False with a sentence. */
bool at_search_decode(at_search_work *work, at_tape *tape, const at_source *source, const int32_t *ids, int64_t n,
                      at_decoded *decoded);
/* The units that all voices have places for; INT64_MAX if there is no end. */
int64_t at_search_places(const at_search_work *work);
/* A tape for one step over memory that is used again; NULL with the error set if there is none. */
at_tape *at_search_tape(at_search_work *work);
/* The tape's error, if any, becomes the work's. Gives whether all is well. */
bool at_search_ok(at_search_work *work, at_tape *tape);
/* The first of the largest weights, -1 if all are 0. */
int32_t at_search_link(const at_real *weights, int64_t count);
/* Text and names of a hypothesis whose ids and links are known. */
bool at_search_word(at_search_work *work, const at_sentence *sentence, at_hypothesis *hypothesis);
/* Memory of the window; NULL with the error set. */
void *at_search_take(at_search_work *work, at_arena *arena, int64_t count, size_t size);
bool at_search_memory(at_search_work *work); /* "out of memory": always false */

/* ---- search_rows.c: from logits to candidates */

typedef struct at_candidate {
    double log_prob;
    int32_t id;
} at_candidate;

/* What one row of logits is asked for. */
typedef struct at_row_task {
    int64_t most;             /* candidates wanted; 0: the row is not looked at */
    int32_t only;             /* the one unit that may come, because the line was given it or must end; -1: any */
    bool goes_on;             /* the end may not come yet */
    bool draws;               /* draw one instead, at */
    double at;                /* a uniform number in (0,1) */
    int64_t count;            /* filled in: candidates found, */
    at_candidate *candidates; /* the likeliest first, and of equals the one with the lowest id */
} at_row_task;

/* log-softmax of each row of logits [rows, V], then its likeliest ids; each row by one thread, in one order. */
bool at_search_rows(at_search_work *work, const at_real *logits, int64_t rows, int64_t vocabulary, at_row_task *tasks);
/* log sum_v e^(row_v), row [V]. If not all of it is finite, *row becomes `scratch` [V], where it is made so. */
double at_log_sum_exp(const at_real **row, int64_t count, at_real *scratch);

/* ---- search_beam.c, forced.c */
at_search_batch at_search_beam, at_forced_batch;
/* encode.c: the features of each sentence */
at_search_batch at_encode_batch;
void at_nodes_free(struct at_nodes *nodes);

#endif
