/* What operations are written with: error messages, saved records, loops over ranges. */
#ifndef AT_BLOCK_H
#define AT_BLOCK_H

#include "tape/tape.h"

/* `return AT_REFUSE(tape, AT_SHAPE, "matmul: ...", ...)`: records the error,
 * and is NULL. */
#define AT_REFUSE(tape, code, ...) (at_fail(at_tape_error(tape), code, __VA_ARGS__), NULL)
/* `return AT_NO_MEMORY(tape, "the operation %s", name)`: the same for AT_MEMORY, "out of memory for ...". */
#define AT_NO_MEMORY(tape, ...) (at_no_memory(at_tape_error(tape), __VA_ARGS__), NULL)
/* A shape as text that lives to the end of the enclosing block. */
#define AT_TEXT(shape) at_shape_text(shape, (char[200]){0}, 200)

/* A copy of `size` bytes in the tape's arena, for at_record's `saved`; NULL with an error message if out of
 * memory. */
void *at_keep(at_tape *tape, const void *bytes, size_t size);
/* Uninitialised memory in the tape's arena; NULL with an error message if out of memory. */
void *at_room(at_tape *tape, size_t size);

/* Records an operation with one output. */
at_tensor *at_record_one(const at_op *op, at_tensor *output, at_tensor *const *inputs, int input_count, void *saved);

/* Runs the task over 0 .. count-1 in pieces, each item being about `work` numbers, on several threads if that pays. The
 * pieces are the same for any number of threads. An item must write nothing that another item writes or reads. */
typedef void at_range_task(void *context, int64_t from, int64_t to);
void at_ranges(int64_t count, int64_t work, at_range_task *task, void *context);

/* The sum in double, over eight interleaved lanes: one fixed order, and the loop is a vector loop. */
double at_sum_numbers(const at_real *x, int64_t count);

#endif
