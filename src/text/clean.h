/* What happens to a line before a vocabulary sees it: bytes that are no text replaced, and if asked for one of
 * Unicode's normal forms and lower case. Both are settings of the model, so that training, translating and aligning do
 * the same.
 */
#ifndef AT_CLEAN_H
#define AT_CLEAN_H

#include "base/buffer.h"

typedef enum at_form { AT_FORM_NONE, AT_FORM_NFC, AT_FORM_NFKC } at_form;
extern const char *const at_form_names[4]; /* "none", "nfc", "nfkc", NULL */

typedef struct at_cleaning {
    at_form form;
    bool lowercase;
} at_cleaning;

/* A line as clean UTF-8. Start from {0}; may be used for one line after the other. */
typedef struct at_clean {
    at_buffer text;
    int32_t *origin; /* [text.size, 2] for each byte: from where to where in the line it came */
    size_t room;
    int64_t replaced; /* invalid byte sequences, now U+FFFD */
} at_clean;

/* decompose, lower-case each code point, compose: character by character with the marks that follow it, so that every
 * byte knows its origin. False if memory ran out. */
bool at_clean_line(at_clean *clean, at_cleaning cleaning, const char *line, size_t size);
void at_clean_free(at_clean *clean);

#endif
