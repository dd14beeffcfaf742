/* Any command line and any --config file: the first line of the input is the command with its options, the rest is the
 * file. An error message, or options whose values are the same again when they are written as text and read. */
#include "commands.h"
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const cli_command *const commands[] = {&command_list,  &command_attention, &command_train,    &command_translate,
                                              &command_align, &command_show,      &command_encode,   &command_info,
                                              &command_score, &command_average,   &command_compare,  &command_demo,
                                              &command_heads, &command_convert,   &command_calibrate};
enum { COMMANDS = sizeof commands / sizeof *commands, MOST_WORDS_TYPED = 30 };

static const cli_command *find(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return &command_train;
}

static bool is_given(const at_setting *option, const void *options)
{
    const char *field = (const char *)options + option->offset;
    return option->name && !(option->type == AT_SETTING_COUNT && *(const int64_t *)field == UNSET) &&
           !(option->type == AT_SETTING_NUMBER && isnan(*(const double *)field));
}

static void read_back(const cli_command *command, const void *options)
{
    void *other = calloc(1, command->size);
    EXPECT(other);
    for (const at_setting *option = NULL; (option = option_next(command, option));) {
        char text[300], again[300];
        at_error error = {0};
        if (!is_given(option, options) || !*at_setting_text(option, options, text, sizeof text) || strlen(text) > 250)
            continue;
        EXPECT(option_assign(option, option->name, text, other, &error));
        EXPECT(strcmp(text, at_setting_text(option, other, again, sizeof again)) == 0);
    }
    free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const uint8_t *newline = memchr(bytes, '\n', size);
    const size_t line_size = newline ? (size_t)(newline - bytes) : size, used = line_size + (newline != NULL);
    const char *path;
    const int file = open_bytes(bytes + used, size - used, &path);
    char *line = text_of(bytes, line_size), *rest = line, *word, *words[MOST_WORDS_TYPED + 4];
    int count = 0, first;
    while (count < MOST_WORDS_TYPED && (word = strsep(&rest, " ")))
        words[count++] = word;
    const cli_command *command = find(words[0]);
    words[count++] = "--config";
    words[count++] = (char *)path;
    words[count] = NULL;
    at_error error = {0};
    void *options = calloc(1, command->size);
    EXPECT(options);
    const bool done = options_parse(command, count, words, options, &first, &error);
    expect_error(done, &error);
    if (done)
        read_back(command, options);
    options_free(command, options);
    free(options);
    free(line);
    close(file);
    return 0;
}
