/* The file is one protobuf message:
 *   model { 1: piece { 1: text, 2: score (float), 3: type } ..., 2: trainer { 3: model, 24: ends words, 35: bytes },
 *           3: normaliser { 2: charsmap, 3: dummy prefix, 4: squeeze blanks, 5: escape blanks },
 *           4: self test { 1: sample { 1: input, 2: expected } ... }, 5: denormaliser }
 * A field is a number and a wire type in one varint, then a varint (0), 8 bytes (1), a length and so many bytes (2) or
 * 4 bytes (5). Unknown fields are skipped; known ones must have their type, and single ones must occur once, so
 * that all readers interpret the file in the same way. */
#include "base/grow.h"
#include "text/spm_check_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/spm_charsmap_internal.h"
#include "text/units.h"

enum {
    MOST_BYTES = 1 << 28,   /* of a file */
    MOST_PIECES = 1 << 21,  /* in it */
    LONGEST_PIECE = 512,    /* bytes; SentencePiece holds 1024 prefixes of a piece at most */
    LONGEST_USER_PIECE = 64 /* bytes; and 64 of a user-defined one */
};

typedef struct message {
    const unsigned char *at, *end;
} message;

typedef struct field {
    uint32_t number;
    int type;
    uint64_t value; /* of a varint */
    message bytes;  /* of all others */
} field;

typedef struct checker {
    const char *name;
    at_spm_info *info;
    at_error *error;
} checker;

static bool fault(checker *c, const char *what)
{
    return at_fail(c->error, AT_FORMAT, "'%s' is not a valid SentencePiece model: %s", c->name, what);
}

/* ---- The wire format -------------------------------------------------------------------------------------------- */

static bool read_varint(message *m, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && m->at < m->end; shift += 7) {
        unsigned char byte = *m->at++;
        if (shift == 63 && byte > 1)
            return false; /* more than 64 bits */
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* The next field; false at the message's end, or with the error set. */
static bool next_field(checker *c, message *m, field *f)
{
    uint64_t key;
    if (c->error->code != AT_OK || m->at == m->end)
        return false;
    if (!read_varint(m, &key) || key >> 3 == 0 || key >> 3 > (1u << 29) - 1)
        return fault(c, "the number of a field is broken");
    *f = (field){.number = (uint32_t)(key >> 3), .type = (int)(key & 7)};
    uint64_t length = f->type == 1 ? 8 : f->type == 5 ? 4 : 0;
    if (f->type == 0)
        return read_varint(m, &f->value) || fault(c, "a number in it is truncated or has more than 64 bits");
    if (f->type != 1 && f->type != 2 && f->type != 5)
        return fault(c, "a field has a type that such files do not have");
    if (f->type == 2 && !read_varint(m, &length))
        return fault(c, "the length of a field is broken");
    if (length > (uint64_t)(m->end - m->at))
        return fault(c, "a field is longer than what is left of the file");
    f->bytes = (message){m->at, m->at + length};
    m->at += length;
    return true;
}

/* Whether a field occurs once and has this type. */
static bool once(checker *c, const field *f, int type, uint64_t *seen, const char *what)
{
    char text[160];
    if (f->type == type && f->number < 64 && !(*seen >> f->number & 1)) {
        *seen |= UINT64_C(1) << f->number;
        return true;
    }
    snprintf(text, sizeof text, "%s %s", what,
             f->type == type ? "occurs twice" : "has another type than it should have");
    return fault(c, text);
}

static bool is_clean(message m)
{
    while (m.at < m.end) {
        int32_t point;
        bool broken;
        m.at += at_point_read((const char *)m.at, (size_t)(m.end - m.at), &point, &broken);
        if (broken && m.at[-1] != '\n')
            return false;
    }
    return true;
}

/* ---- Pieces --------------------------------------------------------------------------------------------------- */

static bool add_piece(checker *c, const at_spm_piece *piece)
{
    at_spm_info *info = c->info;
    if (info->used >= MOST_PIECES)
        return fault(c, "it has more than 2097152 pieces");
    if (!AT_GROW(info->piece, info->room, info->used + 1))
        return at_no_memory(c->error, "the pieces of '%s'", c->name);
    info->piece[info->used++] = *piece;
    return true;
}

static bool read_piece(checker *c, message m)
{
    field f;
    uint64_t seen = 0;
    at_spm_piece piece = {.type = AT_PIECE_NORMAL};
    char text[120];
    size_t number = c->info->used;
    while (next_field(c, &m, &f)) {
        if (f.number == 1 && once(c, &f, 2, &seen, "the text of a piece")) {
            piece.text = (const char *)f.bytes.at;
            piece.size =
                f.bytes.end - f.bytes.at > LONGEST_PIECE ? LONGEST_PIECE + 1 : (uint32_t)(f.bytes.end - f.bytes.at);
        } else if (f.number == 2 && once(c, &f, 5, &seen, "the score of a piece")) {
            memcpy(&piece.score, f.bytes.at, sizeof piece.score);
        } else if (f.number == 3 && once(c, &f, 0, &seen, "the type of a piece")) {
            piece.type = f.value >= AT_PIECE_NORMAL && f.value <= AT_PIECE_BYTE ? (int)f.value : 0;
        }
    }
    if (c->error->code != AT_OK)
        return false;
    const unsigned char *from = (const unsigned char *)piece.text;
    const char *wrong = piece.size == 0              ? "has no text"
                        : piece.size > LONGEST_PIECE ? "is longer than 512 bytes"
                        : piece.type == AT_PIECE_USER && piece.size > LONGEST_USER_PIECE
                            ? "is user-defined and longer than 64 bytes"
                        : !is_clean((message){from, from + piece.size}) ? "is not UTF-8"
                        : piece.type == 0                               ? "has a type that is not known"
                        : !(fabsf(piece.score) <= 1e9f)                 ? "has a score that is not a number"
                                                                        : NULL;
    snprintf(text, sizeof text, "its piece %zu %s", number, wrong ? wrong : "");
    return wrong ? fault(c, text) : add_piece(c, &piece);
}

static int by_text(const void *left, const void *right)
{
    const at_spm_piece *a = *(at_spm_piece *const *)left, *b = *(at_spm_piece *const *)right;
    int order = memcmp(a->text, b->text, a->size < b->size ? a->size : b->size);
    return order != 0 ? order : a->size < b->size ? -1 : a->size > b->size;
}

static bool pieces_differ(checker *c)
{
    at_spm_info *info = c->info;
    const at_spm_piece **order = malloc(info->used * sizeof *order);
    if (!order)
        return at_no_memory(c->error, "the pieces of '%s'", c->name);
    for (size_t i = 0; i < info->used; i++)
        order[i] = &info->piece[i];
    qsort(order, info->used, sizeof *order, by_text);
    bool differ = true;
    for (size_t i = 1; differ && i < info->used; i++)
        differ = by_text(&order[i - 1], &order[i]) != 0;
    free(order);
    return differ || fault(c, "two of its pieces have the same text");
}

/* The byte of a byte piece such as <0x0A>, -1 if it is not one. */
static int byte_of(const at_spm_piece *piece)
{
    char text[7] = "", shown[16];
    if (piece->size == 6)
        memcpy(text, piece->text, 6);
    for (int byte = 0; byte < 256; byte++) {
        snprintf(shown, sizeof shown, "<0x%02X>", byte);
        if (strcmp(shown, text) == 0)
            return byte;
    }
    return -1;
}

/* The constraints on all pieces together. */
static bool check_pieces(checker *c)
{
    at_spm_info *info = c->info;
    int64_t unknown = 0, bytes = 0, normal = 0;
    for (size_t i = 0; i < info->used; i++) {
        const at_spm_piece *piece = &info->piece[i];
        if (piece->type == AT_PIECE_UNKNOWN) {
            unknown++;
            info->unknown = (int32_t)i;
        }
        bytes += piece->type == AT_PIECE_BYTE;
        normal += piece->type == AT_PIECE_NORMAL;
        info->has_user |= piece->type == AT_PIECE_USER;
        if (piece->type == AT_PIECE_BYTE && byte_of(piece) < 0)
            return fault(c, "one of its byte pieces does not have the form <0x0A>");
    }
    if (unknown != 1)
        return fault(c, "it needs exactly one unknown piece");
    if (normal == 0)
        return fault(c, "it has only special pieces");
    if (bytes != (info->has_bytes ? 256 : 0)) /* no two are equal, so 256 are all of them */
        return fault(c, info->has_bytes ? "it falls back to bytes and lacks pieces for some of them"
                                        : "it has byte pieces and does not fall back to bytes");
    info->count = (int32_t)info->used;
    return pieces_differ(c);
}

/* ---- The other parts ------------------------------------------------------------------------------------------ */

static bool read_trainer(checker *c, message m)
{
    field f;
    uint64_t seen = 0;
    while (next_field(c, &m, &f)) {
        if (f.number == 3 && once(c, &f, 0, &seen, "the kind of the model")) {
            if (f.value < AT_SPM_UNIGRAM || f.value > AT_SPM_CHAR)
                return fault(c, "it is neither a unigram nor a BPE, word or char model");
            c->info->model = (int)f.value;
        } else if (f.number == 24 && once(c, &f, 0, &seen, "treat_whitespace_as_suffix")) {
            c->info->ends_words = f.value != 0;
        } else if (f.number == 35 && once(c, &f, 0, &seen, "byte_fallback")) {
            c->info->has_bytes = f.value != 0;
        }
    }
    return c->error->code == AT_OK;
}

static bool read_normaliser(checker *c, message m)
{
    field f;
    uint64_t seen = 0;
    while (next_field(c, &m, &f)) {
        if (f.number == 2 && once(c, &f, 2, &seen, "the normaliser's table")) {
            bool checked;
            const char *wrong = at_charsmap_fault(f.bytes.at, (size_t)(f.bytes.end - f.bytes.at), &checked);
            if (!checked)
                return at_no_memory(c->error, "the normaliser of '%s'", c->name);
            if (wrong)
                return fault(c, wrong);
        } else if (f.number >= 3 && f.number <= 5) {
            once(c, &f, 0, &seen, "a switch of the normaliser");
        }
    }
    return c->error->code == AT_OK;
}

/* SentencePiece runs the samples when it loads the file. */
static bool read_self_test(checker *c, message m)
{
    field f, g;
    while (next_field(c, &m, &f))
        while (f.number == 1 && f.type == 2 && next_field(c, &f.bytes, &g))
            if (g.type == 2 && (g.number == 1 || g.number == 2) && !is_clean(g.bytes))
                return fault(c, "a sample of its self test is not UTF-8");
    return c->error->code == AT_OK;
}

static bool read_model(checker *c, message m)
{
    field f;
    uint64_t seen = 0;
    while (next_field(c, &m, &f)) {
        if (f.number == 1 &&
            (f.type == 2 ? !read_piece(c, f.bytes) : !fault(c, "a piece has another type than it should have")))
            return false;
        if (f.number == 2 && once(c, &f, 2, &seen, "its settings"))
            read_trainer(c, f.bytes);
        if (f.number == 3 && once(c, &f, 2, &seen, "its normaliser"))
            read_normaliser(c, f.bytes);
        if (f.number == 4 && once(c, &f, 2, &seen, "its self test"))
            read_self_test(c, f.bytes);
        if (f.number == 5)
            return fault(c, "it has a denormaliser, which is not supported");
    }
    if (c->error->code == AT_OK && (~seen & (1 << 2 | 1 << 3)) != 0)
        return fault(c, "it has no settings or no normaliser, so it may be truncated");
    return c->error->code == AT_OK && check_pieces(c);
}

bool at_spm_check(const unsigned char *bytes, size_t size, const char *name, at_spm_info *info, at_error *error)
{
    char shown[AT_SHOWN];
    *info = (at_spm_info){.model = AT_SPM_UNIGRAM};
    if (error->code != AT_OK)
        return false;
    checker c = {at_shown(name, shown, sizeof shown), info, error};
    bool valid = size == 0           ? fault(&c, "it is empty")
                 : size > MOST_BYTES ? fault(&c, "it has more than 256 MiB")
                                     : read_model(&c, (message){bytes, bytes + size});
    if (!valid)
        at_spm_info_free(info);
    return valid;
}

void at_spm_info_free(at_spm_info *info)
{
    free(info->piece);
    *info = (at_spm_info){0};
}
