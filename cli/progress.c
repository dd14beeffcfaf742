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

/* "perplexity 12.3", or "token accuracy 45.6" */
static void add_score(const at_train_score *score, char *text, size_t size)
{
    const size_t used = strlen(text);
    snprintf(text + used, size - used, " : %s %.4g", score->metric, score->score);
    for (char *dash = text + used; (dash = strchr(dash, '-')) && dash[1] > '9';)
        *dash = ' ';
}

/* A line of a sample, cut at the width of a terminal. */
static void print_sample(const char *name, at_line line)
{
    const bool is_terminal = isatty(STDERR_FILENO);
    const int width = is_terminal ? terminal_width_of(STDERR_FILENO) : 0;
    const int room = width > 30 ? width - 12 : 20; /* after the name, with an ellipsis */
    size_t shown = line.size;
    if (is_terminal && text_part_width(line.text, line.size) >= room) {
        while (shown > 0 && ((line.text[shown] & 0xC0) == 0x80 || text_part_width(line.text, shown) >= room - 1))
            shown--;
    }
    fprintf(stderr, "  %-9s ", name);
    print_plain(stderr, line.text, shown);
    fprintf(stderr, "%s\n", shown < line.size ? "…" : "");
}

static void print_validation(const char *when, const at_train_news *news)
{
    char best[100] = "new best", others[300] = "";
    if (!news->better)
        snprintf(best, sizeof best, "the best is %.6g", news->best);
    const size_t used = strlen(best);
    if (!news->better && news->patience > 0)
        snprintf(best + used, sizeof best - used, ", no better for %lld of %lld", (long long)news->failures,
                 (long long)news->patience);
    for (int i = 1; i < news->score_count; i++)
        add_score(&news->scores[i], others, sizeof others);
    tell_line("%s [valid] Ep. %lld : Up. %lld : %s : %.6g%s : %s", when, (long long)news->epoch,
              (long long)news->update, news->metric, news->score, others, best);
    for (int i = 0; i < news->sample_count; i++) {
        print_sample("source", news->samples[i].source);
        print_sample("reference", news->samples[i].reference);
        print_sample("output", news->samples[i].output);
    }
}

/* ---- The start ------------------------------------------------------------------------------------------------ */

static void add_count(int64_t count, const char *what, char *text, size_t size)
{
    char number[32];
    const size_t used = strlen(text);
    if (count > 0)
        snprintf(text + used, size - used, "%s%s %s", used ? ", " : "", grouped(count, number), what);
}

/* "6,000 pairs, 12 of them skipped (8 empty, 4 too long)" */
static void describe_part(const at_train_part *part, const char *pairs, char *text, size_t size)
{
    char all[32], skipped[32], why[200] = "";
    add_count(part->empty, "empty", why, sizeof why);
    add_count(part->too_long, "too long", why, sizeof why);
    add_count(part->over_ratio, "too unequal", why, sizeof why);
    snprintf(text, size, "%s %s", grouped(part->pairs, all), pairs);
    const size_t used = strlen(text);
    if (part->used < part->pairs)
        snprintf(text + used, size - used, ", %s of them skipped (%s)", grouped(part->pairs - part->used, skipped),
                 why);
    else if (part->too_long > 0)
        snprintf(text + used, size - used, " (%s)", why);
}

/* "source 0.02% (validation 3.1%)" */
static void describe_unknown(const at_train_start *start, int side, char *text, size_t size)
{
    double share[2] = {0};
    for (int p = 0; p < 2; p++)
        if (start->part[p].units[side] > 0)
            share[p] = 100 * (double)start->part[p].unknown[side] / (double)start->part[p].units[side];
    const char *name = start->vocabulary[0] == 0 ? "" : side == 0 ? "source " : ", target ";
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%.3g%%", name, share[AT_TRAIN]);
    if (start->part[AT_VALID].pairs > 0)
        snprintf(text + used, size - used, "%s%.3g%% (validation %.3g%%)", name, share[AT_TRAIN], share[AT_VALID]);
}

static void print_start(const at_train_start *start)
{
    const bool one_side = start->vocabulary[0] == 0;
    char text[300], number[2][32];
    for (int p = 0; p < 2; p++) {
        describe_part(&start->part[p], one_side ? "lines" : "pairs", text, sizeof text);
        if (start->part[p].pairs > 0)
            tell_line("%-11s %s", p == AT_TRAIN ? "training" : "validation", text);
    }
    if (one_side)
        tell_line("%-11s %s units", "vocabulary", grouped(start->vocabulary[1], number[1]));
    else
        tell_line("%-11s source %s units, target %s", "vocabulary", grouped(start->vocabulary[0], number[0]),
                  grouped(start->vocabulary[1], number[1]));
    text[0] = 0;
    for (int side = one_side; side < 2; side++)
        describe_unknown(start, side, text, sizeof text);
    tell_line("%-11s %s", "unknown", text);
    tell_line("%-11s %s, %s parameters", "model", start->model, grouped(start->parameters, number[0]));
    text[0] = 0;
    if (start->update > 0)
        snprintf(text, sizeof text, "; resumed after update %s", grouped(start->update, number[1]));
    tell_line("%-11s %s batches, %d thread%s%s", "an epoch", grouped(start->batches, number[0]), start->threads,
              start->threads == 1 ? "" : "s", text);
    tell_line("%-11s %s, and beside it %s.state, .log.jsonl", "files", start->file[0], start->file[1] ? ".last, " : "");
}

/* ---- All of it ------------------------------------------------------------------------------------------------ */

void progress_listen(void *context, const at_train_news *news)
{
    cli_progress *p = context;
    char when[40], text[500];
    if (p->quiet || news->what == AT_NEWS_SAVED)
        return;
    if (news->what == AT_NEWS_START) {
        print_start(news->start);
        return;
    }
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
