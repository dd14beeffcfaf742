/* Models of every kind, untrained, through the public functions: as many results as lines for any bytes, the same
 * for any batch size and number of threads, forced decoding equal to search, and no allocation in later steps. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "search/search.h"

/* ---- Counting allocations --------------------------------------------------------------------- */

static int64_t allocations;

#ifndef __SANITIZE_ADDRESS__
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);

void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    allocations++;
    return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    allocations++;
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    allocations++;
    *memory = __libc_memalign(alignment, size);
    return *memory ? 0 : 12;
}
#endif

/* ---- Untrained models ----------------------------------------------------------------------------------------- */

static const char letters[] = "abcdefgh ";

static at_vocabulary *vocabulary(const char *kind, const char *line)
{
    at_error error = {0};
    at_vocabulary *made = at_vocabulary_new(kind, &error);
    assert_true(made && at_vocabulary_count(made, line, strlen(line), &error) && at_vocabulary_fix(made, &error));
    return made;
}

/* The index of the next model that reads text; test_picture_search.c is for those that read pictures. */
static int next_text(int kind)
{
    while (at_model_kind_at(kind) && at_model_kind_at(kind)->has_pictures)
        kind++;
    return kind;
}

/* An untrained model that never generates the end, so that batches stay full; scaled parameters make its outputs
 * differ. */
static at_translator *untrained(const at_model_kind *kind)
{
    at_error error = {0};
    at_translator *t = calloc(1, sizeof *t);
    t->source = kind->has_source ? vocabulary("char", letters) : NULL;
    t->target = vocabulary("word", "the cat sat on a mat while it rained");
    t->max_length = 20;
    at_model_settings settings = {.embedding = 9, .hidden = 12, .attention = 6, .maxout = 5, .heads = 2};
    at_given given = {0};
    snprintf(settings.model, sizeof settings.model, "%s", kind->name);
    settings.source_size = t->source ? at_vocabulary_size(t->source) : 0;
    settings.target_size = at_vocabulary_size(t->target);
    if (!strstr(kind->fields, "attention"))
        settings.attention = 0;
    if (!strstr(kind->fields, "heads"))
        settings.heads = 0;
    if (!strstr(kind->fields, "maxout"))
        settings.maxout = 0;
    assert_true(at_model_settings_complete(&settings, &given, &error));
    t->model = at_model_new(&settings, 3, &error);
    if (!t->model)
        fail_msg("%s", error.text);
    at_real *values = at_params_values(t->model->params);
    for (int64_t i = 0; i < at_params_count(t->model->params); i++)
        values[i] *= 4;
    at_params_changed(t->model->params);
    return t;
}

typedef struct record {
    at_buffer bytes;
    int64_t lines;
} record;

static bool note(void *context, int64_t line, const at_result *result)
{
    record *r = context;
    assert_int_equal(line, r->lines++);
    assert_true(result->count >= 1);
    for (int64_t i = 0; i < result->count; i++) {
        const at_hypothesis *h = &result->best[i];
        assert_true(at_is_utf8(h->text) && strlen(h->text) == h->size && !strchr(h->text, '\n'));
        assert_true(isfinite(h->score) && isfinite(h->penalised));
        at_buffer_print(&r->bytes, "%s %a %a ", h->text, h->score, h->penalised);
        if (h->weights)
            at_buffer_add(&r->bytes, h->weights, (size_t)((h->count + 1) * h->source_units) * sizeof *h->weights);
    }
    return true;
}

enum { SOME = 60, LONGEST = 25 };

/* A language model has attention, but no source to attend to. */
static bool has_weights(const at_translator *t)
{
    return t->model->kind->has_attention && t->model->kind->has_source;
}

static void random_lines(char bytes[][LONGEST], at_line *lines, int64_t count, const char *from, uint64_t seed)
{
    at_rng rng = {seed, 0};
    for (int64_t i = 0; i < count; i++) {
        lines[i] = (at_line){bytes[i], at_rng_below(&rng, LONGEST)};
        for (size_t c = 0; c < lines[i].size; c++)
            bytes[i][c] = from[at_rng_below(&rng, (uint32_t)strlen(from))];
    }
}

static void test_every_model_translates_the_same_in_any_batch(void **unused)
{
    (void)unused;
    char bytes[SOME][LONGEST];
    at_line lines[SOME];
    random_lines(bytes, lines, SOME, letters, 1);
    for (int kind = next_text(0); at_model_kind_at(kind); kind = next_text(kind + 1)) {
        at_translator *t = untrained(at_model_kind_at(kind));
        record judge = {0};
        for (int run = 0; run < 4; run++) {
            at_error error = {0};
            record r = {0};
            at_search_settings settings = {.beam = 3, .n_best = 2, .length_penalty = 0.6, .max_length_factor = 1};
            settings.batch = (int64_t[]){64, 1, 7, 20}[run];
            settings.wants_weights = has_weights(t);
            settings.max_length = t->model->kind->has_source ? 0 : 30;
            at_threads_set(1 + run % 3);
            if (!at_translate(t, &settings, lines, SOME, note, run ? &r : &judge, &error))
                fail_msg("%s", error.text);
            if (run) {
                assert_int_equal(r.bytes.size, judge.bytes.size);
                assert_memory_equal(r.bytes.bytes, judge.bytes.bytes, r.bytes.size);
            }
            at_buffer_free(&r.bytes);
        }
        at_buffer_free(&judge.bytes);
        at_translator_free(t);
    }
    at_threads_set(0);
}

/* The lines of a stream, which has no more for the moment after every 7th. */
typedef struct stream {
    record written; /* first, as `note` expects it */
    const at_line *lines;
    int64_t next;
    bool waited;
    char copy[LONGEST]; /* a line is valid only until the next one is requested */
} stream;

static at_stream next_line(void *context, at_line *line, at_error *error)
{
    (void)error;
    stream *s = context;
    if (s->next == SOME)
        return AT_STREAM_END;
    s->waited = s->next % 7 == 0 && !s->waited;
    if (s->waited)
        return AT_STREAM_WAIT;
    *line = (at_line){s->copy, s->lines[s->next].size};
    memset(s->copy, '?', sizeof s->copy);
    memcpy(s->copy, s->lines[s->next++].text, line->size);
    return AT_STREAM_LINE;
}

/* The same texts, scores and weights from a stream as from an array, in search and in sampling, for every model. */
static void test_a_stream_has_the_same_bits(void **unused)
{
    (void)unused;
    char bytes[SOME][LONGEST];
    at_line lines[SOME];
    random_lines(bytes, lines, SOME, letters, 9);
    for (int kind = next_text(0); at_model_kind_at(kind); kind = next_text(kind + 1)) {
        at_translator *t = untrained(at_model_kind_at(kind));
        for (int run = 0; run < 2; run++) {
            at_error error = {0};
            record judge = {0};
            stream s = {.lines = lines};
            at_search_settings settings = {.beam = 3, .n_best = 2, .batch = 5, .wants_weights = has_weights(t)};
            settings.temperature = run;
            settings.max_length = t->model->kind->has_source ? 0 : 30;
            assert_true(at_translate(t, &settings, lines, SOME, note, &judge, &error));
            if (!at_translate_stream(t, &settings, next_line, note, &s, &error))
                fail_msg("%s", error.text);
            assert_int_equal(s.written.lines, SOME);
            assert_int_equal(s.written.bytes.size, judge.bytes.size);
            assert_memory_equal(s.written.bytes.bytes, judge.bytes.bytes, judge.bytes.size);
            at_buffer_free(&s.written.bytes);
            at_buffer_free(&judge.bytes);
        }
        at_translator_free(t);
    }
}

/* With NaN parameters no line has a result, whatever the model: search, sampling, forced decoding and features fail. */
static void test_a_damaged_model_fails(void **unused)
{
    (void)unused;
    const at_line lines[] = {{"abc", 3}, {"", 0}, {"h", 1}};
    const at_search_settings ways[] = {{.beam = 3}, {.temperature = 1}};
    for (int k = next_text(0); at_model_kind_at(k); k = next_text(k + 1)) {
        at_translator *t = untrained(at_model_kind_at(k));
        at_real *values = at_params_values(t->model->params);
        const bool has_source = at_translator_has_source(t);
        for (int64_t i = 0; i < at_params_count(t->model->params); i++)
            values[i] = i % 3 ? (at_real)NAN : (at_real)INFINITY;
        at_params_changed(t->model->params);
        record r = {0};
        for (int w = 0; w < 4; w++) {
            at_error error = {0};
            bool done = w < 2    ? at_translate(t, &ways[w], lines, 3, note, &r, &error)
                        : w == 2 ? at_align(t, &ways[0], has_source ? lines : NULL, lines, 3, note, &r, &error)
                                 : at_encode(t, &ways[0], lines, 3, note, &r, &error);
            assert_false(done);
            if (w < 3 || error.code == AT_FAILED) /* not every model has features */
                assert_non_null(strstr(error.text, " are not finite; its parameters are too large"));
        }
        assert_int_equal(r.lines, 0);
        at_translator_free(t);
    }
}

/* ---- Forced decoding ------------------------------------------------------------------------------------------ */

typedef struct pair {
    char text[400];
    size_t size;
    double score;
} pair;

static bool keep_pair(void *context, int64_t line, const at_result *result)
{
    pair *pairs = context;
    snprintf(pairs[line].text, sizeof pairs[line].text, "%s", result->best[0].text);
    pairs[line].size = strlen(pairs[line].text);
    pairs[line].score = result->best[0].score;
    return true;
}

static bool compare_pair(void *context, int64_t line, const at_result *result)
{
    const pair *pairs = context;
    assert_string_equal(result->best[0].text, pairs[line].text);
    assert_true(fabs(result->best[0].score - pairs[line].score) <= 1e-4 * (1 + fabs(pairs[line].score)));
    return true;
}

static void test_forced_scores_are_those_of_search(void **unused)
{
    (void)unused;
    char bytes[SOME][LONGEST];
    at_line lines[SOME], targets[SOME];
    pair pairs[SOME];
    random_lines(bytes, lines, SOME, letters, 4);
    for (int kind = next_text(0); at_model_kind_at(kind); kind = next_text(kind + 1)) {
        at_error error = {0};
        at_translator *t = untrained(at_model_kind_at(kind));
        at_search_settings settings = {.batch = 16, .beam = 2, .max_length = t->source ? 0 : 40};
        assert_true(at_translate(t, &settings, lines, SOME, keep_pair, pairs, &error));
        for (int i = 0; i < SOME; i++)
            targets[i] = (at_line){pairs[i].text, pairs[i].size};
        if (!strstr(pairs[SOME - 1].text, "<unk>"))
            assert_true(at_align(t, &settings, t->source ? lines : NULL, targets, SOME, compare_pair, pairs, &error));
        at_translator_free(t);
    }
}

/* ---- Lines whose target is begun ------------------------------------------------------------------------------ */

enum { BEGUN = 400 };

typedef struct begun {
    at_translator *translator;
    char text[SOME][BEGUN],
        half[SOME][BEGUN]; /* the translation of a line, and the first half of its units; "" if it has <unk> */
    double score[SOME];
    record all;
} begun;

static bool keep_half(void *context, int64_t line, const at_result *result)
{
    begun *b = context;
    const at_hypothesis *h = &result->best[0];
    at_buffer half = {0};
    bool known = h->size < BEGUN;
    for (int64_t t = 0; t < h->count; t++)
        known = known && h->ids[t] != AT_UNKNOWN;
    assert_true(at_vocabulary_decode(b->translator->target, h->ids, known ? h->count / 2 : 0, &half));
    snprintf(b->text[line], BEGUN, "%s", h->text);
    snprintf(b->half[line], BEGUN, "%s", half.size ? half.bytes : "");
    b->score[line] = h->score;
    at_buffer_free(&half);
    return true;
}

static bool same_again(void *context, int64_t line, const at_result *result)
{
    const begun *b = context;
    assert_string_equal(result->best[0].text, b->text[line]);
    assert_true(result->best[0].score == b->score[line]);
    return true;
}

static bool starts_with_prefix(void *context, int64_t line, const at_result *result)
{
    begun *b = context;
    for (int64_t i = 0; i < result->count; i++)
        if (strncmp(result->best[i].text, b->half[line], strlen(b->half[line])) != 0)
            fail_msg("'%s' does not begin with '%s'", result->best[i].text, b->half[line]);
    return note(&b->all, line, result);
}

/* With the first half of its own translation as the prefix, a line has the same translation; with any prefix the
 * translation begins with it, with the same bits in any batch. */
static void test_a_target_can_be_begun(void **unused)
{
    (void)unused;
    char bytes[SOME][LONGEST], both[SOME][LONGEST + BEGUN];
    at_line lines[SOME], begun_lines[SOME];
    random_lines(bytes, lines, SOME, letters, 6);
    begun *b = calloc(1, sizeof *b), *judge = calloc(1, sizeof *judge);
    for (int kind = next_text(0); at_model_kind_at(kind); kind = next_text(kind + 1)) {
        if (!at_model_kind_at(kind)->has_source)
            continue;
        at_error error = {0};
        at_translator *t = b->translator = untrained(at_model_kind_at(kind));
        const bool attends = has_weights(t);
        for (int variant = 0; variant < 2; variant++) {
            at_search_settings settings = {.temperature = variant ? 1.5 : 0, .max_length_factor = 1};
            assert_true(at_translate(t, &settings, lines, SOME, keep_half, b, &error));
            for (int i = 0; i < SOME; i++) {
                begun_lines[i].text = both[i];
                begun_lines[i].size = (size_t)snprintf(both[i], sizeof both[i], "%.*s%s%s", (int)lines[i].size,
                                                       lines[i].text, b->half[i][0] ? "\t" : "", b->half[i]);
            }
            settings.prefix = true;
            assert_true(at_translate(t, &settings, begun_lines, SOME, same_again, b, &error));
        }
        for (int i = 0; i < SOME; i++) { /* known words and others, some longer than the length limit */
            static const char words[] = "it zebra sat on a mat on a mat the the zebra while it rained the cat sat on";
            size_t length = 0;
            for (int w = 0; w < i % 20 && words[length]; w++)
                length += strcspn(words + length + 1, " ") + 1;
            snprintf(b->half[i], BEGUN, "%.*s", (int)length, words);
            begun_lines[i].size =
                (size_t)snprintf(both[i], sizeof both[i], "%.*s\t%s", (int)lines[i].size, lines[i].text, b->half[i]);
        }
        for (int variant = 0; variant < 2; variant++)
            for (int run = 0; run < 4; run++) {
                begun *to = run ? b : judge;
                at_search_settings settings = {.n_best = 3, .max_length_factor = 0.5, .prefix = true};
                settings.beam = variant ? 0 : 4;
                settings.temperature = variant ? 1.5 : 0;
                settings.batch = (int64_t[]){64, 1, 7, 20}[run];
                settings.wants_weights = settings.replace_unknown = attends;
                at_threads_set(1 + run % 3);
                memcpy(to->half, b->half, sizeof to->half);
                to->all = (record){0};
                assert_true(at_translate(t, &settings, begun_lines, SOME, starts_with_prefix, to, &error));
                assert_int_equal(to->all.bytes.size, judge->all.bytes.size);
                assert_memory_equal(to->all.bytes.bytes, judge->all.bytes.bytes, to->all.bytes.size);
                if (run)
                    at_buffer_free(&to->all.bytes);
                if (run == 3)
                    at_buffer_free(&judge->all.bytes);
            }
        at_translator_free(t);
    }
    free(b);
    free(judge);
    at_threads_set(0);
}

static bool is_the_beginning(void *context, int64_t line, const at_result *result)
{
    (void)line;
    assert_string_equal(result->best[0].text, context);
    assert_int_equal(result->count, 1);
    assert_true(!result->best[0].names || result->best[0].names[0]);
    return true;
}

/* For an empty source the translation is the prefix. */
static void test_a_beginning_without_a_source(void **unused)
{
    (void)unused;
    at_error error = {0};
    for (int kind = next_text(0); at_model_kind_at(kind); kind = next_text(kind + 1)) {
        if (!at_model_kind_at(kind)->has_source)
            continue;
        at_translator *t = untrained(at_model_kind_at(kind));
        at_search_settings settings = {.prefix = true, .wants_weights = has_weights(t)};
        const char *text = "\tab?";
        assert_true(at_translate(t, &settings, &(at_line){text, 4}, 1, is_the_beginning, "ab?", &error));
        assert_true(at_translate(t, &settings, &(at_line){text, 1}, 1, is_the_beginning, "", &error));
        assert_true(at_translate(t, &settings, &(at_line){text, 0}, 1, is_the_beginning, "", &error));
        at_translator_free(t);
    }
}

/* ---- The encoder alone, and heads ----------------------------------------------------------------------------- */

static bool note_features(void *context, int64_t line, const at_result *result)
{
    record *r = context;
    assert_int_equal(line, r->lines++);
    assert_true(result->features || result->source_units == 0);
    if (result->features)
        at_buffer_add(&r->bytes, result->features,
                      (size_t)(result->source_units * result->feature_size) * sizeof *result->features);
    return true;
}

/* Every line's features, in any batch, are those of the model itself for that line alone. */
static void test_features_are_the_models(void **unused)
{
    (void)unused;
    char bytes[SOME][LONGEST];
    at_line lines[SOME];
    random_lines(bytes, lines, SOME, letters, 8);
    int encoders = 0;
    for (int kind = next_text(0); at_model_kind_at(kind); kind = next_text(kind + 1)) {
        at_translator *t = untrained(at_model_kind_at(kind));
        record judge = {0};
        at_arena *arena = at_arena_new();
        for (int i = 0; i < SOME && t->model->kind->features; i++) {
            int32_t ids[LONGEST];
            int64_t replaced,
                count = at_vocabulary_encode(t->source, lines[i].text, lines[i].size, ids, LONGEST, &replaced, NULL);
            if (count == 0)
                continue;
            at_source source = {.rows = 1, .length = count, .ids = ids, .lengths = &count};
            at_tensor *R = at_model_features(t->model, &(at_pass){.tape = at_tape_new(arena, false)}, &source);
            at_buffer_add(&judge.bytes, R->value, (size_t)at_shape_count(R->shape) * sizeof *R->value);
            at_arena_reset(arena);
        }
        for (int run = 0; run < 3; run++) {
            at_error error = {0};
            record r = {0};
            at_search_settings settings = {.batch = (int64_t[]){64, 1, 7}[run]};
            at_threads_set(1 + run);
            bool done = at_encode(t, &settings, lines, SOME, note_features, &r, &error);
            assert_int_equal(done, t->model->kind->features != NULL);
            assert_true(done || strstr(error.text, t->model->kind->name));
            if (done) {
                assert_int_equal(r.lines, SOME);
                assert_int_equal(r.bytes.size, judge.bytes.size);
                assert_memory_equal(r.bytes.bytes, judge.bytes.bytes, r.bytes.size);
                encoders++;
            }
            at_buffer_free(&r.bytes);
        }
        at_buffer_free(&judge.bytes);
        at_arena_free(arena);
        at_translator_free(t);
    }
    assert_int_equal(encoders, 5 * 3);
    at_threads_set(0);
}

typedef struct sum_of_heads {
    float weights[4096];
    double share;
} sum_of_heads;

static bool add_weights(void *context, int64_t line, const at_result *result)
{
    (void)line;
    sum_of_heads *sum = context;
    const at_hypothesis *h = &result->best[0];
    for (int64_t i = 0; i < (h->count + 1) * h->source_units; i++)
        sum->weights[i] += (float)(sum->share * (double)h->weights[i]);
    return true;
}

/* The average is the mean over the heads, and a head that does not exist is refused. */
static void test_heads_make_the_average(void **unused)
{
    (void)unused;
    const at_line source = {"abc defg hab", 12}, target = {"the cat sat on a mat", 20};
    for (int kind = next_text(0); at_model_kind_at(kind); kind = next_text(kind + 1)) {
        at_error error = {0};
        at_translator *t = untrained(at_model_kind_at(kind));
        int layers = 0, heads = 0;
        const bool attends = at_translator_heads(t, &layers, &heads);
        assert_int_equal(attends, has_weights(t));
        sum_of_heads average = {.share = 1}, sum = {.share = 1.0 / (layers * heads)};
        for (int l = 0; l <= layers && attends; l++)
            for (int h = l ? 1 : 0; h <= (l ? heads : 0); h++) {
                at_search_settings settings = {.wants_weights = true, .layer = l, .head = h};
                assert_true(at_align(t, &settings, &source, &target, 1, add_weights, l ? &sum : &average, &error));
            }
        for (int i = 0; i < 4096; i++)
            assert_true(fabsf(sum.weights[i] - average.weights[i]) < 1e-5F);
        at_search_settings beyond = {.wants_weights = true, .layer = layers + 1, .head = 1};
        const bool has_source = at_translator_has_source(t);
        assert_false(at_align(t, &beyond, has_source ? &source : NULL, &target, 1, add_weights, &sum, &error));
        assert_non_null(strstr(error.text, "head"));
        at_translator_free(t);
    }
}

/* ---- Memory --------------------------------------------------------------------------------------------------- */

static const at_model_kind *watched;
static int64_t steps, steady_steps, allocated, before;

static at_decoded watch(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded,
                        at_parts *state, const int32_t *ids, int64_t n)
{
    steps++;
    if (steps > steady_steps) /* allocations since the previous step */
        allocated += allocations - before;
    at_decoded decoded = watched->decode(model, pass, source, encoded, state, ids, n);
    before = allocations;
    return decoded;
}

static bool ignore(void *context, int64_t line, const at_result *result)
{
    (void)context;
    (void)line;
    (void)result;
    return true;
}

/* Batches of the same lines: the second half allocates nothing. */
static void test_steady_steps_take_no_memory(void **unused)
{
    (void)unused;
    enum { ROWS = 8, BATCHES = 200 };
    at_line lines[BATCHES * ROWS];
    for (int i = 0; i < BATCHES * ROWS; i++)
        lines[i] = (at_line){&"abcdefgh"[i % ROWS / 4], 6};
    int64_t watched_steps = 0;
    at_threads_set(1);
    for (int kind = next_text(0); at_model_kind_at(kind); kind = next_text(kind + 1)) {
        at_error error = {0};
        at_translator *t = untrained(at_model_kind_at(kind));
        watched = t->model->kind;
        at_model_kind watching = *watched;
        watching.decode = watch;
        t->model->kind = &watching;
        at_search_settings settings = {.beam = 4, .batch = ROWS};
        steps = allocated = 0;
        steady_steps = INT64_MAX;
        assert_true(at_translate(t, &settings, lines, ROWS, ignore, NULL, &error));
        steady_steps = BATCHES / 2 * steps;
        steps = 0;
        assert_true(at_translate(t, &settings, lines, BATCHES * ROWS, ignore, NULL, &error));
        watched_steps += steps - steady_steps;
        assert_int_equal(allocated, 0);
        t->model->kind = watched;
        at_translator_free(t);
    }
    assert_true(watched_steps > 20);
    at_threads_set(0);
}

/* ---- Files and translations ------------------------------------------------------------------------------ */

static void test_a_saved_model_translates_and_tells_about_itself(void **unused)
{
    (void)unused;
    at_error error = {0};
    char path[] = "test_translate.XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    at_translator *t = untrained(at_model_kind_at(0)), *back = NULL;
    t->history = strdup("[{\"epoch\":1,\"update\":32,\"loss\":0.5}]");
    assert_true(at_translator_save(t, path, false, &error));
    back = at_translator_load(path, &error);
    if (!back)
        fail_msg("%s", error.text);
    const at_line line = {"abc defg", 8};
    record first = {0}, second = {0};
    assert_true(at_translate(t, &(at_search_settings){.beam = 2}, &line, 1, note, &first, &error));
    assert_true(at_translate(back, &(at_search_settings){.beam = 2}, &line, 1, note, &second, &error));
    assert_string_equal(first.bytes.bytes, second.bytes.bytes);
    char *text = at_translator_info(back, &error);
    assert_non_null(strstr(text, "hidden           12\n"));
    assert_non_null(strstr(text, "source           char, 9 units and 4 specials\n"));
    assert_non_null(strstr(text, "target           word, 9 units and 4 specials\n"));
    assert_non_null(strstr(text, "history\n  epoch 1  update 32  loss 0.5000\n"));
    at_text_free(text);
    at_buffer_free(&first.bytes);
    at_buffer_free(&second.bytes);
    at_translator_free(t);
    at_translator_free(back);
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_model_translates_the_same_in_any_batch),
        cmocka_unit_test(test_a_stream_has_the_same_bits),
        cmocka_unit_test(test_a_damaged_model_fails),
        cmocka_unit_test(test_forced_scores_are_those_of_search),
        cmocka_unit_test(test_a_target_can_be_begun),
        cmocka_unit_test(test_a_beginning_without_a_source),
        cmocka_unit_test(test_features_are_the_models),
        cmocka_unit_test(test_heads_make_the_average),
        cmocka_unit_test(test_steady_steps_take_no_memory),
        cmocka_unit_test(test_a_saved_model_translates_and_tells_about_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
