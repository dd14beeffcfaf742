/* Max-pooling. */
#include <math.h>

#include "tape/block.h"
#include "tape/grid.h"
#include "tape/ops.h"

/* ---- max_pool: y_p = max of x under the window at p, for each channel; saved is which cell of the window it was ---- */

typedef struct pool {
    at_grids in, out;
    at_window window;
    int64_t channels;
    uint8_t *winner; /* [cells of out, channels]: the cell of the window, row by row */
    const at_real *x;
    at_real *y;
    /* the backward pass */
    const at_real *y_grad;
    at_real *x_grad;
} pool;

/* The cells of picture p under the window of its output cell (i, k): rows top .. bottom - 1, columns left .. right - 1,
 * clipped to the picture. */
typedef struct under {
    int64_t top, bottom, left, right, y, x; /* y, x: the window's own corner */
} under;

static under window_at(const pool *j, int64_t p, int64_t i, int64_t k)
{
    const at_window *w = &j->window;
    under u = {.y = i * w->stride - w->pad, .x = k * w->stride - w->pad};
    u.top = u.y < 0 ? 0 : u.y;
    u.left = u.x < 0 ? 0 : u.x;
    u.bottom = u.y + w->height < j->in.height[p] ? u.y + w->height : j->in.height[p];
    u.right = u.x + w->width < j->in.width[p] ? u.x + w->width : j->in.width[p];
    return u;
}

/* One output cell: the first of equals wins, and a NaN wherever it is. */
static void pool_cell(const pool *j, int64_t p, const under *u, int64_t cell)
{
    const int64_t C = j->channels;
    at_real *y = j->y + cell * C;
    uint8_t *winner = j->winner + cell * C;
    bool begun = false;
    for (int64_t i = u->top; i < u->bottom; i++)
        for (int64_t k = u->left; k < u->right; k++) {
            const at_real *x = j->x + (j->in.first[p] + i * j->in.width[p] + k) * C;
            const uint8_t here = (uint8_t)((i - u->y) * j->window.width + (k - u->x));
            for (int64_t c = 0; c < C; c++)
                if (!begun || x[c] > y[c] || isnan(x[c])) {
                    y[c] = x[c];
                    winner[c] = here;
                }
            begun = true;
        }
}

static void pool_pictures(void *context, int64_t from, int64_t to)
{
    const pool *j = context;
    for (int64_t p = from; p < to; p++)
        for (int64_t i = 0; i < j->out.height[p]; i++)
            for (int64_t k = 0; k < j->out.width[p]; k++) {
                const under u = window_at(j, p, i, k);
                pool_cell(j, p, &u, j->out.first[p] + i * j->out.width[p] + k);
            }
}

/* dx of the winner += g; windows may overlap, but only within a picture */
static void unpool_pictures(void *context, int64_t from, int64_t to)
{
    const pool *j = context;
    const int64_t C = j->channels, wide = j->window.width;
    for (int64_t p = from; p < to; p++)
        for (int64_t i = 0; i < j->out.height[p]; i++)
            for (int64_t k = 0; k < j->out.width[p]; k++) {
                const under u = window_at(j, p, i, k);
                const int64_t cell = j->out.first[p] + i * j->out.width[p] + k;
                for (int64_t c = 0; c < C; c++) {
                    const int64_t won = j->winner[cell * C + c];
                    const int64_t row = u.y + won / wide, column = u.x + won % wide;
                    j->x_grad[(j->in.first[p] + row * j->in.width[p] + column) * C + c] += j->y_grad[cell * C + c];
                }
            }
}

static int64_t work_of(const pool *j)
{
    return j->in.count ? j->in.first[j->in.count] / j->in.count * j->channels : 0;
}

static void max_pool_backward(at_node *node)
{
    pool j = *(const pool *)node->saved;
    j.x_grad = at_tensor_grad(node->inputs[0]);
    j.y_grad = node->outputs[0]->grad;
    if (j.x_grad)
        at_ranges(j.in.count, work_of(&j), unpool_pictures, &j);
}

static const at_op max_pool_op = {"max_pool", max_pool_backward};

at_tensor *at_max_pool(at_tensor *x, const at_grids *in, at_window window, const at_grids *out)
{
    if (!x || !in->first || !out->first)
        return NULL;
    const int64_t cells = in->first[in->count];
    if (x->shape.rank != 2 || x->shape.dim[0] != cells)
        return AT_REFUSE(x->tape, AT_SHAPE,
                         "max_pool: the input is %s and must be [%lld,channels], a row for each cell",
                         AT_TEXT(x->shape), (long long)cells);
    if (window.height * window.width > UINT8_MAX)
        return AT_REFUSE(x->tape, AT_USAGE, "max_pool: a window of %lld x %lld has more than %d cells",
                         (long long)window.height, (long long)window.width, UINT8_MAX);
    pool j = {.in = *in, .out = *out, .window = window, .channels = x->shape.dim[1], .x = x->value};
    at_tensor *y = at_tensor_make(x->tape, AT_SHAPE(out->first[out->count], j.channels));
    j.winner = y ? at_room(x->tape, (size_t)at_shape_count(y->shape)) : NULL;
    if (!j.winner)
        return NULL;
    j.y = y->value;
    at_ranges(in->count, work_of(&j), pool_pictures, &j);
    y->spare = true;
    return at_record_one(&max_pool_op, y, &x, 1, at_keep(x->tape, &j, sizeof j));
}
