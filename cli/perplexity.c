#include "perplexity.h"

#include <math.h>
#include <stdlib.h>

/* Sums over the lines. */
typedef struct sums {
    const at_line_list *target;
    bool translates;
    double log_probability;
    int64_t units, words, lines; /* units and words with the ends of their lines */
    int64_t empty, first_empty;  /* lines whose source has no unit; they are not counted */
} sums;

static bool add(void *context, int64_t line, const at_result *result)
{
    sums *s = context;
    const at_line text = s->target->line[line];
    const at_hypothesis *h = &result->best[0];
    if (s->translates && result->source_units == 0) {
        if (!s->empty++)
            s->first_empty = line + 1;
        return true;
    }
    s->log_probability += h->score;
    s->units += h->count + 1;
    s->words += at_word_numbers(text, NULL, 0, NULL) + 1;
    s->lines++;
    return true;
}

static bool add_all(at_translator *translator, const at_line_list *source, sums *s, at_error *error)
{
    bool good = at_align(translator, &(at_search_settings){0}, source ? source->line : NULL,
                         s->target ? s->target->line : NULL, s->target ? s->target->count : 0, add, s, error);
    if (good && s->lines == 0 && at_process_rank() == 0)
        return fail(error, AT_FORMAT, "there is no line to measure");
    return good;
}

bool perplexity_of(at_translator *translator, const at_line_list *source, const at_line_list *target,
                   double *perplexity, at_error *error)
{
    sums s = {.target = target, .translates = source};
    const bool good = add_all(translator, source, &s, error);
    *perplexity = good ? exp(-s.log_probability / (double)s.units) : NAN;
    return good;
}

/* exp of a very small log-probability is infinite, and JSON has no infinity. */
static const char *json_number(double number, char text[32])
{
    snprintf(text, 32, isfinite(number) ? "%.17g" : "null", number);
    return text;
}

static void print(const sums *s, bool json)
{
    const double by_unit = exp(-s->log_probability / (double)s->units);
    const double by_word = exp(-s->log_probability / (double)s->words);
    const double by_line = s->log_probability / (double)s->lines;
    if (json) {
        char unit[32], word[32];
        printf("{\"perplexity\":%s,\"perplexity_per_word\":%s,\"log_probability\":%.17g,"
               "\"log_probability_per_line\":%.17g,\"units\":%lld,\"words\":%lld,\"lines\":%lld}\n",
               json_number(by_unit, unit), json_number(by_word, word), s->log_probability, by_line, (long long)s->units,
               (long long)s->words, (long long)s->lines);
        return;
    }
    printf("perplexity %.4f per unit, %.4f per word; log-probability %.4f per line, of %lld units, %lld words and "
           "%lld lines\n",
           by_unit, by_word, by_line, (long long)s->units, (long long)s->words, (long long)s->lines);
}

bool score_perplexity(const perplexity_job *job, at_error *error)
{
    const char *source = job->source, *target = job->target;
    at_translator *translator = error->code == AT_OK ? at_translator_load(job->model, error) : NULL;
    const bool first = at_process_rank() == 0;
    at_line_list *lines[2] = {0};
    if (translator && !source && at_translator_has_source(translator))
        fail(error, AT_USAGE, "this model translates, so perplexity needs --source FILE beside --reference");
    if (translator && source && !at_translator_has_source(translator))
        fail(error, AT_USAGE, "this is a language model, so perplexity takes --reference alone and no --source");
    if (error->code == AT_OK && first)
        lines[1] = at_line_list_read(target, error);
    if (error->code == AT_OK && source && first)
        lines[0] = at_translator_sources(translator, source, error);
    if (lines[0] && lines[1] && lines[0]->count != lines[1]->count)
        fail(error, AT_FORMAT, "'%s' has %lld lines and '%s' has %lld; they must be pairs", source,
             (long long)lines[0]->count, target, (long long)lines[1]->count);
    sums s = {.target = lines[1], .translates = source};
    if (at_group_agree(job->group, error)) {
        at_translator_share(translator, job->group);
        add_all(translator, lines[0], &s, error);
        at_group_agree(job->group, error);
    }
    if (error->code == AT_OK && first) {
        print(&s, job->json);
        if (s.empty && !job->quiet)
            fprintf(stderr, "attend: %lld pair%s without a source, the first in line %lld, left out\n",
                    (long long)s.empty, s.empty == 1 ? "" : "s", (long long)s.first_empty);
    }
    at_line_list_free(lines[0]);
    at_line_list_free(lines[1]);
    at_translator_free(translator);
    return error->code == AT_OK;
}
