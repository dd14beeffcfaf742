/* Completes the settings of training: checks which of them can be used together, and fills in the defaults that depend
 * on others. */
#include <stdio.h>
#include <string.h>

#include "models/kinds.h"
#include "train/train_internal.h"

static bool is_set(const at_given *given, const char *name)
{
    return given->row[at_setting_find(at_training_setting, name)];
}

/* NULL for an unknown name, which is refused later. */
static const at_model_kind *kind_of(const char *model)
{
    for (int i = 0; at_model_kind_at(i); i++)
        if (strcmp(at_model_kind_at(i)->name, model) == 0)
            return at_model_kind_at(i);
    return NULL;
}

static bool has_source(const char *model)
{
    const at_model_kind *kind = kind_of(model);
    return !kind || kind->has_source;
}

static bool has_pictures(const char *model)
{
    const at_model_kind *kind = kind_of(model);
    return kind && kind->has_pictures;
}

/* ---- The files ------------------------------------------------------------------------------------------------ */

static const char *const part_names[] = {[AT_TRAIN] = "training", [AT_VALID] = "validation"};

/* Lines in memory replace the files. */
static bool check_lines(const at_train_settings *s, at_training_part part, at_error *error)
{
    const at_corpus_files *files = part == AT_VALID ? &s->valid : &s->train;
    const char *file = files->source ? "source" : files->target ? "target" : files->tsv ? "tsv" : NULL;
    const bool sources = s->lines[part].sources, needed = has_source(s->model.model);
    if (file)
        return at_fail(error, AT_USAGE, "the %s lines are given in memory, so `%s%s` cannot name a file of them",
                       part_names[part], part == AT_VALID ? "valid-" : "", file);
    if (sources && !needed)
        return at_fail(error, AT_USAGE, "model '%s' is a language model, and the %s lines have sources", s->model.model,
                       part_names[part]);
    if (!sources && needed)
        return at_fail(error, AT_USAGE, "the model needs sources, and the %s lines have none", part_names[part]);
    return true;
}

/* The files of training or of validation, whose settings start with `prefix`. */
typedef struct side_files {
    const at_corpus_files *files;
    const char *prefix; /* "" or "valid-" */
    bool needed;
    const char *model;
} side_files;

/* A language model: one file, and nothing of a source. */
static bool check_one_side(const side_files *f, const at_given *given, at_error *error)
{
    static const char *const of_source[] = {"source-vocab", "joint-vocab", "source-end"};
    const char *prefix = f->prefix;
    if (is_set(given, "max-ratio"))
        return at_fail(error, AT_USAGE, "model '%s' is a language model: its lines have one side, and `max-ratio` two",
                       f->model);
    if (f->files->source)
        return at_fail(error, AT_USAGE,
                       "model '%s' is a language model and has no source; give its text as `%starget` FILE alone",
                       f->model, prefix);
    for (size_t i = 0; i < sizeof of_source / sizeof *of_source; i++)
        if (is_set(given, of_source[i]))
            return at_fail(error, AT_USAGE, "model '%s' has one vocabulary, `target-vocab`, and does not use `%s`",
                           f->model, of_source[i]);
    if (f->files->tsv && f->files->target)
        return at_fail(error, AT_USAGE, "`%stsv` and `%starget` both name the text; give one of them", prefix, prefix);
    if (f->files->tsv && f->files->source_column > 0)
        return at_fail(error, AT_USAGE, "model '%s' reads one column; `columns` takes its number alone", f->model);
    if (f->needed && !f->files->tsv && !f->files->target)
        return at_fail(error, AT_USAGE, "model '%s' needs `target` FILE or `tsv` FILE", f->model);
    return true;
}

/* Both sides come from two files or from one, never from a mixture. */
static bool check_both_sides(const side_files *f, at_error *error)
{
    const at_corpus_files *files = f->files;
    const char *prefix = f->prefix;
    const bool some = files->source || files->target;
    if (files->tsv && files->source_column < 1)
        return at_fail(error, AT_USAGE, "`columns` takes the columns of source and target, such as 1,2");
    if (files->tsv && some)
        return at_fail(error, AT_USAGE, "`%stsv` holds both sides; `%ssource` and `%starget` must not be given", prefix,
                       prefix, prefix);
    if (some && !(files->source && files->target))
        return at_fail(error, AT_USAGE, "`%s%s` needs `%s%s` beside it", prefix, files->source ? "source" : "target",
                       prefix, files->source ? "target" : "source");
    if (f->needed && !files->tsv && !some)
        return at_fail(error, AT_USAGE, "training needs `source` FILE and `target` FILE, or `tsv` FILE");
    return true;
}

static bool complete_files(at_train_settings *s, const at_given *given, at_error *error)
{
    at_corpus_files *both[] = {&s->train, &s->valid};
    const bool target_only = !has_source(s->model.model);
    at_columns columns = s->columns;
    if (target_only && !is_set(given, "columns"))
        columns = (at_columns){.source = 0, .target = 1};
    for (int i = 0; i < 2; i++) {
        both[i]->target_only = target_only;
        both[i]->pictures = has_pictures(s->model.model);
        both[i]->source_column = columns.source;
        both[i]->target_column = columns.target;
        const side_files f = {both[i], i ? "valid-" : "", i == 0 && !s->lines[i].targets && !s->valid_only,
                              s->model.model};
        if (s->lines[i].targets && !check_lines(s, i, error))
            return false;
        if (!(target_only ? check_one_side(&f, given, error) : check_both_sides(&f, error)))
            return false;
    }
    return true;
}

/* ---- Which settings can be used together ------------------------------------------------------------------------ */

/* Neither characters nor subwords, as far as the name tells. */
static bool may_be_words(const char *vocabulary)
{
    return strncmp(vocabulary, "char", 4) != 0 && strncmp(vocabulary, "spm:", 4) != 0;
}

/* Hard attention that is trained with samples, and the settings of that. */
static bool is_sampled(const at_train_settings *s)
{
    return strcmp(s->model.normaliser, "hard") == 0 && s->model.hard_training != AT_HARD_EXACT;
}

static const char *const of_hard[] = {"reinforce", "entropy", "baseline", "expectation"};
enum { HARD_ROWS = sizeof of_hard / sizeof *of_hard };

/* What is about source texts has no use where the source is pictures, and the other way round. */
static bool check_pictures(const at_train_settings *s, const at_given *given, at_error *error)
{
    static const char *const of_text[] = {"source-vocab", "joint-vocab", "source-end", "guided-alignment", "max-ratio"};
    const char *changes = s->augment > 0 ? "augment" : s->elastic > 0 ? "elastic" : NULL;
    if (changes && !s->train.pictures)
        return at_fail(error, AT_USAGE, "`%s` changes pictures, and model '%s' reads text", changes, s->model.model);
    if (changes && s->model.features)
        return at_fail(error, AT_USAGE, "`%s` changes pictures, and the source is `features`", changes);
    if (!s->train.pictures)
        return true;
    for (size_t i = 0; i < sizeof of_text / sizeof *of_text; i++)
        if (is_set(given, of_text[i]))
            return at_fail(error, AT_USAGE, "model '%s' reads pictures, and `%s` is about source texts", s->model.model,
                           of_text[i]);
    return true;
}

/* A setting without an effect is probably a mistake. */
static bool check_use(const at_train_settings *s, const at_given *given, at_error *error)
{
    static const char *const of_validation[] = {"valid-metric",   "valid-every", "valid-samples",
                                                "early-stopping", "average",     "valid-only"};
    const bool validates = at_train_validates(s);
    if (!s->output && !s->valid_only)
        return at_fail(error, AT_USAGE, "training needs `output` FILE, the model to write");
    if (s->resume && s->overwrite)
        return at_fail(error, AT_USAGE, "`resume` continues a run and `overwrite` starts again; give one of them");
    if (is_set(given, "batch-size") && is_set(given, "batch-tokens"))
        return at_fail(error, AT_USAGE, "`batch-size` and `batch-tokens` both measure a batch; give one of them");
    if (is_set(given, "columns") && !s->train.tsv && !s->valid.tsv)
        return at_fail(error, AT_USAGE, "`columns` chooses from `tsv`, which is not given");
    if (is_set(given, "weight-decay") && s->optimiser.kind != AT_ADAMW)
        return at_fail(error, AT_USAGE, "`weight-decay` is for `optimiser` adamw only");
    for (int i = 0; i < HARD_ROWS; i++)
        if (is_set(given, of_hard[i]) && !is_sampled(s))
            return at_fail(error, AT_USAGE, "`%s` is for `normaliser` hard with `hard-training` reinforce only",
                           of_hard[i]);
    if (!s->guided_alignment && (is_set(given, "guided-weight") || s->model.guided_head[0]))
        return at_fail(error, AT_USAGE, "`%s` needs `guided-alignment` FILE, the word alignments to train on",
                       s->model.guided_head[0] ? "guided-head" : "guided-weight");
    if (s->guided_alignment && s->subword_sampling > 0)
        return at_fail(
            error, AT_USAGE,
            "`guided-alignment` links units that stay as they are, and `subword-sampling` changes them in each epoch");
    if (s->average > 1 && s->optimiser.ema > 0)
        return at_fail(error, AT_USAGE, "`average` and `ema` are two means of the parameters; give one of them");
    for (int i = 0; i < (int)(sizeof of_validation / sizeof *of_validation) && !validates; i++)
        if (is_set(given, of_validation[i]))
            return at_fail(error, AT_USAGE, "`%s` needs %s`valid-target`, or `valid-tsv`", of_validation[i],
                           s->train.target_only ? "" : "`valid-source` and ");
    if (s->cleaning.tokens != AT_TOKENS_NONE && !may_be_words(s->target_vocabulary) &&
        (s->train.target_only || s->train.pictures || !may_be_words(s->source_vocabulary)))
        return at_fail(error, AT_USAGE, "`tokenise` is for vocabularies of words, and `target-vocab` is '%s'",
                       s->target_vocabulary);
    if (s->joint_vocabulary && strcmp(s->source_vocabulary, s->target_vocabulary) != 0)
        return at_fail(error, AT_USAGE, "`joint-vocab` needs `source-vocab` and `target-vocab` to be the same");
    if (s->source_end && s->subword_sampling > 0)
        return at_fail(error, AT_USAGE, "`source-end` cannot be used with `subword-sampling`; leave out one of them");
    return true;
}

bool at_train_setting_applies(const at_train_settings *s, const at_setting *row)
{
    const bool validates = at_train_validates(s);
    const struct {
        const char *name;
        bool applies;
    } rules[] = {{"columns", s->train.tsv || s->valid.tsv},
                 {"weight-decay", s->optimiser.kind == AT_ADAMW},
                 {"guided-weight", s->guided_alignment},
                 {"source-vocab", !s->train.target_only && !s->train.pictures},
                 {"valid-metric", validates},
                 {"valid-samples", validates && !s->train.target_only},
                 {"average", validates && s->average > 1}};
    for (int i = 0; i < HARD_ROWS; i++)
        if (strcmp(of_hard[i], row->name) == 0 && !is_sampled(s))
            return false;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i].name, row->name) == 0 && !rules[i].applies)
            return false;
    if (row->type == AT_SETTING_SWITCH || row->type == AT_SETTING_TEXT || row->least > 0 ||
        row->limits & AT_ABOVE_LEAST)
        return !at_setting_is_zero(row, s); /* 0 means that it is not set */
    return row->fallback || !at_setting_is_zero(row, s);
}

/* ---- Defaults that depend on other settings ------------------------------------------------------------------- */

/* Whether the setting has another value than the model's own default, or than the table's. */
static bool is_changed(const at_train_settings *s, const at_model_kind *kind, const char *name)
{
    const at_setting *row = at_training_setting(at_setting_find(at_training_setting, name));
    char own[64], text[64];
    at_model_default(kind, row, own, sizeof own);
    return strcmp(at_setting_text(row, s, text, sizeof text), own) != 0;
}

/* Whether another setting, which is known, decides instead of the model's own default: a batch has one measure, and a
 * model's schedule, learning rate and warm-up belong together and to its optimiser. */
static bool is_decided(const at_train_settings *s, const at_model_kind *kind, const at_given *known, const char *name)
{
    if (strncmp(name, "batch-", 6) == 0)
        return is_set(known, "batch-size") || is_set(known, "batch-tokens");
    const bool of_rate = strcmp(name, "learning-rate") == 0 || strcmp(name, "warmup") == 0;
    return ((of_rate || strcmp(name, "schedule") == 0) && is_set(known, "optimiser") &&
            is_changed(s, kind, "optimiser")) ||
           (of_rate && is_set(known, "schedule") && is_changed(s, kind, "schedule"));
}

/* The model's own defaults of training, and with them all that is known. */
static bool complete_own(at_train_settings *s, const at_model_kind *kind, at_given *known, at_error *error)
{
    const at_given before = *known;
    for (int i = 0; at_training_setting(i); i++) {
        const at_setting *row = at_training_setting(i);
        char text[64];
        if (row->offset == offsetof(at_train_settings, doubly_stochastic) && is_sampled(s))
            continue; /* it trains weights, and these are samples */
        if (before.row[i] || at_training_fields(s, i) != s || !at_model_own_default(kind, row, text, sizeof text) ||
            is_decided(s, kind, &before, row->name))
            continue;
        if (!at_setting_parse(row, NULL, text, s, error))
            return false;
        known->row[i] = true;
    }
    return true;
}

static void complete_updates(at_train_settings *s, const at_given *known)
{
    at_optimiser_settings *o = &s->optimiser;
    const bool noam = o->schedule == AT_NOAM, adadelta = o->kind == AT_ADADELTA;
    if (!is_set(known, "learning-rate"))
        o->learning_rate = noam || adadelta ? 1 : o->kind == AT_SGD ? 0.1 : 0.001;
    if (!is_set(known, "warmup"))
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

/* The first head of the last layer but one. */
static void complete_guided_head(at_train_settings *s)
{
    at_model_settings *m = &s->model;
    const int64_t layers = m->decoder_layers ? m->decoder_layers : m->ffn ? m->layers : 1;
    if (s->guided_alignment && !m->guided_head[0])
        snprintf(m->guided_head, sizeof m->guided_head, "%d.1", layers > 1 && layers < 100 ? (int)layers - 1 : 1);
}

/* R-Drop compares two passes over a batch, so something in them has to differ, and no samples may decide what they mean. */
static bool check_r_drop(const at_train_settings *s, at_error *error)
{
    if (s->r_drop == 0)
        return true;
    if (is_sampled(s))
        return at_fail(error, AT_USAGE,
                       "`r-drop` cannot be used with `normaliser` hard and `hard-training` reinforce; "
                       "`hard-training` exact takes no samples");
    if (s->model.dropout == 0 && s->model.attention_dropout == 0 && s->model.ffn_dropout == 0 && s->word_dropout == 0 &&
        s->augment == 0 && s->elastic == 0)
        return at_fail(error, AT_USAGE, "`r-drop` compares two passes that differ by dropout, and `dropout` is 0");
    return true;
}

bool at_train_settings_complete(at_train_settings *s, const at_given *given, const at_given *stored, at_error *error)
{
    at_given known = *given, of_model = {0};
    for (int i = 0; at_training_setting(i); i++)
        known.row[i] = given->row[i] || stored->row[i];
    for (int i = 0; at_model_setting(i); i++)
        of_model.row[i] = known.row[at_training_first_of_model() + i];
    if (s->valid_only && !s->init)
        s->init = s->output;
    if (s->valid_only && !s->init)
        return at_fail(error, AT_USAGE, "`valid-only` needs `output` FILE or `init` MODEL, the model to score");
    if ((s->init && !at_train_settings_from_init(s, &known, error)) || !complete_files(s, given, error) ||
        !check_use(s, given, error) || (!s->init && !at_model_settings_complete(&s->model, &of_model, error)))
        return false;
    if (!check_pictures(s, given, error))
        return false;
    if (!at_model_possible(&s->model, error)) {
        if (error->code != AT_MEMORY) /* a format error elsewhere is a wrong setting here */
            error->code = AT_USAGE;
        return false;
    }
    if (!complete_own(s, at_model_kind_find(s->model.model, error), &known, error))
        return false;
    complete_updates(s, &known);
    complete_guided_head(s);
    return check_r_drop(s, error);
}
