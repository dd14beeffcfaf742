/* Beam search over a batch. Every sentence has a beam of live hypotheses; a step extends them all, keeps the likeliest
 * `beam - ended` extensions, and those that took the end leave the beam. A beam of 1 is greedy search. Drawing is the
 * same with each hypothesis extended by what it drew. As long as a line's given beginning lasts, it is all there is to
 * choose from.
 *
 * The rows of the batch are slots, which a sentence holds side by side. Slots whose hypothesis ended, and sentences
 * that are done, leave when they are an eighth of the batch: moving the encoded sources costs more than a few idle
 * rows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "search/search_internal.h"

/* A hypothesis is a path in a tree: each node is a unit, knows the one before it, and where its weights were largest.
 */
typedef struct node {
    int32_t before, id, link;
} node;

struct at_nodes {
    node *node;
    float *weights; /* [room, width], if wanted */
    int64_t count, width;
    size_t room, weights_room;
    bool linked; /* the model has attention */
};

void at_nodes_free(struct at_nodes *nodes)
{
    if (!nodes)
        return;
    free(nodes->node);
    free(nodes->weights);
    free(nodes);
}

/* A hypothesis that still grows; its row in the batch is where it stands. */
typedef struct live {
    double score;
    int32_t node, id; /* -1 at first; the unit to feed in next */
    int64_t from;     /* its row in the step before */
    int64_t draw;     /* which of the n_best draws this is */
} live;

typedef struct ended {
    double score, penalised;
    int32_t node;
    int64_t count;
} ended;

typedef struct beam {
    at_sentence *sentence;
    int64_t first, slots; /* its rows */
    int64_t live_count, ended_count;
    int64_t shortest;  /* units it has at least, if it may have so many */
    int64_t longest;   /* units it may have */
    live *live, *next; /* [width] */
    ended *ended;      /* [width], the best first */
} beam;

/* The batch on its way. All memory is taken at its start, so that steps take none. */
typedef struct field {
    at_search_work *work;
    int64_t width; /* the most hypotheses of a sentence */
    int64_t most;  /* candidates of a row: never more than there are units */
    beam *beams;
    int64_t beam_count, rows, step;
    at_source source;
    int32_t *source_ids, *ids; /* ids: what to feed in, [rows] */
    int64_t *source_lengths, *pick, *owner;
    at_row_task *tasks;
    at_candidate *candidates;
    int64_t *heads;
} field;

/* ---- Nodes ---------------------------------------------------------------------------------------------------- */

static bool nodes_start(at_search_work *work, int64_t width)
{
    if (!work->nodes && !(work->nodes = calloc(1, sizeof *work->nodes)))
        return at_search_memory(work);
    work->nodes->count = 0;
    work->nodes->width = work->settings->wants_weights ? width : 0;
    return true;
}

/* Room for `more` nodes. It doubles and stays, so that steady searching takes no memory. */
static bool nodes_reserve(at_search_work *work, int64_t more)
{
    struct at_nodes *nodes = work->nodes;
    int64_t need = nodes->count + more;
    if (need > INT32_MAX)
        return at_search_memory(work);
    return (AT_GROW(nodes->node, nodes->room, (size_t)need) &&
            AT_GROW(nodes->weights, nodes->weights_room, (size_t)(need * nodes->width))) ||
           at_search_memory(work);
}

static int32_t add_node(struct at_nodes *nodes, int32_t before, int32_t id, const at_real *weights, int64_t count)
{
    int64_t place = nodes->count++;
    nodes->node[place] = (node){before, id, weights ? at_search_link(weights, count) : -1};
    for (int64_t s = 0; s < nodes->width && weights; s++)
        nodes->weights[place * nodes->width + s] = s < count ? (float)weights[s] : 0;
    return (int32_t)place;
}

/* ---- Results -------------------------------------------------------------------------------------------------- */

static bool take_result(at_search_work *work, at_sentence *sentence, const ended *end, at_hypothesis *out)
{
    const struct at_nodes *nodes = work->nodes;
    int64_t rows = end->count + 1;
    int32_t *ids = at_search_take(work, work->window, rows, sizeof *ids);
    int32_t *links = at_search_take(work, work->window, rows, sizeof *links);
    float *weights = NULL;
    if (nodes->width)
        weights = at_search_take(work, work->window, rows * sentence->count, sizeof *weights);
    if (!ids || !links || (nodes->width && !weights))
        return false;
    int32_t at = end->node;
    for (int64_t t = rows - 1; t >= 0; at = nodes->node[at].before, t--) {
        ids[t] = nodes->node[at].id;
        links[t] = nodes->node[at].link;
        if (weights)
            memcpy(weights + t * sentence->count, nodes->weights + at * nodes->width,
                   (size_t)sentence->count * sizeof *weights);
    }
    *out = (at_hypothesis){.ids = ids,
                           .count = end->count,
                           .score = end->score,
                           .penalised = end->penalised,
                           .links = nodes->linked ? links : NULL,
                           .weights = weights};
    return at_search_word(work, sentence, out);
}

static bool take_results(field *f, beam *b)
{
    at_search_work *work = f->work;
    int64_t count = b->ended_count < work->settings->n_best ? b->ended_count : work->settings->n_best;
    at_hypothesis *best = at_search_take(work, work->window, count, sizeof *best);
    if (!best)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (!take_result(work, b->sentence, &b->ended[i], &best[i]))
            return false;
    b->sentence->found.best = best;
    b->sentence->found.count = count;
    return true;
}

/* ---- One step ------------------------------------------------------------------------------------------------- */

/* score / ((5 + n) / 6)^A, n counting the end */
static double penalise(const field *f, double score, int64_t n)
{
    double penalty = f->work->settings->length_penalty;
    return penalty == 0 ? score : score / pow((5 + (double)n) / 6, penalty);
}

/* In order of the penalised score; of equals the one that ended first. */
static void add_ended(beam *b, ended end)
{
    int64_t place = b->ended_count++;
    for (; place > 0 && b->ended[place - 1].penalised < end.penalised; place--)
        b->ended[place] = b->ended[place - 1];
    b->ended[place] = end;
}

/* Can no live hypothesis come among the best any more? A score only falls, and a penalty is kindest either at once or
 * at the greatest length. */
static bool decided(const field *f, const beam *b)
{
    const at_search_settings *settings = f->work->settings;
    if (b->live_count == 0)
        return true;
    if (settings->temperature > 0 || b->ended_count < settings->n_best)
        return false;
    double now = penalise(f, b->next[0].score, f->step + 2), last = penalise(f, b->next[0].score, b->longest + 1);
    return b->ended[settings->n_best - 1].penalised >= (now > last ? now : last);
}

/* Extends the hypotheses of a beam by its likeliest candidates. */
static void extend(field *f, beam *b, const at_real *weights)
{
    bool draws = f->work->settings->temperature > 0;
    int64_t width = draws ? b->live_count : f->width - b->ended_count, count = 0;
    memset(f->heads, 0, (size_t)b->live_count * sizeof *f->heads);
    for (int64_t picked = 0; picked < width; picked++) {
        int64_t best = -1;
        double best_score = 0;
        for (int64_t i = draws ? picked : 0; i < (draws ? picked + 1 : b->live_count); i++) {
            const at_row_task *task = &f->tasks[b->first + i];
            if (f->heads[i] == task->count)
                continue;
            double score = b->live[i].score + task->candidates[f->heads[i]].log_prob;
            if (best < 0 || score > best_score) { /* of equals the first hypothesis, and in it the lowest id */
                best = i;
                best_score = score;
            }
        }
        if (best < 0)
            break;
        int64_t row = b->first + best;
        int32_t id = f->tasks[row].candidates[f->heads[best]++].id;
        int32_t added = add_node(f->work->nodes, b->live[best].node, id,
                                 weights ? weights + row * f->source.length : NULL, b->sentence->count);
        if (id == AT_END)
            add_ended(b, (ended){best_score, penalise(f, best_score, f->step + 1), added, f->step});
        else
            b->next[count++] = (live){best_score, added, id, row, b->live[best].draw};
    }
    b->live_count = count;
}

static void ask(field *f)
{
    const at_search_settings *settings = f->work->settings;
    for (int64_t row = 0; row < f->rows; row++)
        f->tasks[row].most = 0;
    int64_t taken = 0;
    for (int64_t n = 0; n < f->beam_count; n++) {
        beam *b = &f->beams[n];
        int64_t width = settings->temperature > 0 ? 1 : f->width - b->ended_count;
        width = width < f->most ? width : f->most;
        for (int64_t i = 0; i < b->live_count; i++) {
            at_row_task *task = &f->tasks[b->first + i];
            *task = (at_row_task){.most = width, .candidates = f->candidates + taken};
            taken += width;
            task->only = f->step < b->sentence->target_count ? b->sentence->target_ids[f->step]
                         : f->step >= b->longest             ? AT_END
                                                             : -1;
            task->goes_on = f->step < b->shortest;
            task->draws = settings->temperature > 0;
            if (task->draws)
                task->at = at_uniform_at(settings->seed, (uint64_t)b->sentence->number,
                                         (uint64_t)b->live[i].draw << 32 | (uint64_t)f->step);
        }
    }
}

/* Gives every sentence that goes on as many slots as it needs, and moves the encoded sources there. */
static bool lay_out(field *f)
{
    int64_t rows = 0, kept = 0;
    for (int64_t n = 0; n < f->beam_count; n++) {
        beam b = f->beams[n];
        if (b.live_count == 0)
            continue;
        for (int64_t i = 0; i < b.live_count; i++)
            f->owner[rows + i] = b.first;
        b.first = rows;
        b.slots = b.live_count;
        rows += b.slots;
        f->beams[kept++] = b;
    }
    f->beam_count = kept;
    f->rows = rows;
    bool good = true;
    for (int v = 0; rows > 0 && good && v < f->work->voice_count; v++)
        good = at_kept_select(f->work->voices[v].memory, f->owner, rows, f->work->error);
    return good;
}

/* Row i of every voice's state becomes old row pick[i]. */
static bool select_states(const field *f)
{
    bool good = true;
    for (int v = 0; good && v < f->work->voice_count; v++) {
        const at_voice *voice = &f->work->voices[v];
        good = at_kept_select(voice->state, f->pick, f->rows, f->work->error) &&
               (at_cache_rows(voice->cache) == 0 || at_cache_select(voice->cache, f->pick, f->rows, f->work->error));
    }
    return good;
}

/* What the rows read: the source of their sentence, what their hypothesis ended in, and the state it had. */
static bool move_rows(field *f)
{
    bool moved = false;
    for (int64_t n = 0; n < f->beam_count; n++) {
        beam *b = &f->beams[n];
        const at_sentence *sentence = b->sentence;
        for (int64_t i = 0; i < b->slots; i++) {
            int64_t row = b->first + i;
            bool used = i < b->live_count;
            f->pick[row] = used ? b->live[i].from : b->live_count ? b->live[0].from : row;
            f->ids[row] = used ? b->live[i].id : AT_END;
            moved = moved || f->pick[row] != row;
            f->source_lengths[row] = sentence->count;
            int32_t *ids = f->source_ids + row * f->source.length;
            if (sentence->count > 0) /* a language model has no source */
                memcpy(ids, sentence->ids, (size_t)sentence->count * sizeof *ids);
            for (int64_t s = sentence->count; s < f->source.length; s++)
                ids[s] = -1;
        }
    }
    moved = moved || f->rows != f->source.rows;
    f->source = (at_source){f->rows, f->source.length, f->source_ids, f->source_lengths};
    return !moved || select_states(f);
}

static bool settle(field *f)
{
    int64_t used = 0;
    bool short_of_slots = false;
    for (int64_t n = 0; n < f->beam_count; n++) {
        beam *b = &f->beams[n];
        live *old = b->live;
        if (b->ended_count && decided(f, b)) {
            if (!take_results(f, b))
                return false;
            b->live_count = 0;
            b->ended_count = 0; /* its results are taken: nothing is left to decide */
        }
        b->live = b->next;
        b->next = old;
        used += b->live_count;
        short_of_slots = short_of_slots || b->live_count > b->slots;
    }
    if ((short_of_slots || used * 8 <= f->rows * 7) && !lay_out(f))
        return false;
    return f->rows == 0 || move_rows(f);
}

static bool step(field *f)
{
    at_search_work *work = f->work;
    at_tape *tape = at_search_tape(work);
    at_decoded decoded;
    if (!tape || !at_search_decode(work, tape, &f->source, f->ids, 1, &decoded) ||
        !nodes_reserve(work, f->beam_count * f->width))
        return false;
    work->nodes->linked = decoded.weights;
    ask(f);
    int64_t vocabulary = decoded.logits->shape.dim[2];
    if (!at_search_rows(work, decoded.logits->value, f->rows, vocabulary, f->tasks))
        return false;
    for (int64_t n = 0; n < f->beam_count; n++)
        extend(f, &f->beams[n], decoded.weights ? decoded.weights->value : NULL);
    return settle(f);
}

/* The most units that a sentence may have, its beginning counted. A table of places is the end of everything. */
static int64_t longest_of(const at_search_work *work, const at_sentence *sentence)
{
    const at_search_settings *settings = work->settings;
    const at_model *model = work->translator->model;
    const int64_t places = at_search_places(work) - 1;
    int64_t most = settings->max_length;
    if (most == 0 && !model->kind->has_source)
        most = sentence->target_count + AT_CONTINUATION;
    else if (most == 0)
        most = (int64_t)(settings->max_length_factor * (double)sentence->count) + 10;
    if (most > places)
        most = places;
    return most > sentence->target_count ? most : sentence->target_count;
}

/* ---- A batch -------------------------------------------------------------------------------------------------- */

static bool take_field(field *f, int64_t count)
{
    at_search_work *work = f->work;
    int64_t most = count * f->width;
    live *lives = at_search_take(work, work->batch, 2 * most, sizeof *lives);
    ended *ends = at_search_take(work, work->batch, most, sizeof *ends);
    f->beams = at_search_take(work, work->batch, count, sizeof *f->beams);
    f->source_ids = at_search_take(work, work->batch, most * f->source.length, sizeof *f->source_ids);
    f->ids = at_search_take(work, work->batch, most, sizeof *f->ids);
    f->source_lengths = at_search_take(work, work->batch, most, sizeof *f->source_lengths);
    f->pick = at_search_take(work, work->batch, most, sizeof *f->pick);
    f->owner = at_search_take(work, work->batch, most, sizeof *f->owner);
    f->tasks = at_search_take(work, work->batch, most, sizeof *f->tasks);
    f->candidates = at_search_take(work, work->batch, most * f->most, sizeof *f->candidates);
    f->heads = at_search_take(work, work->batch, f->width, sizeof *f->heads);
    if (work->error->code != AT_OK)
        return false;
    for (int64_t n = 0; n < count; n++)
        f->beams[n] = (beam){
            .live = lives + 2 * n * f->width, .next = lives + (2 * n + 1) * f->width, .ended = ends + n * f->width};
    return true;
}

bool at_search_beam(at_search_work *work, at_sentence *const *batch, int64_t rows)
{
    const at_search_settings *settings = work->settings;
    bool draws = settings->temperature > 0;
    field f = {.work = work, .width = draws ? settings->n_best : settings->beam, .beam_count = rows, .rows = rows};
    int64_t vocabulary = at_vocabulary_size(work->translator->target);
    f.most = f.width < vocabulary ? f.width : vocabulary;
    if (!at_search_pad(work, batch, rows, &f.source) || !at_search_begin(work, &f.source) || !take_field(&f, rows) ||
        !nodes_start(work, f.source.length))
        return false;
    for (int64_t n = 0; n < rows; n++) {
        beam *b = &f.beams[n];
        b->sentence = batch[n];
        b->first = n;
        b->slots = 1;
        b->live_count = draws ? f.width : 1;
        b->shortest = (int64_t)ceil(settings->min_length_factor * (double)batch[n]->count);
        b->longest = longest_of(work, batch[n]);
        for (int64_t i = 0; i < b->live_count; i++)
            b->live[i] = (live){.node = -1, .id = AT_BEGIN, .from = n, .draw = i};
    }
    if ((draws && f.width > 1 && !lay_out(&f)) || !move_rows(&f))
        return false;
    for (f.step = 0; f.rows > 0; f.step++)
        if (!step(&f))
            return false;
    return true;
}
