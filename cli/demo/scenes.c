/* attend demo scenes: a model looks at pictures and says what it sees (Show, Attend and Tell, Xu et al. 2015).
 *
 * The scenes are drawn from a seed. Where the model looks when it names an object is compared with where the object is. */
#include <stdlib.h>
#include <string.h>

#include "demo/demo.h"
#include "pointing.h"
#include "scenes.h"
#include "tasks.h"

enum { UPDATES = 7000, BATCH = 32, TRAIN = 20000, TEST = 500 };

/* Some scenes: their pictures are in an array in the demo's folder, and `name` are the lines that name them. */
enum { NAME = DEMO_FOLDER + 40 };
typedef struct scenes {
    int count;
    scene *scene; /* of a test; NULL for those of training */
    char (*name)[NAME], (*caption)[SCENE_CAPTION];
    at_line *sources, *targets;
} scenes;

/* What is counted in a test. */
typedef struct tally {
    const scenes *of;
    int right;
    pointing nouns;
} tally;

typedef struct state {
    const demo_options *options;
    int updates;
    char folder[DEMO_FOLDER];
    scenes train, test, novel;
    demo_trained trained;
    const scene *shown;
} state;

/* ---- Scenes --------------------------------------------------------------------------------------------------- */

static void scenes_free(scenes *s)
{
    free(s->scene);
    free(s->name);
    free(s->caption);
    free(s->sources);
    free(s->targets);
    *s = (scenes){0};
}

/* Scenes that are made, and the path of their array. */
typedef struct making {
    scenes *s;
    const char *path;
} making;

static void take(void *context, int64_t i, const scene *one)
{
    const making *m = context;
    scenes *s = m->s;
    memcpy(s->caption[i], one->caption, SCENE_CAPTION);
    s->targets[i] = (at_line){s->caption[i], strlen(one->caption)};
    s->sources[i] = (at_line){s->name[i], (size_t)snprintf(s->name[i], NAME, "%s[%lld]", m->path, (long long)i)};
    if (s->scene)
        s->scene[i] = *one;
}

static bool scenes_make(scenes *s, const char *folder, const char *file, int count, uint64_t seed, bool novel,
                        bool kept, at_error *error)
{
    char path[DEMO_FOLDER + 20];
    snprintf(path, sizeof path, "%s/%s.npy", folder, file);
    *s = (scenes){.count = count,
                  .scene = kept ? calloc((size_t)count, sizeof *s->scene) : NULL,
                  .name = calloc((size_t)count, sizeof *s->name),
                  .caption = calloc((size_t)count, sizeof *s->caption),
                  .sources = calloc((size_t)count, sizeof *s->sources),
                  .targets = calloc((size_t)count, sizeof *s->targets)};
    if (!s->name || !s->caption || !s->sources || !s->targets || (kept && !s->scene))
        return fail(error, AT_MEMORY, "out of memory for the scenes");
    return scenes_write(path, count, seed, novel, take, &(making){s, path}, error);
}

static bool begin(void *context, const demo_options *options, at_error *error)
{
    state *s = context;
    s->options = options;
    s->updates = UPDATES;
    if (options->input) {
        char *rest;
        const long wanted = strtol(options->input, &rest, 10);
        if (*rest || rest == options->input || wanted < 1 || wanted > 100 * UPDATES)
            return fail(error, AT_USAGE, "the updates of training are a number from 1 to %d, not '%s'", 100 * UPDATES,
                        options->input);
        s->updates = (int)wanted;
    }
    const int train = s->updates < TRAIN / BATCH ? s->updates * BATCH : TRAIN; /* no more than are used */
    const uint64_t seed = 4 * options->common.seed;
    return demo_folder_make(s->folder, error) &&
           scenes_make(&s->train, s->folder, "train", train, seed, false, false, error) &&
           scenes_make(&s->test, s->folder, "test", TEST, seed + 1, false, true, error) &&
           scenes_make(&s->novel, s->folder, "novel", TEST, seed + 2, true, true, error);
}

static void end(void *context)
{
    state *s = context;
    scenes_free(&s->train);
    scenes_free(&s->test);
    scenes_free(&s->novel);
    demo_trained_free(&s->trained);
    if (s->folder[0])
        demo_folder_remove(s->folder);
}

/* ---- Drawing -------------------------------------------------------------------------------------------------- */

/* The scene in characters, one for 2 x 2 pixels across and down, or in colours, two pixels for each character. */
static void draw_scene(const scene *s)
{
    const bool colours = colour_wanted();
    for (int row = 0; row < SCENE_SIDE; row += 2) {
        printf("%*s", DEMO_INDENT, "");
        for (int column = 0; column < SCENE_SIDE; column++) {
            const unsigned char *above = s->pixel[row][column], *below = s->pixel[row + 1][column];
            if (colours) {
                printf("\033[38;2;%d;%d;%dm\033[48;2;%d;%d;%dm▀", above[0], above[1], above[2], below[0], below[1],
                       below[2]);
                continue;
            }
            int object = -1;
            for (int i = 0; i < s->count; i++)
                if (scene_covers(s, i, row, column, row + 2, column + 1))
                    object = i;
            putchar(object < 0 ? '.' : "123"[object]);
        }
        puts(colours ? "\033[0m" : "");
    }
}

/* ---- Pages ---------------------------------------------------------------------------------------------------- */

static bool task(void *context, at_error *error)
{
    const state *s = context;
    (void)error;
    say("Pictures of 40 x 40 pixels with one to three objects, and what is to be said of them. The objects are named "
        "row "
        "by row, from left to right:\n");
    draw_scene(&s->test.scene[0]);
    printf("\n");
    show_line("%s\n", s->test.scene[0].caption);
    sayf("%d such scenes are drawn from a seed. Six of the sixty combinations of size, colour and shape never occur "
         "in "
         "them, such as a small red cross: they are for a second test.",
         s->train.count);
    return true;
}

static bool learn(void *context, at_error *error)
{
    state *s = context;
    say("Convolutions make a grid of 10 x 10 cells of each picture. For every word the decoder looks at the cells: "
        "e_ti = v tanh(W h_{t-1} + U a_i) says how much at each. Each update takes 32 scenes.\n");
    fflush(stdout);
    char settings[200];
    snprintf(settings, sizeof settings,
             "target-vocab=word batch-size=%d schedule=cosine updates=%d warmup=%d report-every=1000", BATCH,
             s->updates, s->updates / 20);
    return demo_train_lines(&demo_scenes, s->options, s->train.sources, s->train.targets, s->train.count, settings,
                            &s->trained, error);
}

/* The weight that lies on the object when its noun is said, if the whole caption is right. */
static bool count(void *context, int64_t line, const at_result *result)
{
    tally *t = context;
    const scene *s = &t->of->scene[line];
    const at_hypothesis *best = &result->best[0];
    if (strcmp(best->text, s->caption) != 0)
        return true;
    t->right++;
    int object = 0;
    for (int64_t w = 0; w < best->count && best->weights && best->source_units == SCENE_CELLS; w++) {
        bool marked[SCENE_CELLS];
        if (!scene_is_noun(best->names[w], (int)strlen(best->names[w])) || object >= s->count)
            continue;
        scene_mark(s, object++, marked);
        pointing_add(&t->nouns, best->weights + w * SCENE_CELLS, marked, SCENE_CELLS);
    }
    return true;
}

static bool test_on(state *s, const scenes *of, const char *what, at_error *error)
{
    tally t = {.of = of};
    const at_search_settings search = {.wants_weights = true};
    if (!at_translate(s->trained.translator, &search, of->sources, of->count, count, &t, error))
        return false;
    show_line("%-24s %5.1f%% of %d captions are right, word for word", what, 100.0 * t.right / of->count, of->count);
    if (t.nouns.words > 0) {
        show_line("%-24s %5.1f%% of the weight is on the named object,", "", 100 * pointing_share(&t.nouns));
        show_line("%-24s %5.1f times its share of the cells", "", pointing_times(&t.nouns));
    }
    return true;
}

static bool test(void *context, at_error *error)
{
    state *s = context;
    say("New scenes, and scenes with a combination that it has never seen:\n");
    if (!test_on(s, &s->test, "new scenes", error) || !test_on(s, &s->novel, "combinations never seen", error))
        return false;
    say("\nNobody has told the model where the objects are: it has learned to look there because that helps with the "
        "next "
        "word. attend demo scenes --normaliser hard looks at one cell at a time, and learns by REINFORCE; with "
        "--hard-training exact it sums over all cells instead.");
    return true;
}

/* The largest weight is black; '|' marks the cells of the object. */
static void shade(const scene *s, int object, const float *weights, float shades[SCENE_CELLS], char marks[SCENE_CELLS])
{
    float largest = 0;
    bool marked[SCENE_CELLS];
    scene_mark(s, object, marked);
    for (int i = 0; i < SCENE_CELLS; i++)
        largest = weights[i] > largest ? weights[i] : largest;
    for (int i = 0; i < SCENE_CELLS; i++) {
        shades[i] = largest > 0 ? weights[i] / largest : 0;
        marks[i] = marked[i] ? '|' : ' ';
    }
}

/* The maps of the nouns, beside each other. */
static bool draw_maps(void *context, int64_t line, const at_result *result)
{
    static const char *const empty[SCENE_GRID] = {"", "", "", "", "", "", "", "", "", ""};
    const scene *of = ((state *)context)->shown;
    const at_hypothesis *best = &result->best[0];
    float shades[SCENE_OBJECTS][SCENE_CELLS];
    char marks[SCENE_OBJECTS][SCENE_CELLS];
    demo_maps maps = {.rows = SCENE_GRID, .columns = SCENE_GRID, .row_names = empty, .column_names = empty};
    (void)line;
    draw_scene(of);
    printf("\n");
    show_line("%s\n", best->text);
    for (int64_t w = 0; best->weights && best->source_units == SCENE_CELLS && w < best->count; w++) {
        const int m = (int)maps.count;
        if (!scene_is_noun(best->names[w], (int)strlen(best->names[w])) || m >= of->count)
            continue;
        shade(of, m, best->weights + w * SCENE_CELLS, shades[m], marks[m]);
        maps.values[m] = shades[m];
        maps.marks[m] = marks[m];
        maps.titles[m] = best->names[w];
        maps.count++;
    }
    if (maps.count > 0)
        show_maps(&maps);
    return true;
}

static bool look(void *context, at_error *error)
{
    state *s = context;
    const at_search_settings search = {.wants_weights = true};
    int shown = 0; /* the first scene of three objects */
    while (s->test.scene[shown].count < SCENE_OBJECTS && shown + 1 < s->test.count)
        shown++;
    s->shown = &s->test.scene[shown];
    say("Where it looks when it says what an object is, the darkest cell the most; | marks the object's cells:\n");
    return at_translate(s->trained.translator, &search, s->test.sources + shown, 1, draw_maps, s, error);
}

static const demo_model models[] = {{"show-attend-tell",
                                     "conv=16x5s2,32x3s2,48x3 position=sinusoidal hidden=16 embedding=48 attention=64",
                                     "learning-rate=0.003 optimiser=adamw weight-decay=0.05 doubly-stochastic=0"},
                                    {0}};

const cli_demo demo_scenes = {
    .name = "scenes",
    .line = "pictures -> \"a small red ring above a large blue square\": where it looks",
    .title = "Scenes: attention over pictures",
    .input = "how many updates to train (7000)",
    .example = "1000",
    .models = models,
    .pictures = true,
    .size = sizeof(state),
    .begin = begin,
    .end = end,
    .pages = {{"The task", task}, {"Learning", learn}, {"New scenes", test}, {"Where it looks", look}},
};
