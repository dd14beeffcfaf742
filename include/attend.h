/* attend.h: attention in C.
 *
 * The public header and its manual, in the order data flows: version, errors, threads, arrays and their files, the
 * attention operator, its catalogue, lines of text, training, trained models, scores, pictures. Each section has a
 * program in examples/ that compiles as C and as C++.
 *
 * Conventions:
 *   - Nothing here prints, exits or aborts on bad input. A function that can fail takes an `at_error *` (never NULL)
 *     and returns false or NULL; the error then holds a code and one message. Errors are sticky: once set, the first
 *     message stays, and further calls with the same error do nothing and fail.
 *   - `_new`, `_read`, `_open` and `_load` return an object to release with the `_free` of the same name; `_free(NULL)`
 *     does nothing.
 *   - What can be listed is listed by index: `const T *f(int index)` returns NULL past the last, and what it returns is
 *     never released.
 *   - Rows are vectors and the last dimension is contiguous. B batch, H heads, G key/value heads, Q queries, K keys,
 *     D size of a head, Dv size of a head's values.
 *   - Threads: calls on different objects, each with its own at_error, may run at the same time. Sections that allow
 *     less or more say so.
 *
 * The ABI: until 1.0 the soname has the minor version (libattend.so.0.1). Within one minor version functions may be
 * added and none is changed or removed; doc/design.md has the rule and how it is checked.
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

/* Start from `at_error error = {0};`. The text is one message in UTF-8, without a control character: what was wrong and what
 * would be right. Names of settings stand in backquotes, as in `heads`, so that a program can show its own names. */
typedef struct at_error {
    int code; /* an at_code; AT_OK until something failed */
    char text[500];
} at_error;

/* A failing allocation is AT_MEMORY, and the program goes on. Two limits, both of SentencePiece, which cannot undo what it
 * began: if memory runs out while it loads a model or segments a line, what it took for that call is lost; and if it
 * runs out in a thread that SentencePiece starts, which only happens while `spm:SIZE` makes a vocabulary, the process ends
 * (a reserve of 1 MB is given back to such a thread first). During calls of SentencePiece a handler of C++'s operator new
 * is installed; failures in threads that are not in such a call go to the handler that was there before. */

/* ---- Threads -------------------------------------------------------------------------------------------------- */

/* How many threads the library may use from now on, 64 at most; 0 means one per core. Results have the same bits for any
 * number: threads divide output rows among them, never a sum. One pool serves all calls of the process: a call that
 * finds it busy computes in its own thread. May be called at any time. */
AT_API void at_threads_set(int threads);
AT_API int at_threads(void);

/* ---- Kernels -------------------------------------------------------------------------------------------------- */

/* The inner loops exist once per instruction set: "plain", which every processor runs, "avx2" and "avx512" on x86-64,
 * "neon" on aarch64. With one set results have the same bits on every machine; the last bits differ between sets, except
 * that "avx512" has those of "avx2". The first call that computes chooses the fastest set that the processor has, or the
 * one that the environment variable ATTEND_ISA names (ignored if there is none of that name here). Its name: */
AT_API const char *at_kernels_name(void);

/* ---- Arrays and their files ----------------------------------------------------------------------------------- */

enum { AT_MAX_RANK = 8 };

typedef enum at_dtype { AT_F32, AT_F64, AT_F16, AT_BF16, AT_I32, AT_I64, AT_U8, AT_I8 } at_dtype;

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

/* NumPy .npy files: versions 1 to 3, little-endian, C order. AT_FILE: it cannot be opened, read or written; AT_FORMAT:
 * truncated or damaged; AT_UNSUPPORTED: a valid file with a type or an order that the library does not have, which the
 * message names. Writing is atomic: the file is complete, or it is not there. */
AT_API at_array *at_npy_read(const char *path, at_error *error);
AT_API bool at_npy_write(const char *path, const at_array *array, at_error *error);

/* A safetensors file: named arrays and string metadata. Fails as .npy files do. Several threads may read one. */
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
/* Stores a copy of the value, replacing one that is there; NULL removes it. */
AT_API bool at_tensors_set_meta(at_tensors *tensors, const char *key, const char *value, at_error *error);

/* ---- The attention operator ----------------------------------------------------------------------------------- */

/* out_i = sum_j w_ij v_j,  w_i = normalise_j(score(q_i, k_j) + position) over the keys of the window.
 *
 * Five independent choices, each a name from at_catalogue() with its number after a colon where it takes one. A NULL or
 * 0 field takes the default written beside it. */
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

    /* Memory for the call itself. NULL: allocated and released by the call. What memory_used says afterwards, aligned to
     * 64 bytes, is enough for the same call on as many threads. */
    void *memory;
    size_t memory_size;
    size_t memory_used; /* filled in: the most the call held at any time */

    /* [B, H, Q, K] the scores with their position terms, which normalising makes weights of; -INFINITY outside the
     * window. NULL: not wanted. The call takes the plain path for them. */
    float *scores;
} at_call;

/* Runs the operator. AT_USAGE: no such name, or names that cannot be combined; AT_SHAPE: sizes do not fit, or a
 * parameter has another shape; AT_MEMORY. Nothing is written then. Calls may run at the same time on other memory. */
AT_API bool at_attend(const at_settings *settings, at_call *call, at_error *error);

/* ---- The catalogue -------------------------------------------------------------------------------------------- */

/* What can be chosen: one entry for each score, normaliser, window and position. */
typedef struct at_entry {
    const char *axis;       /* "score", "normaliser", "window", "position", "model" */
    const char *name;       /* "sliding" */
    const char *argument;   /* "W", "" if it takes none, "[BUCKETS]" if optional */
    const char *formula;    /* one line of UTF-8 */
    const char *parameters; /* "v [A], W [A,D], U [A,D], b [A]?" or "" */
    const char *paper;      /* "Bahdanau, Cho, Bengio 2014" or "" */
} at_entry;

/* The entries in a fixed order; NULL past the last. */
AT_API const at_entry *at_catalogue(int index);
/* The models that can be trained, in the same form; NULL past the last. */
AT_API const at_entry *at_model_entry(int index);

/* ---- Lines of text ---------------------------------------------------------------------------------------------- */

/* A line without its newline: any bytes, and no NUL is needed after them. */
typedef struct at_line {
    const char *text;
    size_t size;
} at_line;

/* All lines of a file, or of the standard input for "-". A line ends with a newline, with a carriage return and a
 * newline, or at the end of the file; a byte-order mark before the first line is left out. Files compressed by gzip or
 * zstd are decompressed; they are recognised by their first bytes, not by their names. */
typedef struct at_line_list {
    at_line *line; /* [count] */
    int64_t count;
    char *bytes; /* what the lines point into */
} at_line_list;
AT_API at_line_list *at_line_list_read(const char *path, at_error *error);
AT_API void at_line_list_free(at_line_list *list);

/* The same lines one by one, without holding all of them. Both fail with AT_FILE, AT_MEMORY, and AT_UNSUPPORTED for a
 * line longer than 2 GiB. Calls for different files may run at the same time. */
typedef struct at_line_reader at_line_reader;
AT_API at_line_reader *at_line_reader_open(const char *path, at_error *error);
AT_API void at_line_reader_free(at_line_reader *reader);
/* The next line, valid until the next call; false at the end, or with the error set. */
AT_API bool at_line_reader_next(at_line_reader *reader, at_line *line, at_error *error);
/* Whether at_line_reader_next would return without waiting for the program that writes into a pipe. */
AT_API bool at_line_reader_ready(at_line_reader *reader);

/* Compressed input fails with AT_FORMAT if it is truncated or damaged, has other bytes after its end, or decompresses to
 * more than 1000 times its size, beyond the first 64 MiB; with AT_UNSUPPORTED if it decompresses to more bytes than
 * this limit, or if the library was built without zlib or libzstd. 0: the default, 16 GiB. */
AT_API void at_decompressed_limit_set(uint64_t bytes);

/* ---- Training ------------------------------------------------------------------------------------------------- */

/* The settings of a training run, from text to a model file: made with defaults, changed by name, run once or several
 * times.
 *
 * At the same time: different at_training objects may run in different threads of the caller, if their outputs differ (a
 * second run with the same output fails while the first one runs). One object is for one thread at a time; only *stop
 * may be set from elsewhere: by a signal handler, or as an atomic write by another thread. The listener is called by the
 * thread that called at_training_run. All runs share the library's threads: one that finds them busy computes in its own
 * thread, to the same bits. at_threads_set takes effect at any time, also during a run. */
typedef struct at_training at_training;
AT_API at_training *at_training_new(at_error *error);
AT_API void at_training_free(at_training *training);

/* What can be set: the options of attend train without their dashes. */
typedef struct at_training_option {
    const char *group;    /* "The data", "The model" ...: options of a group follow each other */
    const char *name;     /* "learning-rate" */
    const char *argument; /* "RATE"; NULL for a switch, whose value is true or false */
    const char *fallback; /* the default, as one would type it; NULL: none. A model may have another */
    const char *help;
} at_training_option;
/* In a fixed order; NULL past the last. */
AT_API const at_training_option *at_training_option_at(int index);
/* The default of an option for a model, as one would type it, or "" if it has none; false if there is no such model or
 * option, or if this model does not use the option. */
AT_API bool at_training_default(const char *model, const char *name, char *text, size_t size);
/* Sets one by name; AT_USAGE if there is no such name or the value does not fit it. */
AT_API bool at_training_set(at_training *training, const char *name, const char *value, at_error *error);

/* Lines in memory instead of files, for training or for validation. */
typedef enum at_training_part { AT_TRAIN, AT_VALID } at_training_part;
/* Uses sources[i] and targets[i], i < count, as the pairs of this part; `sources` is NULL for a language model. Settings
 * that name files of the same part must not be set. Lines are without their newlines. Nothing is copied: the arrays and
 * their text belong to the caller and must stay unchanged until the last at_training_run that uses them has returned,
 * or until other lines replace them; NULL, NULL, 0 removes them. The states that a run writes have the same bytes as
 * those from files with the same lines, and so have its models apart from the names of the files, which they contain as
 * they were given; a run can be resumed from either. */
AT_API bool at_training_data(at_training *training, at_training_part part, const at_line *sources,
                             const at_line *targets, int64_t count, at_error *error);

/* What a run reports to its listener. */
typedef enum at_news {
    AT_NEWS_TICK,    /* after every update: for a progress bar */
    AT_NEWS_UPDATE,  /* a report: at the multiples of `report-every`, and at the end of the run */
    AT_NEWS_VALID,   /* a validation */
    AT_NEWS_SAVED,   /* the state was saved, as `text` */
    AT_NEWS_SKIPPED, /* an update was skipped, as its gradient was not finite */
    AT_NEWS_NOTE,    /* a message for the user, in `text` */
    AT_NEWS_START    /* before the first update: what the run starts with, in `start` */
} at_news;

/* What was read for training or for validation. */
typedef struct at_train_part {
    int64_t pairs, used;                 /* pairs of lines that were read, and those that were not skipped */
    int64_t empty, too_long, over_ratio; /* how many are; those too long are kept, cut or skipped, by `too-long` */
    int64_t units[2], unknown[2];        /* of source and target: all, and those that are not in the vocabulary */
} at_train_part;
typedef struct at_train_start {
    at_train_part part[2]; /* by at_training_part; without validation that of AT_VALID has 0 pairs */
    int64_t vocabulary[2]; /* units of source and target; a language model has no source: 0 */
    const char *model;     /* its kind */
    int64_t parameters;
    int64_t batches; /* of an epoch */
    int threads;
    int64_t update;      /* how many updates were made before, by the run that is resumed */
    const char *file[4]; /* that are written: the model, the last model (NULL without validation), state and log */
} at_train_start;

/* A score of the validation data. And a line of it as the model translates it now. */
typedef struct at_train_score {
    const char *metric;
    double score;
} at_train_score;
typedef struct at_train_sample {
    at_line source, reference, output;
} at_train_sample;

typedef struct at_train_news {
    at_news what;
    int64_t epoch, update, sentences; /* sentences: of this epoch */
    double cost;                      /* per target token, since the last report */
    double seconds, words_per_second; /* since the last report; of a validation, what it took */
    double norm, rate;                /* of the gradient, before clipping; the learning rate */
    double done, left;  /* the share of the run that is done, by its nearest limit, and the seconds left; or NAN */
    const char *metric; /* of the validation: the first, which decides */
    double score, best;
    bool better;
    const char *text;
    const at_train_start *start;
    const at_train_score *scores;   /* of a validation: [score_count], the one that decides first */
    const at_train_sample *samples; /* [sample_count] */
    int score_count, sample_count;
    int64_t failures, patience; /* validations in a row without a better score, and how many end the run; 0: none do */
} at_train_news;
typedef void at_train_listener(void *context, const at_train_news *news);

/* How it ended. */
typedef struct at_train_result {
    int64_t updates, epochs; /* in all, with those before a resume; whole epochs */
    int64_t parameters;
    double seconds, words_per_second; /* of this run */
    double cost;                      /* of the last report */
    double best_score;                /* NAN: never validated */
    int64_t best_update;              /* 0: never validated */
    bool interrupted;                 /* by `stop` */
    bool stopped_early;               /* by `early-stopping` */
    int64_t saved;                    /* the update of the last save, which `resume` continues from; -1: no save */
} at_train_result;

/* Trains until a limit is reached, then saves. `stop` (may be NULL) is checked between updates: once it is not 0, the run
 * saves and ends, and a run with `resume` continues from there to the same bits. `listener` may be NULL.
 *
 * If the model or its state exists, one of `resume` and `overwrite` must be set, else the run fails with AT_FILE and a
 * message that tells how many updates are there. With `overwrite` the files stay as they are until the first save of the
 * run; if it is stopped or fails before that, nothing is written and `saved` is -1. */
AT_API bool at_training_run(at_training *training, at_train_listener *listener, void *context, const volatile int *stop,
                            at_train_result *result, at_error *error);

/* ---- Trained models ------------------------------------------------------------------------------------------- */

/* A translator is a trained sequence-to-sequence model with its two vocabularies, or a language model with its one; or
 * an ensemble of such models.
 *
 * Threads: calls on different translators may run at the same time. Of calls on one translator only the const ones
 * (_has_source, _heads, _guided, _info, _longest, _clone) may; at_translate, at_translate_stream, at_align, at_maps_new,
 * at_encode and at_translator_add need it for themselves: a clone for each thread. All translators share the worker threads of at_threads_set.
 *
 * Failures common to all: AT_MEMORY. What else a function can fail with is written beside it. */
typedef struct at_translator at_translator;

/* Reads a model file. AT_FILE: it cannot be opened or read; AT_UNSUPPORTED: no reader knows its format, or another
 * version of attend wrote it; AT_FORMAT: truncated, damaged, or its parts do not fit together. */
AT_API at_translator *at_translator_load(const char *path, at_error *error);
/* The same from memory, which holds the bytes of a file of attend train; they are not needed any more afterwards. Checked
 * as a file is, checksum included; fails with AT_FORMAT and AT_UNSUPPORTED. */
AT_API at_translator *at_translator_load_memory(const void *bytes, size_t size, at_error *error);
/* Another translator with the same models, for another thread: parameters and vocabularies are shared and not copied, so
 * that a clone takes almost no memory. Its results have the same bits. Clones and the original may be used at the same
 * time and released in any order; what at_translator_add adds is not shared. Must not run at the same time as
 * at_translator_add or at_translator_free of the same translator. */
AT_API at_translator *at_translator_clone(const at_translator *translator, at_error *error);
AT_API void at_translator_free(at_translator *translator);
/* Compares the contents of a model file or a training state with the checksum that attend stores in it, which loading
 * and resuming do as well. *has_checksum is false for a file without one (those of an older attend, or of a program that
 * removed it): it cannot be verified, and still loads. AT_FORMAT: damaged, or changed by a program that left the old
 * checksum in its metadata; it removes it with at_tensors_set_meta(tensors, "attend.checksum", NULL, &error). */
AT_API bool at_model_verify(const char *path, bool *has_checksum, at_error *error);

/* Adds another model file as an ensemble member. An ensemble of n gives a unit the probability
 * p ~ (p_1 p_2 ... p_n)^(1/n), and weights that are the mean of theirs. Members may differ in everything but their
 * vocabularies. Features, heads and the description are those of the first member. Fails as at_translator_load does,
 * and with AT_UNSUPPORTED if the model does not fit the others; the translator then stays as it was. */
AT_API bool at_translator_add(at_translator *translator, const char *path, at_error *error);

/* False for a language model: it has no source and continues the lines it is given. */
AT_API bool at_translator_has_source(const at_translator *translator);
/* Whether its source lines name pictures: paths, or FILE.npy[INDEX] (doc/formats.md). */
AT_API bool at_translator_has_pictures(const at_translator *translator);
/* The lines of a file as this model reads sources. For a model that reads pictures, paths relative to the folder of the
 * file become relative to the current one, and an array .npy has the lines FILE[0], FILE[1], ... */
AT_API at_line_list *at_translator_sources(const at_translator *translator, const char *path, at_error *error);
/* How many layers attend to the source, and with how many heads each; false if none does. */
AT_API bool at_translator_heads(const at_translator *translator, int *layers, int *heads);
/* The head that training guided by alignments, both counted from 1; false if there was no such guidance. */
AT_API bool at_translator_guided(const at_translator *translator, int *layer, int *head);
/* Settings, sizes and training history as lines of text, to release with at_text_free. NULL only with AT_MEMORY. */
AT_API char *at_translator_info(const at_translator *translator, at_error *error);
/* The same as a JSON object, with how the model was trained: "settings", "source", "target", "longest_line",
 * "parameters", "weights" (the number type of its matrices), "arrays", "training" (see doc/formats.md; null in the files of an older attend) and "history". */
AT_API char *at_translator_info_json(const at_translator *translator, at_error *error);

/* Writes the model file `output`, each parameter the mean of that parameter in the `count` models, without a history.
 * Fails as at_translator_load does; with AT_USAGE if count < 1; with AT_UNSUPPORTED if settings or vocabularies differ
 * (the message names the first that does); with AT_FILE if `output` cannot be written. */
AT_API bool at_models_average(const char *const *paths, int count, const char *output, at_error *error);

/* The units of the longest source, or of a language model's longest line, that training allowed; 0: not known. Longer
 * lines are translated, too, but the longer the worse. */
AT_API int64_t at_translator_longest(const at_translator *translator);

/* Called for each line that has more units than the model was trained on or than max_source allows, before the search
 * that includes it begins. `units` are the line's, `read` those that are read. `context` is that of the results. */
typedef void at_on_long(void *context, int64_t line, int64_t units, int64_t read);
/* The same for a term of a glossary that the best hypothesis lacks, or has and should not; before the line's result. */
typedef void at_on_term(void *context, int64_t line, at_line term, bool forbidden);
typedef struct at_glossary at_glossary;

/* How to search. Zero the struct, then set what you want: 0 selects the default written first. */
typedef struct at_search_settings {
    int64_t beam;             /* 1: greedy. Hypotheses kept at each step */
    double length_penalty;    /* 0: none. A: the best has the largest score / ((5 + n) / 6)^A, n units and the end */
    int64_t n_best;           /* 1. Hypotheses returned for each line, at most `beam` unless sampling */
    double temperature;       /* 0: search. T > 0: n_best samples from softmax(logits / T) instead */
    uint64_t seed;            /* of sampling: a line's samples depend on it and on the line's number only */
    int64_t first_line;       /* 0. The number of the first line, for callers that pass lines in several calls */
    int64_t batch;            /* 64. Sentences per batch; the results are the same for any number */
    double max_length_factor; /* 2. The longest output has this many times the source's units, plus 10; */
    int64_t max_length; /* 0, or this many units. 0: a language model adds 100; of pictures, the longest of training */
    double min_length_factor; /* 0. An output does not end before this many times the source's units, rounded up */
    bool replace_unknown;     /* an unknown word becomes the source word with the largest weight, not "<unk>" */
    bool wants_weights;       /* fill in the weights and names below */
    bool wants_links;         /* fill in the links; recurrent models do so anyway */
    int layer, head;          /* 0: the mean of all. Whose weights, both from 1; recurrent models have one layer */
    bool prefix;              /* a line is its source, a tab and the start of its target; see at_translate */
    int64_t max_source;  /* 0: no limit. Units that are read of a line: the first; of a language model's the last */
    at_on_long *on_long; /* NULL: none */
    int64_t top_k;       /* 0: all. Sampling chooses among the top_k likeliest units only; of equals the lowest id */
    double top_p;        /* 0: all. Of these, among the fewest likeliest with this share of the probability */
    const volatile int *stop; /* NULL: none. Once it is not 0, the call fails with AT_INTERRUPTED; see at_translate */
    double normalise;         /* 0: none. A: the best has the largest score / n^A; not with length_penalty */
    int64_t no_repeat;        /* 0: none. N: no N units in a row occur twice in an output */
    double coverage_penalty;  /* 0: none. B: adds B sum_i log min(sum_t a_ti, 1) of the weights to the rank */
    const at_glossary *glossary; /* NULL: none. The terms of the output, see attend_unstable.h */
    at_on_term *on_term;         /* NULL: none */
    const char *split;           /* NULL: whole lines. "de" or "", any language: by sentences; see at_translate */
    bool placeholders;           /* {name}, %s, addresses, and numbers that would be lost, are kept; the same */
    bool align_shift;            /* at_align takes a unit's weights from the step that reads, not predicts it */
} at_search_settings;

/* One output. */
typedef struct at_hypothesis {
    const char *text; /* UTF-8 without a newline, with a NUL after it */
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

/* The result of one line: 1 to n_best hypotheses, the best first. Valid only during the call of at_on_result. */
typedef struct at_result {
    int64_t count;
    const at_hypothesis *best;       /* [count] */
    const char *const *source_names; /* [source_units]; NULL unless weights are wanted */
    int64_t source_units;
    /* [source_units, 2] the byte offsets in the line where each unit begins and ends. A subword's offsets are without
     * the blank before it. Where normalisation changed the line, they are those of what the unit came from. */
    const int32_t *source_offsets;
    const int32_t *target_offsets; /* [count of best[0], 2] the same for the target passed to at_align */
    int64_t replaced;              /* byte sequences that were not UTF-8 and were read as U+FFFD */
    bool is_long;                  /* the line has more units than the model was trained for */
    const float *features;         /* [source_units, feature_size] of at_encode; NULL for a line without a unit */
    int64_t feature_size;
    int64_t cut; /* units of the line that max_source left out */
} at_result;

/* Called with each line's result, in the order of the lines; `line` counts from first_line. Returning false stops the
 * call, which then fails with AT_INTERRUPTED unless the callback has set the error itself. */
typedef bool at_on_result(void *context, int64_t line, const at_result *result);

/* Translates lines (no newline in them, any other bytes): one result for every line, in order, with the same bits for
 * any batch size and number of threads. An empty line has one empty hypothesis. With `prefix` every hypothesis starts
 * with the units of what follows the first tab of its line; their log-probabilities are part of the score, and the
 * search continues from there. A line without a tab has no such start; for a source without a unit the start is the
 * whole output. With a language model every line is such a start, an empty one too: the hypotheses hold the line's
 * units, then what follows by search or sampling.
 * AT_USAGE: the settings are wrong or do not fit the model; AT_UNSUPPORTED: weights, or a head, that the model does not
 * have, or a line longer than 256 MiB; AT_FAILED: what the model computes for a line is not finite, so that there are
 * no probabilities; AT_INTERRUPTED: on_result returned false, or *stop was set, in a callback, a signal handler or,
 * atomically, a thread; it is read between steps, also of at_align and at_encode. With `split` or `placeholders`, which
 * exclude sampling, prefix, weights and links, a hypothesis is put together from parts: it has text, size, score, penalised
 * and count alone, the sums of the parts', with all ends but the last; hypothesis i is made of the i-th of each. */
AT_API bool at_translate(at_translator *translator, const at_search_settings *settings, const at_line *lines,
                         int64_t count, at_on_result *on_result, void *context, at_error *error);

/* Where at_translate_stream gets its lines from. It sets *line, which must stay valid until it is called again, and
 * returns AT_STREAM_LINE; or AT_STREAM_WAIT if no line is there yet: the lines so far are translated and their results
 * delivered before the next call, which may block; or AT_STREAM_END after the last line. To fail, it sets the error. */
typedef enum at_stream { AT_STREAM_LINE, AT_STREAM_WAIT, AT_STREAM_END } at_stream;
typedef at_stream at_next_line(void *context, at_line *line, at_error *error);

/* The same as at_translate, for lines that come one by one: it holds at most 16 batches, or 1 MiB, of them at a time.
 * The results have the same bits. Both callbacks get `context`. Fails also with whatever next_line sets. */
AT_API bool at_translate_stream(at_translator *translator, const at_search_settings *settings, at_next_line *next_line,
                                at_on_result *on_result, void *context, at_error *error);

/* Forced decoding: log-probability, links, weights and names of given targets. Of the settings it uses only first_line,
 * batch, wants_weights, layer, head, max_source (targets are never cut), on_long, stop and align_shift. A language model takes no sources (NULL), and has no links and no weights.
 * Fails as at_translate does; AT_USAGE also if sources are missing, or given to a language model. */
AT_API bool at_align(at_translator *translator, const at_search_settings *settings, const at_line *sources,
                     const at_line *targets, int64_t count, at_on_result *on_result, void *context, at_error *error);

/* Where attention stands: in the encoder, in the decoder or a language model, or from the decoder to the source. */
typedef enum at_attention_kind { AT_ENCODER_ATTENTION, AT_DECODER_ATTENTION, AT_CROSS_ATTENTION } at_attention_kind;

/* The attention weights of one layer for one line. A row is a query: rows sum to 1 unless the normaliser or the window
 * says otherwise, and weights outside the window are 0. S is the number of source units, T that of target units plus 1
 * for the end. Row t of a decoder is where target unit t is predicted; the unit read there is the one before it.
 *   encoder [S, S]   rows and columns: the source units
 *   decoder [T, T]   rows and columns: the units read, "<s>" and then the target's; 0 where a column is after its row
 *   cross [T, S]     rows: the units predicted, the target's and then "</s>"; columns: the source units
 * A recurrent model has cross-attention of one layer. */
typedef struct at_map {
    at_attention_kind kind;
    int layer; /* from 1 */
    int heads;
    int64_t rows, columns;
    const float *weights;            /* [heads, rows, columns] */
    const char *const *row_names;    /* [rows] UTF-8 */
    const char *const *column_names; /* [columns] */
} at_map;

/* All attention weights of one line, every layer and head, computed in one call. What these functions return belongs to
 * the maps and is valid until at_maps_free; the translator is not needed any more, and several threads may read. */
typedef struct at_maps at_maps;
/* `target` given: forced decoding of it, as by at_align. `target` NULL: the model's best translation of `source`, by the
 * settings as in at_translate. A language model has no source: it takes its text as `target` with `source` NULL, or
 * continues `source` with `target` NULL. The weights have the same bits as those of at_translate and at_align. In an
 * ensemble they are those of the first member, and the translation is the ensemble's. A source without a unit has no
 * maps, and a long one is not cut by max_source. Fails as at_translate and at_align do; with AT_UNSUPPORTED also if the model has no attention, or if all maps
 * together would take more than 1 GiB. */
AT_API at_maps *at_maps_new(at_translator *translator, const at_search_settings *settings, const at_line *source,
                            const at_line *target, at_error *error);
AT_API void at_maps_free(at_maps *maps);
/* The same maps between words instead of units, as a new object: words are separated by white space, the end and the
 * beginning count as words. A word's column is the sum of its units' columns, its row the mean of their rows. Units that
 * are only white space are left out. NULL only with AT_MEMORY. */
AT_API at_maps *at_maps_words(const at_maps *maps, at_error *error);
/* The maps: encoder, decoder, cross, each from layer 1 on; NULL past the last. */
AT_API const at_map *at_maps_at(const at_maps *maps, int index);
AT_API const char *at_maps_target(const at_maps *maps); /* the target as text, UTF-8 */
AT_API double at_maps_score(const at_maps *maps);       /* its log-probability, the end included */

/* The encoder only: each line's features, one row for each of its units, in at_result; there is one hypothesis, and it
 * is empty. A transformer returns the rows of its last layer, a recurrent model with attention the states it attends
 * to; the others keep one vector of a whole source and fail with AT_UNSUPPORTED, language models with AT_USAGE. Of the
 * settings it uses only first_line, batch, max_source, on_long and stop; its memory does not grow with the lines. */
AT_API bool at_encode(at_translator *translator, const at_search_settings *settings, const at_line *lines,
                      int64_t count, at_on_result *on_result, void *context, at_error *error);

/* Which word each unit is part of: words[u] counts the words of the line, separated by white space, from 0; -1 for a
 * unit that is only white space. `offsets` are those of at_result. A unit that covers several words counts for the
 * first. Returns the number of words in the line. May run at any time. */
AT_API int64_t at_word_numbers(at_line line, const int32_t *offsets, int64_t units, int64_t *words);

/* ---- Scores ----------------------------------------------------------------------------------------------------- */

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
/* The score of some of the lines, counted from 0, as a text of their own; NAN if their references have none to count. */
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

/* A heat map of weights in the terminal as UTF-8 text: columns across, rows down, values legible. Returns a string to
 * release with at_text_free. With `colour` false it is plain text of shades and figures. If `width` is too small, names
 * are cut, then only shades are drawn, then the columns follow each other in several parts. */
typedef struct at_heatmap {
    int64_t rows, columns;
    const float *values;             /* [rows, columns] */
    const char *const *row_names;    /* NULL: numbered */
    const char *const *column_names; /* NULL: numbered */
    bool colour;
    int width;    /* columns of the terminal that no line may exceed; 0: any */
    bool indexed; /* with `colour`: from the palette of 256 colours, for terminals without 24-bit colours */
} at_heatmap;
AT_API char *at_heatmap_text(const at_heatmap *map, at_error *error);
/* `count` small maps side by side, as many in a line as fit into `width`, each under its title: one character for each
 * cell (with `colour` for two, one above the other) and neither names nor numbers. A map wider than `width` is reduced: a
 * character is then the largest of several cells. Release with at_text_free. */
AT_API char *at_heatmaps_text(const at_heatmap *maps, const char *const *titles, int count, at_error *error);
AT_API void at_text_free(char *text);

#ifdef __cplusplus
}
#endif
#endif
