/* The settings of training: what can be set, its limits, defaults and help, and whether a resumed run must share it. */
#include <string.h>

#include "models/kinds.h"
#include "train/train_internal.h"

#define ROW(group_, type_, name_, member_, resume_, ...)                                                               \
    {                                                                                                                  \
        .type = AT_SETTING_##type_, .name = name_, .offset = offsetof(at_train_settings, member_), .group = group_,    \
        .resume = AT_RESUME_##resume_, __VA_ARGS__                                                                     \
    }
#define OF_DATA(...)    ROW("The data", __VA_ARGS__)
#define OF_INIT(...)    ROW("Fine-tuning", __VA_ARGS__)
#define OF_TEXT(...)    ROW("Vocabularies and lengths", __VA_ARGS__)
#define OF_UPDATES(...) ROW("Updates", __VA_ARGS__)
#define OF_END(...)     ROW("Stopping, validation and saving", __VA_ARGS__)

/* The names of at_too_long, at_optimiser_kind and at_schedule, by value. */
static const char *const rules[] = {"keep", "cut", "skip", NULL};
static const char *const optimisers[] = {"adam", "adamw", "adadelta", "sgd", NULL};
static const char *const schedules[] = {"constant", "noam", "inverse-sqrt", "cosine", NULL};

/* The model's rows come between these two tables. */
static const at_setting before[] = {
    OF_DATA(TEXT, "source", train.source, DATA, .argument = "FILE",
            .help = "source sentences, one per line, or names of pictures; several files with commas between"),
    OF_DATA(TEXT, "target", train.target, DATA, .argument = "FILE",
            .help = "target sentences, one for each line of the source"),
    OF_DATA(TEXT, "tsv", train.tsv, DATA, .argument = "FILE", .help = "both sides in one tab-separated file instead"),
    OF_DATA(TEXT, "corpus-weights", corpus_weights, SAME, .argument = "W,W...", .known = at_corpus_weights_known,
            .help = "of several files: how often each pair of a file occurs in an epoch, as in 1,3 or 0.5,2 (default: "
                    "once)"),
    OF_DATA(COLUMNS, "columns", columns, DATA, .argument = "S,T", .fallback = "1,2",
            .help = "the columns of source and target in tab-separated files; of a language model T"),
    OF_DATA(TEXT, "valid-source", valid.source, FREE, .argument = "FILE", .help = "source sentences for validation"),
    OF_DATA(TEXT, "valid-target", valid.target, FREE, .argument = "FILE", .help = "target sentences for validation"),
    OF_DATA(TEXT, "valid-tsv", valid.tsv, FREE, .argument = "FILE", .help = "both in one tab-separated file instead"),
    OF_DATA(TEXT, "guided-alignment", guided_alignment, DATA, .argument = "FILE",
            .help =
                "word alignments of the training pairs, a line each, such as 0-0 1-2; one attention head is trained to "
                "match them"),
    OF_DATA(TEXT, "output", output, FREE, .argument = "FILE",
            .help = "the model to write: the best by validation, or the last if there is no validation. FILE.last, "
                    "FILE.state and FILE.log.jsonl are written beside it"),

    OF_INIT(TEXT, "init", init, SAME, .argument = "MODEL",
            .help =
                "start from the parameters of this model file, with its vocabularies and its settings; optimiser, data "
                "and dropout are those of the new run"),
    OF_INIT(TEXT, "freeze", freeze, SAME, .argument = "NAMES",
            .help = "parameters that stay as they are: names, their parts up to a dot, or patterns, as in "
                    "encoder.*,target.E"),
};

static const at_setting after[] = {
    OF_TEXT(TEXT, "source-vocab", source_vocabulary, DATA, .argument = "KIND", .fallback = "word",
            .known = at_vocabulary_kind_known,
            .help = "char, word, word:SIZE (the most frequent ones); spm:SIZE trains a SentencePiece unigram model, "
                    "spm:SIZE:bpe BPE; FILE.spm is such a model, FILE.txt a list of units"),
    OF_TEXT(TEXT, "target-vocab", target_vocabulary, DATA, .argument = "KIND", .fallback = "word",
            .known = at_vocabulary_kind_known, .help = "the same for the target"),
    OF_TEXT(SWITCH, "joint-vocab", joint_vocabulary, DATA, .help = "one vocabulary, built from both sides"),
    OF_TEXT(SWITCH, "source-end", source_end, DATA,
            .help = "</s> after every line of the source, as in models of Marian and MarianMT"),
    OF_TEXT(CHOICE, "normalise", cleaning.form, DATA, .argument = "FORM", .fallback = "none", .choices = at_form_names,
            .help = "Unicode normalisation of both sides, stored in the model: none | nfc | nfkc"),
    OF_TEXT(SWITCH, "lowercase", cleaning.lowercase, DATA,
            .help = "lower-case both sides, in training and whenever the model is used"),
    OF_TEXT(CHOICE, "tokenise", cleaning.tokens, DATA, .argument = "RULES", .fallback = "none",
            .choices = at_tokens_names,
            .help = "words of raw text, stored in the model: none splits at blanks; moses-like also splits off "
                    "punctuation, which the output has joined again"),
    OF_TEXT(NUMBER, "subword-sampling", subword_sampling, SAME, .argument = "A", .fallback = "0", .most = 1,
            .help =
                "sample the segmentation of spm in each epoch: a unigram model samples by probability to the power A, "
                "such as 0.2; bpe drops merges with probability A, such as 0.1; 0: always the best segmentation"),
    OF_TEXT(COUNT, "max-length", limits.max_length, SAME, .argument = "N", .fallback = "200", .least = 1,
            .help = "a line of more units is too long"),
    OF_TEXT(CHOICE, "too-long", limits.rule, SAME, .argument = "RULE", .fallback = "skip", .choices = rules,
            .help = "what to do with a pair that is too long: keep | cut | skip"),
    OF_TEXT(NUMBER, "max-ratio", limits.max_ratio, SAME, .argument = "R", .least = 1,
            .help = "skip training pairs in which one side has more than R times the units of the other"),

    OF_UPDATES(COUNT, "batch-size", batch_size, SAME, .argument = "N", .fallback = "64", .least = 1,
               .help = "sentences in a batch"),
    OF_UPDATES(COUNT, "batch-tokens", batch_tokens, SAME, .argument = "N", .least = 1,
               .help = "target tokens in a batch, padding included; instead of `batch-size`"),
    OF_UPDATES(COUNT, "accumulate", accumulate, SAME, .argument = "N", .fallback = "1", .least = 1,
               .help = "batches whose gradients are summed for one update; several processes share them (mpirun)"),
    OF_UPDATES(CHOICE, "optimiser", optimiser.kind, SAME, .argument = "NAME", .fallback = "adam", .choices = optimisers,
               .help = "adam | adamw | adadelta | sgd"),
    OF_UPDATES(NUMBER, "learning-rate", optimiser.learning_rate, SAME, .argument = "RATE", .limits = AT_ABOVE_LEAST,
               .help = "the learning rate (default: 0.001; 1 for adadelta and with noam, 0.1 for sgd)"),
    OF_UPDATES(CHOICE, "schedule", optimiser.schedule, SAME, .argument = "NAME", .fallback = "constant",
               .choices = schedules,
               .help = "of the learning rate: constant | noam | inverse-sqrt | cosine (needs `updates`)"),
    OF_UPDATES(COUNT, "warmup", optimiser.warmup, SAME, .argument = "N",
               .help = "updates over which the learning rate rises (default: 0; 4000 with noam)"),
    OF_UPDATES(NUMBER, "weight-decay", optimiser.weight_decay, SAME, .argument = "SHARE", .fallback = "0.01",
               .help = "weight decay of adamw"),
    OF_UPDATES(NUMBER, "clip-norm", optimiser.clip_norm, SAME, .argument = "NORM", .fallback = "1",
               .help = "gradients with a larger norm are scaled down to it; 0: no clipping"),
    OF_UPDATES(
        NUMBER, "ema", optimiser.ema, SAME, .argument = "DECAY", .fallback = "0", .most = 1, .limits = AT_BELOW_MOST,
        .help =
            "validate and save an exponential moving average of the parameters with this decay, such as 0.999; 0: off"),
    OF_UPDATES(COUNT, "average", average, SAME, .argument = "N", .fallback = "1", .least = 1, .most = AT_MOST_AVERAGED,
               .help =
                   "or the mean of the parameters at the last N validations; needs memory for N + 1 copies of them"),
    OF_UPDATES(NUMBER, "label-smoothing", label_smoothing, SAME, .argument = "SHARE", .fallback = "0", .most = 1,
               .limits = AT_BELOW_MOST,
               .help = "share of the target probability that is spread over the whole vocabulary"),
    OF_UPDATES(NUMBER, "word-dropout", word_dropout, SAME, .argument = "SHARE", .fallback = "0", .most = 1,
               .limits = AT_BELOW_MOST,
               .help = "probability that a previous target token is unknown to the decoder in training, so that it "
                       "relies less on what it wrote and more on the source"),
    OF_UPDATES(NUMBER, "r-drop", r_drop, SAME, .argument = "FACTOR", .fallback = "0",
               .help =
                   "pass every batch twice, with different dropout, and ask for the same probabilities: weight in the "
                   "loss of their divergence, such as 1 to 5; an update takes twice as long"),
    OF_UPDATES(NUMBER, "guided-weight", guided_weight, SAME, .argument = "FACTOR", .fallback = "0.1",
               .help = "weight in the loss of the alignments' cross-entropy"),
    OF_UPDATES(
        NUMBER, "augment", augment, SAME, .argument = "STRENGTH", .fallback = "0", .most = 1,
        .help =
            "shrink, stretch, shear and shift every picture a little in training, up to this strength; 0: not at all"),
    OF_UPDATES(NUMBER, "elastic", elastic, SAME, .argument = "STRENGTH", .fallback = "0", .most = 1,
               .help =
                   "bend every picture smoothly in training, differently in every place, so that letters and objects "
                   "look as by another hand; 1: as far as it does not fold, 0: not at all"),
    OF_UPDATES(NUMBER, "doubly-stochastic", doubly_stochastic, SAME, .argument = "FACTOR", .fallback = "0",
               .help = "weight in the loss of sum_i (1 - sum_t w_ti)^2, which asks a recurrent model for as much "
                       "attention on every source unit as on every other"),
    OF_UPDATES(NUMBER, "reinforce", reinforce, SAME, .argument = "FACTOR", .fallback = "0.1",
               .help = "hard attention: weight of the REINFORCE term"),
    OF_UPDATES(NUMBER, "entropy", entropy, SAME, .argument = "FACTOR", .fallback = "0.002",
               .help = "hard attention: weight of the entropy term"),
    OF_UPDATES(NUMBER, "baseline", baseline, SAME, .argument = "DECAY", .fallback = "0.9", .most = 1,
               .help =
                   "hard attention: decay of the moving average of log p(y|s), which REINFORCE subtracts from it; 1: "
                   "subtract nothing"),
    OF_UPDATES(NUMBER, "expectation", expectation, SAME, .argument = "SHARE", .fallback = "0.5", .most = 1,
               .help = "hard attention: share of the batches that use the expected context instead of a sample"),

    OF_END(COUNT, "epochs", epochs, FREE, .argument = "N", .least = 1,
           .help = "passes over the data (default: 20 if there is no other limit)"),
    OF_END(COUNT, "updates", updates, FREE, .argument = "N", .least = 1, .help = "updates in total"),
    OF_END(NUMBER, "minutes", minutes, FREE, .argument = "M", .limits = AT_ABOVE_LEAST,
           .help = "minutes that this run may take"),
    OF_END(COUNT, "early-stopping", early_stopping, FREE, .argument = "N", .least = 1,
           .help = "stop after N validations in a row without a better score"),
    OF_END(TEXT, "valid-metric", valid_metric, SAME, .argument = "NAME,...", .fallback = "loss",
           .known = at_metric_known, .value_at = at_valid_metric_name,
           .help = "loss, perplexity, token-accuracy, or by decoding a metric of attend score for text; of several, as "
                   "in bleu,chrf, the first decides which model is the best, and all are reported"),
    OF_END(COUNT, "valid-samples", valid_samples, FREE, .argument = "N", .fallback = "2", .most = 100,
           .help = "lines of the validation data that each validation translates and reports"),
    OF_END(SWITCH, "valid-only", valid_only, FREE,
           .help = "train nothing and write nothing: score the model of `init`, or that of `output`, on the validation "
                   "data, and print the scores"),
    OF_END(COUNT, "valid-every", valid_every, FREE, .argument = "N", .least = 1,
           .help = "updates between validations (default: an epoch)"),
    OF_END(COUNT, "report-every", report_every, FREE, .argument = "N", .fallback = "100", .least = 1,
           .help = "updates between progress lines"),
    OF_END(COUNT, "save-every", save_every, FREE, .argument = "N", .least = 1,
           .help = "updates between saves of the state (default: with a validation or an epoch)"),
    OF_END(COUNT, "keep", keep, FREE, .argument = "N", .fallback = "0",
           .help = "keep the models of the last N saves as FILE.000400 and so on, by their updates"),
    OF_END(SWITCH, "resume", resume, FREE, .help = "continue from FILE.state, to the same bits"),
    OF_END(SWITCH, "overwrite", overwrite, FREE,
           .help = "start again although FILE or FILE.state exists; the first save replaces them"),
    OF_END(SWITCH, "keep-previous", keep_previous, FREE,
           .help = "keep what each save replaces as FILE.previous and FILE.state.previous"),
    OF_END(NUMBER, "rank-timeout", rank_timeout, FREE, .argument = "SECONDS", .fallback = "600",
           .limits = AT_ABOVE_LEAST,
           .help = "of several processes (mpirun): how long they wait for one that does not answer before all end"),
    OF_END(SEED, "seed", seed, SAME, .argument = "N", .fallback = "1",
           .help = "seed of the initial parameters, the order of the batches and dropout"),
};

enum { BEFORE = sizeof before / sizeof *before, AFTER = sizeof after / sizeof *after };
_Static_assert(BEFORE + (int)AT_MOST_MODEL_SETTINGS + AFTER <= (int)AT_MOST_SETTINGS,
               "at_given has an entry for each row");

static int model_rows(void)
{
    int count = 0;
    while (at_model_setting(count))
        count++;
    return count;
}

const at_setting *at_training_setting(int index)
{
    if (index < BEFORE)
        return index < 0 ? NULL : &before[index];
    const at_setting *row = at_model_setting(index - BEFORE);
    const int rest = row ? 0 : index - BEFORE - model_rows();
    return row ? row : rest < AFTER ? &after[rest] : NULL;
}

int at_training_first_of_model(void)
{
    return BEFORE;
}

void *at_training_fields(at_train_settings *settings, int index)
{
    return at_model_setting(index - BEFORE) ? (void *)&settings->model : settings;
}

/* Filled in again at each call with the same values; each thread has its own. */
const at_training_option *at_training_option_at(int index)
{
    static _Thread_local at_training_option options[AT_MOST_SETTINGS];
    const at_setting *row = at_training_setting(index);
    if (!row)
        return NULL;
    options[index] =
        (at_training_option){row->group, row->name, row->argument, row->argument ? row->fallback : NULL, row->help};
    return &options[index];
}

static bool is_among(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names;
}

/* Whether the setting has an effect on the training of such a model. */
static bool is_used(const at_model_kind *kind, const char *name)
{
    static const char *const of_source[] = {
        "source", "valid-source", "source-vocab", "joint-vocab", "source-end", "max-ratio", NULL};
    static const char *const of_guide[] = {"guided-alignment", "guided-weight", NULL};
    static const char *const of_hard[] = {"reinforce", "entropy", "baseline", "expectation", NULL};
    if (at_setting_find(at_model_setting, name) > 0)
        return at_model_uses(kind, name);
    return (kind->has_source || !is_among(name, of_source)) &&
           (at_model_uses(kind, "guided-head") || !is_among(name, of_guide)) &&
           (at_model_uses(kind, "normaliser") || !is_among(name, of_hard));
}

bool at_training_default(const char *model, const char *name, char *text, size_t size)
{
    at_error ignored = {0};
    const int index = at_setting_find(at_training_setting, name);
    const at_model_kind *kind = at_model_kind_find(model, &ignored);
    if (index < 0 || !kind || !is_used(kind, name))
        return false;
    at_model_default(kind, at_training_setting(index), text, size);
    return true;
}
