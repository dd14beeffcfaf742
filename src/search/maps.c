/* All attention weights of one line: a search, if the target is not given, then forced decoding of its units with an
 * observer that copies the weights of every call of attention. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "models/kinds.h"
#include "search/maps_internal.h"
#include "text/units.h"

#define MOST_WEIGHTS 0x1p28 /* numbers in all maps together: 1 GiB */

const at_axes at_axes_of[] = {[AT_ENCODER_ATTENTION] = {AT_AXIS_SOURCE, AT_AXIS_SOURCE},
                              [AT_DECODER_ATTENTION] = {AT_AXIS_READ, AT_AXIS_READ},
                              [AT_CROSS_ATTENTION] = {AT_AXIS_PREDICTED, AT_AXIS_SOURCE}};

/* ---- Memory --------------------------------------------------------------------------------------------------- */

static bool no_memory(at_error *error)
{
    return at_no_memory(error, "attention weights");
}

void *at_maps_take(at_maps *maps, int64_t count, size_t size, at_error *error)
{
    void *memory = at_arena_take(maps->arena, (size_t)(count > 0 ? count : 1) * size);
    if (!memory)
        no_memory(error);
    return memory;
}

/* A copy with a NUL after it. */
static const char *copy_text(at_maps *maps, const char *text, size_t size, at_error *error)
{
    char *copy = at_maps_take(maps, (int64_t)size + 1, 1, error);
    if (copy && size)
        memcpy(copy, text, size);
    if (copy)
        copy[size] = 0;
    return copy;
}

const char *at_maps_copy(at_maps *maps, const char *name, at_error *error)
{
    return copy_text(maps, name, strlen(name), error);
}

at_maps *at_maps_open(at_error *error)
{
    at_maps *maps = error->code == AT_OK ? calloc(1, sizeof *maps) : NULL;
    if (maps && (maps->arena = at_arena_new())) {
        maps->text = "";
        return maps;
    }
    free(maps);
    no_memory(error);
    return NULL;
}

void at_maps_free(at_maps *maps)
{
    if (!maps)
        return;
    at_arena_free(maps->arena);
    free(maps->map);
    free(maps->vectors);
    free(maps);
}

at_maps *at_maps_close(at_maps *maps, const at_error *error)
{
    if (error->code == AT_OK)
        return maps;
    at_maps_free(maps);
    return NULL;
}

float *at_maps_add(at_maps *maps, at_attention_kind kind, int layer, int heads, at_error *error)
{
    const at_axis *rows = &maps->axis[at_axes_of[kind].rows], *columns = &maps->axis[at_axes_of[kind].columns];
    int at = maps->count;
    const int64_t more = heads * rows->units * columns->units;
    float *weights = at_arena_zeros(maps->arena, (size_t)(more + 1) * sizeof *weights);
    if (!weights || !AT_GROW(maps->map, maps->room, (size_t)maps->count + 1) ||
        !AT_GROW(maps->vectors, maps->vector_room, (size_t)maps->count + 1)) {
        no_memory(error);
        return NULL;
    }
    for (; at > 0 && maps->map[at - 1].kind > kind; at--) { /* layers come in their order */
        maps->map[at] = maps->map[at - 1];
        maps->vectors[at] = maps->vectors[at - 1];
    }
    maps->vectors[at] = (at_kept_vectors){0};
    maps->map[at] = (at_map){.kind = kind,
                             .layer = layer,
                             .heads = heads,
                             .rows = rows->units,
                             .columns = columns->units,
                             .weights = weights};
    maps->count++;
    return weights;
}

void at_maps_name(at_maps *maps)
{
    for (int i = 0; i < maps->count; i++) {
        at_map *map = &maps->map[i];
        map->row_names = maps->axis[at_axes_of[map->kind].rows].names;
        map->column_names = maps->axis[at_axes_of[map->kind].columns].names;
    }
}

/* ---- Names and words ------------------------------------------------------------------------------------------ */

/* A line, its units and their names. */
typedef struct named {
    at_line line;
    const int32_t *offsets;
    const char *const *names;
    int64_t count;
} named;

static bool name_words(at_maps *maps, const char **names, at_line line, at_error *error)
{
    at_units reader = {line.text, line.text + line.size, true};
    at_unit word;
    at_buffer text = {0};
    for (int64_t i = 0; error->code == AT_OK && at_units_next(&reader, &word); i++) {
        text.size = 0;
        at_search_clean(&text, word.text, word.size);
        if (text.failed)
            no_memory(error);
        else
            names[i] = copy_text(maps, text.bytes, text.size, error);
    }
    at_buffer_free(&text);
    return error->code == AT_OK;
}

/* The units of a line with a special one before or after them; NULL: none. */
static bool set_axis(at_maps *maps, int which, const named *line, const char *before, const char *after,
                     at_error *error)
{
    at_axis *a = &maps->axis[which];
    const int64_t shift = before ? 1 : 0, more = shift + (after ? 1 : 0);
    a->units = line->count + more;
    a->names = at_maps_take(maps, a->units, sizeof *a->names, error);
    a->word = at_maps_take(maps, a->units, sizeof *a->word, error);
    if (!a->names || !a->word)
        return false;
    a->words = at_word_numbers(line->line, line->offsets, line->count, a->word + shift) + more;
    a->word_names = at_maps_take(maps, a->words, sizeof *a->word_names, error);
    if (!a->word_names || !name_words(maps, a->word_names + shift, line->line, error))
        return false;
    for (int64_t i = 0; i < line->count; i++) {
        a->names[i + shift] = at_maps_copy(maps, line->names[i], error);
        a->word[i + shift] += a->word[i + shift] >= 0 ? shift : 0;
    }
    if (before) {
        a->names[0] = a->word_names[0] = before;
        a->word[0] = 0;
    }
    if (after) {
        a->names[a->units - 1] = a->word_names[a->words - 1] = after;
        a->word[a->units - 1] = a->words - 1;
    }
    return error->code == AT_OK;
}

/* ---- Weights -------------------------------------------------------------------------------------------------- */

/* A line whose maps are computed. */
typedef struct passage {
    at_maps *maps;
    const at_translator *translator;
    const at_line *source; /* NULL: forced decoding with a language model */
    at_encoded target;     /* the units that are decoded */
    at_error *error;
} passage;

static int find_map(const at_maps *maps, const at_observed *o)
{
    for (int i = 0; i < maps->count; i++)
        if (maps->map[i].kind == o->kind && maps->map[i].layer == o->layer)
            return i;
    return -1;
}

static float *weights_of(passage *p, const at_observed *o)
{
    const int at = find_map(p->maps, o);
    return at >= 0 ? (float *)p->maps->map[at].weights
                   : at_maps_add(p->maps, o->kind, o->layer, (int)o->heads, p->error);
}

static float *zeros(passage *p, int64_t count)
{
    float *memory = at_arena_zeros(p->maps->arena, (size_t)(count + 1) * sizeof *memory);
    if (!memory)
        no_memory(p->error);
    return memory;
}

/* |v W_O| of head h: the length of the sum over its part of W_O's columns. */
static float norm_of(const at_observed *o, const at_real *value, int64_t h, int64_t size)
{
    double square = 0;
    for (int64_t i = 0; i < o->out_size; i++) {
        const at_real *row = o->out + i * o->heads * size + h * size;
        double sum = 0;
        for (int64_t d = 0; d < size; d++)
            sum += (double)row[d] * (double)value[d];
        square += sum * sum;
    }
    return (float)sqrt(square);
}

/* Copies the queries of one call, and the keys that are new. */
static void observe_vectors(passage *p, const at_observed *o, int64_t rows, int64_t columns)
{
    const at_packed *at = o->packed;
    const int64_t size = at->size, keys = o->keys < columns ? o->keys : columns;
    at_kept_vectors *kept = &p->maps->vectors[find_map(p->maps, o)];
    at_map_vectors *v = &kept->of;
    if (!v->queries)
        *v = (at_map_vectors){size, zeros(p, o->heads * rows * size), zeros(p, o->heads * columns * size),
                              zeros(p, o->heads * columns)};
    if (p->error->code != AT_OK)
        return;
    for (int64_t h = 0; h < o->heads; h++) {
        const int64_t g = h / (o->heads / o->kv_heads);
        for (int64_t i = 0; i < o->queries && o->first + i < rows; i++) {
            const at_real *from = o->q->value + (at->query_at[0] + i) * o->q->shape.dim[1] + at->q_column + h * size;
            float *to = (float *)v->queries + (h * rows + o->first + i) * size;
            for (int64_t d = 0; d < size; d++)
                to[d] = (float)from[d];
        }
        for (int64_t j = kept->keys; j < keys; j++) {
            const at_real *row = at->key_row ? at->key_row[j] : o->k->value + (at->key_at[0] + j) * o->k->shape.dim[1];
            float *to = (float *)v->keys + (h * columns + j) * size;
            for (int64_t d = 0; d < size; d++)
                to[d] = (float)row[at->k_column + g * size + d];
            ((float *)v->norms)[h * columns + j] = norm_of(o, row + at->v_column + g * size, h, size);
        }
    }
    kept->keys = keys > kept->keys ? keys : kept->keys;
}

/* Copies the weights of one call of attention. Forced decoding runs past the end, to a whole number of positions; the
 * keys of a decoder's row are the units so far. */
static void observe(void *context, const at_observed *o)
{
    passage *p = context;
    float *weights = p->error->code == AT_OK ? weights_of(p, o) : NULL;
    const int64_t rows = p->maps->axis[at_axes_of[o->kind].rows].units,
                  columns = p->maps->axis[at_axes_of[o->kind].columns].units;
    for (int64_t h = 0; weights && h < o->heads; h++)
        for (int64_t i = 0; i < o->queries && o->first + i < rows; i++) {
            const at_real *from = o->weights + (h * o->queries + i) * o->keys;
            float *to = weights + (h * rows + o->first + i) * columns;
            for (int64_t j = 0; j < o->keys && j < columns; j++)
                to[j] = (float)from[j];
        }
    if (weights && o->packed)
        observe_vectors(p, o, rows, columns);
}

/* The result of forced decoding: the names, and with them the rest of the maps. */
static bool finish(void *context, int64_t line, const at_result *result)
{
    passage *p = context;
    at_maps *maps = p->maps;
    const at_hypothesis *best = &result->best[0];
    const at_vocabulary *vocabulary = p->translator->target;
    (void)line;
    if (!best->names) /* a source without a unit */
        return true;
    const at_line source_line = p->translator->model->kind->has_source ? *p->source : (at_line){"", 0};
    const named source = {source_line, result->source_offsets, result->source_names, result->source_units},
                target = {p->target.line, p->target.offsets, best->names, p->target.count};
    maps->text = copy_text(maps, best->text, best->size, p->error);
    maps->score = best->score;
    const char *begin = at_maps_copy(maps, at_vocabulary_unit(vocabulary, AT_BEGIN), p->error),
               *end = at_maps_copy(maps, at_vocabulary_unit(vocabulary, AT_END), p->error);
    if (!begin || !end || !set_axis(maps, AT_AXIS_SOURCE, &source, NULL, NULL, p->error) ||
        !set_axis(maps, AT_AXIS_READ, &target, begin, NULL, p->error) ||
        !set_axis(maps, AT_AXIS_PREDICTED, &target, NULL, end, p->error))
        return false;
    at_maps_name(maps);
    return true;
}

/* ---- The target ----------------------------------------------------------------------------------------------- */

static bool keep_target(void *context, int64_t line, const at_result *result)
{
    passage *p = context;
    const at_hypothesis *best = &result->best[0];
    at_encoded *target = &p->target;
    (void)line;
    target->count = best->count;
    target->ids = at_maps_take(p->maps, best->count, sizeof *target->ids, p->error);
    target->offsets = at_maps_take(p->maps, 2 * best->count, sizeof *target->offsets, p->error);
    target->line = (at_line){copy_text(p->maps, best->text, best->size, p->error), best->size};
    if (p->error->code == AT_OK && best->count)
        memcpy(target->ids, best->ids, (size_t)best->count * sizeof *target->ids);
    return p->error->code == AT_OK;
}

/* Where each unit stands in the text of all of them: a unit is what the text gains by it, without the blanks
 * before it. */
static bool find_offsets(passage *p)
{
    at_encoded *target = &p->target;
    at_buffer text = {0};
    size_t end = 0;
    for (int64_t t = 0; t < target->count && !text.failed; t++) {
        text.size = 0;
        at_vocabulary_decode(p->translator->target, target->ids, t + 1, &text);
        size_t begin = end;
        if (text.size > end) /* the bytes of a character may be units of their own, which have no text yet */
            end = text.size < target->line.size ? text.size : target->line.size;
        const size_t blanks = strspn(target->line.text + begin, " ");
        target->offsets[2 * t] = (int32_t)(begin + (begin + blanks < end ? blanks : 0));
        target->offsets[2 * t + 1] = (int32_t)end;
    }
    const bool good = !text.failed;
    at_buffer_free(&text);
    return good || no_memory(p->error);
}

static bool search_target(passage *p, at_translator *translator, const at_search_settings *settings)
{
    at_search_settings one = *settings;
    one.n_best = 1;
    one.replace_unknown = one.wants_weights = one.wants_links = one.prefix = false;
    one.layer = one.head = 0;
    one.max_source = 0;
    one.on_long = NULL;
    return at_translate(translator, &one, p->source, 1, keep_target, p, p->error) && find_offsets(p);
}

static bool check_lines(const at_translator *translator, const at_line *source, const at_line *target, at_error *error)
{
    const at_model_kind *kind = translator->model->kind;
    if (error->code != AT_OK)
        return false;
    if (kind->has_source && !source)
        return at_fail(error, AT_USAGE, "model '%s' translates: it needs a source", kind->name);
    if (!kind->has_source && !source == !target)
        return at_fail(error, AT_USAGE, "model '%s' is a language model: it takes one text, to read or to continue",
                       kind->name);
    return kind->has_attention ||
           at_fail(error, AT_UNSUPPORTED, "model '%s' has no attention, so it has no weights to show", kind->name);
}

/* The units of both sides, of which the source's are encoded here to know how many there are. */
static bool set_sizes(passage *p)
{
    at_encoded source = {.line = p->source ? *p->source : (at_line){0}};
    int64_t replaced = 0;
    at_axis *axes = p->maps->axis;
    if (p->translator->model->kind->has_pictures) {
        at_picture_source *pictures = at_picture_source_new(&p->translator->model->settings, p->error);
        if (pictures)
            at_search_encode_picture(p->maps->arena, pictures, 0, &source, p->error);
        at_picture_source_free(pictures);
    } else if (p->translator->source) {
        at_search_encode(p->maps->arena, p->translator->source, 0, &source, &replaced, p->error);
    }
    if (p->error->code != AT_OK)
        return false;
    p->maps->source = source;
    p->maps->target = p->target;
    axes[AT_AXIS_SOURCE].units = source.count;
    axes[AT_AXIS_READ].units = axes[AT_AXIS_PREDICTED].units = p->target.count + 1;
    return at_model_weights(p->translator->model, axes[AT_AXIS_SOURCE].units, axes[AT_AXIS_READ].units) <=
               MOST_WEIGHTS ||
           at_fail(
               p->error, AT_UNSUPPORTED,
               "the weights of all layers and heads between %lld source and %lld target units take more than 1 GiB; "
               "a shorter line takes less",
               (long long)axes[AT_AXIS_SOURCE].units, (long long)axes[AT_AXIS_READ].units);
}

static bool decode(passage *p, at_translator *translator)
{
    const at_observer observer = {observe, p};
    const at_search_settings settings = {.batch = 1};
    const at_search_job job = {.translator = translator,
                               .settings = &settings,
                               .lines = translator->model->kind->has_source ? p->source : NULL,
                               .count = 1,
                               .on_result = finish,
                               .context = p,
                               .target = &p->target,
                               .observer = &observer};
    return set_sizes(p) && at_forced(&job, p->error);
}

at_maps *at_maps_new(at_translator *translator, const at_search_settings *settings, const at_line *source,
                     const at_line *target, at_error *error)
{
    at_maps *maps = check_lines(translator, source, target, error) ? at_maps_open(error) : NULL;
    passage p = {.maps = maps, .translator = translator, .source = source, .error = error};
    int64_t replaced = 0;
    if (!maps)
        return NULL;
    if (target)
        p.target.line = *target;
    if (target ? at_search_encode(maps->arena, translator->target, 0, &p.target, &replaced, error)
               : search_target(&p, translator, settings))
        decode(&p, translator);
    return at_maps_close(maps, error);
}

/* ---- Reading -------------------------------------------------------------------------------------------------- */

const at_map *at_maps_at(const at_maps *maps, int index)
{
    return index >= 0 && index < maps->count ? &maps->map[index] : NULL;
}

const char *at_maps_target(const at_maps *maps)
{
    return maps->text;
}

double at_maps_score(const at_maps *maps)
{
    return maps->score;
}

bool at_maps_vectors(const at_maps *maps, int index, at_map_vectors *vectors)
{
    *vectors = index >= 0 && index < maps->count ? maps->vectors[index].of : (at_map_vectors){0};
    return vectors->queries;
}

const int64_t *at_maps_word_numbers(const at_maps *maps, int index, bool columns)
{
    if (index < 0 || index >= maps->count)
        return NULL;
    const at_axes axes = at_axes_of[maps->map[index].kind];
    return maps->axis[columns ? axes.columns : axes.rows].word;
}
