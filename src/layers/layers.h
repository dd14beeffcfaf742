/* Layers: small records of parameter indices, declared once, applied on any tape. Each is a composition of operations
 * written as its equation; sequences have a fused operation, which the tests compare with the composition. */
#ifndef AT_LAYERS_H
#define AT_LAYERS_H

#include "tape/grid.h"
#include "tape/ops.h"
#include "tape/params.h"

/* y = x W^T + b */
typedef struct at_dense {
    int w, b;
} at_dense; /* b -1: none */
at_dense at_dense_declare(at_params *params, const char *name, int64_t in, int64_t out, bool bias, at_error *error);
at_tensor *at_dense_apply(at_tape *tape, at_params *params, const at_dense *layer, at_tensor *x, at_act act);

typedef enum at_cell_kind { AT_CELL_RNN, AT_CELL_GRU, AT_CELL_LSTM, AT_CELL_GRU_AFTER, AT_CELL_GRU_BIAS } at_cell_kind;
enum { AT_CELLS = AT_CELL_GRU_BIAS + 1 };

/* A recurrent cell (cell.c, its gates in gates.c), gates stacked in one matrix each:
 *   rnn   h = tanh(W x + U h' + b)
 *   gru   r = s(W_r x + U_r h' + b_r)  z = s(W_z x + U_z h' + b_z)  n = tanh(W x + U (r o h') + b)
 *         h = z o h' + (1-z) o n
 *         after: n = tanh(W x + b + r o (U h')), the reset after the product, which then is one for all gates
 *         bias: U h' + b_u in place of U h', so that a bias is inside the reset, as in PyTorch
 *   lstm  i,f,o = s(...)  g = tanh(...)  c = f o c' + i o g  h = o o tanh(c) */
typedef struct at_cell {
    at_cell_kind kind;
    int64_t in, hidden;
    int w, u, b;   /* [gates*hidden, in], [gates*hidden, hidden], [gates*hidden] */
    int u_bias;    /* bias: b_u [gates*hidden]; else -1 */
    int candidate; /* gru: the U of r o h' [hidden, hidden], which u [2*hidden, hidden] then lacks; else -1 */
} at_cell;
/* NAME.W, NAME.U, NAME.b, NAME.recurrent.b, NAME.candidate.U. `in` 0: no W, for one-hot inputs, whose W x is a row of an
 * embedding table. */
at_cell at_cell_declare(at_params *params, const char *name, at_cell_kind kind, int64_t in, int64_t hidden,
                        at_error *error);
int64_t at_cell_width(const at_cell *cell); /* gates*hidden */

typedef struct at_hidden {
    at_tensor *h, *c;
} at_hidden; /* c: lstm only */
at_hidden at_hidden_zeros(at_tape *tape, const at_cell *cell, int64_t rows);

/* W x + b for any number of rows at once: x [...,in] -> [...,gates*hidden]. Without a W, x is W x already. */
at_tensor *at_cell_input(at_tape *tape, at_params *params, const at_cell *cell, at_tensor *x);
/* One step; x_product is W x + b [B, gates*hidden], so that all steps' products can be one gemm. */
at_hidden at_cell_step(at_tape *tape, at_params *params, const at_cell *cell, at_tensor *x_product, at_hidden before);

/* What a cell reads. */
typedef struct at_sequence {
    at_tensor *x;           /* [B, n, in]; for at_cell_run the products W x + b [B, n, gates*hidden] */
    at_tensor *extra;       /* at_cell_run: [B, gates*hidden] added to U h' at every step; NULL: nothing */
    const int64_t *lengths; /* [B]; NULL: n each */
    at_hidden first;        /* the state before the first step; NULL tensors: zeros */
    bool backward;          /* from each row's last position to its first */
} at_sequence;
/* All h [B, n, hidden], zeros at positions beyond a row's length, and in *last the state of each row after its own last
 * step. */
at_tensor *at_cell_sequence(at_tape *tape, at_params *params, const at_cell *cell, const at_sequence *in,
                            at_hidden *last);
at_tensor *at_cell_run(at_tape *tape, at_params *params, const at_cell *cell, const at_sequence *in, at_hidden *last);

/* Layers of cells, each reading the one below (stack.c). With `both`, every layer is bidirectional, with half of the
 * units for each direction, and a state is [forward; backward]. */
enum { AT_MOST_LAYERS = 4 };
typedef struct at_stack {
    int layers;
    bool both;
    at_cell ahead[AT_MOST_LAYERS], back[AT_MOST_LAYERS]; /* back: with both */
} at_stack;
at_stack at_stack_declare(at_params *params, const char *name, at_cell_kind kind, int layers, int64_t in,
                          int64_t hidden, bool both, at_error *error);
/* What a stack reads. */
typedef struct at_stack_input {
    at_tensor *x;           /* [B, n, in] */
    const int64_t *lengths; /* [B]; NULL: n each */
    const at_hidden *first; /* [layers]; NULL: zeros, and always NULL with `both` */
    at_real keep;           /* share kept by dropout between the layers */
    at_rng *rng;            /* NULL: no dropout */
} at_stack_input;
/* The top layer's h [B, n, hidden], and in last[layers] the last state of each layer. */
at_tensor *at_stack_run(at_tape *tape, at_params *params, const at_stack *stack, const at_stack_input *in,
                        at_hidden *last);

/* Layer norm (sublayer.c): NAME.g, NAME.b [size]. */
typedef struct at_norm {
    int gain, bias;
    at_real eps;
} at_norm;
at_norm at_norm_declare(at_params *params, const char *name, int64_t size, double eps, at_error *error);
at_tensor *at_norm_apply(at_tape *tape, at_params *params, const at_norm *norm, at_tensor *x);
/* LN(x + dropout(y)); *sum, if `sum` is not NULL, is x + dropout(y). keep 1: no dropout, and rng may be NULL. */
at_tensor *at_norm_residual(at_tape *tape, at_params *params, const at_norm *norm, at_tensor *x, at_tensor *y,
                            at_real keep, at_rng *rng, at_tensor **sum);

/* Position-wise feed-forward, outer(dropout(act(inner(x)))): NAME.inner.W [inner,size], NAME.inner.b, NAME.outer.W
 * [size,inner], NAME.outer.b. */
typedef enum at_ffn_act { AT_FFN_RELU, AT_FFN_GELU, AT_FFN_SWISH } at_ffn_act;
typedef struct at_ffn {
    at_dense inner, outer;
    at_ffn_act act;
} at_ffn;
at_ffn at_ffn_declare(at_params *params, const char *name, int64_t size, int64_t inner, at_ffn_act act,
                      at_error *error);
at_tensor *at_ffn_apply(at_tape *tape, at_params *params, const at_ffn *ffn, at_tensor *x, at_real keep, at_rng *rng);

/* An encoder of pictures (convolutions.c): layers of convolution, norm of each picture, relu and max-pooling, as a text
 * such as "16x5s2,32x3p2,32x3r" says: 16 channels, a window of 5 x 5, stride 2; then 32 channels, 3 x 3, and pooling
 * over 2 x 2; then a layer that adds its input before the relu. The borders are padded, so that a layer without stride and
 * pooling keeps the size. */
enum { AT_MOST_CONVOLUTIONS = 16 };
typedef struct at_convolution {
    int64_t channels, window, stride, pool; /* stride, pool 1: none */
    bool residual;                          /* relu(x + norm(conv(x))) in place of relu(norm(conv(x))) */
    int w, gain, bias;                      /* NAME.1.W [channels, window * window * in], NAME.1.g, NAME.1.b */
} at_convolution;
typedef struct at_convolutions {
    int count;
    at_convolution layer[AT_MOST_CONVOLUTIONS];
} at_convolutions;
bool at_convolutions_parse(const char *text, at_convolutions *layers, at_error *error);
/* Parameters for pictures of `in` channels. */
bool at_convolutions_declare(at_params *params, const char *name, int64_t in, at_convolutions *layers, at_error *error);
/* The size of the grid that a picture becomes: always at least 1 x 1. */
void at_convolutions_size(const at_convolutions *layers, int64_t *height, int64_t *width);
/* x [cells, in] -> [cells of *out, channels of the last layer]. groups: of the norm; 1 is layer norm of a picture. */
at_tensor *at_convolutions_apply(at_tape *tape, at_params *params, const at_convolutions *layers, at_tensor *x,
                                 const at_grids *in, int64_t groups, at_grids *out);

/* Initial values, drawn from the seed and the name, so that adding a parameter changes no other: uniform in +-scale, or
 * normal. */
void at_init_uniform(at_params *params, int index, double scale, uint64_t seed);
void at_init_normal(at_params *params, int index, double deviation, uint64_t seed);
void at_init_orthogonal(at_params *params, int index, uint64_t seed); /* square blocks stacked */
/* All of them, by what their names say: NAME.U recurrent, orthogonal; NAME.b zeros, but ones for an lstm's forget gate;
 * NAME.g ones; NAME.E embeddings, normal with deviation 0.1; other matrices [out,in] uniform in +-sqrt(3/in), which
 * keeps the variance; other vectors uniform in +-1/sqrt(size). */
void at_init_all(at_params *params, uint64_t seed);

#endif
