/* Any bytes as a model of MarianMT in the format of PyTorch, or after a first byte { as its config.json: an error message,
 * for the folder has no source.spm, whatever else it holds. */
#include "fuzz.h"

#include <stdio.h>

static void put(const char *name, const void *bytes, size_t size)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", own_folder(), name);
    write_bytes(path, bytes, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char usual[] = "{\"model_type\":\"marian\",\"d_model\":4,\"encoder_layers\":1,\"decoder_layers\":1}";
    static const char words[] = "{\"</s>\":0,\"<unk>\":1,\"a\":2,\"<pad>\":3}";
    at_error error = {0};
    const bool config = size > 0 && bytes[0] == '{';
    put("config.json", config ? (const char *)bytes : usual, config ? size : sizeof usual - 1);
    put("vocab.json", words, sizeof words - 1);
    put("pytorch_model.bin", config ? (const uint8_t *)usual : bytes, config ? sizeof usual - 1 : size);
    at_translator *t = at_translator_load(own_folder(), &error);
    expect_message(t, &error);
    EXPECT(!t);
    return 0;
}
