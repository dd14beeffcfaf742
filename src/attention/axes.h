/* What the files of src/attention share: the tables of the four named axes, and the operands that each axis adds to.
 *
 * Every axis is a table of records in its own file. A record starts with the public entry (name, argument, formula,
 * parameters, paper), which the parser, the catalogue and the parameter check read, and goes on with what it builds. */
#ifndef AT_AXES_H
#define AT_AXES_H

#include "attention/attention.h"

/* One call's operands on their way to the weights. Rows stay in the layout [B, n, heads, size], which is how the
 * caller's arrays lie, so splitting into heads is a view. */
typedef struct at_operands {
    at_tape *tape;
    const at_attention *attention;
    const at_attention_in *in;
    int64_t B, Q, K, H, G, D, Dv;
    at_tensor *q;       /* [B,Q,H,D]; additive: W q + b, [B,Q,H,A] */
    at_tensor *k;       /* [B,K,G,D]; additive: U k, [B,K,G,A], or [B,K,H,A] with a U per head */
    at_tensor *v;       /* [B,K,G,Dv] */
    at_tensor *centre;  /* [B,H,Q], local-p only */
    at_spans spans;     /* [B,1,Q], or [B,H,Q] with centres */
    at_real scale;      /* the score is scale * q.k */
    at_tensor *bias;    /* by clipped offset: NULL, [H,2R+1] or [B,Q,H,2R+1] */
    int64_t bias_start; /* position of query 0 as the bias table counts */
    bool direct;        /* packed rows go into the fused operation as they lie; q, k and v above are not made then */
} at_operands;

/* ---- The tables: index = the enum's value; NULL past the end ---- */

typedef struct at_score_record {
    at_entry entry;
    bool inner;                      /* an inner product: there is something to rotate, and for Shaw's aK to enter */
    at_real (*scale)(int64_t size);  /* NULL: 1 */
    void (*prepare)(at_operands *o); /* NULL: q and k as they are */
    at_tensor *(*plain)(at_operands *o); /* e [B,H,Q,K] step by step */
} at_score_record;
const at_score_record *at_score_at(int index);

typedef struct at_normaliser_record {
    at_entry entry;
    at_tensor *(*plain)(const at_operands *o, at_tensor *e, at_tensor **log_prob); /* w [B,H,Q,K] */
} at_normaliser_record;
const at_normaliser_record *at_normaliser_at(int index);

typedef struct at_window_record {
    at_entry entry;
    /* The keys that the query at this position sees: [*lo, *hi), before they are cut to the keys there are. */
    void (*interval)(int64_t position, int64_t reach, int64_t *lo, int64_t *hi);
} at_window_record;
const at_window_record *at_window_at(int index);

typedef struct at_position_record {
    at_entry entry;
    bool rotates;
    at_tensor *(*bias)(at_operands *o); /* NULL: none */
} at_position_record;
const at_position_record *at_position_at(int index);

/* The four in catalogue order. */
enum { AT_AXES = 4 };
typedef struct at_axis {
    const char *name;
    const at_entry *(*entry)(int index);
} at_axis;
extern const at_axis at_axes[AT_AXES];
const at_entry *at_axis_choice(const at_attention *attention, int axis); /* the entry these settings chose */

/* ---- What the axes build ---- */

/* span.c: o->centre and o->spans. Says on the tape what failed. */
bool at_spans_build(at_operands *o);

/* position.c: rope, and c [B,Q,H,Dv] + the sums of weights by offset [B,Q,H,2k+1] times wV. */
void at_rotate_operands(at_operands *o);
at_tensor *at_add_value_positions(const at_operands *o, at_tensor *c, at_tensor *sums);

/* heads.c */
at_tensor *at_split_heads(at_tensor *x, int64_t heads);  /* [B,n,heads*size] -> [B,n,heads,size], a view */
at_tensor *at_join_heads(at_tensor *x);                  /* and back */
at_tensor *at_swap_heads(at_tensor *x);                  /* [B,n,heads,size] <-> [B,heads,n,size] */
at_tensor *at_repeat_heads(at_tensor *x, int64_t heads); /* [B,n,G,size] -> [B,n,heads,size] */
/* x [B,n,heads,in] times a parameter, [in,out] or one for each of `heads` heads [heads,in,out] ([out,in] with
 * `transpose`): [B,n,heads,out]. G heads of x serve `heads` sets of the parameter. */
at_tensor *at_heads_product(at_tensor *x, at_tensor *w, int64_t heads, bool transpose);

/* check.c: everything that can be wrong with settings, arrays and parameters; false with the sentence on the tape.
 * Fills in the sizes of `o`. */
bool at_attention_check(at_operands *o);
/* The slot for a parameter of this name, or NULL. */
at_tensor **at_parameter_slot(at_attention_in *in, const char *name);
const char *at_parameter_name(int index); /* NULL past the end */

/* packed.c: the same for packed rows, which it also measures. */
bool at_packed_check(at_operands *o);
/* Can the fused operation read these packed rows where they lie? */
bool at_packed_direct(const at_operands *o);
/* query, key and value of `in` as [B,n,width] arrays, zeros beyond the counts; the queries alone; and x [B,Q,size] as
 * [rows,size] again. */
void at_unpack(const at_operands *o, at_attention_in *in);
at_tensor *at_unpack_queries(const at_operands *o);
at_tensor *at_pack(const at_operands *o, at_tensor *x, int64_t rows);

/* summary.c: fills in what `in` asks for beside the output, from w [B,H,Q,K]. */
void at_weights_report(const at_operands *o, const at_tensor *w);

#endif
