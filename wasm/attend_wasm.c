/* attend.wasm: the operator and a translator for JavaScript, as functions of numbers, strings and arrays in the module's
 * memory (malloc, free). One model, one error and one result at a time: a page has one thread. examples/wasm shows how a
 * page calls them; tests/wasm/native.c runs the same source outside of a browser. */
#include <stdlib.h>
#include <string.h>

#include "attend.h"

#ifdef __EMSCRIPTEN__
#include <emscripten.h>
#define EXPORT EMSCRIPTEN_KEEPALIVE
#else
#define EXPORT
#endif

static at_error error;
static at_translator *translator;
static at_maps *maps;

static bool done(bool good)
{
    return good && error.code == AT_OK;
}

/* The message of the last call, "" if it succeeded. */
EXPORT const char *wasm_error(void)
{
    return error.text;
}

EXPORT const char *wasm_version(void)
{
    return at_version();
}

/* One attention call. query [queries, width], key and value [keys, width], out like query, weights [heads, queries, keys];
 * with grad_out, like out, the gradients like their arrays. What is 0 is not wanted. Names as in attend.h. */
EXPORT bool wasm_attention(const char *score, const char *normaliser, const char *window, const char *position,
                           int heads, int queries, int keys, int width, const float *query, const float *key,
                           const float *value, float *out, float *weights, const float *grad_out, float *grad_query,
                           float *grad_key, float *grad_value)
{
    error = (at_error){0};
    const at_settings settings = {score, normaliser, window, position, .heads = heads};
    at_call call = {.batch = 1,
                    .queries = queries,
                    .keys = keys,
                    .query_width = width,
                    .key_width = width,
                    .value_width = width,
                    .query = query,
                    .key = key,
                    .value = value,
                    .out = out,
                    .weights = weights,
                    .grad_out = grad_out,
                    .grad_query = grad_query,
                    .grad_key = grad_key,
                    .grad_value = grad_value};
    return at_attend(&settings, &call, &error);
}

/* Loads the bytes of a model file of attend train, in place of the model before. */
EXPORT bool wasm_load(const void *bytes, size_t size)
{
    error = (at_error){0};
    at_translator *loaded = at_translator_load_memory(bytes, size, &error);
    if (!loaded)
        return false;
    at_maps_free(maps);
    at_translator_free(translator);
    maps = NULL;
    translator = loaded;
    return true;
}

/* Translates a line; then wasm_target is the translation, and the functions below it tell more. */
EXPORT bool wasm_translate(const char *line, int beam)
{
    error = (at_error){0};
    at_maps_free(maps);
    maps = NULL;
    if (!translator) {
        error.code = AT_USAGE;
        strcpy(error.text, "no model is loaded");
        return false;
    }
    const at_line source = {line, strlen(line)};
    const at_search_settings settings = {.beam = beam};
    maps = at_maps_new(translator, &settings, &source, NULL, &error);
    return done(maps);
}

EXPORT const char *wasm_target(void)
{
    return maps ? at_maps_target(maps) : "";
}

/* Its log-probability. */
EXPORT double wasm_score(void)
{
    return maps ? at_maps_score(maps) : 0;
}

/* The weights [heads, rows, columns] of map `index`: encoder, decoder, cross, each from layer 1 on; 0 past the last. */
EXPORT const float *wasm_map(int index)
{
    const at_map *map = maps ? at_maps_at(maps, index) : NULL;
    return map ? map->weights : NULL;
}

/* Its kind (0 encoder, 1 decoder, 2 cross), layer, heads, rows, columns: which 0 to 4. -1: there is no such map. */
EXPORT int wasm_map_size(int index, int which)
{
    const at_map *map = maps ? at_maps_at(maps, index) : NULL;
    if (!map)
        return -1;
    const int sizes[] = {(int)map->kind, map->layer, map->heads, (int)map->rows, (int)map->columns};
    return which >= 0 && which < 5 ? sizes[which] : -1;
}

/* The name of one of its rows, or columns. */
EXPORT const char *wasm_map_name(int index, bool column, int number)
{
    const at_map *map = maps ? at_maps_at(maps, index) : NULL;
    if (!map || number < 0 || number >= (column ? map->columns : map->rows))
        return "";
    return (column ? map->column_names : map->row_names)[number];
}
