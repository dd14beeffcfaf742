/* What a model file and a training state have in common. */
#ifndef AT_MODEL_FILE_H
#define AT_MODEL_FILE_H

#include "tape/params.h"

/* The marks that identify our files: `kind` is "model" or "training state"; the version is that of the format. */
bool at_file_mark(at_tensors *file, const char *kind, at_error *error);
bool at_file_check(const at_tensors *file, const char *kind, const char *path, at_error *error);

/* All parameters by name, bit for bit. Reading refuses a file that does not hold exactly these; names that begin with
 * `other_prefix` (may be NULL) are not looked at. */
bool at_params_put(at_params *params, at_tensors *file, at_error *error);
bool at_params_take(at_params *params, const at_tensors *file, const char *path, const char *other_prefix,
                    at_error *error);

#endif
