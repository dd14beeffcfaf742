/* The learning curves of the runs, from their logs. */
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"
#include "train_log.h"

/* The metric of the validations: the first that the SPEC names, or the default of attend train. */
static void valid_metric(const compare_spec *spec, char out[60])
{
    const char *given = compare_setting(spec, "valid-metric");
    snprintf(out, 60, "%.*s", given ? (int)strcspn(given, ", ") : 4, given ? given : "loss");
}

/* The points of a series, few enough to draw, out of the log. */
static void take_series(train_log *log, const char *name, svg_point **point, int *count)
{
    log_series *s = (log_series *)train_log_find(log, name);
    if (!s)
        return;
    *count = thin_out(s->point, s->count);
    *point = s->point;
    s->point = NULL;
}

static bool read_curve(const compare_run *run, const char *metric, compare_curve *curve, at_error *error)
{
    char path[PATH];
    train_log log;
    snprintf(path, sizeof path, "%s/model.log.jsonl", run->folder);
    const bool done = train_log_read(path, &log, error);
    take_series(&log, "cost", &curve->loss, &curve->losses);
    take_series(&log, metric, &curve->valid, &curve->valids);
    train_log_free(&log);
    return done;
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
