/* attend demo: explanations that compute what they show. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "demo/demo.h"

/* In the order of a course: the operator, its parts, models. */
#define DEMOS(X)                                                                                                       \
    X(self_attention)                                                                                                  \
    X(scores)                                                                                                          \
    X(normalisers) X(projections) X(windows) X(positions) X(hard) X(antonyms) X(beer) X(dates) X(scenes) X(step) X(transformer)  \
        X(rnn_vs_attention)

#define DECLARE(name) extern const cli_demo demo_##name;
#define ADDRESS(name) &demo_##name,
DEMOS(DECLARE)
static const cli_demo *const demos[] = {DEMOS(ADDRESS)};
enum { COUNT = sizeof demos / sizeof *demos };

const cli_demo *demo_at(int index)
{
    return index >= 0 && index < COUNT ? demos[index] : NULL;
}

static const char *name_at(int index)
{
    return index < COUNT ? demos[index]->name : NULL;
}

static const cli_demo *find(const char *name, at_error *error)
{
    const char *names[COUNT];
    for (int i = 0; i < COUNT; i++) {
        names[i] = demos[i]->name;
        if (strcmp(names[i], name) == 0)
            return demos[i];
    }
    at_unknown("demo", name, names, COUNT, error);
    return NULL;
}

/* The words joined by blanks, to release with free; NULL if there is none, or no memory. */
static char *joined(int count, char **words, at_error *error)
{
    size_t size = 1;
    for (int i = 0; i < count; i++)
        size += strlen(words[i]) + 1;
    char *text = count ? calloc(1, size) : NULL, *end = text;
    if (count && !text)
        fail(error, AT_MEMORY, "out of memory for the input of the demo");
    for (int i = 0; text && i < count; i++)
        end = stpcpy(stpcpy(end, i ? " " : ""), words[i]);
    return text;
}

static int list_demos(void)
{
    int width = 0;
    for (int i = 0; i < COUNT; i++)
        width = text_width(demos[i]->name) > width ? text_width(demos[i]->name) : width;
    for (int i = 0; i < COUNT; i++)
        printf("  %-*s  %s\n", width, demos[i]->name, demos[i]->line);
    return EXIT_DONE;
}

static int run(void *given, int word_count, char **words)
{
    demo_options *options = given;
    at_error error = {0};
    if (!word_count)
        return list_demos();
    const cli_demo *demo = find(words[0], &error);
    char *input = demo ? joined(word_count - 1, words + 1, &error) : NULL;
    options->input = input;
    if (demo && error.code == AT_OK)
        demo_run(demo, options, &error);
    free(input);
    return report(&error);
}

static const char *text(void)
{
    static char all[4000];
    int used = snprintf(all, sizeof all,
                        "Explains a mechanism page by page; every number shown is computed when the demo runs. Without "
                        "a NAME the demos are listed. On a terminal a demo pauses after each page. What follows the "
                        "NAME is input of your own; numbers that begin with a dash come after --.\n");
    for (int i = 0; i < COUNT && used < (int)sizeof all; i++)
        if (demos[i]->input)
            used += snprintf(all + used, sizeof all - (size_t)used, "\n  %s: %s", demos[i]->name, demos[i]->input);
    return all;
}

const cli_command command_demo = {
    .name = "demo",
    .words = "[NAME [INPUT]]",
    .most_words = INT_MAX,
    .word_at = name_at,
    .line = "explain a mechanism step by step, with its numbers",
    .make_text = text,
    .examples = "  attend demo self-attention\n"
                "  attend demo dates \"3rd of May 1979\"",
    .options = demo_settings,
    .size = sizeof(demo_options),
    .run = run,
};
