/* attend demo: explanations that compute what they show. */
#include <string.h>

#include "commands.h"

static const cli_demo *const demos[] = {&demo_self_attention};
enum { DEMOS = sizeof demos / sizeof *demos };

const cli_demo *demo_at(int index)
{
    return index >= 0 && index < DEMOS ? demos[index] : NULL;
}

static int run(void *options, int word_count, char **words)
{
    at_error error = {0};
    const char *names[DEMOS];
    for (int i = 0; i < DEMOS; i++) {
        names[i] = demos[i]->name;
        if (!word_count)
            printf("  %s  %s\n", demos[i]->name, demos[i]->line);
        else if (strcmp(words[0], names[i]) == 0)
            return demos[i]->run(options, &error) ? AT_OK : report(&error);
    }
    if (!word_count)
        return AT_OK;
    fail_no(&error, "demo", words[0], names, DEMOS);
    return report(&error);
}

const cli_command command_demo = {
    .name = "demo",
    .words = "[NAME]",
    .most_words = 1,
    .line = "explain a mechanism step by step, with its numbers",
    .text = "Explains a mechanism step by step; every number shown is computed as you watch. Without a NAME the demos "
            "are listed.",
    .examples = "  attend demo self-attention",
    .size = sizeof(cli_common),
    .run = run,
};
