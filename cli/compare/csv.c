/* The runs of attend compare as comma-separated values (RFC 4180): a line for each setting and seed, unrounded. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"

/* A field, in quotes if it needs them. */
static void field(FILE *f, const char *text, bool first)
{
    const bool quoted = text[strcspn(text, "\",\r\n")] || *text == ' ' || (*text && text[strlen(text) - 1] == ' ');
    fputs(first ? "" : ",", f);
    fputs(quoted ? "\"" : "", f);
    for (; *text; text++)
        fputs(*text == '"' ? "\"\"" : (char[]){*text, 0}, f);
    fputs(quoted ? "\"" : "", f);
}

/* As few figures as give the same number back; an empty field for none. */
static void number(FILE *f, double value)
{
    char text[40] = "";
    for (int figures = 6; isfinite(value) && figures <= 17; figures++) {
        snprintf(text, sizeof text, "%.*g", figures, value);
        if (strtod(text, NULL) == value)
            break;
    }
    field(f, text, false);
}

static void write_run(FILE *f, const compare_table *table, const compare_run *run)
{
    const compare_spec *spec = table->spec;
    const bool done = run->state == RUN_DONE;
    char seed[32];
    for (int a = 0; a < spec->axis_count; a++)
        field(f, compare_value(spec, run->cell, a), a == 0);
    snprintf(seed, sizeof seed, "%lld", (long long)run->seed);
    field(f, seed, spec->axis_count == 0);
    field(f, compare_states[run->state], false);
    for (int m = 0; m < table->measure_count; m++)
        number(f, done ? run->value[m] : NAN);
    number(f, done ? run->seconds : NAN);
    field(f, done ? "" : run->why, false);
    field(f, run->line, false);
    fputs("\r\n", f);
}

bool compare_write_csv(FILE *f, const void *context)
{
    const compare_table *table = context;
    const compare_spec *spec = table->spec;
    for (int a = 0; a < spec->axis_count; a++)
        field(f, compare_axis_title(spec, a), a == 0);
    field(f, "seed", spec->axis_count == 0);
    field(f, "state", false);
    for (int m = 0; m < table->measure_count; m++)
        field(f, table->measure[m].name, false);
    fputs(",seconds,why,command\r\n", f);
    for (int cell = 0; cell < spec->cell_count; cell++)
        for (int i = cell; i < table->run_count; i += spec->cell_count)
            write_run(f, table, &table->run[i]);
    return !ferror(f);
}
