#include "io/yaml.h"

#include "base/error.h"

#ifdef AT_HAVE_YAML

#include <yaml.h>

enum { MOST_LEVELS = 16 };

typedef struct reading {
    yaml_parser_t parser;
    const char *name;
    at_error *error;
} reading;

static json_t *refuse(reading *r, const char *what)
{
    at_fail(r->error, AT_FORMAT, "'%s' is not YAML that attend reads: %s", r->name, what);
    return NULL;
}

static bool next(reading *r, yaml_event_t *event)
{
    if (yaml_parser_parse(&r->parser, event))
        return true;
    refuse(r, r->parser.problem ? r->parser.problem : "it cannot be parsed");
    return false;
}

static json_t *value_of(reading *r, yaml_event_t *event, int level);

/* The elements up to the end event; of an object each with its key before it. */
static json_t *collect(reading *r, bool object, int level)
{
    json_t *all = object ? json_object() : json_array();
    bool done = all;
    while (done) {
        yaml_event_t event;
        json_t *key = NULL;
        if (!(done = next(r, &event)))
            break;
        if (event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&event);
            return all;
        }
        if (object) {
            key = value_of(r, &event, level);
            yaml_event_delete(&event);
            if (key && !json_is_string(key))
                refuse(r, "a key is not a text");
            if (!json_is_string(key) || !next(r, &event)) {
                json_decref(key);
                done = false;
                break;
            }
        }
        json_t *value = value_of(r, &event, level);
        yaml_event_delete(&event);
        done = value && (object ? json_object_set_new(all, json_string_value(key), value)
                                : json_array_append_new(all, value)) == 0;
        json_decref(key);
    }
    json_decref(all);
    at_no_memory(r->error, "'%s'", r->name);
    return NULL;
}

static json_t *value_of(reading *r, yaml_event_t *event, int level)
{
    if (event->type == YAML_SCALAR_EVENT) {
        json_t *text = json_stringn((const char *)event->data.scalar.value, event->data.scalar.length);
        return text ? text : refuse(r, "a text is not UTF-8");
    }
    if (event->type == YAML_ALIAS_EVENT)
        return refuse(r, "it has an alias");
    if (event->type != YAML_SEQUENCE_START_EVENT && event->type != YAML_MAPPING_START_EVENT)
        return refuse(r, "it ends too early");
    return level == MOST_LEVELS ? refuse(r, "it has too many levels")
                                : collect(r, event->type == YAML_MAPPING_START_EVENT, level + 1);
}

json_t *at_yaml_read(const void *bytes, size_t size, const char *name, at_error *error)
{
    reading r = {.name = name, .error = error};
    json_t *value = NULL;
    if (error->code != AT_OK)
        return NULL;
    if (!yaml_parser_initialize(&r.parser)) {
        at_no_memory(error, "'%s'", name);
        return NULL;
    }
    yaml_parser_set_input_string(&r.parser, bytes, size);
    for (bool inside = false, more = true; more && !value;) {
        yaml_event_t event;
        if (!next(&r, &event))
            break;
        more = event.type != YAML_STREAM_END_EVENT;
        if (inside && more)
            value = value_of(&r, &event, 0);
        more = more && (!inside || value);
        inside = inside || event.type == YAML_DOCUMENT_START_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&r.parser);
    if (!value)
        refuse(&r, "it is empty");
    return value;
}

#else

json_t *at_yaml_read(const void *bytes, size_t size, const char *name, at_error *error)
{
    (void)bytes, (void)size;
    at_fail(error, AT_UNSUPPORTED, "'%s' is YAML, and this attend was built without libyaml", name);
    return NULL;
}

#endif
