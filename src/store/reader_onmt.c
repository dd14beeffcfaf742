/* Checkpoints of OpenNMT-py (.pt): recurrent models with Luong's attention, and Transformers. The file is a dictionary with
 * `model` and `generator`, arrays by name, `vocab` and `opt`. Weights are [out,in]; the rows of an LSTM are i f g o. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/imported_internal.h"
#include "store/onmt_internal.h"
#include "store/readers_internal.h"

/* ---- Words ---------------------------------------------------------------------------------------------------- */

/* The list of words of a side: in a list of pairs, a list, or the `itos` of an object. */
static const at_pickled *words_of(const at_pickled *vocab, const char *side)
{
    const at_pickled *value = at_pickled_get(vocab, side);
    for (uint32_t i = 0; vocab && vocab->kind == AT_PICKLED_LIST && i < vocab->count && !value; i++) {
        const at_pickled *pair = vocab->item[i];
        const char *name = pair->kind == AT_PICKLED_LIST && pair->count == 2 ? at_pickled_text(pair->item[0]) : NULL;
        if (name && strcmp(name, side) == 0)
            value = pair->item[1];
    }
    /* From version 1 on a field, or a field of several, with a vocabulary in it. */
    const at_pickled *fields = at_pickled_get(value, "fields");
    if (fields && fields->kind == AT_PICKLED_LIST && fields->count > 0 && fields->item[0]->kind == AT_PICKLED_LIST &&
        fields->item[0]->count == 2)
        value = fields->item[0]->item[1];
    if (at_pickled_get(value, "vocab"))
        value = at_pickled_get(value, "vocab");
    return value && value->kind == AT_PICKLED_LIST ? value : at_pickled_get(value, "itos");
}

static bool read_side(at_onmt *m, const char *side, int64_t rows, at_row_ids *ids)
{
    static const at_row_specials specials = {.pad = "<blank>", .unknown = "<unk>", .begin = "<s>", .end = "</s>"};
    const at_pickled *list = words_of(at_pickled_get(m->root, "vocab"), side);
    at_row_names names = {0};
    if (!list || list->kind != AT_PICKLED_LIST || (int64_t)list->count > rows)
        return at_fail(m->in.error, AT_FORMAT, "'%s' has no list of the words of '%s' that fits its %lld embeddings",
                       m->in.path, side, (long long)rows);
    names.name = calloc((size_t)list->count + 1, sizeof *names.name);
    bool done = names.name;
    for (uint32_t i = 0; done && i < list->count; i++) {
        const char *word = at_pickled_text(list->item[i]);
        names.name[names.count++] = word ? strdup(word) : NULL;
        done = !word || names.name[i];
    }
    done = done ? at_row_ids_make(&names, rows, &specials, ids, m->in.error)
                : at_no_memory(m->in.error, "the words of '%s'", m->in.path);
    at_row_names_free(&names);
    return done;
}

static bool read_words(at_onmt *m, int64_t source_rows, int64_t target_rows)
{
    if (!read_side(m, "src", source_rows, &m->source) || !read_side(m, "tgt", target_rows, &m->target))
        return false;
    return (m->target.row[AT_BEGIN] >= 0 && m->target.row[AT_END] >= 0) ||
           at_fail(m->in.error, AT_FORMAT, "the words of '%s' lack <s> or </s>", m->in.path);
}

/* ---- The recurrent kind --------------------------------------------------------------------------------------- */

/* A cell's matrices OURS.W, OURS.U, OURS.b from theirs, whose names end in SUFFIX; `fed`: the first layer of a decoder,
 * whose W also has the columns of the state fed back. */
static bool put_cell(at_import *in, const char *ours, const char *theirs, const char *suffix, bool fed)
{
    static const char *const kinds[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    const char *const own[] = {"W", "U", "b", in->settings.cell == AT_GRU ? "recurrent.b" : "b"};
    const bool lstm = in->settings.cell == AT_LSTM;
    char our[100], their[120];
    for (int i = 0; i < 4; i++) {
        at_import_name(our, sizeof our, "%s.%s", ours, own[i]);
        at_import_name(their, sizeof their, "%s.%s%s", theirs, kinds[i], suffix);
        const at_shape shape = at_params_shape(in->params, at_params_find(in->params, our));
        const int64_t rows = shape.dim[0], H = rows / 4;
        const int64_t columns = i == 0 && fed ? shape.dim[1] + in->settings.hidden : 0;
        at_import_part part = {.ours = our, .theirs = their, .columns = columns, .adds = i == 3, .count = rows};
        if (!lstm && !at_import_put(in, &part))
            return false;
        /* i f from rows 0, o from 3H, g from 2H */
        const int64_t moves[3][3] = {{0, 0, 2 * H}, {2 * H, 3 * H, H}, {3 * H, 2 * H, H}};
        for (int k = 0; lstm && k < 3; k++) {
            part.row = moves[k][0], part.from = moves[k][1], part.count = moves[k][2];
            if (!at_import_put(in, &part))
                return false;
        }
    }
    return true;
}

/* F h~, the columns of the first layer after those of the embedding, with the gates in our order. */
static bool put_feed(at_import *in, const char *theirs)
{
    const int64_t H = in->settings.hidden, E = in->settings.embedding;
    const bool lstm = in->settings.cell == AT_LSTM;
    const int64_t moves[3][3] = {{0, 0, 2 * H}, {2 * H, lstm ? 3 * H : 2 * H, H}, {3 * H, 2 * H, H}};
    for (int k = 0; k < (lstm ? 3 : 2); k++)
        if (!at_import_put(in, &(at_import_part){.ours = "decoder.feed.W",
                                                 .theirs = theirs,
                                                 .row = moves[k][0],
                                                 .from = moves[k][1],
                                                 .count = moves[k][2],
                                                 .column = E,
                                                 .columns = E + H}))
            return false;
    return true;
}

static bool put_recurrent(at_onmt *m, const char *source_E, const char *target_E)
{
    at_import *in = &m->in;
    const at_model_settings *s = &in->settings;
    char ours[60], suffix[20], theirs[60];
    for (int64_t l = 0; l < s->layers; l++) {
        for (int back = 0; back < 1 + s->bidirectional; back++) {
            at_import_name(ours, sizeof ours, "encoder.%lld%s", (long long)l + 1,
                           !s->bidirectional ? ""
                           : back            ? ".backward"
                                             : ".forward");
            at_import_name(suffix, sizeof suffix, "_l%lld%s", (long long)l, back ? "_reverse" : "");
            if (!put_cell(in, ours, "encoder.rnn", suffix, false))
                return false;
        }
        at_import_name(ours, sizeof ours, "decoder.%lld", (long long)l + 1);
        at_import_name(suffix, sizeof suffix, "_l%lld", (long long)l);
        at_import_name(theirs, sizeof theirs, "decoder.rnn.layers.%lld", (long long)l);
        if (!put_cell(in, ours, s->input_feeding ? theirs : "decoder.rnn", s->input_feeding ? "" : suffix,
                      s->input_feeding && l == 0))
            return false;
    }
    return (!s->input_feeding || put_feed(in, "decoder.rnn.layers.0.weight_ih")) &&
           (!at_import_has(in, "decoder.attn.linear_in.weight") ||
            at_import_put(in, &(at_import_part){.ours = "attention.W_a",
                                                .theirs = "decoder.attn.linear_in.weight",
                                                .transposed = true})) &&
           at_import_put(in, &(at_import_part){.ours = "output.W_c.W", .theirs = "decoder.attn.linear_out.weight"}) &&
           at_import_rows(in, "source.E", source_E, &m->source, 0) &&
           at_import_rows(in, "target.E", target_E, &m->target, 0) &&
           at_import_rows(in, "output.W_s.W", "0.weight", &m->target, 0) &&
           at_import_rows(in, "output.W_s.b", "0.bias", &m->target, AT_NEVER);
}

static bool set_recurrent(at_onmt *m, const char *target_E)
{
    at_import *in = &m->in;
    const int64_t layers = at_import_count(in, "encoder.rnn.weight_ih_l%d"),
                  fed = at_import_count(in, "decoder.rnn.layers.%d.weight_ih"),
                  plain = at_import_count(in, "decoder.rnn.weight_ih_l%d");
    const at_array *E = at_import_need(in, target_E, 2),
                   *U = E ? at_import_need(in, "encoder.rnn.weight_hh_l0", 2) : NULL,
                   *W = U ? at_import_need(in, "decoder.attn.linear_out.weight", 2) : NULL;
    if (!W)
        return false;
    const int64_t gates = at_import_dim(U, 0) > 0 ? at_import_dim(U, 1) / at_import_dim(U, 0) : 0;
    if (layers == 0 || layers != (fed ? fed : plain) || (gates != 3 && gates != 4))
        return at_fail(
            in->error, AT_UNSUPPORTED,
            "'%s' has layers or cells that this reader does not know: it reads as many LSTM or GRU layers on "
            "either side",
            in->path);
    return at_import_set(in, "model", "luong") && at_import_set(in, "cell", gates == 4 ? "lstm" : "gru") &&
           (gates == 4 || at_import_set(in, "reset", "after-bias")) &&
           at_import_set_number(in, "layers", (double)layers) &&
           at_import_set_number(in, "embedding", (double)at_import_dim(E, 0)) &&
           at_import_set_number(in, "hidden", (double)at_import_dim(W, 1)) &&
           at_import_set(in, "input-feeding", fed ? "true" : "false") &&
           at_import_set(in, "bidirectional",
                         at_import_has(in, "encoder.rnn.weight_ih_l0_reverse") ? "true" : "false") &&
           at_import_set(in, "score", at_import_has(in, "decoder.attn.linear_in.weight") ? "general" : "dot") &&
           at_import_set(in, "dropout", "0");
}

/* ---- Both kinds ----------------------------------------------------------------------------------------------- */

/* Parts that this reader does not know, by the beginning of their names. */
static bool is_known(const at_onmt *m)
{
    static const char *const foreign[][2] = {
        {"decoder.attn.linear_context", "additive (mlp) attention"},
        {"decoder.attn.linear_cover", "coverage"},
        {"decoder.copy_attn", "a copy mechanism"},
        {"linear_copy", "a copy mechanism"},
        {"encoder.bridge", "a bridge from encoder to decoder"},
        {"encoder.embeddings.emb_luts.1", "features of words"},
        {"encoder.embeddings.make_embedding.emb_luts.1", "features of words"},
        {"encoder.cnn", "a convolutional encoder"},
        {"encoder.transformer.0.self_attn.relative_positions", "relative positions"}};
    for (int i = 0; i < at_tensors_count(m->in.arrays); i++)
        for (size_t k = 0; k < sizeof foreign / sizeof *foreign; k++)
            if (strncmp(at_tensors_name(m->in.arrays, i), foreign[k][0], strlen(foreign[k][0])) == 0)
                return at_fail(m->in.error, AT_UNSUPPORTED, "'%s' has %s, which this reader does not know", m->in.path,
                               foreign[k][1]);
    return true;
}

/* The table of embeddings of a side, by its older or newer name. */
static const char *table_of(const at_import *in, const char *older, const char *newer)
{
    return at_import_has(in, older) ? older : newer;
}

static bool load_parts(at_translator *t, at_onmt *m)
{
    at_import *in = &m->in;
    const char *source_E = table_of(in, "encoder.embeddings.emb_luts.0.weight",
                                    "encoder.embeddings.make_embedding.emb_luts.0.weight"),
               *target_E = table_of(in, "decoder.embeddings.emb_luts.0.weight",
                                    "decoder.embeddings.make_embedding.emb_luts.0.weight");
    const bool transformer = at_import_has(in, "encoder.transformer.0.self_attn.linear_keys.weight");
    const at_array *source = is_known(m) ? at_import_need(in, source_E, 2) : NULL,
                   *target = source ? at_import_need(in, target_E, 2) : NULL;
    if (!target || !read_words(m, at_import_dim(source, 1), at_import_dim(target, 1)) ||
        !(transformer ? at_onmt_transformer_set(m, target_E) : set_recurrent(m, target_E)))
        return false;
    t->model = at_import_model(in, m->source.units, m->target.units);
    if (!t->model ||
        !(transformer ? at_onmt_transformer_put(m, source_E, target_E) : put_recurrent(m, source_E, target_E)))
        return false;
    at_params_changed(t->model->params);
    t->origin = strdup(transformer ? "OpenNMT-py, Transformer" : "OpenNMT-py, recurrent");
    return t->origin || at_no_memory(in->error, "a description");
}

static bool knows(const char *path, at_error *error)
{
    (void)error;
    return at_is_torch(path);
}

static bool load(at_translator *t, const char *path, at_error *error)
{
    at_torch *torch = at_torch_read(path, error);
    at_tensors *arrays = torch ? at_tensors_new() : NULL;
    at_onmt m = {.root = torch ? at_torch_root(torch) : NULL, .in = {.path = path, .arrays = arrays, .error = error}};
    const at_pickled *generator = at_pickled_get(m.root, "generator");
    if (torch && !at_pickled_get(m.root, "model"))
        at_fail(error, AT_UNSUPPORTED,
                "'%s' is a file of PyTorch, but not a checkpoint of OpenNMT-py: it lacks 'model'", path);
    const bool done = arrays && error->code == AT_OK &&
                      at_torch_add(torch, at_pickled_get(m.root, "model"), arrays, error) &&
                      (!generator || at_torch_add(torch, generator, arrays, error)) && load_parts(t, &m);
    t->source = m.source.vocabulary;
    t->target = m.target.vocabulary;
    m.source.vocabulary = m.target.vocabulary = NULL;
    at_row_ids_free(&m.source);
    at_row_ids_free(&m.target);
    at_tensors_free(arrays);
    at_torch_free(torch);
    return done;
}

const at_reader at_reader_onmt = {.name = "opennmt-py", .formats = ".pt", .knows = knows, .load = load};
