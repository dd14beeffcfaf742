/* The parameters that catalogue entries declare in their own text ("v [A], W [A,D], b [A]?"). It is read once, when
 * settings are parsed; the check of a call compares numbers only. */
#include <stdio.h>
#include <string.h>

#include "attention/axes_internal.h"
#include "base/settings.h"

/* ---- Reading the text ---- */

static const struct {
    const char *word;
    at_dim dim;
} dims[] = {{"A", AT_DIM_INNER}, {"D", AT_DIM_SIZE},       {"Dv", AT_DIM_VALUE},
            {"H", AT_DIM_HEADS}, {"2K+1", AT_DIM_OFFSETS}, {"BUCKETS", AT_DIM_ARGUMENT}};

static bool read_dim(const char *word, at_dim *dim)
{
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        if (strcmp(word, dims[i].word) == 0) {
            *dim = dims[i].dim;
            return true;
        }
    return false;
}

/* Reads the next declaration and moves the text on; false at its end or at what cannot be read. */
static bool next_declared(const char **text, at_declared *d)
{
    *d = (at_declared){0};
    int used = 0;
    if (!**text || sscanf(*text, " %11[A-Za-z] [%n", d->name, &used) != 1 || !used)
        return false;
    *text += used;
    while (d->rank < AT_MOST_DIMS && sscanf(*text, "%11[A-Za-z0-9+]%n", d->word[d->rank], &used) == 1 &&
           read_dim(d->word[d->rank], &d->dim[d->rank])) {
        *text += used;
        d->rank++;
        if (**text != ',')
            break;
        (*text)++;
    }
    if (d->rank == 0 || **text != ']')
        return false;
    (*text)++;
    d->optional = **text == '?';
    *text += d->optional;
    *text += **text == ',';
    return true;
}

bool at_declared_parse(at_attention *a, at_error *error)
{
    for (int axis = 0; axis < AT_AXES; axis++) {
        const at_entry *entry = at_axis_choice(a, axis);
        const char *text = entry->parameters;
        int count = 0;
        while (count < AT_MOST_PARAMETERS && next_declared(&text, &a->declared[axis][count]))
            count++;
        if (*text)
            return at_fail(error, AT_FAILED, "the catalogue declares '%s' for %s '%s', which cannot be read at '%s'",
                           entry->parameters, entry->axis, entry->name, text);
        a->declared_count[axis] = count;
    }
    return true;
}

static bool declares(const at_entry *entry, const char *name)
{
    const char *text = entry->parameters;
    for (at_declared d; next_declared(&text, &d);)
        if (strcmp(d.name, name) == 0)
            return true;
    return false;
}

/* ---- Parameters by name ---- */

static const char *const projections[] = {"WQ", "WK", "WV", "WO"};

at_tensor **at_parameter_slot(const at_attention *a, at_attention_in *in, const char *name)
{
    at_tensor **const slot[] = {&in->WQ, &in->WK, &in->WV, &in->WO};
    for (int i = 0; i < 4; i++)
        if (strcmp(projections[i], name) == 0)
            return slot[i];
    for (int axis = 0; axis < AT_AXES; axis++)
        for (int i = 0; i < a->declared_count[axis]; i++)
            if (strcmp(a->declared[axis][i].name, name) == 0)
                return &in->parameter[axis][i];
    return NULL;
}

/* Which entries of the catalogue have this parameter: "'general' or 'additive'"; the axis, or -1 if none has. */
static int find_owners(const char *name, char *owners, size_t size)
{
    int owner = -1;
    size_t used = 0;
    for (int axis = 0; axis < AT_AXES; axis++)
        for (int i = 0; at_axis_entry(axis, i); i++) {
            const at_entry *entry = at_axis_entry(axis, i);
            if (!declares(entry, name) || used >= size)
                continue;
            used += (size_t)snprintf(owners + used, size - used, "%s'%s'", owner < 0 ? "" : " or ", entry->name);
            owner = axis;
        }
    return owner;
}

/* Every name there is, once; `text` holds them. */
enum { MOST_NAMES = 64 };
static int all_names(const char *names[MOST_NAMES], char text[MOST_NAMES][AT_NAME_SIZE])
{
    int count = 0;
    for (int n = 0; at_catalogue(n); n++) {
        const char *rest = at_catalogue(n)->parameters;
        for (at_declared d; count < MOST_NAMES && next_declared(&rest, &d);) {
            bool known = false;
            for (int i = 0; i < count; i++)
                known = known || strcmp(names[i], d.name) == 0;
            if (known)
                continue;
            memcpy(text[count], d.name, sizeof text[count]);
            names[count] = text[count];
            count++;
        }
    }
    for (int i = 0; i < 4 && count < MOST_NAMES; i++)
        names[count++] = projections[i];
    return count;
}

bool at_parameter_unknown(const at_attention *a, const char *name, at_error *error)
{
    char owners[120] = "", shown[AT_SHOWN], hint[200], text[MOST_NAMES][AT_NAME_SIZE];
    const char *names[MOST_NAMES];
    const int axis = find_owners(name, owners, sizeof owners);
    if (axis >= 0)
        return at_fail(error, AT_FAILED, "parameter '%s' is not used by %s '%s'; it belongs to %s", name,
                       at_axis_name[axis], at_axis_choice(a, axis)->name, owners);
    at_suggest(name, names, all_names(names, text), hint, sizeof hint);
    return at_fail(error, AT_FAILED, "no setting has a parameter '%s'%s", at_shown(name, shown, sizeof shown), hint);
}

/* ---- Sizes ---- */

/* The sizes that declared dimensions refer to; -1: not known yet. */
typedef struct sizes {
    int64_t inner, size, value_size;
} sizes;

static int64_t size_of(const at_attention *a, int axis, at_dim dim, const sizes *s)
{
    switch (dim) {
    case AT_DIM_SIZE:
        return s->size;
    case AT_DIM_VALUE:
        return s->value_size;
    case AT_DIM_HEADS:
        return a->heads;
    case AT_DIM_ARGUMENT:
        return a->argument[axis];
    case AT_DIM_OFFSETS:
        return 2 * a->argument[axis] + 1;
    case AT_DIM_INNER:
        break;
    }
    return s->inner;
}

/* Parameters that only serve to prepare queries and keys have no use once these come prepared. */
static bool is_used(const at_attention *a, int axis, int index, bool prepared)
{
    return !(prepared && axis == AT_SCORE && at_attention_prepares(a) && index >= a->score->prepared_parameters);
}

at_shape at_parameter_shape(const at_attention *a, int axis, int index, bool prepared, int64_t inner, int64_t size,
                            int64_t value_size)
{
    const at_declared *d = &a->declared[axis][index];
    /* Prepared queries and keys are of size A, which then is D. */
    const bool is_inner = prepared && axis == AT_SCORE && at_attention_prepares(a);
    const sizes s = {is_inner ? size : inner, size, value_size};
    at_shape shape = {0};
    if (d->excluded || !is_used(a, axis, index, prepared))
        return shape;
    for (shape.rank = 0; shape.rank < d->rank; shape.rank++)
        shape.dim[shape.rank] = size_of(a, axis, d->dim[shape.rank], &s);
    return shape;
}

/* ---- The check of a call ---- */

/* A parameter whose last dimension is H has the heads inside; all others may have a leading H: one set per head. */
static bool has_heads(const at_declared *d)
{
    return d->dim[d->rank - 1] == AT_DIM_HEADS;
}

/* "[A,D] = [A,4]", with the leading H if `each`; sizes that are not known yet stay words. */
static void needed_text(const at_attention *a, int axis, const at_declared *d, bool each, const sizes *s, char *out,
                        size_t size)
{
    char words[64] = "", numbers[128] = "";
    size_t w = 0, n = 0;
    if (each) {
        w = (size_t)snprintf(words, sizeof words, "H");
        n = (size_t)snprintf(numbers, sizeof numbers, "%lld", (long long)a->heads);
    }
    for (int i = 0; i < d->rank; i++) {
        const char *comma = i || each ? "," : "";
        int64_t known = size_of(a, axis, d->dim[i], s);
        w += (size_t)snprintf(words + w, sizeof words - w, "%s%s", comma, d->word[i]);
        n += known < 0 ? (size_t)snprintf(numbers + n, sizeof numbers - n, "%s%s", comma, d->word[i])
                       : (size_t)snprintf(numbers + n, sizeof numbers - n, "%s%lld", comma, (long long)known);
    }
    snprintf(out, size, strcmp(words, numbers) == 0 ? "[%s]" : "[%s] = [%s]", words, numbers);
}

static bool fits(const at_attention *a, int axis, const at_declared *d, const at_tensor *t, sizes *s)
{
    const bool each = !has_heads(d) && t->shape.rank == d->rank + 1;
    if ((!each && t->shape.rank != d->rank) || (each && t->shape.dim[0] != a->heads))
        return false;
    for (int i = 0; i < d->rank; i++) {
        int64_t known = size_of(a, axis, d->dim[i], s), has = t->shape.dim[i + each];
        if (has < 1 || (known >= 0 && has != known))
            return false;
        if (known < 0)
            s->inner = has;
    }
    return true;
}

static bool refuse(const at_job *j, int axis, const at_declared *d, const at_tensor *t, const sizes *s)
{
    const at_entry *entry = at_axis_choice(&j->attention, axis);
    at_error *error = at_tape_error(j->tape);
    char one[200], each[200], has[200];
    needed_text(&j->attention, axis, d, false, s, one, sizeof one);
    if (!t)
        return at_fail(error, AT_FAILED, "%s '%s' needs parameter '%s' %s, which is not given", entry->axis,
                       entry->name, d->name, one);
    needed_text(&j->attention, axis, d, true, s, each, sizeof each);
    at_shape_text(t->shape, has, sizeof has);
    if (has_heads(d))
        return at_fail(error, AT_SHAPE, "parameter '%s' of %s '%s' has shape %s but needs %s", d->name, entry->axis,
                       entry->name, has, one);
    return at_fail(error, AT_SHAPE, "parameter '%s' of %s '%s' has shape %s but needs %s, or %s for one set per head",
                   d->name, entry->axis, entry->name, has, one, each);
}

bool at_parameters_check(const at_job *j)
{
    const at_attention *a = &j->attention;
    const bool prepared = j->in.prepared;
    for (int axis = 0; axis < AT_AXES; axis++) {
        sizes s = {prepared && axis == AT_SCORE ? j->D : -1, j->D, j->Dv};
        for (int i = 0; i < a->declared_count[axis]; i++) {
            const at_declared *d = &a->declared[axis][i];
            const at_tensor *t = j->in.parameter[axis][i];
            const sizes before = s;
            if (is_used(a, axis, i, prepared) && !(t ? fits(a, axis, d, t, &s) : d->optional))
                return refuse(j, axis, d, t, &before);
        }
    }
    return !a->position->check || a->position->check(j);
}
