/* The positions inside attention: where query and key stand to each other. All of them speak of the offset j - i alone,
 * so none needs an n x n x d table: a bias looked up by offset, a sum of weights by offset, or a rotation. */
#include <math.h>
#include <stdlib.h>

#include "attention/axes.h"

/* Shaw's keys: q_i.(k_j + aK) = q_i.k_j + P[i, clip(j-i)] with P = q wK^T. [B,Q,H,2k+1] */
static at_tensor *shaw_bias(at_operands *o)
{
    if (!o->in->wK)
        return NULL;
    at_tensor *P = at_heads_product(o->q, o->in->wK, o->H, true);
    return o->scale == 1 ? P : at_scale(P, o->scale);
}

/* A table over all offsets [H,2R+1]: the offset of entry r is r - R - shift. The offsets that occur run from
 * -(start + Q - 1) to K - 1 - start; counting the queries from nearer to the middle of the keys keeps the table as
 * small as Q + K, however far off `start` is. */
static int64_t offset_reach(at_operands *o, int64_t *shift)
{
    int64_t middle = o->K > o->Q ? (o->K - o->Q) / 2 : 0;
    o->bias_start = o->in->query_start < middle ? o->in->query_start : middle;
    *shift = o->in->query_start - o->bias_start;
    int64_t before = o->bias_start + o->Q - 1, after = o->K - 1 - o->bias_start;
    return before > after ? before : after;
}

/* bias = -slope_h |i - j|, slope_h = 2^(-8h/H), h = 1..H */
static at_tensor *alibi_bias(at_operands *o)
{
    int64_t shift, R = offset_reach(o, &shift);
    at_tensor *table = at_tensor_make(o->tape, AT_SHAPE(o->H, 2 * R + 1));
    for (int64_t h = 0; table && h < o->H; h++) {
        double slope = exp2(-8.0 * (double)(h + 1) / (double)o->H);
        for (int64_t r = 0; r <= 2 * R; r++)
            table->value[h * (2 * R + 1) + r] = (at_real)(-slope * (double)llabs(r - R - shift));
    }
    return table;
}

/* Half of the buckets for each sign of the offset, a key after the query in the upper half; in each half the first half
 * stands for one distance each, the rest grow logarithmically up to 128, beyond which all is one. */
static int64_t t5_bucket(int64_t offset, int64_t buckets)
{
    const double farthest = 128;
    const int64_t half = buckets / 2, exact = half / 2, distance = llabs(offset);
    int64_t bucket = distance;
    if (distance >= exact) {
        double share = log((double)distance / (double)exact) / log(farthest / (double)exact);
        /* The small addend keeps distances that lie exactly on an edge on its upper side. */
        bucket = exact + (int64_t)floor(share * (double)(half - exact) + 1e-9);
        if (bucket > half - 1)
            bucket = half - 1;
    }
    return bucket + (offset > 0 ? half : 0);
}

/* bias[bucket(j - i), h] as a table [H,2R+1] */
static at_tensor *t5_bias(at_operands *o)
{
    int64_t shift, R = offset_reach(o, &shift);
    int32_t *ids = at_arena_take(at_tape_arena(o->tape), (size_t)(2 * R + 1) * sizeof *ids);
    if (!ids) {
        at_fail(at_tape_error(o->tape), AT_FAILED, "memory is out: no room for %lld offsets", (long long)(2 * R + 1));
        return NULL;
    }
    for (int64_t r = 0; r <= 2 * R; r++)
        ids[r] = (int32_t)t5_bucket(r - R - shift, o->attention->buckets);
    return at_permute(at_embedding(o->in->bias, ids, AT_SHAPE(2 * R + 1)), (const int[]){1, 0});
}

static const at_position_record records[] = {
    [AT_NONE] = {{"position", "none", "", "order is not seen", "", ""}, false, NULL},
    [AT_SHAW] = {{"position", "shaw", "K[:keys|:values]", "q_i·(k_j + wK[clip(j−i, K)]), v_j + wV[clip(j−i, K)]",
                  "wK [2K+1,D]?, wV [2K+1,Dv]?", "Shaw, Uszkoreit, Vaswani 2018"},
                 false,
                 shaw_bias},
    [AT_ROPE] = {{"position", "rope", "", "pairs of q and k turned by position · 10000^(−2i/D)", "", "Su et al. 2021"},
                 true,
                 NULL},
    [AT_ALIBI] = {{"position", "alibi", "", "e_ij − 2^(−8h/H) |i − j|, h = 1..H", "", "Press, Smith, Lewis 2022"},
                  false,
                  alibi_bias},
    [AT_T5] = {{"position", "t5", "[BUCKETS]", "e_ij + bias[bucket(j − i), h]", "bias [BUCKETS,H]",
                "Raffel et al. 2020"},
               false,
               t5_bias},
};

const at_position_record *at_position_at(int index)
{
    return index >= 0 && index < (int)(sizeof records / sizeof *records) ? &records[index] : NULL;
}

void at_rotate_operands(at_operands *o)
{
    if (!at_position_at((int)o->attention->position)->rotates)
        return;
    o->q = at_rotate(o->q, o->in->query_start);
    o->k = at_rotate(o->k, 0);
}

at_tensor *at_add_value_positions(const at_operands *o, at_tensor *c, at_tensor *sums)
{
    return at_add(c, at_heads_product(sums, o->in->wV, o->H, false));
}
