/* The files of the lesson. The page is one frame, filled with the texts of a language: {{name}} stands for the text of
 * that name in en.json or zh.json. */
#include <stdlib.h>
#include <string.h>

#include "base/frame.h"
#include "lesson/ask_internal.h"

extern const char at_lesson_html[], at_lesson_css[], at_lesson_js[], at_lesson_plays[], at_lesson_en[], at_lesson_zh[];

char *at_lesson_file(const char *path, bool chinese, const char **type, at_error *error)
{
    static const char script[] = "text/javascript; charset=utf-8", json[] = "application/json";
    static const struct {
        const char *path, *type, *text;
    } files[] = {{"/lesson.css", "text/css; charset=utf-8", at_lesson_css},
                 {"/lesson.js", script, at_lesson_js},
                 {"/plays.js", script, at_lesson_plays},
                 {"/en.json", json, at_lesson_en},
                 {"/zh.json", json, at_lesson_zh}};
    const bool any = !*path || strcmp(path, "/") == 0;
    *type = "text/html; charset=utf-8";
    if (error->code != AT_OK)
        return NULL;
    if (any || strcmp(path, "/en") == 0 || strcmp(path, "/zh") == 0)
        return at_frame_fill(at_lesson_html,
                             any              ? (chinese ? at_lesson_zh : at_lesson_en)
                             : path[1] == 'z' ? at_lesson_zh
                                              : at_lesson_en,
                             NULL, 0, "a page of the lesson", error);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strcmp(path, files[i].path) == 0) {
            char *copy = strdup(files[i].text);
            *type = files[i].type;
            if (!copy)
                at_no_memory(error, "a file of the lesson");
            return copy;
        }
    return NULL;
}
