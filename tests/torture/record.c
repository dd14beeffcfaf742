/* record LOG FOLDER COMMAND...: runs the command and writes to LOG what it and its processes do to the files of FOLDER, in
 * order, for replay.c. The exit code is the command's.
 *
 * LOG begins with the files and folders that are there. Its entries are those of power.h. A call that changes files in a
 * way that is not known here ends the recording, so that nothing is left out in silence. So does one that reads a temporary
 * file: replay.c takes it that the bytes of those do not matter. */
#include "trace.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "power.h"

static FILE *record_file;
static char root[PATH_MAX];

static void die(const char *what, const char *path)
{
    fprintf(stderr, "record: %s '%s'\n", what, path);
    exit(2);
}

static void put(char kind, ino_t file, int64_t offset, int64_t size, const char *path, const char *other)
{
    const entry e = {.kind = kind,
                     .file = (uint64_t)file,
                     .offset = offset,
                     .size = size,
                     .path_size = path ? (uint32_t)strlen(path) : 0,
                     .other_size = other ? (uint32_t)strlen(other) : 0};
    fwrite(&e, sizeof e, 1, record_file);
    fwrite(path, 1, e.path_size, record_file);
    fwrite(other, 1, e.other_size, record_file);
}

/* ---- Names ---------------------------------------------------------------------------------------------------- */

/* The path below the folder, "" for the folder itself; NULL if it is elsewhere. */
static const char *below(const char *path)
{
    const size_t length = strlen(root);
    if (strncmp(path, root, length) != 0 || (path[length] != '/' && path[length] != '\0'))
        return NULL;
    return path[length] == '/' ? path + length + 1 : path + length;
}

/* What a descriptor of the command points to; NULL if it is not below the folder. */
static const char *path_of_file(const call *c, int file, struct stat *status)
{
    static char path[PATH_MAX];
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/fd/%d", c->thread, file);
    const ssize_t length = readlink(name, path, sizeof path - 1);
    if (length < 0 || stat(name, status) != 0)
        return NULL;
    path[length] = '\0';
    return below(path);
}

/* The path that a call names: its folder is resolved, its last part is not. NULL if it is not below the folder. */
static const char *path_of_name(const call *c, int folder, uint64_t address, char path[PATH_MAX])
{
    char name[PATH_MAX], from[2 * PATH_MAX + 64], parent[PATH_MAX];
    read_text(c->thread, address, name, sizeof name);
    if (name[0] == '/')
        snprintf(from, sizeof from, "%s", name);
    else if (folder == AT_FDCWD)
        snprintf(from, sizeof from, "/proc/%d/cwd/%s", c->thread, name);
    else
        snprintf(from, sizeof from, "/proc/%d/fd/%d/%s", c->thread, folder, name);
    for (size_t end = strlen(from); end > 1 && from[end - 1] == '/';)
        from[--end] = '\0';
    char *last = strrchr(from, '/');
    *last++ = '\0';
    if (!realpath(from, parent) || strlen(parent) + strlen(last) + 2 > PATH_MAX)
        return NULL;
    strcpy(path, parent);
    strcat(strcat(path, "/"), last);
    return below(path);
}

/* ---- Calls ---------------------------------------------------------------------------------------------------- */

static void record_open(const call *c, int flags)
{
    struct stat status;
    const char *path = path_of_file(c, (int)result_of(c), &status);
    if (!path || S_ISDIR(status.st_mode))
        return;
    if (flags & O_CREAT)
        put(CREATE, status.st_ino, 0, 0, path, NULL);
    if (flags & O_TRUNC)
        put(TRUNCATE, status.st_ino, 0, 0, NULL, NULL);
}

/* The place after a write is where it ended, also in a file that is only appended to. */
static int64_t position_of(const call *c, int file)
{
    char name[64];
    long long position = -1;
    snprintf(name, sizeof name, "/proc/%d/fdinfo/%d", c->thread, file);
    FILE *info = fopen(name, "r");
    if (!info || fscanf(info, "pos: %lld", &position) != 1)
        die("no position of", name);
    fclose(info);
    return position;
}

static void record_write(const call *c, bool placed)
{
    struct stat status;
    const int file = (int)argument(c, 0);
    const int64_t size = result_of(c);
    if (!path_of_file(c, file, &status))
        return;
    char *bytes = malloc((size_t)size + 1);
    struct iovec here = {bytes, (size_t)size}, there = {(void *)(uintptr_t)argument(c, 1), (size_t)size};
    if (!bytes || (size > 0 && process_vm_readv(c->thread, &here, 1, &there, 1, 0) != size))
        die("cannot read", "what is written");
    put(WRITE, status.st_ino, placed ? (int64_t)argument(c, 3) : position_of(c, file) - size, size, NULL, NULL);
    fwrite(bytes, 1, (size_t)size, record_file);
    free(bytes);
}

static void record_truncate(const call *c)
{
    struct stat status;
    if (path_of_file(c, (int)argument(c, 0), &status))
        put(TRUNCATE, status.st_ino, (int64_t)argument(c, 1), 0, NULL, NULL);
}

static void record_sync(const call *c)
{
    struct stat status;
    const char *path = path_of_file(c, (int)argument(c, 0), &status);
    if (path && S_ISDIR(status.st_mode))
        put(SYNC_FOLDER, 0, 0, 0, path, NULL);
    else if (path)
        put(SYNC, status.st_ino, 0, 0, NULL, NULL);
}

static void record_rename(const call *c, int from_folder, uint64_t from, int to_folder, uint64_t to)
{
    char one[PATH_MAX], other[PATH_MAX];
    const char *old = path_of_name(c, from_folder, from, one), *new = path_of_name(c, to_folder, to, other);
    if (!old && !new)
        return;
    if (!old || !new)
        die("a rename from or to another folder:", other);
    put(RENAME, 0, 0, 0, old, new);
}

static void record_link(const call *c, int folder, uint64_t to)
{
    char path[PATH_MAX];
    struct stat status;
    const char *name = path_of_name(c, folder, to, path);
    if (name && lstat(path, &status) == 0)
        put(CREATE, status.st_ino, 0, 0, name, NULL);
}

static void record_name(const call *c, char kind, int folder, uint64_t address)
{
    char path[PATH_MAX];
    const char *name = path_of_name(c, folder, address, path);
    if (name)
        put(kind, 0, 0, 0, name, NULL);
}

static void record_read(const call *c, int file)
{
    struct stat status;
    const char *path = path_of_file(c, file, &status);
    if (path && is_temporary(path))
        die("reads the temporary file", path);
}

/* Calls that could change a file and are not recorded: none of them may have one below the folder. */
static void refuse(const call *c)
{
    struct stat status;
    char path[PATH_MAX];
    const char *name = NULL;
    switch (c->number) {
    case SYS_mmap:
        record_read(c, (int)argument(c, 4));
        if ((argument(c, 3) & MAP_TYPE) == MAP_SHARED && argument(c, 2) & PROT_WRITE)
            name = path_of_file(c, (int)argument(c, 4), &status);
        break;
    case SYS_writev:
    case SYS_pwritev:
    case SYS_pwritev2:
    case SYS_fallocate:
        name = path_of_file(c, (int)argument(c, 0), &status);
        break;
    case SYS_sendfile:
        record_read(c, (int)argument(c, 1));
        name = path_of_file(c, (int)argument(c, 0), &status);
        break;
    case SYS_copy_file_range:
    case SYS_splice:
        record_read(c, (int)argument(c, 0));
        name = path_of_file(c, (int)argument(c, 2), &status);
        break;
    case SYS_truncate:
    case SYS_creat:
        name = path_of_name(c, AT_FDCWD, argument(c, 0), path);
        break;
    case SYS_symlink:
        name = path_of_name(c, AT_FDCWD, argument(c, 1), path);
        break;
    case SYS_symlinkat:
        name = path_of_name(c, (int)argument(c, 1), argument(c, 2), path);
        break;
    }
    if (name)
        die("an unknown kind of change of", name);
}

static bool end(call *c, void *context)
{
    (void)context;
    const int here = AT_FDCWD;
    if (result_of(c) < 0)
        return false;
    switch (c->number) {
    case SYS_open:
        record_open(c, (int)argument(c, 1));
        break;
    case SYS_openat:
        record_open(c, (int)argument(c, 2));
        break;
    case SYS_write:
    case SYS_pwrite64:
        record_write(c, c->number == SYS_pwrite64);
        break;
    case SYS_read:
    case SYS_readv:
    case SYS_pread64:
    case SYS_preadv:
        record_read(c, (int)argument(c, 0));
        break;
    case SYS_ftruncate:
        record_truncate(c);
        break;
    case SYS_fsync:
    case SYS_fdatasync:
        record_sync(c);
        break;
    case SYS_rename:
        record_rename(c, here, argument(c, 0), here, argument(c, 1));
        break;
    case SYS_renameat:
    case SYS_renameat2:
        record_rename(c, (int)argument(c, 0), argument(c, 1), (int)argument(c, 2), argument(c, 3));
        break;
    case SYS_link:
        record_link(c, here, argument(c, 1));
        break;
    case SYS_linkat:
        record_link(c, (int)argument(c, 2), argument(c, 3));
        break;
    case SYS_unlink:
    case SYS_rmdir:
        record_name(c, REMOVE, here, argument(c, 0));
        break;
    case SYS_unlinkat:
        record_name(c, REMOVE, (int)argument(c, 0), argument(c, 1));
        break;
    case SYS_mkdir:
        record_name(c, FOLDER, here, argument(c, 0));
        break;
    case SYS_mkdirat:
        record_name(c, FOLDER, (int)argument(c, 0), argument(c, 1));
        break;
    default:
        refuse(c);
    }
    return false;
}

/* ---- What is there -------------------------------------------------------------------------------------------- */

static int record_old(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)place;
    const char *name = below(path);
    if (type == FTW_D) {
        if (*name)
            put(FOLDER, 0, 0, 0, name, NULL);
        return 0;
    }
    char *bytes = malloc((size_t)status->st_size + 1);
    FILE *file = fopen(path, "rb");
    if (type != FTW_F || !bytes || !file || fread(bytes, 1, (size_t)status->st_size, file) != (size_t)status->st_size)
        die("cannot read", path);
    fclose(file);
    put(CREATE, status->st_ino, 0, 0, name, NULL);
    put(WRITE, status->st_ino, 0, status->st_size, NULL, NULL);
    fwrite(bytes, 1, (size_t)status->st_size, record_file);
    free(bytes);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 4 || !realpath(argv[2], root) || !(record_file = fopen(argv[1], "wbe"))) {
        fprintf(stderr, "usage: record LOG FOLDER COMMAND...\n");
        return 2;
    }
    if (nftw(root, record_old, 20, FTW_PHYS) != 0)
        die("cannot list", root);
    put(START, 0, 0, 0, NULL, NULL);
    const int code = trace(&(tracer){NULL, end, NULL, true}, argv + 3);
    if (fclose(record_file) != 0)
        die("cannot write", argv[1]);
    return code;
}
