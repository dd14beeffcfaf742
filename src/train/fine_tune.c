/* Fine-tuning: a run that starts from the parameters, vocabularies and settings of a trained model, and parameters that
 * stay as they are. */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "models/kinds.h"
#include "train/train_internal.h"

/* ---- The model to start from ---------------------------------------------------------------------------------- */

/* A resumed run has a model of its own with the same settings and vocabularies, and does not need `init` any more. */
static at_translator *load_initial(const at_train_settings *s, at_error *error)
{
    at_buffer state = {0}, own = {0};
    const char *output = s->output ? s->output : "";
    at_buffer_print(&state, "%s.state", output);
    at_buffer_print(&own, "%s%s", output, at_train_validates(s) ? ".last" : "");
    const bool failed = state.failed || own.failed;
    const bool continues = !failed && s->resume && !s->valid_only && at_state_has_updates(state.bytes);
    at_translator *initial = failed ? NULL : at_translator_load(continues ? own.bytes : s->init, error);
    if (failed)
        at_no_memory(error, "the names of '%s'", output);
    at_buffer_free(&state);
    at_buffer_free(&own);
    return initial;
}

bool at_trainer_load_initial(at_trainer *trainer, at_error *error)
{
    if (trainer->settings->init)
        trainer->initial = load_initial(trainer->settings, error);
    if (trainer->initial && !trainer->settings->valid_only) /* weights of fewer bits are trained as floats */
        at_params_convert(trainer->initial->model->params, AT_NUMBERS_REAL, error);
    return error->code == AT_OK;
}

/* Settings that matter in training only may differ from those that the model was trained with. */
static bool may_change(const char *name)
{
    static const char *const names[] = {"dropout", "attention-dropout", "ffn-dropout", "guided-head"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* A model setting that was given must be the model's own. */
static bool check_given(const at_train_settings *s, const at_model_settings *model, const at_given *given,
                        at_error *error)
{
    for (int i = 0; at_model_setting(i); i++) {
        const at_setting *row = at_model_setting(i);
        char wanted[80], has[80];
        if (!given->row[at_training_first_of_model() + i] || may_change(row->name))
            continue;
        at_setting_text(row, &s->model, wanted, sizeof wanted);
        at_setting_text(row, model, has, sizeof has);
        if (strcmp(wanted, has) != 0)
            return at_fail(error, AT_USAGE,
                           "`%s` %s contradicts '%s', which has `%s` %s: a run with `init` has the settings of that "
                           "model",
                           row->name, wanted, s->init, row->name, *has ? has : "none");
    }
    static const char *const of_text[] = {"source-vocab", "target-vocab", "joint-vocab", "source-end",
                                          "normalise",    "lowercase",    "tokenise"};
    for (size_t i = 0; i < sizeof of_text / sizeof *of_text && !s->valid_only; i++)
        if (given->row[at_setting_find(at_training_setting, of_text[i])])
            return at_fail(error, AT_USAGE, "`%s` cannot be given with `init`: the vocabularies are those of '%s'",
                           of_text[i], s->init);
    return true;
}

/* The model's settings, with what was given of those that may change. */
static void take_settings(at_train_settings *s, const at_model_settings *model, const at_given *given)
{
    const at_model_settings wanted = s->model;
    const bool follows = model->ffn_dropout == model->dropout; /* `ffn-dropout` was not named when it was trained */
    s->model = *model;
    s->model.source_size = s->model.target_size = 0;
    for (int i = 0; at_model_setting(i); i++) {
        const at_setting *row = at_model_setting(i);
        char text[80];
        at_error ignored = {0}; /* the text was parsed before */
        if (given->row[at_training_first_of_model() + i] && may_change(row->name))
            at_setting_parse(row, NULL, at_setting_text(row, &wanted, text, sizeof text), &s->model, &ignored);
    }
    if (follows && !given->row[at_setting_find(at_training_setting, "ffn-dropout")])
        s->model.ffn_dropout = s->model.dropout;
}

bool at_train_settings_from_init(at_train_settings *s, const at_given *given, at_error *error)
{
    if (!s->output && !s->valid_only)
        return at_fail(error, AT_USAGE, "training needs `output` FILE, the model to write");
    at_translator *initial = load_initial(s, error);
    const bool fits = initial && check_given(s, &initial->model->settings, given, error);
    if (fits) {
        take_settings(s, &initial->model->settings, given);
        if (!given->row[at_setting_find(at_training_setting, "max-length")] && initial->max_length > 0)
            s->limits.max_length = initial->max_length;
    }
    at_translator_free(initial);
    return fits;
}

void at_trainer_take_parameters(at_trainer *trainer)
{
    at_params *to = trainer->translator.model->params;
    if (!trainer->initial)
        return;
    memcpy(at_params_values(to), at_params_values(trainer->initial->model->params),
           (size_t)at_params_count(to) * sizeof(at_real));
    at_params_changed(to);
    at_translator_free(trainer->initial);
    trainer->initial = NULL;
}

/* ---- Frozen parameters ---------------------------------------------------------------------------------------- */

/* A pattern of the shell, such as encoder.*, or a name up to a dot. */
static bool matches(const char *pattern, const char *name)
{
    const size_t length = strlen(pattern);
    return fnmatch(pattern, name, 0) == 0 || (strncmp(pattern, name, length) == 0 && name[length] == '.');
}

/* The names of parameters and their parts up to a dot, each once; those of the first part only if `roots`. */
typedef struct name_list {
    char *name[400];
    int count;
} name_list;

static void add_name(name_list *list, const char *name, size_t length)
{
    for (int i = 0; i < list->count; i++)
        if (strlen(list->name[i]) == length && strncmp(list->name[i], name, length) == 0)
            return;
    if (list->count < 400 && (list->name[list->count] = strndup(name, length)))
        list->count++;
}

static void list_parts(name_list *list, const at_params *params, bool roots)
{
    for (int i = 0; i < at_params_number(params); i++) {
        const char *name = at_params_name(params, i);
        size_t end = strcspn(name, ".");
        add_name(list, name, end);
        while (!roots && name[end]) {
            end += 1 + strcspn(name + end + 1, ".");
            add_name(list, name, end);
        }
    }
}

static void free_parts(name_list *list)
{
    while (list->count > 0)
        free(list->name[--list->count]);
}

/* No parameter matches the pattern: the message has the names, or parts of names, that are nearest to it. */
static bool refuse_pattern(const at_params *params, const char *pattern, at_error *error)
{
    char plain[80], near[200] = "", roots[300] = "", shown[AT_SHOWN];
    name_list list = {0};
    snprintf(plain, sizeof plain, "%s", pattern);
    for (size_t end = strlen(plain); end > 0 && strchr("*?.", plain[end - 1]); end--)
        plain[end - 1] = '\0';
    list_parts(&list, params, false);
    at_suggest(plain, (const char *const *)list.name, list.count, near, sizeof near);
    free_parts(&list);
    list_parts(&list, params, true);
    for (int i = 0; i < list.count; i++) {
        const size_t used = strlen(roots);
        snprintf(roots + used, sizeof roots - used, "%s%s", i == 0 ? "" : ", ", list.name[i]);
    }
    free_parts(&list);
    return at_fail(error, AT_USAGE, "`freeze` '%s' matches no parameter%s%s", at_shown(pattern, shown, sizeof shown),
                   near[0] ? near : "; their names begin with ", near[0] ? "" : roots);
}

/* How many parameters and numbers are frozen, for the user. */
static bool note_frozen(at_trainer *trainer, at_error *error)
{
    at_params *params = trainer->translator.model->params;
    int64_t numbers = 0;
    int frozen = 0;
    for (int i = 0; i < at_params_number(params); i++)
        if (at_params_frozen(params, i)) {
            numbers += at_shape_count(at_params_shape(params, i));
            frozen++;
        }
    if (frozen == at_params_number(params))
        return at_fail(error, AT_USAGE, "`freeze` '%s' leaves no parameter to train", trainer->settings->freeze);
    at_trainer_note(trainer, "%d of the %d parameters, %lld of %lld numbers, are frozen", frozen,
                    at_params_number(params), (long long)numbers, (long long)at_params_count(params));
    return true;
}

bool at_trainer_freeze(at_trainer *trainer, at_error *error)
{
    at_params *params = trainer->translator.model->params;
    const char *list = trainer->settings->freeze;
    char *copy = list ? strdup(list) : NULL, *rest = copy, *pattern;
    if (!list)
        return true;
    if (!copy)
        return at_no_memory(error, "the value of `freeze`");
    while (error->code == AT_OK && (pattern = strsep(&rest, ","))) {
        bool found = false;
        for (int i = 0; i < at_params_number(params); i++)
            if (matches(pattern, at_params_name(params, i))) {
                at_params_freeze(params, i);
                found = true;
            }
        if (!found)
            refuse_pattern(params, pattern, error);
    }
    free(copy);
    return error->code == AT_OK && note_frozen(trainer, error);
}
