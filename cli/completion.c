#include "completion.h"

#include <string.h>

enum { MOST_VALUES = 64, VALUE_TEXT = 60 };

/* The values that can be offered for an option or for a command's words. */
typedef struct values {
    char text[MOST_VALUES][VALUE_TEXT];
    int count;
} values;

static void offer(values *list, const char *text, int length)
{
    if (length > 0 && list->count < MOST_VALUES)
        snprintf(list->text[list->count++], VALUE_TEXT, "%.*s", length, text);
}

static void offer_whole(values *list, const char *text)
{
    offer(list, text, (int)strlen(text));
}

/* The values of "a | b | c" and of "[a|b|c]", which is how a row writes fixed choices. */
static void offer_alternatives(values *list, const char *text)
{
    if (!strchr(text, '|') || strpbrk(text, "=."))
        return;
    for (text += *text == '['; *text; text += strspn(text, " |]")) {
        int length = (int)strcspn(text, " |]");
        offer(list, text, length);
        text += length;
    }
}

/* An entry that needs a number ends in the colon that comes before it. */
static void offer_axis(values *list, const char *axis)
{
    for (int i = 0; at_catalogue(i); i++) {
        const at_entry *entry = at_catalogue(i);
        char text[VALUE_TEXT];
        bool needs_number = entry->argument[0] && entry->argument[0] != '[';
        snprintf(text, sizeof text, "%s%s", entry->name, needs_number ? ":" : "");
        if (strcmp(entry->axis, axis) == 0)
            offer_whole(list, text);
    }
}

static values values_of(const at_setting *option)
{
    values list = {0};
    if (option->axis) {
        offer_axis(&list, option->axis);
        for (int i = 0; option->also[i]; i++)
            offer_whole(&list, option->also[i]);
    }
    for (int i = 0; option->value_at && option->value_at(i); i++)
        offer_whole(&list, option->value_at(i));
    for (int i = 0; option->choices && option->choices[i]; i++)
        offer_whole(&list, option->choices[i]);
    return list;
}

/* The words that may follow the name of a command. */
static values words_of(const cli_command *command)
{
    values list = {0};
    for (int i = 0; command->word_at && command->word_at(i); i++)
        offer_whole(&list, command->word_at(i));
    if (!command->word_at)
        offer_alternatives(&list, command->words);
    return list;
}

static bool takes_value(const at_setting *option)
{
    return option->argument && !option->implied;
}

static bool is_folder(const char *argument)
{
    return strstr(argument, "DIR");
}

/* "" if the value is no file; else how the shell finds it. */
static const char *files_of(const char *argument)
{
    if (is_folder(argument))
        return "directories";
    static const char *const files[] = {"FILE", "MODEL", "SPEC", "ARRAY"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strstr(argument, files[i]))
            return "files";
    return "";
}

static void print_values(const values *list)
{
    for (int i = 0; i < list->count; i++)
        printf("%s%s", i ? " " : "", list->text[i]);
}

static void print_commands(const cli_command *const *commands, int count)
{
    for (int i = 0; i < count; i++)
        printf("%s ", commands[i]->name);
    printf("help");
}

/* ---- bash ----------------------------------------------------------------------------------------------------- */

/* One branch of `case $command$previous`: what an option's value may be. */
static void print_bash_value(const cli_command *command, const at_setting *option)
{
    values list = values_of(option);
    printf("    %s--%s", command->name, option->name);
    if (option->letter)
        printf(" | %s-%c", command->name, option->letter);
    printf(") kind=%s values='", list.count ? "values" : files_of(option->argument));
    print_values(&list);
    puts("' ;;");
}

static void print_bash_words(const cli_command *command)
{
    values list = words_of(command);
    printf("    %s) kind='%s' values='", command->name, command->words[0] ? files_of(command->words) : "");
    print_values(&list);
    printf("' options='");
    for (const at_setting *option = NULL; (option = option_next(command, option));)
        if (option->name)
            printf("--%s ", option->name);
    puts("' ;;");
}

static void print_bash(const cli_command *const *commands, int count)
{
    puts("# bash completion of attend, written by `attend help --completion bash`.\n"
         "_attend()\n"
         "{\n"
         "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}\n"
         "    local kind= values= options=\n"
         "    COMPREPLY=()\n"
         "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
         "        kind=values");
    printf("        values='");
    print_commands(commands, count);
    puts(" --help --version'\n"
         "    else\n"
         "        # bash makes three words of --score=dot.\n"
         "        if [ \"$current\" = = ]; then\n"
         "            current=\n"
         "        elif [ \"$previous\" = = ]; then\n"
         "            previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
         "        fi\n"
         "        case $command$previous in");
    for (int c = 0; c < count; c++)
        for (const at_setting *option = NULL; (option = option_next(commands[c], option));)
            if (option->name && takes_value(option))
                print_bash_value(commands[c], option);
    puts("    *)\n"
         "        case $command in");
    for (int c = 0; c < count; c++)
        print_bash_words(commands[c]);
    printf("    help) values='");
    print_commands(commands, count);
    puts("' ;;\n"
         "        esac\n"
         "        if [ \"${current:0:1}\" = - ]; then\n"
         "            values=$options kind=values\n"
         "        fi\n"
         "        ;;\n"
         "        esac\n"
         "    fi\n"
         "    case $kind in\n"
         "    files) COMPREPLY=($(compgen -W \"$values\" -- \"$current\") $(compgen -f -- \"$current\")) ;;\n"
         "    directories) COMPREPLY=($(compgen -d -- \"$current\")) ;;\n"
         "    *) COMPREPLY=($(compgen -W \"$values\" -- \"$current\")) ;;\n"
         "    esac\n"
         "    if [ \"$kind\" = files ] || [ \"$kind\" = directories ]; then\n"
         "        compopt -o filenames 2>/dev/null\n"
         "    elif [[ ${COMPREPLY[0]-} == *: ]]; then\n"
         "        compopt -o nospace 2>/dev/null\n"
         "    fi\n"
         "    return 0\n"
         "}\n"
         "complete -F _attend attend");
}

/* ---- zsh ------------------------------------------------------------------------------------------------------ */

/* Text inside of a single-quoted specification of _arguments, where these characters have a meaning. */
static void print_zsh(const char *text)
{
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (strchr("[]:\\", *text))
            printf("\\%c", *text);
        else
            putchar(*text);
}

/* ":message:action" of a value. */
static void print_zsh_value(const char *argument, const values *list)
{
    const char *files = files_of(argument);
    putchar(':');
    print_zsh(argument);
    putchar(':');
    if (list->count && *files) { /* names, or a file */
        printf("{_alternative \"values\\:value\\:(");
        print_values(list);
        printf(")\" \"files\\:file\\:_files\"}");
    } else if (list->count) {
        putchar('(');
        for (int i = 0; i < list->count; i++) {
            print_zsh(list->text[i]);
            putchar(i + 1 < list->count ? ' ' : ')');
        }
    } else {
        fputs(is_folder(argument) ? "_files -/" : *files ? "_files" : " ", stdout);
    }
}

static void print_zsh_option(const at_setting *option)
{
    const bool repeats = option->type == AT_SETTING_TEXTS || option->type == AT_SETTING_PAIRS;
    char help[60];
    snprintf(help, sizeof help, "%.*s", (int)strcspn(option->help, ";:("), option->help);
    printf("            '%s--%s%s[", repeats ? "*" : "", option->name, takes_value(option) ? "=" : "");
    print_zsh(help);
    putchar(']');
    if (takes_value(option)) {
        values list = values_of(option);
        print_zsh_value(option->argument, &list);
    }
    puts("' \\");
}

static void print_zsh_command(const cli_command *command)
{
    values list = words_of(command);
    printf("    %s)\n        _arguments -S \\\n", command->name);
    for (const at_setting *option = NULL; (option = option_next(command, option));)
        if (option->name)
            print_zsh_option(option);
    fputs("            '*", stdout);
    print_zsh_value(command->words[0] ? command->words : "nothing", &list);
    puts("'\n        ;;");
}

static void print_zsh_script(const cli_command *const *commands, int count)
{
    puts("#compdef attend\n"
         "# zsh completion of attend, written by `attend help --completion zsh`.\n"
         "local -a commands\n"
         "commands=(");
    for (int i = 0; i < count; i++) {
        printf("    '%s:", commands[i]->name);
        print_zsh(commands[i]->line);
        puts("'");
    }
    puts("    'help:show the overview or the help of a command'\n"
         ")\n"
         "if ((CURRENT == 2)); then\n"
         "    _describe command commands\n"
         "    return\n"
         "fi\n"
         "shift words\n"
         "((CURRENT--))\n"
         "case $words[1] in");
    for (int i = 0; i < count; i++)
        print_zsh_command(commands[i]);
    puts("    help) _describe command commands ;;\n"
         "esac");
}

bool completion_print(const char *shell, const cli_command *const *commands, int count, at_error *error)
{
    static const char *const shells[] = {"bash", "zsh"};
    if (strcmp(shell, "bash") == 0)
        print_bash(commands, count);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh_script(commands, count);
    else
        return at_unknown("shell", shell, shells, 2, error);
    return true;
}
