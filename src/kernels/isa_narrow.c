/* Products of few rows with packed weights of any type (narrow.h). Reading the weights bounds them; those of fewer
 * bits are widened in registers. With more rows a panel is widened for a block of them (isa_gemm.c). */
#include "kernels/activate_internal.h"
#include "kernels/isa_internal.h"
#include "kernels/micro_internal.h"

/* Streams of weights of a product with one row, and with two: each has two sums a row, and there must be enough of them
 * to hide the latency of a multiply-add. NEAR: bytes from what is used to what is prefetched. */
enum { STREAMS_1 = LANES < 8 ? 4 : 2, STREAMS_2 = 2, NEAR = 512 };

INLINE void widen_as(const at_number_type type, const void *from, int64_t count, at_real *to)
{
    for (int64_t at = 0; at < count; at += WIDTH) {
        vec low, high;
        widen(type, (const char *)from + at * number_size(type), &low, &high);
        v_store(to + at, low);
        v_store(to + at + LANES, high);
    }
}

static void widen_all(at_number_type type, const void *from, int64_t count, at_real *to)
{
    if (type == AT_NUMBERS_BF16)
        widen_as(AT_NUMBERS_BF16, from, count, to);
    else if (type == AT_NUMBERS_F16)
        widen_as(AT_NUMBERS_F16, from, count, to);
    else
        widen_as(AT_NUMBERS_INT8, from, count, to);
}

/* c = act(c s + bias) over rows x WIDTH; fused as in micro_rows. */
INLINE void finish(const at_gemm *g, at_real *c, int64_t c_row, int rows, const at_real *scale, const at_real *bias)
{
    for (int i = 0; i < rows && (g->bias || g->act || scale); i++)
        for (int64_t j = 0; j < WIDTH; j += LANES) {
            vec y = v_load(c + i * c_row + j);
            y = scale ? v_fma(y, v_load(scale + j), v_load(bias + j)) : g->bias ? y + v_load(bias + j) : y;
            v_store(c + i * c_row + j, activate(y, g->act));
        }
}

/* Panels side by side: how many, and how many columns from one to the next. `ahead`: numbers to the one that is
 * prefetched. */
typedef struct side_by_side {
    int panels;
    int64_t apart, ahead;
} side_by_side;

INLINE const void *weights_at(const at_number_type type, const at_gemm *g, int64_t column)
{
    const void *numbers = type == AT_NUMBERS_REAL ? (const void *)g->packed : g->narrow.numbers;
    return (const char *)numbers + column * g->k * number_size(type);
}

/* rows x WIDTH of C in each of the panels, from `column` on. The last panel of all may be cut off: it is then alone,
 * and computed in memory of its own. */
INLINE void block_of(const int rows, const side_by_side side, const at_number_type type, const at_gemm *g,
                     int64_t column)
{
    at_real own[ROWS * WIDTH], bias[WIDTH] = {0};
    const int64_t columns = g->n - column < WIDTH ? g->n - column : WIDTH;
    const bool whole = columns == WIDTH;
    const micro_block block = {.k = g->k,
                               .a = g->a,
                               .a_row = g->a_row,
                               .a_col = g->a_col,
                               .b = weights_at(type, g, column),
                               .b_row = WIDTH,
                               .b_panel = side.apart * g->k,
                               .ahead = side.ahead,
                               .c = whole ? g->c + column : own,
                               .c_row = whole ? g->c_row : WIDTH,
                               .c_panel = side.apart};
    micro_widened(rows, side.panels, type, &block);
    for (int64_t j = 0; j < side.panels * side.apart; j += side.apart) {
        if (g->bias)
            memcpy(bias, g->bias + column + j, (size_t)columns * sizeof *bias);
        finish(g, block.c + j, block.c_row, rows, type == AT_NUMBERS_INT8 ? g->narrow.scale + column + j : NULL, bias);
    }
    for (int i = 0; i < rows && !whole; i++)
        memcpy(g->c + i * g->c_row + column, own + i * WIDTH, (size_t)columns * sizeof *own);
}

/* The columns are divided among so many streams, each of which reads its part of the weights from beginning to end.
 * The machine's own prefetching follows a few long streams at nearly the full bandwidth, and loses those that jump
 * every few thousand bytes. With more rows one stream is enough, and slow enough for the next panel to be prefetched
 * whole. */
INLINE void rows_of(const int rows, const int streams, const at_number_type type, const at_gemm *g)
{
    const int64_t apart = g->n / (streams * WIDTH) * WIDTH, near = NEAR / number_size(type), far = g->k * WIDTH;
    const side_by_side side = {streams, apart, streams > 1 ? near : far}, alone = {1, WIDTH, far};
    for (int64_t column = 0; column < apart; column += WIDTH)
        block_of(rows, side, type, g, column);
    for (int64_t column = streams * apart; column < g->n; column += WIDTH)
        block_of(rows, alone, type, g, column);
}

INLINE void few_rows(const at_number_type type, const at_gemm *g)
{
    switch (g->m) {
    case 1:
        rows_of(1, STREAMS_1, type, g);
        break;
    case 2:
        rows_of(2, STREAMS_2, type, g);
        break;
    case 3:
        rows_of(3, 1, type, g);
        break;
    case 4:
        rows_of(4, 1, type, g);
        break;
    case 5:
        rows_of(5, 1, type, g);
        break;
    case 6:
        rows_of(6, 1, type, g);
        break;
    }
}

static void thin(const at_gemm *g)
{
    if (!g->narrow.numbers)
        few_rows(AT_NUMBERS_REAL, g);
    else if (g->narrow.type == AT_NUMBERS_BF16)
        few_rows(AT_NUMBERS_BF16, g);
    else if (g->narrow.type == AT_NUMBERS_F16)
        few_rows(AT_NUMBERS_F16, g);
    else
        few_rows(AT_NUMBERS_INT8, g);
}

const narrow_kernels AT_ISA_NAME(at_narrow_kernels) = {.widen = widen_all, .thin = thin, .most_rows = ROWS};
