/* Arrays and their files: writes an array as .npy and as a safetensors file with a note, and reads both back.
 *
 *     cc arrays.c $(pkg-config --cflags --libs attend) -o arrays && ./arrays
 */
#include <stdio.h>
#include <string.h>

#include <attend.h>

int main(void)
{
    at_error error; /* one for all calls: once it is set, the calls that follow do nothing */
    memset(&error, 0, sizeof error);

    const int64_t dim[2] = {2, 3};
    at_array *array = at_array_new(AT_F32, 2, dim, &error);
    for (int i = 0; array && i < 6; i++)
        ((float *)array->data)[i] = (float)i / 2;
    if (array)
        at_npy_write("arrays.npy", array, &error);

    at_tensors *file = at_tensors_new();
    if (array && file) {
        at_tensors_put(file, "half", array, &error); /* a copy: the array is still ours */
        at_tensors_set_meta(file, "note", "the first six halves", &error);
        at_tensors_write(file, "arrays.safetensors", &error);
    }
    at_tensors_free(file);
    at_array_free(array);

    at_array *again = at_npy_read("arrays.npy", &error);
    file = at_tensors_read("arrays.safetensors", &error);
    if (again && file) {
        const at_array *half = at_tensors_get(file, "half"); /* the file's own: not to be freed */
        printf("%s: rank %d, %lld x %lld\n", at_tensors_meta(file, "note"), half->rank, (long long)half->dim[0],
               (long long)half->dim[1]);
        for (int64_t i = 0; i < at_array_count(again); i++)
            printf("%g%c", (double)((float *)again->data)[i], i + 1 < at_array_count(again) ? ' ' : '\n');
    }
    at_tensors_free(file); /* NULL is fine */
    at_array_free(again);
    if (error.code != AT_OK)
        fprintf(stderr, "arrays: %s\n", error.text);
    return error.code;
}
