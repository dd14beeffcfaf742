/* A job of several processes (doc/cluster.md), block by block: rank 0 takes the next lines and gives each rank some that follow
 * each other; each searches its own; rank 0 delivers its results as they come, and then those that the others send back. A
 * line's result depends on the line and its number only, so all of it is what one process would deliver. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/group.h"
#include "base/grow.h"
#include "base/hash.h"
#include "kernels/rows.h"
#include "search/records_internal.h"
#include "search/search_internal.h"
#include "text/glossary.h"

void at_translator_share(at_translator *translator, at_group *group)
{
    translator->group = group;
}

/* ---- Do all ranks search the same way? --------------------------------------------------------------------------- */

typedef struct trait {
    char name[32], value[64]; /* `beam`, 5 */
} trait;
enum { MOST_TRAITS = 32 };

static void add_trait(trait *traits, int *count, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void add_trait(trait *traits, int *count, const char *name, const char *format, ...)
{
    va_list values;
    trait *t = &traits[(*count)++];
    snprintf(t->name, sizeof t->name, "%s", name);
    va_start(values, format);
    vsnprintf(t->value, sizeof t->value, format, values);
    va_end(values);
}

static uint64_t glossary_hash(const at_glossary *glossary)
{
    uint64_t hash = AT_HASH_START;
    for (int64_t i = 0; glossary && i < at_glossary_count(glossary); i++) {
        const at_term *term = at_glossary_term(glossary, i);
        hash = at_hash_mix(hash ^ at_hash_quick(term->source.text, term->source.size));
        hash = at_hash_mix(hash ^ at_hash_quick(term->target.text, term->target.size) ^ term->forbidden);
    }
    return hash;
}

/* All that decides a result, by the names of the options. The size of a batch does not. */
static int describe(const at_search_job *job, trait traits[MOST_TRAITS], at_error *error)
{
    const at_search_settings *s = job->settings;
    uint64_t model = 0;
    int n = 0;
    if (!at_translator_fingerprint(job->translator, &model, error))
        return 0;
    add_trait(traits, &n, "model", "%016" PRIx64, model);
    add_trait(traits, &n, "beam", "%lld", (long long)s->beam);
    add_trait(traits, &n, "n-best", "%lld", (long long)s->n_best);
    add_trait(traits, &n, "length-penalty", "%.17g", s->length_penalty);
    add_trait(traits, &n, "normalize", "%.17g", s->normalise);
    add_trait(traits, &n, "coverage-penalty", "%.17g", s->coverage_penalty);
    add_trait(traits, &n, "no-repeat-ngram", "%lld", (long long)s->no_repeat);
    add_trait(traits, &n, "sample", "%.17g", s->temperature);
    add_trait(traits, &n, "top-k", "%lld", (long long)s->top_k);
    add_trait(traits, &n, "top-p", "%.17g", s->top_p);
    add_trait(traits, &n, "seed", "%llu", (unsigned long long)s->seed);
    add_trait(traits, &n, "max-length-factor", "%.17g", s->max_length_factor);
    add_trait(traits, &n, "min-length-factor", "%.17g", s->min_length_factor);
    add_trait(traits, &n, "max-length", "%lld", (long long)s->max_length);
    add_trait(traits, &n, "max-source", "%lld", (long long)s->max_source);
    add_trait(traits, &n, "head", "%d.%d", s->layer, s->head);
    add_trait(traits, &n, "align-shift", "%d", s->align_shift);
    add_trait(traits, &n, "prefix", "%d", s->prefix);
    add_trait(traits, &n, "alternatives", "%d", job->branches);
    add_trait(traits, &n, "split", "%s", s->split ? s->split : "no");
    add_trait(traits, &n, "placeholders", "%d", s->placeholders);
    add_trait(traits, &n, "replace-unknown", "%d", s->replace_unknown);
    add_trait(traits, &n, "alignment", "%d%d", s->wants_weights, s->wants_links);
    add_trait(traits, &n, "glossary", "%016" PRIx64, glossary_hash(s->glossary));
    return n;
}

static bool compare(const at_search_job *job, at_group *group, at_error *error)
{
    trait own[MOST_TRAITS] = {0}, first[MOST_TRAITS];
    at_group_same_build(group, at_kernels_numbers(), error);
    const int count = error->code == AT_OK ? describe(job, own, error) : 0;
    if (!at_group_agree(group, error))
        return false;
    memcpy(first, own, sizeof first);
    at_group_tell(group, first, sizeof first, error);
    for (int i = 0; i < count && error->code == AT_OK; i++)
        if (strcmp(own[i].value, first[i].value) != 0)
            at_fail(error, AT_USAGE,
                    "rank 0 works with `%s` %s, and this rank with %s; all ranks need the same model and options",
                    own[i].name, first[i].value, own[i].value);
    return at_group_agree(group, error);
}

/* ---- Lines as bytes ---------------------------------------------------------------------------------------------- */

/* Before each line, or pair of lines. */
typedef struct sizes {
    uint64_t source, target;
} sizes;

/* What rank 0 says before a block. After it come, for each rank, its lines and their bytes. */
typedef struct header {
    int64_t first; /* the number of the block's first line */
    bool ended;    /* there is no block any more */
    at_error error;
} header;

typedef struct part {
    int64_t lines;
    size_t bytes;
} part;

typedef struct shared {
    const at_search_job *job;
    at_search_runner *run;
    at_group *group;
    int size, rank;
    bool forced; /* lines have their targets */
    at_error *error;
    header *header;    /* with the parts after it */
    part *part;        /* [size] */
    at_part *messages; /* [2 * size] of both directions */
    size_t *begin;     /* [size + 1] */
    size_t *answers;   /* [size] bytes of the ranks' results */
    at_buffer text;    /* rank 0: the lines of the block; others: of their part */
    size_t *place;     /* [count + 1] where they begin */
    size_t places;
    at_line *source, *target; /* [lines] of this rank's part */
    size_t source_room, target_room;
    at_records records; /* of a rank that is not 0; of rank 0, the bytes of another rank's */
    at_arena *arena;
    int64_t next, count; /* rank 0: the next line of the job, and how many are in the block */
} shared;

static bool no_memory(shared *s)
{
    return at_no_memory(s->error, "the lines of a block");
}

static bool add_line(shared *s, at_line source, at_line target)
{
    const sizes head = {source.size, target.size};
    if (!AT_GROW(s->place, s->places, (size_t)s->count + 2))
        return no_memory(s);
    at_buffer_add(&s->text, &head, sizeof head);
    at_buffer_add(&s->text, source.text, source.size);
    at_buffer_add(&s->text, target.text, target.size);
    s->place[++s->count] = s->text.size;
    return !s->text.failed || no_memory(s);
}

/* The next lines of the job, as many as there are without waiting, one at least; none at its end. */
static bool collect(shared *s)
{
    const at_search_job *job = s->job;
    const int64_t most = AT_WINDOW_BATCHES * job->settings->batch * s->size;
    const size_t most_bytes = (s->run == at_encode_lines ? AT_FEATURE_WINDOW : AT_TEXT_WINDOW) * (size_t)s->size;
    bool ended = false;
    at_buffer_cut(&s->text, 0);
    s->next += s->count;
    s->count = 0;
    if (!AT_GROW(s->place, s->places, 1))
        return no_memory(s);
    s->place[0] = 0;
    while (s->count < most && s->text.size < most_bytes && !ended) {
        const int64_t at = s->next + s->count;
        at_line line = {0}, target = {0};
        at_stream next = at < job->count ? AT_STREAM_LINE : AT_STREAM_END;
        if (job->next_line) {
            next = job->next_line(job->context, &line, s->error);
        } else if (next == AT_STREAM_LINE) {
            line = job->lines ? job->lines[at] : line;
            target = job->targets ? job->targets[at] : target;
        }
        if (s->error->code != AT_OK)
            return false;
        if (next == AT_STREAM_WAIT && s->count > 0)
            break;
        ended = next == AT_STREAM_END;
        if (next == AT_STREAM_LINE && !add_line(s, line, target))
            return false;
    }
    return true;
}

/* Cuts the block into parts of about the same size: a line costs its bytes, and a few more. */
static void divide(shared *s)
{
    enum { LINE = 32 };
    const size_t all = s->place[s->count] + LINE * (size_t)s->count;
    int64_t from = 0;
    for (int r = 0; r < s->size; r++) {
        int64_t to = from;
        while (to < s->count &&
               (r == s->size - 1 || s->place[to] + LINE * (size_t)to < all / (size_t)s->size * (size_t)(r + 1)))
            to++;
        s->part[r] = (part){to - from, s->place[to] - s->place[from]};
        from = to;
    }
}

/* The lines of this rank's part, which point into its bytes. */
static bool read_part(shared *s)
{
    const int64_t lines = s->part[s->rank].lines;
    const char *at = s->text.bytes;
    if (!AT_GROW(s->source, s->source_room, (size_t)lines + 1) ||
        !AT_GROW(s->target, s->target_room, (size_t)lines + 1))
        return no_memory(s);
    for (int64_t i = 0; i < lines; i++) {
        sizes head;
        memcpy(&head, at, sizeof head);
        at += sizeof head;
        s->source[i] = (at_line){at, head.source};
        s->target[i] = (at_line){at + head.source, head.target};
        at += head.source + head.target;
    }
    return true;
}

/* ---- A block ----------------------------------------------------------------------------------------------------- */

/* Room for `size` bytes in a buffer, whose contents do not matter. */
static char *make_room(shared *s, at_buffer *buffer, size_t size)
{
    at_buffer_cut(buffer, 0);
    if (!buffer->failed && !AT_GROW(buffer->bytes, buffer->room, size + 1))
        no_memory(s);
    return buffer->bytes;
}

static void no_messages(shared *s)
{
    memset(s->messages, 0, 2 * (size_t)s->size * sizeof *s->messages);
}

/* Every rank gets its part of the block. */
static bool scatter(shared *s)
{
    no_messages(s);
    if (s->rank > 0 && make_room(s, &s->text, s->part[s->rank].bytes))
        s->messages[s->size] = (at_part){s->text.bytes, s->part[s->rank].bytes};
    if (!at_group_agree(s->group, s->error))
        return false;
    size_t at = 0;
    for (int r = 0; r < s->size && s->rank == 0; at += s->part[r++].bytes)
        s->messages[r] = (at_part){s->text.bytes + at, s->part[r].bytes};
    return at_group_exchange(s->group, s->messages, s->messages + s->size, s->error);
}

/* Searches this rank's part: rank 0 delivers at once, the others write down what they find. */
static bool search_part(shared *s)
{
    at_search_settings settings = *s->job->settings;
    at_search_job job = *s->job;
    int64_t before = 0;
    if (!read_part(s))
        return false;
    for (int r = 0; r < s->rank; r++)
        before += s->part[r].lines;
    settings.first_line = s->header->first + before;
    job.settings = &settings;
    job.next_line = NULL;
    job.lines = s->forced && !job.translator->model->kind->has_source ? NULL : s->source;
    job.targets = s->forced ? s->target : NULL;
    job.count = s->part[s->rank].lines;
    if (s->rank > 0) {
        at_buffer_cut(&s->records.bytes, 0);
        settings.on_long = at_records_long;
        settings.on_term = at_records_term;
        job.on_result = at_records_result;
        job.context = &s->records;
    }
    return job.count == 0 || s->run(&job, s->error);
}

/* Rank 0 gets and delivers the results of the others, rank by rank, so that it holds those of one at a time. */
static bool deliver(shared *s)
{
    size_t most = 0;
    for (int r = 0; r <= s->size; r++)
        s->begin[r] = (size_t)r * sizeof *s->answers;
    s->answers[s->rank] = s->rank > 0 ? s->records.bytes.size : 0;
    if (!at_group_gather(s->group, s->answers, s->begin, s->error))
        return false;
    for (int r = 0; r < s->size; r++)
        most = s->answers[r] > most ? s->answers[r] : most;
    if (s->rank == 0)
        make_room(s, &s->records.bytes, most);
    if (!at_group_agree(s->group, s->error))
        return false;
    at_error delivered = {0}; /* is told with the next block: the others are still to send theirs */
    for (int r = 1; r < s->size; r++) {
        no_messages(s);
        if (s->rank == r)
            s->messages[0] = (at_part){s->records.bytes.bytes, s->answers[r]};
        else if (s->rank == 0)
            s->messages[s->size + r] = (at_part){s->records.bytes.bytes, s->answers[r]};
        if (!at_group_exchange(s->group, s->messages, s->messages + s->size, s->error))
            return false;
        if (s->rank == 0 && delivered.code == AT_OK)
            at_records_deliver(s->records.bytes.bytes, s->answers[r], s->job, s->arena, &delivered);
    }
    if (s->error->code == AT_OK)
        *s->error = delivered;
    return true;
}

/* Whether there was a block, and all went well. */
static bool next_block(shared *s)
{
    header *h = s->header;
    if (s->rank == 0) {
        const bool good = s->error->code == AT_OK && collect(s);
        *h = (header){.first = s->job->settings->first_line + s->next, .error = *s->error};
        h->ended = !good || s->count == 0;
        if (!h->ended)
            divide(s);
    }
    at_error told = {0};
    if (!at_group_tell(s->group, h, sizeof *h + (size_t)s->size * sizeof *s->part, &told)) {
        if (s->error->code == AT_OK)
            *s->error = told;
        return false;
    }
    if (h->ended) {
        *s->error = h->error;
        return false;
    }
    if (!scatter(s))
        return false;
    search_part(s);
    return at_group_agree(s->group, s->error) && deliver(s);
}

/* Whether the settings fit the model: a search of no lines. */
static bool try_settings(const shared *s)
{
    at_search_job none = *s->job;
    none.next_line = NULL;
    none.count = 0;
    return s->error->code == AT_OK && s->run(&none, s->error);
}

static bool open_shared(shared *s)
{
    s->header = calloc(1, sizeof *s->header + (size_t)s->size * sizeof *s->part);
    s->part = s->header ? (part *)(s->header + 1) : NULL;
    s->messages = calloc(2 * (size_t)s->size, sizeof *s->messages);
    s->begin = calloc((size_t)s->size + 1, sizeof *s->begin);
    s->answers = calloc((size_t)s->size, sizeof *s->answers);
    s->arena = at_arena_new();
    return (s->header && s->messages && s->begin && s->answers && s->arena) || no_memory(s);
}

static void close_shared(shared *s)
{
    free(s->header);
    free(s->messages);
    free(s->begin);
    free(s->answers);
    free(s->place);
    free(s->source);
    free(s->target);
    at_arena_free(s->arena);
    at_buffer_free(&s->text);
    at_buffer_free(&s->records.bytes);
}

bool at_search_shared(const at_search_job *job, at_search_runner *run, at_error *error)
{
    at_group *group = job->translator->group;
    if (!group)
        return error->code == AT_OK && run(job, error);
    shared s = {.job = job,
                .run = run,
                .group = group,
                .size = at_group_size(group),
                .rank = at_group_rank(group),
                .forced = run == at_forced,
                .error = error,
                .records = {.has_targets = run == at_forced, .error = error}};
    if (open_shared(&s))
        try_settings(&s);
    if (at_group_agree(group, error) && compare(job, group, error))
        while (next_block(&s))
            ;
    close_shared(&s);
    return error->code == AT_OK;
}
