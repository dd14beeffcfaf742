/* Search against a hand-written model, whose hypotheses can all be enumerated: the beam finds the best of all, a
 * beam of 1 is greedy, and neither batches nor threads change a byte. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_model.h"
#include "search/search_internal.h"

/* ---- Every hypothesis there is -------------------------------------------------------------------------------- */

typedef struct path {
    int32_t id[16];
    int64_t count;
    double score, penalised;
} path;

typedef struct all {
    path *paths;
    int64_t count, shortest, longest, vocabulary, source, members;
    double penalty, exponent;
} all;

/* For an ensemble: (p_1 p_2 ...)^(1/members), up to a factor. */
static double likelihood(const all *a, int64_t hash, int64_t id)
{
    double product = 1;
    for (int64_t v = 0; v < a->members; v++)
        product *= exp((double)logit(a->source + SUMS * v, hash, id));
    return pow(product, 1 / (double)a->members);
}

static double log_prob(const all *a, int64_t hash, int32_t id)
{
    double sum = 0;
    for (int64_t v = 0; v < a->vocabulary; v++)
        sum += likelihood(a, hash, v);
    return log(likelihood(a, hash, id) / sum);
}

static void enumerate_paths(all *a, path so_far, int64_t hash)
{
    path end = so_far;
    end.score += log_prob(a, hash, AT_END);
    const double n = (double)end.count + 1;
    end.penalised = end.score / (pow((5 + n) / 6, a->penalty) * pow(n, a->exponent));
    if (so_far.count >= a->shortest)
        a->paths[a->count++] = end;
    for (int32_t id = 0; so_far.count < a->longest && id < a->vocabulary; id++) {
        if (id == AT_PAD || id == AT_BEGIN || id == AT_END)
            continue;
        path longer = so_far;
        longer.id[longer.count++] = id;
        longer.score += log_prob(a, hash, id);
        enumerate_paths(a, longer, hash_next(hash, id));
    }
}

static int by_penalised(const void *left, const void *right)
{
    double a = ((const path *)left)->penalised, b = ((const path *)right)->penalised;
    return a > b ? -1 : a < b;
}

static bool search(fake *f, const at_search_settings *settings, const at_line *lines, int64_t count,
                   at_on_result *on_result, void *context, at_error *error)
{
    const at_search_job job = {.translator = &f->translator,
                               .settings = settings,
                               .lines = lines,
                               .count = count,
                               .on_result = on_result,
                               .context = context};
    return at_search(&job, error);
}

typedef struct expected {
    const all *all;
    int64_t best;
    int calls;
} expected;

static bool compare_to_all(void *context, int64_t line, const at_result *result)
{
    expected *e = context;
    (void)line;
    e->calls++;
    assert_int_equal(result->count, e->best);
    for (int64_t i = 0; i < result->count; i++) {
        const path *right = &e->all->paths[i];
        assert_true(fabs(result->best[i].penalised - right->penalised) < 1e-5);
        assert_true(fabs(result->best[i].score - right->score) < 1e-5);
        if (i == 0) { /* further down, paths may be equally likely */
            assert_int_equal(result->best[i].count, right->count);
            assert_memory_equal(result->best[i].ids, right->id, (size_t)right->count * sizeof(int32_t));
        }
    }
    return true;
}

/* Two symbols (a and the unknown one) and ten units at most: 2047 hypotheses, which a beam of 2047 holds. */
static void test_wide_beam_finds_the_best_of_all(void **unused)
{
    (void)unused;
    at_error error = {0};
    fake f;
    fake_open(&f, "char", "abc", "char", "a");
    const double penalties[] = {0, 0.6, 2, -1, 0}, exponents[] = {0, 0, 0, 0, 1.3};
    const char *const lines[] = {"a", "b", "ca", "abcabc", "cccc", "bb"};
    for (size_t i = 0; i < 5 * 6 * 2; i++) {
        const char *line = lines[i % 6];
        shape.spread =
            i < 5 * 6 ? 1
                      : 3; /* with a large spread a unit costs little, and long hypotheses win by the length penalty */
        at_search_settings settings = {.beam = 2047,
                                       .n_best = i % 5 ? 7 : 1,
                                       .length_penalty = penalties[i / 6 % 5],
                                       .normalise = exponents[i / 6 % 5],
                                       .max_length_factor = 1e-9};
        int32_t ids[16];
        int64_t replaced,
            count = at_vocabulary_encode(f.translator.source, line, strlen(line), ids, 16, &replaced, NULL);
        /* Every third must have at least half the source's units; the most likely hypotheses end at once. */
        settings.min_length_factor = i % 3 == 0 ? 0.5 : 0;
        fake_ensemble(&f, i / 2 % 2);
        all a = {.members = i / 2 % 2 ? 3 : 1,
                 .shortest = i % 3 == 0 ? (count + 1) / 2 : 0,
                 .longest = 10,
                 .vocabulary = f.model.settings.target_size,
                 .source = source_sum(ids, count),
                 .penalty = settings.length_penalty,
                 .exponent = settings.normalise,
                 .paths = malloc(2048 * sizeof *a.paths)};
        enumerate_paths(&a, (path){0}, hash_next(0, AT_BEGIN));
        assert_int_equal(a.count, 2048 - (1 << a.shortest));
        qsort(a.paths, (size_t)a.count, sizeof *a.paths, by_penalised);
        expected e = {&a, settings.n_best, 0};
        assert_true(at_search_complete(&settings, &error));
        assert_true(search(&f, &settings, &(at_line){line, strlen(line)}, 1, compare_to_all, &e, &error));
        assert_int_equal(e.calls, 1);
        free(a.paths);
    }
    shape.spread = 1;
    fake_close(&f);
}

/* ---- Lines through a search ----------------------------------------------------------------------------------- */

/* All results, as bytes. */
typedef struct record {
    at_buffer bytes;
    int64_t next;
    bool stops;
} record;

static bool note(void *context, int64_t line, const at_result *result)
{
    record *r = context;
    assert_int_equal(line, r->next++);
    at_buffer_print(&r->bytes, "%lld %lld %lld %lld:", (long long)line, (long long)result->count,
                    (long long)result->source_units, (long long)result->replaced);
    for (int64_t i = 0; i < result->count; i++) {
        const at_hypothesis *h = &result->best[i];
        assert_null(memchr(h->text, '\n', h->size));
        assert_int_equal(h->text[h->size], 0);
        at_buffer_add(&r->bytes, h->text, h->size);
        at_buffer_add(&r->bytes, h->ids, (size_t)h->count * sizeof *h->ids);
        at_buffer_print(&r->bytes, " %a %a ", h->score, h->penalised);
        if (h->links)
            at_buffer_add(&r->bytes, h->links, (size_t)(h->count + 1) * sizeof *h->links);
        if (h->weights)
            at_buffer_add(&r->bytes, h->weights, (size_t)((h->count + 1) * h->source_units) * sizeof *h->weights);
        for (int64_t t = 0; h->names && t <= h->count; t++)
            at_buffer_print(&r->bytes, "%s,", h->names[t]);
        for (int64_t s = 0; h->names && s < result->source_units; s++)
            at_buffer_print(&r->bytes, "%s.", result->source_names[s]);
    }
    at_buffer_add(&r->bytes, "\n", 1);
    return !r->stops;
}

enum { LINES = 150, LONGEST = 30 };
typedef struct some_lines {
    char bytes[LINES][LONGEST];
    at_line line[LINES];
} some_lines;

static void random_lines(some_lines *lines, const char *letters, uint64_t seed)
{
    at_rng rng = {seed, 0};
    for (int i = 0; i < LINES; i++) {
        lines->line[i] = (at_line){lines->bytes[i], at_rng_below(&rng, LONGEST)};
        for (size_t c = 0; c < lines->line[i].size; c++)
            lines->bytes[i][c] =
                letters ? letters[at_rng_below(&rng, (uint32_t)strlen(letters))] : (char)at_rng_below(&rng, 256);
    }
}

static record search_all(fake *f, at_search_settings settings, const some_lines *lines, int64_t at_a_time)
{
    record r = {0};
    at_error error = {0};
    assert_true(at_search_complete(&settings, &error));
    for (int64_t from = 0; from < LINES; from += at_a_time) {
        settings.first_line = from;
        int64_t count = LINES - from < at_a_time ? LINES - from : at_a_time;
        assert_true(search(f, &settings, lines->line + from, count, note, &r, &error));
    }
    assert_int_equal(r.next, LINES);
    return r;
}

static void assert_same(record a, record b)
{
    assert_int_equal(a.bytes.size, b.bytes.size);
    assert_memory_equal(a.bytes.bytes, b.bytes.bytes, a.bytes.size);
    at_buffer_free(&b.bytes);
}

static void test_batches_and_threads_change_nothing(void **unused)
{
    (void)unused;
    fake f;
    some_lines lines;
    fake_open(&f, "char", "abcd ", "word", "the cat sat on a mat while it rained");
    random_lines(&lines, "abcde ", 5);
    const at_search_settings variants[] = {
        {.beam = 1},
        {.beam = 5, .n_best = 3, .wants_weights = true, .length_penalty = 0.6},
        {.beam = 12, .n_best = 12, .replace_unknown = true, .length_penalty = -0.5},
        {.temperature = 0.8, .seed = 3, .n_best = 4, .wants_weights = true, .replace_unknown = true},
        {.temperature = 1.5, .seed = 4, .n_best = 3, .top_k = 4},
        {.temperature = 1.5, .seed = 4, .n_best = 3, .top_p = 0.7},
    };
    for (size_t variant = 0; variant < sizeof variants / sizeof *variants; variant++) {
        at_search_settings settings = variants[variant];
        fake_ensemble(&f, variant % 2);
        settings.batch = 64;
        at_threads_set(1);
        record judge = search_all(&f, settings, &lines, LINES);
        const int64_t batches[] = {1, 2, 7, 64, 200};
        for (size_t b = 0; b < 5; b++) {
            settings.batch = batches[b];
            at_threads_set(1 + (int)b % 3);
            assert_same(judge, search_all(&f, settings, &lines, LINES));
            assert_same(judge, search_all(&f, settings, &lines, 40));
        }
        at_buffer_free(&judge.bytes);
    }
    at_threads_set(0);
    fake_close(&f);
}

/* ---- Greedy --------------------------------------------------------------------------------------------------- */

typedef struct greedy {
    fake *f;
    const some_lines *lines;
    bool forced;
} greedy;

static bool compare_to_greedy(void *context, int64_t line, const at_result *result)
{
    greedy *g = context;
    int32_t ids[LONGEST];
    int64_t replaced, count = at_vocabulary_encode(g->f->translator.source, g->lines->line[line].text,
                                                   g->lines->line[line].size, ids, LONGEST, &replaced, NULL);
    const at_hypothesis *h = &result->best[0];
    assert_int_equal(result->count, 1);
    if (count == 0) {
        assert_int_equal(h->size, 0);
        return true;
    }
    all a = {.members = 1, .vocabulary = g->f->model.settings.target_size, .source = source_sum(ids, count)};
    int64_t hash = hash_next(0, AT_BEGIN), longest = 2 * count + 10;
    double score = 0;
    for (int64_t t = 0;; t++) {
        int32_t best = AT_END;
        for (int32_t id = AT_SPECIALS - 3; t < longest && id < a.vocabulary; id++)
            if (id != AT_BEGIN && (logit(a.source, hash, id) > logit(a.source, hash, best) ||
                                   (logit(a.source, hash, id) == logit(a.source, hash, best) && id < best)))
                best = id;
        score += log_prob(&a, hash, best);
        int64_t link = -1;
        for (int64_t s = 0; s < count; s++) {
            if (weight(a.source, hash, s) > (link < 0 ? 0 : weight(a.source, hash, link)))
                link = s;
            assert_true(h->weights[t * count + s] == weight(a.source, hash, s));
        }
        assert_int_equal(h->links[t], link);
        if (best == AT_END) {
            assert_int_equal(h->count, t);
            break;
        }
        assert_int_equal(h->ids[t], best);
        hash = hash_next(hash, best);
    }
    assert_true(fabs(h->score - score) < 1e-5);
    return true;
}

static void test_beam_of_one_is_greedy(void **unused)
{
    (void)unused;
    at_error error = {0};
    fake f;
    some_lines lines;
    fake_open(&f, "char", "abcd ", "char", "xyzuvw");
    random_lines(&lines, "abcde ", 6);
    greedy g = {.f = &f, .lines = &lines};
    at_search_settings settings = {.wants_weights = true, .batch = 20};
    assert_true(at_search_complete(&settings, &error));
    assert_true(search(&f, &settings, lines.line, LINES, compare_to_greedy, &g, &error));
    shape.whole = true; /* integer logits: of equal ones the lowest id wins */
    assert_true(search(&f, &settings, lines.line, LINES, compare_to_greedy, &g, &error));
    shape.whole = false;
    fake_close(&f);
}

/* ---- Equals and draws ----------------------------------------------------------------------------------------- */

/* With all logits equal, every choice is a tie: the first hypothesis and the lowest id win it. */
static bool expect_first_of_equals(void *context, int64_t line, const at_result *result)
{
    (void)context;
    (void)line;
    assert_int_equal(result->count, 3);
    assert_int_equal(result->best[0].count, 0);
    assert_int_equal(result->best[1].count, 1);
    assert_int_equal(result->best[1].ids[0], AT_UNKNOWN);
    assert_int_equal(result->best[2].count, 10);
    for (int i = 0; i < 10; i++)
        assert_int_equal(result->best[2].ids[i], AT_UNKNOWN);
    return true;
}

static void test_the_first_of_equals_wins(void **unused)
{
    (void)unused;
    at_error error = {0};
    fake f;
    const at_line line = {"a", 1};
    at_search_settings settings = {.beam = 3, .n_best = 3, .max_length_factor = 1e-9};
    fake_open(&f, "char", "abc", "char", "a");
    shape.spread = shape.end = 0;
    assert_true(at_search_complete(&settings, &error));
    assert_true(search(&f, &settings, &line, 1, expect_first_of_equals, NULL, &error));
    shape.spread = 1;
    shape.end = 0.5f;
    fake_close(&f);
}

typedef struct draws {
    int64_t of[16], count; /* how often each id came first */
    int64_t different;     /* lines whose samples are not all the same */
} draws;

static bool count_samples(void *context, int64_t line, const at_result *result)
{
    draws *d = context;
    bool different = false;
    (void)line;
    for (int64_t i = 0; i < result->count; i++) {
        d->of[result->best[i].ids[0]]++;
        d->count++;
        different = different || result->best[i].ids[0] != result->best[0].ids[0];
    }
    d->different += different;
    return true;
}

/* Sets to 0 what top-k and top-p leave out, by the definition: in order of probability, of equals the lower id first. */
static void keep_top(double *p, int64_t count, int64_t top_k, double top_p)
{
    double sum = 0, running = 0;
    bool kept[8] = {0};
    for (int pass = 0; pass < 2; pass++) { /* the sum of the k likeliest, then which of them are kept */
        bool taken[8] = {0};
        for (int64_t rank = 0; rank < (top_k ? top_k : count); rank++) {
            int64_t best = -1;
            for (int64_t v = 0; v < count; v++)
                best = !taken[v] && (best < 0 || p[v] > p[best]) ? v : best;
            taken[best] = true;
            sum += pass == 0 ? p[best] : 0;
            kept[best] = pass == 1 && (top_p == 0 || running < top_p * sum);
            running += pass == 1 ? p[best] : 0;
        }
    }
    for (int64_t v = 0; v < count; v++)
        p[v] = kept[v] ? p[v] : 0;
}

/* The frequency of the first unit is softmax(logits / T), of what top-k and top-p leave. */
static void expect_frequencies(const fake *f, int64_t top_k, double top_p)
{
    enum { TIMES = 2000 };
    at_error error = {0};
    at_line lines[TIMES];
    draws d = {0};
    for (int i = 0; i < TIMES; i++)
        lines[i] = (at_line){"abc", 3};
    at_search_settings settings = {.temperature = 1.7, .n_best = 4, .seed = 9, .top_k = top_k, .top_p = top_p};
    assert_true(at_search_complete(&settings, &error));
    assert_true(search((fake *)f, &settings, lines, TIMES, count_samples, &d, &error));
    assert_int_equal(d.count, 4 * TIMES);
    assert_true(d.different > TIMES / 2);
    int32_t ids[3];
    int64_t replaced, hash = hash_next(0, AT_BEGIN);
    at_vocabulary_encode(f->translator.source, "abc", 3, ids, 3, &replaced, NULL);
    double p[8], sum = 0;
    for (int64_t v = 0; v < 8; v++)
        p[v] = v == AT_PAD || v == AT_BEGIN ? 0 : exp(logit(source_sum(ids, 3), hash, v) / 1.7);
    keep_top(p, 8, top_k, top_p);
    for (int64_t v = 0; v < 8; v++)
        sum += p[v];
    for (int64_t v = 0; v < 8; v++) /* five standard deviations; the variance is at most 4 TIMES / 4 */
        assert_true(fabs((double)d.of[v] - p[v] / sum * 4 * TIMES) < (p[v] > 0 ? 5 * sqrt(TIMES) : 1));
}

static void test_samples_follow_the_softmax(void **unused)
{
    (void)unused;
    fake f;
    fake_open(&f, "char", "abc", "char", "abcd");
    expect_frequencies(&f, 0, 0);
    expect_frequencies(&f, 3, 0);
    expect_frequencies(&f, 0, 0.75);
    expect_frequencies(&f, 4, 0.6);
    expect_frequencies(&f, 0, 1);
    shape.whole = true; /* many are equal */
    expect_frequencies(&f, 2, 0);
    expect_frequencies(&f, 0, 0.5);
    shape.whole = false;
    fake_close(&f);
}

static void test_the_likeliest_sample_is_greedy(void **unused)
{
    (void)unused;
    fake f;
    some_lines lines;
    fake_open(&f, "char", "abcd ", "word", "the cat sat on a mat while it rained");
    random_lines(&lines, "abcde ", 5);
    for (int whole = 0; whole < 2; whole++) {
        shape.whole = whole;
        record judge = search_all(&f, (at_search_settings){.beam = 1}, &lines, LINES);
        assert_same(judge, search_all(&f, (at_search_settings){.temperature = 3, .top_k = 1}, &lines, LINES));
        assert_same(judge, search_all(&f, (at_search_settings){.temperature = 3, .top_p = 1e-9}, &lines, LINES));
        at_buffer_free(&judge.bytes);
    }
    shape.whole = false;
    fake_close(&f);
}

/* ---- Forced decoding ------------------------------------------------------------------------------------------ */

/* Forced decoding of what a search found: the same numbers, bit by bit. */
typedef struct pairs {
    at_line target[LINES];
    double score[LINES];
    float *weights[LINES];
    bool again;
} pairs;

static bool keep_pair(void *context, int64_t line, const at_result *result)
{
    pairs *p = context;
    const at_hypothesis *h = &result->best[0];
    size_t bytes = (size_t)((h->count + 1) * h->source_units) * sizeof *h->weights;
    if (p->again) {
        assert_int_equal(h->size, p->target[line].size);
        assert_memory_equal(h->text, p->target[line].text, h->size);
        assert_true(h->score == p->score[line]);
        if (h->weights)
            assert_memory_equal(h->weights, p->weights[line], bytes);
        return true;
    }
    p->target[line] = (at_line){strdup(h->text), h->size};
    p->score[line] = h->score;
    p->weights[line] = malloc(bytes + 1);
    if (h->weights)
        memcpy(p->weights[line], h->weights, bytes);
    return true;
}

static void test_forced_decoding_scores_as_the_search(void **more)
{
    at_error error = {0};
    fake f;
    some_lines lines;
    pairs p = {0};
    fake_open(&f, "char", "abcd ", "word", "x y z u v w");
    random_lines(&lines, "abcd ", 7);
    shape.end = -2; /* long targets, which forced decoding splits into chunks */
    fake_ensemble(&f, *(const bool *)*more);
    at_search_settings settings = {.beam = 4, .wants_weights = true};
    assert_true(at_search_complete(&settings, &error));
    assert_true(search(&f, &settings, lines.line, LINES, keep_pair, &p, &error));
    p.again = true;
    for (settings.batch = 1; settings.batch < 100; settings.batch *= 8)
        assert_true(at_forced(&(at_search_job){.translator = &f.translator,
                                               .settings = &settings,
                                               .lines = lines.line,
                                               .targets = p.target,
                                               .count = LINES,
                                               .on_result = keep_pair,
                                               .context = &p},
                              &error));
    for (int i = 0; i < LINES; i++) {
        free((char *)p.target[i].text);
        free(p.weights[i]);
    }
    shape.end = 0.5f;
    fake_close(&f);
}

/* ---- Words, refusals, any bytes ------------------------------------------------------------------------------- */

static bool expect_words(void *context, int64_t line, const at_result *result)
{
    int *unknown = context;
    if (line == 0)
        assert_string_equal(result->source_names[1], "Z\xef\xbf\xbd\xef\xbf\xbdrich");
    assert_int_equal(result->replaced, line == 0 ? 2 : 0);
    for (int64_t i = 0; i < result->count; i++) {
        const at_hypothesis *h = &result->best[i];
        at_buffer text = {0};
        for (int64_t t = 0; t < h->count; t++) {
            bool copied = h->ids[t] == AT_UNKNOWN && h->links[t] >= 0;
            *unknown += copied;
            at_buffer_print(&text, "%s%s", t ? " " : "", copied ? result->source_names[h->links[t]] : "w");
        }
        at_buffer_add(&text, "", 0);
        assert_int_equal(text.size, h->size);
        assert_memory_equal(text.bytes, h->text, h->size);
        at_buffer_free(&text);
    }
    return true;
}

static void test_unknown_words_are_copied(void **unused)
{
    (void)unused;
    at_error error = {0};
    fake f;
    int unknown = 0;
    fake_open(&f, "word", "one two three", "word", "w");
    const char *texts[] = {"one  Z\xff\xffrich two", "three one", "two two", "one", "one three two", "two five three"};
    at_line lines[6];
    for (int i = 0; i < 6; i++)
        lines[i] = (at_line){texts[i], strlen(texts[i])};
    at_search_settings settings = {.temperature = 1, .n_best = 10, .replace_unknown = true, .wants_weights = true};
    assert_true(at_search_complete(&settings, &error));
    assert_true(search(&f, &settings, lines, 6, expect_words, &unknown, &error));
    assert_true(unknown > 0);
    fake_close(&f);
}

static void test_refusals(void **unused)
{
    (void)unused;
    at_error error = {0};
    at_search_settings settings = {.beam = 3, .n_best = 4};
    assert_false(at_search_complete(&settings, &error));
    assert_string_equal(error.text, "a beam of 3 cannot return the 4 best; ask for fewer, or widen the beam");
    error = (at_error){0};
    settings = (at_search_settings){.temperature = NAN};
    assert_false(at_search_complete(&settings, &error));
    error = (at_error){0};
    settings = (at_search_settings){.min_length_factor = -1};
    assert_false(at_search_complete(&settings, &error));
    assert_string_equal(error.text, "the factor of the shortest output is a number from 0 to 1000, not -1");
    error = (at_error){0};
    settings = (at_search_settings){.top_k = 3};
    assert_false(at_search_complete(&settings, &error));
    error = (at_error){0};
    settings = (at_search_settings){.temperature = 1, .top_p = 1.5};
    assert_false(at_search_complete(&settings, &error));
    assert_int_equal(error.code, AT_USAGE);
    error = (at_error){0};
    fake f;
    fake_open(&f, "char", "abc", "char", "abc");
    const at_line line = {"abc", 3};
    record r = {0};
    settings = (at_search_settings){.wants_weights = true};
    assert_true(at_search_complete(&settings, &error));
    has_attention = false;
    assert_false(search(&f, &settings, &line, 1, note, &r, &error));
    assert_string_equal(error.text, "model 'fake' has no attention, so it has no weights to show");
    error = (at_error){0};
    settings.wants_weights = false;
    assert_true(search(&f, &settings, &line, 1, note, &r, &error));
    has_attention = true;
    r.stops = true;
    r.next = 0;
    assert_false(search(&f, &settings, &line, 1, note, &r, &error));
    assert_int_equal(error.code, AT_INTERRUPTED);
    at_buffer_free(&r.bytes);
    fake_close(&f);
}

static void test_any_bytes_give_one_line_each(void **unused)
{
    (void)unused;
    fake f;
    some_lines lines;
    fake_open(&f, "char", "abc", "char", "abc");
    for (uint64_t seed = 0; seed < 10; seed++) {
        random_lines(&lines, NULL, 100 + seed);
        record r = search_all(&f, (at_search_settings){.beam = 2, .wants_weights = true}, &lines, LINES);
        at_buffer_free(&r.bytes);
    }
    fake_close(&f);
}

/* A model file may hold any unit; a line stays one line. */
static void test_a_unit_with_a_newline_gives_one_line(void **unused)
{
    (void)unused;
    at_error error = {0};
    fake f;
    some_lines lines;
    fake_open(&f, "char", "abc", "char", "a");
    at_vocabulary *hostile =
        at_vocabulary_from_json("{\"kind\":\"word\",\"units\":[\"x\\ny\"],\"counts\":[1]}", &error);
    if (hostile) { /* it may also be refused */
        at_vocabulary_free(f.translator.target);
        f.translator.target = hostile;
        random_lines(&lines, "abc", 3);
        record r = search_all(&f, (at_search_settings){.beam = 2, .wants_weights = true}, &lines, LINES);
        at_buffer_free(&r.bytes);
    }
    fake_close(&f);
}

/* Rows of several blocks: the candidates are those of a full sort, and a row that is not finite has none. */
static void test_candidates_of_long_rows(void **state)
{
    (void)state;
    enum { V = 203, MOST = 5, ROWS = 40 };
    at_error error = {0};
    at_search_settings settings = {0};
    at_search_work work = {.settings = &settings, .error = &error, .steps = at_arena_new()};
    float logits[ROWS * V];
    at_row_task tasks[ROWS];
    at_candidate found[ROWS][MOST];
    for (int i = 0; i < ROWS * V; i++)
        logits[i] = (float)((i * 7919LL) % 613) / 50; /* some are equal */
    for (int r = 0; r < ROWS; r++)
        tasks[r] = (at_row_task){.only = -1, .most = 1 + r % MOST, .candidates = found[r]};
    float *broken = logits + (ROWS - 1) * V;
    broken[70] = (float)NAN;
    broken[9] = -INFINITY;
    broken[150] = INFINITY;
    assert_true(at_search_rows(&work, logits, ROWS, V, tasks));
    assert_true(tasks[ROWS - 1].failed && tasks[ROWS - 1].count == 0);
    for (int r = 0; r < ROWS - 1; r++) {
        assert_false(tasks[r].failed);
        const float *row = logits + r * V;
        bool taken[V] = {[AT_PAD] = true, [AT_BEGIN] = true};
        double sum = 0;
        for (int v = 0; v < V; v++)
            sum += exp((double)row[v]);
        assert_int_equal(tasks[r].count, 1 + r % MOST);
        for (int i = 0; i < tasks[r].count; i++) {
            int best = -1;
            for (int v = 0; v < V; v++)
                best = !taken[v] && (best < 0 || row[v] > row[best]) ? v : best;
            taken[best] = true;
            assert_int_equal(found[r][i].id, best);
            assert_true(fabs(found[r][i].log_prob - ((double)row[best] - log(sum))) < 1e-5);
        }
    }
    at_arena_free(work.steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wide_beam_finds_the_best_of_all),
        cmocka_unit_test(test_batches_and_threads_change_nothing),
        cmocka_unit_test(test_beam_of_one_is_greedy),
        cmocka_unit_test(test_the_first_of_equals_wins),
        cmocka_unit_test(test_samples_follow_the_softmax),
        cmocka_unit_test(test_the_likeliest_sample_is_greedy),
        cmocka_unit_test_prestate(test_forced_decoding_scores_as_the_search, &(bool){false}),
        {"test_forced_gives_what_several_found", test_forced_decoding_scores_as_the_search, NULL, NULL, &(bool){true}},
        cmocka_unit_test(test_unknown_words_are_copied),
        cmocka_unit_test(test_candidates_of_long_rows),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_any_bytes_give_one_line_each),
        cmocka_unit_test(test_a_unit_with_a_newline_gives_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
