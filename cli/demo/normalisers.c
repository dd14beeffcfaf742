/* attend demo normalisers: one row of scores under all six normalisers.
 *
 * With a query of the one number 1, keys of one number each and the score `dot`, the keys are the scores. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "demo/demo.h"

enum { MOST = 7, NAMES = 6, SOFTMAX = 0, SPARSEMAX, ENTMAX, SIGMOID, RELU, HARD };

static const char *const names[NAMES] = {"softmax", "sparsemax", "entmax15", "sigmoid", "relu", "hard"};
static const char *const keys[MOST] = {"1", "2", "3", "4", "5", "6", "7"};

typedef struct state {
    const demo_options *options;
    int count;
    double e[MOST];
    double sorted[MOST]; /* from the largest on */
    double w[NAMES][MOST];
} state;

/* ---- By hand -------------------------------------------------------------------------------------------------- */

static int larger_first(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* τ = (Σ of the k largest − 1) / k, k the largest number with 1 + k e_(k) > Σ of the k largest */
static double sparsemax_threshold(const double *sorted, int count, int *k)
{
    double sum = 0, threshold = 0;
    for (int i = 0; i < count; i++) {
        sum += sorted[i];
        if (1 + (i + 1) * sorted[i] > sum) {
            *k = i + 1;
            threshold = (sum - 1) / (i + 1);
        }
    }
    return threshold;
}

/* With z = e/2, M and S the mean and the sum of squared deviations of the k largest: τ = M − √((1 − S)/k), k the largest
 * number with τ <= z_(k) */
static double entmax_threshold(const double *sorted, int count, int *k)
{
    double sum = 0, squares = 0, threshold = 0;
    for (int i = 0; i < count; i++) {
        const double z = sorted[i] / 2, n = i + 1;
        sum += z;
        squares += z * z;
        const double mean = sum / n, deviation = squares - n * mean * mean,
                     here = mean - sqrt(fmax(0, 1 - deviation) / n);
        if (deviation <= 1 && here <= z) {
            *k = i + 1;
            threshold = here;
        }
    }
    return threshold;
}

static void by_hand(state *s)
{
    const int n = s->count;
    int k, best = 0;
    double positive = 0;
    memcpy(s->sorted, s->e, sizeof s->e);
    qsort(s->sorted, (size_t)n, sizeof *s->sorted, larger_first);
    const double sparse = sparsemax_threshold(s->sorted, n, &k), ent = entmax_threshold(s->sorted, n, &k);
    demo_softmax(s->e, n, s->w[SOFTMAX]);
    for (int j = 0; j < n; j++) {
        positive += fmax(0, s->e[j]);
        best = s->e[j] > s->e[best] ? j : best;
    }
    for (int j = 0; j < n; j++) {
        const double above = fmax(0, s->e[j] / 2 - ent);
        s->w[SPARSEMAX][j] = fmax(0, s->e[j] - sparse);
        s->w[ENTMAX][j] = above * above;
        s->w[SIGMOID][j] = 1 / (1 + exp(-s->e[j]));
        s->w[RELU][j] = positive > 0 ? fmax(0, s->e[j]) / positive : 0;
        s->w[HARD][j] = j == best;
    }
}

/* ---- By the operator ------------------------------------------------------------------------------------------ */

static demo_call call_of(const char *normaliser, const double *e, int count)
{
    static const double one = 1;
    return (demo_call){.settings = {.score = "dot", .normaliser = normaliser},
                       .queries = 1,
                       .keys = count,
                       .width = 1,
                       .query = &one,
                       .key = e};
}

/* With one-hot values the output is w, so the gradient of the key j for dL/dw = the m-th unit vector is ∂w_m/∂e_j. */
static bool jacobian(const state *s, const char *normaliser, double *J, at_error *error)
{
    for (int m = 0; m < s->count; m++) {
        double unit[MOST] = {0};
        unit[m] = 1;
        demo_call call = call_of(normaliser, s->e, s->count);
        call.grad_out = unit;
        call.grad_key = J + m * s->count;
        if (!demo_attend(&call, error))
            return false;
    }
    return true;
}

static bool begin(void *context, const demo_options *options, at_error *error)
{
    state *s = context;
    demo_matrix row;
    s->options = options;
    if (!input_matrix(options->input ? options->input : "2 1.5 0.5 0 -1", (demo_limits){1, 1, 2, MOST, 50}, &row,
                      error))
        return false;
    s->count = row.columns;
    memcpy(s->e, row.value, (size_t)s->count * sizeof *s->e);
    by_hand(s);
    for (int n = 0; n < NAMES; n++) {
        double w[MOST];
        demo_call call = call_of(names[n], s->e, s->count);
        call.weights = w;
        if (!demo_attend(&call, error) || !demo_agrees(s->w[n], w, s->count, 2e-6, error))
            return false;
    }
    return true;
}

/* ---- The pages ------------------------------------------------------------------------------------------------ */

static bool scores_page(void *context, at_error *error)
{
    const state *s = context;
    (void)error;
    sayf("A query has met %d keys, and these are its scores (light: negative):\n", s->count);
    show_bars(keys, s->e, s->count, 2);
    say("\nA normaliser makes weights w of them: not negative, larger for larger scores, and mostly with the sum 1. "
        "The "
        "output is then c = Σ_j w_j v_j. Six of them follow on this row; the operator takes them as --normaliser NAME, "
        "and its weights agree with every number here.");
    return true;
}

static bool softmax_page(void *context, at_error *error)
{
    const state *s = context;
    const char *const columns[] = {"e", "e − m", "exp(e − m)", "w"};
    double table[MOST * 4], sum = 0;
    (void)error;
    show_line("w_j = exp(e_j − m) / Σ_k exp(e_k − m),   m = max e = %g\n", s->sorted[0]);
    for (int j = 0; j < s->count; j++) {
        const double power = exp(s->e[j] - s->sorted[0]);
        memcpy(table + 4 * j, (double[]){s->e[j], s->e[j] - s->sorted[0], power, s->w[SOFTMAX][j]}, 4 * sizeof *table);
        sum += power;
    }
    show_table(&(demo_table){s->count, 4, 3, table, keys, columns});
    sayf(
        "\nThe powers add up to %.3f, and each is divided by that. Subtracting m changes no weight, as it cancels, but "
        "keeps exp from overflowing. No weight is ever 0: every key has its say, however small.\n",
        sum);
    show_bars(keys, s->w[SOFTMAX], s->count, 3);
    return true;
}

static bool jacobian_page(void *context, at_error *error)
{
    const state *s = context;
    double J[MOST * MOST];
    if (!jacobian(s, "softmax", J, error))
        return false;
    for (int i = 0; i < s->count; i++)
        for (int j = 0; j < s->count; j++) {
            const double w = s->w[SOFTMAX][i], exact = w * ((i == j) - s->w[SOFTMAX][j]);
            if (!demo_agrees(&exact, &J[i * s->count + j], 1, 2e-6, error))
                return false;
        }
    say("What does a weight do when a score moves a little? The derivatives ∂w_i/∂e_j (i down, j across), from the "
        "operator's backward pass:\n");
    show_table(&(demo_table){s->count, s->count, 3, J, keys, keys});
    say("\nThat is diag(w) − w wᵀ: w_i (1 − w_i) on the diagonal and −w_i w_j beside it. Every row adds up to 0: what "
        "one "
        "key gains the others lose. When one weight is near 1, every entry is near 0, and nothing is learned: that is "
        "why scores are kept small (attend demo self-attention, pages 5 and 6).");
    return true;
}

/* Scores on a line, τ marked; what is above it is dark. */
static void show_above(const double *e, int count, double threshold)
{
    enum { COLUMNS = 48 };
    double low = threshold, high = threshold;
    for (int j = 0; j < count; j++) {
        low = fmin(low, e[j]);
        high = fmax(high, e[j]);
    }
    low -= (high - low) / COLUMNS;
    const double scale = COLUMNS / fmax(high - low, 1e-9);
    const int mark = (int)lrint((threshold - low) * scale);
    for (int j = 0; j < count; j++) {
        const int end = (int)lrint((e[j] - low) * scale);
        printf("%*s%s  %7.3f  ", DEMO_INDENT, "", keys[j], e[j]);
        for (int i = 0; i < mark; i++)
            fputs(i < end ? "░" : " ", stdout);
        fputs("│", stdout);
        for (int i = mark; i < end; i++)
            fputs("█", stdout);
        putchar('\n');
    }
}

static bool sparsemax_page(void *context, at_error *error)
{
    const state *s = context;
    int k = 1;
    const double threshold = sparsemax_threshold(s->sorted, s->count, &k);
    (void)error;
    show_line("w_j = max(e_j − τ, 0),   τ such that Σ w = 1\n");
    sayf("One threshold τ for the row: what stands above it is the weight, and the rest is exactly 0. To find τ, sort "
         "the "
         "scores and take the k largest as long as 1 + k e_(k) > their sum, e_(k) being the k-th; then τ = (their sum "
         "− 1) / k. Here k = %d "
         "and τ = %.3f (the line):\n",
         k, threshold);
    show_above(s->e, s->count, threshold);
    putchar('\n');
    show_vector("w", s->w[SPARSEMAX], s->count);
    say("\nIt is the point of the simplex (all w ≥ 0 with the sum 1) that is nearest to e. Weights that are 0 make "
        "attention easy to read, and those keys get no gradient.");
    return true;
}

static bool entmax_page(void *context, at_error *error)
{
    const state *s = context;
    int k = 1;
    double half[MOST];
    const double threshold = entmax_threshold(s->sorted, s->count, &k);
    (void)error;
    for (int j = 0; j < s->count; j++)
        half[j] = s->e[j] / 2;
    show_line("w_j = max(e_j/2 − τ, 0)²,   τ such that Σ w = 1\n");
    sayf("Between softmax and sparsemax (they are α-entmax with α = 1 and α = 2, this is α = 1.5). The weight is the "
         "square of what stands above τ, so it leaves 0 smoothly. On e/2, where k = %d and τ = %.3f:\n",
         k, threshold);
    show_above(half, s->count, threshold);
    putchar('\n');
    show_vector("w", s->w[ENTMAX], s->count);
    return true;
}

static bool unsorted_page(void *context, at_error *error)
{
    const state *s = context;
    const char *const columns[] = {"e", "sigmoid", "max(e, 0)", "relu"};
    double table[(MOST + 1) * 4], sum[4] = {NAN, 0, 0, 0};
    const char *rows[MOST + 1];
    (void)error;
    for (int j = 0; j < s->count; j++) {
        const double row[4] = {s->e[j], s->w[SIGMOID][j], fmax(0, s->e[j]), s->w[RELU][j]};
        memcpy(table + 4 * j, row, sizeof row);
        for (int i = 1; i < 4; i++)
            sum[i] += row[i];
        rows[j] = keys[j];
    }
    memcpy(table + 4 * s->count, sum, sizeof sum);
    rows[s->count] = "Σ";
    show_line("sigmoid   w_j = 1 / (1 + exp(−e_j))");
    show_line("relu      w_j = max(e_j, 0) / Σ_k max(e_k, 0)\n");
    show_table(&(demo_table){s->count + 1, 4, 3, table, rows, columns});
    say("\nsigmoid looks at each key by itself: the keys do not compete, and the weights do not add up to 1. A query "
        "may "
        "take all keys or none. relu drops negative scores and shares out the others in proportion; if no score is "
        "positive, all weights are 0.");
    return true;
}

static bool hard_page(void *context, at_error *error)
{
    enum { DRAWS = 1000, SHOWN = 24 };
    const state *s = context;
    const char *const columns[] = {"softmax", "share of 1000", "log p"};
    double table[MOST * 3] = {0};
    char drawn[2 * SHOWN + 1] = "";
    say("The argmax when decoding, a sample from the softmax when training: one key gets the weight 1, and the output "
        "is "
        "its value alone. The first draws, and the shares of 1000:\n");
    for (int n = 0; n < DRAWS; n++) {
        double w[MOST], log_prob;
        demo_call call = call_of("hard", s->e, s->count);
        call.sample = true;
        call.seed = s->options->common.seed * DRAWS + (uint64_t)n;
        call.weights = w;
        call.log_prob = &log_prob;
        if (!demo_attend(&call, error))
            return false;
        for (int j = 0; j < s->count; j++)
            if (w[j] > 0) {
                const double exact = log(s->w[SOFTMAX][j]);
                if (!demo_agrees(&exact, &log_prob, 1, 1e-5, error))
                    return false;
                table[3 * j + 1] += 1.0 / DRAWS;
                if (n < SHOWN)
                    snprintf(drawn + 2 * n, 3, "%s ", keys[j]);
            }
    }
    show_line("%s…\n", drawn);
    for (int j = 0; j < s->count; j++) {
        table[3 * j] = s->w[SOFTMAX][j];
        table[3 * j + 2] = log(s->w[SOFTMAX][j]);
    }
    show_table(&(demo_table){s->count, 3, 3, table, keys, columns});
    say("\nA choice has no derivative: move a score a little, and the chosen key stays the same. So no gradient "
        "reaches "
        "the scores through w. The way around it, by log p of the chosen key, is attend demo hard.");
    return true;
}

static bool all_page(void *context, at_error *error)
{
    const state *s = context;
    const char *const columns[] = {"Σ w", "largest", "entropy", "zeros"};
    double rows[NAMES * MOST], table[NAMES * 4] = {0};
    for (int n = 0; n < NAMES; n++) {
        double *row = table + 4 * n;
        for (int j = 0; j < s->count; j++) {
            const double w = rows[n * s->count + j] = s->w[n][j];
            row[0] += w;
            row[1] = fmax(row[1], w);
            row[2] -= w > 0 ? w * log(w) : 0;
            row[3] += w == 0;
        }
    }
    say("The same row six times, one normaliser each (down), the keys across:\n");
    if (!show_heat(rows, NAMES, s->count, names, keys, error))
        return false;
    putchar('\n');
    show_table(&(demo_table){NAMES, 4, 3, table, names, columns});
    say("\nThe entropy −Σ w log w is 0 for one key alone and the logarithm of the number of keys if all weigh the "
        "same.");
    return true;
}

static bool scale_page(void *context, at_error *error)
{
    enum { FACTORS = 5 };
    const state *s = context;
    static const double factors[FACTORS] = {0.25, 0.5, 1, 2, 4};
    const char *const rows[FACTORS] = {"e/4", "e/2", "e", "2e", "4e"};
    double largest[FACTORS * NAMES] = {0}, above[FACTORS * NAMES] = {0};
    for (int f = 0; f < FACTORS; f++)
        for (int n = 0; n < NAMES; n++) {
            double e[MOST], w[MOST];
            for (int j = 0; j < s->count; j++)
                e[j] = factors[f] * s->e[j];
            demo_call call = call_of(names[n], e, s->count);
            call.weights = w;
            if (!demo_attend(&call, error))
                return false;
            for (int j = 0; j < s->count; j++) {
                largest[f * NAMES + n] = fmax(largest[f * NAMES + n], w[j]);
                above[f * NAMES + n] += w[j] > 1e-6; /* not a rounding error */
            }
        }
    say("Multiply all scores by a factor (a temperature divides by it). The largest weight:\n");
    show_table(&(demo_table){FACTORS, NAMES, 3, largest, rows, names});
    say("\nand the keys with a weight above 0:\n");
    show_table(&(demo_table){FACTORS, NAMES, 3, above, rows, names});
    say("\nSmall scores spread the weight, large ones gather it: with growing scores softmax, sparsemax and entmax15 "
        "all "
        "end in hard. relu does not know the scale, as it divides it out.");
    return true;
}

const cli_demo demo_normalisers = {
    .name = "normalisers",
    .line = "one row of scores under all six: softmax, sparsemax ... hard",
    .title = "Normalisers: from scores to weights",
    .input = "a row of 2 to 7 scores, as in \"3 1 0.2 -1\"",
    .example = "\"3 1 0.2 -1\"",
    .size = sizeof(state),
    .begin = begin,
    .pages = {{"A row of scores", scores_page},
              {"softmax", softmax_page},
              {"How softmax answers: its Jacobian", jacobian_page},
              {"sparsemax", sparsemax_page},
              {"entmax15", entmax_page},
              {"sigmoid and relu", unsorted_page},
              {"hard", hard_page},
              {"All six", all_page},
              {"Larger and smaller scores", scale_page}},
};
