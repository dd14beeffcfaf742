/* The parts of a server without its connections: requests in all their forms, what they are refused for, keys, which
 * language a text is in, and the queue: the lines of many requests in one search, with the bytes of each alone. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "serve/serve_internal.h"
#include "translator_of.h"

static const at_server_settings limits = {
    .max_characters = 10, .max_texts = 3, .max_alternatives = 4, .max_queue = 100, .beam = 2, .request_seconds = 100};

/* ---- Requests --------------------------------------------------------------------------------------------------- */

static void expect_text(const at_request *r, int64_t index, const char *text)
{
    assert_true(index < r->count);
    assert_int_equal(r->text[index].size, strlen(text));
    assert_memory_equal(r->text[index].text, text, strlen(text));
}

static void same_text(const char *expected, const char *got)
{
    if (!expected)
        assert_null(got);
    else
        assert_string_equal(expected, got);
}

/* One text q, and the languages. */
static void reads(const char *type, const char *query, const char *body, const char *q, const char *source,
                  const char *target)
{
    at_request r = {0};
    at_refusal refusal = {0};
    if (!at_request_read(&r, type, query, body, strlen(body), &refusal))
        fail_msg("%s: %s", body, refusal.text);
    if (q)
        expect_text(&r, 0, q);
    assert_int_equal(r.count, q ? 1 : 0);
    same_text(source, r.source);
    same_text(target, r.target);
    at_request_free(&r);
}

static void forms_are_read(void **state)
{
    static const char form[] = "application/x-www-form-urlencoded", parts[] = "multipart/form-data; boundary=\"b b\"";
    (void)state;
    reads(form, NULL, "q=a+b%20c%2B&source=de&target=en", "a b c+", "de", "en");
    reads("Application/X-WWW-Form-Urlencoded; charset=utf-8", NULL, "q=%C3%A4&&source&target=", "ä", "", "");
    reads(form, "source=fr&q=first", "q=second&source=de", "first", "fr", NULL);
    reads(NULL, "q=a%0D%0Ab%0Dc%0A&target=en", "q=never", "a\nb\nc", NULL, "en");
    reads(form, NULL, "q=%ff%c3x%00y%", "\xEF\xBF\xBD\xEF\xBF\xBDx\xEF\xBF\xBDy%", NULL, NULL);
    reads(form, NULL, "q=a%4", "a%4", NULL, NULL);
    reads(form, NULL, "source=%ff&Q=a&qq=b", NULL, "?", NULL);
    reads(form, NULL, "", NULL, NULL, NULL);
    reads("text/plain", NULL, "q=a", NULL, NULL, NULL);
    reads(parts, NULL,
          "--b b\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\na=b&c\r\nd\r\n"
          "--b b\r\nContent-Type: text/plain\r\ncontent-disposition: form-data; name=source\r\n\r\nde\r\n"
          "--b b\r\nContent-Disposition: form-data; name=\"target\"; filename=\"x\"\r\n\r\nno\r\n--b b--\r\n",
          "a=b&c\nd", "de", NULL);
    reads(parts, NULL, "--b b\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\n\r\n--b b--", "", NULL, NULL);
}

static void json_is_read(void **state)
{
    static const char json[] = "application/json",
                      body[] = "{\"q\":[\"a\",\"\\u00e4\\n\"],\"source\":null,\"target\":1}";
    at_request r = {0};
    at_refusal refusal = {0};
    (void)state;
    reads(json, "q=never", "{\"q\":\"a\\r\\nb\",\"source\":\"de\",\"x\":{}}", "a\r\nb", "de", NULL);
    reads("application/vnd.x+json; charset=utf-8", NULL, "{\"target\":\"en\"}", NULL, NULL, "en");
    assert_true(at_request_read(&r, json, NULL, body, sizeof body - 1, &refusal));
    assert_true(r.batch && r.count == 2);
    expect_text(&r, 0, "a");
    expect_text(&r, 1, "ä\n");
    assert_null(r.source);
    assert_string_equal(r.target, "?");
    at_request_free(&r);
}

static void refused(const char *type, const char *body, const char *message)
{
    at_request r = {0};
    at_refusal refusal = {0};
    assert_false(at_request_read(&r, type, NULL, body, strlen(body), &refusal));
    assert_int_equal(refusal.status, 400);
    assert_string_equal(refusal.text, message);
    at_request_free(&r);
}

static void bad_bodies_are_refused(void **state)
{
    static const char damaged[] = "Invalid request: the multipart form is truncated or damaged";
    static const char *const bodies[] = {
        "",
        "--x",
        "--x\r\n\r\n",
        "--x\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\na\r\n--x",
        "--x\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\na\r\n--y--",
        "--x\r\nContent-Disposition: form-data; name=\"q\"\r\n--x--",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        refused("multipart/form-data; boundary=x", bodies[i], damaged);
    refused("multipart/form-data", "", "Invalid request: a multipart form needs a boundary of 1 to 70 characters");
    refused("application/json", "[1]", "Invalid JSON format");
    refused("application/json", "{\"q\":{}}", "Invalid request: q parameter is not a text or an array of texts");
}

/* ---- Plans ------------------------------------------------------------------------------------------------------ */

static at_served *served_of(const char *languages[][2], int count)
{
    at_served *served = calloc(1, sizeof *served);
    served->owners = 1;
    served->pair = calloc((size_t)count, sizeof *served->pair);
    served->language = calloc(2 * (size_t)count, sizeof *served->language);
    served->count = count;
    for (int i = 0; i < count; i++) {
        served->pair[i] = (at_pair){.source = languages[i][0],
                                    .target = languages[i][1],
                                    .translator = translator_of("rnn-attention", (uint64_t)i)};
        for (int side = 0; side < 2; side++)
            if (!at_served_knows(served, languages[i][side]))
                served->language[served->languages++] = languages[i][side];
    }
    return served;
}

static at_served *two_pairs(void)
{
    const char *languages[][2] = {{"de", "en"}, {"en", "fr"}};
    return served_of(languages, 2);
}

/* The body as a plan: its pair, or the message it is refused with. */
static int plan_of(const at_served *served, const char *body, const char *message)
{
    at_request r = {0};
    at_refusal refusal = {0};
    at_plan plan = {0};
    assert_true(at_request_read(&r, "application/json", NULL, body, strlen(body), &refusal));
    const bool made = at_plan_make(served, &limits, &r, &plan, &refusal);
    assert_string_equal(made ? "" : refusal.text, message);
    assert_int_equal(refusal.status, made ? 0 : 400);
    at_request_free(&r);
    return plan.pair;
}

static void plans_name_a_model(void **state)
{
    at_served *served = two_pairs();
    (void)state;
    assert_int_equal(plan_of(served, "{\"q\":\"a\",\"source\":\"de\",\"target\":\"en\"}", ""), 0);
    assert_int_equal(plan_of(served, "{\"q\":\"a\",\"source\":\"en\",\"target\":\"fr\",\"alternatives\":4}", ""), 1);
    assert_int_equal(plan_of(served, "{\"q\":\"a\",\"source\":\"en\",\"target\":\"en\",\"alternatives\":-1}", ""), -1);
    plan_of(served, "{\"q\":\"a\",\"source\":\"de\",\"target\":\"fr\"}",
            "French (fr) is not available as a target language from German (de)");
    plan_of(served, "{\"q\":\"a\",\"source\":\"de\",\"target\":\"en\",\"alternatives\":5}",
            "Invalid request: alternatives parameter must be <= 4");
    plan_of(served, "{\"q\":\"a\",\"source\":\"de\",\"target\":\"en\",\"alternatives\":\"\"}",
            "Invalid request: alternatives parameter is not a number");
    plan_of(served, "{\"q\":\"ääääääääää\",\"source\":\"de\",\"target\":\"en\"}", "");
    plan_of(served, "{\"q\":\"äääääääääää\",\"source\":\"de\",\"target\":\"en\"}",
            "Invalid request: request (11) exceeds text limit (10)");
    plan_of(served, "{\"q\":[\"\",\"\",\"\",\"\"],\"source\":\"de\",\"target\":\"en\"}",
            "Invalid request: request (4) exceeds text limit (3)");
    at_served_release(served);
}

/* "abcdefgh " are the letters of all vocabularies here; another one is described by its bytes. */
static void languages_are_detected(void **state)
{
    at_served *served = two_pairs();
    const char *code[2];
    double probability[2];
    at_vocabulary_free(served->pair[1].translator->source);
    served->pair[1].translator->source = counted_vocabulary("char", "xyz ");
    (void)state;
    const at_line texts[2] = {{"xyz xyz", 7}, {"zzz\nx", 5}};
    assert_int_equal(at_detect(served, texts, 2, code, probability), 2);
    assert_string_equal(code[0], "en");
    assert_string_equal(code[1], "de");
    assert_true(probability[0] > 0.99 && probability[0] + probability[1] > 1 - 1e-9);
    const at_line other = {"abc", 3};
    assert_int_equal(at_detect(served, &other, 1, code, probability), 2);
    assert_string_equal(code[0], "de");
    at_served_release(served);
}

/* ---- Keys ------------------------------------------------------------------------------------------------------- */

static void keys_are_compared(void **state)
{
    char path[] = "/tmp/test_serve_XXXXXX";
    static const char text[] = "one\n# two\n\n  three \n";
    const int file = mkstemp(path);
    at_keys keys = {0};
    at_error error = {0};
    (void)state;
    assert_true(file >= 0 && write(file, text, sizeof text - 1) == (ssize_t)sizeof text - 1);
    assert_true(at_keys_read(&keys, path, &error));
    assert_true(at_keys_have(&keys, "one") && at_keys_have(&keys, "three"));
    for (const char *const *wrong = (const char *const[]){"", "on", "onee", "oneone", "# two", "two", " three", NULL};
         *wrong; wrong++)
        assert_false(at_keys_have(&keys, *wrong));
    at_keys_free(&keys);
    close(file);
    unlink(path);
}

/* ---- Sentences -------------------------------------------------------------------------------------------------- */

/* The lines of a text, each between brackets. */
static void splits_as(at_served *served, bool html, const char *text, const char *expected)
{
    const at_line line = {text, strlen(text)};
    at_job *job = at_job_new(served, 0, &line, 1, 1, html);
    at_buffer out = {0};
    assert_non_null(job);
    assert_int_equal(job->open, job->lines);
    for (int64_t i = 0; i < job->lines; i++) {
        job->answer[i].text = calloc(1, job->line[i].size + 3);
        snprintf(job->answer[i].text, job->line[i].size + 3, "[%.*s]", (int)job->line[i].size, job->line[i].text);
    }
    at_job_text(job, 0, 0, &out);
    assert_false(out.failed);
    assert_string_equal(out.bytes, expected);
    at_buffer_free(&out);
    at_job_free(job);
}

static void splits(at_served *served, const char *text, const char *expected)
{
    splits_as(served, false, text, expected);
}

static void html_is_split(void **state)
{
    at_served *served = two_pairs();
    (void)state;
    splits_as(served, true, "plain", "[plain]");
    splits_as(served, true, "<p class=\"a>b\">One\n two </p>\n<br/>3", "<p class=\"a>b\">[One  two] </p>\n<br/>[3]");
    splits_as(served, true, "a<!-- b > c -->d<script>if (a<b) e</script >f<STYLE>g</style>",
              "[a]<!-- b > c -->[d]<script>if (a<b) e</script >[f]<STYLE>g</style>");
    splits_as(served, true, "1 < 2 &amp;&lt; &uuml;&#228;&#xE4;&#x1f600;&nope;&#0;&",
              "[1 &lt; 2 &amp;&lt; üää😀&amp;nope;&amp;#0;&amp;]");
    splits_as(served, true, "<b", "<b");
    splits_as(served, true, "a<b x='", "[a]<b x='");
    splits_as(served, true, "a<!-- b", "[a]<!-- b");
    splits_as(served, true, "<script>a", "<script>a");
    splits_as(served, true, " <i> </i> ", " <i> </i> ");
    splits_as(served, true, "", "");
    at_served_release(served);
}

static void texts_are_split(void **state)
{
    at_served *served = two_pairs();
    at_error error = {0};
    (void)state;
    splits(served, "One. Two\r\n\n three \n", "[One. Two]\r\n\n[ three ]\n");
    splits(served, "a\r", "[a\r]");
    at_splitter *splitter = at_splitter_new("en", &error);
    if (!splitter) {
        assert_int_equal(error.code, AT_UNSUPPORTED);
        print_message("SKIPPED: %s\n", error.text);
    } else {
        served->pair[0].splitter = splitter;
        splits(served, "One. Two!  Three?\r\n\n  four \n", "[One.] [Two!]  [Three?]\r\n\n  [four] \n");
        splits(served, "Mr. Smith paid 3.50 euros. \"Good.\" He left",
               "[Mr. Smith paid 3.50 euros.] [\"Good.\"] [He left]");
        splits(served, "日本語。中国語。", "[日本語。][中国語。]");
        splits(served, " \t ", " \t ");
    }
    at_served_release(served);
}

/* ---- The queue -------------------------------------------------------------------------------------------------- */

static int finished;

/* Tells which search it was done after, if it is asked for. */
static void count_job(at_job *job)
{
    const at_queue *queue = job->context;
    job->context = queue ? (void *)(intptr_t)queue->searches : NULL;
    __atomic_add_fetch(&finished, 1, __ATOMIC_SEQ_CST);
}

static void await(int jobs)
{
    while (__atomic_load_n(&finished, __ATOMIC_SEQ_CST) < jobs)
        usleep(1000);
}

static at_job *job_of(at_served *served, int pair, const char *text, int64_t best)
{
    const at_line line = {text, strlen(text)};
    at_job *job = at_job_new(served, pair, &line, 1, best, false);
    assert_non_null(job);
    job->done = count_job;
    job->deadline = at_seconds() + 100;
    return job;
}

static bool keep_best(void *context, int64_t line, const at_result *result)
{
    char(*texts)[200] = context;
    for (int64_t i = 0; i < result->count; i++)
        snprintf(texts[i], sizeof *texts, "%s", result->best[i].text);
    (void)line;
    return true;
}

static void expect_answer(const at_job *job, const char *text)
{
    char alone[3][200];
    at_error error = {0};
    const at_line line = {text, strlen(text)};
    const at_search_settings settings = {.beam = job->best > limits.beam ? job->best : limits.beam,
                                         .n_best = job->best};
    assert_true(at_translate(job->served->pair[job->pair].translator, &settings, &line, 1, keep_best, alone, &error));
    assert_int_equal(job->status, 0);
    for (int64_t i = 0; i < job->best; i++) {
        at_buffer out = {0};
        at_job_text(job, 0, i, &out);
        assert_string_equal(out.bytes, alone[i]);
        at_buffer_free(&out);
    }
}

/* All jobs are there before the thread is, so what it takes together is known. */
static void lines_of_many_requests_are_one_search(void **state)
{
    enum { JOBS = 30 };
    at_served *served = two_pairs();
    at_queue queue = {.most_lines = 100};
    at_job *job[JOBS + 2];
    char text[JOBS][16];
    at_error error = {0};
    (void)state;
    finished = 0;
    at_queue_init(&queue);
    for (int i = 0; i < JOBS; i++) {
        snprintf(text[i], sizeof text[i], "%.*s", 1 + i % 7, &"abcdefghabcdefgh"[i % 8]);
        job[i] = job_of(served, 0, text[i], 1);
        assert_true(at_queue_add(&queue, job[i], NULL, NULL));
    }
    job[JOBS] = job_of(served, 1, "fade", 1); /* another model, another beam */
    job[JOBS + 1] = job_of(served, 0, "beef", 3);
    for (int i = JOBS; i < JOBS + 2; i++)
        assert_true(at_queue_add(&queue, job[i], NULL, NULL));
    assert_true(at_queue_start(&queue, &limits, &error));
    await(JOBS + 2);
    at_queue_end(&queue);
    assert_int_equal(queue.searches, 3);
    assert_int_equal(queue.searched, JOBS + 2);
    for (int i = 0; i < JOBS; i++)
        expect_answer(job[i], text[i]);
    expect_answer(job[JOBS], "fade");
    expect_answer(job[JOBS + 1], "beef");
    for (int i = 0; i < JOBS + 2; i++)
        at_job_free(job[i]);
    at_queue_free(&queue);
    at_served_release(served);
}

/* A request of 90 lines, then one of a line: the second is done after the first search. */
static void short_requests_do_not_wait_for_long_ones(void **state)
{
    at_served *served = two_pairs();
    at_queue queue = {.most_lines = 91};
    at_error error = {0};
    char text[181];
    (void)state;
    finished = 0;
    at_queue_init(&queue);
    for (int i = 0; i < 90; i++)
        memcpy(text + 2 * i, "a\n", 2);
    text[179] = 0;
    at_job *large = job_of(served, 0, text, 1), *little = job_of(served, 0, "b", 1), *more = job_of(served, 0, "c", 1);
    little->context = &queue;
    assert_true(at_queue_add(&queue, large, NULL, NULL) && at_queue_add(&queue, little, NULL, NULL));
    assert_false(at_queue_add(&queue, more, NULL, NULL)); /* 92 lines */
    assert_true(at_queue_start(&queue, &limits, &error));
    await(2);
    assert_int_equal(queue.searches, 2);
    assert_int_equal(little->status, 0);
    assert_int_equal((intptr_t)little->context, 1);
    assert_int_equal(large->lines, 90);
    assert_int_equal(large->open, 0);
    at_queue_end(&queue);
    assert_false(at_queue_add(&queue, more, NULL, NULL)); /* it has ended */
    at_job_free(large);
    at_job_free(little);
    at_job_free(more);
    at_queue_free(&queue);
    at_served_release(served);
}

static void late_requests_are_refused(void **state)
{
    at_served *served = two_pairs();
    at_queue queue = {.most_lines = 10};
    at_error error = {0};
    (void)state;
    finished = 0;
    at_queue_init(&queue);
    at_job *late = job_of(served, 0, "abc", 1), *good = job_of(served, 0, "abc", 1), *empty = job_of(served, 0, "", 1);
    late->deadline = at_seconds() - 1;
    empty->deadline = late->deadline;
    at_job *all[] = {late, good, empty};
    for (int i = 0; i < 3; i++)
        assert_true(at_queue_add(&queue, all[i], NULL, NULL));
    assert_true(at_queue_start(&queue, &limits, &error));
    await(3);
    assert_int_equal(late->status, 503);
    assert_int_equal(good->status, 0);
    assert_int_equal(empty->status, 0); /* it needs no search */
    expect_answer(good, "abc");
    at_queue_end(&queue);
    for (int i = 0; i < 3; i++)
        at_job_free(all[i]);
    at_queue_free(&queue);
    at_served_release(served);
}

/* A line whose scores are not finite fails its own request only. */
static void a_failure_is_of_one_request(void **state)
{
    at_served *served = two_pairs();
    at_queue queue = {.most_lines = 10};
    at_error error = {0};
    at_translator *translator = served->pair[0].translator;
    at_params *params = translator->model->params;
    const int embedding = at_params_find(params, "source.E");
    int32_t h = 0;
    int64_t replaced;
    (void)state;
    finished = 0;
    assert_true(embedding >= 0 && at_vocabulary_encode(translator->source, "h", 1, &h, 1, &replaced, NULL) == 1);
    at_params_value(params, embedding)[h * at_params_shape(params, embedding).dim[1]] = NAN;
    at_params_changed(params);
    at_queue_init(&queue);
    at_job *one = job_of(served, 0, "ahb", 1), *two = job_of(served, 0, "cd", 1);
    assert_true(at_queue_add(&queue, one, NULL, NULL) && at_queue_add(&queue, two, NULL, NULL));
    assert_true(at_queue_start(&queue, &limits, &error));
    await(2);
    at_queue_end(&queue);
    assert_int_equal(one->status, 500);
    assert_int_equal(one->error.code, AT_FAILED);
    expect_answer(two, "cd");
    at_job_free(one);
    at_job_free(two);
    at_queue_free(&queue);
    at_served_release(served);
}

/* ---- Isolation -------------------------------------------------------------------------------------------------- */

static void *return_it(void *context)
{
    return context;
}

/* In a process of its own, as it is for good: 0, or the number of what was not as it should be. 99: the kernel has neither. */
static int isolated_child(const char *folder)
{
    char model[100], done[60];
    snprintf(model, sizeof model, "%s/model", folder);
    const at_server_model models[] = {{"de", "en", model}};
    const at_server_settings settings = {.models = models, .model_count = 1, .isolate = true};
    at_error error = {0};
    pthread_t thread;
    void *returned = NULL;
    if (!at_isolate(&settings, done, sizeof done, &error))
        return 1;
    if (strstr(done, "Landlock")) {
        const int inside = open(model, O_RDONLY);
        if (inside < 0)
            return 2;
        if (open("/etc/passwd", O_RDONLY) >= 0 || errno != EACCES)
            return 3;
        if (open(model, O_WRONLY) >= 0 || errno != EACCES)
            return 4;
        if (unlink(model) == 0)
            return 5;
    }
    if (strstr(done, "seccomp")) {
        char *const words[] = {(char *)"true", NULL};
        if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != EPERM)
            return 6;
        if (execv("/bin/true", words) == 0 || errno != EPERM)
            return 7;
        if (strcmp(done, "isolated by Landlock and seccomp") != 0 && strcmp(done, "isolated by seccomp") != 0)
            return 8;
    }
    if (pthread_create(&thread, NULL, return_it, done) != 0 || pthread_join(thread, &returned) != 0 || returned != done)
        return 9;
    return strcmp(done, "not isolated") == 0 ? 99 : 0;
}

static void a_process_gives_up_what_it_does_not_need(void **state)
{
    char folder[] = "/tmp/test_serve_XXXXXX", model[100];
    int status = 0;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(model, sizeof model, "%s/model", folder);
    close(open(model, O_CREAT | O_WRONLY, 0644));
    const pid_t child = fork();
    if (child == 0)
        _exit(isolated_child(folder));
    assert_int_equal(waitpid(child, &status, 0), child);
    unlink(model);
    rmdir(folder);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 99)
        print_message("SKIPPED: this kernel has neither Landlock nor seccomp\n");
    else
        assert_int_equal(WEXITSTATUS(status), 0);
}

static void users_are_known(void **state)
{
    char done[60];
    at_error error = {0};
    (void)state;
    assert_false(at_isolate(&(at_server_settings){.user = "no such user"}, done, sizeof done, &error));
    assert_string_equal(error.text, "there is no user 'no such user'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_are_read),
        cmocka_unit_test(json_is_read),
        cmocka_unit_test(bad_bodies_are_refused),
        cmocka_unit_test(plans_name_a_model),
        cmocka_unit_test(languages_are_detected),
        cmocka_unit_test(keys_are_compared),
        cmocka_unit_test(texts_are_split),
        cmocka_unit_test(html_is_split),
        cmocka_unit_test(lines_of_many_requests_are_one_search),
        cmocka_unit_test(short_requests_do_not_wait_for_long_ones),
        cmocka_unit_test(late_requests_are_refused),
        cmocka_unit_test(a_failure_is_of_one_request),
        cmocka_unit_test(a_process_gives_up_what_it_does_not_need),
        cmocka_unit_test(users_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
