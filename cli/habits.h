/* What other programs call the options and commands of attend, so that an error message can name the right one. */
#ifndef HABITS_H
#define HABITS_H

#include "options.h"

enum { HABIT_TEXT = 200 };

/* Ends the error message about an unknown option: "; it is called --learning-rate", with `dashes` before the name; ""
 * if `name`, which is without its dashes, is no option of another program that this command has a word for. */
void habit_option(const cli_command *command, const char *name, const char *dashes, char out[HABIT_TEXT]);

/* The command of attend that does what other programs call `name`; NULL if there is none. */
const char *habit_command(const char *name);

#endif
