#include "models/pictures.h"

#include <string.h>

#include "tape/block.h"

/* "40x60", "40x" or "x60", where 0 stands for a side that follows from the other, or "keep", for 0 x 0. */
static bool parse_size(const char *text, int64_t *height, int64_t *width, at_error *error)
{
    enum { MOST = 1 << 13 };
    const char *at = text;
    *height = *width = 0;
    if (strcmp(text, "keep") == 0)
        return true;
    for (; *at >= '0' && *at <= '9' && *height <= MOST; at++)
        *height = 10 * *height + (*at - '0');
    const bool divided = *at == 'x';
    for (at += divided; *at >= '0' && *at <= '9' && *width <= MOST; at++)
        *width = 10 * *width + (*at - '0');
    return (divided && !*at && *height <= MOST && *width <= MOST && *height + *width > 0) ||
           at_fail(error, AT_USAGE,
                   "`image-size` is HEIGHTxWIDTH, such as 40x60, HEIGHTx or xWIDTH, each up to %d, or keep, not '%s'",
                   MOST, text);
}

bool at_picture_form_of(const at_model_settings *s, at_picture_form *form, at_convolutions *layers, at_error *error)
{
    *layers = (at_convolutions){0};
    *form = (at_picture_form){.channels = s->features                    ? s->features
                                          : s->image_channels == AT_GREY ? 1
                                                                         : 3,
                              .features = s->features > 0};
    return form->features || (parse_size(s->image_size, &form->height, &form->width, error) &&
                              at_convolutions_parse(s->conv, layers, error));
}

void at_picture_cells(const at_pictures *pictures, const at_convolutions *layers, int64_t id, int64_t *height,
                      int64_t *width)
{
    at_pictures_size(pictures, id, height, width);
    if (layers->count > 0) {
        at_convolutions_size(layers, height, width);
        return;
    }
    *width = *height;
    *height = 1;
}

/* Sizes are divided by the strides and rounded up, so that only their product matters. */
static int64_t stride_of(const at_convolutions *layers)
{
    int64_t stride = 1;
    for (int i = 0; i < layers->count; i++)
        stride *= layers->layer[i].stride * layers->layer[i].pool;
    return stride;
}

bool at_pictures_alike(const at_model_settings *a, const at_model_settings *b, at_error *error)
{
    at_picture_form form[2];
    at_convolutions layers[2];
    return at_picture_form_of(a, &form[0], &layers[0], error) && at_picture_form_of(b, &form[1], &layers[1], error) &&
           form[0].height == form[1].height && form[0].width == form[1].width && form[0].channels == form[1].channels &&
           form[0].features == form[1].features && stride_of(&layers[0]) == stride_of(&layers[1]);
}

at_tensor *at_picture_tensor(const at_pass *pass, const at_source *source, at_grids *grids)
{
    const at_pictures *pictures = source->pictures;
    int64_t *height = at_room(pass->tape, 2 * (size_t)source->rows * sizeof *height), *width = height + source->rows;
    if (!pictures)
        return AT_REFUSE(pass->tape, AT_FAILED, "the model reads pictures, and the source has none");
    if (!height)
        return NULL;
    for (int64_t b = 0; b < source->rows; b++)
        at_pictures_size(pictures, source->ids[b * source->length], &height[b], &width[b]);
    *grids = at_grids_make(pass->tape, source->rows, height, width);
    if (!grids->first)
        return NULL;
    const int64_t channels = at_pictures_form(pictures).channels;
    at_tensor *x = at_tensor_make(pass->tape, AT_SHAPE(grids->first[source->rows], channels)); /* [pixels, channels] */
    for (int64_t b = 0; x && b < source->rows; b++) {
        const int64_t id = source->ids[b * source->length];
        at_real *to = x->value + grids->first[b] * channels;
        if (pass->rng && (source->augment > 0 || source->elastic > 0)) {
            const at_picture_change change =
                at_picture_change_draw(pass->rng, source->augment, source->elastic, height[b], width[b]);
            at_pictures_augmented(pictures, id, &change, to);
        } else {
            at_pictures_values(pictures, id, to);
        }
    }
    return x;
}
