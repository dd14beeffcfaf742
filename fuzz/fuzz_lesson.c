/* Any bytes as a request of the lesson: an answer that is JSON, or an error message. */
#include "lesson/lesson.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static at_lesson *lesson;
    at_error error = {0}, wrong = {0};
    at_threads_set(1);
    if (!lesson)
        lesson = at_lesson_new(&error);
    EXPECT(lesson);
    /* Updates take long and read nothing more of the request; "learn" without one makes a model and shows its output. */
    char *copy = text_of(bytes, size);
    const bool trains = strstr(copy, "update") || strstr(copy, "\\u");
    free(copy);
    if (trains)
        return 0;
    char *answer = at_lesson_answer(lesson, (const char *)bytes, size, &error);
    expect_message(answer, &error);
    if (answer) {
        json_t *value = at_json_read(answer, strlen(answer), "the answer", &wrong);
        EXPECT(json_is_object(value));
        json_decref(value);
    }
    free(answer);
    return 0;
}
