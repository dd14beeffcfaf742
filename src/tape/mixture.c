/* The logarithm of a mixture of softmaxes. */
#include <math.h>
#include <string.h>

#include "kernels/isa.h"
#include "kernels/passes.h"
#include "kernels/rows.h"
#include "tape/block.h"
#include "tape/ops.h"

/* ---- log_mixture: y_v = log sum_j w_j p_jv, p_j = softmax(z_j), for each row n ----
 *
 * y_v = log sum_j e^(z_jv - m_j + c_j),  m_j = max_u z_ju,  c_j = log w_j - log sum_u e^(z_ju - m_j), with the largest term
 * of each sum taken out. Parts with w_j <= 0 are not read; a row without any other has y = 0. The share of part j in y_v
 * is r_jv = e^(z_jv - m_j + c_j - y_v). Backward, with g = dL/dy and G_j = sum_v g_v r_jv:
 *
 *     dw_j = G_j / w_j (0 where w_j is 0),   dz_jv = g_v r_jv - p_jv G_j
 *
 * The gradient of the logits overwrites them where nothing else needs them. */

typedef struct part {
    at_real max, c; /* m_j, c_j */
} part;

typedef struct mixture {
    int64_t parts, size; /* J, V */
    const at_real *z;    /* [N,J,V] */
    const at_real *w;    /* [N,J] */
    at_real *y;          /* [N,V] */
    part *known;         /* [N,J] */
    at_real *room;       /* [N,2,V] */
    const at_real *g;    /* the backward pass */
    at_real *z_grad, *w_grad;
    bool add; /* to z_grad */
} mixture;

static void mix_row(const mixture *m, int64_t n)
{
    const int64_t J = m->parts, V = m->size;
    const at_real *z = m->z + n * J * V, *w = m->w + n * J;
    part *known = m->known + n * J;
    at_real *y = m->y + n * V, *top = m->room + n * 2 * V, *term = top + V;
    bool any = false;
    for (int64_t j = 0; j < J; j++) {
        if (!(w[j] > 0))
            continue;
        const log_sum_row l = at_isa()->passes->log_sum(z + j * V, V);
        known[j] = (part){l.max, (at_real)(log((double)w[j]) - log(l.sum))};
        for (int64_t v = 0; v < V; v++) {
            const at_real now = z[j * V + v] - known[j].max + known[j].c;
            top[v] = !any || now > top[v] ? now : top[v];
        }
        any = true;
    }
    memset(y, 0, (size_t)V * sizeof *y);
    for (int64_t j = 0; j < J; j++) {
        if (!(w[j] > 0))
            continue;
        for (int64_t v = 0; v < V; v++)
            term[v] = z[j * V + v] - known[j].max + known[j].c - top[v];
        at_rows_exp(term, term, V);
        for (int64_t v = 0; v < V; v++)
            y[v] += term[v];
    }
    for (int64_t v = 0; any && v < V; v++)
        y[v] = top[v] + AT_REAL(log)(y[v]);
}

static void mix_rows(void *context, int64_t from, int64_t to)
{
    for (int64_t n = from; n < to; n++)
        mix_row(context, n);
}

static void part_back(const mixture *m, int64_t n, int64_t j)
{
    const int64_t V = m->size, at = n * m->parts + j;
    const at_real *z = m->z + at * V, *y = m->y + n * V, *g = m->g + n * V;
    at_real *share = m->room + n * 2 * V, *p = share + V, *grad = m->z_grad ? m->z_grad + at * V : NULL;
    const part known = m->known[at];
    const at_real w = m->w[at];
    if (!(w > 0)) {
        if (grad && !m->add)
            memset(grad, 0, (size_t)V * sizeof *grad);
        return;
    }
    for (int64_t v = 0; v < V; v++) {
        p[v] = z[v] - known.max + known.c;
        share[v] = p[v] - y[v];
    }
    at_rows_exp(share, share, V); /* r_jv */
    at_rows_exp(p, p, V);         /* w_j p_jv */
    double sum = 0;
    for (int64_t v = 0; v < V; v++)
        sum += (double)(g[v] * share[v]);
    const at_real each = (at_real)(sum / (double)w);
    if (m->w_grad)
        m->w_grad[at] += each;
    for (int64_t v = 0; grad && v < V; v++)
        grad[v] = (m->add ? grad[v] : 0) + g[v] * share[v] - each * p[v];
}

static void mix_back_rows(void *context, int64_t from, int64_t to)
{
    const mixture *m = context;
    for (int64_t n = from; n < to; n++)
        for (int64_t j = 0; j < m->parts; j++)
            part_back(m, n, j);
}

static void log_mixture_backward(at_node *node)
{
    mixture m = *(const mixture *)node->saved;
    at_tensor *y = node->outputs[0];
    m.w_grad = at_tensor_grad(node->inputs[1]);
    m.z_grad = at_tensor_grad_over(node->inputs[0], &m.add);
    m.g = y->grad;
    at_ranges(y->shape.dim[0], m.parts * m.size, mix_back_rows, &m);
}

static const at_op log_mixture_op = {"log_mixture", log_mixture_backward};

at_tensor *at_log_mixture(at_tensor *logits, at_tensor *weights)
{
    if (!logits || !weights)
        return NULL;
    at_tape *tape = logits->tape;
    const at_shape *z = &logits->shape, *w = &weights->shape;
    if (z->rank != 3 || w->rank != 2 || z->dim[0] != w->dim[0] || z->dim[1] != w->dim[1] || z->dim[2] < 1)
        return AT_REFUSE(tape, AT_SHAPE,
                         "log_mixture: the logits are %s and must be [N,J,V]; the weights are %s and must be [N,J]",
                         AT_TEXT(logits->shape), AT_TEXT(weights->shape));
    const int64_t N = z->dim[0], J = z->dim[1], V = z->dim[2];
    at_tensor *y = at_tensor_make(tape, AT_SHAPE(N, V));
    mixture m = {.parts = J,
                 .size = V,
                 .z = logits->value,
                 .w = weights->value,
                 .y = y ? y->value : NULL,
                 .known = at_room(tape, (size_t)(N * J) * sizeof *m.known),
                 .room = at_room(tape, (size_t)(N * 2 * V) * sizeof *m.room)};
    if (!y || !m.known || !m.room)
        return NULL;
    at_ranges(N, J * V, mix_rows, &m);
    return at_record_one(&log_mixture_op, y, (at_tensor *[]){logits, weights}, 2, at_keep(tape, &m, sizeof m));
}
