/* The public face of search: attend.h's functions, with their settings completed and checked against the model. */
#include "attend_unstable.h"
#include "models/kinds.h"
#include "search/search.h"

/* Settings that lines in parts exclude: what is said about units holds for one search, not for the line. */
static bool parts_fit(const at_model_kind *kind, const at_search_settings *settings, at_error *error)
{
    const char *excluded = settings->temperature > 0 ? "sampling"
                           : settings->prefix        ? "a prefix"
                           : settings->wants_weights ? "weights"
                           : settings->wants_links   ? "links"
                                                     : NULL;
    if (!kind->has_source || kind->has_pictures)
        return at_fail(error, AT_USAGE,
                       "model '%s' does not translate text, so there are no sentences and no placeholders", kind->name);
    return !excluded ||
           at_fail(error, AT_USAGE, "lines that are split into sentences, or whose placeholders are kept, exclude %s",
                   excluded);
}

/* Settings that a language model, or one that reads pictures, has no use for. */
static bool settings_fit(const at_translator *translator, const at_search_settings *settings, at_error *error)
{
    const at_model_kind *kind = translator->model->kind;
    if (error->code == AT_OK && settings->prefix && !kind->has_source)
        return at_fail(error, AT_USAGE,
                       "model '%s' is a language model: it continues its lines anyway, so there is no prefix",
                       kind->name);
    if (error->code == AT_OK && settings->min_length_factor > 0 && !kind->has_source)
        return at_fail(error, AT_USAGE,
                       "model '%s' is a language model: it has no source that the least length could be a multiple of",
                       kind->name);
    if (error->code == AT_OK && settings->glossary && (!kind->has_source || kind->has_pictures))
        return at_fail(error, AT_USAGE,
                       "model '%s' does not translate text, so there are no terms of a glossary to find", kind->name);
    if (error->code == AT_OK && (settings->split || settings->placeholders))
        return parts_fit(kind, settings, error);
    return error->code == AT_OK;
}

/* Lines from an array or from a stream: `job` has all but its settings. */
bool at_translate_job(at_search_job job, const at_search_settings *settings, at_error *error)
{
    at_search_settings complete = *settings;
    job.settings = &complete;
    if (settings_fit(job.translator, settings, error))
        at_search_complete(&complete, error);
    return at_search_shared(&job, settings->split || settings->placeholders ? at_search_passages : at_search, error);
}

bool at_translate(at_translator *translator, const at_search_settings *settings, const at_line *lines, int64_t count,
                  at_on_result *on_result, void *context, at_error *error)
{
    const at_search_job job = {
        .translator = translator, .lines = lines, .count = count, .on_result = on_result, .context = context};
    return at_translate_job(job, settings, error);
}

/* Either of lines from an array, or of a stream. */
static bool branch(at_search_job job, const at_search_settings *settings, at_error *error)
{
    job.branches = true;
    if (error->code == AT_OK && settings->temperature > 0)
        return at_fail(error, AT_USAGE, "alternatives are searched for, not sampled: there is no temperature");
    if (error->code == AT_OK && (settings->glossary || settings->split || settings->placeholders))
        return at_fail(
            error, AT_USAGE,
            "alternatives go on greedily, one whole line each: without a glossary, sentences and placeholders");
    return at_translate_job(job, settings, error);
}

bool at_alternatives(at_translator *translator, const at_search_settings *settings, const at_line *lines, int64_t count,
                     at_on_result *on_result, void *context, at_error *error)
{
    const at_search_job job = {
        .translator = translator, .lines = lines, .count = count, .on_result = on_result, .context = context};
    return branch(job, settings, error);
}

bool at_alternatives_stream(at_translator *translator, const at_search_settings *settings, at_next_line *next_line,
                            at_on_result *on_result, void *context, at_error *error)
{
    const at_search_job job = {
        .translator = translator, .next_line = next_line, .on_result = on_result, .context = context};
    return branch(job, settings, error);
}

int64_t at_alternatives_from(const at_result *result)
{
    const at_hypothesis *a = &result->best[0], *b = &result->best[result->count - 1];
    int64_t at = 0;
    while (at < a->count && at < b->count && a->ids[at] == b->ids[at])
        at++;
    return at;
}

bool at_translate_stream(at_translator *translator, const at_search_settings *settings, at_next_line *next_line,
                         at_on_result *on_result, void *context, at_error *error)
{
    const at_search_job job = {
        .translator = translator, .next_line = next_line, .on_result = on_result, .context = context};
    return at_translate_job(job, settings, error);
}

bool at_align(at_translator *translator, const at_search_settings *settings, const at_line *sources,
              const at_line *targets, int64_t count, at_on_result *on_result, void *context, at_error *error)
{
    const bool has_source = translator->model->kind->has_source;
    if (error->code == AT_OK && count > 0 && has_source == !sources)
        at_fail(error, AT_USAGE,
                !has_source ? "model '%s' is a language model: it takes no sources beside the text"
                            : "model '%s' translates: it needs the sources beside the targets",
                translator->model->kind->name);
    at_search_settings complete = {.first_line = settings->first_line,
                                   .batch = settings->batch,
                                   .wants_weights = settings->wants_weights,
                                   .wants_links = true,
                                   .layer = settings->layer,
                                   .head = settings->head,
                                   .max_source = settings->max_source,
                                   .on_long = settings->on_long,
                                   .stop = settings->stop,
                                   .align_shift = settings->align_shift};
    const at_search_job job = {.translator = translator,
                               .settings = &complete,
                               .lines = sources,
                               .targets = targets,
                               .count = count,
                               .on_result = on_result,
                               .context = context};
    if (error->code == AT_OK)
        at_search_complete(&complete, error);
    return at_search_shared(&job, at_forced, error);
}

bool at_encode(at_translator *translator, const at_search_settings *settings, const at_line *lines, int64_t count,
               at_on_result *on_result, void *context, at_error *error)
{
    at_search_settings complete = {.first_line = settings->first_line,
                                   .batch = settings->batch,
                                   .max_source = settings->max_source,
                                   .on_long = settings->on_long,
                                   .stop = settings->stop};
    if (error->code == AT_OK && !translator->model->kind->has_source)
        at_fail(error, AT_USAGE, "model '%s' is a language model: it has no encoder", translator->model->kind->name);
    const at_search_job job = {.translator = translator,
                               .settings = &complete,
                               .lines = lines,
                               .count = count,
                               .on_result = on_result,
                               .context = context};
    if (error->code == AT_OK)
        at_search_complete(&complete, error);
    return at_search_shared(&job, at_encode_lines, error);
}
