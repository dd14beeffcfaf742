#include "rivals_blas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The constants of CBLAS. */
enum { ROW_MAJOR = 101, AS_IS = 111, TRANSPOSED = 112 };

typedef void cblas_sgemm_function(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
                                  const float *b, int ldb, float beta, float *c, int ldc);
typedef void cblas_sgemv_function(int order, int t, int m, int n, float alpha, const float *a, int lda, const float *x,
                                  int incx, float beta, float *y, int incy);
typedef int dnnl_sgemm_function(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                                int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

typedef struct cblas {
    cblas_sgemm_function *sgemm;
    cblas_sgemv_function *sgemv;
} cblas;

static cblas openblas, blis;
static dnnl_sgemm_function *dnnl_sgemm;

/* A function of a library, copied as bytes because C has no cast from object to function pointers. */
static void find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
}

static void *open_first(const char *who, const char *const *paths)
{
    for (int i = 0; paths[i]; i++) {
        void *library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    report_left_out(who, "the library is not installed (make peers)");
    return NULL;
}

static void open_cblas(cblas *library, const char *who, const char *set_threads, const char *const *paths)
{
    void *opened = open_first(who, paths);
    if (!opened)
        return;
    find(opened, "cblas_sgemm", &library->sgemm);
    find(opened, "cblas_sgemv", &library->sgemv);
    /* Both take an integer in the first register: int in OpenBLAS, its own 64-bit one in BLIS. */
    void (*set)(int64_t) = NULL;
    find(opened, set_threads, &set);
    if (set)
        set(bench_options.threads);
}

#define LIBRARIES "/usr/lib/x86_64-linux-gnu"

void blas_open(void)
{
    open_cblas(&openblas, "openblas", "openblas_set_num_threads",
               (const char *const[]){LIBRARIES "/openblas-openmp/libopenblas.so.0",
                                     LIBRARIES "/openblas-pthread/libopenblas.so.0", "libopenblas.so.0", NULL});
    open_cblas(&blis, "blis", "bli_thread_set_num_threads",
               (const char *const[]){LIBRARIES "/blis-openmp/libblis.so.4", LIBRARIES "/blis-pthread/libblis.so.4",
                                     "libblis.so.4", NULL});
    void *dnnl = open_first("onednn", (const char *const[]){"libdnnl.so.2", "libdnnl.so.3", NULL});
    if (dnnl)
        find(dnnl, "dnnl_sgemm", &dnnl_sgemm);
}

/* One row times a matrix is computed by gemv, which is faster in these libraries than gemm with m = 1. */
static void cblas_run(const cblas *library, const product *p)
{
    int lda = p->transpose_a ? p->m : p->k, ldb = p->transpose_b ? p->k : p->n;
    if (p->m == 1 && library->sgemv) {
        int rows = p->transpose_b ? p->n : p->k, columns = p->transpose_b ? p->k : p->n;
        library->sgemv(ROW_MAJOR, p->transpose_b ? AS_IS : TRANSPOSED, rows, columns, 1, p->b, ldb, p->a, 1, 0, p->c,
                       1);
        return;
    }
    library->sgemm(ROW_MAJOR, p->transpose_a ? TRANSPOSED : AS_IS, p->transpose_b ? TRANSPOSED : AS_IS, p->m, p->n,
                   p->k, 1, p->a, lda, p->b, ldb, 0, p->c, p->n);
}

static double cblas_turn(const cblas *library, const product *p, int64_t repeats)
{
    cblas_run(library, p);
    double begin = bench_clock();
    for (int64_t i = 0; i < repeats; i++)
        cblas_run(library, p);
    return bench_clock() - begin;
}

static double openblas_turn(void *context, int64_t repeats)
{
    return cblas_turn(&openblas, context, repeats);
}

static double blis_turn(void *context, int64_t repeats)
{
    return cblas_turn(&blis, context, repeats);
}

static void onednn_run(const product *p)
{
    int lda = p->transpose_a ? p->m : p->k, ldb = p->transpose_b ? p->k : p->n;
    dnnl_sgemm(p->transpose_a ? 'T' : 'N', p->transpose_b ? 'T' : 'N', p->m, p->n, p->k, 1, p->a, lda, p->b, ldb, 0,
               p->c, p->n);
}

static double onednn_turn(void *context, int64_t repeats)
{
    onednn_run(context);
    double begin = bench_clock();
    for (int64_t i = 0; i < repeats; i++)
        onednn_run(context);
    return bench_clock() - begin;
}

void blas_add(race *r, product *p)
{
    if (openblas.sgemm)
        race_add(r, "openblas", NULL, openblas_turn, p);
    if (blis.sgemm)
        race_add(r, "blis", NULL, blis_turn, p);
    if (dnnl_sgemm)
        race_add(r, "onednn", NULL, onednn_turn, p);
}
