#include "line_output.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static bool cannot_write(const line_output *output, at_error *error)
{
    if (output->writer)
        return fail(error, AT_FILE, "cannot write '%s': %s", output->path, strerror(errno));
    return fail(error, AT_FILE, "cannot write to the standard output");
}

bool line_output_open(line_output *output, const char *path, const char *const *inputs, at_error *error)
{
    *output = (line_output){.stream = stdout, .path = path};
    if (!path || strcmp(path, "-") == 0)
        return true;
    for (; *inputs; inputs++)
        if (at_file_same(*inputs, path))
            return fail(error, AT_USAGE, "-o would write over '%s', which is read; name another file", *inputs);
    output->stream = NULL;
    output->writer = at_writer_open(path, error);
    if (!output->writer)
        return false;
    const int copy = dup(at_writer_file(output->writer)); /* which fclose closes */
    output->stream = copy < 0 ? NULL : fdopen(copy, "w");
    if (!output->stream && copy >= 0)
        close(copy);
    return output->stream || cannot_write(output, error);
}

bool line_output_flush(line_output *output, at_error *error)
{
    return fflush(output->stream) == 0 || cannot_write(output, error);
}

bool line_output_good(line_output *output, at_error *error)
{
    return !ferror(output->stream) || cannot_write(output, error);
}

bool line_output_close(line_output *output, at_error *error)
{
    if (output->stream && error->code == AT_OK)
        line_output_flush(output, error);
    if (!output->writer)
        return error->code == AT_OK;
    if (output->stream)
        fclose(output->stream);
    if (error->code == AT_OK)
        return at_writer_commit(output->writer, error);
    at_writer_cancel(output->writer);
    return false;
}

bool model_word(const char *command, const char **model, int *word_count, char ***words, at_error *error)
{
    if (*word_count == 0)
        return true;
    if (*model)
        return fail(error, AT_USAGE, "attend %s has its model, '%s', so '%s' is too much", command, *model,
                    (*words)[0]);
    *model = (*words)[0];
    --*word_count;
    ++*words;
    return true;
}
