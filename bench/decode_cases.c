/* Greedy decoding of a whole model, text in and text out, by the code that `attend translate` runs. The weights are
 * untrained and the end is kept from being said early, so that every sentence takes the same number of steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "data.h"
#include "model_case.h"
#include "search.h"

static const char BENCH[] = "decode";
enum { WORD = 8 }; /* bytes of a word and the blank after it */

typedef struct decoding {
    at_translator translator;
    at_search_settings settings;
    char *text;
    const char **lines; /* [rows] */
    size_t *sizes;
    int64_t rows, given; /* given: units and ends that the last call gave */
    double each;         /* seconds of a call, as last seen */
} decoding;

static bool count_units(void *context, int64_t line, const at_found *found)
{
    (void)line;
    ((decoding *)context)->given += found->best[0].count + 1;
    return true;
}

static bool decode(decoding *d)
{
    at_error error = {0};
    d->given = 0;
    if (at_search(&d->translator, &d->settings, d->lines, d->sizes, d->rows, count_units, d, &error))
        return true;
    fprintf(stderr, "attend: bench: %s\n", error.text);
    return false;
}

static double decoding_turn(void *context, int64_t repeats)
{
    decoding *d = context;
    /* Another contestant has just had the caches: the first of the short calls is not counted. */
    if (d->each < 0.01 && !decode(d))
        return -1;
    double begin = bench_clock();
    for (int64_t i = 0; i < repeats; i++) {
        if (!decode(d))
            return -1;
    }
    double seconds = bench_clock() - begin;
    d->each = seconds / (double)repeats;
    return seconds;
}

/* "w000123 "; gives where the next one goes. */
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
    free(d->sizes);
}

static void write_lines(decoding *d, const model_case *c)
{
    char *at = d->text;
    for (int64_t line = 0; line < c->rows; line++) {
        d->lines[line] = at;
        for (int64_t i = 0; i < c->length; i++) {
            int32_t id;
            model_case_ids(&id, 1, (uint32_t)(line * c->length + i), c->words);
            at = word(at, id - AT_SPECIALS);
        }
        d->sizes[line] = (size_t)(c->length * WORD - 1);
    }
}

static bool decoding_make(decoding *d, const model_case *c)
{
    at_error error = {0};
    *d = (decoding){.rows = c->rows};
    d->text = malloc((size_t)(c->rows * c->length * WORD));
    d->lines = malloc((size_t)c->rows * sizeof *d->lines);
    d->sizes = malloc((size_t)c->rows * sizeof *d->sizes);
    d->translator.model = model_case_new(c);
    d->translator.source = vocabulary_of(c, &error);
    d->translator.target = vocabulary_of(c, &error);
    /* The longest output has factor * length + 10 words and the end: as many steps as the source has tokens. */
    d->settings =
        (at_search_settings){.batch = c->rows, .max_length_factor = ((double)c->length - 10.5) / (double)c->length};
    bool good = d->text && d->lines && d->sizes && d->translator.model && error.code == AT_OK &&
                at_search_complete(&d->settings, &error);
    if (good) {
        at_params *params = d->translator.model->params;
        at_params_value(params, at_params_find(params, "output.W_o.b"))[AT_END] = -1e9f;
        at_params_changed(params);
        write_lines(d, c);
        return true;
    }
    if (error.code != AT_OK)
        fprintf(stderr, "attend: bench: %s\n", error.text);
    decoding_free(d);
    return false;
}

/* What one sentence has to read, step by step: the encoder's recurrent weights with every source token, the decoder's
 * weights with every target token. The rest is read once and is not counted. */
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
        else if (reading == READ_PER_SOURCE_TOKEN && name[0] == 'e' && name[strlen(name) - 1] == 'U')
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

static void run_case(const model_case *c)
{
    decoding made;
    if (!bench_wants(c->name) || !decoding_make(&made, c))
        return;
    double flops = model_case_flops(c, made.translator.model);
    weights read = weights_of(c, made.translator.model);
    double bytes = (double)(c->length * (read.encoder.count + read.decoder.count)) * sizeof(float);
    race r = {0};
    race_add(&r, "attend", NULL, decoding_turn, &made);
    /* A batch reads the weights once for all its rows, so they bound only the single sentence. */
    int limit = c->rows == 1 ? race_add(&r, "machine", "read", weights_turn, &read) : -1;
    race_run(&r);
    for (int i = 0; i < r.count; i++) {
        if (r.entry[i].failed)
            continue;
        row line = row_of(&r, i, BENCH, c->name, limit < 0 ? flops : 0);
        if (i == 0)
            line.tokens_per_second = (double)made.given / race_seconds(&r, i);
        if (limit >= 0) {
            line.gb_per_second = 1e-9 * bytes / race_seconds(&r, i);
            line.percent_of_bandwidth = 100 * race_plain_ratio(&r, limit, i);
        }
        report_row(&line);
    }
    numbers_free(&read.encoder);
    numbers_free(&read.decoder);
    decoding_free(&made);
}

void bench_decode(void)
{
    static const model_case FULL[] = {
        {"bahdanau 256/512 V=8000 20 tokens B=1", "bahdanau", 256, 512, 512, 256, 8000, 1, 20},
        {"bahdanau 256/512 V=8000 20 tokens B=64", "bahdanau", 256, 512, 512, 256, 8000, 64, 20},
    };
    static const model_case QUICK[] = {
        {"bahdanau 32/64 V=200 20 tokens B=1", "bahdanau", 32, 64, 64, 32, 200, 1, 20},
        {"bahdanau 32/64 V=200 20 tokens B=8", "bahdanau", 32, 64, 64, 32, 200, 8, 20},
    };
    for (int i = 0; i < 2; i++)
        run_case(bench_options.quick ? &QUICK[i] : &FULL[i]);
}
