/* The explorer: one HTML page with its style, its script and the weights as JSON. */
#include "attend_unstable.h"
#include "base/error.h"
#include "draw/base64_internal.h"
#include "draw/derive_internal.h"
#include "draw/pairs_internal.h"
#include "draw/picture_internal.h"
#include "draw/png_internal.h"
#include "draw/ramp_internal.h"
#include "draw/svg_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

extern const char at_explorer_style[], at_explorer_body[], at_explorer_script[];

enum {
    SMALL = 4096,   /* cells of a map with precise weights */
    LONG_ROW = 256, /* longer rows have their largest weights only, */
    TOP = 8,        /* so many */
    MOST_COLUMNS = 65535,
    MOST_ROLLOUT = 512, /* units, since it takes their third power */
    MOST_LAYERS = 256
};
#define MOST_BYTES      0x1p28
#define MOST_PAIR_BYTES 0x1p23

/* One kind of attention: maps of one size, in the order of their layers. */
typedef struct kind {
    const char *name, *title, *row_title, *column_title;
    const at_map *map[MOST_LAYERS];
    const at_map_vectors *vectors[MOST_LAYERS]; /* NULL: not known */
    int layers;
    int64_t rows, columns;
    bool of_other; /* of the other model */
} kind;

/* ---- JSON ----------------------------------------------------------------------------------------------------- */

/* A string that cannot end the script it stands in. What is not UTF-8 becomes U+FFFD. */
static void add_string(at_buffer *text, const char *string)
{
    at_buffer_add(text, "\"", 1);
    while (*string) {
        utf8proc_int32_t point;
        const utf8proc_ssize_t length = utf8proc_iterate((const utf8proc_uint8_t *)string, -1, &point);
        if (length <= 0)
            at_buffer_print(text, "\xef\xbf\xbd");
        else if (point < 0x20 || point == '"' || point == '\\' || point == '<' || point == '&' || point == 0x7f)
            at_buffer_print(text, "\\u%04x", (unsigned)point);
        else
            at_buffer_add(text, string, (size_t)length);
        string += length > 0 ? length : 1;
    }
    at_buffer_add(text, "\"", 1);
}

static void add_field(at_buffer *text, const char *name, const char *value)
{
    at_buffer_print(text, "\"%s\":", name);
    add_string(text, value);
}

static void add_names(at_buffer *text, const char *field, const char *const *names, int64_t count)
{
    char number[AT_NUMBER];
    at_buffer_print(text, "\"%s\":[", field);
    for (int64_t i = 0; i < count; i++) {
        if (i > 0)
            at_buffer_add(text, ",", 1);
        add_string(text, at_picture_name(names, i, number));
    }
    at_buffer_add(text, "]", 1);
}

/* ---- Weights -------------------------------------------------------------------------------------------------- */

/* The range of a row: from 0, or from the smallest weight if that is negative, to the largest. */
static void range_of(const float *row, int64_t columns, float *low, float *high)
{
    *low = *high = 0;
    for (int64_t j = 0; j < columns; j++) {
        *low = fminf(*low, row[j]);
        *high = fmaxf(*high, row[j]);
    }
}

/* A small map has its weights in 16 bits, which show four digits; a large one in 8. */
static int steps_of(const kind *k)
{
    return k->rows * k->columns <= SMALL ? 65535 : 255;
}

/* steps (w - low) / (high - low), rounded. */
static int step_of(float weight, float low, float high, int steps)
{
    return high > low ? (int)lrint(steps * ((double)weight - (double)low) / ((double)high - (double)low)) : 0;
}

static void put(unsigned char *bytes, int64_t at, bool is_wide, int64_t value)
{
    bytes[is_wide ? 2 * at : at] = (unsigned char)value;
    if (is_wide)
        bytes[2 * at + 1] = (unsigned char)(value >> 8);
}

/* The columns of the largest weights, in falling order. */
static void find_top(const float *row, int64_t columns, int64_t top[TOP])
{
    int found = 0;
    for (int64_t j = 0; j < columns; j++) {
        int at = found;
        for (; at > 0 && row[j] > row[top[at - 1]]; at--)
            if (at < TOP)
                top[at] = top[at - 1];
        if (at < TOP)
            top[at] = j;
        found += found < TOP;
    }
}

static void add_ends(at_buffer *text, const char *name, const float *weights, const kind *k, bool is_high)
{
    at_buffer_print(text, "\"%s\":[", name);
    for (int64_t i = 0; i < k->rows; i++) {
        float low, high;
        range_of(weights + i * k->columns, k->columns, &low, &high);
        at_buffer_print(text, "%s%.5g", i ? "," : "", (double)(is_high ? high : low));
    }
    at_buffer_add(text, "]", 1);
}

static void add_bytes(at_buffer *text, const float *weights, const kind *k, unsigned char *bytes,
                      unsigned char *columns)
{
    const bool is_long = k->columns > LONG_ROW;
    const int steps = steps_of(k);
    const bool is_wide = steps > 255;
    const int64_t per = is_long ? TOP : k->columns;
    bool is_negative = false;
    for (int64_t i = 0; i < k->rows; i++) {
        const float *row = weights + i * k->columns;
        float low, high;
        int64_t top[TOP];
        range_of(row, k->columns, &low, &high);
        is_negative = is_negative || low < 0;
        if (is_long)
            find_top(row, k->columns, top);
        for (int64_t p = 0; p < per; p++) {
            const int64_t j = is_long ? top[p] : p;
            put(bytes, i * per + p, is_wide, step_of(row[j], low, high, steps));
            if (is_long)
                put(columns, i * per + p, true, j);
        }
    }
    if (is_negative) {
        add_ends(text, "low", weights, k, false);
        at_buffer_add(text, ",", 1);
    }
    add_ends(text, "high", weights, k, true);
    at_buffer_print(text, ",\"steps\":%d,\"bytes\":\"", steps);
    at_base64_add(text, bytes, (size_t)(k->rows * per) << is_wide);
    if (is_long) {
        at_buffer_print(text, "\",\"columns\":\"");
        at_base64_add(text, columns, (size_t)(2 * k->rows * per));
    }
    at_buffer_add(text, "\"", 1);
}

/* One map: a head of layer `at`, from 0, or with -1 what follows from all of them. */
static void add_map(at_buffer *text, const kind *k, int at, int head, const char *name, const char *title,
                    const char *formula, const float *weights)
{
    const size_t bytes = (size_t)(k->rows * (k->columns > LONG_ROW ? TOP : k->columns));
    unsigned char *memory = malloc(4 * bytes + 1);
    if (!memory) {
        text->failed = true;
        return;
    }
    at_buffer_print(text,
                    "{\"name\":\"%s%s\",\"title\":\"%s%s\",\"other\":%s,\"layer\":%d,\"head\":%d,\"entropy\":%.4f,"
                    "\"formula\":\"%s%s\",",
                    k->of_other ? "other " : "", name, k->of_other ? "other model, " : "", title,
                    k->of_other ? "true" : "false", at >= 0 ? k->map[at]->layer : 0, head,
                    at_derive_entropy(weights, k->rows, k->columns), formula,
                    k->columns > LONG_ROW ? " Of each row the page has the 8 largest weights." : "");
    add_bytes(text, weights, k, memory, memory + 2 * bytes);
    if (at >= 0 && k->vectors[at] && k->vectors[at]->queries)
        at_pairs_add(text, k->map[at], k->vectors[at], head - 1);
    at_buffer_add(text, "}", 1);
    free(memory);
}

/* The mean of all heads, and of a self-attention the rollout. */
static void add_derived(at_buffer *text, const kind *k)
{
    float *weights = malloc((size_t)(k->rows * k->columns) * sizeof *weights + 1);
    char title[40];
    int heads = 0;
    for (int l = 0; l < k->layers; l++)
        heads += k->map[l]->heads;
    if (!weights) {
        text->failed = true;
        return;
    }
    if (heads > 1) {
        at_derive_mean(k->map, k->layers, weights);
        snprintf(title, sizeof title, "mean of %d heads", heads);
        add_map(text, k, -1, 0, "mean", title, "The mean of the weights of all layers and heads.", weights);
        at_buffer_add(text, ",", 1);
    }
    bool has_norms = true;
    for (int l = 0; l < k->layers; l++)
        has_norms = has_norms && k->vectors[l] && k->vectors[l]->norms;
    if (has_norms) {
        at_derive_norms(k->map, k->vectors, k->layers, weights);
        add_map(text, k, -1, 0, "norms", "norm-weighted mean",
                "How much each key adds: the mean over heads of w\xe2\x80\x96v W_O\xe2\x80\x96, as shares of the row "
                "(Kobayashi et al. 2020).",
                weights);
        at_buffer_add(text, ",", 1);
    }
    const bool is_self = strcmp(k->name, "encoder") == 0 || strcmp(k->name, "decoder") == 0;
    if (is_self && k->rows == k->columns && k->rows <= MOST_ROLLOUT) {
        if (at_derive_rollout(k->map, k->layers, weights))
            add_map(text, k, -1, 0, "rollout", "rollout",
                    "Rollout: R\xe2\x82\x97 = (\xc2\xbd mean\xe2\x82\x95 A\xe2\x82\x97 + \xc2\xbd I) "
                    "R\xe2\x82\x97\xe2\x82\x8b\xe2\x82\x81, R\xe2\x82\x80 = I (Abnar and Zuidema 2020).",
                    weights);
        else
            text->failed = true;
        at_buffer_add(text, ",", 1);
    }
    free(weights);
}

static void add_maps(at_buffer *text, const kind *k)
{
    char name[32], title[40];
    add_derived(text, k);
    for (int l = 0; l < k->layers; l++)
        for (int h = 0; h < k->map[l]->heads; h++) {
            snprintf(name, sizeof name, "%d.%d", k->map[l]->layer, h + 1);
            snprintf(title, sizeof title, "head %s", name);
            if (l + h > 0)
                at_buffer_add(text, ",\n", 2);
            add_map(text, k, l, h + 1, name, title, "", k->map[l]->weights + h * k->rows * k->columns);
        }
}

/* The maps of the model, and those of the other model if there are any. */
static void add_kind(at_buffer *text, const kind *k, const kind *other)
{
    at_buffer_print(text, "{\"name\":\"%s\",\"title\":\"%s\",\"rowTitle\":\"%s\",\"columnTitle\":\"%s\",", k->name,
                    k->title, k->row_title, k->column_title);
    add_names(text, "rows", k->map[0]->row_names, k->rows);
    at_buffer_add(text, ",", 1);
    add_names(text, "columns", k->map[0]->column_names, k->columns);
    at_buffer_print(text, ",\n\"maps\":[\n");
    add_maps(text, k);
    if (other->layers > 0) {
        at_buffer_add(text, ",\n", 2);
        add_maps(text, other);
    }
    at_buffer_print(text, "]}");
}

/* ---- The page ------------------------------------------------------------------------------------------------- */

static const kind kinds[] = {
    [AT_ENCODER_ATTENTION] = {.name = "encoder",
                              .title = "inside the encoder",
                              .row_title = "attending",
                              .column_title = "attended"},
    [AT_DECODER_ATTENTION] = {.name = "decoder",
                              .title = "inside the decoder",
                              .row_title = "attending",
                              .column_title = "attended"},
    [AT_CROSS_ATTENTION] = {.name = "cross",
                            .title = "from target to source",
                            .row_title = "target",
                            .column_title = "source"},
};
static const int order[] = {AT_CROSS_ATTENTION, AT_ENCODER_ATTENTION, AT_DECODER_ATTENTION};
static const kind of_array = {.name = "weights", .title = "weights", .row_title = "rows", .column_title = "columns"};

/* The maps of one kind; of one size if `like` is not NULL. */
static kind collect(const kind *form, int which, const at_map *const *maps, const at_map_vectors *vectors, int count,
                    const kind *like)
{
    kind k = *form;
    for (int m = 0; m < count && k.layers < MOST_LAYERS; m++)
        if (maps[m]->kind == (at_attention_kind)which &&
            (!like || (maps[m]->rows == like->rows && maps[m]->columns == like->columns))) {
            k.vectors[k.layers] = vectors ? &vectors[m] : NULL;
            k.map[k.layers++] = maps[m];
        }
    if (k.layers > 0) {
        k.rows = k.map[0]->rows;
        k.columns = k.map[0]->columns;
    }
    return k;
}

/* The other model's maps between the same rows and columns: its units may be other ones, then its words may do. */
static kind collect_other(const at_explorer *e, const kind *form, int which, bool by_word, const kind *like)
{
    kind k = {0};
    if (!by_word)
        k = collect(form, which, e->other_maps, NULL, e->other_count, like);
    if (k.layers == 0)
        k = collect(form, which, e->other_word_maps, NULL, e->other_word_count, like);
    k.of_other = true;
    return k;
}

/* Queries and keys are left out of a page that they would make too large. */
static bool pairs_fit(const at_explorer *e)
{
    double bytes = 0;
    for (int m = 0; e->vectors && m < e->count; m++)
        bytes += 2.0 * e->maps[m]->heads * (double)((e->maps[m]->rows + e->maps[m]->columns) * e->vectors[m].size);
    return bytes <= MOST_PAIR_BYTES;
}

static bool add_level(at_buffer *text, const at_explorer *e, bool by_word, at_error *error)
{
    bool any = false;
    at_buffer_print(text, "{\"name\":\"%s\",\"kinds\":[", by_word ? "word" : "subword");
    for (int i = 0; i < 3; i++) {
        const kind *form = e->of_array ? &of_array : &kinds[order[i]];
        const kind k = by_word ? collect(form, order[i], e->word_maps, NULL, e->word_count, NULL)
                               : collect(form, order[i], e->maps, pairs_fit(e) ? e->vectors : NULL, e->count, NULL);
        if (k.layers == 0)
            continue;
        if (k.columns > MOST_COLUMNS)
            return at_fail(error, AT_UNSUPPORTED, "the explorer shows at most %d columns, not %lld", MOST_COLUMNS,
                           (long long)k.columns);
        if (any)
            at_buffer_add(text, ",", 1);
        any = true;
        const kind other = collect_other(e, form, order[i], by_word, &k);
        add_kind(text, &k, &other);
    }
    at_buffer_print(text, "]}");
    return true;
}

static void add_ramp(at_buffer *text, const char *name, at_ramp ramp)
{
    at_buffer_print(text, "\"%s\":[", name);
    for (int level = 0; level <= AT_SVG_LEVELS; level++) {
        int rgb[3];
        at_ramp_colour(ramp, (float)level / AT_SVG_LEVELS, rgb);
        at_buffer_print(text, "%s\"#%02x%02x%02x\"", level ? "," : "", rgb[0], rgb[1], rgb[2]);
    }
    at_buffer_add(text, "]", 1);
}

static void add_picture(at_buffer *text, const at_explorer *e)
{
    at_buffer_print(text, ",\n\"picture\":{\"rows\":%lld,\"columns\":%lld,\"address\":\"", (long long)e->grid_rows,
                    (long long)e->grid_columns);
    at_png_address(text, e->picture->data, e->picture->dim[0], e->picture->dim[1], (int)e->picture->dim[2]);
    at_buffer_print(text, "\"}");
}

static bool add_data(at_buffer *text, const at_explorer *e, at_error *error)
{
    at_buffer_add(text, "{", 1);
    add_field(text, "title", e->title ? e->title : "Attention");
    if (e->source && e->target) {
        at_buffer_add(text, ",", 1);
        add_field(text, "source", e->source);
        at_buffer_add(text, ",", 1);
        add_field(text, "target", e->target);
    }
    if (e->other) {
        at_buffer_add(text, ",", 1);
        add_field(text, "other", e->other);
    }
    at_buffer_print(text, ",\n\"top\":%d,\"ramps\":{", TOP);
    add_ramp(text, "light", AT_RAMP_LIGHT);
    at_buffer_add(text, ",", 1);
    add_ramp(text, "dark", AT_RAMP_DARK);
    at_buffer_print(text, "},\n\"linked\":\"%s\",\"linkedKind\":\"%s\",\"links\":[",
                    e->word_count > 0 ? "word" : "subword", e->of_array ? "weights" : "cross");
    for (int64_t i = 0; i < e->link_count; i++)
        at_buffer_print(text, "%s[%lld,%lld,%d]", i ? "," : "", (long long)e->links[i].row,
                        (long long)e->links[i].column, e->links[i].possible);
    at_buffer_print(text, "]");
    if (e->picture)
        add_picture(text, e);
    at_buffer_print(text, ",\n\"levels\":[");
    if (!add_level(text, e, false, error))
        return false;
    if (e->word_count > 0) {
        at_buffer_add(text, ",\n", 2);
        if (!add_level(text, e, true, error))
            return false;
    }
    at_buffer_print(text, "]}\n");
    return true;
}

static bool check_maps(const at_map *const *maps, int count, double *bytes, at_error *error)
{
    for (int m = 0; m < count; m++) {
        const at_map *map = maps[m];
        const int64_t cells = map->heads * map->rows * map->columns;
        *bytes += map->columns > LONG_ROW ? (double)(map->heads * map->rows) * 4 * TOP : 2 * (double)cells;
        for (int64_t i = 0; i < cells; i++)
            if (!isfinite(map->weights[i]))
                return at_fail(error, AT_UNSUPPORTED,
                               "the explorer shows finite weights only; a drawing (.svg) shows NaN and infinity, too");
    }
    return true;
}

static bool check(const at_explorer *e, at_error *error)
{
    double bytes = 0;
    if (e->count < 1)
        return at_fail(error, AT_USAGE, "there are no weights to explore");
    if (!check_maps(e->maps, e->count, &bytes, error) || !check_maps(e->other_maps, e->other_count, &bytes, error))
        return false;
    if (bytes > MOST_BYTES)
        return at_fail(error, AT_UNSUPPORTED, "these weights would make a page of %.0f MB; choose a shorter text",
                       bytes / 1e6);
    return true;
}

char *at_explorer_html(const at_explorer *explorer, at_error *error)
{
    at_buffer text = {0};
    if (error->code != AT_OK || !check(explorer, error))
        return NULL;
    at_buffer_print(&text, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
                           "name=\"viewport\" content=\"width=device-width\">\n"
                           "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                           "'unsafe-inline'; script-src "
                           "'unsafe-inline'; img-src data:\">\n<title>Attention</title>\n<style>\n");
    at_buffer_add(&text, at_explorer_style, strlen(at_explorer_style));
    at_buffer_print(&text, "</style>\n</head>\n<body>\n");
    at_buffer_add(&text, at_explorer_body, strlen(at_explorer_body));
    at_buffer_print(&text, "<script type=\"application/json\" id=\"data\">\n");
    const bool good = add_data(&text, explorer, error);
    at_buffer_print(&text, "</script>\n<script>\n");
    at_buffer_add(&text, at_explorer_script, strlen(at_explorer_script));
    at_buffer_print(&text, "</script>\n</body>\n</html>\n");
    if (text.failed)
        at_no_memory(error, "the explorer's page");
    if (text.failed || !good)
        at_buffer_free(&text);
    return text.bytes;
}
