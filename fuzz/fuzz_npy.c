/* Any bytes as a .npy file: an array whose values are all within the bytes, or an error message. */
#include "fuzz.h"

#include <string.h>

#include "io/dtype.h"
#include "io/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    at_error error = {0};
    at_array *array = at_npy_parse(bytes, size, "fuzz.npy", &error);
    expect_message(array, &error);
    if (array) {
        const size_t data = (size_t)at_array_count(array) * at_dtype_rows[array->dtype].size;
        EXPECT(data <= size && (data == 0 || memcmp(array->data, bytes + size - data, data) == 0));
        at_array_free(at_array_to_f32(array, &error));
    }
    at_array_free(array);
    return 0;
}
