/* The words of a model for other programs: lists, SentencePiece models, tokenizer.json. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/export_internal.h"

bool at_export_json(at_export *x, const char *name, json_t *value)
{
    char *text = value ? at_json_text(value, JSON_INDENT(1) | JSON_REAL_PRECISION(9) | JSON_PRESERVE_ORDER) : NULL;
    const bool done = text ? at_folder_add(x->folder, name, text, strlen(text), x->error)
                           : at_no_memory(x->error, "the file '%s'", name);
    json_decref(value);
    free(text);
    return done;
}

/* ---- Lists ---------------------------------------------------------------------------------------------------- */

const char *at_export_special(const at_export_words *words, int id)
{
    return json_string_value(json_array_get(words->list, (size_t)id));
}

static bool has_pieces(const at_vocabulary *vocabulary)
{
    size_t size;
    return at_vocabulary_subwords(vocabulary, &size);
}

/* A special unit whose name is that of a word of either side gets another one, if the format can have one: <s> becomes
 * <s1>. Padding is known by its two usual names; an empty name: there is none left. */
static void name_special(json_t *const units[2], int id, char name[32])
{
    static const char *const usual[AT_SPECIALS] = {"<pad>", "<unk>", "<s>", "</s>"};
    snprintf(name, 32, "%s", usual[id]);
    for (int i = 1; json_object_get(units[0], name) || json_object_get(units[1], name); i++) {
        if (id == AT_PAD)
            snprintf(name, 32, "%s", i == 1 ? "<blank>" : "");
        else
            snprintf(name, 32, "%.*s%d>", (int)strlen(usual[id]) - 1, usual[id], i);
    }
}

/* The units as an object, true for each; pieces that are named like special units, which no text is cut into, are left
 * out. */
static json_t *units_of(const at_vocabulary *vocabulary)
{
    static const char *const control[] = {"<pad>", "<unk>", "<s>", "</s>", "<blank>"};
    json_t *units = json_object();
    for (int64_t i = AT_SPECIALS; units && i < at_vocabulary_size(vocabulary); i++)
        if (json_object_set_new(units, at_vocabulary_unit(vocabulary, (int32_t)i), json_true()) != 0) {
            json_decref(units);
            return NULL;
        }
    for (size_t i = 0; units && has_pieces(vocabulary) && i < sizeof control / sizeof *control; i++)
        json_object_del(units, control[i]);
    return units;
}

static bool list_words(const at_export *x, const at_vocabulary *vocabulary, json_t *const both[2], const json_t *units,
                       json_t *list)
{
    char name[32];
    for (int id = 0; id < AT_SPECIALS; id++) {
        name_special(both, id, name);
        if (!*name || (!x->format->renames && strcmp(name, at_vocabulary_unit(vocabulary, id)) != 0))
            return at_fail(x->error, AT_UNSUPPORTED,
                           "%s cannot take this model: its vocabulary has the word '%s', which is a special unit there",
                           x->format->title, at_vocabulary_unit(vocabulary, id));
        if (json_array_append_new(list, json_string(name)) != 0)
            return at_no_memory(x->error, "the words of a model");
    }
    for (int64_t i = AT_SPECIALS; i < at_vocabulary_size(vocabulary); i++) {
        const char *unit = at_vocabulary_unit(vocabulary, (int32_t)i);
        snprintf(name, sizeof name, "<row%lld>", (long long)i);
        if (!json_object_get(units, unit) && json_object_get(units, name))
            return at_fail(x->error, AT_UNSUPPORTED, "%s cannot take this model: its vocabulary has the word '%s'",
                           x->format->title, name);
        if (json_array_append_new(list, json_string(json_object_get(units, unit) ? unit : name)) != 0)
            return at_no_memory(x->error, "the words of a model");
    }
    return true;
}

static bool make_words(const at_export *x, const at_vocabulary *vocabulary, json_t *const both[2], const json_t *units,
                       at_export_words *words)
{
    int64_t first, past;
    at_vocabulary_inside(vocabulary, 2, &first, &past);
    *words = (at_export_words){.list = json_array(), .begins = first == 1, .ends = past == 1};
    return words->list ? list_words(x, vocabulary, both, units, words->list)
                       : at_no_memory(x->error, "the words of a model");
}

bool at_export_words_make(at_export *x)
{
    const at_translator *t = x->translator;
    json_t *both[2] = {units_of(t->source), units_of(t->target)};
    bool done = both[0] && both[1];
    if (!done)
        at_no_memory(x->error, "the words of a model");
    done = done && make_words(x, t->source, both, both[0], &x->source) &&
           make_words(x, t->target, both, both[1], &x->target);
    json_decref(both[0]);
    json_decref(both[1]);
    return done;
}

void at_export_words_free(at_export *x)
{
    json_decref(x->source.list);
    json_decref(x->target.list);
}

json_t *at_export_number_of_words(const json_t *list)
{
    json_t *numbers = json_object(), *word;
    size_t i;
    json_array_foreach(list, i, word)
    {
        if (json_object_set_new(numbers, json_string_value(word), json_integer((json_int_t)i)) != 0) {
            json_decref(numbers);
            return NULL;
        }
    }
    return numbers;
}

/* ---- How lines are cut ---------------------------------------------------------------------------------------- */

bool at_export_pieces(at_export *x, const at_vocabulary *vocabulary, const char *name)
{
    size_t size;
    const unsigned char *bytes = at_vocabulary_subwords(vocabulary, &size);
    return !bytes || at_folder_add(x->folder, name, bytes, size, x->error);
}

static const char *kind_of(const at_vocabulary *vocabulary)
{
    return has_pieces(vocabulary) ? "spm" : at_vocabulary_has_words(vocabulary) ? "word" : "char";
}

json_t *at_export_units(const at_export *x)
{
    return json_pack("{s:s,s:s}", "source", kind_of(x->translator->source), "target", kind_of(x->translator->target));
}

/* Words are what lies between white space; characters are cut apart. */
static json_t *cut(const at_vocabulary *vocabulary)
{
    return at_vocabulary_has_words(vocabulary) ? json_pack("{s:s}", "type", "WhitespaceSplit")
                                               : json_pack("{s:s,s:{s:s},s:s,s:b}", "type", "Split", "pattern", "Regex",
                                                           ".", "behavior", "Isolated", "invert", 0);
}

/* The decoder that joins words with a blank is WordPiece's, with a prefix that no word has. */
static json_t *join(const at_vocabulary *vocabulary)
{
    return at_vocabulary_has_words(vocabulary)
               ? json_pack("{s:s,s:s,s:b}", "type", "WordPiece", "prefix", "\x01", "cleanup", 0)
               : json_pack("{s:s}", "type", "Fuse");
}

/* A line, then </s>. */
static json_t *ending(const at_export *x)
{
    const char *end = at_export_special(&x->source, AT_END);
    json_t *line = json_pack("[{s:{s:s,s:i}},{s:{s:s,s:i}}]", "Sequence", "id", "A", "type_id", 0, "SpecialToken", "id",
                             end, "type_id", 0);
    return json_pack("{s:s,s:O,s:o,s:{s:{s:s,s:[i],s:[s]}}}", "type", "TemplateProcessing", "single", line, "pair",
                     line, "special_tokens", end, "id", end, "ids", AT_END, "tokens", end);
}

bool at_export_tokenizer(at_export *x, bool ends)
{
    const at_translator *t = x->translator;
    if (has_pieces(t->source) || has_pieces(t->target))
        return true;
    return at_export_json(x, "tokenizer.json",
                          json_pack("{s:s,s:n,s:n,s:[],s:n,s:o,s:o,s:o,s:{s:s,s:o,s:s}}", "version", "1.0",
                                    "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                                    cut(t->source), "post_processor", ends && x->source.ends ? ending(x) : json_null(),
                                    "decoder", join(t->target), "model", "type", "WordLevel", "vocab",
                                    at_export_number_of_words(x->source.list), "unk_token",
                                    at_export_special(&x->source, AT_UNKNOWN)));
}
