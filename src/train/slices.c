#include "train/slices_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tape/block.h"
#include "train/optimise.h"

/* ---- The tree ---------------------------------------------------------------------------------------------------- */

static int64_t middle_of(int64_t from, int64_t to)
{
    int64_t half = 1;
    while (2 * half < to - from)
        half *= 2;
    return from + half;
}

bool at_branches_join(int64_t n, at_branch left, at_branch right)
{
    int64_t from = 0, to = n;
    while (to - from > 1) {
        const int64_t middle = middle_of(from, to);
        if (from == left.from && to == right.to)
            return middle == left.to && middle == right.from;
        if (right.to <= middle)
            to = middle;
        else if (left.from >= middle)
            from = middle;
        else
            return false;
    }
    return false;
}

at_branch at_slices_of(int64_t n, int rank, int size)
{
    return (at_branch){n * rank / size, n * (rank + 1) / size};
}

int at_branches_of(int64_t n, at_branch slices, at_branch nodes[AT_MOST_BRANCHES])
{
    int count = 0;
    for (int64_t i = slices.from; i < slices.to; i++) {
        at_branch last = {i, i + 1};
        while (count > 0 && at_branches_join(n, nodes[count - 1], last))
            last.from = nodes[--count].from;
        nodes[count++] = last;
    }
    return count;
}

/* ---- Sums -------------------------------------------------------------------------------------------------------- */

struct at_slices {
    at_params *params;
    at_group *group;
    int64_t count; /* parameters */
    int size, rank;
    at_branch node[AT_MOST_BRANCHES]; /* of the sums that wait for their other part */
    at_real *block[AT_MOST_BRANCHES]; /* [count] their values; kept for later updates */
    int nodes;
    at_part *parts;   /* [2 * size] of the messages */
    at_real **packed; /* [size]: of the others, what is sent if it is several nodes; for itself, what is received */
    size_t *room;     /* [size] numbers in them */
};

at_slices *at_slices_new(at_params *params, at_group *group, at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    at_slices *s = calloc(1, sizeof *s);
    if (s) {
        *s = (at_slices){.params = params,
                         .group = group,
                         .count = at_params_count(params),
                         .size = at_group_size(group),
                         .rank = at_group_rank(group)};
        s->parts = calloc(2 * (size_t)s->size, sizeof *s->parts);
        s->packed = calloc((size_t)s->size, sizeof *s->packed);
        s->room = calloc((size_t)s->size, sizeof *s->room);
        if (s->parts && s->packed && s->room)
            return s;
    }
    at_slices_free(s);
    at_no_memory(error, "the sums of gradients");
    return NULL;
}

void at_slices_free(at_slices *s)
{
    if (!s)
        return;
    for (int i = 0; i < AT_MOST_BRANCHES; i++)
        free(s->block[i]);
    for (int r = 0; s->packed && r < s->size; r++)
        free(s->packed[r]);
    free(s->packed);
    free(s->room);
    free(s->parts);
    free(s);
}

typedef struct addition {
    at_real *to;
    const at_real *from;
} addition;

static void add_range(void *context, int64_t from, int64_t to)
{
    const addition *a = context;
    for (int64_t i = from; i < to; i++)
        a->to[i] += a->from[i];
}

static void add_block(at_real *to, const at_real *from, int64_t count)
{
    at_ranges(count, 1, add_range, &(addition){to, from});
}

bool at_slices_add(at_slices *s, int64_t n, int64_t number, at_error *error)
{
    at_real *gradients = at_params_grads(s->params);
    at_branch node = {number, number + 1};
    while (s->nodes > 0 && at_branches_join(n, s->node[s->nodes - 1], node)) {
        add_block(gradients, s->block[--s->nodes], s->count);
        node.from = s->node[s->nodes].from;
    }
    s->node[s->nodes] = node;
    if (number + 1 == at_slices_of(n, s->rank, s->size).to)
        return true;
    at_real **block = &s->block[s->nodes];
    if (!*block && !(*block = malloc((size_t)s->count * sizeof **block + 1)))
        return at_no_memory(error, "a sum of the gradients of %lld parameters", (long long)s->count);
    memcpy(*block, gradients, (size_t)s->count * sizeof **block);
    memset(gradients, 0, (size_t)s->count * sizeof **block);
    s->nodes++;
    return true;
}

/* ---- Between ranks ------------------------------------------------------------------------------------------------ */

static at_real *make_room(at_slices *s, int rank, size_t numbers, at_error *error)
{
    if (s->room[rank] < numbers || !s->packed[rank]) {
        free(s->packed[rank]);
        s->packed[rank] = malloc(numbers * sizeof(at_real) + 1);
        s->room[rank] = s->packed[rank] ? numbers : 0;
        if (!s->packed[rank])
            at_no_memory(error, "the gradients of %zu parameters for rank %d", numbers, rank);
    }
    return s->packed[rank];
}

/* The sums of this rank for the share of another, one after the other. */
static bool put_sums(at_slices *s, int sums, int other, at_error *error)
{
    const at_share share = at_share_of(s->count, other, s->size);
    const size_t size = (size_t)(share.to - share.from);
    at_real *to = sums > 0 ? make_room(s, other, (size_t)sums * size, error) : NULL;
    for (int i = 0; to && i < sums; i++)
        memcpy(to + (size_t)i * size, (i < s->nodes ? s->block[i] : at_params_grads(s->params)) + share.from,
               size * sizeof *to);
    s->parts[other] = (at_part){to, (size_t)sums * size * sizeof *to};
    return sums == 0 || to;
}

/* Adds up the tree above the nodes of all ranks, for this rank's share: `sums` in the order of the nodes. */
static void add_tree(const at_slices *s, int64_t n, at_real *const *sums, at_real *result)
{
    const at_share share = at_share_of(s->count, s->rank, s->size);
    at_branch stack[AT_MOST_BRANCHES], nodes[AT_MOST_BRANCHES];
    at_real *value[AT_MOST_BRANCHES];
    int depth = 0, at = 0;
    for (int r = 0; r < s->size; r++) {
        const int count = at_branches_of(n, at_slices_of(n, r, s->size), nodes);
        for (int i = 0; i < count; i++) {
            at_branch last = nodes[i];
            at_real *sum = sums[at++];
            while (depth > 0 && at_branches_join(n, stack[depth - 1], last)) {
                add_block(sum, value[--depth], share.to - share.from);
                last.from = stack[depth].from;
            }
            stack[depth] = last;
            value[depth++] = sum;
        }
    }
    memcpy(result, value[0], (size_t)(share.to - share.from) * sizeof *result);
}

bool at_slices_finish(at_slices *s, int64_t n, at_error *error)
{
    if (s->size == 1 || error->code != AT_OK) {
        s->nodes = 0;
        return error->code == AT_OK;
    }
    const at_share share = at_share_of(s->count, s->rank, s->size);
    const size_t size = (size_t)(share.to - share.from);
    at_branch nodes[AT_MOST_BRANCHES];
    int all = 0, own = 0, first = 0, count[AT_MOST_BRANCHES];
    for (int r = 0; r < s->size; r++) {
        count[r] = at_branches_of(n, at_slices_of(n, r, s->size), nodes);
        own = r == s->rank ? count[r] : own;
        first = r == s->rank ? all : first;
        all += count[r];
    }
    at_real *received = make_room(s, s->rank, (size_t)all * size, error);
    at_real **sums = calloc((size_t)all, sizeof *sums);
    if (!sums)
        at_no_memory(error, "the sums of gradients");
    for (int r = 0; r < s->size && error->code == AT_OK; r++)
        if (r != s->rank)
            put_sums(s, own, r, error);
    at_group_agree(s->group, error);
    for (int r = 0, at = 0; r < s->size && error->code == AT_OK; at += count[r++])
        s->parts[s->size + r] = (at_part){received + (size_t)at * size, (size_t)count[r] * size * sizeof *received};
    at_group_exchange(s->group, s->parts, s->parts + s->size, error);
    if (error->code == AT_OK) {
        for (int i = 0; i < own; i++)
            memcpy(received + (size_t)(first + i) * size,
                   (i < s->nodes ? s->block[i] : at_params_grads(s->params)) + share.from, size * sizeof *received);
        for (int i = 0; i < all; i++)
            sums[i] = received + (size_t)i * size;
        add_tree(s, n, sums, at_params_grads(s->params) + share.from);
    }
    free(sums);
    s->nodes = 0;
    return error->code == AT_OK;
}
