/* What at_attend refuses, message by message; nothing is written then. Also the rows chosen from the weights. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attend.h"

/* The call that each row changes: query [2,3,8], key [2,4,8], value [2,4,6], two heads. */
enum { B = 2, Q = 3, K = 4, WIDTH = 8, VALUE_WIDTH = 6, H = 2 };

typedef struct shape {
    const char *name;
    int rank;
    int64_t dim[4];
} shape;

typedef struct refusal {
    const char *says;
    int code;
    at_settings s;
    int64_t query_width, key_width, value_width; /* 0: as above */
    shape p[5];
    int64_t lengths[B];
    bool use_lengths;
    int64_t query_start;
    int64_t rows[2];
    int64_t row_count;
    bool sample, log_prob, no_key;
} refusal;

static const refusal refusals[] = {
    /* names */
    {"no score 'scalled'; did you mean 'scaled'?", AT_USAGE, .s = {.score = "scalled"}},
    {"no normaliser 'softmx'; did you mean 'softmax'?", AT_USAGE, .s = {.normaliser = "softmx"}},
    {"no window 'slidin'; did you mean 'sliding'?", AT_USAGE, .s = {.window = "slidin:3"}},
    {"no position 'ropes'; did you mean 'rope'?", AT_USAGE, .s = {.position = "ropes"}},
    {"no activation 'tahn' for score 'additive'; did you mean 'tanh'?", AT_USAGE, .s = {.score = "additive:tahn"}},
    /* their arguments */
    {"score 'dot' takes no argument, but 'dot:3' has one", AT_USAGE, .s = {.score = "dot:3"}},
    {"window 'causal' takes no argument, but 'causal:2' has one", AT_USAGE, .s = {.window = "causal:2"}},
    {"window 'sliding' needs a whole number: 'sliding:W'", AT_USAGE, .s = {.window = "sliding"}},
    {"position 'shaw' needs a whole number: 'shaw:K[:keys|:values]'", AT_USAGE, .s = {.position = "shaw"}},
    {"no table 'key' for position 'shaw'; did you mean 'keys'?", AT_USAGE, .s = {.position = "shaw:2:key"}},
    {"position 'shaw::keys' must have a whole number from 0 to 2147483647 after the colon", AT_USAGE,
     .s = {.position = "shaw::keys"}},
    {"position 'shaw:1:keys' does not go with score 'additive': there is no inner product for the key positions",
     AT_UNSUPPORTED, .s = {.score = "additive", .position = "shaw:1:keys"}},
    {"window 'sliding:' must have a whole number from 0 to 2147483647 after the colon", AT_USAGE,
     .s = {.window = "sliding:"}},
    {"window 'local-m:-1' must have a whole number from 0 to 2147483647 after the colon", AT_USAGE,
     .s = {.window = "local-m:-1"}},
    {"position 'shaw:2x' must have a whole number from 0 to 2147483647 after the colon", AT_USAGE,
     .s = {.position = "shaw:2x"}},
    {"window 'sliding:99999999999' must have a whole number from 0 to 2147483647 after the colon", AT_USAGE,
     .s = {.window = "sliding:99999999999"}},
    {"window 'local-p:0' must have D of at least 1, because its Gaussian has sigma D/2", AT_USAGE,
     .s = {.window = "local-p:0"}},
    {"position 't5:7' must have an even number of buckets from 4 to 510", AT_USAGE, .s = {.position = "t5:7"}},
    {"position 't5:2' must have an even number of buckets from 4 to 510", AT_USAGE, .s = {.position = "t5:2"}},
    {"position 't5:512' must have an even number of buckets from 4 to 510", AT_USAGE, .s = {.position = "t5:512"}},
    /* heads */
    {"`heads` is -1 and must be at least 1", AT_USAGE, .s = {.heads = -1}},
    {"`kv-heads` is 3 and must divide `heads`, which is 4", AT_USAGE, .s = {.heads = 4, .kv_heads = 3}},
    {"`kv-heads` is -2 and must divide `heads`, which is 2", AT_USAGE, .s = {.kv_heads = -2}},
    {"`heads` is 3 and does not divide the query width 8", AT_SHAPE, .s = {.heads = 3}},
    {"the key width is 8 but must be 4: `kv-heads` 1 times the query's head size 4", AT_SHAPE, .s = {.kv_heads = 1}},
    {"`kv-heads` is 2 and does not divide the value width 7", AT_SHAPE, .value_width = 7},
    {"position 'rope' rotates pairs of numbers, so the head size must be even, and it is 3", AT_SHAPE,
     .s = {.position = "rope"}, .query_width = 6, .key_width = 6},
    /* combinations */
    {"position 'rope' does not go with score 'additive': it rotates the two sides of an inner product, and there is "
     "none",
     AT_UNSUPPORTED, .s = {.score = "additive", .position = "rope"}},
    {"parameter 'wK' does not go with score 'additive': there is no inner product for the key positions",
     AT_UNSUPPORTED, .s = {.score = "additive", .position = "shaw:1"},
     .p = {{"v", 1, {3}}, {"W", 2, {3, 4}}, {"U", 2, {3, 4}}, {"wK", 2, {3, 4}}}},
    {"position 'shaw' needs parameter 'wK' or 'wV' or both, and neither is given", AT_FAILED,
     .s = {.position = "shaw:1"}},
    /* parameters */
    {"score 'general' needs parameter 'W' [D,D] = [4,4], which is not given", AT_FAILED, .s = {.score = "general"}},
    {"score 'additive' needs parameter 'U' [A,D] = [3,4], which is not given", AT_FAILED, .s = {.score = "additive"},
     .p = {{"v", 1, {3}}, {"W", 2, {3, 4}}}},
    {"window 'local-p' needs parameter 'Wp' [A,D] = [A,4], which is not given", AT_FAILED,
     .s = {.window = "local-p:2"}},
    {"position 't5' needs parameter 'bias' [BUCKETS,H] = [32,2], which is not given", AT_FAILED,
     .s = {.position = "t5"}},
    {"parameter 'U' is not used by score 'dot'; it belongs to 'additive'", AT_FAILED, .s = {.score = "dot"},
     .p = {{"U", 2, {3, 4}}}},
    {"parameter 'W' is not used by score 'scaled'; it belongs to 'general' or 'additive'", AT_FAILED,
     .p = {{"W", 2, {4, 4}}}},
    {"position 'shaw' has a table of keys only here and takes no parameter 'wV'", AT_UNSUPPORTED,
     .s = {.position = "shaw:1:keys"}, .p = {{"wV", 2, {3, 3}}}},
    {"position 'shaw' has a table of values only here and takes no parameter 'wK'", AT_UNSUPPORTED,
     .s = {.position = "shaw:1:values"}, .p = {{"wK", 2, {3, 4}}}},
    {"parameter 'wV' is not used by position 'rope'; it belongs to 'shaw'", AT_FAILED, .s = {.position = "rope"},
     .p = {{"wV", 2, {3, 3}}}},
    {"no setting has a parameter 'wQ'; did you mean 'WQ'?", AT_FAILED, .p = {{"wQ", 2, {8, 8}}}},
    {"no setting has a parameter 'something'", AT_FAILED, .p = {{"something", 2, {8, 8}}}},
    {"parameter 'W' is given twice", AT_FAILED, .s = {.score = "general"}, .p = {{"W", 2, {4, 4}}, {"W", 2, {4, 4}}}},
    {"parameter 'W' has rank 9, which is outside 0 to 8", AT_SHAPE, .s = {.score = "general"}, .p = {{"W", 9, {4, 4}}}},
    {"parameter 'W' of score 'general' has shape [4,5] but needs [D,D] = [4,4], or [H,D,D] = [2,4,4] for one set per "
     "head",
     AT_SHAPE, .s = {.score = "general"}, .p = {{"W", 2, {4, 5}}}},
    {"parameter 'W' of score 'general' has shape [3,4,4] but needs [D,D] = [4,4], or [H,D,D] = [2,4,4] for one set per "
     "head",
     AT_SHAPE, .s = {.score = "general"}, .p = {{"W", 3, {3, 4, 4}}}},
    {"parameter 'W' of score 'additive' has shape [5,4] but needs [A,D] = [3,4], or [H,A,D] = [2,3,4] for one set per "
     "head",
     AT_SHAPE, .s = {.score = "additive"}, .p = {{"v", 1, {3}}, {"W", 2, {5, 4}}, {"U", 2, {3, 4}}}},
    {"parameter 'v' of score 'additive' has shape [3,1,1] but needs [A], or [H,A] = [2,A] for one set per head",
     AT_SHAPE, .s = {.score = "additive"}, .p = {{"v", 3, {3, 1, 1}}, {"W", 2, {5, 4}}, {"U", 2, {3, 4}}}},
    {"parameter 'v' of score 'additive' has shape [0] but needs [A], or [H,A] = [2,A] for one set per head", AT_SHAPE,
     .s = {.score = "additive"}, .p = {{"v", 1, {0}}, {"W", 2, {0, 4}}, {"U", 2, {0, 4}}}},
    {"parameter 'v' of score 'additive' has shape [-1] but needs [A], or [H,A] = [2,A] for one set per head", AT_SHAPE,
     .s = {.score = "additive"}, .p = {{"v", 1, {-1}}, {"W", 2, {-1, 4}}, {"U", 2, {-1, 4}}}},
    {"parameter 'wK' of position 'shaw' has shape [4,4] but needs [2K+1,D] = [5,4], or [H,2K+1,D] = [2,5,4] for one "
     "set per "
     "head",
     AT_SHAPE, .s = {.position = "shaw:2"}, .p = {{"wK", 2, {4, 4}}}},
    {"parameter 'bias' of position 't5' has shape [8,3] but needs [BUCKETS,H] = [8,2]", AT_SHAPE,
     .s = {.position = "t5:8"}, .p = {{"bias", 2, {8, 3}}}},
    {"parameter 'WQ' has shape [8,7] but needs [out,8] for query's width 8", AT_SHAPE, .p = {{"WQ", 2, {8, 7}}}},
    {"`heads` is 2 and does not divide the projected query width 5", AT_SHAPE, .p = {{"WQ", 2, {5, 8}}}},
    {"the projected key width is 6 but must be 8: `kv-heads` 2 times the query's head size 4", AT_SHAPE,
     .p = {{"WK", 2, {6, 8}}}},
    {"parameter 'WO' has shape [8,8] but needs [out,6] for 2 heads of size 3", AT_SHAPE, .p = {{"WO", 2, {8, 8}}}},
    /* arrays and numbers */
    {"key is not given", AT_USAGE, .no_key = true},
    {"query has shape [2,3,-8] but needs [B,Q,width] with a width of at least 1", AT_SHAPE, .query_width = -8},
    {"length 5 of batch row 1 is outside 0 to 4, the number of keys", AT_SHAPE, .use_lengths = true, .lengths = {4, 5}},
    {"length -1 of batch row 0 is outside 0 to 4, the number of keys", AT_SHAPE, .use_lengths = true,
     .lengths = {-1, 4}},
    {"`query-start` is -1, which is outside 0 to 2147483644", AT_SHAPE, .query_start = -1},
    {"row 3 is asked for, and there are 3 queries, counted from 0", AT_SHAPE, .row_count = 2, .rows = {0, 3}},
    {"normaliser 'softmax' has nothing to sample; 'hard' does", AT_UNSUPPORTED, .sample = true},
    {"normaliser 'softmax' has no log-probability; 'hard' does", AT_UNSUPPORTED, .log_prob = true},
};

static float numbers[1000];

static void messages(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *r = &refusals[i];
        float untouched[100], out[100], weights[100], grad[100], log_prob[100];
        for (int j = 0; j < 100; j++)
            untouched[j] = out[j] = weights[j] = grad[j] = log_prob[j] = 77;
        at_parameter p[5] = {0};
        int count = 0;
        for (; count < 5 && r->p[count].name; count++) {
            p[count] =
                (at_parameter){.name = r->p[count].name, .rank = r->p[count].rank, .value = numbers, .grad = grad};
            memcpy(p[count].dim, r->p[count].dim, sizeof r->p[count].dim);
        }
        at_settings s = r->s;
        s.heads = s.heads ? s.heads : H;
        at_call call = {.batch = B,
                        .queries = Q,
                        .keys = K,
                        .query_width = r->query_width ? r->query_width : WIDTH,
                        .key_width = r->key_width ? r->key_width : WIDTH,
                        .value_width = r->value_width ? r->value_width : VALUE_WIDTH,
                        .query = numbers,
                        .key = r->no_key ? NULL : numbers,
                        .value = numbers,
                        .lengths = r->use_lengths ? r->lengths : NULL,
                        .query_start = r->query_start,
                        .rows = r->row_count ? r->rows : NULL,
                        .row_count = r->row_count,
                        .sample = r->sample,
                        .parameters = p,
                        .parameter_count = count,
                        .out = out,
                        .weights = weights,
                        .log_prob = r->log_prob ? log_prob : NULL,
                        .grad_out = numbers,
                        .grad_query = grad,
                        .grad_key = grad,
                        .grad_value = grad};
        at_error error = {0};
        assert_false(at_attend(&s, &call, &error));
        assert_string_equal(error.text, r->says);
        assert_int_equal(error.code, r->code);
        assert_memory_equal(out, untouched, sizeof untouched);
        assert_memory_equal(weights, untouched, sizeof untouched);
        assert_memory_equal(grad, untouched, sizeof untouched);
        assert_memory_equal(log_prob, untouched, sizeof untouched);
        /* the first message is kept, and another call with it does nothing */
        call = (at_call){.batch = 1, .queries = 1, .keys = 1, .query_width = 2, .key_width = 2, .value_width = 2};
        call.query = call.key = call.value = numbers;
        call.out = out;
        assert_false(at_attend(&(at_settings){0}, &call, &error));
        assert_string_equal(error.text, r->says);
        assert_memory_equal(out, untouched, sizeof untouched);
    }
}

/* Errors that do not fit into the table. */
static void misuse(void **state)
{
    (void)state;
    static const char *const says[] = {
        "parameter 0 has no name",
        "parameter 'W' has no values",
        "the number of parameters is 1, and none is given",
        "batch 1, queries -1 and keys 1 must not be negative",
        "batch 1, queries 1 and keys 4294967296 may each be at most 2147483647",
        "the number of rows asked for is -1",
        "query is not given",
    };
    for (int i = 0; i < 7; i++) {
        at_parameter p = {.name = i == 0 ? NULL : "W", .rank = 2, .dim = {2, 2}, .value = i == 1 ? NULL : numbers};
        const int64_t row = 0;
        at_call call = {.batch = 1,
                        .queries = i == 3 ? -1 : 1,
                        .keys = i == 4 ? (int64_t)1 << 32 : 1,
                        .query_width = 2,
                        .key_width = 2,
                        .value_width = 2,
                        .query = i == 6 ? NULL : numbers,
                        .key = numbers,
                        .value = numbers,
                        .rows = i == 5 ? &row : NULL,
                        .row_count = -1,
                        .parameters = i == 2 ? NULL : &p,
                        .parameter_count = i < 3};
        at_error error = {0};
        assert_false(at_attend(&(at_settings){.score = i < 3 ? "general" : "dot"}, &call, &error));
        assert_string_equal(error.text, says[i]);
    }
}

/* The weights of chosen rows are those of the full matrix, in the requested order, repeated if requested twice. */
static void chosen_rows(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++)
        numbers[i] = sinf((float)i);
    for (int n = 0; at_catalogue(n / 2); n++) {
        const at_entry *entry = at_catalogue(n / 2);
        if (strcmp(entry->axis, "normaliser") != 0)
            continue;
        float all[B * H * Q * K], some[B * H * 4 * K];
        const int64_t rows[] = {2, 0, 2, 1};
        at_settings s = {.normaliser = entry->name, .heads = H, .plain = n % 2};
        at_call call = {.batch = B,
                        .queries = Q,
                        .keys = K,
                        .query_width = WIDTH,
                        .key_width = WIDTH,
                        .value_width = VALUE_WIDTH,
                        .query = numbers,
                        .key = numbers + 100,
                        .value = numbers + 200,
                        .weights = all};
        at_error error = {0};
        assert_true(at_attend(&s, &call, &error));
        call.weights = some;
        call.rows = rows;
        call.row_count = 4;
        assert_true(at_attend(&s, &call, &error));
        for (int bh = 0; bh < B * H; bh++)
            for (int r = 0; r < 4; r++)
                assert_memory_equal(some + (bh * 4 + r) * K, all + (bh * Q + rows[r]) * K, K * sizeof(float));
    }
}

/* For a name that resembles none, the message lists all, in catalogue order. */
static void unknown_names_list_all(void **state)
{
    (void)state;
    char text[400];
    int used = snprintf(text, sizeof text, "no score 'xyzzy'; there are"), count = 0;
    while (strcmp(at_catalogue(count)->axis, "score") == 0)
        count++;
    for (int i = 0; i < count; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s '%s'",
                         i == 0           ? ""
                         : i == count - 1 ? " and"
                                          : ",",
                         at_catalogue(i)->name);
    at_error error = {0};
    assert_false(at_attend(&(at_settings){.score = "xyzzy"}, &(at_call){0}, &error));
    assert_string_equal(error.text, text);
}

/* The axes in their order, each with an entry, and no name twice on one axis. */
static void catalogue_has_an_order(void **state)
{
    (void)state;
    static const char *const axes[] = {"score", "normaliser", "window", "position"};
    int axis = 0, count = 0;
    for (const at_entry *entry; (entry = at_catalogue(count)); count++) {
        if (strcmp(entry->axis, axes[axis]) != 0)
            assert_string_equal(entry->axis, axes[++axis]);
        for (int i = 0; i < count; i++)
            assert_true(strcmp(at_catalogue(i)->axis, entry->axis) != 0 ||
                        strcmp(at_catalogue(i)->name, entry->name) != 0);
    }
    assert_int_equal(axis, 3);
    assert_true(count >= 20);
    assert_null(at_catalogue(-1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages),
        cmocka_unit_test(misuse),
        cmocka_unit_test(chosen_rows),
        cmocka_unit_test(unknown_names_list_all),
        cmocka_unit_test(catalogue_has_an_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
