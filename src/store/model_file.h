/* What a model file and a training state have in common. */
#ifndef AT_MODEL_FILE_H
#define AT_MODEL_FILE_H

#include "tape/params.h"

/* The marks that identify our files: `kind` is "model" or "training state"; the version is that of the format. The check
 * verifies the checksum, too, if the file has one. */
bool at_file_mark(at_tensors *file, const char *kind, at_error *error);
bool at_file_check(const at_tensors *file, const char *kind, const char *path, at_error *error);

/* Refuses an array of at_real with a NaN or, if `no_infinity`, an infinity, and says where it is. */
bool at_array_finite(const at_array *array, const char *name, const char *path, bool no_infinity, at_error *error);
/* The same for all parameters, before they are written to `path`. */
bool at_params_finite(at_params *params, const char *path, at_error *error);

/* All parameters by name, bit for bit. Reading refuses a file that does not hold exactly these, all of them finite;
 * names that begin with `other_prefix` (may be NULL) are not looked at. The parameters need not be fixed before: memory
 * is allocated for them once the file is known to hold them. */
bool at_params_put(at_params *params, at_tensors *file, at_error *error);
bool at_params_take(at_params *params, const at_tensors *file, const char *path, const char *other_prefix,
                    at_error *error);

#endif
