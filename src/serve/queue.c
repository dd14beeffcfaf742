/* Requests that wait, and the one thread that searches: it takes lines of all that ask for the same model and search, one
 * of each in turn, up to a batch, so that a long request does not hold up a short one. The lines have the same bits in any
 * company. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "serve/serve_internal.h"

enum { BATCH = 64 };

double at_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- One search ------------------------------------------------------------------------------------------------- */

typedef struct search {
    at_job *job[BATCH]; /* of each line */
    int64_t index[BATCH];
    at_line line[BATCH];
    int64_t count;
    bool aligns;
} search;

static bool same_search(const at_job *a, const at_job *b)
{
    return a->served == b->served && a->pair == b->pair && a->best == b->best && a->aligns == b->aligns;
}

/* The next line from `from` on that is not answered; the number of lines if there is none. */
static int64_t next_open(const at_job *job, int64_t from)
{
    while (from < job->lines && job->answer[from * job->best].text)
        from++;
    return from;
}

/* The first job decides the search. One line of each job that it fits, again and again. */
static void gather(const at_queue *queue, search *s)
{
    at_job *fitting[BATCH];
    int64_t at[BATCH];
    int jobs = 0;
    s->count = 0;
    s->aligns = queue->head->aligns;
    for (at_job *job = queue->head; job && jobs < BATCH; job = job->next)
        if (same_search(queue->head, job)) {
            job->from = at[jobs] = next_open(job, job->from);
            fitting[jobs++] = job;
        }
    for (bool found = true; found && s->count < BATCH;) {
        found = false;
        for (int i = 0; i < jobs && s->count < BATCH; i++) {
            if (at[i] >= fitting[i]->lines)
                continue;
            s->job[s->count] = fitting[i];
            fitting[i]->searched = true;
            s->index[s->count] = at[i];
            s->line[s->count++] = fitting[i]->line[at[i]];
            at[i] = next_open(fitting[i], at[i] + 1);
            found = true;
        }
    }
}

/* Where the units of a hypothesis come from: the source unit of the largest weight. */
static bool keep_places(const at_result *result, int64_t rank, at_answer *answer)
{
    const at_hypothesis *best = &result->best[rank];
    const int32_t *ends = at_result_ends(result, rank);
    answer->places = ends ? best->count : 0;
    answer->place = calloc((size_t)answer->places + 1, sizeof *answer->place);
    for (int64_t t = 0; answer->place && t < answer->places; t++) {
        const int32_t link = best->links ? best->links[t] : -1;
        answer->place[t] = (at_place){ends[t], link < 0 ? -1 : result->source_offsets[2 * link]};
    }
    return answer->place;
}

static bool on_result(void *context, int64_t line, const at_result *result)
{
    const search *s = context;
    at_job *job = s->job[line];
    const int64_t index = s->index[line];
    at_answer *answer = job->answer + index * job->best;
    const at_line best = {result->best[0].text, result->best[0].size};
    if (at_served_keeps(job->served, job->pair) && at_marks_lost_numbers(&job->marks[index], job->line[index], best)) {
        /* It is searched again, without them: it is not answered. */
        job->aligns = true;
        return at_marks_keep(&job->marks[index], true, &job->line[index]) || at_no_memory(&job->error, "a translation");
    }
    for (int64_t i = result->count - 1; i >= 0; i--) { /* the first last: it marks the line as answered */
        if ((s->aligns && !keep_places(result, i, &answer[i])) ||
            !(answer[i].text = strndup(result->best[i].text, result->best[i].size)))
            return at_no_memory(&job->error, "a translation");
        at_marks_erase(&job->marks[index], &answer[i]);
        const at_hypothesis *one = &result->best[i];
        answer[i].units = one->count > 0 ? one->count : 1;
        answer[i].confidence =
            at_translator_confidence(job->served->pair[job->pair].translator, one->score, one->count);
    }
    return true;
}

int64_t at_units_read(const at_translator *translator, int64_t max_source)
{
    return max_source > 0 ? max_source : at_translator_most_units(translator);
}

static bool run(at_queue *queue, search *s, int64_t from, int64_t count, at_error *error)
{
    const at_job *first = s->job[from];
    at_translator *translator = first->served->pair[first->pair].translator;
    at_search_settings settings = {.beam = first->best > queue->beam ? first->best : queue->beam,
                                   .n_best = first->best,
                                   .length_penalty = queue->length_penalty,
                                   .first_line = from,
                                   .max_source = at_units_read(translator, queue->max_source),
                                   .wants_links = s->aligns,
                                   .stop = &queue->stop};
    if (s->aligns)
        at_translator_guided(translator, &settings.layer, &settings.head);
    const at_search_job job = {.translator = translator,
                               .lines = s->line + from,
                               .count = count,
                               .on_result = on_result,
                               .context = s,
                               .wants_ends = s->aligns,
                               .memory = &first->served->pair[first->pair].memory};
    return at_translate_job(job, &settings, error);
}

/* If they cannot be translated together, each is alone, so that a failure is that of its own request. */
static void run_all(at_queue *queue, search *s)
{
    at_error error = {0};
    if (run(queue, s, 0, s->count, &error) || error.code == AT_INTERRUPTED)
        return;
    for (int64_t i = 0; i < s->count; i++) {
        at_job *job = s->job[i];
        at_error alone = {0};
        if (!job->answer[s->index[i] * job->best].text && job->error.code == AT_OK && !run(queue, s, i, 1, &alone) &&
            alone.code != AT_INTERRUPTED && job->error.code == AT_OK)
            job->error = alone;
    }
}

/* ---- The queue -------------------------------------------------------------------------------------------------- */

/* Takes jobs that are done, failed or late from the queue, and those of the last search that are not behind all others.
 * Returns those that are finished. Needs the lock. */
static at_job *settle(at_queue *queue, double now)
{
    at_job *done = NULL, **done_end = &done, *kept = NULL, **kept_end = &kept, *later = NULL, **later_end = &later;
    queue->lines = 0;
    for (at_job *job = queue->head, *next; job; job = next) {
        next = job->next;
        job->next = NULL;
        job->open = 0;
        for (int64_t i = next_open(job, job->from); i < job->lines; i = next_open(job, i + 1))
            job->open++;
        if (job->open > 0 && job->error.code != AT_OK)
            job->status = 500;
        else if (job->open > 0 && (queue->ending || now >= job->deadline))
            job->status = 503;
        at_job ***end = job->open < 1 || job->status ? &done_end : job->searched ? &later_end : &kept_end;
        job->searched = false;
        **end = job;
        *end = &job->next;
        if (end != &done_end)
            queue->lines += job->open;
    }
    *kept_end = later;
    queue->head = kept;
    queue->tail = kept;
    while (queue->tail && queue->tail->next)
        queue->tail = queue->tail->next;
    return done;
}

static void finish(at_job *done)
{
    for (at_job *job = done, *next; job; job = next) {
        next = job->next;
        job->done(job);
    }
}

static void *search_always(void *context)
{
    at_queue *queue = context;
    search lines = {0}, *s = &lines;
    pthread_mutex_lock(&queue->lock);
    for (;;) {
        at_job *done = settle(queue, at_seconds());
        if (done) {
            pthread_mutex_unlock(&queue->lock);
            finish(done);
            pthread_mutex_lock(&queue->lock);
            continue;
        }
        if (!queue->head && queue->ending)
            break;
        if (!queue->head) {
            pthread_cond_wait(&queue->filled, &queue->lock);
            continue;
        }
        gather(queue, s);
        __atomic_store_n(&queue->stop, 0, __ATOMIC_RELAXED);
        queue->search_limit = s->job[0]->deadline;
        for (int64_t i = 1; i < s->count; i++)
            if (s->job[i]->deadline < queue->search_limit)
                queue->search_limit = s->job[i]->deadline;
        pthread_mutex_unlock(&queue->lock);
        run_all(queue, s);
        pthread_mutex_lock(&queue->lock);
        queue->search_limit = 0;
        queue->searches++;
        queue->searched += s->count;
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

void at_queue_init(at_queue *queue)
{
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->filled, NULL);
}

bool at_queue_start(at_queue *queue, const at_server_settings *settings, at_error *error)
{
    queue->beam = settings->beam;
    queue->length_penalty = settings->length_penalty;
    queue->most_lines = settings->max_queue;
    queue->max_source = settings->max_source;
    const int reason = pthread_create(&queue->thread, NULL, search_always, queue);
    queue->started = reason == 0;
    return queue->started || at_fail(error, AT_FAILED, "cannot start a thread: %s", strerror(reason));
}

bool at_queue_add(at_queue *queue, at_job *job, void (*before)(void *context), void *context)
{
    pthread_mutex_lock(&queue->lock);
    const bool fits = !queue->ending && job->open <= queue->most_lines - queue->lines;
    if (fits) {
        if (before)
            before(context);
        job->next = NULL;
        if (queue->tail)
            queue->tail->next = job;
        else
            queue->head = job;
        queue->tail = job;
        queue->lines += job->open;
        pthread_cond_signal(&queue->filled);
    }
    pthread_mutex_unlock(&queue->lock);
    return fits;
}

void at_queue_watch(at_queue *queue, double now)
{
    pthread_mutex_lock(&queue->lock);
    if (queue->search_limit > 0 && now >= queue->search_limit)
        __atomic_store_n(&queue->stop, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&queue->lock);
}

void at_queue_end(at_queue *queue)
{
    if (!queue->started)
        return;
    pthread_mutex_lock(&queue->lock);
    queue->ending = true;
    __atomic_store_n(&queue->stop, 1, __ATOMIC_RELAXED);
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->thread, NULL);
    queue->started = false;
}

void at_queue_free(at_queue *queue)
{
    pthread_cond_destroy(&queue->filled);
    pthread_mutex_destroy(&queue->lock);
}
