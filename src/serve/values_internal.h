/* JSON values in answers. Jansson returns NULL when out of memory, and refuses NULL as a value. */
#ifndef AT_SERVE_VALUES_INTERNAL_H
#define AT_SERVE_VALUES_INTERNAL_H

#include "base/json.h"

/* The text of a value that is not needed afterwards; NULL also if the value is. Release it with free. */
static inline char *text_of(json_t *value)
{
    char *text = value ? at_json_text(value, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(value);
    return text;
}

static inline bool set(json_t *object, const char *name, json_t *value)
{
    return json_object_set_new(object, name, value) == 0; /* releases the value if it fails, and refuses NULL */
}

static inline bool add(json_t *array, json_t *value)
{
    return json_array_append_new(array, value) == 0;
}

/* The value if all went well, else NULL. */
static inline json_t *settled(json_t *value, bool good)
{
    if (good)
        return value;
    json_decref(value);
    return NULL;
}

#endif
