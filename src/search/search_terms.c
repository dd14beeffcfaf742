/* The terms of a glossary in beam search: constrained search with dynamic beam allocation (Post and Vilar 2018).
 *
 * A hypothesis is in the bank of so many units of the terms as it has: all units of those it has whole, and of one that it
 * has begun those so far. In each step every hypothesis is also extended by the next units of its terms, and the slots of
 * the beam are dealt to the banks one by one, the highest first, as long as there are extensions in them: so hypotheses
 * with many units of terms do not compete with those with few, whose scores are better. Only a hypothesis with all terms
 * may end. When so few units are left that the terms just fit, they are all that may follow. */
#include <string.h>

#include "search/search_beam_internal.h"
#include "text/glossary.h"

enum { MOST_FORCED = 64, MOST_WIDTH = 32 }; /* terms of a sentence, bits of `met`; hypotheses added for their banks */

/* ---- The terms of a sentence ------------------------------------------------------------------------------------ */

static bool encode_term(at_search_work *work, const at_sentence *sentence, const at_term *term, at_encoded *units)
{
    int64_t replaced = 0;
    *units = (at_encoded){.line = term->target};
    if (!at_search_encode(work->window, work->translator->target, sentence->number, units, &replaced, work->error))
        return false;
    for (int64_t i = 0; i < units->count; i++)
        if (units->ids[i] == AT_UNKNOWN)
            units->count = 0; /* the vocabulary does not have it */
    return true;
}

static bool same_units(const at_forced_term *a, const at_encoded *b)
{
    return a->count == b->count && memcmp(a->ids, b->ids, (size_t)a->count * sizeof *a->ids) == 0;
}

/* Whether a unit's name begins, or ends, with a character that goes on in a word. */
static bool is_inside(const at_vocabulary *vocabulary, int32_t id, bool end)
{
    const char *name = at_vocabulary_unit(vocabulary, id);
    const at_line text = {name, name ? strlen(name) : 0};
    return !at_vocabulary_has_words(vocabulary) && at_glossary_goes_on(text, end);
}

static void add_forced(const at_vocabulary *vocabulary, at_terms *terms, const at_encoded *units)
{
    for (int64_t i = 0; i < terms->forced_count; i++)
        if (same_units(&terms->forced[i], units))
            return;
    if (units->count == 0 || terms->forced_count == MOST_FORCED)
        return;
    terms->forced[terms->forced_count++] =
        (at_forced_term){units->ids, units->count, is_inside(vocabulary, units->ids[0], false)};
    terms->units += units->count;
}

/* The names of its units after each other. */
static bool add_barred(at_search_work *work, at_terms *terms, const at_encoded *units)
{
    const at_vocabulary *target = work->translator->target;
    size_t size = 0;
    for (int64_t i = 0; i < units->count; i++)
        size += at_terms_name(target, units->ids[i], NULL, 0);
    if (size == 0 || size > AT_TERM_UNITS_BYTES)
        return true;
    char *text = at_search_alloc(work, work->window, (int64_t)size, 1);
    size_t at = 0;
    for (int64_t i = 0; text && i < units->count; i++)
        at += at_terms_name(target, units->ids[i], text + at, size - at);
    terms->barred[terms->barred_count++] = (at_line){text, size};
    return text;
}

bool at_terms_read(at_search_work *work, at_sentence *sentence)
{
    const at_glossary *glossary = work->settings->glossary;
    int64_t found[AT_LINE_TERMS];
    const int64_t count = glossary ? at_glossary_find(glossary, sentence->source.line, found, AT_LINE_TERMS) : 0;
    if (count == 0 || sentence->source.count == 0)
        return true;
    if (count > AT_LINE_TERMS)
        return at_fail(work->error, AT_UNSUPPORTED, "line %lld has %lld terms of the glossary; the limit is %d",
                       (long long)sentence->number + 1, (long long)count, AT_LINE_TERMS);
    at_terms *terms = at_search_alloc(work, work->window, 1, sizeof *terms);
    int64_t *kept = at_search_alloc(work, work->window, count, sizeof *kept);
    at_forced_term *forced = at_search_alloc(work, work->window, MOST_FORCED, sizeof *forced);
    at_line *barred = at_search_alloc(work, work->window, count, sizeof *barred);
    if (!terms || !kept || !forced || !barred)
        return false;
    memcpy(kept, found, (size_t)count * sizeof *kept);
    *terms = (at_terms){.found = kept, .found_count = count, .forced = forced, .barred = barred};
    for (int64_t i = 0; i < count; i++) {
        const at_term *term = at_glossary_term(glossary, found[i]);
        at_encoded units;
        if (!encode_term(work, sentence, term, &units))
            return false;
        if (!term->forbidden)
            add_forced(work->translator->target, terms, &units);
        else if (!add_barred(work, terms, &units))
            return false;
    }
    sentence->terms = terms;
    return true;
}

void at_terms_tell(const at_search_work *work, const at_sentence *sentence)
{
    const at_terms *terms = sentence->terms;
    for (int64_t i = 0; terms && work->settings->on_term && i < terms->found_count; i++) {
        const at_term *term = at_glossary_term(work->settings->glossary, terms->found[i]);
        const at_hypothesis *best = &sentence->result.best[0];
        if (at_glossary_has((at_line){best->text, best->size}, term->target) == term->forbidden)
            work->settings->on_term(work->job->context, sentence->number, term->target, term->forbidden);
    }
}

/* ---- Banks ------------------------------------------------------------------------------------------------------ */

typedef struct extension {
    int64_t from; /* the hypothesis */
    at_candidate unit;
    double score;
    int64_t bank; /* -1: it is taken */
} extension;

struct at_banks {
    const at_vocabulary *target;
    int32_t *tail; /* the last units of a hypothesis, the last first */
    int64_t tail_count, longest;
    at_candidate *also; /* [rows, MOST_ALSO] */
    extension *extensions;
    int64_t *ready, *slots; /* [banks] extensions that are there, and those to take */
};

enum { MOST_ALSO = 2 * MOST_FORCED };

int64_t at_terms_width(const at_terms *terms, int64_t beam)
{
    const int64_t banks = terms && terms->units > 0 ? terms->units + 1 : 0;
    const int64_t more = banks < MOST_WIDTH ? banks : MOST_WIDTH;
    return more > beam ? more : beam;
}

bool at_banks_start(at_beam_batch *batch)
{
    at_search_work *work = batch->work;
    int64_t units = 0, longest = 0;
    for (int64_t n = 0; n < batch->beam_count; n++) {
        const at_terms *terms = batch->beams[n].sentence->terms;
        for (int64_t i = 0; terms && i < terms->forced_count; i++)
            longest = terms->forced[i].count > longest ? terms->forced[i].count : longest;
        units = terms && terms->units > units ? terms->units : units;
    }
    if (units == 0)
        return true;
    struct at_banks *banks = at_search_alloc(work, work->batch, 1, sizeof *banks);
    if (!banks)
        return false;
    banks->target = work->translator->target;
    banks->longest = longest + 1; /* and the unit before it */
    banks->tail = at_search_alloc(work, work->batch, banks->longest, sizeof *banks->tail);
    banks->also = at_search_alloc(work, work->batch, batch->beam_count * batch->width * MOST_ALSO, sizeof *banks->also);
    banks->extensions =
        at_search_alloc(work, work->batch, batch->width * (batch->most + MOST_ALSO), sizeof *banks->extensions);
    banks->ready = at_search_alloc(work, work->batch, units + 1, sizeof *banks->ready);
    banks->slots = at_search_alloc(work, work->batch, units + 1, sizeof *banks->slots);
    batch->banks = banks;
    return work->error->code == AT_OK;
}

static void read_tail(const at_beam_batch *batch, const at_live *live)
{
    struct at_banks *banks = batch->banks;
    const at_step_node *node = batch->work->nodes->node;
    int32_t at = live->node;
    for (banks->tail_count = 0; at >= 0 && banks->tail_count < banks->longest; at = node[at].parent)
        banks->tail[banks->tail_count++] = node[at].id;
}

/* The unit `back` before the end of the tail, which `id` may follow; -1: id does not count. */
static int32_t unit_of(const struct at_banks *banks, int32_t id, int64_t back)
{
    back -= id >= 0;
    return back < 0 ? id : back < banks->tail_count ? banks->tail[back] : -1;
}

/* Whether the tail and `id` end in the first `count` units of a term, at the beginning of a word. */
static bool ends_in(const struct at_banks *banks, int32_t id, const at_forced_term *term, int64_t count)
{
    for (int64_t back = 0; back < count; back++)
        if (unit_of(banks, id, back) != term->ids[count - 1 - back])
            return false;
    const int32_t before = term->joins ? unit_of(banks, id, count) : -1;
    return before < 0 || !is_inside(banks->target, before, true);
}

/* How many units of the term the tail and `id` end in, of one that is not whole. */
static int64_t begun(const struct at_banks *banks, int32_t id, const at_forced_term *term)
{
    int64_t count = term->count - 1;
    while (count > 0 && !ends_in(banks, id, term, count))
        count--;
    return count;
}

static uint64_t met_with(const struct at_banks *banks, const at_terms *terms, uint64_t met, int32_t id)
{
    for (int64_t i = 0; i < terms->forced_count; i++)
        if (!(met >> i & 1) && ends_in(banks, id, &terms->forced[i], terms->forced[i].count))
            met |= (uint64_t)1 << i;
    return met;
}

uint64_t at_terms_met(const at_beam_batch *batch, const at_beam *b, const at_live *live, int32_t id)
{
    if (!b->sentence->terms || b->sentence->terms->units == 0 || id == AT_END)
        return live->met;
    read_tail(batch, live);
    return met_with(batch->banks, b->sentence->terms, live->met, id);
}

int64_t at_terms_unmet(const at_terms *terms, uint64_t met)
{
    int64_t units = 0;
    for (int64_t i = 0; terms && i < terms->forced_count; i++)
        units += met >> i & 1 ? 0 : terms->forced[i].count;
    return units;
}

/* Units of the terms that are whole, and of the one that is begun farthest. */
static int64_t bank_of(const struct at_banks *banks, const at_terms *terms, uint64_t met, int32_t id)
{
    int64_t most = 0;
    for (int64_t i = 0; i < terms->forced_count; i++) {
        const int64_t count = met >> i & 1 ? 0 : begun(banks, id, &terms->forced[i]);
        most = count > most ? count : most;
    }
    return terms->units - at_terms_unmet(terms, met) + most;
}

static void add_also(at_row_task *task, int32_t id)
{
    for (int64_t i = 0; i < task->also_count; i++)
        if (task->also[i].id == id)
            return;
    task->also[task->also_count++] = (at_candidate){.id = id};
}

void at_banks_set(at_beam_batch *batch, const at_beam *b, int64_t i, at_row_task *task)
{
    const at_terms *terms = b->sentence->terms;
    const at_live *live = &b->live[i];
    struct at_banks *banks = batch->banks;
    if (!terms || at_terms_unmet(terms, live->met) == 0 || task->only >= 0)
        return;
    read_tail(batch, live);
    task->no_end = true;
    task->also = banks->also + (b->first + i) * MOST_ALSO;
    int32_t next = -1;
    int64_t most = -1;
    for (int64_t k = 0; k < terms->forced_count; k++) {
        const at_forced_term *term = &terms->forced[k];
        if (live->met >> k & 1)
            continue;
        const int64_t count = begun(banks, -1, term);
        add_also(task, term->ids[count]);
        add_also(task, term->ids[0]);
        if (count > most) {
            most = count;
            next = term->ids[count];
        }
    }
    if (batch->step + at_terms_unmet(terms, live->met) >= b->longest) { /* another unit would break off what is begun */
        task->only = next;
        task->also_count = 0;
    }
}

static int64_t add_extension(struct at_banks *banks, const at_terms *terms, const at_beam *b, int64_t from,
                             at_candidate unit, int64_t count)
{
    const uint64_t met = unit.id == AT_END ? b->live[from].met : met_with(banks, terms, b->live[from].met, unit.id);
    banks->extensions[count] = (extension){.from = from,
                                           .unit = unit,
                                           .score = b->live[from].score + unit.log_prob,
                                           .bank = bank_of(banks, terms, met, unit.id == AT_END ? -1 : unit.id)};
    return count + 1;
}

static int64_t read_extensions(at_beam_batch *batch, const at_beam *b)
{
    struct at_banks *banks = batch->banks;
    int64_t count = 0;
    for (int64_t i = 0; i < b->live_count; i++) {
        const at_row_task *task = &batch->tasks[b->first + i];
        read_tail(batch, &b->live[i]);
        for (int64_t k = 0; k < task->count; k++)
            count = add_extension(banks, b->sentence->terms, b, i, task->candidates[k], count);
        for (int64_t k = 0; k < task->also_count; k++) {
            int64_t same = 0;
            while (same < task->count && task->candidates[same].id != task->also[k].id)
                same++;
            if (same == task->count)
                count = add_extension(banks, b->sentence->terms, b, i, task->also[k], count);
        }
    }
    return count;
}

/* One slot to each bank that has an extension left, from the highest down, again and again. */
static void deal_slots(struct at_banks *banks, int64_t count, int64_t highest, int64_t slots)
{
    memset(banks->ready, 0, (size_t)(highest + 1) * sizeof *banks->ready);
    memset(banks->slots, 0, (size_t)(highest + 1) * sizeof *banks->slots);
    for (int64_t i = 0; i < count; i++)
        banks->ready[banks->extensions[i].bank]++;
    for (bool dealt = true; dealt && slots > 0;) {
        dealt = false;
        for (int64_t bank = highest; bank >= 0 && slots > 0; bank--)
            if (banks->ready[bank] > banks->slots[bank]) {
                banks->slots[bank]++;
                slots--;
                dealt = true;
            }
    }
}

void at_banks_extend(at_beam_batch *batch, at_beam *b, const at_real *weights)
{
    struct at_banks *banks = batch->banks;
    const int64_t count = read_extensions(batch, b);
    deal_slots(banks, count, b->sentence->terms->units, b->width - b->ended_count);
    for (;;) { /* the best score first; of equals the first hypothesis */
        extension *best = NULL;
        for (extension *e = banks->extensions; e < banks->extensions + count; e++)
            if (e->bank >= 0 && banks->slots[e->bank] > 0 && (!best || e->score > best->score))
                best = e;
        if (!best)
            break;
        banks->slots[best->bank]--;
        best->bank = -1;
        at_beam_extend(batch, b, best->from, best->unit, weights);
    }
}
