/* Vocabularies for the command: made from text, or read from a vocabulary file or a model. */
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "store/translator.h"

/* The index of a name in a list that ends with NULL. */
static bool find_name(const char *what, const char *name, const char *const *names, int *index, at_error *error)
{
    int count = 0;
    for (*index = 0; names[count]; count++)
        if (name && strcmp(names[count], name) == 0) {
            *index = count;
            return true;
        }
    return !name || at_unknown(what, name, names, count, error);
}

static bool read_text(const at_vocabulary_text *text, at_cleaning *cleaning, at_error *error)
{
    int form, tokens;
    if (!find_name("normalisation", text->normalise, at_form_names, &form, error) ||
        !find_name("tokeniser", text->tokenise, at_tokens_names, &tokens, error))
        return false;
    *cleaning = (at_cleaning){.form = (at_form)form, .lowercase = text->lowercase, .tokens = (at_tokens)tokens};
    return true;
}

static bool count_file(at_vocabulary *vocabulary, const char *path, at_error *error)
{
    at_line_reader *reader = at_line_reader_open(path, error);
    at_line line;
    while (reader && at_line_reader_next(reader, &line, error))
        if (!at_vocabulary_count(vocabulary, line.text, line.size, error))
            break;
    at_line_reader_free(reader);
    return error->code == AT_OK;
}

at_vocabulary *at_vocabulary_make(const char *kind, const at_vocabulary_text *text, const char *const *paths, int count,
                                  at_error *error)
{
    at_cleaning cleaning;
    at_vocabulary *vocabulary = read_text(text, &cleaning, error) ? at_vocabulary_new(kind, error) : NULL;
    if (vocabulary)
        at_vocabulary_normalise(vocabulary, cleaning);
    for (int i = 0; vocabulary && i < count && error->code == AT_OK; i++)
        count_file(vocabulary, paths[i], error);
    if (vocabulary && at_vocabulary_fix(vocabulary, error))
        return vocabulary;
    at_vocabulary_free(vocabulary);
    return NULL;
}

/* What a reader knows, or any safetensors file: that starts with the length of its header, 8 bytes, and its first brace; no text contains NULs. */
static bool is_model(const char *path, at_error *error)
{
    unsigned char start[9] = {0};
    if (at_is_model(path, error))
        return true;
    return at_file_begin(path, start, sizeof start, error) == sizeof start && start[7] == 0 && start[8] == '{';
}

static at_vocabulary *from_model(const char *path, const char *side, at_error *error)
{
    at_translator *t = at_translator_load(path, error);
    at_vocabulary *vocabulary = NULL;
    const bool of_source = side && strcmp(side, "source") == 0;
    if (t && side && !of_source && strcmp(side, "target") != 0)
        at_fail(error, AT_USAGE, "a model has the sides 'source' and 'target', not '%s'", side);
    else if (t && !side && t->source && !at_vocabulary_same(t->source, t->target, error))
        at_fail(error, AT_USAGE, "'%s' has two vocabularies: choose `side` source or target", path);
    else if (t && of_source && !t->source)
        at_fail(error, AT_USAGE, "'%s' %s", path,
                t->model->kind->has_pictures ? "reads pictures and has no source vocabulary"
                                             : "is a language model and has no source");
    else if (t)
        vocabulary = at_vocabulary_copy(of_source ? t->source : t->target, error);
    at_translator_free(t);
    return vocabulary;
}

at_vocabulary *at_vocabulary_load(const char *path, const char *side, const at_vocabulary_text *text, at_error *error)
{
    at_cleaning cleaning;
    if (error->code != AT_OK || !read_text(text, &cleaning, error))
        return NULL;
    const bool cleans = cleaning.form != AT_FORM_NONE || cleaning.lowercase || cleaning.tokens != AT_TOKENS_NONE;
    const bool of_model = is_model(path, error);
    if (error->code != AT_OK)
        return NULL;
    if (of_model) {
        if (!cleans)
            return from_model(path, side, error);
        at_fail(error, AT_USAGE, "'%s' is a model, which knows how its text is cleaned", path);
        return NULL;
    }
    if (side) {
        at_fail(error, AT_USAGE, "'%s' is a vocabulary, which has one `side`", path);
        return NULL;
    }
    at_buffer name = {0};
    at_buffer_print(&name, "%s%s", strpbrk(path, "./") ? "" : "./", path); /* a name like "char" is a file here */
    at_vocabulary *vocabulary = name.failed ? NULL : at_vocabulary_new(name.bytes, error);
    if (name.failed)
        at_no_memory(error, "the vocabulary '%s'", path);
    if (vocabulary)
        at_vocabulary_normalise(vocabulary, cleaning);
    at_buffer_free(&name);
    return vocabulary;
}
