/* What a run reports: news to the listener, lines to the log, the history of its validations. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

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

at_train_news at_run_news(const at_run *run, int what)
{
    const at_trainer *t = run->trainer;
    double now = at_seconds_now(), since = now - run->reported;
    double done = fraction_done(run), start = (double)run->first_update, at = (double)at_optimiser_steps(t->optimiser);
    /* The time left is estimated from the speed of this run, which made the fraction `mine` of all updates. */
    double mine = done * (at - start) / fmax(at, 1);
    return (at_train_news){.what = what,
                           .epoch = t->progress.epoch,
                           .update = at_optimiser_steps(t->optimiser),
                           .sentences = t->progress.sentences,
                           .cost = t->progress.report_tokens > 0 ? t->progress.report_cost / t->progress.report_tokens
                                                                 : NAN,
                           .seconds = since,
                           .words_per_second = since > 0 ? run->timed_tokens / since : 0,
                           .norm = t->progress.norm,
                           .rate = at_optimiser_rate(t->optimiser),
                           .done = done,
                           .left = mine > 0 ? (now - run->started) * (1 - done) / mine : NAN,
                           .metric = t->settings->valid_metric,
                           .best = t->progress.best};
}

/* JSON has no NaN; null is written instead. */
static const char *json_number(char text[32], double number)
{
    snprintf(text, 32, isfinite(number) ? "%.9g" : "null", number);
    return text;
}

bool at_run_report(at_run *run, at_error *error)
{
    at_train_news news = at_run_news(run, AT_NEWS_UPDATE);
    char line[400], cost[32], speed[32], norm[32], rate[32], seconds[32];
    int size =
        snprintf(line, sizeof line,
                 "{\"event\":\"update\",\"epoch\":%lld,\"update\":%lld,\"sentences\":%lld,\"cost\":%s,"
                 "\"seconds\":%s,\"words_per_second\":%s,\"gradient_norm\":%s,\"learning_rate\":%s}\n",
                 (long long)news.epoch, (long long)news.update, (long long)news.sentences, json_number(cost, news.cost),
                 json_number(seconds, news.seconds), json_number(speed, news.words_per_second),
                 json_number(norm, news.norm), json_number(rate, news.rate));
    run->result->cost = news.cost;
    at_trainer_tell(run->trainer, &news);
    run->trainer->progress.report_cost = run->trainer->progress.report_tokens = run->timed_tokens = 0;
    run->trainer->progress.unreported = 0;
    run->reported = at_seconds_now();
    return at_trainer_log(run->trainer, line, (size_t)size, error);
}

bool at_run_log_validation(at_run *run, double score, bool better, at_error *error)
{
    const at_trainer *t = run->trainer;
    char line[300], value[32];
    int size =
        snprintf(line, sizeof line, "{\"event\":\"valid\",\"epoch\":%lld,\"update\":%lld,\"%s\":%s,\"better\":%s}\n",
                 (long long)t->progress.epoch, (long long)at_optimiser_steps(t->optimiser), t->settings->valid_metric,
                 json_number(value, score), better ? "true" : "false");
    return at_trainer_log(run->trainer, line, (size_t)size, error);
}

/* The history goes into the model file, whose bytes must not depend on a clock. */
bool at_run_add_history(at_run *run, double score, at_error *error)
{
    at_trainer *t = run->trainer;
    const at_progress *p = &t->progress;
    char cost[32], value[32];
    at_buffer_print(&t->history, "%s{\"epoch\":%lld,\"update\":%lld,\"cost\":%s,\"%s\":%s}",
                    t->history.size > 0 ? "," : "", (long long)p->epoch, (long long)at_optimiser_steps(t->optimiser),
                    json_number(cost, p->tokens > 0 ? p->cost / p->tokens : NAN), t->settings->valid_metric,
                    json_number(value, score));
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
