/* The batches of an epoch are a pure function of (corpus, sizes, seed, epoch): shuffle the sentences, group them
 * into pools, sort each pool by length, cut it into batches, shuffle the batches. A pool of the whole corpus would
 * have the least padding, but would batch nearly the same sentences together in every epoch. */
#include "base/rng.h"
#include "text/pairs_internal.h"

#include <stdlib.h>
#include <string.h>

enum { POOL = 100 }; /* batches in a pool, about */

struct at_batches {
    const at_corpus *corpus;
    int64_t sentences, tokens, pool; /* pool: in sentences */
    uint64_t seed;
    bool shuffle;
    at_corpus_part *part; /* [parts] */
    int parts;
    int64_t total; /* sentences of an epoch */

    int32_t *order, *scratch; /* [total] sentences in the order of this epoch; memory for sorting */
    int32_t *first;           /* [total + 1] batch b is order[first[b] .. first[b + 1]) */
    int32_t *batch_order;     /* [total] batch numbers in the order of this epoch */
    int64_t count, next;      /* batches of this epoch, and the index of the next */

    int32_t *source, *input, *target; /* the arrays of the last batch */
    int64_t *source_lengths, *target_lengths, *lines;
    int64_t source_room, target_room, row_room;
};

/* ---- Order ---------------------------------------------------------------------------------------------------- */

/* Fisher-Yates: all orders are equally likely. */
static void shuffle(int32_t *items, int64_t count, at_rng *rng)
{
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = at_rng_below(rng, (uint32_t)i + 1);
        int32_t moved = items[i];
        items[i] = items[j];
        items[j] = moved;
    }
}

/* Sorts by the four highest bits of the target's length, so that targets of one class differ by at most an eighth;
 * within a class by the source's length, ascending in one class and descending in the next, so that sources have
 * similar lengths at the border of two classes. Sorting by the exact target length would pad sources by a third.
 * Lines are shorter than 2^31 bytes, so both lengths fit into the key. */
static uint64_t length_key(const at_corpus *corpus, int32_t sentence)
{
    uint64_t source = (uint64_t)at_pairs_length(corpus, 0, sentence);
    uint64_t target = (uint64_t)at_pairs_length(corpus, 1, sentence);
    int shift = 0;
    while (target >> shift >= 16)
        shift++;
    bool descending = target >> shift & 1;
    return target >> shift << shift << 32 | (descending ? UINT32_MAX - source : source);
}

/* Radix sort by the bytes of the key that differ, lowest first. Stable, so that sentences of one length stay shuffled;
 * allocates nothing. */
static void sort_by_length(const at_corpus *corpus, int32_t *items, int32_t *scratch, int64_t count)
{
    uint64_t any = 0, all = ~UINT64_C(0);
    for (int64_t i = 0; i < count; i++) {
        any |= length_key(corpus, items[i]);
        all &= length_key(corpus, items[i]);
    }
    for (int shift = 0; shift < 64; shift += 8) {
        if (((any ^ all) >> shift & 255) == 0)
            continue;
        int64_t first[257] = {0};
        for (int64_t i = 0; i < count; i++)
            first[(length_key(corpus, items[i]) >> shift & 255) + 1]++;
        for (int byte = 0; byte < 256; byte++)
            first[byte + 1] += first[byte];
        for (int64_t i = 0; i < count; i++)
            scratch[first[length_key(corpus, items[i]) >> shift & 255]++] = items[i];
        memcpy(items, scratch, (size_t)count * sizeof *items);
    }
}

/* Where batches begin in order[begin .. end). A batch takes one more sentence while
 *   rows * (longest target + 1) <= tokens,   or   rows <= sentences. */
static void cut_batches(at_batches *batches, int64_t begin, int64_t end)
{
    int64_t rows = 0, width = 0;
    for (int64_t i = begin; i < end; i++) {
        int64_t length = at_pairs_length(batches->corpus, 1, batches->order[i]) + 1;
        if (length > width)
            width = length;
        rows++;
        bool over = batches->tokens > 0 ? rows * width > batches->tokens : rows > batches->sentences;
        if (rows == 1 || over) { /* a sentence over the limit is a batch of its own */
            batches->first[batches->count++] = (int32_t)i;
            rows = 1;
            width = length;
        }
    }
}

/* How many sentences of an epoch come from a part with `count` of them. */
static int64_t share_of(double weight, int64_t count)
{
    const double share = weight * (double)count + 0.5;
    return count == 0 ? 0 : share < 1 ? 1 : share < INT32_MAX ? (int64_t)share : INT32_MAX;
}

/* The sentences of a part, as often as all of them occur, then some of them once more; returns how many. */
static int64_t add_part(at_batches *batches, int64_t from, int64_t to, double weight, int64_t at, at_rng *rng)
{
    const int64_t count = to - from, share = share_of(weight, count);
    int64_t used = 0;
    for (; used + count <= share && count > 0; used += count)
        for (int64_t i = 0; i < count; i++)
            batches->order[at + used + i] = (int32_t)(from + i);
    if (used == share)
        return share;
    for (int64_t i = 0; i < count; i++)
        batches->scratch[i] = (int32_t)(from + i);
    for (int64_t i = 0; used < share; i++, used++) { /* Fisher-Yates, as far as it is needed */
        const int64_t j = i + at_rng_below(rng, (uint32_t)(count - i));
        batches->order[at + used] = batches->scratch[j];
        batches->scratch[j] = batches->scratch[i];
    }
    return share;
}

static void add_sentences(at_batches *batches, at_rng *rng)
{
    int64_t at = 0, from = 0;
    for (int i = 0; i < batches->parts; i++) {
        at += add_part(batches, from, batches->part[i].end, batches->part[i].weight, at, rng);
        from = batches->part[i].end;
    }
}

static void plan(at_batches *batches, int64_t epoch)
{
    const int64_t count = batches->total;
    batches->count = 0;
    /* A random stream for the epoch, independent of the other streams of the same seed. */
    uint32_t word[4];
    at_philox(batches->seed, (uint64_t)epoch, UINT64_C(0x62617463686573), word);
    at_rng rng = {(uint64_t)word[1] << 32 | word[0], 0};
    add_sentences(batches, &rng);
    if (batches->shuffle)
        shuffle(batches->order, count, &rng);
    for (int64_t begin = 0, end; begin < count; begin = end) {
        end = batches->shuffle && count - begin > batches->pool ? begin + batches->pool : count;
        if (batches->shuffle)
            sort_by_length(batches->corpus, batches->order + begin, batches->scratch, end - begin);
        cut_batches(batches, begin, end);
    }
    batches->first[batches->count] = (int32_t)count;
    for (int64_t i = 0; i < batches->count; i++)
        batches->batch_order[i] = (int32_t)i;
    if (batches->shuffle)
        shuffle(batches->batch_order, batches->count, &rng);
}

/* ---- Memory --------------------------------------------------------------------------------------------------- */

/* The shape of batch b of the epoch. */
static void measure(const at_batches *batches, int64_t b, at_batch *batch)
{
    *batch = (at_batch){.rows = batches->first[b + 1] - batches->first[b]};
    for (int64_t i = batches->first[b]; i < batches->first[b + 1]; i++) {
        int64_t source = at_pairs_length(batches->corpus, 0, batches->order[i]);
        int64_t target = at_pairs_length(batches->corpus, 1, batches->order[i]) + 1;
        if (source > batch->source_length)
            batch->source_length = source;
        if (target > batch->target_length)
            batch->target_length = target;
        batch->source_tokens += source;
        batch->target_tokens += target;
    }
}

/* Replaces a block whose contents are not needed any more. */
static void *reallocate(void *block, int64_t count, size_t size)
{
    free(block);
    return malloc((size_t)count * size);
}

/* Allocates for the largest batch of the epoch, so that batches allocate nothing; with some reserve, since the largest
 * batch of another epoch may be a little larger. */
static bool reserve_arrays(at_batches *batches, at_error *error)
{
    int64_t source = 1, target = 0, rows = 0; /* 1: sources may all be empty */
    for (int64_t b = 0; b < batches->count; b++) {
        at_batch batch;
        measure(batches, b, &batch);
        if (batch.rows * batch.source_length > source)
            source = batch.rows * batch.source_length;
        if (batch.rows * batch.target_length > target)
            target = batch.rows * batch.target_length;
        if (batch.rows > rows)
            rows = batch.rows;
    }
    if (source > batches->source_room) {
        batches->source_room = source + source / 2;
        batches->source = reallocate(batches->source, batches->source_room, sizeof *batches->source);
    }
    if (target > batches->target_room) {
        batches->target_room = target + target / 2;
        batches->input = reallocate(batches->input, batches->target_room, sizeof *batches->input);
        batches->target = reallocate(batches->target, batches->target_room, sizeof *batches->target);
    }
    if (rows > batches->row_room) {
        batches->row_room = rows + rows / 2;
        batches->source_lengths =
            reallocate(batches->source_lengths, batches->row_room, sizeof *batches->source_lengths);
        batches->target_lengths =
            reallocate(batches->target_lengths, batches->row_room, sizeof *batches->target_lengths);
        batches->lines = reallocate(batches->lines, batches->row_room, sizeof *batches->lines);
    }
    if (batches->source && batches->input && batches->target && batches->source_lengths && batches->target_lengths &&
        batches->lines)
        return true;
    batches->source_room = batches->target_room = batches->row_room = 0; /* so that the next call allocates again */
    return at_no_memory(error, "a batch of %lld sentences", (long long)rows);
}

/* ---- Batches -------------------------------------------------------------------------------------------------- */

/* A pool in sentences: POOL batches, each of as many sentences of average length as fit. */
static int64_t pool_size(const at_corpus *corpus, int64_t total, int64_t sentences, int64_t tokens)
{
    double average = (double)corpus->side[1].used / (double)corpus->count + 1;
    double pool = POOL * (tokens > 0 ? (double)tokens / average : (double)sentences);
    return pool >= (double)total ? total : pool < 1 ? 1 : (int64_t)pool;
}

/* The parts and the arrays of an epoch. */
static bool reserve_order(at_batches *batches, const at_corpus_part *parts, int count, at_error *error)
{
    int64_t from = 0;
    batches->part = malloc((size_t)count * sizeof *batches->part);
    batches->parts = batches->part ? count : 0;
    for (int i = 0; i < batches->parts; i++) {
        batches->part[i] = parts[i];
        batches->total += share_of(parts[i].weight, parts[i].end - from);
        from = parts[i].end;
    }
    if (batches->total >= INT32_MAX)
        return at_fail(error, AT_UNSUPPORTED, "an epoch holds at most %d sentences, and the weights make more of them",
                       INT32_MAX - 1);
    const int64_t most = batches->total > batches->corpus->count ? batches->total : batches->corpus->count;
    const size_t room = (size_t)most + 1;
    batches->order = malloc(room * sizeof *batches->order);
    batches->scratch = malloc(room * sizeof *batches->scratch);
    batches->first = malloc(room * sizeof *batches->first);
    batches->batch_order = malloc(room * sizeof *batches->batch_order);
    return (batches->part && batches->order && batches->scratch && batches->first && batches->batch_order) ||
           at_no_memory(error, "batches");
}

static at_batches *make_batches(const at_corpus *corpus, const at_corpus_part *parts, int count, int64_t sentences,
                                int64_t tokens, uint64_t seed, bool shuffled, at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    if (sentences < 0 || tokens < 0 || (sentences > 0) == (tokens > 0)) {
        at_fail(error, AT_USAGE, "a batch has a number of sentences or a number of tokens, 1 or more: one of the two");
        return NULL;
    }
    at_batches *batches = calloc(1, sizeof *batches);
    if (!batches) {
        at_no_memory(error, "batches");
        return NULL;
    }
    batches->corpus = corpus;
    batches->sentences = sentences;
    batches->tokens = tokens;
    batches->seed = seed;
    batches->shuffle = shuffled;
    const bool reserved = reserve_order(batches, parts, count, error);
    batches->pool = pool_size(corpus, batches->total, sentences, tokens);
    if (reserved && at_batches_seek(batches, 0, 0, error))
        return batches;
    at_batches_free(batches);
    return NULL;
}

at_batches *at_batches_new(const at_corpus *corpus, int64_t sentences, int64_t tokens, uint64_t seed, bool shuffled,
                           at_error *error)
{
    const at_corpus_part all = {corpus ? corpus->count : 0, 1};
    return make_batches(corpus, &all, 1, sentences, tokens, seed, shuffled, error);
}

at_batches *at_batches_new_weighted(const at_corpus *corpus, const at_corpus_part *parts, int count, int64_t sentences,
                                    int64_t tokens, uint64_t seed, at_error *error)
{
    return make_batches(corpus, parts, count, sentences, tokens, seed, true, error);
}

void at_batches_free(at_batches *batches)
{
    if (!batches)
        return;
    void *blocks[] = {batches->part,           batches->order,  batches->scratch, batches->first,
                      batches->batch_order,    batches->source, batches->input,   batches->source_lengths,
                      batches->target_lengths, batches->lines,  batches->target,  batches};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        free(blocks[i]);
}

bool at_batches_seek(at_batches *batches, int64_t epoch, int64_t index, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    plan(batches, epoch);
    batches->next = batches->count;
    if (index < 0 || index > batches->count)
        return at_fail(error, AT_FORMAT, "epoch %lld has %lld batches, so there is no batch %lld", (long long)epoch,
                       (long long)batches->count, (long long)index);
    if (!reserve_arrays(batches, error))
        return false;
    batches->next = index;
    return true;
}

/* Writes one sentence to its row:
 *   source  x_1 .. x_S, -1 ...
 *   input   begin, y_1 .. y_T, pad ...
 *   target  y_1 .. y_T, end, -1 ... */
static void fill_row(at_batches *batches, const at_batch *batch, int64_t row, int32_t sentence)
{
    const at_corpus *corpus = batches->corpus;
    int64_t source_length = at_pairs_length(corpus, 0, sentence), tokens = at_pairs_length(corpus, 1, sentence);
    const int32_t *x = source_length > 0 ? corpus->side[0].ids + corpus->side[0].start[sentence] : NULL;
    const int32_t *y = tokens > 0 ? corpus->side[1].ids + corpus->side[1].start[sentence] : NULL;
    int32_t *source = batches->source + row * batch->source_length;
    int32_t *input = batches->input + row * batch->target_length;
    int32_t *target = batches->target + row * batch->target_length;
    for (int64_t i = 0; i < batch->source_length; i++)
        source[i] = i < source_length ? x[i] : -1;
    for (int64_t i = 0; i < batch->target_length; i++) {
        input[i] = i == 0 ? AT_BEGIN : i <= tokens ? y[i - 1] : AT_PAD;
        target[i] = i < tokens ? y[i] : i == tokens ? AT_END : -1;
    }
    batches->source_lengths[row] = source_length;
    batches->target_lengths[row] = tokens + 1;
    batches->lines[row] = corpus->line[sentence];
}

int64_t at_batches_left(const at_batches *batches)
{
    return batches->count - batches->next;
}

void at_batches_skip(at_batches *batches, int64_t count)
{
    const int64_t left = at_batches_left(batches);
    batches->next += count < left ? count : left;
}

bool at_batches_next(at_batches *batches, at_batch *batch)
{
    if (batches->next >= batches->count)
        return false;
    int32_t b = batches->batch_order[batches->next++];
    measure(batches, b, batch);
    for (int64_t row = 0; row < batch->rows; row++)
        fill_row(batches, batch, row, batches->order[batches->first[b] + row]);
    batch->source = batches->source;
    batch->input = batches->input;
    batch->target = batches->target;
    batch->source_lengths = batches->source_lengths;
    batch->target_lengths = batches->target_lengths;
    batch->lines = batches->lines;
    return true;
}

int64_t at_batches_count(const at_batches *batches)
{
    return batches->count;
}
