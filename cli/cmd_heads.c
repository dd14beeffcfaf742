/* attend heads: how much each head of a Transformer matters, and models without those that matter least. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "line_output.h"
#include "maps.h"
#include "outputs.h"
#include "perplexity.h"

typedef struct heads_options {
    cli_common common;
    const char *model, *source, *target, *metric, *prune, *output, *tsv;
    int64_t beam, batch_size;
} heads_options;

static const char *metric_name(int index)
{
    return at_metric(index) ? at_metric(index)->name : NULL;
}

static const at_setting table[] = {
    {AT_SETTING_HEADING, .help = "The model and the pairs of lines"},
    {AT_SETTING_TEXT, "model", "FILE", offsetof(heads_options, model),
     .help = "the model file, of a transformer or transformer-lm", .letter = 'm'},
    {AT_SETTING_TEXT, "source", "FILE", offsetof(heads_options, source),
     .help = "the source lines; a language model has none"},
    {AT_SETTING_TEXT, "target", "FILE", offsetof(heads_options, target),
     .help = "the target lines, one for each source line"},
    {AT_SETTING_COUNT, "batch-size", "N", offsetof(heads_options, batch_size), "32", 1, 100000,
     .help = "pairs in a batch; the output is the same for any number"},
    {AT_SETTING_TEXT, "tsv", "FILE", offsetof(heads_options, tsv),
     .help = "write the numbers of all heads to this file, too"},

    {AT_SETTING_HEADING, .help = "Removing heads"},
    {AT_SETTING_TEXT, "prune", "SHARE", offsetof(heads_options, prune),
     .help = "remove the least important of all heads, 20% or 0.2 of them, and print the scores before and after"},
    {AT_SETTING_TEXT, "metric", "METRIC", offsetof(heads_options, metric),
     .help = "the score of the translations, beside the perplexity (default: bleu; a language model has none)",
     .value_at = metric_name},
    {AT_SETTING_COUNT, "beam", "N", offsetof(heads_options, beam), "1", 1, 10000,
     .help = "size of the beam for the translations; 1 is greedy decoding"},
    {AT_SETTING_TEXT, "output", "FILE", offsetof(heads_options, output),
     .help =
         "write the model without these heads. Their parts of the output projections are 0: any attend reads the file, "
         "and it is as large as before",
     .letter = 'o'},
    {0},
};

/* What is measured, of which model, on what. */
typedef struct job {
    const heads_options *options;
    at_translator *translator;
    at_line_list *source, *target; /* source NULL: of a language model */
    at_head_list *list;
    bool *gone; /* [count] of the list: removed */
    int removed;
    at_error *error;
} job;

/* ---- What was asked for --------------------------------------------------------------------------------------- */

/* "20%" or "0.2"; 0 without --prune. */
static bool read_share(const char *text, double *share, at_error *error)
{
    char *end = NULL;
    *share = text ? strtod(text, &end) : 0;
    const bool percent = text && strcmp(end, "%") == 0;
    *share /= percent ? 100 : 1;
    return !text || (end > text && (percent || !*end) && *share > 0 && *share <= 1) ||
           fail(error, AT_USAGE, "--prune is a share of the heads such as 20%% or 0.2, above 0 and up to 1, not '%s'",
                text);
}

static bool check_metric(const char *metric, at_error *error)
{
    const char *names[32];
    int count = 0;
    for (int i = 0; at_metric(i) && count < 32; i++)
        if (!at_metric(i)->alignments)
            names[count++] = at_metric(i)->name;
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], metric) == 0)
            return true;
    return at_unknown("metric", metric, names, count, error);
}

static bool check(const heads_options *o, at_error *error)
{
    if (!o->model || !o->target)
        return fail(error, AT_USAGE, "attend heads needs %s",
                    !o->model ? "a model: attend heads MODEL, or -m MODEL" : "--target FILE");
    if (!o->prune && (o->output || o->metric))
        return fail(error, AT_USAGE, "%s is for --prune SHARE only", o->output ? "-o" : "--metric");
    if (o->output && at_file_same(o->output, o->model))
        return fail(error, AT_USAGE, "-o '%s' is the model that is read; choose another name", o->output);
    return !o->metric || check_metric(o->metric, error);
}

static bool read_lines(job *j)
{
    const heads_options *o = j->options;
    const bool translates = at_translator_has_source(j->translator);
    if (at_translator_has_pictures(j->translator)) /* its model has no such heads: the library says so */
        return (j->target = at_line_list_read(o->target, j->error)) != NULL;
    if (translates != (o->source != NULL))
        return fail(j->error, AT_USAGE,
                    translates ? "this model translates, so attend heads needs --source FILE beside --target"
                               : "this is a language model, so attend heads takes --target alone and no --source");
    if (!translates && o->metric)
        return fail(j->error, AT_USAGE,
                    "this is a language model, so its only score is the perplexity, and not --metric");
    j->target = at_line_list_read(o->target, j->error);
    j->source = j->target && translates ? at_line_list_read(o->source, j->error) : NULL;
    if (j->source && j->source->count != j->target->count)
        return fail(j->error, AT_FORMAT, "'%s' has %lld lines and '%s' has %lld; they must be pairs", o->source,
                    (long long)j->source->count, o->target, (long long)j->target->count);
    return j->error->code == AT_OK;
}

/* ---- The tables ----------------------------------------------------------------------------------------------- */

static const char *kind_of(const at_head *head)
{
    return kind_name(head->kind);
}

/* One number of each head of one kind, a line for each layer. */
static void print_kind(const job *j, int from, int to, bool entropy)
{
    const at_head *head = j->list->head;
    int widest = 0;
    for (int i = from; i < to; i++)
        widest = head[i].head > widest ? head[i].head : widest;
    printf("%s %s\n  layer ", kind_of(&head[from]), entropy ? "entropy" : "importance");
    for (int h = 1; h <= widest; h++)
        printf("  %5d ", h);
    for (int i = from; i < to; i++) {
        if (head[i].head == 1)
            printf("\n  %5d ", head[i].layer);
        printf("  %5.3f%c", entropy ? head[i].entropy : head[i].share, !entropy && j->gone && j->gone[i] ? '*' : ' ');
    }
    printf("\n\n");
}

static void print_tables(const job *j)
{
    const at_head_list *list = j->list;
    for (int from = 0, to; from < list->count; from = to) {
        for (to = from; to < list->count && list->head[to].kind == list->head[from].kind;)
            to++;
        print_kind(j, from, to, false);
        print_kind(j, from, to, true);
    }
}

static bool print_tsv(FILE *stream, const void *context)
{
    const job *j = context;
    fprintf(stream, "kind\tlayer\thead\timportance\tshare\tentropy\tpruned\n");
    for (int i = 0; i < j->list->count; i++) {
        const at_head *h = &j->list->head[i];
        fprintf(stream, "%s\t%d\t%d\t%.9g\t%.9g\t%.9g\t%d\n", kind_of(h), h->layer, h->head, h->importance, h->share,
                h->entropy, j->gone && j->gone[i]);
    }
    return true;
}

static bool write_tsv(const job *j)
{
    cli_outputs outputs = {0};
    cli_output *file = outputs_add(&outputs, "--tsv", j->options->tsv, j->error);
    if (file) {
        file->write = print_tsv;
        file->context = j;
        outputs_write(&outputs, j->error);
    }
    outputs_free(&outputs);
    return j->error->code == AT_OK;
}

/* ---- Removing ------------------------------------------------------------------------------------------------- */

/* The order of importance, the least first; of equals the first in the list. */
static int compare_shares(const void *a, const void *b)
{
    const at_head *x = *(const at_head *const *)a, *y = *(const at_head *const *)b;
    return x->share < y->share ? -1 : x->share > y->share ? 1 : x < y ? -1 : x > y;
}

/* Marks the `removed` least important heads. */
static bool choose_heads(job *j, double share)
{
    const int count = j->list->count;
    const at_head **order = calloc((size_t)count + 1, sizeof *order);
    j->gone = calloc((size_t)count + 1, sizeof *j->gone);
    j->removed = (int)lrint(share * count);
    if (!order || !j->gone) {
        free(order);
        return fail(j->error, AT_MEMORY, "out of memory for %d heads", count);
    }
    for (int i = 0; i < count; i++)
        order[i] = &j->list->head[i];
    qsort(order, (size_t)count, sizeof *order, compare_shares);
    for (int i = 0; i < j->removed; i++)
        j->gone[order[i] - j->list->head] = true;
    free(order);
    return j->removed > 0 ||
           fail(j->error, AT_USAGE, "--prune %s of %d heads is none; the least is one of them, %.3g%%",
                j->options->prune, count, 100.0 / count);
}

static bool remove_heads(const job *j)
{
    for (int i = 0; i < j->list->count; i++)
        if (j->gone[i] && !at_translator_prune(j->translator, &j->list->head[i], 1, j->error))
            return false;
    return true;
}

/* The translations of all lines. */
typedef struct output_lines {
    at_line *line;
    at_error *error;
} output_lines;

static bool keep_line(void *context, int64_t line, const at_result *result)
{
    output_lines *out = context;
    const at_hypothesis *best = &result->best[0];
    char *copy = malloc(best->size + 1);
    if (!copy)
        return fail(out->error, AT_MEMORY, "out of memory for the translations");
    memcpy(copy, best->text, best->size);
    out->line[line] = (at_line){copy, best->size};
    return true;
}

/* scores[0]: the perplexity; scores[1]: the metric, unless it is a language model. */
static bool score_model(const job *j, double scores[2])
{
    if (!perplexity_of(j->translator, j->source, j->target, &scores[0], j->error) || !j->source)
        return j->error->code == AT_OK;
    const int64_t count = j->source->count;
    output_lines out = {calloc((size_t)count + 1, sizeof *out.line), j->error};
    const at_search_settings search = {.beam = j->options->beam};
    bool good = out.line || fail(j->error, AT_MEMORY, "out of memory for the translations");
    good = good && at_translate(j->translator, &search, j->source->line, count, keep_line, &out, j->error) &&
           at_score_lines(j->options->metric ? j->options->metric : "bleu", out.line, j->target->line, count,
                          &scores[1], j->error);
    for (int64_t i = 0; out.line && i < count; i++)
        free((char *)out.line[i].text);
    free(out.line);
    return good;
}

static void print_scores(const job *j, const double before[2], const double after[2])
{
    printf("removed %d of %d heads (*):", j->removed, j->list->count);
    at_attention_kind kind = AT_CROSS_ATTENTION + 1;
    for (int i = 0; i < j->list->count; i++) {
        const at_head *h = &j->list->head[i];
        if (j->gone[i])
            printf("%s%s %d.%d", h->kind == kind ? "" : " ", h->kind == kind ? "" : kind_of(h), h->layer, h->head);
        kind = j->gone[i] ? h->kind : kind;
    }
    printf("\n\n%-16s  %10s  %10s\n", "", "before", "after");
    if (j->source)
        printf("%-16s  %10.2f  %10.2f\n", at_metric_named(j->options->metric ? j->options->metric : "bleu")->title,
               before[1], after[1]);
    printf("%-16s  %10.4f  %10.4f\n", "perplexity", before[0], after[0]);
}

static bool prune(job *j, double share)
{
    double before[2], after[2];
    if (!choose_heads(j, share) || !score_model(j, before) || !remove_heads(j) || !score_model(j, after))
        return false;
    if ((j->options->output && !at_translator_write(j->translator, j->options->output, j->error)) ||
        (j->options->tsv && !write_tsv(j)))
        return false;
    print_tables(j);
    print_scores(j, before, after);
    return true;
}

/* ---- The command ---------------------------------------------------------------------------------------------- */

static void measure(job *j, double share)
{
    const at_search_settings settings = {.batch = j->options->batch_size};
    j->list = at_heads_measure(j->translator, &settings, j->source ? j->source->line : NULL, j->target->line,
                               j->target->count, j->error);
    if (j->list && j->list->empty && !j->options->common.quiet)
        tell_line("attend: %lld pair%s with an empty side, the first in line %lld, left out", (long long)j->list->empty,
                  j->list->empty == 1 ? "" : "s", (long long)j->list->first_empty);
    if (j->list && share > 0)
        prune(j, share);
    else if (j->list && (!j->options->tsv || write_tsv(j)))
        print_tables(j);
}

static int run(void *options, int word_count, char **words)
{
    heads_options *o = options;
    at_error error = {0};
    double share = 0;
    job j = {.options = o, .error = &error};
    if (model_word("heads", &o->model, &word_count, &words, &error) && check(o, &error) &&
        read_share(o->prune, &share, &error))
        j.translator = at_translator_load(o->model, &error);
    if (j.translator && read_lines(&j))
        measure(&j, share);
    free(j.gone);
    at_head_list_free(j.list);
    at_line_list_free(j.source);
    at_line_list_free(j.target);
    at_translator_free(j.translator);
    return report(&error);
}

const cli_command command_heads = {
    .name = "heads",
    .words = "[MODEL]",
    .most_words = 1,
    .line = "measure the heads of a transformer, and remove those that matter least",
    .text = "Prints for every head its importance: the mean over the pairs of |dL/dx|, where L is -log p(target | "
            "source) and "
            "x, which is 1, a factor of what the head adds (Michel et al. 2019), divided by the L2 norm of its layer; "
            "and the "
            "mean entropy of its weights, in nats: 0 looks at one unit, log n at n units alike. One table each for the "
            "encoder's and the decoder's self-attention and the cross-attention. With --prune it removes the heads "
            "with the "
            "least importance: their contribution is exactly 0.",
    .examples =
        "  attend heads -m de-en.safetensors --source test.de --target test.en\n"
        "  attend heads -m de-en.safetensors --source test.de --target test.en --prune 20% -o small.safetensors",
    .options = table,
    .size = sizeof(heads_options),
    .run = run,
};
