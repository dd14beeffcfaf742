/* A number that two translators share if they compute the same: so that several processes can tell whether they do. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "models/kinds.h"
#include "store/translator.h"

static uint64_t add(uint64_t hash, const void *bytes, size_t size)
{
    return at_hash_mix(hash ^ at_hash_quick(bytes, size));
}

static uint64_t add_text(uint64_t hash, const char *text)
{
    return add(hash, text, strlen(text) + 1);
}

static uint64_t add_settings(uint64_t hash, const at_model *model)
{
    char value[200];
    hash = add_text(hash, model->kind->name);
    for (int i = 0; at_model_setting(i); i++)
        if (at_model_says(&model->settings, model->kind, at_model_setting(i)))
            hash = add_text(hash, at_setting_text(at_model_setting(i), &model->settings, value, sizeof value));
    return hash;
}

/* A matrix of fewer bits is packed for the kernels; its rows are the same for all of them. */
static bool add_narrow(const at_params *params, int index, uint64_t *hash, at_error *error)
{
    const at_shape shape = at_params_shape(params, index);
    const size_t size = (size_t)at_shape_count(shape) * at_number_size(at_params_type(params, index));
    void *rows = malloc(size + 1);
    if (!rows)
        return at_no_memory(error, "a matrix of the model");
    const at_real *scale = at_params_get_narrow(params, index, rows);
    *hash = add(*hash, rows, size);
    if (at_params_type(params, index) == AT_NUMBERS_INT8)
        *hash = add(*hash, scale, (size_t)shape.dim[0] * sizeof *scale);
    free(rows);
    return true;
}

static bool add_model(const at_model *model, uint64_t *hash, at_error *error)
{
    at_params *params = model->params;
    *hash = add_settings(*hash, model);
    for (int i = 0; i < at_params_number(params); i++) {
        const at_real *value = at_params_value(params, i);
        *hash = add_text(*hash, at_params_name(params, i));
        if (value)
            *hash = add(*hash, value, (size_t)at_shape_count(at_params_shape(params, i)) * sizeof *value);
        else if (!add_narrow(params, i, hash, error))
            return false;
    }
    return true;
}

static bool add_vocabulary(const at_vocabulary *vocabulary, uint64_t *hash, at_error *error)
{
    size_t size = 0;
    if (!vocabulary)
        return true;
    char *text = at_vocabulary_to_json(vocabulary, error);
    if (!text)
        return false;
    *hash = add_text(*hash, text);
    free(text);
    const unsigned char *subwords = at_vocabulary_subwords(vocabulary, &size);
    if (subwords)
        *hash = add(*hash, subwords, size);
    return true;
}

bool at_translator_fingerprint(const at_translator *translator, uint64_t *fingerprint, at_error *error)
{
    const double numbers[] = {(double)translator->max_length, translator->never_empty, translator->expects};
    uint64_t hash = add(AT_HASH_START, numbers, sizeof numbers);
    bool done = add_vocabulary(translator->source, &hash, error) && add_vocabulary(translator->target, &hash, error) &&
                add_model(translator->model, &hash, error);
    for (int i = 0; done && i < translator->more_count; i++)
        done = add_model(translator->more[i], &hash, error);
    *fingerprint = hash;
    return done;
}
