/* The models of a server by their languages. */
#include <stdlib.h>
#include <string.h>

#include "models/pictures.h"
#include "serve/serve_internal.h"
#include "store/translator.h"

/* The codes of ISO 639-1 that people use with translators, and their names in English. */
static const char *const names[][2] = {
    {"af", "Afrikaans"},
    {"ar", "Arabic"},
    {"az", "Azerbaijani"},
    {"be", "Belarusian"},
    {"bg", "Bulgarian"},
    {"bn", "Bengali"},
    {"ca", "Catalan"},
    {"cs", "Czech"},
    {"cy", "Welsh"},
    {"da", "Danish"},
    {"de", "German"},
    {"el", "Greek"},
    {"en", "English"},
    {"eo", "Esperanto"},
    {"es", "Spanish"},
    {"et", "Estonian"},
    {"eu", "Basque"},
    {"fa", "Persian"},
    {"fi", "Finnish"},
    {"fr", "French"},
    {"ga", "Irish"},
    {"gl", "Galician"},
    {"gu", "Gujarati"},
    {"he", "Hebrew"},
    {"hi", "Hindi"},
    {"hr", "Croatian"},
    {"hu", "Hungarian"},
    {"hy", "Armenian"},
    {"id", "Indonesian"},
    {"is", "Icelandic"},
    {"it", "Italian"},
    {"ja", "Japanese"},
    {"ka", "Georgian"},
    {"kk", "Kazakh"},
    {"kn", "Kannada"},
    {"ko", "Korean"},
    {"ky", "Kyrgyz"},
    {"la", "Latin"},
    {"lt", "Lithuanian"},
    {"lv", "Latvian"},
    {"mk", "Macedonian"},
    {"ml", "Malayalam"},
    {"mn", "Mongolian"},
    {"mr", "Marathi"},
    {"ms", "Malay"},
    {"mt", "Maltese"},
    {"my", "Burmese"},
    {"nb", "Norwegian Bokmål"},
    {"ne", "Nepali"},
    {"nl", "Dutch"},
    {"nn", "Norwegian Nynorsk"},
    {"no", "Norwegian"},
    {"pa", "Punjabi"},
    {"pl", "Polish"},
    {"pt", "Portuguese"},
    {"ro", "Romanian"},
    {"ru", "Russian"},
    {"sk", "Slovak"},
    {"sl", "Slovenian"},
    {"sq", "Albanian"},
    {"sr", "Serbian"},
    {"sv", "Swedish"},
    {"sw", "Swahili"},
    {"ta", "Tamil"},
    {"te", "Telugu"},
    {"th", "Thai"},
    {"tl", "Tagalog"},
    {"tr", "Turkish"},
    {"uk", "Ukrainian"},
    {"ur", "Urdu"},
    {"uz", "Uzbek"},
    {"vi", "Vietnamese"},
    {"zh", "Chinese"},
    {"zt", "Chinese (traditional)"},
};

const char *at_language_name(const char *code)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], code) == 0)
            return names[i][1];
    return code;
}

bool at_served_knows(const at_served *served, const char *code)
{
    for (int i = 0; i < served->languages; i++)
        if (strcmp(served->language[i], code) == 0)
            return true;
    return false;
}

int at_served_find(const at_served *served, const char *source, const char *target)
{
    for (int i = 0; i < served->count; i++)
        if (strcmp(served->pair[i].source, source) == 0 && strcmp(served->pair[i].target, target) == 0)
            return i;
    return -1;
}

int at_served_route(const at_served *served, const char *source, const char *target, int *then)
{
    const int direct = at_served_find(served, source, target);
    *then = -1;
    if (direct >= 0 || !served->pivot || strcmp(source, target) == 0)
        return direct;
    *then = at_served_find(served, served->pivot, target);
    if (*then >= 0 && served->pair[*then].pictures) /* it takes no text */
        *then = -1;
    return *then < 0 ? -1 : at_served_find(served, source, served->pivot);
}

bool at_served_keeps(const at_served *served, int pair)
{
    return served->keeps && !served->pair[pair].pictures;
}

/* Pictures come in the requests: no file is read for them. How much work one is must not be for the client to say. */
static bool load_pictures(at_pair *pair, at_error *error)
{
    at_picture_form form;
    at_convolutions layers;
    if (!at_picture_form_of(&pair->translator->model->settings, &form, &layers, error))
        return false;
    if (form.features || form.height == 0 || form.width == 0)
        return at_fail(error, AT_UNSUPPORTED,
                       "'%s' reads %s; a server needs a model that was trained with `image-size` HEIGHTxWIDTH",
                       pair->path, form.features ? "features" : "pictures of any size");
    pair->pictures = true;
    return true;
}

static bool load(at_pair *pair, bool sentences, at_error *error)
{
    pair->translator = at_translator_load(pair->path, error);
    if (!pair->translator)
        return false;
    if (!at_translator_has_source(pair->translator))
        return at_fail(error, AT_UNSUPPORTED, "'%s' is a language model; a server needs models that translate",
                       pair->path);
    if (at_translator_has_pictures(pair->translator))
        return load_pictures(pair, error);
    pair->looker = at_translator_clone(pair->translator, error);
    if (!pair->looker)
        return false;
    return !sentences || (pair->splitter = at_splitter_new(pair->source, error));
}

static int by_code(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_language(at_served *served, const char *code)
{
    if (!at_served_knows(served, code))
        served->language[served->languages++] = code;
}

at_served *at_served_new(const at_server_settings *settings, at_error *error)
{
    const int count = settings->model_count;
    at_served *served = calloc(1, sizeof *served);
    if (served) {
        served->owners = 1;
        served->keeps = !settings->no_placeholders;
        served->pivot = settings->pivot;
        served->pair = calloc((size_t)count + 1, sizeof *served->pair);
        served->language = calloc(2 * (size_t)count + 1, sizeof *served->language);
    }
    if (!served || !served->pair || !served->language)
        at_no_memory(error, "the models of a server");
    for (int i = 0; i < count && error->code == AT_OK; i++) {
        const at_server_model *model = &settings->models[i];
        served->pair[i] = (at_pair){.source = model->source, .target = model->target, .path = model->path};
        served->count = i + 1;
        add_language(served, model->source);
        add_language(served, model->target);
        load(&served->pair[i], settings->sentences, error);
    }
    if (error->code == AT_OK && settings->api_keys)
        at_keys_read(&served->keys, settings->api_keys, error);
    if (error->code != AT_OK) {
        at_served_release(served);
        return NULL;
    }
    qsort(served->language, (size_t)served->languages, sizeof *served->language, by_code);
    return served;
}

at_served *at_served_hold(at_served *served)
{
    atomic_fetch_add(&served->owners, 1);
    return served;
}

void at_served_release(at_served *served)
{
    if (!served || atomic_fetch_sub(&served->owners, 1) > 1)
        return;
    for (int i = 0; i < served->count; i++) {
        at_search_memory_free(served->pair[i].memory);
        at_translator_free(served->pair[i].looker);
        at_translator_free(served->pair[i].translator);
        at_splitter_free(served->pair[i].splitter);
    }
    at_keys_free(&served->keys);
    free(served->pair);
    free(served->language);
    free(served);
}
