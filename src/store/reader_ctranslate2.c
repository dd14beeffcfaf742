/* Models of CTranslate2: a folder with model.bin (ct2_file_internal.h) and vocabularies, or the path of its model.bin.
 * Weights are [out, in], as ours. A text is tokens with blanks between, unless the folder has source.spm and target.spm, as
 * many have, or attend wrote it. */
#include "store/readers_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/json.h"
#include "io/dtype.h"
#include "store/ct2_file_internal.h"
#include "store/imported_internal.h"

typedef struct ct2_model {
    const at_bundle *bundle;
    const char *inside; /* the folder of the bundle: "" or "model/" */
    char *path;         /* of model.bin, for error messages */
    at_ct2_file file;
    json_t *config; /* config.json, or NULL */
    at_error *error;
} ct2_model;

/* ---- Parameters ----------------------------------------------------------------------------------------------- */

typedef struct ct2_parameters {
    ct2_model *f;
    at_params *params;
} ct2_parameters;

/* Our parameter OURS is their variable THEIRS, which must have its shape. A layer without a bias has zeros. */
static bool set(void *context, const char *ours, const char *theirs, bool may_lack)
{
    const ct2_parameters *p = context;
    ct2_model *f = p->f;
    const int index = at_params_find(p->params, ours);
    const at_ct2_variable *v = at_ct2_find(&f->file, theirs);
    const bool table = index >= 0 && strstr(theirs, "relative_position"); /* which the settings say there is */
    if (index < 0 || (!v && may_lack && !table))
        return true;
    if (!v)
        return at_fail(f->error, AT_UNSUPPORTED, "'%s' lacks '%s', which every Transformer of this kind has", f->path,
                       theirs);
    const at_shape shape = at_params_shape(p->params, index);
    char is[AT_SHAPE_TEXT], needs[AT_SHAPE_TEXT];
    if (v->rank != shape.rank || memcmp(v->dim, shape.dim, (size_t)shape.rank * sizeof *shape.dim) != 0)
        return at_fail(f->error, AT_FORMAT, "'%s': '%s' is %s, and its other sizes need %s", f->path, theirs,
                       at_dims_text(v->rank, v->dim, is), at_dims_text(shape.rank, shape.dim, needs));
    return at_ct2_copy(&f->file, v, at_params_value(p->params, index));
}

/* ---- Words ---------------------------------------------------------------------------------------------------- */

/* The name of a file in the bundle. */
static const char *inside(const ct2_model *f, const char *name, char room[AT_CT2_NAME])
{
    snprintf(room, AT_CT2_NAME, "%s%s", f->inside, name);
    return room;
}

/* The words of a side: SIDE_vocabulary or shared_vocabulary, .txt or .json. */
static bool read_words(ct2_model *f, const char *side, at_row_names *names)
{
    const char *const kinds[] = {side, "shared"}, *const endings[] = {"txt", "json"};
    char file[64], room[AT_CT2_NAME];
    size_t size;
    for (int i = 0; i < 4 && f->error->code == AT_OK; i++) {
        snprintf(file, sizeof file, "%s_vocabulary.%s", kinds[i / 2], endings[i % 2]);
        const char *name = inside(f, file, room);
        char *text = (char *)at_bundle_read(f->bundle, name, &size, f->error);
        if (!text)
            continue;
        json_t *list = i % 2 ? at_json_read(text, size, name, f->error) : NULL;
        const bool done = i % 2 ? list && at_row_names_of_json(list, name, names, f->error)
                                : at_row_names_of_text(text, size, name, names, f->error);
        json_decref(list);
        free(text);
        return done;
    }
    return at_fail(f->error, AT_FILE, "'%s' has neither %s_vocabulary nor shared_vocabulary, .txt or .json",
                   f->bundle->folder, side);
}

/* A text of the settings: of config.json, or a variable of bytes. */
static const char *text_of(const ct2_model *f, const char *name, char room[AT_CT2_NAME], const char *fallback)
{
    const char *text = json_string_value(json_object_get(f->config, name));
    const at_ct2_variable *v = at_ct2_find(&f->file, name);
    if (text || !v || v->type != AT_CT2_I8 || v->count >= AT_CT2_NAME)
        return text ? text : fallback;
    memcpy(room, v->data, (size_t)v->count);
    room[v->count] = '\0';
    return room;
}

static bool flag_of(const ct2_model *f, const char *in_config, const char *in_file, bool fallback)
{
    const json_t *value = json_object_get(f->config, in_config);
    const at_ct2_variable *v = at_ct2_find(&f->file, in_file);
    return value ? json_is_true(value) : v && v->count == 1 ? at_ct2_value(v, 0) != 0 : fallback;
}

/* ---- The model ------------------------------------------------------------------------------------------------ */

/* Both sides, with the rows that their embeddings and the output layer have. */
typedef struct sides {
    at_row_ids source, target;
    at_row_ids input; /* the target's, for its embeddings: the beginning may be another word there, or zeros */
    const at_ct2_variable *source_E, *target_E, *output_W, *output_b;
} sides;

static const at_ct2_variable *need(ct2_model *f, const char *name, int rank)
{
    const at_ct2_variable *v = at_ct2_find(&f->file, name);
    if (v && v->rank == rank && v->count > 0)
        return v;
    at_fail(f->error, AT_UNSUPPORTED,
            "'%s' (%s) lacks '%s': attend reads the Transformers of CTranslate2 that have an encoder and a "
            "decoder",
            f->path, f->file.version > 1 ? f->file.spec : "version 1", name);
    return NULL;
}

static bool find_matrices(ct2_model *f, sides *s)
{
    s->source_E = at_ct2_find(&f->file, "encoder/embeddings_0/weight");
    if (!s->source_E)
        s->source_E = need(f, "encoder/embeddings/weight", 2);
    s->target_E = need(f, "decoder/embeddings/weight", 2);
    s->output_W = at_ct2_find(&f->file, "decoder/projection/weight");
    s->output_b = at_ct2_find(&f->file, "decoder/projection/bias");
    if (!s->output_W)
        s->output_W = s->target_E;
    if (f->error->code != AT_OK)
        return false;
    const int64_t d = s->target_E->dim[1], rows = s->target_E->dim[0];
    if (s->source_E->rank != 2 || s->source_E->count == 0 || s->source_E->dim[1] != d || s->output_W->rank != 2 ||
        s->output_W->dim[0] != rows || s->output_W->dim[1] != d || (s->output_b && s->output_b->count != rows))
        return at_ct2_refuse(&f->file, "its embeddings and its output layer do not fit each other");
    return true;
}

/* The row that the decoder is given first. */
static bool find_start(ct2_model *f, sides *s, const at_row_names *words, const char *begin)
{
    char room[AT_CT2_NAME];
    const char *start = text_of(f, "decoder_start_token", room, begin);
    const size_t size = (size_t)s->target.units * sizeof *s->target.row;
    s->input = (at_row_ids){.row = malloc(size), .units = s->target.units};
    if (!s->input.row)
        return at_no_memory(f->error, "the words of '%s'", f->path);
    memcpy(s->input.row, s->target.row, size);
    if (at_ct2_number(&f->file, "decoder", "start_from_zero_embedding", 0) != 0) {
        s->input.row[AT_BEGIN] = -1;
        return true;
    }
    s->input.row[AT_BEGIN] = at_row_named(words, start);
    if (s->input.row[AT_BEGIN] >= 0 && s->input.row[AT_BEGIN] < s->target_E->dim[0])
        return true;
    return at_fail(f->error, AT_FORMAT, "the words of '%s' lack '%s', which its decoder begins with", f->bundle->folder,
                   start);
}

static bool read_sides(ct2_model *f, sides *s)
{
    char unknown[AT_CT2_NAME], begin[AT_CT2_NAME], end[AT_CT2_NAME];
    const at_row_specials all = {.unknown = text_of(f, "unk_token", unknown, "<unk>"),
                                 .begin = text_of(f, "bos_token", begin, "<s>"),
                                 .end = text_of(f, "eos_token", end, "</s>")};
    at_row_names words[2] = {0};
    static const char *const side[] = {"source", "target"};
    bool done = find_matrices(f, s);
    for (int i = 0; done && i < 2; i++) {
        at_row_specials specials = all;
        const char *cut = at_row_ids_cut(f->config, side[i]);
        specials.characters = cut && strcmp(cut, "char") == 0;
        done = read_words(f, side[i], &words[i]);
        for (int64_t r = 0; done && r < words[i].count && !specials.pad; r++)
            if (strcmp(words[i].name[r], "<blank>") == 0 || strcmp(words[i].name[r], "<pad>") == 0)
                specials.pad = words[i].name[r];
        done = done && at_row_ids_make(&words[i], (i ? s->target_E : s->source_E)->dim[0], &specials,
                                       i ? &s->target : &s->source, f->error);
    }
    if (done && s->target.row[AT_END] < 0)
        done =
            at_fail(f->error, AT_FORMAT, "the words of '%s' lack '%s', which ends a line", f->bundle->folder, all.end);
    done = done && find_start(f, s, &words[1], all.begin);
    if (done)
        at_vocabulary_frame(s->source.vocabulary, flag_of(f, "add_source_bos", "with_source_bos", false),
                            flag_of(f, "add_source_eos", "with_source_eos", false));
    at_row_names_free(&words[0]);
    at_row_names_free(&words[1]);
    return done;
}

static int64_t count_layers(const ct2_model *f, const char *side)
{
    char name[AT_CT2_NAME];
    for (int64_t l = 0;; l++) {
        snprintf(name, sizeof name, "%s/layer_%lld/ffn/linear_0/weight", side, (long long)l);
        if (!at_ct2_find(&f->file, name))
            return l;
    }
}

/* A number that revision 5 has for either side, and earlier ones for both; the encoder's is taken. */
static int side_number(const ct2_model *f, const char *name, int fallback)
{
    const at_ct2_variable *v = at_ct2_find(&f->file, name);
    return (int)at_ct2_number(&f->file, "encoder", name, v && v->count == 1 ? (double)at_ct2_value(v, 0) : fallback);
}

static bool is_known(ct2_model *f)
{
    static const char *const foreign[][2] = {
        {"encoder/layernorm_embedding/gamma", "a layer norm after the embeddings"},
        {"encoder/layer_0/self_attention/relative_asymmetric_position_keys", "relative positions of another kind"},
        {"encoder/layer_0/self_attention/relative_attention_bias", "a bias for each offset"},
        {"encoder/layer_0/ffn/linear_0_noact/weight", "a gate in its feed-forward layers"},
        {"decoder/layer_0/self_attention/queries_scale", "its own scale of queries"}};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (at_ct2_find(&f->file, foreign[i][0]))
            return at_fail(f->error, AT_UNSUPPORTED, "'%s' has %s, which this reader does not know", f->path,
                           foreign[i][1]);
    return true;
}

static bool put(at_model_settings *settings, at_given *given, const char *name, const char *value, at_error *error)
{
    return at_model_set(settings, given, name, value, error);
}

static bool put_number(at_model_settings *settings, at_given *given, const char *name, double value, at_error *error)
{
    char text[40];
    snprintf(text, sizeof text, "%.9g", value);
    return at_model_set(settings, given, name, text, error);
}

/* Shaw's relative positions: tables [2k+1,head] of keys and of values. */
static bool set_relative(ct2_model *f, const at_ct2_variable *keys, at_model_settings *m, at_given *given)
{
    const bool values = at_ct2_find(&f->file, "encoder/layer_0/self_attention/relative_position_values");
    char position[40];
    if (keys->rank != 2 || keys->dim[0] % 2 == 0)
        return at_ct2_refuse(&f->file, "its tables of relative positions have an even number of rows");
    snprintf(position, sizeof position, "shaw:%lld%s", (long long)keys->dim[0] / 2, values ? "" : ":keys");
    return put(m, given, "position", position, f->error);
}

/* Positions: relative ones, those stored, or sines in one half and cosines in the other, the first position 1. */
static bool set_positions(ct2_model *f, at_model_settings *m, at_given *given)
{
    const at_ct2_variable *keys = at_ct2_find(&f->file, "encoder/layer_0/self_attention/relative_position_keys");
    if (keys)
        return set_relative(f, keys, m, given);
    const at_ct2_variable *P = at_ct2_find(&f->file, "encoder/position_encodings/encodings");
    if (P && P->rank == 2)
        return put(m, given, "position", "learned", f->error) &&
               put_number(m, given, "positions", (double)P->dim[0], f->error);
    return put(m, given, "position", "sinusoidal", f->error) && put(m, given, "position-layout", "halves", f->error) &&
           put(m, given, "position-denominator", "half-1", f->error) && put(m, given, "first-position", "1", f->error);
}

static bool set_settings(ct2_model *f, const sides *s, at_model_settings *m)
{
    static const char *const activations[] = {"relu", NULL, "swish", "gelu"};
    at_error *error = f->error;
    at_given given = {0};
    const int64_t layers = count_layers(f, "encoder"), decoder_layers = count_layers(f, "decoder");
    const at_ct2_variable *ffn = at_ct2_find(&f->file, "encoder/layer_0/ffn/linear_0/weight");
    const int activation = side_number(f, "activation", 0);
    const bool pre = side_number(f, "pre_norm", at_ct2_find(&f->file, "encoder/layer_norm/gamma") != NULL) != 0;
    const json_t *epsilon = json_object_get(f->config, "layer_norm_epsilon");
    const double scaled = at_ct2_number(&f->file, "encoder", "scale_embeddings",
                                        at_ct2_number(&f->file, "encoder", "embeddings/multiply_by_sqrt_depth", 1));
    if (!ffn || decoder_layers == 0)
        return need(f, "decoder/layer_0/ffn/linear_0/weight", 2);
    if (activation < 0 || activation > 3 || !activations[activation])
        return at_fail(error, AT_UNSUPPORTED,
                       "'%s' has activation %d of its feed-forward layers, and attend has relu (0), swish (2) and gelu "
                       "(3)",
                       f->path, activation);
    return put(m, &given, "model", "transformer", error) && put_number(m, &given, "layers", (double)layers, error) &&
           put_number(m, &given, "decoder-layers", (double)decoder_layers, error) &&
           put_number(m, &given, "hidden", (double)s->target_E->dim[1], error) &&
           put_number(m, &given, "ffn", (double)ffn->dim[0], error) &&
           put_number(m, &given, "heads",
                      side_number(f, "num_heads", strcmp(f->file.spec, "TransformerBig") == 0 ? 16 : 8), error) &&
           put(m, &given, "norm", pre ? "pre" : "post", error) &&
           put(m, &given, "final-norm", at_ct2_find(&f->file, "encoder/layer_norm/gamma") ? "true" : "false", error) &&
           put(m, &given, "activation", activations[activation], error) &&
           put_number(m, &given, "norm-epsilon", json_is_number(epsilon) ? json_number_value(epsilon) : 1e-5, error) &&
           put(m, &given, "scale-embedding", scaled != 0 ? "true" : "false", error) && set_positions(f, m, &given) &&
           put(m, &given, "tie", "false", error) && put(m, &given, "output-bias", "true", error) &&
           at_model_settings_complete(m, &given, error);
}

/* The rows of a matrix that our ids name. */
static bool set_rows(ct2_model *f, at_params *p, const char *ours, const at_ct2_variable *theirs, const at_row_ids *ids,
                     at_real missing)
{
    at_real *values = at_ct2_values(&f->file, theirs);
    if (values)
        at_rows_pick(ids, values, theirs->rank == 2 ? theirs->dim[1] : 1, missing,
                     at_params_value(p, at_params_find(p, ours)));
    free(values);
    return values;
}

/* Without a bias: that of units which the model does not have. */
static bool set_bias(ct2_model *f, at_params *p, const sides *s)
{
    at_real *b = at_params_value(p, at_params_find(p, "output.b"));
    if (s->output_b)
        return set_rows(f, p, "output.b", s->output_b, &s->target, AT_NEVER);
    for (int64_t i = 0; i < s->target.units; i++)
        b[i] = s->target.row[i] < 0 ? AT_NEVER : 0;
    return true;
}

static bool set_parameters(ct2_model *f, const at_model *model, const sides *s)
{
    at_params *p = model->params;
    const at_model_settings *m = &model->settings;
    const bool learned = strcmp(m->position, "learned") == 0, has_final = at_params_find(p, "encoder.norm.g") >= 0;
    ct2_parameters all = {f, p};
    return set_rows(f, p, "source.E", s->source_E, &s->source, 0) &&
           set_rows(f, p, "target.E", s->target_E, &s->input, 0) &&
           set_rows(f, p, "output.W", s->output_W, &s->target, 0) && set_bias(f, p, s) &&
           (!learned || (set(&all, "source.P", "encoder/position_encodings/encodings", false) &&
                         set(&all, "target.P", "decoder/position_encodings/encodings", false))) &&
           at_ct2_each("encoder", m->layers, has_final, set, &all) &&
           at_ct2_each("decoder", m->decoder_layers ? m->decoder_layers : m->layers, has_final, set, &all);
}

static bool load_parts(at_translator *t, ct2_model *f)
{
    sides s = {0};
    at_model_settings settings = {0};
    bool done = is_known(f) && read_sides(f, &s) && set_settings(f, &s, &settings);
    if (done) {
        settings.source_size = s.source.units;
        settings.target_size = s.target.units;
        /* A number takes a byte at least, and a matrix may serve as two of ours. */
        t->model = at_model_blank(&settings, 2 * (int64_t)f->file.size + 4 * AT_SPECIALS * settings.hidden, f->error);
        done = t->model && set_parameters(f, t->model, &s);
    }
    t->source = s.source.vocabulary;
    t->target = s.target.vocabulary;
    s.source.vocabulary = s.target.vocabulary = NULL;
    t->never_empty = true;
    if (done)
        at_params_changed(t->model->params);
    at_row_ids_free(&s.source);
    at_row_ids_free(&s.target);
    at_row_ids_free(&s.input);
    return done;
}

/* ---- The record ----------------------------------------------------------------------------------------------- */

/* A version that is known and, from 2 on, the name of a specification. */
static bool is_model_bin(const unsigned char *start, size_t size, bool alone)
{
    const bool version = size >= 17 && start[0] >= 1 && start[0] <= 6 && !start[1] && !start[2] && !start[3];
    return version && (start[0] == 1 ? !alone : memcmp(start + 6, "Transformer", 11) == 0);
}

/* The path of model.bin: in the folder, or the file itself. Release with free. */
static char *path_of(const char *path, at_error *error)
{
    at_buffer text = {0};
    at_buffer_print(&text, at_is_folder(path) ? "%s/model.bin" : "%s", path);
    if (text.failed)
        at_no_memory(error, "the path of '%s'", path);
    return text.bytes;
}

static bool knows(const char *path, at_error *error)
{
    unsigned char start[17] = {0};
    at_error unread = {0};
    char *file = path_of(path, error);
    const size_t size = file ? at_file_begin(file, start, sizeof start, &unread) : 0;
    free(file);
    return is_model_bin(start, size, !at_is_folder(path));
}

/* The type that most numbers have, ", int8", unless they are 32-bit floats. */
static void put_type(at_buffer *text, const at_ct2_file *file)
{
    static const char *const names[AT_CT2_TYPES] = {"", "int8", "int16", "int32", "float16", "bfloat16"};
    int64_t count[AT_CT2_TYPES] = {0};
    int most = AT_CT2_F32;
    for (int64_t i = 0; i < file->count; i++)
        count[file->variable[i].type] += file->variable[i].count;
    for (int type = 0; type < AT_CT2_TYPES; type++)
        most = count[type] > count[most] ? type : most;
    if (most != AT_CT2_F32)
        at_buffer_print(text, ", %s", names[most]);
}

/* "CTranslate2 version 6, TransformerSpec 7, int8", and what was left out. */
static bool describe(at_translator *t, const ct2_model *f)
{
    char room[AT_CT2_NAME];
    at_buffer text = {0};
    at_buffer_print(&text, "CTranslate2 version %u", f->file.version);
    if (f->file.version > 1)
        at_buffer_print(&text, ", %s %u", f->file.spec, f->file.revision);
    put_type(&text, &f->file);
    if (at_bundle_has(f->bundle, inside(f, "vmap.txt", room)))
        at_buffer_print(&text, "; its list of likely words, vmap.txt, is not used");
    t->origin = text.bytes;
    return !text.failed || at_no_memory(f->error, "a description");
}

bool at_ct2_load(at_translator *t, const at_bundle *bundle, const char *folder, const unsigned char *bytes, size_t size,
                 char *path, at_error *error)
{
    char room[AT_CT2_NAME];
    ct2_model f = {.bundle = bundle, .inside = folder, .path = path, .error = error};
    f.file = (at_ct2_file){.in = {.at = bytes, .end = bytes + size, .path = path, .what = "it", .error = error},
                           .size = size};
    bool done = at_ct2_parse(&f.file);
    f.config = done ? at_bundle_json(bundle, inside(&f, "config.json", room), error) : NULL;
    done = done && error->code == AT_OK && load_parts(t, &f) && describe(t, &f);
    json_decref(f.config);
    free(f.file.variable);
    return done;
}

/* Whether a vocabulary has a unit such as >>fra<<, which a line may begin with. */
static bool has_tags(const at_vocabulary *vocabulary)
{
    for (int64_t i = AT_SPECIALS; i < at_vocabulary_size(vocabulary); i++) {
        const char *unit = at_vocabulary_unit(vocabulary, (int32_t)i);
        const size_t length = strlen(unit);
        if (length > 4 && strncmp(unit, ">>", 2) == 0 && strcmp(unit + length - 2, "<<") == 0)
            return true;
    }
    return false;
}

/* Lines are cut by source.spm and target.spm, where the folder has them. */
static bool cut_lines(at_vocabulary *vocabulary, const at_bundle *bundle, const char *name, at_error *error)
{
    at_row_ids ids = {.vocabulary = vocabulary};
    return !at_bundle_has(bundle, name) || at_row_ids_pieces(&ids, bundle, name, has_tags(vocabulary), error);
}

static bool load(at_translator *translator, const char *path, at_error *error)
{
    size_t size = 0;
    at_bundle bundle = {0};
    char *file = path_of(path, error);
    unsigned char *bytes = file && at_bundle_open(&bundle, path, error) ? at_file_read(file, &size, error) : NULL;
    const bool done = bytes && at_ct2_load(translator, &bundle, "", bytes, size, file, error) &&
                      cut_lines(translator->source, &bundle, "source.spm", error) &&
                      cut_lines(translator->target, &bundle, "target.spm", error);
    at_bundle_close(&bundle);
    free(bytes);
    free(file);
    return done;
}

const at_reader at_reader_ctranslate2 = {
    .name = "ctranslate2", .formats = "a folder with model.bin", .knows = knows, .load = load, .of_folders = true};
