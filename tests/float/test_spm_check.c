/* Hostile .spm files: an error message, or a model that can be used; never a crash. */
#include "base/buffer.h"
#include "base/files.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "text/spm_check_internal.h"
#include "text/spm_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define RULES TESTS_DIR "/ref/rules.spm"

static unsigned char *read_rules(size_t *size)
{
    at_error error = {0};
    unsigned char *bytes = at_file_read(RULES, size, &error);
    assert_string_equal(error.text, "");
    return bytes;
}

static bool count_piece(void *context, const at_spm_found *found)
{
    assert_true(found->id >= 0 && found->begin <= found->end);
    return ++*(int *)context < 1000;
}

/* Checks the bytes, in a block of exactly their size, and uses a model that passes. */
static bool passes(const unsigned char *bytes, size_t size)
{
    static const char *const lines[] = {"", "a \ufb01re of 20\u2103 AAA",
                                        "\u200b\u00a0 \u6f22<mark><ctrl><s> the model"};
    unsigned char *copy = malloc(size > 0 ? size : 1);
    at_error error = {0};
    at_spm_info info;
    memcpy(copy, bytes, size);
    bool sound = at_spm_check(copy, size, "file.spm", &info, &error);
    assert_true(sound == (error.code == AT_OK) && strchr(error.text, '\n') == NULL && at_is_utf8(error.text));
    if (sound) {
        at_spm *spm = at_spm_load(copy, size, &error); /* may still fail its self test */
        for (int i = 0; spm != NULL && i < 3; i++) {
            int count = 0;
            assert_true(at_spm_encode(spm, lines[i], strlen(lines[i]), count_piece, &count));
        }
        at_spm_free(spm);
        at_spm_info_free(&info);
    }
    free(copy);
    return sound;
}

static void test_real_file(void **state)
{
    (void)state;
    size_t size;
    unsigned char *bytes = read_rules(&size);
    at_spm_info info;
    at_error error = {0};
    assert_true(at_spm_check(bytes, size, "rules.spm", &info, &error));
    assert_int_equal(info.count, 150);
    assert_int_equal(info.unknown, 0);
    assert_int_equal(info.model, AT_SPM_UNIGRAM);
    assert_true(info.has_user && !info.has_bytes && !info.ends_words);
    assert_int_equal(info.piece[1].type, AT_PIECE_CONTROL);
    assert_memory_equal(info.piece[1].text, "<s>", 3);
    at_spm_info_free(&info);
    free(bytes);
}

static void test_truncated(void **state)
{
    (void)state;
    size_t size;
    unsigned char *bytes = read_rules(&size);
    int64_t passed = 0;
    for (size_t length = 0; length < size; length++)
        passed += passes(bytes, length);
    assert_int_equal(passed, 1); /* without its self test, which comes last, it is complete */
    free(bytes);
}

/* One changed bit or several changed bytes, for a few seconds. */
static void test_damaged(void **state)
{
    (void)state;
    size_t size;
    unsigned char *bytes = read_rules(&size), *copy = malloc(size);
    at_rng rng = {.seed = 7};
    time_t end = time(NULL) + (getenv("ATTEND_LONG") != NULL ? 60 : 4);
    int64_t refused = 0, passed = 0;
    for (int64_t round = 0; round < 200000 && time(NULL) < end; round++) {
        memcpy(copy, bytes, size);
        for (uint32_t i = round % 2 == 0 ? 1 : 1 + at_rng_below(&rng, 8); i > 0; i--) {
            size_t at = at_rng_below(&rng, (uint32_t)size);
            copy[at] = round % 2 == 0 ? copy[at] ^ (unsigned char)(1u << at_rng_below(&rng, 8))
                                      : (unsigned char)at_rng_u32(&rng);
        }
        if (passes(copy, size))
            passed++;
        else
            refused++;
    }
    assert_true(refused > 20 && passed > 20);
    free(copy);
    free(bytes);
}

/* ---- Files written by hand -------------------------------------------------------------------------------------- */

static void put(at_buffer *file, int number, const void *bytes, size_t size)
{
    unsigned char head[4] = {(unsigned char)(number << 3 | 2), (unsigned char)(size & 0x7f), 0, 0};
    size_t length = 2;
    if (size >= 0x80) {
        head[1] |= 0x80;
        head[2] = (unsigned char)(size >> 7 & 0x7f);
        length = 3;
        if (size >> 14) {
            head[2] |= 0x80;
            head[3] = (unsigned char)(size >> 14);
            length = 4;
        }
    }
    at_buffer_add(file, head, length);
    at_buffer_add(file, bytes, size);
}

static void put_piece(at_buffer *file, const char *text, size_t size, float score, int type)
{
    at_buffer piece = {0};
    unsigned char kind[2] = {3 << 3, (unsigned char)type};
    put(&piece, 1, text, size);
    at_buffer_add(&piece, "\x15", 1);
    at_buffer_add(&piece, &score, 4);
    at_buffer_add(&piece, kind, 2);
    put(file, 1, piece.bytes, piece.size);
    at_buffer_free(&piece);
}

/* The settings and the normaliser unless the case has its own, <unk> and a; then what the case adds. */
static at_buffer begin_file(int own)
{
    at_buffer file = {0};
    for (int part = 2; part <= 3; part++)
        if (part != own)
            put(&file, part, "", 0);
    put_piece(&file, "<unk>", 5, 0, AT_PIECE_UNKNOWN);
    put_piece(&file, "a", 1, -1, AT_PIECE_NORMAL);
    return file;
}

static void expect_fault(at_buffer *file, const char *fault)
{
    at_error error = {0};
    at_spm_info info;
    char message[300];
    snprintf(message, sizeof message, "'x.spm' is not a valid SentencePiece model: %s", fault);
    bool sound = at_spm_check((unsigned char *)file->bytes, file->size, "x.spm", &info, &error);
    assert_string_equal(error.text, fault ? message : "");
    assert_true(sound == (fault == NULL));
    passes((unsigned char *)file->bytes, file->size);
    at_spm_info_free(&info);
    at_buffer_free(file);
}

static void expect_piece_fault(const char *text, size_t size, float score, int type, const char *fault)
{
    at_buffer file = begin_file(0);
    put_piece(&file, text, size, score, type);
    expect_fault(&file, fault);
}

static void test_faults_of_pieces(void **state)
{
    (void)state;
    char longest[600];
    memset(longest, 'x', sizeof longest);
    expect_piece_fault("b", 1, -2, AT_PIECE_NORMAL, NULL);
    expect_piece_fault("", 0, -2, AT_PIECE_NORMAL, "its piece 2 has no text");
    expect_piece_fault("a", 1, -2, AT_PIECE_CONTROL, "two of its pieces have the same text");
    expect_piece_fault("b\0c", 3, -2, AT_PIECE_NORMAL, "its piece 2 is not UTF-8");
    expect_piece_fault("\xc3(", 2, -2, AT_PIECE_NORMAL, "its piece 2 is not UTF-8");
    expect_piece_fault(longest, 512, -2, AT_PIECE_NORMAL, NULL);
    expect_piece_fault(longest, 513, -2, AT_PIECE_NORMAL, "its piece 2 is longer than 512 bytes");
    expect_piece_fault(longest, 65, -2, AT_PIECE_USER, "its piece 2 is user-defined and longer than 64 bytes");
    expect_piece_fault("b", 1, -2, 7, "its piece 2 has a type that is not known");
    expect_piece_fault("b", 1, -2, 0, "its piece 2 has a type that is not known");
    expect_piece_fault("b", 1, 0.0f / 0.0f, AT_PIECE_NORMAL, "its piece 2 has a score that is not a number");
    expect_piece_fault("b", 1, -1e30f, AT_PIECE_NORMAL, "its piece 2 has a score that is not a number");
    expect_piece_fault("b", 1, 0, AT_PIECE_UNKNOWN, "it needs exactly one unknown piece");
    expect_piece_fault("<0x0A>", 6, 0, AT_PIECE_BYTE, "it has byte pieces and does not fall back to bytes");
    expect_piece_fault("<0x0a>", 6, 0, AT_PIECE_BYTE, "one of its byte pieces does not have the form <0x0A>");
}

static void test_faults_of_the_rest(void **state)
{
    (void)state;
    static const struct {
        int number;
        const char *bytes;
        size_t size;
        const char *fault;
    } cases[] = {
        {2, "\x18\x02", 2, NULL},
        {2, "\x18\x05", 2, "it is neither a unigram nor a BPE, word or char model"},
        {2, "\x1a\x01x", 3, "the kind of the model has another type than it should have"},
        {2, "\x18\x01\x18\x02", 4, "the kind of the model occurs twice"},
        {2, "\x98\x02\x01", 3, "it falls back to bytes and lacks pieces for some of them"},
        {3, "\x12\x03xyz", 5, "its normaliser's table is truncated"},
        {3, "\x12\x05\x01\x00\x00\x00z", 7, "the size of its normaliser's table is wrong"},
        {3, "\x12\x09\x04\x00\x00\x00zzzz\x00", 11, "its normaliser's table points outside itself"},
        {5, "", 0, "it has a denormaliser, which is not supported"},
        {4, "\x0a\x03\x0a\x01\xff", 5, "a sample of its self test is not UTF-8"},
        {9, "\x0b", 1, NULL},
        {2, "\x0b", 1, "a field has a type that such files do not have"},
        {2, "\x00\x00", 2, "the number of a field is broken"},
        {2, "\x12\x01", 2, "a field is longer than what is left of the file"},
        {2, "\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11, "a number in it is truncated or has more than 64 bits"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        at_buffer file = begin_file(cases[i].number);
        put(&file, cases[i].number, cases[i].bytes, cases[i].size);
        expect_fault(&file, cases[i].fault);
    }
    at_buffer empty = {0}, special = {0};
    at_buffer_add(&empty, "", 0);
    expect_fault(&empty, "it is empty");
    put(&special, 2, "", 0);
    put_piece(&special, "<unk>", 5, 0, AT_PIECE_UNKNOWN);
    at_buffer cut = {0};
    at_buffer_add(&cut, special.bytes, special.size);
    expect_fault(&cut, "it has no settings or no normaliser, so it may be truncated");
    put(&special, 3, "", 0);
    expect_fault(&special, "it has only special pieces");
}

/* A trie of 512 units whose root leads to a chain of `depth` units for the letter a, each with a value; the last leads
 * on to unit `last`. */
static void chain(uint32_t *units, int depth, uint32_t last)
{
    memset(units, 0, 512 * 4);
    uint32_t place = 0, base;
    for (int i = 0; i <= depth; i++) {
        base = i == depth ? last : (uint32_t)(i + 1) * 4; /* blocks of 4, so that base and base xor 'a' are free */
        uint32_t unit = (place ^ base) << 10 | (i > 0 ? 1u << 8 | 'a' : 0);
        units[place] = unit;
        units[base] = 0x80000000; /* the value: the text at 0 */
        place = base ^ 'a';
    }
}

static void test_faults_of_the_table(void **state)
{
    (void)state;
    static const struct {
        int depth;
        uint32_t last;
        const char *fault;
    } cases[] = {
        {1, 40, NULL},
        {3, 400, NULL},
        {31, 400, NULL},
        {32, 400, "more than 31 entries of its normaliser's table are prefixes of one text"},
        {3, 600, "its normaliser's table points outside itself"},
        {3, 8, "its normaliser's table has a cycle"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        at_buffer file = begin_file(3), table = {0}, part = {0};
        uint32_t units[1024], size = 512 * 4;
        chain(units, cases[i].depth, cases[i].last);
        at_buffer_add(&table, &size, 4);
        at_buffer_add(&table, units, size);
        at_buffer_add(&table, "b\0", 2);
        put(&part, 2, table.bytes, table.size);
        put(&file, 3, part.bytes, part.size);
        expect_fault(&file, cases[i].fault);
        at_buffer_free(&table);
        at_buffer_free(&part);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real_file),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_faults_of_pieces),
        cmocka_unit_test(test_faults_of_the_rest),
        cmocka_unit_test(test_faults_of_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
