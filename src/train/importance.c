/* How much each head matters: the gradient of the loss in a factor before what the head adds. And models without some of
 * their heads. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend_unstable.h"
#include "store/translator.h"
#include "train/loss_internal.h"

enum { BATCH = 32 };

/* ---- Measuring ------------------------------------------------------------------------------------------------ */

/* Sums of one head over the pairs. */
typedef struct measure {
    at_head_list *list;
    double *rows; /* [count] of queries, whose entropies were added */
    at_error *error;
} measure;

static int compare_heads(const void *a, const void *b)
{
    const at_head *x = a, *y = b;
    return x->kind != y->kind     ? (x->kind < y->kind ? -1 : 1)
           : x->layer != y->layer ? x->layer - y->layer
                                  : x->head - y->head;
}

/* A place for every head of the calls, in their order. */
static bool open_heads(measure *m, const at_probe *probe)
{
    at_head_list *list = m->list;
    int count = 0;
    for (const at_probed *call = probe->last; call; call = call->previous)
        count += (int)call->heads;
    list->head = calloc((size_t)count + 1, sizeof *list->head);
    m->rows = calloc((size_t)count + 1, sizeof *m->rows);
    if (!list->head || !m->rows)
        return at_no_memory(m->error, "the importance of %d heads", count);
    for (const at_probed *call = probe->last; call; call = call->previous)
        for (int h = 0; h < call->heads; h++)
            list->head[list->count++] = (at_head){.kind = call->kind, .layer = call->layer, .head = h + 1};
    qsort(list->head, (size_t)list->count, sizeof *list->head, compare_heads);
    return true;
}

/* |dL/dxi_h| of every pair of a call, dL/dxi_h being the sum over its queries; and the rows' entropies. */
static void add_call(measure *m, const at_probed *call)
{
    const at_head first = {.kind = call->kind, .layer = call->layer, .head = 1};
    at_head *heads = bsearch(&first, m->list->head, (size_t)m->list->count, sizeof first, compare_heads);
    const int64_t H = call->heads;
    for (int64_t h = 0; h < H; h++)
        for (int64_t b = 0; b < call->packed->batch; b++) {
            const int64_t at = call->packed->query_at[b], count = call->packed->query_count[b];
            double gradient = 0;
            for (int64_t i = 0; i < count; i++) {
                gradient += (double)call->gradient[(at + i) * H + h];
                heads[h].entropy += (double)call->entropy[(b * H + h) * call->queries + i];
            }
            heads[h].importance += fabs(gradient);
            m->rows[heads - m->list->head + h] += (double)count;
        }
}

static bool add_batch(measure *m, at_loss *loss, const at_batch *batch)
{
    at_probe probe = {0};
    double sum = 0;
    loss->probe = &probe;
    if (!at_batch_loss(loss, batch, false, &sum, m->error))
        return false;
    if (!isfinite(sum))
        return at_fail(m->error, AT_FAILED,
                       "lines %lld to %lld: the model's scores are not finite; its parameters are too large, as after "
                       "a training that diverged, so it is of no use",
                       (long long)batch->lines[0], (long long)batch->lines[batch->rows - 1]);
    if (!m->list->head && !open_heads(m, &probe))
        return false;
    for (const at_probed *call = probe.last; call; call = call->previous)
        add_call(m, call);
    m->list->pairs += batch->rows;
    return true;
}

/* Means in place of the sums, and each layer's shares. */
static void finish(measure *m)
{
    at_head *head = m->list->head;
    for (int i = 0; i < m->list->count; i++) {
        head[i].importance /= (double)m->list->pairs;
        head[i].entropy /= m->rows[i];
    }
    for (int from = 0, to; from < m->list->count; from = to) {
        double square = 0;
        for (to = from; to < m->list->count && head[to].kind == head[from].kind && head[to].layer == head[from].layer;
             to++)
            square += head[to].importance * head[to].importance;
        for (int i = from; i < to && square > 0; i++)
            head[i].share = head[i].importance / sqrt(square);
    }
}

static bool is_stopped(const at_search_settings *settings, at_error *error)
{
    return settings->stop && __atomic_load_n(settings->stop, __ATOMIC_RELAXED) &&
           !at_fail(error, AT_INTERRUPTED, "stopped, as the caller asked for it");
}

static bool measure_all(measure *m, const at_translator *t, const at_search_settings *settings, const at_lines *lines)
{
    at_corpus_report report;
    at_corpus *corpus = at_corpus_new(lines, t->source, t->target, NULL, &(at_corpus_limits){0}, &report, m->error);
    at_batches *batches =
        corpus ? at_batches_new(corpus, settings->batch > 0 ? settings->batch : BATCH, 0, 0, false, m->error) : NULL;
    at_loss loss = {.model = t->model, .arena = batches ? at_arena_new() : NULL};
    if (batches && !loss.arena)
        at_no_memory(m->error, "a batch");
    at_batch batch;
    bool good = loss.arena;
    while (good && at_batches_next(batches, &batch))
        good = !is_stopped(settings, m->error) && add_batch(m, &loss, &batch);
    if (good) {
        m->list->empty = report.empty;
        m->list->first_empty = report.first_empty;
        finish(m);
    }
    at_arena_free(loss.arena);
    at_batches_free(batches);
    at_corpus_free(corpus);
    return good;
}

static bool has_heads(const at_translator *translator, at_error *error)
{
    const at_model_kind *kind = translator->model->kind;
    return kind->has_multihead ||
           at_fail(
               error, AT_UNSUPPORTED,
               "model '%s' has no heads to measure or remove: only 'transformer' and 'transformer-lm' have layers of "
               "multi-head attention",
               kind->name);
}

at_head_list *at_heads_measure(at_translator *translator, const at_search_settings *settings, const at_line *sources,
                               const at_line *targets, int64_t count, at_error *error)
{
    if (error->code != AT_OK || !has_heads(translator, error))
        return NULL;
    if (!sources == translator->model->kind->has_source) {
        at_fail(error, AT_USAGE,
                sources ? "model '%s' is a language model: it takes no sources beside the text"
                        : "model '%s' translates: it needs the sources beside the targets",
                translator->model->kind->name);
        return NULL;
    }
    at_lines *lines = at_lines_of(sources, targets, count, error);
    measure m = {.list = lines ? calloc(1, sizeof *m.list) : NULL, .error = error};
    if (lines && !m.list)
        at_no_memory(error, "the importance of heads");
    const bool good = m.list && measure_all(&m, translator, settings, lines);
    free(m.rows);
    at_lines_free(lines);
    if (good)
        return m.list;
    at_head_list_free(m.list);
    return NULL;
}

void at_head_list_free(at_head_list *list)
{
    if (list)
        free(list->head);
    free(list);
}

/* ---- Removing ------------------------------------------------------------------------------------------------- */

/* The index of the output projection of a head; -1: there is no such head. */
static int projection_of(const at_model *model, const at_head *head)
{
    char name[60];
    snprintf(name, sizeof name, "%s.%d.%s.O.W", head->kind == AT_ENCODER_ATTENTION ? "encoder" : "decoder", head->layer,
             head->kind == AT_CROSS_ATTENTION ? "cross" : "self");
    return head->head >= 1 && head->head <= model->settings.heads ? at_params_find(model->params, name) : -1;
}

bool at_translator_prune(at_translator *translator, const at_head *heads, int count, at_error *error)
{
    const at_model *model = translator->model;
    if (error->code != AT_OK || !has_heads(translator, error))
        return false;
    if (translator->more_count > 0 || model->shares > 0)
        return at_fail(error, AT_UNSUPPORTED, "heads are removed from a single model, not from %s",
                       translator->more_count > 0 ? "an ensemble" : "one that a clone shares");
    for (int i = 0; i < count; i++)
        if (projection_of(model, &heads[i]) < 0)
            return at_fail(error, AT_UNSUPPORTED, "the model has no head %d.%d of this kind", heads[i].layer,
                           heads[i].head);
    if (!at_params_convert(model->params, AT_NUMBERS_REAL, error)) /* a part of a row of int8 cannot be changed alone */
        return false;
    const int64_t d = model->settings.hidden, size = d / model->settings.heads;
    for (int i = 0; i < count; i++) {
        at_real *O = at_params_value(model->params, projection_of(model, &heads[i])); /* [d, H size] */
        for (int64_t row = 0; row < d; row++)
            memset(O + row * d + (heads[i].head - 1) * size, 0, (size_t)size * sizeof *O);
    }
    at_params_changed(model->params);
    translator->calibrated = false; /* that was of the model before */
    return true;
}

bool at_translator_write(const at_translator *translator, const char *path, at_error *error)
{
    if (error->code == AT_OK && translator->more_count > 0)
        return at_fail(error, AT_UNSUPPORTED, "an ensemble is several model files and cannot be written as one");
    return at_translator_save(translator, path, false, error);
}
