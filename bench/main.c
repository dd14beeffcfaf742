/* attend-bench: the benchmark as a program. `attend bench ...` starts it with the same arguments. */
#include <string.h>

#include "bench.h"
#include "cmd_bench.h"
#include "program.h"

static int run(void *given, int word_count, char **words)
{
    const bench_settings *settings = given;
    at_error error = {0};
    const char *names[8];
    int count = 0;
    bool known = !word_count;
    for (; bench_name(count); count++) {
        names[count] = bench_name(count);
        known = known || strcmp(words[0], names[count]) == 0;
    }
    if (!known) {
        at_unknown("bench", words[0], names, count, &error);
        return report(&error);
    }
    bench_run(&(bench_request){.name = word_count ? words[0] : NULL,
                               .json = settings->json,
                               .quick = settings->quick,
                               .rivals = !settings->no_rivals,
                               .threads = settings->common.threads == UNSET ? 1 : at_threads(),
                               .rounds = settings->rounds == UNSET ? 0 : (int)settings->rounds,
                               .only = settings->only});
    return EXIT_DONE;
}

int main(int argc, char **argv)
{
    cli_command command = command_bench;
    command.run = run;
    program_hold_streams();
    return program_finish(program_run(&command, argc, argv));
}
