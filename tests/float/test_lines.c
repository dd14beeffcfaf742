/* Lines of files, plain and compressed: the same lines one by one and all at once, and an error for each kind of
 * damage.
 * */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef AT_HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef AT_HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/buffer.h"
#include "base/rng.h"

static char folder[] = "/tmp/attend-lines-XXXXXX";

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

static void put(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_true(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

/* ---- Plain ---------------------------------------------------------------------------------------------------- */

/* The lines of the file in brackets: all at once, and checked to be the same one by one. */
static char *lines_of(const char *path)
{
    at_error error = {0};
    at_buffer all = {0};
    at_line_list *list = at_line_list_read(path, &error);
    if (!list)
        fail_msg("%s", error.text);
    at_line_reader *reader = at_line_reader_open(path, &error);
    at_line line;
    int64_t count = 0;
    for (; at_line_reader_ready(reader) && at_line_reader_next(reader, &line, &error); count++) {
        assert_true(count < list->count);
        assert_int_equal(line.size, list->line[count].size);
        assert_memory_equal(line.text, list->line[count].text, line.size);
        at_buffer_add(&all, "[", 1);
        at_buffer_add(&all, line.text, line.size);
        at_buffer_add(&all, "]", 1);
    }
    assert_int_equal(error.code, AT_OK);
    assert_int_equal(count, list->count);
    at_buffer_add(&all, "", 0);
    at_line_reader_free(reader);
    at_line_list_free(list);
    return all.bytes;
}

static void expect_lines(const char *bytes, const char *lines)
{
    put("plain", bytes, strlen(bytes));
    char *found = lines_of("plain");
    assert_string_equal(found, lines);
    free(found);
}

static void test_where_lines_end(void **state)
{
    (void)state;
    expect_lines("", "");
    expect_lines("\xef\xbb\xbf", "");
    expect_lines("\xef\xbb\xbf\n", "[]");
    expect_lines("a", "[a]");
    expect_lines("\n", "[]");
    expect_lines("\n\n", "[][]");
    expect_lines("a\r\nb\r\n\r\nc\rd\r", "[a][b][][c\rd]");
    expect_lines("\xef\xbb\xbf"
                 "a\n\xef\xbb\xbf"
                 "b",
                 "[a][\xef\xbb\xbf"
                 "b]");
    expect_lines("\x1f", "[\x1f]"); /* the first byte of gzip data, and no more */
    expect_lines("(\xb5/", "[(\xb5/]");
}

/* A pipe: lines can be read before the rest is written. */
static void test_ready_on_a_pipe(void **state)
{
    (void)state;
    int ends[2], before = dup(STDIN_FILENO);
    at_error error = {0};
    at_line line;
    assert_true(before >= 0 && pipe(ends) == 0 && dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
    at_line_reader *reader = at_line_reader_open("-", &error);
    assert_false(at_line_reader_ready(reader));
    assert_int_equal(write(ends[1], "one\ntw", 6), 6);
    assert_true(at_line_reader_ready(reader) && at_line_reader_next(reader, &line, &error));
    assert_int_equal(line.size, 3);
    assert_false(at_line_reader_ready(reader));
    assert_int_equal(write(ends[1], "o", 1), 1);
    close(ends[1]);
    assert_true(at_line_reader_ready(reader) && at_line_reader_next(reader, &line, &error));
    assert_memory_equal(line.text, "two", 3);
    assert_true(at_line_reader_ready(reader));
    assert_false(at_line_reader_next(reader, &line, &error));
    assert_int_equal(error.code, AT_OK);
    at_line_reader_free(reader);
    close(ends[0]);
    dup2(before, STDIN_FILENO);
    close(before);
}

/* ---- Compressed ----------------------------------------------------------------------------------------------- */

typedef struct packing {
    const char *name, *ending;
    size_t (*pack)(const void *bytes, size_t size, void *packed, size_t room);
} packing;

#ifdef AT_HAVE_ZLIB
static size_t pack_gzip(const void *bytes, size_t size, void *packed, size_t room)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)size};
    stream.next_out = packed;
    stream.avail_out = (uInt)room;
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return room - stream.avail_out;
}
#endif

#ifdef AT_HAVE_ZSTD
static size_t pack_zstd(const void *bytes, size_t size, void *packed, size_t room)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    const size_t used = ZSTD_compress2(context, packed, room, bytes, size);
    assert_false(ZSTD_isError(used));
    ZSTD_freeCCtx(context);
    return used;
}
#endif

static const packing packings[] = {
#ifdef AT_HAVE_ZLIB
    {"gzip", ".gz", pack_gzip},
#endif
#ifdef AT_HAVE_ZSTD
    {"zstd", ".zst", pack_zstd},
#endif
    {0},
};

enum { TEXT = 300000, ROOM = 2 * TEXT };

/* Lines of any length and of a few letters. */
static char *some_text(void)
{
    at_rng rng = {7, 0};
    char *text = malloc(TEXT + 1);
    for (int i = 0; i < TEXT; i++)
        text[i] = "abcdefgh  \n"[at_rng_below(&rng, 11)];
    text[TEXT] = 0;
    return text;
}

static void expect_text(const char *path, const char *expected)
{
    char *found = lines_of(path);
    assert_string_equal(found, expected);
    free(found);
}

/* With any name, in one member or several, some of them empty, the lines are those of the plain file. */
static void test_compressed_lines_are_the_same(void **state)
{
    (void)state;
    char *text = some_text();
    unsigned char *packed = malloc(ROOM);
    put("text", text, TEXT);
    char *expected = lines_of("text");
    for (const packing *p = packings; p->name; p++) {
        char path[20];
        snprintf(path, sizeof path, "text%s", p->ending);
        size_t size = p->pack(text, TEXT, packed, ROOM);
        put(path, packed, size);
        put("hidden", packed, size);
        expect_text(path, expected);
        expect_text("hidden", expected);
        const size_t cuts[] = {0, 0, 100001, 100001, 250000, TEXT, TEXT};
        size = 0;
        for (int i = 1; i < 7; i++)
            size += p->pack(text + cuts[i - 1], cuts[i] - cuts[i - 1], packed + size, ROOM - size);
        put("several", packed, size);
        expect_text("several", expected);
    }
    free(expected);
    free(packed);
    free(text);
}

static void expect_fault(const char *path, int code, const char *message)
{
    at_error all = {0}, single = {0};
    at_line line;
    assert_null(at_line_list_read(path, &all));
    assert_int_equal(all.code, code);
    if (!strstr(all.text, message))
        fail_msg("'%s' does not say '%s'", all.text, message);
    at_line_reader *reader = at_line_reader_open(path, &single);
    while (at_line_reader_next(reader, &line, &single))
        ;
    assert_string_equal(single.text, all.text);
    at_line_reader_free(reader);
}

static void test_damage_is_refused(void **state)
{
    (void)state;
    char *text = some_text();
    unsigned char *packed = malloc(ROOM);
    for (const packing *p = packings; p->name; p++) {
        const size_t size = p->pack(text, 5000, packed, ROOM);
        char message[100];
        snprintf(message, sizeof message, "'cut' is truncated: its %s data has no end", p->name);
        for (size_t cut = 5; cut < size; cut += cut < size - 20 ? size / 40 : 1) {
            put("cut", packed, cut);
            expect_fault("cut", AT_FORMAT, message);
        }
        memcpy(packed + size, "garbage", 7);
        put("tail", packed, size + 7);
        expect_fault("tail", AT_FORMAT, "there are other bytes after its end");
        packed[size - 1] ^= 1; /* of gzip's length, or of zstd's checksum */
        put("sum", packed, size);
        expect_fault("sum", AT_FORMAT, "'sum' is damaged: ");
        packed[size - 1] ^= 1;
        /* Any byte changed: refused, or a field that does not matter, such as the time in gzip's header. */
        put("good", packed, size);
        char *expected = lines_of("good");
        for (size_t i = 4; i < size; i += 7) {
            at_error error = {0};
            packed[i] ^= 0x55;
            put("changed", packed, size);
            at_line_list *list = at_line_list_read("changed", &error);
            at_line_list_free(list);
            if (list)
                expect_text("changed", expected);
            else
                assert_true(error.code == AT_FORMAT && !strchr(error.text, '\n'));
            packed[i] ^= 0x55;
        }
        free(expected);
        char named[20];
        snprintf(named, sizeof named, "plain%s", p->ending);
        put(named, "text\n", 5);
        snprintf(message, sizeof message, "'%s' is not %s data, although its name ends in %s", named, p->name,
                 p->ending);
        expect_fault(named, AT_FORMAT, message);
        put(named, "", 0);
        expect_fault(named, AT_FORMAT, message);
    }
    free(packed);
    free(text);
}

/* 200 MiB of one letter: gzip packs them 1028 to 1, zstd far better. */
static void test_bombs_are_refused(void **state)
{
    (void)state;
    enum { PART = 10 << 20, PARTS = 20 };
    char *part = malloc(PART);
    unsigned char *packed = malloc(ROOM);
    memset(part, 'a', PART);
    for (const packing *p = packings; p->name; p++) {
        size_t size = 0;
        for (int i = 0; i < PARTS; i++)
            size += p->pack(part, PART, packed + size, ROOM - size);
        put("bomb", packed, size);
        expect_fault("bomb", AT_FORMAT, "'bomb' decompresses to more than 1000 times its size");
        size = p->pack(part, PART, packed, ROOM);
        put("large", packed, size); /* within the first 64 MiB any ratio is allowed */
        char *found = lines_of("large");
        assert_int_equal(strlen(found), PART + 2);
        free(found);
        at_decompressed_limit_set(PART - 1);
        expect_fault("large", AT_UNSUPPORTED, "'large' decompresses to more than 10485759 bytes, which is the limit");
        at_decompressed_limit_set(PART);
        free(lines_of("large"));
        at_decompressed_limit_set(0);
    }
    free(packed);
    free(part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_where_lines_end),
        cmocka_unit_test(test_ready_on_a_pipe),
        cmocka_unit_test(test_compressed_lines_are_the_same),
        cmocka_unit_test(test_damage_is_refused),
        cmocka_unit_test(test_bombs_are_refused),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
