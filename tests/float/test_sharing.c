/* Translators for programs: clones that share their models, models loaded from memory, calls that are stopped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"
#include "translator_of.h"

enum { LINES = 40, THREADS = 4 };
static const char *const kinds[] = {"bahdanau hidden=16 embedding=16 attention=16 maxout=16",
                                    "transformer hidden=16 ffn=32 heads=2", "transformer-lm hidden=16 ffn=32"};
enum { KINDS = sizeof kinds / sizeof *kinds };
static at_line lines[LINES];

static void make_lines(void)
{
    static char text[LINES][24];
    at_rng rng = {.seed = 7};
    for (int i = 0; i < LINES; i++) {
        const size_t size = 1 + (size_t)(at_rng_uniform(&rng) * 20);
        for (size_t c = 0; c < size; c++)
            text[i][c] = "abcdefgh "[(int)(at_rng_uniform(&rng) * 9) % 9];
        lines[i] = (at_line){text[i], size};
    }
}

/* Every text, score and weight of a call. */
static bool add_result(void *context, int64_t line, const at_result *result)
{
    at_buffer *all = context;
    for (int64_t i = 0; i < result->count; i++) {
        const at_hypothesis *h = &result->best[i];
        at_buffer_print(all, "%lld %s %.17g\n", (long long)line, h->text, h->score);
        for (int64_t w = 0; h->weights && w < (h->count + 1) * h->source_units; w++)
            at_buffer_print(all, "%.9g ", (double)h->weights[w]);
    }
    return true;
}

static at_buffer translate(at_translator *translator)
{
    const at_search_settings settings = {
        .beam = 3, .n_best = 2, .batch = 7, .wants_weights = at_translator_has_source(translator)};
    at_buffer all = {0};
    at_error error = {0};
    if (!at_translate(translator, &settings, lines, LINES, add_result, &all, &error))
        fail_msg("%s", error.text);
    return all;
}

static void expect_same(at_buffer a, at_buffer b)
{
    assert_true(a.size > 0 && a.size == b.size);
    assert_memory_equal(a.bytes, b.bytes, a.size);
    at_buffer_free(&b);
}

/* A file of the model, as training would write it. */
static void save(const at_translator *translator, char *path)
{
    at_error error = {0};
    snprintf(path, 60, "/tmp/attend-sharing-%d.safetensors", (int)getpid());
    assert_true(at_translator_save(translator, path, false, &error));
}

static at_translator *saved_and_loaded(const char *kind)
{
    char path[60];
    at_error error = {0};
    at_translator *made = translator_of(kind, 5);
    save(made, path);
    at_translator_free(made);
    at_translator *loaded = at_translator_load(path, &error);
    assert_string_equal(error.text, "");
    unlink(path);
    return loaded;
}

static void *translate_in_thread(void *clone)
{
    at_buffer *all = malloc(sizeof *all);
    *all = translate(clone);
    at_translator_free(clone); /* while others still use what it shares */
    return all;
}

/* The first product of each thread finds weights that nobody has packed. */
static void test_clones_have_the_same_bits(void **unused)
{
    (void)unused;
    for (int k = 0; k < KINDS; k++) {
        at_error error = {0};
        at_translator *judge = saved_and_loaded(kinds[k]), *first = saved_and_loaded(kinds[k]);
        at_buffer expected = translate(judge);
        pthread_t thread[THREADS];
        at_translator *clone[THREADS];
        for (int i = 0; i < THREADS; i++)
            assert_non_null(clone[i] = at_translator_clone(first, &error));
        at_translator_free(first);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, translate_in_thread, clone[i]), 0);
        for (int i = 0; i < THREADS; i++) {
            void *all;
            pthread_join(thread[i], &all);
            expect_same(expected, *(at_buffer *)all);
            free(all);
        }
        at_buffer_free(&expected);
        at_translator_free(judge);
    }
}

/* A clone has the members of an ensemble; what is added to it later is its own. */
static void test_a_clone_of_an_ensemble(void **unused)
{
    (void)unused;
    char path[60];
    at_error error = {0};
    at_translator *t = saved_and_loaded(kinds[1]), *other = translator_of(kinds[1], 6);
    save(other, path);
    at_buffer alone = translate(t);
    assert_true(at_translator_add(t, path, &error));
    at_translator *clone = at_translator_clone(t, &error);
    at_buffer both = translate(t);
    expect_same(both, translate(clone));
    assert_true(both.size != alone.size || memcmp(both.bytes, alone.bytes, both.size) != 0);
    assert_true(at_translator_add(clone, path, &error));
    expect_same(both, translate(t));
    unlink(path);
    at_translator_free(t);
    at_buffer_free(&both);
    at_buffer_free(&alone);
    at_translator_free(clone);
    at_translator_free(other);
}

/* A loaded model has its parameters once and no gradients; a clone has none of its own. */
static void test_memory(void **unused)
{
    (void)unused;
    at_error error = {0};
    at_translator *t = saved_and_loaded("transformer hidden=128 ffn=512 layers=2");
    const size_t parameters = (size_t)at_params_count(t->model->params) * sizeof(at_real);
    assert_null(at_params_grads(t->model->params));
    const struct mallinfo2 before = mallinfo2();
    at_translator *clone = at_translator_clone(t, &error);
    const struct mallinfo2 after = mallinfo2();
    assert_ptr_equal(clone->model, t->model);
    assert_ptr_equal(clone->target, t->target);
    assert_true(after.uordblks + after.hblkhd <= before.uordblks + before.hblkhd + parameters / 100);
    at_translator_free(t);
    at_translator_free(clone);
}

static void test_a_model_from_memory(void **unused)
{
    (void)unused;
    for (int k = 0; k < KINDS; k++) {
        char path[60];
        at_error error = {0};
        size_t size;
        at_translator *made = translator_of(kinds[k], 5);
        save(made, path);
        unsigned char *bytes = at_file_read(path, &size, &error);
        unlink(path);
        at_translator *loaded = at_translator_load_memory(bytes, size, &error);
        assert_string_equal(error.text, "");
        at_buffer expected = translate(made);
        bytes[size - 5] ^= 1;
        assert_null(at_translator_load_memory(bytes, size, &error));
        assert_int_equal(error.code, AT_FORMAT);
        assert_non_null(strstr(error.text, "the model in memory"));
        for (size_t cut = 0; cut < size; cut += 1 + size / 50) {
            error = (at_error){0};
            assert_null(at_translator_load_memory(bytes, cut, &error));
            assert_int_equal(error.code, AT_FORMAT);
        }
        free(bytes); /* nothing of it is used any more */
        expect_same(expected, translate(loaded));
        at_buffer_free(&expected);
        at_translator_free(loaded);
        at_translator_free(made);
    }
}

/* ---- Stopping --------------------------------------------------------------------------------------------------- */

typedef struct stopping {
    int stop;
    int64_t results;
} stopping;

static bool stop_at_first(void *context, int64_t line, const at_result *result)
{
    stopping *s = context;
    (void)line, (void)result;
    s->results++;
    __atomic_store_n(&s->stop, 1, __ATOMIC_RELAXED);
    return true;
}

static void note_and_stop(void *context, int64_t line, int64_t units, int64_t read)
{
    stopping *s = context;
    (void)line, (void)units, (void)read;
    __atomic_store_n(&s->stop, 1, __ATOMIC_RELAXED);
}

static void test_a_call_is_stopped(void **unused)
{
    (void)unused;
    at_translator *t = saved_and_loaded(kinds[1]);
    static at_line many[100 * LINES], targets[100 * LINES];
    for (int i = 0; i < 100 * LINES; i++) {
        many[i] = lines[i % LINES];
        targets[i] = (at_line){"the cat", 7};
    }
    for (int call = 0; call < 4; call++) {
        stopping s = {.stop = call == 3};
        at_error error = {0};
        at_search_settings settings = {.batch = 2, .stop = &s.stop, .max_source = 3};
        settings.on_long = call == 2 ? note_and_stop : NULL; /* before the first step */
        const bool done = call == 1 ? at_align(t, &settings, many, targets, 100 * LINES, stop_at_first, &s, &error)
                                    : at_translate(t, &settings, many, 100 * LINES, stop_at_first, &s, &error);
        assert_false(done);
        assert_int_equal(error.code, AT_INTERRUPTED);
        assert_true(call < 2 ? s.results > 0 && s.results < 100 * LINES : s.results == 0);
    }
    stopping s = {0};
    at_error error = {0};
    at_search_settings settings = {.batch = 2, .stop = &s.stop};
    assert_false(at_encode(t, &settings, many, 100 * LINES, stop_at_first, &s, &error));
    assert_int_equal(error.code, AT_INTERRUPTED);
    at_buffer again = translate(t); /* it can be used again */
    at_buffer_free(&again);
    at_translator_free(t);
}

int main(void)
{
    make_lines();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clones_have_the_same_bits),
        cmocka_unit_test(test_a_clone_of_an_ensemble),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_a_model_from_memory),
        cmocka_unit_test(test_a_call_is_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
