#include "base/rng.h"

#include <math.h>

#include <Random123/philox.h>

void at_philox(uint64_t seed, uint64_t counter, uint64_t lane, uint32_t word[4])
{
    philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    philox4x32_ctr_t position = {
        {(uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)lane, (uint32_t)(lane >> 32)}};
    philox4x32_ctr_t drawn = philox4x32_R(10, position, key);
    for (int i = 0; i < 4; i++)
        word[i] = drawn.v[i];
}

/* The highest 53 bits of two words, as an integer. */
static uint64_t bits53(uint32_t high, uint32_t low)
{
    return ((uint64_t)high << 32 | low) >> 11;
}

/* In (0,1): the middle of one of 2^52 equal intervals, so it is never 0 or 1, even after rounding. */
static double open_unit(uint32_t high, uint32_t low)
{
    return ((double)(bits53(high, low) >> 1) + 0.5) * 0x1p-52;
}

uint32_t at_rng_u32(at_rng *rng)
{
    uint32_t word[4];
    at_philox(rng->seed, rng->counter++, 0, word);
    return word[0];
}

/* floor(word * n / 2^32) is below n; it is without bias if draws whose low half of the product is
 * below 2^32 mod n are rejected, since those would make some results more frequent than others. */
uint32_t at_rng_below(at_rng *rng, uint32_t n)
{
    uint32_t surplus = (uint32_t)-n % n; /* 2^32 mod n */
    for (;;) {
        uint64_t product = (uint64_t)at_rng_u32(rng) * n;
        if ((uint32_t)product >= surplus)
            return (uint32_t)(product >> 32);
    }
}

double at_rng_uniform(at_rng *rng)
{
    uint32_t word[4];
    at_philox(rng->seed, rng->counter++, 0, word);
    return (double)bits53(word[0], word[1]) * 0x1p-53;
}

/* Box-Muller: sqrt(-2 ln u) cos(2 pi t) for u, t uniform. Both come from one counter and make one number, so the
 * n-th normal is a function of its counter like every other draw. */
double at_rng_normal(at_rng *rng)
{
    uint32_t word[4];
    at_philox(rng->seed, rng->counter++, 0, word);
    double u = open_unit(word[0], word[1]), t = open_unit(word[2], word[3]);
    return sqrt(-2 * log(u)) * cos(2 * M_PI * t);
}

double at_uniform_at(uint64_t seed, uint64_t counter, uint64_t lane)
{
    uint32_t word[4];
    at_philox(seed, counter, lane, word);
    return open_unit(word[0], word[1]);
}
