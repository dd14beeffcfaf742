#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CODE = 1000 };

const cli_option common_options[] = {
    {OPTION_HEADING, .help = "Of every command"},
    {OPTION_TEXT, "config", "FILE", offsetof(cli_common, config),
     .help = "options from a file of `key = value` lines, the keys being the options' names; # starts a comment; the "
             "command line wins"},
    {OPTION_NUMBER, "threads", "N", offsetof(cli_common, threads), .least = 1, .most = 64,
     .help = "threads to use; the results have the same bits for any number (default: the cores there are)"},
    {OPTION_NUMBER, "seed", "N", offsetof(cli_common, seed), "1", .help = "seed of whatever is random"},
    {OPTION_FLAG, "quiet", .place = offsetof(cli_common, quiet), .help = "say nothing on stderr but errors"},
    {OPTION_FLAG, "verbose", .place = offsetof(cli_common, verbose),
     .help = "say on stderr what was done and how long it took"},
    {OPTION_FLAG, "help", .place = offsetof(cli_common, help), .help = "show this text"},
    {OPTION_FLAG, "version", .place = offsetof(cli_common, version), .help = "show the version"},
    {0},
};

const cli_option *option_at(const cli_command *command, int index)
{
    static const cli_option none = {0};
    const cli_option *own = command->list ? command->list() : command->options ? command->options : &none;
    while (own->help && index > 0) {
        own++;
        index--;
    }
    if (own->help)
        return own;
    for (const cli_option *shared = common_options; shared->help; shared++)
        if (index-- == 0)
            return shared;
    return NULL;
}

int option_names(const cli_command *command, const char **names)
{
    int count = 0;
    for (int i = 0; option_at(command, i); i++)
        if (option_at(command, i)->name && count < MOST_OPTIONS)
            names[count++] = option_at(command, i)->name;
    return count;
}

const cli_option *option_named(const cli_command *command, const char *name)
{
    for (int i = 0; option_at(command, i); i++)
        if (option_at(command, i)->name && strcmp(option_at(command, i)->name, name) == 0)
            return option_at(command, i);
    return NULL;
}

/* The option that -m is short for; NULL if it is for none. */
static const cli_option *option_lettered(const cli_command *command, int letter)
{
    for (int i = 0; option_at(command, i); i++)
        if (option_at(command, i)->letter && option_at(command, i)->letter == letter)
            return option_at(command, i);
    return NULL;
}

/* "'a', 'b' and 'c'" */
static void list_names(const char *const *names, int count, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < count && used < size; i++) {
        const char *before = i == 0 ? "" : i == count - 1 ? " and " : ", ";
        int more = snprintf(out + used, size - used, "%s'%s'", before, names[i]);
        used += more > 0 ? (size_t)more : 0;
    }
}

bool fail_no(at_error *error, const char *what, const char *word, const char *const *names, int count)
{
    char near[200], all[300];
    at_suggest(word, names, count, near, sizeof near);
    if (near[0])
        return fail(error, AT_USAGE, "no %s '%s'%s", what, word, near);
    list_names(names, count, all, sizeof all);
    return fail(error, AT_USAGE, "no %s '%s'; there %s %s", what, word, count == 1 ? "is" : "are", all);
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

static bool read_number(const cli_option *option, const char *label, const char *text, int64_t *number, at_error *error)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    bool whole = end != text && *end == 0 && errno == 0;
    if (whole && value >= option->least && (option->most == 0 || value <= option->most)) {
        *number = value;
        return true;
    }
    if (option->most)
        return fail(error, AT_USAGE, "%s takes a whole number from %lld to %lld, not '%s'", label,
                    (long long)option->least, (long long)option->most, text);
    return fail(error, AT_USAGE, "%s takes a whole number, %lld or more, not '%s'", label, (long long)option->least,
                text);
}

/* Like a whole number, with its bounds, but not whole. */
static bool read_real(const cli_option *option, const char *label, const char *text, double *number, at_error *error)
{
    char *end;
    double value = strtod(text, &end);
    if (end != text && *end == 0 && isfinite(value) && value >= (double)option->least &&
        (option->most == 0 || value <= (double)option->most)) {
        *number = value;
        return true;
    }
    if (option->most)
        return fail(error, AT_USAGE, "%s takes a number from %lld to %lld, not '%s'", label, (long long)option->least,
                    (long long)option->most, text);
    return fail(error, AT_USAGE, "%s takes a number, %lld or more, not '%s'", label, (long long)option->least, text);
}

static bool read_numbers(const cli_option *option, const char *label, const char *text, cli_numbers *list,
                         at_error *error)
{
    int64_t room = 1;
    for (const char *at = text; *at; at++)
        room += *at == ',';
    int64_t *value = malloc((size_t)room * sizeof *value);
    char *copy = strdup(text), *rest = copy;
    bool good = value && copy;
    if (!good)
        fail(error, AT_FAILED, "out of memory reading %s", label);
    for (int64_t i = 0; good && i < room; i++)
        good = read_number(option, label, strsep(&rest, ","), &value[i], error);
    free(copy);
    if (!good) {
        free(value);
        return false;
    }
    free(list->value);
    *list = (cli_numbers){value, room};
    return true;
}

static bool read_text(const char *label, const char *text, cli_texts *list, at_error *error)
{
    if (list->settled)
        list->count = 0;
    list->settled = false;
    const char **value = realloc(list->value, ((size_t)list->count + 1) * sizeof *value);
    if (!value)
        return fail(error, AT_FAILED, "out of memory reading %s", label);
    list->value = value;
    list->value[list->count++] = text;
    return true;
}

static bool read_pair(const char *label, const char *text, cli_pairs *list, at_error *error)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return fail(error, AT_USAGE, "%s takes NAME=FILE, like W=w.npy, not '%s'", label, text);
    char *name = strndup(text, (size_t)(equals - text));
    for (int i = 0; name && i < list->count; i++) {
        if (strcmp(list->name[i], name) == 0) {
            list->file[i] = equals + 1;
            free(name);
            return true;
        }
    }
    size_t room = (size_t)list->count + 1;
    char **names = realloc(list->name, room * sizeof *names);
    if (names)
        list->name = names;
    const char **files = realloc(list->file, room * sizeof *files);
    if (files)
        list->file = files;
    if (!name || !names || !files) {
        free(name);
        return fail(error, AT_FAILED, "out of memory reading %s", label);
    }
    list->name[list->count] = name;
    list->file[list->count++] = equals + 1;
    return true;
}

static bool read_flag(const char *label, const char *text, bool *flag, at_error *error)
{
    static const char *const yes[] = {"true", "yes", "on", "1"}, *const no[] = {"false", "no", "off", "0"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
            *flag = strcmp(text, yes[i]) == 0;
            return true;
        }
    }
    return fail(error, AT_USAGE, "%s takes true or false, not '%s'", label, text);
}

/* The name before a colon must be one of the axis; what follows it is for the operator to judge. */
static bool check_axis(const cli_option *option, const char *text, at_error *error)
{
    const char *names[MOST_OPTIONS];
    int count = 0;
    char name[100];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, ":"), text);
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
    return fail_no(error, option->axis, name, names, count);
}

bool option_assign(const cli_option *option, const char *label, const char *text, void *into, at_error *error)
{
    void *field = (char *)into + option->place;
    if (option->axis && !check_axis(option, text, error))
        return false;
    if ((option->kind == OPTION_TEXT || option->kind == OPTION_TEXTS) && !*text)
        return fail(error, AT_USAGE, "%s takes %s, not an empty word", label, option->argument);
    switch (option->kind) {
    case OPTION_FLAG:
        return read_flag(label, text, field, error);
    case OPTION_TEXT:
        *(const char **)field = text;
        return true;
    case OPTION_TEXTS:
        return read_text(label, text, field, error);
    case OPTION_NUMBER:
        return read_number(option, label, text, field, error);
    case OPTION_REAL:
        return read_real(option, label, text, field, error);
    case OPTION_NUMBERS:
        return read_numbers(option, label, text, field, error);
    case OPTION_PAIRS:
        return read_pair(label, text, field, error);
    case OPTION_HEADING:
        break;
    }
    return true;
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
    const cli_option *option = option_named(command, key);
    if (!option || !strcmp(key, "config") || !strcmp(key, "help") || !strcmp(key, "version")) {
        const char *names[MOST_OPTIONS];
        char near[200];
        at_suggest(key, names, option ? 0 : option_names(command, names), near, sizeof near);
        return fail(error, AT_USAGE, "%s:%d: no setting '%s' for attend %s%s", path, number, key, command->name, near);
    }
    snprintf(label, sizeof label, "%s:%d: %s", path, number, key);
    bool good = option_assign(option, label, value, into, error);
    if (!good && option->axis) { /* its sentence names no option, so it still needs the place */
        snprintf(label, sizeof label, "%s:%d", path, number);
        fail_under(error, label);
    }
    return good;
}

char *text_of_file(const char *path, at_error *error)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;
    ssize_t length = file ? getdelim(&text, &room, 0, file) : -1;
    bool good = file && !ferror(file);
    if (!good)
        fail(error, AT_FAILED, "cannot read '%s': %s", path, strerror(errno));
    else if (length > 0 && !text[length - 1])
        good = fail(error, AT_FAILED, "'%s' is no text, as there is a zero byte in it", path);
    if (file)
        fclose(file);
    if (good && length >= 0) {
        static const char mark[] = "\xEF\xBB\xBF"; /* of byte order, which some editors begin a text with */
        if (strncmp(text, mark, 3) == 0)
            memmove(text, text + 3, (size_t)length - 2);
        return text;
    }
    free(text); /* getdelim gives -1 for an empty file */
    return good ? strdup("") : NULL;
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

static bool no_option(const cli_command *command, const char *typed, at_error *error)
{
    const char *names[MOST_OPTIONS];
    char dashed[MOST_OPTIONS][40], near[200];
    int count = option_names(command, names);
    for (int i = 0; i < count; i++) {
        snprintf(dashed[i], sizeof dashed[i], "--%s", names[i]);
        names[i] = dashed[i];
    }
    at_suggest(typed, names, count, near, sizeof near);
    if (near[0])
        return fail(error, AT_USAGE, "no option '%s'%s", typed, near);
    return fail(error, AT_USAGE, "no option '%s'; attend %s --help shows those there are", typed, command->name);
}

/* A number, or several with commas between. */
static bool is_number(const char *word)
{
    return *word && *word != ',' && word[strspn(word, "0123456789,")] == 0;
}

/* The texts of the --config file have come to their end. */
static void settle(const cli_command *command, void *into)
{
    for (int i = 0; option_at(command, i); i++)
        if (option_at(command, i)->kind == OPTION_TEXTS)
            ((cli_texts *)((char *)into + option_at(command, i)->place))->settled = true;
}

/* Goes through the command line once. With `only_config` it takes nothing but the name of the --config file, which must
 * be read before all else is set. */
static bool read_line(const cli_command *command, int argc, char **argv, bool only_config, void *into, at_error *error)
{
    struct option long_options[MOST_OPTIONS + 1] = {0};
    const cli_option *known[MOST_OPTIONS];
    char letters[2 * MOST_OPTIONS + 3] = ":h";
    int count = 0, code, letter_count = 2;
    for (int i = 0; option_at(command, i) && count < MOST_OPTIONS; i++) {
        const cli_option *option = option_at(command, i);
        if (!option->name)
            continue;
        if (option->letter) {
            letters[letter_count++] = option->letter;
            if (option->kind != OPTION_FLAG)
                letters[letter_count++] = ':';
        }
        known[count] = option;
        int argument = option->kind == OPTION_FLAG ? no_argument
                       : option->implied           ? optional_argument
                                                   : required_argument;
        long_options[count] = (struct option){option->name, argument, NULL, FIRST_CODE + count};
        count++;
    }
    opterr = 0;
    optind = 0; /* starts anew, also a second time */
    while ((code = getopt_long(argc, argv, letters, long_options, NULL)) != -1) {
        char typed[100], label[100];
        int which = code == ':' ? optopt : code;
        const cli_option *option = which == 'h'          ? option_named(command, "help")
                                   : which >= FIRST_CODE ? known[which - FIRST_CODE]
                                                         : option_lettered(command, which);
        typed_name(argv, typed, sizeof typed);
        if (code == ':')
            return fail(error, AT_USAGE, "--%s needs a value: --%s %s", option->name, option->name, option->argument);
        if (code == '?' && optopt >= FIRST_CODE)
            return fail(error, AT_USAGE, "--%s takes no value", known[optopt - FIRST_CODE]->name);
        if (code == '?' && optopt) {
            snprintf(typed, sizeof typed, "-%c", optopt);
            return no_option(command, typed, error);
        }
        if (code == '?')
            return no_option(command, typed, error);
        snprintf(label, sizeof label, "--%s", option->name);
        /* Whole names only: a shortened one would change its meaning when another option comes to begin like it. */
        if (code >= FIRST_CODE && strcmp(typed, label) != 0)
            return no_option(command, typed, error);
        const char *value = option->kind == OPTION_FLAG ? "true" : optarg;
        if (!value && optind < argc && is_number(argv[optind]))
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
    for (int i = 0; option_at(command, i); i++) {
        const cli_option *option = option_at(command, i);
        if (option->kind == OPTION_NUMBER)
            *(int64_t *)((char *)into + option->place) = UNSET;
        if (option->kind == OPTION_REAL)
            *(double *)((char *)into + option->place) = NAN;
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
    for (int i = 0; option_at(command, i); i++) {
        void *field = (char *)options + option_at(command, i)->place;
        if (option_at(command, i)->kind == OPTION_NUMBERS)
            free(((cli_numbers *)field)->value);
        if (option_at(command, i)->kind == OPTION_TEXTS)
            free(((cli_texts *)field)->value);
        if (option_at(command, i)->kind == OPTION_PAIRS) {
            cli_pairs *list = field;
            for (int n = 0; n < list->count; n++)
                free(list->name[n]);
            free(list->name);
            free(list->file);
        }
    }
    free(((cli_common *)options)->config_text);
}
