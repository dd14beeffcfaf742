#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "habits.h"

enum { FIRST_CODE = 1000 };

const at_setting common_options[] = {
    {AT_SETTING_HEADING, .help = "Of every command"},
    {AT_SETTING_TEXT, "config", "FILE", offsetof(cli_common, config),
     .help = "options from a file of `key = value` lines, the keys being the names of options; # starts a comment; the "
             "command line overrides it"},
    {AT_SETTING_COUNT, "threads", "N", offsetof(cli_common, threads), .least = 1, .most = 64,
     .help = "threads to use; the results have the same bits for any number (default: the number of cores)"},
    {AT_SETTING_SEED, "seed", "N", offsetof(cli_common, seed), "1", .help = "seed of the random numbers"},
    {AT_SETTING_SWITCH, "quiet", .offset = offsetof(cli_common, quiet), .help = "write only errors to stderr"},
    {AT_SETTING_SWITCH, "verbose", .offset = offsetof(cli_common, verbose),
     .help = "write to stderr how long it took, processor time, peak memory, threads and kernels"},
    {AT_SETTING_SWITCH, "help", "[GROUP]", offsetof(cli_common, help), .implied = "true",
     .help = "show this text, or the options of one group only; all: of every group"},
    {AT_SETTING_SWITCH, "version", .offset = offsetof(cli_common, version), .help = "show the version"},
    {0},
};

const at_setting *own_options(const cli_command *command)
{
    static const at_setting none = {0};
    return command->list ? command->list() : command->options ? command->options : &none;
}

const at_setting *option_after(const at_setting *own, int index)
{
    while (own->help && index > 0) {
        own++;
        index--;
    }
    if (own->help)
        return own;
    for (const at_setting *shared = common_options; shared->help; shared++)
        if (index-- == 0)
            return shared;
    return NULL;
}

const at_setting *option_next(const cli_command *command, const at_setting *option)
{
    const at_setting *last = common_options + sizeof common_options / sizeof *common_options - 1;
    option = option ? option + 1 : own_options(command);
    if (!option->help && option != last)
        option = common_options;
    return option->help ? option : NULL;
}

int option_names(const cli_command *command, const char **names)
{
    int count = 0;
    for (const at_setting *option = NULL; (option = option_next(command, option));)
        if (option->name && count < MOST_OPTIONS)
            names[count++] = option->name;
    return count;
}

const at_setting *option_named(const cli_command *command, const char *name)
{
    for (const at_setting *option = NULL; (option = option_next(command, option));)
        if (option->name && strcmp(option->name, name) == 0)
            return option;
    return NULL;
}

/* The option that -m is short for; NULL if it is for none. */
static const at_setting *option_lettered(const cli_command *command, int letter)
{
    for (const at_setting *option = NULL; (option = option_next(command, option));)
        if (option->letter && option->letter == letter)
            return option;
    return NULL;
}

char *entry_typed(const at_entry *entry, char out[ENTRY_TEXT])
{
    const char *argument = entry->argument;
    const bool optional = argument[0] == '[';
    const char *colon = !argument[0] ? "" : optional ? "[:" : ":";
    snprintf(out, ENTRY_TEXT, "%s%s%s", entry->name, colon, argument + optional);
    return out;
}

void list_axis(const char *axis, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; at_catalogue(i) && used < size; i++) {
        const at_entry *entry = at_catalogue(i);
        if (strcmp(entry->axis, axis) != 0)
            continue;
        char typed[ENTRY_TEXT];
        int more = snprintf(out + used, size - used, "%s%s", used ? " | " : "", entry_typed(entry, typed));
        used += more > 0 ? (size_t)more : 0;
    }
}

/* ---- Values --------------------------------------------------------------------------------------------------- */

/* The name before a colon must be one of the axis; what follows it is for the operator to judge. */
static bool check_axis(const at_setting *option, const char *text, at_error *error)
{
    const char *names[MOST_OPTIONS];
    int count = 0;
    char name[100];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, ":"), text);
    if (option->alias[0] && strcmp(name, option->alias[0]) == 0)
        return true;
    for (int i = 0; at_catalogue(i) && count < MOST_OPTIONS; i++) {
        if (strcmp(at_catalogue(i)->axis, option->axis) != 0)
            continue;
        names[count++] = at_catalogue(i)->name;
        if (strcmp(names[count - 1], name) == 0)
            return true;
    }
    for (int i = 0; option->also[i] && count < MOST_OPTIONS; i++) {
        names[count++] = option->also[i];
        if (strcmp(names[count - 1], name) == 0)
            return true;
    }
    return at_unknown(option->axis, name, names, count, error);
}

bool option_assign(const at_setting *option, const char *label, const char *text, void *into, at_error *error)
{
    return (!option->axis || check_axis(option, text, error)) && at_setting_parse(option, label, text, into, error);
}

/* ---- The --config file ---------------------------------------------------------------------------------------- */

static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    char *end = text + strlen(text);
    while (end > text && strchr(" \t\r", end[-1]))
        *--end = 0;
    return text;
}

/* A comment starts with a # at the start of the line or after a blank, so that a file's name may hold one. */
static void cut_comment(char *line)
{
    for (char *at = line; *at; at++)
        if (*at == '#' && (at == line || at[-1] == ' ' || at[-1] == '\t')) {
            *at = 0;
            return;
        }
}

bool ends_in(const char *name, const char *ending)
{
    const size_t length = strlen(name), size = strlen(ending);
    return length > size && strcmp(name + length - size, ending) == 0;
}

bool config_line(const char *path, int number, char *line, char **key, char **value, at_error *error)
{
    cut_comment(line);
    *key = *value = trim(line);
    if (!**key)
        return true;
    char *equals = strchr(*key, '=');
    if (!equals || equals == *key)
        return fail(error, AT_USAGE, "%s:%d: '%s' is not of the form key = value", path, number, *key);
    *equals = 0;
    *key = trim(*key);
    *value = trim(equals + 1);
    return true;
}

static bool read_config_line(const cli_command *command, const char *path, int number, char *line, void *into,
                             at_error *error)
{
    char *key, *value, label[300];
    if (!config_line(path, number, line, &key, &value, error))
        return false;
    if (!*key)
        return true;
    const at_setting *option = option_named(command, key);
    if (!option || !strcmp(key, "config") || !strcmp(key, "help") || !strcmp(key, "version")) {
        const char *names[MOST_OPTIONS];
        char near[200], habit[HABIT_TEXT];
        habit_option(command, option ? "" : key, "", habit);
        at_suggest(key, names, option ? 0 : option_names(command, names), near, sizeof near);
        return fail(error, AT_USAGE, "%s:%d: no setting '%s' for attend %s%s", path, number, key, command->name,
                    habit[0] ? habit : near);
    }
    snprintf(label, sizeof label, "%s:%d: %s", path, number, key);
    bool good = option_assign(option, label, value, into, error);
    if (!good && option->axis) { /* its message names no option, so file and line are still missing */
        snprintf(label, sizeof label, "%s:%d", path, number);
        fail_under(error, label);
    }
    return good;
}

/* getdelim returns -1 at the end of an empty file as well as out of memory, which is no error of the stream. */
static bool read_text(FILE *file, char **text, ssize_t *length)
{
    size_t room = 0;
    errno = 0;
    *length = getdelim(text, &room, 0, file);
    return *length >= 0 || (feof(file) && !ferror(file));
}

char *text_of_file(const char *path, at_error *error)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    ssize_t length = -1;
    bool good = file && read_text(file, &text, &length);
    if (!good && errno == ENOMEM)
        fail(error, AT_MEMORY, "out of memory for the text of '%s'", path);
    else if (!good)
        fail(error, AT_FILE, "cannot read '%s': %s", path, strerror(errno));
    else if (length > 0 && !text[length - 1])
        good = fail(error, AT_FORMAT, "'%s' is no text, as there is a zero byte in it", path);
    if (file)
        fclose(file);
    if (good && length >= 0) {
        static const char mark[] = "\xEF\xBB\xBF"; /* of byte order, which some editors begin a text with */
        if (strncmp(text, mark, 3) == 0)
            memmove(text, text + 3, (size_t)length - 2);
        return text;
    }
    if (good && text) /* an empty file */
        text[0] = 0;
    else
        free(text);
    return good ? text : NULL;
}

static bool read_config(const cli_command *command, void *into, at_error *error)
{
    cli_common *shared = into;
    shared->config_text = text_of_file(shared->config, error);
    if (!shared->config_text) {
        fail_under(error, "--config");
        return false;
    }
    char *rest = shared->config_text, *line;
    bool good = true;
    for (int number = 1; good && (line = strsep(&rest, "\n")); number++)
        good = read_config_line(command, shared->config, number, line, into, error);
    return good;
}

/* ---- The command line ----------------------------------------------------------------------------------------- */

/* What the user typed that getopt_long stopped at, without its value. */
static void typed_name(char **argv, char *name, size_t size)
{
    const char *word = argv[optind - 1];
    if (optarg == word && optind >= 2)
        word = argv[optind - 2];
    snprintf(name, size, "%.*s", (int)strcspn(word, "="), word);
}

/* A long name with one dash, as in -model FILE, would be read as -m odel. */
static bool is_long_name(const cli_command *command, const char *word)
{
    return word[0] == '-' && word[1] && word[2] && option_named(command, word + 1);
}

static bool no_option(const cli_command *command, const char *typed, at_error *error)
{
    const char *names[MOST_OPTIONS];
    char dashed[MOST_OPTIONS][40], near[200], habit[HABIT_TEXT];
    int count = option_names(command, names);
    if (is_long_name(command, typed))
        return fail(error, AT_USAGE, "no option '%s'; it is called -%s", typed, typed);
    habit_option(command, typed + strspn(typed, "-"), "--", habit);
    if (habit[0])
        return fail(error, AT_USAGE, "no option '%s'%s", typed, habit);
    for (int i = 0; i < count; i++) {
        snprintf(dashed[i], sizeof dashed[i], "--%s", names[i]);
        names[i] = dashed[i];
    }
    at_suggest(typed, names, count, near, sizeof near);
    if (near[0])
        return fail(error, AT_USAGE, "no option '%s'%s", typed, near);
    if (command->most_words && strspn(typed + 1, "0123456789."))
        return fail(error, AT_USAGE, "no option '%s'; an argument that begins with a dash comes after --", typed);
    return fail(error, AT_USAGE, "no option '%s'; attend %s --help shows those there are", typed, command->name);
}

/* The word with one dash that getopt_long read a letter of: -src, of which it took -s; of -b5 the letter alone. */
static const char *lettered_word(int argc, char **argv, int letter, char alone[3])
{
    const char *next = optind < argc ? argv[optind] : "";
    const char *word = next[0] == '-' && next[1] != '-' && strchr(next + 1, letter) ? next : argv[optind - 1];
    snprintf(alone, 3, "-%c", letter);
    return strpbrk(word, "0123456789") ? alone : word;
}

/* Whether a word after an option that may stand alone is its value: a number, several with commas between, or for a switch
 * true or false. */
static bool is_value(const at_setting *option, const char *word)
{
    if (strcmp(option->implied, "true") == 0)
        return strcmp(word, "true") == 0 || strcmp(word, "false") == 0;
    return *word && *word != ',' && word[strspn(word, "0123456789,")] == 0;
}

/* The texts of the --config file have come to their end. */
static void settle(const cli_command *command, void *into)
{
    for (const at_setting *option = NULL; (option = option_next(command, option));)
        if (option->type == AT_SETTING_TEXTS)
            ((at_texts *)((char *)into + option->offset))->settled = true;
}

/* Goes through the command line once. With `only_config` it takes nothing but the name of the --config file, which must
 * be read before all else is set. */
static bool read_line(const cli_command *command, int argc, char **argv, bool only_config, void *into, at_error *error)
{
    struct option long_options[MOST_OPTIONS + 1] = {0};
    const at_setting *known[MOST_OPTIONS];
    char letters[2 * MOST_OPTIONS + 3] = ":h";
    int count = 0, code, letter_count = 2;
    for (const at_setting *option = NULL; (option = option_next(command, option)) && count < MOST_OPTIONS;) {
        if (!option->name)
            continue;
        if (option->letter) {
            letters[letter_count++] = option->letter;
            if (option->type != AT_SETTING_SWITCH)
                letters[letter_count++] = ':';
        }
        known[count] = option;
        int argument = option->type == AT_SETTING_SWITCH ? no_argument
                       : option->implied                 ? optional_argument
                                                         : required_argument;
        long_options[count] = (struct option){option->name, argument, NULL, FIRST_CODE + count};
        count++;
    }
    opterr = 0;
    optind = 0; /* getopt_long starts again, also at a second call */
    while ((code = getopt_long(argc, argv, letters, long_options, NULL)) != -1) {
        char typed[100], label[100];
        int which = code == ':' ? optopt : code;
        const at_setting *option = which == 'h'          ? option_named(command, "help")
                                   : which >= FIRST_CODE ? known[which - FIRST_CODE]
                                                         : option_lettered(command, which);
        typed_name(argv, typed, sizeof typed);
        if (code == ':')
            return fail(error, AT_USAGE, "--%s needs a value: --%s %s", option->name, option->name, option->argument);
        if (code == '?' && optopt >= FIRST_CODE)
            return fail(error, AT_USAGE, "--%s takes no value", known[optopt - FIRST_CODE]->name);
        if (code == '?' && optopt)
            return no_option(command, lettered_word(argc, argv, optopt, typed), error);
        if (code == '?')
            return no_option(command, typed, error);
        if (code < FIRST_CODE && is_long_name(command, argv[optind - 1]) && optarg != argv[optind - 1])
            return no_option(command, argv[optind - 1], error);
        snprintf(label, sizeof label, "--%s", option->name);
        /* Whole names only: a shortened one would change its meaning when another option comes to begin like it. */
        if (code >= FIRST_CODE && strcmp(typed, label) != 0)
            return no_option(command, typed, error);
        const char *value = option->type == AT_SETTING_SWITCH ? "true" : optarg;
        if (!value && optind < argc && is_value(option, argv[optind]))
            value = argv[optind++];
        if (only_config && strcmp(option->name, "config") != 0)
            continue;
        if (!option_assign(option, label, value ? value : option->implied, into, error))
            return false;
    }
    return true;
}

bool options_parse(const cli_command *command, int argc, char **argv, void *into, int *first_word, at_error *error)
{
    cli_common *shared = into;
    memset(into, 0, command->size);
    for (const at_setting *option = NULL; (option = option_next(command, option));) {
        if (option->type == AT_SETTING_COUNT)
            *(int64_t *)((char *)into + option->offset) = UNSET;
        if (option->type == AT_SETTING_NUMBER)
            *(double *)((char *)into + option->offset) = NAN;
        if (option->fallback && !option_assign(option, option->name, option->fallback, into, error))
            return false;
    }
    bool good =
        read_line(command, argc, argv, true, into, error) && (!shared->config || read_config(command, into, error));
    settle(command, into);
    good = good && read_line(command, argc, argv, false, into, error);
    *first_word = optind;
    if (good && argc - optind > command->most_words && !shared->help && !shared->version) {
        if (command->most_words)
            return fail(error, AT_USAGE, "attend %s takes one name, so '%s' is too much", command->name,
                        argv[optind + command->most_words]);
        return fail(error, AT_USAGE, "attend %s takes options only, not '%s'", command->name, argv[optind]);
    }
    return good;
}

void options_free(const cli_command *command, void *options)
{
    for (const at_setting *option = NULL; (option = option_next(command, option));)
        at_setting_release(option, options);
    free(((cli_common *)options)->config_text);
}
