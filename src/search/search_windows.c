/* From lines to batches and back. Lines are taken in windows; within one they are sorted by length, so that a batch has
 * little padding, and their results are delivered in the order of the lines. */
#include <string.h>

#include "search/search_internal.h"

enum {
    WINDOW_LINES = 1 << 14, /* in a window of a stream, whose number of lines is not known */
    BATCH_UNITS = 64 * 256, /* units of a batch, padding counted, unless one line has more: bounds its memory */
    MOST_LINE = 1 << 28,    /* bytes of a line: offsets are 32 bits, and its arrays must fit into memory */
};

#define NO_MEMORY "the search; a smaller batch or beam needs less"

bool at_search_no_memory(at_search_work *work)
{
    return at_no_memory(work->error, NO_MEMORY);
}

bool at_search_stopped(const at_search_work *work)
{
    const volatile int *stop = work->settings->stop;
    return stop && __atomic_load_n(stop, __ATOMIC_RELAXED) &&
           !at_fail(work->error, AT_INTERRUPTED, "stopped, as the caller asked for it");
}

bool at_search_not_finite(at_search_work *work, const at_sentence *sentence, const char *what)
{
    if (work->job->not_finite)
        *work->job->not_finite = true;
    return at_fail(work->error, AT_FAILED,
                   "line %lld: the model's %s are not finite; its parameters are too large, as after a training that "
                   "diverged, so it is of no use",
                   (long long)sentence->number + 1, what);
}

void *at_search_alloc(at_search_work *work, at_arena *arena, int64_t count, size_t size)
{
    void *memory = at_arena_take(arena, (size_t)(count > 0 ? count : 1) * size);
    if (!memory)
        at_search_no_memory(work);
    return memory;
}

/* ---- One sentence --------------------------------------------------------------------------------------------- */

/* The result of a source without a unit: an empty hypothesis, or the given start. */
static bool set_empty_result(at_search_work *work, at_sentence *sentence)
{
    at_hypothesis *empty = at_search_alloc(work, work->window, 1, sizeof *empty);
    int64_t count = sentence->is_start ? sentence->target.count : 0;
    if (!empty)
        return false;
    *empty = (at_hypothesis){.text = "", .ids = sentence->target.ids, .count = count};
    sentence->result.best = empty;
    sentence->result.count = 1;
    if (count == 0)
        return true;
    int32_t *links = at_search_alloc(work, work->window, count + 1, sizeof *links);
    for (int64_t t = 0; links && t <= count; t++)
        links[t] = -1;
    empty->links = links;
    return links && at_search_word(work, sentence, empty);
}

/* Where the units of a line go. */
typedef struct destination {
    at_arena *arena;
    at_encoded *encoded;
} destination;

static bool reserve(void *context, int64_t count, int32_t **ids, int32_t **offsets)
{
    const destination *to = context;
    const size_t room = (size_t)(count > 0 ? count : 1);
    to->encoded->ids = *ids = at_arena_take(to->arena, room * sizeof **ids);
    to->encoded->offsets = *offsets = at_arena_take(to->arena, 2 * room * sizeof **offsets);
    return *ids && *offsets;
}

bool at_search_encode(at_arena *arena, const at_vocabulary *vocabulary, int64_t number, at_encoded *encoded,
                      int64_t *replaced, at_error *error)
{
    const at_line line = encoded->line.size > 0 ? encoded->line : (at_line){"", 0};
    if (line.size > MOST_LINE)
        return at_fail(error, AT_UNSUPPORTED, "line %lld has %zu bytes; the limit is %d", (long long)number + 1,
                       line.size, MOST_LINE);
    int64_t more = 0;
    destination to = {arena, encoded};
    encoded->count = at_vocabulary_encode_line(vocabulary, line, reserve, &to, &more);
    *replaced += more;
    return encoded->count >= 0 || at_no_memory(error, NO_MEMORY);
}

static bool encode(at_search_work *work, const at_vocabulary *vocabulary, at_sentence *sentence, at_encoded *encoded)
{
    return at_search_encode(work->window, vocabulary, sentence->number, encoded, &sentence->replaced, work->error);
}

bool at_search_encode_picture(at_arena *arena, at_picture_source *pictures, int64_t number, at_encoded *encoded,
                              at_error *error)
{
    int32_t id = 0, *ids, *offsets;
    at_error why = {0};
    destination to = {arena, encoded};
    encoded->count = encoded->line.size > 0 ? at_picture_source_add(pictures, encoded->line, &id, &why) : 0;
    if (encoded->count < 0)
        return at_fail(error, why.code, "line %lld: %s", (long long)number + 1, why.text);
    if (!reserve(&to, encoded->count, &ids, &offsets))
        return at_no_memory(error, NO_MEMORY);
    for (int64_t i = 0; i < encoded->count; i++) {
        ids[i] = id;
        offsets[2 * i] = 0; /* every cell is named by the whole line */
        offsets[2 * i + 1] = (int32_t)encoded->line.size;
    }
    return true;
}

static bool encode_source(at_search_work *work, at_sentence *sentence)
{
    if (work->pictures)
        return at_search_encode_picture(work->window, work->pictures, sentence->number, &sentence->source, work->error);
    return encode(work, work->translator->source, sentence, &sentence->source);
}

/* The units that are read: of the source, or without one of the start. */
static int64_t length_of(const at_search_work *work, const at_sentence *sentence)
{
    return work->has_source ? sentence->source.count : sentence->target.count;
}

/* Longer than any line of the training, or than a learned table has positions. */
static bool is_long(const at_search_work *work, int64_t count)
{
    const int64_t most = work->translator->max_length;
    return !work->pictures && ((most > 0 && count > most) || count > at_search_positions(work));
}

/* Leaves out what `max_source` does not allow to be read; returns how many units that are. Targets that are scored stay
 * whole. */
static int64_t cut_line(const at_search_work *work, at_sentence *sentence)
{
    const int64_t most = work->settings->max_source, count = length_of(work, sentence);
    const bool scores = work->job->targets || work->job->target;
    if (most == 0 || count <= most || work->pictures || (scores && !work->has_source))
        return 0;
    const int64_t cut = count - most;
    if (work->has_source) {
        sentence->source.count = at_vocabulary_shorten(work->translator->source, sentence->source.ids, count, most);
    } else {
        at_encoded *start = &sentence->target;
        start->ids += cut;
        start->offsets += 2 * cut;
        start->count = most;
        sentence->before = (at_line){start->line.text, (size_t)start->offsets[0]};
    }
    return cut;
}

static bool read_sentence(at_search_work *work, at_sentence *sentence)
{
    const at_translator *translator = work->translator;
    if ((work->has_source && !encode_source(work, sentence)) ||
        (sentence->has_target && !work->job->target && !encode(work, translator->target, sentence, &sentence->target)))
        return false;
    const int64_t units = length_of(work, sentence), cut = cut_line(work, sentence);
    sentence->result = (at_result){.source_units = sentence->source.count,
                                   .source_offsets = sentence->source.offsets,
                                   .target_offsets = sentence->is_start ? NULL : sentence->target.offsets,
                                   .replaced = sentence->replaced,
                                   .is_long = is_long(work, units),
                                   .cut = cut};
    if (work->settings->on_long && (cut > 0 || sentence->result.is_long))
        work->settings->on_long(work->job->context, sentence->number, units, units - cut);
    if ((at_search_names(work) && !at_search_name_source(work, sentence)) || !at_terms_read(work, sentence))
        return false;
    return sentence->source.count > 0 || !work->has_source || set_empty_result(work, sentence);
}

/* ---- Sorting by length ---------------------------------------------------------------------------------------- */

/* Short ones first, and of equals the earlier; those without a unit are done and come before all. */
static bool is_before(const at_sentence *a, const at_sentence *b)
{
    if (a->source.count != b->source.count)
        return a->source.count < b->source.count;
    if (a->target.count != b->target.count)
        return a->target.count < b->target.count;
    return a->number < b->number;
}

static void swap(at_sentence **order, int64_t a, int64_t b)
{
    at_sentence *moved = order[a];
    order[a] = order[b];
    order[b] = moved;
}

/* Restores the heap below `root`: no sentence stands below one that comes before it. */
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

/* Heap sort, in place: steady decoding allocates nothing, and qsort would. */
static void sort_by_length(at_sentence **order, int64_t count)
{
    for (int64_t root = count / 2; root-- > 0;)
        sift(order, root, count);
    for (int64_t last = count - 1; last > 0; last--) {
        swap(order, 0, last);
        sift(order, 0, last);
    }
}

/* ---- Windows -------------------------------------------------------------------------------------------------- */

static bool run_window(at_search_work *work, at_sentence *sentences, int64_t count)
{
    at_sentence **order = at_search_alloc(work, work->window, count, sizeof *order);
    if (!order)
        return false;
    if (work->pictures)
        at_picture_source_clear(work->pictures);
    for (int64_t i = 0; i < count; i++) {
        order[i] = &sentences[i];
        if (!read_sentence(work, &sentences[i]))
            return false;
    }
    sort_by_length(order, count);
    int64_t from = 0, to;
    while (from < count && work->has_source && order[from]->source.count == 0)
        from++;
    for (; from < count; from = to) {
        for (to = from + 1; to < count && to - from < work->settings->batch; to++)
            if ((to - from + 1) * length_of(work, order[to]) > BATCH_UNITS)
                break;
        at_arena_reset(work->batch);
        if (at_search_stopped(work) || !work->run_batch(work, order + from, to - from))
            return false;
    }
    return true;
}

/* The source ends at the first tab, and after it comes the start of its target. */
static void cut_start(at_sentence *sentence)
{
    at_line *source = &sentence->source.line;
    const char *tab = source->size ? memchr(source->text, '\t', source->size) : NULL;
    if (!tab)
        return;
    const size_t end = (size_t)(tab - source->text);
    sentence->has_target = sentence->is_start = true;
    sentence->target.line = (at_line){tab + 1, source->size - end - 1};
    source->size = end;
}

/* `line` is the source, or with a language model what it continues; `target` that of forced decoding, or NULL. */
static at_sentence new_sentence(const at_search_work *work, at_line line, const at_line *target, int64_t number)
{
    at_sentence sentence = {.number = number, .has_target = target || !work->has_source};
    if (work->has_source)
        sentence.source.line = line;
    if (work->job->target) {
        sentence.has_target = true;
        sentence.target = *work->job->target;
    } else if (sentence.has_target) {
        sentence.target.line = target ? *target : line;
    }
    if (work->settings->prefix && !target)
        cut_start(&sentence);
    return sentence;
}

/* Sentences [count] from the job's arrays: the lines from number `from` on. */
static bool window_from_arrays(at_search_work *work, int64_t from, int64_t most, at_sentence **sentences,
                               int64_t *count)
{
    const at_search_job *job = work->job;
    size_t bytes = 0;
    int64_t to = from;
    for (; to < job->count && to - from < most && (to == from || bytes < work->window_bytes); to++)
        bytes += (job->lines ? job->lines[to].size : 0) + (job->targets ? job->targets[to].size : 0);
    *count = to - from;
    if (*count == 0)
        return true;
    if (!(*sentences = at_search_alloc(work, work->window, *count, sizeof **sentences)))
        return false;
    for (int64_t i = from; i < to; i++)
        (*sentences)[i - from] =
            new_sentence(work, job->lines ? job->lines[i] : (at_line){0}, job->targets ? &job->targets[i] : NULL,
                         job->numbers ? job->numbers[i] : work->settings->first_line + i);
    return true;
}

/* Sentences [count] from the job's stream, with copies of their lines: as many as there are without waiting, one at
 * least, unless the stream ends. */
static bool window_from_stream(at_search_work *work, int64_t from, int64_t most, at_sentence **sentences,
                               int64_t *count, bool *ended)
{
    const at_search_job *job = work->job;
    most = most < WINDOW_LINES ? most : WINDOW_LINES;
    if (!(*sentences = at_search_alloc(work, work->window, most, sizeof **sentences)))
        return false;
    *count = 0;
    for (size_t bytes = 0; *count < most && bytes < work->window_bytes && !*ended;) {
        at_line line = {0};
        const at_stream next = job->next_line(job->context, &line, work->error);
        if (work->error->code != AT_OK)
            return false;
        *ended = next == AT_STREAM_END;
        if (next == AT_STREAM_WAIT && *count > 0)
            return true;
        if (next != AT_STREAM_LINE)
            continue;
        char *text = at_search_alloc(work, work->window, (int64_t)line.size, 1);
        if (!text)
            return false;
        if (line.size)
            memcpy(text, line.text, line.size);
        (*sentences)[*count] =
            new_sentence(work, (at_line){text, line.size}, NULL, work->settings->first_line + from + *count);
        bytes += line.size;
        ++*count;
    }
    return true;
}

static bool deliver(at_search_work *work, const at_sentence *sentences, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        at_terms_tell(work, &sentences[i]);
        if (!work->job->on_result(work->job->context, sentences[i].number, &sentences[i].result))
            return at_fail(work->error, AT_INTERRUPTED, "stopped by the function that receives the results");
    }
    return true;
}

bool at_search_lines(at_search_work *work)
{
    const int64_t most = AT_WINDOW_BATCHES * work->settings->batch;
    bool ended = false;
    for (int64_t from = 0, count = 1; count > 0 && !ended; from += count) {
        at_sentence *sentences = NULL;
        at_arena_reset(work->window);
        if (!(work->job->next_line ? window_from_stream(work, from, most, &sentences, &count, &ended)
                                   : window_from_arrays(work, from, most, &sentences, &count)))
            return false;
        if (count > 0 && (!run_window(work, sentences, count) || !deliver(work, sentences, count)))
            return false;
    }
    return true;
}
