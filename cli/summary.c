#include "summary.h"

#include <math.h>

static void write_number(FILE *stream, const at_array *array, int64_t index)
{
    if (array->dtype == AT_I32) {
        fprintf(stream, "%d", ((const int32_t *)array->data)[index]);
        return;
    }
    /* Nine digits identify a float; JSON has no NaN and no infinity. */
    float value = ((const float *)array->data)[index];
    if (isfinite(value))
        fprintf(stream, "%.9g", value);
    else
        fputs("null", stream);
}

/* Dimension `level` of the array from its index-th element on; returns the index after it. */
static int64_t write_level(FILE *stream, const at_array *array, int level, int64_t index)
{
    if (level == array->rank) {
        write_number(stream, array, index);
        return index + 1;
    }
    fputc('[', stream);
    for (int64_t i = 0; i < array->dim[level]; i++) {
        if (i)
            fputc(',', stream);
        index = write_level(stream, array, level + 1, index);
    }
    fputc(']', stream);
    return index;
}

bool summary_write(FILE *stream, const void *context)
{
    const cli_summary *summary = context;
    const struct {
        const char *name;
        const at_array *array;
    } parts[] = {{"argmax", summary->argmax},
                 {"entropy", summary->entropy},
                 {"key_sums", summary->key_sums},
                 {"log_prob", summary->log_prob}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!parts[i].array)
            continue;
        fprintf(stream, "%s\"%s\":", i ? ",\n" : "{", parts[i].name);
        write_level(stream, parts[i].array, 0, 0);
    }
    fputs("}\n", stream);
    return !ferror(stream);
}
