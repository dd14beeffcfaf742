/* Models of CTranslate2: every version and type of its format gives our parameters, and everything else is refused. Where
 * there are real ones beside the project, tests/command/readers.sh compares their output. ATTEND_SEEDS=FOLDER keeps two
 * files as seeds of the fuzzer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/translator.h"

enum { F32, I8, I16, I32, F16, BF16 };
enum { LAYERS = 1, HIDDEN = 8, FFN = 3, WORDS = 3 };

static char folder[] = "/tmp/attend-ctranslate2-XXXXXX";

static int enter(void **state)
{
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

/* ---- The model that is written -------------------------------------------------------------------------------- */

/* As the reader describes what it reads. The bias of the output is random, too. */
static at_model *make_positioned(bool pre, const char *position)
{
    const bool added = !strchr(position, ':');
    at_error error = {0};
    at_model_settings settings = {0};
    at_given given = {0};
    static const char *const all[][2] = {{"model", "transformer"},
                                         {"layers", "1"},
                                         {"hidden", "8"},
                                         {"heads", "8"},
                                         {"ffn", "3"},
                                         {"tie", "false"},
                                         {"output-bias", "true"},
                                         {"position-layout", "halves"},
                                         {"position-denominator", "half-1"},
                                         {"first-position", "1"}};
    for (size_t i = 0; i < sizeof all / sizeof *all - (added ? 0 : 3); i++)
        assert_true(at_model_set(&settings, &given, all[i][0], all[i][1], &error));
    assert_true(at_model_set(&settings, &given, "norm", pre ? "pre" : "post", &error));
    assert_true(at_model_set(&settings, &given, "position", position, &error));
    assert_true(at_model_settings_complete(&settings, &given, &error));
    settings.source_size = settings.target_size = AT_SPECIALS + WORDS;
    at_model *model = at_model_new(&settings, 7, &error);
    assert_non_null(model);
    at_real *b = at_params_value(model->params, at_params_find(model->params, "output.b"));
    for (int i = 0; i < AT_SPECIALS + WORDS; i++)
        b[i] = (at_real)i / 8;
    return model;
}

static at_model *make_model(bool pre)
{
    return make_positioned(pre, "sinusoidal");
}

/* ---- Writing, independent of the reader ------------------------------------------------------------------------ */

typedef struct file {
    FILE *stream;
    int version, type; /* of the matrices */
} file;

static void put_number(FILE *stream, uint32_t number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        fputc((int)(number >> 8 * i & 255), stream);
}

static void put_string(FILE *stream, const char *text)
{
    put_number(stream, (uint32_t)strlen(text) + 1, 2);
    fwrite(text, 1, strlen(text) + 1, stream);
}

static void put_head(const file *f, const char *name, int type, int rank, const int64_t *dim)
{
    static const int sizes[] = {4, 1, 2, 4, 2, 2};
    uint32_t count = 1;
    put_string(f->stream, name);
    put_number(f->stream, (uint32_t)rank, 1);
    for (int i = 0; i < rank; i++) {
        put_number(f->stream, (uint32_t)dim[i], 4);
        count *= (uint32_t)dim[i];
    }
    put_number(f->stream, (uint32_t)(f->version >= 4 ? type : sizes[type]), 1);
    put_number(f->stream, f->version >= 4 ? count * (uint32_t)sizes[type] : count, 4);
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* A half by truncation; the numbers here are neither large nor denormal halves. */
static uint32_t half_of(float x)
{
    const uint32_t bits = bits_of(x);
    const int exponent = (int)(bits >> 23 & 255) - 127 + 15;
    return exponent <= 0 ? bits >> 16 & 0x8000 : (bits >> 16 & 0x8000) | (uint32_t)exponent << 10 | (bits >> 13 & 1023);
}

static void put_array(const file *f, const char *name, at_params *p, const char *ours)
{
    const int index = at_params_find(p, ours);
    assert_true(index >= 0);
    const at_shape shape = at_params_shape(p, index);
    const at_real *x = at_params_value(p, index);
    const int type = shape.rank == 2 ? f->type : F32;
    const int64_t rows = type == I8 ? shape.dim[0] : 1, width = at_shape_count(shape) / rows;
    float scale[64];
    put_head(f, name, type, shape.rank, shape.dim);
    for (int64_t r = 0; r < rows; r++) {
        float largest = 0;
        for (int64_t c = 0; c < width; c++)
            largest = fmaxf(largest, fabsf((float)x[r * width + c]));
        scale[r] = type == I8 ? 127 / largest : type == I16 ? 1024 / largest : 1;
        for (int64_t c = 0; c < width; c++) {
            const float value = (float)x[r * width + c];
            if (type == I8 || type == I16)
                put_number(f->stream, (uint32_t)(int)rintf(value * scale[r]), type == I8 ? 1 : 2);
            else if (type == F16 || type == BF16)
                put_number(f->stream, type == F16 ? half_of(value) : bits_of(value) >> 16, 2);
            else
                put_number(f->stream, bits_of(value), 4);
        }
    }
    if (type == I8 || type == I16) {
        char scales[200];
        snprintf(scales, sizeof scales, "%s_scale", name);
        put_head(f, scales, F32, type == I8, &rows);
        for (int64_t r = 0; r < rows; r++)
            put_number(f->stream, bits_of(scale[r]), 4);
    }
}

/* In version 1 the names of OpenNMT-tf. */
typedef struct name_of {
    const char *ours, *theirs, *before;
} name_of;
static const name_of arrays[] = {
    {"source.E", "encoder/embeddings/weight", "transformer/encoder/w_embs:0"},
    {"target.E", "decoder/embeddings/weight", "transformer/decoder/w_embs:0"},
    {"output.W", "decoder/projection/weight", "transformer/decoder/dense/kernel:0"},
    {"output.b", "decoder/projection/bias", "transformer/decoder/dense/bias:0"},
    {"encoder.1.norm1.g", "encoder/layer_0/self_attention/layer_norm/gamma",
     "transformer/encoder/layer_0/multi_head/LayerNorm/gamma:0"},
    {"encoder.1.norm1.b", "encoder/layer_0/self_attention/layer_norm/beta",
     "transformer/encoder/layer_0/multi_head/LayerNorm/beta:0"},
    {"encoder.1.self.QKV.W", "encoder/layer_0/self_attention/linear_0/weight",
     "transformer/encoder/layer_0/multi_head/conv1d/kernel:0"},
    {"encoder.1.self.QKV.b", "encoder/layer_0/self_attention/linear_0/bias",
     "transformer/encoder/layer_0/multi_head/conv1d/bias:0"},
    {"encoder.1.self.O.W", "encoder/layer_0/self_attention/linear_1/weight",
     "transformer/encoder/layer_0/multi_head/conv1d_1/kernel:0"},
    {"encoder.1.self.O.b", "encoder/layer_0/self_attention/linear_1/bias",
     "transformer/encoder/layer_0/multi_head/conv1d_1/bias:0"},
    {"encoder.1.norm2.g", "encoder/layer_0/ffn/layer_norm/gamma", "transformer/encoder/layer_0/ffn/LayerNorm/gamma:0"},
    {"encoder.1.norm2.b", "encoder/layer_0/ffn/layer_norm/beta", "transformer/encoder/layer_0/ffn/LayerNorm/beta:0"},
    {"encoder.1.ffn.inner.W", "encoder/layer_0/ffn/linear_0/weight", "transformer/encoder/layer_0/ffn/conv1d/kernel:0"},
    {"encoder.1.ffn.inner.b", "encoder/layer_0/ffn/linear_0/bias", "transformer/encoder/layer_0/ffn/conv1d/bias:0"},
    {"encoder.1.ffn.outer.W", "encoder/layer_0/ffn/linear_1/weight",
     "transformer/encoder/layer_0/ffn/conv1d_1/kernel:0"},
    {"encoder.1.ffn.outer.b", "encoder/layer_0/ffn/linear_1/bias", "transformer/encoder/layer_0/ffn/conv1d_1/bias:0"},
    {"decoder.1.norm1.g", "decoder/layer_0/self_attention/layer_norm/gamma",
     "transformer/decoder/layer_0/masked_multi_head/LayerNorm/gamma:0"},
    {"decoder.1.norm1.b", "decoder/layer_0/self_attention/layer_norm/beta",
     "transformer/decoder/layer_0/masked_multi_head/LayerNorm/beta:0"},
    {"decoder.1.self.QKV.W", "decoder/layer_0/self_attention/linear_0/weight",
     "transformer/decoder/layer_0/masked_multi_head/conv1d/kernel:0"},
    {"decoder.1.self.QKV.b", "decoder/layer_0/self_attention/linear_0/bias",
     "transformer/decoder/layer_0/masked_multi_head/conv1d/bias:0"},
    {"decoder.1.self.O.W", "decoder/layer_0/self_attention/linear_1/weight",
     "transformer/decoder/layer_0/masked_multi_head/conv1d_1/kernel:0"},
    {"decoder.1.self.O.b", "decoder/layer_0/self_attention/linear_1/bias",
     "transformer/decoder/layer_0/masked_multi_head/conv1d_1/bias:0"},
    {"decoder.1.norm2.g", "decoder/layer_0/attention/layer_norm/gamma",
     "transformer/decoder/layer_0/multi_head/LayerNorm/gamma:0"},
    {"decoder.1.norm2.b", "decoder/layer_0/attention/layer_norm/beta",
     "transformer/decoder/layer_0/multi_head/LayerNorm/beta:0"},
    {"decoder.1.cross.Q.W", "decoder/layer_0/attention/linear_0/weight",
     "transformer/decoder/layer_0/multi_head/conv1d/kernel:0"},
    {"decoder.1.cross.Q.b", "decoder/layer_0/attention/linear_0/bias",
     "transformer/decoder/layer_0/multi_head/conv1d/bias:0"},
    {"decoder.1.cross.KV.W", "decoder/layer_0/attention/linear_1/weight",
     "transformer/decoder/layer_0/multi_head/conv1d_1/kernel:0"},
    {"decoder.1.cross.KV.b", "decoder/layer_0/attention/linear_1/bias",
     "transformer/decoder/layer_0/multi_head/conv1d_1/bias:0"},
    {"decoder.1.cross.O.W", "decoder/layer_0/attention/linear_2/weight",
     "transformer/decoder/layer_0/multi_head/conv1d_2/kernel:0"},
    {"decoder.1.cross.O.b", "decoder/layer_0/attention/linear_2/bias",
     "transformer/decoder/layer_0/multi_head/conv1d_2/bias:0"},
    {"decoder.1.norm3.g", "decoder/layer_0/ffn/layer_norm/gamma", "transformer/decoder/layer_0/ffn/LayerNorm/gamma:0"},
    {"decoder.1.norm3.b", "decoder/layer_0/ffn/layer_norm/beta", "transformer/decoder/layer_0/ffn/LayerNorm/beta:0"},
    {"decoder.1.ffn.inner.W", "decoder/layer_0/ffn/linear_0/weight", "transformer/decoder/layer_0/ffn/conv1d/kernel:0"},
    {"decoder.1.ffn.inner.b", "decoder/layer_0/ffn/linear_0/bias", "transformer/decoder/layer_0/ffn/conv1d/bias:0"},
    {"decoder.1.ffn.outer.W", "decoder/layer_0/ffn/linear_1/weight",
     "transformer/decoder/layer_0/ffn/conv1d_1/kernel:0"},
    {"decoder.1.ffn.outer.b", "decoder/layer_0/ffn/linear_1/bias", "transformer/decoder/layer_0/ffn/conv1d_1/bias:0"},
    {"encoder.norm.g", "encoder/layer_norm/gamma", "transformer/encoder/LayerNorm/gamma:0"},
    {"encoder.norm.b", "encoder/layer_norm/beta", "transformer/encoder/LayerNorm/beta:0"},
    {"decoder.norm.g", "decoder/layer_norm/gamma", "transformer/decoder/LayerNorm/gamma:0"},
    {"decoder.norm.b", "decoder/layer_norm/beta", "transformer/decoder/LayerNorm/beta:0"},
};
enum { ARRAYS = sizeof arrays / sizeof *arrays };

static void put_flag(const file *f, const char *name, int value)
{
    put_head(f, name, I8, 0, NULL);
    put_number(f->stream, (uint32_t)value, 1);
}

/* Relative positions, if the model has them: the tables of both sides. */
static const char *const tables[][2] = {
    {"encoder.1.self.w_K", "encoder/layer_0/self_attention/relative_position_keys"},
    {"encoder.1.self.w_V", "encoder/layer_0/self_attention/relative_position_values"},
    {"decoder.1.self.w_K", "decoder/layer_0/self_attention/relative_position_keys"},
    {"decoder.1.self.w_V", "decoder/layer_0/self_attention/relative_position_values"}};
enum { TABLES = sizeof tables / sizeof *tables };

static void write_words(void)
{
    FILE *stream = fopen("shared_vocabulary.txt", "w");
    fputs("<blank>\n<unk>\n<s>\n</s>\na\nb\nc\n", stream);
    fclose(stream);
}

/* The encoder's embeddings are an alias of the decoder's in the versions that have aliases. */
static void write_model(const at_model *model, int version, int type)
{
    file f = {fopen("model.bin", "wb"), version, type};
    const bool pre = at_params_find(model->params, "encoder.norm.g") >= 0, aliased = version >= 3;
    const int norms = pre ? 0 : 4, matrices = type == I8 || type == I16 ? 14 : 0;
    put_number(f.stream, (uint32_t)version, 4);
    if (version >= 2) {
        put_string(f.stream, version == 2 ? "TransformerBase" : "TransformerSpec");
        put_number(f.stream, version >= 5 ? 7 : 3, 4);
    }
    const bool relative = at_params_find(model->params, tables[0][0]) >= 0;
    put_number(f.stream,
               (uint32_t)(ARRAYS - norms - aliased + matrices - (aliased && matrices) + 2 + (relative ? TABLES : 0)),
               4);
    for (int i = 0; i < (relative ? TABLES : 0); i++)
        put_array(&f, tables[i][1], model->params, tables[i][0]);
    for (int i = aliased; i < ARRAYS - norms; i++)
        put_array(&f, version == 1 ? arrays[i].before : arrays[i].theirs, model->params, arrays[i].ours);
    put_flag(&f, version >= 5 ? "encoder/num_heads" : "num_heads", 8);
    put_flag(&f, version >= 5 ? "encoder/pre_norm" : "pre_norm", pre);
    if (version >= 3) {
        put_number(f.stream, 1 + (matrices > 0), 4);
        put_string(f.stream, "encoder/embeddings/weight");
        put_string(f.stream, "decoder/embeddings/weight");
        if (matrices > 0) {
            put_string(f.stream, "encoder/embeddings/weight_scale");
            put_string(f.stream, "decoder/embeddings/weight_scale");
        }
    }
    fclose(f.stream);
    write_words();
}

static void share_embeddings(const at_model *model)
{
    at_params *p = model->params;
    memcpy(at_params_value(p, at_params_find(p, "source.E")), at_params_value(p, at_params_find(p, "target.E")),
           sizeof(at_real) * (AT_SPECIALS + WORDS) * HIDDEN);
}

/* ---- Reading it ----------------------------------------------------------------------------------------------- */

static void compare_parameters(at_params *a, at_params *b, double tolerance)
{
    assert_int_equal(at_params_number(a), at_params_number(b));
    assert_int_equal(at_params_count(a), at_params_count(b));
    for (int64_t i = 0; i < at_params_count(a); i++)
        assert_true(fabs((double)at_params_values(a)[i] - (double)at_params_values(b)[i]) <= tolerance);
}

static void test_every_version_and_type(void **unused)
{
    (void)unused;
    /* Of a number of about 1: 8 bits, 1024 steps, 10 and 7 bits after the point. */
    static const double tolerance[] = {
        [F32] = 0, [I8] = 1.0 / 127, [I16] = 1.0 / 512, [F16] = 1.0 / 256, [BF16] = 1.0 / 32};
    for (int version = 1; version <= 6; version++)
        for (int type = F32; type <= BF16; type++) {
            if (type == I32 || (version < 4 && type > I16))
                continue;
            at_error error = {0};
            at_model *model = make_model(version % 2);
            share_embeddings(model);
            write_model(model, version, type);
            at_translator *t = at_translator_load(version == 6 ? "./model.bin" : ".", &error);
            assert_string_equal(error.text, "");
            assert_non_null(t);
            compare_parameters(model->params, t->model->params, tolerance[type]);
            assert_int_equal(t->model->settings.heads, 8);
            at_translator_free(t);
            at_model_free(model);
            const char *seeds = getenv("ATTEND_SEEDS");
            if (seeds && (version == 2 || version == 6) && (type == F32 || type == I8)) {
                char command[300];
                snprintf(command, sizeof command, "cp model.bin '%s/v%d_%d.ctranslate2'", seeds, version, type);
                assert_int_equal(system(command), 0);
            }
        }
}

/* The unknown unit without a name is the row after the names; a token that is unknown in the vocabulary has its id. */
static void test_words(void **unused)
{
    (void)unused;
    at_error error = {0};
    at_model *model = make_model(true);
    share_embeddings(model);
    write_model(model, 4, F32);
    FILE *stream = fopen("source_vocabulary.txt", "w");
    fputs("<blank>\n<s>\n</s>\na\nb\na\n", stream);
    fclose(stream);
    at_translator *t = at_translator_load(".", &error);
    assert_string_equal(error.text, "");
    static const char *const names[] = {"a", "b", "<row5>"};
    for (int i = 0; i < 3; i++)
        assert_string_equal(at_vocabulary_unit(t->source, AT_SPECIALS + i), names[i]);
    at_params *p = t->model->params;
    const at_real *E = at_params_value(p, at_params_find(p, "source.E")),
                  *theirs = at_params_value(model->params, at_params_find(model->params, "source.E"));
    assert_memory_equal(E + AT_UNKNOWN * HIDDEN, theirs + 6 * HIDDEN, HIDDEN * sizeof *E);
    assert_memory_equal(E + AT_BEGIN * HIDDEN, theirs + 1 * HIDDEN, HIDDEN * sizeof *E);
    assert_memory_equal(E + AT_END * HIDDEN, theirs + 2 * HIDDEN, HIDDEN * sizeof *E);
    at_translator_free(t);
    at_model_free(model);
    unlink("source_vocabulary.txt");
}

/* Shaw's tables of keys and values, and the end that is added to a source. */
static void test_relative_positions_and_frame(void **unused)
{
    (void)unused;
    at_error error = {0};
    at_model *model = make_positioned(true, "shaw:2");
    share_embeddings(model);
    write_model(model, 6, F32);
    FILE *stream = fopen("config.json", "w");
    fputs("{\"add_source_eos\": true, \"add_source_bos\": false}", stream);
    fclose(stream);
    at_translator *t = at_translator_load(".", &error);
    assert_string_equal(error.text, "");
    assert_string_equal(t->model->settings.position, "shaw:2");
    compare_parameters(model->params, t->model->params, 0);
    int32_t ids[8], offsets[16];
    int64_t replaced;
    assert_int_equal(at_vocabulary_encode(t->source, "a b", 3, ids, 8, &replaced, offsets), 3);
    assert_int_equal(ids[2], AT_END);
    assert_int_equal(offsets[4], 3);
    assert_int_equal(offsets[5], 3);
    assert_int_equal(at_vocabulary_encode(t->source, " ", 1, ids, 8, &replaced, offsets), 0);
    assert_int_equal(at_vocabulary_encode(t->target, "a b", 3, ids, 8, &replaced, offsets), 2);
    at_translator_free(t);
    at_model_free(model);
    unlink("config.json");
}

static void expect_refusal(const char *what)
{
    at_error error = {0};
    assert_null(at_translator_load(".", &error));
    if (!strstr(error.text, what))
        print_error("'%s' does not say '%s'\n", error.text, what);
    assert_non_null(strstr(error.text, what));
}

static void write_byte(long offset, int byte)
{
    FILE *stream = fopen("model.bin", "r+b");
    fseek(stream, offset, SEEK_SET);
    fputc(byte, stream);
    fclose(stream);
}

/* Every shorter file, a type and a size that cannot be, no words. */
static void test_refusals(void **unused)
{
    (void)unused;
    at_model *model = make_model(true);
    struct stat about;
    write_model(model, 4, F32);
    assert_int_equal(stat("model.bin", &about), 0);
    for (off_t size = about.st_size - 1; size > 40; size -= 1 + size / 40) {
        assert_int_equal(truncate("model.bin", size), 0);
        expect_refusal("is truncated or damaged");
    }
    write_model(model, 4, F32);
    write_byte(28, 0xff); /* the number of variables */
    write_byte(29, 0xff);
    expect_refusal("more variables");
    write_model(model, 4, F32);
    unlink("shared_vocabulary.txt");
    expect_refusal("has neither source_vocabulary nor shared_vocabulary");
    FILE *stream = fopen("shared_vocabulary.txt", "w");
    fputs("<blank>\n<unk>\n<s>\na\n", stream);
    fclose(stream);
    expect_refusal("lack '</s>'");
    unlink("model.bin");
    expect_refusal("is a folder, not a model");
    at_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_version_and_type),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_relative_positions_and_frame),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
