#include "io/zip.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"

bool at_is_zip(const unsigned char *bytes, size_t size)
{
    return size >= 4 && memcmp(bytes, "PK\003\004", 4) == 0;
}

bool at_zip_built(void)
{
#ifdef AT_HAVE_ZIP
    return true;
#else
    return false;
#endif
}

#ifdef AT_HAVE_ZIP

#include <zip.h>

enum { MOST_ENTRIES = 1 << 16, MOST_RATIO = 100, SLACK = 1 << 20 };

struct at_zip {
    zip_t *zip;
    char *path;
    size_t size; /* of the file */
};

static bool refuse(const at_zip *zip, const char *what, at_error *error)
{
    return at_fail(error, AT_FORMAT, "'%s' is truncated or damaged: %s", zip->path, what);
}

/* What the entries take in the file, together, is no more than it has. */
static bool check_sizes(const at_zip *zip, at_error *error)
{
    const int64_t count = at_zip_count(zip);
    uint64_t left = zip->size;
    if (count < 0 || count > MOST_ENTRIES)
        return refuse(zip, "it claims too many entries", error);
    for (int64_t i = 0; i < count; i++) {
        zip_stat_t about;
        if (zip_stat_index(zip->zip, (zip_uint64_t)i, 0, &about) != 0 || !(about.valid & ZIP_STAT_COMP_SIZE) ||
            about.comp_size > left)
            return refuse(zip, "its entries are larger than the file", error);
        left -= about.comp_size;
    }
    return true;
}

at_zip *at_zip_open(const char *path, at_error *error)
{
    size_t size = 0;
    int code = 0;
    const int file = error->code == AT_OK ? at_file_open_regular(path, &size, error) : -1;
    if (file < 0)
        return NULL;
    at_zip *zip = calloc(1, sizeof *zip);
    if (zip)
        *zip = (at_zip){.zip = zip_fdopen(file, 0, &code), .path = strdup(path), .size = size};
    if (!zip || !zip->zip)
        close(file); /* else it belongs to the zip */
    if (!zip || !zip->path)
        at_no_memory(error, "the zip file '%s'", path);
    else if (!zip->zip)
        at_fail(error, AT_FORMAT, "'%s' is truncated or damaged: it is not a whole zip file", path);
    else if (check_sizes(zip, error))
        return zip;
    at_zip_close(zip);
    return NULL;
}

void at_zip_close(at_zip *zip)
{
    if (!zip)
        return;
    if (zip->zip)
        zip_discard(zip->zip);
    free(zip->path);
    free(zip);
}

int64_t at_zip_count(const at_zip *zip)
{
    return zip_get_num_entries(zip->zip, 0);
}

const char *at_zip_name(const at_zip *zip, int64_t index)
{
    const char *name = zip_get_name(zip->zip, (zip_uint64_t)index, 0);
    return name ? name : "";
}

int64_t at_zip_find(const at_zip *zip, const char *name)
{
    return zip_name_locate(zip->zip, name, 0);
}

unsigned char *at_zip_read(const at_zip *zip, int64_t index, size_t *size, at_error *error)
{
    zip_stat_t about;
    if (error->code != AT_OK)
        return NULL;
    if (zip_stat_index(zip->zip, (zip_uint64_t)index, 0, &about) != 0 || !(about.valid & ZIP_STAT_SIZE) ||
        !(about.valid & ZIP_STAT_COMP_METHOD) || about.size > MOST_RATIO * about.comp_size + SLACK) {
        refuse(zip, "an entry is larger than it can be", error);
        return NULL;
    }
    if (about.comp_method != ZIP_CM_STORE && about.comp_method != ZIP_CM_DEFLATE) {
        at_fail(error, AT_UNSUPPORTED, "'%s' has entries that are neither stored nor deflated", zip->path);
        return NULL;
    }
    unsigned char *bytes = malloc(about.size + 1);
    zip_file_t *entry = bytes ? zip_fopen_index(zip->zip, (zip_uint64_t)index, 0) : NULL;
    char more;
    /* The byte after the last makes libzip compare the checksum. */
    const bool whole =
        entry && zip_fread(entry, bytes, about.size) == (zip_int64_t)about.size && zip_fread(entry, &more, 1) == 0;
    if (entry)
        zip_fclose(entry);
    if (!bytes)
        at_no_memory(error, "an entry of '%s'", zip->path);
    else if (!whole)
        refuse(zip, "an entry cannot be read", error);
    if (!whole) {
        free(bytes);
        return NULL;
    }
    bytes[about.size] = 0;
    *size = about.size;
    return bytes;
}

#else

at_zip *at_zip_open(const char *path, at_error *error)
{
    at_fail(error, AT_UNSUPPORTED, "'%s' is a zip file, and this attend was built without libzip", path);
    return NULL;
}

void at_zip_close(at_zip *zip)
{
    (void)zip;
}

int64_t at_zip_count(const at_zip *zip)
{
    (void)zip;
    return 0;
}

const char *at_zip_name(const at_zip *zip, int64_t index)
{
    (void)zip, (void)index;
    return "";
}

int64_t at_zip_find(const at_zip *zip, const char *name)
{
    (void)zip, (void)name;
    return -1;
}

unsigned char *at_zip_read(const at_zip *zip, int64_t index, size_t *size, at_error *error)
{
    (void)zip, (void)index, (void)size, (void)error;
    return NULL;
}

#endif
