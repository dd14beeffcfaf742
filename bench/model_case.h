/* A whole model of a given size, which `bench train` and `bench decode` measure. */
#ifndef BENCH_MODEL_CASE_H
#define BENCH_MODEL_CASE_H

#include "models/model.h"

typedef struct model_case {
    const char *name, *model;
    int64_t embedding, hidden, attention, maxout; /* attention: A of the additive score; 0: the model has none */
    int64_t words;                                /* in either vocabulary, special tokens included */
    int64_t rows, length;                         /* a batch: sentences, and tokens of each on either side */
    /* the transformer's; 0 and NULL: another model */
    int64_t layers, heads, ffn;
    const char *position; /* "sinusoidal", "shaw:16" */
    bool output_bias;
    /* of a model that reads grey pictures of one size; 0 and NULL: it reads text */
    const char *conv;
    int64_t height, width;
    int64_t coverage, window; /* filters over the sum of past weights, and the side of their window */
} model_case;

/* Sizes: E embedding, H hidden, A attention, L maxout, V words, B rows, S length; D hidden, F ffn. */
#define RECURRENT_CASE(NAME, MODEL, E, H, A, L, V, B, S)                                                               \
    {                                                                                                                  \
        .name = NAME, .model = MODEL, .embedding = E, .hidden = H, .attention = A, .maxout = L, .words = V, .rows = B, \
        .length = S                                                                                                    \
    }
#define TRANSFORMER_CASE(NAME, LAYERS, D, F, HEADS, POSITION, V, B, S, BIAS)                                           \
    {                                                                                                                  \
        .name = NAME, .model = "transformer", .hidden = D, .words = V, .rows = B, .length = S, .layers = LAYERS,       \
        .heads = HEADS, .ffn = F, .position = POSITION, .output_bias = BIAS                                            \
    }

#define PICTURE_CASE(NAME, CONV, HEIGHT, WIDTH, COVERAGE, WINDOW, E, H, A, V, B, S)                                    \
    {                                                                                                                  \
        .name = NAME, .model = "show-attend-tell", .embedding = E, .hidden = H, .attention = A, .words = V, .rows = B, \
        .length = S, .conv = CONV, .height = HEIGHT, .width = WIDTH, .coverage = COVERAGE, .window = WINDOW            \
    }

/* The model with parameters drawn from a fixed seed; NULL, with the message on stderr, if it is refused. */
at_model *model_case_new(const model_case *c);

/* Flops of the products of one forward pass over the batch, counted from the model's own parameters. What relative
 * positions add is not counted. */
double model_case_flops(const model_case *c, const at_model *model);

/* Cells of a picture after the first n convolutions of the case, or after all of them for -1. */
int64_t model_case_cells(const model_case *c, int n);

/* How often a pass over one sentence reads a parameter. */
typedef enum reading_of { READ_NEVER, READ_ONCE, READ_PER_SOURCE_TOKEN, READ_PER_TARGET_TOKEN } reading_of;
reading_of model_case_reading(const at_model *model, int parameter);

/* Words spread over the vocabulary; none is a special token. */
void model_case_ids(int32_t *ids, int64_t count, uint32_t seed, int64_t words);

#endif
