/* The encoder only: a source's features, without any target. */
#include "kernels/isa.h"
#include "kernels/rows.h"
#include "search/search_internal.h"

/* Copies one sentence's rows [units, d] out of the batch's. */
static bool copy_features(at_search_work *work, at_sentence *sentence, const at_real *rows, int64_t size)
{
    const int64_t count = sentence->source.count * size;
    float *features = at_search_alloc(work, work->window, count, sizeof *features);
    at_hypothesis *none = at_search_alloc(work, work->window, 1, sizeof *none);
    if (!features || !none)
        return false;
    if (!at_isa()->rows->finite(rows, 0, 1, count))
        return at_search_not_finite(work, sentence, "features");
    for (int64_t i = 0; i < count; i++)
        features[i] = (float)rows[i];
    *none = (at_hypothesis){.text = ""};
    sentence->result.best = none;
    sentence->result.count = 1;
    sentence->result.features = features;
    sentence->result.feature_size = size;
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
    for (int64_t r = 0, at = 0; r < rows; at += padded ? source.length : batch[r]->source.count, r++)
        if (!copy_features(work, batch[r], R->value + at * size, size))
            return false;
    return true;
}
