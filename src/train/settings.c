/* The settings of training: what can be set, its limits, defaults and help, and whether a resumed run must share it. */
#include "train/train_internal.h"

#define ROW(group_, type_, name_, member_, resume_, ...)                                                               \
    {                                                                                                                  \
        .type = AT_SETTING_##type_, .name = name_, .offset = offsetof(at_train_settings, member_), .group = group_,    \
        .resume = AT_RESUME_##resume_, __VA_ARGS__                                                                     \
    }
#define OF_DATA(...)    ROW("The data", __VA_ARGS__)
#define OF_TEXT(...)    ROW("Vocabularies and lengths", __VA_ARGS__)
#define OF_UPDATES(...) ROW("Updates", __VA_ARGS__)
#define OF_END(...)     ROW("Ends, validation and saving", __VA_ARGS__)

/* The names of at_too_long, at_optimiser_kind and at_schedule, by value. */
static const char *const rules[] = {"keep", "cut", "skip", NULL};
static const char *const optimisers[] = {"adam", "adamw", "adadelta", "sgd", NULL};
static const char *const schedules[] = {"constant", "noam", "inverse-sqrt", "cosine", NULL};

/* The model's rows stand between these two tables. */
static const at_setting before[] = {
    OF_DATA(TEXT, "source", train.source, DATA, .argument = "FILE",
            .help = "source sentences, one a line; a language model has none"),
    OF_DATA(TEXT, "target", train.target, DATA, .argument = "FILE",
            .help = "target sentences, line by line those of the source"),
    OF_DATA(TEXT, "tsv", train.tsv, DATA, .argument = "FILE", .help = "both sides in one tab-separated file instead"),
    OF_DATA(COLUMNS, "columns", columns, DATA, .argument = "S,T", .fallback = "1,2",
            .help = "the columns of source and target in tab-separated files; of a language model T"),
    OF_DATA(TEXT, "valid-source", valid.source, FREE, .argument = "FILE", .help = "source sentences to validate with"),
    OF_DATA(TEXT, "valid-target", valid.target, FREE, .argument = "FILE", .help = "target sentences to validate with"),
    OF_DATA(TEXT, "valid-tsv", valid.tsv, FREE, .argument = "FILE", .help = "both in one tab-separated file instead"),
    OF_DATA(TEXT, "guided-alignment", guided_alignment, DATA, .argument = "FILE",
            .help =
                "links between the words of the training pairs, a line each, such as 0-0 1-2; one head of attention "
                "learns them"),
    OF_DATA(TEXT, "output", output, FREE, .argument = "FILE",
            .help =
                "the model: the best by validation, or the last without any. FILE.last, FILE.state and FILE.log.jsonl "
                "go beside it"),
};

static const at_setting after[] = {
    OF_TEXT(TEXT, "source-vocab", source_vocabulary, DATA, .argument = "KIND", .fallback = "word",
            .known = at_vocabulary_kind_known,
            .help =
                "char, word, or word:SIZE for the most frequent ones; spm:SIZE for pieces that SentencePiece finds in "
                "the text, spm:SIZE:bpe for merged pairs, or a model of its own, FILE.spm"),
    OF_TEXT(TEXT, "target-vocab", target_vocabulary, DATA, .argument = "KIND", .fallback = "word",
            .known = at_vocabulary_kind_known, .help = "the same for the target"),
    OF_TEXT(SWITCH, "joint-vocab", joint_vocabulary, DATA, .help = "count the units of both sides together"),
    OF_TEXT(CHOICE, "normalise", cleaning.form, DATA, .argument = "FORM", .fallback = "none", .choices = at_form_names,
            .help = "Unicode's normal form for both sides, kept in the model: none | nfc | nfkc"),
    OF_TEXT(SWITCH, "lowercase", cleaning.lowercase, DATA,
            .help = "put both sides into lower case, here and whenever the model is used"),
    OF_TEXT(NUMBER, "subword-sampling", subword_sampling, SAME, .argument = "A", .fallback = "0", .most = 1,
            .help =
                "draw the pieces of spm anew in each epoch: of a unigram model by their probability to the power A, "
                "such as 0.2; of bpe with the share A of the merges left out, such as 0.1; 0: always the best"),
    OF_TEXT(COUNT, "max-length", limits.max_length, SAME, .argument = "N", .fallback = "200", .least = 1,
            .help = "units from which on a line is too long"),
    OF_TEXT(CHOICE, "too-long", limits.rule, SAME, .argument = "RULE", .fallback = "skip", .choices = rules,
            .help = "what to do with a pair that is too long: keep | cut | skip"),
    OF_TEXT(NUMBER, "max-ratio", limits.max_ratio, SAME, .argument = "R", .least = 1,
            .help = "skip training pairs of which one side has more than R times the other's units"),

    OF_UPDATES(COUNT, "batch-size", batch_size, SAME, .argument = "N", .fallback = "64", .least = 1,
               .help = "sentences in a batch"),
    OF_UPDATES(COUNT, "batch-tokens", batch_tokens, SAME, .argument = "N", .least = 1,
               .help = "or target tokens in a batch, padding counted"),
    OF_UPDATES(COUNT, "accumulate", accumulate, SAME, .argument = "N", .fallback = "1", .least = 1,
               .help = "batches that make up one update"),
    OF_UPDATES(CHOICE, "optimiser", optimiser.kind, SAME, .argument = "NAME", .fallback = "adam", .choices = optimisers,
               .help = "adam | adamw | adadelta | sgd"),
    OF_UPDATES(NUMBER, "learning-rate", optimiser.learning_rate, SAME, .argument = "RATE", .limits = AT_ABOVE_LEAST,
               .help = "default: 0.001; 1 for adadelta and with noam, 0.1 for sgd"),
    OF_UPDATES(CHOICE, "schedule", optimiser.schedule, SAME, .argument = "NAME", .fallback = "constant",
               .choices = schedules, .help = "of the rate: constant | noam | inverse-sqrt | cosine (needs `updates`)"),
    OF_UPDATES(COUNT, "warmup", optimiser.warmup, SAME, .argument = "N",
               .help = "updates over which the rate rises to its height (default: 0; 4000 with noam)"),
    OF_UPDATES(NUMBER, "weight-decay", optimiser.weight_decay, SAME, .argument = "SHARE", .fallback = "0.01",
               .help = "of adamw"),
    OF_UPDATES(NUMBER, "clip-norm", optimiser.clip_norm, SAME, .argument = "NORM", .fallback = "1",
               .help = "gradients longer than this are shortened to it; 0: never"),
    OF_UPDATES(NUMBER, "ema", optimiser.ema, SAME, .argument = "DECAY", .fallback = "0", .most = 1,
               .limits = AT_BELOW_MOST, .help = "validate and save a moving average of the parameters, such as 0.999"),
    OF_UPDATES(
        COUNT, "average", average, SAME, .argument = "N", .fallback = "1", .least = 1, .most = AT_MOST_AVERAGED,
        .help = "or the mean of the parameters at the last N validations, which takes memory for N + 1 copies of them"),
    OF_UPDATES(NUMBER, "label-smoothing", label_smoothing, SAME, .argument = "SHARE", .fallback = "0", .most = 1,
               .limits = AT_BELOW_MOST, .help = "of the probability that is spread over all words"),
    OF_UPDATES(NUMBER, "guided-weight", guided_weight, SAME, .argument = "FACTOR", .fallback = "0.1",
               .help = "weight of the links' cross-entropy beside that of the words"),
    OF_UPDATES(NUMBER, "reinforce", reinforce, SAME, .argument = "FACTOR", .fallback = "1",
               .help = "hard attention: weight of the reward's term"),
    OF_UPDATES(NUMBER, "entropy", entropy, SAME, .argument = "FACTOR", .fallback = "0.01",
               .help = "hard attention: weight of the entropy's term"),

    OF_END(COUNT, "epochs", epochs, FREE, .argument = "N", .least = 1,
           .help = "passes over the data (default: 20 if no other limit is given)"),
    OF_END(COUNT, "updates", updates, FREE, .argument = "N", .least = 1, .help = "updates in all"),
    OF_END(NUMBER, "minutes", minutes, FREE, .argument = "M", .limits = AT_ABOVE_LEAST, .help = "minutes of this run"),
    OF_END(COUNT, "early-stopping", early_stopping, FREE, .argument = "N", .least = 1,
           .help = "validations in a row without a better score"),
    OF_END(TEXT, "valid-metric", valid_metric, SAME, .argument = "NAME", .fallback = "loss", .known = at_metric_known,
           .help = "loss, perplexity, or by decoding a metric of attend score for text"),
    OF_END(COUNT, "valid-every", valid_every, FREE, .argument = "N", .least = 1,
           .help = "updates between validations (default: an epoch)"),
    OF_END(COUNT, "report-every", report_every, FREE, .argument = "N", .fallback = "100", .least = 1,
           .help = "updates between progress lines"),
    OF_END(COUNT, "save-every", save_every, FREE, .argument = "N", .least = 1,
           .help = "updates between saves of the state (default: with a validation or an epoch)"),
    OF_END(SWITCH, "resume", resume, FREE,
           .help = "go on from FILE.state as if nothing had happened, to the same bits"),
    OF_END(SEED, "seed", seed, SAME, .argument = "N", .fallback = "1",
           .help = "of the parameters, the order of the batches and dropout"),
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

/* Filled in at each call with the same values, so threads cannot disagree about them. */
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
