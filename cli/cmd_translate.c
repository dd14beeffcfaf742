/* attend translate: lines in, lines out, as they come. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "heads.h"
#include "links.h"

typedef struct translate_options {
    cli_common common;
    at_texts models;
    const char *alignment, *head;
    int64_t beam, n_best, batch_size, max_length;
    double length_penalty, sample, max_length_factor, min_length_factor;
    bool scores, replace_unknown, prefix, coverage;
} translate_options;

static const at_setting table[] = {
    {AT_SETTING_HEADING, .help = "The model and the search"},
    {AT_SETTING_TEXTS, "model", "FILE", offsetof(translate_options, models),
     .help = "what attend train left; given several times, the models speak together, each unit having the geometric "
             "mean of their probabilities",
     .letter = 'm'},
    {AT_SETTING_COUNT, "beam", "N", offsetof(translate_options, beam), "1", 1, 10000,
     .help = "hypotheses kept side by side; 1 is greedy"},
    {AT_SETTING_NUMBER, "length-penalty", "A", offsetof(translate_options, length_penalty), "0", -100, 100,
     .help = "rank by the log-probability / ((5 + n) / 6)^A, n being the units and the end"},
    {AT_SETTING_NUMBER, "sample", "T", offsetof(translate_options, sample), NULL, 0, 1000,
     .help = "draw at temperature T instead of searching; what a line draws depends on --seed and its number alone"},
    {AT_SETTING_NUMBER, "max-length-factor", "F", offsetof(translate_options, max_length_factor), "2", 0, 1000,
     .help = "the longest output has F times the source's units, and 10 more"},
    {AT_SETTING_COUNT, "max-length", "N", offsetof(translate_options, max_length), NULL, 1, 1000000,
     .help = "or N units, a given beginning counted; a language model's default is 100 more than its line has"},
    {AT_SETTING_NUMBER, "min-length-factor", "F", offsetof(translate_options, min_length_factor), "0", 0, 1000,
     .help = "the shortest output has F times the source's units, unless the longest is shorter"},
    {AT_SETTING_COUNT, "batch-size", "N", offsetof(translate_options, batch_size), "64", 1, 100000,
     .help = "sentences at a time; the output is the same for any number"},
    {AT_SETTING_SWITCH, "prefix", .offset = offsetof(translate_options, prefix),
     .help = "a line is the source, a tab and how its translation begins, in whole units; without a tab, the source"},

    {AT_SETTING_HEADING, .help = "What is written"},
    {AT_SETTING_COUNT, "n-best", "N", offsetof(translate_options, n_best), NULL, 1, 10000,
     .help = "up to N lines for each line: LINENO ||| text ||| F0= log-probability ||| what it was ranked by"},
    {AT_SETTING_SWITCH, "scores", .offset = offsetof(translate_options, scores),
     .help = "after the text: ||| F0= log-probability ||| what it was ranked by"},
    {AT_SETTING_TEXT, "alignment", "FORM", offsetof(translate_options, alignment),
     .help = "after the text: ||| and the alignment of its units; hard: pairs source-target like 0-0 1-2, soft: target "
             "units set apart by blanks, source weights by commas"},
    {AT_SETTING_TEXT, "head", "HEAD", offsetof(translate_options, head),
     .help = "whose weights: average, or LAYER.HEAD such as 2.1 (default: the head that training guided, or average)"},
    {AT_SETTING_SWITCH, "coverage", .offset = offsetof(translate_options, coverage),
     .help = "after that: ||| for each source unit the sum of its weights over the target's, ||| and the numbers of "
             "those with less than 0.1"},
    {AT_SETTING_SWITCH, "replace-unknown", .offset = offsetof(translate_options, replace_unknown),
     .help = "write the source word with the largest weight instead of <unk>"},
    {0},
};

/* ---- Lines in ------------------------------------------------------------------------------------------------- */

enum { READ_AT_A_TIME = 1 << 16, MOST_BYTES = 1 << 20, MOST_LINES = 1 << 14 };

/* The standard input, line by line. Lines point into `bytes`. */
typedef struct input {
    char *bytes;
    size_t used, room, done; /* done: what has been handed out */
    const char **line;
    size_t *size;
    int64_t count;
    bool ended, first;
} input;

/* Would a read return at once? */
static bool more_is_there(void)
{
    struct pollfd in = {STDIN_FILENO, POLLIN, 0};
    return poll(&in, 1, 0) > 0;
}

static bool read_more(input *in, at_error *error)
{
    if (in->room - in->used < READ_AT_A_TIME) {
        size_t room = 2 * in->room + READ_AT_A_TIME;
        char *bytes = realloc(in->bytes, room);
        if (!bytes)
            return fail(error, AT_FAILED, "out of memory reading the standard input");
        in->bytes = bytes;
        in->room = room;
    }
    ssize_t got;
    do
        got = read(STDIN_FILENO, in->bytes + in->used, READ_AT_A_TIME);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return fail(error, AT_FAILED, "cannot read the standard input: %s", strerror(errno));
    in->used += (size_t)got;
    in->ended = got == 0;
    return true;
}

/* Cuts what has been read into lines; a last line without a newline is one too. A carriage return before the newline,
 * and a byte-order mark before all, belong to no line. */
static void cut_lines(input *in)
{
    while (in->count < MOST_LINES && in->done < in->used) {
        char *start = in->bytes + in->done, *end = memchr(start, '\n', in->used - in->done);
        if (!end && !in->ended)
            return;
        in->done = end ? (size_t)(end + 1 - in->bytes) : in->used;
        end = end ? end : in->bytes + in->used;
        if (in->first && end - start >= 3 && memcmp(start, "\xef\xbb\xbf", 3) == 0)
            start += 3;
        in->first = false;
        if (end > start && end[-1] == '\r')
            end--;
        in->line[in->count] = start;
        in->size[in->count++] = (size_t)(end - start);
    }
}

/* The lines that are there, waiting for one if there is none. On a pipe that is what has been written so far, so that
 * whoever waits for the answer to a line gets it before writing the next. False at the end, or with the error set. */
static bool next_lines(input *in, at_error *error)
{
    if (!in->line) {
        in->line = malloc(MOST_LINES * sizeof *in->line);
        in->size = malloc(MOST_LINES * sizeof *in->size);
        in->first = true;
    }
    if (!in->line || !in->size)
        return fail(error, AT_FAILED, "out of memory reading the standard input");
    if (in->done)
        memmove(in->bytes, in->bytes + in->done, in->used - in->done);
    in->used -= in->done;
    in->done = 0;
    bool newline = in->used && memchr(in->bytes, '\n', in->used);
    while (!in->ended && (!newline || (in->used < MOST_BYTES && more_is_there()))) {
        size_t before = in->used;
        if (!read_more(in, error))
            return false;
        newline = newline || memchr(in->bytes + before, '\n', in->used - before);
    }
    in->count = 0;
    cut_lines(in);
    return in->count > 0;
}

/* ---- Lines out ------------------------------------------------------------------------------------------------ */

typedef struct output {
    const translate_options *options;
    at_error *error;
    bool soft, hard, ranked; /* ranked: n-best */
    int64_t replaced, first_replaced, is_long, first_long;
} output;

static bool print_hypothesis(output *out, int64_t line, const at_hypothesis *h)
{
    if (out->hard && !h->links && h->count > 0)
        return fail(out->error, AT_FAILED, "--alignment: this model has no attention to align by");
    if (out->ranked)
        printf("%lld ||| ", (long long)line);
    fwrite(h->text, 1, h->size, stdout);
    if (out->soft || out->hard)
        fputs(" ||| ", stdout);
    if (out->soft)
        print_weights(stdout, h);
    if (out->hard && !print_links(stdout, h->links, h->count))
        return fail(out->error, AT_FAILED, "out of memory for an alignment");
    if (out->options->coverage) {
        cli_links links;
        bool good = links_by_unit(h, &links);
        fputs(" ||| ", stdout);
        if (good)
            links_print_coverage(stdout, &links);
        links_free(&links);
        if (!good)
            return fail(out->error, AT_FAILED, "out of memory for an alignment");
    }
    if (out->ranked || out->options->scores)
        printf(" ||| F0= %.4f ||| %.4f", h->score, h->penalised);
    putchar('\n');
    return !ferror(stdout) || fail(out->error, AT_FAILED, "cannot write to the standard output");
}

static bool give(void *context, int64_t line, const at_found *found)
{
    output *out = context;
    if (found->replaced && !out->replaced++)
        out->first_replaced = line + 1;
    if (found->is_long && !out->is_long++)
        out->first_long = line + 1;
    for (int64_t i = 0; i < found->count; i++)
        if (!print_hypothesis(out, line, &found->best[i]))
            return false;
    return true;
}

static void note(int64_t count, int64_t first, const char *what)
{
    if (count == 1)
        fprintf(stderr, "attend: line %lld %s\n", (long long)first, what);
    else if (count > 1)
        fprintf(stderr, "attend: %lld lines, the first of them line %lld, each %s\n", (long long)count,
                (long long)first, what);
}

static bool translate(const translate_options *o, at_translator *translator, output *out, input *in, at_error *error)
{
    cli_head head;
    if (!head_read(o->head, false, translator, &head, error))
        return false;
    at_search_settings settings = {.beam = o->beam,
                                   .length_penalty = o->length_penalty,
                                   .n_best = out->ranked ? o->n_best : 1,
                                   .temperature = isnan(o->sample) ? 0 : o->sample,
                                   .seed = o->common.seed,
                                   .batch = o->batch_size,
                                   .max_length_factor = o->max_length_factor,
                                   .min_length_factor = o->min_length_factor,
                                   .max_length = o->max_length == UNSET ? 0 : o->max_length,
                                   .replace_unknown = o->replace_unknown,
                                   .wants_weights = out->soft || o->coverage,
                                   .layer = head.layer,
                                   .head = head.head,
                                   .wants_links = o->alignment,
                                   .prefix = o->prefix};
    while (next_lines(in, error)) {
        if (!at_translate(translator, &settings, in->line, in->size, in->count, give, out, error))
            return false;
        settings.first_line += in->count;
        if (fflush(stdout) != 0)
            return fail(error, AT_FAILED, "cannot write to the standard output");
    }
    return error->code == AT_OK;
}

static bool check(const translate_options *o, at_error *error)
{
    if (!o->models.count)
        return fail(error, AT_USAGE, "attend translate needs a model: -m FILE");
    if (o->alignment && strcmp(o->alignment, "hard") != 0 && strcmp(o->alignment, "soft") != 0)
        return fail(error, AT_USAGE, "--alignment is hard or soft, not '%s'", o->alignment);
    if (o->head && !o->alignment && !o->coverage && !o->replace_unknown)
        return fail(error, AT_USAGE,
                    "--head is whose weights --alignment, --coverage or --replace-unknown look at, and none of them is "
                    "asked for");
    if (o->sample == 0)
        return fail(error, AT_USAGE, "--sample takes a temperature above 0; leave it out to search");
    if (o->max_length_factor == 0)
        return fail(error, AT_USAGE, "--max-length-factor takes a number above 0");
    if (!isnan(o->sample) && o->beam > 1)
        return fail(error, AT_USAGE, "--sample draws instead of searching, so --beam has no part in it");
    if (isnan(o->sample) && o->n_best != UNSET && o->n_best > o->beam)
        return fail(error, AT_USAGE, "--n-best %lld needs a --beam of at least as many", (long long)o->n_best);
    return true;
}

static int run(void *options, int word_count, char **words)
{
    (void)word_count;
    (void)words;
    const translate_options *o = options;
    at_error error = {0};
    input in = {0};
    output out = {.options = o, .error = &error, .ranked = o->n_best != UNSET};
    out.soft = o->alignment && strcmp(o->alignment, "soft") == 0;
    out.hard = o->alignment && !out.soft;
    at_translator *translator = check(o, &error) ? at_translator_load(o->models.value[0], &error) : NULL;
    for (int i = 1; translator && i < o->models.count && error.code == AT_OK; i++)
        at_translator_add(translator, o->models.value[i], &error);
    if (translator && error.code == AT_OK)
        translate(o, translator, &out, &in, &error);
    if (!o->common.quiet) {
        note(out.replaced, out.first_replaced, "has bytes that are not UTF-8, which were read as U+FFFD");
        note(out.is_long, out.first_long, "is longer than what the model was trained on");
    }
    at_translator_free(translator);
    free(in.bytes);
    free(in.line);
    free(in.size);
    return report(&error);
}

const cli_command command_translate = {
    .name = "translate",
    .words = "",
    .line = "translate lines by a trained model: one line in, one line out",
    .text =
        "Reads lines from the standard input and writes the translation of each, in the same order, to the standard "
        "output. On a pipe lines are translated as they come. An empty line gives an empty line; no line is left "
        "out or cut, whatever its bytes. The output is the same for any --batch-size and --threads.\n\n"
        "A language model goes on from each line, an empty one too, and writes the whole: the line, then what follows.",
    .examples = "  attend translate -m de-en.safetensors < test.de > test.en\n"
                "  attend translate -m de-en.safetensors --beam 6 --length-penalty 0.6 --n-best 3 < test.de\n"
                "  attend translate -m seed1.safetensors -m seed2.safetensors -m seed3.safetensors --beam 5 < test.de\n"
                "  printf 'ein Bier\\tI would\\n' | attend translate -m de-en.safetensors --prefix\n"
                "  echo 'Once upon' | attend translate -m tales.safetensors --sample 0.8",
    .options = table,
    .size = sizeof(translate_options),
    .run = run,
};
