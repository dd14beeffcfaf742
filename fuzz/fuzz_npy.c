/* Any bytes as a .npy file: an array whose values are all within the bytes, or an error message. */
#include "io/dtype.h"
#include "io/parse_internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    at_error error = {0};
    at_array *array = at_npy_parse(bytes, size, "fuzz.npy", &error);
    if (!array != (error.code != AT_OK) || strchr(error.text, '\n'))
        abort();
    if (array) {
        size_t data = (size_t)at_array_count(array) * at_dtype_rows[array->dtype].size;
        if (data > size || (data > 0 && memcmp(array->data, bytes + size - data, data) != 0))
            abort();
        at_array_free(at_array_to_f32(array, &error));
    }
    at_array_free(array);
    return 0;
}
