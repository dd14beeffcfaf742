/* Beam search over a batch. Every sentence has a beam of live hypotheses; a step extends them all, keeps the likeliest
 * `beam - ended` extensions, and those that took the end leave the beam. A beam of 1 is greedy search. Sampling is the
 * same with each hypothesis extended by its own sample. Within a line's given start the next unit is fixed. With
 * `branches` the likeliest units after the start are hypotheses of their own, and each goes on greedily.
 *
 * A model of CTranslate2 is searched as there: of the likeliest `2 beam` extensions the first `beam` count. Those of them
 * that took the end are replaced by the next that did not, so that the beam stays full until `beam` have ended.
 *
 * The rows of the batch are slots; a sentence holds adjacent ones. Slots whose hypothesis ended, and sentences that are
 * finished, are removed when they are an eighth of the batch: moving the encoded sources costs more than a few idle
 * rows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "search/search_beam_internal.h"

void at_nodes_free(struct at_nodes *nodes)
{
    if (!nodes)
        return;
    free(nodes->node);
    free(nodes->weights);
    free(nodes->path);
    free(nodes->repeats);
    free(nodes);
}

/* ---- Nodes ---------------------------------------------------------------------------------------------------- */

static bool nodes_start(at_search_work *work, int64_t width)
{
    if (!work->nodes && !(work->nodes = calloc(1, sizeof *work->nodes)))
        return at_search_no_memory(work);
    work->nodes->count = 0;
    work->nodes->width = work->settings->wants_weights || work->settings->coverage_penalty > 0 ? width : 0;
    return true;
}

/* Room for `more` nodes. It doubles and is reused, so that steady decoding allocates nothing. */
static bool nodes_reserve(at_search_work *work, int64_t more)
{
    struct at_nodes *nodes = work->nodes;
    int64_t need = nodes->count + more;
    if (need > INT32_MAX)
        return at_search_no_memory(work);
    return (AT_GROW(nodes->node, nodes->room, (size_t)need) &&
            AT_GROW(nodes->weights, nodes->weights_room, (size_t)(need * nodes->width))) ||
           at_search_no_memory(work);
}

static int32_t add_node(at_search_work *work, int32_t parent, int32_t id, const at_real *weights, int64_t count)
{
    struct at_nodes *nodes = work->nodes;
    int64_t index = nodes->count++;
    nodes->node[index] = (at_step_node){parent, id, weights ? at_search_link(work, weights, count) : -1};
    for (int64_t s = 0; s < nodes->width && weights; s++)
        nodes->weights[index * nodes->width + s] = s < count ? (float)weights[s] : 0;
    return (int32_t)index;
}

/* ---- Results -------------------------------------------------------------------------------------------------- */

static bool set_result(at_search_work *work, at_sentence *sentence, const at_ended *end, at_hypothesis *out)
{
    const struct at_nodes *nodes = work->nodes;
    int64_t rows = end->count + 1;
    int32_t *ids = at_search_alloc(work, work->window, rows, sizeof *ids);
    int32_t *links = at_search_alloc(work, work->window, rows, sizeof *links);
    float *weights = NULL;
    const bool weighted = work->settings->wants_weights;
    if (weighted)
        weights = at_search_alloc(work, work->window, rows * sentence->source.count, sizeof *weights);
    if (!ids || !links || (weighted && !weights))
        return false;
    int32_t at = end->node;
    for (int64_t t = rows - 1; t >= 0; at = nodes->node[at].parent, t--) {
        ids[t] = nodes->node[at].id;
        links[t] = nodes->node[at].link;
        if (weights)
            memcpy(weights + t * sentence->source.count, nodes->weights + at * nodes->width,
                   (size_t)sentence->source.count * sizeof *weights);
    }
    *out = (at_hypothesis){.ids = ids,
                           .count = end->count,
                           .score = end->score,
                           .penalised = end->penalised,
                           .links = nodes->linked ? links : NULL,
                           .weights = weights};
    return at_search_word(work, sentence, out);
}

static bool set_results(at_beam_batch *batch, at_beam *b)
{
    at_search_work *work = batch->work;
    int64_t count = b->ended_count < work->settings->n_best ? b->ended_count : work->settings->n_best;
    at_hypothesis *best = at_search_alloc(work, work->window, count, sizeof *best);
    const int32_t **ends = at_search_alloc(work, work->window, count, sizeof *ends);
    if (!best || !ends)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (!set_result(work, b->sentence, &b->ended[i], &best[i]) ||
            (work->job->wants_ends && !(ends[i] = at_search_ends(work, b->sentence, &best[i]))))
            return false;
    b->sentence->ends = work->job->wants_ends ? ends : NULL;
    b->sentence->result.best = best;
    b->sentence->result.count = count;
    return true;
}

/* ---- One step ------------------------------------------------------------------------------------------------- */

/* score / ((5 + n) / 6)^A or score / n^A, n counting the end */
static double penalise(const at_beam_batch *batch, double score, int64_t n)
{
    const double penalty = batch->work->settings->length_penalty, exponent = batch->work->settings->normalise;
    if (exponent > 0)
        return score / pow((double)n, exponent);
    return penalty == 0 ? score : score / pow((5 + (double)n) / 6, penalty);
}

/* B sum_i log min(sum_t a_ti, 1), the coverage penalty of Wu et al. 2016: a_ti is the weight of source unit i at target unit
 * t, the end among them. A unit that no target unit looked at counts as one with NOWHERE, so that the sum is finite. */
#define NOWHERE 1e-6
static double coverage(const at_beam_batch *batch, const at_sentence *sentence, int32_t at)
{
    const struct at_nodes *nodes = batch->work->nodes;
    const int64_t units = sentence->source.count;
    double penalty = 0, *sums = batch->sums;
    if (!sums || !nodes->linked)
        return 0;
    memset(sums, 0, (size_t)units * sizeof *sums);
    for (; at >= 0; at = nodes->node[at].parent)
        for (int64_t i = 0; i < units; i++)
            sums[i] += (double)nodes->weights[at * nodes->width + i];
    for (int64_t i = 0; i < units; i++)
        if (sums[i] < 1)
            penalty += log(sums[i] > NOWHERE ? sums[i] : NOWHERE);
    return batch->work->settings->coverage_penalty * penalty;
}

/* Those that lack fewer units of terms first, then in order of the penalised score; of equals the one that ended first. */
static bool is_behind(const at_ended *a, const at_ended *b)
{
    return a->unmet != b->unmet ? a->unmet > b->unmet : a->penalised < b->penalised;
}

static void add_ended(at_beam *b, at_ended end)
{
    int64_t rank = b->ended_count++;
    for (; rank > 0 && is_behind(&b->ended[rank - 1], &end); rank--)
        b->ended[rank] = b->ended[rank - 1];
    b->ended[rank] = end;
}

/* Whether each hypothesis goes on by itself, and does not compete with the others: samples, and branches once they are
 * apart. */
static bool apart(const at_beam_batch *batch, const at_beam *b)
{
    return batch->work->settings->temperature > 0 ||
           (batch->work->job->branches && batch->step > b->sentence->target.count);
}

/* Whether hypotheses that ended are replaced. */
static bool stays_full(const at_beam_batch *batch, const at_beam *b)
{
    return batch->work->translator->never_empty && batch->work->settings->temperature == 0 &&
           !batch->work->job->branches && !(b->sentence->terms && b->sentence->terms->units > 0);
}

/* Can no live hypothesis come among the best any more? A score only falls, the penalised score is largest either at once
 * or at the greatest length, and coverage adds nothing above 0. */
static bool decided(const at_beam_batch *batch, const at_beam *b)
{
    const at_search_settings *settings = batch->work->settings;
    if (b->live_count == 0 || (stays_full(batch, b) && b->ended_count >= b->width))
        return true;
    if (settings->temperature > 0 || batch->work->job->branches || b->ended_count < settings->n_best)
        return false;
    double now = penalise(batch, b->next[0].score, batch->step + 2),
           last = penalise(batch, b->next[0].score, b->longest + 1);
    return b->ended[settings->n_best - 1].penalised >= (now > last ? now : last);
}

/* Tells of the candidate at `place` of the beam's hypothesis i. */
static void tell(const at_beam_batch *batch, const at_beam *b, const at_real *weights, int64_t i, int64_t place,
                 bool kept)
{
    const at_extension_observer *to = batch->work->job->extensions;
    if (!to)
        return;
    const at_candidate c = batch->tasks[b->first + i].candidates[place];
    const at_extension told = {.step = batch->step,
                               .parent = i,
                               .id = c.id,
                               .score = b->live[i].score + c.log_prob,
                               .log_prob = c.log_prob,
                               .kept = kept,
                               .weights = weights ? weights + (b->first + i) * batch->source.length : NULL,
                               .units = b->sentence->source.count};
    to->observe(to->context, &told);
}

void at_beam_extend(at_beam_batch *batch, at_beam *b, int64_t i, at_candidate taken, const at_real *weights)
{
    const at_live *from = &b->live[i];
    const int64_t row = b->first + i;
    const double score = from->score + taken.log_prob, branch = apart(batch, b) ? from->branch : taken.log_prob;
    const uint64_t met = at_terms_met(batch, b, from, taken.id);
    const int32_t added = add_node(batch->work, from->node, taken.id,
                                   weights ? weights + row * batch->source.length : NULL, b->sentence->source.count);
    if (taken.id != AT_END) {
        b->next[b->next_count++] = (at_live){.score = score,
                                             .branch = branch,
                                             .node = added,
                                             .id = taken.id,
                                             .from = row,
                                             .sample = from->sample,
                                             .met = met,
                                             .completed = met != from->met};
        return;
    }
    const double penalised = batch->work->job->branches
                                 ? branch
                                 : penalise(batch, score, batch->step + 1) + coverage(batch, b->sentence, added);
    add_ended(b, (at_ended){score, penalised, added, batch->step, at_terms_unmet(b->sentence->terms, met)});
}

/* How many of the likeliest extensions a beam looks at. */
static int64_t looked_at(const at_beam_batch *batch, const at_beam *b)
{
    return stays_full(batch, b) ? 2 * b->width : b->width - b->ended_count;
}

/* Extends the hypotheses of a beam by its likeliest candidates. */
static void extend(at_beam_batch *batch, at_beam *b, const at_real *weights)
{
    const bool alone = apart(batch, b), full = stays_full(batch, b);
    int64_t width = alone ? b->live_count : looked_at(batch, b);
    memset(batch->heads, 0, (size_t)b->live_count * sizeof *batch->heads);
    for (int64_t picked = 0; picked < width; picked++) {
        int64_t best = -1;
        double best_score = 0;
        for (int64_t i = alone ? picked : 0; i < (alone ? picked + 1 : b->live_count); i++) {
            const at_row_task *task = &batch->tasks[b->first + i];
            if (batch->heads[i] == task->count)
                continue;
            double score = b->live[i].score + task->candidates[batch->heads[i]].log_prob;
            if (best < 0 || score > best_score) { /* of equals the first hypothesis, and in it the lowest id */
                best = i;
                best_score = score;
            }
        }
        if (best < 0 || (full && picked >= b->width && b->next_count == b->width))
            break;
        const at_candidate taken = batch->tasks[b->first + best].candidates[batch->heads[best]];
        const bool kept = !full || picked < b->width || taken.id != AT_END;
        tell(batch, b, weights, best, batch->heads[best]++, kept);
        if (kept)
            at_beam_extend(batch, b, best, taken, weights);
    }
    for (int64_t i = 0; batch->work->job->extensions && i < b->live_count; i++)
        for (int64_t place = batch->heads[i]; place < batch->tasks[b->first + i].count; place++)
            tell(batch, b, weights, i, place, false);
}

static void set_tasks(at_beam_batch *batch)
{
    const at_search_settings *settings = batch->work->settings;
    for (int64_t row = 0; row < batch->rows; row++)
        batch->tasks[row].most = 0;
    int64_t taken = 0;
    for (int64_t n = 0; n < batch->beam_count; n++) {
        at_beam *b = &batch->beams[n];
        int64_t width = apart(batch, b) ? 1 : looked_at(batch, b);
        width = width < batch->most ? width : batch->most;
        for (int64_t i = 0; i < b->live_count; i++) {
            at_row_task *task = &batch->tasks[b->first + i];
            *task = (at_row_task){.most = width, .candidates = batch->candidates + taken};
            taken += width;
            task->only = batch->step < b->sentence->target.count ? b->sentence->target.ids[batch->step]
                         : batch->step >= b->longest             ? AT_END
                                                                 : -1;
            task->no_end = batch->step < b->shortest;
            task->shares_end = batch->work->translator->never_empty && batch->step == 0 && task->only < 0;
            task->samples = settings->temperature > 0;
            if (task->samples)
                task->uniform = at_uniform_at(settings->seed, (uint64_t)b->sentence->number,
                                              (uint64_t)b->live[i].sample << 32 | (uint64_t)batch->step);
            if (batch->banks)
                at_banks_set(batch, b, i, task);
        }
    }
}

/* Gives every unfinished sentence as many slots as it needs, and moves the encoded sources there. */
static bool lay_out(at_beam_batch *batch)
{
    int64_t rows = 0, count = 0;
    for (int64_t n = 0; n < batch->beam_count; n++) {
        at_beam b = batch->beams[n];
        if (b.live_count == 0)
            continue;
        for (int64_t i = 0; i < b.live_count; i++)
            batch->owner[rows + i] = b.first;
        b.first = rows;
        b.slots = b.live_count;
        rows += b.slots;
        batch->beams[count++] = b;
    }
    batch->beam_count = count;
    batch->rows = rows;
    bool good = true;
    for (int m = 0; rows > 0 && good && m < batch->work->member_count; m++)
        good = at_saved_select(batch->work->members[m].encoded, batch->owner, rows, batch->work->error);
    return good;
}

/* Row i of every member's state becomes old row pick[i]. */
static bool select_states(const at_beam_batch *batch)
{
    bool good = true;
    for (int m = 0; good && m < batch->work->member_count; m++) {
        const at_member *member = &batch->work->members[m];
        good = at_saved_select(member->state, batch->pick, batch->rows, batch->work->error) &&
               (at_cache_rows(member->cache) == 0 ||
                at_cache_select(member->cache, batch->pick, batch->rows, batch->work->error));
    }
    return good;
}

/* Sets what each row reads next: the source of its sentence, the last unit of its hypothesis, and the state after it. */
static bool move_rows(at_beam_batch *batch)
{
    bool moved = false;
    for (int64_t n = 0; n < batch->beam_count; n++) {
        at_beam *b = &batch->beams[n];
        const at_sentence *sentence = b->sentence;
        for (int64_t i = 0; i < b->slots; i++) {
            int64_t row = b->first + i;
            bool used = i < b->live_count;
            batch->pick[row] = used ? b->live[i].from : b->live_count ? b->live[0].from : row;
            batch->ids[row] = used ? b->live[i].id : AT_END;
            moved = moved || batch->pick[row] != row;
            batch->source_lengths[row] = sentence->source.count;
            int32_t *ids = batch->source_ids + row * batch->source.length;
            if (sentence->source.count > 0) /* a language model has no source */
                memcpy(ids, sentence->source.ids, (size_t)sentence->source.count * sizeof *ids);
            for (int64_t s = sentence->source.count; s < batch->source.length; s++)
                ids[s] = -1;
        }
    }
    moved = moved || batch->rows != batch->source.rows;
    batch->source.rows = batch->rows;
    batch->source.ids = batch->source_ids;
    batch->source.lengths = batch->source_lengths;
    return !moved || select_states(batch);
}

static bool settle(at_beam_batch *batch)
{
    int64_t used = 0;
    bool short_of_slots = false;
    for (int64_t n = 0; n < batch->beam_count; n++) {
        at_beam *b = &batch->beams[n];
        at_live *old = b->live;
        if (b->ended_count && decided(batch, b)) {
            if (!set_results(batch, b))
                return false;
            b->live_count = 0;
            b->ended_count = 0; /* its results are set: nothing is left to decide */
        }
        b->live = b->next;
        b->next = old;
        used += b->live_count;
        short_of_slots = short_of_slots || b->live_count > b->slots;
    }
    if ((short_of_slots || used * 8 <= batch->rows * 7) && !lay_out(batch))
        return false;
    return batch->rows == 0 || move_rows(batch);
}

static bool step(at_beam_batch *batch)
{
    at_search_work *work = batch->work;
    at_tape *tape = at_search_tape(work);
    at_decoded decoded;
    if (!tape || !at_search_decode(work, tape, &batch->source, batch->ids, 1, &decoded) ||
        !nodes_reserve(work, 2 * batch->beam_count * batch->width))
        return false;
    work->nodes->linked = decoded.weights;
    set_tasks(batch);
    int64_t vocabulary = decoded.logits->shape.dim[2];
    if (!at_bars_set(batch) || !at_search_rows(work, decoded.logits->value, batch->rows, vocabulary, batch->tasks))
        return false;
    for (int64_t n = 0; n < batch->beam_count; n++) {
        at_beam *b = &batch->beams[n];
        for (int64_t i = 0; i < b->live_count; i++)
            if (batch->tasks[b->first + i].failed)
                return at_search_not_finite(work, b->sentence, "scores of the next unit");
        const at_real *weights = decoded.weights ? decoded.weights->value : NULL;
        b->next_count = 0;
        if (b->sentence->terms && b->sentence->terms->units > 0)
            at_banks_extend(batch, b, weights);
        else
            extend(batch, b, weights);
        b->live_count = b->next_count;
    }
    return settle(batch);
}

/* The most units that a sentence may have, its given start counted; never more than a learned table has positions. */
static int64_t longest_of(const at_search_work *work, const at_sentence *sentence)
{
    const at_search_settings *settings = work->settings;
    const at_model *model = work->translator->model;
    const int64_t positions = at_search_positions(work) - 1;
    int64_t most = settings->max_length;
    if (most == 0 && !model->kind->has_source)
        most = sentence->target.count + AT_CONTINUATION;
    else if (most == 0 && work->pictures && work->translator->max_length > 0)
        most = work->translator->max_length; /* the cells of a picture say nothing about the length of its text */
    else if (most == 0)
        most = (int64_t)(settings->max_length_factor * (double)sentence->source.count) + 10 +
               (sentence->terms ? sentence->terms->units : 0);
    if (most > positions)
        most = positions;
    return most > sentence->target.count ? most : sentence->target.count;
}

/* ---- A batch -------------------------------------------------------------------------------------------------- */

static bool allocate_batch(at_beam_batch *batch, int64_t count)
{
    at_search_work *work = batch->work;
    int64_t most = count * batch->width;
    at_live *lives = at_search_alloc(work, work->batch, 2 * most, sizeof *lives);
    at_ended *ends = at_search_alloc(work, work->batch, 2 * most, sizeof *ends);
    batch->beams = at_search_alloc(work, work->batch, count, sizeof *batch->beams);
    batch->source_ids = at_search_alloc(work, work->batch, most * batch->source.length, sizeof *batch->source_ids);
    batch->ids = at_search_alloc(work, work->batch, most, sizeof *batch->ids);
    batch->source_lengths = at_search_alloc(work, work->batch, most, sizeof *batch->source_lengths);
    batch->pick = at_search_alloc(work, work->batch, most, sizeof *batch->pick);
    batch->owner = at_search_alloc(work, work->batch, most, sizeof *batch->owner);
    batch->tasks = at_search_alloc(work, work->batch, most, sizeof *batch->tasks);
    batch->candidates = at_search_alloc(work, work->batch, most * batch->most, sizeof *batch->candidates);
    batch->heads = at_search_alloc(work, work->batch, batch->width, sizeof *batch->heads);
    if (work->settings->coverage_penalty > 0)
        batch->sums = at_search_alloc(work, work->batch, batch->source.length, sizeof *batch->sums);
    if (work->error->code != AT_OK)
        return false;
    for (int64_t n = 0; n < count; n++)
        batch->beams[n] = (at_beam){.live = lives + 2 * n * batch->width,
                                    .next = lives + (2 * n + 1) * batch->width,
                                    .ended = ends + 2 * n * batch->width};
    return true;
}

bool at_search_beam(at_search_work *work, at_sentence *const *sentences, int64_t rows)
{
    const at_search_settings *settings = work->settings;
    bool samples = settings->temperature > 0;
    at_beam_batch batch = {
        .work = work, .width = samples ? settings->n_best : settings->beam, .beam_count = rows, .rows = rows};
    int64_t vocabulary = at_vocabulary_size(work->translator->target);
    for (int64_t n = 0; n < rows; n++) {
        const int64_t width = at_terms_width(sentences[n]->terms, batch.width);
        batch.width = width > batch.width ? width : batch.width;
    }
    const int64_t looked = work->translator->never_empty ? 2 * batch.width : batch.width;
    batch.most = looked < vocabulary ? looked : vocabulary;
    if (!at_search_pad(work, sentences, rows, &batch.source) || !at_search_start(work, &batch.source) ||
        !allocate_batch(&batch, rows) || !nodes_start(work, batch.source.length))
        return false;
    for (int64_t n = 0; n < rows; n++) {
        at_beam *b = &batch.beams[n];
        b->sentence = sentences[n];
        b->first = n;
        b->slots = 1;
        b->width = at_terms_width(b->sentence->terms, samples ? settings->n_best : settings->beam);
        b->live_count = samples ? b->width : 1;
        b->shortest = (int64_t)ceil(settings->min_length_factor * (double)sentences[n]->source.count);
        b->longest = longest_of(work, sentences[n]);
        if (work->translator->never_empty && b->shortest == 0)
            b->shortest = 1;
        for (int64_t i = 0; i < b->live_count; i++)
            b->live[i] = (at_live){.node = -1, .id = AT_BEGIN, .from = n, .sample = i};
    }
    if (!at_bars_start(&batch) || !at_banks_start(&batch) || (samples && batch.width > 1 && !lay_out(&batch)) ||
        !move_rows(&batch))
        return false;
    for (batch.step = 0; batch.rows > 0; batch.step++)
        if (at_search_stopped(work) || !step(&batch))
            return false;
    return true;
}
