/* Which language a text is in: the one whose source vocabulary describes it in the fewest bits.
 *
 *     bits(l) = sum over the units u of the text of log2 V_l, and 8 more for each byte of a unit that V_l does not have
 *     p(l)    = 2^-bits(l) / sum over m of 2^-bits(m)
 *
 * A vocabulary of subwords or words was made for its language, and cuts a text of another one into more and shorter
 * units. Of several models of one language the least bits count. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "serve/serve_internal.h"
#include "store/translator.h"

typedef struct units {
    int32_t *ids, *offsets;
    size_t room, offset_room;
} units;

static bool reserve(void *context, int64_t count, int32_t **ids, int32_t **offsets)
{
    units *u = context;
    if (!AT_GROW(u->ids, u->room, (size_t)count) || !AT_GROW(u->offsets, u->offset_room, 2 * (size_t)count))
        return false;
    *ids = u->ids;
    if (offsets)
        *offsets = u->offsets;
    return true;
}

/* Infinite if out of memory. */
static double bits_of(const at_vocabulary *vocabulary, at_line line, units *room)
{
    int64_t replaced = 0;
    const int64_t count = at_vocabulary_encode_line(vocabulary, line, reserve, room, &replaced);
    const double each = log2((double)at_vocabulary_size(vocabulary));
    double bits = count < 0 ? INFINITY : (double)count * each;
    for (int64_t i = 0; i < count; i++)
        if (room->ids[i] == AT_UNKNOWN)
            bits += 8.0 * (room->offsets[2 * i + 1] - room->offsets[2 * i]);
    return bits;
}

/* A text is encoded line by line, as it is translated. */
static double bits_of_text(const at_vocabulary *vocabulary, at_line text, units *room)
{
    double bits = 0;
    const char *at = text.text, *const end = text.text + text.size;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        bits += bits_of(vocabulary, (at_line){at, (size_t)(stop - at)}, room);
        at = stop + 1;
    }
    return bits;
}

int at_detect(const at_served *served, const at_line *texts, int64_t count, const char **code, double *probability)
{
    units room = {0};
    int found = 0;
    double least = INFINITY, sum = 0;
    for (int p = 0; p < served->count; p++) {
        double bits = 0;
        int at = 0;
        if (served->pair[p].pictures)
            continue;
        for (int64_t i = 0; i < count; i++)
            bits += bits_of_text(served->pair[p].translator->source, texts[i], &room);
        while (at < found && strcmp(code[at], served->pair[p].source) != 0)
            at++;
        if (at == found) {
            code[found] = served->pair[p].source;
            probability[found++] = INFINITY;
        }
        probability[at] = fmin(probability[at], bits);
        least = fmin(least, bits);
    }
    free(room.ids);
    free(room.offsets);
    if (found > 0 && !(least < INFINITY))
        return -1;
    for (int i = 0; i < found; i++)
        sum += probability[i] = exp2(least - probability[i]);
    for (int i = 0; i < found; i++)
        probability[i] /= sum;
    for (int i = 1; i < found; i++) /* there are few: sorted by insertion, equals in the order of the models */
        for (int j = i; j > 0 && probability[j] > probability[j - 1]; j--) {
            const double p = probability[j];
            const char *c = code[j];
            probability[j] = probability[j - 1], code[j] = code[j - 1];
            probability[j - 1] = p, code[j - 1] = c;
        }
    return found;
}
