/* The catalogue of the four named axes, and settings parsed by it: "sliding:3" is a name and, for those that take one,
 * an argument after the colon. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention/axes.h"
#include "base/utf8.h"

static const at_entry *score_entry(int index)
{
    const at_score_record *record = at_score_at(index);
    return record ? &record->entry : NULL;
}

static const at_entry *normaliser_entry(int index)
{
    const at_normaliser_record *record = at_normaliser_at(index);
    return record ? &record->entry : NULL;
}

static const at_entry *window_entry(int index)
{
    const at_window_record *record = at_window_at(index);
    return record ? &record->entry : NULL;
}

static const at_entry *position_entry(int index)
{
    const at_position_record *record = at_position_at(index);
    return record ? &record->entry : NULL;
}

const at_axis at_axes[AT_AXES] = {
    {"score", score_entry}, {"normaliser", normaliser_entry}, {"window", window_entry}, {"position", position_entry}};

const at_entry *at_axis_choice(const at_attention *a, int axis)
{
    const int chosen[AT_AXES] = {(int)a->score, (int)a->normaliser, (int)a->window, (int)a->position};
    return at_axes[axis].entry(chosen[axis]);
}

const at_entry *at_catalogue(int index)
{
    for (int axis = 0; axis < AT_AXES && index >= 0; axis++)
        for (int i = 0; at_axes[axis].entry(i); i++)
            if (index-- == 0)
                return at_axes[axis].entry(i);
    return NULL;
}

/* ---- Parsing ---- */

enum { MOST_NAMES = 16 };

/* One axis's setting, split at the colon. */
typedef struct setting {
    const char *axis;
    const at_entry *entry;
    const char *argument; /* NULL: none given */
    char text[AT_SHOWN];  /* as given, for sentences */
} setting;

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

/* Which entry of the axis the text names; -1 with a sentence if none. */
static int find(int axis, const char *text, const char *otherwise, setting *s, at_error *error)
{
    const char *names[MOST_NAMES];
    char word[AT_SHOWN], shown[AT_SHOWN], hint[200];
    text = text ? text : otherwise;
    const char *colon = strchr(text, ':');
    const size_t length = colon ? (size_t)(colon - text) : strlen(text);
    *s = (setting){.axis = at_axes[axis].name, .argument = colon ? colon + 1 : NULL};
    at_shown(text, s->text, sizeof s->text);
    int count = 0;
    for (const at_entry *entry; (entry = at_axes[axis].entry(count)); count++) {
        names[count] = entry->name;
        if (strlen(entry->name) == length && strncmp(entry->name, text, length) == 0) {
            s->entry = entry;
            return count;
        }
    }
    snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), text);
    suggest(word, names, count, hint, sizeof hint);
    at_fail(error, AT_USAGE, "no %s '%s'%s", s->axis, at_shown(word, shown, sizeof shown), hint);
    return -1;
}

static bool no_argument(const setting *s, at_error *error)
{
    if (!s->argument)
        return true;
    return at_fail(error, AT_USAGE, "%s '%s' takes no argument, and '%s' gives one", s->axis, s->entry->name, s->text);
}

/* A whole number of at least `least` after the colon; `otherwise` if there is none and that is not negative. */
static bool number(const setting *s, int64_t least, int64_t otherwise, int64_t *value, at_error *error)
{
    if (!s->argument && otherwise >= 0) {
        *value = otherwise;
        return true;
    }
    if (!s->argument)
        return at_fail(error, AT_USAGE, "%s '%s' needs a whole number: '%s:%s'", s->axis, s->entry->name,
                       s->entry->name, s->entry->argument);
    char *end;
    errno = 0;
    long long parsed = strtoll(s->argument, &end, 10);
    if (s->argument[0] < '0' || s->argument[0] > '9' || *end || errno || parsed > INT32_MAX)
        return at_fail(error, AT_USAGE, "%s '%s' must have a whole number from %d to %d after the colon", s->axis,
                       s->text, (int)least, INT32_MAX);
    if (parsed < least)
        return at_fail(error, AT_USAGE, "%s '%s' must have a number of at least %d after the colon", s->axis, s->text,
                       (int)least);
    *value = parsed;
    return true;
}

static bool activation(const setting *s, at_act *act, at_error *error)
{
    static const char *const names[] = {"tanh", "sigmoid", "relu"};
    static const at_act acts[] = {AT_ACT_TANH, AT_ACT_SIGMOID, AT_ACT_RELU};
    char shown[AT_SHOWN], hint[200];
    const char *word = s->argument ? s->argument : names[0];
    for (int i = 0; i < 3; i++)
        if (strcmp(word, names[i]) == 0) {
            *act = acts[i];
            return true;
        }
    suggest(word, names, 3, hint, sizeof hint);
    return at_fail(error, AT_USAGE, "no activation '%s' for score 'additive'%s", at_shown(word, shown, sizeof shown),
                   hint);
}

static bool bucket_number(const setting *s, int64_t *buckets, at_error *error)
{
    enum { LEAST = 4, USUAL = 32, MOST = 510 }; /* a quarter of the buckets is exact and must stay below distance 128 */
    if (!number(s, 0, USUAL, buckets, error))
        return false;
    if (*buckets % 2 || *buckets < LEAST || *buckets > MOST)
        return at_fail(error, AT_USAGE, "position '%s' must have an even number of buckets from %d to %d", s->text,
                       LEAST, MOST);
    return true;
}

/* K, and after a second colon which of the two tables there is. */
static bool shaw_argument(const setting *s, at_attention *a, at_error *error)
{
    static const char *const names[] = {"keys", "values"};
    char first[24], shown[AT_SHOWN], hint[200];
    const char *colon = s->argument ? strchr(s->argument, ':') : NULL;
    setting cut = *s;
    if (colon) {
        snprintf(first, sizeof first, "%.*s", (int)(colon - s->argument), s->argument);
        cut.argument = first;
    }
    if (!number(&cut, 0, -1, &a->clip, error))
        return false;
    a->tables = AT_SHAW_EITHER;
    if (!colon)
        return true;
    for (int i = 0; i < 2; i++)
        if (strcmp(colon + 1, names[i]) == 0) {
            a->tables = i == 0 ? AT_SHAW_KEYS : AT_SHAW_VALUES;
            return true;
        }
    suggest(colon + 1, names, 2, hint, sizeof hint);
    return at_fail(error, AT_USAGE, "no table '%s' for position 'shaw'%s", at_shown(colon + 1, shown, sizeof shown),
                   hint);
}

static bool parse_score(const char *text, at_attention *a, at_error *error)
{
    setting s;
    int found = find(0, text, "scaled", &s, error);
    if (found < 0)
        return false;
    a->score = (at_score)found;
    return a->score == AT_ADDITIVE ? activation(&s, &a->act, error) : no_argument(&s, error);
}

static bool parse_normaliser(const char *text, at_attention *a, at_error *error)
{
    setting s;
    int found = find(1, text, "softmax", &s, error);
    if (found < 0)
        return false;
    a->normaliser = (at_normaliser)found;
    return no_argument(&s, error);
}

static bool parse_window(const char *text, at_attention *a, at_error *error)
{
    setting s;
    int found = find(2, text, "global", &s, error);
    if (found < 0)
        return false;
    a->window = (at_window)found;
    if (!s.entry->argument[0])
        return no_argument(&s, error);
    if (!number(&s, 0, -1, &a->reach, error))
        return false;
    if (a->window == AT_LOCAL_P && a->reach == 0)
        return at_fail(error, AT_USAGE,
                       "window 'local-p:0' must have D of at least 1, because its Gaussian has sigma D/2");
    return true;
}

static bool parse_position(const char *text, at_attention *a, at_error *error)
{
    setting s;
    int found = find(3, text, "none", &s, error);
    if (found < 0)
        return false;
    a->position = (at_position)found;
    if (a->position == AT_SHAW)
        return shaw_argument(&s, a, error);
    if (a->position == AT_T5)
        return bucket_number(&s, &a->buckets, error);
    return no_argument(&s, error);
}

bool at_attention_parse(const at_settings *settings, at_attention *a, at_error *error)
{
    *a = (at_attention){.plain = settings->plain};
    if (error->code || !parse_score(settings->score, a, error) || !parse_normaliser(settings->normaliser, a, error) ||
        !parse_window(settings->window, a, error) || !parse_position(settings->position, a, error))
        return false;
    a->heads = settings->heads ? settings->heads : 1;
    a->kv_heads = settings->kv_heads ? settings->kv_heads : a->heads;
    if (a->heads < 1)
        return at_fail(error, AT_FAILED, "heads is %d and must be at least 1", settings->heads);
    if (a->kv_heads < 1 || a->heads % a->kv_heads)
        return at_fail(error, AT_FAILED, "kv_heads %d must divide heads %d", (int)a->kv_heads, (int)a->heads);
    if (at_position_at((int)a->position)->rotates && !at_score_at((int)a->score)->inner)
        return at_fail(error, AT_FAILED,
                       "position '%s' makes no sense with score '%s': it turns the two sides of an inner product, and "
                       "there is none",
                       at_position_at((int)a->position)->entry.name, at_score_at((int)a->score)->entry.name);
    if (a->position == AT_SHAW && a->tables == AT_SHAW_KEYS && !at_score_at((int)a->score)->inner)
        return at_fail(error, AT_FAILED,
                       "position '%s' makes no sense with score '%s': there is no inner product for the key positions "
                       "to enter",
                       settings->position, at_score_at((int)a->score)->entry.name);
    return true;
}
