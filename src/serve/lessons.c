/* The thread that answers the questions of the lesson. */
#include <string.h>

#include "serve/serve_internal.h"

static void *answer_always(void *context)
{
    at_lessons *l = context;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->first && !l->ending)
            pthread_cond_wait(&l->added, &l->lock);
        at_question *q = l->first;
        if (!q)
            break;
        l->first = q->next;
        l->last = l->first ? l->last : &l->first;
        l->waiting--;
        if (l->ending)
            at_fail(&q->error, AT_INTERRUPTED, "The server ends");
        pthread_mutex_unlock(&l->lock);
        q->answer = at_lesson_answer(l->lesson, q->text, q->size, &q->error);
        q->done(q); /* it may be gone after this */
        pthread_mutex_lock(&l->lock);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

bool at_lessons_start(at_lessons *l, at_error *error)
{
    at_lesson *lesson = at_lesson_new(error);
    if (!lesson)
        return false;
    *l = (at_lessons){.last = &l->first};
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->added, NULL);
    const int reason = pthread_create(&l->thread, NULL, answer_always, l);
    if (reason == 0) {
        l->lesson = lesson;
        return true;
    }
    pthread_cond_destroy(&l->added);
    pthread_mutex_destroy(&l->lock);
    at_lesson_free(lesson);
    return at_fail(error, AT_FAILED, "cannot start a thread: %s", strerror(reason));
}

bool at_lessons_add(at_lessons *l, at_question *question, void (*before)(void *context), void *context)
{
    pthread_mutex_lock(&l->lock);
    const bool fits = l->waiting < AT_MOST_QUESTIONS && !l->ending;
    if (fits) {
        before(context);
        question->next = NULL;
        *l->last = question;
        l->last = &question->next;
        l->waiting++;
        pthread_cond_signal(&l->added);
    }
    pthread_mutex_unlock(&l->lock);
    return fits;
}

void at_lessons_end(at_lessons *l)
{
    if (!l->lesson)
        return;
    pthread_mutex_lock(&l->lock);
    l->ending = true;
    pthread_cond_signal(&l->added);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
    pthread_cond_destroy(&l->added);
    pthread_mutex_destroy(&l->lock);
    at_lesson_free(l->lesson);
    l->lesson = NULL;
}
