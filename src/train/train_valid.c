/* Validation: the loss by teacher forcing, or a metric of decoded lines. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/utf8.h"
#include "search/search.h"
#include "train/train_internal.h"

/* ---- Metrics -------------------------------------------------------------------------------------------------- */

/* The metrics by teacher forcing. All others are those of src/score, by decoding, except the ones of alignments. */
enum { LOSS, PERPLEXITY, TOKEN_ACCURACY, FORCED, MOST_METRICS = 32 };
static const char *const forced[FORCED] = {"loss", "perplexity", "token-accuracy"};

/* The index of a metric by teacher forcing; FORCED: it is none. */
static int forced_index(const char *metric)
{
    int i = 0;
    while (i < FORCED && strcmp(metric, forced[i]) != 0)
        i++;
    return i;
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

/* The name as it is kept; NULL with an error message if there is none. */
static const char *known_name(const char *metric, at_error *error)
{
    const char *names[MOST_METRICS];
    char near[100], shown[AT_SHOWN], all[200] = "";
    int count = 0;
    for (; count < MOST_METRICS && at_valid_metric_name(count); count++)
        names[count] = at_valid_metric_name(count);
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], metric) == 0)
            return names[i];
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i == 0 ? "" : i == count - 1 ? " and " : ", ", names[i]);
    }
    at_suggest(metric, names, count, near, sizeof near);
    at_fail(error, AT_USAGE, "no validation metric '%s'%s%s", at_shown(metric, shown, sizeof shown),
            near[0] ? near : "; there are ", near[0] ? "" : all);
    return NULL;
}

static bool has_metric(const at_valid_metrics *metrics, const char *name)
{
    for (int i = 0; i < metrics->count; i++)
        if (strcmp(metrics->name[i], name) == 0)
            return true;
    return false;
}

bool at_valid_metrics_parse(const char *text, at_valid_metrics *metrics, at_error *error)
{
    char name[40];
    *metrics = (at_valid_metrics){0};
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        const char *known = known_name(name, error);
        if (!known)
            return false;
        if (has_metric(metrics, known))
            return at_fail(error, AT_USAGE, "`valid-metric` has '%s' twice", known);
        if (metrics->count == AT_MOST_VALID_METRICS - FORCED)
            return at_fail(error, AT_USAGE, "`valid-metric` takes at most %d metrics", AT_MOST_VALID_METRICS - FORCED);
        metrics->name[metrics->count++] = known;
        at += length;
        if (!*at)
            break;
    }
    for (int i = PERPLEXITY; i < FORCED; i++)
        if (!has_metric(metrics, forced[i]))
            metrics->name[metrics->count++] = forced[i];
    return true;
}

bool at_metric_known(const char *metrics, at_error *error)
{
    at_valid_metrics parsed;
    return at_valid_metrics_parse(metrics, &parsed, error);
}

bool at_metric_decodes(const char *metric)
{
    return forced_index(metric) == FORCED;
}

/* NaN, as the best or as the score, is never better than a number. */
bool at_metric_better(const char *metric, double score, double best)
{
    if (isnan(score))
        return false;
    const int kind = forced_index(metric), direction = kind == FORCED           ? at_metric_named(metric)->better
                                                       : kind == TOKEN_ACCURACY ? AT_LARGER_IS_BETTER
                                                                                : AT_SMALLER_IS_BETTER;
    return isnan(best) || direction * score > direction * best;
}

/* ---- By teacher forcing --------------------------------------------------------------------------------------- */

/* Cross-entropy per target token, without label smoothing; its exponential; and the percentage of the target tokens that
 * the model finds the most probable ones, given those before. */
static bool forced_scores(at_trainer *trainer, double score[FORCED], at_error *error)
{
    at_batch batch;
    double sum = 0, tokens = 0, correct = 0, part;
    if (!at_batches_seek(trainer->valid_batches, 1, 0, error))
        return false;
    while (at_batches_next(trainer->valid_batches, &batch)) {
        if (!at_batch_loss(&trainer->loss, &batch, false, &part, error))
            return false;
        sum += part;
        tokens += (double)batch.target_tokens;
        correct += (double)trainer->loss.correct;
    }
    score[LOSS] = sum / tokens;
    score[PERPLEXITY] = exp(score[LOSS]);
    score[TOKEN_ACCURACY] = 100 * correct / tokens;
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

/* A line after the model's own text normalisation, so that a lower-case model is not scored on capitals. */
static char *clean_text(const at_vocabulary *vocabulary, at_line line, size_t *size)
{
    at_buffer text = {0};
    at_buffer_add(&text, "", 0);
    bool good = at_vocabulary_clean(vocabulary, line.text, line.size, &text);
    *size = text.size;
    if (!good)
        at_buffer_free(&text);
    return text.bytes;
}

/* What the model makes of `count` sources: clean lines, to release one by one. */
static bool decode(at_trainer *trainer, const at_line *sources, int64_t count, at_line *written, bool *diverged,
                   at_error *error)
{
    at_search_settings search = {.beam = 1, .n_best = 1, .batch = 64, .max_length_factor = 2};
    decoded_lines decoded = {written, error};
    const at_search_job job = {.translator = &trainer->translator,
                               .settings = &search,
                               .lines = sources,
                               .count = count,
                               .on_result = collect_line,
                               .context = &decoded,
                               .not_finite = diverged};
    return at_search(&job, error);
}

static void free_lines(at_line *lines, int64_t count)
{
    for (int64_t i = 0; lines && i < count; i++)
        free((char *)lines[i].text);
    free(lines);
}

/* Adds the scores of all metrics that decode. */
static bool decoded_scores(at_trainer *trainer, at_validation *v, at_error *error)
{
    const at_lines *lines = trainer->valid_lines;
    const int64_t count = lines->count;
    at_line *hypotheses = calloc((size_t)count + 1, sizeof *hypotheses);
    at_line *references = calloc((size_t)count + 1, sizeof *references);
    bool done = (hypotheses && references) || at_no_memory(error, "the validation of %lld lines", (long long)count);
    for (int64_t i = 0; done && i < count; i++) {
        references[i].text = clean_text(trainer->translator.target, lines->side[1][i], &references[i].size);
        done = references[i].text || at_no_memory(error, "a reference");
    }
    done = done && decode(trainer, lines->side[0], count, hypotheses, &v->diverged, error);
    for (int i = 0; done && i < trainer->metrics.count; i++)
        if (at_metric_decodes(v->score[i].metric))
            done = at_score_lines(v->score[i].metric, hypotheses, references, count, &v->score[i].score, error);
    free_lines(hypotheses, count);
    free_lines(references, count);
    return done;
}

/* ---- Samples -------------------------------------------------------------------------------------------------- */

/* The same lines in each validation, evenly spaced over the validation data. */
static bool translate_samples(at_trainer *trainer, at_validation *v, at_error *error)
{
    const at_lines *lines = trainer->valid_lines;
    const int64_t wanted = trainer->settings->valid_samples, count = wanted < lines->count ? wanted : lines->count;
    const at_translator *t = &trainer->translator;
    if (count < 1 || trainer->settings->train.target_only)
        return true;
    at_line *sources = calloc((size_t)count, sizeof *sources), *outputs = calloc((size_t)count, sizeof *outputs);
    v->sample = calloc((size_t)count, sizeof *v->sample);
    bool done = (sources && outputs && v->sample) || at_no_memory(error, "the samples of a validation");
    for (int64_t i = 0; done && i < count; i++) {
        const int64_t line = i * lines->count / count;
        at_train_sample *sample = &v->sample[v->sample_count++];
        sources[i] = lines->side[0][line];
        if (t->source) {
            sample->source.text = clean_text(t->source, sources[i], &sample->source.size);
        } else { /* the name of a picture */
            sample->source = (at_line){strndup(sources[i].text, sources[i].size), sources[i].size};
        }
        sample->reference.text = clean_text(t->target, lines->side[1][line], &sample->reference.size);
        done = (sample->source.text && sample->reference.text) || at_no_memory(error, "the samples of a validation");
    }
    done = done && decode(trainer, sources, count, outputs, &v->diverged, error);
    for (int i = 0; outputs && i < v->sample_count; i++)
        v->sample[i].output = outputs[i];
    free(sources);
    free(outputs);
    return done;
}

void at_validation_free(at_validation *v)
{
    for (int i = 0; i < v->sample_count; i++) {
        free((char *)v->sample[i].source.text);
        free((char *)v->sample[i].reference.text);
        free((char *)v->sample[i].output.text);
    }
    free(v->sample);
}

bool at_validate(at_trainer *trainer, at_validation *v, at_error *error)
{
    const at_valid_metrics *metrics = &trainer->metrics;
    at_error why = {0};
    double score[FORCED];
    bool decodes = false, done = true;
    *v = (at_validation){0};
    for (int i = 0; i < metrics->count; i++) {
        v->score[i] = (at_train_score){metrics->name[i], NAN};
        decodes = decodes || at_metric_decodes(metrics->name[i]);
    }
    at_trainer_swap_average(trainer);
    done = forced_scores(trainer, score, &why);
    v->diverged = done && !isfinite(score[LOSS]);
    for (int i = 0; done && i < metrics->count; i++)
        if (!at_metric_decodes(metrics->name[i]))
            v->score[i].score = score[forced_index(metrics->name[i])];
    done =
        done && !v->diverged && (!decodes || decoded_scores(trainer, v, &why)) && translate_samples(trainer, v, &why);
    at_trainer_swap_average(trainer);
    return done || v->diverged || at_fail(error, why.code, "%s", why.text);
}
