/* Training: teacher forcing over shuffled batches, validation, early stopping, exact resume.
 *
 * OUTPUT is the best model (without validation: the last), OUTPUT.last the last one, OUTPUT.state all that is needed to
 * go on as if nothing had happened, OUTPUT.log.jsonl one JSON object per report. Two runs with the same settings, data
 * and seed give the same bytes, stopped and resumed or not. A run that reaches its limit between two validations is
 * validated there as well, which may give the best model but is no part of the state: going on makes the best what it
 * would have been without that end. The log is locked, so that two trainers cannot write one
 * output. */
#ifndef AT_TRAIN_H
#define AT_TRAIN_H

#include "store/checkpoint.h"
#include "text/corpus.h"
#include "train/optimise.h"

typedef struct at_train_settings {
    at_corpus_files train, valid; /* valid may be empty */
    const char *output;           /* the best model; OUTPUT.last, OUTPUT.state, OUTPUT.log.jsonl beside it */
    at_model_settings model;
    const char *source_vocabulary, *target_vocabulary; /* "char", "word:8000", "spm:8000", "FILE.spm" */
    bool joint_vocabulary;
    at_cleaning cleaning;    /* of both sides */
    double subword_sampling; /* 0: none; else how far drawn pieces stray from the best ones */
    at_corpus_limits limits; /* of training; validation has the lengths alone */
    int64_t batch_size, batch_tokens, accumulate;
    at_optimiser_settings optimiser;
    double label_smoothing;
    const char *guided_alignment; /* NULL, or links of the training pairs' words that the model's guided_head learns */
    double guided_weight;         /* of that loss beside the words' */
    double reinforce, entropy;    /* hard attention: lambda_r and lambda_e of its gradient (loss.c) */
    int64_t epochs, updates;      /* 0: no limit by it */
    double minutes;
    int64_t early_stopping;   /* validations without a better score; 0: never */
    const char *valid_metric; /* loss, perplexity, or a metric of attend score */
    int64_t valid_every;      /* updates; 0: every epoch */
    int64_t average;          /* the last validations whose parameters' mean is validated and saved; 0, 1: none */
    int64_t report_every;     /* updates between reports; 0: 100 */
    int64_t save_every;       /* updates between saves of the state; 0: with every validation and every epoch */
    uint64_t seed;
    bool resume;
} at_train_settings;

/* Runs until a limit. `stop`, checked between updates (may be NULL), ends it early after saving: a signal handler sets
 * it. */
bool at_train(const at_train_settings *settings, at_train_listener *listener, void *context, const volatile int *stop,
              at_train_result *result, at_error *error);

#endif
