/* A store of pictures: two bytes of form, a line, and the bytes of the file that x.npy and x.png are. Each line adds a picture
 * whose values are in range, or has an error message and adds nothing. */
#include "fuzz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "image/image.h"

static char folder[] = "/tmp/fuzz_pictures_XXXXXX";

static void remove_folder(void)
{
    char name[80];
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s/x.%s", folder, i ? "npy" : "png");
        unlink(name);
    }
    rmdir(folder);
}

/* The names in the folder lead to the file. */
static void link_names(const char *path)
{
    static char linked[80];
    char name[80];
    if (strcmp(path, linked) == 0)
        return;
    if (!linked[0]) {
        EXPECT(mkdtemp(folder));
        atexit(remove_folder);
    }
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s/x.%s", folder, i ? "npy" : "png");
        unlink(name);
        EXPECT(symlink(path, name) == 0);
    }
    snprintf(linked, sizeof linked, "%s", path);
}

static void check_values(const at_pictures *pictures, int64_t index, uint64_t seed)
{
    int64_t height, width;
    at_pictures_size(pictures, index, &height, &width);
    const at_picture_form form = at_pictures_form(pictures);
    EXPECT(height > 0 && width > 0 && form.channels > 0);
    const size_t count = (size_t)(height * width * form.channels);
    float *values = malloc(count * sizeof *values), *changed = malloc(count * sizeof *changed);
    at_rng rng = {.seed = seed};
    const at_picture_change change =
        at_picture_change_draw(&rng, (double)(seed % 5), (double)(seed % 3) / 2, height, width);
    const at_picture_change none = {0};
    at_pictures_values(pictures, index, values);
    at_pictures_augmented(pictures, index, &none, changed);
    EXPECT(memcmp(values, changed, count * sizeof *values) == 0);
    at_pictures_augmented(pictures, index, &change, changed);
    for (size_t i = 0; i < count; i++)
        EXPECT(form.features ? isfinite(values[i]) && values[i] == changed[i]
                             : values[i] >= 0 && values[i] <= 1 && changed[i] >= 0 && changed[i] <= 1);
    free(values);
    free(changed);
}

/* With `joined`, the picture x.png beside the one of the line. */
static void add(at_pictures *pictures, const char *line, size_t length, uint64_t seed, bool joined)
{
    at_error error = {0};
    const int64_t count = at_pictures_count(pictures);
    int64_t index;
    char first[80] = "";
    if (joined)
        snprintf(first, sizeof first, "%s/x.png" AT_PICTURE_BAR, folder);
    if (length > 0 && !at_picture_is_inline(line, length)) /* an empty line stays one */
        snprintf(first + strlen(first), sizeof first - strlen(first), "%s/", folder);
    const size_t before = strlen(first);
    char *path = malloc(before + length + 1); /* the line in the folder */
    memcpy(path, first, before);
    memcpy(path + before, line, length);
    const bool done = at_pictures_add(pictures, path, before + length, &index, &error);
    free(path);
    expect_message(done, &error);
    EXPECT(index == (done ? count : -1) && at_pictures_count(pictures) == count + done);
    if (done)
        check_values(pictures, index, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < 2)
        return 0;
    const uint8_t *line = bytes + 2, *end = memchr(line, '\n', size - 2);
    const size_t bar = strlen(AT_PICTURE_BAR);
    const bool has_slash = end && memchr(line, '/', (size_t)(end - line));
    if (!end || (has_slash && !at_picture_is_inline((const char *)line, (size_t)(end - line))) ||
        memmem(line, (size_t)(end - line), AT_PICTURE_BAR, bar)) /* other files than the two names are not for us */
        return 0;
    at_picture_form form = {bytes[0] & 15, bytes[0] >> 4, bytes[1] & 1 ? 3 : 1, bytes[1] & 2};
    if (form.features)
        form = (at_picture_form){0, 0, bytes[1] >> 2, true};
    const char *path;
    const int file = open_bytes(end + 1, size - (size_t)(end + 1 - bytes), &path);
    link_names(path);
    at_error error = {0};
    at_pictures *pictures = at_pictures_new(&form, &error);
    expect_message(pictures, &error);
    add(pictures, (const char *)line, (size_t)(end - line), bytes[1], false);
    add(pictures, (const char *)line, (size_t)(end - line), bytes[1], true);
    at_pictures_clear(pictures);
    add(pictures, "x.npy[0]", 8, bytes[0], false);
    add(pictures, "x.png", 5, bytes[0], false);
    at_pictures_free(pictures);
    close(file);
    return 0;
}
