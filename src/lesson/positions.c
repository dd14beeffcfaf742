/* "positions": the vectors that tell a model where a word stands. */
#include <string.h>

#include "lesson/ask_internal.h"
#include "models/model.h"
#include "tape/ops.h"

static const char *const added[] = {"none", "sinusoidal", "learned", NULL};
enum { NONE, SINUSOIDAL, LEARNED };

/* The rows of a table, [length, size]. */
static at_real *table_of(const at_ask *ask, int kind, int64_t length, int64_t size)
{
    const at_model_settings settings = {.hidden = size};
    at_rng rng = {.seed = 1};
    at_real *rows = at_arena_zeros(ask->arena, (size_t)(length * size) * sizeof *rows);
    if (!rows)
        at_no_memory(ask->error, "a table of positions");
    else if (size % 2)
        at_fail(ask->error, AT_SHAPE, "`size` is %lld and must be even for sines and cosines", (long long)size);
    else if (kind == SINUSOIDAL)
        at_sinusoids(&settings, 0, length, rows);
    for (int64_t i = 0; rows && kind == LEARNED && i < length * size; i++)
        rows[i] = (at_real)(2 * at_rng_uniform(&rng) - 1);
    return ask->error->code == AT_OK ? rows : NULL;
}

bool at_add_positions(const at_ask *ask, const char *kind, at_matrix *m)
{
    int which = 0;
    while (added[which] && strcmp(added[which], kind) != 0)
        which++;
    if (!added[which])
        return at_unknown("`added`", kind, added, which, ask->error);
    const at_real *rows = which == NONE ? NULL : table_of(ask, which, m->rows, m->columns);
    for (int64_t i = 0; rows && i < m->rows * m->columns; i++)
        m->value[i] += (float)rows[i];
    return ask->error->code == AT_OK;
}

/* Every pair of numbers begins as (1, 0), and is turned as at its position. */
static at_real *rotated(const at_ask *ask, int64_t length, int64_t size)
{
    at_tape *tape = at_tape_new(ask->arena, false);
    at_real *unit = at_arena_zeros(ask->arena, (size_t)(length * size) * sizeof *unit);
    if (!tape || !unit) {
        at_no_memory(ask->error, "a table of positions");
        return NULL;
    }
    for (int64_t i = 0; i < length * size; i += 2)
        unit[i] = 1;
    at_tensor *turned = at_rotate(at_leaf(tape, AT_SHAPE(1, length, 1, size), unit, NULL, false), 0);
    if (!turned)
        at_fail(ask->error, (at_code)at_tape_error(tape)->code, "%s", at_tape_error(tape)->text);
    return turned ? turned->value : NULL;
}

bool at_answer_positions(at_ask *ask)
{
    static const char *const kinds[] = {"sinusoidal", "learned", "rope", NULL};
    if (!at_ask_only(ask, ask->request, "ask kind length size"))
        return false;
    const int kind = at_ask_choice(ask, ask->request, "kind", kinds);
    const int64_t length = at_ask_count(ask, ask->request, "length", 16, 1, 128),
                  size = at_ask_count(ask, ask->request, "size", 16, 2, 128);
    if (ask->error->code != AT_OK)
        return false;
    const at_real *rows = kind == 2 ? rotated(ask, length, size) : table_of(ask, kind + 1, length, size);
    float *table = rows ? at_ask_floats(ask, length * size) : NULL;
    for (int64_t i = 0; table && i < length * size; i++)
        table[i] = (float)rows[i];
    if (table)
        at_put_matrix(ask, "table", table, length, size);
    return table;
}
