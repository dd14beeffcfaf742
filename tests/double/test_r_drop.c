/* R-Drop: what at_batch_loss adds to the parameters' gradients, against central differences of the loss by its definition, computed here
 * from two passes with the same draws of dropout. */
#include "loss_cases.h"

enum { TOKENS = ROWS * TARGET };

/* log p_v of all target positions by one pass, and its cross-entropy. */
static double pass(const at_model *model, at_arena *arena, at_rng *rng, double log_p[TOKENS][WORDS])
{
    at_arena_reset(arena);
    at_tape *tape = at_tape_new(arena, false);
    at_pass pass = {.tape = tape, .rng = rng, .lengths = target_lengths};
    at_parts encoded = at_model_encode(model, &pass, &full_source);
    at_parts state = at_model_start(model, &pass, &full_source, &encoded);
    at_decoded d = at_model_decode(model, &pass, &full_source, &encoded, &state, target_in, TARGET);
    if (!d.logits)
        fail_msg("%s", at_tape_error(tape)->text);
    double cross = 0;
    int64_t row = 0; /* of packed logits */
    for (int i = 0; i < TOKENS; i++) {
        if (target_out[i] < 0)
            continue;
        const double *z = d.logits->value + (d.packed ? row++ : i) * WORDS;
        double sum = 0;
        for (int v = 0; v < WORDS; v++)
            sum += exp(z[v]);
        for (int v = 0; v < WORDS; v++)
            log_p[i][v] = z[v] - log(sum);
        cross -= log_p[i][target_out[i]];
    }
    return cross;
}

static double cross; /* the first part of the last loss */

/* (L_p + L_q) / 2 + a / 4 (KL(p || q) + KL(q || p)) */
static double loss_of(const at_model *model, at_arena *arena, double factor)
{
    static double p[TOKENS][WORDS], q[TOKENS][WORDS];
    at_rng rng = {.seed = 6};
    cross = pass(model, arena, &rng, p) / 2;
    cross += pass(model, arena, &rng, q) / 2;
    double apart = 0;
    for (int i = 0; i < TOKENS; i++)
        for (int v = 0; v < WORDS && target_out[i] >= 0; v++)
            apart += exp(p[i][v]) * (p[i][v] - q[i][v]) + exp(q[i][v]) * (q[i][v] - p[i][v]);
    return cross + factor / 4 * apart;
}

static void check(const char *text, double factor)
{
    const double sum = check_loss(text, &(at_loss_options){.r_drop = factor}, loss_of, factor);
    if (fabs(sum - cross) > 1e-12 * cross)
        fail_msg("%s: the cross-entropy is %.15g and must be %.15g", text, sum, cross);
}

static void gradients(void **state)
{
    (void)state;
    static const char *const cases[] = {"bahdanau dropout=0.4", "luong dropout=0.4 input-feeding=true",
                                        "luong dropout=0.4 normaliser=hard hard-training=exact",
                                        "transformer layers=1 heads=2 dropout=0.4", "rnn-encdec dropout=0.4"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check(cases[i], 1.5);
        check(cases[i], 60);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
