/* safetensors: files are read to the bit and written in the order other writers use, and every broken file
 * results in an error message. */
#include "base/utf8.h"
#include "io/dtype.h"
#include "io/parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Under the address sanitizer, an allocation of more than a megabyte ends the program: no file here needs it. */
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
    return "max_allocation_size_mb=1:allocator_may_return_null=0";
}

#define ENTRY(name, dtype, shape, offsets)                                                                             \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

/* Two tensors and metadata, as other writers lay them out: wider types first, blanks up to a multiple of eight. */
#define GOLDEN_TEXT                                                                                                    \
    "{\"__metadata__\":{\"format\":\"pt\"}," ENTRY("b", "F32", "[2,1]", "[0,8]") "," ENTRY("a", "U8", "[3]",           \
                                                                                           "[8,11]") "}"
static const unsigned char golden_data[11] = {0x00, 0x00, 0x80, 0x3f, 0x00, 0x00, 0xc0, 0xff, 1, 2, 255};

/* A file around a header text; returns its size. */
static size_t make(unsigned char *out, const char *text, const void *data, size_t data_size)
{
    size_t length = strlen(text), padded = (length + 7) / 8 * 8;
    for (int i = 0; i < 8; i++)
        out[i] = (unsigned char)((uint64_t)padded >> (8 * i));
    memset(out + 8, ' ', padded);
    memcpy(out + 8, text, length);
    if (data_size > 0)
        memcpy(out + 8 + padded, data, data_size);
    return 8 + padded + data_size;
}

/* Parses a copy of exactly that size, so that the sanitizers notice a read past the end. */
static at_tensors *parse(const unsigned char *bytes, size_t size, at_error *error)
{
    unsigned char *copy = malloc(size > 0 ? size : 1);
    if (size > 0)
        memcpy(copy, bytes, size);
    at_tensors *tensors = at_tensors_parse(size > 0 ? copy : copy + 1, size, "x.safetensors", error);
    free(copy);
    return tensors;
}

/* Either tensors that together cover the file's data, one after the other, or an error message about the file. */
static void expect_valid_or_refused(const unsigned char *bytes, size_t size)
{
    at_error error = {0};
    at_tensors *tensors = parse(bytes, size, &error);
    if (tensors != NULL) {
        assert_int_equal(error.code, AT_OK);
        size_t total = 0;
        for (int i = at_tensors_count(tensors); i-- > 0;) {
            const char *name = at_tensors_name(tensors, i);
            const at_array *array = at_tensors_get(tensors, name);
            assert_true(at_is_utf8(name));
            size_t data = (size_t)at_array_count(array) * at_dtype_rows[array->dtype].size;
            total += data;
            assert_true(total <= size);
            if (data > 0)
                assert_memory_equal(array->data, bytes + size - total, data);
        }
        at_tensors_free(tensors);
        return;
    }
    assert_true(error.code == AT_FORMAT || error.code == AT_UNSUPPORTED);
    assert_non_null(strstr(error.text, "'x.safetensors'"));
    assert_true(strlen(error.text) > 30 && strlen(error.text) < sizeof error.text - 1);
    assert_null(strchr(error.text, '\n'));
    assert_true(at_is_utf8(error.text));
}

static void expect_refused(const char *text, size_t data_size, const char *message)
{
    static const unsigned char data[64];
    unsigned char bytes[8192];
    at_error error = {0};
    assert_null(parse(bytes, make(bytes, text, data, data_size), &error));
    assert_true(error.code == AT_FORMAT || error.code == AT_UNSUPPORTED);
    if (!strstr(error.text, message))
        fail_msg("'%s' should say '%s'", error.text, message);
}

static size_t read_bytes(const char *path, unsigned char *out, size_t room)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(out, 1, room, file);
    fclose(file);
    return size;
}

static void test_golden(void **state)
{
    (void)state;
    unsigned char bytes[512], written[512];
    size_t size = make(bytes, GOLDEN_TEXT, golden_data, sizeof golden_data);
    at_error error = {0};
    at_tensors *tensors = parse(bytes, size, &error);
    assert_string_equal(error.text, "");
    assert_int_equal(at_tensors_count(tensors), 2);
    assert_string_equal(at_tensors_name(tensors, 0), "b");
    assert_string_equal(at_tensors_name(tensors, 1), "a");
    assert_null(at_tensors_name(tensors, 2));
    assert_null(at_tensors_name(tensors, -1));
    assert_null(at_tensors_get(tensors, "c"));
    assert_string_equal(at_tensors_meta(tensors, "format"), "pt");
    assert_null(at_tensors_meta(tensors, "b"));
    const at_array *b = at_tensors_get(tensors, "b"), *a = at_tensors_get(tensors, "a");
    assert_int_equal(b->dtype, AT_F32);
    assert_int_equal(b->rank, 2);
    assert_int_equal(b->dim[0], 2);
    assert_int_equal((uintptr_t)b->data % 64, 0);
    assert_memory_equal(b->data, golden_data, 8);
    assert_int_equal(a->dtype, AT_U8);
    assert_memory_equal(a->data, golden_data + 8, 3);

    char path[] = P_tmpdir "/attend-tensors-XXXXXX";
    close(mkstemp(path));
    assert_true(at_tensors_write(tensors, path, &error));
    assert_int_equal(read_bytes(path, written, sizeof written), size);
    assert_memory_equal(written, bytes, size);
    remove(path);
    at_tensors_free(tensors);
}

static void test_order_of_writing(void **state)
{
    (void)state;
    at_tensors *tensors = at_tensors_new();
    at_error error = {0};
    static const struct {
        const char *name;
        at_dtype dtype;
    } given[] = {{"u8", AT_U8},   {"z", AT_F32},   {"f64", AT_F64}, {"bf16", AT_BF16},
                 {"a.b", AT_F32}, {"f16", AT_F16}, {"i64", AT_I64}, {"i32", AT_I32}};
    static const char *const expected[] = {"i64", "f64", "a.b", "z", "i32", "bf16", "f16", "u8"};
    for (int i = 0; i < 8; i++) {
        at_array *array = at_array_new(given[i].dtype, 1, (int64_t[]){3}, &error);
        for (size_t k = 0; k < 3 * at_dtype_rows[given[i].dtype].size; k++)
            ((unsigned char *)array->data)[k] = (unsigned char)(40 * i + 7 * (int)k + 130);
        assert_true(at_tensors_put(tensors, given[i].name, array, &error));
        at_array_free(array);
    }
    char path[] = P_tmpdir "/attend-tensors-XXXXXX";
    close(mkstemp(path));
    assert_true(at_tensors_write(tensors, path, &error));
    at_tensors *again = at_tensors_read(path, &error);
    assert_non_null(again);
    assert_int_equal(at_tensors_count(again), 8);
    for (int i = 0; i < 8; i++) {
        assert_string_equal(at_tensors_name(again, i), expected[i]);
        const at_array *was = at_tensors_get(tensors, expected[i]), *is = at_tensors_get(again, expected[i]);
        assert_int_equal(is->dtype, was->dtype);
        assert_memory_equal(is->data, was->data, 3 * at_dtype_rows[is->dtype].size);
    }
    unsigned char bytes[2048];
    size_t size = read_bytes(path, bytes, sizeof bytes);
    assert_int_equal(bytes[0] % 8, 0);
    assert_int_equal(8 + bytes[0] + 256 * bytes[1] + 3 * (8 + 8 + 4 + 4 + 4 + 2 + 2 + 1), size);
    remove(path);
    at_tensors_free(again);
    at_tensors_free(tensors);
}

static void test_put_replaces_and_copies(void **state)
{
    (void)state;
    at_tensors *tensors = at_tensors_new();
    at_error error = {0};
    float values[2] = {1, 2};
    at_array one = {.dtype = AT_F32, .rank = 1, .dim = {2}, .data = values};
    assert_true(at_tensors_put(tensors, "x", &one, &error));
    values[0] = 5;
    assert_true(*(float *)at_tensors_get(tensors, "x")->data == 1);
    assert_true(at_tensors_put(tensors, "x", &one, &error));
    assert_true(*(float *)at_tensors_get(tensors, "x")->data == 5);
    assert_true(at_tensors_put(tensors, "x", at_tensors_get(tensors, "x"), &error)); /* itself */
    assert_true(at_tensors_put(tensors, "y", at_tensors_get(tensors, "x"), &error));
    assert_int_equal(at_tensors_count(tensors), 2);
    assert_true(at_tensors_set_meta(tensors, "k", "1", &error));
    assert_true(at_tensors_set_meta(tensors, "k", "2", &error));
    assert_string_equal(at_tensors_meta(tensors, "k"), "2");

    assert_false(at_tensors_put(tensors, "__metadata__", &one, &error));
    assert_string_equal(error.text,
                        "a tensor cannot be called '__metadata__', which is where a safetensors file keeps its "
                        "metadata");
    assert_false(at_tensors_put(tensors, "z", &one, &error)); /* the error is sticky */
    error = (at_error){0};
    assert_false(at_tensors_put(tensors, "a\xff", &one, &error));
    assert_string_equal(error.text, "the tensor name 'a\\xff' is not UTF-8, which a safetensors file needs");
    error = (at_error){0};
    assert_false(at_tensors_set_meta(tensors, "k", "\xc0\x80", &error));
    assert_non_null(strstr(error.text, "the metadata value"));
    error = (at_error){0};
    assert_false(at_tensors_put(tensors, "z", NULL, &error));
    assert_int_equal(at_tensors_count(tensors), 2);
    at_tensors_free(tensors);
    at_tensors_free(NULL);
}

static void test_any_name_and_metadata(void **state)
{
    (void)state;
    static const char *const names[] = {"", "注意力.权重", "a\"b\\c/\n\t\x01", "été \xf0\x9f\x8d\xba", "encoder.0.W"};
    at_tensors *tensors = at_tensors_new();
    at_error error = {0};
    float value = 0;
    at_array scalar = {.dtype = AT_F32, .data = &value};
    at_array empty = {.dtype = AT_F64, .rank = 2, .dim = {0, 7}};
    for (int i = 0; i < 5; i++) {
        value = (float)i;
        assert_true(at_tensors_put(tensors, names[i], &scalar, &error));
        assert_true(at_tensors_set_meta(tensors, names[i], names[4 - i], &error));
    }
    assert_true(at_tensors_put(tensors, "empty", &empty, &error));
    char path[] = P_tmpdir "/attend-tensors-XXXXXX";
    close(mkstemp(path));
    assert_true(at_tensors_write(tensors, path, &error));
    at_tensors_free(tensors);
    tensors = at_tensors_read(path, &error);
    assert_string_equal(error.text, "");
    assert_int_equal(at_tensors_count(tensors), 6);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(at_tensors_get(tensors, names[i])->rank, 0);
        assert_true(*(float *)at_tensors_get(tensors, names[i])->data == (float)i);
        assert_string_equal(at_tensors_meta(tensors, names[i]), names[4 - i]);
    }
    assert_int_equal(at_tensors_get(tensors, "empty")->dim[1], 7);
    remove(path);
    at_tensors_free(tensors);

    /* A file without tensors is valid. */
    tensors = at_tensors_new();
    assert_true(at_tensors_write(tensors, path, &error));
    at_tensors_free(tensors);
    tensors = at_tensors_read(path, &error);
    assert_int_equal(at_tensors_count(tensors), 0);
    remove(path);
    at_tensors_free(tensors);
}

static void test_refusals(void **state)
{
    (void)state;
#define A(dtype, shape, offsets) "{" ENTRY("a", dtype, shape, offsets) "}"
    expect_refused(A("F32", "[2]", "[0,8]"), 7, "places tensor 'a' at bytes 0 to 8 of its data, which has 7 bytes");
    expect_refused(A("F32", "[2]", "[0,8]"), 9, "has 9 bytes of data; its tensors take 8");
    expect_refused(A("F32", "[2]", "[4,12]"), 12,
                   "has a hole before tensor 'a': it begins at byte 4 of the data instead of 0");
    expect_refused(A("F32", "[2]", "[-8,0]"), 8, "at bytes -8 to 0");
    expect_refused(A("F32", "[2]", "[8,0]"), 8, "at bytes 8 to 0");
    expect_refused(A("F32", "[3]", "[0,8]"), 8, "has 8 bytes for tensor 'a'; its shape [3] of float32 takes 12");
    expect_refused(A("F32", "[]", "[0,8]"), 8, "its shape [] of float32 takes 4");
    expect_refused(A("F32", "[-2]", "[0,8]"), 8, "a dimension of its shape is not a whole number from 0 up");
    expect_refused(A("F32", "[2.0]", "[0,8]"), 8, "a dimension of its shape is not a whole number from 0 up");
    expect_refused(A("F32", "[\"2\"]", "[0,8]"), 8, "a dimension of its shape");
    expect_refused(A("F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]"), 8, "of 9 dimensions; attend reads up to 8");
    expect_refused(A("F32", "[9223372036854775807]", "[0,8]"), 8, "which is larger than any array");
    expect_refused(A("F32", "[9223372036854775808]", "[0,8]"), 8,
                   "is not JSON: it has a number that is too large at byte 48");
    expect_refused(A("F32", "[4294967296,4294967296]", "[0,0]"), 0, "which is larger than any array");
    expect_refused(A("F32", "[4611686018427387904,4]", "[0,0]"), 0, "which is larger than any array");
    expect_refused(A("F32", "[4294967296,4294967296,0]", "[0,0]"), 0, "which is larger than any array");
    expect_refused(A("F32", "[0,4294967296,4294967296]", "[0,0]"), 0, "which is larger than any array");
    expect_refused(A("U8", "[9223372036854775807]", "[0,9223372036854775807]"), 8, "which has 8 bytes");
    expect_refused(A("F32", "2", "[0,8]"), 8, "its shape is missing or not a list");
    expect_refused(A("F32", "[2]", "[0]"), 8, "its data_offsets are missing or not two whole numbers");
    expect_refused(A("F32", "[2]", "[0,8,8]"), 8, "not two whole numbers");
    expect_refused(A("F32", "[2]", "[0,8.0]"), 8, "not two whole numbers");
    expect_refused(A("F32", "[2]", "null"), 8, "not two whole numbers");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "its data_offsets are missing");
    expect_refused("{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "its dtype is missing");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, "its shape is missing");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}", 8, "a field besides");
    expect_refused("{\"a\":[1]}", 8, "it is not an object with dtype, shape and data_offsets");
    expect_refused(A("BOOL", "[8]", "[0,8]"), 8, "of dtype BOOL; attend reads F32, F16, BF16, F64, I32, I64 and U8");
    expect_refused(A("F8_E4M3", "[8]", "[0,8]"), 8, "of dtype F8_E4M3;");
    expect_refused(A("U64", "[1]", "[0,8]"), 8, "of dtype U64;");
    expect_refused("{" ENTRY("a", "U8", "[4]", "[0,4]") "," ENTRY("b", "U8", "[4]", "[5,9]") "}", 9,
                   "has a hole before tensor 'b'");
    expect_refused("{" ENTRY("a", "U8", "[4]", "[0,4]") "," ENTRY("b", "U8", "[5]", "[3,8]") "}", 8,
                   "has an overlap before tensor 'b'");
    expect_refused("{" ENTRY("a", "U8", "[8]", "[0,8]") "," ENTRY("b", "U8", "[8]", "[0,8]") "}", 8,
                   "has an overlap before");
    expect_refused("{" ENTRY("a", "U8", "[4]", "[0,4]") "," ENTRY("a", "U8", "[4]", "[4,8]") "}", 8,
                   "a name twice in one object");
    expect_refused("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}", 8,
                   "a name twice in one object");
    expect_refused("{\"__metadata__\":1}", 0, "has __metadata__ that is not an object of strings");
    expect_refused("{\"__metadata__\":{\"a\":1}}", 0, "has metadata 'a' that is not a string");
    expect_refused("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, "a name twice in one object");
    expect_refused("{}", 1, "has 1 bytes of data; its tensors take 0");
    expect_refused(" {}", 0, "does not begin with '{'");
    expect_refused("[]", 0, "does not begin with '{'");
    expect_refused("", 0, "does not begin with '{'");
    expect_refused("{} x", 0, "is not JSON: it has more text after its end at byte 3");
    expect_refused("{\"\\u0000\":1}", 0, "is not JSON: it has a NUL character in a string at byte 8");
    expect_refused("{\"\xff\":1}", 0, "is not JSON: it has bytes that are not UTF-8 at byte 2");

    char deep[6000];
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"a\":", 5);
    deep[sizeof deep - 1] = '\0';
    expect_refused(deep, 0, "is not JSON: it has brackets nested too deep at byte 105");
    char name[4200]; /* a name longer than an error message */
    snprintf(name, sizeof name, "{\"%04000d\":1}", 0);
    expect_refused(name, 0, "0…': it is not an object");
}

static void test_lengths_that_lie(void **state)
{
    (void)state;
    unsigned char bytes[64];
    size_t size = make(bytes, "{}", NULL, 0);
    static const uint64_t lengths[] = {9, 100000000, 100000001, UINT64_MAX, UINT64_MAX - 7, (uint64_t)1 << 63};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        at_error error = {0};
        memcpy(bytes, &lengths[i], 8);
        assert_null(parse(bytes, size, &error));
        assert_non_null(strstr(error.text, "it claims a header of "));
        expect_valid_or_refused(bytes, size);
    }
}

static void test_every_truncation(void **state)
{
    (void)state;
    unsigned char bytes[512];
    size_t whole = make(bytes, GOLDEN_TEXT, golden_data, sizeof golden_data);
    for (size_t size = 0; size < whole; size++) {
        at_error error = {0};
        assert_null(parse(bytes, size, &error));
        expect_valid_or_refused(bytes, size);
    }
}

static void test_every_bit_flip(void **state)
{
    (void)state;
    unsigned char bytes[512];
    size_t size = make(bytes, GOLDEN_TEXT, golden_data, sizeof golden_data);
    for (size_t bit = 0; bit < 8 * (size - sizeof golden_data); bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        expect_valid_or_refused(bytes, size);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}

static void test_missing_or_unwritable(void **state)
{
    (void)state;
    at_error error = {0};
    at_tensors *tensors = at_tensors_new();
    assert_false(at_tensors_write(tensors, "none/x.safetensors", &error));
    assert_string_equal(error.text, "cannot write 'none/x.safetensors': No such file or directory");
    error = (at_error){0};
    assert_null(at_tensors_read("none/x.safetensors", &error));
    assert_string_equal(error.text, "cannot read 'none/x.safetensors': No such file or directory");
    at_tensors_free(tensors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_order_of_writing),
        cmocka_unit_test(test_put_replaces_and_copies),
        cmocka_unit_test(test_any_name_and_metadata),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_lengths_that_lie),
        cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_every_bit_flip),
        cmocka_unit_test(test_missing_or_unwritable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
