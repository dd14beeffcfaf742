#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "demo/demo.h"

void say(const char *text)
{
    print_wrapped(stdout, text, 0, DEMO_WIDTH, 0);
}

void sayf(const char *format, ...)
{
    char text[1500];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    say(text);
}

void show_line(const char *format, ...)
{
    char text[1500];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    printf("%*s", DEMO_INDENT, "");
    print_wrapped(stdout, text, 2 * DEMO_INDENT, DEMO_WIDTH, DEMO_INDENT);
}

const char *figure(double value, bool factor, char out[DEMO_FIGURE])
{
    const double shown = fabs(value) < 5e-5 ? 0 : value; /* no -0 either */
    snprintf(out, DEMO_FIGURE, factor && shown < 0 ? "(%.4g)" : "%.4g", shown);
    return out;
}

void show_product(const char *name, const double *a, const double *b, int count)
{
    char text[1000], one[DEMO_FIGURE], other[DEMO_FIGURE];
    double sum = 0;
    int used = snprintf(text, sizeof text, "%s", name);
    for (int i = 0; i < count; i++) {
        sum += a[i] * b[i];
        used += snprintf(text + used, sizeof text - (size_t)used, " %s %s·%s", i ? "+" : "=", figure(a[i], true, one),
                         figure(b[i], true, other));
    }
    show_line("%s = %s", text, figure(sum, false, one));
}

void show_vector(const char *name, const double *values, int count)
{
    char text[1000], one[DEMO_FIGURE];
    int used = snprintf(text, sizeof text, "%s = (", name);
    for (int i = 0; i < count; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%s", i ? ", " : "", figure(values[i], false, one));
    show_line("%s)", text);
}

static int widest(const char *const *names, int64_t count)
{
    int width = 0;
    for (int64_t i = 0; names && i < count; i++)
        width = text_width(names[i]) > width ? text_width(names[i]) : width;
    return width;
}

/* Whole as far as the figures shown go: 0.99999994 is. */
static bool whole(const double *values, int rows, int columns, int column, int decimals)
{
    for (int i = 0; i < rows; i++) {
        double value = values[i * columns + column];
        if (!isnan(value) && fabs(value - round(value)) >= 0.5 * pow(10, -decimals))
            return false;
    }
    return true;
}

void show_matrix(const double *values, int rows, int columns, int decimals, const char *const *names)
{
    int name_width = widest(names, rows);
    for (int i = 0; i < rows; i++) {
        printf("%*s", DEMO_INDENT, "");
        if (names)
            print_padded(stdout, names[i], name_width + 3);
        for (int j = 0; j < columns; j++) {
            int digits = whole(values, rows, columns, j, decimals) ? 0 : decimals, width = 0;
            for (int k = 0; k < rows; k++) {
                int length = snprintf(NULL, 0, "%.*f", digits, values[k * columns + j]);
                width = length > width ? length : width;
            }
            printf("%s%*.*f", j ? " " : "", width, digits, values[i * columns + j]);
        }
        putchar('\n');
    }
}

/* A cell as text; whole columns have no decimals. */
static const char *cell_text(const demo_table *t, int row, int column, char out[40])
{
    const double value = t->values[row * t->columns + column];
    const int digits = whole(t->values, t->rows, t->columns, column, t->decimals) ? 0 : t->decimals;
    snprintf(out, 40, "%.*f", digits, value);
    if (isnan(value))
        *out = 0;
    else if (*out == '-' && strspn(out, "-0.") == strlen(out)) /* no -0.00 */
        memmove(out, out + 1, strlen(out));
    return out;
}

void show_table(const demo_table *t)
{
    const int name_width = widest(t->row_names, t->rows);
    char cell[40];
    for (int i = -1; i < t->rows; i++) {
        printf("%*s", DEMO_INDENT, "");
        print_padded(stdout, i < 0 ? "" : t->row_names[i], name_width);
        for (int j = 0; j < t->columns; j++) {
            int width = text_width(t->column_names[j]);
            for (int k = 0; k < t->rows; k++)
                width = (int)strlen(cell_text(t, k, j, cell)) > width ? (int)strlen(cell) : width;
            const char *text = i < 0 ? t->column_names[j] : cell_text(t, i, j, cell);
            if (*text || j + 1 < t->columns)
                printf("%*s%s", 3 + width - text_width(text), "", text);
        }
        putchar('\n');
    }
}

/* A bar of so many eighths of a column. */
static void print_bar(int eighths, bool light)
{
    static const char *const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    for (int i = 0; i < (light ? (eighths + 4) / 8 : eighths / 8); i++)
        fputs(light ? "░" : "█", stdout);
    fputs(light ? "" : parts[eighths % 8], stdout);
}

void show_bars(const char *const *names, const double *values, int count, int decimals)
{
    enum { LONGEST = 8 * 40 };
    const int name_width = widest(names, count);
    double largest = 0;
    int width = 0;
    for (int i = 0; i < count; i++) {
        largest = fmax(largest, fabs(values[i]));
        width = (int)fmax(width, snprintf(NULL, 0, "%.*f", decimals, values[i]));
    }
    for (int i = 0; i < count; i++) {
        const int eighths = largest > 0 ? (int)lrint(fabs(values[i]) / largest * LONGEST) : 0;
        printf("%*s", DEMO_INDENT, "");
        print_padded(stdout, names[i], name_width);
        printf("  %*.*f%s", width, decimals, values[i], eighths ? "  " : "");
        print_bar(eighths, values[i] < 0);
        putchar('\n');
    }
}

/* The widest line of a text, colours left out. */
static int widest_line(const char *text)
{
    int widest = 0;
    while (*text) {
        char line[1000];
        size_t used = 0;
        for (; *text && *text != '\n'; text++)
            if (*text == '\033')
                text += strcspn(text, "m\n"), text -= *text != 'm';
            else if (used + 1 < sizeof line)
                line[used++] = *text;
        line[used] = 0;
        widest = text_width(line) > widest ? text_width(line) : widest;
        text += *text != 0;
    }
    return widest;
}

bool show_weights(const float *weights, int64_t rows, int64_t columns, const char *const *row_names,
                  const char *const *column_names, at_error *error)
{
    at_heatmap map = {
        .rows = rows, .columns = columns, .values = weights, .row_names = row_names, .column_names = column_names};
    fit_terminal(&map, DEMO_INDENT);
    char *text = at_heatmap_text(&map, error);
    if (!text)
        return false;
    if (DEMO_INDENT + widest_line(text) > DEMO_WIDTH)
        show_maps(&(demo_maps){.count = 1,
                               .rows = rows,
                               .columns = columns,
                               .values = {weights},
                               .row_names = row_names,
                               .column_names = column_names});
    else
        for (char *line = text; *line;) {
            size_t length = strcspn(line, "\n");
            printf("%*s%.*s\n", length ? DEMO_INDENT : 0, "", (int)length, line);
            line += length + (line[length] != 0);
        }
    at_text_free(text);
    return true;
}

bool show_heat(const double *weights, int rows, int columns, const char *const *row_names,
               const char *const *column_names, at_error *error)
{
    float *values = malloc((size_t)(rows * columns) * sizeof *values);
    if (!values)
        return fail(error, AT_MEMORY, "out of memory for the demo");
    for (int i = 0; i < rows * columns; i++)
        values[i] = (float)weights[i];
    bool shown = show_weights(values, rows, columns, row_names, column_names, error);
    free(values);
    return shown;
}

void show_mixture(const double *weights, int count, const char *row_name, int row_width, const char *of,
                  const char *const *names)
{
    printf("%*sz_", DEMO_INDENT, "");
    print_padded(stdout, row_name, row_width);
    for (int j = 0; j < count; j++)
        printf("%s %.2f %s_%s", j ? " +" : " =", weights[j], of, names[j]);
    putchar('\n');
}

/* Prints `blanks` blanks and as many whole characters of a name as fit into two columns; returns the blanks that are
 * still missing behind it, so that a line does not end with them. */
static int print_cut(int blanks, const char *name)
{
    char cut[DEMO_WORD];
    size_t used = 0;
    int width = 0;
    while (name[used] && used + 8 < sizeof cut) {
        size_t next = used + 1;
        while ((name[next] & 0xc0) == 0x80 && next + 1 < sizeof cut)
            next++;
        memcpy(cut + used, name + used, next - used);
        cut[next] = 0;
        if (text_width(cut) > 2)
            break;
        width = text_width(cut);
        used = next;
    }
    cut[used] = 0;
    if (cut[strspn(cut, " ")])
        return printf("%*s%s", blanks, "", cut), 2 - width;
    return blanks + 2;
}

static const char *block_of(float value)
{
    static const char *const blocks[] = {" ", "░", "▒", "▓", "█"};
    const float shade = value < 0 ? 0 : value > 1 ? 1 : value;
    return isnan(value) ? "?" : blocks[lrintf(4 * shade)];
}

static void print_map_head(const demo_maps *maps, int left)
{
    int blanks = left;
    for (int64_t m = 0; m < maps->count; m++) {
        blanks += m ? 3 : 0;
        for (int64_t j = 0; j < maps->columns; j++)
            blanks = print_cut(blanks, maps->column_names[j]);
    }
    putchar('\n');
}

static void print_map_row(const demo_maps *maps, int64_t row)
{
    int blanks = 0;
    for (int64_t m = 0; m < maps->count; m++) {
        blanks += m ? 3 : 0;
        for (int64_t j = 0; j < maps->columns; j++) {
            const int64_t at = row * maps->columns + j;
            const char mark = maps->marks[m] ? maps->marks[m][at] : ' ';
            const char *block = mark == '.' ? "·" : block_of(maps->values[m][at]);
            if (*block == ' ' && mark != '|') {
                blanks += 2;
                continue;
            }
            printf("%*s%s%s", blanks, "", block, mark == '|' ? "|" : block);
            blanks = 0;
        }
    }
    putchar('\n');
}

void show_maps(const demo_maps *maps)
{
    const int left = DEMO_INDENT + widest(maps->row_names, maps->rows) + 2, wide = 2 * (int)maps->columns + 3;
    if (maps->titles[0]) {
        printf("%*s", left, "");
        for (int64_t m = 0; m < maps->count; m++)
            print_padded(stdout, maps->titles[m], m + 1 < maps->count ? wide : 0);
        putchar('\n');
    }
    print_map_head(maps, left);
    for (int64_t i = 0; i < maps->rows; i++) {
        printf("%*s", DEMO_INDENT, "");
        print_padded(stdout, maps->row_names[i], left - DEMO_INDENT);
        print_map_row(maps, i);
    }
}
