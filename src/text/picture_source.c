#include "text/picture_source.h"

#include <stdlib.h>

struct at_picture_source {
    at_pictures *pictures;
    at_convolutions layers; /* none: features */
};

at_picture_source *at_picture_source_new(const at_model_settings *settings, at_error *error)
{
    at_picture_form form;
    at_picture_source *source = calloc(1, sizeof *source);
    if (!source)
        at_no_memory(error, "pictures");
    else if (at_picture_form_of(settings, &form, &source->layers, error) &&
             (source->pictures = at_pictures_new(&form, error)))
        return source;
    at_picture_source_free(source);
    return NULL;
}

void at_picture_source_free(at_picture_source *source)
{
    if (source)
        at_pictures_free(source->pictures);
    free(source);
}

void at_picture_source_clear(at_picture_source *source)
{
    at_pictures_clear(source->pictures);
}

const at_pictures *at_picture_source_pictures(const at_picture_source *source)
{
    return source ? source->pictures : NULL;
}

void at_picture_source_grid(const at_picture_source *source, int32_t id, int64_t *height, int64_t *width)
{
    at_picture_cells(source->pictures, &source->layers, id, height, width);
}

int64_t at_picture_source_add(at_picture_source *source, at_line line, int32_t *id, at_error *error)
{
    int64_t index, height, width;
    if (at_pictures_count(source->pictures) == INT32_MAX) {
        at_fail(error, AT_UNSUPPORTED, "there are more than %d pictures", INT32_MAX);
        return -1;
    }
    if (!at_pictures_add(source->pictures, line.text, line.size, &index, error))
        return -1;
    *id = (int32_t)index;
    at_picture_source_grid(source, *id, &height, &width);
    return height * width;
}

static int64_t read(void *context, at_line line, int32_t *id, at_error *error)
{
    return at_picture_source_add(context, line, id, error);
}

at_source_reader at_picture_source_reader(at_picture_source *source)
{
    return (at_source_reader){read, source};
}
