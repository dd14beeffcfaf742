/* The normaliser's table of a .spm file: a double-array trie from texts to what replaces them. */
#ifndef AT_SPM_CHARSMAP_INTERNAL_H
#define AT_SPM_CHARSMAP_INTERNAL_H

#include <stddef.h>

/* NULL if no text whatever can lead a reader of the table out of it; else what is wrong. An empty table is fine. */
const char *at_charsmap_fault(const unsigned char *table, size_t size);

#endif
