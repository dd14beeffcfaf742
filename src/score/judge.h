/* What the metrics share. A metric turns each line into a few numbers, its statistics; a score is made from their sums,
 * whichever lines are summed: the whole text, one line, or lines drawn by lot. */
#ifndef AT_JUDGE_H
#define AT_JUDGE_H

#include "attend.h"
#include "base/table.h"
#include "score/tokenise.h"
#include "text/units.h"

enum { AT_MOST_STATISTICS = 24 };

/* ---- Units as numbers ----------------------------------------------------------------------------------------- */

/* A line and its references as numbers, one after the other: sequence 0 is the hypothesis, 1 and up the references;
 * sequence s is id[start[s] .. start[s + 1]). Equal units have equal numbers. */
typedef struct at_sequences {
    int32_t *id;
    size_t used, room;
    int64_t *start; /* [count + 1] */
    size_t start_room;
    int count;
} at_sequences;

/* Words and the numbers they were given; the bytes are copied, and word i is bytes[start[i] .. start[i + 1]). */
typedef struct at_dictionary {
    at_table table;
    int32_t used;
    size_t *start; /* [used + 1] */
    size_t start_room;
    char *bytes;
    size_t size, room;
} at_dictionary;

/* n-grams of sequences as numbers, order by order. */
typedef struct at_grams {
    const at_sequences *of;
    int order;
    int32_t *number; /* like of->id; of order n there are n - 1 fewer in each sequence */
    int32_t *most, *now;
    size_t room;
    at_table table; /* of pairs, see ngrams.c */
} at_grams;

/* Memory that one thread's lines use one after the other. Start from zeros. */
typedef struct at_judge_scratch {
    at_words words;
    at_dictionary dictionary;
    at_sequences units, characters;
    at_grams grams;
    char *lowered;
    size_t lowered_room;
    at_line *lines; /* the hypothesis, then the references, as they are judged */
    double *tallies;
    size_t line_room, tally_room;
    /* Of edit distances: where each unit is among 64 of one side, and the steps along the other. */
    uint64_t *masks;
    int8_t *steps;
    size_t mask_room, step_room;
} at_judge_scratch;
/* A link of an alignment, "3-4", or "3?4" if it is only possible, as source << 32 | target. */
bool at_link_read(at_unit unit, uint64_t *link, bool *sure);
void at_judge_scratch_free(at_judge_scratch *scratch);

void at_sequences_clear(at_sequences *sequences);
/* Ids make up a sequence, whose end the second call marks. False if memory ran out. */
bool at_sequences_add(at_sequences *sequences, int32_t id);
bool at_sequences_end(at_sequences *sequences);

void at_dictionary_clear(at_dictionary *dictionary);
/* The number of a word, 0 and up in the order of their first coming; -1 if memory ran out. */
int32_t at_dictionary_number(at_dictionary *dictionary, const char *text, size_t size);

/* n-grams of order 0: then each step makes them one longer. False if memory ran out. */
bool at_grams_start(at_grams *grams, const at_sequences *sequences);
void at_grams_step(at_grams *grams);
/* How many n-grams of the present order a sequence has. */
int64_t at_grams_count(const at_grams *grams, int sequence);
/* How many of the hypothesis' n-grams are in the sequences first .. last, each as often at most as in the one of them
 * that has it most often: sum over g of min(count_0(g), max_s count_s(g)). */
int64_t at_grams_common(at_grams *grams, int first, int last);

/* ---- Metrics -------------------------------------------------------------------------------------------------- */

/* A line to judge. */
typedef struct at_judged {
    const at_line *hypothesis;
    const at_line *references; /* [count] */
    int count;
    int64_t number; /* of the line, from 1 */
    at_tokeniser tokeniser;
} at_judged;

typedef struct at_metric_kind {
    const char *name;    /* "bleu" */
    const char *title;   /* "BLEU" at the head of its signature; NULL: it has none */
    int statistics;      /* how many */
    int most_references; /* 0: any number */
    bool larger_is_better;
    bool cleans;         /* its lines are made valid UTF-8 before it sees them */
    bool lowers;         /* and always in small letters */
    bool of_links;       /* its lines are alignments, not text */
    const char *nothing; /* the sentence if statistic 1 sums to 0 over the whole text; NULL: that has a score */
    bool (*collect)(at_judge_scratch *scratch, const at_judged *line, double *statistics, at_error *error);
    /* `sentence`: the sums are of one line. */
    double (*score)(const double *sums, bool sentence);
} at_metric_kind;

extern const at_metric_kind at_metric_bleu, at_metric_chrf, at_metric_chrf_words, at_metric_ter, at_metric_wer,
    at_metric_cer, at_metric_accuracy, at_metric_aer;

/* The metrics in order, NULL past the last; the one of a name, NULL if there is none. */
const at_metric_kind *at_metric_at(int index);
const at_metric_kind *at_metric_find(const char *name);

/* Tokenises the line and its references into scratch->units. False if memory ran out. */
bool at_number_words(at_judge_scratch *scratch, const at_judged *line);
/* 100 sums[0] / sums[1]. */
double at_error_rate(const double *sums, bool sentence);

/* The precisions in percent of orders 1 to 4, smoothed, and the brevity penalty, from sums. */
enum { AT_BLEU_ORDER = 4, AT_BLEU_HYP = 0, AT_BLEU_REF, AT_BLEU_CORRECT, AT_BLEU_TOTAL = AT_BLEU_CORRECT + 4 };
double at_bleu_score(const double *sums, bool effective, double precision[AT_BLEU_ORDER], double *penalty);

/* The fewest edits from a hypothesis to a reference if moving a block of words is one edit too; -1 if memory ran out.
 */
int64_t at_ter_edits(const int32_t *hypothesis, int64_t n, const int32_t *reference, int64_t m);

/* The statistics of all lines. */
struct at_scores {
    const at_metric_kind *kind;
    at_score_settings settings;
    at_tokeniser tokeniser;
    int64_t count;
    int references;
    double *statistics; /* [count, kind->statistics] */
    double sums[AT_MOST_STATISTICS];
    char signature[200], details[200];
};

bool at_no_memory_to_score(at_error *error);

#endif
