/* attend bench: the benchmark, which looks at the library from the inside and so is reached by one header of its own.
 */
#include <string.h>

#include "bench.h"
#include "commands.h"

typedef struct bench_options {
    cli_common common;
    bool json, no_rivals, quick;
    int64_t rounds;
    const char *only;
} bench_options;

static const cli_option table[] = {
    {OPTION_HEADING, .help = "Its own options"},
    {OPTION_FLAG, "json", .place = offsetof(bench_options, json), .help = "rows of one JSON array instead of tables"},
    {OPTION_TEXT, "case", "TEXT", offsetof(bench_options, only), .help = "only cases whose name holds TEXT"},
    {OPTION_NUMBER, "rounds", "N", offsetof(bench_options, rounds), NULL, 1, 99,
     .help = "rounds to take the median of (default: 9, or 2 with --quick)"},
    {OPTION_FLAG, "no-rivals", .place = offsetof(bench_options, no_rivals), .help = "leave the rivals out"},
    {OPTION_FLAG, "quick", .place = offsetof(bench_options, quick), .help = "small cases and short rounds"},
    {0},
};

static int run(void *given, int word_count, char **words)
{
    const bench_options *o = given;
    at_error error = {0};
    const char *names[8];
    int count = 0;
    bool known = !word_count;
    for (; bench_name(count); count++) {
        names[count] = bench_name(count);
        known = known || strcmp(words[0], names[count]) == 0;
    }
    if (known) {
        bench_run(&(bench_request){.name = word_count ? words[0] : NULL,
                                   .json = o->json,
                                   .quick = o->quick,
                                   .rivals = !o->no_rivals,
                                   .threads = o->common.threads == UNSET ? 1 : at_threads(),
                                   .rounds = o->rounds == UNSET ? 0 : (int)o->rounds,
                                   .only = o->only});
        return EXIT_DONE;
    }
    fail_no(&error, "bench", words[0], names, count);
    return report(&error);
}

const cli_command command_bench = {
    .name = "bench",
    .words = "[gemm|attention|train|decode|rnn-vs-attention]",
    .most_words = 1,
    .line = "time the parts against the machine's limits and against others",
    .text = "Times the inner product, attention, a training step, greedy decoding, or a recurrent layer against "
            "self-attention, each next to the peak measured on this machine in the same run; without a name, all of "
            "them. One thread unless --threads says otherwise. The rivals come with `make peers`; those that are not "
            "there are named and left out.",
    .examples = "  attend bench attention --case causal\n"
                "  attend bench gemm --json --no-rivals",
    .options = table,
    .size = sizeof(bench_options),
    .run = run,
};
