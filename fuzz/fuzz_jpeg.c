/* Any bytes as a JPEG picture: pixels, or an error message. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    expect_picture(bytes, size);
    return 0;
}
