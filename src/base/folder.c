#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/files.h"
#include "base/files_internal.h"

struct at_folder {
    char *path;      /* as the caller wrote it, for error messages */
    char *target;    /* without slashes at its end; what a link there points to */
    char *temporary; /* where the files are until then */
    int file;        /* of the temporary folder, locked: one whose lock is free belongs to nobody */
};

static bool is_entry(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* Removes a folder of files without folders in it. It allocates nothing, so that it works without memory, too. */
static void remove_folder(int parent, const char *name)
{
    _Alignas(struct dirent64) char entries[4096];
    const int file = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    for (ssize_t got; file >= 0 && (got = getdents64(file, entries, sizeof entries)) > 0;)
        for (ssize_t at = 0; at < got;) {
            const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                unlinkat(file, entry->d_name, 0);
            at += entry->d_reclen;
        }
    if (file >= 0)
        close(file);
    unlinkat(parent, name, AT_REMOVEDIR);
}

static void remove_abandoned(const char *target, const char *prefix)
{
    const size_t length = at_directory_length(target);
    char *path = length == 0 ? strdup(".") : strndup(target, length);
    DIR *directory = path ? opendir(path) : NULL;
    for (struct dirent *entry; directory && (entry = readdir(directory)) != NULL;) {
        if (!at_temporary_named(entry->d_name, prefix))
            continue;
        const int file = openat(dirfd(directory), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0)
            remove_folder(dirfd(directory), entry->d_name);
        if (file >= 0)
            close(file);
    }
    if (directory)
        closedir(directory);
    free(path);
}

static void release(at_folder *folder)
{
    if (folder->file >= 0)
        close(folder->file);
    free(folder->path);
    free(folder->target);
    free(folder->temporary);
    free(folder);
}

/* Only what is not there, or an empty folder. */
static bool is_free(const at_folder *folder, at_error *error)
{
    DIR *directory = opendir(folder->target);
    bool empty = true;
    if (!directory && errno == ENOENT)
        return true;
    if (!directory && errno == ENOTDIR)
        return at_fail(error, AT_FILE, "cannot write the folder '%s': there is a file of that name", folder->path);
    if (!directory)
        return at_file_fail(error, "write", folder->path, errno);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        empty = empty && !is_entry(entry);
    closedir(directory);
    return empty ||
           at_fail(error, AT_FILE, "cannot write the folder '%s': it has files in it; name a new one", folder->path);
}

static bool create_temporary(at_folder *folder, at_error *error)
{
    char prefix[AT_TEMPORARY];
    const size_t room = at_directory_length(folder->target) + AT_TEMPORARY_ROOM;
    char *name = malloc(room);
    if (!name)
        return at_no_memory(error, "writing '%s'", folder->path);
    at_temporary_prefix(folder->target, prefix);
    remove_abandoned(folder->target, prefix);
    int made;
    do {
        at_temporary_next(folder->target, prefix, name, room);
    } while ((made = mkdir(name, 0777)) != 0 && errno == EEXIST);
    folder->temporary = made == 0 ? name : NULL;
    folder->file = made == 0 ? open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (folder->file < 0)
        at_file_fail(error, "write", folder->path, errno);
    else
        flock(folder->file, LOCK_EX | LOCK_NB); /* without locks nothing is removed as abandoned */
    if (made != 0)
        free(name);
    return folder->file >= 0;
}

static char *target_of(const char *path)
{
    char *target = realpath(path, NULL);
    if (target || !(target = strdup(path)))
        return target;
    for (size_t length = strlen(target); length > 1 && target[length - 1] == '/'; length--)
        target[length - 1] = '\0';
    return target;
}

at_folder *at_folder_open(const char *path, at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    at_folder *folder = calloc(1, sizeof *folder);
    if (!folder) {
        at_no_memory(error, "writing '%s'", path);
        return NULL;
    }
    *folder = (at_folder){.path = strdup(path), .target = target_of(path), .file = -1};
    if (!folder->path || !folder->target)
        at_no_memory(error, "writing '%s'", path);
    else if (!*path)
        at_fail(error, AT_FILE, "cannot write the folder '': it has no name");
    else if (is_free(folder, error) && create_temporary(folder, error))
        return folder;
    at_folder_cancel(folder);
    return NULL;
}

char *at_folder_path(const at_folder *folder, const char *name, at_error *error)
{
    at_buffer path = {0};
    at_buffer_print(&path, "%s/%s", folder->temporary, name);
    if (!path.failed)
        return path.bytes;
    at_buffer_free(&path);
    at_no_memory(error, "writing '%s'", folder->path);
    return NULL;
}

bool at_folder_add(at_folder *folder, const char *name, const void *bytes, size_t size, at_error *error)
{
    char *path = error->code == AT_OK ? at_folder_path(folder, name, error) : NULL;
    const bool done = path && at_file_write(path, bytes, size, error);
    free(path);
    return done;
}

/* The name that the caller knows, where a message has that of the temporary folder. */
static void name_folder(const at_folder *folder, at_error *error)
{
    const char *found = strstr(error->text, folder->temporary);
    at_buffer text = {0};
    if (!found)
        return;
    at_buffer_print(&text, "%.*s%s%s", (int)(found - error->text), error->text, folder->path,
                    found + strlen(folder->temporary));
    if (!text.failed)
        snprintf(error->text, sizeof error->text, "%s", text.bytes);
    at_buffer_free(&text);
}

bool at_folder_commit(at_folder *folder, at_error *error)
{
    if (error->code == AT_OK && fsync(folder->file) != 0 && errno != EINVAL && errno != ENOTSUP)
        at_file_fail(error, "write", folder->path, errno);
    if (error->code == AT_OK && rename(folder->temporary, folder->target) != 0)
        at_file_fail(error, "write", folder->path, errno);
    if (error->code != AT_OK) {
        name_folder(folder, error);
        at_folder_cancel(folder);
        return false;
    }
    const bool done = at_directory_sync(folder->target, folder->path, error);
    release(folder);
    return done;
}

void at_folder_cancel(at_folder *folder)
{
    if (!folder)
        return;
    if (folder->temporary)
        remove_folder(AT_FDCWD, folder->temporary);
    release(folder);
}
