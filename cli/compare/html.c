/* The table of attend compare as one self-contained HTML page, without scripts, external fonts or images. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"

static const char head[] = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                           "<meta name=\"color-scheme\" content=\"light dark\">\n<style>\n";
static const char style[] =
    ":root { --text: #1a1a1a; --ground: #fff; --rule: #ddd; --strong: #777; --track: #e6e6e6; --bar: #3b6ea5; "
    "--bad: #8a1f11; --heat: #08468c }\n"
    "@media (prefers-color-scheme: dark) { :root { --text: #ddd; --ground: #16181b; --rule: #383b40; --strong: #999; "
    "--track: #33363b; --bar: #7db3ec; --bad: #ff9d8f; --heat: #9ccbff } }\n"
    "@media print { :root { --text: #000; --ground: #fff; --rule: #ccc; --strong: #777; --track: #e6e6e6; "
    "--bar: #3b6ea5; --bad: #8a1f11; --heat: #08468c } }\n"
    "body { font: 15px/1.45 system-ui, sans-serif; margin: 1.5em 2em; color: var(--text); background: var(--ground) }\n"
    "h1 { font-size: 1.3em } h2 { font-size: 1.05em; margin-top: 2em }\n"
    ".wide { overflow-x: auto }\n"
    "table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; width: 100% }\n"
    "th, td { padding: .25em .5em; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap }\n"
    "th.name, td.name { text-align: left }\n"
    "thead th { border-bottom: 2px solid var(--strong); vertical-align: bottom; white-space: normal }\n"
    "td.best { font-weight: 600 }\n"
    "td.why { text-align: left; white-space: normal; color: var(--bad) }\n"
    "td svg { display: block; margin-left: auto }\n"
    ".track { fill: var(--track) } .bar { fill: var(--bar) } .whisker { stroke: var(--text); fill: none }\n"
    ".map { fill: var(--heat); font: 11px system-ui, sans-serif } .map text { fill: var(--text) }\n"
    ".map .ground { fill: none; stroke: var(--rule) }\n"
    ".plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(42em, 100%), 1fr)); gap: 0 2em }\n"
    ".plots section { overflow-x: auto } .plot { min-width: 40em }\n" /* in narrow windows its words stay readable */
    ".maps { display: flex; flex-wrap: wrap; gap: 1.5em } figure { margin: 0 } figcaption { font-size: .9em }\n"
    "code { font-size: .85em; overflow-wrap: anywhere }\n"
    "@media print { body { margin: 0; font-size: 9pt } .wide { overflow: visible } details { display: none } "
    "figure, svg, tr { break-inside: avoid } }\n";

static void element(FILE *f, const char *open, const char *words, const char *close)
{
    fputs(open, f);
    markup_text(f, words);
    fputs(close, f);
}

/* "shaw:4, 8": the values of a cell. */
static void label_of(const compare_spec *spec, int cell, char *out, size_t size)
{
    snprintf(out, size, "%s", spec->axis_count ? "" : "all settings");
    for (int a = 0; a < spec->axis_count; a++) {
        size_t used = strlen(out);
        snprintf(out + used, size - used, "%s%s", a ? ", " : "", compare_value(spec, cell, a));
    }
}

/* ---- The table ------------------------------------------------------------------------------------------------ */

/* A bar of 0 to 100, and a whisker of the spread on either side of its end. */
static void write_bar(FILE *f, double mean, double spread)
{
    enum { BAR = 66, TALL = 8 };
    const double scale = BAR / 100.0, end = scale * fmin(fmax(mean, 0), 100);
    fprintf(f,
            "<svg width=\"%d\" height=\"%d\" role=\"presentation\"><rect class=\"track\" y=\"2\" width=\"%d\" "
            "height=\"4\"/><rect class=\"bar\" y=\"2\" width=\"%.1f\" height=\"4\"/>",
            BAR, TALL, BAR, end);
    if (spread > 0) {
        const double low = scale * fmin(fmax(mean - spread, 0), 100), high = scale * fmin(fmax(mean + spread, 0), 100);
        fprintf(f, "<path class=\"whisker\" d=\"M%.1f 1v6m0 -3H%.1fm0 -3v6\"/>", low, high);
    }
    fputs("</svg>", f);
}

static void write_cell(FILE *f, const compare_table *table, int cell, int m)
{
    char words[CELL_TEXT];
    double mean, spread;
    compare_mean(table, cell, m, &mean, &spread);
    const bool best = table->measure[m].quality && compare_is_best(table, cell, m);
    const double p = compare_p(table, cell, m);
    if (isnan(p))
        fputs(best ? "<td class=\"best\">" : "<td>", f);
    else
        fprintf(f, "<td%s title=\"p = %.3f\">", best ? " class=\"best\"" : "", p);
    element(f, "", compare_cell_text(table, cell, m, words), compare_is_worse(table, cell, m) ? "<sup>†</sup>" : "");
    if (table->measure[m].metric && !isnan(mean)) /* a percentage */
        write_bar(f, mean, spread);
    fputs("</td>", f);
}

static void write_row(FILE *f, const compare_table *table, int cell)
{
    const compare_spec *spec = table->spec;
    const compare_run *run = compare_cell_run(table, cell);
    double mean, spread;
    fputs("<tr>", f);
    for (int a = 0; a < spec->axis_count; a++)
        element(f, "<td class=\"name\">", compare_value(spec, cell, a), "</td>");
    if (compare_mean(table, cell, 0, &mean, &spread) == 0) {
        fprintf(f, "<td class=\"why\" colspan=\"%d\">%s: ", table->measure_count + 1, compare_empty_text(run));
        element(f, "", run->why, "</td></tr>\n");
        return;
    }
    fputs("<td>", f);
    if (table->picture[cell].weights)
        compare_picture_write(f, &table->picture[cell], false);
    else
        fputs("–", f);
    fputs("</td>", f);
    for (int m = 0; m < table->measure_count; m++)
        write_cell(f, table, cell, m);
    fputs("</tr>\n", f);
}

static void write_table(FILE *f, const compare_table *table)
{
    const compare_spec *spec = table->spec;
    fputs("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"The table\"><table>\n<thead><tr>", f);
    for (int a = 0; a < spec->axis_count; a++)
        element(f, "<th class=\"name\">", compare_axis_title(spec, a), "</th>");
    fputs("<th>attention</th>", f);
    for (int m = 0; m < table->measure_count; m++) {
        const int better = table->measure[m].better;
        element(f, "<th>", table->measure[m].title,
                better > 0   ? "&#160;<span title=\"more is better\">↑</span></th>"
                : better < 0 ? "&#160;<span title=\"less is better\">↓</span></th>"
                             : "</th>");
    }
    fputs("</tr></thead>\n<tbody>\n", f);
    for (int cell = 0; cell < spec->cell_count; cell++)
        write_row(f, table, cell);
    fputs("</tbody></table></div>\n", f);
}

/* ---- Plots ---------------------------------------------------------------------------------------------------- */

/* The names of the lines, one for each cell. */
typedef struct labels {
    char text[COMPARE_MOST_LINES][300];
} labels;

static void label_all(const compare_table *table, labels *names)
{
    for (int cell = 0; cell < table->spec->cell_count; cell++)
        label_of(table->spec, cell, names->text[cell], sizeof names->text[cell]);
}

/* The measures along the length: those of the first metric with lengths, then that of the set beyond. */
static int plotted(const compare_table *table, int points[MOST_BUCKETS + 1])
{
    int count = 0;
    for (int m = 0; m < table->first_cost; m++) {
        const compare_measure *one = &table->measure[m];
        if (one->metric == table->spec->metric[0] && (one->part || one->set == BEYOND))
            points[count++] = m;
    }
    return count;
}

static void write_lengths(FILE *f, const compare_table *table, const labels *names)
{
    enum { MOST = MOST_BUCKETS + 1 };
    int points[MOST];
    const int count = plotted(table, points);
    const char *titles[MOST];
    svg_line lines[COMPARE_MOST_LINES];
    svg_point point[COMPARE_MOST_LINES][MOST];
    svg_plot plot = {.x_title = "length of the source",
                     .y_title = table->spec->metric[0],
                     .x_names = titles,
                     .x_count = count,
                     .percent = true,
                     .dots = true,
                     .line = lines};
    for (int i = 0; i < count; i++)
        titles[i] = table->measure[points[i]].title;
    for (int cell = 0; cell < table->spec->cell_count; cell++) {
        int known = 0;
        for (int i = 0; i < count; i++) {
            svg_point *at = &point[cell][known];
            at->x = i;
            compare_mean(table, cell, points[i], &at->y, &at->error);
            known += !isnan(at->y);
        }
        if (known)
            lines[plot.lines++] = (svg_line){names->text[cell], cell, point[cell], known};
    }
    if (count < 2)
        return;
    element(f, "<section tabindex=\"0\"><h2>", table->spec->metric[0], " by the length of the source</h2>\n");
    svg_plot_write(f, &plot);
    fputs("</section>\n", f);
}

/* The curves of all runs, those of a cell in one colour: their lines, to release with free; NULL: no memory. */
static svg_line *plot_curves(const compare_table *table, const labels *names, bool valid, char title[100],
                             svg_plot *into)
{
    const int cells = table->spec->cell_count;
    bool listed[COMPARE_MOST_LINES] = {false};
    svg_line *lines = calloc((size_t)table->run_count + 1, sizeof *lines);
    svg_plot plot = {.x_title = "updates", .y_title = title, .line = lines};
    snprintf(title, 100, valid ? "validation: %s" : "training loss", table->valid_metric);
    for (int i = 0; lines && i < table->run_count; i++) {
        const compare_curve *curve = &table->curve[i];
        const int cell = i % cells, count = valid ? curve->valids : curve->losses;
        if (count < 2)
            continue;
        lines[plot.lines++] =
            (svg_line){listed[cell] ? NULL : names->text[cell], cell, valid ? curve->valid : curve->loss, count};
        listed[cell] = true;
    }
    *into = plot;
    return lines;
}

/* False if there is no memory for them. */
static bool write_curves(FILE *f, const compare_table *table, const labels *names, bool valid)
{
    char title[100];
    svg_plot plot;
    svg_line *lines = plot_curves(table, names, valid, title, &plot);
    if (plot.lines) {
        element(f, "<section tabindex=\"0\"><h2>", valid ? "Validation while training" : "Loss while training",
                "</h2>\n");
        svg_plot_write(f, &plot);
        fputs("</section>\n", f);
    }
    free(lines);
    return lines;
}

bool compare_write_curves(FILE *f, const void *context)
{
    const compare_table *table = context;
    labels names;
    char title[2][100];
    svg_plot plot[2];
    svg_line *lines[2];
    int tall = 0;
    label_all(table, &names);
    for (int i = 0; i < 2; i++) {
        lines[i] = plot_curves(table, &names, i, title[i], &plot[i]);
        plot[i].is_part = true;
        plot[i].top = tall;
        tall += plot[i].lines ? svg_plot_height(&plot[i]) : 0;
    }
    svg_file_begin(f, tall > 0 ? tall : 40);
    if (tall == 0)
        fputs("<text x=\"12\" y=\"26\" fill=\"currentColor\" font-family=\"sans-serif\">no run was reported or "
              "validated twice</text>\n",
              f);
    for (int i = 0; i < 2; i++)
        if (plot[i].lines)
            svg_plot_write(f, &plot[i]);
    svg_file_end(f);
    const bool whole = lines[0] && lines[1];
    free(lines[0]);
    free(lines[1]);
    return whole && !ferror(f);
}

static bool write_plots(FILE *f, const compare_table *table)
{
    const int cells = table->spec->cell_count;
    labels names;
    if (cells > COMPARE_MOST_LINES) {
        fprintf(f, "<p>No plots: they have at most %d lines, and there are %d rows.</p>\n", COMPARE_MOST_LINES, cells);
        return true;
    }
    label_all(table, &names);
    fputs("<div class=\"plots\">\n", f);
    write_lengths(f, table, &names);
    const bool whole = write_curves(f, table, &names, false) && write_curves(f, table, &names, true);
    fputs("</div>\n", f);
    return whole;
}

/* ---- The page ------------------------------------------------------------------------------------------------- */

static void write_maps(FILE *f, const compare_table *table)
{
    char label[300], line[600];
    const at_line source = table->data->source[TEST]->line[table->pictured];
    int shown = 0;
    snprintf(line, sizeof line, "%.*s", (int)(source.size < 400 ? source.size : 400), source.text);
    for (int cell = 0; cell < table->spec->cell_count; cell++) {
        const compare_picture *picture = &table->picture[cell];
        if (!picture->weights)
            continue;
        if (!shown++)
            element(f, "<h2>Attention in “", line, "”</h2>\n<div class=\"maps\">\n");
        label_of(table->spec, cell, label, sizeof label);
        element(f, "<figure><figcaption>", label, "</figcaption>");
        compare_picture_write(f, picture, true);
        fputs("</figure>\n", f);
    }
    if (shown)
        fprintf(f,
                "</div>\n<p>Line %lld of the test set, by the model of the first seed: a row for each word it writes, "
                "the mean over its layers and heads.</p>\n",
                (long long)table->pictured + 1);
}

static void write_lines(FILE *f, const compare_table *table)
{
    fputs("<details><summary>The commands of the runs</summary>\n<ul>\n", f);
    for (int i = 0; i < table->run_count; i++) {
        element(f, "<li><code>", table->run[i].line, "</code>");
        if (table->run[i].state == RUN_FAILED)
            element(f, " failed: ", table->run[i].why, "");
        fputs("</li>\n", f);
    }
    fputs("</ul></details>\n", f);
}

bool compare_write_html(FILE *f, const void *context)
{
    const compare_table *table = context;
    const char *title = table->spec->title ? table->spec->title : table->spec->path;
    char notes[1500];
    compare_notes(table, notes, sizeof notes);
    fprintf(f, "%s%s%s</style>\n", head, svg_style, style);
    element(f, "<title>", title, "</title>\n</head>\n<body>\n<main>\n");
    element(f, "<h1>", title, "</h1>\n");
    write_table(f, table);
    element(f, "<p>", notes, "</p>\n<p>↑ more is better, ↓ less is better. † " COMPARE_WORSE "</p>\n");
    if (!write_plots(f, table))
        return false;
    write_maps(f, table);
    write_lines(f, table);
    fprintf(f, "<p>attend %s, ", at_version());
    element(f, "<code>attend compare ", table->spec->path, "</code></p>\n</main>\n</body>\n</html>\n");
    return !ferror(f);
}
