/* What the files of src/attention share: the records of the four named axes, and one call of the operator in progress.
 *
 * A record is all there is to know of a score, normaliser, window or position. It starts with the public entry (name,
 * argument, formula, parameters, paper), which the parser, the catalogue and the parameter check read, and goes on with
 * what it computes. A new one is its record, at_score_NAME and so on, defined in a file of this folder, and its name in
 * the list below; without a `fused` rule it runs on the plain path everywhere. */
#ifndef AT_AXES_INTERNAL_H
#define AT_AXES_INTERNAL_H

#include "attention/attention.h"
#include "base/utf8.h"
#include "kernels/tile.h"

/* ---- The lists, in catalogue order ---- */

#define AT_SCORES(X)      X(dot) X(scaled) X(general) X(additive)
#define AT_NORMALISERS(X) X(softmax) X(sparsemax) X(entmax15) X(sigmoid) X(relu) X(hard)
#define AT_WINDOWS(X)     X(global) X(causal) X(sliding) X(local_m) X(local_p)
#define AT_POSITIONS(X)   X(none) X(shaw) X(rope) X(alibi) X(t5)

typedef struct at_fused_score at_fused_score;
typedef struct at_fused_normaliser at_fused_normaliser;

/* ---- One call in progress ---- */

/* Where the rows of an operand lie: see at_start_of. */
typedef struct at_layout {
    const int64_t *first; /* [B], NULL: every sequence has `each` rows */
    int64_t each, row, column, size;
} at_layout;

/* Operands stay in the layout [B, n, heads, size], which is how the caller's arrays lie, so splitting into heads is a
 * view. Settings and inputs are copies, because the fused operation's backward pass reads them when the caller's own
 * may be gone. */
typedef struct at_job {
    at_tape *tape;
    at_attention attention;
    at_attention_in in;
    const at_asked *asked; /* never NULL; not for the backward pass */
    int64_t asked_rows;    /* rows of weights asked for */

    int64_t B, Q, K, H, G, D, Dv; /* packed: the largest Q and K */
    at_tensor *q;                 /* [B,Q,H,D]; additive: W q + b, [B,Q,H,A] */
    at_tensor *k;                 /* [B,K,G,D]; additive: U k, [B,K,G,A], or [B,K,H,A] with a U per head */
    at_tensor *v;                 /* [B,K,G,Dv] */
    at_tensor *centre;            /* [B,H,Q], local-p only: w_ij *= exp(-(j - centre)^2 / (2 sigma^2)) */
    at_real sigma;
    at_spans spans;          /* [B,1,Q], or [B,H,Q] with centres */
    at_real scale;           /* the score is scale * q.k */
    at_tensor *bias;         /* by clipped offset: NULL, [H,2R+1] or [B,Q,H,2R+1]; e_ij += bias[clip(j-i)] */
    int64_t bias_start;      /* position of query 0 as the bias table counts */
    at_tensor *key_table;    /* shaw: NULL, [2k+1,D] or [H,2k+1,D]; e_ij += scale q_i . key_table[clip(j-i)] */
    at_tensor *value_table;  /* shaw: NULL, [2k+1,Dv] or [H,2k+1,Dv]; v_j + value_table[clip(j-i)] is summed */
    const at_packed *direct; /* NULL, or these packed rows go into the fused operation as they lie: q, k and v are the
                                caller's tensors then */
    at_tensor *out;          /* [B,Q,H*Dv], or [rows of q, H*Dv] if direct */
    at_tensor *log_prob;     /* [B,H,Q]: hard only */

    /* The fused operation alone. */
    int64_t size;                                  /* of a score's sum: D or A */
    at_layout q_rows, k_rows, v_rows, out_rows;    /* of values and gradients alike */
    int64_t key_panels, size_panels, value_panels; /* K, size, Dv rounded up to whole panels */
    const at_fused_normaliser *rule;
    const at_fused_score *pairwise; /* NULL: the score is an inner product */
    at_tensor *score_vector;        /* [A] or [H,A]: the pairwise score's v; NULL: ones */
    /* A normaliser that ignores a common offset gets e = score_scale s, and the largest s of a row is subtracted before
     * scaling, so that large scores lose nothing more. For others the queries are scaled and score_scale is 1. */
    at_real score_scale;
    int64_t reach;                                  /* of the bias and of shaw's tables */
    at_real *bias_table;                            /* the bias padded for vector reads, [H, bias_row]; NULL: none */
    int64_t bias_row;                               /* length of a padded table */
    at_real *key_table_panels, *value_table_panels; /* shaw's tables as panels, one set or one per head */
    at_real *key_table_rows, *value_table_columns;  /* their transposes as panels, for the backward pass */
    at_real *top, *stat;  /* [B,H,Q]: the largest s, where it is subtracted, and see tile_back */
    int32_t *choice;      /* [B,H,Q]: hard */
    at_real *scores;      /* NULL, or [B,H,Q,K] kept: few, and each a pairwise sum */
    int64_t parts;        /* pieces that the blocks of one (batch, key head) are cut into */
    char *scratch;        /* of all workers */
    size_t scratch_size;  /* of one worker */
    bool is_short;        /* sequences so short that prefetching the next ones pays; a task is a whole batch row */
    bool is_masked;       /* some row does not see every key */
    bool keeps_stat;      /* the weights will be computed again */
    at_real *bias_parts;  /* backward: [B,H,2R+1] sums for the bias */
    at_real *key_parts;   /* [B,H,2k+1,D] sums for shaw's key table */
    at_real *value_parts; /* [B,H,2k+1,Dv] sums for shaw's value table */
    at_real *score_parts; /* [B,H,A] sums for score_vector */
    bool back_query, back_keys; /* which gradients this pass computes */
} at_job;

/* ---- Records ---- */

/* A setting of one axis, split at the colon. */
typedef struct at_choice {
    int axis;
    const at_entry *entry;
    const char *argument; /* NULL: none given */
    char text[AT_SHOWN];  /* as given, for error messages */
} at_choice;

/* Reads the argument into a->argument[axis]. The axes before it in catalogue order are parsed already. */
typedef bool at_argument_parser(const at_choice *choice, at_attention *a, at_error *error);

/* The operands of a pairwise score on one tile, and their gradients. */
typedef struct at_pairwise {
    int64_t size;
    const at_real *q; /* [rows, q_row] */
    int64_t q_row;
    const at_real *kt; /* keys as panels [panel][size][width] */
    const at_real *v;  /* [size] */
    int64_t argument;  /* of the setting */
    at_real *dq;       /* backward only, like q, kt, and [size * lanes] */
    at_real *dkt, *dv;
} at_pairwise;

/* The fused rule of a score. Without `tile` it is e = scale q.k; with it, a pairwise sum
 * e_ij = sum_a v_a f(q_ia, k_ja), whose kernels these are. v is score_vector, or ones where `vector` is negative. */
struct at_fused_score {
    void (*tile)(const tile *t, const at_pairwise *p);       /* s_ij = e_ij */
    void (*tile_back)(const tile *ds, const at_pairwise *p); /* dq, dkt and dv from ds */
    int vector;                                              /* which parameter is v */
};

struct at_score_record {
    at_entry entry;
    at_argument_parser *argument;   /* NULL: takes none */
    bool inner;                     /* an inner product: there is something to rotate, and for shaw's keys to enter */
    at_real (*scale)(int64_t size); /* NULL: 1 */
    void (*prepare)(at_job *j);     /* NULL: q and k as they are */
    int prepared_parameters;        /* how many remain, from the first, when q and k come prepared; 0: they cannot */
    at_tensor *(*plain)(const at_job *j); /* e [B,H,Q,K], inside the spans */
    const at_fused_score *fused;          /* NULL: the plain path only */
};

/* How the fused operation turns scores into weights: tile by tile, with whole rows of scores at hand, or by choosing
 * one key of each row. */
typedef enum at_fused_pass { AT_PASS_ONLINE, AT_PASS_WHOLE_ROWS, AT_PASS_CHOICE } at_fused_pass;

/* The fused rule of a normaliser. */
struct at_fused_normaliser {
    tile_rule rule; /* of the kernels that compute weights and gradients from a row's statistic */
    at_fused_pass pass;
    bool ignores_offset;  /* the weights of e and of e + c are the same */
    bool keeps_summaries; /* state has argmax and entropy, so that weights need not be computed again for them */
    /* Online: the weights of one more tile, up to a factor for the row, and at the end that factor and the row's
     * statistic (stat NULL: not wanted), from the state's shift and sum. */
    void (*tile)(const tile *t, const tile_table *table, const tile_state *state);
    at_real (*end)(at_real shift, at_real sum, bool is_empty, at_real *stat);
};

struct at_normaliser_record {
    at_entry entry;
    at_argument_parser *argument;           /* NULL: takes none */
    const at_normaliser_record *draws_from; /* NULL, or one key is drawn from these weights */
    at_tensor *(*plain)(const at_job *j, at_tensor *e, at_tensor **log_prob); /* w [B,H,Q,K] */
    const at_fused_normaliser *fused;                                         /* NULL: the plain path only */
};

struct at_window_record {
    at_entry entry;
    at_argument_parser *argument; /* NULL: takes none */
    /* The keys that the query at this position sees: [*lo, *hi), before they are cut to the keys there are. NULL: they
     * lie around a centre predicted from the query. */
    void (*interval)(int64_t position, int64_t reach, int64_t *lo, int64_t *hi);
};

struct at_position_record {
    at_entry entry;
    at_argument_parser *argument; /* NULL: takes none */
    bool rotates;
    bool has_tables;                /* parameters 0 and 1 are tables of keys and values by clipped offset */
    at_tensor *(*bias)(at_job *j);  /* NULL: none */
    bool (*check)(const at_job *j); /* of the parameters given, beyond their shapes; NULL: nothing */
};

#define AT_DECLARE_SCORE(name)      extern const at_score_record at_score_##name;
#define AT_DECLARE_NORMALISER(name) extern const at_normaliser_record at_normaliser_##name;
#define AT_DECLARE_WINDOW(name)     extern const at_window_record at_window_##name;
#define AT_DECLARE_POSITION(name)   extern const at_position_record at_position_##name;
AT_SCORES(AT_DECLARE_SCORE)
AT_NORMALISERS(AT_DECLARE_NORMALISER)
AT_WINDOWS(AT_DECLARE_WINDOW)
AT_POSITIONS(AT_DECLARE_POSITION)

/* ---- catalogue.c: entries by axis, arguments ---- */

extern const char *const at_axis_name[AT_AXES];
const at_entry *at_axis_entry(int axis, int index);                      /* NULL past the end */
const at_entry *at_axis_choice(const at_attention *attention, int axis); /* the entry these settings chose */

/* A whole number of at least `least` after the colon; `otherwise` if there is none and that is not negative. */
bool at_argument_number(const at_choice *choice, int64_t least, int64_t otherwise, int64_t *value, at_error *error);
/* Which of `names` the word is; -1 with an error message that calls it `what`. */
int at_argument_word(const at_choice *choice, const char *what, const char *word, const char *const *names, int count,
                     at_error *error);

/* ---- declared.c: parameters as entries declare them ---- */

/* Reads the text of the chosen entries into a->declared. */
bool at_declared_parse(at_attention *a, at_error *error);
/* The slot for a parameter of this name, projections included, or NULL. */
at_tensor **at_parameter_slot(const at_attention *a, at_attention_in *in, const char *name);
/* An error message for a name that has no slot: whose parameter it is, or what is meant. */
bool at_parameter_unknown(const at_attention *a, const char *name, at_error *error);
/* Shapes of what is given, and what is missing. */
bool at_parameters_check(const at_job *j);

/* ---- One call: attention.c, check.c ---- */

/* The two halves of at_attention_run: everything that can be wrong but memory is found in the first, which writes
 * nothing. The job lies in the tape's arena, where the backward pass reads it again; NULL if the tape has failed. */
at_job *at_attention_begin(at_tape *tape, const at_attention *attention, const at_attention_in *in);
at_attention_out at_attention_finish(at_job *j);
/* Fills in the sizes of `j`; false with the error message on the tape. */
bool at_attention_check(at_job *j);

/* ---- What the axes build ---- */

/* span.c: j->centre and j->spans. False with the error message on the tape. */
bool at_spans_build(at_job *j);

/* position.c: rope, shaw's keys as a bias [B,Q,H,2k+1], and c [B,Q,H,Dv] + the sums of weights by offset
 * [B,Q,H,2k+1] times the value table. */
void at_rotate_operands(at_job *j);
at_tensor *at_key_positions(const at_job *j);
at_tensor *at_add_value_positions(const at_job *j, at_tensor *c, at_tensor *sums);

/* heads.c */
at_tensor *at_split_heads(at_tensor *x, int64_t heads);  /* [B,n,heads*size] -> [B,n,heads,size], a view */
at_tensor *at_join_heads(at_tensor *x);                  /* and back */
at_tensor *at_swap_heads(at_tensor *x);                  /* [B,n,heads,size] <-> [B,heads,n,size] */
at_tensor *at_repeat_heads(at_tensor *x, int64_t heads); /* [B,n,G,size] -> [B,n,heads,size] */
/* x [B,n,heads,in] times a parameter, [in,out] or one for each of `heads` heads [heads,in,out] ([out,in] with
 * `transpose`): [B,n,heads,out]. G heads of x serve `heads` sets of the parameter. */
at_tensor *at_heads_product(at_tensor *x, at_tensor *w, int64_t heads, bool transpose);

/* packed.c: the check of packed rows, which also fills in the sizes. */
bool at_packed_check(at_job *j);
/* Can the fused operation read these packed rows where they lie? */
bool at_packed_direct(const at_job *j);
/* query, key and value of j->in as [B,n,width] arrays, zeros beyond the counts; the queries alone; and x [B,Q,size] as
 * [rows,size] again. */
void at_unpack(at_job *j);
at_tensor *at_unpack_queries(const at_job *j);
at_tensor *at_pack(const at_job *j, at_tensor *x, int64_t rows);

/* summary.c: writes what is asked for beside the output, from w [B,H,Q,K]. */
void at_weights_report(const at_job *j, const at_tensor *w);
/* The scores that are asked for, from e [B,H,Q,K]. */
void at_scores_report(const at_job *j, const at_tensor *e);

/* fused.c: one operation with its own backward pass, tiled over blocks of queries and keys, from q, k and v to out and
 * log_prob. Memory beyond inputs and outputs is linear in length in both passes. */
bool at_fused_can(const at_attention *attention);
/* Can keys be read through key_row? Any other call needs them in tensors. */
bool at_fused_takes_rows(const at_job *j);
void at_fused_run(at_job *j); /* the tape says whether it failed */

#endif
