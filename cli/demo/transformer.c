/* attend demo transformer: a transformer learns to write words backwards; then every head of every layer is drawn.
 *
 * The words are random letters. Those kept for the test are never trained on. */
#include <math.h>
#include <string.h>

#include "demo/demo.h"
#include "maps.h"
#include "tasks.h"

enum { TRAIN = 5000, TEST = 500, LEAST = 3, MOST = 8, SHARE_KEPT = 10 };

typedef struct state {
    const demo_options *options;
    demo_pairs train, test;
    demo_trained trained;
    char word[MOST + 1]; /* the example */
    at_maps *maps;
    int right, shown; /* of the test: right ones, wrong ones shown */
} state;

static void reverse(const char *word, char *out)
{
    const size_t length = strlen(word);
    for (size_t i = 0; i < length; i++)
        out[i] = word[length - 1 - i];
    out[length] = 0;
}

/* A word is for the test or for training, and never for both. */
static bool is_kept(const char *word)
{
    int sum = 0;
    for (int i = 0; word[i]; i++)
        sum += (i + 1) * (word[i] - 'a');
    return sum % SHARE_KEPT == 0;
}

static void draw_word(uint64_t *random, bool kept, char *word)
{
    do {
        const int length = LEAST + task_draw(random, MOST - LEAST + 1);
        for (int i = 0; i < length; i++)
            word[i] = (char)('a' + task_draw(random, 26));
        word[length] = 0;
    } while (is_kept(word) != kept);
}

static bool begin(void *context, const demo_options *options, at_error *error)
{
    state *s = context;
    const char *word = options->input ? options->input : "listen";
    const size_t length = strlen(word);
    s->options = options;
    if (length < LEAST || length > MOST || strspn(word, "abcdefghijklmnopqrstuvwxyz") != length)
        return fail(error, AT_USAGE, "'%s' is not a word of %d to %d letters from a to z, which this demo takes", word,
                    LEAST, MOST);
    strcpy(s->word, word);
    if (!demo_pairs_make(&s->train, TRAIN, error) || !demo_pairs_make(&s->test, TEST, error))
        return false;
    uint64_t random = task_mix(options->common.seed);
    for (int i = 0; i < TRAIN + TEST; i++) {
        char(*pair)[DEMO_LINE] = i < TRAIN ? s->train.text[i] : s->test.text[i - TRAIN];
        draw_word(&random, i >= TRAIN, pair[0]);
        reverse(pair[0], pair[1]);
    }
    return true;
}

static void end(void *context)
{
    state *s = context;
    demo_pairs_free(&s->train);
    demo_pairs_free(&s->test);
    demo_trained_free(&s->trained);
    at_maps_free(s->maps);
}

/* ---- The pages ------------------------------------------------------------------------------------------------ */

static bool task(void *context, at_error *error)
{
    const state *s = context;
    (void)error;
    sayf("Words of %d to %d random letters, written backwards. To write its first letter the model must look at the "
         "last one it read, wherever that is; nothing is read in order, so it has to know positions. %d words to "
         "learn from, and %d others for the test. Some of them:\n",
         LEAST, MOST, TRAIN, TEST);
    for (int i = 0; i < 5; i++)
        show_line("%s -> %s", s->train.text[i][0], s->train.text[i][1]);
    return true;
}

static bool model_page(void *context, at_error *error)
{
    (void)context, (void)error;
    say("There is no recurrence: all letters are computed at once, and only attention moves something from one "
        "position to another (Vaswani et al. 2017).\n");
    show_line("x_p = √d E[letter] + PE(p)          a letter, and where it is");
    show_line("Attention(Q, K, V) = softmax(Q Kᵀ / √D) V");
    show_line("head_h = Attention(Q W_h, K W'_h, V W''_h)     D = d / heads numbers each");
    show_line("MultiHead(Q, K, V) = [head_1; ...; head_H] W_O");
    show_line("FFN(x) = W_2 relu(W_1 x + b_1) + b_2\n");
    show_line("encoder layer   x + MultiHead(x, x, x)    self-attention: Q, K, V from x");
    show_line("                x + FFN(x)");
    show_line("decoder layer   y + MultiHead(y, y, y)    each row sees itself and those above");
    show_line("                y + MultiHead(y, x, x)    cross-attention: K, V from x");
    show_line("                y + FFN(y)");
    show_line("output          softmax(y Eᵀ)             the next letter\n");
    say("Each of these sums normalises first: y + MultiHead(LN(y), ...). The three kinds of attention are the maps of "
        "the pages 5 to 7.");
    return true;
}

static bool learn(void *context, at_error *error)
{
    state *s = context;
    const at_line line = {s->word, strlen(s->word)};
    say("Each update takes 50 words. The loss is per letter; a guess among 26 letters costs log 26 = 3.26.\n");
    fflush(stdout);
    if (!demo_train(&demo_transformer, s->options, &s->train,
                    "source-vocab=char target-vocab=char batch-size=50 learning-rate=0.004 schedule=cosine "
                    "report-every=100",
                    &s->trained, error))
        return false;
    s->maps = at_maps_new(s->trained.translator, &(at_search_settings){0}, &line, NULL, error);
    return s->maps;
}

static bool count_right(void *context, int64_t line, const at_result *result)
{
    enum { EXAMPLES = 5 };
    state *s = context;
    const char *word = s->test.text[line][0], *wanted = s->test.text[line][1], *got = result->best[0].text;
    const bool right = strcmp(got, wanted) == 0;
    s->right += right;
    if (right && line < EXAMPLES)
        show_line("%s -> %s", word, wanted);
    else if (!right && s->shown++ < 3)
        show_line("%s -> %.12s   (wrong: %s)", word, got, wanted);
    return true;
}

static bool test(void *context, at_error *error)
{
    state *s = context;
    at_line lines[TEST];
    for (int i = 0; i < TEST; i++)
        lines[i] = (at_line){s->test.text[i][0], strlen(s->test.text[i][0])};
    say("Words it has never seen:\n");
    if (!at_translate(s->trained.translator, &(at_search_settings){0}, lines, TEST, count_right, s, error))
        return false;
    printf("\n%d of %d such words are right to the last letter: %.1f%%.\n\n", s->right, TEST, 100.0 * s->right / TEST);
    show_line("%s -> %.20s", s->word, at_maps_target(s->maps));
    return true;
}

/* The heads of each layer side by side, as many as fit into a line. */
static void show_kind(const state *s, at_attention_kind kind)
{
    const cli_maps found = maps_of_kind(s->maps, kind);
    for (int l = 0; l < found.layers; l++) {
        const at_map *map = found.map[l];
        const int fit = (DEMO_WIDTH - 10) / (2 * (int)map->columns + 3), most = fit < DEMO_MAPS ? fit : DEMO_MAPS;
        for (int from = 0; from < map->heads; from += most) {
            char titles[DEMO_MAPS][40];
            demo_maps shown = {.count = map->heads - from < most ? map->heads - from : most,
                               .rows = map->rows,
                               .columns = map->columns,
                               .row_names = map->row_names,
                               .column_names = map->column_names};
            for (int i = 0; i < shown.count; i++) {
                shown.values[i] = map->weights + (from + i) * map->rows * map->columns;
                snprintf(titles[i], sizeof titles[i], "head %d.%d", map->layer, from + i + 1);
                shown.titles[i] = titles[i];
            }
            if (l + from > 0)
                putchar('\n');
            show_maps(&shown);
        }
    }
}

static bool encoder_page(void *context, at_error *error)
{
    const state *s = context;
    (void)error;
    sayf("softmax(Q Kᵀ / √D) of each head for \"%s\"; head 2.1 is the first of layer 2. A row is a letter, and its "
         "shades are the weights of all letters it reads, █ for 1; they sum to 1:\n",
         s->word);
    show_kind(s, AT_ENCODER_ATTENTION);
    return true;
}

static bool decoder_page(void *context, at_error *error)
{
    const state *s = context;
    (void)error;
    say("The decoder reads what it has written, <s> before the first letter. A row sees itself and what is before it: "
        "the letters to come are behind the causal mask, and above the diagonal all is 0.\n");
    show_kind(s, AT_DECODER_ATTENTION);
    return true;
}

static bool cross_page(void *context, at_error *error)
{
    const state *s = context;
    (void)error;
    say("From each letter to be written (down) to the word that was read (across). A head that writes backwards "
        "looks from the last letter to the first, along the other diagonal:\n");
    show_kind(s, AT_CROSS_ATTENTION);
    return true;
}

/* What a head does, as means over its rows: the entropy, the weight of the position itself, that of the one before it,
 * and that of the mirrored one, n - 1 - t, which a decoder has not. The row of the end is left out. */
static void measure_head(const at_map *map, const float *weights, double row[4])
{
    const int64_t n = map->kind == AT_CROSS_ATTENTION ? map->rows - 1 : map->rows;
    memset(row, 0, 4 * sizeof *row);
    for (int64_t t = 0; t < n; t++) {
        const float *w = weights + t * map->columns;
        const int64_t mirrored = n - 1 - t;
        for (int64_t j = 0; j < map->columns; j++)
            row[0] -= w[j] > 0 ? (double)w[j] * log((double)w[j]) / (double)n : 0;
        row[1] += t < map->columns ? (double)w[t] / (double)n : 0;
        row[2] += t > 0 && t - 1 < map->columns ? (double)w[t - 1] / (double)n : 0;
        row[3] += mirrored < map->columns ? (double)w[mirrored] / (double)n : 0;
    }
    row[3] = map->kind == AT_DECODER_ATTENTION ? NAN : row[3];
}

static bool heads_page(void *context, at_error *error)
{
    enum { HEADS = 24 };
    const state *s = context;
    const char *const columns[] = {"entropy", "itself", "the one before", "mirrored"};
    char names[HEADS][40];
    const char *rows[HEADS];
    double table[HEADS * 4], best = 0;
    int count = 0, found = -1;
    const at_map *map;
    (void)error;
    say("The same maps in numbers, means over the rows: H = -Σ_j w_j log w_j (0 for one letter, log n for all n "
        "alike), and how much weight is on the position of the row itself, on the one before it, and on the mirrored "
        "one, n - 1 - t, where the letter to be written is:\n");
    for (int i = 0; (map = at_maps_at(s->maps, i)); i++)
        for (int h = 0; h < map->heads && count < HEADS; h++, count++) {
            measure_head(map, map->weights + h * map->rows * map->columns, table + 4 * count);
            snprintf(names[count], sizeof names[count], "%s %d.%d", kind_name(map->kind), map->layer, h + 1);
            rows[count] = names[count];
            if (map->kind == AT_CROSS_ATTENTION && table[4 * count + 3] > best) {
                best = table[4 * count + 3];
                found = count;
            }
        }
    show_table(&(demo_table){count, 4, 2, table, rows, columns});
    if (found >= 0)
        sayf("\nThe head that copies is %s: %.0f%% of its weight is on the letter to be written. Nobody told it to; "
             "with another --seed it may be another head.",
             rows[found], 100 * best);
    return true;
}

static const demo_model models[] = {
    {"transformer", "hidden=32 ffn=64 layers=2 heads=2 dropout=0 norm=pre", "updates=1000 warmup=100 label-smoothing=0"}, {0}};

const cli_demo demo_transformer = {
    .name = "transformer",
    .line = "listen -> netsil: every head of a transformer drawn",
    .title = "The transformer: attention and nothing else",
    .input = "a word of 3 to 8 letters to write backwards",
    .example = "mirror",
    .models = models,
    .size = sizeof(state),
    .begin = begin,
    .end = end,
    .pages = {{"The task", task},
              {"The model", model_page},
              {"Learning", learn},
              {"Words never seen", test},
              {"Encoder self-attention", encoder_page},
              {"Decoder self-attention", decoder_page},
              {"Cross-attention", cross_page},
              {"What each head does", heads_page}},
};
