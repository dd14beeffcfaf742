/* Any bytes as a safetensors file: tensors that together cover its data, or an error message. */
#include "fuzz.h"

#include <string.h>

#include "io/dtype.h"
#include "io/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    at_error error = {0};
    at_tensors *tensors = at_tensors_parse(bytes, size, "fuzz.safetensors", &error);
    expect_message(tensors, &error);
    size_t total = 0;
    for (int i = !tensors ? 0 : at_tensors_count(tensors); i-- > 0;) {
        const at_array *array = at_tensors_get(tensors, at_tensors_name(tensors, i));
        const size_t data = (size_t)at_array_count(array) * at_dtype_rows[array->dtype].size;
        total += data;
        EXPECT(total <= size && (data == 0 || memcmp(array->data, bytes + size - total, data) == 0));
    }
    at_tensors_free(tensors);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed)
{
    return mutate_tensors(bytes, size, most, seed);
}
