/* picture_seeds FOLDER: writes small pictures of every kind as seeds of fuzz_png, fuzz_jpeg and fuzz_pictures (make_seeds.sh). */
#include <stdint.h>

#include "image_files.h"

static uint8_t pixels[16 * 16 * 8];

static void write_seed(const char *folder, const char *name, at_buffer *file)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "wb");
    if (!out || fwrite(file->bytes, 1, file->size, out) != file->size || fclose(out) != 0)
        exit(1);
    at_buffer_free(file);
}

int main(int count, char **arguments)
{
    if (count != 2)
        return 2;
    const char *folder = arguments[1];
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * i / 64);
    static const struct {
        const char *name;
        png_case c;
    } pngs[] = {
        {"grey1.png", {5, 7, 1, PNG_COLOR_TYPE_GRAY, 1, 0, -1, NULL}},
        {"grey16.png", {3, 4, 16, PNG_COLOR_TYPE_GRAY, 0, 0, 1, NULL}},
        {"alpha.png", {3, 4, 8, PNG_COLOR_TYPE_GA, 0, 0, -1, "a text"}},
        {"palette.png", {4, 4, 8, PNG_COLOR_TYPE_PALETTE, 1, 256, 9, NULL}},
        {"palette2.png", {4, 4, 2, PNG_COLOR_TYPE_PALETTE, 0, 4, -1, NULL}},
        {"rgb.png", {5, 5, 8, PNG_COLOR_TYPE_RGB, 0, 0, 3, NULL}},
        {"rgba16.png", {5, 5, 16, PNG_COLOR_TYPE_RGBA, 1, 0, -1, NULL}},
    };
    for (size_t i = 0; i < sizeof pngs / sizeof *pngs; i++) {
        at_buffer file = png_file(&pngs[i].c, pixels, 16 * 8);
        write_seed(folder, pngs[i].name, &file);
    }
    static const struct {
        const char *name;
        jpeg_case c;
    } jpegs[] = {
        {"grey.jpeg", {9, 9, 1, JCS_GRAYSCALE, JCS_GRAYSCALE, .restart = 1}},
        {"colour.jpeg", {16, 16, 3, JCS_RGB, JCS_YCbCr, .progressive = false}},
        {"progressive.jpeg", {12, 9, 3, JCS_RGB, JCS_YCbCr, .progressive = true}},
        {"arithmetic.jpeg", {12, 9, 3, JCS_RGB, JCS_YCbCr, .arithmetic = true}},
        {"cmyk.jpeg", {9, 9, 4, JCS_CMYK, JCS_YCCK, .adobe = true, .progressive = true}},
    };
    for (size_t i = 0; i < sizeof jpegs / sizeof *jpegs; i++) {
        at_buffer file = jpeg_file(&jpegs[i].c, pixels);
        write_seed(folder, jpegs[i].name, &file);
    }
    at_buffer line = {0}, file = png_file(&pngs[1].c, pixels, 16 * 8);
    at_buffer_add(&line, "\x32\x01x.png\n", 8);
    at_buffer_add(&line, file.bytes, file.size);
    at_buffer_free(&file);
    write_seed(folder, "file.pictures", &line);
    return 0;
}
