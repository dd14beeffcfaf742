#include "base/frame.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"

static const char *find(const char *name, const json_t *table, const at_frame_value *values, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(values[i].name, name) == 0)
            return values[i].text;
    return json_string_value(json_object_get(table, name));
}

char *at_frame_fill(const char *frame, const char *table, const at_frame_value *values, int count, const char *what,
                    at_error *error)
{
    json_t *texts = at_json_read(table, strlen(table), what, error);
    at_buffer page = {0};
    const char *from = frame, *mark;
    while (texts && (mark = strstr(from, "{{"))) {
        const char *name = mark + 2, *end = strstr(name, "}}");
        char key[40];
        snprintf(key, sizeof key, "%.*s", end && end - name < 40 ? (int)(end - name) : 0, name);
        const char *text = find(key, texts, values, count);
        if (!text) {
            at_fail(error, AT_FAILED, "the frame of %s names '%.30s', and there is no such text", what, name);
            break;
        }
        at_buffer_add(&page, from, (size_t)(mark - from));
        at_buffer_add(&page, text, strlen(text));
        from = end + 2;
    }
    at_buffer_add(&page, from, strlen(from));
    json_decref(texts);
    if (page.failed)
        at_no_memory(error, "%s", what);
    if (error->code == AT_OK)
        return page.bytes;
    at_buffer_free(&page);
    return NULL;
}
