/* The tasks of the listings: a few words and a sentence, as the lesson and attend demo train them. */
#include <string.h>

#include "attend_unstable.h"

static const at_textbook tasks[AT_TEXTBOOKS] = {
    {.name = "antonyms",
     .symbols = "SEPabcdefghijklmnopqrstuvwxyz",
     .letters = true,
     .pairs = {{"manPP", "Swomen", "womenE"},
               {"black", "Swhite", "whiteE"},
               {"kingP", "Squeen", "queenE"},
               {"girlP", "SboyPP", "boyPPE"},
               {"upPPP", "SdownP", "downPE"},
               {"highP", "SlowPP", "lowPPE"}},
     .fed = "SPPPPP",
     .words = {"man", "mans", "king", "black", "up"}},
    {.name = "beer",
     .symbols = "ich mochte ein bier P S i want a beer E",
     .pairs = {{"ich mochte ein bier P", "S i want a beer", "i want a beer E"}},
     .fed = "P P P P P",
     .words = {"ich mochte ein bier P"}},
};

const at_textbook *at_textbook_at(int index)
{
    return index >= 0 && index < AT_TEXTBOOKS ? &tasks[index] : NULL;
}

const at_textbook *at_textbook_find(const char *name)
{
    const at_textbook *task;
    for (int i = 0; (task = at_textbook_at(i)) && strcmp(task->name, name) != 0; i++)
        ;
    return task;
}

/* The length of the symbol that begins here. */
static size_t symbol_length(const at_textbook *task, const char *text)
{
    return task->letters ? *text != 0 : strcspn(text, " ");
}

static const char *next_symbol(const at_textbook *task, const char *text)
{
    text += symbol_length(task, text);
    return text + (*text == ' ');
}

static int32_t count_symbols(const at_textbook *task, const char *text)
{
    int32_t count = 0;
    for (; *text; text = next_symbol(task, text))
        count++;
    return count;
}

/* -1: there is no such symbol. */
static int32_t id_of(const at_textbook *task, const char *symbol)
{
    const size_t length = symbol_length(task, symbol);
    const char *at = task->symbols;
    int32_t id = 0;
    while (*at && (symbol_length(task, at) != length || memcmp(at, symbol, length) != 0)) {
        at = next_symbol(task, at);
        id++;
    }
    return *at ? id : -1;
}

int64_t at_textbook_ids(const at_textbook *task, const char *text, int64_t least, int32_t *ids)
{
    int64_t count = 0;
    for (; *text || count < least; text = next_symbol(task, text)) {
        const int32_t id = count < AT_TEXTBOOK_LENGTH ? id_of(task, *text ? text : "P") : -1;
        if (id < 0)
            return -1;
        ids[count++] = id;
    }
    return count;
}

at_line at_textbook_symbol(const at_textbook *task, int32_t id)
{
    const char *at = task->symbols;
    while (*at && id-- > 0)
        at = next_symbol(task, at);
    return (at_line){at, symbol_length(task, at)};
}

void at_textbook_read(const at_textbook *task, at_textbook_pairs *pairs)
{
    int64_t count[3] = {0}, number = 0;
    for (; number < AT_TEXTBOOK_PAIRS && task->pairs[number][0]; number++)
        for (int side = 0; side < 3; side++)
            count[side] += at_textbook_ids(task, task->pairs[number][side], 0, pairs->ids[side] + count[side]);
    pairs->task = (at_listing_task){.symbols = count_symbols(task, task->symbols),
                                    .pairs = number,
                                    .source_length = count[0] / number,
                                    .target_length = count[1] / number,
                                    .source = pairs->ids[0],
                                    .input = pairs->ids[1],
                                    .target = pairs->ids[2]};
}
