/* Which reader loads a model file. */
#include "store/readers_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_kind.h"
#include "base/files.h"

/* The records of the readers; the first that knows a file loads it. A new reader is its file and its line here. */
#define READER_RECORDS(X)                                                                                              \
    X(at_reader_attend)                                                                                                \
    X(at_reader_ctranslate2)                                                                                           \
    X(at_reader_argos)                                                                                                 \
    X(at_reader_marian)                                                                                                \
    X(at_reader_g2p)                                                                                                   \
    X(at_reader_hf_marian)                                                                                             \
    X(at_reader_onmt)
#define DECLARE(reader) extern const at_reader reader;
#define ADDRESS(reader) &reader,
READER_RECORDS(DECLARE)
static const at_reader *const readers[] = {READER_RECORDS(ADDRESS)};
enum { READERS = sizeof readers / sizeof *readers };

static bool check_file(const char *path, bool *is_folder, at_error *error)
{
    struct stat about;
    if (stat(path, &about) != 0 || access(path, R_OK) != 0)
        return at_file_fail(error, "read", path, errno);
    *is_folder = S_ISDIR(about.st_mode);
    return true;
}

/* What the file is, if it can be told; NULL otherwise. */
static const char *kind_of_file(const char *path)
{
    unsigned char bytes[AT_KIND_BYTES];
    at_error unread = {0};
    const size_t size = at_file_begin(path, bytes, sizeof bytes, &unread);
    return unread.code == AT_OK ? at_file_kind(bytes, size) : NULL;
}

static const at_reader *who_knows(const char *path, bool is_folder, at_error *error)
{
    for (int i = 0; i < READERS && error->code == AT_OK; i++)
        if ((!is_folder || readers[i]->of_folders) && readers[i]->knows(path, error))
            return readers[i];
    return NULL;
}

bool at_is_model(const char *path, at_error *error)
{
    bool is_folder = false;
    return error->code == AT_OK && check_file(path, &is_folder, error) && who_knows(path, is_folder, error);
}

static const at_reader *find_reader(const char *path, bool is_folder, at_error *error)
{
    const at_reader *reader = who_knows(path, is_folder, error);
    if (reader)
        return reader;
    char all[300] = "";
    for (int i = 0; i < READERS; i++) {
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s (%s)", i > 0 ? ", " : "", readers[i]->name, readers[i]->formats);
    }
    const char *kind = error->code != AT_OK ? NULL : is_folder ? "a folder" : kind_of_file(path);
    if (kind)
        at_fail(error, AT_UNSUPPORTED, "'%s' is %s, not a model; the known formats are: %s", path, kind, all);
    at_fail(error, AT_UNSUPPORTED, "'%s' is not a model file of a known format; the known formats are: %s", path, all);
    return NULL;
}

at_translator *at_translator_load(const char *path, at_error *error)
{
    bool is_folder = false;
    if (error->code != AT_OK || !check_file(path, &is_folder, error))
        return NULL;
    const at_reader *reader = find_reader(path, is_folder, error);
    at_translator *translator = reader ? calloc(1, sizeof *translator) : NULL;
    if (reader && !translator)
        at_no_memory(error, "the model '%s'", path);
    if (translator && reader->load(translator, path, error))
        return translator;
    at_translator_free(translator);
    return NULL;
}
