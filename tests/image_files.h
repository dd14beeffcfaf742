/* PNG and JPEG files in memory, written by libpng and libjpeg themselves, for the tests. */
#ifndef IMAGE_FILES_H
#define IMAGE_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"

static __attribute__((unused)) void put_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

#ifdef AT_HAVE_PNG
#include <png.h>

static void png_add(png_structp png, png_bytep bytes, size_t size)
{
    at_buffer_add(png_get_io_ptr(png), bytes, size);
}

static void png_flush_nothing(png_structp png)
{
    (void)png;
}

/* What a PNG is made of: samples as libpng takes them, rows packed to bytes, 16 bits with the high byte first. */
typedef struct png_case {
    int height, width, depth, colour, interlace;
    int palette;      /* colours: i is (i, 2 i, 255 - i) mod 256 */
    int transparent;  /* -1: none; the grey sample, that for R, G and B, or how many colours have alpha 16 i */
    const char *text; /* NULL, or a comment */
} png_case;

static __attribute__((unused)) at_buffer png_file(const png_case *c, const uint8_t *rows, size_t row_bytes)
{
    at_buffer out = {0};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    if (setjmp(png_jmpbuf(png)))
        fail_msg("libpng does not write the picture");
    png_set_write_fn(png, &out, png_add, png_flush_nothing);
    png_set_IHDR(png, info, (png_uint_32)c->width, (png_uint_32)c->height, c->depth, c->colour, c->interlace,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_color colours[256];
    png_byte alphas[256];
    for (int i = 0; i < 256; i++) {
        colours[i] = (png_color){(png_byte)i, (png_byte)(2 * i), (png_byte)(255 - i)};
        alphas[i] = (png_byte)(16 * i);
    }
    if (c->colour == PNG_COLOR_TYPE_PALETTE)
        png_set_PLTE(png, info, colours, c->palette);
    const png_uint_16 key = (png_uint_16)c->transparent;
    png_color_16 one = {0, key, key, key, key};
    if (c->transparent >= 0 && c->colour == PNG_COLOR_TYPE_PALETTE)
        png_set_tRNS(png, info, alphas, c->transparent, NULL);
    else if (c->transparent >= 0)
        png_set_tRNS(png, info, NULL, 0, &one);
    png_text text = {.compression = PNG_TEXT_COMPRESSION_zTXt, .key = (char *)"Comment", .text = (char *)c->text};
    if (c->text)
        png_set_text(png, info, &text, 1);
    png_write_info(png, info);
    const int passes = png_set_interlace_handling(png);
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < c->height; y++)
            png_write_row(png, rows + (size_t)y * row_bytes);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    return out;
}
#endif

#ifdef AT_HAVE_JPEG
#include <jpeglib.h>

typedef struct jpeg_case {
    int height, width, samples;
    J_COLOR_SPACE given, stored; /* of the pixels, and in the file */
    bool progressive, arithmetic, adobe, plain_sampling;
    int restart;     /* blocks between restart markers; 0: none */
    bool many_scans; /* one for every coefficient of every component, 190 of three */
} jpeg_case;

static __attribute__((unused)) at_buffer jpeg_file(const jpeg_case *c, const uint8_t *pixels)
{
    struct jpeg_compress_struct jpeg = {0};
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    unsigned long size = 0;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &bytes, &size);
    jpeg.image_height = (JDIMENSION)c->height;
    jpeg.image_width = (JDIMENSION)c->width;
    jpeg.input_components = c->samples;
    jpeg.in_color_space = c->given;
    jpeg_set_defaults(&jpeg);
    jpeg_set_colorspace(&jpeg, c->stored);
    jpeg_set_quality(&jpeg, 100, TRUE);
    if (c->plain_sampling)
        for (int i = 0; i < jpeg.num_components; i++)
            jpeg.comp_info[i].h_samp_factor = jpeg.comp_info[i].v_samp_factor = 1;
    if (c->progressive)
        jpeg_simple_progression(&jpeg);
    jpeg_scan_info scans[1 + 63 * 4] = {{c->samples, {0, 1, 2, 3}, 0, 0, 0, 0}};
    for (int i = 0; i < 63 * c->samples; i++)
        scans[1 + i] = (jpeg_scan_info){1, {i / 63}, 1 + i % 63, 1 + i % 63, 0, 0};
    if (c->many_scans) {
        jpeg.scan_info = scans;
        jpeg.num_scans = 1 + 63 * c->samples;
    }
    jpeg.arith_code = c->arithmetic;
    if (!c->adobe)
        jpeg.write_Adobe_marker = FALSE;
    jpeg.restart_interval = (unsigned)c->restart;
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < jpeg.image_height) {
        JSAMPROW row = (JSAMPROW)pixels + (size_t)jpeg.next_scanline * (size_t)c->width * (size_t)c->samples;
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    at_buffer out = {0};
    at_buffer_add(&out, bytes, size);
    free(bytes);
    return out;
}
#endif

#endif
