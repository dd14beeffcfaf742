/* The settings of a model: one table, from which come the options of training, the keys of a model file, the defaults
 * and every error message. */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "models/kinds.h"

/* Every setting of a model is part of a run's identity. */
#define ROW(type_, name_, member_, ...)                                                                                \
    {                                                                                                                  \
        .type = AT_SETTING_##type_, .name = name_, .offset = offsetof(at_model_settings, member_),                     \
        .size = sizeof(((at_model_settings *)0)->member_), .group = "The model", .resume = AT_RESUME_SAME, __VA_ARGS__ \
    }
#define NAME(name_, member_, ...)   ROW(NAME, name_, member_, .argument = "NAME", __VA_ARGS__)
#define CHOICE(name_, member_, ...) ROW(CHOICE, name_, member_, .argument = "NAME", .choices = __VA_ARGS__)
#define UNITS(name_, member_, ...)  ROW(COUNT, name_, member_, .argument = "N", .least = 1, .most = 1 << 20, __VA_ARGS__)
#define LAYERS(name_, member_, ...) ROW(COUNT, name_, member_, .argument = "N", .least = 1, .most = 32, __VA_ARGS__)
#define SHARE(name_, member_, ...)                                                                                     \
    ROW(NUMBER, name_, member_, .argument = "SHARE", .most = 1, .limits = AT_BELOW_MOST, __VA_ARGS__)
/* A switch that is off is turned on by its name alone; one that is on needs a value. */
#define OFF(name_, member_, ...) ROW(SWITCH, name_, member_, .fallback = "false", __VA_ARGS__)
#define ON(name_, member_, ...)  ROW(SWITCH, name_, member_, .argument = "true|false", .fallback = "true", __VA_ARGS__)

/* The names of the enums of model.h, by value. */
static const char *const cells[] = {"", "rnn", "gru", "lstm", NULL};
static const char *const resets[] = {"", "before", "after", "after-bias", NULL};
static const char *const activations[] = {"", "relu", "gelu", "swish", NULL};
static const char *const norms[] = {"", "post", "pre", NULL};
static const char *const final_norms[] = {"", "auto", "true", "false", NULL};
static const char *const layouts[] = {"", "interleaved", "halves", NULL};
static const char *const outputs[] = {"", "tanh", "linear", NULL};
static const char *const channels[] = {"", "1", "3", NULL};
static const char *const denominators[] = {"", "half", "half-1", NULL};

static const char *const hard_trainings[] = {"", "reinforce", "exact", NULL};

static const char *model_name(int index)
{
    const at_model_kind *kind = at_model_kind_at(index);
    return kind ? kind->name : NULL;
}

static const at_setting rows[] = {
    NAME("model", model, .value_at = model_name, .fallback = "bahdanau",
         .help = "which model; `attend list models` shows them"),
    CHOICE("cell", cell, cells, .fallback = "gru", .help = "the recurrent cell: rnn, gru or lstm"),
    CHOICE("reset", reset, resets, .fallback = "before",
           .help = "gru: reset the state before or after the product with U; after-bias: after it and a bias of its "
                   "own, as in "
                   "PyTorch"),
    LAYERS("layers", layers, .fallback = "1",
           .help = "layers of encoder and decoder each; at most 4 in a recurrent model"),
    UNITS("embedding", embedding, .fallback = "256", .help = "size of the embeddings"),
    UNITS("hidden", hidden, .fallback = "256",
          .help = "size of a recurrent state, or of a transformer's layers (its d)"),
    UNITS("attention", attention, .fallback = "256", .help = "size A inside the additive score and local-p"),
    UNITS("maxout", maxout, .fallback = "256", .help = "size of the maxout layer before the output"),
    SHARE("dropout", dropout, .fallback = "0", .help = "dropout probability"),
    SHARE("attention-dropout", attention_dropout, .help = "dropout probability of the attention weights (default: 0)"),
    SHARE("ffn-dropout", ffn_dropout,
          .help = "dropout probability inside a transformer's feed-forward layers (default: that of `dropout`)"),
    NAME("score", score, .fallback = "additive", .axis = "score", .alias = {"concat", "additive"},
         .help = "how the score of a query and a key is computed"),
    NAME("normaliser", normaliser, .fallback = "softmax", .axis = "normaliser", .help = "how scores become weights"),
    NAME("window", window, .fallback = "global", .axis = "window", .help = "which positions attention may see"),
    NAME("position", position, .fallback = "none", .axis = "position", .also = {"sinusoidal", "learned"},
         .help = "positions inside attention; in a transformer also sinusoidal or learned, added to the embeddings"),
    UNITS("heads", heads, .fallback = "1", .help = "attention heads"),
    OFF("input-feeding", input_feeding, .help = "feed the attentional state into the next decoder step"),
    /* Without a default, a model without a gate says nothing of it, like those written before there were gates. One model
     * has it on, so that it also takes a value. */
    ROW(SWITCH, "gate", gate, .argument = "[true|false]", .implied = "true",
        .help = "scale the context by a gate, sigmoid(w_b h + b), of the state that attention is asked with"),
    CHOICE("hard-training", hard_training, hard_trainings,
           .help =
               "normaliser hard: reinforce samples a source unit, exact sums the probabilities of the next target unit "
               "over all source units, which is for small target vocabularies such as letters (default: reinforce)"),
    ROW(COUNT, "coverage", coverage, .argument = "N", .most = 4096,
        .help = "score additive: N filters over the sum of past weights, whose output is added to the keys, so that "
                "attention knows where it has been (default: 0, none)"),
    ROW(COUNT, "coverage-width", coverage_width, .argument = "N", .least = 1, .most = 31,
        .help = "size of the window of these filters, an odd number (default: 5)"),
    UNITS("features", features, .help = "the source is an array of features [pictures, cells, N] in place of pictures"),
    NAME("conv", conv, .fallback = "16x5s2,32x3,64x3s2,64x3",
         .help = "the convolutions of pictures: channels x window, s: stride, p: max-pooling, r: plus the layer's "
                 "input, as in 16x5s2,32x3p2,32x3r"),
    NAME("image-size", image_size, .fallback = "keep",
         .help =
             "every picture is scaled to this size: 40x60 (height x width); 40x or x60: in proportion; keep: as it is"),
    CHOICE("image-channels", image_channels, channels, .fallback = "3", .help = "grey (1) or colour (3)"),
    UNITS("start-layer", start_layer, .help = "relu units between the mean of the cells and the decoder's first state"),
    CHOICE(
        "deep-output", deep_output, outputs, .fallback = "tanh",
        .help =
            "what is applied to the sum before the output layer: tanh, as in the authors' code, or nothing (linear)"),
    OFF("bidirectional", bidirectional, .help = "a bidirectional encoder, half the units in each direction"),
    UNITS("ffn", ffn, .fallback = "1024", .help = "inner size of a transformer's feed-forward layers"),
    UNITS("kv-heads", kv_heads, .help = "heads of keys and values, each shared by a group of query heads"),
    LAYERS("decoder-layers", decoder_layers, .help = "layers of the decoder (default: as many as `layers`)"),
    CHOICE("activation", activation, activations, .fallback = "relu",
           .help = "of the feed-forward layers: relu, gelu or swish"),
    CHOICE("norm", norm, norms, .fallback = "post",
           .help = "layer norm after each sub-layer (post) or before it (pre)"),
    ROW(NUMBER, "norm-epsilon", norm_epsilon, .argument = "NUMBER", .most = 1e9, .limits = AT_BELOW_MOST,
        .fallback = "1e-05", .help = "added to the variance in layer norm"),
    CHOICE("final-norm", final_norm, final_norms, .fallback = "auto",
           .help = "a layer norm after the last layer; auto: only with `norm` pre"),
    UNITS("positions", positions, .fallback = "512", .help = "rows in the table of `position` learned"),
    CHOICE("position-layout", position_layout, layouts, .fallback = "interleaved",
           .help = "sines and cosines of `position` sinusoidal: interleaved or halves"),
    CHOICE("position-denominator", position_denominator, denominators, .fallback = "half",
           .help = "what divides their exponents: half of `hidden` (half), or one less (half-1)"),
    ROW(NUMBER, "first-position", first_position, .argument = "NUMBER", .most = 1e9, .limits = AT_BELOW_MOST | AT_WHOLE,
        .fallback = "0", .help = "the position of the first unit"),
    ON("scale-embedding", scale_embedding, .help = "multiply the embeddings by the square root of `hidden`"),
    ON("tie", tie, .help = "the output layer shares its matrix with the target embeddings"),
    OFF("share-embeddings", share_embeddings, .help = "one embedding table for both sides"),
    OFF("output-bias", output_bias, .help = "a bias in the output layer"),
    NAME("encoder-attention", encoder_attention,
         .help =
             "score, normaliser, window and position of the encoder's self-attention, as in scaled,sliding:8,shaw:16"),
    NAME("decoder-attention", decoder_attention, .help = "the same for the decoder's self-attention"),
    NAME("cross-attention", cross_attention, .help = "the same for the decoder's attention to the source"),
    NAME("guided-head", guided_head,
         .help =
             "the head that `guided-alignment` trains, as LAYER.HEAD (default: the first of the last layer but one)"),
};
enum { ROWS = sizeof rows / sizeof *rows };
_Static_assert(ROWS <= (int)AT_MOST_MODEL_SETTINGS, "there are more rows than the limit of model.h");

const at_setting *at_model_setting(int index)
{
    return index >= 0 && index < ROWS ? &rows[index] : NULL;
}

bool at_model_set(at_model_settings *settings, at_given *given, const char *name, const char *text, at_error *error)
{
    const int index = error->code == AT_OK ? at_setting_expect(at_model_setting, name, error) : -1;
    if (index < 0)
        return false;
    given->row[index] = true;
    return at_setting_parse(&rows[index], NULL, text, settings, error);
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
    return find_word(kind->fields, field);
}

bool at_model_says(const at_model_settings *settings, const at_model_kind *kind, const at_setting *row)
{
    if (row->offset == offsetof(at_model_settings, model))
        return true;
    if (row->offset == offsetof(at_model_settings, ffn_dropout)) /* which may be 0 where dropout is not */
        return at_model_uses(kind, row->name) && settings->ffn_dropout != settings->dropout;
    const bool may_be_empty = row->type == AT_SETTING_NAME || row->type == AT_SETTING_CHOICE || !row->fallback;
    char own[64]; /* where the kind has a default of its own, 0 is not what a file without the setting means */
    return at_model_uses(kind, row->name) &&
           !(may_be_empty && at_setting_is_zero(row, settings) && !at_model_own_default(kind, row, own, sizeof own));
}

bool at_model_own_default(const at_model_kind *kind, const at_setting *row, char *text, size_t size)
{
    const char *own = find_word(kind->defaults, row->name);
    if (own && *own == '=')
        snprintf(text, size, "%.*s", (int)strcspn(own + 1, " "), own + 1);
    return own && *own == '=';
}

void at_model_default(const at_model_kind *kind, const at_setting *row, char *text, size_t size)
{
    if (!at_model_own_default(kind, row, text, size))
        snprintf(text, size, "%s", row->fallback ? row->fallback : "");
}

const at_model_kind *at_model_kind_find(const char *name, at_error *error)
{
    enum { MOST = 16 };
    const char *names[MOST];
    int count = 0;
    for (; at_model_kind_at(count) && count < MOST; count++) {
        names[count] = at_model_kind_at(count)->name;
        if (strcmp(names[count], name) == 0)
            return at_model_kind_at(count);
    }
    char shown[AT_SHOWN];
    if (strpbrk(name, "./"))
        at_fail(error, AT_USAGE,
                "`model` is a kind of model, such as transformer, not '%s'; the file to write is `output`",
                at_shown(name, shown, sizeof shown));
    at_unknown("model", name, names, count, error);
    return NULL;
}

/* The window of coverage, which a model without coverage says nothing of. */
static bool fill_in_coverage(at_model_settings *settings, const at_given *given, at_error *error)
{
    enum { USUAL = 5 };
    const bool width = given->row[at_setting_find(at_model_setting, "coverage-width")];
    if (settings->coverage == 0 && width)
        return at_fail(error, AT_USAGE, "`coverage-width` is the window of `coverage`, which is not given");
    if (settings->coverage > 0 && settings->coverage_width == 0)
        settings->coverage_width = USUAL;
    return true;
}

/* Has no effect if the source is features. The row of `features` comes before these. */
static bool is_of_pictures(const at_setting *row)
{
    return row->offset == offsetof(at_model_settings, conv) || row->offset == offsetof(at_model_settings, image_size) ||
           row->offset == offsetof(at_model_settings, image_channels);
}

/* Fills in what was not given, and refuses what the kind does not use. */
static bool fill_in(at_model_settings *settings, const at_model_kind *kind, const at_given *given, at_error *error)
{
    for (int i = 1; i < ROWS; i++) {
        const bool uses = at_model_uses(kind, rows[i].name);
        char text[64];
        if (given->row[i] && !uses)
            return at_fail(error, AT_USAGE, "model '%s' does not use `%s`", kind->name, rows[i].name);
        if (rows[i].offset == offsetof(at_model_settings, reset) && settings->cell != AT_GRU) {
            if (given->row[i])
                return at_fail(error, AT_USAGE, "`reset` is for `cell` gru only, and the cell is '%s'",
                               cells[settings->cell]);
            settings->reset = AT_RESET_UNSET; /* the cell has no reset gate */
            continue;
        }
        if (settings->features && uses && is_of_pictures(&rows[i])) {
            if (given->row[i])
                return at_fail(error, AT_USAGE, "`%s` is for pictures, and the source is `features`", rows[i].name);
            continue;
        }
        at_model_default(kind, &rows[i], text, sizeof text);
        if (uses && !given->row[i] && *text && at_setting_is_zero(&rows[i], settings) &&
            !at_setting_parse(&rows[i], NULL, text, settings, error))
            return false;
    }
    return true;
}

bool at_model_settings_complete(at_model_settings *settings, const at_given *given, at_error *error)
{
    static const at_given none = {0};
    const at_given *g = given ? given : &none;
    if (error->code != AT_OK)
        return false;
    if (!settings->model[0])
        at_setting_parse(&rows[0], NULL, rows[0].fallback, settings, error);
    const at_model_kind *kind = at_model_kind_find(settings->model, error);
    if (!kind || !fill_in(settings, kind, g, error))
        return false;
    if (!g->row[at_setting_find(at_model_setting, "ffn-dropout")] && at_model_uses(kind, "ffn-dropout"))
        settings->ffn_dropout = settings->dropout;
    at_attention attention;
    if (!fill_in_coverage(settings, g, error) || !at_model_attention(settings, kind, &attention, error))
        return false;
    if (settings->hard_training == AT_HARD_REINFORCE) /* the default; a model says nothing of it, as older ones do */
        settings->hard_training = AT_HARD_UNSET;
    return true;
}
