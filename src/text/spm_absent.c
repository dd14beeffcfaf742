/* In place of spm.cc in a build without SentencePiece (-DAT_SPM=OFF): whatever needs subwords is refused. */
#include "text/spm_internal.h"

static void refuse(at_error *error)
{
    at_fail(
        error, AT_UNSUPPORTED,
        "this attend was built without SentencePiece (AT_SPM=OFF), so it has no subwords; use vocabularies of words or "
        "characters");
}

at_spm *at_spm_load(const unsigned char *bytes, size_t size, at_error *error)
{
    (void)bytes, (void)size;
    refuse(error);
    return NULL;
}

void at_spm_free(at_spm *spm)
{
    (void)spm;
}

bool at_spm_encode(const at_spm *spm, const char *line, size_t size, at_spm_on_piece *on_piece, void *context)
{
    (void)spm, (void)line, (void)size, (void)on_piece, (void)context;
    return false;
}

unsigned char *at_spm_train(const char *lines, size_t size, int64_t pieces, bool bpe, double coverage,
                            size_t *model_size, at_error *error)
{
    (void)lines, (void)size, (void)pieces, (void)bpe, (void)coverage, (void)model_size;
    refuse(error);
    return NULL;
}
