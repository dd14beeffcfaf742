/* Models as folders of CTranslate2 and of MarianMT: what is written is read back as the same model, and what does not fit is
 * refused by name. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "translator_of.h"

#define SMALL "transformer layers=2 hidden=16 ffn=24 heads=2 "

enum { LINES = 4 };
static const at_line sources[LINES] = {{"abc", 3}, {"h g", 3}, {"d", 1}, {"fedcba abc h", 12}};
static const at_line targets[LINES] = {{"the cat", 7}, {"it rained", 9}, {"mat", 3}, {"on a mat the cat sat", 20}};

typedef struct heard {
    double score[LINES];
} heard;

static bool hear(void *context, int64_t line, const at_result *result)
{
    ((heard *)context)->score[line] = result->best[0].score;
    return true;
}

/* The log-probabilities of the targets. */
static heard scores_of(at_translator *t)
{
    at_error error = {0};
    heard said = {0};
    if (!at_align(t, &(at_search_settings){0}, sources, targets, LINES, hear, &said, &error))
        fail_msg("%s", error.text);
    return said;
}

static char folder[] = "/tmp/test_export_XXXXXX";

static int entries(const char *path)
{
    int count = 0;
    DIR *directory = opendir(path);
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(directory);
    return count;
}

static void remove_folder(const char *path)
{
    DIR *directory = opendir(path);
    char name[400];
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        unlink(name);
    }
    if (directory)
        closedir(directory);
    rmdir(path);
}

static at_translator *exported(const at_translator *t, const char *format)
{
    at_error error = {0};
    if (!at_translator_export(t, format, "out", &error))
        fail_msg("%s: %s", format, error.text);
    at_translator *read = at_translator_load("out", &error);
    if (!read)
        fail_msg("%s: %s", format, error.text);
    remove_folder("out");
    assert_int_equal(entries("."), 0);
    return read;
}

static at_translator *of(const char *settings, bool ends)
{
    at_translator *t = translator_of(settings, 7);
    at_vocabulary_frame(t->source, false, ends);
    return t;
}

/* The scores are the same, relative to their size to `most`; 0: bit by bit. */
static void check(const char *settings, const char *format, const char *weights, bool ends, double most)
{
    at_error error = {0};
    at_translator *t = of(settings, ends);
    if (weights && !at_translator_convert(t, weights, &error))
        fail_msg("%s", error.text);
    at_translator *read = exported(t, format);
    const heard before = scores_of(t), after = scores_of(read);
    for (int i = 0; i < LINES; i++)
        if (!(fabs(before.score[i] - after.score[i]) <= most * fabs(before.score[i])))
            fail_msg("%s as %s %s: line %d has %.17g, and had %.17g", settings, format, weights ? weights : "", i,
                     after.score[i], before.score[i]);
    at_translator_free(read);
    at_translator_free(t);
}

static void test_ctranslate2(void **unused)
{
    (void)unused;
    static const char *const settings[] = {
        SMALL "norm=pre",
        SMALL "norm=post scale-embedding=false",
        SMALL "norm=post final-norm=true decoder-layers=1 tie=false",
        SMALL "norm=pre final-norm=false activation=gelu output-bias=true",
        SMALL "position-layout=halves position-denominator=half-1 first-position=1 activation=swish",
        SMALL "position=learned positions=40 norm-epsilon=1e-6",
        SMALL "position=shaw:3",
        SMALL "position=shaw:2:keys tie=false output-bias=true window=global decoder-attention=causal",
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        check(settings[i], "ctranslate2", NULL, i % 2, 0);
        check(settings[i], "ctranslate2", "f16", i % 2, 0);
        check(settings[i], "ctranslate2", "bf16", i % 2, 0);
        check(settings[i], "ctranslate2", "int8", i % 2, 1e-4);
    }
}

static void test_hf_marian(void **unused)
{
    (void)unused;
    static const char *const settings[] = {
        SMALL "norm=post position-layout=halves",
        SMALL "norm=post position-layout=halves tie=false output-bias=true activation=swish scale-embedding=false",
        SMALL "norm=post decoder-layers=1 activation=gelu",
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const double most = i == 2 ? 1e-4 : 0; /* the last one has its numbers in another order */
        check(settings[i], "hf-marian", NULL, true, most);
        check(settings[i], "hf-marian", "f16", true, most);
        check(settings[i], "hf-marian", "bf16", true, most);
    }
}

/* One vocabulary and one table for both sides. */
static void test_shared(void **unused)
{
    (void)unused;
    static const char *const formats[] = {"ctranslate2", "hf-marian"};
    for (int i = 0; i < 4; i++) {
        at_error error = {0};
        at_vocabulary *source = counted_vocabulary("char", "abcdefgh the cat sat on mat while it rained"),
                      *target = at_vocabulary_copy(source, &error);
        at_vocabulary_frame(source, false, true);
        at_translator *t =
            translator_with(SMALL "norm=post position-layout=halves share-embeddings=true", 5, source, target);
        assert_true(i < 2 || at_translator_convert(t, "bf16", &error));
        at_translator *read = exported(t, formats[i % 2]);
        const heard before = scores_of(t), after = scores_of(read);
        assert_memory_equal(&before, &after, sizeof before);
        at_translator_free(read);
        at_translator_free(t);
    }
}

/* ---- What does not fit ---- */

static void refuse(at_translator *t, const char *format, const char *path, const char *sentence)
{
    at_error error = {0};
    assert_false(at_translator_export(t, format, path, &error));
    assert_string_equal(error.text, sentence);
    at_translator_free(t);
}

#define CT2 "CTranslate2 cannot take this model: its "
#define HF  "MarianMT of Hugging Face cannot take this model: its "

static void test_refusals(void **unused)
{
    (void)unused;
    static const struct {
        const char *settings, *format, *sentence;
    } cases[] = {
        {"bahdanau hidden=8 embedding=8 attention=8 maxout=8", "ctranslate2",
         CT2 "`model` is bahdanau, and only transformer fits"},
        {"transformer-lm layers=1 hidden=8 ffn=8 heads=2", "hf-marian",
         HF "`model` is transformer-lm, and only transformer fits"},
        {SMALL "score=dot", "ctranslate2", CT2 "`score` is dot, and only scaled fits"},
        {SMALL "normaliser=sparsemax", "ctranslate2", CT2 "`normaliser` is sparsemax, and only softmax fits"},
        {SMALL "cross-attention=entmax15", "hf-marian", HF "`normaliser` is entmax15, and only softmax fits"},
        {SMALL "window=sliding:2", "ctranslate2", CT2 "`window` is sliding:2, and only global fits"},
        {SMALL "heads=4 kv-heads=2", "ctranslate2", CT2 "`kv-heads` is 2, and only 4 fits"},
        {SMALL "position=rope", "ctranslate2",
         CT2 "`position` is rope, and only sinusoidal, learned, shaw:K or shaw:K:keys fits"},
        {SMALL "position=shaw:2:values", "ctranslate2",
         CT2 "`position` is shaw:2:values, and only sinusoidal, learned, shaw:K or shaw:K:keys fits"},
        {SMALL "encoder-attention=shaw:2", "ctranslate2",
         CT2 "`decoder-attention` is none, and only the encoder's position fits"},
        {SMALL "norm=pre", "hf-marian", HF "`norm` is pre, and only post fits"},
        {SMALL "norm=post final-norm=true", "hf-marian", HF "`final-norm` is true, and only false fits"},
        {SMALL "norm=post norm-epsilon=1e-6", "hf-marian", HF "`norm-epsilon` is 1e-06, and only 1e-05 fits"},
        {SMALL "norm=post position=learned", "hf-marian", HF "`position` is learned, and only sinusoidal fits"},
        {SMALL "norm=post position-denominator=half-1", "hf-marian",
         HF "`position-denominator` is half-1, and only half fits"},
        {SMALL "norm=post first-position=1", "hf-marian", HF "`first-position` is 1, and only 0 fits"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        at_translator *t = translator_of(cases[i].settings, 7);
        if (t->source)
            at_vocabulary_frame(t->source, false, true);
        refuse(t, cases[i].format, "out", cases[i].sentence);
    }
    refuse(of(SMALL "norm=post", false), "hf-marian", "out", HF "`source-end` is false, and only true fits");
    at_translator *t = of(SMALL "norm=post", true);
    at_error error = {0};
    assert_true(at_translator_convert(t, "int8", &error));
    refuse(t, "hf-marian", "out", HF "`weights` is int8, and only f32, bf16 or f16 fits");
    t = of(SMALL, false);
    at_vocabulary_normalise(t->source, (at_cleaning){.lowercase = true});
    refuse(t, "ctranslate2", "out", CT2 "`lowercase` is true, and only false fits");
    refuse(of(SMALL, false), "ctranslate", "out", "no format 'ctranslate'; did you mean 'ctranslate2'?");
    assert_int_equal(entries("."), 0);
}

/* Words that look like special units stay words where those can have other names. */
static void test_names(void **unused)
{
    (void)unused;
    static const char line[] = "<s> <unk> </s> <pad> a";
    for (int i = 0; i < 2; i++) {
        at_error error = {0};
        at_translator *t = translator_with(SMALL "norm=post position-layout=halves", 5,
                                           counted_vocabulary("word", line), counted_vocabulary("word", line));
        at_vocabulary_frame(t->source, false, true);
        if (i == 1) {
            refuse(t, "hf-marian", "out",
                   "MarianMT of Hugging Face cannot take this model: its vocabulary has the word '<pad>', which is a "
                   "special unit there");
            continue;
        }
        at_translator *read = exported(t, "ctranslate2");
        int32_t ids[2][8];
        int64_t replaced;
        for (int side = 0; side < 2; side++) {
            const at_vocabulary *ours = side ? t->target : t->source, *theirs = side ? read->target : read->source;
            const int64_t count = at_vocabulary_encode(ours, line, strlen(line), ids[0], 8, &replaced, NULL);
            assert_int_equal(at_vocabulary_encode(theirs, line, strlen(line), ids[1], 8, &replaced, NULL), count);
            assert_memory_equal(ids[0], ids[1], (size_t)count * sizeof(int32_t));
        }
        at_translator_free(read);
        at_translator_free(t);
        (void)error;
    }
}

/* ---- Folders ---- */

static void test_folders(void **unused)
{
    (void)unused;
    at_error error = {0};
    refuse(of(SMALL, false), "ctranslate2", "missing/out", "cannot write 'missing/out': No such file or directory");
    refuse(of(SMALL, false), "ctranslate2", "", "cannot write the folder '': it has no name");
    assert_true(at_file_write("file", "x", 1, &error));
    refuse(of(SMALL, false), "ctranslate2", "file", "cannot write the folder 'file': there is a file of that name");
    assert_int_equal(mkdir("full", 0777), 0);
    assert_true(at_file_write("full/kept", "x", 1, &error));
    refuse(of(SMALL, false), "ctranslate2", "full/",
           "cannot write the folder 'full/': it has files in it; name a new one");
    assert_int_equal(entries("full"), 1);
    /* An empty folder becomes the model, and what a writer that was killed left is removed. */
    at_translator *t = of(SMALL, false);
    assert_int_equal(mkdir("empty", 0777), 0);
    assert_true(at_translator_export(t, "ctranslate2", "empty//", &error));
    assert_int_equal(entries("empty"), 5);
    at_translator_free(t);
    remove_folder("empty");
    remove_folder("full");
    unlink("file");
    assert_int_equal(entries("."), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ctranslate2), cmocka_unit_test(test_hf_marian), cmocka_unit_test(test_shared),
        cmocka_unit_test(test_refusals),    cmocka_unit_test(test_names),     cmocka_unit_test(test_folders),
    };
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_folder(folder);
    return failed;
}
