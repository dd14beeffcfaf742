/* The public face of trained models: attend.h's functions over search and forced decoding, and what a model says about
 * itself. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/kinds.h"
#include "search/search.h"

/* What keeps the two from speaking together, as the end of "it has another ..."; NULL: nothing. */
static const char *difference(const at_translator *a, const at_translator *b, at_error *error)
{
    if (!at_vocabulary_same(a->source, b->source, error))
        return "source vocabulary";
    if (!at_vocabulary_same(a->target, b->target, error))
        return a->source ? "target vocabulary" : "vocabulary";
    return NULL;
}

static bool speak_together(const at_translator *a, const at_translator *b, const char *path, at_error *error)
{
    if (a->model->kind->has_source != b->model->kind->has_source)
        return at_fail(error, AT_FAILED, "'%s' is a '%s', which cannot speak together with a '%s': one reads a source",
                       path, b->model->kind->name, a->model->kind->name);
    const char *differs = difference(a, b, error);
    return !differs ||
           at_fail(error, AT_FAILED,
                   "'%s' has another %s than the models before it; those that speak together must share their words: "
                   "train them on the same text with the same vocabulary settings",
                   path, differs);
}

bool at_translator_add(at_translator *translator, const char *path, at_error *error)
{
    at_translator *other = at_translator_load(path, error);
    if (!other || !speak_together(translator, other, path, error)) {
        at_translator_free(other);
        return false;
    }
    at_model **more = realloc(translator->more, (size_t)(translator->more_count + 1) * sizeof *more);
    if (more) {
        translator->more = more;
        translator->more[translator->more_count++] = other->model;
        other->model = NULL; /* it has moved */
    } else {
        at_fail(error, AT_FAILED, "memory is out: there is no room for another model");
    }
    at_translator_free(other);
    return more;
}

bool at_translate(at_translator *translator, const at_search_settings *settings, const char *const *lines,
                  const size_t *sizes, int64_t count, at_give *give, void *context, at_error *error)
{
    at_search_settings complete = *settings;
    if (error->code == AT_OK && settings->prefix && !translator->model->kind->has_source)
        return at_fail(error, AT_USAGE,
                       "model '%s' is a language model: its lines are beginnings already, so a prefix "
                       "has no part in it",
                       translator->model->kind->name);
    if (error->code == AT_OK && settings->min_length_factor > 0 && !translator->model->kind->has_source)
        return at_fail(error, AT_USAGE,
                       "model '%s' is a language model: it has no source whose length could say how short an output "
                       "may be",
                       translator->model->kind->name);
    return error->code == AT_OK && at_search_complete(&complete, error) &&
           at_search(translator, &complete, lines, sizes, count, give, context, error);
}

bool at_align(at_translator *translator, const at_search_settings *settings, const char *const *sources,
              const size_t *source_sizes, const char *const *targets, const size_t *target_sizes, int64_t count,
              at_give *give, void *context, at_error *error)
{
    const bool alone = !translator->model->kind->has_source;
    if (error->code == AT_OK && count > 0 && alone == (sources != NULL))
        return at_fail(error, AT_USAGE,
                       alone ? "model '%s' is a language model: it takes no sources beside the text"
                             : "model '%s' translates: it needs the sources beside the targets",
                       translator->model->kind->name);
    at_search_settings complete = {.first_line = settings->first_line,
                                   .batch = settings->batch,
                                   .wants_weights = settings->wants_weights,
                                   .wants_links = true,
                                   .layer = settings->layer,
                                   .head = settings->head};
    return error->code == AT_OK && at_search_complete(&complete, error) &&
           at_forced(translator, &complete, sources, source_sizes, targets, target_sizes, count, give, context, error);
}

bool at_encode(at_translator *translator, const at_search_settings *settings, const char *const *lines,
               const size_t *sizes, int64_t count, at_give *give, void *context, at_error *error)
{
    at_search_settings complete = {.first_line = settings->first_line, .batch = settings->batch};
    if (error->code == AT_OK && !translator->model->kind->has_source)
        return at_fail(error, AT_USAGE, "model '%s' is a language model: it has no encoder",
                       translator->model->kind->name);
    return error->code == AT_OK && at_search_complete(&complete, error) &&
           at_encode_lines(translator, &complete, lines, sizes, count, give, context, error);
}

bool at_translator_heads(const at_translator *translator, int *layers, int *heads)
{
    return at_model_heads(translator->model, layers, heads);
}

bool at_translator_guided(const at_translator *translator, int *layer, int *head)
{
    return at_model_guided(translator->model, layer, head);
}

bool at_translator_has_source(const at_translator *translator)
{
    return translator->model->kind->has_source;
}

/* ---- What a model says about itself --------------------------------------------------------------------------- */

/* "name  value", the values under each other. */
static void add_line(at_buffer *text, const char *name, const char *value)
{
    at_buffer_print(text, "%-16s %s\n", name, value);
}

static void add_settings(at_buffer *text, const at_model *model)
{
    add_line(text, "model", model->kind->name);
    if (model->kind->paper && *model->kind->paper)
        add_line(text, "paper", model->kind->paper);
    for (int i = 1; at_model_setting(i); i++) { /* the first is the model's name */
        const at_setting *row = at_model_setting(i);
        char value[64];
        if (!at_model_says(&model->settings, model->kind, row))
            continue;
        at_setting_text(row, &model->settings, value, sizeof value);
        add_line(text, row->name, value);
    }
}

static void add_vocabulary(at_buffer *text, const char *side, const at_vocabulary *vocabulary)
{
    char kind[80], value[160];
    at_vocabulary_describe(vocabulary, kind, sizeof kind);
    snprintf(value, sizeof value, "%s, %lld units and %d specials", kind,
             (long long)at_vocabulary_size(vocabulary) - AT_SPECIALS, AT_SPECIALS);
    add_line(text, side, value);
}

/* One line for each entry: its names and values, blanks between. */
static void add_history(at_buffer *text, const char *history)
{
    json_t *entries = history ? json_loads(history, 0, NULL) : NULL, *entry, *value;
    size_t index;
    const char *name;
    if (json_array_size(entries) > 0)
        at_buffer_print(text, "history\n");
    json_array_foreach(entries, index, entry)
    {
        json_object_foreach(entry, name, value)
        {
            if (json_is_integer(value))
                at_buffer_print(text, "  %s %lld", name, (long long)json_integer_value(value));
            else if (json_is_real(value))
                at_buffer_print(text, "  %s %.4f", name, json_real_value(value));
            else if (json_is_string(value))
                at_buffer_print(text, "  %s %s", name, json_string_value(value));
        }
        at_buffer_print(text, "\n");
    }
    json_decref(entries);
}

char *at_translator_info(const at_translator *translator, at_error *error)
{
    at_buffer text = {0};
    at_params *params = translator->model->params;
    char value[80];
    if (error->code != AT_OK)
        return NULL;
    add_settings(&text, translator->model);
    const bool alone = !translator->model->kind->has_source;
    if (!alone)
        add_vocabulary(&text, "source", translator->source);
    add_vocabulary(&text, alone ? "vocabulary" : "target", translator->target);
    snprintf(value, sizeof value, "%lld units", (long long)translator->max_length);
    add_line(&text, alone ? "longest line" : "longest source", value);
    snprintf(value, sizeof value, "%lld in %d arrays, %.1f MB", (long long)at_params_count(params),
             at_params_number(params), (double)at_params_count(params) * sizeof(at_real) / 1e6);
    add_line(&text, "parameters", value);
    add_history(&text, translator->history);
    if (text.failed) {
        at_buffer_free(&text);
        at_fail(error, AT_FAILED, "memory ran out for what is to be said about a model");
        return NULL;
    }
    return text.bytes;
}
