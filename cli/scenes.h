/* Scenes drawn from a seed, with captions: 40 x 40 pictures of one to three objects, such as "a small red ring above a
 * large blue square". The same for the same seed everywhere. Some combinations of size, colour and shape are never in
 * ordinary scenes, so that a model can be tested on them. */
#ifndef SCENES_H
#define SCENES_H

#include "console.h"

enum {
    SCENE_SIDE = 40,
    SCENE_BYTES = SCENE_SIDE * SCENE_SIDE * 3,
    SCENE_OBJECTS = 3,
    SCENE_CAPTION = 128,
    SCENE_GRID = 10, /* convolutions with strides of 4 in all make a grid of so many rows and columns, */
    SCENE_CELLS = SCENE_GRID * SCENE_GRID,
};

typedef struct scene_object {
    int shape, colour;
    bool large;
    int row, column; /* of its middle, in pixels */
} scene_object;

typedef struct scene {
    int count;
    scene_object object[SCENE_OBJECTS]; /* in the order of the caption: row by row, from left to right */
    unsigned char pixel[SCENE_SIDE][SCENE_SIDE][3];
    char caption[SCENE_CAPTION];
} scene;

/* novel: one object at least has a combination that ordinary scenes never have; else none has. */
void scene_draw(uint64_t *random, bool novel, scene *s);
/* Whether the word is the name of a shape, such as "ring": the n-th of them in a caption names the n-th object. */
bool scene_is_noun(const char *word, int length);
/* Whether any pixel of the object lies in the pixels of rows [top, bottom) and columns [left, right). */
bool scene_covers(const scene *s, int object, int top, int left, int bottom, int right);
/* Marks the cells of the grid, row by row, that the object covers. */
void scene_mark(const scene *s, int object, bool marked[SCENE_CELLS]);
/* The links of a scene's objects with their nouns in the caption, "44-3 45-3 54-3", and a newline. */
void scene_write_links(const scene *s, FILE *stream);

/* Draws scenes, gives each to `take`, and writes their pictures as one array, .npy. */
typedef void scene_taker(void *context, int64_t index, const scene *s);
bool scenes_write(const char *path, int64_t count, uint64_t seed, bool novel, scene_taker *take, void *context,
                  at_error *error);

#endif
