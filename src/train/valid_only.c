/* A validation without training: the model file is read, its scores on the validation data are told, and nothing is
 * written. */
#include <math.h>

#include "train/train_internal.h"

/* The model with its vocabularies, the validation data, and what computes the loss. */
static bool prepare(at_trainer *trainer, at_error *error)
{
    at_translator *t = &trainer->translator;
    trainer->log = -1;
    if (!at_trainer_check_settings(trainer, error) || !at_trainer_load_initial(trainer, error))
        return false;
    t->model = trainer->initial->model;
    t->source = trainer->initial->source;
    t->target = trainer->initial->target;
    t->max_length = trainer->initial->max_length;
    trainer->initial->model = NULL;
    trainer->initial->source = trainer->initial->target = NULL;
    trainer->loss = (at_loss){.model = t->model, .arena = at_arena_new()};
    if (!trainer->loss.arena || !at_trainer_prepare_validation(trainer, error))
        return trainer->loss.arena ? false : at_no_memory(error, "a validation");
    trainer->loss.pictures = at_picture_source_pictures(trainer->pictures);
    return true;
}

static bool score(at_trainer *trainer, at_train_result *result, at_error *error)
{
    const double began = at_seconds_now();
    at_validation v;
    bool done = at_validate(trainer, &v, error);
    if (done && v.diverged)
        done = at_fail(error, AT_FAILED, "the scores of '%s' on the validation data are not finite",
                       trainer->settings->init);
    if (done) {
        result->best_score = v.score[0].score;
        result->parameters = at_params_count(trainer->translator.model->params);
        result->seconds = at_seconds_now() - began;
        at_trainer_tell(trainer, &(at_train_news){.what = AT_NEWS_VALID,
                                                  .metric = v.score[0].metric,
                                                  .score = v.score[0].score,
                                                  .best = v.score[0].score,
                                                  .better = true,
                                                  .seconds = result->seconds,
                                                  .scores = v.score,
                                                  .score_count = trainer->metrics.count,
                                                  .samples = v.sample,
                                                  .sample_count = v.sample_count});
    }
    at_validation_free(&v);
    return done;
}

bool at_train_validate_only(const at_train_settings *settings, at_train_listener *listener, void *context,
                            at_train_result *result, at_error *error)
{
    at_trainer trainer = {.settings = settings, .listener = listener, .context = context};
    const bool done = prepare(&trainer, error) && score(&trainer, result, error);
    at_trainer_release(&trainer);
    return done;
}
