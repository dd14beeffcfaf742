/* The gradient of the doubly stochastic penalty: what at_batch_loss adds to the parameters' gradients, against central
 * differences of cross-entropy + lambda sum_i (1 - sum_t w_ti)^2, computed here from the weights by its definition. */
#include "model_cases.h"

#include "tape/ops.h"
#include "train/loss_internal.h"

static const int64_t target_lengths[ROWS] = {3, 2, 3};
static const at_batch batch = {.rows = ROWS,
                               .source_length = SOURCE,
                               .target_length = TARGET,
                               .source = source_ids,
                               .source_lengths = source_lengths,
                               .input = target_in,
                               .target = target_out,
                               .target_lengths = target_lengths,
                               .source_tokens = 8,
                               .target_tokens = 8};

/* By the definition, without a recording tape. */
static double loss_of(const at_model *model, at_arena *arena, double factor)
{
    at_params_changed(model->params);
    at_arena_reset(arena);
    at_tape *tape = at_tape_new(arena, false);
    at_pass pass = {.tape = tape, .wants_weights = true};
    at_parts encoded = at_model_encode(model, &pass, &full_source);
    at_parts state = at_model_start(model, &pass, &full_source, &encoded);
    at_decoded d = at_model_decode(model, &pass, &full_source, &encoded, &state, target_in, TARGET);
    at_tensor *cross = at_cross_entropy(at_reshape(d.logits, AT_SHAPE(ROWS * TARGET, WORDS)), target_out, 0);
    if (!cross)
        fail_msg("%s", at_tape_error(tape)->text);
    double penalty = 0;
    for (int b = 0; b < ROWS; b++)
        for (int s = 0; s < source_lengths[b]; s++) {
            double sum = 0;
            for (int t = 0; t < target_lengths[b]; t++)
                sum += d.weights->value[(b * TARGET + t) * SOURCE + s];
            penalty += (1 - sum) * (1 - sum);
        }
    return cross->value[0] + factor * penalty;
}

static void check(const char *text, double factor)
{
    at_model *model = case_model(text, 3, 4);
    at_arena *arena = at_arena_new();
    at_loss loss = {.model = model, .arena = arena, .options = {.doubly_stochastic = factor}};
    at_error error = {0};
    double sum;
    at_params *params = model->params;
    memset(at_params_grads(params), 0, (size_t)at_params_count(params) * sizeof(double));
    if (!at_batch_loss(&loss, &batch, true, &sum, &error))
        fail_msg("%s: %s", text, error.text);
    for (int64_t i = 0; i < at_params_count(params); i++) {
        double *value = &at_params_values(params)[i], now = *value, side[2];
        for (int s = 0; s < 2; s++) {
            *value = now + (s ? -1e-5 : 1e-5);
            side[s] = loss_of(model, arena, factor);
        }
        *value = now;
        const double expected = (side[0] - side[1]) / 2e-5, got = at_params_grads(params)[i];
        if (fabs(expected - got) > 1e-7 * (1 + fabs(expected)))
            fail_msg("%s, factor %g: gradient %lld is %.12g and must be %.12g", text, factor, (long long)i, got,
                     expected);
    }
    at_arena_free(arena);
    at_model_free(model);
}

static void gradients(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "bahdanau",       "bahdanau gate=true normaliser=entmax15",    "bahdanau heads=3 score=dot",
        "luong heads=3",  "luong input-feeding=true window=local-p:1", "rnn-attention dropout=0 normaliser=sigmoid",
        "luong cell=gru", "bahdanau position=t5:4 score=general",      "nematus gate=true",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check(cases[i], 1.5);
        check(cases[i], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
