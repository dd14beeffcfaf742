/* The training loop: batches, updates, validations, saves, in an order that a resumed run repeats exactly. */
#include "train/train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/replace_file.h"
#include "train/train_internal.h"

enum { REPORT_EVERY = 100 };

/* Why the run ends now; NULL: it goes on. */
static const char *reason_to_end(const at_run *run)
{
    const at_train_settings *s = run->trainer->settings;
    const at_progress *p = &run->trainer->progress;
    if (run->stop && __atomic_load_n(run->stop, __ATOMIC_RELAXED)) /* another thread may write it */
        return "interrupted";
    if (s->early_stopping > 0 && p->failures >= s->early_stopping)
        return "early-stopping";
    if (s->updates > 0 && at_optimiser_steps(run->trainer->optimiser) >= s->updates)
        return "updates";
    if (s->epochs > 0 && p->epoch > s->epochs)
        return "epochs";
    return s->minutes > 0 && at_seconds_now() - run->started >= 60 * s->minutes ? "minutes" : NULL;
}

static bool limits_reached(at_run *run)
{
    run->reason = reason_to_end(run);
    run->result->interrupted = run->reason && strcmp(run->reason, "interrupted") == 0;
    run->result->stopped_early = run->reason && strcmp(run->reason, "early-stopping") == 0;
    return run->reason;
}

/* Ends a run whose parameters or losses are not finite. What is in memory is of no use, so no file is written: the model
 * of the last save stays. */
static bool stop_diverged(const at_run *run, const char *why, at_error *error)
{
    const at_trainer *t = run->trainer;
    const char *path = t->valid ? t->last_path : t->settings->output;
    char kept[250] = "no model was written";
    if (t->saved >= 0 && access(path, F_OK) == 0)
        snprintf(kept, sizeof kept, "'%.150s' holds the last model saved, that of update %lld", path,
                 (long long)t->saved);
    return at_fail(error, AT_FAILED, "%s, so training stops; %s; a smaller `learning-rate` or `clip-norm` may help",
                   why, kept);
}

/* The random numbers of a slice depend on its number, not on those that other slices took. One slice per update takes them one
 * after the other. */
static at_rng rng_of_slice(const at_trainer *t, int64_t slice)
{
    const at_rng *rng = &t->loss.rng;
    uint32_t word[4];
    if (t->settings->accumulate <= 1)
        return *rng;
    at_philox(rng->seed, rng->counter + (uint64_t)slice, 1, word);
    return (at_rng){.seed = (uint64_t)word[1] << 32 | word[0]};
}

/* Computes the slices of this rank and adds up their gradients. */
static bool add_slices(at_trainer *t, int64_t slices, at_error *error)
{
    const at_branch own = at_slices_of(slices, at_group_rank(t->group), at_group_size(t->group));
    const at_rng before = t->loss.rng;
    const double baseline = t->loss.baseline;
    at_rng after = before;
    if (!at_slices_start(t->slices, slices, error))
        return false;
    at_batches_skip(t->batches, own.from);
    for (int64_t i = own.from; i < own.to; i++) {
        at_batch batch;
        at_slice_result *slice = &t->slice[i];
        t->loss.rng = rng_of_slice(t, i);
        t->loss.baseline = baseline;
        t->loss.watch = at_slices_watch(t->slices, slices, i);
        if (!at_batches_next(t->batches, &batch) || !at_batch_loss(&t->loss, &batch, true, &slice->cost, error) ||
            !at_slices_add(t->slices, slices, i, error))
            break;
        slice->tokens = (double)batch.target_tokens;
        slice->rows = batch.rows;
        slice->baseline = t->loss.baseline;
        after = t->loss.rng;
        t->loss.rng = before;
    }
    t->loss.rng = t->settings->accumulate <= 1 ? after : (at_rng){before.seed, before.counter + (uint64_t)slices};
    t->loss.baseline = baseline;
    at_batches_skip(t->batches, slices - own.to);
    t->loss.watch = NULL;
    return at_slices_finish(t->slices, slices, error);
}

/* One update from up to `accumulate` batches, its slices. *has_batch is false at the end of an epoch. */
static bool update(at_run *run, bool *has_batch, bool *skipped, at_error *error)
{
    at_trainer *t = run->trainer;
    const int64_t most = t->settings->accumulate > 0 ? t->settings->accumulate : 1, left = at_batches_left(t->batches);
    const int64_t slices = left < most ? left : most;
    double cost = 0, tokens = 0, baseline = 0;
    *has_batch = slices > 0;
    *skipped = false;
    if (*has_batch && (!add_slices(t, slices, error) || !at_trainer_gather_slices(t, slices, error)))
        return false;
    for (int64_t i = 0; i < slices; i++) {
        cost += t->slice[i].cost;
        tokens += t->slice[i].tokens;
        baseline += t->slice[i].baseline;
        t->progress.sentences += t->slice[i].rows;
    }
    if (*has_batch)
        t->loss.baseline = baseline / (double)slices;
    t->progress.batch += slices;
    if (!*has_batch)
        return true;
    run->unsaved = true;
    /* without a finite loss the gradients mean nothing, whatever they are: a factor of NaN skips them */
    at_error step = {0};
    if (!at_optimiser_step(t->optimiser, isfinite(cost) ? 1 / tokens : NAN, &t->progress.norm, skipped, &step))
        return at_group_is_lost(t->group) ? at_fail(error, AT_FAILED, "%s", step.text)
                                          : stop_diverged(run, step.text, error);
    run->all_tokens += tokens;
    if (*skipped) {
        t->progress.skipped++;
        at_train_news news = at_run_news(run, AT_NEWS_SKIPPED);
        news.text = "the gradient is not finite, so this update is skipped";
        at_trainer_tell(t, &news);
        return true;
    }
    t->progress.skipped = 0;
    t->progress.cost += cost;
    t->progress.tokens += tokens;
    t->progress.report_cost += cost;
    t->progress.report_tokens += tokens;
    t->progress.unreported++;
    run->timed_tokens += tokens;
    at_run_watch(run, cost, tokens);
    return true;
}

/* Takes the scores of a validation in. Whether they are the best so far. */
static bool is_better(at_run *run, const at_validation *v)
{
    at_progress *p = &run->trainer->progress;
    const double score = v->score[0].score;
    const bool better = at_metric_better(v->score[0].metric, score, p->best);
    p->cost = p->tokens = 0;
    p->validated = at_optimiser_steps(run->trainer->optimiser);
    p->failures = better ? 0 : p->failures + 1;
    if (better) {
        p->best = score;
        p->best_update = p->validated;
    }
    return better;
}

/* Scores the model, and saves it if it is the best so far. */
static bool score_model(at_run *run, at_error *error)
{
    at_trainer *t = run->trainer;
    const double began = at_seconds_now();
    at_validation v;
    if (!at_run_collect(run, error))
        return false;
    bool done = at_validate(t, &v, error);
    if (done && v.diverged)
        done = stop_diverged(run, "the model's scores of the validation data are not finite", error);
    if (done && at_run_add_history(run, &v, error)) {
        const bool better = is_better(run, &v);
        at_run_tell_validation(run, &v, better, at_seconds_now() - began);
        done = (!better || at_trainer_save_best(t, error)) && at_run_log_validation(run, &v, better, error);
    }
    at_validation_free(&v);
    return done && error->code == AT_OK;
}

static bool validate(at_run *run, at_error *error)
{
    at_trainer *t = run->trainer;
    if (!score_model(run, error))
        return false;
    if (t->average)
        at_average_add(t->average, t->progress.validated);
    return true;
}

/* A run that ends between two validations scores its last parameters too, and saves them if they are the best. A longer
 * run would not validate at this update, so the result is not part of the state: a resumed run continues without it. */
static bool validate_end(at_run *run, at_error *error)
{
    at_trainer *t = run->trainer;
    const at_progress before = t->progress;
    const size_t history = t->history.size;
    if (!score_model(run, error))
        return false;
    if (before.best_update == 0 && !t->settings->keep_previous)
        at_file_forget(t->settings->output); /* the state has no best model to restore */
    run->result->best_score = t->progress.best;
    run->result->best_update = t->progress.best_update;
    t->progress = before;
    at_buffer_cut(&t->history, history);
    return true;
}

/* `regular`: an uninterrupted run saves here, too. */
static bool save(at_run *run, bool regular, at_error *error)
{
    if (!at_run_collect(run, error) || !at_trainer_save(run->trainer, regular, error))
        return false;
    at_train_news news = at_run_news(run, AT_NEWS_SAVED);
    news.text = run->trainer->state_path;
    run->unsaved = false;
    at_trainer_tell(run->trainer, &news);
    return true;
}

/* Reports, validates and saves when they are due. The state is saved last, so that a resumed run repeats none of it. */
static bool after_update(at_run *run, at_error *error)
{
    const at_train_settings *s = run->trainer->settings;
    int64_t now = at_optimiser_steps(run->trainer->optimiser);
    int64_t every = s->report_every > 0 ? s->report_every : REPORT_EVERY;
    at_train_news tick = at_run_news(run, AT_NEWS_TICK);
    at_trainer_tell(run->trainer, &tick);
    if (now % every == 0 && !at_run_report(run, error))
        return false;
    bool valid_due = run->trainer->valid && s->valid_every > 0 && now % s->valid_every == 0;
    bool save_due = s->save_every > 0 && now % s->save_every == 0;
    return (!valid_due || validate(run, error)) && (!(valid_due || save_due) || save(run, true, error));
}

bool at_trainer_seek(at_trainer *t, int64_t epoch, int64_t batch, at_error *error)
{
    return (!t->sampling || at_subword_sampling_set_epoch(t->sampling, epoch, error)) &&
           at_batches_seek(t->batches, epoch, batch, error);
}

static bool after_epoch(at_run *run, at_error *error)
{
    at_trainer *t = run->trainer;
    at_progress *p = &t->progress;
    bool valid_due = t->valid && t->settings->valid_every == 0;
    if (valid_due && !validate(run, error))
        return false;
    run->unsaved = true;
    p->epoch++;
    p->batch = p->sentences = 0;
    return at_trainer_seek(t, p->epoch, 0, error) &&
           (!(valid_due || t->settings->save_every == 0) || save(run, true, error));
}

static bool stop_skipping(const at_run *run, at_error *error)
{
    char why[120];
    snprintf(why, sizeof why, "the gradients of %d updates in a row after update %lld were not finite", AT_MOST_SKIPPED,
             (long long)at_optimiser_steps(run->trainer->optimiser));
    return stop_diverged(run, why, error);
}

/* Whether this run was interrupted before it has a model worth replacing that of another run. */
static bool keeps_old_files(const at_run *run)
{
    const at_trainer *t = run->trainer;
    return run->result->interrupted && t->replaces && !t->has_begun;
}

/* On a rank that follows. */
static bool update_along(at_run *run, at_error *error)
{
    bool has_batch, skipped;
    return update(run, &has_batch, &skipped, error);
}

static bool train(at_run *run, at_error *error)
{
    at_trainer *t = run->trainer;
    at_error place = {0};
    if (!at_trainer_seek(t, t->progress.epoch, t->progress.batch, &place))
        return place.code == AT_FORMAT
                   ? at_fail(error, AT_FORMAT, "cannot resume from '%s': %s", t->state_path, place.text)
                   : at_fail(error, place.code, "%s", place.text);
    while (!limits_reached(run)) {
        bool has_batch, skipped;
        if (!at_run_order(run, AT_ORDER_UPDATE, error))
            return false;
        run->dissolved = !update(run, &has_batch, &skipped, error);
        if (run->dissolved)
            return false;
        if (t->progress.skipped >= AT_MOST_SKIPPED)
            return stop_skipping(run, error);
        if (has_batch ? !skipped && !after_update(run, error) : !after_epoch(run, error))
            return false;
    }
    /* The report of the updates since the last one is not part of the state: a longer run would report later. */
    if (run->unsaved && !keeps_old_files(run) && !save(run, false, error))
        return false;
    if (t->progress.unreported > 0 && !at_run_report(run, error))
        return false;
    if (t->valid && t->progress.validated != at_optimiser_steps(t->optimiser) && !run->result->interrupted)
        return validate_end(run, error);
    run->result->best_score = t->progress.best;
    run->result->best_update = t->progress.best_update;
    return true;
}

/* Trains, and writes the files and the log. The other ranks learn how it ended. */
static bool lead(at_run *run, at_error *error)
{
    const bool done = at_run_start(run, error) && train(run, error) && at_run_end(run, error) &&
                      at_trainer_log_sync(run->trainer, error);
    return (run->dissolved || at_run_order(run, AT_ORDER_END, error)) && done;
}

bool at_train(const at_train_settings *settings, at_train_listener *listener, void *context, const volatile int *stop,
              at_train_result *result, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    *result = (at_train_result){.best_score = NAN, .cost = NAN, .saved = -1};
    if (settings->valid_only)
        return at_train_validate_only(settings, listener, context, result, error);
    at_trainer trainer = {.settings = settings, .listener = listener, .context = context, .log = -1};
    bool done = at_group_join(&trainer.group, settings->rank_timeout, stop, error);
    if (at_group_rank(trainer.group) > 0)
        trainer.listener = NULL;
    done = done && at_trainer_prepare(&trainer, error);
    done = at_trainer_join(&trainer, error) && done;
    if (done) {
        double now = at_seconds_now();
        at_run run = {.trainer = &trainer,
                      .stop = stop,
                      .started = now,
                      .reported = now - trainer.seconds_before,
                      .timed_tokens = trainer.seconds_before > 0 ? trainer.progress.report_tokens : 0,
                      .result = result};
        run.first_update = at_optimiser_steps(trainer.optimiser);
        done = at_group_rank(trainer.group) > 0 ? at_run_follow(&run, update_along, error) : lead(&run, error);
        result->updates = at_optimiser_steps(trainer.optimiser);
        result->epochs = trainer.progress.epoch - 1;
        result->saved = trainer.saved;
        result->parameters = at_params_count(trainer.translator.model->params);
        result->seconds = at_seconds_now() - now;
        result->words_per_second = result->seconds > 0 ? run.all_tokens / result->seconds : 0;
    }
    at_trainer_release(&trainer);
    return done;
}
