/* Every allocation fails once: what fails says so, and the process goes on. The sanitizers have a malloc of their own, so
 * there the tests are skipped. tests/torture/allocation.sh does the same with the whole command. */
#include "base/error.h"
#include "base/json.h"
#include "text/vocabulary.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_json), cmocka_unit_test(test_subwords)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
