/* Any bytes as a .spm file: an error message, or a model that SentencePiece loads and uses. */
#include "fuzz.h"

#include "text/spm_check_internal.h"
#include "text/spm_internal.h"

static bool check(void *context, const at_spm_found *found)
{
    const at_spm_info *info = context;
    EXPECT(found->id >= 0 && found->id < info->count && found->begin <= found->end);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char line[] = "a \ufb01re of 20\u2103 AAA \u200b\u00a0\u6f22<mark><s>the model";
    at_error error = {0};
    at_spm_info info;
    bool sound = at_spm_check(bytes, size, "fuzz.spm", &info, &error);
    expect_message(sound, &error);
    at_spm *spm = sound ? at_spm_load(bytes, size, &error) : NULL;
    EXPECT(!spm || at_spm_encode(spm, line, sizeof line - 1, check, &info));
    at_spm_free(spm);
    at_spm_info_free(&info);
    return 0;
}
