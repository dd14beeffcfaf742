/* The table of attend compare as JSON: unrounded, with every run and its command. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "compare/compare.h"
#include "text_file.h"

const char *const compare_states[] = {"waiting", "done", "failed", "not possible"};

/* JSON has no NaN. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* JSON is UTF-8: each invalid byte of a name or a path becomes U+FFFD. */
static json_t *words(const char *text)
{
    json_t *whole = text ? json_string(text) : json_null();
    text_file repaired;
    at_error error = {0};
    if (whole || !text_open(&repaired, &error))
        return whole;
    while (*text) {
        utf8proc_int32_t point;
        const utf8proc_ssize_t length = utf8proc_iterate((const utf8proc_uint8_t *)text, -1, &point);
        fprintf(repaired.stream, "%.*s", length > 0 ? (int)length : 3, length > 0 ? text : "\xEF\xBF\xBD");
        text += length > 0 ? length : 1;
    }
    char *taken = text_take(&repaired, &error);
    whole = taken ? json_string(taken) : NULL;
    free(taken);
    return whole;
}

/* The values of one document. A value that cannot be made or added is remembered: the document is not whole. */
typedef struct document {
    const compare_table *table;
    bool whole;
} document;

static void put(document *d, json_t *object, const char *name, json_t *value)
{
    if (json_object_set_new(object, name, value) != 0)
        d->whole = false;
}

static void append(document *d, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0)
        d->whole = false;
}

static json_t *measure_json(document *d, const compare_measure *m)
{
    const compare_spec *spec = d->table->spec;
    json_t *one = json_object();
    put(d, one, "name", json_string(m->name));
    put(d, one, "title", json_string(m->title));
    put(d, one, "better", json_string(m->better > 0 ? "more" : m->better < 0 ? "less" : "neither"));
    if (m->metric) {
        put(d, one, "metric", json_string(m->metric));
        put(d, one, "set", json_string(compare_set_names[m->set]));
    }
    if (m->metric && at_metric_named(m->metric)->tokenises)
        put(d, one, "tokenise", json_string(spec->tokenise ? spec->tokenise : at_tokeniser_name(0)));
    if (m->metric && compare_scoring(spec).lowercase)
        put(d, one, "lowercase", json_true());
    if (m->part) {
        put(d, one, "least_length", json_integer(m->least));
        put(d, one, "most_length", json_integer(m->most));
    }
    return one;
}

static json_t *spec_json(document *d)
{
    const compare_table *table = d->table;
    const compare_spec *spec = table->spec;
    json_t *all = json_object(), *seeds = json_array(), *measures = json_array(), *axes = json_array();
    for (int i = 0; i < spec->seed_count; i++)
        append(d, seeds, json_integer(spec->seed[i]));
    for (int a = 0; a < spec->axis_count; a++)
        append(d, axes, json_string(spec->axis[a].key ? spec->axis[a].key->option->name : "row"));
    for (int i = 0; i < table->measure_count; i++)
        append(d, measures, measure_json(d, &table->measure[i]));
    put(d, all, "attend", json_string(at_version()));
    put(d, all, "spec", words(spec->path));
    put(d, all, "title", words(spec->title));
    put(d, all, "spread", json_string("standard deviation over the seeds, n - 1"));
    put(d, all, "p", json_string("paired bootstrap against the best row, all seeds together; null: the best itself"));
    put(d, all, "jobs", json_integer(table->jobs));
    put(d, all, "threads", json_integer(table->threads));
    put(d, all, "seeds", seeds);
    put(d, all, "axes", axes);
    put(d, all, "measures", measures);
    return all;
}

static json_t *run_json(document *d, const compare_run *run)
{
    const compare_table *table = d->table;
    json_t *one = json_object();
    put(d, one, "seed", json_integer(run->seed));
    put(d, one, "state", json_string(compare_states[run->state]));
    put(d, one, "line", words(run->line));
    put(d, one, "folder", words(run->folder));
    if (run->state == RUN_FAILED || run->state == RUN_REFUSED)
        put(d, one, "why", words(run->why));
    if (run->state != RUN_DONE)
        return one;
    put(d, one, "seconds", number(run->seconds));
    for (int m = 0; m < table->measure_count; m++)
        put(d, one, table->measure[m].name, number(run->value[m]));
    return one;
}

static json_t *row_json(document *d, int cell)
{
    const compare_table *table = d->table;
    const compare_spec *spec = table->spec;
    json_t *row = json_object(), *settings = json_object(), *means = json_object(), *spreads = json_object();
    json_t *runs = json_array(), *p = json_object();
    for (int a = 0; a < spec->axis_count; a++)
        put(d, settings, spec->axis[a].key ? spec->axis[a].key->option->name : "row",
            words(compare_value(spec, cell, a)));
    for (int m = 0; m < table->measure_count; m++) {
        double mean, spread;
        compare_mean(table, cell, m, &mean, &spread);
        put(d, means, table->measure[m].name, number(mean));
        put(d, spreads, table->measure[m].name, number(spread));
        if (table->measure[m].quality && !table->measure[m].part)
            put(d, p, table->measure[m].name, number(compare_p(table, cell, m)));
    }
    for (int i = cell; i < table->run_count; i += spec->cell_count)
        append(d, runs, run_json(d, &table->run[i]));
    put(d, row, "settings", settings);
    put(d, row, "state", json_string(compare_states[compare_cell_run(table, cell)->state]));
    put(d, row, "mean", means);
    put(d, row, "spread", spreads);
    put(d, row, "p", p);
    put(d, row, "runs", runs);
    return row;
}

bool compare_write_json(FILE *stream, const void *context)
{
    document d = {.table = context, .whole = true};
    json_t *all = spec_json(&d), *rows = json_array();
    for (int cell = 0; cell < d.table->spec->cell_count; cell++)
        append(&d, rows, row_json(&d, cell));
    put(&d, all, "rows", rows);
    char *text = d.whole ? at_json_text(all, JSON_INDENT(2)) : NULL;
    if (text)
        fprintf(stream, "%s\n", text);
    json_decref(all);
    free(text);
    return text;
}
