/* Matrix products as models use them. A case "m x k x n" is C [m,n] = A [m,k] B [k,n]. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cases.h"
#include "data.h"
#include "kernels/gemm.h"
#include "rivals_blas.h"

static const struct {
    const char *name;
    int m, k, n;
    bool transpose_a, transpose_b;
    bool packed; /* also with weights packed in advance, as in a cell or a decoder that uses them many times */
} CASES[] = {
    {"1280x256x1024", 1280, 256, 1024, false, false, false},
    {"256x1280x1024 dW", 256, 1280, 1024, true, false, false},
    {"1280x1024x256 dX", 1280, 1024, 256, false, true, false},
    {"2048x512x2048", 2048, 512, 2048, false, false, false},
    {"1280x256x8000 logits", 1280, 256, 8000, false, true, false},
    {"64x512x1536 GRU step", 64, 512, 1536, false, false, true},
    {"1x512x512 decode", 1, 512, 512, false, false, true},
    {"1x512x512 decode B^T", 1, 512, 512, false, true, true},
    {"64x64x64", 64, 64, 64, false, false, false},
    {"64x64x64 B^T", 64, 64, 64, false, true, false},
    {"32x64x32", 32, 64, 32, false, false, false},
    {"32x64x32 B^T", 32, 64, 32, false, true, false},
};

typedef struct ours {
    at_gemm gemm;
    at_arena *arena;
} ours;

static double ours_turn(void *context, int64_t repeats)
{
    ours *o = context;
    if (!at_gemm_run(&o->gemm, o->arena))
        return -1;
    double begin = bench_clock();
    for (int64_t i = 0; i < repeats; i++)
        at_gemm_run(&o->gemm, o->arena);
    return bench_clock() - begin;
}

static ours ours_of(const product *p, at_arena *arena)
{
    return (ours){.arena = arena,
                  .gemm = {.m = p->m,
                           .n = p->n,
                           .k = p->k,
                           .a = p->a,
                           .a_row = p->transpose_a ? 1 : p->k,
                           .a_col = p->transpose_a ? p->m : 1,
                           .b = p->b,
                           .b_row = p->transpose_b ? 1 : p->n,
                           .b_col = p->transpose_b ? p->k : 1,
                           .c = p->c,
                           .c_row = p->n}};
}

/* A rival with another result has not computed the same product. */
static void check_results(race *r, const product *p, int first)
{
    int64_t count = (int64_t)p->m * p->n;
    double size = sqrt((double)count * p->k);
    r->entry[0].turn(r->entry[0].context, 1);
    double expected = data_checksum(p->c, count);
    for (int i = first; i < r->count; i++) {
        r->entry[i].turn(r->entry[i].context, 1);
        r->entry[i].failed = !data_agrees(expected, data_checksum(p->c, count), size);
        if (r->entry[i].failed)
            report_left_out(r->entry[i].who, "its product differs from ours");
    }
}

static void run_case(int which, at_arena *arena)
{
    const char *name = CASES[which].name;
    char packed_name[64];
    snprintf(packed_name, sizeof packed_name, "%s, packed", name);
    if (!bench_wants(name) && !(CASES[which].packed && bench_wants(packed_name)))
        return;
    product p = {.m = CASES[which].m,
                 .k = CASES[which].k,
                 .n = CASES[which].n,
                 .transpose_a = CASES[which].transpose_a,
                 .transpose_b = CASES[which].transpose_b};
    numbers a = data_new(1, (int64_t)p.m * p.k), b = data_new(2, (int64_t)p.k * p.n),
            c = numbers_new((int64_t)p.m * p.n);
    numbers packed = {0};
    p.a = a.values, p.b = b.values, p.c = c.values;

    race r = {0};
    ours loose = ours_of(&p, arena), tight = loose;
    race_add(&r, "attend", NULL, ours_turn, &loose);
    if (CASES[which].packed) {
        packed = numbers_new(at_gemm_packed_size(p.k, p.n));
        at_gemm_pack(tight.gemm.b, tight.gemm.b_row, tight.gemm.b_col, p.k, p.n, packed.values);
        tight.gemm.packed = packed.values;
        race_add(&r, "attend", NULL, ours_turn, &tight);
    }
    int first = r.count;
    if (bench_options.rivals)
        blas_add(&r, &p);
    check_results(&r, &p, first);
    race_run(&r);

    double flops = 2.0 * p.m * p.k * p.n;
    for (int i = 0; i < r.count; i++) {
        if (r.entry[i].failed)
            continue;
        row line = row_of(&r, i, "gemm", i == 1 && first == 2 ? packed_name : name, flops);
        if (i < first)
            line.ratio_to_best_rival = race_over_best(&r, i, first, r.count);
        report_row(&line);
    }
    numbers_free(&a);
    numbers_free(&b);
    numbers_free(&c);
    numbers_free(&packed);
}

void bench_gemm(void)
{
    at_arena *arena = at_arena_new();
    for (int i = 0; i < (int)(sizeof CASES / sizeof *CASES); i++) {
        /* --quick leaves out the large ones. */
        double flops = 2.0 * CASES[i].m * CASES[i].k * CASES[i].n;
        if (!bench_options.quick || flops <= 2e8)
            run_case(i, arena);
    }
    at_arena_free(arena);
}
