/* What a resumed run must share with the run before: every row with AT_RESUME_SAME, the vocabularies, the number of
 * training pairs and the links of guided alignment. A state file holds all of it as lines of text.
 *
 * The lines of the settings that the first format knew have the layout of that format, so that its states can still be
 * resumed. Every other row follows as a line of its own if it differs from its default: a state that was written before
 * there was such a setting has the default. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "models/kinds.h"
#include "train/guide_internal.h"
#include "train/train_internal.h"

/* Where the value of a setting is in the text. */
typedef struct mark {
    const char *name;
    size_t from, to;
} mark;

struct at_identity {
    at_buffer text;
    mark mark[AT_MOST_SETTINGS];
    int marks;
    bool is_written[AT_MOST_SETTINGS]; /* by the index of at_training_setting */
};

void at_identity_free(at_identity *identity)
{
    if (identity)
        at_buffer_free(&identity->text);
    free(identity);
}

const char *at_identity_text(const at_identity *identity)
{
    return identity->text.bytes;
}

/* ---- Writing -------------------------------------------------------------------------------------------------- */

typedef struct writer {
    at_identity *to;
    const at_train_settings *settings;
} writer;

static const void *fields_of(const at_train_settings *settings, int index)
{
    return at_training_fields((at_train_settings *)settings, index); /* which are only read */
}

/* Numbers of training have 17 digits here, those of the model as few as possible. */
static void add_value(writer *w, int index)
{
    const at_setting *row = at_training_setting(index);
    const void *fields = fields_of(w->settings, index);
    at_identity *to = w->to;
    const void *field = (const char *)fields + row->offset;
    char text[80];
    if (row->type == AT_SETTING_NUMBER && fields == w->settings)
        snprintf(text, sizeof text, "%.17g", *(const double *)field);
    else
        at_setting_text(row, fields, text, sizeof text);
    const size_t from = to->text.size;
    const char *whole = row->type == AT_SETTING_TEXT ? *(const char *const *)field : NULL; /* however long */
    at_buffer_print(&to->text, "%s", whole ? whole : text);
    to->mark[to->marks++] = (mark){row->name, from, to->text.size};
    to->is_written[index] = true;
}

static void add_value_of(writer *w, const char *name)
{
    add_value(w, at_setting_find(at_training_setting, name));
}

/* "--name value" for each of the names, blank between; they end with NULL. */
static void add_settings(writer *w, const char *const *names)
{
    for (int i = 0; names[i]; i++) {
        at_buffer_print(&w->to->text, "%s--%s ", i ? " " : "", names[i]);
        add_value_of(w, names[i]);
    }
}
#define ADD(...) add_settings(&w, (const char *const[]){__VA_ARGS__, NULL})

static bool add_vocabulary(at_buffer *lines, const char *name, const at_vocabulary *vocabulary, at_error *error)
{
    char *json = at_vocabulary_to_json(vocabulary, error);
    if (json)
        at_buffer_print(lines, "%s of %lld units (%016llx)\n", name, (long long)at_vocabulary_size(vocabulary),
                        (unsigned long long)at_hash_text(json));
    free(json);
    return json;
}

static bool add_data(const at_trainer *trainer, at_buffer *lines, at_error *error)
{
    const bool has_source = trainer->translator.model->kind->has_source, pictures = trainer->pictures;
    if ((has_source && !pictures && !add_vocabulary(lines, "a source vocabulary", trainer->translator.source, error)) ||
        !add_vocabulary(lines, "a target vocabulary", trainer->translator.target, error))
        return false;
    at_buffer_print(lines, "%lld %s\n", (long long)at_corpus_count(trainer->train),
                    pictures     ? "pictures with lines"
                    : has_source ? "pairs of lines"
                                 : "lines");
    return true;
}

static void add_model(writer w, const at_model *model)
{
    for (int i = 0; at_model_setting(i); i++) {
        const int index = at_training_first_of_model() + i;
        if (at_model_says(&model->settings, model->kind, at_model_setting(i))) {
            ADD(at_model_setting(i)->name);
            at_buffer_print(&w.to->text, "\n");
        }
        w.to->is_written[index] = true;
    }
}

/* Without samples the two have no effect, and the line says what it said when 1 and 0.01 were their defaults. */
static void add_reinforce(writer *w, const at_model *model)
{
    at_buffer *text = &w->to->text;
    if (at_attention_samples(&model->attention)) {
        at_buffer_print(text, "\na baseline of ");
        add_value_of(w, "reinforce");
        at_buffer_print(text, " and an entropy of ");
        add_value_of(w, "entropy");
        at_buffer_print(text, "\n");
        return;
    }
    at_buffer_print(text, "\na baseline of 1 and an entropy of 0.01\n");
    w->to->is_written[at_setting_find(at_training_setting, "reinforce")] = true;
    w->to->is_written[at_setting_find(at_training_setting, "entropy")] = true;
}

/* The lines of the first format. */
static void add_first_format(writer w, const at_trainer *trainer)
{
    at_buffer *text = &w.to->text;
    const at_optimiser_settings *o = &w.settings->optimiser;
    ADD("seed");
    at_buffer_print(text, "\n");
    ADD("max-length");
    if (w.settings->limits.max_ratio > 0) {
        at_buffer_print(text, " ");
        ADD("max-ratio");
    }
    at_buffer_print(text, "\n");
    ADD("batch-size", "batch-tokens");
    at_buffer_print(text, "\n");
    ADD("accumulate");
    at_buffer_print(text, "\n");
    ADD("optimiser");
    at_buffer_print(text, "\n");
    ADD("learning-rate", "schedule", "warmup");
    at_buffer_print(text, "\nthe decays %.17g, %.17g and ", o->beta1, o->beta2);
    add_value_of(&w, "weight-decay");
    at_buffer_print(text, "\n");
    ADD("clip-norm");
    at_buffer_print(text, "\n");
    ADD("ema");
    if (trainer->average) {
        at_buffer_print(text, " ");
        ADD("average");
    }
    at_buffer_print(text, "\n");
    ADD("label-smoothing");
    at_buffer_print(text, "\n");
    ADD("subword-sampling");
    at_buffer_print(text, "\n");
    ADD("valid-metric");
    add_reinforce(&w, trainer->translator.model);
    if (trainer->guide) {
        ADD("guided-weight");
        at_buffer_print(text, " and alignments (%016llx)\n", (unsigned long long)at_guide_hash(trainer->guide));
    }
    if (o->schedule == AT_COSINE) {
        ADD("updates");
        at_buffer_print(text, ", over which the rate falls\n");
    }
}

static bool is_default(const at_setting *row, const void *fields)
{
    char text[80];
    return row->fallback ? strcmp(at_setting_text(row, fields, text, sizeof text), row->fallback) == 0
                         : at_setting_is_zero(row, fields);
}

static void add_others(writer w)
{
    for (int i = 0; at_training_setting(i); i++) {
        const at_setting *row = at_training_setting(i);
        if (row->resume != AT_RESUME_SAME || w.to->is_written[i] || is_default(row, fields_of(w.settings, i)))
            continue;
        ADD(row->name);
        at_buffer_print(&w.to->text, "\n");
    }
}

bool at_trainer_identify(at_trainer *trainer, at_error *error)
{
    at_identity *identity = calloc(1, sizeof *identity);
    const writer w = {identity, trainer->settings};
    const bool complete = identity && add_data(trainer, &identity->text, error);
    if (complete) {
        add_model(w, trainer->translator.model);
        add_first_format(w, trainer);
        add_others(w);
        if (trainer->pictures) /* after the settings that they are made by */
            at_buffer_print(&identity->text, "pictures (%016llx)\n",
                            (unsigned long long)at_pictures_hash(at_picture_source_pictures(trainer->pictures)));
    }
    if (error->code == AT_OK && (!identity || identity->text.failed))
        at_no_memory(error, "the settings of a run");
    trainer->identity = identity;
    return error->code == AT_OK;
}

/* ---- Comparing ------------------------------------------------------------------------------------------------ */

/* A line, or what a state without this line had: the default of its setting. `--name` becomes `name` in backquotes. */
static void show_line(const char *line, bool missing, char *out, size_t size)
{
    char copy[300], named[320] = "", *rest = copy, *word;
    snprintf(copy, sizeof copy, "%.*s", (int)strcspn(line, "\n"), line);
    while ((word = strsep(&rest, " "))) {
        const size_t used = strlen(named);
        const int index = strncmp(word, "--", 2) == 0 ? at_setting_find(at_training_setting, word + 2) : -1;
        const char *blank = used > 0 ? " " : "";
        if (index < 0)
            snprintf(named + used, sizeof named - used, "%s%s", blank, word);
        else
            snprintf(named + used, sizeof named - used, "%s`%s`", blank, word + 2);
        const char *fallback = index < 0 ? NULL : at_training_setting(index)->fallback;
        if (missing && index >= 0) {
            snprintf(named + used, sizeof named - used, fallback ? "%s`%s` %s" : "%sno `%s`", blank, word + 2,
                     fallback);
            break;
        }
    }
    at_shown(named, out, size);
}

/* `of_rank`: the other settings are those of rank 0, not those of a state. */
static bool refuse(const at_trainer *trainer, bool of_rank, const char *was, const char *is, at_error *error)
{
    if (of_rank)
        return at_fail(error, AT_USAGE,
                       "rank 0 trains with %s, and this rank with %s; all ranks need the same settings and data", was,
                       is);
    return at_fail(error, AT_FAILED,
                   "cannot resume from '%s', which was written with %s and not with %s; train as before, "
                   "or from the start with `overwrite`",
                   trainer->state_path, was, is);
}

/* "`learning-rate` 0.0005": the value as one types it, whatever its form in the line. */
static void show_value(const char *name, const char *value, size_t length, char *out, size_t size)
{
    const at_setting *row = at_training_setting(at_setting_find(at_training_setting, name));
    char written[160], text[200];
    snprintf(written, sizeof written, "%.*s", (int)length, value);
    if (row->type == AT_SETTING_NUMBER) {
        const at_setting alone = {.type = AT_SETTING_NUMBER, .name = name};
        at_setting_text(&alone, &(double){strtod(written, NULL)}, written, sizeof written);
    }
    snprintf(text, sizeof text, "`%s` %s", name, written);
    at_shown(text, out, size);
}

/* Two lines differ: names the setting whose values do, or shows both lines. */
static bool refuse_line(const at_trainer *trainer, bool of_rank, const char *now, const char *then, at_error *error)
{
    const at_identity *identity = trainer->identity;
    const size_t line = (size_t)(now - identity->text.bytes);
    size_t same = 0;
    while (now[same] == then[same])
        same++;
    char was[AT_SHOWN * 2], is[AT_SHOWN * 2];
    for (int i = 0; i < identity->marks; i++) {
        const mark *m = &identity->mark[i];
        if (line + same < m->from || line + same > m->to || m->from < line)
            continue;
        const char *value = then + (m->from - line);
        const bool is_text = /* which may have blanks and commas, and ends the line */
            at_training_setting(at_setting_find(at_training_setting, m->name))->type == AT_SETTING_TEXT;
        const size_t length = strcspn(value, is_text ? "\n" : " ,\n");
        if (length == m->to - m->from && strncmp(value, identity->text.bytes + m->from, length) == 0)
            continue;
        show_value(m->name, value, length, was, sizeof was);
        show_value(m->name, identity->text.bytes + m->from, m->to - m->from, is, sizeof is);
        return refuse(trainer, of_rank, was, is, error);
    }
    show_line(*then ? then : now, !*then, was, sizeof was);
    show_line(*now ? now : then, !*now, is, sizeof is);
    return refuse(trainer, of_rank, was, is, error);
}

static bool is_same(const at_trainer *trainer, bool of_rank, const char *then, at_error *error)
{
    const char *now = trainer->identity->text.bytes;
    while (*now || *then) {
        const size_t n = strcspn(now, "\n"), m = strcspn(then, "\n");
        /* The first format lacks this line. An equal number of pairs distinguishes skip from the other rules. */
        const bool is_older = !*then && strncmp(now, "--too-long ", 11) == 0;
        if (!is_older && (n != m || memcmp(now, then, n) != 0))
            return refuse_line(trainer, of_rank, now, then, error);
        now += n + (now[n] == '\n');
        then += m + (then[m] == '\n');
    }
    return true;
}

bool at_trainer_same(const at_trainer *trainer, const char *then, at_error *error)
{
    return is_same(trainer, false, then, error);
}

bool at_trainer_same_as(const at_trainer *trainer, const char *first, at_error *error)
{
    return is_same(trainer, true, first, error);
}
