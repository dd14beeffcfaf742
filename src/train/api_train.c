/* The public face of training: one table of options, set by name, with the fields of the models behind it. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "train/train_internal.h"

/* What a value is, and the type of the field it goes to. */
typedef enum value_kind {
    VALUE_TEXT,    /* const char * */
    VALUE_COUNT,   /* int64_t, `least` or more */
    VALUE_NUMBER,  /* double, `least` or more */
    VALUE_SWITCH,  /* bool */
    VALUE_CHOICE,  /* an enum: the place among the words of `choices` */
    VALUE_COLUMNS, /* S,T: the columns of both tab-separated files; T of a language model's */
    VALUE_SEED     /* uint64_t */
} value_kind;

typedef struct setting {
    at_training_option option;
    value_kind kind;
    size_t place; /* in at_train_settings */
    int64_t least;
    bool above;                                       /* of a number: more than that */
    const char *choices;                              /* blank between */
    bool (*known)(const char *text, at_error *error); /* of a text: whether there is such a thing */
} setting;

#define AT(field) .place = offsetof(at_train_settings, field)
#define DATA      "The data"
#define TEXT      "Vocabularies and lengths"
#define STEP      "Updates"
#define ENDS      "Ends, validation and saving"

static const setting table[] = {
    {{DATA, "source", "FILE", NULL, "source sentences, one a line; a language model has none"},
     VALUE_TEXT,
     AT(train.source)},
    {{DATA, "target", "FILE", NULL, "target sentences, line by line those of the source"},
     VALUE_TEXT,
     AT(train.target)},
    {{DATA, "tsv", "FILE", NULL, "both sides in one tab-separated file instead"}, VALUE_TEXT, AT(train.tsv)},
    {{DATA, "columns", "S,T", "1,2", "the columns of source and target in tab-separated files; of a language model T"},
     .kind = VALUE_COLUMNS},
    {{DATA, "valid-source", "FILE", NULL, "source sentences to validate with"}, VALUE_TEXT, AT(valid.source)},
    {{DATA, "valid-target", "FILE", NULL, "target sentences to validate with"}, VALUE_TEXT, AT(valid.target)},
    {{DATA, "valid-tsv", "FILE", NULL, "both in one tab-separated file instead"}, VALUE_TEXT, AT(valid.tsv)},
    {{DATA, "guided-alignment", "FILE", NULL,
      "links between the words of the training pairs, a line each, such as 0-0 1-2; one head of attention learns them"},
     VALUE_TEXT,
     AT(guided_alignment)},
    {{DATA, "output", "FILE", NULL,
      "the model: the best by validation, or the last without any. FILE.last, FILE.state and FILE.log.jsonl go beside "
      "it"},
     VALUE_TEXT,
     AT(output)},

    {{TEXT, "source-vocab", "KIND", "word",
      "char, word, or word:SIZE for the most frequent ones; spm:SIZE for pieces that SentencePiece finds in the text, "
      "spm:SIZE:bpe for merged pairs, or a model of its own, FILE.spm"},
     VALUE_TEXT,
     AT(source_vocabulary),
     .known = at_vocabulary_kind_known},
    {{TEXT, "target-vocab", "KIND", "word", "the same for the target"},
     VALUE_TEXT,
     AT(target_vocabulary),
     .known = at_vocabulary_kind_known},
    {{TEXT, "joint-vocab", NULL, NULL, "count the units of both sides together"}, VALUE_SWITCH, AT(joint_vocabulary)},
    {{TEXT, "normalise", "FORM", "none", "Unicode's normal form for both sides, kept in the model: none | nfc | nfkc"},
     VALUE_CHOICE,
     AT(cleaning.form),
     .choices = "none nfc nfkc"},
    {{TEXT, "lowercase", NULL, NULL, "put both sides into lower case, here and whenever the model is used"},
     VALUE_SWITCH,
     AT(cleaning.lowercase)},
    {{TEXT, "subword-sampling", "A", "0",
      "draw the pieces of spm anew in each epoch: of a unigram model by their probability to the power A, such as "
      "0.2; of bpe with the share A of the merges left out, such as 0.1; 0: always the best"},
     VALUE_NUMBER,
     AT(subword_sampling)},
    {{TEXT, "max-length", "N", "200", "units from which on a line is too long"}, VALUE_COUNT, AT(limits.max_length), 1},
    {{TEXT, "too-long", "RULE", "skip", "what to do with a pair that is too long: keep | cut | skip"},
     VALUE_CHOICE,
     AT(limits.rule),
     .choices = "keep cut skip"},
    {{TEXT, "max-ratio", "R", NULL, "skip training pairs of which one side has more than R times the other's units"},
     VALUE_NUMBER,
     AT(limits.max_ratio),
     1},

    {{STEP, "batch-size", "N", "64", "sentences in a batch"}, VALUE_COUNT, AT(batch_size), 1},
    {{STEP, "batch-tokens", "N", NULL, "or target tokens in a batch, padding counted"},
     VALUE_COUNT,
     AT(batch_tokens),
     1},
    {{STEP, "accumulate", "N", "1", "batches that make up one update"}, VALUE_COUNT, AT(accumulate), 1},
    {{STEP, "optimiser", "NAME", "adam", "adam | adamw | adadelta | sgd"},
     VALUE_CHOICE,
     AT(optimiser.kind),
     .choices = "adam adamw adadelta sgd"},
    {{STEP, "learning-rate", "RATE", NULL, "default: 0.001; 1 for adadelta and with noam, 0.1 for sgd"},
     VALUE_NUMBER,
     AT(optimiser.learning_rate)},
    {{STEP, "schedule", "NAME", "constant", "of the rate: constant | noam | inverse-sqrt | cosine (needs --updates)"},
     VALUE_CHOICE,
     AT(optimiser.schedule),
     .choices = "constant noam inverse-sqrt cosine"},
    {{STEP, "warmup", "N", NULL, "updates over which the rate rises to its height (default: 0; 4000 with noam)"},
     VALUE_COUNT,
     AT(optimiser.warmup)},
    {{STEP, "weight-decay", "SHARE", "0.01", "of adamw"}, VALUE_NUMBER, AT(optimiser.weight_decay)},
    {{STEP, "clip-norm", "NORM", "1", "gradients longer than this are shortened to it; 0: never"},
     VALUE_NUMBER,
     AT(optimiser.clip_norm)},
    {{STEP, "ema", "DECAY", "0", "validate and save a moving average of the parameters, such as 0.999"},
     VALUE_NUMBER,
     AT(optimiser.ema)},
    {{STEP, "average", "N", "1",
      "or the mean of the parameters at the last N validations, which takes memory for N + 1 copies of them"},
     VALUE_COUNT,
     AT(average),
     1},
    {{STEP, "label-smoothing", "SHARE", "0", "of the probability that is spread over all words"},
     VALUE_NUMBER,
     AT(label_smoothing)},
    {{STEP, "guided-weight", "FACTOR", "0.1", "weight of the links' cross-entropy beside that of the words"},
     VALUE_NUMBER,
     AT(guided_weight)},
    {{STEP, "reinforce", "FACTOR", "1", "hard attention: weight of the reward's term"}, VALUE_NUMBER, AT(reinforce)},
    {{STEP, "entropy", "FACTOR", "0.01", "hard attention: weight of the entropy's term"}, VALUE_NUMBER, AT(entropy)},

    {{ENDS, "epochs", "N", NULL, "passes over the data (default: 20 if no other limit is given)"},
     VALUE_COUNT,
     AT(epochs),
     1},
    {{ENDS, "updates", "N", NULL, "updates in all"}, VALUE_COUNT, AT(updates), 1},
    {{ENDS, "minutes", "M", NULL, "minutes of this run"}, VALUE_NUMBER, AT(minutes), .above = true},
    {{ENDS, "early-stopping", "N", NULL, "validations in a row without a better score"},
     VALUE_COUNT,
     AT(early_stopping),
     1},
    {{ENDS, "valid-metric", "NAME", "loss",
      "loss | perplexity, or by decoding bleu | chrf | chrf++ | ter | wer | cer | accuracy"},
     VALUE_TEXT,
     AT(valid_metric),
     .known = at_metric_known},
    {{ENDS, "valid-every", "N", NULL, "updates between validations (default: an epoch)"},
     VALUE_COUNT,
     AT(valid_every),
     1},
    {{ENDS, "report-every", "N", "100", "updates between progress lines"}, VALUE_COUNT, AT(report_every), 1},
    {{ENDS, "save-every", "N", NULL, "updates between saves of the state (default: with a validation or an epoch)"},
     VALUE_COUNT,
     AT(save_every),
     1},
    {{ENDS, "resume", NULL, NULL, "go on from FILE.state as if nothing had happened, to the same bits"},
     VALUE_SWITCH,
     AT(resume)},
    {{ENDS, "seed", "N", "1", "of the parameters, the order of the batches and dropout"}, VALUE_SEED, AT(seed)},
};
enum { SETTINGS = sizeof table / sizeof *table, MOST_FIELDS = 64, BEFORE_FIELDS = 9 /* the data's options */ };

struct at_training {
    at_train_settings settings;
    uint64_t given; /* which fields of the model were named */
    char *kept[SETTINGS];
    bool is_set[SETTINGS];
};

/* ---- What there is -------------------------------------------------------------------------------------------- */

/* The models' fields as options, right behind the data's. Made anew at each call with the same values, so threads
 * cannot disagree about them. */
static const at_training_option *field_option(int index)
{
    static _Thread_local at_training_option options[MOST_FIELDS];
    const at_field *field = at_field_at(index);
    static const char *const arguments[] = {"NAME", "N", "SHARE", "NUMBER", "true|false"};
    bool is_flag = field->type == AT_FIELD_SWITCH && (!field->standard || strcmp(field->standard, "false") == 0);
    options[index] = (at_training_option){"The model", field->name, is_flag ? NULL : arguments[field->type],
                                          is_flag || !*field->standard ? NULL : field->standard, field->help};
    return &options[index];
}

static int field_count(void)
{
    int count = 0;
    while (count < MOST_FIELDS && at_field_at(count))
        count++;
    return count;
}

const at_training_option *at_training_option_at(int index)
{
    int fields = field_count();
    if (index < 0 || index >= SETTINGS + fields)
        return NULL;
    if (index < BEFORE_FIELDS)
        return &table[index].option;
    return index < BEFORE_FIELDS + fields ? field_option(index - BEFORE_FIELDS) : &table[index - fields].option;
}

/* ---- Setting -------------------------------------------------------------------------------------------------- */

static bool not_that(const char *name, const char *takes, const char *value, at_error *error)
{
    char shown[AT_SHOWN];
    return at_fail(error, AT_USAGE, "--%s takes %s, not '%s'", name, takes, at_shown(value, shown, sizeof shown));
}

static bool read_count(const setting *row, const char *text, int64_t *count, at_error *error)
{
    char *end, takes[60];
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end != text && *end == '\0' && errno == 0 && value >= row->least) {
        *count = value;
        return true;
    }
    snprintf(takes, sizeof takes, "a whole number, %lld or more", (long long)row->least);
    return not_that(row->option.name, takes, text, error);
}

static bool read_choice(const setting *row, const char *text, int *choice, at_error *error)
{
    char words[100], *rest = words, *word, takes[120];
    snprintf(words, sizeof words, "%s", row->choices);
    for (int i = 0; (word = strsep(&rest, " ")); i++) {
        if (strcmp(word, text) == 0) {
            *choice = i;
            return true;
        }
    }
    snprintf(takes, sizeof takes, "one of %s", row->choices);
    return not_that(row->option.name, takes, text, error);
}

static bool read_columns(at_train_settings *s, const char *text, at_error *error)
{
    int source, target, used = 0;
    if (sscanf(text, "%d%n", &target, &used) == 1 && !text[used])
        source = 0; /* one column: there is no source */
    else if (sscanf(text, "%d,%d%n", &source, &target, &used) != 2 || text[used] || source < 1)
        used = -1;
    if (used < 0 || target < 1)
        return not_that("columns", "two numbers from 1, such as 1,2, or one for a language model", text, error);
    s->train.source_column = s->valid.source_column = source;
    s->train.target_column = s->valid.target_column = target;
    return true;
}

static bool assign(at_training *training, int index, const char *text, at_error *error)
{
    const setting *row = &table[index];
    void *field = (char *)&training->settings + row->place;
    char *end;
    switch (row->kind) {
    case VALUE_TEXT: {
        if (row->known && !row->known(text, error))
            return false;
        char *copy = strdup(text);
        if (!copy)
            return at_fail(error, AT_FAILED, "memory is out: there is no room for --%s", row->option.name);
        free(training->kept[index]);
        training->kept[index] = copy;
        *(const char **)field = copy;
        return true;
    }
    case VALUE_COUNT:
        return read_count(row, text, field, error);
    case VALUE_NUMBER: {
        double value = strtod(text, &end);
        if (end == text || *end || !isfinite(value) || value < (double)row->least ||
            (row->above && value == (double)row->least))
            return not_that(row->option.name,
                            row->above   ? "a number above 0"
                            : row->least ? "a number, 1 or more"
                                         : "a number, 0 or more",
                            text, error);
        *(double *)field = value;
        return true;
    }
    case VALUE_SWITCH:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            return not_that(row->option.name, "true or false", text, error);
        *(bool *)field = strcmp(text, "true") == 0;
        return true;
    case VALUE_CHOICE:
        return read_choice(row, text, field, error);
    case VALUE_COLUMNS:
        return read_columns(&training->settings, text, error);
    case VALUE_SEED:
        *(uint64_t *)field = strtoull(text, &end, 10);
        return (end != text && *end == '\0') || not_that("seed", "a whole number", text, error);
    }
    return true;
}

static bool no_such(const char *name, at_error *error)
{
    const char *names[SETTINGS + MOST_FIELDS];
    char near[200], shown[AT_SHOWN];
    int count = 0;
    for (int i = 0; i < SETTINGS; i++)
        names[count++] = table[i].option.name;
    for (int i = 0; at_field_at(i) && i < MOST_FIELDS; i++)
        names[count++] = at_field_at(i)->name;
    at_suggest(name, names, count, near, sizeof near);
    return at_fail(error, AT_USAGE, "no setting '%s'%s", at_shown(name, shown, sizeof shown), near);
}

/* What a model file would fail with is here a mistake of the one who asks. */
static bool by_user(at_error *error)
{
    error->code = AT_USAGE;
    return false;
}

bool at_training_set(at_training *training, const char *name, const char *value, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    for (int i = 0; i < SETTINGS; i++)
        if (strcmp(table[i].option.name, name) == 0)
            return training->is_set[i] = assign(training, i, value, error);
    for (int i = 0; at_field_at(i); i++)
        if (strcmp(at_field_at(i)->name, name) == 0)
            return at_field_set(&training->settings.model, &training->given, name, value, error) || by_user(error);
    return no_such(name, error);
}

at_training *at_training_new(at_error *error)
{
    at_training *training = error->code == AT_OK ? calloc(1, sizeof *training) : NULL;
    if (!training) {
        at_fail(error, AT_FAILED, "memory is out: training cannot be prepared");
        return NULL;
    }
    for (int i = 0; i < SETTINGS; i++)
        if (table[i].option.standard)
            assign(training, i, table[i].option.standard, error);
    if (error->code == AT_OK)
        return training;
    at_training_free(training);
    return NULL;
}

void at_training_free(at_training *training)
{
    if (!training)
        return;
    for (int i = 0; i < SETTINGS; i++)
        free(training->kept[i]);
    free(training);
}

/* ---- Running -------------------------------------------------------------------------------------------------- */

static bool is_set(const at_training *training, const char *name)
{
    for (int i = 0; i < SETTINGS; i++)
        if (strcmp(table[i].option.name, name) == 0)
            return training->is_set[i];
    return false;
}

static bool is_alone(const char *model)
{
    for (int i = 0; at_model_kind_at(i); i++)
        if (strcmp(at_model_kind_at(i)->name, model) == 0)
            return at_model_kind_at(i)->alone;
    return false;
}

/* One file, and nothing of a source. */
static bool check_alone(const at_training *training, const at_corpus_files *files, const char *prefix, bool needed,
                        at_error *error)
{
    const char *model = training->settings.model.model;
    static const char *const of_source[] = {"source-vocab", "joint-vocab"};
    if (is_set(training, "max-ratio"))
        return at_fail(error, AT_USAGE, "model '%s' is a language model: its lines have one side, and --max-ratio two",
                       model);
    if (files->source)
        return at_fail(error, AT_USAGE,
                       "model '%s' is a language model and has no source; give its text as --%starget FILE alone",
                       model, prefix);
    for (int i = 0; i < 2; i++)
        if (is_set(training, of_source[i]))
            return at_fail(error, AT_USAGE, "model '%s' has one vocabulary, --target-vocab, so --%s has no part in it",
                           model, of_source[i]);
    if (files->tsv && files->target)
        return at_fail(error, AT_USAGE, "--%stsv and --%starget both name the text; give one of them", prefix, prefix);
    if (files->tsv && files->source_column > 0)
        return at_fail(error, AT_USAGE, "model '%s' reads one column; --columns takes its number alone", model);
    if (needed && !files->tsv && !files->target)
        return at_fail(error, AT_USAGE, "attend train --model %s needs --target FILE or --tsv FILE", model);
    return true;
}

/* Both sides by two files or by one, never by something in between. */
static bool check_files(const at_training *training, const at_corpus_files *files, const char *prefix, bool needed,
                        at_error *error)
{
    bool some = files->source || files->target;
    if (files->alone)
        return check_alone(training, files, prefix, needed, error);
    if (files->tsv && files->source_column < 1)
        return at_fail(error, AT_USAGE, "--columns takes the columns of source and target, such as 1,2");
    if (files->tsv && some)
        return at_fail(error, AT_USAGE, "--%stsv holds both sides; --%ssource and --%starget are too much", prefix,
                       prefix, prefix);
    if (some && !(files->source && files->target))
        return at_fail(error, AT_USAGE, "--%s%s needs --%s%s beside it", prefix, files->source ? "source" : "target",
                       prefix, files->source ? "target" : "source");
    if (needed && !files->tsv && !some)
        return at_fail(error, AT_USAGE, "attend train needs --source FILE and --target FILE, or --tsv FILE");
    return true;
}

/* A setting that has no effect is a mistake that the user would like to hear of. */
static bool check_use(const at_training *training, const at_train_settings *s, at_error *error)
{
    bool validates = s->valid.target || s->valid.tsv;
    if (!s->output)
        return at_fail(error, AT_USAGE, "attend train needs --output FILE, where the model shall go");
    if (is_set(training, "batch-size") && is_set(training, "batch-tokens"))
        return at_fail(error, AT_USAGE, "--batch-size and --batch-tokens both measure a batch; give one of them");
    if (is_set(training, "columns") && !s->train.tsv && !s->valid.tsv)
        return at_fail(error, AT_USAGE, "--columns chooses from --tsv, which is not given");
    if (is_set(training, "weight-decay") && s->optimiser.kind != AT_ADAMW)
        return at_fail(error, AT_USAGE, "--weight-decay is for --optimiser adamw only");
    if ((is_set(training, "reinforce") || is_set(training, "entropy")) && strcmp(s->model.normaliser, "hard") != 0)
        return at_fail(error, AT_USAGE, "--reinforce and --entropy are for --normaliser hard only");
    if (!s->guided_alignment && (is_set(training, "guided-weight") || s->model.guided_head[0]))
        return at_fail(error, AT_USAGE, "--guided-%s needs --guided-alignment FILE, the links that are to be learnt",
                       s->model.guided_head[0] ? "head" : "weight");
    if (s->guided_alignment && s->subword_sampling > 0)
        return at_fail(error, AT_USAGE,
                       "--guided-alignment links units that stay as they are, and --subword-sampling draws them anew");
    if (s->average > 1 && s->optimiser.ema > 0)
        return at_fail(error, AT_USAGE, "--average and --ema are two means of the parameters; give one of them");
    static const char *const of_validation[] = {"valid-metric", "valid-every", "early-stopping", "average"};
    for (int i = 0; i < 4 && !validates; i++)
        if (is_set(training, of_validation[i]))
            return at_fail(error, AT_USAGE, "--%s needs %s--valid-target, or --valid-tsv", of_validation[i],
                           s->train.alone ? "" : "--valid-source and ");
    if (s->joint_vocabulary && strcmp(s->source_vocabulary, s->target_vocabulary) != 0)
        return at_fail(error, AT_USAGE, "--joint-vocab needs --source-vocab and --target-vocab to be the same");
    return true;
}

/* The defaults that depend on other settings. */
static void complete(const at_training *training, at_train_settings *s)
{
    at_optimiser_settings *o = &s->optimiser;
    bool noam = o->schedule == AT_NOAM, adadelta = o->kind == AT_ADADELTA;
    if (!is_set(training, "learning-rate"))
        o->learning_rate = noam || adadelta ? 1 : o->kind == AT_SGD ? 0.1 : 0.001;
    if (!is_set(training, "warmup"))
        o->warmup = noam ? 4000 : 0;
    o->beta1 = adadelta ? 0.95 : 0.9;
    o->beta2 = noam ? 0.98 : 0.999;
    o->epsilon = adadelta ? 1e-6 : 1e-8;
    o->updates = s->updates;
    o->width = s->model.hidden;
    if (s->batch_tokens > 0)
        s->batch_size = 0;
    if (!(s->epochs > 0 || s->updates > 0 || s->minutes > 0 || s->early_stopping > 0))
        s->epochs = 20;
}

bool at_training_run(at_training *training, at_train_listener *listener, void *context, const volatile int *stop,
                     at_train_result *result, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    at_train_settings settings = training->settings;
    at_corpus_files *files[] = {&settings.train, &settings.valid};
    for (int i = 0; i < 2; i++) {
        files[i]->alone = is_alone(settings.model.model);
        if (files[i]->alone && !is_set(training, "columns")) {
            files[i]->source_column = 0;
            files[i]->target_column = 1;
        }
        if (!check_files(training, files[i], i ? "valid-" : "", i == 0, error))
            return false;
    }
    if (!check_use(training, &settings, error))
        return false;
    if (!at_model_settings_complete(&settings.model, training->given, error))
        return by_user(error);
    if (!at_model_possible(&settings.model, error))
        return by_user(error);
    complete(training, &settings);
    if (settings.guided_alignment && !settings.model.guided_head[0]) {
        const at_model_settings *m = &settings.model;
        const int64_t layers = m->decoder_layers ? m->decoder_layers : m->ffn ? m->layers : 1;
        snprintf(settings.model.guided_head, sizeof settings.model.guided_head, "%d.1",
                 layers > 1 && layers < 100 ? (int)layers - 1 : 1);
    }
    return at_train(&settings, listener, context, stop, result, error);
}
