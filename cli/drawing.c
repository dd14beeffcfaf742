#include "drawing.h"

#include <string.h>

#include "options.h"
#include "rasterise.h"

bool is_drawing(const char *path)
{
    return ends_in(path, ".svg") || ends_in(path, ".png") || ends_in(path, ".pdf");
}

bool drawing_save(const char *svg, const char *path, at_error *error)
{
    return ends_in(path, ".svg") ? at_file_write(path, svg, strlen(svg), error)
                                 : rasterise(svg, strlen(svg), path, error);
}
