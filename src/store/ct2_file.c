#include "store/ct2_file_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/dtype.h"

enum { MOST_VARIABLES = 1 << 14 };
static const size_t item_size[AT_CT2_TYPES] = {4, 1, 2, 4, 2, 2};

/* ---- Names ---------------------------------------------------------------------------------------------------- */

typedef struct part {
    const char *ours, *theirs;
} part;
#define SELF_ATTENTION                                                                                                 \
    {"norm1", "self_attention/layer_norm"}, {"self.QKV", "self_attention/linear_0"},                                   \
    {                                                                                                                  \
        "self.O", "self_attention/linear_1"                                                                            \
    }
#define FEED_FORWARD                                                                                                   \
    {"ffn.inner", "ffn/linear_0"}, {"ffn.outer", "ffn/linear_1"},                                                      \
    {                                                                                                                  \
        NULL, NULL                                                                                                     \
    }
static const part encoder_parts[] = {SELF_ATTENTION, {"norm2", "ffn/layer_norm"}, FEED_FORWARD};
static const part decoder_parts[] = {SELF_ATTENTION,
                                     {"norm2", "attention/layer_norm"},
                                     {"cross.Q", "attention/linear_0"},
                                     {"cross.KV", "attention/linear_1"},
                                     {"cross.O", "attention/linear_2"},
                                     {"norm3", "ffn/layer_norm"},
                                     FEED_FORWARD};
static const part tables[] = {{"self.w_K", "self_attention/relative_position_keys"},
                              {"self.w_V", "self_attention/relative_position_values"},
                              {NULL, NULL}};

static bool one(const char *our, const char *our_part, const char *their, const char *their_part, bool may_lack,
                at_ct2_pair *pair, void *context)
{
    char ours[AT_CT2_NAME], theirs[AT_CT2_NAME];
    snprintf(ours, sizeof ours, "%s.%s", our, our_part);
    snprintf(theirs, sizeof theirs, "%s/%s", their, their_part);
    return pair(context, ours, theirs, may_lack);
}

/* The two arrays of a layer: W and b, or g and b of a norm. */
static bool both(const char *our, const char *their, const part *layer, at_ct2_pair *pair, void *context)
{
    const bool norm = strstr(layer->theirs, "layer_norm");
    char ours[AT_CT2_NAME / 2], theirs[AT_CT2_NAME / 2];
    snprintf(ours, sizeof ours, "%s.%s", our, layer->ours);
    snprintf(theirs, sizeof theirs, "%s/%s", their, layer->theirs);
    return one(ours, norm ? "g" : "W", theirs, norm ? "gamma" : "weight", false, pair, context) &&
           one(ours, "b", theirs, norm ? "beta" : "bias", true, pair, context);
}

bool at_ct2_each(const char *side, int64_t layers, bool has_final, at_ct2_pair *pair, void *context)
{
    static const part final = {"norm", "layer_norm"};
    const bool decodes = strcmp(side, "decoder") == 0;
    char our[AT_CT2_NAME / 4], their[AT_CT2_NAME / 4];
    for (int64_t l = 0; l < layers; l++) {
        snprintf(our, sizeof our, "%s.%lld", side, (long long)l + 1);
        snprintf(their, sizeof their, "%s/layer_%lld", side, (long long)l);
        for (const part *p = decodes ? decoder_parts : encoder_parts; p->ours; p++)
            if (!both(our, their, p, pair, context))
                return false;
        for (const part *p = tables; p->ours; p++)
            if (!one(our, p->ours, their, p->theirs, true, pair, context))
                return false;
    }
    return !has_final || both(side, side, &final, pair, context);
}

/* ---- Reading bytes -------------------------------------------------------------------------------------------- */

bool at_ct2_refuse(const at_ct2_file *f, const char *what)
{
    return at_bytes_refuse(&f->in, what);
}

static bool take_string(at_ct2_file *f, char *text, size_t room)
{
    const size_t size = at_bytes_number(&f->in, 2);
    const unsigned char *bytes = at_bytes_take(&f->in, size);
    if (!bytes)
        return false;
    if (size == 0 || size > room || bytes[size - 1] != 0 || strlen((const char *)bytes) + 1 != size)
        return at_ct2_refuse(f, "a name is too long, or does not end");
    memcpy(text, bytes, size);
    return true;
}

/* ---- Variables ------------------------------------------------------------------------------------------------ */

static void replace(char *name, const char *from, const char *to)
{
    char rest[AT_CT2_NAME], *at = strstr(name, from);
    if (at && strlen(name) - strlen(from) + strlen(to) < AT_CT2_NAME) {
        strcpy(rest, at + strlen(from));
        strcpy(at, to);
        strcpy(at + strlen(to), rest);
    }
}

/* Version 1 has the names of OpenNMT-tf. */
static void modernise(char *name)
{
    static const char *const names[][2] = {{"transformer/", ""},
                                           {":0", ""},
                                           {"w_embs", "embeddings/weight"},
                                           {"kernel", "weight"},
                                           {"LayerNorm", "layer_norm"},
                                           {"dense", "projection"}};
    const bool decoder = strstr(name, "decoder/");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        replace(name, names[i][0], names[i][1]);
    if (strstr(name, "conv1d_"))
        replace(name, "conv1d_", "linear_");
    else
        replace(name, "conv1d", "linear_0");
    if (decoder && strstr(name, "masked_multi_head"))
        replace(name, "masked_multi_head", "self_attention");
    else
        replace(name, "multi_head", decoder ? "attention" : "self_attention");
}

static bool take_type(at_ct2_file *f, at_ct2_variable *v)
{
    const uint64_t code = at_bytes_number(&f->in, 1);
    if (f->version >= 4)
        v->type = code < AT_CT2_TYPES ? (at_ct2_type)code : AT_CT2_TYPES;
    else
        v->type = code == 4 ? AT_CT2_F32 : code == 2 ? AT_CT2_I16 : code == 1 ? AT_CT2_I8 : AT_CT2_TYPES;
    return f->in.error->code == AT_OK && (v->type < AT_CT2_TYPES || at_ct2_refuse(f, "a variable has an unknown type"));
}

static bool take_variable(at_ct2_file *f, at_ct2_variable *v)
{
    if (!take_string(f, v->name, AT_CT2_NAME))
        return false;
    if (f->version == 1)
        modernise(v->name);
    v->rank = (int)at_bytes_number(&f->in, 1);
    v->count = 1;
    if (v->rank > AT_MAX_RANK)
        return at_ct2_refuse(f, "a variable has too many dimensions");
    for (int i = 0; i < v->rank; i++) {
        v->dim[i] = (int64_t)at_bytes_number(&f->in, 4);
        if (v->dim[i] > 0 && v->count > INT64_MAX / 8 / v->dim[i])
            return at_ct2_refuse(f, "a variable is too large");
        v->count *= v->dim[i];
    }
    if (!take_type(f, v))
        return false;
    const size_t size = item_size[v->type], said = at_bytes_number(&f->in, 4);
    if ((f->version >= 4 ? said : said * size) != (size_t)v->count * size)
        return at_ct2_refuse(f, "the size of a variable does not fit its shape");
    v->data = at_bytes_take(&f->in, (size_t)v->count * size);
    return v->data;
}

const at_ct2_variable *at_ct2_find(const at_ct2_file *f, const char *name)
{
    for (int64_t i = 0; i < f->count; i++)
        if (strcmp(f->variable[i].name, name) == 0)
            return &f->variable[i];
    return NULL;
}

static const at_ct2_variable *find_in(const at_ct2_file *f, const char *folder, const char *name)
{
    char full[2 * AT_CT2_NAME];
    snprintf(full, sizeof full, "%s/%s", folder, name);
    return at_ct2_find(f, full);
}

/* An alias is a further variable with the same data. */
static bool take_aliases(at_ct2_file *f, int64_t room)
{
    char alias[AT_CT2_NAME], name[AT_CT2_NAME];
    for (int64_t left = (int64_t)at_bytes_number(&f->in, 4); left > 0 && f->in.error->code == AT_OK; left--) {
        if (!take_string(f, alias, AT_CT2_NAME) || !take_string(f, name, AT_CT2_NAME))
            return false;
        const at_ct2_variable *v = at_ct2_find(f, name);
        if (!v || f->count == room)
            return at_ct2_refuse(f, "an alias names no variable");
        f->variable[f->count] = *v;
        strcpy(f->variable[f->count++].name, alias);
    }
    return f->in.error->code == AT_OK;
}

bool at_ct2_parse(at_ct2_file *f)
{
    f->version = (uint32_t)at_bytes_number(&f->in, 4);
    if (f->in.error->code == AT_OK && (f->version < 1 || f->version > 6))
        return at_fail(f->in.error, AT_UNSUPPORTED, "'%s' has version %u of CTranslate2's format; 1 to 6 are known",
                       f->in.path, f->version);
    if (f->version >= 2) {
        if (!take_string(f, f->spec, sizeof f->spec))
            return false;
        f->revision = (uint32_t)at_bytes_number(&f->in, 4);
    }
    const uint64_t count = at_bytes_number(&f->in, 4);
    if (count > MOST_VARIABLES || count > (size_t)(f->in.end - f->in.at) / 8)
        return at_ct2_refuse(f, "it claims more variables than it can hold");
    const int64_t room = 2 * (int64_t)count; /* with aliases */
    f->variable = calloc((size_t)room + 1, sizeof *f->variable);
    if (!f->variable)
        return at_no_memory(f->in.error, "the variables of '%s'", f->in.path);
    for (; f->count < (int64_t)count; f->count++)
        if (!take_variable(f, &f->variable[f->count]))
            return false;
    return f->version < 3 || take_aliases(f, room);
}

/* ---- Values --------------------------------------------------------------------------------------------------- */

at_real at_ct2_value(const at_ct2_variable *v, int64_t i)
{
    const unsigned char *at = v->data + (size_t)i * item_size[v->type];
    float f;
    int32_t n;
    int16_t h;
    uint16_t u;
    switch (v->type) {
    case AT_CT2_F32:
        memcpy(&f, at, 4);
        return f;
    case AT_CT2_I32:
        memcpy(&n, at, 4);
        return (at_real)n;
    case AT_CT2_I16:
        memcpy(&h, at, 2);
        return h;
    case AT_CT2_F16:
    case AT_CT2_BF16:
        memcpy(&u, at, 2);
        return v->type == AT_CT2_F16 ? at_float_of_half(u) : at_float_of_bfloat(u);
    default:
        return (signed char)*at;
    }
}

/* A number of the settings; `fallback` if there is none. */
double at_ct2_number(const at_ct2_file *f, const char *folder, const char *name, double fallback)
{
    const at_ct2_variable *v = find_in(f, folder, name);
    return v && v->count == 1 ? (double)at_ct2_value(v, 0) : fallback;
}

/* The variable as floats: w = q / scale, with a scale for each row or one for all. */
bool at_ct2_copy(const at_ct2_file *f, const at_ct2_variable *v, at_real *to)
{
    char name[AT_CT2_NAME + 8];
    snprintf(name, sizeof name, "%s_scale", v->name);
    const at_ct2_variable *scale = v->type == AT_CT2_I8 || v->type == AT_CT2_I16 ? at_ct2_find(f, name) : NULL;
    const int64_t rows = v->rank > 0 && v->dim[0] > 0 ? v->dim[0] : 1, width = v->count / rows;
    if ((v->type == AT_CT2_I8 && !scale) || (scale && scale->count != 1 && scale->count != rows))
        return at_fail(f->in.error, AT_FORMAT, "'%s' has no scale for each row of '%s'", f->in.path, v->name);
    for (int64_t r = 0; r < rows; r++) {
        const at_real by = scale ? at_ct2_value(scale, scale->count == 1 ? 0 : r) : v->type == AT_CT2_I16 ? 1000 : 1;
        for (int64_t c = 0; c < width; c++) {
            at_real *number = &to[r * width + c];
            *number = at_ct2_value(v, r * width + c) / by;
            if (!isfinite(*number))
                return at_fail(f->in.error, AT_FORMAT, "'%s': '%s' holds a number that is not finite", f->in.path,
                               v->name);
        }
    }
    return true;
}

at_real *at_ct2_values(const at_ct2_file *f, const at_ct2_variable *v)
{
    at_real *values = malloc((size_t)v->count * sizeof *values + 1);
    if (!values)
        at_no_memory(f->in.error, "'%s' of '%s'", v->name, f->in.path);
    if (values && at_ct2_copy(f, v, values))
        return values;
    free(values);
    return NULL;
}
