/* Pictures: every kind of PNG and JPEG is read to the pixel, every broken one is refused by name, and sizes change exactly. */
#include "image_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/utf8.h"
#include "image/image.h"

static at_image parse(const void *bytes, size_t size, at_error *error)
{
    unsigned char *copy = malloc(size > 0 ? size : 1); /* of exactly that size, for the sanitizers */
    if (size > 0)
        memcpy(copy, bytes, size);
    at_image image;
    const bool done = at_image_parse(copy, size, "x.png", &image, error);
    free(copy);
    assert_int_equal(done, error->code == AT_OK);
    assert_int_equal(done, image.bytes != NULL);
    assert_true(at_is_utf8(error->text));
    return image;
}

static void expect_refused(const void *bytes, size_t size, int code, const char *text)
{
    at_error error = {0};
    at_image image = parse(bytes, size, &error);
    assert_null(image.bytes);
    assert_string_equal(error.text, text);
    assert_int_equal(error.code, code);
}

static uint32_t noise_state;
static uint32_t noise(void)
{
    noise_state = noise_state * 1664525u + 1013904223u;
    return noise_state >> 8;
}

/* ---- PNG -------------------------------------------------------------------------------------------------------- */

#ifdef AT_HAVE_PNG
enum { MOST_SIDE = 40 };

static int samples_of(int colour)
{
    return colour == PNG_COLOR_TYPE_RGB ? 3 : colour == PNG_COLOR_TYPE_RGBA ? 4 : colour == PNG_COLOR_TYPE_GA ? 2 : 1;
}

static void set_sample(uint8_t *row, int depth, int index, unsigned value)
{
    if (depth == 16) {
        row[2 * index] = (uint8_t)(value >> 8);
        row[2 * index + 1] = (uint8_t)value;
    } else {
        const int bit = index * depth;
        row[bit / 8] |= (uint8_t)(value << (8 - depth - bit % 8));
    }
}

/* 0..255, rounded */
static unsigned eight(unsigned value, int depth)
{
    const unsigned most = (1u << depth) - 1;
    return (2 * 255 * value + most) / (2 * most);
}

static unsigned over_white(unsigned value, unsigned alpha)
{
    return (2 * (value * alpha + 255 * (255 - alpha)) + 255) / 510;
}

/* The pixel that libpng was given as `sample`, as we want it. */
static void expected_pixel(const png_case *c, const unsigned *sample, uint8_t *out)
{
    unsigned rgb[3], alpha = 255;
    const int samples = samples_of(c->colour), colours = samples <= 2 ? 1 : 3;
    for (int i = 0; i < colours; i++)
        rgb[i] = eight(sample[i], c->depth);
    if (samples == 2 || samples == 4)
        alpha = eight(sample[samples - 1], c->depth);
    if (c->colour == PNG_COLOR_TYPE_PALETTE) {
        const unsigned i = sample[0];
        rgb[0] = i;
        rgb[1] = 2 * i & 255;
        rgb[2] = 255 - i;
        alpha = (int)i < c->transparent ? 16 * i & 255 : 255;
    } else if (c->transparent >= 0) {
        bool all = true;
        for (int i = 0; i < colours; i++)
            all = all && (int)sample[i] == c->transparent;
        alpha = all ? 0 : 255;
    }
    for (int i = 0; i < (c->colour == PNG_COLOR_TYPE_PALETTE ? 3 : colours); i++)
        out[i] = (uint8_t)over_white(rgb[i], alpha);
}

/* Noise as a file of that kind, and the pixels that come out. */
static at_buffer noise_png(const png_case *c, uint8_t *expected)
{
    static uint8_t rows[MOST_SIDE][MOST_SIDE * 8];
    const int samples = samples_of(c->colour), channels = c->colour == PNG_COLOR_TYPE_PALETTE || samples > 2 ? 3 : 1;
    memset(rows, 0, sizeof rows);
    noise_state = (uint32_t)(c->colour * 1000 + c->depth);
    for (int y = 0; y < c->height; y++)
        for (int x = 0; x < c->width; x++) {
            unsigned sample[4];
            for (int i = 0; i < samples; i++) {
                sample[i] = noise() % (1u << c->depth);
                if (c->colour == PNG_COLOR_TYPE_PALETTE)
                    sample[i] %= (unsigned)c->palette;
                if (c->transparent >= 0 && c->colour == PNG_COLOR_TYPE_RGB && x % 3 == 0)
                    sample[i] = (unsigned)c->transparent;
            }
            if (c->transparent >= 0 && c->colour == PNG_COLOR_TYPE_GRAY && x % 3 == 0)
                sample[0] = (unsigned)c->transparent;
            for (int i = 0; i < samples; i++)
                set_sample(rows[y], c->depth, x * samples + i, sample[i]);
            expected_pixel(c, sample, expected + (y * c->width + x) * channels);
        }
    return png_file(c, rows[0], sizeof rows[0]);
}

static void expect_png(const png_case *c)
{
    static uint8_t expected[MOST_SIDE * MOST_SIDE * 3];
    at_buffer file = noise_png(c, expected);
    at_error error = {0};
    at_image image = parse(file.bytes, file.size, &error);
    assert_string_equal(error.text, "");
    assert_int_equal(image.height, c->height);
    assert_int_equal(image.width, c->width);
    assert_int_equal(image.channels, c->colour == PNG_COLOR_TYPE_PALETTE || samples_of(c->colour) > 2 ? 3 : 1);
    assert_memory_equal(image.bytes, expected, (size_t)(image.height * image.width * image.channels));
    at_image_free(&image);
    at_buffer_free(&file);
}

static void every_png(void **state)
{
    (void)state;
    static const struct {
        int colour, depth;
    } kinds[] = {{PNG_COLOR_TYPE_GRAY, 1},    {PNG_COLOR_TYPE_GRAY, 2},    {PNG_COLOR_TYPE_GRAY, 4},
                 {PNG_COLOR_TYPE_GRAY, 8},    {PNG_COLOR_TYPE_GRAY, 16},   {PNG_COLOR_TYPE_RGB, 8},
                 {PNG_COLOR_TYPE_RGB, 16},    {PNG_COLOR_TYPE_PALETTE, 1}, {PNG_COLOR_TYPE_PALETTE, 2},
                 {PNG_COLOR_TYPE_PALETTE, 4}, {PNG_COLOR_TYPE_PALETTE, 8}, {PNG_COLOR_TYPE_GA, 8},
                 {PNG_COLOR_TYPE_GA, 16},     {PNG_COLOR_TYPE_RGBA, 8},    {PNG_COLOR_TYPE_RGBA, 16}};
    static const int sizes[][2] = {{1, 1}, {1, 9}, {13, 1}, {9, 17}, {37, 33}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int interlace = 0; interlace < 2; interlace++)
                for (int keyed = 0; keyed < 2; keyed++) {
                    png_case c = {sizes[s][0], sizes[s][1], kinds[k].depth, kinds[k].colour, interlace, 0, -1, NULL};
                    if (c.colour == PNG_COLOR_TYPE_PALETTE)
                        c.palette = c.depth == 8 ? 200 : 1 << c.depth;
                    if (keyed && (c.colour & PNG_COLOR_MASK_ALPHA))
                        continue;
                    if (keyed)
                        c.transparent = c.colour == PNG_COLOR_TYPE_PALETTE ? (c.palette + 1) / 2 : 1;
                    expect_png(&c);
                }
}

/* Comments, even compressed ones, are passed over. */
static void png_with_text(void **state)
{
    (void)state;
    char *text = malloc(4000001);
    memset(text, 'a', 4000000);
    text[4000000] = '\0';
    const png_case c = {9, 17, 8, PNG_COLOR_TYPE_RGB, 0, 0, -1, text};
    expect_png(&c);
    free(text);
}

static void broken_png(void **state)
{
    (void)state;
    uint8_t expected[MOST_SIDE * MOST_SIDE * 3];
    const png_case c = {9, 17, 8, PNG_COLOR_TYPE_RGB, 1, 0, -1, NULL};
    at_buffer file = noise_png(&c, expected);
    for (size_t size = 1; size < file.size; size++)
        expect_refused(file.bytes, size, AT_FORMAT, "'x.png' is a truncated PNG picture");
    /* A changed byte is found by the checksum of its chunk, or makes it another kind of file. */
    for (size_t i = 0; i < file.size; i++) {
        file.bytes[i] ^= 0x55;
        at_error error = {0};
        at_image image = parse(file.bytes, file.size, &error);
        assert_int_not_equal(error.code, AT_OK);
        at_image_free(&image);
        file.bytes[i] ^= 0x55;
    }
    file.bytes[60] ^= 1;
    expect_refused(file.bytes, file.size, AT_FORMAT, "'x.png' is a damaged PNG picture: IDAT: incorrect data check");
    at_buffer_free(&file);
}

/* The number in the header of a file; its checksum is wrong then, which is looked at later than the number. */
static void set_number(char *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (char)(value >> (24 - 8 * i));
}

static void large_png(void **state)
{
    (void)state;
    uint8_t expected[MOST_SIDE * MOST_SIDE * 3];
    const png_case c = {9, 17, 8, PNG_COLOR_TYPE_GRAY, 0, 0, -1, NULL};
    at_buffer file = noise_png(&c, expected);
    static const struct {
        uint32_t width, height;
        int code;
        const char *text;
    } sizes[] = {
        {0, 9, AT_FORMAT, "'x.png' is a damaged PNG picture: it has no pixels"},
        {17, 0, AT_FORMAT, "'x.png' is a damaged PNG picture: it has no pixels"},
        {8193, 8192, AT_UNSUPPORTED,
         "'x.png' is a PNG picture of 8192 x 8193 pixels; attend reads 67108864 at most, and 65500 along a side; make "
         "it "
         "smaller"},
        {65501, 1, AT_UNSUPPORTED,
         "'x.png' is a PNG picture of 1 x 65501 pixels; attend reads 67108864 at most, and 65500 along a side; make it "
         "smaller"},
        {0xffffffff, 0xffffffff, AT_UNSUPPORTED,
         "'x.png' is a PNG picture of 4294967295 x 4294967295 pixels; attend reads 67108864 at most, and 65500 along a "
         "side; make it smaller"},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        set_number(file.bytes + 16, sizes[i].width);
        set_number(file.bytes + 20, sizes[i].height);
        expect_refused(file.bytes, file.size, sizes[i].code, sizes[i].text);
    }
    char text[200];
    set_number(file.bytes + 16, 8192);
    set_number(file.bytes + 20, 8192);
    snprintf(text, sizeof text, "'x.png' claims 8192 x 8192 pixels, more than a PNG picture of %zu bytes can have",
             file.size);
    expect_refused(file.bytes, file.size, AT_FORMAT, text);
    at_buffer_free(&file);
}

/* A colour beyond the palette: 2 bits, three colours, and a pixel of the fourth. */
static void palette_too_small(void **state)
{
    (void)state;
    for (int interlace = 0; interlace < 2; interlace++)
        for (int transparent = -1; transparent < 2; transparent += 2) {
            const png_case c = {1, 4, 2, PNG_COLOR_TYPE_PALETTE, interlace, 3, transparent, NULL};
            uint8_t row[8] = {0x1B}; /* 0, 1, 2, 3 */
            at_buffer file = png_file(&c, row, sizeof row);
            expect_refused(file.bytes, file.size, AT_FORMAT,
                           "'x.png' is a damaged PNG picture: a pixel has a colour that the palette does not have");
            at_buffer_free(&file);
        }
}
#endif

/* ---- JPEG ------------------------------------------------------------------------------------------------------- */

#ifdef AT_HAVE_JPEG
enum { JPEG_HEIGHT = 40, JPEG_WIDTH = 61 };

/* Smooth pixels, which JPEG keeps nearly as they are. */
static void smooth(uint8_t *pixels, int samples)
{
    for (int y = 0; y < JPEG_HEIGHT; y++)
        for (int x = 0; x < JPEG_WIDTH; x++)
            for (int i = 0; i < samples; i++)
                pixels[(y * JPEG_WIDTH + x) * samples + i] = (uint8_t)(40 + (i + 1) * x + (3 - i) * y / 2 - 8 * i);
}

static void expect_jpeg(jpeg_case c, int most_error)
{
    static uint8_t pixels[JPEG_HEIGHT * JPEG_WIDTH * 4], expected[JPEG_HEIGHT * JPEG_WIDTH * 3];
    c.height = JPEG_HEIGHT;
    c.width = JPEG_WIDTH;
    smooth(pixels, c.samples);
    const int channels = c.samples == 1 ? 1 : 3;
    for (int i = 0; i < JPEG_HEIGHT * JPEG_WIDTH; i++)
        for (int j = 0; j < channels; j++) {
            const uint8_t *p = pixels + i * c.samples;
            const int ink = c.adobe ? p[j] : 255 - p[j], black = c.adobe ? p[3] : 255 - p[3];
            expected[i * channels + j] = c.samples == 4 ? (uint8_t)(ink * black / 255) : p[j];
        }
    at_buffer file = jpeg_file(&c, pixels);
    at_error error = {0};
    at_image image = parse(file.bytes, file.size, &error);
    assert_string_equal(error.text, "");
    assert_int_equal(image.height, JPEG_HEIGHT);
    assert_int_equal(image.width, JPEG_WIDTH);
    assert_int_equal(image.channels, channels);
    for (int i = 0; i < JPEG_HEIGHT * JPEG_WIDTH * channels; i++)
        assert_in_range(image.bytes[i], (unsigned)(expected[i] > most_error ? expected[i] - most_error : 0),
                        expected[i] + most_error);
    at_image_free(&image);
    at_buffer_free(&file);
}

static void every_jpeg(void **state)
{
    (void)state;
    for (int kind = 0; kind < 8; kind++) {
        const jpeg_case c = {.progressive = kind & 1, .arithmetic = kind & 2, .restart = kind & 4 ? 3 : 0};
        jpeg_case with = c;
        with.samples = 1;
        with.given = with.stored = JCS_GRAYSCALE;
        expect_jpeg(with, 2);
        with.samples = 3;
        with.given = JCS_RGB;
        with.stored = JCS_YCbCr;
        expect_jpeg(with, 6); /* colours at half the resolution */
        with.plain_sampling = true;
        expect_jpeg(with, 3);
        with.stored = JCS_RGB;
        with.adobe = true; /* which says that it is RGB */
        expect_jpeg(with, 2);
        with.samples = 4;
        with.given = with.stored = JCS_CMYK;
        expect_jpeg(with, 3);
        with.adobe = false;
        expect_jpeg(with, 3);
        with.adobe = true;
        with.stored = JCS_YCCK;
        expect_jpeg(with, 4);
    }
}

static at_buffer small_jpeg(bool progressive)
{
    static uint8_t pixels[JPEG_HEIGHT * JPEG_WIDTH * 3];
    smooth(pixels, 3);
    const jpeg_case c = {.height = JPEG_HEIGHT,
                         .width = JPEG_WIDTH,
                         .samples = 3,
                         .given = JCS_RGB,
                         .stored = JCS_YCbCr,
                         .progressive = progressive};
    return jpeg_file(&c, pixels);
}

static void broken_jpeg(void **state)
{
    (void)state;
    for (int progressive = 0; progressive < 2; progressive++) {
        at_buffer file = small_jpeg(progressive);
        for (size_t size = 1; size < file.size; size++)
            expect_refused(file.bytes, size, AT_FORMAT, "'x.png' is a truncated JPEG picture");
        for (size_t i = 0; i < file.size; i++) { /* JPEG has no checksums: another picture, or a message */
            file.bytes[i] ^= 0x55;
            at_error error = {0};
            at_image image = parse(file.bytes, file.size, &error);
            at_image_free(&image);
            file.bytes[i] ^= 0x55;
        }
        at_buffer_free(&file);
    }
}

/* Warnings of libjpeg: pixels that it had to make up are refused, bytes between the segments are not. */
static void warned_jpeg(void **state)
{
    (void)state;
    at_buffer file = small_jpeg(false), longer = {0};
    at_buffer_add(&longer, file.bytes, file.size - 2);
    at_buffer_add(&longer, "\0\0\0\xFF\xD9", 5);
    at_error error = {0};
    at_image image = parse(longer.bytes, longer.size, &error);
    assert_string_equal(error.text, "");
    at_image_free(&image);
    at_buffer_free(&longer);
    memcpy(file.bytes + file.size - 100, "\xFF\xD9", 2);
    expect_refused(file.bytes, file.size, AT_FORMAT,
                   "'x.png' is a damaged JPEG picture: Corrupt JPEG data: premature end of data segment");
    at_buffer_free(&file);
}

/* Where the frame header is: FF C0 or C2, two bytes of length, precision, height, width, components. */
static size_t frame_at(const at_buffer *file)
{
    for (size_t i = 0; i + 10 < file->size; i++)
        if ((uint8_t)file->bytes[i] == 0xFF &&
            ((uint8_t)file->bytes[i + 1] == 0xC0 || (uint8_t)file->bytes[i + 1] == 0xC2))
            return i;
    fail_msg("no frame");
    return 0;
}

static void odd_jpeg(void **state)
{
    (void)state;
    at_buffer file = small_jpeg(false);
    const size_t frame = frame_at(&file);
    char *f = file.bytes + frame, kept[11];
    memcpy(kept, f, sizeof kept);
    f[5] = f[6] = 0;
    expect_refused(file.bytes, file.size, AT_FORMAT,
                   "'x.png' is a damaged JPEG picture: Empty JPEG image (DNL not supported)");
    f[5] = f[6] = f[7] = f[8] = 0x7f;
    expect_refused(
        file.bytes, file.size, AT_UNSUPPORTED,
        "'x.png' is a JPEG picture of 32639 x 32639 pixels; attend reads 67108864 at most, and 65500 along a "
        "side; make it smaller");
    f[5] = f[7] = 0x1f;
    char text[200];
    snprintf(text, sizeof text, "'x.png' claims 8063 x 8063 pixels, more than a JPEG picture of %zu bytes can have",
             file.size);
    expect_refused(file.bytes, file.size, AT_FORMAT, text);
    memcpy(f, kept, sizeof kept);
    f[4] = 12;
    expect_refused(
        file.bytes, file.size, AT_UNSUPPORTED,
        "'x.png' is a JPEG picture of a kind that libjpeg does not read: Unsupported JPEG data precision 12");
    memcpy(f, kept, sizeof kept);
    f[1] = (char)0xC3;
    expect_refused(file.bytes, file.size, AT_UNSUPPORTED,
                   "'x.png' is a JPEG picture of a kind that libjpeg does not read: Unsupported JPEG process: SOF type "
                   "0xc3");
    at_buffer_free(&file);
    static uint8_t pixels[8 * 8 * 2];
    const jpeg_case two = {.height = 8, .width = 8, .samples = 2, .given = JCS_UNKNOWN, .stored = JCS_UNKNOWN};
    file = jpeg_file(&two, pixels);
    expect_refused(file.bytes, file.size, AT_UNSUPPORTED,
                   "'x.png' is a JPEG picture of 2 colours; attend reads grey, RGB and CMYK");
    at_buffer_free(&file);
}

/* A file of a few bytes with a scan of all pixels for every coefficient. */
static void many_scans(void **state)
{
    (void)state;
    static uint8_t pixels[8 * 8 * 3];
    jpeg_case c = {.height = 8, .width = 8, .samples = 1, .many_scans = true};
    c.given = c.stored = JCS_GRAYSCALE;
    at_buffer file = jpeg_file(&c, pixels); /* 64 scans */
    at_error error = {0};
    at_image image = parse(file.bytes, file.size, &error);
    assert_string_equal(error.text, "");
    at_image_free(&image);
    at_buffer_free(&file);
    c.samples = 3;
    c.given = c.stored = JCS_RGB;
    file = jpeg_file(&c, pixels);
    expect_refused(file.bytes, file.size, AT_UNSUPPORTED, "'x.png' is a JPEG picture of more than 100 scans");
    at_buffer_free(&file);
}
#endif

/* ---- Other files ------------------------------------------------------------------------------------------------ */

static void other_files(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *kind;
    } files[] = {
        {"", 0, "an empty file"},
        {"hello\n", 6, "a text file"},
        {"GIF89a\1\0\1\0", 10, "a GIF picture"},
        {"RIFF\x10\0\0\0WEBPVP8 ", 16, "a WebP picture"},
        {"II*\0\x08\0\0\0", 8, "a TIFF picture"},
        {"MM\0*\0\0\0\x08", 8, "a TIFF picture"},
        {"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", 18, "a BMP picture"},
        {"\0\0\0\x0CjP  \r\n\x87\n", 12, "a JPEG 2000 picture"},
        {"\0\0\0\x18"
         "ftypheic\0\0\0\0",
         16, "a HEIF picture or a film"},
        {"\0\0\0\x18"
         "ftypavif\0\0\0\0",
         16, "an AVIF picture"},
        {"%PDF-1.4", 8, "a PDF file"},
        {"\x93NUMPY\1\0", 8, "a .npy array"},
        {"\1\2\3\4", 4, "a file of a kind that attend does not know"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char text[200];
        snprintf(text, sizeof text, "'x.png' is %s, not a PNG or JPEG picture", files[i].kind);
        expect_refused(files[i].bytes, files[i].size, AT_FORMAT, text);
    }
}

static void refused_path(const char *path, const char *text)
{
    at_error error = {0};
    at_image image;
    assert_false(at_image_read(path, &image, &error));
    assert_null(image.bytes);
    assert_string_equal(error.text, text);
}

static void paths(void **state)
{
    (void)state;
    char folder[] = "/tmp/test_image_XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    refused_path("none.png", "cannot read 'none.png': No such file or directory");
    refused_path(".", "cannot read '.': it is a directory, not a file");
    assert_int_equal(mkfifo("pipe.png", 0600), 0);
    refused_path("pipe.png", "cannot read 'pipe.png': it is a pipe, not a file");
    refused_path("/dev/zero", "cannot read '/dev/zero': it is a device, not a file");
    put_file("empty.png", "", 0);
    refused_path("empty.png", "'empty.png' is an empty file, not a PNG or JPEG picture");
    put_file("large.png", "", 0);
    assert_int_equal(truncate("large.png", (off_t)1 << 40), 0);
    refused_path("large.png", "'large.png' has 1099511627776 bytes; a picture may have 536870912 at most");
#ifdef AT_HAVE_PNG
    const png_case c = {1, 2, 8, PNG_COLOR_TYPE_GRAY, 0, 0, -1, NULL};
    at_buffer file = png_file(&c, (const uint8_t *)"\x11\x22", 2);
    put_file("wrong name.jpeg", file.bytes, file.size); /* the name says nothing */
    at_error error = {0};
    at_image image;
    assert_true(at_image_read("wrong name.jpeg", &image, &error));
    assert_memory_equal(image.bytes, "\x11\x22", 2);
    at_image_free(&image);
    at_buffer_free(&file);
#endif
    unlink("wrong name.jpeg");
    unlink("large.png");
    unlink("empty.png");
    unlink("pipe.png");
    assert_int_equal(chdir("/"), 0);
    rmdir(folder);
}

/* ---- Sizes and channels ----------------------------------------------------------------------------------------- */

static at_image image_of(int height, int width, int channels, const uint8_t *bytes)
{
    const size_t size = (size_t)(height * width * channels);
    at_image image = {height, width, channels, malloc(size)};
    memcpy(image.bytes, bytes, size);
    return image;
}

static void expect_resized(int height, int width, int channels, const uint8_t *bytes, int to_height, int to_width,
                           const uint8_t *expected)
{
    at_error error = {0};
    at_image image = image_of(height, width, channels, bytes);
    assert_true(at_image_resize(&image, to_height, to_width, &error));
    assert_int_equal(image.height, to_height);
    assert_int_equal(image.width, to_width);
    assert_int_equal(image.channels, channels);
    assert_memory_equal(image.bytes, expected, (size_t)(to_height * to_width * channels));
    at_image_free(&image);
}

static void sizes_by_hand(void **state)
{
    (void)state;
    const uint8_t four[] = {10, 20, 30, 41};
    expect_resized(1, 4, 1, four, 1, 2, (const uint8_t[]){15, 36});         /* 35.5 up */
    expect_resized(2, 2, 1, four, 1, 1, (const uint8_t[]){25});             /* 25.25 */
    expect_resized(1, 4, 1, four, 1, 3, (const uint8_t[]){13, 25, 38});     /* (30 + 20)/4, (40 + 60)/4, (30 + 123)/4 */
    expect_resized(4, 1, 1, four, 3, 1, (const uint8_t[]){13, 25, 38});     /* 12.5, 25, 38.25 */
    expect_resized(1, 2, 1, four, 1, 4, (const uint8_t[]){10, 13, 18, 20}); /* 10, 12.5, 17.5, 20 */
    expect_resized(2, 1, 1, four, 4, 1, (const uint8_t[]){10, 13, 18, 20});
    expect_resized(1, 2, 1, four, 1, 3, (const uint8_t[]){10, 15, 20}); /* -1/6, 1/2, 7/6 */
    expect_resized(1, 1, 1, four, 2, 2, (const uint8_t[]){10, 10, 10, 10});
    expect_resized(1, 4, 1, four, 1, 4, four);
    /* Shorter down, longer across: the mean of 10, 30 and of 20, 41, then between them. */
    expect_resized(2, 2, 1, four, 1, 3, (const uint8_t[]){20, 25, 31}); /* 20, 25.25, 30.5 */
    const uint8_t colours[] = {0, 100, 255, 10, 200, 255};
    expect_resized(1, 2, 3, colours, 1, 1, (const uint8_t[]){5, 150, 255});
    expect_resized(2, 1, 3, colours, 1, 1, (const uint8_t[]){5, 150, 255});
}

/* A picture of one colour stays that colour at any size, the brightest too: the weights have the sum that they claim. */
static void sizes_of_one_colour(void **state)
{
    (void)state;
    uint8_t bytes[23 * 17];
    memset(bytes, 255, sizeof bytes);
    for (int height = 1; height < 50; height += 3)
        for (int width = 1; width < 50; width += 2) {
            at_error error = {0};
            at_image image = image_of(23, 17, 1, bytes);
            assert_true(at_image_resize(&image, height, width, &error));
            for (int i = 0; i < height * width; i++)
                assert_int_equal(image.bytes[i], 255);
            at_image_free(&image);
        }
}

static void channels(void **state)
{
    (void)state;
    at_error error = {0};
    const uint8_t colours[] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255, 10, 20, 30};
    at_image image = image_of(1, 5, 3, colours);
    assert_true(at_image_to_channels(&image, 1, &error));
    assert_int_equal(image.channels, 1);
    /* 76.245, 149.685, 29.07, 255, 18.15 */
    assert_memory_equal(image.bytes, ((const uint8_t[]){76, 150, 29, 255, 18}), 5);
    assert_true(at_image_to_channels(&image, 1, &error));
    assert_true(at_image_to_channels(&image, 3, &error));
    assert_int_equal(image.channels, 3);
    assert_memory_equal(image.bytes,
                        ((const uint8_t[]){76, 76, 76, 150, 150, 150, 29, 29, 29, 255, 255, 255, 18, 18, 18}), 15);
    at_image_free(&image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef AT_HAVE_PNG
        cmocka_unit_test(every_png),         cmocka_unit_test(png_with_text),
        cmocka_unit_test(broken_png),        cmocka_unit_test(large_png),
        cmocka_unit_test(palette_too_small),
#endif
#ifdef AT_HAVE_JPEG
        cmocka_unit_test(every_jpeg),        cmocka_unit_test(broken_jpeg),
        cmocka_unit_test(warned_jpeg),       cmocka_unit_test(odd_jpeg),
        cmocka_unit_test(many_scans),
#endif
        cmocka_unit_test(other_files),       cmocka_unit_test(paths),
        cmocka_unit_test(sizes_by_hand),     cmocka_unit_test(sizes_of_one_colour),
        cmocka_unit_test(channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
