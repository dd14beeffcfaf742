/* What the files of the store of pictures share. */
#ifndef AT_PICTURES_INTERNAL_H
#define AT_PICTURES_INTERNAL_H

#include "image/image.h"
#include "io/npy_items.h"

/* An array that lines have named. */
typedef struct at_picture_array {
    char *path;
    at_npy_items items;
    uint64_t used; /* when: the longest unused one is closed for another */
} at_picture_array;

enum { AT_PICTURE_ARRAYS = 16 }; /* open at the same time */

/* One picture or one row of features: its values are at `offset`. */
typedef struct at_picture {
    int64_t height, width;
    size_t offset;
} at_picture;

struct at_pictures {
    at_picture_form form;
    at_picture *pictures;
    size_t count, room;
    uint8_t *bytes; /* the values one after the other; of features floats, at multiples of their size */
    size_t used, bytes_room;
    at_picture_array array[AT_PICTURE_ARRAYS];
    uint64_t uses;
};

/* Adds a picture that is in the line itself. */
bool at_pictures_add_inline(at_pictures *pictures, const char *line, size_t length, at_error *error);
/* Adds an item of an array. */
bool at_pictures_add_item(at_pictures *pictures, const char *path, int64_t item, at_error *error);
/* Adds pixels; the image is changed. */
bool at_pictures_add_image(at_pictures *pictures, at_image *image, const char *name, at_error *error);
/* Room for a picture with `size` bytes of values, which the caller writes before at_pictures_keep. */
uint8_t *at_pictures_room(at_pictures *pictures, size_t size, const char *name, at_error *error);
void at_pictures_keep(at_pictures *pictures, int64_t height, int64_t width, size_t size);
/* Makes one picture of those from number `first` on, side by side. */
bool at_pictures_join(at_pictures *pictures, size_t first, at_error *error);

#endif
