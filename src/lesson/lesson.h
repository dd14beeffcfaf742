/* The lesson of attend serve: pages that ask, in JSON, and are answered by the operator itself. */
#ifndef AT_LESSON_H
#define AT_LESSON_H

#include "attend.h"

enum {
    AT_LESSON_REQUEST = 1 << 16, /* bytes of a request */
    AT_LESSON_ROWS = 64,         /* of a matrix */
    AT_LESSON_COLUMNS = 64,
    AT_LESSON_RUNS = 4,      /* models that learn at the same time; the one not asked for the longest is forgotten */
    AT_LESSON_CHUNK = 25,    /* updates that one request makes at most */
    AT_LESSON_UPDATES = 5000 /* of a model */
};

typedef struct at_lesson at_lesson;
at_lesson *at_lesson_new(at_error *error);
void at_lesson_free(at_lesson *lesson);

/* The answer to a request {"ask": NAME, ...} as JSON text, to release with free. NULL: refused, with one message; a bad
 * request is AT_USAGE, AT_FORMAT or AT_SHAPE. May be called by several threads at the same time.
 *   attend     one call of the operator: output, weights, scores, entropy, sums of the keys, projections
 *   draw       hard attention: draws, their mean, and the gradient they estimate beside the exact one
 *   positions  the vectors of positions: sinusoidal, learned (as drawn before training), rope
 *   scaling    softmax of q.k and of q.k / sqrt(d), and how much gradient it lets through
 *   recurrent  how much of a change of the first input arrives later, and the time of both layers
 *   layer      an encoder layer of the Transformer, part by part
 *   learn      updates of a small model, its losses and what it says now */
char *at_lesson_answer(at_lesson *lesson, const char *request, size_t size, at_error *error);

/* A file of the lesson by its path after /lesson, such as "/lesson.css", with its type for HTTP; release it with free. ""
 * and "/" are the page, in Chinese if so wanted, else in English; "/en" and "/zh" are the page in a language. NULL: there is no
 * such file, or, with the error set, no memory. */
char *at_lesson_file(const char *path, bool chinese, const char **type, at_error *error);

#endif
