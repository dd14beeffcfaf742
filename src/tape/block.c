#include "tape/block.h"

#include <string.h>

#include "base/threads.h"

void *at_room(at_tape *tape, size_t size)
{
    if (!at_tape_ok(tape))
        return NULL;
    void *room = at_arena_take(at_tape_arena(tape), size);
    return room ? room : AT_NO_MEMORY(tape, "%zu bytes that an operation needs", size);
}

void *at_keep(at_tape *tape, const void *bytes, size_t size)
{
    void *kept = at_room(tape, size);
    return kept && size ? memcpy(kept, bytes, size) : kept; /* without bytes the pointer may be NULL */
}

at_tensor *at_record_one(const at_op *op, at_tensor *output, at_tensor *const *inputs, int input_count, void *saved)
{
    return output ? at_record(output->tape, op, &output, 1, inputs, input_count, saved) : NULL;
}

enum {
    PIECE = 1 << 14, /* numbers in a piece: they and their results stay in the second-level cache */
    PAYS = 1 << 17   /* numbers from which starting threads costs less than it brings */
};

typedef struct ranges {
    int64_t count, step;
    at_range_task *task;
    void *context;
} ranges;

static void run_piece(void *context, int64_t index, int worker)
{
    (void)worker;
    const ranges *r = context;
    int64_t from = index * r->step, to = from + r->step;
    r->task(r->context, from, to < r->count ? to : r->count);
}

void at_ranges(int64_t count, int64_t work, at_range_task *task, void *context)
{
    if (count <= 0)
        return;
    if (work < 1)
        work = 1;
    ranges r = {.count = count, .step = work < PIECE ? PIECE / work : 1, .task = task, .context = context};
    int64_t pieces = (count + r.step - 1) / r.step;
    at_parallel(pieces, count >= PAYS / work ? at_threads() : 1, run_piece, &r);
}

double at_sum_numbers(const at_real *x, int64_t count)
{
    enum { LANES = 8 };
    double lane[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        for (int l = 0; l < LANES; l++)
            lane[l] += x[i + l];
    }
    for (int l = 0; i < count; i++, l++)
        lane[l] += x[i];
    return ((lane[0] + lane[4]) + (lane[1] + lane[5])) + ((lane[2] + lane[6]) + (lane[3] + lane[7]));
}
