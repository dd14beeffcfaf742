/* MarianMT models of Hugging Face's transformers, such as OPUS-MT: a folder with config.json ("model_type": "marian"),
 * model.safetensors or pytorch_model.bin, vocab.json (and target_vocab.json), source.spm and target.spm. A line is cut by
 * source.spm, and its pieces are found in vocab.json by their text; </s> is added. The decoder begins with the embedding
 * of decoder_start_token_id. Weights are [out,in], positions sines then cosines, exponent j/(d/2). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/utf8.h"
#include "store/imported_internal.h"
#include "store/readers_internal.h"
#include "store/torch_internal.h"

typedef struct hf_model {
    at_bundle bundle;
    at_import in;
    json_t *config;
    at_row_ids source, target;
} hf_model;

/* ---- Settings ------------------------------------------------------------------------------------------------- */

static int64_t number_of(const hf_model *f, const char *name)
{
    return json_integer_value(json_object_get(f->config, name));
}

static bool is_true(const hf_model *f, const char *name, bool fallback)
{
    const json_t *value = json_object_get(f->config, name);
    return value ? json_is_true(value) : fallback;
}

static bool refuse(const hf_model *f, const char *setting)
{
    return at_fail(f->in.error, AT_UNSUPPORTED, "'%s' has a '%s' that this reader does not know", f->in.path, setting);
}

static bool is_usual(const hf_model *f)
{
    static const char *const off[] = {"normalize_before", "normalize_embedding", "add_final_layer_norm",
                                      "extra_pos_embeddings"};
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        if (is_true(f, off[i], false))
            return refuse(f, off[i]);
    if (!is_true(f, "static_position_embeddings", true))
        return refuse(f, "static_position_embeddings");
    if (number_of(f, "encoder_attention_heads") != number_of(f, "decoder_attention_heads"))
        return refuse(f, "decoder_attention_heads");
    if (number_of(f, "encoder_ffn_dim") != number_of(f, "decoder_ffn_dim"))
        return refuse(f, "decoder_ffn_dim");
    return true;
}

/* The name that transformers has for our activation; NULL: none of ours. */
static const char *activation_of(const hf_model *f)
{
    static const char *const names[][2] = {
        {"swish", "swish"}, {"silu", "swish"}, {"relu", "relu"}, {"gelu_new", "gelu"}, {"gelu_pytorch_tanh", "gelu"}};
    const char *is = json_string_value(json_object_get(f->config, "activation_function"));
    for (size_t i = 0; is && i < sizeof names / sizeof *names; i++)
        if (strcmp(is, names[i][0]) == 0)
            return names[i][1];
    return NULL;
}

static bool shares(const hf_model *f)
{
    return is_true(f, "share_encoder_decoder_embeddings", true);
}

static bool set_settings(hf_model *f)
{
    at_import *in = &f->in;
    const char *activation = activation_of(f);
    if (!is_usual(f))
        return false;
    if (!activation)
        return refuse(f, "activation_function");
    return at_import_set(in, "model", "transformer") &&
           at_import_set_number(in, "layers", (double)number_of(f, "encoder_layers")) &&
           at_import_set_number(in, "decoder-layers", (double)number_of(f, "decoder_layers")) &&
           at_import_set_number(in, "hidden", (double)number_of(f, "d_model")) &&
           at_import_set_number(in, "ffn", (double)number_of(f, "encoder_ffn_dim")) &&
           at_import_set_number(in, "heads", (double)number_of(f, "encoder_attention_heads")) &&
           at_import_set(in, "norm", "post") && at_import_set(in, "final-norm", "false") &&
           at_import_set(in, "activation", activation) && at_import_set(in, "norm-epsilon", "1e-5") &&
           at_import_set(in, "scale-embedding", is_true(f, "scale_embedding", false) ? "true" : "false") &&
           at_import_set(in, "position", "sinusoidal") && at_import_set(in, "position-layout", "halves") &&
           at_import_set(in, "position-denominator", "half") && at_import_set(in, "first-position", "0") &&
           at_import_set(in, "tie", is_true(f, "tie_word_embeddings", true) ? "true" : "false") &&
           at_import_set(in, "share-embeddings", shares(f) ? "true" : "false") &&
           at_import_set(in, "output-bias", "true");
}

/* ---- Words ---------------------------------------------------------------------------------------------------- */

static bool row_is(const hf_model *f, const at_row_ids *ids, const char *setting, int64_t fallback, int64_t *row)
{
    const json_t *value = json_object_get(f->config, setting);
    *row = json_is_integer(value) ? json_integer_value(value) : fallback;
    return (*row >= 0 && *row < ids->units) || refuse(f, setting);
}

static bool read_side(hf_model *f, const char *words, const char *pieces, int64_t rows, at_row_ids *ids)
{
    static const at_row_specials specials = {.pad = "<pad>", .unknown = "<unk>", .end = "</s>"};
    at_error *error = f->in.error;
    at_row_names names = {0};
    json_t *list = at_bundle_json(&f->bundle, words, error);
    if (!list)
        at_fail(error, AT_FILE, "'%s' lacks %s", f->bundle.folder, words);
    bool done = list && at_row_names_of_json(list, words, &names, error) &&
                at_row_ids_make(&names, rows, &specials, ids, error) &&
                at_row_ids_pieces(ids, &f->bundle, pieces, true, error);
    if (done && ids->row[AT_END] < 0)
        done = at_fail(error, AT_FORMAT, "'%s' lacks '</s>', which ends a line", words);
    at_row_names_free(&names);
    json_decref(list);
    return done;
}

static bool read_words(hf_model *f, int64_t source_rows, int64_t target_rows)
{
    const bool two = !shares(f) && at_bundle_has(&f->bundle, "target_vocab.json");
    int64_t start;
    if (!read_side(f, "vocab.json", "source.spm", source_rows, &f->source) ||
        !read_side(f, two ? "target_vocab.json" : "vocab.json", "target.spm", target_rows, &f->target) ||
        !row_is(f, &f->target, "decoder_start_token_id", target_rows - 1, &start))
        return false;
    at_vocabulary_frame(f->source.vocabulary, false, true);
    f->target.row[AT_BEGIN] = start;
    f->source.row[AT_BEGIN] = start < source_rows ? start : -1;
    return true;
}

/* ---- Parameters ----------------------------------------------------------------------------------------------- */

static const at_import_names layer_names = {
    "%s.%s.weight", "%s.%s.bias", false, {"q_proj", "k_proj", "v_proj", "out_proj"}};

static bool put_norm(at_import *in, const char *ours, const char *theirs, const char *part)
{
    char our[80], their[140];
    for (int bias = 0; bias < 2; bias++) {
        at_import_name(our, sizeof our, "%s.%s", ours, bias ? "b" : "g");
        at_import_name(their, sizeof their, "%s.%s.%s", theirs, part, bias ? "bias" : "weight");
        if (!at_import_put(in, &(at_import_part){.ours = our, .theirs = their}))
            return false;
    }
    return true;
}

static bool put_stack(at_import *in, const char *side, int64_t layers, bool crosses)
{
    char theirs[60], ours[60], part[80], their[80];
    for (int64_t l = 0; l < layers; l++) {
        at_import_name(ours, sizeof ours, "%s.%lld", side, (long long)l + 1);
        at_import_name(theirs, sizeof theirs, "model.%s.layers.%lld", side, (long long)l);
        int norm = 0;
        for (int i = 0; i < 1 + crosses; i++) {
            at_import_name(part, sizeof part, "%s.%s", ours, i ? "cross" : "self");
            at_import_name(their, sizeof their, "%s.%s", theirs, i ? "encoder_attn" : "self_attn");
            if (!at_import_attention(in, &layer_names, part, their, i))
                return false;
            at_import_name(part, sizeof part, "%s.norm%d", ours, ++norm);
            if (!put_norm(in, part, theirs, i ? "encoder_attn_layer_norm" : "self_attn_layer_norm"))
                return false;
        }
        at_import_name(part, sizeof part, "%s.ffn.inner", ours);
        if (!at_import_layer(in, &layer_names, part, 0, theirs, "fc1"))
            return false;
        at_import_name(part, sizeof part, "%s.ffn.outer", ours);
        if (!at_import_layer(in, &layer_names, part, 0, theirs, "fc2"))
            return false;
        at_import_name(part, sizeof part, "%s.norm%d", ours, ++norm);
        if (!put_norm(in, part, theirs, "final_layer_norm"))
            return false;
    }
    return true;
}

/* A unit that only begins a line is never generated. */
static void forbid_begin(at_import *in)
{
    at_params_value(in->params, at_params_find(in->params, "output.b"))[AT_BEGIN] = AT_NEVER;
}

static bool put_parameters(hf_model *f, const char *source_E, const char *target_E)
{
    at_import *in = &f->in;
    const at_model_settings *s = &in->settings;
    if (!at_import_rows(in, "target.E", target_E, &f->target, 0) ||
        (!s->share_embeddings && !at_import_rows(in, "source.E", source_E, &f->source, 0)) ||
        (!s->tie && !at_import_rows(in, "output.W", "lm_head.weight", &f->target, 0)) ||
        !put_stack(in, "encoder", s->layers, false) ||
        !put_stack(in, "decoder", s->decoder_layers ? s->decoder_layers : s->layers, true))
        return false;
    if (!at_import_has(in, "final_logits_bias"))
        at_import_no_bias(in, "output.b", &f->target);
    else if (!at_import_rows(in, "output.b", "final_logits_bias", &f->target, AT_NEVER))
        return false;
    forbid_begin(in);
    return true;
}

/* The table of a side: the shared one, or its own. */
static const char *table_of(const at_import *in, const char *own)
{
    return at_import_has(in, own) && !at_import_has(in, "model.shared.weight") ? own : "model.shared.weight";
}

static bool load_parts(at_translator *t, hf_model *f)
{
    at_import *in = &f->in;
    const bool one = shares(f);
    const char *source_E =
                   one ? table_of(in, "model.encoder.embed_tokens.weight") : "model.encoder.embed_tokens.weight",
               *target_E = one ? source_E : "model.decoder.embed_tokens.weight";
    const at_array *source = at_import_need(in, source_E, 2), *target = source ? at_import_need(in, target_E, 2) : NULL;
    if (!target || !read_words(f, at_import_dim(source, 1), at_import_dim(target, 1)) || !set_settings(f))
        return false;
    t->model = at_import_model(in, f->source.units, f->target.units);
    if (!t->model || !put_parameters(f, source_E, target_E))
        return false;
    at_params_changed(t->model->params);
    t->origin = strdup("Hugging Face MarianMT");
    return t->origin || at_no_memory(in->error, "a description");
}

/* ---- The record ----------------------------------------------------------------------------------------------- */

static bool is_marian(const at_bundle *bundle)
{
    at_error unread = {0};
    json_t *config = at_bundle_json(bundle, "config.json", &unread);
    const char *type = json_string_value(json_object_get(config, "model_type"));
    const bool is = type && strcmp(type, "marian") == 0;
    json_decref(config);
    return is;
}

static bool knows(const char *path, at_error *error)
{
    at_error unread = {0};
    at_bundle bundle = {0};
    (void)error;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (!at_is_folder(path) && strcmp(name, "model.safetensors") != 0 && strcmp(name, "pytorch_model.bin") != 0)
        return false;
    const bool ours = at_bundle_beside(&bundle, path, &unread) && is_marian(&bundle);
    at_bundle_close(&bundle);
    return ours;
}

static at_tensors *read_arrays(hf_model *f, at_error *error)
{
    const bool safe = at_bundle_has(&f->bundle, "model.safetensors");
    if (!safe && !at_bundle_has(&f->bundle, "pytorch_model.bin")) {
        at_fail(error, AT_FILE, "'%s' has neither model.safetensors nor pytorch_model.bin", f->bundle.folder);
        return NULL;
    }
    f->in.path = at_bundle_path(&f->bundle, safe ? "model.safetensors" : "pytorch_model.bin", error);
    return !f->in.path ? NULL : safe ? at_tensors_read(f->in.path, error) : at_torch_tensors(f->in.path, error);
}

static bool load(at_translator *t, const char *path, at_error *error)
{
    hf_model f = {.in.error = error};
    at_tensors *arrays = NULL;
    if (at_bundle_beside(&f.bundle, path, error)) {
        f.config = at_bundle_json(&f.bundle, "config.json", error);
        arrays = f.config ? read_arrays(&f, error) : NULL;
        f.in.arrays = arrays;
    }
    const bool done = arrays && load_parts(t, &f);
    t->source = f.source.vocabulary;
    t->target = f.target.vocabulary;
    f.source.vocabulary = f.target.vocabulary = NULL;
    at_row_ids_free(&f.source);
    at_row_ids_free(&f.target);
    at_tensors_free(arrays);
    json_decref(f.config);
    free((char *)f.in.path);
    at_bundle_close(&f.bundle);
    return done;
}

const at_reader at_reader_hf_marian = {
    .name = "hf-marian", .formats = "a folder with config.json", .knows = knows, .load = load, .of_folders = true};
