/* Links of word alignments as text. */
#ifndef AT_LINKS_H
#define AT_LINKS_H

#include "text/units.h"

/* Reads "3-4", or "3?4" for a link that is only possible, as source << 32 | target. False if it is no link. */
bool at_link_read(at_unit unit, uint64_t *link, bool *sure);

#endif
