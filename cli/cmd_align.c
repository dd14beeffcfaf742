/* attend align: which source word each target word came from, by forced decoding. */
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "links.h"

typedef struct align_options {
    cli_common common;
    const char *model, *source, *target, *level;
    int64_t batch_size;
    bool scores;
} align_options;

static const cli_option table[] = {
    {OPTION_HEADING, .help = "The model and the pairs of lines"},
    {OPTION_TEXT, "model", "FILE", offsetof(align_options, model), .help = "what attend train left", .letter = 'm'},
    {OPTION_TEXT, "source", "FILE", offsetof(align_options, source), .help = "lines to translate from; - for stdin"},
    {OPTION_TEXT, "target", "FILE", offsetof(align_options, target), .help = "their translations, line by line"},
    {OPTION_NUMBER, "batch-size", "N", offsetof(align_options, batch_size), "64", 1, 100000,
     .help = "pairs at a time; the output is the same for any number"},

    {OPTION_HEADING, .help = "What is written"},
    {OPTION_TEXT, "level", "LEVEL", offsetof(align_options, level), "word",
     .help = "word: links of words, what stands between blanks; subword: of the model's units, such as characters"},
    {OPTION_FLAG, "scores", .place = offsetof(align_options, scores),
     .help = "after the links: ||| and the log-probability of the target"},
    {0},
};

typedef struct job {
    const align_options *options;
    const at_line_list *source, *target;
    at_error *error;
    bool by_unit;
} job;

static bool give(void *context, int64_t line, const at_found *found)
{
    job *j = context;
    const at_line lines[] = {j->source->line[line], j->target->line[line]};
    const at_hypothesis *h = &found->best[0];
    bool linked = h->links; /* none for a source without a unit */
    bool good =
        !linked || (j->by_unit ? print_links(stdout, h->links, h->count) : print_word_links(stdout, found, lines));
    if (!good)
        return fail(j->error, AT_FAILED, "out of memory for an alignment");
    if (j->options->scores)
        printf("%s||| %.4f", linked ? " " : "", h->score);
    putchar('\n');
    return !ferror(stdout) || fail(j->error, AT_FAILED, "cannot write to the standard output");
}

static bool check(const align_options *o, at_error *error)
{
    if (!o->model || !o->source || !o->target)
        return fail(error, AT_USAGE, "attend align needs %s",
                    !o->model    ? "a model: -m FILE"
                    : !o->source ? "--source FILE"
                                 : "--target FILE");
    if (strcmp(o->level, "word") != 0 && strcmp(o->level, "subword") != 0)
        return fail(error, AT_USAGE, "--level is word or subword, not '%s'", o->level);
    return true;
}

/* The lines as at_align takes them: texts, then sizes. */
static bool spread(const at_line_list *list, const char ***texts, size_t **sizes, at_error *error)
{
    *texts = malloc((size_t)(list->count + 1) * sizeof **texts);
    *sizes = malloc((size_t)(list->count + 1) * sizeof **sizes);
    if (!*texts || !*sizes)
        return fail(error, AT_FAILED, "out of memory for the lines");
    for (int64_t i = 0; i < list->count; i++) {
        (*texts)[i] = list->line[i].text;
        (*sizes)[i] = list->line[i].size;
    }
    return true;
}

static bool align(job *j, at_translator *translator)
{
    const char **sources = NULL, **targets = NULL;
    size_t *source_sizes = NULL, *target_sizes = NULL;
    at_search_settings settings = {.batch = j->options->batch_size, .wants_weights = true};
    bool good = spread(j->source, &sources, &source_sizes, j->error) &&
                spread(j->target, &targets, &target_sizes, j->error) &&
                at_align(translator, &settings, sources, source_sizes, targets, target_sizes, j->source->count, give, j,
                         j->error);
    free(sources);
    free(targets);
    free(source_sizes);
    free(target_sizes);
    return good;
}

static int run(void *options, int word_count, char **words)
{
    (void)word_count;
    (void)words;
    const align_options *o = options;
    at_error error = {0};
    at_translator *translator = check(o, &error) ? at_translator_load(o->model, &error) : NULL;
    at_line_list *source = translator ? at_line_list_read(o->source, &error) : NULL;
    at_line_list *target = source ? at_line_list_read(o->target, &error) : NULL;
    job j = {o, source, target, &error, strcmp(o->level, "subword") == 0};
    if (target && source->count != target->count)
        fail(&error, AT_FAILED, "'%s' has %lld lines and '%s' has %lld; they must be pairs", o->source,
             (long long)source->count, o->target, (long long)target->count);
    else if (target)
        align(&j, translator);
    at_line_list_free(target);
    at_line_list_free(source);
    at_translator_free(translator);
    return report(&error);
}

const cli_command command_align = {
    .name = "align",
    .words = "",
    .line = "align translations with their sources by a trained model",
    .text =
        "Feeds the decoder the translations that are there and writes, line by line, where its attention was: pairs "
        "source-target, counted from 0, like 0-0 1-2 2-1.",
    .examples = "  attend align -m de-en.safetensors --source test.de --target test.en > links.txt",
    .options = table,
    .size = sizeof(align_options),
    .run = run,
};
