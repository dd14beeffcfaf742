/* The product: which loops, and which thread computes which part. */
#include "kernels/gemm.h"

#include "base/threads.h"
#include "kernels/isa.h"
#include "kernels/tile.h"

enum {
    WORTH_A_THREAD = 64 * 64 * 64, /* multiply-adds below which threads cost more than they save */
    WORTH_A_PACKER = 1 << 17       /* the same in numbers to be packed */
};

static int64_t size_in_panels(const gemm_kernels *kernels, int64_t k, int64_t n)
{
    return (n + kernels->width - 1) / kernels->width * kernels->width * k;
}

int64_t at_gemm_packed_size(int64_t k, int64_t n)
{
    return size_in_panels(at_isa()->gemm, k, n);
}

int64_t at_tile_packed_size(int64_t k, int64_t n)
{
    return size_in_panels(at_isa()->base, k, n);
}

/* Panels follow one another, so each part of the columns can be packed by itself. */
typedef struct packing {
    const gemm_kernels *kernels;
    const at_real *b;
    int64_t b_row, b_col, k, n, part;
    at_real *packed;
} packing;

static void pack_part(void *context, int64_t index, int worker)
{
    (void)worker;
    const packing *p = context;
    int64_t from = index * p->part, columns = p->n - from < p->part ? p->n - from : p->part;
    p->kernels->pack(p->b + from * p->b_col, p->b_row, p->b_col, p->k, columns, p->packed + from * p->k);
}

static void pack(packing p)
{
    p.part = 8 * p.kernels->width;
    at_parallel((p.n + p.part - 1) / p.part, p.k * p.n < WORTH_A_PACKER ? 1 : at_threads(), pack_part, &p);
}

void at_gemm_pack(const at_real *b, int64_t b_row, int64_t b_col, int64_t k, int64_t n, at_real *packed)
{
    pack((packing){at_isa()->gemm, b, b_row, b_col, k, n, .packed = packed});
}

void at_tile_pack(const at_real *b, int64_t b_row, int64_t b_col, int64_t k, int64_t n, at_real *packed)
{
    pack((packing){at_isa()->base, b, b_row, b_col, k, n, .packed = packed});
}

/* The parts of a batch of products: each batch is cut into `row_parts` x `column_parts` pieces. */
typedef struct plan {
    at_gemm first;
    int64_t a_step, b_step, c_step;
    int64_t row_parts, rows, column_parts, columns; /* pieces per batch and their sizes */
    at_real *scratch;
    int64_t scratch_size; /* per worker */
} plan;

static void run_piece(void *context, int64_t index, int worker)
{
    const plan *p = context;
    const gemm_kernels *kernels = at_isa()->gemm;
    int64_t parts = p->row_parts * p->column_parts;
    int64_t batch = index / parts, row = index % parts / p->column_parts * p->rows;
    int64_t column = index % p->column_parts * p->columns;
    at_gemm piece = p->first, *g = &piece;
    g->m = g->m - row < p->rows ? g->m - row : p->rows;
    g->n = g->n - column < p->columns ? g->n - column : p->columns;
    g->a += batch * p->a_step + row * g->a_row;
    g->c += batch * p->c_step + row * g->c_row + column;
    if (g->bias)
        g->bias += column;
    if (g->narrow.numbers) { /* which every batch reads */
        g->narrow.numbers = (const char *)g->narrow.numbers + column * g->k * (int64_t)at_number_size(g->narrow.type);
        if (g->narrow.scale)
            g->narrow.scale += column;
    } else if (g->packed) {
        g->packed += batch * p->b_step + column * g->k;
    } else {
        g->b += batch * p->b_step + column * g->b_col;
    }
    if ((g->narrow.numbers || (g->packed && !g->accumulate)) && g->m <= at_isa()->narrow->most_rows) {
        at_isa()->narrow->thin(g);
        return;
    }
    if (!g->packed && !g->narrow.numbers && g->m <= (g->b_col == 1 ? AT_GEMM_THIN : 1) &&
        (g->b_col == 1 || g->b_row == 1)) {
        at_isa()->base->thin(g); /* reading B bounds it, and transposing, which wider vectors do not make faster */
        return;
    }
    kernels->piece(g, p->scratch + worker * p->scratch_size);
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

bool at_gemm_batch(const at_gemm *first, int64_t count, int64_t a_step, int64_t b_step, int64_t c_step, at_arena *arena)
{
    if (first->m <= 0 || first->n <= 0 || count <= 0)
        return true;
    const gemm_kernels *kernels = at_isa()->gemm;
    plan p = {.first = *first, .a_step = a_step, .b_step = b_step, .c_step = c_step};
    p.row_parts = p.column_parts = 1;
    p.rows = first->m;
    p.columns = first->n;
    int threads = at_threads();
    if (threads > 1 && first->m * first->n * (first->k ? first->k : 1) < WORTH_A_THREAD / count)
        threads = 1;
    if (threads > 1 && count < 4 * threads) {
        /* Cut columns first (each piece packs its own part of B once), then rows, to about four pieces a thread. */
        int64_t want = ceil_div(4 * threads, count), chunk = 4 * kernels->width;
        p.column_parts = ceil_div(first->n, chunk) < want ? ceil_div(first->n, chunk) : want;
        p.columns = ceil_div(ceil_div(first->n, p.column_parts), kernels->width) * kernels->width;
        p.column_parts = ceil_div(first->n, p.columns);
        int64_t left = ceil_div(want, p.column_parts), rows = ceil_div(first->m, left);
        p.rows = rows < 24 ? 24 : ceil_div(rows, 6) * 6;
        p.row_parts = ceil_div(first->m, p.rows);
    }
    at_mark mark = at_arena_mark(arena);
    p.scratch_size = kernels->scratch(first);
    p.scratch = at_arena_take(arena, (size_t)threads * (size_t)p.scratch_size * sizeof(at_real));
    if (p.scratch)
        at_parallel(count * p.row_parts * p.column_parts, threads, run_piece, &p);
    at_arena_release(arena, mark);
    return p.scratch != NULL;
}

bool at_gemm_run(const at_gemm *gemm, at_arena *arena)
{
    return at_gemm_batch(gemm, 1, 0, 0, 0, arena);
}
