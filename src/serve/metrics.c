/* What the server has done, for Prometheus. No label has an address, a key or a text. */
#include <stdlib.h>

#include "serve/serve_internal.h"

const char *const at_endpoint_path[AT_ENDPOINTS] = {[AT_AT_TRANSLATE] = "/translate",
                                                    [AT_AT_DETECT] = "/detect",
                                                    [AT_AT_LANGUAGES] = "/languages",
                                                    [AT_AT_SETTINGS] = "/frontend/settings",
                                                    [AT_AT_HEALTH] = "/health",
                                                    [AT_AT_METRICS] = "/metrics",
                                                    [AT_AT_SPEC] = "/spec",
                                                    [AT_AT_SUGGEST] = "/suggest",
                                                    [AT_AT_FILE] = "/translate_file",
                                                    [AT_AT_LESSON] = "/lesson",
                                                    [AT_AT_QUESTION] = "/lesson/answer",
                                                    [AT_AT_PAGE] = "/translator",
                                                    [AT_AT_ATTENTION] = "/attention",
                                                    [AT_AT_ALTERNATIVES] = "/alternatives",
                                                    [AT_AT_EXPLORER] = "/explorer",
                                                    [AT_AT_WATCH] = "/watch",
                                                    [AT_AT_ELSEWHERE] = "other"};

static const int statuses[AT_STATUSES] = {200, 204, 400, 403, 404, 405, 413, 429, 500, 503, 0};
static const double times[AT_TIMES] = {0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 0};

void at_metrics_answer(at_metrics *metrics, at_endpoint endpoint, int status)
{
    int i = 0;
    while (statuses[i] && statuses[i] != status)
        i++;
    metrics->answers[endpoint][i]++;
}

void at_metrics_time(at_metrics *metrics, double seconds)
{
    int i = 0;
    while (times[i] > 0 && seconds > times[i])
        i++;
    metrics->slow[i]++;
    metrics->seconds += seconds;
}

static void one(at_buffer *out, const char *name, const char *type, const char *help, int64_t value)
{
    at_buffer_print(out, "# HELP attend_%s %s\n# TYPE attend_%s %s\nattend_%s %lld\n", name, help, name, type, name,
                    (long long)value);
}

char *at_metrics_text(const at_metrics *metrics, int64_t waiting, int64_t searches, int64_t searched)
{
    at_buffer out = {0};
    int64_t count = 0;
    at_buffer_print(&out, "# HELP attend_requests_total Requests answered, by path and status.\n"
                          "# TYPE attend_requests_total counter\n");
    for (int e = 0; e < AT_ENDPOINTS; e++)
        for (int s = 0; s < AT_STATUSES; s++)
            if (metrics->answers[e][s])
                at_buffer_print(&out, "attend_requests_total{path=\"%s\",status=\"%d\"} %lld\n", at_endpoint_path[e],
                                statuses[s], (long long)metrics->answers[e][s]);
    at_buffer_print(&out, "# HELP attend_translation_seconds From the end of a request to its translation.\n"
                          "# TYPE attend_translation_seconds histogram\n");
    for (int i = 0; i < AT_TIMES; i++) {
        count += metrics->slow[i];
        if (times[i] > 0)
            at_buffer_print(&out, "attend_translation_seconds_bucket{le=\"%g\"} %lld\n", times[i], (long long)count);
    }
    at_buffer_print(&out,
                    "attend_translation_seconds_bucket{le=\"+Inf\"} %lld\nattend_translation_seconds_sum %.6f\n"
                    "attend_translation_seconds_count %lld\n",
                    (long long)count, metrics->seconds, (long long)count);
    one(&out, "characters_total", "counter", "Characters of the texts that were translated.", metrics->characters);
    one(&out, "searches_total", "counter", "Searches, each of lines of all requests that waited.", searches);
    one(&out, "lines_total", "counter", "Lines of these searches.", searched);
    one(&out, "waiting_lines", "gauge", "Lines that wait or are being translated.", waiting);
    one(&out, "connections", "gauge", "Connections that are open.", metrics->connections);
    one(&out, "cut_connections_total", "counter", "Connections closed because they took too long.", metrics->cut);
    one(&out, "idle_connections_total", "counter", "Connections closed because no byte came or went.", metrics->idle);
    one(&out, "reloads_total", "counter", "Times the models were read again.", metrics->reloads);
    if (!out.failed)
        return out.bytes;
    at_buffer_free(&out);
    return NULL;
}
