#include "attention_show.h"

#include <math.h>
#include <string.h>

/* Which of the batch and heads a matrix belongs to: "weights, batch row 1, head 2". */
static void print_title(const char *what, const attention_pictures *p, int64_t batch, int64_t head)
{
    char title[100];
    int used = snprintf(title, sizeof title, "%s", what);
    if (p->batch > 1)
        used += snprintf(title + used, sizeof title - (size_t)used, ", batch row %lld", (long long)batch);
    if (p->heads > 1 && head >= 0)
        snprintf(title + used, sizeof title - (size_t)used, ", head %lld", (long long)head + 1);
    print_heading(title);
}

static bool draw(const char *what, const attention_pictures *p, const at_array *array, at_error *error)
{
    const int64_t rows = array->dim[array->rank - 2], columns = array->dim[array->rank - 1];
    for (int64_t i = 0; i < p->batch * p->heads; i++) {
        at_heatmap map = {.rows = rows, .columns = columns, .values = (const float *)array->data + i * rows * columns};
        fit_terminal(&map, 0);
        char *text = at_heatmap_text(&map, error);
        if (!text)
            return false;
        print_title(what, p, i / p->heads, i % p->heads);
        printf("%s\n", text);
        at_text_free(text);
    }
    return true;
}

/* Five decimals, which float32 has, in columns that line up. */
static void print_matrix(const float *values, int64_t rows, int64_t columns)
{
    int width = 0;
    for (int64_t i = 0; i < rows * columns; i++) {
        const int length = snprintf(NULL, 0, "%.5f", (double)values[i]);
        width = length > width ? length : width;
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            printf("%*.5f%c", width, (double)values[i * columns + j], j + 1 < columns ? ' ' : '\n');
}

bool attention_show(const attention_pictures *p, at_error *error)
{
    if ((p->scores && !draw("scores", p, p->scores, error)) || (p->weights && !draw("weights", p, p->weights, error)))
        return false;
    const int64_t rows = p->out->dim[p->out->rank - 2], columns = p->out->dim[p->out->rank - 1];
    for (int64_t b = 0; b < p->batch; b++) {
        if (b > 0)
            putchar('\n');
        print_title("output", p, b, -1);
        print_matrix((const float *)p->out->data + b * rows * columns, rows, columns);
    }
    return true;
}
