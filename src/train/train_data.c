/* From lines of text to batches: vocabularies, corpora, batches, and notes about lines that are skipped. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "train/guide_internal.h"
#include "train/train_internal.h"

/* "line 7", or "line 7 of 'b.de'" if there are several corpora. */
typedef struct place {
    char text[200];
} place;

static place place_of(const at_lines *lines, int64_t number)
{
    place p;
    int64_t there;
    const char *name = at_lines_place(lines, number, &there);
    snprintf(p.text, sizeof p.text, name ? "line %lld of '%s'" : "line %lld", (long long)there, name);
    return p;
}

static void note_report(at_trainer *trainer, const char *what, const at_lines *lines, const at_corpus_report *r)
{
    static const char *const rules[] = {"kept", "cut", "skipped"};
    const bool one_sided = trainer->settings->train.target_only;
    if (r->empty > 0)
        at_trainer_note(trainer, "%lld of the %lld %s %s and are skipped, the first in %s", (long long)r->empty,
                        (long long)r->lines, what, one_sided ? "lines are empty" : "pairs have an empty side",
                        place_of(lines, r->first_empty).text);
    if (r->too_long > 0)
        at_trainer_note(trainer, "%lld of the %lld %s %s are longer than %lld units and are %s, the first in %s",
                        (long long)r->too_long, (long long)r->lines, what, one_sided ? "lines" : "pairs",
                        (long long)trainer->settings->limits.max_length, rules[trainer->settings->limits.rule],
                        place_of(lines, r->first_too_long).text);
    if (r->over_ratio > 0)
        at_trainer_note(trainer,
                        "%lld of the %lld %s pairs have a side more than %g times as long as the other and are "
                        "skipped, the first in %s",
                        (long long)r->over_ratio, (long long)r->lines, what, trainer->settings->limits.max_ratio,
                        place_of(lines, r->first_over_ratio).text);
    if (r->replaced > 0)
        at_trainer_note(trainer,
                        "%lld of the %lld %s %s hold bytes that are not UTF-8, read as U+FFFD, the first in %s",
                        (long long)r->replaced, (long long)r->lines, what, one_sided ? "lines" : "pairs",
                        place_of(lines, r->first_replaced).text);
}

/* A few broken lines are read with U+FFFD. If most lines beyond ASCII are broken, and they are no rarity, the text is in
 * another encoding, and a model of it would be of no use. */
static bool check_encoding(const at_corpus_report *r, const char *what, const at_lines *lines, at_error *error)
{
    enum { RARE = 20, LEAST = 4 };
    if (r->replaced < LEAST || r->replaced * 2 <= r->beyond_ascii || r->replaced * RARE < r->lines)
        return true;
    return at_fail(error, AT_FORMAT,
                   "of %lld %s lines with letters beyond ASCII %lld are not UTF-8, the first in %s; the text is "
                   "probably Latin-1, so convert it first: iconv -f LATIN1 -t UTF-8",
                   (long long)r->beyond_ascii, what, (long long)r->replaced, place_of(lines, r->first_replaced).text);
}

/* Prefixes an error message with what it is about. */
static void prefix_error(const char *what, at_error *error)
{
    const at_error why = *error;
    *error = (at_error){0};
    at_fail(error, why.code, "%s: %s", what, why.text);
}

static at_vocabulary *make_vocabulary(const at_lines *lines, const char *kind, at_cleaning cleaning, int first_side,
                                      int last_side, at_error *error)
{
    at_vocabulary *vocabulary = at_vocabulary_new(kind, error);
    if (vocabulary)
        at_vocabulary_normalise(vocabulary, cleaning);
    for (int side = first_side; vocabulary && side <= last_side; side++)
        at_lines_count_units(lines, side, vocabulary, error);
    if (vocabulary && at_vocabulary_fix(vocabulary, error))
        return vocabulary;
    if (error->code == AT_USAGE) /* a size that the text cannot fill */
        prefix_error(first_side == 0 ? "`source-vocab`" : "`target-vocab`", error);
    at_vocabulary_free(vocabulary);
    return NULL;
}

static void keep_counts(const at_corpus *corpus, const at_corpus_report *r, bool pictures, at_train_part *part)
{
    *part = (at_train_part){r->lines, r->kept, r->empty, r->too_long, r->over_ratio, {0}, {0}};
    for (int side = 0; side < 2; side++)
        part->units[side] = at_corpus_units(corpus, side, &part->unknown[side]);
    if (pictures)
        part->unknown[0] = 0;
}

static at_corpus *make_corpus(at_trainer *trainer, const at_lines *lines, at_training_part part, double max_ratio,
                              at_error *error)
{
    const char *what = part == AT_VALID ? "validation" : "training";
    at_corpus_limits limits = trainer->settings->limits;
    at_corpus_report report = {0};
    limits.max_ratio = max_ratio;
    const at_source_reader reader = at_picture_source_reader(trainer->pictures);
    at_corpus *corpus = at_corpus_new(lines, trainer->translator.source, trainer->translator.target,
                                      trainer->pictures ? &reader : NULL, &limits, &report, error);
    if (corpus)
        keep_counts(corpus, &report, trainer->pictures, &trainer->part[part]);
    else if (error->code != AT_OK)
        prefix_error(what, error);
    if (corpus && check_encoding(&report, what, lines, error))
        note_report(trainer, what, lines, &report);
    if (corpus && at_corpus_count(corpus) == 0)
        at_fail(error, AT_FORMAT, "none of the %lld %s pairs can be used", (long long)report.lines, what);
    return corpus;
}

/* The lines of a part; before them, what reads the pictures that they name, if the model reads pictures. */
static at_lines *lines_of(at_trainer *trainer, at_training_part part, at_error *error)
{
    const at_train_settings *s = trainer->settings;
    const at_line_pairs *pairs = &s->lines[part];
    const at_corpus_files *files = part == AT_VALID ? &s->valid : &s->train;
    if (files->pictures && !trainer->pictures && !(trainer->pictures = at_picture_source_new(&s->model, error)))
        return NULL;
    return pairs->targets ? at_lines_of(pairs->sources, pairs->targets, pairs->count, error)
                          : at_lines_read(files, error);
}

/* ---- Several corpora ------------------------------------------------------------------------------------------ */

/* The next of several weights, all above 0, with commas between. */
static bool next_weight(const char **at, double *weight)
{
    char *end;
    *weight = strtod(*at, &end);
    const bool good = end > *at && isfinite(*weight) && *weight > 0 && (*end == '\0' || (*end == ',' && end[1]));
    *at = end + (*end == ',');
    return good;
}

bool at_corpus_weights_known(const char *text, at_error *error)
{
    double weight;
    for (const char *at = text; *at;)
        if (!next_weight(&at, &weight))
            return at_fail(error, AT_USAGE,
                           "`corpus-weights` takes numbers above 0 with commas between, as in 1,3, not '%.60s'", text);
    return true;
}

/* The batches of training, in which corpora have their weights. */
static at_batches *make_batches(at_trainer *trainer, const at_lines *lines, at_error *error)
{
    const at_train_settings *s = trainer->settings;
    const int count = lines->parts > 0 ? lines->parts : 1;
    at_corpus_part *parts = calloc((size_t)count, sizeof *parts);
    const char *at = s->corpus_weights;
    int64_t last = 0;
    int weights = 0;
    if (!s->corpus_weights) {
        free(parts);
        return at_batches_new(trainer->train, s->batch_size, s->batch_tokens, s->seed, true, error);
    }
    for (double weight; parts && *at && next_weight(&at, &weight); weights++) {
        if (weights >= count)
            continue;
        last += lines->parts > 0 ? lines->part[weights]->count : lines->count;
        parts[weights] = (at_corpus_part){at_corpus_up_to(trainer->train, last), weight};
    }
    at_batches *batches = NULL;
    if (!parts)
        at_no_memory(error, "%d corpora", count);
    else if (weights != count)
        at_fail(error, AT_USAGE, "`corpus-weights` has %d weights, and there %s %d corp%s", weights,
                count == 1 ? "is" : "are", count, count == 1 ? "us" : "ora");
    else
        batches = at_batches_new_weighted(trainer->train, parts, count, s->batch_size, s->batch_tokens, s->seed, error);
    free(parts);
    return batches;
}

bool at_trainer_prepare_validation(at_trainer *trainer, at_error *error)
{
    const at_train_settings *s = trainer->settings;
    trainer->valid_lines = lines_of(trainer, AT_VALID, error);
    if (trainer->valid_lines)
        trainer->valid = make_corpus(trainer, trainer->valid_lines, AT_VALID, 0, error);
    if (error->code == AT_OK)
        trainer->valid_batches = at_batches_new(trainer->valid, s->batch_size, s->batch_tokens, s->seed, false, error);
    return error->code == AT_OK;
}

bool at_trainer_prepare_data(at_trainer *trainer, at_error *error)
{
    const at_train_settings *s = trainer->settings;
    at_translator *t = &trainer->translator;
    at_lines *lines = lines_of(trainer, AT_TRAIN, error);
    if (lines && trainer->initial) {
        t->source = trainer->initial->source;
        t->target = trainer->initial->target;
        trainer->initial->source = trainer->initial->target = NULL;
    } else if (lines) {
        bool joint = s->joint_vocabulary;
        if (!s->train.target_only && !s->train.pictures)
            t->source = make_vocabulary(lines, s->source_vocabulary, s->cleaning, 0, joint ? 1 : 0, error);
        if (error->code == AT_OK)
            t->target = joint ? at_vocabulary_copy(t->source, error)
                              : make_vocabulary(lines, s->target_vocabulary, s->cleaning, 1, 1, error);
        if (t->target && t->source)
            at_vocabulary_frame(t->source, false, s->source_end);
    }
    trainer->train = t->target ? make_corpus(trainer, lines, AT_TRAIN, s->limits.max_ratio, error) : NULL;
    if (trainer->train && s->subword_sampling > 0)
        trainer->sampling = at_subword_sampling_new(trainer->train, lines, t->source, t->target, s->subword_sampling,
                                                    s->limits.max_length, s->seed, error);
    if (trainer->train && s->guided_alignment)
        trainer->guide = at_guide_new(s->guided_alignment, lines, t->source, t->target, error);
    trainer->batches = error->code == AT_OK ? make_batches(trainer, lines, error) : NULL;
    at_lines_free(lines);
    if (error->code != AT_OK)
        return false;
    if (!at_corpus_entropy(trainer->train, at_vocabulary_size(t->target), s->label_smoothing, &trainer->entropy, error))
        return false;
    return error->code == AT_OK && (!at_train_validates(s) || at_trainer_prepare_validation(trainer, error));
}
