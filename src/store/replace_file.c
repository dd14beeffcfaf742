#include "store/replace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/files.h"
#include "io/checksum.h"

static bool copy_file(const char *from, const char *to, at_error *error)
{
    size_t size;
    unsigned char *bytes = at_file_read(from, &size, error);
    at_writer *writer = bytes ? at_writer_open(to, error) : NULL;
    if (writer) {
        at_writer_add(writer, bytes, size, error);
        at_writer_commit(writer, error);
    }
    free(bytes);
    return error->code == AT_OK;
}

/* A second name for the file that is there; it becomes FILE.previous once the new file is written, so that both FILE
 * and, after the first replacement, FILE.previous are whole files at any time. False if there is no file, or with the
 * error set. */
static bool hold(const char *path, const char *held, at_error *error)
{
    unlink(held); /* left by a run that was killed */
    if (linkat(AT_FDCWD, path, AT_FDCWD, held, AT_SYMLINK_FOLLOW) == 0)
        return true;
    if (errno == ENOENT)
        return false;
    return copy_file(path, held, error); /* a file system without links */
}

/* The other names of a file that is replaced: its second name until then, and its name afterwards. */
typedef struct names {
    at_buffer held, previous;
} names;

static names names_of(const char *path, at_error *error)
{
    names n = {0};
    at_buffer_print(&n.held, "%s.previous.new", path);
    at_buffer_print(&n.previous, "%s.previous", path);
    if (n.held.failed || n.previous.failed)
        at_no_memory(error, "the names of '%s'", path);
    return n;
}

static void names_free(names *n)
{
    at_buffer_free(&n->held);
    at_buffer_free(&n->previous);
}

/* If PATH is the new file already, the file held is the one before it, and what is left to do is to give it its name. */
void at_file_tidy(const char *path)
{
    at_error ignored = {0};
    names n = names_of(path, &ignored);
    struct stat held;
    at_writer_tidy(path);
    if (ignored.code == AT_OK) {
        at_writer_tidy(n.held.bytes);
        if (lstat(n.held.bytes, &held) == 0 && S_ISREG(held.st_mode) && !at_file_same(path, n.held.bytes))
            rename(n.held.bytes, n.previous.bytes);
        else
            unlink(n.held.bytes);
    }
    names_free(&n);
}

bool at_file_replace(at_tensors *file, const char *path, bool keep_previous, at_error *error)
{
    if (!at_tensors_seal(file, error))
        return false;
    if (!keep_previous)
        return at_tensors_write(file, path, error);
    names n = names_of(path, error);
    bool is_held = error->code == AT_OK && hold(path, n.held.bytes, error);
    bool done = error->code == AT_OK && at_tensors_write(file, path, error);
    if (is_held && !done)
        unlink(n.held.bytes);
    if (is_held && done && rename(n.held.bytes, n.previous.bytes) != 0)
        done = at_file_fail(error, "write", n.previous.bytes, errno);
    names_free(&n);
    return done;
}

bool at_file_restore(const char *path, at_error *error)
{
    names n = names_of(path, error);
    bool is_held = error->code == AT_OK && hold(path, n.held.bytes, error);
    if (is_held && (rename(n.previous.bytes, path) != 0 || rename(n.held.bytes, n.previous.bytes) != 0))
        at_fail(error, AT_FILE, "cannot rename '%s' to '%s': %s", n.previous.bytes, path, strerror(errno));
    names_free(&n);
    return error->code == AT_OK;
}

void at_file_forget(const char *path)
{
    char previous[PATH_MAX]; /* of no use if it is longer, and there also when memory is not */
    if (snprintf(previous, sizeof previous, "%s.previous", path) < (int)sizeof previous)
        unlink(previous);
}
