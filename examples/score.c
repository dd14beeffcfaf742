/* Metrics on lines in memory: the score of a text with its signature, the score of each line, and the difference of two
 * systems.
 *
 *     cc score.c $(pkg-config --cflags --libs attend) -o score && ./score
 */
#include <stdio.h>
#include <string.h>

#include <attend.h>

enum { LINES = 4 };

static void lines_of(at_line *line, const char *const *text)
{
    for (int i = 0; i < LINES; i++) {
        line[i].text = text[i];
        line[i].size = strlen(text[i]);
    }
}

int main(void)
{
    static const char *const right[LINES] = {"the cat sat on the mat", "it rained", "we went home early", "good night"};
    static const char *const good[LINES] = {"the cat sat on a mat", "it rained", "we went home early", "good evening"};
    static const char *const poor[LINES] = {"cat on mat", "it rains", "we are going home", "good night"};
    at_line reference[LINES], first[LINES], second[LINES];
    lines_of(reference, right);
    lines_of(first, good);
    lines_of(second, poor);
    const at_line *references[1] = {reference};

    at_error error;
    memset(&error, 0, sizeof error);
    at_scores *a = at_scores_new("chrf", NULL, first, LINES, references, 1, &error);
    at_scores *b = at_scores_new("chrf", NULL, second, LINES, references, 1, &error);
    at_comparison comparison;
    memset(&comparison, 0, sizeof comparison);
    if (a && b && at_scores_compare(a, b, &comparison, &error)) {
        const at_metric_info *metric = at_scores_metric(a);
        printf("%s|%s, %s is better\n", metric->title, at_scores_signature(a),
               metric->better == AT_LARGER_IS_BETTER ? "larger" : "smaller");
        printf("first %.1f, second %.1f, difference %.1f\n", at_scores_total(a), at_scores_total(b),
               comparison.difference);
        for (int64_t i = 0; i < at_scores_count(a); i++)
            printf("line %lld: %.1f %.1f\n", (long long)i, at_scores_line(a, i), at_scores_line(b, i));
    }
    at_scores_free(a);
    at_scores_free(b);

    double rate = 0; /* in short: one metric, one reference */
    if (at_score_lines("wer", first, reference, LINES, &rate, &error))
        printf("word error rate of the first %.2f\n", rate);
    if (error.code != AT_OK)
        fprintf(stderr, "score: %s\n", error.text);
    return error.code;
}
