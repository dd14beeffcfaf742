#include "train/loss_internal.h"

#include <math.h>
#include <string.h>

#include "tape/block.h"
#include "tape/ops.h"
#include "train/guide_internal.h"

/* log p(y_t) of one row of logits [V]: e_y - max - log sum exp(e - max) */
static double log_probability(const at_real *logits, int64_t size, int32_t target)
{
    at_real top = logits[0];
    for (int64_t v = 1; v < size; v++)
        top = logits[v] > top ? logits[v] : top;
    double sum = 0;
    for (int64_t v = 0; v < size; v++)
        sum += exp((double)(logits[v] - top));
    return (double)(logits[target] - top) - log(sum);
}

/* The Monte-Carlo gradient of hard attention, with one sample s per sentence:
 *
 *     grad log p(y|s) + lambda_r (log p(y|s) - b) grad log p(s) + lambda_e grad H(s)
 *
 * The first term is the cross-entropy's. The other two are added here as gradients of log_prob and entropy, with the
 * sign of a loss. b = d b + (1 - d) log p(y|s), d the decay, with the mean over the sentences of the batch. */
static void add_reinforce_gradients(at_loss *loss, const at_batch *batch, const at_decoded *decoded)
{
    at_real *log_prob = at_tensor_grad(decoded->log_prob);
    at_real *entropy = decoded->entropy ? at_tensor_grad(decoded->entropy) : NULL;
    int64_t steps = batch->target_length, size = decoded->logits->shape.dim[2];
    double total = 0, before = loss->baseline;
    const double decay = loss->options.baseline;
    for (int64_t row = 0; row < batch->rows; row++) {
        double reward = 0;
        int64_t n = batch->target_lengths[row];
        for (int64_t t = row * steps; t < row * steps + n; t++)
            reward += log_probability(decoded->logits->value + t * size, size, batch->target[t]);
        total += reward;
        for (int64_t t = row * steps; t < row * steps + n; t++) {
            if (log_prob)
                log_prob[t] -= (at_real)(loss->options.reinforce * (reward - before));
            if (entropy)
                entropy[t] -= (at_real)loss->options.entropy;
        }
    }
    if (isfinite(total))
        loss->baseline = decay * before + (1 - decay) * total / (double)batch->rows;
}

/* -sum_t sum_s a_ts log(w_ts + 1e-9) over the linked target units t of the batch: a_t is 1/n for each of the n source
 * units linked to t. The constant only keeps the logarithm finite. */
static at_tensor *guided_loss(const at_loss *loss, const at_batch *batch, at_tape *tape, at_tensor *weights)
{
    const at_shape shape = AT_SHAPE(batch->rows, batch->target_length, batch->source_length);
    at_real *links = at_room(tape, (size_t)at_shape_count(shape) * sizeof *links);
    at_tensor *tiny = at_tensor_make(tape, AT_SHAPE(1));
    if (!weights || !links || !tiny)
        return NULL;
    *tiny->value = (at_real)1e-9;
    at_guide_fill(loss->options.guide, batch, links);
    at_tensor *gold = at_leaf(tape, shape, links, NULL, false);
    at_tensor *sum = at_sum(at_mul(at_log(at_add(weights, tiny)), gold), -1);
    return at_scale(sum, -(at_real)loss->options.guided_weight);
}

/* lambda sum_i (1 - sum_t w_ti)^2 over the source units i of each sentence (Xu et al. 2015): every unit is to get as much
 * attention as every other. t runs over the target units, padding left out. */
static at_tensor *doubly_stochastic_loss(const at_loss *loss, const at_batch *batch, at_tape *tape, at_tensor *weights)
{
    const int64_t B = batch->rows, T = batch->target_length, S = batch->source_length;
    at_real *counts = at_room(tape, (size_t)(B * (T + S)) * sizeof *counts), *asks = counts ? counts + B * T : NULL;
    if (!weights || !counts)
        return NULL;
    for (int64_t b = 0; b < B; b++) {
        for (int64_t t = 0; t < T; t++)
            counts[b * T + t] = t < batch->target_lengths[b];
        for (int64_t s = 0; s < S; s++)
            asks[b * S + s] = s < batch->source_lengths[b];
    }
    at_tensor *counted = at_mul(weights, at_leaf(tape, AT_SHAPE(B, T, 1), counts, NULL, false));       /* [B,T,S] */
    at_tensor *missing = at_sub(at_leaf(tape, AT_SHAPE(B, S), asks, NULL, false), at_sum(counted, 1)); /* [B,S] */
    return at_scale(at_sum(at_mul(missing, missing), -1), (at_real)loss->options.doubly_stochastic);
}

/* The previous target tokens [B,T] of a batch, each unknown with a probability, so that the decoder has to look at the source.
 * The first, which begins every target, stays, and so does padding. */
static const int32_t *drop_words(at_loss *loss, const at_batch *batch, at_tape *tape)
{
    const int64_t T = batch->target_length;
    int32_t *ids = at_room(tape, (size_t)(batch->rows * T) * sizeof *ids);
    if (!ids)
        return NULL;
    memcpy(ids, batch->input, (size_t)(batch->rows * T) * sizeof *ids);
    for (int64_t b = 0; b < batch->rows; b++)
        for (int64_t t = 1; t < batch->target_lengths[b]; t++)
            if (at_rng_uniform(&loss->rng) < loss->options.word_dropout)
                ids[b * T + t] = AT_UNKNOWN;
    return ids;
}

/* The targets [B,T] without padding, in the order of packed logits. */
static const int32_t *packed_targets(at_tape *tape, const at_batch *batch)
{
    int32_t *targets = at_room(tape, (size_t)batch->target_tokens * sizeof *targets);
    int64_t count = 0;
    for (int64_t row = 0; targets && row < batch->rows; row++)
        for (int64_t t = 0; t < batch->target_lengths[row]; t++)
            targets[count++] = batch->target[row * batch->target_length + t];
    return targets;
}

/* How many of the targets (-1: padding) have the largest logit of their row [V]; of equal logits the first counts. */
static int64_t count_correct(const at_tensor *logits, const int32_t *targets)
{
    const int64_t rows = logits->shape.dim[0], size = logits->shape.dim[1];
    int64_t correct = 0;
    for (int64_t row = 0; row < rows; row++) {
        const at_real *e = logits->value + row * size;
        int64_t top = 0;
        for (int64_t v = 1; v < size && targets[row] >= 0; v++)
            top = e[v] > e[top] ? v : top;
        correct += targets[row] == top;
    }
    return correct;
}

/* A batch as the model's input. */
typedef struct batch_pass {
    at_tape *tape;
    const at_batch *batch;
    bool learn;
} batch_pass;

/* What one pass over it came to. */
typedef struct batch_scores {
    at_tensor *logits;      /* [N,V] of all target positions */
    const int32_t *targets; /* [N] */
    at_tensor *cross;       /* [1] the cross-entropy */
    at_tensor *total;       /* [1] with what the settings add to it; NULL after an error */
} batch_scores;

static batch_scores score_batch(at_loss *loss, const batch_pass *p)
{
    const at_model *model = loss->model;
    const at_loss_options *options = &loss->options;
    const at_batch *batch = p->batch;
    const bool learn = p->learn;
    at_pass pass = {
        .tape = p->tape, .rng = learn ? &loss->rng : NULL, .lengths = batch->target_lengths, .probe = loss->probe};
    /* A share of the batches uses the expectation under the softmax instead of a sample, which reduces the variance of
     * the estimator (Xu et al. 2015). */
    if (learn && at_attention_samples(&model->attention))
        pass.expectation = at_rng_uniform(&loss->rng) < options->expectation;
    const bool guides = learn && options->guide;
    pass.wants_attended = learn && options->doubly_stochastic > 0;
    if (guides)
        at_model_guided(model, &pass.guided_layer, &pass.guided_head);
    const at_source source = {.rows = batch->rows,
                              .length = batch->source_length,
                              .ids = batch->source,
                              .lengths = batch->source_lengths,
                              .pictures = loss->pictures,
                              .augment = loss->augment,
                              .elastic = loss->elastic};
    const bool drops = learn && options->word_dropout > 0;
    const int32_t *input = drops ? drop_words(loss, batch, p->tape) : batch->input;
    if (!input)
        return (batch_scores){0};
    at_parts encoded = at_model_encode(model, &pass, &source);
    at_parts state = at_model_start(model, &pass, &source, &encoded);
    at_decoded decoded = at_model_decode(model, &pass, &source, &encoded, &state, input, batch->target_length);
    batch_scores scores = {.logits = decoded.logits, .targets = batch->target};
    if (decoded.packed)
        scores.targets = packed_targets(p->tape, batch);
    else if (scores.logits) /* [B, T, V] -> [B T, V] */
        scores.logits =
            at_reshape(scores.logits, AT_SHAPE(batch->rows * batch->target_length, scores.logits->shape.dim[2]));
    const at_real smoothing = learn ? (at_real)options->label_smoothing : (at_real)0;
    scores.cross = scores.targets ? at_cross_entropy(scores.logits, scores.targets, smoothing) : NULL;
    if (learn && scores.cross && decoded.log_prob)
        add_reinforce_gradients(loss, batch, &decoded);
    scores.total = scores.cross;
    if (scores.total && guides)
        scores.total = at_add(scores.total, guided_loss(loss, batch, p->tape, decoded.guided));
    if (scores.total && pass.wants_attended)
        scores.total = at_add(scores.total, doubly_stochastic_loss(loss, batch, p->tape, decoded.attended));
    return scores;
}

static at_tensor *mean(at_tensor *x, at_tensor *y)
{
    return at_scale(at_add(x, y), (at_real)0.5);
}

/* R-Drop (Liang et al. 2021): two passes, which differ by what dropout leaves out, and the divergence of their probabilities p and q:
 *
 *     L = (L_p + L_q) / 2 + a / 4 (KL(p || q) + KL(q || p))
 *
 * This is half of the paper's loss, so that the gradients are as large as those of one pass. */
static batch_scores score_twice(at_loss *loss, const batch_pass *p)
{
    const batch_scores x = score_batch(loss, p), y = score_batch(loss, p);
    if (!x.total || !y.total)
        return (batch_scores){0};
    at_tensor *apart = at_scale(at_divergence(x.logits, y.logits, x.targets), (at_real)(loss->options.r_drop / 4));
    return (batch_scores){.logits = x.logits,
                          .targets = x.targets,
                          .cross = mean(x.cross, y.cross),
                          .total = at_add(mean(x.total, y.total), apart)};
}

bool at_batch_loss(at_loss *loss, const at_batch *batch, bool learn, double *sum, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    at_arena_reset(loss->arena);
    at_tape *tape = at_tape_new(loss->arena, learn || loss->probe);
    if (!tape)
        return at_no_memory(error, "a batch");
    if (learn)
        at_tape_watch(tape, loss->watch);
    const batch_pass pass = {tape, batch, learn};
    const batch_scores scores = (learn && loss->options.r_drop > 0 ? score_twice : score_batch)(loss, &pass);
    if (!learn && scores.cross)
        loss->correct = count_correct(scores.logits, scores.targets);
    if (!scores.total || ((learn || loss->probe) && !at_backward(scores.total))) {
        const at_error *why = at_tape_error(tape);
        return why->code != AT_OK ? at_fail(error, why->code, "%s", why->text)
                                  : at_fail(error, AT_FAILED, "model '%s' returned no logits", loss->model->kind->name);
    }
    *sum = (double)scores.cross->value[0];
    return true;
}
