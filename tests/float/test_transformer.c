/* The Transformer in search and training: a beam over the cache finds what a beam over whole prefixes finds, and a
 * run that was stopped ends in the bytes of one that was not. */
/* cmocka.h needs these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "model_of.h"
#include "same_files.h"
#include "search/search.h"
#include "train/train.h"

/* ---- A beam without a cache ----------------------------------------------------------------------------------- */

enum { BEAM = 4, LONGEST = 40, MOST_WORDS = 20 };

static at_vocabulary *vocabulary(const char *line)
{
    at_error error = {0};
    at_vocabulary *made = at_vocabulary_new("word", &error);
    assert_true(made && at_vocabulary_count(made, line, strlen(line), &error) && at_vocabulary_fix(made, &error));
    return made;
}

/* An untrained model; scaled parameters make its outputs differ. */
static at_translator *untrained(const char *text)
{
    at_translator *t = calloc(1, sizeof *t);
    t->source = vocabulary("a b c d e f");
    t->target = vocabulary("the cat sat on a mat");
    t->model = model_of("transformer hidden=16 ffn=24 heads=2 layers=2", text, at_vocabulary_size(t->source),
                        at_vocabulary_size(t->target), 5);
    for (int64_t i = 0; i < at_params_count(t->model->params); i++)
        at_params_values(t->model->params)[i] *= 2;
    at_params_changed(t->model->params);
    return t;
}

typedef struct path {
    int32_t ids[LONGEST + 2]; /* the begin first */
    int64_t count;
    double score;
    bool ended;
} path;

/* log p of every word after the prefix, decoded from the start. */
static void next_words(at_translator *t, const at_source *source, const path *p, double *log_prob)
{
    at_arena *arena = at_arena_new();
    at_pass pass = {.tape = at_tape_new(arena, false)};
    at_parts memory = at_model_encode(t->model, &pass, source);
    at_parts state = at_model_start(t->model, &pass, source, &memory);
    at_decoded d = at_model_decode(t->model, &pass, source, &memory, &state, p->ids, p->count);
    assert_non_null(d.logits);
    const int64_t V = d.logits->shape.dim[2];
    const at_real *logits = d.logits->value + (p->count - 1) * V;
    double sum = 0;
    for (int64_t v = 0; v < V; v++)
        sum += exp((double)(logits[v] - logits[0]));
    for (int64_t v = 0; v < V; v++)
        log_prob[v] = (double)(logits[v] - logits[0]) - log(sum);
    at_arena_free(arena);
}

/* The most likely of `count` paths whose extensions are in log_prob [count,V]; used ones are -infinity. */
static path extend(const path *live, int64_t count, double (*log_prob)[MOST_WORDS], int64_t V)
{
    int64_t from = 0, word = 0;
    for (int64_t i = 0; i < count; i++)
        for (int64_t v = 0; v < V; v++)
            if (live[i].score + log_prob[i][v] > live[from].score + log_prob[from][word]) {
                from = i;
                word = v;
            }
    path p = live[from];
    p.score += log_prob[from][word];
    p.ids[p.count++] = (int32_t)word;
    p.ended = word == AT_END;
    log_prob[from][word] = -INFINITY;
    return p;
}

/* Beam search that decodes every hypothesis from the start at each step. */
static path reference_beam(at_translator *t, const int32_t *ids, int64_t units)
{
    const at_source source = {.rows = 1, .length = units, .ids = ids, .lengths = &units};
    const int64_t V = at_vocabulary_size(t->target), longest = 2 * units + 10;
    path live[BEAM] = {{.ids = {AT_BEGIN}, .count = 1}}, next[BEAM], best = {.score = -INFINITY};
    int64_t count = 1, width = BEAM;
    while (count > 0 && best.score < live[0].score) {
        double log_prob[BEAM][MOST_WORDS];
        for (int64_t i = 0; i < count; i++) {
            next_words(t, &source, &live[i], log_prob[i]);
            for (int64_t v = 0; v < V;
                 v++) /* padding and begin are never generated, and at the length limit only the end */
                if (v == AT_PAD || v == AT_BEGIN || (live[i].count > longest && v != AT_END))
                    log_prob[i][v] = -INFINITY;
        }
        int64_t kept = 0, wanted = width;
        for (int64_t i = 0; i < wanted; i++) {
            path p = extend(live, count, log_prob, V);
            if (p.score == -INFINITY)
                break;
            if (!p.ended)
                next[kept++] = p;
            width -= p.ended;
            if (p.ended && p.score > best.score)
                best = p;
        }
        memcpy(live, next, sizeof live);
        count = kept;
    }
    return best;
}

static const char *const beam_lines[] = {"a b c d", "e", "f f a", "b c b c b c e", "d a"};

typedef struct context {
    at_translator *translator;
    const char *name;
} context;

static bool compare(void *with, int64_t line, const at_result *result)
{
    context *c = with;
    const at_hypothesis *h = &result->best[0];
    int32_t ids[LONGEST];
    int64_t replaced = 0;
    int64_t units = at_vocabulary_encode(c->translator->source, beam_lines[line], strlen(beam_lines[line]), ids,
                                         LONGEST, &replaced, NULL);
    path best = reference_beam(c->translator, ids, units);
    if (best.count - 2 != h->count || memcmp(best.ids + 1, h->ids, (size_t)h->count * sizeof *h->ids) != 0)
        fail_msg("%s: line %d has %d other words, scored %g, over the cache than the %d over whole prefixes, scored %g",
                 c->name, (int)line, (int)h->count, h->score, (int)best.count - 2, best.score);
    if (!(fabs(best.score - h->score) <= 1e-4))
        fail_msg("%s: line %d scores %g over the cache and %g over whole prefixes", c->name, (int)line, h->score,
                 best.score);
    return true;
}

static void test_cached_beam_is_uncached(void **state)
{
    (void)state;
    static const char *const cases[] = {"position=sinusoidal",
                                        "position=learned norm=pre",
                                        "position=shaw:2 kv-heads=1",
                                        "position=rope tie=false",
                                        "position=alibi norm=pre",
                                        "position=t5:8",
                                        "position=none decoder-attention=sliding:2"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        at_error error = {0};
        context c = {.translator = untrained(cases[i]), .name = cases[i]};
        at_line lines[5];
        for (int l = 0; l < 5; l++)
            lines[l] = (at_line){beam_lines[l], strlen(beam_lines[l])};
        at_search_settings settings = {.beam = BEAM, .max_length_factor = 2};
        if (!at_translate(c.translator, &settings, lines, 5, compare, &c, &error))
            fail_msg("%s: %s", cases[i], error.text);
        at_translator_free(c.translator);
    }
}

/* ---- Resuming ------------------------------------------------------------------------------------------------- */

static char folder[] = "/tmp/attend-transformer-XXXXXX";

static int enter(void **state)
{
    (void)state;
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return -1;
    FILE *file = fopen("lines", "w");
    at_rng rng = {.seed = 3};
    for (int i = 0; i < 200; i++)
        for (int w = 2 + (int)at_rng_below(&rng, 5); w >= 0; w--)
            fprintf(file, "%c%c", 'a' + (int)at_rng_below(&rng, 8), w ? ' ' : '\n');
    return fclose(file);
}

static int leave(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

typedef struct stopper {
    volatile int stop;
    int64_t at;
} stopper;

static void listen(void *with, const at_train_news *news)
{
    stopper *s = with;
    if (news->what == AT_NEWS_TICK && s->at && news->update >= s->at)
        s->stop = 1;
}

/* Trains to update 25, or until it is stopped after update `stop`. */
static void train(const char *output, const char *position, int64_t stop, bool resume)
{
    const char *const options[][2] = {
        {"source", "lines"},
        {"target", "lines"},
        {"output", output},
        {"model", "transformer"},
        {"layers", "1"},
        {"hidden", "16"},
        {"ffn", "24"},
        {"heads", "2"},
        {"dropout", "0.2"},
        {"attention-dropout", "0.1"},
        {"ffn-dropout", "0.3"},
        {"position", position},
        {"ema", "0.98"},
        {"batch-size", "20"},
        {"schedule", "noam"},
        {"warmup", "10"},
        {"learning-rate", "1"},
        {"label-smoothing", "0.1"},
        {"valid-source", "lines"},
        {"valid-target", "lines"},
        {"valid-every", "9"},
        {"updates", "25"},
        {resume ? "resume" : "overwrite", "true"},
    };
    at_error error = {0};
    at_train_result result;
    at_training *training = at_training_new(&error);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (!at_training_set(training, options[i][0], options[i][1], &error))
            fail_msg("%s", error.text);
    stopper s = {.at = stop};
    if (!at_training_run(training, listen, &s, &s.stop, &result, &error))
        fail_msg("%s", error.text);
    assert_int_equal(result.updates, stop ? stop : 25);
    at_training_free(training);
}

static void test_resumed_is_uninterrupted(void **state)
{
    (void)state;
    static const char *const positions[] = {"sinusoidal", "shaw:2", "learned"};
    for (int i = 0; i < 3; i++) {
        at_threads_set(1);
        train("whole", positions[i], 0, false);
        at_threads_set(2); /* must not change the bits either */
        unlink("parts");   /* an interrupt would leave it alone */
        unlink("parts.state");
        train("parts", positions[i], 4, false);
        train("parts", positions[i], 18, true);
        train("parts", positions[i], 0, true);
        same_files("whole", "parts");
        same_files("whole.last", "parts.last");
        same_files("whole.state", "parts.state");
    }
    at_threads_set(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cached_beam_is_uncached),
        cmocka_unit_test(test_resumed_is_uninterrupted),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
