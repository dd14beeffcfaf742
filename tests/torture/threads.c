/* threads.c: eight threads use all of attend.h at the same time, as far as the header allows it, and each result must have
 * the bits that it has alone. threads.sh builds it with ThreadSanitizer and runs it as `threads ROUNDS`. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attend_unstable.h"

enum { THREADS = 8, LINES = 40, WORDS = 6 };

/* ---- Hashes of results ---------------------------------------------------------------------------------------- */

static uint64_t add_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t add_text(uint64_t hash, const char *text)
{
    return text ? add_bytes(hash, text, strlen(text) + 1) : add_bytes(hash, "", 1);
}

static uint64_t add_number(uint64_t hash, double number)
{
    return add_bytes(hash, &number, sizeof number);
}

static void must(bool holds, const char *what, const at_error *error)
{
    if (holds)
        return;
    printf("FOUND: %s: %s\n", what, error ? error->text : "");
    exit(1);
}

static uint64_t add_file(uint64_t hash, const char *path)
{
    char bytes[4096];
    FILE *file = fopen(path, "rb");
    must(file, path, NULL);
    for (size_t got; (got = fread(bytes, 1, sizeof bytes, file)) > 0;)
        hash = add_bytes(hash, bytes, got);
    fclose(file);
    return hash;
}

/* ---- What the threads share: data that nobody changes --------------------------------------------------------- */

static char texts[2][LINES][8 * WORDS];
static at_line sources[LINES], targets[LINES];
static const char *const models[] = {"recurrent.model", "transformer.model", "language.model"};
static at_translator *shared_translator;
static at_maps *shared_maps;
static at_scores *shared_scores, *other_scores;
static at_tensors *shared_tensors;
static float numbers[2 * 32 * 64];

static void make_lines(void)
{
    unsigned state = 1;
    for (int i = 0; i < LINES; i++) {
        const int words = 2 + i % (WORDS - 1);
        for (int w = 0; w < words; w++) {
            state = state * 1103515245 + 12345;
            const unsigned word = state >> 16;
            const int from = (int)strlen(texts[0][i]), to = (int)strlen(texts[1][i]);
            snprintf(texts[0][i] + from, 8, "%s%c%c", w ? " " : "", 'a' + word % 5, 'p' + word / 5 % 4);
            snprintf(texts[1][i] + to, 8, "%s%c%c", w ? " " : "", 'p' + word / 5 % 4, 'a' + word % 5);
        }
        sources[i] = (at_line){texts[0][i], strlen(texts[0][i])};
        targets[i] = (at_line){texts[1][i], strlen(texts[1][i])};
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        numbers[i] = (float)((int)(i * 7919 % 257) - 128) / 64;
}

/* ---- Training ------------------------------------------------------------------------------------------------- */

enum { RECURRENT, TRANSFORMER, LANGUAGE };

static at_training *make_training(int kind, const char *output, at_error *error)
{
    static const char *const settings[][8][2] = {
        {{"embedding", "8"}, {"hidden", "12"}, {"attention", "8"}, {"maxout", "8"}, {"dropout", "0.1"}},
        {{"model", "transformer"},
         {"hidden", "16"},
         {"heads", "2"},
         {"ffn", "24"},
         {"layers", "2"},
         {"joint-vocab", "true"},
         {"source-vocab", "spm:24"},
         {"target-vocab", "spm:24"}},
        {{"model", "transformer-lm"}, {"hidden", "16"}, {"heads", "2"}, {"ffn", "24"}}};
    at_training *training = at_training_new(error);
    for (int i = 0; i < 8 && settings[kind][i][0]; i++)
        at_training_set(training, settings[kind][i][0], settings[kind][i][1], error);
    at_training_set(training, "batch-size", "8", error);
    at_training_set(training, "updates", "4", error);
    at_training_set(training, "valid-every", "2", error);
    at_training_set(training, "overwrite", "true", error);
    at_training_set(training, "output", output, error);
    at_training_data(training, AT_TRAIN, kind == LANGUAGE ? NULL : sources, targets, LINES, error);
    at_training_data(training, AT_VALID, kind == LANGUAGE ? NULL : sources, targets, 8, error);
    must(error->code == AT_OK, "the settings of a training", error);
    return training;
}

static void listen(void *context, const at_train_news *news)
{
    uint64_t *hash = context;
    if (news->what == AT_NEWS_UPDATE || news->what == AT_NEWS_VALID)
        *hash =
            add_number(add_number(*hash, (double)news->update), news->what == AT_NEWS_VALID ? news->score : news->cost);
}

static uint64_t train_to(int kind, const char *output)
{
    at_error error = {0};
    at_train_result result;
    uint64_t hash = 1;
    at_training *training = make_training(kind, output, &error);
    must(at_training_run(training, listen, &hash, NULL, &result, &error), "a training", &error);
    at_training_free(training);
    return add_file(hash, output);
}

static uint64_t train(int thread)
{
    uint64_t hash = 1;
    for (int kind = RECURRENT; kind <= LANGUAGE; kind++) {
        char output[40];
        snprintf(output, sizeof output, "trained-%d-%d", kind, thread);
        hash = add_bytes(hash, &(uint64_t){train_to(kind, output)}, sizeof hash);
    }
    return hash;
}

/* One output for all threads: a run succeeds, or it is refused while another writes. */
static uint64_t train_together(int thread)
{
    (void)thread;
    at_error error = {0};
    at_train_result result;
    at_training *training = make_training(RECURRENT, "together", &error);
    if (!at_training_run(training, NULL, NULL, NULL, &result, &error))
        must(error.code == AT_FILE && strstr(error.text, "another training run is writing"), "a second training",
             &error);
    at_training_free(training);
    return 0;
}

static void *stop_soon(void *stop)
{
    usleep(20000);
    __atomic_store_n((int *)stop, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* *stop may be set from elsewhere. */
static uint64_t train_until_stopped(int thread)
{
    char output[40];
    at_error error = {0};
    at_train_result result;
    pthread_t stopper;
    int stop = 0;
    snprintf(output, sizeof output, "stopped-%d", thread);
    at_training *training = make_training(RECURRENT, output, &error);
    at_training_set(training, "updates", "1000000", &error);
    must(pthread_create(&stopper, NULL, stop_soon, &stop) == 0, "a thread", NULL);
    bool done = at_training_run(training, NULL, NULL, &stop, &result, &error);
    pthread_join(stopper, NULL);
    must(done && result.interrupted, "a training that is stopped", &error);
    at_training_free(training);
    return 0;
}

/* ---- Trained models ------------------------------------------------------------------------------------------- */

static bool add_result(void *context, int64_t line, const at_result *result)
{
    uint64_t *hash = context, h = add_number(*hash, (double)line);
    for (int64_t i = 0; i < result->count; i++) {
        h = add_number(add_text(h, result->best[i].text), result->best[i].score);
        if (result->best[i].weights)
            h = add_bytes(h, result->best[i].weights,
                          (size_t)((result->best[i].count + 1) * result->best[i].source_units) * sizeof(float));
    }
    if (result->features)
        h = add_bytes(h, result->features, (size_t)(result->source_units * result->feature_size) * sizeof(float));
    *hash = h;
    return true;
}

static at_translator *load(int kind)
{
    at_error error = {0};
    at_translator *translator = at_translator_load(models[kind], &error);
    must(translator, models[kind], &error);
    return translator;
}

static uint64_t translate(int thread)
{
    (void)thread;
    static const at_search_settings searches[] = {
        {.batch = 7}, {.beam = 3, .n_best = 2, .length_penalty = 0.6}, {.temperature = 1, .n_best = 2, .seed = 3}};
    uint64_t hash = 1;
    at_error error = {0};
    for (int kind = RECURRENT; kind <= LANGUAGE; kind++) {
        at_translator *translator = load(kind);
        for (int s = 0; s < 3; s++) {
            at_search_settings search = searches[s];
            search.max_length = 10;
            search.wants_weights = kind == RECURRENT;
            must(at_translate(translator, &search, sources, 12, add_result, &hash, &error), "at_translate", &error);
        }
        at_translator_free(translator);
    }
    return hash;
}

typedef struct stream {
    uint64_t hash; /* first: add_result gets the same context */
    int next;
} stream;

static at_stream next_line(void *context, at_line *line, at_error *error)
{
    (void)error;
    stream *s = context;
    if (s->next == 20)
        return AT_STREAM_END;
    *line = sources[s->next++];
    return AT_STREAM_LINE;
}

static uint64_t translate_stream(int thread)
{
    (void)thread;
    at_error error = {0};
    at_search_settings search = {.batch = 3, .max_length = 8};
    stream s = {.hash = 1};
    at_translator *translator = load(TRANSFORMER);
    must(at_translate_stream(translator, &search, next_line, add_result, &s, &error), "at_translate_stream", &error);
    at_translator_free(translator);
    return s.hash;
}

/* Clones of one translator, each made and used by its own thread; and the same model from memory. */
static uint64_t translate_by_clones(int thread)
{
    (void)thread;
    uint64_t hash[2] = {1, 1};
    int stop = 0;
    at_error error = {0};
    at_search_settings search = {.beam = 2, .max_length = 8, .stop = &stop};
    long size = 0;
    FILE *file = fopen(models[TRANSFORMER], "rb");
    must(file && fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) > 0, "the size of a model", NULL);
    rewind(file);
    void *bytes = malloc((size_t)size);
    must(bytes && fread(bytes, 1, (size_t)size, file) == (size_t)size, "the bytes of a model", NULL);
    fclose(file);
    at_translator *own[2] = {at_translator_clone(shared_translator, &error),
                             at_translator_load_memory(bytes, (size_t)size, &error)};
    free(bytes);
    for (int i = 0; i < 2; i++) {
        must(own[i] && at_translate(own[i], &search, sources, 12, add_result, &hash[i], &error), "a clone", &error);
        at_translator_free(own[i]);
    }
    return hash[0] ^ hash[1] << 1;
}

static uint64_t align_and_encode(int thread)
{
    (void)thread;
    uint64_t hash = 1;
    at_error error = {0};
    at_search_settings search = {.wants_weights = true};
    for (int kind = RECURRENT; kind <= TRANSFORMER; kind++) {
        at_translator *translator = load(kind);
        must(at_align(translator, &search, sources, targets, 12, add_result, &hash, &error), "at_align", &error);
        must(at_encode(translator, &search, sources, 12, add_result, &hash, &error), "at_encode", &error);
        at_translator_free(translator);
    }
    return hash;
}

static uint64_t prune(int thread)
{
    char path[40];
    at_error error = {0};
    uint64_t hash = 1;
    at_translator *translator = load(TRANSFORMER);
    at_head_list *list = at_heads_measure(translator, &(at_search_settings){.batch = 5}, sources, targets, 12, &error);
    must(list && list->count > 0, "at_heads_measure", &error);
    for (int i = 0; i < list->count; i++)
        hash = add_number(add_number(hash, list->head[i].importance), list->head[i].entropy);
    snprintf(path, sizeof path, "pruned-%d", thread);
    must(at_translator_prune(translator, list->head, 2, &error) && at_translator_write(translator, path, &error),
         "at_translator_prune", &error);
    at_head_list_free(list);
    at_translator_free(translator);
    return add_file(hash, path);
}

static uint64_t add_maps(uint64_t hash, const at_maps *maps)
{
    const at_map *map;
    for (int i = 0; (map = at_maps_at(maps, i)); i++) {
        hash = add_bytes(hash, map->weights, (size_t)(map->heads * map->rows * map->columns) * sizeof(float));
        hash = add_text(hash, map->row_names[map->rows - 1]);
    }
    return add_number(add_text(hash, at_maps_target(maps)), at_maps_score(maps));
}

static uint64_t draw_maps(int thread)
{
    (void)thread;
    at_error error = {0};
    at_search_settings search = {.max_length = 6};
    at_translator *translator = load(TRANSFORMER);
    at_maps *own = at_maps_new(translator, &search, &sources[2], &targets[2], &error), *words = NULL;
    must(own && (words = at_maps_words(shared_maps, &error)), "at_maps_new", &error);
    uint64_t hash = add_maps(add_maps(add_maps(1, own), shared_maps), words);
    const at_map *map = at_maps_at(shared_maps, 0);
    at_heatmap picture = {map->rows, map->columns, map->weights, map->row_names, map->column_names, true, 60, false};
    const at_heatmap pictures[2] = {picture, picture};
    char *one = at_heatmap_text(&picture, &error);
    char *two = at_heatmaps_text(pictures, (const char *const[]){"first", "second"}, 2, &error);
    must(one && two, "a picture", &error);
    hash = add_text(add_text(hash, one), two);
    at_text_free(one);
    at_text_free(two);
    at_beams *beams = at_beams_new(translator, &(at_search_settings){.beam = 3, .max_length = 6}, &sources[2], &error);
    must(beams, "at_beams_new", &error);
    hash = add_bytes(hash, beams->weights, (size_t)beams->source_units * sizeof(float));
    at_beams_free(beams);
    at_maps *relevance = at_maps_relevance(own, translator, &error);
    must(relevance, "at_maps_relevance", &error);
    hash = add_maps(hash, relevance);
    at_maps_free(relevance);
    at_maps_free(words);
    at_maps_free(own);
    at_translator_free(translator);
    return hash;
}

/* The const calls of one translator. */
static uint64_t describe(int thread)
{
    (void)thread;
    int layers = 0, heads = 0, layer = 0, head = 0;
    at_error error = {0};
    uint64_t hash = at_translator_has_source(shared_translator) + 2 * at_translator_has_pictures(shared_translator);
    hash += (uint64_t)at_translator_heads(shared_translator, &layers, &heads) + (uint64_t)(10 * layers + heads);
    hash += (uint64_t)at_translator_guided(shared_translator, &layer, &head);
    hash += (uint64_t)at_translator_longest(shared_translator);
    for (int json = 0; json < 2; json++) {
        char *info =
            json ? at_translator_info_json(shared_translator, &error) : at_translator_info(shared_translator, &error);
        must(info, "at_translator_info", &error);
        hash = add_text(hash, info);
        at_text_free(info);
    }
    at_line_list *sources = at_translator_sources(shared_translator, "lines", &error);
    must(sources, "at_translator_sources", &error);
    hash += (uint64_t)sources->count;
    at_line_list_free(sources);
    return hash;
}

static uint64_t combine_models(int thread)
{
    char mean[40];
    bool has_checksum = false;
    uint64_t hash = 1;
    at_error error = {0};
    at_search_settings search = {.beam = 2, .max_length = 8};
    snprintf(mean, sizeof mean, "mean-%d", thread);
    must(at_models_average((const char *const[]){"recurrent.model", "recurrent.model.last"}, 2, mean, &error) &&
             at_model_verify(mean, &has_checksum, &error),
         "at_models_average", &error);
    at_translator *translator = load(RECURRENT);
    must(at_translator_add(translator, mean, &error) &&
             at_translate(translator, &search, sources, 8, add_result, &hash, &error),
         "an ensemble", &error);
    at_translator_free(translator);
    return add_file(hash + has_checksum, mean);
}

/* ---- The operator, arrays, lines ------------------------------------------------------------------------------ */

static uint64_t attend(int thread)
{
    (void)thread;
    static const at_settings settings[] = {{.heads = 4},
                                           {.normaliser = "sparsemax", .window = "causal", .heads = 2},
                                           {.score = "dot", .normaliser = "entmax15", .window = "sliding:5"},
                                           {.position = "rope", .heads = 4, .kv_heads = 4, .plain = true},
                                           {.normaliser = "hard", .position = "alibi", .heads = 2}};
    enum { B = 2, N = 32, WIDTH = 64, COUNT = B * N * WIDTH };
    uint64_t hash = 1;
    float *room = calloc(4 * COUNT, sizeof *room);
    at_parameter projections[4] = {{.name = "WQ"}, {.name = "WK"}, {.name = "WV"}, {.name = "WO"}};
    for (int i = 0; i < 4; i++) {
        projections[i].rank = 2;
        projections[i].dim[0] = projections[i].dim[1] = WIDTH;
        projections[i].value = numbers;
    }
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++) {
        at_error error = {0};
        at_call call = {
            .batch = B, .queries = N, .keys = N, .query_width = WIDTH, .key_width = WIDTH, .value_width = WIDTH};
        call.query = call.key = call.value = call.grad_out = numbers;
        call.out = room;
        call.grad_query = room + COUNT;
        call.grad_key = room + 2 * COUNT;
        call.grad_value = room + 3 * COUNT;
        call.parameters = projections;
        call.parameter_count = s % 2 ? 0 : 4;
        must(at_attend(&settings[s], &call, &error), "at_attend", &error);
        hash = add_bytes(hash, room, 4 * COUNT * sizeof *room);
    }
    free(room);
    return hash;
}

/* Files of its own, and one that all of them write. */
static uint64_t use_arrays(int thread)
{
    char own[40];
    at_error error = {0};
    at_array *array = at_array_new(AT_F64, 2, (int64_t[]){8, 16}, &error);
    must(array && at_array_count(array) == 128, "at_array_new", &error);
    for (int i = 0; i < 128; i++)
        ((double *)array->data)[i] = numbers[i];
    at_array *single = at_array_to_f32(array, &error);
    at_tensors *tensors = at_tensors_new();
    snprintf(own, sizeof own, "tensors-%d", thread);
    must(single && at_tensors_put(tensors, "x", single, &error) && at_tensors_set_meta(tensors, "k", "v", &error) &&
             at_tensors_write(tensors, own, &error) && at_tensors_write(tensors, "tensors-all", &error) &&
             at_npy_write("array-all.npy", single, &error),
         "writing arrays", &error);
    at_tensors_free(tensors);
    uint64_t hash = add_file(1, own);
    at_array *read = at_npy_read("array-all.npy", &error);
    tensors = at_tensors_read("tensors-all", &error);
    must(read && tensors, "reading what all threads write", &error);
    hash = add_bytes(hash, read->data, 128 * sizeof(float));
    hash = add_bytes(hash, at_tensors_get(tensors, "x")->data, 128 * sizeof(float));
    hash = add_text(hash, at_tensors_meta(tensors, "k"));
    for (int i = 0; i < at_tensors_count(shared_tensors); i++) /* that of all of them, which nobody changes */
        hash = add_text(hash, at_tensors_name(shared_tensors, i));
    at_tensors_free(tensors);
    at_array_free(read);
    at_array_free(single);
    at_array_free(array);
    return hash;
}

static uint64_t read_lines(int thread)
{
    (void)thread;
    uint64_t hash = 1;
    at_line line;
    int64_t words[64];
    at_error error = {0};
    at_line_list *list = at_line_list_read("lines", &error);
    at_line_reader *reader = at_line_reader_open("lines", &error);
    must(list && reader, "reading lines", &error);
    while (at_line_reader_ready(reader) && at_line_reader_next(reader, &line, &error))
        hash = add_bytes(hash, line.text, line.size);
    for (int64_t i = 0; i < list->count; i++)
        hash = add_bytes(hash, list->line[i].text, list->line[i].size);
    hash += (uint64_t)at_word_numbers(list->line[0], (const int32_t[]){0, 2, 3, 5}, 2, words);
    at_line_reader_free(reader);
    at_line_list_free(list);
    return hash;
}

/* ---- Scores, lists, errors ------------------------------------------------------------------------------------ */

static uint64_t score(int thread)
{
    (void)thread;
    uint64_t hash = 1;
    at_error error = {0};
    double total = 0;
    const at_line *const references = targets;
    for (int m = 0; at_metric(m); m++) {
        if (at_metric(m)->alignments)
            continue;
        at_scores *scores = at_scores_new(at_metric(m)->name, NULL, sources, LINES, &references, 1, &error);
        must(scores && at_score_lines(at_metric(m)->name, sources, targets, LINES, &total, &error), "scores", &error);
        hash = add_number(add_number(hash, at_scores_total(scores)), total);
        at_scores_free(scores);
    }
    at_spread spread = {0};
    at_comparison comparison = {0};
    must(at_scores_spread(shared_scores, &spread, &error) &&
             at_scores_compare(shared_scores, other_scores, &comparison, &error),
         "shared scores", &error);
    hash = add_number(add_number(hash, spread.mean), comparison.p);
    hash = add_number(hash, at_scores_line(shared_scores, at_scores_count(shared_scores) - 1));
    hash = add_number(hash, at_scores_part(shared_scores, (const int64_t[]){1, 3}, 2));
    hash = add_text(add_text(hash, at_scores_signature(shared_scores)), at_scores_details(shared_scores));
    return add_text(hash, at_scores_metric(shared_scores)->title);
}

static uint64_t list(int thread)
{
    (void)thread;
    uint64_t hash = add_text(add_text(1, at_version()), at_kernels_name());
    for (int i = 0; at_catalogue(i); i++)
        hash = add_text(hash, at_catalogue(i)->formula);
    for (int i = 0; at_model_entry(i); i++)
        hash = add_text(hash, at_model_entry(i)->name);
    for (int i = 0; at_training_option_at(i); i++) {
        char text[80] = "";
        at_training_default("transformer", at_training_option_at(i)->name, text, sizeof text);
        hash = add_text(add_text(hash, at_training_option_at(i)->name), text);
    }
    for (int i = 0; at_tokeniser_name(i); i++)
        hash = add_text(hash, at_tokeniser_name(i));
    return add_text(hash, at_metric_named("bleu")->meaning);
}

static uint64_t fail(int thread)
{
    (void)thread;
    at_error error[6] = {0};
    double total;
    at_call call = {0};
    const at_settings settings = {.score = "scaledd"};
    at_training *training = at_training_new(&error[0]);
    must(!at_translator_load("lines", &error[0]) && !at_translator_load("missing", &error[1]) &&
             !at_training_set(training, "hiden", "3", &error[2]) && !at_attend(&settings, &call, &error[3]) &&
             !at_score_lines("blue", sources, targets, LINES, &total, &error[4]) && !at_npy_read("lines", &error[5]),
         "what should fail", NULL);
    at_training_free(training);
    uint64_t hash = 1;
    for (int i = 0; i < 6; i++)
        hash = add_text(hash, error[i].text);
    return hash;
}

/* Settings of the whole library, which may change at any time. */
static uint64_t change_settings(int thread)
{
    at_threads_set(1 + thread % 4);
    at_decompressed_limit_set((uint64_t)(thread % 2) << 30);
    must(at_threads() >= 1, "at_threads", NULL);
    return 0;
}

/* ---- All of them at the same time ----------------------------------------------------------------------------- */

typedef uint64_t operation(int thread);
static const struct {
    const char *name;
    operation *run;
} operations[] = {{"attend", attend},
                  {"train", train},
                  {"train_together", train_together},
                  {"train_until_stopped", train_until_stopped},
                  {"translate", translate},
                  {"translate_stream", translate_stream},
                  {"translate_by_clones", translate_by_clones},
                  {"align_and_encode", align_and_encode},
                  {"draw_maps", draw_maps},
                  {"describe", describe},
                  {"combine_models", combine_models},
                  {"prune", prune},
                  {"use_arrays", use_arrays},
                  {"read_lines", read_lines},
                  {"score", score},
                  {"list", list},
                  {"fail", fail},
                  {"change_settings", change_settings}};
enum { OPERATIONS = sizeof operations / sizeof *operations };
static uint64_t expected[OPERATIONS];
static int rounds;
static atomic_int done;
static pthread_barrier_t together;

/* In each round every thread begins with another operation, and all of them do all. In every other round all do the
 * same at once. */
static void *work(void *number)
{
    const int thread = (int)(intptr_t)number;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < OPERATIONS; i++) {
            const int which = (i + (round % 2 ? 2 * thread : 0)) % OPERATIONS;
            pthread_barrier_wait(&together);
            if (operations[which].run(thread) != expected[which]) {
                printf("FOUND: %s has other results beside other threads than alone\n", operations[which].name);
                exit(1);
            }
            done++;
        }
    return NULL;
}

static void make_shared(void)
{
    at_error error = {0};
    at_search_settings search = {.max_length = 6};
    const at_line *const references = targets;
    make_lines();
    FILE *file = fopen("lines", "w");
    for (int i = 0; i < LINES; i++)
        fprintf(file, "%s\n", texts[0][i]);
    fclose(file);
    for (int kind = RECURRENT; kind <= LANGUAGE; kind++)
        train_to(kind, models[kind]);
    shared_translator = load(TRANSFORMER);
    at_translator *translator = load(RECURRENT);
    shared_maps = at_maps_new(translator, &search, &sources[1], NULL, &error);
    at_translator_free(translator);
    shared_tensors = at_tensors_read(models[RECURRENT], &error);
    shared_scores = at_scores_new("chrf", NULL, sources, LINES, &references, 1, &error);
    other_scores = at_scores_new("chrf", NULL, targets, LINES, &references, 1, &error);
    must(shared_maps && shared_tensors && shared_scores && other_scores, "what the threads share", &error);
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    rounds = argc > 1 ? atoi(argv[1]) : 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    make_shared();
    for (int i = 0; i < OPERATIONS; i++)
        expected[i] = operations[i].run(0);
    pthread_barrier_init(&together, NULL, THREADS);
    for (int t = 0; t < THREADS; t++)
        must(pthread_create(&threads[t], NULL, work, (void *)(intptr_t)t) == 0, "a thread", NULL);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    at_translator_free(shared_translator);
    at_maps_free(shared_maps);
    at_tensors_free(shared_tensors);
    at_scores_free(shared_scores);
    at_scores_free(other_scores);
    printf("%d operations of %d kinds by %d threads\n", done, OPERATIONS, THREADS);
    return 0;
}
