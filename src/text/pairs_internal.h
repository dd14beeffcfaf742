/* The parts of a corpus, for its batches. */
#ifndef AT_PAIRS_INTERNAL_H
#define AT_PAIRS_INTERNAL_H

#include "text/corpus.h"

/* One side: the ids of all sentences one after the other; sentence i is ids[start[i] .. start[i + 1]). */
typedef struct at_pairs_side {
    int32_t *ids;
    size_t used, room;
    int64_t *start; /* [count + 1] */
} at_pairs_side;

struct at_corpus {
    at_pairs_side side[2]; /* source, target */
    int64_t *line;         /* [count] numbers from 1 */
    int64_t count;
};

static inline int64_t at_pairs_length(const at_corpus *corpus, int side, int64_t sentence)
{
    return corpus->side[side].start[sentence + 1] - corpus->side[side].start[sentence];
}

#endif
