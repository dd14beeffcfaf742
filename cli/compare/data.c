/* The data of attend compare: made by a task, or named by the SPEC; in either case files that are there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compare/compare.h"

/* ---- Making --------------------------------------------------------------------------------------------------- */

/* Up to three files beside each other, moved into their places when all is written. */
enum { SOURCE, TARGET, LINKS, PARTS };
static const char *const endings[PARTS] = {"source", "target", "links"};

typedef struct files {
    const char *path[PARTS]; /* NULL: none */
    FILE *stream[PARTS];
} files;

static bool files_open(files *f, compare_spec *spec, const char *folder, const char *name, bool links, at_error *error)
{
    *f = (files){0};
    for (int i = 0; i < (links ? PARTS : LINKS) && error->code == AT_OK; i++) {
        f->path[i] = compare_keep(spec, error, "%s/data/%s.%s", folder, name, endings[i]);
        char *part = f->path[i] ? compare_keep(spec, error, "%s.part", f->path[i]) : NULL;
        f->stream[i] = part ? fopen(part, "w") : NULL;
        if (part && !f->stream[i])
            fail(error, AT_FAILED, "cannot write '%s': %s", part, strerror(errno));
    }
    return error->code == AT_OK;
}

static bool files_close(files *f, compare_spec *spec, at_error *error)
{
    for (int i = 0; i < PARTS; i++) {
        bool written = !f->stream[i] || !ferror(f->stream[i]);
        if (f->stream[i] && fclose(f->stream[i]) != 0)
            written = false;
        char *part = f->stream[i] ? compare_keep(spec, error, "%s.part", f->path[i]) : NULL;
        if (part && (!written || rename(part, f->path[i]) != 0))
            fail(error, AT_FAILED, "cannot write '%s': %s", f->path[i], strerror(errno));
    }
    return error->code == AT_OK;
}

static bool make_pairs(compare_spec *spec, const char *folder, const char *name, task_size size, int64_t count,
                       uint64_t seed, bool kept, compare_files *made, at_error *error)
{
    files f;
    bool good = files_open(&f, spec, folder, name, kept && spec->maker->order, error);
    uint64_t random = task_mix(seed);
    for (int64_t i = 0; good && i < count; i++)
        if (!task_write(spec->maker, size, &random, kept, f.stream[SOURCE], f.stream[TARGET], f.stream[LINKS]))
            good = fail(error, AT_USAGE,
                        "%s: %d symbols in lines of %d to %d words are too few to keep a test apart from the training",
                        spec->path, size.symbols, size.least, size.most);
    *made = (compare_files){.source = f.path[SOURCE], .target = f.path[TARGET], .alignment = f.path[LINKS]};
    return files_close(&f, spec, error) && good;
}

/* Each from a stream of its own, so that a longer training set leaves the others as they are. */
static bool make_all(compare_spec *spec, const char *folder, uint64_t seed, compare_data *data, at_error *error)
{
    for (int s = 0; s < SETS; s++)
        spec->size[s].symbols = (int)spec->symbols;
    const task_size size = spec->size[TEST], further = spec->size[BEYOND];
    const char *named = compare_setting(spec, "source") ? "source" : compare_setting(spec, "tsv") ? "tsv" : NULL;
    for (int s = 0; s < SETS && !named; s++)
        named = spec->set[s].source || spec->set[s].tsv ? compare_set_names[s] : NULL;
    for (int r = 0; r < spec->row_count && !named; r++)
        named = compare_row_has(&spec->row[r], "source") || compare_row_has(&spec->row[r], "tsv") ? spec->row[r].name
                                                                                                  : NULL;
    if (named)
        return fail(error, AT_USAGE, "%s has a task, which makes all data, and yet names files for '%s'", spec->path,
                    named);
    if (further.most && !spec->maker->order)
        return fail(error, AT_USAGE, "%s: beyond is about lines of words, and task '%s' makes none", spec->path,
                    spec->maker->name);
    if (further.most && further.least <= size.most)
        return fail(error, AT_USAGE, "%s: beyond starts at %d words, within the %d of lengths; start above them",
                    spec->path, further.least, size.most);
    seed *= 4;
    data->letters = !spec->maker->order;
    return make_pairs(spec, folder, "train", size, spec->train_lines, seed, false, &data->train, error) &&
           make_pairs(spec, folder, "test", size, spec->test_lines, seed + 1, true, &data->set[TEST], error) &&
           (!further.most ||
            make_pairs(spec, folder, "beyond", further, spec->test_lines, seed + 2, true, &data->set[BEYOND], error)) &&
           (!spec->valid_lines ||
            make_pairs(spec, folder, "valid", size, spec->valid_lines, seed + 3, true, &data->valid, error));
}

/* ---- Finding -------------------------------------------------------------------------------------------------- */

/* One column of a tab-separated line; false if it has not so many. */
static bool column_of(at_line line, int column, at_line *out)
{
    const char *at = line.text, *end = line.text + line.size;
    for (; column > 1; column--) {
        at = memchr(at, '\t', (size_t)(end - at));
        if (!at++)
            return false;
    }
    const char *tab = memchr(at, '\t', (size_t)(end - at));
    *out = (at_line){at, (size_t)((tab ? tab : end) - at)};
    return true;
}

/* The columns of a test are those of `columns`, so that models trained on others would be tried on what they never saw.
 */
static bool has_one_choice_of_columns(const compare_spec *spec, at_error *error)
{
    bool several = false;
    for (int a = 0; a < spec->axis_count; a++)
        several = several || (spec->axis[a].key && strcmp(spec->axis[a].key->option->name, "columns") == 0);
    for (int r = 0; r < spec->row_count; r++)
        several = several || compare_row_has(&spec->row[r], "columns");
    return !several ||
           fail(error, AT_USAGE, "%s: columns are chosen once, for the training and the tests of all runs", spec->path);
}

static bool split_tsv(compare_spec *spec, const char *folder, const char *name, const char *tsv, compare_files *made,
                      at_error *error)
{
    int column[2] = {1, 2};
    const char *columns = compare_setting(spec, "columns");
    if (columns)
        sscanf(columns, "%d,%d", &column[0], &column[1]);
    at_line_list *lines = at_line_list_read(tsv, error);
    files f = {0};
    bool good = lines && files_open(&f, spec, folder, name, false, error);
    for (int64_t i = 0; good && i < lines->count; i++)
        for (int side = SOURCE; good && side <= TARGET; side++) {
            at_line text;
            if (!column_of(lines->line[i], column[side], &text))
                good =
                    fail(error, AT_FAILED, "line %lld of '%s' has no column %d", (long long)i + 1, tsv, column[side]);
            else
                fprintf(f.stream[side], "%.*s\n", (int)text.size, text.text);
        }
    made->source = f.path[SOURCE];
    made->target = f.path[TARGET];
    at_line_list_free(lines);
    return files_close(&f, spec, error) && good;
}

/* A set that the SPEC names. */
static bool find_set(compare_spec *spec, const char *folder, int set, compare_data *data, at_error *error)
{
    const compare_files *given = &spec->set[set];
    const char *name = compare_set_names[set];
    data->set[set] = *given;
    if (given->tsv && (given->source || given->target))
        return fail(error, AT_USAGE, "%s: %s-tsv holds both sides; %s-source and %s-target are too much", spec->path,
                    name, name, name);
    if (!given->source != !given->target)
        return fail(error, AT_USAGE, "%s: %s-%s needs %s-%s beside it", spec->path, name,
                    given->source ? "source" : "target", name, given->source ? "target" : "source");
    if (given->tsv)
        return has_one_choice_of_columns(spec, error) &&
               split_tsv(spec, folder, name, given->tsv, &data->set[set], error);
    if (!given->source && set == TEST)
        return fail(error, AT_USAGE,
                    "%s names nothing to test with; give test-source and test-target, test-tsv, or a task", spec->path);
    return true;
}

static bool find_all(compare_spec *spec, const char *folder, compare_data *data, at_error *error)
{
    if (!compare_setting(spec, "tsv") && !(compare_setting(spec, "source") && compare_setting(spec, "target")))
        return fail(error, AT_USAGE, "%s names no data; give source and target, tsv, or a task such as copy",
                    spec->path);
    const char *units = compare_setting(spec, "source-vocab");
    data->letters = units && strcmp(units, "char") == 0;
    for (int set = 0; set < SETS; set++)
        if (!find_set(spec, folder, set, data, error))
            return false;
    return true;
}

/* ---- Reading -------------------------------------------------------------------------------------------------- */

static const uint64_t FNV_START = 0xcbf29ce484222325u;

/* FNV-1a over the bytes of a file, if there is one. */
static bool mark_file(const char *path, uint64_t *mark, at_error *error)
{
    unsigned char bytes[1 << 16];
    FILE *file = path ? fopen(path, "r") : NULL;
    if (path && !file)
        return fail(error, AT_FAILED, "cannot read '%s': %s", path, strerror(errno));
    for (size_t got; file && (got = fread(bytes, 1, sizeof bytes, file)) > 0;)
        for (size_t i = 0; i < got; i++)
            *mark = (*mark ^ bytes[i]) * 0x100000001b3u;
    if (file && ferror(file))
        fail(error, AT_FAILED, "cannot read '%s': %s", path, strerror(errno));
    if (file)
        fclose(file);
    *mark = (*mark ^ 0xff) * 0x100000001b3u; /* where one file ends is part of it */
    return error->code == AT_OK;
}

/* A file that only some runs are trained with is marked by itself, so that another one leaves them as they are. */
static bool mark_own(compare_data *data, const char *path, at_error *error)
{
    for (int i = 0; i < data->own_count; i++)
        if (strcmp(data->own[i].path, path) == 0)
            return true;
    compare_own *own = realloc(data->own, ((size_t)data->own_count + 1) * sizeof *own);
    if (!own)
        return fail(error, AT_FAILED, "out of memory for the files of the runs");
    data->own = own;
    own[data->own_count] = (compare_own){path, FNV_START};
    return mark_file(path, &own[data->own_count++].mark, error);
}

static bool mark_row(const compare_row *row, compare_data *data, at_error *error)
{
    for (int i = 0; i + 1 < row->count; i++) {
        const cli_option *option = compare_word_option(row->word[i]);
        if (option && compare_is_file(option, row->word[i + 1]) && !mark_own(data, row->word[i + 1], error))
            return false;
    }
    return true;
}

static bool mark_all(const compare_spec *spec, compare_data *data, at_error *error)
{
    const char *made[] = {data->train.source, data->train.target, data->valid.source, data->valid.target};
    data->mark = data->set_mark[TEST] = data->set_mark[BEYOND] = FNV_START;
    for (int i = 0; i < 4; i++)
        mark_file(made[i], &data->mark, error);
    for (int i = 0; i < spec->key_count; i++) {
        const compare_key *key = &spec->key[i];
        if (compare_takes_file(key->option))
            mark_file(key->value[0], &data->mark, error);
        else
            for (int v = 0; v < key->count; v++)
                if (compare_is_file(key->option, key->value[v]))
                    mark_own(data, key->value[v], error);
    }
    for (int r = 0; r < spec->row_count; r++)
        mark_row(&spec->row[r], data, error);
    for (int s = 0; s < SETS; s++) {
        mark_file(data->set[s].source, &data->set_mark[s], error);
        mark_file(data->set[s].target, &data->set_mark[s], error);
    }
    return error->code == AT_OK;
}

static bool read_set(compare_data *data, int set, at_error *error)
{
    const compare_files *f = &data->set[set];
    const at_line_list *source = data->source[set] = at_line_list_read(f->source, error);
    const at_line_list *target = data->target[set] = source ? at_line_list_read(f->target, error) : NULL;
    if (f->alignment && target)
        data->links[set] = at_line_list_read(f->alignment, error);
    if (error->code != AT_OK)
        return false;
    const at_line_list *partner = data->links[set] && target->count == source->count ? data->links[set] : target;
    if (partner->count != source->count)
        return fail(error, AT_FAILED, "'%s' has %lld lines and '%s' has %lld; they belong together line by line",
                    f->source, (long long)source->count, partner == target ? f->target : f->alignment,
                    (long long)partner->count);
    return source->count > 0 || fail(error, AT_FAILED, "'%s' has no line to test with", f->source);
}

/* Links that cannot be read are better known before the models are trained than after: they judge empty lines. */
static bool check_links(const at_line_list *links, const char *path, at_error *error)
{
    at_line *none = calloc((size_t)links->count, sizeof *none);
    const at_line *const references = links->line;
    const at_score_settings settings = {.sentences = true};
    if (!none)
        return fail(error, AT_FAILED, "out of memory for the links of '%s'", path);
    at_scores_free(at_scores_new("aer", &settings, none, links->count, &references, 1, error));
    free(none);
    if (error->code != AT_OK)
        fail_under(error, path);
    return error->code == AT_OK;
}

bool compare_data_ready(compare_spec *spec, const char *folder, uint64_t seed, compare_data *data, at_error *error)
{
    *data = (compare_data){0};
    char *place = compare_keep(spec, error, "%s/data", folder);
    if (!place)
        return false;
    if (mkdir(place, 0777) != 0 && errno != EEXIST)
        return fail(error, AT_FAILED, "cannot make the folder '%s': %s", place, strerror(errno));
    bool good = spec->maker ? make_all(spec, folder, seed, data, error) : find_all(spec, folder, data, error);
    for (int s = 0; good && s < SETS; s++)
        good =
            !data->set[s].source || (read_set(data, s, error) &&
                                     (!data->links[s] || check_links(data->links[s], data->set[s].alignment, error)));
    return good && mark_all(spec, data, error);
}

void compare_data_free(compare_data *data)
{
    for (int s = 0; s < SETS; s++) {
        at_line_list_free(data->source[s]);
        at_line_list_free(data->target[s]);
        at_line_list_free(data->links[s]);
    }
    free(data->own);
}
