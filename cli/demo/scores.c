/* attend demo scores: one query, one key, and the four scores with every number. */
#include <math.h>
#include <string.h>

#include "demo/demo.h"

enum { MOST = 6, A = 3, KEYS = 4, SCORES = 4 };

static const char *const score_names[SCORES] = {"dot", "scaled", "general", "additive"};
static const char *const key_names[KEYS] = {"k", "2k", "q", "-k"};
static const double v[A] = {1, 2, -1}, b[A] = {0, 0.5, -0.5};

typedef struct state {
    int d;
    double q[MOST], k[MOST];
    double general[MOST * MOST];     /* W of the general score [d,d] */
    double W[A * MOST], U[A * MOST]; /* of the additive score [A,d] */
    double keys[KEYS * MOST];        /* [KEYS,d]: k, 2k, q, -k */
    double scores[SCORES * KEYS];    /* by hand */
} state;

/* ---- The scores, as one computes them by hand ----------------------------------------------------------------- */

static double dot(const double *a, const double *other, int d)
{
    double sum = 0;
    for (int i = 0; i < d; i++)
        sum += a[i] * other[i];
    return sum;
}

/* q W: [d] */
static void times_general(const state *s, double *qW)
{
    for (int j = 0; j < s->d; j++) {
        qW[j] = 0;
        for (int i = 0; i < s->d; i++)
            qW[j] += s->q[i] * s->general[i * s->d + j];
    }
}

static double additive(const state *s, const double *k)
{
    double sum = 0;
    for (int a = 0; a < A; a++)
        sum += v[a] * tanh(dot(s->W + a * s->d, s->q, s->d) + dot(s->U + a * s->d, k, s->d) + b[a]);
    return sum;
}

static double score_of(const state *s, int which, const double *k)
{
    double qW[MOST];
    times_general(s, qW);
    switch (which) {
    case 0:
        return dot(s->q, k, s->d);
    case 1:
        return dot(s->q, k, s->d) / sqrt(s->d);
    case 2:
        return dot(qW, k, s->d);
    default:
        return additive(s, k);
    }
}

/* The parameters are made up for any d: `general` swaps the first two numbers of the query, and those of `additive` are
 * -0.5, 0 and 0.5 in turn. */
static void make_parameters(state *s)
{
    const int d = s->d;
    for (int i = 0; i < d; i++)
        s->general[i * d + (i < 2 ? 1 - i : i)] = 1;
    for (int a = 0; a < A; a++)
        for (int i = 0; i < d; i++) {
            s->W[a * d + i] = 0.5 * ((a + i) % 3 - 1);
            s->U[a * d + i] = 0.5 * ((2 * a + i) % 3 - 1);
        }
}

static bool begin(void *context, const demo_options *options, at_error *error)
{
    state *s = context;
    demo_matrix pair;
    const char *input = options->input ? options->input : "1 2 0 -1; 2 1 1 0";
    const demo_limits limits = {2, 2, 2, MOST, 99};
    if (!input_matrix(input, limits, &pair, error))
        return false;
    s->d = pair.columns;
    memcpy(s->q, pair.value, (size_t)s->d * sizeof *s->q);
    memcpy(s->k, pair.value + s->d, (size_t)s->d * sizeof *s->k);
    make_parameters(s);
    for (int i = 0; i < s->d; i++) {
        const double of[KEYS] = {s->k[i], 2 * s->k[i], s->q[i], -s->k[i]};
        for (int j = 0; j < KEYS; j++)
            s->keys[j * s->d + i] = of[j];
    }
    for (int n = 0; n < SCORES; n++)
        for (int j = 0; j < KEYS; j++)
            s->scores[n * KEYS + j] = score_of(s, n, s->keys + j * s->d);
    return true;
}

/* The operator on q and the four keys; the values are one-hot, so that the output is the weights. */
static bool attend(const state *s, int which, const char *normaliser, double weights[KEYS], at_error *error)
{
    demo_call call = {.settings = {.score = score_names[which], .normaliser = normaliser},
                      .queries = 1,
                      .keys = KEYS,
                      .width = s->d,
                      .query = s->q,
                      .key = s->keys,
                      .weights = weights};
    if (which == 2)
        call.parameters[0] = (demo_parameter){"W", s->d, s->d, s->general};
    if (which == 3) {
        const demo_parameter own[] = {{"W", A, s->d, s->W}, {"U", A, s->d, s->U}, {"v", 0, A, v}, {"b", 0, A, b}};
        memcpy(call.parameters, own, sizeof own);
    }
    return demo_attend(&call, error);
}

/* ---- The pages ------------------------------------------------------------------------------------------------ */

static bool pair_page(void *context, at_error *error)
{
    const state *s = context;
    (void)error;
    say("A query q asks, a key k answers, and the score e = score(q, k) is one number that says how well the answer "
        "fits. Everything else in attention is made of such numbers. Our pair:\n");
    show_vector("q", s->q, s->d);
    show_vector("k", s->k, s->d);
    sayf("\nd = %d is the length of the vectors. Four ways to a score follow, all on this pair.", s->d);
    return true;
}

static bool dot_page(void *context, at_error *error)
{
    const state *s = context;
    (void)error;
    show_line("e = q·k = Σ_i q_i k_i\n");
    say("Multiply number by number and add up. Nothing is learned here; the vectors themselves must say which query "
        "goes with which key.\n");
    show_product("e", s->q, s->k, s->d);
    say("\nThe score is the larger, the smaller the angle between the two and the longer they are: a key twice as long "
        "has twice the score.");
    return true;
}

static bool scaled_page(void *context, at_error *error)
{
    const state *s = context;
    char e[DEMO_FIGURE], scaled[DEMO_FIGURE];
    (void)error;
    show_line("e = q·k / √d\n");
    say("The sum has d terms, and the more terms, the further apart are the scores: for random numbers of variance 1 "
        "their variance is d. Divided by √d it is 1, whatever d is (attend demo self-attention, pages 5 and 6).\n");
    show_line("e = %s / √%d = %s", figure(s->scores[0], false, e), s->d, figure(s->scores[KEYS], false, scaled));
    return true;
}

static bool general_page(void *context, at_error *error)
{
    const state *s = context;
    double qW[MOST];
    (void)error;
    show_line("e = q W kᵀ\n");
    say("A matrix W between the two, which is learned: it says which number of the query is compared with which number "
        "of the key. With the identity as W it is the dot product. Our W exchanges the first two numbers of the "
        "query:\n");
    show_matrix(s->general, s->d, s->d, 2, NULL);
    times_general(s, qW);
    putchar('\n');
    show_vector("q W", qW, s->d);
    show_product("e", qW, s->k, s->d);
    say("\nIf W is a product, W = UᵀV, the score is (U q)·(V k): two projections, as in a Transformer's head (attend "
        "demo "
        "projections).");
    return true;
}

static bool additive_page(void *context, at_error *error)
{
    const state *s = context;
    const char *const rows[A] = {"a = 1", "a = 2", "a = 3"};
    const char *const columns[] = {"W q", "U k", "b", "sum", "tanh", "v", "v·tanh"};
    double table[A * 7];
    char e[DEMO_FIGURE];
    (void)error;
    show_line("e = v · tanh(W q + U k + b)\n");
    say("A small network with one hidden layer, here of A = 3 units, reads both vectors. It can learn to compare a "
        "query and a key of any two kinds.\n");
    for (int a = 0; a < A; a++) {
        const double Wq = dot(s->W + a * s->d, s->q, s->d), Uk = dot(s->U + a * s->d, s->k, s->d), x = Wq + Uk + b[a];
        memcpy(table + a * 7, (double[]){Wq, Uk, b[a], x, tanh(x), v[a], v[a] * tanh(x)}, 7 * sizeof *table);
    }
    say("W =\n");
    show_matrix(s->W, A, s->d, 1, rows);
    say("\nU =\n");
    show_matrix(s->U, A, s->d, 1, rows);
    putchar('\n');
    show_table(&(demo_table){A, 7, 3, table, rows, columns});
    putchar('\n');
    show_line("e = the sum of the last column = %s", figure(s->scores[3 * KEYS], false, e));
    say("\nW q is computed once per query and U k once per key. Luong writes the same with one matrix over both, v · "
        "tanh(W_a [q; k]), and calls it concat: W_a = [W U].");
    return true;
}

/* Scores and weights as two tables, one row for each score; the weights are the operator's. */
static bool keys_page(void *context, at_error *error)
{
    const state *s = context;
    double weights[SCORES * KEYS];
    for (int n = 0; n < SCORES; n++) {
        double sigmoid[KEYS], by_hand[KEYS], sum = 0;
        if (!attend(s, n, "softmax", weights + n * KEYS, error) || !attend(s, n, "sigmoid", sigmoid, error))
            return false;
        const double *e = s->scores + n * KEYS, top = fmax(fmax(e[0], e[1]), fmax(e[2], e[3]));
        for (int j = 0; j < KEYS; j++)
            sum += exp(e[j] - top);
        for (int j = 0; j < KEYS; j++) {
            by_hand[j] = 1 / (1 + exp(-e[j]));
            if (!demo_agrees(&by_hand[j], &sigmoid[j], 1, 2e-6, error))
                return false;
            by_hand[j] = exp(e[j] - top) / sum;
        }
        /* A float holds a score to about seven figures, so that is how well large ones are known. */
        if (!demo_agrees(by_hand, weights + n * KEYS, KEYS, 2e-6 + 1e-6 * fabs(top), error))
            return false;
    }
    say("The same query meets four keys: k, the double of k, q itself, and the opposite of k. Their scores:\n");
    show_table(&(demo_table){SCORES, KEYS, 3, s->scores, score_names, key_names});
    say("\nand their weights, softmax(e):\n");
    if (!show_heat(weights, SCORES, KEYS, score_names, key_names, error))
        return false;
    say("\ndot, scaled and general double with the key; additive cannot grow beyond Σ |v_a| = 4, as tanh stays between "
        "-1 and 1. The weights are the operator's (attend attention --score NAME), and what was computed by hand "
        "agrees with them.");
    return true;
}

static bool cost_page(void *context, at_error *error)
{
    (void)context, (void)error;
    say("For one query and n keys of length d, with A hidden units:\n");
    show_line("score     parameters       multiplications        paper");
    show_line("dot       none             n·d                    Luong et al. 2015");
    show_line("scaled    none             n·d + n                Vaswani et al. 2017");
    show_line("general   d²               d² + n·d               Luong et al. 2015");
    show_line("additive  2·A·d + 2·A      A·d + n·A + (n·A·d)    Bahdanau et al. 2014");
    say("\nThe term in parentheses, U k for every key, is needed once for all queries. The first three are products of "
        "matrices, which machines do fastest; additive needs n·A times tanh, and no matrix product can do that. It "
        "pays "
        "where queries and keys are of different kinds, and without a scale of its own.");
    return true;
}

const cli_demo demo_scores = {
    .name = "scores",
    .line = "dot, scaled, general and additive on one pair, every number",
    .title = "Scores: how well a key answers a query",
    .input = "a query and a key, 2 to 6 numbers each, as in \"1 2; 3 -1\"",
    .example = "\"1 0.5; 2 -1\"",
    .size = sizeof(state),
    .begin = begin,
    .pages = {{"A query and a key", pair_page},
              {"dot", dot_page},
              {"scaled", scaled_page},
              {"general", general_page},
              {"additive", additive_page},
              {"One query, four keys", keys_page},
              {"What they cost", cost_page}},
};
