/* attend show: a translation and where the attention was, drawn in the terminal. */
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "heads.h"

typedef struct show_options {
    cli_common common;
    const char *model, *target, *head;
    int64_t beam;
} show_options;

static const at_setting table[] = {
    {AT_SETTING_HEADING, .help = "The model and the text"},
    {AT_SETTING_TEXT, "model", "FILE", offsetof(show_options, model), .help = "the model file, written by attend train",
     .letter = 'm'},
    {AT_SETTING_TEXT, "target", "TEXT", offsetof(show_options, target),
     .help = "draw this translation (default: the model's own)"},
    {AT_SETTING_COUNT, "beam", "N", offsetof(show_options, beam), "1", 1, 10000,
     .help = "size of the beam; 1 is greedy decoding"},
    {AT_SETTING_TEXT, "head", "HEAD", offsetof(show_options, head),
     .help = "the attention weights to draw: average, or LAYER.HEAD such as 2.1 (default: the head that training "
             "guided, or average)"},
    {0},
};

/* A blank as a name would not be seen. */
static void show_blanks(const char **out, const char *const *names, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = strcmp(names[i], " ") == 0 ? "␣" : names[i];
}

static bool draw(void *context, int64_t line, const at_result *result)
{
    at_error *error = context;
    (void)line;
    const at_hypothesis *h = &result->best[0];
    printf("%.*s\nlog-probability %.4f\n", (int)h->size, h->text, h->score);
    if (!h->weights)
        return true;
    const char **columns = malloc((size_t)(result->source_units + 1) * sizeof *columns);
    const char **rows = malloc((size_t)(h->count + 1) * sizeof *rows);
    char *text = NULL;
    if (columns && rows) {
        show_blanks(columns, result->source_names, result->source_units);
        show_blanks(rows, h->names, h->count + 1);
        at_heatmap map = {h->count + 1, result->source_units, h->weights, rows, columns, colour_wanted()};
        text = at_heatmap_text(&map, error);
    } else {
        fail(error, AT_MEMORY, "out of memory for the picture");
    }
    if (text)
        printf("\n%s", text);
    at_text_free(text);
    free(rows);
    free(columns);
    return text;
}

static int run(void *options, int word_count, char **words)
{
    const show_options *o = options;
    at_error error = {0};
    at_translator *translator = NULL;
    if (!o->model)
        fail(&error, AT_USAGE, "attend show needs a model: -m FILE");
    else if (word_count == 0)
        fail(&error, AT_USAGE, "attend show needs a text, in quotes if it has blanks");
    else if (strchr(words[0], '\n') || (o->target && strchr(o->target, '\n')))
        fail(&error, AT_USAGE, "attend show takes one line of text");
    else
        translator = at_translator_load(o->model, &error);
    cli_head head = {0};
    if (translator && head_read(o->head, false, translator, &head, &error)) {
        at_search_settings settings = {.beam = o->beam, .wants_weights = true, .layer = head.layer, .head = head.head};
        const at_line source = {words[0], strlen(words[0])};
        const at_line target = {o->target, o->target ? strlen(o->target) : 0};
        if (o->target)
            at_align(translator, &settings, &source, &target, 1, draw, &error, &error);
        else
            at_translate(translator, &settings, &source, 1, draw, &error, &error);
    }
    at_translator_free(translator);
    return report(&error);
}

const cli_command command_show = {
    .name = "show",
    .words = "TEXT",
    .most_words = 1,
    .line = "draw a trained model's attention weights for a text",
    .text =
        "Translates the text, or takes the translation of --target, and draws the attention weights: a column for each "
        "source unit, a row for each target unit; </s> is the end of the line.",
    .examples = "  attend show -m de-en.safetensors \"ich mochte ein bier\"\n"
                "  attend show -m de-en.safetensors \"ich mochte ein bier\" --target \"i want a beer\"",
    .options = table,
    .size = sizeof(show_options),
    .run = run,
};
