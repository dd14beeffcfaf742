/* A demo from its first page to its last. */
#include <stdlib.h>
#include <unistd.h>

#include "demo/demo.h"

static bool pauses(const demo_options *options)
{
    return !options->all && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* Waits for a line from the terminal; false if it begins with q, or if the input ends. */
static bool next_page_wanted(void)
{
    fputs("\n(Enter: the next page, q: stop) ", stdout);
    fflush(stdout);
    const int first = getchar();
    for (int c = first; c != '\n' && c != EOF;)
        c = getchar();
    if (first == EOF)
        putchar('\n');
    else if (colour_wanted()) /* up a line, and delete it */
        fputs("\033[1A\033[2K", stdout);
    return first != 'q' && first != 'Q' && first != EOF;
}

static bool show_pages(const cli_demo *demo, const demo_options *options, void *state, at_error *error)
{
    print_heading(demo->title);
    for (int i = 0; demo->pages[i].title; i++) {
        char title[200];
        if (i > 0 && pauses(options) && !next_page_wanted())
            return true;
        snprintf(title, sizeof title, "\n%d. %s\n", i + 1, demo->pages[i].title);
        print_heading(title);
        if (!demo->pages[i].show(state, error))
            return false;
        fflush(stdout);
    }
    if (demo->example) {
        say("\nWith input of your own:\n");
        show_line("attend demo %s %s", demo->name, demo->example);
    }
    return true;
}

bool demo_run(const cli_demo *demo, const demo_options *options, at_error *error)
{
    if (options->input && !demo->input)
        return fail(error, AT_USAGE, "demo '%s' takes no input, so '%s' is too much", demo->name, options->input);
    void *state = calloc(1, demo->size ? demo->size : 1);
    if (!state)
        return fail(error, AT_MEMORY, "out of memory for the demo");
    const bool done = demo_model_fits(demo, options, error) && (!demo->begin || demo->begin(state, options, error)) &&
                      show_pages(demo, options, state, error);
    if (demo->end)
        demo->end(state);
    free(state);
    return done;
}
