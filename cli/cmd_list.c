/* attend list: what there is to choose from. */
#include <string.h>

#include "compare/compare.h"
#include "demo/demo.h"
#include "help.h"

/* A topic shows the entries of an axis, the models, metrics, demos, or the comparisons that come with attend. */
static const struct topic {
    const char *name, *axis;
} topics[] = {
    {"scores", "score"},       {"normalisers", "normaliser"},
    {"windows", "window"},     {"positions", "position"},
    {"models", "model"},       {"optimisers", "optimiser"},
    {"schedules", "schedule"}, {"vocabularies", "vocabulary"},
    {"metrics", NULL},         {"demos", NULL},
    {"compares", NULL},
};
enum { TOPICS = sizeof topics / sizeof *topics, COLUMNS = 4 };

/* One line of the table. */
typedef struct table_line {
    char name[ENTRY_TEXT], title[200];
    const char *formula, *parameters, *paper;
} table_line;

static const char *topic_at(int index)
{
    const at_entry *model = index < TOPICS ? NULL : at_model_entry(index - TOPICS);
    return index < TOPICS ? topics[index].name : model ? model->name : NULL;
}

/* The index-th entry of an axis: those of attention, then those of training; NULL past the last. */
static const at_entry *entry_at(const char *axis, int index)
{
    if (strcmp(axis, "model") == 0)
        return at_model_entry(index);
    for (int i = 0; at_catalogue(i); i++)
        if (strcmp(at_catalogue(i)->axis, axis) == 0 && index-- == 0)
            return at_catalogue(i);
    for (int i = 0; at_training_entry(i); i++)
        if (strcmp(at_training_entry(i)->axis, axis) == 0 && index-- == 0)
            return at_training_entry(i);
    return NULL;
}

/* A metric, its meaning, and which way is better. */
static bool metric_line(int index, table_line *out)
{
    const at_metric_info *metric = at_metric(index);
    if (!metric)
        return false;
    snprintf(out->name, sizeof out->name, "%s", metric->name);
    out->formula = metric->meaning;
    out->parameters = metric->better == AT_LARGER_IS_BETTER ? "↑" : "↓";
    return true;
}

/* The index-th line of a topic; false past the last. */
static bool line_at(const struct topic *topic, int index, table_line *out)
{
    memset(out, 0, sizeof *out);
    if (strcmp(topic->name, "metrics") == 0)
        return metric_line(index, out);
    if (strcmp(topic->name, "compares") == 0) {
        const compare_preset *preset = compare_preset_at(index);
        if (!preset)
            return false;
        snprintf(out->name, sizeof out->name, "%s", preset->name);
        compare_preset_title(preset, out->title, sizeof out->title);
        out->formula = out->title;
        out->parameters = out->paper = "";
        return true;
    }
    if (!topic->axis) {
        const cli_demo *demo = demo_at(index);
        if (!demo)
            return false;
        snprintf(out->name, sizeof out->name, "%s", demo->name);
        out->formula = demo->line;
        out->parameters = out->paper = "";
        return true;
    }
    const at_entry *entry = entry_at(topic->axis, index);
    if (!entry)
        return false;
    entry_typed(entry, out->name);
    out->formula = entry->formula;
    out->parameters = entry->parameters;
    out->paper = entry->paper;
    return true;
}

static const char *cell(const table_line *line, int column)
{
    const char *cells[COLUMNS] = {line->name, line->formula, line->parameters, line->paper};
    return cells[column] ? cells[column] : "";
}

enum { BEFORE = 2, BETWEEN = 2 }; /* blanks before a line and between its columns */

static void print_cells(const table_line *line, const int width[COLUMNS])
{
    int last = COLUMNS - 1, owed = BEFORE; /* spaces before the next cell */
    while (last > 0 && !*cell(line, last))
        last--;
    for (int c = 0; c <= last; c++) {
        if (width[c] == 0)
            continue;
        printf("%*s%s", owed, "", cell(line, c));
        owed = width[c] - text_width(cell(line, c)) + BETWEEN;
    }
    putchar('\n');
}

/* The name, then the other cells below each other: for a table that is too wide. */
static void print_stacked(const table_line *line, const int width[COLUMNS], int room)
{
    const int left = BEFORE + width[0] + BETWEEN;
    printf("%*s", BEFORE, "");
    print_padded(stdout, cell(line, 0), width[0] + BETWEEN);
    for (int c = 1, first = 1; c < COLUMNS; c++) {
        if (!*cell(line, c))
            continue;
        printf("%*s", first ? 0 : left, "");
        print_wrapped(stdout, cell(line, c), left, room, left);
        first = 0;
    }
}

/* Prints a topic as a table whose columns are as wide as their widest cell; a column of empty cells is left out. */
static void print_topic(const struct topic *topic)
{
    int width[COLUMNS] = {0}, whole = BEFORE - BETWEEN;
    const int room = terminal_width();
    table_line line;
    for (int i = 0; line_at(topic, i, &line); i++)
        for (int c = 0; c < COLUMNS; c++)
            if (text_width(cell(&line, c)) > width[c])
                width[c] = text_width(cell(&line, c));
    for (int c = 0; c < COLUMNS; c++)
        whole += width[c] ? width[c] + BETWEEN : 0;
    for (int i = 0; line_at(topic, i, &line); i++)
        if (room && whole > room)
            print_stacked(&line, width, room);
        else
            print_cells(&line, width);
}

/* The name of a model: what it is, its options and its defaults. */
static bool is_model(const char *name)
{
    for (int i = 0; at_model_entry(i); i++)
        if (strcmp(at_model_entry(i)->name, name) == 0)
            return true;
    return false;
}

/* Neither a topic nor a model: the nearest of both, or all topics. */
static bool no_topic(const char *word, at_error *error)
{
    const char *names[MOST_OPTIONS];
    char near[200];
    int count = 0;
    for (int t = 0; t < TOPICS; t++)
        names[count++] = topics[t].name;
    for (int i = 0; at_model_entry(i) && count < MOST_OPTIONS; i++)
        names[count++] = at_model_entry(i)->name;
    at_suggest(word, names, count, near, sizeof near);
    return near[0] ? fail(error, AT_USAGE, "no topic '%s'%s", word, near)
                   : at_unknown("topic", word, names, TOPICS, error);
}

static int run(void *options, int word_count, char **words)
{
    (void)options;
    at_error error = {0};
    for (int t = 0; word_count && t < TOPICS; t++)
        if (strcmp(words[0], topics[t].name) == 0) {
            print_topic(&topics[t]);
            return EXIT_DONE;
        }
    if (word_count && is_model(words[0]))
        help_variant(&command_train, words[0], &error);
    else if (word_count)
        no_topic(words[0], &error);
    if (word_count)
        return report(&error);
    for (int t = 0; t < TOPICS; t++) {
        if (t)
            putchar('\n');
        print_heading(topics[t].name);
        print_topic(&topics[t]);
    }
    return EXIT_DONE;
}

const cli_command command_list = {
    .name = "list",
    .words = "[TOPIC|MODEL]",
    .most_words = 1,
    .word_at = topic_at,
    .line = "show what there is to choose from, with formulas and papers",
    .text = "Lists the scores, normalisers, windows and positions that attention is composed of, the models, what "
            "training offers, the metrics, the demos and the comparisons: name, formula, parameters, paper. TOPIC is "
            "scores, normalisers, windows, positions, models, optimisers, schedules, vocabularies, metrics, demos or "
            "compares; without it all are shown. The name of a model, such as transformer, shows its options and their "
            "defaults. A name takes its number after a colon, as in "
            "sliding:4; a parameter with a ? is optional.",
    .size = sizeof(cli_common),
    .run = run,
};
