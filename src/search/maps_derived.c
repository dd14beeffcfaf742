/* Maps that follow from others: between words, and how relevant each unit is by gradient x attention. */
#include <string.h>

#include "search/maps_internal.h"
#include "search/relevance_internal.h"

/* ---- Words ---------------------------------------------------------------------------------------------------- */

static bool copy_words(const at_axis *from, at_maps *maps, at_axis *to, at_error *error)
{
    *to = (at_axis){.units = from->words, .words = from->words};
    to->names = to->word_names = at_maps_take(maps, from->words, sizeof *to->names, error);
    to->word = at_maps_take(maps, from->words, sizeof *to->word, error);
    for (int64_t i = 0; error->code == AT_OK && i < from->words; i++) {
        to->names[i] = at_maps_copy(maps, from->word_names[i], error);
        to->word[i] = i;
    }
    return error->code == AT_OK;
}

/* W_IJ = mean over i in I of sum over j in J of w_ij; `sum` [columns] is scratch. */
static void join_words(const at_map *map, const at_axis *rows, const at_axis *columns, float *to, double *sum)
{
    for (int64_t h = 0; h < map->heads; h++)
        for (int64_t word = 0; word < rows->words; word++) {
            int64_t units = 0;
            memset(sum, 0, (size_t)columns->words * sizeof *sum);
            for (int64_t i = 0; i < map->rows; i++) {
                if (rows->word[i] != word)
                    continue;
                const float *from = map->weights + (h * map->rows + i) * map->columns;
                units++;
                for (int64_t j = 0; j < map->columns; j++)
                    if (columns->word[j] >= 0)
                        sum[columns->word[j]] += (double)from[j];
            }
            for (int64_t j = 0; j < columns->words; j++)
                to[(h * rows->words + word) * columns->words + j] = units ? (float)(sum[j] / (double)units) : 0;
        }
}

at_maps *at_maps_words(const at_maps *from, at_error *error)
{
    at_maps *maps = at_maps_open(error);
    if (!maps)
        return NULL;
    maps->text = at_maps_copy(maps, from->text, error);
    maps->score = from->score;
    for (int a = 0; a < AT_MAP_AXES; a++)
        if (from->axis[a].names && !copy_words(&from->axis[a], maps, &maps->axis[a], error))
            return at_maps_close(maps, error);
    for (int i = 0; i < from->count && error->code == AT_OK; i++) {
        const at_map *map = &from->map[i];
        const at_axis *rows = &from->axis[at_axes_of[map->kind].rows],
                      *columns = &from->axis[at_axes_of[map->kind].columns];
        float *weights = at_maps_add(maps, map->kind, map->layer, map->heads, error);
        double *sum = at_maps_take(maps, columns->words, sizeof *sum, error);
        if (weights && sum)
            join_words(map, rows, columns, weights, sum);
    }
    at_maps_name(maps);
    return at_maps_close(maps, error);
}

/* ---- Relevance ------------------------------------------------------------------------------------------------ */

static bool copy_axis(const at_axis *from, at_maps *maps, at_axis *to, at_error *error)
{
    if (!copy_words(from, maps, to, error))
        return false;
    to->units = from->units;
    to->names = at_maps_take(maps, from->units, sizeof *to->names, error);
    to->word = at_maps_take(maps, from->units, sizeof *to->word, error);
    for (int64_t i = 0; error->code == AT_OK && i < from->units; i++) {
        to->names[i] = at_maps_copy(maps, from->names[i], error);
        to->word[i] = from->word[i];
    }
    return error->code == AT_OK;
}

static bool can_relate(const at_maps *from, const at_translator *translator, at_error *error)
{
    const at_model_kind *kind = translator->model->kind;
    if (error->code != AT_OK)
        return false;
    if (!kind->has_multihead)
        return at_fail(error, AT_UNSUPPORTED, "model '%s' has no layers of multi-head attention", kind->name);
    return from->target.ids || from->count == 0 ||
           at_fail(error, AT_USAGE, "the relevance follows from the maps of at_maps_new, not from those of words");
}

/* For each target unit: the model forward and backward over the source and half the target, the plain path of attention,
 * and the products of the propagation. */
double at_maps_relevance_cost(const at_maps *maps, const at_translator *translator)
{
    const at_model *model = translator->model;
    const at_model_settings *s = &model->settings;
    const double S = (double)maps->source.count, T = (double)maps->target.count + 1,
                 size = (double)s->hidden / (double)s->heads;
    const double products = 2 * (S + T / 2) * (double)at_params_count(model->params),
                 attention =
                     at_model_weights(model, S > 0 ? maps->source.count : 0, maps->target.count + 1) * (6 * size + 40),
                 propagation = 2 * (double)s->layers * (S * S * S + T * T * T / 2 + T * S * S);
    return T * (products + attention + propagation);
}

at_maps *at_maps_relevance(const at_maps *from, at_translator *translator, at_error *error)
{
    at_maps *maps = can_relate(from, translator, error) ? at_maps_open(error) : NULL;
    if (!maps || from->count == 0)
        return maps;
    const bool has_source = translator->model->kind->has_source;
    const int64_t T = from->target.count + 1;
    maps->text = at_maps_copy(maps, from->text, error);
    maps->score = from->score;
    for (int a = 0; a < AT_MAP_AXES; a++)
        if (from->axis[a].names && !copy_axis(&from->axis[a], maps, &maps->axis[a], error))
            return at_maps_close(maps, error);
    int32_t *target = at_maps_take(maps, T, sizeof *target, error);
    if (!target)
        return at_maps_close(maps, error);
    memcpy(target, from->target.ids, (size_t)(T - 1) * sizeof *target);
    target[T - 1] = AT_END;
    at_relevance relevance = {.model = translator->model,
                              .source = has_source ? from->source.ids : NULL,
                              .S = has_source ? from->source.count : 0,
                              .target = target,
                              .T = T,
                              .decoder = at_maps_add(maps, AT_DECODER_ATTENTION, 1, 1, error)};
    if (has_source) {
        relevance.encoder = at_maps_add(maps, AT_ENCODER_ATTENTION, 1, 1, error);
        relevance.cross = at_maps_add(maps, AT_CROSS_ATTENTION, 1, 1, error);
    }
    if (error->code == AT_OK)
        at_relevance_compute(&relevance, error);
    at_maps_name(maps);
    return at_maps_close(maps, error);
}
