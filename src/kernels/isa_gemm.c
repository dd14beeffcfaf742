/* The product's inner loops. Blocking (for a 32 KB L1 and a 512 KB L2): a panel of B, DEPTH x WIDTH, stays in L1 while
 * a block of A, up to BLOCK rows x DEPTH, streams past it from L2. Blocks change where numbers wait, never their order.
 */
#include "kernels/activate_internal.h"
#include "kernels/isa_internal.h"
#include "kernels/pack_internal.h"

enum { DEPTH = 256, DEPTHS = 4, BLOCK = 96, CHUNK = 16 * WIDTH, GROUP = ROWS * DEPTH + LANES };

/* Distance of packed panels: a little more than their size, or all of them would meet in the same sets of the L1 cache.
 */
enum { STEP = (DEPTH + 1) * WIDTH };

static void pack(const at_real *b, int64_t b_row, int64_t b_col, int64_t k, int64_t n, at_real *packed)
{
    for (int64_t j = 0; j < n; j += WIDTH)
        pack_panel(b + j * b_col, b_row, b_col, k, n - j < WIDTH ? n - j : WIDTH, packed + j * k);
}

/* A chunk of B, depth x columns, as panels `step` apart. Row-major B goes row by row through all panels, because its
 * rows may lie pages apart. */
static void pack_chunk(const at_real *b, int64_t b_row, int64_t b_col, int64_t depth, int64_t columns, at_real *to,
                       int64_t step)
{
    int64_t j = 0;
    if (b_col == 1) {
        int64_t whole = columns / WIDTH;
        for (int64_t p = 0; p < depth; p++)
            for (int64_t panel = 0; panel < whole; panel++) {
                v_store(to + panel * step + p * WIDTH, v_load(b + p * b_row + panel * WIDTH));
                v_store(to + panel * step + p * WIDTH + LANES, v_load(b + p * b_row + panel * WIDTH + LANES));
            }
        j = whole * WIDTH;
    }
    for (; j < columns; j += WIDTH)
        pack_panel(b + j * b_col, b_row, b_col, depth, columns - j < WIDTH ? columns - j : WIDTH,
                   to + j / WIDTH * step);
}

/* A block of A whose rows are not contiguous, `rows` x depth, in even groups of up to ROWS rows, each [depth][ROWS] and
 * GROUP apart. Where columns are contiguous they are read straight through; `room`: how many numbers may be read of
 * each. */
static void pack_rows(const at_real *a, int64_t a_row, int64_t a_col, int64_t rows, int64_t depth, int64_t room,
                      at_real *to)
{
    int64_t groups = (rows + ROWS - 1) / ROWS, vectors = 0, start[BLOCK / ROWS + 1];
    for (int64_t g = 0; g <= groups; g++)
        start[g] = rows * g / groups;
    while (a_row == 1 && (int)ROWS <= (int)LANES && vectors < groups && start[vectors] + LANES <= room)
        vectors++;
    for (int64_t p = 0; p < depth; p++, a += a_col, to += ROWS) {
        for (int64_t i = 0; i < rows && vectors > 0; i += 64 / (int64_t)sizeof *a)
            __builtin_prefetch(a + 8 * a_col + i); /* the columns may lie pages apart */
        for (int64_t g = 0; g < vectors; g++)
            v_store(to + g * GROUP, v_load(a + start[g])); /* the vector's end is overwritten by the next step */
        for (int64_t g = vectors; g < groups; g++)
            for (int64_t i = start[g]; i < start[g + 1]; i++)
                to[g * GROUP + i - start[g]] = a[i * a_row];
    }
}

/* c = act(c + bias) over rows x WIDTH; bias [WIDTH] or NULL */
static void finish(at_real *c, int64_t c_row, int64_t rows, const at_real *bias, at_act act)
{
    vec low = bias ? v_load(bias) : v_set(0), high = bias ? v_load(bias + LANES) : v_set(0);
    for (int64_t i = 0; i < rows; i++) {
        at_real *at = c + i * c_row;
        v_store(at, activate(bias ? v_load(at) + low : v_load(at), act));
        v_store(at + LANES, activate(bias ? v_load(at + LANES) + high : v_load(at + LANES), act));
    }
}

/* A panel's columns of C for `rows` rows (at most ROWS); `columns` < WIDTH goes through a block of its own. */
INLINE void panel_rows(int rows, int64_t k, const at_real *a, int64_t a_row, int64_t a_col, const at_real *b,
                       int64_t b_row, at_real *c, int64_t c_row, int64_t columns, bool load, bool last,
                       const at_real *bias, at_act act)
{
    if (columns == WIDTH) {
        micro(rows, k, a, a_row, a_col, b, b_row, c, c_row, load, last ? bias : NULL);
        if (last && act)
            finish(c, c_row, rows, NULL, act);
        return;
    }
    at_real edge[ROWS * WIDTH] = {0}, padded[WIDTH] = {0};
    size_t bytes = (size_t)columns * sizeof *c;
    for (int i = 0; load && i < rows; i++)
        memcpy(edge + i * WIDTH, c + i * c_row, bytes);
    if (last && bias)
        memcpy(padded, bias, bytes);
    micro(rows, k, a, a_row, a_col, b, b_row, edge, WIDTH, load, last && bias ? padded : NULL);
    if (last && act)
        finish(edge, WIDTH, rows, NULL, act);
    for (int i = 0; i < rows; i++)
        memcpy(c + i * c_row, edge + i * WIDTH, bytes);
}

/* Several whole panels at once for 1 to 3 rows; gives how many it did. */
static int64_t wide(const at_gemm *g, const at_real *b, int64_t panel_step, int64_t j, int64_t k0, int64_t depth,
                    bool load)
{
    int64_t panels = g->m == 1 ? 4 : g->m == 2 ? 3 : 2;
    if (g->m > 3 || j + panels * WIDTH > g->n)
        return 0;
    const at_real *a = g->a + k0 * g->a_col;
    if (g->m == 1)
        micro_wide(1, 4, depth, a, g->a_row, g->a_col, b, WIDTH, panel_step, g->c + j, g->c_row, load);
    else if (g->m == 2)
        micro_wide(2, 3, depth, a, g->a_row, g->a_col, b, WIDTH, panel_step, g->c + j, g->c_row, load);
    else
        micro_wide(3, 2, depth, a, g->a_row, g->a_col, b, WIDTH, panel_step, g->c + j, g->c_row, load);
    return panels;
}

/* A chunk of B as the loops below read it: panel p at b + p * step, rows `row` apart. */
typedef struct chunk {
    const at_real *b;
    int64_t step, row;
    int64_t from, columns; /* of C */
    int64_t k0, depth;
    bool load, last;
} chunk;

/* Few rows: panels side by side. */
static int64_t few_rows(const at_gemm *g, const chunk *c)
{
    int64_t j = 0, done;
    while (c->row == WIDTH && j < c->columns &&
           (done = wide(g, c->b + j / WIDTH * c->step, c->step, c->from + j, c->k0, c->depth, c->load)) > 0)
        for (; done > 0; done--, j += WIDTH)
            if (c->last && (g->bias || g->act))
                finish(g->c + c->from + j, g->c_row, g->m, g->bias ? g->bias + c->from + j : NULL, g->act);
    return j;
}

/* Rows [i0, i0 + rows) of C against a chunk of B, in groups as even as they go. */
static void block_rows(const gemm_piece *piece, const chunk *c, int64_t i0, int64_t rows, int64_t j)
{
    const at_gemm *g = &piece->what;
    const at_real *a = g->a + i0 * g->a_row + c->k0 * g->a_col;
    int64_t groups = (rows + ROWS - 1) / ROWS, a_row = g->a_row, a_col = g->a_col;
    if (piece->pack_a) {
        pack_rows(a, a_row, a_col, rows, c->depth, g->m - i0, piece->scratch);
        a_row = 1;
        a_col = ROWS;
    }
    for (; j < c->columns; j += WIDTH) {
        int64_t columns = c->columns - j < WIDTH ? c->columns - j : WIDTH;
        const at_real *b = c->b + j / WIDTH * c->step;
        const bool ahead = g->packed && j + WIDTH < c->columns;
        for (int64_t group = 0; group < groups; group++) {
            int64_t i = rows * group / groups, count = rows * (group + 1) / groups - i;
            const at_real *next = g->c + (i0 + i + count) * g->c_row + c->from + j; /* lines of C may be anywhere */
            for (int64_t r = 0; group + 1 < groups && r < count; r++)
                __builtin_prefetch(next + r * g->c_row, 1);
            /* Packed weights come from far away: a share of the next panel is asked for with each group. */
            for (int64_t k = c->depth * group / groups; ahead && k < c->depth * (group + 1) / groups; k++)
                __builtin_prefetch(b + c->step + k * WIDTH, 0, 2);
            panel_rows((int)count, c->depth, piece->pack_a ? piece->scratch + group * GROUP : a + i * a_row, a_row,
                       a_col, b, c->row, g->c + (i0 + i) * g->c_row + c->from + j, g->c_row, columns, c->load, c->last,
                       g->bias ? g->bias + c->from + j : NULL, g->act);
        }
    }
}

static void piece(const gemm_piece *piece)
{
    const at_gemm *g = &piece->what;
    at_real *b_block = piece->scratch + BLOCK / ROWS * GROUP;
    /* Small row-major B is read as it lies. */
    bool direct = !g->packed && g->b_col == 1 && g->n % WIDTH == 0 && g->n * g->k <= 8192 && g->m <= BLOCK;
    for (int64_t j0 = 0; j0 < g->n; j0 += CHUNK) {
        int64_t columns = g->n - j0 < CHUNK ? g->n - j0 : CHUNK;
        for (int64_t k0 = 0; k0 < g->k || k0 == 0; k0 += DEPTHS * DEPTH) {
            int64_t deep = g->k - k0 < DEPTHS * DEPTH ? g->k - k0 : DEPTHS * DEPTH;
            chunk c[DEPTHS];
            int depths = 0;
            for (int64_t k = k0; k < k0 + deep || k == k0; k += DEPTH, depths++) {
                c[depths] = (chunk){.from = j0, .columns = columns, .k0 = k, .row = WIDTH};
                c[depths].depth = k0 + deep - k < DEPTH ? k0 + deep - k : DEPTH;
                c[depths].load = g->accumulate || k > 0;
                c[depths].last = k + DEPTH >= g->k;
                if (g->packed) {
                    c[depths].b = g->packed + j0 * g->k + k * WIDTH;
                    c[depths].step = g->k * WIDTH;
                } else if (direct) {
                    c[depths].b = g->b + k * g->b_row + j0;
                    c[depths].step = WIDTH;
                    c[depths].row = g->b_row;
                } else {
                    at_real *to = b_block + depths * CHUNK / WIDTH * STEP;
                    c[depths].b = to;
                    c[depths].step = STEP;
                    pack_chunk(g->b + k * g->b_row + j0 * g->b_col, g->b_row, g->b_col, c[depths].depth, columns, to,
                               c[depths].step);
                }
            }
            /* A block of C goes through all depths while it is in L2. */
            int64_t done = 0;
            for (int d = 0; d < depths; d++)
                done = few_rows(g, &c[d]);
            for (int64_t i0 = 0; i0 < g->m && done < columns; i0 += BLOCK)
                for (int d = 0; d < depths; d++)
                    block_rows(piece, &c[d], i0, g->m - i0 < BLOCK ? g->m - i0 : BLOCK, done);
        }
    }
}

/* c += a[0..steps) times that many rows of B, each element's sum in order */
INLINE void thin_rows(const int steps, const at_real *a, int64_t a_col, const at_real *b, int64_t b_row, at_real *c,
                      int64_t n)
{
    vec x[8];
    int64_t j = 0;
#pragma GCC unroll 8
    for (int p = 0; p < steps; p++)
        x[p] = v_set(a[p * a_col]);
    for (; j + LANES <= n; j += LANES) {
        vec sum = v_load(c + j);
#pragma GCC unroll 8
        for (int p = 0; p < steps; p++)
            sum = v_fma(x[p], v_load(b + p * b_row + j), sum);
        v_store(c + j, sum);
    }
    for (; j < n; j++)
        for (int p = 0; p < steps; p++)
            c[j] = a[p * a_col] * b[p * b_row + j] + c[j];
}

/* One row of C, c = act(c + bias) */
static void finish_row(const at_gemm *g, at_real *c)
{
    for (int64_t j = 0; (g->bias || g->act) && j < g->n; j += WIDTH) {
        at_real edge[WIDTH] = {0}, bias[WIDTH] = {0};
        int64_t columns = g->n - j < WIDTH ? g->n - j : WIDTH;
        memcpy(edge, c + j, (size_t)columns * sizeof *c);
        if (g->bias)
            memcpy(bias, g->bias + j, (size_t)columns * sizeof *c);
        finish(edge, WIDTH, 1, g->bias ? bias : NULL, g->act);
        memcpy(c + j, edge, (size_t)columns * sizeof *c);
    }
}

/* Row-major B: eight rows of it at a time stream through, C waits in L1. */
static void thin_row(const at_gemm *g, const at_real *a, at_real *c)
{
    int64_t p = 0;
    for (; p + 8 <= g->k; p += 8)
        thin_rows(8, a + p * g->a_col, g->a_col, g->b + p * g->b_row, g->b_row, c, g->n);
    for (; p < g->k; p++)
        thin_rows(1, a + p * g->a_col, g->a_col, g->b + p * g->b_row, g->b_row, c, g->n);
}

/* B by columns: turned as it is read. */
static void thin_turned(const at_gemm *g, const at_real *a, at_real *c)
{
    int64_t j = 0;
    for (; j + WIDTH <= g->n; j += WIDTH)
        turned_panel(g->k, a, g->a_col, g->b + j * g->b_col, g->b_col, c + j, true);
    for (; j < g->n; j++)
        for (int64_t p = 0; p < g->k; p++)
            c[j] = a[p * g->a_col] * g->b[p + j * g->b_col] + c[j];
}

/* Few rows against B as it lies: b_col or b_row is 1. */
static void thin(const at_gemm *g)
{
    for (int64_t i = 0; i < g->m; i++) {
        at_real *c = g->c + i * g->c_row;
        if (!g->accumulate)
            memset(c, 0, (size_t)g->n * sizeof *c);
        (g->b_col == 1 ? thin_row : thin_turned)(g, g->a + i * g->a_row, c);
        finish_row(g, c);
    }
}

const gemm_kernels AT_ISA_NAME(at_gemm_kernels) = {WIDTH, BLOCK / ROWS *GROUP + DEPTHS *CHUNK / WIDTH *STEP, pack,
                                                   piece, thin};
