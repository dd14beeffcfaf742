/* Numbered checkpoints: with `keep` N every regular save also writes the model as OUTPUT.000400, by its update, and the
 * oldest are removed. The state lists those that the run has written, so a resumed run removes these and no other file.
 * The save at the end of a run, or at an interrupt, writes none: a longer run would not save there. */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "train/train_internal.h"

enum { DIGITS = 6 }; /* at least, so that the names sort by update */

static char *path_of(const at_trainer *trainer, int64_t update, at_error *error)
{
    at_buffer path = {0};
    at_buffer_print(&path, "%s.%0*lld", trainer->settings->output, DIGITS, (long long)update);
    if (path.failed)
        at_no_memory(error, "the name of a checkpoint");
    return path.failed ? NULL : path.bytes;
}

static bool add(at_checkpoints *list, int64_t update, at_error *error)
{
    if (list->count > 0 && list->update[list->count - 1] == update)
        return true;
    if (!AT_GROW(list->update, list->room, (size_t)list->count + 1))
        return at_no_memory(error, "the list of checkpoints");
    list->update[list->count++] = update;
    return true;
}

bool at_trainer_save_numbered(at_trainer *trainer, at_error *error)
{
    const int64_t now = at_optimiser_steps(trainer->optimiser);
    if (trainer->settings->keep == 0 || now == 0)
        return true;
    char *path = path_of(trainer, now, error);
    const bool done =
        path && at_trainer_write_model(trainer, path, false, error) && add(&trainer->checkpoints, now, error);
    free(path);
    return done;
}

/* A file that is gone already is no error. */
void at_trainer_remove_oldest(at_trainer *trainer)
{
    at_checkpoints *list = &trainer->checkpoints;
    const int64_t keep = trainer->settings->keep;
    while (keep > 0 && list->count > keep) {
        at_error ignored = {0};
        char *path = path_of(trainer, list->update[0], &ignored);
        if (path)
            unlink(path);
        free(path);
        memmove(list->update, list->update + 1, (size_t)--list->count * sizeof *list->update);
    }
}

/* ---- In the state --------------------------------------------------------------------------------------------- */

bool at_checkpoints_to_text(const at_checkpoints *list, at_buffer *text)
{
    for (int64_t i = 0; i < list->count; i++)
        at_buffer_print(text, "%s%lld", i > 0 ? "," : "", (long long)list->update[i]);
    return !text->failed;
}

bool at_checkpoints_from_text(at_checkpoints *list, const char *text, const char *path, at_error *error)
{
    int64_t last = 0;
    while (*text) {
        char *end;
        const long long update = isdigit((unsigned char)*text) ? strtoll(text, &end, 10) : 0;
        if (update <= last || (*end && (*end != ',' || !end[1])))
            return at_fail(error, AT_FORMAT, "'%s' is damaged: its list of checkpoints is not one of updates", path);
        if (!add(list, update, error))
            return false;
        last = update;
        text = end + (*end == ',');
    }
    return true;
}

void at_checkpoints_free(at_checkpoints *list)
{
    free(list->update);
}

/* ---- Those of another run ------------------------------------------------------------------------------------- */

/* Whether NAME is FILE.000400 */
static bool is_numbered(const char *name, const char *file)
{
    const size_t length = strlen(file);
    if (strncmp(name, file, length) != 0 || name[length] != '.')
        return false;
    const size_t digits = strspn(name + length + 1, "0123456789");
    return digits >= DIGITS && name[length + 1 + digits] == '\0';
}

bool at_trainer_check_numbered(const at_trainer *trainer, at_error *error)
{
    const at_train_settings *s = trainer->settings;
    const char *slash = strrchr(s->output, '/'), *file = slash ? slash + 1 : s->output;
    if (s->keep == 0 || s->resume || s->overwrite)
        return true;
    char *folder = slash ? strndup(s->output, (size_t)(slash - s->output) + 1) : strdup(".");
    DIR *open = folder ? opendir(folder) : NULL;
    char found[256] = "";
    for (struct dirent *entry; open && !found[0] && (entry = readdir(open));)
        if (is_numbered(entry->d_name, file))
            snprintf(found, sizeof found, "%s", entry->d_name);
    if (open)
        closedir(open);
    if (!folder)
        at_no_memory(error, "the folder of '%s'", s->output);
    else if (found[0])
        at_fail(error, AT_FILE,
                "'%s%s' exists, a checkpoint of another run: `overwrite` lets `keep` replace such files; or choose "
                "another `output`",
                slash ? folder : "", found);
    free(folder);
    return error->code == AT_OK;
}
