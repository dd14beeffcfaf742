/* How a model was trained, as JSON:
 *
 *   {"attend":"0.1.0","settings":{"source":"train.de",...},"data":{"training":{"pairs":300,...},"validation":{...}}}
 *
 * The settings are those that decide the result. Limits, reports, saves and threads may differ between runs to the same
 * bits, so they are not part of it; with `updates` set to the update of a model, the settings train it again. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "models/kinds.h"
#include "train/train_internal.h"

/* Whether a setting decides the result of a run. */
static bool decides(const at_train_settings *s, const at_setting *row)
{
    static const char *const of_validation[] = {"valid-source", "valid-target", "valid-tsv", "valid-every"};
    for (int i = 0; i < 4; i++)
        if (strcmp(row->name, of_validation[i]) == 0)
            return true;
    if (strcmp(row->name, "updates") == 0) /* over which the rate falls */
        return s->optimiser.schedule == AT_COSINE;
    return row->resume != AT_RESUME_FREE;
}

/* The settings that were given or have a default, apart from those without an effect. */
static json_t *settings_of(const at_trainer *trainer, bool deciding)
{
    const at_train_settings *s = trainer->settings;
    const at_model *model = trainer->translator.model;
    json_t *object = json_object();
    bool whole = object;
    for (int i = 0; whole && at_training_setting(i); i++) {
        const at_setting *row = at_training_setting(i);
        const void *fields = at_training_fields((at_train_settings *)s, i); /* which are only read */
        const bool of_model = fields != s;
        if (decides(s, row) != deciding ||
            !(of_model ? at_model_says(&model->settings, model->kind, row) : at_train_setting_applies(s, row)))
            continue;
        whole =
            json_object_set_new(object, row->name, at_setting_to_json(row, of_model ? &model->settings : fields)) == 0;
    }
    if (whole)
        return object;
    json_decref(object);
    return NULL;
}

static json_t *part_json(const at_train_part *part)
{
    return json_pack("{sI sI sI sI sI s[II] s[II]}", "pairs", (json_int_t)part->pairs, "used", (json_int_t)part->used,
                     "empty", (json_int_t)part->empty, "too_long", (json_int_t)part->too_long, "over_ratio",
                     (json_int_t)part->over_ratio, "units", (json_int_t)part->units[0], (json_int_t)part->units[1],
                     "unknown", (json_int_t)part->unknown[0], (json_int_t)part->unknown[1]);
}

bool at_trainer_record(at_trainer *trainer, at_error *error)
{
    json_t *data = json_pack("{so}", "training", part_json(&trainer->part[AT_TRAIN]));
    if (data && trainer->valid && json_object_set_new(data, "validation", part_json(&trainer->part[AT_VALID])) != 0) {
        json_decref(data);
        data = NULL;
    }
    trainer->record =
        json_pack("{ss so so}", "attend", at_version(), "settings", settings_of(trainer, true), "data", data);
    return trainer->record || at_no_memory(error, "the record of a training");
}

char *at_trainer_record_text(const at_trainer *trainer, at_error *error)
{
    json_t *record = json_copy(trainer->record); /* without what it found no memory for */
    const bool whole = json_object_size(record) == json_object_size(trainer->record) &&
                       json_object_set_new(record, "epoch", json_integer(at_trainer_epoch(trainer))) == 0 &&
                       json_object_set_new(record, "update", json_integer(at_optimiser_steps(trainer->optimiser))) == 0;
    char *text = whole ? at_json_text(record, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    json_decref(record);
    if (!text)
        at_no_memory(error, "the record of a training");
    return text;
}

/* ,"name":value ... for the members of an object */
static bool add_members(at_buffer *line, const json_t *object)
{
    char *text = at_json_text(object, JSON_COMPACT | JSON_PRESERVE_ORDER);
    const int size = text ? (int)strlen(text) - 2 : 0;
    if (size > 0)
        at_buffer_print(line, ",%.*s", size, text + 1);
    free(text);
    return text;
}

/* {"event":"start","epoch":1,"update":0,"run":{...},"parameters":9,"attend":...}: "run" is what may differ from an
 * uninterrupted run. A resumed run shares the rest. */
bool at_trainer_add_opening(at_trainer *trainer, at_error *error)
{
    const int64_t update = at_optimiser_steps(trainer->optimiser);
    at_buffer *line = &trainer->opening;
    json_t *run = settings_of(trainer, false), *member = run ? json_pack("{sO}", "run", run) : NULL;
    bool whole = member && json_object_set_new(run, "threads", json_integer(at_threads())) == 0 &&
                 json_object_set_new(run, "kernels", json_string(at_kernels_name())) == 0;
    at_buffer_print(line, "{\"event\":\"%s\",\"epoch\":%lld,\"update\":%lld", update > 0 ? "resume" : "start",
                    (long long)at_trainer_epoch(trainer), (long long)update);
    whole = whole && add_members(line, member);
    if (update == 0) {
        at_buffer_print(line, ",\"parameters\":%lld", (long long)at_params_count(trainer->translator.model->params));
        whole = whole && add_members(line, trainer->record);
    }
    json_decref(member);
    json_decref(run);
    return (whole && !line->failed) || at_no_memory(error, "the first line of the log");
}
