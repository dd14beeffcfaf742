/* A few pairs of equal length in one batch, as in the code listings of textbooks: loss and optimiser over ids, without
 * text or files. */
#include <stdlib.h>
#include <string.h>

#include "train/loss_internal.h"
#include "train/optimise.h"

struct at_listing {
    int64_t symbols, pairs, source_length, target_length;
    int32_t *source, *input, *target; /* [pairs, length] */
    int64_t *source_lengths, *target_lengths;
    uint64_t seed;
    at_given given;
    at_model_settings settings;
    at_model *model; /* NULL until it is first needed */
    at_optimiser *optimiser;
    at_loss loss;
};

static bool ids_fit(const char *what, const int32_t *ids, int64_t count, int64_t symbols, at_error *error)
{
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= symbols)
            return at_fail(error, AT_USAGE, "%s %lld of a listing is the symbol %d and must be one from 0 to %lld",
                           what, (long long)i, ids[i], (long long)symbols - 1);
    return true;
}

static void *copy_of(const void *from, int64_t count, size_t size)
{
    void *to = calloc((size_t)count, size);
    return to && from ? memcpy(to, from, (size_t)count * size) : to;
}

static int64_t *lengths_of(int64_t pairs, int64_t length)
{
    int64_t *lengths = copy_of(NULL, pairs, sizeof *lengths);
    for (int64_t i = 0; lengths && i < pairs; i++)
        lengths[i] = length;
    return lengths;
}

at_listing *at_listing_new(const at_listing_task *task, uint64_t seed, at_error *error)
{
    enum { MOST = 1 << 20 };
    if (error->code != AT_OK)
        return NULL;
    const int64_t P = task->pairs, S = task->source_length, T = task->target_length;
    if (P < 1 || S < 1 || T < 1 || P > MOST || S > MOST / P || T > MOST / P) {
        at_fail(error, AT_USAGE,
                "a listing has %lld pairs of lengths %lld and %lld, each must be at least 1 and a side at most %d",
                (long long)P, (long long)S, (long long)T, MOST);
        return NULL;
    }
    if (!ids_fit("source", task->source, P * S, task->symbols, error) ||
        !ids_fit("input", task->input, P * T, task->symbols, error) ||
        !ids_fit("target", task->target, P * T, task->symbols, error))
        return NULL;
    at_listing *listing = calloc(1, sizeof *listing);
    if (listing) {
        *listing = (at_listing){.symbols = task->symbols,
                                .pairs = P,
                                .source_length = S,
                                .target_length = T,
                                .source = copy_of(task->source, P * S, sizeof(int32_t)),
                                .input = copy_of(task->input, P * T, sizeof(int32_t)),
                                .target = copy_of(task->target, P * T, sizeof(int32_t)),
                                .source_lengths = lengths_of(P, S),
                                .target_lengths = lengths_of(P, T),
                                .seed = seed,
                                .loss = {.arena = at_arena_new(), .rng = {.seed = seed}}};
    }
    if (listing && listing->source && listing->input && listing->target && listing->source_lengths &&
        listing->target_lengths && listing->loss.arena)
        return listing;
    at_no_memory(error, "a listing of %lld pairs", (long long)P);
    at_listing_free(listing);
    return NULL;
}

void at_listing_free(at_listing *listing)
{
    if (!listing)
        return;
    at_optimiser_free(listing->optimiser);
    at_model_free(listing->model);
    at_arena_free(listing->loss.arena);
    free(listing->source);
    free(listing->input);
    free(listing->target);
    free(listing->source_lengths);
    free(listing->target_lengths);
    free(listing);
}

bool at_listing_set(at_listing *listing, const char *name, const char *value, at_error *error)
{
    if (listing->model)
        return at_fail(error, AT_USAGE, "`%s` is set too late: the listing already has its model", name);
    return at_model_set(&listing->settings, &listing->given, name, value, error);
}

/* The model is made when it is first needed, after its settings have been set one by one. */
static bool has_model(at_listing *listing, at_error *error)
{
    static const at_optimiser_settings adam = {
        .kind = AT_ADAM, .learning_rate = 0.001, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
    if (error->code != AT_OK || listing->optimiser)
        return error->code == AT_OK;
    at_model_settings *settings = &listing->settings;
    if (!at_model_settings_complete(settings, &listing->given, error))
        return false;
    settings->source_size = settings->target_size = listing->symbols;
    if (!listing->model)
        listing->model = at_model_new(settings, listing->seed, error);
    if (!listing->model)
        return false;
    listing->loss.model = listing->model;
    listing->optimiser = at_optimiser_new(&adam, listing->model->params, error);
    return listing->optimiser;
}

bool at_listing_train(at_listing *listing, int64_t epochs, double *loss, at_error *error)
{
    if (!has_model(listing, error))
        return false;
    const int64_t tokens = listing->pairs * listing->target_length;
    const at_batch all = {.rows = listing->pairs,
                          .source_length = listing->source_length,
                          .target_length = listing->target_length,
                          .source = listing->source,
                          .source_lengths = listing->source_lengths,
                          .input = listing->input,
                          .target = listing->target,
                          .target_lengths = listing->target_lengths,
                          .source_tokens = listing->pairs * listing->source_length,
                          .target_tokens = tokens};
    for (int64_t i = 0; i < epochs; i++) {
        double sum, norm;
        bool skipped;
        if (!at_batch_loss(&listing->loss, &all, true, &sum, error) ||
            !at_optimiser_step(listing->optimiser, 1 / (double)tokens, &norm, &skipped, error))
            return false;
        *loss = sum / (double)tokens;
    }
    return true;
}

bool at_listing_attends(const at_listing *listing)
{
    const at_model *model = listing->model;
    for (const char *word = model ? model->kind->fields : NULL; word; word = strchr(word, ' '))
        if (strncmp(word += strspn(word, " "), "score", 5) == 0)
            return true;
    return false;
}

bool at_listing_read(at_listing *listing, const int32_t *source, const int32_t *input, int32_t *output, float *weights,
                     at_error *error)
{
    const int64_t S = listing->source_length, T = listing->target_length, V = listing->symbols;
    if (!has_model(listing, error) || !ids_fit("source", source, S, V, error) || !ids_fit("input", input, T, V, error))
        return false;
    const at_model *model = listing->model;
    at_arena_reset(listing->loss.arena);
    const at_pass pass = {.tape = at_tape_new(listing->loss.arena, false), .wants_weights = weights};
    if (!pass.tape)
        return at_no_memory(error, "a listing");
    const at_source one = {.rows = 1, .length = S, .ids = source, .lengths = &S};
    at_parts encoded = at_model_encode(model, &pass, &one);
    at_parts state = at_model_start(model, &pass, &one, &encoded);
    at_decoded decoded = at_model_decode(model, &pass, &one, &encoded, &state, input, T);
    if (!decoded.logits)
        return at_fail(error, at_tape_error(pass.tape)->code, "%s", at_tape_error(pass.tape)->text);
    if (weights && !decoded.weights)
        return at_fail(error, AT_UNSUPPORTED, "model '%s' has no attention, so it has no weights", model->kind->name);
    for (int64_t t = 0; t < T; t++) {
        const at_real *row = decoded.logits->value + t * V; /* [V] */
        output[t] = 0;
        for (int32_t v = 1; v < V; v++)
            output[t] = row[v] > row[output[t]] ? v : output[t];
    }
    for (int64_t i = 0; weights && i < T * S; i++)
        weights[i] = (float)decoded.weights->value[i];
    return true;
}
