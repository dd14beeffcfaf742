#include "tape/params.h"

#include <stdio.h>
#include <string.h>

/* Memory that the backward pass no longer needs; this record is stored in it. */
typedef struct spare_block {
    struct spare_block *next;
    size_t bytes;
} spare_block;

struct at_tape {
    at_arena *arena;
    spare_block *spare;
    at_error error;
    bool records;
    bool walked; /* at_backward has run: intermediate gradients are used up */
    at_node *last;
    void (*finish)(at_tape *tape, void *kept); /* the deferred work, see at_tape_defer */
    void *kept;
    const at_watch *watch; /* NULL: nobody watches */
};

at_tape *at_tape_new(at_arena *arena, bool records)
{
    at_tape *tape = at_arena_zeros(arena, sizeof *tape);
    if (!tape)
        return NULL;
    tape->arena = arena;
    tape->records = records;
    return tape;
}

at_arena *at_tape_arena(at_tape *tape)
{
    return tape->arena;
}

at_error *at_tape_error(at_tape *tape)
{
    return &tape->error;
}

bool at_tape_ok(const at_tape *tape)
{
    return tape && tape->error.code == AT_OK;
}

void **at_tape_defer(at_tape *tape, void (*finish)(at_tape *tape, void *kept))
{
    tape->finish = finish;
    return &tape->kept;
}

void at_tape_watch(at_tape *tape, const at_watch *watch)
{
    tape->watch = watch;
}

bool at_tape_records(const at_tape *tape)
{
    return tape && tape->records;
}

const at_node *at_tape_last(const at_tape *tape)
{
    return tape->last;
}

/* ---- Shapes ---- */

at_shape at_shape_make(const int64_t *dim, int rank)
{
    at_shape shape = {.rank = rank};
    memcpy(shape.dim, dim, (size_t)rank * sizeof *dim);
    return shape;
}

/* A product that does not fit is INT64_MAX, which no memory holds, so a size from outside cannot wrap around. */
int64_t at_shape_count(at_shape shape)
{
    int64_t count = 1;
    bool over = false;
    for (int i = 0; i < shape.rank; i++) {
        if (shape.dim[i] <= 0)
            return 0;
        over = over || __builtin_mul_overflow(count, shape.dim[i], &count);
    }
    return over ? INT64_MAX : count;
}

bool at_shape_same(at_shape a, at_shape b)
{
    return a.rank == b.rank && memcmp(a.dim, b.dim, (size_t)a.rank * sizeof *a.dim) == 0;
}

const char *at_shape_text(at_shape shape, char *buffer, size_t size)
{
    size_t used = (size_t)snprintf(buffer, size, "[");
    for (int i = 0; i < shape.rank && used < size; i++)
        used += (size_t)snprintf(buffer + used, size - used, i ? ",%lld" : "%lld", (long long)shape.dim[i]);
    if (used < size)
        snprintf(buffer + used, size - used, "]");
    return buffer;
}

/* ---- Tensors ---- */

/* Smaller blocks are not reused in the backward pass: the loss and other results are read after it. */
enum { WORTH_KEEPING = 1 << 16 };

/* What is left of a block that is cut starts on a cache line, like everything in the arena. */
static void *take_spare(at_tape *tape, size_t bytes)
{
    bytes = (bytes + AT_ALIGN - 1) / AT_ALIGN * AT_ALIGN;
    for (spare_block **at = &tape->spare; *at; at = &(*at)->next) {
        spare_block *block = *at;
        if (block->bytes < bytes)
            continue;
        *at = block->next;
        if (block->bytes - bytes >= WORTH_KEEPING) {
            spare_block *rest = (spare_block *)((char *)block + bytes);
            *rest = (spare_block){tape->spare, block->bytes - bytes};
            tape->spare = rest;
        }
        return block;
    }
    return NULL;
}

static void give_spare(at_tape *tape, at_real *numbers, at_shape shape)
{
    size_t bytes = (size_t)at_shape_count(shape) * sizeof *numbers;
    if (!numbers || bytes < WORTH_KEEPING)
        return;
    spare_block *block = (spare_block *)(void *)numbers;
    *block = (spare_block){tape->spare, bytes};
    tape->spare = block;
}

/* A node that has been walked was the last to need what it made: earlier nodes read their own results and what those
 * were made of. Its values and gradients become memory for the gradients still to come, unless deferred work
 * reads some of them at the end. */
static void reuse_outputs(at_tape *tape, const at_node *node)
{
    for (int i = 0; i < node->output_count && !tape->finish; i++) {
        at_tensor *made = node->outputs[i];
        if (!made || made->base || !made->owned)
            continue;
        if (made->grad != made->value)
            give_spare(tape, made->grad, made->shape);
        give_spare(tape, made->value, made->shape);
        made->owned = false;
    }
}

/* `count` numbers from the arena, or NULL with an error message on the tape. */
static at_real *take_numbers(at_tape *tape, at_shape shape, const char *what)
{
    int64_t count = at_shape_count(shape);
    size_t bytes;
    at_real *numbers = NULL;
    bool bytes_fit = !__builtin_mul_overflow((size_t)count, sizeof(at_real), &bytes);
    if (bytes_fit)
        numbers = tape->spare ? take_spare(tape, bytes) : NULL;
    if (!numbers && bytes_fit)
        numbers = at_arena_take(tape->arena, bytes);
    if (!numbers) {
        char text[200];
        at_no_memory(&tape->error, "the %s of shape %s, %lld numbers of %d bytes", what,
                     at_shape_text(shape, text, sizeof text), (long long)count, (int)sizeof(at_real));
    }
    return numbers;
}

static at_tensor *make_header(at_tape *tape, at_shape shape)
{
    if (!at_tape_ok(tape))
        return NULL;
    at_tensor *tensor = at_arena_zeros(tape->arena, sizeof *tensor);
    if (!tensor) {
        at_no_memory(&tape->error, "one more tensor");
        return NULL;
    }
    tensor->tape = tape;
    tensor->shape = shape;
    return tensor;
}

at_tensor *at_tensor_over(at_tape *tape, at_shape shape, at_real *value)
{
    at_tensor *tensor = make_header(tape, shape);
    if (tensor)
        tensor->value = value;
    return tensor;
}

at_tensor *at_tensor_make(at_tape *tape, at_shape shape)
{
    at_tensor *tensor = make_header(tape, shape);
    if (!tensor)
        return NULL;
    tensor->value = take_numbers(tape, shape, "values");
    tensor->owned = true;
    return tensor->value ? tensor : NULL;
}

at_tensor *at_leaf(at_tape *tape, at_shape shape, const at_real *value, at_real *grad, bool wants_grad)
{
    at_tensor *tensor = at_tensor_over(tape, shape, (at_real *)value);
    if (tensor && wants_grad && tape->records) {
        tensor->wants_grad = true;
        tensor->grad = grad;
    }
    return tensor;
}

/* A view of a view has the first one's base: the gradient exists once. */
at_tensor *at_tensor_view(at_tensor *base, int64_t offset, at_shape shape)
{
    if (!base)
        return NULL;
    int64_t count = at_shape_count(shape), there = at_shape_count(base->shape);
    if (offset < 0 || offset > there || count > there - offset) {
        char outer[200], inner[200];
        at_fail(&base->tape->error, AT_SHAPE, "view: %s from number %lld on does not lie inside %s",
                at_shape_text(shape, inner, sizeof inner), (long long)offset,
                at_shape_text(base->shape, outer, sizeof outer));
        return NULL;
    }
    at_tensor *view = at_tensor_over(base->tape, shape, base->value + offset);
    if (!view)
        return NULL;
    view->base = base->base ? base->base : base;
    view->offset = base->offset + offset;
    view->wants_grad = base->wants_grad;
    return view;
}

at_real *at_tensor_grad(at_tensor *tensor)
{
    if (!tensor || !tensor->wants_grad)
        return NULL;
    if (tensor->grad)
        return tensor->grad;
    if (tensor->base) {
        at_real *grad = at_tensor_grad(tensor->base);
        tensor->grad = grad ? grad + tensor->offset : NULL;
    } else {
        tensor->grad = take_numbers(tensor->tape, tensor->shape, "gradients");
        if (tensor->grad)
            memset(tensor->grad, 0, (size_t)at_shape_count(tensor->shape) * sizeof(at_real));
    }
    return tensor->grad;
}

static at_tensor *root_of(at_tensor *tensor)
{
    return tensor->base ? tensor->base : tensor;
}

/* Whether the tensor wants a gradient that has not been touched yet, and is all of its base. */
static bool untouched(at_tensor *tensor)
{
    if (!tensor || !tensor->wants_grad)
        return false;
    const at_tensor *root = root_of(tensor);
    return root->wants_grad && !root->grad && at_shape_count(root->shape) == at_shape_count(tensor->shape);
}

at_real *at_tensor_grad_whole(at_tensor *tensor, bool *add)
{
    *add = !untouched(tensor);
    if (!*add) {
        at_tensor *root = root_of(tensor);
        root->grad = take_numbers(root->tape, root->shape, "gradients");
        if (!root->grad)
            return NULL;
    }
    return at_tensor_grad(tensor);
}

at_real *at_tensor_grad_over(at_tensor *tensor, bool *add)
{
    if (!untouched(tensor) || !root_of(tensor)->spare || root_of(tensor)->readers != 1)
        return at_tensor_grad_whole(tensor, add);
    *add = false;
    root_of(tensor)->grad = root_of(tensor)->value;
    return at_tensor_grad(tensor);
}

/* ---- Recording and the backward pass ---- */

at_tensor *at_record(at_tape *tape, const at_op *op, at_tensor *const *outputs, int output_count,
                     at_tensor *const *inputs, int input_count, void *saved)
{
    if (!at_tape_ok(tape))
        return NULL;
    bool wanted = false;
    for (int i = 0; i < input_count; i++)
        wanted = wanted || (inputs[i] && inputs[i]->wants_grad);
    if (!tape->records || !wanted)
        return outputs[0];
    at_node *node = at_arena_take(tape->arena, sizeof *node);
    at_tensor **links = at_arena_take(tape->arena, (size_t)(input_count + output_count) * sizeof *links);
    if (!node || !links) {
        at_no_memory(&tape->error, "the record of the operation %s", op->name);
        return NULL;
    }
    *node = (at_node){.op = op,
                      .previous = tape->last,
                      .input_count = input_count,
                      .output_count = output_count,
                      .inputs = links,
                      .outputs = links + input_count,
                      .saved = saved};
    for (int i = 0; i < input_count; i++) {
        node->inputs[i] = inputs[i];
        if (inputs[i])
            root_of(inputs[i])->readers++;
    }
    for (int i = 0; i < output_count; i++) {
        node->outputs[i] = outputs[i];
        if (outputs[i])
            outputs[i]->wants_grad = true;
    }
    tape->last = node;
    return outputs[0];
}

/* Whether a gradient reached the node; if so, its other outputs get zeros. */
static bool reached(at_node *node)
{
    bool any = false;
    for (int i = 0; i < node->output_count; i++)
        any = any || (node->outputs[i] && node->outputs[i]->grad);
    for (int i = 0; any && i < node->output_count; i++) {
        if (node->outputs[i] && !at_tensor_grad(node->outputs[i]))
            return false;
    }
    return any;
}

/* The parameter that an input is, or is a view of; -1: none that is watched. */
static int watched(const at_watch *watch, at_tensor *input)
{
    return input && root_of(input)->params == watch->params ? root_of(input)->param : -1;
}

/* Counts the reads of every parameter. Those without any have their gradients. */
static void begin_watch(const at_tape *tape)
{
    const at_watch *watch = tape->watch;
    const int number = at_params_number(watch->params);
    memset(watch->uses, 0, (size_t)number * sizeof *watch->uses);
    for (const at_node *node = tape->last; node; node = node->previous)
        for (int i = 0; i < node->input_count; i++)
            if (watched(watch, node->inputs[i]) >= 0)
                watch->uses[watched(watch, node->inputs[i])]++;
    for (int p = 0; p < number; p++)
        if (watch->uses[p] == 0)
            watch->complete(watch->context, p);
}

static void tell_watch(const at_tape *tape, const at_node *node)
{
    const at_watch *watch = tape->watch;
    for (int i = 0; i < node->input_count; i++) {
        const int p = watched(watch, node->inputs[i]);
        if (p >= 0 && --watch->uses[p] == 0 && !tape->finish)
            watch->complete(watch->context, p);
    }
    watch->between(watch->context);
}

bool at_backward_from(at_tensor *tensor, const at_real *seed)
{
    if (!tensor)
        return false;
    at_tape *tape = tensor->tape;
    if (!at_tape_ok(tape))
        return false;
    if (!tape->records)
        return at_fail(&tape->error, AT_USAGE,
                       "backward: this tape does not record; make one that does to get gradients");
    if (tape->walked)
        return at_fail(&tape->error, AT_USAGE,
                       "backward: the backward pass of this tape has run already; another one needs a new tape");
    tape->walked = true;
    root_of(tensor)->owned = false; /* the caller may read the start tensor afterwards */
    bool add;
    at_real *grad = at_tensor_grad_whole(tensor, &add);
    int64_t count = at_shape_count(tensor->shape);
    for (int64_t i = 0; grad && i < count; i++)
        grad[i] = add ? grad[i] + seed[i] : seed[i];
    if (tape->watch)
        begin_watch(tape);
    for (at_node *node = tape->last; node && at_tape_ok(tape); node = node->previous) {
        if (reached(node)) {
            node->op->backward(node);
            reuse_outputs(tape, node);
        }
        if (tape->watch && at_tape_ok(tape))
            tell_watch(tape, node);
    }
    if (tape->finish && at_tape_ok(tape))
        tape->finish(tape, tape->kept);
    return at_tape_ok(tape);
}

bool at_backward(at_tensor *loss)
{
    if (!loss)
        return false;
    if (at_shape_count(loss->shape) != 1) {
        char text[200];
        return at_fail(at_tape_error(loss->tape), AT_SHAPE,
                       "backward: a loss is one number, and this tensor is %s; sum it first",
                       at_shape_text(loss->shape, text, sizeof text));
    }
    const at_real one = 1;
    return at_backward_from(loss, &one);
}
