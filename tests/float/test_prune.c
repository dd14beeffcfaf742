/* Heads that are measured and removed: the same bits for any batch size and number of threads, and a removed head adds
 * exactly nothing. */
/* cmocka.h needs these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <unistd.h>

#include "attend_unstable.h"
#include "translator_of.h"

enum { PAIRS = 4 };
static const at_line sources[PAIRS] = {{"abca dh", 7}, {"", 0}, {"bg", 2}, {"hgfe dcba", 9}},
                     targets[PAIRS] = {{"the cat sat on the mat", 22}, {"it", 2}, {"it rained", 9}, {"a mat", 5}};
#define MODEL "transformer layers=2 heads=4 hidden=16 ffn=12"

static at_head_list *measured(at_translator *t, int64_t batch)
{
    at_error error = {0};
    at_head_list *list = at_heads_measure(t, &(at_search_settings){.batch = batch}, sources, targets, PAIRS, &error);
    if (!list)
        fail_msg("%s", error.text);
    return list;
}

static void test_same_bits(void **state)
{
    (void)state;
    at_translator *t = translator_of(MODEL, 3);
    at_head_list *first = measured(t, 1);
    assert_int_equal(first->pairs, 3);
    assert_int_equal(first->empty, 1);
    assert_int_equal(first->first_empty, 2);
    for (int threads = 1; threads <= 3; threads++)
        for (int64_t batch = 1; batch <= PAIRS; batch++) {
            at_threads_set(threads);
            at_head_list *list = measured(t, batch);
            assert_int_equal(list->count, first->count);
            assert_memory_equal(list->head, first->head, (size_t)first->count * sizeof *first->head);
            at_head_list_free(list);
        }
    at_threads_set(0);
    at_head_list_free(first);
    at_translator_free(t);
}

static bool take_score(void *context, int64_t line, const at_result *result)
{
    (void)line;
    *(double *)context = result->best[0].score;
    return true;
}

static double score_of(at_translator *t)
{
    at_error error = {0};
    double score = 0;
    assert_true(at_align(t, &(at_search_settings){0}, &sources[0], &targets[0], 1, take_score, &score, &error));
    return score;
}

static void test_prune(void **state)
{
    (void)state;
    at_error error = {0};
    at_translator *t = translator_of(MODEL, 3);
    const double before = score_of(t);
    at_head_list *list = measured(t, 2);
    const at_head gone[] = {list->head[1], list->head[10], list->head[19]};
    assert_true(at_translator_prune(t, gone, 3, &error));
    const double after = score_of(t);
    assert_true(before != after);

    /* It adds nothing, whatever its values are; and the other heads do. */
    at_head_list *pruned = measured(t, 2);
    for (int h = 0; h < pruned->count; h++)
        assert_int_equal(h == 1 || h == 10 || h == 19, pruned->head[h].importance == 0);
    at_real *V = at_params_value(t->model->params, at_params_find(t->model->params, "encoder.1.self.QKV.W"));
    for (int64_t i = (2 * 16 + 4) * 16; i < (2 * 16 + 8) * 16; i++) /* W_V of the second head */
        V[i] += 1;
    at_params_changed(t->model->params);
    assert_true(score_of(t) == after);

    char path[] = "/tmp/attend-prune-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0 && at_translator_write(t, path, &error));
    at_translator *read = at_translator_load(path, &error);
    assert_true(read && score_of(read) == after);
    close(file);
    unlink(path);
    at_translator_free(read);
    at_head_list_free(pruned);
    at_head_list_free(list);
    at_translator_free(t);
}

static void refuse(at_translator *t, const at_head *head, const char *why)
{
    at_error error = {0};
    assert_false(at_translator_prune(t, head, 1, &error));
    assert_int_equal(error.code, AT_UNSUPPORTED);
    assert_string_equal(error.text, why);
}

static void test_refusals(void **state)
{
    (void)state;
    at_error error = {0};
    const at_head head = {.kind = AT_CROSS_ATTENTION, .layer = 1, .head = 2}, no_head = {.layer = 1, .head = 5},
                  no_layer = {.layer = 3, .head = 1};
    at_translator *t = translator_of(MODEL, 3), *recurrent = translator_of("bahdanau embedding=4 hidden=4", 3);
    refuse(t, &no_head, "the model has no head 1.5 of this kind");
    refuse(t, &no_layer, "the model has no head 3.1 of this kind");
    refuse(recurrent, &head,
           "model 'bahdanau' has no heads to measure or remove: only 'transformer' and 'transformer-lm' have layers of "
           "multi-head attention");
    assert_null(at_heads_measure(recurrent, &(at_search_settings){0}, sources, targets, PAIRS, &error));
    assert_int_equal(error.code, AT_UNSUPPORTED);
    error = (at_error){0};
    assert_null(at_heads_measure(t, &(at_search_settings){0}, NULL, targets, PAIRS, &error));
    assert_int_equal(error.code, AT_USAGE);
    error = (at_error){0};
    at_translator *clone = at_translator_clone(t, &error);
    refuse(t, &head, "heads are removed from a single model, not from one that a clone shares");
    at_translator_free(clone);
    assert_true(at_translator_prune(t, &head, 1, &error));
    const int stop = 1;
    assert_null(at_heads_measure(t, &(at_search_settings){.stop = &stop}, sources, targets, PAIRS, &error));
    assert_int_equal(error.code, AT_INTERRUPTED);
    at_translator_free(recurrent);
    at_translator_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_prune),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
