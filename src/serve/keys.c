/* The keys of those who may use the server: a file with one in each line. */
#include <string.h>

#include "serve/serve_internal.h"

/* The key of a line: without the blanks around it, and empty for a comment. */
static at_line key_of(at_line line)
{
    while (line.size > 0 && (*line.text == ' ' || *line.text == '\t'))
        line = (at_line){line.text + 1, line.size - 1};
    while (line.size > 0 && (line.text[line.size - 1] == ' ' || line.text[line.size - 1] == '\t'))
        line.size--;
    return line.size > 0 && *line.text == '#' ? (at_line){"", 0} : line;
}

bool at_keys_read(at_keys *keys, const char *path, at_error *error)
{
    int64_t count = 0;
    keys->list = at_line_list_read(path, error);
    for (int64_t i = 0; keys->list && i < keys->list->count; i++) {
        keys->list->line[i] = key_of(keys->list->line[i]);
        count += keys->list->line[i].size > 0;
    }
    if (keys->list && count < 1)
        at_fail(error, AT_FORMAT, "'%s' has no API key; a key is a line of its own", path);
    if (error->code != AT_OK)
        at_keys_free(keys);
    return error->code == AT_OK;
}

static unsigned differ(at_line line, const char *key, size_t size)
{
    unsigned difference = line.size != size;
    for (size_t i = 0; i < line.size; i++)
        difference |= (unsigned char)line.text[i] ^ (unsigned char)key[size > 0 ? i % size : 0];
    return difference;
}

bool at_keys_have(const at_keys *keys, const char *key)
{
    const size_t size = strlen(key);
    unsigned found = 0;
    for (int64_t i = 0; keys->list && i < keys->list->count; i++)
        found |= (differ(keys->list->line[i], key, size) == 0) & (keys->list->line[i].size > 0);
    return found;
}

void at_keys_free(at_keys *keys)
{
    at_line_list_free(keys->list);
    keys->list = NULL;
}
