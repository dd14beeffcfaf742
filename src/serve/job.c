/* The lines of a request: what of its texts is translated, and the texts again with what stood between the lines. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/grow.h"
#include "serve/serve_internal.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static void free_marks(at_marks *marks)
{
    free(marks->base);
    free(marks->tag);
    free(marks->text);
}

/* ---- Text ------------------------------------------------------------------------------------------------------- */

/* `part` is where the line stands in its text. Takes over the tags. */
static bool add_part(at_job *job, at_line line, at_line part, at_tag *tags, int64_t count)
{
    if (!AT_GROW(job->line, job->room, (size_t)job->lines + 1) ||
        !AT_GROW(job->part, job->part_room, (size_t)job->lines + 1) ||
        !AT_GROW(job->marks, job->marks_room, (size_t)job->lines + 1)) {
        free(tags);
        return false;
    }
    at_marks *marks = &job->marks[job->lines];
    if (!at_served_keeps(job->served, job->pair)) {
        *marks = (at_marks){.whole = line, .tag = tags, .count = count};
        job->line[job->lines] = line;
    } else {
        *marks = (at_marks){.whole = line, .base = tags, .base_count = count};
        if (!at_marks_keep(marks, false, &job->line[job->lines])) {
            free(tags);
            return false;
        }
    }
    job->part[job->lines++] = part;
    if (at_marks_are_all(marks, job->line[job->lines - 1]))
        free_marks(&job->marks[--job->lines]); /* it stays as it is */
    else
        job->aligns |= marks->count > 0;
    return true;
}

typedef bool add_sentence(at_job *job, at_line sentence, void *context);

/* Each sentence of a line, or the line, unless it is empty. */
static bool add_sentences(at_job *job, at_line line, add_sentence *add, void *context)
{
    at_splitter *splitter = job->served->pair[job->pair].splitter;
    at_line sentence;
    if (!splitter || line.size == 0)
        return line.size == 0 || add(job, line, context);
    bool good = at_splitter_begin(splitter, line);
    while (good && at_splitter_next(splitter, &sentence))
        good = sentence.size == 0 || add(job, sentence, context);
    return good;
}

static bool add_text_sentence(at_job *job, at_line sentence, void *context)
{
    (void)context;
    return add_part(job, sentence, sentence, NULL, 0);
}

/* A carriage return before a newline belongs to the line's end. */
static bool add_text(at_job *job, at_line text)
{
    const char *at = text.text, *const end = text.text + text.size;
    for (bool good = true; good;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const char *last = stop ? stop : end;
        const at_line line = {at, (size_t)(last - at) - (stop && last > at && last[-1] == '\r')};
        good = add_sentences(job, line, add_text_sentence, NULL);
        if (good && !stop)
            return true;
        at = last + 1;
    }
    return false;
}

/* ---- HTML ------------------------------------------------------------------------------------------------------- */

/* The text between two breaks: its texts after each other, with one kind of blank, and where each and the tags between
 * them stand in it. */
typedef struct passage {
    const at_piece *pieces; /* of the whole text */
    at_buffer text;
    struct run {
        size_t at; /* in `text` */
        at_line bytes;
    } * run;
    struct mark {
        size_t at;
        int64_t piece;
        bool before, after, added; /* as at_tag */
    } * mark;
    int64_t runs, marks, next; /* marks before `next` stand before the sentence that is added */
    size_t run_room, mark_room;
    char *copy;  /* of the HTML, */
    size_t half; /* and from there to the room for its lines */
} passage;

static bool add_run(passage *p, at_line bytes)
{
    if (!AT_GROW(p->run, p->run_room, (size_t)p->runs + 1))
        return false;
    p->run[p->runs++] = (struct run){p->text.size, bytes};
    at_buffer_add(&p->text, bytes.text, bytes.size);
    return !p->text.failed;
}

static bool ends_blank(const passage *p)
{
    return p->text.size > 0 && p->text.bytes[p->text.size - 1] == ' ';
}

static bool add_mark(passage *p, int64_t piece)
{
    if (!AT_GROW(p->mark, p->mark_room, (size_t)p->marks + 1))
        return false;
    p->mark[p->marks++] = (struct mark){.at = p->text.size, .piece = piece, .before = ends_blank(p)};
    return true;
}

/* Before a text that begins with a blank, or does not. Words on both sides of <br> are two words. */
static bool part_words(passage *p, bool blank)
{
    struct mark *last = p->marks > 0 && p->mark[p->marks - 1].at == p->text.size ? &p->mark[p->marks - 1] : NULL;
    for (struct mark *m = last; blank && m && m >= p->mark && m->at == p->text.size; m--)
        m->after = true;
    if (!last || p->text.size == 0 || ends_blank(p) || blank || p->pieces[last->piece].kind != AT_PIECE_VOID ||
        strncasecmp(p->pieces[last->piece].bytes.text, "<wbr", 4) == 0)
        return true;
    last->added = true;
    at_buffer_add(&p->text, " ", 1);
    return !p->text.failed;
}

/* The pieces from `from` to `to`; the blanks around the whole are left out. In the copy, those inside become ' '. */
static bool read_passage(passage *p, int64_t from, int64_t to)
{
    const at_piece *pieces = p->pieces;
    const char *first = NULL, *last = NULL;
    bool good = true;
    p->runs = p->marks = p->next = 0;
    p->text.size = 0;
    for (int64_t i = from; i < to; i++)
        for (size_t c = 0; pieces[i].kind == AT_PIECE_TEXT && c < pieces[i].bytes.size; c++)
            if (!is_blank(pieces[i].bytes.text[c])) {
                last = pieces[i].bytes.text + c;
                first = first ? first : last;
            }
    for (int64_t i = from; first && good && i < to; i++) {
        at_line bytes = pieces[i].bytes;
        if (pieces[i].kind != AT_PIECE_TEXT) {
            good = add_mark(p, i);
            continue;
        }
        const char *begin = bytes.text < first ? first : bytes.text, *end = bytes.text + bytes.size;
        end = end > last + 1 ? last + 1 : end;
        for (char *c = p->copy + (begin - p->copy); c < end; c++)
            *c = is_blank(*c) ? ' ' : *c;
        good = begin >= end || part_words(p, *begin == ' ');
        while (begin < end && *begin == ' ' && ends_blank(p))
            begin++;
        if (begin < end)
            good = good && add_run(p, (at_line){begin, (size_t)(end - begin)});
    }
    return good;
}

/* The run that holds byte `at` of the passage. */
static int64_t run_at(const passage *p, size_t at)
{
    int64_t low = 0, high = p->runs;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (p->run[middle].at <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static const char *origin(const passage *p, size_t at)
{
    const struct run *run = &p->run[run_at(p, at)];
    return run->bytes.text + (at - run->at);
}

/* The mark of a piece among those from `from` to `to`; -1: it is not there. */
static int64_t mark_of(const passage *p, int64_t from, int64_t to, int64_t piece)
{
    while (from < to) {
        const int64_t middle = (from + to) / 2;
        if (p->mark[middle].piece == piece)
            return middle;
        if (p->mark[middle].piece < piece)
            from = middle + 1;
        else
            to = middle;
    }
    return -1;
}

/* Tags that stand before, behind or around all of the sentence, and whose other one is not inside, are not part of it. The
 * marks of the sentence from byte `begin` to `end` are those from *from to *to. */
static void find_marks(passage *p, size_t begin, size_t end, int64_t *from, int64_t *to)
{
    const struct mark *mark = p->mark;
    int64_t first = p->next;
    while (first < p->marks &&
           (mark[first].at < begin || (mark[first].at == begin && p->pieces[mark[first].piece].kind != AT_PIECE_OPEN)))
        first++;
    int64_t last = first;
    while (last < p->marks &&
           (mark[last].at < end || (mark[last].at == end && p->pieces[mark[last].piece].kind == AT_PIECE_CLOSE)))
        last++;
    p->next = last;
    for (bool changed = true; changed && first < last;) {
        const at_piece *opens = &p->pieces[mark[first].piece], *closes = &p->pieces[mark[last - 1].piece];
        const bool begins = mark[first].at == begin && opens->kind == AT_PIECE_OPEN,
                   ends = mark[last - 1].at == end && closes->kind == AT_PIECE_CLOSE;
        const bool around = begins && ends && opens->match == mark[last - 1].piece;
        const bool leaves = begins && (around || opens->match < 0 || opens->match > mark[last - 1].piece);
        const bool enters = ends && (around || closes->match < mark[first].piece);
        first += leaves;
        last -= enters && first < last;
        changed = leaves || enters;
    }
    *from = first;
    *to = last;
}

/* The line is decoded to where its part has its place in the second half of the copy: it is never longer. */
static at_line decode_line(const passage *p, size_t begin, size_t end, at_line part, at_tag *tags, int64_t from,
                           int64_t to)
{
    char *const out = p->copy + p->half + (part.text - p->copy);
    size_t size = 0;
    int64_t mark = from;
    for (size_t at = begin; at < end;) {
        const struct run *run = &p->run[run_at(p, at)];
        const size_t run_end = run->at + run->bytes.size;
        for (; mark < to && p->mark[mark].at <= at; mark++)
            tags[mark - from].at = size;
        if (at >= run_end) { /* a blank that was added */
            out[size++] = ' ';
            at++;
            continue;
        }
        const size_t stop = run_end < end ? run_end : end;
        size += at_html_decode((at_line){run->bytes.text + (at - run->at), stop - at}, out + size);
        at = stop;
    }
    for (; mark < to; mark++)
        tags[mark - from].at = size;
    return (at_line){out, size};
}

/* A sentence of a passage, with the tags inside it. */
static bool add_html_sentence(at_job *job, at_line sentence, void *context)
{
    passage *p = context;
    const size_t begin = (size_t)(sentence.text - p->text.bytes), end = begin + sentence.size;
    int64_t from, to;
    find_marks(p, begin, end, &from, &to);
    const char *part = origin(p, begin), *part_end = origin(p, end - 1) + 1;
    at_tag *tags = calloc((size_t)(to - from) + 1, sizeof *tags);
    for (int64_t m = from; tags && m < to; m++) {
        const at_piece *piece = &p->pieces[p->mark[m].piece];
        const char *piece_end = piece->bytes.text + piece->bytes.size;
        tags[m - from] = (at_tag){.kind = piece->kind,
                                  .bytes = piece->bytes,
                                  .match = -1,
                                  .before = p->mark[m].before,
                                  .after = p->mark[m].after,
                                  .added = p->mark[m].added};
        part = piece->bytes.text < part ? piece->bytes.text : part;
        part_end = piece_end > part_end ? piece_end : part_end;
        const int64_t other = piece->kind == AT_PIECE_CLOSE ? mark_of(p, from, m, piece->match) : -1;
        if (other >= 0) {
            tags[m - from].match = other - from;
            tags[other - from].match = m - from;
        }
    }
    const at_line whole = {part, (size_t)(part_end - part)};
    return tags && add_part(job, decode_line(p, begin, end, whole, tags, from, to), whole, tags, to - from);
}

static bool add_html(at_job *job, at_line text, size_t half)
{
    at_piece *pieces;
    int64_t count;
    bool good = at_html_cut(text, &pieces, &count);
    passage p = {.pieces = pieces, .copy = job->copy, .half = half};
    for (int64_t from = 0, to; good && from < count; from = to + 1) {
        for (to = from; to < count && pieces[to].kind != AT_PIECE_BREAK;)
            to++;
        good = read_passage(&p, from, to) &&
               (p.runs == 0 || add_sentences(job, (at_line){p.text.bytes, p.text.size}, add_html_sentence, &p));
    }
    at_buffer_free(&p.text);
    free(p.run);
    free(p.mark);
    free(pieces);
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

/* ---- Jobs ------------------------------------------------------------------------------------------------------- */

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
    for (int64_t i = 0; job->answer && i < job->lines * job->best; i++) {
        free(job->answer[i].text);
        free(job->answer[i].place);
    }
    free(job->answer);
    for (int64_t i = 0; i < job->lines; i++)
        free_marks(&job->marks[i]);
    free(job->marks);
    free(job->line);
    free(job->part);
    free(job->copy);
    free(job->text);
    free(job->first);
    at_served_release(job->served);
    free(job);
}

double at_job_confidence(const at_job *job, int64_t text)
{
    double sum = 0;
    int64_t units = 0;
    for (int64_t i = job->first[text]; i < job->first[text + 1]; i++) {
        const at_answer *answer = job->answer + i * job->best;
        sum += (double)answer->units * answer->confidence;
        units += answer->units;
    }
    return units > 0 ? sum / (double)units : 1;
}

/* What stands between the lines is kept: their ends, the blanks between sentences, and markup. */
void at_job_text(const at_job *job, int64_t text, int64_t rank, at_buffer *out)
{
    const char *at = job->text[text].text, *const end = at + job->text[text].size;
    for (int64_t i = job->first[text]; i < job->first[text + 1]; i++) {
        const at_answer *answer = job->answer + i * job->best;
        answer += answer[rank].text ? rank : 0; /* the line has fewer hypotheses */
        const at_line line = {answer->text, strlen(answer->text)};
        at_buffer_add(out, at, (size_t)(job->part[i].text - at));
        const at_marks *marks = &job->marks[i];
        if (marks->count > 0)
            at_tags_write(marks->tag, marks->count, job->line[i], answer, job->html, out);
        else if (job->html)
            at_html_encode(line, out);
        else
            at_buffer_add(out, line.text, line.size);
        at = job->part[i].text + job->part[i].size;
    }
    at_buffer_add(out, at, (size_t)(end - at));
}
