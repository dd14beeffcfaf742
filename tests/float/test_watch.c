/* While a backward pass runs, a parameter is told complete only when its gradient has its last bits: of every model. */
#include "model_cases.h"
#include "tape/ops.h"
#include "tape/params.h"

enum { MANY = 40, LONG = 7 }; /* 280 rows: products of so many are not deferred */

typedef struct seen {
    at_params *params;
    at_real *copy; /* [count] gradients when they were told complete */
    bool told[400];
    int tellings, operations;
} seen;

static void complete(void *context, int param)
{
    seen *s = context;
    const at_real *grads = at_params_grads(s->params);
    const int64_t from = at_params_value(s->params, param) - at_params_values(s->params);
    assert_false(s->told[param]);
    s->told[param] = true;
    s->tellings++;
    memcpy(s->copy + from, grads + from, (size_t)at_shape_count(at_params_shape(s->params, param)) * sizeof *grads);
}

static void between(void *context)
{
    ((seen *)context)->operations++;
}

/* How many parameters were told complete before the pass ended. */
static int watch_model(const char *text, int *number)
{
    at_model *model = case_model(text, 16, 3);
    at_params *params = model->params;
    *number = at_params_number(params);
    assert_in_range(*number, 1, 400);
    seen s = {.params = params, .copy = calloc((size_t)at_params_count(params) + 1, sizeof *s.copy)};
    int uses[400];
    const at_watch watch = {.params = params, .uses = uses, .complete = complete, .between = between, .context = &s};
    at_arena *arena = at_arena_new();
    at_rng rng = {.seed = 9}, words = {.seed = 4};
    at_pass pass = {.tape = at_tape_new(arena, true), .rng = &rng};
    int32_t ids[MANY * LONG], targets[MANY * LONG];
    int64_t lengths[MANY];
    for (int b = 0; b < MANY; b++) {
        lengths[b] = LONG;
        for (int t = 0; t < LONG; t++) {
            ids[b * LONG + t] = model->kind->has_pictures ? CELLS_1 + LONG - 1 : (int32_t)at_rng_below(&words, WORDS);
            targets[b * LONG + t] = (int32_t)at_rng_below(&words, WORDS);
        }
    }
    const at_source source = {.rows = MANY, .length = LONG, .ids = ids, .lengths = lengths, .pictures = case_pictures};
    at_tape_watch(pass.tape, &watch);
    at_decoded d = case_decode(model, &pass, &source, targets, LONG);
    at_tensor *loss = at_cross_entropy(at_reshape(d.logits, AT_SHAPE(MANY * LONG, WORDS)), targets, 0.1f);
    check_tape(text, pass.tape);
    assert_true(at_backward(loss));
    for (int p = 0; p < *number; p++) {
        const int64_t from = at_params_value(params, p) - at_params_values(params);
        const size_t size = (size_t)at_shape_count(at_params_shape(params, p)) * sizeof *s.copy;
        if (s.told[p] && memcmp(s.copy + from, at_params_grads(params) + from, size) != 0)
            fail_msg("%s: the gradient of %s changed after it was told complete", text, at_params_name(params, p));
    }
    assert_true(s.operations > 0);
    free(s.copy);
    at_arena_free(arena);
    at_model_free(model);
    return s.tellings;
}

static void test_complete_gradients_stay(void **state)
{
    (void)state;
    for (int i = 0; model_case(i); i++) {
        int number;
        const int told = watch_model(model_case(i), &number);
        if (strncmp(model_case(i), "transformer ", strlen("transformer ")) == 0) /* nothing is deferred */
            assert_int_equal(told, number);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_complete_gradients_stay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
