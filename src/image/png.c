/* PNG by libpng. Its errors come back through longjmp: everything that has to be released is in `reader`. */
#include "image/image_internal.h"

#ifdef AT_HAVE_PNG
#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

typedef struct reader {
    const at_image_file *file;
    at_image *image;
    size_t used; /* bytes of the file that libpng has */
    png_structp png;
    png_infop info;
    png_bytep *rows;
    bool truncated, no_memory;
} reader;

static void on_error(png_structp png, png_const_charp message)
{
    reader *r = png_get_error_ptr(png);
    if (r->truncated)
        at_image_truncated(r->file);
    else if (r->no_memory)
        at_no_memory(r->file->error, "the picture '%s'", r->file->name);
    else
        at_image_damaged(r->file, message);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png, (void)message;
}

static png_voidp allocate(png_structp png, png_alloc_size_t size)
{
    void *memory = malloc(size);
    if (!memory)
        ((reader *)png_get_mem_ptr(png))->no_memory = true;
    return memory;
}

static void release(png_structp png, png_voidp memory)
{
    (void)png;
    free(memory);
}

static void read_bytes(png_structp png, png_bytep out, size_t size)
{
    reader *r = png_get_io_ptr(png);
    if (size > r->file->size - r->used) {
        r->truncated = true;
        png_error(png, "truncated");
    }
    memcpy(out, r->file->bytes + r->used, size);
    r->used += size;
}

static uint32_t number_at(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* The sizes in the header, which is always the first chunk, before libpng sees them. Deflate makes at most 1032 bytes of
 * one. */
static bool check_header(const at_image_file *file)
{
    enum { HEADER = 33, WIDTH = 16, HEIGHT = 20, DEPTH = 24, COLOUR = 25, DEFLATE = 1032 };
    static const unsigned char samples[8] = {[0] = 1, [2] = 3, [3] = 1, [4] = 2, [6] = 4}; /* by colour type */
    if (file->size < HEADER)
        return at_image_truncated(file);
    const unsigned char *bytes = file->bytes;
    const unsigned bits = bytes[DEPTH] * (bytes[COLOUR] < 8 ? samples[bytes[COLOUR]] : 0);
    if (memcmp(bytes + 12, "IHDR", 4) != 0 || bits == 0)
        return at_image_damaged(file, "it does not begin with a header that PNG allows");
    return at_image_size_check(file, number_at(bytes + HEIGHT), number_at(bytes + WIDTH),
                               (uint64_t)file->size * DEFLATE * 8 / bits);
}

/* c over white: (c a + 255 (255 - a)) / 255, rounded. */
static uint8_t over_white(unsigned colour, unsigned alpha)
{
    return (uint8_t)((colour * alpha + 255 * (255 - alpha) + 127) / 255);
}

/* In place: the samples before the alpha. */
static void lay_over_white(at_image *image, int samples)
{
    const size_t pixels = (size_t)image->height * (size_t)image->width;
    uint8_t *to = image->bytes;
    for (const uint8_t *from = to, *end = from + pixels * (size_t)samples; from < end; from += samples)
        for (int i = 0; i + 1 < samples; i++)
            *to++ = over_white(from[i], from[samples - 1]);
}

/* From the indices in the last third of the memory. libpng would paint those black that the palette does not have. */
static void look_up_colours(reader *r)
{
    png_colorp palette = NULL;
    png_bytep alphas = NULL;
    int colours = 0, with_alpha = 0;
    png_get_PLTE(r->png, r->info, &palette, &colours);
    png_get_tRNS(r->png, r->info, &alphas, &with_alpha, NULL);
    const size_t pixels = (size_t)r->image->height * (size_t)r->image->width;
    const uint8_t *from = r->image->bytes + 2 * pixels;
    uint8_t *to = r->image->bytes;
    for (size_t i = 0; i < pixels; i++) {
        const int index = from[i];
        if (index >= colours)
            png_error(r->png, "a pixel has a colour that the palette does not have");
        const unsigned alpha = index < with_alpha ? alphas[index] : 255;
        *to++ = over_white(palette[index].red, alpha);
        *to++ = over_white(palette[index].green, alpha);
        *to++ = over_white(palette[index].blue, alpha);
    }
}

/* As indices of a palette, or as grey, grey with alpha, RGB or RGBA of 8 bits. */
static void read_pixels(reader *r)
{
    at_image *image = r->image;
    const bool palette = png_get_color_type(r->png, r->info) == PNG_COLOR_TYPE_PALETTE;
    if (palette)
        png_set_packing(r->png); /* 1, 2 and 4 bits to bytes */
    else
        png_set_expand(r->png); /* 1, 2 and 4 bits to 8, a transparent colour to alpha */
    png_set_scale_16(r->png);   /* 16 bits to 8, rounded */
    png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    image->height = (int)png_get_image_height(r->png, r->info);
    image->width = (int)png_get_image_width(r->png, r->info);
    const size_t height = (size_t)image->height, width = (size_t)image->width;
    const int samples = png_get_channels(r->png, r->info);
    image->channels = samples <= 2 && !palette ? 1 : 3;
    r->rows = malloc(height * sizeof *r->rows);
    if (!r->rows || !at_image_allocate(r->file, image, palette ? 3 : (size_t)samples)) {
        r->no_memory = true;
        png_error(r->png, "out of memory");
    }
    for (size_t y = 0; y < height; y++)
        r->rows[y] = image->bytes + (palette ? 2 * height * width : 0) + y * width * (size_t)samples;
    png_read_image(r->png, r->rows);
    png_read_end(r->png, NULL);
    if (palette)
        look_up_colours(r);
    else if (samples != image->channels)
        lay_over_white(image, samples);
}

static bool decode(reader *r)
{
    if (setjmp(png_jmpbuf(r->png)))
        return false;
    png_set_read_fn(r->png, r, read_bytes);
    png_set_user_limits(r->png, AT_IMAGE_SIDE, AT_IMAGE_SIDE);
    png_set_chunk_malloc_max(r->png, 1 << 20);
    png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1); /* profiles, texts: all but pixels */
    png_read_info(r->png, r->info);
    read_pixels(r);
    return true;
}

bool at_png_read(const at_image_file *file, at_image *image)
{
    reader r = {.file = file, .image = image};
    if (!check_header(file))
        return false;
    r.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning, &r, allocate, release);
    r.info = r.png ? png_create_info_struct(r.png) : NULL;
    const bool done = r.info ? decode(&r) : at_no_memory(file->error, "the picture '%s'", file->name);
    png_destroy_read_struct(&r.png, &r.info, NULL);
    free(r.rows);
    return done;
}
#endif
