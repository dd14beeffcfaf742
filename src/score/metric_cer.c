/* Character error rate: edit distance over characters (code points, white space included). */
#include "score/metric_internal.h"

static bool collect(at_score_scratch *scratch, const at_score_line *line, double *statistics, at_error *error)
{
    return at_edits_collect(scratch, line, false, statistics, error);
}

const at_metric_record at_metric_cer = {
    .info = {.name = "cer",
             .title = "CER",
             .meaning = "edits of characters / characters of the references",
             .better = AT_SMALLER_IS_BETTER},
    .statistics = 2,
    .cleans = true,
    .empty = "the references have no character, so there is no error rate",
    .collect = collect,
    .score = at_percentage,
};
