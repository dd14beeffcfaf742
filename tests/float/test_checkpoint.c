/* Model files: saving and loading keeps the bits, the previous file is kept, and every other file is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/files.h"
#include "kernels/gemm.h"
#include "store/model_file.h"
#include "store/translator.h"

static char folder[] = "/tmp/attend-checkpoint-XXXXXX";

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

static at_vocabulary *words(const char *line)
{
    at_error error = {0};
    at_vocabulary *vocabulary = at_vocabulary_new("word", &error);
    assert_true(at_vocabulary_count(vocabulary, line, strlen(line), &error));
    assert_true(at_vocabulary_fix(vocabulary, &error));
    return vocabulary;
}

static at_translator *small(uint64_t seed)
{
    at_error error = {0};
    at_translator *t = calloc(1, sizeof *t);
    at_model_settings settings = {
        .model = "bahdanau", .embedding = 3, .hidden = 4, .attention = 5, .maxout = 2, .dropout = 0.1};
    assert_true(at_model_settings_complete(&settings, NULL, &error));
    t->source = words("ein Bier \xf0\x9f\x8d\xba \"so\" \\");
    t->target = words("one beer");
    settings.source_size = at_vocabulary_size(t->source);
    settings.target_size = at_vocabulary_size(t->target);
    t->model = at_model_new(&settings, seed, &error);
    t->history = strdup("[{\"update\":3}]");
    t->max_length = 77;
    assert_non_null(t->model);
    return t;
}

static bool save(const at_translator *t, const char *path)
{
    at_error error = {0};
    return at_translator_save(t, path, true, &error);
}

static void round_trip_keeps_bits(void **state)
{
    (void)state;
    at_error error = {0};
    at_translator *t = small(7);
    assert_true(save(t, "round"));
    at_translator *back = at_translator_load("round", &error);
    assert_string_equal(error.text, "");
    assert_non_null(back);
    assert_int_equal(at_params_count(back->model->params), at_params_count(t->model->params));
    assert_memory_equal(at_params_values(back->model->params), at_params_values(t->model->params),
                        (size_t)at_params_count(t->model->params) * sizeof(at_real));
    assert_true(back->model->settings.dropout == 0.1);
    assert_memory_equal(&back->model->settings, &t->model->settings, sizeof t->model->settings);
    assert_int_equal(back->max_length, 77);
    assert_string_equal(back->history, t->history);
    assert_int_equal(at_vocabulary_size(back->source), at_vocabulary_size(t->source));
    for (int32_t i = 0; i < at_vocabulary_size(t->source); i++)
        assert_string_equal(at_vocabulary_unit(back->source, i), at_vocabulary_unit(t->source, i));
    /* A loaded model that is saved again is the same file, byte for byte. */
    assert_true(save(back, "again"));
    size_t first, second;
    unsigned char *a = at_file_read("round", &first, &error), *b = at_file_read("again", &second, &error);
    assert_int_equal(first, second);
    assert_memory_equal(a, b, first);
    free(a);
    free(b);
    at_translator_free(back);
    at_translator_free(t);
}

static void previous_is_kept(void **state)
{
    (void)state;
    at_error error = {0};
    at_translator *one = small(1), *two = small(2), *three = small(3);
    assert_true(save(one, "kept"));
    assert_int_equal(access("kept.previous", F_OK), -1);
    assert_true(save(two, "kept"));
    assert_true(save(three, "kept"));
    at_translator *now = at_translator_load("kept", &error), *before = at_translator_load("kept.previous", &error);
    assert_non_null(now);
    assert_non_null(before);
    size_t bytes = (size_t)at_params_count(one->model->params) * sizeof(at_real);
    assert_memory_equal(at_params_values(now->model->params), at_params_values(three->model->params), bytes);
    assert_memory_equal(at_params_values(before->model->params), at_params_values(two->model->params), bytes);
    assert_int_equal(access("kept.previous.new", F_OK), -1);
    at_translator_free(one);
    at_translator_free(two);
    at_translator_free(three);
    at_translator_free(now);
    at_translator_free(before);
}

/* A full disk, simulated by a limit on the size of files: an error message, and both files unchanged. */
static void full_disk(void **state)
{
    (void)state;
    at_error error = {0};
    at_translator *one = small(1), *two = small(2), *three = small(3);
    assert_true(save(one, "full"));
    assert_true(save(two, "full"));
    struct rlimit before, tight = {.rlim_cur = 1000, .rlim_max = RLIM_INFINITY};
    getrlimit(RLIMIT_FSIZE, &before);
    tight.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &tight);
    bool done = at_translator_save(three, "full", true, &error);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_false(done);
    assert_string_equal(error.text, "cannot write 'full': File too large");
    error = (at_error){0};
    at_translator *now = at_translator_load("full", &error), *old = at_translator_load("full.previous", &error);
    assert_non_null(now);
    assert_non_null(old);
    size_t bytes = (size_t)at_params_count(one->model->params) * sizeof(at_real);
    assert_memory_equal(at_params_values(now->model->params), at_params_values(two->model->params), bytes);
    assert_memory_equal(at_params_values(old->model->params), at_params_values(one->model->params), bytes);
    assert_int_equal(access("full.previous.new", F_OK), -1);
    at_translator_free(one);
    at_translator_free(two);
    at_translator_free(three);
    at_translator_free(now);
    at_translator_free(old);
}

static void refused(const char *path, int code, const char *message)
{
    at_error error = {0};
    at_translator *t = at_translator_load(path, &error);
    assert_null(t);
    assert_string_equal(error.text, message);
    assert_int_equal(error.code, code);
}

/* The file "good" as one without a checksum, so that it can be changed. */
static at_tensors *read_good(void)
{
    at_error error = {0};
    at_tensors *file = at_tensors_read("good", &error);
    assert_true(at_tensors_set_meta(file, "attend.checksum", NULL, &error));
    return file;
}

/* It with one change, under another name. */
static void changed(const char *name, const char *key, const char *value)
{
    at_error error = {0};
    at_tensors *file = read_good();
    assert_true(at_tensors_set_meta(file, key, value, &error));
    assert_true(at_tensors_write(file, name, &error));
    at_tensors_free(file);
}

static void other_files_are_refused(void **state)
{
    (void)state;
    at_error error = {0};
    at_translator *t = small(1);
    assert_true(save(t, "good"));
    at_translator_free(t);

    refused("missing", AT_FILE, "cannot read 'missing': No such file or directory");
    at_tensors *arrays = at_tensors_new();
    float one = 1;
    assert_true(at_tensors_put(arrays, "x", &(at_array){.dtype = AT_F32, .data = &one}, &error));
    assert_true(at_tensors_write(arrays, "arrays", &error));
    static const char known[] =
        "not a model; the known formats are: attend (of attend train), ctranslate2 (a folder with model.bin), argos "
        "(.argosmodel), marian (.npz, or a folder with decoder.yml), g2p_en (.npz with vocabulary.json), hf-marian (a "
        "folder with config.json), opennmt-py (.pt)";
    char message[400];
    snprintf(message, sizeof message, "'arrays' is a safetensors file that attend has not written, %s", known);
    refused("arrays", AT_UNSUPPORTED, message);
    FILE *text = fopen("text", "w");
    assert_true(text && fputs("one line of text\n", text) >= 0 && fclose(text) == 0);
    snprintf(message, sizeof message, "'text' is a text file, %s", known);
    refused("text", AT_UNSUPPORTED, message);
    snprintf(message, sizeof message, "'.' is a folder, %s", known);
    refused(".", AT_UNSUPPORTED, message);
    at_tensors_free(arrays);
    changed("state", "attend.kind", "training state");
    refused("state", AT_FORMAT, "'state' is a training state, not a model");
    changed("newer", "attend.version", "2");
    refused("newer", AT_UNSUPPORTED,
            "'newer' is a model of format 2, and this attend reads format 1; use the version of attend "
            "that wrote it, or train again");
    changed("settings", "settings", "{\"model\":\"bahdanau\",\"hiden\":4}");
    refused("settings", AT_FORMAT,
            "the settings of 'settings' cannot be used: no setting 'hiden'; did you mean 'hidden'?");
    changed("no_json", "settings", "{");
    refused("no_json", AT_FORMAT,
            "the settings of 'no_json' cannot be used: their text is not JSON: it has no name where one should be at "
            "byte 1");
    changed("larger", "settings", "{\"model\":\"bahdanau\",\"embedding\":3,\"hidden\":4,\"attention\":5,\"maxout\":3}");
    refused("larger", AT_FORMAT,
            "the parameter 'output.U_o.W' of 'larger' is [4,4], and its settings and vocabularies need [6,4]");
    /* Another vocabulary than that of the parameters: the source's five units for the target's two. */
    at_tensors *good = at_tensors_read("good", &error);
    changed("words", "target.vocabulary", at_tensors_meta(good, "source.vocabulary"));
    at_tensors_free(good);
    refused("words", AT_FORMAT,
            "the parameter 'target.E' of 'words' is [6,3], and its settings and vocabularies need [9,3]");
    changed("wordless", "source.vocabulary", "[]");
    at_error said_so = {0};
    assert_null(at_translator_load("wordless", &said_so));
    assert_memory_equal(said_so.text, "'source.vocabulary' of 'wordless' cannot be used: ", 50);
    changed("length", "max-length", "many");
    refused("length", AT_FORMAT, "'length' lacks 'settings' or 'max-length' in its metadata");

    /* A file truncated anywhere is refused. */
    size_t size;
    unsigned char *bytes = at_file_read("good", &size, &error);
    for (size_t cut = 0; cut < size; cut += 1 + size / 50) {
        at_error said = {0}, writing = {0};
        at_writer *writer = at_writer_open("cut", &writing);
        at_writer_add(writer, bytes, cut, &writing);
        assert_true(at_writer_commit(writer, &writing));
        assert_null(at_translator_load("cut", &said));
        assert_true(said.code == AT_FORMAT || said.code == AT_UNSUPPORTED);
        assert_non_null(strstr(said.text, "'cut'"));
    }
    free(bytes);
}

/* Settings that claim more than the file holds are refused before memory is allocated for them. */
static void claims_are_compared_with_the_file(void **state)
{
    (void)state;
    struct rusage before, after;
    static const struct {
        const char *settings, *message;
    } claims[] = {
        {"{\"model\":\"bahdanau\",\"embedding\":3,\"hidden\":8000,\"attention\":5,\"maxout\":2}",
         "the parameter 'encoder.forward.W' of 'claim' is [12,3], and its settings and vocabularies need [24000,3]"},
        {"{\"model\":\"bahdanau\",\"embedding\":3,\"hidden\":4,\"attention\":1048576,\"maxout\":2}",
         "the parameter 'attention.W_a.W' of 'claim' is [5,4], and its settings and vocabularies need [1048576,4]"},
        {"{\"model\":\"transformer\",\"hidden\":1048576,\"ffn\":1048576,\"layers\":32,\"heads\":1048576,"
         "\"position\":\"learned\",\"positions\":1048576}",
         "the parameter 'target.E' of 'claim' is [6,3], and its settings and vocabularies need [6,1048576]"},
        {"{\"model\":\"transformer\",\"hidden\":1048576,\"heads\":1,\"position\":\"shaw:1000000000\"}",
         "the parameter 'target.E' of 'claim' is [6,3], and its settings and vocabularies need [6,1048576]"},
    };
    getrusage(RUSAGE_SELF, &before);
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        changed("claim", "settings", claims[i].settings);
        refused("claim", AT_FORMAT, claims[i].message);
    }
    getrusage(RUSAGE_SELF, &after);
    if (after.ru_maxrss - before.ru_maxrss > 20000) /* KiB */
        fail_msg("%ld KiB were allocated for a file of a few", after.ru_maxrss - before.ru_maxrss);
    /* A reader without names of its own gives the number of parameters that its file can hold. */
    at_error error = {0};
    at_translator *t = small(1);
    const int64_t count = at_params_count(t->model->params);
    at_model *fits = at_model_blank(&t->model->settings, count, &error);
    assert_non_null(fits);
    at_model_free(fits);
    assert_null(at_model_blank(&t->model->settings, count - 1, &error));
    char message[200];
    snprintf(message, sizeof message, "its settings and vocabularies need %lld parameters, and it can hold %lld",
             (long long)count, (long long)count - 1);
    assert_string_equal(error.text, message);
    assert_int_equal(error.code, AT_FORMAT);
    at_translator_free(t);
}

/* A parameter that is missing, and one too many. */
static void wrong_parameters(void **state)
{
    (void)state;
    at_error error = {0};
    at_tensors *file = read_good(), *less = at_tensors_new();
    float one = 1;
    assert_true(at_tensors_put(file, "extra", &(at_array){.dtype = AT_F32, .data = &one}, &error));
    assert_true(at_tensors_write(file, "more", &error));
    refused("more", AT_FORMAT, "'more' holds 'extra', which is not a parameter of its model");
    static const char *const keys[] = {"attend.kind",       "attend.version",    "settings",
                                       "source.vocabulary", "target.vocabulary", "max-length"};
    for (int i = 0; i < 6; i++)
        assert_true(at_tensors_set_meta(less, keys[i], at_tensors_meta(file, keys[i]), &error));
    for (int i = 0; i < at_tensors_count(file); i++) {
        const char *name = at_tensors_name(file, i);
        if (strcmp(name, "output.U_o.W") != 0 && strcmp(name, "extra") != 0)
            assert_true(at_tensors_put(less, name, at_tensors_get(file, name), &error));
    }
    assert_true(at_tensors_write(less, "less", &error));
    refused("less", AT_FORMAT, "'less' lacks the parameter 'output.U_o.W' that its settings need");
    at_tensors_free(file);
    at_tensors_free(less);
}

/* A NaN or an infinity: such a file is refused, and no such file is written. */
static void not_finite(void **state)
{
    (void)state;
    at_error error = {0};
    at_tensors *file = read_good();
    const at_array *array = at_tensors_get(file, "target.E"); /* [6,3] */
    float *numbers = array->data, kept = numbers[5 * 3 + 1];
    numbers[5 * 3 + 1] = NAN;
    assert_true(at_tensors_write(file, "nan", &error));
    refused("nan", AT_FORMAT, "'nan': tensor 'target.E' holds a NaN at [5,1]; such a file is damaged and of no use");
    numbers[5 * 3 + 1] = kept;
    numbers[2] = -INFINITY;
    assert_true(at_tensors_write(file, "infinite", &error));
    refused("infinite", AT_FORMAT,
            "'infinite': tensor 'target.E' holds an infinity at [0,2]; such a file is damaged and of no use");
    at_tensors_free(file);

    at_translator *t = small(1);
    assert_true(save(t, "finite"));
    at_params_values(t->model->params)[0] = INFINITY;
    assert_false(at_translator_save(t, "finite", true, &error));
    assert_string_equal(error.text, "'finite' is not written: tensor 'source.E' holds an infinity at [0,0]");
    error = (at_error){0};
    at_translator *back = at_translator_load("finite", &error);
    assert_non_null(back);
    at_translator_free(back);
    at_translator_free(t);
}

/* The packed copy of every matrix, plain and transposed, has the current values. */
static void packed_is_fresh(at_params *params)
{
    for (int i = 0; i < at_params_number(params); i++) {
        at_shape shape = at_params_shape(params, i);
        for (int transposed = 0; shape.rank == 2 && transposed < 2; transposed++) {
            int64_t rows = shape.dim[0], columns = shape.dim[1], k = transposed ? columns : rows,
                    n = transposed ? rows : columns;
            size_t bytes = (size_t)at_gemm_packed_size(k, n) * sizeof(at_real);
            at_real *should = aligned_alloc(64, (bytes + 63) / 64 * 64);
            at_gemm_pack(at_params_value(params, i), transposed ? 1 : columns, transposed ? columns : 1, k, n, should);
            const at_real *packed = at_params_packed(params, i, transposed);
            assert_non_null(packed);
            if (memcmp(packed, should, bytes) != 0)
                fail_msg("the packed form of %s is that of other values", at_params_name(params, i));
            free(should);
        }
    }
}

/* Products after loading use the loaded values, even if other values had been packed before. */
static void packed_copies_follow_loading(void **state)
{
    (void)state;
    at_error error = {0};
    at_translator *one = small(7), *two = small(8);
    assert_true(save(one, "one") && save(two, "two"));
    at_translator *back = at_translator_load("one", &error);
    assert_non_null(back);
    at_params *params = back->model->params;
    packed_is_fresh(params);
    at_tensors *file = at_tensors_read("two", &error);
    assert_true(at_params_take(params, file, "two", NULL, &error));
    assert_memory_equal(at_params_values(params), at_params_values(two->model->params),
                        (size_t)at_params_count(params) * sizeof(at_real));
    packed_is_fresh(params);
    at_tensors_free(file);
    at_translator_free(one);
    at_translator_free(two);
    at_translator_free(back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip_keeps_bits),   cmocka_unit_test(packed_copies_follow_loading),
        cmocka_unit_test(previous_is_kept),        cmocka_unit_test(full_disk),
        cmocka_unit_test(other_files_are_refused), cmocka_unit_test(claims_are_compared_with_the_file),
        cmocka_unit_test(wrong_parameters),        cmocka_unit_test(not_finite),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
