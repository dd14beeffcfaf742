#include "text_plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 12, LABELS = 9, MARKS = 8 };

/* Each with a colour of the palette of 256 that can be told apart by people who confuse red and green. */
static const struct {
    const char *mark;
    int colour;
} styles[MARKS] = {{"●", 33}, {"○", 208}, {"▲", 36}, {"△", 175}, {"■", 220}, {"□", 75}, {"◆", 166}, {"◇", 244}};

void text_plot_mark(FILE *f, int style, bool colour)
{
    const int which = style % MARKS;
    if (colour)
        fprintf(f, "\033[38;5;%dm%s\033[0m", styles[which].colour, styles[which].mark);
    else
        fputs(styles[which].mark, f);
}

/* What the axes span. */
typedef struct frame {
    double right, low, high;
} frame;

static frame frame_of(const svg_plot *p)
{
    frame within = {1, INFINITY, -INFINITY};
    for (int l = 0; l < p->lines; l++)
        for (int i = 0; i < p->line[l].count; i++) {
            const svg_point *at = &p->line[l].point[i];
            within.right = fmax(within.right, at->x);
            within.low = fmin(within.low, at->y);
            within.high = fmax(within.high, at->y);
        }
    if (!(within.high > within.low)) { /* a flat line stands in the middle */
        within.low -= 1;
        within.high += 1;
    }
    return within;
}

/* The value of a line at x, between its points; NAN before the first and after the last. */
static double value_at(const svg_line *line, double x)
{
    for (int i = 0; i < line->count; i++) {
        const svg_point *b = &line->point[i], *a = b - 1;
        if (b->x < x)
            continue;
        return i > 0 ? a->y + (b->y - a->y) * (x - a->x) / (b->x - a->x) : b->x == x ? b->y : NAN;
    }
    return NAN;
}

static int row_of(const frame *within, double value)
{
    return (int)lround((ROWS - 1) * (within->high - value) / (within->high - within->low));
}

/* Marks the cells of a line; -1 is an empty cell. A line with points only between two columns marks those next to them. */
static void draw_line(const svg_line *line, const frame *within, int columns, signed char *cell)
{
    const double step = within->right / fmax(columns - 1, 1);
    for (int c = 0; c < columns; c++) {
        const double value = value_at(line, c * step);
        if (!isnan(value))
            cell[row_of(within, value) * columns + c] = (signed char)(line->style % MARKS);
    }
    for (int i = 0; i < line->count; i++) {
        const int c = (int)lround(line->point[i].x / step);
        cell[row_of(within, line->point[i].y) * columns + (c < columns ? c : columns - 1)] =
            (signed char)(line->style % MARKS);
    }
}

static void print_row(FILE *f, const frame *within, int row, int columns, const signed char *cell, bool colour)
{
    const double value = within->high - row * (within->high - within->low) / (ROWS - 1);
    const bool labelled = row == 0 || row == ROWS - 1 || row == ROWS / 2;
    int last = columns - 1;
    while (last >= 0 && cell[last] < 0)
        last--;
    if (labelled)
        fprintf(f, "%*.4g ┤", LABELS - 2, value);
    else
        fprintf(f, "%*s│", LABELS - 1, "");
    for (int c = 0; c <= last; c++)
        if (cell[c] < 0)
            fputc(' ', f);
        else
            text_plot_mark(f, cell[c], colour);
    fputc('\n', f);
}

bool text_plot_print(FILE *f, const svg_plot *p, int width, bool colour)
{
    const int columns = width - LABELS > 10 ? width - LABELS : 10;
    const frame within = frame_of(p);
    signed char *cell = malloc((size_t)columns * ROWS);
    char right[40];
    if (!cell)
        return false;
    memset(cell, -1, (size_t)columns * ROWS);
    for (int l = p->lines - 1; l >= 0; l--) /* the first is on top */
        draw_line(&p->line[l], &within, columns, cell);
    fprintf(f, "%s\n", p->y_title);
    for (int row = 0; row < ROWS; row++)
        print_row(f, &within, row, columns, cell + row * columns, colour);
    fprintf(f, "%*s└", LABELS - 1, "");
    for (int c = 0; c < columns; c++)
        fputs("─", f);
    const int length = snprintf(right, sizeof right, "%.0f %s", within.right, p->x_title);
    fprintf(f, "\n%*s0%*s\n", LABELS, "", columns - 1 > length ? columns - 1 : length + 1, right);
    free(cell);
    return true;
}
