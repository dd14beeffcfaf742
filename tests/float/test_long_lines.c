/* Lines longer than `max_source`: a source is cut to its first units, a language model reads the last units of its line,
 * and on_long says so before the first result. The results are those of the shorter lines, bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "model_of.h"
#include "search/search.h"

#define WORDS "the cat sat on a mat while it rained"

static at_vocabulary *words(void)
{
    at_error error = {0};
    at_vocabulary *made = at_vocabulary_new("word", &error);
    assert_true(made && at_vocabulary_count(made, WORDS, strlen(WORDS), &error) && at_vocabulary_fix(made, &error));
    return made;
}

static at_translator *untrained(const char *model)
{
    at_translator *t = calloc(1, sizeof *t);
    t->source = strcmp(model, "transformer-lm") == 0 ? NULL : words();
    t->target = words();
    t->max_length = 8;
    t->model =
        model_of(model, "hidden=12", t->source ? at_vocabulary_size(t->source) : 0, at_vocabulary_size(t->target), 3);
    return t;
}

/* What one call says and returns. */
typedef struct record {
    at_buffer results, notes;
    int64_t count, noted_before; /* results; notes before the first of them */
    int64_t cut[4];
    bool is_long[4];
} record;

static void on_long(void *context, int64_t line, int64_t units, int64_t read)
{
    record *r = context;
    r->noted_before += r->count == 0;
    at_buffer_print(&r->notes, "%lld:%lld/%lld ", (long long)line, (long long)read, (long long)units);
}

static bool on_result(void *context, int64_t line, const at_result *result)
{
    record *r = context;
    const at_hypothesis *best = &result->best[0];
    assert_int_equal(line, r->count);
    r->cut[line] = result->cut;
    r->is_long[line] = result->is_long;
    r->count++;
    at_buffer_print(&r->results, "%s|%a|%lld\n", best->text, best->score, (long long)result->source_units);
    if (best->weights)
        at_buffer_add(&r->results, best->weights,
                      (size_t)((best->count + 1) * best->source_units) * sizeof *best->weights);
    if (result->features)
        at_buffer_add(&r->results, result->features,
                      (size_t)(result->source_units * result->feature_size) * sizeof *result->features);
    return true;
}

typedef bool way(at_translator *t, const at_search_settings *s, const at_line *lines, record *r, at_error *error);

enum { LINES = 4 };

static bool translate(at_translator *t, const at_search_settings *s, const at_line *lines, record *r, at_error *error)
{
    return at_translate(t, s, lines, LINES, on_result, r, error);
}

static bool align(at_translator *t, const at_search_settings *s, const at_line *lines, record *r, at_error *error)
{
    static const at_line target = {"a mat rained on the cat while it sat on it", 42};
    const at_line targets[LINES] = {target, target, target, target};
    return at_align(t, s, lines, targets, LINES, on_result, r, error);
}

static bool encode(at_translator *t, const at_search_settings *s, const at_line *lines, record *r, at_error *error)
{
    return at_encode(t, s, lines, LINES, on_result, r, error);
}

static record run(way *how, at_translator *t, int64_t max_source, const char *const text[LINES])
{
    at_error error = {0};
    record r = {0};
    at_line lines[LINES];
    const at_search_settings settings = {
        .beam = 2, .max_source = max_source, .on_long = on_long, .wants_weights = t->source && how != encode};
    for (int i = 0; i < LINES; i++)
        lines[i] = (at_line){text[i], strlen(text[i])};
    if (!how(t, &settings, lines, &r, &error))
        fail_msg("%s", error.text);
    assert_int_equal(r.count, LINES);
    return r;
}

static void free_record(record *r)
{
    at_buffer_free(&r->results);
    at_buffer_free(&r->notes);
}

/* 9 words, 5, none, 12; and the first 5 of each */
static const char *const lines[LINES] = {"the cat sat on a mat while it rained", "it sat on the mat", "",
                                         "a a a a the cat sat on a mat it it"};
static const char *const first[LINES] = {"the cat sat on a", "it sat on the mat", "", "a a a a the"};

static void sources_are_cut(void **state)
{
    (void)state;
    static const char *const models[] = {"bahdanau", "luong", "transformer"};
    way *const ways[] = {translate, align, encode};
    for (int m = 0; m < 3; m++) {
        at_translator *t = untrained(models[m]);
        for (int w = 0; w < 3; w++) {
            record whole = run(ways[w], t, 0, lines), cut = run(ways[w], t, 5, lines),
                   shorter = run(ways[w], t, 5, first);
            if (cut.results.size != shorter.results.size ||
                memcmp(cut.results.bytes, shorter.results.bytes, cut.results.size) != 0)
                fail_msg("%s, way %d: a line that is cut has another result than the shorter line", models[m], w);
            assert_true(whole.results.size != cut.results.size ||
                        memcmp(whole.results.bytes, cut.results.bytes, cut.results.size) != 0);
            /* trained on 8 units at most */
            assert_string_equal(whole.notes.bytes, "0:9/9 3:12/12 ");
            assert_string_equal(cut.notes.bytes, "0:5/9 3:5/12 ");
            assert_int_equal(cut.noted_before, 2);
            assert_null(shorter.notes.bytes);
            static const int64_t left_out[LINES] = {4, 0, 0, 7};
            for (int i = 0; i < LINES; i++) {
                assert_int_equal(whole.cut[i], 0);
                assert_int_equal(cut.cut[i], left_out[i]);
                assert_int_equal(cut.is_long[i], left_out[i] > 0);
            }
            free_record(&whole);
            free_record(&cut);
            free_record(&shorter);
        }
        at_translator_free(t);
    }
}

/* The output begins with the whole line, blanks and unknown words as they are; what follows is what follows the last
 * units alone. */
static void language_models_read_the_end(void **state)
{
    (void)state;
    static const char *const text[LINES] = {"The  cat sat\ton a mat while it rained", "it sat on the mat", "",
                                            "a \xff b  a a the cat sat on a mat it it"};
    static const char *const last[LINES] = {"a mat while it rained", "it sat on the mat", "", "on a mat it it"};
    static const char *const before[LINES] = {"The  cat sat\ton ", "", "", "a \xef\xbf\xbd b  a a the cat sat "};
    at_translator *t = untrained("transformer-lm");
    record cut = run(translate, t, 5, text), shorter = run(translate, t, 0, last);
    char *one = cut.results.bytes, *other = shorter.results.bytes;
    for (int i = 0; i < LINES; i++) {
        char *of_cut = strsep(&one, "\n"), *of_shorter = strsep(&other, "\n");
        assert_memory_equal(of_cut, before[i], strlen(before[i]));
        assert_string_equal(of_cut + strlen(before[i]), of_shorter);
    }
    assert_string_equal(cut.notes.bytes, "0:5/9 3:5/13 ");
    free_record(&cut);
    free_record(&shorter);

    /* A text that is scored is never cut. */
    at_error error = {0};
    const at_line target = {WORDS, strlen(WORDS)};
    record whole = {0}, limited = {0};
    assert_true(at_align(t, &(at_search_settings){0}, NULL, &target, 1, on_result, &whole, &error));
    assert_true(at_align(t, &(at_search_settings){.max_source = 5}, NULL, &target, 1, on_result, &limited, &error));
    assert_string_equal(whole.results.bytes, limited.results.bytes);
    free_record(&whole);
    free_record(&limited);
    at_translator_free(t);
}

static void limits(void **state)
{
    (void)state;
    at_error error = {0};
    at_translator *t = untrained("luong");
    assert_int_equal(at_translator_longest(t), 8);
    const at_search_settings settings = {.max_source = -1};
    record r = {0};
    assert_false(translate(t, &settings, NULL, &r, &error));
    assert_string_equal(error.text, "the longest source is a number of units, 1 or more, not -1");
    assert_int_equal(error.code, AT_USAGE);
    at_translator_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sources_are_cut),
        cmocka_unit_test(language_models_read_the_end),
        cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
