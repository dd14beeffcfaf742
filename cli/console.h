/* Messages and text of the command: errors, columns that line up, colour where it is wanted. */
#ifndef CONSOLE_H
#define CONSOLE_H

#include <stdio.h>

#include "attend_unstable.h"

/* Exit codes of the command. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };
int exit_code(const at_error *error);

/* Records the message unless one is there already. Always returns false, so that `return fail(...)` reads well. */
bool fail(at_error *error, at_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the message of an error, so that it names the option that led there. */
bool fail_under(at_error *error, const char *prefix);

/* Prints the error's message on stderr as "attend: ...", with `heads` as --heads; returns its exit code. */
int report(const at_error *error);

/* Text from outside: control characters, and bytes that are not UTF-8, as \xNN. */
void print_plain(FILE *stream, const char *text, size_t size);

/* A text of the library with `heads` as --heads. */
void dash_settings(const char *text, char *out, size_t size);

/* Columns that UTF-8 text takes in a terminal: 0 for a combining mark, 2 for a Chinese, Japanese or Korean character. And
 * those of its first `size` bytes. */
int text_width(const char *text);
int text_part_width(const char *text, size_t size);

/* The text, then blanks up to `width` columns. */
void print_padded(FILE *stream, const char *text, int width);

/* The words of `text` broken into lines of at most `right` columns, each but the first indented by `left`; `column` is
 * where the first line stands already. A newline in the text starts a line of its own. Ends with a newline. */
void print_wrapped(FILE *stream, const char *text, int left, int right, int column);

/* True if stdout is a terminal that wants colour: NO_COLOR is unset and TERM is not dumb. */
bool colour_wanted(void);

/* The columns that a line on stdout, or on a descriptor, may take: COLUMNS, or what the terminal reports, or 80 if it
 * does not know; 0: no limit, as it is no terminal. */
int terminal_width(void);
int terminal_width_of(int descriptor);

/* A line on stdout: broken at the width of the terminal, with two blanks before each further line. */
void print_fitted(const char *line);
/* A line for people, on stderr: in a terminal it is broken at its width, with two blanks before each further line. */
void tell_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Sets colours and width of a map that is drawn on stdout after `indent` blanks. */
void fit_terminal(at_heatmap *map, int indent);

/* The text as a heading: bold where colour is wanted, plain elsewhere. */
void print_heading(const char *text);

#endif
