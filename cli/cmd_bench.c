/* attend bench: its options and help. The benchmark measures the library's internals, so it is a program of its own,
 * attend-bench (bench/main.c), which attend starts. */
#include "cmd_bench.h"

static const at_setting table[] = {
    {AT_SETTING_HEADING, .help = "Its own options"},
    {AT_SETTING_SWITCH, "json", .offset = offsetof(bench_settings, json),
     .help = "rows of one JSON array instead of tables"},
    {AT_SETTING_TEXT, "case", "TEXT", offsetof(bench_settings, only), .help = "only cases whose name contains TEXT"},
    {AT_SETTING_COUNT, "rounds", "N", offsetof(bench_settings, rounds), NULL, 1, 99,
     .help = "rounds to take the median of (default: 9, or 2 with --quick)"},
    {AT_SETTING_SWITCH, "no-rivals", .offset = offsetof(bench_settings, no_rivals), .help = "leave the rivals out"},
    {AT_SETTING_SWITCH, "quick", .offset = offsetof(bench_settings, quick), .help = "small cases and short rounds"},
    {0},
};

const cli_command command_bench = {
    .name = "bench",
    .words = "[gemm|attention|conv|train|decode|rnn-vs-attention]",
    .most_words = 1,
    .line = "time the parts against the machine's limits and against others",
    .text = "Times matrix products, attention, convolutions, a training step, greedy decoding, or a recurrent layer "
            "against "
            "self-attention, each next to the peak measured on this machine in the same run; without a name, all of "
            "them. One thread unless --threads is given. `make peers` installs the rivals; those that are not "
            "installed are named and left out. The benchmark is a program of its own, attend-bench, which attend "
            "starts if it is installed.",
    .examples = "  attend bench attention --case causal\n"
                "  attend bench gemm --json --no-rivals",
    .options = table,
    .size = sizeof(bench_settings),
};
