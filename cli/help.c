#include "help.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

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

/* ---- Parts of a help text ------------------------------------------------------------------------------------- */

static void print_usage(const cli_command *command)
{
    bool space = command->words[0] != 0;
    printf("Usage: attend %s%s%s [OPTION...]\n\n", command->name, space ? " " : "", command->words);
}

static void print_option(const at_setting *option)
{
    char text[1000];
    help_synopsis(option, text, sizeof text);
    printf("%*s", INDENT, "");
    print_padded(stdout, text, HELP_COLUMN - INDENT);
    if (strlen(text) >= HELP_COLUMN - INDENT) /* too long for the help to start on the same line */
        printf("\n%*s", HELP_COLUMN, "");
    help_describe(option, text, sizeof text);
    print_wrapped(stdout, text, HELP_COLUMN, RIGHT, HELP_COLUMN);
}

static void print_title(const char *title)
{
    putchar('\n');
    print_heading(title);
}

static void print_examples(const cli_command *command)
{
    if (!command->examples)
        return;
    print_title("Examples");
    puts(command->examples);
}

/* Whether the name is among blank-separated names. */
static bool is_among(const char *name, const char *names)
{
    const size_t length = strlen(name);
    for (const char *at = names; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strncmp(at, name, length) == 0 && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

/* ---- Groups: the options under one heading -------------------------------------------------------------------- */

/* The next word of a heading that can name its group: "data" of "The data". */
static bool next_word(const char **heading, char *word, size_t size)
{
    static const char small[] = "The Of and";
    while (**heading) {
        const size_t length = strcspn(*heading, " ,");
        snprintf(word, size, "%.*s", (int)length, *heading);
        *heading += length;
        *heading += strspn(*heading, " ,");
        if (is_among(word, small))
            continue;
        word[0] = (char)tolower((unsigned char)word[0]);
        return true;
    }
    return false;
}

/* "vocabularies", "lengths" or a beginning such as "vocab" names "Vocabularies and lengths". */
static bool is_group(const char *heading, const char *topic)
{
    enum { LEAST = 3 };
    char word[60];
    while (next_word(&heading, word, sizeof word))
        if (strlen(topic) >= LEAST && strncasecmp(topic, word, strlen(topic)) == 0)
            return true;
    return false;
}

/* The group of this topic, described; false if there is none. */
static bool print_group(const at_setting *own, const char *topic)
{
    bool inside = false, found = false;
    for (int i = 0; option_after(own, i); i++) {
        const at_setting *option = option_after(own, i);
        if (option->type == AT_SETTING_HEADING) {
            inside = is_group(option->help, topic);
            if (inside && found)
                putchar('\n');
            if (inside)
                print_heading(option->help);
            found = found || inside;
        } else if (inside) {
            print_option(option);
        }
    }
    return found;
}

/* A line for each group but `without`: the word for it, and the names of its options. */
static void print_names(const at_setting *own, const char *without)
{
    enum { NAMES_COLUMN = 16, MOST_TEXT = 2000 };
    char text[MOST_TEXT] = "", word[60] = "";
    for (int i = 0;; i++) {
        const at_setting *option = option_after(own, i);
        const bool ends = !option || option->type == AT_SETTING_HEADING;
        if (ends && text[0]) {
            printf("%*s", INDENT, "");
            print_padded(stdout, word, NAMES_COLUMN - INDENT);
            print_wrapped(stdout, text, NAMES_COLUMN, RIGHT, NAMES_COLUMN);
        }
        if (!option)
            return;
        if (ends) {
            const char *heading = option->help;
            const bool left_out = without && strcmp(heading, without) == 0;
            text[0] = word[0] = 0;
            if (!left_out)
                next_word(&heading, word, sizeof word);
        } else if (word[0]) {
            const size_t used = strlen(text);
            snprintf(text + used, sizeof text - used, "%s%s", used ? " " : "", option->name);
        }
    }
}

static void print_all(const at_setting *own)
{
    for (int i = 0; option_after(own, i); i++) {
        const at_setting *option = option_after(own, i);
        if (option->type == AT_SETTING_HEADING)
            print_title(option->help);
        else
            print_option(option);
    }
}

static int group_words(const at_setting *own, char words[MOST_OPTIONS][60], const char **names)
{
    int count = 0;
    for (int i = 0; option_after(own, i) && count < MOST_OPTIONS; i++) {
        const char *heading = option_after(own, i)->help;
        if (option_after(own, i)->type != AT_SETTING_HEADING || !next_word(&heading, words[count], 60))
            continue;
        names[count] = words[count];
        count++;
    }
    return count;
}

/* ---- The help of a command ------------------------------------------------------------------------------------ */

static size_t paragraph_length(const char *text)
{
    const char *gap = strstr(text, "\n\n");
    return gap ? (size_t)(gap - text) : strlen(text);
}

/* What the command does, the options that are used most, and the names of all. */
static void print_short(const cli_command *command)
{
    const at_setting *own = own_options(command);
    const cli_variants *variants = command->variants;
    char first[1000];
    snprintf(first, sizeof first, "%.*s", (int)paragraph_length(help_text(command)), help_text(command));
    print_wrapped(stdout, first, 0, RIGHT, 0);
    print_title("Most used");
    for (int i = 0; option_after(own, i); i++)
        if (option_after(own, i)->name && is_among(option_after(own, i)->name, command->often))
            print_option(option_after(own, i));
    print_title("All options by group");
    print_names(own, NULL);
    printf("\nattend %s --help GROUP describes one group, --help all every option.\n", command->name);
    if (!variants)
        return;
    char text[600];
    size_t used = (size_t)snprintf(text, sizeof text,
                                   "attend %s --%s NAME --help shows the options and defaults of one:", command->name,
                                   variants->option);
    for (int i = 0; variants->name_at(i) && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s %s", i ? "," : "", variants->name_at(i));
    snprintf(text + used, used < sizeof text ? sizeof text - used : 0, ".");
    print_wrapped(stdout, text, 0, RIGHT, 0);
}

/* A variant: its own group of options in full, the others with a default of its own, and the names of the rest. */
static void print_variant(const cli_command *command, const char *name, const at_setting *own)
{
    const cli_variants *variants = command->variants;
    bool titled = false, inside = false;
    variants->introduce(name, RIGHT);
    putchar('\n');
    for (int i = 0; own[i].help; i++) {
        if (own[i].type == AT_SETTING_HEADING)
            inside = strcmp(own[i].help, variants->group) == 0;
        if (own[i].type == AT_SETTING_HEADING && inside)
            print_heading(own[i].help);
        else if (inside && strcmp(own[i].name, variants->option) != 0)
            print_option(&own[i]);
    }
    inside = true;
    for (int i = 0; own[i].help; i++) {
        if (own[i].type == AT_SETTING_HEADING)
            inside = strcmp(own[i].help, variants->group) == 0;
        if (own[i].type == AT_SETTING_HEADING || inside || !variants->is_own(name, own[i].name))
            continue;
        if (!titled)
            print_title("Other options with defaults of their own");
        titled = true;
        print_option(&own[i]);
    }
    print_title("The rest by group");
    print_names(own, variants->group);
    char text[200];
    snprintf(text, sizeof text, "attend %s --%s %s --help GROUP describes a group, --help all every option.",
             command->name, variants->option, name);
    putchar('\n');
    print_wrapped(stdout, text, 0, RIGHT, 0);
}

/* The options of a variant; of the command if it is NULL. NULL: there is no such variant. */
static const at_setting *options_for(const cli_command *command, const char *variant, at_error *error)
{
    const char *names[MOST_OPTIONS];
    int count = 0;
    const at_setting *own = !variant            ? own_options(command)
                            : command->variants ? command->variants->list(variant)
                                                : NULL;
    while (!own && command->variants && count < MOST_OPTIONS && command->variants->name_at(count)) {
        names[count] = command->variants->name_at(count);
        count++;
    }
    if (!own)
        at_unknown(command->variants ? command->variants->option : "option", variant, names, count, error);
    return own;
}

bool help_variant(const cli_command *command, const char *variant, at_error *error)
{
    const at_setting *own = options_for(command, variant, error);
    if (own)
        print_variant(command, variant, own);
    return own;
}

static bool no_group(const at_setting *own, const char *topic, at_error *error)
{
    char words[MOST_OPTIONS][60];
    const char *names[MOST_OPTIONS];
    int count = group_words(own, words, names);
    names[count++] = "all";
    return at_unknown("group of options", topic, names, count, error);
}

bool help_command(const cli_command *command, const char *variant, const char *topic, at_error *error)
{
    if (!variant && topic && command->variants && command->variants->list(topic)) {
        variant = topic;
        topic = NULL;
    }
    const at_setting *own = options_for(command, variant, error);
    if (!own)
        return false;
    const bool all = topic && strcmp(topic, "all") == 0;
    if (topic && !all && print_group(own, topic))
        return true;
    if (topic && !all && !command->most_words) /* else it is a word of the command's own */
        return no_group(own, topic, error);
    print_usage(command);
    if (variant && !all) {
        print_variant(command, variant, own);
    } else if (command->often && !all) {
        print_short(command);
    } else {
        print_wrapped(stdout, help_text(command), 0, RIGHT, 0);
        print_all(own);
        print_examples(command);
    }
    return true;
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
