/* Products with weights of fewer bits (narrow.h). Few rows are bound by reading the weights: they are widened in registers.
 * With more rows a panel is widened for a block of them (isa_gemm.c). */
#include "kernels/activate_internal.h"
#include "kernels/isa_internal.h"
#include "kernels/micro_internal.h"

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

/* c = act(c s + bias) over rows x columns, a multiple of LANES; fused as in micro_rows. */
INLINE void finish(const at_gemm *g, at_real *c, int64_t c_row, int rows, int64_t columns, const at_real *scale,
                   const at_real *bias)
{
    for (int i = 0; i < rows && (g->bias || g->act || scale); i++)
        for (int64_t j = 0; j < columns; j += LANES) {
            vec y = v_load(c + i * c_row + j);
            y = scale ? v_fma(y, v_load(scale + j), v_load(bias + j)) : g->bias ? y + v_load(bias + j) : y;
            v_store(c + i * c_row + j, activate(y, g->act));
        }
}

/* rows x (panels*WIDTH) of C from `column` on. The last panel may be cut off: it is then computed in memory of its own. */
INLINE void block_of(const int rows, const int panels, const at_number_type type, const at_gemm *g, int64_t column)
{
    at_real own[ROWS * WIDTH], bias[4 * WIDTH] = {0};
    const int64_t wide = panels * WIDTH, columns = g->n - column < wide ? g->n - column : wide;
    const bool whole = columns == wide;
    const micro_block block = {.k = g->k,
                               .a = g->a,
                               .a_row = g->a_row,
                               .a_col = g->a_col,
                               .b = (const void *)((const char *)g->narrow.numbers + column * g->k * number_size(type)),
                               .b_row = WIDTH,
                               .b_panel = g->k * WIDTH,
                               .c = whole ? g->c + column : own,
                               .c_row = whole ? g->c_row : WIDTH};
    micro_widened(rows, panels, type, &block);
    if (g->bias)
        memcpy(bias, g->bias + column, (size_t)columns * sizeof *bias);
    finish(g, block.c, block.c_row, rows, wide, type == AT_NUMBERS_INT8 ? g->narrow.scale + column : NULL, bias);
    for (int i = 0; i < rows && !whole; i++)
        memcpy(g->c + i * g->c_row + column, own + i * WIDTH, (size_t)columns * sizeof *own);
}

INLINE void rows_of(const int rows, const int panels, const at_number_type type, const at_gemm *g)
{
    int64_t column = 0;
    for (; column + panels * WIDTH <= g->n; column += panels * WIDTH)
        block_of(rows, panels, type, g, column);
    for (; column < g->n; column += WIDTH)
        block_of(rows, 1, type, g, column);
}

INLINE void few_rows(const at_number_type type, const at_gemm *g)
{
    switch (g->m) {
    case 1:
        rows_of(1, 4, type, g);
        break;
    case 2:
        rows_of(2, 3, type, g);
        break;
    case 3:
        rows_of(3, 2, type, g);
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
    if (g->narrow.type == AT_NUMBERS_BF16)
        few_rows(AT_NUMBERS_BF16, g);
    else if (g->narrow.type == AT_NUMBERS_F16)
        few_rows(AT_NUMBERS_F16, g);
    else
        few_rows(AT_NUMBERS_INT8, g);
}

const narrow_kernels AT_ISA_NAME(at_narrow_kernels) = {.widen = widen_all, .thin = thin, .most_rows = ROWS};
