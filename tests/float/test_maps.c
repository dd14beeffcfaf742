/* at_maps: all attention weights of one line. Against a Transformer written down again in double, against the single
 * heads of at_align and at_translate bit by bit, and what weights must be: rows that sum to 1, no weight after a
 * decoder's row. */
/* cmocka.h needs these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "attend_unstable.h"
#include "search/search.h"
#include "translator_of.h"

#define TRANSFORMER "transformer layers=2 heads=2 hidden=8 ffn=12 norm=post"

static at_line line_of(const char *text)
{
    return (at_line){text, strlen(text)};
}

static at_maps *maps_of(at_translator *t, const at_search_settings *settings, const char *source, const char *target)
{
    at_error error = {0};
    const at_line from = line_of(source ? source : ""), to = line_of(target ? target : "");
    at_maps *maps = at_maps_new(t, settings, source ? &from : NULL, target ? &to : NULL, &error);
    if (!maps)
        fail_msg("%s", error.text);
    return maps;
}

static const at_map *map_at(const at_maps *maps, at_attention_kind kind, int layer)
{
    const at_map *map;
    for (int i = 0; (map = at_maps_at(maps, i)); i++)
        if (map->kind == kind && map->layer == layer)
            return map;
    return NULL;
}

static void assert_names(const char *const *names, int64_t count, const char *expected)
{
    char all[400] = "";
    for (int64_t i = 0; i < count; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? "|" : "", names[i]);
    assert_string_equal(all, expected);
}

/* ---- A Transformer written down again ------------------------------------------------------------------------- */

enum { D = 8, INNER = 12, HEADS = 2, SIZE = D / HEADS, MOST = 12 };
typedef double matrix[MOST][D];

static const at_real *value_of(const at_model *model, const char *name, int layer, const char *rest)
{
    char full[80];
    snprintf(full, sizeof full, layer ? "%s.%d.%s" : "%s", name, layer, rest);
    const int index = at_params_find(model->params, full);
    if (index < 0)
        fail_msg("no parameter %s", full);
    return at_params_value(model->params, index);
}

/* y = W x + b for the rows `from` .. `from` + out - 1 of W [.., in] */
static void linear(const at_real *W, const at_real *b, int in, int from, int out, const double *x, double *y)
{
    for (int o = 0; o < out; o++) {
        y[o] = (double)b[from + o];
        for (int i = 0; i < in; i++)
            y[o] += (double)W[(from + o) * in + i] * x[i];
    }
}

/* x = LN(x + y) */
static void add_and_norm(const at_model *model, const char *stack, int layer, int number, double *x, const double *y)
{
    char gain[20], bias[20];
    snprintf(gain, sizeof gain, "norm%d.g", number);
    snprintf(bias, sizeof bias, "norm%d.b", number);
    const at_real *g = value_of(model, stack, layer, gain), *b = value_of(model, stack, layer, bias);
    double mean = 0, variance = 0;
    for (int i = 0; i < D; i++)
        mean += (x[i] += y[i]) / D;
    for (int i = 0; i < D; i++)
        variance += (x[i] - mean) * (x[i] - mean) / D;
    for (int i = 0; i < D; i++)
        x[i] = (x[i] - mean) / sqrt(variance + model->settings.norm_epsilon) * (double)g[i] + (double)b[i];
}

static void feed_forward(const at_model *model, const char *stack, int layer, int norm, matrix x, int rows)
{
    for (int i = 0; i < rows; i++) {
        double inner[INNER], y[D];
        linear(value_of(model, stack, layer, "ffn.inner.W"), value_of(model, stack, layer, "ffn.inner.b"), D, 0, INNER,
               x[i], inner);
        for (int j = 0; j < INNER; j++)
            inner[j] = fmax(0, inner[j]);
        linear(value_of(model, stack, layer, "ffn.outer.W"), value_of(model, stack, layer, "ffn.outer.b"), INNER, 0, D,
               inner, y);
        add_and_norm(model, stack, layer, norm, x[i], y);
    }
}

/* Queries, keys, and the lengths |v W_O| of what the values of a head add. */
static void compare_vectors(const at_maps *maps, const at_map *map, const at_real *WO, matrix q, matrix k, matrix v)
{
    at_map_vectors got;
    int index = 0;
    while (at_maps_at(maps, index) != map)
        index++;
    assert_true(at_maps_vectors(maps, index, &got));
    assert_int_equal(got.size, SIZE);
    for (int h = 0; h < HEADS; h++) {
        for (int i = 0; i < map->rows; i++)
            for (int c = 0; c < SIZE; c++)
                assert_true(fabs((double)got.queries[(h * map->rows + i) * SIZE + c] - q[i][h * SIZE + c]) <= 1e-4);
        for (int j = 0; j < map->columns; j++) {
            double square = 0;
            for (int c = 0; c < SIZE; c++)
                assert_true(fabs((double)got.keys[(h * map->columns + j) * SIZE + c] - k[j][h * SIZE + c]) <= 1e-4);
            for (int o = 0; o < D; o++) {
                double sum = 0;
                for (int c = h * SIZE; c < (h + 1) * SIZE; c++)
                    sum += (double)WO[o * D + c] * v[j][c];
                square += sum * sum;
            }
            assert_true(fabs((double)got.norms[h * map->columns + j] - sqrt(square)) <= 1e-4);
        }
    }
    assert_false(at_maps_vectors(maps, 99, &got));
}

/* One sub-layer of attention from x [rows] to `from` [keys]; compares its weights with those of the map. */
static void attend_and_compare(const at_model *model, const at_maps *maps, const at_map *map, matrix x, int rows,
                               matrix from, int keys)
{
    const char *stack = map->kind == AT_ENCODER_ATTENTION ? "encoder" : "decoder";
    const bool cross = map->kind == AT_CROSS_ATTENTION;
    const int layer = map->layer, shift = cross ? 0 : D;
    const at_real *W = value_of(model, stack, layer, cross ? "cross.Q.W" : "self.QKV.W");
    const at_real *b = value_of(model, stack, layer, cross ? "cross.Q.b" : "self.QKV.b");
    const at_real *WK = cross ? value_of(model, stack, layer, "cross.KV.W") : W;
    const at_real *bK = cross ? value_of(model, stack, layer, "cross.KV.b") : b;
    matrix q, k, v, y;
    assert_int_equal(map->heads, HEADS);
    assert_int_equal(map->rows, rows);
    assert_int_equal(map->columns, keys);
    for (int i = 0; i < rows; i++)
        linear(W, b, D, 0, D, x[i], q[i]);
    for (int j = 0; j < keys; j++) {
        linear(WK, bK, D, shift, D, from[j], k[j]);
        linear(WK, bK, D, shift + D, D, from[j], v[j]);
    }
    compare_vectors(maps, map, value_of(model, stack, layer, cross ? "cross.O.W" : "self.O.W"), q, k, v);
    for (int h = 0; h < HEADS; h++)
        for (int i = 0; i < rows; i++) {
            const int seen = map->kind == AT_DECODER_ATTENTION ? i + 1 : keys;
            double w[MOST], sum = 0;
            for (int j = 0; j < seen; j++) {
                double e = 0;
                for (int c = h * SIZE; c < (h + 1) * SIZE; c++)
                    e += q[i][c] * k[j][c];
                sum += w[j] = exp(e / sqrt(SIZE));
            }
            for (int c = h * SIZE; c < (h + 1) * SIZE; c++) {
                y[i][c] = 0;
                for (int j = 0; j < seen; j++)
                    y[i][c] += w[j] / sum * v[j][c];
            }
            for (int j = 0; j < keys; j++) {
                const double got = (double)map->weights[(h * map->rows + i) * map->columns + j];
                const double expected = j < seen ? w[j] / sum : 0;
                if (!(fabs(got - expected) <= 1e-4))
                    fail_msg("%s, layer %d, head %d: w[%d][%d] is %.7f, not %.7f", stack, layer, h + 1, i, j, got,
                             expected);
            }
        }
    for (int i = 0; i < rows; i++) {
        double out[D];
        linear(value_of(model, stack, layer, cross ? "cross.O.W" : "self.O.W"),
               value_of(model, stack, layer, cross ? "cross.O.b" : "self.O.b"), D, 0, D, y[i], out);
        add_and_norm(model, stack, layer, cross ? 2 : 1, x[i], out);
    }
}

/* x = E sqrt(d) + P */
static void embed(const at_model *model, const char *name, const int32_t *ids, int count, matrix x)
{
    const at_real *E = value_of(model, name, 0, "");
    for (int i = 0; i < count; i++)
        for (int c = 0; c < D; c++) {
            const double angle = i / pow(10000, (c - c % 2) / (double)D);
            x[i][c] = (double)E[ids[i] * D + c] * sqrt(D) + (c % 2 ? cos(angle) : sin(angle));
        }
}

static int ids_of(const at_vocabulary *vocabulary, const char *text, int32_t *ids)
{
    int64_t replaced;
    return (int)at_vocabulary_encode(vocabulary, text, strlen(text), ids, MOST, &replaced, NULL);
}

static void check_all_layers(const at_translator *t, const at_maps *maps, const char *source, const char *target)
{
    const at_model *model = t->model;
    int32_t ids[MOST], read[MOST] = {AT_BEGIN};
    matrix R, x;
    const int S = t->source ? ids_of(t->source, source, ids) : 0, T = ids_of(t->target, target, read + 1) + 1;
    int found = 0;
    if (t->source)
        embed(model, "source.E", ids, S, R);
    for (int l = 1; t->source && l <= 2; l++, found++) {
        attend_and_compare(model, maps, map_at(maps, AT_ENCODER_ATTENTION, l), R, S, R, S);
        feed_forward(model, "encoder", l, 2, R, S);
    }
    embed(model, "target.E", read, T, x);
    for (int l = 1; l <= 2; l++, found++) {
        attend_and_compare(model, maps, map_at(maps, AT_DECODER_ATTENTION, l), x, T, x, T);
        if (t->source) {
            attend_and_compare(model, maps, map_at(maps, AT_CROSS_ATTENTION, l), x, T, R, S);
            found++;
        }
        feed_forward(model, "decoder", l, t->source ? 3 : 2, x, T);
    }
    assert_null(at_maps_at(maps, found));
    assert_null(at_maps_at(maps, -1));
}

static void test_weights_are_those_of_the_equations(void **unused)
{
    (void)unused;
    static const char *const kinds[] = {TRANSFORMER, "transformer-lm layers=2 heads=2 hidden=8 ffn=12 norm=post"};
    for (int i = 0; i < 2; i++) {
        at_translator *t = translator_of(kinds[i], 5);
        at_maps *maps = maps_of(t, &(at_search_settings){0}, i ? NULL : "abac dh", "it rained on the mat");
        check_all_layers(t, maps, "abac dh", "it rained on the mat");
        assert_string_equal(at_maps_target(maps), "it rained on the mat");
        at_maps_free(maps);
        at_translator_free(t);
    }
}

/* ---- Single heads --------------------------------------------------------------------------------------------- */

typedef struct single {
    const at_map *map;
    const at_maps *maps;
    int head;
} single;

static bool same_weights(void *context, int64_t line, const at_result *result)
{
    const single *s = context;
    const at_hypothesis *h = &result->best[0];
    (void)line;
    assert_int_equal(h->count + 1, s->map->rows);
    assert_int_equal(result->source_units, s->map->columns);
    assert_memory_equal(h->weights, s->map->weights + (s->head - 1) * s->map->rows * s->map->columns,
                        (size_t)(s->map->rows * s->map->columns) * sizeof(float));
    for (int64_t i = 0; i < s->map->rows; i++)
        assert_string_equal(h->names[i], s->map->row_names[i]);
    for (int64_t j = 0; j < s->map->columns; j++)
        assert_string_equal(result->source_names[j], s->map->column_names[j]);
    assert_string_equal(h->text, at_maps_target(s->maps));
    assert_true(fabs(h->score - at_maps_score(s->maps)) <= 1e-4 * (1 + fabs(h->score)));
    return true;
}

/* More target units than forced decoding takes at a time. */
#define LONG_TARGET "the cat sat on a mat while it rained on the mat and the cat sat while it rained on a cat"

static const char *const attending[] = {
    TRANSFORMER,
    TRANSFORMER " norm=pre kv-heads=1 position=rope decoder-layers=3 window=sliding:2",
    TRANSFORMER " normaliser=sparsemax position=shaw:2",
    TRANSFORMER " score=additive attention=4 normaliser=entmax15",
    "bahdanau embedding=8 hidden=12 attention=8 maxout=6",
    "luong hidden=12 heads=2 window=local-p:2 input-feeding=true",
    "luong hidden=12 normaliser=hard",
    "rnn-attention hidden=12",
};

static void test_every_head_has_the_bits_of_its_own_call(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof attending / sizeof *attending; i++)
        for (int forced = 0; forced < 2; forced++) {
            at_error error = {0};
            at_translator *t = translator_of(attending[i], 7);
            const at_search_settings settings = {.beam = 3, .length_penalty = 0.5};
            const at_line source = line_of("badge  hag"), target = line_of(LONG_TARGET);
            at_maps *maps = maps_of(t, &settings, source.text, forced ? LONG_TARGET : NULL);
            int layers = 0, heads = 0, found = 0;
            assert_true(at_translator_heads(t, &layers, &heads));
            for (int l = 1; l <= layers; l++)
                for (int h = 1; h <= heads; h++) {
                    single s = {map_at(maps, AT_CROSS_ATTENTION, l), maps, h};
                    at_search_settings one = settings;
                    one.wants_weights = true, one.layer = l, one.head = h;
                    assert_non_null(s.map);
                    assert_int_equal(s.map->heads, heads);
                    assert_true(forced ? at_align(t, &one, &source, &target, 1, same_weights, &s, &error)
                                       : at_translate(t, &one, &source, 1, same_weights, &s, &error));
                    found++;
                }
            assert_int_equal(found, layers * heads);
            assert_true(t->model->kind->has_cross_layers || !at_maps_at(maps, layers));
            at_maps_free(maps);
            at_translator_free(t);
        }
}

/* ---- What weights must be ------------------------------------------------------------------------------------- */

static void test_rows_sum_to_one_and_no_row_sees_what_follows(void **unused)
{
    (void)unused;
    static const char *const kinds[] = {TRANSFORMER, "transformer-lm layers=3 heads=4 hidden=8 ffn=12"};
    for (int k = 0; k < 2; k++) {
        at_translator *t = translator_of(kinds[k], 11);
        const at_search_settings settings = {.max_length = k ? 20 : 0};
        at_maps *maps = maps_of(t, &settings, k ? "the cat" : "hag", NULL);
        const at_map *map;
        at_attention_kind last = AT_ENCODER_ATTENTION;
        int layer = 0, count = 0;
        for (; (map = at_maps_at(maps, count)); count++) {
            assert_true(map->kind >= last);
            assert_int_equal(map->layer, map->kind == last ? layer + 1 : 1);
            last = map->kind, layer = map->layer;
            for (int64_t i = 0; i < map->heads * map->rows; i++) {
                double sum = 0;
                for (int64_t j = 0; j < map->columns; j++) {
                    const float w = map->weights[i * map->columns + j];
                    assert_true(w >= 0 && (map->kind != AT_DECODER_ATTENTION || j <= i % map->rows || w == 0));
                    sum += (double)w;
                }
                assert_true(fabs(sum - 1) <= 1e-4);
            }
        }
        assert_int_equal(count, k ? 3 : 6);
        assert_true(k == 0 || strncmp(at_maps_target(maps), "the cat ", 8) == 0);
        at_maps_free(maps);
        at_translator_free(t);
    }
}

static void test_names_are_those_of_the_units(void **unused)
{
    (void)unused;
    at_translator *t = translator_of(TRANSFORMER, 5);
    at_maps *maps = maps_of(t, &(at_search_settings){0}, "ab z", "a hat sat");
    const at_map *encoder = map_at(maps, AT_ENCODER_ATTENTION, 2), *decoder = map_at(maps, AT_DECODER_ATTENTION, 1),
                 *cross = map_at(maps, AT_CROSS_ATTENTION, 1);
    assert_names(encoder->row_names, encoder->rows, "a|b| |z");
    assert_names(encoder->column_names, encoder->columns, "a|b| |z");
    assert_names(decoder->row_names, decoder->rows, "<s>|a|hat|sat");
    assert_names(decoder->column_names, decoder->columns, "<s>|a|hat|sat");
    assert_names(cross->row_names, cross->rows, "a|hat|sat|</s>");
    assert_names(cross->column_names, cross->columns, "a|b| |z");
    at_maps_free(maps);
    at_translator_free(t);
}

/* ---- Words ---------------------------------------------------------------------------------------------------- */

static void test_words_are_sums_of_columns_and_means_of_rows(void **unused)
{
    (void)unused;
    at_translator *t = translator_of(TRANSFORMER, 5);
    at_error error = {0};
    for (int forced = 0; forced < 2; forced++) {
        at_maps *maps = maps_of(t, &(at_search_settings){0}, "ab  cde f", forced ? "it  rained" : NULL);
        at_maps *words = at_maps_words(maps, &error);
        static const int64_t of[] = {0, 0, -1, -1, 1, 1, 1, -1, 2};
        const at_map *units = map_at(maps, AT_ENCODER_ATTENTION, 2), *map = map_at(words, AT_ENCODER_ATTENTION, 2);
        assert_names(map->row_names, map->rows, "ab|cde|f");
        assert_int_equal(units->columns, 9);
        for (int h = 0; h < 2; h++)
            for (int64_t I = 0; I < 3; I++)
                for (int64_t J = 0; J < 3; J++) {
                    double sum = 0;
                    int rows = 0;
                    for (int64_t i = 0; i < 9; i++) {
                        rows += of[i] == I;
                        for (int64_t j = 0; j < 9; j++)
                            sum += of[i] == I && of[j] == J ? (double)units->weights[(h * 9 + i) * 9 + j] : 0;
                    }
                    assert_true(fabs(sum / rows - (double)map->weights[(h * 3 + I) * 3 + J]) <= 1e-6);
                }
        /* Target units are words already. */
        const at_map *cross = map_at(words, AT_CROSS_ATTENTION, 1), *of_units = map_at(maps, AT_CROSS_ATTENTION, 1);
        assert_int_equal(cross->rows, of_units->rows);
        for (int64_t i = 0; i < cross->rows; i++)
            assert_string_equal(cross->row_names[i], of_units->row_names[i]);
        assert_int_equal(map_at(words, AT_DECODER_ATTENTION, 1)->columns, of_units->rows);
        assert_string_equal(at_maps_target(words), at_maps_target(maps));
        assert_true(at_maps_score(words) == at_maps_score(maps));
        at_maps_free(maps); /* the words are an object of their own */
        assert_names(map->column_names, map->columns, "ab|cde|f");
        at_maps_free(words);
    }
    at_translator_free(t);
}

/* The words of a translation that the model has made itself, in letters. */
static void test_words_of_a_translation_into_letters(void **unused)
{
    (void)unused;
    at_translator *t = translator_of(TRANSFORMER, 5);
    at_vocabulary *letters = t->source;
    t->source = t->target; /* the other way round: words into letters */
    t->target = letters;
    at_model_free(t->model);
    t->model = model_of(TRANSFORMER, "", at_vocabulary_size(t->source), at_vocabulary_size(t->target), 3);
    at_error error = {0};
    int several = 0;
    for (uint64_t seed = 1; seed < 20; seed++) {
        const at_search_settings sample = {.temperature = 9, .seed = seed, .max_length = 30};
        at_maps *maps = maps_of(t, &sample, "the cat sat", NULL), *words = at_maps_words(maps, &error);
        const at_map *cross = map_at(words, AT_CROSS_ATTENTION, 1);
        const char *text = at_maps_target(maps);
        for (int64_t i = 0; i + 1 < cross->rows; i++) {
            text += strspn(text, " ");
            const size_t length = strcspn(text, " ");
            assert_true(strlen(cross->row_names[i]) == length && strncmp(cross->row_names[i], text, length) == 0);
            text += length;
            several += i > 0;
            double sum = 0;
            for (int64_t j = 0; j < cross->columns; j++)
                sum += (double)cross->weights[i * cross->columns + j];
            assert_true(fabs(sum - 1) <= 1e-4);
        }
        assert_int_equal(strspn(text, " "), strlen(text));
        at_maps_free(maps);
        at_maps_free(words);
    }
    assert_true(several > 10);
    at_translator_free(t);
}

/* ---- Edges ---------------------------------------------------------------------------------------------------- */

static void refused(at_translator *t, const char *source, const char *target, int code, const char *message)
{
    at_error error = {0};
    const at_line from = line_of(source ? source : ""), to = line_of(target ? target : "");
    assert_null(at_maps_new(t, &(at_search_settings){0}, source ? &from : NULL, target ? &to : NULL, &error));
    assert_int_equal(error.code, code);
    assert_string_equal(error.text, message);
}

static void test_what_has_no_maps(void **unused)
{
    (void)unused;
    at_translator *t = translator_of(TRANSFORMER, 5),
                  *lm = translator_of("transformer-lm layers=1 heads=1 hidden=8", 5),
                  *plain = translator_of("rnn-plain hidden=8", 5);
    refused(t, NULL, "the", AT_USAGE, "model 'transformer' translates: it needs a source");
    refused(lm, "the", "the", AT_USAGE,
            "model 'transformer-lm' is a language model: it takes one text, to read or to continue");
    refused(lm, NULL, NULL, AT_USAGE,
            "model 'transformer-lm' is a language model: it takes one text, to read or to continue");
    refused(plain, "a", "the", AT_UNSUPPORTED, "model 'rnn-plain' has no attention, so it has no weights to show");
    enum { LENGTH = 14000 };
    char *many = malloc(LENGTH + 1);
    memset(many, 'a', LENGTH);
    many[LENGTH] = 0;
    refused(t, many, "the", AT_UNSUPPORTED,
            "the weights of all layers and heads between 14000 source and 2 target units take more than 1 GiB; a "
            "shorter line takes less");
    free(many);
    at_maps *maps = maps_of(t, &(at_search_settings){0}, "", "the");
    assert_null(at_maps_at(maps, 0));
    assert_string_equal(at_maps_target(maps), "");
    at_maps_free(maps);
    maps = maps_of(t, &(at_search_settings){0}, "a", "");
    assert_int_equal(map_at(maps, AT_DECODER_ATTENTION, 2)->rows, 1);
    assert_true(map_at(maps, AT_DECODER_ATTENTION, 2)->weights[0] == 1);
    at_maps_free(maps);
    at_maps_free(NULL);
    at_translator_free(plain);
    at_translator_free(lm);
    at_translator_free(t);
}

/* In an ensemble the translation is that of all members, and the weights are the first one's. */
static void test_an_ensemble_shows_its_first_member(void **unused)
{
    (void)unused;
    at_translator *t = translator_of(TRANSFORMER, 5),
                  *other = translator_of("bahdanau embedding=8 hidden=12 attention=8 maxout=6", 6);
    at_maps *alone = maps_of(t, &(at_search_settings){0}, "hag", LONG_TARGET);
    t->more = &other->model;
    t->more_count = 1;
    at_maps *both = maps_of(t, &(at_search_settings){0}, "hag", LONG_TARGET);
    const at_map *a, *b;
    for (int i = 0; (a = at_maps_at(alone, i)); i++) {
        b = at_maps_at(both, i);
        assert_memory_equal(a->weights, b->weights, (size_t)(a->heads * a->rows * a->columns) * sizeof(float));
    }
    assert_null(at_maps_at(both, 6));
    assert_true(at_maps_score(alone) != at_maps_score(both));
    at_maps_free(both);
    at_maps_free(alone);
    t->more = NULL;
    t->more_count = 0;
    at_translator_free(other);
    at_translator_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights_are_those_of_the_equations),
        cmocka_unit_test(test_every_head_has_the_bits_of_its_own_call),
        cmocka_unit_test(test_rows_sum_to_one_and_no_row_sees_what_follows),
        cmocka_unit_test(test_names_are_those_of_the_units),
        cmocka_unit_test(test_words_are_sums_of_columns_and_means_of_rows),
        cmocka_unit_test(test_words_of_a_translation_into_letters),
        cmocka_unit_test(test_what_has_no_maps),
        cmocka_unit_test(test_an_ensemble_shows_its_first_member),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
