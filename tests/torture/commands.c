/* commands ATTEND CASES FOUND WORKER WORKERS COUNT: runs whole commands on mutated files, and checks that each one succeeds
 * or is refused with exactly one message. commands.sh starts one of these per core, in a folder of its own.
 *
 * A line of CASES is
 *     [!]SEED PLACE ARGUMENT... [< INPUT]
 * The file SEED is mutated and written to PLACE, then `ATTEND ARGUMENT... < INPUT` is run. With ! the command cannot
 * succeed, whatever is in the file: so large settings that are valid do not cost hours. First every case is run with the
 * unchanged file. Run number i has case i and its mutations depend on i only, so a find can be repeated. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/utf8.h"
#include "fuzz.h"

enum { MOST_CASES = 200, MOST_ARGUMENTS = 40, MOST_FILE = 1 << 20, MOST_OUTPUT = 1 << 16, SECONDS = 120 };

typedef struct test_case {
    const char *seed, *place, *input;
    char *argument[MOST_ARGUMENTS + 2]; /* the first is the command itself, NULL after the last */
    bool refused;                       /* it cannot succeed */
} test_case;

static void die(const char *what)
{
    fprintf(stderr, "commands: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* ---- Mutations ------------------------------------------------------------------------------------------------ */

static uint64_t random_state;

static uint64_t next_random(void)
{
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static size_t draw(size_t below)
{
    return below > 0 ? (size_t)(next_random() % below) : 0;
}

/* Puts a text in place of `old` bytes; nothing happens if there is no room for it. */
static size_t replace(uint8_t *bytes, size_t size, size_t most, size_t at, size_t old, const void *text, size_t length)
{
    if (size - old + length > most)
        return size;
    uint8_t *copy = malloc(length + 1); /* the text may be part of the bytes */
    if (!copy)
        die("memory");
    memcpy(copy, text, length);
    memmove(bytes + at + length, bytes + at + old, size - at - old);
    memcpy(bytes + at, copy, length);
    free(copy);
    return size - old + length;
}

/* Another number for a run of digits: limits of types, and numbers beside them. */
static size_t change_digits(uint8_t *bytes, size_t size, size_t most, size_t at)
{
    static const char *const number[] = {"0",
                                         "1",
                                         "-1",
                                         "2",
                                         "65536",
                                         "2147483648",
                                         "4294967296",
                                         "1e9",
                                         "1e-400",
                                         "nan",
                                         "inf",
                                         "0x10",
                                         "1048577",
                                         "99999999999",
                                         "1000000000",
                                         "18446744073709551616",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "0.5",
                                         ""};
    while (at < size && (bytes[at] < '0' || bytes[at] > '9'))
        at++;
    size_t end = at;
    while (end < size && bytes[end] >= '0' && bytes[end] <= '9')
        end++;
    const char *text = number[draw(sizeof number / sizeof *number)];
    return end > at ? replace(bytes, size, most, at, end - at, text, strlen(text)) : size;
}

static size_t insert_text(uint8_t *bytes, size_t size, size_t most, size_t at)
{
    static const char *const text[] = {
        "\t", "\n", "\r\n", " ",    "\xEF\xBB\xBF", "\xFF",      "\xC3",     "\xED\xA0\x80", "=", "#",  ":",
        "-",  "?",  ",",    "%s%n", "../",          "/dev/null", "\x1b[31m", "\xE2\x80\xAE", "'", "\"", "\\",
        "{",  "[",  "]",    "}",    "true",         "null"};
    const char *word = text[draw(sizeof text / sizeof *text)];
    if (draw(12) == 0)
        return replace(bytes, size, most, at, 0, "", 1); /* a NUL */
    return replace(bytes, size, most, at, 0, word, strlen(word));
}

/* One mutation of any bytes; mutate_tensors calls it too. */
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t most);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t most)
{
    static const uint64_t odd[] = {0,
                                   1,
                                   127,
                                   128,
                                   255,
                                   256,
                                   32768,
                                   65535,
                                   1u << 31,
                                   UINT32_MAX,
                                   INT64_MAX,
                                   UINT64_MAX,
                                   UINT64_C(1) << 63,
                                   0x7f800000,
                                   0x7fc00000,
                                   1000000};
    const size_t at = draw(size), length = draw(size - at < 64 ? size - at : 64), other = draw(size);
    switch (size > 0 ? draw(10) : 9) {
    case 0:
        bytes[at] ^= (uint8_t)(1u << draw(8));
        return size;
    case 1:
        bytes[at] = (uint8_t)next_random();
        return size;
    case 2:
        return replace(bytes, size, most, at, length, "", 0);
    case 3:
        return replace(bytes, size, most, other, 0, bytes + at, length);
    case 4:
        return replace(bytes, size, most, at, length, bytes + other, draw(size - other < 64 ? size - other : 64));
    case 5:
        return draw(4) == 0 ? at : size; /* a file that is cut off */
    case 6: {
        const size_t width = (size_t)1 << draw(4);
        if (at + width <= size)
            memcpy(bytes + at, &odd[draw(sizeof odd / sizeof *odd)], width);
        return size;
    }
    case 7:
        return change_digits(bytes, size, most, at);
    case 8: { /* a line or a block many times over */
        for (size_t times = draw(40); times-- > 0;)
            size = replace(bytes, size, most, at, 0, bytes + at, length);
        return size;
    }
    default:
        return insert_text(bytes, size, most, at);
    }
}

/* ---- Files ---------------------------------------------------------------------------------------------------- */

static size_t read_file(const char *path, void *bytes, size_t most)
{
    const int file = open(path, O_RDONLY);
    ssize_t got = 0;
    size_t size = 0;
    if (file < 0)
        die(path);
    while (size < most && (got = read(file, (char *)bytes + size, most - size)) > 0)
        size += (size_t)got;
    if (got < 0)
        die(path);
    close(file);
    return size;
}

static void write_file(const char *path, const void *bytes, size_t size)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file < 0 || write(file, bytes, size) != (ssize_t)size || close(file) != 0)
        die(path);
}

/* Removes what a command has written, folders too. The name of a temporary file that is left over is a find. */
static void clean(const char *folder, char left[300])
{
    DIR *list = opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        char path[600];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 || entry->d_type == DT_LNK)
            continue;
        if (strstr(entry->d_name, ".tmp"))
            snprintf(left, 300, "%s", entry->d_name);
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_type == DT_DIR)
            clean(path, left);
        if (remove(path) != 0)
            die(path);
    }
    if (list)
        closedir(list);
}

/* ---- Commands ------------------------------------------------------------------------------------------------- */

static char said[MOST_OUTPUT + 1];

static void start(const char *attend, const test_case *c)
{
    const int input = open(c->input ? c->input : "/dev/null", O_RDONLY), output = open("/dev/null", O_WRONLY),
              messages = open("messages", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    const struct rlimit seconds = {SECONDS, SECONDS}, bytes = {1 << 28, 1 << 28};
    signal(SIGXFSZ, SIG_IGN); /* then writing too much fails like a full disk */
    if (input < 0 || output < 0 || messages < 0 || dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(messages, 2) < 0 ||
        setrlimit(RLIMIT_CPU, &seconds) != 0 || setrlimit(RLIMIT_FSIZE, &bytes) != 0)
        _exit(126);
    alarm(20 * SECONDS); /* for one that waits and computes nothing */
    execv(attend, c->argument);
    _exit(126);
}

/* What is wrong with a refusal; NULL: nothing. */
static const char *judge_message(void)
{
    static const char begin[] = "attend: ";
    char *newline = strchr(said, '\n');
    if (!said[0])
        return "a refusal without a message";
    if (strncmp(said, begin, sizeof begin - 1) != 0 || strlen(said) < sizeof begin + 5)
        return "a refusal whose message does not begin with 'attend: '";
    /* Each picture that cannot be read has a line of its own, up to ten, and then one line tells how many more there are. */
    for (int lines = 1; newline && newline[1]; newline = strchr(newline + 1, '\n'), lines++) {
        const bool counts = lines == 10 && strstr(newline + 1, " more pictures cannot be read\n");
        if (strncmp(newline + 1, "attend: line ", 13) != 0 && !counts)
            break;
        *newline = ' ';
    }
    if (!newline || newline[1])
        return "a refusal with more or less than one line";
    if (!at_is_utf8(said))
        return "a message that is not UTF-8";
    for (const char *at = said; at < newline; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            return "a message with a control character";
    return NULL;
}

/* Runs a case in this folder; returns what is wrong, NULL if nothing is. *code is the exit code. */
static const char *run(const char *attend, const test_case *c, int *code)
{
    static char why[400];
    int status;
    const pid_t child = fork();
    if (child < 0)
        die("fork");
    if (child == 0)
        start(attend, c);
    if (waitpid(child, &status, 0) != child)
        die("waitpid");
    said[read_file("messages", said, MOST_OUTPUT)] = '\0';
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (WIFSIGNALED(status)) {
        const int signal = WTERMSIG(status);
        const bool late = signal == SIGXCPU || signal == SIGKILL || signal == SIGALRM;
        snprintf(why, sizeof why, "%s (signal %d)", late ? "no end" : "a crash", signal);
        return why;
    }
    if (strstr(said, "Sanitizer") || strstr(said, "runtime error:"))
        return "a report of a sanitizer";
    if (*code != 0 && *code != 1 && *code != 2) {
        snprintf(why, sizeof why, "exit code %d", *code);
        return why;
    }
    if (*code == 0 && c->refused)
        return "success where there can be none";
    return *code == 0 ? NULL : judge_message();
}

/* Says what was found, and keeps the mutated file. */
static void keep(const char *found, const test_case *c, long number, const void *bytes, size_t size, const char *why)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%ld-%s", found, number, c->place);
    if (size > 0 || number >= 0)
        write_file(path, bytes, size);
    printf("FOUND %s: run %ld, the file '%s' is %s\n  attend", why, number, c->place, path);
    for (int i = 1; c->argument[i]; i++)
        printf(" %s", c->argument[i]);
    printf("%s%s\n%.4000s\n", c->input ? " < " : "", c->input ? c->input : "", said);
    fflush(stdout);
}

/* ---- Cases ---------------------------------------------------------------------------------------------------- */

static int read_cases(const char *path, test_case *cases)
{
    static char text[MOST_OUTPUT];
    text[read_file(path, text, sizeof text - 1)] = '\0';
    char *rest = text, *line, *word;
    int count = 0;
    while ((line = strsep(&rest, "\n")) && count < MOST_CASES) {
        test_case *c = &cases[count];
        int words = 0, arguments = 1;
        *c = (test_case){.argument = {"attend"}};
        while ((word = strsep(&line, " ")) && arguments <= MOST_ARGUMENTS) {
            if (!*word)
                continue;
            if (words == 0)
                c->seed = word + (c->refused = *word == '!');
            else if (words == 1)
                c->place = word;
            else if (strcmp(word, "<") == 0)
                c->input = strsep(&line, " ");
            else
                c->argument[arguments++] = word;
            words++;
        }
        count += words > 2;
    }
    return count;
}

int main(int count, char **argument)
{
    static test_case cases[MOST_CASES];
    static uint8_t bytes[MOST_FILE];
    if (count != 7) {
        fputs("usage: commands ATTEND CASES FOUND WORKER WORKERS COUNT\n", stderr);
        return 2;
    }
    const char *attend = argument[1], *found = argument[3];
    const int case_count = read_cases(argument[2], cases);
    const long worker = atol(argument[4]), workers = atol(argument[5]), runs = atol(argument[6]);
    long refused = 0, succeeded = 0, finds = 0;
    char left[300] = "";
    for (long i = worker - (case_count + workers - 1) / workers * workers; i < runs; i += workers) {
        const test_case *c = &cases[(i % case_count + case_count) % case_count];
        int code;
        size_t size = read_file(c->seed, bytes, sizeof bytes);
        random_state = (uint64_t)i * 1000003;
        for (size_t times = i < 0 ? 0 : 1 + draw(4); times-- > 0;)
            size = mutate_tensors(bytes, size, sizeof bytes, (unsigned)next_random());
        write_file(c->place, bytes, size);
        const char *why = run(attend, c, &code);
        if (!why && i < 0 && (code == 0) == c->refused)
            why = "an unchanged file that is refused, or used where it cannot be";
        clean(".", left);
        if (!why && left[0])
            why = left;
        if (why)
            keep(found, c, i, bytes, size, why);
        left[0] = '\0';
        finds += why != NULL;
        refused += i >= 0 && !why && code != 0;
        succeeded += i >= 0 && !why && code == 0;
    }
    printf("%ld %ld %ld\n", refused, succeeded, finds);
    return finds > 0;
}
