/* The checksum of model files and training states: as documented, in every file that is written, and no bit of a file
 * changes unnoticed. */
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <xxhash.h>

#include "base/buffer.h"
#include "base/files.h"
#include "io/checksum.h"
#include "io/dtype.h"
#include "training_of.h"

#define TINY "embedding", "3", "hidden", "4", "attention", "5", "maxout", "2"

static at_training *tiny(const char *output)
{
    return training_of(output, DATA, VALID, TINY, "updates", "3", "average", "2", "resume", "true", NULL);
}

static bool train(at_training *training, at_error *error)
{
    at_train_result result;
    const bool done = at_training_run(training, NULL, NULL, NULL, &result, error);
    at_training_free(training);
    return done;
}

static int enter(void **state)
{
    (void)state;
    at_error error = {0};
    return enter_training() && train(tiny("m"), &error) ? 0 : -1;
}

/* ---- The value ------------------------------------------------------------------------------------------------ */

static void add_number(at_buffer *bytes, uint64_t number)
{
    for (int i = 0; i < 8; i++)
        at_buffer_add(bytes, &(unsigned char){(unsigned char)(number >> 8 * i)}, 1);
}

static void add_field(at_buffer *bytes, const void *from, size_t size)
{
    add_number(bytes, size);
    at_buffer_add(bytes, from, size);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* doc/formats.md, word for word, in one piece of memory. */
static void documented(const at_tensors *file, const char *const *keys, int count, char text[40])
{
    at_buffer bytes = {0};
    add_number(&bytes, (uint64_t)count);
    for (int i = 0; i < count; i++) { /* sorted by the caller */
        add_field(&bytes, keys[i], strlen(keys[i]));
        add_field(&bytes, at_tensors_meta(file, keys[i]), strlen(at_tensors_meta(file, keys[i])));
    }
    const int tensors = at_tensors_count(file);
    const char **names = calloc((size_t)tensors + 1, sizeof *names);
    for (int i = 0; i < tensors; i++)
        names[i] = at_tensors_name(file, i);
    qsort(names, (size_t)tensors, sizeof *names, by_name);
    add_number(&bytes, (uint64_t)tensors);
    for (int i = 0; i < tensors; i++) {
        const at_array *array = at_tensors_get(file, names[i]);
        char shape[100] = "[";
        for (int d = 0; d < array->rank; d++)
            snprintf(shape + strlen(shape), 30, "%s%lld", d ? "," : "", (long long)array->dim[d]);
        strcat(shape, "]");
        add_field(&bytes, names[i], strlen(names[i]));
        add_field(&bytes, at_dtype_rows[array->dtype].safetensors, strlen(at_dtype_rows[array->dtype].safetensors));
        add_field(&bytes, shape, strlen(shape));
        add_field(&bytes, array->data, (size_t)at_array_count(array) * at_dtype_rows[array->dtype].size);
    }
    sprintf(text, "xxh3-64:%016llx", (unsigned long long)XXH3_64bits(bytes.bytes, bytes.size));
    free(names);
    at_buffer_free(&bytes);
}

static void as_documented(void **state)
{
    (void)state;
    at_error error = {0};
    static const char *const model[] = {"attend.kind",       "attend.version",    "format",
                                        "history",           "max-length",        "settings",
                                        "source.vocabulary", "target.vocabulary", "training"};
    static const char *const training[] = {"attend.kind", "attend.version", "format", "history", "kernels", "run"};
    char text[40];
    at_tensors *file = at_tensors_read("m", &error);
    documented(file, model, 9, text);
    assert_string_equal(at_tensors_meta(file, "attend.checksum"), text);
    at_tensors_free(file);
    file = at_tensors_read("m.state", &error);
    documented(file, training, 6, text);
    assert_string_equal(at_tensors_meta(file, "attend.checksum"), text);
    at_tensors_free(file);
}

/* ---- Damage --------------------------------------------------------------------------------------------------- */

static void write_bytes(const char *path, const void *bytes, size_t size)
{
    at_error error = {0};
    assert_true(at_file_write(path, bytes, size, &error));
}

/* Flips single bits of a copy of a file, each for itself, and expects the refusal; `step` is the distance of the bits. */
static void flip(const char *from, const char *path, size_t step, bool (*load)(at_error *error))
{
    at_error reading = {0};
    size_t size;
    unsigned char *bytes = at_file_read(from, &size, &reading);
    write_bytes(path, bytes, size);
    const int file = open(path, O_WRONLY); /* one byte is changed in place: files are not written thousands of times */
    for (size_t bit = 0; bit < 8 * size; bit += step) {
        at_error error = {0};
        const unsigned char flipped = (unsigned char)(bytes[bit / 8] ^ 1 << bit % 8);
        assert_int_equal(pwrite(file, &flipped, 1, (off_t)(bit / 8)), 1);
        if (load(&error))
            fail_msg("bit %zu of byte %zu of %s is flipped, and nobody says so", bit % 8, bit / 8, path);
        if ((error.code != AT_FORMAT && error.code != AT_UNSUPPORTED) || !strstr(error.text, path))
            fail_msg("bit %zu of byte %zu: %s", bit % 8, bit / 8, error.text);
        assert_int_equal(pwrite(file, &bytes[bit / 8], 1, (off_t)(bit / 8)), 1);
    }
    close(file);
    free(bytes);
}

static bool load_flipped(at_error *error)
{
    at_translator *translator = at_translator_load("flipped", error);
    at_translator_free(translator);
    return translator;
}

static bool resume_flipped(at_error *error)
{
    return train(tiny("flipped"), error);
}

static void no_flipped_bit_is_missed(void **state)
{
    (void)state;
    flip("m", "flipped", 3, load_flipped);
    flip("m.state", "flipped.state", 211, resume_flipped);
}

/* ---- Other files ---------------------------------------------------------------------------------------------- */

static void verified(const char *path, bool with_checksum)
{
    at_error error = {0};
    bool has_checksum;
    if (!at_model_verify(path, &has_checksum, &error))
        fail_msg("%s", error.text);
    assert_int_equal(has_checksum, with_checksum);
}

static void refused(const char *path, const char *message)
{
    at_error loading = {0}, verifying = {0};
    bool has_checksum;
    assert_null(at_translator_load(path, &loading));
    assert_false(at_model_verify(path, &has_checksum, &verifying));
    assert_string_equal(verifying.text, message);
    assert_string_equal(loading.text, message);
    assert_int_equal(loading.code, AT_FORMAT);
}

/* A file from before checksums, or whose editor removed it. */
static void without_checksum(void **state)
{
    (void)state;
    at_error error = {0};
    at_tensors *file = at_tensors_read("m", &error);
    assert_true(at_tensors_set_meta(file, "attend.checksum", NULL, &error));
    assert_null(at_tensors_meta(file, "attend.checksum"));
    assert_true(at_tensors_set_meta(file, "attend.checksum", NULL, &error)); /* of what is not there */
    ((float *)at_tensors_get(file, "target.E")->data)[0] = 1;
    assert_true(at_tensors_write(file, "bare", &error));
    at_tensors_free(file);
    verified("bare", false);
    at_translator *translator = at_translator_load("bare", &error);
    assert_non_null(translator);
    at_translator_free(translator);

    file = at_tensors_read("m.state", &error);
    assert_true(at_tensors_set_meta(file, "attend.checksum", NULL, &error));
    assert_true(at_tensors_write(file, "bare.state", &error));
    at_tensors_free(file);
    verified("bare.state", false);
    if (!train(tiny("bare"), &error))
        fail_msg("%s", error.text);
}

/* Another program changed a value, and wrote the metadata as it was. */
static void stale_checksum(void **state)
{
    (void)state;
    at_error error = {0};
    char stored[40], message[400];
    at_tensors *file = at_tensors_read("m", &error), *changed;
    snprintf(stored, sizeof stored, "%s", at_tensors_meta(file, "attend.checksum"));
    assert_true(at_tensors_set_meta(file, "history", "[]", &error));
    assert_true(at_tensors_write(file, "stale", &error));
    assert_true(at_tensors_seal(file, &error));
    snprintf(
        message, sizeof message,
        "'stale' is damaged, or another program changed it: the checksum in it is %s, and that of its contents is %s; "
        "use a copy that is intact, or remove 'attend.checksum' from its metadata if the change is intended",
        stored, at_tensors_meta(file, "attend.checksum"));
    refused("stale", message);

    changed = at_tensors_read("m", &error);
    assert_true(at_tensors_set_meta(changed, "attend.checksum", NULL, &error));
    assert_true(at_tensors_set_meta(changed, "attend.checksun", stored, &error));
    assert_true(at_tensors_write(changed, "misnamed", &error));
    refused("misnamed", "'misnamed' is damaged: its checksum is called 'attend.checksun' and not 'attend.checksum'");
    at_tensors_free(changed);
    at_tensors_free(file);
}

/* The same contents written in another way, as other programs do: keys in another order, blanks in the JSON. */
static void order_does_not_matter(void **state)
{
    (void)state;
    at_error error = {0};
    size_t size;
    unsigned char *bytes = at_file_read("m", &size, &error);
    uint64_t length;
    memcpy(&length, bytes, 8);
    json_t *header = json_loadb((const char *)bytes + 8, length, 0, NULL);
    char *text = json_dumps(header, JSON_INDENT(1) | JSON_SORT_KEYS | JSON_ENSURE_ASCII);
    const uint64_t longer = strlen(text);
    assert_true(longer > length);
    at_buffer file = {0};
    at_buffer_add(&file, &longer, 8);
    at_buffer_add(&file, text, longer);
    at_buffer_add(&file, bytes + 8 + length, size - 8 - length);
    write_bytes("rewritten", file.bytes, file.size);
    verified("rewritten", true);
    at_buffer_free(&file);
    free(text);
    json_decref(header);
    free(bytes);
}

/* Every file that is written has one. */
static void all_files_have_one(void **state)
{
    (void)state;
    at_error error = {0};
    static const char *const files[] = {"m2", "m2.last", "m2.state"};
    if (!train(training_of("m2", DATA, VALID, TINY, "updates", "9", "valid-every", "3", NULL), &error))
        fail_msg("%s", error.text);
    for (int i = 0; i < 3; i++)
        verified(files[i], true);
    assert_true(at_models_average((const char *const[]){"m2", "m2.last"}, 2, "mean", &error));
    verified("mean", true);
    bool has_checksum;
    assert_false(at_model_verify("train", &has_checksum, &error));
    assert_int_equal(error.code, AT_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_documented),         cmocka_unit_test(no_flipped_bit_is_missed),
        cmocka_unit_test(without_checksum),      cmocka_unit_test(stale_checksum),
        cmocka_unit_test(order_does_not_matter), cmocka_unit_test(all_files_have_one),
    };
    return cmocka_run_group_tests(tests, enter, leave_training);
}
