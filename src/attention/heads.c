/* Heads: MultiHead = [head_1; ...; head_h] W_O. A head is a slice of columns, so splitting and joining are views; only
 * the plain path and per-head parameters bring the heads to the front. Fewer key/value heads than query heads (grouped,
 * multi-query) share each of theirs among H/G neighbours. */
#include "attention/axes_internal.h"

at_tensor *at_split_heads(at_tensor *x, int64_t heads)
{
    return x ? at_reshape(x, AT_SHAPE(x->shape.dim[0], x->shape.dim[1], heads, x->shape.dim[2] / heads)) : NULL;
}

at_tensor *at_join_heads(at_tensor *x)
{
    return x ? at_reshape(x, AT_SHAPE(x->shape.dim[0], x->shape.dim[1], x->shape.dim[2] * x->shape.dim[3])) : NULL;
}

at_tensor *at_swap_heads(at_tensor *x)
{
    if (!x)
        return NULL;
    const int64_t *dim = x->shape.dim;
    if (dim[1] == 1 || dim[2] == 1) /* the numbers lie the same either way */
        return at_reshape(x, AT_SHAPE(dim[0], dim[2], dim[1], dim[3]));
    return at_permute(x, (const int[]){0, 2, 1, 3});
}

at_tensor *at_repeat_heads(at_tensor *x, int64_t heads)
{
    if (!x || x->shape.dim[2] == heads)
        return x;
    const int64_t B = x->shape.dim[0], n = x->shape.dim[1], G = x->shape.dim[2], size = x->shape.dim[3];
    at_real *zeros = at_arena_zeros(at_tape_arena(x->tape), (size_t)(heads / G) * sizeof *zeros);
    if (!zeros) {
        at_no_memory(at_tape_error(x->tape), "repeated key heads");
        return NULL;
    }
    at_tensor *spread = at_leaf(x->tape, AT_SHAPE(heads / G, 1), zeros, NULL, false);
    x = at_add(at_reshape(x, AT_SHAPE(B, n, G, 1, size)), spread); /* [B,n,G,H/G,size] */
    return at_reshape(x, AT_SHAPE(B, n, heads, size));
}

at_tensor *at_heads_product(at_tensor *x, at_tensor *w, int64_t heads, bool transpose)
{
    if (!x || !w)
        return NULL;
    const int64_t B = x->shape.dim[0], n = x->shape.dim[1], G = x->shape.dim[2], in = x->shape.dim[3];
    if (w->shape.rank == 2) {
        at_tensor *y = at_matmul(at_reshape(x, AT_SHAPE(B * n * G, in)), w, false, transpose);
        return at_reshape(y, AT_SHAPE(B, n, G, -1));
    }
    /* [B,G,1,n,in] x [G,H/G,in,out] -> [B,G,H/G,n,out] */
    x = at_reshape(at_swap_heads(x), AT_SHAPE(B, G, 1, n, in));
    w = at_reshape(w, AT_SHAPE(G, heads / G, w->shape.dim[1], w->shape.dim[2]));
    return at_swap_heads(at_reshape(at_matmul(x, w, false, transpose), AT_SHAPE(B, heads, n, -1)));
}
