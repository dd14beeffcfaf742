/* Processes that work together, such as those that mpirun starts: ranks 0 to size - 1. Without one all functions accept NULL,
 * a group of one rank, and have nothing to do. Only one thread may call them. */
#ifndef AT_GROUP_H
#define AT_GROUP_H

#include "attend.h"

typedef struct at_group at_group;

/* The group that this process was started in; *group is NULL if it was started alone. It lasts as long as the process. A rank
 * that does not answer for `seconds` is an error of the others; so it is after a second once *stop is not 0. */
bool at_group_join(at_group **group, double seconds, const volatile int *stop, at_error *error);
int at_group_rank(const at_group *group);
int at_group_size(const at_group *group);
bool at_group_is_lost(const at_group *group); /* a message to or from a rank failed: there can be no further one */

/* Bytes that go to or come from one rank. */
typedef struct at_part {
    void *bytes;
    size_t size;
} at_part;

/* Sends out[r] to every other rank r, and receives in[r] from it; both have as many parts as the group ranks. */
bool at_group_exchange(at_group *group, const at_part *out, const at_part *in, at_error *error);

/* Every rank r has the bytes from begin[r] to begin[r + 1] of the block, and gets the others'. */
bool at_group_gather(at_group *group, void *block, const size_t *begin, at_error *error);

/* The bytes of rank 0, for all. The others wait for them without a limit. */
bool at_group_tell(at_group *group, void *bytes, size_t size, at_error *error);

/* If a rank has an error, all have it then, with the number of that rank in the message; of several, the first one's. */
bool at_group_agree(at_group *group, at_error *error);

#endif
