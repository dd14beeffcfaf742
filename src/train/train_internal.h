/* A trainer in memory, and what each file does with it:
 *
 *     settings.c       the table of settings                         complete.c     valid combinations and defaults
 *     identity.c       what a resumed run must share                 stored.c       what it takes from its state
 *     train_prepare.c  checks the settings and makes the trainer     loss.c         the loss of a batch and its gradients
 *     train_data.c     vocabularies, corpora and batches             train_valid.c  the score of the validation data
 *     train.c          the loop                                      train_state.c  models and the state on disk
 *     train_report.c   news for the listener, lines for the log      train_log.c    the log and its lock
 *     train_output.c   names of the files, and none is replaced by mistake
 *     fine_tune.c      starting from a model, frozen parameters      checkpoints.c  numbered models
 *     valid_only.c     a validation without training
 *     train_record.c   how a model was trained, for its file and the log
 *     slices.c         the gradient of an update, from several batches and ranks
 *     train_group.c    a run of several processes: rank 0 decides and writes, the others follow */
#ifndef AT_TRAIN_INTERNAL_H
#define AT_TRAIN_INTERNAL_H

#include "text/picture_source.h"
#include "text/subword_sampling.h"
#include "train/average_internal.h"
#include "train/loss_internal.h"
#include "train/slices_internal.h"
#include "train/train.h"

enum { AT_MOST_SKIPPED = 10 }; /* updates in a row; so many end the run */

/* The progress of training, apart from the parameters and moments. All of it influences later updates, so all of it
 * is in the state file, and nothing in it comes from a clock. */
typedef struct at_progress {
    int64_t epoch, batch;              /* the epoch, from 1, and how many of its batches are done */
    int64_t sentences;                 /* of this epoch */
    int64_t skipped;                   /* updates in a row whose gradients were not finite */
    int64_t failures;                  /* validations in a row without a better score */
    int64_t best_update, validated;    /* the update of the best score and of the last validation; 0: none yet */
    uint64_t seed, counter;            /* of the random numbers */
    double best;                       /* score */
    double cost, tokens;               /* summed since the last validation */
    double baseline;                   /* of the loss */
    int64_t logged;                    /* lines of the log; -1: an older version, which did not count them */
    int64_t unreported;                /* updates since the last report */
    double report_cost, report_tokens; /* summed since the last report */
    double norm;                       /* of the last gradient, before clipping */
} at_progress;

typedef struct at_identity at_identity;

/* The updates of the numbered checkpoints that this run has written and not removed, oldest first. */
typedef struct at_checkpoints {
    int64_t *update;
    int64_t count;
    size_t room;
} at_checkpoints;

/* What is computed of the validation data: the metrics of `valid-metric` in their order, the first of which decides, then
 * perplexity and token-accuracy if they are not among them. */
enum { AT_MOST_VALID_METRICS = 16 };
typedef struct at_valid_metrics {
    const char *name[AT_MOST_VALID_METRICS];
    int count;
} at_valid_metrics;

/* The outcome of a validation. */
typedef struct at_validation {
    at_train_score score[AT_MOST_VALID_METRICS]; /* by the index of at_valid_metrics */
    at_train_sample *sample;                     /* [sample_count] */
    int sample_count;
    bool diverged; /* what the model computes is not finite */
} at_validation;

/* What an update knows of one of its slices, whichever rank computed it. */
typedef struct at_slice_result {
    double cost, tokens;
    double baseline; /* of the loss, after this slice alone */
    int64_t rows;
} at_slice_result;

typedef struct at_trainer {
    const at_train_settings *settings;
    at_train_listener *listener;
    void *context;

    at_translator *initial;   /* the model that the run starts from, until its parameters are copied; NULL: none */
    at_translator translator; /* the current model, its vocabularies, its history */
    at_buffer history;        /* JSON objects with commas between: one per validation */
    at_lines *valid_lines;
    at_valid_metrics metrics;
    at_train_part part[2]; /* what was read, by at_training_part */
    struct json_t *record; /* how the model is trained, for its file and the log */
    at_corpus *train, *valid;
    at_picture_source *pictures;   /* of both; NULL: the source is text */
    struct at_guide *guide;        /* known alignments; NULL: attention is not guided */
    at_subword_sampling *sampling; /* sampled subwords; NULL: the subwords are the same in every epoch */
    at_batches *batches, *valid_batches;
    at_optimiser *optimiser;
    at_group *group; /* the processes that train together; NULL: this one alone */
    at_slices *slices;
    at_slice_result *slice; /* [accumulate] of the current update */
    int64_t collected;      /* the update whose moments rank 0 has; -1: none */
    at_average *average;    /* of the last validations; NULL: none */
    at_real *swapped;       /* holds the parameters while the model has their average, else NULL */
    at_loss loss;           /* the model's, with the random numbers and the baseline of training */
    at_progress progress;
    at_checkpoints checkpoints;
    int64_t saved;         /* the update of the last save; -1: none */
    double entropy;        /* of the target units: the loss of a model that knows their frequencies only */
    double seconds_before; /* from the last report to the end of the run that is resumed; 0: unknown */
    bool has_begun;        /* the files are those of this run, as it has saved or resumed */
    bool replaces;         /* there is a model or a state of another run, to stay until the first save */

    char *last_path, *state_path, *log_path;
    at_identity *identity; /* the settings that a resumed run must share */
    at_buffer opening;     /* the first line of this run in the log, not written yet */
    int log;               /* descriptor of the locked log; -1: none */
    int64_t old_log;       /* bytes of the log that are of another run, to be removed by the first save */
} at_trainer;

/* One call of at_train: clocks and sums for the reports. None of them influences an update; the clock can only end the
 * run (`minutes`). */
typedef struct at_run {
    at_trainer *trainer;
    const volatile int *stop;
    double started, reported;            /* at_seconds_now() at the start and at the last report */
    int64_t first_update;                /* updates before this run */
    double timed_tokens;                 /* since `reported` */
    double all_tokens;                   /* of the run */
    bool unsaved;                        /* something changed since the last save */
    double watched_cost, watched_tokens; /* of at_run_watch, like the next two */
    int64_t watched;
    bool has_warned;
    const char *reason; /* why the run ended */
    bool dissolved;     /* all ranks know the error that ends the run */
    at_train_result *result;
} at_run;

/* train_prepare.c: the trainer of `settings`, ready for the next update; to be released even if it fails. */
bool at_trainer_prepare(at_trainer *trainer, at_error *error);
bool at_trainer_check_settings(at_trainer *trainer, at_error *error);
void at_trainer_release(at_trainer *trainer);

/* train_group.c. Before the first update: refuses ranks that differ, and all of them start alike. */
bool at_trainer_join(at_trainer *trainer, at_error *error);
/* What rank 0 has the others do; they do it with at_run_follow, until the run ends. */
typedef enum at_order { AT_ORDER_UPDATE, AT_ORDER_COLLECT, AT_ORDER_END } at_order;
bool at_run_order(at_run *run, at_order order, at_error *error);
typedef bool at_update(at_run *run, at_error *error);
bool at_run_follow(at_run *run, at_update *update, at_error *error);
/* Rank 0 gets the moments of all parameters, to save or validate them. */
bool at_run_collect(at_run *run, at_error *error);
/* Continues with batch `batch` of an epoch, with the subwords sampled for that epoch. */
bool at_trainer_seek(at_trainer *trainer, int64_t epoch, int64_t batch, at_error *error);
/* All ranks get what the others know of the slices of this update. */
bool at_trainer_gather_slices(at_trainer *trainer, int64_t slices, at_error *error);

/* fine_tune.c. With `init`: the settings of that model, unless those given contradict them; then the model itself, and its
 * parameters for the new one. */
bool at_train_settings_from_init(at_train_settings *settings, const at_given *given, at_error *error);
bool at_trainer_load_initial(at_trainer *trainer, at_error *error);
void at_trainer_take_parameters(at_trainer *trainer);
/* Freezes the parameters that `freeze` names. */
bool at_trainer_freeze(at_trainer *trainer, at_error *error);

/* valid_only.c: scores a model on the validation data instead of training one. */
bool at_train_validate_only(const at_train_settings *settings, at_train_listener *listener, void *context,
                            at_train_result *result, at_error *error);

/* train_data.c */
bool at_trainer_prepare_validation(at_trainer *trainer, at_error *error); /* lines, corpus and batches */
bool at_corpus_weights_known(const char *text, at_error *error);
bool at_trainer_prepare_data(at_trainer *trainer, at_error *error);

/* train_report.c */
double at_seconds_now(void);
void at_trainer_tell(at_trainer *trainer, const at_train_news *news);
void at_trainer_note(at_trainer *trainer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The epoch of the last update. */
int64_t at_trainer_epoch(const at_trainer *trainer);
at_train_news at_run_news(const at_run *run, int what);
/* The sums since the last report, to the listener and the log. */
bool at_run_report(at_run *run, at_error *error);
/* After an update: warns once if the loss stays at that of the frequencies of the target units. */
void at_run_watch(at_run *run, double cost, double tokens);
/* Before the first update, to the listener; the log gets it with its first line. */
bool at_run_start(at_run *run, at_error *error);
/* After the last one, to the log. */
bool at_run_end(at_run *run, at_error *error);
/* A validation, to the listener; its line for the log; and its entry in the history that model files contain. */
void at_run_tell_validation(at_run *run, const at_validation *v, bool better, double seconds);
bool at_run_log_validation(at_run *run, const at_validation *v, bool better, at_error *error);
bool at_run_add_history(at_run *run, const at_validation *v, at_error *error);

/* train_record.c: how the model is trained, as JSON: settings and data, without what may differ between runs to the same
 * bits (limits, threads, times). Its text for the file of the model as it is now; release with free. And the first line
 * of a run in the log. */
bool at_trainer_record(at_trainer *trainer, at_error *error);
char *at_trainer_record_text(const at_trainer *trainer, at_error *error);
bool at_trainer_add_opening(at_trainer *trainer, at_error *error);

/* train_valid.c */
bool at_valid_metrics_parse(const char *text, at_valid_metrics *metrics, at_error *error);
/* Scores the validation data, and translates samples of it; release it either way. If what the model computes is not
 * finite, there are no scores, and `diverged` is true. */
bool at_validate(at_trainer *trainer, at_validation *validation, at_error *error);
void at_validation_free(at_validation *validation);
bool at_metric_known(const char *metrics, at_error *error);
const char *at_valid_metric_name(int index); /* NULL past the last */
bool at_metric_decodes(const char *metric);  /* of a known one */
bool at_metric_better(const char *metric, double score, double best);

/* train_output.c: names the files and checks that they can be written. Under the lock: refuses to replace the files of
 * another run, unless the settings ask for it. */
bool at_trainer_name_files(at_trainer *trainer, at_error *error);
bool at_trainer_check_existing(at_trainer *trainer, at_error *error);
/* The update of the last validation in a model file's history; 0: there is no file, or nothing is known about it. */
int64_t at_updates_in_model(const char *path, at_error *error);

/* train_log.c. The lines of another run stay in the log until at_trainer_log_begin removes them; if it was not called,
 * at_trainer_unlock leaves them alone in it. */
bool at_trainer_lock(at_trainer *trainer, at_error *error);
void at_trainer_unlock(at_trainer *trainer);
bool at_trainer_log_begin(at_trainer *trainer, at_error *error);
/* Writes a line and releases it: a JSON object without the brace at its end, as it is given its time. The state counts
 * the lines, but not those of a resumption and of the end of a run. */
bool at_trainer_log(at_trainer *trainer, at_buffer *line, at_error *error);
bool at_trainer_log_open(at_trainer *trainer, at_error *error); /* writes the opening, unless it is written */
bool at_trainer_log_sync(at_trainer *trainer, at_error *error); /* so that a power loss loses no line before it */
/* Cuts the log to the lines that were there when the state was saved. */
bool at_trainer_log_resume(at_trainer *trainer, at_error *error);

/* checkpoints.c: writes one for this update; removes the oldest, once the state is saved. */
bool at_trainer_save_numbered(at_trainer *trainer, at_error *error);
void at_trainer_remove_oldest(at_trainer *trainer);
bool at_checkpoints_to_text(const at_checkpoints *list, at_buffer *text);
bool at_checkpoints_from_text(at_checkpoints *list, const char *text, const char *path, at_error *error);
void at_checkpoints_free(at_checkpoints *list);
/* Refuses to mix them with those of another run. */
bool at_trainer_check_numbered(const at_trainer *trainer, at_error *error);

/* settings.c: the index of the model's first row among those of at_training_setting, and the struct that the offset of
 * a row counts in. */
enum { AT_MOST_AVERAGED = 1000 };
int at_training_first_of_model(void);
void *at_training_fields(at_train_settings *settings, int index);

/* identity.c: the settings and data that a resumed run must share; and whether a state was written with the same. */
bool at_trainer_identify(at_trainer *trainer, at_error *error);
bool at_trainer_same(const at_trainer *trainer, const char *then, at_error *error);
/* The same for those of rank 0. */
bool at_trainer_same_as(const at_trainer *trainer, const char *first, at_error *error);
const char *at_identity_text(const at_identity *identity);
void at_identity_free(at_identity *identity);

/* stored.c: if the run is resumed, sets what is not given to the values in its state, unless what is given contradicts
 * them. `stored` belongs to the settings then. */
typedef struct at_stored {
    char *text;
    at_given row; /* by the index of at_training_setting: which were taken */
} at_stored;
bool at_stored_take(at_train_settings *settings, const at_given *given, at_stored *stored, at_error *error);
void at_stored_free(at_stored *stored);

/* train_state.c */
bool at_state_has_updates(const char *path); /* whether a state is there that a run can continue from */
/* The last model and the state; `numbered`: also a checkpoint, if the settings ask for them. */
bool at_trainer_save(at_trainer *trainer, bool numbered, at_error *error);
bool at_trainer_write_model(at_trainer *trainer, const char *path, bool keep_previous, at_error *error);
bool at_trainer_save_best(at_trainer *trainer, at_error *error);
bool at_trainer_resume(at_trainer *trainer, at_error *error);

/* Exchanges the parameters with their average, if there is one (exponential or over validations); a second call
 * exchanges them back. */
void at_trainer_swap_average(at_trainer *trainer);

#endif
