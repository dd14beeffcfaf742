/* Forced decoding: the decoder is fed a given target. A few positions at a time, so that long targets and large
 * vocabularies need no more memory than a step of search; always the same number of positions, so that the results do
 * not depend on the batch. */
#include <math.h>

#include "search/search_internal.h"

enum { POSITIONS = 16 };

typedef struct forced {
    at_search_work *work;
    at_sentence *const *batch;
    int64_t rows;
    at_source source;
    int32_t *ids;        /* [rows, POSITIONS] */
    at_hypothesis *best; /* [rows] */
    int32_t **links;
    float **weights;
} forced;

/* The unit at position t of a target, the end after its last, padding beyond. */
static int32_t unit_at(const at_sentence *sentence, int64_t t)
{
    if (t < 0)
        return AT_BEGIN;
    return t < sentence->target.count ? sentence->target.ids[t] : t == sentence->target.count ? AT_END : AT_PAD;
}

static bool allocate_rows(forced *f)
{
    at_search_work *work = f->work;
    f->ids = at_search_alloc(work, work->batch, f->rows * POSITIONS, sizeof *f->ids);
    f->links = at_search_alloc(work, work->batch, f->rows, sizeof *f->links);
    f->weights = at_search_alloc(work, work->batch, f->rows, sizeof *f->weights);
    f->best = at_search_alloc(work, work->window, f->rows, sizeof *f->best);
    for (int64_t r = 0; r < f->rows && work->error->code == AT_OK; r++) {
        at_sentence *sentence = f->batch[r];
        int64_t count = sentence->target.count + 1;
        f->best[r] = (at_hypothesis){.ids = sentence->target.ids, .count = sentence->target.count};
        f->links[r] = at_search_alloc(work, work->window, count, sizeof **f->links);
        f->weights[r] = NULL;
        if (work->settings->wants_weights)
            f->weights[r] = at_search_alloc(work, work->window, count * sentence->source.count, sizeof **f->weights);
        sentence->result.best = &f->best[r];
        sentence->result.count = 1;
    }
    return work->error->code == AT_OK;
}

/* The weights of unit t, as they are at one position. */
static void read_weights(forced *f, int64_t r, int64_t t, const at_real *weights)
{
    const at_sentence *sentence = f->batch[r];
    for (int64_t s = 0; s < sentence->source.count && f->weights[r]; s++)
        f->weights[r][t * sentence->source.count + s] = (float)weights[s];
    f->links[r][t] = at_search_link(f->work, weights, sentence->source.count);
    f->best[r].links = f->links[r];
    f->best[r].weights = f->weights[r];
}

/* The unit whose weights are those of position t: the one that is predicted there, or the one that is read, y_{t-1}. */
static int64_t weighted_at(const forced *f, int64_t t)
{
    return t - f->work->settings->align_shift;
}

/* log p(y_t) of one position, and its weights. */
static bool read_position(forced *f, int64_t r, int64_t t, const at_real *logits, int64_t vocabulary,
                          const at_real *weights)
{
    const at_sentence *sentence = f->batch[r];
    const at_log_softmax l = at_log_softmax_of(logits, vocabulary);
    if (isnan(l.log_sum))
        return at_search_not_finite(f->work, sentence, "scores of the next unit");
    if (t <= sentence->target.count)
        f->best[r].score += at_log_prob(l, (double)logits[unit_at(sentence, t)]);
    if (weights && weighted_at(f, t) >= 0)
        read_weights(f, r, weighted_at(f, t), weights);
    return true;
}

/* Positions [from, from + POSITIONS) of all rows. */
static bool read_positions(forced *f, int64_t from)
{
    at_search_work *work = f->work;
    at_tape *tape = at_search_tape(work);
    if (!tape)
        return false;
    for (int64_t r = 0; r < f->rows; r++)
        for (int64_t i = 0; i < POSITIONS; i++)
            f->ids[r * POSITIONS + i] = unit_at(f->batch[r], from + i - 1);
    at_decoded decoded;
    if (!at_search_decode(work, tape, &f->source, f->ids, POSITIONS, &decoded))
        return false;
    int64_t vocabulary = decoded.logits->shape.dim[2], width = f->source.length;
    for (int64_t r = 0; r < f->rows; r++)
        for (int64_t t = from; t < from + POSITIONS && weighted_at(f, t) <= f->batch[r]->target.count; t++) {
            int64_t row = r * POSITIONS + t - from;
            if (!read_position(f, r, t, decoded.logits->value + row * vocabulary, vocabulary,
                               decoded.weights ? decoded.weights->value + row * width : NULL))
                return false;
        }
    return true;
}

bool at_forced_batch(at_search_work *work, at_sentence *const *batch, int64_t rows)
{
    forced f = {.work = work, .batch = batch, .rows = rows};
    int64_t longest = 0;
    for (int64_t r = 0; r < rows; r++)
        longest = batch[r]->target.count > longest ? batch[r]->target.count : longest;
    if (!at_search_pad(work, batch, rows, &f.source) || !at_search_start(work, &f.source) || !allocate_rows(&f))
        return false;
    for (int64_t from = 0; weighted_at(&f, from) <= longest; from += POSITIONS)
        if (at_search_stopped(work) || !read_positions(&f, from))
            return false;
    for (int64_t r = 0; r < rows; r++) {
        f.best[r].penalised = f.best[r].score;
        if (!at_search_word(work, batch[r], &f.best[r]))
            return false;
    }
    return true;
}
