/* The table of models, and what is the same for all of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "models/kinds.h"

/* The records of the models, in the order of `attend list`. A new model is its file and its line here. */
#define MODELS(X)                                                                                                      \
    X(at_rnn_plain)                                                                                                    \
    X(at_rnn_encdec)                                                                                                   \
    X(at_rnn_attention)                                                                                                \
    X(at_bahdanau)                                                                                                     \
    X(at_nematus)                                                                                                      \
    X(at_luong)                                                                                                        \
    X(at_show_attend_tell)                                                                                             \
    X(at_transformer)                                                                                                  \
    X(at_transformer_lm)
#define DECLARE(kind) extern const at_model_kind kind;
#define ADDRESS(kind) &kind,
MODELS(DECLARE)
static const at_model_kind *const kinds[] = {MODELS(ADDRESS)};
enum { KINDS = sizeof kinds / sizeof *kinds };

const at_model_kind *at_model_kind_at(int index)
{
    return index >= 0 && index < KINDS ? kinds[index] : NULL;
}

/* Filled in again at each call with the same values; each thread has its own. */
const at_entry *at_model_entry(int index)
{
    static _Thread_local at_entry entries[KINDS];
    const at_model_kind *kind = at_model_kind_at(index);
    if (!kind)
        return NULL;
    entries[index] = (at_entry){"model", kind->name, "", kind->formula, "", kind->paper};
    return &entries[index];
}

at_added at_added_by(const at_model_settings *settings)
{
    return strcmp(settings->position, "sinusoidal") == 0 ? AT_ADDED_SINUSOIDAL
           : strcmp(settings->position, "learned") == 0  ? AT_ADDED_LEARNED
                                                         : AT_ADDED_NONE;
}

/* Exact hard attention sums over the source units that one head may choose, each of which is one vector whatever the
 * target position. The weights of the sum are those that a sample would be drawn from. */
static bool can_be_exact(at_attention *attention, at_error *error)
{
    if (attention->heads > 1)
        return at_fail(error, AT_USAGE, "`hard-training` exact sums over what one head chooses, and `heads` is %lld",
                       (long long)attention->heads);
    if (at_attention_moves_values(attention))
        return at_fail(error, AT_USAGE,
                       "`hard-training` exact needs values that do not depend on the target position; give `position` "
                       "shaw:K:keys");
    at_attention_soften(attention);
    return true;
}

/* Coverage adds to the keys inside the function of the additive score. */
static bool can_be_covered(const at_model_settings *settings, const at_attention *attention, at_error *error)
{
    if (!at_attention_prepares(attention))
        return at_fail(error, AT_USAGE, "`coverage` adds to the keys of `score` additive, and the score is '%s'",
                       settings->score);
    if (settings->coverage_width % 2 != 1)
        return at_fail(error, AT_USAGE,
                       "`coverage-width` is the size of a window around a unit, an odd number, not %lld",
                       (long long)settings->coverage_width);
    return true;
}

bool at_is_exact(const at_model *model)
{
    return model->settings.hard_training == AT_HARD_EXACT;
}

bool at_model_attention(const at_model_settings *settings, const at_model_kind *kind, at_attention *attention,
                        at_error *error)
{
    *attention = (at_attention){0};
    if (!kind->has_attention)
        return true;
    const bool added = at_added_by(settings) != AT_ADDED_NONE;
    if (added && !kind->adds_positions)
        return at_fail(error, AT_USAGE,
                       "`position` %s is added to the embeddings of a transformer or the cells of a picture, and model "
                       "'%s' has neither",
                       settings->position, kind->name);
    at_settings names = {.score = settings->score,
                         .normaliser = settings->normaliser,
                         .window = settings->window,
                         .position = added ? "none" : settings->position,
                         .heads = (int)settings->heads};
    if (!at_attention_parse(&names, attention, error))
        return false;
    if (at_attention_samples(attention) && settings->attention_dropout > 0)
        return at_fail(error, AT_USAGE,
                       "`attention-dropout` cannot be used with the normaliser 'hard', which selects one position");
    if (settings->hard_training != AT_HARD_UNSET && !at_attention_samples(attention))
        return at_fail(error, AT_USAGE, "`hard-training` is for `normaliser` hard only, and the normaliser is '%s'",
                       settings->normaliser);
    if (settings->coverage > 0 && !can_be_covered(settings, attention, error))
        return false;
    return settings->hard_training != AT_HARD_EXACT || can_be_exact(attention, error);
}

void *at_model_extra(at_model *model, size_t size, at_error *error)
{
    model->extra = calloc(1, size);
    if (!model->extra)
        at_no_memory(error, "a model '%s'", model->kind->name);
    return model->extra;
}

at_cell_kind at_model_cell(const at_model *model)
{
    const at_model_settings *s = &model->settings;
    return s->cell == AT_RNN            ? AT_CELL_RNN
           : s->cell == AT_LSTM         ? AT_CELL_LSTM
           : s->reset == AT_RESET_AFTER ? AT_CELL_GRU_AFTER
           : s->reset == AT_RESET_BIAS  ? AT_CELL_GRU_BIAS
                                        : AT_CELL_GRU;
}

/* Checks that every setting of the model is set, for settings that have bypassed at_model_settings_complete. */
static bool is_complete(const at_model_settings *settings, const at_model_kind *kind, at_error *error)
{
    for (int i = 0; at_model_setting(i); i++) {
        const at_setting *row = at_model_setting(i);
        if (row->type == AT_SETTING_COUNT && row->fallback && at_model_uses(kind, row->name) &&
            *(const int64_t *)((const char *)settings + row->offset) < 1)
            return at_fail(error, AT_USAGE, "`%s` is not set", row->name);
    }
    const int most = kind->most_layers ? kind->most_layers : AT_MOST_LAYERS;
    if (settings->layers > most)
        return at_fail(error, AT_USAGE, "`layers` is %lld, and model '%s' has at most %d", (long long)settings->layers,
                       kind->name, most);
    if ((settings->source_size < 1 && kind->has_source && !kind->has_pictures) || settings->target_size < 1)
        return at_fail(error, AT_SHAPE, "the vocabularies have %lld and %lld entries, and each needs at least 1",
                       (long long)settings->source_size, (long long)settings->target_size);
    return true;
}

/* "2.1" as a layer and a head; what is not of that form stays 0. */
static void parse_guided(at_model *model)
{
    const char *text = model->settings.guided_head;
    int layer, head, used = 0;
    if (sscanf(text, "%d.%d%n", &layer, &head, &used) == 2 && !text[used] && layer > 0 && head > 0) {
        model->guided_layer = layer;
        model->guided_head = head;
    }
}

bool at_model_guided(const at_model *model, int *layer, int *head)
{
    *layer = model->guided_layer;
    *head = model->guided_head;
    return model->guided_layer > 0;
}

at_model *at_model_declare(const at_model_settings *settings, at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    const at_model_kind *kind = at_model_kind_find(settings->model, error);
    if (!kind || !is_complete(settings, kind, error))
        return NULL;
    at_model *model = calloc(1, sizeof *model);
    at_params *params = at_params_new();
    if (model) {
        *model = (at_model){.kind = kind, .settings = *settings, .params = params, .added = at_added_by(settings)};
        parse_guided(model);
    }
    if (!model || !params) {
        at_no_memory(error, "a model '%s'", kind->name);
    } else if (at_model_attention(settings, kind, &model->attention, error) && kind->declare(model, error)) {
        return model;
    }
    if (!model)
        at_params_free(params);
    at_model_free(model);
    return NULL;
}

bool at_model_possible(const at_model_settings *settings, at_error *error)
{
    at_model_settings any = *settings;
    any.source_size = any.target_size = 1;
    at_model *model = at_model_declare(&any, error);
    const bool possible = model;
    at_model_free(model);
    return possible;
}

at_model *at_model_blank(const at_model_settings *settings, int64_t most, at_error *error)
{
    at_model *model = at_model_declare(settings, error);
    if (model && at_params_count(model->params) > most)
        at_fail(error, AT_FORMAT, "its settings and vocabularies need %lld parameters, and it can hold %lld",
                (long long)at_params_count(model->params), (long long)most);
    if (model && at_params_fix_values(model->params, error))
        return model;
    at_model_free(model);
    return NULL;
}

at_model *at_model_new(const at_model_settings *settings, uint64_t seed, at_error *error)
{
    at_model *model = at_model_declare(settings, error);
    if (model && !at_params_fix(model->params, error)) {
        at_model_free(model);
        return NULL;
    }
    if (model)
        at_init_all(model->params, seed);
    if (model && model->kind->initialise)
        model->kind->initialise(model, seed);
    return model;
}

at_model *at_model_share(at_model *model)
{
    __atomic_add_fetch(&model->shares, 1, __ATOMIC_RELAXED);
    return model;
}

void at_model_free(at_model *model)
{
    if (!model || __atomic_fetch_sub(&model->shares, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    at_params_free(model->params);
    free(model->extra);
    free(model);
}

static bool source_fits(const at_model *model, const at_pass *pass, const at_source *source)
{
    at_error *error = at_tape_error(pass->tape);
    for (int64_t b = 0; model->kind->has_source && b < source->rows; b++)
        if (source->lengths[b] < 1 || source->lengths[b] > source->length)
            return at_fail(error, AT_SHAPE, "the source in row %lld has %lld units and must have 1 to %lld",
                           (long long)b, (long long)source->lengths[b], (long long)source->length);
    return at_tape_ok(pass->tape);
}

at_parts at_model_encode(const at_model *model, const at_pass *pass, const at_source *source)
{
    return source_fits(model, pass, source) ? model->kind->encode(model, pass, source) : (at_parts){0};
}

at_tensor *at_model_features(const at_model *model, const at_pass *pass, const at_source *source)
{
    if (model->kind->features)
        return source_fits(model, pass, source) ? model->kind->features(model, pass, source) : NULL;
    at_fail(at_tape_error(pass->tape), AT_UNSUPPORTED, "model '%s' has no features of a source's units: %s",
            model->kind->name,
            model->kind->has_source ? "it encodes the whole source as one vector"
                                    : "it is a language model and has no source");
    return NULL;
}

bool at_model_heads(const at_model *model, int *layers, int *heads)
{
    const at_model_settings *s = &model->settings;
    if (!model->kind->has_source || !model->kind->has_attention)
        return false;
    *layers = !model->kind->has_cross_layers ? 1 : (int)(s->decoder_layers ? s->decoder_layers : s->layers);
    *heads = (int)s->heads;
    return true;
}

double at_model_weights(const at_model *model, int64_t S, int64_t T)
{
    const at_model_settings *s = &model->settings;
    const double heads = (double)s->heads, source = (double)S, target = (double)T;
    const double layers = (double)s->layers, decoder = s->decoder_layers ? (double)s->decoder_layers : layers;
    if (!model->kind->has_attention)
        return 0;
    if (!model->kind->has_source)
        return layers * heads * target * target;
    if (!model->kind->has_cross_layers)
        return heads * target * source;
    return heads * (layers * source * source + decoder * (target * target + target * source));
}

at_parts at_model_start(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded)
{
    return at_tape_ok(pass->tape) ? model->kind->start(model, pass, source, encoded) : (at_parts){0};
}

at_decoded at_model_decode(const at_model *model, const at_pass *pass, const at_source *source, const at_parts *encoded,
                           at_parts *state, const int32_t *ids, int64_t n)
{
    if (!source_fits(model, pass, source))
        return (at_decoded){0};
    if (n < 1) {
        at_fail(at_tape_error(pass->tape), AT_SHAPE, "decoding takes at least 1 target position, not %lld",
                (long long)n);
        return (at_decoded){0};
    }
    return model->kind->decode(model, pass, source, encoded, state, ids, n);
}
