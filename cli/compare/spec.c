/* The SPEC of attend compare: `key = value` lines into a grid of settings. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"

const char *const compare_set_names[SETS] = {"test", "beyond"};

/* The keys beside the options of attend train. */
static const at_setting keys[] = {
    {AT_SETTING_TEXT, "title", "TEXT", offsetof(compare_spec, title), .help = "heading of the table"},
    {AT_SETTING_TEXT, "task", "NAME", offsetof(compare_spec, task), .help = "generates the data"},
    {AT_SETTING_COUNT, "symbols", "N", offsetof(compare_spec, symbols), "20", 2, 10000, .help = "different words"},
    {AT_SETTING_TEXT, "lengths", "A-B", offsetof(compare_spec, lengths), "3-12", .help = "words in a line"},
    {AT_SETTING_TEXT, "beyond", "A-B", offsetof(compare_spec, beyond), .help = "words in a line of the set beyond"},
    {AT_SETTING_COUNT, "train-lines", "N", offsetof(compare_spec, train_lines), "20000", 1, 10000000, .help = "pairs"},
    {AT_SETTING_COUNT, "valid-lines", "N", offsetof(compare_spec, valid_lines), "0", 0, 1000000, .help = "pairs"},
    {AT_SETTING_COUNT, "test-lines", "N", offsetof(compare_spec, test_lines), "300", 1, 1000000, .help = "pairs"},
    {AT_SETTING_TEXT, "seeds", "N...", offsetof(compare_spec, seeds), "1 2 3",
     .help = "every cell is run with each seed"},
    {AT_SETTING_TEXT, "metrics", "NAME...", offsetof(compare_spec, metrics), "accuracy wer",
     .help = "the first by length"},
    {AT_SETTING_TEXT, "tokenise", "NAME", offsetof(compare_spec, tokenise), .help = "the tokeniser of bleu"},
    {AT_SETTING_COUNT, "beam", "N", offsetof(compare_spec, beam), "1", 1, 1000, .help = "of the translations"},
    {AT_SETTING_NUMBER, "length-penalty", "A", offsetof(compare_spec, length_penalty), "0", -100, 100,
     .help = "of the translations"},
#define SET_KEYS(name_, set_)                                                                                          \
    {AT_SETTING_TEXT, name_ "-source", "FILE", offsetof(compare_spec, set[set_].source), .help = "source lines"},      \
        {AT_SETTING_TEXT, name_ "-target", "FILE", offsetof(compare_spec, set[set_].target), .help = "target lines"},  \
    {                                                                                                                  \
        AT_SETTING_TEXT, name_ "-tsv", "FILE", offsetof(compare_spec, set[set_].tsv), .help = "both in one file"       \
    }
    SET_KEYS("test", TEST),
    SET_KEYS("beyond", BEYOND),
    {AT_SETTING_TEXT, "test-alignment", "FILE", offsetof(compare_spec, set[TEST].alignment),
     .help = "links of the test set"},
    {0},
};

/* A position in the SPEC, for error messages: "grid.spec:3", or "--set". */
typedef struct position {
    char text[300];
    const char *folder; /* what its paths are relative to */
} position;

char *compare_keep(compare_spec *spec, at_error *error, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    char **kept = text ? realloc(spec->kept, ((size_t)spec->kept_count + 1) * sizeof *kept) : NULL;
    if (kept) {
        spec->kept = kept;
        kept[spec->kept_count++] = text;
        return text;
    }
    free(text);
    fail(error, AT_MEMORY, "out of memory reading '%s'", spec->path);
    return NULL;
}

/* ---- Values --------------------------------------------------------------------------------------------------- */

static bool fail_at(const position *at, at_error *error)
{
    fail_under(error, at->text);
    return false;
}

static bool is_model(const char *word, at_error *error)
{
    enum { MOST_MODELS = 32 };
    const char *names[MOST_MODELS];
    int count = 0;
    while (count < MOST_MODELS && at_model_entry(count)) {
        names[count] = at_model_entry(count)->name;
        if (strcmp(names[count++], word) == 0)
            return true;
    }
    return at_unknown("model", word, names, count, error);
}

/* Checks a value as attend train does: by the table of options, and by the library. */
static bool check_value(const at_setting *option, const char *value, at_error *error)
{
    static const char *const yes_or_no[] = {"true", "false"};
    if (strcmp(option->name, "model") == 0)
        return is_model(value, error);
    if (option->type == AT_SETTING_SWITCH) {
        if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0)
            return true;
        char near[200];
        at_suggest(value, yes_or_no, 2, near, sizeof near);
        return fail(error, AT_USAGE, "%s takes true or false, not '%s'%s", option->name, value, near);
    }
    char *words[] = {"train", NULL, NULL};
    int first;
    void *options = malloc(command_train.size);
    at_training *training = options ? at_training_new(error) : NULL;
    bool good = training && asprintf(&words[1], "--%s=%s", option->name, value) > 0;
    if (good) {
        good = options_parse(&command_train, 2, words, options, &first, error) &&
               at_training_set(training, option->name, value, error);
        options_free(&command_train, options);
    } else {
        fail(error, AT_MEMORY, "out of memory");
    }
    at_training_free(training);
    free(options);
    free(words[1]);
    return good;
}

bool compare_takes_file(const at_setting *option)
{
    return option->argument && strcmp(option->argument, "FILE") == 0;
}

bool compare_is_file(const at_setting *option, const char *value)
{
    return compare_takes_file(option) || (option->argument && strcmp(option->argument, "KIND") == 0 &&
                                          (ends_in(value, ".spm") || ends_in(value, ".model")));
}

const at_setting *compare_word_option(const char *word)
{
    return strncmp(word, "--", 2) == 0 ? option_named(&command_train, word + 2) : NULL;
}

/* The value, or the path of the file that it names. */
static const char *located(compare_spec *spec, const position *at, const at_setting *option, const char *value,
                           at_error *error)
{
    if (!compare_is_file(option, value) || value[0] == '/' || !at->folder)
        return compare_keep(spec, error, "%s", value);
    return compare_keep(spec, error, "%s/%s", at->folder, value);
}

/* ---- Options of attend train ---------------------------------------------------------------------------------- */

static bool no_setting(const char *name, at_error *error)
{
    const char *names[MOST_OPTIONS + 40];
    char near[200];
    int count = 0;
    for (const at_setting *key = keys; key->name; key++)
        names[count++] = key->name;
    names[count++] = "row";
    for (const at_setting *option = command_train.list(); option->help; option++)
        if (option->name && count < MOST_OPTIONS + 40)
            names[count++] = option->name;
    at_suggest(name, names, count, near, sizeof near);
    return fail(error, AT_USAGE, "no setting '%s' for attend compare%s", name, near);
}

/* An option of attend train that a SPEC may have. */
static const at_setting *train_option(const char *name, at_error *error)
{
    for (const at_setting *option = command_train.list(); option->help; option++) {
        if (!option->name || strcmp(option->name, name) != 0)
            continue;
        if (strcmp(name, "output") != 0 && strcmp(name, "resume") != 0 && strcmp(name, "overwrite") != 0)
            return option;
        fail(error, AT_USAGE, "'%s' is set by attend compare for each run", name);
        return NULL;
    }
    no_setting(name, error);
    return NULL;
}

/* A key of attend train: one file, or values separated by blanks. A later line replaces an earlier one. */
static bool read_grid(compare_spec *spec, const position *at, const at_setting *option, const char *text,
                      at_error *error)
{
    int index = 0;
    while (index < spec->key_count && spec->key[index].option != option)
        index++;
    if (index == MOST_KEYS)
        return fail(error, AT_USAGE, "there are more than %d keys", MOST_KEYS);
    spec->key_count += index == spec->key_count;
    compare_key *key = &spec->key[index];
    *key = (compare_key){.option = option, .dashed = compare_keep(spec, error, "--%s", option->name)};
    if (compare_takes_file(option) && *text) {
        key->value[key->count++] = located(spec, at, option, text, error);
        return error->code == AT_OK;
    }
    char *rest = compare_keep(spec, error, "%s", text), *word;
    while (rest && (word = strsep(&rest, " \t"))) {
        if (!*word)
            continue;
        if (key->count == MOST_VALUES)
            return fail(error, AT_USAGE, "%s has more than %d values", option->name, MOST_VALUES);
        if (!check_value(option, word, error))
            return false;
        for (int i = 0; i < key->count; i++)
            if (strcmp(key->value[i], word) == 0)
                return fail(error, AT_USAGE, "%s has '%s' twice", option->name, word);
        key->value[key->count++] = located(spec, at, option, word, error);
    }
    if (key->count == 0 && error->code == AT_OK)
        return fail(error, AT_USAGE, "%s takes %s, not an empty word", option->name,
                    option->argument ? option->argument : "true or false");
    return error->code == AT_OK;
}

/* The words of a row: --option value, or --option of a switch. */
static bool read_row_words(compare_spec *spec, const position *at, compare_row *row, char *rest, at_error *error)
{
    const at_setting *waiting = NULL; /* for its value */
    char *word;
    while ((word = strsep(&rest, " \t"))) {
        if (!*word)
            continue;
        if (row->count == MOST_ROW_WORDS)
            return fail(error, AT_USAGE, "a row has at most %d words", MOST_ROW_WORDS);
        if (waiting && !(waiting->implied && strncmp(word, "--", 2) == 0)) {
            if (!check_value(waiting, word, error))
                return false;
            row->word[row->count++] = (char *)located(spec, at, waiting, word, error);
            waiting = NULL;
            continue;
        }
        if (strncmp(word, "--", 2) != 0)
            return fail(error, AT_USAGE, "a row is NAME : --option value ..., and '%s' is not an option", word);
        waiting = train_option(word + 2, error);
        if (!waiting)
            return false;
        row->word[row->count++] = word;
        if (waiting->type == AT_SETTING_SWITCH)
            waiting = NULL;
    }
    if (waiting && !waiting->implied)
        return fail(error, AT_USAGE, "--%s needs a value: --%s %s", waiting->name, waiting->name, waiting->argument);
    return error->code == AT_OK;
}

static bool read_row(compare_spec *spec, const position *at, const char *text, at_error *error)
{
    if (spec->row_count == MOST_ROWS)
        return fail(error, AT_USAGE, "there are more than %d rows", MOST_ROWS);
    char *copy = compare_keep(spec, error, "%s", text), *colon = copy ? strstr(copy, " :") : NULL;
    if (!copy)
        return false;
    if (!colon || colon == copy || (colon[2] && colon[2] != ' '))
        return fail(error, AT_USAGE, "a row is NAME : --option value ..., not '%s'", text);
    *colon = 0;
    for (int i = 0; i < spec->row_count; i++)
        if (strcmp(spec->row[i].name, copy) == 0)
            return fail(error, AT_USAGE, "there are two rows '%s'", copy);
    compare_row *row = &spec->row[spec->row_count++];
    *row = (compare_row){.name = copy};
    return read_row_words(spec, at, row, colon + 2, error);
}

/* ---- Lists ---------------------------------------------------------------------------------------------------- */

static bool read_seeds(compare_spec *spec, at_error *error)
{
    char *rest = compare_keep(spec, error, "%s", spec->seeds), *word, *end;
    spec->seed_count = 0;
    while (rest && (word = strsep(&rest, " \t"))) {
        if (!*word)
            continue;
        errno = 0;
        const long long seed = strtoll(word, &end, 10);
        const bool number = !*end && seed >= 0 && errno == 0;
        if (!number || spec->seed_count == MOST_SEEDS)
            return fail(error, AT_USAGE, "seeds takes up to %d whole numbers separated by blanks, not '%s'", MOST_SEEDS,
                        number ? spec->seeds : word);
        for (int i = 0; i < spec->seed_count; i++)
            if (spec->seed[i] == seed)
                return fail(error, AT_USAGE, "seeds has %lld twice", seed);
        spec->seed[spec->seed_count++] = seed;
    }
    return spec->seed_count > 0 || fail(error, AT_USAGE, "seeds takes whole numbers, and there is none");
}

static bool read_metrics(compare_spec *spec, at_error *error)
{
    const char *names[32];
    int count = 0;
    for (int i = 0; at_metric(i) && count < 32; i++)
        if (!at_metric(i)->alignments) /* aer is added by itself where links are known */
            names[count++] = at_metric(i)->name;
    char *rest = compare_keep(spec, error, "%s", spec->metrics), *word;
    spec->metric_count = 0;
    while (rest && (word = strsep(&rest, " \t"))) {
        int i = 0;
        if (!*word)
            continue;
        while (i < count && strcmp(names[i], word) != 0)
            i++;
        if (i == count)
            return at_unknown("metric", word, names, count, error);
        for (int before = 0; before < spec->metric_count; before++)
            if (strcmp(spec->metric[before], word) == 0)
                return fail(error, AT_USAGE, "metrics has '%s' twice", word);
        if (spec->metric_count == MOST_METRICS)
            return fail(error, AT_USAGE, "metrics takes up to %d of them", MOST_METRICS);
        spec->metric[spec->metric_count++] = word;
    }
    return spec->metric_count > 0 || fail(error, AT_USAGE, "metrics takes names, and there is none");
}

static bool check_tokeniser(const char *name, at_error *error)
{
    const char *names[16];
    int count = 0;
    for (; count < 16 && at_tokeniser_name(count); count++) {
        names[count] = at_tokeniser_name(count);
        if (strcmp(names[count], name) == 0)
            return true;
    }
    return at_unknown("tokeniser", name, names, count, error);
}

static bool read_task(compare_spec *spec, at_error *error)
{
    enum { MOST_TASKS = 32 };
    const char *names[MOST_TASKS];
    int count = 0;
    for (; count < MOST_TASKS && task_at(count); count++) {
        names[count] = task_at(count)->name;
        if (strcmp(names[count], spec->task) == 0) {
            spec->maker = task_at(count);
            return true;
        }
    }
    return at_unknown("task", spec->task, names, count, error);
}

/* "3-12", or "7" for lines of one length. */
static bool read_lengths(const char *name, const char *text, task_size *size, at_error *error)
{
    int used = 0;
    if (sscanf(text, "%d-%d%n", &size->least, &size->most, &used) != 2 || text[used]) {
        used = 0;
        sscanf(text, "%d%n", &size->least, &used);
        size->most = size->least;
    }
    if (used == 0 || text[used] || size->least < 1 || size->most < size->least || size->most > MOST_WORDS)
        return fail(error, AT_USAGE,
                    "%s takes the number of words of the shortest and the longest line, like 3-12, not '%s'", name,
                    text);
    return true;
}

/* Checks what the table of keys does not. */
static bool check_key(compare_spec *spec, const char *name, at_error *error)
{
    return strcmp(name, "seeds") == 0      ? read_seeds(spec, error)
           : strcmp(name, "metrics") == 0  ? read_metrics(spec, error)
           : strcmp(name, "tokenise") == 0 ? check_tokeniser(spec->tokenise, error)
           : strcmp(name, "task") == 0     ? read_task(spec, error)
           : strcmp(name, "lengths") == 0  ? read_lengths(name, spec->lengths, &spec->size[TEST], error)
           : strcmp(name, "beyond") == 0   ? read_lengths(name, spec->beyond, &spec->size[BEYOND], error)
                                           : true;
}

/* ---- Lines ---------------------------------------------------------------------------------------------------- */

/* Named data replaces a task, so that --set can run a SPEC on other data. */
static void settle_data(compare_spec *spec, const char *name)
{
    if (strcmp(name, "source") == 0 || strcmp(name, "tsv") == 0)
        spec->maker = NULL;
}

static bool read_key(compare_spec *spec, const position *at, const char *name, const char *value, at_error *error)
{
    if (strcmp(name, "row") == 0)
        return read_row(spec, at, value, error) || fail_at(at, error);
    for (const at_setting *key = keys; key->name; key++) {
        char label[400];
        if (strcmp(key->name, name) != 0)
            continue;
        snprintf(label, sizeof label, "%s: %s", at->text, name);
        const char *kept = located(spec, at, key, value, error);
        spec->given[key - keys] = true;
        return kept && option_assign(key, label, kept, spec, error) &&
               (check_key(spec, name, error) || fail_at(at, error));
    }
    const at_setting *option = train_option(name, error);
    if (option)
        settle_data(spec, name);
    return (option && read_grid(spec, at, option, value, error)) || fail_at(at, error);
}

/* ---- The grid ------------------------------------------------------------------------------------------------- */

bool compare_row_has(const compare_row *row, const char *name)
{
    for (int i = 0; i < row->count; i++)
        if (strncmp(row->word[i], "--", 2) == 0 && strcmp(row->word[i] + 2, name) == 0)
            return true;
    return false;
}

static bool make_axes(compare_spec *spec, at_error *error)
{
    if (spec->row_count)
        spec->axis[spec->axis_count++] = (compare_axis){NULL, spec->row_count};
    for (int i = 0; i < spec->key_count; i++) {
        const compare_key *key = &spec->key[i];
        if (key->count < 2)
            continue;
        for (int r = 0; r < spec->row_count; r++)
            if (compare_row_has(&spec->row[r], key->option->name))
                return fail(error, AT_USAGE, "%s: row '%s' has its own --%s, which is multiplied already", spec->path,
                            spec->row[r].name, key->option->name);
        spec->axis[spec->axis_count++] = (compare_axis){key, key->count};
    }
    spec->cell_count = 1;
    for (int a = 0; a < spec->axis_count; a++) {
        spec->cell_count *= spec->axis[a].count;
        if (spec->cell_count > MOST_CELLS)
            return fail(error, AT_USAGE, "%s: there are more than %d combinations", spec->path, MOST_CELLS);
    }
    return true;
}

/* The last axis changes first. */
static int step_of(const compare_spec *spec, int cell, int axis)
{
    for (int a = spec->axis_count - 1; a > axis; a--)
        cell /= spec->axis[a].count;
    return cell % spec->axis[axis].count;
}

const char *compare_value(const compare_spec *spec, int cell, int axis)
{
    int step = step_of(spec, cell, axis);
    const compare_key *key = spec->axis[axis].key;
    return key ? key->value[step] : spec->row[step].name;
}

const char *compare_setting(const compare_spec *spec, const char *name)
{
    for (int i = 0; i < spec->key_count; i++)
        if (strcmp(spec->key[i].option->name, name) == 0)
            return spec->key[i].value[0];
    return NULL;
}

at_score_settings compare_scoring(const compare_spec *spec)
{
    bool lower = false;
    for (int i = 0; i < spec->key_count; i++) {
        const compare_key *key = &spec->key[i];
        lower = lower ||
                (strcmp(key->option->name, "lowercase") == 0 && key->count == 1 && strcmp(key->value[0], "true") == 0);
    }
    return (at_score_settings){.tokenise = spec->tokenise, .lowercase = lower};
}

/* Whether a key only shapes the data that a task generates. */
static bool is_of_task(const char *name)
{
    static const char *const names[] = {"task",        "symbols",     "lengths",   "beyond",
                                        "train-lines", "valid-lines", "test-lines"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Why a key has no effect; NULL if it has one. */
static const char *why_unused(const compare_spec *spec, const char *name)
{
    if (!spec->maker && is_of_task(name))
        return "the data is named";
    if (spec->maker && strcmp(name, "test-alignment") == 0)
        return "the task generates the links";
    if (strcmp(name, "tokenise") != 0)
        return NULL;
    for (int i = 0; i < spec->metric_count; i++)
        if (at_metric_named(spec->metric[i])->tokenises)
            return NULL;
    return "no metric uses a tokeniser";
}

void compare_unused(const compare_spec *spec, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (const at_setting *key = keys; key->name && used < size; key++) {
        const char *why = spec->given[key - keys] ? why_unused(spec, key->name) : NULL;
        if (why)
            used += (size_t)snprintf(out + used, size - used, "%s'%s' (%s)", used ? ", " : "", key->name, why);
    }
}

int compare_options(const compare_spec *spec, int cell, const char *words[MOST_LINE_WORDS])
{
    int count = 0;
    const compare_row *row = spec->row_count ? &spec->row[step_of(spec, cell, 0)] : NULL;
    for (int i = 0; i < spec->key_count; i++) {
        const compare_key *key = &spec->key[i];
        const char *value = key->value[0];
        for (int a = 0; a < spec->axis_count; a++)
            if (spec->axis[a].key == key)
                value = compare_value(spec, cell, a);
        bool flag = key->option->type == AT_SETTING_SWITCH;
        if ((row && compare_row_has(row, key->option->name)) || (flag && strcmp(value, "true") != 0))
            continue;
        words[count++] = key->dashed;
        if (!flag)
            words[count++] = value;
    }
    for (int i = 0; row && i < row->count; i++)
        words[count++] = row->word[i];
    return count;
}

/* ---- All of it ------------------------------------------------------------------------------------------------ */

static bool read_lines(compare_spec *spec, const char *text, at_error *error)
{
    char *rest = compare_keep(spec, error, "%s", text), *line, *name, *value;
    for (int number = 1; rest && (line = strsep(&rest, "\n")); number++) {
        position at = {.folder = spec->folder};
        snprintf(at.text, sizeof at.text, "%s:%d", spec->path, number);
        if (!config_line(spec->path, number, line, &name, &value, error) ||
            (*name && !read_key(spec, &at, name, value, error)))
            return false;
    }
    return error->code == AT_OK;
}

static bool read_sets(compare_spec *spec, const at_texts *sets, at_error *error)
{
    for (int i = 0; i < sets->count; i++) {
        char *name = compare_keep(spec, error, "%s", sets->value[i]), *equals = name ? strchr(name, '=') : NULL;
        if (name && (!equals || equals == name))
            return fail(error, AT_USAGE, "--set takes KEY=VALUE, like updates=500, not '%s'", sets->value[i]);
        if (!name)
            return false;
        *equals = 0;
        if (!read_key(spec, &(position){.text = "--set"}, name, equals + 1, error))
            return false;
    }
    return true;
}

bool compare_spec_read(compare_spec *spec, const char *path, const char *folder, const char *text, const at_texts *sets,
                       at_error *error)
{
    *spec = (compare_spec){.path = path, .folder = folder};
    spec->key = calloc(MOST_KEYS, sizeof *spec->key);
    spec->row = calloc(MOST_ROWS, sizeof *spec->row);
    if (!spec->key || !spec->row)
        return fail(error, AT_MEMORY, "out of memory reading '%s'", path);
    for (const at_setting *key = keys; key->name; key++) {
        if (key->type == AT_SETTING_COUNT)
            *(int64_t *)((char *)spec + key->offset) = UNSET;
        if (key->fallback &&
            !(option_assign(key, key->name, key->fallback, spec, error) && check_key(spec, key->name, error)))
            return false;
    }
    return read_lines(spec, text, error) && read_sets(spec, sets, error) && make_axes(spec, error);
}

void compare_spec_free(compare_spec *spec)
{
    for (int i = 0; i < spec->kept_count; i++)
        free(spec->kept[i]);
    free(spec->kept);
    free(spec->key);
    free(spec->row);
}
