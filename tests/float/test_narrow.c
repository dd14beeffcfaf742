/* Weights in fewer bits: rounding, products of the same bits for any rows and threads, whole models, their files. */
/* cmocka.h needs these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <unistd.h>

#include "attend_unstable.h"
#include "base/rng.h"
#include "io/dtype.h"
#include "kernels/gemm.h"
#include "kernels/isa.h"
#include "kernels/rows.h"
#include "translator_of.h"

static at_arena *arena;

/* ---- Rounding ---- */

/* Every 16-bit number that is finite is itself when it is rounded, and what lies between two goes to the nearer one. */
static void test_halves(void **unused)
{
    (void)unused;
    for (int type = AT_NUMBERS_BF16; type <= AT_NUMBERS_F16; type++)
        for (uint32_t bits = 0; bits < 0x7f80; bits++) {
            const bool is_bfloat = type == AT_NUMBERS_BF16;
            if (!is_bfloat && bits >= 0x7bff)
                break;
            float low = is_bfloat ? at_float_of_bfloat((uint16_t)bits) : at_float_of_half((uint16_t)bits);
            float high = is_bfloat ? at_float_of_bfloat((uint16_t)(bits + 1)) : at_float_of_half((uint16_t)(bits + 1));
            if (isinf(high))
                break;
            const float middle = low + (high - low) / 2;
            const float w[] = {low, -low, nextafterf(middle, 0), middle, nextafterf(middle, INFINITY)};
            uint16_t is[5];
            assert_true(at_narrow_round((at_number_type)type, w, 1, 5, is, NULL));
            assert_int_equal(is[0], bits);
            assert_int_equal(is[1], bits | 0x8000);
            if (low == 0 && is_bfloat)
                continue; /* the middle of denormal floats */
            assert_int_equal(is[2], bits);
            assert_int_equal(is[3], bits + (bits & 1));
            assert_int_equal(is[4], bits + 1);
        }
    uint16_t is[1];
    assert_false(at_narrow_round(AT_NUMBERS_F16, (const float[]){65520}, 1, 1, is, NULL));
    assert_true(at_narrow_round(AT_NUMBERS_F16, (const float[]){65519.9f}, 1, 1, is, NULL));
    assert_false(at_narrow_round(AT_NUMBERS_BF16, (const float[]){3.4e38f}, 1, 1, is, NULL));
    assert_false(at_narrow_round(AT_NUMBERS_BF16, (const float[]){NAN}, 1, 1, is, NULL));
}

static void test_int8(void **unused)
{
    (void)unused;
    const float w[] = {-2, 1, 0.5f, 0.007f, 0, 0, 0, 0, 1e-30f, 2e-30f, -254e-30f, 3e-30f};
    const int8_t expected[] = {-127, 64, 32, 0, 0, 0, 0, 0, 0, 1, -127, 2};
    int8_t q[12];
    float scale[3];
    assert_true(at_narrow_round(AT_NUMBERS_INT8, w, 3, 4, q, scale));
    for (int i = 0; i < 12; i++)
        if (i != 8 && i != 11) /* halfway in exact arithmetic */
            assert_int_equal(q[i], expected[i]);
    assert_true(scale[0] == 2.0f / 127 && scale[1] == 0 && scale[2] == 254e-30f / 127);
    assert_false(at_narrow_round(AT_NUMBERS_INT8, (const float[]){INFINITY}, 1, 1, q, scale));
}

/* ---- Products ---- */

typedef struct problem {
    int64_t m, n, k;
    float *a, *w, *bias, *wide; /* wide: the widened W */
    at_narrow narrow;
    void *rows;
} problem;

static float *numbers(uint64_t seed, int64_t count)
{
    at_rng rng = {.seed = seed};
    float *x = malloc((size_t)count * sizeof *x + 1);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(2 * at_rng_uniform(&rng) - 1);
    return x;
}

static problem problem_of(at_number_type type, int64_t m, int64_t n, int64_t k)
{
    problem p = {m, n, k, numbers(1, m * k), numbers(2, n * k), numbers(3, n), NULL, {.type = type}, NULL};
    const size_t size = at_number_size(type), count = (size_t)at_narrow_count(n, k);
    float *scale = calloc((size_t)at_narrow_count(n, 1), sizeof *scale);
    void *panels = aligned_alloc(AT_ALIGN, (count * size + AT_ALIGN) / AT_ALIGN * AT_ALIGN);
    p.rows = malloc((size_t)(n * k) * size + 1);
    p.wide = malloc((size_t)(n * k) * sizeof *p.wide + 1);
    assert_true(at_narrow_round(type, p.w, n, k, p.rows, scale));
    at_narrow_pack(type, p.rows, n, k, panels);
    p.narrow.numbers = panels;
    if (type == AT_NUMBERS_INT8)
        p.narrow.scale = scale;
    else
        free(scale);
    for (int64_t i = 0; i < n; i++)
        at_narrow_row(&p.narrow, k, i, p.wide + i * k);
    return p;
}

static void problem_free(problem *p)
{
    void *all[] = {p->a, p->w, p->bias, p->wide, p->rows, (void *)p->narrow.numbers, (void *)p->narrow.scale};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Rows [from, from + m) of act(A W^T + bias), with the weights as they are or widened. */
static float *product(const problem *p, int64_t from, int64_t m, bool widened, bool bias, at_act act)
{
    float *c = malloc((size_t)(m * p->n) * sizeof *c);
    at_gemm g = {.m = m,
                 .n = p->n,
                 .k = p->k,
                 .a = p->a + from * p->k,
                 .a_row = p->k,
                 .a_col = 1,
                 .c = c,
                 .c_row = p->n,
                 .bias = bias ? p->bias : NULL,
                 .act = act};
    if (widened) {
        g.b = p->wide;
        g.b_row = 1;
        g.b_col = p->k;
    } else {
        g.narrow = p->narrow;
    }
    assert_true(at_gemm_run(&g, arena));
    return c;
}

/* A product of bf16 or f16 has the bits of the product with the widened numbers; with int8 the scale comes after the sum.
 * Every row has the bits that it has alone, for any threads. */
static void check_product(const problem *p, bool bias, at_act act)
{
    float *all = product(p, 0, p->m, false, bias, act), *wide = product(p, 0, p->m, true, bias, act);
    const size_t bytes = (size_t)(p->m * p->n) * sizeof *all;
    if (p->narrow.type != AT_NUMBERS_INT8)
        assert_memory_equal(all, wide, bytes);
    for (int64_t i = 0; i < p->m * p->n; i++)
        if (!(fabsf(all[i] - wide[i]) <= 1e-6f * (float)(p->k + 2)))
            fail_msg("%s %s m=%d n=%d k=%d: %g, not %g", at_kernels_name(), at_number_name(p->narrow.type), (int)p->m,
                     (int)p->n, (int)p->k, (double)all[i], (double)wide[i]);
    for (int64_t rows = 1; rows <= 8; rows++)
        for (int64_t from = 0; from + rows <= p->m; from += 5) {
            float *part = product(p, from, rows, false, bias, act);
            assert_memory_equal(part, all + from * p->n, (size_t)(rows * p->n) * sizeof *part);
            free(part);
        }
    for (int threads = 2; threads <= 3; threads++) {
        at_threads_set(threads);
        float *again = product(p, 0, p->m, false, bias, act);
        assert_memory_equal(again, all, bytes);
        free(again);
    }
    at_threads_set(1);
    free(all);
    free(wide);
}

static void test_products(void **unused)
{
    (void)unused;
    static const int64_t shapes[][3] = {{1, 1, 1},    {3, 15, 7},    {7, 16, 33},    {8, 17, 64},    {13, 70, 257},
                                        {64, 33, 20}, {6, 200, 300}, {20, 40, 1100}, {100, 65, 600}, {7, 300, 0}};
    for (const char *const *set = (const char *const[]){"plain", "", NULL}; *set; set++) {
        assert_true(at_kernels_choose(**set ? *set : NULL));
        for (int type = AT_NUMBERS_BF16; type < AT_NUMBER_TYPES; type++)
            for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
                problem p = problem_of((at_number_type)type, shapes[i][0], shapes[i][1], shapes[i][2]);
                check_product(&p, false, AT_ACT_NONE);
                check_product(&p, true, AT_ACT_NONE);
                check_product(&p, true, AT_ACT_TANH);
                void *rows = malloc((size_t)(p.n * p.k) * at_number_size(p.narrow.type) + 1);
                at_narrow_unpack(p.narrow.type, p.narrow.numbers, p.n, p.k, rows);
                assert_memory_equal(rows, p.rows, (size_t)(p.n * p.k) * at_number_size(p.narrow.type));
                free(rows);
                problem_free(&p);
            }
    }
    at_kernels_choose(NULL);
}

/* ---- Models ---- */

enum { LINES = 5 };
static const at_line sources[LINES] = {{"abca dh", 7}, {"bg", 2}, {"hgfe dcba", 9}, {"a", 1}, {"ccdd", 4}},
                     beginnings[LINES] = {{"the cat", 7}, {"it", 2}, {"a mat while", 11}, {"sat", 3}, {"on", 2}};
static const char *const models[] = {
    "transformer layers=2 heads=4 hidden=16 ffn=20",
    "transformer layers=1 heads=2 hidden=16 ffn=8 tie=false norm=pre",
    "transformer-lm layers=2 heads=2 hidden=16 ffn=12",
    "luong hidden=12 embedding=9 layers=2 input-feeding=true",
    "luong cell=gru hidden=12 embedding=9 normaliser=hard hard-training=exact",
    "bahdanau hidden=12 embedding=9 attention=7 maxout=6",
    "rnn-attention hidden=12",
    "rnn-encdec hidden=12 embedding=9",
    "rnn-plain hidden=12",
};
enum { MODELS = sizeof models / sizeof *models };

typedef struct heard {
    double score[LINES];
    char text[LINES][200];
} heard;

static bool hear(void *context, int64_t line, const at_result *result)
{
    heard *h = context;
    h->score[line] = result->best[0].score;
    snprintf(h->text[line], sizeof h->text[line], "%s", result->best[0].text);
    return true;
}

static heard translated(at_translator *t, int64_t batch, int64_t beam)
{
    heard h = {0};
    at_error error = {0};
    const at_search_settings settings = {.batch = batch, .beam = beam, .max_length = 9};
    if (!at_translate(t, &settings, at_translator_has_source(t) ? sources : beginnings, LINES, hear, &h, &error))
        fail_msg("%s", error.text);
    return h;
}

static heard aligned(at_translator *t)
{
    heard h = {0};
    at_error error = {0};
    if (!at_align(t, &(at_search_settings){0}, at_translator_has_source(t) ? sources : NULL, beginnings, LINES, hear,
                  &h, &error))
        fail_msg("%s", error.text);
    return h;
}

static void convert(at_translator *t, const char *weights)
{
    at_error error = {0};
    if (!at_translator_convert(t, weights, &error))
        fail_msg("%s", error.text);
}

static void test_models(void **unused)
{
    (void)unused;
    for (int m = 0; m < MODELS; m++)
        for (int type = AT_NUMBERS_BF16; type < AT_NUMBER_TYPES; type++) {
            at_translator *t = translator_of(models[m], 3);
            const int64_t full = at_params_bytes(t->model->params);
            convert(t, at_number_name((at_number_type)type));
            assert_true(at_params_bytes(t->model->params) < full);
            const heard one = translated(t, 1, 1), forced = aligned(t);
            for (int threads = 1; threads <= 3; threads++) {
                at_threads_set(threads);
                const heard many = translated(t, 64, 1);
                assert_memory_equal(&many, &one, sizeof one);
                const heard beams = translated(t, 64, 3), alone = translated(t, 1, 3);
                assert_memory_equal(&beams, &alone, sizeof beams);
            }
            at_threads_set(1);
            convert(t, at_number_name((at_number_type)type)); /* again: nothing changes */
            const heard again = translated(t, 2, 1);
            assert_memory_equal(&again, &one, sizeof one);
            convert(t, "f32"); /* the widened numbers */
            assert_int_equal(at_params_bytes(t->model->params), full);
            const heard wide = aligned(t);
            for (int i = 0; i < LINES; i++)
                if (!(fabs(wide.score[i] - forced.score[i]) <= 1e-4 * fabs(wide.score[i])))
                    fail_msg("%s as %s: a score of %.9g, and widened %.9g", models[m],
                             at_number_name((at_number_type)type), forced.score[i], wide.score[i]);
            if (strncmp(models[m], "transformer", 11) == 0 && type != AT_NUMBERS_INT8)
                assert_memory_equal(&wide, &forced, sizeof wide);
            at_translator_free(t);
        }
}

static void test_refusals(void **unused)
{
    (void)unused;
    at_error error = {0};
    at_translator *t = translator_of(models[0], 3);
    assert_false(at_translator_convert(t, "int4", &error));
    assert_string_equal(error.text, "no number type 'int4'; did you mean 'int8'?");
    error = (at_error){0};
    at_params_value(t->model->params, at_params_find(t->model->params, "target.E"))[5] = 70000;
    assert_false(at_translator_convert(t, "f16", &error));
    assert_string_equal(error.text, "the matrix 'target.E' has a number that f16 cannot hold; bf16 holds every finite "
                                    "number below 3.39e38");
    error = (at_error){0};
    at_translator *clone = at_translator_clone(t, &error);
    assert_false(at_translator_convert(t, "bf16", &error));
    assert_string_equal(error.text,
                        "the weights of a single model can be converted, not those of one that a clone shares");
    at_translator_free(clone);
    at_translator_free(t);
}

/* What needs gradients or other numbers than the weights gives works, too. */
static void test_uses(void **unused)
{
    (void)unused;
    at_error error = {0};
    at_translator *t = translator_of(models[0], 3);
    at_head_list *before = at_heads_measure(t, &(at_search_settings){0}, sources, beginnings, LINES, &error);
    convert(t, "bf16");
    convert(t, "f32");
    at_head_list *wide = at_heads_measure(t, &(at_search_settings){0}, sources, beginnings, LINES, &error);
    convert(t, "bf16");
    at_head_list *narrow = at_heads_measure(t, &(at_search_settings){0}, sources, beginnings, LINES, &error);
    assert_true(before && wide && narrow && before->count == narrow->count);
    assert_memory_equal(wide->head, narrow->head, (size_t)wide->count * sizeof *wide->head);
    assert_true(at_translator_prune(t, narrow->head, 1, &error));
    assert_int_equal(at_params_type(t->model->params, 0), AT_NUMBERS_REAL); /* pruned models are float32 */
    at_head_list_free(before);
    at_head_list_free(wide);
    at_head_list_free(narrow);
    at_translator_free(t);
}

/* ---- Files ---- */

static char folder[] = "/tmp/test_narrow_XXXXXX";

static void write_to(at_translator *t, const char *path)
{
    at_error error = {0};
    if (!at_translator_write(t, path, &error))
        fail_msg("%s", error.text);
}

static at_translator *load(const char *path)
{
    at_error error = {0};
    at_translator *t = at_translator_load(path, &error);
    if (!t)
        fail_msg("%s", error.text);
    return t;
}

static size_t file_bytes(const char *path, char **bytes)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    const size_t size = (size_t)ftell(file);
    *bytes = malloc(size);
    rewind(file);
    assert_int_equal(fread(*bytes, 1, size, file), size);
    fclose(file);
    return size;
}

static void test_round_trip(void **unused)
{
    (void)unused;
    for (int m = 0; m < MODELS; m++)
        for (int type = AT_NUMBERS_BF16; type < AT_NUMBER_TYPES; type++) {
            at_translator *t = translator_of(models[m], 3);
            convert(t, at_number_name((at_number_type)type));
            write_to(t, "one");
            at_translator *read = load("one");
            write_to(read, "two");
            const heard before = translated(t, 2, 2), after = translated(read, 2, 2);
            assert_memory_equal(&before, &after, sizeof before);
            char *one, *two;
            const size_t size = file_bytes("one", &one);
            assert_int_equal(size, file_bytes("two", &two));
            assert_memory_equal(one, two, size);
            at_error error = {0};
            bool has_checksum = false;
            assert_true(at_model_verify("one", &has_checksum, &error) && has_checksum);
            char *info = at_translator_info_json(read, &error), key[40];
            snprintf(key, sizeof key, "\"weights\": \"%s\"", at_number_name((at_number_type)type));
            assert_non_null(strstr(info, key));
            at_text_free(info);
            free(one);
            free(two);
            at_translator_free(read);
            at_translator_free(t);
        }
}

/* A half and a quarter: the file, and the memory that the parameters take, whatever has been translated. */
static void test_sizes(void **unused)
{
    (void)unused;
    static const double most[AT_NUMBER_TYPES] = {1, 0.51, 0.51, 0.27};
    double full_file = 0, full_memory = 0;
    for (int type = AT_NUMBERS_REAL; type < AT_NUMBER_TYPES; type++) {
        at_translator *t = translator_of("transformer layers=1 heads=4 hidden=192 ffn=768", 3);
        convert(t, at_number_name((at_number_type)type));
        write_to(t, "sized");
        at_translator_free(t);
        char *bytes;
        const double file = (double)file_bytes("sized", &bytes);
        free(bytes);
        t = load("sized");
        translated(t, 2, 1);
        const double memory = (double)at_params_held(t->model->params);
        if (type == AT_NUMBERS_REAL) {
            full_file = file;
            full_memory = (double)at_params_bytes(t->model->params);
        }
        if (file > most[type] * full_file || (type && memory > most[type] * full_memory))
            fail_msg("%s: %.0f bytes of %.0f in the file, %.0f of %.0f in memory", at_number_name((at_number_type)type),
                     file, full_file, memory, full_memory);
        at_translator_free(t);
    }
}

typedef enum fault { NO_SCALE, LONG_SCALE, WIDE_SCALE, NAN_SCALE, NEGATIVE, LARGE, STRAY, WORDS_OF_16, NO_FAULT } fault;

/* A copy of the file with one fault in the tensor target.E or its scale. */
static void damage(const char *from, const char *to, fault how)
{
    at_error error = {0};
    at_tensors *file = at_tensors_read(from, &error), *copy = at_tensors_new();
    static const char *const keys[] = {"format",     "attend.kind",       "attend.version",   "settings",
                                       "max-length", "source.vocabulary", "target.vocabulary"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_true(at_tensors_set_meta(copy, keys[i], at_tensors_meta(file, keys[i]), &error));
    for (int i = 0; i < at_tensors_count(file); i++) {
        const char *name = at_tensors_name(file, i);
        at_array array = *at_tensors_get(file, name);
        const bool is_scale = strcmp(name, "target.E.scale") == 0;
        float *numbers = array.data;
        if (is_scale && how == NO_SCALE)
            continue;
        if (is_scale && how == LONG_SCALE)
            array.dim[0]--;
        if (is_scale && how == WIDE_SCALE) {
            array.rank = 2;
            array.dim[1] = 1;
        }
        if (is_scale && (how == NAN_SCALE || how == NEGATIVE || how == LARGE))
            numbers[2] = how == NAN_SCALE ? NAN : how == NEGATIVE ? -1 : 3e36f;
        if (strcmp(name, "target.E") == 0 && how == WORDS_OF_16)
            ((uint16_t *)array.data)[5] = 0x7f80;
        assert_true(at_tensors_put(copy, name, &array, &error));
        if (how == STRAY && strcmp(name, "target.E") == 0)
            assert_true(at_tensors_put(copy, "target.E.scale", &array, &error));
    }
    assert_true(at_tensors_write(copy, to, &error));
    at_tensors_free(file);
    at_tensors_free(copy);
}

static void refuses(const char *from, fault how, const char *message)
{
    at_error error = {0};
    damage(from, "damaged", how);
    at_translator *t = at_translator_load("damaged", &error);
    if (t || strcmp(error.text, message) != 0 || error.code != AT_FORMAT)
        fail_msg("fault %d says '%s' instead of '%s'", how, error.text, message);
}

static void test_hostile_files(void **unused)
{
    (void)unused;
    at_translator *t = translator_of(models[0], 3);
    convert(t, "bf16");
    write_to(t, "bf16");
    convert(t, "int8");
    write_to(t, "int8");
    at_translator_free(t);
    damage("int8", "damaged", NO_FAULT);
    at_translator_free(load("damaged"));
    static const char needs[] = "'damaged' needs 'target.E.scale', float32 [13]: a factor for each row of 'target.E'";
    refuses("int8", NO_SCALE, needs);
    refuses("int8", LONG_SCALE, needs);
    refuses("int8", WIDE_SCALE, needs);
    refuses("int8", NAN_SCALE, "'damaged': number 2 of 'target.E.scale' is nan; a factor is 0 or more, and finite");
    refuses("int8", NEGATIVE, "'damaged': number 2 of 'target.E.scale' is -1; a factor is 0 or more, and finite");
    refuses("int8", LARGE, "'damaged': number 2 of 'target.E.scale' is 3e+36; a factor is 0 or more, and finite");
    refuses("bf16", STRAY, "'damaged' holds 'target.E.scale', which is not a parameter of its model");
    refuses("bf16", WORDS_OF_16,
            "'damaged': tensor 'target.E' holds a NaN or an infinity at [0,5]; such a file is damaged and of no use");
}

static int begin(void **unused)
{
    (void)unused;
    at_threads_set(1);
    arena = at_arena_new();
    return !arena || !mkdtemp(folder) || chdir(folder) != 0;
}

static int end(void **unused)
{
    (void)unused;
    at_arena_free(arena);
    static const char *const files[] = {"one", "two", "sized", "bf16", "int8", "damaged"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        unlink(files[i]);
    return chdir("/") != 0 || rmdir(folder) != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves),     cmocka_unit_test(test_int8),     cmocka_unit_test(test_products),
        cmocka_unit_test(test_models),     cmocka_unit_test(test_refusals), cmocka_unit_test(test_uses),
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_sizes),    cmocka_unit_test(test_hostile_files),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
