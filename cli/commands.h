/* The sub-commands, one record each. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "options.h"

extern const cli_command command_list, command_attention, command_train, command_translate, command_align, command_show,
    command_encode, command_info, command_score, command_average, command_convert, command_compare, command_curve,
    command_demo, command_bench, command_vocabulary, command_serve, command_heads, command_calibrate;

/* A demonstration that explains itself page by page (demo/demo.h). */
typedef struct cli_demo cli_demo;

/* The demos in order; NULL past the last. */
const cli_demo *demo_at(int index);

#endif
