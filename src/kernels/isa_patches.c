/* The inner loops of products of patches. A block of rows meets one panel of B at a time, and of it DEPTH rows, which stay in
 * L1; the sums wait in a block of their own. The rows of A are found through pointers, one for each row of a group. */
#include "kernels/activate_internal.h"
#include "kernels/isa_internal.h"
#include "kernels/micro_internal.h"

enum { DEPTH = AT_VECTOR_BYTES < 64 ? 384 : 192, BLOCK = 96 };

/* Rows of A and C, and a part of k: `spans` spans of `steps` steps. */
typedef struct patch_block {
    const at_real *const *a; /* [rows] */
    int64_t from;            /* where the part begins in them */
    int64_t spans, steps, a_span, a_step;
    const at_real *b;    /* [spans * steps, WIDTH] */
    at_real *sums;       /* [rows, WIDTH] */
    at_real *const *c;   /* [rows] */
    int64_t column;      /* of C */
    bool zero;           /* the chains start from 0, or */
    bool load, store;    /* C in place of the sums: where they start from, and where they go */
    const at_real *bias; /* [WIDTH] or NULL */
    bool relu;
} patch_block;

/* halves: vectors of a row, 1 or 2 */
INLINE void patch_rows(const int rows, const int halves, const patch_block *block)
{
    vec acc[ROWS][2];
    const at_real *a[ROWS], *b = block->b;
    if (block->zero || !block->load)
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
            for (int h = 0; h < halves; h++)
                acc[i][h] = block->zero ? v_set(0) : v_load(block->sums + i * WIDTH + h * LANES);
    else
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
            for (int h = 0; h < halves; h++)
                acc[i][h] = v_load(block->c[i] + block->column + h * LANES);
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
        a[i] = block->a[i] + block->from;
    const int64_t jump = block->a_span - block->steps * block->a_step;
    int64_t at = 0;
    for (int64_t span = 0; span < block->spans; span++, at += jump)
        for (int64_t step = 0; step < block->steps; step++, at += block->a_step, b += WIDTH) {
            vec low = v_load(b), high = halves > 1 ? v_load(b + LANES) : low;
#pragma GCC unroll 6
            for (int i = 0; i < rows; i++) {
                const vec x = v_set(a[i][at]);
                acc[i][0] = v_fma(x, low, acc[i][0]);
                if (halves > 1)
                    acc[i][1] = v_fma(x, high, acc[i][1]);
            }
        }
    if (block->bias) {
        const vec low = v_load(block->bias), high = v_load(block->bias + LANES);
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) {
            acc[i][0] += low;
            if (halves > 1)
                acc[i][1] += high;
        }
    }
    if (block->relu)
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
            for (int h = 0; h < halves; h++)
                acc[i][h] = activate(acc[i][h], AT_ACT_RELU);
    if (block->store)
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
            for (int h = 0; h < halves; h++)
                v_store(block->c[i] + block->column + h * LANES, acc[i][h]);
    else
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
            for (int h = 0; h < halves; h++)
                v_store(block->sums + i * WIDTH + h * LANES, acc[i][h]);
}

/* The same for 1 to ROWS rows. */
INLINE void patch_group(int rows, const int halves, const patch_block *block)
{
    switch (rows) {
    case 6:
        patch_rows(6, halves, block);
        break;
    case 5:
        patch_rows(5, halves, block);
        break;
    case 4:
        patch_rows(4, halves, block);
        break;
    case 3:
        patch_rows(3, halves, block);
        break;
    case 2:
        patch_rows(2, halves, block);
        break;
    case 1:
        patch_rows(1, halves, block);
        break;
    }
}

static void one_half(int rows, const patch_block *block)
{
    patch_group(rows, 1, block);
}

static void two_halves(int rows, const patch_block *block)
{
    patch_group(rows, 2, block);
}

INLINE int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Where the rows of a block are in A and C. */
typedef struct places {
    const at_real *a[BLOCK];
    at_real *c[BLOCK];
    int64_t rows, groups, start[BLOCK / ROWS + 1]; /* the first row of each group */
} places;

static void find_places(const at_patch_product *p, int64_t from, int64_t rows, places *at)
{
    int64_t line = from / p->cells, cell = from % p->cells;
    at->rows = rows;
    at->groups = (rows + ROWS - 1) / ROWS;
    for (int64_t g = 0; g <= at->groups; g++)
        at->start[g] = rows * g / at->groups;
    for (int64_t i = 0; i < rows; i++) {
        at->a[i] = p->a + line * p->a_line + cell * p->a_cell;
        at->c[i] = p->c + line * p->c_line + cell * p->c_cell;
        if (++cell == p->cells) {
            cell = 0;
            line++;
        }
    }
}

/* The part of k from (span, step) on. */
typedef struct part {
    int64_t span, step, spans, steps;
} part;

/* Several whole spans, or a part of one. False: there is none left. */
static bool next_part(const at_patch_product *p, part *k)
{
    k->step += k->steps;
    if (k->spans && k->step >= p->steps) {
        k->span += k->spans;
        k->step = 0;
    }
    if (k->span >= p->spans || p->steps == 0)
        return false;
    const int64_t pieces = (p->steps + DEPTH - 1) / DEPTH;
    k->steps = least(p->steps - k->step, (p->steps + pieces - 1) / pieces);
    k->spans = p->steps <= DEPTH ? least(p->spans - k->span, DEPTH / p->steps) : 1;
    return true;
}

/* The columns j .. j + columns - 1 of C for a block of rows. */
static void panel(const at_patch_product *p, const places *at, int64_t j, int64_t columns)
{
    at_real sums[BLOCK * WIDTH] __attribute__((aligned(64))), bias[WIDTH] = {0};
    const int halves = columns > LANES ? 2 : 1;
    const bool whole = halves * LANES == columns; /* C itself can be read and written */
    const int64_t terms = p->spans * p->steps;
    if (p->bias)
        memcpy(bias, p->bias + j, (size_t)columns * sizeof *bias);
    for (int64_t i = 0; p->accumulate && !whole && i < at->rows; i++) {
        memset(sums + i * WIDTH, 0, WIDTH * sizeof *sums);
        memcpy(sums + i * WIDTH, at->c[i] + j, (size_t)columns * sizeof *sums);
    }
    part k = {0};
    bool more = next_part(p, &k), first = true;
    do {
        part next = k;
        const bool last = !more || !next_part(p, &next);
        const int64_t deep = k.spans * k.steps, share = deep / at->rows + 1;
        patch_block block = {.from = k.span * p->a_span + k.step * p->a_step,
                             .spans = more ? k.spans : 0,
                             .steps = k.steps,
                             .a_span = p->a_span,
                             .a_step = p->a_step,
                             .b = p->packed + j * terms + (k.span * p->steps + k.step) * WIDTH,
                             .column = j,
                             .zero = first && !p->accumulate,
                             .load = first && whole,
                             .store = last && whole,
                             .bias = last && p->bias ? bias : NULL,
                             .relu = last && p->act == AT_ACT_RELU};
        for (int64_t g = 0; g < at->groups; g++) {
            const int64_t i = at->start[g], end = at->start[g + 1];
            for (int64_t r = i * share; terms > DEPTH && r < end * share; r++)
                __builtin_prefetch(block.b + (deep + r) * WIDTH, 0, 2); /* a part of the rows of B that follow */
            block.a = at->a + i;
            block.c = at->c + i;
            block.sums = sums + i * WIDTH;
            (halves == 1 ? one_half : two_halves)((int)(end - i), &block);
        }
        first = false;
        k = next;
        more = !last;
    } while (more);
    const bool finish = p->act == AT_ACT_TANH || p->act == AT_ACT_SIGMOID;
    for (int64_t i = 0; i < at->rows && (finish || !whole); i++) {
        at_real *row = whole ? at->c[i] + j : sums + i * WIDTH;
        for (int64_t l = 0; finish && l < halves * LANES; l += LANES)
            v_store(row + l, activate(v_load(row + l), p->act));
        if (!whole)
            memcpy(at->c[i] + j, row, (size_t)columns * sizeof *row);
    }
}

static void rows(const at_patch_product *p, int64_t from, int64_t to)
{
    places at;
    for (int64_t begin = from; begin < to; begin += BLOCK) {
        find_places(p, begin, least(to - begin, BLOCK), &at);
        for (int64_t j = 0; j < p->n; j += WIDTH)
            panel(p, &at, j, least(p->n - j, WIDTH));
    }
}

const patch_kernels AT_ISA_NAME(at_patch_kernels) = {rows};
