/* Dropout: which weights of attention are dropped depends on batch, head, query and key alone, and every setting
 * acts on its own part of a model, in training only. */
#include "attention/attention.h"
#include "base/rng.h"
#include "model_cases.h"
#include "models/kinds.h"
#include "train/loss_internal.h"

enum { HEADS = 3, SIZE = 8, WIDTH = HEADS * SIZE };

static const at_weight_drop drop = {.share = (at_real)0.3, .seed = 99, .counter = 12};

/* ---- The draw ------------------------------------------------------------------------------------------------- */

static void test_factors(void **state)
{
    (void)state;
    enum { KEYS = 1000, ROWS_DRAWN = 200 };
    static at_real whole[KEYS], piece[KEYS], other[KEYS];
    const at_real scale = 1 / (at_real)(1 - drop.share);
    int64_t kept = 0, equal = 0;
    for (int64_t row = 0; row < ROWS_DRAWN; row++) {
        const int64_t b = row % 7, h = row % 3, i = row;
        at_drop_factors(&drop, b, h, i, 0, KEYS, whole);
        for (int64_t from = 0, to; from < KEYS; from = to) { /* any part of the row has the same */
            to = from + 1 + row % 77 < KEYS ? from + 1 + row % 77 : KEYS;
            at_drop_factors(&drop, b, h, i, from, to, piece);
            assert_memory_equal(piece, whole + from, (size_t)(to - from) * sizeof *piece);
        }
        at_drop_factors(&drop, b, h, i + ROWS_DRAWN, 0, KEYS, other);
        for (int64_t j = 0; j < KEYS; j++) {
            assert_true(whole[j] == 0 || whole[j] == scale);
            kept += whole[j] > 0;
            equal += whole[j] == other[j];
        }
    }
    const double share = (double)kept / (KEYS * ROWS_DRAWN), same = (double)equal / (KEYS * ROWS_DRAWN);
    assert_true(fabs(share - 0.7) < 0.005);
    assert_true(fabs(same - (0.7 * 0.7 + 0.3 * 0.3)) < 0.005); /* independent rows */
    /* Another sequence, head, query or counter has another mask. */
    const at_weight_drop next = {.share = drop.share, .seed = drop.seed, .counter = drop.counter + 1};
    at_drop_factors(&drop, 1, 1, 1, 0, KEYS, whole);
    for (int variant = 0; variant < 4; variant++) {
        at_drop_factors(variant == 3 ? &next : &drop, 1 + (variant == 0), 1 + (variant == 1), 1 + (variant == 2), 0,
                        KEYS, other);
        assert_memory_not_equal(whole, other, sizeof whole);
    }
}

/* ---- Its bits ------------------------------------------------------------------------------------------------- */

typedef struct outcome {
    at_arena *arena;
    const at_real *out, *dq, *dk, *dv; /* [B,n,WIDTH] */
} outcome;

/* Sequences of `queries` and `keys`, of which `length` are visible: prefixes of the longest sequences used here. */
static outcome attend(const char *normaliser, int64_t batch, int64_t queries, int64_t keys, int64_t length)
{
    enum { LONGEST = 400 };
    outcome o = {.arena = at_arena_new()};
    at_error error = {0};
    at_attention attention;
    const at_settings names = {.normaliser = normaliser, .window = "causal", .heads = HEADS};
    assert_true(at_attention_parse(&names, &attention, &error));
    at_tape *tape = at_tape_new(o.arena, true);
    at_tensor *x[3];
    at_real *grad[3];
    for (int n = 0; n < 3; n++) {
        const int64_t rows = n ? keys : queries;
        at_real *value = at_arena_take(o.arena, (size_t)(batch * rows * WIDTH) * sizeof *value);
        grad[n] = at_arena_zeros(o.arena, (size_t)(batch * rows * WIDTH) * sizeof **grad);
        for (int64_t b = 0; b < batch; b++)
            for (int64_t i = 0; i < rows * WIDTH; i++)
                value[b * rows * WIDTH + i] =
                    (at_real)(2 * at_uniform_at(5, (uint64_t)(b * 3 + n), (uint64_t)(i % (LONGEST * WIDTH))) - 1);
        x[n] = at_leaf(tape, AT_SHAPE(batch, rows, WIDTH), value, grad[n], true);
    }
    int64_t lengths[8];
    for (int64_t b = 0; b < batch; b++)
        lengths[b] = length;
    const at_attention_in in = {
        .query = x[0], .key = x[1], .value = x[2], .lengths = lengths, .query_start = length - queries, .drop = drop};
    at_attention_out result = at_attention_run(tape, &attention, &in);
    check_tape("attention", tape);
    at_real *seed = at_arena_take(o.arena, (size_t)(batch * queries * WIDTH) * sizeof *seed);
    for (int64_t i = 0; i < batch * queries * WIDTH; i++)
        seed[i] = (at_real)(at_uniform_at(6, 0, (uint64_t)(i % (queries * WIDTH))) - 0.5);
    assert_true(at_backward_from(result.out, seed));
    o.out = result.out->value;
    o.dq = grad[0], o.dk = grad[1], o.dv = grad[2];
    return o;
}

static void same_bits(const outcome *a, const outcome *b, int64_t queries, int64_t keys)
{
    const size_t q = (size_t)(queries * WIDTH) * sizeof(at_real), k = (size_t)(keys * WIDTH) * sizeof(at_real);
    assert_memory_equal(a->out, b->out, q);
    assert_memory_equal(a->dq, b->dq, q);
    assert_memory_equal(a->dk, b->dk, k);
    assert_memory_equal(a->dv, b->dv, k);
}

static void test_bits(void **state)
{
    (void)state;
    static const char *const normalisers[] = {"softmax", "sparsemax", "relu"};
    for (int n = 0; n < 3; n++) {
        at_threads_set(1);
        outcome one = attend(normalisers[n], 1, 130, 300, 300);
        outcome beside = attend(normalisers[n], 3, 130, 300, 300), padded = attend(normalisers[n], 1, 130, 371, 300);
        at_threads_set(3);
        outcome threads = attend(normalisers[n], 1, 130, 300, 300);
        same_bits(&one, &beside, 130, 300);
        same_bits(&one, &padded, 130, 300);
        same_bits(&one, &threads, 130, 300);
        at_arena_free(one.arena);
        at_arena_free(beside.arena);
        at_arena_free(padded.arena);
        at_arena_free(threads.arena);
    }
    at_threads_set(0);
}

/* ---- In models ------------------------------------------------------------------------------------------------ */

static double loss_of(const char *text, bool trains)
{
    at_model *model = case_model(text, 8, 3);
    at_arena *arena = at_arena_new();
    at_rng rng = {.seed = 5};
    at_pass pass = {.tape = at_tape_new(arena, false), .rng = trains ? &rng : NULL};
    at_decoded d = case_decode(model, &pass, &full_source, target_in, TARGET);
    at_tensor *loss = at_cross_entropy(at_reshape(d.logits, AT_SHAPE(ROWS * TARGET, WORDS)), target_out, 0);
    check_tape(text, pass.tape);
    const double value = (double)loss->value[0];
    at_arena_free(arena);
    at_model_free(model);
    return value;
}

static void test_models_drop(void **state)
{
    (void)state;
    static const char *const plain[] = {"transformer layers=1 heads=2 dropout=0",
                                        "transformer-lm layers=1 heads=2 dropout=0", "bahdanau", "luong",
                                        "rnn-attention dropout=0"};
    for (int i = 0; i < 5; i++) {
        char with[200];
        const double expected = loss_of(plain[i], false);
        assert_true(loss_of(plain[i], true) == expected);
        snprintf(with, sizeof with, "%s attention-dropout=0.4", plain[i]);
        assert_true(loss_of(with, false) == expected);
        assert_true(loss_of(with, true) != expected);
        if (i > 1)
            continue;
        snprintf(with, sizeof with, "%s ffn-dropout=0.4", plain[i]);
        assert_true(loss_of(with, false) == expected);
        assert_true(loss_of(with, true) != expected);
    }
    /* Inside the feed-forward layers --dropout acts unless they have their own. */
    const double standard = loss_of("transformer layers=1 heads=2 dropout=0.3", true);
    assert_true(loss_of("transformer layers=1 heads=2 dropout=0.3 ffn-dropout=0.3", true) == standard);
    assert_true(loss_of("transformer layers=1 heads=2 dropout=0.3 attention-dropout=0", true) == standard);
    assert_true(loss_of("transformer layers=1 heads=2 dropout=0.3 ffn-dropout=0", true) != standard);
}

/* Word dropout: the loss is that of a batch whose previous tokens are unknown where the same draws say so; the first of each target
 * and padding are not drawn for, and without `learn` nothing is dropped. */
static void test_words(void **state)
{
    (void)state;
    static const int64_t lengths[ROWS] = {3, 2, 3};
    static const char pictures[] = "show-attend-tell " PICTURES;
    static const char *const models[] = {"bahdanau", "luong", "rnn-encdec", "transformer layers=1 heads=2 dropout=0",
                                         pictures};
    for (int i = 0; i < 5; i++) {
        at_model *model = case_model(models[i], 8, 3);
        int32_t dropped[ROWS * TARGET];
        memcpy(dropped, target_in, sizeof dropped);
        at_rng rng = {.seed = 6};
        for (int b = 0; b < ROWS; b++)
            for (int t = 1; t < lengths[b]; t++)
                if (at_rng_uniform(&rng) < 0.5)
                    dropped[b * TARGET + t] = AT_UNKNOWN;
        assert_memory_not_equal(dropped, target_in, sizeof dropped);
        double sum[4];
        for (int variant = 0; variant < 4; variant++) { /* drawn, by hand, nothing dropped, not learning */
            at_loss loss = {.model = model, .arena = at_arena_new(), .rng = {.seed = 6}, .pictures = case_pictures};
            loss.options.word_dropout = variant == 0 || variant == 3 ? 0.5 : 0;
            const at_batch batch = {.rows = ROWS,
                                    .source_length = SOURCE,
                                    .target_length = TARGET,
                                    .source = source_ids,
                                    .source_lengths = source_lengths,
                                    .input = variant == 1 ? dropped : target_in,
                                    .target = target_out,
                                    .target_lengths = lengths,
                                    .source_tokens = 8,
                                    .target_tokens = 8};
            at_error error = {0};
            if (!at_batch_loss(&loss, &batch, variant != 3, &sum[variant], &error))
                fail_msg("%s: %s", models[i], error.text);
            at_arena_free(loss.arena);
        }
        assert_true(sum[0] == sum[1]);
        assert_true(sum[0] != sum[2]);
        assert_true(sum[3] == sum[2]);
        at_model_free(model);
    }
}

/* What a model file stores of the settings, so that files written before they existed load unchanged. */
static void test_settings(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"transformer dropout=0.3", ""},
        {"transformer dropout=0.3 ffn-dropout=0", "ffn-dropout=0 "},
        {"transformer dropout=0 ffn-dropout=0.1 attention-dropout=0.2", "attention-dropout=0.2 ffn-dropout=0.1 "},
        {"bahdanau dropout=0.3", ""},
        {"luong attention-dropout=0.1", "attention-dropout=0.1 "}};
    for (int c = 0; c < 5; c++) {
        at_model *model = case_model(cases[c].text, 8, 3);
        char says[200] = "";
        for (int i = 0; at_model_setting(i); i++) {
            char value[64];
            const at_setting *row = at_model_setting(i);
            at_setting_text(row, &model->settings, value, sizeof value);
            if (strstr(row->name, "-dropout") && at_model_says(&model->settings, model->kind, row))
                snprintf(says + strlen(says), sizeof says - strlen(says), "%s=%s ", row->name, value);
        }
        assert_string_equal(says, cases[c].says);
        at_model_free(model);
    }
    at_error error = {0};
    at_model_settings settings = {0};
    at_given given = {0};
    at_model_set(&settings, &given, "attention-dropout", "0.1", &error);
    at_model_set(&settings, &given, "normaliser", "hard", &error);
    assert_false(at_model_settings_complete(&settings, &given, &error));
    assert_string_equal(error.text,
                        "`attention-dropout` cannot be used with the normaliser 'hard', which selects one position");
}

static void test_refusals(void **state)
{
    (void)state;
    static const at_real numbers[4];
    at_arena *arena = at_arena_new();
    for (int i = 0; i < 3; i++) {
        at_tape *tape = at_tape_new(arena, false);
        at_tensor *x = at_leaf(tape, AT_SHAPE(1, 2, 2), numbers, NULL, false);
        at_error error = {0};
        at_attention attention;
        assert_true(at_attention_parse(&(at_settings){.normaliser = i == 2 ? "hard" : "softmax"}, &attention, &error));
        const at_attention_in in = {.query = x,
                                    .key = x,
                                    .value = x,
                                    .drop = {.share = i == 0   ? 1
                                                      : i == 1 ? NAN
                                                               : 0.5f}};
        assert_null(at_attention_run(tape, &attention, &in).out);
        assert_string_equal(at_tape_error(tape)->text,
                            i == 0   ? "the share of the weights to drop is 1 and must be from 0 to below 1"
                            : i == 1 ? "the share of the weights to drop is nan and must be from 0 to below 1"
                                     : "normaliser 'hard' has one weight per row, of which no share can be dropped");
    }
    at_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_factors),  cmocka_unit_test(test_bits),     cmocka_unit_test(test_models_drop),
        cmocka_unit_test(test_settings), cmocka_unit_test(test_refusals), cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
