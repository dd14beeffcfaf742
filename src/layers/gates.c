#include "layers/gates_internal.h"

#include "kernels/activate.h"
#include "kernels/rows.h"

/* ---- rnn: h = tanh(x + u) ---- */

static void rnn_forward(const at_gate_row *row, int64_t hidden)
{
    for (int64_t i = 0; i < hidden; i++)
        row->h1[i] = row->x[i] + row->u[i];
    at_rows_tanh(row->h1, row->h1, hidden);
}

/* dx = du = dh (1 - h^2) */
static void rnn_backward(const at_gate_back *back, int64_t hidden)
{
    const at_real *h = back->row.h1;
    for (int64_t i = 0; i < hidden; i++) {
        back->x_grad[i] = back->u_grad[i] = back->h1_grad[i] * at_tanh_slope(h[i]);
        back->h0_grad[i] = 0;
    }
}

/* ---- gru: r = s(x_r + u_r)  z = s(x_z + u_z)  n = tanh(x_n + U (r o h'))  h = z o h' + (1 - z) o n ----
 *
 * Saved: r, z, n. */

/* r, z and r o h' */
static void gru_reset(const at_gate_row *row, int64_t hidden)
{
    at_real *r = row->saved;
    for (int64_t i = 0; i < 2 * hidden; i++)
        r[i] = row->x[i] + row->u[i];
    at_rows_sigmoid(r, r, 2 * hidden);
    for (int64_t i = 0; i < hidden; i++)
        row->reset[i] = r[i] * row->h0[i];
}

static void gru_forward(const at_gate_row *row, int64_t hidden)
{
    at_real *z = row->saved + hidden, *n = z + hidden;
    for (int64_t i = 0; i < hidden; i++)
        n[i] = row->x[2 * hidden + i] + row->u_reset[i];
    at_rows_tanh(n, n, hidden);
    for (int64_t i = 0; i < hidden; i++)
        row->h1[i] = z[i] * row->h0[i] + (1 - z[i]) * n[i];
}

/* dh' = dh z;  dn = dh (1 - z) (1 - n^2) before its tanh;  dz = dh (h' - n) z (1 - z) */
static void gru_backward(const at_gate_back *back, int64_t hidden)
{
    const at_real *z = back->row.saved + hidden, *n = z + hidden;
    at_real *x_grad = back->x_grad;
    for (int64_t i = 0; i < hidden; i++) {
        at_real dh = back->h1_grad[i];
        at_real dz = dh * (back->row.h0[i] - n[i]) * at_sigmoid_slope(z[i]);
        x_grad[hidden + i] = back->u_grad[hidden + i] = dz;
        x_grad[2 * hidden + i] = back->u_reset_grad[i] = dh * (1 - z[i]) * at_tanh_slope(n[i]);
        back->h0_grad[i] = dh * z[i];
    }
}

/* With d = dn U, the gradient of r o h':  dr = d h' r (1 - r);  dh' += d r */
static void gru_reset_backward(const at_gate_back *back, int64_t hidden)
{
    const at_real *r = back->row.saved, *d = back->reset_grad;
    for (int64_t i = 0; i < hidden; i++) {
        back->x_grad[i] = back->u_grad[i] = d[i] * back->row.h0[i] * at_sigmoid_slope(r[i]);
        back->h0_grad[i] += d[i] * r[i];
    }
}

/* ---- gru, reset after: n = tanh(x_n + r o u_n), the rest as above ----
 *
 * Saved: r, z, n, u_n. */

static void gru_after_forward(const at_gate_row *row, int64_t hidden)
{
    const at_real *x = row->x, *u = row->u, *u_n = u + 2 * hidden;
    at_real *r = row->saved, *z = r + hidden, *n = z + hidden, *saved_u = n + hidden;
    for (int64_t i = 0; i < 2 * hidden; i++)
        r[i] = x[i] + u[i];
    at_rows_sigmoid(r, r, 2 * hidden);
    for (int64_t i = 0; i < hidden; i++) {
        n[i] = x[2 * hidden + i] + r[i] * u_n[i];
        saved_u[i] = u_n[i];
    }
    at_rows_tanh(n, n, hidden);
    for (int64_t i = 0; i < hidden; i++)
        row->h1[i] = z[i] * row->h0[i] + (1 - z[i]) * n[i];
}

/* dh' = dh z;  dn = dh (1 - z) (1 - n^2) before its tanh;  dz = dh (h' - n) z (1 - z);  dr = dn u_n r (1 - r) */
static void gru_after_backward(const at_gate_back *back, int64_t hidden)
{
    const at_real *r = back->row.saved, *z = r + hidden, *n = z + hidden, *u_n = n + hidden;
    at_real *x_grad = back->x_grad, *u_grad = back->u_grad;
    for (int64_t i = 0; i < hidden; i++) {
        at_real dh = back->h1_grad[i], dn = dh * (1 - z[i]) * at_tanh_slope(n[i]);
        at_real dr = dn * u_n[i] * at_sigmoid_slope(r[i]);
        at_real dz = dh * (back->row.h0[i] - n[i]) * at_sigmoid_slope(z[i]);
        x_grad[i] = u_grad[i] = dr;
        x_grad[hidden + i] = u_grad[hidden + i] = dz;
        x_grad[2 * hidden + i] = dn;
        u_grad[2 * hidden + i] = dn * r[i];
        back->h0_grad[i] = dh * z[i];
    }
}

/* ---- lstm: i, f, o = s(x + u)  g = tanh(x_g + u_g)  c = f o c' + i o g  h = o o tanh(c) ----
 *
 * Saved: i, f, o, g, tanh(c). */

static void lstm_forward(const at_gate_row *row, int64_t hidden)
{
    at_real *in = row->saved, *forget = in + hidden, *out = forget + hidden, *g = out + hidden, *t = g + hidden;
    for (int64_t i = 0; i < 4 * hidden; i++)
        in[i] = row->x[i] + row->u[i];
    at_rows_sigmoid(in, in, 3 * hidden);
    at_rows_tanh(g, g, hidden);
    for (int64_t i = 0; i < hidden; i++)
        row->c1[i] = forget[i] * row->c0[i] + in[i] * g[i];
    at_rows_tanh(t, row->c1, hidden);
    for (int64_t i = 0; i < hidden; i++)
        row->h1[i] = out[i] * t[i];
}

/* With d = dc + dh o (1 - tanh(c)^2):  di = d g, df = d c', do = dh tanh(c), dg = d i, each through its function;
 * dc' = d f */
static void lstm_backward(const at_gate_back *back, int64_t hidden)
{
    const at_real *in = back->row.saved, *forget = in + hidden, *out = forget + hidden, *g = out + hidden,
                  *t = g + hidden;
    at_real *x_grad = back->x_grad;
    for (int64_t i = 0; i < hidden; i++) {
        at_real dh = back->h1_grad[i], d = back->c1_grad[i] + dh * out[i] * at_tanh_slope(t[i]);
        x_grad[i] = d * g[i] * at_sigmoid_slope(in[i]);
        x_grad[hidden + i] = d * back->row.c0[i] * at_sigmoid_slope(forget[i]);
        x_grad[2 * hidden + i] = dh * t[i] * at_sigmoid_slope(out[i]);
        x_grad[3 * hidden + i] = d * in[i] * at_tanh_slope(g[i]);
        back->c0_grad[i] = d * forget[i];
        back->h0_grad[i] = 0;
    }
    for (int64_t i = 0; i < 4 * hidden; i++)
        back->u_grad[i] = x_grad[i];
}

static const at_gates table[] = {
    [AT_CELL_RNN] = {"rnn", 1, 1, 0, false, rnn_forward, rnn_backward, NULL, NULL},
    [AT_CELL_GRU] = {"gru", 3, 2, 3, false, gru_forward, gru_backward, gru_reset, gru_reset_backward},
    [AT_CELL_LSTM] = {"lstm", 4, 4, 5, true, lstm_forward, lstm_backward, NULL, NULL},
    [AT_CELL_GRU_AFTER] = {"gru, reset after", 3, 3, 4, false, gru_after_forward, gru_after_backward, NULL, NULL},
    [AT_CELL_GRU_BIAS] = {"gru, reset after a bias", 3, 3, 4, false, gru_after_forward, gru_after_backward, NULL, NULL},
};

const at_gates *at_gates_of(at_cell_kind kind)
{
    return &table[kind];
}

void at_grad_add(at_real *grad, const at_real *x, int64_t count)
{
    for (int64_t i = 0; grad && i < count; i++)
        grad[i] += x[i];
}
