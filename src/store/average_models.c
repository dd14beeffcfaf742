/* The mean of trained models, parameter by parameter. */
#include <stdlib.h>
#include <string.h>

#include "models/kinds.h"
#include "store/translator.h"

static bool same_settings(const at_translator *a, const at_translator *b, const char *path, const char *first,
                          at_error *error)
{
    for (int i = 0; at_model_setting(i); i++) {
        const at_setting *row = at_model_setting(i);
        char one[64], other[64];
        at_setting_text(row, &a->model->settings, one, sizeof one);
        at_setting_text(row, &b->model->settings, other, sizeof other);
        if (strcmp(one, other) != 0)
            return at_fail(error, AT_UNSUPPORTED, "'%s' has `%s` %s and '%s' has `%s` %s: they have no mean", path,
                           row->name, *other ? other : "none", first, row->name, *one ? one : "none");
    }
    if (a->max_length != b->max_length)
        return at_fail(error, AT_UNSUPPORTED,
                       "'%s' has `max-length` %lld and '%s' has `max-length` %lld: they have no mean", path,
                       (long long)b->max_length, first, (long long)a->max_length);
    return true;
}

static bool same_vocabulary(const at_vocabulary *a, const at_vocabulary *b, const char *side, const char *path,
                            const char *first, at_error *error)
{
    return at_vocabulary_same(a, b, error) ||
           at_fail(error, AT_UNSUPPORTED,
                   "'%s' and '%s' have different %s vocabularies, so their parameters stand for different "
                   "words: they have no mean",
                   path, first, side);
}

static void add(double *sum, at_params *params)
{
    const at_real *values = at_params_values(params);
    for (int64_t i = 0; i < at_params_count(params); i++)
        sum[i] += (double)values[i];
}

/* Weights of fewer bits are widened. */
static at_translator *load_wide(const char *path, at_error *error)
{
    at_translator *t = at_translator_load(path, error);
    if (t && at_params_convert(t->model->params, AT_NUMBERS_REAL, error))
        return t;
    at_translator_free(t);
    return NULL;
}

static bool add_model(double *sum, const at_translator *first, const char *const *paths, int index, at_error *error)
{
    at_translator *t = load_wide(paths[index], error);
    const bool fits =
        t && same_settings(first, t, paths[index], paths[0], error) &&
        same_vocabulary(first->source, t->source, "source", paths[index], paths[0], error) &&
        same_vocabulary(first->target, t->target, first->source ? "target" : "text's", paths[index], paths[0], error);
    if (fits)
        add(sum, t->model->params);
    at_translator_free(t);
    return fits;
}

/* mean = (w_1 + ... + w_n) / n, summed in double in the order of the files */
bool at_models_average(const char *const *paths, int count, const char *output, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    if (count < 1)
        return at_fail(error, AT_USAGE, "there is no model to average");
    at_translator *mean = load_wide(paths[0], error);
    const int64_t size = mean ? at_params_count(mean->model->params) : 0;
    double *sum = mean ? calloc((size_t)size + 1, sizeof *sum) : NULL;
    if (mean && !sum)
        at_no_memory(error, "the sum of %lld parameters", (long long)size);
    if (sum)
        add(sum, mean->model->params);
    for (int i = 1; i < count && error->code == AT_OK; i++)
        add_model(sum, mean, paths, i, error);
    if (error->code == AT_OK) {
        for (int64_t i = 0; i < size; i++)
            at_params_values(mean->model->params)[i] = (at_real)(sum[i] / count);
        free(mean->history);  /* which is that of one of them only, */
        free(mean->training); /* and so is this */
        mean->history = mean->training = NULL;
        mean->calibrated = false;
        at_translator_save(mean, output, false, error);
    }
    free(sum);
    at_translator_free(mean);
    return error->code == AT_OK;
}
