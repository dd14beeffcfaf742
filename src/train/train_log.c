/* The log of a run, OUTPUT.log.jsonl, and its lock: two runs cannot write the same output. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "store/replace_file.h"
#include "train/train_internal.h"

/* The log exists as long as the run does, so the lock is on it; the system releases the lock when the process ends, even
 * by a crash. */
bool at_trainer_lock(at_trainer *trainer, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    const char *path = trainer->log_path;
    struct stat locked, named;
    do {
        if (trainer->log >= 0)
            close(trainer->log);
        /* Not through a link, which may point to somebody else's file. */
        trainer->log = open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
        if (trainer->log < 0 && errno == ELOOP)
            return at_fail(error, AT_FILE, "cannot write '%s': it is a symbolic link; remove it", path);
        if (trainer->log < 0)
            return at_file_fail(error, "write", path, errno);
        if (flock(trainer->log, LOCK_EX | LOCK_NB) != 0) {
            const int reason = errno;
            close(trainer->log);
            trainer->log = -1; /* the log belongs to another run */
            return reason == EWOULDBLOCK
                       ? at_fail(error, AT_FILE,
                                 "another training run is writing '%s'; choose another output or wait for it",
                                 trainer->settings->output)
                       : at_fail(error, AT_FILE, "cannot lock '%s': %s", path, strerror(reason));
        }
        /* If another run removed the file after it was opened, the lock is on a file without a name: try again. */
    } while (fstat(trainer->log, &locked) != 0 || lstat(path, &named) != 0 || locked.st_ino != named.st_ino);
    if (!S_ISREG(locked.st_mode))
        return at_fail(error, AT_FILE, "cannot write '%s': it is not a regular file; remove it", path);
    /* Temporary files of a run that was killed while saving. */
    at_file_tidy(trainer->settings->output);
    at_file_tidy(trainer->last_path);
    at_file_tidy(trainer->state_path);
    trainer->old_log = locked.st_size;
    return true;
}

static bool append(at_trainer *trainer, const char *bytes, size_t size, at_error *error)
{
    while (size > 0) {
        ssize_t done = write(trainer->log, bytes, size);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return at_file_fail(error, "write", trainer->log_path, errno);
        bytes += done;
        size -= (size_t)done;
    }
    return true;
}

/* Rewrites the file instead of replacing it, as the lock is on it. */
bool at_trainer_log_begin(at_trainer *trainer, at_error *error)
{
    struct stat status;
    const int64_t old = trainer->old_log;
    if (error->code != AT_OK || old == 0)
        return error->code == AT_OK;
    const int64_t size = fstat(trainer->log, &status) == 0 && status.st_size > old ? status.st_size - old : 0;
    char *lines = malloc((size_t)size + 1);
    if (!lines)
        return at_no_memory(error, "the log '%s'", trainer->log_path);
    if (pread(trainer->log, lines, (size_t)size, old) == size && ftruncate(trainer->log, 0) == 0) {
        trainer->old_log = 0;
        append(trainer, lines, (size_t)size, error);
    } else {
        at_file_fail(error, "write", trainer->log_path, errno);
    }
    free(lines);
    return error->code == AT_OK;
}

void at_trainer_unlock(at_trainer *trainer)
{
    struct stat status;
    if (trainer->log < 0)
        return;
    const bool is_regular = fstat(trainer->log, &status) == 0 && S_ISREG(status.st_mode);
    if (is_regular && status.st_size == 0)
        unlink(trainer->log_path); /* a run that failed before its first report leaves no file */
    else if (is_regular && trainer->old_log > 0 && status.st_size > trainer->old_log &&
             ftruncate(trainer->log, trainer->old_log) != 0)
        trainer->old_log = 0; /* then the lines of both runs stay, and none is lost */
    close(trainer->log);      /* releases the lock */
    trainer->log = -1;
}

/* What an uninterrupted run does not have, or has only once it ends. */
static bool is_counted(const char *line, size_t size)
{
    static const char *const aside[] = {"{\"event\":\"resume\"", "{\"event\":\"end\""};
    for (int i = 0; i < 2; i++)
        if (size >= strlen(aside[i]) && memcmp(line, aside[i], strlen(aside[i])) == 0)
            return false;
    return true;
}

/* The object without its last brace gets its time, and becomes a line. */
static bool end_line(at_buffer *line, at_error *error)
{
    char time_text[40];
    const time_t now = time(NULL);
    struct tm parts;
    strftime(time_text, sizeof time_text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    at_buffer_print(line, ",\"time\":\"%s\"}\n", time_text);
    return !line->failed || at_no_memory(error, "a line of the log");
}

static bool add_line(at_trainer *trainer, at_buffer *line, at_error *error)
{
    if (error->code != AT_OK || !end_line(line, error) || !append(trainer, line->bytes, line->size, error))
        return false;
    trainer->progress.logged += is_counted(line->bytes, line->size);
    return true;
}

bool at_trainer_log_open(at_trainer *trainer, at_error *error)
{
    const bool done = trainer->opening.size == 0 || add_line(trainer, &trainer->opening, error);
    at_buffer_cut(&trainer->opening, 0);
    return done;
}

bool at_trainer_log(at_trainer *trainer, at_buffer *line, at_error *error)
{
    const bool done = error->code == AT_OK && at_trainer_log_open(trainer, error) && add_line(trainer, line, error);
    at_buffer_free(line);
    return done;
}

bool at_trainer_log_sync(at_trainer *trainer, at_error *error)
{
    return error->code == AT_OK && (fsync(trainer->log) == 0 || at_file_fail(error, "write", trainer->log_path, errno));
}

/* Up to `size` bytes of the log from an offset on; 0 at its end, -1 with the error set. */
static ssize_t read_part(const at_trainer *trainer, off_t from, char *bytes, size_t size, at_error *error)
{
    ssize_t got;
    do
        got = pread(trainer->log, bytes, size, from);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        at_file_fail(error, "read", trainer->log_path, errno);
    return got;
}

/* Where the log has so many lines that count, or where it ends if it has fewer; *lines is how many there are up to there. */
static off_t end_of_line(const at_trainer *trainer, int64_t *lines, at_error *error)
{
    enum { ENOUGH = 20 }; /* bytes of a line that tell whether it counts */
    char bytes[4096], start[ENOUGH];
    size_t column = 0;
    int64_t most = *lines < 0 ? INT64_MAX : *lines;
    off_t end = 0;
    *lines = 0;
    for (ssize_t got; *lines < most && (got = read_part(trainer, end, bytes, sizeof bytes, error)) > 0;)
        for (ssize_t i = 0; i < got && *lines < most; i++, end++) {
            if (column < ENOUGH)
                start[column] = bytes[i];
            column++;
            if (bytes[i] == '\n') {
                *lines += is_counted(start, column < ENOUGH ? column : ENOUGH);
                column = 0;
            }
        }
    return end;
}

/* The seconds of a report of this update that begins at an offset of the log; 0 if there is none. */
static double seconds_of_report(const at_trainer *trainer, off_t begin, int64_t update, at_error *error)
{
    char line[1000];
    at_error unread = {0};
    const ssize_t got = read_part(trainer, begin, line, sizeof line, error);
    const char *end = got > 0 ? memchr(line, '\n', (size_t)got) : NULL;
    json_t *report = end ? at_json_read(line, (size_t)(end - line), "a report", &unread) : NULL;
    const char *event = json_string_value(json_object_get(report, "event"));
    const bool found =
        event && strcmp(event, "update") == 0 && json_integer_value(json_object_get(report, "update")) == update;
    const double seconds = found ? json_number_value(json_object_get(report, "seconds")) : 0;
    json_decref(report);
    return seconds;
}

/* What was written after the state was saved, by a run that was killed or as its last report, is written again. */
bool at_trainer_log_resume(at_trainer *trainer, at_error *error)
{
    at_progress *p = &trainer->progress;
    int64_t lines = p->logged;
    const off_t end = end_of_line(trainer, &lines, error);
    if (error->code != AT_OK)
        return false;
    if (p->logged < 0)
        p->logged = lines;
    if (lines < p->logged) /* somebody shortened it */
        return true;
    trainer->seconds_before = seconds_of_report(trainer, end, at_optimiser_steps(trainer->optimiser), error);
    if (error->code != AT_OK)
        return false;
    return ftruncate(trainer->log, end) == 0 || at_file_fail(error, "write", trainer->log_path, errno);
}
