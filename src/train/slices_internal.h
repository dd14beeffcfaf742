/* The gradient of an update as a sum over its slices, the batches of `accumulate`. It has the same bits wherever its parts are
 * added up, as it is defined as the sum over a binary tree of the slices' numbers:
 *
 *     S(0, n) of n slices,  S(i, i + 1) the gradient of slice i,
 *     S(from, to) = S(from, middle) + S(middle, to),  middle = from + the largest power of two below to - from
 *
 * Of a group of processes every rank computes neighbouring slices and adds up the nodes of the tree that consist of them. Then
 * each rank gets its share of the parameters of all these sums, and adds up the rest of the tree for that share. */
#ifndef AT_SLICES_INTERNAL_H
#define AT_SLICES_INTERNAL_H

#include "base/group.h"
#include "tape/params.h"

/* The slices from..to-1. */
typedef struct at_branch {
    int64_t from, to;
} at_branch;

/* Whether both are the two parts of a node of the tree of n slices. */
bool at_branches_join(int64_t n, at_branch left, at_branch right);
/* Those of n slices that a rank of `size` computes. */
at_branch at_slices_of(int64_t n, int rank, int size);
/* The nodes that are left when a rank has added up its slices, in order; returns how many, at most AT_MOST_BRANCHES. */
enum { AT_MOST_BRANCHES = 128 };
int at_branches_of(int64_t n, at_branch slices, at_branch nodes[AT_MOST_BRANCHES]);

typedef struct at_slices at_slices;
at_slices *at_slices_new(at_params *params, at_group *group, at_error *error);
void at_slices_free(at_slices *slices);
/* Before an update of n slices; an error is that of all ranks. */
bool at_slices_start(at_slices *slices, int64_t n, at_error *error);
/* Before slice `number` is computed: who watches its backward pass. It is NULL but for the last slice of one of several ranks,
 * whose sums are sent block by block as soon as they are complete. */
const at_watch *at_slices_watch(at_slices *slices, int64_t n, int64_t number);
/* The gradients of the parameters are those of slice `number` of `n`: adds them to the sum. They are 0 afterwards, unless this
 * was the last slice of this rank. */
bool at_slices_add(at_slices *slices, int64_t n, int64_t number, at_error *error);
/* After the last slice, or an error, which is that of all ranks then: the gradients of this rank's share of the parameters are
 * the sum over all n slices. */
bool at_slices_finish(at_slices *slices, int64_t n, at_error *error);

#endif
