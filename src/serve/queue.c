/* Requests that wait, and the one thread that searches: it takes lines of all that ask for the same model and search, one
 * of each in turn, up to a batch, so that a long request does not hold up a short one. The lines have the same bits in any
 * company. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/grow.h"
#include "serve/serve_internal.h"

enum { BATCH = 64 };

double at_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- Jobs ------------------------------------------------------------------------------------------------------- */

/* The line of a part of HTML is decoded to where the part has its place in the second half of the copy. */
static bool add_part(at_job *job, at_line part, size_t half)
{
    if (part.size == 0)
        return true;
    if (!AT_GROW(job->line, job->room, (size_t)job->lines + 1) ||
        !AT_GROW(job->part, job->part_room, (size_t)job->lines + 1))
        return false;
    at_line line = part;
    if (job->html) {
        char *out = job->copy + half + (part.text - job->copy);
        line = (at_line){out, at_html_decode(part, out)};
    }
    job->part[job->lines] = part;
    job->line[job->lines++] = line;
    return true;
}

static bool add_line(at_job *job, at_line line, size_t half)
{
    at_splitter *splitter = job->served->pair[job->pair].splitter;
    at_line sentence;
    if (!splitter || line.size == 0)
        return add_part(job, line, half);
    bool good = at_splitter_begin(splitter, line);
    while (good && at_splitter_next(splitter, &sentence))
        good = add_part(job, sentence, half);
    return good;
}

/* A carriage return before a newline belongs to the line's end. */
static bool add_text(at_job *job, at_line text)
{
    const char *at = text.text, *const end = text.text + text.size;
    for (bool good = true; good;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const char *last = stop ? stop : end;
        good = add_line(job, (at_line){at, (size_t)(last - at) - (stop && last > at && last[-1] == '\r')}, 0);
        if (good && !stop)
            return true;
        at = last + 1;
    }
    return false;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

/* The text between two tags is a line. Newlines inside it are blanks; blanks around it stay as they are. */
static bool add_html(at_job *job, at_line text, size_t half)
{
    at_line node;
    bool good = true;
    for (size_t from = 0; good && at_html_next(text, &from, &node);) {
        while (node.size > 0 && is_blank(*node.text))
            node = (at_line){node.text + 1, node.size - 1};
        while (node.size > 0 && is_blank(node.text[node.size - 1]))
            node.size--;
        for (char *c = job->copy + (node.text - job->copy); c < node.text + node.size; c++)
            *c = is_blank(*c) ? ' ' : *c;
        good = add_line(job, node, half);
    }
    return good;
}

/* HTML is copied, twice: the first is changed, the second has room for the lines. */
static bool copy_texts(at_job *job, size_t *half)
{
    size_t size = 0;
    for (int64_t i = 0; i < job->texts; i++)
        size += job->text[i].size;
    char *to = job->copy = malloc(2 * size + 1);
    for (int64_t i = 0; job->copy && i < job->texts; i++) {
        memcpy(to, job->text[i].text, job->text[i].size);
        job->text[i].text = to;
        to += job->text[i].size;
    }
    *half = size;
    return job->copy;
}

at_job *at_job_new(at_served *served, int pair, const at_line *texts, int64_t count, int64_t best, bool html)
{
    at_job *job = calloc(1, sizeof *job);
    size_t half = 0;
    if (!job)
        return NULL;
    *job = (at_job){.served = at_served_hold(served), .pair = pair, .best = best, .texts = count, .html = html};
    job->text = calloc((size_t)count, sizeof *job->text);
    job->first = calloc((size_t)count + 1, sizeof *job->first);
    bool good = job->text && job->first;
    for (int64_t i = 0; good && i < count; i++)
        job->text[i] = texts[i];
    good = good && (!html || copy_texts(job, &half));
    for (int64_t i = 0; good && i < count; i++) {
        good = html ? add_html(job, job->text[i], half) : add_text(job, job->text[i]);
        job->first[i + 1] = job->lines;
    }
    job->open = job->lines;
    if (good && (job->answer = calloc((size_t)(job->lines * best) + 1, sizeof *job->answer)))
        return job;
    at_job_free(job);
    return NULL;
}

void at_job_free(at_job *job)
{
    if (!job)
        return;
    for (int64_t i = 0; job->answer && i < job->lines * job->best; i++)
        free(job->answer[i]);
    free(job->answer);
    free(job->line);
    free(job->part);
    free(job->copy);
    free(job->text);
    free(job->first);
    at_served_release(job->served);
    free(job);
}

/* What stands between the lines is kept: their ends, and the blanks between sentences. */
void at_job_text(const at_job *job, int64_t text, int64_t rank, at_buffer *out)
{
    const char *at = job->text[text].text, *const end = at + job->text[text].size;
    for (int64_t i = job->first[text]; i < job->first[text + 1]; i++) {
        char *const *answer = job->answer + i * job->best;
        const char *line = answer[rank] ? answer[rank] : answer[0]; /* the line has fewer hypotheses */
        at_buffer_add(out, at, (size_t)(job->part[i].text - at));
        if (job->html)
            at_html_encode(line, out);
        else
            at_buffer_add(out, line, strlen(line));
        at = job->part[i].text + job->part[i].size;
    }
    at_buffer_add(out, at, (size_t)(end - at));
}

/* ---- One search ------------------------------------------------------------------------------------------------- */

typedef struct search {
    at_job *job[BATCH]; /* of each line */
    int64_t index[BATCH];
    at_line line[BATCH];
    int64_t count;
} search;

static bool same_search(const at_job *a, const at_job *b)
{
    return a->served == b->served && a->pair == b->pair && a->best == b->best;
}

/* The next line from `from` on that is not answered; the number of lines if there is none. */
static int64_t next_open(const at_job *job, int64_t from)
{
    while (from < job->lines && job->answer[from * job->best])
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
            s->index[s->count] = at[i];
            s->line[s->count++] = fitting[i]->line[at[i]];
            at[i] = next_open(fitting[i], at[i] + 1);
            found = true;
        }
    }
}

static bool on_result(void *context, int64_t line, const at_result *result)
{
    const search *s = context;
    at_job *job = s->job[line];
    char **answer = job->answer + s->index[line] * job->best;
    for (int64_t i = result->count - 1; i >= 0; i--) /* the first last: it marks the line as answered */
        if (!(answer[i] = strndup(result->best[i].text, result->best[i].size)))
            return at_no_memory(&job->error, "a translation");
    return true;
}

static bool run(at_queue *queue, search *s, int64_t from, int64_t count, at_error *error)
{
    const at_job *first = s->job[from];
    at_translator *translator = first->served->pair[first->pair].translator;
    const at_search_settings settings = {.beam = first->best > queue->beam ? first->best : queue->beam,
                                         .n_best = first->best,
                                         .length_penalty = queue->length_penalty,
                                         .first_line = from,
                                         .max_source = at_translator_most_units(translator),
                                         .stop = &queue->stop};
    return at_translate(translator, &settings, s->line + from, count, on_result, s, error);
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
        if (!job->answer[s->index[i] * job->best] && job->error.code == AT_OK && !run(queue, s, i, 1, &alone) &&
            alone.code != AT_INTERRUPTED && job->error.code == AT_OK)
            job->error = alone;
    }
}

/* ---- The queue -------------------------------------------------------------------------------------------------- */

/* Takes jobs that are done, failed or late from the queue, and those of the last search that are not behind all others.
 * Returns those that are finished. Needs the lock. */
static at_job *settle(at_queue *queue, const search *last, double now)
{
    at_job *done = NULL, **done_end = &done, *kept = NULL, **kept_end = &kept, *later = NULL, **later_end = &later;
    queue->lines = 0;
    for (at_job *job = queue->head, *next; job; job = next) {
        next = job->next;
        job->next = NULL;
        job->open = 0;
        bool searched = false;
        for (int64_t i = next_open(job, job->from); i < job->lines; i = next_open(job, i + 1))
            job->open++;
        for (int64_t i = 0; i < last->count; i++)
            searched |= last->job[i] == job;
        if (job->open > 0 && job->error.code != AT_OK)
            job->status = 500;
        else if (job->open > 0 && (queue->ending || now >= job->deadline))
            job->status = 503;
        at_job ***end = job->open < 1 || job->status ? &done_end : searched ? &later_end : &kept_end;
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
        at_job *done = settle(queue, s, at_seconds());
        s->count = 0;
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
