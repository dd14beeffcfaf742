/* Rotary positions: the pair (x_2c, x_2c+1) of a head at position p is rotated by the angle p 10000^(-2c/D). */
#include <math.h>
#include <string.h>

#include "tape/block.h"
#include "tape/ops.h"

/* The first `heads` heads of `size` numbers of each row are rotated; the rest is copied. */
typedef struct rotation {
    int64_t width, heads, size;
    const int32_t *positions; /* [N]: rows of the table */
    const at_real (*turn)[2]; /* [positions, size/2]: cos and sin */
    at_real *to;
    const at_real *from;
} rotation;

typedef struct turning {
    int64_t size, start;
    const double *rates; /* [size/2]: 10000^(-2c/D) */
    at_real (*turn)[2];
} turning;

/* The angles are taken in double: at position 10^5 a float angle is off by some thousandths. */
static void turn_range(void *context, int64_t from, int64_t to)
{
    const turning *t = context;
    const int64_t pairs = t->size / 2;
    for (int64_t position = from; position < to; position++)
        for (int64_t c = 0; c < pairs; c++) {
            const double angle = (double)(t->start + position) * t->rates[c];
            t->turn[position * pairs + c][0] = (at_real)cos(angle);
            t->turn[position * pairs + c][1] = (at_real)sin(angle);
        }
}

/* Cosines and sines of positions start .. start + count - 1, on the tape. */
static const at_real (*turns_of(at_tape *tape, int64_t start, int64_t count, int64_t size))[2]
{
    double *rates = at_room(tape, (size_t)(size / 2) * sizeof *rates);
    turning t = {.size = size, .start = start, .rates = rates};
    t.turn = at_room(tape, (size_t)(count * (size / 2)) * sizeof *t.turn + 1);
    if (!rates || !t.turn)
        return NULL;
    for (int64_t c = 0; c < size / 2; c++)
        rates[c] = pow(10000, -(double)(2 * c) / (double)size);
    at_ranges(count, 8 * size, turn_range, &t); /* a cosine is some numbers' work */
    return (const at_real(*)[2])t.turn;
}

/* y_2c = x_2c cos - x_2c+1 sin,  y_2c+1 = x_2c sin + x_2c+1 cos */
static void rotate_range(void *context, int64_t from, int64_t to)
{
    const rotation *r = context;
    const int64_t rotated = r->heads * r->size, pairs = r->size / 2;
    for (int64_t row = from; row < to; row++) {
        const at_real(*turn)[2] = r->turn + r->positions[row] * pairs;
        const at_real *x = r->from + row * r->width;
        at_real *y = r->to + row * r->width;
        for (int64_t h = 0; h < r->heads; h++, x += r->size, y += r->size)
            for (int64_t c = 0; c < pairs; c++) {
                const at_real even = x[2 * c], odd = x[2 * c + 1];
                y[2 * c] = even * turn[c][0] - odd * turn[c][1];
                y[2 * c + 1] = even * turn[c][1] + odd * turn[c][0];
            }
        memcpy(y, x, (size_t)(r->width - rotated) * sizeof *y);
    }
}

/* dx += g rotated back by the same angle */
static void rotate_back_range(void *context, int64_t from, int64_t to)
{
    const rotation *r = context;
    const int64_t rotated = r->heads * r->size, pairs = r->size / 2;
    for (int64_t row = from; row < to; row++) {
        const at_real(*turn)[2] = r->turn + r->positions[row] * pairs;
        const at_real *g = r->from + row * r->width;
        at_real *dx = r->to + row * r->width;
        for (int64_t h = 0; h < r->heads; h++, g += r->size, dx += r->size)
            for (int64_t c = 0; c < pairs; c++) {
                const at_real even = g[2 * c], odd = g[2 * c + 1];
                dx[2 * c] += even * turn[c][0] + odd * turn[c][1];
                dx[2 * c + 1] += odd * turn[c][0] - even * turn[c][1];
            }
        for (int64_t c = 0; c < r->width - rotated; c++)
            dx[c] += g[c];
    }
}

static void rotate_backward(at_node *node)
{
    rotation r = *(const rotation *)node->saved;
    r.to = at_tensor_grad(node->inputs[0]);
    r.from = node->outputs[0]->grad;
    if (r.to)
        at_ranges(node->inputs[0]->shape.dim[0], r.width, rotate_back_range, &r);
}

static const at_op rotate_op = {"rotate", rotate_backward};

at_tensor *at_rotate_rows(at_tensor *x, const int32_t *positions, int64_t start, int64_t heads, int64_t size)
{
    if (!x)
        return NULL;
    const at_shape s = x->shape;
    if (s.rank != 2 || size < 2 || size % 2 != 0 || heads < 1 || heads > s.dim[1] / size)
        return AT_REFUSE(x->tape, AT_SHAPE,
                         "rotate: the input is %s and must be [N,width] with %lld heads of %lld numbers, an "
                         "even number, since pairs are rotated",
                         AT_TEXT(s), (long long)heads, (long long)size);
    int64_t count = 0;
    for (int64_t row = 0; row < s.dim[0]; row++)
        count = positions[row] >= count ? positions[row] + 1 : count;
    rotation r = {.width = s.dim[1], .heads = heads, .size = size, .positions = positions};
    r.turn = turns_of(x->tape, start, count, size);
    at_tensor *y = at_tensor_make(x->tape, s);
    void *saved = y && r.turn ? at_keep(x->tape, &r, sizeof r) : NULL;
    if (!saved)
        return NULL;
    r.from = x->value;
    r.to = y->value;
    at_ranges(s.dim[0], r.width, rotate_range, &r);
    return at_record_one(&rotate_op, y, &x, 1, saved);
}

at_tensor *at_rotate(at_tensor *x, int64_t start)
{
    if (!x)
        return NULL;
    const at_shape s = x->shape;
    if (s.rank != 4 || s.dim[3] % 2 != 0)
        return AT_REFUSE(x->tape, AT_SHAPE,
                         "rotate: the input is %s and must be [B,n,H,D] with an even D, since pairs are rotated",
                         AT_TEXT(s));
    const int64_t rows = s.dim[0] * s.dim[1];
    int32_t *positions = at_room(x->tape, (size_t)(rows + 1) * sizeof *positions);
    for (int64_t row = 0; positions && row < rows; row++)
        positions[row] = (int32_t)(row % s.dim[1]);
    at_tensor *flat = positions ? at_reshape(x, AT_SHAPE(rows, s.dim[2] * s.dim[3])) : NULL;
    return flat ? at_reshape(at_rotate_rows(flat, positions, start, s.dim[2], s.dim[3]), s) : NULL;
}
