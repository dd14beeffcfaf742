#include "help.h"

#include <string.h>

enum { INDENT = 2, HELP_COLUMN = 26, RIGHT = 80 };

void help_synopsis(const at_setting *option, char *out, size_t size)
{
    char letter[] = {',', ' ', '-', option->letter, 0};
    snprintf(out, size, "--%s%s%s%s", option->name, option->letter ? letter : "", option->argument ? " " : "",
             option->argument ? option->argument : "");
}

void help_describe(const at_setting *option, char *out, size_t size)
{
    char choices[300] = "", help[700];
    dash_settings(option->help, help, sizeof help);
    if (option->axis)
        list_axis(option->axis, choices, sizeof choices);
    snprintf(out, size, "%s%s%s%s%s%s", help, choices[0] ? ": " : "", choices, option->fallback ? " (default: " : "",
             option->fallback ? option->fallback : "", option->fallback ? ")" : "");
}

const char *help_text(const cli_command *command)
{
    return command->text ? command->text : command->make_text();
}

void help_command(const cli_command *command)
{
    bool space = command->words[0] != 0;
    printf("Usage: attend %s%s%s [OPTION...]\n\n", command->name, space ? " " : "", command->words);
    print_wrapped(stdout, help_text(command), 0, RIGHT, 0);
    for (int i = 0; option_at(command, i); i++) {
        const at_setting *option = option_at(command, i);
        char text[1000];
        if (option->type == AT_SETTING_HEADING) {
            putchar('\n');
            print_heading(option->help);
            continue;
        }
        help_synopsis(option, text, sizeof text);
        printf("%*s", INDENT, "");
        print_padded(stdout, text, HELP_COLUMN - INDENT);
        if (strlen(text) >= HELP_COLUMN - INDENT) /* too long for the help to start on the same line */
            printf("\n%*s", HELP_COLUMN, "");
        help_describe(option, text, sizeof text);
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
    fprintf(stream, "\nattend COMMAND --help describes a command and its options.\n");
}
