/* Files of PyTorch: a zip file with X/data.pkl and X/data/KEY, or the older form, five pickles and then the numbers. */
#ifndef AT_TORCH_INTERNAL_H
#define AT_TORCH_INTERNAL_H

#include "store/pickle_internal.h"

typedef struct at_torch at_torch;
/* Whether the file is one, by its first bytes. */
bool at_is_torch(const char *path);
at_torch *at_torch_read(const char *path, at_error *error);
void at_torch_free(at_torch *torch);
const at_pickled *at_torch_root(const at_torch *torch);
/* Adds the arrays of a dictionary by name, what is no array is left out. Together they have no more numbers than the
 * storages they lie in. */
bool at_torch_add(const at_torch *torch, const at_pickled *dictionary, at_tensors *arrays, at_error *error);
/* The arrays of a file that is one dictionary of them. */
at_tensors *at_torch_tensors(const char *path, at_error *error);

#endif
