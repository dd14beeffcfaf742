/* A hand-written model whose numbers can be computed without it. */
#ifndef FAKE_MODEL_H
#define FAKE_MODEL_H

#include "search/search.h"

/* The next unit depends on the sum of the source and, through a running hash in the state, on every unit before it: a
 * beam whose rows are mixed up has other numbers. */
enum { HASH = 1009 };

static int64_t hash_next(int64_t hash, int32_t id)
{
    return (hash * 31 + id + 1) % HASH;
}

/* Shape of the logits: spread, the logit of the end, whether they are integers, so that many are equal, and what is
 * added to all of them. One logit of one source, the unknown unit's, may be `damage` instead. */
static struct {
    float spread, end;
    bool whole;
    float offset, damage;
    int64_t damaged; /* the source, as `logit` counts them; -1: none */
} shape = {1, 0.5f, .damaged = -1};

/* `source` is a sum below SUMS; SUMS and above are the sums of another ensemble member. */
enum { SUMS = 97 };

static float logit(int64_t source, int64_t hash, int64_t id)
{
    uint32_t word[4];
    at_philox(77, (uint64_t)(source * HASH + hash), (uint64_t)id, word);
    float value = (float)(word[0] % 4001) / 1000 - 2;
    if (source == shape.damaged && id == AT_UNKNOWN)
        return shape.damage;
    return shape.offset + shape.spread * (shape.whole ? roundf(value) : value) + (id == AT_END ? shape.end : 0);
}

static float weight(int64_t source, int64_t hash, int64_t s)
{
    uint32_t word[4];
    at_philox(78, (uint64_t)(source * HASH + hash), (uint64_t)s, word);
    return (float)(word[0] % 1000) / 1000;
}

static int64_t source_sum(const int32_t *ids, int64_t count)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (i + 1) * ids[i];
    return sum % SUMS;
}

static at_parts fake_encode(const at_model *model, const at_pass *pass, const at_source *source)
{
    (void)model;
    at_tensor *memory = at_tensor_make(pass->tape, AT_SHAPE(source->rows, source->length, 1));
    for (int64_t i = 0; i < source->rows * source->length; i++)
        memory->value[i] = (at_real)source->ids[i];
    return (at_parts){1, {memory}};
}

static at_parts fake_start(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded)
{
    (void)model;
    (void)encoded;
    at_tensor *state = at_tensor_make(pass->tape, AT_SHAPE(source->rows, 1));
    for (int64_t r = 0; r < source->rows; r++)
        state->value[r] = 0;
    return (at_parts){1, {state}};
}

static bool has_attention = true;

static at_decoded fake_decode(const at_model *model, const at_pass *pass, const at_source *source,
                              const at_parts *encoded, at_parts *state, const int32_t *ids, int64_t n)
{
    int64_t rows = source->rows, length = source->length, vocabulary = model->settings.target_size;
    at_tensor *logits = at_tensor_make(pass->tape, AT_SHAPE(rows, n, vocabulary));
    at_tensor *weights = at_tensor_make(pass->tape, AT_SHAPE(rows, n, length));
    at_tensor *after = at_tensor_make(pass->tape, AT_SHAPE(rows, 1));
    for (int64_t r = 0; r < rows; r++) {
        int32_t *seen = malloc((size_t)length * sizeof *seen);
        for (int64_t s = 0; s < length; s++) {
            seen[s] = (int32_t)encoded->part[0]->value[r * length + s];
            assert_int_equal(seen[s], source->ids[r * length + s]);
            assert_true((seen[s] >= 0) == (s < source->lengths[r]));
        }
        /* A setting that the model does not use identifies the ensemble member. */
        int64_t sum = source_sum(seen, source->lengths[r]) + SUMS * model->settings.layers;
        int64_t hash = (int64_t)state->part[0]->value[r];
        free(seen);
        for (int64_t i = 0; i < n; i++) {
            hash = hash_next(hash, ids[r * n + i]);
            for (int64_t v = 0; v < vocabulary; v++)
                logits->value[(r * n + i) * vocabulary + v] = (at_real)logit(sum, hash, v);
            for (int64_t s = 0; s < length; s++)
                weights->value[(r * n + i) * length + s] = s < source->lengths[r] ? (at_real)weight(sum, hash, s) : 0;
        }
        after->value[r] = (at_real)hash;
    }
    state->part[0] = after;
    return (at_decoded){.logits = logits, .weights = has_attention ? weights : NULL};
}

static const at_model_kind fake_kind = {.name = "fake",
                                        .has_source = true,
                                        .fields = "",
                                        .encode = fake_encode,
                                        .start = fake_start,
                                        .decode = fake_decode};

typedef struct fake {
    at_model model, other[2], *more[2];
    at_translator translator;
} fake;

static at_vocabulary *vocabulary_of(const char *kind, const char *line)
{
    at_error error = {0};
    at_vocabulary *vocabulary = at_vocabulary_new(kind, &error);
    assert_true(at_vocabulary_count(vocabulary, line, strlen(line), &error));
    assert_true(at_vocabulary_fix(vocabulary, &error));
    return vocabulary;
}

static void fake_open(fake *f, const char *source_kind, const char *source, const char *target_kind, const char *target)
{
    *f = (fake){.model = {.kind = &fake_kind}};
    f->translator = (at_translator){.model = &f->model,
                                    .source = vocabulary_of(source_kind, source),
                                    .target = vocabulary_of(target_kind, target),
                                    .max_length = 100};
    f->model.settings.source_size = at_vocabulary_size(f->translator.source);
    f->model.settings.target_size = at_vocabulary_size(f->translator.target);
}

/* Two more members of the ensemble, or none. */
static void fake_ensemble(fake *f, bool more)
{
    for (int i = 0; i < 2; i++) {
        f->other[i] = f->model;
        f->other[i].settings.layers = i + 1;
        f->more[i] = &f->other[i];
    }
    f->translator.more = more ? f->more : NULL;
    f->translator.more_count = more ? 2 : 0;
}

static void fake_close(fake *f)
{
    at_vocabulary_free(f->translator.source);
    at_vocabulary_free(f->translator.target);
}

#endif
