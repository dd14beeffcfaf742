/* What a run reports: news to the listener, lines to the log, the history of its validations. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/json.h"
#include "train/train_internal.h"

double at_seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void at_trainer_tell(at_trainer *trainer, const at_train_news *news)
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
    at_trainer_tell(trainer, &(at_train_news){.what = AT_NEWS_NOTE, .text = text});
}

/* The fraction of the run that is done, by the limit that is closest to being reached; NaN without a limit. */
static double fraction_done(const at_run *run)
{
    const at_train_settings *s = run->trainer->settings;
    const at_progress *p = &run->trainer->progress;
    double done = NAN;
    if (s->updates > 0)
        done = fmax(done, (double)at_optimiser_steps(run->trainer->optimiser) / (double)s->updates);
    if (s->epochs > 0) {
        double within = (double)p->batch / (double)at_batches_count(run->trainer->batches);
        done = fmax(done, ((double)(p->epoch - 1) + within) / (double)s->epochs);
    }
    if (s->minutes > 0)
        done = fmax(done, (at_seconds_now() - run->started) / (60 * s->minutes));
    return done > 1 ? 1 : done;
}

int64_t at_trainer_epoch(const at_trainer *trainer)
{
    const at_progress *p = &trainer->progress;
    return p->batch == 0 && p->epoch > 1 ? p->epoch - 1 : p->epoch;
}

at_train_news at_run_news(const at_run *run, int what)
{
    const at_trainer *t = run->trainer;
    const int64_t epoch = at_trainer_epoch(t);
    double now = at_seconds_now(), since = now - run->reported;
    double done = fraction_done(run), start = (double)run->first_update, at = (double)at_optimiser_steps(t->optimiser);
    /* The time left is estimated from the speed of this run, which made the fraction `mine` of all updates. */
    double mine = done * (at - start) / fmax(at, 1);
    return (at_train_news){.what = what,
                           .epoch = epoch,
                           .update = at_optimiser_steps(t->optimiser),
                           .sentences = epoch < t->progress.epoch ? at_corpus_count(t->train) : t->progress.sentences,
                           .cost = t->progress.report_tokens > 0 ? t->progress.report_cost / t->progress.report_tokens
                                                                 : NAN,
                           .seconds = since,
                           .words_per_second = since > 0 ? run->timed_tokens / since : 0,
                           .norm = t->progress.norm,
                           .rate = at_optimiser_rate(t->optimiser),
                           .done = done,
                           .left = mine > 0 ? (now - run->started) * (1 - done) / mine : NAN,
                           .metric = t->metrics.name[0],
                           .best = t->progress.best,
                           .failures = t->progress.failures,
                           .patience = t->settings->early_stopping};
}

/* JSON has no NaN; null is written instead. */
static const char *json_number(char text[32], double number)
{
    snprintf(text, 32, isfinite(number) ? "%.9g" : "null", number);
    return text;
}

/* What every line of the log begins with. */
static at_buffer log_line(const at_run *run, const char *event)
{
    at_buffer line = {0};
    at_buffer_print(&line, "{\"event\":\"%s\",\"epoch\":%lld,\"update\":%lld", event,
                    (long long)at_trainer_epoch(run->trainer), (long long)at_optimiser_steps(run->trainer->optimiser));
    return line;
}

/* ---- The start and the end ------------------------------------------------------------------------------------ */

bool at_run_start(at_run *run, at_error *error)
{
    at_trainer *t = run->trainer;
    const at_translator *of = &t->translator;
    const at_train_start start = {
        .part = {t->part[AT_TRAIN], t->part[AT_VALID]},
        .vocabulary = {of->source ? at_vocabulary_size(of->source) - AT_SPECIALS : 0,
                       at_vocabulary_size(of->target) - AT_SPECIALS},
        .model = of->model->kind->name,
        .parameters = at_params_count(of->model->params),
        .batches = at_batches_count(t->batches),
        .threads = at_threads(),
        .update = at_optimiser_steps(t->optimiser),
        .file = {t->settings->output, t->valid ? t->last_path : NULL, t->state_path, t->log_path}};
    at_train_news news = at_run_news(run, AT_NEWS_START);
    news.start = &start;
    at_trainer_tell(t, &news);
    return at_trainer_add_opening(t, error);
}

/* A run that made no line before has not done anything. */
bool at_run_end(at_run *run, at_error *error)
{
    const at_trainer *t = run->trainer;
    const at_train_result *r = run->result;
    char best[32];
    if (t->opening.size > 0)
        return true;
    at_buffer line = log_line(run, "end");
    at_buffer_print(&line, ",\"reason\":\"%s\"", run->reason);
    if (r->best_update > 0)
        at_buffer_print(&line, ",\"best\":{\"%s\":%s,\"update\":%lld}", t->metrics.name[0],
                        json_number(best, r->best_score), (long long)r->best_update);
    at_buffer_print(&line, ",\"seconds\":%.3f", at_seconds_now() - run->started);
    return at_trainer_log(run->trainer, &line, error);
}

/* ---- Reports -------------------------------------------------------------------------------------------------- */

bool at_run_report(at_run *run, at_error *error)
{
    at_train_news news = at_run_news(run, AT_NEWS_UPDATE);
    char cost[32], speed[32], norm[32], rate[32], seconds[32];
    at_buffer line = log_line(run, "update");
    at_buffer_print(&line,
                    ",\"sentences\":%lld,\"cost\":%s,\"seconds\":%s,\"words_per_second\":%s,\"gradient_norm\":%s,"
                    "\"learning_rate\":%s",
                    (long long)news.sentences, json_number(cost, news.cost), json_number(seconds, news.seconds),
                    json_number(speed, news.words_per_second), json_number(norm, news.norm),
                    json_number(rate, news.rate));
    run->result->cost = news.cost;
    at_trainer_tell(run->trainer, &news);
    run->trainer->progress.report_cost = run->trainer->progress.report_tokens = run->timed_tokens = 0;
    run->trainer->progress.unreported = 0;
    run->reported = at_seconds_now();
    return at_trainer_log(run->trainer, &line, error);
}

/* ---- Validations ---------------------------------------------------------------------------------------------- */

void at_run_tell_validation(at_run *run, const at_validation *v, bool better, double seconds)
{
    at_train_news news = at_run_news(run, AT_NEWS_VALID);
    news.score = v->score[0].score;
    news.better = better;
    news.seconds = seconds;
    news.scores = v->score;
    news.score_count = run->trainer->metrics.count;
    news.samples = v->sample;
    news.sample_count = v->sample_count;
    at_trainer_tell(run->trainer, &news);
}

/* ,"loss":2.5,"perplexity":12.2 */
static void add_scores(at_buffer *text, const at_trainer *trainer, const at_validation *v)
{
    char value[32];
    for (int i = 0; i < trainer->metrics.count; i++)
        at_buffer_print(text, ",\"%s\":%s", v->score[i].metric, json_number(value, v->score[i].score));
}

/* The samples are clean UTF-8. */
static bool add_text(at_buffer *line, const char *before, at_line text)
{
    json_t *value = json_stringn(text.text, text.size);
    char *quoted = value ? at_json_text(value, JSON_ENCODE_ANY) : NULL;
    if (quoted)
        at_buffer_print(line, "%s%s", before, quoted);
    free(quoted);
    json_decref(value);
    return quoted;
}

bool at_run_log_validation(at_run *run, const at_validation *v, bool better, at_error *error)
{
    at_buffer line = log_line(run, "valid");
    bool whole = true;
    add_scores(&line, run->trainer, v);
    at_buffer_print(&line, ",\"better\":%s,\"failures\":%lld", better ? "true" : "false",
                    (long long)run->trainer->progress.failures);
    for (int i = 0; whole && i < v->sample_count; i++) {
        const at_train_sample *sample = &v->sample[i];
        whole = add_text(&line, i ? ",{\"source\":" : ",\"samples\":[{\"source\":", sample->source) &&
                add_text(&line, ",\"reference\":", sample->reference) &&
                add_text(&line, ",\"output\":", sample->output);
        at_buffer_print(&line, i + 1 < v->sample_count ? "}" : "}]");
    }
    if (!whole)
        at_no_memory(error, "a line of the log");
    return at_trainer_log(run->trainer, &line, error);
}

/* The history goes into the model file, whose bytes must not depend on a clock. */
bool at_run_add_history(at_run *run, const at_validation *v, at_error *error)
{
    at_trainer *t = run->trainer;
    const at_progress *p = &t->progress;
    char cost[32];
    at_buffer_print(&t->history, "%s{\"epoch\":%lld,\"update\":%lld,\"cost\":%s", t->history.size > 0 ? "," : "",
                    (long long)p->epoch, (long long)at_optimiser_steps(t->optimiser),
                    json_number(cost, p->tokens > 0 ? p->cost / p->tokens : NAN));
    add_scores(&t->history, t, v);
    at_buffer_print(&t->history, "}");
    return !t->history.failed || at_no_memory(error, "the history of the validations");
}

/* Windows of so many updates, from the end of the warm-up and the first updates on; and how near the loss may be. */
enum { WATCHED = 50, FIRST_UPDATES = 100 };
#define NEAR 0.97

void at_run_watch(at_run *run, double cost, double tokens)
{
    const at_trainer *t = run->trainer;
    const int64_t now = at_optimiser_steps(t->optimiser), warmup = t->settings->optimiser.warmup;
    if (run->has_warned || now <= FIRST_UPDATES || now <= warmup)
        return;
    run->watched_cost += cost;
    run->watched_tokens += tokens;
    if (++run->watched < WATCHED)
        return;
    const double loss = run->watched_cost / run->watched_tokens;
    run->watched_cost = run->watched_tokens = 0;
    run->watched = 0;
    if (!(loss >= NEAR * t->entropy))
        return;
    run->has_warned = true;
    at_trainer_note(run->trainer,
                    "the model has not learned more than the frequency of the target units: its loss per unit in the "
                    "updates %lld to %lld is %.2f, and that of the frequencies alone %.2f; a lower `learning-rate` "
                    "or more `warmup`%s may help",
                    (long long)now - WATCHED + 1, (long long)now, loss, t->entropy,
                    t->settings->model.norm == AT_POST_NORM ? ", or `norm` pre," : "");
}
