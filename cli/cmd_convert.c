/* attend convert: a model of any known format as a file of attend. */
#include "commands.h"
#include "line_output.h"

typedef struct convert_options {
    cli_common common;
    const char *model, *output;
} convert_options;

static void convert(const convert_options *o, at_error *error)
{
    at_translator *translator = at_translator_load(o->model, error);
    if (translator)
        at_translator_write(translator, o->output, error);
    at_translator_free(translator);
}

static int run(void *options, int word_count, char **words)
{
    convert_options *o = options;
    at_error error = {0};
    if (!model_word("convert", &o->model, &word_count, &words, &error))
        return report(&error);
    if (!o->model)
        fail(&error, AT_USAGE, "attend convert needs a model: attend convert MODEL -o FILE");
    else if (!o->output)
        fail(&error, AT_USAGE, "attend convert needs -o FILE, the model to write");
    else
        convert(o, &error);
    return report(&error);
}

static const at_setting table[] = {
    {AT_SETTING_HEADING, .help = "Converting"},
    {AT_SETTING_TEXT, "model", "FILE", offsetof(convert_options, model), .help = "the same as MODEL", .letter = 'm'},
    {AT_SETTING_TEXT, "output", "FILE", offsetof(convert_options, output), .help = "the model to write", .letter = 'o'},
    {0},
};

const cli_command command_convert = {
    .name = "convert",
    .words = "MODEL",
    .most_words = 1,
    .line = "write a model of any known format as a file of attend",
    .text = "Reads a model of attend or of another program, whatever attend info knows, and writes it as a file of "
            "attend. The new file translates with the same bits.",
    .examples = "  attend convert opus-mt/ctranslate2 -o de-en.safetensors",
    .options = table,
    .size = sizeof(convert_options),
    .run = run,
};
