/* Preloaded into a command: kills the process, as kill -9 would, just before its DIE_AT-th call that opens, changes, names
 * or syncs a file. A killing at a random time seldom falls between a write, its sync and its rename; this one always
 * does. With DIE_COUNT=FILE each process adds a line to FILE at its end: how many such calls it made. With DIE_PAUSE=N
 * it waits up to N microseconds before each of them, so that processes meet in between. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

static atomic_long calls;

static long number_in(const char *name)
{
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

static void count_call(void)
{
    long call = atomic_fetch_add(&calls, 1) + 1, pause = number_in("DIE_PAUSE");
    if (call == number_in("DIE_AT"))
        kill(getpid(), SIGKILL);
    if (pause > 0) {
        unsigned seed = (unsigned)call * 7919 + (unsigned)getpid();
        usleep((unsigned)(rand_r(&seed) % pause));
    }
}

__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("DIE_COUNT");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "%ld\n", (long)calls);
        fclose(file);
    }
}

/* The next definition of a function, which is the C library's. */
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define COUNTED(result, name, parameters, arguments)                                                                   \
    result name parameters                                                                                             \
    {                                                                                                                  \
        count_call();                                                                                                  \
        return NEXT(name) arguments;                                                                                   \
    }

COUNTED(ssize_t, write, (int file, const void *bytes, size_t size), (file, bytes, size))
COUNTED(int, fsync, (int file), (file))
COUNTED(int, close, (int file), (file))
COUNTED(int, flock, (int file, int operation), (file, operation))
COUNTED(int, ftruncate, (int file, off_t size), (file, size))
COUNTED(int, rename, (const char *from, const char *to), (from, to))
COUNTED(int, unlink, (const char *path), (path))
COUNTED(int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags))
COUNTED(int, linkat, (int folder, const char *from, int other, const char *to, int flags),
        (folder, from, other, to, flags))
COUNTED(int, mkdir, (const char *path, mode_t mode), (path, mode))
COUNTED(int, rmdir, (const char *path), (path))

int open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
    va_end(list);
    count_call();
    return NEXT(open)(path, flags, mode);
}
