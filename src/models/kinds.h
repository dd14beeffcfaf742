/* What the files of src/models share: the rows of the table, and the few steps that several models take. */
#ifndef AT_KINDS_H
#define AT_KINDS_H

#include "layers/layers.h"
#include "models/model.h"

extern const at_model_kind at_rnn_plain, at_rnn_encdec, at_rnn_attention, at_bahdanau, at_luong, at_transformer,
    at_transformer_lm;

/* settings.c */
bool at_model_uses(const at_model_kind *kind, const char *setting);
/* Whether the setting says something about a model with these settings: a cell without a reset gate has no `reset`. */
bool at_model_says(const at_model_settings *settings, const at_model_kind *kind, const at_setting *row);
const at_model_kind *at_model_kind_find(const char *name, at_error *error);

/* model.c */
bool at_model_attention(const at_model_settings *settings, const at_model_kind *kind, at_attention *attention,
                        at_error *error); /* true with zeros for a model without attention */
at_added at_added_by(const at_model_settings *settings);
/* The kind's record of parameter numbers, zeroed and kept at model->extra; NULL with a sentence if memory is out. */
void *at_model_extra(at_model *model, size_t size, at_error *error);
at_cell_kind at_model_cell(const at_model *model);

/* ---- Steps that several models take (common.c) ---- */

/* x with the settings' share of it dropped, in training. */
at_tensor *at_drop(const at_model *model, const at_pass *pass, at_tensor *x);
/* The same for the weights of one look at keys. */
at_weight_drop at_drop_of(const at_model *model, const at_pass *pass);
/* Target words ids [B,n] with time first, so that a step is a view: table [V,E] -> [n,B,E]. */
at_tensor *at_steps_embed(const at_pass *pass, at_tensor *table, const int32_t *ids, int64_t rows, int64_t n);
at_tensor *at_steps_at(at_tensor *x, int64_t t);             /* [n,B,D] -> [B,D], a view */
at_tensor *at_steps_join(at_tensor *const *step, int64_t n); /* n of [B,D] -> [n,B,D] */
at_tensor *at_rows_first(at_tensor *x);                      /* [n,B,D] -> [B,n,D] */
at_tensor **at_steps_room(const at_pass *pass, int64_t n);   /* for the tensors of n steps */

/* A state of `layers` layers as parts, behind those that are there already, and back. */
void at_parts_add(at_parts *parts, const at_hidden *hidden, int layers);
void at_parts_take(const at_parts *parts, int from, const at_cell *cell, at_hidden *hidden, int layers);

/* The step a state stands at, kept in it as a tensor [B,1] like everything else, so that it is saved and picked along.
 */
at_tensor *at_place(const at_pass *pass, int64_t rows, int64_t place);
int64_t at_place_of(const at_tensor *place);

/* ---- Looking at the source through the one attention operator (look.c) ---- */

typedef struct at_look {
    bool prepared;                              /* additive: queries are W_a q and keys U_a k already */
    int64_t width;                              /* of queries and keys */
    int parameter[AT_AXES][AT_MOST_PARAMETERS]; /* numbers in at_params, -1: none */
} at_look;

/* The parameters that the settings' choices declare, as NAME.W_a and so on. `ready`: a score that takes prepared queries
 * and keys gets them. */
bool at_look_declare(at_model *model, at_look *look, const char *name, int64_t width, int64_t value_width, bool ready,
                     at_error *error);

/* The same for settings of attention that are not the model's one and only. */
bool at_look_declare_for(at_model *model, const at_attention *attention, at_look *look, const char *name, int64_t width,
                         int64_t value_width, bool ready, at_error *error);
/* The parameters as leaves where the operator expects them. */
void at_look_params(at_tape *tape, at_params *params, const at_look *look, at_attention_in *in);

/* One head, from 1, of weights [B,H,Q,S]: [B,Q,S]. */
at_tensor *at_one_head(at_tensor *weights, int head);

/* What a decoder's looks leave behind, gathered over its steps. */
typedef struct at_looks {
    const at_model *model;
    const at_pass *pass;
    const at_source *source;
    const at_look *look;
    at_attention attention;          /* the model's, as the pass runs it */
    at_tensor *weights;              /* [B,n,S] */
    at_tensor **log_prob, **entropy; /* [B,Q] of each look; hard only */
    at_tensor **guided;              /* [B,Q,S] of each look, if the pass guides a head */
    int64_t place;                   /* position of the next query */
    int64_t done;                    /* steps looked at so far */
    int64_t calls;
} at_looks;
at_looks at_looks_begin(const at_model *model, const at_pass *pass, const at_source *source, const at_look *look,
                        int64_t n, int64_t place);
/* The context of the next Q queries [B,Q,width]: [B,Q,value width]. */
at_tensor *at_looks_next(at_looks *looks, at_tensor *query, at_tensor *key, at_tensor *value);
at_decoded at_looks_end(const at_looks *looks, at_tensor *logits);

#endif
