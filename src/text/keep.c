/* What of a line is kept as it is: it is taken out of the line before the search, and put back by alignment, as a tag
 * without content is. So each is in the translation once, whatever the model and its vocabulary make of the rest. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "text/marks.h"
#include "text/placeholders_internal.h"

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || ((unsigned char)c & 0x80);
}

/* A line while it is taken apart. */
typedef struct apart {
    at_line whole;
    char *text; /* what is left, with room for one byte more for each that is kept */
    size_t size;
    at_tag *tag;
    size_t room;
    int64_t count;
    bool numbers;
} apart;

static void add_text(apart *a, const char *text, const char *end)
{
    if (end > text)
        memcpy(a->text + a->size, text, (size_t)(end - text));
    a->size += (size_t)(end - text);
}

static bool add_tag(apart *a, at_tag tag)
{
    if (!AT_GROW(a->tag, a->room, (size_t)a->count + 1))
        return false;
    a->tag[a->count++] = tag;
    return true;
}

/* Words on both sides stay two, with one blank between; there is none before punctuation. */
static void join_sides(apart *a, const char **next, const char *end)
{
    const bool first = a->size == 0, blank = !first && a->text[a->size - 1] == ' ', more = *next < end;
    if ((first || blank) && more && **next == ' ')
        ++*next;
    else if (blank && more && !is_word(**next))
        a->size--;
    else if (!first && more && is_word(a->text[a->size - 1]) && is_word(**next))
        a->text[a->size++] = ' ';
}

/* From *at to `stop`, where there is no tag. */
static bool take_apart(apart *a, const char **at, const char *stop)
{
    const char *const whole_end = a->whole.text + a->whole.size;
    at_line found;
    bool number;
    for (size_t from = 0;
         *at < stop && at_placeholder_next((at_line){*at, (size_t)(stop - *at)}, &from, &found, &number);) {
        if (number && !a->numbers)
            continue;
        add_text(a, *at, found.text);
        *at = found.text + found.size;
        from = 0;
        const at_tag tag = {.kind = AT_PIECE_VOID,
                            .bytes = found,
                            .match = -1,
                            .kept = true,
                            .previous = found.text > a->whole.text ? found.text[-1] : ' ',
                            .following = *at < whole_end ? **at : ' '};
        join_sides(a, at, stop);
        if (!add_tag(a, tag))
            return false;
        a->tag[a->count - 1].at = a->size;
    }
    add_text(a, *at, stop);
    *at = stop;
    return true;
}

bool at_marks_keep(at_marks *m, bool numbers, at_line *line)
{
    const at_line whole = m->whole;
    apart a = {.whole = whole, .text = malloc(2 * whole.size + 1), .numbers = numbers};
    int64_t *place = calloc((size_t)m->base_count + 1, sizeof *place); /* of the tags among all */
    const char *at = whole.text;
    bool good = a.text && place;
    for (int64_t i = 0; good && i <= m->base_count; i++) {
        good = take_apart(&a, &at, whole.text + (i < m->base_count ? m->base[i].at : whole.size));
        place[i] = a.count;
        if (good && i < m->base_count) {
            good = add_tag(&a, m->base[i]);
            a.tag[a.count - 1].at = a.size;
        }
    }
    for (int64_t i = 0; good && i < m->base_count; i++)
        a.tag[place[i]].match = m->base[i].match < 0 ? -1 : place[m->base[i].match];
    free(place);
    free(good ? m->text : a.text);
    free(good ? m->tag : a.tag);
    if (!good)
        return false;
    m->text = a.text;
    m->tag = a.tag;
    m->count = a.count;
    m->numbers = numbers;
    *line = (at_line){m->text, a.size};
    return true;
}

bool at_marks_are_all(const at_marks *m, at_line line)
{
    size_t at = 0;
    while (at < line.size && !is_word(line.text[at]))
        at++;
    return m->count > m->base_count && at == line.size;
}

/* How often a number is among those of a text. */
static int64_t count_number(at_line text, at_line wanted)
{
    int64_t count = 0;
    at_line found;
    bool number;
    for (size_t from = 0; at_placeholder_next(text, &from, &found, &number);)
        count += number && found.size == wanted.size && memcmp(found.text, wanted.text, found.size) == 0;
    return count;
}

bool at_marks_lost_numbers(const at_marks *m, at_line line, at_line translation)
{
    at_line found;
    bool number;
    for (size_t from = 0; !m->numbers && at_placeholder_next(line, &from, &found, &number);)
        if (number && count_number(line, found) != count_number(translation, found))
            return true;
    return false;
}

static bool is_kept(const at_marks *m, at_line text)
{
    for (int64_t i = 0; i < m->count; i++)
        if (m->tag[i].kept && m->tag[i].bytes.size == text.size &&
            memcmp(m->tag[i].bytes.text, text.text, text.size) == 0)
            return true;
    return false;
}

void at_marks_erase(const at_marks *m, at_answer *answer)
{
    at_line found;
    bool number;
    for (size_t from = 0, size = strlen(answer->text);
         m->count > m->base_count && at_placeholder_next((at_line){answer->text, size}, &from, &found, &number);) {
        if (!is_kept(m, found))
            continue;
        const size_t begin = (size_t)(found.text - answer->text), end = begin + found.size;
        const size_t blank = begin > 0 && answer->text[begin - 1] == ' ' && (end == size || answer->text[end] == ' ');
        memmove(answer->text + begin - blank, answer->text + end, size - end + 1);
        size -= found.size + blank;
        from = begin - blank;
        for (int64_t i = 0; i < answer->places; i++) {
            int32_t *place = &answer->place[i].end;
            *place -= *place >= (int32_t)end              ? (int32_t)(found.size + blank)
                      : *place > (int32_t)(begin - blank) ? *place - (int32_t)(begin - blank)
                                                          : 0;
        }
    }
}
