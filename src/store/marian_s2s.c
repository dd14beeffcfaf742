/* Marian's type s2s with one layer on either side: our model nematus. A cell's matrices are [in,out]: W, U and b for the
 * reset and the update gate, Wx, Ux and bx for the candidate. */
#include <stdio.h>
#include <string.h>

#include "store/marian_internal.h"

static bool is_usual(const at_marian *m)
{
    static const char *const usual[][2] = {{"enc-type", "bidirectional"},
                                           {"enc-cell", "gru"},
                                           {"dec-cell", "gru"},
                                           {"enc-cell-depth", "1"},
                                           {"dec-cell-base-depth", "2"},
                                           {"enc-depth", "1"},
                                           {"dec-depth", "1"},
                                           {"layer-normalization", "false"},
                                           {"skip", "false"},
                                           {"right-left", "false"},
                                           {"lemma-dim-emb", "0"},
                                           {"ulr", "false"}};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        const char *is = at_marian_text(m, usual[i][0]);
        if (*is && strcmp(is, usual[i][1]) != 0)
            return at_marian_refuse(m, usual[i][0]);
    }
    return json_array_size(json_object_get(m->settings, "input-types")) == 0 || at_marian_refuse(m, "input-types");
}

/* The cell OURS from THEIRS_W and so on; `inside`: the bias of the candidate is inside its reset. */
static bool put_cell(at_import *in, const char *ours, const char *theirs, bool inside)
{
    static const char *const gates[][2] = {{"W", "W"}, {"U", "U"}, {"b", "b"}};
    const int64_t H = in->settings.hidden;
    char our[80], their[80];
    for (int i = 0; i < 3; i++)
        for (int candidate = 0; candidate < 2; candidate++) {
            const bool bias = i == 2;
            at_import_name(our, sizeof our, "%s.%s%s", ours, bias && candidate && inside ? "recurrent." : "", gates[i][0]);
            at_import_name(their, sizeof their, "%s_%s%s", theirs, gates[i][1], candidate ? "x" : "");
            const at_import_part part = {.ours = our,
                                         .theirs = their,
                                         .row = candidate ? 2 * H : 0,
                                         .transposed = !bias,
                                         .count = H * (2 - candidate)};
            if (!at_import_put(in, &part))
                return false;
        }
    return true;
}

static bool put_transposed(at_import *in, const char *ours, const char *theirs)
{
    return at_import_put(in, &(at_import_part){.ours = ours, .theirs = theirs, .transposed = true});
}

static bool put_vector(at_import *in, const char *ours, const char *theirs)
{
    return at_import_put(in, &(at_import_part){.ours = ours, .theirs = theirs, .adds = true});
}

static bool put_parameters(at_marian *m, const char *source_E, const char *target_E)
{
    at_import *in = &m->in;
    const char *output = at_import_has(in, "decoder_ff_logit_l2_Wt") ? "decoder_ff_logit_l2_Wt" : target_E;
    return at_import_rows(in, "source.E", source_E, &m->source, 0) &&
           at_import_rows(in, "target.E", target_E, &m->target, 0) &&
           put_cell(in, "encoder.forward", "encoder_bi", false) &&
           put_cell(in, "encoder.backward", "encoder_bi_r", false) &&
           put_cell(in, "decoder.first", "decoder_cell1", false) &&
           put_cell(in, "decoder.second", "decoder_cell2", true) &&
           put_transposed(in, "decoder.W_s.W", "decoder_ff_state_W") &&
           put_vector(in, "decoder.W_s.b", "decoder_ff_state_b") &&
           put_transposed(in, "attention.U_a.W", "decoder_Wc_att") &&
           put_transposed(in, "attention.W_a.W", "decoder_W_comb_att") &&
           put_vector(in, "attention.W_a.b", "decoder_b_att") && put_vector(in, "attention.v_a", "decoder_U_att") &&
           put_transposed(in, "output.O_e.W", "decoder_ff_logit_l1_W0") &&
           put_transposed(in, "output.O_s.W", "decoder_ff_logit_l1_W1") &&
           put_transposed(in, "output.O_c.W", "decoder_ff_logit_l1_W2") &&
           put_vector(in, "output.O_e.b", "decoder_ff_logit_l1_b0") &&
           put_vector(in, "output.O_e.b", "decoder_ff_logit_l1_b1") &&
           put_vector(in, "output.O_e.b", "decoder_ff_logit_l1_b2") &&
           at_import_rows(in, "output.W_o.W", output, &m->target, 0) &&
           at_import_rows(in, "output.W_o.b", "decoder_ff_logit_l2_b", &m->target, AT_NEVER);
}

bool at_marian_s2s(at_translator *t, at_marian *m)
{
    at_import *in = &m->in;
    const bool one = at_import_has(in, "Wemb");
    const char *source_E = one ? "Wemb" : "encoder_Wemb", *target_E = one ? "Wemb" : "decoder_Wemb";
    const at_array *source = is_usual(m) ? at_import_need(in, source_E, 2) : NULL,
                   *target = source ? at_import_need(in, target_E, 2) : NULL,
                   *state = target ? at_import_need(in, "decoder_ff_state_W", 2) : NULL,
                   *keys = state ? at_import_need(in, "decoder_Wc_att", 2) : NULL;
    if (!keys || !at_marian_words(m, at_import_dim(source, 1), at_import_dim(target, 1)) ||
        !at_import_set(in, "model", "nematus") ||
        !at_import_set_number(in, "embedding", (double)at_import_dim(target, 0)) ||
        !at_import_set_number(in, "hidden", (double)at_import_dim(state, 0)) ||
        !at_import_set_number(in, "attention", (double)at_import_dim(keys, 0)))
        return false;
    t->model = at_import_model(in, m->source.units, m->target.units);
    return t->model && put_parameters(m, source_E, target_E);
}
