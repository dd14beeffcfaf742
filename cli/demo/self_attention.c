/* attend demo self-attention: the worked example of "I am good", then what follows from it.
 *
 * The first steps are done as one would on paper, in double, and then checked against the operator, so that the figures
 * shown are right to the last digit; all the others come out of at_attend. */
#include <math.h>

#include "demo/demo.h"

enum { WORDS = 3, SIZE = 3, NAME_WIDTH = 4 };

static const char *const english[WORDS] = {"I", "am", "good"};
static const char *const chinese[WORDS] = {"我", "很", "好"};

static const float X[WORDS * SIZE] = {1, 3, 2, /**/ 1, 1, 3, /**/ 1, 2, 1};
static const float Y[WORDS * SIZE] = {1.95f, 1.05f, 2, /**/ 1, 2, 2, /**/ 1.6f, 2.4f, 0.6f};

/* S = A Bᵀ, on paper. */
static void multiply_transposed(const float *a, const float *b, double *scores)
{
    for (int i = 0; i < WORDS; i++)
        for (int j = 0; j < WORDS; j++) {
            scores[i * WORDS + j] = 0;
            for (int k = 0; k < SIZE; k++)
                scores[i * WORDS + j] += (double)a[i * SIZE + k] * b[j * SIZE + k];
        }
}

/* W = softmax(S) by rows and Z = W X, on paper. */
static void mix(const double *scores, double *weights, double *mixed)
{
    for (int i = 0; i < WORDS; i++) {
        double sum = 0;
        for (int j = 0; j < WORDS; j++)
            sum += weights[i * WORDS + j] = exp(scores[i * WORDS + j]);
        for (int j = 0; j < WORDS; j++)
            weights[i * WORDS + j] /= sum;
        for (int k = 0; k < SIZE; k++) {
            mixed[i * SIZE + k] = 0;
            for (int j = 0; j < WORDS; j++)
                mixed[i * SIZE + k] += weights[i * WORDS + j] * X[j * SIZE + k];
        }
    }
}

/* The weights to two decimals such that a row still adds up to 1: the largest takes what the others leave. */
static void round_rows(const double *weights, double *rounded)
{
    for (int i = 0; i < WORDS; i++) {
        int largest = 0;
        double left = 1;
        for (int j = 0; j < WORDS; j++) {
            rounded[i * WORDS + j] = round(100 * weights[i * WORDS + j]) / 100;
            left -= rounded[i * WORDS + j];
            if (weights[i * WORDS + j] > weights[i * WORDS + largest])
                largest = j;
        }
        rounded[i * WORDS + largest] += left;
    }
}

/* The operator on the words: queries from X, keys and values from `other`. */
static bool attend(const at_settings *settings, const float *other, at_parameter *parameters, int parameter_count,
                   float *out, float *weights, at_error *error)
{
    at_call call = {.batch = 1,
                    .queries = WORDS,
                    .keys = WORDS,
                    .query_width = SIZE,
                    .key_width = SIZE,
                    .value_width = SIZE,
                    .query = X,
                    .key = other,
                    .value = other,
                    .parameters = parameters,
                    .parameter_count = parameter_count,
                    .out = out,
                    .weights = weights};
    return at_attend(settings, &call, error);
}

/* Copies for the functions that show one kind of number only. */
static void widen(const float *from, int count, double *to)
{
    for (int i = 0; i < count; i++)
        to[i] = from[i];
}

/* The operator must come to what was worked out on paper. */
static bool check(const double *weights, const double *mixed, at_error *error)
{
    float out[WORDS * SIZE], W[WORDS * WORDS];
    at_settings settings = {.score = "dot"};
    if (!attend(&settings, X, NULL, 0, out, W, error))
        return false;
    for (int i = 0; i < WORDS * SIZE; i++)
        if (fabs(out[i] - mixed[i]) > 1e-6 || fabs(W[i] - weights[i]) > 1e-6)
            return fail(error, AT_FAILED, "the operator returns %.7f where the worked example has %.7f", out[i],
                        mixed[i]);
    return true;
}

typedef struct state {
    const cli_common *options;
    double scores[WORDS * WORDS], weights[WORDS * WORDS], mixed[WORDS * SIZE]; /* S, W and Z of X with itself */
} state;

static bool begin(void *context, const demo_options *options, at_error *error)
{
    (void)error;
    state *s = context;
    s->options = &options->common;
    multiply_transposed(X, X, s->scores);
    mix(s->scores, s->weights, s->mixed);
    return true;
}

static bool words(void *context, at_error *error)
{
    (void)context, (void)error;
    double shown[WORDS * SIZE];
    say("The sentence is \"I am good\". Each word is a row of three numbers, made up and small enough to check by "
        "hand.\n");
    widen(X, WORDS * SIZE, shown);
    show_matrix(shown, WORDS, SIZE, 2, english);
    return true;
}

static bool scores(void *context, at_error *error)
{
    (void)error;
    say("The dot product s_ij = x_i · x_j is the larger, the more the two vectors point the same way.\n");
    show_matrix(((state *)context)->scores, WORDS, WORDS, 2, english);
    return true;
}

static bool weights(void *context, at_error *error)
{
    double shown[WORDS * WORDS];
    say("w_ij = exp(s_ij) / Σ_k exp(s_ik). Now every row adds up to 1: it is how a word (down) shares out its "
        "attention among the words (across). Two decimals, the largest weight rounded so that each row sums to 1:\n");
    round_rows(((state *)context)->weights, shown);
    show_matrix(shown, WORDS, WORDS, 2, english);
    putchar('\n');
    return show_heat(shown, WORDS, WORDS, english, english, error);
}

static bool mixtures(void *context, at_error *error)
{
    const state *s = context;
    double shown[WORDS * WORDS];
    round_rows(s->weights, shown);
    for (int i = 0; i < WORDS; i++)
        show_mixture(shown + i * WORDS, WORDS, english[i], NAME_WIDTH, "x", english);
    putchar('\n');
    show_matrix(s->mixed, WORDS, SIZE, 6, english);
    if (!check(s->weights, s->mixed, error))
        return false;
    say("\nThat is self-attention, Z = softmax(X Xᵀ) X: queries, keys and values are all the same X. The operator "
        "behind attend attention --score dot returns the same Z, to a millionth.");
    return true;
}

static bool scaling(void *context, at_error *error)
{
    say("A Transformer takes softmax(X Xᵀ / √d) X, d being the length of the vectors. If their numbers have mean 0 and "
        "variance 1, a dot product has variance d: the longer the vectors, the further apart the scores, until one key "
        "takes all the weight. A softmax so sure of itself hardly moves when the scores do, so hardly any gradient "
        "gets through it to learn from. Divided by √d, the scores have variance 1 whatever d is.\n");
    return demo_scaling_table(((state *)context)->options, error);
}

static bool scaling_maps(void *context, at_error *error)
{
    return demo_scaling_maps(((state *)context)->options, error);
}

/* softmax(X Yᵀ) Y */
static bool cross_attention(void *context, at_error *error)
{
    (void)context;
    float out[WORDS * SIZE], raw[WORDS * WORDS];
    double shown[WORDS * WORDS], W[WORDS * WORDS];
    at_settings settings = {.score = "dot"};
    if (!attend(&settings, Y, NULL, 0, out, raw, error))
        return false;
    widen(raw, WORDS * WORDS, W);

    say("Let the keys and values come from another sentence, 我 很 好 (\"I very good\"), with vectors Y:\n");
    widen(Y, WORDS * SIZE, shown);
    show_matrix(shown, WORDS, SIZE, 2, chinese);
    say("\nThe scores X Yᵀ, English down and Chinese across:\n");
    multiply_transposed(X, Y, shown);
    show_matrix(shown, WORDS, WORDS, 2, english);
    say("\nand the weights, softmax(X Yᵀ):\n");
    round_rows(W, shown);
    show_matrix(shown, WORDS, WORDS, 2, english);
    putchar('\n');
    if (!show_heat(shown, WORDS, WORDS, english, chinese, error))
        return false;
    say("\nEach English word is now a mixture of Chinese ones, Z = W Y:\n");
    for (int i = 0; i < WORDS; i++)
        show_mixture(shown + i * WORDS, WORDS, english[i], NAME_WIDTH, "y", chinese);
    putchar('\n');
    widen(out, WORDS * SIZE, shown);
    show_matrix(shown, WORDS, SIZE, 4, english);
    say("\nNothing was learned here: the vectors are made up, so \"I\" looks at 很 and not at 我. Training moves the "
        "vectors until the right words find each other. This is how a translator looks back at the sentence it "
        "translates.");
    return true;
}

/* One heat map per head, then what the heads bring back together. */
static bool show_heads(const at_settings *settings, at_parameter *parameters, int parameter_count,
                       const char *const *sights, at_error *error)
{
    float out[WORDS * SIZE], raw[SIZE * WORDS * WORDS];
    double shown[WORDS * WORDS];
    if (!attend(settings, X, parameters, parameter_count, out, raw, error))
        return false;
    for (int h = 0; h < settings->heads; h++) {
        printf("\nHead %d sees %s:\n\n", h + 1, sights[h]);
        widen(raw + h * WORDS * WORDS, WORDS * WORDS, shown);
        if (!show_heat(shown, WORDS, WORDS, english, english, error))
            return false;
    }
    puts("\nTogether:\n");
    widen(out, WORDS * SIZE, shown);
    show_matrix(shown, WORDS, SIZE, 4, english);
    return true;
}

/* Several heads on columns of X. */
static bool multi_head(void *context, at_error *error)
{
    (void)context;
    static const char *const columns[] = {"the first number of each word, 1 1 1", "the second, 3 1 2",
                                          "the third, 2 3 1"};

    say("One head looks in one way only. Several look at once, each at its own part of the vectors, and their outputs "
        "stand side by side. X is three wide, so it can be cut into three heads of size one.");
    at_settings three = {.score = "dot", .heads = 3};
    if (!show_heads(&three, NULL, 0, columns, error))
        return false;
    say("\nThe first head sees no difference between the words and takes their mean, the second looks at I, the third "
        "at am.");
    return true;
}

/* Heads through projections. */
static bool projected_heads(void *context, at_error *error)
{
    (void)context;
    static const char *const overlap[] = {"the first two numbers of each word", "the last two"};
    /* W_Q = W_K = W_V pick the numbers (1,2) for the first head and (2,3) for the second; W_O takes the mean of the two
     * middle numbers that come back. */
    static const float pick[4 * SIZE] = {1, 0, 0, /**/ 0, 1, 0, /**/ 0, 1, 0, /**/ 0, 0, 1};
    static const float join[SIZE * 4] = {1, 0, 0, 0, /**/ 0, 0.5f, 0.5f, 0, /**/ 0, 0, 0, 1};
    at_parameter projections[] = {{"WQ", 2, {4, SIZE}, pick, NULL},
                                  {"WK", 2, {4, SIZE}, pick, NULL},
                                  {"WV", 2, {4, SIZE}, pick, NULL},
                                  {"WO", 2, {SIZE, 4}, join, NULL}};
    at_settings two = {.score = "scaled", .heads = 2};
    say("In a Transformer each head looks through learned matrices of its own, and one more brings the heads "
        "together: MultiHead = [head_1; …; head_h] W_O with head_i = Attention(X W_Qi, X W_Ki, X W_Vi). Here two heads "
        "of size "
        "two share the middle number, their scores are divided by √2, and W_O takes the mean of what they share.");
    if (!show_heads(&two, projections, 4, overlap, error))
        return false;
    say("\nTo go on: attend list shows what else the score, the normaliser, the window and the position can be, and "
        "attend attention --help how to try them on arrays of your own.");
    return true;
}

const cli_demo demo_self_attention = {
    .name = "self-attention",
    .line = "softmax(XXᵀ)X by hand, why √d, cross-attention, several heads",
    .title = "Self-attention, step by step",
    .size = sizeof(state),
    .begin = begin,
    .pages = {{"Words are vectors: X", words},
              {"How alike are two words? S = X Xᵀ", scores},
              {"From likeness to weights: W = softmax(S), row by row", weights},
              {"Every word again, as a mixture of all words: Z = W X", mixtures},
              {"Why divide by √d?", scaling},
              {"The same, drawn", scaling_maps},
              {"Cross-attention: softmax(X Yᵀ) Y", cross_attention},
              {"Multi-head attention: [head_1; head_2; head_3]", multi_head},
              {"Heads with projections: [head_1; head_2] W_O", projected_heads}},
};
