/* The public face of at_nearest: the command corrects its options with the same judgement as the library its names. */
#include "base/text.h"

void at_suggest(const char *word, const char *const *names, int count, char *out, size_t size)
{
    at_nearest(word, names, count, out, size);
}
