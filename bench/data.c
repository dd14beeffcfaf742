#include "data.h"

#include <math.h>

float data_value(uint32_t seed, int64_t i)
{
    uint32_t h = (uint32_t)i * 0x9E3779B1u + seed * 0x85EBCA77u;
    h = (h ^ (h >> 15)) * 0xC2B2AE3Du;
    h = (h ^ (h >> 13)) * 0x27D4EB2Fu;
    return (float)(((double)(h >> 8) / 16777216 * 2 - 1) * 1.7320508075688772);
}

numbers data_new(uint32_t seed, int64_t count)
{
    numbers x = numbers_new(count);
    for (int64_t i = 0; i < count; i++)
        x.values[i] = data_value(seed, i);
    return x;
}

double data_checksum(const float *x, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)x[i] * (double)data_value(SEED_CHECKSUM, i);
    return sum;
}

bool data_agrees(double ours, double theirs, double size)
{
    return fabs(ours - theirs) <= 1e-3 * (fabs(ours) + size);
}
