#include "bench.h"

#include <limits.h>
#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend.h"
#include "cases.h"
#include "machine.h"
#include "rivals_blas.h"
#include "worker.h"

static const struct {
    const char *name;
    void (*run)(void);
    void (*open_rivals)(void); /* NULL: none */
} BENCHES[] = {
    {"gemm", bench_gemm, blas_open},         {"attention", bench_attention, workers_start},
    {"conv", bench_conv, workers_start},     {"train", bench_train, workers_start},
    {"decode", bench_decode, workers_start}, {"rnn-vs-attention", bench_rnn_vs_attention, NULL},
};
enum { BENCH_COUNT = sizeof BENCHES / sizeof *BENCHES };

const char *bench_name(int index)
{
    return index >= 0 && index < BENCH_COUNT ? BENCHES[index].name : NULL;
}

/* Pins a single thread to one core; workers started later inherit this. */
static void settle_threads(void)
{
    char count[16];
    snprintf(count, sizeof count, "%d", bench_options.threads);
    static const char *const NAMES[] = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS",
                                        "MKL_NUM_THREADS"};
    for (int i = 0; i < (int)(sizeof NAMES / sizeof *NAMES); i++)
        setenv(NAMES[i], count, 1);
    at_threads_set(bench_options.threads);
    cpu_set_t cores;
    if (bench_options.threads > 1 || sched_getaffinity(0, sizeof cores, &cores) != 0)
        return;
    int last = -1;
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &cores))
            last = i;
    }
    CPU_ZERO(&cores);
    CPU_SET(last, &cores);
    sched_setaffinity(0, sizeof cores, &cores);
}

static bool chosen(const bench_request *request, int index)
{
    return !request->name || strcmp(request->name, BENCHES[index].name) == 0;
}

void bench_run(const bench_request *request)
{
    bench_options = (options){.json = request->json,
                              .quick = request->quick,
                              .rivals = request->rivals,
                              .threads = request->threads,
                              .rounds = request->rounds  ? request->rounds
                                        : request->quick ? 2
                                                         : 9,
                              .turn = request->quick ? 0.002 : 0.03,
                              .only = request->only};
    settle_threads();
    /* Freed memory stays with the process, as for the rivals (worker.c); otherwise each call would pay
     * for page faults. */
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    for (int i = 0; bench_options.rivals && i < BENCH_COUNT; i++) {
        if (chosen(request, i) && BENCHES[i].open_rivals)
            BENCHES[i].open_rivals();
    }
    report_begin();
    bench_machine();
    for (int i = 0; i < BENCH_COUNT; i++) {
        if (chosen(request, i))
            BENCHES[i].run();
    }
    report_end();
    workers_stop();
}
