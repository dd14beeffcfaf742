/* What the translator's page asks about one line: where the model looked, what else it could say at a position, and the
 * explorer of all its weights. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "serve/serve_internal.h"
#include "serve/values_internal.h"
#include "text/vocabulary.h"

/* ---- Words ------------------------------------------------------------------------------------------------------ */

/* A word of a line, or a unit where words are not apart from each other: its bytes. */
typedef struct token {
    size_t from, to;
} token;

typedef struct tokens {
    at_line line;
    token *token; /* [count] */
    int64_t count;
    int64_t *of_unit; /* [units] the token of each unit; -1: of none */
    int64_t units;
} tokens;

/* Whether a character of a script that has no blanks between words begins here: U+3000 to U+9FFF, and the planes beyond. */
static bool has_no_blanks(const char *text)
{
    const unsigned char first = (unsigned char)*text;
    return (first >= 0xe3 && first <= 0xe9) || first == 0xf0;
}

/* Units of the same word are one token, except where words have no blanks between them. */
static bool find_tokens(tokens *t, at_line line, const int32_t *offsets, int64_t units)
{
    *t = (tokens){.line = line, .units = units};
    t->token = calloc((size_t)units + 1, sizeof *t->token);
    t->of_unit = calloc((size_t)units + 1, sizeof *t->of_unit);
    if (!t->token || !t->of_unit)
        return false;
    at_word_numbers(line, offsets, units, t->of_unit);
    int64_t word_before = -1;
    for (int64_t u = 0; u < units; u++) {
        const int64_t word = t->of_unit[u];
        token here = {(size_t)offsets[2 * u], (size_t)offsets[2 * u + 1]};
        token *before = t->count > 0 ? &t->token[t->count - 1] : NULL;
        if (before && here.from < before->to) /* bytes of one character */
            here.from = before->to;
        const bool empty = here.from >= here.to && word != word_before;
        if (word < 0 || empty) {
            t->of_unit[u] = -1;
            continue;
        }
        const bool joins = before && word == word_before &&
                           (here.from >= here.to ||
                            !(has_no_blanks(line.text + here.from) || has_no_blanks(line.text + before->from)));
        if (joins)
            before->to = here.to > before->to ? here.to : before->to;
        else
            t->token[t->count++] = here;
        t->of_unit[u] = t->count - 1;
        word_before = word;
    }
    return true;
}

static void free_tokens(tokens *t)
{
    free(t->token);
    free(t->of_unit);
}

/* [["", "Das"], [" ", "Haus"]]: each with what stands before it; what follows the last is before "". */
static json_t *list_tokens(const tokens *t)
{
    json_t *list = json_array();
    bool good = list;
    size_t at = 0;
    for (int64_t i = 0; i <= t->count && good; i++) {
        const token here = i < t->count ? t->token[i] : (token){t->line.size, t->line.size};
        json_t *pair = json_array();
        good = add(pair, json_stringn(t->line.text + at, here.from - at)) &&
               add(pair, json_stringn(t->line.text + here.from, here.to - here.from));
        good = i == t->count && at == here.from ? (json_decref(pair), good) : add(list, settled(pair, good));
        at = here.to;
    }
    return settled(list, good);
}

/* ---- Attention -------------------------------------------------------------------------------------------------- */

/* The weight of a source word for a target word: the sum over its units, the mean over theirs. Those of a hundredth or
 * more, as [[source, weight], ...] of one target word. */
static json_t *list_weights(const at_result *result, const tokens *source, const tokens *target, int64_t word,
                            double *sum)
{
    const at_hypothesis *h = &result->best[0];
    json_t *list = json_array();
    bool good = list;
    int64_t rows = 0;
    memset(sum, 0, (size_t)source->count * sizeof *sum);
    for (int64_t t = 0; t < target->units; t++) {
        if (target->of_unit[t] != word)
            continue;
        rows++;
        for (int64_t s = 0; s < source->units; s++)
            if (source->of_unit[s] >= 0)
                sum[source->of_unit[s]] += (double)h->weights[t * result->source_units + s];
    }
    for (int64_t s = 0; s < source->count && good; s++) {
        const double weight = rows > 0 ? round(1000 * sum[s] / (double)rows) / 1000 : 0;
        json_t *pair = weight >= 0.01 ? json_array() : NULL;
        if (pair)
            good = add(list, settled(pair, add(pair, json_integer(s)) && add(pair, json_real(weight))));
    }
    return settled(list, good);
}

typedef struct attention {
    const at_look *look;
    char *answer;
    at_error *error;
} attention;

static bool on_aligned(void *context, int64_t line, const at_result *result)
{
    attention *a = context;
    tokens source = {0}, target = {0};
    json_t *answer = json_object(), *weights = json_array();
    double *sum = NULL;
    bool good = find_tokens(&source, a->look->source, result->source_offsets, result->source_units) &&
                find_tokens(&target, a->look->target, result->target_offsets, result->best[0].count) &&
                (sum = calloc((size_t)source.count + 1, sizeof *sum));
    (void)line;
    for (int64_t t = 0; t < target.count && good && result->best[0].weights; t++)
        good = add(weights, list_weights(result, &source, &target, t, sum));
    good = good && set(answer, "source", list_tokens(&source)) && set(answer, "target", list_tokens(&target)) &&
           json_object_set(answer, "weights", weights) == 0;
    json_decref(weights);
    a->answer = text_of(settled(answer, good));
    free(sum);
    free_tokens(&source);
    free_tokens(&target);
    return a->answer || at_no_memory(a->error, "the weights of a line");
}

char *at_look_attention(const at_look *look, at_error *error)
{
    attention a = {.look = look, .error = error};
    at_search_settings settings = {.wants_weights = true, .stop = look->stop};
    settings.max_source = at_units_read(look->translator, look->max_source);
    at_translator_guided(look->translator, &settings.layer, &settings.head);
    at_align(look->translator, &settings, &look->source, &look->target, 1, on_aligned, &a, error);
    return a.answer;
}

/* ---- Alternatives ----------------------------------------------------------------------------------------------- */

typedef struct alternatives {
    const at_look *look;
    json_t *list, *best;
    at_error *error;
} alternatives;

static bool no_memory(at_error *error)
{
    return at_no_memory(error, "the alternatives of a word");
}

static bool on_best(void *context, int64_t line, const at_result *result)
{
    alternatives *a = context;
    (void)line;
    a->best = json_stringn(result->best[0].text, result->best[0].size);
    return a->best || no_memory(a->error);
}

/* The end of the word that an alternative has after the start; within a script without blanks, of the unit. */
static size_t end_of_word(const at_hypothesis *h, at_line start, int64_t branch, size_t *from)
{
    static const char blank[] = "\xe2\x96\x81"; /* U+2581, the blank of subwords */
    size_t at = start.size <= h->size && memcmp(h->text, start.text, start.size) == 0 ? start.size : 0;
    while (at < h->size && h->text[at] == ' ')
        at++;
    *from = at;
    if (at < h->size && has_no_blanks(h->text + at) && h->names && branch < h->count) {
        const char *name = h->names[branch];
        name += strncmp(name, blank, sizeof blank - 1) == 0 ? sizeof blank - 1 : 0;
        if (*name && strncmp(h->text + at, name, strlen(name)) == 0)
            return at + strlen(name);
    }
    while (*from > 0 && h->text[*from - 1] != ' ' && !has_no_blanks(h->text + at))
        --*from; /* it goes on with the last word of the start */
    while (at < h->size && h->text[at] != ' ')
        at++;
    return at;
}

static bool has_start(const json_t *list, const char *text, size_t size)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *start = json_object_get(json_array_get(list, i), "start");
        if (json_string_length(start) == size && memcmp(json_string_value(start), text, size) == 0)
            return true;
    }
    return false;
}

#define LEAST 1e-4 /* the probability of a word that is listed beyond the first three */

/* Several units may begin the same word: it is listed once, by the likeliest. */
static bool on_alternatives(void *context, int64_t line, const at_result *result)
{
    alternatives *a = context;
    const int64_t branch = at_alternatives_from(result);
    bool good = true;
    (void)line;
    for (int64_t i = 0; i < result->count && good; i++) {
        const at_hypothesis *h = &result->best[i];
        size_t from, to = end_of_word(h, a->look->target, branch, &from);
        const bool unknown = branch < h->count && h->ids[branch] == AT_UNKNOWN;
        if (unknown || (i > 2 && h->penalised < log(LEAST)) || has_start(a->list, h->text, to))
            continue;
        json_t *one = json_object();
        good = set(one, "word", json_stringn(h->text + from, to - from)) &&
               set(one, "start", json_stringn(h->text, to)) && set(one, "text", json_stringn(h->text, h->size)) &&
               set(one, "probability", json_real(round(1e4 * exp(h->penalised)) / 1e4));
        good = add(a->list, settled(one, good));
    }
    return good || no_memory(a->error);
}

char *at_look_alternatives(const at_look *look, at_error *error)
{
    alternatives a = {.look = look, .list = json_array(), .error = error};
    at_buffer both = {0};
    at_buffer_add(&both, look->source.text, look->source.size);
    at_buffer_add(&both, "\t", 1);
    at_buffer_add(&both, look->target.text, look->target.size);
    const at_line line = {both.bytes, both.size};
    at_search_settings settings = {.prefix = true,
                                   .beam = look->beam,
                                   .length_penalty = look->length_penalty,
                                   .max_source = at_units_read(look->translator, look->max_source),
                                   .stop = look->stop};
    if (both.failed || !a.list)
        no_memory(error);
    bool good = at_translate(look->translator, &settings, &line, 1, on_best, &a, error);
    settings.beam = settings.n_best = look->count;
    good =
        good && (look->count < 1 || at_alternatives(look->translator, &settings, &line, 1, on_alternatives, &a, error));
    json_t *answer = json_object();
    good = good && json_object_set(answer, "translatedText", a.best) == 0 &&
           json_object_set(answer, "alternatives", a.list) == 0;
    json_decref(a.best);
    json_decref(a.list);
    at_buffer_free(&both);
    char *text = text_of(settled(answer, good));
    if (!text)
        no_memory(error);
    return text;
}

/* ---- The explorer ----------------------------------------------------------------------------------------------- */

/* With the search step by step, as wide as the page's own at least. */
char *at_look_explorer(const at_look *look, at_error *error)
{
    at_search_settings settings = {.stop = look->stop, .beam = look->beam, .length_penalty = look->length_penalty};
    char *source = strndup(look->source.text, look->source.size), *html = NULL;
    at_maps *maps = source ? at_maps_new(look->translator, &settings, &look->source,
                                         look->target.size > 0 ? &look->target : NULL, error)
                           : NULL;
    settings.beam = look->beam > AT_PAGE_ALTERNATIVES ? look->beam : AT_PAGE_ALTERNATIVES + 1;
    at_beams *beams = maps ? at_beams_new(look->translator, &settings, &look->source, error) : NULL;
    const at_explorer page = {.title = look->title, .source = source, .beams = beams};
    if (beams)
        html = at_explorer_line(&page, maps, NULL, NULL, error);
    else if (!source)
        at_no_memory(error, "the explorer's page");
    at_beams_free(beams);
    at_maps_free(maps);
    free(source);
    return html;
}
