/* From lines that name pictures to the units of a source (see models/pictures.h). */
#ifndef AT_PICTURE_SOURCE_H
#define AT_PICTURE_SOURCE_H

#include "models/pictures.h"
#include "text/corpus.h"

typedef struct at_picture_source at_picture_source;
at_picture_source *at_picture_source_new(const at_model_settings *settings, at_error *error);
void at_picture_source_free(at_picture_source *source);
void at_picture_source_clear(at_picture_source *source); /* forgets the pictures, keeps the memory */
const at_pictures *at_picture_source_pictures(const at_picture_source *source);
/* Adds the picture that a line names: the number of its cells, and its id; -1 with an error. */
int64_t at_picture_source_add(at_picture_source *source, at_line line, int32_t *id, at_error *error);
/* The same for at_lines. */
at_source_reader at_picture_source_reader(at_picture_source *source);
/* The grid of a picture's cells; features are one row. */
void at_picture_source_grid(const at_picture_source *source, int32_t id, int64_t *height, int64_t *width);

#endif
