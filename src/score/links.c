#include "score/links.h"

#include <stdio.h>

/* Up to nine digits: no line has as many words. */
static bool read_position(const char **at, const char *end, uint64_t *position)
{
    const char *start = *at;
    for (*position = 0; *at < end && **at >= '0' && **at <= '9' && *at - start < 9; ++*at)
        *position = *position * 10 + (uint64_t)(**at - '0');
    return *at > start;
}

bool at_link_read(at_unit unit, uint64_t *link, bool *sure)
{
    const char *at = unit.text, *end = unit.text + unit.size;
    uint64_t source, target;
    if (!read_position(&at, end, &source) || at == end || (*at != '-' && *at != '?'))
        return false;
    *sure = *at++ == '-';
    if (!read_position(&at, end, &target) || at != end)
        return false;
    *link = source << 32 | target;
    return true;
}

char *at_link_shown(at_unit unit, char out[AT_SHOWN])
{
    char word[AT_SHOWN];
    snprintf(word, sizeof word, "%.*s", (int)(unit.size < sizeof word ? unit.size : sizeof word), unit.text);
    return at_shown(word, out, AT_SHOWN);
}
