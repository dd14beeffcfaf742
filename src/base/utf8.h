/* Text from outside: whether it is UTF-8, and how to show it. */
#ifndef AT_UTF8_H
#define AT_UTF8_H

#include "attend.h"

/* How many bytes from the first on are UTF-8: all of them, or those before a byte that is not. */
size_t at_utf8_length(const char *text, size_t size);
bool at_is_utf8(const char *text);

/* A name made fit for an error message: control characters and bytes that are not UTF-8 as \xNN, a long name cut with
 * an ellipsis so that it fits into `size` bytes. Returns `out`. */
enum { AT_SHOWN = 96 };
char *at_shown(const char *name, char *out, size_t size);

#endif
