/* A small pool. Workers wait for a job some hundred microseconds awake, then asleep: awake so that the jobs of decoding
 * and of a training step follow each other without a system call, asleep so that nobody's core is kept busy by waiting.
 * A caller sleeps sooner: the worker it waits for may need its core. */
#include "base/threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 64, AWAKE = 6000, CALLER_AWAKE = 2000 /* pauses before sleeping */ };

static atomic_int chosen; /* 0: the cores there are */

void at_threads_set(int threads)
{
    atomic_store(&chosen, threads > 0 ? threads : 0);
}

int at_threads(void)
{
    static atomic_int cores; /* asking the system opens a file, so it is asked once */
    int threads = atomic_load(&chosen);
    if (threads == 0 && (threads = atomic_load(&cores)) == 0) {
        long there = sysconf(_SC_NPROCESSORS_ONLN);
        threads = there > 0 ? (int)there : 1;
        atomic_store(&cores, threads);
    }
    return threads < MOST ? threads : MOST;
}

static struct {
    pthread_mutex_t owner; /* held by the caller whose job runs; others do their work alone meanwhile */
    pthread_mutex_t lock;  /* for sleeping and waking */
    pthread_cond_t wake, done;
    int started;                   /* workers there are, besides the caller */
    unsigned long long born[MOST]; /* the job before each worker's first */

    at_task *task;
    void *context;
    int64_t count;
    atomic_llong next; /* the next task to hand out */

    /* The call to work: which job this is (bits 16 up), how many workers it wants (bits 8 to 15; 0: closed), and how
     * many are at it (bits 0 to 7). One number, so that a worker joins a job or misses it, and a caller who has no task
     * left closes the door instead of waiting for workers that have not even woken up. */
    atomic_ullong call;
} pool = {.owner = PTHREAD_MUTEX_INITIALIZER,
          .lock = PTHREAD_MUTEX_INITIALIZER,
          .wake = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

static void breathe(void)
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

static unsigned long long job_of(unsigned long long call)
{
    return call / JOB;
}

static int wanted_in(unsigned long long call)
{
    return (int)(call / WANTED % 256);
}

static int joined_in(unsigned long long call)
{
    return (int)(call % WANTED);
}

static bool join(int number, unsigned long long *call)
{
    while (number <= wanted_in(*call))
        if (atomic_compare_exchange_weak(&pool.call, call, *call + 1))
            return true;
    return false;
}

static void leave(void)
{
    unsigned long long before = atomic_fetch_sub(&pool.call, 1);
    if (joined_in(before) == 1 && wanted_in(before) == 0) {
        pthread_mutex_lock(&pool.lock);
        pthread_cond_signal(&pool.done);
        pthread_mutex_unlock(&pool.lock);
    }
}

static void *worker_main(void *argument)
{
    int number = (int)(intptr_t)argument;
    unsigned long long seen = pool.born[number], call;
    for (;;) {
        call = atomic_load(&pool.call);
        for (int i = 0; i < AWAKE && job_of(call) == seen; i++) {
            breathe();
            call = atomic_load_explicit(&pool.call, memory_order_acquire);
        }
        if (job_of(call) == seen) {
            pthread_mutex_lock(&pool.lock);
            while (job_of(call = atomic_load(&pool.call)) == seen)
                pthread_cond_wait(&pool.wake, &pool.lock);
            pthread_mutex_unlock(&pool.lock);
        }
        bool at_it = join(number, &call);
        seen = job_of(call);
        if (at_it) {
            work(number);
            leave();
        }
    }
    return NULL;
}

/* A forked child has none of the workers. */
static void forget(void)
{
    pool.started = 0;
    pthread_mutex_init(&pool.owner, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.wake, NULL);
    pthread_cond_init(&pool.done, NULL);
    atomic_store(&pool.call, 0);
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
        pool.born[pool.started + 1] = job_of(atomic_load(&pool.call));
        if (pthread_create(&thread, &attributes, worker_main, (void *)(intptr_t)(pool.started + 1)) != 0)
            break; /* fewer hands, the same result */
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
    unsigned long long call = (job_of(atomic_load(&pool.call)) + 1) * JOB + (unsigned)(workers - 1) * WANTED;
    pthread_mutex_lock(&pool.lock);
    atomic_store(&pool.call, call);
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
    work(0);
    call = atomic_fetch_sub(&pool.call, (unsigned)(workers - 1) * WANTED); /* the door closes */
    for (int i = 0; i < CALLER_AWAKE && joined_in(call) > 0; i++) {
        breathe();
        call = atomic_load_explicit(&pool.call, memory_order_acquire);
    }
    if (joined_in(call) > 0) {
        pthread_mutex_lock(&pool.lock);
        while (joined_in(atomic_load(&pool.call)) > 0)
            pthread_cond_wait(&pool.done, &pool.lock);
        pthread_mutex_unlock(&pool.lock);
    }
    pthread_mutex_unlock(&pool.owner);
}
