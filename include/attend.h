/* attend.h: attention in C.
 *
 * The one public header, in the order data flows: version, errors, threads, arrays and their files, the attention
 * operator, its catalogue, pictures. Reading it from top to bottom is reading the manual.
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

#define AT_VERSION "0.1.0"

/* The version of the library that is linked, e.g. "0.1.0". */
AT_API const char *at_version(void);

/* ---- Errors --------------------------------------------------------------------------------------------------- */

/* Codes are the command's exit codes. */
enum { AT_OK = 0, AT_FAILED = 1, AT_USAGE = 2 };

/* Start from `at_error error = {0};`. */
typedef struct at_error {
    int code;       /* AT_OK until something failed */
    char text[500]; /* one sentence, no newline: what was wrong and what would be right */
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
    const char *position;   /* "none"     none | shaw:K | rope | alibi | t5[:BUCKETS] */
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

/* Runs the operator. False with a sentence in `error` if the settings or shapes do not fit (nothing is written then). */
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

/* The names nearest to a misspelt one, ready to end a sentence: "; did you mean 'scaled'?", or "" if none is near. */
AT_API void at_suggest(const char *word, const char *const *names, int count, char *out, size_t size);

/* ---- Pictures ------------------------------------------------------------------------------------------------- */

/* A heat map of weights in the terminal as UTF-8 text: columns across, rows down, values legible. Gives a string to
 * release with at_text_free. With `colour` false it is plain text of shades and figures. */
typedef struct at_heatmap {
    int64_t rows, columns;
    const float *values;         /* [rows, columns] */
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
