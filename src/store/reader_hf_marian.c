/* MarianMT models of Hugging Face's transformers, such as OPUS-MT: a folder with config.json ("model_type": "marian"),
 * model.safetensors or pytorch_model.bin, vocab.json (and target_vocab.json), source.spm and target.spm. A line is cut by
 * source.spm, and its pieces are found in vocab.json by their text; </s> is added. The decoder begins with the embedding
 * of decoder_start_token_id. Weights are [out,in], positions sines then cosines, exponent j/(d/2). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/utf8.h"
#include "store/hf_internal.h"
#include "store/imported_internal.h"
#include "store/readers_internal.h"
#include "store/torch_internal.h"

typedef struct hf_model {
    at_bundle bundle;
    at_import in;
    json_t *config;
    at_row_ids source, target;
    char *begin; /* the name of the row that only begins lines; NULL: it has none of its own */
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
    static const char *const names[][2] = {{"swish", "swish"}, {"silu", "swish"}, {"relu", "relu"}, {"gelu", "gelu"}};
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

/* The row that the decoder is given first. */
static bool find_start(const hf_model *f, int64_t rows, int64_t *row)
{
    const json_t *value = json_object_get(f->config, "decoder_start_token_id");
    *row = json_is_integer(value) ? json_integer_value(value) : rows - 1;
    return (*row >= 0 && *row < rows) || refuse(f, "decoder_start_token_id");
}

static const at_row_specials specials = {.pad = "<pad>", .unknown = "<unk>", .end = "</s>"};

/* A row that only begins lines is AT_BEGIN; usually they begin with <pad>, and then there is none. */
static bool name_start(hf_model *f, const at_row_names *names, int64_t start)
{
    const char *name = start < names->count ? names->name[start] : NULL;
    if (!name || strcmp(name, specials.pad) == 0 || strcmp(name, specials.unknown) == 0 ||
        strcmp(name, specials.end) == 0)
        return true;
    f->begin = strdup(name);
    return f->begin || at_no_memory(f->in.error, "a word");
}

/* A side: its words, and source.spm or target.spm. `start`: the row that lines begin with, -1 of the source. */
static bool read_side(hf_model *f, const char *side, const char *words, int64_t rows, int64_t start, at_row_ids *ids)
{
    at_error *error = f->in.error;
    at_row_names names = {0};
    char pieces[20];
    at_row_specials own = specials;
    const char *cut = at_row_ids_cut(f->config, side);
    json_t *list = at_bundle_json(&f->bundle, words, error);
    snprintf(pieces, sizeof pieces, "%s.spm", side);
    own.characters = cut && strcmp(cut, "char") == 0;
    if (!list)
        at_fail(error, AT_FILE, "'%s' lacks %s", f->bundle.folder, words);
    bool done = list && at_row_names_of_json(list, words, &names, error) && (start < 0 || name_start(f, &names, start));
    own.begin = f->begin;
    done = done && at_row_ids_make(&names, rows, &own, ids, error) &&
           ((cut && strcmp(cut, "spm") != 0) || at_row_ids_pieces(ids, &f->bundle, pieces, true, error));
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
    if (!find_start(f, target_rows, &start) ||
        !read_side(f, "target", two ? "target_vocab.json" : "vocab.json", target_rows, start, &f->target) ||
        !read_side(f, "source", "vocab.json", source_rows, -1, &f->source))
        return false;
    at_vocabulary_frame(f->source.vocabulary, false, true);
    f->target.row[AT_BEGIN] = start;
    if (f->source.row[AT_BEGIN] < 0)
        f->source.row[AT_BEGIN] = start < source_rows ? start : -1;
    return true;
}

/* ---- Parameters ----------------------------------------------------------------------------------------------- */

static bool put_array(void *context, const at_hf_array *array)
{
    at_import *in = context;
    return at_import_put(
        in, &(at_import_part){.ours = array->ours, .theirs = array->theirs, .row = array->block * in->settings.hidden});
}

/* A unit that begins a line and has the row of another one, such as <pad>, is never generated. */
static void forbid_begin(const hf_model *f)
{
    const int64_t *row = f->target.row;
    if (row[AT_BEGIN] == row[AT_PAD] || row[AT_BEGIN] == row[AT_UNKNOWN] || row[AT_BEGIN] == row[AT_END])
        at_params_value(f->in.params, at_params_find(f->in.params, "output.b"))[AT_BEGIN] = AT_NEVER;
}

static bool put_parameters(hf_model *f, const char *source_E, const char *target_E)
{
    at_import *in = &f->in;
    const at_model_settings *s = &in->settings;
    if (!at_import_rows(in, "target.E", target_E, &f->target, 0) ||
        (!s->share_embeddings && !at_import_rows(in, "source.E", source_E, &f->source, 0)) ||
        (!s->tie && !at_import_rows(in, "output.W", "lm_head.weight", &f->target, 0)) ||
        !at_hf_each("encoder", s->layers, put_array, in) ||
        !at_hf_each("decoder", s->decoder_layers ? s->decoder_layers : s->layers, put_array, in))
        return false;
    if (!at_import_has(in, "final_logits_bias"))
        at_import_no_bias(in, "output.b", &f->target);
    else if (!at_import_rows(in, "output.b", "final_logits_bias", &f->target, AT_NEVER))
        return false;
    forbid_begin(f);
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
    free(f.begin);
    free((char *)f.in.path);
    at_bundle_close(&f.bundle);
    return done;
}

const at_reader at_reader_hf_marian = {
    .name = "hf-marian", .formats = "a folder with config.json", .knows = knows, .load = load, .of_folders = true};
