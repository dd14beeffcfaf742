/* Is a row worse than the best one, or could that be chance? Paired bootstrap resampling over the lines of the test set,
 * with the outputs of all seeds one after another. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"

/* The cell with the best mean of a measure, the first of equals; -1: none has one. */
static int best_cell(const compare_table *table, int measure)
{
    const compare_measure *m = &table->measure[measure];
    double best = -INFINITY, mean, spread;
    int found = -1;
    for (int cell = 0; cell < table->spec->cell_count; cell++) {
        compare_mean(table, cell, measure, &mean, &spread);
        if (!isnan(mean) && m->better * mean > best) {
            best = m->better * mean;
            found = cell;
        }
    }
    return found;
}

static bool has_value(const compare_table *table, int run, int measure)
{
    return table->run[run].state == RUN_DONE && !isnan(table->run[run].value[measure]);
}

/* Lines of several runs, or their references, one after another. */
typedef struct pool {
    at_line *line, *reference;
    int64_t count;
} pool;

static bool pool_add(pool *p, const at_line_list *lines, const at_line_list *references, at_error *error)
{
    const size_t count = (size_t)(p->count + lines->count);
    at_line *line = realloc(p->line, count * sizeof *line);
    p->line = line ? line : p->line;
    at_line *reference = realloc(p->reference, count * sizeof *reference);
    p->reference = reference ? reference : p->reference;
    if (!line || !reference)
        return fail(error, AT_MEMORY, "out of memory for the comparison of rows");
    memcpy(p->line + p->count, lines->line, (size_t)lines->count * sizeof *line);
    memcpy(p->reference + p->count, references->line, (size_t)lines->count * sizeof *reference);
    p->count += lines->count;
    return true;
}

/* The scores of a cell over the seeds that both cells have a value for. */
static at_scores *pooled(const compare_table *table, int measure, int cell, int other, at_error *error)
{
    const compare_measure *m = &table->measure[measure];
    const compare_data *data = table->data;
    const bool links = at_metric_named(m->metric)->alignments;
    const at_line_list *references = links ? data->links[m->set] : data->target[m->set];
    const int cells = table->spec->cell_count, seeds = table->spec->seed_count;
    at_line_list *lists[MOST_SEEDS] = {0};
    pool p = {0};
    for (int s = 0; s < seeds && error->code == AT_OK; s++) {
        const compare_run *run = &table->run[s * cells + cell];
        if (!has_value(table, s * cells + cell, measure) || !has_value(table, s * cells + other, measure))
            continue;
        lists[s] = compare_run_lines(run, links ? "align" : compare_set_names[m->set], references->count, error);
        if (lists[s])
            pool_add(&p, lists[s], references, error);
    }
    const at_score_settings settings = compare_scoring(table->spec);
    const at_line *const against = p.reference;
    at_scores *scores = p.count && error->code == AT_OK
                            ? at_scores_new(m->metric, &settings, p.line, p.count, &against, 1, error)
                            : NULL;
    for (int s = 0; s < seeds; s++)
        at_line_list_free(lists[s]);
    free(p.line);
    free(p.reference);
    return scores;
}

static bool compare_cells(const compare_table *table, int measure, int cell, int best, double *p, at_error *error)
{
    at_comparison comparison = {0};
    at_scores *own = pooled(table, measure, cell, best, error), *other = pooled(table, measure, best, cell, error);
    const bool good = own && other && at_scores_compare(own, other, &comparison, error);
    if (good)
        *p = comparison.difference == 0 ? 1 : comparison.p;
    at_scores_free(own);
    at_scores_free(other);
    return error->code == AT_OK;
}

bool compare_significance(compare_table *table, at_error *error)
{
    const int cells = table->spec->cell_count, measures = table->measure_count;
    table->p = malloc((size_t)(cells * measures) * sizeof *table->p);
    if (!table->p)
        return fail(error, AT_MEMORY, "out of memory for the comparison of rows");
    for (int i = 0; i < cells * measures; i++)
        table->p[i] = NAN;
    for (int m = 0; m < table->first_cost; m++) {
        const compare_measure *one = &table->measure[m];
        const int best = one->part || !one->metric ? -1 : best_cell(table, m);
        for (int cell = 0; best >= 0 && cell < cells; cell++)
            if (cell != best && !compare_cells(table, m, cell, best, &table->p[cell * measures + m], error))
                return false;
    }
    return true;
}

double compare_p(const compare_table *table, int cell, int measure)
{
    return table->p ? table->p[cell * table->measure_count + measure] : NAN;
}

bool compare_is_worse(const compare_table *table, int cell, int measure)
{
    return compare_p(table, cell, measure) < 0.05;
}
