#include "model_case.h"

#include <stdio.h>
#include <string.h>

#include "data.h"
#include "models/kinds.h"
#include "text/vocabulary.h"

at_model *model_case_new(const model_case *c)
{
    at_error error = {0};
    at_given given = {0};
    at_model_settings s = {.embedding = c->embedding,
                           .hidden = c->hidden,
                           .attention = c->attention,
                           .maxout = c->maxout,
                           .layers = c->layers,
                           .heads = c->heads,
                           .ffn = c->ffn,
                           .norm = c->heads > 0 ? AT_POST_NORM : AT_NORM_UNSET, /* as the rivals have it */
                           .share_embeddings = c->heads > 0,                    /* one joint vocabulary */
                           .reset = AT_RESET_AFTER,                             /* as in PyTorch's nn.GRU */
                           .output_bias = c->output_bias,
                           .source_size = c->words,
                           .target_size = c->words};
    snprintf(s.model, sizeof s.model, "%s", c->model);
    snprintf(s.position, sizeof s.position, "%s", c->position ? c->position : "");
    char coverage[2][24];
    snprintf(coverage[0], sizeof coverage[0], "%lld", (long long)c->coverage);
    snprintf(coverage[1], sizeof coverage[1], "%lld", (long long)c->window);
    bool good = at_model_set(&s, &given, "dropout", "0", &error);
    if (c->conv)
        good = good && at_model_set(&s, &given, "conv", c->conv, &error) &&
               at_model_set(&s, &given, "image-channels", "1", &error) &&
               at_model_set(&s, &given, "coverage", coverage[0], &error) &&
               at_model_set(&s, &given, "coverage-width", coverage[1], &error);
    good = good && at_model_settings_complete(&s, &given, &error);
    at_model *model = good ? at_model_new(&s, 1, &error) : NULL;
    if (!model)
        fprintf(stderr, "attend: bench: %s\n", error.text);
    return model;
}

static bool ends(const char *name, const char *ending)
{
    size_t size = strlen(name), end = strlen(ending);
    return size >= end && strcmp(name + size - end, ending) == 0;
}

/* The weight matrices of a transformer are called W, except the output's, which is the target's embedding table. The
 * keys and values of cross-attention are computed from the source. */
static reading_of transformer_reading(const at_model *model, const char *name)
{
    if (model->settings.tie && strcmp(name, "target.E") == 0)
        return READ_PER_TARGET_TOKEN;
    if (!ends(name, ".W"))
        return READ_NEVER;
    return strncmp(name, "encoder.", 8) == 0 || ends(name, ".cross.KV.W") ? READ_PER_SOURCE_TOKEN
                                                                          : READ_PER_TARGET_TOKEN;
}

reading_of model_case_reading(const at_model *model, int parameter)
{
    /* What does not change from step to step: the first state, and the terms of the summary. */
    static const struct {
        const char *model, *name;
    } ONCE[] = {
        {"bahdanau", "decoder.W_s.W"}, {"rnn-encdec", "encoder.V.W"},  {"rnn-encdec", "decoder.V.W"},
        {"rnn-encdec", "decoder.C.W"}, {"rnn-encdec", "output.O_c.W"},
    };
    const char *name = at_params_name(model->params, parameter);
    if (strcmp(model->kind->name, "transformer") == 0)
        return transformer_reading(model, name);
    if (at_params_shape(model->params, parameter).rank != 2 || ends(name, ".E"))
        return READ_NEVER;
    for (int i = 0; i < (int)(sizeof ONCE / sizeof *ONCE); i++) {
        if (strcmp(model->kind->name, ONCE[i].model) == 0 && strcmp(name, ONCE[i].name) == 0)
            return READ_ONCE;
    }
    return strncmp(name, "encoder.", 8) == 0 || strcmp(name, "attention.U_a.W") == 0 ? READ_PER_SOURCE_TOKEN
                                                                                     : READ_PER_TARGET_TOKEN;
}

int64_t model_case_cells(const model_case *c, int n)
{
    at_convolutions layers;
    at_error error = {0};
    int64_t height = c->height, width = c->width;
    if (!at_convolutions_parse(c->conv, &layers, &error))
        return 0;
    layers.count = n < 0 ? layers.count : n;
    at_convolutions_size(&layers, &height, &width);
    return height * width;
}

/* Every weight is used once for each cell of its layer, each cell and step, each picture, or each token. */
static double picture_flops(const model_case *c, const at_model *model)
{
    const double cells = (double)model_case_cells(c, -1), steps = (double)c->length;
    double flops = 0, size = 0;
    for (int i = 0; i < at_params_number(model->params); i++) {
        const char *name = at_params_name(model->params, i);
        const at_shape shape = at_params_shape(model->params, i);
        double times = steps;
        int layer;
        if (sscanf(name, "encoder.%d.W", &layer) == 1)
            times = (double)model_case_cells(c, layer);
        else if (strcmp(name, "attention.U_a.W") == 0)
            times = cells;
        else if (strcmp(name, "attention.Q") == 0 || strcmp(name, "attention.U_f") == 0)
            times = cells * steps;
        else if (strcmp(name, "decoder.W_h.W") == 0 || strcmp(name, "decoder.W_c.W") == 0)
            times = 1;
        if (strcmp(name, "attention.U_a.W") == 0)
            size = (double)shape.dim[1];
        if (shape.rank == 2 && !ends(name, ".E"))
            flops += 2 * times * (double)at_shape_count(shape);
    }
    /* for every cell and step v . tanh(...) [A] and a_ij a_j [D] */
    return (double)c->rows * (flops + 2 * cells * steps * ((double)c->attention + size));
}

double model_case_flops(const model_case *c, const at_model *model)
{
    double flops = 0;
    if (c->conv)
        return picture_flops(c, model);
    for (int i = 0; i < at_params_number(model->params); i++) {
        reading_of reading = model_case_reading(model, i);
        int64_t rows = reading == READ_NEVER ? 0 : reading == READ_ONCE ? c->rows : c->rows * c->length;
        flops += 2.0 * (double)rows * (double)at_shape_count(at_params_shape(model->params, i));
    }
    /* For every pair of positions v . tanh(...) [A] and a_ij h_j [2H]. */
    if (c->attention > 0)
        flops += 2.0 * (double)(c->rows * c->length * c->length) * (double)(c->attention + 2 * c->hidden);
    /* q . k and a_ij v_j [d], for every pair in the encoder and across, and for those up to the query in the decoder.
     */
    if (c->heads > 0)
        flops += 4.0 * (double)(c->rows * c->layers * c->hidden) *
                 ((double)(2 * c->length * c->length) + (double)(c->length * (c->length + 1)) / 2);
    return flops;
}

void model_case_ids(int32_t *ids, int64_t count, uint32_t seed, int64_t words)
{
    /* data_value lies in +-sqrt(3). */
    for (int64_t i = 0; i < count; i++) {
        double share = ((double)data_value(seed, i) / 1.7320508075688772 + 1) / 2;
        int64_t id = AT_SPECIALS + (int64_t)(share * (double)(words - AT_SPECIALS));
        ids[i] = (int32_t)(id < words ? id : words - 1);
    }
}
