#include "train_options.h"

#include <string.h>

#include "help.h"

enum { HELP = 400, VALUE = 64 };

/* ---- Defaults ------------------------------------------------------------------------------------------------- */

/* A help text may end in a default that is no value, as in "(default: an epoch)". The length of the text before it; the
 * default itself in `prose`, or "". */
static int cut_default(const char *help, char *prose, size_t size)
{
    static const char mark[] = " (default: ";
    const char *at = strstr(help, mark);
    const size_t length = strlen(help);
    prose[0] = 0;
    if (!at || help[length - 1] != ')')
        return (int)length;
    const char *from = at + sizeof mark - 1;
    snprintf(prose, size, "%.*s", (int)(help + length - 1 - from), from);
    return (int)(at - help);
}

/* "; 0.5 for rnn-plain and rnn-attention": the models that come first with this default, beginning with `first`. */
static void add_models(const at_setting *row, int first, const char *value, char *out, size_t size)
{
    const char *names[MOST_OPTIONS];
    char other[VALUE];
    int count = 0;
    for (int i = first; at_model_entry(i) && count < MOST_OPTIONS; i++)
        if (at_training_default(at_model_entry(i)->name, row->name, other, sizeof other) && strcmp(other, value) == 0)
            names[count++] = at_model_entry(i)->name;
    size_t used = strlen(out);
    snprintf(out + used, size - used, "; %s for", value);
    for (int i = 0; i < count; i++) {
        used = strlen(out);
        snprintf(out + used, size - used, "%s%s", i == 0 ? " " : i == count - 1 ? " and " : ", ", names[i]);
    }
}

/* Whether a model before this one has the same default, so that it was added already. */
static bool is_added(const at_setting *row, int model, const char *value)
{
    char other[VALUE];
    for (int i = 0; i < model; i++)
        if (at_training_default(at_model_entry(i)->name, row->name, other, sizeof other) && strcmp(other, value) == 0)
            return true;
    return false;
}

/* The defaults of all models: the usual one, then those of models that differ. */
static void list_defaults(const at_setting *row, const char *usual, char *out, size_t size)
{
    char value[VALUE];
    snprintf(out, size, "%s", usual);
    for (int i = 0; at_model_entry(i); i++)
        if (at_training_default(at_model_entry(i)->name, row->name, value, sizeof value) && *value &&
            strcmp(value, row->fallback ? row->fallback : "") != 0 && !is_added(row, i, value))
            add_models(row, i, value, out, size);
}

/* The row's help with its default: of one model, or of all. */
static void describe(const at_setting *row, const char *model, char *out)
{
    char prose[200], value[VALUE] = "", defaults[300] = "";
    const int length = cut_default(row->help, prose, sizeof prose);
    const char *usual = prose[0] ? prose : row->argument && row->fallback ? row->fallback : "";
    if (model && row->argument && at_training_default(model, row->name, value, sizeof value) && *value)
        usual = value;
    if (model)
        snprintf(defaults, sizeof defaults, "%s", usual);
    else
        list_defaults(row, usual, defaults, sizeof defaults);
    const char *shown = strncmp(defaults, "; ", 2) == 0 ? defaults + 2 : defaults; /* there is no usual one */
    snprintf(out, HELP, "%.*s%s%s%s", length, row->help, *shown ? " (default: " : "", shown, *shown ? ")" : "");
}

/* ---- Options -------------------------------------------------------------------------------------------------- */

/* The library's row, whose value is taken as text and parsed by at_training_set. A default is told in the help and not
 * set here: the library fills in the defaults, as they depend on the model. */
static void make_option(int index, const at_setting *row, const char *help, at_setting *option)
{
    *option = *row;
    option->type = row->argument ? AT_SETTING_TEXT : AT_SETTING_SWITCH;
    option->offset = row->argument ? offsetof(train_options, value) + (size_t)index * sizeof(const char *)
                                   : offsetof(train_options, flag) + (size_t)index * sizeof(bool);
    option->known = NULL;
    option->fallback = NULL;
    option->help = help;
}

/* Room for a list of options and their help. */
typedef struct option_list {
    at_setting option[2 * MOST_SETTINGS + 1];
    char help[MOST_SETTINGS][HELP];
} option_list;

static const at_setting *make_list(option_list *list, const char *model)
{
    const char *group = "";
    int count = 0;
    for (int i = 0; i < MOST_SETTINGS && at_training_setting(i); i++) {
        const at_setting *row = at_training_setting(i);
        char value[VALUE];
        if (row->type == AT_SETTING_SEED) /* an option of every command */
            continue;
        if (model && !at_training_default(model, row->name, value, sizeof value))
            continue;
        if (strcmp(row->group, group) != 0)
            list->option[count++] = (at_setting){.type = AT_SETTING_HEADING, .help = group = row->group};
        describe(row, model, list->help[i]);
        make_option(i, row, list->help[i], &list->option[count++]);
    }
    list->option[count] = (at_setting){0};
    return list->option;
}

const at_setting *train_options_all(void)
{
    static option_list list;
    return list.option[0].help ? list.option : make_list(&list, NULL);
}

/* ---- One model ------------------------------------------------------------------------------------------------ */

static const at_entry *entry_of(const char *model)
{
    for (int i = 0; at_model_entry(i); i++)
        if (strcmp(at_model_entry(i)->name, model) == 0)
            return at_model_entry(i);
    return NULL;
}

static const at_setting *list_of(const char *model)
{
    static option_list list;
    return entry_of(model) ? make_list(&list, model) : NULL;
}

static const char *name_at(int index)
{
    return at_model_entry(index) ? at_model_entry(index)->name : NULL;
}

/* Whether the model has a default of its own for a setting of training, as it has for those of "The model". */
static bool is_own(const char *model, const char *name)
{
    char value[VALUE];
    for (int i = 0; at_training_setting(i); i++) {
        const at_setting *row = at_training_setting(i);
        if (strcmp(row->name, name) == 0)
            return at_training_default(model, name, value, sizeof value) &&
                   strcmp(value, row->fallback ? row->fallback : "") != 0;
    }
    return false;
}

static void introduce(const char *model, int right)
{
    const at_entry *entry = entry_of(model);
    print_heading(entry->name);
    fputs("  ", stdout);
    print_wrapped(stdout, entry->formula, 4, right, 2);
    if (*entry->paper)
        printf("  %s\n", entry->paper);
}

const cli_variants train_variants = {.option = "model",
                                     .group = "The model",
                                     .name_at = name_at,
                                     .list = list_of,
                                     .is_own = is_own,
                                     .introduce = introduce};
