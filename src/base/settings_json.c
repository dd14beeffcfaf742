/* Values of settings as JSON. */
#include "base/json.h"
#include "base/settings.h"
#include "base/utf8.h"

json_t *at_setting_to_json(const at_setting *row, const void *from)
{
    const void *field = (const char *)from + row->offset;
    char text[80], shown[AT_SHOWN];
    if (row->type == AT_SETTING_COUNT)
        return json_integer(*(const int64_t *)field);
    if (row->type == AT_SETTING_SWITCH)
        return json_boolean(*(const bool *)field);
    if (row->type != AT_SETTING_TEXT)
        return json_string(at_setting_text(row, from, text, sizeof text));
    const char *value = *(const char *const *)field; /* of any length, and the name of a file may be any bytes */
    return json_string(at_is_utf8(value) ? value : at_shown(value, shown, sizeof shown));
}
