/* The table of attend compare in the terminal. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"

enum { GAP = 2, PLAIN_WIDTH = 100 };

/* The deviation is printed for scores of a whole set; JSON has it for all measures. */
bool compare_has_spread(const compare_measure *m)
{
    return m->quality && !m->part;
}

char *compare_cell_text(const compare_table *table, int cell, int measure, char out[CELL_TEXT])
{
    const compare_measure *m = &table->measure[measure];
    double mean, spread;
    compare_mean(table, cell, measure, &mean, &spread);
    if (isnan(mean))
        snprintf(out, CELL_TEXT, "-");
    else if (isnan(spread) || !compare_has_spread(m))
        snprintf(out, CELL_TEXT, "%.*f", m->decimals, mean);
    else
        snprintf(out, CELL_TEXT, "%.*f ± %4.*f", m->decimals, mean, m->decimals, spread);
    return out;
}

const char *compare_empty_text(const compare_run *run)
{
    return run->state == RUN_REFUSED ? "not possible" : run->state == RUN_FAILED ? "failed" : "not yet run";
}

/* The same, or in the first column the state of a cell that has no values. */
static char *shown(const compare_table *table, int cell, int measure, char out[CELL_TEXT])
{
    const compare_run *run = compare_cell_run(table, cell);
    double mean, spread;
    if (measure > 0 || compare_mean(table, cell, measure, &mean, &spread) > 0)
        return compare_cell_text(table, cell, measure, out);
    snprintf(out, CELL_TEXT, "%s", compare_empty_text(run));
    return out;
}

const char *compare_axis_title(const compare_spec *spec, int axis)
{
    return spec->axis[axis].key ? spec->axis[axis].key->option->name : "setting";
}

static int axis_width(const compare_spec *spec, int axis)
{
    int width = text_width(compare_axis_title(spec, axis));
    for (int cell = 0; cell < spec->cell_count; cell++)
        if (text_width(compare_value(spec, cell, axis)) > width)
            width = text_width(compare_value(spec, cell, axis));
    return width + GAP;
}

static int measure_width(const compare_table *table, int measure)
{
    char text[CELL_TEXT];
    int width = text_width(table->measure[measure].title);
    for (int cell = 0; cell < table->spec->cell_count; cell++)
        if (text_width(shown(table, cell, measure, text)) > width)
            width = text_width(text);
    return width + GAP;
}

/* They depend on all cells, so they are computed once. */
typedef struct widths {
    int axis[MOST_KEYS + 1], measure[MOST_MEASURES];
} widths;

static widths widths_of(const compare_table *table)
{
    widths w;
    for (int a = 0; a < table->spec->axis_count; a++)
        w.axis[a] = axis_width(table->spec, a);
    for (int m = 0; m < table->measure_count; m++)
        w.measure[m] = measure_width(table, m);
    return w;
}

static void print_right(const char *text, int width, bool bold)
{
    printf("%*s%s%s%s", width - text_width(text), "", bold ? "\033[1m" : "", text, bold ? "\033[0m" : "");
}

/* One row of the measures from `first` to before `last`; cell -1 is the head. */
static void print_row(const compare_table *table, const widths *w, int cell, int first, int last)
{
    const compare_spec *spec = table->spec;
    const bool colour = colour_wanted();
    char text[CELL_TEXT];
    for (int a = 0; a < spec->axis_count; a++)
        print_padded(stdout, cell < 0 ? compare_axis_title(spec, a) : compare_value(spec, cell, a), w->axis[a]);
    for (int m = first; m < last; m++)
        print_right(cell < 0 ? table->measure[m].title : shown(table, cell, m, text),
                    w->measure[m] - (spec->axis_count || m > first ? 0 : GAP),
                    colour && (cell < 0 || (table->measure[m].quality && compare_is_best(table, cell, m))));
    putchar('\n');
}

void compare_notes(const compare_table *table, char *out, size_t size)
{
    const compare_spec *spec = table->spec;
    char seeds[400] = "";
    for (int i = 0; i < spec->seed_count; i++) {
        size_t used = strlen(seeds);
        snprintf(seeds + used, sizeof seeds - used, "%s%lld", i ? " " : "", (long long)spec->seed[i]);
    }
    char from[500] = "";
    const char *source = compare_setting(spec, "source"), *tsv = compare_setting(spec, "tsv");
    if (!spec->maker)
        snprintf(from, sizeof from, "'%s'", source ? source : tsv);
    else if (spec->maker->order)
        snprintf(from, sizeof from, "%lld pairs of the task %s, with %lld symbols in lines of %s words",
                 (long long)spec->train_lines, spec->maker->name, (long long)spec->symbols, spec->lengths);
    else
        snprintf(from, sizeof from, "%lld pairs of the task %s", (long long)spec->train_lines, spec->maker->name);
    const at_score_settings scoring = compare_scoring(spec);
    char words[80] = "";
    for (int i = 0; i < spec->metric_count; i++)
        if (at_metric_named(spec->metric[i])->tokenises)
            snprintf(words, sizeof words, " %s uses the tokeniser %s.", spec->metric[i],
                     scoring.tokenise ? scoring.tokenise : at_tokeniser_name(0));
    snprintf(
        out, size,
        "%s %s; %lld at a time with %lld thread%s each. A time is the median over the reports of training.%s%s%s%s "
        "Trained on %s.",
        spec->seed_count > 1 ? "Means over the seeds" : "Seed", seeds, (long long)table->jobs,
        (long long)table->threads, table->threads == 1 ? "" : "s",
        spec->seed_count > 1 ? " ± is the standard deviation over the seeds (n - 1)." : "", words,
        scoring.lowercase ? " Scores are lower-cased." : "",
        table->data->pointing
            ? " pointing: where an output is right, the weight on the cells of an object when its noun is said, "
              "divided "
              "by the object's share of the cells. The set beyond has combinations that training has not."
        : table->data->links[TEST] ? " aer is that of the head whose two directions agree most."
                                   : "",
        from);
}

static void print_failures(const compare_table *table)
{
    const compare_spec *spec = table->spec;
    for (int i = 0; i < table->run_count; i++) {
        const compare_run *run = &table->run[i];
        if (run->state == RUN_DONE || run->state == RUN_WAITING || (run->state == RUN_REFUSED && i >= spec->cell_count))
            continue;
        for (int a = 0; a < spec->axis_count; a++)
            printf("%s%s", a ? ", " : "", compare_value(spec, run->cell, a));
        if (run->state == RUN_FAILED)
            printf("%sseed %lld failed: %s\n", spec->axis_count ? ", " : "", (long long)run->seed, run->why);
        else
            printf(" is not possible: %s\n", run->why);
    }
}

void compare_print(const compare_table *table)
{
    const compare_spec *spec = table->spec;
    const widths w = widths_of(table);
    const int room = terminal_width();
    int labels = 0;
    char notes[1000];
    if (spec->title) {
        print_heading(spec->title);
        putchar('\n');
    }
    for (int a = 0; a < spec->axis_count; a++)
        labels += w.axis[a];
    for (int first = 0, last; first < table->measure_count; first = last) {
        int used = labels + w.measure[first];
        for (last = first + 1; last < table->measure_count; last++) {
            used += w.measure[last];
            if (room && used > room)
                break;
        }
        if (first)
            putchar('\n');
        for (int cell = -1; cell < spec->cell_count; cell++)
            print_row(table, &w, cell, first, last);
    }
    putchar('\n');
    print_failures(table);
    compare_notes(table, notes, sizeof notes);
    print_wrapped(stdout, notes, 0, room ? room : PLAIN_WIDTH, 0);
}
