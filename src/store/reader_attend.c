/* attend's own model files: tensors by name, and as metadata
 *   format "pt", attend.kind "model", attend.version "1", attend.checksum "xxh3-64:...",
 *   settings {"model":"bahdanau","hidden":512,...},
 *   max-length "100", source.vocabulary and target.vocabulary {"kind":...}, history [...],
 *   training {"attend":"0.1.0","settings":{...},"data":{...},"epoch":2,"update":60}, confidence "1.5 2.25" if calibrated.
 * Matrices may have fewer bits (model_file.c). The SentencePiece model of a side is a tensor of bytes, vocabulary.source or
 * vocabulary.target. */
#include "store/readers_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "io/parse.h"
#include "models/kinds.h"
#include "store/model_file.h"
#include "store/replace_file.h"

enum { MOST_HEADER = 100000000 }; /* bytes that safetensors allows */
#define SUBWORDS        "vocabulary."
#define SOURCE_SUBWORDS SUBWORDS "source"
#define TARGET_SUBWORDS SUBWORDS "target"

/* ---- Settings ------------------------------------------------------------------------------------------------- */

/* The settings that the model uses, as one JSON object. Release with free. */
static char *settings_to_json(const at_model_settings *settings, const at_model_kind *kind, at_error *error)
{
    json_t *object = json_object();
    bool whole = object;
    for (int i = 0; whole && at_model_setting(i); i++) {
        const at_setting *row = at_model_setting(i);
        if (at_model_says(settings, kind, row))
            whole = json_object_set_new(object, row->name, at_setting_to_json(row, settings)) == 0;
    }
    char *text = whole ? at_json_text(object, JSON_COMPACT) : NULL;
    json_decref(object);
    if (!text)
        at_no_memory(error, "the settings of a model");
    return text;
}

/* A value of the JSON as the text that a user would type; NULL if it is neither a name nor a number. */
static const char *json_to_text(const json_t *value, char number[32])
{
    snprintf(number, 32, "%lld", (long long)json_integer_value(value));
    return json_is_string(value)    ? json_string_value(value)
           : json_is_integer(value) ? number
           : json_is_true(value)    ? "true"
           : json_is_false(value)   ? "false"
                                    : NULL;
}

static bool settings_from_json(const char *text, at_model_settings *settings, at_error *error)
{
    json_t *object = at_json_read(text, strlen(text), "their text", error), *value;
    const char *name;
    at_given given = {0};
    if (!json_is_object(object))
        at_fail(error, AT_FORMAT, "they are not a JSON object");
    json_object_foreach(object, name, value)
    {
        char number[32], shown[AT_SHOWN];
        const char *word = json_to_text(value, number);
        if (word)
            at_model_set(settings, &given, name, word, error);
        else
            at_fail(error, AT_FORMAT, "'%s' is neither a name nor a number", at_shown(name, shown, sizeof shown));
    }
    json_decref(object);
    return error->code == AT_OK && at_model_settings_complete(settings, &given, error);
}

/* ---- Writing -------------------------------------------------------------------------------------------------- */

/* Stores an allocated text, and frees it. */
static bool store_text(at_tensors *file, const char *key, char *text, at_error *error)
{
    bool done = text && at_tensors_set_meta(file, key, text, error);
    free(text);
    return done;
}

static bool store_vocabulary(const at_vocabulary *vocabulary, at_tensors *file, const char *key, const char *name,
                             at_error *error)
{
    size_t size;
    if (!vocabulary)
        return true;
    if (!store_text(file, key, at_vocabulary_to_json(vocabulary, error), error))
        return false;
    const unsigned char *bytes = at_vocabulary_subwords(vocabulary, &size);
    at_array array = {.dtype = AT_U8, .rank = 1, .dim = {(int64_t)size}, .data = (void *)bytes};
    return !bytes || at_tensors_put(file, name, &array, error);
}

bool at_translator_save(const at_translator *translator, const char *path, bool keep_previous, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    const at_model *model = translator->model;
    at_tensors *file = at_tensors_new();
    if (!file)
        return at_no_memory(error, "the model '%s'", path);
    char length[32], confidence[64];
    snprintf(length, sizeof length, "%lld", (long long)translator->max_length);
    snprintf(confidence, sizeof confidence, "%.17g %.17g", translator->confidence[0], translator->confidence[1]);
    bool done = at_params_finite(model->params, path, error) && at_file_mark(file, "model", error) &&
                store_text(file, "settings", settings_to_json(&model->settings, model->kind, error), error) &&
                at_tensors_set_meta(file, "max-length", length, error) &&
                store_vocabulary(translator->source, file, "source.vocabulary", SOURCE_SUBWORDS, error) &&
                store_vocabulary(translator->target, file, "target.vocabulary", TARGET_SUBWORDS, error) &&
                (!translator->calibrated || at_tensors_set_meta(file, "confidence", confidence, error)) &&
                (!translator->never_empty || at_tensors_set_meta(file, "never-empty", "true", error)) &&
                (!translator->origin || at_tensors_set_meta(file, "origin", translator->origin, error)) &&
                (!translator->history || at_tensors_set_meta(file, "history", translator->history, error)) &&
                (!translator->training || at_tensors_set_meta(file, "training", translator->training, error)) &&
                at_params_put(model->params, file, error) && at_file_replace(file, path, keep_previous, error);
    at_tensors_free(file);
    return done;
}

/* ---- Reading -------------------------------------------------------------------------------------------------- */

/* Whether the text is among the next `length` bytes of the file. */
static bool find_text(FILE *file, const char *text, uint64_t length)
{
    char part[4096];
    const size_t overlap = strlen(text) - 1;
    for (size_t kept = 0; length > 0;) {
        const size_t room = sizeof part - kept, want = length < room ? (size_t)length : room;
        const size_t got = fread(part + kept, 1, want, file), have = kept + got;
        if (memmem(part, have, text, overlap + 1))
            return true;
        if (got < want)
            return false;
        length -= got;
        kept = have < overlap ? have : overlap; /* the text may begin there */
        memmove(part, part + have - kept, kept);
    }
    return false;
}

/* A safetensors file is 8 bytes of header length, then the header; ours names attend.kind in it. */
static bool knows(const char *path, at_error *error)
{
    unsigned char start[9] = {0};
    uint64_t length = 0;
    FILE *file = fopen(path, "rb");
    bool ours = file && fread(start, 1, sizeof start, file) == sizeof start && start[8] == '{';
    for (int i = 0; i < 8; i++)
        length |= (uint64_t)start[i] << 8 * i;
    ours = ours && length > 0 && length <= MOST_HEADER && find_text(file, "\"attend.kind\"", length - 1);
    if (!file || ferror(file))
        at_file_fail(error, "read", path, errno);
    if (file)
        fclose(file);
    return ours;
}

/* The bytes of a vocabulary's subword model; a vocabulary without one must have none. */
static bool take_subwords(at_vocabulary *vocabulary, const at_tensors *file, const char *name, at_error *error)
{
    const at_array *array = at_tensors_get(file, name);
    if (!at_vocabulary_needs_subwords(vocabulary))
        return !array || at_fail(error, AT_FORMAT, "it has no subword model, but the file has '%s'", name);
    if (!array || array->dtype != AT_U8 || array->rank != 1)
        return at_fail(error, AT_FORMAT, "its subword model should be the bytes '%s', which are missing", name);
    return at_vocabulary_take_subwords(vocabulary, array->data, (size_t)array->dim[0], error);
}

static at_vocabulary *load_vocabulary(const at_tensors *file, const char *key, const char *name, const char *path,
                                      at_error *error)
{
    const char *text = at_tensors_meta(file, key);
    if (!text) {
        at_fail(error, AT_FORMAT, "'%s' lacks '%s' in its metadata", path, key);
        return NULL;
    }
    at_error inner = {0};
    at_vocabulary *vocabulary = at_vocabulary_from_json(text, &inner);
    if (vocabulary && take_subwords(vocabulary, file, name, &inner))
        return vocabulary;
    at_fail(error, inner.code, "'%s' of '%s' cannot be used: %s", key, path, inner.text);
    at_vocabulary_free(vocabulary);
    return NULL;
}

/* False if out of memory. */
static bool copy_text(const char *text, char **copy)
{
    *copy = text ? strdup(text) : NULL;
    return !text || *copy;
}

/* Two finite numbers with a blank between, or nothing. */
static bool read_confidence(at_translator *t, const char *text)
{
    char *middle, *end;
    if (!text)
        return true;
    t->confidence[0] = strtod(text, &middle);
    t->confidence[1] = strtod(middle, &end);
    t->calibrated = middle > text && end > middle && !*end && isfinite(t->confidence[0]) && isfinite(t->confidence[1]);
    return t->calibrated;
}

static bool load_parts(at_translator *t, const at_tensors *file, const char *path, at_error *error)
{
    const char *settings_text = at_tensors_meta(file, "settings"), *length = at_tensors_meta(file, "max-length");
    char *end = "?";
    at_model_settings settings = {0};
    t->max_length = length ? strtoll(length, &end, 10) : 0;
    if (!settings_text || *end || t->max_length < 0)
        return at_fail(error, AT_FORMAT, "'%s' lacks 'settings' or 'max-length' in its metadata", path);
    at_error inner = {0};
    if (!settings_from_json(settings_text, &settings, &inner))
        return at_fail(error, inner.code == AT_MEMORY ? AT_MEMORY : AT_FORMAT,
                       "the settings of '%s' cannot be used: %s", path, inner.text);
    const at_model_kind *kind = at_model_kind_find(settings.model, &inner);
    const bool has_text = kind->has_source && !kind->has_pictures;
    if (has_text)
        t->source = load_vocabulary(file, "source.vocabulary", SOURCE_SUBWORDS, path, error);
    if (!has_text || t->source)
        t->target = load_vocabulary(file, "target.vocabulary", TARGET_SUBWORDS, path, error);
    if (!t->target)
        return false;
    settings.source_size = t->source ? at_vocabulary_size(t->source) : 0;
    settings.target_size = at_vocabulary_size(t->target);
    t->model = at_model_declare(&settings, &inner); /* memory only once the parameters are there */
    if (!t->model)
        return at_fail(error, inner.code == AT_MEMORY ? AT_MEMORY : AT_FORMAT,
                       "the model in '%s' cannot be created: %s", path, inner.text);
    if (!read_confidence(t, at_tensors_meta(file, "confidence")))
        return at_fail(error, AT_FORMAT, "'confidence' in the metadata of '%s' should be two numbers", path);
    t->never_empty = at_tensors_meta(file, "never-empty");
    if (!copy_text(at_tensors_meta(file, "history"), &t->history) ||
        !copy_text(at_tensors_meta(file, "training"), &t->training) ||
        !copy_text(at_tensors_meta(file, "origin"), &t->origin))
        return at_no_memory(error, "the history of '%s'", path);
    return at_params_take(t->model->params, file, path, SUBWORDS, error);
}

/* `name` is for error messages. Releases the tensors. */
static bool load_tensors(at_translator *translator, at_tensors *file, const char *name, at_error *error)
{
    const bool done = file && at_file_check(file, "model", name, error) && load_parts(translator, file, name, error);
    at_tensors_free(file);
    return done;
}

static bool load(at_translator *translator, const char *path, at_error *error)
{
    return load_tensors(translator, at_tensors_read(path, error), path, error);
}

at_translator *at_translator_load_memory(const void *bytes, size_t size, at_error *error)
{
    static const char name[] = "the model in memory";
    if (error->code != AT_OK)
        return NULL;
    at_translator *translator = calloc(1, sizeof *translator);
    if (!translator)
        at_no_memory(error, name);
    if (translator && load_tensors(translator, at_tensors_parse(bytes, size, name, error), name, error))
        return translator;
    at_translator_free(translator);
    return NULL;
}

const at_reader at_reader_attend = {.name = "attend", .formats = "of attend train", .knows = knows, .load = load};
