#include "maps.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "drawing.h"
#include "options.h"
#include "outputs.h"

const char *kind_name(at_attention_kind kind)
{
    return kind == AT_ENCODER_ATTENTION ? "encoder" : kind == AT_DECODER_ATTENTION ? "decoder" : "cross";
}

const char *kind_title(const cli_maps *maps)
{
    static const char *const titles[KINDS] = {[AT_ENCODER_ATTENTION] = "encoder attention",
                                              [AT_DECODER_ATTENTION] = "decoder attention",
                                              [AT_CROSS_ATTENTION] = "cross attention"};
    return maps->of_array ? "weights" : titles[maps->map[0]->kind];
}

cli_maps maps_of_kind(const at_maps *maps, at_attention_kind kind)
{
    cli_maps found = {0};
    const at_map *map;
    for (int i = 0; (map = at_maps_at(maps, i)) && found.layers < MOST_LAYERS; i++)
        if (map->kind == kind)
            found.map[found.layers++] = map;
    return found;
}

bool choice_exists(const cli_maps *maps, const cli_choice *choice, at_error *error)
{
    const int layers = maps->layers, heads = maps->map[0]->heads;
    return (choice->layer <= layers && choice->head <= heads) ||
           fail(error, AT_UNSUPPORTED, "there is no head %d.%d: the %s %s %d layer%s of %d head%s", choice->layer,
                choice->head, kind_title(maps), maps->of_array ? "have" : "has", layers, layers == 1 ? "" : "s", heads,
                heads == 1 ? "" : "s");
}

float *choice_weights(const cli_maps *maps, const cli_choice *choice, at_error *error)
{
    const at_map *first = maps->map[0];
    const int layers = maps->layers, heads = first->heads;
    const int64_t cells = first->rows * first->columns;
    float *weights = calloc((size_t)cells + 1, sizeof *weights);
    if (!weights)
        fail(error, AT_MEMORY, "out of memory for attention weights");
    else if (choice->layer)
        memcpy(weights, maps->map[choice->layer - 1]->weights + (choice->head - 1) * cells,
               (size_t)cells * sizeof *weights);
    for (int64_t i = 0; weights && !choice->layer && i < cells; i++) {
        double sum = 0;
        for (int l = 0; l < layers; l++)
            for (int h = 0; h < heads; h++)
                sum += (double)maps->map[l]->weights[h * cells + i];
        weights[i] = (float)(sum / (layers * heads));
    }
    return weights;
}

bool maps_file_known(const char *path, at_error *error)
{
    return ends_in(path, ".npy") || ends_in(path, ".safetensors") || ends_in(path, ".tsv") || is_drawing(path) ||
           ends_in(path, ".html") ||
           fail(error, AT_USAGE,
                "-o is a name that ends in .svg, .png, .pdf, .html, .npy, .safetensors or .tsv, not '%s'", path);
}

/* ---- .npy ----------------------------------------------------------------------------------------------------- */

/* [layers, heads, rows, columns], or [rows, columns] of one head or of the mean. */
static bool write_npy(const cli_maps *maps, const cli_choice *choice, const char *path, at_error *error)
{
    const at_map *first = maps->map[0];
    const int64_t cells = first->rows * first->columns;
    if (!choice->all) {
        float *weights = choice_weights(maps, choice, error);
        const at_array array = {AT_F32, 2, {first->rows, first->columns}, weights};
        const bool written = weights && at_npy_write(path, &array, error);
        free(weights);
        return written;
    }
    at_array *array =
        at_array_new(AT_F32, 4, (int64_t[]){maps->layers, first->heads, first->rows, first->columns}, error);
    for (int l = 0; array && l < maps->layers; l++)
        memcpy((float *)array->data + l * first->heads * cells, maps->map[l]->weights,
               (size_t)(first->heads * cells) * sizeof(float));
    const bool written = array && at_npy_write(path, array, error);
    at_array_free(array);
    return written;
}

/* ---- safetensors ---------------------------------------------------------------------------------------------- */

/* Names as a JSON array of strings. */
static bool put_names(at_tensors *file, const char *key, const char *const *names, int64_t count, at_error *error)
{
    json_t *array = json_array();
    bool whole = array;
    for (int64_t i = 0; whole && i < count; i++)
        whole = json_array_append_new(array, json_string(names[i])) == 0;
    char *text = whole ? at_json_text(array, JSON_COMPACT) : NULL;
    const bool done =
        text ? at_tensors_set_meta(file, key, text, error) : fail(error, AT_MEMORY, "out of memory for the tokens");
    free(text);
    json_decref(array);
    return done;
}

/* cross.2 [H, rows, columns] for each layer, or cross.2.1 or cross.average [rows, columns]. */
static bool put_kind(at_tensors *file, const cli_maps *maps, const cli_choice *choice, at_error *error)
{
    const at_map *first = maps->map[0];
    const char *kind = kind_name(first->kind);
    char name[64];
    for (int l = 0; choice->all && l < maps->layers; l++) {
        const at_map *map = maps->map[l];
        const at_array array = {AT_F32, 3, {map->heads, map->rows, map->columns}, (void *)map->weights};
        snprintf(name, sizeof name, "%s.%d", kind, map->layer);
        if (!at_tensors_put(file, name, &array, error))
            return false;
    }
    if (choice->all)
        return true;
    float *weights = choice_weights(maps, choice, error);
    const at_array array = {AT_F32, 2, {first->rows, first->columns}, weights};
    if (choice->layer)
        snprintf(name, sizeof name, "%s.%d.%d", kind, choice->layer, choice->head);
    else
        snprintf(name, sizeof name, "%s.average", kind);
    const bool done = weights && at_tensors_put(file, name, &array, error);
    free(weights);
    return done;
}

static bool put_tokens(at_tensors *file, const at_map *map, at_error *error)
{
    if (map->kind == AT_ENCODER_ATTENTION)
        return put_names(file, "source.tokens", map->row_names, map->rows, error);
    if (map->kind == AT_DECODER_ATTENTION)
        return put_names(file, "decoder.tokens", map->row_names, map->rows, error);
    return put_names(file, "source.tokens", map->column_names, map->columns, error) &&
           put_names(file, "target.tokens", map->row_names, map->rows, error);
}

static bool write_safetensors(const at_maps *maps, int kind, const cli_choice *choice, const char *path,
                              at_error *error)
{
    at_tensors *file = at_tensors_new();
    bool good = file ? at_tensors_set_meta(file, "target", at_maps_target(maps), error)
                     : fail(error, AT_MEMORY, "out of memory for the arrays");
    for (int k = 0; k < KINDS && good; k++) {
        const cli_maps chosen = maps_of_kind(maps, (at_attention_kind)k);
        if (chosen.layers && (kind < 0 || kind == k))
            good = put_kind(file, &chosen, choice, error) && put_tokens(file, chosen.map[0], error);
    }
    good = good && at_tensors_write(file, path, error);
    at_tensors_free(file);
    return good;
}

/* ---- Tab-separated values ------------------------------------------------------------------------------------- */

/* A name without the characters that separate fields and lines. */
static void print_name(FILE *stream, const char *name)
{
    for (; *name; name++) {
        if (*name == '\t')
            fputs("\\t", stream);
        else if (*name == '\\')
            fputs("\\\\", stream);
        else
            fputc(*name, stream);
    }
}

/* A line for each weight of [rows, columns]. */
static void print_weights(FILE *stream, const at_map *map, const char *layer, const char *head, const float *weights)
{
    for (int64_t i = 0; i < map->rows; i++)
        for (int64_t j = 0; j < map->columns; j++) {
            fprintf(stream, "%s\t%s\t%s\t%lld\t%lld\t", kind_name(map->kind), layer, head, (long long)i, (long long)j);
            print_name(stream, map->row_names[i]);
            fputc('\t', stream);
            print_name(stream, map->column_names[j]);
            fprintf(stream, "\t%.9g\n", (double)weights[i * map->columns + j]);
        }
}

static bool print_kind(FILE *stream, const cli_maps *maps, const cli_choice *choice, at_error *error)
{
    char layer[16] = "all", head[16] = "average";
    for (int l = 0; choice->all && l < maps->layers; l++)
        for (int h = 0; h < maps->map[l]->heads; h++) {
            const at_map *map = maps->map[l];
            snprintf(layer, sizeof layer, "%d", map->layer);
            snprintf(head, sizeof head, "%d", h + 1);
            print_weights(stream, map, layer, head, map->weights + h * map->rows * map->columns);
        }
    if (choice->all)
        return true;
    float *weights = choice_weights(maps, choice, error);
    if (choice->layer) {
        snprintf(layer, sizeof layer, "%d", choice->layer);
        snprintf(head, sizeof head, "%d", choice->head);
    }
    if (weights)
        print_weights(stream, maps->map[0], layer, head, weights);
    free(weights);
    return weights;
}

static bool write_tsv(const at_maps *maps, int kind, const cli_choice *choice, const char *path, at_error *error)
{
    text_file text;
    if (!text_open(&text, error))
        return false;
    fputs("kind\tlayer\thead\trow\tcolumn\trow_token\tcolumn_token\tweight\n", text.stream);
    for (int k = 0; k < KINDS && error->code == AT_OK; k++) {
        const cli_maps chosen = maps_of_kind(maps, (at_attention_kind)k);
        if (chosen.layers && (kind < 0 || kind == k))
            print_kind(text.stream, &chosen, choice, error);
    }
    at_writer *writer = error->code == AT_OK ? at_writer_open(path, error) : NULL;
    if (text_close(&text, writer, error))
        return at_writer_commit(writer, error);
    if (writer)
        at_writer_cancel(writer);
    return false;
}

bool maps_write(const at_maps *maps, int kind, const cli_choice *choice, const char *path, at_error *error)
{
    if (ends_in(path, ".safetensors"))
        return write_safetensors(maps, kind, choice, path, error);
    if (ends_in(path, ".tsv"))
        return write_tsv(maps, kind, choice, path, error);
    const at_attention_kind one = kind >= 0                                           ? (at_attention_kind)kind
                                  : maps_of_kind(maps, AT_CROSS_ATTENTION).layers > 0 ? AT_CROSS_ATTENTION
                                                                                      : AT_DECODER_ATTENTION;
    const cli_maps chosen = maps_of_kind(maps, one);
    return write_npy(&chosen, choice, path, error);
}
