/* What the files of src/models share: access to settings, and functions that several models use. */
#ifndef AT_KINDS_H
#define AT_KINDS_H

#include "layers/layers.h"
#include "models/model.h"

/* settings.c */
bool at_model_uses(const at_model_kind *kind, const char *setting);
/* Whether the setting has an effect on a model with these settings: `reset` has none on a cell without a reset gate. */
bool at_model_says(const at_model_settings *settings, const at_model_kind *kind, const at_setting *row);
const at_model_kind *at_model_kind_find(const char *name, at_error *error);
/* The default of a setting, of the model or of training, for this kind of model: its own if it has one, else the row's;
 * "" if neither has one. The first returns false for a kind without a default of its own. */
bool at_model_own_default(const at_model_kind *kind, const at_setting *row, char *text, size_t size);
void at_model_default(const at_model_kind *kind, const at_setting *row, char *text, size_t size);

/* model.c */
bool at_model_attention(const at_model_settings *settings, const at_model_kind *kind, at_attention *attention,
                        at_error *error); /* true with zeros for a model without attention */
at_added at_added_by(const at_model_settings *settings);
/* Allocates model->extra, the kind's record of parameter indices, zeroed; NULL: out of memory. */
void *at_model_extra(at_model *model, size_t size, at_error *error);
at_cell_kind at_model_cell(const at_model *model);

/* multihead.c: the names of score, normaliser, window and position of one use of attention in a Transformer; `text` holds
 * those that are its own. */
bool at_multihead_names(const at_model *model, at_attention_kind kind, at_settings *names, char text[AT_AXES][32],
                        at_error *error);

/* ---- Functions that several models use (common.c) ---- */

/* Dropout by the model's `dropout`, in training. */
at_tensor *at_drop(const at_model *model, const at_pass *pass, at_tensor *x);
/* The dropout of the weights of one attention call, by `attention-dropout`. */
at_weight_drop at_weight_dropout(const at_model *model, const at_pass *pass);
/* The embeddings of target tokens ids [B,n] with time first, so that a step is a view: table [V,E] -> [n,B,E]. */
at_tensor *at_steps_embed(const at_pass *pass, at_tensor *table, const int32_t *ids, int64_t rows, int64_t n);
at_tensor *at_steps_at(at_tensor *x, int64_t t);             /* [n,B,D] -> [B,D], a view */
at_tensor *at_steps_join(at_tensor *const *step, int64_t n); /* n of [B,D] -> [n,B,D] */
at_tensor *at_rows_first(at_tensor *x);                      /* [n,B,D] -> [B,n,D] */
at_tensor **at_step_array(const at_pass *pass, int64_t n);   /* uninitialised, for the tensors of n steps */

/* The annotations of a bidirectional encoder, h_j = [h->_j; h<-_j] of the embedded source: [B,S,2H]. The state of the
 * backward cell at the first unit goes to *first. */
typedef struct at_annotator {
    int embedding; /* E of the source */
    at_cell forward, backward;
} at_annotator;
at_annotator at_annotator_declare(at_model *model, at_cell_kind cell, at_error *error);
at_tensor *at_annotate(const at_model *model, const at_pass *pass, const at_annotator *annotator,
                       const at_source *source, at_hidden *first);

/* Appends the hidden states of `layers` layers to the parts; takes them from the parts, beginning with `from`. */
void at_parts_add(at_parts *parts, const at_hidden *hidden, int layers);
void at_parts_take(const at_parts *parts, int from, const at_cell *cell, at_hidden *hidden, int layers);

/* The gate of a context, if the settings have one: beta c, beta = sigmoid(w_b h + b), one number for each query's state
 * h [...,size] and context c [...,D]. Declared as NAME.W, NAME.b. at_gate_of returns beta [...,1], NULL without a gate. */
bool at_gate_declare(at_model *model, at_dense *gate, const char *name, int64_t size, at_error *error);
at_tensor *at_gate_of(const at_model *model, const at_pass *pass, const at_dense *gate, at_tensor *h);
at_tensor *at_gate_apply(const at_model *model, const at_pass *pass, const at_dense *gate, at_tensor *h, at_tensor *c);

/* The target position of a state, as a tensor [B,1], so that it is saved and selected like the rest of the state. */
at_tensor *at_state_position(const at_pass *pass, int64_t rows, int64_t position);
int64_t at_state_position_of(const at_tensor *position);

/* ---- Attention over the source (source_attention.c) ---- */

/* Of `coverage`: NAME.Q [N, height * width] and NAME.U_f [A, N]. */
typedef struct at_coverage_params {
    int filters, U_f;
    int64_t height, width; /* of the window */
} at_coverage_params;

typedef struct at_attention_params {
    bool prepared; /* additive: queries are W_a q and keys U_a k already */
    at_coverage_params coverage;
    int64_t width;                              /* of queries and keys */
    int parameter[AT_AXES][AT_MOST_PARAMETERS]; /* numbers in at_params, -1: none */
} at_attention_params;

/* The parameters that the settings' choices declare, as NAME.W_a and so on. `prepared`: the caller passes
 * prepared queries and keys to a score that can take them. */
bool at_attention_params_declare(at_model *model, at_attention_params *params, const char *name, int64_t width,
                                 int64_t value_width, bool ready, at_error *error);

/* The same for other settings of attention than the model's. */
bool at_attention_params_declare_for(at_model *model, const at_attention *attention, at_attention_params *params,
                                     const char *name, int64_t width, int64_t value_width, bool ready, at_error *error);
/* Puts the parameters into the input of the operator. */
void at_attention_params_put(at_tape *tape, at_params *params, const at_attention_params *own, at_attention_in *in);

/* One head, from 1, of weights [B,H,Q,S]: [B,Q,S]. */
at_tensor *at_one_head(at_tensor *weights, int head);

/* Attention from the steps of a decoder to the source, and the outputs collected over the steps. */
typedef struct at_source_attention {
    const at_model *model;
    const at_pass *pass;
    const at_source *source;
    const at_attention_params *params;
    at_attention attention;          /* the model's, as the pass runs it */
    at_tensor *weights;              /* [B,n,S] */
    at_tensor **log_prob, **entropy; /* [B,Q] of each call; hard attention only */
    at_tensor **guided;              /* [B,Q,S] of each call, if the pass guides a head */
    at_tensor **attended;            /* [B,Q,S] of each call, if they must be differentiable */
    const at_grids *grids;      /* NULL: the source is a sequence; else row b has the cells of grid b, row by row */
    at_tensor *covered;         /* [B,S] coverage: the weights summed over the steps so far */
    struct at_cells *cells;     /* coverage: where the cells of the source lie */
    at_tensor *key, *ready_key; /* coverage: keys, and U k, which are the same at every step */
    int64_t position;           /* position of the next query */
    int64_t done;               /* steps so far */
    int64_t calls;
} at_source_attention;
/* The next n steps after `state`, whose first part is the position and whose last one is that of `coverage`, if any. */
at_source_attention at_source_attention_begin(const at_model *model, const at_pass *pass, const at_source *source,
                                              const at_attention_params *params, int64_t n, const at_parts *state);
/* The context of the next Q queries [B,Q,width]: [B,Q,value width]. `key` and `value` are the same in all calls. */
at_tensor *at_source_attention_next(at_source_attention *a, at_tensor *query, at_tensor *key, at_tensor *value);
/* The weights of all queries so far, [B,n,S], differentiable; NULL unless the pass or the model needs them. */
at_tensor *at_source_attention_weights(const at_source_attention *a);
at_decoded at_source_attention_end(const at_source_attention *a, at_tensor *logits);

/* ---- Coverage (coverage.c): functions that do nothing unless the settings have it ---- */

/* After at_attention_params_declare of the same name. `grid`: the window of the filters is a square, not an interval. */
bool at_coverage_declare(at_model *model, at_attention_params *params, const char *name, bool grid, at_error *error);
/* The last part of a decoder's state: zeros for the first one, and what it is after the steps so far. */
void at_coverage_start(const at_model *model, const at_pass *pass, const at_source *source, at_parts *state);
void at_coverage_keep(const at_source_attention *a, at_parts *state);
/* The term U_f F that the next step adds to the prepared keys. */
typedef struct at_cells at_cells;
bool at_coverage_term(at_source_attention *a, at_attention_in *in);

/* ---- The output of hard attention without sampling (marginal.c) ---- */

/* Whether the model sums over the source units instead of drawing one: normaliser hard, hard-training exact. Its
 * `attention` then has the softmax for a normaliser. */
bool at_is_exact(const at_model *model);

/* The logits of target position t if source unit j is the one that attention chooses: W f(q_t + beta_t k_j) + b. */
typedef struct at_marginal {
    at_tensor *step;                                                     /* q [B,n,L], biases included */
    at_tensor *unit;                                                     /* k [B,S,L] */
    at_tensor *gate;                                                     /* beta [B,n,1]; NULL: 1 */
    enum { AT_MARGINAL_SUM, AT_MARGINAL_TANH, AT_MARGINAL_MAXOUT } join; /* f */
    const at_dense *output;                                              /* W, b; NULL: the f are the logits */
    bool drops;   /* dropout after f, the same for all source units */
    int64_t most; /* numbers on the tape at a time, for tests; 0: the usual */
} at_marginal;
/* log p(y_t) = log sum_j w_tj softmax(W f(q_t + beta_t k_j) + b), w the weights of the n queries so far: [B,n,V]. What the
 * weights lack of 1, in windows that may be empty, is the weight of a context of zeros, k = 0. */
at_tensor *at_marginal_logits(const at_source_attention *a, const at_marginal *marginal);
/* x [...,in] times the columns from .. to - 1 of a dense layer's W [out,in], without its bias: [...,out]. */
at_tensor *at_dense_columns(const at_pass *pass, const at_model *model, const at_dense *layer, int64_t from, int64_t to,
                            at_tensor *x);

#endif
