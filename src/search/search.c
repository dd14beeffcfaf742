/* Settings and memory, which search, forced decoding and encoding share. */
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
    if (!(settings->normalise >= 0) || settings->normalise > 100)
        return at_fail(error, AT_USAGE, "the exponent of the length is a number from 0 to 100, not %g",
                       settings->normalise);
    if (settings->normalise > 0 && settings->length_penalty != 0)
        return at_fail(error, AT_USAGE, "a length penalty and an exponent of the length exclude each other");
    if (!(settings->max_length_factor >= 0) || settings->max_length_factor > 1000)
        return at_fail(error, AT_USAGE, "the factor of the longest output is a number from 0 to 1000, not %g",
                       settings->max_length_factor);
    if (!(settings->min_length_factor >= 0) || settings->min_length_factor > 1000)
        return at_fail(error, AT_USAGE, "the factor of the shortest output is a number from 0 to 1000, not %g",
                       settings->min_length_factor);
    if (settings->max_length < 0)
        return at_fail(error, AT_USAGE, "the longest output is a number of units, 1 or more, not %lld",
                       (long long)settings->max_length);
    if (settings->max_source < 0)
        return at_fail(error, AT_USAGE, "the longest source is a number of units, 1 or more, not %lld",
                       (long long)settings->max_source);
    if (settings->top_k < 0 || !(settings->top_p >= 0) || settings->top_p > 1)
        return at_fail(error, AT_USAGE, "top-k is a count, 1 or more, and top-p a number above 0 and at most 1");
    if ((settings->top_k > 0 || settings->top_p > 0) && settings->temperature == 0)
        return at_fail(error, AT_USAGE,
                       "top-k and top-p choose what is sampled from, and without a temperature nothing is sampled");
    if (settings->no_repeat < 0)
        return at_fail(error, AT_USAGE, "the units in a row that do not repeat are a count, 1 or more, not %lld",
                       (long long)settings->no_repeat);
    if (!(settings->coverage_penalty >= 0) || isinf(settings->coverage_penalty))
        return at_fail(error, AT_USAGE, "the coverage penalty is a number, 0 or more, not %g",
                       settings->coverage_penalty);
    if (settings->glossary && settings->temperature > 0)
        return at_fail(error, AT_USAGE, "a glossary is for search: samples cannot be made to have its terms");
    settings->beam = settings->beam ? settings->beam : 1;
    settings->n_best = settings->n_best ? settings->n_best : 1;
    settings->batch = settings->batch ? settings->batch : 64;
    settings->max_length_factor = settings->max_length_factor > 0 ? settings->max_length_factor : 2;
    if (settings->temperature == 0 && settings->n_best > settings->beam)
        return at_fail(error, AT_USAGE, "a beam of %lld cannot return the %lld best; ask for fewer, or widen the beam",
                       (long long)settings->beam, (long long)settings->n_best);
    return true;
}

/* A layer and a head that the model has, both counted from 1. */
static bool head_fits(const at_model *model, const at_search_settings *settings, at_error *error)
{
    int layers = 0, heads = 0;
    if (settings->layer == 0 && settings->head == 0)
        return true;
    if (!at_model_heads(model, &layers, &heads))
        return at_fail(error, AT_UNSUPPORTED, "model '%s' does not attend to a source, so it has no head %d.%d",
                       model->kind->name, settings->layer, settings->head);
    if (settings->layer < 0 || settings->layer > layers || settings->head < 0 || settings->head > heads)
        return at_fail(error, AT_UNSUPPORTED, "there is no head %d.%d: the model has %d layer%s of %d head%s",
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
    work->members = calloc((size_t)work->translator->more_count + 1, sizeof *work->members);
    bool whole = work->window && work->batch && work->steps && work->members;
    for (; whole && work->member_count <= work->translator->more_count; work->member_count++) {
        at_member *member = &work->members[work->member_count];
        member->model = work->member_count ? work->translator->more[work->member_count - 1] : work->translator->model;
        member->encoded = at_saved_new();
        member->state = at_saved_new();
        member->cache = at_cache_new();
        whole = member->encoded && member->state && member->cache;
    }
    if (whole && work->translator->model->kind->has_pictures)
        return (work->pictures = at_picture_source_new(&work->translator->model->settings, work->error));
    return whole || at_search_no_memory(work);
}

static void close_work(at_search_work *work)
{
    at_nodes_free(work->nodes);
    at_picture_source_free(work->pictures);
    for (int m = 0; m < work->member_count; m++) {
        at_cache_free(work->members[m].cache);
        at_saved_free(work->members[m].state);
        at_saved_free(work->members[m].encoded);
    }
    free(work->members);
    at_arena_free(work->steps);
    at_arena_free(work->batch);
    at_arena_free(work->window);
    at_buffer_free(&work->text);
}

struct at_search_memory {
    at_search_work work;
};

void at_search_memory_free(at_search_memory *memory)
{
    if (memory)
        close_work(&memory->work);
    free(memory);
}

/* Runs the job, each batch by `run_batch`, in windows of at most `window_bytes` of text unless one line has more. */
static bool run_job(const at_search_job *job, at_search_batch *run_batch, size_t window_bytes, at_error *error)
{
    if (error->code != AT_OK || !heads_fit(job->translator, job->settings, error))
        return false;
    at_search_memory *memory = job->memory ? *job->memory : NULL;
    const bool opened = memory;
    if (!opened && !(memory = calloc(1, sizeof *memory)))
        return at_no_memory(error, "a search");
    at_search_work *work = &memory->work;
    work->job = job;
    work->translator = job->translator;
    work->settings = job->settings;
    work->error = error;
    work->has_source = job->translator->model->kind->has_source;
    work->run_batch = run_batch;
    work->window_bytes = window_bytes;
    work->without_weights = NULL;
    const bool good = (opened || open_work(work)) && at_search_lines(work), keeps = good && job->memory;
    if (job->memory)
        *job->memory = keeps ? memory : NULL;
    if (!keeps)
        at_search_memory_free(memory);
    return good;
}

bool at_search(const at_search_job *job, at_error *error)
{
    return run_job(job, at_search_beam, AT_TEXT_WINDOW, error);
}

bool at_forced(const at_search_job *job, at_error *error)
{
    return run_job(job, at_forced_batch, AT_TEXT_WINDOW, error);
}

bool at_encode_lines(const at_search_job *job, at_error *error)
{
    return run_job(job, at_encode_batch, AT_FEATURE_WINDOW, error);
}
