/* The importance of heads: |dL/dxi| of every head against central differences, xi being a factor of the head's columns
 * of the output projection; the mean over pairs; the shares of a layer; and the entropy of the weights. */
/* cmocka.h needs these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "attend_unstable.h"
#include "translator_of.h"

enum { PAIRS = 3 };
static const at_line sources[PAIRS] = {{"abca dh", 7}, {"bg", 2}, {"hgfe dcba", 9}},
                     targets[PAIRS] = {{"the cat sat on the mat", 22}, {"it rained", 9}, {"a mat", 5}};

static at_head_list *measured(at_translator *t, const at_line *source, const at_line *target, int64_t count,
                              int64_t batch)
{
    at_error error = {0};
    at_head_list *list =
        at_heads_measure(t, &(at_search_settings){.batch = batch}, t->source ? source : NULL, target, count, &error);
    if (!list)
        fail_msg("%s", error.text);
    return list;
}

static bool add_score(void *context, int64_t line, const at_result *result)
{
    (void)line;
    *(double *)context -= result->best[0].score;
    return true;
}

/* -log p of one pair, by search's forced decoding and not by what is tested. */
static double loss_of(at_translator *t, int pair)
{
    at_error error = {0};
    double loss = 0;
    if (!at_align(t, &(at_search_settings){0}, t->source ? &sources[pair] : NULL, &targets[pair], 1, add_score, &loss,
                  &error))
        fail_msg("%s", error.text);
    return loss;
}

static void scale_head(at_translator *t, const at_head *head, double factor)
{
    const at_model *model = t->model;
    const int64_t d = model->settings.hidden, size = d / model->settings.heads;
    char name[60];
    snprintf(name, sizeof name, "%s.%d.%s.O.W", head->kind == AT_ENCODER_ATTENTION ? "encoder" : "decoder", head->layer,
             head->kind == AT_CROSS_ATTENTION ? "cross" : "self");
    at_real *O = at_params_value(model->params, at_params_find(model->params, name));
    for (int64_t row = 0; row < d; row++)
        for (int64_t c = (head->head - 1) * size; c < head->head * size; c++)
            O[row * d + c] *= factor;
    at_params_changed(model->params);
}

/* The loss with the head times 1 + change. */
static double changed(at_translator *t, const at_head *head, int pair, double change)
{
    scale_head(t, head, 1 + change);
    const double loss = loss_of(t, pair);
    scale_head(t, head, 1 / (1 + change));
    return loss;
}

/* (8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / 12 h: these losses are strongly curved */
static double difference(at_translator *t, const at_head *head, int pair)
{
    const double h = 1e-5, near = changed(t, head, pair, h) - changed(t, head, pair, -h),
                 far = changed(t, head, pair, 2 * h) - changed(t, head, pair, -2 * h);
    return (8 * near - far) / (12 * h);
}

static void test_gradients(void **state)
{
    (void)state;
    static const struct {
        const char *settings;
        int heads;
    } cases[] = {{"transformer layers=2 heads=2 hidden=8 ffn=12 norm=post", 12},
                 {"transformer layers=1 decoder-layers=2 heads=4 kv-heads=2 hidden=8 ffn=12 position=rope", 20},
                 {"transformer layers=1 heads=2 hidden=8 ffn=12 position=shaw:2 normaliser=entmax15", 6},
                 {"transformer-lm layers=2 heads=2 hidden=8 ffn=12", 4}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        at_translator *t = translator_of(cases[c].settings, 3);
        at_head_list *all = measured(t, sources, targets, PAIRS, 2);
        assert_int_equal(all->count, cases[c].heads);
        assert_int_equal(all->pairs, PAIRS);
        for (int h = 0; h < all->count; h++) {
            double mean = 0;
            for (int pair = 0; pair < PAIRS; pair++) {
                at_head_list *one = measured(t, &sources[pair], &targets[pair], 1, 1);
                const double expected = fabs(difference(t, &all->head[h], pair));
                if (fabs(one->head[h].importance - expected) > 1e-6 * fmax(1, expected))
                    fail_msg("%s: head %d of pair %d: %.9g, by differences %.9g", cases[c].settings, h, pair,
                             one->head[h].importance, expected);
                mean += expected / PAIRS;
                at_head_list_free(one);
            }
            assert_true(mean > 1e-4 && fabs(all->head[h].importance - mean) <= 1e-6 * fmax(1, mean));
        }
        at_head_list_free(all);
        at_translator_free(t);
    }
}

/* The squares of a layer's shares sum to 1, and they are in proportion to the importances. */
static void test_shares(void **state)
{
    (void)state;
    at_translator *t = translator_of("transformer layers=2 heads=4 hidden=8 ffn=12", 5);
    at_head_list *list = measured(t, sources, targets, PAIRS, 3);
    assert_int_equal(list->count, 24);
    for (int from = 0; from < list->count; from += 4) {
        double squares = 0;
        for (int h = from; h < from + 4; h++) {
            const at_head *head = &list->head[h], *first = &list->head[from];
            assert_int_equal(head->head, h - from + 1);
            assert_int_equal(head->layer, 1 + from / 4 % 2);
            assert_int_equal(head->kind, from / 8);
            squares += head->share * head->share;
            assert_true(fabs(head->share * first->importance - first->share * head->importance) < 1e-12);
        }
        assert_true(fabs(squares - 1) < 1e-12);
    }
    at_head_list_free(list);
    at_translator_free(t);
}

static void test_entropy(void **state)
{
    (void)state;
    at_translator *t = translator_of("transformer layers=2 heads=2 hidden=8 ffn=12", 5);
    at_head_list *list = measured(t, sources, targets, 1, 1);
    at_error error = {0};
    at_maps *maps = at_maps_new(t, &(at_search_settings){0}, &sources[0], &targets[0], &error);
    int h = 0;
    for (int i = 0; at_maps_at(maps, i); i++) {
        const at_map *map = at_maps_at(maps, i);
        for (int head = 0; head < map->heads; head++, h++) {
            double sum = 0;
            for (int64_t n = 0; n < map->rows * map->columns; n++) {
                const double w = (double)map->weights[head * map->rows * map->columns + n];
                sum -= w > 0 ? w * log(w) : 0;
            }
            assert_true(fabs(sum / (double)map->rows - list->head[h].entropy) < 1e-5);
        }
    }
    assert_int_equal(h, list->count);
    at_maps_free(maps);
    at_head_list_free(list);
    at_translator_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_entropy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
