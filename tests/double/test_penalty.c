/* The gradient of the doubly stochastic penalty: what at_batch_loss adds to the parameters' gradients, against central
 * differences of cross-entropy + lambda sum_i (1 - sum_t w_ti)^2, computed here from the weights by its definition. */
#include "loss_cases.h"

/* By the definition, without a recording tape. */
static double loss_of(const at_model *model, at_arena *arena, double factor)
{
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

static void gradients(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "bahdanau",       "bahdanau gate=true normaliser=entmax15",    "bahdanau heads=2 score=dot",
        "luong heads=2",  "luong input-feeding=true window=local-p:1", "rnn-attention dropout=0 normaliser=sigmoid",
        "luong cell=gru", "bahdanau position=t5:4 score=general",      "nematus gate=true",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_loss(cases[i], &(at_loss_options){.doubly_stochastic = 1.5}, loss_of, 1.5);
        check_loss(cases[i], &(at_loss_options){.doubly_stochastic = 0}, loss_of, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
