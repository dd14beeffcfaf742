/* An epoch's plan is a pure function of (corpus, sizes, seed, epoch): shuffle the sentences, take them in pools, sort
 * each pool by length, cut it into batches, shuffle the batches. A pool of the whole corpus would pad least, but would
 * put nearly the same sentences together in every epoch. */
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

    int32_t *order, *spare; /* [count] sentences in the order of this epoch; room to sort them in */
    int32_t *first;         /* [count + 1] batch b is order[first[b] .. first[b + 1]) */
    int32_t *turn;          /* [count] the batches in the order they are given */
    int64_t count, next;    /* batches of this epoch, and the place in it */

    int32_t *source, *input, *target; /* what the last batch points to */
    int64_t *source_lengths, *target_lengths, *lines;
    int64_t source_room, target_room, row_room;
};

/* ---- Order ---------------------------------------------------------------------------------------------------- */

/* Fisher and Yates: every order is as likely as any other. */
static void shuffle(int32_t *items, int64_t count, at_rng *rng)
{
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = at_rng_below(rng, (uint32_t)i + 1);
        int32_t kept = items[i];
        items[i] = items[j];
        items[j] = kept;
    }
}

/* By the four highest bits of the target's length, so that targets of one class differ by an eighth at most; in a class
 * by the source's length, upwards and downwards in turn, so that sources are alike where two classes meet. Sorted by
 * the exact lengths of targets, sources would be padded by a third. Lines are shorter than 2^31 bytes, so both fit. */
static uint64_t length_key(const at_corpus *corpus, int32_t sentence)
{
    uint64_t source = (uint64_t)at_pairs_length(corpus, 0, sentence);
    uint64_t target = (uint64_t)at_pairs_length(corpus, 1, sentence);
    int shift = 0;
    while (target >> shift >= 16)
        shift++;
    bool downwards = target >> shift & 1;
    return target >> shift << shift << 32 | (downwards ? UINT32_MAX - source : source);
}

/* By length, as many bytes of it as differ, lowest first. Stable, so that sentences of one length stay shuffled; and
 * without memory of its own. */
static void sort_by_length(const at_corpus *corpus, int32_t *items, int32_t *spare, int64_t count)
{
    uint64_t any = 0, all = ~UINT64_C(0);
    for (int64_t i = 0; i < count; i++) {
        any |= length_key(corpus, items[i]);
        all &= length_key(corpus, items[i]);
    }
    for (int shift = 0; shift < 64; shift += 8) {
        if (((any ^ all) >> shift & 255) == 0)
            continue;
        int64_t place[257] = {0};
        for (int64_t i = 0; i < count; i++)
            place[(length_key(corpus, items[i]) >> shift & 255) + 1]++;
        for (int byte = 0; byte < 256; byte++)
            place[byte + 1] += place[byte];
        for (int64_t i = 0; i < count; i++)
            spare[place[length_key(corpus, items[i]) >> shift & 255]++] = items[i];
        memcpy(items, spare, (size_t)count * sizeof *items);
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
        if (rows == 1 || over) { /* a sentence that is too much alone is a batch nevertheless */
            batches->first[batches->count++] = (int32_t)i;
            rows = 1;
            width = length;
        }
    }
}

static void plan(at_batches *batches, int64_t epoch)
{
    int64_t count = batches->corpus->count;
    for (int64_t i = 0; i < count; i++)
        batches->order[i] = (int32_t)i;
    batches->count = 0;
    /* A stream of numbers for the epoch, apart from whatever else is drawn by the same seed. */
    uint32_t word[4];
    at_philox(batches->seed, (uint64_t)epoch, UINT64_C(0x62617463686573), word);
    at_rng rng = {(uint64_t)word[1] << 32 | word[0], 0};
    if (batches->shuffle)
        shuffle(batches->order, count, &rng);
    for (int64_t begin = 0, end; begin < count; begin = end) {
        end = batches->shuffle && count - begin > batches->pool ? begin + batches->pool : count;
        if (batches->shuffle)
            sort_by_length(batches->corpus, batches->order + begin, batches->spare, end - begin);
        cut_batches(batches, begin, end);
    }
    batches->first[batches->count] = (int32_t)count;
    for (int64_t i = 0; i < batches->count; i++)
        batches->turn[i] = (int32_t)i;
    if (batches->shuffle)
        shuffle(batches->turn, batches->count, &rng);
}

/* ---- Memory --------------------------------------------------------------------------------------------------- */

/* The shape of batch b of the plan. */
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

/* A new block; what the old one held is of no more use. */
static void *renew(void *block, int64_t count, size_t size)
{
    free(block);
    return malloc((size_t)count * size);
}

/* Room for the largest batch of the plan, so that no batch asks for memory; with something to spare, since the largest
 * of another epoch may be a little larger. */
static bool make_room(at_batches *batches, at_error *error)
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
        batches->source = renew(batches->source, batches->source_room, sizeof *batches->source);
    }
    if (target > batches->target_room) {
        batches->target_room = target + target / 2;
        batches->input = renew(batches->input, batches->target_room, sizeof *batches->input);
        batches->target = renew(batches->target, batches->target_room, sizeof *batches->target);
    }
    if (rows > batches->row_room) {
        batches->row_room = rows + rows / 2;
        batches->source_lengths = renew(batches->source_lengths, batches->row_room, sizeof *batches->source_lengths);
        batches->target_lengths = renew(batches->target_lengths, batches->row_room, sizeof *batches->target_lengths);
        batches->lines = renew(batches->lines, batches->row_room, sizeof *batches->lines);
    }
    if (batches->source != NULL && batches->input != NULL && batches->target != NULL &&
        batches->source_lengths != NULL && batches->target_lengths != NULL && batches->lines != NULL)
        return true;
    batches->source_room = batches->target_room = batches->row_room = 0; /* so that another try asks again */
    return at_fail(error, AT_FAILED, "memory ran out for a batch of %lld sentences", (long long)rows);
}

/* ---- Batches -------------------------------------------------------------------------------------------------- */

/* A pool in sentences: POOL batches, each of as many sentences of average length as fit. */
static int64_t pool_size(const at_corpus *corpus, int64_t sentences, int64_t tokens)
{
    double average = (double)corpus->side[1].used / (double)corpus->count + 1;
    double pool = POOL * (tokens > 0 ? (double)tokens / average : (double)sentences);
    return pool >= (double)corpus->count ? corpus->count : pool < 1 ? 1 : (int64_t)pool;
}

at_batches *at_batches_new(const at_corpus *corpus, int64_t sentences, int64_t tokens, uint64_t seed, bool shuffled,
                           at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    if (sentences < 0 || tokens < 0 || (sentences > 0) == (tokens > 0)) {
        at_fail(error, AT_USAGE, "a batch has a number of sentences or a number of tokens, 1 or more: one of the two");
        return NULL;
    }
    at_batches *batches = calloc(1, sizeof *batches);
    if (batches == NULL) {
        at_fail(error, AT_FAILED, "memory ran out for batches");
        return NULL;
    }
    batches->corpus = corpus;
    batches->sentences = sentences;
    batches->tokens = tokens;
    batches->pool = pool_size(corpus, sentences, tokens);
    batches->seed = seed;
    batches->shuffle = shuffled;
    size_t room = (size_t)corpus->count + 1;
    batches->order = malloc(room * sizeof *batches->order);
    batches->spare = malloc(room * sizeof *batches->spare);
    batches->first = malloc(room * sizeof *batches->first);
    batches->turn = malloc(room * sizeof *batches->turn);
    bool good = batches->order != NULL && batches->spare != NULL && batches->first != NULL && batches->turn != NULL;
    if (!good)
        at_fail(error, AT_FAILED, "memory ran out for batches");
    if (good && at_batches_go(batches, 0, 0, error))
        return batches;
    at_batches_free(batches);
    return NULL;
}

void at_batches_free(at_batches *batches)
{
    if (batches == NULL)
        return;
    void *blocks[] = {batches->order, batches->spare,          batches->first,          batches->turn,  batches->source,
                      batches->input, batches->source_lengths, batches->target_lengths, batches->lines, batches->target,
                      batches};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        free(blocks[i]);
}

bool at_batches_go(at_batches *batches, int64_t epoch, int64_t index, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    plan(batches, epoch);
    batches->next = batches->count;
    if (index < 0 || index > batches->count)
        return at_fail(error, AT_FAILED, "epoch %lld has %lld batches, so there is no place %lld in it",
                       (long long)epoch, (long long)batches->count, (long long)index);
    if (!make_room(batches, error))
        return false;
    batches->next = index;
    return true;
}

/* One sentence into its row: source x_1 .. x_S, -1 ...; input begin, y_1 .. y_T, pad ...; target y_1 .. y_T, end, -1
 * ...
 */
static void fill_row(at_batches *batches, const at_batch *batch, int64_t row, int32_t sentence)
{
    const at_corpus *corpus = batches->corpus;
    const int32_t *x = corpus->side[0].ids + corpus->side[0].start[sentence];
    const int32_t *y = corpus->side[1].ids + corpus->side[1].start[sentence];
    int64_t source_length = at_pairs_length(corpus, 0, sentence), words = at_pairs_length(corpus, 1, sentence);
    int32_t *source = batches->source + row * batch->source_length;
    int32_t *input = batches->input + row * batch->target_length;
    int32_t *target = batches->target + row * batch->target_length;
    for (int64_t i = 0; i < batch->source_length; i++)
        source[i] = i < source_length ? x[i] : -1;
    for (int64_t i = 0; i < batch->target_length; i++) {
        input[i] = i == 0 ? AT_BEGIN : i <= words ? y[i - 1] : AT_PAD;
        target[i] = i < words ? y[i] : i == words ? AT_END : -1;
    }
    batches->source_lengths[row] = source_length;
    batches->target_lengths[row] = words + 1;
    batches->lines[row] = corpus->line[sentence];
}

bool at_batches_next(at_batches *batches, at_batch *batch)
{
    if (batches->next >= batches->count)
        return false;
    int32_t b = batches->turn[batches->next++];
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
