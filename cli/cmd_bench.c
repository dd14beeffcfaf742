/* attend bench: its options and help. The benchmark measures the library's internals, so it is a program of its own,
 * attend-bench (bench/main.c), which attend starts. */
#include "cmd_bench.h"

static const cli_option table[] = {
    {OPTION_HEADING, .help = "Its own options"},
    {OPTION_FLAG, "json", .place = offsetof(bench_settings, json), .help = "rows of one JSON array instead of tables"},
    {OPTION_TEXT, "case", "TEXT", offsetof(bench_settings, only), .help = "only cases whose name contains TEXT"},
    {OPTION_NUMBER, "rounds", "N", offsetof(bench_settings, rounds), NULL, 1, 99,
     .help = "rounds to take the median of (default: 9, or 2 with --quick)"},
    {OPTION_FLAG, "no-rivals", .place = offsetof(bench_settings, no_rivals), .help = "leave the rivals out"},
    {OPTION_FLAG, "quick", .place = offsetof(bench_settings, quick), .help = "small cases and short rounds"},
    {0},
};

const cli_command command_bench = {
    .name = "bench",
    .words = "[gemm|attention|train|decode|rnn-vs-attention]",
    .most_words = 1,
    .line = "time the parts against the machine's limits and against others",
    .text = "Times matrix products, attention, a training step, greedy decoding, or a recurrent layer against "
            "self-attention, each next to the peak measured on this machine in the same run; without a name, all of "
            "them. One thread unless --threads is given. `make peers` installs the rivals; those that are not "
            "installed are named and left out. The benchmark is a program of its own, attend-bench, which attend "
            "starts if it is installed.",
    .examples = "  attend bench attention --case causal\n"
                "  attend bench gemm --json --no-rivals",
    .options = table,
    .size = sizeof(bench_settings),
};
