/* The product's inner loops. Blocking (for a 32 KB L1 and a 512 KB L2): a panel of B, DEPTH x WIDTH, stays in L1 while a
 * block of A, up to BLOCK rows x DEPTH, streams past it from L2. Blocks change where numbers wait, never their order. */
#include "activate.h"
#include "isa_internal.h"
#include "pack.h"

enum { DEPTH = 256, BLOCK = 96, CHUNK = 8 * WIDTH };

static void pack(const at_real *b, int64_t b_row, int64_t b_col, int64_t k, int64_t n, at_real *packed)
{
    for (int64_t j = 0; j < n; j += WIDTH)
        pack_panel(b + j * b_col, b_row, b_col, k, n - j < WIDTH ? n - j : WIDTH, packed + j * k);
}

/* ROWS x depth of A side by side: rows one after the other if A's rows are contiguous, else [depth][ROWS]. Gives the
 * strides of what it wrote. */
static void pack_rows(const at_real *a, int64_t a_row, int64_t a_col, int64_t rows, int64_t depth, at_real *to,
                      int64_t *to_row, int64_t *to_col)
{
    if (a_col == 1) {
        for (int64_t i = 0; i < rows; i++)
            memcpy(to + i * DEPTH, a + i * a_row, (size_t)depth * sizeof *a);
        *to_row = DEPTH;
        *to_col = 1;
        return;
    }
    for (int64_t p = 0; p < depth; p++)
        for (int64_t i = 0; i < rows; i++)
            to[p * ROWS + i] = a[i * a_row + p * a_col];
    *to_row = 1;
    *to_col = ROWS;
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
INLINE void panel_rows(int rows, int64_t k, const at_real *a, int64_t a_row, int64_t a_col, const at_real *b, int64_t b_row,
                 at_real *c, int64_t c_row, int64_t columns, bool load, bool last, const at_real *bias, at_act act)
{
    if (columns == WIDTH) {
        micro(rows, k, a, a_row, a_col, b, b_row, c, c_row, load);
        if (last && (bias || act))
            finish(c, c_row, rows, bias, act);
        return;
    }
    at_real edge[ROWS * WIDTH] = {0}, padded[WIDTH] = {0};
    size_t bytes = (size_t)columns * sizeof *c;
    for (int i = 0; load && i < rows; i++)
        memcpy(edge + i * WIDTH, c + i * c_row, bytes);
    micro(rows, k, a, a_row, a_col, b, b_row, edge, WIDTH, load);
    if (last && (bias || act)) {
        if (bias)
            memcpy(padded, bias, bytes);
        finish(edge, WIDTH, rows, bias ? padded : NULL, act);
    }
    for (int i = 0; i < rows; i++)
        memcpy(c + i * c_row, edge + i * WIDTH, bytes);
}

/* `panels` whole panels at once for 1 to 3 rows; gives how many it did. */
static int64_t wide(const at_gemm *g, const at_real *b, int64_t panel_step, int64_t j, int64_t k0, int64_t depth, bool load)
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

static void piece(const gemm_piece *piece)
{
    const at_gemm *g = &piece->what;
    at_real *a_block = piece->scratch, *b_block = a_block + BLOCK * DEPTH;
    for (int64_t j0 = 0; j0 < g->n; j0 += CHUNK) {
        int64_t chunk = g->n - j0 < CHUNK ? g->n - j0 : CHUNK;
        for (int64_t k0 = 0; k0 < g->k || k0 == 0; k0 += DEPTH) {
            int64_t depth = g->k - k0 < DEPTH ? g->k - k0 : DEPTH;
            bool load = g->accumulate || k0 > 0, last = k0 + DEPTH >= g->k;
            const at_real *b = b_block;
            int64_t panel_step = DEPTH * WIDTH;
            if (g->packed) {
                b = g->packed + j0 * g->k + k0 * WIDTH;
                panel_step = g->k * WIDTH;
            } else {
                for (int64_t j = 0; j < chunk; j += WIDTH)
                    pack_panel(g->b + k0 * g->b_row + (j0 + j) * g->b_col, g->b_row, g->b_col, depth,
                               chunk - j < WIDTH ? chunk - j : WIDTH, b_block + j / WIDTH * panel_step);
            }
            for (int64_t i0 = 0; i0 < g->m; i0 += BLOCK) {
                int64_t block = g->m - i0 < BLOCK ? g->m - i0 : BLOCK;
                const at_real *a = g->a + i0 * g->a_row + k0 * g->a_col;
                int64_t group_step = ROWS * g->a_row, a_row = g->a_row, a_col = g->a_col;
                if (piece->pack_a) {
                    for (int64_t i = 0; i < block; i += ROWS)
                        pack_rows(a + i * g->a_row, g->a_row, g->a_col, block - i < ROWS ? block - i : ROWS, depth,
                                  a_block + i * DEPTH, &a_row, &a_col);
                    a = a_block;
                    group_step = ROWS * DEPTH;
                }
                for (int64_t j = 0; j < chunk;) {
                    int64_t done = wide(g, b + j / WIDTH * panel_step, panel_step, j0 + j, k0, depth, load);
                    for (int64_t p = 0; p < done && last && (g->bias || g->act); p++)
                        finish(g->c + j0 + j + p * WIDTH, g->c_row, g->m, g->bias ? g->bias + j0 + j + p * WIDTH : NULL,
                               g->act);
                    j += done * WIDTH;
                    if (done)
                        continue;
                    int64_t columns = chunk - j < WIDTH ? chunk - j : WIDTH;
                    for (int64_t i = 0; i < block; i += ROWS)
                        panel_rows(block - i < ROWS ? (int)(block - i) : ROWS, depth, a + i / ROWS * group_step, a_row, a_col,
                             b + j / WIDTH * panel_step, WIDTH, g->c + (i0 + i) * g->c_row + j0 + j, g->c_row, columns,
                             load, last, g->bias ? g->bias + j0 + j : NULL, g->act);
                    j += WIDTH;
                }
            }
        }
    }
}

/* Few rows against row-major B, unpacked: four rows of B at a time stream through, C waits in L1. */
static void thin(const at_gemm *g)
{
    for (int64_t i = 0; i < g->m; i++) {
        at_real *c = g->c + i * g->c_row;
        const at_real *a = g->a + i * g->a_row;
        if (!g->accumulate)
            memset(c, 0, (size_t)g->n * sizeof *c);
        int64_t whole = g->n - g->n % LANES, p = 0;
        for (; p + 4 <= g->k; p += 4) {
            at_real x[4] = {a[p * g->a_col], a[(p + 1) * g->a_col], a[(p + 2) * g->a_col], a[(p + 3) * g->a_col]};
            vec x0 = v_set(x[0]), x1 = v_set(x[1]), x2 = v_set(x[2]), x3 = v_set(x[3]);
            const at_real *b = g->b + p * g->b_row;
            for (int64_t j = 0; j < whole; j += LANES) {
                vec sum = v_fma(x0, v_load(b + j), v_load(c + j));
                sum = v_fma(x1, v_load(b + g->b_row + j), sum);
                sum = v_fma(x2, v_load(b + 2 * g->b_row + j), sum);
                v_store(c + j, v_fma(x3, v_load(b + 3 * g->b_row + j), sum));
            }
            for (int64_t j = whole; j < g->n; j++)
                for (int q = 0; q < 4; q++)
                    c[j] = x[q] * b[q * g->b_row + j] + c[j];
        }
        for (; p < g->k; p++) {
            at_real x = a[p * g->a_col];
            const at_real *b = g->b + p * g->b_row;
            int64_t j = 0;
            for (; j < whole; j += LANES)
                v_store(c + j, v_fma(v_set(x), v_load(b + j), v_load(c + j)));
            for (; j < g->n; j++)
                c[j] = x * b[j] + c[j];
        }
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
}

const gemm_kernels AT_ISA_NAME(at_gemm_kernels) = {WIDTH, BLOCK *DEPTH + DEPTH *CHUNK, pack, piece, thin};
