/* The training loop: batches, updates, reports, validations, saves, in an order that a resumed run repeats exactly. */
#include "train/train.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "train/guide_internal.h"
#include "train/train_internal.h"

enum { MOST_SKIPPED = 10, REPORT_EVERY = 100, MOST_AVERAGED = 1000 };

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void tell(at_trainer *trainer, const at_train_news *news)
{
    if (trainer->listener)
        trainer->listener(trainer->context, news);
}

void at_trainer_note(at_trainer *trainer, const char *format, ...)
{
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    tell(trainer, &(at_train_news){.what = AT_NEWS_NOTE, .text = text});
}

/* ---- Making ready --------------------------------------------------------------------------------------------- */

static char *beside(const char *output, const char *ending, at_error *error)
{
    at_buffer path = {0};
    at_buffer_print(&path, "%s%s", output, ending);
    if (path.failed)
        at_fail(error, AT_FAILED, "memory is out: there is no room for the name '%s%s'", output, ending);
    return path.failed ? NULL : path.bytes;
}

static void note_report(at_trainer *trainer, const char *what, const at_corpus_report *r)
{
    static const char *const rules[] = {"kept", "cut", "skipped"};
    const bool alone = trainer->settings->train.alone;
    if (r->empty > 0)
        at_trainer_note(trainer, "%lld of the %lld %s %s and are skipped, the first in line %lld", (long long)r->empty,
                        (long long)r->lines, what, alone ? "lines are empty" : "pairs have an empty side",
                        (long long)r->first_empty);
    if (r->too_long > 0)
        at_trainer_note(trainer, "%lld of the %lld %s %s are longer than %lld units and are %s, the first in line %lld",
                        (long long)r->too_long, (long long)r->lines, what, alone ? "lines" : "pairs",
                        (long long)trainer->settings->limits.max_length, rules[trainer->settings->limits.rule],
                        (long long)r->first_too_long);
    if (r->unlike > 0)
        at_trainer_note(trainer,
                        "%lld of the %lld %s pairs have a side more than %g times as long as the other and are "
                        "skipped, the first in line %lld",
                        (long long)r->unlike, (long long)r->lines, what, trainer->settings->limits.max_ratio,
                        (long long)r->first_unlike);
    if (r->replaced > 0)
        at_trainer_note(
            trainer, "%lld of the %lld %s %s hold bytes that are not UTF-8, read as U+FFFD, the first in line %lld",
            (long long)r->replaced, (long long)r->lines, what, alone ? "lines" : "pairs", (long long)r->first_replaced);
}

/* Puts before a sentence what it is about. */
static void say_whose(const char *whose, at_error *error)
{
    const at_error why = *error;
    *error = (at_error){0};
    at_fail(error, why.code, "%s: %s", whose, why.text);
}

static at_vocabulary *count_units(const at_lines *lines, const char *kind, at_cleaning cleaning, int first_side,
                                  int last_side, at_error *error)
{
    at_vocabulary *vocabulary = at_vocabulary_new(kind, error);
    if (vocabulary)
        at_vocabulary_normalise(vocabulary, cleaning);
    for (int side = first_side; vocabulary && side <= last_side; side++)
        at_lines_count_units(lines, side, vocabulary, error);
    if (vocabulary && at_vocabulary_fix(vocabulary, error))
        return vocabulary;
    if (error->code == AT_USAGE) /* a size that the text does not give */
        say_whose(first_side == 0 ? "--source-vocab" : "--target-vocab", error);
    at_vocabulary_free(vocabulary);
    return NULL;
}

static at_corpus *make_corpus(at_trainer *trainer, const at_lines *lines, const char *what, double max_ratio,
                              at_error *error)
{
    at_corpus_limits limits = trainer->settings->limits;
    at_corpus_report report = {0};
    limits.max_ratio = max_ratio;
    at_corpus *corpus =
        at_corpus_new(lines, trainer->translator.source, trainer->translator.target, &limits, &report, error);
    if (corpus)
        note_report(trainer, what, &report);
    else if (error->code != AT_OK)
        say_whose(what, error);
    if (corpus && at_corpus_count(corpus) == 0)
        at_fail(error, AT_FAILED, "none of the %lld %s pairs can be used", (long long)report.lines, what);
    return corpus;
}

/* The data, from files to batches. */
static bool prepare_data(at_trainer *trainer, at_error *error)
{
    const at_train_settings *s = trainer->settings;
    at_translator *t = &trainer->translator;
    at_lines *lines = at_lines_read(&s->train, error);
    if (lines) {
        bool joint = s->joint_vocabulary;
        if (!s->train.alone)
            t->source = count_units(lines, s->source_vocabulary, s->cleaning, 0, joint ? 1 : 0, error);
        if (error->code == AT_OK)
            t->target = joint ? at_vocabulary_copy(t->source, error)
                              : count_units(lines, s->target_vocabulary, s->cleaning, 1, 1, error);
    }
    trainer->train = t->target ? make_corpus(trainer, lines, "training", s->limits.max_ratio, error) : NULL;
    if (trainer->train && s->subword_sampling > 0)
        trainer->draws = at_draws_new(trainer->train, lines, t->source, t->target, s->subword_sampling,
                                      s->limits.max_length, s->seed, error);
    if (trainer->train && s->guided_alignment)
        trainer->guide = at_guide_new(s->guided_alignment, lines, t->source, t->target, error);
    at_lines_free(lines);
    if (error->code != AT_OK)
        return false;
    trainer->batches = at_batches_new(trainer->train, s->batch_size, s->batch_tokens, s->seed, true, error);
    if (s->valid.target || s->valid.tsv) {
        trainer->valid_lines = at_lines_read(&s->valid, error);
        if (trainer->valid_lines)
            trainer->valid = make_corpus(trainer, trainer->valid_lines, "validation", 0, error);
        if (error->code == AT_OK)
            trainer->valid_batches =
                at_batches_new(trainer->valid, s->batch_size, s->batch_tokens, s->seed, false, error);
    }
    return error->code == AT_OK;
}

/* The head that is to be guided. */
static bool head_exists(const at_model *model, at_error *error)
{
    int layers, heads, layer = 0, head = 0;
    if (!at_model_heads(model, &layers, &heads))
        return at_fail(error, AT_USAGE,
                       "model '%s' does not attend to a source, so --guided-alignment has no head to "
                       "teach",
                       model->kind->name);
    if (model->attention.normaliser == AT_HARD)
        return at_fail(error, AT_USAGE, "--guided-alignment teaches weights, and the normaliser 'hard' draws instead");
    if (!at_model_guided(&model->settings, &layer, &head) || layer > layers || head > heads)
        return at_fail(error, AT_USAGE, "--guided-head is '%s' and must be LAYER.HEAD, from 1.1 to %d.%d",
                       model->settings.guided_head, layers, heads);
    return true;
}

/* Tables of one size are not yet one table: row by row they must stand for the same units. */
static bool can_share(const at_translator *t, at_error *error)
{
    if (at_vocabulary_same(t->source, t->target, error))
        return true;
    return at_fail(error, AT_USAGE,
                   "--share-embeddings needs one vocabulary for both sides, and theirs, of %lld and %lld entries, "
                   "differ; --joint-vocab makes one",
                   (long long)at_vocabulary_size(t->source), (long long)at_vocabulary_size(t->target));
}

static bool prepare_model(at_trainer *trainer, at_error *error)
{
    at_translator *t = &trainer->translator;
    at_model_settings model = trainer->settings->model;
    model.source_size = t->source ? at_vocabulary_size(t->source) : 0;
    model.target_size = at_vocabulary_size(t->target);
    t->max_length = trainer->settings->limits.max_length;
    if (model.share_embeddings && t->source && !can_share(t, error))
        return false;
    t->model = at_model_new(&model, trainer->settings->seed, error);
    if (t->model && trainer->guide && !head_exists(t->model, error))
        return false;
    trainer->optimiser = t->model ? at_optimiser_new(&trainer->settings->optimiser, t->model->params, error) : NULL;
    if (trainer->optimiser && trainer->settings->average > 1)
        trainer->average = at_average_new(trainer->settings->average, t->model->params, error);
    trainer->arena = at_arena_new();
    if (!trainer->arena)
        at_fail(error, AT_FAILED, "memory is out: training cannot start");
    trainer->place = (at_progress){.epoch = 1, .best = NAN};
    /* Another stream than the one the parameters were drawn from. */
    trainer->rng = (at_rng){.seed = trainer->settings->seed ^ 0x9e3779b97f4a7c15u};
    return error->code == AT_OK && at_trainer_identify(trainer, error);
}

static bool check_settings(const at_train_settings *s, at_error *error)
{
    if ((s->batch_size > 0) == (s->batch_tokens > 0))
        return at_fail(error, AT_USAGE, "a batch is measured in sentences or in tokens: give one of the two");
    if (!(s->label_smoothing >= 0 && s->label_smoothing < 1))
        return at_fail(error, AT_USAGE, "label smoothing must be from 0 to below 1, not %g", s->label_smoothing);
    if (s->early_stopping > 0 && !s->valid.target && !s->valid.tsv)
        return at_fail(error, AT_USAGE, "early stopping needs validation data");
    if (s->accumulate < 0 || s->early_stopping < 0 || s->epochs < 0 || s->updates < 0 || !(s->minutes >= 0))
        return at_fail(error, AT_USAGE, "the limits of training must be 0 or more");
    if (s->average > MOST_AVERAGED)
        return at_fail(error, AT_USAGE, "--average takes the mean over %d validations at most, not %lld", MOST_AVERAGED,
                       (long long)s->average);
    if (!at_metric_known(s->valid_metric, error))
        return false;
    if (s->train.alone && at_metric_decodes(s->valid_metric))
        return at_fail(error, AT_USAGE,
                       "--valid-metric %s judges translations, and a language model has no source to translate; loss "
                       "and perplexity are for it",
                       s->valid_metric);
    return true;
}

/* What is read must still be there afterwards. */
static bool check_output(const at_trainer *trainer, at_error *error)
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
                {"source-vocab", s->source_vocabulary},
                {"target-vocab", s->target_vocabulary}};
    for (size_t r = 0; r < sizeof read / sizeof *read; r++)
        for (size_t w = 0; read[r].path && w < sizeof written / sizeof *written; w++)
            if (at_file_same(read[r].path, written[w]))
                return at_fail(error, AT_USAGE, "--output would write over '%s', which --%s reads; name another file",
                               read[r].path, read[r].option);
    return true;
}

/* A place that cannot be written to is better known before hours of training than after. */
static bool probe(const char *path, at_error *error)
{
    at_writer *writer = at_writer_open(path, error);
    at_writer_cancel(writer);
    return writer != NULL;
}

static bool prepare(at_trainer *trainer, at_error *error)
{
    const at_train_settings *s = trainer->settings;
    trainer->log = -1;
    if (!check_settings(s, error))
        return false;
    trainer->last_path = beside(s->output, ".last", error);
    trainer->state_path = beside(s->output, ".state", error);
    trainer->log_path = beside(s->output, ".log.jsonl", error);
    return error->code == AT_OK && check_output(trainer, error) && probe(s->output, error) &&
           prepare_data(trainer, error) && prepare_model(trainer, error) && at_trainer_lock(trainer, error) &&
           (!s->resume || at_trainer_resume(trainer, error));
}

static void release(at_trainer *trainer)
{
    at_trainer_unlock(trainer);
    at_model_free(trainer->translator.model);
    at_vocabulary_free(trainer->translator.source);
    at_vocabulary_free(trainer->translator.target);
    at_buffer_free(&trainer->history);
    at_draws_free(trainer->draws);
    at_guide_free(trainer->guide);
    at_batches_free(trainer->batches);
    at_batches_free(trainer->valid_batches);
    at_corpus_free(trainer->train);
    at_corpus_free(trainer->valid);
    at_lines_free(trainer->valid_lines);
    at_optimiser_free(trainer->optimiser);
    at_average_free(trainer->average);
    at_arena_free(trainer->arena);
    free(trainer->last_path);
    free(trainer->state_path);
    free(trainer->log_path);
    free(trainer->identity);
}

/* ---- The run -------------------------------------------------------------------------------------------------- */

/* What a run keeps beside the trainer: clocks and sums for the reports, none of which decides anything but an end by
 * --minutes. */
typedef struct run {
    at_trainer *trainer;
    const volatile int *stop;
    double started, reported;        /* when */
    int64_t first_update;            /* updates when this run began */
    double cost, tokens, all_tokens; /* since the last report; of the run */
    int64_t unreported;              /* updates since the last report */
    bool unsaved;                    /* something changed since the last save */
    double norm;
    at_train_result *result;
} run;

static bool limits_reached(run *r)
{
    const at_train_settings *s = r->trainer->settings;
    const at_progress *p = &r->trainer->place;
    if (r->stop && *r->stop) {
        r->result->interrupted = true;
        return true;
    }
    if (s->early_stopping > 0 && p->failures >= s->early_stopping) {
        r->result->stopped_early = true;
        return true;
    }
    return (s->updates > 0 && at_optimiser_steps(r->trainer->optimiser) >= s->updates) ||
           (s->epochs > 0 && p->epoch > s->epochs) || (s->minutes > 0 && seconds_now() - r->started >= 60 * s->minutes);
}

/* The share of the way done, by the limit that will be met first. */
static double share_done(const run *r)
{
    const at_train_settings *s = r->trainer->settings;
    const at_progress *p = &r->trainer->place;
    double done = NAN;
    if (s->updates > 0)
        done = fmax(done, (double)at_optimiser_steps(r->trainer->optimiser) / (double)s->updates);
    if (s->epochs > 0) {
        double within = (double)p->batch / (double)at_batches_count(r->trainer->batches);
        done = fmax(done, ((double)(p->epoch - 1) + within) / (double)s->epochs);
    }
    if (s->minutes > 0)
        done = fmax(done, (seconds_now() - r->started) / (60 * s->minutes));
    return done > 1 ? 1 : done;
}

static at_train_news news_now(const run *r, int what)
{
    const at_trainer *t = r->trainer;
    double now = seconds_now(), since = now - r->reported;
    double done = share_done(r), start = (double)r->first_update, at = (double)at_optimiser_steps(t->optimiser);
    /* The seconds left, at the pace of this run: what it has done of the way took so long. */
    double mine = done * (at - start) / fmax(at, 1);
    return (at_train_news){.what = what,
                           .epoch = t->place.epoch,
                           .update = at_optimiser_steps(t->optimiser),
                           .sentences = t->place.sentences,
                           .cost = r->tokens > 0 ? r->cost / r->tokens : NAN,
                           .seconds = since,
                           .words_per_second = since > 0 ? r->tokens / since : 0,
                           .norm = r->norm,
                           .rate = at_optimiser_rate(t->optimiser),
                           .done = done,
                           .left = mine > 0 ? (now - r->started) * (1 - done) / mine : NAN,
                           .metric = t->settings->valid_metric,
                           .best = t->place.best};
}

/* A number that may be NaN, which JSON has not. */
static const char *json_number(char text[32], double number)
{
    snprintf(text, 32, isfinite(number) ? "%.9g" : "null", number);
    return text;
}

static bool report(run *r, at_error *error)
{
    at_train_news news = news_now(r, AT_NEWS_UPDATE);
    char line[400], cost[32], speed[32], norm[32], rate[32], seconds[32];
    int size =
        snprintf(line, sizeof line,
                 "{\"event\":\"update\",\"epoch\":%lld,\"update\":%lld,\"sentences\":%lld,\"cost\":%s,"
                 "\"seconds\":%s,\"words_per_second\":%s,\"gradient_norm\":%s,\"learning_rate\":%s}\n",
                 (long long)news.epoch, (long long)news.update, (long long)news.sentences, json_number(cost, news.cost),
                 json_number(seconds, news.seconds), json_number(speed, news.words_per_second),
                 json_number(norm, news.norm), json_number(rate, news.rate));
    r->result->cost = news.cost;
    tell(r->trainer, &news);
    r->cost = r->tokens = 0;
    r->unreported = 0;
    r->reported = seconds_now();
    return at_trainer_log(r->trainer, line, (size_t)size, error);
}

/* One update from up to --accumulate batches; *moved false at the end of the epoch, where there is none left. */
static bool update(run *r, bool *moved, bool *skipped, at_error *error)
{
    at_trainer *t = r->trainer;
    int64_t most = t->settings->accumulate > 0 ? t->settings->accumulate : 1;
    double cost = 0, tokens = 0, loss;
    at_batch batch;
    *moved = *skipped = false;
    for (int64_t i = 0; i < most && at_batches_next(t->batches, &batch); i++) {
        if (!at_batch_loss(t, &batch, true, &loss, error))
            return false;
        cost += loss;
        tokens += (double)batch.target_tokens;
        t->place.batch++;
        t->place.sentences += batch.rows;
        *moved = true;
    }
    if (!*moved)
        return true;
    r->unsaved = true;
    if (!at_optimiser_step(t->optimiser, 1 / tokens, &r->norm, skipped, error))
        return false;
    r->all_tokens += tokens;
    if (*skipped) {
        t->place.skipped++;
        at_train_news news = news_now(r, AT_NEWS_SKIPPED);
        news.text = "the gradient is not finite, so this update is skipped";
        tell(t, &news);
        return true;
    }
    t->place.skipped = 0;
    t->place.cost += cost;
    t->place.tokens += tokens;
    r->cost += cost;
    r->tokens += tokens;
    r->unreported++;
    return true;
}

/* Scores the model and keeps it if it is the best so far. */
static bool judge(run *r, at_error *error)
{
    at_trainer *t = r->trainer;
    at_progress *p = &t->place;
    double score = NAN, began = seconds_now();
    if (!at_validate(t, &score, error))
        return false;
    int64_t now = at_optimiser_steps(t->optimiser);
    bool better = at_metric_better(t->settings->valid_metric, score, p->best);
    char cost[32], value[32], line[300];
    /* The history goes into the model file, whose bytes must not depend on a clock. */
    at_buffer_print(&t->history, "%s{\"epoch\":%lld,\"update\":%lld,\"cost\":%s,\"%s\":%s}",
                    t->history.size > 0 ? "," : "", (long long)p->epoch, (long long)now,
                    json_number(cost, p->tokens > 0 ? p->cost / p->tokens : NAN), t->settings->valid_metric,
                    json_number(value, score));
    if (t->history.failed)
        return at_fail(error, AT_FAILED, "memory is out: the history of training does not fit");
    p->cost = p->tokens = 0;
    p->validated = now;
    p->failures = better ? 0 : p->failures + 1;
    if (better) {
        p->best = score;
        p->best_update = now;
    }
    at_train_news news = news_now(r, AT_NEWS_VALID);
    news.score = score;
    news.better = better;
    news.seconds = seconds_now() - began;
    int size =
        snprintf(line, sizeof line, "{\"event\":\"valid\",\"epoch\":%lld,\"update\":%lld,\"%s\":%s,\"better\":%s}\n",
                 (long long)p->epoch, (long long)now, t->settings->valid_metric, value, better ? "true" : "false");
    tell(t, &news);
    return (!better || at_trainer_save_best(t, error)) && at_trainer_log(t, line, (size_t)size, error);
}

static bool validate(run *r, at_error *error)
{
    at_trainer *t = r->trainer;
    if (!judge(r, error))
        return false;
    if (t->average)
        at_average_keep(t->average, t->place.validated);
    return true;
}

/* A run that ends between two validations asks how good its last parameters are, and keeps them if they are the best. A
 * longer run would not have asked here, so the state does not hear of it: what is gone on from is what was before. */
static bool validate_end(run *r, at_error *error)
{
    at_trainer *t = r->trainer;
    const at_progress before = t->place;
    const size_t history = t->history.size;
    if (!judge(r, error))
        return false;
    r->result->best_score = t->place.best;
    r->result->best_update = t->place.best_update;
    t->place = before;
    at_buffer_cut(&t->history, history);
    return true;
}

static bool save(run *r, at_error *error)
{
    if (!at_trainer_save(r->trainer, error))
        return false;
    at_train_news news = news_now(r, AT_NEWS_SAVED);
    news.text = r->trainer->state_path;
    r->unsaved = false;
    tell(r->trainer, &news);
    return true;
}

/* What falls due after an update that changed something. A state is saved only when all of it is done, so that a
 * resumed run never does any of it twice. */
static bool after_update(run *r, at_error *error)
{
    const at_train_settings *s = r->trainer->settings;
    int64_t now = at_optimiser_steps(r->trainer->optimiser);
    int64_t every = s->report_every > 0 ? s->report_every : REPORT_EVERY;
    at_train_news tick = news_now(r, AT_NEWS_TICK);
    tell(r->trainer, &tick);
    if (r->unreported >= every && !report(r, error))
        return false;
    bool valid_due = r->trainer->valid && s->valid_every > 0 && now % s->valid_every == 0;
    bool save_due = s->save_every > 0 && now % s->save_every == 0;
    return (!valid_due || validate(r, error)) && (!(valid_due || save_due) || save(r, error));
}

/* The pieces and batches of an epoch, from one of them on. */
static bool go_to(at_trainer *t, int64_t epoch, int64_t batch, at_error *error)
{
    return (!t->draws || at_draws_go(t->draws, epoch, error)) && at_batches_go(t->batches, epoch, batch, error);
}

static bool after_epoch(run *r, at_error *error)
{
    at_trainer *t = r->trainer;
    at_progress *p = &t->place;
    if (r->unreported > 0 && !report(r, error))
        return false;
    bool valid_due = t->valid && t->settings->valid_every == 0;
    if (valid_due && !validate(r, error))
        return false;
    r->unsaved = true;
    p->epoch++;
    p->batch = p->sentences = 0;
    return go_to(t, p->epoch, 0, error) && (!(valid_due || t->settings->save_every == 0) || save(r, error));
}

/* Ten in a row are no accident. The parameters are those of the last good update, and they are kept. */
static bool give_up(run *r, at_error *error)
{
    at_error saving = {0};
    if (!at_trainer_save(r->trainer, &saving))
        return at_fail(error, AT_FAILED, "%s", saving.text);
    return at_fail(error, AT_FAILED,
                   "the gradients of %d updates in a row were not finite, so training stops at update %lld; the model "
                   "from before them is kept, and a smaller --learning-rate or --clip-norm may help",
                   MOST_SKIPPED, (long long)at_optimiser_steps(r->trainer->optimiser));
}

static bool train(run *r, at_error *error)
{
    at_trainer *t = r->trainer;
    if (!go_to(t, t->place.epoch, t->place.batch, error))
        return false;
    while (!limits_reached(r)) {
        bool moved, skipped;
        if (!update(r, &moved, &skipped, error))
            return false;
        if (t->place.skipped >= MOST_SKIPPED)
            return give_up(r, error);
        if (moved ? !skipped && !after_update(r, error) : !after_epoch(r, error))
            return false;
    }
    if (r->unreported > 0 && !report(r, error))
        return false;
    if (r->unsaved && !save(r, error))
        return false;
    if (t->valid && t->place.validated != at_optimiser_steps(t->optimiser) && !r->result->interrupted)
        return validate_end(r, error);
    r->result->best_score = t->place.best;
    r->result->best_update = t->place.best_update;
    return true;
}

bool at_train(const at_train_settings *settings, at_train_listener *listener, void *context, const volatile int *stop,
              at_train_result *result, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    *result = (at_train_result){.best_score = NAN, .cost = NAN};
    at_trainer trainer = {.settings = settings, .listener = listener, .context = context};
    bool done = prepare(&trainer, error);
    if (done) {
        double now = seconds_now();
        run r = {.trainer = &trainer, .stop = stop, .started = now, .reported = now, .result = result};
        r.first_update = at_optimiser_steps(trainer.optimiser);
        done = train(&r, error);
        result->updates = at_optimiser_steps(trainer.optimiser);
        result->epochs = trainer.place.epoch - 1;
        result->parameters = at_params_count(trainer.translator.model->params);
        result->seconds = seconds_now() - now;
        result->words_per_second = result->seconds > 0 ? r.all_tokens / result->seconds : 0;
    }
    release(&trainer);
    return done;
}
