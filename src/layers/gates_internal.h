/* The recurrent cells between their matrix products, one row of the batch at a time. A step and a whole sequence use the
 * same functions, so they return the same bits. */
#ifndef AT_GATES_INTERNAL_H
#define AT_GATES_INTERNAL_H

#include "layers/layers.h"

/* One row of one step. H numbers each unless said; c is the lstm's alone. */
typedef struct at_gate_row {
    const at_real *x, *u;   /* [gates*H]: W x + b, and U h' [first*H] */
    const at_real *u_reset; /* U (r o h'), if there is a reset */
    const at_real *h0, *c0;
    at_real *reset; /* r o h' */
    at_real *h1, *c1;
    at_real *saved; /* [saved*H], for the backward pass */
} at_gate_row;

/* The same in the backward pass: h1_grad and c1_grad are its inputs. */
typedef struct at_gate_back {
    at_gate_row row;
    const at_real *h1_grad, *c1_grad;
    at_real *x_grad, *u_grad;   /* [gates*H] and [first*H], set */
    at_real *u_reset_grad;      /* set, if there is a reset */
    const at_real *reset_grad;  /* gradient of r o h', by way of U (r o h') */
    at_real *h0_grad, *c0_grad; /* set; the part by way of U h' is not in h0_grad */
} at_gate_back;

/* A cell with `reset` has a second product in every step: reset computes r o h', forward continues with U (r o h'). Its
 * backward pass is backward, then the product, then reset_backward. */
typedef struct at_gates {
    const char *name;
    int gates, first, saved; /* first: the gates that use U h'; saved: vectors of H numbers */
    bool has_c;
    void (*forward)(const at_gate_row *row, int64_t hidden);
    void (*backward)(const at_gate_back *back, int64_t hidden);
    void (*reset)(const at_gate_row *row, int64_t hidden);
    void (*reset_backward)(const at_gate_back *back, int64_t hidden); /* adds to h0_grad */
} at_gates;

const at_gates *at_gates_of(at_cell_kind kind);

/* grad += x; NULL: not needed. */
void at_grad_add(at_real *grad, const at_real *x, int64_t count);

#endif
