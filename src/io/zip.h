/* Entries of a zip file, by libzip. Sizes in a file are not believed: an entry is read only if it can be that large. */
#ifndef AT_ZIP_H
#define AT_ZIP_H

#include "attend.h"

typedef struct at_zip at_zip;
/* NULL if it is not a zip file, or if attend was built without libzip. */
at_zip *at_zip_open(const char *path, at_error *error);
void at_zip_close(at_zip *zip);
int64_t at_zip_count(const at_zip *zip);
const char *at_zip_name(const at_zip *zip, int64_t index);
int64_t at_zip_find(const at_zip *zip, const char *name); /* -1: there is none */
/* The bytes of an entry, stored or deflated, and a NUL after them; release with free. */
unsigned char *at_zip_read(const at_zip *zip, int64_t index, size_t *size, at_error *error);
/* False: attend was built without libzip, and at_zip_open refuses every file. */
bool at_zip_built(void);
/* Whether the first bytes of a file are those of a zip file. */
bool at_is_zip(const unsigned char *bytes, size_t size);

#endif
