/* Runs a command and looks at its system calls, or changes them (ptrace). For fail_call.c and record.c; x86-64 only. */
#ifndef TRACE_H
#define TRACE_H

#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef __x86_64__
#error "trace.h knows the registers of x86-64 only"
#endif

/* A system call of one thread; the registers are those at its beginning or its end. */
typedef struct call {
    pid_t thread;
    long number;
    struct user_regs_struct registers;
} call;

/* `begin` sees a call before the kernel does, and may change its registers if it returns true; `end` sees its result. */
typedef struct tracer {
    bool (*begin)(call *c, void *context);
    bool (*end)(call *c, void *context);
    void *context;
    bool processes; /* those that the command starts, too, and not its threads only */
} tracer;

static inline uint64_t argument(const call *c, int index)
{
    const struct user_regs_struct *r = &c->registers;
    const uint64_t arguments[] = {r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9};
    return arguments[index];
}

/* The call is left out, and returns -number. `begin` says the first, `end` the second. */
static inline void leave_out(call *c)
{
    c->registers.orig_rax = (unsigned long long)-1;
}
static inline void set_result(call *c, long result)
{
    c->registers.rax = (unsigned long long)result;
}
static inline long result_of(const call *c)
{
    return (long)c->registers.rax;
}

/* A text in the memory of the command; "" if it cannot be read. */
static inline void read_text(pid_t thread, uint64_t address, char *text, size_t size)
{
    size_t used = 0;
    while (used + 1 < size) {
        struct iovec here = {text + used, 1}, there = {(void *)(uintptr_t)(address + used), 1};
        if (process_vm_readv(thread, &here, 1, &there, 1, 0) != 1 || text[used] == '\0')
            break;
        used++;
    }
    text[used] = '\0';
}

static inline void look(const tracer *t, pid_t thread, bool begins, long *inside)
{
    call c = {.thread = thread};
    if (ptrace(PTRACE_GETREGS, thread, NULL, &c.registers) != 0)
        return;
    c.number = begins ? (long)c.registers.orig_rax : *inside;
    *inside = c.number;
    bool (*looks)(call *, void *) = begins ? t->begin : t->end;
    if (looks && looks(&c, t->context))
        ptrace(PTRACE_SETREGS, thread, NULL, &c.registers);
}

enum { MOST_THREADS = 4096 };
typedef struct thread_state {
    pid_t thread;
    bool in_call;
    long number;
} thread_state;

static inline thread_state *state_of(thread_state *all, pid_t thread)
{
    for (int i = 0; i < MOST_THREADS; i++)
        if (all[i].thread == thread || all[i].thread == 0) {
            all[i].thread = thread;
            return &all[i];
        }
    abort();
}

/* Runs the command; its exit code, or 128 and the number of the signal that ended it; 77 if nothing can be traced. */
static inline int trace(const tracer *t, char **command)
{
    static thread_state states[MOST_THREADS];
    const pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(77);
        raise(SIGSTOP);
        execvp(command[0], command);
        _exit(127);
    }
    int status = 0, code = 77;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
        return code;
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
    if (t->processes)
        options |= PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;
    ptrace(PTRACE_SETOPTIONS, child, NULL, options);
    ptrace(PTRACE_SYSCALL, child, NULL, NULL);
    for (pid_t thread; (thread = waitpid(-1, &status, __WALL)) > 0;) {
        thread_state *s = state_of(states, thread);
        if (!WIFSTOPPED(status)) {
            s->thread = -1; /* its place is not used again, so that the search ends at a 0 */
            if (thread == child)
                code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            continue;
        }
        long deliver = 0;
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
            s->in_call = !s->in_call;
            look(t, thread, s->in_call, &s->number);
        } else if (WSTOPSIG(status) != SIGSTOP && status >> 16 == 0) {
            deliver = WSTOPSIG(status);
        }
        ptrace(PTRACE_SYSCALL, thread, NULL, deliver);
    }
    return code;
}

#endif
