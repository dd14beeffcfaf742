/* attend.h: attention in C.
 *
 * The one public header, in the order data flows: version, errors, threads, arrays and their files, the attention
 * operator, its catalogue, training, trained models, pictures. Reading it from top to bottom is reading the manual.
 *
 * Three habits hold throughout:
 *   - Nothing here prints, exits or aborts on bad input. A function that can fail takes an `at_error *` (never NULL)
 *     and gives false or NULL; the error then holds one whole sentence. Errors are sticky: once set, the first
 *     sentence stays, and further calls with the same error do nothing and fail.
 *   - `_new` and `_read` give you an object that you release with the `_free` of the same name; `_free(NULL)` is fine.
 *   - Rows are vectors and the last dimension is contiguous. B batch, H heads, G key/value heads, Q queries, K keys,
 *     D size of a head, Dv size of a head's values.
 */
#ifndef ATTEND_H
#define ATTEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define AT_API __attribute__((visibility("default")))
#else
#define AT_API
#endif

/* ---- Version -------------------------------------------------------------------------------------------------- */

#define AT_VERSION        "0.1.0"
#define AT_VERSION_NUMBER 100 /* 10000 MAJOR + 100 MINOR + PATCH, for #if */

/* The version of the library that is linked, e.g. "0.1.0". */
AT_API const char *at_version(void);

/* ---- Errors --------------------------------------------------------------------------------------------------- */

/* What kind of failure it was, for programs; the message is for people. */
typedef enum at_code {
    AT_OK = 0,
    AT_FAILED = 1,      /* none of the kinds below: the data or the computation does not allow it */
    AT_USAGE = 2,       /* a setting, a name or an argument is wrong, or two of them do not fit together */
    AT_MEMORY = 3,      /* out of memory */
    AT_FILE = 4,        /* the system refused to open, read, write or lock a file */
    AT_FORMAT = 5,      /* a file is not what its name or its reader promises: truncated, damaged, another kind */
    AT_SHAPE = 6,       /* sizes do not fit together */
    AT_UNSUPPORTED = 7, /* understood, but this model, file or build cannot do it */
    AT_INTERRUPTED = 8  /* a callback of the caller's asked to stop */
} at_code;

/* Start from `at_error error = {0};`. */
typedef struct at_error {
    int code;       /* an at_code; AT_OK until something failed */
    char text[500]; /* one message without a newline: what was wrong and what would be right. Names of settings stand in
                       backquotes, as in `heads`, so that a program can show them as its users know them */
} at_error;

/* ---- Threads -------------------------------------------------------------------------------------------------- */

/* How many threads the library may use from now on, 64 at most; 0 means the cores there are. Results have the same bits
 * for any number: threads share out output rows, they never share a sum. */
AT_API void at_threads_set(int threads);
AT_API int at_threads(void);

/* ---- Arrays and their files ----------------------------------------------------------------------------------- */

enum { AT_MAX_RANK = 8 };

typedef enum at_dtype { AT_F32, AT_F64, AT_F16, AT_BF16, AT_I32, AT_I64, AT_U8 } at_dtype;

/* A dense array, last dimension contiguous. Rank 0 is a scalar (one element); a dimension may be 0. */
typedef struct at_array {
    at_dtype dtype;
    int rank;
    int64_t dim[AT_MAX_RANK];
    void *data; /* at_array_count() elements of dtype, aligned to 64 bytes */
} at_array;

/* A new array of zeros. */
AT_API at_array *at_array_new(at_dtype dtype, int rank, const int64_t *dim, at_error *error);
AT_API void at_array_free(at_array *array);
AT_API int64_t at_array_count(const at_array *array);
/* The same values as float32 in a new array. */
AT_API at_array *at_array_to_f32(const at_array *array, at_error *error);

/* NumPy .npy files: versions 1 to 3, little-endian, C order. Reading refuses what it does not know by name; writing is
 * atomic: the file appears whole or not at all. */
AT_API at_array *at_npy_read(const char *path, at_error *error);
AT_API bool at_npy_write(const char *path, const at_array *array, at_error *error);

/* A safetensors file: named arrays and string metadata. */
typedef struct at_tensors at_tensors;
AT_API at_tensors *at_tensors_new(void);
AT_API at_tensors *at_tensors_read(const char *path, at_error *error);
AT_API bool at_tensors_write(const at_tensors *tensors, const char *path, at_error *error);
AT_API void at_tensors_free(at_tensors *tensors);
AT_API int at_tensors_count(const at_tensors *tensors);
AT_API const char *at_tensors_name(const at_tensors *tensors, int index); /* in file order; NULL past the end */
/* The array of that name, owned by `tensors`; NULL if there is none. */
AT_API const at_array *at_tensors_get(const at_tensors *tensors, const char *name);
/* Stores a copy of the array under the name, replacing one that is there. */
AT_API bool at_tensors_put(at_tensors *tensors, const char *name, const at_array *array, at_error *error);
AT_API const char *at_tensors_meta(const at_tensors *tensors, const char *key); /* NULL if there is none */
AT_API bool at_tensors_set_meta(at_tensors *tensors, const char *key, const char *value, at_error *error);

/* ---- The attention operator ----------------------------------------------------------------------------------- */

/* out_i = sum_j w_ij v_j,  w_i = normalise_j(score(q_i, k_j) + position) over the keys of the window.
 *
 * Five free choices, each a name from at_catalogue() with its number after a colon where it takes one. A NULL or 0
 * field takes the default written beside it. */
typedef struct at_settings {
    const char *score;      /* "scaled"   dot | scaled | general | additive[:tanh|sigmoid|relu] */
    const char *normaliser; /* "softmax"  softmax | sparsemax | entmax15 | sigmoid | relu | hard */
    const char *window;     /* "global"   global | causal | sliding:W | local-m:D | local-p:D */
    const char *position;   /* "none"     none | shaw:K[:keys|:values] | rope | alibi | t5[:BUCKETS] */
    int heads;              /* 1          H */
    int kv_heads;           /* heads      G, divides H; head h reads key/value head h / (H/G) */
    bool plain;             /* false      true: the step-by-step reference path, which keeps [B,H,Q,K] arrays */
} at_settings;

/* A parameter of a setting, by its name: general W [D,D]; additive W [A,D], U [A,D], v [A], b [A] (optional);
 * local-p Wp [A,D], vp [A]; shaw wK [2k+1,D], wV [2k+1,Dv], either may be left out; t5 bias [BUCKETS,H].
 * All but bias may have a leading H dimension: one set per head. Projections around the operator, each optional:
 * WQ [H*D, query width], WK [G*D, key width], WV [G*Dv, value width], WO [output width, H*Dv]. */
typedef struct at_parameter {
    const char *name;
    int rank;
    int64_t dim[AT_MAX_RANK];
    const float *value;
    float *grad; /* filled when grad_out is given; NULL: not wanted */
} at_parameter;

/* One call of the operator on the caller's arrays. Zero the struct, then fill in what you have. */
typedef struct at_call {
    int64_t batch, queries, keys;                /* B, Q, K */
    int64_t query_width, key_width, value_width; /* last dimensions: H*D, G*D, G*Dv (before projections, if any) */
    const float *query;                          /* [B, Q, query_width] */
    const float *key;                            /* [B, K, key_width] */
    const float *value;                          /* [B, K, value_width] */
    const int64_t *lengths;                      /* [B] valid keys of each batch row, or NULL: all */
    int64_t query_start;                         /* position of the first query, for step-wise decoding */
    bool sample;                                 /* hard: draw from the softmax instead of its argmax */
    uint64_t seed;
    at_parameter *parameters;
    int parameter_count;

    float *out; /* [B, Q, H*Dv], or [B, Q, output width] with WO; NULL: not wanted */

    /* The weights of chosen query rows, [B, H, row_count, K]: exactly what an n x n matrix would hold there, without
     * that matrix. rows NULL with weights given: all Q rows. */
    float *weights;
    const int64_t *rows;
    int64_t row_count;

    /* Running summaries over all rows; each NULL if not wanted. */
    int32_t *argmax; /* [B, H, Q] key of the largest weight, -1 for an empty row */
    float *entropy;  /* [B, H, Q] -sum w log w in nats */
    float *key_sums; /* [B, H, K] sum of each key's weights over the queries */
    float *log_prob; /* [B, H, Q] hard: log-probability of the chosen key */

    /* Backward, when grad_out is given; each gradient NULL if not wanted. */
    const float *grad_out;      /* like out */
    const float *grad_log_prob; /* like log_prob, hard only: the score-function (REINFORCE) signal */
    float *grad_query, *grad_key, *grad_value;

    /* Memory for the call's own needs. NULL: taken from the system and given back. What memory_used says afterwards,
     * aligned to 64 bytes, is enough for the same call on as many threads. */
    void *memory;
    size_t memory_size;
    size_t memory_used; /* filled in: the most the call held at any time */
} at_call;

/* Runs the operator. False with a sentence in `error` if the settings or shapes do not fit (nothing is written then).
 */
AT_API bool at_attend(const at_settings *settings, at_call *call, at_error *error);

/* ---- The catalogue -------------------------------------------------------------------------------------------- */

/* What there is to choose from: one line for each score, normaliser, window and position. */
typedef struct at_entry {
    const char *axis;       /* "score", "normaliser", "window", "position" */
    const char *name;       /* "sliding" */
    const char *argument;   /* "W", "" if it takes none, "[BUCKETS]" if optional */
    const char *formula;    /* one line of UTF-8 */
    const char *parameters; /* "v [A], W [A,D], U [A,D], b [A]?" or "" */
    const char *paper;      /* "Bahdanau, Cho, Bengio 2014" or "" */
} at_entry;

/* The entries in a fixed order; NULL past the last. */
AT_API const at_entry *at_catalogue(int index);
/* The models that can be trained, in the same form (axis "model"); false past the last. */
AT_API bool at_model_entry(int index, at_entry *entry);

/* ---- Training ------------------------------------------------------------------------------------------------- */

/* One run of training, from files of text to a model file. Made with defaults, told by names and values what to do, run
 * once or several times. */
typedef struct at_training at_training;
AT_API at_training *at_training_new(at_error *error);
AT_API void at_training_free(at_training *training);

/* What can be set: the options of attend train without their dashes. */
typedef struct at_training_option {
    const char *group;    /* "The data", "The model" ...: options of a group follow each other */
    const char *name;     /* "learning-rate" */
    const char *argument; /* "RATE"; NULL for a switch, whose value is true or false */
    const char *standard; /* the default, as one would type it; NULL: none */
    const char *help;
} at_training_option;
/* In a fixed order; NULL past the last. */
AT_API const at_training_option *at_training_option_at(int index);
/* Sets one by name. False with a sentence if there is no such name or the value does not fit it. */
AT_API bool at_training_set(at_training *training, const char *name, const char *value, at_error *error);

/* What the trainer says while it runs. */
typedef enum at_news {
    AT_NEWS_TICK,    /* after every update: for a progress bar */
    AT_NEWS_UPDATE,  /* a report: every --report-every updates and at the end of an epoch */
    AT_NEWS_VALID,   /* a validation */
    AT_NEWS_SAVED,   /* the state was saved, as `text` */
    AT_NEWS_SKIPPED, /* an update was skipped, as its gradient was not finite */
    AT_NEWS_NOTE     /* something to know, as the sentence in `text` */
} at_news;
typedef struct at_train_news {
    at_news what;
    int64_t epoch, update, sentences; /* sentences: of this epoch */
    double cost;                      /* per target token, since the last report */
    double seconds, words_per_second; /* since the last report; of a validation, what it took */
    double norm, rate;                /* of the gradient, before clipping; the learning rate */
    double done, left;                /* the share of the way to the nearest limit, and the seconds left; or NAN */
    const char *metric;               /* of the validation */
    double score, best;
    bool better;
    const char *text;
} at_train_news;
typedef void at_train_listener(void *context, const at_train_news *news);

/* How it ended. */
typedef struct at_train_result {
    int64_t updates, epochs; /* in all, the runs before a --resume included; whole epochs */
    int64_t parameters;
    double seconds, words_per_second; /* of this run */
    double cost;                      /* of the last report */
    double best_score;                /* NAN: never validated */
    int64_t best_update;              /* 0: never validated */
    bool interrupted;                 /* by `stop` */
    bool stopped_early;               /* by --early-stopping */
} at_train_result;

/* Trains until a limit is reached, then saves. `stop` (may be NULL) is looked at between updates: once it is not 0, the
 * run saves and ends, and a run with `resume` goes on from there to the same bits. `listener` may be NULL. */
AT_API bool at_training_run(at_training *training, at_train_listener *listener, void *context, const volatile int *stop,
                            at_train_result *result, at_error *error);

/* ---- Trained models ------------------------------------------------------------------------------------------- */

/* A sequence-to-sequence model with its vocabularies, or a language model with its one, from the one file that training
 * left. It is not changed by using it, but it holds memory for one computation at a time: use one per thread of yours.
 */
typedef struct at_translator at_translator;
AT_API at_translator *at_translator_load(const char *path, at_error *error);
AT_API void at_translator_free(at_translator *translator);

/* Another model that speaks along: a translator of several gives a unit the probability p ~ (p_1 p_2 ... p_n)^(1/n), and
 * weights that are the mean of theirs. Models may differ in all but their vocabularies. Features, heads and what is said
 * of a model are those of the first. */
AT_API bool at_translator_add(at_translator *translator, const char *path, at_error *error);
/* False for a language model, which has no source: it goes on from what it is given. */
AT_API bool at_translator_has_source(const at_translator *translator);
/* How many layers, and heads in each, look at the source; false if none does. */
AT_API bool at_translator_heads(const at_translator *translator, int *layers, int *heads);
/* The head that training guided by alignments, both from 1; false if there was no such guidance. */
AT_API bool at_translator_guided(const at_translator *translator, int *layer, int *head);
/* Its settings, sizes and history as lines of text, to release with at_text_free. */
AT_API char *at_translator_info(const at_translator *translator, at_error *error);

/* The mean of the parameters of models from one run of training, or from several of one kind, as a model file `output`
 * without a history. They must have equal settings and vocabularies: the sentence names the first that differs. */
AT_API bool at_models_average(const char *const *paths, int count, const char *output, at_error *error);

/* How to search. Zero the struct, then fill in what you want: 0 means the default written first. */
typedef struct at_search_settings {
    int64_t beam;             /* 1: greedy. Hypotheses kept side by side */
    double length_penalty;    /* 0: none. A: the best has the largest score / ((5 + n) / 6)^A, n units and the end */
    int64_t n_best;           /* 1. How many to give for each line, at most `beam` unless sampling */
    double temperature;       /* 0: search. T > 0: draw from softmax(logits / T) instead, n_best times */
    uint64_t seed;            /* of drawing: each line's draws depend on it and on the line's number alone */
    int64_t first_line;       /* 0. The number of the first line, for those who hand lines over in several calls */
    int64_t batch;            /* 64. Sentences at a time; the results are the same for any number */
    double max_length_factor; /* 2. The longest output has this many times the source's units, and 10 more; */
    int64_t max_length;       /* 0, or this many units; of a language model 0 means 100 more than the line has */
    double min_length_factor; /* 0. Before this many times the source's units, rounded up, an output does not end */
    bool replace_unknown;     /* an unknown word becomes the source word with the largest weight, not "<unk>" */
    bool wants_weights;       /* fill in the weights and names below */
    bool wants_links;         /* fill in the links: a transformer does so only if asked */
    int layer, head;          /* 0: the mean of all. Whose weights, both from 1; recurrent models have one layer */
    bool prefix;              /* a line is its source, a tab and how its target begins; see at_translate */
} at_search_settings;

/* One translation. */
typedef struct at_hypothesis {
    const char *text; /* UTF-8 without a newline, and with a NUL at its end */
    size_t size;
    const int32_t *ids;
    int64_t count;            /* target units, without the end */
    double score;             /* log-probability, the end included */
    double penalised;         /* what the beam ranked by */
    const int32_t *links;     /* [count + 1] source unit of the largest weight, -1: none; NULL without attention */
    const float *weights;     /* [count + 1, source_units], the last row the end's; NULL unless wanted */
    const char *const *names; /* [count + 1] the target's units; NULL unless weights are wanted */
    int64_t source_units;
} at_hypothesis;

/* What a line gave: 1 to n_best hypotheses, the best first. Valid during the call of at_give alone. */
typedef struct at_found {
    int64_t count;
    const at_hypothesis *best;
    const char *const *source_names; /* [source_units]; NULL unless weights are wanted */
    int64_t source_units;
    /* [source_units, 2] where each unit begins and ends in the line as it was given, in bytes. A piece's place is
     * without the blank before it. Where normalising changed the line, the place is that of the characters the unit
     * came from. */
    const int32_t *source_places;
    const int32_t *target_places; /* [count of best[0], 2] the same for the target that at_align was given */
    int64_t replaced;             /* byte sequences that were not UTF-8 and were read as U+FFFD */
    bool is_long;                 /* the line has more units than the model was trained for; it is not cut */
    const float *features;        /* [source_units, feature_size] of at_encode; NULL for a line without a unit */
    int64_t feature_size;
} at_found;

/* Gets each line's result, in the order of the lines; false stops the search. */
typedef bool at_give(void *context, int64_t line, const at_found *found);

/* Translates lines (no newline in them, any bytes else), `sizes` bytes each: one result for every line, in order, with
 * the same bits for any batch size and number of threads. An empty line gives one empty hypothesis. With `prefix` every
 * hypothesis starts with the units of what stands behind the first tab of its line, whose log-probabilities are in the
 * score; the search goes on from there. A line without a tab has an empty beginning; behind a source without a unit the
 * beginning is all there is. With a language model every line is such a beginning, an empty one like any other: the
 * hypotheses hold the line's units, then what follows by search or by drawing. */
AT_API bool at_translate(at_translator *translator, const at_search_settings *settings, const char *const *lines,
                         const size_t *sizes, int64_t count, at_give *give, void *context, at_error *error);

/* The same for translations that are there already (forced decoding): log-probability, links, weights and names of the
 * given targets. Of the settings only first_line, batch, wants_weights, layer and head count. A language model has no
 * sources (NULL both), no links and no weights. */
AT_API bool at_align(at_translator *translator, const at_search_settings *settings, const char *const *sources,
                     const size_t *source_sizes, const char *const *targets, const size_t *target_sizes, int64_t count,
                     at_give *give, void *context, at_error *error);

/* The encoder alone: each line's features, one row for each of its units, in at_found; there is one hypothesis, and
 * nothing in it. A transformer gives the last layer's rows, a recurrent model with attention the states that it attends
 * to; the others keep one vector of a whole source and are refused. Of the settings only first_line and batch count,
 * and neither batch nor threads change a bit. What was given is not kept: memory does not grow with the lines. */
AT_API bool at_encode(at_translator *translator, const at_search_settings *settings, const char *const *lines,
                      const size_t *sizes, int64_t count, at_give *give, void *context, at_error *error);

/* Which word each unit is part of: words[u] counts from 0 the words of the line, which are what stands between white
 * space; -1 for a unit of white space alone. `places` are those of at_found. A unit that reaches over several words
 * counts for the first. Gives how many words the line has. */
AT_API int64_t at_word_numbers(const char *line, size_t size, const int32_t *places, int64_t units, int64_t *words);

/* ---- Lines of text and their scores --------------------------------------------------------------------------- */

/* A line without its newline; any bytes, and no NUL is needed behind them. */
typedef struct at_line {
    const char *text;
    size_t size;
} at_line;

/* The lines of a file, or of the standard input for "-". A line ends with a newline, a carriage return and a newline,
 * or the file; a byte-order mark before the first is left out. A file packed by gzip is refused. */
typedef struct at_line_list {
    at_line *line; /* [count] */
    int64_t count;
    char *bytes; /* what the lines point into */
} at_line_list;
AT_API at_line_list *at_line_list_read(const char *path, at_error *error);
AT_API void at_line_list_free(at_line_list *list);

/* Which scores of a metric are better. */
typedef enum at_direction { AT_SMALLER_IS_BETTER = -1, AT_LARGER_IS_BETTER = 1 } at_direction;

/* A metric: it scores lines against their references, in percent over the whole text. doc/metrics.md has every rule. */
typedef struct at_metric_info {
    const char *name;    /* "bleu" */
    const char *title;   /* "BLEU", as it is published */
    const char *meaning; /* "precision of n-grams of 1 to 4 words, brevity penalty" */
    at_direction better;
    bool tokenises;      /* the setting `tokenise` matters */
    bool alignments;     /* lines are alignments: links such as 0-0 1-2 (source-target, from 0), not text */
    int most_references; /* how many references it takes; 0: any number */
} at_metric_info;
/* The metrics in the order of their names; NULL past the last. The one of a name; NULL if there is none. */
AT_API const at_metric_info *at_metric(int index);
AT_API const at_metric_info *at_metric_named(const char *name);
/* The names of the tokenisers; NULL past the last. */
AT_API const char *at_tokeniser_name(int index);

/* How to score. Zero the struct, then fill in what you want. */
typedef struct at_score_settings {
    const char *tokenise; /* "13a"  13a | none | char | zh: how bleu finds words */
    bool lowercase;       /* false  true: lower-case both sides first (ter always does) */
    bool sentences;       /* false  true: for at_scores_line; the signature says so, and lines may all be empty */
    int64_t resamples;    /* 1000   samples of at_scores_spread and at_scores_compare; in the signature if not 0 */
    uint64_t seed;        /* of the samples */
} at_score_settings;

/* The scores of one system's lines by one metric. Any of these calls may run at the same time in several threads, also
 * on the same scores: nothing is changed by reading them. Only at_scores_free must be the last. */
typedef struct at_scores at_scores;
/* Scores `count` lines, each against its line in one or several references, arrays of as many lines. `settings` may be
 * NULL. Fails if there is no such metric or tokeniser, if a line is not an alignment (aer), or if the references have
 * nothing to count. The lines are not needed any more afterwards. */
AT_API at_scores *at_scores_new(const char *metric, const at_score_settings *settings, const at_line *hypotheses,
                                int64_t count, const at_line *const *references, int reference_count, at_error *error);
AT_API void at_scores_free(at_scores *scores);
AT_API int64_t at_scores_count(const at_scores *scores); /* of lines */
AT_API const at_metric_info *at_scores_metric(const at_scores *scores);
/* The score of the whole text, which is not the mean over the lines; and of one line, counted from 0 (bleu with the
 * orders that the line has n-grams of). */
AT_API double at_scores_total(const at_scores *scores);
AT_API double at_scores_line(const at_scores *scores, int64_t line);
/* The score of some of the lines, counted from 0, as a text of their own; NAN if their references have nothing to count.
 */
AT_API double at_scores_part(const at_scores *scores, const int64_t *lines, int64_t count);
/* How the score was computed, to publish with it: "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:attend-0.1.0";
 * "" if the metric has no signature. And the parts of the score: for bleu "54.4/26.6/14.9/8.7 (BP = 1.000 ratio = 1.026
 * hyp_len = 62880 ref_len = 61287)", the precisions first; "" for the others. */
AT_API const char *at_scores_signature(const at_scores *scores);
AT_API const char *at_scores_details(const at_scores *scores);

/* Bootstrap resampling: the scores of texts of as many lines, sampled with replacement from the lines there are. */
typedef struct at_spread {
    double mean, low, high; /* over the samples; 95% of them lie between low and high */
    int64_t resamples;
} at_spread;
AT_API bool at_scores_spread(const at_scores *scores, at_spread *spread, at_error *error);

/* Two systems with the same references: paired bootstrap resampling. */
typedef struct at_comparison {
    double difference; /* the score of the first minus that of the other */
    at_spread spread;  /* of that difference */
    double p;          /* about the probability of so large a difference by chance */
} at_comparison;
AT_API bool at_scores_compare(const at_scores *scores, const at_scores *other, at_comparison *comparison,
                              at_error *error);

/* All of that in one call: the score of the whole text by one metric and one reference, with the default settings. */
AT_API bool at_score_lines(const char *metric, const at_line *hypotheses, const at_line *references, int64_t count,
                           double *score, at_error *error);

/* ---- Pictures ------------------------------------------------------------------------------------------------- */

/* A heat map of weights in the terminal as UTF-8 text: columns across, rows down, values legible. Gives a string to
 * release with at_text_free. With `colour` false it is plain text of shades and figures. */
typedef struct at_heatmap {
    int64_t rows, columns;
    const float *values;             /* [rows, columns] */
    const char *const *row_names;    /* NULL: numbered */
    const char *const *column_names; /* NULL: numbered */
    bool colour;
} at_heatmap;
AT_API char *at_heatmap_text(const at_heatmap *map, at_error *error);
AT_API void at_text_free(char *text);

#ifdef __cplusplus
}
#endif
#endif
