/* The log of a run, OUTPUT.log.jsonl, and its lock: two runs cannot write the same output. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

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
        trainer->log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
        if (trainer->log < 0 && errno == ELOOP)
            return at_fail(error, AT_FILE, "cannot write '%s': it is a symbolic link; remove it", path);
        if (trainer->log < 0)
            return at_fail(error, AT_FILE, "cannot write '%s': %s", path, strerror(errno));
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
    /* Without `resume` the log begins empty. */
    if (!trainer->settings->resume && ftruncate(trainer->log, 0) != 0)
        return at_fail(error, AT_FILE, "cannot write '%s': %s", path, strerror(errno));
    return true;
}

void at_trainer_unlock(at_trainer *trainer)
{
    struct stat status;
    if (trainer->log < 0)
        return;
    if (fstat(trainer->log, &status) == 0 && status.st_size == 0)
        unlink(trainer->log_path); /* a run that failed before its first report leaves no file */
    close(trainer->log);           /* releases the lock */
    trainer->log = -1;
}

bool at_trainer_log(at_trainer *trainer, const char *line, size_t size, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    while (size > 0) {
        ssize_t done = write(trainer->log, line, size);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return at_fail(error, AT_FILE, "cannot write '%s': %s", trainer->log_path, strerror(errno));
        line += done;
        size -= (size_t)done;
    }
    return true;
}
