/* The positions inside attention: the relative position of query and key. All of them depend on the offset j - i alone,
 * so none needs an n x n x d table: a bias looked up by offset, a sum of weights by offset, or a rotation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention/axes_internal.h"

/* ---- alibi and t5: a bias by offset, the same for all queries ---- */

/* A table over all offsets [H,2R+1]: the offset of entry r is r - R - shift. The offsets that occur run from
 * -(start + Q - 1) to K - 1 - start; counting the queries from nearer to the middle of the keys keeps the table as
 * small as Q + K, however far off `start` is. */
static int64_t offset_reach(at_job *j, int64_t *shift)
{
    int64_t middle = j->K > j->Q ? (j->K - j->Q) / 2 : 0;
    j->bias_start = j->in.query_start < middle ? j->in.query_start : middle;
    *shift = j->in.query_start - j->bias_start;
    int64_t before = j->bias_start + j->Q - 1, after = j->K - 1 - j->bias_start;
    return before > after ? before : after;
}

/* bias = -slope_h |i - j|, slope_h = 2^(-8h/H), h = 1..H */
static at_tensor *alibi_bias(at_job *j)
{
    int64_t shift, R = offset_reach(j, &shift);
    at_tensor *table = at_tensor_make(j->tape, AT_SHAPE(j->H, 2 * R + 1));
    for (int64_t h = 0; table && h < j->H; h++) {
        double slope = exp2(-8.0 * (double)(h + 1) / (double)j->H);
        for (int64_t r = 0; r <= 2 * R; r++)
            table->value[h * (2 * R + 1) + r] = (at_real)(-slope * (double)llabs(r - R - shift));
    }
    return table;
}

/* Half of the buckets for each sign of the offset, a key after the query in the upper half; in each half the first half
 * are one distance each, the rest grow logarithmically up to 128, and the last holds all that is farther. */
static int64_t t5_bucket(int64_t offset, int64_t buckets)
{
    const double farthest = 128;
    const int64_t half = buckets / 2, exact = half / 2, distance = llabs(offset);
    int64_t bucket = distance;
    if (distance >= exact) {
        double share = log((double)distance / (double)exact) / log(farthest / (double)exact);
        /* The small addend puts distances that lie exactly on a boundary into the upper bucket. */
        bucket = exact + (int64_t)floor(share * (double)(half - exact) + 1e-9);
        if (bucket > half - 1)
            bucket = half - 1;
    }
    return bucket + (offset > 0 ? half : 0);
}

/* bias[bucket(j - i), h] as a table [H,2R+1] */
static at_tensor *t5_bias(at_job *j)
{
    int64_t shift, R = offset_reach(j, &shift);
    int32_t *ids = at_arena_take(at_tape_arena(j->tape), (size_t)(2 * R + 1) * sizeof *ids);
    if (!ids) {
        at_no_memory(at_tape_error(j->tape), "%lld offsets", (long long)(2 * R + 1));
        return NULL;
    }
    for (int64_t r = 0; r <= 2 * R; r++)
        ids[r] = (int32_t)t5_bucket(r - R - shift, j->attention.argument[AT_POSITION]);
    return at_permute(at_embedding(j->in.parameter[AT_POSITION][0], ids, AT_SHAPE(2 * R + 1)), (const int[]){1, 0});
}

static bool t5_argument(const at_choice *c, at_attention *a, at_error *error)
{
    enum { LEAST = 4, DEFAULT = 32, MOST = 510 }; /* a quarter of the buckets is exact and must stay below 128 */
    int64_t *buckets = &a->argument[AT_POSITION];
    if (!at_argument_number(c, 0, DEFAULT, buckets, error))
        return false;
    if (*buckets % 2 || *buckets < LEAST || *buckets > MOST)
        return at_fail(error, AT_USAGE, "position '%s' must have an even number of buckets from %d to %d", c->text,
                       LEAST, MOST);
    return true;
}

/* ---- shaw: tables of keys and values by clipped offset ---- */

enum { SHAW_KEYS, SHAW_VALUES };

/* K, and after a second colon which of the two tables there is. Key positions need an inner product to enter. */
static bool shaw_argument(const at_choice *c, at_attention *a, at_error *error)
{
    static const char *const names[] = {[SHAW_KEYS] = "keys", [SHAW_VALUES] = "values"};
    char first[24];
    const char *colon = c->argument ? strchr(c->argument, ':') : NULL;
    at_choice cut = *c;
    if (colon) {
        snprintf(first, sizeof first, "%.*s", (int)(colon - c->argument), c->argument);
        cut.argument = first;
    }
    if (!at_argument_number(&cut, 0, -1, &a->argument[AT_POSITION], error))
        return false;
    const int only = colon ? at_argument_word(c, "table", colon + 1, names, 2, error) : -1;
    if (colon && only < 0)
        return false;
    at_declared *tables = a->declared[AT_POSITION];
    tables[SHAW_KEYS].excluded = only == SHAW_VALUES || !a->score->inner;
    tables[SHAW_VALUES].excluded = only == SHAW_KEYS;
    if (tables[SHAW_KEYS].excluded && tables[SHAW_VALUES].excluded)
        return at_fail(error, AT_UNSUPPORTED,
                       "position '%s' does not go with score '%s': there is no inner product for the key positions",
                       c->text, a->score->entry.name);
    return true;
}

static bool shaw_check(const at_job *j)
{
    at_error *error = at_tape_error(j->tape);
    const at_declared *tables = j->attention.declared[AT_POSITION];
    at_tensor *const *given = j->in.parameter[AT_POSITION];
    if (!given[SHAW_KEYS] && !given[SHAW_VALUES])
        return at_fail(error, AT_FAILED, "position 'shaw' needs parameter 'wK' or 'wV' or both, and neither is given");
    if (given[SHAW_KEYS] && !j->attention.score->inner)
        return at_fail(error, AT_UNSUPPORTED,
                       "parameter 'wK' does not go with score '%s': there is no inner product for the key positions",
                       j->attention.score->entry.name);
    for (int i = 0; i < 2; i++)
        if (given[i] && tables[i].excluded)
            return at_fail(error, AT_UNSUPPORTED,
                           "position 'shaw' has a table of %s only here and takes no parameter '%s'",
                           i == SHAW_KEYS ? "values" : "keys", tables[i].name);
    return true;
}

/* q_i.(k_j + aK) = q_i.k_j + P[i, clip(j-i)] with P = q wK^T */
at_tensor *at_key_positions(const at_job *j)
{
    at_tensor *P = at_heads_product(j->q, j->key_table, j->H, true);
    return j->scale == 1 ? P : at_scale(P, j->scale);
}

at_tensor *at_add_value_positions(const at_job *j, at_tensor *c, at_tensor *sums)
{
    return at_add(c, at_heads_product(sums, j->value_table, j->H, false));
}

/* ---- rope ---- */

void at_rotate_operands(at_job *j)
{
    if (!j->attention.position->rotates)
        return;
    j->q = at_rotate(j->q, j->in.query_start);
    j->k = at_rotate(j->k, 0);
}

/* ---- The records ---- */

const at_position_record at_position_none = {.entry = {"position", "none", "", "order is not seen", "", ""}};

const at_position_record at_position_shaw = {.entry = {"position", "shaw", "K[:keys|:values]",
                                                       "q_i·(k_j + wK[clip(j−i, K)]), v_j + wV[clip(j−i, K)]",
                                                       "wK [2K+1,D]?, wV [2K+1,Dv]?", "Shaw, Uszkoreit, Vaswani 2018"},
                                             .argument = shaw_argument,
                                             .has_tables = true,
                                             .check = shaw_check};

const at_position_record at_position_rope = {
    .entry = {"position", "rope", "", "pairs of q and k turned by position · 10000^(−2i/D)", "", "Su et al. 2021"},
    .rotates = true};

const at_position_record at_position_alibi = {
    .entry = {"position", "alibi", "", "e_ij − 2^(−8h/H) |i − j|, h = 1..H", "", "Press, Smith, Lewis 2022"},
    .bias = alibi_bias};

const at_position_record at_position_t5 = {
    .entry = {"position", "t5", "[BUCKETS]", "e_ij + bias[bucket(j − i), h]", "bias [BUCKETS,H]", "Raffel et al. 2020"},
    .argument = t5_argument,
    .bias = t5_bias};
