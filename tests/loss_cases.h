/* What at_batch_loss adds to the parameters' gradients, against central differences of the loss by its definition. */
#ifndef AT_LOSS_CASES_H
#define AT_LOSS_CASES_H

#include "model_cases.h"

#include "tape/ops.h"
#include "train/loss_internal.h"

static const int64_t target_lengths[ROWS] = {3, 2, 3};
static const at_batch loss_batch = {.rows = ROWS,
                                    .source_length = SOURCE,
                                    .target_length = TARGET,
                                    .source = source_ids,
                                    .source_lengths = source_lengths,
                                    .input = target_in,
                                    .target = target_out,
                                    .target_lengths = target_lengths,
                                    .source_tokens = 8,
                                    .target_tokens = 8};

/* The loss of the batch, computed without gradients; `factor` is that of what is tested. */
typedef double loss_definition(const at_model *model, at_arena *arena, double factor);

/* Returns the cross-entropy that at_batch_loss reports. */
static double check_loss(const char *text, const at_loss_options *options, loss_definition *loss_of, double factor)
{
    at_model *model = case_model(text, 4, 4);
    at_arena *arena = at_arena_new();
    at_loss loss = {.model = model, .arena = arena, .rng = {.seed = 6}, .options = *options};
    at_error error = {0};
    double sum;
    at_params *params = model->params;
    memset(at_params_grads(params), 0, (size_t)at_params_count(params) * sizeof(double));
    if (!at_batch_loss(&loss, &loss_batch, true, &sum, &error))
        fail_msg("%s: %s", text, error.text);
    for (int64_t i = 0; i < at_params_count(params); i++) {
        double *value = &at_params_values(params)[i], now = *value, side[2];
        for (int s = 0; s < 2; s++) {
            *value = now + (s ? -1e-5 : 1e-5);
            at_params_changed(params);
            side[s] = loss_of(model, arena, factor);
        }
        *value = now;
        const double expected = (side[0] - side[1]) / 2e-5, got = at_params_grads(params)[i];
        if (fabs(expected - got) > 1e-7 * (1 + fabs(expected)))
            fail_msg("%s, factor %g: gradient %lld is %.12g and must be %.12g", text, factor, (long long)i, got,
                     expected);
    }
    at_params_changed(params);
    loss_of(model, arena, factor);
    at_arena_free(arena);
    at_model_free(model);
    return sum;
}

#endif
