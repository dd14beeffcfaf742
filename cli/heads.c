#include "heads.h"

#include <stdlib.h>
#include <string.h>

#include "links.h"
#include "text_file.h"

enum { MOST_PAIRS = 500 }; /* that are used without gold links: each head reads them once */

const char *const hard_decodings[] = {"", "argmax", "expectation", NULL};

bool hard_decoding_set(int way, at_translator *translator, at_error *error)
{
    return way == HARD_DECODING_UNSET || at_translator_expect(translator, way == HARD_DECODING_EXPECTATION, error);
}

bool head_read(const char *text, const char *also, const at_translator *translator, cli_head *head, at_error *error)
{
    int used = 0;
    *head = (cli_head){0};
    if (!text)
        at_translator_guided(translator, &head->layer, &head->head);
    if (!text || strcmp(text, "average") == 0)
        return true;
    head->best = strcmp(also, "best") == 0 && strcmp(text, also) == 0;
    if (head->best)
        return true;
    if (sscanf(text, "%d.%d%n", &head->layer, &head->head, &used) == 2 && !text[used] && head->layer > 0 &&
        head->head > 0)
        return true;
    return fail(error, AT_USAGE, "--head is %s%saverage or LAYER.HEAD such as 2.1, not '%s'", also, *also ? ", " : "",
                text);
}

/* ---- Choosing ------------------------------------------------------------------------------------------------- */

/* One head's trial. */
typedef struct trial {
    const cli_head_data *data;
    FILE *stream;          /* its links, a line each, to be scored by the gold ones; or */
    int64_t agreed, words; /* links of both directions, and the words of both sides */
    at_error *error;
} trial;

static bool try_line(void *context, int64_t line, const at_result *result)
{
    trial *t = context;
    const at_line lines[] = {t->data->source->line[line], t->data->target->line[line]};
    const at_hypothesis *h = &result->best[0];
    cli_links links = {0};
    if (!h->weights) { /* a source without a unit */
        if (t->stream)
            fputc('\n', t->stream);
        return true;
    }
    bool good = t->data->by_unit ? links_by_unit(result, h, &links) : links_by_word(result, lines, &links);
    if (good && t->stream)
        good = links_print(t->stream, &links) && fputc('\n', t->stream) != EOF;
    else if (good)
        t->agreed += links_agreed(&links), t->words += links.rows + links.columns;
    links_free(&links);
    return good || fail(t->error, AT_MEMORY, "out of memory for an alignment");
}

/* The alignment error rate of the lines in `text`. */
static bool error_rate(const cli_head_data *data, char *text, double *rate, at_error *error)
{
    at_line *lines = malloc((size_t)(data->source->count + 1) * sizeof *lines);
    int64_t count = 0;
    for (char *at = text, *end; lines && (end = strchr(at, '\n')); at = end + 1)
        lines[count++] = (at_line){at, (size_t)(end - at)};
    bool good = lines ? at_score_lines("aer", lines, data->gold->line, count, rate, error)
                      : fail(error, AT_MEMORY, "out of memory for alignments");
    free(lines);
    return good;
}

/* Scores one head; larger is better. */
static bool try_head(at_translator *translator, const cli_head_data *data, cli_head head, double *score,
                     at_error *error)
{
    text_file text = {0};
    trial t = {.data = data, .error = error};
    int64_t count = data->source->count;
    if (!data->gold && count > MOST_PAIRS)
        count = MOST_PAIRS;
    if (data->gold && !text_open(&text, error))
        return false;
    t.stream = text.stream;
    const at_search_settings settings = {.batch = data->batch,
                                         .wants_weights = true,
                                         .layer = head.layer,
                                         .head = head.head,
                                         .max_source = data->max_source,
                                         .align_shift = head.shift};
    bool good = at_align(translator, &settings, data->source->line, data->target->line, count, try_line, &t, error);
    char *links = t.stream ? text_take(&text, error) : NULL;
    double rate = 0;
    if (data->gold)
        good = good && links && error_rate(data, links, &rate, error);
    *score = data->gold ? -rate : t.words ? 200 * (double)t.agreed / (double)t.words : 0;
    free(links);
    return good;
}

bool head_choose(at_translator *translator, const cli_head_data *data, cli_head *head, at_error *error)
{
    int layers = 0, heads = 0;
    double best = 0, score = 0;
    *head = (cli_head){0};
    if (!data->gold && !data->shift && at_translator_guided(translator, &head->layer, &head->head)) {
        if (!data->quiet)
            fprintf(stderr, "attend: head %d.%d, which training guided\n", head->layer, head->head);
        return true;
    }
    at_translator_heads(translator, &layers, &heads);
    for (int l = 1; l <= layers; l++)
        for (int h = 0; h < heads * (data->shift ? 2 : 1); h++) {
            cli_head one = {.layer = l, .head = h % heads + 1, .shift = h >= heads};
            if (!try_head(translator, data, one, &score, error))
                return false;
            if (head->layer == 0 || score > best) {
                *head = one;
                best = score;
            }
        }
    const char *where = !data->shift ? "" : head->shift ? ", where a word is read," : ", where a word is predicted,";
    if (!data->quiet && head->layer && data->gold)
        fprintf(stderr, "attend: head %d.%d%s has the lowest AER, %.2f\n", head->layer, head->head, where, -best);
    else if (!data->quiet && head->layer)
        fprintf(stderr, "attend: head %d.%d%s agrees most with itself in both directions, %.2f%%\n", head->layer,
                head->head, where, best);
    return true;
}
