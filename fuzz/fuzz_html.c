/* Any bytes as HTML whose lines are answered by their words in another order, which the first byte chooses, with the
 * alignment of that order: every tag and comment is there again, once, and elements that were closed are closed. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "serve/serve_internal.h"

static int by_bytes(const void *a, const void *b)
{
    const at_line x = ((const at_piece *)a)->bytes, y = ((const at_piece *)b)->bytes;
    const int order = memcmp(x.text, y.text, x.size < y.size ? x.size : y.size);
    return order ? order : (x.size > y.size) - (x.size < y.size);
}

/* The tags and comments of a text, sorted. */
static at_piece *markup_of(at_line text, int64_t *count)
{
    at_piece *pieces;
    int64_t all, kept = 0;
    EXPECT(at_html_split(text, &pieces, &all));
    for (int64_t i = 0; i < all; i++)
        if (pieces[i].kind != AT_PIECE_TEXT)
            pieces[kept++] = pieces[i];
    *count = kept;
    if (kept > 0)
        qsort(pieces, (size_t)kept, sizeof *pieces, by_bytes);
    return pieces;
}

/* Whether all tags inside sentences have their other one. */
static bool is_balanced(at_line text)
{
    at_piece *pieces;
    int64_t count;
    bool balanced = true;
    EXPECT(at_html_cut(text, &pieces, &count));
    for (int64_t i = 0; i < count; i++) {
        const bool tag = pieces[i].kind == AT_PIECE_OPEN || pieces[i].kind == AT_PIECE_CLOSE;
        balanced &= !tag || pieces[i].match >= 0;
    }
    free(pieces);
    return balanced;
}

/* The words between blanks, with word i at place (i * step) mod count; a word of the translation is a unit. */
static void answer_line(at_line line, at_answer *answer, int64_t step)
{
    at_line words[512];
    int64_t count = 0;
    for (size_t at = 0; at < line.size && count < 512;) {
        size_t end = at;
        while (end < line.size && line.text[end] != ' ')
            end++;
        if (end > at)
            words[count++] = (at_line){line.text + at, end - at};
        at = end + 1;
    }
    at_buffer out = {0};
    at_buffer_add(&out, "", 0);
    answer->place = calloc((size_t)count + 1, sizeof *answer->place);
    answer->places = count;
    for (int64_t i = 0; i < count; i++) {
        const at_line word = words[i * step % count];
        at_buffer_add(&out, " ", i > 0);
        at_buffer_add(&out, word.text, word.size);
        answer->place[i] = (at_place){(int32_t)out.size, i % 5 == 4 ? -1 : (int32_t)(word.text - line.text)};
    }
    answer->text = out.bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static at_pair pair = {.source = "de", .target = "en"};
    static at_served served = {.pair = &pair, .count = 1, .owners = 1};
    if (size < 1)
        return 0;
    char *html = text_of(bytes + 1, size - 1);
    const at_line text = {html, strlen(html)};
    if (at_utf8_length(html, text.size) == text.size) {
        at_job *job = at_job_new(&served, 0, &text, 1, 1, true);
        EXPECT(job);
        for (int64_t i = 0; i < job->lines; i++)
            answer_line(job->line[i], &job->answer[i], 1 + bytes[0] % 8);
        at_buffer out = {0};
        at_job_text(job, 0, 0, &out);
        EXPECT(!out.failed && at_utf8_length(out.bytes, out.size) == out.size);
        const at_line translated = {out.bytes, out.size};
        int64_t before, after;
        at_piece *markup = markup_of(text, &before), *written = markup_of(translated, &after);
        EXPECT(before == after && (!is_balanced(text) || is_balanced(translated)));
        for (int64_t i = 0; i < before; i++)
            EXPECT(by_bytes(&markup[i], &written[i]) == 0);
        free(markup);
        free(written);
        at_buffer_free(&out);
        at_job_free(job);
    }
    free(html);
    return 0;
}
