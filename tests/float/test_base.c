/* The arena, sticky errors, random numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/table.h"

/* ---- The arena ---- */

static void arena_allocates_and_releases(void **state)
{
    (void)state;
    at_arena *arena = at_arena_new();
    at_mark empty = at_arena_mark(arena);
    char *a = at_arena_take(arena, 100);
    at_mark outer = at_arena_mark(arena);
    char *b = at_arena_take(arena, 1);
    at_mark inner = at_arena_mark(arena);
    char *c = at_arena_zeros(arena, 3 << 20); /* more than a first block */
    assert_true(a && b && c);
    assert_true((uintptr_t)a % AT_ALIGN == 0 && (uintptr_t)b % AT_ALIGN == 0 && (uintptr_t)c % AT_ALIGN == 0);
    assert_true(b >= a + 100);
    for (int i = 0; i < 3 << 20; i++)
        assert_int_equal(c[i], 0);
    memset(c, 1, 3 << 20);
    at_arena_release(arena, inner);
    assert_ptr_equal(at_arena_take(arena, 3 << 20), c);
    at_arena_release(arena, outer);
    assert_ptr_equal(at_arena_take(arena, 5), b);
    char *again = at_arena_zeros(arena, 3 << 20);
    assert_ptr_equal(again, c);
    assert_int_equal(again[(3 << 20) - 1], 0);
    at_arena_release(arena, empty);
    assert_ptr_equal(at_arena_take(arena, 100), a);
    at_arena_reset(arena);
    assert_ptr_equal(at_arena_take(arena, 100), a);
    assert_non_null(at_arena_take(arena, 0));
    assert_null(at_arena_take(arena, SIZE_MAX));
    assert_null(at_arena_take(arena, SIZE_MAX / 4 + 1));
    at_arena_free(arena);
    at_arena_free(NULL);
}

static void arena_counts(void **state)
{
    (void)state;
    at_arena *arena = at_arena_new();
    size_t start = at_arena_peak(arena);
    at_mark mark = at_arena_mark(arena);
    assert_non_null(at_arena_take(arena, 1000));
    assert_non_null(at_arena_take(arena, 64));
    assert_int_equal(at_arena_peak(arena), start + 1024 + 64);
    at_arena_release(arena, mark);
    assert_non_null(at_arena_take(arena, 64));
    assert_int_equal(at_arena_peak(arena), start + 1024 + 64);
    size_t asked = 0;
    for (int step = 0; step < 100; step++) {
        at_arena_reset(arena);
        for (int i = 0; i < 50; i++)
            assert_non_null(at_arena_take(arena, (size_t)(i * 7919 % 300000)));
        if (step == 0)
            asked = at_arena_system(arena);
    }
    assert_true(asked > 1);
    assert_int_equal(at_arena_system(arena), asked);
    at_arena_free(arena);
}

/* The peak size of a growing arena is enough for an arena in the caller's memory, and no byte beyond is touched. */
static void arena_over_callers_memory(void **state)
{
    (void)state;
    at_arena *growing = at_arena_new();
    for (size_t i = 1; i < 20; i++)
        assert_non_null(at_arena_take(growing, i * 100));
    size_t need = at_arena_peak(growing);
    at_arena_free(growing);

    char *memory = aligned_alloc(AT_ALIGN, need + AT_ALIGN);
    memset(memory, 77, need + AT_ALIGN);
    at_arena *arena = at_arena_over(memory, need);
    assert_ptr_equal(arena, memory);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 1; i < 20; i++) {
            char *piece = at_arena_zeros(arena, i * 100);
            assert_true(piece > memory && piece + i * 100 <= memory + need);
        }
        assert_null(at_arena_take(arena, 1));
        assert_int_equal(at_arena_peak(arena), need);
        assert_int_equal(at_arena_system(arena), 0);
        at_arena_reset(arena);
    }
    at_arena_free(arena);
    for (int i = 0; i < AT_ALIGN; i++)
        assert_int_equal(memory[need + (size_t)i], 77);

    arena = at_arena_over(memory + 1, need - 1); /* misaligned: one allocation less fits */
    char *piece = at_arena_take(arena, 1000);
    assert_true(piece && (uintptr_t)piece % AT_ALIGN == 0);
    at_arena_free(arena);
    assert_null(at_arena_over(memory, 10));
    assert_null(at_arena_over(NULL, 1000));
    free(memory);
}

/* ---- Errors ---- */

static void errors_are_sticky(void **state)
{
    (void)state;
    at_error error = {0};
    assert_false(at_fail(&error, AT_USAGE, "The first %s.", "sentence"));
    assert_false(at_fail(&error, AT_FAILED, "The second one."));
    assert_int_equal(error.code, AT_USAGE);
    assert_string_equal(error.text, "The first sentence.");
}

static void errors_cut_between_characters(void **state)
{
    (void)state;
    char text[700];
    for (int lead = 0; lead < 3; lead++) {
        memset(text, 'a', sizeof text);
        for (int i = lead; i + 3 < (int)sizeof text; i += 3)
            memcpy(text + i, "ᵀ", 3);
        text[sizeof text - 1] = '\0';
        at_error error = {0};
        at_fail(&error, AT_FAILED, "%s", text);
        size_t length = strlen(error.text);
        assert_true(length < sizeof error.text && length >= sizeof error.text - 4);
        assert_int_equal((length - (size_t)lead) % 3, 0);
    }
    at_error error = {0};
    memset(text, 'b', sizeof text - 1);
    at_fail(&error, AT_FAILED, "%s", text);
    assert_int_equal(strlen(error.text), sizeof error.text - 1);
}

static void errors_show_control_characters(void **state)
{
    (void)state;
    at_error error = {0};
    at_fail(&error, AT_FORMAT, "no '%s' in '%s'", "\033[2J\n", "a\xff\xc3\u00e4");
    assert_string_equal(error.text, "no '\\x1b[2J\\x0a' in 'a\\xff\\xc3\u00e4'");
    char text[700];
    memset(text, '\r', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    error = (at_error){0};
    at_fail(&error, AT_FORMAT, "%s", text);
    assert_true(strlen(error.text) < sizeof error.text && strncmp(error.text, "\\x0d\\x0d", 8) == 0);
}

/* ---- Random numbers ---- */

/* The known-answer tests that Random123 publishes for Philox 4x32-10. */
static void philox_known_answers(void **state)
{
    (void)state;
    const struct {
        uint64_t seed, counter, lane;
        uint32_t word[4];
    } known[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (int i = 0; i < 3; i++) {
        uint32_t word[4];
        at_philox(known[i].seed, known[i].counter, known[i].lane, word);
        assert_memory_equal(word, known[i].word, sizeof word);
    }
}

static void numbers_are_a_function_of_their_index(void **state)
{
    (void)state;
    at_rng rng = {.seed = 9};
    uint32_t first = at_rng_u32(&rng);
    double second = at_rng_uniform(&rng), third = at_rng_normal(&rng);
    assert_int_equal(rng.counter, 3);
    rng.counter = 1;
    assert_true(at_rng_uniform(&rng) == second);
    assert_true(at_rng_normal(&rng) == third);
    rng.counter = 0;
    assert_int_equal(at_rng_u32(&rng), first);
    at_rng other = {.seed = 10};
    assert_int_not_equal(at_rng_u32(&other), first);
}

static void numbers_are_uniform(void **state)
{
    (void)state;
    enum { N = 200000 };
    at_rng rng = {.seed = 1};
    double sum = 0, squares = 0, cubes = 0;
    for (int i = 0; i < N; i++) {
        double x = at_rng_normal(&rng);
        sum += x;
        squares += x * x;
        cubes += x * x * x;
    }
    /* Four standard deviations of the mean of N numbers. */
    assert_true(fabs(sum / N) < 4 / sqrt(N));
    assert_true(fabs(squares / N - 1) < 4 * sqrt(2.0 / N));
    assert_true(fabs(cubes / N) < 4 * sqrt(15.0 / N));

    sum = squares = 0;
    for (int i = 0; i < N; i++) {
        double x = at_rng_uniform(&rng);
        assert_true(x >= 0 && x < 1);
        double y = at_uniform_at(3, (uint64_t)i, 5);
        assert_true(y > 0 && y < 1);
        sum += x;
        squares += y;
    }
    assert_true(fabs(sum / N - 0.5) < 4 / sqrt(12.0 * N));
    assert_true(fabs(squares / N - 0.5) < 4 / sqrt(12.0 * N));

    /* 3 2^30 does not divide 2^32. Without rejection, a remainder would return the lowest third twice as often as the
     * others, a scaled word the multiples of 3. */
    const uint32_t n = 3u << 30;
    int third[3] = {0}, residue[3] = {0};
    for (int i = 0; i < N; i++) {
        uint32_t x = at_rng_below(&rng, n);
        assert_true(x < n);
        third[x >> 30]++;
        residue[x % 3]++;
    }
    for (int i = 0; i < 3; i++) {
        assert_true(fabs(third[i] - N / 3.0) < 4 * sqrt(N * 2.0 / 9));
        assert_true(fabs(residue[i] - N / 3.0) < 4 * sqrt(N * 2.0 / 9));
    }
    int die[6] = {0};
    for (int i = 0; i < N; i++)
        die[at_rng_below(&rng, 6)]++;
    for (int i = 0; i < 6; i++)
        assert_true(fabs(die[i] - N / 6.0) < 4 * sqrt(N * 5.0 / 36));
    assert_int_equal(at_rng_below(&rng, 1), 0);
}

/* ---- Hashes, arrays that grow, tables ------------------------------------------------------------------------- */

/* The published values of FNV-1a: files hold such hashes, and parameters are drawn from them. */
static void fnv_known_answers(void **state)
{
    (void)state;
    assert_true(at_hash_text("") == UINT64_C(0xcbf29ce484222325));
    assert_true(at_hash_text("a") == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(at_hash_text("foobar") == UINT64_C(0x85944171f73967e8));
    assert_true(at_hash_bytes(at_hash_text("foo"), "bar", 3) == at_hash_text("foobar"));
}

static void arrays_grow(void **state)
{
    (void)state;
    int32_t *number = NULL;
    size_t room = 0, allocations = 0, before;
    for (size_t i = 0; i < 10000; i++) {
        before = room;
        assert_true(AT_GROW(number, room, i + 1));
        assert_true(room > i && (room == before || room >= 2 * before));
        allocations += room != before;
        number[i] = (int32_t)i;
    }
    assert_true(allocations < 12);
    for (int32_t i = 0; i < 10000; i++)
        assert_int_equal(number[i], i);
    before = room;
    assert_false(AT_GROW(number, room, SIZE_MAX / 2)); /* the bytes overflow */
    assert_true(room == before && number[9999] == 9999);
    free(number);
}

static bool is_number(const void *items, int32_t index, const void *key)
{
    return ((const uint64_t *)items)[index] == *(const uint64_t *)key;
}

/* Keys whose hashes collide in their lowest bits, or altogether, are distinguished, before and after the table
 * grows. */
static void tables_find_what_they_hold(void **state)
{
    (void)state;
    enum { KEYS = 1000 };
    static const uint64_t colliding[] = {0, 63, 64, 1 << 12};
    for (size_t c = 0; c < sizeof colliding / sizeof *colliding; c++) {
        uint64_t key[KEYS];
        at_table table = {0};
        for (int32_t i = 0; i < KEYS; i++) {
            const uint64_t hash = (uint64_t)i * colliding[c];
            key[i] = (uint64_t)i * 7;
            assert_true(at_table_reserve(&table, (size_t)i + 1));
            at_table_slot *slot = at_table_find(&table, hash, is_number, key, &key[i]);
            assert_int_equal(slot->index, -1);
            at_table_put(&table, slot, hash, i);
            assert_true(2 * table.count <= table.slots);
        }
        for (int32_t i = 0; i < KEYS; i++)
            assert_int_equal(at_table_find(&table, (uint64_t)i * colliding[c], is_number, key, &key[i])->index, i);
        const uint64_t absent = 1;
        assert_int_equal(at_table_find(&table, colliding[c], is_number, key, &absent)->index, -1);
        at_table_clear(&table);
        assert_true(at_table_reserve(&table, 1));
        assert_int_equal(at_table_find(&table, 0, is_number, key, &key[0])->index, -1);
        assert_false(at_table_reserve(&table, SIZE_MAX / 2));
        at_table_free(&table);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_allocates_and_releases),
        cmocka_unit_test(arena_counts),
        cmocka_unit_test(arena_over_callers_memory),
        cmocka_unit_test(errors_are_sticky),
        cmocka_unit_test(errors_cut_between_characters),
        cmocka_unit_test(errors_show_control_characters),
        cmocka_unit_test(philox_known_answers),
        cmocka_unit_test(numbers_are_a_function_of_their_index),
        cmocka_unit_test(numbers_are_uniform),
        cmocka_unit_test(fnv_known_answers),
        cmocka_unit_test(arrays_grow),
        cmocka_unit_test(tables_find_what_they_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
