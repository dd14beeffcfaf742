/* Every allocation fails once: what fails says so, and the process goes on; and a search that goes on allocates nothing. The
 * sanitizers have a malloc of their own, so there the tests are skipped. tests/torture/allocation.sh does the same with the
 * whole command. */
#include "base/error.h"
#include "base/json.h"
#include "search/search.h"
#include "text/vocabulary.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/threads.h"
#include "translator_of.h"

#define RULES TESTS_DIR "/ref/rules.spm"

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define HAS_OWN_MALLOC
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define HAS_OWN_MALLOC
#endif
#endif

static atomic_long allocations; /* since attack() began a turn */
static atomic_long failing;     /* the one that fails, from 1; 0: none */

#ifndef HAS_OWN_MALLOC
#define EXPORTED __attribute__((visibility("default"))) /* for the shared libraries */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static bool fails(void)
{
    if (atomic_fetch_add(&allocations, 1) + 1 != failing)
        return false;
    errno = ENOMEM;
    return true;
}

EXPORTED void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

EXPORTED void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

EXPORTED void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}
#endif

/* Calls `use` with each of its allocations failing, until none does. Where it fails, the error is AT_MEMORY. */
static void attack(bool (*use)(at_error *error), long least)
{
#ifdef HAS_OWN_MALLOC
    (void)use, (void)least, (void)failing, (void)allocations;
    print_message("SKIPPED: a sanitizer's malloc cannot be replaced\n");
    skip();
#else
    long count = 0;
    for (bool reached = true; reached;) {
        at_error error = {0};
        allocations = 0;
        failing = ++count;
        const bool done = use(&error);
        reached = allocations >= count;
        failing = 0;
        if (!done && (error.code != AT_MEMORY || !strstr(error.text, "out of memory for ")))
            fail_msg("allocation %ld fails: code %d, '%s'", count, error.code, error.text);
    }
    assert_true(count > least);
#endif
}

/* A SentencePiece model is loaded, and a line segmented. */
static bool use_subwords(at_error *error)
{
    static const char line[] = "A line \xEF\xBC\xA1 of text, with a word or two.";
    at_vocabulary *vocabulary = at_vocabulary_new(RULES, error);
    int32_t ids[100];
    int64_t replaced;
    const bool whole = vocabulary && at_vocabulary_fix(vocabulary, error);
    if (whole && at_vocabulary_encode(vocabulary, line, sizeof line - 1, ids, 100, &replaced, NULL) < 0)
        at_no_memory(error, "a line");
    at_vocabulary_free(vocabulary);
    return error->code == AT_OK;
}

/* A text is read and written again: with all its names, or not at all. */
static bool use_json(at_error *error)
{
    static const char text[] =
        "{\"the first name\":[1,2.5,true,null,\"a value\"],\"another name, which is longer\":{\"x\":{}},"
        "\"and a third that makes the text grow again\":\"and its value, which does that as well\"}";
    json_t *value = at_json_read(text, sizeof text - 1, "a text", error);
    char *written = value ? at_json_text(value, JSON_COMPACT) : NULL;
    if (value && !written)
        at_no_memory(error, "a text");
    if (written)
        assert_string_equal(written, text);
    free(written);
    json_decref(value);
    return error->code == AT_OK;
}

/* ---- Search ----------------------------------------------------------------------------------------------------- */

enum { LINES = 4000 };
static at_translator *translator;
static at_glossary *glossary;
static at_line lines[LINES];

static bool ignore(void *context, int64_t line, const at_result *result)
{
    (void)context;
    (void)line;
    return result->count > 0;
}

static void open_search(void)
{
    static const char *const some[] = {"abc hgf", "a b c", "dd {x} 12", "hgfedcba"};
    static const char terms[] = "a\tthe cat\nb\t!mat\ndd\tit rained\n";
    char name[] = "/tmp/attend-glossary-XXXXXX";
    at_error error = {0};
    const int file = mkstemp(name);
    assert_true(file >= 0 && write(file, terms, sizeof terms - 1) == sizeof terms - 1 && close(file) == 0);
    glossary = at_glossary_load(name, &error);
    unlink(name);
    translator = translator_of("luong hidden=8", 3);
    for (int i = 0; i < LINES; i++)
        lines[i] = (at_line){some[i % 4], strlen(some[i % 4])};
    at_threads_set(1);
    assert_non_null(glossary);
}

static void close_search(void)
{
    at_translator_free(translator);
    at_glossary_free(glossary);
    at_threads_set(0);
}

static at_search_settings limited(void)
{
    return (at_search_settings){
        .beam = 3, .no_repeat = 2, .coverage_penalty = 0.3, .glossary = glossary, .max_length = 12, .batch = 8};
}

static bool use_limits(at_error *error)
{
    const at_search_settings settings = limited();
    return at_translate(translator, &settings, lines, 4, ignore, NULL, error);
}

static bool use_placeholders(at_error *error)
{
    const at_search_settings settings = {.beam = 2, .n_best = 2, .placeholders = true, .max_length = 8};
    return at_translate(translator, &settings, lines, 4, ignore, NULL, error);
}

static void test_search(void **state)
{
    (void)state;
    open_search();
    attack(use_limits, 10);
    attack(use_placeholders, 10);
    close_search();
}

/* Ten times as many batches and windows ask for no more memory than few. */
static void test_a_steady_search_allocates_nothing(void **state)
{
    (void)state;
#ifdef HAS_OWN_MALLOC
    skip();
#else
    open_search();
    for (int limits = 0; limits < 2; limits++) {
        const at_search_settings plain = {.beam = 3, .max_length = 12, .batch = 8},
                                 settings = limits ? limited() : plain;
        long asked[2];
        for (int i = 0; i < 2; i++) {
            at_error error = {0};
            allocations = 0;
            assert_true(at_translate(translator, &settings, lines, i ? LINES : LINES / 10, ignore, NULL, &error));
            asked[i] = allocations;
        }
        assert_int_equal(asked[0], asked[1]);
    }
    close_search();
#endif
}

static void test_json(void **state)
{
    (void)state;
    attack(use_json, 20);
}

static void test_subwords(void **state)
{
    (void)state;
    attack(use_subwords, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_json), cmocka_unit_test(test_subwords),
                                       cmocka_unit_test(test_search),
                                       cmocka_unit_test(test_a_steady_search_allocates_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
