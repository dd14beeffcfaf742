/* What --help and the man page say, from the tables of options. */
#ifndef HELP_H
#define HELP_H

#include "options.h"

/* Of one command, on stdout. */
void help_command(const cli_command *command);

/* The overview of all commands. */
void help_overview(FILE *stream, const cli_command *const *commands, int count);

/* A man page of all commands as roff on stdout. */
void help_manual(const cli_command *const *commands, int count);

#endif
