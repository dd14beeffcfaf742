/* Every model: the gradient of its loss in every parameter, and one position at a time against all at once. */
#include "gradcheck.h"
#include "model_cases.h"

/* Whether training uses random numbers. */
static bool is_random(const at_model *model)
{
    const at_model_settings *s = &model->settings;
    return at_attention_samples(&model->attention) || s->dropout > 0 || s->attention_dropout > 0 || s->ffn_dropout > 0;
}

/* Cross-entropy of the batch; hard attention's log-probabilities and entropies with weights of their own. */
static at_tensor *build_loss(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)x;
    at_model *model = (at_model *)(uintptr_t)context;
    at_rng rng = {.seed = 5};
    const bool hard = at_attention_samples(&model->attention);
    at_pass pass = {.tape = tape, .rng = is_random(model) ? &rng : NULL};
    at_decoded d = case_decode(model, &pass, &full_source, target_in, TARGET);
    at_tensor *loss = at_cross_entropy(at_reshape(d.logits, AT_SHAPE(ROWS * TARGET, WORDS)), target_out, 0);
    if (!hard)
        return loss;
    at_tensor *parts[] = {loss, at_reshape(d.log_prob, AT_SHAPE(-1)), at_reshape(d.entropy, AT_SHAPE(-1))};
    return at_concat(parts, 3, 0);
}

/* A model that was only added to the table is tested, too. */
static void test_every_model(void **state)
{
    (void)state;
    for (int kind = 0; at_model_kind_at(kind); kind++) {
        int cases = 0;
        for (int i = 0; model_case(i); i++) {
            at_model *model = case_model(model_case(i), 4, 3);
            cases += model->kind == at_model_kind_at(kind);
            at_model_free(model);
        }
        if (cases == 0)
            fail_msg("no case tests the model '%s'", at_model_kind_at(kind)->name);
    }
}

static void test_gradients(void **state)
{
    (void)state;
    for (int i = 0; model_case(i); i++) {
        at_model *model = case_model(model_case(i), 4, 3);
        gradcheck_case c = {
            .name = model_case(i), .build = build_loss, .context = model, .params = model->params, .tolerance = 1e-6};
        assert_int_equal(gradcheck(&c), at_params_count(model->params));
        at_model_free(model);
    }
}

/* The cross-entropy of known alignments, with the weights of the last head of the first layer. */
static at_tensor *build_guided(at_tape *tape, at_tensor *const *x, const void *context)
{
    (void)x;
    at_model *model = (at_model *)(uintptr_t)context;
    static double links[ROWS * TARGET * SOURCE] = {[1] = 0.5, [2] = 0.5, [4] = 1, [12] = 1, [24] = 0.3, [25] = 0.7};
    at_rng rng = {.seed = 5};
    at_pass pass = {.tape = tape,
                    .rng = is_random(model) ? &rng : NULL,
                    .guided_layer = 1,
                    .guided_head = (int)model->settings.heads};
    at_decoded d = case_decode(model, &pass, &full_source, target_in, TARGET);
    at_tensor *tiny = at_tensor_make(tape, AT_SHAPE(1));
    check_tape(model->kind->name, tape);
    assert_true(at_shape_same(d.guided->shape, AT_SHAPE(ROWS, TARGET, SOURCE)));
    *tiny->value = 1e-9;
    at_tensor *gold = at_leaf(tape, d.guided->shape, links, NULL, false);
    at_tensor *guided = at_scale(at_sum(at_mul(at_log(at_add(d.guided, tiny)), gold), -1), -0.7);
    return at_add(guided, at_cross_entropy(at_reshape(d.logits, AT_SHAPE(ROWS * TARGET, WORDS)), target_out, 0));
}

static void test_guided_gradients(void **state)
{
    (void)state;
    int guided = 0;
    for (int i = 0; model_case(i); i++) {
        at_model *model = case_model(model_case(i), 4, 3);
        int layers, heads;
        /* The logarithm of a weight of 0, from sparse normalisers and windows, is not used. */
        const char *sparse[] = {"sparsemax", "entmax15", "relu", "local-", "sliding"};
        bool plain = true;
        for (int w = 0; w < 5; w++)
            plain = plain && !strstr(model_case(i), sparse[w]);
        if (at_model_heads(model, &layers, &heads) && !at_attention_samples(&model->attention) && plain) {
            gradcheck_case c = {.name = model_case(i),
                                .build = build_guided,
                                .context = model,
                                .params = model->params,
                                .tolerance = 1e-6};
            assert_int_equal(gradcheck(&c), at_params_count(model->params));
            guided++;
        }
        at_model_free(model);
    }
    assert_true(guided >= 10);
}

/* Every parameter has an effect: none is declared without use. */
static void test_all_used(void **state)
{
    (void)state;
    at_arena *arena = at_arena_new();
    for (int i = 0; model_case(i); i++) {
        at_model *model = case_model(model_case(i), 4, 3);
        at_tape *tape = at_tape_new(arena, true);
        at_tensor *loss = build_loss(tape, NULL, model);
        check_tape(model_case(i), tape);
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
                fail_msg("%s: no gradient comes to %s", model_case(i), at_params_name(model->params, p));
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
    for (int i = 0; model_case(i); i++) {
        at_model *model = case_model(model_case(i), 4, 3);
        double logits[ROWS * TARGET * WORDS], weights[ROWS * TARGET * SOURCE] = {0};
        case_steps(model, logits, weights);
        at_pass pass = {.tape = at_tape_new(arena, false), .wants_weights = true};
        at_decoded d = case_decode(model, &pass, &full_source, target_in, TARGET);
        check_tape(model_case(i), pass.tape);
        for (int k = 0; k < ROWS * TARGET * WORDS; k++)
            if (!(fabs(logits[k] - d.logits->value[k]) <= 1e-13))
                fail_msg("%s: logit %d is %.17g in steps and %.17g at once", model_case(i), k, logits[k],
                         d.logits->value[k]);
        for (int k = 0; d.weights && k < ROWS * TARGET * SOURCE; k++)
            if (!(fabs(weights[k] - d.weights->value[k]) <= 1e-13))
                fail_msg("%s: weight %d is %.17g in steps and %.17g at once", model_case(i), k, weights[k],
                         d.weights->value[k]);
        at_arena_reset(arena);
        at_model_free(model);
    }
    at_arena_free(arena);
}

/* Hard attention samples from the softmax: its log-probability is that of the source word it selected, its entropy the
 * softmax's. At the first step both models are in the same state. */
static void test_hard(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"bahdanau", "bahdanau normaliser=hard"},
                                           {"luong", "luong normaliser=hard"},
                                           {"nematus", "nematus normaliser=hard"}};
    at_arena *arena = at_arena_new();
    for (int i = 0; i < 3; i++) {
        at_model *soft = case_model(pairs[i][0], 4, 3), *hard = case_model(pairs[i][1], 4, 3);
        at_rng rng = {.seed = 8};
        at_pass quiet = {.tape = at_tape_new(arena, false)}, drawing = {.tape = quiet.tape, .rng = &rng};
        at_decoded s = case_decode(soft, &quiet, &full_source, target_in, TARGET);
        at_decoded h = case_decode(hard, &drawing, &full_source, target_in, TARGET);
        check_tape(pairs[i][1], quiet.tape);
        assert_true(at_shape_same(h.log_prob->shape, AT_SHAPE(ROWS, TARGET)));
        assert_true(at_shape_same(h.entropy->shape, AT_SHAPE(ROWS, TARGET)));
        for (int b = 0; b < ROWS; b++) {
            const double *p = s.weights->value + b * TARGET * SOURCE, *w = h.weights->value + b * TARGET * SOURCE;
            double entropy = 0, chosen = 0;
            for (int64_t j = 0; j < source_lengths[b]; j++) {
                entropy -= p[j] * log(p[j]);
                chosen += w[j] * p[j];
            }
            assert_true(fabs(h.entropy->value[b * TARGET] - entropy) < 1e-12);
            assert_true(fabs(h.log_prob->value[b * TARGET] - log(chosen)) < 1e-12);
        }
        at_decoded argmax = case_decode(hard, &quiet, &full_source, target_in, TARGET);
        assert_null(argmax.entropy);
        assert_non_null(argmax.log_prob);
        at_arena_reset(arena);
        at_model_free(soft);
        at_model_free(hard);
    }
    at_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_model), cmocka_unit_test(test_gradients), cmocka_unit_test(test_guided_gradients),
        cmocka_unit_test(test_all_used),    cmocka_unit_test(test_steps),     cmocka_unit_test(test_hard)};
    at_threads_set(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
