/* The three recurrent cells, one row of the batch at a time: what lies between the products. A step and a whole
 * sequence are made of the same rows, so they cannot disagree. */
#ifndef AT_GATES_INTERNAL_H
#define AT_GATES_INTERNAL_H

#include "layers/layers.h"

/* One row of one step. H numbers each unless said; c is the lstm's alone. */
typedef struct at_gate_row {
    const at_real *x, *u; /* [gates*H]: W x + b, and U h' [first*H] */
    const at_real *again; /* U (r o h'), if there is a reset */
    const at_real *h0, *c0;
    at_real *reset; /* r o h' */
    at_real *h1, *c1;
    at_real *kept; /* [kept*H], for the way back */
} at_gate_row;

/* The same on the way back: h1_grad and c1_grad come in. */
typedef struct at_gate_back {
    at_gate_row row;
    const at_real *h1_grad, *c1_grad;
    at_real *x_grad, *u_grad;   /* [gates*H] and [first*H], set */
    at_real *again_grad;        /* set, if there is a reset */
    const at_real *reset_grad;  /* what comes to r o h' through U (r o h') */
    at_real *h0_grad, *c0_grad; /* set; what comes through U h' is not in h0_grad */
} at_gate_back;

/* A cell with `reset` has a second product in every step: reset makes r o h', forward goes on from U (r o h'). The way
 * back is backward, then the product, then reset_backward. */
typedef struct at_gates {
    const char *name;
    int gates, first, kept; /* first: those that see U h' */
    bool has_c;
    void (*forward)(const at_gate_row *row, int64_t hidden);
    void (*backward)(const at_gate_back *back, int64_t hidden);
    void (*reset)(const at_gate_row *row, int64_t hidden);
    void (*reset_backward)(const at_gate_back *back, int64_t hidden); /* adds to h0_grad */
} at_gates;

const at_gates *at_gates_of(at_cell_kind kind);

/* grad += x; NULL: nobody wants it. */
void at_grad_add(at_real *grad, const at_real *x, int64_t count);

#endif
