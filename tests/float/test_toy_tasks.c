/* Small tasks that a model must learn, and what only some models can learn: copying, reversing and sorting short
 * rows of symbols. Each is trained from scratch on rows drawn from a seed and tested on others, by greedy decoding.
 * ATTEND_LONG=1 (make check-long) tests every model on every task. */
/* cmocka.h needs these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_of.h"
#include "models/cache.h"
#include "tape/ops.h"
#include "train/optimise.h"

enum { BEGIN, END, FIRST, SYMBOLS = 8, WORDS = FIRST + SYMBOLS, LONGEST = 12, ROWS = 16, TRIALS = 64 };

typedef enum task { COPY, REVERSE, SORT } task;
static const char *const task_names[] = {"copy", "reverse", "sort"};

typedef struct rows {
    int64_t count, length; /* of the sources; a target has one more, its end */
    int32_t source[TRIALS * LONGEST];
    int64_t lengths[TRIALS];
    int32_t input[TRIALS * (LONGEST + 1)], target[TRIALS * (LONGEST + 1)];
} rows;

static int by_size(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

/* Rows of `shortest` to `length` symbols. */
static void random_rows(rows *r, task what, int64_t count, int64_t shortest, int64_t length, at_rng *rng)
{
    r->count = count;
    r->length = length;
    for (int64_t b = 0; b < count; b++) {
        int32_t *from = r->source + b * length, *in = r->input + b * (length + 1), *to = r->target + b * (length + 1);
        const int64_t n = r->lengths[b] = shortest + at_rng_below(rng, (uint32_t)(length - shortest + 1));
        for (int64_t i = 0; i < length; i++)
            from[i] = i < n ? FIRST + (int32_t)at_rng_below(rng, SYMBOLS) : -1;
        for (int64_t i = 0; i < n; i++)
            to[i] = from[what == REVERSE ? n - 1 - i : i];
        if (what == SORT)
            qsort(to, (size_t)n, sizeof *to, by_size);
        in[0] = BEGIN;
        to[n] = END;
        for (int64_t i = 0; i < length; i++)
            in[i + 1] = i < n ? to[i] : END;
        for (int64_t i = n + 1; i <= length; i++)
            to[i] = -1;
    }
}

static void learn(at_model *model, const char *name, task what, int64_t shortest, int64_t length, int updates,
                  double rate)
{
    at_error error = {0};
    at_optimiser_settings settings = {.kind = AT_ADAM,
                                      .learning_rate = rate,
                                      .beta1 = 0.9,
                                      .beta2 = 0.999,
                                      .epsilon = 1e-8,
                                      .clip_norm = 1,
                                      .schedule = AT_COSINE,
                                      .updates = updates};
    at_optimiser *optimiser = at_optimiser_new(&settings, model->params, &error);
    at_arena *arena = at_arena_new();
    rows *r = malloc(sizeof *r);
    at_rng rng = {.seed = 11};
    for (int i = 0; i < updates; i++) {
        random_rows(r, what, ROWS, shortest, length, &rng);
        at_arena_reset(arena);
        at_pass pass = {.tape = at_tape_new(arena, true), .rng = &rng};
        const at_source source = {.rows = ROWS, .length = length, .ids = r->source, .lengths = r->lengths};
        at_parts memory = at_model_encode(model, &pass, &source);
        at_parts state = at_model_start(model, &pass, &source, &memory);
        at_decoded d = at_model_decode(model, &pass, &source, &memory, &state, r->input, length + 1);
        double norm;
        bool skipped;
        if (!d.logits ||
            !at_backward(at_cross_entropy(at_reshape(d.logits, AT_SHAPE(ROWS * (length + 1), WORDS)), r->target, 0)) ||
            !at_optimiser_step(optimiser, 1.0 / (ROWS * (double)length), &norm, &skipped, &error))
            fail_msg("%s on %s: %s%s", name, task_names[what], at_tape_error(pass.tape)->text, error.text);
    }
    free(r);
    at_arena_free(arena);
    at_optimiser_free(optimiser);
}

/* The fraction of target tokens, ends included, that greedy decoding gets right. */
static double accuracy(at_model *model, task what, int64_t shortest, int64_t length)
{
    at_arena *arena = at_arena_new();
    rows *r = malloc(sizeof *r);
    at_rng rng = {.seed = 5000};
    random_rows(r, what, TRIALS, shortest, length, &rng);
    at_pass pass = {.tape = at_tape_new(arena, false), .cache = at_cache_new()};
    const at_source source = {.rows = TRIALS, .length = length, .ids = r->source, .lengths = r->lengths};
    at_parts memory = at_model_encode(model, &pass, &source);
    at_parts state = at_model_start(model, &pass, &source, &memory);
    int32_t said[TRIALS];
    int64_t right = 0, all = 0;
    for (int64_t b = 0; b < TRIALS; b++)
        said[b] = BEGIN;
    for (int64_t t = 0; t <= length; t++) {
        at_decoded d = at_model_decode(model, &pass, &source, &memory, &state, said, 1);
        assert_non_null(d.logits);
        for (int64_t b = 0; b < TRIALS; b++) {
            const at_real *logits = d.logits->value + b * WORDS;
            said[b] = 0;
            for (int32_t w = 1; w < WORDS; w++)
                said[b] = logits[w] > logits[said[b]] ? w : said[b];
            const int32_t target = r->target[b * (length + 1) + t];
            all += target >= 0;
            right += target >= 0 && said[b] == target;
        }
    }
    free(r);
    at_cache_free(pass.cache);
    at_arena_free(arena);
    return (double)right / (double)all;
}

static double learned(const char *text, task what, int64_t length, int updates)
{
    at_model *model = model_of(text, "", WORDS, WORDS, 2);
    learn(model, text, what, 1, length, updates, 0.01);
    double share = accuracy(model, what, 1, length);
    printf("%-8s %.4f  %s\n", task_names[what], share, text);
    at_model_free(model);
    return share;
}

#define TINY "embedding=16 hidden=32"

static void test_learns(void **state)
{
    (void)state;
    static const char *const models[] = {
        "bahdanau " TINY " attention=32 maxout=16",
        "luong " TINY " bidirectional=true score=dot",
        "luong " TINY " bidirectional=true score=general",
        "luong " TINY " bidirectional=true score=additive attention=32",
    };
    const bool all = getenv("ATTEND_LONG") != NULL;
    for (int i = 0; i < 4; i++)
        for (task what = COPY; what <= SORT; what++) {
            if (!all && i > 0 && (int)what != i - 1) /* each of Luong's scores has one of the tasks */
                continue;
            double share = learned(models[i], what, 5, 500);
            if (share < 0.99)
                fail_msg("%s gets only %.2f%% of %s right", models[i], 100 * share, task_names[what]);
        }
}

/* A narrow window that moves with t sees the right position when copying, and the wrong end when reversing: then the
 * state alone would have to hold the whole row. */
static void test_windows(void **state)
{
    (void)state;
    static const char *const seen[] = {"luong " TINY " score=general window=global",
                                       "luong " TINY " score=general window=local-p:2 attention=32"};
    static const char *const narrow = "luong " TINY " score=general window=local-m:2";
    for (int i = 0; i < 2; i++)
        assert_true(learned(seen[i], REVERSE, LONGEST, 500) >= 0.99);
    assert_true(learned(narrow, COPY, LONGEST, 500) >= 0.95);
    assert_true(learned(narrow, REVERSE, LONGEST, 500) < 0.9);
}

/* One vector for the whole source can encode a short row but not a long one; annotations grow with the source. */
static void test_lengths(void **state)
{
    (void)state;
    static const char *const models[] = {"rnn-encdec " TINY " maxout=16", "bahdanau " TINY " attention=32 maxout=16"};
    double of_short[2], of_long[2];
    for (int i = 0; i < 2; i++) {
        at_model *model = model_of(models[i], "", WORDS, WORDS, 2);
        learn(model, models[i], COPY, 1, LONGEST, 500, 0.01);
        of_short[i] = accuracy(model, COPY, 1, 3);
        of_long[i] = accuracy(model, COPY, LONGEST - 1, LONGEST);
        printf("short %.4f, long %.4f  %s\n", of_short[i], of_long[i], models[i]);
        at_model_free(model);
    }
    assert_true(of_short[0] >= 0.9);
    assert_true(of_long[0] <= of_short[0] - 0.2);
    assert_true(of_short[1] >= 0.99 && of_long[1] >= 0.99);
}

/* ---- The Transformer ------------------------------------------------------------------------------------------ */

#define SMALL "transformer layers=1 hidden=32 ffn=32 heads=4 dropout=0 norm=post"

static double accuracy_with_position(const char *position, task what, int64_t length, int updates)
{
    char text[200];
    snprintf(text, sizeof text, SMALL " %s", position);
    at_model *model = model_of(text, "", WORDS, WORDS, 2);
    learn(model, text, what, 1, length, updates, 0.005);
    const double share = accuracy(model, what, 1, length);
    printf("%-8s %.4f  %s\n", task_names[what], share, text);
    at_model_free(model);
    return share;
}

static void test_transformer_learns(void **state)
{
    (void)state;
    for (task what = COPY; what <= SORT; what++) {
        const double share = accuracy_with_position("position=sinusoidal", what, 5, 2000);
        if (share < 0.99)
            fail_msg("the transformer gets only %.2f%% of %s right", 100 * share, task_names[what]);
    }
}

/* Without positions a source is a bag of words: it can be sorted, but not copied. ALiBi encodes the distance of a
 * word but not its side, so a bidirectional encoder cannot distinguish a row from its reverse: it needs a causal
 * one. */
static void test_positions(void **state)
{
    (void)state;
    if (SLOW) /* minutes of training; the build by clang has this test too */
        skip();
    static const char *const schemes[] = {"sinusoidal", "learned", "shaw:4", "rope", "alibi encoder-attention=causal",
                                          "t5"};
    assert_true(accuracy_with_position("position=none", SORT, 5, 1000) >= 0.85);
    assert_true(accuracy_with_position("position=none", COPY, 5, 1000) <= 0.8);
    assert_true(accuracy_with_position("layers=2 position=alibi", COPY, 5, 1000) <= 0.8);
    for (int i = 0; i < 6; i++) {
        char position[80];
        snprintf(position, sizeof position, "layers=2 position=%s", schemes[i]);
        const double share = accuracy_with_position(position, COPY, 5, 1000);
        if (share < 0.85)
            fail_msg("position %s gets only %.2f%% of copy right", schemes[i], 100 * share);
    }
}

/* The size of Shaw's tables: with k = 0 there is no order, k = 1 is nearly enough, and more adds little; either of
 * the two tables suffices. (Lengths beyond those of training take longer to test: attend compare shaw-k.) */
static void test_shaw(void **state)
{
    (void)state;
    if (SLOW)
        skip();
    static const struct {
        const char *position;
        double least, most;
        bool always;
    } table[] = {
        {"layers=2 position=none", 0, 0.7, false},        {"layers=2 position=shaw:0", 0, 0.7, true},
        {"layers=2 position=shaw:1", 0.9, 1, true},       {"layers=2 position=shaw:2", 0.95, 1, true},
        {"layers=2 position=shaw:4", 0.95, 1, false},     {"layers=2 position=shaw:16", 0.95, 1, false},
        {"layers=2 position=shaw:2:keys", 0.85, 1, true}, {"layers=2 position=shaw:2:values", 0.8, 1, true},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (!table[i].always && !getenv("ATTEND_LONG"))
            continue;
        const double share = accuracy_with_position(table[i].position, COPY, 6, 1000);
        if (share < table[i].least || share > table[i].most)
            fail_msg("%s gets %.2f%% of copy right, and should get %g to %g", table[i].position, 100 * share,
                     100 * table[i].least, 100 * table[i].most);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learns),    cmocka_unit_test(test_windows),
        cmocka_unit_test(test_lengths),   cmocka_unit_test(test_transformer_learns),
        cmocka_unit_test(test_positions), cmocka_unit_test(test_shaw),
    };
    at_threads_set(1); /* the rows are too small for more threads */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
