/* attend demo: explanations that compute what they show. */
#include <string.h>

#include "demo/demo.h"

static const cli_demo *const demos[] = {&demo_self_attention, &demo_antonyms, &demo_beer, &demo_dates};
enum { DEMOS = sizeof demos / sizeof *demos };

const cli_demo *demo_at(int index)
{
    return index >= 0 && index < DEMOS ? demos[index] : NULL;
}

static const char *name_at(int index)
{
    return index < DEMOS ? demos[index]->name : NULL;
}

/* The worked example has no model to set. */
static bool settings_fit(const cli_demo *demo, const demo_options *options, at_error *error)
{
    for (int i = 0; demo == &demo_self_attention && i < DEMO_SETTINGS; i++)
        if (options->setting[i])
            return fail(error, AT_USAGE, "demo 'self-attention' learns nothing, so it does not use --%s",
                        demo_settings[i + 1].name);
    return true;
}

static int run(void *options, int word_count, char **words)
{
    at_error error = {0};
    const char *names[DEMOS];
    for (int i = 0; i < DEMOS; i++) {
        names[i] = demos[i]->name;
        if (!word_count)
            printf("  %-14s  %s\n", demos[i]->name, demos[i]->line);
        else if (strcmp(words[0], names[i]) == 0)
            return settings_fit(demos[i], options, &error) && demos[i]->run(options, &error) ? EXIT_DONE
                                                                                             : report(&error);
    }
    if (!word_count)
        return EXIT_DONE;
    at_unknown("demo", words[0], names, DEMOS, &error);
    return report(&error);
}

const cli_command command_demo = {
    .name = "demo",
    .words = "[NAME]",
    .most_words = 1,
    .word_at = name_at,
    .line = "explain a mechanism step by step, with its numbers",
    .text = "Explains a mechanism step by step; every number shown is computed when the demo runs. Without a NAME the "
            "demos "
            "are listed.",
    .examples = "  attend demo self-attention",
    .options = demo_settings,
    .size = sizeof(demo_options),
    .run = run,
};
