#include "text/glossary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "text/tokens.h"
#include "text/units.h"

struct at_glossary {
    at_line_list *lines; /* of the file: the terms point into them */
    at_term *term;       /* [count] by the first byte of the source, then the longest, then as in the file */
    int64_t count;
    int64_t first[258]; /* where the terms whose source begins with a byte begin; those without a source come first */
};

/* ---- Words ------------------------------------------------------------------------------------------------------ */

/* The character before byte `at`; -1: there is none. */
static int32_t point_before(at_line text, size_t at)
{
    size_t begin = at;
    int32_t point = -1;
    bool broken;
    while (begin > 0 && at - begin < 4) {
        begin--;
        if (((unsigned char)text.text[begin] & 0xC0) != 0x80)
            break;
    }
    if (begin < at)
        at_point_read(text.text + begin, at - begin, &point, &broken);
    return point;
}

bool at_glossary_inside(at_line text, size_t at)
{
    int32_t after;
    bool broken;
    const int32_t before = point_before(text, at);
    if (before < 0 || at >= text.size || !at_in_word(before))
        return false;
    at_point_read(text.text + at, text.size - at, &after, &broken);
    return at_in_word(after);
}

bool at_glossary_goes_on(at_line text, bool end)
{
    int32_t point = end ? point_before(text, text.size) : -1;
    bool broken;
    if (!end && text.size > 0)
        at_point_read(text.text, text.size, &point, &broken);
    return point >= 0 && at_in_word(point);
}

static bool stands_at(at_line text, size_t at, at_line term)
{
    return text.size - at >= term.size && memcmp(text.text + at, term.text, term.size) == 0 &&
           !at_glossary_inside(text, at + term.size);
}

bool at_glossary_has(at_line text, at_line term)
{
    for (size_t at = 0; at + term.size <= text.size; at++)
        if (stands_at(text, at, term) && !at_glossary_inside(text, at))
            return true;
    return false;
}

/* ---- The terms of a line ---------------------------------------------------------------------------------------- */

/* In ascending order, each once. */
static int64_t add_found(int64_t index, int64_t *found, int64_t count, int64_t room)
{
    int64_t at = count < room ? count : room;
    for (int64_t i = 0; i < at; i++)
        if (found[i] == index)
            return count;
    if (count >= room)
        return count + 1;
    for (; at > 0 && found[at - 1] > index; at--)
        found[at] = found[at - 1];
    found[at] = index;
    return count + 1;
}

static bool same(at_line a, at_line b)
{
    return a.size == b.size && memcmp(a.text, b.text, a.size) == 0;
}

int64_t at_glossary_find(const at_glossary *g, at_line line, int64_t *found, int64_t room)
{
    int64_t count = 0;
    for (int64_t i = 0; i < g->first[1]; i++)
        count = add_found(i, found, count, room);
    for (size_t at = 0, next; at < line.size; at = next) {
        const int byte = (unsigned char)line.text[at] + 1;
        next = at + 1;
        if ((byte - 1) >> 6 == 2 || at_glossary_inside(line, at)) /* inside a character or a word */
            continue;
        int64_t i = g->first[byte];
        while (i < g->first[byte + 1] && !stands_at(line, at, g->term[i].source))
            i++;
        for (int64_t first = i; i < g->first[byte + 1] && same(g->term[i].source, g->term[first].source); i++) {
            count = add_found(i, found, count, room);
            next = at + g->term[i].source.size;
        }
    }
    return count;
}

int64_t at_glossary_count(const at_glossary *g)
{
    return g->count;
}

const at_term *at_glossary_term(const at_glossary *g, int64_t index)
{
    return &g->term[index];
}

/* ---- The file --------------------------------------------------------------------------------------------------- */

static at_line trim(at_line text)
{
    while (text.size > 0 && strchr(" \t\r", text.text[text.size - 1]))
        text.size--;
    while (text.size > 0 && strchr(" \t\r", *text.text))
        text = (at_line){text.text + 1, text.size - 1};
    return text;
}

static bool bad_line(const char *path, int64_t number, const char *what, at_error *error)
{
    return at_fail(error, AT_FORMAT,
                   "line %lld of the glossary '%s' %s; a line is the source term, a tab and the target term, which a ! "
                   "forbids",
                   (long long)number, path, what);
}

/* An empty line and a comment, # without a tab, have no term. */
static bool read_term(at_line line, const char *path, at_term *term, at_error *error)
{
    const char *tab = line.size > 0 ? memchr(line.text, '\t', line.size) : NULL;
    if (!tab && (trim(line).size == 0 || line.text[0] == '#'))
        return true;
    if (!tab)
        return bad_line(path, term->number, "has no tab", error);
    const size_t source = (size_t)(tab - line.text);
    term->source = trim((at_line){line.text, source});
    term->target = trim((at_line){tab + 1, line.size - source - 1});
    if (term->target.size > 0 && memchr(term->target.text, '\t', term->target.size))
        return bad_line(path, term->number, "has more than one tab", error);
    term->forbidden = term->target.size > 0 && *term->target.text == '!';
    if (term->forbidden)
        term->target = trim((at_line){term->target.text + 1, term->target.size - 1});
    if (term->target.size == 0)
        return bad_line(path, term->number, "has no target term", error);
    if (term->source.size > AT_TERM_BYTES || term->target.size > AT_TERM_BYTES)
        return bad_line(path, term->number, "has a term of more than 1000 bytes", error);
    if (at_utf8_length(line.text, line.size) < line.size || memchr(line.text, '\0', line.size))
        return bad_line(path, term->number, "is not UTF-8", error);
    return true;
}

static int first_byte(const at_term *term)
{
    return term->source.size ? (unsigned char)*term->source.text + 1 : 0;
}

static int by_source(const void *left, const void *right)
{
    const at_term *a = left, *b = right;
    if (first_byte(a) != first_byte(b))
        return first_byte(a) - first_byte(b);
    if (a->source.size != b->source.size)
        return a->source.size > b->source.size ? -1 : 1;
    int order = a->source.size ? memcmp(a->source.text, b->source.text, a->source.size) : 0;
    const size_t both = a->target.size < b->target.size ? a->target.size : b->target.size;
    order = order ? order : memcmp(a->target.text, b->target.text, both);
    if (order == 0 && a->target.size != b->target.size)
        order = a->target.size < b->target.size ? -1 : 1;
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

static char *shown(at_line term, char out[AT_SHOWN])
{
    char text[AT_TERM_BYTES + 1];
    snprintf(text, sizeof text, "%.*s", (int)term.size, term.size ? term.text : "");
    return at_shown(text, out, AT_SHOWN);
}

/* A source term has one target term, and no term is both wanted and forbidden: terms of one source are neighbours, and so
 * are those of one target among them. */
static bool check_terms(const at_glossary *g, const char *path, at_error *error)
{
    char source[AT_SHOWN], target[AT_SHOWN];
    const at_term *wanted = NULL;
    for (int64_t i = 0; i < g->count; i++) {
        const at_term *t = &g->term[i], *last = i > 0 && same(t[-1].source, t->source) ? t - 1 : NULL;
        wanted = last ? wanted : NULL;
        if (last && last->forbidden != t->forbidden && same(last->target, t->target))
            return at_fail(error, AT_FORMAT,
                           "the glossary '%s' both wants and forbids '%s' for '%s', in lines %lld and %lld", path,
                           shown(t->target, target), shown(t->source, source), (long long)last->number,
                           (long long)t->number);
        if (wanted && !t->forbidden && t->source.size > 0 && !same(wanted->target, t->target))
            return at_fail(error, AT_FORMAT,
                           "the glossary '%s' has two target terms for '%s', in lines %lld and %lld; it takes one",
                           path, shown(t->source, source), (long long)wanted->number, (long long)t->number);
        wanted = t->forbidden ? wanted : t;
    }
    return g->first[1] <= AT_LINE_TERMS ||
           at_fail(error, AT_FORMAT, "the glossary '%s' has %lld terms without a source term; the limit is %d", path,
                   (long long)g->first[1], AT_LINE_TERMS);
}

at_glossary *at_glossary_load(const char *path, at_error *error)
{
    at_glossary *g = error->code == AT_OK ? calloc(1, sizeof *g) : NULL;
    if (!g) {
        at_no_memory(error, "a glossary");
        return NULL;
    }
    g->lines = at_line_list_read(path, error);
    g->term = g->lines ? calloc((size_t)g->lines->count + 1, sizeof *g->term) : NULL;
    bool good = g->term || at_no_memory(error, "a glossary");
    for (int64_t i = 0; good && i < g->lines->count; i++) {
        at_term term = {.number = i + 1};
        good = read_term(g->lines->line[i], path, &term, error);
        if (good && term.target.size > 0)
            g->term[g->count++] = term;
    }
    if (good) {
        qsort(g->term, (size_t)g->count, sizeof *g->term, by_source);
        for (int byte = 0, i = 0; byte < 258; byte++) {
            while (i < g->count && first_byte(&g->term[i]) < byte)
                i++;
            g->first[byte] = i;
        }
        good = check_terms(g, path, error);
    }
    if (good)
        return g;
    at_glossary_free(g);
    return NULL;
}

void at_glossary_free(at_glossary *g)
{
    if (!g)
        return;
    at_line_list_free(g->lines);
    free(g->term);
    free(g);
}
