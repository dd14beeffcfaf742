#include "progress.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *grouped(int64_t number, char text[32])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)number), used = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            text[used++] = ',';
        text[used++] = digits[i];
    }
    text[used] = 0;
    return text;
}

/* ---- The bar -------------------------------------------------------------------------------------------------- */

void progress_clear(cli_progress *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = false;
}

/* " : 02:03 left", or with hours " : 1:02:03 left"; nothing if the time is not known. */
static void time_left(double seconds, char *text, size_t size)
{
    const long long left = isnan(seconds) ? 0 : (long long)fmin(seconds, 1e9);
    if (isnan(seconds))
        text[0] = 0;
    else if (left < 3600)
        snprintf(text, size, " : %02lld:%02lld left", left / 60, left % 60);
    else
        snprintf(text, size, " : %lld:%02lld:%02lld left", left / 3600, left / 60 % 60, left % 60);
}

/* What fits into `room` columns: the speed is left out first, then the time left, then the cost. The bar takes the rest. */
static void print_bar(const at_train_news *news, int room)
{
    enum { LEAST = 6, MOST = 24, FRAME = 3 };
    char part[4][60], text[sizeof part] = "", bar[MOST + 1] = "";
    snprintf(part[0], sizeof *part, "Ep. %lld : Up. %lld", (long long)news->epoch, (long long)news->update);
    snprintf(part[1], sizeof *part, " : Cost %.4f", news->cost);
    snprintf(part[2], sizeof *part, " : %.0f words/s", news->words_per_second);
    time_left(news->left, part[3], sizeof *part);
    static const int left_out[] = {2, 3, 1};
    for (int out = 0; out <= 3; out++) {
        if (out > 0)
            part[left_out[out - 1]][0] = 0;
        snprintf(text, sizeof text, "%s%s%s%s", part[0], part[1], part[2], part[3]);
        if ((int)strlen(text) <= room)
            break;
    }
    const int rest = room - (int)strlen(text) - FRAME, width = rest < MOST ? rest : MOST;
    const int full = isnan(news->done) ? 0 : (int)(news->done * width);
    for (int i = 0; i < width; i++)
        bar[i] = i < full ? '#' : '.';
    if (width >= LEAST)
        fprintf(stderr, "\r\033[K[%s] %s", bar, text);
    else
        fprintf(stderr, "\r\033[K%.*s", room, text);
}

static void draw_bar(cli_progress *p, const at_train_news *news)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    const double now = (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
    if (now - p->last < 0.1)
        return;
    p->last = now;
    print_bar(news, terminal_width_of(STDERR_FILENO) - 1); /* a full line would move the cursor to the next */
    p->drawn = true;
}

/* ---- The news ------------------------------------------------------------------------------------------------- */

/* [2026-11-15 19:00:00] */
static const char *stamp(char text[40])
{
    time_t now = time(NULL);
    struct tm parts;
    strftime(text, 40, "[%Y-%m-%d %H:%M:%S]", localtime_r(&now, &parts));
    return text;
}

/* As other trainers write it, for those who read logs by program: one line, however wide the terminal is. */
static void print_report(const char *when, const at_train_news *news)
{
    char sentences[32];
    fprintf(stderr,
            "%s Ep. %lld : Up. %lld : Sen. %s : Cost %.4f : Time %.2fs : %.2f words/s : gNorm %.4f : L.r. %.4e\n", when,
            (long long)news->epoch, (long long)news->update, grouped(news->sentences, sentences), news->cost,
            news->seconds, news->words_per_second, news->norm, news->rate);
}

static void print_validation(const char *when, const at_train_news *news)
{
    char best[60] = "new best";
    if (!news->better)
        snprintf(best, sizeof best, "the best is %.6g", news->best);
    tell_line("%s [valid] Ep. %lld : Up. %lld : %s : %.6g : %s", when, (long long)news->epoch, (long long)news->update,
              news->metric, news->score, best);
}

void progress_listen(void *context, const at_train_news *news)
{
    cli_progress *p = context;
    char when[40], text[500];
    if (p->quiet || news->what == AT_NEWS_SAVED)
        return;
    if (news->what == AT_NEWS_TICK) {
        if (p->bar)
            draw_bar(p, news);
        return;
    }
    progress_clear(p);
    stamp(when);
    dash_settings(news->text ? news->text : "", text, sizeof text);
    if (news->what == AT_NEWS_UPDATE)
        print_report(when, news);
    else if (news->what == AT_NEWS_VALID)
        print_validation(when, news);
    else if (news->what == AT_NEWS_SKIPPED)
        tell_line("%s Ep. %lld : after Up. %lld : %s", when, (long long)news->epoch, (long long)news->update, text);
    else
        tell_line("%s %s", when, text);
}
