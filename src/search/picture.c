/* The picture that a line names, as a model reads it. */
#include "attend_unstable.h"
#include "search/search_internal.h"

#include <math.h>
#include <stdlib.h>

/* Pixels as bytes, from values of byte / 255. */
static at_array *pixels_of(const at_pictures *pictures, int64_t index, at_error *error)
{
    int64_t height, width;
    at_pictures_size(pictures, index, &height, &width);
    const int64_t channels = at_pictures_form(pictures).channels, count = height * width * channels;
    at_real *values = malloc((size_t)count * sizeof *values + 1);
    at_array *pixels = NULL;
    if (!values)
        at_no_memory(error, "a picture");
    else if ((pixels = at_array_new(AT_U8, 3, (int64_t[]){height, width, channels}, error)))
        at_pictures_values(pictures, index, values);
    for (int64_t i = 0; pixels && i < count; i++)
        ((uint8_t *)pixels->data)[i] = (uint8_t)lrint((double)values[i] * 255);
    free(values);
    return pixels;
}

at_array *at_translator_picture(const at_translator *translator, at_line line, int64_t *rows, int64_t *columns,
                                at_error *error)
{
    int32_t id;
    at_array *pixels = NULL;
    if (error->code != AT_OK)
        return NULL;
    if (!at_translator_has_pictures(translator)) {
        at_fail(error, AT_USAGE, "the model reads text, not pictures");
        return NULL;
    }
    at_picture_source *source = at_picture_source_new(&translator->model->settings, error);
    if (source && at_picture_source_add(source, line, &id, error) >= 0) {
        const at_pictures *pictures = at_picture_source_pictures(source);
        at_picture_source_grid(source, id, rows, columns);
        if (at_pictures_form(pictures).features)
            at_fail(error, AT_UNSUPPORTED, "the model reads features, of which there is no picture");
        else
            pixels = pixels_of(pictures, 0, error);
    }
    at_picture_source_free(source);
    return pixels;
}
