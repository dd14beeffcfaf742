/* Scores of lines by references: the metrics there are, and the statistics of all lines by one of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/grow.h"
#include "base/threads.h"
#include "base/utf8.h"
#include "score/judge.h"

/* ---- The metrics ---------------------------------------------------------------------------------------------- */

static const at_metric_kind *const metrics[] = {&at_metric_bleu,     &at_metric_chrf, &at_metric_chrf_words,
                                                &at_metric_ter,      &at_metric_wer,  &at_metric_cer,
                                                &at_metric_accuracy, &at_metric_aer};
enum { METRICS = sizeof metrics / sizeof *metrics };

const at_metric_kind *at_metric_at(int index)
{
    return index >= 0 && index < METRICS ? metrics[index] : NULL;
}

const at_metric_kind *at_metric_find(const char *name)
{
    for (int i = 0; i < METRICS; i++)
        if (strcmp(metrics[i]->name, name) == 0)
            return metrics[i];
    return NULL;
}

const char *at_metric(int index)
{
    return at_metric_at(index) ? at_metric_at(index)->name : NULL;
}

static bool no_such(const char *what, const char *name, const char *(*named)(int index), at_error *error)
{
    const char *names[METRICS];
    int count = 0;
    char near[200], shown[AT_SHOWN];
    while (count < METRICS && named(count) != NULL) {
        names[count] = named(count);
        count++;
    }
    at_suggest(name, names, count, near, sizeof near);
    return at_fail(error, AT_USAGE, "no %s '%s'%s", what, at_shown(name, shown, sizeof shown), near);
}

/* ---- All lines ------------------------------------------------------------------------------------------------ */

/* Threads take lines a few at a time. Each has memory of its own, and its first failure with the line it was at. */
enum { LINES = 16 };
typedef struct worker {
    at_judge_scratch scratch;
    at_error error;
    int64_t failed; /* the line */
} worker;

typedef struct judging {
    at_scores *scores;
    const at_line_list *hypotheses, *const *references;
    worker *workers;
} judging;

/* The hypothesis and the references of a line as the metric wants them. */
static bool prepare(const judging *job, at_judge_scratch *scratch, int64_t line)
{
    const at_metric_kind *kind = job->scores->kind;
    bool lower = kind->lowers || job->scores->settings.lowercase;
    size_t count = (size_t)job->scores->references + 1, total = 0, room;
    if (!AT_GROW(scratch->lines, scratch->line_room, count))
        return false;
    for (size_t s = 0; s < count; s++) {
        scratch->lines[s] = s == 0 ? job->hypotheses->line[line] : job->references[s - 1]->line[line];
        if (!at_size_add(total, scratch->lines[s].size, &total))
            return false;
    }
    if (!lower && !kind->cleans)
        return true;
    if (!at_size_mul(total, AT_CLEAN_GROWTH, &room) || !AT_GROW(scratch->lowered, scratch->lowered_room, room))
        return false;
    char *out = scratch->lowered;
    for (size_t s = 0; s < count; s++) {
        if (!lower && at_line_is_clean(scratch->lines[s]))
            continue;
        scratch->lines[s] = (at_line){out, at_line_clean(scratch->lines[s], lower, out)};
        out += scratch->lines[s].size;
    }
    return true;
}

static void judge_some(void *context, int64_t index, int number)
{
    const judging *job = context;
    at_scores *scores = job->scores;
    worker *me = &job->workers[number];
    int64_t end = (index + 1) * LINES < scores->count ? (index + 1) * LINES : scores->count;
    for (int64_t i = index * LINES; i < end && me->error.code == AT_OK; i++) {
        at_judged line = {.count = scores->references, .number = i + 1, .tokeniser = scores->tokeniser};
        me->failed = i;
        if (!prepare(job, &me->scratch, i)) {
            at_no_memory_to_score(&me->error);
            return;
        }
        line.hypothesis = &me->scratch.lines[0];
        line.references = &me->scratch.lines[1];
        scores->kind->collect(&me->scratch, &line, scores->statistics + i * scores->kind->statistics, &me->error);
    }
}

/* Fills in the statistics; of several lines that fail the first is told of. */
static bool judge_all(at_scores *scores, const at_line_list *hypotheses, const at_line_list *const *references,
                      at_error *error)
{
    int threads = at_threads();
    worker *workers = calloc((size_t)threads, sizeof *workers), *first = NULL;
    if (workers == NULL)
        return at_no_memory_to_score(error);
    judging job = {scores, hypotheses, references, workers};
    at_parallel((scores->count + LINES - 1) / LINES, threads, judge_some, &job);
    for (int i = 0; i < threads; i++) {
        at_judge_scratch_free(&workers[i].scratch);
        if (workers[i].error.code != AT_OK && (first == NULL || workers[i].failed < first->failed))
            first = &workers[i];
    }
    if (first != NULL)
        at_fail(error, first->error.code, "%s", first->error.text);
    free(workers);
    return first == NULL;
}

/* ---- What a score was made by --------------------------------------------------------------------------------- */

static void sign(at_scores *scores)
{
    const at_score_settings *settings = &scores->settings;
    const char *letters = settings->lowercase ? "lc" : "mixed";
    char drawn[80] = "", own[100] = "";
    if (scores->kind->title == NULL)
        return;
    if (settings->resamples > 0)
        snprintf(drawn, sizeof drawn, "|bs:%lld|seed:%llu", (long long)settings->resamples,
                 (unsigned long long)settings->seed);
    if (scores->kind == &at_metric_bleu)
        snprintf(own, sizeof own, "case:%s|eff:%s|tok:%s|smooth:exp", letters, settings->sentences ? "yes" : "no",
                 at_tokeniser_name(scores->tokeniser));
    else if (scores->kind == &at_metric_ter)
        snprintf(own, sizeof own, "case:lc|tok:tercom|norm:no|punct:yes|asian:no");
    else
        snprintf(own, sizeof own, "case:%s|eff:yes|nc:6|nw:%d|space:no", letters,
                 scores->kind == &at_metric_chrf_words ? 2 : 0);
    snprintf(scores->signature, sizeof scores->signature, "nrefs:%d%s|%s|version:attend-%s", scores->references, drawn,
             own, AT_VERSION);
}

static void detail(at_scores *scores)
{
    double p[AT_BLEU_ORDER], penalty;
    const double *sums = scores->sums;
    if (scores->kind != &at_metric_bleu)
        return;
    at_bleu_score(sums, false, p, &penalty);
    snprintf(scores->details, sizeof scores->details,
             "%.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %.0f ref_len = %.0f)", p[0], p[1], p[2], p[3],
             penalty, sums[AT_BLEU_REF] > 0 ? sums[AT_BLEU_HYP] / sums[AT_BLEU_REF] : 0, sums[AT_BLEU_HYP],
             sums[AT_BLEU_REF]);
}

/* ---- Scores --------------------------------------------------------------------------------------------------- */

static bool check_counts(const at_metric_kind *kind, const at_line_list *hypotheses,
                         const at_line_list *const *references, int count, at_error *error)
{
    int64_t lines = hypotheses->count;
    if (count < 1)
        return at_fail(error, AT_USAGE, "%s needs a reference", kind->name);
    if (kind->most_references > 0 && count > kind->most_references)
        return at_fail(error, AT_USAGE, "%s takes one reference, not %d", kind->name, count);
    for (int r = 0; r < count; r++)
        if (references[r]->count != lines)
            return at_fail(error, AT_FAILED,
                           "%lld line%s cannot be scored against %lld reference%s; there must be as many",
                           (long long)lines, lines == 1 ? "" : "s", (long long)references[r]->count,
                           references[r]->count == 1 ? "" : "s");
    if (lines == 0)
        return at_fail(error, AT_FAILED, "there is no line to score");
    return true;
}

static bool find_tokeniser(const char *name, at_tokeniser *tokeniser, at_error *error)
{
    int found = 0;
    if (name == NULL)
        name = at_tokeniser_name(0);
    while (at_tokeniser_name(found) != NULL && strcmp(at_tokeniser_name(found), name) != 0)
        found++;
    *tokeniser = (at_tokeniser)found;
    return at_tokeniser_name(found) != NULL || no_such("tokeniser", name, at_tokeniser_name, error);
}

at_scores *at_scores_new(const char *metric, const at_score_settings *settings, const at_line_list *hypotheses,
                         const at_line_list *const *references, int reference_count, at_error *error)
{
    static const at_score_settings standard = {0};
    at_tokeniser tokeniser;
    if (error->code != AT_OK)
        return NULL;
    if (settings == NULL)
        settings = &standard;
    const at_metric_kind *kind = at_metric_find(metric);
    if (kind == NULL)
        no_such("metric", metric, at_metric, error);
    if (kind == NULL || !find_tokeniser(settings->tokenise, &tokeniser, error) ||
        !check_counts(kind, hypotheses, references, reference_count, error))
        return NULL;
    at_scores *scores = calloc(1, sizeof *scores);
    if (scores != NULL) {
        *scores = (at_scores){.kind = kind,
                              .settings = *settings,
                              .tokeniser = tokeniser,
                              .count = hypotheses->count,
                              .references = reference_count};
        scores->statistics = calloc((size_t)scores->count, (size_t)kind->statistics * sizeof *scores->statistics);
    }
    if (scores == NULL || scores->statistics == NULL)
        at_no_memory_to_score(error);
    else
        judge_all(scores, hypotheses, references, error);
    for (int64_t i = 0; error->code == AT_OK && i < scores->count; i++)
        for (int k = 0; k < kind->statistics; k++)
            scores->sums[k] += scores->statistics[i * kind->statistics + k];
    if (error->code == AT_OK && kind->nothing && scores->sums[1] == 0 && !settings->sentences)
        at_fail(error, AT_FAILED, "%s", kind->nothing);
    if (error->code != AT_OK) {
        at_scores_free(scores);
        return NULL;
    }
    sign(scores);
    detail(scores);
    return scores;
}

void at_scores_free(at_scores *scores)
{
    if (scores == NULL)
        return;
    free(scores->statistics);
    free(scores);
}

int64_t at_scores_count(const at_scores *scores)
{
    return scores->count;
}

double at_scores_total(const at_scores *scores)
{
    return scores->kind->score(scores->sums, false);
}

double at_scores_line(const at_scores *scores, int64_t line)
{
    return scores->kind->score(scores->statistics + line * scores->kind->statistics, true);
}

double at_scores_part(const at_scores *scores, const int64_t *lines, int64_t count)
{
    const int fields = scores->kind->statistics;
    double sums[AT_MOST_STATISTICS] = {0};
    for (int64_t i = 0; i < count; i++)
        for (int k = 0; k < fields; k++)
            sums[k] += scores->statistics[lines[i] * fields + k];
    if (count == 0 || (scores->kind->nothing && sums[1] == 0))
        return NAN;
    return scores->kind->score(sums, false);
}

const char *at_scores_title(const at_scores *scores)
{
    return scores->kind->title;
}

const char *at_scores_signature(const at_scores *scores)
{
    return scores->signature;
}

const char *at_scores_details(const at_scores *scores)
{
    return scores->details;
}

bool at_score_lines(const char *metric, const at_line *hypotheses, int64_t hypothesis_count, const at_line *references,
                    int64_t reference_count, double *score, at_error *error)
{
    /* The lists are only read. */
    const at_line_list judged = {.line = (at_line *)hypotheses, .count = hypothesis_count};
    const at_line_list by = {.line = (at_line *)references, .count = reference_count}, *const by_one = &by;
    at_scores *scores = at_scores_new(metric, NULL, &judged, &by_one, 1, error);
    if (scores == NULL)
        return false;
    *score = at_scores_total(scores);
    at_scores_free(scores);
    return true;
}
