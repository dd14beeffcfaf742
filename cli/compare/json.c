/* The table of attend compare as JSON: unrounded, with every run and its command. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "compare/compare.h"

static const char *const states[] = {"waiting", "done", "failed", "not possible"};

/* JSON has no NaN. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* JSON is UTF-8: each invalid byte of a name or a path becomes U+FFFD. */
static json_t *words(const char *text)
{
    json_t *whole = text ? json_string(text) : json_null();
    char *repaired = NULL;
    size_t size = 0;
    FILE *stream = whole ? NULL : open_memstream(&repaired, &size);
    if (!stream)
        return whole;
    while (*text) {
        utf8proc_int32_t point;
        const utf8proc_ssize_t length = utf8proc_iterate((const utf8proc_uint8_t *)text, -1, &point);
        fprintf(stream, "%.*s", length > 0 ? (int)length : 3, length > 0 ? text : "\xEF\xBF\xBD");
        text += length > 0 ? length : 1;
    }
    whole = fclose(stream) == 0 ? json_string(repaired) : NULL;
    free(repaired);
    return whole;
}

static json_t *spec_json(const compare_table *table)
{
    const compare_spec *spec = table->spec;
    json_t *seeds = json_array(), *measures = json_array(), *axes = json_array();
    for (int i = 0; i < spec->seed_count; i++)
        json_array_append_new(seeds, json_integer(spec->seed[i]));
    for (int a = 0; a < spec->axis_count; a++)
        json_array_append_new(axes, json_string(spec->axis[a].key ? spec->axis[a].key->option->name : "row"));
    for (int i = 0; i < table->measure_count; i++) {
        const compare_measure *m = &table->measure[i];
        json_t *one = json_pack("{s:s, s:s, s:s}", "name", m->name, "title", m->title, "better",
                                m->better > 0   ? "more"
                                : m->better < 0 ? "less"
                                                : "neither");
        if (m->metric)
            json_object_update_new(one, json_pack("{s:s, s:s}", "metric", m->metric, "set", compare_set_names[m->set]));
        if (m->metric && at_metric_named(m->metric)->tokenises)
            json_object_set_new(one, "tokenise", json_string(spec->tokenise ? spec->tokenise : at_tokeniser_name(0)));
        if (m->metric && compare_scoring(spec).lowercase)
            json_object_set_new(one, "lowercase", json_true());
        if (m->part)
            json_object_update_new(
                one, json_pack("{s:I, s:I}", "least_length", (json_int_t)m->least, "most_length", (json_int_t)m->most));
        json_array_append_new(measures, one);
    }
    return json_pack("{s:s, s:o, s:o, s:s, s:I, s:I, s:o, s:o, s:o}", "attend", at_version(), "spec", words(spec->path),
                     "title", words(spec->title), "spread", "standard deviation over the seeds, n - 1", "jobs",
                     (json_int_t)table->jobs, "threads", (json_int_t)table->threads, "seeds", seeds, "axes", axes,
                     "measures", measures);
}

static json_t *run_json(const compare_table *table, const compare_run *run)
{
    json_t *one = json_pack("{s:I, s:s, s:o, s:o}", "seed", (json_int_t)run->seed, "state", states[run->state], "line",
                            words(run->line), "folder", words(run->folder));
    if (run->state == RUN_FAILED || run->state == RUN_REFUSED)
        json_object_set_new(one, "why", words(run->why));
    if (run->state != RUN_DONE)
        return one;
    json_object_set_new(one, "seconds", number(run->seconds));
    for (int m = 0; m < table->measure_count; m++)
        json_object_set_new(one, table->measure[m].name, number(run->value[m]));
    return one;
}

static json_t *row_json(const compare_table *table, int cell)
{
    const compare_spec *spec = table->spec;
    json_t *settings = json_object(), *means = json_object(), *spreads = json_object(), *runs = json_array();
    for (int a = 0; a < spec->axis_count; a++)
        json_object_set_new(settings, spec->axis[a].key ? spec->axis[a].key->option->name : "row",
                            words(compare_value(spec, cell, a)));
    for (int m = 0; m < table->measure_count; m++) {
        double mean, spread;
        compare_mean(table, cell, m, &mean, &spread);
        json_object_set_new(means, table->measure[m].name, number(mean));
        json_object_set_new(spreads, table->measure[m].name, number(spread));
    }
    for (int i = cell; i < table->run_count; i += spec->cell_count)
        json_array_append_new(runs, run_json(table, &table->run[i]));
    return json_pack("{s:o, s:s, s:o, s:o, s:o}", "settings", settings, "state",
                     states[compare_cell_run(table, cell)->state], "mean", means, "spread", spreads, "runs", runs);
}

bool compare_write_json(FILE *stream, const void *context)
{
    const compare_table *table = context;
    json_t *all = spec_json(table), *rows = json_array();
    for (int cell = 0; cell < table->spec->cell_count; cell++)
        json_array_append_new(rows, row_json(table, cell));
    json_object_set_new(all, "rows", rows);
    const bool good = all && json_dumpf(all, stream, JSON_INDENT(2)) == 0 && fputc('\n', stream) != EOF;
    json_decref(all);
    return good;
}
