/* The man pages, from the tables of options, as roff on stdout. */
#ifndef MANUAL_H
#define MANUAL_H

#include "options.h"

/* attend(1): the overview of all commands. */
void manual_overview(const cli_command *const *commands, int count);

/* attend-NAME(1): one command. */
void manual_command(const cli_command *command);

#endif
