/* Connections, by libmicrohttpd, and the thread that reads requests from them and writes answers. It waits and closes
 * connections itself. libmicrohttpd measures the time since it has last read from a connection, so that a server which does
 * not get the processor for long enough closes connections whose requests wait to be read. And with epoll, version 0.9.75
 * waits again before it handles 128 sockets that are ready at once, and does not see the end of what a client sends if it
 * comes together with the last bytes. */
#include "serve/serve_internal.h"

#ifdef AT_HAVE_MICROHTTPD
#include <errno.h>
#include <linux/sockios.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/http_internal.h"

/* ---- Connections and their requests ----------------------------------------------------------------------------- */

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    at_server *server = context;
    at_connection *c = *socket_context;
    pthread_mutex_lock(&server->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED && (c = calloc(1, sizeof *c))) {
        const union MHD_ConnectionInfo *info = mhd->get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *c = (at_connection){.next = server->connections,
                             .link = &server->connections,
                             .socket = info ? info->connect_fd : -1,
                             .since = at_seconds(),
                             .fresh = true};
        if (c->next)
            c->next->link = &c->next;
        server->connections = c;
        server->metrics.connections++;
        *socket_context = c;
    } else if (code == MHD_CONNECTION_NOTIFY_CLOSED && c) {
        *c->link = c->next;
        if (c->next)
            c->next->link = c->link;
        server->metrics.connections--;
        free(c);
    }
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

/* Called with the first line of a request; what it returns is at_http_handle's *own, and on_end releases it. */
static void *on_begin(void *context, const char *uri, struct MHD_Connection *connection)
{
    at_server *server = context;
    const union MHD_ConnectionInfo *info = mhd->get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    const char *query = strchr(uri, '?');
    exchange *x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    *x = (exchange){.server = server, .connection = connection, .on = info ? info->socket_context : NULL};
    x->query = query ? strdup(query + 1) : NULL;
    pthread_mutex_lock(&server->lock);
    server->open_requests++;
    if (x->on) {
        x->on->since = at_seconds();
        x->on->fresh = false;
    }
    pthread_mutex_unlock(&server->lock);
    return x;
}

static void on_end(void *context, struct MHD_Connection *connection, void **own, enum MHD_RequestTerminationCode code)
{
    at_server *server = context;
    exchange *x = *own;
    (void)connection;
    (void)code;
    if (!x)
        return;
    pthread_mutex_lock(&server->lock);
    server->open_requests--;
    if (x->on) {
        x->on->since = at_seconds();
        x->on->turn = AT_HEARING;
    }
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    at_exchange_free(x);
    *own = NULL;
}

bool at_http_begin_answer(exchange *x, int status)
{
    at_server *server = x->server;
    const double now = at_seconds();
    pthread_mutex_lock(&server->lock);
    x->on->since = now;
    x->on->turn = AT_ANSWERING;
    at_metrics_answer(&server->metrics, x->endpoint, status);
    if (x->phase == WAITING && x->job)
        at_metrics_time(&server->metrics, now - x->asked);
    const bool last = server->draining;
    pthread_mutex_unlock(&server->lock);
    return last;
}

static void wake(const at_server *server)
{
    const uint64_t one = 1;
    while (write(server->wakes, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

void at_http_suspend(void *context)
{
    exchange *x = context;
    x->phase = WAITING;
    x->on->turn = AT_WAITING;
    mhd->suspend_connection(x->connection);
}

/* Those that are done at about the same time wake the thread once. */
void at_http_resume(exchange *x)
{
    at_server *server = x->server;
    exchange *before = atomic_load(&server->done);
    do
        x->next = before;
    while (!atomic_compare_exchange_weak(&server->done, &before, x));
    if (!before)
        wake(server);
}

bool at_http_expects(const at_server *server, double now)
{
    for (const at_connection *c = server->connections; c; c = c->next)
        if (c->fresh && !c->cut && now - c->since < 1)
            return true;
    return false;
}

/* ---- Time limits ------------------------------------------------------------------------------------------------ */

static const double TICK = 0.2; /* seconds: limits are kept to so much */

/* For how long no byte came or went, as the kernel knows it. */
static double quiet_seconds(int socket)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        return INFINITY;
    return 1e-3 *
           (info.tcpi_last_data_recv < info.tcpi_last_data_sent ? info.tcpi_last_data_recv : info.tcpi_last_data_sent);
}

typedef enum fate { STAYS, ENDED, IDLE, LATE } fate;

/* A client is not late if this server is, as one may be that shares its processor with much other work: while bytes wait to
 * be read, and while all that was written has been received. What was read has been handled. */
static fate fate_of(const at_server *server, const at_connection *c, double now)
{
    const double idle = server->settings.idle_seconds, limit = server->settings.request_seconds, used = now - c->since;
    if (c->cut || c->turn == AT_WAITING || used < TICK)
        return STAYS;
    if (c->turn == AT_HEARING) {
        char byte;
        const ssize_t unread = recv(c->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (unread >= 0)
            return unread > 0 ? STAYS : ENDED;
    } else if (used > fmin(idle, limit)) {
        int unsent = 0;
        if (ioctl(c->socket, SIOCOUTQ, &unsent) == 0 && unsent == 0)
            return STAYS;
    }
    return used > limit ? LATE : used > idle && quiet_seconds(c->socket) > idle ? IDLE : STAYS;
}

static void close_late(at_server *server, double now)
{
    pthread_mutex_lock(&server->lock);
    for (at_connection *c = server->connections; c; c = c->next) {
        const fate what = fate_of(server, c, now);
        if (what == STAYS)
            continue;
        c->cut = true;
        server->metrics.cut += what == LATE;
        server->metrics.idle += what == IDLE;
        shutdown(c->socket, SHUT_RDWR); /* then libmicrohttpd closes it */
    }
    pthread_mutex_unlock(&server->lock);
}

/* ---- The thread ------------------------------------------------------------------------------------------------- */

/* Takes what other threads left; false: the thread ends. */
static bool look_around(at_server *server)
{
    uint64_t count;
    if (read(server->wakes, &count, sizeof count) < 0)
        return true;
    pthread_mutex_lock(&server->lock);
    const bool ending = server->ending, quiesces = server->draining && !server->quiesced;
    if (quiesces) {
        mhd->quiesce_daemon(server->daemon); /* then the socket is ours again */
        server->quiesced = true;
        pthread_cond_broadcast(&server->changed);
    }
    pthread_mutex_unlock(&server->lock);
    for (exchange *x = atomic_exchange(&server->done, NULL), *next; x; x = next) {
        next = x->next;
        mhd->resume_connection(x->connection);
    }
    return !ending;
}

static void *serve_always(void *context)
{
    const MHD_UNSIGNED_LONG_LONG most = (MHD_UNSIGNED_LONG_LONG)(1000 * TICK);
    at_server *server = context;
    struct MHD_Daemon *daemon = server->daemon;
    struct pollfd ready[2] = {
        {.fd = mhd->get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd, .events = POLLIN},
        {.fd = server->wakes, .events = POLLIN}};
    double checked = at_seconds();
    for (bool going = true; going;) {
        MHD_UNSIGNED_LONG_LONG left = most;
        if (mhd->get_timeout(daemon, &left) != MHD_YES || left > most)
            left = most;
        if (poll(ready, 2, (int)left) > 0 && ready[1].revents)
            going = look_around(server);
        mhd->run(daemon);
        const double now = at_seconds();
        if (now - checked < TICK)
            continue;
        checked = now;
        at_queue_watch(&server->queue, now);
        at_questions_watch(&server->looks, now);
        close_late(server, now);
    }
    MHD_UNSIGNED_LONG_LONG left = 0; /* the last answers are written */
    for (int i = 0; i < 100 && mhd->get_timeout(daemon, &left) == MHD_YES && left == 0; i++)
        mhd->run(daemon);
    return NULL;
}

/* ---- Start and end ---------------------------------------------------------------------------------------------- */

bool at_http_load(at_error *error)
{
    return at_mhd_load(error);
}

static bool start_daemon(at_server *server, at_error *error)
{
    enum { HEADERS = 16 << 10 }; /* bytes of a request before its body; libmicrohttpd clears so many for each request */
    const at_server_settings *s = &server->settings;
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
    struct MHD_OptionItem options[] = {
        {MHD_OPTION_LISTEN_SOCKET, server->socket, NULL},
        {MHD_OPTION_CONNECTION_LIMIT, s->max_connections, NULL},
        {MHD_OPTION_PER_IP_CONNECTION_LIMIT, s->max_per_address, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, HEADERS, NULL},
        {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, server},
        {MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)on_begin, server},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)on_end, server},
        {server->cert ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0, server->cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, server->key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
        {MHD_OPTION_END, 0, NULL},
    };
    if (server->cert && mhd->is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
        return at_fail(error, AT_UNSUPPORTED, "this libmicrohttpd was built without TLS");
    flags |= server->cert ? MHD_USE_TLS : 0;
    server->daemon =
        mhd->start_daemon(flags, 0, NULL, NULL, at_http_handle, server, MHD_OPTION_ARRAY, options, MHD_OPTION_END);
    if (server->daemon)
        return true;
    return server->cert ? at_fail(error, AT_FORMAT,
                                  "HTTPS cannot be started: '%s' and '%s' are not a certificate and its private key in "
                                  "PEM form",
                                  s->cert, s->key)
                        : at_fail(error, AT_FAILED, "libmicrohttpd cannot start");
}

/* A client that keeps its connections for less time than the server never uses one that is just being closed. */
static void announce(at_server *server)
{
    enum { MARGIN = 2 }; /* seconds, for the way to the client and back */
    const double seconds = floor(server->settings.idle_seconds) - MARGIN;
    if (seconds >= 1 && seconds < 1e9)
        snprintf(server->keep_alive, sizeof server->keep_alive, "timeout=%.0f", seconds);
}

bool at_http_start(at_server *server, at_error *error)
{
    announce(server);
    server->wakes = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->wakes < 0)
        return at_fail(error, AT_FAILED, "cannot start a server: %s", strerror(errno));
    if (!start_daemon(server, error))
        return false;
    const int reason = pthread_create(&server->thread, NULL, serve_always, server);
    server->started = reason == 0;
    return server->started || at_fail(error, AT_FAILED, "cannot start a thread: %s", strerror(reason));
}

/* The server drains. */
void at_http_quiesce(at_server *server)
{
    if (!server->started)
        return;
    wake(server);
    pthread_mutex_lock(&server->lock);
    while (!server->quiesced)
        pthread_cond_wait(&server->changed, &server->lock);
    pthread_mutex_unlock(&server->lock);
    close(server->socket);
    server->socket = -1;
}

/* All that was suspended is done, and answered before the thread ends. */
void at_http_end(at_server *server)
{
    if (server->started) {
        pthread_mutex_lock(&server->lock);
        server->ending = true;
        pthread_mutex_unlock(&server->lock);
        wake(server);
        pthread_join(server->thread, NULL);
    }
    if (server->daemon) {
        mhd->stop_daemon(server->daemon); /* closes its socket */
        server->socket = -1;
    }
    if (server->wakes >= 0)
        close(server->wakes);
}

#else

bool at_http_load(at_error *error)
{
    return at_fail(
        error, AT_UNSUPPORTED,
        "this attend was built without libmicrohttpd, which a server needs (Debian package libmicrohttpd-dev)");
}

bool at_http_start(at_server *server, at_error *error)
{
    (void)server;
    return at_http_load(error);
}

void at_http_quiesce(at_server *server)
{
    (void)server;
}

void at_http_end(at_server *server)
{
    (void)server;
}

bool at_http_expects(const at_server *server, double now)
{
    (void)server;
    (void)now;
    return false;
}
#endif
