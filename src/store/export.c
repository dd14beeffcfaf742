/* Models as folders of other programs: which format, and whether a model fits it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/export_internal.h"
#include "store/model_file.h"

/* The records of the writers. A new writer is its file and its line here. */
#define FORMAT_RECORDS(X)                                                                                              \
    X(at_writer_ctranslate2)                                                                                           \
    X(at_writer_hf_marian)
#define DECLARE(format) extern const at_export_format format;
#define ADDRESS(format) &format,
FORMAT_RECORDS(DECLARE)
static const at_export_format *const formats[] = {FORMAT_RECORDS(ADDRESS)};
enum { FORMATS = sizeof formats / sizeof *formats };
#define OWN_FORMAT "attend"

bool at_export_refuse(const at_export *x, const char *setting, const char *is, const char *fits)
{
    return at_fail(x->error, AT_UNSUPPORTED, "%s cannot take this model: its `%s` is %s, and only %s fits",
                   x->format->title, setting, is, fits);
}

bool at_export_has_final_norm(const at_model_settings *s)
{
    return s->final_norm == AT_FINAL_TRUE || (s->final_norm == AT_FINAL_AUTO && s->norm == AT_PRE_NORM);
}

/* Scaled products and softmax over all keys, in the decoder over those before. */
static bool attention_fits(const at_export *x, at_attention_kind kind)
{
    char text[AT_AXES][32], heads[32];
    at_settings names;
    if (!at_multihead_names(x->translator->model, kind, &names, text, x->error))
        return false;
    const bool causal = kind == AT_DECODER_ATTENTION && strcmp(names.window, "causal") == 0;
    snprintf(heads, sizeof heads, "%d", names.heads);
    if (strcmp(names.score, "scaled") != 0)
        return at_export_refuse(x, "score", names.score, "scaled");
    if (strcmp(names.normaliser, "softmax") != 0)
        return at_export_refuse(x, "normaliser", names.normaliser, "softmax");
    if (strcmp(names.window, "global") != 0 && !causal)
        return at_export_refuse(x, "window", names.window, "global");
    if (kind == AT_CROSS_ATTENTION && strcmp(names.position, "none") != 0)
        return at_export_refuse(x, "cross-attention", names.position, "none");
    if (names.kv_heads != names.heads) {
        char kv_heads[32];
        snprintf(kv_heads, sizeof kv_heads, "%d", names.kv_heads);
        return at_export_refuse(x, "kv-heads", kv_heads, heads);
    }
    return true;
}

bool at_export_position(const at_export *x, char position[32])
{
    char text[2][AT_AXES][32];
    at_settings names[2];
    for (int i = 0; i < 2; i++)
        if (!at_multihead_names(x->translator->model, i ? AT_DECODER_ATTENTION : AT_ENCODER_ATTENTION, &names[i],
                                text[i], x->error))
            return false;
    if (strcmp(names[0].position, names[1].position) != 0)
        return at_export_refuse(x, "decoder-attention", names[1].position, "the encoder's position");
    snprintf(position, 32, "%s", names[0].position);
    return true;
}

/* Lines have to be cleaned before they are cut, which no format says. */
static bool text_fits(const at_export *x, const at_vocabulary *vocabulary)
{
    char *json = at_vocabulary_to_json(vocabulary, x->error);
    json_t *about = json ? at_json_read(json, strlen(json), "a vocabulary", x->error) : NULL;
    const char *normalise = json_string_value(json_object_get(about, "normalise")),
               *tokenise = json_string_value(json_object_get(about, "tokenise"));
    bool fits = about;
    if (fits && normalise)
        fits = at_export_refuse(x, "normalise", normalise, "none");
    else if (fits && tokenise)
        fits = at_export_refuse(x, "tokenise", tokenise, "none");
    else if (fits && json_is_true(json_object_get(about, "lowercase")))
        fits = at_export_refuse(x, "lowercase", "true", "false");
    json_decref(about);
    free(json);
    return fits;
}

static bool fits(const at_export *x)
{
    if (strcmp(x->settings->model, "transformer") != 0)
        return at_export_refuse(x, "model", x->settings->model, "transformer");
    return attention_fits(x, AT_ENCODER_ATTENTION) && attention_fits(x, AT_DECODER_ATTENTION) &&
           attention_fits(x, AT_CROSS_ATTENTION) && text_fits(x, x->translator->source) &&
           text_fits(x, x->translator->target) && x->format->fits(x);
}

static const at_export_format *find_format(const char *name, at_error *error)
{
    const char *names[FORMATS + 1] = {OWN_FORMAT};
    for (int i = 0; i < FORMATS; i++) {
        names[i + 1] = formats[i]->name;
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    }
    at_unknown("format", name, names, FORMATS + 1, error);
    return NULL;
}

bool at_translator_export(const at_translator *translator, const char *format, const char *path, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    if (translator->more_count > 0)
        return at_fail(error, AT_UNSUPPORTED, "an ensemble is several models and cannot be written as one");
    if (strcmp(format, OWN_FORMAT) == 0)
        return at_translator_save(translator, path, false, error);
    at_export x = {.translator = translator,
                   .settings = &translator->model->settings,
                   .params = translator->model->params,
                   .format = find_format(format, error),
                   .error = error};
    if (!x.format || !fits(&x) || !at_params_finite(x.params, path, error))
        return false;
    bool done = at_export_words_make(&x) && (x.folder = at_folder_open(path, error));
    if (done) {
        x.format->write(&x);
        done = at_folder_commit(x.folder, error);
    }
    at_export_words_free(&x);
    return done;
}
