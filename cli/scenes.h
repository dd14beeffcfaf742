/* Scenes drawn from a seed, with captions: 40 x 40 pictures of one to three objects, such as "a small red ring above a
 * large blue square". The same for the same seed everywhere. Some combinations of size, colour and shape are never in
 * ordinary scenes, so that a model can be tested on them. */
#ifndef SCENES_H
#define SCENES_H

#include <stdbool.h>
#include <stdint.h>

enum { SCENE_SIDE = 40, SCENE_BYTES = SCENE_SIDE * SCENE_SIDE * 3, SCENE_OBJECTS = 3, SCENE_CAPTION = 128 };

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

#endif
