/* Tokens of raw text and their inverse; vocabulary files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "text/units.h"
#include "text/vocabulary.h"

static const at_cleaning moses = {.tokens = AT_TOKENS_MOSES_LIKE};

/* The tokens of a line, which must be joined to the line again. */
static void check(const char *line, const char *tokens)
{
    at_clean clean = {0};
    assert_true(at_clean_line(&clean, moses, line, strlen(line)));
    if (tokens)
        assert_string_equal(clean.text.bytes, tokens);
    at_tokens_join(&clean.text, 0);
    assert_string_equal(clean.text.bytes, line);
    at_clean_free(&clean);
}

static void tokens_are_cut_and_joined(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", ""},
        {"word", "word"},
        {"Hello, (dear) world!", "Hello ￭, (￭ dear ￭) world ￭!"},
        {"It costs $3.14, or 1,000.50.", "It costs $￭ 3.14 ￭, or 1,000.50 ￭."},
        {"At 12:30 on 1/2...", "At 12:30 on 1/2 ￭..."},
        {"well-known a@b.org x_1 -5", "well-known a@b.org x_1 -￭ 5"},
        {"it's don't we're dogs'", "it ￭'s don ￭'t we ￭'re dogs ￭'"},
        {"l'homme aujourd'hui rock'n'roll", "l'￭ homme aujourd'￭ hui rock'￭ n'￭ roll"},
        {"it\u2019s \u201cso\u201d", "it ￭\u2019s \u201c￭ so ￭\u201d"},
        {"see https://a.org/b?c=d,e (www.x.de).", "see https://a.org/b?c=d,e (￭ www.x.de ￭) ￭."},
        {"Grüße aus Köln; straße?!", "Grüße aus Köln ￭; straße ￭? ￭!"},
        {"«Да», сказал он.", "«￭ Да ￭» ￭, сказал он ￭."},
        {"你好,世界", "你 ￭好 ￭,￭ 世 ￭界"},
        {"カタカナ 한국어.", "カ ￭タ ￭カ ￭ナ 한국어 ￭."},
        {"नमस्ते दुनिया।", "नमस्ते दुनिया ￭।"},
        {"مرحبا، كيف؟", "مرحبا ￭، كيف ￭؟"},
        {"a ￭ b￭c ￭￭", NULL},
        {"￭, (￭) ￭￭￭", NULL},
        {"e\u0301te\u0301 n\u0303, \u0301", NULL},
        {"\U0001F37A\U0001F37A!", "\U0001F37A\U0001F37A ￭!"},
        {"' '' a' 'a a'b'c 's", NULL},
        {"www. http:// https://a. (https://b.c/d)", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(cases[i][0], cases[i][1]);
}

/* Any characters with single blanks between words: joining restores them. */
static void any_line_is_restored(void **state)
{
    (void)state;
    static const char *const parts[] = {"a", "bc", "7", ".",       ",",      "'",       "\u2019", "-", "￭", "你",
                                        "(", "\"", "é", "e\u0301", "\u200d", "http://", "www.",   "@", "।", "%"};
    at_rng rng = {.seed = 5};
    for (int i = 0; i < 20000; i++) {
        char line[400] = "";
        for (int words = 1 + (int)at_rng_below(&rng, 4); words > 0; words--) {
            for (int n = 1 + (int)at_rng_below(&rng, 6); n > 0; n--)
                strcat(line, parts[at_rng_below(&rng, sizeof parts / sizeof *parts)]);
            if (words > 1)
                strcat(line, " ");
        }
        check(line, NULL);
    }
}

/* Real text, if it is there. */
static void a_corpus_is_restored(void **state)
{
    (void)state;
    const char *path = getenv("ATTEND_RAW_TEXT");
    at_error error = {0};
    at_line_list *lines = path ? at_line_list_read(path, &error) : NULL;
    if (!lines) {
        puts("SKIPPED: ATTEND_RAW_TEXT names no text");
        skip();
    }
    int64_t same = 0, single = 0;
    for (int64_t i = 0; i < lines->count; i++) {
        at_clean clean = {0};
        at_buffer words = {0};
        at_units units = {lines->line[i].text, lines->line[i].text + lines->line[i].size, true};
        for (at_unit unit; at_units_next(&units, &unit);)
            at_buffer_print(&words, "%s%.*s", words.size > 0 ? " " : "", (int)unit.size, unit.text);
        assert_true(at_clean_line(&clean, moses, lines->line[i].text, lines->line[i].size));
        at_tokens_join(&clean.text, 0);
        if (words.size > 0)
            assert_string_equal(clean.text.bytes, words.bytes);
        single += words.size == lines->line[i].size;
        same += clean.text.size == lines->line[i].size &&
                memcmp(clean.text.bytes, lines->line[i].text, clean.text.size) == 0;
        at_clean_free(&clean);
        at_buffer_free(&words);
    }
    printf("%lld lines, %lld with single blanks only, %lld restored\n", (long long)lines->count, (long long)single,
           (long long)same);
    at_line_list_free(lines);
}

/* The offsets of a unit are those of its bytes in the raw line, without its marks. */
static void offsets_are_those_of_the_line(void **state)
{
    (void)state;
    at_error error = {0};
    const char *line = "Ja,  (na\u00efve) it's!";
    static const char *const parts[] = {"Ja", ",", "(", "na\u00efve", ")", "it", "'s", "!"};
    at_vocabulary *vocabulary = at_vocabulary_new("word", &error);
    at_vocabulary_normalise(vocabulary, moses);
    assert_true(at_vocabulary_count(vocabulary, line, strlen(line), &error) && at_vocabulary_fix(vocabulary, &error));
    int32_t ids[20], offsets[40];
    int64_t replaced;
    assert_int_equal(at_vocabulary_encode(vocabulary, line, strlen(line), ids, 20, &replaced, offsets), 8);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(offsets[2 * i + 1] - offsets[2 * i], strlen(parts[i]));
        assert_memory_equal(line + offsets[2 * i], parts[i], strlen(parts[i]));
    }
    at_buffer text = {0};
    assert_true(at_vocabulary_decode(vocabulary, ids, 8, &text));
    assert_string_equal(text.bytes, "Ja, (na\u00efve) it's!");
    at_buffer_free(&text);
    /* stored and read again */
    at_vocabulary *copy = at_vocabulary_copy(vocabulary, &error);
    assert_true(copy && at_vocabulary_same(vocabulary, copy, &error));
    assert_int_equal(at_vocabulary_encode(copy, "Ja!", 3, ids, 20, &replaced, NULL), 2);
    at_vocabulary_free(copy);
    at_vocabulary_free(vocabulary);
}

/* ---- Vocabulary files ----------------------------------------------------------------------------------------- */

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

static void refused(const char *text, const char *message)
{
    at_error error = {0};
    write_text("./units.txt", text);
    assert_null(at_vocabulary_new("./units.txt", &error));
    assert_string_equal(error.text, message);
}

static void files_of_units(void **state)
{
    (void)state;
    at_error error = {0};
    write_text("./units.txt", "the\t12\r\nhouse\n￭,\t7\n3\t3\n");
    at_vocabulary *words = at_vocabulary_new("./units.txt", &error);
    assert_string_equal(error.text, "");
    assert_int_equal(at_vocabulary_size(words), 8);
    assert_string_equal(at_vocabulary_unit(words, 5), "house");
    assert_int_equal(at_vocabulary_frequency(words, 4), 12);
    assert_int_equal(at_vocabulary_frequency(words, 5), 0);
    assert_true(at_vocabulary_count(words, "more words", 10, &error) && at_vocabulary_fix(words, &error));
    assert_int_equal(at_vocabulary_size(words), 8); /* the text does not change it */
    assert_true(at_vocabulary_save(words, "./units.txt", &error));
    at_vocabulary *again = at_vocabulary_new("./units.txt", &error);
    assert_true(at_vocabulary_same(words, again, &error));
    at_vocabulary_free(words);
    at_vocabulary_free(again);
    write_text("./units.txt", " \t5\né\t4\n\t\t3\n");
    at_vocabulary *characters = at_vocabulary_new("./units.txt", &error);
    assert_string_equal(error.text, "");
    int32_t ids[8];
    int64_t replaced;
    assert_int_equal(at_vocabulary_encode(characters, "é \t", 4, ids, 8, &replaced, NULL), 3);
    assert_true(ids[0] == 5 && ids[1] == 4 && ids[2] == 6);
    at_vocabulary_free(characters);
    refused("", "'./units.txt' is empty: a vocabulary has a unit in each line");
    refused("two words\n", "line 1 of './units.txt' is not one word; a vocabulary has a unit in each line and, "
                           "after a tab, its count");
    refused("one\n\ntwo\n", "line 2 of './units.txt' is not one word; a vocabulary has a unit in each line "
                            "and, after a tab, its count");
    refused("one\ntwo\none\n", "line 3 of './units.txt' has 'one' for the second time");
    unlink("./units.txt");
}

static char folder[] = "/tmp/attend-tokens-XXXXXX";

static int enter(void **state)
{
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tokens_are_cut_and_joined),
                                       cmocka_unit_test(any_line_is_restored), cmocka_unit_test(a_corpus_is_restored),
                                       cmocka_unit_test(offsets_are_those_of_the_line),
                                       cmocka_unit_test(files_of_units)};
    return cmocka_run_group_tests(tests, enter, leave);
}
