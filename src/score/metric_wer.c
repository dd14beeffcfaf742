/* Word error rate: edit distance over words (separated by white space). */
#include "score/metric_internal.h"

static bool collect(at_score_scratch *scratch, const at_score_line *line, double *statistics, at_error *error)
{
    return at_edits_collect(scratch, line, true, statistics, error);
}

const at_metric_record at_metric_wer = {
    .info = {.name = "wer",
             .title = "WER",
             .meaning = "edits of words / words of the references",
             .better = AT_SMALLER_IS_BETTER},
    .statistics = 2,
    .cleans = true,
    .empty = "the references have no word, so there is no error rate",
    .collect = collect,
    .score = at_percentage,
};
