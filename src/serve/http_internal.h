/* What connections.c, the thread of the connections, http.c, the interface of LibreTranslate, and http_pages.c, the pages and
 * what they ask, share. */
#ifndef AT_HTTP_INTERNAL_H
#define AT_HTTP_INTERNAL_H

#include "serve/mhd_internal.h"
#include "serve/serve_internal.h"

static const at_mhd *const mhd = &at_mhd_loaded;

struct at_connection {
    at_connection *next, **link; /* in the server's list */
    int socket;
    double since; /* when it was opened, a request began, its answer began, or ended */
    bool fresh;   /* no request has begun on it yet */
    enum {
        AT_HEARING, /* the client has to send something */
        AT_WAITING, /* for the search, which has limits of its own */
        AT_ANSWERING
    } turn;
    bool cut;
};

/* A request and its answer. */
typedef struct exchange exchange;
struct exchange {
    exchange *next; /* of those that are to be resumed */
    at_server *server;
    at_connection *on;
    struct MHD_Connection *connection;
    enum { OPENED, READING, WAITING } phase;
    at_endpoint endpoint;
    char *query;
    at_buffer body;
    bool too_large, asks_methods;
    double asked;
    at_served *served;
    at_request request;
    at_plan plan;
    at_job *job;
    at_buffer *between; /* [count of the request] the texts in the pivot, which the second job translates; NULL: none */
    at_question question;
    at_look look;
    char *looked[2]; /* the texts of it */
    char *path;      /* of a page */
    bool chinese, as_html;
};

/* ---- The thread of the connections (connections.c) */
/* Before a question or a job is added; at_http_resume, by any thread, once that is done: then at_http_handle goes on. */
void at_http_suspend(void *context);
void at_http_resume(exchange *x);
/* Counts the answer, and the time for its client to receive it; whether it is the last one of its connection. */
bool at_http_begin_answer(exchange *x, int status);

/* ---- Requests (http.c) */
/* Called when the headers are there, with each part of the body, after the body, and after a suspension. */
enum MHD_Result at_http_handle(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                               const char *version, const char *data, size_t *size, void **own);
void at_exchange_free(exchange *x);

/* ---- Answers (http.c): they release the body, which is NULL if there was no memory for it */
enum MHD_Result at_answer_as(exchange *x, int status, const char *type, char *body);
enum MHD_Result at_answer_json(exchange *x, int status, char *body);
enum MHD_Result at_answer_fault(exchange *x, int status, const char *text);
enum MHD_Result at_answer_refusal(exchange *x, const at_refusal *refusal);

/* ---- Pages (http_pages.c) */
/* The translator's page or a file of it: as it is at first, or with what its form asked for. */
enum MHD_Result at_answer_page(exchange *x, int status, const char *message);
/* A refusal in the page for its form, and as JSON for programs. */
enum MHD_Result at_answer_refused(exchange *x, const at_refusal *refusal);
enum MHD_Result at_answer_lesson(exchange *x);
/* What was found, after a suspension. */
enum MHD_Result at_answer_question(exchange *x);
enum MHD_Result at_ask_lesson(exchange *x);
/* The page of the runs that are watched, a file of it, or what their logs say, as JSON. */
enum MHD_Result at_ask_runs(exchange *x);
/* A question of the translator's page about a line. */
enum MHD_Result at_ask_look(exchange *x);

#endif
