/* Subwords: training, encoding, decoding. */
#include "base/files.h"
#include "base/rng.h"
#include "text/units.h"
#include "text/vocabulary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <utf8proc.h>

#define TEXT_FILE TESTS_DIR "/ref/text.txt" /* a file of its own, so that editing a document changes no test */
#define RULES     TESTS_DIR "/ref/rules.spm"

static at_vocabulary *learn_file(const char *kind, const char *path, at_cleaning cleaning)
{
    at_error error = {0};
    at_line_list *list = at_line_list_read(path, &error);
    at_vocabulary *vocabulary = at_vocabulary_new(kind, &error);
    assert_non_null(vocabulary);
    at_vocabulary_normalise(vocabulary, cleaning);
    for (int64_t i = 0; i < list->count; i++)
        assert_true(at_vocabulary_count(vocabulary, list->line[i].text, list->line[i].size, &error));
    at_vocabulary_fix(vocabulary, &error);
    assert_string_equal(error.text, "");
    at_line_list_free(list);
    return vocabulary;
}

static at_vocabulary *learn(const char *kind)
{
    return learn_file(kind, TEXT_FILE, (at_cleaning){0});
}

/* The names of the units, separated by bars, with their offsets if wanted: "▁a 0-1|..." */
static void expect_units(const at_vocabulary *vocabulary, const char *line, bool with_offsets, const char *expected)
{
    int32_t ids[200], places[400];
    int64_t replaced;
    int64_t count = at_vocabulary_encode(vocabulary, line, strlen(line), ids, 200, &replaced, places);
    at_buffer text = {0};
    at_buffer_add(&text, "", 0);
    for (int64_t i = 0; i < count; i++) {
        at_buffer_print(&text, "%s%s", i > 0 ? "|" : "", at_vocabulary_unit(vocabulary, ids[i]));
        if (with_offsets)
            at_buffer_print(&text, " %d-%d", places[2 * i], places[2 * i + 1]);
    }
    assert_string_equal(text.bytes, expected);
    at_buffer_free(&text);
}

static void expect_back(const at_vocabulary *vocabulary, const char *line, const char *expected)
{
    int32_t ids[2000];
    int64_t replaced, count = at_vocabulary_encode(vocabulary, line, strlen(line), ids, 2000, &replaced, NULL);
    at_buffer text = {0};
    assert_true(at_vocabulary_decode(vocabulary, ids, count, &text));
    assert_string_equal(text.bytes, expected);
    at_buffer_free(&text);
}

/* ---- Cleaning ------------------------------------------------------------------------------------------------- */

static void expect_clean(at_form form, bool lowercase, const char *line, const char *expected)
{
    at_clean clean = {0};
    assert_true(at_clean_line(&clean, (at_cleaning){.form = form, .lowercase = lowercase}, line, strlen(line)));
    assert_string_equal(clean.text.bytes, expected);
    at_clean_free(&clean);
}

static void test_cleaning(void **state)
{
    (void)state;
    expect_clean(AT_FORM_NONE, false, "A\xff\u00e9 e\u0301", "A\ufffd\u00e9 e\u0301");
    expect_clean(AT_FORM_NFC, false, "e\u0301 o\u0302\u0323 \u1100\u1161\u11a8", "\u00e9 \u1ed9 \uac01");
    expect_clean(AT_FORM_NFC, false, "\ufb01 \u2460 \u212b", "\ufb01 \u2460 \u00c5");
    expect_clean(AT_FORM_NFKC, false, "\ufb01 \u2460 \uff76\uff9e \uff21\u00a0x\u212b", "fi 1 \u30ac A x\u00c5");
    expect_clean(AT_FORM_NFKC, true, "E\u0301 \uff21 \u210d \u2122", "\u00e9 a h tm");
    expect_clean(AT_FORM_NONE, true, "\u00c4\u00d6\u00dc \u0130 \u03a3\u03a3 XYZ",
                 "\u00e4\u00f6\u00fc i \u03c3\u03c3 xyz");
    expect_clean(AT_FORM_NFC, true, "", "");
}

/* For any bytes, the normal form equals that of utf8proc for the whole line, and origins are in order. */
static void test_cleaning_any_line(void **state)
{
    (void)state;
    static const int32_t points[] = {'a',    'E',    ' ',    0x301,  0x323,  0x302,  0xe9,   0x1100, 0x1161, 0x11a8,
                                     0xac00, 0xff76, 0xff9e, 0xfdfa, 0x3099, 0x304b, 0xfb01, 0x9c7,  0x9be,  0x1f600};
    at_rng rng = {.seed = 3};
    for (int round = 0; round < 2000; round++) {
        char line[64];
        size_t size = 0;
        for (int i = (int)at_rng_below(&rng, 12); i > 0; i--)
            size += at_point_write(points[at_rng_below(&rng, sizeof points / sizeof *points)], line + size);
        line[size] = '\0';
        for (int form = 1; form < 3; form++) {
            at_clean clean = {0};
            assert_true(at_clean_line(&clean, (at_cleaning){.form = (at_form)form, .lowercase = false}, line, size));
            utf8proc_uint8_t *whole =
                form == AT_FORM_NFC ? utf8proc_NFC((utf8proc_uint8_t *)line) : utf8proc_NFKC((utf8proc_uint8_t *)line);
            assert_string_equal(clean.text.bytes, (char *)whole);
            for (size_t i = 0; i < clean.text.size; i++) {
                const int32_t *origin = clean.origin + 2 * i;
                assert_true(origin[0] < origin[1] && origin[1] <= (int32_t)size);
                assert_true(i == 0 ? origin[0] == 0 : origin[0] == origin[-2] || origin[0] == origin[-1]);
            }
            free(whole);
            at_clean_free(&clean);
        }
    }
}

/* The same settings for characters and words; offsets are those of the original line. */
static void test_cleaned_units(void **state)
{
    (void)state;
    at_error error = {0};
    at_vocabulary *words = at_vocabulary_new("word", &error);
    at_vocabulary_normalise(words, (at_cleaning){.form = AT_FORM_NFKC, .lowercase = true});
    assert_true(at_vocabulary_count(words, "Caf\u00e9 \ufb01re", 11, &error) && at_vocabulary_fix(words, &error));
    expect_units(words, "CAFE\u0301\u00a0FIRE", true, "caf\u00e9 0-6|fire 8-12");
    at_vocabulary_free(words);
    at_vocabulary *chars = at_vocabulary_new("char", &error);
    at_vocabulary_normalise(chars, (at_cleaning){.form = AT_FORM_NFKC, .lowercase = false});
    assert_true(at_vocabulary_count(chars, "fi\u00e9 ", 5, &error) && at_vocabulary_fix(chars, &error));
    expect_units(chars, "\ufb01e\u0301", true, "f 0-3|i 0-3|\u00e9 3-6");
    at_vocabulary_free(chars);
}

/* ---- Pieces --------------------------------------------------------------------------------------------------- */

static void test_made_from_text(void **state)
{
    (void)state;
    static const char *const kinds[] = {"spm:300", "spm:300:bpe"};
    for (int k = 0; k < 2; k++) {
        at_vocabulary *one = learn(kinds[k]), *two = learn(kinds[k]);
        size_t size, other;
        const unsigned char *bytes = at_vocabulary_subwords(one, &size);
        const unsigned char *same = at_vocabulary_subwords(two, &other);
        assert_int_equal(size, other);
        assert_memory_equal(bytes, same, size);
        assert_int_equal(at_vocabulary_size(one), AT_SPECIALS + 300);
        assert_string_equal(at_vocabulary_unit(one, AT_UNKNOWN), "<unk>");
        expect_back(one, "", "");
        expect_back(one, "   ", "");
        expect_back(one, "the model attends to the words", "the model attends to the words");
        expect_back(one, "  two  blanks ", "two blanks");
        expect_back(one, "an \u6f22\u5b57 here", "an <unk> here");
        at_vocabulary_free(one);
        at_vocabulary_free(two);
    }
}

static void test_places(void **state)
{
    (void)state;
    at_vocabulary *pieces = at_vocabulary_new(RULES, &(at_error){0});
    assert_non_null(pieces);
    expect_units(pieces, "\ufb01 \u2103\u6f22\u5b57 a", true,
                 "\u2581f 0-3|i 0-3|\u2581 3-4|<unk> 4-7|C 4-7|<unk> 7-13|\u2581a 14-15");
    const char *line = " the  model\u00a0x\xff  \u6f22";
    int32_t ids[40], places[80];
    int64_t replaced, words[40];
    int64_t count = at_vocabulary_encode(pieces, line, strlen(line), ids, 40, &replaced, places);
    assert_int_equal(replaced, 1);
    assert_int_equal(at_word_numbers((at_line){line, strlen(line)}, places, count, words), 4);
    static const char *const written[] = {"the", "model", "x\xff", "\u6f22"};
    char gathered[4][20] = {{0}};
    for (int64_t i = 0; i < count; i++)
        if (words[i] >= 0)
            strncat(gathered[words[i]], line + places[2 * i], (size_t)(places[2 * i + 1] - places[2 * i]));
    for (int w = 0; w < 4; w++)
        assert_string_equal(gathered[w], written[w]);
    at_vocabulary_free(pieces);
}

static void test_specials_of_a_file(void **state)
{
    (void)state;
    at_vocabulary *pieces = at_vocabulary_new(RULES, &(at_error){0});
    int32_t all[200];
    at_buffer text = {0};
    for (int32_t id = 0; id < 8; id++) /* ours, then its <unk> <s> </s> and its own control piece */
        all[id] = id == AT_END ? AT_PAD : id;
    assert_true(at_vocabulary_decode(pieces, all, 8, &text));
    assert_string_equal(text.bytes, "<unk>");
    expect_units(pieces, "<s> <mark>", false, "\u2581|<unk>|s|>|\u2581|<mark>");
    at_buffer_free(&text);
    at_vocabulary_free(pieces);
}

/* A stored vocabulary is the same vocabulary, and refuses the pieces of another. */
static void test_stored(void **state)
{
    (void)state;
    at_error error = {0};
    at_vocabulary *one = learn_file("spm:200", TEXT_FILE, (at_cleaning){.form = AT_FORM_NFC, .lowercase = true}),
                  *other = learn("spm:201");
    char *json = at_vocabulary_to_json(one, &error), *again;
    at_vocabulary *stored = at_vocabulary_from_json(json, &error);
    size_t size;
    const unsigned char *bytes = at_vocabulary_subwords(other, &size);
    assert_true(at_vocabulary_needs_subwords(stored));
    assert_false(at_vocabulary_take_subwords(stored, bytes, size, &error));
    assert_string_equal(error.text, "the subword model is not the one that the vocabulary was stored with");
    error = (at_error){0};
    bytes = at_vocabulary_subwords(one, &size);
    assert_true(at_vocabulary_take_subwords(stored, bytes, size, &error));
    again = at_vocabulary_to_json(stored, &error);
    assert_string_equal(json, again);
    expect_back(stored, "Attention IS", "attention is");
    char shown[80];
    at_vocabulary_describe(stored, shown, sizeof shown);
    assert_string_equal(shown, "spm (unigram), nfc, lower case");
    free(json);
    free(again);
    at_vocabulary_free(one);
    at_vocabulary_free(other);
    at_vocabulary_free(stored);
}

static void expect_refusal(const char *kind, const char *line, const char *message)
{
    at_error error = {0};
    at_vocabulary *vocabulary = at_vocabulary_new(kind, &error);
    if (vocabulary != NULL) {
        at_vocabulary_count(vocabulary, line, strlen(line), &error);
        assert_false(at_vocabulary_fix(vocabulary, &error));
    }
    assert_string_equal(error.text, message);
    at_vocabulary_free(vocabulary);
}

static void test_refusals(void **state)
{
    (void)state;
    expect_refusal("spm", "", "vocabulary 'spm' needs its size, as in 'spm:8000'");
    expect_refusal("spm:0", "", "the size of vocabulary 'spm:0' is a whole number, 1 or more, as in 'spm:8000'");
    expect_refusal(
        "spm:9:x", "",
        "no vocabulary 'spm:9:x'; there are 'char', 'word', 'word:8000', 'spm:8000', 'spm:8000:bpe', files that "
        "end in .spm or .model, and files of units such as ./words or words.txt");
    expect_refusal("spm:500", "abc abc", "the text allows 6 pieces at most, so 'spm:500' is too many");
    expect_refusal("spm:3", "abcdefghijkl",
                   "the text has so many different characters that 'spm:3' is too small; it needs at least 14");
    expect_refusal("spm:10:bpe", "   ", "the text has no character to build a vocabulary from");
    expect_refusal("none.spm", "", "cannot read 'none.spm': No such file or directory");
}

/* ---- Against the program
 * -------------------------------------------------------------------------------------------------- */

/* The same as spm_encode, except for the offset of ids: complete files, with Debian's program if it is installed. */
static int64_t compare_with_program(const at_vocabulary *vocabulary, const char *model, const char *open_text)
{
    char command[400], *theirs = NULL, *line = NULL;
    size_t room[2] = {0, 0};
    at_error error = {0};
    size_t model_size;
    const unsigned char *bytes = at_vocabulary_subwords(vocabulary, &model_size);
    at_writer *writer = at_writer_open(model, &error);
    assert_true(at_writer_add(writer, bytes, model_size, &error) && at_writer_commit(writer, &error));
    snprintf(command, sizeof command, "%s | spm_encode --minloglevel=3 --model=%s --output_format=id", open_text,
             model);
    FILE *lines = popen(open_text, "r"), *ids = popen(command, "r");
    int64_t count = 0;
    ssize_t size;
    for (; (size = getline(&line, &room[0], lines)) >= 0; count++) {
        assert_true(getline(&theirs, &room[1], ids) >= 0);
        size -= size > 0 && line[size - 1] == '\n';
        int32_t *ours = malloc((size_t)(2 * size + 2) * sizeof *ours);
        int64_t replaced, units;
        units = at_vocabulary_encode(vocabulary, line, (size_t)size, ours, 2 * size + 2, &replaced, NULL);
        char *at = theirs;
        for (int64_t i = 0; i < units; i++) {
            long id = strtol(at, &at, 10);
            assert_int_equal(ours[i], id == 0 ? AT_UNKNOWN : AT_SPECIALS + id);
        }
        assert_true(*at == '\n' || *at == '\0');
        free(ours);
    }
    assert_int_equal(getline(&theirs, &room[1], ids), -1);
    assert_int_equal(pclose(lines) | pclose(ids), 0);
    free(line);
    free(theirs);
    unlink(model);
    return count;
}

static void test_ids_of_the_program(void **state)
{
    (void)state;
    char model[] = "/tmp/attend_XXXXXX";
    if (system("command -v spm_encode >/dev/null 2>&1") != 0) {
        fprintf(stderr, "skipped: spm_encode is not installed (Debian's package sentencepiece)\n");
        skip();
    }
    close(mkstemp(model));
    static const char *const kinds[] = {"spm:400", "spm:400:bpe"};
    for (int k = 0; k < 2; k++) {
        at_vocabulary *vocabulary = learn(kinds[k]);
        assert_true(compare_with_program(vocabulary, model, "cat " TEXT_FILE) > 100);
        at_vocabulary_free(vocabulary);
    }
}

/* All of Multi30k, with models trained on its training lines. */
static void test_ids_on_multi30k(void **state)
{
    (void)state;
    const char *data = TESTS_DIR "/../../shared/data/multi30k";
    char model[] = "/tmp/attend_XXXXXX", text[] = "/tmp/attend_XXXXXX", command[300];
    if (getenv("ATTEND_LONG") == NULL)
        skip();
    snprintf(command, sizeof command, "command -v spm_encode >/dev/null 2>&1 && test -e %s/train.de.gz", data);
    if (system(command) != 0) {
        fprintf(stderr, "skipped: spm_encode or the data of Multi30k is not there\n");
        skip();
    }
    close(mkstemp(model));
    close(mkstemp(text));
    static const char *const languages[] = {"de", "en", "fr"};
    for (int l = 0; l < 3; l++) {
        snprintf(command, sizeof command, "zcat %s/train.%s.gz >%s", data, languages[l], text);
        assert_int_equal(system(command), 0);
        at_vocabulary *vocabulary = learn_file(l == 2 ? "spm:8000:bpe" : "spm:8000", text, (at_cleaning){0});
        snprintf(command, sizeof command, "zcat %s/*.%s.gz", data, languages[l]);
        assert_true(compare_with_program(vocabulary, model, command) > 30000);
        at_vocabulary_free(vocabulary);
    }
    unlink(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cleaning),
        cmocka_unit_test(test_cleaning_any_line),
        cmocka_unit_test(test_cleaned_units),
        cmocka_unit_test(test_made_from_text),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_specials_of_a_file),
        cmocka_unit_test(test_stored),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_ids_of_the_program),
        cmocka_unit_test(test_ids_on_multi30k),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
