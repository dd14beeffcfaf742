/* The scores of lines by one metric: the statistics of all lines, and what is computed from them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/grow.h"
#include "base/settings.h"
#include "base/threads.h"
#include "base/utf8.h"
#include "score/metric_internal.h"

/* ---- Names ---------------------------------------------------------------------------------------------------- */

enum { MOST_NAMES = 64 };

static bool no_such(const char *what, const char *name, const char *(*name_at)(int index), at_error *error)
{
    const char *names[MOST_NAMES];
    int count = 0;
    char near[200], shown[AT_SHOWN];
    while (count < MOST_NAMES && name_at(count)) {
        names[count] = name_at(count);
        count++;
    }
    at_suggest(name, names, count, near, sizeof near);
    return at_fail(error, AT_USAGE, "no %s '%s'%s", what, at_shown(name, shown, sizeof shown), near);
}

static const char *metric_name(int index)
{
    return at_metric(index) ? at_metric(index)->name : NULL;
}

static const at_metric_record *find_metric(const char *name, at_error *error)
{
    const at_metric_record *record = at_metric_record_named(name);
    if (!record)
        no_such("metric", name, metric_name, error);
    return record;
}

static bool find_tokeniser(const char *name, at_tokeniser *tokeniser, at_error *error)
{
    int found = 0;
    if (!name)
        name = at_tokeniser_name(0);
    while (at_tokeniser_name(found) && strcmp(at_tokeniser_name(found), name) != 0)
        found++;
    *tokeniser = (at_tokeniser)found;
    return at_tokeniser_name(found) || no_such("tokeniser", name, at_tokeniser_name, error);
}

/* ---- All lines ------------------------------------------------------------------------------------------------ */

/* Threads take a few lines at a time. Each has its own memory, and its first error with the line it occurred in. */
enum { LINES = 16 };
typedef struct worker {
    at_score_scratch scratch;
    at_error error;
    int64_t failed; /* the line */
} worker;

typedef struct collecting {
    at_scores *scores;
    const at_line *hypotheses, *const *references;
    worker *workers;
} collecting;

/* Puts the hypothesis and the references of a line into the scratch, cleaned and lower-cased as the metric needs. */
static bool prepare(const collecting *job, at_score_scratch *scratch, int64_t line)
{
    const at_metric_record *metric = job->scores->metric;
    bool lower = metric->lowers || job->scores->settings.lowercase;
    size_t count = (size_t)job->scores->references + 1, total = 0, room;
    if (!AT_GROW(scratch->lines, scratch->line_room, count))
        return false;
    for (size_t s = 0; s < count; s++) {
        scratch->lines[s] = s == 0 ? job->hypotheses[line] : job->references[s - 1][line];
        if (!at_size_add(total, scratch->lines[s].size, &total))
            return false;
    }
    if (!lower && !metric->cleans)
        return true;
    if (!at_size_mul(total, AT_CLEAN_GROWTH, &room) || !AT_GROW(scratch->cleaned, scratch->cleaned_room, room))
        return false;
    char *out = scratch->cleaned;
    for (size_t s = 0; s < count; s++) {
        if (!lower && at_line_is_clean(scratch->lines[s]))
            continue;
        scratch->lines[s] = (at_line){out, at_line_clean(scratch->lines[s], lower, out)};
        out += scratch->lines[s].size;
    }
    return true;
}

static void collect_some(void *context, int64_t index, int number)
{
    const collecting *job = context;
    at_scores *scores = job->scores;
    worker *me = &job->workers[number];
    int64_t end = (index + 1) * LINES < scores->count ? (index + 1) * LINES : scores->count;
    for (int64_t i = index * LINES; i < end && me->error.code == AT_OK; i++) {
        at_score_line line = {.count = scores->references, .number = i + 1, .tokeniser = scores->tokeniser};
        me->failed = i;
        if (!prepare(job, &me->scratch, i)) {
            at_score_no_memory(&me->error);
            return;
        }
        line.hypothesis = &me->scratch.lines[0];
        line.references = &me->scratch.lines[1];
        scores->metric->collect(&me->scratch, &line, scores->statistics + i * scores->metric->statistics, &me->error);
    }
}

/* Fills in the statistics; of several lines that fail the first is reported. */
static bool collect_all(at_scores *scores, const at_line *hypotheses, const at_line *const *references, at_error *error)
{
    int threads = at_threads();
    worker *workers = calloc((size_t)threads, sizeof *workers), *first = NULL;
    if (!workers)
        return at_score_no_memory(error);
    collecting job = {scores, hypotheses, references, workers};
    at_parallel((scores->count + LINES - 1) / LINES, threads, collect_some, &job);
    for (int i = 0; i < threads; i++) {
        at_score_scratch_free(&workers[i].scratch);
        if (workers[i].error.code != AT_OK && (!first || workers[i].failed < first->failed))
            first = &workers[i];
    }
    if (first)
        *error = first->error;
    free(workers);
    return !first;
}

/* ---- Signatures ----------------------------------------------------------------------------------------------- */

/* How the score was computed, in sacreBLEU's form. */
static void sign(at_scores *scores)
{
    const at_score_settings *settings = &scores->settings;
    char samples[80] = "", own[100] = "";
    if (!scores->metric->signature)
        return;
    if (settings->resamples > 0)
        snprintf(samples, sizeof samples, "|bs:%lld|seed:%llu", (long long)settings->resamples,
                 (unsigned long long)settings->seed);
    scores->metric->signature(settings, own, sizeof own);
    snprintf(scores->signature, sizeof scores->signature, "nrefs:%d%s|%s|version:attend-%s", scores->references,
             samples, own, AT_VERSION);
}

/* ---- Scores --------------------------------------------------------------------------------------------------- */

static bool check(const at_metric_info *metric, int64_t lines, int references, at_error *error)
{
    if (references < 1)
        return at_fail(error, AT_USAGE, "%s needs a reference", metric->name);
    if (metric->most_references > 0 && references > metric->most_references)
        return at_fail(error, AT_USAGE, "%s takes %d reference%s, not %d", metric->name, metric->most_references,
                       metric->most_references == 1 ? "" : "s", references);
    if (lines < 1)
        return at_fail(error, AT_FAILED, "there is no line to score");
    return true;
}

static bool fill(at_scores *scores, const at_line *hypotheses, const at_line *const *references, at_error *error)
{
    const int fields = scores->metric->statistics;
    scores->statistics = calloc((size_t)scores->count, (size_t)fields * sizeof *scores->statistics);
    if (!scores->statistics)
        return at_score_no_memory(error);
    if (!collect_all(scores, hypotheses, references, error))
        return false;
    for (int64_t i = 0; i < scores->count; i++)
        for (int k = 0; k < fields; k++)
            scores->sums[k] += scores->statistics[i * fields + k];
    if (scores->metric->empty && scores->sums[1] == 0 && !scores->settings.sentences)
        return at_fail(error, AT_FAILED, "%s", scores->metric->empty);
    sign(scores);
    if (scores->metric->details)
        scores->metric->details(scores->sums, scores->details, sizeof scores->details);
    return true;
}

at_scores *at_scores_new(const char *metric, const at_score_settings *settings, const at_line *hypotheses,
                         int64_t count, const at_line *const *references, int reference_count, at_error *error)
{
    static const at_score_settings defaults = {0};
    at_tokeniser tokeniser;
    if (error->code != AT_OK)
        return NULL;
    if (!settings)
        settings = &defaults;
    const at_metric_record *record = find_metric(metric, error);
    if (!record || !find_tokeniser(settings->tokenise, &tokeniser, error) ||
        !check(&record->info, count, reference_count, error))
        return NULL;
    at_scores *scores = calloc(1, sizeof *scores);
    if (!scores) {
        at_score_no_memory(error);
        return NULL;
    }
    scores->metric = record;
    scores->settings = *settings;
    scores->settings.tokenise = at_tokeniser_name(tokeniser);
    scores->tokeniser = tokeniser;
    scores->count = count;
    scores->references = reference_count;
    if (fill(scores, hypotheses, references, error))
        return scores;
    at_scores_free(scores);
    return NULL;
}

void at_scores_free(at_scores *scores)
{
    if (!scores)
        return;
    free(scores->statistics);
    free(scores);
}

int64_t at_scores_count(const at_scores *scores)
{
    return scores->count;
}

const at_metric_info *at_scores_metric(const at_scores *scores)
{
    return &scores->metric->info;
}

double at_scores_total(const at_scores *scores)
{
    return scores->metric->score(scores->sums, false);
}

double at_scores_line(const at_scores *scores, int64_t line)
{
    return scores->metric->score(scores->statistics + line * scores->metric->statistics, true);
}

double at_scores_part(const at_scores *scores, const int64_t *lines, int64_t count)
{
    const int fields = scores->metric->statistics;
    double sums[AT_MOST_STATISTICS] = {0};
    for (int64_t i = 0; i < count; i++)
        for (int k = 0; k < fields; k++)
            sums[k] += scores->statistics[lines[i] * fields + k];
    if (count == 0 || (scores->metric->empty && sums[1] == 0))
        return NAN;
    return scores->metric->score(sums, false);
}

const char *at_scores_signature(const at_scores *scores)
{
    return scores->signature;
}

const char *at_scores_details(const at_scores *scores)
{
    return scores->details;
}

bool at_score_lines(const char *metric, const at_line *hypotheses, const at_line *references, int64_t count,
                    double *score, at_error *error)
{
    at_scores *scores = at_scores_new(metric, NULL, hypotheses, count, &references, 1, error);
    if (!scores)
        return false;
    *score = at_scores_total(scores);
    at_scores_free(scores);
    return true;
}
