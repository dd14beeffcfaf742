/* Operations whose results are not kept. */
#include <string.h>

#include "tape/block.h"
#include "tape/ops.h"

/* ---- recompute: y = build(x_1, x_2, ...), whose own tape is thrown away, and built again in the backward pass ---- */

typedef struct recomputed {
    at_build *build;
    const void *context;
} recomputed;

/* The inputs as leaves of another tape; their gradients, where wanted, are those of the inputs. */
static at_tensor *run_again(at_tape *inner, const recomputed *r, at_tensor *const *inputs, int count, bool learns)
{
    at_tensor *leaf[AT_MOST_RECOMPUTED] = {0};
    for (int i = 0; i < count; i++) {
        at_tensor *x = inputs[i];
        if (!x)
            continue;
        leaf[i] = at_leaf(inner, x->shape, x->value, learns ? x->grad : NULL, learns && x->wants_grad);
        if (leaf[i] && !x->base) {
            leaf[i]->params = x->params; /* a whole parameter has a packed form */
            leaf[i]->param = x->param;
        }
    }
    return r->build(inner, leaf, r->context);
}

static bool pass_error(at_tape *from, at_tape *to)
{
    if (!at_tape_ok(from))
        at_fail(at_tape_error(to), at_tape_error(from)->code, "%s", at_tape_error(from)->text);
    return at_tape_ok(to);
}

static void recompute_backward(at_node *node)
{
    at_tensor *y = node->outputs[0];
    at_tape *tape = y->tape;
    for (int i = 0; i < node->input_count; i++) /* before the mark, because they stay */
        at_tensor_grad(node->inputs[i]);
    const at_mark mark = at_arena_mark(at_tape_arena(tape));
    at_tape *inner = at_tape_ok(tape) ? at_tape_new(at_tape_arena(tape), true) : NULL;
    if (inner) {
        at_tensor *again = run_again(inner, node->saved, node->inputs, node->input_count, true);
        if (again)
            at_backward_from(again, y->grad);
        pass_error(inner, tape);
    } else if (at_tape_ok(tape)) {
        at_no_memory(at_tape_error(tape), "a tape");
    }
    at_arena_release(at_tape_arena(tape), mark);
}

static const at_op recompute_op = {"recompute", recompute_backward};

at_tensor *at_recompute(at_tape *tape, at_shape shape, at_build *build, const void *context, at_tensor *const *inputs,
                        int count)
{
    if (!at_tape_ok(tape) || count > AT_MOST_RECOMPUTED)
        return NULL;
    const recomputed r = {build, context};
    at_tensor *y = at_tensor_make(tape, shape);
    void *saved = at_keep(tape, &r, sizeof r);
    const at_mark mark = at_arena_mark(at_tape_arena(tape));
    at_tape *inner = y && saved ? at_tape_new(at_tape_arena(tape), false) : NULL;
    if (!inner)
        return at_tape_ok(tape) ? AT_NO_MEMORY(tape, "a tape") : NULL;
    at_tensor *once = run_again(inner, &r, inputs, count, false);
    if (once && pass_error(inner, tape)) {
        if (!at_shape_same(once->shape, shape))
            at_fail(at_tape_error(tape), AT_SHAPE, "recompute: %s was announced and %s built", AT_TEXT(shape),
                    AT_TEXT(once->shape));
        else
            memcpy(y->value, once->value, (size_t)at_shape_count(shape) * sizeof *y->value);
    }
    const bool good = pass_error(inner, tape) && once;
    at_arena_release(at_tape_arena(tape), mark);
    return good ? at_record_one(&recompute_op, y, inputs, count, saved) : NULL;
}
