/* attend convert: a model of any known format as a file of attend, or as a folder of another program. */
#include "commands.h"
#include "line_output.h"

typedef struct convert_options {
    cli_common common;
    const char *model, *output, *to, *weights;
} convert_options;

static void convert(const convert_options *o, at_error *error)
{
    at_translator *translator = at_translator_load(o->model, error);
    if (translator && (!o->weights || at_translator_convert(translator, o->weights, error)))
        at_translator_export(translator, o->to, o->output, error);
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
    {AT_SETTING_TEXT, "to", "FORMAT", offsetof(convert_options, to), .fallback = "attend",
     .help =
         "what to write: attend (a file), ctranslate2 or hf-marian (a new folder, for CTranslate2 or for MarianMT of "
         "Hugging Face's transformers)"},
    {AT_SETTING_TEXT, "weights", "TYPE", offsetof(convert_options, weights),
     .help = "the numbers of all matrices: f32, bf16, f16 or int8 with a factor for each row; default: as they are"},
    {0},
};

const cli_command command_convert = {
    .name = "convert",
    .words = "MODEL",
    .most_words = 1,
    .line = "write a model as a file of attend, or for another program",
    .text =
        "Reads a model of attend or of another program, whatever attend info knows, and writes it as a file of "
        "attend, which translates with the same bits. --weights bf16 or f16 halves the file, the memory that the "
        "model takes and the time to read it, int8 makes them a quarter; the numbers are rounded once, and all "
        "arithmetic stays that of float32. Such a model is for use: attend train --init widens it. --to ctranslate2 "
        "and --to hf-marian write a Transformer as a folder of those programs; a model or a setting that does not "
        "fit is named, with what would fit.",
    .examples = "  attend convert ctranslate2-folder -o de-en.safetensors\n"
                "  attend convert de-en.safetensors --weights int8 -o small.safetensors\n"
                "  attend convert de-en.safetensors --to ctranslate2 --weights int8 -o de-en-ct2",
    .options = table,
    .size = sizeof(convert_options),
    .run = run,
};
