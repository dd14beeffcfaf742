/* attend demo projections: queries, keys and values by hand, and what is different about keys and values. */
#include <math.h>
#include <string.h>

#include "demo/demo.h"

enum { MOST = 6, SIZE = 3, D = 2 };

static const char *const sentence[] = {"I", "am", "good"};
static const char *const numbered[MOST] = {"x1", "x2", "x3", "x4", "x5", "x6"};

/* [SIZE,D], as in x W: rows are the numbers of a word. */
static const double W_Q[SIZE * D] = {1, 0, /**/ 0, 0, /**/ 0, 1};
static const double W_K[SIZE * D] = {0, 1, /**/ 1, 0, /**/ 0, -1};
static const double W_V[SIZE * D] = {1, 0, /**/ 0, 1, /**/ 1, -1};

typedef struct state {
    int n;
    const char *const *words;
    double X[MOST * SIZE];
    double Q[MOST * D], K[MOST * D], V[MOST * D];
    double scores[MOST * MOST], weights[MOST * MOST], Z[MOST * D];
} state;

/* ---- By hand -------------------------------------------------------------------------------------------------- */

/* c [rows,columns] = a [rows,inner] b [inner,columns] */
static void multiply(const double *a, const double *b, int rows, int inner, int columns, double *c)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            double sum = 0;
            for (int k = 0; k < inner; k++)
                sum += a[i * inner + k] * b[k * columns + j];
            c[i * columns + j] = sum;
        }
}

static void transpose(const double *a, int rows, int columns, double *t)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            t[j * rows + i] = a[i * columns + j];
}

static void softmax_rows(const double *e, int rows, int columns, double *w)
{
    for (int i = 0; i < rows; i++)
        demo_softmax(e + i * columns, columns, w + i * columns);
}

static bool begin(void *context, const demo_options *options, at_error *error)
{
    state *s = context;
    demo_matrix X;
    double transposed[MOST * D];
    const demo_limits limits = {2, MOST, SIZE, SIZE, 20};
    if (!input_matrix(options->input ? options->input : "1 3 2; 1 1 3; 1 2 1", limits, &X, error))
        return false;
    s->n = X.rows;
    s->words = options->input ? numbered : sentence;
    memcpy(s->X, X.value, (size_t)(s->n * SIZE) * sizeof *s->X);
    multiply(s->X, W_Q, s->n, SIZE, D, s->Q);
    multiply(s->X, W_K, s->n, SIZE, D, s->K);
    multiply(s->X, W_V, s->n, SIZE, D, s->V);
    transpose(s->K, s->n, D, transposed);
    multiply(s->Q, transposed, s->n, D, s->n, s->scores);
    for (int i = 0; i < s->n * s->n; i++)
        s->scores[i] /= sqrt(D);
    softmax_rows(s->scores, s->n, s->n, s->weights);
    multiply(s->weights, s->V, s->n, s->n, D, s->Z);
    return true;
}

/* ---- The pages ------------------------------------------------------------------------------------------------ */

static bool roles_page(void *context, at_error *error)
{
    const state *s = context;
    (void)error;
    say("In softmax(X Xᵀ) X a word's one vector does three things: it asks, it is asked, and it is what is handed "
        "over. "
        "Three learned matrices give each its own vector:\n");
    show_line("query  q = x W_Q   what the word looks for");
    show_line("key    k = x W_K   what it is found by");
    show_line("value  v = x W_V   what it hands over");
    say("\nThe words, d = 3 numbers each:\n");
    show_matrix(s->X, s->n, SIZE, 2, s->words);
    say("\nThe matrices, 3 × 2 and made up: W_Q takes the first and the last number of a word, W_K the second and the "
        "difference of first and last, W_V mixes all three. Side by side, W_Q W_K W_V:\n");
    for (int i = 0; i < SIZE; i++)
        show_line("%2g %2g     %2g %2g     %2g %2g", W_Q[i * D], W_Q[i * D + 1], W_K[i * D], W_K[i * D + 1], W_V[i * D],
                  W_V[i * D + 1]);
    return true;
}

static bool products_page(void *context, at_error *error)
{
    const state *s = context;
    double column[SIZE];
    const char *const names[] = {"q_1", "q_2", "k_1", "k_2", "v_1", "v_2"};
    const double *const matrices[] = {W_Q, W_K, W_V};
    double all[MOST * 6];
    (void)error;
    sayf("The first word, %s, number by number:\n", s->words[0]);
    for (int i = 0; i < 6; i++) {
        for (int k = 0; k < SIZE; k++)
            column[k] = matrices[i / D][k * D + i % D];
        show_product(names[i], s->X, column, SIZE);
    }
    say("\nand so for all words, Q = X W_Q, K = X W_K, V = X W_V:\n");
    for (int i = 0; i < s->n; i++)
        for (int j = 0; j < D; j++) {
            all[i * 6 + j] = s->Q[i * D + j];
            all[i * 6 + D + j] = s->K[i * D + j];
            all[i * 6 + 2 * D + j] = s->V[i * D + j];
        }
    show_table(&(demo_table){s->n, 6, 2, all, s->words, names});
    return true;
}

static bool weights_page(void *context, at_error *error)
{
    const state *s = context;
    show_line("S = Q Kᵀ / √2        W = softmax(S), row by row\n");
    say("Each query (down) meets each key (across). Keys have two numbers, so the scores are divided by √2. The first "
        "of "
        "them:\n");
    show_product("q·k", s->Q, s->K, D);
    show_line("s = q·k / √2 = %.3f\n", s->scores[0]);
    show_table(&(demo_table){s->n, s->n, 3, s->scores, s->words, s->words});
    putchar('\n');
    return show_heat(s->weights, s->n, s->n, s->words, s->words, error);
}

/* The operator with its parameters WQ, WK and WV, which are [out,in]. */
static bool by_operator(const state *s, double *out, double *weights, at_error *error)
{
    double wq[SIZE * D], wk[SIZE * D], wv[SIZE * D];
    transpose(W_Q, SIZE, D, wq);
    transpose(W_K, SIZE, D, wk);
    transpose(W_V, SIZE, D, wv);
    const demo_call call = {.settings = {.score = "scaled"},
                            .queries = s->n,
                            .keys = s->n,
                            .width = SIZE,
                            .value_width = SIZE,
                            .query = s->X,
                            .key = s->X,
                            .value = s->X,
                            .parameters = {{"WQ", D, SIZE, wq}, {"WK", D, SIZE, wk}, {"WV", D, SIZE, wv}},
                            .weights = weights,
                            .out = out};
    return demo_attend(&call, error);
}

static bool output_page(void *context, at_error *error)
{
    const state *s = context;
    double out[MOST * SIZE], weights[MOST * MOST];
    if (!by_operator(s, out, weights, error) || !demo_agrees(s->weights, weights, s->n * s->n, 1e-5, error) ||
        !demo_agrees(s->Z, out, s->n * D, 1e-5, error))
        return false;
    show_line("Z = W V,   z_i = Σ_j w_ij v_j\n");
    say("Every word becomes a mixture of the values, with its row of weights:\n");
    show_mixture(s->weights, s->n < 4 ? s->n : 4, s->words[0], 0, "v", s->words);
    if (s->n > 4)
        show_line("  + …");
    putchar('\n');
    show_matrix(s->Z, s->n, D, 4, s->words);
    say("\nThat is one head of a Transformer:\n");
    show_line("head(X) = softmax(X W_Q (X W_K)ᵀ / √d_k) X W_V");
    say("\nThe operator with the parameters WQ, WK and WV (attend attention --param WQ=...; stored as [out, in], so "
        "transposed) returns the same Z.");
    return true;
}

static bool key_value_page(void *context, at_error *error)
{
    enum { ENTRIES = 3, SHARPNESS = 4 };
    static const double keys[ENTRIES * 2] = {1, 0, /**/ 0, 1, /**/ -1, 0}, values[ENTRIES] = {10, 20, 30};
    static const double factor[SHARPNESS] = {0, 1, 3, 9};
    const char *const rows[SHARPNESS] = {"q = 0·(1, 0)", "q = 1·(1, 0)", "q = 3·(1, 0)", "q = 9·(1, 0)"};
    const char *const columns[] = {"w of 10", "w of 20", "w of 30", "answer"};
    double table[SHARPNESS * 4];
    (void)context;
    say("Keys find, values tell; they need not be alike. Think of a dictionary with three entries, a key and a value "
        "each:\n");
    show_line("(1, 0) : 10        (0, 1) : 20        (-1, 0) : 30");
    say("\nA query that points to the first key, ever more clearly:\n");
    for (int i = 0; i < SHARPNESS; i++) {
        const double q[2] = {factor[i], 0};
        const demo_call call = {.settings = {.score = "dot"},
                                .queries = 1,
                                .keys = ENTRIES,
                                .width = 2,
                                .value_width = 1,
                                .query = q,
                                .key = keys,
                                .value = values,
                                .weights = table + 4 * i,
                                .out = table + 4 * i + 3};
        if (!demo_attend(&call, error))
            return false;
    }
    show_table(&(demo_table){SHARPNESS, 4, 4, table, rows, columns});
    say("\nWithout a direction the answer is the mean of all values; with a long query it is the entry itself. This is "
        "key-value attention. The kinds by where Q, K and V come from:\n");
    show_line("soft attention       K = V: the encoder's states are both");
    show_line("key-value attention  K and V differ, as above");
    show_line("self-attention       Q, K and V from one X, as on the pages before");
    show_line("cross-attention      Q from one sequence, K and V from another");
    return true;
}

static bool general_page(void *context, at_error *error)
{
    const state *s = context;
    double transposed[D * SIZE], W[SIZE * SIZE], weights[MOST * MOST];
    transpose(W_K, SIZE, D, transposed);
    multiply(W_Q, transposed, SIZE, D, SIZE, W);
    const double scale = 1 / sqrt(D);
    double scaled[SIZE * SIZE];
    for (int i = 0; i < SIZE * SIZE; i++)
        scaled[i] = scale * W[i];
    const demo_call call = {.settings = {.score = "general"},
                            .queries = s->n,
                            .keys = s->n,
                            .width = SIZE,
                            .query = s->X,
                            .key = s->X,
                            .parameters = {{"W", SIZE, SIZE, scaled}},
                            .weights = weights};
    if (!demo_attend(&call, error) || !demo_agrees(s->weights, weights, s->n * s->n, 1e-5, error))
        return false;
    show_line("q·k = (x_i W_Q)·(x_j W_K) = x_i (W_Q W_Kᵀ) x_jᵀ\n");
    say("So the two projections are a general score with W = W_Q W_Kᵀ:\n");
    show_matrix(W, SIZE, SIZE, 2, NULL);
    say("\nThe operator with --score general and W / √2 returns the same weights. The matrix is 3 × 3 but of rank 2 "
        "only: "
        "with d = 512 and heads of size 64, two matrices of 512 × 64 have 65,536 numbers and a full W 262,144. And "
        "keys "
        "of 64 numbers are computed once and kept, for all the queries to come.");
    return true;
}

static bool columns_page(void *context, at_error *error)
{
    const state *s = context;
    double turned[MOST * MOST], H[D * MOST];
    (void)error;
    transpose(s->weights, s->n, s->n, turned);
    transpose(s->Z, s->n, D, H);
    say("Here a word is a row. Many papers and notes write it as a column, and then everything is transposed:\n");
    show_line("rows      Z = softmax by rows(Q Kᵀ / √d) V");
    show_line("columns   H = V softmax by columns(Kᵀ Q / √d)\n");
    say("The weights as columns; now each column adds up to 1:\n");
    show_table(&(demo_table){s->n, s->n, 3, turned, s->words, s->words});
    say("\nand H = Zᵀ, a column for each word:\n");
    show_matrix(H, D, s->n, 4, NULL);
    return true;
}

const cli_demo demo_projections = {
    .name = "projections",
    .line = "Q, K and V by hand, key-value attention, rows and columns",
    .title = "Projections: queries, keys and values",
    .input = "2 to 6 words of 3 numbers each, as in \"1 3 2; 1 1 3\"",
    .example = "\"1 0 2; 0 1 1; 2 1 0; 1 1 1\"",
    .size = sizeof(state),
    .begin = begin,
    .pages = {{"One word, three roles", roles_page},
              {"Q, K and V", products_page},
              {"Scores and weights", weights_page},
              {"The output: one head", output_page},
              {"Keys find, values tell", key_value_page},
              {"Two projections are a general score", general_page},
              {"Words as columns", columns_page}},
};
