/* Sticky errors: the first failure's sentence stays. */
#ifndef AT_ERROR_H
#define AT_ERROR_H

#include "attend.h"

/* Records the sentence unless one is there already. Always gives false, so that `return at_fail(...)` reads well. */
bool at_fail(at_error *error, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
