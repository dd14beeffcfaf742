/* A training step of a whole model: forward, backward and Adam's update, by the code that `attend train` runs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cases.h"
#include "data.h"
#include "memory.h"
#include "model_case.h"
#include "train/loss_internal.h"
#include "train/optimise.h"
#include "worker.h"

static const char BENCH[] = "train";
enum { WARM = 2 }; /* steps after which nothing may be allocated */

typedef struct training {
    at_model *model;
    at_optimiser *optimiser;
    at_loss loss;
    at_batch batch;
    int32_t *ids;     /* source, input and target, [rows, length] each */
    int64_t *lengths; /* [rows] */
    int64_t steps;
    size_t asked; /* allocations after WARM steps */
    at_pictures *pictures;
} training;

static bool step(training *t)
{
    at_error error = {0};
    double loss, norm;
    bool skipped = false;
    bool good = at_batch_loss(&t->loss, &t->batch, true, &loss, &error) &&
                at_optimiser_step(t->optimiser, 1.0 / (double)t->batch.target_tokens, &norm, &skipped, &error);
    if (good && (skipped || !isfinite(loss)))
        good = at_fail(&error, AT_FAILED, "the training step computed a gradient that is not finite");
    if (!good)
        fprintf(stderr, "attend: bench: %s\n", error.text);
    if (++t->steps == WARM)
        t->asked = at_arena_system(t->loss.arena);
    return good;
}

static double turn_on(training *t, int64_t repeats, int threads)
{
    at_threads_set(threads);
    double begin = bench_clock();
    for (int64_t i = 0; i < repeats; i++) {
        if (!step(t))
            return -1;
    }
    return bench_clock() - begin;
}

static double training_turn(void *context, int64_t repeats)
{
    return turn_on(context, repeats, bench_options.threads);
}

/* The same model and memory, on one thread. */
static double alone_turn(void *context, int64_t repeats)
{
    return turn_on(context, repeats, 1);
}

/* Grey noise of the case's size, one picture for each row of the batch, through a file: a store reads nothing else. */
static at_pictures *pictures_of(const model_case *c, at_error *error)
{
    char path[] = "/tmp/attend-bench-XXXXXX.npy", line[64], header[128];
    const int file = mkstemps(path, 4);
    FILE *out = file >= 0 ? fdopen(file, "wb") : NULL;
    if (!out)
        return at_fail(error, AT_FAILED, "cannot write to /tmp"), NULL;
    snprintf(header, sizeof header, "{'descr': '|u1', 'fortran_order': False, 'shape': (%lld, %lld, %lld), }",
             (long long)c->rows, (long long)c->height, (long long)c->width);
    fprintf(out, "\x93NUMPY%c%c%c%c%-117s\n", 1, 0, 118, 0, header);
    for (int64_t i = 0; i < c->rows * c->height * c->width; i++)
        fputc((int)(127 + 70 * data_value(SEED_QUERY, i)), out);
    bool good = fclose(out) == 0;
    at_pictures *pictures = at_pictures_new(&(at_picture_form){.channels = 1}, error);
    for (int64_t i = 0, index; pictures && good && i < c->rows; i++) {
        const int length = snprintf(line, sizeof line, "%s[%lld]", path, (long long)i);
        good = at_pictures_add(pictures, line, (size_t)length, &index, error);
    }
    remove(path);
    return good ? pictures : NULL;
}

static void training_free(training *t)
{
    at_pictures_free(t->pictures);
    at_optimiser_free(t->optimiser);
    at_model_free(t->model);
    at_arena_free(t->loss.arena);
    free(t->ids);
    free(t->lengths);
}

static bool training_make(training *t, const model_case *c)
{
    const int64_t length = c->conv ? model_case_cells(c, -1) : c->length; /* of a source */
    int64_t count = c->rows * c->length;
    *t = (training){.ids = malloc((size_t)(2 * count + c->rows * length) * sizeof *t->ids),
                    .lengths = malloc(2 * (size_t)c->rows * sizeof *t->lengths)};
    at_error error = {0};
    if (c->conv)
        t->pictures = pictures_of(c, &error);
    const at_optimiser_settings adam = {
        .kind = AT_ADAM, .learning_rate = 1e-4, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .schedule = AT_CONSTANT};
    at_model *model = t->model = model_case_new(c);
    t->loss = (at_loss){.model = model,
                        .arena = at_arena_new(),
                        .rng = {.seed = 1},
                        .options = {.label_smoothing = 0.1},
                        .pictures = t->pictures};
    if (model)
        t->optimiser = at_optimiser_new(&adam, model->params, &error);
    if (!t->optimiser || !t->loss.arena || !t->ids || !t->lengths || (c->conv && !t->pictures)) {
        if (model)
            fprintf(stderr, "attend: bench: out of memory: there is no room to train '%s'\n", c->model);
        training_free(t);
        return false;
    }
    int32_t *input = t->ids, *target = input + count, *source = target + count;
    model_case_ids(source, c->rows * length, SEED_QUERY, c->words);
    for (int64_t i = 0; c->conv && i < c->rows * length; i++)
        source[i] = (int32_t)(i / length); /* the number of the picture */
    model_case_ids(input, count, SEED_KEY, c->words);
    model_case_ids(target, count, SEED_VALUE, c->words);
    for (int64_t i = 0; i < c->rows; i++) {
        t->lengths[i] = c->length;
        t->lengths[c->rows + i] = length;
    }
    t->batch = (at_batch){.rows = c->rows,
                          .source_length = length,
                          .target_length = c->length,
                          .source = source,
                          .source_lengths = t->lengths + c->rows,
                          .input = input,
                          .target = target,
                          .target_lengths = t->lengths,
                          .source_tokens = c->rows * length,
                          .target_tokens = count};
    return true;
}

/* MB of this process while it trains. */
static double peak_of(training *t)
{
    memory_begin();
    return step(t) && step(t) ? memory_peak() : NAN;
}

static void report(const race *r, const training *made, const model_case *c, double flops, double peak, int first)
{
    for (int i = 0; i < r->count; i++) {
        if (r->entry[i].failed || (i > 0 && i < first))
            continue;
        row line = row_of(r, i, BENCH, c->name, flops);
        line.tokens_per_second = (double)(c->rows * c->length) / race_seconds(r, i);
        line.peak_rss_mb = i == 0 ? peak : workers_peak(&r->entry[i]);
        if (i == 0) {
            line.allocations = (double)(at_arena_system(made->loss.arena) - made->asked);
            line.ratio_to_best_rival = race_over_best(r, 0, first, r->count);
            line.extra_mb = (double)at_arena_peak(made->loss.arena) / (1 << 20);
            for (int other = 1; other < first; other++) {
                if (r->entry[other].turn == alone_turn)
                    line.speedup_over_one_thread = race_plain_ratio(r, other, 0);
                else
                    line.ratio_to_plain = race_ratio(r, 0, other);
            }
        }
        report_row(&line);
    }
}

/* `plain`: the case that this one is compared with in the same rounds; NULL: none. */
static void run_case(const model_case *c, const model_case *plain)
{
    training made, other;
    if (!bench_wants(c->name) || !training_make(&made, c))
        return;
    /* Each of the two gradients of a product costs as much as the product. */
    double flops = 3 * model_case_flops(c, made.model), peak = peak_of(&made);
    race r = {0};
    race_add(&r, "attend", NULL, training_turn, &made);
    if (bench_options.threads > 1)
        race_add(&r, "attend", NULL, alone_turn, &made);
    bool has_plain = plain && training_make(&other, plain);
    if (has_plain)
        race_add(&r, "attend", NULL, training_turn, &other);
    int first = r.count;
    if (bench_options.rivals)
        workers_add_training(&r, c, flops);
    race_run(&r);
    report(&r, &made, c, flops, peak, first);
    workers_free();
    if (has_plain)
        training_free(&other);
    training_free(&made);
}

void bench_train(void)
{
    static const model_case FULL[] = {
        RECURRENT_CASE("bahdanau 256/512 V=8000 64x20+20", "bahdanau", 256, 512, 512, 256, 8000, 64, 20),
        RECURRENT_CASE("rnn-encdec 256/512 V=8000 64x20+20", "rnn-encdec", 256, 512, 0, 256, 8000, 64, 20),
        TRANSFORMER_CASE("transformer 256/1024 V=8000 64x20+20", 3, 256, 1024, 4, "sinusoidal", 8000, 64, 20, false),
        TRANSFORMER_CASE("transformer shaw:16 256/1024 V=8000 64x20+20", 3, 256, 1024, 4, "shaw:16", 8000, 64, 20,
                         false),
        PICTURE_CASE("formulas 96/256 V=113 16 of 48x160 to 16", "24x5s2,40x3s2,64x3,96x3s2,96x3", 48, 160, 16, 7, 96,
                     256, 96, 113, 16, 16),
    };
    static const model_case QUICK[] = {
        RECURRENT_CASE("bahdanau 32/64 V=200 8x5+5", "bahdanau", 32, 64, 64, 32, 200, 8, 5),
        RECURRENT_CASE("rnn-encdec 32/64 V=200 8x5+5", "rnn-encdec", 32, 64, 0, 32, 200, 8, 5),
        TRANSFORMER_CASE("transformer 32/64 V=200 8x5+5", 2, 32, 64, 2, "sinusoidal", 200, 8, 5, false),
        TRANSFORMER_CASE("transformer shaw:2 32/64 V=200 8x5+5", 2, 32, 64, 2, "shaw:2", 200, 8, 5, false),
        PICTURE_CASE("formulas 32/64 V=40 4 of 16x32 to 5", "8x5s2,16x3s2", 16, 32, 4, 3, 32, 64, 32, 40, 4, 5),
    };
    enum { SHAW = 3, CASES = 5 };
    const model_case *cases = bench_options.quick ? QUICK : FULL;
    for (int i = 0; i < CASES; i++)
        run_case(&cases[i], i == SHAW ? &cases[SHAW - 1] : NULL);
}
