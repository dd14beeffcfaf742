/* What attend compare measures of a run, and of a cell over its seeds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/step.h"

/* ---- Lengths -------------------------------------------------------------------------------------------------- */

int64_t compare_length(at_line line, bool letters)
{
    int64_t count = 0;
    if (!letters)
        return at_word_numbers(line, NULL, 0, NULL);
    for (size_t i = 0; i < line.size; i++)
        count += ((unsigned char)line.text[i] & 0xC0) != 0x80;
    return count;
}

static int by_size(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* Splits the lengths of the test sources into quarters of about equally many lines; lines of one length stay together.
 * start[i] is the shortest length of group i, start[count] one more than the longest. Returns their count. */
static int split_lengths(const at_line_list *lines, bool letters, int64_t start[MOST_BUCKETS + 1], at_error *error)
{
    int64_t *length = malloc((size_t)lines->count * sizeof *length);
    int count = 0;
    if (!length) {
        fail(error, AT_MEMORY, "out of memory for the lengths");
        return 0;
    }
    for (int64_t i = 0; i < lines->count; i++)
        length[i] = compare_length(lines->line[i], letters);
    qsort(length, (size_t)lines->count, sizeof *length, by_size);
    for (int b = 0; b < MOST_BUCKETS; b++) {
        int64_t from = length[lines->count * b / MOST_BUCKETS];
        if (count == 0 || from > start[count - 1])
            start[count++] = from;
    }
    start[count] = length[lines->count - 1] + 1;
    free(length);
    return count;
}

/* ---- What is measured ----------------------------------------------------------------------------------------- */

static compare_measure *add(compare_table *table, const char *name, const char *title, int decimals, int better)
{
    compare_measure *m = &table->measure[table->measure_count++];
    *m = (compare_measure){.decimals = decimals, .better = better};
    snprintf(m->name, sizeof m->name, "%s", name);
    snprintf(m->title, sizeof m->title, "%s", title);
    return m;
}

static compare_measure *add_score(compare_table *table, const char *metric, int set, const char *name,
                                  const char *title)
{
    compare_measure *m = add(table, name, title, 1, at_metric_named(metric)->better);
    m->quality = true;
    m->metric = metric;
    m->set = set;
    return m;
}

/* The same for the lines whose sources have these lengths. */
static void add_part(compare_table *table, const char *metric, int set, int64_t least, int64_t most, const char *name,
                     const char *title)
{
    compare_measure *m = add_score(table, metric, set, name, title);
    m->part = true;
    m->least = least;
    m->most = most;
}

static void range_text(int64_t least, int64_t most, char dash, char *out, size_t size)
{
    if (least == most)
        snprintf(out, size, "%lld", (long long)least);
    else
        snprintf(out, size, "%lld%c%lld", (long long)least, dash, (long long)most);
}

bool compare_measures(compare_table *table, at_error *error)
{
    const compare_spec *spec = table->spec;
    const compare_data *data = table->data;
    char name[60], title[60], range[40];
    for (int i = 0; i < spec->metric_count; i++)
        add_score(table, spec->metric[i], TEST, spec->metric[i], spec->metric[i]);
    int64_t start[MOST_BUCKETS + 1] = {0};
    const int buckets = split_lengths(data->source[TEST], data->letters, start, error);
    for (int b = 0; b < buckets && buckets > 1; b++) {
        range_text(start[b], start[b + 1] - 1, '_', range, sizeof range);
        snprintf(name, sizeof name, "%s_%s", spec->metric[0], range);
        range_text(start[b], start[b + 1] - 1, '-', range, sizeof range);
        snprintf(title, sizeof title, "%s %s", range, data->letters ? "letters" : "words");
        add_part(table, spec->metric[0], TEST, start[b], start[b + 1] - 1, name, title);
    }
    for (int i = 0; data->source[BEYOND] && i < spec->metric_count; i++) {
        snprintf(name, sizeof name, "beyond_%s", spec->metric[i]);
        snprintf(title, sizeof title, "beyond %s", spec->metric[i]);
        add_score(table, spec->metric[i], BEYOND, name, title);
    }
    if (data->pointing)
        add(table, "pointing", "pointing", 1, 1)->quality = true;
    else if (data->links[TEST])
        add_score(table, "aer", TEST, "aer", "aer");
    table->first_cost = table->measure_count;
    add(table, "parameters", "parameters", 0, 0);
    add(table, "ms_per_update", "ms/update", 2, -1);
    add(table, "peak_mb", "peak MB", 1, -1);
    add(table, "words_per_second", "words/s", 0, 1);
    return error->code == AT_OK;
}

/* ---- A run's scores ------------------------------------------------------------------------------------------- */

/* The score of the lines whose sources have the lengths of the measure. */
static double score_part(const compare_table *table, const compare_measure *m, const at_scores *scores, at_error *error)
{
    const at_line_list *source = table->data->source[m->set];
    int64_t *lines = malloc((size_t)source->count * sizeof *lines), count = 0;
    if (!lines) {
        fail(error, AT_MEMORY, "out of memory for the scores");
        return NAN;
    }
    for (int64_t i = 0; i < source->count; i++) {
        const int64_t length = compare_length(source->line[i], table->data->letters);
        if (length >= m->least && length <= m->most)
            lines[count++] = i;
    }
    const double part = at_scores_part(scores, lines, count);
    free(lines);
    return part;
}

static bool score(const compare_table *table, const compare_measure *m, const at_line_list *said, double *value,
                  at_error *error)
{
    const compare_data *data = table->data;
    const at_line *const references =
        at_metric_named(m->metric)->alignments ? data->links[m->set]->line : data->target[m->set]->line;
    const at_score_settings settings = compare_scoring(table->spec);
    at_scores *scores = at_scores_new(m->metric, &settings, said->line, said->count, &references, 1, error);
    if (scores)
        *value = m->part ? score_part(table, m, scores, error) : at_scores_total(scores);
    at_scores_free(scores);
    return error->code == AT_OK;
}

at_line_list *compare_run_lines(const compare_run *run, const char *name, int64_t count, at_error *error)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s.json", run->folder, name);
    json_t *record = step_read(path, error);
    const bool none = json_object_get(record, "none");
    json_decref(record);
    if (none || error->code != AT_OK)
        return NULL;
    snprintf(path, sizeof path, "%s/%s.txt", run->folder, name);
    at_line_list *lines = at_line_list_read(path, error);
    if (lines && lines->count != count) {
        fail(error, AT_SHAPE, "'%s' has %lld lines and should have %lld; delete its directory to run it again", path,
             (long long)lines->count, (long long)count);
        at_line_list_free(lines);
        lines = NULL;
    }
    return lines;
}

/* ---- A run's costs -------------------------------------------------------------------------------------------- */

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return count == 0 ? NAN : count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Medians over the reports of training, which are robust to short disturbances; and the sum of seconds. */
static bool read_log(compare_run *run, double *ms, double *speed, at_error *error)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/model.log.jsonl", run->folder);
    at_line_list *lines = at_line_list_read(path, error);
    double *steps = lines ? malloc((size_t)(lines->count + 1) * sizeof *steps) : NULL;
    double *speeds = lines ? malloc((size_t)(lines->count + 1) * sizeof *speeds) : NULL;
    int count = 0;
    json_int_t last = 0;
    run->seconds = 0;
    for (int64_t i = 0; steps && speeds && i < lines->count; i++) {
        at_error unread = {0}; /* as of the last line of a run that was killed */
        json_t *report = at_json_read(lines->line[i].text, lines->line[i].size, path, &unread);
        if (unread.code == AT_MEMORY)
            fail(error, AT_MEMORY, "%s", unread.text);
        const char *event = json_string_value(json_object_get(report, "event"));
        const json_int_t update = json_integer_value(json_object_get(report, "update"));
        const double seconds = json_number_value(json_object_get(report, "seconds"));
        if (event && strcmp(event, "update") == 0 && update > last) {
            steps[count] = 1000 * seconds / (double)(update - last);
            speeds[count++] = json_number_value(json_object_get(report, "words_per_second"));
            run->seconds += seconds;
            last = update;
        }
        json_decref(report);
    }
    if (lines && !(steps && speeds))
        fail(error, AT_MEMORY, "out of memory for the reports in '%s'", path);
    *ms = steps ? median(steps, count) : NAN;
    *speed = speeds ? median(speeds, count) : NAN;
    free(steps);
    free(speeds);
    at_line_list_free(lines);
    return error->code == AT_OK;
}

/* All float32 arrays of a model file are parameters. */
static double count_parameters(const compare_run *run, at_error *error)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/model", run->folder);
    at_tensors *model = at_tensors_read(path, error);
    int64_t parameters = 0;
    for (int i = 0; model && i < at_tensors_count(model); i++) {
        const at_array *array = at_tensors_get(model, at_tensors_name(model, i));
        parameters += array->dtype == AT_F32 ? at_array_count(array) : 0;
    }
    at_tensors_free(model);
    return (double)parameters;
}

static bool read_costs(const compare_table *table, compare_run *run, at_error *error)
{
    char path[PATH];
    double *value = run->value + table->first_cost;
    snprintf(path, sizeof path, "%s/train.json", run->folder);
    json_t *record = step_read(path, error);
    value[0] = count_parameters(run, error);
    value[2] = json_number_value(json_object_get(record, "peak_mb"));
    json_decref(record);
    return read_log(run, &value[1], &value[3], error);
}

bool compare_measure_run(compare_table *table, compare_run *run, at_error *error)
{
    const compare_data *data = table->data;
    at_line_list *said[SETS] = {0}, *links = NULL;
    for (int s = 0; s < SETS && error->code == AT_OK; s++)
        if (data->source[s])
            said[s] = compare_run_lines(run, compare_set_names[s], data->source[s]->count, error);
    if (data->links[TEST] && error->code == AT_OK)
        links = compare_run_lines(run, "align", data->source[TEST]->count, error);
    for (int i = 0; i < table->first_cost && error->code == AT_OK; i++) {
        const compare_measure *m = &table->measure[i];
        const at_line_list *lines = !m->metric || at_metric_named(m->metric)->alignments ? links : said[m->set];
        run->value[i] = NAN;
        if (lines && m->metric)
            score(table, m, lines, &run->value[i], error);
        else if (lines)
            compare_pointing(table, lines, &run->value[i], error);
    }
    for (int s = 0; s < SETS; s++)
        at_line_list_free(said[s]);
    at_line_list_free(links);
    return error->code == AT_OK && read_costs(table, run, error);
}

/* ---- A cell --------------------------------------------------------------------------------------------------- */

int compare_mean(const compare_table *table, int cell, int measure, double *mean, double *spread)
{
    double sum = 0, squares = 0;
    int count = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = cell; i < table->run_count; i += table->spec->cell_count) {
            const double value = table->run[i].value[measure];
            if (table->run[i].state != RUN_DONE || isnan(value))
                continue;
            if (pass == 0) {
                sum += value;
                count++;
            } else {
                squares += (value - sum / count) * (value - sum / count);
            }
        }
    }
    *mean = count ? sum / count : NAN;
    *spread = count > 1 ? sqrt(squares / (count - 1)) : NAN;
    return count;
}

const compare_run *compare_cell_run(const compare_table *table, int cell)
{
    const compare_run *first = &table->run[cell];
    for (int i = cell; i < table->run_count; i += table->spec->cell_count)
        if (table->run[i].state != RUN_DONE)
            return &table->run[i];
    return first;
}

bool compare_is_best(const compare_table *table, int cell, int measure)
{
    const int better = table->measure[measure].better;
    double own, mean, spread;
    bool above = false;
    compare_mean(table, cell, measure, &own, &spread);
    for (int other = 0; better && !isnan(own) && other < table->spec->cell_count; other++) {
        compare_mean(table, other, measure, &mean, &spread);
        if (better * mean > better * own)
            return false;
        above = above || better * mean < better * own;
    }
    return above;
}
