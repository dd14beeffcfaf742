/* What the answers of the lesson share: reading a request, writing an answer. */
#ifndef AT_ASK_INTERNAL_H
#define AT_ASK_INTERNAL_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "lesson/lesson.h"

/* A request and its answer as it is built. Errors are sticky: every reader fails once one has failed. */
typedef struct at_ask {
    at_lesson *lesson;
    const json_t *request;
    at_arena *arena; /* released after the answer */
    at_buffer text;  /* the answer */
    at_error *error;
} at_ask;

typedef struct at_matrix {
    int64_t rows, columns;
    float *value; /* [rows, columns] */
} at_matrix;

/* ---- ask.c: reading ---- */

/* Refuses members of an object that are not among the names, separated by blanks. */
bool at_ask_only(const at_ask *ask, const json_t *object, const char *names);
/* A member of an object, or the fallback if there is none. On failure the fallback. */
int64_t at_ask_count(const at_ask *ask, const json_t *object, const char *name, int64_t fallback, int64_t least,
                     int64_t most);
double at_ask_number(const at_ask *ask, const json_t *object, const char *name, double fallback, double most);
const char *at_ask_text(const at_ask *ask, const json_t *object, const char *name, const char *fallback);
bool at_ask_switch(const at_ask *ask, const json_t *object, const char *name);
/* The index of a member's text among the names, NULL after the last; the first if there is no such member, -1 on
 * failure. */
int at_ask_choice(const at_ask *ask, const json_t *object, const char *name, const char *const *names);
/* Rows of numbers, or one row of them. */
bool at_ask_matrix(const at_ask *ask, const json_t *value, const char *name, at_matrix *matrix);
/* Memory of the request for so many floats, zeros; NULL with the error set. */
float *at_ask_floats(const at_ask *ask, int64_t count);

/* ---- ask.c: writing ---- */

/* "name": a number, a row, a matrix [rows, columns], or a cube; what is infinite is null. A comma comes before each member
 * but the first of its object. */
void at_put_name(at_ask *ask, const char *name);
void at_put_number(at_ask *ask, const char *name, double value);
void at_put_row(at_ask *ask, const char *name, const float *value, int64_t count);
void at_put_matrix(at_ask *ask, const char *name, const float *value, int64_t rows, int64_t columns);
void at_put_cube(at_ask *ask, const char *name, const float *value, int64_t count, int64_t rows, int64_t columns);

/* ---- The answers ---- */

bool at_answer_attend(at_ask *ask);
bool at_answer_draw(at_ask *ask);
bool at_answer_positions(at_ask *ask);
bool at_answer_scaling(at_ask *ask);
bool at_answer_recurrent(at_ask *ask);
bool at_answer_learn(at_ask *ask);
bool at_answer_layer(at_ask *ask);

/* positions.c: adds sinusoids to rows [count, size], size even; learned: numbers drawn as a model's before training. */
bool at_add_positions(const at_ask *ask, const char *kind, at_matrix *rows);

/* learn.c: the runs of a lesson */
typedef struct at_runs at_runs;
at_runs *at_lesson_runs(at_lesson *lesson);
at_runs *at_runs_new(at_error *error);
void at_runs_free(at_runs *runs);

#endif
