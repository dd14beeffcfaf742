/* A pool of threads. A task owns its output rows, so no sum is ever shared between threads. */
#ifndef AT_THREADS_H
#define AT_THREADS_H

#include "attend.h"

/* Runs task(context, index, worker) for index = 0 .. count-1 on up to `workers` threads (numbered 0 .. workers-1, to
 * choose that worker's scratch memory), and returns when all are done. Tasks start in order. */
typedef void at_task(void *context, int64_t index, int worker);
void at_parallel(int64_t count, int workers, at_task *task, void *context);

#endif
