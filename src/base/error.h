/* Sticky errors: the first failure's message stays. */
#ifndef AT_ERROR_H
#define AT_ERROR_H

#include "attend.h"

/* Records the message unless one is there already. Always returns false, so that `return at_fail(...)` reads well. */
bool at_fail(at_error *error, at_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same for AT_MEMORY, worded alike everywhere: "out of memory for WHAT". */
bool at_no_memory(at_error *error, const char *what, ...) __attribute__((format(printf, 2, 3)));

/* After a system call on a file: "cannot VERB 'PATH': REASON" with the reason of an errno, or the above for ENOMEM. */
bool at_file_fail(at_error *error, const char *verb, const char *path, int reason);

#endif
