#include "store/bytes_internal.h"

#include <stdio.h>

bool at_bytes_refuse(const at_bytes *bytes, const char *why)
{
    return at_fail(bytes->error, AT_FORMAT, "'%s' is truncated or damaged: %s", bytes->path, why);
}

const unsigned char *at_bytes_take(at_bytes *bytes, size_t size)
{
    if (bytes->error->code != AT_OK)
        return NULL;
    if ((size_t)(bytes->end - bytes->at) < size) {
        char why[60];
        snprintf(why, sizeof why, "%s ends too early", bytes->what);
        at_bytes_refuse(bytes, why);
        return NULL;
    }
    bytes->at += size;
    return bytes->at - size;
}

uint64_t at_bytes_number(at_bytes *bytes, size_t size)
{
    const unsigned char *at = at_bytes_take(bytes, size);
    uint64_t number = 0;
    for (size_t i = 0; at && i < size; i++)
        number |= (uint64_t)at[i] << 8 * i;
    return number;
}
