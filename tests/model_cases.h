/* The models and settings tested in float and double, and a small batch for them. */
#ifndef MODEL_CASES_H
#define MODEL_CASES_H

/* cmocka.h needs these first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image/pictures_internal.h"
#include "layers/layers.h"
#include "models/cache.h"
#include "models/model.h"

enum { ROWS = 3, SOURCE = 4, TARGET = 3, WORDS = 7 };

static const int32_t source_ids[ROWS * SOURCE] = {4, 5, 6, 3, 5, -1, -1, -1, 2, 6, 4, -1};
static const int64_t source_lengths[ROWS] = {4, 1, 3};
static const int32_t target_in[ROWS * TARGET] = {2, 4, 5, 2, 6, 0, 2, 5, 4};
static const int32_t target_out[ROWS * TARGET] = {4, 5, 3, 6, 3, -1, 5, 4, 3};
static at_source full_source = {.rows = ROWS, .length = SOURCE, .ids = source_ids, .lengths = source_lengths};

/* For a model that reads pictures, the first id of a row is its picture, whose encoder here halves both sides: pictures 4,
 * 5 and 2 of the rows above have as many cells as these have units, and picture CELLS_1 + n has n + 1 cells. */
enum { CELLS_1 = WORDS, CASE_PICTURES = CELLS_1 + 8 };
static at_pictures *case_pictures;

__attribute__((constructor)) static void make_pictures(void)
{
    static const int sizes[WORDS][2] = {{1, 1}, {2, 2}, {2, 5}, {2, 3}, {4, 3}, {2, 1}, {1, 2}};
    at_error error = {0};
    at_rng rng = {.seed = 9}; /* none of these pictures brings a relu near its kink */
    case_pictures = at_pictures_new(&(at_picture_form){.channels = 1}, &error);
    for (int i = 0; i < CASE_PICTURES && case_pictures; i++) {
        const int height = i < WORDS ? sizes[i][0] : 2, width = i < WORDS ? sizes[i][1] : 2 * (i - CELLS_1 + 1);
        at_image image = {height, width, 1, malloc((size_t)(height * width))};
        for (int p = 0; p < height * width; p++)
            image.bytes[p] = (uint8_t)at_rng_below(&rng, 256);
        if (!at_pictures_add_image(case_pictures, &image, "a case", &error))
            abort();
        at_image_free(&image);
    }
    full_source.pictures = case_pictures;
}
__attribute__((destructor)) static void free_pictures(void)
{
    at_pictures_free(case_pictures);
}
#define PICTURES "image-channels=1 conv=3x3s2,4x3 "

/* Model, then NAME=VALUE with blanks between. */
static const char *const model_cases[] = {
    "bahdanau",
    "bahdanau reset=after",
    "bahdanau reset=after-bias",
    "nematus",
    "nematus score=dot normaliser=sparsemax heads=2 window=local-m:1",
    "nematus normaliser=hard gate=true",
    "nematus coverage=2 coverage-width=3",
    "nematus normaliser=hard hard-training=exact",
    "nematus coverage=1 normaliser=hard hard-training=exact gate=true dropout=0.3 window=local-m:1",
    "rnn-plain cell=gru reset=after-bias",
    "bahdanau cell=lstm",
    "bahdanau score=dot normaliser=sparsemax heads=2",
    "bahdanau score=general normaliser=entmax15",
    "bahdanau score=scaled normaliser=sigmoid window=local-m:1",
    "bahdanau window=local-p:1 normaliser=relu score=general position=t5:4",
    "bahdanau normaliser=hard position=shaw:1",
    "bahdanau attention-dropout=0.3",
    "bahdanau gate=true",
    "bahdanau coverage=3 window=local-p:2",
    "bahdanau coverage=2 coverage-width=3 heads=2 cell=lstm normaliser=entmax15",
    "bahdanau normaliser=hard hard-training=exact",
    "bahdanau normaliser=hard hard-training=exact gate=true dropout=0.3 window=local-m:1 position=t5:4 score=general",
    "luong",
    "luong cell=gru layers=2 score=dot input-feeding=true",
    "luong cell=gru reset=after layers=2 bidirectional=true",
    "luong layers=2 bidirectional=true score=additive window=local-p:1 input-feeding=true",
    "luong score=dot window=local-m:1",
    "luong window=local-p:2 heads=2 position=shaw:1",
    "luong normaliser=hard layers=2 score=additive:sigmoid",
    "luong attention-dropout=0.4 window=local-p:2 input-feeding=true",
    "luong dropout=0.3 layers=3 cell=rnn score=scaled position=alibi",
    "luong gate=true input-feeding=true score=dot",
    "luong coverage=2 score=additive",
    "luong coverage=2 coverage-width=7 score=additive:sigmoid input-feeding=true heads=2 normaliser=hard",
    "luong normaliser=hard hard-training=exact",
    "luong normaliser=hard hard-training=exact input-feeding=true gate=true layers=2 window=local-p:1 dropout=0.2",
    "rnn-plain",
    "rnn-plain cell=lstm dropout=0",
    "rnn-plain cell=gru dropout=0",
    "rnn-attention",
    "rnn-attention cell=gru reset=after score=additive:relu normaliser=sparsemax dropout=0",
    "rnn-attention cell=gru dropout=0",
    "rnn-attention dropout=0 score=dot window=local-m:1 position=rope",
    "rnn-attention gate=true cell=lstm dropout=0",
    "rnn-attention coverage=1 score=additive normaliser=hard hard-training=exact dropout=0 window=local-m:1",
    "rnn-attention normaliser=hard hard-training=exact dropout=0",
    "rnn-attention normaliser=hard hard-training=exact gate=true position=shaw:1:keys",
    "rnn-encdec",
    "rnn-encdec reset=after",
    "rnn-encdec cell=lstm",
    "rnn-encdec cell=rnn dropout=0.2",
    "show-attend-tell " PICTURES,
    "show-attend-tell " PICTURES "cell=gru gate=false deep-output=linear start-layer=7",
    "show-attend-tell " PICTURES "position=sinusoidal score=dot normaliser=sparsemax",
    "show-attend-tell " PICTURES "normaliser=hard dropout=0.2",
    "show-attend-tell " PICTURES "normaliser=hard hard-training=exact",
    "show-attend-tell " PICTURES "normaliser=hard hard-training=exact deep-output=linear gate=false dropout=0.3",
    "show-attend-tell " PICTURES "coverage=2 coverage-width=3",
    "show-attend-tell " PICTURES "coverage=3 normaliser=hard hard-training=exact cell=gru",
    "show-attend-tell image-channels=1 conv=4x3p2,4x3r,5x1 score=general heads=1 attention-dropout=0.2",
    "transformer layers=2 heads=2 norm=post dropout=0",
    "transformer layers=2 heads=2 norm=pre activation=gelu position=learned tie=false output-bias=true dropout=0",
    "transformer layers=1 heads=2 kv-heads=1 norm=pre final-norm=false activation=swish position=shaw:1 dropout=0.2",
    "transformer layers=1 heads=2 norm=post decoder-layers=2 share-embeddings=true final-norm=true position=rope "
    "dropout=0",
    "transformer layers=1 heads=1 norm=post normaliser=sparsemax window=sliding:1 position=alibi activation=gelu "
    "dropout=0",
    "transformer layers=1 heads=2 norm=post position=t5:4 score=general cross-attention=additive,local-p:1 dropout=0",
    "transformer layers=1 heads=2 norm=post score=additive encoder-attention=dot,entmax15,local-m:1 "
    "position-layout=halves "
    "position-denominator=half-1 first-position=1 scale-embedding=false dropout=0",
    "transformer layers=1 heads=2 norm=post position=none dropout=0",
    "transformer layers=1 heads=2 norm=post position=shaw:1:keys cross-attention=shaw:1:values dropout=0",
    "transformer layers=1 heads=2 position=shaw:2:values norm=pre decoder-attention=rope cross-attention=alibi "
    "dropout=0",
    "transformer layers=1 heads=2 norm=post kv-heads=1 position=learned positions=8 first-position=1 "
    "decoder-attention=t5:4 "
    "dropout=0",
    "transformer layers=1 heads=2 norm=post kv-heads=1 attention-dropout=0.3 ffn-dropout=0.4 activation=gelu dropout=0",
    "transformer layers=1 heads=2 norm=post position=shaw:1 attention-dropout=0.2 ffn-dropout=0 activation=gelu "
    "dropout=0.3",
    "transformer-lm layers=2 heads=2 norm=post activation=gelu dropout=0",
    "transformer-lm layers=1 heads=2 norm=post activation=gelu attention-dropout=0.25 dropout=0",
    "transformer-lm layers=1 heads=2 norm=post position=shaw:1 activation=gelu dropout=0",
    "transformer-lm layers=1 heads=2 norm=post position=alibi activation=gelu dropout=0",
    "transformer-lm layers=1 heads=2 position=t5:4 norm=pre dropout=0",
    "transformer-lm layers=1 heads=2 norm=post position=learned activation=gelu dropout=0",
    "transformer-lm layers=1 heads=2 norm=pre normaliser=relu position=rope decoder-attention=sliding:1 dropout=0",
};
enum { MODEL_CASES = sizeof model_cases / sizeof *model_cases };

static inline bool has_case(const char *model)
{
    const size_t size = strlen(model);
    for (int i = 0; i < MODEL_CASES; i++)
        if (strncmp(model_cases[i], model, size) == 0 && (!model_cases[i][size] || model_cases[i][size] == ' '))
            return true;
    return false;
}

/* The cases above, then each model of the table that they lack, with its defaults; NULL past the last. */
static inline const char *model_case(int index)
{
    if (index < MODEL_CASES)
        return model_cases[index];
    index -= MODEL_CASES;
    for (int i = 0; at_model_kind_at(i); i++)
        if (!has_case(at_model_kind_at(i)->name) && index-- == 0)
            return at_model_kind_at(i)->name;
    return NULL;
}

/* A model of the given size with random parameters, biases included: zeros could hide an error in a padded step. */
static inline at_model *case_model(const char *text, int size, uint64_t seed)
{
    static const char *const sizes[] = {"embedding", "hidden", "attention", "maxout", "ffn"};
    at_error error = {0};
    at_model_settings settings = {.source_size = WORDS, .target_size = WORDS};
    at_given given = {0};
    char copy[240], *rest = NULL, number[16];
    snprintf(copy, sizeof copy, "%s", text);
    at_model_set(&settings, &given, "model", strtok_r(copy, " ", &rest), &error);
    for (char *word; (word = strtok_r(NULL, " ", &rest));) {
        char *equals = strchr(word, '=');
        *equals = '\0';
        at_model_set(&settings, &given, word, equals + 1, &error);
    }
    at_model_settings probe = settings;
    for (int i = 0; i < 5; i++) { /* those the model uses */
        at_error refused = {0};
        at_given more = given;
        snprintf(number, sizeof number, "%d", size + 2 * (i == 0));
        at_model_set(&probe, &more, sizes[i], number, &refused);
        if (at_model_settings_complete(&probe, &more, &refused)) {
            at_model_set(&settings, &given, sizes[i], number, &error);
        }
        probe = settings;
    }
    if (!at_model_settings_complete(&settings, &given, &error))
        fail_msg("%s: %s", text, error.text);
    at_model *model = at_model_new(&settings, seed, &error);
    if (!model)
        fail_msg("%s: %s", text, error.text);
    for (int i = 0; i < at_params_number(model->params); i++)
        at_init_normal(model->params, i, size < 8 ? 0.5 : 0.15, 15 + seed);
    return model;
}

static inline void check_tape(const char *what, at_tape *tape)
{
    if (!at_tape_ok(tape))
        fail_msg("%s: %s", what, at_tape_error(tape)->text);
}

/* The logits [rows,n,WORDS] and weights [rows,n,length] of a source, in the tape's memory. */
static inline at_decoded case_decode(at_model *model, const at_pass *pass, const at_source *source, const int32_t *ids,
                                     int64_t n)
{
    at_parts encoded = at_model_encode(model, pass, source);
    at_parts state = at_model_start(model, pass, source, &encoded);
    return at_model_decode(model, pass, source, &encoded, &state, ids, n);
}

/* The same position by position, with the state saved between tapes and its rows reversed and reversed back in
 * between. Logits into [ROWS,TARGET,WORDS], weights (if any) into [ROWS,TARGET,SOURCE]. */
static inline void case_steps(at_model *model, at_real *logits, at_real *weights)
{
    at_error error = {0};
    at_arena *arena = at_arena_new();
    at_pass pass = {.tape = at_tape_new(arena, false), .cache = at_cache_new(), .wants_weights = true};
    at_saved *memory = at_saved_new(), *state = at_saved_new();
    at_parts parts = at_model_encode(model, &pass, &full_source);
    at_parts begun = at_model_start(model, &pass, &full_source, &parts);
    check_tape(model->kind->name, pass.tape);
    assert_true(at_saved_store(memory, &parts, &error) && at_saved_store(state, &begun, &error));
    for (int t = 0; t < TARGET; t++) {
        const int64_t rotation[] = {2, 0, 1}, back[] = {1, 2, 0};
        assert_true(at_saved_select(state, rotation, ROWS, &error) && at_saved_select(state, back, ROWS, &error));
        if (at_cache_rows(pass.cache) > 0)
            assert_true(at_cache_select(pass.cache, rotation, ROWS, &error) &&
                        at_cache_select(pass.cache, back, ROWS, &error));
        at_arena_reset(arena);
        pass.tape = at_tape_new(arena, false);
        int32_t ids[ROWS];
        for (int b = 0; b < ROWS; b++)
            ids[b] = target_in[b * TARGET + t];
        parts = at_saved_load(memory, pass.tape);
        begun = at_saved_load(state, pass.tape);
        at_decoded d = at_model_decode(model, &pass, &full_source, &parts, &begun, ids, 1);
        check_tape(model->kind->name, pass.tape);
        for (int b = 0; b < ROWS; b++) {
            memcpy(logits + (b * TARGET + t) * WORDS, d.logits->value + b * WORDS, WORDS * sizeof *logits);
            if (d.weights)
                memcpy(weights + (b * TARGET + t) * SOURCE, d.weights->value + b * SOURCE, SOURCE * sizeof *weights);
        }
        assert_true(at_saved_store(state, &begun, &error));
    }
    at_cache_free(pass.cache);
    at_saved_free(memory);
    at_saved_free(state);
    at_arena_free(arena);
}

#endif
