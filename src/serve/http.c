/* Requests and their answers, as libmicrohttpd hands them over in the thread of connections.c. A request for a translation
 * is suspended until the thread that searches has answered all its lines. */
#include "serve/serve_internal.h"

#ifdef AT_HAVE_MICROHTTPD
#include <stdlib.h>
#include <string.h>

#include "serve/http_internal.h"

/* ---- Addresses -------------------------------------------------------------------------------------------------- */

static at_endpoint endpoint_of(const char *url)
{
    int endpoint = 0;
    while (endpoint < AT_AT_ELSEWHERE && strcmp(url, at_endpoint_path[endpoint]) != 0)
        endpoint++;
    if (endpoint == AT_AT_ELSEWHERE && strncmp(url, "/lesson/", 8) == 0)
        return AT_AT_LESSON;
    if (endpoint == AT_AT_ELSEWHERE && (strncmp(url, "/translator/", 12) == 0 || strcmp(url, "/") == 0))
        return AT_AT_PAGE;
    if (endpoint == AT_AT_ELSEWHERE && strncmp(url, "/watch/", 7) == 0)
        return AT_AT_WATCH;
    return (at_endpoint)endpoint;
}

/* Whether it takes POST; and whether it takes GET. */
static bool is_posted(at_endpoint endpoint)
{
    return endpoint == AT_AT_TRANSLATE || endpoint == AT_AT_DETECT || endpoint == AT_AT_SUGGEST ||
           endpoint == AT_AT_FILE || endpoint == AT_AT_QUESTION || endpoint == AT_AT_PAGE ||
           endpoint == AT_AT_ATTENTION || endpoint == AT_AT_ALTERNATIVES || endpoint == AT_AT_EXPLORER;
}

static bool is_got(at_endpoint endpoint)
{
    return !is_posted(endpoint) || endpoint == AT_AT_PAGE || endpoint == AT_AT_EXPLORER;
}

/* ---- Answers ---------------------------------------------------------------------------------------------------- */

/* Of a page: nothing comes from elsewhere, and nothing goes elsewhere. The explorer is one file, with its script in it. */
static const char *policy_of(at_endpoint endpoint)
{
    switch (endpoint) {
    case AT_AT_LESSON:
        return "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
               "form-action 'none'; frame-ancestors 'none'";
    case AT_AT_PAGE:
    case AT_AT_WATCH:
        return "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
               "form-action 'self'; frame-ancestors 'none'";
    case AT_AT_EXPLORER:
        return "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri "
               "'none'; form-action 'none'; frame-ancestors 'none'";
    default:
        return NULL;
    }
}

/* Releases the body, which is NULL if there was no memory for it; then the connection is closed. */
enum MHD_Result at_answer_as(exchange *x, int status, const char *type, char *body)
{
    static const char *const headers[][2] = {
        {"Access-Control-Allow-Origin", "*"},          {"Access-Control-Allow-Headers", "Authorization, Content-Type"},
        {"Access-Control-Allow-Methods", "GET, POST"}, {"Access-Control-Max-Age", "1728000"},
        {"X-Content-Type-Options", "nosniff"},         {"Cache-Control", "no-store"}};
    at_server *server = x->server;
    struct MHD_Response *response =
        body ? mhd->create_response_from_buffer(strlen(body), body, MHD_RESPMEM_MUST_FREE) : NULL;
    if (!response) {
        free(body);
        return MHD_NO;
    }
    mhd->add_response_header(response, "Content-Type", type);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        mhd->add_response_header(response, headers[i][0], headers[i][1]);
    const char *policy = policy_of(x->endpoint);
    if (policy)
        mhd->add_response_header(response, "Content-Security-Policy", policy);
    if (status == 429 || status == 503)
        mhd->add_response_header(response, "Retry-After", "1");
    if (status == 405 || x->asks_methods)
        mhd->add_response_header(response, "Allow",
                                 !is_posted(x->endpoint) ? "GET, HEAD, OPTIONS"
                                 : is_got(x->endpoint)   ? "GET, HEAD, POST, OPTIONS"
                                                         : "POST, OPTIONS");
    if (at_http_begin_answer(x, status))
        mhd->add_response_header(response, "Connection", "close");
    else if (*server->keep_alive) {
        mhd->set_response_options(response, MHD_RF_SEND_KEEP_ALIVE_HEADER, MHD_RO_END);
        mhd->add_response_header(response, "Keep-Alive", server->keep_alive);
    }
    const enum MHD_Result result = mhd->queue_response(x->connection, (unsigned)status, response);
    mhd->destroy_response(response);
    return result;
}

enum MHD_Result at_answer_json(exchange *x, int status, char *body)
{
    return at_answer_as(x, status, "application/json", body);
}

enum MHD_Result at_answer_fault(exchange *x, int status, const char *text)
{
    return at_answer_json(x, status, at_answer_error(text));
}

enum MHD_Result at_answer_refusal(exchange *x, const at_refusal *refusal)
{
    return at_answer_fault(x, refusal->status, refusal->text);
}

/* ---- Translations ----------------------------------------------------------------------------------------------- */

/* By the thread that searches: the thread of the connections goes on with at_http_handle(). */
static void on_done(at_job *job)
{
    at_http_resume(job->context);
}

/* Adds the exchange's job to the queue, and waits for it. */
static enum MHD_Result await_job(exchange *x)
{
    at_server *server = x->server;
    at_refusal refusal = {0};
    x->job->deadline = x->asked + server->settings.request_seconds;
    x->job->done = on_done;
    x->job->context = x;
    if (at_queue_add(&server->queue, x->job, at_http_suspend, x))
        return MHD_YES;
    at_refuse(&refusal, 429, "Slowdown: too many texts are waiting to be translated");
    return at_answer_refused(x, &refusal);
}

/* From the pivot to the target: the texts of the first job are those of the second. */
static enum MHD_Result translate_again(exchange *x)
{
    const int64_t count = x->request.count;
    at_job *first = x->job;
    at_line *texts = calloc((size_t)count, sizeof *texts);
    x->between = calloc((size_t)count, sizeof *x->between);
    bool good = texts && x->between;
    for (int64_t i = 0; good && i < count; i++) {
        at_job_text(first, i, 0, &x->between[i]);
        texts[i] = (at_line){x->between[i].bytes, x->between[i].size};
        good = !x->between[i].failed;
    }
    x->job = good ? at_job_new(x->served, x->plan.then, texts, count, x->plan.alternatives + 1, x->plan.html) : NULL;
    at_job_free(first);
    free(texts);
    return x->job ? await_job(x) : at_answer_fault(x, 500, "out of memory for a request");
}

static enum MHD_Result answer_job(exchange *x)
{
    const at_job *job = x->job;
    at_refusal refusal = {0};
    if (job->status == 503)
        at_refuse(&refusal, 503, "The server is busy: there was no time to translate this; try again later");
    else if (job->status)
        at_refuse(&refusal, job->status, "Cannot translate text: %s", job->error.text);
    if (job->status)
        return at_answer_refused(x, &refusal);
    if (x->plan.then >= 0 && !x->between)
        return translate_again(x);
    if (x->endpoint == AT_AT_PAGE)
        return at_answer_page(x, 200, NULL);
    return at_answer_json(x, 200, at_answer_translation(job, &x->request, &x->plan));
}

static enum MHD_Result translate(exchange *x)
{
    at_refusal refusal = {0};
    at_server *server = x->server;
    const at_server_settings *settings = &server->settings;
    if (!at_plan_make(x->served, settings, &x->request, &x->plan, &refusal))
        return at_answer_refused(x, &refusal);
    int64_t characters = 0;
    for (int64_t i = 0; i < x->request.count; i++)
        characters += at_characters(x->request.text[i]);
    pthread_mutex_lock(&server->lock);
    server->metrics.characters += characters;
    pthread_mutex_unlock(&server->lock);
    if (x->plan.pair < 0 && x->endpoint == AT_AT_PAGE)
        return at_answer_page(x, 200, NULL);
    if (x->plan.pair < 0)
        return at_answer_json(x, 200, at_answer_same(&x->request, &x->plan));
    const int64_t best = x->plan.then < 0 ? x->plan.alternatives + 1 : 1;
    x->job = at_job_new(x->served, x->plan.pair, x->request.text, x->request.count, best, x->plan.html);
    if (!x->job)
        return at_answer_fault(x, 500, "out of memory for a request");
    x->asked = at_seconds();
    if (x->job->open > settings->max_queue) {
        at_refuse(&refusal, 400, "Invalid request: request (%lld lines) exceeds text limit (%lld lines)",
                  (long long)x->job->open, (long long)settings->max_queue);
        return at_answer_refused(x, &refusal);
    }
    return await_job(x);
}

static enum MHD_Result detect(exchange *x)
{
    at_refusal refusal = {0};
    int64_t none;
    const char **code = calloc((size_t)x->served->count + 1, sizeof *code);
    double *probability = calloc((size_t)x->served->count + 1, sizeof *probability);
    char *body = NULL;
    if (code && probability && at_request_check(&x->request, &x->server->settings, false, &none, &refusal)) {
        const int found = at_detect(x->served, x->request.text, x->request.count, code, probability);
        body = found < 0 ? NULL : at_answer_detection(code, probability, found);
    }
    free(code);
    free(probability);
    return refusal.status ? at_answer_refusal(x, &refusal) : at_answer_json(x, 200, body);
}

/* ---- Requests --------------------------------------------------------------------------------------------------- */

static enum MHD_Result answer_post(exchange *x)
{
    at_refusal refusal = {0};
    const char *type = mhd->lookup_connection_value(x->connection, MHD_HEADER_KIND, "Content-Type");
    if (x->endpoint == AT_AT_QUESTION)
        return at_ask_lesson(x);
    if (x->endpoint == AT_AT_FILE)
        return at_answer_fault(x, 403, "Files translation are disabled on this server.");
    if (x->endpoint == AT_AT_SUGGEST)
        return at_answer_fault(x, 403, "Suggestions are disabled on this server.");
    if (!at_request_read(&x->request, type, x->query, x->body.bytes ? x->body.bytes : "", x->body.size, &refusal) ||
        !at_plan_allowed(x->served, &x->server->settings, &x->request, &refusal))
        return at_answer_refused(x, &refusal);
    return x->endpoint == AT_AT_DETECT                                   ? detect(x)
           : x->endpoint == AT_AT_TRANSLATE || x->endpoint == AT_AT_PAGE ? translate(x)
                                                                         : at_ask_look(x);
}

static char *metrics_text(at_server *server)
{
    pthread_mutex_lock(&server->queue.lock);
    const int64_t waiting = server->queue.lines, searches = server->queue.searches, searched = server->queue.searched;
    pthread_mutex_unlock(&server->queue.lock);
    pthread_mutex_lock(&server->lock);
    char *text = at_metrics_text(&server->metrics, waiting, searches, searched);
    pthread_mutex_unlock(&server->lock);
    return text;
}

static enum MHD_Result answer_get(exchange *x)
{
    switch (x->endpoint) {
    case AT_AT_LANGUAGES:
        return at_answer_json(x, 200, at_answer_languages(x->served));
    case AT_AT_SETTINGS:
        return at_answer_json(x, 200, at_answer_settings(x->served, &x->server->settings));
    case AT_AT_HEALTH:
        return at_answer_json(x, 200, strdup("{\"status\":\"ok\"}"));
    case AT_AT_METRICS:
        return at_answer_as(x, 200, "text/plain; version=0.0.4; charset=utf-8", metrics_text(x->server));
    case AT_AT_LESSON:
        return at_answer_lesson(x);
    case AT_AT_PAGE:
        return at_answer_page(x, 200, NULL);
    case AT_AT_EXPLORER:
        return answer_post(x);
    case AT_AT_WATCH:
        return at_ask_runs(x);
    case AT_AT_SPEC:
        return at_answer_json(x, 200, at_answer_spec());
    default:
        return at_answer_fault(x, 404, "There is nothing at this address");
    }
}

static enum MHD_Result answer_request(exchange *x, const char *method)
{
    if (x->too_large) {
        at_refusal refusal = {0};
        at_refuse(&refusal, 413, "Invalid request: request exceeds body limit (%lld bytes)",
                  (long long)x->server->settings.max_body);
        return at_answer_refusal(x, &refusal);
    }
    if (x->body.failed)
        return at_answer_fault(x, 500, "out of memory for a request");
    x->asks_methods = strcmp(method, "OPTIONS") == 0;
    if (x->asks_methods)
        return at_answer_json(x, 200, strdup(""));
    if (x->endpoint == AT_AT_ELSEWHERE)
        return at_answer_fault(x, 404, "There is nothing at this address");
    pthread_mutex_lock(&x->server->lock);
    x->served = at_served_hold(x->server->served);
    pthread_mutex_unlock(&x->server->lock);
    if (x->endpoint == AT_AT_PAGE && x->served->count == 0 && strcmp(x->path, "/") == 0) /* without a model */
        x->endpoint = x->server->settings.watch_count > 0 ? AT_AT_WATCH : AT_AT_LESSON;
    if (is_posted(x->endpoint) && strcmp(method, "POST") == 0)
        return answer_post(x);
    if (is_got(x->endpoint) && (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0))
        return answer_get(x);
    return at_answer_fault(x, 405, "The method is not allowed for this address");
}

/* Whether the headers promise more than may come. */
static bool promises_much(const exchange *x)
{
    const char *length = mhd->lookup_connection_value(x->connection, MHD_HEADER_KIND, "Content-Length");
    return length && strtoull(length, NULL, 10) > (unsigned long long)x->server->settings.max_body;
}

enum MHD_Result at_http_handle(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                               const char *version, const char *data, size_t *size, void **own)
{
    exchange *x = *own;
    (void)context;
    (void)version;
    if (!x || !x->on)
        return MHD_NO;
    x->connection = connection;
    if (x->phase == WAITING)
        return x->job ? answer_job(x) : at_answer_question(x);
    if (x->phase == OPENED) {
        x->phase = READING;
        x->endpoint = endpoint_of(url);
        x->path = strdup(url);
        if (!x->path)
            return MHD_NO;
        x->too_large = promises_much(x);
        return x->too_large ? answer_request(x, method) : MHD_YES;
    }
    if (*size == 0)
        return answer_request(x, method);
    x->too_large |= x->body.size + *size > (size_t)x->server->settings.max_body;
    if (!x->too_large)
        at_buffer_add(&x->body, data, *size);
    *size = 0;
    return MHD_YES;
}

void at_exchange_free(exchange *x)
{
    at_job_free(x->job);
    for (int64_t i = 0; x->between && i < x->request.count; i++)
        at_buffer_free(&x->between[i]);
    free(x->between);
    at_request_free(&x->request);
    at_buffer_free(&x->body);
    at_served_release(x->served);
    free(x->question.answer);
    free(x->looked[0]);
    free(x->looked[1]);
    free(x->path);
    free(x->query);
    free(x);
}
#else
typedef int at_no_http; /* a file is not empty */
#endif
