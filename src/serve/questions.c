/* The thread that answers questions one after the other. */
#include <string.h>

#include "serve/serve_internal.h"

static void *answer_always(void *context)
{
    at_questions *all = context;
    pthread_mutex_lock(&all->lock);
    for (;;) {
        while (!all->first && !all->ending)
            pthread_cond_wait(&all->added, &all->lock);
        at_question *q = all->first;
        if (!q)
            break;
        all->first = q->next;
        all->last = all->first ? all->last : &all->first;
        all->waiting--;
        __atomic_store_n(&all->stop, 0, __ATOMIC_RELAXED);
        all->limit = q->deadline;
        if (all->ending)
            at_fail(&q->error, AT_INTERRUPTED, "The server ends");
        else if (all->limit > 0 && at_seconds() >= all->limit)
            at_fail(&q->error, AT_INTERRUPTED, "The server is busy: there was no time to answer this; try again later");
        pthread_mutex_unlock(&all->lock);
        q->stop = &all->stop;
        q->answer = q->error.code == AT_OK ? q->find(q) : NULL;
        q->done(q); /* it may be gone after this */
        pthread_mutex_lock(&all->lock);
        all->limit = 0;
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

void at_questions_init(at_questions *all)
{
    all->last = &all->first;
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->added, NULL);
}

bool at_questions_start(at_questions *all, at_error *error)
{
    const int reason = pthread_create(&all->thread, NULL, answer_always, all);
    all->started = reason == 0;
    return all->started || at_fail(error, AT_FAILED, "cannot start a thread: %s", strerror(reason));
}

bool at_questions_add(at_questions *all, at_question *question, void (*before)(void *context), void *context)
{
    pthread_mutex_lock(&all->lock);
    const bool fits = all->waiting < AT_MOST_QUESTIONS && !all->ending;
    if (fits) {
        before(context);
        question->next = NULL;
        *all->last = question;
        all->last = &question->next;
        all->waiting++;
        pthread_cond_signal(&all->added);
    }
    pthread_mutex_unlock(&all->lock);
    return fits;
}

void at_questions_watch(at_questions *all, double now)
{
    pthread_mutex_lock(&all->lock);
    if (all->limit > 0 && now >= all->limit)
        __atomic_store_n(&all->stop, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&all->lock);
}

void at_questions_end(at_questions *all)
{
    if (!all->started)
        return;
    pthread_mutex_lock(&all->lock);
    all->ending = true;
    __atomic_store_n(&all->stop, 1, __ATOMIC_RELAXED);
    pthread_cond_signal(&all->added);
    pthread_mutex_unlock(&all->lock);
    pthread_join(all->thread, NULL);
    all->started = false;
}

void at_questions_free(at_questions *all)
{
    pthread_cond_destroy(&all->added);
    pthread_mutex_destroy(&all->lock);
}
