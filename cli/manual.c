#include "manual.h"

#include <ctype.h>
#include <string.h>

#include "help.h"

/* An entry of the sections FILES and ENVIRONMENT. */
typedef struct note {
    const char *command; /* the page it stands on beside attend(1); NULL: every page */
    const char *name, *text;
} note;

static const note files[] = {
    {"train", "FILE.safetensors",
     "A trained model: parameters, settings, vocabularies and history in one file, which any reader of safetensors "
     "opens. attend train writes it as its --output."},
    {"train", "OUTPUT.last", "The model after the last update, where OUTPUT is the best one by validation."},
    {"train", "OUTPUT.state", "What attend train --resume needs to continue with the same bits."},
    {"train", "OUTPUT.log.jsonl", "The log of training, one JSON object a line."},
    {"train", "OUTPUT.000400",
     "With attend train --keep N: the models of the last N saves, by their updates. Older ones are removed, and no "
     "other "
     "file is. attend average makes one model of several."},
    {"train", "OUTPUT.previous, OUTPUT.state.previous",
     "With attend train --keep-previous: the model and the state that the last save replaced. Without it the next save "
     "removes them; OUTPUT.previous remains only after a run that ended between two validations with a better model: "
     "it "
     "is the best one until then, which --resume restores."},
    {"compare", "SPEC.runs", "The folder where attend compare keeps its runs; --directory names another."},
    {"bench", "PREFIX/share/attend/bench", "The scripts that run PyTorch and ONNX Runtime for attend bench."},
};

static const note environment[] = {
    {NULL, "ATTEND_MAX_DECOMPRESSED",
     "How many bytes one compressed input may decompress to; the default is 17179869184, 16 GiB."},
    {NULL, "NO_COLOR", "If it is set and not empty, no output is coloured, even in a terminal."},
    {NULL, "TERM", "With the value dumb no output is coloured."},
    {NULL, "ATTEND_ISA",
     "Which kernels to use instead of the fastest that the processor has: plain, avx2 or avx512 (x86-64), or neon "
     "(aarch64). With the same kernels results have the same bits on every machine, with others they differ in the "
     "last ones; avx512 has the bits of avx2. Another value is an error."},
    {NULL, "COLORTERM",
     "With the value truecolor or 24bit heat maps have 24-bit colours, else those of the palette of 256."},
    {NULL, "COLUMNS", "The width that tables and heat maps are fitted to, before the one that the terminal reports."},
    {"demo", "TMPDIR", "The folder for the model that attend demo dates trains."},
    {"bench", "ATTEND_PYTHON, ATTEND_NODE, ATTEND_PEERS, ATTEND_CTRANSLATE2",
     "Another Python, another Node.js, another folder of JavaScript packages and another root folder with CTranslate2 "
     "for "
     "the rivals of attend bench."},
};

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* Text as roff: dashes that can be typed, and no line taken for a request. */
static void print_roff(const char *text)
{
    bool start = true;
    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        if (*text == '-' || *text == '\\')
            fputs(*text == '-' ? "\\-" : "\\e", stdout);
        else
            putchar(*text);
        start = *text == '\n';
    }
}

/* Paragraphs are separated by empty lines, which roff wants as requests; an indented one is a formula or a table, whose
 * lines must stay. */
static void print_paragraphs(const char *text)
{
    for (bool first = true; *text; first = false) {
        const char *gap = strstr(text, "\n\n");
        size_t length = gap ? (size_t)(gap - text) : strlen(text);
        char paragraph[4000];
        snprintf(paragraph, sizeof paragraph, "%.*s", (int)length, text);
        bool fixed = text[0] == ' ' || strstr(paragraph, "\n  ");
        fputs(first ? "" : ".PP\n", stdout);
        fputs(fixed ? ".nf\n" : "", stdout);
        print_roff(paragraph);
        fputs(fixed ? "\n.fi\n" : "\n", stdout);
        text += length + (gap ? 2 : 0);
    }
}

static void print_item(const char *name, const char *text)
{
    fputs(".TP\n.B ", stdout);
    print_roff(name);
    putchar('\n');
    print_roff(text);
    putchar('\n');
}

static void print_option(const at_setting *option)
{
    char name[200], text[1000];
    if (option->type == AT_SETTING_HEADING) {
        printf(".SS ");
        print_roff(option->help);
        putchar('\n');
        return;
    }
    help_synopsis(option, name, sizeof name);
    help_describe(option, text, sizeof text);
    print_item(name, text);
}

/* The entries of a command's page; of attend(1), all. */
static void print_notes(const char *title, const note *notes, int count, const char *command)
{
    bool titled = false;
    for (int i = 0; i < count; i++) {
        if (command && notes[i].command && strcmp(notes[i].command, command) != 0)
            continue;
        if (!titled)
            printf(".SH %s\n", title);
        titled = true;
        print_item(notes[i].name, notes[i].text);
    }
}

/* What all pages end with. */
static void print_ending(const char *command)
{
    print_notes("FILES", files, COUNT(files), command);
    print_notes("ENVIRONMENT", environment, COUNT(environment), command);
    puts(".SH EXIT STATUS");
    print_item("0", "Success.");
    print_item("1", "Failure; the reason is on the standard error.");
    print_item("2", "Wrong usage; the message says what would be right.");
    print_item("130", "Interrupted; what can be resumed was saved first.");
}

void manual_overview(const cli_command *const *commands, int count)
{
    printf(".TH ATTEND 1 \"\" \"attend %s\" \"User commands\"\n", at_version());
    puts(".SH NAME\nattend \\- attention mechanisms and sequence\\-to\\-sequence models in C");
    puts(".SH SYNOPSIS\n.B attend\n.I COMMAND\n[\\fIOPTION\\fR...]\n.br\n.B attend \\-\\-version\n.SH DESCRIPTION");
    print_roff(
        "attend runs the attention operator on arrays, and trains, runs, aligns, scores, compares and draws "
        "sequence-to-sequence models with attention on a CPU. Score, normaliser, window, position and heads are "
        "chosen freely; the results have the same bits for any number of threads. Each command has a page of its "
        "own.\n");
    puts(".SH COMMANDS");
    for (int i = 0; i < count; i++) {
        char name[100];
        snprintf(name, sizeof name, "attend-%s(1)", commands[i]->name);
        print_item(name, commands[i]->line);
    }
    print_item("attend help [COMMAND]", "the overview, or the help of one command; attend COMMAND --help is the same");
    puts(".SH OPTIONS OF EVERY COMMAND");
    for (const at_setting *option = common_options + 1; option->help; option++)
        print_option(option);
    print_ending(NULL);
    puts(".SH SEE ALSO");
    for (int i = 0; i < count; i++)
        printf(".BR attend\\-%s (1),\n", commands[i]->name);
    puts(".BR attend.h (3)");
}

void manual_command(const cli_command *command)
{
    char title[60];
    int length = snprintf(title, sizeof title, "attend-%s", command->name);
    for (int i = 0; i < length; i++)
        title[i] = (char)toupper((unsigned char)title[i]);
    printf(".TH %s 1 \"\" \"attend %s\" \"User commands\"\n.SH NAME\nattend\\-%s \\- ", title, at_version(),
           command->name);
    print_roff(command->line);
    printf("\n.SH SYNOPSIS\n.B attend %s\n", command->name);
    if (command->words[0])
        printf("%s\n", command->words);
    puts("[\\fIOPTION\\fR...]\n.SH DESCRIPTION");
    print_paragraphs(help_text(command));
    puts(".SH OPTIONS");
    for (const at_setting *option = NULL; (option = option_next(command, option));)
        print_option(option);
    if (command->examples) {
        puts(".SH EXAMPLES\n.nf");
        print_roff(command->examples);
        puts("\n.fi");
    }
    print_ending(command->name);
    puts(".SH SEE ALSO\n.BR attend (1),\n.BR attend.h (3)");
}
