#include "pointing.h"

#include <math.h>

void pointing_add(pointing *p, const float *weights, const bool *marked, int64_t cells)
{
    int64_t own = 0;
    for (int64_t i = 0; i < cells; i++)
        if (marked[i]) {
            p->inside += (double)weights[i];
            own++;
        }
    p->chance += (double)own / (double)cells;
    p->words++;
}

double pointing_share(const pointing *p)
{
    return p->words ? p->inside / (double)p->words : NAN;
}

double pointing_times(const pointing *p)
{
    return p->words ? p->inside / p->chance : NAN;
}
