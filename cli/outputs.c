#include "outputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *parent_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return !slash ? strdup(".") : slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* Whether files can be created in the directory of `path`. */
static bool check_parent(const char *option, const char *path, at_error *error)
{
    char *parent = parent_of(path);
    struct stat about;
    bool good = parent;
    if (!good)
        fail(error, AT_MEMORY, "out of memory for the name of a file");
    else if (stat(parent, &about) != 0)
        good = fail(error, AT_FILE, "%s: cannot write '%s': the directory '%s' does not exist", option, path, parent);
    else if (!S_ISDIR(about.st_mode))
        good = fail(error, AT_FILE, "%s: cannot write '%s': '%s' is not a directory", option, path, parent);
    else if (access(parent, W_OK) != 0)
        good = fail(error, AT_FILE, "%s: cannot write '%s': no permission to write to the directory '%s'", option, path,
                    parent);
    free(parent);
    return good;
}

/* The absolute path without links, so that two names of one file become equal. A file that does not exist yet gets that
 * of its directory; in a directory that is still to be created it stays as it is, as no other file can be there. */
static char *true_name(const char *path)
{
    char *name = realpath(path, NULL);
    if (name)
        return name;
    char *parent = parent_of(path), *folder = parent ? realpath(parent, NULL) : NULL;
    const char *slash = strrchr(path, '/');
    if (!folder)
        name = strdup(path);
    else if (asprintf(&name, "%s/%s", folder, slash ? slash + 1 : path) < 0)
        name = NULL;
    free(folder);
    free(parent);
    return name;
}

/* A file is replaced whole, which would remove a device such as /dev/null. */
static bool check_file(const cli_output *file, at_error *error)
{
    struct stat about;
    if (stat(file->path, &about) != 0)
        return true;
    if (S_ISDIR(about.st_mode))
        return fail(error, AT_FILE, "%s: '%s' is a directory; name a file", file->option, file->path);
    if (!S_ISREG(about.st_mode))
        return fail(error, AT_FILE, "%s: '%s' is not a regular file; name one that may be replaced", file->option,
                    file->path);
    return access(file->path, W_OK) == 0 ||
           fail(error, AT_FILE, "%s: no permission to write to the file '%s'", file->option, file->path);
}

static cli_output *add(cli_outputs *outputs, const char *option, char *path, at_error *error)
{
    cli_output *file = &outputs->file[outputs->count];
    char *name = path && outputs->count < MOST_OUTPUTS ? true_name(path) : NULL;
    if (!name) {
        if (path && outputs->count == MOST_OUTPUTS)
            fail(error, AT_UNSUPPORTED, "%s: more than %d files to write", option, MOST_OUTPUTS);
        else
            fail(error, AT_MEMORY, "out of memory for the path of %s", option);
        free(path);
        return NULL;
    }
    *file = (cli_output){.option = option, .path = path, .name = name};
    outputs->count++;
    for (int i = 0; i < outputs->count - 1; i++)
        if (strcmp(outputs->file[i].name, file->name) == 0) {
            fail(error, AT_USAGE, "%s and %s both name '%s'; one would overwrite the other", outputs->file[i].option,
                 option, path);
            return NULL;
        }
    return check_file(file, error) ? file : NULL;
}

cli_output *outputs_add(cli_outputs *outputs, const char *option, const char *path, at_error *error)
{
    return check_parent(option, path, error) ? add(outputs, option, strdup(path), error) : NULL;
}

cli_output *outputs_add_in_folder(cli_outputs *outputs, const char *name, at_error *error)
{
    char *path;
    if (asprintf(&path, "%s/%s.npy", outputs->folder, name) < 0)
        path = NULL;
    return add(outputs, outputs->folder_option, path, error);
}

bool outputs_folder(cli_outputs *outputs, const char *option, const char *folder, at_error *error)
{
    struct stat about;
    outputs->folder = folder;
    outputs->folder_option = option;
    if (stat(folder, &about) != 0)
        return check_parent(option, folder, error);
    if (!S_ISDIR(about.st_mode))
        return fail(error, AT_FILE, "%s: '%s' is a file; name a directory, existing or not", option, folder);
    if (access(folder, W_OK) != 0)
        return fail(error, AT_FILE, "%s: no permission to write to the directory '%s'", option, folder);
    return true;
}

/* ---- Writing -------------------------------------------------------------------------------------------------- */

static bool write_text(const cli_output *file, at_error *error)
{
    text_file text;
    if (!text_open(&text, error))
        return false;
    if (!file->write(text.stream, file->context))
        fail(error, AT_MEMORY, "out of memory for the text of '%s'", file->path);
    return text_close(&text, file->writer, error);
}

static bool stage(cli_outputs *outputs, at_error *error)
{
    if (outputs->folder && mkdir(outputs->folder, 0777) == 0)
        outputs->folder_made = true;
    else if (outputs->folder && errno != EEXIST)
        return fail(error, AT_FILE, "%s: cannot create the directory '%s': %s", outputs->folder_option, outputs->folder,
                    strerror(errno));
    for (int i = 0; i < outputs->count; i++) {
        cli_output *file = &outputs->file[i];
        file->writer = at_writer_open(file->path, error);
        if (!file->writer || !(file->write ? write_text(file, error) : at_npy_add(file->writer, file->array, error)) ||
            !at_writer_sync(file->writer, error))
            return fail_under(error, file->option);
    }
    return true;
}

bool outputs_write(cli_outputs *outputs, at_error *error)
{
    bool good = stage(outputs, error);
    for (int i = 0; i < outputs->count; i++) {
        cli_output *file = &outputs->file[i];
        if (good && !at_writer_commit(file->writer, error))
            good = fail_under(error, file->option);
        else if (!good)
            at_writer_cancel(file->writer);
        file->writer = NULL;
    }
    if (!good && outputs->folder_made)
        rmdir(outputs->folder);
    return good;
}

void outputs_free(cli_outputs *outputs)
{
    for (int i = 0; i < outputs->count; i++) {
        free(outputs->file[i].path);
        free(outputs->file[i].name);
    }
}
