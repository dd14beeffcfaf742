/* The folder that a command works in, for no_memory.c: a copy of it in memory, what a run has changed, as a hash, and the
 * way back. */
#ifndef TORTURE_FOLDER_H
#define TORTURE_FOLDER_H

#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_FILES = 200 };

typedef struct kept_file {
    char *path, *bytes; /* bytes is NULL for a folder */
    size_t size;
    struct stat status; /* when it was last seen to be the same */
    bool seen;
} kept_file;
static kept_file old_files[MOST_FILES];
static int old_count;

/* What the last look found: paths, those in a folder before the folder. */
static char *changed_paths[MOST_FILES];
static int changed_count;
static uint64_t folder_hash;
static bool ignore_digits; /* in tables and records: for a comparison, whose figures are times */

static void give_up(const char *what, const char *path)
{
    dprintf(STDERR_FILENO, "torture: %s '%s'\n", what, path);
    _exit(2);
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(1099511628211);
    return hash;
}

/* The bytes of a file, with a NUL after them. */
static char *read_whole(const char *path, size_t *size)
{
    struct stat status;
    const int from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0 || fstat(from, &status) != 0)
        give_up("cannot read", path);
    *size = (size_t)status.st_size;
    char *bytes = malloc(*size + 1);
    if (!bytes || read(from, bytes, *size) != (ssize_t)*size)
        give_up("cannot read", path);
    bytes[*size] = '\0';
    close(from);
    return bytes;
}

static bool ends_with(const char *path, const char *end)
{
    const size_t length = strlen(path), tail = strlen(end);
    return length >= tail && strcmp(path + length - tail, end) == 0;
}

/* ---- What depends on the time ------------------------------------------------------------------------------------- */

/* Takes out every part of the text that begins with `from` and ends with `to`. */
static void cut(char *text, const char *from, const char *to)
{
    for (char *at = text, *end; (at = strstr(at, from)) && (end = strstr(at + strlen(from), to));)
        memmove(at, end + strlen(to), strlen(end + strlen(to)) + 1);
}

/* The bytes of a file as far as they are the same for every run: as same_log and compared of the scripts see them. */
static size_t without_times(const char *path, char *bytes, size_t size)
{
    size_t kept = 0;
    if (ends_with(path, ".log.jsonl")) {
        cut(bytes, "\"seconds\":", ",");
        cut(bytes, "\"words_per_second\":", ",");
        cut(bytes, ",\"time\":\"", "\"");
        cut(bytes, ",\"run\":{", "}");
        size = strlen(bytes);
    }
    if (!ignore_digits ||
        !(strstr(path, ".json") || ends_with(path, ".html") || ends_with(path, ".tex") || ends_with(path, ".csv")))
        return size;
    for (size_t i = 0; i < size; i++)
        if (!strchr("0123456789.", bytes[i]))
            bytes[kept++] = bytes[i];
    return kept;
}

/* ---- Looking and going back --------------------------------------------------------------------------------------- */

static bool same_status(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
           a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static int keep_old(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)place;
    if (old_count == MOST_FILES)
        give_up("too many files for", path);
    kept_file *f = &old_files[old_count++];
    *f = (kept_file){.path = strdup(path), .status = *status};
    if (type == FTW_F)
        f->bytes = read_whole(path, &f->size);
    return 0;
}

static kept_file *old_file(const char *path)
{
    for (int i = 0; i < old_count; i++)
        if (strcmp(old_files[i].path, path) == 0)
            return &old_files[i];
    return NULL;
}

static void add_change(const char *path)
{
    if (changed_count == MOST_FILES)
        give_up("too many changes for", path);
    changed_paths[changed_count++] = strdup(path);
}

static int look_at(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)place;
    kept_file *old = old_file(path);
    size_t size = 0;
    if (old)
        old->seen = true;
    if (old && (!old->bytes || same_status(&old->status, status)))
        return 0;
    char *bytes = type == FTW_F ? read_whole(path, &size) : strdup("");
    if (old && size == old->size && memcmp(bytes, old->bytes, size) == 0) {
        old->status = *status;
    } else {
        add_change(path);
        size = without_times(path, bytes, size);
        folder_hash += hash_bytes(hash_bytes(UINT64_C(14695981039346656037), path, strlen(path) + 1), bytes, size);
    }
    free(bytes);
    return 0;
}

/* Reads what is in the current folder before a command runs. */
static void keep_folder(void)
{
    if (nftw(".", keep_old, 20, FTW_PHYS) != 0)
        give_up("cannot list", ".");
}

/* Sets folder_hash, 0 if nothing has changed, and the list of the changes. */
static void look_at_folder(void)
{
    while (changed_count > 0)
        free(changed_paths[--changed_count]);
    folder_hash = 0;
    for (int i = 0; i < old_count; i++)
        old_files[i].seen = false;
    if (nftw(".", look_at, 20, FTW_PHYS | FTW_DEPTH) != 0)
        give_up("cannot list", ".");
    for (int i = 0; i < old_count; i++)
        if (!old_files[i].seen) {
            add_change(old_files[i].path);
            folder_hash += hash_bytes(1, old_files[i].path, strlen(old_files[i].path));
        }
}

/* Undoes the changes of the last look. */
static void restore_folder(void)
{
    for (int i = 0; i < changed_count; i++) {
        const char *path = changed_paths[i];
        kept_file *old = old_file(path);
        if (unlink(path) != 0 && rmdir(path) != 0 && !old)
            give_up("cannot remove", path);
        const int to = old ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
        if (old && (write(to, old->bytes, old->size) != (ssize_t)old->size || fstat(to, &old->status) != 0))
            give_up("cannot restore", path);
        if (to >= 0)
            close(to);
    }
}

#endif
