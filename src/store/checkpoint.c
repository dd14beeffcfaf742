/* A model file: tensors by name, and as metadata
 *   format "pt", attend.kind "model", attend.version "1", settings {"model":"bahdanau","hidden":512,...},
 *   max-length "100", source.vocabulary and target.vocabulary {"kind":...}, history [...].
 * The SentencePiece model of a side is a tensor of bytes, vocabulary.source or vocabulary.target. */
#include "store/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/utf8.h"
#include "io/dtype.h"
#include "models/kinds.h"

#define VERSION         "1"
#define SUBWORDS        "vocabulary."
#define SOURCE_SUBWORDS SUBWORDS "source"
#define TARGET_SUBWORDS SUBWORDS "target"
static const at_dtype real_type = sizeof(at_real) == sizeof(double) ? AT_F64 : AT_F32;

/* ---- Marks ---------------------------------------------------------------------------------------------------- */

bool at_file_mark(at_tensors *file, const char *kind, at_error *error)
{
    return at_tensors_set_meta(file, "format", "pt", error) && /* what PyTorch's loaders look for */
           at_tensors_set_meta(file, "attend.kind", kind, error) &&
           at_tensors_set_meta(file, "attend.version", VERSION, error);
}

bool at_file_check(const at_tensors *file, const char *kind, const char *path, at_error *error)
{
    const char *is = at_tensors_meta(file, "attend.kind"), *version = at_tensors_meta(file, "attend.version");
    char shown[AT_SHOWN];
    if (error->code != AT_OK)
        return false;
    if (!is || !version)
        return at_fail(error, AT_FAILED, "'%s' holds arrays but is not a %s: attend train writes those", path, kind);
    if (strcmp(is, kind) != 0)
        return at_fail(error, AT_FAILED, "'%s' is a %s, not a %s", path, at_shown(is, shown, sizeof shown), kind);
    if (strcmp(version, VERSION) != 0)
        return at_fail(error, AT_FAILED,
                       "'%s' is a %s of format %s, and this attend reads format " VERSION
                       "; use the attend that wrote it, or train anew",
                       path, kind, at_shown(version, shown, sizeof shown));
    return true;
}

/* ---- Settings ------------------------------------------------------------------------------------------------- */

/* Counts and switches as such, everything else as text: a number comes back bit for bit. */
static json_t *setting_to_json(const at_model_settings *settings, const at_setting *row)
{
    const void *field = (const char *)settings + row->offset;
    char text[64];
    if (row->type == AT_SETTING_COUNT)
        return json_integer(*(const int64_t *)field);
    if (row->type == AT_SETTING_SWITCH)
        return json_boolean(*(const bool *)field);
    return json_string(at_setting_text(row, settings, text, sizeof text));
}

/* The settings that the model uses, as one JSON object. Release with free. */
static char *settings_to_json(const at_model_settings *settings, const at_model_kind *kind, at_error *error)
{
    json_t *object = json_object();
    bool whole = object != NULL;
    for (int i = 0; whole && at_model_setting(i); i++) {
        const at_setting *row = at_model_setting(i);
        if (at_model_says(settings, kind, row))
            whole = json_object_set_new(object, row->name, setting_to_json(settings, row)) == 0;
    }
    char *text = whole ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    if (!text)
        at_fail(error, AT_FAILED, "memory is out: the settings of a model cannot be written down");
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
    json_error_t trouble;
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &trouble), *value;
    const char *name;
    at_given given = {0};
    if (!json_is_object(object))
        at_fail(error, AT_FAILED, "they are not a JSON object");
    json_object_foreach(object, name, value)
    {
        char number[32], shown[AT_SHOWN];
        const char *word = json_to_text(value, number);
        if (word)
            at_model_set(settings, &given, name, word, error);
        else
            at_fail(error, AT_FAILED, "'%s' is neither a name nor a number", at_shown(name, shown, sizeof shown));
    }
    json_decref(object);
    return error->code == AT_OK && at_model_settings_complete(settings, &given, error);
}

/* ---- Parameters ----------------------------------------------------------------------------------------------- */

bool at_params_put(at_params *params, at_tensors *file, at_error *error)
{
    for (int i = 0; i < at_params_number(params); i++) {
        at_shape shape = at_params_shape(params, i);
        at_array array = {.dtype = real_type, .rank = shape.rank, .data = at_params_value(params, i)};
        memcpy(array.dim, shape.dim, sizeof array.dim);
        if (!at_tensors_put(file, at_params_name(params, i), &array, error))
            return false;
    }
    return true;
}

/* Exactly our parameters: each there with its shape, and nothing else but what begins with the other prefix. */
static bool params_fit(const at_params *params, const at_tensors *file, const char *path, const char *other_prefix,
                       at_error *error)
{
    char shown[AT_SHOWN];
    for (int i = 0; i < at_params_number(params); i++) {
        const char *name = at_params_name(params, i);
        const at_array *array = at_tensors_get(file, name);
        at_shape shape = at_params_shape(params, i);
        char is[AT_SHAPE_TEXT], needs[AT_SHAPE_TEXT];
        if (!array)
            return at_fail(error, AT_FAILED, "'%s' lacks the parameter '%s' that its settings call for", path, name);
        if (array->dtype != real_type)
            return at_fail(error, AT_FAILED, "the parameter '%s' of '%s' is %s, and must be %s", name, path,
                           at_dtype_rows[array->dtype].name, at_dtype_rows[real_type].name);
        if (array->rank != shape.rank || memcmp(array->dim, shape.dim, (size_t)shape.rank * sizeof *shape.dim) != 0)
            return at_fail(error, AT_FAILED,
                           "the parameter '%s' of '%s' is %s, and its settings and vocabularies call for %s", name,
                           path, at_dims_text(array->rank, array->dim, is), at_dims_text(shape.rank, shape.dim, needs));
    }
    for (int i = 0; i < at_tensors_count(file); i++) {
        const char *name = at_tensors_name(file, i);
        bool other = other_prefix && strncmp(name, other_prefix, strlen(other_prefix)) == 0;
        if (!other && at_params_find(params, name) < 0)
            return at_fail(error, AT_FAILED, "'%s' holds '%s', which is no parameter of its model", path,
                           at_shown(name, shown, sizeof shown));
    }
    return true;
}

bool at_params_take(at_params *params, const at_tensors *file, const char *path, const char *other_prefix,
                    at_error *error)
{
    if (error->code != AT_OK || !params_fit(params, file, path, other_prefix, error))
        return false;
    for (int i = 0; i < at_params_number(params); i++) {
        const at_array *array = at_tensors_get(file, at_params_name(params, i));
        memcpy(at_params_value(params, i), array->data, (size_t)at_array_count(array) * sizeof(at_real));
    }
    at_params_changed(params);
    return true;
}

/* ---- Replacing a file ----------------------------------------------------------------------------------------- */

static bool copy_file(const char *from, const char *to, at_error *error)
{
    size_t size;
    unsigned char *bytes = at_file_read(from, &size, error);
    at_writer *writer = bytes ? at_writer_open(to, error) : NULL;
    if (writer) {
        at_writer_add(writer, bytes, size, error);
        at_writer_commit(writer, error);
    }
    free(bytes);
    return error->code == AT_OK;
}

/* A second name for what is there now; it becomes FILE.previous once the new file is whole, so that at every moment
 * both FILE and, after the first replacement, FILE.previous are whole files. Gives false if there is nothing to keep.
 */
static bool hold(const char *path, const char *held, at_error *error)
{
    if (access(path, F_OK) != 0)
        return false;
    unlink(held); /* left over from a run that was killed */
    if (linkat(AT_FDCWD, path, AT_FDCWD, held, AT_SYMLINK_FOLLOW) == 0)
        return true;
    return copy_file(path, held, error); /* a file system without links */
}

/* The names of a file that is replaced: what is held of it until then, and what it is called after. */
typedef struct names {
    at_buffer held, previous;
} names;

static names names_of(const char *path, at_error *error)
{
    names n = {0};
    at_buffer_print(&n.held, "%s.previous.new", path);
    at_buffer_print(&n.previous, "%s.previous", path);
    if (n.held.failed || n.previous.failed)
        at_fail(error, AT_FAILED, "cannot write '%s': memory ran out", path);
    return n;
}

static void names_free(names *n)
{
    at_buffer_free(&n->held);
    at_buffer_free(&n->previous);
}

void at_file_tidy(const char *path)
{
    at_buffer held = {0};
    at_buffer_print(&held, "%s.previous.new", path);
    at_writer_tidy(path);
    if (!held.failed) {
        unlink(held.bytes);
        at_writer_tidy(held.bytes);
    }
    at_buffer_free(&held);
}

bool at_file_replace(const at_tensors *file, const char *path, bool keep_previous, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    if (!keep_previous)
        return at_tensors_write(file, path, error);
    names n = names_of(path, error);
    bool is_held = error->code == AT_OK && hold(path, n.held.bytes, error);
    bool done = error->code == AT_OK && at_tensors_write(file, path, error);
    if (is_held && !done)
        unlink(n.held.bytes);
    if (is_held && done && rename(n.held.bytes, n.previous.bytes) != 0)
        done = at_fail(error, AT_FAILED, "cannot write '%s': %s", n.previous.bytes, strerror(errno));
    names_free(&n);
    return done;
}

bool at_file_go_back(const char *path, at_error *error)
{
    names n = names_of(path, error);
    bool is_held = error->code == AT_OK && hold(path, n.held.bytes, error);
    if (is_held && (rename(n.previous.bytes, path) != 0 || rename(n.held.bytes, n.previous.bytes) != 0))
        at_fail(error, AT_FAILED, "cannot put '%s' in the place of '%s': %s", n.previous.bytes, path, strerror(errno));
    names_free(&n);
    return error->code == AT_OK;
}

/* ---- Models --------------------------------------------------------------------------------------------------- */

/* Puts a text that was made for the purpose, and releases it. */
static bool put_text(at_tensors *file, const char *key, char *text, at_error *error)
{
    bool done = text && at_tensors_set_meta(file, key, text, error);
    free(text);
    return done;
}

static bool put_vocabulary(const at_vocabulary *vocabulary, at_tensors *file, const char *key, const char *name,
                           at_error *error)
{
    size_t size;
    if (!vocabulary)
        return true;
    if (!put_text(file, key, at_vocabulary_to_json(vocabulary, error), error))
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
        return at_fail(error, AT_FAILED, "cannot write '%s': memory ran out", path);
    char length[32];
    snprintf(length, sizeof length, "%lld", (long long)translator->max_length);
    bool done = at_file_mark(file, "model", error) &&
                put_text(file, "settings", settings_to_json(&model->settings, model->kind, error), error) &&
                at_tensors_set_meta(file, "max-length", length, error) &&
                put_vocabulary(translator->source, file, "source.vocabulary", SOURCE_SUBWORDS, error) &&
                put_vocabulary(translator->target, file, "target.vocabulary", TARGET_SUBWORDS, error) &&
                (!translator->history || at_tensors_set_meta(file, "history", translator->history, error)) &&
                at_params_put(model->params, file, error) && at_file_replace(file, path, keep_previous, error);
    at_tensors_free(file);
    return done;
}

/* The bytes of a vocabulary that needs some, and none for one that does not. */
static bool take_subwords(at_vocabulary *vocabulary, const at_tensors *file, const char *name, at_error *error)
{
    const at_array *array = at_tensors_get(file, name);
    if (!at_vocabulary_needs_subwords(vocabulary))
        return !array || at_fail(error, AT_FAILED, "it has no subwords, but the file has '%s'", name);
    if (!array || array->dtype != AT_U8 || array->rank != 1)
        return at_fail(error, AT_FAILED, "its subwords should be the bytes '%s', which are not there", name);
    return at_vocabulary_take_subwords(vocabulary, array->data, (size_t)array->dim[0], error);
}

static at_vocabulary *load_vocabulary(const at_tensors *file, const char *key, const char *name, const char *path,
                                      at_error *error)
{
    const char *text = at_tensors_meta(file, key);
    if (!text) {
        at_fail(error, AT_FAILED, "'%s' lacks '%s' in its metadata", path, key);
        return NULL;
    }
    at_error said = {0};
    at_vocabulary *vocabulary = at_vocabulary_from_json(text, &said);
    if (vocabulary && take_subwords(vocabulary, file, name, &said))
        return vocabulary;
    at_fail(error, AT_FAILED, "'%s' of '%s' cannot be used: %s", key, path, said.text);
    at_vocabulary_free(vocabulary);
    return NULL;
}

static bool load_parts(at_translator *t, const at_tensors *file, const char *path, at_error *error)
{
    const char *settings_text = at_tensors_meta(file, "settings"), *length = at_tensors_meta(file, "max-length");
    const char *history = at_tensors_meta(file, "history");
    char *end = "?";
    at_model_settings settings = {0};
    t->max_length = length ? strtoll(length, &end, 10) : 0;
    if (!settings_text || *end || t->max_length < 0)
        return at_fail(error, AT_FAILED, "'%s' lacks 'settings' or 'max-length' in its metadata", path);
    at_error said = {0};
    if (!settings_from_json(settings_text, &settings, &said))
        return at_fail(error, AT_FAILED, "the settings of '%s' cannot be used: %s", path, said.text);
    const bool has_source = at_model_kind_find(settings.model, &said)->has_source;
    if (has_source)
        t->source = load_vocabulary(file, "source.vocabulary", SOURCE_SUBWORDS, path, error);
    if (!has_source || t->source)
        t->target = load_vocabulary(file, "target.vocabulary", TARGET_SUBWORDS, path, error);
    if (!t->target)
        return false;
    settings.source_size = t->source ? at_vocabulary_size(t->source) : 0;
    settings.target_size = at_vocabulary_size(t->target);
    t->model = at_model_blank(&settings, &said);
    if (!t->model)
        return at_fail(error, said.code == AT_MEMORY ? AT_MEMORY : AT_FORMAT, "the model in '%s' cannot be made: %s",
                       path, said.text);
    t->history = history ? strdup(history) : NULL;
    if (history && !t->history)
        return at_fail(error, AT_FAILED, "cannot read '%s': memory ran out", path);
    return t->model && at_params_take(t->model->params, file, path, SUBWORDS, error);
}

at_translator *at_translator_load(const char *path, at_error *error)
{
    at_tensors *file = at_tensors_read(path, error);
    at_translator *translator = file ? calloc(1, sizeof *translator) : NULL;
    bool done = translator && at_file_check(file, "model", path, error) && load_parts(translator, file, path, error);
    if (file && !translator)
        at_fail(error, AT_FAILED, "cannot read '%s': memory ran out", path);
    at_tensors_free(file);
    if (done)
        return translator;
    at_translator_free(translator);
    return NULL;
}

void at_translator_free(at_translator *translator)
{
    if (!translator)
        return;
    at_model_free(translator->model);
    for (int i = 0; i < translator->more_count; i++)
        at_model_free(translator->more[i]);
    free(translator->more);
    at_vocabulary_free(translator->source);
    at_vocabulary_free(translator->target);
    free(translator->history);
    free(translator);
}
