/* The parts of a server: what a request says, the models by their languages, the queue, and the texts of its answers. Only
 * connections.c, http.c, http_pages.c and mhd.c know libmicrohttpd. */
#ifndef AT_SERVE_INTERNAL_H
#define AT_SERVE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "attend_server.h"
#include "attend_unstable.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "lesson/lesson.h"
#include "search/search.h"
#include "text/html.h"
#include "text/marks.h"
#include "text/sentences.h"

/* ---- Requests (request.c) --------------------------------------------------------------------------------------- */

/* A request that is not answered as asked: an HTTP status and the message of {"error": "..."}. Start from zeros; the
 * first stays. */
typedef struct at_refusal {
    int status;
    char text[400];
} at_refusal;
/* Always false. */
bool at_refuse(at_refusal *refusal, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The fields of a request; a text is NULL if it was not given. Start from zeros; what it says points into `json` and
 * `bytes`. */
typedef struct at_request {
    at_line *text; /* [count] q: UTF-8 without NUL */
    int64_t count;
    bool batch; /* q was an array */
    const char *source, *target, *format, *alternatives, *key;
    const char *confidence;          /* "true" or "1": it is wanted */
    const char *translation, *start; /* of the questions of the page */
    int64_t alternative_count;       /* of a JSON number */
    json_t *json;
    char *bytes[3]; /* the query, the body and the text of a form, decoded */
} at_request;
/* Reads the fields from the query of the address ("q=a&source=de", may be NULL) and the body: JSON, or a form as
 * `type`, the Content-Type, says (may be NULL). Fields of other names are ignored. */
bool at_request_read(at_request *request, const char *type, const char *query, const char *body, size_t size,
                     at_refusal *refusal);
void at_request_free(at_request *request);

/* Whether all is there that /translate needs, or /detect, and no more of it than the limits allow; in LibreTranslate's
 * order. */
bool at_request_check(const at_request *request, const at_server_settings *limits, bool translates,
                      int64_t *alternatives, at_refusal *refusal);

int64_t at_characters(at_line text);

/* ---- API keys (keys.c) ------------------------------------------------------------------------------------------ */

typedef struct at_keys {
    at_line_list *list; /* of the file; NULL: there are no keys */
} at_keys;
bool at_keys_read(at_keys *keys, const char *path, at_error *error);
/* In a time that does not depend on how much of a key is right. */
bool at_keys_have(const at_keys *keys, const char *key);
void at_keys_free(at_keys *keys);

/* ---- Models by their languages (served.c) ----------------------------------------------------------------------- */

typedef struct at_pair {
    const char *source, *target, *path; /* those of the settings */
    at_translator *translator;
    at_search_memory *memory; /* of its searches */
    at_translator *looker;    /* its clone, of the thread that answers the page */
    at_splitter *splitter;    /* of the thread of the connections; NULL: lines are translated whole */
    bool pictures;            /* a text is a picture, data:image/png;base64,... */
} at_pair;

/* What is read anew by a reload. Owners count references, and the last one releases it. */
typedef struct at_served {
    at_pair *pair; /* [count] */
    int count;
    const char **language; /* [languages] the codes, sorted */
    int languages;
    at_keys keys;
    bool keeps;        /* placeholders, addresses and numbers, see at_served_keeps */
    const char *pivot; /* that of the settings; NULL: none */
    atomic_int owners;
} at_served;
at_served *at_served_new(const at_server_settings *settings, at_error *error);
at_served *at_served_hold(at_served *served);
void at_served_release(at_served *served);
bool at_served_keeps(const at_served *served, int pair); /* those of texts are kept */
bool at_served_knows(const at_served *served, const char *code);
/* The index of the pair; -1: there is none. */
int at_served_find(const at_served *served, const char *source, const char *target);
/* The index of the pair, or of the one to the pivot with *then the one from there; *then is -1 if none follows. */
int at_served_route(const at_served *served, const char *source, const char *target, int *then);
/* The name of a language in English, or the code if it is not known. */
const char *at_language_name(const char *code);

/* Which of the source languages the texts are in: their codes and probabilities, the likeliest first, both
 * [served->languages]; returns how many there are, 0 without a model, -1 if out of memory. */
int at_detect(const at_served *served, const at_line *texts, int64_t count, const char **code, double *probability);

/* ---- The lines of a request (job.c) ----------------------------------------------------------------------------- */

typedef struct at_job at_job;
struct at_job {
    at_job *next;
    at_served *served;
    int pair;      /* of served */
    int64_t best;  /* hypotheses of each line: 1 and the alternatives */
    at_line *line; /* [lines] of all texts, in order: what is translated, lines or sentences, and no empty one */
    at_line *part; /* [lines] where it stands in its text; in HTML that is spelt otherwise */
    size_t room, part_room;
    int64_t lines;
    at_line *text; /* [texts] that they are parts of */
    bool html;
    char *copy;     /* of HTML: the texts with one kind of blank, then the lines */
    int64_t *first; /* [texts + 1] the first line of each */
    int64_t texts;
    at_marks *marks; /* [lines] */
    size_t marks_room;
    bool aligns;       /* some line has tags, or something that is kept */
    at_answer *answer; /* [lines, best] the first of a line has no text until it is translated */
    int64_t open;      /* lines without an answer */
    int64_t from;      /* those before it have one */
    bool searched;     /* lines of it were in the last search */
    double deadline;
    int status; /* 0, or that of a refusal */
    at_error error;
    void (*done)(at_job *job); /* called once, by the thread that searches */
    void *context;
};
/* Splits the texts into lines, and these into sentences if the pair has a splitter. NULL if out of memory. */
at_job *at_job_new(at_served *served, int pair, const at_line *texts, int64_t count, int64_t best, bool html);
void at_job_free(at_job *job);
/* Adds the translation of one text, by its hypotheses of this rank. */
void at_job_text(const at_job *job, int64_t text, int64_t rank, at_buffer *out);
/* Of the best translation of one text: the mean over its units, 1 if nothing was translated; not a number if the model is
 * not calibrated. */
double at_job_confidence(const at_job *job, int64_t text);

/* ---- The queue (queue.c) ---------------------------------------------------------------------------------------- */

typedef struct at_queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    pthread_t thread;
    bool started, ending;
    int64_t beam, most_lines, max_source; /* 0: the model's */
    double length_penalty;
    at_job *head, *tail;        /* that wait */
    int64_t lines;              /* of all of them, open ones */
    double search_limit;        /* the earliest deadline of the search that runs; 0: none runs */
    volatile int stop;          /* ends it */
    int64_t searches, searched; /* and the lines of them, so far */
} at_queue;
void at_queue_init(at_queue *queue);
int64_t at_units_read(const at_translator *translator, int64_t max_source); /* 0: as many as the model wants */
bool at_queue_start(at_queue *queue, const at_server_settings *settings, at_error *error);
/* False: there is no room for its lines, or the queue ends. `before`, if not NULL, is called before the job can be done. */
bool at_queue_add(at_queue *queue, at_job *job, void (*before)(void *context), void *context);
/* Ends a search whose time is up. To be called again and again. */
void at_queue_watch(at_queue *queue, double now);
/* Refuses all that wait and all that is added later, and ends the thread. */
void at_queue_end(at_queue *queue);
void at_queue_free(at_queue *queue);

double at_seconds(void); /* of a clock that only goes forward */

/* ---- What to do for a request (plan.c) -------------------------------------------------------------------------- */

typedef struct at_plan {
    int pair; /* of served; -1: source and target are the same language */
    int then; /* of served: what translates its translation; -1: nothing */
    int64_t alternatives;
    bool html, confidence;
    const char *detected; /* the language, if it was "auto"; NULL: it was given */
    double probability;
} at_plan;
/* The key is right, or none is needed. */
bool at_plan_allowed(const at_served *served, const at_server_settings *settings, const at_request *request,
                     at_refusal *refusal);
/* The checks of /translate, in LibreTranslate's order and with its messages. */
bool at_plan_make(const at_served *served, const at_server_settings *settings, const at_request *request, at_plan *plan,
                  at_refusal *refusal);

/* ---- Answers (answers.c) ---------------------------------------------------------------------------------------- */

/* Each is a text to release with free; NULL if out of memory. */
char *at_answer_error(const char *text);
char *at_answer_translation(const at_job *job, const at_request *request, const at_plan *plan);
/* Of a pair of the same language: the texts as they are. */
char *at_answer_same(const at_request *request, const at_plan *plan);
char *at_answer_languages(const at_served *served);
char *at_answer_settings(const at_served *served, const at_server_settings *settings);
char *at_answer_detection(const char *const *code, const double *probability, int count);
char *at_answer_spec(void);

/* ---- Metrics (metrics.c) ---------------------------------------------------------------------------------------- */

typedef enum at_endpoint {
    AT_AT_TRANSLATE,
    AT_AT_DETECT,
    AT_AT_LANGUAGES,
    AT_AT_SETTINGS,
    AT_AT_HEALTH,
    AT_AT_METRICS,
    AT_AT_SPEC,
    AT_AT_SUGGEST,
    AT_AT_FILE,
    AT_AT_LESSON, /* and all below it but the next */
    AT_AT_QUESTION,
    AT_AT_PAGE, /* the translator's, and all below it */
    AT_AT_ATTENTION,
    AT_AT_ALTERNATIVES,
    AT_AT_EXPLORER,
    AT_AT_WATCH, /* and all below it */
    AT_AT_ELSEWHERE,
    AT_ENDPOINTS
} at_endpoint;
extern const char *const at_endpoint_path[AT_ENDPOINTS];

enum { AT_STATUSES = 11, AT_TIMES = 10 };
typedef struct at_metrics {
    int64_t answers[AT_ENDPOINTS][AT_STATUSES];
    int64_t slow[AT_TIMES]; /* translations by the seconds they took, not cumulative; the last: longer */
    double seconds;
    int64_t characters, connections, cut, idle, reloads;
} at_metrics;
void at_metrics_answer(at_metrics *metrics, at_endpoint endpoint, int status);
void at_metrics_time(at_metrics *metrics, double seconds);
/* In the text format of Prometheus; NULL if out of memory. */
char *at_metrics_text(const at_metrics *metrics, int64_t waiting, int64_t searches, int64_t searched);

/* ---- Questions (questions.c) ------------------------------------------------------------------------------------ */

/* Answered one after the other by a thread of their own, so that neither translations nor connections wait for them: one
 * for the lesson, one for the translator's page. */
enum { AT_MOST_QUESTIONS = 64 };
typedef struct at_question at_question;
struct at_question {
    at_question *next;
    char *(*find)(at_question *question); /* by that thread: the answer, or NULL with the error set */
    char *answer;                         /* release it with free */
    at_error error;                       /* AT_INTERRUPTED: the server ends, or there was no time */
    double deadline;                      /* 0: none */
    const volatile int *stop;             /* becomes 1 then */
    void (*done)(at_question *question);  /* by that thread */
    void *context;
};
typedef struct at_questions {
    pthread_mutex_t lock;
    pthread_cond_t added;
    at_question *first, **last;
    int waiting;
    bool started, ending;
    double limit; /* the deadline of the one that is being answered; 0: none */
    volatile int stop;
    pthread_t thread;
} at_questions;
void at_questions_init(at_questions *all);
bool at_questions_start(at_questions *all, at_error *error);
/* Calls `before` and adds the question, unless too many wait already: false. */
bool at_questions_add(at_questions *all, at_question *question, void (*before)(void *context), void *context);
/* Ends a search whose time is up. To be called again and again. */
void at_questions_watch(at_questions *all, double now);
void at_questions_end(at_questions *all); /* the questions that wait are refused; before libmicrohttpd stops */
void at_questions_free(at_questions *all);

/* ---- What the translator's page asks about a line (looks.c) ------------------------------------------------------- */

enum { AT_LOOK_CHARACTERS = 1000, AT_EXPLORED_CHARACTERS = 500, AT_LOOK_WORDS = 10 };
typedef struct at_look {
    at_translator *translator; /* of the thread that looks */
    at_line source;            /* without tab and newline */
    at_line target;            /* its translation, or how that begins */
    int64_t count;             /* alternatives */
    int64_t beam, max_source; /* 0: the model's */
    double length_penalty;
    const char *title;
    const volatile int *stop;
} at_look;
/* Each is a text to release with free; NULL with the error set. Attention: the words of both lines and which source words
 * each target word looked at. Alternatives: the words after the start, and the translation that the search finds from
 * there. The explorer: a page of all weights. */
char *at_look_attention(const at_look *look, at_error *error);
char *at_look_alternatives(const at_look *look, at_error *error);
char *at_look_explorer(const at_look *look, at_error *error);

/* ---- The translator's page (page.c) ------------------------------------------------------------------------------- */

enum { AT_PAGE_ALTERNATIVES = 3 };
typedef struct at_page {
    const at_served *served;
    const at_server_settings *settings;
    bool chinese;
    const at_request *request; /* of the form; NULL: nothing was asked */
    const char *detected;      /* the language of the text, if it was not given */
    char *const *translation;  /* [count] the best first */
    int count;
    bool same;           /* the translation is the text: it was asked for in its own language */
    double confidence;   /* of the best; not a number if it is not known */
    const char *message; /* why there is none; NULL: no message */
} at_page;
/* Release it with free. */
char *at_page_text(const at_page *page, at_error *error);
/* A file of the page by its name, and its type for HTTP; NULL: there is none. */
const char *at_page_file(const char *name, const char **type);

/* Text for HTML, between tags and inside quotes. */
void at_page_escape(at_buffer *out, const char *text);

/* ---- Runs of training (watch.c) ------------------------------------------------------------------------------------ */

/* What the logs of the runs say so far, as an array of {"name", "update", "epoch", "share", "left", "ended", "quiet",
 * "series": {"loss": [[update, value], ...], "rate", "words", "score bleu", ...}}; logs that are not there are left out. NULL
 * if out of memory. And as rows of an HTML table, and the page around them; release these with free. */
json_t *at_watch_runs(const at_server_settings *settings);
char *at_watch_rows(const at_server_settings *settings);
char *at_watch_page(const at_server_settings *settings, bool chinese, at_error *error);

/* ---- Isolation (isolate.c) -------------------------------------------------------------------------------------- */

/* Gives up rights as the settings say, before any thread is started; `done` tells what was possible, for people. */
bool at_isolate(const at_server_settings *settings, char *done, size_t size, at_error *error);

/* ---- Connections (connections.c) -------------------------------------------------------------------------------- */

typedef struct at_connection at_connection;
struct at_server {
    at_server_settings settings; /* with copies of all texts, and the defaults filled in */
    char *text;                  /* of the copies */
    at_server_model *model;
    const char **watch;
    int socket, port;
    char isolation[60];
    char *cert, *key;    /* what the files hold */
    char keep_alive[40]; /* "timeout=8": how long a client may keep a connection that it does not use; "": not told */
    at_queue queue;
    at_lesson *lesson;
    at_questions lessons, looks;
    struct MHD_Daemon *daemon;
    pthread_t thread; /* of the connections */
    bool started;
    int wakes;                       /* an eventfd: the thread is to look at what follows; -1: none */
    _Atomic(struct exchange *) done; /* those whose translation or answer was found; needs no lock */
    pthread_mutex_t lock;            /* of what follows */
    pthread_cond_t changed;
    at_served *served;
    at_metrics metrics;
    at_connection *connections;
    int64_t open_requests;
    bool draining, quiesced, ending;
};
/* Loads libmicrohttpd, which reads files; then its thread is started, and ended. */
bool at_http_load(at_error *error);
bool at_http_start(at_server *server, at_error *error);
void at_http_quiesce(at_server *server);
void at_http_end(at_server *server);
/* Whether a connection is there that may still send the request it was opened for. Needs the lock. */
bool at_http_expects(const at_server *server, double now);

#endif
