/* The models of an ensemble, run as if they were one: logits and weights are the means over its members. */
#include <string.h>

#include "search/search_internal.h"

at_tape *at_search_tape(at_search_work *work)
{
    at_arena_reset(work->steps);
    at_tape *tape = at_tape_new(work->steps, false);
    if (!tape)
        at_search_no_memory(work);
    return tape;
}

bool at_search_ok(at_search_work *work, at_tape *tape)
{
    if (!at_tape_ok(tape))
        at_fail(work->error, at_tape_error(tape)->code, "%s", at_tape_error(tape)->text);
    return work->error->code == AT_OK;
}

static at_pass pass_of(const at_search_work *work, const at_member *member, at_tape *tape)
{
    const at_search_settings *settings = work->settings;
    return (at_pass){.tape = tape,
                     .cache = member->cache,
                     .observer = member == work->members ? work->job->observer : NULL,
                     .wants_weights = settings->wants_weights || settings->replace_unknown || settings->wants_links ||
                                      settings->coverage_penalty > 0,
                     .layer = settings->layer,
                     .head = settings->head,
                     .expectation = work->translator->expects};
}

/* Fails if weights are needed but there are none. */
static bool check_weights(at_search_work *work, const at_decoded *decoded)
{
    const at_search_settings *settings = work->settings;
    if (decoded->weights || (!settings->wants_weights && !settings->replace_unknown && settings->coverage_penalty == 0))
        return true;
    const at_model_kind *kind = work->without_weights->kind;
    if (!kind->has_source)
        return at_fail(work->error, AT_UNSUPPORTED,
                       "model '%s' is a language model: it has no source to be aligned with", kind->name);
    return at_fail(work->error, AT_UNSUPPORTED, "model '%s' has no attention, so it has no weights %s", kind->name,
                   settings->wants_weights     ? "to show"
                   : settings->replace_unknown ? "to replace unknown words by"
                                               : "that a coverage penalty could add up");
}

int32_t at_search_link(const at_search_work *work, const at_real *weights, int64_t count)
{
    const at_vocabulary *source = work->translator->source;
    int64_t best = -1, first = 0, past = count;
    if (source)
        at_vocabulary_inside(source, count, &first, &past);
    at_real largest = 0;
    for (int64_t s = 0; s < count; s++)
        if (weights[s] > largest) { /* never for NaN */
            largest = weights[s];
            best = s;
        }
    return best < first || best >= past ? -1 : (int32_t)best;
}

bool at_search_pad(at_search_work *work, at_sentence *const *batch, int64_t rows, at_source *source)
{
    int64_t longest = 0;
    for (int64_t r = 0; r < rows; r++)
        longest = batch[r]->source.count > longest ? batch[r]->source.count : longest;
    int32_t *ids = at_search_alloc(work, work->batch, rows * longest, sizeof *ids);
    int64_t *lengths = at_search_alloc(work, work->batch, rows, sizeof *lengths);
    if (!ids || !lengths)
        return false;
    for (int64_t r = 0; r < rows; r++) {
        lengths[r] = batch[r]->source.count;
        for (int64_t i = 0; i < longest; i++)
            ids[r * longest + i] = i < lengths[r] ? batch[r]->source.ids[i] : -1;
    }
    *source = (at_source){.rows = rows,
                          .length = longest,
                          .ids = ids,
                          .lengths = lengths,
                          .pictures = at_picture_source_pictures(work->pictures)};
    return true;
}

bool at_search_start(at_search_work *work, const at_source *source)
{
    for (int m = 0; m < work->member_count; m++) {
        const at_member *member = &work->members[m];
        at_tape *tape = at_search_tape(work);
        if (!tape)
            return false;
        at_pass pass = pass_of(work, member, tape);
        at_parts encoded = at_model_encode(member->model, &pass, source);
        at_parts state = at_model_start(member->model, &pass, source, &encoded);
        if (!at_search_ok(work, tape) || !at_saved_store(member->encoded, &encoded, work->error) ||
            !at_saved_store(member->state, &state, work->error))
            return false;
    }
    return true;
}

/* sum += x */
static void add_to(at_tensor *sum, const at_tensor *x)
{
    for (int64_t i = 0; i < at_shape_count(sum->shape); i++)
        sum->value[i] += x->value[i];
}

static void divide(at_tensor *sum, int by)
{
    for (int64_t i = 0; by > 1 && sum && i < at_shape_count(sum->shape); i++)
        sum->value[i] /= (at_real)by;
}

/* log p ~ (logits_1 + ... + logits_n) / n, which is p ~ (p_1 ... p_n)^(1/n) */
bool at_search_decode(at_search_work *work, at_tape *tape, const at_source *source, const int32_t *ids, int64_t n,
                      at_decoded *decoded)
{
    work->without_weights = NULL;
    for (int m = 0; m < work->member_count; m++) {
        const at_member *member = &work->members[m];
        at_pass pass = pass_of(work, member, tape);
        at_parts encoded = at_saved_load(member->encoded, tape), state = at_saved_load(member->state, tape);
        at_decoded one = at_model_decode(member->model, &pass, source, &encoded, &state, ids, n);
        if (!at_search_ok(work, tape) || !at_saved_store(member->state, &state, work->error))
            return false;
        if (!one.weights && !work->without_weights)
            work->without_weights = member->model;
        if (m == 0) {
            *decoded = one;
            continue;
        }
        add_to(decoded->logits, one.logits);
        if (!work->without_weights)
            add_to(decoded->weights, one.weights);
    }
    if (work->without_weights)
        decoded->weights = NULL;
    divide(decoded->logits, work->member_count);
    divide(decoded->weights, work->member_count);
    return check_weights(work, decoded);
}

int64_t at_search_positions(const at_search_work *work)
{
    int64_t positions = INT64_MAX;
    for (int m = 0; m < work->member_count; m++) {
        const at_model_settings *s = &work->members[m].model->settings;
        const int64_t own = s->positions - (int64_t)s->first_position;
        if (work->members[m].model->added == AT_ADDED_LEARNED && own < positions)
            positions = own;
    }
    return positions;
}
