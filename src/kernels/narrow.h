/* Weights in fewer bits. They are stored as the panels of a product and widened as they are read; all arithmetic is that of
 * at_real in the order of every product. So a product with bf16 or f16 has the bits of the product with the widened
 * numbers. With int8 the sum is multiplied by the scale: y_j = s_j sum_k a_k q_jk + bias_j. */
#ifndef AT_NARROW_H
#define AT_NARROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/real.h"

typedef enum at_number_type { AT_NUMBERS_REAL, AT_NUMBERS_BF16, AT_NUMBERS_F16, AT_NUMBERS_INT8 } at_number_type;
enum { AT_NUMBER_TYPES = AT_NUMBERS_INT8 + 1 };

/* "f32", "bf16", "f16", "int8" */
const char *at_number_name(at_number_type type);
size_t at_number_size(at_number_type type); /* bytes of a number */

/* A matrix W [n,k] as the B = W^T [k,n] of products: panels [n / width][k][width], the last one filled up with zeros. */
typedef struct at_narrow {
    at_number_type type;
    const void *numbers;  /* NULL: there are none */
    const at_real *scale; /* int8: [n, rounded up to width], one for each row of W; else NULL */
} at_narrow;

/* Rounds W [n,k] to numbers [n,k] of the type, to the nearest, halfway to even.
 *   int8: s_i = max_j |w_ij| / 127,  q_ij = w_ij 127 / max_j |w_ij|
 * False: a number is not finite, or would not be. `scale` [n] is for int8 alone. */
bool at_narrow_round(at_number_type type, const at_real *w, int64_t n, int64_t k, void *numbers, at_real *scale);

/* How many numbers the panels of W [n,k] have; from its rows to panels and back. */
int64_t at_narrow_count(int64_t n, int64_t k);
void at_narrow_pack(at_number_type type, const void *rows, int64_t n, int64_t k, void *panels);
void at_narrow_unpack(at_number_type type, const void *panels, int64_t n, int64_t k, void *rows);

/* Row i of W [n,k], widened. */
void at_narrow_row(const at_narrow *narrow, int64_t k, int64_t i, at_real *to);

#endif
