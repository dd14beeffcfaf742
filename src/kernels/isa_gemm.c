/* The product's inner loops. Blocking changes where numbers are stored, never the order in which they are summed. Sizes
 * are for a 32 KB L1 and a 512 KB L2: a panel of B, DEPTH x WIDTH, stays in L1 while BLOCK rows of A, DEPTH deep, pass
 * it from L2.
 *
 * A as it is    for sums up to DEPTH, or few columns: a block of C stays in L2 for all DEPTHS parts of a chunk of B,
 *               which is CHUNK columns wide.
 * A packed      BLOCK rows, DEPTHS_A parts deep, stay in L2 for a chunk of B of CHUNK_A columns, so that A is packed
 *               once per CHUNK_A columns. From part to part the sums of a panel are kept in L1. */
#include "kernels/activate_internal.h"
#include "kernels/isa_internal.h"
#include "kernels/pack_internal.h"

enum { DEPTH = AT_VECTOR_BYTES < 64 ? 256 : 128, DEPTHS = 4, DEPTHS_A = 2, BLOCK = 96 };
enum { CHUNK = 16 * WIDTH, CHUNK_A = 64 * WIDTH };

/* Distances of packed groups of rows of A and of packed panels of B: a little more than their sizes, or all of them
 * would meet in the same sets of the L1 cache. */
enum { GROUP = ROWS * DEPTH + LANES, STEP = (DEPTH + 1) * WIDTH };
enum { A_PART = BLOCK / ROWS * GROUP, A_SCRATCH = DEPTHS_A * A_PART };

INLINE int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void pack(const at_real *b, int64_t b_row, int64_t b_col, int64_t k, int64_t n, at_real *packed)
{
    for (int64_t j = 0; j < n; j += WIDTH)
        pack_panel(b + j * b_col, b_row, b_col, k, n - j < WIDTH ? n - j : WIDTH, packed + j * k);
}

/* A chunk of B, depth x columns, as panels `step` apart. Row-major B goes row by row through all panels, because its
 * rows may be pages apart. */
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

/* Where the packed groups of a block of A begin, `rows` cut into even groups of up to ROWS. */
typedef struct row_groups {
    int64_t count, start[BLOCK / ROWS + 1];
} row_groups;

static row_groups groups_of(int64_t rows)
{
    row_groups groups = {.count = (rows + ROWS - 1) / ROWS};
    for (int64_t g = 0; g <= groups.count; g++)
        groups.start[g] = rows * g / groups.count;
    return groups;
}

/* A block of A packed in groups of up to ROWS rows, each [depth][ROWS] and GROUP apart. Vectors that are wider than a
 * group, or reach beyond it, are stored nevertheless: the next step overwrites their ends.
 * This one is for columns that are contiguous; `room`: how many numbers may be read of each. */
static void pack_columns(const at_real *a, int64_t a_col, const row_groups *groups, int64_t depth, int64_t room,
                         at_real *to)
{
    enum { VECTORS = (ROWS + LANES - 1) / LANES };
    int64_t whole = 0, rows = groups->start[groups->count];
    while (whole < groups->count && groups->start[whole] + VECTORS * LANES <= room)
        whole++;
    for (int64_t p = 0; p < depth; p++, a += a_col, to += ROWS) {
        for (int64_t i = 0; i < rows; i += 64 / (int64_t)sizeof *a)
            __builtin_prefetch(a + 8 * a_col + i); /* the columns may be pages apart */
        for (int64_t g = 0; g < whole; g++)
            for (int v = 0; v < VECTORS; v++)
                v_store(to + g * GROUP + v * LANES, v_load(a + groups->start[g] + v * LANES));
        for (int64_t g = whole; g < groups->count; g++)
            for (int64_t i = groups->start[g]; i < groups->start[g + 1]; i++)
                to[g * GROUP + i - groups->start[g]] = a[i];
    }
}

/* The same for a group of any layout: blocks of contiguous rows are transposed in registers. */
static void pack_group(const at_real *a, int64_t a_row, int64_t a_col, int64_t rows, int64_t depth, at_real *to)
{
    int64_t p = 0;
    for (; a_col == 1 && p + LANES <= depth; p += LANES) {
        vec row[LANES], column[(ROWS + LANES - 1) / LANES][LANES];
        for (int64_t v = 0; v * LANES < ROWS; v++) {
#pragma GCC unroll 16
            for (int64_t l = 0; l < LANES; l++) /* after the last row it is repeated */
                row[l] = v_load(a + least(v * LANES + l, rows - 1) * a_row + p);
            turn_lanes(row, column[v]);
        }
#pragma GCC unroll 16
        for (int64_t l = 0; l < LANES; l++)
            for (int64_t v = 0; v * LANES < ROWS; v++)
                v_store(to + (p + l) * ROWS + v * LANES, column[v][l]);
    }
    for (; p < depth; p++)
        for (int64_t i = 0; i < rows; i++)
            to[p * ROWS + i] = a[i * a_row + p * a_col];
}

/* A is packed if its rows are not contiguous, or if there are several parts of k and enough columns to repay it. */
static bool packs_a(const at_gemm *g)
{
    return g->m > AT_GEMM_THIN && (g->a_col != 1 || (g->k > DEPTH && g->n >= CHUNK));
}

static void pack_rows(const at_gemm *g, int64_t from, int64_t rows, int64_t k, int64_t depth, at_real *to)
{
    const at_real *a = g->a + from * g->a_row + k * g->a_col;
    const row_groups groups = groups_of(rows);
    if (g->a_row == 1)
        pack_columns(a, g->a_col, &groups, depth, g->m - from, to);
    else
        for (int64_t i = 0; i < groups.count; i++)
            pack_group(a + groups.start[i] * g->a_row, g->a_row, g->a_col, groups.start[i + 1] - groups.start[i], depth,
                       to + i * GROUP);
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

/* A chunk of B as the loops below read it, cut along k into parts of up to DEPTH: panel p of part d starts at
 * b[d] + p * step, and its rows are `row` apart. */
typedef struct chunk {
    const at_real *b[DEPTHS];
    int64_t step, row;
    int64_t from, columns; /* of C */
    int64_t k0, deep;      /* [k0, k0 + deep) of k */
    int depths;
    bool load, last; /* the sums start from C; they are complete after this chunk */
} chunk;

INLINE int64_t depth_of(const chunk *c, int d)
{
    return least(c->deep - d * DEPTH, DEPTH);
}

/* Few rows: several whole panels side by side. Returns how many columns that has done. */
static int64_t few_rows(const at_gemm *g, const chunk *c)
{
    int64_t panels = g->m == 1 ? 4 : g->m == 2 ? 3 : 2, j = 0;
    for (; g->m <= AT_GEMM_THIN && c->row == WIDTH && j + panels * WIDTH <= c->columns; j += panels * WIDTH) {
        at_real *to = g->c + c->from + j;
        for (int d = 0; d < c->depths; d++) {
            const micro_block block = {.k = depth_of(c, d),
                                       .a = g->a + (c->k0 + d * DEPTH) * g->a_col,
                                       .a_row = g->a_row,
                                       .a_col = g->a_col,
                                       .b = c->b[d] + j / WIDTH * c->step,
                                       .b_row = WIDTH,
                                       .b_panel = c->step,
                                       .start = c->load || d > 0 ? to : NULL,
                                       .start_row = g->c_row,
                                       .c = to,
                                       .c_row = g->c_row};
            if (g->m == 1)
                micro_wide(1, 4, &block);
            else if (g->m == 2)
                micro_wide(2, 3, &block);
            else
                micro_wide(3, 2, &block);
        }
        for (int64_t p = 0; p < panels * WIDTH && c->last && (g->bias || g->act); p += WIDTH)
            finish(to + p, g->c_row, g->m, g->bias ? g->bias + c->from + j + p : NULL, g->act);
    }
    return j;
}

/* A block of rows of A and C, in groups of nearly equal size: group g is rows
 * [rows g / groups, rows (g + 1) / groups). */
typedef struct row_block {
    int64_t from, rows, groups;
    const at_real *a; /* row 0 of group g, part d of k: a + group_start * a_row + d * a_part + g * a_group */
    int64_t a_row, a_col, a_part, a_group;
} row_block;

/* The block of rows from `from` on; packed into `memory` unless that is NULL. */
static row_block block_of(const at_gemm *g, const chunk *c, int64_t from, at_real *memory)
{
    row_block r = {.from = from, .rows = least(g->m - from, BLOCK)};
    r.groups = (r.rows + ROWS - 1) / ROWS;
    if (!memory) {
        r.a = g->a + from * g->a_row + c->k0 * g->a_col;
        r.a_row = g->a_row;
        r.a_col = g->a_col;
        r.a_part = DEPTH * g->a_col;
        return r;
    }
    r.a = memory;
    r.a_col = ROWS;
    r.a_part = A_PART;
    r.a_group = GROUP;
    for (int d = 0; d < c->depths; d++)
        pack_rows(g, from, r.rows, c->k0 + d * DEPTH, depth_of(c, d), memory + d * A_PART);
    return r;
}

static void copy_rows(at_real *to, int64_t to_row, const at_real *from, int64_t from_row, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + i * to_row, from + i * from_row, (size_t)columns * sizeof *to);
}

/* Part d of the panel of columns j of a chunk, from numbers of fewer bits. It goes into L1, where all rows of a block read
 * it; the same part of the next panel is prefetched. */
static const at_real *widen_part(const at_gemm *g, const chunk *c, int64_t j, int d, at_real *to)
{
    const int64_t size = number_size(g->narrow.type), count = depth_of(c, d) * WIDTH;
    const char *from = (const char *)g->narrow.numbers + ((c->from + j) * g->k + (c->k0 + d * DEPTH) * WIDTH) * size;
    for (int64_t at = 0; j + WIDTH < c->columns && at < count * size; at += 64)
        __builtin_prefetch(from + g->k * WIDTH * size + at, 0, 2);
    at_isa()->narrow->widen(g->narrow.type, from, count, to);
    return to;
}

/* One panel of C, columns [j, j + WIDTH) of the chunk, for a block of rows and the parts [d0, d1) of k. From part to
 * part the sums are kept in a block of their own, not in C: the rows of C may be a power of two apart, where they would
 * evict each other and the panel of B from L1. A panel of fewer than WIDTH columns is there from beginning to end. */
static void panel_rows(const at_gemm *g, const chunk *c, const row_block *r, int64_t j, int d0, int d1)
{
    at_real sums[BLOCK * WIDTH] __attribute__((aligned(64))), padded[WIDTH] = {0};
    at_real widened[DEPTH * WIDTH] __attribute__((aligned(64)));
    const int64_t columns = least(c->columns - j, WIDTH);
    const bool whole = columns == WIDTH, load = c->load || d0 > 0, complete = c->last && d1 == c->depths;
    const bool ahead = g->packed && j + WIDTH < c->columns;
    at_real *out = g->c + r->from * g->c_row + c->from + j;
    const at_real *bias = complete && g->bias ? g->bias + c->from + j : NULL;
    const at_real *scale = complete && g->narrow.scale ? g->narrow.scale + c->from + j : NULL;
    if (!whole && bias)
        bias = memcpy(padded, bias, (size_t)columns * sizeof *bias);
    if (!whole && load)
        copy_rows(sums, WIDTH, out, g->c_row, r->rows, columns);
    for (int d = d0; d < d1; d++) {
        const bool from_c = d == d0 && whole, last = d == d1 - 1, to_c = last && whole;
        const at_real *b = g->narrow.numbers ? widen_part(g, c, j, d, widened) : c->b[d] + j / WIDTH * c->step;
        const int64_t depth = depth_of(c, d);
        for (int64_t group = 0; group < r->groups; group++) {
            const int64_t i = r->rows * group / r->groups, end = r->rows * (group + 1) / r->groups;
            for (int64_t n = end; (from_c || to_c) && n < least(2 * end - i, r->rows); n++)
                __builtin_prefetch(out + n * g->c_row, 1); /* the next group's rows of C */
            /* Packed weights are not in the cache yet: each group prefetches a part of the next panel. */
            for (int64_t k = depth * group / r->groups; ahead && k < depth * (group + 1) / r->groups; k++)
                __builtin_prefetch(b + c->step + k * WIDTH, 0, 2);
            at_real *in_c = out + i * g->c_row, *in_sums = sums + i * WIDTH;
            const micro_block block = {.k = depth,
                                       .a = r->a + i * r->a_row + d * r->a_part + group * r->a_group,
                                       .a_row = r->a_group ? 1 : r->a_row,
                                       .a_col = r->a_col,
                                       .b = b,
                                       .b_row = c->row,
                                       .start = d == d0 && !load ? NULL
                                                : from_c         ? in_c
                                                                 : in_sums,
                                       .start_row = from_c ? g->c_row : WIDTH,
                                       .c = to_c ? in_c : in_sums,
                                       .c_row = to_c ? g->c_row : WIDTH,
                                       .bias = last ? bias : NULL,
                                       .scale = last ? scale : NULL};
            micro((int)(end - i), &block);
            if (last && complete && g->act)
                finish(block.c, block.c_row, end - i, NULL, g->act);
        }
    }
    if (!whole)
        copy_rows(out, g->c_row, sums, WIDTH, r->rows, columns);
}

/* Fills in where the panels of a chunk of B are: packed by the caller, packed here into `memory`, or, if B is
 * small and its rows are contiguous, in B itself. */
static void find_panels(const at_gemm *g, chunk *c, at_real *memory)
{
    const bool direct =
        !g->narrow.numbers && g->b_col == 1 && g->n % WIDTH == 0 && g->n * g->k <= 8192 && g->m <= BLOCK;
    c->row = WIDTH;
    for (int64_t k = c->k0; k < c->k0 + c->deep || k == c->k0; k += DEPTH, c->depths++) {
        if (g->packed) {
            c->b[c->depths] = g->packed + c->from * g->k + k * WIDTH;
            c->step = g->k * WIDTH;
        } else if (g->narrow.numbers) { /* widened by panel_rows */
            c->b[c->depths] = NULL;
        } else if (direct) {
            c->b[c->depths] = g->b + k * g->b_row + c->from;
            c->step = WIDTH;
            c->row = g->b_row;
        } else {
            c->b[c->depths] = memory;
            c->step = STEP;
            pack_chunk(g->b + k * g->b_row + c->from * g->b_col, g->b_row, g->b_col, least(c->k0 + c->deep - k, DEPTH),
                       c->columns, memory, STEP);
            memory += (c->columns + WIDTH - 1) / WIDTH * STEP;
        }
    }
}

/* The largest chunk of B: columns, and how far it goes along k, a multiple of DEPTH. */
static int64_t chunk_columns(const at_gemm *g, bool pack_a)
{
    return least(g->n, pack_a ? CHUNK_A : CHUNK);
}
static int64_t chunk_deep(const at_gemm *g, bool pack_a)
{
    int64_t depths = (g->k + DEPTH - 1) / DEPTH;
    return DEPTH * least(depths > 0 ? depths : 1, pack_a ? DEPTHS_A : DEPTHS);
}

static int64_t chunk_size(const at_gemm *g, bool pack_a)
{
    return (chunk_columns(g, pack_a) + WIDTH - 1) / WIDTH * STEP * (chunk_deep(g, pack_a) / DEPTH);
}

/* A product that packs A may have pieces that do not. */
static int64_t scratch(const at_gemm *g)
{
    const bool ready = g->packed || g->narrow.numbers;
    int64_t with = packs_a(g) ? A_SCRATCH + (ready ? 0 : chunk_size(g, true)) : 0;
    int64_t without = ready ? 0 : chunk_size(g, false);
    return with > without ? with : without;
}

static void piece(const at_gemm *g, at_real *memory)
{
    const bool pack_a = packs_a(g);
    const int64_t deep = chunk_deep(g, pack_a), columns = chunk_columns(g, pack_a);
    for (int64_t j0 = 0; j0 < g->n; j0 += columns)
        for (int64_t k0 = 0; k0 < g->k || k0 == 0; k0 += deep) {
            chunk c = {.from = j0, .columns = least(g->n - j0, columns), .k0 = k0, .deep = least(g->k - k0, deep)};
            c.load = g->accumulate || k0 > 0;
            c.last = k0 + deep >= g->k;
            find_panels(g, &c, pack_a ? memory + A_SCRATCH : memory);
            const int64_t done = few_rows(g, &c);
            for (int64_t i0 = 0; i0 < g->m && done < c.columns; i0 += BLOCK) {
                const row_block r = block_of(g, &c, i0, pack_a ? memory : NULL);
                const int parts = pack_a ? c.depths : 1; /* at a time */
                for (int d = 0; d < c.depths; d += parts)
                    for (int64_t j = done; j < c.columns; j += WIDTH)
                        panel_rows(g, &c, &r, j, d, d + parts);
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

/* Row-major B: eight rows of it at a time stream through, C stays in L1. */
static void thin_row(const at_gemm *g, const at_real *a, at_real *c)
{
    int64_t p = 0;
    for (; p + 8 <= g->k; p += 8)
        thin_rows(8, a + p * g->a_col, g->a_col, g->b + p * g->b_row, g->b_row, c, g->n);
    for (; p < g->k; p++)
        thin_rows(1, a + p * g->a_col, g->a_col, g->b + p * g->b_row, g->b_row, c, g->n);
}

/* B by columns: transposed as it is read. */
static void thin_transposed(const at_gemm *g, const at_real *a, at_real *c)
{
    int64_t j = 0;
    for (; j + WIDTH <= g->n; j += WIDTH)
        transposed_panel(g->k, a, g->a_col, g->b + j * g->b_col, g->b_col, c + j, true);
    for (; j < g->n; j++)
        for (int64_t p = 0; p < g->k; p++)
            c[j] = a[p * g->a_col] * g->b[p + j * g->b_col] + c[j];
}

/* Few rows against a B that is not packed: b_col or b_row is 1. */
static void thin(const at_gemm *g)
{
    for (int64_t i = 0; i < g->m; i++) {
        at_real *c = g->c + i * g->c_row;
        if (!g->accumulate)
            memset(c, 0, (size_t)g->n * sizeof *c);
        (g->b_col == 1 ? thin_row : thin_transposed)(g, g->a + i * g->a_row, c);
        finish_row(g, c);
    }
}

const gemm_kernels AT_ISA_NAME(at_gemm_kernels) = {
    .width = WIDTH, .pack = pack, .piece = piece, .scratch = scratch, .thin = thin};
