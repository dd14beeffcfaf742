/* Validation: the loss by teacher forcing, or a metric of decoded lines. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/utf8.h"
#include "search/search.h"
#include "train/train_internal.h"

/* The metrics by teacher forcing. All others are those of src/score, by decoding, except the ones of alignments. */
static const char *const forced[] = {"loss", "perplexity"};
enum { FORCED = sizeof forced / sizeof *forced, MOST_METRICS = 32 };

static bool is_forced(const char *metric)
{
    return strcmp(metric, forced[0]) == 0 || strcmp(metric, forced[1]) == 0;
}

const char *at_valid_metric_name(int index)
{
    if (index < FORCED)
        return forced[index];
    int left = index - FORCED;
    for (int i = 0; at_metric(i); i++)
        if (!at_metric(i)->alignments && left-- == 0)
            return at_metric(i)->name;
    return NULL;
}

bool at_metric_known(const char *metric, at_error *error)
{
    const char *names[MOST_METRICS];
    char near[100], shown[AT_SHOWN], all[200] = "";
    int count = 0;
    for (; count < MOST_METRICS && at_valid_metric_name(count); count++)
        names[count] = at_valid_metric_name(count);
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], metric) == 0)
            return true;
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i == 0 ? "" : i == count - 1 ? " and " : ", ", names[i]);
    }
    at_suggest(metric, names, count, near, sizeof near);
    return at_fail(error, AT_USAGE, "no validation metric '%s'%s%s", at_shown(metric, shown, sizeof shown),
                   near[0] ? near : "; there are ", near[0] ? "" : all);
}

bool at_metric_decodes(const char *metric)
{
    return !is_forced(metric);
}

/* NaN, as the best or as the score, is never better than a number. */
bool at_metric_better(const char *metric, double score, double best)
{
    if (isnan(score))
        return false;
    const int direction = is_forced(metric) ? AT_SMALLER_IS_BETTER : at_metric_named(metric)->better;
    return isnan(best) || direction * score > direction * best;
}

/* ---- By teacher forcing --------------------------------------------------------------------------------------- */

/* Cross-entropy per target token, without label smoothing. */
static bool mean_loss(at_trainer *trainer, double *loss, at_error *error)
{
    at_batch batch;
    double sum = 0, tokens = 0, part;
    if (!at_batches_seek(trainer->valid_batches, 1, 0, error))
        return false;
    while (at_batches_next(trainer->valid_batches, &batch)) {
        if (!at_batch_loss(&trainer->loss, &batch, false, &part, error))
            return false;
        sum += part;
        tokens += (double)batch.target_tokens;
    }
    *loss = sum / tokens;
    return true;
}

/* ---- By decoding ---------------------------------------------------------------------------------------------- */

typedef struct decoded_lines {
    at_line *line;
    at_error *error;
} decoded_lines;

static bool collect_line(void *context, int64_t line, const at_result *result)
{
    decoded_lines *decoded = context;
    const char *text = result->count > 0 ? result->best[0].text : "";
    char *copy = strdup(text);
    if (!copy)
        return at_no_memory(decoded->error, "the lines of a validation");
    decoded->line[line] = (at_line){copy, strlen(copy)};
    return true;
}

/* A reference after the model's own text normalisation, so that a lower-case model is not scored on capitals. */
static char *clean_reference(const at_trainer *trainer, at_line line, size_t *size)
{
    at_buffer text = {0};
    at_buffer_add(&text, "", 0);
    bool good = at_vocabulary_clean(trainer->translator.target, line.text, line.size, &text);
    *size = text.size;
    if (!good)
        at_buffer_free(&text);
    return text.bytes;
}

static bool decode_score(at_trainer *trainer, const char *metric, double *score, bool *diverged, at_error *error)
{
    const at_lines *lines = trainer->valid_lines;
    const int64_t count = lines->count;
    at_line *hypotheses = calloc((size_t)count + 1, sizeof *hypotheses);
    at_line *references = calloc((size_t)count + 1, sizeof *references);
    bool done = hypotheses && references;
    if (!done)
        at_no_memory(error, "the validation of %lld lines", (long long)count);
    for (int64_t i = 0; done && i < count; i++) {
        references[i].text = clean_reference(trainer, lines->side[1][i], &references[i].size);
        done = references[i].text || at_no_memory(error, "a reference");
    }
    at_search_settings search = {.beam = 1, .n_best = 1, .batch = 64, .max_length_factor = 2};
    decoded_lines decoded = {hypotheses, error};
    const at_search_job job = {.translator = &trainer->translator,
                               .settings = &search,
                               .lines = lines->side[0],
                               .count = count,
                               .on_result = collect_line,
                               .context = &decoded,
                               .not_finite = diverged};
    done = done && at_search(&job, error) && at_score_lines(metric, hypotheses, references, count, score, error);
    for (int64_t i = 0; hypotheses && i < count; i++)
        free((char *)hypotheses[i].text);
    for (int64_t i = 0; references && i < count; i++)
        free((char *)references[i].text);
    free(hypotheses);
    free(references);
    return done;
}

bool at_validate(at_trainer *trainer, double *score, bool *diverged, at_error *error)
{
    const char *metric = trainer->settings->valid_metric;
    at_error why = {0};
    *diverged = false;
    at_trainer_swap_average(trainer);
    if (!is_forced(metric))
        decode_score(trainer, metric, score, diverged, &why);
    else if (mean_loss(trainer, score, &why))
        *diverged = !isfinite(*score);
    at_trainer_swap_average(trainer);
    if (why.code == AT_OK && strcmp(metric, "perplexity") == 0)
        *score = exp(*score);
    return why.code == AT_OK || *diverged || at_fail(error, why.code, "%s", why.text);
}
