/* Compressed input is recognised by its first bytes; the ending of its name is only checked against them. */
#include "text/input_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_kind.h"
#include "text/unpack_internal.h"

enum { RAW_SIZE = 1 << 16, UNPACKED_SIZE = 1 << 16 };

/* Text does not compress as well as this: such a file is a decompression bomb or a mistake. */
enum { MOST_RATIO = 1000, FREE_BYTES = 64 << 20 };
static const uint64_t DEFAULT_LIMIT = UINT64_C(16) << 30;
static atomic_uint_least64_t limit; /* 0: the default */

void at_decompressed_limit_set(uint64_t bytes)
{
    atomic_store(&limit, bytes);
}

struct at_input {
    int file;
    size_t size;
    char *name;
    unsigned char *raw; /* bytes read and not used yet: raw[start .. end) */
    size_t start, end;
    bool ended;    /* the end of the file was reached */
    bool detected; /* detect_format has run */
    const at_packing *packing;
    void *state;
    unsigned char *unpacked; /* decompressed and not returned yet: unpacked[unpacked_start .. unpacked_end) */
    size_t unpacked_start, unpacked_end;
    bool at_end;        /* of a member or frame */
    bool pending;       /* the decompressor may hold output */
    uint64_t used, out; /* bytes taken and returned by the decompressor */
};

/* ---- Opening -------------------------------------------------------------------------------------------------- */

const char *at_input_name(const at_input *input)
{
    return input->name;
}

size_t at_input_size(const at_input *input)
{
    return input->size;
}

static bool open_file(at_input *input, const char *path, at_error *error)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    struct stat about;
    input->name = strdup(is_stdin ? "standard input" : path);
    input->raw = malloc(RAW_SIZE);
    input->file = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (!input->name || !input->raw)
        return at_no_memory(error, "the lines of '%s'", path);
    if (input->file < 0 || fstat(input->file, &about) != 0)
        return at_file_fail(error, "read", path, errno);
    if (!is_stdin && S_ISDIR(about.st_mode))
        return at_fail(error, AT_FILE, "cannot read '%s': it is a directory, not a file", path);
    if (!is_stdin && !S_ISREG(about.st_mode) && !S_ISFIFO(about.st_mode)) /* /dev/zero has no end */
        return at_fail(error, AT_FILE, "cannot read '%s': it is a device, not a file", path);
    input->size = S_ISREG(about.st_mode) && about.st_size > 0 ? (size_t)about.st_size : 0;
    return true;
}

at_input *at_input_open(const char *path, at_error *error)
{
    at_input *input = error->code == AT_OK ? calloc(1, sizeof *input) : NULL;
    if (!input) {
        at_no_memory(error, "the lines of '%s'", path);
        return NULL;
    }
    input->file = -1;
    if (open_file(input, path, error))
        return input;
    at_input_free(input);
    return NULL;
}

void at_input_free(at_input *input)
{
    if (!input)
        return;
    if (input->state)
        input->packing->close(input->state);
    if (input->file > STDERR_FILENO)
        close(input->file);
    free(input->raw);
    free(input->unpacked);
    free(input->name);
    free(input);
}

/* ---- Raw bytes ------------------------------------------------------------------------------------------------ */

static ssize_t read_file(at_input *input, void *bytes, size_t size, at_error *error)
{
    ssize_t got;
    do
        got = read(input->file, bytes, size);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        at_file_fail(error, "read", input->name, errno);
    input->ended = got == 0;
    return got;
}

/* Appends bytes of the file to `raw`; the caller has made sure that they fit. */
static bool read_raw(at_input *input, at_error *error)
{
    const ssize_t got = read_file(input, input->raw + input->end, RAW_SIZE - input->end, error);
    input->end += got > 0 ? (size_t)got : 0;
    return got >= 0;
}

static bool ends_with(const char *text, const char *ending)
{
    const size_t length = strlen(text), size = strlen(ending);
    return length >= size && strcmp(text + length - size, ending) == 0;
}

/* Detects the format. Reads no more bytes than that needs, since the input may be a slow pipe. */
static bool detect_format(at_input *input, at_error *error)
{
    bool more = true;
    while (more && !input->ended) {
        if (!read_raw(input, error))
            return false;
        input->packing = at_packing_find(input->raw, input->end, &more);
    }
    input->detected = true;
    for (int i = 0; at_packing_at(i); i++)
        if (at_packing_at(i) != input->packing && ends_with(input->name, at_packing_at(i)->ending))
            return at_fail(error, AT_FORMAT, "'%s' is not %s data, although its name ends in %s", input->name,
                           at_packing_at(i)->name, at_packing_at(i)->ending);
    if (!input->packing)
        return true;
    if (!input->packing->open)
        return at_fail(error, AT_UNSUPPORTED,
                       "'%s' is %s data, and this attend was built without %s; decompress it first", input->name,
                       input->packing->name, input->packing->library);
    input->state = input->packing->open();
    input->unpacked = malloc(UNPACKED_SIZE);
    return (input->state && input->unpacked) || at_no_memory(error, "decompressing '%s'", input->name);
}

/* ---- Decompressing -------------------------------------------------------------------------------------------- */

static bool check_limits(const at_input *input, at_error *error)
{
    const uint64_t set = atomic_load(&limit), most = set ? set : DEFAULT_LIMIT;
    if (input->out > most)
        return at_fail(error, AT_UNSUPPORTED, "'%s' decompresses to more than %llu bytes, which is the limit",
                       input->name, (unsigned long long)most);
    if (input->out > FREE_BYTES && input->out / MOST_RATIO > input->used)
        return at_fail(error, AT_FORMAT, "'%s' decompresses to more than %d times its size, like a decompression bomb",
                       input->name, MOST_RATIO);
    return true;
}

static bool one_step(at_input *input, at_unpack_step *step, at_error *error)
{
    const at_unpack_step before = *step;
    const char *fault = input->packing->step(input->state, step);
    if (fault)
        return at_fail(error, AT_FORMAT, "'%s' is damaged: as %s data, %s", input->name, input->packing->name, fault);
    input->at_end = step->at_end;
    input->pending = step->out_size == 0;
    input->used += before.in_size - step->in_size;
    input->out += before.out_size - step->out_size;
    if (input->ended && !input->at_end && step->in_size == before.in_size && step->out_size == before.out_size)
        return at_fail(error, AT_FORMAT, "'%s' is truncated: its %s data has no end", input->name,
                       input->packing->name);
    return check_limits(input, error);
}

/* The next bytes into input->unpacked; none at the end of the file. The steps are the same however much a reader asks for
 * at a time, so that the same file always has the same error. */
static bool unpack_more(at_input *input, at_error *error)
{
    at_unpack_step step = {.out = input->unpacked, .out_size = UNPACKED_SIZE};
    input->unpacked_start = input->unpacked_end = 0;
    while (step.out_size == UNPACKED_SIZE) {
        if (input->start == input->end && !input->pending) {
            input->start = input->end = 0;
            if (!input->ended && !read_raw(input, error))
                return false;
        }
        if (input->start == input->end && input->ended && input->at_end)
            return true;
        step.in = input->raw + input->start;
        step.in_size = input->end - input->start;
        if (!one_step(input, &step, error))
            return false;
        input->start = input->end - step.in_size;
    }
    input->unpacked_end = UNPACKED_SIZE - step.out_size;
    return true;
}

static ssize_t decompress(at_input *input, void *bytes, size_t size, at_error *error)
{
    if (input->unpacked_start == input->unpacked_end && !unpack_more(input, error))
        return -1;
    const size_t left = input->unpacked_end - input->unpacked_start;
    size = size < left ? size : left;
    memcpy(bytes, input->unpacked + input->unpacked_start, size);
    input->unpacked_start += size;
    return (ssize_t)size;
}

static ssize_t read_bytes(at_input *input, void *bytes, size_t size, at_error *error)
{
    if (input->packing)
        return decompress(input, bytes, size, error);
    const size_t left = input->end - input->start;
    if (left == 0)
        return input->ended ? 0 : read_file(input, bytes, size, error);
    size = size < left ? size : left;
    memcpy(bytes, input->raw + input->start, size);
    input->start += size;
    return (ssize_t)size;
}

/* Any bytes are lines, but UTF-16 would be read as lines of nonsense. */
static bool check_encoding(const at_input *input, const void *bytes, size_t size, at_error *error)
{
    const char *encoding = at_utf16_kind(bytes, size);
    return !encoding || at_fail(error, AT_FORMAT,
                                "'%s' is text in UTF-16, and attend reads UTF-8; convert it first: "
                                "iconv -f %s -t UTF-8",
                                input->name, encoding);
}

ssize_t at_input_read(at_input *input, void *bytes, size_t size, at_error *error)
{
    const bool is_first = !input->detected;
    if (is_first && !detect_format(input, error))
        return -1;
    const ssize_t got = read_bytes(input, bytes, size, error);
    return is_first && got > 0 && !check_encoding(input, bytes, (size_t)got, error) ? -1 : got;
}

bool at_input_ready(const at_input *input)
{
    struct pollfd in = {input->file, POLLIN, 0};
    return input->pending || input->unpacked_start < input->unpacked_end || input->start < input->end ||
           poll(&in, 1, 0) > 0;
}
