/* A small pool of threads. A worker waits for a job in a spin loop for some hundred microseconds, then on a condition
 * variable: spinning lets the jobs of decoding and of a training step follow each other without a system call, and
 * sleeping leaves the core to others. A caller sleeps sooner: the worker it waits for may need its core. */
#include "base/threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 64, SPINS = 6000, CALLER_SPINS = 2000 /* iterations before sleeping */ };

static atomic_int chosen; /* 0: the cores there are */

void at_threads_set(int threads)
{
    atomic_store(&chosen, threads > 0 ? threads : 0);
}

int at_threads(void)
{
    static atomic_int cores; /* sysconf opens a file, so it is called once */
    int threads = atomic_load(&chosen);
    if (threads == 0 && (threads = atomic_load(&cores)) == 0) {
        long there = sysconf(_SC_NPROCESSORS_ONLN);
        threads = there > 0 ? (int)there : 1;
        atomic_store(&cores, threads);
    }
    return threads < MOST ? threads : MOST;
}

static struct {
    pthread_mutex_t owner; /* held by the caller whose job runs; other callers run their tasks themselves */
    pthread_mutex_t lock;  /* for sleeping and waking */
    pthread_cond_t wake, done;
    int started;                     /* workers running, besides the caller */
    unsigned long long before[MOST]; /* the number of the job before each worker's first */

    at_task *task;
    void *context;
    int64_t count;
    atomic_llong next; /* the next task to start */

    /* The current job: its number (bits 16 up), how many workers it wants (bits 8 to 15; 0: closed), and how many have
     * joined it (bits 0 to 7). One atomic number, so that a worker either joins a job or misses it, and a caller that
     * has no task left closes the job instead of waiting for workers that are still asleep. */
    atomic_ullong job;
} pool = {.owner = PTHREAD_MUTEX_INITIALIZER,
          .lock = PTHREAD_MUTEX_INITIALIZER,
          .wake = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void work(int number)
{
    for (int64_t i; (i = atomic_fetch_add_explicit(&pool.next, 1, memory_order_relaxed)) < pool.count;)
        pool.task(pool.context, i, number);
}

enum { WANTED = 1 << 8, JOB = 1 << 16 };

static unsigned long long number_of(unsigned long long job)
{
    return job / JOB;
}

static int wanted_in(unsigned long long job)
{
    return (int)(job / WANTED % 256);
}

static int joined_in(unsigned long long job)
{
    return (int)(job % WANTED);
}

static bool join(int number, unsigned long long *job)
{
    while (number <= wanted_in(*job))
        if (atomic_compare_exchange_weak(&pool.job, job, *job + 1))
            return true;
    return false;
}

static void leave(void)
{
    unsigned long long before = atomic_fetch_sub(&pool.job, 1);
    if (joined_in(before) == 1 && wanted_in(before) == 0) {
        pthread_mutex_lock(&pool.lock);
        pthread_cond_signal(&pool.done);
        pthread_mutex_unlock(&pool.lock);
    }
}

static void *worker_main(void *argument)
{
    int number = (int)(intptr_t)argument;
    unsigned long long seen = pool.before[number], job;
    for (;;) {
        job = atomic_load(&pool.job);
        for (int i = 0; i < SPINS && number_of(job) == seen; i++) {
            pause_briefly();
            job = atomic_load_explicit(&pool.job, memory_order_acquire);
        }
        if (number_of(job) == seen) {
            pthread_mutex_lock(&pool.lock);
            while (number_of(job = atomic_load(&pool.job)) == seen)
                pthread_cond_wait(&pool.wake, &pool.lock);
            pthread_mutex_unlock(&pool.lock);
        }
        bool joined = join(number, &job);
        seen = number_of(job);
        if (joined) {
            work(number);
            leave();
        }
    }
    return NULL;
}

/* The workers do not exist in a forked child. */
static void forget(void)
{
    pool.started = 0;
    pthread_mutex_init(&pool.owner, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.wake, NULL);
    pthread_cond_init(&pool.done, NULL);
    atomic_store(&pool.job, 0);
}

static void start(int workers)
{
    static atomic_bool registered;
    if (!atomic_exchange(&registered, true))
        pthread_atfork(NULL, NULL, forget);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    while (pool.started < workers && pool.started + 1 < MOST) {
        pthread_t thread;
        pool.before[pool.started + 1] = number_of(atomic_load(&pool.job));
        if (pthread_create(&thread, &attributes, worker_main, (void *)(intptr_t)(pool.started + 1)) != 0)
            break; /* fewer threads, the same result */
        pool.started++;
    }
    pthread_attr_destroy(&attributes);
}

void at_parallel(int64_t count, int workers, at_task *task, void *context)
{
    if (workers > count)
        workers = (int)count;
    if (workers > MOST)
        workers = MOST;
    if (workers <= 1 || pthread_mutex_trylock(&pool.owner) != 0) {
        for (int64_t i = 0; i < count; i++)
            task(context, i, 0);
        return;
    }
    if (pool.started < workers - 1)
        start(workers - 1);
    pool.task = task;
    pool.context = context;
    pool.count = count;
    atomic_store(&pool.next, 0);
    unsigned long long job = (number_of(atomic_load(&pool.job)) + 1) * JOB + (unsigned)(workers - 1) * WANTED;
    pthread_mutex_lock(&pool.lock);
    atomic_store(&pool.job, job);
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
    work(0);
    job = atomic_fetch_sub(&pool.job, (unsigned)(workers - 1) * WANTED); /* closes the job */
    for (int i = 0; i < CALLER_SPINS && joined_in(job) > 0; i++) {
        pause_briefly();
        job = atomic_load_explicit(&pool.job, memory_order_acquire);
    }
    if (joined_in(job) > 0) {
        pthread_mutex_lock(&pool.lock);
        while (joined_in(atomic_load(&pool.job)) > 0)
            pthread_cond_wait(&pool.done, &pool.lock);
        pthread_mutex_unlock(&pool.lock);
    }
    pthread_mutex_unlock(&pool.owner);
}
