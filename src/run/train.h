/* Training: teacher forcing over shuffled batches, validation, early stopping, exact resume. */
#ifndef AT_TRAIN_H
#define AT_TRAIN_H

#include "checkpoint.h"
#include "corpus.h"
#include "optimise.h"

typedef struct at_train_settings {
    at_corpus_files train, valid; /* valid may be empty */
    const char *output;           /* the best model; OUTPUT.last, OUTPUT.state, OUTPUT.log.jsonl beside it */
    at_model_settings model;
    const char *source_vocabulary, *target_vocabulary; /* "char", "word", "word:8000" */
    bool joint_vocabulary;
    int64_t max_length;
    at_too_long too_long;
    int64_t batch_size, batch_tokens, accumulate;
    at_optimiser_settings optimiser;
    double label_smoothing;
    double baseline, entropy; /* hard attention: REINFORCE's lambda_r (1) and lambda_e; b is a 0.9/0.1 moving average */
    int64_t epochs, updates;  /* 0: no limit by it */
    double minutes;
    int64_t early_stopping;   /* validations without a better score; 0: never */
    const char *valid_metric; /* loss perplexity accuracy wer cer */
    int64_t valid_every;      /* updates; 0: every epoch */
    uint64_t seed;
    bool resume;
} at_train_settings;

/* What the trainer says while it runs; the command prints it, an embedder may ignore it. */
typedef struct at_train_news {
    enum { AT_NEWS_UPDATE, AT_NEWS_VALID, AT_NEWS_SAVED, AT_NEWS_SKIPPED, AT_NEWS_NOTE } what;
    int64_t epoch, update, sentences;
    double cost, seconds, words_per_second, norm, rate;
    double score, best;
    bool better;      /* validation */
    const char *text; /* notes and warnings, one sentence */
} at_train_news;
typedef void at_train_listener(void *context, const at_train_news *news);

typedef struct at_train_result {
    int64_t updates, epochs;
    double seconds, words_per_second, best_score;
    bool interrupted;
} at_train_result;

/* Runs until a limit. `stop`, checked between updates (may be NULL), ends it early after saving: a signal handler sets
 * it. */
bool at_train(const at_train_settings *settings, at_train_listener *listener, void *context, const volatile int *stop,
              at_train_result *result, at_error *error);

#endif
