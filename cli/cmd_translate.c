/* attend translate: lines in, lines out, as they come. */
#include <math.h>
#include <string.h>

#include "commands.h"
#include "heads.h"
#include "line_output.h"
#include "links.h"
#include "long_lines.h"

typedef struct translate_options {
    cli_common common;
    at_texts models;
    const char *head, *input, *output, *glossary, *split_language;
    int alignment, hard_decoding;
    int64_t beam, n_best, alternatives, batch_size, max_length, max_source, top_k, no_repeat;
    double rank_timeout, length_penalty, normalise, coverage_penalty, sample, top_p, max_length_factor,
        min_length_factor;
    bool scores, confidence, replace_unknown, prefix, coverage, placeholders, split;
} translate_options;

enum { NO_ALIGNMENT, ALIGNMENT_HARD, ALIGNMENT_SOFT };
static const char *const alignments[] = {
    [NO_ALIGNMENT] = "", [ALIGNMENT_HARD] = "hard", [ALIGNMENT_SOFT] = "soft", NULL};

static const at_setting table[] = {
    {AT_SETTING_HEADING, .help = "The model and the search"},
    {AT_SETTING_TEXTS, "model", "FILE", offsetof(translate_options, models),
     .help =
         "a file written by attend train; given several times, the models are an ensemble: the geometric mean of their "
         "probabilities",
     .letter = 'm'},
    {AT_SETTING_TEXT, "input", "FILE", offsetof(translate_options, input),
     .help = "the lines to translate (default: the standard input)", .letter = 'i'},
    {AT_SETTING_COUNT, "beam", "N", offsetof(translate_options, beam), "1", 1, 10000,
     .help = "hypotheses kept at each step; 1 is greedy"},
    {AT_SETTING_NUMBER, "length-penalty", "A", offsetof(translate_options, length_penalty), "0", -100, 100,
     .help = "rank by the log-probability / ((5 + n) / 6)^A, n being the units and the end"},
    {AT_SETTING_NUMBER, "normalize", "A", offsetof(translate_options, normalise), "0", 0, 100,
     .help = "or by the log-probability / n^A, as Marian and CTranslate2 do"},
    {AT_SETTING_NUMBER, "coverage-penalty", "B", offsetof(translate_options, coverage_penalty), "0", 0, 1000,
     .help = "add B times the sum over the source units of log min(the sum of its weights, 1) to what is ranked by, so "
             "that nothing is left out (Wu et al. 2016); it changes what a --beam chooses"},
    {AT_SETTING_COUNT, "no-repeat-ngram", "N", offsetof(translate_options, no_repeat), NULL, 1, 1000000,
     .help = "no N units in a row occur twice in an output, so that it does not loop"},
    {AT_SETTING_TEXT, "glossary", "FILE", offsetof(translate_options, glossary),
     .help =
         "terms that the output must have, or must not have, where their source terms occur: lines of a source term, "
         "a tab and the target term; with ! before it the target term is forbidden"},
    {AT_SETTING_NUMBER, "sample", "T", offsetof(translate_options, sample), NULL, 0, 1000,
     .help =
         "sample at temperature T instead of searching; the samples of a line depend only on --seed and its number"},
    {AT_SETTING_COUNT, "top-k", "K", offsetof(translate_options, top_k), NULL, 1, 1000000000,
     .help = "with --sample: sample from the K likeliest units only; 1 is greedy; of equals the lower id is likelier"},
    {AT_SETTING_NUMBER, "top-p", "P", offsetof(translate_options, top_p), NULL, 0, 1, AT_ABOVE_LEAST,
     .help = "with --sample: sample from the fewest likeliest units whose probabilities sum to P or more (nucleus "
             "sampling); after --top-k, if both are given"},
    {AT_SETTING_NUMBER, "max-length-factor", "F", offsetof(translate_options, max_length_factor), "2", 0, 1000,
     .help = "the longest output has F times the source's units, plus 10"},
    {AT_SETTING_COUNT, "max-length", "N", offsetof(translate_options, max_length), NULL, 1, 1000000,
     .help = "or N units, a given prefix counted; a language model's default is 100 more than its line has"},
    {AT_SETTING_NUMBER, "min-length-factor", "F", offsetof(translate_options, min_length_factor), "0", 0, 1000,
     .help = "the shortest output has F times the source's units, unless the longest is shorter"},
    {AT_SETTING_COUNT, "max-source", "N", offsetof(translate_options, max_source), NULL, 1, 1 << 28,
     .help = "read the first N units of a longer line, the last N with a language model, and say so (default: 5 times "
             "the longest of training, 1000 at least)"},
    {AT_SETTING_COUNT, "batch-size", "N", offsetof(translate_options, batch_size), "64", 1, 100000,
     .help = "sentences per batch; the output is the same for any number"},
    RANK_TIMEOUT(translate_options),
    HARD_DECODING(translate_options),
    {AT_SETTING_SWITCH, "prefix", .offset = offsetof(translate_options, prefix),
     .help = "a line is the source, a tab and the start of its translation, in whole units; without a tab, the source"},

    {AT_SETTING_SWITCH, "split", .offset = offsetof(translate_options, split),
     .help =
         "translate each line sentence by sentence; it stays one line, and what stands between its sentences is kept"},
    {AT_SETTING_TEXT, "split-language", "CODE", offsetof(translate_options, split_language),
     .help = "with --split: the language, such as de, whose abbreviations do not end a sentence (default: none)"},
    {AT_SETTING_SWITCH, "placeholders", .offset = offsetof(translate_options, placeholders),
     .help =
         "keep {name}, ${name}, %s, &amp;, web and mail addresses as they are, and numbers that the translation would "
         "lose"},

    {AT_SETTING_HEADING, .help = "What is written"},
    {AT_SETTING_TEXT, "output", "FILE", offsetof(translate_options, output),
     .help = "the file to write: complete, or not there (default: the standard output)", .letter = 'o'},
    {AT_SETTING_COUNT, "n-best", "N", offsetof(translate_options, n_best), NULL, 1, 10000,
     .help = "up to N lines for each line: LINENO ||| text ||| F0= log-probability ||| what it was ranked by"},
    {AT_SETTING_COUNT, "alternatives", "N", offsetof(translate_options, alternatives), NULL, 1, 10000,
     .help = "the N likeliest units after the start of each line (see --prefix), the likeliest first, each with the "
             "text that goes on greedily from there: LINENO ||| text ||| unit ||| P= its probability"},
    {AT_SETTING_SWITCH, "scores", .offset = offsetof(translate_options, scores),
     .help = "after the text: ||| F0= log-probability ||| what it was ranked by"},
    {AT_SETTING_SWITCH, "confidence", .offset = offsetof(translate_options, confidence),
     .help =
         "at the end of the line: ||| how sure the model is, from 0 to 1: the geometric mean of the probabilities of "
         "the units and the end"},
    {AT_SETTING_CHOICE, "alignment", "FORM", offsetof(translate_options, alignment), .choices = alignments,
     .help = "after the text: ||| and the alignment of its units; hard: pairs source-target like 0-0 1-2, soft: target "
             "units set apart by blanks, source weights by commas"},
    {AT_SETTING_TEXT, "head", "HEAD", offsetof(translate_options, head),
     .help = "whose weights to use: average, or LAYER.HEAD such as 2.1 (default: the head that training guided, or "
             "average)"},
    {AT_SETTING_SWITCH, "coverage", .offset = offsetof(translate_options, coverage),
     .help = "after that: ||| for each source unit the sum of its weights over the target's, ||| and the numbers of "
             "those with less than 0.1"},
    {AT_SETTING_SWITCH, "replace-unknown", .offset = offsetof(translate_options, replace_unknown),
     .help = "write the source word with the largest weight instead of <unk>"},
    {0},
};

typedef struct job {
    const translate_options *options;
    const at_translator *translator;
    at_group *group; /* NULL: one process */
    at_line_reader *reader;
    at_line_list *pictures; /* the lines that name them, in place of the reader; NULL: none */
    int64_t next;           /* of the pictures */
    line_output output;
    at_error *error;
    bool soft, hard, ranked; /* ranked: n-best */
    bool branches;           /* alternatives */
    bool waits;              /* for a line, with nothing left to translate */
    int64_t replaced, first_replaced;
    int64_t terms;  /* of the glossary that are not as they should be */
    int64_t unread; /* pictures that cannot be read */
    int64_t lines;  /* that were read so far */
    long_lines long_lines;
} job;

/* A line without a unit has one empty hypothesis, which was not searched for. */
static void print_branch(FILE *out, const at_result *result, const at_hypothesis *h)
{
    const int64_t unit = at_alternatives_from(result);
    fprintf(out, " ||| %s ||| P= %.6f", h->names ? h->names[unit] : "</s>", h->names ? exp(h->penalised) : 1.0);
}

static bool print_hypothesis(job *j, int64_t line, const at_result *result, const at_hypothesis *h)
{
    FILE *out = j->output.stream;
    if (j->hard && !h->links && h->count > 0)
        return fail(j->error, AT_UNSUPPORTED, "--alignment: this model has no attention to align by");
    if (j->ranked || j->branches)
        fprintf(out, "%lld ||| ", (long long)line);
    fwrite(h->text, 1, h->size, out);
    if (j->soft || j->hard)
        fputs(" ||| ", out);
    if (j->soft)
        print_weights(out, h);
    if (j->hard && !print_links(out, h->links, h->count, first_unit(result)))
        return fail(j->error, AT_MEMORY, "out of memory for an alignment");
    if (j->options->coverage) {
        cli_links links;
        bool good = links_by_unit(result, h, &links);
        fputs(" ||| ", out);
        if (good)
            links_print_coverage(out, &links);
        links_free(&links);
        if (!good)
            return fail(j->error, AT_MEMORY, "out of memory for an alignment");
    }
    if (j->branches)
        print_branch(out, result, h);
    if (j->ranked || j->options->scores)
        fprintf(out, " ||| F0= %.4f ||| %.4f", h->score, h->penalised);
    if (j->options->confidence) {
        const double calibrated = at_translator_confidence(j->translator, h->score, h->count);
        fprintf(out, " ||| %.4f", isnan(calibrated) ? at_confidence(h->score, h->count) : calibrated);
    }
    putc('\n', out);
    return line_output_good(&j->output, j->error);
}

static bool print_result(void *context, int64_t line, const at_result *result)
{
    job *j = context;
    if (result->replaced && !j->replaced++)
        j->first_replaced = line + 1;
    const int64_t count =
        j->branches && result->count > j->options->alternatives ? j->options->alternatives : result->count;
    for (int64_t i = 0; i < count; i++)
        if (!print_hypothesis(j, line, result, &result->best[i]))
            return false;
    return true;
}

static void note_long(void *context, int64_t line, int64_t units, int64_t read)
{
    job *j = context;
    long_lines_note(&j->long_lines, line, units, read);
}

enum { MOST_TERM_NOTES = 10, MOST_PICTURE_NOTES = 10 };

static void note_term(void *context, int64_t line, at_line term, bool forbidden)
{
    job *j = context;
    if (!j->options->common.quiet && j->terms < MOST_TERM_NOTES)
        fprintf(stderr, "attend: the translation of line %lld %s '%.*s'\n", (long long)line + 1,
                forbidden ? "has the forbidden term" : "lacks the term", (int)term.size, term.text);
    j->terms++;
}

static void note_terms(const job *j)
{
    if (!j->options->common.quiet && j->terms > MOST_TERM_NOTES)
        fprintf(stderr, "attend: and so in %lld more cases\n", (long long)j->terms - MOST_TERM_NOTES);
}

static void note(int64_t count, int64_t first, const char *what)
{
    if (count == 1)
        fprintf(stderr, "attend: line %lld %s\n", (long long)first, what);
    else if (count > 1)
        fprintf(stderr, "attend: %lld lines, the first of them line %lld, each %s\n", (long long)count,
                (long long)first, what);
}

/* A picture that cannot be read costs its own line, which is empty then, and no other. Pictures are read again when they are
 * translated. */
static bool check_picture(job *j, at_line *line, at_error *error)
{
    int64_t rows = 0, columns;
    at_error why = {0};
    const at_translator *translator = j->translator;
    j->lines++;
    if (line->size == 0 || !at_translator_has_pictures(translator))
        return true;
    const char *tab = j->options->prefix ? memchr(line->text, '\t', line->size) : NULL;
    const at_line name = {line->text, tab ? (size_t)(tab - line->text) : line->size};
    if (name.size == 0)
        return true;
    at_array_free(at_translator_picture(translator, name, &rows, &columns, &why));
    if (why.code == AT_MEMORY)
        *error = why;
    /* An item of features is no picture and refused, too, but its size tells that it was read. */
    if (rows > 0 || why.code == AT_MEMORY)
        return error->code == AT_OK;
    if (j->unread++ < MOST_PICTURE_NOTES)
        fprintf(stderr, "attend: line %lld: %s\n", (long long)j->lines, why.text);
    *line = (at_line){"", 0};
    return true;
}

/* On a pipe, what has been written so far is translated before more is waited for, so that a program that waits for the
 * answer to a line gets it before writing the next. */
static at_stream next_line(void *context, at_line *line, at_error *error)
{
    job *j = context;
    if (j->pictures) {
        if (j->next == j->pictures->count)
            return AT_STREAM_END;
        *line = j->pictures->line[j->next++];
        return check_picture(j, line, error) ? AT_STREAM_LINE : AT_STREAM_END;
    }
    const bool ready = at_line_reader_ready(j->reader);
    if (!ready && !j->waits) {
        j->waits = true;
        return AT_STREAM_WAIT;
    }
    j->waits = false;
    if (!ready && !line_output_flush(&j->output, error))
        return AT_STREAM_END;
    return at_line_reader_next(j->reader, line, error) && check_picture(j, line, error) ? AT_STREAM_LINE
                                                                                        : AT_STREAM_END;
}

/* Opens the input and the output. */
static bool open_files(job *j, const at_translator *translator, at_error *error)
{
    const translate_options *o = j->options;
    const char *const inputs[] = {o->models.value[0], o->input, o->glossary, NULL};
    if (o->input && at_translator_has_pictures(translator))
        j->pictures = at_translator_sources(translator, o->input, error);
    else
        j->reader = at_line_reader_open(o->input ? o->input : "-", error);
    return (j->reader || j->pictures) && line_output_open(&j->output, o->output, inputs, error);
}

static bool translate(job *j, at_translator *translator, const at_glossary *glossary, at_error *error)
{
    const translate_options *o = j->options;
    cli_head head = {0};
    if ((at_process_rank() > 0 || open_files(j, translator, error)) &&
        hard_decoding_set(o->hard_decoding, translator, error))
        head_read(o->head, "", translator, &head, error);
    if (!at_group_agree(j->group, error))
        return false;
    at_translator_share(translator, j->group);
    at_search_settings settings = {.beam = o->beam,
                                   .length_penalty = o->length_penalty,
                                   .normalise = o->normalise,
                                   .coverage_penalty = o->coverage_penalty,
                                   .no_repeat = o->no_repeat == UNSET ? 0 : o->no_repeat,
                                   .glossary = glossary,
                                   .on_term = note_term,
                                   .split = o->split ? o->split_language ? o->split_language : "" : NULL,
                                   .placeholders = o->placeholders,
                                   .n_best = j->ranked ? o->n_best : 1,
                                   .temperature = isnan(o->sample) ? 0 : o->sample,
                                   .top_k = o->top_k == UNSET ? 0 : o->top_k,
                                   .top_p = isnan(o->top_p) ? 0 : o->top_p,
                                   .seed = o->common.seed,
                                   .batch = o->batch_size,
                                   .max_length_factor = o->max_length_factor,
                                   .min_length_factor = o->min_length_factor,
                                   .max_length = o->max_length == UNSET ? 0 : o->max_length,
                                   .replace_unknown = o->replace_unknown,
                                   .wants_weights = j->soft || o->coverage,
                                   .layer = head.layer,
                                   .head = head.head,
                                   .wants_links = o->alignment,
                                   .prefix = o->prefix,
                                   .max_source =
                                       o->max_source == UNSET ? at_translator_most_units(translator) : o->max_source,
                                   .on_long = note_long};
    if (j->branches) /* two at least, which tell where they differ */
        settings.beam = settings.n_best = o->alternatives > 2 ? o->alternatives : 2;
    j->translator = translator;
    j->long_lines.continues = !at_translator_has_source(translator);
    return j->branches ? at_alternatives_stream(translator, &settings, next_line, print_result, j, error)
                       : at_translate_stream(translator, &settings, next_line, print_result, j, error);
}

static bool check(const translate_options *o, at_error *error)
{
    if (!o->models.count)
        return fail(error, AT_USAGE, "attend translate needs a model: attend translate MODEL, or -m MODEL");
    if (o->head && !o->alignment && !o->coverage && !o->replace_unknown)
        return fail(
            error, AT_USAGE,
            "--head is for the weights of --alignment, --coverage or --replace-unknown, and none of them is given");
    if (o->sample == 0)
        return fail(error, AT_USAGE, "--sample takes a temperature above 0; leave it out to search");
    if (o->max_length_factor == 0)
        return fail(error, AT_USAGE, "--max-length-factor takes a number above 0");
    if (!isnan(o->sample) && o->beam > 1)
        return fail(error, AT_USAGE, "--sample samples instead of searching, so it cannot be combined with --beam");
    if (isnan(o->sample) && (o->top_k != UNSET || !isnan(o->top_p)))
        return fail(error, AT_USAGE,
                    "--top-k and --top-p choose what --sample samples from; give a temperature, such as --sample 1");
    if (o->split_language && !o->split)
        return fail(error, AT_USAGE, "--split-language is for --split, which is not given");
    if ((o->split || o->placeholders) && (o->alignment || o->coverage || o->prefix || !isnan(o->sample)))
        return fail(error, AT_USAGE, "%s translates parts of lines, so it cannot be combined with %s",
                    o->split ? "--split" : "--placeholders",
                    o->alignment  ? "--alignment"
                    : o->coverage ? "--coverage"
                    : o->prefix   ? "--prefix"
                                  : "--sample");
    if (o->alternatives != UNSET &&
        (o->beam > 1 || o->n_best != UNSET || !isnan(o->sample) || o->glossary || o->split || o->placeholders))
        return fail(
            error, AT_USAGE,
            "--alternatives goes on greedily from each of the likeliest units, so it cannot be combined with %s",
            o->beam > 1          ? "--beam"
            : o->n_best != UNSET ? "--n-best"
            : !isnan(o->sample)  ? "--sample"
            : o->glossary        ? "--glossary"
            : o->split           ? "--split"
                                 : "--placeholders");
    if (!isnan(o->sample) && o->glossary)
        return fail(error, AT_USAGE, "--glossary is for search, so it cannot be combined with --sample");
    if (isnan(o->sample) && o->n_best != UNSET && o->n_best > o->beam)
        return fail(error, AT_USAGE, "--n-best %lld needs a --beam of at least as many", (long long)o->n_best);
    return true;
}

static int run(void *options, int word_count, char **words)
{
    translate_options *o = options;
    at_error error = {0};
    const char *model = o->models.count ? o->models.value[0] : NULL;
    const bool named = model;
    if (model_word("translate", &model, &word_count, &words, &error) && model && !named)
        at_setting_parse(option_named(&command_translate, "model"), NULL, model, o, &error);
    job j = {.options = o,
             .error = &error,
             .ranked = o->n_best != UNSET,
             .branches = o->alternatives != UNSET,
             .long_lines.quiet = o->common.quiet};
    at_group_join(&j.group, o->rank_timeout, NULL, &error);
    j.soft = o->alignment == ALIGNMENT_SOFT;
    j.hard = o->alignment == ALIGNMENT_HARD;
    at_translator *translator =
        error.code == AT_OK && check(o, &error) ? at_translator_load(o->models.value[0], &error) : NULL;
    for (int i = 1; translator && i < o->models.count && error.code == AT_OK; i++)
        at_translator_add(translator, o->models.value[i], &error);
    at_glossary *glossary =
        translator && error.code == AT_OK && o->glossary ? at_glossary_load(o->glossary, &error) : NULL;
    if (at_group_agree(j.group, &error)) {
        translate(&j, translator, glossary, &error);
        line_output_close(&j.output, &error);
        at_group_agree(j.group, &error);
    }
    if (!o->common.quiet)
        note(j.replaced, j.first_replaced, "has bytes that are not UTF-8, which were read as U+FFFD");
    note_terms(&j);
    if (j.unread > MOST_PICTURE_NOTES)
        fprintf(stderr, "attend: %lld more pictures cannot be read\n", (long long)j.unread - MOST_PICTURE_NOTES);
    long_lines_sum(&j.long_lines);
    at_glossary_free(glossary);
    at_translator_free(translator);
    at_line_reader_free(j.reader);
    at_line_list_free(j.pictures);
    return error.code == AT_OK && j.unread > 0 ? 1 : report(&error);
}

const cli_command command_translate = {
    .name = "translate",
    .words = "[MODEL]",
    .most_words = 1,
    .line = "translate lines by a trained model: one line in, one line out",
    .text =
        "Reads lines from the standard input, or from -i, and writes the translation of each, in the same order, to "
        "the "
        "standard output, or to -o. On a pipe lines are translated as they come. The output for an empty line is an "
        "empty line; no line "
        "is left out, whatever its bytes. Of a line with more units than --max-source the rest is not read, and a note "
        "on "
        "the standard error says so at once. The output is the same for any --batch-size and --threads.\n\n"
        "A language model continues each line, an empty one too, and writes the line and its continuation.\n\n"
        "For a model that reads pictures, each line is the path of a PNG or JPEG, relative to the folder of the -i "
        "file; or the -i file is an array FILE.npy. Of a picture that cannot be read the output is an empty line; a "
        "message says which and why, all others are translated, and the exit code is 1.\n\n"
        "Input compressed by gzip or zstd is decompressed.",
    .examples = "  attend translate -m de-en.safetensors < test.de > test.en\n"
                "  attend translate de-en.safetensors -i test.de -o test.en\n"
                "  attend translate -m de-en.safetensors --beam 6 --length-penalty 0.6 --n-best 3 < test.de\n"
                "  attend translate -m seed1.safetensors -m seed2.safetensors -m seed3.safetensors --beam 5 < test.de\n"
                "  printf 'ein Bier\\tI would\\n' | attend translate -m de-en.safetensors --prefix\n"
                "  printf 'ein Bier\\tI would\\n' | attend translate -m de-en.safetensors --prefix --alternatives 5\n"
                "  echo 'Once upon' | attend translate -m tales.safetensors --sample 0.8 --top-k 40",
    .options = table,
    .size = sizeof(translate_options),
    .run = run,
    .together = true,
};
