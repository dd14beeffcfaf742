/* The Transformers of OpenNMT-py: pre-norm with a norm at the end, positions of sines and cosines interleaved, embeddings
 * times sqrt(d), epsilon 1e-6. */
#include <stdio.h>
#include <string.h>

#include "store/onmt_internal.h"

bool at_onmt_transformer_set(at_onmt *m, const char *target_E)
{
    at_import *in = &m->in;
    const at_pickled *opt = at_pickled_get(m->root, "opt");
    const at_array *E = at_import_need(in, target_E, 2),
                   *ffn = E ? at_import_need(in, "encoder.transformer.0.feed_forward.w_1.weight", 2) : NULL;
    const int64_t heads = at_pickled_integer(at_pickled_get(opt, "heads"), 0);
    const char *activation = at_pickled_text(at_pickled_get(opt, "pos_ffn_activation_fn"));
    if (!ffn)
        return false;
    if (heads == 0)
        return at_fail(in->error, AT_FORMAT, "'%s' does not say in 'opt' how many heads its layers have", in->path);
    if (activation && strcmp(activation, "relu") != 0)
        return at_fail(in->error, AT_UNSUPPORTED, "'%s' has an activation in its feed-forward layers that is not relu",
                       in->path);
    const bool positions = at_pickled_integer(at_pickled_get(opt, "position_encoding"), 0);
    return at_import_set(in, "model", "transformer") && at_import_set_number(in, "heads", (double)heads) &&
           at_import_set_number(in, "layers",
                                (double)at_import_count(in, "encoder.transformer.%d.self_attn.linear_keys.weight")) &&
           at_import_set_number(
               in, "decoder-layers",
               (double)at_import_count(in, "decoder.transformer_layers.%d.self_attn.linear_keys.weight")) &&
           at_import_set_number(in, "hidden", (double)at_import_dim(E, 0)) &&
           at_import_set_number(in, "ffn", (double)at_import_dim(ffn, 1)) && at_import_set(in, "norm", "pre") &&
           at_import_set(in, "final-norm", "true") && at_import_set(in, "norm-epsilon", "1e-6") &&
           at_import_set(in, "activation", "relu") && at_import_set(in, "tie", "false") &&
           at_import_set(in, "output-bias", "true") &&
           at_import_set(in, "position", positions ? "sinusoidal" : "none") &&
           at_import_set(in, "scale-embedding", positions ? "true" : "false");
}

static const at_import_names layer_names = {
    "%s.%s.weight", "%s.%s.bias", false, {"linear_query", "linear_keys", "linear_values", "final_linear"}};

static bool put_norm(at_import *in, const char *ours, const char *theirs)
{
    static const char *const own[] = {"g", "b"}, *const names[][2] = {{"weight", "bias"}, {"a_2", "b_2"}};
    char our[80], their[140];
    at_import_name(their, sizeof their, "%s.a_2", theirs); /* before version 0.6 */
    const bool older = at_import_has(in, their);
    for (int i = 0; i < 2; i++) {
        at_import_name(our, sizeof our, "%s.%s", ours, own[i]);
        at_import_name(their, sizeof their, "%s.%s", theirs, names[older][i]);
        if (!at_import_put(in, &(at_import_part){.ours = our, .theirs = their}))
            return false;
    }
    return true;
}

/* A sub-layer, or the norm before it: OURS.PART from THEIRS.NAME. */
static bool put_part(at_import *in, bool (*put)(at_import *in, const char *ours, const char *theirs), const char *ours,
                     const char *part, const char *theirs, const char *name)
{
    char our[80], their[120];
    at_import_name(our, sizeof our, "%s.%s", ours, part);
    at_import_name(their, sizeof their, "%s.%s", theirs, name);
    return put(in, our, their);
}

static bool put_self(at_import *in, const char *ours, const char *theirs)
{
    return at_import_attention(in, &layer_names, ours, theirs, false);
}

static bool put_cross(at_import *in, const char *ours, const char *theirs)
{
    return at_import_attention(in, &layer_names, ours, theirs, true);
}

static bool put_inner(at_import *in, const char *ours, const char *theirs)
{
    return at_import_layer(in, &layer_names, ours, 0, theirs, "w_1");
}

static bool put_outer(at_import *in, const char *ours, const char *theirs)
{
    return at_import_layer(in, &layer_names, ours, 0, theirs, "w_2");
}

static bool put_encoder_layer(at_import *in, const char *ours, const char *theirs)
{
    return put_part(in, put_self, ours, "self", theirs, "self_attn") &&
           put_part(in, put_norm, ours, "norm1", theirs, "layer_norm") &&
           put_part(in, put_norm, ours, "norm2", theirs, "feed_forward.layer_norm") &&
           put_part(in, put_inner, ours, "ffn.inner", theirs, "feed_forward") &&
           put_part(in, put_outer, ours, "ffn.outer", theirs, "feed_forward");
}

static bool put_decoder_layer(at_import *in, const char *ours, const char *theirs)
{
    return put_part(in, put_self, ours, "self", theirs, "self_attn") &&
           put_part(in, put_cross, ours, "cross", theirs, "context_attn") &&
           put_part(in, put_norm, ours, "norm1", theirs, "layer_norm_1") &&
           put_part(in, put_norm, ours, "norm2", theirs, "layer_norm_2") &&
           put_part(in, put_norm, ours, "norm3", theirs, "feed_forward.layer_norm") &&
           put_part(in, put_inner, ours, "ffn.inner", theirs, "feed_forward") &&
           put_part(in, put_outer, ours, "ffn.outer", theirs, "feed_forward");
}

bool at_onmt_transformer_put(at_onmt *m, const char *source_E, const char *target_E)
{
    at_import *in = &m->in;
    const at_model_settings *s = &in->settings;
    const int64_t layers[] = {s->layers, s->decoder_layers ? s->decoder_layers : s->layers};
    char ours[40], theirs[60];
    for (int side = 0; side < 2; side++)
        for (int64_t l = 0; l < layers[side]; l++) {
            at_import_name(ours, sizeof ours, "%s.%lld", side ? "decoder" : "encoder", (long long)l + 1);
            at_import_name(theirs, sizeof theirs, "%s.%lld",
                           side ? "decoder.transformer_layers" : "encoder.transformer", (long long)l);
            if (!(side ? put_decoder_layer : put_encoder_layer)(in, ours, theirs))
                return false;
        }
    return put_norm(in, "encoder.norm", "encoder.layer_norm") && put_norm(in, "decoder.norm", "decoder.layer_norm") &&
           at_import_rows(in, "source.E", source_E, &m->source, 0) &&
           at_import_rows(in, "target.E", target_E, &m->target, 0) &&
           at_import_rows(in, "output.W", "0.weight", &m->target, 0) &&
           at_import_rows(in, "output.b", "0.bias", &m->target, AT_NEVER);
}
