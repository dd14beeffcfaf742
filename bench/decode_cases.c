/* Decoding of a whole model, text in and text out, by the code that `attend translate` runs: greedy, and with a beam.
 * The weights are untrained and the end token is suppressed, so that every sentence takes the same number of
 * steps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "data.h"
#include "model_case.h"
#include "models/cache.h"
#include "search/search.h"
#include "worker.h"

static const char BENCH[] = "decode";
enum { WORD = 8 }; /* bytes of a word with the blank after it */

typedef struct decoding {
    at_translator translator;
    at_search_settings settings;
    char *text;
    at_line *lines;      /* [rows] */
    int64_t rows, given; /* given: tokens that the last call returned, end tokens included */
} decoding;

/* One way to decode. */
typedef struct way {
    decoding *of;
    int64_t beam;
    int threads;
    double each; /* seconds per call, last measured */
} way;

static bool count_units(void *context, int64_t line, const at_result *result)
{
    (void)line;
    ((decoding *)context)->given += result->best[0].count + 1;
    return true;
}

static bool decode(decoding *d)
{
    at_error error = {0};
    d->given = 0;
    const at_search_job job = {.translator = &d->translator,
                               .settings = &d->settings,
                               .lines = d->lines,
                               .count = d->rows,
                               .on_result = count_units,
                               .context = d};
    if (at_search(&job, &error))
        return true;
    fprintf(stderr, "attend: bench: %s\n", error.text);
    return false;
}

static double decoding_turn(void *context, int64_t repeats)
{
    way *w = context;
    w->of->settings.beam = w->beam;
    at_threads_set(w->threads);
    /* The contestant before has filled the caches with its data: the first of the short calls is not counted. */
    if (w->each < 0.01 && !decode(w->of))
        return -1;
    double begin = bench_clock();
    for (int64_t i = 0; i < repeats; i++) {
        if (!decode(w->of))
            return -1;
    }
    double seconds = bench_clock() - begin;
    w->each = seconds / (double)repeats;
    return seconds;
}

/* Writes "w000123 "; returns the position after it. */
static char *word(char *to, int64_t number)
{
    to[0] = 'w';
    to[WORD - 1] = ' ';
    for (int i = WORD - 2; i > 0; i--, number /= 10)
        to[i] = (char)('0' + number % 10);
    return to + WORD;
}

/* All words of the case. */
static at_vocabulary *vocabulary_of(const model_case *c, at_error *error)
{
    at_vocabulary *made = at_vocabulary_new("word", error);
    for (int64_t i = 0; made && i < c->words - AT_SPECIALS; i++) {
        char text[WORD];
        word(text, i);
        at_vocabulary_count(made, text, WORD - 1, error);
    }
    if (made)
        at_vocabulary_fix(made, error);
    return made;
}

static void decoding_free(decoding *d)
{
    at_model_free(d->translator.model);
    at_vocabulary_free(d->translator.source);
    at_vocabulary_free(d->translator.target);
    free(d->text);
    free(d->lines);
}

static void write_lines(decoding *d, const model_case *c)
{
    char *at = d->text;
    for (int64_t line = 0; line < c->rows; line++) {
        d->lines[line] = (at_line){at, (size_t)(c->length * WORD - 1)};
        for (int64_t i = 0; i < c->length; i++) {
            int32_t id;
            model_case_ids(&id, 1, (uint32_t)(line * c->length + i), c->words);
            at = word(at, id - AT_SPECIALS);
        }
    }
}

static bool decoding_make(decoding *d, const model_case *c, at_number_type weights, int64_t tokens)
{
    at_error error = {0};
    *d = (decoding){.rows = c->rows};
    d->text = malloc((size_t)(c->rows * c->length * WORD));
    d->lines = malloc((size_t)c->rows * sizeof *d->lines);
    d->translator.model = model_case_new(c);
    d->translator.source = vocabulary_of(c, &error);
    d->translator.target = vocabulary_of(c, &error);
    /* The longest output has factor * length + 10 words and the end: as many steps as there shall be tokens. */
    d->settings =
        (at_search_settings){.batch = c->rows, .max_length_factor = ((double)tokens - 10.5) / (double)c->length};
    bool good =
        d->text && d->lines && d->translator.model && error.code == AT_OK && at_search_complete(&d->settings, &error);
    if (good) {
        at_params *params = d->translator.model->params;
        const char *bias = c->heads > 0 ? "output.b" : "output.W_o.b";
        at_params_value(params, at_params_find(params, bias))[AT_END] = -1e9f;
        at_params_convert(params, weights, &error); /* float32, too: as a model that was loaded, without gradients */
        write_lines(d, c);
    }
    if (good && error.code == AT_OK)
        return true;
    if (error.code != AT_OK)
        fprintf(stderr, "attend: bench: %s\n", error.text);
    decoding_free(d);
    return false;
}

/* The bytes that one sentence must read, step by step: the encoder's recurrent weights with every source token, the
 * decoder's weights with every target token. The rest is read once and is not counted. */
typedef struct weights {
    numbers encoder, decoder;
    int64_t length;
} weights;

static weights weights_of(const model_case *c, const at_model *model)
{
    int64_t encoder = 0, decoder = 0;
    for (int i = 0; i < at_params_number(model->params); i++) {
        int64_t count = at_shape_count(at_params_shape(model->params, i));
        const char *name = at_params_name(model->params, i);
        reading_of reading = model_case_reading(model, i);
        if (reading == READ_PER_TARGET_TOKEN)
            decoder += count;
        else if (reading == READ_PER_SOURCE_TOKEN && name[0] == 'e' && name[strlen(name) - 1] == 'U') /* recurrent */
            encoder += count;
    }
    return (weights){numbers_new(encoder), numbers_new(decoder), c->length};
}

static double weights_turn(void *context, int64_t repeats)
{
    weights *w = context;
    double seconds = 0;
    for (int64_t i = 0; i < repeats; i++)
        seconds += machine_read_turn(&w->encoder, w->length) + machine_read_turn(&w->decoder, w->length);
    return seconds;
}

/* The encoder, and the decoder's keys and values of the source: all work before the first step. */
typedef struct encoding {
    const decoding *of;
    at_arena *arena;
    at_cache *cache;
    at_source source;
} encoding;

static double encoding_turn(void *context, int64_t repeats)
{
    encoding *e = context;
    at_threads_set(bench_options.threads);
    bool good = true;
    double begin = bench_clock();
    for (int64_t i = 0; i < repeats && good; i++) {
        at_arena_reset(e->arena);
        at_tape *tape = at_tape_new(e->arena, false);
        at_pass pass = {.tape = tape, .cache = e->cache};
        if (tape)
            at_model_encode(e->of->translator.model, &pass, &e->source);
        good = tape && at_tape_ok(tape);
    }
    return good ? bench_clock() - begin : -1;
}

static encoding encoding_new(const decoding *d, const model_case *c)
{
    const int64_t count = c->rows * c->length;
    encoding e = {.of = d, .arena = at_arena_new(), .cache = at_cache_new()};
    int32_t *ids = malloc((size_t)count * sizeof *ids);
    int64_t *lengths = malloc((size_t)c->rows * sizeof *lengths);
    if (!e.arena || !e.cache || !ids || !lengths) {
        fprintf(stderr, "attend: bench: out of memory for a batch to encode\n");
        exit(1);
    }
    model_case_ids(ids, count, SEED_QUERY, c->words);
    for (int64_t i = 0; i < c->rows; i++)
        lengths[i] = c->length;
    e.source = (at_source){.rows = c->rows, .length = c->length, .ids = ids, .lengths = lengths};
    return e;
}

static void encoding_free(encoding *e)
{
    at_arena_free(e->arena);
    at_cache_free(e->cache);
    free((void *)e->source.ids);
    free((void *)e->source.lengths);
}

/* The contestants: several variants of ours, then reading the weights alone, then the rivals. */
typedef struct field {
    race r;
    int alone, beam, encoder, limit; /* their indices; -1: not measured */
    int narrow[AT_NUMBER_TYPES];     /* greedy with weights of fewer bits; [AT_NUMBERS_REAL]: not used */
    int rivals, end;                 /* the first of them, and past the last */
    int end_f32;                     /* rivals from here on have weights of int8 */
    int steps;                       /* ours without the encoder: greedy decoding minus encoding, in each round */
} field;

static bool is_narrow(const field *f, int entry)
{
    for (int type = AT_NUMBERS_BF16; type < AT_NUMBER_TYPES; type++)
        if (f->narrow[type] == entry)
            return true;
    return false;
}

/* How many times as fast as this contestant our greedy decoding is; the steps alone if that is all it does. Against int8 it
 * is ours with int8, the encoder included. One sentence is bound by memory, not by the peak. */
static double over(const field *f, const model_case *c, int entry)
{
    const int ours = entry >= f->end_f32                                 ? f->narrow[AT_NUMBERS_INT8]
                     : strcmp(f->r.entry[entry].who, "onnxruntime") == 0 ? f->steps
                                                                         : 0;
    return c->rows == 1 ? race_plain_ratio(&f->r, entry, ours) : race_ratio(&f->r, entry, ours);
}

static row row_for(const field *f, const model_case *c, int entry, double flops, double bytes)
{
    const race *r = &f->r;
    const bool counts =
        entry != f->beam && entry != f->encoder && !is_narrow(f, entry) && (entry < f->end_f32 || entry >= f->end);
    row line = row_of(r, entry, BENCH, c->name, f->limit < 0 && counts ? flops : 0);
    if (entry != f->limit && entry != f->encoder)
        line.tokens_per_second = (double)(c->rows * c->length) / race_seconds(r, entry);
    if (f->limit >= 0 && counts) {
        line.gb_per_second = 1e-9 * bytes / race_seconds(r, entry);
        line.percent_of_bandwidth = 100 * race_plain_ratio(r, f->limit, entry);
    }
    if (is_narrow(f, entry))
        line.speedup_over_f32 = c->rows == 1 ? race_plain_ratio(r, 0, entry) : race_ratio(r, 0, entry);
    if (entry == f->beam)
        line.ratio_to_greedy = race_ratio(r, entry, 0);
    if (entry >= f->rivals && entry < f->end)
        line.attend_over_it = over(f, c, entry);
    if (entry == 0) {
        for (int i = f->rivals; i < f->end_f32; i++)
            line.ratio_to_best_rival =
                r->entry[i].failed ? line.ratio_to_best_rival : fmin(line.ratio_to_best_rival, over(f, c, i));
        if (f->alone >= 0)
            line.speedup_over_one_thread = race_plain_ratio(r, f->alone, 0);
    }
    return line;
}

/* Flops of the decoder's steps. */
static double step_flops(const model_case *c, const at_model *model)
{
    double numbers_read = 0;
    for (int i = 0; i < at_params_number(model->params); i++)
        if (model_case_reading(model, i) == READ_PER_TARGET_TOKEN)
            numbers_read += (double)at_shape_count(at_params_shape(model->params, i));
    return (double)(c->rows * c->length) * (2 * numbers_read + 4.0 * (double)(c->layers * c->hidden) *
                                                                   ((double)c->length + (double)(c->length + 1) / 2));
}

/* Greedy decoding minus encoding becomes a contestant of its own. */
static void add_steps(field *f)
{
    f->steps = race_add(&f->r, "attend", "steps only", NULL, NULL);
    contestant *steps = &f->r.entry[f->steps];
    const contestant *whole = &f->r.entry[0], *encoder = &f->r.entry[f->encoder];
    steps->failed = whole->failed || encoder->failed;
    for (int i = 0; i < bench_options.rounds; i++) {
        steps->seconds[i] = whole->seconds[i] - encoder->seconds[i];
        steps->peak[i] = whole->peak[i];
    }
}

static void report(const field *f, const decoding *d, const model_case *c, double bytes)
{
    const at_model *model = d->translator.model;
    const double flops = model_case_flops(c, model);
    if (d->given != c->rows * c->length)
        fprintf(stderr, "attend: bench: %s decoded %lld tokens and not %lld\n", c->name, (long long)d->given,
                (long long)(c->rows * c->length));
    for (int i = 0; i < f->r.count; i++) {
        if (f->r.entry[i].failed || i == f->alone)
            continue;
        double done = i == f->steps                  ? step_flops(c, model)
                      : i >= f->rivals && i < f->end ? workers_flops(&f->r.entry[i])
                                                     : flops;
        row line = row_for(f, c, i, done, bytes);
        report_row(&line);
    }
}

static void run_case(const model_case *c)
{
    decoding made, narrow[AT_NUMBER_TYPES];
    if (!bench_wants(c->name) || !decoding_make(&made, c, AT_NUMBERS_REAL, c->length))
        return;
    const int threads = bench_options.threads;
    const bool is_transformer = c->heads > 0;
    weights read = weights_of(c, made.translator.model);
    double bytes = (double)(c->length * (read.encoder.count + read.decoder.count)) * sizeof(float);
    way greedy = {&made, 1, threads, 0}, alone = {&made, 1, 1, 0}, beam = {&made, 4, threads, 0};
    way fewer_bits[AT_NUMBER_TYPES];
    encoding encoder = encoding_new(&made, c);
    field f = {.alone = -1, .beam = -1, .encoder = -1, .limit = -1, .steps = -1};
    race_add(&f.r, "attend", NULL, decoding_turn, &greedy);
    if (threads > 1)
        f.alone = race_add(&f.r, "attend", NULL, decoding_turn, &alone);
    if (is_transformer) {
        f.encoder = race_add(&f.r, "attend", "encoder only", encoding_turn, &encoder);
        f.beam = race_add(&f.r, "attend", "beam 4", decoding_turn, &beam);
    }
    for (int type = AT_NUMBERS_BF16; type < AT_NUMBER_TYPES; type++) {
        f.narrow[type] = -1;
        if (!decoding_make(&narrow[type], c, (at_number_type)type, c->length))
            continue;
        fewer_bits[type] = (way){&narrow[type], 1, threads, 0};
        f.narrow[type] =
            race_add(&f.r, "attend", at_number_name((at_number_type)type), decoding_turn, &fewer_bits[type]);
    }
    /* A batch reads the weights once for all its rows, so they bound only the single sentence. */
    if (c->rows == 1)
        f.limit = race_add(&f.r, "machine", "read", weights_turn, &read);
    f.rivals = f.r.count;
    if (bench_options.rivals && is_transformer)
        workers_add_decoding(&f.r, c, model_case_flops(c, made.translator.model));
    f.end_f32 = f.r.count;
    if (bench_options.rivals && is_transformer && f.narrow[AT_NUMBERS_INT8] >= 0)
        workers_add_decoding_int8(&f.r, c, model_case_flops(c, made.translator.model));
    f.end = f.r.count;
    race_run(&f.r);
    if (is_transformer)
        add_steps(&f);
    report(&f, &made, c, bytes);
    workers_free();
    encoding_free(&encoder);
    numbers_free(&read.encoder);
    numbers_free(&read.decoder);
    for (int type = AT_NUMBERS_BF16; type < AT_NUMBER_TYPES; type++)
        if (f.narrow[type] >= 0)
            decoding_free(&narrow[type]);
    decoding_free(&made);
}

/* ---- CTranslate2 ---------------------------------------------------------------------------------------------- */

enum { LONGEST = 256 }; /* tokens that CTranslate2's binding decodes where no end is found; it has no other limit */

/* The model as a folder of CTranslate2, with the text of the case. */
static bool export_case(const decoding *d, const char *folder)
{
    at_error error = {0};
    char path[4400];
    snprintf(path, sizeof path, "%s/line", folder);
    if (!at_translator_export(&d->translator, "ctranslate2", folder, &error)) {
        fprintf(stderr, "attend: bench: %s\n", error.text);
        return false;
    }
    FILE *file = fopen(path, "w");
    const bool written = file && fprintf(file, "%.*s\n", (int)d->lines[0].size, d->lines[0].text) > 0;
    return file && fclose(file) == 0 && written;
}

/* Our decoding and theirs, of one sentence and the same model with the same weights. */
static void against_ctranslate2(const model_case *c)
{
    static const at_number_type TYPES[] = {AT_NUMBERS_REAL, AT_NUMBERS_INT8};
    enum { COUNT = sizeof TYPES / sizeof *TYPES };
    char name[96], folder[4352];
    snprintf(name, sizeof name, "%.*s 256 tokens B=1", (int)(strstr(c->name, " 20 tokens") - c->name), c->name);
    const char *root = bench_options.rivals && bench_wants(name) ? workers_export_folder() : NULL;
    if (!root)
        return;
    decoding made[COUNT];
    way ways[COUNT];
    race r = {0};
    int count = 0;
    while (count < COUNT && decoding_make(&made[count], c, TYPES[count], LONGEST)) {
        ways[count] = (way){&made[count], 1, bench_options.threads, 0};
        race_add(&r, "attend", at_number_name(TYPES[count]), decoding_turn, &ways[count]);
        count++;
    }
    for (int i = 0; i < count; i++) {
        snprintf(folder, sizeof folder, "%s.%s", root, at_number_name(TYPES[i]));
        if (export_case(&made[i], folder))
            workers_add_exported(&r, folder, LONGEST);
    }
    if (count == COUNT && r.count > COUNT)
        race_run(&r);
    for (int i = 0; i < r.count && count == COUNT && r.count > COUNT; i++) {
        if (r.entry[i].failed)
            continue;
        row line = row_of(&r, i, BENCH, name, 0);
        line.tokens_per_second = LONGEST / race_seconds(&r, i);
        for (int ours = 0; ours < COUNT && i >= COUNT; ours++)
            if (strcmp(r.entry[i].variant, r.entry[ours].variant) == 0)
                line.attend_over_it = race_plain_ratio(&r, i, ours);
        report_row(&line);
        if (i < COUNT && made[i].given != LONGEST)
            fprintf(stderr, "attend: bench: %s decoded %lld tokens and not %d\n", name, (long long)made[i].given,
                    LONGEST);
    }
    workers_free();
    while (count-- > 0)
        decoding_free(&made[count]);
}

void bench_decode(void)
{
    static const model_case FULL[] = {
        RECURRENT_CASE("bahdanau 256/512 V=8000 20 tokens B=1", "bahdanau", 256, 512, 512, 256, 8000, 1, 20),
        RECURRENT_CASE("bahdanau 256/512 V=8000 20 tokens B=64", "bahdanau", 256, 512, 512, 256, 8000, 64, 20),
        TRANSFORMER_CASE("transformer 256/1024 V=8000 20 tokens B=1", 3, 256, 1024, 4, "sinusoidal", 8000, 1, 20, true),
        TRANSFORMER_CASE("transformer 256/1024 V=8000 20 tokens B=64", 3, 256, 1024, 4, "sinusoidal", 8000, 64, 20,
                         true),
        TRANSFORMER_CASE("transformer 512/2048 V=32000 20 tokens B=1", 6, 512, 2048, 8, "sinusoidal", 32000, 1, 20,
                         true),
    };
    static const model_case QUICK[] = {
        RECURRENT_CASE("bahdanau 32/64 V=200 20 tokens B=1", "bahdanau", 32, 64, 64, 32, 200, 1, 20),
        RECURRENT_CASE("bahdanau 32/64 V=200 20 tokens B=8", "bahdanau", 32, 64, 64, 32, 200, 8, 20),
        TRANSFORMER_CASE("transformer 32/64 V=200 20 tokens B=1", 2, 32, 64, 2, "sinusoidal", 200, 1, 20, true),
        TRANSFORMER_CASE("transformer 32/64 V=200 20 tokens B=8", 2, 32, 64, 2, "sinusoidal", 200, 8, 20, true),
    };
    const int count = bench_options.quick ? sizeof QUICK / sizeof *QUICK : sizeof FULL / sizeof *FULL;
    const model_case *cases = bench_options.quick ? QUICK : FULL;
    for (int i = 0; i < count; i++)
        run_case(&cases[i]);
    for (int i = 0; i < count; i++)
        if (cases[i].heads > 0 && cases[i].rows == 1)
            against_ctranslate2(&cases[i]);
}
