/* Tags put back into the translation of the line that they were taken from.
 *
 * The translation is cut into words (text/tokens.h). A word comes from the source word that most of its units are linked
 * to. Its elements are placed from the outer to the inner ones, each inside its parent, and of siblings the shorter first:
 * an element takes the words from i to j, none of them a sibling's, with the largest
 *     sum over i..j of  +1 for a word that comes from inside it, -1 for one from elsewhere, 0 if that is not known.
 * A tag without content stands between the two words that come from nearest to where it stood.
 * A tag whose other one is not in this line is placed before all elements and divides them: it stands before word g, with
 * the fewest words before g that come from behind it, and from g on that come from before it. So each tag is written once,
 * and what was nested stays nested. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "text/marks.h"
#include "text/tokens.h"

enum { DEEPEST = 100 }; /* elements inside each other; those farther inside are placed as single tags */

typedef struct word {
    size_t begin, end;
    int64_t source; /* the index of the source word that it comes from; -1: not known */
    int64_t owner;  /* the index of the element it is in */
} word;

typedef struct words {
    word *word;
    size_t room;
    int64_t count;
} words;

/* What is placed: an element, a tag without content (both tags are the same), or the part between single tags, which has
 * none. */
typedef struct element {
    int64_t open, close; /* tags; -1: none */
    size_t begin, end;   /* bytes of the line */
    int64_t from, to;    /* words of the translation */
    int64_t child, next; /* the first of its own, and its next sibling; -1: none */
    int64_t rank;        /* among its siblings in the line */
} element;

typedef struct placing {
    const at_tag *tags;
    int64_t count;
    at_line line;
    words source;
    at_line text; /* the translation */
    words words;
    element *element;
    size_t room, part_room;
    int64_t elements;
    int64_t *part; /* [parts] the elements that stand for what is between single tags, in order */
    int64_t *single;
    size_t single_room;
    int64_t parts; /* one more than there are single tags */
    bool html;
    at_buffer *out;
    size_t written; /* bytes of the text */
    char last;      /* byte that was written, tags not counted; 0: none */
    bool after_kept;
    char following; /* the byte that stood after what was kept */
} placing;

/* ---- Words ------------------------------------------------------------------------------------------------------ */

static bool take_word(void *context, const at_token *token)
{
    words *w = context;
    if (!AT_GROW(w->word, w->room, (size_t)w->count + 1))
        return false;
    w->word[w->count++] = (word){.begin = token->begin, .end = token->end, .source = -1};
    return true;
}

/* The word that byte `at` is in, or the one after it; the last if there is none. */
static int64_t word_at(const words *w, size_t at)
{
    int64_t low = 0, high = w->count - 1;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (w->word[middle].end > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* By the votes of the units that are in the word, from `place` on; of equals the first. */
static void find_source(word *to, const words *source, const at_answer *answer, int64_t *place)
{
    int64_t best = -1, most = 0;
    while (*place < answer->places && answer->place[*place].end <= (int32_t)to->begin)
        ++*place;
    int64_t last = *place;
    while (last < answer->places && (last == *place || answer->place[last - 1].end < (int32_t)to->end))
        last++;
    for (int64_t i = *place; i < last; i++) {
        if (answer->place[i].source < 0)
            continue;
        const int64_t from = word_at(source, (size_t)answer->place[i].source);
        int64_t votes = 0;
        for (int64_t k = i; k < last; k++)
            votes += answer->place[k].source >= 0 && word_at(source, (size_t)answer->place[k].source) == from;
        if (votes > most) {
            most = votes;
            best = from;
        }
    }
    to->source = best;
}

/* A tag inside a source word makes two of it. */
static bool cut_source(placing *p)
{
    words *const source = &p->source;
    size_t from = 0;
    bool good = true;
    for (int64_t i = 0; good && i <= p->count; i++) {
        const size_t to = i < p->count ? p->tags[i].at : p->line.size;
        const int64_t first = source->count;
        if (to > from)
            good = at_tokens_cut(p->line.text + from, to - from, take_word, source);
        for (int64_t k = first; k < source->count; k++) {
            source->word[k].begin += from;
            source->word[k].end += from;
        }
        from = to;
    }
    return good;
}

/* Without links, from a model without attention, the words are taken to be in the same order. */
static void read_words(placing *p, const at_answer *answer)
{
    word *const w = p->words.word;
    bool known = false;
    int64_t place = 0;
    for (int64_t i = 0; p->source.count > 0 && i < p->words.count; i++) {
        find_source(&w[i], &p->source, answer, &place);
        known |= w[i].source >= 0;
    }
    for (int64_t i = 0; !known && p->source.count > 0 && i < p->words.count; i++)
        w[i].source = i * p->source.count / p->words.count;
}

/* ---- Elements --------------------------------------------------------------------------------------------------- */

static int64_t add_element(placing *p, element e)
{
    if (!AT_GROW(p->element, p->room, (size_t)p->elements + 1))
        return -1;
    e.child = e.next = -1;
    p->element[p->elements] = e;
    return p->elements++;
}

static bool add_part(placing *p, int64_t single)
{
    const int64_t part = add_element(p, (element){.open = -1, .close = -1, .end = p->line.size});
    if (part < 0 || !AT_GROW(p->part, p->part_room, (size_t)p->parts + 1) ||
        !AT_GROW(p->single, p->single_room, (size_t)p->parts + 1))
        return false;
    p->single[p->parts] = single; /* the tag before it; -1 of the first */
    p->part[p->parts++] = part;
    return true;
}

/* The tree of the elements; last children first. */
static bool read_tags(placing *p)
{
    int64_t parent[DEEPEST + 1];
    int depth = 0;
    bool good = add_part(p, -1);
    for (int64_t i = 0; good && i < p->count; i++) {
        const at_tag *tag = &p->tags[i];
        if (tag->kind == AT_PIECE_CLOSE && tag->match >= 0 && depth > 0 && p->element[parent[depth - 1]].close == i) {
            depth--;
            continue;
        }
        const bool is_void = tag->kind == AT_PIECE_VOID;
        const bool is_element = tag->kind == AT_PIECE_OPEN && tag->match > i && depth < DEEPEST;
        if (!is_void && !is_element) {
            good = add_part(p, i);
            continue;
        }
        const int64_t above = depth > 0 ? parent[depth - 1] : p->part[p->parts - 1];
        const int64_t close = is_void ? i : tag->match;
        const int64_t added =
            add_element(p, (element){.open = i, .close = close, .begin = tag->at, .end = p->tags[close].at, .rank = i});
        good = added >= 0;
        if (good) {
            p->element[added].next = p->element[above].child;
            p->element[above].child = added;
        }
        if (good && is_element)
            parent[depth++] = added;
    }
    return good;
}

/* ---- Places ----------------------------------------------------------------------------------------------------- */

/* The number of the source word that begins at byte `at` or after it. */
static int64_t source_at(const placing *p, size_t at)
{
    int64_t low = 0, high = p->source.count;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (p->source.word[middle].begin < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Before which word from `from` on a single tag at byte `at` stands: the fewest words are on the wrong side of it. */
static int64_t find_border(const placing *p, size_t at, int64_t from)
{
    const word *w = p->words.word;
    const int64_t to = p->words.count, source = source_at(p, at);
    int64_t cost = 0, best = from, least;
    if (at >= p->line.size)
        return to;
    for (int64_t i = from; i < to; i++)
        cost += w[i].source >= 0 && w[i].source < source;
    least = cost;
    for (int64_t g = from; g < to; g++) {
        if (w[g].source >= 0)
            cost += w[g].source >= source ? 1 : -1;
        if (cost < least) {
            least = cost;
            best = g + 1;
        }
    }
    return best;
}

/* How many words away from the source words `begin` to `end` a word comes from; 1 if that is not known, so that a known
 * neighbour is better. Before the first and after the last word stand the ends of the line. */
static int64_t distance(const placing *p, int64_t index, int64_t begin, int64_t end)
{
    const int64_t from = index < 0 ? -1 : index >= p->words.count ? p->source.count : p->words.word[index].source;
    if (from < 0 && index >= 0)
        return 1;
    return from < begin ? begin - 1 - from : from >= end ? from - end : 0;
}

/* Before which word of the parent something without words stands: where the words on both sides come from next to it; not
 * inside an element that is placed already. */
static int64_t find_gap(const placing *p, const element *e, int64_t owner)
{
    const word *w = p->words.word;
    const int64_t from = p->element[owner].from, to = p->element[owner].to;
    const int64_t begin = source_at(p, e->begin), end = source_at(p, e->end);
    int64_t best = from, least = -1;
    for (int64_t g = from; g <= to; g++) {
        const bool inside = g > from && g < to && w[g - 1].owner == w[g].owner && w[g].owner != owner;
        const int64_t cost = distance(p, g - 1, begin, end) + distance(p, g, begin, end);
        if (!inside && (least < 0 || cost < least)) {
            best = g;
            least = cost;
        }
    }
    return best;
}

/* The largest sum of words that no sibling has; false if none of them comes from inside. */
static bool find_words(const placing *p, int64_t owner, element *e)
{
    const element *parent = &p->element[owner];
    int64_t sum = 0, from = parent->from, most = 0;
    for (int64_t i = parent->from; i < parent->to; i++) {
        const word *w = &p->words.word[i];
        if (w->owner != owner || sum <= 0) { /* of equal sums the fewest words */
            sum = 0;
            from = i;
        }
        if (w->owner != owner)
            continue;
        const word *source = w->source >= 0 ? &p->source.word[w->source] : NULL;
        if (source)
            sum += source->begin >= e->begin && source->begin < e->end ? 1 : -1;
        if (sum > most) {
            most = sum;
            e->from = from;
            e->to = i + 1;
        }
    }
    return most > 0;
}

static int by_size(const void *a, const void *b)
{
    const element *x = *(element *const *)a, *y = *(element *const *)b;
    const size_t long_x = x->end - x->begin, long_y = y->end - y->begin;
    return long_x != long_y ? (long_x > long_y) - (long_x < long_y) : (x->rank > y->rank) - (x->rank < y->rank);
}

/* Those without content after the others: they are not inside any. */
static void place_child(placing *p, int64_t owner, element *e)
{
    const bool has_words = e->end > e->begin;
    if (has_words && find_words(p, owner, e)) {
        for (int64_t i = e->from; i < e->to; i++)
            p->words.word[i].owner = e - p->element;
        return;
    }
    e->from = e->to = find_gap(p, e, owner);
    if (has_words && e->from < p->element[owner].to && p->words.word[e->from].owner == owner)
        p->words.word[e->to++].owner = e - p->element; /* nothing comes from its words: at least it has one */
}

static int by_place(const void *a, const void *b)
{
    const element *x = *(element *const *)a, *y = *(element *const *)b;
    if (x->from != y->from)
        return (x->from > y->from) - (x->from < y->from);
    if (x->to != y->to)
        return (x->to > y->to) - (x->to < y->to);
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* ---- Writing ---------------------------------------------------------------------------------------------------- */

static void write_text(placing *p, at_line text)
{
    if (p->html)
        at_html_encode(text, p->out);
    else
        at_buffer_add(p->out, text.text, text.size);
    p->last = text.size > 0 ? text.text[text.size - 1] : p->last;
}

/* Between what is kept and its neighbours is a blank, unless there was none and the neighbour is the same character. */
static void part_kept(placing *p, bool same, char next)
{
    if (p->last && p->last != ' ' && next != ' ' && !same)
        write_text(p, (at_line){" ", 1});
    p->after_kept = false;
}

static void write_up_to(placing *p, size_t to)
{
    if (to <= p->written)
        return;
    if (p->after_kept)
        part_kept(p, p->following == p->text.text[p->written], p->text.text[p->written]);
    write_text(p, (at_line){p->text.text + p->written, to - p->written});
    p->written = to;
}

static size_t end_before(const placing *p, int64_t index)
{
    return index > 0 ? p->words.word[index - 1].end : 0;
}

static size_t begin_of(const placing *p, int64_t index)
{
    return index < p->words.count ? p->words.word[index].begin : p->text.size;
}

static void write_tag(const placing *p, int64_t tag)
{
    at_buffer_add(p->out, p->tags[tag].bytes.text, p->tags[tag].bytes.size);
}

static void write_kept(placing *p, const element *e)
{
    const at_tag *tag = &p->tags[e->open];
    write_up_to(p, end_before(p, e->from));
    p->written = p->written > begin_of(p, e->from) ? p->written : begin_of(p, e->from);
    part_kept(p, tag->previous == p->last, tag->bytes.text[0]);
    write_text(p, tag->bytes);
    p->after_kept = true;
    p->following = tag->following;
}

/* A tag without content has blanks on the sides where it had them. */
static void write_void(placing *p, const element *e)
{
    const at_tag *tag = &p->tags[e->open];
    const size_t end = end_before(p, e->from), begin = begin_of(p, e->from);
    write_up_to(p, tag->before ? begin : end);
    if (tag->before && tag->after && begin == end && end > 0)
        at_buffer_add(p->out, " ", 1);
    write_tag(p, e->open);
    if (tag->before && tag->after && begin < p->text.size)
        at_buffer_add(p->out, " ", 1);
    if (tag->added && p->written == end)
        p->written = begin;
}

/* Places the children of an element, and theirs, and writes them. */
static bool write_children(placing *p, int64_t index)
{
    int64_t count = 0;
    for (int64_t c = p->element[index].child; c >= 0; c = p->element[c].next)
        count++;
    if (count == 0)
        return true;
    element **children = calloc((size_t)count, sizeof *children);
    bool good = children;
    for (int64_t c = p->element[index].child, i = 0; good && c >= 0; c = p->element[c].next)
        children[i++] = &p->element[c];
    if (good)
        qsort(children, (size_t)count, sizeof *children, by_size);
    for (int pass = 0; good && pass < 2; pass++) /* elements, then what has no content */
        for (int64_t i = 0; i < count; i++)
            if ((children[i]->end > children[i]->begin) == (pass == 0))
                place_child(p, index, children[i]);
    if (good)
        qsort(children, (size_t)count, sizeof *children, by_place);
    for (int64_t i = 0; good && i < count; i++) {
        const element *e = children[i];
        if (e->open == e->close) {
            if (p->tags[e->open].kept)
                write_kept(p, e);
            else
                write_void(p, e);
            continue;
        }
        write_up_to(p, begin_of(p, e->from));
        if (p->after_kept && e->to > e->from)
            part_kept(p, p->following == p->text.text[p->written], p->text.text[p->written]);
        write_tag(p, e->open);
        good = write_children(p, e - p->element);
        if (e->to > e->from)
            write_up_to(p, end_before(p, e->to));
        write_tag(p, e->close);
    }
    free(children);
    return good;
}

/* The parts between single tags, one after the other. */
static bool write_parts(placing *p)
{
    bool good = true;
    int64_t from = 0;
    for (int64_t i = 0; i < p->parts; i++) {
        element *part = &p->element[p->part[i]];
        part->from = from;
        part->to = i + 1 < p->parts ? find_border(p, p->tags[p->single[i + 1]].at, from) : p->words.count;
        for (int64_t w = from; w < part->to; w++)
            p->words.word[w].owner = p->part[i];
        from = part->to;
    }
    for (int64_t i = 0; good && i < p->parts; i++) {
        const int64_t single = p->single[i], first = p->element[p->part[i]].from;
        if (single >= 0) {
            const bool opens = p->tags[single].kind == AT_PIECE_OPEN;
            write_up_to(p, opens ? begin_of(p, first) : end_before(p, first));
            write_tag(p, single);
        }
        good = write_children(p, p->part[i]);
    }
    write_up_to(p, p->text.size);
    return good;
}

void at_tags_write(const at_tag *tags, int64_t count, at_line line, const at_answer *answer, bool html, at_buffer *out)
{
    placing p = {.tags = tags,
                 .count = count,
                 .line = line,
                 .text = {answer->text, strlen(answer->text)},
                 .html = html,
                 .out = out};
    bool good = cut_source(&p) && at_tokens_cut(p.text.text, p.text.size, take_word, &p.words);
    if (good)
        read_words(&p, answer);
    if (!good || !read_tags(&p) || !write_parts(&p))
        out->failed = true;
    free(p.source.word);
    free(p.words.word);
    free(p.element);
    free(p.part);
    free(p.single);
}
