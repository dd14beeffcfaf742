/* A vocabulary in a model file. */
#include "text/vocabulary_internal.h"

#include "base/json.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *at_vocabulary_kind_name(const at_vocabulary *vocabulary)
{
    return vocabulary->subwords || vocabulary->needs != 0 ? "spm" : vocabulary->words ? "word" : "char";
}

/* Of the bytes of a subword model, which a model file stores separately; never 0. */
static uint64_t hash_subwords(const unsigned char *bytes, size_t size)
{
    uint64_t hash = at_hash_bytes(AT_HASH_START, (const char *)bytes, size);
    return hash != 0 ? hash : 1;
}

static bool put_units(const at_vocabulary *vocabulary, json_t *root)
{
    json_t *units = json_array(), *counts = json_array();
    bool good = units && counts;
    for (int32_t i = 0; good && vocabulary->fixed && i < vocabulary->count; i++) {
        const at_word *one = &vocabulary->word[i];
        good = json_array_append_new(units, json_stringn(vocabulary->text.bytes + one->start, one->size)) == 0 &&
               json_array_append_new(counts, json_integer(one->count)) == 0;
    }
    good = good && json_object_set(root, "units", units) == 0 && json_object_set(root, "counts", counts) == 0;
    json_decref(units);
    json_decref(counts);
    return good;
}

static bool put_subwords(const at_subwords *subwords, json_t *root)
{
    char hash[20];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)hash_subwords(subwords->bytes, subwords->size));
    return json_object_set_new(root, "hash", json_string(hash)) == 0;
}

char *at_vocabulary_to_json(const at_vocabulary *vocabulary, at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    const at_cleaning *cleaning = &vocabulary->cleaning;
    json_t *root = json_object();
    bool good = json_object_set_new(root, "kind", json_string(at_vocabulary_kind_name(vocabulary))) == 0;
    if (cleaning->form != AT_FORM_NONE)
        good = good && json_object_set_new(root, "normalise", json_string(at_form_names[cleaning->form])) == 0;
    if (cleaning->lowercase)
        good = good && json_object_set_new(root, "lowercase", json_true()) == 0;
    if (cleaning->tokens != AT_TOKENS_NONE)
        good = good && json_object_set_new(root, "tokenise", json_string(at_tokens_names[cleaning->tokens])) == 0;
    if (vocabulary->begins)
        good = good && json_object_set_new(root, "begins", json_true()) == 0;
    if (vocabulary->ends)
        good = good && json_object_set_new(root, "ends", json_true()) == 0;
    if (vocabulary->tags)
        good = good && json_object_set_new(root, "tags", json_true()) == 0;
    good = good && (!vocabulary->subwords || put_subwords(vocabulary->subwords, root)) &&
           ((vocabulary->subwords && !vocabulary->listed) || put_units(vocabulary, root));
    char *text = good ? at_json_text(root, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    json_decref(root);
    if (!text)
        at_vocabulary_no_memory(error);
    return text;
}

/* One unit of a file: it must be one unit of its kind of vocabulary, or no line could contain it. */
static bool add_from_json(at_vocabulary *vocabulary, json_t *text, json_t *count, at_error *error)
{
    size_t index = (size_t)vocabulary->count;
    if (!json_is_string(text) || !json_is_integer(count) || json_integer_value(count) < 0)
        return at_fail(error, AT_FORMAT, "unit %zu of a stored vocabulary is not a text with its count", index);
    const char *bytes = json_string_value(text);
    size_t size = json_string_length(text);
    at_units units = {bytes, bytes + size, vocabulary->words || vocabulary->listed};
    at_unit unit;
    if (!at_units_next(&units, &unit) || unit.size != size || unit.broken != 0)
        return at_fail(error, AT_FORMAT, "unit %zu of a stored vocabulary is not one %s", index,
                       vocabulary->words ? "word" : "character");
    if (!at_vocabulary_add(vocabulary, unit, json_integer_value(count), error))
        return false;
    if ((size_t)vocabulary->count == index) {
        char shown[AT_SHOWN];
        return at_fail(error, AT_FORMAT, "a stored vocabulary has '%s' twice", at_shown(bytes, shown, sizeof shown));
    }
    return true;
}

static bool read_normaliser(at_vocabulary *vocabulary, json_t *root, at_error *error)
{
    json_t *form = json_object_get(root, "normalise"), *lowercase = json_object_get(root, "lowercase");
    json_t *tokens = json_object_get(root, "tokenise");
    at_cleaning cleaning = {.lowercase = json_is_true(lowercase), .tokens = tokens ? AT_TOKENS_MOSES_LIKE : 0};
    bool known = !form;
    if (tokens && (!json_is_string(tokens) || strcmp(json_string_value(tokens), "moses-like") != 0))
        return at_fail(error, AT_FORMAT, "a stored vocabulary has an unknown tokeniser");
    for (int i = 0; i < 3 && json_is_string(form); i++)
        if (strcmp(json_string_value(form), at_form_names[i]) == 0) {
            cleaning.form = (at_form)i;
            known = true;
        }
    if (!known || (lowercase && !json_is_boolean(lowercase)))
        return at_fail(error, AT_FORMAT, "a stored vocabulary has an unknown normalisation");
    at_vocabulary_normalise(vocabulary, cleaning);
    return true;
}

static bool read_units(at_vocabulary *vocabulary, json_t *root, at_error *error)
{
    json_t *units = json_object_get(root, "units"), *counts = json_object_get(root, "counts");
    if (!json_is_array(units) || json_array_size(units) != json_array_size(counts))
        return at_fail(error, AT_FORMAT, "a stored vocabulary needs its kind, its units and a count for each");
    for (size_t i = 0; i < json_array_size(units); i++)
        if (!add_from_json(vocabulary, json_array_get(units, i), json_array_get(counts, i), error))
            return false;
    if (vocabulary->count == 0)
        return at_fail(error, AT_FORMAT, "a stored vocabulary has no unit");
    vocabulary->fixed = true; /* in the order of the file, whatever the counts say */
    return true;
}

static bool read_hash(at_vocabulary *vocabulary, json_t *root, at_error *error)
{
    const char *hash = json_string_value(json_object_get(root, "hash"));
    char *end = "?";
    vocabulary->needs = hash ? strtoull(hash, &end, 16) : 0;
    return (*end == '\0' && vocabulary->needs != 0) ||
           at_fail(error, AT_FORMAT, "a stored vocabulary lacks the hash of its subword model");
}

/* Not every kind that a user may set: a stored one names no file and no size. */
static at_vocabulary *new_of_kind(const char *kind, at_error *error)
{
    char shown[AT_SHOWN];
    bool spm = kind && strcmp(kind, "spm") == 0;
    if (!kind)
        at_fail(error, AT_FORMAT, "a stored vocabulary needs its kind, its units and a count for each");
    else if (!spm && strcmp(kind, "char") != 0 && strcmp(kind, "word") != 0)
        at_fail(error, AT_FORMAT, "no vocabulary '%s'; there are 'char', 'word' and 'spm'",
                at_shown(kind, shown, sizeof shown));
    return at_vocabulary_new(spm ? "char" : kind, error);
}

at_vocabulary *at_vocabulary_from_json(const char *json, at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    json_t *root = at_json_read(json, strlen(json), "a stored vocabulary", error);
    const char *kind = json_string_value(json_object_get(root, "kind"));
    at_vocabulary *vocabulary = new_of_kind(kind, error);
    const bool spm = kind && strcmp(kind, "spm") == 0, listed = spm && json_object_get(root, "units");
    if (vocabulary) {
        vocabulary->listed = listed;
        vocabulary->tags = listed && json_is_true(json_object_get(root, "tags"));
        at_vocabulary_frame(vocabulary, json_is_true(json_object_get(root, "begins")),
                            json_is_true(json_object_get(root, "ends")));
    }
    bool good = vocabulary && read_normaliser(vocabulary, root, error) &&
                (!spm || read_hash(vocabulary, root, error)) &&
                ((spm && !listed) || read_units(vocabulary, root, error));
    json_decref(root);
    if (good)
        return vocabulary;
    at_vocabulary_free(vocabulary);
    return NULL;
}

const unsigned char *at_vocabulary_subwords(const at_vocabulary *vocabulary, size_t *size)
{
    *size = vocabulary->subwords ? vocabulary->subwords->size : 0;
    return vocabulary->subwords ? vocabulary->subwords->bytes : NULL;
}

bool at_vocabulary_needs_subwords(const at_vocabulary *vocabulary)
{
    return vocabulary->needs != 0;
}

bool at_vocabulary_take_subwords(at_vocabulary *vocabulary, const unsigned char *bytes, size_t size, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    if (vocabulary->needs != hash_subwords(bytes, size))
        return at_fail(error, AT_FORMAT, "the subword model is not the one that the vocabulary was stored with");
    unsigned char *copy = malloc(size + 1);
    vocabulary->subwords = at_subwords_new(0, false, error);
    if (!copy || !vocabulary->subwords) {
        free(copy);
        return at_vocabulary_no_memory(error);
    }
    memcpy(copy, bytes, size);
    vocabulary->needs = 0;
    return at_subwords_take(vocabulary->subwords, copy, size, "the subwords", error) &&
           (vocabulary->listed || at_vocabulary_take_pieces(vocabulary, error));
}

bool at_vocabulary_list_pieces(at_vocabulary *vocabulary, unsigned char *bytes, size_t size, bool tags,
                               const char *name, at_error *error)
{
    vocabulary->subwords = at_subwords_new(0, false, error);
    if (!vocabulary->subwords) {
        free(bytes);
        return false;
    }
    vocabulary->words = false;
    vocabulary->listed = true;
    vocabulary->tags = tags;
    return at_subwords_take(vocabulary->subwords, bytes, size, name, error);
}

at_vocabulary *at_vocabulary_copy(const at_vocabulary *vocabulary, at_error *error)
{
    char *json = at_vocabulary_to_json(vocabulary, error);
    at_vocabulary *copy = json ? at_vocabulary_from_json(json, error) : NULL;
    size_t size;
    const unsigned char *bytes = at_vocabulary_subwords(vocabulary, &size);
    free(json);
    if (copy && (!bytes || at_vocabulary_take_subwords(copy, bytes, size, error)))
        return copy;
    at_vocabulary_free(copy);
    return NULL;
}

bool at_vocabulary_same(const at_vocabulary *a, const at_vocabulary *b, at_error *error)
{
    if (!a || !b)
        return a == b;
    size_t size = 0, other_size = 0;
    char *json = at_vocabulary_to_json(a, error), *other_json = at_vocabulary_to_json(b, error);
    const unsigned char *bytes = at_vocabulary_subwords(a, &size), *other = at_vocabulary_subwords(b, &other_size);
    const bool same = json && other_json && strcmp(json, other_json) == 0 && size == other_size &&
                      (size == 0 || memcmp(bytes, other, size) == 0);
    free(json);
    free(other_json);
    return same;
}

void at_vocabulary_describe(const at_vocabulary *vocabulary, char *text, size_t size)
{
    static const char *const models[] = {"", " (unigram)", " (bpe)", " (word)", " (char)"};
    const at_cleaning *cleaning = &vocabulary->cleaning;
    snprintf(text, size, "%s%s%s%s%s%s%s%s%s", at_vocabulary_kind_name(vocabulary),
             vocabulary->subwords ? models[vocabulary->subwords->info.model] : "",
             cleaning->form != AT_FORM_NONE ? ", " : "",
             cleaning->form != AT_FORM_NONE ? at_form_names[cleaning->form] : "",
             cleaning->lowercase ? ", lower case" : "", cleaning->tokens != AT_TOKENS_NONE ? ", moses-like" : "",
             vocabulary->begins ? ", <s> before a line" : "", vocabulary->ends ? ", </s> after it" : "",
             vocabulary->tags ? ", a language tag" : "");
}
