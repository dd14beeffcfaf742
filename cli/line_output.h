/* Where a command writes its lines: the standard output, or the file of -o. */
#ifndef LINE_OUTPUT_H
#define LINE_OUTPUT_H

#include "console.h"

typedef struct line_output {
    FILE *stream;      /* to print to */
    at_writer *writer; /* of the file; NULL: the standard output */
    const char *path;
} line_output;

/* NULL and "-" mean the standard output. `inputs` are files that must not be written over, with NULL after the last. */
bool line_output_open(line_output *output, const char *path, const char *const *inputs, at_error *error);
/* What was printed so far goes out. */
bool line_output_flush(line_output *output, at_error *error);
/* Whether all of it could be printed until now. */
bool line_output_good(line_output *output, at_error *error);
/* Ends it: the file is complete, or if there is an error it is as it was before. */
bool line_output_close(line_output *output, at_error *error);

/* Several processes that read lines together: rank 0 reads and writes, all compute. */
#define RANK_TIMEOUT(options_)                                                                                         \
    {                                                                                                                  \
        AT_SETTING_NUMBER, "rank-timeout", "SECONDS", offsetof(options_, rank_timeout), "600",                         \
            .limits = AT_ABOVE_LEAST,                                                                                  \
            .help = "of several processes (mpirun): how long they wait for one that does not answer before all end"    \
    }

/* The model that a command reads: that of -m in *model, or else the first of its words, which is then left out of them.
 * A word that is there beside -m is an error. */
bool model_word(const char *command, const char **model, int *word_count, char ***words, at_error *error);

#endif
