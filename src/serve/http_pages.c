/* The pages: the translator's, the lesson, and the questions of both, which threads of their own answer. */
#include "serve/serve_internal.h"

#ifdef AT_HAVE_MICROHTTPD
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "serve/http_internal.h"
#include "serve/values_internal.h"

static const char html_type[] = "text/html; charset=utf-8";

static bool wants_chinese(const exchange *x)
{
    const char *language = mhd->lookup_connection_value(x->connection, MHD_HEADER_KIND, "Accept-Language");
    return language && strncasecmp(language, "zh", 2) == 0;
}

enum MHD_Result at_answer_page(exchange *x, int status, const char *message)
{
    at_error error = {0};
    at_buffer text[AT_PAGE_ALTERNATIVES + 1] = {0};
    char *translation[AT_PAGE_ALTERNATIVES + 1];
    const char *type = html_type, *name = strrchr(x->path, '/') + 1;
    const char *file = strncmp(x->path, "/translator/", 12) == 0 ? at_page_file(name, &type) : NULL;
    const bool any = strcmp(x->path, "/") == 0 || strcmp(x->path, "/translator") == 0 || !*name;
    at_page page = {.served = x->served,
                    .settings = &x->server->settings,
                    .chinese = any ? wants_chinese(x) : strcmp(name, "zh") == 0,
                    .request = x->request.text ? &x->request : NULL,
                    .detected = x->plan.detected,
                    .translation = translation,
                    .message = message};
    if (file)
        return at_answer_as(x, 200, type, strdup(file));
    if (x->served->count == 0 || (!any && strcmp(name, "en") != 0 && strcmp(name, "zh") != 0))
        return at_answer_fault(x, 404, "There is nothing at this address");
    const int64_t most = x->job && status == 200 ? x->job->best : 0;
    for (int64_t i = 0; i < most && i <= AT_PAGE_ALTERNATIVES; i++) {
        at_buffer_add(&text[page.count], "", 0);
        at_job_text(x->job, 0, i, &text[page.count]);
        translation[page.count] = text[page.count].bytes;
        bool fresh = !text[page.count].failed;
        for (int j = 0; j < page.count && fresh; j++)
            fresh = strcmp(translation[j], translation[page.count]) != 0;
        page.count += fresh;
        if (!fresh)
            at_buffer_free(&text[page.count]);
    }
    page.same = status == 200 && x->plan.pair < 0 && x->request.count > 0;
    if (page.same) {
        at_buffer_add(&text[0], x->request.text[0].text, x->request.text[0].size);
        translation[0] = text[0].bytes;
        page.count = !text[0].failed;
    }
    page.confidence = x->job && page.count > 0 && x->plan.then < 0 ? at_job_confidence(x->job, 0) : NAN;
    char *html = at_page_text(&page, &error);
    for (int i = 0; i < page.count; i++)
        at_buffer_free(&text[i]);
    return at_answer_as(x, status, type, html);
}

enum MHD_Result at_answer_refused(exchange *x, const at_refusal *refusal)
{
    return x->endpoint == AT_AT_PAGE ? at_answer_page(x, refusal->status, refusal->text)
                                     : at_answer_refusal(x, refusal);
}

/* ---- The lesson ------------------------------------------------------------------------------------------------- */

enum MHD_Result at_answer_lesson(exchange *x)
{
    static const char prefix[] = "/lesson";
    at_error error = {0};
    const char *type;
    const bool below = strncmp(x->path, prefix, sizeof prefix - 1) == 0;
    char *body = at_lesson_file(below ? x->path + sizeof prefix - 1 : "", wants_chinese(x), &type, &error);
    return body || error.code ? at_answer_as(x, 200, type, body)
                              : at_answer_fault(x, 404, "There is nothing at this address");
}

static void on_question_done(at_question *question)
{
    at_http_resume(question->context);
}

enum MHD_Result at_answer_question(exchange *x)
{
    at_question *q = &x->question;
    char *body = q->answer;
    q->answer = NULL;
    if (body && (x->endpoint == AT_AT_EXPLORER || x->as_html))
        return at_answer_as(x, 200, html_type, body);
    return body ? at_answer_json(x, 200, body)
                : at_answer_fault(x,
                                  q->error.code == AT_MEMORY        ? 500
                                  : q->error.code == AT_INTERRUPTED ? 503
                                                                    : 400,
                                  q->error.text);
}

static enum MHD_Result ask(exchange *x, at_questions *all)
{
    if (at_questions_add(all, &x->question, at_http_suspend, x))
        return MHD_YES;
    return at_answer_fault(x, 429, "Slowdown: too many questions are waiting to be answered");
}

static char *find_in_lesson(at_question *question)
{
    const exchange *x = question->context;
    return at_lesson_answer(x->server->lesson, x->body.bytes ? x->body.bytes : "", x->body.size, &question->error);
}

enum MHD_Result at_ask_lesson(exchange *x)
{
    x->question = (at_question){.find = find_in_lesson, .done = on_question_done, .context = x};
    at_refusal refusal = {0};
    if (!at_request_read(&x->request, NULL, x->query, "", 0, &refusal) ||
        !at_plan_allowed(x->served, &x->server->settings, &x->request, &refusal))
        return at_answer_refusal(x, &refusal); /* the key is in the address */
    return ask(x, &x->server->lessons);
}

/* ---- Questions of the translator's page ---------------------------------------------------------------------------- */

static char *find_by_looking(at_question *question)
{
    exchange *x = question->context;
    x->look.stop = question->stop;
    return x->endpoint == AT_AT_ATTENTION      ? at_look_attention(&x->look, &question->error)
           : x->endpoint == AT_AT_ALTERNATIVES ? at_look_alternatives(&x->look, &question->error)
                                               : at_look_explorer(&x->look, &question->error);
}

/* One line: a tab or the end of a line is a blank. */
static bool take_line(const char *text, char **copy, at_line *line)
{
    *copy = strdup(text);
    for (char *c = *copy; c && *c; c++)
        *c = *c == '\t' || *c == '\n' || *c == '\r' ? ' ' : *c;
    *line = (at_line){*copy, *copy ? strlen(*copy) : 0};
    return *copy;
}

enum MHD_Result at_ask_look(exchange *x)
{
    static const char *const names[] = {"q", "translation", "start"};
    const at_request *r = &x->request;
    const at_server_settings *s = &x->server->settings;
    const bool starts = x->endpoint == AT_AT_ALTERNATIVES;
    const int64_t most = x->endpoint == AT_AT_EXPLORER ? AT_EXPLORED_CHARACTERS : AT_LOOK_CHARACTERS;
    at_server_settings limits = *s;
    at_refusal refusal = {0};
    limits.max_texts = 1;
    limits.max_characters = most < s->max_characters ? most : s->max_characters;
    limits.max_alternatives = AT_LOOK_WORDS;
    if (!at_plan_make(x->served, &limits, r, &x->plan, &refusal))
        return at_answer_refusal(x, &refusal);
    const char *text[2] = {r->text[0].text, starts ? r->start : r->translation};
    if (!text[1] && x->endpoint != AT_AT_EXPLORER)
        at_refuse(&refusal, 400, "Invalid request: missing %s parameter", names[1 + starts]);
    else if (x->plan.pair < 0)
        at_refuse(&refusal, 400, "Invalid request: there is no model between a language and itself");
    else if (x->served->pair[x->plan.pair].pictures)
        at_refuse(&refusal, 400, "Invalid request: this model reads pictures, and this is for texts");
    else if (x->plan.then >= 0)
        at_refuse(&refusal, 400, "Invalid request: two models translate this pair, and attention is that of one");
    else if (text[1] && at_characters((at_line){text[1], strlen(text[1])}) > most)
        at_refuse(&refusal, 400, "Invalid request: %s exceeds text limit (%lld)", names[1 + starts], (long long)most);
    else if (!take_line(text[0], &x->looked[0], &x->look.source) ||
             !take_line(text[1] ? text[1] : "", &x->looked[1], &x->look.target))
        at_refuse(&refusal, 500, "out of memory for a request");
    if (refusal.status)
        return at_answer_refusal(x, &refusal);
    x->look.translator = x->served->pair[x->plan.pair].looker;
    x->look.count = x->plan.alternatives;
    x->look.beam = s->beam;
    x->look.max_source = s->max_source;
    x->look.length_penalty = s->length_penalty;
    x->question = (at_question){
        .find = find_by_looking, .deadline = at_seconds() + s->request_seconds, .done = on_question_done, .context = x};
    return ask(x, &x->server->looks);
}

/* ---- Runs of training ------------------------------------------------------------------------------------------- */

static char *find_runs(at_question *question)
{
    const exchange *x = question->context;
    const at_server_settings *s = &x->server->settings;
    if (x->as_html)
        return at_watch_page(s, x->chinese, &question->error);
    char *text = text_of(at_watch_runs(s));
    if (!text)
        at_no_memory(&question->error, "the runs");
    return text;
}

enum MHD_Result at_ask_runs(exchange *x)
{
    static const char prefix[] = "/watch/";
    const char *name = strncmp(x->path, prefix, sizeof prefix - 1) == 0 ? x->path + sizeof prefix - 1 : "", *type;
    const char *file = at_page_file(name, &type);
    const bool runs = strcmp(name, "runs") == 0, english = strcmp(name, "en") == 0, chinese = strcmp(name, "zh") == 0;
    if (x->server->settings.watch_count < 1 || (*name && !file && !runs && !english && !chinese))
        return at_answer_fault(x, 404, "There is nothing at this address");
    if (file)
        return at_answer_as(x, 200, type, strdup(file));
    if (x->server->settings.require_key)
        return at_answer_fault(x, 403, "Runs are not shown by a server that requires a key");
    x->as_html = !runs;
    x->chinese = *name ? chinese : wants_chinese(x);
    x->question = (at_question){.find = find_runs, .done = on_question_done, .context = x};
    return ask(x, &x->server->lessons);
}
#else
typedef int at_no_pages; /* a file is not empty */
#endif
