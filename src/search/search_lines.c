/* From lines to batches and back. Lines are taken in windows; within one they are sorted by length, so that a batch has
 * little padding, and given back in their order. */
#include <stdlib.h>
#include <string.h>

#include "search/search_internal.h"
#include "text/units.h"

enum {
    WINDOW_BATCHES = 16,    /* batches of lines in a window, */
    WINDOW_BYTES = 1 << 20, /* and how much text at most, unless one line has more */
    BATCH_UNITS = 64 * 256, /* units of a batch, padding counted, unless one line has more: bounds its memory */
    MOST_LINE = 1 << 28,    /* bytes of a line: places in it are 32 bits, and its numbers must fit into memory */
};

bool at_search_memory(at_search_work *work)
{
    return at_fail(work->error, AT_FAILED, "memory ran out while translating; a smaller batch or beam takes less");
}

void *at_search_take(at_search_work *work, at_arena *arena, int64_t count, size_t size)
{
    void *memory = at_arena_take(arena, (size_t)(count > 0 ? count : 1) * size);
    if (!memory)
        at_search_memory(work);
    return memory;
}

at_tape *at_search_tape(at_search_work *work)
{
    at_arena_reset(work->steps);
    at_tape *tape = at_tape_new(work->steps, false);
    if (!tape)
        at_search_memory(work);
    return tape;
}

static at_pass pass_of(const at_search_work *work, const at_voice *voice, at_tape *tape)
{
    const at_search_settings *settings = work->settings;
    return (at_pass){.tape = tape,
                     .cache = voice->cache,
                     .wants_weights = settings->wants_weights || settings->replace_unknown || settings->wants_links,
                     .layer = settings->layer,
                     .head = settings->head};
}

bool at_search_ok(at_search_work *work, at_tape *tape)
{
    if (!at_tape_ok(tape))
        at_fail(work->error, at_tape_error(tape)->code, "%s", at_tape_error(tape)->text);
    return work->error->code == AT_OK;
}

/* False with a sentence if weights are needed but there are none. */
static bool has_weights(at_search_work *work, const at_decoded *decoded)
{
    const at_search_settings *settings = work->settings;
    if (decoded->weights || (!settings->wants_weights && !settings->replace_unknown))
        return true;
    const at_model_kind *kind = work->blind->kind;
    if (!kind->has_source)
        return at_fail(work->error, AT_FAILED, "model '%s' is a language model: it has no source to be aligned with",
                       kind->name);
    return at_fail(work->error, AT_FAILED, "model '%s' has no attention, so it has no weights %s", kind->name,
                   settings->wants_weights ? "to show" : "to replace unknown words by");
}

int32_t at_search_link(const at_real *weights, int64_t count)
{
    int64_t best = -1;
    at_real largest = 0;
    for (int64_t s = 0; s < count; s++)
        if (weights[s] > largest) { /* never for NaN */
            largest = weights[s];
            best = s;
        }
    return (int32_t)best;
}

bool at_search_pad(at_search_work *work, at_sentence *const *batch, int64_t rows, at_source *source)
{
    int64_t longest = 0;
    for (int64_t r = 0; r < rows; r++)
        longest = batch[r]->count > longest ? batch[r]->count : longest;
    int32_t *ids = at_search_take(work, work->batch, rows * longest, sizeof *ids);
    int64_t *lengths = at_search_take(work, work->batch, rows, sizeof *lengths);
    if (!ids || !lengths)
        return false;
    for (int64_t r = 0; r < rows; r++) {
        lengths[r] = batch[r]->count;
        for (int64_t i = 0; i < longest; i++)
            ids[r * longest + i] = i < lengths[r] ? batch[r]->ids[i] : -1;
    }
    *source = (at_source){rows, longest, ids, lengths};
    return true;
}

bool at_search_begin(at_search_work *work, const at_source *source)
{
    for (int v = 0; v < work->voice_count; v++) {
        const at_voice *voice = &work->voices[v];
        at_tape *tape = at_search_tape(work);
        if (!tape)
            return false;
        at_pass pass = pass_of(work, voice, tape);
        at_parts memory = at_model_encode(voice->model, &pass, source);
        at_parts state = at_model_start(voice->model, &pass, source, &memory);
        if (!at_search_ok(work, tape) || !at_kept_store(voice->memory, &memory, work->error) ||
            !at_kept_store(voice->state, &state, work->error))
            return false;
    }
    return true;
}

/* sum += x */
static void add_up(at_tensor *sum, const at_tensor *x)
{
    for (int64_t i = 0; i < at_shape_count(sum->shape); i++)
        sum->value[i] += x->value[i];
}

static void divide(at_tensor *sum, int by)
{
    for (int64_t i = 0; by > 1 && sum && i < at_shape_count(sum->shape); i++)
        sum->value[i] /= (at_real)by;
}

bool at_search_decode(at_search_work *work, at_tape *tape, const at_source *source, const int32_t *ids, int64_t n,
                      at_decoded *decoded)
{
    work->blind = NULL;
    for (int v = 0; v < work->voice_count; v++) {
        const at_voice *voice = &work->voices[v];
        at_pass pass = pass_of(work, voice, tape);
        at_parts memory = at_kept_load(voice->memory, tape), state = at_kept_load(voice->state, tape);
        at_decoded one = at_model_decode(voice->model, &pass, source, &memory, &state, ids, n);
        if (!at_search_ok(work, tape) || !at_kept_store(voice->state, &state, work->error))
            return false;
        if (!one.weights && !work->blind)
            work->blind = voice->model;
        if (v == 0) {
            *decoded = one;
            continue;
        }
        add_up(decoded->logits, one.logits);
        if (!work->blind)
            add_up(decoded->weights, one.weights);
    }
    if (work->blind)
        decoded->weights = NULL;
    divide(decoded->logits, work->voice_count);
    divide(decoded->weights, work->voice_count);
    return has_weights(work, decoded);
}

int64_t at_search_places(const at_search_work *work)
{
    int64_t places = INT64_MAX;
    for (int v = 0; v < work->voice_count; v++) {
        const at_model_settings *s = &work->voices[v].model->settings;
        const int64_t own = s->positions - (int64_t)s->first_position;
        if (work->voices[v].model->added == AT_ADDED_LEARNED && own < places)
            places = own;
    }
    return places;
}

/* ---- Text and names ------------------------------------------------------------------------------------------- */

/* Adds bytes of a line as clean UTF-8, without a NUL or a newline in it. */
static void add_clean(at_buffer *text, const char *bytes, size_t size)
{
    while (size > 0) {
        int32_t point;
        bool broken;
        char clean[4];
        size_t length = at_point_read(bytes, size, &point, &broken);
        at_buffer_add(text, clean, at_point_write(point, clean));
        bytes += length;
        size -= length;
    }
}

/* The text gathered in work->text, as a string of the window. */
static char *keep_text(at_search_work *work)
{
    size_t size = work->text.size;
    char *kept = work->text.failed ? NULL : at_arena_take(work->window, size + 1);
    if (!kept) {
        at_search_memory(work);
        return NULL;
    }
    if (size)
        memcpy(kept, work->text.bytes, size);
    kept[size] = 0;
    work->text.size = 0;
    return kept;
}

static void add_piece(at_buffer *text, const char *line, const int32_t *pieces, int64_t unit)
{
    add_clean(text, line + pieces[2 * unit], (size_t)(pieces[2 * unit + 1] - pieces[2 * unit]));
}

/* A hypothesis that is put into words. */
typedef struct wording {
    const at_search_work *work;
    const at_sentence *sentence;
    const at_hypothesis *hypothesis;
} wording;

/* What stands for an unknown unit: itself, if it was given, or the source word it is linked to, if asked for. */
static bool stand_in(void *context, int64_t unit, at_buffer *text)
{
    const wording *w = context;
    const at_sentence *sentence = w->sentence;
    if (unit < sentence->target_count)
        add_piece(text, sentence->target_line, sentence->target_pieces, unit);
    else if (w->work->settings->replace_unknown && w->hypothesis->links[unit] >= 0)
        add_piece(text, sentence->line, sentence->pieces, w->hypothesis->links[unit]);
    else
        return false;
    return true;
}

/* A unit of the target on its own. */
static void name_unit(at_search_work *work, const at_sentence *sentence, const at_hypothesis *hypothesis, int64_t unit)
{
    int32_t id = unit < hypothesis->count ? hypothesis->ids[unit] : AT_END;
    wording w = {work, sentence, hypothesis};
    if (id == AT_UNKNOWN && stand_in(&w, unit, &work->text))
        return;
    const char *name = at_vocabulary_unit(work->translator->target, id);
    at_buffer_add(&work->text, name ? name : "", name ? strlen(name) : 0); /* units are clean already */
}

static bool name_units(at_search_work *work, const at_sentence *sentence, at_hypothesis *hypothesis)
{
    const char **names = at_search_take(work, work->window, hypothesis->count + 1, sizeof *names);
    for (int64_t t = 0; names && t <= hypothesis->count; t++) {
        name_unit(work, sentence, hypothesis, t);
        if (!(names[t] = keep_text(work)))
            return false;
    }
    hypothesis->names = names;
    return names;
}

static bool name_source(at_search_work *work, at_sentence *sentence)
{
    const char **names = at_search_take(work, work->window, sentence->count, sizeof *names);
    for (int64_t s = 0; names && s < sentence->count; s++) {
        /* By the vocabulary's name, which tells a word's beginning from its middle; an unknown one as it is written. */
        const char *name = at_vocabulary_unit(work->translator->source, sentence->ids[s]);
        if (sentence->ids[s] == AT_UNKNOWN || !name)
            add_piece(&work->text, sentence->line, sentence->pieces, s);
        else
            at_buffer_add(&work->text, name, strlen(name));
        if (!(names[s] = keep_text(work)))
            return false;
    }
    sentence->found.source_names = names;
    return names;
}

bool at_search_word(at_search_work *work, const at_sentence *sentence, at_hypothesis *hypothesis)
{
    wording w = {work, sentence, hypothesis};
    at_vocabulary_write(work->translator->target, hypothesis->ids, hypothesis->count, stand_in, &w, &work->text);
    hypothesis->size = work->text.size;
    hypothesis->text = keep_text(work);
    hypothesis->source_units = sentence->count;
    return hypothesis->text && (!work->settings->wants_weights || name_units(work, sentence, hypothesis));
}

/* ---- Windows -------------------------------------------------------------------------------------------------- */

/* What a line without a unit, or a pair with such a source, gives: nothing, but the beginning that was given. */
static bool give_empty(at_search_work *work, at_sentence *sentence)
{
    at_hypothesis *empty = at_search_take(work, work->window, 1, sizeof *empty);
    int64_t count = sentence->begun ? sentence->target_count : 0;
    if (!empty)
        return false;
    *empty = (at_hypothesis){.text = "", .ids = sentence->target_ids, .count = count};
    sentence->found.best = empty;
    sentence->found.count = 1;
    if (count == 0)
        return true;
    int32_t *links = at_search_take(work, work->window, count + 1, sizeof *links);
    for (int64_t t = 0; links && t <= count; t++)
        links[t] = -1;
    empty->links = links;
    return links && at_search_word(work, sentence, empty);
}

static bool read_units(at_search_work *work, const at_vocabulary *vocabulary, const char *line, size_t size,
                       int32_t **ids, int32_t **pieces, int64_t *count, int64_t *replaced, int64_t number)
{
    if (size > MOST_LINE)
        return at_fail(work->error, AT_FAILED, "line %lld has %zu bytes, and a line has %d at most",
                       (long long)number + 1, size, MOST_LINE);
    int64_t broken = 0;
    *count = (int64_t)size; /* a unit takes a byte at least, unless normalising adds some */
    for (int64_t room = -1; room < *count;) {
        room = *count;
        *ids = at_search_take(work, work->window, room, sizeof **ids);
        *pieces = at_search_take(work, work->window, 2 * room, sizeof **pieces);
        if (!*ids || !*pieces)
            return false;
        *count = at_vocabulary_encode(vocabulary, line, size, *ids, room, &broken, *pieces);
        if (*count < 0)
            return at_search_memory(work);
    }
    *replaced += broken;
    return true;
}

/* The units of what is read: the source, or without one the beginning. */
static int64_t measure(const at_sentence *sentence)
{
    return sentence->line ? sentence->count : sentence->target_count;
}

/* Longer than any line of the training, or than a learned table has places. */
static bool is_long(const at_search_work *work, int64_t count)
{
    const int64_t most = work->translator->max_length;
    return (most > 0 && count > most) || count > at_search_places(work);
}

static bool read_sentence(at_search_work *work, at_sentence *sentence)
{
    const at_translator *translator = work->translator;
    if (sentence->line && !read_units(work, translator->source, sentence->line, sentence->size, &sentence->ids,
                                      &sentence->pieces, &sentence->count, &sentence->replaced, sentence->number))
        return false;
    if (sentence->target_line &&
        !read_units(work, translator->target, sentence->target_line, sentence->target_size, &sentence->target_ids,
                    &sentence->target_pieces, &sentence->target_count, &sentence->replaced, sentence->number))
        return false;
    sentence->found = (at_found){.source_units = sentence->count,
                                 .source_places = sentence->pieces,
                                 .target_places = sentence->begun ? NULL : sentence->target_pieces,
                                 .replaced = sentence->replaced,
                                 .is_long = is_long(work, measure(sentence))};
    if (work->settings->wants_weights && !name_source(work, sentence))
        return false;
    return sentence->count > 0 || !sentence->line || give_empty(work, sentence);
}

/* Short ones first, and of equals the earlier; those without a unit are done and come before all. */
static bool is_before(const at_sentence *a, const at_sentence *b)
{
    if (a->count != b->count)
        return a->count < b->count;
    if (a->target_count != b->target_count)
        return a->target_count < b->target_count;
    return a->number < b->number;
}

static void swap(at_sentence **order, int64_t a, int64_t b)
{
    at_sentence *kept = order[a];
    order[a] = order[b];
    order[b] = kept;
}

/* Below `root` the later stand above the earlier. */
static void sift(at_sentence **order, int64_t root, int64_t count)
{
    for (int64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && is_before(order[child], order[child + 1]))
            child++;
        if (!is_before(order[root], order[child]))
            return;
        swap(order, root, child);
    }
}

/* In place, since decoding takes no memory once it is under way, and qsort would. */
static void sort_by_length(at_sentence **order, int64_t count)
{
    for (int64_t root = count / 2; root-- > 0;)
        sift(order, root, count);
    for (int64_t last = count - 1; last > 0; last--) {
        swap(order, 0, last);
        sift(order, 0, last);
    }
}

static bool run_window(at_search_work *work, at_sentence *sentences, int64_t count)
{
    at_sentence **order = at_search_take(work, work->window, count, sizeof *order);
    if (!order)
        return false;
    for (int64_t i = 0; i < count; i++) {
        order[i] = &sentences[i];
        if (!read_sentence(work, &sentences[i]))
            return false;
    }
    sort_by_length(order, count);
    int64_t from = 0, to;
    while (from < count && order[from]->line && order[from]->count == 0)
        from++;
    for (; from < count; from = to) {
        for (to = from + 1; to < count && to - from < work->settings->batch; to++)
            if ((to - from + 1) * measure(order[to]) > BATCH_UNITS)
                break;
        at_arena_reset(work->batch);
        if (!work->run(work, order + from, to - from))
            return false;
    }
    return true;
}

/* The source ends at the first tab, and behind it stands how its target begins. */
static void cut_beginning(at_sentence *sentence)
{
    const char *tab = sentence->size ? memchr(sentence->line, '\t', sentence->size) : NULL;
    if (!tab)
        return;
    const size_t end = (size_t)(tab - sentence->line);
    sentence->begun = true;
    sentence->target_line = tab + 1;
    sentence->target_size = sentence->size - end - 1;
    sentence->size = end;
}

bool at_search_lines(at_search_work *work, const char *const *sources, const size_t *source_sizes,
                     const char *const *targets, const size_t *target_sizes, int64_t count, at_give *give,
                     void *context)
{
    const int64_t window = WINDOW_BATCHES * work->settings->batch;
    const size_t most = work->window_bytes ? work->window_bytes : WINDOW_BYTES;
    for (int64_t from = 0, to; from < count; from = to) {
        at_arena_reset(work->window);
        size_t bytes = 0;
        for (to = from; to < count && to - from < window && (to == from || bytes < most); to++)
            bytes += (sources ? source_sizes[to] : 0) + (targets ? target_sizes[to] : 0);
        at_sentence *sentences = at_search_take(work, work->window, to - from, sizeof *sentences);
        if (!sentences)
            return false;
        for (int64_t i = from; i < to; i++) {
            sentences[i - from] = (at_sentence){.line = sources ? sources[i] : NULL,
                                                .size = sources ? source_sizes[i] : 0,
                                                .target_line = targets ? targets[i] : NULL,
                                                .target_size = targets ? target_sizes[i] : 0,
                                                .number = work->settings->first_line + i};
            if (work->settings->prefix && !targets)
                cut_beginning(&sentences[i - from]);
        }
        if (!run_window(work, sentences, to - from))
            return false;
        for (int64_t i = 0; i < to - from; i++)
            if (!give(context, sentences[i].number, &sentences[i].found))
                return at_fail(work->error, AT_FAILED, "what was found could not be taken, so the search stopped");
    }
    return true;
}
