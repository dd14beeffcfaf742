/* The texts of --help, from the tables of options. */
#ifndef HELP_H
#define HELP_H

#include "options.h"

/* The help of a command. */
const char *help_text(const cli_command *command);

/* Prints the help of one command on stdout: all options, or for a command with many those that are used most and the
 * names of the others. `variant`, if not NULL, is one of the command's variants (a model): its options only. `topic`, if
 * not NULL, is a group of options, "all", or a variant. Fails with AT_USAGE if there is no such variant or topic. */
bool help_command(const cli_command *command, const char *variant, const char *topic, at_error *error);

/* What a variant is, its options and its defaults. */
bool help_variant(const cli_command *command, const char *variant, at_error *error);

/* Prints the overview of all commands. */
void help_overview(FILE *stream, const cli_command *const *commands, int count);

/* The option as it is typed: "--heads N", "--model, -m FILE". */
void help_synopsis(const at_setting *option, char *out, size_t size);

/* Its help, with its choices and its default. */
void help_describe(const at_setting *option, char *out, size_t size);

#endif
