/* The settings of a run that is resumed: what is not given is as its state has it. A run so keeps its settings when
 * defaults change from one version to the next. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "io/checksum.h"
#include "train/train_internal.h"

void at_stored_free(at_stored *stored)
{
    free(stored->text);
    *stored = (at_stored){0};
}

/* The lines of the state that describe its run, in stored->text; NULL if there is no state that can be read and is
 * undamaged, which is reported when the run begins. */
static bool read_run(const char *output, at_stored *stored, at_error *error)
{
    at_buffer path = {0};
    at_error unread = {0};
    at_buffer_print(&path, "%s.state", output);
    if (path.failed)
        return at_no_memory(error, "the name '%s.state'", output);
    at_tensors *file = access(path.bytes, F_OK) == 0 ? at_tensors_read(path.bytes, &unread) : NULL;
    bool has_checksum;
    const bool good = file && at_tensors_verify(file, path.bytes, &has_checksum, &unread);
    const char *run = good ? at_tensors_meta(file, "run") : NULL;
    stored->text = run ? strdup(run) : NULL;
    if (unread.code == AT_MEMORY || (run && !stored->text))
        at_no_memory(error, "the settings in '%s'", path.bytes);
    at_tensors_free(file);
    at_buffer_free(&path);
    return error->code == AT_OK;
}

/* Whether the state has the row's value as one word: the name of a file may contain blanks. */
static bool is_one_word(const at_setting *row)
{
    return row->resume == AT_RESUME_SAME && (row->type != AT_SETTING_TEXT || row->known);
}

/* Cuts the lines into words and notes the value of each "--name value". */
static void find_values(char *text, const char *value[AT_MOST_SETTINGS])
{
    char *rest = text, *word;
    int index = -1;
    while ((word = strsep(&rest, " \n"))) {
        if (index >= 0)
            value[index] = word;
        index = strncmp(word, "--", 2) == 0 ? at_setting_find(at_training_setting, word + 2) : -1;
        if (index >= 0 && !is_one_word(at_training_setting(index)))
            index = -1;
    }
}

/* An unset count is 0 there, whatever the least is that can be given. */
static bool parse(const at_setting *row, const char *value, void *into)
{
    at_error ignored = {0};
    const bool unset = row->type == AT_SETTING_COUNT && strcmp(value, "0") == 0;
    if (unset)
        *(int64_t *)((char *)into + row->offset) = 0;
    return unset || at_setting_parse(row, NULL, value, into, &ignored);
}

/* Whether a setting that is given has another value in the state. */
static bool differs(const at_train_settings *s, int index, const char *value)
{
    const at_setting *row = at_training_setting(index);
    at_train_settings other = *s;
    char is[80], was[80];
    return !parse(row, value, at_training_fields(&other, index)) ||
           strcmp(at_setting_text(row, at_training_fields((at_train_settings *)s, index), is, sizeof is),
                  at_setting_text(row, at_training_fields(&other, index), was, sizeof was)) != 0;
}

bool at_stored_take(at_train_settings *s, const at_given *given, at_stored *stored, at_error *error)
{
    const char *value[AT_MOST_SETTINGS] = {0};
    *stored = (at_stored){0};
    if (error->code != AT_OK || !s->resume || !s->output)
        return error->code == AT_OK;
    if (!read_run(s->output, stored, error) || !stored->text)
        return error->code == AT_OK;
    find_values(stored->text, value);
    for (int i = 0; at_training_setting(i); i++)
        if (given->row[i] && value[i] && differs(s, i, value[i]))
            return true; /* the run will be refused, with the settings that were given */
    for (int i = 0; at_training_setting(i); i++)
        if (value[i] && !given->row[i])
            stored->row.row[i] = parse(at_training_setting(i), value[i], at_training_fields(s, i));
    return true;
}
