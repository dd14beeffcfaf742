/* Subwords: a SentencePiece model, trained on counted lines or read from a file, and the pieces of lines.
 *
 * Ids are SentencePiece's plus AT_SPECIALS; its unknown piece is AT_UNKNOWN. So our ids are those of spm_encode plus a
 * constant, whatever special pieces the model has itself; those never occur in text and decode to nothing. */
#ifndef AT_SUBWORDS_INTERNAL_H
#define AT_SUBWORDS_INTERNAL_H

#include "attend_unstable.h"
#include "base/buffer.h"
#include "text/spm_check_internal.h"
#include "text/spm_internal.h"

typedef struct at_subwords {
    int64_t pieces; /* of the model to train; 0: it exists */
    bool bpe;       /* else a unigram model */
    at_buffer lines;
    unsigned char *bytes; /* the model as a .spm file has it */
    size_t size;
    at_spm_info info;
    at_spm *spm;
} at_subwords;

at_subwords *at_subwords_new(int64_t pieces, bool bpe, at_error *error);
void at_subwords_free(at_subwords *subwords);
bool at_subwords_count(at_subwords *subwords, const char *line, size_t size, at_error *error); /* clean UTF-8 */
bool at_subwords_train(at_subwords *subwords, at_error *error);
/* Takes over `bytes`, which is from malloc, also if it fails. */
bool at_subwords_take(at_subwords *subwords, unsigned char *bytes, size_t size, const char *name, at_error *error);

/* As at_vocabulary_encode, for clean UTF-8; -1 if out of memory. `listed`, if not NULL, has the units that pieces are by
 * their text. A unit starts after the blank before the piece,
 * unless the piece is nothing but blank. `text`, if not NULL, gets the line as the model's normaliser left it. */
int64_t at_subwords_encode(const at_subwords *subwords, const at_vocabulary *listed, const char *line, size_t size,
                           int32_t *ids, int64_t room, int32_t *offsets, at_buffer *text);
/* Adds the text of a piece: blanks for their sign, the byte of a byte piece, nothing for the model's specials. */
void at_subwords_write(const at_subwords *subwords, int32_t piece, at_buffer *text);
/* The same for the text of a piece that is no byte and no special of the model. */
void at_subwords_write_text(const char *piece, size_t size, at_buffer *text);

#endif
