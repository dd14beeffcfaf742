/* Any bytes as a request to a server: the first line is its Content-Type, the second the query of its address, the rest its
 * body. It is refused with a message, or its texts are UTF-8 without NUL; then a plan is made and the answers are JSON. */
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "serve/serve_internal.h"

static const at_server_settings settings = {
    .max_characters = 1000, .max_texts = 20, .max_alternatives = 3, .max_queue = 50};

static void expect_refusal(bool succeeded, const at_refusal *refusal)
{
    EXPECT(succeeded == (refusal->status == 0));
    EXPECT(succeeded || (refusal->status >= 400 && refusal->text[0] && at_is_utf8(refusal->text)));
}

static void expect_json(char *text)
{
    at_error error = {0};
    EXPECT(text);
    json_t *value = at_json_read(text, strlen(text), "the answer", &error);
    EXPECT(value);
    json_decref(value);
    free(text);
}

static void check_texts(const at_request *r)
{
    for (int64_t i = 0; i < r->count; i++)
        EXPECT(at_utf8_length(r->text[i].text, r->text[i].size) == r->text[i].size &&
               !memchr(r->text[i].text, 0, r->text[i].size));
    const char *const fields[] = {r->source, r->target, r->format, r->alternatives};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        EXPECT(!fields[i] || at_is_utf8(fields[i]));
}

/* Lines answered by themselves: a text then is what it was; HTML may spell its characters otherwise. */
static void check_job(at_served *served, const at_request *r, const at_plan *plan)
{
    at_job *job = at_job_new(served, plan->pair, r->text, r->count, plan->alternatives + 1, plan->html);
    EXPECT(job);
    for (int64_t i = 0; i < job->lines; i++)
        if (!job->answer[i * job->best].text)
            job->answer[i * job->best].text = strndup(job->line[i].text, job->line[i].size);
    for (int64_t i = 0; i < r->count; i++) {
        at_buffer out = {0};
        at_job_text(job, i, job->best - 1, &out);
        EXPECT(!out.failed && at_utf8_length(out.bytes, out.size) == out.size);
        EXPECT(plan->html || (out.size == r->text[i].size && memcmp(out.bytes, r->text[i].text, out.size) == 0));
        at_buffer_free(&out);
    }
    expect_json(at_answer_translation(job, r, plan));
    at_job_free(job);
}

/* The page shows what was asked, refused or not. */
static void check_page(at_served *served, const at_request *r, const at_refusal *refusal)
{
    const at_page page = {.served = served,
                          .settings = &settings,
                          .request = r->text ? r : NULL,
                          .confidence = NAN,
                          .message = refusal->status ? refusal->text : NULL};
    at_error error = {0};
    char *html = at_page_text(&page, &error);
    EXPECT(html && at_is_utf8(html));
    free(html);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static at_pair pairs[] = {{.source = "de", .target = "en"}, {.source = "en", .target = "fr"}};
    static const char *languages[] = {"de", "en", "fr"};
    static at_served served = {.pair = pairs, .count = 2, .language = languages, .languages = 3, .owners = 1};
    const uint8_t *type_end = memchr(bytes, '\n', size);
    const uint8_t *query = type_end ? type_end + 1 : bytes + size;
    const uint8_t *query_end = memchr(query, '\n', (size_t)(bytes + size - query));
    query_end = query_end ? query_end : bytes + size;
    const uint8_t *body = query_end < bytes + size ? query_end + 1 : query_end;
    char *type = text_of(bytes, (size_t)((type_end ? type_end : bytes + size) - bytes));
    char *address = text_of(query, (size_t)(query_end - query));
    at_request r = {0};
    at_refusal refusal = {0};
    at_plan plan;
    const bool read = at_request_read(&r, type, address, (const char *)body, (size_t)(bytes + size - body), &refusal);
    expect_refusal(read, &refusal);
    if (refusal.status)
        expect_json(at_answer_error(refusal.text));
    if (read) {
        check_texts(&r);
        if (r.source && strcmp(r.source, "auto") == 0)
            r.source = "de"; /* there is no vocabulary here */
        const bool made = at_plan_make(&served, &settings, &r, &plan, &refusal);
        expect_refusal(made, &refusal);
        if (refusal.status)
            expect_json(at_answer_error(refusal.text));
        if (made && plan.pair < 0)
            expect_json(at_answer_same(&r, &plan));
        else if (made)
            check_job(&served, &r, &plan);
    }
    check_page(&served, &r, &refusal);
    at_request_free(&r);
    free(type);
    free(address);
    return 0;
}
