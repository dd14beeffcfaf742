/* Bytes as text. */
#ifndef AT_BASE64_INTERNAL_H
#define AT_BASE64_INTERNAL_H

#include "base/buffer.h"

/* Adds the bytes in base64 (RFC 4648). */
void at_base64_add(at_buffer *text, const unsigned char *bytes, size_t size);

#endif
