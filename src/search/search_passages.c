/* Lines translated in parts: sentence by sentence (`split`), and without what is kept as it is (`placeholders`). The parts
 * are searched as lines of their own, and the line's translation is put together from theirs, with what stood between. The
 * same happens in a server, which searches the parts of many requests together (serve/job.c, serve/queue.c). */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "search/search_internal.h"
#include "text/marks.h"
#include "text/sentences.h"

enum { WINDOW = 1024, WINDOW_BYTES = 1 << 20 }; /* lines, and bytes of them, that are searched together */

/* One hypothesis of a part. */
typedef struct version {
    at_answer answer;
    double score, penalised;
    int64_t units; /* the end counted */
} version;

/* A part of a line: what is searched. */
typedef struct part {
    at_line place;     /* where it stands in its line */
    at_line line;      /* what is translated of it */
    at_marks marks;    /* what was taken out */
    version *versions; /* [count] */
    int64_t count, replaced, cut;
    bool is_long, again;
} part;

typedef struct passages {
    const at_search_job *job; /* the caller's */
    const at_search_settings *settings;
    at_splitter *splitter;
    at_error *error;
    at_arena *arena; /* memory of a window */
    at_line *line;   /* [lines] */
    int64_t *first;  /* [lines + 1] the first part of each */
    int64_t lines, from;
    part *part;
    size_t room, line_room, first_room;
    int64_t parts;
    int64_t *number;   /* [parts] the numbers of their lines */
    int64_t *searched; /* [searching] the parts that are searched, */
    at_line *search;   /* and their lines */
    int64_t searching, next;
    at_buffer text;
} passages;

static bool no_memory(passages *p)
{
    return at_no_memory(p->error, "the parts of a line");
}

static void free_parts(passages *p)
{
    for (int64_t i = 0; i < p->parts; i++) {
        part *one = &p->part[i];
        for (int64_t k = 0; k < one->count; k++) {
            free(one->versions[k].answer.text);
            free(one->versions[k].answer.place);
        }
        free(one->versions);
        free(one->marks.base);
        free(one->marks.tag);
        free(one->marks.text);
    }
    p->parts = 0;
}

/* ---- From lines to parts ---------------------------------------------------------------------------------------- */

static bool add_part(passages *p, at_line place)
{
    if (!AT_GROW(p->part, p->room, (size_t)p->parts + 1))
        return no_memory(p);
    part *added = &p->part[p->parts];
    *added = (part){.place = place, .line = place, .marks.whole = place};
    if (!p->settings->placeholders) {
        p->parts++;
        return true;
    }
    if (!at_marks_keep(&added->marks, false, &added->line))
        return no_memory(p);
    p->parts++;
    if (at_marks_are_all(&added->marks, added->line)) { /* it stays as it is */
        free(added->marks.tag);
        free(added->marks.text);
        p->parts--;
    }
    return true;
}

static bool add_line(passages *p, at_line line)
{
    at_line sentence;
    if (!AT_GROW(p->line, p->line_room, (size_t)p->lines + 1) ||
        !AT_GROW(p->first, p->first_room, (size_t)p->lines + 2))
        return no_memory(p);
    p->line[p->lines] = line;
    p->first[p->lines++] = p->parts;
    bool good = true;
    if (!p->splitter)
        good = line.size == 0 || add_part(p, line);
    else if (line.size > 0 && !at_splitter_begin(p->splitter, line))
        good = no_memory(p);
    else
        while (good && line.size > 0 && at_splitter_next(p->splitter, &sentence))
            good = sentence.size == 0 || add_part(p, sentence);
    p->first[p->lines] = p->parts;
    return good;
}

/* A window of lines, as many as there are without waiting, one at least; *ended becomes true after the last. */
static bool read_window(passages *p, bool *ended)
{
    const at_search_job *job = p->job;
    size_t bytes = 0;
    at_arena_reset(p->arena);
    free_parts(p);
    p->from += p->lines;
    p->lines = 0;
    while (p->lines < WINDOW && bytes < WINDOW_BYTES && !*ended) {
        const int64_t at = p->from + p->lines;
        at_line line = {0};
        if (!job->next_line) {
            *ended = at >= job->count;
            line = *ended ? line : job->lines[at];
        } else {
            const at_stream next = job->next_line(job->context, &line, p->error);
            if (p->error->code != AT_OK)
                return false;
            *ended = next == AT_STREAM_END;
            if (next == AT_STREAM_WAIT && p->lines > 0)
                return true;
            if (next == AT_STREAM_WAIT)
                continue;
            char *copy = at_arena_take(p->arena, line.size + 1);
            if (!copy)
                return no_memory(p);
            if (line.size)
                memcpy(copy, line.text, line.size);
            line.text = copy;
        }
        if (!*ended && !add_line(p, line))
            return false;
        bytes += line.size;
    }
    return true;
}

/* ---- The search of the parts ------------------------------------------------------------------------------------ */

static bool keep_version(const at_result *result, int64_t rank, bool placed, version *to)
{
    const at_hypothesis *h = &result->best[rank];
    const int32_t *ends = placed ? at_result_ends(result, rank) : NULL;
    to->score = h->score;
    to->penalised = h->penalised;
    to->units = h->count + 1;
    to->answer.text = strndup(h->text, h->size);
    to->answer.places = ends ? h->count : 0;
    to->answer.place = calloc((size_t)to->answer.places + 1, sizeof *to->answer.place);
    for (int64_t t = 0; to->answer.place && t < to->answer.places; t++) {
        const int32_t link = h->links ? h->links[t] : -1;
        to->answer.place[t] = (at_place){ends[t], link < 0 ? -1 : result->source_offsets[2 * link]};
    }
    return to->answer.text && to->answer.place;
}

static bool take_result(void *context, int64_t line, const at_result *result)
{
    passages *p = context;
    part *to = &p->part[p->searched[p->next++]];
    const at_line best = {result->best[0].text, result->best[0].size};
    (void)line;
    if (p->settings->placeholders && at_marks_lost_numbers(&to->marks, to->line, best)) {
        to->again = true; /* without its numbers, which are kept then */
        return at_marks_keep(&to->marks, true, &to->line) || no_memory(p);
    }
    to->again = false;
    to->replaced = result->replaced;
    to->cut = result->cut;
    to->is_long = result->is_long;
    to->versions = calloc((size_t)result->count, sizeof *to->versions);
    for (; to->versions && to->count < result->count; to->count++)
        if (!keep_version(result, to->count, to->marks.count > 0, &to->versions[to->count])) {
            to->count++; /* what there is of it is released with the rest */
            return no_memory(p);
        }
    for (int64_t i = 0; i < to->count; i++)
        at_marks_erase(&to->marks, &to->versions[i].answer);
    return to->versions || no_memory(p);
}

static void tell_long(void *context, int64_t line, int64_t units, int64_t read)
{
    const passages *p = context;
    p->settings->on_long(p->job->context, line, units, read);
}

static void tell_term(void *context, int64_t line, at_line term, bool forbidden)
{
    const passages *p = context;
    p->settings->on_term(p->job->context, line, term, forbidden);
}

/* Searches the parts without a version, or those that are to be searched again. */
static bool search_parts(passages *p, bool again)
{
    p->searched = at_arena_take(p->arena, (size_t)(p->parts + 1) * sizeof *p->searched);
    p->search = at_arena_take(p->arena, (size_t)(p->parts + 1) * sizeof *p->search);
    p->number = at_arena_take(p->arena, (size_t)(p->parts + 1) * sizeof *p->number);
    if (!p->searched || !p->search || !p->number)
        return no_memory(p);
    p->searching = p->next = 0;
    for (int64_t l = 0; l < p->lines; l++)
        for (int64_t i = p->first[l]; i < p->first[l + 1]; i++) {
            if (again && !p->part[i].again)
                continue;
            p->number[p->searching] = p->settings->first_line + p->from + l;
            p->search[p->searching] = p->part[i].line;
            p->searched[p->searching++] = i;
        }
    if (p->searching == 0)
        return true;
    at_search_settings inner = *p->settings;
    inner.on_long = p->settings->on_long && !again ? tell_long : NULL;
    inner.on_term = p->settings->on_term ? tell_term : NULL;
    inner.wants_links = p->settings->placeholders;
    if (p->settings->placeholders && inner.layer == 0)
        at_translator_guided(p->job->translator, &inner.layer, &inner.head);
    at_search_job job = {.translator = p->job->translator,
                         .settings = &inner,
                         .lines = p->search,
                         .numbers = p->number,
                         .count = p->searching,
                         .on_result = take_result,
                         .context = p,
                         .not_finite = p->job->not_finite,
                         .wants_ends = p->settings->placeholders};
    return at_search(&job, p->error);
}

/* ---- From parts to lines ---------------------------------------------------------------------------------------- */

/* The text of a line by the versions of this rank, of a part with fewer by its last; what stands between stays. */
static char *write_line(passages *p, int64_t l, int64_t rank, at_hypothesis *h)
{
    const char *at = p->line[l].text, *const end = at + p->line[l].size;
    p->text.size = 0;
    for (int64_t i = p->first[l]; i < p->first[l + 1]; i++) {
        const part *one = &p->part[i];
        const version *v = &one->versions[rank < one->count ? rank : one->count - 1];
        at_search_clean(&p->text, at, (size_t)(one->place.text - at));
        if (one->marks.count > 0)
            at_tags_write(one->marks.tag, one->marks.count, one->line, &v->answer, false, &p->text);
        else
            at_buffer_add(&p->text, v->answer.text, strlen(v->answer.text));
        at = one->place.text + one->place.size;
        h->score += v->score;
        h->penalised += v->penalised;
        h->count += v->units;
    }
    at_search_clean(&p->text, at, (size_t)(end - at));
    char *copy = p->text.failed ? NULL : at_arena_take(p->arena, p->text.size + 1);
    if (!copy) {
        no_memory(p);
        return NULL;
    }
    if (p->text.size)
        memcpy(copy, p->text.bytes, p->text.size);
    copy[p->text.size] = 0;
    h->text = copy;
    h->size = p->text.size;
    h->count -= h->count > 0; /* the last end is not counted, as that of a line */
    return copy;
}

static bool deliver(passages *p, int64_t l)
{
    at_result result = {.count = 1};
    for (int64_t i = p->first[l]; i < p->first[l + 1]; i++) {
        const part *one = &p->part[i];
        result.count = one->count > result.count ? one->count : result.count;
        result.replaced += one->replaced;
        result.cut += one->cut;
        result.is_long |= one->is_long;
    }
    at_hypothesis *best = at_arena_zeros(p->arena, (size_t)result.count * sizeof *best);
    if (!best)
        return no_memory(p);
    for (int64_t rank = 0; rank < result.count; rank++)
        if (!write_line(p, l, rank, &best[rank]))
            return false;
    result.best = best;
    return p->job->on_result(p->job->context, p->settings->first_line + p->from + l, &result) ||
           at_fail(p->error, AT_INTERRUPTED, "stopped by the function that receives the results");
}

bool at_search_passages(const at_search_job *job, at_error *error)
{
    passages p = {.job = job, .settings = job->settings, .error = error, .arena = at_arena_new()};
    bool good = p.arena || no_memory(&p), ended = false;
    if (good && p.settings->split)
        good = (p.splitter = at_splitter_new(p.settings->split, error));
    while (good && !ended) {
        good = read_window(&p, &ended) && search_parts(&p, false) && search_parts(&p, true);
        for (int64_t l = 0; good && l < p.lines; l++)
            good = deliver(&p, l);
    }
    free_parts(&p);
    at_splitter_free(p.splitter);
    at_arena_free(p.arena);
    at_buffer_free(&p.text);
    free(p.line);
    free(p.first);
    free(p.part);
    return good;
}
