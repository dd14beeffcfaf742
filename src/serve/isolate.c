/* What a server cannot do even if a fault in it were used against it. The process gives up, for good:
 *   - another user's rights: it becomes the user of the settings;
 *   - files: it may read those in the folders of its models and of its keys, and open nothing else (Landlock);
 *   - programs and connections: it cannot start a program, connect, listen elsewhere, trace or load code into the kernel
 *     (seccomp: these calls fail with EPERM).
 * A kernel without Landlock or seccomp leaves that part out. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "serve/serve_internal.h"

/* ---- The user --------------------------------------------------------------------------------------------------- */

static bool become(const char *name, at_error *error)
{
    errno = 0;
    const struct passwd *user = getpwnam(name);
    if (!user)
        return at_fail(error, AT_USAGE, "there is no user '%s'", name);
    if (initgroups(user->pw_name, user->pw_gid) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)
        return at_fail(error, AT_FAILED, "cannot become the user '%s': %s; only root can", name, strerror(errno));
    if (user->pw_uid != 0 && setuid(0) == 0)
        return at_fail(error, AT_FAILED, "the rights of root were not given up");
    return true;
}

/* ---- Files (Landlock) ------------------------------------------------------------------------------------------- */

/* The header of an older system does not have all of it. */
typedef struct landlock_rules {
    uint64_t files, network;
} landlock_rules;
enum {
    LANDLOCK_CREATE = 444,
    LANDLOCK_ADD = 445,
    LANDLOCK_RESTRICT = 446,
    ALL_OF_1 = 13,     /* rights of files in the first version; the second, third and fifth add one each */
    FIRST_NETWORK = 4, /* the version that knows TCP: bind and connect */
};

/* The leak checker of the sanitizers starts a process that reads /proc and traces this one. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define TRACED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TRACED 1
#endif
#endif
#ifndef TRACED
#define TRACED 0
#endif

/* Reading below a folder: a file that is replaced by another of the same name is read, too. */
static bool allow_folder_of(int rules, const char *path, uint64_t rights)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    const int length = !slash ? 1 : slash == path ? 1 : (int)(slash - path);
    if (snprintf(folder, sizeof folder, "%.*s", length, slash ? path : ".") >= (int)sizeof folder)
        return false;
    struct landlock_path_beneath_attr rule = {.allowed_access = rights};
    rule.parent_fd = open(folder, O_PATH | O_CLOEXEC);
    const bool added = rule.parent_fd >= 0 && syscall(LANDLOCK_ADD, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
    if (rule.parent_fd >= 0)
        close(rule.parent_fd);
    return added;
}

/* The version of Landlock in use; 0: none. */
static int restrict_files(const at_server_settings *s, at_error *error)
{
    const long version = syscall(LANDLOCK_CREATE, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1)
        return 0;
    const int rights = ALL_OF_1 + (version >= 2) + (version >= 3) + (version >= 5);
    const landlock_rules wanted = {.files = (UINT64_C(1) << rights) - 1, .network = version >= FIRST_NETWORK ? 3 : 0};
    const int rules =
        (int)syscall(LANDLOCK_CREATE, &wanted, version >= FIRST_NETWORK ? sizeof wanted : sizeof wanted.files, 0);
    if (rules < 0)
        return 0;
    bool good = true;
    for (int i = 0; i < s->model_count && good; i++)
        good = allow_folder_of(rules, s->models[i].path, LANDLOCK_ACCESS_FS_READ_FILE);
    if (good && s->api_keys)
        good = allow_folder_of(rules, s->api_keys, LANDLOCK_ACCESS_FS_READ_FILE);
    for (int i = 0; i < s->watch_count && good; i++) {
        struct stat status;
        char path[4096];
        const bool folder = stat(s->watch[i], &status) == 0 && S_ISDIR(status.st_mode);
        good = snprintf(path, sizeof path, "%s%s", s->watch[i], folder ? "/." : "") < (int)sizeof path &&
               allow_folder_of(rules, path, LANDLOCK_ACCESS_FS_READ_FILE | (folder ? LANDLOCK_ACCESS_FS_READ_DIR : 0));
    }
    if (good && TRACED)
        good = allow_folder_of(rules, "/proc/self", LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR);
    good = good && syscall(LANDLOCK_RESTRICT, rules, 0) == 0;
    const int reason = errno;
    close(rules);
    if (!good)
        at_fail(error, AT_FAILED, "the files of the server cannot be restricted to its models: %s", strerror(reason));
    return good ? (int)version : 0;
}

/* ---- System calls (seccomp) ------------------------------------------------------------------------------------- */

#if defined __x86_64__
#define MACHINE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define MACHINE AUDIT_ARCH_AARCH64
#endif

#ifdef MACHINE
#define REFUSE            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define REFUSE_CALL(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), REFUSE
#define LOAD(field)       BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))

static bool restrict_calls(void)
{
    static struct sock_filter program[] =
    { LOAD(arch),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0),
      REFUSE,
      LOAD(nr),
#ifdef __x86_64__
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1), /* the calls of x32 */
      REFUSE,
#endif
      /* Programs, and other processes. A thread is a clone that shares all; clone3 hides its flags, and without it the C
         * library uses clone. */
      REFUSE_CALL(execve),
      REFUSE_CALL(execveat),
#if !TRACED
      REFUSE_CALL(ptrace),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4),
      LOAD(args[0]),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0),
      REFUSE,
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
#ifdef SYS_fork
      REFUSE_CALL(fork),
      REFUSE_CALL(vfork),
#endif
#endif
      REFUSE_CALL(process_vm_readv),
      REFUSE_CALL(process_vm_writev),
      /* Connections: those that are accepted need none of these. */
      REFUSE_CALL(socket),
      REFUSE_CALL(socketpair),
      REFUSE_CALL(connect),
      REFUSE_CALL(bind),
      REFUSE_CALL(listen),
      /* Ways around these rules and Landlock's, and into the kernel. */
      REFUSE_CALL(io_uring_setup),
      REFUSE_CALL(open_by_handle_at),
      REFUSE_CALL(mount),
      REFUSE_CALL(umount2),
      REFUSE_CALL(pivot_root),
      REFUSE_CALL(chroot),
      REFUSE_CALL(unshare),
      REFUSE_CALL(setns),
      REFUSE_CALL(bpf),
      REFUSE_CALL(perf_event_open),
      REFUSE_CALL(userfaultfd),
      REFUSE_CALL(add_key),
      REFUSE_CALL(request_key),
      REFUSE_CALL(keyctl),
      REFUSE_CALL(init_module),
      REFUSE_CALL(finit_module),
      REFUSE_CALL(delete_module),
      REFUSE_CALL(kexec_load),
      REFUSE_CALL(reboot),
      REFUSE_CALL(swapon),
      REFUSE_CALL(personality),
      REFUSE_CALL(quotactl),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {.len = sizeof program / sizeof *program, .filter = program};
    /* For the threads that there are, too. */
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}
#else
static bool restrict_calls(void)
{
    return false;
}
#endif

/* ---- All of it -------------------------------------------------------------------------------------------------- */

bool at_isolate(const at_server_settings *s, char *done, size_t size, at_error *error)
{
    snprintf(done, size, "not isolated");
    if (s->user && !become(s->user, error))
        return false;
    if (!s->isolate)
        return true;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return true;
    const int landlock = restrict_files(s, error);
    if (error->code != AT_OK)
        return false;
    const bool calls = restrict_calls();
    if (landlock || calls)
        snprintf(done, size, "isolated by %s%s%s", landlock ? "Landlock" : "", landlock && calls ? " and " : "",
                 calls ? "seccomp" : "");
    return true;
}
