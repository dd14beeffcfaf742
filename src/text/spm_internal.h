/* SentencePiece behind a C interface. No exception leaves it, and nothing is printed. */
#ifndef AT_SPM_INTERNAL_H
#define AT_SPM_INTERNAL_H

#ifdef __cplusplus
extern "C" {
#endif

#include "base/error.h"

typedef struct at_spm at_spm;

/* Loads a model from bytes that at_spm_check has passed. */
at_spm *at_spm_load(const unsigned char *bytes, size_t size, at_error *error);
void at_spm_free(at_spm *spm);

/* One piece of a line: its id in the model, the bytes of the line it came from, and its text as the model's own
 * normaliser left it (the blank as U+2581). */
typedef struct at_spm_found {
    int32_t id, begin, end;
    const char *text;
    size_t size;
} at_spm_found;
typedef bool at_spm_on_piece(void *context, const at_spm_found *found);
/* The pieces of a line of valid UTF-8, in order, until `on_piece` returns false. False if it did, or if out of memory; a
 * line that the model cannot segment (as with a control piece that is a letter) is one unknown piece. */
bool at_spm_encode(const at_spm *spm, const char *line, size_t size, at_spm_on_piece *on_piece, void *context);

/* A model of `pieces` pieces, the unknown one among them, from lines of clean UTF-8 that end with a newline each. One
 * thread and no random numbers: the same lines result in the same bytes. Release the bytes with free. */
unsigned char *at_spm_train(const char *lines, size_t size, int64_t pieces, bool bpe, double coverage,
                            size_t *model_size, at_error *error);

#ifdef __cplusplus
}
#endif
#endif
