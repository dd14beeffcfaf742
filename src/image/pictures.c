#include "image/pictures_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/hash.h"

static bool form_check(const at_picture_form *form, at_error *error)
{
    if (form->features)
        return (form->height == 0 && form->width == 0 && form->channels >= 0 && form->channels <= INT_MAX) ||
               at_fail(error, AT_USAGE, "features have no height and width, and not %lld channels",
                       (long long)form->channels);
    if (form->channels != 1 && form->channels != 3)
        return at_fail(error, AT_USAGE, "pictures have 1 channel (grey) or 3 (RGB), not %lld",
                       (long long)form->channels);
    if (form->height < 0 || form->height > AT_IMAGE_SIDE || form->width < 0 || form->width > AT_IMAGE_SIDE ||
        form->height * form->width > AT_PICTURE_PIXELS)
        return at_fail(error, AT_USAGE, "pictures cannot be made %lld x %lld pixels; %d pixels are the most",
                       (long long)form->height, (long long)form->width, AT_PICTURE_PIXELS);
    return true;
}

at_pictures *at_pictures_new(const at_picture_form *form, at_error *error)
{
    if (error->code != AT_OK || !form_check(form, error))
        return NULL;
    at_pictures *pictures = calloc(1, sizeof *pictures);
    if (!pictures)
        at_no_memory(error, "pictures");
    else
        pictures->form = *form;
    return pictures;
}

void at_pictures_free(at_pictures *pictures)
{
    if (!pictures)
        return;
    for (int i = 0; i < AT_PICTURE_ARRAYS; i++)
        if (pictures->array[i].path) {
            close(pictures->array[i].items.file);
            free(pictures->array[i].path);
        }
    free(pictures->pictures);
    free(pictures->bytes);
    free(pictures);
}

void at_pictures_clear(at_pictures *pictures)
{
    pictures->count = pictures->used = 0;
}

at_picture_form at_pictures_form(const at_pictures *pictures)
{
    return pictures->form;
}

int64_t at_pictures_count(const at_pictures *pictures)
{
    return (int64_t)pictures->count;
}

uint64_t at_pictures_hash(const at_pictures *pictures)
{
    uint64_t hash = at_hash_quick(pictures->bytes, pictures->used);
    for (size_t i = 0; i < pictures->count; i++) {
        hash = at_hash_mix(hash ^ (uint64_t)pictures->pictures[i].height);
        hash = at_hash_mix(hash ^ (uint64_t)pictures->pictures[i].width);
    }
    return hash;
}

size_t at_pictures_bytes(const at_pictures *pictures)
{
    return pictures->used;
}

void at_pictures_size(const at_pictures *pictures, int64_t index, int64_t *height, int64_t *width)
{
    *height = pictures->pictures[index].height;
    *width = pictures->pictures[index].width;
}

/* ---- Adding ----------------------------------------------------------------------------------------------------- */

uint8_t *at_pictures_room(at_pictures *pictures, size_t size, const char *name, at_error *error)
{
    if (!AT_GROW(pictures->pictures, pictures->room, pictures->count + 1) ||
        !AT_GROW(pictures->bytes, pictures->bytes_room, pictures->used + size)) {
        at_no_memory(error, "the picture '%s' beside %zu others", name, pictures->count);
        return NULL;
    }
    return pictures->bytes + pictures->used;
}

void at_pictures_keep(at_pictures *pictures, int64_t height, int64_t width, size_t size)
{
    pictures->pictures[pictures->count++] = (at_picture){height, width, pictures->used};
    pictures->used += size;
}

/* round(length wanted / old), at least 1: a side that follows from the other one. */
static int64_t in_proportion(int64_t length, int64_t wanted, int64_t old)
{
    const int64_t side = (length * wanted + old / 2) / old;
    return side > 0 ? side : 1;
}

bool at_pictures_add_image(at_pictures *pictures, at_image *image, const char *name, at_error *error)
{
    const at_picture_form *form = &pictures->form;
    int64_t height = form->height, width = form->width;
    if (height == 0)
        height = width == 0 ? image->height : in_proportion(image->height, width, image->width);
    if (width == 0)
        width = form->height == 0 ? image->width : in_proportion(image->width, height, image->height);
    if (height > AT_IMAGE_SIDE || width > AT_IMAGE_SIDE || height * width > AT_PICTURE_PIXELS)
        return at_fail(
            error, AT_UNSUPPORTED,
            "'%s' would be given to the model as %lld x %lld pixels; %d are the most, so give a smaller size "
            "to make all pictures",
            name, (long long)height, (long long)width, AT_PICTURE_PIXELS);
    if (!at_image_to_channels(image, (int)form->channels, error) ||
        !at_image_resize(image, (int)height, (int)width, error))
        return false;
    const size_t size = (size_t)(height * width * form->channels);
    uint8_t *to = at_pictures_room(pictures, size, name, error);
    if (!to)
        return false;
    memcpy(to, image->bytes, size);
    at_pictures_keep(pictures, height, width, size);
    return true;
}

static bool add_file(at_pictures *pictures, const char *path, at_error *error)
{
    if (pictures->form.features)
        return at_fail(error, AT_USAGE,
                       "'%s' is not an item of an array, such as features.npy[0], and the model takes features", path);
    at_image image;
    at_error why = *error;
    const bool read = at_image_read(path, &image, &why);
    if (!read && why.code == AT_FILE) /* a line of text, perhaps */
        at_fail(error, why.code, "%s; each line of the source must name a picture file", why.text);
    else if (!read)
        *error = why;
    const bool done = read && at_pictures_add_image(pictures, &image, path, error);
    at_image_free(&image);
    return done;
}

/* ---- Lines ------------------------------------------------------------------------------------------------------ */

/* The item that ends a path, "x.npy[17]": cuts it off. False if there is none; -1 for a number that no array has. */
static bool take_item(char *path, int64_t *item)
{
    const size_t length = strlen(path);
    char *open = length > 0 && path[length - 1] == ']' ? strrchr(path, '[') : NULL;
    if (!open || open - path < 4 || memcmp(open - 4, ".npy", 4) != 0 || open[1] == ']')
        return false;
    int64_t value = 0;
    for (const char *at = open + 1; *at != ']'; at++) {
        if (*at < '0' || *at > '9')
            return false;
        if (value >= 0 &&
            (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *at - '0', &value)))
            value = -1;
    }
    *item = value;
    *open = '\0';
    return true;
}

static bool add_part(at_pictures *pictures, const char *line, size_t length, at_error *error)
{
    if (length == 0)
        return at_fail(error, AT_FORMAT,
                       "it is empty; it should be the path of a picture, or an item of an array such as x.npy[0]");
    if (memchr(line, '\0', length))
        return at_fail(error, AT_FORMAT, "it has a zero byte, which no path has");
    if (at_picture_is_inline(line, length))
        return at_pictures_add_inline(pictures, line, length, error);
    char *path = strndup(line, length);
    if (!path)
        return at_no_memory(error, "the name of a picture");
    int64_t item;
    const bool done =
        take_item(path, &item) ? at_pictures_add_item(pictures, path, item, error) : add_file(pictures, path, error);
    free(path);
    return done;
}

bool at_pictures_add(at_pictures *pictures, const char *line, size_t length, int64_t *index, at_error *error)
{
    enum { BAR = sizeof AT_PICTURE_BAR - 1 };
    const size_t count = pictures->count, used = pictures->used;
    const char *end = line + length, *bar;
    *index = -1;
    if (error->code != AT_OK)
        return false;
    bool done = true;
    for (; done && (bar = length ? memmem(line, (size_t)(end - line), AT_PICTURE_BAR, BAR) : NULL); line = bar + BAR)
        done = add_part(pictures, line, (size_t)(bar - line), error);
    done = done && add_part(pictures, line, (size_t)(end - line), error) &&
           (pictures->count == count + 1 || at_pictures_join(pictures, count, error));
    if (!done) {
        pictures->count = count;
        pictures->used = used;
        return false;
    }
    *index = (int64_t)count;
    return true;
}
