/* Models of CTranslate2, as its converters write them: model.bin of version 6 (ct2_file_internal.h) with the specification
 * TransformerSpec 7, config.json, vocabularies as JSON; and source.spm and target.spm, or tokenizer.json, with which text
 * is cut into words.
 *
 * CTranslate2 computes its own sinusoids (halves, exponents over d/2 - 1, first position 1). Others are stored as a table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "store/ct2_file_internal.h"
#include "store/export_internal.h"

enum {
    VERSION = 6,
    REVISION = 7,
    LEAST_POSITIONS = 1024
}; /* it cuts a source after 1024 tokens, unless told otherwise */

typedef struct ct2_writer {
    at_export *x;
    at_writer *file; /* NULL: variables and aliases are only counted */
    uint32_t variables, aliases;
} ct2_writer;

/* ---- Bytes ---------------------------------------------------------------------------------------------------- */

static bool put(ct2_writer *w, const void *bytes, size_t size)
{
    return !w->file || at_writer_add(w->file, bytes, size, w->x->error);
}

static bool put_number(ct2_writer *w, uint32_t number, size_t size)
{
    unsigned char bytes[4];
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(number >> 8 * i);
    return put(w, bytes, size);
}

static bool put_string(ct2_writer *w, const char *text)
{
    const size_t size = strlen(text) + 1;
    return put_number(w, (uint32_t)size, 2) && put(w, text, size);
}

static bool put_variable(ct2_writer *w, const char *name, at_ct2_type type, int rank, const int64_t *dim,
                         const void *data)
{
    static const size_t item[AT_CT2_TYPES] = {4, 1, 2, 4, 2, 2};
    size_t size = item[type];
    bool done = put_string(w, name) && put_number(w, (uint32_t)rank, 1);
    for (int i = 0; i < rank; i++) {
        done = done && put_number(w, (uint32_t)dim[i], 4);
        size *= (size_t)dim[i];
    }
    if (size > UINT32_MAX)
        return at_fail(w->x->error, AT_UNSUPPORTED, "CTranslate2 cannot take this model: '%s' has more than 4 GiB",
                       name);
    w->variables++;
    return done && put_number(w, type, 1) && put_number(w, (uint32_t)size, 4) && put(w, data, size);
}

/* SIDE/NAME, a number of the settings. */
static bool put_setting(ct2_writer *w, const char *side, const char *name, at_ct2_type type, int value)
{
    char full[AT_CT2_NAME];
    const int16_t wide = (int16_t)value;
    const int8_t narrow = (int8_t)value;
    snprintf(full, sizeof full, "%s/%s", side, name);
    return put_variable(w, full, type, 0, NULL, type == AT_CT2_I16 ? (const void *)&wide : &narrow);
}

/* ---- Parameters ----------------------------------------------------------------------------------------------- */

static at_ct2_type type_of(at_dtype dtype)
{
    return dtype == AT_I8 ? AT_CT2_I8 : dtype == AT_F16 ? AT_CT2_F16 : dtype == AT_BF16 ? AT_CT2_BF16 : AT_CT2_F32;
}

/* w = q / scale, where ours is w = q scale. A row of zeros has the scale 1. */
static bool put_scale(ct2_writer *w, const char *name, at_exported *exported)
{
    char full[AT_CT2_NAME];
    snprintf(full, sizeof full, "%s_scale", name);
    for (int64_t r = 0; r < exported->rows; r++)
        exported->scale[r] = exported->scale[r] > 0 ? 1 / exported->scale[r] : 1;
    return put_variable(w, full, AT_CT2_F32, 1, &exported->rows, exported->scale);
}

static bool put_parameter(ct2_writer *w, const char *theirs, const char *ours)
{
    at_exported exported;
    const bool done = at_exported_take(w->x, ours, &exported) &&
                      put_variable(w, theirs, type_of(exported.array.dtype), exported.array.rank, exported.array.dim,
                                   exported.array.data) &&
                      (!exported.scale || put_scale(w, theirs, &exported));
    at_exported_free(&exported);
    return done;
}

static bool put_pair(void *context, const char *ours, const char *theirs, bool may_lack)
{
    ct2_writer *w = context;
    (void)may_lack;
    return at_params_find(w->x->params, ours) < 0 || put_parameter(w, theirs, ours);
}

static bool is_own_sinusoid(const at_model_settings *s)
{
    return s->position_layout == AT_HALVES && s->position_denominator == AT_HALF_LESS_ONE && s->first_position == 1;
}

/* Sinusoids that CTranslate2 does not compute, as a table for both sides. */
static bool put_sinusoids(ct2_writer *w, const char *name)
{
    const at_model_settings *s = w->x->settings;
    const int64_t most = w->x->translator->max_length + 2, rows = most > LEAST_POSITIONS ? most : LEAST_POSITIONS;
    const int64_t dim[2] = {rows, s->hidden};
    at_real *values = malloc((size_t)(rows * s->hidden) * sizeof *values);
    float *table = malloc((size_t)(rows * s->hidden) * sizeof *table);
    bool done = values && table;
    if (done) {
        at_sinusoids(s, (int64_t)s->first_position, rows, values);
        for (int64_t i = 0; i < rows * s->hidden; i++)
            table[i] = (float)values[i];
        done = put_variable(w, name, AT_CT2_F32, 2, dim, table);
    } else {
        at_no_memory(w->x->error, "a table of positions");
    }
    free(values);
    free(table);
    return done;
}

#define SOURCE_POSITIONS "encoder/position_encodings/encodings"
#define TARGET_POSITIONS "decoder/position_encodings/encodings"
#define SOURCE_E         "encoder/embeddings_0/weight"
#define TARGET_E         "decoder/embeddings/weight"
#define OUTPUT_W         "decoder/projection/weight"

static bool stores_sinusoids(const ct2_writer *w)
{
    return w->x->translator->model->added == AT_ADDED_SINUSOIDAL && !is_own_sinusoid(w->x->settings);
}

static bool put_positions(ct2_writer *w)
{
    if (w->x->translator->model->added == AT_ADDED_LEARNED)
        return put_parameter(w, SOURCE_POSITIONS, "source.P") && put_parameter(w, TARGET_POSITIONS, "target.P");
    return !stores_sinusoids(w) || put_sinusoids(w, SOURCE_POSITIONS);
}

static bool put_embeddings(ct2_writer *w)
{
    const at_model_settings *s = w->x->settings;
    return (s->share_embeddings || put_parameter(w, SOURCE_E, "source.E")) && put_parameter(w, TARGET_E, "target.E") &&
           (s->tie || put_parameter(w, OUTPUT_W, "output.W")) &&
           (!s->output_bias || put_parameter(w, "decoder/projection/bias", "output.b"));
}

static bool put_alias(ct2_writer *w, const char *alias, const char *name)
{
    w->aliases++;
    return put_string(w, alias) && put_string(w, name);
}

/* Names of the same data: of a matrix also its scale. */
static bool put_aliases(ct2_writer *w)
{
    const at_model_settings *s = w->x->settings;
    const bool scaled = at_params_type(w->x->params, at_params_find(w->x->params, "target.E")) == AT_NUMBERS_INT8;
    w->aliases = 0;
    return (!s->share_embeddings ||
            (put_alias(w, SOURCE_E, TARGET_E) && (!scaled || put_alias(w, SOURCE_E "_scale", TARGET_E "_scale")))) &&
           (!s->tie ||
            (put_alias(w, OUTPUT_W, TARGET_E) && (!scaled || put_alias(w, OUTPUT_W "_scale", TARGET_E "_scale")))) &&
           (!stores_sinusoids(w) || put_alias(w, TARGET_POSITIONS, SOURCE_POSITIONS));
}

/* ---- Settings ------------------------------------------------------------------------------------------------- */

static bool put_side(ct2_writer *w, const char *side)
{
    const at_model_settings *s = w->x->settings;
    return put_setting(w, side, "num_heads", AT_CT2_I16, (int)s->heads) &&
           put_setting(w, side, "pre_norm", AT_CT2_I8, s->norm == AT_PRE_NORM) &&
           put_setting(w, side, "activation", AT_CT2_I8,
                       s->activation == AT_SWISH_UNITS  ? 2
                       : s->activation == AT_GELU_UNITS ? 3
                                                        : 0) &&
           put_setting(w, side, "scale_embeddings", AT_CT2_I8, s->scale_embedding);
}

/* The guided head, if it is the first of its layer, aligns; otherwise the first of the last layer. */
static bool put_alignment(ct2_writer *w)
{
    const at_model *model = w->x->translator->model;
    const bool guided = model->guided_layer > 0 && model->guided_head == 1;
    return put_setting(w, "decoder", "alignment_layer", AT_CT2_I16, guided ? model->guided_layer - 1 : -1) &&
           put_setting(w, "decoder", "alignment_heads", AT_CT2_I16, 1);
}

static bool put_variables(ct2_writer *w)
{
    const at_model_settings *s = w->x->settings;
    const bool has_final = at_export_has_final_norm(s);
    w->variables = 0;
    return put_side(w, "encoder") && put_setting(w, "encoder", "embeddings_merge", AT_CT2_I8, 0) &&
           put_side(w, "decoder") && put_setting(w, "decoder", "start_from_zero_embedding", AT_CT2_I8, 0) &&
           put_alignment(w) && put_embeddings(w) && put_positions(w) &&
           at_ct2_each("encoder", s->layers, has_final, put_pair, w) &&
           at_ct2_each("decoder", s->decoder_layers ? s->decoder_layers : s->layers, has_final, put_pair, w);
}

/* First everything is counted, then written. */
static bool put_model(ct2_writer *w)
{
    uint32_t variables, aliases;
    at_writer *file = w->file;
    w->file = NULL;
    if (!put_variables(w) || !put_aliases(w))
        return false;
    variables = w->variables;
    aliases = w->aliases;
    w->file = file;
    return put_number(w, VERSION, 4) && put_string(w, "TransformerSpec") && put_number(w, REVISION, 4) &&
           put_number(w, variables, 4) && put_variables(w) && put_number(w, aliases, 4) && put_aliases(w);
}

static bool write_model(at_export *x)
{
    char *path = at_folder_path(x->folder, "model.bin", x->error);
    ct2_writer w = {.x = x, .file = path ? at_writer_open(path, x->error) : NULL};
    at_writer *file = w.file;
    if (file) {
        put_model(&w);
        at_writer_commit(file, x->error);
    }
    free(path);
    return x->error->code == AT_OK;
}

static bool write_config(at_export *x)
{
    const at_export_words *target = &x->target;
    return at_export_json(
        x, "config.json",
        json_pack("{s:b,s:b,s:s,s:s,s:s,s:s,s:f,s:b,s:o}", "add_source_bos", x->source.begins, "add_source_eos",
                  x->source.ends, "bos_token", at_export_special(target, AT_BEGIN), "decoder_start_token",
                  at_export_special(target, AT_BEGIN), "eos_token", at_export_special(target, AT_END), "unk_token",
                  at_export_special(target, AT_UNKNOWN), "layer_norm_epsilon", x->settings->norm_epsilon,
                  "multi_query_attention", 0, "attend", at_export_units(x)));
}

static bool write_words(at_export *x)
{
    if (json_equal(x->source.list, x->target.list))
        return at_export_json(x, "shared_vocabulary.json", json_incref(x->target.list));
    return at_export_json(x, "source_vocabulary.json", json_incref(x->source.list)) &&
           at_export_json(x, "target_vocabulary.json", json_incref(x->target.list));
}

static bool write(at_export *x)
{
    return write_model(x) && write_config(x) && write_words(x) &&
           at_export_pieces(x, x->translator->source, "source.spm") &&
           at_export_pieces(x, x->translator->target, "target.spm") && at_export_tokenizer(x, false);
}

static bool fits(const at_export *x)
{
    const at_added added = x->translator->model->added;
    char position[32];
    if (!at_export_position(x, position))
        return false;
    const bool shaw = strncmp(position, "shaw", 4) == 0 && !strstr(position, ":values");
    if (added == AT_ADDED_NONE && !shaw)
        return at_export_refuse(x, "position", position, "sinusoidal, learned, shaw:K or shaw:K:keys");
    if (added != AT_ADDED_NONE && strcmp(position, "none") != 0)
        return at_export_refuse(x, "encoder-attention", position, "either this or `position` none");
    return true;
}

const at_export_format at_writer_ctranslate2 = {
    .name = "ctranslate2", .title = "CTranslate2", .fits = fits, .write = write, .renames = true};
