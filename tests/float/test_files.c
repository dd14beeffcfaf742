/* Files and strings: a write is atomic, and every failure has an error message. */
#include "base/buffer.h"
#include "base/files.h"
#include "base/settings.h"
#include "base/utf8.h"
#include "store/replace_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[64];

static int enter(void **state)
{
    (void)state;
    snprintf(directory, sizeof directory, "%s/attend-test-XXXXXX", P_tmpdir);
    return mkdtemp(directory) == NULL || chdir(directory) != 0;
}

/* How many entries the directory has; a temporary file left behind would show. */
static int entries(bool remove_them)
{
    DIR *open_directory = opendir(directory);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(open_directory)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        count++;
        if (remove_them)
            remove(entry->d_name);
    }
    closedir(open_directory);
    return count;
}

static int leave(void **state)
{
    (void)state;
    entries(true);
    return chdir("/") != 0 || rmdir(directory) != 0;
}

static bool write_file(const char *path, const char *text, at_error *error)
{
    at_writer *writer = at_writer_open(path, error);
    if (writer == NULL)
        return false;
    at_writer_add(writer, text, strlen(text), error);
    return at_writer_commit(writer, error);
}

static void expect_file(const char *path, const char *text)
{
    at_error error = {0};
    size_t size;
    unsigned char *bytes = at_file_read(path, &size, &error);
    assert_int_equal(error.code, AT_OK);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(bytes, text, size);
    free(bytes);
}

static void expect_message(at_error *error, const char *message)
{
    assert_int_equal(error->code, AT_FILE);
    assert_string_equal(error->text, message);
    *error = (at_error){0};
}

static void test_written_and_read(void **state)
{
    (void)state;
    at_error error = {0};
    assert_true(write_file("a", "first", &error));
    expect_file("a", "first");
    assert_int_equal(chmod("a", 0640), 0);
    assert_true(write_file("a", "", &error));
    expect_file("a", "");
    struct stat status;
    assert_int_equal(stat("a", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);

    char longest[NAME_MAX + 1];
    memset(longest, 'n', NAME_MAX);
    longest[NAME_MAX] = '\0';
    assert_true(write_file(longest, "long", &error));
    expect_file(longest, "long");
    assert_int_equal(entries(true), 2);
}

static void test_link_stays_a_link(void **state)
{
    (void)state;
    at_error error = {0};
    assert_true(write_file("real", "old", &error));
    assert_int_equal(symlink("real", "link"), 0);
    assert_true(write_file("link", "new", &error));
    expect_file("real", "new");
    struct stat status;
    assert_int_equal(lstat("link", &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(entries(true), 2);
}

static void test_cancelled_or_failed_leaves_the_old(void **state)
{
    (void)state;
    at_error error = {0};
    assert_true(write_file("a", "old", &error));
    at_writer *writer = at_writer_open("a", &error);
    assert_true(at_writer_add(writer, "half", 4, &error));
    expect_file("a", "old");
    at_writer_cancel(writer);
    expect_file("a", "old");
    assert_int_equal(entries(false), 1);

    /* The disk is full from the fifth byte on. */
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 5;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    bool written = write_file("a", "a longer text", &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_false(written);
    expect_message(&error, "cannot write 'a': File too large");
    expect_file("a", "old");
    assert_int_equal(entries(true), 1);
}

/* Root may write everywhere, even over a device, so risky tests run without that privilege. */
static void drop_privileges(void)
{
    if (getuid() == 0)
        assert_int_equal(seteuid(65534), 0);
}

static void restore_privileges(void)
{
    if (getuid() == 0)
        assert_int_equal(seteuid(0), 0);
}

static void test_devices_and_pipes_are_written_to(void **state)
{
    (void)state;
    at_error full = {0}, zero = {0}, error = {0};
    size_t size;
    drop_privileges();
    bool written = write_file("/dev/full", "x", &full), discarded = write_file("/dev/null", "x", &error);
    unsigned char *endless = at_file_read("/dev/zero", &size, &zero);
    restore_privileges();
    if (access("/dev/full", F_OK) == 0) {
        assert_false(written);
        expect_message(&full, "cannot write '/dev/full': No space left on device");
    } else {
        puts("SKIPPED: there is no /dev/full, so a full disk was not checked");
    }
    assert_true(discarded);
    assert_null(endless);
    expect_message(&zero, "cannot read '/dev/zero': it is a device, not a file");

    assert_int_equal(mkfifo("pipe", 0600), 0);
    int reader = open("pipe", O_RDONLY | O_NONBLOCK);
    assert_true(write_file("pipe", "through", &error));
    char got[16];
    assert_int_equal(read(reader, got, sizeof got), 7);
    assert_memory_equal(got, "through", 7);
    close(reader);
    struct stat status;
    assert_int_equal(lstat("pipe", &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
    assert_int_equal(entries(true), 1);
}

static void test_refused(void **state)
{
    (void)state;
    at_error error = {0};
    size_t size;
    assert_null(at_file_read("none", &size, &error));
    expect_message(&error, "cannot read 'none': No such file or directory");
    assert_null(at_file_read(".", &size, &error));
    expect_message(&error, "cannot read '.': it is a directory, not a file");
    assert_null(at_writer_open("none/a", &error));
    expect_message(&error, "cannot write 'none/a': No such file or directory");
    assert_null(at_writer_open(".", &error));
    expect_message(&error, "cannot write '.': it is a directory, not a file");
    assert_null(at_writer_open("a/", &error));
    expect_message(&error, "cannot write 'a/': it is not the name of a file");
    assert_null(at_writer_open("", &error));
    expect_message(&error, "cannot write '': it is not the name of a file");
    assert_true(write_file("a", "", &error));
    assert_null(at_writer_open("a/b", &error));
    expect_message(&error, "cannot write 'a/b': Not a directory");

    /* With a sticky error no function does anything. */
    error.code = AT_FAILED;
    assert_null(at_file_read("a", &size, &error));
    assert_null(at_writer_open("b", &error));
    assert_int_equal(entries(true), 1);
}

static void test_no_permission(void **state)
{
    (void)state;
    at_error error = {0};
    assert_true(write_file("mine", "old", &error));
    assert_int_equal(chmod("mine", 0444), 0);
    assert_int_equal(chmod(directory, 0777), 0);
    drop_privileges();
    at_writer *mine = at_writer_open("mine", &error);
    restore_privileges();
    assert_null(mine);
    expect_message(&error, "cannot write 'mine': Permission denied");

    assert_int_equal(chmod(directory, 0555), 0);
    drop_privileges();
    at_writer *other = at_writer_open("other", &error);
    restore_privileges();
    assert_int_equal(chmod(directory, 0755), 0);
    assert_null(other);
    expect_message(&error, "cannot write 'other': Permission denied");
    expect_file("mine", "old");
    assert_int_equal(entries(true), 1);
}

static void test_pipe_is_read_to_its_end(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    static char sent[60000];
    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = (char)(i * 7);
    assert_int_equal(write(ends[1], sent, sizeof sent), sizeof sent);
    close(ends[1]);
    char path[32];
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    at_error error = {0};
    size_t size;
    unsigned char *bytes = at_file_read(path, &size, &error);
    close(ends[0]);
    assert_non_null(bytes);
    assert_int_equal(size, sizeof sent);
    assert_memory_equal(bytes, sent, size);
    free(bytes);
}

static void test_sizes(void **state)
{
    (void)state;
    size_t result;
    assert_true(at_size_mul(SIZE_MAX / 2, 2, &result));
    assert_int_equal(result, SIZE_MAX - 1);
    assert_false(at_size_mul((size_t)1 << 32, (size_t)1 << 32, &result));
    assert_true(at_size_mul(0, SIZE_MAX, &result));
    assert_int_equal(result, 0);
    assert_true(at_size_add(SIZE_MAX, 0, &result));
    assert_false(at_size_add(SIZE_MAX, 1, &result));
}

static void expect_nearest(const char *word, const char *expected)
{
    static const char *const names[] = {"dot",       "scaled",   "general", "additive", "softmax",
                                        "sparsemax", "entmax15", "local-m", "local-p",  "rope"};
    char out[100];
    at_suggest(word, names, sizeof names / sizeof *names, out, sizeof out);
    assert_string_equal(out, expected);
}

static void test_nearest(void **state)
{
    (void)state;
    expect_nearest("scalled", "; did you mean 'scaled'?");
    expect_nearest("scaled", "; did you mean 'scaled'?");
    expect_nearest("SCALED", "; did you mean 'scaled'?");
    expect_nearest("dto", "; did you mean 'dot'?"); /* a transposition is one edit, not two */
    expect_nearest("sfotmax", "; did you mean 'softmax'?");
    expect_nearest("entmax", "; did you mean 'entmax15'?");
    expect_nearest("local", "; did you mean 'local-m' or 'local-p'?");
    expect_nearest("sparsmx", "; did you mean 'sparsemax'?");
    expect_nearest("bahdanau", "");
    expect_nearest("soft", ""); /* three of seven letters is more than a third */
    expect_nearest("", "");
    char endless[500];
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    expect_nearest(endless, "");

    static const char *const three[] = {"WK", "WQ", "WV", "WK"};
    char out[64];
    at_suggest("WX", three, 4, out, sizeof out);
    assert_string_equal(out, "; did you mean 'WK', 'WQ' or 'WV'?");
    at_suggest("WX", three, 4, out, 20); /* never a truncated message */
    assert_string_equal(out, "");
    static const char *const single[] = {"k", "q"};
    at_suggest("v", single, 2, out, sizeof out);
    assert_string_equal(out, "");
}

static void test_shown(void **state)
{
    (void)state;
    char out[12];
    assert_string_equal(at_shown("plain", out, sizeof out), "plain");
    assert_string_equal(at_shown("elevenchars", out, sizeof out), "elevenchars");
    assert_string_equal(at_shown("twelve chars", out, sizeof out), "twelve c…");
    assert_string_equal(at_shown("a\n\xff", out, sizeof out), "a\\x0a\\xff");
    assert_string_equal(at_shown("注意力", out, sizeof out), "注意力");
    assert_string_equal(at_shown("注意力机", out, sizeof out), "注意…");
    for (size_t size = 1; size < sizeof out; size++) {
        at_shown("注意力机制", out, size);
        assert_true(strlen(out) < size && at_is_utf8(out));
    }
    assert_false(at_is_utf8("\xed\xa0\x80"));
    assert_false(at_is_utf8("\xc0\x80"));
}

static void test_buffer(void **state)
{
    (void)state;
    at_buffer buffer = {0};
    for (int i = 0; i < 1000; i++)
        at_buffer_print(&buffer, "%d,", i);
    at_buffer_add(&buffer, NULL, 0);
    at_buffer_add(&buffer, "\0x", 2);
    assert_false(buffer.failed);
    assert_int_equal(buffer.size, 10 * 2 + 90 * 3 + 900 * 4 + 2);
    assert_memory_equal(buffer.bytes + buffer.size - 6, "999,\0x", 7);
    at_buffer_add(&buffer, "x", SIZE_MAX);
    assert_true(buffer.failed);
    at_buffer_add(&buffer, "x", 1);
    assert_int_equal(buffer.size, 3892);
    at_buffer_free(&buffer);
    assert_null(buffer.bytes);
}

/* A process that was killed leaves its temporary file; the next writer of the path removes it, but not that of a writer
 * that is alive. */
static void test_abandoned_files(void **state)
{
    (void)state;
    at_error error = {0};
    entries(true);
    pid_t pid = fork();
    if (pid == 0) {
        at_error lost = {0};
        at_writer *writer = at_writer_open("kept", &lost);
        at_writer_add(writer, "half", 4, &lost);
        kill(getpid(), SIGKILL);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(entries(false), 1);
    at_writer *alive = at_writer_open("kept", &error);
    assert_non_null(alive);
    assert_int_equal(entries(false), 1); /* its own */
    assert_true(at_writer_add(alive, "first", 5, &error));
    assert_true(write_file("kept", "second", &error));
    assert_int_equal(entries(false), 2); /* that of `alive` is still there */
    assert_true(at_writer_commit(alive, &error));
    size_t size;
    unsigned char *bytes = at_file_read("kept", &size, &error);
    assert_int_equal(size, 5);
    assert_memory_equal(bytes, "first", 5);
    free(bytes);
    assert_int_equal(entries(true), 1);
}

/* Several processes write the same path at the same time: none takes the temporary file of another for abandoned. */
static void test_many_writers(void **state)
{
    (void)state;
    enum { PROCESSES = 6, TIMES = 300 };
    entries(true);
    for (int p = 0; p < PROCESSES; p++)
        if (fork() == 0) {
            at_error failed = {0};
            for (int i = 0; i < TIMES; i++)
                write_file("shared", "whole", &failed);
            _exit(failed.code);
        }
    for (int p = 0, status = 0; p < PROCESSES; p++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    expect_file("shared", "whole");
    assert_int_equal(entries(true), 1);
}

/* A process that is killed while it replaces a file leaves a second name of the file before. */
static void test_killed_while_replacing(void **state)
{
    (void)state;
    at_error error = {0};
    entries(true);
    /* Before the new file had its name: nothing has happened yet. */
    assert_true(write_file("f.previous", "first", &error) && write_file("f", "second", &error));
    assert_int_equal(link("f", "f.previous.new"), 0);
    at_file_tidy("f");
    expect_file("f", "second");
    expect_file("f.previous", "first");
    /* After it: the file held is the one before. */
    assert_int_equal(link("f", "f.previous.new"), 0);
    assert_true(write_file("f", "third", &error));
    at_file_tidy("f");
    expect_file("f", "third");
    expect_file("f.previous", "second");
    assert_int_equal(entries(true), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_and_read),
        cmocka_unit_test(test_link_stays_a_link),
        cmocka_unit_test(test_cancelled_or_failed_leaves_the_old),
        cmocka_unit_test(test_devices_and_pipes_are_written_to),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_permission),
        cmocka_unit_test(test_pipe_is_read_to_its_end),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_shown),
        cmocka_unit_test(test_buffer),
        cmocka_unit_test(test_abandoned_files),
        cmocka_unit_test(test_many_writers),
        cmocka_unit_test(test_killed_while_replacing),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
