#include "base/grow.h"
#include "text/pairs_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void note(int64_t *count, int64_t *first, int64_t line)
{
    if (++*count == 1)
        *first = line;
}

static bool no_memory(at_error *error)
{
    return at_no_memory(error, "a corpus");
}

/* Whether one side has more than `ratio` times the units of the other, before any line is cut. */
static bool over_ratio(const int64_t units[2], double ratio)
{
    return (double)units[0] > ratio * (double)units[1] || (double)units[1] > ratio * (double)units[0];
}

/* Memory for the ids of the next line, after those of the lines before. */
static bool reserve(void *context, int64_t count, int32_t **ids, int32_t **offsets)
{
    at_pairs_side *side = context;
    (void)offsets;
    if (!AT_GROW(side->ids, side->room, side->used + (size_t)count))
        return false;
    *ids = side->ids + side->used;
    return true;
}

static bool is_ascii(at_line line)
{
    unsigned char all = 0;
    for (size_t i = 0; i < line.size; i++)
        all |= (unsigned char)line.text[i];
    return all < 0x80;
}

/* What lines are encoded by. */
typedef struct encoders {
    const at_vocabulary *vocabulary[2];
    const at_source_reader *reader; /* of the source; NULL: its vocabulary */
} encoders;

/* The units of a source that is not text; -1 with an error. */
static int64_t read_source(at_corpus *corpus, const at_lines *lines, int64_t index, const at_source_reader *reader,
                           at_error *error)
{
    int32_t id, *ids;
    int64_t there;
    at_error why = {0};
    const at_line line = lines->side[0][index];
    const int64_t count = line.size > 0 ? reader->read(reader->context, line, &id, &why) : 0;
    const char *file = at_lines_place(lines, index + 1, &there);
    if (count < 0) {
        at_fail(error, why.code, "line %lld%s%s%s: %s", (long long)there, file ? " of '" : "", file ? file : "",
                file ? "'" : "", why.text);
        return -1;
    }
    if (!reserve(&corpus->side[0], count, &ids, NULL)) {
        no_memory(error);
        return -1;
    }
    for (int64_t i = 0; i < count; i++)
        ids[i] = id;
    return count;
}

/* One pair of lines: encoded after the others and checked against the limits; raising `used` keeps it. */
static bool add_pair(at_corpus *corpus, const at_lines *lines, int64_t index, const encoders *by,
                     const at_corpus_limits *limits, at_corpus_report *report, at_error *error)
{
    int64_t units[2] = {0}, broken = 0, number = index + 1;
    bool ascii = true;
    const int first = !by->vocabulary[0] && !by->reader; /* 1: there is no source */
    if (by->reader && (units[0] = read_source(corpus, lines, index, by->reader, error)) < 0)
        return false;
    for (int s = by->reader ? 1 : first; s < 2; s++) {
        at_pairs_side *side = &corpus->side[s];
        int64_t replaced;
        const at_line line = lines->side[s][index];
        units[s] = at_vocabulary_encode_line(by->vocabulary[s], line, reserve, side, &replaced);
        if (units[s] < 0)
            return no_memory(error);
        broken += replaced;
        ascii = ascii && is_ascii(line);
    }
    report->beyond_ascii += !ascii;
    if (broken > 0)
        note(&report->replaced, &report->first_replaced, number);
    if (units[first] == 0 || units[1] == 0) {
        note(&report->empty, &report->first_empty, number);
        return true;
    }
    const int64_t most = limits->max_length;
    const bool is_long = most > 0 && ((units[0] > most && !by->reader) || units[1] > most);
    if (is_long)
        note(&report->too_long, &report->first_too_long, number);
    if (is_long && limits->rule == AT_TOO_LONG_SKIP)
        return true;
    if (first == 0 && !by->reader && limits->max_ratio > 0 && over_ratio(units, limits->max_ratio)) {
        note(&report->over_ratio, &report->first_over_ratio, number);
        return true;
    }
    for (int s = by->reader ? 1 : 0; s < 2; s++)
        if (is_long && limits->rule == AT_TOO_LONG_CUT && units[s] > most)
            units[s] =
                at_vocabulary_shorten(by->vocabulary[s], corpus->side[s].ids + corpus->side[s].used, units[s], most);
    for (int s = 0; s < 2; s++) {
        corpus->side[s].used += (size_t)units[s];
        corpus->side[s].start[corpus->count + 1] = (int64_t)corpus->side[s].used;
    }
    corpus->line[corpus->count++] = number;
    return true;
}

static bool none_left(const at_corpus_report *report, bool target_only, const at_corpus_limits *limits, at_error *error)
{
    char reason[3][120];
    int count = 0;
    if (report->empty > 0)
        snprintf(reason[count++], sizeof *reason, "%lld %s (first line %lld)", (long long)report->empty,
                 target_only ? "are empty" : "have an empty side", (long long)report->first_empty);
    if (report->too_long > 0)
        snprintf(reason[count++], sizeof *reason, "%lld are longer than %lld units (first line %lld)",
                 (long long)report->too_long, (long long)limits->max_length, (long long)report->first_too_long);
    if (report->over_ratio > 0)
        snprintf(reason[count++], sizeof *reason,
                 "%lld have a side more than %g times as long as the other (first line %lld)",
                 (long long)report->over_ratio, limits->max_ratio, (long long)report->first_over_ratio);
    return at_fail(error, AT_FORMAT, "no %s is left: of %lld, %s%s%s%s%s", target_only ? "line" : "pair of lines",
                   (long long)report->lines, reason[0],
                   count > 2   ? ", "
                   : count > 1 ? " and "
                               : "",
                   count > 1 ? reason[1] : "", count > 2 ? " and " : "", count > 2 ? reason[2] : "");
}

static bool fill(at_corpus *corpus, const at_lines *lines, const encoders *by, const at_corpus_limits *limits,
                 at_corpus_report *report, at_error *error)
{
    int64_t count = lines->count;
    if (count >= INT32_MAX)
        return at_fail(error, AT_UNSUPPORTED, "a corpus holds at most %d lines, not %lld", INT32_MAX - 1,
                       (long long)count);
    for (int s = 0; s < 2; s++)
        corpus->side[s].start = calloc((size_t)count + 1, sizeof *corpus->side[s].start);
    corpus->line = malloc((size_t)(count + 1) * sizeof *corpus->line);
    if (!corpus->side[0].start || !corpus->side[1].start || !corpus->line)
        return no_memory(error);
    for (int64_t i = 0; i < count; i++)
        if (!add_pair(corpus, lines, i, by, limits, report, error))
            return false;
    report->lines = count;
    report->kept = corpus->count;
    return corpus->count > 0 || none_left(report, !by->vocabulary[0] && !by->reader, limits, error);
}

at_corpus *at_corpus_new(const at_lines *lines, const at_vocabulary *source, const at_vocabulary *target,
                         const at_source_reader *reader, const at_corpus_limits *limits, at_corpus_report *report,
                         at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    const encoders by = {{source, target}, reader};
    *report = (at_corpus_report){0};
    at_corpus *corpus = calloc(1, sizeof *corpus);
    if (!corpus)
        no_memory(error);
    else if (fill(corpus, lines, &by, limits, report, error))
        return corpus;
    at_corpus_free(corpus);
    return NULL;
}

void at_corpus_free(at_corpus *corpus)
{
    if (!corpus)
        return;
    for (int s = 0; s < 2; s++) {
        free(corpus->side[s].ids);
        free(corpus->side[s].start);
    }
    free(corpus->line);
    free(corpus);
}

int64_t at_corpus_up_to(const at_corpus *corpus, int64_t line)
{
    int64_t count = 0;
    while (count < corpus->count && corpus->line[count] <= line)
        count++;
    return count;
}

int64_t at_corpus_count(const at_corpus *corpus)
{
    return corpus->count;
}

/* q_v = (1 - s) n_v / N + s / V, H = -sum q_v log q_v */
bool at_corpus_entropy(const at_corpus *corpus, int64_t vocabulary, double smoothing, double *entropy, at_error *error)
{
    const at_pairs_side *targets = &corpus->side[1];
    const int64_t ids = targets->start[corpus->count], total = ids + corpus->count;
    int64_t *times = calloc((size_t)vocabulary + 1, sizeof *times);
    if (!times)
        return at_no_memory(error, "the counts of %lld units", (long long)vocabulary);
    for (int64_t i = 0; i < ids; i++)
        times[targets->ids[i]]++;
    times[AT_END] += corpus->count;
    *entropy = 0;
    for (int64_t v = 0; v < vocabulary; v++) {
        const double q = (1 - smoothing) * (double)times[v] / (double)total + smoothing / (double)vocabulary;
        *entropy -= q > 0 ? q * log(q) : 0;
    }
    free(times);
    return true;
}

int64_t at_corpus_units(const at_corpus *corpus, int side, int64_t *unknown)
{
    const at_pairs_side *units = &corpus->side[side];
    *unknown = 0;
    for (size_t i = 0; i < units->used; i++)
        *unknown += units->ids[i] == AT_UNKNOWN;
    return (int64_t)units->used;
}
