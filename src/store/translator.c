/* A loaded model, or an ensemble of several. */
#include "store/translator.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "models/kinds.h"
#include "models/pictures.h"
#include "text/corpus.h"

/* The vocabulary that differs; NULL: none. */
static const char *different_vocabulary(const at_translator *a, const at_translator *b, at_error *error)
{
    if (!at_vocabulary_same(a->source, b->source, error))
        return "source vocabulary";
    if (!at_vocabulary_same(a->target, b->target, error))
        return a->source ? "target vocabulary" : "vocabulary";
    return NULL;
}

static bool fit_together(const at_translator *a, const at_translator *b, const char *path, at_error *error)
{
    if (a->model->kind->has_source != b->model->kind->has_source)
        return at_fail(error, AT_UNSUPPORTED,
                       "'%s' is a '%s', which cannot be in an ensemble with a '%s': only one of them reads a source",
                       path, b->model->kind->name, a->model->kind->name);
    if (a->model->kind->has_pictures != b->model->kind->has_pictures)
        return at_fail(error, AT_UNSUPPORTED,
                       "'%s' is a '%s', which cannot be in an ensemble with a '%s': only one of them reads pictures",
                       path, b->model->kind->name, a->model->kind->name);
    if (a->model->kind->has_pictures && !at_pictures_alike(&a->model->settings, &b->model->settings, error))
        return at_fail(error, AT_UNSUPPORTED,
                       "'%s' makes other grids of a picture than the models before it; the models of an ensemble must "
                       "have the same `image-size`, `image-channels`, and strides and pooling of `conv`",
                       path);
    const char *different = different_vocabulary(a, b, error);
    return !different ||
           at_fail(error, AT_UNSUPPORTED,
                   "'%s' has another %s than the models before it; the models of an ensemble must share their "
                   "vocabularies: train them on the same text with the same vocabulary settings",
                   path, different);
}

bool at_translator_add(at_translator *translator, const char *path, at_error *error)
{
    at_translator *other = at_translator_load(path, error);
    if (!other || !fit_together(translator, other, path, error)) {
        at_translator_free(other);
        return false;
    }
    at_model **more = realloc(translator->more, (size_t)(translator->more_count + 1) * sizeof *more);
    if (more) {
        translator->more = more;
        translator->more[translator->more_count++] = other->model;
        other->model = NULL;            /* it has moved */
        translator->calibrated = false; /* that was of the first alone */
    } else {
        at_no_memory(error, "another model of the ensemble");
    }
    at_translator_free(other);
    return more;
}

bool at_translator_convert(at_translator *translator, const char *weights, at_error *error)
{
    const char *names[AT_NUMBER_TYPES];
    int type = -1;
    if (error->code != AT_OK)
        return false;
    for (int i = 0; i < AT_NUMBER_TYPES; i++) {
        names[i] = at_number_name((at_number_type)i);
        if (strcmp(names[i], weights) == 0)
            type = i;
    }
    if (type < 0)
        return at_unknown("number type", weights, names, AT_NUMBER_TYPES, error);
    if (translator->more_count > 0 || translator->model->shares > 0)
        return at_fail(error, AT_UNSUPPORTED, "the weights of a single model can be converted, not those of %s",
                       translator->more_count > 0 ? "an ensemble" : "one that a clone shares");
    return at_params_convert(translator->model->params, (at_number_type)type, error);
}

at_translator *at_translator_clone(const at_translator *translator, at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    at_translator *clone = calloc(1, sizeof *clone);
    at_model **more = calloc((size_t)translator->more_count + 1, sizeof *more);
    char *history = translator->history ? strdup(translator->history) : NULL;
    if (!clone || !more || (translator->history && !history)) {
        free(history);
        free(more);
        free(clone);
        at_no_memory(error, "a clone of a translator");
        return NULL;
    }
    for (int i = 0; i < translator->more_count; i++)
        more[i] = at_model_share(translator->more[i]);
    *clone = (at_translator){.model = at_model_share(translator->model),
                             .source = at_vocabulary_share(translator->source),
                             .target = at_vocabulary_share(translator->target),
                             .history = history,
                             .max_length = translator->max_length,
                             .more = more,
                             .more_count = translator->more_count,
                             .calibrated = translator->calibrated,
                             .confidence = {translator->confidence[0], translator->confidence[1]},
                             .expects = translator->expects,
                             .never_empty = translator->never_empty};
    return clone;
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
    free(translator->training);
    free(translator->origin);
    free(translator);
}

bool at_translator_heads(const at_translator *translator, int *layers, int *heads)
{
    return at_model_heads(translator->model, layers, heads);
}

bool at_translator_guided(const at_translator *translator, int *layer, int *head)
{
    return at_model_guided(translator->model, layer, head);
}

bool at_translator_expect(at_translator *translator, bool expectation, at_error *error)
{
    bool samples = at_attention_samples(&translator->model->attention);
    for (int i = 0; i < translator->more_count; i++)
        samples = samples || at_attention_samples(&translator->more[i]->attention);
    if (error->code == AT_OK && !samples)
        return at_fail(error, AT_USAGE,
                       "only a model with the normaliser hard that was trained with samples chooses how to decode, and "
                       "the normaliser is '%s'%s",
                       translator->model->settings.normaliser,
                       translator->model->settings.hard_training == AT_HARD_EXACT ? ", trained exactly" : "");
    translator->expects = expectation;
    return error->code == AT_OK;
}

bool at_translator_has_source(const at_translator *translator)
{
    return translator->model->kind->has_source;
}

bool at_translator_has_pictures(const at_translator *translator)
{
    return translator->model->kind->has_pictures;
}

at_line_list *at_translator_sources(const at_translator *translator, const char *path, at_error *error)
{
    return translator->model->kind->has_pictures ? at_picture_lines_read(path, error) : at_line_list_read(path, error);
}

int64_t at_translator_longest(const at_translator *translator)
{
    return translator->max_length;
}

int64_t at_translator_most_units(const at_translator *translator)
{
    enum { TIMES = 5, LEAST = 1000 };
    const int64_t trained = translator->max_length;
    return trained > INT64_MAX / TIMES ? trained : TIMES * trained > LEAST ? TIMES * trained : LEAST;
}
