/* Any bytes as a PNG picture: pixels, or an error message. The mutator computes the checksums of the chunks anew: hardly an
 * input would be read beyond its header otherwise. */
#include "fuzz.h"

#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t most);

/* The CRC of PNG: of 32 bits, reflected, with the polynomial 0x04C11DB7. */
static uint32_t checksum(const uint8_t *bytes, size_t size)
{
    uint32_t crc = 0xFFFFFFFF;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
    }
    return ~crc;
}

/* A chunk: four bytes of length, four of type, the data, four of checksum over type and data. */
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed)
{
    size = LLVMFuzzerMutate(bytes, size, most);
    for (size_t at = 8; seed % 8 > 0 && at + 12 <= size;) {
        const size_t length = (size_t)bytes[at] << 24 | bytes[at + 1] << 16 | bytes[at + 2] << 8 | bytes[at + 3];
        if (length > size - at - 12)
            break;
        const uint32_t crc = checksum(bytes + at + 4, length + 4);
        at += 8 + length;
        for (int i = 0; i < 4; i++)
            bytes[at++] = (uint8_t)(crc >> (24 - 8 * i));
    }
    return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    expect_picture(bytes, size);
    return 0;
}
