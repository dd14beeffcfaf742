/* The steps of a search in the page of the explorer. */
#include "draw/page_internal.h"
#include "draw/stored_internal.h"

enum { MOST_UNITS = 20000 };

static void add_names(at_buffer *text, const at_beams *beams)
{
    at_buffer_print(text, ",\n\"beam\":{\"source\":[");
    for (int64_t s = 0; s < beams->source_units; s++) {
        at_buffer_print(text, s ? "," : "");
        at_page_string(text, beams->source_names[s]);
    }
    at_buffer_print(text, "],\"steps\":[");
}

/* [parent, unit, score, log p, 0 dropped, 1 kept or 2 ended, 1 if it is part of the result] */
static void add_unit(at_buffer *text, const at_beam_unit *u, bool first)
{
    at_buffer_print(text, "%s[%lld,", first ? "" : ",", (long long)u->parent);
    at_page_string(text, u->name);
    at_buffer_print(text, ",%.4f,%.4f,%d,%d]", u->score, u->log_prob, !u->kept ? 0 : u->ended ? 2 : 1, u->best);
}

void at_page_beams(at_buffer *text, const at_beams *beams)
{
    const int64_t S = beams->source_units;
    if (beams->count > MOST_UNITS || S > AT_STORED_LONG)
        return;
    add_names(text, beams);
    for (int64_t i = 0, step = 0; step < beams->steps; step++) {
        const int64_t first = i;
        int64_t parents = 0;
        at_buffer_print(text, "%s{\"units\":[", step ? ",\n" : "");
        for (; i < beams->count && beams->unit[i].step == step; i++) {
            add_unit(text, &beams->unit[i], i == first);
            parents = beams->unit[i].parent >= parents ? beams->unit[i].parent + 1 : parents;
        }
        at_buffer_print(text, "]");
        if (beams->weights && S > 0) {
            at_buffer_print(text, ",");
            at_stored_add(text, beams->weights + beams->looks[step] * S, parents, S, 255);
        }
        at_buffer_print(text, "}");
    }
    at_buffer_print(text, "]}");
}
