/* Any bytes as a .spm file: an error message, or a model that SentencePiece loads and uses. */
#include "base/utf8.h"
#include "text/spm_check_internal.h"
#include "text/spm_internal.h"

#include <stdlib.h>
#include <string.h>

static bool check(void *context, const at_spm_found *found)
{
    const at_spm_info *info = context;
    if (found->id < 0 || found->id >= info->count || found->begin > found->end)
        abort();
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char line[] = "a \ufb01re of 20\u2103 AAA \u200b\u00a0\u6f22<mark><s>the model";
    at_error error = {0};
    at_spm_info info;
    bool sound = at_spm_check(bytes, size, "fuzz.spm", &info, &error);
    if (sound == (error.code != AT_OK) || strchr(error.text, '\n') || !at_is_utf8(error.text))
        abort();
    at_spm *spm = sound ? at_spm_load(bytes, size, &error) : NULL;
    if (spm && !at_spm_encode(spm, line, sizeof line - 1, check, &info))
        abort();
    at_spm_free(spm);
    at_spm_info_free(&info);
    return 0;
}
