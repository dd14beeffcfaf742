/* Rows without padding, and the vectors of their positions. */
#include <math.h>

#include "models/transformer_internal.h"
#include "tape/block.h"

bool at_rows_of(const at_pass *pass, const int32_t *ids, int64_t batch, int64_t n, const int64_t *lengths,
                at_rows *rows)
{
    int64_t *at = at_room(pass->tape, (size_t)(2 * batch + 1) * sizeof *at), *count = at + batch;
    int32_t *packed = ids ? at_room(pass->tape, (size_t)(batch * n) * 2 * sizeof *packed) : NULL;
    if (!at || (ids && !packed))
        return false;
    int32_t *positions = packed ? packed + batch * n : NULL;
    *rows = (at_rows){.batch = batch, .at = at, .count = count, .ids = packed, .positions = positions};
    for (int64_t b = 0; b < batch; b++) {
        at[b] = rows->total;
        count[b] = lengths ? lengths[b] : n;
        rows->longest = count[b] > rows->longest ? count[b] : rows->longest;
        for (int64_t i = 0; ids && i < count[b]; i++) {
            packed[rows->total + i] = ids[b * n + i];
            positions[rows->total + i] = (int32_t)i;
        }
        rows->total += count[b];
    }
    return true;
}

bool at_rows_of_steps(const at_pass *pass, const int32_t *ids, int64_t batch, int64_t n, at_rows *rows)
{
    int32_t *transposed = at_room(pass->tape, (size_t)(batch * n + 1) * 2 * sizeof *transposed);
    if (!transposed)
        return false;
    int32_t *positions = transposed + batch * n;
    for (int64_t t = 0; t < n; t++)
        for (int64_t b = 0; b < batch; b++) {
            transposed[t * batch + b] = ids[b * n + t];
            positions[t * batch + b] = (int32_t)t;
        }
    *rows = (at_rows){.batch = batch, .total = batch * n, .longest = n, .ids = transposed, .positions = positions};
    return true;
}

/* sin and cos of p / 10000^(2i/d): PE(p,2i) and PE(p,2i+1), or in halves PE(p,i) and PE(p,d/2+i). The exponent's
 * denominator is d/2, or d/2 - 1 as some toolkits have it. */
void at_sinusoids(const at_model_settings *s, int64_t first, int64_t count, at_real *rows)
{
    const int64_t half = s->hidden / 2;
    const bool halves = s->position_layout == AT_HALVES;
    const double over = s->position_denominator == AT_HALF_LESS_ONE ? (double)(half - 1) : (double)half;
    for (int64_t i = 0; i < half; i++) {
        const double rate = exp(-log(10000.0) * (double)i / (over > 0 ? over : 1));
        const int64_t sine = halves ? i : 2 * i, cosine = halves ? half + i : 2 * i + 1;
        for (int64_t p = 0; p < count; p++) {
            double angle = (double)(first + p) * rate;
            rows[p * s->hidden + sine] = (at_real)sin(angle);
            rows[p * s->hidden + cosine] = (at_real)cos(angle);
        }
    }
}

/* Rows of a learned table [positions,d]. Training refuses longer sentences; a translator, which must translate every
 * line, uses the last row for all positions beyond the table. */
static at_tensor *learned_positions(const at_model *model, const at_pass *pass, int learned, int64_t first,
                                    int64_t count)
{
    const int64_t positions = model->settings.positions;
    at_tensor *table = at_param(pass->tape, model->params, learned);
    if (first + count <= positions)
        return at_slice(table, 0, first, first + count);
    if (at_tape_records(pass->tape))
        return AT_REFUSE(pass->tape, AT_SHAPE,
                         "a sentence of %lld units is longer than the learned table of %lld positions; train with "
                         "`positions` %lld or more, or with `position` sinusoidal, which has no limit",
                         (long long)(first + count), (long long)positions, (long long)(first + count));
    int32_t *ids = at_room(pass->tape, (size_t)count * sizeof *ids);
    for (int64_t i = 0; ids && i < count; i++)
        ids[i] = (int32_t)(first + i < positions ? first + i : positions - 1);
    return ids ? at_embedding(table, ids, AT_SHAPE(count)) : NULL;
}

at_tensor *at_position_vectors(const at_model *model, const at_pass *pass, int learned, int64_t first, int64_t count)
{
    const at_model_settings *s = &model->settings;
    const at_real *ready = at_sinusoid_table(model);
    at_tape *tape = pass->tape;
    if (!at_tape_ok(tape))
        return NULL;
    if (ready && first + count <= AT_TABLE_POSITIONS)
        return at_leaf(tape, AT_SHAPE(count, s->hidden), ready + first * s->hidden, NULL, false);
    first += (int64_t)s->first_position;
    if (learned >= 0)
        return learned_positions(model, pass, learned, first, count);
    if (model->added != AT_ADDED_SINUSOIDAL)
        return NULL;
    at_tensor *table = at_tensor_make(tape, AT_SHAPE(count, s->hidden));
    if (table)
        at_sinusoids(s, first, count, table->value);
    return table;
}
