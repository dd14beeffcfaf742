/* Pictures as a source. The units of such a source are the cells of the grid that the encoder makes of a picture, all
 * with the same id: the number of the picture in a store. So corpora, batches and search treat pictures as they treat
 * sentences. */
#ifndef AT_MODEL_PICTURES_H
#define AT_MODEL_PICTURES_H

#include "image/pictures.h"
#include "layers/layers.h"
#include "models/model.h"

/* How a model of these settings wants its pictures, and the convolutions of its encoder; none for features. */
bool at_picture_form_of(const at_model_settings *settings, at_picture_form *form, at_convolutions *layers,
                        at_error *error);

/* The grid of the cells that the convolutions make of a picture; features are one row of cells. */
void at_picture_cells(const at_pictures *pictures, const at_convolutions *layers, int64_t id, int64_t *height,
                      int64_t *width);

/* Whether models of these settings make the same grid of every picture, as those of an ensemble must. */
bool at_pictures_alike(const at_model_settings *a, const at_model_settings *b, at_error *error);

/* The pictures of a batch as one tensor [pixels, channels], and their sizes in *grids. In training with `augment` they
 * are changed a little. */
at_tensor *at_picture_tensor(const at_pass *pass, const at_source *source, at_grids *grids);

#endif
