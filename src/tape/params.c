#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "kernels/gemm.h"
#include "tape/params_internal.h"

at_params *at_params_new(void)
{
    at_params *params = calloc(1, sizeof *params);
    if (!params)
        return NULL;
    params->version = 1;
    params->names = at_arena_new();
    params->arena = at_arena_new();
    if (!params->names || !params->arena || pthread_mutex_init(&params->packing, NULL) != 0) {
        at_arena_free(params->names);
        at_arena_free(params->arena);
        free(params);
        return NULL;
    }
    return params;
}

void at_params_free(at_params *params)
{
    if (!params)
        return;
    pthread_mutex_destroy(&params->packing);
    at_arena_free(params->names);
    at_arena_free(params->arena);
    free(params->entries);
    free(params);
}

int at_params_add(at_params *params, const char *name, at_shape shape, at_error *error)
{
    if (error->code != AT_OK)
        return -1;
    if (params->values) {
        at_fail(error, AT_USAGE, "the parameter '%s' comes too late: the parameters are fixed already", name);
        return -1;
    }
    if (at_params_find(params, name) >= 0) {
        at_fail(error, AT_USAGE, "there are two parameters called '%s'; every name may be used once", name);
        return -1;
    }
    int64_t count = at_shape_count(shape), sum;
    if (__builtin_add_overflow(params->count, count, &sum)) {
        char text[200];
        at_no_memory(error, "the parameter '%s' of shape %s", name, at_shape_text(shape, text, sizeof text));
        return -1;
    }
    size_t length = strlen(name) + 1;
    char *kept = at_arena_take(params->names, length);
    if (!kept || !AT_GROW(params->entries, params->room, (size_t)params->number + 1)) {
        at_no_memory(error, "the parameter '%s'", name);
        return -1;
    }
    params->entries[params->number] =
        (at_param_entry){.name = memcpy(kept, name, length), .shape = shape, .offset = params->count};
    params->count = sum;
    return params->number++;
}

int at_params_add_matrix(at_params *params, const char *name, at_shape shape, at_error *error)
{
    const int index = at_params_add(params, name, shape, error);
    if (index >= 0)
        params->entries[index].is_matrix = true;
    return index;
}

bool at_block_make(at_arena *arena, int64_t count, at_real **block)
{
    size_t bytes;
    if (!*block && !__builtin_mul_overflow((size_t)count, sizeof(at_real), &bytes))
        *block = at_arena_zeros(arena, bytes);
    return *block;
}

bool at_param_entry_make(at_param_entry *e, at_arena *arena, int64_t *count)
{
    e->offset = *count;
    e->packed[0] = e->packed[1] = (at_packing){0};
    e->narrow = e->scale = NULL;
    if (e->type == AT_NUMBERS_REAL) {
        *count += at_shape_count(e->shape);
        return true;
    }
    const int64_t rows = e->shape.dim[0], columns = e->shape.dim[1];
    e->narrow = at_arena_take(arena, (size_t)at_narrow_count(rows, columns) * at_number_size(e->type));
    if (e->type == AT_NUMBERS_INT8) /* filled up to whole panels */
        e->scale = at_arena_zeros(arena, (size_t)at_narrow_count(rows, 1) * sizeof *e->scale);
    return e->narrow && (e->scale || e->type != AT_NUMBERS_INT8);
}

bool at_params_fix_values(at_params *params, at_error *error)
{
    int64_t count = 0;
    bool done = true;
    if (error->code != AT_OK || params->values)
        return error->code == AT_OK;
    for (int i = 0; done && i < params->number; i++)
        done = at_param_entry_make(&params->entries[i], params->arena, &count);
    return (done && at_block_make(params->arena, count, &params->values)) ||
           at_no_memory(error, "%lld parameters", (long long)params->count);
}

bool at_params_fix(at_params *params, at_error *error)
{
    for (int i = 0; i < params->number; i++)
        if (params->entries[i].type != AT_NUMBERS_REAL)
            return at_fail(error, AT_USAGE, "parameters in fewer bits cannot be trained");
    return error->code == AT_OK &&
           ((at_block_make(params->arena, params->count, &params->grads) && at_params_fix_values(params, error)) ||
            at_no_memory(error, "%lld parameters and their gradients", (long long)params->count));
}

int at_params_number(const at_params *params)
{
    return params->number;
}

int64_t at_params_count(const at_params *params)
{
    return params->count;
}

at_real *at_params_values(at_params *params)
{
    return params->values;
}

at_real *at_params_grads(at_params *params)
{
    return params->grads;
}

const char *at_params_name(const at_params *params, int index)
{
    return params->entries[index].name;
}

at_shape at_params_shape(const at_params *params, int index)
{
    return params->entries[index].shape;
}

at_real *at_params_value(at_params *params, int index)
{
    const at_param_entry *e = &params->entries[index];
    return e->type == AT_NUMBERS_REAL ? params->values + e->offset : NULL;
}

int at_params_find(const at_params *params, const char *name)
{
    for (int i = 0; i < params->number; i++) {
        if (strcmp(params->entries[i].name, name) == 0)
            return i;
    }
    return -1;
}

void at_params_freeze(at_params *params, int index)
{
    params->entries[index].frozen = true;
}

bool at_params_frozen(const at_params *params, int index)
{
    return params->entries[index].frozen;
}

at_tensor *at_weights(at_tape *tape, at_params *params, int index)
{
    if (!at_tape_ok(tape))
        return NULL;
    if (index < 0 || index >= params->number || !params->values) {
        at_fail(at_tape_error(tape), AT_USAGE, "there is no parameter number %d among the %d that are fixed", index,
                params->values ? params->number : 0);
        return NULL;
    }
    at_param_entry *e = &params->entries[index];
    at_real *grad = params->grads ? params->grads + e->offset : NULL;
    at_tensor *leaf = at_leaf(tape, e->shape, at_params_value(params, index), grad, grad);
    if (leaf) {
        leaf->params = params;
        leaf->param = index;
    }
    return leaf;
}

/* The parameter W [rows,columns] as the B of a product: B = W^T when transposed (x W^T), else B = W. */
static const at_real *pack(at_params *params, const at_param_entry *e, at_packing *p, bool transposed)
{
    int64_t rows = e->shape.dim[0], columns = e->shape.dim[1];
    int64_t k = transposed ? columns : rows, n = transposed ? rows : columns;
    if (p->version == params->version) /* another thread was faster */
        return p->numbers;
    if (!p->numbers)
        p->numbers = at_arena_take(params->arena, (size_t)at_gemm_packed_size(k, n) * sizeof(at_real));
    if (!p->numbers)
        return NULL;
    const at_real *w = params->values + e->offset;
    at_gemm_pack(w, transposed ? 1 : columns, transposed ? columns : 1, k, n, p->numbers);
    __atomic_store_n(&p->version, params->version, __ATOMIC_RELEASE);
    return p->numbers;
}

const at_real *at_params_packed(at_params *params, int index, bool transposed)
{
    at_param_entry *e = &params->entries[index];
    if (e->shape.rank != 2 || !params->values || e->type != AT_NUMBERS_REAL)
        return NULL;
    at_packing *p = &e->packed[transposed];
    if (__atomic_load_n(&p->version, __ATOMIC_ACQUIRE) == params->version)
        return p->numbers;
    pthread_mutex_lock(&params->packing);
    const at_real *numbers = pack(params, e, p, transposed);
    pthread_mutex_unlock(&params->packing);
    return numbers;
}

void at_params_changed(at_params *params)
{
    params->version++;
}
