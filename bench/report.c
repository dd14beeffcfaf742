/* The output: a JSON array, or a table that grows as the cases finish. */
#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

/* Every figure a row can have: its JSON name, and its format in the table's last column (NULL: it has its own column).
 */
static const struct {
    const char *name;
    size_t offset;
    const char *words;
} FIGURES[] = {
    {"ms", offsetof(row, ms), NULL},
    {"gflops", offsetof(row, gflops), NULL},
    {"percent_of_peak", offsetof(row, percent_of_peak), NULL},
    {"ratio_to_best_rival", offsetof(row, ratio_to_best_rival), NULL},
    {"gb_per_second", offsetof(row, gb_per_second), "%.1f GB/s"},
    {"percent_of_bandwidth", offsetof(row, percent_of_bandwidth), "%.1f%% of bandwidth"},
    {"billion_per_second", offsetof(row, billion_per_second), "%.2f G/s"},
    {"percent_of_tanh_bound", offsetof(row, percent_of_tanh_bound), "%.1f%% of tanh bound"},
    {"ratio_to_plain", offsetof(row, ratio_to_plain), "%.3fx plain"},
    {"ratio_to_greedy", offsetof(row, ratio_to_greedy), "%.2fx greedy"},
    {"attend_over_it", offsetof(row, attend_over_it), "attend is %.2fx as fast"},
    {"speedup_over_one_thread", offsetof(row, speedup_over_one_thread), "%.2fx one thread"},
    {"speedup_over_f32", offsetof(row, speedup_over_f32), "%.2fx f32"},
    {"extra_mb", offsetof(row, extra_mb), "%.1f MB extra"},
    {"extra_rss_mb", offsetof(row, extra_rss_mb), "%.1f MB more resident"},
    {"peak_rss_mb", offsetof(row, peak_rss_mb), "%.0f MB resident at most"},
    {"tokens_per_second", offsetof(row, tokens_per_second), "%.0f tokens/s"},
    {"allocations", offsetof(row, allocations), "allocations: %.0f"},
    {"us_per_token", offsetof(row, us_per_token), "%.2f us a token"},
    {"sequential_steps", offsetof(row, sequential_steps), "steps in sequence: %.0f"},
};
enum { FIGURE_COUNT = sizeof FIGURES / sizeof *FIGURES };

static double figure(const row *line, int i)
{
    return *(const double *)((const char *)line + FIGURES[i].offset);
}

row row_new(const char *bench, const char *name, const char *who, const char *variant)
{
    row line = {.bench = bench, .name = name, .who = who, .variant = variant, .threads = bench_options.threads};
    for (int i = 0; i < FIGURE_COUNT; i++)
        *(double *)((char *)&line + FIGURES[i].offset) = NAN;
    return line;
}

row row_of(const race *r, int entry, const char *bench, const char *name, double flops)
{
    row line = row_new(bench, name, r->entry[entry].who, r->entry[entry].variant);
    double seconds = race_seconds(r, entry);
    line.ms = 1e3 * seconds;
    if (flops > 0) {
        line.gflops = 1e-9 * flops / seconds;
        line.percent_of_peak = 100 * race_share_of_peak(r, entry, flops);
    }
    return line;
}

static char table[32]; /* the bench whose rows are being printed */
static int printed;

void report_begin(void)
{
    if (bench_options.json)
        printf("[");
}

static void print_json(const row *line)
{
    json_t *object = json_pack("{s:s, s:s, s:s, s:i}", "bench", line->bench, "case", line->name, "who", line->who,
                               "threads", line->threads);
    if (line->variant)
        json_object_set_new(object, "variant", json_string(line->variant));
    for (int i = 0; i < FIGURE_COUNT; i++) {
        if (!isnan(figure(line, i)))
            json_object_set_new(object, FIGURES[i].name, json_real(figure(line, i)));
    }
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(6));
    printf("%s\n%s", printed > 0 ? "," : "", text ? text : "null");
    free(text);
    json_decref(object);
}

/* A figure right-aligned under its heading, or nothing. */
static void print_cell(double value, int width, const char *format)
{
    char text[32] = "";
    if (!isnan(value))
        snprintf(text, sizeof text, format, value);
    printf(" %*s", width, text);
}

static void print_table_row(const row *line)
{
    if (strcmp(table, line->bench) != 0) {
        snprintf(table, sizeof table, "%s", line->bench);
        printf("%s%s, %d thread%s\n", printed > 0 ? "\n" : "", line->bench, line->threads,
               line->threads > 1 ? "s" : "");
        printf("%-44s %-36s %10s %8s %8s %8s\n", "case", "who", "ms", "GFLOP/s", "% peak", "x rival");
    }
    char who[64];
    snprintf(who, sizeof who, line->variant ? "%s, %s" : "%s", line->who, line->variant);
    printf("%-44s %-36s", line->name, who);
    print_cell(line->ms, 10, line->ms < 1 ? "%.5f" : "%.3f");
    print_cell(line->gflops, 8, "%.1f");
    print_cell(line->percent_of_peak, 8, "%.1f");
    print_cell(line->ratio_to_best_rival, 8, "%.2f");
    const char *between = "  ";
    for (int i = 0; i < FIGURE_COUNT; i++) {
        if (!FIGURES[i].words || isnan(figure(line, i)))
            continue;
        char text[64];
        snprintf(text, sizeof text, FIGURES[i].words, figure(line, i));
        printf("%s%s", between, text);
        between = ", ";
    }
    printf("\n");
}

void report_row(const row *line)
{
    if (bench_options.json)
        print_json(line);
    else
        print_table_row(line);
    printed++;
    fflush(stdout);
}

void report_end(void)
{
    if (bench_options.json)
        printf("\n]\n");
}

void report_left_out(const char *who, const char *reason)
{
    enum { MOST = 64 };
    static char printed_before[MOST][160];
    static int count;
    char message[160];
    snprintf(message, sizeof message, "attend: bench: %s is left out: %s", who, reason);
    for (int i = 0; i < count; i++) {
        if (strcmp(printed_before[i], message) == 0)
            return;
    }
    if (count < MOST)
        memcpy(printed_before[count++], message, sizeof message);
    fprintf(stderr, "%s\n", message);
}
