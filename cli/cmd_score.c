/* attend score: lines against references. */
#include <limits.h>
#include <string.h>

#include "commands.h"

typedef struct score_options {
    cli_common common;
    const char *reference;
    bool json;
} score_options;

enum { MOST_METRICS = 32 };

/* The metrics that are named, each once. */
static bool check_metrics(int word_count, char **words, at_error *error)
{
    const char *names[MOST_METRICS];
    int count = 0;
    while (count < MOST_METRICS && at_metric(count)) {
        names[count] = at_metric(count);
        count++;
    }
    if (word_count == 0)
        return fail(error, AT_USAGE, "attend score needs a metric, as in attend score wer --reference REF");
    for (int w = 0; w < word_count; w++) {
        int found = 0;
        while (found < count && strcmp(names[found], words[w]) != 0)
            found++;
        if (found == count)
            return fail_no(error, "metric", words[w], names, count);
        for (int before = 0; before < w; before++)
            if (strcmp(words[before], words[w]) == 0)
                return fail(error, AT_USAGE, "metric '%s' is named twice", words[w]);
    }
    return true;
}

/* All scores before the first is printed, so that a failure prints none. */
static bool score_all(int count, char **metrics, const at_line_list *hypotheses, const at_line_list *references,
                      double *scores, at_error *error)
{
    for (int i = 0; i < count; i++)
        if (!at_score_lines(metrics[i], hypotheses->line, hypotheses->count, references->line, references->count,
                            &scores[i], error))
            return false;
    return true;
}

static void print_scores(bool json, int count, char **metrics, const double *scores, int64_t lines)
{
    for (int i = 0; i < count; i++) {
        if (json)
            printf("%s\"%s\":%.17g", i ? "," : "{", metrics[i], scores[i]);
        else
            printf("%s %.2f\n", metrics[i], scores[i]);
    }
    if (json)
        printf(",\"lines\":%lld}\n", (long long)lines);
}

static int run(void *all, int word_count, char **words)
{
    const score_options *options = all;
    at_error error = {0};
    double scores[MOST_METRICS];
    at_line_list *hypotheses = NULL, *references = NULL;
    if (check_metrics(word_count, words, &error) && !options->reference)
        fail(&error, AT_USAGE, "attend score needs --reference FILE, what the lines should have been");
    if (error.code == AT_OK && !(references = at_line_list_read(options->reference, &error)))
        fail_under(&error, "--reference");
    hypotheses = references ? at_line_list_read("-", &error) : NULL;
    if (hypotheses && score_all(word_count, words, hypotheses, references, scores, &error))
        print_scores(options->json, word_count, words, scores, references->count);
    at_line_list_free(hypotheses);
    at_line_list_free(references);
    return report(&error);
}

static const cli_option options_table[] = {
    {OPTION_HEADING, .help = "Scoring"},
    {OPTION_TEXT, "reference", "FILE", offsetof(score_options, reference),
     .help = "what the lines should have been, as many lines as come in"},
    {OPTION_FLAG, "json", .place = offsetof(score_options, json),
     .help = "one JSON object with unrounded scores instead of a line for each"},
    {0},
};

const cli_command command_score = {
    .name = "score",
    .words = "METRIC...",
    .most_words = INT_MAX,
    .line = "judge lines by references: error rates, accuracy, alignments",
    .text = "Reads lines from the standard input and judges them by the lines of --reference. Every score is in "
            "percent, over the whole text:\n\n"
            "  wer       edits of words / words of the references\n"
            "  cer       edits of characters / characters of the references\n"
            "  accuracy  lines that are equal / lines\n"
            "  aer       1 - (|A and S| + |A and P|) / (|A| + |S|)\n\n"
            "aer is for alignments, lines of links like 0-0 1-2: A are the links that come in, S the sure ones of the "
            "reference, P the sure ones and those that are only possible, written as 1?3.",
    .examples = "  attend score wer cer --reference valid.en < output.en\n"
                "  attend score aer --reference links.txt --json < aligned.txt",
    .options = options_table,
    .size = sizeof(score_options),
    .run = run,
};
