/* Completion scripts for shells, from the tables of options, on stdout. */
#ifndef COMPLETION_H
#define COMPLETION_H

#include "options.h"

/* `shell` is bash or zsh; false: there is no script for it. */
bool completion_print(const char *shell, const cli_command *const *commands, int count, at_error *error);

#endif
