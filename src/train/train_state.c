/* The files of a trainer: the models, and the state that a resumed run continues from. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/json.h"
#include "base/utf8.h"
#include "io/dtype.h"
#include "kernels/rows.h"
#include "store/model_file.h"
#include "store/replace_file.h"
#include "train/train_internal.h"

/* ---- The first save ------------------------------------------------------------------------------------------- */

/* A state without updates: whoever resumes from it starts from the beginning. It stands for the run until its first
 * state is written, so that the models written before that are not taken for those of another run, nor the state of
 * another run for the one that belongs to them. */
static bool save_beginning(at_trainer *trainer, at_error *error)
{
    int64_t none = 0;
    at_tensors *file = at_tensors_new();
    const bool done =
        file ? at_file_mark(file, "training state", error) &&
                   at_tensors_set_meta(file, "run", at_identity_text(trainer->identity), error) &&
                   at_tensors_put(file, "training.steps", &(at_array){.dtype = AT_I64, .data = &none}, error) &&
                   at_file_replace(file, trainer->state_path, trainer->settings->keep_previous, error)
             : at_no_memory(error, "the training state '%s'", trainer->state_path);
    at_tensors_free(file);
    return done;
}

static bool is_beginning(const at_tensors *file)
{
    return at_optimiser_steps_in(file) == 0 && !at_tensors_get(file, "training.place");
}

bool at_state_has_updates(const char *path)
{
    at_error unread = {0};
    at_tensors *file = access(path, F_OK) == 0 ? at_tensors_read(path, &unread) : NULL;
    const bool has = file && !is_beginning(file);
    at_tensors_free(file);
    return has;
}

/* From its first save on, the files are those of this run. */
static bool begin_files(at_trainer *trainer, at_error *error)
{
    if (trainer->has_begun)
        return true;
    trainer->has_begun =
        save_beginning(trainer, error) && at_trainer_log_begin(trainer, error) && at_trainer_log_open(trainer, error);
    return trainer->has_begun;
}

/* ---- The models ----------------------------------------------------------------------------------------------- */

void at_trainer_swap_average(at_trainer *trainer)
{
    at_params *params = trainer->translator.model->params;
    /* a validation without training has no optimiser */
    at_real *average = trainer->optimiser ? at_optimiser_ema(trainer->optimiser) : NULL,
            *values = at_params_values(params);
    if (trainer->average) {
        const int64_t now = at_optimiser_steps(trainer->optimiser);
        average = trainer->swapped ? trainer->swapped : at_average_mean(trainer->average, now);
        trainer->swapped = trainer->swapped ? NULL : average;
    }
    if (!average)
        return;
    for (int64_t i = 0; i < at_params_count(params); i++) {
        at_real value = values[i];
        values[i] = average[i];
        average[i] = value;
    }
    at_params_changed(params);
}

/* A model file holds the averaged parameters, if there is an average: those that were validated. */
bool at_trainer_write_model(at_trainer *trainer, const char *path, bool keep_previous, at_error *error)
{
    at_buffer history = {0};
    at_buffer_print(&history, "[%s]", trainer->history.size > 0 ? trainer->history.bytes : "");
    if (history.failed)
        return at_no_memory(error, "the history in '%s'", path);
    trainer->translator.history = history.bytes;
    trainer->translator.training = at_trainer_record_text(trainer, error);
    at_trainer_swap_average(trainer);
    bool done = at_translator_save(&trainer->translator, path, keep_previous, error);
    at_trainer_swap_average(trainer);
    free(trainer->translator.training);
    trainer->translator.history = trainer->translator.training = NULL;
    at_buffer_free(&history);
    return done;
}

bool at_trainer_save_best(at_trainer *trainer, at_error *error)
{
    return begin_files(trainer, error) && at_trainer_write_model(trainer, trainer->settings->output, true, error);
}

/* ---- The state ------------------------------------------------------------------------------------------------ */

/* Those of older versions had fewer: they did not count the lines of the log. */
enum { COUNTS = 11, OLD_COUNTS = 9, NUMBERS = 7, OLD_NUMBERS = 4 };

static void progress_to_numbers(const at_progress *p, int64_t count[COUNTS], double number[NUMBERS])
{
    const int64_t counts[COUNTS] = {p->epoch,       p->batch,     p->sentences,     p->skipped,          p->failures,
                                    p->best_update, p->validated, (int64_t)p->seed, (int64_t)p->counter, p->logged,
                                    p->unreported};
    const double numbers[NUMBERS] = {p->best,        p->cost,          p->tokens, p->baseline,
                                     p->report_cost, p->report_tokens, p->norm};
    memcpy(count, counts, sizeof counts);
    memcpy(number, numbers, sizeof numbers);
}

static void numbers_to_progress(const int64_t *count, const double *number, bool old, at_progress *p)
{
    *p = (at_progress){.epoch = count[0],
                       .batch = count[1],
                       .sentences = count[2],
                       .skipped = count[3],
                       .failures = count[4],
                       .best_update = count[5],
                       .validated = count[6],
                       .seed = (uint64_t)count[7],
                       .counter = (uint64_t)count[8],
                       .best = number[0],
                       .cost = number[1],
                       .tokens = number[2],
                       .baseline = number[3],
                       .logged = old ? -1 : count[9],
                       .unreported = old ? 0 : count[10],
                       .report_cost = old ? 0 : number[4],
                       .report_tokens = old ? 0 : number[5],
                       .norm = old ? 0 : number[6]};
}

static bool put_checkpoints(const at_trainer *trainer, at_tensors *file, at_error *error)
{
    at_buffer text = {0};
    const bool done =
        trainer->checkpoints.count == 0 || (at_checkpoints_to_text(&trainer->checkpoints, &text)
                                                ? at_tensors_set_meta(file, "checkpoints", text.bytes, error)
                                                : at_no_memory(error, "the list of checkpoints"));
    at_buffer_free(&text);
    return done;
}

static bool save_state(at_trainer *trainer, at_error *error)
{
    at_tensors *file = at_tensors_new();
    if (!file)
        return at_no_memory(error, "the training state '%s'", trainer->state_path);
    int64_t count[COUNTS];
    double number[NUMBERS];
    const bool keeps = trainer->settings->keep_previous && trainer->saved >= 0; /* not the one of save_beginning */
    trainer->progress.seed = trainer->loss.rng.seed;
    trainer->progress.counter = trainer->loss.rng.counter;
    trainer->progress.baseline = trainer->loss.baseline;
    progress_to_numbers(&trainer->progress, count, number);
    at_array counts = {.dtype = AT_I64, .rank = 1, .dim = {COUNTS}, .data = count};
    at_array numbers = {.dtype = AT_F64, .rank = 1, .dim = {NUMBERS}, .data = number};
    bool done = at_params_finite(trainer->translator.model->params, trainer->state_path, error) &&
                at_file_mark(file, "training state", error) &&
                at_tensors_set_meta(file, "run", at_identity_text(trainer->identity), error) &&
                at_tensors_set_meta(file, "kernels", at_kernels_numbers(), error) &&
                at_tensors_set_meta(file, "history", trainer->history.size > 0 ? trainer->history.bytes : "", error) &&
                put_checkpoints(trainer, file, error) && at_tensors_put(file, "training.place", &counts, error) &&
                at_tensors_put(file, "training.numbers", &numbers, error) &&
                at_params_put(trainer->translator.model->params, file, error) &&
                at_optimiser_save(trainer->optimiser, file, error) &&
                (!trainer->average || at_average_save(trainer->average, file, error)) &&
                at_file_replace(file, trainer->state_path, keeps, error);
    at_tensors_free(file);
    return done;
}

/* The state is written last: a run killed before that resumes from the previous state and writes the same models
 * again. Until then the best model of the previous state is kept, for restore_best. */
bool at_trainer_save(at_trainer *trainer, bool numbered, at_error *error)
{
    bool validates = trainer->valid;
    if (!begin_files(trainer, error) ||
        !(!validates || at_trainer_write_model(trainer, trainer->last_path, false, error)) ||
        !(trainer->progress.best_update > 0 || at_trainer_save_best(trainer, error)) ||
        !(!numbered || at_trainer_save_numbered(trainer, error)) || !at_trainer_log_sync(trainer, error) ||
        !save_state(trainer, error)) /* the state counts the lines of the log */
        return false;
    trainer->saved = at_optimiser_steps(trainer->optimiser);
    at_trainer_remove_oldest(trainer);
    if (!trainer->settings->keep_previous) {
        at_file_forget(trainer->settings->output);
        at_file_forget(trainer->state_path);
    }
    return true;
}

/* Moments and averages beside the parameters. The square of a gradient may have overflowed to an infinity, which only
 * stops the update of that parameter; nothing of training is ever a NaN. */
static bool moments_finite(const at_tensors *file, const char *path, at_error *error)
{
    for (int i = 0; i < at_tensors_count(file); i++) {
        const char *name = at_tensors_name(file, i);
        const at_array *array = at_tensors_get(file, name);
        const bool is_moment = strcmp(name, "training.first") == 0 || strcmp(name, "training.second") == 0;
        if (strncmp(name, "training.", 9) == 0 && strcmp(name, "training.numbers") != 0 &&
            array->dtype == AT_REAL_DTYPE && !at_array_finite(array, name, path, !is_moment, error))
            return false;
    }
    return true;
}

typedef struct range {
    const char *name;
    int64_t value, least, most;
} range;

/* Whether a run can have made this progress. Counts stay below 2^53, up to where a double holds each of them. */
static bool is_possible(const at_progress *p, int64_t updates, const char *path, at_error *error)
{
    const int64_t most = INT64_C(1) << 53;
    const range ranges[] = {{"number of updates", updates, 0, most},
                            {"epoch", p->epoch, 1, most},
                            {"number of batches", p->batch, 0, most},
                            {"number of sentences", p->sentences, 0, most},
                            {"number of skipped updates", p->skipped, 0, AT_MOST_SKIPPED - 1},
                            {"number of validations without a better score", p->failures, 0, most},
                            {"update of the best score", p->best_update, 0, updates},
                            {"update of the last validation", p->validated, 0, updates},
                            {"number of lines in the log", p->logged, -1, most},
                            {"number of updates since the last report", p->unreported, 0, updates}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const range *r = &ranges[i];
        if (r->value < r->least || r->value > r->most)
            return at_fail(error, AT_FORMAT, "'%s' is damaged: its %s is %lld, and must be from %lld to %lld", path,
                           r->name, (long long)r->value, (long long)r->least, (long long)r->most);
    }
    const double finite[] = {p->cost, p->tokens, p->baseline, p->report_cost, p->report_tokens};
    for (size_t i = 0; i < sizeof finite / sizeof *finite; i++)
        if (!isfinite(finite[i]))
            return at_fail(error, AT_FORMAT, "'%s' is damaged: its sums of losses and tokens hold %g", path, finite[i]);
    if (p->tokens < 0 || p->report_tokens < 0)
        return at_fail(error, AT_FORMAT, "'%s' is damaged: its numbers of tokens are %g and %g", path, p->tokens,
                       p->report_tokens);
    if (p->best_update > 0 && isnan(p->best))
        return at_fail(error, AT_FORMAT, "'%s' is damaged: its best score, that of update %lld, is not a number", path,
                       (long long)p->best_update);
    return true;
}

/* The entries of a history, which model files contain as the array [...]. */
static bool is_history(const char *entries, const char *path, at_error *error)
{
    at_buffer text = {0};
    at_error unread = {0};
    at_buffer_print(&text, "[%s]", entries);
    if (text.failed)
        at_no_memory(&unread, "the history");
    json_t *array = text.failed ? NULL : at_json_read(text.bytes, text.size, "the history", &unread);
    json_decref(array);
    at_buffer_free(&text);
    return array || at_fail(error, unread.code, "'%s' is damaged: %s", path, unread.text);
}

/* Other kernels have other last bits. States of older versions do not name theirs. */
static void compare_kernels(at_trainer *trainer, const at_tensors *file)
{
    const char *then = at_tensors_meta(file, "kernels");
    char shown[AT_SHOWN];
    if (!then || strcmp(then, at_kernels_numbers()) == 0)
        return;
    at_shown(then, shown, sizeof shown);
    at_trainer_note(
        trainer,
        "'%s' was written with the kernels '%s', and this run uses '%s': it continues, but not with the bits "
        "of an uninterrupted run; ATTEND_ISA=%s selects those kernels, where the processor has them",
        trainer->state_path, shown, at_kernels_name(), shown);
}

static bool read_state(at_trainer *trainer, const at_tensors *file, at_error *error)
{
    const char *path = trainer->state_path, *run = at_tensors_meta(file, "run"),
               *history = at_tensors_meta(file, "history");
    const at_array *count = at_tensors_get(file, "training.place"), *number = at_tensors_get(file, "training.numbers");
    if (!at_file_check(file, "training state", path, error))
        return false;
    if (is_beginning(file)) {
        if (!run)
            return at_fail(error, AT_FORMAT,
                           "'%s' does not say what it is a state of; train from the start with `overwrite`", path);
        at_trainer_note(trainer, "'%s' is of a run without a complete save, so training starts from the beginning",
                        path);
        return at_trainer_same(trainer, run, error);
    }
    const bool old = count && at_array_count(count) == OLD_COUNTS;
    if (!run || !history || !count || !number || count->dtype != AT_I64 ||
        at_array_count(count) != (old ? OLD_COUNTS : COUNTS) || number->dtype != AT_F64 ||
        at_array_count(number) != (old ? OLD_NUMBERS : NUMBERS))
        return at_fail(error, AT_FORMAT, "'%s' lacks its position in the data; train from the start with `overwrite`",
                       path);
    if (!is_history(history, path, error) || !at_trainer_same(trainer, run, error) ||
        !at_params_take(trainer->translator.model->params, file, path, "training.", error) ||
        !moments_finite(file, path, error) || !at_optimiser_load(trainer->optimiser, file, error))
        return false;
    const char *checkpoints = at_tensors_meta(file, "checkpoints");
    if (checkpoints && !at_checkpoints_from_text(&trainer->checkpoints, checkpoints, path, error))
        return false;
    const int64_t updates = at_optimiser_steps(trainer->optimiser);
    numbers_to_progress(count->data, number->data, old, &trainer->progress);
    if (!is_possible(&trainer->progress, updates, path, error) ||
        (trainer->average && !at_average_load(trainer->average, file, updates, error)))
        return false;
    trainer->loss.rng = (at_rng){.seed = trainer->progress.seed, .counter = trainer->progress.counter};
    trainer->loss.baseline = trainer->progress.baseline;
    at_buffer_add(&trainer->history, history, strlen(history));
    trainer->saved = updates;
    trainer->has_begun = true; /* the files are those of this run */
    trainer->replaces = false;
    trainer->old_log = 0;
    at_trainer_remove_oldest(trainer); /* a killed run may not have come to it */
    compare_kernels(trainer, file);
    return true;
}

/* The end of the previous run may have been validated outside of the state and saved as the best model. An uninterrupted
 * run would still have the best model before it, so that one is restored. */
static bool restore_best(at_trainer *trainer, at_error *error)
{
    const char *output = trainer->settings->output;
    const int64_t best = trainer->progress.best_update;
    at_buffer previous = {0};
    at_buffer_print(&previous, "%s.previous", output);
    if (previous.failed)
        return at_no_memory(error, "the names of '%s'", output);
    const int64_t now = best > 0 ? at_updates_in_model(output, error) : 0;
    if (now > best && at_updates_in_model(previous.bytes, error) == best && at_file_restore(output, error)) {
        at_trainer_note(trainer,
                        "'%s' is again the best model of the state, that of update %lld; the model that the last run "
                        "validated at its end, that of update %lld, is '%s' until the next save",
                        output, (long long)best, (long long)now, previous.bytes);
    }
    at_buffer_free(&previous);
    return error->code == AT_OK;
}

bool at_trainer_resume(at_trainer *trainer, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    if (access(trainer->state_path, F_OK) != 0) {
        at_trainer_note(trainer, "'%s' does not exist yet, so training starts from the beginning", trainer->state_path);
        return true;
    }
    at_tensors *file = at_tensors_read(trainer->state_path, error);
    const bool done = file && read_state(trainer, file, error) &&
                      (!trainer->has_begun || (restore_best(trainer, error) && at_trainer_log_resume(trainer, error)));
    at_tensors_free(file);
    return done;
}
