#include "base/files.h"

#include "base/error.h"
#include "base/files_internal.h"
#include "base/hash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

bool at_size_mul(size_t a, size_t b, size_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

bool at_size_add(size_t a, size_t b, size_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

bool at_file_same(const char *one, const char *other)
{
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Reads to the end, since the length of a pipe is unknown; memory grows with the bytes that arrived. */
static unsigned char *read_all(int file, size_t expected, const char *path, size_t *size, at_error *error)
{
    size_t room = expected + 1, used = 0; /* one more than expected: the end is found without growing */
    unsigned char *bytes = malloc(room);
    while (bytes) {
        if (used == room) {
            unsigned char *larger = room <= SIZE_MAX / 2 ? realloc(bytes, room * 2) : NULL;
            if (!larger)
                break;
            bytes = larger;
            room *= 2;
        }
        ssize_t got = read(file, bytes + used, room - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            at_file_fail(error, "read", path, errno);
            free(bytes);
            return NULL;
        }
        if (got == 0) {
            *size = used;
            return bytes;
        }
        used += (size_t)got;
    }
    free(bytes);
    at_no_memory(error, "the contents of '%s'", path);
    return NULL;
}

unsigned char *at_file_read(const char *path, size_t *size, at_error *error)
{
    *size = 0;
    if (error->code != AT_OK)
        return NULL;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) {
        at_file_fail(error, "read", path, errno);
        if (file >= 0)
            close(file);
        return NULL;
    }
    unsigned char *bytes = NULL;
    if (S_ISDIR(status.st_mode))
        at_fail(error, AT_FILE, "cannot read '%s': it is a directory, not a file", path);
    else if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode))
        at_fail(error, AT_FILE, "cannot read '%s': it is a device, not a file", path);
    else
        bytes = read_all(file, S_ISREG(status.st_mode) ? (size_t)status.st_size : 65535, path, size, error);
    close(file);
    return bytes;
}

size_t at_file_begin(const char *path, void *bytes, size_t size, at_error *error)
{
    const int file = error->code == AT_OK ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    size_t have = 0;
    ssize_t got = file < 0 ? -1 : 1;
    while (got > 0 && have < size) {
        got = read(file, (char *)bytes + have, size - have);
        have += got > 0 ? (size_t)got : 0;
        if (got < 0 && errno == EINTR)
            got = 1;
    }
    if (got < 0)
        at_file_fail(error, "read", path, errno);
    if (file >= 0)
        close(file);
    return got < 0 ? 0 : have;
}

int at_file_open_regular(const char *path, size_t *size, at_error *error)
{
    if (error->code != AT_OK)
        return -1;
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) {
        at_file_fail(error, "read", path, errno);
    } else if (S_ISREG(status.st_mode)) {
        *size = (size_t)status.st_size;
        return file;
    } else {
        at_fail(error, AT_FILE, "cannot read '%s': it is a %s, not a file", path,
                S_ISDIR(status.st_mode)    ? "directory"
                : S_ISFIFO(status.st_mode) ? "pipe"
                                           : "device");
    }
    if (file >= 0)
        close(file);
    return -1;
}

bool at_file_read_at(int file, size_t offset, void *bytes, size_t size, const char *path, at_error *error)
{
    unsigned char *to = bytes;
    for (size_t done = 0; done < size;) {
        const ssize_t got = pread(file, to + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return at_file_fail(error, "read", path, errno);
        if (got == 0)
            return at_fail(error, AT_FILE, "cannot read '%s': it became shorter while it was read", path);
        done += (size_t)got;
    }
    return true;
}

struct at_writer {
    int file;
    char *path;      /* as the caller wrote it, for error messages */
    char *target;    /* what is replaced: the path, or the file that a link there points to */
    char *temporary; /* NULL: the target is a device or a pipe, which is written to and never replaced */
};

static void release(at_writer *writer)
{
    if (writer->file >= 0)
        close(writer->file);
    free(writer->path);
    free(writer->target);
    free(writer->temporary);
    free(writer);
}

size_t at_directory_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return !slash ? 0 : (size_t)(slash - path) + 1;
}

void at_temporary_prefix(const char *target, char prefix[AT_TEMPORARY])
{
    snprintf(prefix, AT_TEMPORARY, ".attend-%016llx-",
             (unsigned long long)at_hash_text(target + at_directory_length(target)));
}

bool at_temporary_named(const char *name, const char prefix[AT_TEMPORARY])
{
    const size_t length = strlen(name), start = strlen(prefix);
    return length > start + 4 && strncmp(name, prefix, start) == 0 && strcmp(name + length - 4, ".tmp") == 0;
}

void at_temporary_next(const char *target, const char prefix[AT_TEMPORARY], char *name, size_t room)
{
    static atomic_uint serial;
    snprintf(name, room, "%.*s%s%ld-%u.tmp", (int)at_directory_length(target), target, prefix, (long)getpid(),
             atomic_fetch_add(&serial, 1));
}

/* A writer locks its temporary file until it is renamed or removed, and the system releases the lock of a process that
 * was killed: a temporary file whose lock is free belongs to nobody. */
static void remove_if_abandoned(int directory, const char *name)
{
    int file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0)
        unlinkat(directory, name, 0);
    if (file >= 0)
        close(file);
}

static void remove_abandoned(const char *target)
{
    char prefix[AT_TEMPORARY], *path = strdup(target);
    if (!path)
        return;
    at_temporary_prefix(target, prefix);
    path[at_directory_length(path)] = '\0';
    DIR *directory = opendir(*path ? path : ".");
    for (struct dirent *entry; directory && (entry = readdir(directory)) != NULL;)
        if (at_temporary_named(entry->d_name, prefix))
            remove_if_abandoned(dirfd(directory), entry->d_name);
    if (directory)
        closedir(directory);
    free(path);
}

/* Locks the new file. False if another process took it for abandoned, between its creation and its lock, and removes
 * it. Where the file system has no locks, nothing is removed as abandoned either. */
static bool claim_temporary(const at_writer *writer)
{
    struct stat opened, named;
    if (flock(writer->file, LOCK_EX | LOCK_NB) != 0)
        return errno != EWOULDBLOCK;
    return fstat(writer->file, &opened) == 0 && lstat(writer->temporary, &named) == 0 &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

/* Creates a new file beside the target. O_EXCL: never one that somebody else created there, nor through a link. */
static bool create_temporary(at_writer *writer, size_t room, const char *prefix)
{
    for (;;) {
        at_temporary_next(writer->target, prefix, writer->temporary, room);
        writer->file = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (writer->file < 0 && errno != EEXIST)
            return false;
        if (writer->file >= 0 && claim_temporary(writer))
            return true;
        if (writer->file >= 0) {
            unlink(writer->temporary);
            close(writer->file);
            writer->file = -1;
        }
    }
}

static bool open_temporary(at_writer *writer, at_error *error)
{
    char prefix[AT_TEMPORARY];
    size_t room = at_directory_length(writer->target) + AT_TEMPORARY_ROOM;
    at_temporary_prefix(writer->target, prefix);
    writer->temporary = malloc(room);
    if (!writer->temporary)
        return at_no_memory(error, "writing '%s'", writer->path);
    remove_abandoned(writer->target);
    if (create_temporary(writer, room, prefix))
        return true;
    at_file_fail(error, "write", writer->path, errno);
    free(writer->temporary);
    writer->temporary = NULL;
    return false;
}

/* What is at the path decides how it is written: a regular file is replaced and keeps its mode, a device or a pipe is
 * written to, a directory is refused. */
static bool open_target(at_writer *writer, at_error *error)
{
    struct stat status;
    if (stat(writer->target, &status) != 0) {
        if (errno != ENOENT)
            return at_file_fail(error, "write", writer->path, errno);
        return open_temporary(writer, error);
    }
    if (S_ISDIR(status.st_mode))
        return at_fail(error, AT_FILE, "cannot write '%s': it is a directory, not a file", writer->path);
    if (!S_ISREG(status.st_mode)) {
        writer->file = open(writer->target, O_WRONLY | O_CLOEXEC);
        return writer->file >= 0 || at_file_fail(error, "write", writer->path, errno);
    }
    if (eaccess(writer->target, W_OK) != 0) /* a rename would not check it */
        return at_file_fail(error, "write", writer->path, errno);
    if (!open_temporary(writer, error))
        return false;
    if (fchmod(writer->file, status.st_mode & 0777) != 0) {
        at_file_fail(error, "write", writer->path, errno);
        unlink(writer->temporary);
        return false;
    }
    return true;
}

/* Follows links, so that a link stays a link. */
static char *target_of(const char *path)
{
    char *target = realpath(path, NULL);
    return target ? target : strdup(path);
}

at_writer *at_writer_open(const char *path, at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    size_t length = strlen(path);
    if (length == 0 || path[length - 1] == '/') {
        at_fail(error, AT_FILE, "cannot write '%s': it is not the name of a file", path);
        return NULL;
    }
    at_writer *writer = calloc(1, sizeof *writer);
    if (!writer) {
        at_no_memory(error, "writing '%s'", path);
        return NULL;
    }
    writer->file = -1;
    writer->path = strdup(path);
    writer->target = target_of(path);
    bool open_now = writer->path && writer->target;
    if (!open_now)
        at_no_memory(error, "writing '%s'", path);
    if (open_now && open_target(writer, error))
        return writer;
    release(writer);
    return NULL;
}

bool at_writer_add(at_writer *writer, const void *bytes, size_t size, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    const char *from = bytes;
    while (size > 0) {
        ssize_t done = write(writer->file, from, size);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return at_file_fail(error, "write", writer->path, errno);
        from += done;
        size -= (size_t)done;
    }
    return true;
}

bool at_directory_sync(const char *target, const char *path, at_error *error)
{
    size_t length = at_directory_length(target);
    char *directory = length == 0 ? strdup(".") : strndup(target, length);
    int file = !directory ? -1 : open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(directory);
    if (file < 0)
        return true;
    bool done = fsync(file) == 0 || errno == EINVAL || errno == ENOTSUP;
    int reason = errno;
    close(file);
    return done || at_file_fail(error, "write", path, reason);
}

int at_writer_file(const at_writer *writer)
{
    return writer->file;
}

const char *at_writer_path(const at_writer *writer)
{
    return writer->path;
}

bool at_writer_sync(at_writer *writer, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    return !writer->temporary || fsync(writer->file) == 0 || at_file_fail(error, "write", writer->path, errno);
}

bool at_writer_commit(at_writer *writer, at_error *error)
{
    /* The file stays open, and so locked, until it has its name. */
    if (at_writer_sync(writer, error) && writer->temporary && rename(writer->temporary, writer->target) != 0)
        at_file_fail(error, "write", writer->path, errno);
    if (error->code != AT_OK) {
        at_writer_cancel(writer);
        return false;
    }
    /* The rename changed the directory, which has to be synced as well. */
    bool done = !writer->temporary || at_directory_sync(writer->target, writer->path, error);
    release(writer);
    return done;
}

void at_writer_cancel(at_writer *writer)
{
    if (!writer)
        return;
    if (writer->temporary)
        unlink(writer->temporary);
    release(writer);
}

void at_writer_tidy(const char *path)
{
    char *target = target_of(path);
    if (target)
        remove_abandoned(target);
    free(target);
}

bool at_file_write(const char *path, const void *bytes, size_t size, at_error *error)
{
    at_writer *writer = at_writer_open(path, error);
    if (!writer)
        return false;
    at_writer_add(writer, bytes, size, error);
    return at_writer_commit(writer, error);
}
