/* Accuracy: the lines that equal a reference byte by byte. */
#include <string.h>

#include "score/metric_internal.h"

static bool collect(at_score_scratch *scratch, const at_score_line *line, double *statistics, at_error *error)
{
    (void)scratch, (void)error;
    statistics[0] = 0;
    statistics[1] = 1;
    for (int r = 0; r < line->count; r++) {
        at_line a = *line->hypothesis, b = line->references[r];
        if (a.size == b.size && (b.size == 0 || memcmp(a.text, b.text, b.size) == 0))
            statistics[0] = 1;
    }
    return true;
}

const at_metric_record at_metric_accuracy = {
    .info = {.name = "accuracy",
             .title = "accuracy",
             .meaning = "lines equal to a reference / lines",
             .better = AT_LARGER_IS_BETTER},
    .statistics = 2,
    .collect = collect,
    .score = at_percentage,
};
