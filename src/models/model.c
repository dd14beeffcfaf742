/* The table of models, and what is the same for all of them. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "models/kinds.h"

static const at_model_kind *const kinds[] = {&at_rnn_plain, &at_rnn_encdec,  &at_rnn_attention, &at_bahdanau,
                                             &at_luong,     &at_transformer, &at_transformer_lm};
enum { KINDS = sizeof kinds / sizeof *kinds };

const at_model_kind *at_model_kind_at(int index)
{
    return index >= 0 && index < KINDS ? kinds[index] : NULL;
}

bool at_model_entry(int index, at_entry *entry)
{
    const at_model_kind *kind = at_model_kind_at(index);
    if (kind)
        *entry = (at_entry){"model", kind->name, "", kind->formula, "", kind->paper};
    return kind != NULL;
}

bool at_cell_kind_parse(const at_model_settings *settings, at_cell_kind *kind, at_error *error)
{
    const char *cell = settings->cell, *reset = settings->reset;
    const bool gru = strcmp(cell, "gru") == 0, after = strcmp(reset, "after") == 0;
    char shown[AT_SHOWN];
    if (!gru && strcmp(cell, "rnn") != 0 && strcmp(cell, "lstm") != 0)
        return at_fail(error, AT_FAILED, "--cell is '%s' and must be 'rnn', 'gru' or 'lstm'",
                       at_shown(cell, shown, sizeof shown));
    if (gru && !after && strcmp(reset, "before") != 0)
        return at_fail(error, AT_FAILED, "--reset is '%s' and must be 'before' or 'after'",
                       at_shown(reset, shown, sizeof shown));
    *kind = strcmp(cell, "rnn") == 0 ? AT_CELL_RNN : !gru ? AT_CELL_LSTM : after ? AT_CELL_GRU_AFTER : AT_CELL_GRU;
    return true;
}

bool at_is_added(const char *position)
{
    return strcmp(position, "sinusoidal") == 0 || strcmp(position, "learned") == 0;
}

bool at_model_attention(const at_model_settings *settings, const at_model_kind *kind, at_attention *attention,
                        at_error *error)
{
    *attention = (at_attention){0};
    if (!at_model_uses(kind, "score"))
        return true;
    if (at_is_added(settings->position) && !at_model_uses(kind, "positions"))
        return at_fail(error, AT_FAILED, "--position %s is added to a transformer's words, and model '%s' is none",
                       settings->position, kind->name);
    at_settings names = {.score = settings->score,
                         .normaliser = settings->normaliser,
                         .window = settings->window,
                         .position = at_is_added(settings->position) ? "none" : settings->position,
                         .heads = (int)settings->heads};
    if (!at_attention_parse(&names, attention, error))
        return false;
    if (at_attention_samples(attention) && settings->attention_dropout > 0)
        return at_fail(error, AT_FAILED,
                       "--attention-dropout drops some of many weights, and the normaliser 'hard' has one");
    return true;
}

void *at_model_extra(at_model *model, size_t size, at_error *error)
{
    model->extra = calloc(1, size);
    if (!model->extra)
        at_fail(error, AT_FAILED, "memory is out: a model '%s' cannot be made", model->kind->name);
    return model->extra;
}

at_cell_kind at_model_cell(const at_model *model)
{
    at_error error = {0};
    at_cell_kind kind = AT_CELL_RNN;
    at_cell_kind_parse(&model->settings, &kind, &error);
    return kind;
}

/* Everything a model needs must be there: a setting that is not may have come past at_model_settings_complete. */
static bool is_complete(const at_model_settings *settings, const at_model_kind *kind, at_error *error)
{
    for (int i = 0; at_field_at(i); i++) {
        const at_field *field = at_field_at(i);
        char text[64];
        at_field_text(settings, field, text, sizeof text);
        if (field->type == AT_FIELD_COUNT && *field->standard && at_model_uses(kind, field->name) &&
            strtoll(text, NULL, 10) < 1)
            return at_fail(error, AT_FAILED, "--%s is %s and must be at least 1", field->name, text);
    }
    const int most = kind->most_layers ? kind->most_layers : AT_MOST_LAYERS;
    if (settings->layers > most)
        return at_fail(error, AT_FAILED, "--layers is %lld, and model '%s' has at most %d", (long long)settings->layers,
                       kind->name, most);
    if ((settings->source_size < 1 && !kind->alone) || settings->target_size < 1)
        return at_fail(error, AT_FAILED, "the vocabularies have %lld and %lld entries, and each needs at least 1",
                       (long long)settings->source_size, (long long)settings->target_size);
    return true;
}

/* A model whose parameters have shapes but no memory yet. */
static at_model *declare_model(const at_model_settings *settings, at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    at_cell_kind cell;
    const at_model_kind *kind = at_model_kind_find(settings->model, error);
    if (!kind || !is_complete(settings, kind, error) ||
        (at_model_uses(kind, "cell") && !at_cell_kind_parse(settings, &cell, error)))
        return NULL;
    at_model *model = calloc(1, sizeof *model);
    at_params *params = at_params_new();
    if (model)
        *model = (at_model){.kind = kind, .settings = *settings, .params = params};
    if (!model || !params) {
        at_fail(error, AT_FAILED, "memory is out: a model '%s' cannot be made", kind->name);
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
    at_model *model = declare_model(&any, error);
    at_model_free(model);
    return model != NULL;
}

at_model *at_model_blank(const at_model_settings *settings, at_error *error)
{
    at_model *model = declare_model(settings, error);
    if (model && at_params_fix(model->params, error))
        return model;
    at_model_free(model);
    return NULL;
}

at_model *at_model_new(const at_model_settings *settings, uint64_t seed, at_error *error)
{
    at_model *model = at_model_blank(settings, error);
    if (model)
        at_init_all(model->params, seed);
    if (model && model->kind->draw)
        model->kind->draw(model, seed);
    return model;
}

void at_model_free(at_model *model)
{
    if (!model)
        return;
    at_params_free(model->params);
    free(model->extra);
    free(model);
}

static bool source_fits(const at_model *model, const at_pass *pass, const at_source *source)
{
    at_error *error = at_tape_error(pass->tape);
    for (int64_t b = 0; !model->kind->alone && b < source->rows; b++)
        if (source->lengths[b] < 1 || source->lengths[b] > source->length)
            return at_fail(error, AT_FAILED, "the source in row %lld has %lld units and must have 1 to %lld",
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
    at_fail(
        at_tape_error(pass->tape), AT_FAILED, "model '%s' has no features of a source's units: %s", model->kind->name,
        model->kind->alone ? "it is a language model, and has no source" : "it keeps one vector of the whole source");
    return NULL;
}

bool at_model_heads(const at_model *model, int *layers, int *heads)
{
    const at_model_settings *s = &model->settings;
    if (model->kind->alone || !at_model_uses(model->kind, "score"))
        return false;
    *layers =
        !at_model_uses(model->kind, "decoder-layers") ? 1 : (int)(s->decoder_layers ? s->decoder_layers : s->layers);
    *heads = (int)s->heads;
    return true;
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
        at_fail(at_tape_error(pass->tape), AT_FAILED, "decoding takes at least 1 target position, and got %lld",
                (long long)n);
        return (at_decoded){0};
    }
    return model->kind->decode(model, pass, source, encoded, state, ids, n);
}
