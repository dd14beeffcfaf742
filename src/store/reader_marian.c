/* Models of Marian: FILE.npz, or a folder with decoder.yml or model.npz. The settings are YAML inside the .npz
 * (special:model.yml); decoder.yml or FILE.npz.yml names the vocabularies. Weights are [in, out]. The source ends with
 * </s>, and the decoder begins with an embedding of zeros. Transformers are read here, recurrent models in marian_s2s.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/utf8.h"
#include "store/marian_internal.h"
#include "store/readers_internal.h"

#define SETTINGS "special:model.yml"

/* ---- Settings ------------------------------------------------------------------------------------------------- */

const char *at_marian_text(const at_marian *m, const char *name)
{
    const char *text = json_string_value(json_object_get(m->settings, name));
    return text ? text : "";
}

int64_t at_marian_number(const at_marian *m, const char *name, int64_t fallback)
{
    const char *text = at_marian_text(m, name);
    return *text ? strtoll(text, NULL, 10) : fallback;
}

bool at_marian_true(const at_marian *m, const char *name)
{
    return strcmp(at_marian_text(m, name), "true") == 0;
}

bool at_marian_refuse(const at_marian *m, const char *setting)
{
    char shown[AT_SHOWN];
    return at_fail(m->in.error, AT_UNSUPPORTED, "'%s' has '%s: %s', which this reader of Marian's models does not know",
                   m->in.path, setting, at_shown(at_marian_text(m, setting), shown, sizeof shown));
}

/* The settings that must be what they usually are; a missing one is. */
static bool is_usual(const at_marian *m)
{
    static const char *const usual[][2] = {{"transformer-decoder-autoreg", "self-attention"},
                                           {"transformer-ffn-depth", "2"},
                                           {"transformer-decoder-ffn-depth", "0"},
                                           {"transformer-decoder-dim-ffn", "0"},
                                           {"transformer-no-projection", "false"},
                                           {"transformer-no-bias", "false"},
                                           {"transformer-no-affine", "false"},
                                           {"transformer-disable-position-embeddings", "false"},
                                           {"transformer-attention-mask", "default"},
                                           {"lemma-dim-emb", "0"},
                                           {"factors-dim-emb", "0"},
                                           {"right-left", "false"},
                                           {"ulr", "false"}};
    static const char *const lists[] = {"input-types", "transformer-tied-layers"};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        const char *is = at_marian_text(m, usual[i][0]);
        if (*is && strcmp(is, usual[i][1]) != 0)
            return at_marian_refuse(m, usual[i][0]);
    }
    for (int i = 0; i < 2; i++)
        if (json_array_size(json_object_get(m->settings, lists[i])) > 0)
            return at_marian_refuse(m, lists[i]);
    return true;
}

/* What is done around a sub-layer: d dropout, a add, n norm. */
static bool set_norms(at_marian *m)
{
    const char *before = at_marian_text(m, "transformer-preprocess"),
               *after = at_marian_text(m, "transformer-postprocess"),
               *top = at_marian_text(m, "transformer-postprocess-top"),
               *embedded = at_marian_text(m, "transformer-postprocess-emb");
    const bool pre = strchr(before, 'n'), post = strchr(after, 'n');
    if (strspn(before, "dn") != strlen(before))
        return at_marian_refuse(m, "transformer-preprocess");
    if (strspn(after, "dan") != strlen(after) || !strchr(after, 'a') || pre == post ||
        (post && strchr(after, 'n') < strchr(after, 'a')))
        return at_marian_refuse(m, "transformer-postprocess");
    if (strspn(top, "dn") != strlen(top))
        return at_marian_refuse(m, "transformer-postprocess-top");
    if (strchr(embedded, 'n'))
        return at_marian_refuse(m, "transformer-postprocess-emb");
    return at_import_set(&m->in, "norm", pre ? "pre" : "post") &&
           at_import_set(&m->in, "final-norm", strchr(top, 'n') ? "true" : "false");
}

static bool set_positions(at_marian *m)
{
    const at_array *learned = at_tensors_get(m->in.arrays, "Wpos");
    if (learned)
        return at_import_set(&m->in, "position", "learned") &&
               at_import_set_number(&m->in, "positions", (double)at_import_dim(learned, 1));
    return at_import_set(&m->in, "position", "sinusoidal") && at_import_set(&m->in, "position-layout", "halves") &&
           at_import_set(&m->in, "position-denominator", "half-1") && at_import_set(&m->in, "first-position", "0");
}

/* ---- The Transformer ------------------------------------------------------------------------------------------ */

/* Where the embeddings and the output layer are. */
typedef struct matrices {
    const char *source, *target; /* E */
    const char *output;          /* NULL: the target's E */
    bool transposed;             /* the output's is [in,out] */
    const char *bias;            /* NULL: none */
} matrices;

static matrices find_matrices(const at_marian *m)
{
    const bool one = at_import_has(&m->in, "Wemb");
    matrices x = {one ? "Wemb" : "encoder_Wemb", one ? "Wemb" : "decoder_Wemb", NULL, false, NULL};
    if (at_import_has(&m->in, "decoder_ff_logit_out_Wt"))
        x.output = "decoder_ff_logit_out_Wt";
    else if (at_import_has(&m->in, "decoder_ff_logit_out_W"))
        x.output = "decoder_ff_logit_out_W", x.transposed = true;
    if (at_import_has(&m->in, "decoder_ff_logit_out_b"))
        x.bias = "decoder_ff_logit_out_b";
    return x;
}

static bool set_transformer(at_marian *m, const matrices *x)
{
    at_import *in = &m->in;
    const at_array *E = at_import_need(in, x->target, 2), *ffn = at_import_need(in, "encoder_l1_ffn_W1", 2);
    const char *activation = at_marian_text(m, "transformer-ffn-activation");
    if (!E || !ffn)
        return false;
    if (*activation && strcmp(activation, "swish") != 0 && strcmp(activation, "relu") != 0)
        return at_marian_refuse(m, "transformer-ffn-activation");
    return at_import_set(in, "model", "transformer") &&
           at_import_set_number(in, "layers", (double)at_marian_number(m, "enc-depth", 6)) &&
           at_import_set_number(in, "decoder-layers", (double)at_marian_number(m, "dec-depth", 6)) &&
           at_import_set_number(in, "hidden", (double)at_import_dim(E, 0)) &&
           at_import_set_number(in, "ffn", (double)at_import_dim(ffn, 0)) &&
           at_import_set_number(in, "heads", (double)at_marian_number(m, "transformer-heads", 8)) &&
           at_import_set(in, "activation", *activation ? activation : "swish") &&
           at_import_set(in, "norm-epsilon", "1e-6") && at_import_set(in, "scale-embedding", "true") &&
           at_import_set(in, "output-bias", "true") && at_import_set(in, "tie", x->output ? "false" : "true") &&
           at_import_set(in, "share-embeddings", strcmp(x->source, x->target) == 0 ? "true" : "false") &&
           set_norms(m) && set_positions(m);
}

/* OURS.g and OURS.b from THEIRS_ln_scale and THEIRS_ln_bias, with _pre at the end in pre-norm. */
static bool put_norm(at_import *in, const char *ours, const char *theirs, const char *end)
{
    char our[100], their[120];
    for (int bias = 0; bias < 2; bias++) {
        at_import_name(our, sizeof our, "%s.%s", ours, bias ? "b" : "g");
        at_import_name(their, sizeof their, "%s_ln_%s%s", theirs, bias ? "bias" : "scale", end);
        if (!at_import_put(in, &(at_import_part){.ours = our, .theirs = their}))
            return false;
    }
    return true;
}

static const at_import_names layer_names = {"%s_W%s", "%s_b%s", true, {"q", "k", "v", "o"}};

static bool put_stack(at_import *in, const char *side, int64_t layers, bool crosses, bool pre)
{
    const char *end = pre ? "_pre" : "";
    char ours[60], theirs[60], part[80], their[80];
    for (int64_t l = 1; l <= layers; l++) {
        at_import_name(ours, sizeof ours, "%s.%lld", side, (long long)l);
        at_import_name(theirs, sizeof theirs, "%s_l%lld", side, (long long)l);
        int norm = 0;
        for (int i = 0; i < 1 + crosses; i++) {
            at_import_name(part, sizeof part, "%s.%s", ours, i ? "cross" : "self");
            at_import_name(their, sizeof their, "%s_%s", theirs, i ? "context" : "self");
            if (!at_import_attention(in, &layer_names, part, their, i))
                return false;
            at_import_name(part, sizeof part, "%s.norm%d", ours, ++norm);
            at_import_name(their, sizeof their, "%s_%s_Wo", theirs, i ? "context" : "self");
            if (!put_norm(in, part, their, end))
                return false;
        }
        at_import_name(their, sizeof their, "%s_ffn", theirs);
        at_import_name(part, sizeof part, "%s.ffn.inner", ours);
        if (!at_import_layer(in, &layer_names, part, 0, their, "1"))
            return false;
        at_import_name(part, sizeof part, "%s.ffn.outer", ours);
        if (!at_import_layer(in, &layer_names, part, 0, their, "2"))
            return false;
        at_import_name(part, sizeof part, "%s.norm%d", ours, ++norm);
        at_import_name(their, sizeof their, "%s_ffn_ffn", theirs);
        if (!put_norm(in, part, their, end))
            return false;
    }
    at_import_name(part, sizeof part, "%s.norm", side);
    at_import_name(their, sizeof their, "%s_top", side);
    at_import_name(ours, sizeof ours, "%s.norm.g", side);
    return at_params_find(in->params, ours) < 0 || put_norm(in, part, their, "");
}

static bool put_output(at_marian *m, const matrices *x)
{
    at_import *in = &m->in;
    if (x->output && !(x->transposed ? at_import_columns(in, "output.W", x->output, &m->target)
                                     : at_import_rows(in, "output.W", x->output, &m->target, 0)))
        return false;
    if (x->bias)
        return at_import_rows(in, "output.b", x->bias, &m->target, AT_NEVER);
    at_import_no_bias(in, "output.b", &m->target);
    return true;
}

static bool put_transformer(at_marian *m, const matrices *x)
{
    at_import *in = &m->in;
    const at_model_settings *s = &in->settings;
    const bool pre = s->norm == AT_PRE_NORM, learned = at_import_has(in, "Wpos");
    return at_import_rows(in, "target.E", x->target, &m->target, 0) &&
           (s->share_embeddings || at_import_rows(in, "source.E", x->source, &m->source, 0)) &&
           (!learned || (at_import_put(in, &(at_import_part){.ours = "source.P", .theirs = "Wpos"}) &&
                         at_import_put(in, &(at_import_part){.ours = "target.P", .theirs = "Wpos"}))) &&
           put_output(m, x) && put_stack(in, "encoder", s->layers, false, pre) &&
           put_stack(in, "decoder", s->decoder_layers ? s->decoder_layers : s->layers, true, pre);
}

/* ---- Words ---------------------------------------------------------------------------------------------------- */

static bool ends_in(const char *text, const char *ending)
{
    const size_t length = strlen(text), size = strlen(ending);
    return length > size && strcmp(text + length - size, ending) == 0;
}

/* The words of vocab.yml, "</s>: 0", as rows. */
static bool words_of_yaml(const unsigned char *bytes, size_t size, const char *name, at_row_names *names,
                          at_error *error)
{
    json_t *words = at_yaml_read(bytes, size, name, error), *rows = words ? json_object() : NULL, *value;
    const char *word;
    bool done = rows && json_is_object(words);
    if (words && !json_is_object(words))
        at_fail(error, AT_FORMAT, "'%s' does not give each word its number", name);
    json_object_foreach(words, word, value)
    {
        const char *text = json_string_value(value);
        char *end = "?";
        const long long row = text ? strtoll(text, &end, 10) : -1;
        if (done && (*end || json_object_set_new(rows, word, json_integer(row)) != 0))
            done = at_fail(error, AT_FORMAT, "'%s' does not give each word its number", name);
    }
    done = done && at_row_names_of_json(rows, name, names, error);
    json_decref(rows);
    json_decref(words);
    return done;
}

/* The pieces of a SentencePiece model are its words. */
static bool words_of_pieces(const char *path, at_row_names *names, at_error *error)
{
    at_vocabulary *pieces = at_vocabulary_new(path, error);
    const int64_t count = pieces ? at_vocabulary_size(pieces) - AT_SPECIALS : 0;
    bool done = pieces && (names->name = calloc((size_t)count + 1, sizeof *names->name));
    for (int64_t i = 0; done && i < count; i++) {
        names->name[i] = strdup(at_vocabulary_unit(pieces, (int32_t)(AT_SPECIALS + i)));
        done = names->name[names->count++];
    }
    at_vocabulary_free(pieces);
    return done || at_no_memory(error, "the words of '%s'", path);
}

/* The vocabulary of a side, by the path that the settings have, or by its name alone beside the model. */
static const char *vocabulary_named(const at_marian *m, const char *said)
{
    const char *slash = strrchr(said, '/');
    return at_bundle_has(&m->bundle, said) || !slash ? said : slash + 1;
}

static bool read_side(at_marian *m, const char *said, int64_t rows, at_row_ids *ids)
{
    static const at_row_specials specials = {.unknown = "<unk>", .end = "</s>"};
    at_error *error = m->in.error;
    const char *name = vocabulary_named(m, said);
    size_t size;
    at_row_names names = {0};
    char *path = at_bundle_path(&m->bundle, name, error);
    unsigned char *bytes = path ? at_bundle_read(&m->bundle, name, &size, error) : NULL;
    const bool pieces = ends_in(name, ".spm");
    if (path && !bytes)
        at_fail(error, AT_FILE, "the vocabulary '%s' of '%s' is missing", path, m->in.path);
    bool done = bytes && (pieces                  ? words_of_pieces(path, &names, error)
                          : ends_in(name, ".txt") ? at_row_names_of_text((char *)bytes, size, path, &names, error)
                                                  : words_of_yaml(bytes, size, path, &names, error));
    done = done && at_row_ids_make(&names, rows, &specials, ids, error) &&
           (!pieces || at_row_ids_pieces(ids, &m->bundle, name, false, error));
    if (done && ids->row[AT_END] < 0)
        done = at_fail(error, AT_FORMAT, "'%s' lacks '</s>', which ends a line", path);
    at_row_names_free(&names);
    free(bytes);
    free(path);
    return done;
}

bool at_marian_words(at_marian *m, int64_t source_rows, int64_t target_rows)
{
    const json_t *vocabs = json_object_get(m->decoder, "vocabs");
    const char *source = json_string_value(json_array_get(vocabs, 0)),
               *target = json_string_value(json_array_get(vocabs, json_array_size(vocabs) > 1 ? 1 : 0));
    if (!source || !target || json_array_size(vocabs) > 2)
        return at_fail(m->in.error, AT_FORMAT,
                       "'%s' has no decoder.yml or .yml beside it that names two vocabularies under 'vocabs'",
                       m->in.path);
    if (!read_side(m, source, source_rows, &m->source) || !read_side(m, target, target_rows, &m->target))
        return false;
    at_vocabulary_frame(m->source.vocabulary, false, true);
    return true;
}

/* ---- The record ----------------------------------------------------------------------------------------------- */

static json_t *read_yaml(const at_bundle *bundle, const char *name, at_error *error)
{
    size_t size;
    unsigned char *bytes = at_bundle_read(bundle, name, &size, error);
    json_t *value = bytes ? at_yaml_read(bytes, size, name, error) : NULL;
    free(bytes);
    return value;
}

/* The name of the .npz in the folder; empty: none. */
static void find_model(const at_bundle *bundle, const char *path, char name[256], at_error *error)
{
    const char *slash = strrchr(path, '/');
    name[0] = '\0';
    if (!at_is_folder(path)) {
        snprintf(name, 256, "%s", slash ? slash + 1 : path);
        return;
    }
    json_t *decoder = read_yaml(bundle, "decoder.yml", error);
    const char *said = json_string_value(json_array_get(json_object_get(decoder, "models"), 0));
    snprintf(name, 256, "%s", said ? said : "model.npz");
    json_decref(decoder);
}

/* Opens the folder, and sets the path of the .npz; false: this is no model of Marian. */
static bool find_files(at_marian *m, const char *path, at_error *error)
{
    if (!at_bundle_beside(&m->bundle, path, error))
        return false;
    find_model(&m->bundle, path, m->name, error);
    m->in.path = at_bundle_has(&m->bundle, m->name) ? at_bundle_path(&m->bundle, m->name, error) : NULL;
    return m->in.path;
}

static bool knows(const char *path, at_error *error)
{
    unsigned char start[4];
    at_error unread = {0};
    at_marian m = {0};
    (void)error;
    at_zip *zip = NULL;
    if (find_files(&m, path, &unread) && at_is_zip(start, at_file_begin(m.in.path, start, sizeof start, &unread)))
        zip = at_zip_open(m.in.path, &unread);
    const bool ours = zip && at_zip_find(zip, SETTINGS ".npy") >= 0;
    at_zip_close(zip);
    free((char *)m.in.path);
    at_bundle_close(&m.bundle);
    return ours;
}

static bool read_settings(at_marian *m)
{
    const at_array *text = at_tensors_get(m->in.arrays, SETTINGS);
    char name[300];
    if (!text || text->dtype != AT_U8)
        return at_fail(m->in.error, AT_FORMAT, "'%s' lacks its settings, " SETTINGS, m->in.path);
    const size_t room = (size_t)at_array_count(text), size = strnlen(text->data, room);
    m->settings = at_yaml_read(text->data, size, SETTINGS, m->in.error);
    for (int i = 0; i < 3 && !m->decoder && m->in.error->code == AT_OK; i++) {
        at_import_name(name, sizeof name, "%s%s", i == 0 ? "" : m->name,
                       i == 0   ? "decoder.yml"
                       : i == 1 ? ".decoder.yml"
                                : ".yml");
        m->decoder = read_yaml(&m->bundle, name, m->in.error);
    }
    return m->settings && m->in.error->code == AT_OK;
}

static bool load_transformer(at_translator *t, at_marian *m)
{
    const matrices x = find_matrices(m);
    const at_array *source = is_usual(m) ? at_import_need(&m->in, x.source, 2) : NULL,
                   *target = source ? at_import_need(&m->in, x.target, 2) : NULL;
    if (!target || !at_marian_words(m, at_import_dim(source, 1), at_import_dim(target, 1)) || !set_transformer(m, &x))
        return false;
    t->model = at_import_model(&m->in, m->source.units, m->target.units);
    return t->model && put_transformer(m, &x);
}

static bool load_parts(at_translator *t, at_marian *m)
{
    const char *type = at_marian_text(m, "type");
    at_buffer text = {0};
    if (strcmp(type, "transformer") != 0 && strcmp(type, "s2s") != 0)
        return at_marian_refuse(m, "type");
    bool done = strcmp(type, "s2s") == 0 ? at_marian_s2s(t, m) : load_transformer(t, m);
    char shown[AT_SHOWN];
    at_buffer_print(&text, "Marian %s, %s", at_shown(at_marian_text(m, "version"), shown, sizeof shown), type);
    if (json_array_size(json_object_get(m->decoder, "shortlist")) > 0)
        at_buffer_print(&text, "; its shortlist is not used");
    t->origin = text.bytes;
    t->source = m->source.vocabulary;
    t->target = m->target.vocabulary;
    m->source.vocabulary = m->target.vocabulary = NULL;
    if (done)
        at_params_changed(t->model->params);
    return done;
}

static bool load(at_translator *t, const char *path, at_error *error)
{
    at_marian m = {.in.error = error};
    at_tensors *arrays = find_files(&m, path, error) ? at_npz_read(m.in.path, error) : NULL;
    m.in.arrays = arrays;
    const bool done = arrays && read_settings(&m) && load_parts(t, &m);
    json_decref(m.settings);
    json_decref(m.decoder);
    at_row_ids_free(&m.source);
    at_row_ids_free(&m.target);
    at_tensors_free(arrays);
    free((char *)m.in.path);
    at_bundle_close(&m.bundle);
    return done;
}

const at_reader at_reader_marian = {.name = "marian",
                                    .formats = ".npz, or a folder with decoder.yml",
                                    .knows = knows,
                                    .load = load,
                                    .of_folders = true};
