/* The file model.bin of CTranslate2: variables by name.
 *
 *   u32 version 1 to 6; from 2 on: string spec, u32 revision       string: u16 length with the NUL, bytes, NUL
 *   u32 count; each variable: string name, u8 rank, rank x u32,
 *       from 4 on: u8 type, u32 bytes; before: u8 bytes of an item, u32 items
 *       its data
 *   from 3 on: u32 count; each alias: string alias, string name
 *
 * Weights of 8 and 16 bits are divided by the variable NAME_scale: they are computed with as floats. */
#ifndef AT_CT2_FILE_INTERNAL_H
#define AT_CT2_FILE_INTERNAL_H

#include "attend.h"
#include "base/real.h"
#include "store/bytes_internal.h"

enum { AT_CT2_NAME = 128, AT_CT2_SPEC = 64 };
typedef enum at_ct2_type {
    AT_CT2_F32,
    AT_CT2_I8,
    AT_CT2_I16,
    AT_CT2_I32,
    AT_CT2_F16,
    AT_CT2_BF16,
    AT_CT2_TYPES
} at_ct2_type;

typedef struct at_ct2_variable {
    char name[AT_CT2_NAME];
    at_ct2_type type;
    int rank;
    int64_t dim[AT_MAX_RANK], count;
    const unsigned char *data; /* not aligned */
} at_ct2_variable;

typedef struct at_ct2_file {
    at_bytes in;
    size_t size; /* of the file */
    uint32_t version, revision;
    char spec[AT_CT2_SPEC];
    at_ct2_variable *variable;
    int64_t count;
} at_ct2_file;

/* Reads the variables, which go on to point into the bytes. Release `variable` with free, also on failure. */
bool at_ct2_parse(at_ct2_file *f);
/* "'PATH' is truncated or damaged: WHAT"; returns false. */
bool at_ct2_refuse(const at_ct2_file *f, const char *what);

const at_ct2_variable *at_ct2_find(const at_ct2_file *f, const char *name); /* NULL: there is none */
at_real at_ct2_value(const at_ct2_variable *v, int64_t index);
/* The number FOLDER/NAME; `fallback` if there is no such variable with one number. */
double at_ct2_number(const at_ct2_file *f, const char *folder, const char *name, double fallback);
/* All numbers of a variable, divided by their scales; refuses what is not finite. */
bool at_ct2_copy(const at_ct2_file *f, const at_ct2_variable *v, at_real *to);
at_real *at_ct2_values(const at_ct2_file *f, const at_ct2_variable *v); /* the same in new memory; NULL on failure */

/* Calls `pair` with our and their name of each array of a side's layers, and of its final norm if it has one: encoder.1.self.O.W
 * and encoder/layer_0/self_attention/linear_1/weight. Not every model has every one: of a layer its bias may be missing, and
 * tables of relative positions. Stops where it returns false. */
typedef bool at_ct2_pair(void *context, const char *ours, const char *theirs, bool may_lack);
bool at_ct2_each(const char *side, int64_t layers, bool has_final, at_ct2_pair *pair, void *context);

#endif
