#include "kernels/narrow.h"

#include <math.h>
#include <string.h>

#include "io/dtype.h"
#include "kernels/isa.h"

static const struct {
    const char *name;
    size_t size;
} types[AT_NUMBER_TYPES] = {
    [AT_NUMBERS_REAL] = {"f32", sizeof(at_real)},
    [AT_NUMBERS_BF16] = {"bf16", 2},
    [AT_NUMBERS_F16] = {"f16", 2},
    [AT_NUMBERS_INT8] = {"int8", 1},
};

const char *at_number_name(at_number_type type)
{
    return types[type].name;
}

size_t at_number_size(at_number_type type)
{
    return types[type].size;
}

/* ---- Rounding ------------------------------------------------------------------------------------------------- */

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The upper half of a float, rounded by the lower half; a carry goes into the exponent, as it should. */
static uint16_t to_bfloat(float x)
{
    const uint32_t bits = bits_of(x);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Below 2^-14, the smallest normal half, halves are multiples of 2^-24; above it the fraction loses 13 bits. */
static uint16_t to_half(float x)
{
    const uint32_t bits = bits_of(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size < (uint32_t)(127 - 14) << 23)
        return (uint16_t)(sign | (uint32_t)rintf(ldexpf(fabsf(x), 24)));
    return (uint16_t)(sign | (size - ((uint32_t)(127 - 15) << 23) + 0xfff + (size >> 13 & 1)) >> 13);
}

static bool round_row_int8(const at_real *w, int64_t k, int8_t *q, at_real *scale)
{
    at_real most = 0;
    for (int64_t j = 0; j < k; j++)
        most = fabs((double)w[j]) > (double)most ? (at_real)fabs((double)w[j]) : most;
    *scale = most / 127;
    for (int64_t j = 0; j < k; j++)
        q[j] = (int8_t)(most > 0 ? rint((double)w[j] * 127 / (double)most) : 0);
    return true;
}

static bool round_row(at_number_type type, const at_real *w, int64_t k, void *numbers, at_real *scale)
{
    uint16_t *halves = numbers;
    for (int64_t j = 0; j < k; j++)
        if (!isfinite(w[j]))
            return false;
    if (type == AT_NUMBERS_INT8)
        return round_row_int8(w, k, numbers, scale);
    for (int64_t j = 0; j < k; j++) {
        halves[j] = type == AT_NUMBERS_BF16 ? to_bfloat((float)w[j]) : to_half((float)w[j]);
        if (type == AT_NUMBERS_BF16 ? !isfinite(at_float_of_bfloat(halves[j])) : fabs((double)w[j]) >= 65520)
            return false; /* rounded to infinity */
    }
    return true;
}

bool at_narrow_round(at_number_type type, const at_real *w, int64_t n, int64_t k, void *numbers, at_real *scale)
{
    for (int64_t i = 0; i < n; i++)
        if (!round_row(type, w + i * k, k, (char *)numbers + (size_t)(i * k) * at_number_size(type), scale + i))
            return false;
    return true;
}

/* ---- Panels --------------------------------------------------------------------------------------------------- */

int64_t at_narrow_count(int64_t n, int64_t k)
{
    return at_gemm_packed_size(k, n);
}

/* Where W_ij is among the panels. With bf16 the columns c and c + width/2 of a panel are neighbours, so that they are widened
 * by a shift and a mask. */
static size_t place(at_number_type type, int64_t width, int64_t k, int64_t i, int64_t j)
{
    const int64_t c = i % width, half = width / 2;
    return (size_t)((i / width * k + j) * width + (type == AT_NUMBERS_BF16 ? c % half * 2 + c / half : c));
}

void at_narrow_pack(at_number_type type, const void *rows, int64_t n, int64_t k, void *panels)
{
    const int64_t width = at_isa()->gemm->width;
    memset(panels, 0, (size_t)at_narrow_count(n, k) * at_number_size(type));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < k; j++) {
            if (type == AT_NUMBERS_INT8)
                ((int8_t *)panels)[place(type, width, k, i, j)] = ((const int8_t *)rows)[i * k + j];
            else
                ((uint16_t *)panels)[place(type, width, k, i, j)] = ((const uint16_t *)rows)[i * k + j];
        }
}

void at_narrow_unpack(at_number_type type, const void *panels, int64_t n, int64_t k, void *rows)
{
    const int64_t width = at_isa()->gemm->width;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < k; j++) {
            if (type == AT_NUMBERS_INT8)
                ((int8_t *)rows)[i * k + j] = ((const int8_t *)panels)[place(type, width, k, i, j)];
            else
                ((uint16_t *)rows)[i * k + j] = ((const uint16_t *)panels)[place(type, width, k, i, j)];
        }
}

void at_narrow_row(const at_narrow *narrow, int64_t k, int64_t i, at_real *to)
{
    const int64_t width = at_isa()->gemm->width;
    const uint16_t *halves = narrow->numbers;
    const int8_t *bytes = narrow->numbers;
    for (int64_t j = 0; j < k; j++) {
        const size_t at = place(narrow->type, width, k, i, j);
        to[j] = narrow->type == AT_NUMBERS_INT8   ? bytes[at] * narrow->scale[i]
                : narrow->type == AT_NUMBERS_BF16 ? (at_real)at_float_of_bfloat(halves[at])
                                                  : (at_real)at_float_of_half(halves[at]);
    }
}
