#include "explore.h"

#include <stdlib.h>
#include <string.h>

static at_explorer page_of(const explore *e)
{
    return (at_explorer){.title = e->title,
                         .source = e->source,
                         .beams = e->beams,
                         .links = e->links,
                         .link_count = e->link_count,
                         .picture = e->picture,
                         .grid_rows = e->grid_rows,
                         .grid_columns = e->grid_columns};
}

static bool save(char *html, const char *path, at_error *error)
{
    const bool good = html && at_file_write(path, html, strlen(html), error);
    at_text_free(html);
    return good;
}

bool explore_line(const explore *e, const at_maps *maps, const char *path, at_error *error)
{
    at_explorer page = page_of(e);
    page.other = e->other;
    page.heads = e->heads ? e->heads->head : NULL;
    page.head_count = e->heads ? e->heads->count : 0;
    return save(at_explorer_line(&page, maps, e->other_maps, e->relevance, error), path, error);
}

bool explore_array(const explore *e, const cli_maps *maps, const char *path, at_error *error)
{
    at_explorer page = page_of(e);
    page.maps = maps->map;
    page.count = maps->layers;
    page.of_array = true;
    return save(at_explorer_html(&page, error), path, error);
}
