#include "image/image_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file_kind.h"
#include "base/files.h"

static const struct {
    const char *name, *start, *library;
    size_t length;
    at_image_reader *read; /* NULL: the library was not there when attend was built */
} kinds[] = {
    {"PNG", "\x89PNG\r\n\x1a\n", "libpng", 8,
#ifdef AT_HAVE_PNG
     at_png_read
#else
     NULL
#endif
    },
    {"JPEG", "\xFF\xD8\xFF", "libjpeg", 3,
#ifdef AT_HAVE_JPEG
     at_jpeg_read
#else
     NULL
#endif
    },
};

bool at_image_truncated(const at_image_file *file)
{
    return at_fail(file->error, AT_FORMAT, "'%s' is a truncated %s picture", file->name, file->kind);
}

bool at_image_damaged(const at_image_file *file, const char *why)
{
    return at_fail(file->error, AT_FORMAT, "'%s' is a damaged %s picture: %s", file->name, file->kind, why);
}

bool at_image_size_check(const at_image_file *file, uint64_t height, uint64_t width, uint64_t most)
{
    if (height == 0 || width == 0)
        return at_image_damaged(file, "it has no pixels");
    if (height > AT_IMAGE_SIDE || width > AT_IMAGE_SIDE || height * width > AT_IMAGE_PIXELS)
        return at_fail(file->error, AT_UNSUPPORTED,
                       "'%s' is a %s picture of %llu x %llu pixels; attend reads %d at most, and %d along a side; make "
                       "it smaller",
                       file->name, file->kind, (unsigned long long)height, (unsigned long long)width, AT_IMAGE_PIXELS,
                       AT_IMAGE_SIDE);
    if (height * width > most)
        return at_fail(file->error, AT_FORMAT,
                       "'%s' claims %llu x %llu pixels, more than a %s picture of %zu bytes can have", file->name,
                       (unsigned long long)height, (unsigned long long)width, file->kind, file->size);
    return true;
}

bool at_image_allocate(const at_image_file *file, at_image *image, size_t pixel_bytes)
{
    image->bytes = malloc((size_t)image->height * (size_t)image->width * pixel_bytes);
    return image->bytes ||
           at_no_memory(file->error, "the picture '%s' of %d x %d pixels", file->name, image->height, image->width);
}

void at_image_free(at_image *image)
{
    free(image->bytes);
    *image = (at_image){0};
}

static bool no_picture(const unsigned char *bytes, size_t size, const char *name, at_error *error)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (size > 0 && size < kinds[i].length && memcmp(bytes, kinds[i].start, size) == 0)
            return at_fail(error, AT_FORMAT, "'%s' is a truncated %s picture", name, kinds[i].name);
    const char *kind = at_file_kind(bytes, size < AT_KIND_BYTES ? size : AT_KIND_BYTES);
    return at_fail(error, AT_FORMAT, "'%s' is %s, not a PNG or JPEG picture", name,
                   kind ? kind : "a file of a kind that attend does not know");
}

bool at_image_parse(const unsigned char *bytes, size_t size, const char *name, at_image *image, at_error *error)
{
    *image = (at_image){0};
    if (error->code != AT_OK)
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (size < kinds[i].length || memcmp(bytes, kinds[i].start, kinds[i].length) != 0)
            continue;
        if (!kinds[i].read)
            return at_fail(error, AT_UNSUPPORTED, "'%s' is a %s picture, and this attend was built without %s", name,
                           kinds[i].name, kinds[i].library);
        const at_image_file file = {bytes, size, name, kinds[i].name, error};
        if (kinds[i].read(&file, image))
            return true;
        at_image_free(image);
        return false;
    }
    return no_picture(bytes, size, name, error);
}

bool at_image_read(const char *path, at_image *image, at_error *error)
{
    enum { MOST = 1 << 29 }; /* bytes: every picture of AT_IMAGE_PIXELS has fewer */
    *image = (at_image){0};
    size_t size = 0;
    const int file = at_file_open_regular(path, &size, error);
    if (file < 0)
        return false;
    const size_t taken = size <= MOST ? size : AT_KIND_BYTES;
    unsigned char *bytes = malloc(taken > 0 ? taken : 1);
    if (!bytes)
        at_no_memory(error, "the contents of '%s'", path);
    else if (!at_file_read_at(file, 0, bytes, taken, path, error))
        ;
    else if (taken < size)
        at_fail(error, AT_UNSUPPORTED, "'%s' has %zu bytes; a picture may have %d at most", path, size, MOST);
    else
        at_image_parse(bytes, size, path, image, error);
    free(bytes);
    close(file);
    return error->code == AT_OK;
}
