/* attend serve: trained models behind HTTP, until a signal ends it. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attend_server.h"
#include "commands.h"
#include "program.h"

typedef struct serve_options {
    cli_common common;
    at_texts models, watch;
    const char *host, *api_keys, *cert, *key, *user, *pivot;
    int64_t port, beam, max_source, char_limit, batch_limit, alternatives_limit, queue, connections, per_address;
    double length_penalty, timeout;
    bool require_key, check, no_isolation, sentences, no_placeholders;
} serve_options;

static const at_setting table[] = {
    {AT_SETTING_HEADING, .help = "The models and the search"},
    {AT_SETTING_TEXTS, "model", "[S-T=]FILE", offsetof(serve_options, models),
     .help = "a model and its languages, as in de-en=de-en.safetensors, or pt-BR:en= where a code has a dash (default: "
             "source and target); given several times, a model for each pair",
     .letter = 'm'},
    {AT_SETTING_COUNT, "beam", "N", offsetof(serve_options, beam), "1", 1, 100,
     .help = "hypotheses kept at each step; 1 is greedy; at least one more than the alternatives of a request"},
    {AT_SETTING_NUMBER, "length-penalty", "A", offsetof(serve_options, length_penalty), "0", -100, 100,
     .help = "rank by the log-probability / ((5 + n) / 6)^A, n being the units and the end"},
    {AT_SETTING_SWITCH, "sentences", .offset = offsetof(serve_options, sentences),
     .help = "translate each sentence of a line for itself (split by ICU), for models that were trained on sentences"},
    {AT_SETTING_TEXT, "pivot", "CODE", offsetof(serve_options, pivot),
     .help = "a language: a pair without a model of its own is translated into it, and from there, as in --pivot en"},
    {AT_SETTING_SWITCH, "no-placeholders", .offset = offsetof(serve_options, no_placeholders),
     .help = "leave addresses, placeholders such as {name} or %s, and numbers to the model; otherwise they are kept"},

    {AT_SETTING_TEXTS, "watch", "LOG", offsetof(serve_options, watch),
     .help =
         "show the curves of a run at /watch while it goes on, from OUTPUT.log.jsonl, or of all runs below a folder "
         "(as attend compare has); may be given several times"},

    {AT_SETTING_HEADING, .help = "Who is served"},
    {AT_SETTING_TEXT, "host", "HOST", offsetof(serve_options, host), "127.0.0.1",
     .help = "the name or address to listen on; by default only this machine is served"},
    {AT_SETTING_COUNT, "port", "N", offsetof(serve_options, port), "5000", 0, 65535,
     .help = "the port to listen on; 0: any free one"},
    {AT_SETTING_TEXT, "api-keys", "FILE", offsetof(serve_options, api_keys),
     .help = "a key in each line; a request with another key is refused"},
    {AT_SETTING_SWITCH, "require-key", .offset = offsetof(serve_options, require_key),
     .help = "refuse requests without a key, too"},
    {AT_SETTING_TEXT, "cert", "FILE", offsetof(serve_options, cert), .help = "HTTPS: the certificate (PEM)"},
    {AT_SETTING_TEXT, "key", "FILE", offsetof(serve_options, key), .help = "HTTPS: its private key (PEM)"},

    {AT_SETTING_TEXT, "user", "NAME", offsetof(serve_options, user),
     .help = "become this user once it listens (only root can); the models and keys must be readable for the user"},
    {AT_SETTING_SWITCH, "no-isolation", .offset = offsetof(serve_options, no_isolation),
     .help =
         "do not restrict the process by Landlock and seccomp to what a server needs: reading files in the folders of "
         "its models and keys, and answering"},

    {AT_SETTING_HEADING, .help = "Limits"},
    {AT_SETTING_COUNT, "char-limit", "N", offsetof(serve_options, char_limit), "5000", 1, 1 << 20,
     .help = "characters of a text"},
    {AT_SETTING_COUNT, "max-source", "N", offsetof(serve_options, max_source), NULL, 1, 1 << 28,
     .help = "read the first N units of a longer line (default: 5 times the longest of training, 1000 at least)"},
    {AT_SETTING_COUNT, "batch-limit", "N", offsetof(serve_options, batch_limit), "64", 1, 100000,
     .help = "texts of a request"},
    {AT_SETTING_COUNT, "alternatives-limit", "N", offsetof(serve_options, alternatives_limit), "5", 1, 99,
     .help = "alternatives of a text"},
    {AT_SETTING_COUNT, "queue", "LINES", offsetof(serve_options, queue), "1024", 1, 1000000,
     .help = "lines that wait; a request beyond them is answered with status 429"},
    {AT_SETTING_NUMBER, "timeout", "SECONDS", offsetof(serve_options, timeout), "30", 0, 3600, AT_ABOVE_LEAST,
     .help = "time to send a request, to wait for its translation, and to receive it, for each; and to finish after a "
             "signal"},
    {AT_SETTING_COUNT, "connections", "N", offsetof(serve_options, connections), "256", 1, 10000,
     .help = "connections at the same time"},
    {AT_SETTING_COUNT, "per-address", "N", offsetof(serve_options, per_address), "64", 1, 10000,
     .help = "of them from one address; behind a proxy, as many as --connections"},
    {AT_SETTING_SWITCH, "check", .offset = offsetof(serve_options, check),
     .help = "read the models, listen, and end at once: whether these options work"},
    {0},
};

/* "de-en=FILE", "pt-BR:en=FILE" or "FILE". The text is cut into its parts. */
static bool read_model(char *text, at_server_model *model, at_error *error)
{
    char *equals = strchr(text, '=');
    char *slash = strchr(text, '/');
    *model = (at_server_model){.path = text};
    if (!equals || (slash && slash < equals))
        return true;
    *equals = 0;
    char *middle = strchr(text, ':');
    middle = middle ? middle : strchr(text, '-');
    if (!middle || middle == text || !middle[1] || (*middle == '-' && strchr(middle + 1, '-')))
        return fail(error, AT_USAGE,
                    "--model: '%s' is not a pair of languages such as de-en, or pt-BR:en; a file with = in its name is "
                    "given as ./FILE",
                    text);
    *middle = 0;
    *model = (at_server_model){.source = text, .target = middle + 1, .path = equals + 1};
    return *model->path ||
           fail(error, AT_USAGE, "--model: %s-%s= needs the file of a model", model->source, model->target);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* All requests are answered, or the time is up, or another signal came. */
static bool drain(at_server *server, const sigset_t *ends, double limit)
{
    const double last = seconds() + limit;
    bool drained = false;
    while (!drained && seconds() < last) {
        drained = at_server_drain(server, 0.1);
        if (!drained && sigtimedwait(ends, NULL, &(struct timespec){0}) > 0)
            break;
    }
    return drained;
}

static void tell(const at_server *server, const at_server_settings *s)
{
    const bool wide = strchr(s->host, ':');
    fprintf(stderr, "attend serve: http%s://%s%s%s:%d", s->cert ? "s" : "", wide ? "[" : "", s->host, wide ? "]" : "",
            at_server_port(server));
    for (int i = 0; i < s->model_count; i++)
        fprintf(stderr, "%s %s to %s", i ? "," : ":", s->models[i].source ? s->models[i].source : "source",
                s->models[i].target ? s->models[i].target : "target");
    if (!s->model_count)
        fputs(s->watch_count ? ": no model, runs at /watch" : ": no model, the lesson alone", stderr);
    fprintf(stderr, "; %s; Ctrl-C ends it\n", at_server_isolation(server));
}

/* Signals are waited for, so that they interrupt nothing; threads that are started later have them blocked, too. */
static void block(sigset_t *all, sigset_t *ends)
{
    sigemptyset(ends);
    sigaddset(ends, SIGTERM);
    sigaddset(ends, SIGINT);
    *all = *ends;
    if (!program_ignores(SIGHUP))
        sigaddset(all, SIGHUP);
    pthread_sigmask(SIG_BLOCK, all, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void serve(const at_server_settings *settings, const serve_options *o, at_error *error)
{
    sigset_t all, ends;
    int number = 0;
    block(&all, &ends);
    at_server *server = at_server_new(settings, error);
    if (server && !o->common.quiet && !o->check)
        tell(server, settings);
    while (server && !o->check && sigwait(&all, &number) == 0 && number == SIGHUP) {
        at_error kept = {0};
        if (!at_server_reload(server, &kept))
            fprintf(stderr, "attend: the models stay as they were: %s\n", kept.text);
        else if (!o->common.quiet)
            fputs("attend serve: the models were read again\n", stderr);
    }
    if (server && !drain(server, &ends, o->timeout))
        fail(error, AT_INTERRUPTED, "not all requests were answered before the end");
    at_server_free(server);
}

static int run(void *options, int word_count, char **words)
{
    serve_options *o = options;
    at_error error = {0};
    at_server_model *models = calloc((size_t)o->models.count + 1, sizeof *models);
    char **texts = calloc((size_t)o->models.count + 1, sizeof *texts);
    (void)word_count;
    (void)words;
    if (!models || !texts)
        fail(&error, AT_MEMORY, "out of memory for the models");
    for (int i = 0; i < o->models.count && error.code == AT_OK; i++) {
        texts[i] = strdup(o->models.value[i]);
        if (texts[i])
            read_model(texts[i], &models[i], &error);
        else
            fail(&error, AT_MEMORY, "out of memory for the models");
    }
    const at_server_settings settings = {.models = models,
                                         .model_count = o->models.count,
                                         .host = o->host,
                                         .port = o->port ? (int)o->port : -1,
                                         .beam = o->beam,
                                         .length_penalty = o->length_penalty,
                                         .sentences = o->sentences,
                                         .pivot = o->pivot,
                                         .no_placeholders = o->no_placeholders,
                                         .max_characters = o->char_limit,
                                         .max_source = o->max_source == UNSET ? 0 : (int)o->max_source,
                                         .max_texts = o->batch_limit,
                                         .max_alternatives = o->alternatives_limit,
                                         .max_queue = o->queue,
                                         .request_seconds = o->timeout,
                                         .max_connections = (int)o->connections,
                                         .max_per_address = (int)o->per_address,
                                         .api_keys = o->api_keys,
                                         .require_key = o->require_key,
                                         .cert = o->cert,
                                         .key = o->key,
                                         .user = o->user,
                                         .isolate = !o->no_isolation,
                                         .watch = o->watch.value,
                                         .watch_count = o->watch.count};
    if (error.code == AT_OK)
        serve(&settings, o, &error);
    for (int i = 0; texts && i < o->models.count; i++)
        free(texts[i]);
    free(texts);
    free(models);
    return report(&error);
}

const cli_command command_serve = {
    .name = "serve",
    .words = "",
    .line = "translate for other programs: the interface of LibreTranslate over HTTP",
    .text =
        "Listens on --host and --port and answers as LibreTranslate does: POST /translate and /detect, GET /languages "
        "and /frontend/settings; and GET /health and /metrics (Prometheus). Lines of all requests are translated "
        "together; each answer has the bytes of attend translate.\n\n"
        "In a browser, / is a page to translate with, which shows where the model looked, and /lesson a lesson on "
        "attention whose numbers are computed here; without "
        "a model there is the lesson alone.\n\n"
        "TERM and INT (Ctrl-C) end it after the requests that have begun are answered. HUP reads the models and "
        "the keys again, and no request is lost.",
    .examples = "  attend serve                     # the lesson: http://127.0.0.1:5000/lesson\n"
                "  attend serve -m de-en=de-en.safetensors -m en-de=en-de.safetensors --beam 4\n"
                "  curl -d source=de -d target=en -d q='Guten Tag' http://127.0.0.1:5000/translate\n",
    .options = table,
    .size = sizeof(serve_options),
    .run = run,
};
