#include "store/imported_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "text/units.h"

void at_row_ids_free(at_row_ids *ids)
{
    at_vocabulary_free(ids->vocabulary);
    free(ids->row);
    *ids = (at_row_ids){0};
}

/* ---- Ids ------------------------------------------------------------------------------------------------------ */

static bool is_token(const char *name, bool characters)
{
    at_units units = {name, name + strlen(name), !characters};
    at_unit unit;
    return at_units_next(&units, &unit) && unit.text == name && name[unit.size] == '\0' && unit.broken == 0;
}

/* Which special unit the name is, or -1. */
static int special_of(const at_row_specials *specials, const char *name)
{
    const char *const all[AT_SPECIALS] = {[AT_PAD] = specials->pad,
                                          [AT_UNKNOWN] = specials->unknown,
                                          [AT_BEGIN] = specials->begin,
                                          [AT_END] = specials->end};
    for (int i = 0; i < AT_SPECIALS; i++)
        if (all[i] && name && strcmp(all[i], name) == 0)
            return i;
    return -1;
}

/* The unit of a row as JSON. `seen` has the names of the rows before it. */
static json_t *unit_of(const at_row_names *names, int64_t row, bool characters, json_t *seen)
{
    char unnamed[32];
    const char *name = row < names->count ? names->name[row] : NULL;
    if (!name || !is_token(name, characters) || json_object_get(seen, name)) {
        snprintf(unnamed, sizeof unnamed, "<row%lld>", (long long)row);
        name = unnamed;
    }
    return json_object_set_new(seen, name, json_true()) == 0 ? json_string(name) : NULL;
}

/* Gives each row an id: the special ones theirs, the others the next, in the order of the rows. */
static bool list_units(const at_row_names *names, int64_t rows, const at_row_specials *specials, json_t *seen,
                       json_t *units, json_t *counts, at_row_ids *ids)
{
    for (int i = 0; i < AT_SPECIALS; i++)
        ids->row[i] = -1;
    for (int64_t r = 0; r < names->count && r < rows; r++) {
        const int special = special_of(specials, names->name[r]);
        if (special >= 0)
            ids->row[special] = r; /* of two rows with the same name the later one */
    }
    if (ids->row[AT_UNKNOWN] < 0 && names->count < rows)
        ids->row[AT_UNKNOWN] = names->count;
    ids->units = AT_SPECIALS;
    for (int64_t r = 0; r < rows; r++) {
        if (r == ids->row[AT_PAD] || r == ids->row[AT_UNKNOWN] || r == ids->row[AT_BEGIN] || r == ids->row[AT_END])
            continue;
        if (json_array_append_new(units, unit_of(names, r, specials->characters, seen)) != 0 ||
            json_array_append_new(counts, json_integer(0)) != 0)
            return false;
        ids->row[ids->units++] = r;
    }
    return true;
}

bool at_row_ids_make(const at_row_names *names, int64_t rows, const at_row_specials *specials, at_row_ids *ids,
                     at_error *error)
{
    json_t *seen = json_object(), *units = json_array(), *counts = json_array();
    *ids = (at_row_ids){.row = calloc((size_t)(rows + AT_SPECIALS), sizeof *ids->row)};
    char *text = NULL;
    if (seen && units && counts && ids->row && list_units(names, rows, specials, seen, units, counts, ids)) {
        json_t *all = json_pack("{s:s,s:O,s:O}", "kind", specials->characters ? "char" : "word", "units", units,
                                "counts", counts);
        text = all ? at_json_text(all, JSON_COMPACT) : NULL;
        json_decref(all);
    }
    json_decref(seen);
    json_decref(units);
    json_decref(counts);
    if (!text)
        return at_no_memory(error, "the vocabulary of a model");
    ids->vocabulary = at_vocabulary_from_json(text, error);
    free(text);
    return ids->vocabulary;
}

bool at_row_ids_pieces(at_row_ids *ids, const at_bundle *bundle, const char *name, bool tags, at_error *error)
{
    size_t size;
    char *path = at_bundle_path(bundle, name, error);
    unsigned char *bytes = path ? at_bundle_read(bundle, name, &size, error) : NULL;
    const bool done = bytes && at_vocabulary_list_pieces(ids->vocabulary, bytes, size, tags, path, error);
    if (!bytes && path)
        at_fail(error, AT_FILE, "'%s' is missing", path);
    free(path);
    return done;
}

const char *at_row_ids_cut(const json_t *config, const char *side)
{
    return json_string_value(json_object_get(json_object_get(config, "attend"), side));
}

int64_t at_row_named(const at_row_names *names, const char *name)
{
    for (int64_t i = 0; i < names->count; i++)
        if (names->name[i] && strcmp(names->name[i], name) == 0)
            return i;
    return -1;
}

void at_rows_pick(const at_row_ids *ids, const at_real *from, int64_t width, at_real missing, at_real *to)
{
    for (int64_t i = 0; i < ids->units; i++)
        for (int64_t c = 0; c < width; c++)
            to[i * width + c] = ids->row[i] < 0 ? missing : from[ids->row[i] * width + c];
}
