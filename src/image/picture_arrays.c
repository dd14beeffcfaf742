/* Items of .npy arrays as pictures or rows of features. */
#include "image/pictures_internal.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "io/dtype.h"

/* ---- Open arrays ------------------------------------------------------------------------------------------------ */

static bool open_array(at_picture_array *array, const char *path, at_error *error)
{
    at_npy_items items;
    if (!at_npy_items_open(path, &items, error))
        return false;
    char *copy = strdup(path);
    if (!copy) {
        close(items.file);
        return at_no_memory(error, "the array '%s'", path);
    }
    if (array->path)
        close(array->items.file);
    free(array->path);
    *array = (at_picture_array){.path = copy, .items = items};
    return true;
}

/* The array of the path: open already, or in the place of the one that was not used for the longest time. */
static const at_picture_array *array_of(at_pictures *pictures, const char *path, at_error *error)
{
    at_picture_array *oldest = &pictures->array[0];
    for (int i = 0; i < AT_PICTURE_ARRAYS; i++) {
        at_picture_array *array = &pictures->array[i];
        if (array->path && strcmp(array->path, path) == 0) {
            array->used = ++pictures->uses;
            return array;
        }
        if (array->used < oldest->used)
            oldest = array;
    }
    if (!open_array(oldest, path, error))
        return NULL;
    oldest->used = ++pictures->uses;
    return oldest;
}

/* ---- Pictures --------------------------------------------------------------------------------------------------- */

/* uint8 [N,H,W] or [N,H,W,3] */
static bool add_pixels(at_pictures *pictures, const at_picture_array *array, int64_t item, at_error *error)
{
    const at_npy_header *h = &array->items.header;
    const int64_t *dim = h->dim;
    char shape[AT_SHAPE_TEXT];
    if (h->dtype != AT_U8 || !(h->rank == 3 || (h->rank == 4 && dim[3] == 3)))
        return at_fail(
            error, AT_SHAPE,
            "'%s' holds %s of shape %s; an array of pictures holds unsigned 8-bit integers [N,H,W] or [N,H,W,3]",
            array->path, at_dtype_rows[h->dtype].name, at_dims_text(h->rank, dim, shape));
    if (dim[1] < 1 || dim[2] < 1 || dim[1] > AT_IMAGE_SIDE || dim[2] > AT_IMAGE_SIDE ||
        dim[1] * dim[2] > AT_IMAGE_PIXELS)
        return at_fail(error, AT_SHAPE,
                       "'%s' has pictures of %lld x %lld pixels; attend takes 1 to %d, and %d along a side",
                       array->path, (long long)dim[1], (long long)dim[2], AT_IMAGE_PIXELS, AT_IMAGE_SIDE);
    at_image image = {(int)dim[1], (int)dim[2], h->rank == 3 ? 1 : 3, malloc(array->items.item_bytes)};
    const bool done = image.bytes ? at_npy_items_read(&array->items, item, image.bytes, array->path, error) &&
                                        at_pictures_add_image(pictures, &image, array->path, error)
                                  : at_no_memory(error, "a picture of '%s'", array->path);
    at_image_free(&image);
    return done;
}

/* ---- Features --------------------------------------------------------------------------------------------------- */

/* out = the item as floats [L,D] */
static bool read_floats(const at_picture_array *array, int64_t item, float *out, at_error *error)
{
    const at_npy_header *h = &array->items.header;
    if (h->dtype == AT_F32)
        return at_npy_items_read(&array->items, item, out, array->path, error);
    at_array raw = {
        .dtype = h->dtype, .rank = 2, .dim = {h->dim[1], h->dim[2]}, .data = malloc(array->items.item_bytes)};
    if (!raw.data)
        return at_no_memory(error, "an item of '%s'", array->path);
    at_array *floats =
        at_npy_items_read(&array->items, item, raw.data, array->path, error) ? at_array_to_f32(&raw, error) : NULL;
    if (floats)
        memcpy(out, floats->data, (size_t)at_array_count(floats) * sizeof *out);
    at_array_free(floats);
    free(raw.data);
    return floats != NULL;
}

/* float16, float32 or float64 [N,L,D] */
static bool add_features(at_pictures *pictures, const at_picture_array *array, int64_t item, at_error *error)
{
    const at_npy_header *h = &array->items.header;
    const int64_t *dim = h->dim;
    char shape[AT_SHAPE_TEXT];
    if (h->rank != 3 || dim[1] < 1 || dim[2] < 1 || dim[2] > INT_MAX ||
        !(h->dtype == AT_F32 || h->dtype == AT_F16 || h->dtype == AT_F64))
        return at_fail(error, AT_SHAPE,
                       "'%s' holds %s of shape %s; an array of features holds floats [N,L,D], L and D at least 1",
                       array->path, at_dtype_rows[h->dtype].name, at_dims_text(h->rank, dim, shape));
    if (pictures->form.channels != 0 && dim[2] != pictures->form.channels)
        return at_fail(error, AT_SHAPE, "'%s' has %lld features in a row; the model takes %lld", array->path,
                       (long long)dim[2], (long long)pictures->form.channels);
    const size_t count = (size_t)(dim[1] * dim[2]), size = count * sizeof(float); /* the file has as many values */
    float *to = (float *)(void *)at_pictures_room(pictures, size, array->path, error);
    if (!to || !read_floats(array, item, to, error))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(to[i]))
            return at_fail(error, AT_FORMAT, "'%s[%lld]' has a feature that is %s", array->path, (long long)item,
                           isnan(to[i]) ? "not a number" : "infinite, or too large for float32");
    at_pictures_keep(pictures, dim[1], 1, size);
    pictures->form.channels = dim[2];
    return true;
}

bool at_pictures_add_item(at_pictures *pictures, const char *path, int64_t item, at_error *error)
{
    const at_picture_array *array = array_of(pictures, path, error);
    if (!array)
        return false;
    const int64_t count = array->items.header.dim[0];
    if (item < 0 || item >= count)
        return at_fail(error, AT_FORMAT, "'%s' has %lld items, counted from 0, and not the one that is asked for", path,
                       (long long)count);
    return pictures->form.features ? add_features(pictures, array, item, error)
                                   : add_pixels(pictures, array, item, error);
}

/* ---- Whole arrays ----------------------------------------------------------------------------------------------- */

bool at_pictures_is_array(const char *path)
{
    static const char start[6] = "\x93NUMPY";
    char bytes[sizeof start];
    at_error error = {0};
    size_t size;
    const int file = at_file_open_regular(path, &size, &error);
    if (file < 0)
        return false;
    const bool same = size >= sizeof bytes && at_file_read_at(file, 0, bytes, sizeof bytes, path, &error) &&
                      memcmp(bytes, start, sizeof start) == 0;
    close(file);
    return same;
}

bool at_pictures_array_count(const char *path, int64_t *count, at_error *error)
{
    at_npy_items items;
    if (!at_npy_items_open(path, &items, error))
        return false;
    close(items.file);
    *count = items.header.dim[0];
    return true;
}
