/* The catalogue of the four named axes, and settings parsed by it: "sliding:3" is a name and, for those that take one,
 * an argument after the colon. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention/axes_internal.h"
#include "base/settings.h"

/* ---- The lists ---- */

#define SCORE(name)      &at_score_##name,
#define NORMALISER(name) &at_normaliser_##name,
#define WINDOW(name)     &at_window_##name,
#define POSITION(name)   &at_position_##name,
static const at_score_record *const scores[] = {AT_SCORES(SCORE) NULL};
static const at_normaliser_record *const normalisers[] = {AT_NORMALISERS(NORMALISER) NULL};
static const at_window_record *const windows[] = {AT_WINDOWS(WINDOW) NULL};
static const at_position_record *const positions[] = {AT_POSITIONS(POSITION) NULL};

enum {
    SCORES = sizeof scores / sizeof *scores - 1,
    NORMALISERS = sizeof normalisers / sizeof *normalisers - 1,
    WINDOWS = sizeof windows / sizeof *windows - 1,
    POSITIONS = sizeof positions / sizeof *positions - 1
};

const char *const at_axis_name[AT_AXES] = {"score", "normaliser", "window", "position"};

const at_entry *at_axis_entry(int axis, int index)
{
    static const int count[AT_AXES] = {SCORES, NORMALISERS, WINDOWS, POSITIONS};
    if (axis < 0 || axis >= AT_AXES || index < 0 || index >= count[axis])
        return NULL;
    return axis == AT_SCORE        ? &scores[index]->entry
           : axis == AT_NORMALISER ? &normalisers[index]->entry
           : axis == AT_WINDOW     ? &windows[index]->entry
                                   : &positions[index]->entry;
}

const at_entry *at_axis_choice(const at_attention *a, int axis)
{
    const at_entry *const chosen[AT_AXES] = {&a->score->entry, &a->normaliser->entry, &a->window->entry,
                                             &a->position->entry};
    return chosen[axis];
}

/* Luong's name of the additive score. */
static const char *known_as(const char *name, size_t *length)
{
    static const char concat[] = "concat", additive[] = "additive";
    if (*length != sizeof concat - 1 || strncmp(name, concat, *length) != 0)
        return name;
    *length = sizeof additive - 1;
    return additive;
}

int at_axis_of(const char *name, size_t length)
{
    name = known_as(name, &length);
    for (int axis = 0; axis < AT_AXES; axis++)
        for (int i = 0; at_axis_entry(axis, i); i++) {
            const char *known = at_axis_entry(axis, i)->name;
            if (strlen(known) == length && strncmp(known, name, length) == 0)
                return axis;
        }
    return -1;
}

const at_entry *at_catalogue(int index)
{
    for (int axis = 0; axis < AT_AXES && index >= 0; axis++)
        for (int i = 0; at_axis_entry(axis, i); i++)
            if (index-- == 0)
                return at_axis_entry(axis, i);
    return NULL;
}

/* ---- What models ask of settings ---- */

bool at_attention_samples(const at_attention *a)
{
    return a->normaliser && a->normaliser->draws_from;
}

void at_attention_soften(at_attention *a)
{
    if (at_attention_samples(a))
        a->normaliser = a->normaliser->draws_from;
}

bool at_attention_moves_values(const at_attention *a)
{
    return a->position->has_tables && !a->declared[AT_POSITION][1].excluded;
}

bool at_attention_rotates(const at_attention *a)
{
    return a->position->rotates;
}

void at_attention_drop_position(at_attention *a)
{
    a->position = positions[0];
    a->declared_count[AT_POSITION] = 0;
}

bool at_attention_predicts(const at_attention *a)
{
    return !a->window->interval;
}

bool at_attention_prepares(const at_attention *a)
{
    return a->score->prepared_parameters > 0;
}

/* ---- Arguments ---- */

enum { MOST_NAMES = 64, HINT = 400 };

/* "; did you mean ...", or the names there are. */
static void suggest(const char *word, const char *const *names, int count, char *out, size_t size)
{
    at_suggest(word, names, count, out, size);
    if (out[0])
        return;
    size_t used = (size_t)snprintf(out, size, "; there are");
    for (int i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s '%s'",
                                 i == 0           ? ""
                                 : i == count - 1 ? " and"
                                                  : ",",
                                 names[i]);
}

bool at_argument_number(const at_choice *c, int64_t least, int64_t otherwise, int64_t *value, at_error *error)
{
    if (!c->argument && otherwise >= 0) {
        *value = otherwise;
        return true;
    }
    if (!c->argument)
        return at_fail(error, AT_USAGE, "%s '%s' needs a whole number: '%s:%s'", c->entry->axis, c->entry->name,
                       c->entry->name, c->entry->argument);
    char *end;
    errno = 0;
    long long parsed = strtoll(c->argument, &end, 10);
    if (c->argument[0] < '0' || c->argument[0] > '9' || *end || errno || parsed > INT32_MAX)
        return at_fail(error, AT_USAGE, "%s '%s' must have a whole number from %d to %d after the colon",
                       c->entry->axis, c->text, (int)least, INT32_MAX);
    if (parsed < least)
        return at_fail(error, AT_USAGE, "%s '%s' must have a number of at least %d after the colon", c->entry->axis,
                       c->text, (int)least);
    *value = parsed;
    return true;
}

int at_argument_word(const at_choice *c, const char *what, const char *word, const char *const *names, int count,
                     at_error *error)
{
    char shown[AT_SHOWN], hint[HINT];
    for (int i = 0; i < count; i++)
        if (strcmp(word, names[i]) == 0)
            return i;
    suggest(word, names, count, hint, sizeof hint);
    at_fail(error, AT_USAGE, "no %s '%s' for %s '%s'%s", what, at_shown(word, shown, sizeof shown), c->entry->axis,
            c->entry->name, hint);
    return -1;
}

/* ---- Parsing ---- */

/* Which entry of the axis the text names; -1 with an error message if none. */
static int find(int axis, const char *text, const char *otherwise, at_choice *c, at_error *error)
{
    const char *names[MOST_NAMES];
    char word[AT_SHOWN], shown[AT_SHOWN], hint[HINT];
    text = text ? text : otherwise;
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    *c = (at_choice){.axis = axis, .argument = colon ? colon + 1 : NULL};
    at_shown(text, c->text, sizeof c->text);
    text = known_as(text, &length);
    int count = 0;
    for (const at_entry *entry; (entry = at_axis_entry(axis, count)) && count < MOST_NAMES; count++) {
        names[count] = entry->name;
        if (strlen(entry->name) == length && strncmp(entry->name, text, length) == 0) {
            c->entry = entry;
            return count;
        }
    }
    snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), text);
    suggest(word, names, count, hint, sizeof hint);
    at_fail(error, AT_USAGE, "no %s '%s'%s", at_axis_name[axis], at_shown(word, shown, sizeof shown), hint);
    return -1;
}

static bool parse_argument(at_argument_parser *parse, const at_choice *c, at_attention *a, at_error *error)
{
    if (parse)
        return parse(c, a, error);
    if (!c->argument)
        return true;
    return at_fail(error, AT_USAGE, "%s '%s' takes no argument, but '%s' has one", c->entry->axis, c->entry->name,
                   c->text);
}

static bool parse_choices(const at_settings *settings, at_attention *a, at_error *error)
{
    at_choice c;
    int found = find(AT_SCORE, settings->score, "scaled", &c, error);
    if (found < 0 || !parse_argument((a->score = scores[found])->argument, &c, a, error))
        return false;
    found = find(AT_NORMALISER, settings->normaliser, "softmax", &c, error);
    if (found < 0 || !parse_argument((a->normaliser = normalisers[found])->argument, &c, a, error))
        return false;
    found = find(AT_WINDOW, settings->window, "global", &c, error);
    if (found < 0 || !parse_argument((a->window = windows[found])->argument, &c, a, error))
        return false;
    found = find(AT_POSITION, settings->position, "none", &c, error);
    if (found < 0)
        return false;
    a->position = positions[found];
    return at_declared_parse(a, error) && parse_argument(a->position->argument, &c, a, error);
}

bool at_attention_parse(const at_settings *settings, at_attention *a, at_error *error)
{
    *a = (at_attention){.plain = settings->plain};
    if (error->code || !parse_choices(settings, a, error))
        return false;
    a->heads = settings->heads ? settings->heads : 1;
    a->kv_heads = settings->kv_heads ? settings->kv_heads : a->heads;
    if (a->heads < 1)
        return at_fail(error, AT_USAGE, "`heads` is %d and must be at least 1", settings->heads);
    if (a->kv_heads < 1 || a->heads % a->kv_heads)
        return at_fail(error, AT_USAGE, "`kv-heads` is %d and must divide `heads`, which is %d", (int)a->kv_heads,
                       (int)a->heads);
    if (a->position->rotates && !a->score->inner)
        return at_fail(error, AT_UNSUPPORTED,
                       "position '%s' does not go with score '%s': it rotates the two sides of an inner product, and "
                       "there is none",
                       a->position->entry.name, a->score->entry.name);
    return true;
}
