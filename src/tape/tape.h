/* The tape: an eager record of operations over an arena, and the backward pass over it.
 *
 * A tensor is immutable once made. An operation computes at once; if the tape records, it also leaves a node, and
 * at_backward walks the nodes from the last to the first. A tape that does not record is inference: the same model code
 * trains and translates. Errors are sticky on the tape; a failed operation returns NULL, and NULL passes through every
 * operation, so only the end of a computation needs a check. */
#ifndef AT_TAPE_H
#define AT_TAPE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/real.h"
#include "base/rng.h"

typedef struct at_shape {
    int rank;
    int64_t dim[AT_MAX_RANK];
} at_shape;

typedef struct at_tape at_tape;
typedef struct at_tensor at_tensor;
typedef struct at_node at_node;

struct at_tensor {
    at_tape *tape;
    at_shape shape;
    at_real *value;  /* dense, last dimension contiguous */
    at_real *grad;   /* dL/dvalue; NULL until something is added: use at_tensor_grad */
    at_tensor *base; /* a view shares this tensor's memory, starting at `offset` */
    int64_t offset;
    bool wants_grad;          /* it depends on a parameter or a marked leaf, on a recording tape */
    bool spare;               /* the operation that made it does not read its values in the backward pass */
    bool owned;               /* its values are the tape's, made for it alone */
    int readers;              /* recorded operations that it or a view of it is an input of; counted at the base */
    struct at_params *params; /* a whole parameter: the one at index `param` of these, to find its packed form */
    int param;
};

/* What an operation is: its name and its backward pass. One static const per operation, beside its code. */
typedef struct at_op {
    const char *name;
    void (*backward)(at_node *node);
} at_op;

/* One recorded operation. Backward reads `outputs[0]->grad` (and further outputs' if any) and adds to the inputs'
 * grads. It runs only if some output has a gradient; the other outputs' gradients are then zeros, never NULL. */
struct at_node {
    const at_op *op;
    at_node *previous;
    int input_count, output_count;
    at_tensor **inputs; /* entries may be NULL for optional inputs */
    at_tensor **outputs;
    void *saved; /* the operation's own record, in the tape's arena */
};

at_tape *at_tape_new(at_arena *arena, bool records); /* lives in the arena; the arena is the caller's */
at_arena *at_tape_arena(at_tape *tape);
at_error *at_tape_error(at_tape *tape);
bool at_tape_ok(const at_tape *tape);
bool at_tape_records(const at_tape *tape);
const at_node *at_tape_last(const at_tape *tape); /* the operation recorded last, or NULL */

/* A leaf over the caller's memory. `grad` (may be NULL: then it is arena memory, if wanted) receives += dL/dvalue. */
at_tensor *at_leaf(at_tape *tape, at_shape shape, const at_real *value, at_real *grad, bool wants_grad);

/* Runs back from `loss` (one element, seeded with 1), or from any tensor with the seed given. Once per tape. What was
 * added to other tensors' gradients (at_tensor_grad) before is a seed too, so one walk can start from several tensors.
 * Values and gradients of what lies between that tensor and the leaves are used up: their memory is reused. */
bool at_backward(at_tensor *loss);
bool at_backward_from(at_tensor *tensor, const at_real *seed);

/* Tells while the backward pass runs which parameters have their gradients: those that no operation still to come reads. After
 * the first deferred work (at_tape_defer) it tells of none: they are all complete when the pass ends. */
typedef struct at_watch {
    const struct at_params *params;
    int *uses; /* [number of parameters] memory of the walk */
    void (*complete)(void *context, int param);
    void (*between)(void *context); /* after each operation */
    void *context;
} at_watch;
void at_tape_watch(at_tape *tape, const at_watch *watch); /* which must stay there */

/* ---- For writing operations ---- */

/* Work deferred to the end of the backward pass: `finish` is called once, after the last node, with the slot's value.
 * The slot, NULL at first, belongs to the one operation that uses it; its memory is the tape's arena. */
void **at_tape_defer(at_tape *tape, void (*finish)(at_tape *tape, void *kept));

/* A fresh tensor, values uninitialised. NULL when out of memory or the tape has failed. */
at_tensor *at_tensor_make(at_tape *tape, at_shape shape);
/* The same over memory that is already there (a caller's output buffer). */
at_tensor *at_tensor_over(at_tape *tape, at_shape shape, at_real *value);
/* A tensor that shares memory with `base` from `offset` on. */
at_tensor *at_tensor_view(at_tensor *base, int64_t offset, at_shape shape);
/* The gradient to add to: zeros at first touch. NULL if the tensor wants none. */
at_real *at_tensor_grad(at_tensor *tensor);
/* The same for an operation that goes through all of it: *add false says that nothing was added yet: the memory is
 * uninitialised and is to be written; else it is to be added to. */
at_real *at_tensor_grad_whole(at_tensor *tensor, bool *add);

/* The same for an operation that reads the values for the last time: if it is their only reader and the tensor is
 * `spare`, the gradient overwrites them. */
at_real *at_tensor_grad_over(at_tensor *tensor, bool *add);

/* Records the operation if the tape records and any input wants a gradient; marks the outputs as wanting one. `saved`
 * lives in the tape's arena. Returns outputs[0], or NULL if the tape has failed. */
at_tensor *at_record(at_tape *tape, const at_op *op, at_tensor *const *outputs, int output_count,
                     at_tensor *const *inputs, int input_count, void *saved);

int64_t at_shape_count(at_shape shape);
bool at_shape_same(at_shape a, at_shape b);
/* "[4,5,6]" written into the caller's buffer. */
const char *at_shape_text(at_shape shape, char *buffer, size_t size);
#define AT_SHAPE(...)                                                                                                  \
    at_shape_make((const int64_t[]){__VA_ARGS__}, (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))
at_shape at_shape_make(const int64_t *dim, int rank);

#endif
