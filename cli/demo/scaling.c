/* Why the score is divided by √d, measured. */
#include <math.h>

#include "demo/demo.h"

enum { TRIALS = AT_SCALING_TRIALS, KEYS = AT_SCALING_KEYS, SHOWN = 4, DEEPEST = AT_SCALING_DEEPEST };

/* Both scores at one d. */
static bool probe_both(const cli_common *options, int d, at_scaling *dot, at_scaling *scaled, at_error *error)
{
    return at_scaling_probe("dot", d, options->seed, dot, error) &&
           at_scaling_probe("scaled", d, options->seed, scaled, error);
}

bool demo_scaling_table(const cli_common *options, at_error *error)
{
    at_scaling dot, scaled;
    bool good = true;
    printf("Means over %d random queries, each looking at %d random keys, for growing d:\n\n"
           "              softmax(q·k)                softmax(q·k / √d)\n"
           "       d   largest entropy gradient    largest entropy gradient\n",
           TRIALS, KEYS);
    for (int d = 4; good && d <= DEEPEST; d *= 4) {
        good = probe_both(options, d, &dot, &scaled, error);
        if (good)
            printf("    %4d   %7.3f %7.3f %8.4f    %7.3f %7.3f %8.4f\n", d, dot.largest, dot.entropy, dot.gradient,
                   scaled.largest, scaled.entropy, scaled.gradient);
    }
    if (good)
        printf("\nlargest   the largest weight of a row: %.3f if all weighed the same, at most 1\n"
               "entropy   of a row's weights in nats: %.3f if all weighed the same, at least 0\n"
               "gradient  the norm of softmax's Jacobian diag(w) − w wᵀ: how much the weights\n"
               "          answer to the scores\n",
               1.0 / KEYS, log(KEYS));
    return good;
}

bool demo_scaling_maps(const cli_common *options, at_error *error)
{
    at_scaling dot, scaled;
    if (!probe_both(options, DEEPEST, &dot, &scaled, error))
        return false;
    sayf("The first %d of those queries at d = %d, not divided:\n", SHOWN, DEEPEST);
    if (!show_heat(dot.weights, SHOWN, KEYS, NULL, NULL, error))
        return false;
    say("\nand divided by √d:\n");
    if (!show_heat(scaled.weights, SHOWN, KEYS, NULL, NULL, error))
        return false;
    printf("\nNot divided, the softmax lets %.0f times less gradient through.\n", scaled.gradient / dot.gradient);
    return true;
}
