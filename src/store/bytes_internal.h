/* Little-endian numbers from bytes of a file that somebody else wrote, never beyond their end. */
#ifndef AT_BYTES_INTERNAL_H
#define AT_BYTES_INTERNAL_H

#include "base/error.h"

typedef struct at_bytes {
    const unsigned char *at, *end; /* how far they have been read, and where they end */
    const char *path;              /* for error messages */
    const char *what;              /* that is read: "a pickle" ends too early */
    at_error *error;
} at_bytes;

/* "'PATH' is truncated or damaged: WHY"; returns false. */
bool at_bytes_refuse(const at_bytes *bytes, const char *why);
/* The next `size` bytes; NULL after an error, and with one if there are not so many. */
const unsigned char *at_bytes_take(at_bytes *bytes, size_t size);
/* A number of 1 to 8 bytes, the lowest first; 0 on failure. */
uint64_t at_bytes_number(at_bytes *bytes, size_t size);

#endif
