/* The encoder alone: what a model makes of a source before any target. */
#include "search/search_internal.h"

/* One sentence's rows, from where they lie in the batch's: [units, d]. */
static bool take_features(at_search_work *work, at_sentence *sentence, const at_real *rows, int64_t size)
{
    const int64_t count = sentence->count * size;
    float *features = at_search_take(work, work->window, count, sizeof *features);
    at_hypothesis *none = at_search_take(work, work->window, 1, sizeof *none);
    if (!features || !none)
        return false;
    for (int64_t i = 0; i < count; i++)
        features[i] = (float)rows[i];
    *none = (at_hypothesis){.text = ""};
    sentence->found.best = none;
    sentence->found.count = 1;
    sentence->found.features = features;
    sentence->found.feature_size = size;
    return true;
}

bool at_encode_batch(at_search_work *work, at_sentence *const *batch, int64_t rows)
{
    at_source source;
    at_tape *tape = at_search_pad(work, batch, rows, &source) ? at_search_tape(work) : NULL;
    if (!tape)
        return false;
    const at_tensor *R = at_model_features(work->translator->model, &(at_pass){.tape = tape}, &source);
    if (!at_search_ok(work, tape))
        return false;
    const bool padded = R->shape.rank == 3; /* [B,S,d], not [sum of lengths,d] */
    const int64_t size = R->shape.dim[R->shape.rank - 1];
    for (int64_t r = 0, at = 0; r < rows; at += padded ? source.length : batch[r]->count, r++)
        if (!take_features(work, batch[r], R->value + at * size, size))
            return false;
    return true;
}
