/* Links of word alignments as text. */
#ifndef AT_LINKS_H
#define AT_LINKS_H

#include "base/utf8.h"
#include "text/units.h"

/* Reads "3-4", or "3?4" for a link that is only possible, as source << 32 | target. False if it is no link. */
bool at_link_read(at_unit unit, uint64_t *link, bool *sure);
/* What is no link, for an error message. Returns `out`. */
char *at_link_shown(at_unit unit, char out[AT_SHOWN]);

#endif
