#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "demo/demo.h"

void say(const char *text)
{
    print_wrapped(stdout, text, 0, DEMO_WIDTH, 0);
}

static int widest(const char *const *names, int count)
{
    int width = 0;
    for (int i = 0; names && i < count; i++)
        width = text_width(names[i]) > width ? text_width(names[i]) : width;
    return width;
}

/* Whole as far as the figures shown go: 0.99999994 is. */
static bool whole(const double *values, int rows, int columns, int column, int decimals)
{
    for (int i = 0; i < rows; i++) {
        double value = values[i * columns + column];
        if (fabs(value - round(value)) >= 0.5 * pow(10, -decimals))
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

bool show_weights(const float *weights, int64_t rows, int64_t columns, const char *const *row_names,
                  const char *const *column_names, at_error *error)
{
    at_heatmap map = {rows, columns, weights, row_names, column_names, colour_wanted()};
    char *text = at_heatmap_text(&map, error);
    if (!text)
        return false;
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
