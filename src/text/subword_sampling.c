#include "text/subword_sampling.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/threads.h"
#include "text/pairs_internal.h"
#include "text/sampler_internal.h"

/* One side: its texts, and its best segmentations. */
typedef struct sampled_side {
    at_sampler *sampler; /* NULL: this side has no subwords */
    at_buffer text;      /* of all sentences, as their subwords spell them */
    size_t *text_start;  /* [count + 1] */
    int32_t *best;
    int64_t *best_start; /* [count + 1] */
    int32_t *ids;        /* the sample of sentence i is at ids[text_start[i] ..): a unit has a byte at least */
    int64_t *length;     /* [count] of the sample; -1: out of memory */
} sampled_side;

struct at_subword_sampling {
    at_corpus *corpus;
    uint64_t seed;
    int64_t max_length;
    sampled_side side[2];
    at_sampler_scratch **scratch; /* one for each thread */
    int scratch_count;
};

static bool no_memory(at_error *error)
{
    return at_no_memory(error, "subword sampling");
}

/* Stores the texts of one side and its best segmentations. */
static bool store_side(at_subword_sampling *sampling, int s, const at_lines *lines, const at_vocabulary *vocabulary,
                       double alpha, at_error *error)
{
    at_pairs_side *pairs = &sampling->corpus->side[s];
    sampled_side *side = &sampling->side[s];
    size_t count = (size_t)sampling->corpus->count;
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
        const at_line line = lines->side[s][sampling->corpus->line[i] - 1];
        if (!at_vocabulary_spell(vocabulary, line.text, line.size, &side->text))
            return no_memory(error);
        side->text_start[i + 1] = side->text.size;
    }
    /* Memory for a sample of one unit per byte, or for the best segmentation, whichever is more. */
    size_t most = pairs->used + side->text.size + 1;
    int32_t *ids = realloc(pairs->ids, most * sizeof *ids);
    side->ids = malloc((side->text.size + 1) * sizeof *side->ids);
    pairs->ids = ids ? ids : pairs->ids;
    pairs->room = ids ? most : pairs->room;
    return (ids && side->ids) || no_memory(error);
}

at_subword_sampling *at_subword_sampling_new(at_corpus *corpus, const at_lines *lines, const at_vocabulary *source,
                                             const at_vocabulary *target, double alpha, int64_t max_length,
                                             uint64_t seed, at_error *error)
{
    at_subword_sampling *sampling = error->code == AT_OK ? calloc(1, sizeof *sampling) : NULL;
    if (!sampling) {
        no_memory(error);
        return NULL;
    }
    *sampling = (at_subword_sampling){.corpus = corpus, .seed = seed, .max_length = max_length};
    if (!(alpha > 0 && alpha <= 1))
        at_fail(error, AT_USAGE, "`subword-sampling` is a number above 0 and up to 1, not %g", alpha);
    else if ((!source || !at_sampler_can(source)) && !at_sampler_can(target))
        at_fail(error, AT_USAGE,
                "`subword-sampling` samples the subwords of spm vocabularies, and neither side has one; leave it out, "
                "or use "
                "`source-vocab` spm:8000");
    if (error->code == AT_OK && store_side(sampling, 0, lines, source, alpha, error) &&
        store_side(sampling, 1, lines, target, alpha, error))
        return sampling;
    at_subword_sampling_free(sampling);
    return NULL;
}

void at_subword_sampling_free(at_subword_sampling *sampling)
{
    if (!sampling)
        return;
    for (int s = 0; s < 2; s++) {
        sampled_side *side = &sampling->side[s];
        at_sampler_free(side->sampler);
        at_buffer_free(&side->text);
        free(side->text_start);
        free(side->best);
        free(side->best_start);
        free(side->ids);
        free(side->length);
    }
    for (int i = 0; i < sampling->scratch_count; i++)
        at_sampler_scratch_free(sampling->scratch[i]);
    free(sampling->scratch);
    free(sampling);
}

static bool reserve_scratch(at_subword_sampling *sampling, int count)
{
    const int most = count > sampling->scratch_count ? count : sampling->scratch_count;
    at_sampler_scratch **scratch = realloc(sampling->scratch, (size_t)most * sizeof *scratch);
    if (!scratch)
        return false;
    sampling->scratch = scratch;
    for (; sampling->scratch_count < count; sampling->scratch_count++)
        if (!(scratch[sampling->scratch_count] = at_sampler_scratch_new()))
            return false;
    return true;
}

typedef struct sampling_job {
    const at_subword_sampling *sampling;
    sampled_side *side;
    uint64_t seed;
} sampling_job;

static void sample_sentence(void *context, int64_t i, int worker)
{
    const sampling_job *job = context;
    sampled_side *side = job->side;
    size_t start = side->text_start[i];
    side->length[i] = at_sampler_segment(side->sampler, job->sampling->scratch[worker], side->text.bytes + start,
                                         side->text_start[i + 1] - start, job->seed,
                                         (uint64_t)job->sampling->corpus->line[i], side->ids + start);
}

/* The corpus becomes the samples, one sentence after the other. */
static bool replace_corpus(at_subword_sampling *sampling, int s)
{
    at_pairs_side *pairs = &sampling->corpus->side[s];
    const sampled_side *side = &sampling->side[s];
    pairs->used = 0;
    for (int64_t i = 0; i < sampling->corpus->count; i++) {
        int64_t length = side->length[i];
        const int32_t *ids = side->ids + side->text_start[i];
        if (length < 0)
            return false;
        if (length == 0 || (sampling->max_length > 0 && length > sampling->max_length)) {
            ids = side->best + side->best_start[i];
            length = side->best_start[i + 1] - side->best_start[i];
        }
        memcpy(pairs->ids + pairs->used, ids, (size_t)length * sizeof *ids);
        pairs->used += (size_t)length;
        pairs->start[i + 1] = (int64_t)pairs->used;
    }
    return true;
}

bool at_subword_sampling_set_epoch(at_subword_sampling *sampling, int64_t epoch, at_error *error)
{
    int workers = at_threads();
    if (error->code != AT_OK)
        return false;
    if (!reserve_scratch(sampling, workers))
        return no_memory(error);
    for (int s = 0; s < 2; s++) {
        if (!sampling->side[s].sampler)
            continue;
        uint32_t word[4]; /* a random stream for the epoch and the side, independent of the others of the seed */
        at_philox(sampling->seed, (uint64_t)epoch, UINT64_C(0x7069656365730) + (uint64_t)s, word);
        sampling_job job = {sampling, &sampling->side[s], (uint64_t)word[1] << 32 | word[0]};
        at_parallel(sampling->corpus->count, workers, sample_sentence, &job);
        if (!replace_corpus(sampling, s))
            return no_memory(error);
    }
    return true;
}
