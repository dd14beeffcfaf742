#include "bench.h"

#include <getopt.h>
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
} BENCHES[] = {
    {"gemm", bench_gemm},
    {"attention", bench_attention},
    {"rnn-vs-attention", bench_rnn_vs_attention},
};
enum { BENCH_COUNT = sizeof BENCHES / sizeof *BENCHES };

static const char HELP[] =
    "attend bench [gemm|attention|rnn-vs-attention]: this library against the rivals and the machine's limits\n"
    "\n"
    "  --json          rows of a JSON array instead of tables\n"
    "  --threads N     threads to use; default 1\n"
    "  --rounds N      rounds to take the median of, 1 to 99; default 9\n"
    "  --case TEXT     only cases whose name holds TEXT\n"
    "  --no-rivals     leave the rivals out\n"
    "  --quick         small cases, two short rounds\n"
    "  --help          this text\n"
    "\n"
    "Without a name all of them run. The rivals come with `make peers`; those that are not there are left out.\n";

static int usage(const char *sentence, const char *word)
{
    fprintf(stderr, "attend: bench: ");
    fprintf(stderr, sentence, word);
    fprintf(stderr, "\n");
    return AT_USAGE;
}

static bool parse_count(const char *text, int most, int *count)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < 1 || value > most)
        return false;
    *count = (int)value;
    return true;
}

/* Gives -1 to go on, or an exit code. *chosen is the bench asked for, -1: all. */
static int parse(int argc, char **argv, int *chosen)
{
    static const struct option LONG[] = {
        {"json", no_argument, NULL, 'j'},         {"threads", required_argument, NULL, 't'},
        {"rounds", required_argument, NULL, 'r'}, {"case", required_argument, NULL, 'c'},
        {"no-rivals", no_argument, NULL, 'n'},    {"quick", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    int rounds = 0;
    bench_options = (options){.rivals = true, .threads = 1};
    optind = 0; /* the command may have used getopt before */
    opterr = 0;
    for (int letter; (letter = getopt_long(argc, argv, ":", LONG, NULL)) != -1;) {
        switch (letter) {
        case 'j':
            bench_options.json = true;
            break;
        case 't':
            if (!parse_count(optarg, 64, &bench_options.threads))
                return usage("--threads takes a number from 1 to 64, not '%s'", optarg);
            break;
        case 'r':
            if (!parse_count(optarg, MAX_ROUNDS, &rounds))
                return usage("--rounds takes a number from 1 to 99, not '%s'", optarg);
            break;
        case 'c':
            bench_options.only = optarg;
            break;
        case 'n':
            bench_options.rivals = false;
            break;
        case 'q':
            bench_options.quick = true;
            break;
        case 'h':
            fputs(HELP, stdout);
            return AT_OK;
        case ':':
            return usage("option '%s' needs a value", argv[optind - 1]);
        default:
            return usage("no option '%s'; `attend bench --help` lists them", argv[optind - 1]);
        }
    }
    bench_options.rounds = rounds > 0 ? rounds : bench_options.quick ? 2 : 9;
    bench_options.turn = bench_options.quick ? 0.002 : 0.03;
    *chosen = -1;
    if (optind == argc)
        return -1;
    if (optind + 1 < argc)
        return usage("one name at a time: '%s' is too many", argv[optind + 1]);
    for (int i = 0; i < BENCH_COUNT; i++) {
        if (strcmp(argv[optind], BENCHES[i].name) == 0)
            *chosen = i;
    }
    return *chosen >= 0 ? -1 : usage("no bench '%s'; there are gemm, attention and rnn-vs-attention", argv[optind]);
}

/* One thread stays on one core, and so do the workers started after this. */
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

int bench_main(int argc, char **argv)
{
    int chosen;
    int code = parse(argc, argv, &chosen);
    if (code >= 0)
        return code;
    settle_threads();
    if (bench_options.rivals && (chosen == -1 || BENCHES[chosen].run == bench_gemm))
        blas_open();
    if (bench_options.rivals && (chosen == -1 || BENCHES[chosen].run == bench_attention))
        workers_start();
    report_begin();
    bench_machine();
    for (int i = 0; i < BENCH_COUNT; i++) {
        if (chosen == -1 || chosen == i)
            BENCHES[i].run();
    }
    report_end();
    workers_stop();
    return AT_OK;
}
