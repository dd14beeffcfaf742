/* From lines to ids and back. */
#include "text/vocabulary_internal.h"

#include <string.h>

static const char *const special_names[AT_SPECIALS] = {"<pad>", "<unk>", "<s>", "</s>"};

int64_t at_vocabulary_size(const at_vocabulary *vocabulary)
{
    return vocabulary->fixed ? AT_SPECIALS + (int64_t)vocabulary->count : AT_SPECIALS;
}

static const at_word *word_of(const at_vocabulary *vocabulary, int32_t id)
{
    return id < AT_SPECIALS || id >= at_vocabulary_size(vocabulary) ? NULL : &vocabulary->word[id - AT_SPECIALS];
}

const char *at_vocabulary_unit(const at_vocabulary *vocabulary, int32_t id)
{
    if (id >= 0 && id < AT_SPECIALS)
        return special_names[id];
    const at_word *found = word_of(vocabulary, id);
    return !found ? NULL : vocabulary->text.bytes + found->start;
}

int64_t at_vocabulary_frequency(const at_vocabulary *vocabulary, int32_t id)
{
    const at_word *found = word_of(vocabulary, id);
    return !found ? 0 : found->count;
}

bool at_vocabulary_has_words(const at_vocabulary *vocabulary)
{
    return vocabulary->words;
}

/* ---- To ids --------------------------------------------------------------------------------------------------- */

bool at_vocabulary_cleans(const at_vocabulary *vocabulary)
{
    const at_cleaning *cleaning = &vocabulary->cleaning;
    return vocabulary->subwords || cleaning->form != AT_FORM_NONE || cleaning->lowercase ||
           cleaning->tokens != AT_TOKENS_NONE;
}

static int64_t encode_units(const at_vocabulary *vocabulary, const char *line, size_t size, int32_t *ids, int64_t room,
                            int64_t *replaced, int32_t *offsets)
{
    at_units units = {line, line + size, vocabulary->words};
    at_unit unit;
    int64_t count = 0;
    for (; at_units_next(&units, &unit); count++) {
        *replaced += unit.broken;
        if (count >= room)
            continue;
        int32_t found = at_vocabulary_find(vocabulary, unit);
        ids[count] = found < 0 ? AT_UNKNOWN : AT_SPECIALS + found;
        if (offsets) {
            offsets[2 * count] = (int32_t)(unit.text - line);
            offsets[2 * count + 1] = (int32_t)(unit.text - line + (ptrdiff_t)unit.size);
        }
    }
    return count;
}

/* Offsets in the clean text as those in the line that it came from. An empty span is before what follows it. */
static void find_origin(const at_clean *clean, size_t line_size, int32_t offset[2])
{
    size_t begin = (size_t)offset[0], end = (size_t)offset[1];
    offset[0] = begin < clean->text.size ? clean->origin[2 * begin] : (int32_t)line_size;
    offset[1] = end > begin ? clean->origin[2 * end - 1] : offset[0];
}

/* The bytes of the unit such as >>fra<< that a line begins with; 0: none. */
static size_t tag_size(const at_vocabulary *vocabulary, const char *line, size_t size)
{
    if (!vocabulary->tags || size < 4 || memcmp(line, ">>", 2) != 0)
        return 0;
    const char *end = memmem(line + 2, size - 2, "<<", 2);
    return end ? (size_t)(end + 2 - line) : 0;
}

/* The pieces of a clean line, after its tag. */
static int64_t encode_pieces(const at_vocabulary *vocabulary, const char *line, size_t size, int32_t *ids, int64_t room,
                             int32_t *offsets)
{
    const size_t tag = tag_size(vocabulary, line, size);
    const int64_t tags = tag > 0, left = room > tags ? room - tags : 0;
    const int32_t found = tag > 0 ? at_vocabulary_find(vocabulary, (at_unit){line, tag, 0}) : -1;
    const bool writes = tag > 0 && room > 0;
    if (writes) {
        ids[0] = found < 0 ? AT_UNKNOWN : AT_SPECIALS + found;
        if (offsets)
            offsets[0] = 0, offsets[1] = (int32_t)tag;
    }
    const int64_t count =
        at_subwords_encode(vocabulary->subwords, vocabulary->listed ? vocabulary : NULL, tag > 0 ? line + tag : line,
                           size - tag, writes ? ids + 1 : ids, left, writes && offsets ? offsets + 2 : offsets, NULL);
    for (int64_t i = tags; offsets && tag > 0 && i < tags + count && i < room; i++) {
        offsets[2 * i] += (int32_t)tag;
        offsets[2 * i + 1] += (int32_t)tag;
    }
    return count < 0 ? count : tags + count;
}

static int64_t encode_inside(const at_vocabulary *vocabulary, const char *line, size_t size, int32_t *ids, int64_t room,
                             int64_t *replaced, int32_t *offsets)
{
    *replaced = 0;
    if (!at_vocabulary_cleans(vocabulary))
        return encode_units(vocabulary, line, size, ids, room, replaced, offsets);
    at_clean clean = {0};
    int64_t count = -1;
    if (at_clean_line(&clean, vocabulary->cleaning, line, size)) {
        const char *text = clean.text.bytes;
        count = !vocabulary->subwords ? encode_units(vocabulary, text, clean.text.size, ids, room, replaced, offsets)
                                      : encode_pieces(vocabulary, text, clean.text.size, ids, room, offsets);
    }
    for (int64_t i = 0; offsets && i < count && i < room; i++)
        find_origin(&clean, size, offsets + 2 * i);
    *replaced = clean.replaced;
    at_clean_free(&clean);
    return count;
}

/* One of the units that frame a line, at byte `at` of it. */
static void set_added(int32_t id, int64_t index, size_t at, int32_t *ids, int64_t room, int32_t *offsets)
{
    if (index >= room)
        return;
    ids[index] = id;
    if (offsets)
        offsets[2 * index] = offsets[2 * index + 1] = (int32_t)at;
}

int64_t at_vocabulary_encode(const at_vocabulary *vocabulary, const char *line, size_t size, int32_t *ids, int64_t room,
                             int64_t *replaced, int32_t *offsets)
{
    const int64_t before = vocabulary->begins && room > 0;
    int64_t count = encode_inside(vocabulary, line, size, before ? ids + 1 : ids, room - before, replaced,
                                  offsets ? offsets + 2 * before : NULL);
    if (count <= 0)
        return count; /* an empty line stays empty */
    count += vocabulary->begins;
    if (vocabulary->begins)
        set_added(AT_BEGIN, 0, 0, ids, room, offsets);
    if (vocabulary->ends)
        set_added(AT_END, count++, size, ids, room, offsets);
    return count;
}

void at_vocabulary_frame(at_vocabulary *vocabulary, bool begins, bool ends)
{
    vocabulary->begins = begins;
    vocabulary->ends = ends;
}

void at_vocabulary_inside(const at_vocabulary *vocabulary, int64_t count, int64_t *first, int64_t *past)
{
    *first = count > 0 && vocabulary->begins;
    *past = count - (count > 0 && vocabulary->ends);
}

int64_t at_vocabulary_shorten(const at_vocabulary *vocabulary, int32_t *ids, int64_t count, int64_t most)
{
    if (count <= most)
        return count;
    if (vocabulary->ends)
        ids[most - 1] = AT_END;
    return most;
}

int64_t at_vocabulary_encode_line(const at_vocabulary *vocabulary, at_line line, at_reserve_units *reserve,
                                  void *context, int64_t *replaced)
{
    int64_t count = (int64_t)line.size, room; /* a unit has at least one byte, unless normalisation adds units */
    do {
        int32_t *ids = NULL, *offsets = NULL;
        room = count;
        if (!reserve(context, room, &ids, &offsets))
            return -1;
        count = at_vocabulary_encode(vocabulary, line.text, line.size, ids, room, replaced, offsets);
    } while (count > room);
    return count;
}

bool at_vocabulary_clean(const at_vocabulary *vocabulary, const char *line, size_t size, at_buffer *text)
{
    at_clean clean = {0};
    at_cleaning cleaning = vocabulary->cleaning;
    cleaning.tokens = AT_TOKENS_NONE;
    bool good = at_clean_line(&clean, cleaning, line, size);
    if (good)
        at_buffer_add(text, clean.text.bytes, clean.text.size);
    at_clean_free(&clean);
    return good && !text->failed;
}

bool at_vocabulary_spell(const at_vocabulary *vocabulary, const char *line, size_t size, at_buffer *text)
{
    at_clean clean = {0};
    bool good =
        at_clean_line(&clean, vocabulary->cleaning, line, size) &&
        at_subwords_encode(vocabulary->subwords, NULL, clean.text.bytes, clean.text.size, NULL, 0, NULL, text) >= 0;
    at_clean_free(&clean);
    return good;
}

/* ---- To text -------------------------------------------------------------------------------------------------- */

/* Byte pieces, and pieces with a newline, may have made the text from `start` on invalid UTF-8, or two lines. */
static void make_clean(at_buffer *text, size_t start)
{
    bool sound = true;
    for (size_t at = start; at < text->size;) {
        int32_t point;
        bool broken;
        at += at_point_read(text->bytes + at, text->size - at, &point, &broken);
        sound = sound && !broken;
    }
    at_clean clean = {0};
    if (sound)
        return;
    if (at_clean_line(&clean, (at_cleaning){0}, text->bytes + start, text->size - start)) {
        text->size = start;
        at_buffer_add(text, clean.text.bytes, clean.text.size);
    } else {
        text->failed = true;
    }
    at_clean_free(&clean);
}

/* A line of subwords begins, or ends, with the blank of its first, or last, word. */
static void trim(const at_vocabulary *vocabulary, at_buffer *text, size_t start)
{
    size_t blanks = 0;
    while (start + blanks < text->size && text->bytes[start + blanks] == ' ')
        blanks++;
    if (blanks > 0) {
        memmove(text->bytes + start, text->bytes + start + blanks, text->size - start - blanks);
        text->size -= blanks;
    }
    while (vocabulary->subwords->info.ends_words && text->size > start && text->bytes[text->size - 1] == ' ')
        text->size--;
}

bool at_vocabulary_write(const at_vocabulary *vocabulary, const int32_t *ids, int64_t count,
                         at_replace_unknown *replace, void *context, at_buffer *text)
{
    bool first = true;
    size_t start = text->size;
    for (int64_t i = 0; i < count && ids[i] != AT_END; i++) {
        const at_word *found = word_of(vocabulary, ids[i]);
        if (!found && ids[i] != AT_UNKNOWN)
            continue;
        if (vocabulary->words && !first)
            at_buffer_add(text, " ", 1);
        if (found && vocabulary->listed)
            at_subwords_write_text(vocabulary->text.bytes + found->start, found->size, text);
        else if (found && vocabulary->subwords)
            at_subwords_write(vocabulary->subwords, ids[i] - AT_SPECIALS, text);
        else if (found)
            at_buffer_add(text, vocabulary->text.bytes + found->start, found->size);
        else if (!replace || !replace(context, i, text))
            at_buffer_print(text, "%s", special_names[AT_UNKNOWN]);
        first = false;
    }
    if (vocabulary->cleaning.tokens != AT_TOKENS_NONE)
        at_tokens_join(text, start);
    if (vocabulary->subwords && !text->failed) {
        trim(vocabulary, text, start);
        make_clean(text, start);
    }
    at_buffer_add(text, "", 0); /* without any id the text still ends in a NUL */
    return !text->failed;
}

bool at_vocabulary_decode(const at_vocabulary *vocabulary, const int32_t *ids, int64_t count, at_buffer *text)
{
    return at_vocabulary_write(vocabulary, ids, count, NULL, NULL, text);
}
