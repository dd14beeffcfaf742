/* What stands in a line and is not translated with it: tags of HTML, and what is kept as it is. Both are put back by
 * alignment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "serve/serve_internal.h"
#include "text/placeholders_internal.h"
#include "translator_of.h"

static at_served *random_models(void)
{
    enum { MODELS = 4 };
    at_served *served = calloc(1, sizeof *served);
    *served = (at_served){.owners = 1, .count = MODELS, .keeps = true, .pair = calloc(MODELS, sizeof *served->pair)};
    for (int i = 0; i < MODELS; i++) {
        const bool letters = i < 2;
        at_vocabulary *source = letters ? counted_vocabulary("char", "abcdefgh .,(1234")
                                        : counted_vocabulary("word", "a bad cafe head 1234");
        at_vocabulary *target =
            letters ? counted_vocabulary("word", "the cat , sat 1234 .") : counted_vocabulary("char", "abc 7.50");
        served->pair[i].translator =
            translator_with(i % 2 ? "transformer" : "rnn-attention", (uint64_t)i, source, target);
    }
    return served;
}

/* ---- Tags by alignment ------------------------------------------------------------------------------------------ */

/* Answers a line by its words in the order given by their numbers, from 0, each one unit that is linked to its source; a
 * word that is not there is left out, and + is a word that comes from nowhere. */
static void answer_by(at_line line, const char *order, at_answer *answer)
{
    int64_t begin[20], end[20], count = 0;
    at_buffer out = {0};
    for (size_t at = 0; at < line.size; at++)
        if (line.text[at] != ' ' && (at == 0 || line.text[at - 1] == ' ')) {
            begin[count] = (int64_t)at;
            end[count] = begin[count];
            while ((size_t)end[count] < line.size && line.text[end[count]] != ' ')
                end[count]++;
            count++;
        }
    at_buffer_add(&out, "", 0);
    answer->place = calloc(strlen(order) + 1, sizeof *answer->place);
    for (const char *o = order; *o; o++) {
        const int number = *o - '0';
        assert_true(*o == '+' || number < count);
        at_buffer_add(&out, " ", o > order);
        if (*o == '+')
            at_buffer_add(&out, "+", 1);
        else
            at_buffer_add(&out, line.text + begin[number], (size_t)(end[number] - begin[number]));
        answer->place[answer->places++] = (at_place){(int32_t)out.size, *o == '+' ? -1 : (int32_t)begin[number]};
    }
    answer->text = out.bytes;
}

/* A text of one line, answered so. */
static void becomes(const char *text, bool html, bool keeps, const char *order, const char *expected)
{
    at_served *served = random_models();
    served->keeps = keeps;
    const at_line line = {text, strlen(text)};
    at_job *job = at_job_new(served, 0, &line, 1, 1, html);
    at_buffer out = {0};
    assert_non_null(job);
    for (int64_t i = 0; i < job->lines; i++)
        answer_by(job->line[i], order, &job->answer[i]);
    at_job_text(job, 0, 0, &out);
    assert_false(out.failed);
    assert_string_equal(out.bytes, expected);
    at_buffer_free(&out);
    at_job_free(job);
    at_served_release(served);
}

static void carries(const char *text, const char *order, const char *expected)
{
    becomes(text, true, false, order, expected);
}

static void tags_follow_words(void **state)
{
    (void)state;
    carries("<p>a <b>b c</b> d</p>", "0123", "<p>a <b>b c</b> d</p>");
    carries("<p>a <b>b c</b> d</p>", "3210", "<p>d <b>c b</b> a</p>");
    carries("<b>a b</b>", "10", "<b>b a</b>");
    carries("a <b>b <i x='1>2'>c</i></b> <a href=\"?a=1&b=2\">d</a>", "3201",
            "<a href=\"?a=1&b=2\">d</a> <b><i x='1>2'>c</i></b> a b");
    carries("<EM>a</EM> b", "10", "b <EM>a</EM>");
    /* Words of an element that are torn apart: most that stand together, never a second tag. */
    carries("<b>a b c</b> d", "0312", "a d <b>b c</b>");
    carries("a <b>b c</b> d", "1+02", "<b>b</b> + a c");
    /* Nothing comes from the element: it stands at a word beside its place. */
    carries("a <b>b</b> c", "02", "a <b>c</b>");
    carries("a <b>b</b>", "0", "a<b></b>");
    /* Without content: between the words that come from its sides, blanks as before. */
    carries("a b<br>c d", "0123", "a b<br>c d");
    carries("a <img src=x> b c", "210", "c b <img src=x> a");
    carries("a<wbr>b c", "10", "c<wbr> ab");
    carries("a <i></i>b", "10", "b <i></i>a");
    /* Not to be translated. */
    carries("a <code>x <y></code> b", "10", "b <code>x <y></code> a");
    carries("a <span class=q translate=\"no\">x</span> b", "01", "a <span class=q translate=\"no\">x</span> b");
    carries("<p translate=no>a b<p>c</p></p><p>a b", "10", "<p translate=no>a b<p>c</p></p><p>b a");
    carries("<pre>a <b>b</b></pre>", "", "<pre>a <b>b</b></pre>");
    carries("<b translate=yes>a</b> b", "10", "b <b translate=yes>a</b>");
    /* Characters by name, also beside tags. */
    carries("&lt;a <b>&auml;&amp;</b>", "10", "<b>ä&amp;</b> &lt;a");
    carries("a&am<b>p; b</b>", "01", "a&amp;amp; <b>b</b>");
    /* What is not closed, or never opened, stays in its order. */
    carries("a <b>b", "10", "<b>b a");
    carries("a</b> b c", "120", "</b>b c a");
    carries("a</b> b c", "012", "a</b> b c");
}

/* ---- What is kept ----------------------------------------------------------------------------------------------- */

static void is_kept(const char *line, const char *expected)
{
    at_buffer out = {0};
    at_line found;
    bool number;
    at_buffer_add(&out, "", 0);
    for (size_t from = 0; at_placeholder_next((at_line){line, strlen(line)}, &from, &found, &number);)
        at_buffer_print(&out, "%s%.*s%s", number ? "#" : "", (int)found.size, found.text, "|");
    assert_string_equal(out.bytes, expected);
    at_buffer_free(&out);
}

static void placeholders_are_found(void **state)
{
    (void)state;
    is_kept("see https://a.b/c?d=1&e=(2), or www.x.org.", "https://a.b/c?d=1&e=(2|www.x.org|");
    is_kept("to a.b-c@d-e.org, not a@b", "a.b-c@d-e.org|");
    is_kept("{} {a} {0:.2f} {{ a b }} ${x} {a b} {", "{}|{a}|{0:.2f}|{{ a b }}|${x}|");
    is_kept("%s %-5.2f %1$s %(a)s %% %@ %sure 5% of", "%s|%-5.2f|%1$s|%(a)s|%%|%@|#5|");
    is_kept("&amp; &#228; &x; & b;", "&amp;|&#228;|&x;|");
    is_kept("1,000.50 at 12:30, 2024-01-31. 1/2 3", "#1,000.50|#12:30|#2024-01-31|#1/2|#3|");
    is_kept("mp3 5kg x86_64 ä1 3rd 10", "#10|");
    is_kept("", "");
}

static void placeholders_follow_words(void **state)
{
    (void)state;
    becomes("a {b} c", false, true, "01", "a {b} c");
    becomes("a {b} c d", false, true, "210", "d c {b} a");
    becomes("{b} a c", false, true, "01", "{b} a c");
    becomes("a c {b}", false, true, "01", "a c {b}");
    becomes("a {b}, c", false, true, "01", "a {b}, c");
    becomes("a ({b}) c", false, true, "012", "a ({b}) c");
    becomes("a {x}{y} c", false, true, "01", "a {x}{y} c");
    becomes("%s: %s", false, true, "", "%s: %s");
    becomes("a https://x.y/?a=1&b=2 b", true, true, "10", "b https://x.y/?a=1&amp;b=2 a");
    becomes("a <b>{x} b</b> c", true, true, "210", "c <b>b {x}</b> a");
    becomes("a <b>{x}</b> c", true, true, "10", "c <b>{x}</b> a");
}

static int finished;

static void count_job(at_job *job)
{
    (void)job;
    __atomic_fetch_add(&finished, 1, __ATOMIC_RELEASE);
}

static int64_t count_of(const char *text, const char *wanted)
{
    int64_t count = 0;
    for (const char *at = text; (at = strstr(at, wanted)); at++)
        count++;
    return count;
}

/* Models with random weights, whatever their vocabularies: each placeholder of a line is in its translation once. */
static void each_placeholder_is_there_once(void **state)
{
    enum { LINES = 80, KINDS = 11 };
    static const char *const kept[KINDS] = {"https://x.y/a?b=1&c=2",
                                            "ab@cd.ef",
                                            "{name}",
                                            "{{ user }}",
                                            "%s",
                                            "%1$d",
                                            "${v}",
                                            "%(who)s",
                                            "1234",
                                            "7.50",
                                            "9876"};
    static const char *const words[] = {"a", "bad", "cafe", "head", "(", ",", "beg."};
    static char text[LINES][400];
    at_served *served = random_models();
    at_queue queue = {.most_lines = LINES};
    at_job *job[LINES];
    unsigned which[LINES], random = 7;
    at_error error = {0};
    int64_t checked = 0;
    (void)state;
    finished = 0;
    at_queue_init(&queue);
    for (int i = 0; i < LINES; i++) {
        size_t size = 0;
        which[i] = 0;
        for (int w = 0; w < 7; w++) {
            random = random * 1664525 + 1013904223;
            const int kind = (int)(random >> 8) % (2 * KINDS);
            const bool keep = kind < KINDS && !(which[i] >> kind & 1);
            which[i] |= keep ? 1U << kind : 0;
            size += (size_t)snprintf(text[i] + size, sizeof text[i] - size, "%s%s%s", w ? " " : "",
                                     keep ? kept[kind] : words[kind % 7], random >> 30 == 3 ? "," : "");
        }
        const at_line line = {text[i], strlen(text[i])};
        job[i] = at_job_new(served, i % served->count, &line, 1, 1, false);
        assert_non_null(job[i]);
        job[i]->done = count_job;
        job[i]->deadline = at_seconds() + 300;
        assert_true(at_queue_add(&queue, job[i], NULL, NULL));
    }
    assert_true(at_queue_start(&queue, &(at_server_settings){.max_queue = LINES, .beam = 2}, &error));
    while (__atomic_load_n(&finished, __ATOMIC_ACQUIRE) < LINES)
        usleep(1000);
    at_queue_end(&queue);
    for (int i = 0; i < LINES; i++) {
        at_buffer out = {0};
        assert_int_equal(job[i]->status, 0);
        at_job_text(job[i], 0, 0, &out);
        for (int k = 0; k < KINDS; k++) {
            if (!(which[i] >> k & 1))
                continue; /* what was not there, the model may write: a number */
            checked++;
            if (count_of(out.bytes, kept[k]) != 1)
                fail_msg("%s in '%s' is '%s'", kept[k], text[i], out.bytes);
        }
        at_buffer_free(&out);
        at_job_free(job[i]);
    }
    assert_true(checked > 3 * LINES / 2);
    at_queue_free(&queue);
    at_served_release(served);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tags_follow_words),
        cmocka_unit_test(placeholders_are_found),
        cmocka_unit_test(placeholders_follow_words),
        cmocka_unit_test(each_placeholder_is_there_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
