/* The products of patches: which thread computes which rows. */
#include "kernels/patches.h"

#include "base/threads.h"
#include "kernels/isa.h"

enum { WORTH_A_THREAD = 64 * 64 * 64, LEAST_ROWS = 12 };

typedef struct pieces {
    const at_patch_product *product;
    int64_t count, rows;
} pieces;

static void run_piece(void *context, int64_t index, int worker)
{
    (void)worker;
    const pieces *p = context;
    at_isa()->patches->rows(p->product, p->rows * index / p->count, p->rows * (index + 1) / p->count);
}

void at_patch_product_run(const at_patch_product *product)
{
    pieces p = {.product = product, .count = 1, .rows = product->lines * product->cells};
    if (p.rows <= 0 || product->n <= 0)
        return;
    const int64_t sums = p.rows * product->n, terms = product->spans * product->steps;
    const int threads = sums * (terms > 0 ? terms : 1) < WORTH_A_THREAD ? 1 : at_threads();
    if (threads > 1) {
        p.count = p.rows / LEAST_ROWS < 4 * threads ? p.rows / LEAST_ROWS : 4 * threads;
        p.count = p.count > 0 ? p.count : 1;
    }
    at_parallel(p.count, threads, run_piece, &p);
}
