#include "habits.h"

#include <string.h>

/* An option of attend and what it is called elsewhere: fairseq, Marian, OpenNMT, Sockeye, Hugging Face, sacreBLEU, and
 * American spelling. A row counts for the commands that have its option; of several rows the first counts. */
static const struct habit {
    const char *ours;    /* NULL: of every command, and there is no such option */
    const char *theirs;  /* separated by blanks; an underscore is read as a dash */
    const char *instead; /* what to say if it is more than another name; NULL: "it is called --OURS" */
} habits[] = {
    {"source", .theirs = "src train-src src-train train-source source-file src-file sources s"},
    {"target", .theirs = "tgt trg train-tgt train-trg tgt-train train-target target-file tgt-file targets"},
    {"tsv", .theirs = "train-sets train-set trainpref train-file train-files data data-dir train-data corpus",
     .instead = "the text is --source FILE and --target FILE, or --tsv FILE"},
    {"valid-source", .theirs = "valid-src src-valid validation-source dev-source dev-src eval-src"},
    {"valid-target", .theirs = "valid-tgt valid-trg tgt-valid validation-target dev-target dev-tgt eval-tgt"},
    {"valid-tsv", .theirs = "valid-sets valid-set validpref validation-file dev valid validation dev-set",
     .instead = "the text is --valid-source FILE and --valid-target FILE, or --valid-tsv FILE"},
    {"resume",
     .theirs = "restore-file train-from resume-from resume-from-checkpoint continue continue-from finetune-from-model "
               "checkpoint load-checkpoint restart restore"},
    {"overwrite", .theirs = "overwrite-output overwrite-output-dir force no-restore no-resume reset"},
    {"joint-vocab", .theirs = "joined-dictionary share-vocab shared-vocab joint-vocabulary joint-dictionary"},
    {"source-vocab",
     .theirs = "src-vocab srcdict source-dict source-vocabulary src-vocab-size source-vocab-size vocab vocabs "
               "dim-vocabs vocab-size vocab-type vocabulary"},
    {"target-vocab",
     .theirs = "tgt-vocab trg-vocab tgtdict target-dict target-vocabulary tgt-vocab-size target-vocab-size"},
    {"normalise", .theirs = "normalize normalization unicode-normalization nfkc nfc"},
    {"lowercase", .theirs = "lower-case lower do-lower-case lc to-lower"},
    {"subword-sampling", .theirs = "bpe-dropout sentencepiece-alphas subword-regularization spm-alpha"},
    {"batch-tokens", .theirs = "max-tokens mini-batch-words tokens-per-batch batch-words token-batch-size"},
    {"batch-size",
     .theirs = "bsz bs batch mini-batch max-sentences train-batch-size per-device-train-batch-size batch-sentences "
               "max-tokens eval-batch-size per-device-eval-batch-size batch-type"},
    {"accumulate", .theirs =
                       "update-freq gradient-accumulation-steps accum-count accumulation grad-accum optimizer-delay "
                       "update-interval"},
    {"learning-rate", .theirs = "lr learn-rate initial-learning-rate learningrate eta"},
    {"optimiser", .theirs = "optim optimizer opt"},
    {"schedule", .theirs =
                     "lr-scheduler lr-scheduler-type scheduler lr-schedule decay-method lr-decay lr-decay-strategy "
                     "learning-rate-scheduler-type"},
    {"warmup", .theirs = "warmup-steps warmup-updates lr-warmup num-warmup-steps learning-rate-warmup warm-up"},
    {"weight-decay", .theirs = "wd decay l2"},
    {"clip-norm", .theirs = "clip grad-clip max-grad-norm clip-gradient gradient-clip gradient-clipping-threshold "
                            "clip-gradients grad-norm"},
    {"ema", .theirs = "ema-decay exponential-smoothing moving-average"},
    {"average", .theirs = "average-checkpoints average-decay checkpoint-averaging"},
    {"label-smoothing", .theirs = "smoothing label-smoothing-factor label-smooth"},
    {"word-dropout", .theirs = "dropout-trg target-word-dropout"},
    {"r-drop", .theirs = "rdrop rdrop-alpha reg-alpha r-drop-alpha"},
    {"guided-weight", .theirs = "guided-alignment-weight lambda-align"},
    {"guided-alignment", .theirs = "align alignments train-align"},
    {"epochs", .theirs = "max-epoch max-epochs num-epochs num-train-epochs after-epochs epoch n-epochs"},
    {"updates", .theirs = "max-update max-updates max-steps train-steps steps after-batches iterations max-num-updates "
                          "num-updates num-steps"},
    {"minutes", .theirs = "stop-time-hours max-time time-limit max-seconds"},
    {"early-stopping", .theirs = "patience early-stop early-stopping-patience max-num-checkpoint-not-improved"},
    {"valid-metric", .theirs = "valid-metrics best-checkpoint-metric metric-for-best-model early-stopping-criteria "
                               "optimized-metric eval-metric"},
    {"valid-every", .theirs =
                        "validate-interval-updates valid-freq eval-steps valid-steps valid-interval validate-interval "
                        "checkpoint-interval eval-interval"},
    {"report-every", .theirs = "log-interval disp-freq logging-steps log-every report-interval"},
    {"save-every", .theirs = "save-interval-updates save-freq save-steps save-checkpoint-steps save-interval"},
    {"output", .theirs =
                   "save-dir save-model save-path output-dir output-path output-model model-dir out save out-file "
                   "output-file prefix-out"},
    {"cell", .theirs = "rnn-type cell-type enc-cell dec-cell rnn-cell-type rnn-cell"},
    {"model",
     .theirs =
         "arch architecture model-type type encoder-type decoder-type models model-path model-file checkpoint ckpt "
         "path model-name-or-path checkpoints"},
    {"decoder-layers", .theirs = "dec-layers dec-depth num-decoder-layers"},
    {"layers", .theirs = "enc-layers encoder-layers enc-depth num-layers n-layers nlayers num-encoder-layers depth"},
    {"hidden", .theirs = "hidden-size hidden-dim rnn-size dim-rnn d-model dim-model model-dim rnn-num-hidden "
                         "transformer-model-size encoder-embed-dim decoder-embed-dim units"},
    {"embedding", .theirs = "emb-size embed-dim embedding-size embedding-dim word-vec-size dim-emb num-embed emb-dim"},
    {"ffn",
     .theirs =
         "ffn-dim d-ff dim-feedforward transformer-ff transformer-dim-ffn encoder-ffn-embed-dim feed-forward-size "
         "decoder-ffn-embed-dim ffn-size intermediate-size transformer-feed-forward-num-hidden ff-size"},
    {"kv-heads", .theirs = "num-key-value-heads num-kv-heads n-kv-heads"},
    {"heads", .theirs =
                  "num-heads nhead nheads n-heads num-attention-heads encoder-attention-heads decoder-attention-heads "
                  "transformer-heads transformer-attention-heads attention-heads h-heads"},
    {"attention-dropout", .theirs = "attn-dropout attention-probs-dropout-prob transformer-dropout-attention"},
    {"ffn-dropout", .theirs = "relu-dropout activation-dropout transformer-dropout-ffn"},
    {"dropout", .theirs = "dropout-rnn transformer-dropout drop hidden-dropout-prob"},
    {"score",
     .theirs = "attn attention-type global-attention attn-type score-function attention-score rnn-attention-type"},
    {"normaliser", .theirs = "normalizer attention-function global-attention-function normalization-function"},
    {"position", .theirs = "positional-encoding position-encoding pos-enc position-embedding pos-encoding "
                           "position-embedding-type"},
    {"positions", .theirs = "max-positions max-source-positions max-position-embeddings"},
    {"activation", .theirs = "activation-fn activation-function transformer-ffn-activation"},
    {"norm", .theirs = "normalize-before encoder-normalize-before pre-norm prenorm decoder-normalize-before",
     .instead = "layer norm before each sub-layer is --norm pre"},
    {"norm", .theirs = "transformer-preprocess transformer-postprocess layer-norm"},
    {"tie",
     .theirs = "tied-embeddings share-decoder-input-output-embed share-decoder-embeddings tie-weights weight-tying"},
    {"share-embeddings", .theirs = "share-all-embeddings tied-embeddings-all tied-embeddings-src"},
    {"input-feeding", .theirs = "input-feed rnn-decoder-input-feed"},
    {"bidirectional", .theirs = "brnn bidir bi bidirectional-encoder"},
    {"beam", .theirs = "beam-size num-beams beam-width b k-beam"},
    {"n-best", .theirs = "nbest num-return-sequences n-best-size nbest-size"},
    {"length-penalty", .theirs = "lenpen len-pen length-norm alpha length-penalty-alpha"},
    {"coverage-penalty", .theirs = "beta coverage-penalty-weight cov-pen coverage-beta"},
    {"no-repeat-ngram", .theirs = "no-repeat-ngram-size block-ngram-repeat ngram-blocking repetition-ngram"},
    {"glossary", .theirs = "constraints terminology terms lexical-constraints dictionary"},
    {"split", .theirs = "split-sentences sentence-split ssplit"},
    {"sample",
     .theirs = "temperature temp sampling do-sample sampling-temperature random-sampling-temp output-sampling"},
    {"max-length-factor", .theirs = "max-len-a max-output-length-num-stds max-length-ratio"},
    {"max-length",
     .theirs = "max-len max-len-b max-new-tokens max-decode-length max-output-length max-sent-length max-seq-len "
               "max-seq-length maximum-length src-seq-length"},
    {"min-length-factor", .theirs = "min-len min-length min-decode-length"},
    {"max-source", .theirs = "max-input-length max-source-length max-length-crop"},
    {"replace-unknown", .theirs = "replace-unk unk-replace"},
    {"scores", .theirs = "with-scores word-scores print-score print-scores score report-score"},
    {"alignment", .theirs = "print-alignment report-align output-attention alignments"},
    {"reference", .theirs = "ref refs references r reference-file gold"},
    {"tokenise", .theirs = "tokenize tok tokenizer tokenization"},
    {"sentence", .theirs = "sentence-level sent"},
    {"sentence", .theirs = "metric metrics", .instead = "metrics are words: attend score bleu chrf --reference FILE"},
    {"confidence", .theirs = "bootstrap n-bootstrap confidence-n"},
    {"compare", .theirs = "paired-bs paired baseline"},
    {"decimals", .theirs = "width w precision"},
    {"input", .theirs = "in src source source-file src-file hyp hypothesis sys system test-source input-file infile"},
    {"target", .theirs = "ref reference"},
    {"config", .theirs = "c config-file yaml"},
    {"threads", .theirs = "cpu-threads num-threads nthreads num-workers workers n-threads jobs j"},
    {"seed", .theirs = "random-seed"},
    {"quiet", .theirs = "silent no-progress-bar no-progress disable-tqdm quiet-translation q"},
    {"verbose", .theirs = "log-level debug v"},
    {"version", .theirs = "V"},
    {NULL, .theirs = "fp16 bf16 amp half float16 fp32 precision-type optimize int8 quantize",
     .instead = "attend computes in 32-bit numbers"},
    {NULL,
     .theirs = "gpu gpus cuda device devices device-id device-ids use-gpu no-cuda cpu gpu-ranks world-size local-rank "
               "distributed-world-size nproc-per-node d",
     .instead = "attend computes on the CPU; --threads chooses how many cores it uses"},
    {NULL, .theirs = "workspace mem memory", .instead = "memory is allocated as it is needed"},
};
enum { HABITS = sizeof habits / sizeof *habits };

/* The same for commands. */
static const struct {
    const char *ours, *theirs;
} commands[] = {
    {"translate", "generate interactive predict infer inference decode decoder test run sample continue"},
    {"train", "fit learn finetune fine-tune"},
    {"score", "eval evaluate bleu sacrebleu metric metrics validate perplexity"},
    {"show", "visualise visualize plot attention-map heatmap"},
    {"info", "inspect describe"},
    {"average", "average-checkpoints average-models avg"},
    {"convert", "export import quantise quantize save-as"},
    {"encode", "embed features extract"},
    {"attention", "attend operator"},
    {"list", "ls models catalogue"},
    {"bench", "benchmark speed"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* Whether the word is among blank-separated words. */
static bool among(const char *words, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = words; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strcspn(at, " ") == length && strncmp(at, word, length) == 0)
            return true;
    return false;
}

void habit_option(const cli_command *command, const char *name, const char *dashes, char out[HABIT_TEXT])
{
    char dashed[100];
    snprintf(dashed, sizeof dashed, "%s", name);
    for (char *at = dashed; *at; at++)
        *at = *at == '_' ? '-' : *at;
    out[0] = 0;
    if (strcmp(dashed, name) != 0 && option_named(command, dashed)) {
        snprintf(out, HABIT_TEXT, "; it is called %s%s", dashes, dashed);
        return;
    }
    for (int i = 0; i < HABITS && dashed[0]; i++) {
        const struct habit *h = &habits[i];
        if (!among(h->theirs, dashed) || (h->ours && !option_named(command, h->ours)))
            continue;
        if (h->instead)
            snprintf(out, HABIT_TEXT, "; %s", h->instead);
        else
            snprintf(out, HABIT_TEXT, "; it is called %s%s", dashes, h->ours);
        return;
    }
}

const char *habit_command(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (among(commands[i].theirs, name))
            return commands[i].ours;
    return NULL;
}
