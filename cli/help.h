/* The texts of --help, from the tables of options. */
#ifndef HELP_H
#define HELP_H

#include "options.h"

/* The help of a command. */
const char *help_text(const cli_command *command);

/* Prints the help of one command on stdout. */
void help_command(const cli_command *command);

/* Prints the overview of all commands. */
void help_overview(FILE *stream, const cli_command *const *commands, int count);

/* The option as it is typed: "--heads N", "--model, -m FILE". */
void help_synopsis(const at_setting *option, char *out, size_t size);

/* Its help, with its choices and its default. */
void help_describe(const at_setting *option, char *out, size_t size);

#endif
