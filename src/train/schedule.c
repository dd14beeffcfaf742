/* The learning rate as a function of the update. */
#include "train/optimise.h"

#include <math.h>

double at_schedule_rate(const at_optimiser_settings *settings, int64_t step)
{
    double t = step < 1 ? 1 : (double)step, warm = settings->warmup < 1 ? 1 : (double)settings->warmup;
    double rise = fmin(1, t / warm); /* the linear warm-up, 1 without one */
    double rate = settings->learning_rate;
    switch (settings->schedule) {
    case AT_CONSTANT:
        return rate * rise;
    case AT_NOAM: /* d^-0.5 min(t^-0.5, t warmup^-1.5) */
        return rate * pow((double)settings->width, -0.5) * fmin(pow(t, -0.5), t * pow(warm, -1.5));
    case AT_INVERSE_SQRT: /* min(t / warmup, sqrt(warmup / t)), equal at the end of the warm-up */
        return rate * fmin(t / warm, sqrt(warm / t));
    case AT_COSINE: { /* (1 + cos(pi s)) / 2, s running from 0 after the warm-up to 1 at the last update */
        double past = t - (double)settings->warmup, length = (double)(settings->updates - settings->warmup);
        double share = past <= 0 ? 0 : past >= length ? 1 : past / length;
        return rate * rise * (1 + cos(M_PI * share)) / 2;
    }
    }
    return rate;
}
