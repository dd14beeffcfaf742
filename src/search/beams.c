/* The search of one line, step by step: what at_search's observer of extensions gets, kept. */
#include <stdlib.h>
#include <string.h>

#include "attend_unstable.h"
#include "base/grow.h"
#include "search/search.h"

typedef struct beams {
    at_beams of; /* what the caller gets */
    at_arena *arena;
    const at_translator *translator;
    at_beam_unit *unit;
    float *weights;
    int64_t *looks, rows; /* of weights */
    int32_t *ids;         /* [count] of the units */
    size_t unit_room, id_room, weight_room, look_room;
    at_error *error;
} beams;

static bool no_memory(beams *b)
{
    return at_no_memory(b->error, "the steps of a search");
}

static const char *copy(beams *b, const char *name)
{
    char *text = at_arena_take(b->arena, strlen(name) + 1);
    if (text)
        strcpy(text, name);
    else
        no_memory(b);
    return text;
}

/* Where the hypotheses of a step looked; they come in any order, and those without an extension have zeros. */
static bool add_look(beams *b, const at_extension *e)
{
    const int64_t row = b->looks[e->step] + e->parent, units = e->units;
    if (!e->weights)
        return true;
    if (!AT_GROW(b->weights, b->weight_room, (size_t)((row + 1) * units) + 1))
        return no_memory(b);
    for (; b->rows <= row; b->rows++)
        memset(b->weights + b->rows * units, 0, (size_t)units * sizeof *b->weights);
    for (int64_t s = 0; s < units; s++)
        b->weights[row * units + s] = (float)e->weights[s];
    return true;
}

static void observe(void *context, const at_extension *e)
{
    beams *b = context;
    at_beams *of = &b->of;
    if (b->error->code != AT_OK)
        return;
    if (!AT_GROW(b->unit, b->unit_room, (size_t)of->count + 1) || !AT_GROW(b->ids, b->id_room, (size_t)of->count + 1) ||
        !AT_GROW(b->looks, b->look_room, (size_t)e->step + 1)) {
        no_memory(b);
        return;
    }
    if (e->step >= of->steps) {
        b->looks[e->step] = b->rows;
        of->steps = e->step + 1;
    }
    const char *name = copy(b, at_vocabulary_unit(b->translator->target, e->id));
    if (!name || !add_look(b, e))
        return;
    b->ids[of->count] = e->id;
    b->unit[of->count++] = (at_beam_unit){.step = e->step,
                                          .parent = e->parent,
                                          .name = name,
                                          .score = e->score,
                                          .log_prob = e->log_prob,
                                          .kept = e->kept,
                                          .ended = e->id == AT_END};
}

/* The units of the result: of each step the kept one with the right parent, whose place among those that go on is the
 * parent of the next step. */
static void mark_best(beams *b, const at_hypothesis *best)
{
    int64_t parent = 0;
    for (int64_t i = 0, step = 0; step <= best->count && i < b->of.count; step++) {
        const int32_t id = step < best->count ? best->ids[step] : AT_END;
        int64_t place = 0, found = -1;
        for (; i < b->of.count && b->unit[i].step == step; i++) {
            at_beam_unit *u = &b->unit[i];
            if (u->kept && u->parent == parent && b->ids[i] == id) {
                u->best = true;
                found = place;
            }
            place += u->kept && !u->ended;
        }
        parent = found;
    }
}

static bool finish(void *context, int64_t line, const at_result *result)
{
    beams *b = context;
    (void)line;
    if (b->error->code != AT_OK)
        return false;
    mark_best(b, &result->best[0]);
    const char **names = at_arena_take(b->arena, (size_t)(result->source_units + 1) * sizeof *names);
    if (!names)
        return no_memory(b);
    for (int64_t s = 0; s < result->source_units && result->source_names; s++)
        if (!(names[s] = copy(b, result->source_names[s])))
            return false;
    b->of.source_names = names;
    b->of.source_units = result->source_names ? result->source_units : 0;
    return true;
}

at_beams *at_beams_new(at_translator *translator, const at_search_settings *settings, const at_line *source,
                       at_error *error)
{
    const at_model_kind *kind = translator->model->kind;
    at_search_settings complete = *settings;
    if (error->code != AT_OK || !at_search_complete(&complete, error))
        return NULL;
    if (settings->glossary) {
        at_fail(error, AT_UNSUPPORTED, "the steps of a search with a glossary are not told");
        return NULL;
    }
    if (!kind->has_source || kind->has_pictures) {
        at_fail(error, AT_UNSUPPORTED, "model '%s' does not translate text", kind->name);
        return NULL;
    }
    complete.wants_weights = kind->has_attention;
    complete.n_best = 1;
    beams *b = calloc(1, sizeof *b);
    if (!b || !(b->arena = at_arena_new())) {
        free(b);
        at_no_memory(error, "the steps of a search");
        return NULL;
    }
    b->translator = translator;
    b->error = error;
    b->of.memory = b;
    const at_extension_observer observer = {observe, b};
    const at_search_job job = {.translator = translator,
                               .settings = &complete,
                               .lines = source,
                               .count = 1,
                               .on_result = finish,
                               .context = b,
                               .extensions = &observer};
    const bool good = at_search(&job, error) && error->code == AT_OK;
    b->of.unit = b->unit;
    b->of.weights = b->weights;
    b->of.looks = b->looks;
    if (good)
        return &b->of;
    at_beams_free(&b->of);
    return NULL;
}

void at_beams_free(at_beams *of)
{
    beams *b = of ? of->memory : NULL;
    if (!b)
        return;
    at_arena_free(b->arena);
    free(b->unit);
    free(b->ids);
    free(b->weights);
    free(b->looks);
    free(b);
}
