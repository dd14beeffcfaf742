/* The connections of a server, by real sockets: which are closed for being idle or late, and which are not, although the
 * thread that reads them could not run for longer than any limit. */
#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "serve/serve_internal.h"

static const char ask[] = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";

/* Without a model, on any free port; NULL if this attend has no server. */
static at_server *server_of(double idle_seconds, double request_seconds)
{
    at_error error = {0};
    const at_server_settings settings = {.port = -1, .idle_seconds = idle_seconds, .request_seconds = request_seconds};
    at_server *server = at_server_new(&settings, &error);
    if (!server && error.code == AT_UNSUPPORTED)
        print_message("SKIPPED: %s\n", error.text);
    else if (!server)
        fail_msg("%s", error.text);
    return server;
}

static int connect_to(const at_server *server)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)at_server_port(server)),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int file = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(file >= 0);
    assert_int_equal(connect(file, (const struct sockaddr *)&address, sizeof address), 0);
    return file;
}

static void say(int file, const char *text)
{
    assert_int_equal(send(file, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* What comes next within the time; "" if the connection is closed, "nothing" if nothing comes. */
static const char *hear(int file, int milliseconds)
{
    static char text[4096];
    struct pollfd ready = {.fd = file, .events = POLLIN};
    if (poll(&ready, 1, milliseconds) < 1)
        return "nothing";
    const ssize_t size = recv(file, text, sizeof text - 1, 0);
    text[size > 0 ? size : 0] = 0;
    return text;
}

static void expect_health(int file)
{
    const char *answer = hear(file, 20000);
    if (strncmp(answer, "HTTP/1.1 200 ", 13) != 0)
        fail_msg("the answer is '%s'", answer);
    if (!strstr(answer, "{\"status\":\"ok\"}"))
        assert_string_equal(hear(file, 20000), "{\"status\":\"ok\"}");
}

static int64_t counted(at_server *server, const int64_t *count)
{
    pthread_mutex_lock(&server->lock);
    const int64_t value = *count;
    pthread_mutex_unlock(&server->lock);
    return value;
}

/* The thread of the connections is held up while it begins a request, and others come meanwhile. They waited for longer than
 * an idle connection may, and than a request may take to be sent, but it was not their clients that were slow. */
static void held_up(double idle_seconds, double request_seconds)
{
    enum { CLIENTS = 7, FIRST = 3 };
    int file[CLIENTS];
    at_server *server = server_of(idle_seconds, request_seconds);
    if (!server)
        return;
    for (int i = 0; i < CLIENTS; i++) {
        file[i] = connect_to(server);
        say(file[i], ask);
        expect_health(file[i]);
    }
    pthread_mutex_lock(&server->lock);
    say(file[FIRST], ask);
    usleep(100000); /* it has been read */
    for (int i = 0; i < CLIENTS; i++)
        if (i != FIRST)
            say(file[i], ask);
    usleep(1500000);
    pthread_mutex_unlock(&server->lock);
    for (int i = 0; i < CLIENTS; i++)
        expect_health(file[i]);
    for (int i = 0; i < CLIENTS; i++)
        close(file[i]);
    assert_int_equal(counted(server, &server->metrics.cut), 0);
    at_server_free(server);
}

static void a_busy_server_closes_no_connection_that_asks(void **state)
{
    (void)state;
    held_up(1, 30);
    held_up(30, 1);
}

static void idle_connections_are_closed(void **state)
{
    at_server *server = server_of(1, 30);
    (void)state;
    if (!server)
        return;
    const int silent = connect_to(server), used = connect_to(server), half = connect_to(server),
              slow = connect_to(server);
    say(used, ask);
    expect_health(used);
    say(half, "POST /translate HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nq=");
    for (int i = 0; i < 4; i++) { /* bytes come, and nothing is closed but what is silent */
        say(slow, (const char[]){ask[i], 0});
        usleep(500000);
    }
    assert_string_equal(hear(silent, 5000), "");
    assert_string_equal(hear(used, 5000), "");
    assert_string_equal(hear(half, 5000), "");
    say(slow, ask + 4);
    expect_health(slow);
    assert_int_equal(counted(server, &server->metrics.idle), 3);
    assert_int_equal(counted(server, &server->metrics.cut), 0);
    for (int i = 0; i < 4; i++)
        close((const int[]){silent, used, half, slow}[i]);
    at_server_free(server);
}

/* Half a request and no more to come: there is nothing to wait for. */
static void ended_connections_are_closed(void **state)
{
    at_server *server = server_of(30, 30);
    (void)state;
    if (!server)
        return;
    const int file = connect_to(server), whole = connect_to(server);
    say(file, "POST /translate HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nq=");
    shutdown(file, SHUT_WR);
    say(whole, ask);
    shutdown(whole, SHUT_WR);
    expect_health(whole);
    assert_string_equal(hear(file, 5000), "");
    close(file);
    close(whole);
    at_server_free(server);
}

/* It sends bytes of a request again and again, and never the whole. */
static void late_requests_are_cut(void **state)
{
    at_server *server = server_of(30, 1);
    (void)state;
    if (!server)
        return;
    const int file = connect_to(server);
    const char *said = "nothing";
    say(file, ask);
    expect_health(file);
    say(file, "GET /health HTTP/1.1\r\nA: ");
    for (int i = 0; i < 40 && *said; i++) {
        send(file, "a", 1, MSG_NOSIGNAL);
        said = hear(file, 100);
    }
    assert_string_equal(said, "");
    assert_int_equal(counted(server, &server->metrics.cut), 1);
    close(file);
    at_server_free(server);
}

/* How long a client may keep a connection is less than the server does. */
static void the_time_to_keep_a_connection_is_told(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        at_server *server = server_of(i ? 2.5 : 0, 0);
        if (!server)
            return;
        const int file = connect_to(server);
        say(file, ask);
        const char *answer = hear(file, 20000), *told = strstr(answer, "\r\nKeep-Alive: timeout=8\r\n");
        assert_true(i ? !strstr(answer, "Keep-Alive: timeout") : told != NULL);
        close(file);
        at_server_free(server);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_busy_server_closes_no_connection_that_asks),
        cmocka_unit_test(idle_connections_are_closed),
        cmocka_unit_test(ended_connections_are_closed),
        cmocka_unit_test(late_requests_are_cut),
        cmocka_unit_test(the_time_to_keep_a_connection_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
