/* attend calibrate: how far the confidence of translations can be trusted, and models whose confidence can be. */
#include "commands.h"
#include "line_output.h"

typedef struct calibrate_options {
    cli_common common;
    const char *model, *source, *target, *output;
    int64_t beam, batch_size;
    double length_penalty;
    bool check;
} calibrate_options;

static const at_setting table[] = {
    {AT_SETTING_HEADING, .help = "The model and the pairs of lines"},
    {AT_SETTING_TEXT, "model", "FILE", offsetof(calibrate_options, model), .help = "the model file", .letter = 'm'},
    {AT_SETTING_TEXT, "source", "FILE", offsetof(calibrate_options, source),
     .help = "source lines that the model was not trained on"},
    {AT_SETTING_TEXT, "target", "FILE", offsetof(calibrate_options, target),
     .help = "their translations by people, one for each source line"},
    {AT_SETTING_COUNT, "batch-size", "N", offsetof(calibrate_options, batch_size), "32", 1, 100000,
     .help = "lines in a batch; the output is the same for any number"},

    {AT_SETTING_HEADING, .help = "Search, as it will be when the confidence is used"},
    {AT_SETTING_COUNT, "beam", "N", offsetof(calibrate_options, beam), "1", 1, 10000,
     .help = "size of the beam; 1 is greedy decoding"},
    {AT_SETTING_NUMBER, "length-penalty", "A", offsetof(calibrate_options, length_penalty), "0", -100, 100,
     .help = "as in attend translate"},

    {AT_SETTING_HEADING, .help = "What to do"},
    {AT_SETTING_SWITCH, "check", .offset = offsetof(calibrate_options, check),
     .help = "fit nothing: measure the calibration that the model has, on pairs that it was not fitted to"},
    {AT_SETTING_TEXT, "output", "FILE", offsetof(calibrate_options, output),
     .help = "write the model with its calibration", .letter = 'o'},
    {0},
};

static bool check(const calibrate_options *o, at_error *error)
{
    if (!o->model || !o->source || !o->target)
        return fail(error, AT_USAGE, "attend calibrate needs %s",
                    !o->model ? "a model: attend calibrate MODEL, or -m MODEL" : "--source FILE and --target FILE");
    if (o->check && o->output)
        return fail(error, AT_USAGE, "--check fits nothing, so there is no model to write: leave out -o");
    if (o->output && at_file_same(o->output, o->model))
        return fail(error, AT_USAGE, "-o '%s' is the model that is read; choose another name", o->output);
    return true;
}

static bool same_count(const calibrate_options *o, const at_line_list *source, const at_line_list *target,
                       at_error *error)
{
    return source->count == target->count ||
           fail(error, AT_FORMAT, "'%s' has %lld lines and '%s' has %lld; they must be pairs", o->source,
                (long long)source->count, o->target, (long long)target->count);
}

static void print_row(const char *name, int64_t pairs, int64_t units, double confidence, double share)
{
    printf("%-10s  %8lld  %9lld  %10.3f  %8.3f\n", name, (long long)pairs, (long long)units, confidence, share);
}

static void print_report(const at_calibration *report)
{
    printf("%-10s  %8s  %9s  %10s  %8s\n", "confidence", "pairs", "units", "mean", "right");
    for (int i = 0; i < AT_CONFIDENCE_BINS; i++) {
        const at_confidence_bin *bin = &report->bin[i];
        char name[24];
        snprintf(name, sizeof name, "%.1f to %.1f", (double)i / AT_CONFIDENCE_BINS,
                 (double)(i + 1) / AT_CONFIDENCE_BINS);
        if (bin->pairs > 0)
            print_row(name, bin->pairs, bin->units, bin->confidence, bin->share);
    }
    print_row("all", report->pairs, report->units, report->confidence, report->share);
    printf("\nconfidence = 1 / (1 + exp(-(%.4f + %.4f x))), x the mean log-probability of the units\n", report->offset,
           report->slope);
    printf("expected calibration error %.4f\n", report->error);
}

static void calibrate(const calibrate_options *o, at_translator *translator, at_error *error)
{
    at_line_list *target = at_line_list_read(o->target, error);
    at_line_list *source = target ? at_translator_sources(translator, o->source, error) : NULL;
    const at_search_settings search = {.beam = o->beam, .batch = o->batch_size, .length_penalty = o->length_penalty};
    at_calibration report;
    if (source && same_count(o, source, target, error) &&
        at_translator_calibrate(translator, &search, source->line, target->line, source->count, !o->check, &report,
                                error)) {
        if (report.empty && !o->common.quiet)
            tell_line("attend: %lld pair%s with an empty side, the first in line %lld, left out",
                      (long long)report.empty, report.empty == 1 ? "" : "s", (long long)report.first_empty);
        if (!o->output || at_translator_write(translator, o->output, error))
            print_report(&report);
    }
    at_line_list_free(source);
    at_line_list_free(target);
}

static int run(void *options, int word_count, char **words)
{
    calibrate_options *o = options;
    at_error error = {0};
    at_translator *translator = NULL;
    if (model_word("calibrate", &o->model, &word_count, &words, &error) && check(o, &error))
        translator = at_translator_load(o->model, &error);
    if (translator)
        calibrate(o, translator, &error);
    at_translator_free(translator);
    return report(&error);
}

const cli_command command_calibrate = {
    .name = "calibrate",
    .words = "[MODEL]",
    .most_words = 1,
    .line = "fit the confidence of a model's translations to what is right, and measure it",
    .text = "Translates the source lines and counts how many units of each translation stand in the target line, too. "
            "The share of them is what a confidence tells: of 100 units with a confidence of 0.7, about 70 are in a "
            "person's translation. It is computed from the model's own probabilities by a curve with two numbers, "
            "which are fitted here and kept in the model file; attend serve gives it with its answers. The table has "
            "the mean confidence and the measured share (right) of the translations by their confidence, and the "
            "expected calibration error is the mean difference of the two.",
    .examples = "  attend calibrate -m de-en.safetensors --source val.de --target val.en -o calibrated.safetensors\n"
                "  attend calibrate -m calibrated.safetensors --source test.de --target test.en --check",
    .options = table,
    .size = sizeof(calibrate_options),
    .run = run,
};
