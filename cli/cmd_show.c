/* attend show: a translation and where the attention was, drawn in the terminal or written to a file. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "heads.h"
#include "line_output.h"
#include "maps.h"
#include "text_file.h"

typedef struct show_options {
    cli_common common;
    const char *model, *target, *head, *output;
    int kind, level;
    int64_t beam;
} show_options;

enum { KIND_UNSET, KIND_CROSS, KIND_ENCODER, KIND_DECODER };
static const char *const kinds[] = {
    [KIND_UNSET] = "", [KIND_CROSS] = "cross", [KIND_ENCODER] = "encoder", [KIND_DECODER] = "decoder", NULL};
enum { LEVEL_WORD, LEVEL_SUBWORD };
static const char *const levels[] = {[LEVEL_WORD] = "word", [LEVEL_SUBWORD] = "subword", NULL};

static const at_setting table[] = {
    {AT_SETTING_HEADING, .help = "The model and the text"},
    {AT_SETTING_TEXT, "model", "FILE", offsetof(show_options, model), .help = "the model file, written by attend train",
     .letter = 'm'},
    {AT_SETTING_TEXT, "target", "TEXT", offsetof(show_options, target),
     .help = "show this translation (default: the model's own)"},
    {AT_SETTING_COUNT, "beam", "N", offsetof(show_options, beam), "1", 1, 10000,
     .help = "size of the beam; 1 is greedy decoding"},

    {AT_SETTING_HEADING, .help = "Which weights"},
    {AT_SETTING_CHOICE, "kind", "KIND", offsetof(show_options, kind), .choices = kinds,
     .help = "cross: from the target to the source; encoder, decoder: inside them, which transformers have (default: "
             "cross, or decoder in a language model)"},
    {AT_SETTING_TEXT, "head", "HEAD", offsetof(show_options, head),
     .help = "average of all layers and heads, LAYER.HEAD such as 2.1, or all: each of them (default: the head that "
             "training guided, or average; with -o all)"},
    {AT_SETTING_CHOICE, "level", "LEVEL", offsetof(show_options, level), "subword", .choices = levels,
     .help = "word: between words, which are separated by blanks; subword: between the units of the vocabularies"},
    {AT_SETTING_TEXT, "output", "FILE", offsetof(show_options, output),
     .help =
         "write the weights to FILE.safetensors or FILE.tsv, of all kinds without --kind, or to FILE.npy instead of "
         "drawing them",
     .letter = 'o'},
    {0},
};

/* ---- What is shown -------------------------------------------------------------------------------------------- */

typedef struct show {
    const show_options *options;
    const at_maps *maps;
    int kind; /* an at_attention_kind; -1: all, in a file */
    cli_choice choice;
    at_error *error;
} show;

static at_attention_kind kind_of(const show_options *o, const at_translator *translator)
{
    if (o->kind == KIND_UNSET)
        return at_translator_has_source(translator) ? AT_CROSS_ATTENTION : AT_DECODER_ATTENTION;
    return o->kind == KIND_ENCODER   ? AT_ENCODER_ATTENTION
           : o->kind == KIND_DECODER ? AT_DECODER_ATTENTION
                                     : AT_CROSS_ATTENTION;
}

static bool choose(show *s, const at_translator *translator)
{
    const show_options *o = s->options;
    cli_head head = {0};
    s->kind = o->output && o->kind == KIND_UNSET ? -1 : (int)kind_of(o, translator);
    s->choice.all = o->head ? strcmp(o->head, "all") == 0 : o->output != NULL;
    if (s->choice.all)
        return true;
    if ((o->head || s->kind == AT_CROSS_ATTENTION) && !head_read(o->head, "all", translator, &head, s->error))
        return false;
    s->choice.layer = head.layer;
    s->choice.head = head.head;
    return true;
}

/* Fails if the model has no attention of the kind, or no such head. */
static bool check_choice(const show *s)
{
    const at_map *first = at_maps_at(s->maps, 0); /* none for a source without a unit */
    for (int kind = 0; kind < KINDS && first; kind++) {
        const cli_maps maps = maps_of_kind(s->maps, (at_attention_kind)kind);
        if (s->kind == kind && maps.layers == 0)
            return fail(s->error, AT_UNSUPPORTED, "this model has no attention of the kind %s; it has %s",
                        kind_name((at_attention_kind)kind), kind_name(first->kind));
        if ((s->kind == kind || s->kind < 0) && maps.layers && !choice_exists(&maps, &s->choice, s->error))
            return false;
    }
    return true;
}

/* ---- Drawing -------------------------------------------------------------------------------------------------- */

/* The names of one side, to be released with free; a blank as a name would not be seen. */
static const char **shown_names(const char *const *names, int64_t count, at_error *error)
{
    const char **shown = malloc((size_t)(count + 1) * sizeof *shown);
    if (!shown)
        fail(error, AT_MEMORY, "out of memory for the picture");
    for (int64_t i = 0; shown && i < count; i++)
        shown[i] = strcmp(names[i], " ") == 0 ? "␣" : names[i];
    return shown;
}

static bool print_text(char *text)
{
    if (text)
        printf("\n%s", text);
    at_text_free(text);
    return text;
}

static bool draw_one(const show *s, const cli_maps *maps, const char **rows, const char **columns)
{
    const at_map *map = maps->map[0];
    float *weights = choice_weights(maps, &s->choice, s->error);
    at_heatmap picture = {
        .rows = map->rows, .columns = map->columns, .values = weights, .row_names = rows, .column_names = columns};
    fit_terminal(&picture, 0);
    const bool good = weights && print_text(at_heatmap_text(&picture, s->error));
    free(weights);
    return good;
}

static bool print_names(const char *what, const char *const *names, int64_t count, at_error *error)
{
    text_file text;
    const int width = terminal_width();
    if (!text_open(&text, error))
        return false;
    for (int64_t i = 0; i < count; i++)
        fprintf(text.stream, "%s%s", i ? " " : "", names[i]);
    char *taken = text_take(&text, error);
    if (!taken)
        return false;
    printf("%-8s ", what);
    print_wrapped(stdout, taken, 9, width > 0 ? width : 100, 9);
    free(taken);
    return true;
}

/* The heads of one layer as small maps. */
static bool draw_layer(const show *s, const at_map *map)
{
    at_heatmap *pictures = calloc((size_t)map->heads, sizeof *pictures);
    char(*numbers)[24] = calloc((size_t)map->heads, sizeof *numbers);
    const char **titles = calloc((size_t)map->heads, sizeof *titles);
    bool good = pictures && numbers && titles;
    if (!good)
        fail(s->error, AT_MEMORY, "out of memory for the pictures");
    for (int head = 0; good && head < map->heads; head++) {
        pictures[head] = (at_heatmap){
            .rows = map->rows, .columns = map->columns, .values = map->weights + head * map->rows * map->columns};
        fit_terminal(&pictures[head], 0);
        snprintf(numbers[head], sizeof numbers[head], "%d.%d", map->layer, head + 1);
        titles[head] = numbers[head];
    }
    good = good && print_text(at_heatmaps_text(pictures, titles, map->heads, s->error));
    free(titles);
    free(numbers);
    free(pictures);
    return good;
}

static bool draw_all(const show *s, const cli_maps *maps, const char **rows, const char **columns)
{
    putchar('\n');
    bool good = print_names("rows", rows, maps->map[0]->rows, s->error) &&
                print_names("columns", columns, maps->map[0]->columns, s->error);
    for (int l = 0; good && l < maps->layers; l++)
        good = draw_layer(s, maps->map[l]);
    return good;
}

static bool draw(const show *s)
{
    const cli_maps maps = maps_of_kind(s->maps, (at_attention_kind)s->kind);
    if (maps.layers == 0) /* a source without a unit */
        return true;
    const at_map *map = maps.map[0];
    const char **rows = shown_names(map->row_names, map->rows, s->error);
    const char **columns = shown_names(map->column_names, map->columns, s->error);
    const bool good = rows && columns && (s->choice.all ? draw_all : draw_one)(s, &maps, rows, columns);
    free(rows);
    free(columns);
    return good;
}

/* ---- The command ---------------------------------------------------------------------------------------------- */

static bool check(const show_options *o, int word_count, char **words, at_error *error)
{
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
    return !o->output || maps_file_known(o->output, error);
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
    if (!maps || o->level == LEVEL_SUBWORD || at_translator_has_pictures(translator)) /* cells are no words */
        return maps;
    at_maps *words = at_maps_words(maps, error);
    at_maps_free(maps);
    return words;
}

static int run(void *options, int word_count, char **words)
{
    show_options *o = options;
    at_error error = {0};
    if (word_count == 2 && !o->model)
        model_word("show", &o->model, &word_count, &words, &error);
    show s = {.options = o, .error = &error};
    at_translator *translator = check(o, word_count, words, &error) ? at_translator_load(o->model, &error) : NULL;
    at_maps *maps = translator && choose(&s, translator) ? maps_of_text(o, translator, words[0], &error) : NULL;
    s.maps = maps;
    if (maps && check_choice(&s) && (!o->output || maps_write(maps, s.kind, &s.choice, o->output, &error))) {
        printf("%s\nlog-probability %.4f\n", at_maps_target(maps), at_maps_score(maps));
        if (!o->output)
            draw(&s);
    }
    at_maps_free(maps);
    at_translator_free(translator);
    return report(&error);
}

const cli_command command_show = {
    .name = "show",
    .words = "[MODEL] TEXT",
    .most_words = INT_MAX,
    .line = "draw a trained model's attention weights for a text",
    .text =
        "Translates the text, or takes the translation of --target, and draws the attention weights. Of the kind "
        "cross, "
        "columns are source units and rows target units; </s> is the end of the line. Of the kinds encoder and "
        "decoder, "
        "rows and columns are the units that are read; <s> is the beginning. A language model reads the text itself.",
    .examples = "  attend show -m de-en.safetensors \"ich mochte ein bier\"\n"
                "  attend show -m de-en.safetensors \"ich mochte ein bier\" --target \"i want a beer\"\n"
                "  attend show -m de-en.safetensors \"ich mochte ein bier\" --kind encoder --head all\n"
                "  attend show -m de-en.safetensors \"ich mochte ein bier\" -o weights.safetensors",
    .options = table,
    .size = sizeof(show_options),
    .run = run,
};
