/* Runs of attend train and attend compare as a page shows them: what their logs say so far (doc/formats.md). */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/files.h"
#include "serve/serve_internal.h"
#include "serve/values_internal.h"

enum { MOST_RUNS = 64, MOST_POINTS = 400, DEEPEST = 4 };
static const char ending[] = ".log.jsonl";

/* ---- One log ---------------------------------------------------------------------------------------------------- */

typedef struct training_run {
    json_t *series;   /* by name: [[update, value], ...] */
    json_t *start;    /* the settings of the run that decide how long it is; NULL: not known */
    double sentences; /* of an epoch; 0: not known */
    double epoch, update, in_epoch;
    double since; /* update of the last start or resume, and the seconds since */
    double seconds;
    double share_since; /* done before that */
    const char *reason; /* why it ended; NULL: it did not */
    char reason_text[40];
    bool good;
} training_run;

static double number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_number(value)   ? json_number_value(value)
           : json_is_string(value) ? strtod(json_string_value(value), NULL)
                                   : 0;
}

/* Every second point is dropped where there are too many. */
static void add_point(training_run *r, const char *name, double update, double value)
{
    if (!isfinite(value))
        return; /* one such number must not hide the run */
    json_t *list = json_object_get(r->series, name), *point = json_array();
    if (!list) {
        r->good = r->good && set(r->series, name, json_array());
        list = json_object_get(r->series, name);
    }
    r->good = r->good && list && point && add(point, json_real(update)) && add(point, json_real(value)) &&
              json_array_append(list, point) == 0;
    json_decref(point);
    if (json_array_size(list) > MOST_POINTS)
        for (size_t i = 1; i < json_array_size(list); i++)
            json_array_remove(list, i);
}

/* The share of the run that is done by its nearest limit of updates or epochs; 0: there is none. */
static double done_share(const training_run *r)
{
    const double updates = number(r->start, "updates"), epochs = number(r->start, "epochs");
    const double by_updates = updates > 0 ? r->update / updates : 0;
    const double part = r->sentences > 0 ? fmin(1, r->in_epoch / r->sentences) : 0;
    const double by_epochs = epochs > 0 && r->sentences > 0 ? (r->epoch - 1 + part) / epochs : 0;
    return fmin(1, fmax(by_updates, by_epochs));
}

/* The seconds that are left until the nearest limit; not a number if none is known. */
static double seconds_left(const training_run *r)
{
    const double share = done_share(r), fresh = share - r->share_since, minutes = number(r->start, "minutes");
    const double by_share = fresh > 0 && r->seconds > 0 ? r->seconds * (1 - share) / fresh : NAN;
    return fmin(by_share,
                minutes > 0 ? fmax(0, 60 * minutes - r->seconds) : NAN); /* fmin leaves out what is no number */
}

static void read_line(training_run *r, const json_t *line)
{
    const char *event = json_string_value(json_object_get(line, "event")), *name;
    json_t *fields = (json_t *)line, *value;
    const double update = number(line, "update");
    if (!event)
        return;
    r->update = update;
    r->epoch = number(line, "epoch");
    if (strcmp(event, "start") == 0 || strcmp(event, "resume") == 0) {
        json_decref(r->start);
        r->start = json_incref(json_object_get(line, "run"));
        const double used = number(json_object_get(json_object_get(line, "data"), "training"), "used");
        r->sentences = used > 0 ? used : r->sentences;
        r->share_since = done_share(r);
        r->seconds = 0;
        r->reason = NULL;
    } else if (strcmp(event, "update") == 0) {
        r->in_epoch = number(line, "sentences");
        r->seconds += number(line, "seconds");
        add_point(r, "loss", update, number(line, "cost"));
        add_point(r, "rate", update, number(line, "learning_rate"));
        add_point(r, "words", update, number(line, "words_per_second"));
    } else if (strcmp(event, "valid") == 0) {
        json_object_foreach(fields, name, value)
        {
            char key[60];
            snprintf(key, sizeof key, "score %.40s", name);
            if (json_is_real(value) && strcmp(name, "seconds") != 0)
                add_point(r, key, update, json_real_value(value));
        }
    } else if (strcmp(event, "end") == 0) {
        const char *reason = json_string_value(json_object_get(line, "reason"));
        snprintf(r->reason_text, sizeof r->reason_text, "%s", reason ? reason : "");
        r->reason = r->reason_text;
    }
}

/* A line that is not whole yet is left out. */
static bool read_log(training_run *r, const char *path)
{
    at_error error = {0};
    size_t size = 0;
    char *bytes = (char *)at_file_read(path, &size, &error);
    r->good = bytes && (r->series = json_object());
    for (const char *at = bytes; r->good && at < bytes + size;) {
        const char *stop = memchr(at, '\n', (size_t)(bytes + size - at));
        at_error fault = {0};
        json_t *line = stop ? at_json_read(at, (size_t)(stop - at), "a line of a log", &fault) : NULL;
        if (line)
            read_line(r, line);
        json_decref(line);
        at = stop ? stop + 1 : bytes + size;
    }
    free(bytes);
    return r->good;
}

/* NULL: there is no such log, or no memory. */
static json_t *describe(const char *path, const char *name)
{
    training_run r = {0};
    struct stat status = {0};
    json_t *answer = read_log(&r, path) ? json_object() : NULL;
    if (answer) {
        const double left = r.reason ? NAN : seconds_left(&r);
        const double quiet = stat(path, &status) == 0 ? difftime(time(NULL), status.st_mtime) : 0;
        const bool good = set(answer, "name", json_string(name)) && set(answer, "update", json_real(r.update)) &&
                          set(answer, "epoch", json_real(r.epoch)) &&
                          set(answer, "share", json_real(r.reason ? 1 : done_share(&r))) &&
                          set(answer, "left", isnan(left) ? json_null() : json_real(round(left))) &&
                          set(answer, "ended", r.reason ? json_string(r.reason) : json_null()) &&
                          set(answer, "quiet", json_real(fmax(0, quiet))) &&
                          json_object_set(answer, "series", r.series) == 0;
        answer = settled(answer, good);
    }
    json_decref(r.series);
    json_decref(r.start);
    return answer;
}

/* ---- All of them ------------------------------------------------------------------------------------------------ */

/* Its path below what was asked for, without the ending, and without the name that all runs of attend compare have. */
static json_t *describe_at(const char *path, size_t below)
{
    char name[300];
    snprintf(name, sizeof name, "%s", strlen(path) > below ? path + below : path);
    char *end = strstr(name, ending);
    if (end && !end[sizeof ending - 1])
        *end = 0;
    char *slash = strrchr(name, '/');
    if (slash && strcmp(slash, "/model") == 0)
        *slash = 0;
    return describe(path, name);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void add_folder(json_t *list, const char *folder, size_t below, int depth)
{
    struct dirent **entry = NULL;
    const int count = depth < DEEPEST ? scandir(folder, &entry, is_shown, by_name) : 0;
    for (int i = 0; i < count; i++) {
        char path[4096];
        struct stat status;
        const size_t length = strlen(entry[i]->d_name);
        const bool fits = snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name) < (int)sizeof path;
        if (fits && json_array_size(list) < MOST_RUNS && lstat(path, &status) == 0) {
            if (S_ISDIR(status.st_mode))
                add_folder(list, path, below, depth + 1);
            else if (S_ISREG(status.st_mode) && length >= sizeof ending - 1 &&
                     strcmp(entry[i]->d_name + length - (sizeof ending - 1), ending) == 0)
                add(list, describe_at(path, below));
        }
        free(entry[i]);
    }
    free(entry);
}

json_t *at_watch_runs(const at_server_settings *settings)
{
    json_t *list = json_array();
    for (int i = 0; list && i < settings->watch_count; i++) {
        const char *path = settings->watch[i], *slash = strrchr(path, '/');
        struct stat status;
        if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
            add_folder(list, path, strlen(path) + 1, 0);
        else if (json_array_size(list) < MOST_RUNS)
            add(list, describe_at(path, slash ? (size_t)(slash - path) + 1 : 0));
    }
    return list;
}

/* ---- The page --------------------------------------------------------------------------------------------------- */

static double last_of(const json_t *series, const char *name)
{
    const json_t *list = json_object_get(series, name);
    const size_t count = json_array_size(list);
    return count ? json_number_value(json_array_get(json_array_get(list, count - 1), 1)) : NAN;
}

static void add_number(at_buffer *out, double value, const char *format)
{
    char text[40] = "";
    if (isfinite(value))
        snprintf(text, sizeof text, format, value);
    at_buffer_print(out, "<td>%s</td>", text);
}

char *at_watch_rows(const at_server_settings *settings)
{
    at_buffer out = {0};
    json_t *runs = at_watch_runs(settings), *run;
    size_t i;
    at_buffer_print(&out, "%s", "");
    json_array_foreach(runs, i, run)
    {
        const json_t *series = json_object_get(run, "series");
        const char *ended = json_string_value(json_object_get(run, "ended"));
        at_buffer_print(&out, "<tr><th scope=\"row\">");
        at_page_escape(&out, json_string_value(json_object_get(run, "name")));
        at_buffer_print(&out, "</th>");
        add_number(&out, number(run, "update"), "%.0f");
        add_number(&out, last_of(series, "loss"), "%.4f");
        add_number(&out, last_of(series, "rate"), "%.2e");
        add_number(&out, last_of(series, "words"), "%.0f");
        const json_t *left = json_object_get(run, "left");
        at_buffer_print(&out, "<td>");
        if (ended)
            at_page_escape(&out, ended);
        else if (json_is_number(left))
            at_buffer_print(&out, "%.0f s", json_number_value(left));
        at_buffer_print(&out, "</td></tr>\n");
    }
    const bool good = runs && !out.failed;
    json_decref(runs);
    if (good)
        return out.bytes;
    at_buffer_free(&out);
    return NULL;
}
