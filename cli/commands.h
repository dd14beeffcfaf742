/* The sub-commands, one record each. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "options.h"

extern const cli_command command_list, command_attention, command_train, command_translate, command_align, command_show,
    command_encode, command_info, command_score, command_average, command_compare, command_demo, command_bench;

/* A demonstration that explains itself step by step. */
typedef struct cli_demo {
    const char *name, *line;
    bool (*run)(const cli_common *options, at_error *error);
} cli_demo;

extern const cli_demo demo_self_attention;

/* The demos in order; NULL past the last. */
const cli_demo *demo_at(int index);

#endif
