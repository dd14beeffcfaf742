/* attend score: lines against references. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "by_length.h"
#include "commands.h"
#include "line_output.h"
#include "perplexity.h"
#include "program.h"

typedef struct score_options {
    cli_common common;
    at_texts references;
    const char *tokenise, *compare, *model, *source, *input;
    int64_t confidence, decimals;
    double rank_timeout;
    at_counts by_length;
    bool lowercase, sentence, json;
} score_options;

enum { MOST_METRICS = 32 };

/* What one metric found. */
typedef struct result {
    const char *metric;
    at_scores *scores, *other; /* other: of --compare, or NULL */
    at_spread spread, other_spread;
    at_comparison comparison;
} result;

/* ---- What was asked for --------------------------------------------------------------------------------------- */

static const char *metric_name(int index)
{
    return at_metric(index) ? at_metric(index)->name : NULL;
}

/* Whether `word` is one of the names that `name_at` lists. */
static bool check_name(const char *what, const char *word, const char *(*name_at)(int index), at_error *error)
{
    const char *names[MOST_METRICS];
    int count = 0;
    while (count < MOST_METRICS && name_at(count)) {
        names[count] = name_at(count);
        if (strcmp(names[count++], word) == 0)
            return true;
    }
    return at_unknown(what, word, names, count, error);
}

static bool check_metrics(int count, char **words, at_error *error)
{
    if (count == 0)
        return fail(error, AT_USAGE, "attend score needs a metric, as in attend score bleu --reference REF");
    for (int w = 0; w < count; w++) {
        if (!check_name("metric", words[w], metric_name, error))
            return false;
        for (int before = 0; before < w; before++)
            if (strcmp(words[before], words[w]) == 0)
                return fail(error, AT_USAGE, "metric '%s' is given twice", words[w]);
    }
    return true;
}

/* The first of the metrics whose info has a property; NULL if none has. */
static const at_metric_info *first_with(int count, char **words, bool (*has)(const at_metric_info *metric))
{
    for (int w = 0; w < count; w++)
        if (has(at_metric_named(words[w])))
            return at_metric_named(words[w]);
    return NULL;
}

static bool tokenises(const at_metric_info *metric)
{
    return metric->tokenises;
}

static bool scores_alignments(const at_metric_info *metric)
{
    return metric->alignments;
}

static bool limits_references(const at_metric_info *metric)
{
    return metric->most_references > 0;
}

static bool check(const score_options *options, int count, char **words, at_error *error)
{
    if (!check_metrics(count, words, error))
        return false;
    const at_metric_info *links = first_with(count, words, scores_alignments);
    const at_metric_info *limited = first_with(count, words, limits_references);
    if (options->tokenise && !check_name("tokeniser", options->tokenise, at_tokeniser_name, error))
        return false;
    if (options->tokenise && !first_with(count, words, tokenises))
        return fail(error, AT_USAGE, "--tokenise has no effect on the metrics given");
    if (options->model)
        return fail(error, AT_USAGE, "--model is for perplexity only");
    if (options->source && !options->by_length.count)
        return fail(error, AT_USAGE, "--source is for perplexity and --by-length only");
    if (options->by_length.count && links && !options->source)
        return fail(error, AT_USAGE,
                    "the references of %s are links, so --by-length needs --source FILE, whose words it counts",
                    links->name);
    if (options->references.count == 0)
        return fail(error, AT_USAGE, "attend score needs --reference FILE");
    if (limited && options->references.count > limited->most_references)
        return fail(error, AT_USAGE, "%s takes %d reference%s, not %d", limited->name, limited->most_references,
                    limited->most_references == 1 ? "" : "s", options->references.count);
    const char *alike = options->compare && strcmp(options->compare, "-") == 0 ? "compare"
                        : options->source && strcmp(options->source, "-") == 0 ? "source"
                                                                               : NULL;
    for (int r = 0; r < options->references.count; r++)
        alike = strcmp(options->references.value[r], "-") == 0 ? "reference" : alike;
    if (alike)
        return fail(error, AT_USAGE, "--%s takes a file: the lines to score come from the standard input", alike);
    if (options->sentence && (options->confidence != UNSET || options->compare || options->by_length.count))
        return fail(error, AT_USAGE, "%s is for the whole text and cannot be used with --sentence",
                    options->compare               ? "--compare"
                    : options->confidence != UNSET ? "--confidence"
                                                   : "--by-length");
    return true;
}

/* ---- Scoring -------------------------------------------------------------------------------------------------- */

/* All scores before the first is printed, so that a failure prints none. */
static bool score_all(const score_options *options, result *all, int count, const at_line_list *hypotheses,
                      const at_line_list *other, at_line_list *const *lists, at_error *error)
{
    at_score_settings settings = {.tokenise = options->tokenise,
                                  .lowercase = options->lowercase,
                                  .sentences = options->sentence,
                                  .seed = options->common.seed};
    const bool samples = options->compare || options->confidence != UNSET;
    const at_line **references = calloc((size_t)options->references.count, sizeof *references);
    if (!references)
        return fail(error, AT_MEMORY, "out of memory for references");
    for (int r = 0; r < options->references.count; r++)
        references[r] = lists[r]->line;
    if (samples)
        settings.resamples = options->confidence == UNSET ? 1000 : options->confidence;
    for (int i = 0; i < count && error->code == AT_OK; i++) {
        result *one = &all[i];
        one->scores = at_scores_new(one->metric, &settings, hypotheses->line, hypotheses->count, references,
                                    options->references.count, error);
        if (samples && one->scores)
            at_scores_spread(one->scores, &one->spread, error);
        if (!other || error->code != AT_OK)
            continue;
        one->other = at_scores_new(one->metric, &settings, other->line, other->count, references,
                                   options->references.count, error);
        if (!one->other)
            fail_under(error, "--compare");
        if (one->other && at_scores_spread(one->other, &one->other_spread, error))
            at_scores_compare(one->scores, one->other, &one->comparison, error);
    }
    free(references);
    return error->code == AT_OK;
}

/* ---- Printing ------------------------------------------------------------------------------------------------- */

enum { LINE_TEXT = 2000 };

/* The score, its bootstrap interval and its parts after what stands in `line`, and the line on stdout, broken at the width
 * of a terminal. Published figures have one decimal. */
static void print_score(const score_options *options, const at_scores *scores, const at_spread *spread,
                        char line[LINE_TEXT])
{
    const int decimals = options->decimals != UNSET ? (int)options->decimals : at_scores_signature(scores)[0] ? 1 : 2;
    const char *details = at_scores_details(scores);
    char interval[100] = "";
    if (spread->resamples)
        snprintf(interval, sizeof interval, " (μ = %.*f ± %.*f)", decimals, spread->mean, decimals,
                 (spread->high - spread->low) / 2);
    const size_t used = strlen(line);
    snprintf(line + used, LINE_TEXT - used, "%.*f%s%s%s", decimals, at_scores_total(scores), interval,
             details[0] ? " " : "", details);
    print_fitted(line);
}

static void print_text(const score_options *options, const result *one)
{
    const char *signature = at_scores_signature(one->scores);
    const char *name = signature[0] ? at_scores_metric(one->scores)->title : one->metric;
    char line[LINE_TEXT];
    snprintf(line, sizeof line, signature[0] ? "%s|%s = " : "%s ", name, signature);
    print_score(options, one->scores, &one->spread, line);
    if (!one->other)
        return;
    int decimals = options->decimals != UNSET ? (int)options->decimals : 2;
    snprintf(line, sizeof line, "%s of %.1000s = ", name, options->compare);
    print_score(options, one->other, &one->other_spread, line);
    snprintf(line, sizeof line, "%s difference = %+.*f (μ = %+.*f, 95%% from %+.*f to %+.*f, p = %.4f)", name, decimals,
             one->comparison.difference, decimals, one->comparison.spread.mean, decimals, one->comparison.spread.low,
             decimals, one->comparison.spread.high, one->comparison.p);
    print_fitted(line);
}

static void print_spread(const at_spread *spread)
{
    printf("\"mean\":%.17g,\"low\":%.17g,\"high\":%.17g", spread->mean, spread->low, spread->high);
}

/* "signature" is the first metric's that has one; with several of those, "signatures" has them all. */
static void print_signatures(const result *all, int count)
{
    int published = 0;
    for (int i = 0; i < count; i++)
        if (at_scores_signature(all[i].scores)[0] && published++ == 0)
            printf(",\"signature\":\"%s\"", at_scores_signature(all[i].scores));
    if (published < 2)
        return;
    const char *before = ",\"signatures\":{";
    for (int i = 0; i < count; i++)
        if (at_scores_signature(all[i].scores)[0]) {
            printf("%s\"%s\":\"%s\"", before, all[i].metric, at_scores_signature(all[i].scores));
            before = ",";
        }
    putchar('}');
}

/* The columns of --by-length: each metric, and with --compare that of the other system. */
static int list_columns(const score_options *options, const result *all, int count, length_column *columns,
                        char names[][80])
{
    int used = 0;
    for (int i = 0; i < count; i++) {
        columns[used++] = (length_column){all[i].metric, all[i].scores};
        if (!all[i].other)
            continue;
        snprintf(names[i], sizeof names[i], options->json ? "%s_other" : "%s of other", all[i].metric);
        columns[used++] = (length_column){names[i], all[i].other};
    }
    return used;
}

static void print_lengths(const score_options *options, const result *all, int count, const length_groups *groups)
{
    length_column columns[2 * MOST_METRICS];
    char names[MOST_METRICS][80];
    const char *of = options->source ? "source" : "reference";
    const int used = list_columns(options, all, count, columns, names);
    if (!options->by_length.count)
        return;
    if (options->json)
        length_groups_print_json(groups, of, columns, used);
    else
        length_groups_print(groups, of, columns, used, options->decimals);
}

static void print_json(const score_options *options, const result *all, int count, const length_groups *groups)
{
    for (int i = 0; i < count; i++)
        printf("%s\"%s\":%.17g", i ? "," : "{", all[i].metric, at_scores_total(all[i].scores));
    print_signatures(all, count);
    for (int i = 0; i < count; i++) {
        const result *one = &all[i];
        if (at_scores_details(one->scores)[0])
            printf(",\"%s_details\":\"%s\"", one->metric, at_scores_details(one->scores));
        if (one->spread.resamples) {
            printf(",\"%s_confidence\":{", one->metric);
            print_spread(&one->spread);
            putchar('}');
        }
        if (one->other) {
            printf(",\"%s_compare\":{\"other\":%.17g,\"difference\":%.17g,", one->metric, at_scores_total(one->other),
                   one->comparison.difference);
            print_spread(&one->comparison.spread);
            printf(",\"p\":%.17g}", one->comparison.p);
        }
    }
    if (all[0].spread.resamples)
        printf(",\"resamples\":%lld,\"seed\":%llu", (long long)all[0].spread.resamples,
               (unsigned long long)options->common.seed);
    print_lengths(options, all, count, groups);
    printf(",\"lines\":%lld}\n", (long long)at_scores_count(all[0].scores));
}

/* One line of output for each line read, the metrics side by side. */
static void print_sentences(const score_options *options, const result *all, int count)
{
    int decimals = options->decimals != UNSET ? (int)options->decimals : 2;
    for (int64_t line = 0; line < at_scores_count(all[0].scores); line++) {
        for (int i = 0; i < count; i++) {
            double score = at_scores_line(all[i].scores, line);
            if (options->json)
                printf("%s\"%s\":%.17g", i ? "," : "{", all[i].metric, score);
            else
                printf("%s%.*f", i ? "\t" : "", decimals, score);
        }
        puts(options->json ? "}" : "");
    }
}

static void print_all(const score_options *options, const result *all, int count, const length_groups *groups)
{
    if (options->sentence)
        print_sentences(options, all, count);
    else if (options->json)
        print_json(options, all, count, groups);
    if (options->sentence || options->json)
        return;
    for (int i = 0; i < count; i++)
        print_text(options, &all[i]);
    print_lengths(options, all, count, groups);
}

/* ---- The command ---------------------------------------------------------------------------------------------- */

static at_line_list *read_lines(const char *path, const char *option, at_error *error)
{
    at_line_list *lines = at_line_list_read(path, error);
    if (!lines)
        fail_under(error, option);
    return lines;
}

/* Every file must have as many lines as the standard input; the error names the file that has not. */
static bool check_counts(const score_options *options, const at_line_list *hypotheses, const at_line_list *other,
                         at_line_list *const *references, at_error *error)
{
    const int64_t lines = hypotheses->count;
    for (int r = 0; r <= options->references.count; r++) {
        const bool last = r == options->references.count;
        const at_line_list *list = last ? other : references[r];
        if (list && list->count != lines)
            return fail(error, AT_SHAPE, "%s'%s' has %lld line%s, and %s has %lld; they must have the same number",
                        last ? "--compare: " : "", last ? options->compare : options->references.value[r],
                        (long long)list->count, list->count == 1 ? "" : "s",
                        options->input ? options->input : "the standard input", (long long)lines);
    }
    return true;
}

/* The lines that --by-length counts the words of: the sources, or the first references. */
static bool group_lines(const score_options *options, const at_line_list *source, const at_line_list *reference,
                        length_groups *groups, at_error *error)
{
    if (!options->by_length.count)
        return true;
    if (source && source->count != reference->count)
        return fail(error, AT_SHAPE,
                    "--source: '%s' has %lld line%s, and there are %lld references; they must have the same number",
                    options->source, (long long)source->count, source->count == 1 ? "" : "s",
                    (long long)reference->count);
    return length_groups_make(&options->by_length, source ? source : reference, groups, error);
}

/* Perplexity scores the lines of --reference with a model: nothing is read from the standard input. */
static int run_perplexity(const score_options *o, int word_count)
{
    at_error error = {0};
    perplexity_job job = {.model = o->model, .source = o->source, .json = o->json, .quiet = o->common.quiet};
    at_group_join(&job.group, o->rank_timeout, NULL, &error);
    if (word_count > 1)
        fail(&error, AT_USAGE,
             "perplexity reads its text from --reference, so it cannot be combined with other metrics");
    else if (!o->model || o->references.count != 1)
        fail(&error, AT_USAGE, "perplexity needs %s", o->model ? "one --reference FILE, the text" : "a model: -m FILE");
    else if (o->tokenise || o->compare || o->confidence != UNSET || o->sentence || o->lowercase || o->by_length.count)
        fail(&error, AT_USAGE, "perplexity takes no options but --model, --source, --reference and --json");
    else
        job.target = o->references.value[0];
    score_perplexity(&job, &error);
    return report(&error);
}

static int run(void *given, int word_count, char **words)
{
    const score_options *options = given;
    at_error error = {0};
    result all[MOST_METRICS] = {0};
    at_line_list *hypotheses = NULL, *other = NULL, *source = NULL, **references = NULL;
    length_groups groups = {0};
    for (int w = 0; w < word_count; w++)
        if (strcmp(words[w], "perplexity") == 0)
            return run_perplexity(options, word_count);
    if (!check(options, word_count, words, &error) || !program_alone("score (but for perplexity)", &error))
        return report(&error);
    for (int i = 0; i < word_count; i++)
        all[i].metric = words[i];
    int wanted = options->references.count;
    references = calloc((size_t)wanted, sizeof *references);
    if (!references)
        fail(&error, AT_MEMORY, "out of memory for references");
    for (int r = 0; r < wanted && error.code == AT_OK; r++)
        references[r] = read_lines(options->references.value[r], "--reference", &error);
    if (options->compare && error.code == AT_OK)
        other = read_lines(options->compare, "--compare", &error);
    if (options->source && error.code == AT_OK)
        source = read_lines(options->source, "--source", &error);
    hypotheses = error.code == AT_OK ? at_line_list_read(options->input ? options->input : "-", &error) : NULL;
    if (hypotheses && check_counts(options, hypotheses, other, references, &error) &&
        score_all(options, all, word_count, hypotheses, other, references, &error) &&
        group_lines(options, source, references[0], &groups, &error))
        print_all(options, all, word_count, &groups);
    length_groups_free(&groups);
    for (int i = 0; i < word_count; i++) {
        at_scores_free(all[i].scores);
        at_scores_free(all[i].other);
    }
    for (int r = 0; references && r < wanted; r++)
        at_line_list_free(references[r]);
    free(references);
    at_line_list_free(other);
    at_line_list_free(source);
    at_line_list_free(hypotheses);
    return report(&error);
}

static const at_setting options_table[] = {
    {AT_SETTING_HEADING, .help = "Scoring"},
    {AT_SETTING_TEXTS, "reference", "FILE", offsetof(score_options, references),
     .help = "the reference translations, one line for each line read; may be given several times"},
    {AT_SETTING_TEXT, "input", "FILE", offsetof(score_options, input),
     .help = "the lines to score (default: the standard input)", .letter = 'i'},
    {AT_SETTING_TEXT, "model", "FILE", offsetof(score_options, model),
     .help = "for perplexity: the model file, written by attend train", .letter = 'm'},
    {AT_SETTING_TEXT, "source", "FILE", offsetof(score_options, source),
     .help = "for perplexity: the sources of the references, unless it is a language model; for --by-length: the lines "
             "whose words are counted"},
    {AT_SETTING_TEXT, "tokenise", "NAME", offsetof(score_options, tokenise), .value_at = at_tokeniser_name,
     .help = "the tokeniser of bleu: 13a | none (split at white space) | char | zh (default: 13a)"},
    {AT_SETTING_SWITCH, "lowercase", .offset = offsetof(score_options, lowercase),
     .help = "lower-case both sides first; ter always does"},
    {AT_SETTING_SWITCH, "sentence", .offset = offsetof(score_options, sentence),
     .help = "a score for each line instead of the whole text; several metrics are separated by tabs"},
    {AT_SETTING_COUNT, "confidence", "[N]", offsetof(score_options, confidence), .implied = "1000", .least = 1,
     .most = 10000000,
     .help = "mean and 95% confidence interval of N bootstrap samples of the lines (1000 if N is left out), sampled by "
             "--seed"},
    {AT_SETTING_TEXT, "compare", "FILE", offsetof(score_options, compare),
     .help = "the lines of another system: its score, the difference with its 95% interval, and the p-value "
             "(paired bootstrap)"},
    {AT_SETTING_COUNTS, "by-length", "[N|A,B...]", offsetof(score_options, by_length), .implied = "10", .least = 1,
     .most = 1000000000,
     .help = "scores for groups of lines by the number of words in their first reference, or in their --source: groups "
             "of N words (10 if left out), or up to A words, up to B words and so on"},
    {AT_SETTING_COUNT, "decimals", "N", offsetof(score_options, decimals), .most = 15,
     .help = "decimals of the scores (default: 1 with a signature, else 2)"},
    {AT_SETTING_SWITCH, "json", .offset = offsetof(score_options, json),
     .help = "one JSON object with unrounded scores"},
    RANK_TIMEOUT(score_options),
    {0},
};

static const char more[] =
    "\n↑: larger scores are better; ↓: smaller scores are better. bleu, chrf, chrf++ and ter have sacreBLEU's numbers, "
    "and "
    "are printed with the signature that says how they were computed. aer scores alignments, lines of links such as "
    "0-0 1-2: A are the links read, S the sure links of the reference, P the sure and the possible ones, written "
    "1?3.\n\n"
    "perplexity is a property of a model, computed by forced decoding of --reference (and --source, unless it is a "
    "language model): e to the power of the mean negative log-probability of a unit, and of a word; the end of each "
    "line counts as one of either. It reads nothing from the standard input.";

/* The help lists the metrics that the library has. */
static const char *make_text(void)
{
    static char text[4000];
    size_t used = (size_t)snprintf(text, sizeof text,
                                   "Reads lines from the standard input, or from -i, and scores them against the "
                                   "lines of --reference. Every score is in percent, over the whole text:\n\n");
    int names = 0, meanings = 0; /* widths of the columns */
    for (int i = 0; at_metric(i); i++) {
        const at_metric_info *metric = at_metric(i);
        names = text_width(metric->name) > names ? text_width(metric->name) : names;
        meanings = text_width(metric->meaning) > meanings ? text_width(metric->meaning) : meanings;
    }
    for (int i = 0; at_metric(i) && used < sizeof text; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "  %-*s  %-*s  %s\n", names, at_metric(i)->name, meanings,
                             at_metric(i)->meaning, at_metric(i)->better == AT_LARGER_IS_BETTER ? "↑" : "↓");
    if (used < sizeof text)
        snprintf(text + used, sizeof text - used, "%s", more);
    return text;
}

const cli_command command_score = {
    .name = "score",
    .words = "METRIC...",
    .most_words = INT_MAX,
    .word_at = metric_name,
    .line = "score lines: BLEU, chrF, TER, error rates, alignments",
    .make_text = make_text,
    .examples = "  attend score bleu chrf --reference valid.en < output.en\n"
                "  attend score bleu --reference a.en --reference b.en --compare other.en < output.en\n"
                "  attend score wer cer --reference valid.en --json < output.en\n"
                "  attend score bleu --reference valid.en --by-length 10,20,40 < output.en\n"
                "  attend score aer --reference links.txt < aligned.txt\n"
                "  attend score perplexity -m de-en.safetensors --source test.de --reference test.en",
    .options = options_table,
    .size = sizeof(score_options),
    .run = run,
    .together = true,
};
