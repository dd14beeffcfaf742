#include "measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "machine.h"

options bench_options;

double bench_clock(void)
{
    struct timespec t;
    clock_gettime(bench_options.threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool bench_wants(const char *name)
{
    return !bench_options.only || strstr(name, bench_options.only);
}

int race_add(race *r, const char *who, const char *variant, turn_function *turn, void *context)
{
    if (r->count == MAX_CONTESTANTS)
        abort();
    r->entry[r->count] = (contestant){.who = who, .variant = variant, .turn = turn, .context = context};
    return r->count++;
}

/* How many calls make a turn long enough to be measured. The first call only warms up. */
static void choose_repeats(contestant *c)
{
    c->repeats = 1;
    double seconds = c->turn(c->context, 1);
    while (seconds >= 0) {
        seconds = c->turn(c->context, c->repeats);
        if (seconds >= bench_options.turn || c->repeats > INT64_C(1) << 40)
            return;
        /* A very short trial is inaccurate, so grow at most eightfold at a time. */
        double factor = seconds > 0 ? 1.1 * bench_options.turn / seconds : 8;
        c->repeats = (int64_t)ceil((double)c->repeats * fmin(factor, 8));
    }
    c->failed = true;
}

/* The threads of some libraries spin for a while after a call before they sleep; that must not slow down the next
 * contestant. */
static void settle(void)
{
    if (bench_options.threads > 1)
        nanosleep(&(struct timespec){.tv_nsec = 80000000}, NULL);
}

void race_run(race *r)
{
    for (int i = 0; i < r->count; i++) {
        if (!r->entry[i].failed)
            choose_repeats(&r->entry[i]);
    }
    for (int round = 0; round < bench_options.rounds; round++) {
        settle();
        double before = machine_fma_peak();
        for (int i = 0; i < r->count; i++) {
            contestant *c = &r->entry[i];
            if (c->failed)
                continue;
            double seconds = c->turn(c->context, c->repeats);
            c->failed = seconds < 0;
            settle();
            double after = machine_fma_peak();
            c->seconds[round] = seconds / (double)c->repeats;
            c->peak[round] = fmax(before, after);
            before = after;
        }
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double race_seconds(const race *r, int entry)
{
    double values[MAX_ROUNDS];
    memcpy(values, r->entry[entry].seconds, sizeof values);
    return median(values, bench_options.rounds);
}

double race_share_of_peak(const race *r, int entry, double flops)
{
    const contestant *c = &r->entry[entry];
    double values[MAX_ROUNDS];
    for (int i = 0; i < bench_options.rounds; i++)
        values[i] = flops / c->seconds[i] * 1e-9 / c->peak[i];
    return median(values, bench_options.rounds);
}

double race_ratio(const race *r, int a, int b)
{
    const contestant *x = &r->entry[a], *y = &r->entry[b];
    double values[MAX_ROUNDS];
    for (int i = 0; i < bench_options.rounds; i++)
        values[i] = x->seconds[i] * x->peak[i] / (y->seconds[i] * y->peak[i]);
    return median(values, bench_options.rounds);
}

double race_plain_ratio(const race *r, int a, int b)
{
    const contestant *x = &r->entry[a], *y = &r->entry[b];
    double values[MAX_ROUNDS];
    for (int i = 0; i < bench_options.rounds; i++)
        values[i] = x->seconds[i] / y->seconds[i];
    return median(values, bench_options.rounds);
}

double race_over_best(const race *r, int entry, int first, int end)
{
    double least = NAN;
    for (int i = first; i < end; i++) {
        if (!r->entry[i].failed)
            least = fmin(least, race_ratio(r, i, entry));
    }
    return least;
}
