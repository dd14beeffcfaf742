/* What a metric is, and what the metrics share. A metric turns each line into a few numbers, its statistics; a score is
 * computed from their sums, whichever lines are summed: the whole text, one line, or a bootstrap sample.
 *
 * A metric NAME is one file, metric_NAME.c, that defines one record, `const at_metric_record at_metric_NAME`. CMake
 * lists the records by the names of the files, so nothing else has to know of it. */
#ifndef AT_METRIC_INTERNAL_H
#define AT_METRIC_INTERNAL_H

#include "attend.h"
#include "score/ngrams_internal.h"
#include "score/tokenise_internal.h"

enum { AT_MOST_STATISTICS = 24 };

/* Memory that the lines of one thread use one after the other. Start from zeros. */
typedef struct at_score_scratch {
    at_words words;
    at_dictionary dictionary;
    at_sequences units, characters;
    at_grams grams;
    at_line *lines; /* the hypothesis, then the references, as the metric reads them */
    char *cleaned;  /* the text of those that at_line_clean changed */
    size_t line_room, cleaned_room;
    double *counts; /* of chrF, for each reference */
    size_t count_room;
    uint64_t *masks; /* of the edit distance: the positions of each unit among 64 of one side, */
    int8_t *steps;   /* and the steps along the other side */
    size_t mask_room, step_room;
} at_score_scratch;
void at_score_scratch_free(at_score_scratch *scratch);

/* One line to score. */
typedef struct at_score_line {
    const at_line *hypothesis;
    const at_line *references; /* [count] */
    int count;
    int64_t number; /* of the line, from 1 */
    at_tokeniser tokeniser;
} at_score_line;

typedef struct at_metric_record {
    at_metric_info info;
    int statistics;    /* how many, AT_MOST_STATISTICS at most */
    bool cleans;       /* its lines are made valid UTF-8 before it reads them */
    bool lowers;       /* and always lower-cased */
    const char *empty; /* the error message if statistic 1 sums to 0 over the whole text; NULL: that has a score */

    /* Fills in the statistics of a line. */
    bool (*collect)(at_score_scratch *scratch, const at_score_line *line, double *statistics, at_error *error);
    /* The score of summed statistics, in percent. `sentence`: they are those of one line. */
    double (*score)(const double *sums, bool sentence);
    /* The metric's own part of the signature, such as "case:mixed|eff:no"; NULL: it has no signature. */
    void (*signature)(const at_score_settings *settings, char *out, size_t size);
    /* What is printed behind the score; NULL: nothing. */
    void (*details)(const double *sums, char *out, size_t size);
} at_metric_record;

/* All records in the order of their files, then NULL. Written by CMake. */
extern const at_metric_record *const at_metric_records[];
/* NULL if there is none. */
const at_metric_record *at_metric_record_named(const char *name);

/* ---- Shared by several metrics -------------------------------------------------------------------------------- */

/* 100 sums[0] / sums[1]. A line with sums[1] = 0 has the score 0 if sums[0] is 0 as well, else 100. */
double at_percentage(const double *sums, bool sentence);

/* Tokenises the line and its references into scratch->units. False if out of memory. */
bool at_score_words(at_score_scratch *scratch, const at_score_line *line);

/* Edits and units of the reference with the lowest rate; units are words or characters. */
bool at_edits_collect(at_score_scratch *scratch, const at_score_line *line, bool words, double *statistics,
                      at_error *error);

/* chrF with n-grams of up to `words` words beside those of characters: its statistics, and their score. */
enum { AT_CHRF_CHARACTERS = 6 };
bool at_chrf_collect(at_score_scratch *scratch, const at_score_line *line, int words, double *statistics,
                     at_error *error);
double at_chrf_score(const double *sums, int words);
void at_chrf_signature(const at_score_settings *settings, int words, char *out, size_t size);

/* "lc" or "mixed", for signatures. */
const char *at_signature_case(const at_score_settings *settings);

bool at_score_no_memory(at_error *error);

/* ---- Scores --------------------------------------------------------------------------------------------------- */

/* The statistics of all lines. */
struct at_scores {
    const at_metric_record *metric;
    at_score_settings settings; /* `tokenise` is never NULL here */
    at_tokeniser tokeniser;
    int64_t count;
    int references;
    double *statistics; /* [count, metric->statistics] */
    double sums[AT_MOST_STATISTICS];
    char signature[256], details[200];
};

#endif
