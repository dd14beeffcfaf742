/* What the readers of other programs' models share: their words with our ids, and their arrays as our parameters. */
#ifndef AT_IMPORTED_INTERNAL_H
#define AT_IMPORTED_INTERNAL_H

#include "base/error.h"
#include "store/translator.h"

/* The words of one side, row by row of the model's matrices. */
typedef struct at_row_names {
    char **name;
    int64_t count;
} at_row_names;
void at_row_names_free(at_row_names *names);

/* The names of its special units; NULL: it has none. */
typedef struct at_row_specials {
    const char *pad, *unknown, *begin, *end;
} at_row_specials;

/* A vocabulary of ours over those words, and the model's row of each of our ids; -1: it has none. */
typedef struct at_row_ids {
    at_vocabulary *vocabulary;
    int64_t *row;
    int64_t units;
} at_row_ids;

/* Tokens are separated by blanks. A row without a name, which still takes part in the softmax, is called <row499>, and so
 * is one with a name that another row has or that is no token. If no row has the name of the unknown unit, the first one
 * after the names is it. */
bool at_row_ids_make(const at_row_names *names, int64_t rows, const at_row_specials *specials, at_row_ids *ids,
                     at_error *error);
void at_row_ids_free(at_row_ids *ids);

/* to[i] = from[row[i]], rows of `width` numbers; `missing` where there is no such row. */
void at_rows_pick(const at_row_ids *ids, const at_real *from, int64_t width, at_real missing, at_real *to);

/* The bias of a unit that the model does not have: its probability is 0. */
#define AT_NEVER ((at_real)-1e30)

#endif
