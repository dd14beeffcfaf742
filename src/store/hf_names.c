#include "store/hf_internal.h"

#include <stdio.h>
#include <string.h>

typedef struct part {
    const char *ours;
    int block, blocks;
    const char *theirs;
    bool reads; /* the residual stream; the others add to it */
} part;

#define SELF_ATTENTION                                                                                                 \
    {"self.QKV", 0, 3, "self_attn.q_proj", true}, {"self.QKV", 1, 3, "self_attn.k_proj", true},                        \
        {"self.QKV", 2, 3, "self_attn.v_proj", true}, {"self.O", 0, 1, "self_attn.out_proj", false},                   \
    {                                                                                                                  \
        "norm1", 0, 1, "self_attn_layer_norm", false                                                                   \
    }
#define FEED_FORWARD                                                                                                   \
    {"ffn.inner", 0, 1, "fc1", true},                                                                                  \
    {                                                                                                                  \
        "ffn.outer", 0, 1, "fc2", false                                                                                \
    }
static const part encoder_parts[] = {
    SELF_ATTENTION, FEED_FORWARD, {"norm2", 0, 1, "final_layer_norm", false}, {NULL, 0, 1, NULL, false}};
static const part decoder_parts[] = {SELF_ATTENTION,
                                     {"cross.Q", 0, 1, "encoder_attn.q_proj", true},
                                     {"cross.KV", 0, 2, "encoder_attn.k_proj", true},
                                     {"cross.KV", 1, 2, "encoder_attn.v_proj", true},
                                     {"cross.O", 0, 1, "encoder_attn.out_proj", false},
                                     {"norm2", 0, 1, "encoder_attn_layer_norm", false},
                                     FEED_FORWARD,
                                     {"norm3", 0, 1, "final_layer_norm", false},
                                     {NULL, 0, 1, NULL, false}};

bool at_hf_each(const char *side, int64_t layers, at_hf_each_array *each, void *context)
{
    const part *parts = strcmp(side, "encoder") == 0 ? encoder_parts : decoder_parts;
    char ours[80], theirs[140];
    for (int64_t l = 0; l < layers; l++)
        for (const part *p = parts; p->ours; p++)
            for (int bias = 0; bias < 2; bias++) {
                const bool norm = strncmp(p->ours, "norm", 4) == 0;
                snprintf(ours, sizeof ours, "%s.%lld.%s.%s", side, (long long)l + 1, p->ours,
                         bias   ? "b"
                         : norm ? "g"
                                : "W");
                snprintf(theirs, sizeof theirs, "model.%s.layers.%lld.%s.%s", side, (long long)l, p->theirs,
                         bias ? "bias" : "weight");
                if (!each(context, &(at_hf_array){.ours = ours,
                                                  .theirs = theirs,
                                                  .block = p->block,
                                                  .blocks = p->blocks,
                                                  .in_columns = p->reads && !bias,
                                                  .in_rows = !p->reads}))
                    return false;
            }
    return true;
}
