/* Training: teacher forcing over shuffled batches, validation, early stopping, exact resume.
 *
 * OUTPUT is the best model (without validation: the last), OUTPUT.last the last one, OUTPUT.state all that an exact
 * resume needs, OUTPUT.log.jsonl one JSON object per event. Two runs with the same settings, data and seed write the
 * same bytes, and the same log apart from its times, whether they were stopped and resumed or not. A run that reaches
 * its limit between two validations is validated at its end too. Its last model may be the best, but this is not part of
 * the state: a resumed run restores the best model of the state, which is OUTPUT.previous then. The log is locked, so
 * that two runs cannot write the same output.
 *
 * The model, state and log of another run are replaced only with `overwrite`, and not before the first save: a run that
 * is interrupted or fails before that leaves them as they were. */
#ifndef AT_TRAIN_H
#define AT_TRAIN_H

#include "store/translator.h"
#include "text/corpus.h"
#include "train/optimise.h"

/* Lines in memory, which belong to the caller. */
typedef struct at_line_pairs {
    const at_line *sources, *targets; /* sources NULL: there are none; targets NULL: the data comes from files */
    int64_t count;
} at_line_pairs;

typedef struct at_train_settings {
    at_corpus_files train, valid; /* valid may be empty */
    at_line_pairs lines[2];       /* instead of those files, by at_training_part */
    const char *output;           /* the best model; OUTPUT.last, OUTPUT.state, OUTPUT.log.jsonl beside it */
    at_columns columns;           /* of both, if they are tab-separated */
    at_model_settings model;
    const char *corpus_weights; /* "1,3": how often the pairs of each training corpus occur in an epoch; NULL: once */
    const char *init;           /* the model file to start from, or NULL */
    bool valid_only;            /* nothing is trained or written: `init`, or the output, is scored */
    const char *freeze;         /* patterns of the names of parameters that stay as they are, commas between; or NULL */
    const char *source_vocabulary, *target_vocabulary; /* "char", "word:8000", "spm:8000", "FILE.spm" */
    bool joint_vocabulary;
    bool source_end;         /* every line of the source ends with </s> */
    at_cleaning cleaning;    /* of both sides */
    double subword_sampling; /* 0: always the best segmentation */
    at_corpus_limits limits; /* of training; validation has the limits of length only */
    int64_t batch_size, batch_tokens, accumulate;
    at_optimiser_settings optimiser;
    double label_smoothing;
    const char *guided_alignment; /* file of links between the words of the training pairs, or NULL */
    double guided_weight;         /* factor of their cross-entropy */
    double baseline, expectation; /* hard attention: decay of the mean reward; share of batches without samples */
    double word_dropout;          /* probability that a previous target token is unknown to the decoder */
    double r_drop;                /* factor of the divergence of two passes with different dropout; 0: one pass */
    double augment, elastic;      /* how much pictures are changed in training; 0: not */
    double doubly_stochastic;     /* factor of the penalty for uneven attention to the source units */
    double reinforce, entropy;    /* hard attention: lambda_r and lambda_e of its gradient (loss.c) */
    int64_t epochs, updates;      /* 0: no limit */
    double minutes;
    int64_t early_stopping;   /* validations without a better score; 0: never */
    const char *valid_metric; /* names with commas between: of train_valid.c, or metrics of attend score */
    int64_t valid_samples;    /* lines of the validation data that a validation shows */
    int64_t valid_every;      /* updates; 0: every epoch */
    int64_t average;          /* number of validations whose mean parameters are validated and saved; 0, 1: none */
    int64_t report_every;     /* updates between reports; 0: 100 */
    int64_t save_every;       /* updates between saves of the state; 0: with every validation and every epoch */
    double rank_timeout;      /* seconds that ranks wait for each other */
    uint64_t seed;
    bool resume;
    bool overwrite;     /* the model and the state that are there */
    int64_t keep;       /* checkpoints OUTPUT.000400 to keep; 0: none are written */
    bool keep_previous; /* what a save replaces stays as OUTPUT.previous and OUTPUT.state.previous */
} at_train_settings;

/* Whether there is validation data. */
static inline bool at_train_validates(const at_train_settings *settings)
{
    return settings->valid.target || settings->valid.tsv || settings->lines[AT_VALID].targets;
}

/* Checks that the settings can be used together and fills in the defaults that depend on others, those of the model
 * among them. `given`: by the index of at_training_setting, like `stored`, what a resumed run has from its state. */
bool at_train_settings_complete(at_train_settings *settings, const at_given *given, const at_given *stored,
                                at_error *error);
/* Whether a setting of training has a value and an effect beside these others. */
bool at_train_setting_applies(const at_train_settings *settings, const at_setting *row);

/* Trains until a limit is reached. `stop` (may be NULL) is checked between updates: not 0 ends the run after a save. */
bool at_train(const at_train_settings *settings, at_train_listener *listener, void *context, const volatile int *stop,
              at_train_result *result, at_error *error);

#endif
