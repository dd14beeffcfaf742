/* What a file is that is not what it should be, by its first bytes: for error messages. */
#ifndef AT_FILE_KIND_H
#define AT_FILE_KIND_H

#include "attend.h"

enum { AT_KIND_BYTES = 4096 }; /* that are looked at */

/* "a text file", "gzip data", "a zip archive, as PyTorch writes it" ...; NULL if it is none that is known. `size` bytes of
 * the file, 0 of an empty one; fewer than AT_KIND_BYTES if it ends there. */
const char *at_file_kind(const unsigned char *bytes, size_t size);

/* The name that iconv has for the encoding if the text is UTF-16: "UTF-16" with a byte-order mark, else "UTF-16LE" or
 * "UTF-16BE"; NULL if it is not. */
const char *at_utf16_kind(const unsigned char *bytes, size_t size);

#endif
