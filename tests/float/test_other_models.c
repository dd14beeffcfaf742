/* Real models of other programs, which lie beside the project (../shared/models): every log-probability and weight that
 * is stated of them, token by token. Tolerances are near what the decimals that are given leave open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "models/model.h"
#include "store/translator.h"

#define MODELS TESTS_DIR "/../../shared/models/"
enum { MOST = 256 };

/* ---- Comparing ---- */

static double farthest;
static int64_t compared;

static void expect_near(const char *what, int64_t line, double ours, double theirs, double most)
{
    const double apart = fabs(ours - theirs);
    if (!(apart <= most))
        fail_msg("%s, line %lld: %.9g instead of %.9g", what, (long long)line, ours, theirs);
    farthest = apart > farthest ? apart : farthest;
    compared++;
}

static void say(const char *what)
{
    print_message("%s: %lld numbers, the farthest %.2g away\n", what, (long long)compared, farthest);
    assert_true(compared > 0);
    farthest = 0;
    compared = 0;
}

static at_translator *model_at(const char *path)
{
    at_error error = {0}, absent = {0};
    unsigned char byte;
    if (!at_file_begin(MODELS "README.md", &byte, 1, &absent)) {
        print_message("SKIPPED: no models of other programs in ../shared/models\n");
        skip();
    }
    at_translator *t = at_translator_load(path, &error);
    if (!t && strstr(error.text, "built without")) {
        print_message("SKIPPED: %s\n", error.text);
        skip();
    }
    if (!t)
        fail_msg("%s", error.text);
    return t;
}

/* The lines of a file, compressed or not; fields are separated by `separator`. */
static at_line_list *lines_of(const char *path)
{
    at_error error = {0};
    at_line_list *list = at_line_list_read(path, &error);
    if (!list)
        fail_msg("%s", error.text);
    return list;
}

static char *field_of(at_line line, int index, const char *separator)
{
    static char text[4][40000];
    static int turn;
    char *copy = text[turn++ % 4], *at = copy;
    assert_true(line.size < sizeof *text);
    memcpy(copy, line.text, line.size);
    copy[line.size] = '\0';
    for (; index > 0; index--) {
        at = strstr(at, separator);
        assert_non_null(at);
        at += strlen(separator);
    }
    char *end = strstr(at, separator);
    if (end)
        *end = '\0';
    return at;
}

static int64_t numbers_of(const char *text, double *numbers)
{
    int64_t count = 0;
    for (char *end; count < MOST * MOST; text = end, count++) {
        text += strspn(text, " ,");
        const double number = strtod(text, &end);
        if (end == text)
            break;
        numbers[count] = number;
    }
    return count;
}

/* ---- A target that is given ---- */

typedef struct forced {
    int64_t source_units, count; /* of the target, with its end */
    double log_prob[MOST];
    float weights[MOST * MOST]; /* [count, source_units] of one head */
} forced;

static void force(at_translator *t, const char *source, const char *target, int layer, int head, forced *out)
{
    int32_t ids[MOST], input[MOST + 1];
    int64_t replaced, lengths[1];
    lengths[0] = at_vocabulary_encode(t->source, source, strlen(source), ids, MOST, &replaced, NULL);
    const int64_t units = at_vocabulary_encode(t->target, target, strlen(target), input + 1, MOST, &replaced, NULL);
    assert_true(lengths[0] > 0 && lengths[0] < MOST && units >= 0 && units < MOST - 1);
    input[0] = AT_BEGIN;
    at_arena *arena = at_arena_new();
    const at_source from = {.rows = 1, .length = lengths[0], .ids = ids, .lengths = lengths};
    const at_pass pass = {.tape = at_tape_new(arena, false), .wants_weights = layer > 0, .layer = layer, .head = head};
    const at_parts encoded = at_model_encode(t->model, &pass, &from);
    at_parts state = at_model_start(t->model, &pass, &from, &encoded);
    const at_decoded d = at_model_decode(t->model, &pass, &from, &encoded, &state, input, units + 1);
    if (!at_tape_ok(pass.tape))
        fail_msg("%s", at_tape_error(pass.tape)->text);
    const int64_t V = at_vocabulary_size(t->target);
    out->source_units = lengths[0];
    out->count = units + 1;
    for (int64_t i = 0; i <= units; i++) {
        const float *logits = d.logits->value + i * V;
        double sum = 0, most = -INFINITY;
        for (int64_t v = 0; v < V; v++)
            most = fmax(most, logits[v]);
        for (int64_t v = 0; v < V; v++)
            sum += exp(logits[v] - most);
        out->log_prob[i] = logits[i < units ? input[i + 1] : AT_END] - most - log(sum);
    }
    if (layer > 0)
        memcpy(out->weights, d.weights->value, (size_t)(out->count * lengths[0]) * sizeof *out->weights);
    at_arena_free(arena);
}

/* ---- A search ---- */

typedef struct found {
    int64_t count;
    char text[10][1000];
    double score[10], rank[10];
} found;

static bool take(void *context, int64_t line, const at_result *result)
{
    found *all = context;
    (void)line;
    all->count = result->count;
    for (int64_t i = 0; i < result->count; i++) {
        snprintf(all->text[i], sizeof all->text[i], "%s", result->best[i].text);
        all->score[i] = result->best[i].score;
        all->rank[i] = result->best[i].penalised;
    }
    return true;
}

static void search(at_translator *t, const at_search_settings *settings, const char *line, found *out)
{
    at_error error = {0};
    const at_line one = {line, strlen(line)};
    if (!at_translate(t, settings, &one, 1, take, out, &error))
        fail_msg("%s", error.text);
}

/* ---- CTranslate2 ---- */

static json_t *json_at(const char *path)
{
    at_error error = {0};
    size_t size;
    char *text = (char *)at_file_read(path, &size, &error);
    json_t *value = text ? at_json_read(text, size, path, &error) : NULL;
    free(text);
    assert_non_null(value);
    return value;
}

/* A list of tokens as a line. */
static const char *joined(const json_t *tokens, char line[1000])
{
    line[0] = '\0';
    for (size_t i = 0; i < json_array_size(tokens); i++)
        snprintf(line + strlen(line), 1000 - strlen(line), "%s%s", i > 0 ? " " : "",
                 json_string_value(json_array_get(tokens, i)));
    return line;
}

static void check_scoring(at_translator *t, const json_t *about, const char *what)
{
    static forced f;
    char source[1000], target[1000];
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(about, "cases"), i, one)
    {
        const json_t *expected = json_object_get(one, "logprobs");
        if (json_array_size(json_object_get(one, "source")) == 0)
            continue; /* nothing is computed of an empty source */
        force(t, joined(json_object_get(one, "source"), source), joined(json_object_get(one, "target"), target), 0, 0,
              &f);
        assert_int_equal(f.count, json_array_size(expected));
        for (int64_t k = 0; k < f.count; k++)
            expect_near(what, (int64_t)i, f.log_prob[k], json_number_value(json_array_get(expected, (size_t)k)), 2e-6);
    }
    say(what);
}

static void check_attention(at_translator *t, const json_t *about)
{
    static forced f;
    char source[1000], target[1000];
    size_t i, r, c;
    json_t *one, *row, *weight;
    json_array_foreach(json_object_get(about, "cases"), i, one)
    {
        force(t, joined(json_object_get(one, "source"), source), joined(json_object_get(one, "target"), target), 6, 1,
              &f);
        json_array_foreach(json_object_get(one, "rows"), r, row)
        {
            json_array_foreach(row, c, weight)
                expect_near("attention", (int64_t)i, f.weights[(int64_t)r * f.source_units + (int64_t)c],
                            json_number_value(weight), 2e-6);
        }
    }
    say("CTranslate2, attention");
}

static void check_searches(at_translator *t, const json_t *all)
{
    static const int beams[] = {1, 2, 4};
    char source[1000], target[1000];
    size_t i;
    json_t *one;
    found out;
    json_array_foreach(json_object_get(json_object_get(all, "translation_scores"), "cases"), i, one)
    {
        for (int b = 0; b < 3; b++) {
            search(t, &(at_search_settings){.beam = beams[b], .normalise = 1},
                   joined(json_object_get(one, "source"), source), &out);
            assert_string_equal(out.text[0], joined(json_object_get(one, "target"), target));
            expect_near("score", (int64_t)i, out.rank[0], json_number_value(json_object_get(one, "score")), 2e-6);
        }
    }
    json_array_foreach(json_object_get(json_object_get(all, "hard_prefixes"), "cases"), i, one)
    {
        const json_t *own = json_object_get(one, "beams");
        char prefix[1000], line[2100];
        for (int b = 0; b < 2; b++) {
            const int beam = own ? (int)json_integer_value(json_array_get(own, 0)) : b ? 4 : 1;
            joined(json_object_get(one, "source"), source);
            joined(json_object_get(one, "prefix"), prefix);
            joined(json_object_get(one, "target"), target);
            const size_t unknown = strncmp(prefix, "<unk>", 5) == 0 ? 5 : 0; /* here: any text that is not known */
            snprintf(line, sizeof line, "%s\t%s%s", source, unknown ? "Q" : "", prefix + unknown);
            if (unknown && beam > 1)
                continue; /* a prefix is part of the score here, and not there: this one is very unlikely */
            search(t, &(at_search_settings){.beam = beam, .normalise = 1, .prefix = true}, line, &out);
            assert_string_equal(out.text[0] + (unknown ? 1 : 0), target + unknown);
        }
    }
    say("CTranslate2, searches");
}

/* Columns of lines200.tsv from `column` on: text and mean log-probability, greedily and with a beam of 4. */
static void check_names(at_translator *t, int column, const char *what)
{
    at_line_list *lines = lines_of(MODELS "ct2/lines200.tsv");
    for (int64_t i = 1; i < lines->count; i++)
        for (int b = 0; b < 2; b++) {
            const char *word = field_of(lines->line[i], 0, "\t");
            char source[1000] = "", text[1000] = "";
            for (size_t at = 0, size; at < strlen(word); at += size) {
                size = 1;
                while ((word[at + size] & 0xC0) == 0x80)
                    size++;
                snprintf(source + strlen(source), sizeof source - strlen(source), "%s%.*s", at ? " " : "", (int)size,
                         word + at);
            }
            found out;
            search(t, &(at_search_settings){.beam = b ? 4 : 1, .normalise = 1}, source, &out);
            for (const char *c = out.text[0]; *c; c++)
                if (*c != ' ')
                    snprintf(text + strlen(text), 2, "%c", *c);
            assert_string_equal(text, field_of(lines->line[i], column + 2 * b, "\t"));
            expect_near(what, i, out.rank[0], strtod(field_of(lines->line[i], column + 2 * b + 1, "\t"), NULL), 2e-6);
        }
    assert_int_equal(lines->count, 201);
    at_line_list_free(lines);
    say(what);
}

static void test_ctranslate2(void **unused)
{
    (void)unused;
    at_translator *t = model_at(MODELS "ct2/aren-transliteration-v2"),
                  *small = model_at(MODELS "ct2/aren-transliteration-v2-i8");
    json_t *all = json_at(MODELS "ct2/expected.json");
    check_scoring(t, json_object_get(all, "scoring"), "CTranslate2, scoring");
    check_scoring(small, json_object_get(all, "scoring_int8"), "CTranslate2 in int8, scoring");
    check_attention(t, json_object_get(all, "attention"));
    check_searches(t, all);
    check_names(t, 2, "CTranslate2, 200 names");
    check_names(small, 6, "CTranslate2 in int8, 200 names");
    json_decref(all);
    at_translator_free(t);
    at_translator_free(small);
}

/* ---- Marian ---- */

/* "F0= -1.5 ..." after the name, in a line. */
static const char *after(const char *line, const char *name)
{
    const char *at = strstr(line, name);
    assert_non_null(at);
    return at + strlen(name);
}

static double numbers[MOST * MOST];

/* Word scores, and the alignment if the line has one: groups of a target token, in which each source token has a number. */
static void check_line(at_translator *t, const char *what, int64_t number, const char *source, const char *target,
                       at_line line, int layer)
{
    static forced f;
    char *whole = field_of(line, 0, "\n");
    force(t, source, target, layer, 1, &f);
    int64_t count = numbers_of(after(whole, "WordScores="), numbers);
    assert_int_equal(count, f.count);
    for (int64_t i = 0; i < count; i++)
        expect_near(what, number, f.log_prob[i], numbers[i], 2e-5);
    if (!strstr(whole, ","))
        return;
    char groups[10000] = "";
    for (int i = 0; i < 3 && !strchr(groups, ','); i++) /* the field that is the alignment */
        snprintf(groups, sizeof groups, "%s", field_of(line, i, " ||| "));
    count = numbers_of(groups, numbers);
    assert_int_equal(count, f.count * f.source_units);
    for (int64_t i = 0; i < count; i++)
        expect_near(what, number, f.weights[i], numbers[i], 5e-6);
}

/* A line of n-best output: number ||| text ||| ... */
static void check_lists(at_translator *t, const char *folder, const char *name, int64_t beam, int layer)
{
    char path[400], what[100], source[1000];
    snprintf(path, sizeof path, MODELS "marian/%s/input.txt", folder);
    at_line_list *sources = lines_of(path);
    snprintf(path, sizeof path, MODELS "marian/%s/%s.nbest.gz", folder, name);
    at_line_list *lines = lines_of(path);
    snprintf(what, sizeof what, "Marian %s, %s", folder, name);
    assert_int_equal(lines->count, sources->count * beam);
    for (int64_t i = 0; i < sources->count; i++) {
        found out;
        snprintf(source, sizeof source, "%.*s", (int)sources->line[i].size, sources->line[i].text);
        search(t, &(at_search_settings){.beam = beam, .n_best = beam, .normalise = beam > 1, .max_length_factor = 3},
               source, &out);
        assert_int_equal(out.count, beam);
        for (int64_t k = 0; k < beam; k++) {
            const at_line line = lines->line[i * beam + k];
            char *whole = field_of(line, 0, "\n");
            const double sum = strtod(after(whole, "F0="), NULL);
            assert_int_equal(strtoll(whole, NULL, 10), i);
            expect_near(what, i, out.score[k], sum, 6e-5);
            const char *last = whole;
            for (const char *at; (at = strstr(last, " ||| ")) != NULL;)
                last = at + 5;
            expect_near(what, i, out.rank[k], strtod(last, NULL), beam > 1 ? 1e-5 : 6e-5);
            assert_string_equal(out.text[k], field_of(line, 1, " ||| "));
            check_line(t, what, i, source, out.text[k], line, layer);
        }
    }
    at_line_list_free(sources);
    at_line_list_free(lines);
    say(what);
}

static void check_forced(at_translator *t, const char *folder, int layer)
{
    char path[3][400], what[100], source[1000], target[1000];
    static const char *const names[] = {"input.txt", "reference.txt", "scores.txt.gz"};
    at_line_list *list[3];
    for (int i = 0; i < 3; i++) {
        snprintf(path[i], sizeof path[i], MODELS "marian/%s/%s", folder, names[i]);
        list[i] = lines_of(path[i]);
        assert_int_equal(list[i]->count, 100);
    }
    snprintf(what, sizeof what, "Marian %s, forced", folder);
    for (int64_t i = 0; i < list[0]->count; i++) {
        snprintf(source, sizeof source, "%.*s", (int)list[0]->line[i].size, list[0]->line[i].text);
        snprintf(target, sizeof target, "%.*s", (int)list[1]->line[i].size, list[1]->line[i].text);
        check_line(t, what, i, source, target, list[2]->line[i], layer);
    }
    for (int i = 0; i < 3; i++)
        at_line_list_free(list[i]);
    say(what);
}

static void test_marian(void **unused)
{
    (void)unused;
    static const char *const folders[] = {"transformer", "s2s"};
    for (int i = 0; i < 2; i++) {
        char path[400];
        snprintf(path, sizeof path, MODELS "marian/%s", folders[i]);
        at_translator *t = model_at(path);
        const int layer = i == 0 ? 2 : 1;
        check_forced(t, folders[i], layer);
        check_lists(t, folders[i], "greedy", 1, layer);
        check_lists(t, folders[i], "beam4", 4, layer);
        at_translator_free(t);
    }
}

/* ---- OpenNMT-py ---- */

static void test_onmt(void **unused)
{
    (void)unused;
    static forced f;
    at_translator *t = model_at(MODELS "onmt/luong.pt");
    at_line_list *lines = lines_of(MODELS "onmt/expected.tsv");
    assert_int_equal(lines->count, 199);
    for (int64_t i = 1; i < lines->count; i++) {
        char source[1000];
        found out;
        snprintf(source, sizeof source, "%s", field_of(lines->line[i], 0, "\t"));
        for (int beam = 1; beam <= 10; beam += 9) {
            search(t, &(at_search_settings){.beam = beam, .max_length = 100}, source, &out);
            assert_string_equal(out.text[0], field_of(lines->line[i], beam == 1 ? 1 : 3, "\t"));
        }
        expect_near("beam 10", i, out.score[0], strtod(field_of(lines->line[i], 4, "\t"), NULL), 2e-5);
        force(t, source, field_of(lines->line[i], 1, "\t"), 1, 1, &f);
        assert_int_equal(numbers_of(field_of(lines->line[i], 2, "\t"), numbers), f.count);
        for (int64_t k = 0; k < f.count; k++)
            expect_near("token", i, f.log_prob[k], numbers[k], 1e-5);
        assert_int_equal(numbers_of(field_of(lines->line[i], 5, "\t"), numbers), f.count);
        for (int64_t k = 0; k < f.count; k++) {
            const float *row = f.weights + k * f.source_units;
            for (int64_t s = 0; s < f.source_units; s++) /* near enough to be the largest */
                assert_true(row[s] <= row[(int64_t)numbers[k]] + 1e-4f);
        }
    }
    at_line_list_free(lines);
    at_translator_free(t);
    say("OpenNMT-py, Luong");
}

/* ---- g2p_en ---- */

static void test_g2p(void **unused)
{
    (void)unused;
    at_translator *t = model_at(MODELS "g2p/checkpoint20.npz");
    at_line_list *lines = lines_of(MODELS "g2p/words300.tsv");
    for (int64_t i = 0; i < lines->count; i++) {
        char word[1000], phones[1000];
        int64_t count = 1;
        found out;
        snprintf(word, sizeof word, "%s", field_of(lines->line[i], 0, "\t"));
        snprintf(phones, sizeof phones, "%s", field_of(lines->line[i], 1, "\t"));
        search(t, &(at_search_settings){.max_length = 20}, word, &out);
        assert_string_equal(out.text[0], phones);
        for (const char *c = phones; *c; c++)
            count += *c == ' ';
        if (count < 20) /* at the limit the end is forced, and part of the score */
            expect_near("g2p_en", i, out.score[0], strtod(field_of(lines->line[i], 2, "\t"), NULL), 2e-5);
    }
    assert_int_equal(lines->count, 300);
    at_line_list_free(lines);
    at_translator_free(t);
    say("g2p_en");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ctranslate2), cmocka_unit_test(test_marian),
                                       cmocka_unit_test(test_onmt), cmocka_unit_test(test_g2p)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
