#include "io/npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "io/parse.h"
#include "io/tensors_internal.h"
#include "io/zip.h"

/* The header of a text says '<i1' or '|i1'; as '|u1' it is bytes. */
static void signed_as_bytes(unsigned char *bytes, size_t size)
{
    static const char *const names[] = {"'<i1'", "'|i1'"};
    for (int i = 0; i < 2; i++) {
        unsigned char *at = memmem(bytes, size < 256 ? size : 256, names[i], 5);
        if (at)
            memcpy(at, "'|u1'", 5);
    }
}

static bool add_entry(at_tensors *arrays, const at_zip *zip, int64_t index, const char *path, at_error *error)
{
    char name[256], shown[AT_SHOWN], full[sizeof shown + 300];
    const char *entry = at_zip_name(zip, index);
    const size_t length = strlen(entry);
    size_t size;
    if (length < 5 || length - 4 >= sizeof name || strcmp(entry + length - 4, ".npy") != 0)
        return at_fail(error, AT_FORMAT, "'%s' has the entry '%s', which is not an array", path,
                       at_shown(entry, shown, sizeof shown));
    snprintf(name, sizeof name, "%.*s", (int)length - 4, entry);
    snprintf(full, sizeof full, "%.200s: %s", path, at_shown(entry, shown, sizeof shown));
    unsigned char *bytes = at_zip_read(zip, index, &size, error);
    if (bytes)
        signed_as_bytes(bytes, size);
    at_array *array = bytes ? at_npy_parse(bytes, size, full, error) : NULL;
    free(bytes);
    if (array && at_tensors_append(arrays, name, array, error))
        return true;
    at_array_free(array);
    return false;
}

at_tensors *at_npz_read(const char *path, at_error *error)
{
    at_zip *zip = at_zip_open(path, error);
    at_tensors *arrays = zip ? at_tensors_new() : NULL;
    bool done = arrays;
    if (zip && !arrays)
        at_no_memory(error, "the arrays of '%s'", path);
    for (int64_t i = 0; done && i < at_zip_count(zip); i++)
        done = add_entry(arrays, zip, i, path, error);
    at_zip_close(zip);
    if (done)
        return arrays;
    at_tensors_free(arrays);
    return NULL;
}
