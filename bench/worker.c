#include "worker.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data.h"

enum { MAX_LINE = 400, MAX_SLOTS = 4 };

typedef struct worker {
    const char *who;
    pid_t process; /* 0: not running */
    FILE *to, *from;
} worker;

/* A case that a worker has prepared. */
typedef struct slot {
    worker *owner;
    int number;
    char variant[64];
    double answer; /* the number that came with "ready": a checksum, or flops */
} slot;

static worker torch = {.who = "torch"}, onnxruntime = {.who = "onnxruntime"}, ctranslate2 = {.who = "ctranslate2"};
static slot slots[2 * MAX_SLOTS];
static int slot_count;

/* Sends one line to the worker and reads its answer. False if the worker has ended. */
static bool ask(worker *w, char answer[MAX_LINE], const char *question)
{
    if (fprintf(w->to, "%s\n", question) < 0 || fflush(w->to) != 0 || !fgets(answer, MAX_LINE, w->from)) {
        report_left_out(w->who, "its process ended");
        w->process = 0;
        return false;
    }
    answer[strcspn(answer, "\n")] = '\0';
    return true;
}

static void child(int in, int out, const char *const *command)
{
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    /* Libraries print to stderr while they load; real errors come as an answer. */
    if (!freopen("/dev/null", "w", stderr))
        _exit(127);
    for (int fd = 3; fd < 256; fd++)
        close(fd);
    execv(command[0], (char *const *)command);
    _exit(127);
}

static void start(worker *w, const char *const *command)
{
    int to[2], from[2];
    if (access(command[0], X_OK) != 0 || pipe(to) != 0 || pipe(from) != 0) {
        report_left_out(w->who, "its interpreter is not installed (make peers)");
        return;
    }
    fflush(NULL);
    w->process = fork();
    if (w->process == 0)
        child(to[0], from[1], command);
    close(to[0]);
    close(from[1]);
    w->to = fdopen(to[1], "w");
    w->from = fdopen(from[0], "r");
    char answer[MAX_LINE];
    if (ask(w, answer, "hello") && strncmp(answer, "hello", 5) != 0) {
        report_left_out(w->who, "it is not installed (make peers)");
        w->process = 0;
    }
}

/* The folder of the workers' scripts: next to the binary's folder in a build, or as installed. */
static const char *scripts(void)
{
    static char folder[4096];
    static const char *const folders[] = {"/../bench", "/../share/attend/bench"};
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 64);
    char *slash = length > 0 ? memrchr(folder, '/', (size_t)length) : NULL;
    for (size_t i = 0; slash && i < sizeof folders / sizeof *folders; i++) {
        strcpy(slash, folders[i]);
        if (access(folder, X_OK) == 0)
            return folder;
    }
    return ".";
}

/* The root folder of CTranslate2, which needs a newer C library than the one that attend is built for. */
static const char *ctranslate2_root(void)
{
    static char built[4200];
    const char *given = getenv("ATTEND_CTRANSLATE2");
    snprintf(built, sizeof built, "%s/../build/judge/root", scripts());
    return given ? given : built;
}

static void start_ctranslate2(const char *threads)
{
    /* node gets the script as text, since the root folder has none of our files. */
    static const char COMMAND[] =
        "mount --bind /proc \"$1/proc\" && exec chroot \"$1\" node -e \"$(cat \"$2\")\" \"$3\"";
    char script[4200], node[4300];
    snprintf(script, sizeof script, "%s/ctranslate2_worker.js", scripts());
    snprintf(node, sizeof node, "%s/usr/bin/node", ctranslate2_root());
    if (geteuid() != 0 || access(node, F_OK) != 0) {
        report_left_out(ctranslate2.who,
                        geteuid() != 0 ? "its root folder needs root" : "it is not installed (make peers)");
        return;
    }
    start(&ctranslate2, (const char *const[]){"/usr/bin/unshare", "--mount", "sh", "-c", COMMAND, "-",
                                              ctranslate2_root(), script, threads, NULL});
}

void workers_start(void)
{
    static bool started;
    if (started)
        return;
    started = true;
    signal(SIGPIPE, SIG_IGN);
    char threads[16];
    snprintf(threads, sizeof threads, "%d", bench_options.threads);
    /* Keeps glibc from returning torch's large temporaries to the system after each call, which would halve its
     * speed. */
    setenv("MALLOC_TRIM_THRESHOLD_", "20000000000", 0);
    setenv("MALLOC_MMAP_THRESHOLD_", "20000000000", 0);
    const char *python = getenv("ATTEND_PYTHON"), *node = getenv("ATTEND_NODE"), *peers = getenv("ATTEND_PEERS");
    char torch_script[4200], onnx_script[4200], packages[4200];
    snprintf(torch_script, sizeof torch_script, "%s/torch_worker.py", scripts());
    snprintf(onnx_script, sizeof onnx_script, "%s/onnx_worker.js", scripts());
    snprintf(packages, sizeof packages, "%s/../build/peers", scripts());
    start(&torch, (const char *const[]){python ? python : "/usr/bin/python3", torch_script, threads, NULL});
    start(&onnxruntime,
          (const char *const[]){node ? node : "/usr/bin/node", onnx_script, peers ? peers : packages, threads, NULL});
    start_ctranslate2(threads);
}

static void stop(worker *w)
{
    if (w->to)
        fclose(w->to);
    if (w->from)
        fclose(w->from);
    if (w->process > 0)
        waitpid(w->process, NULL, 0);
    w->process = 0;
}

void workers_stop(void)
{
    stop(&torch);
    stop(&onnxruntime);
    stop(&ctranslate2);
}

static double worker_turn(void *context, int64_t repeats)
{
    const slot *s = context;
    char question[MAX_LINE], answer[MAX_LINE];
    snprintf(question, sizeof question, "run %d %lld", s->number, (long long)repeats);
    if (s->owner->process == 0 || !ask(s->owner, answer, question))
        return -1;
    char *end;
    double seconds = strtod(answer, &end);
    return end == answer ? -1 : seconds;
}

/* Makes the worker prepare a case, described by the words after the slot's number. NULL if it does not support the
 * case. */
static slot *prepare(worker *w, const char *verb, const char *words)
{
    if (w->process == 0 || slot_count == 2 * MAX_SLOTS)
        return NULL;
    slot *s = &slots[slot_count];
    *s = (slot){.owner = w, .number = slot_count};
    char question[MAX_LINE], answer[MAX_LINE];
    snprintf(question, sizeof question, "%s %d %s", verb, s->number, words);
    if (!ask(w, answer, question) || sscanf(answer, "ready %63s %lf", s->variant, &s->answer) != 2)
        return NULL;
    slot_count++;
    for (char *c = s->variant; *c != '\0'; c++)
        *c = *c == '_' ? ' ' : *c;
    return s;
}

/* A worker that has prepared a case joins the race if its result is ours. */
static void join(race *r, slot *s, double checksum, double size)
{
    if (!s)
        return;
    if (!data_agrees(checksum, s->answer, size)) {
        char reason[160];
        snprintf(reason, sizeof reason, "%s: its result differs from ours, checksum %g and not %g", s->variant,
                 s->answer, checksum);
        report_left_out(s->owner->who, reason);
        return;
    }
    race_add(r, s->owner->who, s->variant, worker_turn, s);
}

static void add(race *r, worker *w, const attention_case *what, double checksum, double size)
{
    char words[MAX_LINE / 2];
    snprintf(words, sizeof words, "%d %d %lld %lld %lld %lld %lld %lld %lld", what->backward, what->causal,
             (long long)what->shaw, (long long)what->additive, (long long)what->B, (long long)what->H,
             (long long)what->Q, (long long)what->K, (long long)what->D);
    join(r, prepare(w, "prepare", words), checksum, size);
}

/* A whole model, its work being `verb`. The parameters differ, so there is no result to compare; the work must be the
 * same, within `tolerance` times the flops. */
static void add_model(race *r, worker *w, const char *verb, const char *weights, const model_case *what, double flops,
                      double tolerance)
{
    char words[MAX_LINE - 32];
    snprintf(words, sizeof words,
             "model=%s embedding=%lld hidden=%lld attention=%lld maxout=%lld words=%lld rows=%lld length=%lld "
             "layers=%lld heads=%lld ffn=%lld position=%s conv=%s height=%lld width=%lld coverage=%lld window=%lld "
             "weights=%s",
             what->model, (long long)what->embedding, (long long)what->hidden, (long long)what->attention,
             (long long)what->maxout, (long long)what->words, (long long)what->rows, (long long)what->length,
             (long long)what->layers, (long long)what->heads, (long long)what->ffn,
             what->position ? what->position : "none", what->conv ? what->conv : "none", (long long)what->height,
             (long long)what->width, (long long)what->coverage, (long long)what->window, weights);
    slot *s = prepare(w, verb, words);
    if (!s)
        return;
    if (fabs(s->answer - flops) > tolerance * flops) {
        char reason[160];
        snprintf(reason, sizeof reason, "%s: it does other work than we do, %g flops and not %g", s->variant, s->answer,
                 flops);
        report_left_out(w->who, reason);
        return;
    }
    race_add(r, w->who, s->variant, worker_turn, s);
}

void workers_add_training(race *r, const model_case *what, double flops)
{
    add_model(r, &torch, "train", "f32", what, flops, 0.05);
}

void workers_add_decoding(race *r, const model_case *what, double flops)
{
    add_model(r, &torch, "decode", "f32", what, flops, 0.05);
    add_model(r, &onnxruntime, "decode", "f32", what, flops, 0.5); /* without the encoder */
}

void workers_add_decoding_int8(race *r, const model_case *what, double flops)
{
    add_model(r, &onnxruntime, "decode", "int8", what, flops, 0.5);
}

const char *workers_export_folder(void)
{
    static char folder[4300];
    if (ctranslate2.process == 0)
        return NULL;
    snprintf(folder, sizeof folder, "%s/judge/bench.%d", ctranslate2_root(), (int)getpid());
    return folder;
}

void workers_add_exported(race *r, const char *folder, int64_t tokens)
{
    slot *s = prepare(&ctranslate2, "load", folder + strlen(ctranslate2_root()));
    if (s && llround(s->answer) == tokens) {
        race_add(r, ctranslate2.who, s->variant, worker_turn, s);
        return;
    }
    char reason[160] = "it cannot load the model";
    if (s)
        snprintf(reason, sizeof reason, "%s: it decodes %.0f tokens and not %lld", s->variant, s->answer,
                 (long long)tokens);
    report_left_out(ctranslate2.who, reason);
}

double workers_flops(const contestant *c)
{
    return ((const slot *)c->context)->answer;
}

double workers_peak(const contestant *c)
{
    const slot *s = c->context;
    char question[MAX_LINE], answer[MAX_LINE];
    snprintf(question, sizeof question, "peak %d", s->number);
    double peak;
    return s->owner->process != 0 && ask(s->owner, answer, question) && sscanf(answer, "%lf", &peak) == 1 ? peak : NAN;
}

void workers_add(race *r, const char *who, const attention_case *what, double checksum, double size)
{
    worker *const all[] = {&torch, &onnxruntime};
    for (int i = 0; i < 2; i++) {
        if (!who || strcmp(who, all[i]->who) == 0)
            add(r, all[i], what, checksum, size);
    }
}

void workers_add_convolution(race *r, const conv_case *what, double checksum, double size)
{
    worker *const all[] = {&torch, &onnxruntime};
    char words[MAX_LINE / 2];
    snprintf(words, sizeof words, "%d %lld %lld %lld %lld %s", what->backward, (long long)what->pictures,
             (long long)what->height, (long long)what->width, (long long)what->channels, what->layers);
    for (int i = 0; i < 2; i++)
        join(r, prepare(all[i], "conv", words), checksum, size);
}

void workers_free(void)
{
    for (int i = 0; i < slot_count; i++) {
        char question[MAX_LINE], answer[MAX_LINE];
        snprintf(question, sizeof question, "free %d", slots[i].number);
        if (slots[i].owner->process != 0)
            ask(slots[i].owner, answer, question);
    }
    slot_count = 0;
}
