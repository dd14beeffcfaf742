/* The table of attend compare for LaTeX: a tabular with the rules of the package booktabs. */
#include <math.h>
#include <string.h>
#include <utf8proc.h>

#include "compare/compare.h"

/* Text as it is to be printed: what LaTeX would read as a command is escaped, control characters and bytes that are not
 * UTF-8 are question marks. */
static void text(FILE *f, const char *words)
{
    static const struct escape {
        char plain;
        const char *written;
    } escapes[] = {{'\\', "\\textbackslash{}"},
                   {'~', "\\textasciitilde{}"},
                   {'^', "\\textasciicircum{}"},
                   {'<', "\\textless{}"},
                   {'>', "\\textgreater{}"},
                   {'|', "\\textbar{}"},
                   {'&', "\\&"},
                   {'%', "\\%"},
                   {'$', "\\$"},
                   {'#', "\\#"},
                   {'_', "\\_"},
                   {'{', "\\{"},
                   {'}', "\\}"},
                   {'"', "''"}};
    enum { ESCAPES = sizeof escapes / sizeof *escapes };
    while (*words) {
        utf8proc_int32_t point;
        const utf8proc_ssize_t length = utf8proc_iterate((const utf8proc_uint8_t *)words, -1, &point);
        int found = 0;
        while (found < ESCAPES && *words != escapes[found].plain)
            found++;
        if (length <= 0 || utf8proc_category(point) == UTF8PROC_CATEGORY_CC)
            fputc('?', f);
        else if (found < ESCAPES)
            fputs(escapes[found].written, f);
        else
            fprintf(f, "%.*s", (int)length, words);
        words += length > 0 ? length : 1;
    }
}

static void write_head(FILE *f, const compare_table *table)
{
    const compare_spec *spec = table->spec;
    fputs("\\begin{tabular}{", f);
    for (int a = 0; a < spec->axis_count; a++)
        fputc('l', f);
    for (int m = 0; m < table->measure_count; m++)
        fputc('r', f);
    fputs("}\n\\toprule\n", f);
    for (int a = 0; a < spec->axis_count; a++) {
        fputs(a ? " & " : "", f);
        text(f, compare_axis_title(spec, a));
    }
    for (int m = 0; m < table->measure_count; m++) {
        const int better = table->measure[m].better;
        fputs(spec->axis_count || m ? " & " : "", f);
        text(f, table->measure[m].title);
        fputs(better > 0 ? " $\\uparrow$" : better < 0 ? " $\\downarrow$" : "", f);
    }
    fputs(" \\\\\n\\midrule\n", f);
}

/* \textbf{99.3} $\pm$ 0.4, with a dagger if it is worse than the best. */
static void write_cell(FILE *f, const compare_table *table, int cell, int measure)
{
    const compare_measure *m = &table->measure[measure];
    double mean, spread;
    compare_mean(table, cell, measure, &mean, &spread);
    if (isnan(mean)) {
        fputs("--", f);
        return;
    }
    const bool best = m->quality && compare_is_best(table, cell, measure);
    fprintf(f, best ? "\\textbf{%.*f}" : "%.*f", m->decimals, mean);
    if (compare_is_worse(table, cell, measure))
        fputs("$^{\\dagger}$", f);
    if (compare_has_spread(m) && !isnan(spread))
        fprintf(f, " $\\pm$ %.*f", m->decimals, spread);
}

static void write_row(FILE *f, const compare_table *table, int cell)
{
    const compare_spec *spec = table->spec;
    double mean, spread;
    for (int a = 0; a < spec->axis_count; a++) {
        fputs(a ? " & " : "", f);
        text(f, compare_value(spec, cell, a));
    }
    if (compare_mean(table, cell, 0, &mean, &spread) == 0) {
        fprintf(f, "%s\\multicolumn{%d}{l}{\\emph{%s}}", spec->axis_count ? " & " : "", table->measure_count,
                compare_empty_text(compare_cell_run(table, cell)));
    }
    for (int m = 0; !isnan(mean) && m < table->measure_count; m++) {
        fputs(spec->axis_count || m ? " & " : "", f);
        write_cell(f, table, cell, m);
    }
    fputs(" \\\\\n", f);
}

/* A text of several sentences as a comment, which a newline in it would end. */
static void comment(FILE *f, const char *words)
{
    fputs("% ", f);
    for (; *words; words++)
        fputc((unsigned char)*words < ' ' ? ' ' : *words, f);
    fputc('\n', f);
}

bool compare_write_latex(FILE *f, const void *context)
{
    const compare_table *table = context;
    const compare_spec *spec = table->spec;
    char notes[1500];
    compare_notes(table, notes, sizeof notes);
    fprintf(f, "%% attend %s; in the preamble: \\usepackage{booktabs}\n", at_version());
    comment(f, spec->title ? spec->title : spec->path);
    comment(f, notes);
    comment(f, "\\dagger: " COMPARE_WORSE);
    write_head(f, table);
    for (int cell = 0; cell < spec->cell_count; cell++)
        write_row(f, table, cell);
    fputs("\\bottomrule\n\\end{tabular}\n", f);
    return !ferror(f);
}
