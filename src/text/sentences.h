/* The sentences of a line by the rules of Unicode (UAX 29) and the abbreviations of its language, from ICU. */
#ifndef AT_SENTENCES_H
#define AT_SENTENCES_H

#include "attend.h"

/* Of one thread at a time. NULL if ICU is not there or out of memory. */
typedef struct at_splitter at_splitter;
bool at_splitter_load(at_error *error);
at_splitter *at_splitter_new(const char *language, at_error *error);
void at_splitter_free(at_splitter *splitter);
/* The sentences of a line one by one, without the blanks around them; false if out of memory, and after the last. */
bool at_splitter_begin(at_splitter *splitter, at_line line);
bool at_splitter_next(at_splitter *splitter, at_line *sentence);

#endif
