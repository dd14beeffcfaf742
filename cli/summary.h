/* Running summaries of attention weights as JSON. */
#ifndef SUMMARY_H
#define SUMMARY_H

#include <stdio.h>

#include "attend.h"

/* Arrays [B,H,Q] ([B,H,K] for key_sums), or without the B; NULL: left out. */
typedef struct cli_summary {
    at_array *argmax;  /* int32 */
    at_array *entropy; /* float32, like those below */
    at_array *key_sums;
    at_array *log_prob; /* hard only */
} cli_summary;

/* {"argmax":[...],"entropy":[...],"key_sums":[...]}, nested as the arrays are. `context` is a summary. */
bool summary_write(FILE *stream, const void *context);

#endif
