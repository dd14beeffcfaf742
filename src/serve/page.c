/* The translator's page: a frame filled with the texts of a language, the languages of the models, and, for a browser
 * without JavaScript, what its form asked for. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/frame.h"
#include "serve/serve_internal.h"

extern const char at_translator_html[], at_translator_css[], at_translator_js[], at_translator_en[], at_translator_zh[],
    at_watch_html[], at_watch_js[];

static const char *const tables[] = {at_translator_en, at_translator_zh};

static void add_text(at_buffer *out, const char *text, size_t size)
{
    for (const char *c = text; c < text + size; c++)
        switch (*c) {
        case '&':
            at_buffer_print(out, "&amp;");
            break;
        case '<':
            at_buffer_print(out, "&lt;");
            break;
        case '>':
            at_buffer_print(out, "&gt;");
            break;
        case '"':
            at_buffer_print(out, "&quot;");
            break;
        default:
            at_buffer_add(out, c, 1);
        }
}

void at_page_escape(at_buffer *out, const char *text)
{
    add_text(out, text, strlen(text));
}

static void add_option(at_buffer *out, const char *code, const char *name, bool chosen)
{
    at_buffer_print(out, "<option value=\"%s\"%s>", code, chosen ? " selected" : "");
    add_text(out, name, strlen(name));
    at_buffer_print(out, "</option>");
}

/* The languages that some model has on this side. */
static int add_languages(at_buffer *out, const at_served *served, bool targets, const char *chosen)
{
    int count = 0;
    for (int l = 0; l < served->languages; l++) {
        const char *code = served->language[l];
        bool has = false;
        for (int p = 0; p < served->count; p++)
            has |= strcmp(targets ? served->pair[p].target : served->pair[p].source, code) == 0;
        if (has)
            add_option(out, code, at_language_name(code), chosen && strcmp(chosen, code) == 0);
        count += has;
    }
    return count;
}

static at_line first_line(const char *text)
{
    return (at_line){text, strcspn(text, "\n")};
}

enum { SOURCES, TARGETS, Q, TRANSLATED, MESSAGE, OTHERS, SOURCE, TARGET, LINE, LINE_TRANSLATED, PARTS };

/* What a form asked for, or what is chosen at first. */
static void add_asked(const at_page *page, at_buffer part[PARTS])
{
    const at_request *r = page->request;
    const char *source = r ? r->source : NULL;
    const char *target = r ? r->target : page->served->count ? page->served->pair[0].target : NULL;
    if (r && r->count > 0) {
        const at_line line = first_line(r->text[0].text);
        add_text(&part[Q], r->text[0].text, r->text[0].size);
        add_text(&part[LINE], line.text, line.size);
    }
    for (int i = 0; i < page->count; i++) {
        const char *text = page->translation[i];
        at_buffer *to = i ? &part[OTHERS] : &part[TRANSLATED];
        at_buffer_print(to, i ? "<li>" : "");
        add_text(to, text, strlen(text));
        at_buffer_print(to, i ? "</li>" : "");
    }
    const at_line line = first_line(page->count > 0 ? page->translation[0] : "");
    add_text(&part[LINE_TRANSLATED], line.text, line.size);
    const char *real = page->detected ? page->detected : source;
    add_text(&part[SOURCE], real ? real : "", real ? strlen(real) : 0);
    add_text(&part[TARGET], target ? target : "", target ? strlen(target) : 0);
    add_text(&part[MESSAGE], page->message ? page->message : "", page->message ? strlen(page->message) : 0);
    add_languages(&part[TARGETS], page->served, true, target);
}

/* "auto" comes first, unless there is one language only. */
static void add_sources(const at_page *page, const char *automatic, at_buffer *out)
{
    at_buffer languages = {0};
    const char *chosen = page->request ? page->request->source : NULL;
    if (add_languages(&languages, page->served, false, chosen) > 1)
        add_option(out, "auto", automatic, false);
    at_buffer_add(out, languages.bytes ? languages.bytes : "", languages.size);
    out->failed |= languages.failed;
    at_buffer_free(&languages);
}

static bool add_automatic(const at_page *page, at_buffer *out, at_error *error)
{
    const char *table = tables[page->chinese];
    json_t *texts = at_json_read(table, strlen(table), "the translator's page", error);
    const char *automatic = json_string_value(json_object_get(texts, "auto"));
    add_sources(page, automatic ? automatic : "auto", out);
    json_decref(texts);
    return error->code == AT_OK;
}

char *at_page_text(const at_page *page, at_error *error)
{
    at_buffer part[PARTS] = {0};
    char most[24], characters[24], percent[24], *html = NULL;
    const int64_t limit = page->settings->max_alternatives;
    bool failed = !add_automatic(page, &part[SOURCES], error);
    add_asked(page, part);
    for (int i = 0; i < PARTS; i++) {
        at_buffer_print(&part[i], "%s", "");
        failed |= part[i].failed;
    }
    snprintf(most, sizeof most, "%lld", (long long)(limit < AT_PAGE_ALTERNATIVES ? limit : AT_PAGE_ALTERNATIVES));
    snprintf(percent, sizeof percent, "%.0f", 100 * page->confidence);
    snprintf(characters, sizeof characters, "%lld", (long long)page->settings->max_characters);
    const at_frame_value values[] = {
        {"sources", part[SOURCES].bytes},
        {"targets", part[TARGETS].bytes},
        {"q", part[Q].bytes},
        {"translated", part[TRANSLATED].bytes},
        {"message", part[MESSAGE].bytes},
        {"others", part[OTHERS].bytes},
        {"source", part[SOURCE].bytes},
        {"target", part[TARGET].bytes},
        {"line", part[LINE].bytes},
        {"line_translated", part[LINE_TRANSLATED].bytes},
        {"most", most},
        {"characters", characters},
        {"percent", percent},
        {"no_sure", page->count > 0 && !isnan(page->confidence) ? "" : " hidden"},
        {"no_key", page->settings->require_key ? "" : " hidden"},
        {"no_watch", page->settings->watch_count > 0 ? "" : " hidden"},
        {"no_others", page->count > 1 ? "" : " hidden"},
        {"no_explorer", page->count > 0 && !page->same ? "" : " hidden"},
    };
    if (failed)
        at_no_memory(error, "the translator's page");
    else
        html = at_frame_fill(at_translator_html, tables[page->chinese], values, sizeof values / sizeof *values,
                             "the translator's page", error);
    for (int i = 0; i < PARTS; i++)
        at_buffer_free(&part[i]);
    return html;
}

char *at_watch_page(const at_server_settings *settings, bool chinese, at_error *error)
{
    char *rows = at_watch_rows(settings), *html = NULL;
    if (rows)
        html = at_frame_fill(at_watch_html, tables[chinese], &(at_frame_value){"rows", rows}, 1, "the page of runs",
                             error);
    else
        at_no_memory(error, "the page of runs");
    free(rows);
    return html;
}

const char *at_page_file(const char *name, const char **type)
{
    static const struct {
        const char *name, *type, *text;
    } files[] = {{"translator.css", "text/css; charset=utf-8", at_translator_css},
                 {"translator.js", "text/javascript; charset=utf-8", at_translator_js},
                 {"watch.js", "text/javascript; charset=utf-8", at_watch_js},
                 {"en.json", "application/json", at_translator_en},
                 {"zh.json", "application/json", at_translator_zh}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strcmp(name, files[i].name) == 0) {
            *type = files[i].type;
            return files[i].text;
        }
    return NULL;
}
