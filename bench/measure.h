/* How the benchmark measures. All contestants of a case take turns, round by round, with the FMA peak measured between
 * the turns: on a shared machine only figures taken at the same time can be compared. A figure is the
 * median over the rounds of the ratio within the round.
 *
 * One thread counts CPU time and stays on one core; more threads count the wall clock. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

enum { MAX_ROUNDS = 99, MAX_CONTESTANTS = 16 };

typedef struct options {
    bool json, quick, rivals;
    int threads, rounds;
    double turn;      /* seconds a turn lasts at least */
    const char *only; /* run only cases whose name holds this text; NULL: all */
} options;

extern options bench_options;

/* Seconds of the clock in use: CPU time or wall clock. */
double bench_clock(void);

/* Whether --case lets a case of this name run. */
bool bench_wants(const char *name);

/* Seconds that `repeats` calls took; negative if it cannot do them. */
typedef double turn_function(void *context, int64_t repeats);

typedef struct contestant {
    const char *who;     /* "attend", "torch", ... */
    const char *variant; /* which of its algorithms, or NULL */
    turn_function *turn;
    void *context;
    bool failed;
    int64_t repeats;
    double seconds[MAX_ROUNDS]; /* of one call */
    double peak[MAX_ROUNDS];    /* GFLOP/s at that time: the better of just before and just after */
} contestant;

typedef struct race {
    contestant entry[MAX_CONTESTANTS];
    int count;
} race;

/* Adds a contestant and returns its index. */
int race_add(race *r, const char *who, const char *variant, turn_function *turn, void *context);
void race_run(race *r);

/* Medians over the rounds. A ratio is that of the times a / b, each divided by the peak at its time. */
double race_seconds(const race *r, int entry);
double race_share_of_peak(const race *r, int entry, double flops); /* 0..1 */
double race_ratio(const race *r, int a, int b);
double race_plain_ratio(const race *r, int a, int b); /* without the peaks: for work that is limited by memory */
/* How many times as fast as the best of the entries first .. end-1 this entry is; NAN if none of them ran. */
double race_over_best(const race *r, int entry, int first, int end);

/* One line of the result. NAN fields are left out; start from ROW. */
typedef struct row {
    const char *bench, *name, *who, *variant;
    int threads;
    double ms, gflops, percent_of_peak, ratio_to_best_rival;
    double gb_per_second, percent_of_bandwidth, billion_per_second, percent_of_tanh_bound;
    double ratio_to_plain, ratio_to_greedy, attend_over_it, speedup_over_one_thread, speedup_over_f32;
    double extra_mb, extra_rss_mb, peak_rss_mb;
    double us_per_token, sequential_steps;
    double tokens_per_second, allocations;
} row;

row row_new(const char *bench, const char *name, const char *who, const char *variant);
/* The fields that come from a race; flops 0: not counted. */
row row_of(const race *r, int entry, const char *bench, const char *name, double flops);

void report_begin(void);
void report_row(const row *line);
void report_end(void);
/* A message on stderr, written once however often it occurs. */
void report_left_out(const char *who, const char *reason);

#endif
