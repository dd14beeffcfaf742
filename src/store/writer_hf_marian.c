/* MarianMT models of Hugging Face's transformers (reader_hf_marian.c): config.json, generation_config.json,
 * model.safetensors, vocab.json (and target_vocab.json), tokenizer_config.json with source.spm and target.spm, or
 * tokenizer.json for words and characters.
 *
 * Its positions are sines, then cosines. Where ours are interleaved, the numbers of the residual stream are put into its
 * order: columns of what reads the stream, rows of what adds to it. The sums are the same then but for their rounding. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/dtype.h"
#include "store/export_internal.h"
#include "store/hf_internal.h"

enum { POSITIONS = 1024 };

typedef struct hf_writer {
    at_export *x;
    at_tensors *file;
    int64_t *order; /* [hidden]: which of our numbers each of theirs is; NULL: the same order */
} hf_writer;

/* ---- Parameters ----------------------------------------------------------------------------------------------- */

/* One of `blocks` blocks of rows. */
static bool put_block(hf_writer *w, const char *name, const at_exported *exported, int block, int blocks)
{
    at_array part = exported->array;
    const int64_t rows = exported->rows / blocks;
    part.dim[0] = rows;
    part.data =
        (char *)part.data + (size_t)(block * rows * exported->columns) * at_dtype_rows[exported->array.dtype].size;
    return at_tensors_put(w->file, name, &part, w->x->error);
}

static bool put_array(void *context, const at_hf_array *array)
{
    hf_writer *w = context;
    at_exported exported;
    const bool done = at_exported_take(w->x, array->ours, &exported) &&
                      (!w->order || !array->in_columns || at_exported_order_columns(w->x, &exported, w->order)) &&
                      (!w->order || !array->in_rows || at_exported_order_rows(w->x, &exported, w->order)) &&
                      put_block(w, array->theirs, &exported, array->block, array->blocks);
    at_exported_free(&exported);
    return done;
}

static bool put_table(hf_writer *w, const char *theirs, const char *ours)
{
    at_exported exported;
    const bool done = at_exported_take(w->x, ours, &exported) &&
                      (!w->order || at_exported_order_columns(w->x, &exported, w->order)) &&
                      at_tensors_put(w->file, theirs, &exported.array, w->x->error);
    at_exported_free(&exported);
    return done;
}

/* [1,V]; zeros without a bias. */
static bool put_bias(hf_writer *w)
{
    at_array bias = {.dtype = AT_F32, .rank = 2, .dim = {1, w->x->settings->target_size}};
    at_exported exported = {0};
    bool done = !w->x->settings->output_bias || at_exported_take(w->x, "output.b", &exported);
    float *zeros = done && !exported.array.data ? calloc((size_t)bias.dim[1], sizeof *zeros) : NULL;
    bias.data = exported.array.data ? exported.array.data : zeros;
    if (done && !bias.data)
        done = at_no_memory(w->x->error, "a bias");
    done = done && at_tensors_put(w->file, "final_logits_bias", &bias, w->x->error);
    at_exported_free(&exported);
    free(zeros);
    return done;
}

static bool put_parameters(hf_writer *w)
{
    const at_model_settings *s = w->x->settings;
    return (s->share_embeddings ? put_table(w, "model.shared.weight", "target.E")
                                : put_table(w, "model.encoder.embed_tokens.weight", "source.E") &&
                                      put_table(w, "model.decoder.embed_tokens.weight", "target.E")) &&
           (s->tie || put_table(w, "lm_head.weight", "output.W")) && put_bias(w) &&
           at_hf_each("encoder", s->layers, put_array, w) &&
           at_hf_each("decoder", s->decoder_layers ? s->decoder_layers : s->layers, put_array, w);
}

/* The first half of theirs are our sines 0, 2, 4 ..., the second our cosines 1, 3, 5 ... */
static bool find_order(hf_writer *w)
{
    const int64_t d = w->x->settings->hidden;
    if (w->x->settings->position_layout == AT_HALVES)
        return true;
    w->order = malloc((size_t)d * sizeof *w->order);
    for (int64_t i = 0; w->order && i < d; i++)
        w->order[i] = i < d / 2 ? 2 * i : 2 * (i - d / 2) + 1;
    return w->order || at_no_memory(w->x->error, "an order");
}

static bool write_parameters(at_export *x)
{
    hf_writer w = {.x = x, .file = at_tensors_new()};
    char *path = at_folder_path(x->folder, "model.safetensors", x->error);
    bool done = path && (w.file || at_no_memory(x->error, "the parameters of a model"));
    done = done && find_order(&w) && at_tensors_set_meta(w.file, "format", "pt", x->error) && put_parameters(&w) &&
           at_tensors_write(w.file, path, x->error);
    at_tensors_free(w.file);
    free(w.order);
    free(path);
    return done;
}

/* ---- Settings ------------------------------------------------------------------------------------------------- */

static const char *number_type(const at_export *x)
{
    static const char *const names[AT_NUMBER_TYPES] = {"float32", "bfloat16", "float16", "int8"};
    return names[at_params_type(x->params, at_params_find(x->params, "target.E"))];
}

/* What both config.json and generation_config.json have. Padding and the beginning are never generated. */
static json_t *generation(void)
{
    return json_pack("{s:[[i],[i]],s:i,s:i,s:i,s:i,s:i,s:i,s:i}", "bad_words_ids", AT_PAD, AT_BEGIN, "bos_token_id",
                     AT_BEGIN, "decoder_start_token_id", AT_BEGIN, "eos_token_id", AT_END, "forced_eos_token_id",
                     AT_END, "pad_token_id", AT_PAD, "max_length", 512, "num_beams", 4);
}

static json_t *config_of(const at_export *x)
{
    const at_model_settings *s = x->settings;
    const int heads = (int)s->heads, ffn = (int)s->ffn, layers = (int)s->layers,
              decoder_layers = (int)(s->decoder_layers ? s->decoder_layers : s->layers);
    const char *activation = s->activation == AT_SWISH_UNITS  ? "swish"
                             : s->activation == AT_GELU_UNITS ? "gelu"
                                                              : "relu";
    json_t *config = json_pack(
        "{s:[s],s:s,s:s,s:b,s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:b,s:b,s:b,s:b,s:f,s:f,s:f,s:b,s:o}",
        "architectures", "MarianMTModel", "model_type", "marian", "torch_dtype", number_type(x), "is_encoder_decoder",
        1, "activation_function", activation, "d_model", (int)s->hidden, "encoder_layers", layers, "decoder_layers",
        decoder_layers, "num_hidden_layers", layers, "encoder_attention_heads", heads, "decoder_attention_heads", heads,
        "encoder_ffn_dim", ffn, "decoder_ffn_dim", ffn, "max_position_embeddings", POSITIONS, "vocab_size",
        (int)(s->share_embeddings ? s->target_size : s->source_size), "decoder_vocab_size", (int)s->target_size,
        "share_encoder_decoder_embeddings", (int)s->share_embeddings, "tie_word_embeddings", (int)s->tie,
        "scale_embedding", (int)s->scale_embedding, "static_position_embeddings", 1, "dropout", s->dropout,
        "attention_dropout", s->attention_dropout, "activation_dropout", s->ffn_dropout, "normalize_before", 0,
        "attend", at_export_units(x));
    json_t *more = generation();
    if (!config || !more || json_object_update(config, more) != 0) {
        json_decref(config);
        config = NULL;
    }
    json_decref(more);
    return config;
}

static bool write_words(at_export *x)
{
    const at_translator *t = x->translator;
    size_t size;
    const bool separate = !x->settings->share_embeddings, pieces = at_vocabulary_subwords(t->source, &size);
    return at_export_json(x, "vocab.json", at_export_number_of_words(x->source.list)) &&
           (!separate || at_export_json(x, "target_vocab.json", at_export_number_of_words(x->target.list))) &&
           at_export_pieces(x, t->source, "source.spm") && at_export_pieces(x, t->target, "target.spm") &&
           at_export_tokenizer(x, true) &&
           at_export_json(x, "tokenizer_config.json",
                          json_pack("{s:s,s:b,s:s,s:s,s:s,s:i}", "tokenizer_class",
                                    pieces ? "MarianTokenizer" : "PreTrainedTokenizerFast", "separate_vocabs", separate,
                                    "unk_token", "<unk>", "eos_token", "</s>", "pad_token", "<pad>", "model_max_length",
                                    POSITIONS));
}

static bool write(at_export *x)
{
    return at_export_json(x, "config.json", config_of(x)) &&
           at_export_json(x, "generation_config.json", generation()) && write_parameters(x) && write_words(x);
}

static bool positions_fit(const at_export *x)
{
    const at_model_settings *s = x->settings;
    char position[32], first[40];
    if (!at_export_position(x, position))
        return false;
    if (x->translator->model->added != AT_ADDED_SINUSOIDAL)
        return at_export_refuse(x, "position", s->position, "sinusoidal");
    if (strcmp(position, "none") != 0)
        return at_export_refuse(x, "encoder-attention", position, "none");
    if (s->position_denominator != AT_HALF)
        return at_export_refuse(x, "position-denominator", "half-1", "half");
    snprintf(first, sizeof first, "%.0f", s->first_position);
    return s->first_position == 0 || at_export_refuse(x, "first-position", first, "0");
}

static bool fits(const at_export *x)
{
    const at_model_settings *s = x->settings;
    int64_t first, past;
    char epsilon[40];
    snprintf(epsilon, sizeof epsilon, "%g", s->norm_epsilon);
    at_vocabulary_inside(x->translator->source, 2, &first, &past);
    if (s->norm == AT_PRE_NORM)
        return at_export_refuse(x, "norm", "pre", "post");
    if (at_export_has_final_norm(s))
        return at_export_refuse(x, "final-norm", "true", "false");
    if (fabs(s->norm_epsilon - 1e-5) > 1e-9)
        return at_export_refuse(x, "norm-epsilon", epsilon, "1e-05");
    if (first == 1 || past == 2)
        return at_export_refuse(x, "source-end", past == 2 ? "false" : "true, with <s> before a line", "true");
    if (at_params_type(x->params, at_params_find(x->params, "target.E")) == AT_NUMBERS_INT8)
        return at_export_refuse(x, "weights", "int8", "f32, bf16 or f16");
    return positions_fit(x);
}

const at_export_format at_writer_hf_marian = {
    .name = "hf-marian", .title = "MarianMT of Hugging Face", .fits = fits, .write = write};
