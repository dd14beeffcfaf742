/* attend demo rnn-vs-attention: one recurrent layer beside one self-attention layer of the same width: work, paths,
 * steps, and the time they take here. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "demo/demo.h"

enum { LENGTHS = 4, LONGEST = 1024, PATH = 64, CELLS = 3, HEADS = 4 };

static const int64_t lengths[LENGTHS] = {16, 64, 256, LONGEST};
static const char *const length_names[LENGTHS] = {"n = 16", "n = 64", "n = 256", "n = 1024"};
static const char *const cells[CELLS] = {"rnn", "gru", "lstm"};

typedef struct state {
    int64_t d;
    float *x, *out;      /* [LONGEST, d] */
    float *projection;   /* WQ, WK, WV, WO, [4, d, d] */
    at_recurrent *layer; /* an rnn */
    uint64_t seed;
} state;

/* A uniform number of -1 to 1. */
static float draw(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(*random >> 11) / (double)(1ull << 52) - 1);
}

static bool begin(void *context, const demo_options *options, at_error *error)
{
    state *s = context;
    demo_matrix row;
    const demo_limits limits = {1, 1, 1, 1, 512};
    if (!input_matrix(options->input ? options->input : "128", limits, &row, error))
        return false;
    s->d = (int64_t)row.value[0];
    if ((double)s->d != row.value[0] || s->d < 16 || s->d % HEADS)
        return fail(error, AT_USAGE, "the width is %.4g and must be a multiple of %d from 16 to 512", row.value[0],
                    HEADS);
    s->seed = options->common.seed;
    s->x = malloc((size_t)(LONGEST * s->d) * sizeof *s->x);
    s->out = malloc((size_t)(LONGEST * s->d) * sizeof *s->out);
    s->projection = malloc((size_t)(4 * s->d * s->d) * sizeof *s->projection);
    if (!s->x || !s->out || !s->projection)
        return fail(error, AT_MEMORY, "out of memory for the demo");
    uint64_t random = s->seed;
    for (int64_t i = 0; i < LONGEST * s->d; i++)
        s->x[i] = draw(&random);
    const float scale = (float)sqrt(3 / (double)s->d); /* keeps the variance */
    for (int64_t i = 0; i < 4 * s->d * s->d; i++)
        s->projection[i] = scale * draw(&random);
    s->layer = at_recurrent_new("rnn", s->d, s->seed, error);
    return s->layer;
}

static void end(void *context)
{
    state *s = context;
    at_recurrent_free(s->layer);
    free(s->x);
    free(s->out);
    free(s->projection);
}

/* ---- The two layers ------------------------------------------------------------------------------------------- */

static bool attend(const state *s, const float *x, int64_t n, float *out, at_error *error)
{
    static const char *const names[] = {"WQ", "WK", "WV", "WO"};
    at_parameter projections[4];
    for (int i = 0; i < 4; i++)
        projections[i] =
            (at_parameter){.name = names[i], .rank = 2, .dim = {s->d, s->d}, .value = s->projection + i * s->d * s->d};
    const at_settings settings = {.heads = HEADS};
    at_call call = {.batch = 1,
                    .queries = n,
                    .keys = n,
                    .query_width = s->d,
                    .key_width = s->d,
                    .value_width = s->d,
                    .query = x,
                    .key = x,
                    .value = x,
                    .parameters = projections,
                    .parameter_count = 4,
                    .out = out};
    return at_attend(&settings, &call, error);
}

/* Multiplications: W x and U h for each of n positions; four projections, then q·k and w·v for each of n² pairs. */
static double recurrent_work(double n, double d)
{
    return 2 * n * d * d;
}

static double attention_work(double n, double d)
{
    return 4 * n * d * d + 2 * n * n * d;
}

/* ---- The pages ------------------------------------------------------------------------------------------------ */

static bool layers_page(void *context, at_error *error)
{
    const state *s = context;
    (void)error;
    sayf("Two layers read the same n vectors x_1 ... x_n of d = %lld numbers, and return n vectors that know of each "
         "other:\n",
         (long long)s->d);
    show_line("recurrent        h_t = tanh(W x_t + U h_{t-1} + b)");
    show_line("self-attention   Q = X W_Q, K = X W_K, V = X W_V");
    show_line("                 z_i = Σ_j softmax_j(q_i·k_j / √D) v_j      for each head");
    show_line("                 out = [z of head 1; ...; z of head %d] W_O\n", HEADS);
    say("In the recurrent layer a position knows of another one through all the states between them:\n");
    show_line("x_1   x_2   x_3   x_4   x_5");
    show_line(" │     │     │     │     │      4 steps from x_1 to h_5,");
    show_line("h_1 ─ h_2 ─ h_3 ─ h_4 ─ h_5     each needs the one before\n");
    say("In self-attention each position reads every other one directly:\n");
    show_line("x_1   x_2   x_3   x_4   x_5");
    show_line(" ╲     ╲     │     ╱     ╱      1 step from x_1 to z_5, and z_1 ... z_4");
    show_line("             z_5                need not wait for each other");
    return true;
}

static bool work_page(void *context, at_error *error)
{
    const state *s = context;
    const char *const columns[] = {"recurrent", "projections", "pairs", "attention", "ratio"};
    const double d = (double)s->d;
    double table[LENGTHS * 5];
    (void)error;
    show_line("recurrent        W x_t and U h_{t-1}          2 n d²            n·d²");
    show_line("self-attention   four projections, q·k, w·v   4 n d² + 2 n² d   n²·d\n");
    sayf("Multiplications in millions for d = %lld, and attention divided by recurrent, 2 + n/d:\n", (long long)s->d);
    for (int i = 0; i < LENGTHS; i++) {
        const double n = (double)lengths[i];
        const double row[] = {1e-6 * recurrent_work(n, d), 4e-6 * n * d * d, 2e-6 * n * n * d,
                              1e-6 * attention_work(n, d), attention_work(n, d) / recurrent_work(n, d)};
        memcpy(table + 5 * i, row, sizeof row);
    }
    show_table(&(demo_table){LENGTHS, 5, 2, table, length_names, columns});
    sayf("\nTwice as many positions are twice the work of the recurrent layer, and four times that of the pairs. Below "
         "n = 2d = %lld the pairs are the smaller part: for sentences n is smaller than d, and the square does no "
         "harm. For a book it does; a window (attend demo windows) makes it n·w·d.",
         2 * (long long)s->d);
    return true;
}

static double norm(const float *a, const float *b, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sqrt(sum);
}

/* How far the last output moves when the first input does, in relation to how far the output moves at once where the
 * sequence has one position. */
typedef struct probe {
    float *x, *moved, *before, *after; /* [PATH, d] each */
} probe;

static bool probe_cell(const state *s, const char *cell, probe *p, double *left, at_error *error)
{
    at_recurrent *layer = at_recurrent_new(cell, s->d, s->seed, error);
    const bool good = layer && at_recurrent_run(layer, p->x, PATH, p->before, error) &&
                      at_recurrent_run(layer, p->moved, PATH, p->after, error);
    const double first = good ? norm(p->before, p->after, s->d) : 0;
    for (int t = 0; good && t < PATH; t++)
        left[t] = norm(p->before + t * s->d, p->after + t * s->d, s->d) / first;
    at_recurrent_free(layer);
    return good;
}

static bool probe_attention(const state *s, probe *p, int64_t n, double *left, at_error *error)
{
    if (!attend(s, p->x, 1, p->before, error) || !attend(s, p->moved, 1, p->after, error))
        return false;
    const double first = norm(p->before, p->after, s->d);
    if (!attend(s, p->x, n, p->before, error) || !attend(s, p->moved, n, p->after, error))
        return false;
    *left = norm(p->before + (n - 1) * s->d, p->after + (n - 1) * s->d, s->d) / first;
    return true;
}

static bool show_paths(const state *s, probe *p, at_error *error)
{
    enum { SHOWN = 6, COLUMNS = 1 + CELLS + 1 };
    static const int64_t shown[SHOWN] = {2, 4, 8, 16, 32, PATH};
    const char *const columns[COLUMNS] = {"steps", "rnn", "gru", "lstm", "self-attention"};
    const char *const rows[SHOWN] = {"n = 2", "n = 4", "n = 8", "n = 16", "n = 32", "n = 64"};
    double table[SHOWN * COLUMNS], left[PATH];
    for (int c = 0; c < CELLS; c++) {
        if (!probe_cell(s, cells[c], p, left, error))
            return false;
        for (int i = 0; i < SHOWN; i++)
            table[i * COLUMNS + 1 + c] = left[shown[i] - 1];
    }
    for (int i = 0; i < SHOWN; i++) {
        table[i * COLUMNS] = (double)(shown[i] - 1);
        if (!probe_attention(s, p, shown[i], &table[i * COLUMNS + COLUMNS - 1], error))
            return false;
    }
    show_table(&(demo_table){SHOWN, COLUMNS, 3, table, rows, columns});
    return true;
}

static bool path_page(void *context, at_error *error)
{
    const state *s = context;
    const int64_t count = PATH * s->d;
    float *memory = malloc((size_t)(4 * count) * sizeof *memory);
    if (!memory)
        return fail(error, AT_MEMORY, "out of memory for the demo");
    probe p = {memory, memory + count, memory + 2 * count, memory + 3 * count};
    memcpy(p.x, s->x, (size_t)count * sizeof *p.x);
    memcpy(p.moved, s->x, (size_t)count * sizeof *p.x);
    for (int64_t i = 0; i < s->d; i++)
        p.moved[i] += 0.01f;
    say("The path from x_1 to the last output has n - 1 steps in the recurrent layer and 1 in self-attention, and "
        "every step takes its toll, of what is passed on and of the gradient that comes back. x_1 is changed a "
        "little: how much of the change arrives at the last output? Initial weights; 1 is what arrives at the first "
        "output of a recurrent layer, and at the only one of self-attention with n = 1:\n");
    const bool good = show_paths(s, &p, error);
    free(memory);
    if (good)
        say("\nA recurrent layer loses about the same factor at every step, so that what is left falls like a power, "
            "f to the n-th. The gates of gru and lstm exist to bring this factor nearer to 1, and training can do so. "
            "Attention has about the weight w_n1 of it left, 1/n before training, and a trained one can give x_1 all "
            "of its weight at any distance.");
    return good;
}

/* The seconds of one pass: the shortest of several, for 20 ms at least. */
static bool measure(const state *s, int64_t n, bool recurrent, double *seconds, at_error *error)
{
    const double start = seconds_now();
    *seconds = INFINITY;
    for (int i = 0; i < 3 || seconds_now() - start < 0.02; i++) {
        const double from = seconds_now();
        if (recurrent ? !at_recurrent_run(s->layer, s->x, n, s->out, error) : !attend(s, s->x, n, s->out, error))
            return false;
        *seconds = fmin(*seconds, seconds_now() - from);
    }
    return true;
}

enum { RATIOS = 5 };

/* A row for each length: the work and the time of attention divided by those of the recurrent layer, and what a second
 * thread brings. */
static bool measure_all(const state *s, double *table, at_error *error)
{
    const int before = at_threads();
    bool good = true;
    for (int i = 0; good && i < LENGTHS; i++) {
        const double n = (double)lengths[i], d = (double)s->d;
        double took[2][2] = {{0}}; /* by threads, by layer */
        for (int threads = 1; good && threads <= 2; threads++) {
            at_threads_set(threads);
            good = measure(s, lengths[i], true, &took[threads - 1][0], error) &&
                   measure(s, lengths[i], false, &took[threads - 1][1], error);
        }
        const double row[RATIOS] = {attention_work(n, d) / recurrent_work(n, d), took[0][1] / took[0][0],
                                    took[1][1] / took[1][0], took[0][0] / took[1][0], took[0][1] / took[1][1]};
        memcpy(table + RATIOS * i, row, sizeof row);
    }
    at_threads_set(before);
    return good;
}

static bool time_page(void *context, at_error *error)
{
    const state *s = context;
    const char *const columns[RATIOS] = {"work", "1 thread", "2 threads", "recurrent", "attention"};
    double table[LENGTHS * RATIOS];
    say("Work is not time. The recurrent layer has n steps in sequence, each a product with one vector, which reads "
        "all of U for d² multiplications. Self-attention has a few products of whole matrices, whatever n is: the "
        "processor uses each number that it read many times, and threads share the rows. Measured now:\n");
    if (!measure_all(s, table, error))
        return false;
    show_line("           attention / recurrent          2 threads are so many times");
    show_line("                  time with:             as fast as 1 thread:");
    show_table(&(demo_table){LENGTHS, RATIOS, 2, table, length_names, columns});
    say("\nWhere a ratio of times is below that of the work, the products of matrices have paid off. (Each of the n² "
        "pairs also needs an exponential in every head, which the work does not count.) A second thread helps "
        "attention as soon as there are enough rows, if a core is free for it; the steps of one recurrent sequence "
        "wait for each other on any number of threads. In training both can share the sentences of a batch.\n");
    show_line("attend bench rnn-vs-attention       the same for d = 512 and n up to 4096");
    return true;
}

static bool summary_page(void *context, at_error *error)
{
    (void)context, (void)error;
    say("What Vaswani et al. 2017 put into a table, per layer:\n");
    show_line("                 work      steps in sequence   longest path");
    show_line("recurrent        n·d²      n                   n");
    show_line("self-attention   n²·d      1                   1");
    show_line("in a window w    n·w·d     1                   n/w\n");
    say("Three things follow. Training on many positions at once is fast: the targets are known, so that all steps of "
        "a "
        "decoder are one. Long distances are learned more easily. And attention itself does not know the order of "
        "what it reads, which the recurrent layer had for nothing: hence positions (attend demo positions). When it "
        "writes, a transformer also goes step by step, and each step reads all positions before it: n·d for one "
        "token, where the recurrent layer needs d² and keeps one state.");
    return true;
}

const cli_demo demo_rnn_vs_attention = {
    .name = "rnn-vs-attention",
    .line = "n·d² against n²·d, paths, steps and threads, measured here",
    .title = "A recurrent layer and self-attention",
    .input = "the width d of the layers, a multiple of 4 from 16 to 512",
    .example = "256",
    .size = sizeof(state),
    .begin = begin,
    .end = end,
    .pages = {{"Two layers", layers_page},
              {"Work: n·d² and n²·d", work_page},
              {"Paths: what arrives", path_page},
              {"Steps in sequence, and time", time_page},
              {"What follows", summary_page}},
};
