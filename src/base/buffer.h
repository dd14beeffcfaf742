/* Text that grows. */
#ifndef AT_BUFFER_H
#define AT_BUFFER_H

#include "attend.h"

/* Start from zeros; release with at_buffer_free, or keep .bytes, which ends in a NUL that .size does not count. Sticky:
 * once out of memory, `failed` is true and nothing more is added. */
typedef struct at_buffer {
    char *bytes;
    size_t size, room;
    bool failed;
} at_buffer;
void at_buffer_add(at_buffer *buffer, const void *bytes, size_t size);
void at_buffer_print(at_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void at_buffer_cut(at_buffer *buffer, size_t size); /* keeps the first `size` bytes */
void at_buffer_free(at_buffer *buffer);

#endif
