/* Pickles, read by a machine that calls nothing: it knows texts, numbers, lists, dictionaries and the arrays of PyTorch.
 * Every other object is an opaque one, which has its class, arguments and state, and is never constructed. */
#ifndef AT_PICKLE_INTERNAL_H
#define AT_PICKLE_INTERNAL_H

#include "base/arena.h"
#include "base/error.h"

typedef enum at_pickled_kind {
    AT_PICKLED_NONE,
    AT_PICKLED_INTEGER, /* and truth values */
    AT_PICKLED_REAL,
    AT_PICKLED_TEXT,
    AT_PICKLED_LIST, /* and tuples */
    AT_PICKLED_DICTIONARY,
    AT_PICKLED_GLOBAL,  /* a name: "torch FloatStorage" */
    AT_PICKLED_STORAGE, /* the numbers of arrays, in the file */
    AT_PICKLED_ARRAY,
    AT_PICKLED_OBJECT,
    AT_PICKLED_MARK,
} at_pickled_kind;

typedef struct at_pickled at_pickled;
struct at_pickled {
    at_pickled_kind kind;
    int rank; /* of an array */
    union {
        int64_t integer; /* of a storage how many numbers, of an array its offset in the storage */
        double real;
    };
    union {
        const char *text;  /* ends in a NUL; of a name and of a storage, too: its key */
        at_pickled **item; /* [count] of a list or an object's arguments; of a dictionary keys and values in turn */
    };
    uint32_t count, room;
    at_pickled *of; /* the type of a storage, the storage of an array, the class of an object */
    union {
        at_pickled *state; /* of an object, NULL: none; of a storage the one before it in the pickle */
        int64_t *dim;      /* [2,rank] of an array: sizes and strides */
    };
};

/* Reads one pickle from *at on, and moves *at behind it. The values are in the arena. *storage, if not NULL, is the last
 * of the storages. */
at_pickled *at_pickle_read(at_arena *arena, const unsigned char **at, const unsigned char *end, const char *path,
                           at_pickled **storage, at_error *error);

/* The value of a key of a dictionary, or of the state of an object; NULL: none. Of two equal keys the last. */
at_pickled *at_pickled_get(const at_pickled *value, const char *key);
/* The text, or NULL; the number, or `fallback`. */
const char *at_pickled_text(const at_pickled *value);
int64_t at_pickled_integer(const at_pickled *value, int64_t fallback);

#endif
