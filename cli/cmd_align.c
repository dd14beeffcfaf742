/* attend align: which source word each target word came from, by forced decoding. */
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "heads.h"
#include "line_output.h"
#include "links.h"
#include "long_lines.h"

typedef struct align_options {
    cli_common common;
    const char *model, *source, *target, *head, *gold, *output;
    int level, hard_decoding;
    int64_t batch_size, max_source;
    double rank_timeout;
    bool scores, coverage, shift;
} align_options;

enum { LEVEL_WORD, LEVEL_SUBWORD };
static const char *const levels[] = {[LEVEL_WORD] = "word", [LEVEL_SUBWORD] = "subword", NULL};

static const at_setting table[] = {
    {AT_SETTING_HEADING, .help = "The model and the pairs of lines"},
    {AT_SETTING_TEXT, "model", "FILE", offsetof(align_options, model),
     .help = "the model file, written by attend train", .letter = 'm'},
    {AT_SETTING_TEXT, "source", "FILE", offsetof(align_options, source), .help = "the source lines; - for stdin"},
    {AT_SETTING_TEXT, "target", "FILE", offsetof(align_options, target),
     .help = "the target lines, one for each source line"},
    {AT_SETTING_COUNT, "batch-size", "N", offsetof(align_options, batch_size), "64", 1, 100000,
     .help = "pairs in a batch; the output is the same for any number"},
    {AT_SETTING_COUNT, "max-source", "N", offsetof(align_options, max_source), NULL, 1, 1 << 28,
     .help = "read only the first N units of a longer source, and say so (default: all)"},

    RANK_TIMEOUT(align_options),
    HARD_DECODING(align_options),
    {AT_SETTING_TEXT, "head", "HEAD", offsetof(align_options, head),
     .help = "the attention weights to use: average of all layers and heads, LAYER.HEAD such as 2.1, or best: the head "
             "with the lowest AER on --gold; without --gold the head trained with --guided-alignment, or the one whose "
             "links agree most in both directions (default: the guided head, or average)"},
    {AT_SETTING_SWITCH, "align-shift", .offset = offsetof(align_options, shift),
     .help =
         "take a word's weights from the step that reads it, not from the one that predicts it: often better in the "
         "lower layers of a transformer; with --head best each head is tried both ways"},
    {AT_SETTING_TEXT, "gold", "FILE", offsetof(align_options, gold),
     .help = "reference alignments, one line for each pair, for --head best"},

    {AT_SETTING_HEADING, .help = "What is written"},
    {AT_SETTING_TEXT, "output", "FILE", offsetof(align_options, output),
     .help = "the file to write: complete, or not there (default: the standard output)", .letter = 'o'},
    {AT_SETTING_CHOICE, "level", "LEVEL", offsetof(align_options, level), "word", .choices = levels,
     .help =
         "word: links between words, which are separated by blanks; subword: between the units of the vocabularies"},
    {AT_SETTING_SWITCH, "scores", .offset = offsetof(align_options, scores),
     .help = "after the links: ||| and the log-probability of the target"},
    {AT_SETTING_SWITCH, "coverage", .offset = offsetof(align_options, coverage),
     .help = "after that: ||| for each source word the sum of its weights over the target words, ||| and the indices "
             "of those with less than 0.1"},
    {0},
};

typedef struct job {
    const align_options *options;
    at_group *group; /* NULL: one process */
    const at_line_list *source, *target;
    line_output output;
    at_error *error;
    bool by_unit;
    long_lines long_lines;
} job;

static void note_long(void *context, int64_t line, int64_t units, int64_t read)
{
    job *j = context;
    long_lines_note(&j->long_lines, line, units, read);
}

static bool print_line(void *context, int64_t line, const at_result *result)
{
    job *j = context;
    FILE *out = j->output.stream;
    const at_line lines[] = {j->source->line[line], j->target->line[line]};
    const at_hypothesis *h = &result->best[0];
    bool linked = h->links; /* none for a source without a unit */
    cli_links links = {0};
    bool good = !linked || (j->by_unit ? links_by_unit(result, h, &links) : links_by_word(result, lines, &links));
    good = good && (!linked || links_print(out, &links));
    if (good && j->options->scores)
        fprintf(out, "%s||| %.4f", linked ? " " : "", h->score);
    if (good && j->options->coverage) {
        fprintf(out, "%s||| ", linked || j->options->scores ? " " : "");
        links_print_coverage(out, &links);
    }
    links_free(&links);
    if (!good)
        return fail(j->error, AT_MEMORY, "out of memory for an alignment");
    putc('\n', out);
    return line_output_good(&j->output, j->error);
}

static bool check(const align_options *o, at_error *error)
{
    if (!o->model || !o->source || !o->target)
        return fail(error, AT_USAGE, "attend align needs %s",
                    !o->model    ? "a model: attend align MODEL, or -m MODEL"
                    : !o->source ? "--source FILE"
                                 : "--target FILE");
    if (o->gold && (!o->head || strcmp(o->head, "best") != 0))
        return fail(error, AT_USAGE, "--gold is for --head best only");
    return true;
}

/* Rank 0 chooses the best head, if that is asked for; the others wait for it. */
static bool choose_head(job *j, at_translator *translator, const at_line_list *gold, int64_t most, cli_head *head)
{
    const align_options *o = j->options;
    const cli_head_data data = {j->source, j->target, gold, j->by_unit, o->common.quiet, o->batch_size, most, o->shift};
    at_error chosen = {0};
    if (head->best && at_process_rank() == 0)
        head_choose(translator, &data, head, &chosen);
    at_group_tell(j->group, &chosen, sizeof chosen, j->error);
    at_group_tell(j->group, head, sizeof *head, j->error);
    return j->error->code == AT_OK && (chosen.code == AT_OK || fail(j->error, chosen.code, "%s", chosen.text));
}

static bool align(job *j, at_translator *translator, const at_line_list *gold)
{
    const align_options *o = j->options;
    cli_head head = {0};
    const int64_t most = o->max_source == UNSET ? 0 : o->max_source, count = j->source ? j->source->count : 0;
    const char *const inputs[] = {o->model, o->source, o->target, o->gold, NULL};
    if ((at_process_rank() > 0 || line_output_open(&j->output, o->output, inputs, j->error)) &&
        hard_decoding_set(o->hard_decoding, translator, j->error))
        head_read(o->head, "best", translator, &head, j->error);
    head.shift = o->shift;
    if (!at_group_agree(j->group, j->error) || !choose_head(j, translator, gold, most, &head))
        return false;
    at_translator_share(translator, j->group);
    const at_search_settings settings = {.batch = o->batch_size,
                                         .wants_weights = true,
                                         .layer = head.layer,
                                         .head = head.head,
                                         .max_source = most,
                                         .on_long = note_long,
                                         .align_shift = head.shift};
    return at_align(translator, &settings, count ? j->source->line : NULL, count ? j->target->line : NULL, count,
                    print_line, j, j->error);
}

static int run(void *options, int word_count, char **words)
{
    align_options *o = options;
    at_error error = {0};
    at_group *group = NULL;
    const bool good = at_group_join(&group, o->rank_timeout, NULL, &error) &&
                      model_word("align", &o->model, &word_count, &words, &error) && check(o, &error);
    at_translator *translator = good ? at_translator_load(o->model, &error) : NULL;
    const bool reads = translator && at_group_rank(group) == 0;
    at_line_list *source = reads ? at_translator_sources(translator, o->source, &error) : NULL;
    at_line_list *target = source ? at_line_list_read(o->target, &error) : NULL;
    at_line_list *gold = target && o->gold ? at_line_list_read(o->gold, &error) : NULL;
    job j = {.options = o,
             .group = group,
             .source = source,
             .target = target,
             .error = &error,
             /* the cells of a picture are not words of its line */
             .by_unit = o->level == LEVEL_SUBWORD || (translator && at_translator_has_pictures(translator)),
             .long_lines.quiet = o->common.quiet};
    if (target && source->count != target->count)
        fail(&error, AT_FORMAT, "'%s' has %lld lines and '%s' has %lld; they must be pairs", o->source,
             (long long)source->count, o->target, (long long)target->count);
    else if (gold && gold->count != source->count)
        fail(&error, AT_SHAPE, "'%s' has %lld lines and '%s' has %lld; they must have the same number", o->source,
             (long long)source->count, o->gold, (long long)gold->count);
    if (at_group_agree(group, &error)) {
        align(&j, translator, gold);
        line_output_close(&j.output, &error);
        at_group_agree(group, &error);
    }
    long_lines_sum(&j.long_lines);
    at_line_list_free(gold);
    at_line_list_free(target);
    at_line_list_free(source);
    at_translator_free(translator);
    return report(&error);
}

const cli_command command_align = {
    .name = "align",
    .words = "[MODEL]",
    .most_words = 1,
    .line = "align translations with their sources by a trained model",
    .text = "Runs forced decoding of the target lines and writes the alignment of each by the attention weights: pairs "
            "source-target, counted from 0, such as 0-0 1-2 2-1.",
    .examples = "  attend align -m de-en.safetensors --source test.de --target test.en > links.txt\n"
                "  attend align -m de-en.safetensors --source test.de --target test.en --head best --gold links.gold",
    .options = table,
    .size = sizeof(align_options),
    .run = run,
    .together = true,
};
