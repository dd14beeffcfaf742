#include "help.h"

#include <ctype.h>
#include <string.h>

enum { INDENT = 2, HELP_COLUMN = 26, RIGHT = 80 };

/* The option as it is typed: "--heads N", "--model, -m FILE". */
static void synopsis(const cli_option *option, char *out, size_t size)
{
    char letter[] = {',', ' ', '-', option->letter, 0};
    snprintf(out, size, "--%s%s%s%s", option->name, option->letter ? letter : "", option->argument ? " " : "",
             option->argument ? option->argument : "");
}

/* Its help with the choices and the default it has. */
static void describe(const cli_option *option, char *out, size_t size)
{
    char choices[300] = "";
    if (option->axis)
        list_axis(option->axis, choices, sizeof choices);
    snprintf(out, size, "%s%s%s%s%s%s", option->help, choices[0] ? ": " : "", choices,
             option->fallback ? " (default: " : "", option->fallback ? option->fallback : "",
             option->fallback ? ")" : "");
}

void help_command(const cli_command *command)
{
    bool space = command->words[0] != 0;
    printf("Usage: attend %s%s%s [OPTION...]\n\n", command->name, space ? " " : "", command->words);
    print_wrapped(stdout, command->text, 0, RIGHT, 0);
    for (int i = 0; option_at(command, i); i++) {
        const cli_option *option = option_at(command, i);
        char text[1000];
        if (option->kind == OPTION_HEADING) {
            putchar('\n');
            print_heading(option->help);
            continue;
        }
        synopsis(option, text, sizeof text);
        printf("%*s", INDENT, "");
        print_padded(stdout, text, HELP_COLUMN - INDENT);
        if (strlen(text) >= HELP_COLUMN - INDENT) /* too long to stand beside its help */
            printf("\n%*s", HELP_COLUMN, "");
        describe(option, text, sizeof text);
        print_wrapped(stdout, text, HELP_COLUMN, RIGHT, HELP_COLUMN);
    }
    if (command->examples) {
        putchar('\n');
        print_heading("Examples");
        puts(command->examples);
    }
}

void help_overview(FILE *stream, const cli_command *const *commands, int count)
{
    fprintf(stream, "Usage: attend COMMAND [OPTION...]\n\nAttention in C: composed freely, exact, and visible.\n\n");
    for (int i = 0; i < count; i++) {
        fprintf(stream, "%*s", INDENT, "");
        print_padded(stream, commands[i]->name, 12);
        fprintf(stream, "%s\n", commands[i]->line);
    }
    fprintf(stream, "\nattend COMMAND --help tells more about one of them.\n");
}

/* ---- The man page --------------------------------------------------------------------------------------------- */

/* Text as roff: dashes that can be typed, no line mistaken for a request. */
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

/* The paragraphs of a text are set apart by empty lines, which roff wants as requests; an indented one is a formula,
 * whose line is not to be broken. */
static void print_roff_paragraphs(const char *text)
{
    while (*text) {
        const char *gap = strstr(text, "\n\n");
        size_t length = gap ? (size_t)(gap - text) : strlen(text);
        char paragraph[2000];
        snprintf(paragraph, sizeof paragraph, "%.*s", (int)length, text);
        fputs(text[0] == ' ' ? ".PP\n.nf\n" : ".PP\n", stdout);
        print_roff(paragraph);
        fputs(text[0] == ' ' ? "\n.fi\n" : "\n", stdout);
        text += length + (gap ? 2 : 0);
    }
}

static void print_roff_option(const cli_option *option)
{
    char text[1000];
    if (option->kind == OPTION_HEADING) {
        printf(".PP\n%s:\n", option->help);
        return;
    }
    fputs(".TP\n.B ", stdout);
    synopsis(option, text, sizeof text);
    print_roff(text);
    putchar('\n');
    describe(option, text, sizeof text);
    print_roff(text);
    putchar('\n');
}

void help_manual(const cli_command *const *commands, int count)
{
    printf(".TH ATTEND 1 \"\" \"attend %s\" \"User commands\"\n.SH NAME\nattend \\- attention in C\n", at_version());
    puts(".SH SYNOPSIS\n.B attend\n.I COMMAND\n[\\fIOPTION\\fR...]\n.SH COMMANDS");
    for (int i = 0; i < count; i++) {
        const cli_command *command = commands[i];
        printf(".SS attend %s %s\n", command->name, command->words);
        print_roff_paragraphs(command->text);
        const cli_option *option = command->list ? command->list() : command->options;
        for (; option && option->help; option++)
            print_roff_option(option);
        if (command->examples) {
            puts(".PP\nExamples:\n.PP\n.nf");
            print_roff(command->examples);
            puts("\n.fi");
        }
    }
    puts(".SH OPTIONS OF EVERY COMMAND");
    for (const cli_option *option = common_options + 1; option->help; option++)
        print_roff_option(option);
    puts(
        ".SH EXIT STATUS\n.TP\n.B 0\ndone\n.TP\n.B 1\nfailed; one sentence on standard error says why\n.TP\n.B 2\nused "
        "wrongly; the sentence says what would be right\n.TP\n.B 130\ninterrupted, and saved first");
    puts(".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nno colour, even in a terminal");
}
