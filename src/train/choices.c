/* What training lets one choose by name beyond the catalogue of attention: for listings. */
#include "attend_unstable.h"

static const at_entry entries[] = {
    {"position", "sinusoidal", "", "x_t + [sin, cos](t · 10000^(−2i/d)), added to a transformer's embeddings", "",
     "Vaswani et al. 2017"},
    {"position", "learned", "", "x_t + P_t, added to a transformer's embeddings", "P [positions,d]",
     "Gehring et al. 2017"},
    {"optimiser", "adam", "", "w −= rate · m / (√v + ε), m and v running means of g and g², bias corrected", "",
     "Kingma, Ba 2015"},
    {"optimiser", "adamw", "", "adam, and w −= rate · weight-decay · w", "", "Loshchilov, Hutter 2019"},
    {"optimiser", "adadelta", "", "w −= rate · √(E[Δ²] + ε) / √(E[g²] + ε) · g", "", "Zeiler 2012"},
    {"optimiser", "sgd", "", "w −= rate · g", "", ""},
    {"schedule", "constant", "", "rate · min(1, u / warmup), u counts updates", "", ""},
    {"schedule", "noam", "", "rate · hidden^−0.5 · min(u^−0.5, u · warmup^−1.5)", "", "Vaswani et al. 2017"},
    {"schedule", "inverse-sqrt", "", "rate · min(u / warmup, √(warmup / u))", "", ""},
    {"schedule", "cosine", "", "rate · (1 + cos πs) / 2, s from 0 after the warm-up to 1 at the last update", "",
     "Loshchilov, Hutter 2017"},
    {"vocabulary", "char", "", "characters", "", ""},
    {"vocabulary", "word", "[SIZE]", "words between blanks, all or the SIZE most frequent", "", ""},
    {"vocabulary", "spm", "SIZE", "subwords: a SentencePiece unigram model of SIZE pieces, trained on the text", "",
     "Kudo 2018"},
    {"vocabulary", "spm", "SIZE:bpe", "the same by byte-pair encoding", "", "Sennrich, Haddow, Birch 2016"},
    {"vocabulary", "FILE.spm", "", "an existing SentencePiece model", "", ""},
};
enum { ENTRIES = sizeof entries / sizeof *entries };

const at_entry *at_training_entry(int index)
{
    return index >= 0 && index < ENTRIES ? &entries[index] : NULL;
}
