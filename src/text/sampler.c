#include "text/sampler_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/rng.h"
#include "text/vocabulary_internal.h"

#define UNKNOWN_PENALTY 10 /* an unknown character is e^10 times less likely than the least likely piece */

/* A prefix of some piece, in whole characters; `id` of the piece that it is, -1 if it is none. */
typedef struct prefix {
    const char *text;
    uint32_t size;
    int32_t id;
} prefix;

struct at_sampler {
    const at_spm_info *info;
    double alpha, unknown; /* score of an unknown character */
    prefix *prefix;        /* [prefixes] */
    size_t prefixes, room;
    at_table table; /* from a text to its index in `prefix` */
};

/* ---- The pieces and their prefixes ----------------------------------------------------------------------------- */

static bool is_prefix(const void *items, int32_t index, const void *key)
{
    const prefix *there = (const prefix *)items + index, *wanted = key;
    return there->size == wanted->size && memcmp(there->text, wanted->text, wanted->size) == 0;
}

static at_table_slot *find_slot(const at_sampler *sampler, uint64_t hash, const char *text, size_t size)
{
    return at_table_find(&sampler->table, hash, is_prefix, sampler->prefix, &(prefix){text, (uint32_t)size, -1});
}

static size_t next_length(const char *text, size_t size)
{
    int32_t point;
    bool broken;
    return at_point_read(text, size, &point, &broken);
}

static bool add_piece(at_sampler *sampler, const at_spm_piece *piece, int32_t id)
{
    uint64_t hash = AT_HASH_START;
    for (size_t size = 0; size < piece->size;) {
        size_t length = next_length(piece->text + size, piece->size - size);
        hash = at_hash_bytes(hash, piece->text + size, length);
        size += length;
        if (!AT_GROW(sampler->prefix, sampler->room, sampler->prefixes + 1) ||
            !at_table_reserve(&sampler->table, sampler->prefixes + 1))
            return false;
        at_table_slot *slot = find_slot(sampler, hash, piece->text, size);
        if (slot->index < 0) {
            sampler->prefix[sampler->prefixes] = (prefix){piece->text, (uint32_t)size, -1};
            at_table_put(&sampler->table, slot, hash, (int32_t)sampler->prefixes++);
        }
        if (size == piece->size)
            sampler->prefix[slot->index].id = id;
    }
    return true;
}

/* The id of the piece with this text, -1 if there is none. */
static int32_t find_piece(const at_sampler *sampler, const char *text, size_t size)
{
    const at_table_slot *slot = find_slot(sampler, at_hash_bytes(AT_HASH_START, text, size), text, size);
    return slot->index >= 0 ? sampler->prefix[slot->index].id : -1;
}

static bool fill(at_sampler *sampler, at_error *error)
{
    const at_spm_info *info = sampler->info;
    sampler->unknown = INFINITY;
    for (int32_t i = 0; i < info->count; i++) {
        const at_spm_piece *piece = &info->piece[i];
        if (piece->type == AT_PIECE_USER || piece->type == AT_PIECE_UNUSED || piece->type == AT_PIECE_BYTE)
            return at_fail(error, AT_USAGE,
                           "`subword-sampling` cannot sample from a model with user-defined, unused or byte pieces");
        if (piece->type == AT_PIECE_NORMAL && (double)piece->score < sampler->unknown)
            sampler->unknown = (double)piece->score;
    }
    sampler->unknown -= UNKNOWN_PENALTY;
    bool good = at_table_reserve(&sampler->table, 1); /* a table is searched even if there is no piece */
    for (int32_t i = 0; good && i < info->count; i++)
        if (info->piece[i].type == AT_PIECE_NORMAL)
            good = add_piece(sampler, &info->piece[i], i);
    return good || at_vocabulary_no_memory(error);
}

bool at_sampler_can(const at_vocabulary *vocabulary)
{
    const at_subwords *subwords = vocabulary->subwords;
    return subwords && !vocabulary->listed && !vocabulary->ends && !vocabulary->begins &&
           (subwords->info.model == AT_SPM_UNIGRAM || subwords->info.model == AT_SPM_BPE);
}

at_sampler *at_sampler_new(const at_vocabulary *vocabulary, double alpha, at_error *error)
{
    at_sampler *sampler = error->code == AT_OK ? calloc(1, sizeof *sampler) : NULL;
    if (!sampler) {
        at_vocabulary_no_memory(error);
        return NULL;
    }
    sampler->info = &vocabulary->subwords->info;
    sampler->alpha = alpha;
    if (fill(sampler, error))
        return sampler;
    at_sampler_free(sampler);
    return NULL;
}

void at_sampler_free(at_sampler *sampler)
{
    if (!sampler)
        return;
    free(sampler->prefix);
    at_table_free(&sampler->table);
    free(sampler);
}

/* ---- Memory --------------------------------------------------------------------------------------------------- */

/* Unigram: a piece at a position of the text, and the next one that ends at the same position. */
typedef struct node {
    int32_t from, id, next;
    double score;
} node;

/* BPE: a span of the text, size 0 once it is merged into the one before; and two that may be merged. */
typedef struct symbol {
    int32_t begin, size, before, after;
} symbol;
typedef struct pair {
    float score;
    int32_t left, right, size;
} pair;

struct at_sampler_scratch {
    int32_t *begin;  /* [characters + 1] */
    int32_t *head;   /* [characters + 1] the last node that ends here, -1: none */
    double *forward; /* [characters + 1] */
    symbol *symbol;  /* [characters] */
    size_t characters;
    node *node;
    size_t nodes;
    pair *heap;
    size_t pairs;
};

at_sampler_scratch *at_sampler_scratch_new(void)
{
    return calloc(1, sizeof(at_sampler_scratch));
}

void at_sampler_scratch_free(at_sampler_scratch *scratch)
{
    if (!scratch)
        return;
    free(scratch->begin);
    free(scratch->head);
    free(scratch->forward);
    free(scratch->symbol);
    free(scratch->node);
    free(scratch->heap);
    free(scratch);
}

static bool grow_characters(at_sampler_scratch *scratch, size_t count)
{
    size_t was[4] = {scratch->characters, scratch->characters, scratch->characters, scratch->characters};
    if (!AT_GROW(scratch->begin, was[0], count) || !AT_GROW(scratch->head, was[1], count) ||
        !AT_GROW(scratch->forward, was[2], count) || !AT_GROW(scratch->symbol, was[3], count))
        return false;
    scratch->characters = was[3]; /* the largest elements, so the fewest of them */
    return true;
}

/* Where each character begins; returns how many there are, -1 if out of memory. */
static int32_t cut_characters(at_sampler_scratch *scratch, const char *text, size_t size)
{
    int32_t count = 0;
    if (!grow_characters(scratch, size + 1))
        return -1;
    for (size_t at = 0; at < size; at += next_length(text + at, size - at))
        scratch->begin[count++] = (int32_t)at;
    scratch->begin[count] = (int32_t)size;
    return count;
}

/* ---- Unigram: forward filtering, backward sampling -------------------------------------------------------------- */

static double log_add(double a, double b)
{
    double high = a > b ? a : b, low = a > b ? b : a;
    return high == -INFINITY ? high : high + log1p(exp(low - high));
}

/* f_j = log sum over pieces from i to j of exp(f_i + alpha score) */
static bool add_node(const at_sampler *sampler, at_sampler_scratch *scratch, size_t *count, int32_t from, int32_t to,
                     int32_t id)
{
    double score = id < 0 ? sampler->unknown : (double)sampler->info->piece[id].score;
    if (!AT_GROW(scratch->node, scratch->nodes, *count + 1))
        return false;
    double along = scratch->forward[from] + sampler->alpha * score;
    scratch->node[*count] = (node){from, id, scratch->head[to], along};
    scratch->head[to] = (int32_t)(*count)++;
    scratch->forward[to] = log_add(scratch->forward[to], along);
    return true;
}

static bool filter(const at_sampler *sampler, at_sampler_scratch *scratch, const char *text, int32_t length)
{
    size_t count = 0;
    for (int32_t i = 0; i <= length; i++) {
        scratch->head[i] = -1;
        scratch->forward[i] = i == 0 ? 0 : -INFINITY;
    }
    for (int32_t from = 0; from < length; from++) {
        uint64_t hash = AT_HASH_START;
        bool single = false; /* the character is a piece by itself */
        for (int32_t to = from + 1; to <= length; to++) {
            const char *last = text + scratch->begin[to - 1], *start = text + scratch->begin[from];
            hash = at_hash_bytes(hash, last, (size_t)(scratch->begin[to] - scratch->begin[to - 1]));
            const size_t size = (size_t)(scratch->begin[to] - scratch->begin[from]);
            const int32_t index = find_slot(sampler, hash, start, size)->index;
            if (index < 0)
                break;
            const int32_t id = sampler->prefix[index].id;
            if (id >= 0 && !add_node(sampler, scratch, &count, from, to, id))
                return false;
            single |= id >= 0 && to == from + 1;
        }
        if (!single && !add_node(sampler, scratch, &count, from, from + 1, -1))
            return false;
    }
    return true;
}

/* From the end: a piece that ends here with the probability exp(f_i + alpha score - f_j). Ids come in reverse order. */
static int64_t sample(const at_sampler_scratch *scratch, int32_t length, uint64_t seed, uint64_t number, int32_t *ids)
{
    int64_t count = 0;
    for (int32_t to = length; to > 0; count++) {
        double left = at_uniform_at(seed, number, (uint64_t)count);
        int32_t chosen = scratch->head[to];
        for (int32_t i = chosen; i >= 0; i = scratch->node[i].next) {
            chosen = i;
            left -= exp(scratch->node[i].score - scratch->forward[to]);
            if (left <= 0)
                break;
        }
        ids[count] = scratch->node[chosen].id;
        to = scratch->node[chosen].from;
    }
    for (int64_t i = 0, j = count - 1; i < j; i++, j--) {
        int32_t moved = ids[i];
        ids[i] = ids[j];
        ids[j] = moved;
    }
    return count;
}

/* ---- BPE: the best pair is merged until none is left ------------------------------------------------------------ */

static bool comes_before(const pair *a, const pair *b)
{
    return a->score > b->score || (a->score == b->score && a->left < b->left);
}

static bool push(at_sampler_scratch *scratch, size_t *count, pair new_pair)
{
    if (!AT_GROW(scratch->heap, scratch->pairs, *count + 1))
        return false;
    size_t at = (*count)++;
    for (; at > 0 && comes_before(&new_pair, &scratch->heap[(at - 1) / 2]); at = (at - 1) / 2)
        scratch->heap[at] = scratch->heap[(at - 1) / 2];
    scratch->heap[at] = new_pair;
    return true;
}

static pair pop(at_sampler_scratch *scratch, size_t *count)
{
    pair top = scratch->heap[0], last = scratch->heap[--*count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < *count; at = child) {
        if (child + 1 < *count && comes_before(&scratch->heap[child + 1], &scratch->heap[child]))
            child++;
        if (!comes_before(&scratch->heap[child], &last))
            break;
        scratch->heap[at] = scratch->heap[child];
    }
    scratch->heap[at] = last;
    return top;
}

static bool push_if_piece(const at_sampler *sampler, at_sampler_scratch *scratch, size_t *count, const char *text,
                          int32_t left, int32_t right)
{
    if (left < 0 || right < 0)
        return true;
    int32_t size = scratch->symbol[left].size + scratch->symbol[right].size;
    int32_t id = find_piece(sampler, text + scratch->symbol[left].begin, (size_t)size);
    return id < 0 || push(scratch, count, (pair){sampler->info->piece[id].score, left, right, size});
}

static int64_t merge(const at_sampler *sampler, at_sampler_scratch *scratch, const char *text, int32_t length,
                     uint64_t seed, uint64_t number, int32_t *ids)
{
    symbol *symbols = scratch->symbol;
    size_t pairs = 0;
    for (int32_t i = 0; i < length; i++)
        symbols[i] =
            (symbol){scratch->begin[i], scratch->begin[i + 1] - scratch->begin[i], i - 1, i + 1 < length ? i + 1 : -1};
    for (int32_t i = 1; i < length; i++)
        if (!push_if_piece(sampler, scratch, &pairs, text, i - 1, i))
            return -1;
    for (uint64_t sampled = 0; pairs > 0;) {
        pair best = pop(scratch, &pairs);
        symbol *left = &symbols[best.left], *right = &symbols[best.right];
        if (left->size == 0 || right->size == 0 || left->size + right->size != best.size)
            continue; /* one of them has been merged since */
        if (at_uniform_at(seed, number, sampled++) < sampler->alpha)
            continue;
        left->size = best.size;
        right->size = 0;
        left->after = right->after;
        if (right->after >= 0)
            symbols[right->after].before = best.left;
        if (!push_if_piece(sampler, scratch, &pairs, text, left->before, best.left) ||
            !push_if_piece(sampler, scratch, &pairs, text, best.left, left->after))
            return -1;
    }
    int64_t count = 0;
    for (int32_t i = length > 0 ? 0 : -1; i >= 0; i = symbols[i].after)
        ids[count++] = find_piece(sampler, text + symbols[i].begin, (size_t)symbols[i].size);
    return count;
}

/* ---- Both ----------------------------------------------------------------------------------------------------- */

int64_t at_sampler_segment(const at_sampler *sampler, at_sampler_scratch *scratch, const char *text, size_t size,
                           uint64_t seed, uint64_t number, int32_t *ids)
{
    int32_t length = cut_characters(scratch, text, size);
    int64_t sampled = -1, count = 0;
    if (length >= 0 && sampler->info->model == AT_SPM_BPE)
        sampled = merge(sampler, scratch, text, length, seed, number, ids);
    else if (length >= 0 && filter(sampler, scratch, text, length))
        sampled = sample(scratch, length, seed, number, ids);
    for (int64_t i = 0; i < sampled; i++) { /* adjacent unknown characters are one unknown unit */
        int32_t id = ids[i] < 0 ? AT_UNKNOWN : AT_SPECIALS + ids[i];
        if (id != AT_UNKNOWN || count == 0 || ids[count - 1] != AT_UNKNOWN)
            ids[count++] = id;
    }
    return sampled < 0 ? -1 : count;
}
