#include "scenes.h"

#include <stdlib.h>
#include <string.h>

#include "tasks.h"

/* The picture is divided into 3 x 3 places, and each object has one of its own. */
enum { PLACES = 3, PLACE = SCENE_SIDE / PLACES, LARGE = 6, SMALL = 4, FINE = 4 };

static const char *const shapes[] = {"circle", "square", "triangle", "cross", "ring"};
enum { CIRCLE, SQUARE, TRIANGLE, CROSS, RING, SHAPES };
static const struct {
    const char *name;
    unsigned char rgb[3];
} colours[] = {{"red", {225, 40, 40}},     {"green", {40, 190, 60}},   {"blue", {50, 90, 235}},
               {"yellow", {235, 215, 50}}, {"purple", {170, 60, 200}}, {"white", {240, 240, 240}}};
enum { COLOURS = sizeof colours / sizeof *colours };

/* Six of the sixty combinations; each shape, colour and size is in others. */
static bool is_novel(const scene_object *o)
{
    return (o->shape + 2 * o->colour + 5 * o->large) % 10 == 3;
}

/* ---- Geometry ------------------------------------------------------------------------------------------------- */

/* Whether a point, in units of 1 / FINE pixels from the middle, belongs to the shape of this radius. */
static bool is_inside(int shape, int radius, int x, int y)
{
    const int r = radius * FINE, distance = x * x + y * y;
    switch (shape) {
    case CIRCLE:
        return distance <= r * r;
    case SQUARE:
        return abs(x) <= r * 9 / 10 && abs(y) <= r * 9 / 10;
    case TRIANGLE: /* the tip above */
        return y <= r * 8 / 10 && 2 * abs(x) <= y + r;
    case CROSS:
        return (abs(x) <= r / 3 && abs(y) <= r) || (abs(y) <= r / 3 && abs(x) <= r);
    default: /* a ring */
        return distance <= r * r && 100 * distance >= 36 * r * r;
    }
}

/* How much of the pixel the object covers: 0 to FINE * FINE. */
static int coverage(const scene_object *o, int row, int column)
{
    const int radius = o->large ? LARGE : SMALL;
    int covered = 0;
    for (int i = 0; i < FINE * FINE; i++) {
        const int x = (column - o->column) * FINE + i % FINE, y = (row - o->row) * FINE + i / FINE;
        covered += is_inside(o->shape, radius, x, y);
    }
    return covered;
}

/* ---- Scenes --------------------------------------------------------------------------------------------------- */

static void paint(scene *s, uint64_t *random)
{
    const int ground = 10 + task_draw(random, 50);
    for (int row = 0; row < SCENE_SIDE; row++)
        for (int column = 0; column < SCENE_SIDE; column++) {
            unsigned char *pixel = s->pixel[row][column];
            pixel[0] = pixel[1] = pixel[2] = (unsigned char)(ground + task_draw(random, 16));
            for (int i = 0; i < s->count; i++) {
                const scene_object *o = &s->object[i];
                const int covered = coverage(o, row, column), all = FINE * FINE;
                for (int c = 0; c < 3 && covered > 0; c++)
                    pixel[c] =
                        (unsigned char)((colours[o->colour].rgb[c] * covered + pixel[c] * (all - covered)) / all);
            }
        }
}

/* "left of" in the same row of places, else "above": the objects are in that order. */
static void write_caption(scene *s, const int *place)
{
    int used = 0;
    for (int i = 0; i < s->count; i++) {
        const scene_object *o = &s->object[i];
        const char *relation = i == 0 ? "" : place[i] / PLACES == place[i - 1] / PLACES ? " left of " : " above ";
        used += snprintf(s->caption + used, SCENE_CAPTION - (size_t)used, "%sa %s %s %s", relation,
                         o->large ? "large" : "small", colours[o->colour].name, shapes[o->shape]);
    }
}

/* Different places in rising order. */
static void choose_places(uint64_t *random, int count, int *place)
{
    bool taken[PLACES * PLACES] = {0};
    for (int i = 0; i < count;) {
        const int drawn = task_draw(random, PLACES * PLACES);
        i += !taken[drawn];
        taken[drawn] = true;
    }
    for (int i = 0, at = 0; i < PLACES * PLACES; i++)
        if (taken[i])
            place[at++] = i;
}

static void draw_object(uint64_t *random, int place, scene_object *o)
{
    o->shape = task_draw(random, SHAPES);
    o->colour = task_draw(random, COLOURS);
    o->large = task_draw(random, 2);
    const int free = o->large ? 1 : 2; /* pixels to either side */
    o->row = place / PLACES * PLACE + PLACE / 2 + task_draw(random, 2 * free + 1) - free;
    o->column = place % PLACES * PLACE + PLACE / 2 + task_draw(random, 2 * free + 1) - free;
}

void scene_draw(uint64_t *random, bool novel, scene *s)
{
    int place[SCENE_OBJECTS];
    *s = (scene){.count = 1 + task_draw(random, SCENE_OBJECTS)};
    choose_places(random, s->count, place);
    const int unusual = novel ? task_draw(random, s->count) : -1;
    for (int i = 0; i < s->count; i++)
        do
            draw_object(random, place[i], &s->object[i]);
        while (i == unusual ? !is_novel(&s->object[i]) : !novel && is_novel(&s->object[i]));
    paint(s, random);
    write_caption(s, place);
}

bool scene_is_noun(const char *word, int length)
{
    for (int i = 0; i < SHAPES; i++)
        if ((int)strlen(shapes[i]) == length && strncmp(shapes[i], word, (size_t)length) == 0)
            return true;
    return false;
}

bool scene_covers(const scene *s, int object, int top, int left, int bottom, int right)
{
    for (int row = top; row < bottom && row < SCENE_SIDE; row++)
        for (int column = left; column < right && column < SCENE_SIDE; column++)
            if (coverage(&s->object[object], row, column) > 0)
                return true;
    return false;
}

void scene_mark(const scene *s, int object, bool marked[SCENE_CELLS])
{
    enum { CELL = SCENE_SIDE / SCENE_GRID };
    for (int i = 0; i < SCENE_CELLS; i++) {
        const int top = i / SCENE_GRID * CELL, left = i % SCENE_GRID * CELL;
        marked[i] = scene_covers(s, object, top, left, top + CELL, left + CELL);
    }
}

void scene_write_links(const scene *s, FILE *stream)
{
    const char *blank = "";
    int object = 0, number = 0;
    for (const char *word = s->caption; *word && object < s->count; number++) {
        const int length = (int)strcspn(word, " ");
        if (scene_is_noun(word, length)) {
            bool marked[SCENE_CELLS];
            scene_mark(s, object++, marked);
            for (int i = 0; i < SCENE_CELLS; i++)
                if (marked[i]) {
                    fprintf(stream, "%s%d-%d", blank, i, number);
                    blank = " ";
                }
        }
        word += length + (word[length] == ' ');
    }
    fputc('\n', stream);
}

bool scenes_write(const char *path, int64_t count, uint64_t seed, bool novel, scene_taker *take, void *context,
                  at_error *error)
{
    uint64_t random = task_mix(seed);
    at_array *array = at_array_new(AT_U8, 4, (const int64_t[]){count, SCENE_SIDE, SCENE_SIDE, 3}, error);
    for (int64_t i = 0; array && i < count; i++) {
        scene one;
        scene_draw(&random, novel, &one);
        memcpy((unsigned char *)array->data + (size_t)i * SCENE_BYTES, one.pixel, SCENE_BYTES);
        take(context, i, &one);
    }
    const bool good = array && at_npy_write(path, array, error);
    at_array_free(array);
    return good;
}
