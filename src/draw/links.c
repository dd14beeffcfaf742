#include "score/links.h"
#include "attend_unstable.h"
#include "base/error.h"
#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

bool at_drawing_links(const char *text, at_drawing_link **links, int64_t *count, at_error *error)
{
    at_units reader = {text, text + strlen(text), true};
    at_unit unit;
    size_t room = 0;
    *links = NULL;
    *count = 0;
    while (error->code == AT_OK && at_units_next(&reader, &unit)) {
        char shown[AT_SHOWN];
        uint64_t link;
        bool sure;
        if (!at_link_read(unit, &link, &sure))
            at_fail(error, AT_FORMAT, "'%s' is no link; links are source-target pairs such as 0-0 or 1?2",
                    at_link_shown(unit, shown));
        else if (!AT_GROW(*links, room, (size_t)*count + 1))
            at_no_memory(error, "links");
        else
            (*links)[(*count)++] = (at_drawing_link){(int64_t)(uint32_t)link, (int64_t)(link >> 32), !sure};
    }
    if (error->code == AT_OK)
        return true;
    free(*links);
    *links = NULL;
    return false;
}
