/* Every model, bit by bit: a sentence alone or in a batch, padded or not, on one thread or two. And what the settings
 * and the saved state refuse. */
#include "model_cases.h"

enum { SIZE = 20 }; /* more than a vector, and not a multiple of one */

/* Row `b` of the batch by itself, without its padding. */
static void alone_is_among(at_model *model, const char *name, const at_decoded *all, int b)
{
    at_arena *arena = at_arena_new();
    const int64_t length = source_lengths[b];
    const at_source source = {.rows = 1,
                              .length = length,
                              .ids = source_ids + b * SOURCE,
                              .lengths = source_lengths + b,
                              .pictures = case_pictures};
    at_pass pass = {.tape = at_tape_new(arena, false), .wants_weights = true};
    at_decoded one = case_decode(model, &pass, &source, target_in + b * TARGET, TARGET);
    check_tape(name, pass.tape);
    const float *logits = all->logits->value + b * TARGET * WORDS;
    if (memcmp(logits, one.logits->value, TARGET * WORDS * sizeof(float)) != 0)
        fail_msg("%s: the logits of row %d alone differ from those among others", name, b);
    for (int t = 0; one.weights && t < TARGET; t++) {
        const float *among = all->weights->value + (b * TARGET + t) * SOURCE;
        if (memcmp(among, one.weights->value + t * length, (size_t)length * sizeof(float)) != 0)
            fail_msg("%s: the weights of row %d alone differ from those among others", name, b);
        for (int64_t j = length; j < SOURCE; j++)
            assert_true(among[j] == 0);
    }
    at_arena_free(arena);
}

static void test_batch(void **state)
{
    (void)state;
    at_arena *arena = at_arena_new();
    for (int i = 0; model_case(i); i++) {
        at_model *model = case_model(model_case(i), SIZE, 3);
        at_pass pass = {.tape = at_tape_new(arena, false), .wants_weights = true};
        at_decoded all = case_decode(model, &pass, &full_source, target_in, TARGET);
        check_tape(model_case(i), pass.tape);
        for (int b = 0; b < ROWS; b++)
            alone_is_among(model, model_case(i), &all, b);
        at_arena_reset(arena);
        at_model_free(model);
    }
    at_arena_free(arena);
}

/* With lengths, a model may leave out the padding; the other positions keep their bits. */
static void test_lengths(void **state)
{
    (void)state;
    static const int64_t lengths[ROWS] = {3, 2, 1};
    at_arena *arena = at_arena_new();
    for (int i = 0; model_case(i); i++) {
        at_model *model = case_model(model_case(i), SIZE, 3);
        at_pass pass = {.tape = at_tape_new(arena, false)}, some = {.tape = pass.tape, .lengths = lengths};
        at_decoded all = case_decode(model, &pass, &full_source, target_in, TARGET);
        at_decoded d = case_decode(model, &some, &full_source, target_in, TARGET);
        check_tape(model_case(i), pass.tape);
        assert_int_equal(d.packed, strncmp(model_case(i), "transformer", 11) == 0);
        int64_t row = 0;
        for (int b = 0; b < ROWS; b++)
            for (int t = 0; t < lengths[b]; t++, row++)
                assert_memory_equal(d.logits->value + (d.packed ? row : b * TARGET + t) * WORDS,
                                    all.logits->value + (b * TARGET + t) * WORDS, WORDS * sizeof(float));
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
        at_model *model = case_model(model_case(i), SIZE, 3);
        float logits[ROWS * TARGET * WORDS], weights[ROWS * TARGET * SOURCE] = {0};
        case_steps(model, logits, weights);
        at_pass pass = {.tape = at_tape_new(arena, false), .wants_weights = true};
        at_decoded d = case_decode(model, &pass, &full_source, target_in, TARGET);
        for (int k = 0; k < ROWS * TARGET * WORDS; k++)
            if (!(fabsf(logits[k] - d.logits->value[k]) <= 2e-6f))
                fail_msg("%s: logit %d is %.9g in steps and %.9g at once", model_case(i), k, (double)logits[k],
                         (double)d.logits->value[k]);
        at_arena_reset(arena);
        at_model_free(model);
    }
    at_arena_free(arena);
}

/* Logits and gradients of a batch large enough for two threads. */
static float *trained(const char *text, int threads, int64_t *count)
{
    enum { MANY = 40, LONG = 7 };
    at_threads_set(threads);
    at_model *model = case_model(text, 64, 3);
    at_arena *arena = at_arena_new();
    at_rng rng = {.seed = 9};
    at_pass pass = {.tape = at_tape_new(arena, true), .rng = &rng};
    int32_t ids[MANY * LONG], targets[MANY * LONG];
    int64_t lengths[MANY];
    at_rng words = {.seed = 4};
    for (int b = 0; b < MANY; b++) {
        lengths[b] = 1 + at_rng_below(&words, LONG);
        for (int t = 0; t < LONG; t++) {
            ids[b * LONG + t] = t < lengths[b] ? (int32_t)at_rng_below(&words, WORDS) : -1;
            if (model->kind->has_pictures && t < lengths[b])
                ids[b * LONG + t] = CELLS_1 + (int32_t)lengths[b] - 1;
            targets[b * LONG + t] = (int32_t)at_rng_below(&words, WORDS);
        }
    }
    const at_source source = {.rows = MANY, .length = LONG, .ids = ids, .lengths = lengths, .pictures = case_pictures};
    at_decoded d = case_decode(model, &pass, &source, targets, LONG);
    at_tensor *loss = at_cross_entropy(at_reshape(d.logits, AT_SHAPE(MANY * LONG, WORDS)), targets, 0.1f);
    check_tape(text, pass.tape);
    assert_true(at_backward(loss));
    int64_t logits = MANY * LONG * WORDS, grads = at_params_count(model->params);
    *count = logits + grads;
    float *all = malloc((size_t)*count * sizeof *all);
    memcpy(all, d.logits->value, (size_t)logits * sizeof *all);
    memcpy(all + logits, at_params_grads(model->params), (size_t)grads * sizeof *all);
    at_arena_free(arena);
    at_model_free(model);
    at_threads_set(1);
    return all;
}

static void test_threads(void **state)
{
    (void)state;
    for (int i = 0; model_case(i); i++) {
        int64_t count;
        float *one = trained(model_case(i), 1, &count), *two = trained(model_case(i), 2, &count);
        if (memcmp(one, two, (size_t)count * sizeof *one) != 0)
            fail_msg("%s: two threads produce other bits than one", model_case(i));
        free(one);
        free(two);
    }
}

/* The same seed results in the same parameters, another seed in others. */
static void test_seed(void **state)
{
    (void)state;
    at_model *a = case_model("bahdanau", SIZE, 3), *b = case_model("bahdanau", SIZE, 3);
    at_model *c = case_model("bahdanau", SIZE, 4);
    size_t bytes = (size_t)at_params_count(a->params) * sizeof(float);
    assert_memory_equal(at_params_values(a->params), at_params_values(b->params), bytes);
    assert_true(memcmp(at_params_values(a->params), at_params_values(c->params), bytes) != 0);
    at_model_free(a);
    at_model_free(b);
    at_model_free(c);
}

/* Sets the settings, completes them and makes the model; returns the error message. */
static const char *refusal(const char *const (*words)[2], int count)
{
    static at_error error;
    error = (at_error){0};
    at_model_settings settings = {.source_size = WORDS, .target_size = WORDS};
    at_given given = {0};
    for (int i = 0; i < count; i++)
        at_model_set(&settings, &given, words[i][0], words[i][1], &error);
    if (at_model_settings_complete(&settings, &given, &error))
        at_model_free(at_model_new(&settings, 1, &error));
    return error.text;
}
#define REFUSAL(...) refusal((const char *const[][2]){__VA_ARGS__}, sizeof((const char *const[][2]){__VA_ARGS__}) / 16)

static void test_settings(void **state)
{
    (void)state;
    assert_string_equal(REFUSAL({"model", "bahdanow"}), "no model 'bahdanow'; did you mean 'bahdanau'?");
    assert_string_equal(REFUSAL({"hiden", "3"}), "no setting 'hiden'; did you mean 'hidden'?");
    assert_string_equal(REFUSAL({"hidden", "0"}), "`hidden` takes a whole number from 1 to 1048576, not '0'");
    assert_string_equal(REFUSAL({"hidden", "12x"}), "`hidden` takes a whole number from 1 to 1048576, not '12x'");
    assert_string_equal(REFUSAL({"dropout", "1"}), "`dropout` takes a number from 0 to below 1, not '1'");
    assert_string_equal(REFUSAL({"layers", "2"}), "model 'bahdanau' does not use `layers`");
    assert_string_equal(REFUSAL({"cell", "gre"}), "`cell` takes rnn, gru or lstm, not 'gre'");
    assert_string_equal(REFUSAL({"reset", "never"}), "`reset` takes before, after or after-bias, not 'never'");
    assert_string_equal(REFUSAL({"cell", "lstm"}, {"reset", "after"}),
                        "`reset` is for `cell` gru only, and the cell is 'lstm'");
    assert_string_equal(REFUSAL({"heads", "3"}),
                        "`heads` is 3 and must divide 256, the size of what attention compares");
    assert_non_null(strstr(REFUSAL({"score", "aditive"}), "did you mean 'additive'"));
    assert_string_equal(REFUSAL({"hard-training", "exact"}),
                        "`hard-training` is for `normaliser` hard only, and the normaliser is 'softmax'");
    assert_string_equal(REFUSAL({"hard-training", "reinforce"}, {"normaliser", "relu"}),
                        "`hard-training` is for `normaliser` hard only, and the normaliser is 'relu'");
    assert_string_equal(REFUSAL({"hard-training", "exakt"}), "`hard-training` takes reinforce or exact, not 'exakt'");
    assert_string_equal(REFUSAL({"model", "transformer"}, {"hard-training", "exact"}, {"normaliser", "hard"}),
                        "model 'transformer' does not use `hard-training`");
    assert_string_equal(REFUSAL({"hard-training", "exact"}, {"normaliser", "hard"}, {"heads", "2"}),
                        "`hard-training` exact sums over what one head chooses, and `heads` is 2");
    assert_string_equal(REFUSAL({"hard-training", "exact"}, {"normaliser", "hard"}, {"position", "shaw:2"}),
                        "`hard-training` exact needs values that do not depend on the target position; give `position` "
                        "shaw:K:keys");
    assert_string_equal(REFUSAL({"hard-training", "exact"}, {"normaliser", "hard"}, {"attention-dropout", "0.1"}),
                        "`attention-dropout` cannot be used with the normaliser 'hard', which selects one position");
    assert_string_equal(REFUSAL({"coverage", "3"}, {"score", "dot"}),
                        "`coverage` adds to the keys of `score` additive, and the score is 'dot'");
    assert_string_equal(REFUSAL({"coverage", "3"}, {"coverage-width", "4"}),
                        "`coverage-width` is the size of a window around a unit, an odd number, not 4");
    assert_string_equal(REFUSAL({"model", "luong"}, {"coverage", "3"}, {"score", "additive"}, {"window", "local-p:2"}),
                        "`coverage` cannot be used with `window` local-p in model 'luong', whose queries are prepared "
                        "for the score before "
                        "the window could be predicted from them");
    assert_string_equal(REFUSAL({"coverage-width", "5"}),
                        "`coverage-width` is the window of `coverage`, which is not given");
    assert_string_equal(REFUSAL({"coverage", "-1"}), "`coverage` takes a whole number from 0 to 4096, not '-1'");
    assert_string_equal(REFUSAL({"model", "transformer"}, {"coverage", "3"}),
                        "model 'transformer' does not use `coverage`");
    assert_string_equal(REFUSAL({"input-feeding", "ja"}), "`input-feeding` takes true or false, not 'ja'");
}

/* The text of a setting is parsed to the same value. */
static void test_field_text(void **state)
{
    (void)state;
    at_error error = {0};
    at_model_settings settings = {0};
    at_given given = {0};
    const char *const words[][2] = {
        {"model", "luong"}, {"hidden", "77"}, {"dropout", "0.30000000000000004"}, {"input-feeding", "true"}};
    for (int i = 0; i < 4; i++) {
        char text[64];
        assert_true(at_model_set(&settings, &given, words[i][0], words[i][1], &error));
        for (int f = 0; at_model_setting(f); f++)
            if (strcmp(at_model_setting(f)->name, words[i][0]) == 0) {
                at_setting_text(at_model_setting(f), &settings, text, sizeof text);
                assert_string_equal(text, words[i][1]);
            }
    }
}

static void test_saved(void **state)
{
    (void)state;
    at_error error = {0};
    at_arena *arena = at_arena_new();
    at_tape *tape = at_tape_new(arena, false);
    const float numbers[] = {1, 2, 3, 4, 5, 6};
    at_saved *saved = at_saved_new();
    at_parts parts = {.count = 2,
                      .part = {at_leaf(tape, AT_SHAPE(3, 2), numbers, NULL, false),
                               at_leaf(tape, AT_SHAPE(3, 1), numbers, NULL, false)}};
    assert_true(at_saved_store(saved, &parts, &error));
    assert_true(at_saved_select(saved, (const int64_t[]){2, 2, 0, 1, 2}, 5, &error));
    parts = at_saved_load(saved, tape);
    assert_int_equal(parts.part[0]->shape.dim[0], 5);
    assert_memory_equal(parts.part[0]->value, ((const float[]){5, 6, 5, 6, 1, 2, 3, 4, 5, 6}), 10 * sizeof(float));
    assert_memory_equal(parts.part[1]->value, ((const float[]){3, 3, 1, 2, 3}), 5 * sizeof(float));
    at_parts swapped = {.count = 2, .part = {parts.part[1], parts.part[0]}}; /* views of the saved values */
    assert_true(at_saved_store(saved, &swapped, &error));
    parts = at_saved_load(saved, tape);
    assert_memory_equal(parts.part[1]->value, ((const float[]){5, 6, 5, 6, 1, 2, 3, 4, 5, 6}), 10 * sizeof(float));
    assert_true(at_saved_select(saved, NULL, 0, &error));
    assert_int_equal(at_saved_load(saved, tape).part[0]->shape.dim[0], 0);
    assert_false(at_saved_select(saved, (const int64_t[]){0}, 1, &error));
    assert_string_equal(error.text, "row 0 is selected from a state of 0 rows");
    at_saved_free(saved);
    at_arena_free(arena);
}

static void test_bad_source(void **state)
{
    (void)state;
    at_model *model = case_model("bahdanau", SIZE, 3);
    at_arena *arena = at_arena_new();
    at_pass pass = {.tape = at_tape_new(arena, false)};
    const at_source empty = {.rows = 1, .length = 2, .ids = source_ids, .lengths = (const int64_t[]){0}};
    assert_null(case_decode(model, &pass, &empty, target_in, 1).logits);
    assert_string_equal(at_tape_error(pass.tape)->text, "the source in row 0 has 0 units and must have 1 to 2");
    pass.tape = at_tape_new(arena, false);
    assert_null(case_decode(model, &pass, &full_source, (const int32_t[]){1, WORDS, 1}, 1).logits);
    assert_string_equal(at_tape_error(pass.tape)->text, "embedding: id 7 at position 1 is not in the table of 7 rows");
    at_arena_free(arena);
    at_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch),      cmocka_unit_test(test_lengths), cmocka_unit_test(test_steps),
        cmocka_unit_test(test_threads),    cmocka_unit_test(test_seed),    cmocka_unit_test(test_settings),
        cmocka_unit_test(test_field_text), cmocka_unit_test(test_saved),   cmocka_unit_test(test_bad_source),
    };
    at_threads_set(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
