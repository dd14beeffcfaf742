/* An encoder of pictures: convolution, norm of each picture, relu, max-pooling; a layer may add its input. */
#include <stdio.h>

#include "layers/layers.h"

enum { MOST_CHANNELS = 1 << 16, MOST_SIDE = 31, MOST_POOL = 15 };

/* "64x3s2p2": channels x window, then stride and pooling if they are not 1, and r if the input is added. Returns what
 * follows it, or NULL. */
static const char *parse_layer(const char *text, at_convolution *layer)
{
    int used = 0;
    *layer = (at_convolution){.stride = 1, .pool = 1};
    long long channels, window, value;
    if (sscanf(text, "%5lldx%2lld%n", &channels, &window, &used) != 2)
        return NULL;
    layer->channels = channels;
    layer->window = window;
    for (text += used; *text == 's' || *text == 'p'; text += used) {
        if (sscanf(text + 1, "%2lld%n", &value, &used) != 1)
            return NULL;
        *(*text == 's' ? &layer->stride : &layer->pool) = value;
        used++;
    }
    layer->residual = *text == 'r';
    text += layer->residual;
    const bool good = channels >= 1 && channels <= MOST_CHANNELS && window >= 1 && window <= MOST_SIDE &&
                      window % 2 == 1 && layer->stride >= 1 && layer->pool >= 1 && layer->pool <= MOST_POOL;
    return good && (*text == '\0' || *text == ',') ? text : NULL;
}

/* An input can be added to an output of the same size only. */
static bool fits_residual(const char *text, const at_convolutions *layers, at_error *error)
{
    const int i = layers->count;
    const at_convolution *layer = &layers->layer[i];
    if (!layer->residual)
        return true;
    if (i == 0)
        return at_fail(error, AT_USAGE, "the first layer of '%s' cannot add its input (r), which is the picture", text);
    const long long before = (long long)layers->layer[i - 1].channels;
    return (layer->stride == 1 && layer->channels == before) ||
           at_fail(error, AT_USAGE,
                   "layer %d of '%s' adds its input (r), so it must have stride 1 and %lld channels like the layer "
                   "before it, and not stride %lld and %lld channels",
                   i + 1, text, before, (long long)layer->stride, (long long)layer->channels);
}

bool at_convolutions_parse(const char *text, at_convolutions *layers, at_error *error)
{
    *layers = (at_convolutions){0};
    for (const char *at = text; layers->count < AT_MOST_CONVOLUTIONS;) {
        at = parse_layer(at, &layers->layer[layers->count]);
        if (!at)
            break;
        if (!fits_residual(text, layers, error))
            return false;
        layers->count++;
        if (!*at)
            return true;
        at++;
    }
    return at_fail(error, AT_USAGE,
                   "'%s' is not a list of at most %d layers such as 16x5s2,32x3p2,32x3r: channels x window (odd, at "
                   "most %d), then s and the stride, p and the size of the pooling (at most %d) if there are any, r "
                   "if the input is added",
                   text, AT_MOST_CONVOLUTIONS, MOST_SIDE, MOST_POOL);
}

bool at_convolutions_declare(at_params *params, const char *name, int64_t in, at_convolutions *layers, at_error *error)
{
    for (int i = 0; i < layers->count; i++) {
        at_convolution *layer = &layers->layer[i];
        char full[3][100];
        for (int k = 0; k < 3; k++)
            snprintf(full[k], sizeof full[k], "%s.%d.%c", name, i + 1, "Wgb"[k]);
        layer->w = at_params_add(params, full[0], AT_SHAPE(layer->channels, layer->window * layer->window * in), error);
        layer->gain = at_params_add(params, full[1], AT_SHAPE(layer->channels), error);
        layer->bias = at_params_add(params, full[2], AT_SHAPE(layer->channels), error);
        in = layer->channels;
    }
    return error->code == AT_OK;
}

void at_convolutions_size(const at_convolutions *layers, int64_t *height, int64_t *width)
{
    for (int i = 0; i < layers->count; i++) {
        const int64_t step[2] = {layers->layer[i].stride, layers->layer[i].pool};
        for (int k = 0; k < 2; k++) { /* the windows are odd and padded: sizes are divided and rounded up */
            *height = (*height + step[k] - 1) / step[k];
            *width = (*width + step[k] - 1) / step[k];
        }
    }
}

at_tensor *at_convolutions_apply(at_tape *tape, at_params *params, const at_convolutions *layers, at_tensor *x,
                                 const at_grids *in, int64_t groups, at_grids *out)
{
    *out = *in;
    for (int i = 0; i < layers->count && x; i++) {
        const at_convolution *l = &layers->layer[i];
        const at_window window = {l->window, l->window, l->stride, l->window / 2},
                        pool = {l->pool, l->pool, l->pool, 0};
        const at_grids before = *out;
        *out = at_grids_after(tape, &before, window, false);
        at_tensor *y = at_conv(x, &before, window, at_param(tape, params, l->w), NULL, AT_ACT_NONE, out);
        y = at_group_norm(y, out, groups, at_param(tape, params, l->gain), at_param(tape, params, l->bias),
                          (at_real)1e-5, !l->residual);
        x = l->residual ? at_relu(at_add(x, y)) : y; /* He et al. 2016, in blocks of one layer */
        if (l->pool == 1 || !x)
            continue;
        const at_grids full = *out;
        *out = at_grids_after(tape, &full, pool, true);
        x = at_max_pool(x, &full, pool, out);
    }
    return x;
}
