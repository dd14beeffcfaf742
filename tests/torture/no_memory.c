/* Preloaded into a command: lets one allocation fail, as if memory had run out, or that one and all after it.
 *
 * NO_MEMORY_COUNT=FILE receives how many there are since the start of main. NO_MEMORY_TURNS="FROM STEP TO" runs main many
 * times, each time in a process of its own that is forked before main begins, and lets the allocations FROM, FROM + STEP and
 * so on fail, one in each; NO_MEMORY_REST=1 all later ones, too. Only in the process itself: programs that it starts have
 * their memory. So has ICU, which crashes without: attend asks whether there is some before it calls ICU, and SECURITY.md
 * says so. The current folder is the same at the start of each. A process that crashes prints the stack.
 *
 * Most runs end like one before: with the same exit code, output and files, and one message that matches NO_MEMORY_REASON if
 * they fail. The first that ends in another way ends the repetition and stays in the folder, to be judged, unless the file
 * ../accepted names its end. ../turn receives
 *   REPORTED SURVIVED ALLOCATION CODE END
 * how many ended like others, with an error and without, and what stays; ALLOCATION is 0 if
 * all have ended. Standard input is the file NO_MEMORY_INPUT, and the output is in ../printed and ../said. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <regex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folder.h"

static atomic_long count;
static long failing; /* from 1; 0: none */
static bool rest;
static atomic_bool counting;

static bool is_icu(const void *caller)
{
    Dl_info where;
    return dladdr(caller, &where) && where.dli_fname && strstr(where.dli_fname, "libicu");
}

static bool fails(const void *caller)
{
    if (!counting)
        return false;
    const long number = atomic_fetch_add(&count, 1) + 1;
    if (failing == 0 || number < failing || (number > failing && !rest) || is_icu(caller))
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
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(number, size);
}

void *realloc(void *old, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size)
{
    void *memory = fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
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

/* In the process that runs main for one allocation. */
static void begin(long allocation)
{
    static const int crashes[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
    enum { SECONDS = 120, NEW = O_WRONLY | O_CREAT | O_TRUNC };
    if (dup2(open(getenv("NO_MEMORY_INPUT"), O_RDONLY | O_CLOEXEC), STDIN_FILENO) < 0 ||
        dup2(open("../printed", NEW | O_CLOEXEC, 0666), STDOUT_FILENO) < 0 ||
        dup2(open("../said", NEW | O_CLOEXEC, 0666), STDERR_FILENO) < 0)
        give_up("cannot redirect", "the output");
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        signal(crashes[i], show_stack);
    alarm(SECONDS);
    failing = allocation;
    rest = getenv("NO_MEMORY_REST");
    unsetenv("NO_MEMORY_TURNS");
    counting = true;
}

/* The last line of ../said is the only message of an error, and matches. */
static bool one_message(const regex_t *reason)
{
    size_t size;
    char *said = read_whole("../said", &size), *line = said, *next;
    int messages = 0;
    if (size > 0 && said[size - 1] == '\n')
        said[size - 1] = '\0';
    for (; (next = strchr(line, '\n')); line = next + 1)
        messages += strncmp(line, "attend: ", 8) == 0;
    const bool good = messages == 0 && strncmp(line, "attend: ", 8) == 0 && regexec(reason, line, 0, NULL, 0) == 0;
    free(said);
    return good;
}

/* Whether the file ../accepted has a line with it. */
static bool is_accepted(const char *end)
{
    char line[100];
    FILE *list = fopen("../accepted", "re");
    bool found = false;
    while (list && !found && fgets(line, sizeof line, list))
        found = strncmp(line, end, strlen(end)) == 0;
    if (list)
        fclose(list);
    return found;
}

static int exit_code(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Returns in the processes that run main. */
static void repeat(const char *turns)
{
    long from, step, to, reported = 0, survived = 0;
    regex_t reason;
    const int turn = open("../turn", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (sscanf(turns, "%ld %ld %ld", &from, &step, &to) != 3 || turn < 0 ||
        regcomp(&reason, getenv("NO_MEMORY_REASON"), REG_EXTENDED | REG_NOSUB) != 0)
        give_up("cannot repeat", turns);
    ignore_digits = getenv("NO_MEMORY_LOOSE");
    keep_folder();
    for (long allocation = from; allocation <= to; allocation += step) {
        int status;
        const pid_t process = fork();
        if (process == 0) {
            begin(allocation);
            return;
        }
        if (process < 0 || waitpid(process, &status, 0) != process)
            give_up("cannot start", "a process");
        const int code = exit_code(status);
        size_t size;
        char *printed = read_whole("../printed", &size), end[100];
        look_at_folder();
        snprintf(end, sizeof end, "%d-%016llx-%016llx", code, (unsigned long long)hash_bytes(1, printed, size),
                 (unsigned long long)folder_hash);
        free(printed);
        if (code > 1 || (code == 1 && !one_message(&reason)) || !is_accepted(end)) {
            dprintf(turn, "%ld %ld %ld %d %s\n", reported, survived, allocation, code, end);
            _exit(0);
        }
        reported += code == 1;
        survived += code == 0;
        restore_folder();
    }
    dprintf(turn, "%ld %ld 0 0 -\n", reported, survived);
    _exit(0);
}

static int counted_main(int argc, char **argv, char **environment)
{
    void *frame[1];
    backtrace(frame, 1); /* it allocates when it is called first */
    const char *turns = getenv("NO_MEMORY_TURNS");
    if (turns)
        repeat(turns);
    else
        counting = getenv("NO_MEMORY_COUNT");
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
