/* Reading JSON: at_json_read, with Jansson's declarations. */
#ifndef AT_JSON_H
#define AT_JSON_H

#include "attend_unstable.h"

#include <jansson.h>

#endif
