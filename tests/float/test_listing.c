/* Listings: they learn their pairs, depend on the seed only, and refuse bad arguments. */
/* cmocka.h needs these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "attend_unstable.h"

enum { SYMBOLS = 5, PAIRS = 2, LENGTH = 3 };

static const int32_t source[PAIRS * LENGTH] = {1, 2, 3, 3, 1, 4};
static const int32_t input[PAIRS * LENGTH] = {0, 3, 2, 0, 4, 1};
static const int32_t target[PAIRS * LENGTH] = {3, 2, 1, 4, 1, 3};
static const at_listing_task task = {SYMBOLS, PAIRS, LENGTH, LENGTH, source, input, target};

static at_listing *listing_of(const char *model, const char *normaliser, uint64_t seed)
{
    at_error error = {0};
    at_listing *listing = at_listing_new(&task, seed, &error);
    assert_non_null(listing);
    assert_true(at_listing_set(listing, "model", model, &error));
    assert_true(at_listing_set(listing, "hidden", "16", &error));
    assert_true(at_listing_set(listing, "dropout", "0", &error));
    assert_true(!normaliser || at_listing_set(listing, "normaliser", normaliser, &error));
    return listing;
}

static void test_learns(void **state)
{
    (void)state;
    at_error error = {0};
    double loss = NAN, again = NAN, other = NAN;
    at_listing *one = listing_of("rnn-attention", NULL, 1), *two = listing_of("rnn-attention", NULL, 1),
               *three = listing_of("rnn-attention", NULL, 2);
    assert_true(at_listing_train(one, 600, &loss, &error));
    for (int i = 0; i < 3; i++) /* in three calls, with the same bits */
        assert_true(at_listing_train(two, 200, &again, &error));
    assert_true(at_listing_train(three, 600, &other, &error));
    assert_true(loss < 0.05 && loss == again && loss != other);
    assert_true(at_listing_attends(one));
    for (int p = 0; p < PAIRS; p++) {
        int32_t output[LENGTH];
        float weights[LENGTH * LENGTH];
        assert_true(at_listing_read(one, source + p * LENGTH, input + p * LENGTH, output, weights, &error));
        assert_memory_equal(output, target + p * LENGTH, sizeof output);
        for (int t = 0; t < LENGTH; t++)
            assert_true(fabsf(weights[t * LENGTH] + weights[t * LENGTH + 1] + weights[t * LENGTH + 2] - 1) < 1e-5f);
    }
    at_listing_free(one);
    at_listing_free(two);
    at_listing_free(three);
}

static void test_hard(void **state)
{
    (void)state;
    at_error error = {0};
    double first = NAN, last = NAN;
    at_listing *listing = listing_of("rnn-attention", "hard", 1);
    assert_true(at_listing_train(listing, 1, &first, &error) && at_listing_train(listing, 400, &last, &error));
    assert_true(last < first / 2);
    at_listing_free(listing);
}

static void refused(at_error *error, const char *message)
{
    assert_string_equal(error->text, message);
    *error = (at_error){0};
}

static void test_refusals(void **state)
{
    (void)state;
    at_error error = {0};
    double loss;
    int32_t output[LENGTH];
    float weights[LENGTH * LENGTH];
    at_listing_task wrong = task;
    wrong.symbols = 4;
    assert_null(at_listing_new(&wrong, 1, &error));
    refused(&error, "source 5 of a listing is the symbol 4 and must be one from 0 to 3");
    wrong = task;
    wrong.pairs = 0;
    assert_null(at_listing_new(&wrong, 1, &error));
    refused(&error, "a listing has 0 pairs of lengths 3 and 3, each must be at least 1 and a side at most 1048576");

    at_listing *listing = listing_of("rnn-plain", NULL, 1);
    assert_false(at_listing_set(listing, "hiden", "3", &error));
    refused(&error, "no setting 'hiden'; did you mean 'hidden'?");
    assert_true(at_listing_train(listing, 1, &loss, &error));
    assert_false(at_listing_attends(listing));
    assert_false(at_listing_set(listing, "hidden", "3", &error));
    refused(&error, "`hidden` is set too late: the listing already has its model");
    assert_false(at_listing_read(listing, source, input, output, weights, &error));
    refused(&error, "model 'rnn-plain' has no attention, so it has no weights");
    assert_false(at_listing_read(listing, (const int32_t[]){0, -1, 0}, input, output, NULL, &error));
    refused(&error, "source 1 of a listing is the symbol -1 and must be one from 0 to 4");
    at_listing_free(listing);
    at_listing_free(NULL);
}

static void test_textbook(void **state)
{
    (void)state;
    int32_t ids[AT_TEXTBOOK_LENGTH];
    at_textbook_pairs pairs = {0};
    const at_textbook *antonyms = at_textbook_find("antonyms"), *beer = at_textbook_find("beer");
    assert_ptr_equal(at_textbook_at(0), antonyms);
    assert_ptr_equal(at_textbook_at(1), beer);
    assert_null(at_textbook_at(2));
    assert_null(at_textbook_at(-1));
    assert_null(at_textbook_find("wine"));
    assert_int_equal(at_textbook_ids(antonyms, "cab", 5, ids), 5);
    assert_memory_equal(ids, ((int32_t[]){5, 3, 4, 2, 2}), 5 * sizeof *ids); /* after S, E, P */
    assert_int_equal(at_textbook_ids(antonyms, "", 1, ids), 1);
    assert_int_equal(at_textbook_ids(antonyms, "women", 0, ids), 5);
    assert_int_equal(at_textbook_ids(antonyms, "womenly", 0, ids), -1);
    assert_int_equal(at_textbook_ids(antonyms, "w0men", 0, ids), -1);
    assert_int_equal(at_textbook_ids(beer, "ich mochte wine", 0, ids), -1);
    assert_int_equal(at_textbook_ids(beer, "i want", 0, ids), 2);
    assert_int_equal(ids[1], 7);
    const at_line want = at_textbook_symbol(beer, 7);
    assert_int_equal(want.size, 4);
    assert_memory_equal(want.text, "want", 4);
    assert_int_equal(at_textbook_symbol(beer, 11).size, 0);
    at_textbook_read(antonyms, &pairs);
    assert_int_equal(pairs.task.symbols, 29);
    assert_int_equal(pairs.task.pairs, 6);
    assert_int_equal(pairs.task.source_length, 5);
    assert_int_equal(pairs.task.target_length, 6);
    assert_int_equal(pairs.task.target[5 * 6 + 2], 'w' - 'a' + 3); /* high - low */
    assert_int_equal(pairs.task.input[5 * 6], 0);
    at_textbook_read(beer, &pairs);
    assert_int_equal(pairs.task.symbols, 11);
    assert_int_equal(pairs.task.pairs, 1);
    assert_memory_equal(pairs.task.source, ((int32_t[]){0, 1, 2, 3, 4}), 5 * sizeof *ids);
    assert_memory_equal(pairs.task.input, ((int32_t[]){5, 6, 7, 8, 9}), 5 * sizeof *ids);
    assert_memory_equal(pairs.task.target, ((int32_t[]){6, 7, 8, 9, 10}), 5 * sizeof *ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learns),
        cmocka_unit_test(test_hard),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_textbook),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
