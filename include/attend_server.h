/* attend_server.h: trained models behind HTTP, in C.
 *
 * A server translates by the interface of LibreTranslate: POST /translate and /detect, GET /languages and
 * /frontend/settings, and beside it GET /health and /metrics (doc/serve.md). It runs in threads of its own; the program
 * goes on. Lines of all connections are translated together, with the same bytes as each alone. examples/serve.c is a
 * program.
 *
 * Conventions, errors and the ABI are those of attend.h. Calls on different servers may run at the same time; of calls on
 * one server only at_server_port and at_server_isolation may.
 */
#ifndef ATTEND_SERVER_H
#define ATTEND_SERVER_H

#include "attend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Settings ------------------------------------------------------------------------------------------------- */

/* A model file and the codes of its languages, such as "de" and "en"; NULL: "source" and "target". */
typedef struct at_server_model {
    const char *source, *target;
    const char *path;
} at_server_model;

/* Zero the struct, then set what you want: 0 or NULL selects the default written first. at_server_new copies all of it. */
typedef struct at_server_settings {
    const at_server_model *models; /* [model_count], each for another pair of languages */
    int model_count;
    const char *host;         /* "127.0.0.1". Where to listen, a name or an address; "::" is every address */
    int port;                 /* 5000. -1: any free one, see at_server_port */
    int64_t beam;             /* 1: greedy. Hypotheses kept by the search; a request for n alternatives has n + 1 */
    double length_penalty;    /* 0: none, as at_search_settings */
    bool sentences;           /* false: lines are translated whole. true: each of their sentences, split by ICU */
    int64_t max_characters;   /* 5000. Of a text */
    int64_t max_texts;        /* 64. Of a request */
    int64_t max_alternatives; /* 5. Of a text */
    int64_t max_queue;        /* 1024. Lines that wait; a request beyond them is refused with status 429 */
    int64_t max_body;         /* 1 MiB. Bytes of a request */
    int max_connections;      /* 256 */
    int max_per_address;      /* 64. Connections of one address */
    double idle_seconds;      /* 10. A connection without a byte for so long is closed */
    double request_seconds;   /* 30. To send a request, to wait for its answer, and to receive it: for each */
    const char *api_keys;     /* NULL: keys are ignored. A file with a key in each line; # begins a comment */
    bool require_key;         /* false: a key may be left out, but one that is given must be right */
    const char *cert, *key;   /* NULL: HTTP. PEM files of the certificate and its private key: HTTPS (GnuTLS) */
    const char *user;         /* NULL: stay. The user to become once it listens; only root can */
    bool isolate;             /* false. true: the whole process gives up what a server does not need, see below */
    const char *pivot;        /* NULL. A language: a pair without a model is translated to it, and from there */
    bool no_placeholders;     /* false: addresses, {name}, %s and numbers are kept. true: they are left to the model */
    const char *const
        *watch; /* [watch_count] logs of training (OUTPUT.log.jsonl), or folders with such logs, to show */
    int watch_count;
    int max_source; /* 0: 1000, or 5 times the longest line of a model's training. Units that are read of a line */
} at_server_settings;

/* ---- Servers -------------------------------------------------------------------------------------------------- */

/* Loads the models and starts to listen. AT_USAGE: settings that do not fit together; AT_UNSUPPORTED: the library was
 * built without libmicrohttpd (or ICU, for `sentences`) or cannot find it, or a model cannot be served (a language model, one of
 * pictures of any size, or of features); AT_FILE: the system refused to listen; else as at_translator_load. */
typedef struct at_server at_server;
AT_API at_server *at_server_new(const at_server_settings *settings, at_error *error);
AT_API int at_server_port(const at_server *server);
/* With `isolate` the process, not only the server, is restricted for good, as far as the kernel can: by Landlock to reading
 * files in the folders of its models and its API keys, and by seccomp, such that it cannot start programs or processes,
 * make connections, or listen elsewhere. Threads that were started before are restricted by seccomp only. This tells what
 * was possible, for people: "isolated by Landlock and seccomp", "not isolated". */
AT_API const char *at_server_isolation(const at_server *server);
/* Reads the model files and the API keys again. Requests that came before are answered by the models that were there, and
 * none is lost. If one cannot be read, all stay as they were. */
AT_API bool at_server_reload(at_server *server, at_error *error);
/* Accepts no more connections, and waits up to so many seconds until all requests are answered; whether they were. */
AT_API bool at_server_drain(at_server *server, double seconds);
/* Ends it at once: requests that still wait are answered with status 503. */
AT_API void at_server_free(at_server *server);

#ifdef __cplusplus
}
#endif
#endif
