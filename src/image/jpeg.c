/* JPEG by libjpeg. Its errors come back through longjmp: everything that has to be released is in `reader`. */
#include "image/image_internal.h"

#ifdef AT_HAVE_JPEG
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include <jerror.h>

#include "base/error.h"

typedef struct reader {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    const at_image_file *file;
    at_image *image;
    jmp_buf back;
} reader;

static reader *reader_of(j_common_ptr jpeg)
{
    return jpeg->client_data;
}

static _Noreturn void leave(reader *r)
{
    longjmp(r->back, 1);
}

static _Noreturn void fail(j_common_ptr jpeg)
{
    reader *r = reader_of(jpeg);
    char why[JMSG_LENGTH_MAX];
    jpeg->err->format_message(jpeg, why);
    switch (jpeg->err->msg_code) {
    case JERR_OUT_OF_MEMORY:
        at_no_memory(r->file->error, "the picture '%s'", r->file->name);
        break;
    case JERR_BAD_PRECISION: /* 12 bits */
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
        at_fail(r->file->error, AT_UNSUPPORTED, "'%s' is a JPEG picture of a kind that libjpeg does not read: %s",
                r->file->name, why);
        break;
    default:
        at_image_damaged(r->file, why);
    }
    leave(r);
}

/* Warnings (level -1) of pixels that are not what was stored are errors. The others are about bytes between segments and
 * about colour profiles. */
static void hear(j_common_ptr jpeg, int level)
{
    const int code = jpeg->err->msg_code;
    if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_JFIF_MAJOR && code != JWRN_BOGUS_ICC)
        fail(jpeg);
}

static void print_nothing(j_common_ptr jpeg)
{
    (void)jpeg;
}

/* ---- The bytes -------------------------------------------------------------------------------------------------- */

static void begin_or_end(j_decompress_ptr jpeg)
{
    (void)jpeg;
}

static boolean at_end(j_decompress_ptr jpeg)
{
    reader *r = reader_of((j_common_ptr)jpeg);
    at_image_truncated(r->file);
    leave(r);
}

static void skip(j_decompress_ptr jpeg, long count)
{
    if (count <= 0)
        return;
    if ((size_t)count > jpeg->src->bytes_in_buffer)
        at_end(jpeg);
    jpeg->src->next_input_byte += count;
    jpeg->src->bytes_in_buffer -= (size_t)count;
}

/* ---- The pixels ------------------------------------------------------------------------------------------------- */

/* A file of a few bytes may have thousands of scans, each of them over all pixels. */
static void count_scans(j_common_ptr jpeg)
{
    enum { MOST = 100 };
    reader *r = reader_of(jpeg);
    if (r->jpeg.input_scan_number <= MOST)
        return;
    at_fail(r->file->error, AT_UNSUPPORTED, "'%s' is a JPEG picture of more than %d scans", r->file->name, MOST);
    leave(r);
}

/* CMYK to RGB in place, row by row: inks of Adobe's programs are inverted already. */
static void paint(at_image *image, bool inverted)
{
    const size_t pixels = (size_t)image->height * (size_t)image->width;
    const unsigned flip = inverted ? 0 : 255;
    const uint8_t *from = image->bytes;
    uint8_t *to = image->bytes;
    for (size_t i = 0; i < pixels; i++, from += 4) {
        const unsigned black = from[3] ^ flip;
        for (int ink = 0; ink < 3; ink++)
            *to++ = (uint8_t)(((from[ink] ^ flip) * black + 127) / 255);
    }
}

static bool choose_form(reader *r)
{
    switch (r->jpeg.jpeg_color_space) {
    case JCS_GRAYSCALE:
        r->jpeg.out_color_space = JCS_GRAYSCALE;
        r->image->channels = 1;
        return true;
    case JCS_RGB:
    case JCS_YCbCr:
        r->jpeg.out_color_space = JCS_RGB;
        r->image->channels = 3;
        return true;
    case JCS_CMYK:
    case JCS_YCCK:
        r->jpeg.out_color_space = JCS_CMYK;
        r->image->channels = 3;
        return true;
    default:
        return at_fail(r->file->error, AT_UNSUPPORTED,
                       "'%s' is a JPEG picture of %d colours; attend reads grey, RGB and CMYK", r->file->name,
                       r->jpeg.num_components);
    }
}

static void read_pixels(reader *r)
{
    at_image *image = r->image;
    image->height = (int)r->jpeg.output_height;
    image->width = (int)r->jpeg.output_width;
    const int samples = r->jpeg.output_components;
    if (!at_image_allocate(r->file, image, (size_t)samples))
        leave(r);
    while (r->jpeg.output_scanline < r->jpeg.output_height) {
        JSAMPROW row = image->bytes + (size_t)r->jpeg.output_scanline * (size_t)image->width * (size_t)samples;
        jpeg_read_scanlines(&r->jpeg, &row, 1);
    }
    jpeg_finish_decompress(&r->jpeg);
    if (samples != image->channels)
        paint(image, r->jpeg.saw_Adobe_marker);
}

/* Every block of 8 x 8 pixels takes at least one bit. Arithmetic coding can do with less, but not in a picture that shows
 * something. */
static bool decode(reader *r)
{
    enum { PIXELS_OF_BYTE = 64 * 8 };
    if (setjmp(r->back))
        return false;
    jpeg_create_decompress(&r->jpeg);
    r->jpeg.client_data = r;
    r->jpeg.src = &r->source;
    jpeg_read_header(&r->jpeg, TRUE);
    if (!at_image_size_check(r->file, r->jpeg.image_height, r->jpeg.image_width,
                             (uint64_t)r->file->size * PIXELS_OF_BYTE) ||
        !choose_form(r))
        return false;
    r->progress.progress_monitor = count_scans;
    r->jpeg.progress = &r->progress;
    r->jpeg.dct_method = JDCT_ISLOW; /* the exact one, the same bits with and without vector instructions */
    jpeg_start_decompress(&r->jpeg);
    read_pixels(r);
    return true;
}

bool at_jpeg_read(const at_image_file *file, at_image *image)
{
    reader r = {.file = file, .image = image};
    r.jpeg.client_data = &r; /* jpeg_create_decompress keeps it */
    r.jpeg.err = jpeg_std_error(&r.errors);
    r.errors.error_exit = fail;
    r.errors.emit_message = hear;
    r.errors.output_message = print_nothing;
    r.source = (struct jpeg_source_mgr){.next_input_byte = file->bytes,
                                        .bytes_in_buffer = file->size,
                                        .init_source = begin_or_end,
                                        .fill_input_buffer = at_end,
                                        .skip_input_data = skip,
                                        .resync_to_restart = jpeg_resync_to_restart,
                                        .term_source = begin_or_end};
    const bool done = decode(&r);
    jpeg_destroy_decompress(&r.jpeg);
    return done;
}
#endif
