/* The normaliser's table of a .spm file: a double-array trie from texts to what replaces them. */
#ifndef AT_SPM_CHARSMAP_INTERNAL_H
#define AT_SPM_CHARSMAP_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

/* NULL if no text can make a reader access memory outside the table; else what is wrong. An empty table is valid. If out
 * of memory, *checked is false. */
const char *at_charsmap_fault(const unsigned char *table, size_t size, bool *checked);

#endif
