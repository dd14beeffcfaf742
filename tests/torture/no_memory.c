/* Preloaded into a command: lets one allocation fail, as if memory had run out, or that one and all after it.
 *
 * NO_MEMORY_AT=N makes the N-th allocation since the start of main fail, NO_MEMORY_REST=1 all later ones, too. Only in the
 * process itself: programs that it starts have their memory. NO_MEMORY_COUNT=FILE receives how many there were. A process
 * that crashes prints the stack. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_long count;
static long failing; /* from 1; 0: none */
static bool rest;
static atomic_bool counting;

static bool fails(void)
{
    if (!counting)
        return false;
    const long number = atomic_fetch_add(&count, 1) + 1;
    if (failing == 0 || number < failing || (number > failing && !rest))
        return false;
    errno = ENOMEM;
    return true;
}

/* ---- The functions that allocate; glibc's own names of them stay as they are -------------------------------------- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t number, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
    return fails() ? NULL : __libc_calloc(number, size);
}

void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size)
{
    return fails() ? NULL : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size)
{
    void *memory = fails() ? NULL : __libc_memalign(alignment, size);
    if (!memory)
        return ENOMEM;
    *result = memory;
    return 0;
}

/* ---- Begin and end ------------------------------------------------------------------------------------------------ */

static void show_stack(int number)
{
    void *frame[50];
    counting = false;
    backtrace_symbols_fd(frame, backtrace(frame, 50), STDERR_FILENO);
    signal(number, SIG_DFL);
    raise(number);
}

typedef int main_function(int argc, char **argv, char **environment);
static main_function *real_main;

static int counted_main(int argc, char **argv, char **environment)
{
    static const int crashes[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
    void *frame[1];
    backtrace(frame, 1); /* it allocates when it is called first */
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        signal(crashes[i], show_stack);
    const char *at = getenv("NO_MEMORY_AT");
    failing = at ? atol(at) : 0;
    rest = getenv("NO_MEMORY_REST");
    unsetenv("NO_MEMORY_AT");
    counting = true;
    return real_main(argc, argv, environment);
}

/* Counting starts with main: before it run the initialisers of libraries, which are not ours. */
int __libc_start_main(main_function *function, int argc, char **argv, void (*first)(void), void (*last)(void),
                      void (*unload)(void), void *stack)
{
    __typeof__(&__libc_start_main) next = (__typeof__(&__libc_start_main))dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = function;
    return next(counted_main, argc, argv, first, last, unload, stack);
}

__attribute__((destructor)) static void report(void)
{
    counting = false;
    const char *path = getenv("NO_MEMORY_COUNT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, "%ld\n", (long)count);
        fclose(file);
    }
}
