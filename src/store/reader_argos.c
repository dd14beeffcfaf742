/* Packages of Argos Translate: a zip file (.argosmodel) with one folder, or that folder: metadata.json, a model of
 * CTranslate2 in model/, and the SentencePiece model that cuts lines. */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/utf8.h"
#include "store/imported_internal.h"
#include "store/readers_internal.h"

#define PIECES "sentencepiece.model"
#define MODEL  "model/model.bin"

static bool knows(const char *path, at_error *error)
{
    unsigned char start[4];
    at_error unread = {0};
    at_bundle bundle = {0};
    const bool folder = at_is_folder(path);
    if (!folder && !at_is_zip(start, at_file_begin(path, start, sizeof start, &unread)))
        return false;
    /* A zip file may be another reader's, and then it is for that one to say what is wrong with it. */
    const bool ours = at_bundle_open(&bundle, path, &unread) && at_bundle_has(&bundle, MODEL) &&
                      at_bundle_has(&bundle, "metadata.json");
    at_bundle_close(&bundle);
    (void)error;
    return ours;
}

static const char *text_of(const json_t *about, const char *name)
{
    const char *text = json_string_value(json_object_get(about, name));
    return text ? text : "";
}

/* "Argos package 1.9, en to de; CTranslate2 version 6, ..." */
static bool describe(at_translator *t, const json_t *about, at_error *error)
{
    char version[AT_SHOWN], from[AT_SHOWN], to[AT_SHOWN];
    at_buffer text = {0};
    at_buffer_print(&text, "Argos package %s, %s to %s; %s",
                    at_shown(text_of(about, "package_version"), version, sizeof version),
                    at_shown(text_of(about, "from_code"), from, sizeof from),
                    at_shown(text_of(about, "to_code"), to, sizeof to), t->origin);
    free(t->origin);
    t->origin = text.bytes;
    return !text.failed || at_no_memory(error, "a description");
}

static bool is_known(const at_bundle *bundle, const json_t *about, at_error *error)
{
    if (*text_of(about, "target_prefix"))
        return at_fail(error, AT_UNSUPPORTED,
                       "'%s' begins every translation with a prefix, which this reader does not know", bundle->folder);
    if (!at_bundle_has(bundle, PIECES))
        return at_fail(error, AT_UNSUPPORTED, "'%s' lacks " PIECES "%s", bundle->folder,
                       at_bundle_has(bundle, "bpe.model") ? ", and this reader does not know bpe.model" : "");
    return true;
}

static bool cut_lines(at_vocabulary *vocabulary, const at_bundle *bundle, at_error *error)
{
    at_row_ids ids = {.vocabulary = vocabulary};
    return at_row_ids_pieces(&ids, bundle, PIECES, false, error);
}

static bool load(at_translator *t, const char *path, at_error *error)
{
    size_t size = 0;
    at_bundle bundle = {0};
    bool done = at_bundle_open(&bundle, path, error);
    json_t *about = done ? at_bundle_json(&bundle, "metadata.json", error) : NULL;
    char *name = about && is_known(&bundle, about, error) ? at_bundle_path(&bundle, MODEL, error) : NULL;
    unsigned char *bytes = name ? at_bundle_read(&bundle, MODEL, &size, error) : NULL;
    done = bytes && at_ct2_load(t, &bundle, "model/", bytes, size, name, error) &&
           cut_lines(t->source, &bundle, error) && cut_lines(t->target, &bundle, error) && describe(t, about, error);
    free(bytes);
    free(name);
    json_decref(about);
    at_bundle_close(&bundle);
    return done;
}

const at_reader at_reader_argos = {
    .name = "argos", .formats = ".argosmodel", .knows = knows, .load = load, .of_folders = true};
