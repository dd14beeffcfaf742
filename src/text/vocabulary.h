/* Vocabularies: text to ids and back. Units are characters, words or the pieces of a SentencePiece model; ids 0..3 are
 * the specials. Any bytes are accepted: what is not UTF-8 becomes U+FFFD and is counted (units.h has the details). */
#ifndef AT_VOCABULARY_H
#define AT_VOCABULARY_H

#include "base/buffer.h"
#include "base/error.h"
#include "text/clean.h"

enum { AT_PAD = 0, AT_UNKNOWN = 1, AT_BEGIN = 2, AT_END = 3, AT_SPECIALS = 4 };

typedef struct at_vocabulary at_vocabulary;

/* `kind`: "char" or "word"; "word:8000" keeps the 8000 most frequent units (ties: first seen first), the specials not
 * counted. Counting, then fixing: ids go by falling frequency from AT_SPECIALS on. Text that looks like a special is a
 * unit like any other.
 * "spm:8000" makes a unigram model of 8000 pieces from the lines that are counted, "spm:8000:bpe" one of merged pairs;
 * "FILE.spm" or "FILE.model" reads one, and counts nothing. The id of a piece is its id in the model plus AT_SPECIALS,
 * but the unknown piece is AT_UNKNOWN. */
at_vocabulary *at_vocabulary_new(const char *kind, at_error *error);
/* Whether there is such a kind; a file is not looked for. */
bool at_vocabulary_kind_known(const char *kind, at_error *error);
void at_vocabulary_free(at_vocabulary *vocabulary);
/* What every line goes through first; before any is counted. */
void at_vocabulary_normalise(at_vocabulary *vocabulary, at_cleaning cleaning);
bool at_vocabulary_count(at_vocabulary *vocabulary, const char *line, size_t size, at_error *error);
bool at_vocabulary_fix(at_vocabulary *vocabulary, at_error *error); /* an empty one (no unit seen) is refused */

int64_t at_vocabulary_size(const at_vocabulary *vocabulary);                 /* with the specials */
const char *at_vocabulary_unit(const at_vocabulary *vocabulary, int32_t id); /* "<unk>" ... for the specials */
int64_t at_vocabulary_frequency(const at_vocabulary *vocabulary, int32_t id);

/* Units of one line (no newline): ids into `ids` up to `room`; gives how many there are in all (may exceed room, and
 * the bytes of the line), -1 if memory ran out. *replaced counts invalid byte sequences. No begin or end is added.
 * `places`, if not NULL, gets each unit's place in the line as begin and end bytes (2 * room numbers). Where
 * normalising changes the line, that is the least stretch of whole characters, with the marks that belong to them, that
 * the unit was made from; two units made from one character have the same place. The place of a piece is without the
 * blank before it. */
int64_t at_vocabulary_encode(const at_vocabulary *vocabulary, const char *line, size_t size, int32_t *ids, int64_t room,
                             int64_t *replaced, int32_t *places);
/* The same for all units of a line, however many: `reserve` provides memory for a number of ids, and for twice as many
 * offsets if they are wanted, and returns false if it is out of memory. Returns the number of units, -1 if out of memory.
 */
typedef bool at_reserve_units(void *context, int64_t count, int32_t **ids, int32_t **offsets);
int64_t at_vocabulary_encode_line(const at_vocabulary *vocabulary, at_line line, at_reserve_units *reserve,
                                  void *context, int64_t *replaced);
/* Adds the line as the units are found in: normalised and clean. */
bool at_vocabulary_clean(const at_vocabulary *vocabulary, const char *line, size_t size, at_buffer *text);
bool at_vocabulary_cleans(const at_vocabulary *vocabulary); /* false: units are found in the line as it is */
/* Adds the line as the pieces of its model spell it, with signs for blanks; only for pieces. */
bool at_vocabulary_spell(const at_vocabulary *vocabulary, const char *line, size_t size, at_buffer *text);
/* Text of ids up to the first end, appended to the buffer: words with blanks between, characters joined, pieces joined
 * with blanks for their signs. An unknown shows as "<unk>", so that it is not lost in silence; the other specials, and
 * what is no id, are left out. False if memory ran out. */
bool at_vocabulary_decode(const at_vocabulary *vocabulary, const int32_t *ids, int64_t count, at_buffer *text);

/* The same with something else for an unknown: `stand_in` adds it for unit `index` of the ids, or gives false. */
typedef bool at_stand_in(void *context, int64_t index, at_buffer *text);
bool at_vocabulary_write(const at_vocabulary *vocabulary, const int32_t *ids, int64_t count, at_stand_in *stand_in,
                         void *context, at_buffer *text);

/* For a model file: one JSON text {"kind":"word","units":[...],"counts":[...]}, without the specials; any unit
 * survives. Release with free. Pieces are {"kind":"spm","hash":"..."}: the bytes of their model are kept beside it, and
 * taken before the vocabulary is used. "normalise":"nfkc" and "lowercase":true are there if they are set. */
char *at_vocabulary_to_json(const at_vocabulary *vocabulary, at_error *error);
at_vocabulary *at_vocabulary_from_json(const char *json, at_error *error);
const unsigned char *at_vocabulary_subwords(const at_vocabulary *vocabulary, size_t *size); /* NULL: none */
/* The same units with the same ids, read in the same way; NULL is the same as NULL. False too if memory is out. */
bool at_vocabulary_same(const at_vocabulary *a, const at_vocabulary *b, at_error *error);
bool at_vocabulary_needs_subwords(const at_vocabulary *vocabulary);
bool at_vocabulary_take_subwords(at_vocabulary *vocabulary, const unsigned char *bytes, size_t size, at_error *error);
at_vocabulary *at_vocabulary_copy(const at_vocabulary *vocabulary, at_error *error); /* of one that is fixed */
/* What it is, for people: "spm (unigram), nfkc, lower case". */
void at_vocabulary_describe(const at_vocabulary *vocabulary, char *text, size_t size);

#endif
