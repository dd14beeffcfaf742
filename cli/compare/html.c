/* The table of attend compare as one self-contained HTML page, without scripts, external fonts or images. */
#include <math.h>
#include <string.h>

#include "compare/compare.h"

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<style>\n"
    "body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #1a1a1a; "
    "background: #fff }\n"
    "h1 { font-size: 1.3em } h2 { font-size: 1.05em; margin-top: 2em }\n"
    ".wide { overflow-x: auto }\n"
    "table { border-collapse: collapse; font-variant-numeric: tabular-nums }\n"
    "th, td { padding: .25em .7em; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap }\n"
    "th.name, td.name { text-align: left }\n"
    "thead th { border-bottom: 2px solid #888; vertical-align: bottom }\n"
    "td.best { font-weight: 600 }\n"
    "td.why { text-align: left; white-space: normal; color: #8a1f11 }\n"
    "td svg { display: block; margin-left: auto }\n"
    "code { font-size: .85em; overflow-wrap: anywhere }\n"
    "@media print { body { margin: 0; max-width: none; font-size: 9pt } .wide { overflow: visible } "
    "details { display: none } }\n"
    "</style>\n";

static void text(FILE *f, const char *words)
{
    for (; *words; words++)
        switch (*words) {
        case '&':
            fputs("&amp;", f);
            break;
        case '<':
            fputs("&lt;", f);
            break;
        case '>':
            fputs("&gt;", f);
            break;
        case '"':
            fputs("&quot;", f);
            break;
        default:
            fputc(*words, f);
        }
}

static void element(FILE *f, const char *open, const char *words, const char *close)
{
    fputs(open, f);
    text(f, words);
    fputs(close, f);
}

/* "shaw:4, 8": the values of a cell. */
static void label_of(const compare_spec *spec, int cell, char *out, size_t size)
{
    out[0] = 0;
    for (int a = 0; a < spec->axis_count; a++) {
        size_t used = strlen(out);
        snprintf(out + used, size - used, "%s%s", a ? ", " : "", compare_value(spec, cell, a));
    }
}

/* ---- The table ------------------------------------------------------------------------------------------------ */

static void write_cell(FILE *f, const compare_table *table, int cell, int m)
{
    enum { BAR = 70 };
    char words[CELL_TEXT];
    double mean, spread;
    compare_mean(table, cell, m, &mean, &spread);
    const bool best = table->measure[m].quality && compare_is_best(table, cell, m);
    element(f, best ? "<td class=\"best\">" : "<td>", compare_cell_text(table, cell, m, words), "");
    if (table->measure[m].quality && !isnan(mean))
        fprintf(
            f,
            "<svg width=\"%d\" height=\"4\" role=\"presentation\"><rect width=\"%d\" height=\"4\" fill=\"#e6e6e6\"/>"
            "<rect width=\"%.1f\" height=\"4\" fill=\"#3b6ea5\"/></svg>",
            BAR, BAR, BAR * fmin(fmax(mean, 0), 100) / 100);
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
        fprintf(f, "<td class=\"why\" colspan=\"%d\">%s: ", table->measure_count,
                run->state == RUN_REFUSED  ? "not possible"
                : run->state == RUN_FAILED ? "failed"
                                           : "not yet run");
        element(f, "", run->why, "</td></tr>\n");
        return;
    }
    for (int m = 0; m < table->measure_count; m++)
        write_cell(f, table, cell, m);
    fputs("</tr>\n", f);
}

static void write_table(FILE *f, const compare_table *table)
{
    const compare_spec *spec = table->spec;
    fputs("<div class=\"wide\"><table>\n<thead><tr>", f);
    for (int a = 0; a < spec->axis_count; a++)
        element(f, "<th class=\"name\">", spec->axis[a].key ? spec->axis[a].key->option->name : "setting", "</th>");
    for (int m = 0; m < table->measure_count; m++)
        element(f, "<th>", table->measure[m].title, "</th>");
    fputs("</tr></thead>\n<tbody>\n", f);
    for (int cell = 0; cell < spec->cell_count; cell++)
        write_row(f, table, cell);
    fputs("</tbody></table></div>\n", f);
}

/* ---- Quality by length ---------------------------------------------------------------------------------------- */

enum { WIDTH = 640, HEIGHT = 260, LEFT = 44, TOP = 12, BOTTOM = 30, NAMES = 240 };

/* The y coordinate of a value in the plot. */
static double height_of(double value, double top)
{
    return TOP + HEIGHT * (1 - value / top);
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

static void write_line(FILE *f, const compare_table *table, int cell, const int *points, int count, double step,
                       double top)
{
    static const char *const colours[] = {"#3b6ea5", "#b5482a", "#4a8c3f", "#7a4fa3",
                                          "#a8791c", "#2a8c8c", "#a33b6e", "#555555"};
    static const char *const dashes[] = {"", "7 3", "2 3", "9 3 2 3"};
    const char *colour = colours[cell % 8], *dash = dashes[cell / 8 % 4];
    char label[300], path[400] = "";
    double mean, spread, last = 0;
    label_of(table->spec, cell, label, sizeof label);
    for (int i = 0; i < count; i++) {
        compare_mean(table, cell, points[i], &mean, &spread);
        if (isnan(mean))
            return;
        last = height_of(mean, top);
        size_t used = strlen(path);
        snprintf(path + used, sizeof path - used, "%.1f,%.1f ", LEFT + step * (i + 0.5), last);
    }
    fprintf(f,
            "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\" stroke-dasharray=\"%s\">"
            "<title>",
            path, colour, dash);
    text(f, label);
    fputs("</title></polyline>\n", f);
    const double row = TOP + 14 + 16 * cell;
    fprintf(f, "<path d=\"M%d %.0f h28\" stroke=\"%s\" stroke-width=\"1.8\" stroke-dasharray=\"%s\"/>", WIDTH + 60,
            row - 4, colour, dash);
    fprintf(f, "<text x=\"%d\" y=\"%.0f\">", WIDTH + 94, row);
    element(f, "", label, "</text>\n");
}

static void write_plot(FILE *f, const compare_table *table)
{
    enum { MOST_LINES = 32 };
    int points[MOST_BUCKETS + 1];
    const int count = plotted(table, points), cells = table->spec->cell_count;
    const double step = (double)WIDTH / (count ? count : 1);
    double top = 100, mean, spread;
    if (count < 2)
        return;
    if (cells > MOST_LINES) {
        fprintf(f, "<p>No plot: it has at most %d lines, and there are %d rows.</p>\n", MOST_LINES, cells);
        return;
    }
    for (int cell = 0; cell < cells; cell++)
        for (int i = 0; i < count; i++)
            if (compare_mean(table, cell, points[i], &mean, &spread) && mean > top)
                top = mean;
    const int tall = TOP + (16 * cells > HEIGHT ? 16 * cells : HEIGHT) + BOTTOM;
    element(f, "<h2>", table->spec->metric[0], " by the length of the source</h2>\n");
    fprintf(
        f,
        "<div class=\"wide\"><svg width=\"%d\" height=\"%d\" font-family=\"system-ui, sans-serif\" font-size=\"12\" "
        "role=\"img\">\n",
        LEFT + WIDTH + NAMES, tall);
    for (int tick = 0; tick <= 4; tick++) {
        const double value = top * tick / 4, y = height_of(value, top);
        fprintf(f,
                "<path d=\"M%d %.1f h%d\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.0f</text>\n",
                LEFT, y, WIDTH, LEFT - 6, y + 4, value);
    }
    for (int i = 0; i < count; i++) {
        fprintf(f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", LEFT + step * (i + 0.5), TOP + HEIGHT + 20);
        element(f, "", table->measure[points[i]].title, "</text>\n");
    }
    for (int cell = 0; cell < cells; cell++)
        write_line(f, table, cell, points, count, step, top);
    fputs("</svg></div>\n", f);
}

/* ---- The page ------------------------------------------------------------------------------------------------- */

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
    char notes[1000];
    compare_notes(table, notes, sizeof notes);
    fputs(head, f);
    element(f, "<title>", title, "</title>\n</head>\n<body>\n");
    element(f, "<h1>", title, "</h1>\n");
    write_table(f, table);
    element(f, "<p>", notes, "</p>\n");
    write_plot(f, table);
    write_lines(f, table);
    fprintf(f, "<p>attend %s, ", at_version());
    element(f, "<code>attend compare ", table->spec->path, "</code></p>\n</body>\n</html>\n");
    return !ferror(f);
}
