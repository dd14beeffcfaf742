#include "attend_unstable.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { WORD = 64 }; /* no name is longer, so longer words are not compared */

static int least(int a, int b)
{
    return a < b ? a : b;
}

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Edit distance with transpositions (Damerau): letters inserted, deleted, replaced or swapped with their neighbour to
 * get from a to b, ignoring case:
 *   d[i][j] = min(d[i-1][j] + 1, d[i][j-1] + 1, d[i-1][j-1] + (a_i != b_j), d[i-2][j-2] + 1 if swapped) */
static int distance(const char *a, const char *b)
{
    int n = (int)strlen(a), m = (int)strlen(b);
    int rows[3][WORD + 1];
    int *before = rows[0], *last = rows[1], *now = rows[2];
    for (int j = 0; j <= m; j++)
        now[j] = j;
    for (int i = 1; i <= n; i++) {
        int *free_row = before;
        before = last;
        last = now;
        now = free_row;
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            bool equal = same(a[i - 1], b[j - 1]);
            now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + !equal);
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                now[j] = least(now[j], before[j - 2] + 1);
        }
    }
    return now[m];
}

/* The distance if the name is near enough to be meant, within a third of the longer word and less than all of it; else
 * -1. */
static int near(const char *word, const char *name)
{
    size_t n = strlen(word), m = strlen(name);
    size_t longer = n > m ? n : m;
    if (longer > WORD)
        return -1;
    int most = longer < 3 ? 1 : (int)(longer / 3);
    if (2 * longer - n - m > (size_t)most) /* one is longer by more letters, each of which is an insertion */
        return -1;
    int d = distance(word, name);
    return d <= most && d < (int)longer ? d : -1;
}

static bool seen_before(const char *const *names, int index)
{
    for (int i = 0; i < index; i++)
        if (strcmp(names[i], names[index]) == 0)
            return true;
    return false;
}

/* Appends if it fits; returns the length of all, as snprintf does. */
static size_t put(char *out, size_t size, size_t used, const char *before, const char *name, const char *after)
{
    size_t start = used < size ? used : size;
    return used + (size_t)snprintf(out + start, size - start, "%s%s%s", before, name, after);
}

void at_suggest(const char *word, const char *const *names, int count, char *out, size_t size)
{
    if (size == 0)
        return;
    out[0] = '\0';
    int best = -1, ties = 0;
    for (int i = 0; i < count; i++) {
        int d = near(word, names[i]);
        if (d < 0 || (best >= 0 && d > best) || seen_before(names, i))
            continue;
        ties = d == best ? ties + 1 : 1;
        best = d;
    }
    size_t used = 0;
    int named = 0;
    for (int i = 0; i < count && named < ties; i++) {
        if (near(word, names[i]) != best || seen_before(names, i))
            continue;
        const char *before = named == 0 ? "; did you mean '" : named == ties - 1 ? " or '" : ", '";
        used = put(out, size, used, before, names[i], ++named == ties ? "'?" : "'");
    }
    if (used >= size)
        out[0] = '\0';
}
