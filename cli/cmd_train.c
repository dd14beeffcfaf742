/* attend train: the library trains; here are its options, its progress and its end. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "commands.h"
#include "program.h"
#include "progress.h"
#include "train_options.h"

/* ---- The run -------------------------------------------------------------------------------------------------- */

static volatile int stop;

/* A signal asks for an end after saving. */
static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static void catch_signals(void)
{
    /* With SA_RESETHAND the second one ends the command at once. */
    const struct sigaction once = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND | SA_RESTART};
    /* A terminal that closes sends more than one, and every line of progress to a closed pipe another. */
    const struct sigaction always = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &once, NULL);
    sigaction(SIGTERM, &once, NULL);
    sigaction(SIGPIPE, &always, NULL);
    if (!program_ignores(SIGHUP)) /* nohup */
        sigaction(SIGHUP, &always, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a file over the size limit is an error message, like a full disk */
}

/* What the user needs to know of the settings after a run. */
typedef struct chosen {
    const char *output, *metric;
    bool overwrite, valid_only;
} chosen;

static void summarise(const at_train_result *r, const chosen *c)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    char updates[32], parameters[32], best[120] = "", at[60] = "";
    if (!isnan(r->best_score))
        snprintf(best, sizeof best, " : best %.*s %.6g", (int)strcspn(c->metric, ","), c->metric, r->best_score);
    if (r->best_update > 0)
        snprintf(at, sizeof at, " at update %lld", (long long)r->best_update);
    tell_line("%s update%s of %s parameters : %.2f s : %.2f words/s : peak memory %.1f MB%s%s",
              grouped(r->updates, updates), r->updates == 1 ? "" : "s", grouped(r->parameters, parameters), r->seconds,
              r->words_per_second, (double)usage.ru_maxrss / 1024, best, at);
    if (r->interrupted && r->saved < 0)
        tell_line("interrupted before the first save; all files are as they were");
    else if (r->interrupted)
        tell_line("interrupted and saved; the same command with --resume%s continues from there",
                  c->overwrite ? " instead of --overwrite" : "");
    else
        tell_line("%s'%s' is the model", r->stopped_early ? "stopped early; " : "", c->output);
}

static bool hand_over(at_training *training, const train_options *options, chosen *c, at_error *error)
{
    char seed[32];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)options->common.seed);
    for (int i = 0; i < MOST_SETTINGS && at_training_setting(i); i++) {
        const at_setting *row = at_training_setting(i);
        const char *value = options->flag[i] ? "true" : options->value[i];
        if (strcmp(row->name, "output") == 0)
            c->output = value;
        if (strcmp(row->name, "valid-metric") == 0)
            c->metric = value ? value : row->fallback;
        if (strcmp(row->name, "overwrite") == 0)
            c->overwrite = options->flag[i];
        if (strcmp(row->name, "valid-only") == 0)
            c->valid_only = options->flag[i];
        if (value && !at_training_set(training, row->name, value, error))
            return false;
    }
    return at_training_set(training, "seed", seed, error);
}

/* The scores of --valid-only, a line each, on stdout; notes as in training. */
static void print_scores(void *context, const at_train_news *news)
{
    if (news->what != AT_NEWS_VALID)
        progress_listen(context, news);
    else
        for (int i = 0; i < news->score_count; i++)
            printf("%s\t%.6g\n", news->scores[i].metric, news->scores[i].score);
}

static int run_train(void *options, int word_count, char **words)
{
    (void)word_count;
    (void)words;
    const train_options *o = options;
    at_error error = {0};
    at_train_result result = {0};
    chosen c = {0};
    cli_progress p = {.quiet = o->common.quiet, .bar = isatty(STDERR_FILENO)};
    at_training *training = at_training_new(&error);
    bool done = training && hand_over(training, o, &c, &error) &&
                (!c.valid_only || program_alone("train --valid-only", &error));
    if (!c.valid_only) /* which has nothing to save */
        catch_signals();
    done = done && at_training_run(training, c.valid_only ? print_scores : progress_listen, &p, &stop, &result, &error);
    at_training_free(training);
    progress_clear(&p);
    if (!done) {
        at_processes_agree(&error);
        return report(&error);
    }
    if (at_process_rank() > 0)
        return EXIT_DONE;
    if (!p.quiet && !c.valid_only)
        summarise(&result, &c);
    return result.interrupted ? EXIT_INTERRUPTED : EXIT_DONE;
}

const cli_command command_train = {
    .name = "train",
    .words = "",
    .line = "train a sequence-to-sequence model on pairs of lines",
    .text =
        "Trains a model that turns source lines into target lines, or with --model transformer-lm a language model "
        "on target lines only, and writes it to one file. Progress goes to stderr, and as JSON to FILE.log.jsonl. An "
        "interrupt (Ctrl-C, or a TERM signal) saves first and exits with 130; the same command with --resume "
        "continues, also after a crash, with the same bits as an uninterrupted run.\n\n"
        "A trained model is not lost by mistake: if FILE or FILE.state exists, --resume or --overwrite must be given. "
        "With --overwrite they stay until the first save; an interrupt before that leaves them alone.",
    .examples = "  attend train --source train.de --target train.en --valid-source val.de --valid-target val.en \\\n"
                "      --model bahdanau --output de-en.safetensors --early-stopping 5\n"
                "  attend train --init de-en.safetensors --freeze 'encoder.*' --source talks.de --target talks.en \\\n"
                "      --output talks.safetensors\n"
                "  attend train --model transformer-lm --target tales.txt --output tales.safetensors\n"
                "  attend train --tsv words.tsv --columns 1,2 --source-vocab char --target-vocab char \\\n"
                "      --output words.safetensors --epochs 30 --resume",
    .often = "source target valid-source valid-target output model source-vocab target-vocab epochs minutes "
             "resume overwrite",
    .list = train_options_all,
    .variants = &train_variants,
    .size = sizeof(train_options),
    .run = run_train,
    .together = true,
};
