/* The options of attend bench, which attend-bench parses and attend only describes. */
#ifndef CMD_BENCH_H
#define CMD_BENCH_H

#include "commands.h"

typedef struct bench_settings {
    cli_common common;
    bool json, no_rivals, quick;
    int64_t rounds;
    const char *only;
} bench_settings;

#endif
