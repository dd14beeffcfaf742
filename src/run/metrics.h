/* Scores of lines against references: word and character error rate, accuracy, alignment error. */
#ifndef AT_METRICS_H
#define AT_METRICS_H

#include "error.h"

typedef struct at_line {
    const char *text;
    size_t size;
} at_line;

/* wer: edit distance over blank-separated words / reference words, times 100; cer: the same over characters (code
 * points); accuracy: lines that are equal, in percent. Different counts of lines are refused. */
bool at_score_lines(const char *metric, const at_line *hypotheses, int64_t hypothesis_count, const at_line *references,
                    int64_t reference_count, double *score, at_error *error);
/* AER of Pharaoh lines; sure links `a-b`, possible ones `a?b` in the reference: 1 - (|A&S| + |A&P|) / (|A| + |S|),
 * times 100. */
bool at_score_alignments(const at_line *hypotheses, int64_t hypothesis_count, const at_line *references,
                         int64_t reference_count, double *score, at_error *error);

#endif
