#include "draw/png_internal.h"

#include "draw/base64_internal.h"

/* ---- Checksums ------------------------------------------------------------------------------------------------ */

/* CRC-32 of a chunk (ISO 3309): the remainder by 0xedb88320, bits reversed. */
static uint32_t crc(const unsigned char *bytes, size_t size)
{
    uint32_t c = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        c ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            c = c & 1 ? 0xedb88320 ^ c >> 1 : c >> 1;
    }
    return ~c;
}

/* Adler-32 of the pixels: a = 1 + Σ x, b = Σ a, both modulo 65521. */
typedef struct adler {
    uint32_t a, b;
} adler;

static void adler_add(adler *sum, const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        sum->a = (sum->a + bytes[i]) % 65521;
        sum->b = (sum->b + sum->a) % 65521;
    }
}

/* ---- The file ------------------------------------------------------------------------------------------------- */

static void add_number(at_buffer *file, uint32_t number)
{
    const unsigned char bytes[] = {(unsigned char)(number >> 24), (unsigned char)(number >> 16),
                                   (unsigned char)(number >> 8), (unsigned char)number};
    at_buffer_add(file, bytes, 4);
}

/* A chunk: its length, its name and contents, and their checksum. Returns where the name begins. */
static size_t begin_chunk(at_buffer *file, uint32_t size, const char *name)
{
    add_number(file, size);
    at_buffer_add(file, name, 4);
    return file->size - 4;
}

static void end_chunk(at_buffer *file, size_t begin)
{
    if (!file->failed)
        add_number(file, crc((const unsigned char *)file->bytes + begin, file->size - begin));
}

/* Every row, after a 0 for "not filtered", is one block of deflate that is stored as it is. */
static void add_rows(at_buffer *file, const unsigned char *pixels, int64_t height, size_t bytes)
{
    enum { MOST_BLOCK = 65535 };
    adler sum = {1, 0};
    const unsigned char filter = 0;
    for (int64_t y = 0; y < height; y++, pixels += bytes) {
        adler_add(&sum, &filter, 1);
        adler_add(&sum, pixels, bytes);
        for (size_t at = 0; at < bytes + 1;) {
            const size_t left = bytes + 1 - at, size = left < MOST_BLOCK ? left : MOST_BLOCK;
            const unsigned char head[] = {y == height - 1 && size == left, (unsigned char)size,
                                          (unsigned char)(size >> 8), (unsigned char)~size,
                                          (unsigned char)(~size >> 8)};
            at_buffer_add(file, head, 5);
            if (at == 0)
                at_buffer_add(file, &filter, 1);
            at_buffer_add(file, pixels + at - (at > 0), size - (at == 0));
            at += size;
        }
    }
    add_number(file, sum.b << 16 | sum.a);
}

static void add_file(at_buffer *file, const unsigned char *pixels, int64_t height, int64_t width, int channels)
{
    const size_t bytes = (size_t)(width * channels), blocks = (bytes + 1 + 65534) / 65535;
    const unsigned char kind[] = {8, channels == 3 ? 2 : 0, 0, 0, 0}; /* bits, RGB or grey, plain */
    at_buffer_add(file, "\x89PNG\r\n\x1a\n", 8);
    size_t begin = begin_chunk(file, 13, "IHDR");
    add_number(file, (uint32_t)width);
    add_number(file, (uint32_t)height);
    at_buffer_add(file, kind, 5);
    end_chunk(file, begin);
    begin = begin_chunk(file, (uint32_t)(2 + (size_t)height * (bytes + 1 + 5 * blocks) + 4), "IDAT");
    at_buffer_add(file, "\x78\x01", 2);
    add_rows(file, pixels, height, bytes);
    end_chunk(file, begin);
    end_chunk(file, begin_chunk(file, 0, "IEND"));
}

/* ---- The address ---------------------------------------------------------------------------------------------- */

void at_png_address(at_buffer *text, const unsigned char *pixels, int64_t height, int64_t width, int channels)
{
    at_buffer file = {0};
    add_file(&file, pixels, height, width, channels);
    at_buffer_print(text, "data:image/png;base64,");
    if (file.failed)
        text->failed = true;
    else
        at_base64_add(text, (const unsigned char *)file.bytes, file.size);
    at_buffer_free(&file);
}
