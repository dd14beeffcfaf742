/* The checksum of a safetensors file: XXH3 (64 bits) over its metadata, names, types, shapes and values, kept in its
 * metadata. doc/formats.md defines it byte by byte. */
#ifndef AT_CHECKSUM_H
#define AT_CHECKSUM_H

#include "attend.h"

#define AT_CHECKSUM_KEY "attend.checksum"

/* Computes the checksum of the file as it is now, and stores it in the metadata. */
bool at_tensors_seal(at_tensors *tensors, at_error *error);
/* Fails with AT_FORMAT if the file has a checksum and its contents have another; *has_checksum is false for a file
 * without one, which cannot be verified. */
bool at_tensors_verify(const at_tensors *tensors, const char *path, bool *has_checksum, at_error *error);

#endif
