/* Vocabularies of other programs: pieces found by their text, tags, units added to a line. Where OPUS-MT's files lie beside
 * the project, its 50 lines have the numbers that Hugging Face's tokeniser gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "store/imported_internal.h"

#define OPUS TESTS_DIR "/../../shared/models/opus"

static at_row_ids list_of(const char *json, const char *spm_folder, const char *spm, int64_t rows)
{
    static const at_row_specials specials = {.pad = "<pad>", .unknown = "<unk>", .end = "</s>"};
    at_error error = {0};
    at_row_names names = {0};
    at_row_ids ids = {0};
    at_bundle bundle = {0};
    json_t *words = json_loads(json, 0, NULL);
    assert_non_null(words);
    assert_true(at_row_names_of_json(words, "words", &names, &error));
    assert_true(at_row_ids_make(&names, rows ? rows : names.count, &specials, &ids, &error));
    assert_true(at_bundle_open(&bundle, spm_folder, &error));
    assert_true(at_row_ids_pieces(&ids, &bundle, spm, true, &error));
    assert_string_equal(error.text, "");
    at_vocabulary_frame(ids.vocabulary, false, true);
    at_bundle_close(&bundle);
    at_row_names_free(&names);
    json_decref(words);
    return ids;
}

/* The rows of a line's units. */
static int64_t rows_of(const at_row_ids *ids, const char *line, int64_t *rows, int64_t room, int32_t *offsets)
{
    int32_t found[2000];
    int64_t replaced;
    const int64_t count = at_vocabulary_encode(ids->vocabulary, line, strlen(line), found, room, &replaced, offsets);
    assert_in_range(count, 0, room);
    for (int64_t i = 0; i < count; i++)
        rows[i] = ids->row[found[i]];
    return count;
}

/* Letters that rules.spm does not know as it numbers them: the list is the one that counts. */
static void test_pieces_tags_and_ends(void **unused)
{
    (void)unused;
    at_row_ids ids = list_of("{\"</s>\":0,\"<unk>\":1,\"\\u2581\":2,\"a\":3,\"b\":5,\">>fra<<\":4,\"\\u2581a\":6}",
                             TESTS_DIR "/ref", "rules.spm", 0);
    int64_t rows[20];
    int32_t offsets[40];
    int64_t count = rows_of(&ids, ">>fra<< a", rows, 20, offsets);
    assert_true(count >= 3);
    assert_int_equal(rows[0], 4);
    assert_int_equal(offsets[0], 0);
    assert_int_equal(offsets[1], 7);
    assert_int_equal(rows[count - 1], 0);
    assert_int_equal(offsets[2 * count - 1], 9);
    count = rows_of(&ids, ">>deu<< a", rows, 20, offsets); /* not in the list */
    assert_int_equal(rows[0], 1);
    assert_int_equal(rows_of(&ids, "", rows, 20, offsets), 0);
    /* Written and read again, it is the same. */
    at_error error = {0};
    at_vocabulary *copy = at_vocabulary_copy(ids.vocabulary, &error);
    assert_string_equal(error.text, "");
    assert_true(at_vocabulary_same(copy, ids.vocabulary, &error));
    int32_t here[20], there[20];
    int64_t replaced;
    count = at_vocabulary_encode(ids.vocabulary, ">>fra<< ab", 10, here, 20, &replaced, NULL);
    assert_int_equal(at_vocabulary_encode(copy, ">>fra<< ab", 10, there, 20, &replaced, NULL), count);
    assert_memory_equal(here, there, (size_t)count * sizeof *here);
    /* Few places: the count is that of all units, and nothing is written beyond them. */
    for (int64_t room = 0; room < count; room++) {
        there[room] = -7;
        assert_int_equal(at_vocabulary_encode(copy, ">>fra<< ab", 10, there, room, &replaced, NULL), count);
        assert_int_equal(there[room], -7);
        assert_memory_equal(here, there, (size_t)room * sizeof *here);
    }
    assert_int_equal(at_vocabulary_shorten(copy, there, count, 2), 2);
    assert_int_equal(there[1], AT_END);
    at_vocabulary_free(copy);
    at_row_ids_free(&ids);
}

/* The text of a file in memory; NULL: there is none. */
static char *text_of(const char *path)
{
    at_error error = {0};
    size_t size;
    char *bytes = (char *)at_file_read(path, &size, &error), *text = bytes ? strndup(bytes, size) : NULL;
    free(bytes);
    return text;
}

/* Every line of a side: the pieces of its units, their numbers, and the text that they are. */
static void check_opus(const char *vocab, const char *spm, const char *path, size_t count)
{
    char *expected = text_of(path);
    assert_non_null(expected);
    at_row_ids ids = list_of(vocab, OPUS, spm, 0);
    json_t *lines = json_loads(expected, 0, NULL), *line;
    size_t index;
    assert_int_equal(json_array_size(lines), count);
    json_array_foreach(lines, index, line)
    {
        const json_t *numbers = json_object_get(line, "ids"), *pieces = json_object_get(line, "pieces");
        const char *text = json_string_value(json_object_get(line, "text")),
                   *decoded = json_string_value(json_object_get(line, "decoded"));
        int64_t rows[2000];
        int32_t found[2000];
        int64_t replaced;
        const int64_t units = rows_of(&ids, text, rows, 2000, NULL);
        if (units == 0) /* an empty line stays empty here */
            continue;
        assert_int_equal(units, json_array_size(numbers));
        at_vocabulary_encode(ids.vocabulary, text, strlen(text), found, 2000, &replaced, NULL);
        for (int64_t i = 0; i < units; i++) {
            const char *piece = json_string_value(json_array_get(pieces, (size_t)i));
            assert_int_equal(rows[i], json_integer_value(json_array_get(numbers, (size_t)i)));
            if (piece && found[i] >= AT_SPECIALS)
                assert_string_equal(at_vocabulary_unit(ids.vocabulary, found[i]), piece);
        }
        at_buffer back = {0};
        assert_true(at_vocabulary_decode(ids.vocabulary, found, units, &back));
        if (decoded)
            assert_string_equal(back.bytes, decoded);
        at_buffer_free(&back);
    }
    json_decref(lines);
    at_row_ids_free(&ids);
    free(expected);
}

static void test_opus(void **unused)
{
    (void)unused;
    char *vocab = text_of(OPUS "/vocab.json");
    if (!vocab) {
        print_message("SKIPPED: no models of other programs in ../shared/models\n");
        skip();
    }
    check_opus(vocab, "source.spm", OPUS "/expected.json", 50);
    check_opus(vocab, "target.spm", OPUS "/expected_target.json", 6);
    free(vocab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pieces_tags_and_ends), cmocka_unit_test(test_opus)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
