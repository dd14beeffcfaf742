/* The learning curves of the runs, from their logs. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"

enum { MOST_POINTS = 150 }; /* of a curve that is drawn */

/* The metric of the validations: the first that the SPEC names, or the default of attend train. */
static void valid_metric(const compare_spec *spec, char out[60])
{
    const char *given = compare_setting(spec, "valid-metric");
    snprintf(out, 60, "%.*s", given ? (int)strcspn(given, ", ") : 4, given ? given : "loss");
}

/* Every second point, and the last, until there are few enough. */
static int thin_out(svg_point *point, int count)
{
    while (count > MOST_POINTS) {
        const svg_point last = point[count - 1];
        int kept = 0;
        for (int i = 1; i < count; i += 2)
            point[kept++] = point[i];
        if (count % 2)
            point[kept++] = last;
        count = kept;
    }
    return count;
}

static void add_point(svg_point *point, int *count, const json_t *report, const char *name)
{
    const json_t *value = json_object_get(report, name);
    const double update = json_number_value(json_object_get(report, "update"));
    if (json_is_number(value) && (*count == 0 || update > point[*count - 1].x))
        point[(*count)++] = (svg_point){update, json_number_value(value), 0};
}

static bool read_curve(const compare_run *run, const char *metric, compare_curve *curve, at_error *error)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/model.log.jsonl", run->folder);
    at_line_list *lines = at_line_list_read(path, error);
    const size_t room = lines ? (size_t)lines->count + 1 : 1;
    curve->loss = calloc(room, sizeof *curve->loss);
    curve->valid = calloc(room, sizeof *curve->valid);
    if (!curve->loss || !curve->valid)
        fail(error, AT_MEMORY, "out of memory for the learning curves");
    for (int64_t i = 0; error->code == AT_OK && i < lines->count; i++) {
        at_error unread = {0}; /* as of the last line of a run that was killed */
        json_t *report = at_json_read(lines->line[i].text, lines->line[i].size, path, &unread);
        const char *event = json_string_value(json_object_get(report, "event"));
        if (unread.code == AT_MEMORY)
            fail(error, AT_MEMORY, "%s", unread.text);
        if (event && strcmp(event, "update") == 0)
            add_point(curve->loss, &curve->losses, report, "cost");
        else if (event && strcmp(event, "valid") == 0)
            add_point(curve->valid, &curve->valids, report, metric);
        json_decref(report);
    }
    curve->losses = thin_out(curve->loss, curve->losses);
    curve->valids = thin_out(curve->valid, curve->valids);
    at_line_list_free(lines);
    return error->code == AT_OK;
}

bool compare_curves(compare_table *table, at_error *error)
{
    table->curve = calloc((size_t)table->run_count, sizeof *table->curve);
    if (!table->curve)
        return fail(error, AT_MEMORY, "out of memory for the learning curves");
    valid_metric(table->spec, table->valid_metric);
    for (int i = 0; i < table->run_count; i++)
        if (table->run[i].state == RUN_DONE &&
            !read_curve(&table->run[i], table->valid_metric, &table->curve[i], error))
            return false;
    return true;
}

void compare_curves_free(compare_table *table)
{
    for (int i = 0; table->curve && i < table->run_count; i++) {
        free(table->curve[i].loss);
        free(table->curve[i].valid);
    }
    free(table->curve);
}
