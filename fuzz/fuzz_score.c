/* Any lines as hypotheses and references of a metric, which the first two bytes choose together with its settings: an
 * error message, or a score that is no less than 0 for every line and for all of them. */
#include "fuzz.h"

#include <string.h>

enum { MOST_LINES = 40 };

static int split(const char *text, size_t size, at_line line[MOST_LINES])
{
    int count = 0;
    for (const char *end = text + size; count < MOST_LINES && text < end; count++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        line[count] = (at_line){text, (size_t)((newline ? newline : end) - text)};
        text += line[count].size + 1;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    at_line line[MOST_LINES];
    int metrics = 0, tokenisers = 0;
    while (at_metric(metrics))
        metrics++;
    while (at_tokeniser_name(tokenisers))
        tokenisers++;
    if (size < 2)
        return 0;
    const char *text = (const char *)bytes + 2;
    const int references = 1 + bytes[0] / 64, lines = split(text, size - 2, line) / (1 + references);
    const at_score_settings settings = {.tokenise = at_tokeniser_name(bytes[1] % tokenisers),
                                        .lowercase = bytes[1] / 16 % 2,
                                        .sentences = bytes[1] / 32 % 2,
                                        .resamples = 3};
    const at_line *reference[4];
    for (int r = 0; r < references; r++)
        reference[r] = line + (r + 1) * lines;
    at_error error = {0};
    at_threads_set(1);
    at_scores *scores =
        at_scores_new(at_metric(bytes[0] % 64 % metrics)->name, &settings, line, lines, reference, references, &error);
    expect_message(scores, &error);
    at_spread spread;
    if (scores) {
        EXPECT(!(at_scores_total(scores) < 0));
        for (int i = 0; i < lines; i++)
            EXPECT(!(at_scores_line(scores, i) < 0));
        EXPECT(at_scores_spread(scores, &spread, &error) == (error.code == AT_OK));
    }
    at_scores_free(scores);
    return 0;
}
