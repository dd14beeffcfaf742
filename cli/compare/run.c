/* The runs of attend compare. Each is a sequence of steps, and a step is one child process: this program with arguments
 * that could be typed. A finished step is recorded beside its files, so that a later call runs only what is missing. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "compare/step.h"
#include "program.h"

/* ---- Children ------------------------------------------------------------------------------------------------- */

static bool stop; /* a signal arrived, or an error occurred: nothing new is started */

/* The signals that are blocked and waited for, so that none is lost between a check and a wait. */
static sigset_t waited_for(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (!program_ignores(SIGHUP)) /* as under nohup */
        sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    return set;
}

typedef struct job {
    compare_run *run; /* NULL: idle */
    int which;
    step step;
    at_writer *output; /* what the step prints; NULL: the step has no output file */
    pid_t pid;
    double started;
} job;

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool move_to(int wanted, const char *path, int flags)
{
    int file = open(path, flags, 0666);
    return file >= 0 && dup2(file, wanted) >= 0 && close(file) == 0;
}

/* In the child. It has its own process group, so that Ctrl-C reaches it only through the parent; if the parent is killed,
 * it is terminated, and saves. */
static void become(const job *j, char **words, pid_t parent)
{
    const step *s = &j->step;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    unlink(s->said); /* O_EXCL: never through a link */
    if (getppid() == parent && move_to(STDERR_FILENO, s->said, O_WRONLY | O_CREAT | O_EXCL) &&
        move_to(STDIN_FILENO, "/dev/null", O_RDONLY) &&
        (j->output ? dup2(at_writer_file(j->output), STDOUT_FILENO) >= 0
                   : move_to(STDOUT_FILENO, "/dev/null", O_WRONLY)))
        execv("/proc/self/exe", words);
    dprintf(STDERR_FILENO, "attend: cannot start '%s': %s\n", s->word[0], strerror(errno));
    _exit(127);
}

static bool start(job *j, at_error *error)
{
    char *words[MOST_LINE_WORDS + 2] = {"attend"};
    for (int i = 0; i < j->step.count; i++)
        words[i + 1] = (char *)j->step.word[i];
    j->output = j->step.output[0] ? at_writer_open(j->step.output, error) : NULL;
    if (error->code != AT_OK)
        return false;
    fflush(NULL);
    pid_t parent = getpid();
    j->started = seconds_now();
    j->pid = fork();
    if (j->pid == 0)
        become(j, words, parent);
    if (j->pid > 0)
        return true;
    fail(error, AT_FAILED, "cannot start a run: %s", strerror(errno));
    at_writer_cancel(j->output);
    return false;
}

/* Keeps what the step printed if it succeeded. */
static bool keep_output(job *j, bool good, at_error *error)
{
    at_writer *output = j->output;
    j->output = NULL;
    if (good)
        return !output || at_writer_commit(output, error);
    at_writer_cancel(output);
    return true;
}

/* The last error message of a child. */
static void read_why(const step *s, int status, char *why, size_t size)
{
    char *text = NULL;
    at_error unread = {0};
    why[0] = 0;
    if (WIFSIGNALED(status))
        snprintf(why, size, "%s was ended by signal %d (%s)", s->word[0], WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if ((text = text_of_file(s->said, &unread)))
        for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
            if (strncmp(line, "attend: ", 8) == 0)
                snprintf(why, size, "%s", line + 8);
    if (!why[0])
        snprintf(why, size, "%s exits with %d; '%.300s' may have the reason", s->word[0], WEXITSTATUS(status), s->said);
    free(text);
}

/* ---- Ends ----------------------------------------------------------------------------------------------------- */

/* Removes what only resuming needs. */
static void tidy(const compare_run *run)
{
    static const char *const endings[] = {".state", ".state.previous", ".last", ".previous"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        char path[PATH];
        snprintf(path, sizeof path, "%s/model%s", run->folder, endings[i]);
        unlink(path);
    }
}

/* A model whose training is not recorded, and which cannot be continued: it is trained again. */
static void remove_unrecorded(const step *s)
{
    char state[PATH + 10];
    snprintf(state, sizeof state, "%s.state", s->model);
    if (access(state, F_OK) != 0 && errno == ENOENT)
        unlink(s->model);
}

/* Whether a training was refused because its settings cannot be combined, which is bad usage; with bad data it fails. Only
 * a cell of a product may be impossible: a row was written on purpose. */
static bool is_impossible(const compare_spec *spec, const job *j, int status)
{
    return j->which == TRAIN_STEP && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_USAGE && spec->axis_count > 0 &&
           spec->axis[spec->axis_count - 1].key;
}

/* After the end of a child. Returns whether the run continues with its next step. */
static bool finish_step(const compare_table *table, job *j, int status, const struct rusage *usage, at_error *error)
{
    compare_run *run = j->run;
    char why[500];
    bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!keep_output(j, good, error))
        return false;
    if (!good && stop)
        return false;
    if (!good)
        read_why(&j->step, status, why, sizeof why);
    /* A model without attention has no alignment, which is not a failure. */
    bool none = !good && j->which == ALIGN_STEP && WIFEXITED(status) && strstr(why, "no attention");
    if (good || none) {
        if (!step_record(run, j->which, &j->step, seconds_now() - j->started, usage->ru_maxrss, none ? why : NULL,
                         error))
            return false;
        j->which = step_next(table, run, &j->step, error);
        return j->which < STEPS;
    }
    bool refused = is_impossible(table->spec, j, status);
    run->state = refused ? RUN_REFUSED : RUN_FAILED;
    snprintf(run->why, sizeof run->why, "%s", why);
    if (refused) { /* it wrote nothing but its error message */
        unlink(j->step.said);
        rmdir(run->folder);
    }
    return false;
}

static void tell(const compare_table *table, const compare_run *run)
{
    const compare_spec *spec = table->spec;
    int settled = 0;
    for (int i = 0; i < table->run_count; i++)
        settled += table->run[i].state != RUN_WAITING;
    fprintf(stderr, "[%d/%d] ", settled, table->run_count);
    for (int a = 0; a < spec->axis_count; a++)
        fprintf(stderr, "%s, ", compare_value(spec, run->cell, a));
    fprintf(stderr, "seed %lld: ", (long long)run->seed);
    if (run->state == RUN_DONE)
        fprintf(stderr, "%s %.2f, %.1f s\n", table->measure[0].metric, run->value[0], run->seconds);
    else
        fprintf(stderr, "%s: %s\n", run->state == RUN_REFUSED ? "not possible" : "failed", run->why);
}

static void finish_run(compare_table *table, compare_run *run)
{
    at_error error = {0};
    if (run->state == RUN_WAITING && compare_measure_run(table, run, &error)) {
        run->state = RUN_DONE;
        tidy(run);
    } else if (run->state == RUN_WAITING) {
        run->state = RUN_FAILED;
        snprintf(run->why, sizeof run->why, "%s", error.text);
    }
}

/* ---- All of them ---------------------------------------------------------------------------------------------- */

/* The next run with a step to run; NULL if there is none. Finished ones are measured. */
static compare_run *next_run(compare_table *table, int *next, job *j, at_error *error)
{
    while (*next < table->run_count) {
        compare_run *run = &table->run[(*next)++];
        j->which = step_next(table, run, &j->step, error);
        if (j->which < STEPS || error->code != AT_OK)
            return j->which < STEPS ? run : NULL;
        finish_run(table, run);
    }
    return NULL;
}

/* A cell that is impossible with one seed is impossible with all. */
static bool is_refused(compare_table *table, compare_run *run)
{
    for (int i = run->cell; i < table->run_count; i += table->spec->cell_count)
        if (table->run[i].state == RUN_REFUSED) {
            run->state = RUN_REFUSED;
            memcpy(run->why, table->run[i].why, sizeof run->why);
        }
    return run->state == RUN_REFUSED;
}

/* Starts the job's step; a job whose step could not be started is idle. */
static bool begin(job *j, const compare_orders *orders, at_error *error)
{
    bool good = mkdir(j->run->folder, 0777) == 0 || errno == EEXIST;
    if (!good)
        fail(error, AT_FILE, "cannot create the directory '%s': %s", j->run->folder, strerror(errno));
    if (j->which == TRAIN_STEP)
        remove_unrecorded(&j->step);
    char *typed = orders->verbose ? step_typed(&j->step) : NULL;
    if (typed)
        fprintf(stderr, "%s\n", typed);
    free(typed);
    good = good && start(j, error);
    if (!good)
        j->run = NULL;
    return good;
}

static void end_jobs(job *jobs, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (jobs[i].run)
            kill(jobs[i].pid, SIGTERM);
}

/* Waits for a child. A signal that arrives meanwhile is passed on to the children: the first makes them save and end, a
 * second one ends them at once. */
static bool wait_one(job *jobs, int64_t count, int *status, struct rusage *usage, job **ended)
{
    const sigset_t set = waited_for();
    for (;;) {
        pid_t pid = wait4(-1, status, WNOHANG, usage);
        for (int64_t i = 0; pid > 0 && i < count; i++)
            if (jobs[i].run && jobs[i].pid == pid) {
                *ended = &jobs[i];
                return true;
            }
        if (pid < 0)
            return false;
        int number_of = pid == 0 ? sigwaitinfo(&set, NULL) : SIGCHLD;
        if (number_of == SIGINT || number_of == SIGTERM || number_of == SIGHUP) {
            stop = true;
            end_jobs(jobs, count);
        }
    }
}

static bool run_jobs(compare_table *table, const compare_orders *orders, job *jobs, at_error *error)
{
    int next = 0, busy = 0;
    for (;;) {
        for (int64_t i = 0; i < orders->jobs && !stop && error->code == AT_OK; i++) {
            job *j = &jobs[i];
            while (!j->run && !stop && error->code == AT_OK && (j->run = next_run(table, &next, j, error))) {
                if (is_refused(table, j->run)) {
                    j->run = NULL;
                    continue;
                }
                busy += begin(j, orders, error);
            }
            if (!j->run)
                break;
        }
        if (busy == 0)
            return error->code == AT_OK;
        int status = 0;
        struct rusage usage = {0};
        job *j = NULL;
        if (error->code != AT_OK && !stop) {
            stop = true;
            end_jobs(jobs, orders->jobs);
        }
        if (!wait_one(jobs, orders->jobs, &status, &usage, &j))
            return fail(error, AT_FAILED, "cannot wait for the runs: %s", strerror(errno));
        bool more = finish_step(table, j, status, &usage, error);
        if (more && !stop && begin(j, orders, error))
            continue;
        if (!more && error->code == AT_OK && !(stop && j->run->state == RUN_WAITING)) {
            finish_run(table, j->run);
            if (!orders->quiet)
                tell(table, j->run);
        }
        j->run = NULL;
        busy--;
    }
}

/* The name of its directory begins with its values and ends with a hash of its settings and its data, so that a run with
 * other settings has another directory. */
static bool make_run(compare_table *table, compare_run *run, const char *folder, at_error *error)
{
    enum { READABLE = 60 };
    step s = {0};
    char name[READABLE + 1] = "", identity[NUMBER];
    step_train_words(table, run, &s);
    for (int a = 0; a < table->spec->axis_count; a++) {
        size_t used = strlen(name);
        snprintf(name + used, sizeof name - used, "%s-", compare_value(table->spec, run->cell, a));
    }
    for (char *at = name; *at; at++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_+", *at))
            *at = '_';
    if (asprintf(&run->folder, "%s/%sseed-%lld-%.10s", folder, name, (long long)run->seed,
                 step_identity(&s, identity)) < 0)
        run->folder = NULL;
    else if (step_make(table, run, TRAIN_STEP, &s))
        run->line = step_typed(&s);
    return run->line || fail(error, AT_MEMORY, "out of memory for the runs");
}

int compare_lock(const char *folder, at_error *error)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/lock", folder);
    int file = open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0666);
    if (file < 0)
        fail(error, AT_FILE, "cannot write '%s': %s", path, strerror(errno));
    for (int tries = 0; file >= 0 && flock(file, LOCK_EX | LOCK_NB) != 0; tries++) {
        if (tries == 100) {
            close(file);
            fail(error, AT_FILE,
                 "another attend compare is running in '%s'; wait for it, or choose another --directory", folder);
            return -1;
        }
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    return file;
}

static void tell_unused(const compare_spec *spec)
{
    char unused[500];
    compare_unused(spec, unused, sizeof unused);
    if (unused[0])
        fprintf(stderr, "attend: %s has settings without effect: %s\n", spec->path, unused);
}

bool compare_run_all(compare_table *table, const compare_orders *orders, bool *interrupted, at_error *error)
{
    const compare_spec *spec = table->spec;
    table->run_count = spec->seed_count * spec->cell_count;
    table->run = calloc((size_t)table->run_count, sizeof *table->run);
    job *jobs = calloc((size_t)orders->jobs, sizeof *jobs);
    bool good = table->run && jobs ? true : fail(error, AT_MEMORY, "out of memory for the runs");
    for (int i = 0; good && i < table->run_count; i++) {
        compare_run *run = &table->run[i];
        *run = (compare_run){.cell = i % spec->cell_count, .seed = spec->seed[i / spec->cell_count]};
        good = make_run(table, run, orders->folder, error);
    }
    if (good && !orders->quiet)
        tell_unused(spec);
    signal(SIGCHLD, SIG_DFL); /* it may be inherited as ignored, and then the end of a child would not be reported */
    sigset_t set = waited_for(), before;
    sigprocmask(SIG_BLOCK, &set, &before);
    good = good && run_jobs(table, orders, jobs, error);
    sigprocmask(SIG_SETMASK, &before, NULL);
    *interrupted = stop && error->code == AT_OK;
    free(jobs);
    return good;
}

void compare_runs_free(compare_table *table)
{
    for (int i = 0; i < table->run_count && table->run; i++) {
        free(table->run[i].folder);
        free(table->run[i].line);
    }
    free(table->run);
    free(table->p);
}
