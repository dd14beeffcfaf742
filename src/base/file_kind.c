#include "base/file_kind.h"

#include <string.h>

#include "base/utf8.h"

/* ---- UTF-16 ----------------------------------------------------------------------------------------------------- */

/* Whether every surrogate of the 16-bit units is one of a pair, which bytes of anything else hardly ever fulfil. */
static bool has_pairs(const unsigned char *bytes, size_t size, int high)
{
    bool open = false; /* the first of a pair came just before */
    for (size_t i = 0; i + 1 < size; i += 2) {
        const unsigned top = bytes[i + (size_t)high] & 0xFC;
        if (open != (top == 0xDC))
            return false;
        open = top == 0xD8;
    }
    return true;
}

/* Without a mark: of at least LEAST units nearly all have a zero in one byte and none has one in the other. */
static bool has_zeros(const unsigned char *bytes, size_t size, int high)
{
    enum { LEAST = 8 };
    size_t zeros = 0, others = 0;
    for (size_t i = 0; i + 1 < size; i += 2) {
        zeros += bytes[i + (size_t)high] == 0;
        others += bytes[i + (size_t)!high] == 0;
    }
    return size / 2 >= LEAST && others == 0 && zeros >= size / 2 - size / 20;
}

const char *at_utf16_kind(const unsigned char *bytes, size_t size)
{
    size = size < AT_KIND_BYTES ? size : AT_KIND_BYTES;
    if (size >= 2 && bytes[0] + bytes[1] == 0xFF + 0xFE && (bytes[0] == 0xFF || bytes[0] == 0xFE))
        return has_pairs(bytes, size, bytes[0] == 0xFF) ? "UTF-16" : NULL;
    return has_zeros(bytes, size, 1) ? "UTF-16LE" : has_zeros(bytes, size, 0) ? "UTF-16BE" : NULL;
}

/* ---- Others ----------------------------------------------------------------------------------------------------- */

/* How the files of other programs begin. */
static const struct {
    const char *start;
    size_t size;
    const char *kind;
} starts[] = {
    {"\x1F\x8B", 2, "gzip data, which has to be decompressed first"},
    {"\x28\xB5\x2F\xFD", 4, "zstd data, which has to be decompressed first"},
    {"\xFD"
     "7zXZ",
     5, "xz data, which has to be decompressed first"},
    {"BZh", 3, "bzip2 data, which has to be decompressed first"},
    {"PK\x03\x04", 4, "a zip archive, as PyTorch and NumPy write them (.pt, .npz)"},
    {"\x80\x02", 2, "a Python pickle, as PyTorch writes it"},
    {"\x80\x03", 2, "a Python pickle"},
    {"\x80\x04", 2, "a Python pickle"},
    {"\x80\x05", 2, "a Python pickle"},
    {"\x93NUMPY", 6, "a .npy array"},
    {"\x89HDF", 4, "an HDF5 file"},
    {"GGUF", 4, "a GGUF file"},
    {"\x7F"
     "ELF",
     4, "a program"},
    {"%PDF", 4, "a PDF file"},
    {"\x89PNG\r\n\x1A\n", 8, "a PNG picture"},
    {"\xFF\xD8\xFF", 3, "a JPEG picture"},
    {"GIF8", 4, "a GIF picture"},
    {"II*\0", 4, "a TIFF picture"},
    {"MM\0*", 4, "a TIFF picture"},
    {"\0\0\0\x0CjP  ", 8, "a JPEG 2000 picture"},
};

/* Pictures whose first bytes alone do not tell: RIFF and BMP have a size after them, HEIF and AVIF one before. */
static const char *picture_kind(const unsigned char *bytes, size_t size)
{
    if (size >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0)
        return "a WebP picture";
    if (size >= 12 && memcmp(bytes + 4, "ftyp", 4) == 0)
        return strncmp((const char *)bytes + 8, "avif", 4) == 0 ? "an AVIF picture" : "a HEIF picture or a film";
    if (size >= 18 && memcmp(bytes, "BM", 2) == 0 && memcmp(bytes + 6, "\0\0\0\0", 4) == 0)
        return "a BMP picture";
    return NULL;
}

/* Bytes of text: no control characters but white space, and not many beyond ASCII unless they are UTF-8. */
static const char *text_kind(const unsigned char *bytes, size_t size)
{
    const size_t valid = at_utf8_length((const char *)bytes, size);
    for (size_t i = 0; i < size; i++)
        if (bytes[i] < ' ' && !strchr("\t\n\v\f\r", bytes[i] ? bytes[i] : 1))
            return NULL;
    if (valid == size || (size == AT_KIND_BYTES && valid + 4 > size)) /* a character may be cut */
        return "a text file";
    size_t beyond = 0;
    for (size_t i = 0; i < size; i++)
        beyond += bytes[i] >= 0x80;
    return beyond * 3 < size ? "a text file that is not UTF-8, probably Latin-1" : NULL;
}

/* Eight bytes of length, then the header as JSON. */
static const char *tensors_kind(const unsigned char *bytes, size_t size)
{
    uint64_t length = 0;
    for (size_t i = 0; i < 8 && i < size; i++)
        length |= (uint64_t)bytes[i] << 8 * i;
    if (size < 10 || bytes[8] != '{' || bytes[9] != '"' || length > 100000000)
        return NULL;
    return size < AT_KIND_BYTES && length > size - 8 ? "a truncated safetensors file"
                                                     : "a safetensors file that attend has not written";
}

const char *at_file_kind(const unsigned char *bytes, size_t size)
{
    if (size == 0)
        return "an empty file";
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (size >= starts[i].size && memcmp(bytes, starts[i].start, starts[i].size) == 0)
            return starts[i].kind;
    if (at_utf16_kind(bytes, size))
        return "a text file in UTF-16";
    const char *kind = picture_kind(bytes, size);
    if (!kind)
        kind = tensors_kind(bytes, size);
    return kind ? kind : text_kind(bytes, size);
}
