#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "help.h"

void program_hold_streams(void)
{
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) < 0 && errno == EBADF)
            open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY); /* the lowest free number, which is this */
}

bool program_ignores(int signal)
{
    struct sigaction action = {0};
    return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

void program_version(void)
{
    printf("attend %s\n", at_version());
}

/* The library would ignore a name that it does not have. */
static bool choose_kernels(at_error *error)
{
    const char *name = getenv("ATTEND_ISA");
    at_error why = {0};
    return !name || !*name || at_kernels_set(name, &why) || fail(error, why.code, "ATTEND_ISA: %s", why.text);
}

/* The value of the option that the command's other options depend on; NULL: it was not given. */
static const char *variant_of(const cli_command *command, const void *options)
{
    const at_setting *option = command->variants ? option_named(command, command->variants->option) : NULL;
    return option ? *(const char *const *)((const char *)options + option->offset) : NULL;
}

/* For --verbose: what the command took. */
static void tell_costs(const char *name, const struct timespec *begin)
{
    struct timespec end;
    struct rusage usage = {0};
    clock_gettime(CLOCK_MONOTONIC, &end);
    getrusage(RUSAGE_SELF, &usage);
    fprintf(stderr, "attend %s: %.3f s, %.3f s of processor time, peak memory %.1f MB, %d thread%s, %s kernels\n", name,
            (double)(end.tv_sec - begin->tv_sec) + 1e-9 * (double)(end.tv_nsec - begin->tv_nsec),
            (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec),
            (double)usage.ru_maxrss / 1024, at_threads(), at_threads() == 1 ? "" : "s", at_kernels_name());
}

bool program_alone(const char *what, at_error *error)
{
    return at_processes() == 1 ||
           fail(error, AT_USAGE,
                "attend %s runs in one process, and mpirun or srun started %d together; start it "
                "without them",
                what, at_processes());
}

int program_run(const cli_command *command, int argc, char **argv)
{
    at_error error = {0};
    int first_word = 0, code;
    cli_common *options = malloc(command->size);
    if (!options) {
        fail(&error, AT_MEMORY, "out of memory for the options");
        return report(&error);
    }
    if (!options_parse(command, argc, argv, options, &first_word, &error)) {
        if (command->together)
            at_processes_agree(&error);
        code = report(&error);
    } else if (options->help) {
        help_command(command, variant_of(command, options), first_word < argc ? argv[first_word] : NULL, &error);
        code = report(&error);
    } else if (options->version) {
        program_version();
        code = EXIT_DONE;
    } else if (!choose_kernels(&error) || !(command->together || program_alone(command->name, &error))) {
        code = report(&error);
    } else {
        struct timespec begin;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        at_threads_set(options->threads == UNSET ? 0 : (int)options->threads);
        code = command->run(options, argc - first_word, argv + first_word);
        if (options->verbose && !options->quiet)
            tell_costs(command->name, &begin);
    }
    options_free(command, options);
    free(options);
    return code;
}

/* The path of `name` in the folder of the running program; false if it cannot be known or is too long. */
static bool beside_this_program(const char *name, char *path, size_t size)
{
    const ssize_t length = readlink("/proc/self/exe", path, size - 1);
    if (length <= 0)
        return false;
    path[length] = 0;
    char *file = strrchr(path, '/') + 1;
    const size_t room = size - (size_t)(file - path);
    return (size_t)snprintf(file, room, "%s", name) < room;
}

int program_start(const cli_command *command, char **argv)
{
    at_error error = {0};
    char name[100], path[PATH_MAX];
    snprintf(name, sizeof name, "attend-%s", command->name);
    argv[0] = name;
    if (beside_this_program(name, path, sizeof path) && access(path, X_OK) == 0)
        execv(path, argv);
    else
        execvp(name, argv);
    if (errno == ENOENT || errno == ENOTDIR || errno == EACCES)
        fail(&error, AT_FILE,
             "attend %s is the program %s, which is neither beside attend nor in PATH; `make install` in attend's "
             "source installs it (built unless cmake was called with -DAT_BENCH=OFF)",
             command->name, name);
    else
        fail(&error, AT_FILE, "cannot start %s: %s", name, strerror(errno));
    return report(&error);
}

int program_finish(int code)
{
    at_error error = {0};
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fail(&error, AT_FILE, "cannot write to the standard output");
        return code ? code : report(&error);
    }
    return code;
}
