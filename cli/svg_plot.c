#include "svg_plot.h"

#include <math.h>
#include <string.h>
#include <utf8proc.h>

#include "console.h"

enum {
    STYLES = 8,
    DASHES = 4,
    LEFT = 60,
    TOP = 14,
    WIDE = 520,
    TALL = 270,
    BOTTOM = 44,
    GAP = 24,
    NAMES = 200,
    ROW = 17
};

/* Colours that can be told apart by people who confuse red and green; lighter on dark. */
const char svg_style[] =
    ".plot { width: 100%; max-width: 62em; height: auto; font: 13px system-ui, sans-serif; display: block }\n"
    ".plot text { fill: currentColor } .plot .grid { stroke: currentColor; stroke-opacity: .18 }\n"
    ".plot .line { fill: none; stroke: currentColor; stroke-width: 1.8; stroke-linejoin: round }\n"
    ".plot .error { fill: none; stroke: currentColor; stroke-width: 1.2 } .plot circle { fill: currentColor }\n"
    ".c0 { color: #2166ac } .c1 { color: #c1501b } .c2 { color: #2f7d32 } .c3 { color: #7a4fa3 } .c4 { color: #94690a "
    "} .c5 { color: #0f7f7f } .c6 { color: #b0306a } .c7 { color: #555 }\n"
    "@media screen and (prefers-color-scheme: dark) { .c0 { color: #7db3ec } .c1 { color: #f29a6b } .c2 { color: "
    "#83c986 } .c3 { color: #c3a2e6 } .c4 { color: #e0bd62 } .c5 { color: #6fcfcf } .c6 { color: #ee8bb5 } .c7 { "
    "color: #bbb } }\n";

static const char *const dashes[DASHES] = {"", "7 3", "2 3", "9 3 2 3"};

void markup_text(FILE *f, const char *text)
{
    while (*text) {
        utf8proc_int32_t point;
        const utf8proc_ssize_t length = utf8proc_iterate((const utf8proc_uint8_t *)text, -1, &point);
        if (length <= 0 || utf8proc_category(point) == UTF8PROC_CATEGORY_CC)
            fputs("\xEF\xBF\xBD", f);
        else if (point == '&' || point == '<' || point == '>' || point == '"')
            fputs(point == '&' ? "&amp;" : point == '<' ? "&lt;" : point == '>' ? "&gt;" : "&quot;", f);
        else
            fprintf(f, "%.*s", (int)length, text);
        text += length > 0 ? length : 1;
    }
}

/* ---- Axes ----------------------------------------------------------------------------------------------------- */

typedef struct axis {
    double low, high, step;
} axis;

/* About five ticks at multiples of 1, 2 or 5 times a power of ten. */
static axis ticks(double low, double high)
{
    if (!(high > low))
        high = low + (low == 0 ? 1 : fabs(low));
    const double rough = (high - low) / 5, power = pow(10, floor(log10(rough))), share = rough / power;
    const double step = power * (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10);
    return (axis){step * floor(low / step + 1e-9), step * ceil(high / step - 1e-9), step};
}

static double place(axis a, double value, double from, double length)
{
    return from + length * (value - a.low) / (a.high - a.low);
}

typedef struct frame {
    axis x, y;
} frame;

/* What an error bar spans. */
static void bar_of(const svg_plot *p, const svg_point *at, double *low, double *high)
{
    const double error = isfinite(at->error) ? at->error : 0;
    *low = p->percent && at->y >= 0 ? fmax(at->y - error, 0) : at->y - error;
    *high = p->percent && at->y <= 100 ? fmin(at->y + error, 100) : at->y + error;
}

static frame frame_of(const svg_plot *p)
{
    double right = -INFINITY, low = p->percent ? 0 : INFINITY, high = -INFINITY;
    for (int l = 0; l < p->lines; l++)
        for (int i = 0; i < p->line[l].count; i++) {
            double from, to;
            bar_of(p, &p->line[l].point[i], &from, &to);
            right = fmax(right, p->line[l].point[i].x);
            low = fmin(low, from);
            high = fmax(high, to);
        }
    const frame numbers = {ticks(0, fmax(right, 0)), low <= high ? ticks(low, high) : ticks(0, 1)};
    return p->x_names ? (frame){{-0.5, p->x_count - 0.5, 1}, numbers.y} : numbers;
}

static void write_tick(FILE *f, double value)
{
    if (fabs(value) >= 1e5)
        fprintf(f, "%.4gk</text>\n", value / 1e3);
    else
        fprintf(f, "%.4g</text>\n", fabs(value) < 1e-12 ? 0 : value);
}

static void write_axes(FILE *f, const svg_plot *p, const frame *within)
{
    const axis x = within->x, y = within->y;
    for (int i = 0; y.low + i * y.step <= y.high + 1e-9 * y.step; i++) {
        const double value = y.low + i * y.step, at = place(y, value, TOP + TALL, -TALL);
        fprintf(f, "<path class=\"grid\" d=\"M%d %.1fh%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT, at,
                WIDE, LEFT - 6, at + 4);
        write_tick(f, value);
    }
    for (int i = 0; p->x_names ? i < p->x_count : x.low + i * x.step <= x.high + 1e-9 * x.step; i++) {
        const double value = p->x_names ? i : x.low + i * x.step;
        fprintf(f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", place(x, value, LEFT, WIDE), TOP + TALL + 18);
        if (!p->x_names) {
            write_tick(f, value);
            continue;
        }
        markup_text(f, p->x_names[i]);
        fputs("</text>\n", f);
    }
    fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT + WIDE, TOP + TALL + 38);
    markup_text(f, p->x_title);
    fprintf(f, "</text>\n<text x=\"14\" y=\"%d\" text-anchor=\"middle\" transform=\"rotate(-90 14 %d)\">",
            TOP + TALL / 2, TOP + TALL / 2);
    markup_text(f, p->y_title);
    fputs("</text>\n", f);
}

/* ---- Lines ---------------------------------------------------------------------------------------------------- */

static void stroke(FILE *f, const svg_line *line)
{
    const char *dash = dashes[line->style / STYLES % DASHES];
    fprintf(f, " class=\"line c%d\"", line->style % STYLES);
    if (*dash)
        fprintf(f, " stroke-dasharray=\"%s\"", dash);
}

static void write_line(FILE *f, const svg_plot *p, const frame *within, const svg_line *line)
{
    /* Over names lines stand a little beside each other, so that their error bars can be told apart. */
    const double aside = p->x_names ? 4 * (line->style % STYLES - (STYLES - 1) / 2.0) : 0;
    fputs("<polyline points=\"", f);
    for (int i = 0; i < line->count; i++)
        fprintf(f, "%s%.1f,%.1f", i ? " " : "", place(within->x, line->point[i].x, LEFT + aside, WIDE),
                place(within->y, line->point[i].y, TOP + TALL, -TALL));
    fputc('"', f);
    stroke(f, line);
    fputs("/>\n", f);
    for (int i = 0; i < line->count; i++) {
        const svg_point *at = &line->point[i];
        const double x = place(within->x, at->x, LEFT + aside, WIDE), y = place(within->y, at->y, TOP + TALL, -TALL);
        double low, high;
        bar_of(p, at, &low, &high);
        if (p->dots)
            fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\" class=\"c%d\"/>\n", x, y, line->style % STYLES);
        if (isfinite(at->error) && at->error > 0)
            fprintf(f, "<path class=\"error c%d\" d=\"M%.1f %.1fh6m-3 0V%.1fm-3 0h6\"/>\n", line->style % STYLES, x - 3,
                    place(within->y, high, TOP + TALL, -TALL), place(within->y, low, TOP + TALL, -TALL));
    }
}

static void write_name(FILE *f, const svg_line *line, int row)
{
    const int y = TOP + 8 + ROW * row;
    fprintf(f, "<path d=\"M%d %dh26\"", LEFT + WIDE + GAP, y - 4);
    stroke(f, line);
    fprintf(f, "/><text x=\"%d\" y=\"%d\">", LEFT + WIDE + GAP + 32, y);
    markup_text(f, line->name);
    fputs("</text>\n", f);
}

_Static_assert(LEFT + WIDE + GAP + 32 + NAMES == SVG_PLOT_WIDTH, "the width of a plot is the sum of its parts");

int svg_plot_height(const svg_plot *p)
{
    int names = 0;
    for (int l = 0; l < p->lines; l++)
        names += p->line[l].name != NULL;
    return TOP + (ROW * names > TALL ? ROW * names : TALL) + BOTTOM;
}

void svg_plot_write(FILE *f, const svg_plot *p)
{
    const frame within = frame_of(p);
    if (p->is_part)
        fprintf(f, "<g class=\"plot\" transform=\"translate(0 %d)\">\n<title>", p->top);
    else
        fprintf(f, "<svg class=\"plot\" viewBox=\"0 0 %d %d\" role=\"img\">\n<title>", SVG_PLOT_WIDTH,
                svg_plot_height(p));
    markup_text(f, p->y_title);
    fputs("</title>\n", f);
    write_axes(f, p, &within);
    for (int l = 0; l < p->lines; l++)
        write_line(f, p, &within, &p->line[l]);
    for (int l = 0, row = 0; l < p->lines; l++)
        if (p->line[l].name)
            write_name(f, &p->line[l], row++);
    fputs(p->is_part ? "</g>\n" : "</svg>\n", f);
}

void svg_file_begin(FILE *stream, int height)
{
    fprintf(stream,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n<style>\n%s",
            SVG_PLOT_WIDTH, height, SVG_PLOT_WIDTH, height, svg_style);
    fputs(
        "svg { color: #222 } .ground { fill: #fff }\n"
        "@media screen and (prefers-color-scheme: dark) { svg { color: #ddd } .ground { fill: #181818 } }\n</style>\n",
        stream);
    fprintf(stream, "<rect class=\"ground\" width=\"%d\" height=\"%d\"/>\n", SVG_PLOT_WIDTH, height);
}

void svg_file_end(FILE *stream)
{
    fputs("</svg>\n", stream);
}
