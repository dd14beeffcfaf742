/* attend demo windows: global, local-m and local-p on one sentence.
 *
 * A word's vector is made of its spelling: SIZE numbers ±1, so that a word has the score √SIZE with itself and a smaller
 * one with the others. A query has one number more, from which local-p predicts its position. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "demo/demo.h"

enum { MOST = 8, WIDEST = 10, SIZE = 8, WIDTH = SIZE + 1, D = 2, KINDS = 3, GLOBAL = 0, LOCAL_M, LOCAL_P };

static const double v_p = 4; /* local-p: p = S σ(v_p tanh(W_p q)), W_p takes the query's last number */
static const char *const positions[MOST] = {"0", "1", "2", "3", "4", "5", "6", "7"};
static const char *const windows[KINDS] = {"global", "local-m:2", "local-p:2"};

typedef struct state {
    demo_words source, target;
    int S, T;
    int needed[MOST]; /* the source word that target word t is */
    double q[MOST * WIDTH], k[MOST * WIDTH];
    double p[MOST];                     /* of local-p */
    double scores[MOST * MOST];         /* [T,S] */
    double weights[KINDS][MOST * MOST]; /* by hand */
    float shown[KINDS][MOST * MOST];
    char marks[KINDS][MOST * MOST];
} state;

/* ---- The words ------------------------------------------------------------------------------------------------ */

/* The first source word of that spelling which no target word has taken yet, or else the last; -1: none. */
static int find_needed(const state *s, int t)
{
    int found = -1;
    for (int j = 0; j < s->S; j++) {
        bool taken = false;
        if (strcmp(s->source.word[j], s->target.word[t]) != 0)
            continue;
        for (int i = 0; i < t; i++)
            taken = taken || s->needed[i] == j;
        found = j;
        if (!taken)
            break;
    }
    return found;
}

/* The number from which local-p predicts: about where the needed word is, 0.3 nearer to the middle, so that it is no
 * whole number. The prediction stays off the ends, as σ does. */
static double position_number(const state *s, int t)
{
    const double aim = s->needed[t] + (2 * s->needed[t] < s->S ? 0.3 : -0.3), share = aim / s->S;
    const double logit = log(share / (1 - share)), furthest = 3.5;
    return atanh(fmax(-furthest, fmin(furthest, logit)) / v_p);
}

static bool read_words(state *s, const char *input, at_error *error)
{
    const char *slash = strchr(input, '/');
    char source[DEMO_WORDS * DEMO_WORD];
    const size_t length = slash ? (size_t)(slash - input) : strlen(input);
    if (length >= sizeof source)
        return fail(error, AT_USAGE, "there are more than %d words, the most that the demo takes", MOST);
    snprintf(source, sizeof source, "%.*s", (int)length, input);
    if (!input_words(source, 2, MOST, WIDEST, &s->source, error) ||
        !input_words(slash ? slash + 1 : source, 1, MOST, WIDEST, &s->target, error))
        return false;
    s->S = s->source.count;
    s->T = s->target.count;
    for (int t = 0; t < s->T; t++)
        if ((s->needed[t] = find_needed(s, t)) < 0)
            return fail(error, AT_USAGE,
                        "'%s' is not in the source; behind the slash stand words of the source, in the order in which "
                        "they are written",
                        s->target.word[t]);
    return true;
}

/* ---- By hand -------------------------------------------------------------------------------------------------- */

/* The span of a window around p, from the first key to the last. */
static bool is_inside(int kind, double p, int j)
{
    return kind == GLOBAL || fabs(j - p) <= D;
}

static double centre(const state *s, int kind, int t)
{
    return kind == LOCAL_P ? s->p[t] : t;
}

static double gauss(double distance)
{
    const double deviation = D / 2.0;
    return exp(-distance * distance / (2 * deviation * deviation));
}

/* The softmax over the keys of the window, zeros outside. */
static void softmax_inside(const state *s, int kind, int t, double *w)
{
    double top = -INFINITY, sum = 0;
    for (int j = 0; j < s->S; j++)
        if (is_inside(kind, centre(s, kind, t), j))
            top = fmax(top, s->scores[t * s->S + j]);
    for (int j = 0; j < s->S; j++)
        sum += w[j] = is_inside(kind, centre(s, kind, t), j) ? exp(s->scores[t * s->S + j] - top) : 0;
    for (int j = 0; j < s->S; j++)
        w[j] = sum > 0 ? w[j] / sum : 0;
}

static void fill_in(state *s)
{
    for (int j = 0; j < s->S; j++)
        input_vector(s->source.word[j], SIZE, s->k + j * WIDTH); /* the last number of a key is 0 */
    for (int t = 0; t < s->T; t++) {
        double *q = s->q + t * WIDTH;
        input_vector(s->target.word[t], SIZE, q);
        q[SIZE] = position_number(s, t);
        s->p[t] = s->S / (1 + exp(-v_p * tanh(q[SIZE])));
        for (int j = 0; j < s->S; j++) {
            double sum = 0;
            for (int i = 0; i < WIDTH; i++)
                sum += q[i] * s->k[j * WIDTH + i];
            s->scores[t * s->S + j] = sum / sqrt(WIDTH);
        }
    }
    for (int kind = 0; kind < KINDS; kind++)
        for (int t = 0; t < s->T; t++) {
            double *w = s->weights[kind] + t * s->S;
            softmax_inside(s, kind, t, w);
            for (int j = 0; j < s->S; j++) {
                const double p = centre(s, kind, t);
                w[j] *= kind == LOCAL_P ? gauss(j - p) : 1;
                char *mark = &s->marks[kind][t * s->S + j];
                *mark = !is_inside(kind, p, j) ? '.' : kind != GLOBAL && j == lrint(p) ? '|' : ' ';
            }
        }
}

static bool begin(void *context, const demo_options *options, at_error *error)
{
    state *s = context;
    static const double W_p[WIDTH] = {[SIZE] = 1};
    if (!read_words(s,
                    options->input ? options->input
                                   : "ich habe gestern ein buch gelesen / ich habe gelesen ein buch gestern",
                    error))
        return false;
    fill_in(s);
    for (int kind = 0; kind < KINDS; kind++) {
        double returned[MOST * MOST];
        demo_call call = {.settings = {.score = "scaled", .window = windows[kind]},
                          .queries = s->T,
                          .keys = s->S,
                          .width = WIDTH,
                          .query = s->q,
                          .key = s->k,
                          .weights = returned};
        if (kind == LOCAL_P) {
            call.parameters[0] = (demo_parameter){"Wp", 1, WIDTH, W_p};
            call.parameters[1] = (demo_parameter){"vp", 0, 1, &v_p};
        }
        if (!demo_attend(&call, error) || !demo_agrees(s->weights[kind], returned, s->T * s->S, 1e-5, error))
            return false;
        for (int i = 0; i < s->T * s->S; i++)
            s->shown[kind][i] = (float)returned[i];
    }
    return true;
}

/* ---- The pages ------------------------------------------------------------------------------------------------ */

static bool task_page(void *context, at_error *error)
{
    const state *s = context;
    char text[MOST * DEMO_WORD * 2] = "";
    size_t used = 0;
    (void)error;
    say("A decoder writes words one after another, and for each it looks back at the source. Which of the source "
        "positions may it see? A window is the answer: an interval of positions for every step.\n");
    for (int j = 0; j < s->S; j++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s_%d", j ? " " : "", s->source.word[j], j);
    show_line("source         %s", text);
    for (int t = used = 0; t < s->T; t++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s_%d", t ? " " : "", s->target.word[t], t);
    show_line("to be written  %s\n", text);
    say("Positions count from 0. The decoder writes the same words in another order, and each should find its own in "
        "the "
        "source:\n");
    for (int t = 0; t < s->T; t++)
        show_line("step t = %d, %s, needs position %d%s", t, s->target.word[t], s->needed[t],
                  abs(s->needed[t] - t) > D ? " (far away)" : "");
    say("\nThe vectors are made up, eight numbers 1 or -1 from the spelling of each word, and the score is scaled.");
    return true;
}

static void show_one(const state *s, int kind)
{
    const demo_maps map = {.count = 1,
                           .rows = s->T,
                           .columns = s->S,
                           .values = {s->shown[kind]},
                           .marks = {s->marks[kind]},
                           .row_names = s->target.word,
                           .column_names = positions};
    show_maps(&map);
}

static bool global_page(void *context, at_error *error)
{
    const state *s = context;
    show_line("all of 0 … S−1,   S = %d source words\n", s->S);
    say("Every step (down) sees every source word (across):\n");
    if (!show_weights(s->shown[GLOBAL], s->T, s->S, s->target.word, s->source.word, error))
        return false;
    say("\nNothing can be missed. But every step computes S scores, and a long text offers many wrong words that each "
        "take a little of the weight.");
    return true;
}

static bool monotonic_page(void *context, at_error *error)
{
    const state *s = context;
    int missed = 0;
    (void)error;
    show_line("p_t = t,   keys from p_t − D to p_t + D,   D = %d\n", D);
    say("Local attention, monotonic: assume that source and target run in parallel, and look only near the step's own "
        "position. | marks p_t, · is outside of the window:\n");
    show_one(s, LOCAL_M);
    for (int t = 0; t < s->T; t++)
        if (abs(s->needed[t] - t) > D) {
            const int first = t > D ? t - D : 0, last = t + D < s->S ? t + D : s->S - 1;
            char seen[40] = "nothing";
            if (first <= last)
                snprintf(seen, sizeof seen, "only %d to %d", first, last);
            sayf("%s%s (t = %d) needs position %d but sees %s.", missed++ ? "" : "\n", s->target.word[t], t,
                 s->needed[t], seen);
        }
    if (!missed)
        say("\nHere every word is within reach, at the cost of 2D + 1 scores for a step, however long the source is.");
    return true;
}

static bool predicted_page(void *context, at_error *error)
{
    const state *s = context;
    const char *const columns[] = {"W_p h_t", "tanh", "v_p·tanh", "σ", "p_t", "needed"};
    double table[MOST * 6];
    (void)error;
    show_line("p_t = S · σ(v_p · tanh(W_p h_t)),   keys with |s − p_t| ≤ D\n");
    sayf("Local attention, predictive: a small network reads the decoder's state h_t (the query) and predicts where to "
         "look. σ is between 0 and 1, so p_t is between 0 and S = %d. W_p and v_p are learned; here W_p takes one "
         "number "
         "of h_t and v_p = %g:\n",
         s->S, v_p);
    for (int t = 0; t < s->T; t++) {
        const double h = s->q[t * WIDTH + SIZE], x = v_p * tanh(h);
        const double row[] = {h, tanh(h), x, 1 / (1 + exp(-x)), s->p[t], s->needed[t]};
        memcpy(table + 6 * t, row, sizeof row);
    }
    show_table(&(demo_table){s->T, 6, 3, table, s->target.word, columns});
    say("\np_t is a real number, not a position: a jump from one position to the next would have no gradient.");
    return true;
}

/* The step that goes furthest. */
static int far_step(const state *s)
{
    int far = 0;
    for (int t = 1; t < s->T; t++)
        if (abs(s->needed[t] - t) > abs(s->needed[far] - far))
            far = t;
    return far;
}

/* The Gaussian around p over the source positions, EACH columns apart: dots for the curve, bars at the keys of the
 * window, and the line p. */
static void draw_gauss(const state *s, double p)
{
    enum { EACH = 8, HEIGHT = 7 };
    const int columns = (s->S - 1) * EACH + 1, middle = (int)lrint(p * EACH);
    for (int row = HEIGHT; row >= 0; row--) {
        int blanks = DEMO_INDENT + 1;
        for (int c = 0; c < columns; c++, blanks++) {
            const int height = (int)lrint(HEIGHT * gauss((double)c / EACH - p)), key = c / EACH;
            const bool bar = c % EACH == 0 && is_inside(LOCAL_P, p, key) && row <= height;
            const char *glyph = bar ? "█" : c == middle ? "│" : row == height ? "·" : NULL;
            if (!glyph)
                continue;
            printf("%*s%s", blanks, "", glyph);
            blanks = -1;
        }
        putchar('\n');
    }
    for (int j = 0; j < s->S; j++)
        printf("%*d", j ? EACH : DEMO_INDENT + 2, j);
    putchar('\n');
}

static bool gauss_page(void *context, at_error *error)
{
    const state *s = context;
    const int t = far_step(s);
    const char *const columns[] = {"s", "score", "softmax", "Gaussian", "weight"};
    double table[MOST * 5], inside[MOST], sum = 0;
    (void)error;
    show_line("a_t(s) = softmax over the window(e_ts) · exp(−(s − p_t)² / (2σ²)),  σ = D/2\n");
    sayf("The window has edges, and p_t gets no gradient from them. A Gaussian around p_t gives it one: the nearer a "
         "key "
         "is to p_t, the more of its weight it keeps. Step t = %d, %s, with p_t = %.2f (the line):\n",
         t, s->target.word[t], s->p[t]);
    draw_gauss(s, s->p[t]);
    putchar('\n');
    softmax_inside(s, LOCAL_P, t, inside);
    for (int j = 0; j < s->S; j++) {
        const bool in = is_inside(LOCAL_P, s->p[t], j);
        const double row[] = {j, s->scores[t * s->S + j], in ? inside[j] : NAN, in ? gauss(j - s->p[t]) : NAN,
                              s->weights[LOCAL_P][t * s->S + j]};
        memcpy(table + 5 * j, row, sizeof row);
        sum += row[4];
    }
    show_table(&(demo_table){s->S, 5, 3, table, s->source.word, columns});
    sayf("\nEmpty: outside of the window. The products are not normalised again, so the weights add up to %.3f, not to "
         "1.",
         sum);
    return true;
}

static bool beside_page(void *context, at_error *error)
{
    const state *s = context;
    const char *const columns[] = {"global", "local-m", "local-p"};
    double found[MOST * KINDS];
    (void)error;
    show_maps(&(demo_maps){.count = KINDS,
                           .rows = s->T,
                           .columns = s->S,
                           .values = {s->shown[GLOBAL], s->shown[LOCAL_M], s->shown[LOCAL_P]},
                           .titles = {"global", "local-m:2", "local-p:2"},
                           .marks = {s->marks[GLOBAL], s->marks[LOCAL_M], s->marks[LOCAL_P]},
                           .row_names = s->target.word,
                           .column_names = positions});
    say("\n| marks the key nearest to p_t, · is outside of the window. The weight on the word that each step needs:\n");
    for (int t = 0; t < s->T; t++)
        for (int kind = 0; kind < KINDS; kind++)
            found[t * KINDS + kind] = s->weights[kind][t * s->S + s->needed[t]];
    show_table(&(demo_table){s->T, KINDS, 3, found, s->target.word, columns});
    return true;
}

static bool others_page(void *context, at_error *error)
{
    const state *s = context;
    static const char *const kinds[] = {"causal", "sliding:1", "local-m:2"};
    float shown[KINDS][MOST * MOST];
    char marks[KINDS][MOST * MOST];
    for (int i = 0; i < KINDS; i++) {
        double w[MOST * MOST];
        const demo_call call = {.settings = {.score = "scaled", .window = kinds[i]},
                                .queries = s->S,
                                .keys = s->S,
                                .width = WIDTH,
                                .query = s->k,
                                .key = s->k,
                                .weights = w};
        if (!demo_attend(&call, error))
            return false;
        for (int j = 0; j < s->S * s->S; j++) {
            shown[i][j] = (float)w[j];
            marks[i][j] = w[j] > 0 ? ' ' : '.';
        }
    }
    say("Every window of the operator is one interval of keys per query, so it takes two numbers and no mask:\n");
    show_line("global      all                       causal     0 to i");
    show_line("sliding:W   i − W to i + W            local-m:D  i − D to i + D");
    show_line("local-p:D   p_i − D to p_i + D, with the Gaussian");
    say("\nThe source with itself, self-attention under three of them:\n");
    show_maps(&(demo_maps){.count = KINDS,
                           .rows = s->S,
                           .columns = s->S,
                           .values = {shown[0], shown[1], shown[2]},
                           .titles = {"causal", "sliding:1", "local-m:2"},
                           .marks = {marks[0], marks[1], marks[2]},
                           .row_names = s->source.word,
                           .column_names = positions});
    sayf("\nScores per query: %d under global, at most %d under D = %d. For a source of 1000 words 1000 and %d.", s->S,
         2 * D + 1, D, 2 * D + 1);
    return true;
}

const cli_demo demo_windows = {
    .name = "windows",
    .line = "global, local-m and local-p side by side, with p_t and Gaussian",
    .title = "Windows: where a step may look",
    .input = "2 to 8 words, and behind a slash the order in which they are written",
    .example = "\"das buch lese ich / ich lese das buch\"",
    .size = sizeof(state),
    .begin = begin,
    .pages = {{"Reading here, writing there", task_page},
              {"global", global_page},
              {"local-m: near the same position", monotonic_page},
              {"local-p: near a predicted position", predicted_page},
              {"The Gaussian of local-p", gauss_page},
              {"Side by side", beside_page},
              {"All windows are intervals", others_page}},
};
