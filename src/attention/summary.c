/* What can be asked for beside the output, computed from the whole weights: the plain path's results, which the tests
 * compare the fused path's with. */
#include <math.h>
#include <string.h>

#include "attention/axes_internal.h"

static void copy_rows(const at_job *j, const at_tensor *w)
{
    const at_asked *asked = j->asked;
    const int64_t count = j->asked_rows;
    for (int64_t bh = 0; count > 0 && bh < j->B * j->H; bh++)
        for (int64_t r = 0; r < count; r++)
            memcpy(asked->weights + (bh * count + r) * j->K,
                   w->value + (bh * j->Q + (asked->rows ? asked->rows[r] : r)) * j->K, (size_t)j->K * sizeof(at_real));
}

void at_scores_report(const at_job *j, const at_tensor *e)
{
    for (int64_t row = 0; row < j->B * j->H * j->Q; row++) {
        const int64_t r = at_span_row(&j->spans, row / (j->H * j->Q), row / j->Q % j->H, row % j->Q);
        for (int64_t key = 0; key < j->K; key++)
            j->asked->scores[row * j->K + key] =
                key >= j->spans.lo[r] && key < j->spans.hi[r] ? e->value[row * j->K + key] : -(at_real)INFINITY;
    }
}

void at_weights_report(const at_job *j, const at_tensor *w)
{
    const at_asked *asked = j->asked;
    if (asked->weights)
        copy_rows(j, w);
    if (asked->key_sums)
        memset(asked->key_sums, 0, (size_t)(j->B * j->H * j->K) * sizeof(at_real));
    for (int64_t row = 0; row < j->B * j->H * j->Q; row++) {
        const int64_t r = at_span_row(&j->spans, row / (j->H * j->Q), row / j->Q % j->H, row % j->Q);
        const int64_t lo = j->spans.lo[r], hi = j->spans.hi[r];
        const at_real *wi = w->value + row * j->K;
        int64_t best = hi > lo ? lo : -1; /* the first of equals; -1: there is none */
        double entropy = 0;
        for (int64_t key = lo; key < hi; key++) {
            best = wi[key] > wi[best] ? key : best;
            entropy -= wi[key] > 0 ? (double)wi[key] * log((double)wi[key]) : 0;
            if (asked->key_sums)
                asked->key_sums[row / j->Q * j->K + key] += wi[key];
        }
        if (asked->argmax)
            asked->argmax[row] = (int32_t)best;
        if (asked->entropy)
            asked->entropy[row] = (at_real)entropy;
    }
}
