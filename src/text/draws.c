#include "text/draws.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/threads.h"
#include "text/pairs_internal.h"
#include "text/sampler_internal.h"

/* One side: its texts, and its best segmentations. */
typedef struct drawn_side {
    at_sampler *sampler; /* NULL: this side has no subwords */
    at_buffer text;      /* of all sentences, as their subwords spell them */
    size_t *text_start;  /* [count + 1] */
    int32_t *best;
    int64_t *best_start; /* [count + 1] */
    int32_t *ids;        /* the sample of sentence i is at ids[text_start[i] ..): a unit has a byte at least */
    int64_t *length;     /* [count] of the sample; -1: out of memory */
} drawn_side;

struct at_draws {
    at_corpus *corpus;
    uint64_t seed;
    int64_t max_length;
    drawn_side side[2];
    at_draw_room **room; /* one for each thread */
    int rooms;
};

static bool no_memory(at_error *error)
{
    return at_no_memory(error, "subword sampling");
}

/* Stores the texts of one side and its best segmentations. */
static bool store_side(at_draws *draws, int s, const at_lines *lines, const at_vocabulary *vocabulary, double alpha,
                       at_error *error)
{
    at_pairs_side *pairs = &draws->corpus->side[s];
    drawn_side *side = &draws->side[s];
    size_t count = (size_t)draws->corpus->count;
    if (!vocabulary || !at_sampler_can(vocabulary))
        return true;
    side->sampler = at_sampler_new(vocabulary, alpha, error);
    side->text_start = calloc(count + 1, sizeof *side->text_start);
    side->best_start = malloc((count + 1) * sizeof *side->best_start);
    side->length = malloc((count + 1) * sizeof *side->length);
    side->best = malloc((pairs->used + 1) * sizeof *side->best);
    if (!side->sampler || !side->text_start || !side->best_start || !side->length || !side->best)
        return no_memory(error);
    memcpy(side->best, pairs->ids, pairs->used * sizeof *side->best);
    memcpy(side->best_start, pairs->start, (count + 1) * sizeof *side->best_start);
    for (size_t i = 0; i < count; i++) {
        const at_line line = lines->side[s][draws->corpus->line[i] - 1];
        if (!at_vocabulary_spell(vocabulary, line.text, line.size, &side->text))
            return no_memory(error);
        side->text_start[i + 1] = side->text.size;
    }
    /* Room for a sample of one unit per byte, or for the best segmentation, whichever is more. */
    size_t most = pairs->used + side->text.size + 1;
    int32_t *ids = realloc(pairs->ids, most * sizeof *ids);
    side->ids = malloc((side->text.size + 1) * sizeof *side->ids);
    pairs->ids = ids ? ids : pairs->ids;
    pairs->room = ids ? most : pairs->room;
    return (ids && side->ids) || no_memory(error);
}

at_draws *at_draws_new(at_corpus *corpus, const at_lines *lines, const at_vocabulary *source,
                       const at_vocabulary *target, double alpha, int64_t max_length, uint64_t seed, at_error *error)
{
    at_draws *draws = error->code == AT_OK ? calloc(1, sizeof *draws) : NULL;
    if (!draws) {
        no_memory(error);
        return NULL;
    }
    *draws = (at_draws){.corpus = corpus, .seed = seed, .max_length = max_length};
    if (!(alpha > 0 && alpha <= 1))
        at_fail(error, AT_USAGE, "`subword-sampling` is a number above 0 and up to 1, not %g", alpha);
    else if ((!source || !at_sampler_can(source)) && !at_sampler_can(target))
        at_fail(error, AT_USAGE,
                "`subword-sampling` samples the subwords of spm vocabularies, and neither side has one; leave it out, "
                "or use "
                "`source-vocab` spm:8000");
    if (error->code == AT_OK && store_side(draws, 0, lines, source, alpha, error) &&
        store_side(draws, 1, lines, target, alpha, error))
        return draws;
    at_draws_free(draws);
    return NULL;
}

void at_draws_free(at_draws *draws)
{
    if (!draws)
        return;
    for (int s = 0; s < 2; s++) {
        drawn_side *side = &draws->side[s];
        at_sampler_free(side->sampler);
        at_buffer_free(&side->text);
        free(side->text_start);
        free(side->best);
        free(side->best_start);
        free(side->ids);
        free(side->length);
    }
    for (int i = 0; i < draws->rooms; i++)
        at_draw_room_free(draws->room[i]);
    free(draws->room);
    free(draws);
}

static bool make_rooms(at_draws *draws, int count)
{
    at_draw_room **rooms = realloc(draws->room, (size_t)(count > draws->rooms ? count : draws->rooms) * sizeof *rooms);
    if (!rooms)
        return false;
    draws->room = rooms;
    for (; draws->rooms < count; draws->rooms++)
        if (!(draws->room[draws->rooms] = at_draw_room_new()))
            return false;
    return true;
}

typedef struct draw_job {
    const at_draws *draws;
    drawn_side *side;
    uint64_t seed;
} draw_job;

static void draw_sentence(void *context, int64_t i, int worker)
{
    const draw_job *job = context;
    drawn_side *side = job->side;
    size_t start = side->text_start[i];
    side->length[i] = at_sampler_draw(side->sampler, job->draws->room[worker], side->text.bytes + start,
                                      side->text_start[i + 1] - start, job->seed, (uint64_t)job->draws->corpus->line[i],
                                      side->ids + start);
}

/* The samples, one sentence after the other, become the corpus. */
static bool lay_out(at_draws *draws, int s)
{
    at_pairs_side *pairs = &draws->corpus->side[s];
    const drawn_side *side = &draws->side[s];
    pairs->used = 0;
    for (int64_t i = 0; i < draws->corpus->count; i++) {
        int64_t length = side->length[i];
        const int32_t *ids = side->ids + side->text_start[i];
        if (length < 0)
            return false;
        if (length == 0 || (draws->max_length > 0 && length > draws->max_length)) {
            ids = side->best + side->best_start[i];
            length = side->best_start[i + 1] - side->best_start[i];
        }
        memcpy(pairs->ids + pairs->used, ids, (size_t)length * sizeof *ids);
        pairs->used += (size_t)length;
        pairs->start[i + 1] = (int64_t)pairs->used;
    }
    return true;
}

bool at_draws_go(at_draws *draws, int64_t epoch, at_error *error)
{
    int workers = at_threads();
    if (error->code != AT_OK)
        return false;
    if (!make_rooms(draws, workers))
        return no_memory(error);
    for (int s = 0; s < 2; s++) {
        if (!draws->side[s].sampler)
            continue;
        uint32_t word[4]; /* a random stream for the epoch and the side, independent of the others of the seed */
        at_philox(draws->seed, (uint64_t)epoch, UINT64_C(0x7069656365730) + (uint64_t)s, word);
        draw_job job = {draws, &draws->side[s], (uint64_t)word[1] << 32 | word[0]};
        at_parallel(draws->corpus->count, workers, draw_sentence, &job);
        if (!lay_out(draws, s))
            return no_memory(error);
    }
    return true;
}
