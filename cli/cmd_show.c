/* attend show: a translation and where the attention was, drawn in the terminal or written to a file. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "array_maps.h"
#include "commands.h"
#include "drawing.h"
#include "explore.h"
#include "heads.h"
#include "line_output.h"
#include "show.h"

typedef struct show_options {
    cli_common common;
    const char *model, *target, *head, *output;
    const char *weights, *rows, *columns, *gold, *other;
    int kind, level, theme;
    int64_t beam;
    bool sums, gradients;
} show_options;

enum { KIND_UNSET, KIND_CROSS, KIND_ENCODER, KIND_DECODER };
static const char *const kinds[] = {
    [KIND_UNSET] = "", [KIND_CROSS] = "cross", [KIND_ENCODER] = "encoder", [KIND_DECODER] = "decoder", NULL};
enum { LEVEL_WORD, LEVEL_SUBWORD };
static const char *const levels[] = {[LEVEL_WORD] = "word", [LEVEL_SUBWORD] = "subword", NULL};

static const char *const themes[] = {
    [AT_THEME_AUTO] = "auto", [AT_THEME_LIGHT] = "light", [AT_THEME_DARK] = "dark", NULL};

static const at_setting table[] = {
    {AT_SETTING_HEADING, .help = "The model and the text"},
    {AT_SETTING_TEXT, "model", "FILE", offsetof(show_options, model), .help = "the model file, written by attend train",
     .letter = 'm'},
    {AT_SETTING_TEXT, "target", "TEXT", offsetof(show_options, target),
     .help = "show this translation (default: the model's own)"},
    {AT_SETTING_COUNT, "beam", "N", offsetof(show_options, beam), "1", 1, 10000,
     .help = "size of the beam; 1 is greedy decoding"},
    {AT_SETTING_TEXT, "weights", "ARRAY", offsetof(show_options, weights),
     .help = "draw this array instead: [rows,columns], [heads,rows,columns] or [layers,heads,rows,columns], as attend "
             "attention takes them"},
    {AT_SETTING_TEXT, "rows", "FILE", offsetof(show_options, rows),
     .help = "with --weights: a name in each line (default: numbers)"},
    {AT_SETTING_TEXT, "columns", "FILE", offsetof(show_options, columns), .help = "the same for the columns"},

    {AT_SETTING_HEADING, .help = "Which weights"},
    {AT_SETTING_CHOICE, "kind", "KIND", offsetof(show_options, kind), .choices = kinds,
     .help = "cross: from the target to the source; encoder, decoder: inside them, which transformers have (default: "
             "cross, or decoder in a language model)"},
    {AT_SETTING_TEXT, "head", "HEAD", offsetof(show_options, head),
     .help = "average of all layers and heads, LAYER.HEAD such as 2.1, or all: each of them (default: the head that "
             "training guided, or average; of numbers in a file and of arrays all)"},
    {AT_SETTING_CHOICE, "level", "LEVEL", offsetof(show_options, level), "subword", .choices = levels,
     .help = "word: between words, which are separated by blanks; subword: between the units of the vocabularies"},

    {AT_SETTING_HEADING, .help = "The file"},
    {AT_SETTING_TEXT, "output", "FILE", offsetof(show_options, output),
     .help =
         "instead of the terminal: FILE.svg, FILE.png or FILE.pdf, a drawing; FILE.html, a page to explore all "
         "weights in a browser; or the numbers, FILE.safetensors or FILE.tsv, of all kinds without --kind, or FILE.npy",
     .letter = 'o'},
    {AT_SETTING_TEXT, "other", "MODEL", offsetof(show_options, other),
     .help = "for FILE.html: another model, whose weights for the same target the page compares"},
    {AT_SETTING_SWITCH, "gradients", .offset = offsetof(show_options, gradients),
     .help =
         "for FILE.html: gradient x attention also for a long line or a large model, a backward pass for each target "
         "unit (default: if that takes a few seconds)"},
    {AT_SETTING_SWITCH, "sums", .offset = offsetof(show_options, sums),
     .help = "draw the sums of rows and columns beside one map"},
    {AT_SETTING_TEXT, "gold", "LINKS", offsetof(show_options, gold),
     .help = "outline these links of source and target words, from 0: \"0-0 1-2 2?1\", where ? is one that is only "
             "possible"},
    {AT_SETTING_CHOICE, "theme", "THEME", offsetof(show_options, theme), "auto", .choices = themes,
     .help = "light or dark; auto: an SVG file follows its viewer, others are light"},
    {0},
};

/* ---- What is shown -------------------------------------------------------------------------------------------- */

static at_attention_kind kind_of(const show_options *o, const at_translator *translator)
{
    if (o->kind == KIND_UNSET)
        return at_translator_has_source(translator) ? AT_CROSS_ATTENTION : AT_DECODER_ATTENTION;
    return o->kind == KIND_ENCODER   ? AT_ENCODER_ATTENTION
           : o->kind == KIND_DECODER ? AT_DECODER_ATTENTION
                                     : AT_CROSS_ATTENTION;
}

static bool wants_page(const show_options *o)
{
    return o->output && ends_in(o->output, ".html");
}

/* Whether -o asks for numbers, of all kinds and heads unless some are chosen; a drawing is of one kind, like that in the
 * terminal. */
static bool wants_numbers(const show_options *o)
{
    return o->output && !is_drawing(o->output) && !wants_page(o);
}

/* *kind: an at_attention_kind; -1: all, in a file of numbers. */
static bool choose(const show_options *o, const at_translator *translator, int *kind, cli_choice *choice,
                   at_error *error)
{
    cli_head head = {0};
    *kind = wants_numbers(o) && o->kind == KIND_UNSET ? -1 : (int)kind_of(o, translator);
    choice->all = o->head ? strcmp(o->head, "all") == 0 : wants_numbers(o);
    if (choice->all)
        return true;
    if ((o->head || *kind == AT_CROSS_ATTENTION) && !head_read(o->head, "all", translator, &head, error))
        return false;
    choice->layer = head.layer;
    choice->head = head.head;
    return true;
}

/* Fails if the model has no attention of the kind, or no such head. */
static bool check_choice(const at_maps *all, int chosen, const cli_choice *choice, at_error *error)
{
    const at_map *first = at_maps_at(all, 0); /* none for a source without a unit */
    for (int kind = 0; kind < KINDS && first; kind++) {
        const cli_maps maps = maps_of_kind(all, (at_attention_kind)kind);
        if (chosen == kind && maps.layers == 0)
            return fail(error, AT_UNSUPPORTED, "this model has no attention of the kind %s; it has %s",
                        kind_name((at_attention_kind)kind), kind_name(first->kind));
        if ((chosen == kind || chosen < 0) && maps.layers && !choice_exists(&maps, choice, error))
            return false;
    }
    return true;
}

/* Draws in the terminal, or in the file that -o names. */
static bool draw(const show_options *o, show *s)
{
    at_drawing_link *links = NULL;
    s->sums = o->sums;
    s->theme = (at_theme)o->theme;
    bool good = !o->gold || at_drawing_links(o->gold, &links, &s->link_count, s->error);
    s->links = links;
    good = good && (o->output ? show_save(s, o->output) : show_print(s));
    free(links);
    return good;
}

/* ---- The command ---------------------------------------------------------------------------------------------- */

static bool check_file(const show_options *o, at_error *error)
{
    if (o->output && !maps_file_known(o->output, error))
        return false;
    if (o->weights && wants_numbers(o))
        return fail(error, AT_USAGE, "with --weights -o is a name that ends in .svg, .png, .pdf or .html, not '%s'",
                    o->output);
    if (wants_page(o) && (o->head || o->kind != KIND_UNSET || o->sums || o->theme != AT_THEME_AUTO))
        return fail(error, AT_USAGE, "the page '%s' has every kind and head, so %s is not for it", o->output,
                    o->head                 ? "--head"
                    : o->kind != KIND_UNSET ? "--kind"
                    : o->sums               ? "--sums"
                                            : "--theme");
    if (wants_page(o))
        return true;
    if (o->other)
        return fail(error, AT_USAGE, "--other is for a page that compares two models: add -o FILE.html");
    if (o->gradients)
        return fail(error, AT_USAGE, "--gradients is for a page: add -o FILE.html");
    if (o->gold && o->model && o->level == LEVEL_SUBWORD)
        return fail(error, AT_USAGE, "--gold links words; add --level word");
    if (o->output && is_drawing(o->output))
        return true;
    return (!o->sums && !o->gold && o->theme == AT_THEME_AUTO) ||
           fail(error, AT_USAGE, "%s is for a drawing in a file: add -o FILE.svg",
                o->sums   ? "--sums"
                : o->gold ? "--gold"
                          : "--theme");
}

static bool check_arrays(const show_options *o, int word_count, at_error *error)
{
    if (o->model || word_count > 0)
        return fail(error, AT_USAGE, "--weights draws an array, so it takes neither a model nor a text");
    if (o->target || o->kind != KIND_UNSET || o->other || o->gradients)
        return fail(error, AT_USAGE, "%s is for a model, not for --weights",
                    o->target      ? "--target"
                    : o->other     ? "--other"
                    : o->gradients ? "--gradients"
                                   : "--kind");
    return check_file(o, error);
}

static bool check(const show_options *o, int word_count, char **words, at_error *error)
{
    if (o->rows || o->columns)
        return fail(error, AT_USAGE, "%s names the %s of --weights, which is not given",
                    o->rows ? "--rows" : "--columns", o->rows ? "rows" : "columns");
    if (!o->model)
        return fail(error, AT_USAGE, "attend show needs a model: attend show MODEL TEXT, or -m MODEL");
    if (word_count == 0)
        return fail(error, AT_USAGE, "attend show needs a text, in quotes if it has blanks");
    if (word_count > 1)
        return fail(error, AT_USAGE, "attend show takes one text, in quotes if it has blanks, so '%s' is too much",
                    words[1]);
    if (strchr(words[0], '\n') || (o->target && strchr(o->target, '\n')))
        return fail(error, AT_USAGE, "attend show takes one line of text");
    if (o->output && at_file_same(o->model, o->output))
        return fail(error, AT_USAGE, "-o would write over the model '%s'; name another file", o->model);
    return check_file(o, error);
}

/* The maps of the text; a language model reads it and translates nothing. */
static at_maps *maps_of_text(const show_options *o, at_translator *translator, const char *text, at_error *error)
{
    const at_search_settings settings = {.beam = o->beam};
    const at_line line = {text, strlen(text)}, target = {o->target, o->target ? strlen(o->target) : 0};
    at_maps *maps = NULL;
    if (at_translator_has_source(translator))
        maps = at_maps_new(translator, &settings, &line, o->target ? &target : NULL, error);
    else if (o->target)
        fail(error, AT_USAGE, "this is a language model: it reads its text and has no --target");
    else
        maps = at_maps_new(translator, &settings, NULL, &line, error);
    if (!maps || o->level == LEVEL_SUBWORD || wants_page(o) ||
        at_translator_has_pictures(translator)) /* cells are no words */
        return maps;
    at_maps *words = at_maps_words(maps, error);
    at_maps_free(maps);
    return words;
}

/* The picture that the map is drawn over; a model of features has none. */
static bool read_picture(const show_options *o, const at_translator *translator, const char *text, at_array **picture,
                         show *s)
{
    at_error why = {0};
    const at_line line = {text, strlen(text)};
    if (o->sums || o->gold)
        return fail(s->error, AT_USAGE, "--sums and --gold are for texts, not for pictures");
    *picture = at_translator_picture(translator, line, &s->grid_rows, &s->grid_columns, &why);
    s->picture = *picture;
    if (!*picture && why.code != AT_UNSUPPORTED)
        *s->error = why;
    return s->error->code == AT_OK;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* What the other model attends to when it is given the same target. */
static at_maps *maps_of_other(const show_options *o, const at_maps *maps, const char *text, at_error *error)
{
    const char *target = at_maps_target(maps);
    const at_line source = {text, strlen(text)}, forced = {target, strlen(target)};
    at_translator *other = at_translator_load(o->other, error);
    const bool has_source = other && at_translator_has_source(other);
    at_maps *found = NULL;
    if (other && at_translator_has_pictures(other))
        fail(error, AT_UNSUPPORTED, "--other compares models of texts, not of pictures");
    else if (other)
        found = at_maps_new(other, &(at_search_settings){0}, has_source ? &source : NULL,
                            has_source ? &forced : &source, error);
    at_translator_free(other);
    if (!found)
        fail_under(error, "--other");
    return found;
}

#define QUICK 5e10 /* multiplications and additions: a few seconds */

/* What gradients tell of the line, of a transformer. */
static bool measure_line(const show_options *o, at_translator *translator, const at_maps *maps, const char *text,
                         at_maps **relevance, at_head_list **heads, at_error *error)
{
    at_map_vectors vectors;
    if (!at_maps_vectors(maps, 0, &vectors)) /* it is no transformer, or there are no units */
        return true;
    const char *target = at_maps_target(maps);
    const at_line source = {text, strlen(text)}, forced = {target, strlen(target)};
    const bool has_source = at_translator_has_source(translator);
    if (forced.size > 0 && !(*heads = at_heads_measure(translator, &(at_search_settings){0},
                                                       has_source ? &source : NULL, &forced, 1, error)))
        return false;
    if (o->gradients || at_maps_relevance_cost(maps, translator) <= QUICK)
        *relevance = at_maps_relevance(maps, translator, error);
    return error->code == AT_OK;
}

/* The page of a text, or with `maps` NULL of an array. */
static bool explore_text(const show_options *o, at_translator *translator, const at_maps *maps, const char *text,
                         const show *s)
{
    at_maps *other = NULL, *relevance = NULL;
    at_head_list *heads = NULL;
    at_beams *beams = NULL;
    char title[300];
    at_drawing_link *links = NULL;
    explore e = {.title = title, .picture = s->picture, .grid_rows = s->grid_rows, .grid_columns = s->grid_columns};
    snprintf(title, sizeof title, "Attention: %s", name_of(maps ? o->model : o->weights));
    if (maps)
        e.source = text;
    bool good = !o->gold || at_drawing_links(o->gold, &links, &e.link_count, s->error);
    e.links = links;
    if (good && maps && o->other) {
        good = (other = maps_of_other(o, maps, text, s->error));
        e.other = name_of(o->other);
        e.other_maps = other;
    }
    if (good && maps)
        good = measure_line(o, translator, maps, text, &relevance, &heads, s->error);
    if (good && maps && o->beam > 1 && !o->target && !s->picture && at_translator_has_source(translator))
        good = (beams = at_beams_new(translator, &(at_search_settings){.beam = o->beam}, &(at_line){text, strlen(text)},
                                     s->error));
    e.beams = beams;
    e.relevance = relevance;
    e.heads = heads;
    if (good)
        good = maps ? explore_line(&e, maps, o->output, s->error) : explore_array(&e, &s->maps, o->output, s->error);
    at_beams_free(beams);
    at_head_list_free(heads);
    at_maps_free(relevance);
    at_maps_free(other);
    free(links);
    return good;
}

static void show_text(const show_options *o, int word_count, char **words, at_error *error)
{
    show s = {.error = error};
    int kind = 0;
    at_translator *translator = check(o, word_count, words, error) ? at_translator_load(o->model, error) : NULL;
    at_maps *maps = translator && choose(o, translator, &kind, &s.choice, error)
                        ? maps_of_text(o, translator, words[0], error)
                        : NULL;
    bool good = maps && check_choice(maps, kind, &s.choice, error);
    if (good && wants_numbers(o))
        good = maps_write(maps, kind, &s.choice, o->output, error);
    if (good && kind >= 0)
        s.maps = maps_of_kind(maps, (at_attention_kind)kind);
    s.row_title = kind == AT_CROSS_ATTENTION ? "target" : "attending";
    s.column_title = kind == AT_CROSS_ATTENTION ? "source" : "attended";
    const bool draws = s.maps.layers > 0 && !wants_numbers(o); /* a source without a unit has no map */
    at_array *picture = NULL;
    if (good && draws && at_translator_has_pictures(translator))
        good = read_picture(o, translator, words[0], &picture, &s);
    if (good && draws && wants_page(o))
        good = explore_text(o, translator, maps, words[0], &s);
    else if (good && draws && o->output)
        good = draw(o, &s);
    if (good)
        printf("%s\nlog-probability %.4f\n", at_maps_target(maps), at_maps_score(maps));
    if (good && draws && !o->output)
        draw(o, &s);
    at_array_free(picture);
    at_maps_free(maps);
    at_translator_free(translator);
}

static void show_array(const show_options *o, int word_count, at_error *error)
{
    show s = {.error = error};
    array_maps arrays = {0};
    if (check_arrays(o, word_count, error) && array_maps_read(&arrays, o->weights, o->rows, o->columns, error) &&
        array_maps_choose(&arrays, o->head, &s.choice, error)) {
        s.maps = arrays.maps;
        if (wants_page(o))
            explore_text(o, NULL, NULL, NULL, &s);
        else
            draw(o, &s);
    }
    array_maps_free(&arrays);
}

static int run(void *options, int word_count, char **words)
{
    show_options *o = options;
    at_error error = {0};
    if (word_count == 2 && !o->model && !o->weights)
        model_word("show", &o->model, &word_count, &words, &error);
    if (error.code == AT_OK && o->weights)
        show_array(o, word_count, &error);
    else
        show_text(o, word_count, words, &error);
    return report(&error);
}

const cli_command command_show = {
    .name = "show",
    .words = "[MODEL] TEXT",
    .most_words = INT_MAX,
    .line = "draw a trained model's attention weights for a text, or those of an array",
    .text =
        "Translates the text, or takes the translation of --target, and draws the attention weights. Of the kind "
        "cross, "
        "columns are source units and rows target units; </s> is the end of the line. Of the kinds encoder and "
        "decoder, "
        "rows and columns are the units that are read; <s> is the beginning. A language model reads the text itself. "
        "With --weights it draws any array.",
    .examples = "  attend show -m de-en.safetensors \"ich mochte ein bier\"\n"
                "  attend show -m de-en.safetensors \"ich mochte ein bier\" --target \"i want a beer\"\n"
                "  attend show -m de-en.safetensors \"ich mochte ein bier\" --kind encoder --head all\n"
                "  attend show -m de-en.safetensors \"ich mochte ein bier\" -o weights.svg\n"
                "  attend show -m de-en.safetensors \"ich mochte ein bier\" -o weights.html\n"
                "  attend show -m de-en.safetensors \"ich mochte ein bier\" -o weights.safetensors\n"
                "  attend show --weights w.npy --rows target.txt --columns source.txt -o w.pdf",
    .options = table,
    .size = sizeof(show_options),
    .run = run,
};
