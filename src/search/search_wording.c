/* From ids to text: the words of hypotheses, and the names of units. */
#include <stddef.h>
#include <string.h>

#include "search/search_internal.h"
#include "text/units.h"

void at_search_clean(at_buffer *text, const char *bytes, size_t size)
{
    while (size > 0) {
        int32_t point;
        bool broken;
        char clean[4];
        size_t length = at_point_read(bytes, size, &point, &broken);
        at_buffer_add(text, clean, at_point_write(point, clean));
        bytes += length;
        size -= length;
    }
}

/* The text collected in work->text, as a string in the window's memory. */
static char *take_text(at_search_work *work)
{
    size_t size = work->text.size;
    char *copy = work->text.failed ? NULL : at_arena_take(work->window, size + 1);
    if (!copy) {
        at_search_no_memory(work);
        return NULL;
    }
    if (size)
        memcpy(copy, work->text.bytes, size);
    copy[size] = 0;
    work->text.size = 0;
    return copy;
}

/* A unit as the line spells it. */
static void add_unit(at_buffer *text, const at_encoded *encoded, int64_t unit)
{
    const int32_t *offset = encoded->offsets + 2 * unit;
    at_search_clean(text, encoded->line.text + offset[0], (size_t)(offset[1] - offset[0]));
}

typedef struct wording {
    const at_search_work *work;
    const at_sentence *sentence;
    const at_hypothesis *hypothesis;
} wording;

/* A cell of a picture's grid: "row,column", from 1. */
static void add_cell(at_search_work *work, const at_encoded *source, int64_t cell)
{
    int64_t height, width;
    at_picture_source_grid(work->pictures, source->ids[cell], &height, &width);
    at_buffer_print(&work->text, "%lld,%lld", (long long)(cell / width) + 1, (long long)(cell % width) + 1);
}

/* Replaces an unknown unit: by the text that was given for it, or, if wanted, by the source word it is linked to. */
static bool replace(void *context, int64_t unit, at_buffer *text)
{
    const wording *w = context;
    const at_sentence *sentence = w->sentence;
    if (unit < sentence->target.count)
        add_unit(text, &sentence->target, unit);
    else if (w->work->settings->replace_unknown && !w->work->pictures && w->hypothesis->links[unit] >= 0)
        add_unit(text, &sentence->source, w->hypothesis->links[unit]);
    else
        return false;
    return true;
}

static void add_target_name(at_search_work *work, const at_sentence *sentence, const at_hypothesis *hypothesis,
                            int64_t unit)
{
    int32_t id = unit < hypothesis->count ? hypothesis->ids[unit] : AT_END;
    wording w = {work, sentence, hypothesis};
    if (id == AT_UNKNOWN && replace(&w, unit, &work->text))
        return;
    const char *name = at_vocabulary_unit(work->translator->target, id);
    at_buffer_add(&work->text, name ? name : "", name ? strlen(name) : 0); /* units are valid UTF-8 already */
}

static bool name_target(at_search_work *work, const at_sentence *sentence, at_hypothesis *hypothesis)
{
    const char **names = at_search_alloc(work, work->window, hypothesis->count + 1, sizeof *names);
    for (int64_t t = 0; names && t <= hypothesis->count; t++) {
        add_target_name(work, sentence, hypothesis, t);
        if (!(names[t] = take_text(work)))
            return false;
    }
    hypothesis->names = names;
    return names;
}

bool at_search_names(const at_search_work *work)
{
    return work->settings->wants_weights || work->job->observer || work->job->branches;
}

bool at_search_name_source(at_search_work *work, at_sentence *sentence)
{
    const at_encoded *source = &sentence->source;
    const char **names = at_search_alloc(work, work->window, source->count, sizeof *names);
    for (int64_t s = 0; names && s < source->count; s++) {
        /* By the vocabulary's name, which shows whether a subword starts a word; an unknown unit as it is written. */
        const char *name = work->pictures ? "" : at_vocabulary_unit(work->translator->source, source->ids[s]);
        if (work->pictures)
            add_cell(work, source, s);
        else if (source->ids[s] == AT_UNKNOWN || !name)
            add_unit(&work->text, source, s);
        else
            at_buffer_add(&work->text, name, strlen(name));
        if (!(names[s] = take_text(work)))
            return false;
    }
    sentence->result.source_names = names;
    return names;
}

bool at_search_word(at_search_work *work, const at_sentence *sentence, at_hypothesis *hypothesis)
{
    wording w = {work, sentence, hypothesis};
    at_search_clean(&work->text, sentence->before.text, sentence->before.size);
    at_vocabulary_write(work->translator->target, hypothesis->ids, hypothesis->count, replace, &w, &work->text);
    hypothesis->size = work->text.size;
    hypothesis->text = take_text(work);
    hypothesis->source_units = sentence->source.count;
    return hypothesis->text && (!at_search_names(work) || name_target(work, sentence, hypothesis));
}

/* The text of the first units is how the text of all begins: up to blanks at its end, marks that join tokens, and a
 * character of which a unit is only some bytes. */
const int32_t *at_search_ends(at_search_work *work, const at_sentence *sentence, const at_hypothesis *hypothesis)
{
    wording w = {work, sentence, hypothesis};
    int32_t *ends = at_search_alloc(work, work->window, hypothesis->count, sizeof *ends);
    for (int64_t t = 0; ends && t < hypothesis->count; t++) {
        at_search_clean(&work->text, sentence->before.text, sentence->before.size);
        at_vocabulary_write(work->translator->target, hypothesis->ids, t + 1, replace, &w, &work->text);
        size_t end = work->text.size < hypothesis->size ? work->text.size : hypothesis->size;
        while (end < hypothesis->size && ((unsigned char)hypothesis->text[end] & 0xC0) == 0x80)
            end++;
        ends[t] = t > 0 && ends[t - 1] > (int32_t)end ? ends[t - 1] : (int32_t)end;
        work->text.size = 0;
    }
    if (!work->text.failed)
        return ends;
    at_search_no_memory(work);
    return NULL;
}

const int32_t *at_result_ends(const at_result *result, int64_t rank)
{
    const at_sentence *sentence = (const at_sentence *)((const char *)result - offsetof(at_sentence, result));
    return sentence->ends ? sentence->ends[rank] : NULL; /* a source without a unit has none */
}
