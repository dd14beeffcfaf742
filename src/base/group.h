/* Messages between the ranks of a group (attend_unstable.h). All functions accept NULL, a group of one rank, and have nothing to
 * do then. Only one thread may call them. */
#ifndef AT_GROUP_H
#define AT_GROUP_H

#include "attend_unstable.h"

bool at_group_is_lost(const at_group *group); /* a message to or from a rank failed: there can be no further one */

/* Bytes that go to or come from one rank. */
typedef struct at_part {
    void *bytes;
    size_t size;
} at_part;

/* Sends out[r] to every other rank r, and receives in[r] from it; both have as many parts as the group ranks. */
bool at_group_exchange(at_group *group, const at_part *out, const at_part *in, at_error *error);

/* Messages that go on while this process computes: each is begun, by both ranks and with a number of their own above 0, moved
 * on now and then, and all are waited for before any other function here is called. */
bool at_group_begin(at_group *group, bool sends, int other, int number, at_part part, at_error *error);
bool at_group_go_on(at_group *group, at_error *error);
bool at_group_await(at_group *group, at_error *error);

/* Every rank r has the bytes from begin[r] to begin[r + 1] of the block, and gets the others'. */
bool at_group_gather(at_group *group, void *block, const size_t *begin, at_error *error);

/* Whether this rank runs the version and the kernels that rank 0 runs; its own error if not, to agree on. */
bool at_group_same_build(at_group *group, const char *kernels, at_error *error);

#endif
