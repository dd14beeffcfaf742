/* The store of pictures: files and items of arrays, as they are and changed a little, and all that it refuses. */
#include "image_files.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/image.h"
#include "io/dtype.h"

static char folder[] = "/tmp/test_pictures_XXXXXX";
static uint8_t grey[2 * 3 * 4];                                                          /* [2,3,4] */
static uint8_t colours[2 * 3 * 4 * 3];                                                   /* [2,3,4,3] */
static const float features[2 * 3 * 2] = {0.5f, -1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11.25f}; /* [2,3,2] */

static void write_array(const char *path, at_dtype dtype, int rank, const int64_t *dim, const void *values)
{
    at_error error = {0};
    at_array *array = at_array_of(dtype, rank, dim, values, &error);
    assert_true(at_npy_write(path, array, &error));
    at_array_free(array);
}

static int enter(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof grey; i++)
        grey[i] = (uint8_t)(10 * i + 3);
    for (size_t i = 0; i < sizeof colours; i++)
        colours[i] = (uint8_t)(3 * i + 1);
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return 1;
    write_array("grey.npy", AT_U8, 3, (const int64_t[]){2, 3, 4}, grey);
    write_array("colours.npy", AT_U8, 4, (const int64_t[]){2, 3, 4, 3}, colours);
    write_array("features.npy", AT_F32, 3, (const int64_t[]){2, 3, 2}, features);
    return mkdir("below", 0700) != 0 || chdir("below") != 0;
}

static int leave(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return chdir("/") != 0 || system(command) != 0;
}

static at_pictures *new_store(int64_t height, int64_t width, int64_t channels, bool features_too)
{
    at_error error = {0};
    const at_picture_form form = {height, width, channels, features_too};
    at_pictures *pictures = at_pictures_new(&form, &error);
    assert_string_equal(error.text, "");
    return pictures;
}

/* The line without a zero byte after it, for the sanitizers. */
static bool add_line(at_pictures *pictures, const char *line, int64_t *index, at_error *error)
{
    const size_t length = strlen(line);
    char *copy = malloc(length > 0 ? length : 1);
    memcpy(copy, line, length);
    const bool done = at_pictures_add(pictures, copy, length, index, error);
    free(copy);
    return done;
}

static int64_t add(at_pictures *pictures, const char *line)
{
    at_error error = {0};
    int64_t index = -2;
    const bool done = add_line(pictures, line, &index, &error);
    assert_string_equal(error.text, "");
    assert_true(done);
    return index;
}

static void refuse(at_pictures *pictures, const char *line, int code, const char *text)
{
    at_error error = {0};
    int64_t index = -2;
    const int64_t count = at_pictures_count(pictures);
    const size_t bytes = at_pictures_bytes(pictures);
    assert_false(add_line(pictures, line, &index, &error));
    assert_int_equal(index, -1);
    assert_string_equal(error.text, text);
    assert_int_equal(error.code, code);
    assert_int_equal(at_pictures_count(pictures), count);
    assert_int_equal(at_pictures_bytes(pictures), bytes);
}

static at_real *values_of(const at_pictures *pictures, int64_t index, const at_picture_change *change, int64_t *count)
{
    int64_t height, width;
    at_pictures_size(pictures, index, &height, &width);
    *count = height * width * at_pictures_form(pictures).channels;
    at_real *values = malloc((size_t)*count * sizeof *values);
    if (change)
        at_pictures_augmented(pictures, index, change, values);
    else
        at_pictures_values(pictures, index, values);
    return values;
}

static void expect_pixels(const at_pictures *pictures, int64_t index, int64_t height, int64_t width,
                          const uint8_t *expected)
{
    int64_t h, w, count;
    at_pictures_size(pictures, index, &h, &w);
    assert_int_equal(h, height);
    assert_int_equal(w, width);
    at_real *values = values_of(pictures, index, NULL, &count);
    for (int64_t i = 0; i < count; i++)
        assert_true(values[i] == (at_real)expected[i] / 255);
    free(values);
}

/* ---- Pictures --------------------------------------------------------------------------------------------------- */

static void items(void **state)
{
    (void)state;
    char path[100];
    snprintf(path, sizeof path, "%s/grey.npy[1]", folder);
    at_pictures *pictures = new_store(0, 0, 1, false);
    assert_int_equal(add(pictures, "../grey.npy[1]"), 0);
    assert_int_equal(add(pictures, "../grey.npy[0]"), 1);
    assert_int_equal(add(pictures, "../grey.npy[0001]"), 2);
    assert_int_equal(add(pictures, path), 3);
    assert_int_equal(at_pictures_count(pictures), 4);
    assert_int_equal(at_pictures_bytes(pictures), 4 * 12);
    for (int64_t i = 0; i < 4; i++)
        expect_pixels(pictures, i, 3, 4, i == 1 ? grey : grey + 12);
    at_pictures_clear(pictures);
    assert_int_equal(at_pictures_count(pictures), 0);
    assert_int_equal(add(pictures, "../grey.npy[0]"), 0);
    expect_pixels(pictures, 0, 3, 4, grey);
    at_pictures_free(pictures);
    at_pictures_free(NULL);
}

/* Side by side, the lower ones in the middle of the height, on paper of the first one's first pixel. */
static void joined(void **state)
{
    (void)state;
    const uint8_t low[2] = {200, 201};
    write_array("low.npy", AT_U8, 3, (const int64_t[]){1, 1, 2}, low);
    at_pictures *pictures = new_store(0, 0, 1, false);
    add(pictures, "low.npy[0]");
    assert_int_equal(add(pictures, "../grey.npy[0] | low.npy[0] | ../grey.npy[1]"), 1);
    assert_int_equal(add(pictures, "low.npy[0] | ../grey.npy[0]"), 2);
    assert_int_equal(at_pictures_bytes(pictures), 2 + 3 * 10 + 3 * 6);
    uint8_t wide[3 * 10], paper[3 * 6];
    for (int y = 0; y < 3; y++) {
        memcpy(wide + 10 * y, grey + 4 * y, 4);
        memcpy(wide + 10 * y + 4, y == 1 ? low : (const uint8_t[]){grey[0], grey[0]}, 2);
        memcpy(wide + 10 * y + 6, grey + 12 + 4 * y, 4);
        memcpy(paper + 6 * y, y == 1 ? low : (const uint8_t[]){200, 200}, 2);
        memcpy(paper + 6 * y + 2, grey + 4 * y, 4);
    }
    expect_pixels(pictures, 0, 1, 2, low);
    expect_pixels(pictures, 1, 3, 10, wide);
    expect_pixels(pictures, 2, 3, 6, paper);
    refuse(pictures, "low.npy[0] | none.npy[0]", AT_FILE, "cannot read 'none.npy': No such file or directory");
    refuse(pictures, " | low.npy[0]", AT_FORMAT,
           "it is empty; it should be the path of a picture, or an item of an array such as x.npy[0]");
    at_pictures_free(pictures);
    pictures = new_store(0, 0, 3, false);
    add(pictures, "../colours.npy[0] | ../colours.npy[1]");
    for (int y = 0; y < 3; y++) {
        int64_t count;
        at_real *values = values_of(pictures, 0, NULL, &count);
        for (int i = 0; i < 24; i++)
            assert_true(values[24 * y + i] == (at_real)colours[(i < 12 ? 12 * y + i : 36 + 12 * y + i - 12)] / 255);
        free(values);
    }
    at_pictures_free(pictures);
    pictures = new_store(0, 5, 1, false);
    refuse(pictures, "low.npy[0] | low.npy[0]", AT_USAGE,
           "pictures that all get one width cannot be joined; they can if they keep it, or get it from their height");
    at_pictures_free(pictures);
    pictures = new_store(0, 0, 0, true);
    refuse(pictures, "../features.npy[0] | ../features.npy[1]", AT_USAGE, "features cannot be joined as pictures can");
    at_pictures_free(pictures);
}

/* RGB to grey, grey to RGB, and other sizes, as the functions for one image make them. */
static void forms(void **state)
{
    (void)state;
    static const int64_t sizes[][4] = {{0, 0, 3, 4}, {2, 2, 2, 2}, {6, 7, 6, 7},
                                       {6, 0, 6, 8}, {0, 2, 2, 2}, {1, 0, 1, 1}};
    for (int channels = 1; channels <= 3; channels += 2)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int colour = 0; colour < 2; colour++) {
                at_error error = {0};
                at_image image = {3, 4, colour ? 3 : 1, malloc(36)};
                memcpy(image.bytes, colour ? colours + 36 : grey + 12, colour ? 36 : 12);
                assert_true(at_image_to_channels(&image, channels, &error));
                assert_true(at_image_resize(&image, (int)sizes[s][2], (int)sizes[s][3], &error));
                at_pictures *pictures = new_store(sizes[s][0], sizes[s][1], channels, false);
                add(pictures, colour ? "../colours.npy[1]" : "../grey.npy[1]");
                expect_pixels(pictures, 0, sizes[s][2], sizes[s][3], image.bytes);
                at_pictures_free(pictures);
                at_image_free(&image);
            }
}

#ifdef AT_HAVE_PNG
static void files(void **state)
{
    (void)state;
    const png_case c = {3, 4, 8, PNG_COLOR_TYPE_GRAY, 0, 0, -1, NULL};
    at_buffer file = png_file(&c, grey, 4);
    put_file("x.npy[0].png", file.bytes, file.size);
    put_file("a picture", file.bytes, file.size);
    at_buffer_free(&file);
    at_pictures *pictures = new_store(0, 0, 1, false);
    add(pictures, "x.npy[0].png");
    add(pictures, "../below/a picture");
    expect_pixels(pictures, 0, 3, 4, grey);
    expect_pixels(pictures, 1, 3, 4, grey);
    refuse(pictures, "a picture ", AT_FILE,
           "cannot read 'a picture ': No such file or directory; each line of the source must name a picture file");
    at_pictures_free(pictures);
    pictures = new_store(0, 0, 0, true);
    refuse(pictures, "a picture", AT_USAGE,
           "'a picture' is not an item of an array, such as features.npy[0], and the model takes features");
    at_pictures_free(pictures);
}

/* A picture that keeps its size may not be too large for a model; one that is made smaller may. */
static void large_file(void **state)
{
    (void)state;
    const png_case c = {2049, 2048, 1, PNG_COLOR_TYPE_GRAY, 0, 0, -1, NULL};
    uint8_t *rows = calloc(2049, 2048 / 8);
    at_buffer file = png_file(&c, rows, 2048 / 8);
    put_file("large.png", file.bytes, file.size);
    at_buffer_free(&file);
    free(rows);
    at_pictures *pictures = new_store(0, 0, 1, false);
    refuse(
        pictures, "large.png", AT_UNSUPPORTED,
        "'large.png' would be given to the model as 2049 x 2048 pixels; 4194304 are the most, so give a smaller size "
        "to make all pictures");
    at_pictures_free(pictures);
    pictures = new_store(2, 2, 1, false);
    add(pictures, "large.png");
    expect_pixels(pictures, 0, 2, 2, (const uint8_t[]){0, 0, 0, 0});
    at_pictures_free(pictures);
}
#endif

/* More arrays than stay open at the same time, again and again. */
static void many_arrays(void **state)
{
    (void)state;
    enum { ARRAYS = 40 };
    char name[30];
    for (int i = 0; i < ARRAYS; i++) {
        snprintf(name, sizeof name, "many%d.npy", i);
        const uint8_t value = (uint8_t)i;
        write_array(name, AT_U8, 3, (const int64_t[]){1, 1, 1}, &value);
    }
    at_pictures *pictures = new_store(0, 0, 1, false);
    for (int i = 0; i < 10 * ARRAYS; i++) {
        const int array = i % 7 == 0 ? 0 : i * 11 % ARRAYS;
        snprintf(name, sizeof name, "many%d.npy[0]", array);
        const uint8_t value = (uint8_t)array;
        expect_pixels(pictures, add(pictures, name), 1, 1, &value);
    }
    assert_int_equal(at_pictures_bytes(pictures), 10 * ARRAYS);
    at_pictures_free(pictures);
}

/* ---- Features --------------------------------------------------------------------------------------------------- */

static void feature_rows(void **state)
{
    (void)state;
    const double doubles[4] = {1, -2.5, 1e-3, 1e300};
    const uint16_t halves[4] = {0x3c00, 0xc100, 0x7bff, 0x7c00}; /* 1, -2.5, 65504, infinity */
    const float bad[4] = {1, NAN, -INFINITY, 1};
    write_array("doubles.npy", AT_F64, 3, (const int64_t[]){2, 1, 2}, doubles);
    write_array("halves.npy", AT_F16, 3, (const int64_t[]){2, 1, 2}, halves);
    write_array("bad.npy", AT_F32, 3, (const int64_t[]){2, 1, 2}, bad);
    at_pictures *pictures = new_store(0, 0, 0, true);
    assert_int_equal(at_pictures_form(pictures).channels, 0);
    add(pictures, "../features.npy[1]");
    assert_int_equal(at_pictures_form(pictures).channels, 2);
    add(pictures, "doubles.npy[0]");
    add(pictures, "halves.npy[0]");
    int64_t height, width, count;
    at_pictures_size(pictures, 0, &height, &width);
    assert_int_equal(height, 3);
    assert_int_equal(width, 1);
    at_real *values = values_of(pictures, 0, NULL, &count);
    assert_int_equal(count, 6);
    for (int i = 0; i < 6; i++)
        assert_true(values[i] == features[6 + i]);
    free(values);
    const at_picture_change change = {5000, 5000, 5000, 5000, 5000, 5000, 5000};
    for (int64_t i = 0; i < 3; i++) { /* no augmentation of features */
        values = values_of(pictures, i, &change, &count);
        at_real *plain = values_of(pictures, i, NULL, &count);
        assert_memory_equal(values, plain, (size_t)count * sizeof *values);
        assert_true(i == 0 || (values[0] == 1 && values[1] == (at_real)-2.5));
        free(values);
        free(plain);
    }
    refuse(pictures, "doubles.npy[1]", AT_FORMAT,
           "'doubles.npy[1]' has a feature that is infinite, or too large for float32");
    refuse(pictures, "halves.npy[1]", AT_FORMAT,
           "'halves.npy[1]' has a feature that is infinite, or too large for float32");
    refuse(pictures, "bad.npy[0]", AT_FORMAT, "'bad.npy[0]' has a feature that is not a number");
    refuse(pictures, "../grey.npy[0]", AT_SHAPE,
           "'../grey.npy' holds unsigned 8-bit integers of shape [2,3,4]; an array of features holds floats [N,L,D], L "
           "and "
           "D at least 1");
    at_pictures_free(pictures);
    pictures = new_store(0, 0, 7, true);
    refuse(pictures, "../features.npy[0]", AT_SHAPE, "'../features.npy' has 2 features in a row; the model takes 7");
    at_pictures_free(pictures);
}

/* ---- Refusals --------------------------------------------------------------------------------------------------- */

static void refusals(void **state)
{
    (void)state;
    at_pictures *pictures = new_store(0, 0, 1, false);
    add(pictures, "../grey.npy[0]");
    refuse(pictures, "", AT_FORMAT,
           "it is empty; it should be the path of a picture, or an item of an array such as x.npy[0]");
    refuse(pictures, "../grey.npy[2]", AT_FORMAT,
           "'../grey.npy' has 2 items, counted from 0, and not the one that is asked for");
    refuse(pictures, "../grey.npy[99999999999999999999]", AT_FORMAT,
           "'../grey.npy' has 2 items, counted from 0, and not the one that is asked for");
    refuse(pictures, "../grey.npy", AT_FORMAT, "'../grey.npy' is a .npy array, not a PNG or JPEG picture");
    refuse(pictures, "../grey.npy[]", AT_FILE,
           "cannot read '../grey.npy[]': No such file or directory; each line of the source must name a picture file");
    refuse(
        pictures, "../grey.npy[-1]", AT_FILE,
        "cannot read '../grey.npy[-1]': No such file or directory; each line of the source must name a picture file");
    refuse(pictures, "none.npy[0]", AT_FILE, "cannot read 'none.npy': No such file or directory");
    refuse(pictures, ".", AT_FILE,
           "cannot read '.': it is a directory, not a file; each line of the source must name a picture file");
    refuse(pictures, "../features.npy[0]", AT_SHAPE,
           "'../features.npy' holds float32 of shape [2,3,2]; an array of pictures holds unsigned 8-bit integers "
           "[N,H,W] or "
           "[N,H,W,3]");
    put_file("text.npy", "hello", 5);
    refuse(pictures, "text.npy[0]", AT_FORMAT,
           "'text.npy' is not a .npy file: it does not begin with \\x93NUMPY and a version");
    const uint8_t eight[8] = {0};
    write_array("four.npy", AT_U8, 4, (const int64_t[]){1, 2, 1, 4}, eight);
    refuse(pictures, "four.npy[0]", AT_SHAPE,
           "'four.npy' holds unsigned 8-bit integers of shape [1,2,1,4]; an array of pictures holds unsigned 8-bit "
           "integers "
           "[N,H,W] or [N,H,W,3]");
    write_array("flat.npy", AT_U8, 3, (const int64_t[]){2, 0, 3}, eight);
    refuse(pictures, "flat.npy[1]", AT_SHAPE,
           "'flat.npy' has pictures of 0 x 3 pixels; attend takes 1 to 67108864, and 65500 along a side");
    write_array("none.npy", AT_U8, 3, (const int64_t[]){0, 2, 3}, eight);
    refuse(pictures, "none.npy[0]", AT_FORMAT,
           "'none.npy' has 0 items, counted from 0, and not the one that is asked for");
    write_array("one.npy", AT_U8, 0, NULL, eight);
    refuse(pictures, "one.npy[0]", AT_SHAPE,
           "'one.npy' holds a single number; an array of items has a dimension for them");
    at_error error = {0};
    int64_t index;
    assert_false(at_pictures_add(pictures, "a\0b", 3, &index, &error));
    assert_string_equal(error.text, "it has a zero byte, which no path has");
    /* An array that becomes shorter while it is open. */
    write_array("shrinks.npy", AT_U8, 3, (const int64_t[]){2, 1, 2}, eight);
    add(pictures, "shrinks.npy[1]");
    assert_int_equal(truncate("shrinks.npy", 131), 0);
    refuse(pictures, "shrinks.npy[1]", AT_FILE, "cannot read 'shrinks.npy': it became shorter while it was read");
    add(pictures, "shrinks.npy[0]");
    expect_pixels(pictures, 0, 3, 4, grey);
    at_pictures_free(pictures);
    static const at_picture_form wrong[] = {{0, 0, 2, false},     {-1, 0, 1, false}, {4097, 1024, 1, false},
                                            {0, 70000, 1, false}, {1, 0, 0, true},   {0, 0, -1, true}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        error = (at_error){0};
        assert_null(at_pictures_new(&wrong[i], &error));
        assert_int_equal(error.code, AT_USAGE);
    }
}

static void whole_arrays(void **state)
{
    (void)state;
    at_error error = {0};
    int64_t count = -1;
    put_file("x.txt", "hello, hello", 12);
    put_file("short", "\x93NUM", 4);
    assert_true(at_pictures_is_array("../grey.npy"));
    assert_false(at_pictures_is_array("x.txt"));
    assert_false(at_pictures_is_array("short"));
    assert_false(at_pictures_is_array("missing"));
    assert_false(at_pictures_is_array("."));
    assert_true(at_pictures_array_count("../colours.npy", &count, &error));
    assert_int_equal(count, 2);
    assert_false(at_pictures_array_count("x.txt", &count, &error));
    assert_string_equal(error.text, "'x.txt' is not a .npy file: it does not begin with \\x93NUMPY and a version");
}

/* ---- Changes ---------------------------------------------------------------------------------------------------- */

static at_picture_change change_of(uint64_t seed, double strength, double elastic, int64_t height, int64_t width)
{
    at_rng rng = {.seed = seed};
    const at_picture_change change = at_picture_change_draw(&rng, strength, elastic, height, width);
    assert_int_equal(rng.counter, elastic > 0 ? 7 : 5);
    return change;
}

/* The new place of an old pixel, the reverse of what the values are computed by. */
static void place_of(const at_picture_change *c, double height, double width, double *x, double *y)
{
    enum { ONE = 65536 };
    const double middle_x = (width - 1) / 2, middle_y = (height - 1) / 2;
    *y = middle_y + (*y - middle_y) * (1 + c->scale_y / (double)ONE) + c->shift_y / (double)ONE * height;
    *x = middle_x + (*x - middle_x + c->shear / (double)ONE * (*y - middle_y)) * (1 + c->scale_x / (double)ONE) +
         c->shift_x / (double)ONE * width;
}

/* Strength 1 reaches its limits, and cuts off two pixels of a border at most. */
static void changes_drawn(void **state)
{
    (void)state;
    enum { HEIGHT = 40, WIDTH = 300 };
    int64_t least[5] = {0}, most[5] = {0};
    for (uint64_t seed = 0; seed < 2000; seed++) {
        const at_picture_change none = change_of(seed, 0, 0, HEIGHT, WIDTH), one = change_of(seed, 1, 0, HEIGHT, WIDTH),
                                again = change_of(seed, 1, 0, HEIGHT, WIDTH);
        assert_memory_equal(&none, &(at_picture_change){0}, sizeof none);
        assert_memory_equal(&one, &again, sizeof one);
        const int64_t part[5] = {one.shift_x, one.shift_y, one.scale_x, one.scale_y, one.shear};
        for (int i = 0; i < 5; i++) {
            least[i] = part[i] < least[i] ? part[i] : least[i];
            most[i] = part[i] > most[i] ? part[i] : most[i];
        }
        for (int corner = 0; corner < 4; corner++) {
            double x = corner % 2 ? WIDTH - 1 : 0, y = corner / 2 ? HEIGHT - 1 : 0;
            place_of(&one, HEIGHT, WIDTH, &x, &y);
            assert_true(x > -2.1 && x < WIDTH + 1.1 && y > -2.1 && y < HEIGHT + 1.1);
        }
    }
    const double limit[5][2] = {{-0.095, 0.095}, {-0.095, 0.095}, {-0.2, 0}, {-0.2, 0}, {-0.2, 0.2}};
    for (int i = 0; i < 5; i++) {
        assert_in_range(most[i], (int64_t)(0.75 * limit[i][1] * 65536), (int64_t)(1.1 * limit[i][1] * 65536) + 1);
        assert_in_range(-least[i], (int64_t)(-0.75 * limit[i][0] * 65536), (int64_t)(-1.1 * limit[i][0] * 65536) + 1);
    }
}

static void changes_of_values(void **state)
{
    (void)state;
    for (int channels = 1; channels <= 3; channels += 2) {
        at_pictures *pictures = new_store(0, 0, channels, false);
        add(pictures, "../colours.npy[0]");
        int64_t count;
        at_real *plain = values_of(pictures, 0, NULL, &count);
        at_real *same = values_of(pictures, 0, &(at_picture_change){0}, &count);
        assert_memory_equal(plain, same, (size_t)count * sizeof *plain);
        at_real least = plain[0], most = plain[0];
        for (int64_t i = 0; i < count; i++) {
            least = fmin(least, plain[i]);
            most = fmax(most, plain[i]);
        }
        int changed = 0;
        for (uint64_t seed = 0; seed < 200; seed++) {
            const at_picture_change change = change_of(seed, 4, seed % 2, 12, 20);
            at_real *one = values_of(pictures, 0, &change, &count), *again = values_of(pictures, 0, &change, &count);
            assert_memory_equal(one, again, (size_t)count * sizeof *one);
            for (int64_t i = 0; i < count; i++)
                assert_true(one[i] >= least && one[i] <= most);
            changed += memcmp(one, plain, (size_t)count * sizeof *one) != 0;
            free(one);
            free(again);
        }
        assert_in_range(changed, 195, 200);
        free(plain);
        free(same);
        at_pictures_free(pictures);
    }
}

static void expect_changed(const at_picture_change change, const double expected[12])
{
    at_pictures *pictures = new_store(0, 0, 1, false);
    add(pictures, "../grey.npy[0]"); /* p[y,x] = 40 y + 10 x + 3, 3 x 4 */
    int64_t count;
    at_real *values = values_of(pictures, 0, &change, &count);
    for (int i = 0; i < 12; i++)
        assert_true(fabs((double)values[i] * 255 - expected[i]) < 0.2); /* positions are cut to 1/256 of a pixel */
    free(values);
    at_pictures_free(pictures);
}

static void changes_by_hand(void **state)
{
    (void)state;
    enum { ONE = 65536 };
    /* A pixel to the right; half a pixel to the left; a pixel down. */
    expect_changed((at_picture_change){.shift_x = ONE / 4},
                   (const double[]){3, 3, 13, 23, 43, 43, 53, 63, 83, 83, 93, 103});
    expect_changed((at_picture_change){.shift_x = -ONE / 8},
                   (const double[]){8, 18, 28, 33, 48, 58, 68, 73, 88, 98, 108, 113});
    expect_changed((at_picture_change){.shift_y = ONE / 3 + 1},
                   (const double[]){3, 13, 23, 33, 3, 13, 23, 33, 43, 53, 63, 73});
    /* Twice as large about the middle: x' = 1.5 + (x - 1.5) / 2, y' = 1 + (y - 1) / 2. */
    expect_changed((at_picture_change){.scale_x = ONE, .scale_y = ONE},
                   (const double[]){30.5, 35.5, 40.5, 45.5, 50.5, 55.5, 60.5, 65.5, 70.5, 75.5, 80.5, 85.5});
    /* The upper row to the left, the lower one to the right: x' = x - (y - 1). */
    expect_changed((at_picture_change){.shear = ONE},
                   (const double[]){13, 23, 33, 33, 43, 53, 63, 73, 83, 83, 93, 103});
}

/* ---- Elastic changes ---------------------------------------------------------------------------------------------- */

enum { RAMP_HEIGHT = 36, RAMP_WIDTH = 40, STEP = 6 };

/* Two pictures of this size whose pixels are STEP x and STEP y, so that a value tells where it was taken from. */
static at_pictures *ramps(void)
{
    static uint8_t bytes[2][RAMP_HEIGHT][RAMP_WIDTH];
    for (int y = 0; y < RAMP_HEIGHT; y++)
        for (int x = 0; x < RAMP_WIDTH; x++) {
            bytes[0][y][x] = (uint8_t)(STEP * x);
            bytes[1][y][x] = (uint8_t)(STEP * y);
        }
    write_array("ramps.npy", AT_U8, 3, (const int64_t[]){2, RAMP_HEIGHT, RAMP_WIDTH}, bytes);
    at_pictures *pictures = new_store(0, 0, 1, false);
    add(pictures, "ramps.npy[0]");
    add(pictures, "ramps.npy[1]");
    return pictures;
}

/* The cubic B-spline, by its definition: the convolution of four boxes, as a sum of cut-off cubes. */
static double bump(double t)
{
    static const double share[5] = {1, -4, 6, -4, 1};
    double sum = 0;
    for (int k = 0; k < 5; k++)
        sum += share[k] * pow(fmax(0, t + 2 - k), 3) / 6;
    return t > -2 && t < 2 ? sum : 0;
}

/* How far the pixel at (x, y) moves to the right (axis 0) or down (1). */
static double moved(const at_picture_change *change, double x, double y, int axis)
{
    enum { SPACING = 12 };
    double sum = 0;
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            uint32_t word[4];
            at_philox(change->bend_seed, (uint64_t)i, (uint64_t)j, word);
            sum += bump(y / SPACING - (i - 1)) * bump(x / SPACING - (j - 1)) * (int32_t)word[axis] / 2147483648.0;
        }
    return sum * change->bend / 65536;
}

static void elastic_changes(void **state)
{
    (void)state;
    at_pictures *pictures = ramps();
    const double last[2] = {RAMP_WIDTH - 1, RAMP_HEIGHT - 1};
    double farthest = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        const at_picture_change change = change_of(seed, 0, 1, RAMP_HEIGHT, RAMP_WIDTH);
        const at_picture_change half = change_of(seed, 0, 0.5, RAMP_HEIGHT, RAMP_WIDTH);
        assert_int_equal(change.bend, lrint(0.48 * 12 * 65536));
        assert_in_range(2 * half.bend - change.bend + 1, 0, 2);
        assert_true(change.bend_seed == half.bend_seed && (seed == 0 || change.bend_seed != 0));
        int64_t count;
        at_real *values[2] = {values_of(pictures, 0, &change, &count), values_of(pictures, 1, &change, &count)};
        for (int y = 0; y < RAMP_HEIGHT; y++)
            for (int x = 0; x < RAMP_WIDTH; x++)
                for (int axis = 0; axis < 2; axis++) {
                    const double far = moved(&change, x, y, axis), to = (axis ? y : x) + far;
                    const double old = (double)values[axis][y * RAMP_WIDTH + x] * 255 / STEP;
                    farthest = fmax(farthest, fabs(far));
                    assert_true(fabs(old - fmin(fmax(to, 0), last[axis])) < 0.01); /* positions are cut to 1/256 */
                    if (x > 0 && axis == 0)                                        /* it does not fold */
                        assert_true(to > x - 1 + moved(&change, x - 1, y, 0));
                }
        free(values[0]);
        free(values[1]);
    }
    assert_true(farthest > 3 && farthest < 0.48 * 12);
    at_pictures_free(pictures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items),           cmocka_unit_test(joined),          cmocka_unit_test(forms),
#ifdef AT_HAVE_PNG
        cmocka_unit_test(files),           cmocka_unit_test(large_file),
#endif
        cmocka_unit_test(many_arrays),     cmocka_unit_test(feature_rows),    cmocka_unit_test(refusals),
        cmocka_unit_test(whole_arrays),    cmocka_unit_test(changes_drawn),   cmocka_unit_test(changes_of_values),
        cmocka_unit_test(changes_by_hand), cmocka_unit_test(elastic_changes),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
