/* The trainer in memory: what train.c drives, train_loss.c and train_valid.c compute with, train_state.c saves. */
#ifndef AT_TRAIN_INTERNAL_H
#define AT_TRAIN_INTERNAL_H

#include "text/draws.h"
#include "train/average_internal.h"
#include "train/train.h"

/* Where training stands, beside the parameters and moments. Everything here decides what comes next, so all of it is in
 * the state file, and nothing in it comes from a clock. */
typedef struct at_progress {
    int64_t epoch, batch;           /* the epoch, from 1, and how many of its batches are done */
    int64_t sentences;              /* of this epoch */
    int64_t skipped;                /* updates in a row whose gradients were not finite */
    int64_t failures;               /* validations in a row without a better score */
    int64_t best_update, validated; /* the update of the best score and of the last validation; 0: none yet */
    uint64_t seed, counter;         /* of the random numbers */
    double best;                    /* score */
    double cost, tokens;            /* summed since the last validation */
    double baseline;                /* hard attention: the moving average of log p(y|s) of a sentence */
} at_progress;

typedef struct at_trainer {
    const at_train_settings *settings;
    at_train_listener *listener;
    void *context;

    at_translator translator; /* the model as it stands, its words, its history */
    at_buffer history;        /* JSON objects with commas between: one per validation */
    at_lines *valid_lines;
    at_corpus *train, *valid;
    struct at_guide *guide; /* NULL: attention is not guided */
    at_draws *draws;        /* NULL: an epoch has the same pieces as any other */
    at_batches *batches, *valid_batches;
    at_optimiser *optimiser;
    at_average *average; /* NULL: none over validations */
    at_real *aside;      /* the parameters while that mean stands in their place, else NULL */
    at_arena *arena;     /* of the tapes */
    at_rng rng;
    at_progress place;

    char *last_path, *state_path, *log_path;
    char *identity; /* the settings that a resumed run must share, a line each */
    int log;        /* the log's file, locked; -1: none */
} at_trainer;

/* train_loss.c: the summed cross-entropy of a batch on the trainer's tape. With `learn`, its gradients are added to the
 * block, and hard attention adds its score-function terms. *loss: the sum. */
bool at_batch_loss(at_trainer *trainer, const at_batch *batch, bool learn, double *loss, at_error *error);

/* train_valid.c: the score of the validation data by the settings' metric. */
bool at_validate(at_trainer *trainer, double *score, at_error *error);
bool at_metric_known(const char *metric, at_error *error);
bool at_metric_decodes(const char *metric); /* of a known one */
bool at_metric_better(const char *metric, double score, double best);

/* train_state.c */
bool at_trainer_lock(at_trainer *trainer, at_error *error);
void at_trainer_unlock(at_trainer *trainer);
bool at_trainer_log(at_trainer *trainer, const char *line, size_t size, at_error *error);
bool at_trainer_identify(at_trainer *trainer, at_error *error);
bool at_trainer_save(at_trainer *trainer, at_error *error); /* the last model and the state */
bool at_trainer_save_best(at_trainer *trainer, at_error *error);
bool at_trainer_resume(at_trainer *trainer, at_error *error);

/* Puts the average in the place of the parameters, if there is one, moving or over validations; calling it again puts
 * them back. */
void at_trainer_swap_average(at_trainer *trainer);

/* A note for the listener. */
void at_trainer_note(at_trainer *trainer, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
