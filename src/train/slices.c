#include "train/slices_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tape/block.h"
#include "train/optimise.h"
#include "train/train_internal.h"

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

/* Parameters from..to-1, which go to the rank that updates them in one message of each other rank. */
typedef struct block {
    int64_t from, to;
    int owner, number; /* among the blocks of its owner, from 1 */
    int open;          /* parameters in it whose gradients are not complete */
    bool done;         /* added up, and on its way to its owner */
} block;
enum { BLOCK = 1 << 16 };

struct at_slices {
    at_params *params;
    at_group *group;
    int64_t count; /* parameters */
    int size, rank;
    at_branch node[AT_MOST_BRANCHES]; /* of the sums that wait for their other part */
    at_real *sum[AT_MOST_BRANCHES];   /* [count] their values; kept for later updates */
    int nodes;

    /* Between ranks. */
    int64_t slices; /* that the memory is there for */
    block *blocks;  /* [block_count] in the order of the parameters */
    int block_count;
    int *sums;         /* [size] how many every rank sends for a parameter */
    at_real *packed;   /* [sums of this rank, count] what it sends, if it is more than one sum; block by block */
    at_real *received; /* what it gets: of every rank block by block */
    at_real **tree;    /* [all sums] of one block */
    bool begun;        /* this update's messages */
    int merges;        /* sums that the last slice's gradients complete */
    at_error error;    /* of the messages */
    at_watch watch;
    double moved; /* when messages were moved on */
};

static bool make_blocks(at_slices *s)
{
    for (int r = 0; r < s->size; r++) {
        const at_share share = at_share_of(s->count, r, s->size);
        s->block_count += (int)((share.to - share.from + BLOCK - 1) / BLOCK);
    }
    s->blocks = calloc((size_t)s->block_count + 1, sizeof *s->blocks);
    s->sums = calloc((size_t)s->size, sizeof *s->sums);
    s->watch.uses = calloc((size_t)at_params_number(s->params) + 1, sizeof *s->watch.uses);
    if (!s->blocks || !s->sums || !s->watch.uses)
        return false;
    block *b = s->blocks;
    for (int r = 0; r < s->size; r++) {
        const at_share share = at_share_of(s->count, r, s->size);
        int number = 0;
        for (int64_t from = share.from; from < share.to; from += BLOCK)
            *b++ = (block){
                .from = from, .to = from + BLOCK < share.to ? from + BLOCK : share.to, .owner = r, .number = ++number};
    }
    return true;
}

static void complete(void *context, int param);
static void go_on(void *context);

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
                         .rank = at_group_rank(group),
                         .watch = {.params = params, .complete = complete, .between = go_on, .context = s}};
        if (s->size == 1 || make_blocks(s))
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
        free(s->sum[i]);
    free(s->blocks);
    free(s->sums);
    free(s->watch.uses);
    free(s->packed);
    free(s->received);
    free(s->tree);
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

static void add_numbers(at_real *to, const at_real *from, int64_t count)
{
    at_ranges(count, 1, add_range, &(addition){to, from});
}

/* The last slice of a rank of several is added block by block. */
static bool is_last_of_several(const at_slices *s, int64_t n, int64_t number)
{
    return s->size > 1 && number + 1 == at_slices_of(n, s->rank, s->size).to;
}

bool at_slices_add(at_slices *s, int64_t n, int64_t number, at_error *error)
{
    at_real *gradients = at_params_grads(s->params);
    at_branch node = {number, number + 1};
    if (is_last_of_several(s, n, number))
        return true;
    while (s->nodes > 0 && at_branches_join(n, s->node[s->nodes - 1], node)) {
        add_numbers(gradients, s->sum[--s->nodes], s->count);
        node.from = s->node[s->nodes].from;
    }
    s->node[s->nodes] = node;
    if (number + 1 == at_slices_of(n, s->rank, s->size).to)
        return true;
    at_real **sum = &s->sum[s->nodes];
    if (!*sum && !(*sum = malloc((size_t)s->count * sizeof **sum + 1)))
        return at_no_memory(error, "a sum of the gradients of %lld parameters", (long long)s->count);
    memcpy(*sum, gradients, (size_t)s->count * sizeof **sum);
    memset(gradients, 0, (size_t)s->count * sizeof **sum);
    s->nodes++;
    return true;
}

/* ---- Between ranks ------------------------------------------------------------------------------------------------ */

/* Memory for updates of n slices; all ranks have it, or none goes on. */
static bool prepare(at_slices *s, int64_t n, at_error *error)
{
    at_branch nodes[AT_MOST_BRANCHES];
    const at_share share = at_share_of(s->count, s->rank, s->size);
    size_t all = 0;
    for (int r = 0; r < s->size; r++) {
        s->sums[r] = at_branches_of(n, at_slices_of(n, r, s->size), nodes);
        all += (size_t)s->sums[r];
    }
    const size_t own = s->sums[s->rank] > 1 ? (size_t)s->sums[s->rank] : 0;
    free(s->packed);
    free(s->received);
    free(s->tree);
    s->packed = malloc(own * (size_t)s->count * sizeof *s->packed + 1);
    s->received = malloc(all * (size_t)(share.to - share.from) * sizeof *s->received + 1);
    s->tree = calloc(all + 1, sizeof *s->tree);
    if (!s->packed || !s->received || !s->tree)
        at_no_memory(error, "the sums of gradients of %d ranks", s->size);
    s->slices = 0;
    if (!at_group_agree(s->group, error))
        return false;
    s->slices = n;
    return true;
}

/* Sum `i` of this rank: the last one is that of the gradients. After an error some are missing, and nobody will use them. */
static at_real *own_sum(const at_slices *s, int i)
{
    return i < s->sums[s->rank] - 1 && s->sum[i] ? s->sum[i] : at_params_grads(s->params);
}

/* What a rank sends for a block of this rank: its sums, one after the other. */
static at_real *received_from(const at_slices *s, int rank, const block *b)
{
    const at_share share = at_share_of(s->count, s->rank, s->size);
    int64_t before = 0;
    for (int r = 0; r < rank; r++)
        before += s->sums[r];
    return s->received + before * (share.to - share.from) + s->sums[rank] * (b->from - share.from);
}

static void begin(at_slices *s)
{
    s->begun = true;
    s->error = (at_error){0};
    for (int i = 0; i < s->block_count; i++) {
        block *b = &s->blocks[i];
        b->done = false;
        for (int r = 0; r < s->size && b->owner == s->rank; r++)
            if (r != s->rank)
                at_group_begin(
                    s->group, false, r, b->number,
                    (at_part){received_from(s, r, b), (size_t)s->sums[r] * (size_t)(b->to - b->from) * sizeof(at_real)},
                    &s->error);
    }
}

/* The gradients of a block are those of the last slice: adds the sums that they complete, and sends it to its owner. */
static void finish_block(at_slices *s, block *b)
{
    const int own = s->sums[s->rank];
    const size_t size = (size_t)(b->to - b->from);
    at_real *from = at_params_grads(s->params) + b->from;
    b->done = true;
    for (int m = 1; m <= s->merges; m++)
        add_numbers(from, s->sum[s->nodes - m] + b->from, (int64_t)size);
    if (b->owner == s->rank)
        return;
    if (own > 1) {
        from = s->packed + own * b->from;
        for (int i = 0; i < own; i++)
            memcpy(from + (size_t)i * size, own_sum(s, i) + b->from, size * sizeof *from);
    }
    at_group_begin(s->group, true, b->owner, b->number, (at_part){from, (size_t)own * size * sizeof *from}, &s->error);
}

static int64_t offset_of(at_params *params, int param)
{
    return at_params_value(params, param) - at_params_values(params);
}

/* The first block that ends after a parameter's first number. */
static int first_block(const at_slices *s, int param)
{
    int low = 0, high = s->block_count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (s->blocks[middle].to > offset_of(s->params, param))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void complete(void *context, int param)
{
    at_slices *s = context;
    const int64_t end = offset_of(s->params, param) + at_shape_count(at_params_shape(s->params, param));
    for (int i = first_block(s, param); i < s->block_count && s->blocks[i].from < end; i++)
        if (--s->blocks[i].open == 0)
            finish_block(s, &s->blocks[i]);
}

/* MPI moves messages only when it is called. */
static void go_on(void *context)
{
    const double pause = 2e-4, now = at_seconds_now();
    at_slices *s = context;
    if (now - s->moved < pause)
        return;
    at_group_go_on(s->group, &s->error);
    s->moved = now;
}

const at_watch *at_slices_watch(at_slices *s, int64_t n, int64_t number)
{
    if (!is_last_of_several(s, n, number))
        return NULL;
    at_branch last = {number, number + 1};
    for (s->merges = 0; s->merges < s->nodes && at_branches_join(n, s->node[s->nodes - s->merges - 1], last);
         s->merges++)
        last.from = s->node[s->nodes - s->merges - 1].from;
    for (int i = 0; i < s->block_count; i++)
        s->blocks[i].open = 0;
    for (int p = 0; p < at_params_number(s->params); p++) {
        const int64_t end = offset_of(s->params, p) + at_shape_count(at_params_shape(s->params, p));
        for (int i = first_block(s, p); i < s->block_count && s->blocks[i].from < end; i++)
            s->blocks[i].open++;
    }
    begin(s);
    return &s->watch;
}

bool at_slices_start(at_slices *s, int64_t n, at_error *error)
{
    s->nodes = s->merges = 0;
    s->begun = false;
    return s->size == 1 || s->slices == n ? error->code == AT_OK : prepare(s, n, error);
}

/* Adds up the tree above the sums of all ranks, for a block of this rank. */
static void add_tree(const at_slices *s, int64_t n, const block *b)
{
    const int64_t size = b->to - b->from;
    at_branch stack[AT_MOST_BRANCHES], nodes[AT_MOST_BRANCHES];
    int depth = 0;
    for (int r = 0; r < s->size; r++) {
        at_branches_of(n, at_slices_of(n, r, s->size), nodes);
        for (int i = 0; i < s->sums[r]; i++) {
            at_branch last = nodes[i];
            at_real *sum = r == s->rank ? own_sum(s, i) + b->from : received_from(s, r, b) + i * size;
            while (depth > 0 && at_branches_join(n, stack[depth - 1], last)) {
                add_numbers(sum, s->tree[--depth], size);
                last.from = stack[depth].from;
            }
            stack[depth] = last;
            s->tree[depth++] = sum;
        }
    }
    if (s->tree[0] != at_params_grads(s->params) + b->from)
        memcpy(at_params_grads(s->params) + b->from, s->tree[0], (size_t)size * sizeof(at_real));
}

bool at_slices_finish(at_slices *s, int64_t n, at_error *error)
{
    if (s->size == 1) {
        s->nodes = 0;
        return error->code == AT_OK;
    }
    if (!s->begun) /* an error before: all ranks get their messages nevertheless, and then the error */
        begin(s);
    for (int i = 0; i < s->block_count; i++)
        if (!s->blocks[i].done)
            finish_block(s, &s->blocks[i]);
    at_group_await(s->group, &s->error);
    if (error->code == AT_OK)
        *error = s->error;
    if (!at_group_agree(s->group, error))
        return false;
    for (int i = 0; i < s->block_count; i++)
        if (s->blocks[i].owner == s->rank)
            add_tree(s, n, &s->blocks[i]);
    return true;
}
