/* What a target can go on with after a given start: at_alternatives against greedy search from each of its branches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "attend_unstable.h"
#include "models/kinds.h"
#include "search/search.h"
#include "translator_of.h"

enum { SOME = 12, LONGEST = 25, BEGUN = 400 };

static void random_lines(char bytes[][LONGEST], at_line *lines)
{
    at_rng rng = {9, 0};
    for (int i = 0; i < SOME; i++) {
        lines[i] = (at_line){bytes[i], at_rng_below(&rng, LONGEST)};
        for (size_t c = 0; c < lines[i].size; c++)
            bytes[i][c] = "abcdefgh "[at_rng_below(&rng, 9)];
    }
}

enum { BRANCHES = 4, START_WORDS = 2 };
static const char start_words[] = "the cat"; /* START_WORDS of them, in the target vocabulary */

typedef struct branched {
    char text[SOME][BRANCHES][BEGUN];
    int32_t next[SOME][BRANCHES]; /* the unit where it branches off */
    double score[SOME][BRANCHES], log_prob[SOME][BRANCHES];
    int64_t count[SOME];
    at_buffer all;
} branched;

static bool keep_branches(void *context, int64_t line, const at_result *result)
{
    branched *b = context;
    b->count[line] = result->count;
    for (int64_t i = 0; i < result->count; i++) {
        const at_hypothesis *h = &result->best[i];
        assert_true(h->count >= START_WORDS && h->size < BEGUN);
        snprintf(b->text[line][i], BEGUN, "%s", h->text);
        b->next[line][i] = h->count > START_WORDS ? h->ids[START_WORDS] : AT_END;
        b->score[line][i] = h->score;
        b->log_prob[line][i] = h->penalised;
        at_buffer_print(&b->all, "%s %a %a ", h->text, h->score, h->penalised);
    }
    return true;
}

typedef struct expectation {
    const char *text;
    double score;
} expectation;

static bool is_the_branch(void *context, int64_t line, const at_result *result)
{
    const expectation *e = context;
    (void)line;
    assert_string_equal(result->best[0].text, e->text);
    assert_true(result->best[0].score == e->score);
    return true;
}

/* The units after the start differ and are in the order of their probabilities; after each comes what greedy search
 * finds from there, to the same bits, and all of it in any batch and by any number of threads. */
static void test_a_start_has_alternatives(void **unused)
{
    (void)unused;
    char bytes[SOME][LONGEST], both[SOME][LONGEST + BEGUN];
    at_line lines[SOME], begun_lines[SOME];
    random_lines(bytes, lines);
    branched *b = calloc(1, sizeof *b), *judge = calloc(1, sizeof *judge);
    for (int kind = 0; at_model_kind_at(kind); kind++) {
        at_error error = {0};
        if (!at_model_kind_at(kind)->has_source || at_model_kind_at(kind)->has_pictures)
            continue;
        char model[60];
        snprintf(model, sizeof model, "%s hidden=16", at_model_kind_at(kind)->name);
        at_translator *t = translator_of(model, 3);
        for (int i = 0; i < SOME; i++) {
            begun_lines[i].text = both[i];
            begun_lines[i].size =
                (size_t)snprintf(both[i], sizeof both[i], "a%.*s\t%s", (int)lines[i].size, lines[i].text, start_words);
        }
        for (int run = 0; run < 3; run++) {
            branched *to = run ? b : judge;
            const at_search_settings settings = {
                .beam = BRANCHES, .n_best = BRANCHES, .prefix = true, .batch = (int64_t[]){64, 1, 5}[run]};
            at_threads_set(1 + run);
            assert_true(at_alternatives(t, &settings, begun_lines, SOME, keep_branches, to, &error));
            assert_int_equal(to->all.size, judge->all.size);
            assert_memory_equal(to->all.bytes, judge->all.bytes, to->all.size);
            at_buffer_free(&b->all);
        }
        at_buffer_free(&judge->all);
        for (int i = 0; i < SOME; i++) {
            assert_int_equal(judge->count[i], BRANCHES);
            for (int n = 0; n < BRANCHES; n++) {
                for (int m = 0; m < n; m++)
                    assert_true(judge->next[i][m] != judge->next[i][n] &&
                                judge->log_prob[i][m] >= judge->log_prob[i][n]);
                if (judge->next[i][n] == AT_END || judge->next[i][n] == AT_UNKNOWN)
                    continue;
                const at_search_settings greedy = {.prefix = true};
                const at_line line = {both[i], (size_t)snprintf(both[i], sizeof both[i], "a%.*s\t%s %s",
                                                                (int)lines[i].size, lines[i].text, start_words,
                                                                at_vocabulary_unit(t->target, judge->next[i][n]))};
                expectation e = {judge->text[i][n], judge->score[i][n]};
                assert_true(at_translate(t, &greedy, &line, 1, is_the_branch, &e, &error));
            }
        }
        at_translator_free(t);
    }
    free(b);
    free(judge);
    at_threads_set(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_start_has_alternatives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
