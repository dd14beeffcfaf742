/* Requests of the lesson and who answers them. */
#include "lesson/lesson.h"

#include <stdlib.h>
#include <string.h>

#include "lesson/ask_internal.h"

struct at_lesson {
    at_runs *runs;
};

at_lesson *at_lesson_new(at_error *error)
{
    at_lesson *lesson = error->code == AT_OK ? calloc(1, sizeof *lesson) : NULL;
    if (lesson)
        lesson->runs = at_runs_new(error);
    if (lesson && lesson->runs)
        return lesson;
    at_no_memory(error, "the lesson");
    at_lesson_free(lesson);
    return NULL;
}

void at_lesson_free(at_lesson *lesson)
{
    if (!lesson)
        return;
    at_runs_free(lesson->runs);
    free(lesson);
}

at_runs *at_lesson_runs(at_lesson *lesson)
{
    return lesson->runs;
}

static const struct {
    const char *name;
    bool (*answer)(at_ask *ask);
} answers[] = {{"attend", at_answer_attend},   {"draw", at_answer_draw},           {"positions", at_answer_positions},
               {"scaling", at_answer_scaling}, {"recurrent", at_answer_recurrent}, {"learn", at_answer_learn},
               {"layer", at_answer_layer}};
enum { ANSWERS = sizeof answers / sizeof *answers };

static bool answer(at_ask *ask)
{
    const char *names[ANSWERS + 1] = {NULL};
    for (int i = 0; i < ANSWERS; i++)
        names[i] = answers[i].name;
    if (!json_is_object(ask->request) || !json_object_get(ask->request, "ask"))
        return at_fail(ask->error, AT_USAGE, "a request of the lesson is an object such as {\"ask\": \"attend\", ...}");
    const int which = at_ask_choice(ask, ask->request, "ask", names);
    if (which < 0)
        return false;
    at_buffer_print(&ask->text, "{");
    if (!answers[which].answer(ask))
        return false;
    at_buffer_print(&ask->text, "}");
    return !ask->text.failed || at_no_memory(ask->error, "an answer of the lesson");
}

char *at_lesson_answer(at_lesson *lesson, const char *request, size_t size, at_error *error)
{
    if (error->code != AT_OK)
        return NULL;
    if (size > AT_LESSON_REQUEST) {
        at_fail(error, AT_USAGE, "the request has %zu bytes; the lesson takes %d at most", size, AT_LESSON_REQUEST);
        return NULL;
    }
    at_ask ask = {.lesson = lesson, .error = error, .arena = at_arena_new()};
    json_t *value = at_json_read(request, size, "the request", error);
    ask.request = value;
    bool done = false;
    if (!ask.arena)
        at_no_memory(error, "a request of the lesson");
    else if (value)
        done = answer(&ask);
    json_decref(value);
    at_arena_free(ask.arena);
    if (done)
        return ask.text.bytes;
    at_buffer_free(&ask.text);
    return NULL;
}
