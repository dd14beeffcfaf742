/* Before the first update: the settings are checked, data and model are created, and a resumed run reads its state. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "train/guide_internal.h"
#include "train/train_internal.h"

/* The guided head must be one of the model's. */
static bool guided_head_exists(const at_model *model, at_error *error)
{
    int layers, heads, layer = 0, head = 0;
    if (!at_model_heads(model, &layers, &heads))
        return at_fail(error, AT_USAGE,
                       "model '%s' does not attend to a source, so `guided-alignment` has no head to train",
                       model->kind->name);
    if (at_attention_samples(&model->attention))
        return at_fail(
            error, AT_USAGE,
            "`guided-alignment` trains attention weights, and the normaliser 'hard' samples positions instead");
    if (!at_model_guided(model, &layer, &head) || layer > layers || head > heads)
        return at_fail(error, AT_USAGE, "`guided-head` is '%s' and must be LAYER.HEAD, from 1.1 to %d.%d",
                       model->settings.guided_head, layers, heads);
    return true;
}

/* The penalty of `doubly-stochastic` needs weights that are one distribution over the source for each target unit. */
static bool can_be_doubly_stochastic(const at_model *model, at_error *error)
{
    int layers, heads;
    if (!at_model_heads(model, &layers, &heads) || model->kind->has_cross_layers)
        return at_fail(error, AT_USAGE,
                       "`doubly-stochastic` is for recurrent models that attend to the source, and model '%s' is not "
                       "one",
                       model->kind->name);
    if (at_attention_samples(&model->attention))
        return at_fail(
            error, AT_USAGE,
            "`doubly-stochastic` trains attention weights, and the normaliser 'hard' samples positions instead");
    return true;
}

/* Equal sizes are not enough: every id must be the same unit on both sides. What frames a line may differ. */
static bool can_share(const at_translator *t, at_error *error)
{
    const int64_t size = at_vocabulary_size(t->source);
    bool same = size == at_vocabulary_size(t->target);
    for (int32_t i = 0; same && i < size; i++)
        same = strcmp(at_vocabulary_unit(t->source, i), at_vocabulary_unit(t->target, i)) == 0;
    return same || at_fail(error, AT_USAGE,
                           "`share-embeddings` needs one vocabulary for both sides, and those of %lld and %lld entries "
                           "differ; `joint-vocab` makes one",
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
    if (t->model)
        at_trainer_take_parameters(trainer);
    if (t->model && !at_trainer_freeze(trainer, error))
        return false;
    if (t->model && trainer->guide && !guided_head_exists(t->model, error))
        return false;
    if (t->model && trainer->settings->doubly_stochastic > 0 && !can_be_doubly_stochastic(t->model, error))
        return false;
    trainer->optimiser = t->model ? at_optimiser_new(&trainer->settings->optimiser, t->model->params, error) : NULL;
    if (trainer->optimiser && trainer->settings->average > 1)
        trainer->average = at_average_new(trainer->settings->average, t->model->params, error);
    const at_train_settings *s = trainer->settings;
    trainer->loss = (at_loss){.model = t->model,
                              .arena = at_arena_new(),
                              /* a different stream from the one that initialised the parameters */
                              .rng = {.seed = s->seed ^ 0x9e3779b97f4a7c15u},
                              .pictures = at_picture_source_pictures(trainer->pictures),
                              .augment = s->augment,
                              .elastic = s->elastic,
                              .options = {.label_smoothing = s->label_smoothing,
                                          .word_dropout = s->word_dropout,
                                          .r_drop = s->r_drop,
                                          .reinforce = s->reinforce,
                                          .entropy = s->entropy,
                                          .baseline = s->baseline,
                                          .expectation = s->expectation,
                                          .guide = trainer->guide,
                                          .guided_weight = s->guided_weight,
                                          .doubly_stochastic = s->doubly_stochastic}};
    if (!trainer->loss.arena)
        at_no_memory(error, "training");
    trainer->progress = (at_progress){.epoch = 1, .best = NAN};
    trainer->saved = trainer->collected = -1;
    trainer->slices = trainer->optimiser ? at_slices_new(t->model->params, trainer->group, error) : NULL;
    trainer->slice = calloc((size_t)(s->accumulate > 0 ? s->accumulate : 1), sizeof *trainer->slice);
    if (!trainer->slice)
        at_no_memory(error, "the slices of an update");
    return error->code == AT_OK && at_trainer_identify(trainer, error) && at_trainer_record(trainer, error);
}

bool at_trainer_check_settings(at_trainer *trainer, at_error *error)
{
    const at_train_settings *s = trainer->settings;
    const at_valid_metrics *metrics = &trainer->metrics;
    if (!at_valid_metrics_parse(s->valid_metric, &trainer->metrics, error))
        return false;
    if ((s->batch_size > 0) == (s->batch_tokens > 0))
        return at_fail(error, AT_USAGE,
                       "a batch is measured in sentences or in tokens: set `batch-size` or `batch-tokens`, not both");
    if (s->early_stopping > 0 && !at_train_validates(s))
        return at_fail(error, AT_USAGE, "`early-stopping` needs validation data");
    for (int i = 0; s->train.target_only && i < metrics->count; i++)
        if (at_metric_decodes(metrics->name[i]))
            return at_fail(
                error, AT_USAGE,
                "`valid-metric` %s scores translations, and a language model has no source to translate; use "
                "loss, perplexity or token-accuracy",
                metrics->name[i]);
    return true;
}

bool at_trainer_prepare(at_trainer *trainer, at_error *error)
{
    const at_train_settings *s = trainer->settings;
    trainer->log = -1;
    if (at_group_rank(trainer->group) > 0) /* rank 0 has the files and tells where to start */
        return at_trainer_check_settings(trainer, error) && at_trainer_load_initial(trainer, error) &&
               at_trainer_prepare_data(trainer, error) && prepare_model(trainer, error);
    return at_trainer_check_settings(trainer, error) && at_trainer_name_files(trainer, error) &&
           at_trainer_lock(trainer, error) && at_trainer_check_existing(trainer, error) &&
           at_trainer_check_numbered(trainer, error) && at_trainer_load_initial(trainer, error) &&
           at_trainer_prepare_data(trainer, error) && prepare_model(trainer, error) &&
           (!s->resume || at_trainer_resume(trainer, error));
}

void at_trainer_release(at_trainer *trainer)
{
    at_trainer_unlock(trainer);
    at_translator_free(trainer->initial);
    at_model_free(trainer->translator.model);
    at_vocabulary_free(trainer->translator.source);
    at_vocabulary_free(trainer->translator.target);
    at_buffer_free(&trainer->history);
    at_buffer_free(&trainer->opening);
    json_decref(trainer->record);
    at_picture_source_free(trainer->pictures);
    at_subword_sampling_free(trainer->sampling);
    at_guide_free(trainer->guide);
    at_batches_free(trainer->batches);
    at_batches_free(trainer->valid_batches);
    at_corpus_free(trainer->train);
    at_corpus_free(trainer->valid);
    at_lines_free(trainer->valid_lines);
    at_optimiser_free(trainer->optimiser);
    at_slices_free(trainer->slices);
    free(trainer->slice);
    at_average_free(trainer->average);
    at_arena_free(trainer->loss.arena);
    free(trainer->last_path);
    free(trainer->state_path);
    free(trainer->log_path);
    at_identity_free(trainer->identity);
    at_checkpoints_free(&trainer->checkpoints);
}
