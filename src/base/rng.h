/* Random numbers from Philox 4x32-10 (Random123): a pure function of (seed, stream, counter), so the n-th number is the
 * same in whatever order it is drawn, on any number of threads. */
#ifndef AT_RNG_H
#define AT_RNG_H

#include "attend.h"
#include "base/real.h"

typedef struct at_rng {
    uint64_t seed;
    uint64_t counter; /* of the next draw; saved and restored with a training state */
} at_rng;

/* The four 32-bit words at (seed, counter, lane). */
void at_philox(uint64_t seed, uint64_t counter, uint64_t lane, uint32_t word[4]);

uint32_t at_rng_u32(at_rng *rng);               /* next word; advances the counter by one */
uint32_t at_rng_below(at_rng *rng, uint32_t n); /* 0..n-1 without bias; n > 0 */
double at_rng_uniform(at_rng *rng);             /* [0,1) */
double at_rng_normal(at_rng *rng);              /* mean 0, deviation 1 */

/* Uniform in (0,1), never 0 or 1, at a fixed counter: for sampling inside parallel loops. */
double at_uniform_at(uint64_t seed, uint64_t counter, uint64_t lane);

#endif
