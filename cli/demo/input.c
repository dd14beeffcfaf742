/* Input of the user's own: numbers and words from the command line. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "demo/demo.h"
#include "tasks.h"

/* ---- Numbers -------------------------------------------------------------------------------------------------- */

/* A row of numbers up to its semicolon or the end; moves *text behind it. */
static bool read_row(const char **text, demo_limits limits, double *row, int *count, at_error *error)
{
    const char *at = *text;
    *count = 0;
    for (;;) {
        at += strspn(at, " ,\t\n");
        if (!*at || *at == ';')
            break;
        char *end;
        const double value = strtod(at, &end);
        const size_t length = strcspn(at, " ,;\t\n");
        if (end != at + length || !isfinite(value))
            return fail(error, AT_USAGE, "'%.*s' is not a number; the demo takes numbers, as in \"1 0.5 -2\"",
                        (int)(length < 40 ? length : 40), at);
        if (fabs(value) > limits.largest)
            return fail(error, AT_USAGE, "%.*s is too large; the demo takes numbers from %g to %g",
                        (int)(length < 40 ? length : 40), at, -limits.largest, limits.largest);
        if (*count == limits.most_columns)
            return fail(error, AT_USAGE, "a row has more than %d number%s, the most that the demo takes",
                        limits.most_columns, limits.most_columns == 1 ? "" : "s");
        row[(*count)++] = value;
        at = end;
    }
    *text = at;
    return true;
}

bool input_matrix(const char *text, demo_limits limits, demo_matrix *matrix, at_error *error)
{
    *matrix = (demo_matrix){0};
    for (bool more = true; more; matrix->rows++) {
        int count = 0;
        if (matrix->rows == limits.most_rows)
            return fail(error, AT_USAGE, "there %s more than %d row%s, the most that the demo takes",
                        limits.most_rows == 1 ? "is" : "are", limits.most_rows, limits.most_rows == 1 ? "" : "s");
        double *row = matrix->value + matrix->rows * matrix->columns;
        if (!read_row(&text, limits, row, &count, error))
            return false;
        if (matrix->rows == 0)
            matrix->columns = count;
        if (count != matrix->columns)
            return fail(error, AT_USAGE, "row %d has %d numbers and the first has %d; all rows must have as many",
                        matrix->rows + 1, count, matrix->columns);
        if (count < limits.least_columns)
            return fail(error, AT_USAGE, "a row has %d number%s and must have at least %d", count,
                        count == 1 ? "" : "s", limits.least_columns);
        more = *text == ';';
        text += more;
    }
    if (matrix->rows < limits.least_rows)
        return fail(error, AT_USAGE, "there %s %d row%s and must be at least %d; a semicolon separates rows",
                    matrix->rows == 1 ? "is" : "are", matrix->rows, matrix->rows == 1 ? "" : "s", limits.least_rows);
    return true;
}

/* ---- Words ---------------------------------------------------------------------------------------------------- */

/* Whether a terminal can show the text: UTF-8 without control characters. */
static bool is_printable(const char *text)
{
    utf8proc_int32_t character;
    for (utf8proc_ssize_t length; *text; text += length) {
        length = utf8proc_iterate((const utf8proc_uint8_t *)text, -1, &character);
        if (length <= 0 || utf8proc_category(character) == UTF8PROC_CATEGORY_CC)
            return false;
    }
    return true;
}

bool input_words(const char *text, int least, int most, int widest, demo_words *words, at_error *error)
{
    *words = (demo_words){0};
    size_t used = 0;
    while (*(text += strspn(text, " \t\n"))) {
        const size_t length = strcspn(text, " \t\n");
        char word[DEMO_WORD];
        if (words->count == most)
            return fail(error, AT_USAGE, "there are more than %d words, the most that the demo takes", most);
        snprintf(word, sizeof word, "%.*s", (int)(length < DEMO_WORD ? length : DEMO_WORD - 1), text);
        if (length < DEMO_WORD && !is_printable(word))
            return fail(error, AT_USAGE, "'%s' is not a word: it is not UTF-8, or has control characters", word);
        if (length >= DEMO_WORD || text_width(word) > widest)
            return fail(error, AT_USAGE, "the word '%s' is too wide; a word takes %d columns at most", word, widest);
        words->word[words->count++] = strcpy(words->text + used, word);
        used += length + 1;
        text += length;
    }
    if (words->count < least)
        return fail(error, AT_USAGE, "there %s %d word%s and must be at least %d", words->count == 1 ? "is" : "are",
                    words->count, words->count == 1 ? "" : "s", least);
    return true;
}

void input_vector(const char *word, int size, double *vector)
{
    uint64_t bits = 0;
    for (; *word; word++)
        bits = task_mix(bits + (unsigned char)*word + 1);
    for (int i = 0; i < size; i++)
        vector[i] = bits >> i & 1 ? 1 : -1;
}
