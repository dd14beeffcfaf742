/* Two files, byte for byte. */
#ifndef SAME_FILES_H
#define SAME_FILES_H

/* cmocka.h needs these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"

static inline void same_files(const char *one, const char *other)
{
    at_error error = {0};
    size_t n, m;
    unsigned char *a = at_file_read(one, &n, &error), *b = at_file_read(other, &m, &error);
    assert_string_equal(error.text, "");
    if (n != m || memcmp(a, b, n) != 0)
        fail_msg("%s and %s differ", one, other);
    free(a);
    free(b);
}

#endif
