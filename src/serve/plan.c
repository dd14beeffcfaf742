/* From the fields of a request to the model that answers it. */
#include <stdlib.h>
#include <string.h>

#include "image/pictures.h"
#include "serve/serve_internal.h"

bool at_plan_allowed(const at_served *served, const at_server_settings *settings, const at_request *request,
                     at_refusal *refusal)
{
    const bool given = request->key && *request->key;
    if (!settings->api_keys)
        return true;
    if (!given && settings->require_key)
        return at_refuse(refusal, 400, "Please contact the server operator to get an API key");
    if (given && !at_keys_have(&served->keys, request->key))
        return at_refuse(refusal, 403, "Invalid API key");
    return true;
}

/* "auto": the likeliest of the source languages, if there is a model. */
static bool detect(const at_served *served, const at_request *request, at_plan *plan, at_refusal *refusal)
{
    const char **code = calloc((size_t)served->count + 1, sizeof *code);
    double *probability = calloc((size_t)served->count + 1, sizeof *probability);
    const int found = code && probability ? at_detect(served, request->text, request->count, code, probability) : -1;
    if (found > 0) {
        plan->detected = code[0];
        plan->probability = probability[0];
    }
    free(code);
    free(probability);
    if (found == 0)
        return at_refuse(refusal, 400, "%s is not supported", request->source);
    return found > 0 || at_refuse(refusal, 500, "out of memory for a request");
}

/* Whether the model of a pair takes these texts: one of pictures takes pictures, and nothing that could be a path. */
static bool fits(const at_pair *pair, const at_request *request, bool html, at_refusal *refusal)
{
    if (!pair->pictures)
        return true;
    if (html)
        return at_refuse(refusal, 400, "html format is not supported");
    for (int64_t i = 0; i < request->count; i++)
        if (request->text[i].size > 0 && !at_picture_is_whole(request->text[i].text, request->text[i].size))
            return at_refuse(
                refusal, 400,
                "Invalid request: q must be a picture, data:image/png;base64, or data:image/jpeg;base64, and "
                "its bytes in base64");
    return true;
}

bool at_plan_make(const at_served *served, const at_server_settings *settings, const at_request *request, at_plan *plan,
                  at_refusal *refusal)
{
    const char *source = request->source, *target = request->target;
    *plan = (at_plan){.pair = -1, .then = -1};
    if (!at_request_check(request, settings, true, &plan->alternatives, refusal))
        return false;
    plan->confidence =
        request->confidence && (strcmp(request->confidence, "true") == 0 || strcmp(request->confidence, "1") == 0);
    if (strcmp(source, "auto") == 0) {
        if (!detect(served, request, plan, refusal))
            return false;
        source = plan->detected;
    }
    if (!at_served_knows(served, source))
        return at_refuse(refusal, 400, "%s is not supported", source);
    if (!at_served_knows(served, target))
        return at_refuse(refusal, 400, "%s is not supported", target);
    const char *format = request->format && *request->format ? request->format : "text";
    plan->html = strcmp(format, "html") == 0;
    if (!plan->html && strcmp(format, "text") != 0)
        return at_refuse(refusal, 400, "%s format is not supported", format);
    plan->pair = at_served_route(served, source, target, &plan->then);
    if (plan->pair < 0 && strcmp(source, target) != 0)
        return at_refuse(refusal, 400, "%s (%s) is not available as a target language from %s (%s)",
                         at_language_name(target), target, at_language_name(source), source);
    return plan->pair < 0 || fits(&served->pair[plan->pair], request, plan->html, refusal);
}
