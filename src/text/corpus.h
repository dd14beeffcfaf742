/* A corpus: pairs of id sequences with their line numbers. And its batches, in an order that the seed and the epoch
 * determine. */
#ifndef AT_CORPUS_H
#define AT_CORPUS_H

#include "text/vocabulary.h"

typedef enum at_too_long { AT_TOO_LONG_KEEP, AT_TOO_LONG_CUT, AT_TOO_LONG_SKIP } at_too_long;

typedef struct at_corpus_files {
    const char *source, *target;      /* parallel files, or several of each with commas between; or */
    const char *tsv;                  /* tab-separated files with */
    int source_column, target_column; /* these columns, counted from 1 */
    bool target_only;                 /* there is no source, only the target file or the target's column */
    bool pictures;                    /* the source's lines name pictures */
} at_corpus_files;

/* Which pairs are used. */
typedef struct at_corpus_limits {
    int64_t max_length; /* units of either side, the target's end not counted; 0: no limit */
    at_too_long rule;   /* for those that are longer */
    double max_ratio;   /* skipped: one side has more than this many times the other's units; 0: no limit */
} at_corpus_limits;

/* What was found while reading, for the user: counts, and the first line number of each (0: none). */
typedef struct at_corpus_report {
    int64_t lines, kept;
    int64_t empty, first_empty;           /* skipped: one side has no unit */
    int64_t too_long, first_too_long;     /* kept, cut or skipped by the rule */
    int64_t over_ratio, first_over_ratio; /* skipped: the sides' lengths are too different */
    int64_t replaced, first_replaced;     /* lines with invalid UTF-8 */
    int64_t beyond_ascii;                 /* lines with any byte that is not ASCII */
} at_corpus_report;

/* The lines of a file that name pictures, with paths relative to its folder made relative to the current one; of an
 * array .npy the lines FILE[0], FILE[1], ... */
at_line_list *at_picture_lines_read(const char *path, at_error *error);
/* Puts the folder of the file `path` before every one of its lines that is a relative path. Returns what the lines then
 * point into, to release with free; NULL with an error. */
char *at_picture_paths(at_line *lines, int64_t count, const char *path, at_error *error);

/* How source lines that are not text become units: `read` returns how many the line has, all of them with the same id;
 * -1 with an error. */
typedef struct at_source_reader {
    int64_t (*read)(void *context, at_line line, int32_t *id, at_error *error);
    void *context;
} at_source_reader;

/* The lines of both sides, before they are encoded. Different numbers of lines, a missing column or an empty file is an
 * error whose message names file and line. */
typedef struct at_lines {
    const at_line *side[2]; /* [count] each: source, target; the source NULL if there is none */
    int64_t count;
    at_line_list *file[2];  /* what they point into */
    at_line *cells;         /* the columns of a tab-separated file, or the lines of all parts */
    char *paths;            /* of the pictures that a column names; NULL: none */
    struct at_lines **part; /* [parts] several corpora, one after the other; NULL: one */
    char **part_name;       /* [parts] the file of each, of the target if there are two */
    int parts;
} at_lines;
at_lines *at_lines_read(const at_corpus_files *files, at_error *error);
/* Lines in memory, which must stay as long as the result; sources NULL: there are none. */
at_lines *at_lines_of(const at_line *sources, const at_line *targets, int64_t count, at_error *error);
void at_lines_free(at_lines *lines);
/* The file and the number there of line `number`, from 1; NULL and the same number if there is one corpus only. */
const char *at_lines_place(const at_lines *lines, int64_t number, int64_t *there);
bool at_lines_count_units(const at_lines *lines, int side, at_vocabulary *vocabulary, at_error *error);

typedef struct at_corpus at_corpus;
/* Pairs as ids, in the order of the lines; `source` NULL: targets only, each with an empty source, unless `reader`, which
 * may be NULL, reads the sources; the limits then are about the targets only. Fails if no pair is left. Needs the lines and vocabularies only during the call. */
at_corpus *at_corpus_new(const at_lines *lines, const at_vocabulary *source, const at_vocabulary *target,
                         const at_source_reader *reader, const at_corpus_limits *limits, at_corpus_report *report,
                         at_error *error);
void at_corpus_free(at_corpus *corpus);
int64_t at_corpus_count(const at_corpus *corpus);
int64_t at_corpus_up_to(const at_corpus *corpus, int64_t line); /* pairs of the lines up to number `line` */
/* The entropy of the target units and ends, in nats: the least loss of a model that knows only how frequent each unit
 * of the vocabulary is, under this label smoothing. */
bool at_corpus_entropy(const at_corpus *corpus, int64_t vocabulary, double smoothing, double *entropy, at_error *error);
/* The units of a side (0: source, 1: target), and how many of them the vocabulary does not have. */
int64_t at_corpus_units(const at_corpus *corpus, int side, int64_t *unknown);

/* One batch. Its memory belongs to the batches and is valid until the next one. */
typedef struct at_batch {
    int64_t rows, source_length, target_length; /* target_length counts the end */
    const int32_t *source;                      /* [rows, source_length], -1 beyond */
    const int64_t *source_lengths;              /* [rows] */
    const int32_t *input;                       /* [rows, target_length]: begin, y_1 .. ; AT_PAD beyond */
    const int32_t *target;                      /* [rows, target_length]: y_1 .. end; -1 beyond */
    const int64_t *target_lengths;              /* [rows] */
    const int64_t *lines;                       /* [rows] line numbers from 1 */
    int64_t source_tokens, target_tokens;       /* without padding */
} at_batch;

/* Batches of about `tokens` target tokens (padding counted) or exactly `sentences` (the last may be smaller); one of
 * the two is 0. Sentences of similar length share a batch; sentences and batches are shuffled by Philox(seed,
 * epoch), so that (epoch, index) determines a batch. shuffle false: in the order of the corpus. The first batch is
 * (0, 0). Only _new and _seek allocate, _seek only for a batch larger than any before. Needs the corpus as long as
 * it lives. */
typedef struct at_batches at_batches;
at_batches *at_batches_new(const at_corpus *corpus, int64_t sentences, int64_t tokens, uint64_t seed, bool shuffle,
                           at_error *error);
/* The same for a corpus of several parts: in every epoch a pair of a part occurs `weight` times. Of a weight that is not
 * whole, 2.5, some pairs occur 2 and some 3 times, chosen anew in each epoch; an epoch has round(weight * pairs) of each
 * part, and at least 1. */
typedef struct at_corpus_part {
    int64_t end; /* the number of pairs in this part and those before it */
    double weight;
} at_corpus_part;
at_batches *at_batches_new_weighted(const at_corpus *corpus, const at_corpus_part *parts, int count, int64_t sentences,
                                    int64_t tokens, uint64_t seed, at_error *error);
void at_batches_free(at_batches *batches);
bool at_batches_seek(at_batches *batches, int64_t epoch, int64_t index, at_error *error); /* sets the next batch */
/* The next batch; false at the end of the epoch. */
bool at_batches_next(at_batches *batches, at_batch *batch);
int64_t at_batches_count(const at_batches *batches); /* in this epoch */
int64_t at_batches_left(const at_batches *batches);  /* of them, after the last one returned */
void at_batches_skip(at_batches *batches, int64_t count);

#endif
