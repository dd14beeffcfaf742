/* attend demo hard: where to look, learned by REINFORCE draw by draw, beside soft attention.
 *
 * The query is all that is learned: with one-hot keys and the score `dot` its numbers are the scores of the places. The
 * value of a place is one number a_j, what is seen there, and the right word has the probability σ(z) for what was
 * seen. */
#include <math.h>
#include <string.h>

#include "demo/demo.h"

enum { MOST = 6, UPDATES = 240, ESTIMATES = 2000 };

static const double RATE = 0.5; /* of the updates */
static const double KEPT = 0.9; /* of the baseline, by a draw */
static const char *const places[MOST] = {"1", "2", "3", "4", "5", "6"};

typedef struct state {
    uint64_t seed;
    int n, best;
    double a[MOST];
    double soft[(UPDATES + 1) * MOST], hard[(UPDATES + 1) * MOST]; /* weights before each update, and at the end */
    double seen[UPDATES];                                          /* soft: z */
    int drawn[UPDATES];
    double reward[UPDATES], baseline[UPDATES]; /* hard: log p(y|s), b before it */
} state;

/* log σ(z): the log-probability of the right word */
static double log_right(double z)
{
    return -log1p(exp(-z));
}

/* ---- Learning ------------------------------------------------------------------------------------------------- */

static demo_call call_of(const state *s, const char *normaliser, const double *e, const double *identity)
{
    return (demo_call){.settings = {.score = "dot", .normaliser = normaliser},
                       .queries = 1,
                       .keys = s->n,
                       .width = s->n,
                       .value_width = 1,
                       .query = e,
                       .key = identity,
                       .value = s->a};
}

static void write_identity(int n, double *identity)
{
    for (int i = 0; i < n * n; i++)
        identity[i] = i / n == i % n;
}

/* e += RATE ∂ log σ(z) / ∂e, z = Σ w a: the gradient goes through z. By hand it is (1 − σ(z)) w_j (a_j − z). */
static bool learn_softly(state *s, at_error *error)
{
    double e[MOST] = {0}, identity[MOST * MOST];
    write_identity(s->n, identity);
    for (int u = 0; u <= UPDATES; u++) {
        double *w = s->soft + u * s->n, z = 0, returned[MOST], gradient[MOST], by_hand[MOST], out;
        demo_softmax(e, s->n, w);
        for (int j = 0; j < s->n; j++)
            z += w[j] * s->a[j];
        if (u == UPDATES)
            return true;
        const double slope = 1 - exp(log_right(z));
        demo_call call = call_of(s, "softmax", e, identity);
        call.weights = returned;
        call.out = &out;
        call.grad_out = &slope;
        call.grad_query = gradient;
        for (int j = 0; j < s->n; j++)
            by_hand[j] = slope * w[j] * (s->a[j] - z);
        if (!demo_attend(&call, error) || !demo_agrees(w, returned, s->n, 1e-5, error) ||
            !demo_agrees(&z, &out, 1, 1e-5, error) || !demo_agrees(by_hand, gradient, s->n, 1e-5, error))
            return false;
        s->seen[u] = z;
        for (int j = 0; j < s->n; j++)
            e[j] += RATE * gradient[j];
    }
    return true;
}

/* One draw: the place, and the gradient of `signal` · log p(place) by the scores. */
static bool draw(const state *s, const double *e, uint64_t seed, double signal, int *place, double *gradient,
                 at_error *error)
{
    double identity[MOST * MOST], w[MOST], nothing = 0;
    write_identity(s->n, identity);
    demo_call call = call_of(s, "hard", e, identity);
    call.sample = true;
    call.seed = seed;
    call.weights = w;
    if (gradient) {
        call.grad_out = &nothing;
        call.grad_log_prob = signal;
        call.grad_query = gradient;
    }
    if (!demo_attend(&call, error))
        return false;
    for (int j = 0; j < s->n; j++)
        if (w[j] > 0)
            *place = j;
    return true;
}

/* e += RATE (r − b) ∂ log p(s) / ∂e, r = log p(y|s). By hand the gradient is (r − b) (1[j = s] − w_j). */
static bool learn_by_drawing(state *s, at_error *error)
{
    double e[MOST] = {0}, b = 0;
    for (int u = 0; u <= UPDATES; u++) {
        double *w = s->hard + u * s->n, gradient[MOST], by_hand[MOST];
        const uint64_t seed = s->seed * UPDATES + (uint64_t)u;
        int place = 0, again = 0;
        demo_softmax(e, s->n, w);
        if (u == UPDATES)
            return true;
        if (!draw(s, e, seed, 0, &place, NULL, error))
            return false;
        const double reward = log_right(s->a[place]);
        b = u == 0 ? reward : b; /* so that the first draw moves nothing */
        if (!draw(s, e, seed, reward - b, &again, gradient, error))
            return false;
        for (int j = 0; j < s->n; j++)
            by_hand[j] = (reward - b) * ((j == place) - w[j]);
        if (reward != b && !demo_agrees(by_hand, gradient, s->n, 1e-5, error))
            return false;
        for (int j = 0; j < s->n; j++)
            e[j] += RATE * by_hand[j];
        s->drawn[u] = place;
        s->reward[u] = reward;
        s->baseline[u] = b;
        b = KEPT * b + (1 - KEPT) * reward;
    }
    return true;
}

static bool begin(void *context, const demo_options *options, at_error *error)
{
    state *s = context;
    demo_matrix row;
    s->seed = options->common.seed;
    if (!input_matrix(options->input ? options->input : "-1 0.5 3 0 -2", (demo_limits){1, 1, 2, MOST, 10}, &row, error))
        return false;
    s->n = row.columns;
    memcpy(s->a, row.value, (size_t)s->n * sizeof *s->a);
    for (int j = 1; j < s->n; j++)
        s->best = s->a[j] > s->a[s->best] ? j : s->best;
    return learn_softly(s, error) && learn_by_drawing(s, error);
}

/* ---- The pages ------------------------------------------------------------------------------------------------ */

static bool places_page(void *context, at_error *error)
{
    const state *s = context;
    const char *const columns[] = {"a_j", "p(y | a_j)", "log p"};
    double table[MOST * 3];
    (void)error;
    sayf("A picture has %d places, and one word y is right. What is seen at place j is a number a_j, and a look at it "
         "gives the right word the probability p(y|z) = σ(z), z = a_j:\n",
         s->n);
    for (int j = 0; j < s->n; j++) {
        table[3 * j] = s->a[j];
        table[3 * j + 1] = exp(log_right(s->a[j]));
        table[3 * j + 2] = log_right(s->a[j]);
    }
    show_table(&(demo_table){s->n, 3, 3, table, places, columns});
    sayf("\nPlace %d is the one to look at. Nobody says so: the model is told only how probable the right word was. It "
         "has "
         "one score e_j for each place, all 0 at first, and w = softmax(e). Two ways to learn them follow:\n",
         s->best + 1);
    show_line("soft   sees the mean,      z = Σ_j w_j a_j");
    show_line("hard   sees one place,     z = a_s,  s drawn with the probabilities w");
    return true;
}

static bool soft_page(void *context, at_error *error)
{
    enum { SHOWN = 8 };
    const state *s = context;
    const char *const rows[SHOWN] = {"1", "2", "3", "4", "5", "6", "7", "8"};
    const char *columns[2 + MOST] = {"z", "log p(y|z)", "w_1", "w_2", "w_3", "w_4", "w_5", "w_6"};
    double table[SHOWN * (2 + MOST)];
    (void)error;
    show_line("L = log p(y | z),  z = Σ_j w_j a_j       ∂L/∂e_j = (1 − σ(z)) w_j (a_j − z)\n");
    say("The mean has a derivative, so the gradient goes straight through it to the scores: a place that shows more "
        "than "
        "the mean is raised, the others are lowered. The first updates, e + 0.5 ∂L/∂e:\n");
    for (int u = 0; u < SHOWN; u++) {
        double *row = table + u * (2 + s->n);
        row[0] = s->seen[u];
        row[1] = log_right(s->seen[u]);
        memcpy(row + 2, s->soft + u * s->n, (size_t)s->n * sizeof *row);
    }
    show_table(&(demo_table){SHOWN, 2 + s->n, 3, table, rows, columns});
    say("\nThe gradients are those of the operator's backward pass.");
    return true;
}

static bool idea_page(void *context, at_error *error)
{
    (void)context, (void)error;
    say("A draw has no derivative: a score that moves a little changes nothing about the place that was drawn. But the "
        "mean over all draws has one. With the reward r_s = log p(y|s):\n");
    show_line("L_s = Σ_s p(s) r_s ≤ log Σ_s p(s) p(y|s)      a lower bound of log p(y)");
    show_line("∂L_s/∂e = Σ_s p(s) r_s ∂log p(s)/∂e           as ∂p = p ∂log p");
    show_line("        ≈ r_s ∂log p(s)/∂e                    with one draw s");
    show_line("∂log p(s)/∂e_j = 1[j = s] − w_j               of the softmax\n");
    say("So: draw a place, look, and make the draw more probable if the reward was good, less if it was bad "
        "(REINFORCE). "
        "Good or bad compared with what? With a baseline b, the running mean of the rewards:\n");
    show_line("e_j ← e_j + 0.5 (r_s − b) (1[j = s] − w_j),   b ← 0.9 b + 0.1 r_s\n");
    say("b changes nothing on average, since Σ_j p(j) ∂log p(j) = 0, but the updates become much calmer (page 6).");
    return true;
}

static bool draws_page(void *context, at_error *error)
{
    enum { SHOWN = 14 };
    const state *s = context;
    const char *const rows[SHOWN] = {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14"};
    const char *columns[4 + MOST] = {"place", "r", "b", "r − b", "w_1", "w_2", "w_3", "w_4", "w_5", "w_6"};
    double table[SHOWN * (4 + MOST)];
    (void)error;
    say("Each line is a draw: the place, its reward r = log p(y|s), the baseline before it, and the weights from which "
        "it "
        "was drawn:\n");
    for (int u = 0; u < SHOWN; u++) {
        double *row = table + u * (4 + s->n);
        row[0] = s->drawn[u] + 1;
        row[1] = s->reward[u];
        row[2] = s->baseline[u];
        row[3] = s->reward[u] - s->baseline[u];
        memcpy(row + 4, s->hard + u * s->n, (size_t)s->n * sizeof *row);
    }
    show_table(&(demo_table){SHOWN, 4 + s->n, 2, table, rows, columns});
    say("\nr − b above 0: the weight of that place rises in the next line, and those of the others fall. Below 0: the "
        "other "
        "way round. The baseline begins with the first reward. log p(s) and its gradient are the operator's (log_prob, "
        "grad_log_prob).");
    return true;
}

static bool curves_page(void *context, at_error *error)
{
    enum { COLUMNS = 60, ROWS = 10, EACH = UPDATES / COLUMNS };
    const state *s = context;
    (void)error;
    sayf("The weight on place %d over %d updates (o soft, x hard, * both):\n", s->best + 1, UPDATES);
    for (int row = ROWS; row >= 0; row--) {
        char line[COLUMNS + 1];
        int used = 0;
        for (int c = 0; c < COLUMNS; c++) {
            const int at = c * EACH * s->n + s->best;
            const bool soft = lrint(ROWS * s->soft[at]) == row, hard = lrint(ROWS * s->hard[at]) == row;
            line[c] = soft && hard ? '*' : soft ? 'o' : hard ? 'x' : ' ';
            used = line[c] != ' ' ? c + 1 : used;
        }
        show_line("%.1f │%.*s", (double)row / ROWS, used, line);
    }
    show_line("    0%*d%*d", COLUMNS / 2, UPDATES / 2, COLUMNS / 2 - 1, UPDATES);
    const double *soft = s->soft + UPDATES * s->n, *hard = s->hard + UPDATES * s->n;
    sayf("\nAfter %d updates soft has the weight %.3f there and hard %.3f. Soft gets the same gradient in every run; "
         "hard "
         "depends on its draws (--seed N shows others), makes detours, and may even get stuck on a place that is only "
         "good, since it never draws what it has given up.",
         UPDATES, soft[s->best], hard[s->best]);
    return true;
}

/* Mean and deviation of the estimate over many draws from equal weights. */
static bool estimate(const state *s, double b, double *mean, double *deviation, at_error *error)
{
    const double e[MOST] = {0};
    double squares[MOST] = {0};
    memset(mean, 0, (size_t)s->n * sizeof *mean);
    for (int i = 0; i < ESTIMATES; i++) {
        int place = 0;
        if (!draw(s, e, s->seed * ESTIMATES + (uint64_t)i, 0, &place, NULL, error))
            return false;
        for (int j = 0; j < s->n; j++) {
            const double g = (log_right(s->a[place]) - b) * ((j == place) - 1.0 / s->n);
            mean[j] += g / ESTIMATES;
            squares[j] += g * g / ESTIMATES;
        }
    }
    for (int j = 0; j < s->n; j++)
        deviation[j] = sqrt(fmax(0, squares[j] - mean[j] * mean[j]));
    return true;
}

static bool estimator_page(void *context, at_error *error)
{
    const state *s = context;
    const char *const columns[] = {"exact", "b = 0: mean", "spread", "b = E[r]: mean", "spread"};
    double table[MOST * 5], plain[MOST], calm[MOST], plain_spread[MOST], calm_spread[MOST], b = 0, variance[2] = {0};
    for (int j = 0; j < s->n; j++)
        b += log_right(s->a[j]) / s->n;
    if (!estimate(s, 0, plain, plain_spread, error) || !estimate(s, b, calm, calm_spread, error))
        return false;
    sayf("Is one draw enough to know where to go? At the start (all weights 1/%d) the exact gradient of L_s is w_j "
         "(r_j − "
         "E[r]). Beside it the mean and the standard deviation of the one-draw estimate over %d draws, without a "
         "baseline "
         "and with b = E[r] = %.3f:\n",
         s->n, ESTIMATES, b);
    for (int j = 0; j < s->n; j++) {
        const double row[] = {(log_right(s->a[j]) - b) / s->n, plain[j], plain_spread[j], calm[j], calm_spread[j]};
        memcpy(table + 5 * j, row, sizeof row);
        variance[0] += plain_spread[j] * plain_spread[j];
        variance[1] += calm_spread[j] * calm_spread[j];
    }
    show_table(&(demo_table){s->n, 5, 3, table, places, columns});
    sayf(
        "\nBoth means are about the exact gradient: the estimate is unbiased. But one draw may be far off: over all "
        "places "
        "the spread is %.2f without the baseline and %.2f with it. That is the price of hard attention: many draws for "
        "what soft attention computes in one step.",
        sqrt(variance[0]), sqrt(variance[1]));
    return true;
}

static bool model_page(void *context, at_error *error)
{
    (void)context, (void)error;
    say("The same in a model (Xu et al. 2015), with one draw for each word of the target:\n");
    show_line("∂L ≈ ∂log p(y|s) + λ_r (log p(y|s) − b) ∂log p(s) + λ_e ∂H(s)\n");
    show_line("∂log p(y|s)   trains all that comes after the look");
    show_line("λ_r           --reinforce, 0.1: how much the choice of places learns");
    show_line("λ_e           --entropy, 0.002: keeps the weights from settling too soon");
    show_line("b             --baseline, 0.9: a running mean of log p(y|s), 0.9 of it old\n");
    say("For half of the batches (--expectation 0.5) the mean z = Σ_j w_j a_j is used instead of a draw, which calms "
        "the "
        "estimate further. When it decodes, hard attention takes the place with the largest weight.\n");
    show_line("attend train --model bahdanau --normaliser hard ...\n");
    say("Where the target has few different units, such as letters, all places can be summed over instead, without any "
        "draw: log Σ_j w_j p(y|a_j) (Wu, Shapiro, Cotterell 2018).\n");
    show_line("attend train --model bahdanau --normaliser hard --hard-training exact ...");
    return true;
}

const cli_demo demo_hard = {
    .name = "hard",
    .line = "REINFORCE learns where to look, draw by draw, beside soft",
    .title = "Hard attention: learning to look",
    .input = "what is seen at 2 to 6 places, as in \"-1 0.5 3\"",
    .example = "\"0 1 2\"",
    .size = sizeof(state),
    .begin = begin,
    .pages = {{"Where to look?", places_page},
              {"Soft: the gradient goes through the mean", soft_page},
              {"Hard: a draw has no gradient, its mean has", idea_page},
              {"Draw by draw", draws_page},
              {"Beside each other", curves_page},
              {"How good is one draw?", estimator_page},
              {"In a model", model_page}},
};
