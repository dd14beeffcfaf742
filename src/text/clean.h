/* Cleaning of a line before it is encoded: invalid bytes are replaced and, if set, a Unicode normal form and lower case
 * are applied, and words are split into tokens. These are settings of the model, so that training, translating and aligning do the same. */
#ifndef AT_CLEAN_H
#define AT_CLEAN_H

#include "base/buffer.h"
#include "text/tokens.h"

typedef enum at_form { AT_FORM_NONE, AT_FORM_NFC, AT_FORM_NFKC } at_form;
extern const char *const at_form_names[4]; /* "none", "nfc", "nfkc", NULL */

typedef struct at_cleaning {
    at_form form;
    bool lowercase;
    at_tokens tokens; /* words with their punctuation split off; of word vocabularies only */
} at_cleaning;

/* A line as valid UTF-8. Start from {0}; it is reused from line to line. */
typedef struct at_clean {
    at_buffer text;
    int32_t *origin; /* [text.size, 2] for each byte: the begin and end of the bytes of the line it came from */
    size_t room;
    int64_t replaced; /* invalid byte sequences, now U+FFFD */
} at_clean;

/* Decompose, lower-case each code point, compose: for each character with the marks that follow it, so that the origin of
 * every byte is known. False if out of memory. */
bool at_clean_line(at_clean *clean, at_cleaning cleaning, const char *line, size_t size);
void at_clean_free(at_clean *clean);

#endif
