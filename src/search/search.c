/* Search and forced decoding share their lines, batches and memory; this is where a search begins and ends. */
#include "search/search.h"

#include <math.h>
#include <stdlib.h>

#include "search/search_internal.h"

bool at_search_complete(at_search_settings *settings, at_error *error)
{
    if (settings->beam < 0 || settings->n_best < 0 || settings->batch < 0)
        return at_fail(error, AT_USAGE, "the beam, the number of best and the batch are counts, 1 or more");
    if (!(settings->temperature >= 0) || isinf(settings->temperature))
        return at_fail(error, AT_USAGE, "the temperature of sampling is a number above 0, not %g",
                       settings->temperature);
    if (!isfinite(settings->length_penalty))
        return at_fail(error, AT_USAGE, "the length penalty is a number, not %g", settings->length_penalty);
    if (!(settings->max_length_factor >= 0) || settings->max_length_factor > 1000)
        return at_fail(error, AT_USAGE, "the factor of the longest output is a number from 0 to 1000, not %g",
                       settings->max_length_factor);
    if (!(settings->min_length_factor >= 0) || settings->min_length_factor > 1000)
        return at_fail(error, AT_USAGE, "the factor of the shortest output is a number from 0 to 1000, not %g",
                       settings->min_length_factor);
    if (settings->max_length < 0)
        return at_fail(error, AT_USAGE, "the longest output is a number of units, 1 or more, not %lld",
                       (long long)settings->max_length);
    settings->beam = settings->beam ? settings->beam : 1;
    settings->n_best = settings->n_best ? settings->n_best : 1;
    settings->batch = settings->batch ? settings->batch : 64;
    settings->max_length_factor = settings->max_length_factor > 0 ? settings->max_length_factor : 2;
    if (settings->temperature == 0 && settings->n_best > settings->beam)
        return at_fail(error, AT_USAGE, "a beam of %lld cannot give the %lld best; ask for fewer, or widen the beam",
                       (long long)settings->beam, (long long)settings->n_best);
    return true;
}

enum { FEATURE_WINDOW = 1 << 16 }; /* a unit's features take far more than its text */

/* A layer and a head that the model has, both counted from 1. */
static bool head_fits(const at_model *model, const at_search_settings *settings, at_error *error)
{
    int layers = 0, heads = 0;
    if (settings->layer == 0 && settings->head == 0)
        return true;
    if (!at_model_heads(model, &layers, &heads))
        return at_fail(error, AT_FAILED, "model '%s' does not attend to a source, so it has no head %d.%d",
                       model->kind->name, settings->layer, settings->head);
    if (settings->layer < 0 || settings->layer > layers || settings->head < 0 || settings->head > heads)
        return at_fail(error, AT_FAILED, "there is no head %d.%d: the model has %d layer%s of %d head%s",
                       settings->layer, settings->head, layers, layers == 1 ? "" : "s", heads, heads == 1 ? "" : "s");
    return true;
}

static bool heads_fit(const at_translator *translator, const at_search_settings *settings, at_error *error)
{
    bool fits = head_fits(translator->model, settings, error);
    for (int i = 0; fits && i < translator->more_count; i++)
        fits = head_fits(translator->more[i], settings, error);
    return fits;
}

static bool open_work(at_search_work *work)
{
    work->window = at_arena_new();
    work->batch = at_arena_new();
    work->steps = at_arena_new();
    work->voices = calloc((size_t)work->translator->more_count + 1, sizeof *work->voices);
    bool whole = work->window && work->batch && work->steps && work->voices;
    for (; whole && work->voice_count <= work->translator->more_count; work->voice_count++) {
        at_voice *voice = &work->voices[work->voice_count];
        voice->model = work->voice_count ? work->translator->more[work->voice_count - 1] : work->translator->model;
        voice->memory = at_kept_new();
        voice->state = at_kept_new();
        voice->cache = at_cache_new();
        whole = voice->memory && voice->state && voice->cache;
    }
    return whole || at_search_memory(work);
}

static void close_work(at_search_work *work)
{
    at_nodes_free(work->nodes);
    for (int v = 0; v < work->voice_count; v++) {
        at_cache_free(work->voices[v].cache);
        at_kept_free(work->voices[v].state);
        at_kept_free(work->voices[v].memory);
    }
    free(work->voices);
    at_arena_free(work->steps);
    at_arena_free(work->batch);
    at_arena_free(work->window);
    at_buffer_free(&work->text);
}

bool at_search(at_translator *translator, const at_search_settings *settings, const char *const *lines,
               const size_t *sizes, int64_t count, at_give *give, void *context, at_error *error)
{
    at_search_work work = {.translator = translator, .settings = settings, .error = error, .run = at_search_beam};
    bool good =
        error->code == AT_OK && heads_fit(translator, settings, error) && open_work(&work) &&
        (!translator->model->kind->has_source ? at_search_lines(&work, NULL, NULL, lines, sizes, count, give, context)
                                        : at_search_lines(&work, lines, sizes, NULL, NULL, count, give, context));
    close_work(&work);
    return good;
}

bool at_forced(at_translator *translator, const at_search_settings *settings, const char *const *sources,
               const size_t *source_sizes, const char *const *targets, const size_t *target_sizes, int64_t count,
               at_give *give, void *context, at_error *error)
{
    at_search_work work = {.translator = translator, .settings = settings, .error = error, .run = at_forced_batch};
    bool good = error->code == AT_OK && heads_fit(translator, settings, error) && open_work(&work) &&
                at_search_lines(&work, sources, source_sizes, targets, target_sizes, count, give, context);
    close_work(&work);
    return good;
}

bool at_encode_lines(at_translator *translator, const at_search_settings *settings, const char *const *lines,
                     const size_t *sizes, int64_t count, at_give *give, void *context, at_error *error)
{
    at_search_work work = {.translator = translator,
                           .settings = settings,
                           .error = error,
                           .run = at_encode_batch,
                           .window_bytes = FEATURE_WINDOW};
    bool good = error->code == AT_OK && open_work(&work) &&
                at_search_lines(&work, lines, sizes, NULL, NULL, count, give, context);
    close_work(&work);
    return good;
}
