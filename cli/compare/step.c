#include "compare/step.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text_file.h"

/* ---- Steps ---------------------------------------------------------------------------------------------------- */

const char *const step_names[STEPS] = {"train", "test", "beyond", "align"};

static void add(step *s, const char *option, const char *value)
{
    s->word[s->count++] = option;
    if (value)
        s->word[s->count++] = value;
}

static void add_aside(step *s, const char *option, const char *value)
{
    add(s, option, value);
    s->aside[s->count - 1] = true;
}

static const char *number(step *s, int which, double value)
{
    snprintf(s->number[which], NUMBER, "%.15g", value);
    return s->number[which];
}

void step_train_words(const compare_table *table, const compare_run *run, step *s)
{
    const compare_data *data = table->data;
    add(s, "train", NULL);
    s->count += compare_options(table->spec, run->cell, s->word + s->count);
    s->mark = data->mark;
    for (int i = 1; i + 1 < s->count; i++) {
        const at_setting *option = compare_word_option(s->word[i]);
        s->aside[i + 1] = option && compare_takes_file(option);
        for (int f = 0; f < data->own_count; f++)
            if (strcmp(data->own[f].path, s->word[i + 1]) == 0)
                s->mark = task_mix(s->mark ^ data->own[f].mark);
    }
    if (table->spec->maker) {
        add_aside(s, "--source", data->train.source);
        add_aside(s, "--target", data->train.target);
    }
    if (data->valid.source) {
        add_aside(s, "--valid-source", data->valid.source);
        add_aside(s, "--valid-target", data->valid.target);
    }
    snprintf(s->number[0], NUMBER, "%lld", (long long)run->seed); /* no double has all of a large seed */
    add(s, "--seed", s->number[0]);
}

/* The file is named, as pictures are found from its folder. */
static void add_translate(const compare_table *table, int set, step *s)
{
    add(s, "translate", NULL);
    add_aside(s, "--model", s->model);
    add(s, "--beam", number(s, 0, (double)table->spec->beam));
    add(s, "--length-penalty", number(s, 1, table->spec->length_penalty));
    add_aside(s, "--input", table->data->set[set].source);
}

bool step_make(const compare_table *table, const compare_run *run, int which, step *s)
{
    const compare_data *data = table->data;
    const int set = which == BEYOND_STEP ? BEYOND : TEST;
    *s = (step){0};
    snprintf(s->said, PATH, "%s/%s.err", run->folder, step_names[which]);
    snprintf(s->record, PATH, "%s/%s.json", run->folder, step_names[which]);
    snprintf(s->model, PATH, "%s/model", run->folder);
    if (which == TRAIN_STEP) {
        step_train_words(table, run, s);
        add_aside(s, "--output", s->model);
        add(s, "--resume", NULL);
    } else if (which == ALIGN_STEP) {
        if (!data->links[TEST])
            return false;
        if (data->pointing) {
            add_translate(table, set, s);
            add(s, "--alignment", "soft");
        } else {
            add(s, "align", NULL);
            add_aside(s, "--model", s->model);
            add_aside(s, "--source", data->set[TEST].source);
            add_aside(s, "--target", data->set[TEST].target);
            add(s, "--head", "best");
        }
    } else {
        if (!data->source[set])
            return false;
        add_translate(table, set, s);
    }
    if (which != TRAIN_STEP) {
        snprintf(s->output, PATH, "%s/%s.txt", run->folder, step_names[which]);
        s->mark = data->set_mark[set];
    }
    add_aside(s, "--threads", number(s, 2, (double)table->threads));
    return true;
}

/* ---- Words ---------------------------------------------------------------------------------------------------- */

/* NULL if out of memory. */
static char *typed_words(const char *const *words, int count)
{
    text_file text;
    at_error error = {0};
    if (!text_open(&text, &error))
        return NULL;
    FILE *stream = text.stream;
    for (int i = 0; i < count; i++) {
        bool plain = *words[i];
        for (const char *at = words[i]; *at; at++)
            plain = plain && strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_+=:,./%@", *at);
        fputs(i ? " " : "", stream);
        if (plain) {
            fputs(words[i], stream);
            continue;
        }
        fputc('\'', stream);
        for (const char *at = words[i]; *at; at++)
            fputs(*at == '\'' ? "'\\''" : (char[]){*at, 0}, stream);
        fputc('\'', stream);
    }
    return text_take(&text, &error);
}

/* ---- Records -------------------------------------------------------------------------------------------------- */

char *step_typed(const step *s)
{
    const char *words[MOST_LINE_WORDS + 1] = {"attend"};
    memcpy(words + 1, s->word, (size_t)s->count * sizeof *words);
    return typed_words(words, s->count + 1);
}

uint64_t compare_hash(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The hash of the words, with their final NULs, started with that of the data. */
const char *step_identity(const step *s, char text[NUMBER])
{
    uint64_t mark = s->mark;
    for (int i = 0; i < s->count; i++) {
        const char *word = s->aside[i] ? "" : s->word[i];
        mark = compare_hash(mark, word, strlen(word) + 1);
    }
    snprintf(text, NUMBER, "%016llx", (unsigned long long)task_mix(mark));
    return text;
}

json_t *step_read(const char *path, at_error *error)
{
    at_error unread = {0};
    char *text = text_of_file(path, &unread);
    json_t *record = text ? at_json_read(text, strlen(text), path, &unread) : NULL;
    if (unread.code == AT_MEMORY)
        fail(error, AT_MEMORY, "%s", unread.text);
    free(text);
    return record;
}

static bool is_done(const step *s, at_error *error)
{
    json_t *record = step_read(s->record, error);
    const char *identity = json_string_value(json_object_get(record, "identity"));
    char wanted[NUMBER];
    bool done = identity && strcmp(identity, step_identity(s, wanted)) == 0;
    json_decref(record);
    return done;
}

/* Marks the steps from this one on as not done. */
static void forget(const compare_run *run, int which)
{
    for (; which < STEPS; which++) {
        char path[PATH];
        snprintf(path, sizeof path, "%s/%s.json", run->folder, step_names[which]);
        unlink(path);
    }
}

bool step_record(const compare_run *run, int which, const step *s, double seconds, long peak, const char *none,
                 at_error *error)
{
    forget(run, which);
    char identity[NUMBER], *typed = step_typed(s);
    json_t *record = json_pack("{s:s, s:s, s:f, s:f}", "line", typed ? typed : "", "identity",
                               step_identity(s, identity), "seconds", seconds, "peak_mb", (double)peak / 1024);
    const bool whole = typed && (!none || json_object_set_new(record, "none", json_string(none)) == 0);
    char *text = whole ? at_json_text(record, JSON_INDENT(2)) : NULL;
    if (text)
        at_file_write(s->record, text, strlen(text), error);
    else
        fail(error, AT_MEMORY, "out of memory for '%s'", s->record);
    free(text);
    json_decref(record);
    free(typed);
    return error->code == AT_OK;
}

int step_next(const compare_table *table, const compare_run *run, step *s, at_error *error)
{
    for (int which = 0; which < STEPS && error->code == AT_OK; which++)
        if (step_make(table, run, which, s) && !is_done(s, error) && error->code == AT_OK)
            return which;
    return STEPS;
}
