/* From lines of text to batches: vocabularies, corpora, batches, and notes about lines that are skipped. */
#include "train/guide_internal.h"
#include "train/train_internal.h"

static void note_report(at_trainer *trainer, const char *what, const at_corpus_report *r)
{
    static const char *const rules[] = {"kept", "cut", "skipped"};
    const bool one_sided = trainer->settings->train.target_only;
    if (r->empty > 0)
        at_trainer_note(trainer, "%lld of the %lld %s %s and are skipped, the first in line %lld", (long long)r->empty,
                        (long long)r->lines, what, one_sided ? "lines are empty" : "pairs have an empty side",
                        (long long)r->first_empty);
    if (r->too_long > 0)
        at_trainer_note(trainer, "%lld of the %lld %s %s are longer than %lld units and are %s, the first in line %lld",
                        (long long)r->too_long, (long long)r->lines, what, one_sided ? "lines" : "pairs",
                        (long long)trainer->settings->limits.max_length, rules[trainer->settings->limits.rule],
                        (long long)r->first_too_long);
    if (r->over_ratio > 0)
        at_trainer_note(trainer,
                        "%lld of the %lld %s pairs have a side more than %g times as long as the other and are "
                        "skipped, the first in line %lld",
                        (long long)r->over_ratio, (long long)r->lines, what, trainer->settings->limits.max_ratio,
                        (long long)r->first_over_ratio);
    if (r->replaced > 0)
        at_trainer_note(trainer,
                        "%lld of the %lld %s %s hold bytes that are not UTF-8, read as U+FFFD, the first in line %lld",
                        (long long)r->replaced, (long long)r->lines, what, one_sided ? "lines" : "pairs",
                        (long long)r->first_replaced);
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

static at_corpus *make_corpus(at_trainer *trainer, const at_lines *lines, const char *what, double max_ratio,
                              at_error *error)
{
    at_corpus_limits limits = trainer->settings->limits;
    at_corpus_report report = {0};
    limits.max_ratio = max_ratio;
    at_corpus *corpus =
        at_corpus_new(lines, trainer->translator.source, trainer->translator.target, &limits, &report, error);
    if (corpus)
        note_report(trainer, what, &report);
    else if (error->code != AT_OK)
        prefix_error(what, error);
    if (corpus && at_corpus_count(corpus) == 0)
        at_fail(error, AT_FORMAT, "none of the %lld %s pairs can be used", (long long)report.lines, what);
    return corpus;
}

static at_lines *lines_of(const at_line_pairs *pairs, const at_corpus_files *files, at_error *error)
{
    return pairs->targets ? at_lines_of(pairs->sources, pairs->targets, pairs->count, error)
                          : at_lines_read(files, error);
}

bool at_trainer_prepare_data(at_trainer *trainer, at_error *error)
{
    const at_train_settings *s = trainer->settings;
    at_translator *t = &trainer->translator;
    at_lines *lines = lines_of(&s->lines[AT_TRAIN], &s->train, error);
    if (lines && trainer->initial) {
        t->source = trainer->initial->source;
        t->target = trainer->initial->target;
        trainer->initial->source = trainer->initial->target = NULL;
    } else if (lines) {
        bool joint = s->joint_vocabulary;
        if (!s->train.target_only)
            t->source = make_vocabulary(lines, s->source_vocabulary, s->cleaning, 0, joint ? 1 : 0, error);
        if (error->code == AT_OK)
            t->target = joint ? at_vocabulary_copy(t->source, error)
                              : make_vocabulary(lines, s->target_vocabulary, s->cleaning, 1, 1, error);
    }
    trainer->train = t->target ? make_corpus(trainer, lines, "training", s->limits.max_ratio, error) : NULL;
    if (trainer->train && s->subword_sampling > 0)
        trainer->sampling = at_subword_sampling_new(trainer->train, lines, t->source, t->target, s->subword_sampling,
                                                    s->limits.max_length, s->seed, error);
    if (trainer->train && s->guided_alignment)
        trainer->guide = at_guide_new(s->guided_alignment, lines, t->source, t->target, error);
    at_lines_free(lines);
    if (error->code != AT_OK)
        return false;
    if (!at_corpus_entropy(trainer->train, at_vocabulary_size(t->target), s->label_smoothing, &trainer->entropy, error))
        return false;
    trainer->batches = at_batches_new(trainer->train, s->batch_size, s->batch_tokens, s->seed, true, error);
    if (at_train_validates(s)) {
        trainer->valid_lines = lines_of(&s->lines[AT_VALID], &s->valid, error);
        if (trainer->valid_lines)
            trainer->valid = make_corpus(trainer, trainer->valid_lines, "validation", 0, error);
        if (error->code == AT_OK)
            trainer->valid_batches =
                at_batches_new(trainer->valid, s->batch_size, s->batch_tokens, s->seed, false, error);
    }
    return error->code == AT_OK;
}
