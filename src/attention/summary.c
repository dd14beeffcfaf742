/* What can be asked for beside the output, read off the whole weights: the plain path's answer, and the measure of the
 * fused path's running ones. */
#include <math.h>
#include <string.h>

#include "attention/axes.h"

static void copy_rows(const at_operands *o, const at_tensor *w)
{
    const at_attention_in *in = o->in;
    const int64_t count = in->rows ? in->row_count : o->Q;
    for (int64_t bh = 0; count > 0 && bh < o->B * o->H; bh++)
        for (int64_t r = 0; r < count; r++)
            memcpy(in->weights + (bh * count + r) * o->K, w->value + (bh * o->Q + (in->rows ? in->rows[r] : r)) * o->K,
                   (size_t)o->K * sizeof(at_real));
}

void at_weights_report(const at_operands *o, const at_tensor *w)
{
    const at_attention_in *in = o->in;
    if (in->weights)
        copy_rows(o, w);
    if (in->key_sums)
        memset(in->key_sums, 0, (size_t)(o->B * o->H * o->K) * sizeof(at_real));
    for (int64_t row = 0; row < o->B * o->H * o->Q; row++) {
        const int64_t r = at_span_row(&o->spans, row / (o->H * o->Q), row / o->Q % o->H, row % o->Q);
        const int64_t lo = o->spans.lo[r], hi = o->spans.hi[r];
        const at_real *wi = w->value + row * o->K;
        int64_t best = hi > lo ? lo : -1; /* the first of equals; -1: there is none */
        double entropy = 0;
        for (int64_t j = lo; j < hi; j++) {
            best = wi[j] > wi[best] ? j : best;
            entropy -= wi[j] > 0 ? (double)wi[j] * log((double)wi[j]) : 0;
            if (in->key_sums)
                in->key_sums[row / o->Q * o->K + j] += wi[j];
        }
        if (in->argmax)
            in->argmax[row] = (int32_t)best;
        if (in->entropy)
            in->entropy[row] = (at_real)entropy;
    }
}
