/* attend vocabulary: makes, prints and uses the units that models read and write. */
#include <limits.h>
#include <string.h>

#include "commands.h"

typedef struct vocabulary_options {
    cli_common common;
    const char *kind, *output, *input, *side;
    at_vocabulary_text text;
    bool join;
} vocabulary_options;

static const at_setting table[] = {
    {AT_SETTING_HEADING, .help = "Making one"},
    {AT_SETTING_TEXT, "vocab", "KIND", offsetof(vocabulary_options, kind), "word",
     .help =
         "char, word, or word:SIZE for the SIZE most frequent words; spm:SIZE trains a SentencePiece unigram model, "
         "spm:SIZE:bpe a BPE model"},
    {AT_SETTING_TEXT, "output", "FILE", offsetof(vocabulary_options, output),
     .help = "the vocabulary file to write, FILE.spm for subwords; without it units and counts are printed",
     .letter = 'o'},
    {AT_SETTING_HEADING, .help = "The text"},
    {AT_SETTING_TEXT, "normalise", "FORM", offsetof(vocabulary_options, text.normalise),
     .help = "Unicode normalisation: none | nfc | nfkc; a model has its own, like the next two"},
    {AT_SETTING_SWITCH, "lowercase", NULL, offsetof(vocabulary_options, text.lowercase), .help = "lower-case the text"},
    {AT_SETTING_TEXT, "tokenise", "RULES", offsetof(vocabulary_options, text.tokenise),
     .help = "words: none splits at blanks, moses-like also splits off punctuation"},
    {AT_SETTING_HEADING, .help = "Printing and segmenting"},
    {AT_SETTING_TEXT, "side", "SIDE", offsetof(vocabulary_options, side),
     .help = "the vocabulary of a model: source or target"},
    {AT_SETTING_TEXT, "input", "FILE", offsetof(vocabulary_options, input),
     .help = "the lines to segment (default: the standard input)", .letter = 'i'},
    {AT_SETTING_SWITCH, "join", NULL, offsetof(vocabulary_options, join),
     .help = "the inverse of segmenting: joins the units of each line again"},
    {0},
};

static void print_units(const at_vocabulary *vocabulary)
{
    const bool counted = !at_vocabulary_has_subwords(vocabulary);
    for (int32_t id = 4; id < at_vocabulary_size(vocabulary); id++) {
        fputs(at_vocabulary_unit(vocabulary, id), stdout);
        if (counted)
            printf("\t%lld", (long long)at_vocabulary_frequency(vocabulary, id));
        putchar('\n');
    }
}

/* ---- The three actions ---------------------------------------------------------------------------------------- */

/* A file is read back by its name, so subwords have one of the two endings, and nothing else has. */
static bool check_output(const vocabulary_options *o, at_error *error)
{
    const bool subwords = strncmp(o->kind, "spm", 3) == 0;
    const bool named = o->output && (ends_in(o->output, ".spm") || ends_in(o->output, ".model"));
    if (subwords && !named)
        return fail(error, AT_USAGE, "a vocabulary of subwords needs -o FILE.spm");
    if (!subwords && named)
        return fail(error, AT_USAGE, "'%s' would be taken for subwords; name a vocabulary of %s FILE.txt", o->output,
                    strncmp(o->kind, "char", 4) == 0 ? "characters" : "words");
    return true;
}

static bool make(const vocabulary_options *o, int count, char **files, at_error *error)
{
    static const char *const standard_input[] = {"-"};
    for (int i = 0; o->output && i < count; i++)
        if (at_file_same(files[i], o->output))
            return fail(error, AT_USAGE, "-o would write over '%s', which is read; name another file", files[i]);
    if (strpbrk(o->kind, "./"))
        return fail(error, AT_USAGE, "--vocab is a kind such as word:8000 here, not the file '%s'", o->kind);
    at_vocabulary *vocabulary =
        check_output(o, error)
            ? at_vocabulary_make(o->kind, &o->text, count ? (const char *const *)files : standard_input,
                                 count ? count : 1, error)
            : NULL;
    if (vocabulary && o->output)
        at_vocabulary_save(vocabulary, o->output, error);
    else if (vocabulary)
        print_units(vocabulary);
    at_vocabulary_free(vocabulary);
    return error->code == AT_OK;
}

static bool print(const vocabulary_options *o, const char *file, at_error *error)
{
    at_vocabulary *vocabulary = at_vocabulary_load(file, o->side, &o->text, error);
    if (vocabulary)
        print_units(vocabulary);
    at_vocabulary_free(vocabulary);
    return error->code == AT_OK;
}

static bool segment(const vocabulary_options *o, const char *file, at_error *error)
{
    at_vocabulary *vocabulary = at_vocabulary_load(file, o->side, &o->text, error);
    at_line_reader *lines = vocabulary ? at_line_reader_open(o->input ? o->input : "-", error) : NULL;
    at_line line;
    while (lines && at_line_reader_next(lines, &line, error)) {
        char *text = (o->join ? at_vocabulary_join : at_vocabulary_segment)(vocabulary, line, error);
        if (!text)
            break;
        puts(text);
        at_text_free(text);
        if (!at_line_reader_ready(lines))
            fflush(stdout); /* whoever writes into the pipe may wait for the answer */
    }
    at_line_reader_free(lines);
    at_vocabulary_free(vocabulary);
    return error->code == AT_OK;
}

static const char *const actions[] = {"make", "print", "segment"};
enum { ACTIONS = sizeof actions / sizeof *actions };

static const char *action_at(int index)
{
    return index < ACTIONS ? actions[index] : NULL;
}

static int run(void *options, int word_count, char **words)
{
    const vocabulary_options *o = options;
    at_error error = {0};
    int action = 0;
    while (word_count > 0 && action < ACTIONS && strcmp(actions[action], words[0]) != 0)
        action++;
    if (word_count == 0)
        fail(&error, AT_USAGE, "attend vocabulary needs an action: make, print or segment");
    else if (action == ACTIONS)
        at_unknown("action", words[0], actions, ACTIONS, &error);
    else if (action == 0)
        make(o, word_count - 1, words + 1, &error);
    else if (word_count != 2)
        fail(&error, AT_USAGE, "attend vocabulary %s needs one vocabulary file or model", words[0]);
    else
        (action == 1 ? print : segment)(o, words[1], &error);
    return report(&error);
}

const cli_command command_vocabulary = {
    .name = "vocabulary",
    .words = "make [FILE...] | print FILE | segment FILE",
    .most_words = INT_MAX,
    .word_at = action_at,
    .line = "make and print vocabularies, and cut lines into their units",
    .text =
        "make builds a vocabulary from the lines of files or of the standard input: a text file with a unit in each "
        "line and, after a tab, its count, the most frequent first; or a SentencePiece model. attend train takes "
        "both as --source-vocab and --target-vocab. print shows the units of a vocabulary file, or of a side of a "
        "model, with their counts. segment cuts lines into units with blanks between, as a model would read them; "
        "--join is the inverse.",
    .examples = "  attend vocabulary make --vocab word:8000 --tokenise moses-like train.de -o words.de.txt\n"
                "  attend vocabulary print --side source de-en.safetensors | head\n"
                "  echo \"Hello, world!\" | attend vocabulary segment --tokenise moses-like words.en.txt",
    .options = table,
    .size = sizeof(vocabulary_options),
    .run = run,
};
