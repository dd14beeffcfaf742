/* attend demo step: one decoding step of Bahdanau's model with every number.
 *
 * A model with H = E = A = L = 6 learns sentences of a small grammar. The annotations are the library's (at_encode); from
 * them the steps are computed here, with the parameters of the model file, and must agree with the attention operator,
 * with the weights of at_maps, and with the log-probability of the translation. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "demo/demo.h"
#include "tasks.h"

enum { N = 6, WORDS = 5, STEPS = 16, MOST_UNITS = 40, SPECIALS = 4, TRAIN = 256, REPEATS = 25 };

/* ---- The grammar ---------------------------------------------------------------------------------------------- */

enum { SUBJECTS = 3, VERBS = 4, ADJECTIVES = 4, NOUNS = 6, SENTENCES = SUBJECTS * VERBS * ADJECTIVES * NOUNS };

static const char *const subjects[SUBJECTS][2] = {{"i", "je"}, {"you", "tu"}, {"we", "nous"}};
static const char *const verbs[VERBS][1 + SUBJECTS] = {{"see", "vois", "vois", "voyons"},
                                                       {"want", "veux", "veux", "voulons"},
                                                       {"know", "connais", "connais", "connaissons"},
                                                       {"take", "prends", "prends", "prenons"}};
/* masculine and feminine */
static const char *const adjectives[ADJECTIVES][3] = {
    {"red", "rouge", "rouge"}, {"green", "vert", "verte"}, {"black", "noir", "noire"}, {"blue", "bleu", "bleue"}};
static const struct noun {
    const char *english, *french;
    bool feminine;
} nouns[NOUNS] = {{"car", "voiture", true}, {"house", "maison", true}, {"table", "table", true},
                  {"dog", "chien", false},  {"boat", "bateau", false}, {"book", "livre", false}};

static void write_sentence(int number, char english[DEMO_LINE], char french[DEMO_LINE])
{
    const int s = number % SUBJECTS, v = number / SUBJECTS % VERBS, a = number / SUBJECTS / VERBS % ADJECTIVES,
              n = number / SUBJECTS / VERBS / ADJECTIVES;
    const bool feminine = nouns[n].feminine;
    snprintf(english, DEMO_LINE, "%s %s the %s %s", subjects[s][0], verbs[v][0], adjectives[a][0], nouns[n].english);
    snprintf(french, DEMO_LINE, "%s %s %s %s %s", subjects[s][1], verbs[v][1 + s], feminine ? "la" : "le",
             nouns[n].french, adjectives[a][1 + feminine]);
}

/* ---- The state ------------------------------------------------------------------------------------------------ */

/* One step i: what goes in, and what comes out of it. */
typedef struct step {
    int previous;               /* y_{i-1} */
    double s[N], Ey[N];         /* s_{i-1}, E y_{i-1} */
    double query[N];            /* W_a s_{i-1} + b */
    double e[WORDS], a[WORDS];  /* scores and weights */
    double c[2 * N];            /* context */
    double r[N], z[N], n[N];    /* the gates and the candidate */
    double next[N];             /* s_i */
    double before[2 * N], t[N]; /* t~_i, t_i */
    double p[MOST_UNITS];       /* of the next word */
    int best;
} step;

typedef struct state {
    const demo_options *options;
    char source[DEMO_LINE], wanted[DEMO_LINE];
    demo_words words;
    int shown; /* the step of the pages, from 1 */
    demo_pairs pairs;
    demo_trained trained;
    at_maps *maps;
    json_t *units; /* the target's words, from id SPECIALS on */
    double h[WORDS * 2 * N], keys[WORDS * N];
    int steps;
    step step[STEPS];
} state;

static const char *word_of(const state *s, int id)
{
    static const char *const special[SPECIALS] = {"<pad>", "<unk>", "<s>", "</s>"};
    return id < SPECIALS ? special[id] : json_string_value(json_array_get(s->units, (size_t)(id - SPECIALS)));
}

/* "we want the green boat / 4": the sentence and the number of the step. */
static bool read_input(state *s, const char *input, at_error *error)
{
    const char *slash = strchr(input, '/');
    char sentence[2 * DEMO_LINE];
    snprintf(sentence, sizeof sentence, "%.*s", (int)(slash ? slash - input : (long)strlen(input)), input);
    if (!input_words(sentence, WORDS, WORDS, DEMO_WORD, &s->words, error))
        return false;
    char *end = s->source;
    for (int i = 0; i < WORDS && end < s->source + sizeof s->source; i++)
        end += snprintf(end, (size_t)(s->source + sizeof s->source - end), "%s%s", i ? " " : "", s->words.word[i]);
    for (int i = 0; i < SENTENCES; i++) {
        char english[DEMO_LINE];
        write_sentence(i, english, s->wanted);
        if (strcmp(english, s->source) == 0)
            break;
        if (i + 1 == SENTENCES)
            return fail(error, AT_USAGE,
                        "'%s' is not a sentence of this demo: i, you or we; see, want, know or take; the; red, green, "
                        "black or blue; car, house, table, dog, boat or book",
                        s->source);
    }
    s->shown = 3;
    if (slash) {
        const char *number = slash + 1 + strspn(slash + 1, " ");
        s->shown = *number >= '1' && *number <= '6' && !number[1] ? *number - '0' : 0;
        if (!s->shown)
            return fail(error, AT_USAGE, "'%s' is not a step from 1 to 6, which stands behind the slash", number);
    }
    return true;
}

static bool begin(void *context, const demo_options *options, at_error *error)
{
    state *s = context;
    int order[SENTENCES];
    s->options = options;
    if (!read_input(s, options->input ? options->input : "i want the red car", error) ||
        !demo_pairs_make(&s->pairs, REPEATS * TRAIN, error))
        return false;
    uint64_t random = task_mix(options->common.seed);
    for (int i = 0; i < SENTENCES; i++) { /* a random order; the first TRAIN are trained on */
        const int j = task_draw(&random, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < REPEATS * TRAIN; i++)
        write_sentence(order[i % TRAIN], s->pairs.text[i][0], s->pairs.text[i][1]);
    return true;
}

static void end(void *context)
{
    state *s = context;
    demo_pairs_free(&s->pairs);
    demo_trained_free(&s->trained);
    at_maps_free(s->maps);
    json_decref(s->units);
}

/* ---- The steps by hand ---------------------------------------------------------------------------------------- */

/* out += rows [first, first + count) of the parameter [rows, columns] times x; a vector is added as it is. */
static void add_product(const state *s, const char *name, int first, int count, const double *x, double *out)
{
    const at_array *w = at_tensors_get(s->trained.parameters, name);
    const float *value = w->data;
    const int columns = w->rank == 2 ? (int)w->dim[1] : 1;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < columns; k++)
            out[i] += (double)value[(first + i) * columns + k] * (w->rank == 2 ? x[k] : 1);
}

static void copy_row(const state *s, const char *name, int row, double *out)
{
    const at_array *w = at_tensors_get(s->trained.parameters, name);
    for (int k = 0; k < N; k++)
        out[k] = (double)((const float *)w->data)[row * N + k];
}

/* e_j = v_aᵀ tanh(W_a s + U_a h_j), a = softmax(e), c = Σ_j a_j h_j; the operator must return the same a and c. */
static bool attend_by_hand(const state *s, step *at, at_error *error)
{
    double v[N] = {0}, identity[N * N], weights[WORDS], context[2 * N];
    for (int i = 0; i < N * N; i++)
        identity[i] = i / N == i % N;
    add_product(s, "attention.v_a", 0, N, NULL, v);
    add_product(s, "attention.W_a.W", 0, N, at->s, at->query);
    add_product(s, "attention.W_a.b", 0, N, NULL, at->query);
    for (int j = 0; j < WORDS; j++)
        for (int k = 0; k < N; k++)
            at->e[j] += v[k] * tanh(at->query[k] + s->keys[j * N + k]);
    demo_softmax(at->e, WORDS, at->a);
    for (int j = 0; j < WORDS; j++)
        for (int k = 0; k < 2 * N; k++)
            at->c[k] += at->a[j] * s->h[j * 2 * N + k];
    const demo_call call = {.settings = {.score = "additive"},
                            .queries = 1,
                            .keys = WORDS,
                            .width = N,
                            .value_width = 2 * N,
                            .query = at->query,
                            .key = s->keys,
                            .value = s->h,
                            .parameters = {{"W", N, N, identity}, {"U", N, N, identity}, {"v", 0, N, v}},
                            .weights = weights,
                            .out = context};
    return demo_attend(&call, error) && demo_agrees(at->a, weights, WORDS, 1e-4, error) &&
           demo_agrees(at->c, context, 2 * N, 1e-4, error);
}

/* r, z = σ(W E y + U s + C c), n = tanh(W E y + U (r ∘ s) + C c), s_i = z ∘ s + (1 − z) ∘ n */
static void next_state(const state *s, step *at)
{
    double gates[3 * N] = {0}, reset[N];
    add_product(s, "decoder.W", 0, 3 * N, at->Ey, gates);
    add_product(s, "decoder.b", 0, 3 * N, NULL, gates);
    add_product(s, "decoder.C.W", 0, 3 * N, at->c, gates);
    add_product(s, "decoder.U", 0, 2 * N, at->s, gates);
    for (int k = 0; k < N; k++) {
        at->r[k] = 1 / (1 + exp(-gates[k]));
        at->z[k] = 1 / (1 + exp(-gates[N + k]));
        reset[k] = at->r[k] * at->s[k];
    }
    add_product(s, "decoder.candidate.U", 0, N, reset, gates + 2 * N);
    for (int k = 0; k < N; k++) {
        at->n[k] = tanh(gates[2 * N + k]);
        at->next[k] = at->z[k] * at->s[k] + (1 - at->z[k]) * at->n[k];
    }
}

/* t~ = U_o s + V_o E y + C_o c, t_k = max of a pair, p = softmax(W_o t) */
static void output(const state *s, step *at)
{
    const int words = (int)at_tensors_get(s->trained.parameters, "output.W_o.b")->dim[0];
    double logits[MOST_UNITS] = {0};
    add_product(s, "output.U_o.W", 0, 2 * N, at->s, at->before);
    add_product(s, "output.U_o.b", 0, 2 * N, NULL, at->before);
    add_product(s, "output.V_o.W", 0, 2 * N, at->Ey, at->before);
    add_product(s, "output.C_o.W", 0, 2 * N, at->c, at->before);
    for (int k = 0; k < N; k++)
        at->t[k] = fmax(at->before[2 * k], at->before[2 * k + 1]);
    add_product(s, "output.W_o.W", 0, words, at->t, logits);
    add_product(s, "output.W_o.b", 0, words, NULL, logits);
    demo_softmax(logits, words, at->p);
    at->best = 3;
    for (int id = 3; id < words; id++) /* neither <pad> nor <unk> nor <s> can be written */
        at->best = at->p[id] > at->p[at->best] ? id : at->best;
}

/* All steps of the translation. What the library returned must come out: the words, the weights, log p. */
static bool decode_by_hand(state *s, at_error *error)
{
    const at_map *map = at_maps_at(s->maps, 0);
    double log_p = 0, score = at_maps_score(s->maps);
    s->steps = map->rows < STEPS ? (int)map->rows : STEPS;
    for (int i = 0; i < s->steps; i++) {
        step *at = &s->step[i];
        double weights[WORDS];
        at->previous = i ? s->step[i - 1].best : 2;
        copy_row(s, "target.E", at->previous, at->Ey);
        if (i == 0) {
            add_product(s, "decoder.W_s.W", 0, N, s->h + N, at->s);
            add_product(s, "decoder.W_s.b", 0, N, NULL, at->s);
        }
        for (int k = 0; k < N; k++)
            at->s[k] = i ? s->step[i - 1].next[k] : tanh(at->s[k]);
        if (!attend_by_hand(s, at, error))
            return false;
        next_state(s, at);
        output(s, at);
        log_p += log(at->p[at->best]);
        for (int j = 0; j < WORDS; j++)
            weights[j] = (double)map->weights[i * WORDS + j];
        if (strcmp(word_of(s, at->best), map->row_names[i]) != 0)
            return fail(error, AT_FAILED, "step %d gives '%s' by hand and '%s' by the library", i + 1,
                        word_of(s, at->best), map->row_names[i]);
        if (!demo_agrees(at->a, weights, WORDS, 1e-3, error))
            return false;
    }
    s->shown = s->shown < s->steps ? s->shown : s->steps;
    return s->steps < map->rows || demo_agrees(&log_p, &score, 1, 1e-3, error);
}

static bool keep_annotations(void *context, int64_t line, const at_result *result)
{
    state *s = context;
    (void)line;
    for (int i = 0; i < WORDS * 2 * N; i++)
        s->h[i] = (double)result->features[i];
    return true;
}

static bool compute(state *s, at_error *error)
{
    const at_line line = {s->source, strlen(s->source)};
    const at_search_settings search = {.beam = 1};
    const char *text = at_tensors_meta(s->trained.parameters, "target.vocabulary");
    json_t *vocabulary = at_json_read(text, strlen(text), "the target vocabulary", error);
    s->units = vocabulary ? json_incref(json_object_get(vocabulary, "units")) : NULL;
    json_decref(vocabulary);
    if (!s->units || !at_encode(s->trained.translator, &search, &line, 1, keep_annotations, s, error))
        return false;
    for (int j = 0; j < WORDS; j++)
        add_product(s, "attention.U_a.W", 0, N, s->h + j * 2 * N, s->keys + j * N);
    s->maps = at_maps_new(s->trained.translator, &search, &line, NULL, error);
    return s->maps && decode_by_hand(s, error);
}

/* ---- The pages ------------------------------------------------------------------------------------------------ */

static bool task(void *context, at_error *error)
{
    const state *s = context;
    (void)error;
    sayf("A small piece of French: %d sentences of five English words, %d of them to learn from. The verb depends on "
         "the person; the adjective comes last; article and adjective depend on the gender of the noun:\n",
         SENTENCES, TRAIN);
    for (int i = 0; i < 4; i++)
        show_line("%s -> %s", s->pairs.text[i][0], s->pairs.text[i][1]);
    say("\nThe model (Bahdanau, Cho, Bengio 2014), with 6 numbers for everything, so that they can be shown:\n");
    show_line("h_j = [h→_j; h←_j]                            annotations of the words");
    show_line("s_0 = tanh(W_s h←_1)                          the first state");
    show_line("e_ij = v_aᵀ tanh(W_a s_{i-1} + U_a h_j)       scores");
    show_line("a_i = softmax(e_i),  c_i = Σ_j a_ij h_j       weights, context");
    show_line("t~_i = U_o s_{i-1} + V_o E y_{i-1} + C_o c_i  output, two numbers a unit");
    show_line("t_ik = max(t~_i,2k-1, t~_i,2k)                maxout");
    show_line("p(y_i) = softmax(W_o t_i)                     the next word");
    show_line("s_i = gru(E y_{i-1}, c_i, s_{i-1})            the next state");
    return true;
}

static bool learn(void *context, at_error *error)
{
    state *s = context;
    say("Each update takes 32 sentences; the loss is per word.\n");
    fflush(stdout);
    if (!demo_train(&demo_step, s->options, &s->pairs,
                    "model=bahdanau hidden=6 embedding=6 attention=6 maxout=6 source-vocab=word target-vocab=word "
                    "batch-size=32 learning-rate=0.01 schedule=cosine updates=800 report-every=200",
                    &s->trained, error) ||
        !compute(s, error))
        return false;
    puts("");
    show_line("%s -> %s", s->source, at_maps_target(s->maps));
    if (strcmp(at_maps_target(s->maps), s->wanted) != 0)
        show_line("(wrong: %s)", s->wanted);
    sayf("\nThe step shown on the next pages is i = %d: it writes \"%s\" after \"%s\".", s->shown,
         word_of(s, s->step[s->shown - 1].best), word_of(s, s->step[s->shown - 1].previous));
    return true;
}

static bool annotations_page(void *context, at_error *error)
{
    const state *s = context;
    double ahead[WORDS * N], back[WORDS * N];
    (void)error;
    say("The encoder reads the sentence once in each direction. h→_j knows the words up to j, h←_j those from j on, "
        "and j itself best. Six numbers each:\n");
    for (int j = 0; j < WORDS; j++)
        for (int k = 0; k < N; k++) {
            ahead[j * N + k] = s->h[j * 2 * N + k];
            back[j * N + k] = s->h[j * 2 * N + N + k];
        }
    show_line("h→");
    show_matrix(ahead, WORDS, N, 2, s->words.word);
    puts("");
    show_line("h←");
    show_matrix(back, WORDS, N, 2, s->words.word);
    say("\nThe sentence is not squeezed into one vector: all ten rows stay, and each step chooses among them.");
    return true;
}

static bool state_page(void *context, at_error *error)
{
    const state *s = context;
    const step *at = &s->step[s->shown - 1];
    char name[80];
    (void)error;
    sayf("What step %d starts from: the state s_%d, which knows what was written so far, and the embedding of the word "
         "before it:\n",
         s->shown, s->shown - 1);
    snprintf(name, sizeof name, "s_%d", s->shown - 1);
    show_vector(name, at->s, N);
    snprintf(name, sizeof name, "E y_%d", s->shown - 1);
    show_vector(name, at->Ey, N);
    if (s->shown == 1)
        say("\ns_0 = tanh(W_s h←_1) is made of the backward annotation of the first word, which has seen all others. "
            "y_0 = <s> is the beginning.");
    else
        sayf("\ns_%d is the result of the step before, and y_%d = \"%s\" the word that it wrote.", s->shown - 1,
             s->shown - 1, word_of(s, at->previous));
    return true;
}

static bool scores_page(void *context, at_error *error)
{
    const state *s = context;
    const step *at = &s->step[s->shown - 1];
    double v[N] = {0}, inside[N];
    int top = 0;
    char name[80];
    (void)error;
    add_product(s, "attention.v_a", 0, N, NULL, v);
    for (int j = 1; j < WORDS; j++)
        top = at->e[j] > at->e[top] ? j : top;
    for (int k = 0; k < N; k++)
        inside[k] = tanh(at->query[k] + s->keys[top * N + k]);
    show_line("e_ij = v_aᵀ tanh(W_a s_{i-1} + U_a h_j)\n");
    say("How well does what the decoder looks for fit to each word? The query is the same for all words, the key "
        "U_a h_j was computed when the sentence was read:\n");
    snprintf(name, sizeof name, "W_a s_%d", s->shown - 1);
    show_vector(name, at->query, N);
    snprintf(name, sizeof name, "U_a h_%s", s->words.word[top]);
    show_vector(name, s->keys + top * N, N);
    show_vector("tanh of their sum", inside, N);
    show_vector("v_a", v, N);
    snprintf(name, sizeof name, "e_%s", s->words.word[top]);
    show_product(name, v, inside, N);
    say("\nThe same for every word:\n");
    show_bars(s->words.word, at->e, WORDS, 3);
    return true;
}

static bool weights_page(void *context, at_error *error)
{
    const state *s = context;
    const step *at = &s->step[s->shown - 1];
    const char *const columns[] = {"e", "exp(e - max)", "a"};
    double table[WORDS * 3], top = at->e[0];
    char name[20];
    (void)error;
    show_line("a_ij = exp(e_ij) / Σ_k exp(e_ik),   c_i = Σ_j a_ij h_j\n");
    for (int j = 1; j < WORDS; j++)
        top = fmax(top, at->e[j]);
    for (int j = 0; j < WORDS; j++) {
        table[3 * j] = at->e[j];
        table[3 * j + 1] = exp(at->e[j] - top);
        table[3 * j + 2] = at->a[j];
    }
    show_table(&(demo_table){WORDS, 3, 3, table, s->words.word, columns});
    puts("");
    show_bars(s->words.word, at->a, WORDS, 3);
    say("\nThe context is the mean of the annotations with these weights, twelve numbers of which the first six come "
        "from h→ and the others from h←:\n");
    snprintf(name, sizeof name, "c_%d", s->shown);
    show_vector(name, at->c, 2 * N);
    say("\nThe library's weights and the operator's context are the same.");
    return true;
}

static bool output_page(void *context, at_error *error)
{
    enum { SHOWN = 5 };
    const state *s = context;
    const step *at = &s->step[s->shown - 1];
    const char *names[SHOWN];
    double p[SHOWN], left[MOST_UNITS], pairs[2 * N];
    const char *const rows[] = {"first of each pair", "second"};
    (void)error;
    show_line("t~_i = U_o s_{i-1} + V_o E y_{i-1} + C_o c_i\n");
    for (int k = 0; k < 2 * N; k++)
        pairs[k % 2 * N + k / 2] = at->before[k];
    say("Twelve numbers from the state, the word before and the context. Maxout keeps the larger one of each pair:\n");
    show_matrix(pairs, 2, N, 3, rows);
    puts("");
    show_vector("t", at->t, N);
    say("\np(y_i) = softmax(W_o t_i): the five likeliest words of the vocabulary:\n");
    memcpy(left, at->p, sizeof left);
    for (int i = 0; i < SHOWN; i++) {
        int best = 0;
        for (int id = 1; id < MOST_UNITS; id++)
            best = left[id] > left[best] ? id : best;
        names[i] = word_of(s, best);
        p[i] = left[best];
        left[best] = -1;
    }
    show_bars(names, p, SHOWN, 4);
    sayf("\ny_%d = \"%s\": log p = %.4f.", s->shown, word_of(s, at->best), log(at->p[at->best]));
    return true;
}

static bool next_page(void *context, at_error *error)
{
    const state *s = context;
    const step *at = &s->step[s->shown - 1];
    char line[80];
    (void)error;
    show_line("r = σ(W_r E y + U_r s + C_r c)            reset gate");
    show_line("z = σ(W_z E y + U_z s + C_z c)            update gate");
    show_line("n = tanh(W E y + U (r ∘ s) + C c)         candidate");
    show_line("s_i = z ∘ s_{i-1} + (1 - z) ∘ n\n");
    show_vector("r", at->r, N);
    show_vector("z", at->z, N);
    show_vector("n", at->n, N);
    snprintf(line, sizeof line, "s_%d", s->shown - 1);
    show_vector(line, at->s, N);
    snprintf(line, sizeof line, "s_%d", s->shown);
    show_vector(line, at->next, N);
    sayf(
        "\nWhere z is near 1 the old number stays, where it is near 0 the new one replaces it. s_%d goes into the next "
        "step, together with E y_%d: the state is advanced after the word was predicted from s_%d.",
        s->shown, s->shown, s->shown - 1);
    return true;
}

static bool all_page(void *context, at_error *error)
{
    const state *s = context;
    const at_map *map = at_maps_at(s->maps, 0);
    say("The weights of all steps, a row for each word written. The step of the pages before is one of them:\n");
    if (!show_weights(map->weights, s->steps, WORDS, map->row_names, map->column_names, error))
        return false;
    sayf("\nlog p of the sentence is the sum over its steps: %.4f.", at_maps_score(s->maps));
    return true;
}

const cli_demo demo_step = {
    .name = "step",
    .line = "one step of Bahdanau's decoder, with every number",
    .title = "One decoding step: state, scores, weights, context, word",
    .input = "an English sentence of its five words, and a step: SENTENCE / STEP",
    .example = "\"we see the green boat / 5\"",
    .size = sizeof(state),
    .begin = begin,
    .end = end,
    .pages = {{"The task and the model", task},
              {"Learning", learn},
              {"The annotations", annotations_page},
              {"The state before the step", state_page},
              {"Scores", scores_page},
              {"Weights and context", weights_page},
              {"The word", output_page},
              {"The next state", next_page},
              {"All steps", all_page}},
};
