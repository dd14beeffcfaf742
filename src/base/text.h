/* Small string work: did-you-mean, growing text. */
#ifndef AT_TEXT_H
#define AT_TEXT_H

#include "attend.h"

/* The names nearest to a misspelt one, ready for a sentence: "; did you mean 'scaled'?" or "" if none is near. */
void at_nearest(const char *word, const char *const *names, int count, char *out, size_t size);

bool at_is_utf8(const char *text);

/* FNV-1a: enough to tell texts apart. */
uint64_t at_hash_text(const char *text);

/* A name from outside made fit for a sentence: control characters and bytes that are not UTF-8 as \xNN, a long name cut
 * with an ellipsis so that it fits into `size` bytes. Gives `out`. */
enum { AT_SHOWN = 96 };
char *at_shown(const char *name, char *out, size_t size);

/* Text that grows; release with at_buffer_free or hand out .bytes, which ends in a NUL that .size does not count.
 * Sticky: `failed` if memory ran out. */
typedef struct at_buffer {
    char *bytes;
    size_t size, room;
    bool failed;
} at_buffer;
void at_buffer_add(at_buffer *buffer, const void *bytes, size_t size);
void at_buffer_print(at_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void at_buffer_cut(at_buffer *buffer, size_t size); /* keeps the first `size` bytes of what is there */
void at_buffer_free(at_buffer *buffer);

#endif
