/* Units of text as numbers, so that equal units, and equal n-grams of them, are found by comparing integers. */
#ifndef AT_NGRAMS_INTERNAL_H
#define AT_NGRAMS_INTERNAL_H

#include "attend.h"
#include "base/table.h"

/* A line and its references as ids, one after the other: sequence 0 is the hypothesis, 1 and up the references;
 * sequence s is id[start[s] .. start[s + 1]). Equal units have equal ids. */
typedef struct at_sequences {
    int32_t *id;
    size_t used, room;
    int64_t *start; /* [count + 1] */
    size_t start_room;
    int count;
} at_sequences;
void at_sequences_clear(at_sequences *sequences);
void at_sequences_free(at_sequences *sequences);
/* Adds an id to the last sequence, which the second call ends. False if out of memory. */
bool at_sequences_add(at_sequences *sequences, int32_t id);
bool at_sequences_end(at_sequences *sequences);

/* Words and their ids; the bytes are copied, and word i is bytes[start[i] .. start[i + 1]). */
typedef struct at_dictionary {
    at_table table;
    int32_t used;
    size_t *start; /* [used + 1] */
    size_t start_room;
    char *bytes;
    size_t size, room;
} at_dictionary;
void at_dictionary_clear(at_dictionary *dictionary);
void at_dictionary_free(at_dictionary *dictionary);
/* The id of a word, 0 and up in the order of first occurrence; -1 if out of memory. */
int32_t at_dictionary_id(at_dictionary *dictionary, const char *text, size_t size);

/* n-grams of sequences as ids, order by order. */
typedef struct at_grams {
    const at_sequences *of;
    int order;
    int32_t *id; /* like of->id; of order n there are n - 1 fewer in each sequence */
    int32_t *most, *now;
    size_t room;
    at_table table; /* of pairs, see ngrams.c */
} at_grams;
void at_grams_free(at_grams *grams);
/* Starts with n-grams of order 0; each step makes them one unit longer. False if out of memory. */
bool at_grams_start(at_grams *grams, const at_sequences *sequences);
void at_grams_step(at_grams *grams);
/* How many n-grams of the current order a sequence has. */
int64_t at_grams_count(const at_grams *grams, int sequence);
/* How many n-grams of the hypothesis are in the sequences first .. last, each clipped to its largest count in one of
 * them: sum over g of min(count_0(g), max_s count_s(g)). */
int64_t at_grams_common(at_grams *grams, int first, int last);

#endif
