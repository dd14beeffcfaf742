/* Vocabularies: text to ids and back. Units are characters, words or the subwords of a SentencePiece model; ids 0..3
 * are the special units. Any bytes are accepted: what is not UTF-8 becomes U+FFFD and is counted (see units.h). */
#ifndef AT_VOCABULARY_H
#define AT_VOCABULARY_H

#include "attend_unstable.h"
#include "base/buffer.h"
#include "base/error.h"
#include "text/clean.h"

enum { AT_PAD = 0, AT_UNKNOWN = 1, AT_BEGIN = 2, AT_END = 3, AT_SPECIALS = 4 };

/* `kind`: "char" or "word"; "word:8000" keeps the 8000 most frequent units (of equally frequent ones the first
 * seen), the special ones not counted. First lines are counted, then the vocabulary is fixed: ids from AT_SPECIALS
 * on by descending frequency. Text that looks like a special unit is a unit like any other. "spm:8000" trains a
 * unigram model of 8000 pieces on the counted lines, "spm:8000:bpe" a BPE model; "FILE.spm" or "FILE.model" reads
 * one, and counts nothing; "FILE" with a dot or a slash in its name is a text file of units (vocabulary_file.c). The id
 * of a piece is its id in the model plus AT_SPECIALS, but the unknown piece is
 * AT_UNKNOWN. */
at_vocabulary *at_vocabulary_new(const char *kind, at_error *error);
/* Whether there is such a kind; a file is not opened. */
bool at_vocabulary_kind_known(const char *kind, at_error *error);
/* Another owner of the same vocabulary, which is fixed; NULL for NULL. Each of them calls at_vocabulary_free. */
at_vocabulary *at_vocabulary_share(at_vocabulary *vocabulary);
/* Sets how every line is cleaned; before any is counted. */
void at_vocabulary_normalise(at_vocabulary *vocabulary, at_cleaning cleaning);
bool at_vocabulary_count(at_vocabulary *vocabulary, const char *line, size_t size, at_error *error);
bool at_vocabulary_fix(at_vocabulary *vocabulary, at_error *error); /* an empty one (no unit seen) is refused */

/* Units of one line (no newline): ids into `ids` up to `room`; returns how many there are in all (may exceed room, and
 * the bytes of the line), -1 if out of memory. *replaced counts invalid byte sequences. No begin or end is added.
 * `offsets`, if not NULL, gets the byte offsets where each unit begins and ends (2 * room numbers). Where normalisation
 * changes the line, they span the fewest whole characters, with their combining marks, that the unit was made from; two
 * units made from one character have the same offsets. The offsets of a subword do not include the blank before it. */
int64_t at_vocabulary_encode(const at_vocabulary *vocabulary, const char *line, size_t size, int32_t *ids, int64_t room,
                             int64_t *replaced, int32_t *offsets);
/* The same for all units of a line, however many: `reserve` provides memory for a number of ids, and for twice as
 * many offsets if they are wanted, and returns false if it is out of memory. Returns the number of units, -1 if out
 * of memory. */
typedef bool at_reserve_units(void *context, int64_t count, int32_t **ids, int32_t **offsets);
int64_t at_vocabulary_encode_line(const at_vocabulary *vocabulary, at_line line, at_reserve_units *reserve,
                                  void *context, int64_t *replaced);
/* Adds the line normalised, as valid UTF-8, not split into tokens: what the model's output is compared with. */
bool at_vocabulary_clean(const at_vocabulary *vocabulary, const char *line, size_t size, at_buffer *text);
bool at_vocabulary_has_words(const at_vocabulary *vocabulary); /* its units are words */
bool at_vocabulary_cleans(const at_vocabulary *vocabulary);    /* false: lines are encoded as they are */
/* Adds the line as the subwords spell it, with U+2581 for blanks; only for subwords. */
bool at_vocabulary_spell(const at_vocabulary *vocabulary, const char *line, size_t size, at_buffer *text);
/* Text of ids up to the first end, appended to the buffer: words separated by blanks, characters joined, subwords
 * joined with blanks for U+2581. An unknown unit is written as "<unk>", so that it is not lost silently; the other
 * special units and invalid ids are left out. False if out of memory. */
bool at_vocabulary_decode(const at_vocabulary *vocabulary, const int32_t *ids, int64_t count, at_buffer *text);

/* The same with a replacement for unknown units: `replace` adds it for unit `index` of the ids, or returns false. */
typedef bool at_replace_unknown(void *context, int64_t index, at_buffer *text);
bool at_vocabulary_write(const at_vocabulary *vocabulary, const int32_t *ids, int64_t count,
                         at_replace_unknown *replace, void *context, at_buffer *text);

/* For a model file: one JSON text {"kind":"word","units":[...],"counts":[...]}, without the special units. Release with
 * free. Subwords are {"kind":"spm","hash":"..."}, with units if those are listed: the bytes of their model are stored separately, and must be passed to
 * _take_subwords before the vocabulary is used. "begins", "ends" and "tags" are there if they are true. "normalise":"nfkc", "lowercase":true and "tokenise":"moses-like" are there if they are set. */
char *at_vocabulary_to_json(const at_vocabulary *vocabulary, at_error *error);
at_vocabulary *at_vocabulary_from_json(const char *json, at_error *error);
const unsigned char *at_vocabulary_subwords(const at_vocabulary *vocabulary, size_t *size); /* NULL: none */
/* The same units with the same ids, and the same cleaning; NULL equals NULL. False also if out of memory. */
bool at_vocabulary_same(const at_vocabulary *a, const at_vocabulary *b, at_error *error);
bool at_vocabulary_needs_subwords(const at_vocabulary *vocabulary);
bool at_vocabulary_take_subwords(at_vocabulary *vocabulary, const unsigned char *bytes, size_t size, at_error *error);
at_vocabulary *at_vocabulary_copy(const at_vocabulary *vocabulary, at_error *error); /* of a fixed one */
/* The vocabulary, whose units are words, cuts lines into the pieces of a SentencePiece model, and finds them by their text
 * among its units: those of other programs, which number pieces in another way than their model. `tags`: a line may begin
 * with a unit such as >>fra<<, up to its first <<. Takes over `bytes`, also if it fails; `name` is for error messages. */
bool at_vocabulary_list_pieces(at_vocabulary *vocabulary, unsigned char *bytes, size_t size, bool tags,
                               const char *name, at_error *error);
/* What a line that has a unit gets in addition: AT_BEGIN before its units, AT_END after them. Their offsets are empty
 * spans at the beginning and the end of the line. */
void at_vocabulary_frame(at_vocabulary *vocabulary, bool begins, bool ends);
/* The units of a line of `count` that were not added by a frame: *first .. *past - 1. */
void at_vocabulary_inside(const at_vocabulary *vocabulary, int64_t count, int64_t *first, int64_t *past);
/* Cuts the units of a line to `most`; one that ends in AT_END still does. Returns how many are left. */
int64_t at_vocabulary_shorten(const at_vocabulary *vocabulary, int32_t *ids, int64_t count, int64_t most);
/* A description for people: "spm (unigram), nfkc, lower case". */
void at_vocabulary_describe(const at_vocabulary *vocabulary, char *text, size_t size);

#endif
