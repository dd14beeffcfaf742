/* attend: the command. Every sub-command is one record. */
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "completion.h"
#include "habits.h"
#include "help.h"
#include "manual.h"
#include "program.h"

static const cli_command *const table[] = {&command_list,    &command_attention,  &command_train, &command_translate,
                                           &command_align,   &command_show,       &command_heads, &command_calibrate,
                                           &command_encode,  &command_info,       &command_score, &command_average,
                                           &command_convert, &command_compare,    &command_curve, &command_demo,
                                           &command_bench,   &command_vocabulary, &command_serve};
enum { COMMANDS = sizeof table / sizeof *table };

static const cli_command *find(const char *name, at_error *error)
{
    const char *names[COMMANDS + 1];
    for (int i = 0; i < COMMANDS; i++) {
        names[i] = table[i]->name;
        if (strcmp(names[i], name) == 0)
            return table[i];
    }
    names[COMMANDS] = "help";
    if (habit_command(name))
        fail(error, AT_USAGE, "no command '%s'; it is called attend %s", name, habit_command(name));
    at_unknown("command", name, names, COMMANDS + 1, error);
    return NULL;
}

/* attend help [COMMAND [GROUP] | --man [COMMAND] | --completion SHELL] */
static int help(int argc, char **argv)
{
    at_error error = {0};
    const char *what = argc > 1 ? argv[1] : "--help";
    const bool manual = strcmp(what, "--man") == 0;
    if (strcmp(what, "--help") == 0) {
        help_overview(stdout, table, COMMANDS);
    } else if (strcmp(what, "--completion") == 0) {
        completion_print(argc > 2 ? argv[2] : "", table, COMMANDS, &error);
    } else if (manual && argc < 3) {
        manual_overview(table, COMMANDS);
    } else {
        const cli_command *command = find(argv[manual ? 2 : 1], &error);
        if (command && manual)
            manual_command(command);
        else if (command)
            help_command(command, NULL, argc > 2 ? argv[2] : NULL, &error);
    }
    return report(&error);
}

static int run(const cli_command *command, int argc, char **argv)
{
    return command->run ? program_run(command, argc, argv) : program_start(command, argv);
}

/* How much compressed input may decompress to: a limit of the machine, so it is no option of a command. */
static bool set_limits(at_error *error)
{
    const char *text = getenv("ATTEND_MAX_DECOMPRESSED");
    char *end = "";
    const long long bytes = text ? strtoll(text, &end, 10) : 0;
    if (text && (*end || bytes < 1))
        return fail(error, AT_USAGE, "ATTEND_MAX_DECOMPRESSED is a number of bytes, 1 or more, not '%s'", text);
    at_decompressed_limit_set((uint64_t)bytes);
    return true;
}

int main(int argc, char **argv)
{
    at_error error = {0};
    program_hold_streams();
    if (argc < 2) {
        help_overview(stderr, table, COMMANDS);
        return EXIT_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0) {
        program_version();
        return program_finish(EXIT_DONE);
    }
    if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return program_finish(help(argc - 1, argv + 1));
    if (word[0] == '-') {
        fail(&error, AT_USAGE, "the command comes first, as in attend list; '%s' is not a command", word);
        return report(&error);
    }
    const cli_command *command = set_limits(&error) ? find(word, &error) : NULL;
    return command ? program_finish(run(command, argc - 1, argv + 1)) : report(&error);
}
