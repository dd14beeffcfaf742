/* Every model: the gradient of its loss in every parameter, and one position at a time against all at once. */
#include "gradcheck.h"
#include "layers.h"
#include "model_cases.h"

/* Cross-entropy of the batch; hard attention's log-probabilities and entropies with weights of their own. */
static at_tensor *build_loss(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)x;
    at_model *model = (at_model *)(uintptr_t)context;
    at_rng rng = {.seed = 5};
    const bool hard = model->attention.normaliser == AT_HARD;
    at_pass pass = {.tape = tape, .rng = hard || model->settings.dropout > 0 ? &rng : NULL};
    at_decoded d = case_decode(model, &pass, &whole_source, target_in, TARGET);
    at_tensor *loss = at_cross_entropy(at_reshape(d.logits, AT_SHAPE(ROWS * TARGET, WORDS)), target_out, 0);
    if (!hard)
        return loss;
    at_tensor *parts[] = {loss, at_reshape(d.log_prob, AT_SHAPE(-1)), at_reshape(d.entropy, AT_SHAPE(-1))};
    return at_concat(parts, 3, 0);
}

static void test_gradients(void **state)
{
    (void)state;
    for (int i = 0; i < MODEL_CASES; i++) {
        at_model *model = case_model(model_cases[i], 4, 3);
        for (int p = 0; p < at_params_number(model->params); p++)
            at_init_normal(model->params, p, 0.5, 17);
        gradcheck_case c = {
            .name = model_cases[i], .build = build_loss, .context = model, .params = model->params, .tolerance = 1e-6};
        assert_int_equal(gradcheck(&c), at_params_count(model->params));
        at_model_free(model);
    }
}

/* Every parameter does something: none is declared in vain. */
static void test_all_used(void **state)
{
    (void)state;
    at_arena *arena = at_arena_new();
    for (int i = 0; i < MODEL_CASES; i++) {
        at_model *model = case_model(model_cases[i], 4, 3);
        at_tape *tape = at_tape_new(arena, true);
        at_tensor *loss = build_loss(tape, NULL, model);
        check_tape(model_cases[i], tape);
        double seed[100];
        for (int k = 0; k < 100; k++)
            seed[k] = 1;
        assert_true(at_backward_from(loss, seed));
        const double *grad = at_params_grads(model->params);
        for (int p = 0; p < at_params_number(model->params); p++) {
            double sum = 0;
            int64_t count = at_shape_count(at_params_shape(model->params, p));
            for (int64_t k = 0; k < count; k++)
                sum += fabs(*grad++);
            if (!(sum > 0))
                fail_msg("%s: no gradient comes to %s", model_cases[i], at_params_name(model->params, p));
        }
        at_arena_reset(arena);
        at_model_free(model);
    }
    at_arena_free(arena);
}

static void test_steps(void **state)
{
    (void)state;
    at_arena *arena = at_arena_new();
    for (int i = 0; i < MODEL_CASES; i++) {
        at_model *model = case_model(model_cases[i], 4, 3);
        double logits[ROWS * TARGET * WORDS], weights[ROWS * TARGET * SOURCE] = {0};
        case_steps(model, logits, weights);
        at_pass pass = {.tape = at_tape_new(arena, false)};
        at_decoded d = case_decode(model, &pass, &whole_source, target_in, TARGET);
        check_tape(model_cases[i], pass.tape);
        for (int k = 0; k < ROWS * TARGET * WORDS; k++)
            if (!(fabs(logits[k] - d.logits->value[k]) <= 1e-13))
                fail_msg("%s: logit %d is %.17g in steps and %.17g at once", model_cases[i], k, logits[k],
                         d.logits->value[k]);
        for (int k = 0; d.weights && k < ROWS * TARGET * SOURCE; k++)
            if (!(fabs(weights[k] - d.weights->value[k]) <= 1e-13))
                fail_msg("%s: weight %d is %.17g in steps and %.17g at once", model_cases[i], k, weights[k],
                         d.weights->value[k]);
        at_arena_reset(arena);
        at_model_free(model);
    }
    at_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients), cmocka_unit_test(test_all_used),
                                       cmocka_unit_test(test_steps)};
    at_threads_set(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
