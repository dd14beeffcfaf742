/* The explorer: one HTML page with its style, its script and the weights as JSON. */
#include "attend_unstable.h"
#include "base/error.h"
#include "draw/derive_internal.h"
#include "draw/page_internal.h"
#include "draw/pairs_internal.h"
#include "draw/picture_internal.h"
#include "draw/png_internal.h"
#include "draw/ramp_internal.h"
#include "draw/stored_internal.h"
#include "draw/svg_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

extern const char at_explorer_style[], at_explorer_body[], at_explorer_script[];

enum {
    MOST_COLUMNS = 65535,
    MOST_ROLLOUT = 512, /* units, since it takes their third power */
    MOST_LAYERS = 256
};
#define MOST_BYTES      0x1p28
#define PRECISE_BYTES   0x1p18 /* so few bytes of weights: they are in 16 bits, which show four digits; else in 8 */
#define MOST_PAIR_BYTES 0x1p19 /* of queries and keys, with all weights, before base64: a page of about 1 MB */

/* One kind of attention: maps of one size, in the order of their layers. */
typedef struct kind {
    const char *name, *title, *row_title, *column_title;
    const at_map *map[MOST_LAYERS];
    const at_map_vectors *vectors[MOST_LAYERS]; /* NULL: not known */
    const at_map *relevance;                    /* by gradient x attention; NULL: not known */
    const at_head *heads;                       /* [head_count] measured ones, among others of this kind */
    int head_count;
    int layers;
    int64_t rows, columns, unit_rows, unit_columns;
    const int64_t *row_words,
        *column_words; /* of the units, if the page makes the heads' weights between words of them */
    int steps;         /* 255 or 65535 of the largest weight of a row */
    bool of_other;     /* of the other model */
} kind;

/* ---- JSON ----------------------------------------------------------------------------------------------------- */

void at_page_string(at_buffer *text, const char *string)
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
    at_page_string(text, value);
}

static void add_names(at_buffer *text, const char *field, const char *const *names, int64_t count)
{
    char number[AT_NUMBER];
    at_buffer_print(text, "\"%s\":[", field);
    for (int64_t i = 0; i < count; i++) {
        if (i > 0)
            at_buffer_add(text, ",", 1);
        at_page_string(text, at_picture_name(names, i, number));
    }
    at_buffer_add(text, "]", 1);
}

static void add_numbers(at_buffer *text, const char *field, const int64_t *numbers, int64_t count)
{
    at_buffer_print(text, ",\"%s\":[", field);
    for (int64_t i = 0; i < count; i++)
        at_buffer_print(text, "%s%lld", i ? "," : "", (long long)numbers[i]);
    at_buffer_add(text, "]", 1);
}

/* ---- Maps ------------------------------------------------------------------------------------------------------ */

/* The importance of a head, as a share of its layer's; -1: not known. */
static double importance_of(const kind *k, int layer, int head)
{
    for (int i = 0; i < k->head_count; i++)
        if (k->heads[i].kind == k->map[0]->kind && k->heads[i].layer == layer && k->heads[i].head == head)
            return k->heads[i].share;
    return -1;
}

/* One map: a head of layer `at`, from 0, or with -1 what follows from all of them. */
static void add_map(at_buffer *text, const kind *k, int at, int head, const char *name, const char *title,
                    const char *formula, const float *weights)
{
    at_buffer_print(text,
                    "{\"name\":\"%s%s\",\"title\":\"%s%s\",\"other\":%s,\"layer\":%d,\"head\":%d,\"entropy\":%.4f,"
                    "\"formula\":\"%s%s\",",
                    k->of_other ? "other " : "", name, k->of_other ? "other model, " : "", title,
                    k->of_other ? "true" : "false", at >= 0 ? k->map[at]->layer : 0, head,
                    at_derive_entropy(weights, k->rows, k->columns), formula,
                    k->columns > AT_STORED_LONG ? " Of each row the page has the 8 largest weights." : "");
    const double importance = at >= 0 ? importance_of(k, k->map[at]->layer, head) : -1;
    if (importance >= 0)
        at_buffer_print(text, "\"importance\":%.4f,", importance);
    if (at >= 0 && k->row_words)
        at_buffer_print(text, "\"steps\":255,\"joined\":true");
    else
        at_stored_add(text, weights, k->rows, k->columns, k->steps);
    if (at >= 0 && k->vectors[at] && k->vectors[at]->queries)
        at_pairs_add(text, k->map[at], k->vectors[at], head - 1);
    at_buffer_add(text, "}", 1);
}

/* Gradient x attention: what the rows of each kind are about. */
static const char *const relevance_formulas[] = {
#define RULE                                                                                                           \
    "A\xcc\x84 = mean\xe2\x82\x95 max(0, A \xc2\xb7 \xe2\x88\x82y/\xe2\x88\x82"                                        \
    "A)"
#define PAPER " (Chefer, Gur, Wolf 2021). Each row as shares of its sum."
    [AT_ENCODER_ATTENTION] =
        "Gradient \xc3\x97 attention: " RULE ", R += A\xcc\x84 R through the layers, from R = I; y is the sum of "
        "the logits of all target units, and R \xe2\x88\x92 I is shown" PAPER,
    [AT_DECODER_ATTENTION] =
        "Gradient \xc3\x97 attention: " RULE ", R += A\xcc\x84 R through the layers, from R = I; in each row y is "
        "the logit of the unit that is predicted there, and R \xe2\x88\x92 I is shown" PAPER,
    [AT_CROSS_ATTENTION] =
        "Gradient \xc3\x97 attention: " RULE " with y the logit of the row\xe2\x80\x99s unit; through the "
        "decoder\xe2\x80\x99s layers R_qi += A\xcc\x84_self R_qi, then R_qi += norm(R_qq)\xe1\xb5\x80 A\xcc\x84_cross "
        "norm(R_ii)" PAPER,
#undef RULE
#undef PAPER
};

static void add_relevance(at_buffer *text, const kind *k)
{
    if (k->relevance)
        add_map(text, k, -1, 0, "gradient", "gradient \xc3\x97 attention", relevance_formulas[k->map[0]->kind],
                k->relevance->weights);
    if (k->relevance)
        at_buffer_add(text, ",", 1);
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
    add_relevance(text, k);
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
    if (k->row_words) {
        add_numbers(text, "rowWords", k->row_words, k->unit_rows);
        add_numbers(text, "columnWords", k->column_words, k->unit_columns);
    }
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

/* The bytes of the weights of maps, in 8 bits. */
static double bytes_of(const at_map *const *maps, int count)
{
    double bytes = 0;
    for (int m = 0; m < count; m++)
        bytes += (double)(maps[m]->heads * maps[m]->rows) *
                 (maps[m]->columns > AT_STORED_LONG ? 3.0 * AT_STORED_TOP : (double)maps[m]->columns);
    return bytes;
}

static double all_bytes(const at_explorer *e)
{
    return bytes_of(e->maps, e->count) + bytes_of(e->word_maps, e->word_count) +
           bytes_of(e->other_maps, e->other_count) + bytes_of(e->other_word_maps, e->other_word_count);
}

/* Queries and keys are left out of a page that they would make too large. */
static bool pairs_fit(const at_explorer *e)
{
    double bytes = all_bytes(e);
    for (int m = 0; e->vectors && m < e->count; m++)
        bytes += 2.0 * e->maps[m]->heads * (double)((e->maps[m]->rows + e->maps[m]->columns) * e->vectors[m].size);
    return bytes <= MOST_PAIR_BYTES;
}

/* In a large page the heads between words follow from those between units. */
static void join_words(kind *k, const at_explorer *e, int which)
{
    for (int m = 0; k->steps == 255 && e->row_words && m < e->count; m++)
        if (e->maps[m]->kind == (at_attention_kind)which && e->maps[m]->columns <= AT_STORED_LONG) {
            k->row_words = e->row_words[m];
            k->column_words = e->column_words[m];
            k->unit_rows = e->maps[m]->rows;
            k->unit_columns = e->maps[m]->columns;
            return;
        }
}

/* What is known of the line beyond its weights. */
static kind with_measures(kind k, const at_explorer *e, int which, bool by_word)
{
    const at_map *const *maps = by_word ? e->word_relevance : e->relevance;
    for (int m = 0; m < (by_word ? e->word_relevance_count : e->relevance_count); m++)
        if (maps[m]->kind == (at_attention_kind)which && maps[m]->rows == k.rows && maps[m]->columns == k.columns)
            k.relevance = maps[m];
    k.heads = e->heads;
    k.head_count = e->head_count;
    k.steps = 2 * all_bytes(e) <= PRECISE_BYTES ? 65535 : 255;
    if (by_word)
        join_words(&k, e, which);
    return k;
}

static bool add_level(at_buffer *text, const at_explorer *e, bool by_word, at_error *error)
{
    bool any = false;
    at_buffer_print(text, "{\"name\":\"%s\",\"kinds\":[", by_word ? "word" : "subword");
    for (int i = 0; i < 3; i++) {
        const kind *form = e->of_array ? &of_array : &kinds[order[i]];
        const kind k =
            with_measures(by_word ? collect(form, order[i], e->word_maps, NULL, e->word_count, NULL)
                                  : collect(form, order[i], e->maps, pairs_fit(e) ? e->vectors : NULL, e->count, NULL),
                          e, order[i], by_word);
        if (k.layers == 0)
            continue;
        if (k.columns > MOST_COLUMNS)
            return at_fail(error, AT_UNSUPPORTED, "the explorer shows at most %d columns, not %lld", MOST_COLUMNS,
                           (long long)k.columns);
        if (any)
            at_buffer_add(text, ",", 1);
        any = true;
        kind other = collect_other(e, form, order[i], by_word, &k);
        other.steps = k.steps;
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
    at_buffer_print(text, ",\n\"top\":%d,\"ramps\":{", AT_STORED_TOP);
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
    if (e->beams)
        at_page_beams(text, e->beams);
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
        *bytes +=
            map->columns > AT_STORED_LONG ? (double)(map->heads * map->rows) * 4 * AT_STORED_TOP : 2 * (double)cells;
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

/* Links join words of the source and the target that are there. */
static bool links_fit(const at_explorer *page, at_error *error)
{
    const at_map *const *maps = page->word_count ? page->word_maps : page->maps;
    for (int i = 0; i < page->count; i++)
        for (int64_t l = 0; maps[i]->kind == AT_CROSS_ATTENTION && l < page->link_count; l++)
            if (page->links[l].row >= maps[i]->rows || page->links[l].column >= maps[i]->columns)
                return at_fail(error, AT_SHAPE,
                               "there is no row %lld and column %lld for a link: the map has %lld rows and %lld "
                               "columns, from 0",
                               (long long)page->links[l].row, (long long)page->links[l].column,
                               (long long)maps[i]->rows, (long long)maps[i]->columns);
    return true;
}

char *at_explorer_html(const at_explorer *explorer, at_error *error)
{
    at_buffer text = {0};
    if (error->code != AT_OK || !check(explorer, error) || !links_fit(explorer, error))
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
