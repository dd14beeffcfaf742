/* attend curve: the loss and the scores of runs over their updates, from their logs. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "drawing.h"
#include "outputs.h"
#include "text_plot.h"
#include "train_log.h"

enum { MOST_LOGS = 32 };

typedef struct curve_options {
    cli_common common;
    const char *output;
    at_texts metrics;
} curve_options;

/* The logs, and the names of what is drawn of them. */
typedef struct curves {
    train_log log[MOST_LOGS];
    const char *name[MOST_LOGS];
    int logs;
    const char *metric[MOST_SERIES];
    int metrics;
} curves;

/* ---- What is drawn -------------------------------------------------------------------------------------------- */

static bool has_series(const curves *c, const char *name)
{
    for (int i = 0; i < c->logs; i++)
        if (train_log_find(&c->log[i], name))
            return true;
    return false;
}

static bool is_chosen(const curves *c, const char *name)
{
    for (int i = 0; i < c->metrics; i++)
        if (strcmp(c->metric[i], name) == 0)
            return true;
    return false;
}

/* All that the logs have; the perplexity only where there is no loss, whose exponential it is. */
static void choose_all(curves *c)
{
    const bool has_loss = has_series(c, "loss");
    for (int i = 0; i < c->logs; i++)
        for (int s = 0; s < c->log[i].count && c->metrics < MOST_SERIES; s++) {
            const char *name = c->log[i].series[s].name;
            if (!is_chosen(c, name) && !(has_loss && strcmp(name, "perplexity") == 0))
                c->metric[c->metrics++] = name;
        }
}

static bool choose(curves *c, const at_texts *asked, at_error *error)
{
    const char *names[MOST_SERIES];
    int count = 0;
    if (asked->count == 0)
        choose_all(c);
    for (int i = 0; i < asked->count && c->metrics < MOST_SERIES; i++) {
        if (!has_series(c, asked->value[i])) {
            choose_all(c);
            for (; count < c->metrics; count++)
                names[count] = c->metric[count];
            return at_unknown("curve", asked->value[i], names, count, error);
        }
        if (!is_chosen(c, asked->value[i]))
            c->metric[c->metrics++] = asked->value[i];
    }
    return c->metrics > 0 ||
           fail(error, AT_FORMAT, "there is nothing to draw yet: no log has a report or a validation");
}

/* "training loss" and "validation bleu". */
static const char *title_of(const char *metric, char title[60])
{
    if (strcmp(metric, "cost") == 0)
        snprintf(title, 60, "training loss");
    else
        snprintf(title, 60, "validation %s", metric);
    return title;
}

/* The plot of a metric: a line for each log that has it. */
static svg_plot plot_of(const curves *c, const char *metric, svg_line line[MOST_LOGS], char title[60])
{
    svg_plot plot = {.x_title = "updates", .y_title = title_of(metric, title), .line = line};
    plot.dots = strcmp(metric, "cost") != 0;
    for (int i = 0; i < c->logs; i++) {
        const log_series *s = train_log_find(&c->log[i], metric);
        if (s)
            line[plot.lines++] = (svg_line){c->name[i], i, s->point, s->count};
    }
    return plot;
}

/* ---- Writers -------------------------------------------------------------------------------------------------- */

static bool print_plots(const curves *c)
{
    const bool colour = colour_wanted();
    const int width = terminal_width();
    svg_line line[MOST_LOGS];
    char title[60];
    for (int m = 0; m < c->metrics; m++) {
        const svg_plot plot = plot_of(c, c->metric[m], line, title);
        if (!text_plot_print(stdout, &plot, width > 0 ? width : 80, colour))
            return false;
    }
    for (int i = 0; i < c->logs; i++) {
        text_plot_mark(stdout, i, colour);
        putchar(' ');
        print_plain(stdout, c->name[i], strlen(c->name[i]));
        putchar('\n');
    }
    return true;
}

static bool write_svg(FILE *f, const void *context)
{
    const curves *c = context;
    svg_line line[MOST_LOGS];
    char title[60];
    int tall = 0;
    for (int m = 0; m < c->metrics; m++) {
        const svg_plot plot = plot_of(c, c->metric[m], line, title);
        tall += svg_plot_height(&plot);
    }
    svg_file_begin(f, tall);
    for (int m = 0, top = 0; m < c->metrics; m++) {
        svg_plot plot = plot_of(c, c->metric[m], line, title);
        plot.is_part = true;
        plot.top = top;
        svg_plot_write(f, &plot);
        top += svg_plot_height(&plot);
    }
    svg_file_end(f);
    return !ferror(f);
}

static bool write_tsv(FILE *f, const void *context)
{
    const curves *c = context;
    fputs("log\tmetric\tupdate\tvalue\n", f);
    for (int m = 0; m < c->metrics; m++)
        for (int i = 0; i < c->logs; i++) {
            const log_series *s = train_log_find(&c->log[i], c->metric[m]);
            for (int p = 0; s && p < s->count; p++)
                fprintf(f, "%s\t%s\t%.0f\t%.9g\n", c->name[i], s->name, s->point[p].x, s->point[p].y);
        }
    return !ferror(f);
}

/* A drawing that librsvg makes of the SVG text. */
static bool write_rasterised(const curves *c, const char *path, at_error *error)
{
    text_file text;
    if (!text_open(&text, error))
        return false;
    write_svg(text.stream, c);
    char *svg = text_take(&text, error);
    const bool good = svg && drawing_save(svg, path, error);
    free(svg);
    return good;
}

static bool write_file(const curves *c, const char *path, at_error *error)
{
    if (ends_in(path, ".png") || ends_in(path, ".pdf"))
        return write_rasterised(c, path, error);
    cli_outputs outputs = {0};
    cli_output *file = outputs_add(&outputs, "-o", path, error);
    if (file) {
        file->write = ends_in(path, ".svg") ? write_svg : write_tsv;
        file->context = c;
        outputs_write(&outputs, error);
    }
    outputs_free(&outputs);
    return error->code == AT_OK;
}

/* ---- The command ---------------------------------------------------------------------------------------------- */

/* The log of a model may be named by the model. */
static bool read_log(const char *word, train_log *log, at_error *error)
{
    char beside[PATH_MAX];
    const bool fits = snprintf(beside, sizeof beside, "%s.log.jsonl", word) < (int)sizeof beside;
    return train_log_read(fits && access(beside, F_OK) == 0 ? beside : word, log, error);
}

static bool draw(curves *c, const curve_options *o, int word_count, char **words, at_error *error)
{
    if (word_count == 0)
        return fail(error, AT_USAGE, "attend curve needs a log: attend curve OUTPUT.log.jsonl");
    if (word_count > MOST_LOGS)
        return fail(error, AT_USAGE, "attend curve draws at most %d logs, not %d", MOST_LOGS, word_count);
    if (o->output && !is_drawing(o->output) && !ends_in(o->output, ".tsv"))
        return fail(error, AT_USAGE, "-o is a name that ends in .svg, .png, .pdf or .tsv, not '%s'", o->output);
    for (int i = 0; i < word_count; i++) {
        c->name[i] = words[i];
        c->logs = i + 1;
        if (!read_log(words[i], &c->log[i], error))
            return false;
    }
    if (!choose(c, &o->metrics, error))
        return false;
    if (o->output)
        return write_file(c, o->output, error);
    return print_plots(c) || fail(error, AT_MEMORY, "out of memory for a plot");
}

static int run(void *options, int word_count, char **words)
{
    at_error error = {0};
    curves c = {0};
    draw(&c, options, word_count, words, &error);
    for (int i = 0; i < c.logs; i++)
        train_log_free(&c.log[i]);
    return report(&error);
}

static const at_setting table[] = {
    {AT_SETTING_HEADING, .help = "What to draw"},
    {AT_SETTING_TEXTS, "metric", "NAME", offsetof(curve_options, metrics),
     .help =
         "draw only this: cost, the training loss, or a metric of the validations such as loss or bleu; may be given "
         "several times (default: all but the perplexity of a run with a loss)"},
    {AT_SETTING_TEXT, "output", "FILE", offsetof(curve_options, output), .letter = 'o',
     .help = "write to a file instead: .svg, .png or .pdf the drawing, .tsv the numbers"},
    {0},
};

const cli_command command_curve = {
    .name = "curve",
    .words = "LOG...",
    .most_words = INT_MAX,
    .line = "draw loss and scores of training runs, from their logs",
    .text =
        "Draws the training loss and the scores of the validations over the updates, for one run or several, from "
        "the logs that attend train writes beside its models. LOG is such a file, or the model it stands beside. In "
        "the terminal each run has a mark and a colour of its own; an .svg file is readable on light and dark "
        "screens and in print. A run that is still going on can be drawn, too.",
    .examples = "  attend curve de-en.safetensors.log.jsonl\n"
                "  attend curve seed1.st seed2.st --metric bleu\n"
                "  attend curve runs/*.log.jsonl -o runs.svg",
    .options = table,
    .size = sizeof(curve_options),
    .run = run,
};
