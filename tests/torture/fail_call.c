/* fail_call CALLS FAULT N COMMAND...: runs the command and lets its N-th system call of a kind fail.
 *
 * CALLS is a kind of the table below, FAULT a name of an error, or `short`: half of the bytes are read or written. With N = 0 none
 * fails; then FAULT is a file that receives how many there were. Calls count from the start of the command's main, which
 * looks at its descriptors first (fcntl), and only those of its own process; what it writes to the standard error output
 * does not count. The exit code is the command's. */
#include "trace.h"

static const struct {
    const char *name;
    long numbers[6]; /* 0 after the last; no kind has read, whose number is 0, behind another */
} kinds[] = {
    {"open", {SYS_openat, SYS_open, SYS_creat}},
    {"read", {SYS_read, SYS_pread64, SYS_readv}},
    {"write", {SYS_write, SYS_pwrite64, SYS_writev}},
    {"fsync", {SYS_fsync, SYS_fdatasync}},
    {"close", {SYS_close}},
    {"rename", {SYS_rename, SYS_renameat, SYS_renameat2}},
    {"link", {SYS_link, SYS_linkat, SYS_symlink}},
    {"unlink", {SYS_unlink, SYS_unlinkat, SYS_rmdir}},
    {"truncate", {SYS_ftruncate, SYS_truncate}},
    {"directory", {SYS_mkdir, SYS_mkdirat, SYS_getdents64}},
    {"mode", {SYS_fchmod, SYS_chmod, SYS_fchmodat}},
    {"lock", {SYS_flock}},
    {"look", {SYS_newfstatat, SYS_stat, SYS_lstat, SYS_fstat, SYS_statx, SYS_access}},
    {"seek", {SYS_lseek}},
    {"memory", {SYS_mmap, SYS_mremap}},
    {"start", {SYS_clone3, SYS_clone, SYS_fork, SYS_vfork, SYS_execve}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const struct {
    const char *name;
    int number;
} errors[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO},       {"EMFILE", EMFILE}, {"EINTR", EINTR},
              {"ENOMEM", ENOMEM}, {"EAGAIN", EAGAIN}, {"short", 0}};

typedef struct fault {
    const long *numbers;
    int error;  /* 0: short */
    long at;    /* the call that fails, from 1; 0: none */
    long count; /* calls so far */
    bool started, failing;
} fault;

static bool is_counted(const fault *f, const call *c)
{
    for (int i = 0; i < 6 && (i == 0 || f->numbers[i] != 0); i++)
        if (f->numbers[i] == c->number)
            return c->number != SYS_write || argument(c, 0) != STDERR_FILENO;
    return false;
}

static bool begin(call *c, void *context)
{
    fault *f = context;
    f->started |= c->number == SYS_fcntl;
    if (!f->started || !is_counted(f, c) || ++f->count != f->at)
        return false;
    if (f->error == 0) {
        c->registers.rdx = (c->registers.rdx + 1) / 2;
        return true;
    }
    f->failing = true;
    leave_out(c);
    return true;
}

static bool end(call *c, void *context)
{
    fault *f = context;
    if (!f->failing)
        return false;
    f->failing = false;
    set_result(c, -f->error);
    return true;
}

int main(int argc, char **argv)
{
    fault f = {0};
    for (int i = 0; argc > 4 && i < KINDS; i++)
        if (strcmp(kinds[i].name, argv[1]) == 0)
            f.numbers = kinds[i].numbers;
    f.at = f.numbers ? atol(argv[3]) : 0;
    bool known = f.numbers && f.at == 0;
    for (size_t i = 0; f.numbers && i < sizeof errors / sizeof *errors; i++)
        if (strcmp(errors[i].name, argv[2]) == 0) {
            f.error = errors[i].number;
            known = true;
        }
    if (!known) {
        fprintf(stderr, "usage: fail_call CALLS FAULT N COMMAND...\n");
        return 2;
    }
    const int code = trace(&(tracer){begin, end, &f, false}, argv + 4);
    FILE *counted = f.at == 0 ? fopen(argv[2], "w") : NULL;
    if (counted) {
        fprintf(counted, "%ld\n", f.count);
        fclose(counted);
    }
    return code;
}
