/* Everything that can be wrong with a call, checked before anything is computed. What parameters a setting takes and of
 * what shape is read from the catalogue's own text ("v [A], W [A,D], b [A]?"), so the two cannot disagree. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "attention/axes.h"

/* ---- The parameters by name ---- */

static const struct {
    const char *name;
    size_t place;
} slots[] = {
    {"W", offsetof(at_attention_in, W)},       {"U", offsetof(at_attention_in, U)},
    {"v", offsetof(at_attention_in, v)},       {"b", offsetof(at_attention_in, b)},
    {"Wp", offsetof(at_attention_in, Wp)},     {"vp", offsetof(at_attention_in, vp)},
    {"wK", offsetof(at_attention_in, wK)},     {"wV", offsetof(at_attention_in, wV)},
    {"bias", offsetof(at_attention_in, bias)}, {"WQ", offsetof(at_attention_in, WQ)},
    {"WK", offsetof(at_attention_in, WK)},     {"WV", offsetof(at_attention_in, WV)},
    {"WO", offsetof(at_attention_in, WO)},
};
enum { SLOTS = sizeof slots / sizeof *slots };

const char *at_parameter_name(int index)
{
    return index >= 0 && index < SLOTS ? slots[index].name : NULL;
}

at_tensor **at_parameter_slot(at_attention_in *in, const char *name)
{
    for (int i = 0; i < SLOTS; i++)
        if (strcmp(slots[i].name, name) == 0)
            return (at_tensor **)((char *)in + slots[i].place);
    return NULL;
}

static at_tensor *given(const at_operands *o, const char *name)
{
    at_attention_in in = *o->in;
    at_tensor **slot = at_parameter_slot(&in, name);
    return slot ? *slot : NULL;
}

/* ---- What a catalogue entry declares ---- */

enum { MOST_DIMS = 3, WORD = 12 };

typedef struct declared {
    char name[WORD];
    int rank;
    char dim[MOST_DIMS][WORD]; /* "A", "D", "2K+1", ... */
    bool optional;
} declared;

/* Reads the next declaration of "v [A], b [A]?" and moves the text on; false at its end. */
static bool next_declared(const char **text, declared *d)
{
    *d = (declared){0};
    int used = 0;
    if (!**text || sscanf(*text, " %11[A-Za-z] [%n", d->name, &used) != 1 || !used)
        return false;
    *text += used;
    while (d->rank < MOST_DIMS && sscanf(*text, "%11[A-Za-z0-9+]%n", d->dim[d->rank], &used) == 1) {
        *text += used;
        d->rank++;
        if (**text == ',')
            (*text)++;
        else
            break;
    }
    *text += strcspn(*text, "]") + 1;
    d->optional = **text == '?';
    *text += d->optional;
    *text += **text == ',';
    return true;
}

static bool declares(const at_entry *entry, const char *name)
{
    const char *text = entry->parameters;
    for (declared d; next_declared(&text, &d);)
        if (strcmp(d.name, name) == 0)
            return true;
    return false;
}

/* The size a dimension's word stands for; -1: free (A, until one parameter has fixed it in `inner`). */
static int64_t size_of(const at_operands *o, const char *word, int64_t inner)
{
    return strcmp(word, "D") == 0         ? o->D
           : strcmp(word, "Dv") == 0      ? o->Dv
           : strcmp(word, "H") == 0       ? o->H
           : strcmp(word, "2K+1") == 0    ? 2 * o->attention->clip + 1
           : strcmp(word, "BUCKETS") == 0 ? o->attention->buckets
                                          : inner;
}

/* "[A,D] = [A,4]", with the leading H if `each`; sizes that are not known yet stay words. */
static void needed_text(const at_operands *o, const declared *d, bool each, int64_t inner, char *out, size_t size)
{
    char words[64] = "", sizes[128] = "";
    size_t w = 0, s = 0;
    if (each) {
        w = (size_t)snprintf(words, sizeof words, "H");
        s = (size_t)snprintf(sizes, sizeof sizes, "%lld", (long long)o->H);
    }
    for (int i = 0; i < d->rank; i++) {
        const char *comma = i || each ? "," : "";
        int64_t known = size_of(o, d->dim[i], inner);
        w += (size_t)snprintf(words + w, sizeof words - w, "%s%s", comma, d->dim[i]);
        s += known < 0 ? (size_t)snprintf(sizes + s, sizeof sizes - s, "%s%s", comma, d->dim[i])
                       : (size_t)snprintf(sizes + s, sizeof sizes - s, "%s%lld", comma, (long long)known);
    }
    snprintf(out, size, strcmp(words, sizes) == 0 ? "[%s]" : "[%s] = [%s]", words, sizes);
}

static bool declared_fits(const at_operands *o, const declared *d, const at_tensor *t, int64_t *inner)
{
    /* All but the t5 bias, which names H itself, may have a leading H dimension: one set per head. */
    const bool may_each = strcmp(d->dim[d->rank - 1], "H") != 0, each = may_each && t->shape.rank == d->rank + 1;
    if (!each && t->shape.rank != d->rank)
        return false;
    if (each && t->shape.dim[0] != o->H)
        return false;
    for (int i = 0; i < d->rank; i++) {
        int64_t known = size_of(o, d->dim[i], *inner), has = t->shape.dim[i + each];
        if (has < 1 || (known >= 0 && has != known))
            return false;
        if (known < 0)
            *inner = has;
    }
    return true;
}

static bool check_entry(const at_operands *o, const at_entry *entry)
{
    at_error *error = at_tape_error(o->tape);
    const bool prepared = o->in->prepared && declares(entry, "U"); /* then A is D, and v alone is left */
    int64_t inner = prepared ? o->D : -1;
    const char *text = entry->parameters;
    for (declared d; next_declared(&text, &d);) {
        const at_tensor *t = given(o, d.name);
        if (prepared && strcmp(d.name, "v") != 0)
            continue;
        const int64_t known = inner;
        if (t ? declared_fits(o, &d, t, &inner) : d.optional)
            continue;
        char one[200], each[200], has[200];
        needed_text(o, &d, false, known, one, sizeof one);
        if (!t)
            return at_fail(error, AT_FAILED, "%s '%s' needs parameter '%s' %s, which is not given", entry->axis,
                           entry->name, d.name, one);
        needed_text(o, &d, true, known, each, sizeof each);
        at_shape_text(t->shape, has, sizeof has);
        if (strcmp(d.dim[d.rank - 1], "H") == 0)
            return at_fail(error, AT_FAILED, "parameter '%s' of %s '%s' has shape %s but needs %s", d.name, entry->axis,
                           entry->name, has, one);
        return at_fail(error, AT_FAILED,
                       "parameter '%s' of %s '%s' has shape %s but needs %s, or %s for one set per head", d.name,
                       entry->axis, entry->name, has, one, each);
    }
    return true;
}

/* A parameter that no chosen setting takes: say which setting of that axis was chosen and whose it is. */
static bool check_unused(const at_operands *o, const char *name)
{
    const at_entry *owner = NULL;
    char owners[120] = "";
    size_t used = 0;
    for (int axis = 0; axis < AT_AXES; axis++)
        for (int i = 0; at_axes[axis].entry(i); i++) {
            const at_entry *entry = at_axes[axis].entry(i);
            if (!declares(entry, name))
                continue;
            const at_entry *chosen = at_axis_choice(o->attention, axis);
            if (chosen == entry)
                return true;
            used += (size_t)snprintf(owners + used, sizeof owners - used, "%s'%s'", owner ? " or " : "", entry->name);
            owner = chosen;
        }
    if (!owner) /* a projection: it goes with every setting */
        return true;
    return at_fail(at_tape_error(o->tape), AT_FAILED, "parameter '%s' is not used by %s '%s'; it belongs to %s", name,
                   owner->axis, owner->name, owners);
}

static bool check_parameters(const at_operands *o)
{
    at_error *error = at_tape_error(o->tape);
    for (int i = 0; i < SLOTS; i++)
        if (given(o, slots[i].name) && !check_unused(o, slots[i].name))
            return false;
    for (int axis = 0; axis < AT_AXES; axis++)
        if (!check_entry(o, at_axis_choice(o->attention, axis)))
            return false;
    if (o->attention->position == AT_SHAW && !o->in->wK && !o->in->wV)
        return at_fail(error, AT_FAILED, "position 'shaw' needs parameter 'wK' or 'wV' or both, and neither is given");
    const at_shaw_tables tables = o->attention->tables;
    if ((tables == AT_SHAW_KEYS && o->in->wV) || (tables == AT_SHAW_VALUES && o->in->wK))
        return at_fail(error, AT_FAILED, "position 'shaw' is of the %s alone here and takes no parameter '%s'",
                       tables == AT_SHAW_KEYS ? "keys" : "values", tables == AT_SHAW_KEYS ? "wV" : "wK");
    if (o->in->wK && !at_score_at((int)o->attention->score)->inner)
        return at_fail(
            error, AT_FAILED,
            "parameter 'wK' makes no sense with score '%s': there is no inner product for the key positions to "
            "enter",
            at_score_at((int)o->attention->score)->entry.name);
    return true;
}

/* ---- Arrays and projections ---- */

/* The width after the optional projection w [out, in]; -1 with a sentence if that is misshapen. */
static int64_t projected(const at_operands *o, const char *array, const at_tensor *x, const char *name,
                         const at_tensor *w)
{
    if (!w)
        return x->shape.dim[2];
    char has[200];
    if (w->shape.rank == 2 && w->shape.dim[1] == x->shape.dim[2] && w->shape.dim[0] > 0)
        return w->shape.dim[0];
    at_fail(at_tape_error(o->tape), AT_FAILED, "parameter '%s' has shape %s but needs [out,%lld] for %s's width %lld",
            name, at_shape_text(w->shape, has, sizeof has), (long long)x->shape.dim[2], array,
            (long long)x->shape.dim[2]);
    return -1;
}

/* Who is as wide as that: the array, or what its projection makes of it. */
static const char *widest(const at_tensor *w, const char *array, const char *after)
{
    return w ? after : array;
}

static bool check_arrays(at_operands *o)
{
    const at_attention_in *in = o->in;
    at_error *error = at_tape_error(o->tape);
    const struct {
        const char *name, *needs;
        const at_tensor *tensor;
    } arrays[] = {
        {"query", "[B,Q,width]", in->query}, {"key", "[B,K,width]", in->key}, {"value", "[B,K,width]", in->value}};
    char has[200];
    for (int i = 0; i < 3; i++) {
        if (!arrays[i].tensor)
            return at_fail(error, AT_FAILED, "%s %s is not given", arrays[i].name, arrays[i].needs);
        const at_shape *s = &arrays[i].tensor->shape;
        if (s->rank != 3 || s->dim[0] < 0 || s->dim[1] < 0 || s->dim[2] < 1)
            return at_fail(error, AT_FAILED, "%s has shape %s but needs %s with a width of at least 1", arrays[i].name,
                           at_shape_text(*s, has, sizeof has), arrays[i].needs);
    }
    o->B = in->query->shape.dim[0], o->Q = in->query->shape.dim[1], o->K = in->key->shape.dim[1];
    if (in->key->shape.dim[0] != o->B)
        return at_fail(error, AT_FAILED, "key has shape %s but needs [%lld,K,width], as many batch rows as the query",
                       at_shape_text(in->key->shape, has, sizeof has), (long long)o->B);
    if (in->value->shape.dim[0] != o->B || in->value->shape.dim[1] != o->K)
        return at_fail(error, AT_FAILED, "value has shape %s but needs [%lld,%lld,width], a row for each key",
                       at_shape_text(in->value->shape, has, sizeof has), (long long)o->B, (long long)o->K);
    if (o->B > INT32_MAX || o->K > INT32_MAX || o->Q > INT32_MAX)
        return at_fail(error, AT_FAILED, "batch %lld, queries %lld and keys %lld may each be at most %d",
                       (long long)o->B, (long long)o->Q, (long long)o->K, INT32_MAX);
    return true;
}

static bool check_heads(at_operands *o)
{
    const at_attention_in *in = o->in;
    at_error *error = at_tape_error(o->tape);
    int64_t q = projected(o, "query", in->query, "WQ", in->WQ);
    int64_t k = q < 0 ? -1 : projected(o, "key", in->key, "WK", in->WK);
    int64_t v = k < 0 ? -1 : projected(o, "value", in->value, "WV", in->WV);
    if (v < 0)
        return false;
    o->H = o->attention->heads, o->G = o->attention->kv_heads;
    if (q % o->H)
        return at_fail(error, AT_FAILED, "heads %lld does not divide the %s width %lld", (long long)o->H,
                       widest(in->WQ, "query", "projected query"), (long long)q);
    o->D = q / o->H;
    if (k != o->G * o->D)
        return at_fail(error, AT_FAILED,
                       "the %s width is %lld but needs to be %lld: kv_heads %lld times the query's size %lld",
                       widest(in->WK, "key", "projected key"), (long long)k, (long long)(o->G * o->D), (long long)o->G,
                       (long long)o->D);
    if (v % o->G)
        return at_fail(error, AT_FAILED, "kv_heads %lld does not divide the %s width %lld", (long long)o->G,
                       widest(in->WV, "value", "projected value"), (long long)v);
    o->Dv = v / o->G;
    return true;
}

static bool check_sizes(const at_operands *o)
{
    const at_attention_in *in = o->in;
    at_error *error = at_tape_error(o->tape);
    if (in->WO && (in->WO->shape.rank != 2 || in->WO->shape.dim[1] != o->H * o->Dv || in->WO->shape.dim[0] < 1)) {
        char has[200];
        return at_fail(error, AT_FAILED, "parameter 'WO' has shape %s but needs [out,%lld] for %lld heads of size %lld",
                       at_shape_text(in->WO->shape, has, sizeof has), (long long)(o->H * o->Dv), (long long)o->H,
                       (long long)o->Dv);
    }
    if (at_position_at((int)o->attention->position)->rotates && o->D % 2)
        return at_fail(error, AT_FAILED,
                       "position 'rope' turns pairs of numbers, so the head size must be even, and it is %lld",
                       (long long)o->D);
    return true;
}

static bool check_numbers(const at_operands *o)
{
    const at_attention_in *in = o->in;
    at_error *error = at_tape_error(o->tape);
    for (int64_t b = 0; in->lengths && b < o->B; b++)
        if (in->lengths[b] < 0 || in->lengths[b] > o->K)
            return at_fail(error, AT_FAILED, "length %lld of batch row %lld is outside 0 to %lld, the keys there are",
                           (long long)in->lengths[b], (long long)b, (long long)o->K);
    if (in->query_start < 0 || in->query_start > INT32_MAX - o->Q)
        return at_fail(error, AT_FAILED, "query_start %lld is outside 0 to %lld", (long long)in->query_start,
                       (long long)(INT32_MAX - o->Q));
    if (in->rows && in->row_count < 0)
        return at_fail(error, AT_FAILED, "the number of rows asked for is %lld", (long long)in->row_count);
    for (int64_t r = 0; in->rows && r < in->row_count; r++)
        if (in->rows[r] < 0 || in->rows[r] >= o->Q)
            return at_fail(error, AT_FAILED, "row %lld is asked for, and there are %lld queries, from 0",
                           (long long)in->rows[r], (long long)o->Q);
    if (!(in->drop.share >= 0 && in->drop.share < 1))
        return at_fail(error, AT_FAILED, "the share of the weights to drop is %g and must be from 0 to below 1",
                       (double)in->drop.share);
    if (in->drop.share > 0 && o->attention->normaliser == AT_HARD)
        return at_fail(error, AT_FAILED, "normaliser 'hard' has one weight, of which no share can be dropped");
    if (in->sample && o->attention->normaliser != AT_HARD)
        return at_fail(error, AT_FAILED, "sampling is for normaliser 'hard', and this is '%s'",
                       at_normaliser_at((int)o->attention->normaliser)->entry.name);
    return true;
}

bool at_attention_check(at_operands *o)
{
    if (!at_tape_ok(o->tape) || !(o->in->packed ? at_packed_check(o) : check_arrays(o) && check_heads(o)))
        return false;
    return check_sizes(o) && check_numbers(o) && check_parameters(o);
}
