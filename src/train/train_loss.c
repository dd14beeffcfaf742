/* The loss of a batch: teacher forcing, cross-entropy, and REINFORCE for hard attention. */
#include <math.h>

#include "tape/block.h"
#include "tape/ops.h"
#include "train/guide_internal.h"
#include "train/train_internal.h"

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

/* The Monte-Carlo gradient of hard attention (one sample a sentence):
 *   grad log p(y|s) + lambda_r (log p(y|s) - b) grad log p(s) + lambda_e grad H(s)
 * The first term is the cross-entropy's; the other two are seeds on log_prob and entropy, with the sign of a loss. b is
 * the moving average 0.9 b + 0.1 log p(y|s), the mean over the sentences of a batch. */
static void seed_choices(at_trainer *trainer, const at_batch *batch, const at_decoded *decoded)
{
    const at_train_settings *s = trainer->settings;
    at_real *log_prob = at_tensor_grad(decoded->log_prob);
    at_real *entropy = decoded->entropy ? at_tensor_grad(decoded->entropy) : NULL;
    int64_t steps = batch->target_length, size = decoded->logits->shape.dim[2];
    double total = 0, before = trainer->progress.baseline;
    for (int64_t row = 0; row < batch->rows; row++) {
        double reward = 0;
        int64_t n = batch->target_lengths[row];
        for (int64_t t = row * steps; t < row * steps + n; t++)
            reward += log_probability(decoded->logits->value + t * size, size, batch->target[t]);
        total += reward;
        for (int64_t t = row * steps; t < row * steps + n; t++) {
            if (log_prob)
                log_prob[t] -= (at_real)(s->baseline * (reward - before));
            if (entropy)
                entropy[t] -= (at_real)s->entropy;
        }
    }
    if (isfinite(total))
        trainer->progress.baseline = 0.9 * before + 0.1 * total / (double)batch->rows;
}

/* -sum_t sum_s a_ts log w_ts over the linked target units t of the batch: a_t is 1/n on each of t's n linked source
 * units. What keeps the log finite is far below what a weight that matters is. */
static at_tensor *guided_loss(at_trainer *trainer, const at_batch *batch, at_tape *tape, at_tensor *weights)
{
    const at_shape shape = AT_SHAPE(batch->rows, batch->target_length, batch->source_length);
    at_real *links = at_room(tape, (size_t)at_shape_count(shape) * sizeof *links);
    at_tensor *tiny = at_tensor_make(tape, AT_SHAPE(1));
    if (!weights || !links || !tiny)
        return NULL;
    *tiny->value = (at_real)1e-9;
    at_guide_fill(trainer->guide, batch, links);
    at_tensor *gold = at_leaf(tape, shape, links, NULL, false);
    at_tensor *sum = at_sum(at_mul(at_log(at_add(weights, tiny)), gold), -1);
    return at_scale(sum, -(at_real)trainer->settings->guided_weight);
}

/* The targets [B,T] without what lies beyond the lengths, which is how packed logits lie. */
static const int32_t *packed_targets(at_tape *tape, const at_batch *batch)
{
    int32_t *targets = at_room(tape, (size_t)batch->target_tokens * sizeof *targets);
    int64_t count = 0;
    for (int64_t row = 0; targets && row < batch->rows; row++)
        for (int64_t t = 0; t < batch->target_lengths[row]; t++)
            targets[count++] = batch->target[row * batch->target_length + t];
    return targets;
}

bool at_batch_loss(at_trainer *trainer, const at_batch *batch, bool learn, double *loss, at_error *error)
{
    if (error->code != AT_OK)
        return false;
    at_model *model = trainer->translator.model;
    at_arena_reset(trainer->arena);
    at_tape *tape = at_tape_new(trainer->arena, learn);
    if (!tape)
        return at_fail(error, AT_FAILED, "memory is out: there is no room for a batch");
    at_pass pass = {.tape = tape, .rng = learn ? &trainer->rng : NULL, .lengths = batch->target_lengths};
    const bool guides = learn && trainer->guide;
    if (guides)
        at_model_guided(&model->settings, &pass.guided_layer, &pass.guided_head);
    at_source source = {batch->rows, batch->source_length, batch->source, batch->source_lengths};
    at_normaliser normaliser = model->attention.normaliser;
    /* Half the batches of hard attention look at the expectation instead of a sample (Xu et al. 2015): the softmax in
     * the place of the draw, which tames the estimator's variance. */
    if (learn && normaliser == AT_HARD && at_rng_uniform(&trainer->rng) < 0.5)
        model->attention.normaliser = AT_SOFTMAX;
    at_parts memory = at_model_encode(model, &pass, &source);
    at_parts state = at_model_start(model, &pass, &source, &memory);
    at_decoded decoded = at_model_decode(model, &pass, &source, &memory, &state, batch->input, batch->target_length);
    model->attention.normaliser = normaliser;
    const int32_t *targets = batch->target;
    at_tensor *flat = decoded.logits; /* [sum of lengths, V] */
    if (decoded.packed)
        targets = packed_targets(tape, batch);
    else if (flat) /* [B, T, V] -> [B T, V] */
        flat = at_reshape(flat, AT_SHAPE(batch->rows * batch->target_length, flat->shape.dim[2]));
    const at_real smoothing = learn ? (at_real)trainer->settings->label_smoothing : (at_real)0;
    at_tensor *sum = targets ? at_cross_entropy(flat, targets, smoothing) : NULL;
    if (learn && sum && decoded.log_prob)
        seed_choices(trainer, batch, &decoded);
    at_tensor *total = sum && guides ? at_add(sum, guided_loss(trainer, batch, tape, decoded.guided)) : sum;
    bool done = total && (!learn || at_backward(total));
    if (!done) {
        at_error *said = at_tape_error(tape);
        return at_fail(error, AT_FAILED, "%s", said->code != AT_OK ? said->text : "the model gave no logits");
    }
    *loss = (double)sum->value[0];
    return true;
}
