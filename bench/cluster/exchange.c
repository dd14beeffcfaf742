/* The seconds of the two exchanges of an update between ranks, as attend train makes them: every rank sends every other one that
 * one's share of the gradients, and then gets the others' shares of the parameters. bench/cluster.sh runs it.
 *   mpirun -np R attend-exchange ROUNDS MB...
 * Rank 0 prints a line for each size: the ranks, the bytes, and the median of the slowest rank's seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/group.h"

enum { MOST_RANKS = 128, MOST_ROUNDS = 101 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Both exchanges of a block of `bytes`; the seconds of the slowest rank. */
static double exchange(at_group *group, char *block, char *received, size_t bytes, at_error *error)
{
    const int size = at_group_size(group), rank = at_group_rank(group);
    at_part out[MOST_RANKS] = {0}, in[MOST_RANKS] = {0};
    size_t begin[MOST_RANKS + 1], own;
    double seconds[MOST_RANKS] = {0};
    for (int r = 0; r <= size; r++)
        begin[r] = bytes / (size_t)size * (size_t)r;
    own = begin[rank + 1] - begin[rank];
    for (int r = 0; r < size; r++) {
        out[r] = (at_part){block + begin[r], begin[r + 1] - begin[r]};
        in[r] = (at_part){received + (size_t)r * own, own};
    }
    at_group_agree(group, error); /* they begin together */
    const double began = now();
    at_group_exchange(group, out, in, error);
    at_group_gather(group, block, begin, error);
    seconds[rank] = now() - began;
    for (int r = 0; r <= size; r++)
        begin[r] = (size_t)r * sizeof *seconds;
    at_group_gather(group, seconds, begin, error);
    qsort(seconds, (size_t)size, sizeof *seconds, compare);
    return seconds[size - 1];
}

int main(int argc, char **argv)
{
    at_error error = {0};
    at_group *group = NULL;
    const int rounds = argc > 2 ? atoi(argv[1]) : 0;
    if (rounds < 1 || rounds > MOST_ROUNDS || !at_group_join(&group, 600, NULL, &error) || !group ||
        at_group_size(group) > MOST_RANKS) {
        fprintf(stderr, "usage: mpirun -np R attend-exchange ROUNDS MB...  %s\n", error.text);
        return 2;
    }
    for (int i = 2; i < argc && error.code == AT_OK; i++) {
        const size_t bytes = (size_t)(atof(argv[i]) * 1e6);
        double seconds[MOST_ROUNDS];
        char *block = calloc(2, bytes + 64);
        if (!block)
            return 1;
        for (int round = 0; round < rounds; round++)
            seconds[round] = exchange(group, block, block + bytes + 64, bytes, &error);
        qsort(seconds, (size_t)rounds, sizeof *seconds, compare);
        if (at_group_rank(group) == 0)
            printf("%d %zu %.6f\n", at_group_size(group), bytes, seconds[rounds / 2]);
        fflush(stdout);
        free(block);
    }
    if (error.code != AT_OK && at_process_speaks())
        fprintf(stderr, "attend-exchange: %s\n", error.text);
    return error.code != AT_OK;
}
