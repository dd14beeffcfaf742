#include "text/vocabulary_internal.h"

#include <stdlib.h>
#include <string.h>

#define BLANK "\xe2\x96\x81" /* U+2581 stands for a blank in pieces */
enum { POINTS = 0x110000, SHARE = 4 };

at_subwords *at_subwords_new(int64_t pieces, bool bpe, at_error *error)
{
    at_subwords *subwords = error->code == AT_OK ? calloc(1, sizeof *subwords) : NULL;
    if (!subwords) {
        at_no_memory(error, "a SentencePiece model");
        return NULL;
    }
    subwords->pieces = pieces;
    subwords->bpe = bpe;
    return subwords;
}

void at_subwords_free(at_subwords *subwords)
{
    if (!subwords)
        return;
    at_buffer_free(&subwords->lines);
    at_spm_info_free(&subwords->info);
    at_spm_free(subwords->spm);
    free(subwords->bytes);
    free(subwords);
}

bool at_subwords_take(at_subwords *subwords, unsigned char *bytes, size_t size, const char *name, at_error *error)
{
    free(subwords->bytes);
    subwords->bytes = bytes;
    subwords->size = size;
    if (!bytes || !at_spm_check(bytes, size, name, &subwords->info, error))
        return false;
    subwords->bpe = subwords->info.model == AT_SPM_BPE;
    subwords->spm = at_spm_load(bytes, size, error);
    return subwords->spm;
}

/* ---- Training one --------------------------------------------------------------------------------------------- */

bool at_subwords_count(at_subwords *subwords, const char *line, size_t size, at_error *error)
{
    if (subwords->pieces == 0)
        return true; /* it was read from a file */
    at_buffer_add(&subwords->lines, line, size);
    at_buffer_add(&subwords->lines, "\n", 1);
    return !subwords->lines.failed || at_no_memory(error, "the lines to make a SentencePiece model from");
}

/* How many different characters the lines have; 0 if out of memory. */
static int64_t different_points(const at_buffer *lines)
{
    unsigned char *seen = calloc(POINTS, 1);
    int64_t count = 0;
    for (size_t at = 0; seen && at < lines->size;) {
        int32_t point;
        bool broken;
        at += at_point_read(lines->bytes + at, lines->size - at, &point, &broken);
        count += !seen[point];
        seen[point] = 1;
    }
    free(seen);
    return count;
}

/* Every character gets a piece of its own, unless those would be more than a quarter of all pieces; then the rarest,
 * one character of the text in 2000, have none. */
bool at_subwords_train(at_subwords *subwords, at_error *error)
{
    int64_t points = different_points(&subwords->lines);
    size_t size = 0;
    if (subwords->lines.size > 0 && points == 0)
        return at_no_memory(error, "a SentencePiece model");
    if (strspn(subwords->lines.size > 0 ? subwords->lines.bytes : "", " \n") == subwords->lines.size)
        return at_fail(error, AT_FORMAT, "the text has no character to build a vocabulary from");
    double coverage = points * SHARE <= subwords->pieces ? 1 : 0.9995;
    unsigned char *bytes = at_spm_train(subwords->lines.bytes, subwords->lines.size, subwords->pieces, subwords->bpe,
                                        coverage, &size, error);
    at_buffer_free(&subwords->lines);
    subwords->pieces = 0;
    return at_subwords_take(subwords, bytes, size, "the model made from the text", error);
}

/* ---- Using one ------------------------------------------------------------------------------------------------ */

typedef struct encoding {
    const at_subwords *subwords;
    const at_vocabulary *listed;
    const char *line;
    size_t size;
    int32_t *ids, *offsets;
    int64_t count, room;
    at_buffer *text;
} encoding;

/* Where a piece begins without the blanks before it. */
static int32_t skip_blanks(const char *line, int32_t begin, int32_t end)
{
    for (int32_t at = begin; at < end;) {
        int32_t point;
        bool broken;
        size_t length = at_point_read(line + at, (size_t)(end - at), &point, &broken);
        if (!at_is_white(point))
            return at;
        at += (int32_t)length;
    }
    return begin;
}

/* Where a piece ends. A piece that is a part of what one character was normalised to would cover no byte of the
 * line; it covers that character. */
static int32_t find_end(const encoding *e, const at_spm_found *found)
{
    bool blank = found->size == 3 && memcmp(found->text, BLANK, 3) == 0;
    int32_t point;
    bool broken;
    if (found->end > found->begin || blank || (size_t)found->end >= e->size)
        return found->end;
    return found->end + (int32_t)at_point_read(e->line + found->end, e->size - (size_t)found->end, &point, &broken);
}

static int32_t id_of(const encoding *e, const at_spm_found *found)
{
    if (!e->listed)
        return found->id == e->subwords->info.unknown ? AT_UNKNOWN : AT_SPECIALS + found->id;
    const int32_t index = at_vocabulary_find(e->listed, (at_unit){found->text, found->size, 0});
    return index < 0 ? AT_UNKNOWN : AT_SPECIALS + index;
}

static bool take_piece(void *context, const at_spm_found *found)
{
    encoding *e = context;
    if (e->count < e->room) {
        e->ids[e->count] = id_of(e, found);
        if (e->offsets) {
            int32_t end = find_end(e, found);
            e->offsets[2 * e->count] = skip_blanks(e->line, found->begin, end);
            e->offsets[2 * e->count + 1] = end;
        }
    }
    if (e->text)
        at_buffer_add(e->text, found->text, found->size);
    e->count++;
    return !e->text || !e->text->failed;
}

int64_t at_subwords_encode(const at_subwords *subwords, const at_vocabulary *listed, const char *line, size_t size,
                           int32_t *ids, int64_t room, int32_t *offsets, at_buffer *text)
{
    encoding e = {subwords, listed, line, size, ids, offsets, 0, room, text};
    if (!subwords->spm)
        return 0;
    return at_spm_encode(subwords->spm, line, size, take_piece, &e) ? e.count : -1;
}

void at_subwords_write(const at_subwords *subwords, int32_t index, at_buffer *text)
{
    const at_spm_piece *piece = &subwords->info.piece[index];
    if (piece->type == AT_PIECE_BYTE) {
        char hex[3] = {piece->text[3], piece->text[4], '\0'}; /* <0xE2> */
        char byte = (char)strtol(hex, NULL, 16);
        at_buffer_add(text, &byte, 1);
        return;
    }
    if (piece->type == AT_PIECE_CONTROL || piece->type == AT_PIECE_UNKNOWN)
        return;
    at_subwords_write_text(piece->text, piece->size, text);
}

void at_subwords_write_text(const char *piece, size_t size, at_buffer *text)
{
    const char *at = piece, *end = piece + size;
    while (at < end) {
        const char *blank = memmem(at, (size_t)(end - at), BLANK, 3);
        at_buffer_add(text, at, (size_t)((blank ? blank : end) - at));
        if (blank)
            at_buffer_add(text, " ", 1);
        at = blank ? blank + 3 : end;
    }
}
