/* The settings of a model: one table, from which come the command's options, the keys of a model file, the defaults and
 * every refusal. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "models/kinds.h"

#define FIELD(name, member, type, standard, help) CHOICE(name, member, type, standard, help, NULL)
#define CHOICE(name, member, type, standard, help, choices)                                                            \
    {                                                                                                                  \
        name, type, offsetof(at_model_settings, member), sizeof(((at_model_settings *)0)->member), standard, help,     \
            choices                                                                                                    \
    }

static const at_field fields[] = {
    FIELD("model", model, AT_FIELD_NAME, "bahdanau", "which model; `attend list models` shows them"),
    CHOICE("cell", cell, AT_FIELD_NAME, "gru", "the recurrent cell: rnn, gru or lstm", "rnn gru lstm"),
    CHOICE("reset", reset, AT_FIELD_NAME, "before", "a gru resets the state before or after the product with U",
           "before after"),
    FIELD("layers", layers, AT_FIELD_COUNT, "1", "layers on each side; recurrent ones 4 at most"),
    FIELD("embedding", embedding, AT_FIELD_COUNT, "256", "size of a word's vector"),
    FIELD("hidden", hidden, AT_FIELD_COUNT, "256", "size of a recurrent state, or of a transformer's rows"),
    FIELD("attention", attention, AT_FIELD_COUNT, "256", "size A inside the additive score and local-p"),
    FIELD("maxout", maxout, AT_FIELD_COUNT, "256", "units after the maxout before the output"),
    FIELD("dropout", dropout, AT_FIELD_SHARE, "0", "share of the units dropped in training"),
    FIELD("attention-dropout", attention_dropout, AT_FIELD_SHARE, "",
          "share of the weights of attention dropped in training (default: 0)"),
    FIELD("ffn-dropout", ffn_dropout, AT_FIELD_SHARE, "",
          "share dropped inside a transformer's feed-forward layers (default: that of --dropout)"),
    FIELD("score", score, AT_FIELD_NAME, "additive", "how a query meets a key"),
    FIELD("normaliser", normaliser, AT_FIELD_NAME, "softmax", "how scores become weights"),
    FIELD("window", window, AT_FIELD_NAME, "global", "which source positions a step sees"),
    FIELD("position", position, AT_FIELD_NAME, "none",
          "positions inside attention; a transformer's also sinusoidal or learned, added to its words"),
    FIELD("heads", heads, AT_FIELD_COUNT, "1", "attention heads"),
    FIELD("input-feeding", input_feeding, AT_FIELD_SWITCH, "false", "the attentional state enters the next step"),
    FIELD("bidirectional", bidirectional, AT_FIELD_SWITCH, "false", "the encoder reads both ways, half the units each"),
    FIELD("ffn", ffn, AT_FIELD_COUNT, "1024", "size inside a transformer's feed-forward layers"),
    FIELD("kv-heads", kv_heads, AT_FIELD_COUNT, "", "heads of keys and values, shared by groups of heads"),
    FIELD("decoder-layers", decoder_layers, AT_FIELD_COUNT, "", "layers of the decoder, if not as many as --layers"),
    CHOICE("activation", activation, AT_FIELD_NAME, "relu", "inside the feed-forward layers: relu, gelu or swish",
           "relu gelu swish"),
    CHOICE("norm", norm, AT_FIELD_NAME, "post", "layer norm after each sub-layer (post) or before it (pre)",
           "post pre"),
    FIELD("norm-epsilon", norm_epsilon, AT_FIELD_NUMBER, "1e-05", "added to the variance in layer norm"),
    CHOICE("final-norm", final_norm, AT_FIELD_NAME, "auto", "a norm after the last layer; auto: with --norm pre",
           "auto true false"),
    FIELD("positions", positions, AT_FIELD_COUNT, "512", "places in the table of --position learned"),
    CHOICE("position-layout", position_layout, AT_FIELD_NAME, "interleaved",
           "sines and cosines of --position sinusoidal: interleaved or halves", "interleaved halves"),
    CHOICE("position-denominator", position_denominator, AT_FIELD_NAME, "half",
           "what divides their exponents: half of --hidden (half), or one less (half-1)", "half half-1"),
    FIELD("first-position", first_position, AT_FIELD_NUMBER, "0", "the place of the first word"),
    FIELD("scale-embedding", scale_embedding, AT_FIELD_SWITCH, "true", "words enter times the root of --hidden"),
    FIELD("tie", tie, AT_FIELD_SWITCH, "true", "the output shares its matrix with the target's words"),
    FIELD("share-embeddings", share_embeddings, AT_FIELD_SWITCH, "false", "one table of words for both sides"),
    FIELD("output-bias", output_bias, AT_FIELD_SWITCH, "false", "a bias for every word of the output"),
    FIELD("encoder-attention", encoder_attention, AT_FIELD_NAME, "",
          "score, normaliser, window and position of the encoder, as in scaled,sliding:8,shaw:16"),
    FIELD("decoder-attention", decoder_attention, AT_FIELD_NAME, "", "the same of the decoder's self-attention"),
    FIELD("cross-attention", cross_attention, AT_FIELD_NAME, "", "the same of its attention to the source"),
    FIELD("guided-head", guided_head, AT_FIELD_NAME, "",
          "the head that --guided-alignment teaches, as LAYER.HEAD; by default the first of the last layer but one"),
};
enum { FIELDS = sizeof fields / sizeof *fields };

enum { MOST_UNITS = 1 << 20, MOST_LAYERS = 32 };

const at_field *at_field_at(int index)
{
    return index >= 0 && index < FIELDS ? &fields[index] : NULL;
}

static int find_field(const char *name)
{
    for (int i = 0; i < FIELDS; i++)
        if (strcmp(fields[i].name, name) == 0)
            return i;
    return -1;
}

static bool set_count(int64_t *to, const char *name, const char *text, at_error *error)
{
    char *end, shown[AT_SHOWN];
    errno = 0;
    long long value = strtoll(text, &end, 10);
    int64_t most = strstr(name, "layers") ? MOST_LAYERS : MOST_UNITS;
    if (end == text || *end || errno || value < 1 || value > most)
        return at_fail(error, AT_FAILED, "--%s is '%s' and must be a whole number from 1 to %lld", name,
                       at_shown(text, shown, sizeof shown), (long long)most);
    *to = value;
    return true;
}

static bool set_number(double *to, double below, const char *name, const char *text, at_error *error)
{
    char *end, shown[AT_SHOWN];
    double value = strtod(text, &end);
    /* As the float that training makes of it: of 0.999999999 nothing would be left. */
    if (end == text || *end || !(value >= 0 && (float)value < below))
        return at_fail(error, AT_FAILED, "--%s is '%s' and must be a number from 0 to below %g%s", name,
                       at_shown(text, shown, sizeof shown), below, value < below ? ", rounded to a float" : "");
    *to = value;
    return true;
}

/* One of a few names, or a sentence with all of them. */
static bool is_choice(const at_field *field, const char *text, at_error *error)
{
    char all[80] = "", shown[AT_SHOWN];
    for (const char *at = field->choices; *at;) {
        const size_t length = strcspn(at, " "), used = strlen(all);
        const char *next = at + length + (at[length] == ' ');
        if (strlen(text) == length && strncmp(text, at, length) == 0)
            return true;
        snprintf(all + used, sizeof all - used, "%s'%.*s'", used == 0 ? "" : *next ? ", " : " or ", (int)length, at);
        at = next;
    }
    return at_fail(error, AT_FAILED, "--%s is '%s' and must be %s", field->name, at_shown(text, shown, sizeof shown),
                   all);
}

static bool set_value(at_model_settings *settings, const at_field *field, const char *text, at_error *error)
{
    void *place = (char *)settings + field->offset;
    char shown[AT_SHOWN];
    switch (field->type) {
    case AT_FIELD_COUNT:
        return set_count(place, field->name, text, error);
    case AT_FIELD_SHARE:
        return set_number(place, 1, field->name, text, error);
    case AT_FIELD_NUMBER:
        return set_number(place, 1e9, field->name, text, error);
    case AT_FIELD_SWITCH:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            return at_fail(error, AT_FAILED, "--%s is '%s' and must be true or false", field->name,
                           at_shown(text, shown, sizeof shown));
        *(bool *)place = strcmp(text, "true") == 0;
        return true;
    case AT_FIELD_NAME:
        break;
    }
    if ((!*text && *field->standard) || strlen(text) >= field->size)
        return at_fail(error, AT_FAILED, "--%s is '%s' and must be a name of 1 to %zu characters", field->name,
                       at_shown(text, shown, sizeof shown), field->size - 1);
    if (field->choices && !is_choice(field, text, error))
        return false;
    memcpy(place, text, strlen(text) + 1);
    return true;
}

bool at_field_set(at_model_settings *settings, uint64_t *given, const char *name, const char *text, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    int index = find_field(name);
    if (index < 0) {
        const char *names[FIELDS];
        char shown[AT_SHOWN], near[160];
        for (int i = 0; i < FIELDS; i++)
            names[i] = fields[i].name;
        at_suggest(name, names, FIELDS, near, sizeof near);
        return at_fail(error, AT_FAILED, "there is no setting '%s' of a model%s", at_shown(name, shown, sizeof shown),
                       near);
    }
    *given |= (uint64_t)1 << index;
    return set_value(settings, &fields[index], text, error);
}

void at_field_text(const at_model_settings *settings, const at_field *field, char *text, size_t size)
{
    const void *place = (const char *)settings + field->offset;
    switch (field->type) {
    case AT_FIELD_COUNT:
        snprintf(text, size, "%lld", (long long)*(const int64_t *)place);
        break;
    case AT_FIELD_SHARE:
    case AT_FIELD_NUMBER:
        /* the shortest text that reads back as the same number */
        for (int digits = 1; digits <= 17; digits++) {
            snprintf(text, size, "%.*g", digits, *(const double *)place);
            if (strtod(text, NULL) == *(const double *)place)
                break;
        }
        break;
    case AT_FIELD_SWITCH:
        snprintf(text, size, "%s", *(const bool *)place ? "true" : "false");
        break;
    case AT_FIELD_NAME:
        snprintf(text, size, "%s", (const char *)place);
        break;
    }
}

bool at_model_guided(const at_model_settings *settings, int *layer, int *head)
{
    int used = 0;
    return sscanf(settings->guided_head, "%d.%d%n", layer, head, &used) == 2 && !settings->guided_head[used] &&
           *layer > 0 && *head > 0;
}

/* The word NAME, or NAME=VALUE whose value is wanted, among blank-separated words; NULL if it is not there. */
static const char *find_word(const char *words, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = words; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strncmp(at, name, length) == 0 && (at[length] == '\0' || at[length] == ' ' || at[length] == '='))
            return at + length;
    return NULL;
}

bool at_model_uses(const at_model_kind *kind, const char *field)
{
    return find_word(kind->fields, field) != NULL;
}

static bool is_empty(const at_model_settings *settings, const at_field *field)
{
    const char *place = (const char *)settings + field->offset;
    switch (field->type) {
    case AT_FIELD_NAME:
        return !*place;
    case AT_FIELD_COUNT:
        return *(const int64_t *)place == 0;
    case AT_FIELD_SHARE:
    case AT_FIELD_NUMBER:
        return *(const double *)place == 0;
    case AT_FIELD_SWITCH:
        break;
    }
    return !*(const bool *)place;
}

bool at_model_says(const at_model_settings *settings, const at_model_kind *kind, const at_field *field)
{
    if (field == &fields[find_field("ffn-dropout")]) /* which may be 0 where --dropout is not */
        return at_model_uses(kind, field->name) && settings->ffn_dropout != settings->dropout;
    const bool may_be_empty = field->type == AT_FIELD_NAME || !*field->standard;
    const bool empty = may_be_empty && is_empty(settings, field);
    return field == &fields[0] || (!empty && at_model_uses(kind, field->name));
}

/* The kind's own default if it has one, else the table's. */
static void default_of(const at_model_kind *kind, const at_field *field, char *text, size_t size)
{
    const char *own = find_word(kind->defaults, field->name);
    if (own && *own == '=')
        snprintf(text, size, "%.*s", (int)strcspn(own + 1, " "), own + 1);
    else
        snprintf(text, size, "%s", field->standard);
}

const at_model_kind *at_model_kind_find(const char *name, at_error *error)
{
    const char *names[16];
    int count = 0;
    for (; at_model_kind_at(count) && count < 16; count++) {
        names[count] = at_model_kind_at(count)->name;
        if (strcmp(names[count], name) == 0)
            return at_model_kind_at(count);
    }
    char shown[AT_SHOWN], near[160];
    at_suggest(name, names, count, near, sizeof near);
    at_fail(error, AT_FAILED, "there is no model '%s'%s", at_shown(name, shown, sizeof shown), near);
    return NULL;
}

bool at_model_settings_complete(at_model_settings *settings, uint64_t given, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    if (!settings->model[0])
        set_value(settings, &fields[0], fields[0].standard, error);
    const at_model_kind *kind = at_model_kind_find(settings->model, error);
    const int reset = find_field("reset");
    for (int i = 1; kind && i < FIELDS; i++) {
        const at_field *field = &fields[i];
        const bool named = given >> i & 1, uses = at_model_uses(kind, field->name);
        if (i == reset && !named && strcmp(settings->cell, "gru") != 0)
            continue; /* it stays empty: the cell has none */
        char text[64];
        if (named && !uses)
            return at_fail(error, AT_FAILED, "model '%s' does not use --%s", kind->name, field->name);
        default_of(kind, field, text, sizeof text);
        if (uses && !named && *text && is_empty(settings, field) && !set_value(settings, field, text, error))
            return false;
    }
    if (kind && !(given >> find_field("ffn-dropout") & 1) && at_model_uses(kind, "ffn-dropout"))
        settings->ffn_dropout = settings->dropout;
    at_attention attention;
    at_cell_kind cell;
    if (!kind || (at_model_uses(kind, "cell") && !at_cell_kind_parse(settings, &cell, error)))
        return false;
    if (given >> reset & 1 && strcmp(settings->cell, "gru") != 0)
        return at_fail(error, AT_FAILED, "--reset is for --cell gru only, and the cell is '%s'", settings->cell);
    return at_model_attention(settings, kind, &attention, error);
}
