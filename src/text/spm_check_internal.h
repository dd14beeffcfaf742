/* Checks the bytes of a .spm file before SentencePiece reads them: 0.1.97 reads past its arrays, or ends the
 * program, on files that it did not write itself. A file that passes is loaded and used safely. */
#ifndef AT_SPM_CHECK_INTERNAL_H
#define AT_SPM_CHECK_INTERNAL_H

#include "base/error.h"

enum { AT_SPM_UNIGRAM = 1, AT_SPM_BPE = 2, AT_SPM_WORD = 3, AT_SPM_CHAR = 4 };
enum { AT_PIECE_NORMAL = 1, AT_PIECE_UNKNOWN, AT_PIECE_CONTROL, AT_PIECE_USER, AT_PIECE_UNUSED, AT_PIECE_BYTE };

typedef struct at_spm_piece {
    const char *text; /* in the bytes of the file; valid UTF-8 without a NUL */
    uint32_t size;
    float score;
    int type;
} at_spm_piece;

typedef struct at_spm_info {
    at_spm_piece *piece; /* [count], in the order of the file, which is that of SentencePiece's ids */
    int32_t count;
    int32_t unknown;   /* the id of the one unknown piece */
    int model;         /* AT_SPM_UNIGRAM ... */
    bool ends_words;   /* U+2581, which stands for a blank, ends a word instead of beginning it */
    bool has_bytes;    /* byte fallback: a character without a piece becomes one piece per byte */
    bool has_user;     /* there are user-defined pieces */
    size_t used, room; /* of `piece`, while reading */
} at_spm_info;

/* Checks the whole file. False with a message that names the fault; the info is then empty. On success it points into
 * `bytes` and is released with at_spm_info_free. `name` is what the message calls the file. */
bool at_spm_check(const unsigned char *bytes, size_t size, const char *name, at_spm_info *info, at_error *error);
void at_spm_info_free(at_spm_info *info);

#endif
