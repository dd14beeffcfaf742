/* The interface of a model: every sequence-to-sequence model is {declare, encode, start, decode} over tensors.
 * Saving a state and selecting its rows in search is written once for all models (saved.c).
 *
 * decode takes n target positions at a time: n = T with teacher forcing in training, n = 1 in search. "n = T equals
 * T times n = 1" is tested for every model and setting. */
#ifndef AT_MODEL_H
#define AT_MODEL_H

#include "attention/attention.h"
#include "base/settings.h"
#include "tape/params.h"

/* The settings that are one of a few names, which settings.c lists in the same order. 0: unset, or not used. */
typedef enum at_recurrence { AT_RECURRENCE_UNSET, AT_RNN, AT_GRU, AT_LSTM } at_recurrence;
typedef enum at_reset { AT_RESET_UNSET, AT_RESET_BEFORE, AT_RESET_AFTER, AT_RESET_BIAS } at_reset;
typedef enum at_activation { AT_ACTIVATION_UNSET, AT_RELU_UNITS, AT_GELU_UNITS, AT_SWISH_UNITS } at_activation;
typedef enum at_norm_order { AT_NORM_UNSET, AT_POST_NORM, AT_PRE_NORM } at_norm_order;
typedef enum at_final_norm { AT_FINAL_UNSET, AT_FINAL_AUTO, AT_FINAL_TRUE, AT_FINAL_FALSE } at_final_norm;
typedef enum at_layout { AT_LAYOUT_UNSET, AT_INTERLEAVED, AT_HALVES } at_layout;
typedef enum at_deep_output { AT_OUTPUT_UNSET, AT_TANH_OUTPUT, AT_LINEAR_OUTPUT } at_deep_output;
typedef enum at_channels { AT_CHANNELS_UNSET, AT_GREY, AT_COLOUR } at_channels;
typedef enum at_denominator { AT_DENOMINATOR_UNSET, AT_HALF, AT_HALF_LESS_ONE } at_denominator;

typedef enum at_hard_training { AT_HARD_UNSET, AT_HARD_REINFORCE, AT_HARD_EXACT } at_hard_training;

/* All settings of a model; stored in its file. Strings are names as in attend.h. 0 and "" mean the
 * default in the table of settings.c, which also yields the options of training, their help and what a model does not
 * use. */
typedef struct at_model_settings {
    char model
        [24]; /* rnn-plain rnn-encdec rnn-attention bahdanau nematus luong show-attend-tell transformer transformer-lm */
    at_recurrence cell;
    at_reset reset;                               /* of a gru; unset for other cells */
    int64_t layers, embedding, hidden, attention; /* attention: A of the additive score and of local-p */
    int64_t maxout;                               /* units after maxout */
    double dropout;                               /* probability, in training */
    double attention_dropout;                     /* of the weights of attention */
    char score[32], normaliser[16], window[24], position[24];
    int64_t heads;
    bool input_feeding, bidirectional;
    at_hard_training hard_training;   /* of the normaliser hard; unset: reinforce */
    int64_t coverage, coverage_width; /* filters over the sum of past weights, 0: none; size of their window */
    bool gate;                        /* a recurrent decoder scales its context by sigmoid(w_b h + b) */
    /* the Transformer's */
    int64_t ffn, kv_heads, decoder_layers; /* inner size of FFN; kv_heads, decoder_layers 0: as heads, layers */
    int64_t positions;                     /* rows of a learned table */
    at_activation activation;
    at_norm_order norm;
    at_final_norm final_norm; /* auto: with pre-norm */
    double norm_epsilon, first_position;
    double ffn_dropout; /* inside the feed-forward layers; as dropout unless it was named */
    at_layout position_layout;
    at_denominator position_denominator;
    bool scale_embedding, tie, share_embeddings, output_bias;
    char encoder_attention[64], decoder_attention[64], cross_attention[64]; /* "scaled,sliding:8,shaw:16" */
    char guided_head[8]; /* "2.1": the head that training guided by alignments; empty: none */
    /* of a model that reads pictures */
    int64_t features;           /* size of a row of features, which are read in place of pictures; 0: pictures */
    char conv[96];              /* "16x5s2,32x3": the encoder's convolutions */
    char image_size[16];        /* "40x60", or "keep" */
    at_channels image_channels; /* grey or colour */
    int64_t start_layer;        /* relu units between the mean of the cells and the decoder's first state; 0: none */
    at_deep_output deep_output;
    int64_t source_size, target_size; /* vocabularies; 0: no source text */
} at_model_settings;

/* The rows of the settings, the name of the model first; NULL past the last. */
enum { AT_MOST_MODEL_SETTINGS = 64 };
const at_setting *at_model_setting(int index);
/* Sets one of them from text and marks it in `given`. */
bool at_model_set(at_model_settings *settings, at_given *given, const char *name, const char *text, at_error *error);
/* Fills in the model's defaults and refuses what it does not use ("model 'rnn-encdec' does not use `score`"). `given`
 * may be NULL: none was named. */
bool at_model_settings_complete(at_model_settings *settings, const at_given *given, at_error *error);

/* A batch of source sentences: ids [rows, length], -1 beyond each one's length. For a model that reads pictures, the
 * units of a row are the cells of its picture, and each id is the number of the picture (pictures.h). */
typedef struct at_source {
    int64_t rows, length;
    const int32_t *ids;
    const int64_t *lengths;
    const struct at_pictures *pictures; /* NULL: the source is text */
    double augment, elastic;            /* in training: how much pictures are changed; 0: not */
} at_source;

/* A few tensors that belong together, each with the batch as its first dimension: an encoded source, or a decoder's
 * state. */
enum { AT_MOST_PARTS = 40 };
typedef struct at_parts {
    int count;
    at_tensor *part[AT_MOST_PARTS];
} at_parts;

/* The weights of one call of attention, [B,H,Q,K]. */
typedef struct at_observed {
    at_attention_kind kind;
    int layer; /* from 1 */
    int64_t batch, heads, queries, keys;
    int64_t first; /* position of the first query */
    const at_real *weights;
    const at_packed *packed; /* where queries and keys lie, of transformers; NULL: not told */
    const at_tensor *q, *k;  /* the rows; k is NULL where `packed` has pointers to them */
    int64_t kv_heads;
    const at_real *out; /* W_O [out_size, heads size] */
    int64_t out_size;
} at_observed;

/* Gets the weights of every call of attention of a pass, in the order of the calls. */
typedef struct at_observer {
    void (*observe)(void *context, const at_observed *observed);
    void *context;
} at_observer;

/* The variables that a probe put into one call of attention, all 1, and their gradients after the backward pass. */
typedef struct at_probed {
    at_attention_kind kind;
    int layer; /* from 1 */
    int64_t heads, queries, keys;
    const at_packed *packed;
    const at_real *gradient; /* [rows of queries, heads], or of weights [batch, heads, queries, keys] */
    const at_real *entropy;  /* [batch, heads, queries] of the weights */
    struct at_probed *previous;
} at_probed;

/* Multiplies the output of every head of every query by a variable, or every weight: of transformers, over whole
 * targets. */
typedef struct at_probe {
    bool of_weights;
    at_probed *last; /* the calls so far, on the tape */
} at_probe;

/* How this pass runs. Randomness comes from `rng` alone; NULL: no dropout, and hard attention takes its argmax. */
typedef struct at_pass {
    at_tape *tape;
    at_rng *rng;
    struct at_cache *cache; /* search: keys and values of earlier steps; NULL: ids are whole targets */
    const int64_t *lengths; /* [B]: target positions without padding, NULL: all; logits of padding may be left out */
    bool wants_weights;     /* a model may return no weights unless asked */
    int layer, head;        /* whose weights, from 1; 0: the mean of all */
    int guided_layer, guided_head; /* training: whose weights must be differentiable, from 1; 0: none */
    const at_observer *observer;   /* NULL: none */
    at_probe *probe;               /* NULL: none */
    bool wants_attended;           /* the weights of attention to the source must be differentiable */
    bool expectation;              /* hard attention takes the expectation under its softmax instead of a sample */
} at_pass;

typedef struct at_decoded {
    at_tensor *logits;   /* [B, n, V], or [sum of lengths, V] if packed */
    bool packed;         /* the positions of padding are left out */
    at_tensor *weights;  /* [B, n, S] attention weights, not differentiable; NULL for a model without attention */
    at_tensor *guided;   /* [B, n, S] weights of the guided head, differentiable; NULL: the pass guides none */
    at_tensor *attended; /* [B, n, S] mean weights of all heads, differentiable; NULL: not wanted */
    at_tensor *log_prob; /* [B, n] hard attention: log-probability of its samples; else NULL */
    at_tensor *entropy;  /* [B, n] hard attention: entropy of the softmax it samples from; else NULL */
} at_decoded;

typedef struct at_model at_model;

/* Positions that are added to the embeddings, not inside attention. */
typedef enum at_added { AT_ADDED_NONE, AT_ADDED_SINUSOIDAL, AT_ADDED_LEARNED } at_added;

/* One kind of model: a record at the end of its file, named in the table of model.c. */
typedef struct at_model_kind {
    const char *name, *formula, *paper;
    const char *fields;   /* names of the settings it uses, blank between */
    const char *defaults; /* "cell=lstm warmup=200": where it differs from the tables of settings, training's too */
    bool has_source;      /* false: a language model */
    bool has_pictures;    /* its source lines name pictures, and it has no source vocabulary */
    bool has_attention;   /* it uses score, normaliser and window: over the source, or over a language model's tokens */
    bool has_cross_layers; /* every layer of the decoder attends to the source, not the decoder once */
    bool has_multihead;    /* all its attention is multihead.c's, with an output projection */
    bool adds_positions;   /* may add sinusoidal or learned positions to its embeddings */
    int most_layers;       /* 0: AT_MOST_LAYERS */
    bool (*declare)(at_model *model, at_error *error);
    void (*initialise)(at_model *model, uint64_t seed); /* initial values other than at_init_all's; NULL: none */
    at_parts (*encode)(const at_model *model, const at_pass *pass, const at_source *source);
    at_parts (*start)(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded);
    /* ids [B, n]: the previous target tokens. Replaces *state by the state after them. */
    at_decoded (*decode)(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded,
                         at_parts *state, const int32_t *ids, int64_t n);
    /* The encoder alone: a source's features, [sum of lengths, d] or with padding [B, S, d]; NULL: this model
     * encodes no position of the source by itself. */
    at_tensor *(*features)(const at_model *model, const at_pass *pass, const at_source *source);
} at_model_kind;

const at_model_kind *at_model_kind_at(int index); /* NULL past the last */

struct at_model {
    const at_model_kind *kind;
    at_model_settings settings;
    at_attention attention; /* parsed from the settings, like the next three */
    at_added added;
    int guided_layer, guided_head; /* both from 1; 0: none */
    at_params *params;
    void *extra; /* the kind's own record of parameter indices; released with free */
    int shares;  /* further owners, of at_model_share */
};

/* Whether these settings fit together with any vocabularies, checked before the data is read. */
bool at_model_possible(const at_model_settings *settings, at_error *error);
/* A model with random initial parameters, drawn from the seed. */
at_model *at_model_new(const at_model_settings *settings, uint64_t seed, at_error *error);
/* The same with zeros and without gradients, to be read from a file. The settings come from the file as well, and are not believed: more than
 * `most` parameters, which is how many a file of its size can hold, are refused before memory is allocated. */
at_model *at_model_blank(const at_model_settings *settings, int64_t most, at_error *error);
/* The same without memory for the values: the parameters have names and shapes only, until at_params_fix. */
at_model *at_model_declare(const at_model_settings *settings, at_error *error);
/* Another owner of the same model, which is not changed any more; each of them calls at_model_free. */
at_model *at_model_share(at_model *model);
void at_model_free(at_model *model);
/* The guided head, both from 1; false if there is none. */
bool at_model_guided(const at_model *model, int *layer, int *head);
/* The layers and heads that attend to the source; false: the model has no such attention. */
bool at_model_heads(const at_model *model, int *layers, int *heads);
/* The attention weights of all layers and heads for a source of S and a target of T positions. */
double at_model_weights(const at_model *model, int64_t S, int64_t T);
at_parts at_model_encode(const at_model *model, const at_pass *pass, const at_source *source);
at_parts at_model_start(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded);
at_tensor *at_model_features(const at_model *model, const at_pass *pass, const at_source *source);
at_decoded at_model_decode(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded,
                           at_parts *state, const int32_t *ids, int64_t n);

/* An encoded source or a state, saved between the steps of a search, each of which has its own tape. Rows can be
 * selected, repeated and dropped. The memory grows and is used again: steady decoding allocates nothing. */
typedef struct at_saved at_saved;
at_saved *at_saved_new(void);
void at_saved_free(at_saved *saved);
bool at_saved_store(at_saved *saved, const at_parts *parts, at_error *error); /* copies the tensors' values */
at_parts at_saved_load(const at_saved *saved, at_tape *tape);                 /* leaves over the saved values */
bool at_saved_select(at_saved *saved, const int64_t *rows, int64_t count,
                     at_error *error); /* row i becomes old row rows[i] */

/* The sinusoids that a Transformer adds to positions first .. first + count - 1: rows [count,d]. */
void at_sinusoids(const at_model_settings *settings, int64_t first, int64_t count, at_real *rows);

#endif
