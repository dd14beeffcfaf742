/* The bodies of answers: JSON in the forms of LibreTranslate. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "serve/serve_internal.h"
#include "serve/values_internal.h"

char *at_answer_error(const char *text)
{
    json_t *answer = json_object();
    return text_of(settled(answer, set(answer, "error", json_string(text))));
}

/* ---- Translations ----------------------------------------------------------------------------------------------- */

/* The confidence is a percentage with one decimal place. */
static json_t *language_guess(const char *code, double probability)
{
    json_t *guess = json_object();
    const bool good = set(guess, "confidence", json_real(round(1000 * probability) / 10)) &&
                      set(guess, "language", json_string(code));
    return settled(guess, good);
}

/* Either one value or an array of as many. */
static json_t *guesses(const char *code, double probability, int64_t count, bool batch)
{
    json_t *list = batch ? json_array() : NULL;
    bool good = true;
    if (!batch)
        return language_guess(code, probability);
    for (int64_t i = 0; i < count && good; i++)
        good = add(list, language_guess(code, probability));
    return settled(list, good);
}

static json_t *translation(const at_job *job, int64_t text, int64_t rank)
{
    at_buffer out = {0};
    at_job_text(job, text, rank, &out);
    json_t *value = out.failed ? NULL : json_stringn(out.bytes, out.size);
    at_buffer_free(&out);
    return value;
}

static bool contains(const json_t *list, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), value))
            return true;
    return false;
}

/* Each text once, and not the best one again. */
static json_t *alternatives(const at_job *job, int64_t text, const json_t *best)
{
    json_t *list = json_array();
    bool good = list != NULL;
    for (int64_t rank = 1; rank < job->best && good; rank++) {
        json_t *other = translation(job, text, rank);
        good = other && (json_equal(other, best) || contains(list, other) || json_array_append(list, other) == 0);
        json_decref(other);
    }
    return settled(list, good);
}

/* With three decimal places; null if it is not known. */
static json_t *confidence_of(double confidence)
{
    return isnan(confidence) ? json_null() : json_real(round(1000 * confidence) / 1000);
}

/* What all translations share: the texts are one value or an array, and so are the alternatives and the confidence of
 * each. */
static char *answer_of(const at_request *request, const at_plan *plan, bool good, json_t *texts, json_t *others,
                       json_t *sure)
{
    const bool batch = request->batch;
    json_t *answer = json_object();
    if (good && plan->detected)
        good = set(answer, "detectedLanguage", guesses(plan->detected, plan->probability, request->count, batch));
    if (good && plan->confidence)
        good = json_object_set(answer, "confidence", batch ? sure : json_array_get(sure, 0)) == 0;
    if (good && plan->alternatives > 0)
        good = json_object_set(answer, "alternatives", batch ? others : json_array_get(others, 0)) == 0;
    if (good)
        good = json_object_set(answer, "translatedText", batch ? texts : json_array_get(texts, 0)) == 0;
    json_decref(texts);
    json_decref(others);
    json_decref(sure);
    return text_of(settled(answer, good));
}

char *at_answer_translation(const at_job *job, const at_request *request, const at_plan *plan)
{
    json_t *texts = json_array(), *others = json_array(), *sure = json_array();
    bool good = texts && others && sure;
    for (int64_t i = 0; i < job->texts && good; i++) {
        json_t *best = translation(job, i, 0);
        good = best && add(others, alternatives(job, i, best));
        good = add(texts, best) && good;
        good = good && add(sure, confidence_of(plan->then < 0 ? at_job_confidence(job, i) : NAN)); /* of one model */
    }
    return answer_of(request, plan, good, texts, others, sure);
}

char *at_answer_same(const at_request *request, const at_plan *plan)
{
    json_t *texts = json_array(), *others = json_array(), *sure = json_array();
    bool good = texts && others && sure;
    for (int64_t i = 0; i < request->count && good; i++)
        good = add(texts, json_stringn(request->text[i].text, request->text[i].size)) && add(others, json_array()) &&
               add(sure, confidence_of(1));
    return answer_of(request, plan, good, texts, others, sure);
}

char *at_answer_detection(const char *const *code, const double *probability, int count)
{
    json_t *list = json_array();
    bool good = true;
    for (int i = 0; i < count && good; i++)
        good = add(list, language_guess(code[i], probability[i]));
    return text_of(settled(list, good));
}

/* ---- What the server has ---------------------------------------------------------------------------------------- */

/* {"code": "en", "name": "English"} */
static json_t *language(const char *code, const char *name)
{
    json_t *value = json_object();
    const bool good = set(value, "code", json_string(code)) && set(value, "name", json_string(name));
    return settled(value, good);
}

/* Every language is one of its own targets: such a text is returned as it is. */
static json_t *targets_of(const at_served *served, const char *source)
{
    json_t *list = json_array();
    bool good = true;
    int then;
    for (int i = 0; i < served->languages && good; i++) {
        const char *target = served->language[i];
        if (strcmp(source, target) == 0 || at_served_route(served, source, target, &then) >= 0)
            good = add(list, json_string(target));
    }
    return settled(list, good);
}

char *at_answer_languages(const at_served *served)
{
    json_t *list = json_array();
    bool good = true;
    for (int i = 0; i < served->languages && good; i++) {
        const char *code = served->language[i];
        json_t *value = language(code, at_language_name(code));
        good = set(value, "targets", targets_of(served, code));
        good = add(list, value) && good;
    }
    return text_of(settled(list, good));
}

char *at_answer_settings(const at_served *served, const at_server_settings *settings)
{
    const char *target = served->count > 0 ? served->pair[0].target : "en"; /* LibreTranslate's, without a model */
    json_t *answer = json_object(), *languages = json_object();
    const bool good = set(languages, "source", language("auto", "Auto Detect")) &&
                      set(languages, "target", language(target, at_language_name(target))) &&
                      set(answer, "charLimit", json_integer(settings->max_characters)) &&
                      set(answer, "frontendTimeout", json_integer(500)) &&
                      set(answer, "apiKeys", json_boolean(settings->api_keys != NULL)) &&
                      set(answer, "keyRequired", json_boolean(settings->require_key)) &&
                      set(answer, "suggestions", json_false()) && set(answer, "filesTranslation", json_false()) &&
                      set(answer, "supportedFilesFormat", json_array()) &&
                      json_object_set(answer, "language", languages) == 0;
    json_decref(languages);
    return text_of(settled(answer, good));
}

/* A description for clients that look for one: which paths there are. */
char *at_answer_spec(void)
{
    static const char *const paths[][2] = {{"/translate", "post"}, {"/detect", "post"},           {"/languages", "get"},
                                           {"/health", "get"},     {"/frontend/settings", "get"}, {"/metrics", "get"}};
    json_t *answer = json_object(), *info = json_object(), *list = json_object();
    bool good = set(info, "title", json_string("LibreTranslate")) && set(info, "version", json_string(AT_VERSION)) &&
                set(info, "description", json_string("attend serve, by the interface of LibreTranslate"));
    for (size_t i = 0; i < sizeof paths / sizeof *paths && good; i++) {
        json_t *path = json_object();
        good = set(path, paths[i][1], json_object());
        good = set(list, paths[i][0], path) && good;
    }
    good = good && set(answer, "swagger", json_string("2.0")) && json_object_set(answer, "info", info) == 0 &&
           json_object_set(answer, "paths", list) == 0;
    json_decref(info);
    json_decref(list);
    return text_of(settled(answer, good));
}
