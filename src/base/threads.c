#include "threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int chosen; /* 0: the cores there are */

void at_threads_set(int threads)
{
    atomic_store(&chosen, threads > 0 ? threads : 0);
}

int at_threads(void)
{
    int threads = atomic_load(&chosen);
    if (threads > 0)
        return threads;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 ? (int)cores : 1;
}

typedef struct job {
    at_task *task;
    void *context;
    int64_t count;
    atomic_llong next;
} job;

typedef struct worker {
    job *job;
    int number;
    pthread_t thread;
} worker;

static void work(job *j, int number)
{
    for (int64_t i; (i = atomic_fetch_add(&j->next, 1)) < j->count;)
        j->task(j->context, i, number);
}

static void *worker_main(void *argument)
{
    worker *w = argument;
    work(w->job, w->number);
    return NULL;
}

void at_parallel(int64_t count, int workers, at_task *task, void *context)
{
    enum { MOST = 64 };
    job j = {.task = task, .context = context, .count = count};
    if (workers > count)
        workers = (int)count;
    if (workers > MOST)
        workers = MOST;
    worker others[MOST];
    int started = 1;
    for (; started < workers; started++) {
        others[started] = (worker){.job = &j, .number = started};
        if (pthread_create(&others[started].thread, NULL, worker_main, &others[started]) != 0)
            break;
    }
    work(&j, 0);
    for (int i = 1; i < started; i++)
        pthread_join(others[i].thread, NULL);
}
