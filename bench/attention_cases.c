/* Attention as translation and language models use it: eight heads, long sequences, sentences, one step of decoding. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cases.h"
#include "memory.h"
#include "ours.h"

static const char BENCH[] = "attention";
enum { NAME_SIZE = 64, HEADS = 8 };

/* The flops that the result needs, whatever the algorithm: 4 D for a pair of query and key, 12 D with gradients. */
static double useful_flops(const attention_case *c)
{
    double pairs = c->causal ? 0.5 * (double)c->Q * (double)(c->Q + 1) : (double)c->Q * (double)c->K;
    return (c->backward ? 12.0 : 4.0) * (double)(c->B * c->H * c->D) * pairs;
}

static bool wanted(const char *name, const attention_case *c)
{
    return bench_wants(name) && !(bench_options.quick && useful_flops(c) > 2e9);
}

static void name_case(char name[NAME_SIZE], const char *prefix, const attention_case *c)
{
    const char *pass = c->backward ? "forward+backward" : "forward", *window = c->causal ? "causal" : "full";
    if (c->B == 1)
        snprintf(name, NAME_SIZE, "%s%s %s n=%lld", prefix, pass, window, (long long)c->Q);
    else
        snprintf(name, NAME_SIZE, "%s%s %s B=%lld n=%lld D=%lld", prefix, pass, window, (long long)c->B,
                 (long long)c->Q, (long long)c->D);
}

/* Adds the rivals if they are wanted and there is a result of ours to compare theirs with. */
static void add_rivals(race *r, const char *who, const attention_case *c, const ours *made)
{
    double checksum, size;
    if (!bench_options.rivals)
        return;
    ours_checksum(made, &checksum, &size);
    workers_add(r, who, c, checksum, size);
}

static void report_rivals(const race *r, int first, int end, const char *name, double flops)
{
    for (int i = first; i < end; i++) {
        if (r->entry[i].failed)
            continue;
        row line = row_of(r, i, BENCH, name, flops);
        report_row(&line);
    }
}

/* ---- Plain cases ---- */

static void run_plain(const attention_case *c)
{
    char name[NAME_SIZE];
    name_case(name, "", c);
    ours made;
    if (!wanted(name, c) || !ours_make(&made, c, NOTHING, true))
        return;
    race r = {0};
    race_add(&r, "attend", NULL, ours_turn, &made);
    ours alone = made;
    alone.threads = 1;
    if (bench_options.threads > 1)
        race_add(&r, "attend", NULL, ours_turn, &alone);
    int first = r.count;
    add_rivals(&r, NULL, c, &made);
    race_run(&r);
    double flops = useful_flops(c);
    if (!r.entry[0].failed) {
        row line = row_of(&r, 0, BENCH, name, flops);
        line.ratio_to_best_rival = race_over_best(&r, 0, first, r.count);
        line.extra_mb = (double)made.call.memory_used / (1 << 20);
        if (bench_options.threads > 1)
            line.speedup_over_one_thread = race_plain_ratio(&r, 1, 0);
        report_row(&line);
    }
    report_rivals(&r, first, r.count, name, flops);
    workers_free();
    ours_free(&made);
}

static void run_all_plain(bool backward)
{
    const int64_t lengths[] = {512, 1024, 2048, 4096};
    for (int causal = 0; causal < 2; causal++) {
        for (int i = 0; i < (backward ? 3 : 4); i++) {
            int64_t n = lengths[i];
            run_plain(
                &(attention_case){.B = 1, .H = HEADS, .Q = n, .K = n, .D = 64, .causal = causal, .backward = backward});
        }
    }
    for (int causal = 0; causal < 2; causal++) {
        run_plain(
            &(attention_case){.B = 32, .H = HEADS, .Q = 32, .K = 32, .D = 64, .causal = causal, .backward = backward});
        run_plain(
            &(attention_case){.B = 64, .H = HEADS, .Q = 64, .K = 64, .D = 32, .causal = causal, .backward = backward});
    }
}

/* ---- Decoding: one query reads all keys and values once, so memory bandwidth is the limit ---- */

static void run_decode(int64_t batch)
{
    attention_case c = {.B = batch, .H = HEADS, .Q = 1, .K = 1024, .D = 64};
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "decode keys=1024 B=%lld", (long long)batch);
    ours made;
    if (!wanted(name, &c) || !ours_make(&made, &c, NOTHING, true))
        return;
    numbers both = numbers_new(2 * c.B * c.K * c.H * c.D);
    double bytes = (double)both.count * sizeof(float);
    race r = {0};
    race_add(&r, "attend", NULL, ours_turn, &made);
    int first = r.count;
    add_rivals(&r, NULL, &c, &made);
    int rivals_end = r.count;
    int limit = race_add(&r, "machine", "read", machine_read_turn, &both);
    race_run(&r);
    for (int i = 0; i < r.count; i++) {
        if (r.entry[i].failed)
            continue;
        row line = row_of(&r, i, BENCH, name, 0);
        line.gb_per_second = 1e-9 * bytes / race_seconds(&r, i);
        line.percent_of_bandwidth = 100 * race_plain_ratio(&r, limit, i);
        if (i < first)
            line.ratio_to_best_rival = race_over_best(&r, i, first, rivals_end);
        report_row(&line);
    }
    numbers_free(&both);
    workers_free();
    ours_free(&made);
}

/* ---- Shaw's relative positions over plain attention ---- */

static void run_shaw(const attention_case *plain)
{
    attention_case shaw = *plain;
    shaw.shaw = 16;
    char name[NAME_SIZE];
    name_case(name, "shaw ", plain);
    ours with, without;
    if (!wanted(name, plain) || !ours_make(&with, &shaw, NOTHING, true))
        return;
    if (!ours_make(&without, plain, NOTHING, true)) {
        ours_free(&with);
        return;
    }
    race r = {0};
    race_add(&r, "attend", NULL, ours_turn, &with);
    race_add(&r, "attend", NULL, ours_turn, &without);
    add_rivals(&r, "torch", &shaw, &with);
    int middle = r.count;
    if (middle > 2)
        add_rivals(&r, "torch", plain, &without);
    race_run(&r);
    double flops = useful_flops(plain);
    for (int i = 0; i < middle; i++) {
        if (i == 1 || r.entry[i].failed)
            continue;
        row line = row_of(&r, i, BENCH, name, flops);
        int base = i == 0 ? 1 : middle; /* the same contestant's plain attention */
        if (base < r.count && !r.entry[base].failed)
            line.ratio_to_plain = race_ratio(&r, i, base);
        if (i == 0)
            line.ratio_to_best_rival = race_over_best(&r, 0, 2, middle);
        report_row(&line);
    }
    workers_free();
    ours_free(&with);
    ours_free(&without);
}

/* ---- The additive score: one tanh for every query, key and hidden unit ---- */

static void run_additive(const attention_case *c)
{
    char name[NAME_SIZE];
    name_case(name, "additive ", c);
    ours made;
    if (!wanted(name, c) || !ours_make(&made, c, NOTHING, true))
        return;
    numbers buffer = numbers_new(INNERMOST);
    race r = {0};
    race_add(&r, "attend", NULL, ours_turn, &made);
    int limit = race_add(&r, "machine", "tanh", machine_tanh_turn, &buffer);
    int first = r.count;
    add_rivals(&r, NULL, c, &made);
    race_run(&r);
    double pairs = c->causal ? 0.5 * (double)c->Q * (double)(c->Q + 1) : (double)c->Q * (double)c->K;
    double tanhs = (double)(c->B * c->H * c->additive) * pairs;
    for (int i = 0; i < r.count; i++) {
        if (i == limit || r.entry[i].failed)
            continue;
        row line = row_of(&r, i, BENCH, name, 0);
        line.billion_per_second = 1e-9 * tanhs / race_seconds(&r, i);
        line.percent_of_tanh_bound = 100 * race_ratio(&r, limit, i) * tanhs / INNERMOST / bench_options.threads;
        if (i == 0) {
            line.ratio_to_best_rival = race_over_best(&r, 0, first, r.count);
            line.extra_mb = (double)made.call.memory_used / (1 << 20);
        }
        report_row(&line);
    }
    numbers_free(&buffer);
    workers_free();
    ours_free(&made);
}

/* ---- The cost of returning weights and summaries ---- */

static void run_visible(const attention_case *c)
{
    static const char *const PREFIX[] = {"", "summaries ", "weights of 1% of rows "};
    char name[3][NAME_SIZE];
    ours made[3];
    race r = {0};
    for (int i = 0; i < 3; i++)
        name_case(name[i], PREFIX[i], c);
    if (!wanted(name[SUMMARIES], c) && !wanted(name[SOME_WEIGHTS], c))
        return;
    for (int i = 0; i < 3; i++) {
        if (!ours_make(&made[i], c, (visible)i, true)) {
            while (i-- > 0)
                ours_free(&made[i]);
            return;
        }
        race_add(&r, "attend", NULL, ours_turn, &made[i]);
    }
    race_run(&r);
    for (int i = 0; i < 3; i++) {
        if (i != NOTHING && !r.entry[i].failed) {
            row line = row_of(&r, i, BENCH, name[i], useful_flops(c));
            line.ratio_to_plain = race_ratio(&r, i, NOTHING);
            report_row(&line);
        }
        ours_free(&made[i]);
    }
}

/* ---- Memory ---- */

static void run_memory(const attention_case *c)
{
    char name[NAME_SIZE];
    name_case(name, "memory ", c);
    ours made;
    if (!wanted(name, c))
        return;
    double before = memory_begin();
    if (!ours_make(&made, c, NOTHING, false))
        return;
    /* The arrays of the caller do not count as memory of the operator. */
    double arrays = 0;
    for (int i = 0; i < made.owned_count; i++)
        arrays += (double)made.owned[i].count * sizeof(float) / (1 << 20);
    row line = row_new(BENCH, name, "attend", NULL);
    line.extra_mb = (double)made.call.memory_used / (1 << 20);
    line.extra_rss_mb = memory_peak() - before - arrays;
    report_row(&line);
    ours_free(&made);
}

void bench_attention(void)
{
    run_all_plain(false);
    run_all_plain(true);
    run_decode(1);
    run_decode(64);
    const int64_t lengths[] = {512, 1024, 2048};
    for (int which = 0; which < 4; which++) {
        bool causal = which % 2 == 1, backward = which >= 2;
        for (int i = 0; i < 3; i++) {
            int64_t n = lengths[i];
            run_shaw(
                &(attention_case){.B = 1, .H = HEADS, .Q = n, .K = n, .D = 64, .causal = causal, .backward = backward});
        }
        run_shaw(
            &(attention_case){.B = 32, .H = HEADS, .Q = 32, .K = 32, .D = 64, .causal = causal, .backward = backward});
    }
    run_additive(&(attention_case){.B = 1, .H = HEADS, .Q = 256, .K = 256, .D = 64, .additive = 64});
    run_additive(&(attention_case){.B = 1, .H = HEADS, .Q = 256, .K = 256, .D = 64, .additive = 64, .causal = true});
    run_additive(&(attention_case){.B = 32, .H = HEADS, .Q = 32, .K = 32, .D = 64, .additive = 64});
    for (int causal = 0; causal < 2; causal++)
        run_visible(&(attention_case){.B = 1, .H = HEADS, .Q = 1024, .K = 1024, .D = 64, .causal = causal});
    for (int backward = 0; backward < 2; backward++)
        run_memory(&(attention_case){.B = 1, .H = HEADS, .Q = 8192, .K = 8192, .D = 64, .backward = backward});
}
