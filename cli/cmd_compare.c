/* attend compare: a grid of settings at an equal budget, and one table of the results. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compare/compare.h"
#include "outputs.h"

typedef struct compare_command {
    cli_common common;
    const char *directory, *json, *html, *curves, *latex, *csv;
    at_texts sets;
    int64_t jobs;
    bool print;
} compare_command;

static const at_setting table[] = {
    {AT_SETTING_HEADING, .help = "The runs"},
    {AT_SETTING_COUNT, "jobs", "N", offsetof(compare_command, jobs), NULL, 1, 1024,
     .help = "runs in parallel, each with --threads threads, 1 by default (default: the number of cores)"},
    {AT_SETTING_TEXT, "directory", "DIR", offsetof(compare_command, directory),
     .help = "the folder of the runs; finished runs in it are not repeated (default: SPEC.runs)"},
    {AT_SETTING_TEXTS, "set", "KEY=VALUE", offsetof(compare_command, sets),
     .help = "overrides a line of the SPEC, as in updates=500; may be repeated"},

    {AT_SETTING_HEADING, .help = "What is written"},
    {AT_SETTING_TEXT, "json", "FILE", offsetof(compare_command, json),
     .help = "the table with unrounded numbers, every run and the command line that repeats it"},
    {AT_SETTING_TEXT, "html", "FILE", offsetof(compare_command, html),
     .help = "the table as an HTML page, with learning curves and one sentence's attention for each row"},
    {AT_SETTING_TEXT, "curves", "FILE", offsetof(compare_command, curves),
     .help = "loss and validation while training as a drawing, FILE.svg; attend curve draws single runs"},
    {AT_SETTING_TEXT, "latex", "FILE", offsetof(compare_command, latex),
     .help = "the table for LaTeX, a tabular with the rules of the package booktabs"},
    {AT_SETTING_TEXT, "csv", "FILE", offsetof(compare_command, csv),
     .help = "every run with unrounded numbers as comma-separated values, a line for each setting and seed"},
    {AT_SETTING_SWITCH, "print", .offset = offsetof(compare_command, print),
     .help = "print the SPEC and run nothing; a start for a SPEC of one's own"},
    {0},
};

/* ---- The SPEC ------------------------------------------------------------------------------------------------- */

void compare_preset_title(const compare_preset *preset, char *out, size_t size)
{
    static const char mark[] = "title = ";
    const char *at = strstr(preset->text, mark);
    at = at ? at + strlen(mark) : "";
    snprintf(out, size, "%.*s", (int)strcspn(at, "\n"), at);
}

/* The text of a file, or of the preset of that name where there is no such file; to release with free. */
static char *find_text(const char *name, bool *preset, at_error *error)
{
    const char *names[64];
    int count = 0;
    *preset = false;
    if (access(name, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR))
        return text_of_file(name, error);
    for (; count < 64 && compare_preset_at(count); count++) {
        names[count] = compare_preset_at(count)->name;
        if (strcmp(names[count], name) == 0) {
            *preset = true;
            char *text = strdup(compare_preset_at(count)->text);
            if (!text)
                fail(error, AT_MEMORY, "out of memory for the comparison '%s'", name);
            return text;
        }
    }
    if (strpbrk(name, "/."))
        fail(error, AT_FILE, "cannot read '%s': %s", name, strerror(ENOENT));
    else
        at_unknown("file or comparison", name, names, count, error);
    return NULL;
}

/* What the paths of a file start from; NULL: from here. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return !slash ? NULL : strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* ---- All of it ------------------------------------------------------------------------------------------------ */

/* A file that the SPEC names, which no output may replace; NULL if `path` is none of them. */
static const char *named_file(const compare_spec *spec, const char *path)
{
    for (int i = 0; i < spec->key_count; i++)
        for (int v = 0; v < spec->key[i].count; v++)
            if (compare_is_file(spec->key[i].option, spec->key[i].value[v]) &&
                at_file_same(path, spec->key[i].value[v]))
                return spec->key[i].option->name;
    for (int s = 0; s < SETS; s++) {
        const compare_files *set = &spec->set[s];
        const char *const files[] = {set->source, set->target, set->tsv, set->alignment};
        for (int f = 0; f < 4; f++)
            if (files[f] && at_file_same(path, files[f]))
                return compare_set_names[s];
    }
    return NULL;
}

static bool add_output(cli_outputs *outputs, const compare_spec *spec, const char *option, const char *path,
                       bool (*write)(FILE *stream, const void *context), const void *context, at_error *error)
{
    const char *named = path ? named_file(spec, path) : NULL;
    if (path && at_file_same(path, spec->path))
        return fail(error, AT_USAGE, "%s: '%s' is the SPEC itself; name another file", option, path);
    if (named)
        return fail(error, AT_USAGE, "%s: '%s' is the file of '%s'; name another file", option, path, named);
    cli_output *file = path ? outputs_add(outputs, option, path, error) : NULL;
    if (file) {
        file->write = write;
        file->context = context;
    }
    return !path || file;
}

static int count_runs(const compare_table *t, compare_state state)
{
    int count = 0;
    for (int i = 0; i < t->run_count; i++)
        count += t->run[i].state == state;
    return count;
}

/* Whether all runs ended before they were done, and all with the same error message. */
static bool ended_alike(const compare_table *t, compare_state state)
{
    bool alike = count_runs(t, state) == t->run_count;
    for (int i = 1; i < t->run_count && alike; i++)
        alike = strcmp(t->run[i].why, t->run[0].why) == 0;
    return alike;
}

/* What the outputs show beyond the table. */
static bool gather(const compare_command *o, compare_table *t, at_error *error)
{
    return (!(o->json || o->html || o->latex) || compare_significance(t, error)) &&
           (!(o->html || o->curves) || compare_curves(t, error)) && (!o->html || compare_pictures(t, error));
}

/* Shows what there is; bad if a run failed, or if nothing could be run at all. An error of the data, or of a setting
 * of all rows, is reported once, without a table. */
static bool show(const compare_command *o, compare_table *t, cli_outputs *outputs, at_error *error)
{
    const int failed = count_runs(t, RUN_FAILED);
    if (!gather(o, t, error))
        return false;
    if (ended_alike(t, RUN_FAILED))
        return outputs_write(outputs, error) && fail(error, AT_FAILED, "%s: %s failed: %s", t->spec->path,
                                                     t->run_count == 1 ? "the run" : "all runs", t->run[0].why);
    if (ended_alike(t, RUN_REFUSED))
        return fail(error, AT_USAGE, "%s: %s", t->spec->path, t->run[0].why);
    if (count_runs(t, RUN_REFUSED) == t->run_count)
        return fail(error, AT_USAGE, "%s: no combination is possible: %s", t->spec->path, t->run[0].why);
    compare_print(t);
    if (!outputs_write(outputs, error))
        return false;
    return !failed ||
           fail(error, AT_FAILED, "%d of the %d runs failed; the same command tries them again", failed, t->run_count);
}

/* Removes a folder that was created for runs that are not started; only if it is empty. */
static void clear(compare_spec *spec, const char *folder)
{
    at_error unheard = {0};
    char *data = compare_keep(spec, &unheard, "%s/data", folder),
         *lock = compare_keep(spec, &unheard, "%s/lock", folder);
    if (data && lock && rmdir(data) == 0 && unlink(lock) == 0)
        rmdir(folder);
}

static bool compare(const compare_command *o, compare_table *t, const char *folder, bool *interrupted, at_error *error)
{
    compare_orders orders = {folder, t->jobs, t->threads, o->common.quiet, o->common.verbose};
    cli_outputs outputs = {0};
    if (strlen(folder) > MOST_FOLDER)
        return fail(error, AT_USAGE, "the path '%.60s...' is too long for the runs: it may have %d letters", folder,
                    MOST_FOLDER);
    if (o->curves && (!ends_in(o->curves, ".svg") || t->spec->cell_count > COMPARE_MOST_LINES))
        return ends_in(o->curves, ".svg")
                   ? fail(error, AT_USAGE, "--curves draws at most %d rows, and there are %d", COMPARE_MOST_LINES,
                          t->spec->cell_count)
                   : fail(error, AT_USAGE, "--curves is a name that ends in .svg, not '%s'", o->curves);
    bool good = add_output(&outputs, t->spec, "--json", o->json, compare_write_json, t, error) &&
                add_output(&outputs, t->spec, "--html", o->html, compare_write_html, t, error) &&
                add_output(&outputs, t->spec, "--curves", o->curves, compare_write_curves, t, error) &&
                add_output(&outputs, t->spec, "--latex", o->latex, compare_write_latex, t, error) &&
                add_output(&outputs, t->spec, "--csv", o->csv, compare_write_csv, t, error);
    const bool made = good && mkdir(folder, 0777) == 0;
    if (good && !made && errno != EEXIST)
        good = fail(error, AT_FILE, "cannot create the folder '%s' for the runs: %s", folder, strerror(errno));
    int lock = good ? compare_lock(folder, error) : -1;
    good = lock >= 0 && compare_data_ready(t->spec, folder, o->common.seed, t->data, error);
    if (made && lock >= 0 && !good)
        clear(t->spec, folder);
    good = good && compare_measures(t, error) && compare_run_all(t, &orders, interrupted, error) &&
           (*interrupted || show(o, t, &outputs, error));
    if (lock >= 0)
        close(lock);
    outputs_free(&outputs);
    return good;
}

static int run(void *options, int word_count, char **words)
{
    const compare_command *o = options;
    at_error error = {0};
    bool preset = false, interrupted = false;
    if (!word_count) {
        fail(&error, AT_USAGE,
             "attend compare needs a SPEC, a file or one that attend list compares shows, as in attend compare luong");
        return report(&error);
    }
    char *text = find_text(words[0], &preset, &error), *folder = preset ? NULL : folder_of(words[0]), *runs = NULL;
    if (text && o->print) {
        fputs(text, stdout);
        free(text);
        free(folder);
        return EXIT_DONE;
    }
    compare_spec spec = {0};
    compare_data data = {0};
    compare_table t = {.spec = &spec,
                       .data = &data,
                       .threads = o->common.threads == UNSET ? 1 : o->common.threads,
                       .jobs = o->jobs == UNSET ? sysconf(_SC_NPROCESSORS_ONLN) : o->jobs};
    if (o->directory ? !(runs = strdup(o->directory)) : asprintf(&runs, "%s.runs", words[0]) < 0)
        fail(&error, AT_MEMORY, "out of memory for the path of the runs");
    if (text && compare_spec_read(&spec, words[0], folder, text, &o->sets, &error))
        compare(o, &t, runs, &interrupted, &error);
    if (interrupted && !o->common.quiet)
        fprintf(stderr, "interrupted and saved; the same command continues from there\n");
    compare_curves_free(&t);
    compare_pictures_free(&t);
    compare_runs_free(&t);
    compare_data_free(&data);
    compare_spec_free(&spec);
    free(runs);
    free(folder);
    free(text);
    return interrupted ? EXIT_INTERRUPTED : report(&error);
}

static const char *preset_name_at(int index)
{
    const compare_preset *preset = compare_preset_at(index);
    return preset ? preset->name : NULL;
}

const cli_command command_compare = {
    .name = "compare",
    .words = "SPEC",
    .most_words = 1,
    .word_at = preset_name_at,
    .line = "train a grid of settings and show the results in one table",
    .text =
        "SPEC is a file of `key = value` lines, or the name of a built-in comparison (attend list compares). "
        "The keys are options of attend train; where one has several values, separated by blanks, every combination is "
        "trained, once for each seed, and evaluated on a test set. The other keys name the data or the task that "
        "generates it, what is measured, and rows outside the grid; doc/compare.md lists them all.\n\n"
        "The table shows the quality with its spread over the seeds and by the length of the source, the alignment "
        "error if there are reference alignments, parameters, time, memory and words per second. Every run is an "
        "ordinary attend train in its own process, which --verbose shows. After an interrupt or a crash the same "
        "command runs what is missing; a run that fails is shown as failed, and the others continue.",
    .examples = "  attend compare shaw-k\n"
                "  attend compare --print luong > mine.spec\n"
                "  attend compare mine.spec --jobs 2 --json mine.json --html mine.html --latex mine.tex\n"
                "  attend compare luong --set tsv=words.tsv --set test-tsv=test.tsv --set updates=5000",
    .options = table,
    .size = sizeof(compare_command),
    .run = run,
};
