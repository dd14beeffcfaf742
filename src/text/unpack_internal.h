/* Compressed input: one record per format, from a build that has its library. */
#ifndef AT_UNPACK_INTERNAL_H
#define AT_UNPACK_INTERNAL_H

#include "base/error.h"

/* A step reads from `in` and writes to `out`, and advances both. */
typedef struct at_unpack_step {
    const unsigned char *in;
    size_t in_size;
    unsigned char *out;
    size_t out_size;
    bool at_end; /* set: a whole member or frame is done, and the input may end here */
} at_unpack_step;

typedef struct at_packing {
    const char *name;    /* "gzip" */
    const char *library; /* that the build must have found: "zlib" */
    const char *ending;  /* of file names: ".gz" */
    const char *magic[2];
    size_t magic_size;
    void *(*open)(void); /* NULL: out of memory; the member is NULL if the build lacks the library */
    /* Decompresses some; returns what is wrong with the data, or NULL. */
    const char *(*step)(void *state, at_unpack_step *step);
    void (*close)(void *state);
} at_packing;

/* The known formats; NULL past the last. */
const at_packing *at_packing_at(int index);

/* The format that the first bytes belong to, or NULL; *more if they are too few to tell. */
const at_packing *at_packing_find(const unsigned char *bytes, size_t size, bool *more);

#endif
