/* The parts of a vocabulary, for the files that build, use and store it. */
#ifndef AT_VOCABULARY_INTERNAL_H
#define AT_VOCABULARY_INTERNAL_H

#include "base/hash.h"
#include "base/table.h"
#include "text/subwords_internal.h"
#include "text/units.h"
#include "text/vocabulary.h"

/* One unit: its text lies in the vocabulary's `text` and ends in a NUL. */
typedef struct at_word {
    size_t start, size;
    uint64_t hash;
    int64_t count;
    int32_t seen; /* how many units were seen before it */
} at_word;

struct at_vocabulary {
    bool words, fixed;
    bool given;    /* its units were read from a file, and lines are not counted */
    int64_t limit; /* units to keep; 0: all */
    at_cleaning cleaning;
    at_subwords *subwords; /* NULL unless the units are SentencePiece's; then its piece i is word i, unless: */
    bool listed;           /* the units are a list of their own, in which pieces are found by their text */
    bool tags;             /* a line may begin with a unit such as >>fra<<, which is not cut into pieces */
    bool begins, ends;     /* a line that has a unit gets AT_BEGIN before it, AT_END after it */
    uint64_t needs;        /* the hash of the subwords that a stored vocabulary belongs to, until it has them */
    at_buffer text;
    at_word *word; /* in the order of their ids, once fixed */
    int32_t count;
    size_t room;
    at_table table; /* from a unit to its index in `word` */
    int shares;     /* further owners, of at_vocabulary_share */
};

/* The index of a unit among the words, -1 if it is none of them. */
int32_t at_vocabulary_find(const at_vocabulary *vocabulary, at_unit unit);
/* Counts a unit `times` more; a new one is appended. */
bool at_vocabulary_add(at_vocabulary *vocabulary, at_unit unit, int64_t times, at_error *error);
/* The pieces of its subwords become its words, and it is fixed. */
bool at_vocabulary_take_pieces(at_vocabulary *vocabulary, at_error *error);
/* Reads the units of a text file, one a line. */
bool at_vocabulary_read_units(at_vocabulary *vocabulary, const char *path, at_error *error);
const char *at_vocabulary_kind_name(const at_vocabulary *vocabulary); /* "char", "word", "spm" */
bool at_vocabulary_no_memory(at_error *error);

#endif
