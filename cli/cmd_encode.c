/* attend encode: the encoder alone, features of lines as arrays. */
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "line_output.h"
#include "long_lines.h"
#include "outputs.h"

typedef struct encode_options {
    cli_common common;
    const char *model, *input, *output;
    int64_t batch_size, max_source;
    double rank_timeout;
    bool mean;
} encode_options;

static const at_setting table[] = {
    {AT_SETTING_HEADING, .help = "The model and the arrays"},
    {AT_SETTING_TEXT, "model", "FILE", offsetof(encode_options, model),
     .help = "the model file, written by attend train", .letter = 'm'},
    {AT_SETTING_TEXT, "input", "FILE", offsetof(encode_options, input),
     .help = "the lines to encode (default: the standard input)", .letter = 'i'},
    {AT_SETTING_TEXT, "output", "FILE", offsetof(encode_options, output),
     .help = "the file to write: FILE.safetensors or FILE.npy", .letter = 'o'},
    {AT_SETTING_SWITCH, "mean", .offset = offsetof(encode_options, mean),
     .help = "one array [lines,d] with the mean of each line's units; a line without a unit has zeros"},
    {AT_SETTING_COUNT, "batch-size", "N", offsetof(encode_options, batch_size), "64", 1, 100000,
     .help = "lines in a batch; the arrays are the same for any number"},
    {AT_SETTING_COUNT, "max-source", "N", offsetof(encode_options, max_source), NULL, 1, 1 << 28,
     .help = "encode only the first N units of a longer line, and say so (default: all)"},
    RANK_TIMEOUT(encode_options),
    {0},
};

typedef struct job {
    const encode_options *options;
    bool is_npy;
    int64_t lines;
    at_tensors *tensors; /* a line each; or */
    at_array *array;     /* the only line, or with --mean all of them */
    at_error *error;
    long_lines long_lines;
} job;

static void note_long(void *context, int64_t line, int64_t units, int64_t read)
{
    job *j = context;
    long_lines_note(&j->long_lines, line, units, read);
}

/* Features are added in double, in the order of the units. */
static bool add_mean(job *j, int64_t line, const at_result *result)
{
    const int64_t d = result->feature_size;
    if (!result->features)
        return true;
    if (!j->array)
        j->array = at_array_new(AT_F32, 2, (int64_t[]){j->lines, d}, j->error);
    for (int64_t i = 0; j->array && i < d; i++) {
        double sum = 0;
        for (int64_t unit = 0; unit < result->source_units; unit++)
            sum += (double)result->features[unit * d + i];
        ((float *)j->array->data)[line * d + i] = (float)(sum / (double)result->source_units);
    }
    return j->array;
}

static bool store_features(void *context, int64_t line, const at_result *result)
{
    job *j = context;
    char name[32];
    if (j->options->mean)
        return add_mean(j, line, result);
    at_array view = {AT_F32, 2, {result->source_units, result->feature_size}, (void *)result->features};
    snprintf(name, sizeof name, "%lld", (long long)line + 1);
    if (!j->is_npy)
        return at_tensors_put(j->tensors, name, &view, j->error);
    j->array = at_array_new(AT_F32, 2, view.dim, j->error);
    if (j->array && result->features)
        memcpy(j->array->data, result->features, (size_t)at_array_count(&view) * sizeof(float));
    return j->array;
}

static bool check(const encode_options *o, at_error *error)
{
    if (!o->model || !o->output)
        return fail(error, AT_USAGE, "attend encode needs %s",
                    !o->model ? "a model: attend encode MODEL, or -m MODEL" : "-o FILE");
    if (!ends_in(o->output, ".npy") && !ends_in(o->output, ".safetensors"))
        return fail(error, AT_USAGE, "-o is a name that ends in .npy or .safetensors, not '%s'", o->output);
    if (at_file_same(o->model, o->output))
        return fail(error, AT_USAGE, "-o would write over the model '%s'; name another file", o->model);
    if (o->input && at_file_same(o->input, o->output))
        return fail(error, AT_USAGE, "-o would write over '%s', which is read; name another file", o->input);
    return true;
}

static bool encode(job *j, at_translator *translator, const at_line_list *lines)
{
    const encode_options *o = j->options;
    const at_search_settings settings = {
        .batch = o->batch_size, .max_source = o->max_source == UNSET ? 0 : o->max_source, .on_long = note_long};
    const bool good =
        at_encode(translator, &settings, lines ? lines->line : NULL, j->lines, store_features, j, j->error);
    if (at_process_rank() > 0)
        return good;
    if (good && (j->is_npy || o->mean) && !j->array) /* no line has a unit */
        j->array = at_array_new(AT_F32, 2, (int64_t[]){j->lines, 0}, j->error);
    if (!good || j->error->code != AT_OK)
        return false;
    if (j->is_npy)
        return at_npy_write(o->output, j->array, j->error);
    return (!o->mean || at_tensors_put(j->tensors, "mean", j->array, j->error)) &&
           at_tensors_write(j->tensors, o->output, j->error);
}

static int run(void *options, int word_count, char **words)
{
    encode_options *o = options;
    at_error error = {0};
    at_group *group = NULL;
    const bool good = at_group_join(&group, o->rank_timeout, NULL, &error) &&
                      model_word("encode", &o->model, &word_count, &words, &error) && check(o, &error);
    at_translator *translator = good ? at_translator_load(o->model, &error) : NULL;
    at_line_list *lines = translator && at_group_rank(group) == 0
                              ? at_translator_sources(translator, o->input ? o->input : "-", &error)
                              : NULL;
    job j = {.options = o, .error = &error, .long_lines.quiet = o->common.quiet};
    if (lines) {
        j.is_npy = ends_in(o->output, ".npy");
        j.lines = lines->count;
        j.tensors = at_tensors_new();
    }
    if (lines && !j.tensors)
        fail(&error, AT_MEMORY, "out of memory for the arrays");
    else if (lines && j.is_npy && !o->mean && lines->count != 1)
        fail(&error, AT_USAGE,
             "a .npy file holds one array, and there are %lld lines; take -o FILE.safetensors, or --mean",
             (long long)lines->count);
    if (at_group_agree(group, &error)) {
        at_translator_share(translator, group);
        encode(&j, translator, lines);
        at_group_agree(group, &error);
    }
    long_lines_sum(&j.long_lines);
    at_array_free(j.array);
    at_tensors_free(j.tensors);
    at_line_list_free(lines);
    at_translator_free(translator);
    return report(&error);
}

const cli_command command_encode = {
    .name = "encode",
    .words = "[MODEL]",
    .most_words = 1,
    .line = "write the output of a trained model's encoder as arrays",
    .text = "Reads lines from the standard input, or from -i, and writes the encoder's output for each, one row [d] "
            "for every unit: "
            "the output of a transformer's last layer, or the states that a recurrent model attends to. In a "
            "safetensors file the "
            "arrays [units,d] are named 1, 2, 3 and so on by their lines; with --mean there is one array [lines,d], "
            "named mean. A .npy file holds one array. All arrays are held in memory until the file is written.",
    .examples = "  attend encode -m de-en.safetensors -o features.safetensors < test.de\n"
                "  attend encode -m de-en.safetensors --mean -o sentences.npy < test.de",
    .options = table,
    .size = sizeof(encode_options),
    .run = run,
    .together = true,
};
