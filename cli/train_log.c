#include "train_log.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

const log_series *train_log_find(const train_log *log, const char *name)
{
    for (int i = 0; i < log->count; i++)
        if (strcmp(log->series[i].name, name) == 0)
            return &log->series[i];
    return NULL;
}

/* Adds a point to a series, which is made if there is none yet. What a resumed run wrote again is left out. */
static bool add_point(train_log *log, const char *name, double update, double value, at_error *error)
{
    log_series *s = (log_series *)train_log_find(log, name);
    if (!s && log->count == MOST_SERIES)
        return true;
    if (!s) {
        s = &log->series[log->count++];
        snprintf(s->name, sizeof s->name, "%s", name);
    }
    if (s->count > 0 && update <= s->point[s->count - 1].x)
        return true;
    if ((size_t)s->count == s->room) {
        const size_t room = s->room ? 2 * s->room : 64;
        svg_point *point = realloc(s->point, room * sizeof *point);
        if (!point)
            return fail(error, AT_MEMORY, "out of memory for the learning curves");
        s->point = point;
        s->room = room;
    }
    s->point[s->count++] = (svg_point){update, value, 0};
    return true;
}

/* The cost of a report, or the scores of a validation: those of its numbers that are not about the run. */
static bool add_event(train_log *log, const json_t *line, bool *is_event, at_error *error)
{
    const char *event = json_string_value(json_object_get(line, "event")), *name;
    const double update = json_number_value(json_object_get(line, "update"));
    const json_t *value;
    *is_event = event && json_is_integer(json_object_get(line, "update"));
    if (!*is_event)
        return true;
    if (strcmp(event, "update") == 0) {
        value = json_object_get(line, "cost");
        return !json_is_number(value) || add_point(log, "cost", update, json_number_value(value), error);
    }
    if (strcmp(event, "valid") != 0)
        return true;
    json_object_foreach((json_t *)line, name, value)
    {
        const bool about = strcmp(name, "epoch") == 0 || strcmp(name, "update") == 0 || strcmp(name, "failures") == 0;
        if (json_is_number(value) && !about && !add_point(log, name, update, json_number_value(value), error))
            return false;
    }
    return true;
}

bool train_log_read(const char *path, train_log *log, at_error *error)
{
    int64_t events = 0;
    *log = (train_log){0};
    at_line_list *lines = at_line_list_read(path, error);
    for (int64_t i = 0; lines && error->code == AT_OK && i < lines->count; i++) {
        at_error unread = {0};
        bool is_event = false;
        json_t *line = at_json_read(lines->line[i].text, lines->line[i].size, path, &unread);
        if (unread.code == AT_MEMORY)
            fail(error, AT_MEMORY, "%s", unread.text);
        if (line)
            add_event(log, line, &is_event, error);
        events += is_event;
        json_decref(line);
    }
    if (lines && events == 0)
        fail(error, AT_FORMAT, "'%s' is not a log of attend train, which writes OUTPUT.log.jsonl", path);
    at_line_list_free(lines);
    return error->code == AT_OK;
}

void train_log_free(train_log *log)
{
    for (int i = 0; i < log->count; i++)
        free(log->series[i].point);
}

int thin_out(svg_point *point, int count)
{
    enum { MOST_POINTS = 150 };
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
