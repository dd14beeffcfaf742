/* Results as bytes. Structs are copied as they are, and their pointers only say what follows: both ends run the same build. */
#include "search/records_internal.h"

#include <string.h>

#include "base/error.h"

typedef struct record {
    enum { RESULT, LONG, TERM } kind;
    bool forbidden; /* TERM */
    int64_t line;
    int64_t units, read; /* LONG */
    size_t size;         /* TERM */
} record;

enum { STEP = 8 }; /* every piece begins at a multiple of it */

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static void put(at_buffer *buffer, const void *bytes, size_t size)
{
    static const char zeros[STEP];
    at_buffer_add(buffer, bytes, size);
    at_buffer_add(buffer, zeros, (STEP - size % STEP) % STEP);
}

static void put_if(at_buffer *buffer, const void *bytes, int64_t count, size_t size)
{
    if (bytes)
        put(buffer, bytes, (size_t)count * size);
}

static void put_names(at_buffer *buffer, const char *const *names, int64_t count)
{
    for (int64_t i = 0; names && i < count; i++)
        put(buffer, names[i], strlen(names[i]) + 1);
}

static void put_hypothesis(at_buffer *buffer, const at_hypothesis *h)
{
    put(buffer, h->text, h->size + 1); /* with the NUL after it */
    put_if(buffer, h->ids, h->count, sizeof *h->ids);
    put_if(buffer, h->links, h->count + 1, sizeof *h->links);
    put_if(buffer, h->weights, (h->count + 1) * h->source_units, sizeof *h->weights);
    put_names(buffer, h->names, h->count + 1);
}

bool at_records_result(void *context, int64_t line, const at_result *result)
{
    at_records *records = context;
    at_buffer *buffer = &records->bytes;
    at_result r = *result;
    if (!records->has_targets) /* other offsets are those of a start, which the hypotheses go beyond */
        r.target_offsets = NULL;
    put(buffer, &(record){.kind = RESULT, .line = line}, sizeof(record));
    put(buffer, &r, sizeof r);
    put(buffer, r.best, (size_t)r.count * sizeof *r.best);
    put_if(buffer, r.source_offsets, 2 * r.source_units, sizeof *r.source_offsets);
    put_if(buffer, r.target_offsets, 2 * r.best[0].count, sizeof *r.target_offsets);
    put_if(buffer, r.features, r.source_units * r.feature_size, sizeof *r.features);
    put_names(buffer, r.source_names, r.source_units);
    for (int64_t i = 0; i < r.count; i++)
        put_hypothesis(buffer, &r.best[i]);
    return !buffer->failed || at_no_memory(records->error, "the result of line %lld", (long long)line + 1);
}

void at_records_long(void *context, int64_t line, int64_t units, int64_t read)
{
    at_records *records = context;
    put(&records->bytes, &(record){.kind = LONG, .line = line, .units = units, .read = read}, sizeof(record));
}

void at_records_term(void *context, int64_t line, at_line term, bool forbidden)
{
    at_records *records = context;
    put(&records->bytes, &(record){.kind = TERM, .line = line, .size = term.size, .forbidden = forbidden},
        sizeof(record));
    put(&records->bytes, term.text, term.size);
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

typedef struct cursor {
    const char *at;
    at_arena *arena;
    bool failed; /* out of memory */
} cursor;

static const void *take(cursor *c, size_t size)
{
    const void *piece = c->at;
    c->at += (size + STEP - 1) / STEP * STEP;
    return piece;
}

static const void *take_if(cursor *c, const void *wanted, int64_t count, size_t size)
{
    return wanted ? take(c, (size_t)count * size) : NULL;
}

static const char *const *take_names(cursor *c, const void *wanted, int64_t count)
{
    const char **names = wanted ? at_arena_take(c->arena, (size_t)(count + 1) * sizeof *names) : NULL;
    c->failed |= wanted && !names;
    for (int64_t i = 0; names && i < count; i++)
        names[i] = take(c, strlen(c->at) + 1);
    return names;
}

static void take_hypothesis(cursor *c, at_hypothesis *h)
{
    h->text = take(c, h->size + 1);
    h->ids = take_if(c, h->ids, h->count, sizeof *h->ids);
    h->links = take_if(c, h->links, h->count + 1, sizeof *h->links);
    h->weights = take_if(c, h->weights, (h->count + 1) * h->source_units, sizeof *h->weights);
    h->names = take_names(c, h->names, h->count + 1);
}

static bool take_result(cursor *c, at_result *r)
{
    memcpy(r, take(c, sizeof *r), sizeof *r);
    at_hypothesis *best = at_arena_take(c->arena, (size_t)r->count * sizeof *best);
    if (!best)
        return false;
    memcpy(best, take(c, (size_t)r->count * sizeof *best), (size_t)r->count * sizeof *best);
    r->best = best;
    r->source_offsets = take_if(c, r->source_offsets, 2 * r->source_units, sizeof *r->source_offsets);
    r->target_offsets = take_if(c, r->target_offsets, 2 * best[0].count, sizeof *r->target_offsets);
    r->features = take_if(c, r->features, r->source_units * r->feature_size, sizeof *r->features);
    r->source_names = take_names(c, r->source_names, r->source_units);
    for (int64_t i = 0; i < r->count && !c->failed; i++)
        take_hypothesis(c, &best[i]);
    return !c->failed;
}

bool at_records_deliver(const char *bytes, size_t size, const at_search_job *job, at_arena *arena, at_error *error)
{
    cursor c = {bytes, arena, false};
    while (c.at < bytes + size) {
        const record *head = take(&c, sizeof *head);
        at_result result;
        if (head->kind == LONG && job->settings->on_long) {
            job->settings->on_long(job->context, head->line, head->units, head->read);
        } else if (head->kind == TERM) {
            const at_line term = {take(&c, head->size), head->size};
            if (job->settings->on_term)
                job->settings->on_term(job->context, head->line, term, head->forbidden);
        } else if (head->kind == RESULT) {
            at_arena_reset(arena);
            if (!take_result(&c, &result))
                return at_no_memory(error, "the result of line %lld", (long long)head->line + 1);
            if (!job->on_result(job->context, head->line, &result))
                return at_fail(error, AT_INTERRUPTED, "stopped by the function that receives the results");
        }
    }
    return true;
}
