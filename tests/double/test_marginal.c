/* Hard attention without sampling: its probabilities against the sum over all alignments, each of which is a sample of
 * the model that is trained by REINFORCE, and target positions a few at a time against all at once. */
#include "model_cases.h"

#include "models/kinds.h"
#include "tape/block.h"

/* ---- All alignments ---- */

typedef struct sampled {
    double log_prob; /* of the targets, given the alignment */
    double weight;   /* p of the alignment */
    bool found;
} sampled;

enum { MOST_ALIGNMENTS = 64 }; /* SOURCE^TARGET */

static double log_softmax(const double *row, int32_t target)
{
    double sum = 0;
    for (int v = 0; v < WORDS; v++)
        sum += exp(row[v]);
    return row[target] - log(sum);
}

/* One sentence, its first n targets, with the samples of this counter. */
static int sample(at_model *model, at_arena *arena, int64_t n, uint64_t counter, sampled *s)
{
    at_arena_reset(arena);
    at_rng rng = {.seed = 7, .counter = counter};
    at_pass pass = {.tape = at_tape_new(arena, false), .rng = &rng};
    const at_source one = {.rows = 1, .length = SOURCE, .ids = source_ids, .lengths = source_lengths};
    at_decoded d = case_decode(model, &pass, &one, target_in, n);
    check_tape(model->kind->name, pass.tape);
    int path = 0;
    double weight = 0;
    *s = (sampled){.found = true};
    for (int t = 0; t < n; t++) {
        s->log_prob += log_softmax(d.logits->value + t * WORDS, target_out[t]);
        weight += d.log_prob->value[t];
        for (int j = 0; j < SOURCE; j++)
            path += d.weights->value[t * SOURCE + j] == 1 ? j : 0;
        path *= t + 1 < n ? SOURCE : 1;
    }
    s->weight = exp(weight);
    return path;
}

/* sum_a p(a) p(y|a), with samples until every alignment a was among them */
static double enumerate(const char *text, int64_t n)
{
    at_model *model = case_model(text, 4, 3);
    at_arena *arena = at_arena_new();
    sampled all[MOST_ALIGNMENTS] = {0};
    int wanted = 1, seen = 0;
    for (int t = 0; t < n; t++)
        wanted *= SOURCE;
    for (uint64_t c = 0; seen < wanted; c += 64) {
        sampled s;
        assert_true(c < 64 * 200000);
        const int path = sample(model, arena, n, c, &s);
        seen += !all[path].found;
        all[path] = s;
    }
    double p = 0, sum = 0;
    for (int i = 0; i < wanted; i++) {
        p += all[i].weight * exp(all[i].log_prob);
        sum += all[i].weight;
    }
    assert_true(fabs(sum - 1) < 1e-9);
    at_arena_free(arena);
    at_model_free(model);
    return p;
}

/* The states of luong and rnn-attention do not depend on what attention chose, so an alignment of any length is one term
 * of the product; where they do, the first position is compared. */
static void sums_over_alignments(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t n;
    } cases[] = {
        {"luong normaliser=hard", TARGET},
        {"luong normaliser=hard gate=true score=additive", TARGET},
        {"rnn-attention normaliser=hard dropout=0", TARGET},
        {"rnn-attention normaliser=hard dropout=0 gate=true cell=gru", TARGET},
        {"luong normaliser=hard input-feeding=true", 1},
        {"bahdanau normaliser=hard", 1},
        {"bahdanau normaliser=hard gate=true cell=lstm", 1},
    };
    at_arena *arena = at_arena_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[120];
        snprintf(text, sizeof text, "%s hard-training=exact", cases[i].text);
        at_model *model = case_model(text, 4, 3);
        at_pass pass = {.tape = at_tape_new(arena, false)};
        at_decoded d = case_decode(model, &pass, &full_source, target_in, TARGET); /* among other sentences */
        check_tape(text, pass.tape);
        double log_p = 0, each = 0;
        for (int t = 0; t < cases[i].n; t++)
            log_p += log_softmax(d.logits->value + t * WORDS, target_out[t]);
        for (int v = 0; v < WORDS; v++)
            each += exp(d.logits->value[v]);
        assert_true(fabs(each - 1) < 1e-12); /* the logits are log-probabilities already */
        const double p = enumerate(cases[i].text, cases[i].n);
        if (!(fabs(exp(log_p) - p) <= 1e-9 * p))
            fail_msg("%s: p is %.12g, and %.12g summed over all alignments", text, exp(log_p), p);
        assert_null(d.log_prob);
        at_arena_reset(arena);
        at_model_free(model);
    }
    at_arena_free(arena);
}

/* Of a source of one unit there is nothing to choose: exact hard attention has the probabilities of soft attention, in every
 * position, whatever the model does with the context. */
static void one_unit(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "bahdanau",
        "bahdanau gate=true",
        "luong input-feeding=true",
        "luong gate=true score=additive coverage=2",
        "rnn-attention",
        "rnn-attention gate=true",
        "nematus",
        "nematus gate=true coverage=2",
    };
    static const int64_t one = 1;
    const at_source source = {.rows = 1, .length = 1, .ids = source_ids, .lengths = &one};
    at_arena *arena = at_arena_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[120];
        snprintf(text, sizeof text, "%s dropout=0 normaliser=hard hard-training=exact", cases[i]);
        at_model *soft = case_model(cases[i], 4, 3), *exact = case_model(text, 4, 3);
        at_pass pass = {.tape = at_tape_new(arena, false)};
        const at_decoded s = case_decode(soft, &pass, &source, target_in, TARGET);
        const at_decoded e = case_decode(exact, &pass, &source, target_in, TARGET);
        check_tape(text, pass.tape);
        for (int t = 0; t < TARGET; t++)
            for (int v = 0; v < WORDS; v++) {
                const double p = log_softmax(s.logits->value + t * WORDS, v), q = e.logits->value[t * WORDS + v];
                if (!(fabs(p - q) <= 1e-12 * (1 + fabs(p))))
                    fail_msg("%s, position %d: log p is %.15g, and %.15g by soft attention", text, t, q, p);
            }
        at_arena_reset(arena);
        at_model_free(soft);
        at_model_free(exact);
    }
    at_arena_free(arena);
}

/* ---- A few positions at a time ---- */

enum { B = 2, N = 5, S = 3 };

static at_tensor *leaf(at_tape *tape, at_shape shape, uint64_t seed, double *grad)
{
    double *value = at_arena_take(at_tape_arena(tape), (size_t)at_shape_count(shape) * sizeof *value);
    at_rng rng = {.seed = seed};
    for (int64_t i = 0; i < at_shape_count(shape); i++)
        value[i] = at_rng_normal(&rng);
    return at_leaf(tape, shape, value, grad, true);
}

/* Value and gradients, all in one array; `most` as in at_marginal. */
static int64_t marginal(const char *text, int64_t most, int join, double *out)
{
    at_model *model = case_model(text, 4, 3);
    at_arena *arena = at_arena_new();
    at_rng rng = {.seed = 3};
    at_pass pass = {.tape = at_tape_new(arena, true), .rng = &rng};
    at_params *p = model->params;
    const at_dense output = {.w = at_params_find(p, "output.W_s.W"), .b = at_params_find(p, "output.W_s.b")};
    const at_shape W = at_params_shape(p, output.w);
    const int64_t wide = W.dim[1] * (join == AT_MARGINAL_MAXOUT ? 2 : 1);
    double *at = out;
    memset(out, 0, 4000 * sizeof *out);
    memset(at_params_grads(p), 0, (size_t)at_params_count(p) * sizeof(double));
    at_tensor *step = leaf(pass.tape, AT_SHAPE(B, N, wide), 1, at);
    at_tensor *unit = leaf(pass.tape, AT_SHAPE(B, S, wide), 2, at += B * N * wide);
    at_tensor *gate = leaf(pass.tape, AT_SHAPE(B, N, 1), 3, at += B * S * wide);
    at_tensor *weights = at_exp(leaf(pass.tape, AT_SHAPE(B, N, S), 4, at += B * N));
    at += B * N * S;
    at_source_attention a = {.model = model, .pass = &pass, .attended = &weights, .calls = 1};
    const at_marginal m = {
        .step = step, .unit = unit, .gate = gate, .join = join, .output = &output, .drops = true, .most = most};
    at_tensor *y = at_marginal_logits(&a, &m);
    check_tape(text, pass.tape);
    const int64_t count = at_shape_count(y->shape);
    memcpy(at, y->value, (size_t)count * sizeof *at);
    double seed[200];
    for (int64_t i = 0; i < count; i++)
        seed[i] = sin((double)i);
    assert_true(count <= 200 && at_backward_from(y, seed));
    memcpy(at += count, at_params_grads(p), (size_t)at_params_count(p) * sizeof *at);
    const int64_t all = at - out + at_params_count(p);
    at_arena_free(arena);
    at_model_free(model);
    return all;
}

static void blocks(void **state)
{
    (void)state;
    static const char *const cases[] = {"luong normaliser=hard hard-training=exact",
                                        "luong normaliser=hard hard-training=exact dropout=0.4 window=sliding:1"};
    static double whole[4000], some[4000];
    for (int i = 0; i < 2; i++)
        for (int join = AT_MARGINAL_SUM; join <= AT_MARGINAL_MAXOUT; join++)
            for (int64_t most = 1; most < 1000; most *= 4) {
                const int64_t count = marginal(cases[i], 0, join, whole);
                assert_int_equal(marginal(cases[i], most, join, some), count);
                for (int64_t k = 0; k < count; k++)
                    if (!(fabs(whole[k] - some[k]) <= 1e-12 * (1 + fabs(whole[k]))))
                        fail_msg("%s, %d numbers: number %d is %.15g and at once %.15g", cases[i], (int)most, (int)k,
                                 some[k], whole[k]);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_over_alignments), cmocka_unit_test(one_unit),
                                       cmocka_unit_test(blocks)};
    at_threads_set(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
