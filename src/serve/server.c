/* A server: its settings, the socket it listens on, its threads, and what they share. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "serve/serve_internal.h"

/* ---- Settings --------------------------------------------------------------------------------------------------- */

static bool is_code(const char *text)
{
    enum { LONGEST = 35 }; /* RFC 5646 */
    const size_t length = strlen(text);
    return length > 0 && length <= LONGEST &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == length &&
           strcmp(text, "auto") != 0;
}

static bool check_models(const at_server_settings *s, at_error *error)
{
    if (s->model_count < 0)
        return at_fail(error, AT_USAGE, "a server cannot have %d models", s->model_count);
    for (int i = 0; i < s->model_count; i++) {
        const at_server_model *m = &s->models[i];
        if (!is_code(m->source) || !is_code(m->target))
            return at_fail(error, AT_USAGE,
                           "the languages of '%s' are codes of letters and digits, such as de or pt-BR", m->path);
        if (strcmp(m->source, m->target) == 0)
            return at_fail(error, AT_USAGE, "'%s' would translate from %s to %s; the languages of a model differ",
                           m->path, m->source, m->target);
        for (int j = 0; j < i; j++)
            if (strcmp(m->source, s->models[j].source) == 0 && strcmp(m->target, s->models[j].target) == 0)
                return at_fail(error, AT_USAGE,
                               "'%s' and '%s' are both for %s to %s; a pair of languages has one model",
                               s->models[j].path, m->path, m->source, m->target);
    }
    return true;
}

/* A log that is not there yet is fine; its folder must be. */
static bool check_watched(const char *path, at_error *error)
{
    static const char ending[] = ".jsonl";
    struct stat status;
    const size_t length = strlen(path);
    const bool is_log = length >= sizeof ending && strcmp(path + length - (sizeof ending - 1), ending) == 0;
    if (stat(path, &status) != 0 && !is_log)
        return at_file_fail(error, "read", path, errno);
    if (!is_log && !S_ISDIR(status.st_mode))
        return at_fail(error, AT_USAGE,
                       "`watch` needs a log of training, OUTPUT.log.jsonl, or a folder of such logs, not '%s'", path);
    const char *slash = strrchr(path, '/');
    char *folder = slash && slash > path ? strndup(path, (size_t)(slash - path)) : strdup(slash ? "/" : ".");
    const bool found = folder && stat(folder, &status) == 0;
    const int reason = errno;
    free(folder);
    return found ||
           (folder ? at_file_fail(error, "read", path, reason) : at_no_memory(error, "the settings of a server"));
}

static bool check(const at_server_settings *s, at_error *error)
{
    if (s->port < -1 || s->port > 65535)
        return at_fail(error, AT_USAGE, "a `port` is a number from 1 to 65535, not %d", s->port);
    if (s->require_key && !s->api_keys)
        return at_fail(error, AT_USAGE, "`require-key` needs the keys: `api-keys`");
    bool known = !s->pivot;
    for (int i = 0; i < s->model_count && !known; i++)
        known = strcmp(s->models[i].source, s->pivot) == 0;
    if (!known)
        return at_fail(error, AT_USAGE, "no model translates from '%s', the `pivot`", s->pivot);
    if (!s->cert != !s->key)
        return at_fail(error, AT_USAGE, "HTTPS needs both `cert` and `key`");
    for (int i = 0; i < s->watch_count; i++)
        if (!check_watched(s->watch[i], error))
            return false;
    return true;
}

static size_t size_of(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/* Copies a text to where the next one fits, and lets the field point there. */
static void keep(const char **field, char **room)
{
    const size_t size = size_of(*field);
    if (size == 0)
        return;
    memcpy(*room, *field, size);
    *field = *room;
    *room += size;
}

static bool copy_settings(at_server *server, const at_server_settings *given, at_error *error)
{
    at_server_settings *s = &server->settings;
    const int count = given->model_count > 0 ? given->model_count : 0;
    *s = *given;
    server->model = calloc((size_t)count + 1, sizeof *server->model);
    s->models = server->model;
    s->host = s->host ? s->host : "127.0.0.1";
    size_t size = size_of(s->host) + size_of(s->api_keys) + size_of(s->cert) + size_of(s->key) + size_of(s->user) +
                  size_of(s->pivot) + 1;
    for (int i = 0; i < count && server->model; i++) {
        at_server_model *m = &server->model[i];
        *m = given->models[i];
        m->source = m->source ? m->source : "source";
        m->target = m->target ? m->target : "target";
        size += size_of(m->source) + size_of(m->target) + size_of(m->path);
    }
    const int watched = given->watch_count > 0 ? given->watch_count : 0;
    server->watch = calloc((size_t)watched + 1, sizeof *server->watch);
    s->watch = server->watch;
    for (int i = 0; i < watched; i++)
        size += size_of(given->watch[i]);
    char *room = server->text = malloc(size);
    if (!server->model || !server->text || !server->watch)
        return at_no_memory(error, "the settings of a server");
    const char **texts[] = {&s->host, &s->api_keys, &s->cert, &s->key, &s->user, &s->pivot};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        keep(texts[i], &room);
    for (int i = 0; i < count; i++) {
        keep(&server->model[i].source, &room);
        keep(&server->model[i].target, &room);
        keep(&server->model[i].path, &room);
    }
    for (int i = 0; i < watched; i++) {
        server->watch[i] = given->watch[i];
        keep(&server->watch[i], &room);
    }
    s->port = s->port ? s->port : 5000;
    s->beam = s->beam ? s->beam : 1;
    s->max_characters = s->max_characters ? s->max_characters : 5000;
    s->max_texts = s->max_texts ? s->max_texts : 64;
    s->max_alternatives = s->max_alternatives ? s->max_alternatives : 5;
    s->max_queue = s->max_queue ? s->max_queue : 1024;
    s->max_body = s->max_body ? s->max_body : 1 << 20;
    s->max_connections = s->max_connections ? s->max_connections : 256;
    s->max_per_address = s->max_per_address ? s->max_per_address : 64;
    s->idle_seconds = s->idle_seconds > 0 ? s->idle_seconds : 10;
    s->request_seconds = s->request_seconds > 0 ? s->request_seconds : 30;
    return true;
}

/* A small file as text. */
static char *read_text(const char *path, at_error *error)
{
    size_t size = 0;
    unsigned char *bytes = at_file_read(path, &size, error);
    char *text = bytes ? strndup((const char *)bytes, size) : NULL;
    if (bytes && !text)
        at_no_memory(error, "'%s'", path);
    free(bytes);
    return text;
}

/* ---- The socket ------------------------------------------------------------------------------------------------- */

static int port_of(int file)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    char port[16] = "";
    if (getsockname(file, (struct sockaddr *)&address, &size) != 0 ||
        getnameinfo((struct sockaddr *)&address, size, NULL, 0, port, sizeof port, NI_NUMERICSERV) != 0)
        return 0;
    return atoi(port);
}

static int listen_at(const struct addrinfo *address)
{
    const int on = 1, off = 0;
    const int file = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file < 0)
        return -1;
    setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->ai_family == AF_INET6)
        setsockopt(file, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(file, address->ai_addr, address->ai_addrlen) == 0 && listen(file, 512) == 0)
        return file;
    const int reason = errno;
    close(file);
    errno = reason;
    return -1;
}

static bool listen_on(at_server *server, at_error *error)
{
    const at_server_settings *s = &server->settings;
    const struct addrinfo wanted = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char port[16];
    snprintf(port, sizeof port, "%d", s->port < 0 ? 0 : s->port);
    const int fault = getaddrinfo(s->host, port, &wanted, &found);
    if (fault == EAI_MEMORY)
        return at_no_memory(error, "the address of '%s'", s->host);
    if (fault)
        return at_fail(error, AT_FILE, "there is no host '%s' to listen on: %s", s->host, gai_strerror(fault));
    for (const struct addrinfo *a = found; a && server->socket < 0; a = a->ai_next)
        server->socket = listen_at(a);
    const int reason = errno;
    freeaddrinfo(found);
    if (server->socket < 0)
        return at_fail(error, AT_FILE, "cannot listen on %s, port %s: %s", s->host, port, strerror(reason));
    server->port = port_of(server->socket);
    return true;
}

/* ---- Time ------------------------------------------------------------------------------------------------------- */

static struct timespec in_seconds(double seconds)
{
    const double then = at_seconds() + seconds;
    return (struct timespec){.tv_sec = (time_t)then, .tv_nsec = (long)(1e9 * (then - (double)(time_t)then))};
}

/* ---- Servers ---------------------------------------------------------------------------------------------------- */

static bool start(at_server *server, const at_server_settings *settings, at_error *error)
{
    at_server_settings *s = &server->settings;
    if (!copy_settings(server, settings, error) || !check(s, error) || !check_models(s, error))
        return false;
    if ((s->cert && !(server->cert = read_text(s->cert, error))) ||
        (s->key && !(server->key = read_text(s->key, error))))
        return false;
    if (!at_http_load(error) || (s->sentences && !at_splitter_load(error)) || !listen_on(server, error) ||
        !at_isolate(s, server->isolation, sizeof server->isolation, error))
        return false;
    server->served = at_served_new(s, error);
    return server->served && at_queue_start(&server->queue, s, error) && (server->lesson = at_lesson_new(error)) &&
           at_questions_start(&server->lessons, error) && at_questions_start(&server->looks, error) &&
           at_http_start(server, error);
}

at_server *at_server_new(const at_server_settings *settings, at_error *error)
{
    pthread_condattr_t attributes;
    at_server *server = error->code == AT_OK ? calloc(1, sizeof *server) : NULL;
    if (!server) {
        at_no_memory(error, "a server");
        return NULL;
    }
    server->socket = server->wakes = -1;
    at_queue_init(&server->queue);
    at_questions_init(&server->lessons);
    at_questions_init(&server->looks);
    pthread_mutex_init(&server->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&server->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    if (start(server, settings, error))
        return server;
    at_server_free(server);
    return NULL;
}

int at_server_port(const at_server *server)
{
    return server->port;
}

const char *at_server_isolation(const at_server *server)
{
    return server->isolation;
}

bool at_server_reload(at_server *server, at_error *error)
{
    at_served *fresh = error->code == AT_OK ? at_served_new(&server->settings, error) : NULL;
    if (!fresh)
        return false;
    pthread_mutex_lock(&server->lock);
    at_served *old = server->served;
    server->served = fresh;
    server->metrics.reloads++;
    pthread_mutex_unlock(&server->lock);
    at_served_release(old);
    return true;
}

bool at_server_drain(at_server *server, double seconds)
{
    const double limit = at_seconds() + seconds;
    pthread_mutex_lock(&server->lock);
    const bool first = !server->draining;
    server->draining = true;
    pthread_mutex_unlock(&server->lock);
    if (first)
        at_http_quiesce(server);
    pthread_mutex_lock(&server->lock);
    while ((server->open_requests > 0 || at_http_expects(server, at_seconds())) && at_seconds() < limit) {
        const struct timespec soon = in_seconds(0.05);
        pthread_cond_timedwait(&server->changed, &server->lock, &soon);
    }
    const bool drained = server->open_requests == 0;
    pthread_mutex_unlock(&server->lock);
    return drained;
}

/* The search ends before the connections: no connection may be suspended when libmicrohttpd stops. */
void at_server_free(at_server *server)
{
    if (!server)
        return;
    at_queue_end(&server->queue);
    at_questions_end(&server->lessons);
    at_questions_end(&server->looks);
    at_http_end(server);
    if (server->socket >= 0)
        close(server->socket);
    at_served_release(server->served);
    at_queue_free(&server->queue);
    at_questions_free(&server->lessons);
    at_questions_free(&server->looks);
    at_lesson_free(server->lesson);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    free(server->cert);
    free(server->key);
    free(server->text);
    free(server->model);
    free(server->watch);
    free(server);
}
