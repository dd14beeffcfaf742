/* The description of a model, for people and as JSON: settings, sizes, history, how it was trained. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "models/kinds.h"
#include "store/translator.h"

/* "name  value", the values aligned. */
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

/* The number type of the matrices: "int8"; "mixed" if they have several. */
static const char *weights_name(const at_params *params)
{
    int type = -1;
    for (int i = 0; i < at_params_number(params); i++) {
        const int own = at_params_is_matrix(params, i) ? (int)at_params_type(params, i) : type;
        if (type >= 0 && own != type)
            return "mixed";
        type = own;
    }
    return at_number_name(type < 0 ? AT_NUMBERS_REAL : (at_number_type)type);
}

static void add_vocabulary(at_buffer *text, const char *side, const at_vocabulary *vocabulary)
{
    char kind[80], value[160];
    at_vocabulary_describe(vocabulary, kind, sizeof kind);
    snprintf(value, sizeof value, "%s, %lld units and %d specials", kind,
             (long long)at_vocabulary_size(vocabulary) - AT_SPECIALS, AT_SPECIALS);
    add_line(text, side, value);
}

/* One line for each entry: its names and values, separated by blanks. A history that is not JSON is left out. */
static void add_history(at_buffer *text, const char *history)
{
    at_error unread = {0};
    json_t *entries = history ? at_json_read(history, strlen(history), "the history", &unread) : NULL, *entry, *value;
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
    text->failed |= unread.code == AT_MEMORY;
}

/* How it was trained: the files, the pairs and the update. */
static void add_training(at_buffer *text, const char *training)
{
    at_error unread = {0};
    json_t *record = training ? at_json_read(training, strlen(training), "the record", &unread) : NULL;
    const json_t *settings = json_object_get(record, "settings");
    const json_t *data = json_object_get(json_object_get(record, "data"), "training");
    static const char *const names[] = {"source", "target", "tsv"};
    if (record)
        at_buffer_print(text, "%-16s", "trained on");
    for (int i = 0; i < 3; i++)
        if (json_is_string(json_object_get(settings, names[i])))
            at_buffer_print(text, " %s,", json_string_value(json_object_get(settings, names[i])));
    if (record)
        at_buffer_print(text, " %lld pairs; update %lld\n",
                        (long long)json_integer_value(json_object_get(data, "used")),
                        (long long)json_integer_value(json_object_get(record, "update")));
    json_decref(record);
    text->failed |= unread.code == AT_MEMORY;
}

char *at_translator_info(const at_translator *translator, at_error *error)
{
    at_buffer text = {0};
    at_params *params = translator->model->params;
    char value[80];
    if (error->code != AT_OK)
        return NULL;
    if (translator->origin)
        add_line(&text, "read from", translator->origin);
    add_settings(&text, translator->model);
    const bool alone = !translator->model->kind->has_source;
    if (translator->source)
        add_vocabulary(&text, "source", translator->source);
    else if (!alone)
        add_line(&text, "source", "pictures");
    add_vocabulary(&text, alone ? "vocabulary" : "target", translator->target);
    snprintf(value, sizeof value, "%lld units", (long long)translator->max_length);
    if (translator->max_length > 0) /* other programs do not store it */
        add_line(&text, !translator->source ? "longest line" : "longest source", value);
    snprintf(value, sizeof value, "%lld in %d arrays, %.1f MB", (long long)at_params_count(params),
             at_params_number(params), (double)at_params_bytes(params) / 1e6);
    add_line(&text, "parameters", value);
    if (strcmp(weights_name(params), at_number_name(AT_NUMBERS_REAL)) != 0)
        add_line(&text, "weights", weights_name(params));
    if (translator->calibrated) {
        snprintf(value, sizeof value, "1 / (1 + exp(-(%.4f + %.4f x)))", translator->confidence[0],
                 translator->confidence[1]);
        add_line(&text, "confidence", value);
    }
    add_training(&text, translator->training);
    add_history(&text, translator->history);
    if (text.failed) {
        at_buffer_free(&text);
        at_no_memory(error, "the description of a model");
        return NULL;
    }
    return text.bytes;
}

/* ---- As JSON -------------------------------------------------------------------------------------------------- */

static json_t *vocabulary_json(const at_vocabulary *vocabulary)
{
    char kind[80];
    if (!vocabulary)
        return json_null();
    at_vocabulary_describe(vocabulary, kind, sizeof kind);
    return json_pack("{ss sI}", "kind", kind, "units", (json_int_t)at_vocabulary_size(vocabulary) - AT_SPECIALS);
}

static json_t *settings_json(const at_model *model)
{
    json_t *object = json_object();
    for (int i = 0; object && at_model_setting(i); i++) {
        const at_setting *row = at_model_setting(i);
        if (at_model_says(&model->settings, model->kind, row) &&
            json_object_set_new(object, row->name, at_setting_to_json(row, &model->settings)) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

/* What is stored as JSON; null if there is none, or if it cannot be read. */
static json_t *stored_json(const char *text, bool *no_memory)
{
    at_error unread = {0};
    json_t *value = text ? at_json_read(text, strlen(text), "a record", &unread) : NULL;
    *no_memory |= unread.code == AT_MEMORY;
    return value ? value : json_null();
}

char *at_translator_info_json(const at_translator *translator, at_error *error)
{
    const at_params *params = translator->model->params;
    bool no_memory = false;
    if (error->code != AT_OK)
        return NULL;
    json_t *history = stored_json(translator->history, &no_memory);
    json_t *training = stored_json(translator->training, &no_memory);
    json_t *all = json_pack("{ss* so so so sI sI ss si so so}", "origin", translator->origin, "settings",
                            settings_json(translator->model), "source", vocabulary_json(translator->source), "target",
                            vocabulary_json(translator->target), "longest_line", (json_int_t)translator->max_length,
                            "parameters", (json_int_t)at_params_count(params), "weights", weights_name(params),
                            "arrays", at_params_number(params), "training", training, "history", history);
    char *text =
        all && !no_memory ? at_json_text(all, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(all);
    if (!text)
        at_no_memory(error, "the description of a model");
    return text;
}
