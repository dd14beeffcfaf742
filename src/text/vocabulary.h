/* Vocabularies: text to ids and back. Units are characters or words; ids 0..3 are the specials. Any bytes are accepted:
 * what is not UTF-8 becomes U+FFFD and is counted (units.h has the details). */
#ifndef AT_VOCABULARY_H
#define AT_VOCABULARY_H

#include "error.h"
#include "text.h"

enum { AT_PAD = 0, AT_UNKNOWN = 1, AT_BEGIN = 2, AT_END = 3, AT_SPECIALS = 4 };

typedef struct at_vocabulary at_vocabulary;

/* `kind`: "char" or "word"; "word:8000" keeps the 8000 most frequent units (ties: first seen first), the specials not
 * counted. Counting, then fixing: ids go by falling frequency from AT_SPECIALS on. Text that looks like a special is a
 * unit like any other. */
at_vocabulary *at_vocabulary_new(const char *kind, at_error *error);
void at_vocabulary_free(at_vocabulary *vocabulary);
bool at_vocabulary_count(at_vocabulary *vocabulary, const char *line, size_t size, at_error *error);
bool at_vocabulary_fix(at_vocabulary *vocabulary, at_error *error); /* an empty one (no unit seen) is refused */

int64_t at_vocabulary_size(const at_vocabulary *vocabulary);                 /* with the specials */
const char *at_vocabulary_unit(const at_vocabulary *vocabulary, int32_t id); /* "<unk>" ... for the specials */
int64_t at_vocabulary_frequency(const at_vocabulary *vocabulary, int32_t id);

/* Units of one line (no newline): ids into `ids` up to `room`; gives how many there are in all (may exceed room).
 * *replaced counts invalid byte sequences. No begin or end is added. `pieces`, if not NULL, gets each unit's place in
 * the line as begin and end bytes (2 * room numbers). */
int64_t at_vocabulary_encode(const at_vocabulary *vocabulary, const char *line, size_t size, int32_t *ids, int64_t room,
                             int64_t *replaced, int32_t *pieces);
/* Text of ids up to the first end, appended to the buffer: words with blanks between, characters joined. An unknown
 * shows as "<unk>", so that it is not lost in silence; the other specials, and what is no id, are left out. False if
 * memory ran out. */
bool at_vocabulary_decode(const at_vocabulary *vocabulary, const int32_t *ids, int64_t count, at_buffer *text);

/* For a model file: one JSON text {"kind":"word","units":[...],"counts":[...]}, without the specials; any unit
 * survives. Release with free. */
char *at_vocabulary_to_json(const at_vocabulary *vocabulary, at_error *error);
at_vocabulary *at_vocabulary_from_json(const char *json, at_error *error);

#endif
