/* YAML as JSON, by libyaml: mappings are objects, sequences arrays, and every scalar is a text. */
#ifndef AT_YAML_H
#define AT_YAML_H

#include "base/json.h"

/* The first document. Aliases are refused, and so is more than 16 levels. `name` is for error messages. */
json_t *at_yaml_read(const void *bytes, size_t size, const char *name, at_error *error);

#endif
