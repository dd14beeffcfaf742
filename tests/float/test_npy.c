/* .npy: what NumPy writes is read to the bit, what we write is what NumPy writes, and every broken file
 * results in an error message. */
#include "base/utf8.h"
#include "io/dtype.h"
#include "io/parse.h"

#include <math.h>
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

/* numpy.save of numpy.array([[1, 2, 3], [-1, 0.5, numpy.inf]], numpy.float32), byte by byte: 6 + 2 + 2 bytes, 118 of
 * header (0x76), 24 of data. */
#define GOLDEN_TEXT "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
static const unsigned char golden_data[24] = {0x00, 0x00, 0x80, 0x3f, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x40, 0x40,
                                              0x00, 0x00, 0x80, 0xbf, 0x00, 0x00, 0x00, 0x3f, 0x00, 0x00, 0x80, 0x7f};
enum { GOLDEN = 152 };

/* A file of that version around a header text, padded as NumPy does; returns its size. */
static size_t make(unsigned char *out, int version, const char *text, const void *data, size_t data_size)
{
    size_t fixed = version == 1 ? 10 : 12;
    size_t start = (fixed + strlen(text) + 1 + 63) / 64 * 64;
    memset(out, ' ', start);
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (unsigned char)version;
    out[7] = 0;
    for (size_t i = 8; i < fixed; i++)
        out[i] = (unsigned char)((start - fixed) >> (8 * (i - 8)));
    memcpy(out + fixed, text, strlen(text));
    out[start - 1] = '\n';
    if (data_size > 0)
        memcpy(out + start, data, data_size);
    return start + data_size;
}

static void golden(unsigned char out[GOLDEN])
{
    assert_int_equal(make(out, 1, GOLDEN_TEXT, golden_data, sizeof golden_data), GOLDEN);
    static const unsigned char first[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 0x76, 0, '{', '\''};
    assert_memory_equal(out, first, sizeof first);
}

/* Parses a copy of exactly that size, so that the sanitizers notice a read past the end. */
static at_array *parse(const unsigned char *bytes, size_t size, at_error *error)
{
    unsigned char *copy = malloc(size > 0 ? size : 1);
    if (size > 0)
        memcpy(copy, bytes, size);
    at_array *array = at_npy_parse(size > 0 ? copy : copy + 1, size, "x.npy", error);
    free(copy);
    return array;
}

/* Either an array whose values all come from the file, or an error message about it. */
static void expect_valid_or_refused(const unsigned char *bytes, size_t size)
{
    at_error error = {0};
    at_array *array = parse(bytes, size, &error);
    if (array != NULL) {
        assert_int_equal(error.code, AT_OK);
        assert_in_range(array->rank, 0, AT_MAX_RANK);
        size_t data = (size_t)at_array_count(array) * at_dtype_rows[array->dtype].size;
        assert_true(data <= size);
        if (data > 0)
            assert_memory_equal(array->data, bytes + size - data, data);
        at_array_free(array);
        return;
    }
    assert_true(error.code == AT_FORMAT || error.code == AT_UNSUPPORTED);
    assert_non_null(strstr(error.text, "'x.npy'"));
    assert_true(strlen(error.text) > 20 && strlen(error.text) < sizeof error.text - 1);
    assert_null(strchr(error.text, '\n'));
    assert_true(at_is_utf8(error.text));
}

static void expect_refused(int version, const char *text, const void *data, size_t data_size, const char *message)
{
    unsigned char bytes[4096];
    at_error error = {0};
    assert_null(parse(bytes, make(bytes, version, text, data, data_size), &error));
    assert_true(error.code == AT_FORMAT || error.code == AT_UNSUPPORTED);
    if (!strstr(error.text, message))
        fail_msg("'%s' should say '%s'", error.text, message);
}

static void test_golden(void **state)
{
    (void)state;
    unsigned char bytes[GOLDEN];
    golden(bytes);
    at_error error = {0};
    at_array *array = parse(bytes, sizeof bytes, &error);
    assert_non_null(array);
    assert_int_equal(array->dtype, AT_F32);
    assert_int_equal(array->rank, 2);
    assert_int_equal(array->dim[0], 2);
    assert_int_equal(array->dim[1], 3);
    assert_int_equal((uintptr_t)array->data % 64, 0);
    static const float expected[] = {1, 2, 3, -1, 0.5f, INFINITY};
    assert_memory_equal(array->data, expected, sizeof expected);

    /* Our writer produces the same file. */
    char path[] = P_tmpdir "/attend-npy-XXXXXX";
    close(mkstemp(path));
    assert_true(at_npy_write(path, array, &error));
    unsigned char written[GOLDEN + 1];
    FILE *file = fopen(path, "rb");
    assert_int_equal(fread(written, 1, sizeof written, file), GOLDEN);
    fclose(file);
    assert_memory_equal(written, bytes, GOLDEN);
    at_array *again = at_npy_read(path, &error);
    assert_non_null(again);
    assert_memory_equal(again->data, expected, sizeof expected);
    remove(path);
    at_array_free(again);
    at_array_free(array);
}

static void test_all_versions_and_spellings(void **state)
{
    (void)state;
    static const char *const texts[] = {
        GOLDEN_TEXT,
        "{'shape': (2, 3), 'fortran_order': False, 'descr': '<f4'}",
        "{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(2,3,)}",
        "{ 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 2L , 3L ) , }",
    };
    for (int version = 1; version <= 3; version++)
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            unsigned char bytes[512];
            at_error error = {0};
            at_array *array = parse(bytes, make(bytes, version, texts[i], golden_data, 24), &error);
            assert_string_equal(error.text, "");
            assert_int_equal(at_array_count(array), 6);
            assert_memory_equal(array->data, golden_data, 24);
            at_array_free(array);
        }
}

static void test_round_trip_of_every_type_and_rank(void **state)
{
    (void)state;
    char path[] = P_tmpdir "/attend-npy-XXXXXX";
    close(mkstemp(path));
    static const int64_t dims[] = {2, 1, 3, 1, 1, 2, 1, 2};
    for (int type = 0; type < AT_DTYPES; type++)
        for (int rank = 0; rank <= AT_MAX_RANK; rank++) {
            at_error error = {0};
            at_array *array = at_array_new((at_dtype)type, rank, dims, &error);
            size_t size = (size_t)at_array_count(array) * at_dtype_rows[type].size;
            for (size_t i = 0; i < size; i++)
                ((unsigned char *)array->data)[i] = (unsigned char)(251 * i + 255);
            bool written = at_npy_write(path, array, &error);
            if (type == AT_BF16) {
                assert_false(written);
                assert_non_null(strstr(error.text, ".npy has no bfloat16; convert the array to float32"));
            } else {
                assert_true(written);
                at_array *again = at_npy_read(path, &error);
                assert_non_null(again);
                assert_int_equal(again->dtype, type);
                assert_int_equal(again->rank, rank);
                assert_memory_equal(again->dim, array->dim, sizeof again->dim);
                assert_memory_equal(again->data, array->data, size);
                at_array_free(again);
            }
            at_array_free(array);
        }
    /* The longest possible header, and no values. */
    int64_t longest[AT_MAX_RANK] = {0, INT64_MAX / 8, 1, 1, 1, 1, 1, 1};
    at_error error = {0};
    at_array *array = at_array_new(AT_F64, AT_MAX_RANK, longest, &error);
    assert_true(at_npy_write(path, array, &error));
    at_array *again = at_npy_read(path, &error);
    assert_memory_equal(again->dim, longest, sizeof longest);
    assert_int_equal(at_array_count(again), 0);
    at_array_free(again);
    at_array_free(array);
    remove(path);
}

static void test_refusals(void **state)
{
    (void)state;
#define HEADER(descr, order, shape) "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"
    const void *data = golden_data;
    expect_refused(1, HEADER("'|O'", "False", "(2, 3)"), data, 24, "holds Python objects ('|O')");
    expect_refused(1, HEADER("'O'", "False", "(2, 3)"), data, 24, "holds Python objects ('O')");
    expect_refused(1, HEADER("'>f4'", "False", "(2, 3)"), data, 24,
                   "holds big-endian numbers ('>f4'); save it little-");
    expect_refused(1, HEADER("'|b1'", "False", "(24,)"), data, 24, "holds booleans of type '|b1'; attend reads '<f4'");
    expect_refused(1, HEADER("'<c8'", "False", "(3,)"), data, 24, "holds complex numbers of type '<c8'");
    expect_refused(1, HEADER("''", "False", "(3,)"), data, 24, "of type ''");
    expect_refused(1, HEADER("[('a', '<f4')]", "False", "(6,)"), data, 24, "holds records of several fields");
    expect_refused(1, HEADER("'<f4'", "True", "(2, 3)"), data, 24, "in Fortran order (fortran_order: True)");
    expect_refused(1, HEADER("'<f4'", "true", "(2, 3)"), data, 24, "neither True nor False");
    expect_refused(1, HEADER("'<f4'", "False", "(2, 4)"), data, 24,
                   "has 24 bytes of data; its shape [2,4] of float32 takes 32");
    expect_refused(1, HEADER("'<f4'", "False", "(2, 2)"), data, 24,
                   "has 24 bytes of data; its shape [2,2] of float32 takes 16");
    expect_refused(1, HEADER("'<f4'", "False", "()"), NULL, 0, "has 0 bytes of data; its shape [] of float32 takes 4");
    expect_refused(1, HEADER("'<f4'", "False", "(-2, 3)"), data, 24, "a dimension is negative");
    expect_refused(1, HEADER("'<f4'", "False", "(2.0, 3)"), data, 24, "lacks a comma or its closing bracket");
    expect_refused(1, HEADER("'<f4'", "False", "(6)"), data, 24, "a number in brackets and not a tuple");
    expect_refused(1, HEADER("'<f4'", "False", "[2, 3]"), data, 24, "'shape' is not a tuple");
    expect_refused(1, HEADER("'<f4'", "False", "(, )"), data, 24, "not a tuple of integers");
    expect_refused(1, HEADER("'<f4'", "False", "(2 3)"), data, 24, "lacks a comma");
    expect_refused(1, HEADER("'<f4'", "False", "(9223372036854775808,)"), data, 24,
                   "a dimension is larger than any array");
    expect_refused(1, HEADER("'<f4'", "False", "(9223372036854775807,)"), data, 24, "is larger than any array");
    expect_refused(1, HEADER("'<f4'", "False", "(4294967296, 4294967296)"), data, 24, "is larger than any array");
    expect_refused(1, HEADER("'<f4'", "False", "(4294967296, 4294967296, 0)"), NULL, 0, "is larger than any array");
    expect_refused(1, HEADER("'<f4'", "False", "(0, 4294967296, 4294967296)"), NULL, 0, "is larger than any array");
    expect_refused(1, HEADER("'|u1'", "False", "(4611686018427387904,)"), data, 24, "takes 4611686018427387904");
    expect_refused(1, HEADER("'<f4'", "False", "(2305843009213693952,)"), data, 24, "is larger than any array");
    expect_refused(1, HEADER("'<f4'", "False", "(1,1,1,1,1,1,1,1,6)"), data, 24, "more than 8 dimensions");
    expect_refused(1, "{'descr': '<f4', 'fortran_order': False, }", data, 24, "'shape' is missing");
    expect_refused(1, "{'descr': '<f4', 'descr': '<f4', }", data, 24, "a key comes twice");
    expect_refused(1, "{'descr': '<f4', 'other': 1, }", data, 24, "a key besides");
    expect_refused(1, GOLDEN_TEXT "x", data, 24, "something follows its closing '}'");
    expect_refused(1, "['descr']", data, 24, "does not start with a '{'");
    expect_refused(4, GOLDEN_TEXT, data, 24, "version 4.0; attend reads 1.0, 2.0 and 3.0");

    unsigned char bytes[GOLDEN + 1];
    at_error error = {0};
    golden(bytes);
    bytes[GOLDEN] = 0;
    assert_null(parse(bytes, GOLDEN + 1, &error));
    assert_string_equal(error.text, "'x.npy' has 25 bytes of data; its shape [2,3] of float32 takes 24");
    error = (at_error){0};
    bytes[9] = 0x80; /* a header longer than the file */
    assert_null(parse(bytes, GOLDEN, &error));
    assert_string_equal(error.text, "'x.npy' ends inside its .npy header: 142 of its 32886 bytes are there");
    error = (at_error){0};
    unsigned char open_quote[25]; /* an open string, which ends with the file at the line feed */
    memcpy(open_quote, "\x93NUMPY\x01\x00\x0f\x00{'descr': '<f4\n", 25);
    assert_null(parse(open_quote, 25, &error));
    assert_non_null(strstr(error.text, "'descr' is not a short string in quotes"));
    error = (at_error){0};
    size_t size = make(bytes, 2, "{}", NULL, 0);
    bytes[11] = 0x7f;
    assert_null(parse(bytes, size, &error));
    assert_non_null(strstr(error.text, "it may have 65536 at most"));
}

static void test_fortran_order_of_one_dimension(void **state)
{
    (void)state;
    unsigned char bytes[512];
    at_error error = {0};
    at_array *array = parse(bytes, make(bytes, 1, HEADER("'<f4'", "True", "(6,)"), golden_data, 24), &error);
    assert_non_null(array);
    at_array_free(array);
    array = parse(bytes, make(bytes, 1, HEADER("'<f4'", "True", "()"), golden_data, 4), &error);
    assert_non_null(array);
    at_array_free(array);
}

static void test_every_truncation(void **state)
{
    (void)state;
    unsigned char bytes[GOLDEN];
    golden(bytes);
    for (size_t size = 0; size < GOLDEN; size++) {
        at_error error = {0};
        assert_null(parse(bytes, size, &error));
        expect_valid_or_refused(bytes, size);
    }
}

static void test_every_bit_flip(void **state)
{
    (void)state;
    for (int version = 1; version <= 2; version++) {
        unsigned char bytes[512];
        size_t size = make(bytes, version, GOLDEN_TEXT, golden_data, sizeof golden_data);
        for (size_t bit = 0; bit < 8 * (size - sizeof golden_data); bit++) {
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            expect_valid_or_refused(bytes, size);
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
    }
}

static void test_missing_or_unwritable(void **state)
{
    (void)state;
    at_error error = {0};
    assert_null(at_npy_read("none/x.npy", &error));
    assert_string_equal(error.text, "cannot read 'none/x.npy': No such file or directory");
    error = (at_error){0};
    float one = 1;
    at_array scalar = {.dtype = AT_F32, .data = &one};
    assert_false(at_npy_write("none/x.npy", &scalar, &error));
    assert_string_equal(error.text, "cannot write 'none/x.npy': No such file or directory");
    error = (at_error){0};
    at_array negative = {.dtype = AT_F32, .rank = 1, .dim = {-1}, .data = &one};
    assert_false(at_npy_write("x.npy", &negative, &error));
    assert_non_null(strstr(error.text, "its array has shape [-1]"));
}

static void test_halves_are_exact(void **state)
{
    (void)state;
    static uint16_t halves[65536];
    for (int i = 0; i < 65536; i++)
        halves[i] = (uint16_t)i;
    at_error error = {0};
    at_array half = {.dtype = AT_F16, .rank = 1, .dim = {65536}, .data = halves};
    at_array *wide = at_array_to_f32(&half, &error);
    const float *value = wide->data;
    for (int i = 0; i < 65536; i++) {
        int exponent = (i >> 10) & 31, fraction = i & 1023;
        if (exponent == 31 && fraction != 0) {
            assert_true(isnan(value[i]));
            continue;
        }
        /* (1 + f/1024) 2^(e-15), or f/1024 2^-14 for a denormal */
        double expected = exponent == 31  ? (double)INFINITY
                          : exponent == 0 ? ldexp(fraction, -24)
                                          : ldexp(1024 + fraction, exponent - 25);
        assert_true((double)fabsf(value[i]) == expected);
        assert_int_equal(signbit(value[i]) != 0, i >> 15);
    }
    at_array_free(wide);
    half.dtype = AT_BF16;
    wide = at_array_to_f32(&half, &error);
    for (int i = 0; i < 65536; i++) {
        uint32_t bits;
        memcpy(&bits, (float *)wide->data + i, 4);
        assert_int_equal(bits, (uint32_t)i << 16);
    }
    at_array_free(wide);
}

static void test_other_types_to_float(void **state)
{
    (void)state;
    at_error error = {0};
    double doubles[] = {0.1, 1e300, -0.0};
    int32_t ints[] = {-7, INT32_MAX, 0};
    int64_t longs[] = {-7, INT64_MIN, 16777217};
    uint8_t bytes[] = {0, 200, 255};
    float floats[] = {1, -2, 3};
    static const float expected[][3] = {
        {0.1f, INFINITY, -0.0f}, {-7, 2147483648.0f, 0}, {-7, -0x1p63f, 16777216}, {0, 200, 255}, {1, -2, 3}};
    at_array arrays[] = {{AT_F64, 1, {3}, doubles},
                         {AT_I32, 1, {3}, ints},
                         {AT_I64, 1, {3}, longs},
                         {AT_U8, 1, {3}, bytes},
                         {AT_F32, 1, {3}, floats}};
    for (int i = 0; i < 5; i++) {
        at_array *wide = at_array_to_f32(&arrays[i], &error);
        assert_int_equal(wide->dtype, AT_F32);
        assert_memory_equal(wide->data, expected[i], sizeof expected[i]);
        at_array_free(wide);
    }
}

static void test_new_array(void **state)
{
    (void)state;
    at_error error = {0};
    int64_t dim[AT_MAX_RANK + 1] = {3, 5};
    at_array *array = at_array_new(AT_I64, 2, dim, &error);
    for (int i = 0; i < 15; i++)
        assert_int_equal(((int64_t *)array->data)[i], 0);
    at_array_free(array);
    at_array_free(NULL);
    assert_null(at_array_new(AT_F32, AT_MAX_RANK + 1, dim, &error));
    assert_string_equal(error.text, "an array cannot have 9 dimensions; it may have 0 to 8");
    error = (at_error){0};
    assert_null(at_array_new((at_dtype)8, 1, dim, &error));
    assert_string_equal(error.text, "an array cannot have number type 8; there are 0 to 7");
    error = (at_error){0};
    assert_null(at_array_new(AT_F32, 2, (int64_t[]){-1, 2}, &error));
    assert_non_null(strstr(error.text, "shape [-1,2]"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_all_versions_and_spellings),
        cmocka_unit_test(test_round_trip_of_every_type_and_rank),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_fortran_order_of_one_dimension),
        cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_every_bit_flip),
        cmocka_unit_test(test_missing_or_unwritable),
        cmocka_unit_test(test_halves_are_exact),
        cmocka_unit_test(test_other_types_to_float),
        cmocka_unit_test(test_new_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
