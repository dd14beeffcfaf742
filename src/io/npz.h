/* A .npz file: a zip file with an array NAME.npy for each name. */
#ifndef AT_NPZ_H
#define AT_NPZ_H

#include "attend.h"

/* All arrays by name, without .npy. Arrays of signed bytes, which hold texts, are read as bytes. */
at_tensors *at_npz_read(const char *path, at_error *error);

#endif
