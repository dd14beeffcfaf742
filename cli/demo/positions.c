/* attend demo positions: what attention knows of order, and six ways to tell it more.
 *
 * A word is SIZE numbers: ±LENGTH from its spelling, the last number 1 for every word, so that Shaw's made-up vectors can
 * speak to any query. Query, key and value are the same vector. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "demo/demo.h"
#include "tasks.h"

enum { MOST = 8, WIDEST = 10, SIZE = 16, PAIRS = SIZE / 2, REACH = 2, OFFSETS = 2 * REACH + 1, HEADS = 8 };
enum { NONE, SINUSOIDAL, LEARNED, SHAW, ROPE, ALIBI, KINDS };

static const double LENGTH = 0.6;
static const char *const names[KINDS] = {"none", "sinusoidal", "learned", "shaw:2", "rope", "alibi"};
static const char *const places[] = {"0", "1", "2", "3", "4", "5", "6", "7"};

/* Shaw's aK by clipped offset −2 … 2: its first and its last number; the others are 0. */
static const double shaw_first[OFFSETS] = {0, 3, 0, -1, 0}, shaw_last[OFFSETS] = {-2, 8, 0, -2, -4};

typedef struct state {
    demo_words words;
    int n;
    double X[MOST * SIZE];              /* the words */
    double learned[MOST * SIZE];        /* P */
    double weights[KINDS][MOST * MOST]; /* [n,n] */
    double out[KINDS][MOST * SIZE];     /* Z of the first three kinds, for the words with their positions */
    float shown[KINDS][MOST * MOST];
} state;

/* ---- By hand -------------------------------------------------------------------------------------------------- */

/* PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos(the same) */
static double sinusoid(double p, int number)
{
    const double angle = p * pow(10000, -2.0 * (number / 2) / SIZE);
    return number % 2 ? cos(angle) : sin(angle);
}

static double inner(const double *a, const double *b, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* The words with what is added to them: nothing, sinusoids, or rows of a table. */
static void write_inputs(const state *s, int kind, double *X)
{
    for (int i = 0; i < s->n * SIZE; i++)
        X[i] = s->X[i] + (kind == SINUSOIDAL ? sinusoid(i / SIZE, i % SIZE) : kind == LEARNED ? s->learned[i] : 0);
}

/* The pairs (2m, 2m+1) turned by p · 10000^(−2m/d). */
static void rotate(const double *x, double p, double *y)
{
    for (int m = 0; m < PAIRS; m++) {
        const double sine = sinusoid(p, 2 * m), cosine = sinusoid(p, 2 * m + 1);
        y[2 * m] = x[2 * m] * cosine - x[2 * m + 1] * sine;
        y[2 * m + 1] = x[2 * m] * sine + x[2 * m + 1] * cosine;
    }
}

static int clipped(int offset)
{
    return offset < -REACH ? -REACH : offset > REACH ? REACH : offset;
}

/* The slope of ALiBi's head h = 1 … H. */
static double slope(int h, int H)
{
    return exp2(-8.0 * h / H);
}

/* q·aK at a clipped offset */
static double shaw_product(const double *q, int offset)
{
    return q[0] * shaw_first[offset + REACH] + q[SIZE - 1] * shaw_last[offset + REACH];
}

static double score(int kind, const double *X, int i, int j)
{
    const double *q = X + i * SIZE, *k = X + j * SIZE;
    double a[SIZE], b[SIZE];
    switch (kind) {
    case SHAW:
        return (inner(q, k, SIZE) + shaw_product(q, clipped(j - i))) / sqrt(SIZE);
    case ROPE:
        rotate(q, i, a);
        rotate(k, j, b);
        return inner(a, b, SIZE) / sqrt(SIZE);
    case ALIBI:
        return inner(q, k, SIZE) / sqrt(SIZE) - slope(1, HEADS) * abs(i - j);
    default:
        return inner(q, k, SIZE) / sqrt(SIZE);
    }
}

static void by_hand(const state *s, int kind, const double *X, double *w)
{
    for (int i = 0; i < s->n; i++) {
        double sum = 0;
        for (int j = 0; j < s->n; j++)
            sum += w[i * s->n + j] = exp(score(kind, X, i, j));
        for (int j = 0; j < s->n; j++)
            w[i * s->n + j] /= sum;
    }
}

/* ---- By the operator ------------------------------------------------------------------------------------------ */

/* ALiBi gives each head a slope of its own; to show its first head of eight, all eight see the same words. */
static bool by_operator(const state *s, int kind, const double *X, double *weights, double *out, at_error *error)
{
    double wide[MOST * SIZE * HEADS], aK[OFFSETS * SIZE] = {0}, all[HEADS * MOST * MOST];
    const int heads = kind == ALIBI ? HEADS : 1, width = SIZE * heads;
    for (int i = 0; i < s->n; i++)
        for (int c = 0; c < width; c++)
            wide[i * width + c] = X[i * SIZE + c % SIZE];
    for (int o = 0; o < OFFSETS; o++) {
        aK[o * SIZE] = shaw_first[o];
        aK[o * SIZE + SIZE - 1] = shaw_last[o];
    }
    demo_call call = {.settings = {.score = "scaled", .position = kind < SHAW ? "none" : names[kind], .heads = heads},
                      .queries = s->n,
                      .keys = s->n,
                      .width = width,
                      .value_width = width,
                      .query = wide,
                      .key = wide,
                      .value = wide,
                      .weights = all,
                      .out = heads == 1 ? out : NULL};
    if (kind == SHAW)
        call.parameters[0] = (demo_parameter){"wK", OFFSETS, SIZE, aK};
    if (!demo_attend(&call, error))
        return false;
    memcpy(weights, all, (size_t)(s->n * s->n) * sizeof *weights);
    return true;
}

static bool begin(void *context, const demo_options *options, at_error *error)
{
    state *s = context;
    uint64_t random = task_mix(options->common.seed);
    if (!input_words(options->input ? options->input : "the dog sees the cat", 2, MOST, WIDEST, &s->words, error))
        return false;
    s->n = s->words.count;
    for (int i = 0; i < s->n; i++) {
        input_vector(s->words.word[i], SIZE, s->X + i * SIZE);
        for (int c = 0; c < SIZE; c++)
            s->X[i * SIZE + c] *= LENGTH;
        s->X[i * SIZE + SIZE - 1] = 1;
    }
    for (int i = 0; i < s->n * SIZE; i++) /* of mean 0, between -1 and 1 */
        s->learned[i] = task_draw(&random, 2001) / 1000.0 - 1;
    for (int kind = 0; kind < KINDS; kind++) {
        double X[MOST * SIZE], w[MOST * MOST];
        write_inputs(s, kind, X);
        by_hand(s, kind, X, w);
        if (!by_operator(s, kind, X, s->weights[kind], s->out[kind], error) ||
            !demo_agrees(w, s->weights[kind], s->n * s->n, 1e-5, error))
            return false;
        for (int i = 0; i < s->n * s->n; i++)
            s->shown[kind][i] = (float)s->weights[kind][i];
    }
    return true;
}

/* ---- The pages ------------------------------------------------------------------------------------------------ */

static bool show_kind(const state *s, int kind, at_error *error)
{
    return show_weights(s->shown[kind], s->n, s->n, s->words.word, s->words.word, error);
}

/* Two positions with the same word, or false. */
static bool find_twins(const state *s, int *first, int *second)
{
    for (*first = 0; *first < s->n; ++*first)
        for (*second = *first + 1; *second < s->n; ++*second)
            if (strcmp(s->words.word[*first], s->words.word[*second]) == 0)
                return true;
    return false;
}

static bool none_page(void *context, at_error *error)
{
    enum { SHOWN = 6 };
    const state *s = context;
    double turned[MOST * SIZE], out[MOST * SIZE], weights[MOST * MOST];
    char name[2][DEMO_WORD + 40];
    int first, second;
    for (int i = 0; i < s->n; i++)
        memcpy(turned + i * SIZE, s->X + (s->n - 1 - i) * SIZE, SIZE * sizeof *turned);
    if (!by_operator(s, NONE, turned, weights, out, error))
        return false;
    say("softmax(X Xᵀ/√d) X compares vectors, and nothing in it says where a word stands:\n");
    if (!show_kind(s, NONE, error))
        return false;
    if (find_twins(s, &first, &second))
        sayf("\nRows %d and %d are the same, as both are \"%s\"; no query can tell them apart either.", first, second,
             s->words.word[first]);
    sayf("\nRead the sentence backwards, and every word gets the same output z as before. The first numbers of z of "
         "\"%s\":\n",
         s->words.word[0]);
    snprintf(name[0], sizeof name[0], "at 0 of the sentence");
    snprintf(name[1], sizeof name[1], "at %d, backwards", s->n - 1);
    double both[2 * SHOWN];
    memcpy(both, s->out[NONE], SHOWN * sizeof *both);
    memcpy(both + SHOWN, out + (s->n - 1) * SIZE, SHOWN * sizeof *both);
    if (!demo_agrees(both, both + SHOWN, SHOWN, 1e-5, error))
        return false;
    show_matrix(both, 2, SHOWN, 4, (const char *const[]){name[0], name[1]});
    say("\nA sentence is a bag of words to it. Positions must be told, in one of two ways: added to the words before "
        "attention, or inside it, as something between two words.");
    return true;
}

static bool sinusoids_page(void *context, at_error *error)
{
    enum { COLUMNS = 64, SHOWN = 4, DRAWN = 10 };
    static const char *const shades[] = {" ", "░", "▒", "▓", "█"};
    static const char *const columns[] = {"sin 0", "cos 1", "sin 2", "cos 3", "sin 4", "cos 5", "sin 14", "cos 15"};
    static const int numbers[] = {0, 1, 2, 3, 4, 5, 14, 15};
    const char *const rows[SHOWN] = {"p = 0", "p = 1", "p = 2", "p = 3"};
    double table[SHOWN * 8];
    (void)context, (void)error;
    show_line("PE(p, 2i) = sin(p / 10000^(2i/d))     PE(p, 2i+1) = cos(p / 10000^(2i/d))\n");
    sayf("Every position p gets d numbers, the sines and cosines of d/2 angles; here d = %d:\n", SIZE);
    for (int p = 0; p < SHOWN; p++)
        for (int c = 0; c < 8; c++)
            table[p * 8 + c] = sinusoid(p, numbers[c]);
    show_table(&(demo_table){SHOWN, 8, 3, table, rows, columns});
    say("\nDrawn, positions 0 to 63 across, the first ten numbers down; light is -1, dark is 1:\n");
    for (int c = 0; c < DRAWN; c++) {
        char line[COLUMNS * 3 + 1];
        size_t used = 0;
        for (int p = 0; p < COLUMNS; p++) {
            const char *shade = shades[lrint(2 + 2 * sinusoid(p, c))];
            used += (size_t)snprintf(line + used, sizeof line - used, "%s", shade);
        }
        while (used > 0 && line[used - 1] == ' ')
            line[--used] = 0;
        show_line("%2d  %s", c, line);
    }
    say("\nThe first pair turns quickly, like the second hand of a clock, the last hardly at all, like the one of the "
        "hours. Together they tell every position from every other.");
    return true;
}

static bool distance_page(void *context, at_error *error)
{
    enum { FURTHEST = 9, STARTS = 3 };
    static const int starts[STARTS] = {0, 10, 100};
    const char *const rows[FURTHEST] = {"k = 0", "k = 1", "k = 2", "k = 3", "k = 4",
                                        "k = 5", "k = 6", "k = 7", "k = 8"};
    const char *const columns[STARTS] = {"p = 0", "p = 10", "p = 100"};
    double table[FURTHEST * STARTS] = {0}, bars[FURTHEST];
    (void)context, (void)error;
    say("Why waves? Because the product of two positions depends on their distance only. PE(p)·PE(p+k) from three "
        "places:\n");
    for (int k = 0; k < FURTHEST; k++) {
        for (int at = 0; at < STARTS; at++)
            for (int c = 0; c < SIZE; c++)
                table[k * STARTS + at] += sinusoid(starts[at], c) * sinusoid(starts[at] + k, c);
        bars[k] = table[k * STARTS];
    }
    show_table(&(demo_table){FURTHEST, STARTS, 3, table, rows, columns});
    putchar('\n');
    show_bars(rows, bars, FURTHEST, 3);
    say("\nIt is Σ_i cos(k / 10000^(2i/d)), since sin a sin b + cos a cos b = cos(a − b). And PE(p+k) is PE(p) with "
        "each "
        "pair turned by a fixed angle, a linear map that a projection can learn: \"three words before me\".");
    return true;
}

/* The weights of two equal words, before and after. */
static void tell_twins(const state *s, int kind)
{
    int first, second;
    if (find_twins(s, &first, &second))
        sayf("\nThe two \"%s\" are told apart: from \"%s\" at 0 their weights are %.3f and %.3f.", s->words.word[first],
             s->words.word[0], s->weights[kind][first], s->weights[kind][second]);
}

static bool sinusoidal_page(void *context, at_error *error)
{
    const state *s = context;
    show_line("x_p + PE(p), then attention as before\n");
    if (!show_kind(s, SINUSOIDAL, error))
        return false;
    tell_twins(s, SINUSOIDAL);
    say("\nA score is now (x_i + PE_i)·(x_j + PE_j): word with word, word with position, and position with position. "
        "Nothing is learned, and any position has its vector, also beyond the longest sentence of the training.");
    return true;
}

static bool learned_page(void *context, at_error *error)
{
    const state *s = context;
    show_line("x_p + P_p, row p of a table that is learned like the words\n");
    say("The table here is not trained but drawn from the seed, so its map says nothing yet; training moves the rows "
        "until it does.\n");
    if (!show_kind(s, LEARNED, error))
        return false;
    tell_twins(s, LEARNED);
    say("\nAs good as the sinusoids where it was trained. A position after the last row (--positions) has no vector at "
        "all.");
    return true;
}

static bool shaw_page(void *context, at_error *error)
{
    const state *s = context;
    const char *const columns[OFFSETS] = {"o = -2", "-1", "0", "1", "2"};
    (void)error;
    double offsets[MOST * MOST], P[MOST * OFFSETS];
    show_line("e_ij = q_i·(k_j + aK_ij) / √d,   aK_ij = wK[clip(j − i, −2, 2)]");
    show_line("z_i = Σ_j w_ij (v_j + aV_ij)\n");
    say("Relative positions: a learned vector for each distance, up to a longest. The row of wK that i (down) and j "
        "(across) use:\n");
    for (int i = 0; i < s->n * s->n; i++)
        offsets[i] = clipped(i % s->n - i / s->n);
    show_matrix(offsets, s->n, s->n, 0, s->words.word);
    say("\nThe vectors aK_ij would be n × n × d numbers. They are never needed: q_i has the product q_i·wK[o] with "
        "each of "
        "the five rows once, P = Q wKᵀ, and e_ij looks its term up in P:\n");
    for (int i = 0; i < s->n * OFFSETS; i++)
        P[i] = shaw_product(s->X + i / OFFSETS * SIZE, i % OFFSETS - REACH);
    show_table(&(demo_table){s->n, OFFSETS, 2, P, s->words.word, columns});
    return true;
}

static bool shaw_weights_page(void *context, at_error *error)
{
    say("Our wK is made up to like the word before (o = -1), so that is where the weight goes:\n");
    if (!show_kind(context, SHAW, error))
        return false;
    say("\nThe values work the same way: the weights of a row are added up by clipped offset, five sums, and "
        "multiplied by "
        "wV. The heads of a layer share wK and wV, and keys or values alone will do (shaw:2:keys, shaw:2:values).");
    return true;
}

static bool rope_page(void *context, at_error *error)
{
    enum { PLACES = 3, FURTHEST = 5 };
    const state *s = context;
    static const int starts[PLACES] = {0, 10, 100};
    const char *const rows[FURTHEST] = {"j − i = 0", "1", "2", "3", "4"}, *const columns[] = {"i = 0", "i = 10",
                                                                                              "i = 100"};
    double table[FURTHEST * PLACES], a[SIZE], b[SIZE];
    show_line("q_i and k_j: each pair of numbers (2m, 2m+1) is turned by the angle");
    show_line("position · 10000^(−2m/d), then e_ij = q_i·k_j / √d\n");
    sayf("The sinusoids again, but as rotations of query and key inside attention. A rotation by i and one by j leave "
         "only j − i in the product. \"%s\" with itself at three places:\n",
         s->words.word[0]);
    for (int k = 0; k < FURTHEST; k++)
        for (int at = 0; at < PLACES; at++) {
            rotate(s->X, starts[at], a);
            rotate(s->X, starts[at] + k, b);
            table[k * PLACES + at] = inner(a, b, SIZE) / sqrt(SIZE);
        }
    show_table(&(demo_table){FURTHEST, PLACES, 3, table, rows, columns});
    putchar('\n');
    if (!show_kind(s, ROPE, error))
        return false;
    say("\nNothing is learned and nothing is added; the values are not turned.");
    return true;
}

static bool alibi_page(void *context, at_error *error)
{
    enum { DRAWN = 3, LONG = 9 };
    const state *s = context;
    static const int heads[DRAWN] = {1, 3, 5};
    static const char *const numbers[LONG] = {"0", "1", "2", "3", "4", "5", "6", "7", "8"};
    double slopes[HEADS], zeros[LONG * HEADS] = {0}, all[HEADS * LONG * LONG];
    float drawn[DRAWN][LONG * LONG];
    const demo_call call = {.settings = {.score = "scaled", .position = "alibi", .heads = HEADS},
                            .queries = LONG,
                            .keys = LONG,
                            .width = HEADS,
                            .value_width = HEADS,
                            .query = zeros,
                            .key = zeros,
                            .value = zeros,
                            .weights = all};
    if (!demo_attend(&call, error))
        return false;
    for (int h = 0; h < HEADS; h++)
        slopes[h] = slope(h + 1, HEADS);
    for (int m = 0; m < DRAWN; m++)
        for (int i = 0; i < LONG * LONG; i++)
            drawn[m][i] = (float)all[(heads[m] - 1) * LONG * LONG + i];
    show_line("e_ij = q_i·k_j / √d − slope_h · |i − j|,   slope_h = 2^(−8h/H),  h = 1 … H\n");
    say("A penalty for distance, nothing else; each head has its own. The slopes of H = 8 heads:\n");
    show_vector("slope", slopes, HEADS);
    say("\nWithout any words (all q·k = 0), heads 1, 3 and 5 on nine positions:\n");
    show_maps(&(demo_maps){.count = DRAWN,
                           .rows = LONG,
                           .columns = LONG,
                           .values = {drawn[0], drawn[1], drawn[2]},
                           .titles = {"head 1", "head 3", "head 5"},
                           .row_names = numbers,
                           .column_names = numbers});
    say("\nand the sentence in head 1:\n");
    if (!show_kind(s, ALIBI, error))
        return false;
    say("\nIt works on texts longer than those of the training: far is far.");
    return true;
}

static bool beside_page(void *context, at_error *error)
{
    const state *s = context;
    double rows[KINDS * MOST];
    const int last = s->n - 1;
    for (int half = 0; half < 2; half++) {
        const int k = 3 * half;
        show_maps(&(demo_maps){.count = 3,
                               .rows = s->n,
                               .columns = s->n,
                               .values = {s->shown[k], s->shown[k + 1], s->shown[k + 2]},
                               .titles = {names[k], names[k + 1], names[k + 2]},
                               .row_names = s->words.word,
                               .column_names = places});
        putchar('\n');
    }
    sayf("The row of the last word, \"%s\":\n", s->words.word[last]);
    for (int k = 0; k < KINDS; k++)
        memcpy(rows + k * s->n, s->weights[k] + last * s->n, (size_t)s->n * sizeof *rows);
    return show_heat(rows, KINDS, s->n, names, s->words.word, error);
}

static bool choice_page(void *context, at_error *error)
{
    (void)context, (void)error;
    show_line("position    where           learned            knows         longer texts");
    show_line("none        -               -                  nothing       yes");
    show_line("sinusoidal  added to words  -                  p             in principle");
    show_line("learned     added to words  a row for each p   p             no vector");
    show_line("shaw:K      keys, values    2K + 1 rows each   j − i to ±K   yes");
    show_line("rope        query, key      -                  j − i         in principle");
    show_line("alibi       score           -                  |i − j|       yes");
    show_line("t5          score           a number a bucket  j − i roughly yes");
    say("\nAdded positions travel with the words through all layers and mix with them; relative ones are given anew in "
        "every layer and stay the same wherever a phrase stands. A causal window knows something of order by itself: "
        "the i-th word sees i words.");
    return true;
}

const cli_demo demo_positions = {
    .name = "positions",
    .line = "none, sinusoidal, learned, Shaw, RoPE and ALiBi, drawn",
    .title = "Positions: how attention learns about order",
    .input = "a sentence of 2 to 8 words",
    .example = "\"a rose is a rose\"",
    .size = sizeof(state),
    .begin = begin,
    .pages = {{"Without positions", none_page},
              {"Sinusoids", sinusoids_page},
              {"What the waves are good for", distance_page},
              {"sinusoidal: added to the words", sinusoidal_page},
              {"learned: added to the words", learned_page},
              {"Shaw: vectors between words", shaw_page},
              {"Shaw: the weights", shaw_weights_page},
              {"RoPE: rotations", rope_page},
              {"ALiBi: a penalty for distance", alibi_page},
              {"Side by side", beside_page},
              {"Which knows what", choice_page}},
};
