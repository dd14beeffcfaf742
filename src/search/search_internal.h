/* What the parts of the search share: sentences, and the memory that is reused from batch to batch. */
#ifndef AT_SEARCH_INTERNAL_H
#define AT_SEARCH_INTERNAL_H

#include "models/cache.h"
#include "search/search.h"
#include "text/picture_source.h"

/* The terms of a glossary that apply to a sentence. */
typedef struct at_forced_term {
    const int32_t *ids; /* [count] */
    int64_t count;
    bool joins; /* its first unit could be part of a word that began before it */
} at_forced_term;
typedef struct at_terms {
    const int64_t *found; /* [found_count] their indices in the glossary */
    int64_t found_count;
    at_forced_term *forced;      /* [forced_count] that the output must have, */
    int64_t forced_count, units; /* and all their units; 0: none */
    at_line *barred;             /* [barred_count] that it must not have: the names of their units after each other */
    int64_t barred_count;
} at_terms;

/* One line of a window, which owns its memory. */
typedef struct at_sentence {
    at_encoded source; /* empty with a language model */
    at_encoded target; /* the target of forced decoding; or the given start of a search's output */
    bool has_target;
    bool is_start;  /* the target is such a start */
    at_line before; /* the beginning of a language model's line that is not read; its output begins with it */
    int64_t number; /* of the line, from settings->first_line on */
    int64_t replaced;
    const int32_t **ends;  /* [result.count] of at_result_ends */
    const at_terms *terms; /* NULL: none apply */
    at_result result;
} at_sentence;

/* A model of the ensemble and what it stores between steps. */
typedef struct at_member {
    at_model *model;
    at_saved *encoded, *state; /* the encoded source and the decoder's state */
    at_cache *cache;           /* keys and values of both, for decoders that cache them */
} at_member;

typedef struct at_search_work at_search_work;
typedef bool at_search_batch(at_search_work *work, at_sentence *const *batch, int64_t rows);

struct at_search_work {
    const at_search_job *job;
    at_translator *translator; /* of the job */
    const at_search_settings *settings;
    at_error *error;
    bool has_source;
    at_picture_source *pictures; /* of the window, for a model that reads pictures; else NULL */
    at_arena *window;            /* memory until the window's results are delivered: sentences and results */
    at_arena *batch;             /* memory of one batch */
    at_arena *steps;             /* one step's tape */
    at_member *members;
    int member_count;
    const at_model *without_weights; /* the first member that returned no weights; NULL: all did */
    at_search_batch *run_batch;
    size_t window_bytes;    /* of text in a window */
    struct at_nodes *nodes; /* beam search: the tree of units whose paths are the hypotheses */
    at_buffer text;
};

/* ---- search_windows.c: from lines to batches and back */

/* Lines that are taken at once: so many batches, and bytes of text. A unit's features take far more memory than its text. */
enum { AT_WINDOW_BATCHES = 16, AT_TEXT_WINDOW = 1 << 20, AT_FEATURE_WINDOW = 1 << 16 };

/* Runs work->run_batch over the job's lines, window by window, and delivers the results in order. */
bool at_search_lines(at_search_work *work);
/* The units of encoded->line, in the arena; adds to *replaced the invalid sequences. `number`: of the line, from 0. */
bool at_search_encode(at_arena *arena, const at_vocabulary *vocabulary, int64_t number, at_encoded *encoded,
                      int64_t *replaced, at_error *error);
/* The same for a line that names a picture: its cells. */
bool at_search_encode_picture(at_arena *arena, at_picture_source *pictures, int64_t number, at_encoded *encoded,
                              at_error *error);
/* Memory of an arena for at least one item; NULL with the error set. */
void *at_search_alloc(at_search_work *work, at_arena *arena, int64_t count, size_t size);
bool at_search_no_memory(at_search_work *work); /* always false */
/* Whether the caller wants the call to end; then with the error set. */
bool at_search_stopped(const at_search_work *work);
/* Fails because of what the model computed for this sentence, such as "scores"; always false. */
bool at_search_not_finite(at_search_work *work, const at_sentence *sentence, const char *what);

/* ---- search_ensemble.c: the models, as if they were one */

/* The padded source of a batch, in the batch's arena: ids [rows, longest], -1 beyond. */
bool at_search_pad(at_search_work *work, at_sentence *const *batch, int64_t rows, at_source *source);
/* Encodes the batch and starts the decoders: every member then stores a row for each sentence. */
bool at_search_start(at_search_work *work, const at_source *source);
/* Feeds the next n units ids [rows,n] of every row. Returns the logits [rows,n,V], and weights if all members have
 * them: both are the means over the members, so that p ~ (p_1 p_2 ...)^(1/members). */
bool at_search_decode(at_search_work *work, at_tape *tape, const at_source *source, const int32_t *ids, int64_t n,
                      at_decoded *decoded);
/* The positions that all members have; INT64_MAX if there is no limit. */
int64_t at_search_positions(const at_search_work *work);
/* A tape for one step over reused memory; NULL with the error set. */
at_tape *at_search_tape(at_search_work *work);
/* Copies the tape's error, if any, to the work's. Returns whether there is none. */
bool at_search_ok(at_search_work *work, at_tape *tape);
/* The first of the largest weights; -1 if all are 0, or if it is that of a unit that frames the source. */
int32_t at_search_link(const at_search_work *work, const at_real *weights, int64_t count);

/* ---- search_wording.c: from ids to text */

/* Adds bytes of a line as valid UTF-8, without a NUL or a newline. */
void at_search_clean(at_buffer *text, const char *bytes, size_t size);
/* Whether the names of units are wanted. */
bool at_search_names(const at_search_work *work);
/* Text and names of a hypothesis whose ids and links are known. */
bool at_search_word(at_search_work *work, const at_sentence *sentence, at_hypothesis *hypothesis);
/* Where the units of a hypothesis, which has its text, end in it; NULL with the error set. */
const int32_t *at_search_ends(at_search_work *work, const at_sentence *sentence, const at_hypothesis *hypothesis);
/* The names of a sentence's source units. */
bool at_search_name_source(at_search_work *work, at_sentence *sentence);

/* ---- search_rows.c: from logits to candidates */

typedef struct at_candidate {
    double log_prob;
    int32_t id;
} at_candidate;

/* What else may not follow a hypothesis; see search_bars.c. */
typedef struct at_bars at_bars;
bool at_bars_allow(const at_bars *bars, int32_t id);

/* What is wanted of one row of logits. */
typedef struct at_row_task {
    int64_t most;        /* candidates wanted; 0: the row is skipped */
    int32_t only;        /* the one unit allowed, because it is given or the line must end; -1: any */
    bool no_end;         /* the end is not allowed yet */
    bool shares_end;     /* and its probability is shared among the others */
    bool samples;        /* sample one instead, */
    double uniform;      /* by this uniform number in (0,1) */
    const at_bars *bars; /* NULL: there are none */
    at_candidate *also;  /* [also_count] ids whose log-probabilities are wanted, whatever is barred */
    int64_t also_count;
    bool failed;              /* filled in: the logits are not finite, so there is no candidate; */
    int64_t count;            /* candidates found, */
    at_candidate *candidates; /* the likeliest first; of equals the lowest id */
} at_row_task;

/* log-softmax of each row of logits [rows, V], then its likeliest ids; each row by one thread, in one order. */
bool at_search_rows(at_search_work *work, const at_real *logits, int64_t rows, int64_t vocabulary, at_row_task *tasks);
/* The log-softmax of a row of logits: log p_v = (row_v - max) - log_sum. The order matters: after max + log_sum, large
 * logits would leave nothing of log_sum, and every p would be 1. log_sum is NaN unless the whole row is finite. */
typedef struct at_log_softmax {
    double max, log_sum;
} at_log_softmax;
at_log_softmax at_log_softmax_of(const at_real *row, int64_t count);

static inline double at_log_prob(at_log_softmax l, double logit)
{
    return (logit - l.max) - l.log_sum;
}

/* ---- search_terms.c: the terms of a glossary */

enum { AT_TERM_UNITS_BYTES = 4000 }; /* of the names of a forbidden term's units; a longer one is not looked for */
/* Finds the terms that apply to a sentence, whose source is read. */
bool at_terms_read(at_search_work *work, at_sentence *sentence);
/* Tells the caller of the terms that the sentence's best hypothesis lacks, or has and should not. */
void at_terms_tell(const at_search_work *work, const at_sentence *sentence);
/* The name of a unit, words with a U+2581 before them, up to `room` bytes; returns how many it has. */
size_t at_terms_name(const at_vocabulary *vocabulary, int32_t id, char *out, size_t room);

/* ---- search_beam.c, forced.c, encode.c: what is done with a batch */
at_search_batch at_search_beam, at_forced_batch, at_encode_batch;
void at_nodes_free(struct at_nodes *nodes);

#endif
