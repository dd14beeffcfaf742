/* The files that a run writes: their names, and that none of them replaces a file by mistake. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "store/model_file.h"
#include "text/file_list.h"
#include "train/train_internal.h"

/* The path of a file next to the output. */
static char *path_beside(const char *output, const char *ending, at_error *error)
{
    at_buffer path = {0};
    at_buffer_print(&path, "%s%s", output, ending);
    if (path.failed)
        at_no_memory(error, "the name '%s%s'", output, ending);
    return path.failed ? NULL : path.bytes;
}

/* No output file may overwrite an input file. */
static bool check_inputs(const at_trainer *trainer, at_error *error)
{
    const at_train_settings *s = trainer->settings;
    const char *const written[] = {s->output, trainer->last_path, trainer->state_path, trainer->log_path};
    const struct {
        const char *option, *path;
    } read[] = {{"source", s->train.source},
                {"target", s->train.target},
                {"tsv", s->train.tsv},
                {"valid-source", s->valid.source},
                {"valid-target", s->valid.target},
                {"valid-tsv", s->valid.tsv},
                {"guided-alignment", s->guided_alignment},
                {"init", s->init},
                {"source-vocab", s->source_vocabulary},
                {"target-vocab", s->target_vocabulary}};
    for (size_t r = 0; r < sizeof read / sizeof *read && error->code == AT_OK; r++) {
        at_file_list list;
        if (!at_file_list_split(read[r].path, &list, error))
            return false;
        for (int i = 0; i < list.count; i++)
            for (size_t w = 0; w < sizeof written / sizeof *written && error->code == AT_OK; w++)
                if (at_file_same(list.path[i], written[w]))
                    at_fail(error, AT_USAGE, "`output` would overwrite '%s', which `%s` reads; choose another file",
                            list.path[i], read[r].option);
        at_file_list_free(&list);
    }
    return error->code == AT_OK;
}

/* An output that cannot be written is reported before hours of training, not after. */
static bool can_write(const char *path, at_error *error)
{
    at_writer *writer = at_writer_open(path, error);
    const bool opened = writer;
    at_writer_cancel(writer);
    return opened;
}

/* ---- Files of an earlier run ---------------------------------------------------------------------------------- */

/* A file with contents that would be lost; neither a device nor a pipe. */
static bool is_filled(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
}

int64_t at_updates_in_model(const char *path, at_error *error)
{
    at_error unread = {0};
    at_tensors *file = access(path, F_OK) == 0 ? at_tensors_read(path, &unread) : NULL;
    const bool intact = file && at_file_check(file, "model", path, &unread);
    const char *history = intact ? at_tensors_meta(file, "history") : NULL;
    json_t *entries = history ? at_json_read(history, strlen(history), "the history", &unread) : NULL;
    json_t *last = json_array_get(entries, json_array_size(entries) - 1);
    const int64_t updates = json_integer_value(json_object_get(last, "update"));
    json_decref(entries);
    at_tensors_free(file);
    if (unread.code == AT_MEMORY || unread.code == AT_FILE) /* a damaged one, on the other hand, is no model */
        at_fail(error, unread.code, "%s", unread.text);
    return updates;
}

static int64_t updates_in_state(const char *path)
{
    at_error unread = {0};
    at_tensors *file = at_tensors_read(path, &unread);
    const int64_t updates = file ? at_optimiser_steps_in(file) : 0;
    at_tensors_free(file);
    return updates;
}

/* A model or a state is only replaced on request. */
static bool refuse_replacing(const at_trainer *trainer, bool has_model, bool has_state, at_error *error)
{
    const char *output = trainer->settings->output, *state = trainer->state_path;
    const int64_t of_state = has_state ? updates_in_state(state) : 0;
    at_error unread = {0};
    const int64_t updates = of_state > 0 ? of_state : has_model ? at_updates_in_model(output, &unread) : 0;
    char from[60] = "";
    if (updates > 0)
        snprintf(from, sizeof from, ", from a run of %lld update%s", (long long)updates, updates == 1 ? "" : "s");
    return at_fail(error, AT_FILE,
                   "'%s' exists%s: %s`overwrite` starts again and replaces it at the first save; or choose another "
                   "`output`",
                   has_model ? output : state, from, has_state ? "`resume` continues the run, " : "");
}

bool at_trainer_check_existing(at_trainer *trainer, at_error *error)
{
    const at_train_settings *s = trainer->settings;
    const bool has_model = is_filled(s->output), has_state = is_filled(trainer->state_path);
    trainer->replaces = has_model || has_state;
    if (s->resume && has_model && !has_state)
        return at_fail(error, AT_FILE,
                       "'%s' exists, but without '%s' there is nothing to `resume`: `overwrite` starts again and "
                       "replaces it at the first save; or choose another `output`",
                       s->output, trainer->state_path);
    return s->resume || s->overwrite || !trainer->replaces || refuse_replacing(trainer, has_model, has_state, error);
}

bool at_trainer_name_files(at_trainer *trainer, at_error *error)
{
    const char *output = trainer->settings->output;
    trainer->last_path = path_beside(output, ".last", error);
    trainer->state_path = path_beside(output, ".state", error);
    trainer->log_path = path_beside(output, ".log.jsonl", error);
    return error->code == AT_OK && check_inputs(trainer, error) && can_write(output, error);
}
